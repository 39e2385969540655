"""Stability: clusters that are in the data come back from resamples, others do not."""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from support.model_inputs import t_mixture

import tkmeans
from tkmeans import Stability, StudentTMixture, TKMeans, stability
from tkmeans.cluster_stability import best_jaccard
from tkmeans.datasets import make_contaminated

CENTERS = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])


def three_clusters(n=300, seed=0):
    y = np.arange(n) % 3
    return CENTERS[y] + np.random.default_rng(seed).standard_normal((n, 2)), y


X, Y = three_clusters()


# ---- the similarity -------------------------------------------------------------------------


def jaccard_by_sets(reference, labels, clusters, weight):
    """The long way round, with sets of rows."""
    best = []
    for cluster in clusters:
        ours = set(np.flatnonzero(reference == cluster))
        each = [0.0]
        for other in set(labels.tolist()) - {-1}:
            theirs = set(np.flatnonzero(labels == other))
            if ours & theirs:
                each.append(sum(weight[list(ours & theirs)]) / sum(weight[list(ours | theirs)]))
        best.append(max(each))
    return best


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_best_jaccard_is_the_weight_of_rows_in_both_clusters_over_rows_in_either(weighted, seed):
    rng = np.random.default_rng(seed)
    reference, labels = rng.integers(-1, 5, 200), rng.integers(-1, 4, 200)
    weight = rng.uniform(0.1, 3, 200) if weighted else np.ones(200)
    clusters = np.arange(7)  # of which 5 and 6 have no rows
    expected = jaccard_by_sets(reference, labels, clusters, weight)
    np.testing.assert_allclose(best_jaccard(reference, labels, clusters, weight), expected, rtol=1e-12)


def test_stability_compares_only_rows_that_were_drawn_and_counts_each_once():
    found = stability(KMeans(2, n_init=1, random_state=0), X[Y < 2], n_resamples=5, random_state=0)
    np.testing.assert_array_equal(found.jaccard, 1)  # a row left out or drawn twice takes nothing away


# ---- what it says of clusters -----------------------------------------------------------------


@pytest.mark.parametrize(
    "estimator",
    [
        TKMeans(3, random_state=0),
        KMeans(3, n_init=3, random_state=0),
        GaussianMixture(3, random_state=0),
        StudentTMixture(3, random_state=0),
        make_pipeline(StandardScaler(), TKMeans(3, random_state=0)),
        HDBSCAN(min_cluster_size=20, min_samples=1, copy=True),
    ],
    ids=["TKMeans", "KMeans", "GaussianMixture", "StudentTMixture", "pipeline", "HDBSCAN"],
)
def test_well_separated_clusters_are_stable_with_every_estimator(estimator):
    found = stability(estimator, X, n_resamples=10, random_state=0)
    assert found.jaccard.shape == (10, 3)
    assert np.all(found.mean > 0.9)
    assert found.rating.tolist() == ["stable"] * 3


@pytest.mark.parametrize("Estimator", [TKMeans, KMeans])
def test_pieces_of_one_cluster_are_unstable(Estimator):
    model = Estimator(4, random_state=0).fit(X)
    origin = np.array([np.bincount(Y[model.labels_ == k]).argmax() for k in range(4)])
    in_two = np.bincount(origin).argmax()  # the true cluster that has two centres
    smaller = np.flatnonzero(origin == in_two)[-1]
    found = stability(model, X, n_resamples=40, random_state=0)
    assert found.rating[smaller] == "unstable"
    assert found.mean[smaller] < found.mean[origin != in_two].min()  # what it was cut off from may be nearly whole
    assert np.all(found.rating[origin != in_two] == "stable")


def test_clusters_of_noise_are_less_stable_than_a_tight_one():
    rng = np.random.default_rng(1)
    rows = np.vstack([X[Y == 0], rng.uniform([20, -20], [60, 20], (150, 2))])
    found = stability(KMeans(6, n_init=1, random_state=0), rows, n_resamples=30, random_state=0)
    tight = np.argmax(found.mean)
    assert found.mean[tight] > 0.9
    assert np.all(np.delete(found.mean, tight) < 0.85)


def test_outliers_make_clusters_of_kmeans_unstable_and_not_those_of_tkmeans():
    rows, _ = make_contaminated(600, 6, outlier_fraction=0.05, random_state=0)
    ours, theirs = (stability(m(6, random_state=0), rows, n_resamples=15, random_state=0) for m in (TKMeans, KMeans))
    assert np.all(ours.rating == "stable")
    assert not np.all(theirs.rating == "stable")


def test_one_cluster_of_all_rows_is_perfectly_stable():
    np.testing.assert_array_equal(stability(TKMeans(1), X, n_resamples=3).jaccard, 1)


def test_the_stability_of_a_cluster_of_one_row_is_the_probability_to_draw_the_row():
    rows = np.vstack([X, [[1e3, 1e3]]])
    found = stability(KMeans(4, n_init=1, random_state=0), rows, n_resamples=30, random_state=0)
    single = np.argmin(found.sizes)
    assert found.sizes[single] == 1
    assert set(found.jaccard[:, single]) == {0.0, 1.0}
    expected = 1 - (1 - 1 / len(rows)) ** len(rows)  # the probability to be drawn at least once
    assert abs(found.mean[single] - expected) < 4 * np.sqrt(expected * (1 - expected) / 30)


# ---- how it is used -----------------------------------------------------------------------------


