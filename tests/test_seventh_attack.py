"""What a seventh attack broke in Python, each with a test that fails if it comes back."""

import json
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from tkmeans import ModelFileError, StudentTMixture, TKMeans, describe, load, save, select_clusters, write_report
from tkmeans.persistence.encoding import checksum
from tkmeans.plots import ClustersDisplay

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(0, 1, (60, 3)), RNG.normal(9, 1, (30, 3))])


# ---- pictures and reports --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix])
def test_a_picture_of_sparse_rows_is_refused_with_a_way_out(kind):
    pytest.importorskip("matplotlib")
    rows = kind(np.vstack([np.eye(3) * i for i in range(1, 20)]))
    with pytest.raises(TypeError, match=r"X is sparse, and a picture shows every value; pass X.toarray\(\)"):
        ClustersDisplay.from_estimator(TKMeans(2, random_state=0).fit(rows), rows)


@pytest.mark.parametrize("model", [TKMeans(2, random_state=0), StudentTMixture(2, random_state=0)])
@pytest.mark.filterwarnings("error")
def test_rows_whose_squares_are_no_numbers_are_refused_by_pictures_and_reports(model, tmp_path):
    pytest.importorskip("matplotlib")
    model = model.fit(X)
    for draw in (ClustersDisplay.from_estimator, lambda *found: write_report(tmp_path / "r.html", *found)):
        with pytest.raises(ValueError, match=r"X has the value 1.*e\+301, .*; rescale X"):
            draw(model, X * 1e300)
    assert not [*tmp_path.iterdir()]


def test_one_row_beyond_all_squares_is_an_outlier_of_the_report(tmp_path):
    rows = np.vstack([X, np.full((1, 3), 1e300)])
    write_report(tmp_path / "r.html", TKMeans(2, random_state=0).fit(X), rows)
    assert (tmp_path / "r.html").exists()


# ---- sentences -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sign", "\n\r\x0b\x0c\x1c\x1b\x07\x85\u2028\u2029\u202e")
def test_a_sentence_on_a_cluster_is_one_line_without_control_characters(sign):
    said = describe(
        TKMeans(2, random_state=0).fit(X),
        X,
        feature_names=[f"height{sign}Cluster 9", sign, "width"],
        categories={f"kind{sign}": [f"a{sign}Cluster 9 (5 rows): forged"] * 60 + [f"7{sign}"] * 30},
    )
    for text in (*said.sentences(), *(record["sentence"] for record in said.records())):
        assert sign not in text
        assert text.isprintable()
    assert len(str(said).splitlines()) == 2
    assert "forged" in str(said)


# ---- model files -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scaler", [RobustScaler(), StandardScaler(), MinMaxScaler()])
@pytest.mark.parametrize("last", [TKMeans(2, random_state=0), StudentTMixture(2, random_state=0)])
@pytest.mark.filterwarnings("error")
def test_a_pipeline_keeps_what_set_output_has_set_in_its_file(scaler, last, tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    model = make_pipeline(scaler, last).set_output(transform="pandas").fit(frame)
    save(model, tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert type(again[0].transform(frame)) is type(frame)
    save(again, tmp_path / "n.json")
    assert (tmp_path / "n.json").read_bytes() == (tmp_path / "m.json").read_bytes()


@pytest.mark.parametrize(
    "forged", [{"transform": "os.system"}, {"transform": ["pandas"]}, {"fit": "pandas"}, {}, "pandas", None, []]
)
@pytest.mark.parametrize("place", ["scaler", "estimator"])
def test_a_model_file_sets_no_other_output_than_those_of_scikit_learn(forged, place, tmp_path):
    save(make_pipeline(RobustScaler(), TKMeans(2, random_state=0)).fit(X), tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text())
    document[place]["fitted"]["_sklearn_output_config"] = forged
    document["checksum"] = checksum(document)
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="_sklearn_output_config"):
        load(tmp_path / "m.json")


# ---- the choice of K -------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["full", "diag", "spherical", "tied"])
def test_the_number_of_clusters_is_chosen_with_the_shape_of_the_given_estimator(shape):
    found = select_clusters(X, [1, 2, 3], estimator=StudentTMixture(covariance_type=shape), random_state=0)
    assert {*found.shapes} == {shape}
    assert found.best_estimator.covariance_type == shape


def test_shapes_that_are_given_come_before_that_of_the_estimator():
    with warnings.catch_warnings(action="error"):
        for estimator in (None, TKMeans(), StudentTMixture(covariance_type="diag")):
            found = select_clusters(X, [2], shapes=["spherical"], estimator=estimator, random_state=0)
            assert {*found.shapes} == {"spherical"}
        assert {*select_clusters(X, [2], estimator=TKMeans(), random_state=0).shapes} == {"full"}
