"""Parameters, starts and awkward data: a right answer or a clear sentence, never NaN."""

import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from support.model_inputs import four_clusters, t_mixture

import tkmeans
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans, trimming_curves
from tkmeans.baselines import KMedoids

X, LABELS, CENTERS = t_mixture(n=300, n_clusters=4, n_features=3, dof=4.0, scale=0.05)
BOTH = [TKMeans, FastTKMeans]


# ---- starts ------------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
@pytest.mark.parametrize("init", ["robust", "k-means++", "random", "uniform"])
def test_a_fit_from_every_named_start_converges(Estimator, init):
    model = Estimator(4, init=init, random_state=0).fit(X)
    assert len(np.unique(model.labels_)) == 4
    assert model.converged_


@pytest.mark.parametrize("Estimator", BOTH)
def test_init_accepts_an_array_a_list_and_a_callable(Estimator):
    def start(rows, n_clusters, random_state):
        assert rows.shape == X.shape
        assert isinstance(random_state, np.random.RandomState)
        return CENTERS[:n_clusters]

    by_array = Estimator(4, init=CENTERS).fit(X)
    by_list = Estimator(4, init=CENTERS.tolist()).fit(X)
    by_callable = Estimator(4, init=start, n_init=1).fit(X)
    np.testing.assert_array_equal(by_array.cluster_centers_, by_callable.cluster_centers_)
    np.testing.assert_array_equal(by_array.cluster_centers_, by_list.cluster_centers_)
    assert np.abs(by_array.cluster_centers_ - CENTERS[np.lexsort(CENTERS.T)][0]).min() < 1


def test_of_several_starts_the_most_likely_is_kept():
    def bound(**options):
        return TKMeans(4, init="random", cluster_weights="equal", random_state=3, **options).fit(X).lower_bound_

    assert bound(n_init=20) >= bound(n_init=1)
    starts = [X[i : i + 4] for i in range(0, 40, 4)]
    single = [TKMeans(4, init=start, cluster_weights="equal").fit(X).lower_bound_ for start in starts]
    queue = iter(starts)
    together = TKMeans(4, init=lambda *_, random_state: next(queue), n_init=10, cluster_weights="equal").fit(X)
    assert together.lower_bound_ == pytest.approx(max(single), rel=1e-12)
    assert max(single) > min(single) + 1e-3


# ---- what is refused -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dof": -1.0}, ValueError, "dof must be a positive number .*got -1.0"),
        ({"dof": "guess"}, ValueError, "dof must be one of 'estimate' or a positive number .*got 'guess'"),
        ({"dof": None}, TypeError, "dof must be"),
        ({"dof": np.nan}, ValueError, "dof must be"),
        ({"n_clusters": 0}, ValueError, 'n_clusters must be an integer of at least 1 or "auto", got 0'),
        ({"n_clusters": 2.5}, TypeError, "n_clusters must be an integer"),
        ({"n_clusters": True}, TypeError, "n_clusters must be an integer"),
        ({"n_clusters": 301}, ValueError, "n_samples=300 should be >= n_clusters=301; choose at most 300"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"tol": -1e-3}, ValueError, "tol must be a number of at least 0, got -0.001"),
        ({"n_init": 0}, ValueError, "n_init"),
        ({"init": "kmeans"}, ValueError, "init must be one of .*'k-means\\+\\+'.* or a callable, got 'kmeans'"),
        ({"init": np.zeros((3, 3))}, ValueError, r"init must have shape \(4, 3\)"),
        ({"init": np.full((4, 3), np.nan)}, ValueError, "init contains NaN"),
        ({"cluster_weights": "equals"}, ValueError, "cluster_weights must be one of 'auto', 'equal', 'estimate'"),
        ({"engine": "gpu"}, ValueError, "engine must be one of"),
    ],
)
def test_an_invalid_parameter_is_an_error_with_its_name_and_value(options, error, message):
    with pytest.raises(error, match=message):
        TKMeans(**{"n_clusters": 4, **options}).fit(X)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.ones(5), r"sample_weight must have shape \(300,\), one weight per row, got \(5,\)"),
        (np.full(300, -1.0), "must not be negative, got -1.0; a weight of 0 ignores a row"),
        (np.full(300, np.inf), "must be finite"),
        (np.zeros(300), "positive for at least one row"),
        (np.r_[np.ones(3), np.zeros(297)], "3 rows of positive sample_weight should be >= n_clusters=4"),
    ],
)
def test_invalid_sample_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=message):
        TKMeans(4).fit(X, sample_weight=weight)


