"""Clusters in words: effects, shares, sentences, and the same from every kind of input."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import median_abs_deviation
from sklearn.cluster import HDBSCAN
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from support.model_inputs import four_clusters, t_mixture, three_groups, two_groups

import tkmeans
from tkmeans import DataFile, StudentTMixture, TKMeans, describe
from tkmeans.baselines import KMedians
from tkmeans.cluster_descriptions import described
from tkmeans.row_answers import RowAnswers

RNG = np.random.default_rng(0)
SPECIES = np.array(["Adelie"] * 60 + ["Gentoo"] * 40)
X = np.where((SPECIES == "Adelie")[:, None], [190.0, 3700.0], [217.0, 5100.0]) + RNG.normal(size=(100, 2)) * [6, 300]
NAMES = ["flipper_length_mm", "body_mass_g"]
MODEL = make_pipeline(RobustScaler(), TKMeans(2, random_state=0)).fit(X)
FOUND = describe(MODEL, X, feature_names=NAMES, categories={"species": SPECIES})


def test_an_effect_is_the_difference_of_medians_over_the_pooled_median_absolute_deviation():
    labels = MODEL.predict(X)
    core = ~MODEL[-1].outliers(MODEL[0].transform(X))
    centred = np.concatenate([X[core & (labels == k)] - np.median(X[core & (labels == k)], axis=0) for k in (0, 1)])
    for k in (0, 1):
        own, rest = (np.median(X[core & mask], axis=0) for mask in (labels == k, labels != k))
        effects = (own - rest) / median_abs_deviation(centred, center=lambda a, axis: 0, scale=1 / 1.4826)
        told = {trait.column: trait.effect for trait in FOUND[k].traits}
        np.testing.assert_allclose([told[name] for name in NAMES], effects, rtol=1e-10)
        assert abs(FOUND[k].traits[0].effect) >= abs(FOUND[k].traits[1].effect)


def test_a_sentence_names_the_size_the_telling_columns_and_the_category():
    assert FOUND.sentences() == [
        "Cluster 0 (60 rows): short flipper, light; 100 % Adelie",
        "Cluster 1 (40 rows): long flipper, heavy; 100 % Gentoo",
    ]
    assert str(FOUND) == "\n".join(FOUND.sentences())
    assert FOUND._repr_html_().count("<li>") == 2


def test_records_and_the_table_of_a_description_hold_the_same_facts():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(FOUND.table())
    assert table["n_rows"].tolist() == [record["n_rows"] for record in FOUND.records()] == [60, 40]
    np.testing.assert_array_equal(table["body_mass_g"], [np.median(X[:60, 1]), np.median(X[60:, 1])])
    assert table["species"].tolist() == ["Adelie", "Gentoo"]
    assert FOUND.records()[1]["categories"][0] == {"column": "species", "value": "Gentoo", "share": 1.0, "others": 0.0}


def test_the_typical_row_belongs_to_the_cluster_and_is_near_its_median():
    for cluster in FOUND:
        own = X[MODEL.predict(X) == cluster.cluster]
        away = np.abs(own - np.median(own, axis=0)) / np.std(own, axis=0)
        typical = np.abs(X[cluster.typical_row] - np.median(own, axis=0)) / np.std(own, axis=0)
        assert typical.sum() <= np.quantile(away.sum(axis=1), 0.05)


def test_a_far_row_changes_no_sentence_and_is_counted_as_an_outlier():
    far = np.vstack([X, [[900.0, 90_000.0]]])
    found = describe(MODEL, far, feature_names=NAMES, categories={"species": [*SPECIES, "Gentoo"]})
    assert found[1].sentence == "Cluster 1 (40 rows and 1 outlier): long flipper, heavy; 100 % Gentoo"
    assert [trait.effect for trait in found[1].traits] == [trait.effect for trait in FOUND[1].traits]


def test_clusters_that_nothing_sets_apart_are_said_to_be_so():
    rows = np.random.default_rng(1).normal(size=(300, 6))
    found = describe(TKMeans(1).fit(rows), rows)
    assert found.sentences() == ["Cluster 0 (300 rows): no column sets it apart"]


def test_columns_of_yes_and_no_are_described_by_their_shares():
    rows = np.c_[X, RNG.random(100) < np.where(SPECIES == "Adelie", 0.05, 0.95)]
    found = describe(MODEL[-1].__class__(2, random_state=0).fit(rows), rows, feature_names=[*NAMES, "smoker"])
    shares = {each.column: (each.value, each.share) for each in found[1].categories}
    assert shares["smoker"] == ("yes", pytest.approx(rows[60:, 2].mean(), abs=0.05))
    assert "% smoker" in found[1].sentence


def test_a_data_frame_and_a_file_are_described_with_their_text(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(X, columns=NAMES).assign(species=SPECIES)
    frame.to_csv(tmp_path / "birds.csv", index=False)
    model = make_pipeline(RobustScaler(), TKMeans(2, random_state=0)).fit(frame[NAMES])
    assert describe(model, frame).sentences() == FOUND.sentences()
    for file in (tmp_path / "birds.csv", str(tmp_path / "birds.csv"), DataFile(tmp_path / "birds.csv", NAMES)):
        assert describe(model, file).sentences() == FOUND.sentences()


def test_a_value_of_a_few_rows_is_no_word_about_a_cluster_in_which_most_have_none():
    cells = np.full(100, "", dtype=object)
    cells[[0, 1, 2, 60]] = "defect"  # remarks on three of 60 rows and on one of 40
    found = describe(MODEL, X, feature_names=NAMES, categories={"remark": cells})
    assert found[0].categories[0].share == 3 / 60
    assert found[0].categories[0].others == 1 / 40
    assert not any("defect" in sentence for sentence in found.sentences())


def test_missing_values_and_rows_without_any_are_left_aside():
    holes, cells = X.copy(), SPECIES.astype(object)
    holes[5] = holes[70, 0] = np.nan
    cells[[1, 2]] = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = make_pipeline(RobustScaler(), TKMeans(2, random_state=0)).fit(holes)
    found = describe(model, holes, feature_names=NAMES, categories={"species": cells})
    assert [cluster.n_rows for cluster in found] == [59, 40]
    assert found[0].categories[0].share == 57 / 59  # two have no word


def test_a_share_is_of_all_rows_of_the_cluster_whether_they_have_a_word_or_not():
    cells = np.where(np.arange(len(SPECIES)) % 2 == 0, SPECIES, "")
    found = describe(TKMeans(2, random_state=0).fit(X), X, feature_names=NAMES, categories={"species": cells})
    assert [round(each.categories[0].share, 1) for each in found] == [0.5, 0.5]


@pytest.mark.parametrize(
    "model",
    [StudentTMixture(2, random_state=0), KMedians(2, random_state=0), GaussianMixture(2, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_every_estimator_with_predict_can_be_described(model):
    Z = RobustScaler().fit_transform(X)
    found = describe(model.fit(Z), Z, feature_names=NAMES, categories={"species": SPECIES})
    assert sorted(each.categories[0].value for each in found) == ["Adelie", "Gentoo"]
    assert sum(each.n_rows + each.n_outliers for each in found) == 100
    assert (found[0].probability is None) == (not hasattr(model, "predict_proba"))


def test_names_that_do_not_fit_the_columns_are_refused():
    with pytest.raises(ValueError, match="feature_names must name the 2 columns of X, got 1 names"):
        describe(MODEL, X, feature_names=["x"])


def wording(sentences):
    """Sentences without the number and size of the cluster."""
    return [sentence.partition(": ")[2] for sentence in sentences]


def blobs(centers, rows=40):
    """Rows around the centres, and the clusters with these centres as a fitted model."""
    rows = np.repeat(np.array(centers, dtype=float), rows, axis=0) + RNG.normal(size=(rows * len(centers), 2))
    return rows, TKMeans(len(centers), init=np.array(centers, dtype=float)).fit(rows)


def test_clusters_on_the_same_side_of_the_others_get_different_sentences_by_the_median_that_differs_most():
    rows, model = blobs([(0, 0), (40, 0), (60, 0), (80, 0), (100, 0), (120, 0)])
    sentences = describe(model, rows, feature_names=["income", "shoe"]).sentences()
    assert len({*wording(sentences)}) == 6
    labels = model.predict(rows)
    for k, sentence in enumerate(sentences):
        assert not sentence.startswith(f"Cluster {k} (40 rows): high income; ") or sentence.endswith(
            f"high income; median income {np.median(rows[labels == k, 0]):.6g}"
        )
    assert sum("; median income" in sentence for sentence in sentences) >= 4
    assert not any("median shoe" in sentence for sentence in sentences)


def test_medians_that_agree_in_one_column_are_told_apart_by_another_and_with_as_many_digits_as_needed():
    corners = 1234567 + np.array([[0, 0], [0, 0.5], [0.5, 0], [0.5, 0.5]])
    rows = np.repeat([*corners, [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], 30, axis=0)
    rows += np.tile([-0.01, 0, 0.01], 90)[:, None]
    labels = np.repeat(range(9), 30)
    found = described(RowAnswers(labels, labels >= 0), [*rows.T], ["x", "y"], {}, 9)
    words = wording(found.sentences())
    assert {frozenset(each.partition(";")[0].split(", ")) for each in words[:4]} == {frozenset(["high x", "high y"])}
    assert [each.partition("; ")[2] for each in words] == [
        "median x 1234567, median y 1234567",
        "median x 1234567, median y 1234567.5",
        "median x 1234567.5, median y 1234567",
        "median x 1234567.5, median y 1234567.5",
        *[""] * 5,
    ]
    assert found.records()[0]["medians"] == ("median x 1234567", "median y 1234567")


@pytest.mark.parametrize("sizes", [(90, 70, 50), (50, 70, 90), (70, 71, 70)])
def test_a_cluster_between_two_others_is_neither_high_nor_low_whatever_their_sizes(sizes):
    labels = np.repeat([0, 1, 2], sizes)
    rows = np.repeat([20.0, 50.0, 80.0], sizes) + np.random.default_rng(0).normal(size=len(labels))
    found = described(RowAnswers(labels, labels >= 0), [rows], ["x"], {}, 3)
    assert wording(found.sentences()) == ["low x", "medium x", "high x"]
    assert [trait.level for each in found for trait in each.traits] == ["very low", "medium", "very high"]


def test_the_other_rows_and_not_the_number_of_other_clusters_decide_what_is_high():
    labels = np.repeat([0, 1, 2], [900, 60, 40])
    income = np.repeat([30.0, 80.0, 200.0], [900, 60, 40]) + np.random.default_rng(0).normal(size=1000)
    found = described(RowAnswers(labels, labels >= 0), [income], ["income"], {}, 3)
    assert [words.partition(";")[0] for words in wording(found.sentences())] == [
        "low income",
        "high income",
        "high income",
    ]
    for k, cluster in enumerate(found):
        assert abs(cluster.traits[0].others - np.median(income[labels != k])) < 2


def test_a_cluster_at_the_place_of_another_is_not_between_the_others():
    labels = np.repeat([0, 1, 2, 3], 50)
    x = np.repeat([0.0, 5.0, 5.1, 10.0], 50) + np.random.default_rng(0).normal(size=200)
    found = described(RowAnswers(labels, labels >= 0), [x], ["x"], {}, 4)
    assert all(words.startswith("no column sets it apart") for words in wording(found.sentences())[1:3])


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["flipper_length_mm", "body_mass_g"], "long flipper, heavy"),
        (["height_cm", "weight_kg"], "tall, heavy"),
        (["FEV1 (l)", "FEV1 (%)"], "high FEV1 (l), high FEV1 (%)"),
        (["temp_min", "temp_max"], "high temp min, high temp max"),
        (["x", "x_cm"], "high x, high x cm"),
        (["size_m", "size_s"], "high size m, high size s"),
        (["vibration_mm_s", "Umsatz (T€)"], "high vibration, high Umsatz (T€)"),
        (["average_age", "max_speed"], "high average age, high max speed"),
        (["birth weight", "Sepal.Length"], "high birth weight, long Sepal"),
        (["price", "price_eur"], "expensive, high price eur"),
        (["a_b", "a b"], "high a_b, high a b"),
    ],
)
def test_a_name_is_shortened_only_where_no_other_column_could_be_meant(names, words):
    labels = np.repeat([0, 1], 30)
    x = np.c_[labels * 50.0, labels * 50.0] + np.random.default_rng(0).normal(size=(60, 2))
    sentence = described(RowAnswers(labels, labels >= 0), [*x.T], names, {}, 2)[1].sentence.partition(": ")[2]
    assert sorted(sentence.split(", ")) == sorted(words.split(", "))


def test_clusters_that_differ_in_no_median_keep_the_same_sentence():
    labels = np.repeat([0, 1], 30)
    found = described(RowAnswers(labels, labels >= 0), [np.tile([-1.0, 0.0, 1.0], 20)], ["x"], {}, 2)
    assert wording(found.sentences()) == ["no column sets it apart"] * 2


def test_sparse_rows_are_refused_with_the_way_out():
    X = csr_array(np.kron(np.eye(5), np.ones((6, 1))))
    with pytest.raises(TypeError, match="toarray"):
        describe(TKMeans(5).fit(X), X)


PLANE, PLANE_LABELS, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


# ---- names ---------------------------------------------------------------------------------------

TWO_GROUPS = two_groups()


def test_columns_with_the_names_of_facts_leave_the_facts_of_a_description_alone():
    X, model = four_clusters()
    plain = describe(model, X, feature_names=["a", "b", "c"]).table()
    named = describe(model, X, feature_names=["cluster", "probability", "n_rows"]).table()
    for fact in ("cluster", "n_rows", "share", "n_outliers", "probability"):
        assert named[fact] == plain[fact]
    assert [named[f"median {name}"] for name in ("cluster", "probability", "n_rows")] == [plain[c] for c in "abc"]


def test_a_column_of_text_does_not_replace_one_of_numbers_of_its_name():
    X, model = four_clusters()
    table = describe(model, X, categories={"x0": np.where(model.labels_ == 0, "yes", "no")}).table()
    assert all(isinstance(value, float) for value in table["x0"])
    assert table["text x0"] == ["yes", "no", "no", "no"]


def test_two_columns_of_one_name_are_not_described():
    X, model = four_clusters()
    with pytest.raises(ValueError, match="several columns with the name 'a'"):
        describe(model, X, feature_names=["a", "a", "b"])


def test_names_of_columns_are_used_for_frames_too():
    pandas = pytest.importorskip("pandas")
    frame, model = pandas.DataFrame(PLANE, columns=["a", "b"]), TKMeans(3).fit(PLANE)
    found = tkmeans.describe(model, frame, feature_names=["c", "d"])
    assert {trait.column for each in found for trait in each.traits} == {"c", "d"}
    with pytest.raises(ValueError, match="feature_names must name the 2 columns of X, got 1 names"):
        tkmeans.describe(model, frame, feature_names=["c"])


@pytest.mark.parametrize("sign", "\n\r\x0b\x0c\x1c\x1b\x07\x85\u2028\u2029\u202e")
def test_a_sentence_on_a_cluster_is_one_line_without_control_characters(sign):
    said = describe(
        TKMeans(2, random_state=0).fit(TWO_GROUPS),
        TWO_GROUPS,
        feature_names=[f"height{sign}Cluster 9", sign, "width"],
        categories={f"kind{sign}": [f"a{sign}Cluster 9 (5 rows): forged"] * 60 + [f"7{sign}"] * 30},
    )
    for text in (*said.sentences(), *(record["sentence"] for record in said.records())):
        assert sign not in text
        assert text.isprintable()
    assert len(str(said).splitlines()) == 2
    assert "forged" in str(said)


# ---- columns, tables and models ------------------------------------------------------------------

SPACE, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)


def test_a_column_that_is_equal_within_clusters_and_differs_between_them_is_named():
    rows = np.column_stack([PLANE, np.where(PLANE_LABELS == 0, 5.0, 1.0)])
    model = TKMeans(3, random_state=0).fit(rows)
    words = tkmeans.describe(model, rows, feature_names=["x", "y", "level"]).sentences()
    assert sum("high level" in sentence for sentence in words) == 1


def test_a_description_takes_the_arrow_table_that_the_fit_took():
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    rows = pa.table({name: SPACE[:, j] for j, name in enumerate("abc")})
    model = TKMeans(3).fit(rows)
    frame = pd.DataFrame(SPACE, columns=list("abc"))
    assert tkmeans.describe(model, rows).sentences() == tkmeans.describe(model, frame).sentences()


def test_a_clusterer_that_cannot_predict_is_refused_by_describe():
    with pytest.raises(TypeError, match="model must be a clusterer with predict, such as TKMeans"):
        describe(HDBSCAN(copy=True).fit(three_groups()), three_groups())
