"""What an eighth attack broke in Python, each with a test that fails if it comes back."""

import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tkmeans import DataFile, MiniBatchTKMeans, StudentTMixture, TKMeans, plots, select_clusters

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(0, 1, (60, 3)), RNG.normal(9, 1, (30, 3))])


# ---- files that are written ------------------------------------------------------------------------------


def test_a_dataset_of_pyarrow_is_not_written_over_by_what_is_made_of_it(tmp_path):
    pa, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(dict(zip("abc", X.T, strict=True))), path)
    before = path.read_bytes()
    one = dataset.dataset(str(path))
    for given in (one, dataset.dataset([one])):  # and a union
        model = TKMeans(2, random_state=0).fit(given)
        with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
            model.predict(given, out=str(path))
        with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
            TKMeans(2, random_state=0, checkpoint=str(path)).fit(given)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


# ---- data of few values ----------------------------------------------------------------------------------


def answers_from_1_to_5():
    rng = np.random.default_rng(1)
    centers = rng.integers(1, 6, (3, 6))
    return np.clip(np.rint(centers[rng.integers(0, 3, 300)] + rng.normal(size=(300, 6))), 1, 5)


@pytest.mark.parametrize(("unit", "offset", "digits"), [(0.01, 100, 2), (0.1, 1000, 1)])
@pytest.mark.filterwarnings("ignore")
def test_the_offset_and_the_unit_of_rounded_data_change_no_cluster_and_no_number_of_clusters(unit, offset, digits):
    Z = answers_from_1_to_5()
    moved = np.round(Z * unit + offset, digits)
    plain, other = (StudentTMixture(3, random_state=0).fit(rows) for rows in (Z, moved))
    clear = plain.predict_proba(Z).max(axis=1) > 0.6  # how EM ends decides about a row right between two clusters
    assert np.mean(clear) > 0.95
    np.testing.assert_array_equal(plain.labels_[clear], other.labels_[clear])
    assert select_clusters(Z, random_state=0).best == select_clusters(moved, random_state=0).best


@pytest.mark.filterwarnings("ignore")
def test_a_row_of_weight_2_is_that_row_twice_where_two_columns_tell_the_same():
    D, weight = load_digits().data[:600], np.random.default_rng(1).integers(1, 3, 600)
    weighted = StudentTMixture(10, random_state=0).fit(D, sample_weight=weight)
    repeated = StudentTMixture(10, random_state=0).fit(np.repeat(D, weight, axis=0))
    np.testing.assert_array_equal(weighted.predict(D), repeated.predict(D))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_constant_column_is_looked_at_by_round_components_alone_and_the_docstring_says_so(kind):
    beside = np.c_[X, np.full(len(X), 7.0)]
    own, wide = (StudentTMixture(2, covariance_type=kind, random_state=0).fit(rows) for rows in (X, beside))
    same = np.allclose(own.score_samples(X), wide.score_samples(beside), atol=1e-6)
    assert same == (kind != "spherical")
    assert 'not looked at (but by "spherical"' in StudentTMixture.__doc__


# ---- pictures --------------------------------------------------------------------------------------------


def table(path, rows=X):
    np.savetxt(path, rows, delimiter=",", header=",".join("abcdef"[: rows.shape[1]]), comments="")
    return path


@pytest.mark.parametrize("name", ["ClustersDisplay", "RobustWeightsDisplay"])
@pytest.mark.parametrize("kind", [str, lambda path: path, DataFile])
def test_a_picture_of_a_file_is_refused_before_anything_is_written(name, kind, tmp_path):
    pytest.importorskip("matplotlib")
    path = table(tmp_path / "a.csv")
    model = TKMeans(2, random_state=0).fit(X)
    with pytest.raises(TypeError, match=r"X must be a table of numbers, got .*a\.csv.*; .* load it first"):
        getattr(plots, name).from_estimator(model, kind(path))
    assert [*tmp_path.iterdir()] == [path]


def test_a_picture_of_a_file_with_given_labels_and_one_of_a_dataset_are_refused_in_the_same_words(tmp_path):
    pytest.importorskip("matplotlib")
    dataset = pytest.importorskip("pyarrow.dataset")
    path = table(tmp_path / "a.csv")
    with pytest.raises(TypeError, match="load it first"):
        plots.ClustersDisplay.from_predictions(str(path), np.zeros(len(X), int))
    with pytest.raises(TypeError, match="load it first"):
        plots.RobustWeightsDisplay.from_estimator(
            TKMeans(2, random_state=0).fit(X), dataset.dataset(str(path), format="csv")
        )