def test_a_single_number_as_sample_weight_is_the_weight_of_every_row():
    a, b = TKMeans(4, init=CENTERS).fit(X, sample_weight=3), TKMeans(4, init=CENTERS).fit(X)
    np.testing.assert_allclose(a.cluster_centers_, b.cluster_centers_, atol=1e-9)


# ---- awkward data ----------------------------------------------------------------------


def assert_sound(model, rows):
    for name in ("cluster_centers_", "scale_", "dof_", "cluster_weights_", "lower_bounds_", "inertia_"):
        assert np.all(np.isfinite(getattr(model, name))), name
    assert model.scale_ > 0
    tau = model.predict_proba(rows)
    np.testing.assert_allclose(tau.sum(axis=1), 1, rtol=1e-5)
    assert np.all(np.isfinite(model.transform(rows)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("Estimator", BOTH)
class TestAwkwardData:
    def test_a_constant_column_leaves_the_fit_sound(self, Estimator, dtype):
        rows = np.column_stack([X, np.full(len(X), 7.0)]).astype(dtype)
        model = Estimator(4, random_state=0).fit(rows)
        assert_sound(model, rows)
        np.testing.assert_allclose(model.cluster_centers_[:, 3], 7, rtol=1e-6)

    def test_as_many_clusters_as_distinct_rows_put_a_centre_on_each_row(self, Estimator, dtype):
        distinct = np.array([[0, 0], [5, 0], [0, 5], [9, 9]], dtype)
        rows = distinct.repeat([4, 3, 2, 1], axis=0)
        model = Estimator(4, random_state=0).fit(rows)
        assert_sound(model, rows)
        np.testing.assert_allclose(model.cluster_centers_, distinct, atol=1e-4)
        assert model.inertia_ < 1e-6

    @pytest.mark.filterwarnings("ignore:.*hold hardly any or none")
    def test_fewer_distinct_rows_than_clusters_are_warned_about(self, Estimator, dtype):
        rows = np.array([[0, 0], [5, 5]], dtype).repeat(10, axis=0)
        with pytest.warns(ConvergenceWarning, match=r"distinct clusters \(2\) found smaller than n_clusters \(3\)"):
            model = Estimator(3, random_state=0).fit(rows)
        assert_sound(model, rows)
        assert len(np.unique(model.labels_)) == 2

    def test_equal_rows_form_one_cluster_with_its_centre_on_them(self, Estimator, dtype):
        for value in (0.0, 3.0, 1e-30, 1e30):
            rows = np.full((10, 2), value, dtype)
            model = Estimator(1).fit(rows)
            assert_sound(model, rows)
            np.testing.assert_allclose(model.cluster_centers_, rows[:1], rtol=1e-6)

    def test_a_single_row_is_its_own_cluster(self, Estimator, dtype):
        rows = np.array([[1.5, -2.0]], dtype)
        model = Estimator(1).fit(rows)
        assert_sound(model, rows)
        np.testing.assert_array_equal(model.cluster_centers_, rows)

    def test_with_as_many_clusters_as_rows_every_row_is_a_cluster(self, Estimator, dtype):
        rows = X[:6].astype(dtype)
        model = Estimator(6, random_state=0).fit(rows)
        assert_sound(model, rows)
        assert sorted(model.labels_) == list(range(6))

    def test_a_row_at_the_end_of_the_range_of_floats_moves_no_centre_of_tkmeans(self, Estimator, dtype):
        rows = np.vstack([X, [[np.finfo(dtype).max / 4] * 3]]).astype(dtype)
        with warnings.catch_warnings():
            if Estimator is FastTKMeans:  # the fast variant lets far rows pull, as published
                warnings.simplefilter("ignore", ConvergenceWarning)
            model = Estimator(4, init=CENTERS).fit(rows)
        assert np.all(np.isfinite(model.cluster_centers_))
        if Estimator is TKMeans:
            clean = Estimator(4, init=CENTERS).fit(X.astype(dtype))
            np.testing.assert_allclose(model.cluster_centers_, clean.cluster_centers_, atol=0.05)
            assert model.outlier_pvalues_[-1] < 1e-9


def test_the_fitted_scale_has_the_documented_floor():
    rows = np.array([[0.0], [1.0], [2.0]])  # the median distance from the median is 1; no row is there twice
    assert TKMeans(3, random_state=0).fit(rows).scale_ == pytest.approx(1e-20)
    assert TKMeans(3, random_state=0).fit(rows.astype("f4")).scale_ == pytest.approx(1e-10)
    assert TKMeans(3, random_state=0).fit(rows * 1e6).scale_ == pytest.approx(1e-8)


# ---- what it says on the way --------------------------------------------------------------


@pytest.mark.parametrize("Estimator", BOTH)
def test_a_fit_cut_short_by_max_iter_warns_to_raise_it(Estimator):
    with pytest.warns(ConvergenceWarning, match="did not converge in max_iter=1 iterations; raise max_iter"):
        model = Estimator(4, max_iter=1, tol=0, init=X[:4]).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 1


def test_verbose_prints_the_log_likelihood_of_every_iteration_of_tkmeans(capsys):
    model = TKMeans(4, verbose=1, cluster_weights="equal", random_state=0).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[0].startswith("[TKMeans] iteration 1: log-likelihood per row")


def test_importing_the_package_imports_no_optional_library():
    heavy = ["dask", "torch", "matplotlib", "pyarrow", "pandas", "polars", "typer", "rich"]
    code = f"import sys, tkmeans; print([m for m in {heavy} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_package_lists_its_public_names_and_has_no_others():
    import tkmeans

    assert set(tkmeans.__all__) <= set(dir(tkmeans))
    with pytest.raises(AttributeError, match="no attribute 'KMeans'"):
        tkmeans.KMeans  # noqa: B018


def test_a_centre_on_a_single_far_row_is_warned_about():
    rows = np.vstack([X, [[1e4, 1e4, 1e4]]])
    start = np.vstack([CENTERS, rows[-1:]])
    with pytest.warns(ConvergenceWarning, match=r"1 of 5 clusters hold hardly any or none of the 301 rows: 4 \(1\)"):
        TKMeans(5, init=start).fit(rows)


def test_a_cluster_twenty_times_smaller_than_another_is_not_warned_about():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(0, 1, (2000, 2)), rng.normal(50, 1, (100, 2))])
    assert list(np.bincount(TKMeans(2, random_state=0).fit(rows).labels_)) == [2000, 100]


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_tkmeans_refuses_rows_whose_squares_overflow_and_says_to_rescale(unit):
    with pytest.raises(ValueError, match=r"the spread of X is .* unless it is between 1e-120 and 1e\+50; rescale X"):
        TKMeans(4).fit(X * unit)


