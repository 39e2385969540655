"""What a fourth attack found, one test for each: sentences that were not true of tables that are quite ordinary."""

import io
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from tkmeans import DataFile, MiniBatchTKMeans, StudentTMixture, TKMeans, describe, select_clusters, write_report
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.datasets import make_contaminated
from tkmeans.fitting.incomplete_rows import complete
from tkmeans.plots import ClustersDisplay
from tkmeans.sources import Sample

# ---- missing values ---------------------------------------------------------------------------


def four_groups(n_features, distance):
    """Rows of four groups, all in the first two columns; the last column was not measured in the last group."""
    centers = np.zeros((4, n_features))
    centers[:, :2] = distance * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    y = np.repeat(range(4), 100)
    X = centers[y] + np.random.default_rng(0).normal(size=(400, n_features))
    X[y == 3, -1] = np.nan
    return X, y, centers


@pytest.mark.parametrize("fitted", [TKMeans, StudentTMixture, MiniBatchTKMeans, "k-means++"])
@pytest.mark.parametrize(("n_features", "distance"), [(3, 20), (8, 10)])
def test_a_cluster_in_which_a_column_was_never_observed_is_found(fitted, n_features, distance):
    X, y, _ = four_groups(n_features, distance)
    model = TKMeans(4, init=fitted, n_init=10, random_state=0) if isinstance(fitted, str) else fitted(4, random_state=0)
    labels = model.fit(X).predict(X)
    assert adjusted_rand_score(y, labels) > 0.95
    assert np.mean(model.outliers(X)[y == 3]) < 0.1


def test_a_fit_without_a_column_in_one_cluster_is_as_good_as_one_from_the_true_centres():
    X, _, centers = four_groups(3, 20)
    assert TKMeans(4).fit(X).lower_bound_ > TKMeans(4, init=centers).fit(X).lower_bound_ - 1e-3


def test_a_choice_of_k_counts_a_cluster_in_which_a_column_was_never_observed():
    X, y = make_contaminated(400, 4, 3, random_state=1)
    X[y == 0, 0] = np.nan
    assert select_clusters(X, range(1, 8)).best == 4


def test_holes_here_and_there_leave_the_complete_rows_as_the_sample():
    X, _ = make_contaminated(400, 4, 3, outlier_fraction=0.0, random_state=1)
    rows = X.copy()
    rows[::3, 1] = np.nan
    whole = complete(Sample(rows, np.ones(400)), 4, rows)
    np.testing.assert_array_equal(whole.X, X[~np.isnan(rows).any(axis=1)])


# ---- rows that are equal, or equally far ------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("fitted", [TKMeans, MiniBatchTKMeans, StudentTMixture])
@pytest.mark.parametrize("unit", [1e-7, 0.1, 1.0, 1e4])
def test_rows_that_equal_their_centre_are_no_outliers_in_any_unit(fitted, unit):
    for corners in ([[0, 0], [1, 0], [0, 1]], [[0, 0], [10, 0], [0, 10], [10, 10]]):
        rows = unit * np.repeat(np.array(corners, float), 20, axis=0)
        model = fitted(len(corners), random_state=0).fit(rows)
        assert not np.any(model.outliers(rows))
        assert np.min(model.predict(rows, outlier_label=-1)) == 0


def test_a_row_far_from_clusters_of_equal_rows_is_an_outlier():
    rows = np.repeat([[0.0, 0], [1, 0], [0, 1]], 20, axis=0)
    model = TKMeans(3).fit(rows)
    assert model.outliers([[0.5, 0.5], [1.0, 0.0]]).tolist() == [True, False]


@pytest.mark.parametrize("fitted", [TKMeans, StudentTMixture])
def test_the_unit_and_the_offset_change_no_cluster_of_rows_on_a_lattice(fitted):
    for seed in range(15 if fitted is TKMeans else 5):
        rows = np.random.default_rng(seed).integers(1, 6, (200, 3)).astype(float)  # answers from 1 to 5
        labels = fitted(4).fit(rows).labels_
        for same in (rows + 0.1, 0.1 * rows, 3 * rows - 7):
            assert adjusted_rand_score(labels, fitted(4).fit(same).labels_) > 0.999


def test_the_last_digits_of_the_unit_change_neither_bad_cells_nor_clusters():
    rows = np.random.default_rng(11).standard_cauchy((200, 3))
    first, second = (TKMeans(4).fit(rows * factor) for factor in (1, 1 + 1e-12))
    np.testing.assert_array_equal(first.find_bad_cells(rows), second.find_bad_cells(rows * (1 + 1e-12)))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.dof_ == pytest.approx(second.dof_, rel=1e-6)


def test_one_stray_beyond_all_squares_makes_no_missed_cluster_of_the_others():
    X, _ = make_contaminated(400, 4, 3, random_state=1)
    model = TKMeans(4).fit(X)
    found = model.outliers(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.outliers(np.vstack([X, [[1e200] * 3]])), [*found, True])


# ---- descriptions and pictures ----------------------------------------------------------------


def four_clusters():
    X, _ = make_contaminated(400, 4, 3, random_state=1)
    return X, TKMeans(4).fit(X)


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


