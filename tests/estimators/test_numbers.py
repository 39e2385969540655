"""From what people pass to numbers: nothing is cast in silence, and numbers as large as they come do no harm."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from support.model_inputs import plain_frame, t_mixture

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.engines import native, reference
from tkmeans.models import Student
from tkmeans.sources.base import nearest_to_zero
from tkmeans.stats import Block, Params

X, _, CENTERS = t_mixture(n=120, n_clusters=2, n_features=2, dof=4.0, scale=0.05, seed=2)
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
HOLES[np.all(np.isnan(HOLES), axis=1)] = 0.0
ALL = [TKMeans(2), FastTKMeans(2), MiniBatchTKMeans(2), StudentTMixture(2), KMedians(2), KMedoids(2)]


def every(estimators=ALL):
    return pytest.mark.parametrize("estimator", estimators, ids=lambda e: type(e).__name__)


# ---- what is no number --------------------------------------------------------------------


@every()
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (X.astype(str), "X holds text such as"),
        (X.astype(object).astype("S"), "X holds text such as"),
        (np.array([["1", 2.0]] * 9, dtype=object), "X holds text such as '1'"),
        (np.array([[pd.NA, 2.0]] * 9, dtype=object), "X holds values such as <NA> .*; put NaN in its place"),
        ([["1", "2"]] * 9, "X holds text such as '1'"),
        (np.arange(20).reshape(10, 2).astype("M8[D]"), "X holds dates such as '1970-01-01'"),
        (np.arange(20).reshape(10, 2).astype("m8[s]"), "X holds durations"),
        (np.zeros(9, [("a", float), ("b", float)]), "X holds records"),
        (pd.DataFrame({"a": ["1", "2"] * 5, "b": 1.0}), "X in column 'a' holds text such as '1'"),
        (pl.DataFrame({"a": ["1", "2"] * 5, "b": [1.0] * 10}), "X in column 'a' holds text such as '1'"),
    ],
    ids=lambda value: str(value)[:24].replace("\n", " ") if isinstance(value, str) else type(value).__name__,
)
def test_text_dates_durations_and_records_are_refused_as_rows(estimator, rows, message):
    with pytest.raises(TypeError, match=message):
        estimator.fit(rows)


@every()
def test_rows_of_different_lengths_are_refused(estimator):
    with pytest.raises(ValueError, match="X must be a table with rows of equal length"):
        estimator.fit([[1.0, 2.0], [3.0]])


@every(ALL[4:])
def test_estimators_that_read_no_files_refuse_a_path(estimator):
    with pytest.raises(TypeError, match=r"X must be a table of numbers, got 'rows.csv'; .* load it first"):
        estimator.fit("rows.csv")


@every(ALL[:3])
def test_masked_values_are_missing_values(estimator):
    masked = np.ma.masked_array(np.nan_to_num(HOLES, nan=1e9), mask=np.isnan(HOLES))
    estimator.set_params(random_state=0)
    expected = estimator.fit(HOLES).cluster_centers_
    np.testing.assert_array_equal(estimator.fit(masked).cluster_centers_, expected)
    np.testing.assert_array_equal(estimator.predict(masked), estimator.predict(HOLES))


@every(ALL[4:])
def test_estimators_that_refuse_missing_values_refuse_masked_ones(estimator):
    with pytest.raises(ValueError, match="X contains NaN"):
        estimator.fit(np.ma.masked_array(X, mask=np.isnan(HOLES)))


def test_masked_integers_are_missing_values():
    whole = np.ma.masked_array(np.round(10 * X).astype(int), mask=np.isnan(HOLES))
    expected = TKMeans(2, random_state=0).fit(whole.astype(float).filled(np.nan)).cluster_centers_
    np.testing.assert_array_equal(TKMeans(2, random_state=0).fit(whole).cluster_centers_, expected)


@pytest.mark.parametrize("order", "<>")
def test_float32_rows_of_either_byte_order_give_float32_centres(order):
    model = TKMeans(2, random_state=0).fit(X.astype(f"{order}f4"))
    assert model.cluster_centers_.dtype == np.float32
    np.testing.assert_array_equal(model.labels_, TKMeans(2, random_state=0).fit(X.astype("f4")).labels_)


@every()
@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.full(len(X), "1"), "sample_weight holds text"),
        (np.ones(len(X)) + 1j, "sample_weight holds complex numbers"),
        ({0: 1.0}, "sample_weight must be an array of numbers"),
        ("balanced", "sample_weight must be"),
    ],
    ids=["text", "complex", "dictionary", "word"],
)
def test_sample_weights_that_are_not_numbers_are_refused(estimator, weight, message):
    with pytest.raises(TypeError, match=message):
        estimator.fit(X, sample_weight=weight)


@pytest.mark.parametrize(("dtype", "weight"), [("f8", 1e51), ("f8", 1e-51), ("f4", 1e11), ("f4", 1e-21)])
def test_sample_weights_out_of_range_are_refused_with_the_range(dtype, weight):
    with pytest.raises(ValueError, match=r"sample_weight must be 0 or between .*, got weights from .* to .*; divide"):
        TKMeans(2).fit(X.astype(dtype), sample_weight=np.r_[weight, np.ones(len(X) - 1)])


def test_masked_sample_weights_are_refused():
    with pytest.raises(ValueError, match="sample_weight must be finite"):
        TKMeans(2).fit(X, sample_weight=np.ma.masked_array(np.ones(len(X)), mask=np.arange(len(X)) == 3))


@pytest.mark.parametrize(
    ("n_jobs", "error"), [(0, ValueError), ("two", TypeError), (1.5, TypeError), (True, TypeError)]
)
def test_an_invalid_number_of_threads_is_refused(n_jobs, error):
    with pytest.raises(error, match="n_jobs must be"):
        TKMeans(2, n_jobs=n_jobs).fit(X)


@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans])
def test_a_dof_below_the_least_one_is_refused(Estimator):
    with pytest.raises(ValueError, match="dof must be at least 1e-06, got 1e-300"):
        Estimator(2, dof=1e-300).fit(X)


@pytest.mark.parametrize("init", [np.array("k-means++"), [["a", "b"]] * 2])
def test_a_start_of_text_is_refused(init):
    with pytest.raises(TypeError, match="init holds text"):
        TKMeans(2, init=init).fit(X)


# ---- numbers as large as they come ----------------------------------------------------------


def test_rows_at_1e308_of_both_signs_cause_no_warning_and_move_no_centre():
    rows = np.vstack([X, [[1e308, 1e308], [-1e308, -1e308], [1e308, -1e308], [-1e308, 1e308]]])
    model = TKMeans(2, init=CENTERS).fit(rows)  # warnings are errors here
    np.testing.assert_allclose(model.cluster_centers_, TKMeans(2, init=CENTERS).fit(X).cluster_centers_, atol=0.05)


@pytest.mark.parametrize("far", [1e18, -1e18, 1e90, -1e90])
def test_a_centre_on_a_far_row_costs_the_distances_to_the_others_no_digits(far):
    """Rows used to be measured from midway between the two centres, where nothing is left of their digits."""
    rows = np.vstack([X[:60] - X[:60].mean(axis=0), [[far, far]]])
    start = np.vstack([[[0.0, 0.0]], rows[-1:]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TKMeans(2, init=start).fit(rows)
    near = model.cluster_centers_[0]
    np.testing.assert_allclose(model.transform(rows[:60])[:, 0], np.linalg.norm(rows[:60] - near, axis=1), rtol=1e-9)
    assert list(model.predict([[0.1, 0.1], [far, far]])) == [0, 1]


def test_the_origin_of_the_frame_does_not_depend_on_the_order_of_the_centres():
    centers = np.array([[3.0, -2.0], [-3.0, 2.0], [1e300, -5.0]])
    expected = [-3.0, -2.0]
    for order in ([0, 1, 2], [2, 1, 0], [1, 0, 2]):
        np.testing.assert_array_equal(nearest_to_zero(centers[order]), expected)


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans])
def test_distances_of_rows_beyond_the_horizon_are_euclidean(Estimator, dtype):
    model = Estimator(2, init=CENTERS).fit(X.astype(dtype))
    largest = float(np.finfo(dtype).max)
    rows = np.array([[largest / 8, 0], [-largest / 8, largest / 8], [np.nan, largest / 4], [1, 2]], dtype)
    small = np.nan_to_num(rows[:3].astype(float) / largest)
    expected = np.linalg.norm(small, axis=1) * largest  # the centres are as good as 0
    np.testing.assert_allclose(model.transform(rows)[:3], np.column_stack([expected] * 2), rtol=1e-6)
    np.testing.assert_allclose(model.transform(rows)[3:], cdist(rows[3:], model.cluster_centers_), rtol=1e-5)
    assert np.all(model.transform(np.full((1, 2), largest, dtype)) == largest)  # the root of 2 more is no number


def test_float32_rows_can_be_predicted_by_a_model_whose_centres_float32_cannot_hold():
    model = TKMeans(2, init=CENTERS * 1e-90).fit(X * 1e-90)
    rows = np.array([[0, 0], [1, 1]], np.float32)
    assert np.all(np.isfinite(model.predict_proba(rows)))
    np.testing.assert_allclose(model.transform(rows)[1], np.sqrt(2), rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-33, 1e33])
def test_float32_rows_beyond_their_own_range_are_refused(unit):
    with pytest.raises(ValueError, match="float32 unless it is between 1e-30 and 1e\\+30; rescale X"):
        TKMeans(2).fit((X * unit).astype("f4"))


def test_outliers_at_1e300_are_flagged_without_overflow():
    rows = np.vstack([X, np.full((12, 2), 1e300)])
    with pytest.warns(UserWarning, match="of the outliers lie together"):
        TKMeans(2, init=CENTERS).fit(X).outliers(rows)


def test_a_start_on_a_row_that_is_alone_in_its_cluster_has_a_finite_likelihood():
    """Its distance from the others of its cluster is infinite: there are none."""
    rows = np.array([[4, 4, 4, 4, 3, 4], [0, 0, 0, 0, 0, 0], [0, 0, 2, 0, 0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = TKMeans(1, dof=1.0, random_state=8936).fit(rows)
    assert np.all(np.isfinite(model.lower_bounds_))


@every(ALL[4:])
def test_baselines_refuse_values_whose_squares_overflow(estimator):
    with pytest.raises(ValueError, match=r"X holds values as large as 1e\+200"):
        estimator.fit(np.vstack([X, [[1e200, 0]]]))


def test_kmedoids_with_the_cosine_metric_refuses_a_row_of_zeros():
    with pytest.raises(ValueError, match=r'X holds nothing but zeros in row 120, .* metric="cosine"'):
        KMedoids(2, metric="cosine").fit(np.vstack([X, [[0, 0]]]))


def test_labels_of_kmedoids_with_the_cosine_metric_do_not_depend_on_the_lengths_of_the_rows():
    lengths = 10.0 ** np.random.default_rng(0).uniform(-100, 10, (len(X), 1))
    expected = KMedoids(2, metric="cosine", random_state=0).fit(X).predict(X)
    np.testing.assert_array_equal(KMedoids(2, metric="cosine", init=X[:2]).fit(X).predict(X * lengths), expected)


@pytest.mark.parametrize("engine", [native, reference], ids=lambda engine: engine.NAME)
@pytest.mark.parametrize("distance", np.linspace(30.0, 45.0, 16))
def test_the_centre_of_a_feature_that_no_row_of_its_cluster_has_stays_between_the_centres(engine, distance):
    """What the rows of another cluster say of it, with weights of 1e-40, has no digits left in single precision."""
    rows = np.array([[np.nan, 0.0], [-5.91, distance]], np.float32)
    params = Params(np.array([[-5.0, 0.0], [-5.91, distance]]), 1e-3, 13.0, np.log([0.5, 0.5]))
    stats = engine.summarize(Block(rows, None, plain_frame(2, np.float32)), params, Student().kernel(params))
    moved = Student().m_step(stats, params).centers[0, 0]
    assert -5.91 - 1e-5 <= moved <= -5.0 + 1e-5


# ---- types and extremes of results ---------------------------------------------------------------

PLANE, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


@pytest.mark.parametrize("integer", [np.int8, np.uint16, np.uint64])
@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture])
def test_the_type_of_the_number_of_clusters_changes_no_digit_of_a_fit(Estimator, integer):
    ours, theirs = (Estimator(K, random_state=0).fit(PLANE) for K in (integer(3), 3))
    for name, value in vars(theirs).items():
        if isinstance(value, np.ndarray):
            assert getattr(ours, name).dtype == value.dtype, name
            np.testing.assert_array_equal(getattr(ours, name), value)


@pytest.mark.parametrize("model", [TKMeans(2), MiniBatchTKMeans(2, dof=4.0, init="uniform", random_state=0)])
def test_centres_at_the_largest_numbers_are_compared_without_a_warning_of_numpy(model):
    most = np.finfo(float).max
    rows = np.array([[0.0, -most, most, 0.0], [1.0, -most, -most, 0.0]])
    with warnings.catch_warnings(action="error", category=RuntimeWarning):
        warnings.simplefilter("ignore", UserWarning)
        labels = model.fit(rows).labels_
    assert set(labels) == {0, 1}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # the scale collapses
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_drawn_with_very_heavy_tails_are_finite(dtype):
    X = np.random.default_rng(0).normal(size=(60, 2)).astype(dtype)
    for model in (TKMeans(2, dof=1e-6), StudentTMixture(2, dof=0.01, noise=False)):
        assert np.all(np.isfinite(model.fit(X).sample(1000)[0]))