def test_a_likelihood_without_a_maximum_is_warned_about():
    X = np.random.default_rng(0).standard_normal((30, 40))
    with pytest.warns(ConvergenceWarning, match="The scale collapsed to .* or a larger dof such as 30"):
        TKMeans(10, dof=0.5, init=X[:10]).fit(X)


def test_a_subclass_without_keyword_only_parameters_checks_its_parameters():
    class Plain(TKMeans):
        def __init__(self, n_clusters=2):
            super().__init__(n_clusters)

    assert Plain().fit([[0.0], [1.0], [9.0]]).labels_.shape == (3,)
    with pytest.raises(ValueError, match='n_clusters must be an integer of at least 1 or "auto", got 0'):
        Plain(0).fit([[0.0], [1.0], [9.0]])


PLANE, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


# ---- columns and rows that are refused by name ---------------------------------------------------

SPACE, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)


def test_two_columns_of_one_name_are_named_wherever_a_frame_is_taken(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame, model = pandas.DataFrame(PLANE, columns=["a", "a"]), TKMeans(3).fit(PLANE)
    said = "X has several columns with the name 'a'; rename or drop one of them"
    for call in [
        lambda: TKMeans(3).fit(frame),
        lambda: tkmeans.describe(model, frame),
        lambda: tkmeans.select_clusters(frame),
        lambda: tkmeans.write_report(tmp_path / "report.html", model, frame),
    ]:
        with pytest.raises(ValueError, match=said):
            call()


def test_an_arrow_table_with_two_columns_of_one_name_is_refused_by_name():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table([pyarrow.array(PLANE[:, 0]), pyarrow.array(PLANE[:, 1])], names=["a", "a"])
    with pytest.raises(ValueError, match="X has several columns with the name 'a'"):
        TKMeans(3).fit(table)


def test_a_column_may_be_called_filename():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(SPACE, columns=["filename", "base", "c"])
    np.testing.assert_array_equal(TKMeans(3).fit(frame).predict(frame), TKMeans(3).fit(SPACE).labels_)


@pytest.mark.parametrize("kind", ["dates", "periods", "missing"])
def test_a_column_of_other_values_than_numbers_is_named(kind):
    pandas = pytest.importorskip("pandas")
    when = pandas.date_range("2026-01-01", periods=len(PLANE), tz="UTC")
    column = {"dates": when, "periods": when.tz_localize(None).to_period("D"), "missing": [pandas.NA, *PLANE[1:, 0]]}[
        kind
    ]
    with pytest.raises(TypeError, match=r"X in column 'when' holds .*(convert it to numbers|put NaN in its place)"):
        TKMeans(3).fit(pandas.DataFrame({"a": PLANE[:, 0], "when": pandas.Series(column, dtype=object)}))


def test_a_whole_number_beyond_all_floats_is_refused_with_its_size():
    with pytest.raises(TypeError, match="X holds values such as one of 16610 bits"):
        TKMeans(1).fit(np.array([[10**5000], [1]], dtype=object))


@pytest.mark.parametrize("Estimator", [TKMeans, StudentTMixture, MiniBatchTKMeans])
def test_rows_whose_spread_is_beyond_all_numbers_are_refused_and_not_one_cluster(Estimator):
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 1.0], size=(40, 2)) * rng.uniform(1.5e308, 1.79e308, size=(40, 2))
    with pytest.raises(ValueError, match=r"the spread of X is inf.*rescale X first"):
        Estimator(2).fit(rows)


# ---- weights and first centres that are refused by name ------------------------------------------


def test_weights_that_have_no_sum_are_refused_without_a_warning():
    with pytest.raises(ValueError, match="sample_weight must be 0 or between"):
        TKMeans(3).fit(PLANE, sample_weight=np.full(len(PLANE), 1e308))


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


def test_centres_at_the_same_place_are_told():
    X, _ = four_clusters()
    with pytest.warns(ConvergenceWarning, match="centres are at the same place"):
        TKMeans(2, init=[[1e30, 0, 0], [-1e30, 0, 0]]).fit(X)


def test_what_a_campaign_of_hostile_calls_has_met_ends_in_our_words_or_in_an_answer():
    X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0], [9]], 30, axis=0)
    with pytest.raises(ValueError, match="weights_init must be finite real numbers"):
        StudentTMixture(2, weights_init=np.array([0.5 + 1j, 0.5])).fit(X)
    assert [*trimming_curves(X, np.array([1, 2], dtype=np.int8), levels=[0.0])] == ["1 cluster", "2 clusters"]
    with warnings.catch_warnings(action="error"):
        model = KMedoids(2, max_iter=np.int8(127)).fit(X)
    assert len(set(model.labels_)) == 2