def test_a_picture_takes_as_long_as_it_has_clusters_whatever_their_numbers_are():
    X, _ = four_clusters()
    display = ClustersDisplay.from_predictions(X, np.where(X[:, 0] > 0, 0, 10**9))
    assert len(display.points_) == 2
    assert sum(len(points.get_offsets()) for points in display.points_) == len(X)


def test_names_of_columns_in_a_picture_are_no_formulas():
    X, model = four_clusters()
    names = ["cost ($) per unit ($)", "$x_{$", "c"]
    display = ClustersDisplay.from_estimator(model, X, features=[0, 1], feature_names=names)
    assert display.ax_.get_xlabel() == names[0]
    display.figure_.savefig(io.BytesIO())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"centers": [[0, 0, 0]]}, "got 1 centres and the label 3"),
        ({"max_rows": -1}, "max_rows"),
        ({"max_rows": 0}, "max_rows"),
        ({"max_rows": 2.5}, "max_rows"),
        ({"labels": ["a"] * 420}, "labels must be a whole number"),
        ({"labels": [1, 2]}, "labels must be a whole number"),
    ],
)
def test_a_picture_names_what_is_wrong_with_its_arguments(options, words):
    X, model = four_clusters()
    with pytest.raises((ValueError, TypeError), match=words):
        ClustersDisplay.from_predictions(X, **({"labels": model.labels_} | options))


# ---- fits that ran out of time ----------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*searches found other")
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (partial(StudentTMixture, 5, random_state=0, tol=1e-9), (3000, 15, 4)),
        (partial(TKMeans, 60, random_state=0), (6000, 30, 8)),
        (partial(TKMeans, 20, random_state=0, cluster_weights="equal"), (5000, 10, 4)),
    ],
)
def test_a_fit_whose_search_was_cut_short_resumes_to_the_result_of_an_uninterrupted_one(make, shape, tmp_path):
    X, _ = make_contaminated(*shape, random_state=1, cluster_std=0.3)
    file = tmp_path / "checkpoint.npz"
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.005 seconds ended the search for a start"):
        make(max_time=0.005, checkpoint=file).fit(X)
    resumed, whole = make().fit(X, resume=file), make().fit(X)
    assert resumed.lower_bounds_ == whole.lower_bounds_
    np.testing.assert_array_equal(resumed.labels_, whole.labels_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*searches found other")
def test_a_fit_that_is_resumed_with_little_time_searches_as_it_did_before(tmp_path):
    X, _ = make_contaminated(6000, 30, 8, random_state=1, cluster_std=0.3)
    file = tmp_path / "checkpoint.npz"
    make = partial(TKMeans, 60, random_state=0, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        make(max_iter=2, checkpoint=file).fit(X)
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.001 seconds \(3 iterations\)"):
        make(max_time=1e-3, checkpoint=file).fit(X, resume=file)
    assert make(max_iter=8).fit(X, resume=file).lower_bounds_ == make(max_iter=8).fit(X).lower_bounds_


# ---- few rows, centres without rows, and arguments of other kinds -----------------------------


def test_the_default_numbers_of_clusters_end_at_the_number_of_rows():
    X, _ = four_clusters()
    found = select_clusters(X[:10])
    assert found.n_clusters.max() <= 10
    assert found.best == TKMeans("auto").fit(X[:10]).n_clusters_
    with pytest.raises(ValueError, match="n_clusters=20"):
        select_clusters(X[:10], range(1, 21, 19))


def test_centres_at_the_same_place_are_told():
    X, _ = four_clusters()
    with pytest.warns(ConvergenceWarning, match="centres are at the same place"):
        TKMeans(2, init=[[1e30, 0, 0], [-1e30, 0, 0]]).fit(X)


@pytest.mark.parametrize("baseline", [KMedians, KMedoids])
def test_baselines_tell_of_clusters_without_rows(baseline):
    with pytest.warns(ConvergenceWarning, match="2 of 3 clusters hold hardly any or none of the 20 rows"):
        baseline(3, random_state=0).fit(np.ones((20, 2)))


def test_a_report_refuses_a_file_that_was_not_loaded(tmp_path):
    X, model = four_clusters()
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c", comments="")
    with pytest.raises(TypeError, match="load it first"):
        write_report(tmp_path / "report.html", model, DataFile(tmp_path / "rows.csv"))


@pytest.mark.parametrize("keep", [True, False])
def test_first_centres_that_are_no_numbers_are_refused_by_name_also_beside_a_checkpoint(tmp_path, keep):
    rows = np.random.default_rng(0).normal(size=(20, 1))
    checkpoint = tmp_path / "state.npz" if keep else None
    words, lists = np.array([["a"]]), [[1.0], [2.0, 3.0]]
    for given in (words, lists):
        with pytest.raises((TypeError, ValueError), match="means_init"):
            StudentTMixture(1, means_init=given, checkpoint=checkpoint).fit(rows)
        with pytest.raises((TypeError, ValueError), match="init"):
            TKMeans(1, init=given, checkpoint=checkpoint).fit(rows)