def test_stability_of_a_fitted_estimator_does_not_change_the_estimator():
    model = TKMeans(3, random_state=0).fit(X)
    centers = model.cluster_centers_.copy()
    found = stability(model, X, n_resamples=5, random_state=0)
    np.testing.assert_array_equal(model.cluster_centers_, centers)
    np.testing.assert_array_equal(found.sizes, np.bincount(model.labels_))
    again = stability(clone(model), X, n_resamples=5, random_state=0)
    np.testing.assert_array_equal(found.jaccard, again.jaccard)


def test_stability_depends_on_the_random_state_and_not_on_the_number_of_jobs():
    rows, _, _ = t_mixture(n=200, spacing=1.0)
    with joblib.parallel_config(backend="threading"):  # quicker to start than processes
        one, two, other = (
            stability(TKMeans(4, random_state=0), rows, n_resamples=4, random_state=seed, n_jobs=jobs)
            for seed, jobs in ((0, 1), (0, 2), (1, 1))
        )
    np.testing.assert_array_equal(one.jaccard, two.jaccard)
    assert np.any(one.jaccard != other.jaccard)


def test_stability_accepts_missing_values_and_data_frames():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    holes[np.isnan(holes).all(axis=1), 0] = 0.0
    table = pd.DataFrame(holes, columns=["a", "b"])
    as_table, as_array = (
        stability(TKMeans(3, random_state=0), rows, n_resamples=5, random_state=0) for rows in (table, holes)
    )
    np.testing.assert_array_equal(as_table.jaccard, as_array.jaccard)
    assert as_table.mean.min() > 0.7


def test_rows_of_weight_zero_do_not_change_stability():
    rows = np.vstack([X, np.full((50, 2), 5.0)])
    weight = np.repeat([2.0, 0.0], [300, 50])
    found = stability(TKMeans(3, random_state=0), rows, sample_weight=weight, n_resamples=5, random_state=0)
    plain = stability(TKMeans(3, random_state=0), X, n_resamples=5, random_state=0)
    np.testing.assert_allclose(found.jaccard, plain.jaccard)
    np.testing.assert_allclose(found.sizes, 2 * plain.sizes)


def test_stability_warns_only_of_what_the_fit_to_all_rows_warns_of():
    rows = np.vstack([X, X[:1] + 500.0])
    filters = list(warnings.filters)
    with pytest.warns(ConvergenceWarning, match="hold hardly any") as caught:  # a cluster of one row
        stability(TKMeans(4, init=np.vstack([CENTERS, X[:1] + 500]), random_state=0), rows, n_resamples=5)
    assert len(caught) == 1
    assert warnings.filters == filters


def test_stability_counts_resamples_for_a_callback_or_on_standard_error(capsys):
    seen = []
    stability(TKMeans(3, random_state=0), X, n_resamples=3, progress=lambda *step: seen.append(step))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    stability(TKMeans(3, random_state=0), X, n_resamples=2, progress=True)
    assert capsys.readouterr().err == "\rstability: 1 of 2\rstability: 2 of 2\n"
    stability(TKMeans(3, random_state=0), X, n_resamples=2)
    assert capsys.readouterr().err == ""


def test_stability_refuses_invalid_arguments():
    with pytest.raises(ValueError, match="n_resamples must be an integer of at least 1, got 0"):
        stability(TKMeans(3), X, n_resamples=0)
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(300,\)"):
        stability(TKMeans(3), X, sample_weight=[1.0])
    with pytest.raises(ValueError, match="HDBSCAN found no cluster in X, so there is none to judge"):
        stability(HDBSCAN(min_cluster_size=300, copy=True), X)
    with pytest.raises(ValueError, match="estimator was fitted to 300 rows and X has 10; give both the same rows"):
        stability(HDBSCAN(min_cluster_size=20, copy=True).fit(X), X[:10])


# ---- what comes back ------------------------------------------------------------------------------


def test_the_grades_of_stability_have_hennigs_thresholds():
    means = [0.59, 0.6, 0.74, 0.75, 1.0]
    found = Stability(np.array([means, means]), np.arange(5), np.full(5, 9.0))
    np.testing.assert_allclose(found.mean, means)
    assert found.rating.tolist() == ["unstable", "doubtful", "doubtful", "stable", "stable"]


def test_a_stability_result_prints_as_a_table():
    found = Stability(np.array([[0.5, 1.0], [0.6, 1.0]]), np.array([0, 3]), np.array([7.0, 12.5]))
    assert repr(found).splitlines() == [
        "Stability of 2 clusters over 2 resamples",
        "cluster      rows   mean  worst  rating",
        "      0         7  0.550  0.500  unstable",
        "      3      12.5  1.000  1.000  stable",
    ]


def test_a_stability_result_plots_a_stability_display():
    plots = pytest.importorskip("tkmeans.plots", reason="needs tkmeans.plots")
    display = stability(TKMeans(3, random_state=0), X, n_resamples=3).plot()
    assert isinstance(display, plots.StabilityDisplay)


# ---- rows, weights and pipelines -----------------------------------------------------------------

SPACE, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)


def test_stability_names_what_is_no_rows_in_memory():
    for X in ("rows.csv", None, 3):
        with pytest.raises(TypeError, match="X must hold rows in memory"):
            tkmeans.stability(TKMeans(2), X)


def test_stability_of_a_pipeline_takes_weights():
    weight = np.random.default_rng(0).integers(0, 3, len(SPACE))
    model = make_pipeline(RobustScaler(), TKMeans(3))
    assert (
        tkmeans.stability(model, SPACE, sample_weight=weight, n_resamples=3, random_state=0).sizes.sum() == weight.sum()
    )