# ---- what a DataFile is told -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["columns", "without", "keep", "missing"])
@pytest.mark.parametrize("value", [-999, 0, 1.5, True, "a", [-999], iter(["a"])])
def test_a_list_of_names_that_is_none_is_refused_by_the_name_of_its_parameter(name, value):
    with pytest.raises(TypeError, match=f"^{name} must be a list of str, got "):
        DataFile("a.csv", **{name: value})


def test_names_of_columns_may_be_an_array(tmp_path):
    file = DataFile(table(tmp_path / "a.csv"), columns=np.array(["c", "a"]))
    assert TKMeans(2, random_state=0).fit(file).feature_names_in_.tolist() == ["c", "a"]


@pytest.mark.parametrize(
    ("columns", "repeated"), [(["a", "a"], "a"), (["a", "b", "2"], "b"), (["a", "c=1", "c=1"], "c=1")]
)
def test_a_column_that_is_named_twice_is_refused_by_its_name(columns, repeated, tmp_path):
    with pytest.raises(ValueError, match=f"columns must differ, and '{repeated}' is named more than once"):
        TKMeans(2).fit(DataFile(table(tmp_path / "a.csv"), columns=columns))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_an_indicator_of_a_value_that_no_row_has_is_told_by_value_and_column(suffix, tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / f"penguins{suffix}"
    found = pa.table({"a": X[:, 0], "species": ["Adelie"] * 60 + ["Gentoo"] * 30})
    module = {".csv": "pyarrow.csv", ".parquet": "pyarrow.parquet", ".feather": "pyarrow.feather"}[suffix]
    write = {".csv": "write_csv", ".parquet": "write_table", ".feather": "write_feather"}[suffix]
    getattr(pytest.importorskip(module), write)(found, path)
    columns = ["a", "species=Gentoo"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TKMeans(2, random_state=0).fit(DataFile(path, columns=columns))
    with pytest.warns(UserWarning, match="penguins.*: no row has 'species=gentoo'"):
        TKMeans(2, random_state=0).fit(DataFile(path, columns=["a", "species=gentoo"]))
    getattr(pytest.importorskip(module), write)(found.slice(0, 60), path)
    with pytest.warns(UserWarning, match="penguins.*: no row has 'species=Gentoo'"):
        model.predict(path)


@pytest.mark.parametrize("name", ["decimal", "thousands"])
@pytest.mark.parametrize("sign", ["x", "e", "5", "é"])
def test_a_letter_or_digit_is_neither_a_decimal_sign_nor_one_of_thousands(name, sign):
    with pytest.raises(ValueError, match=f"{name}='{sign}' is not one sign"):
        DataFile("a.csv", **{name: sign})


# ---- numbers that are told -------------------------------------------------------------------------------


def test_a_stream_counts_the_batches_that_it_has_learned_from():
    model = MiniBatchTKMeans(2, random_state=0)
    assert model.partial_fit(X).n_steps_ == 1
    assert model.partial_fit(X[:10]).n_steps_ == 2  # learned from as they come
    assert model.partial_fit(X).n_steps_ == 3  # searched anew
    stream = MiniBatchTKMeans(2, init_size=50, random_state=0)
    counts = [getattr(stream.partial_fit(X[i : i + 1]), "n_steps_", 0) for i in range(70)]
    assert counts == [0, *range(2, 71)]


def test_one_large_batch_of_a_stream_is_one_step():
    rows = np.tile(X, (12, 1)) + RNG.normal(size=(12 * len(X), 3))
    model = MiniBatchTKMeans(2, init_size=100, batch_size=100, random_state=0).partial_fit(rows)
    assert (model.n_steps_, model.n_samples_seen_) == (1, len(rows))
    assert model.partial_fit(X).n_steps_ == 2


def test_results_are_not_written_as_parquet_under_the_name_of_another_format(tmp_path):
    pytest.importorskip("pyarrow")
    model = TKMeans(2, random_state=0).fit(X)
    for name in ("o.csv", "o.TSV", "o.txt", "o.json", "o.xlsx", "o.npy", "o.feather"):
        with pytest.raises(ValueError, match=r"out is written as Parquet; name it \*.parquet, got .*o\."):
            model.predict(X, out=tmp_path / name)
    assert not [*tmp_path.iterdir()]
    assert model.predict(X, out=tmp_path / "o.parquet").exists()


@pytest.mark.parametrize("estimator", [TKMeans, StudentTMixture])
def test_a_least_size_beyond_all_rows_is_told_without_a_per_cent_of_millions(estimator):
    with pytest.raises(ValueError, match="min_cluster_size is more than all of the rows, too much for each of 2"):
        estimator(2, min_cluster_size=180_000_000).fit(X)
