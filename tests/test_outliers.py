"""The verdict: nobody where there are only clusters, everybody who is far where there are strays."""

import warnings

import numpy as np
import pytest
from scipy import stats
from support.model_inputs import t_mixture
from support.paper_data import benchmark_set

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.datasets import make_contaminated
from tkmeans.fitted import tally
from tkmeans.outliers import (
    _core_quantile,
    _core_slopes,
    _log_core,
    fit_outlier_model,
    stray_probability,
    threshold_over,
    warn_of_clumps,
)

SETS = ["S1", "S2", "S3", "S4", "A1", "A2", "A3", "dim032"]


def with_far_rows(X, seed):
    far = np.random.default_rng(seed).uniform(-10, 10, (len(X) // 20, X.shape[1]))
    return np.vstack([X, far]), np.arange(len(X) + len(far)) >= len(X)


def with_holes(X, fraction, seed=0):
    missing = np.random.default_rng(seed).random(X.shape) < fraction
    missing[missing.all(axis=1), 0] = False  # something is known of every row
    return np.where(missing, np.nan, X)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SETS)
def test_clean_benchmark_sets_have_at_most_one_per_cent_of_outliers(name, seed):
    X, y = benchmark_set(name)
    model = TKMeans(len(np.unique(y)), random_state=seed).fit(X)
    assert model.outliers(X).mean() <= 0.01


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", SETS)
def test_far_rows_are_flagged_as_outliers_and_hardly_any_others(name, seed):
    X, y = benchmark_set(name)
    rows, far = with_far_rows(X, seed)
    found = TKMeans(len(np.unique(y)), random_state=seed).fit(rows).outliers(rows)
    assert found[far].mean() >= 0.97  # recall
    assert far[found].mean() >= 0.98  # precision


@pytest.mark.parametrize("fraction", [0.2, 0.4])
@pytest.mark.parametrize("name", ["S1", "S4", "A1", "dim032"])
def test_missing_values_cause_no_false_outliers_and_hide_no_row_observed_to_be_far(name, fraction):
    X, y = benchmark_set(name)
    holes = with_holes(X, fraction)
    assert TKMeans(len(np.unique(y)), random_state=0).fit(holes).outliers(holes).mean() <= 0.01
    rows, far = with_far_rows(X, 0)
    rows = with_holes(rows, fraction)
    found = TKMeans(len(np.unique(y)), random_state=0).fit(rows).outliers(rows)
    shown = far & (np.nanmax(np.abs(rows), axis=1) > 2)  # what was observed lies outside the clusters' square
    assert found[shown].mean() >= 0.97
    assert far[found].mean() >= 0.98


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "p"), [(150, 2), (300, 4)])
def test_small_tables_with_few_complete_rows_have_no_false_outliers(n, p, seed):
    X, y = make_contaminated(n, 4, p, cluster_std=0.1, random_state=seed)
    holes = with_holes(X, 0.4, seed)
    assert far_share(y, TKMeans(4, random_state=seed).fit(holes).outliers(holes)) >= 0.98
    clean = with_holes(X[y >= 0], 0.4, seed)
    assert not TKMeans(4, random_state=seed).fit(clean).outliers(clean).any()


def far_share(y, found):
    """Precision; perfect if nobody is accused."""
    return np.mean(y[found] == -1) if found.any() else 1.0


def core_and_strays(p, share):
    core = p * 0.3 * stats.f(p, 30.0).rvs(20_000, random_state=0)
    log_strays = np.random.default_rng(0).uniform(np.log(30 * p), np.log(3000 * p), round(share * len(core)))
    return fit_outlier_model(tally(np.concatenate([core, np.exp(log_strays)])).sketch(), p)


@pytest.mark.parametrize("p", [2, 8])
def test_without_outliers_no_row_is_flagged_whichever_values_are_missing(p):
    model = core_and_strays(p, 0.0)
    thresholds = [threshold_over(n_seen, model, p) for n_seen in range(p + 1)]
    assert thresholds[0] == np.inf  # nothing is known of a row with nothing observed
    assert thresholds[p] == model.threshold
    for n_seen in range(1, p + 1):
        assert stats.f(n_seen, 30.0, scale=n_seen * 0.3).sf(thresholds[n_seen]) < 1e-5


@pytest.mark.parametrize("p", [2, 8])
def test_a_row_is_flagged_from_the_distance_at_which_it_is_more_probably_an_outlier(p):
    model = core_and_strays(p, 0.1)
    whole = stats.f(p, model.core_dof, scale=p * model.core_scale)
    for n_seen in range(1, p + 1):
        core = stats.f(n_seen, model.core_dof, scale=n_seen * model.core_scale)
        first = model.begin * core.median() / whole.median()
        r = threshold_over(n_seen, model, p)
        stray, good = model.share / (r * np.log(model.end / model.begin)), (1 - model.share) * core.pdf(r)
        assert stray >= good
        assert stray == pytest.approx(good, rel=0.05) or r == pytest.approx(first)


@pytest.mark.parametrize("level", [0.9, 0.999, 1 - 1e-9])
def test_a_row_is_flagged_from_the_distance_at_which_it_is_an_outlier_with_the_probability_of_the_level(level):
    model = core_and_strays(4, 0.1)._replace(begin=2.0)
    r = threshold_over(3, model, 4, level)
    core, whole = (stats.f(p, model.core_dof, scale=p * model.core_scale) for p in (3, 4))
    nearer = core.median() / whole.median()
    assert model.begin * nearer < r < model.end * nearer
    stray, good = model.share / (r * np.log(model.end / model.begin)), (1 - model.share) * core.pdf(r)
    assert stray / good == pytest.approx(level / (1 - level), rel=1e-6)


@pytest.mark.parametrize("n_seen", [1, 3, 4])
def test_the_probability_of_noise_is_that_of_a_stray_among_strays_and_core(n_seen):
    model = core_and_strays(4, 0.1)
    core = stats.f(n_seen, model.core_dof, scale=n_seen * model.core_scale)
    nearer = core.median() / stats.f(4, model.core_dof, scale=4 * model.core_scale).median()
    r = np.geomspace(0.1 * model.begin * nearer, model.end * nearer, 50)
    stray = np.where(r >= model.begin * nearer, model.share / (r * np.log(model.end / model.begin)), 0)
    exact = stray / (stray + (1 - model.share) * core.pdf(r))
    np.testing.assert_allclose(stray_probability(r, n_seen, model, 4), exact, rtol=1e-9)


@pytest.mark.parametrize("Estimator", [TKMeans, MiniBatchTKMeans])
@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("fraction", [0.0, 0.1])
def test_outliers_are_the_rows_that_are_more_probably_noise_than_not(Estimator, holes, fraction):
    X, _ = make_contaminated(1000, 4, outlier_fraction=fraction, random_state=0)
    rows = with_holes(X, holes)
    model = Estimator(4, random_state=0).fit(rows)
    new = np.vstack([rows, [[np.nan, np.nan]], [[900.0, 900.0]]])  # of which nothing is known, and far beyond all
    noise = model.noise_probability(new)
    assert np.all((noise >= 0) & (noise <= 1))
    np.testing.assert_array_equal(noise > 0.5, model.outliers(new))
    assert noise[-2] == 0
    assert noise[-1] > 0.99


def test_hard_clusterers_and_fast_ones_have_no_probability_of_noise():
    assert not any(hasattr(model, "noise_probability") for model in (FastTKMeans(), KMedians(), KMedoids()))


@pytest.mark.parametrize(("p", "dof"), [(1, 3.0), (2, 1.0), (8, 30.0), (2, 500.0)])
def test_rows_from_one_t_distribution_have_no_outliers(p, dof):
    d2 = p * 0.3 * stats.f(p, dof).rvs(5000, random_state=0)
    model = fit_outlier_model(tally(d2).sketch(), p)
    assert model.share == 0
    assert not np.any(d2 > model.threshold)
    assert model.threshold == pytest.approx(4 * d2.max())


def test_the_outlier_model_recovers_the_core_and_the_share_of_outliers():
    rng = np.random.default_rng(0)
    core = 2 * 0.3 * stats.f(2, 8.0).rvs(9000, random_state=0)
    strays = np.exp(rng.uniform(np.log(50), np.log(5000), 1000))
    model = fit_outlier_model(tally(np.concatenate([core, strays])).sketch(), 2)
    assert model.core_scale == pytest.approx(0.3, rel=0.1)
    assert model.core_dof == pytest.approx(8, rel=0.3)
    assert model.share == pytest.approx(0.1, abs=0.01)
    assert np.mean(core > model.threshold) < 0.002
    assert np.mean(strays > model.threshold) == 1


@pytest.mark.parametrize(("p", "dof", "n_features"), [(1, 20.0, 5), (2, 8.0, 20), (2, 300.0, 100)])
def test_strays_are_found_around_a_core_whose_distances_are_over_few_of_the_features(p, dof, n_features):
    core = p * 0.3 * stats.f(p, dof).rvs(3000, random_state=0)
    strays = np.exp(np.random.default_rng(0).uniform(np.log(200), np.log(20_000), 60))
    model = fit_outlier_model(tally(np.concatenate([core, strays])).sketch(), n_features)
    assert np.mean(core > model.threshold) < 0.002
    assert np.mean(strays > model.threshold) == 1
    alone = fit_outlier_model(tally(core).sketch(), n_features)
    assert alone.share == 0
    assert not np.any(core > alone.threshold)


@pytest.mark.parametrize("kind", ["constants", "copies", "faint noise", "rare flags"])
@pytest.mark.parametrize("seed", range(3))
def test_far_rows_are_outliers_beside_columns_that_tell_nothing_of_them(kind, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, 600)
    good = rng.normal(size=(600, 2)) + np.array([[0, 0], [7, 0], [0, 7]])[y]
    X = np.vstack([good, rng.uniform(-40, 40, (20, 2))])
    more = {
        "constants": np.ones((len(X), 10)),
        "copies": np.repeat(X[:, :1], 5, axis=1),
        "faint noise": 0.05 * rng.normal(size=(len(X), 10)),
        "rare flags": rng.random((len(X), 20)) < 0.02,
    }
    rows = np.hstack([X, more[kind]])
    found = TKMeans(3, random_state=0).fit(rows).outliers(rows)
    assert found[np.max(np.abs(X), axis=1) > 25].all()
    assert not found[:600].any()
    assert not TKMeans(3, random_state=0).fit(rows[:600]).outliers(rows[:600]).any()


def test_the_core_density_of_the_outlier_model_is_that_of_a_scaled_f_distribution():
    r = np.geomspace(1e-3, 1e3, 20)
    core = stats.f(3, 5.0, scale=0.6)
    np.testing.assert_allclose(_log_core(r, 3, 0.2, 5.0), core.logpdf(r), rtol=1e-10)
    for tail in (1e-12, 0.01, 0.5):
        assert core.sf(_core_quantile(tail, 3, 0.2, 5.0)) == pytest.approx(tail, rel=1e-10)


def test_a_sketch_of_distances_keeps_the_mass_and_the_farthest_rows():
    d2 = np.random.default_rng(0).exponential(size=20_000)
    weight = np.random.default_rng(1).integers(0, 3, len(d2))
    short = tally(d2, weight).sketch()
    assert len(short.d2) < 1000
    assert short.mass.sum() == weight.sum()
    np.testing.assert_array_equal(short.d2[-100:], np.sort(d2[weight > 0])[-100:])
    exact = np.quantile(d2.repeat(weight), 0.5)
    assert short.d2[np.searchsorted(short.mass.cumsum(), weight.sum() / 2)] == pytest.approx(exact, rel=0.02)


def test_outliers_among_new_rows_are_flagged_by_the_distances_of_the_training_rows():
    X, _, centers = t_mixture(n=1000, dof=30.0, scale=0.01)
    clean = TKMeans(4, init=centers).fit(X)
    dirty = TKMeans(4, init=centers).fit(np.vstack([X, np.random.default_rng(0).uniform(-50, 50, (60, 3))]))
    new = np.vstack([centers, [[40.0, 40.0, 40.0]]])
    for model in (clean, dirty):
        np.testing.assert_array_equal(model.outliers(new), [False] * 4 + [True])
        np.testing.assert_array_equal(model.predict(new, outlier_label=-1)[-1], -1)
        np.testing.assert_array_equal(model.predict(new, outlier_label=-1)[:4], model.predict(new)[:4])
        assert model.predict(new)[-1] >= 0


@pytest.mark.parametrize("estimator", [FastTKMeans(4), KMedians(4), KMedoids(4)], ids=repr)
def test_an_estimator_without_outliers_refuses_an_outlier_label(estimator):
    X = t_mixture(n=100)[0]
    with pytest.raises(TypeError, match="does not look for outliers; predict without outlier_label"):
        estimator.fit(X).predict(X, outlier_label=-1)


def test_the_tail_rule_flags_a_fraction_of_rows_from_the_model_equal_to_its_level():
    X, _, centers = t_mixture(n=20_000, dof=3.0, scale=1e-4)
    model = TKMeans(4, init=centers).fit(X)
    for level in (0.01, 0.1):
        assert model.outliers(X, rule="tail", level=level).mean() == pytest.approx(level, rel=0.15)
        np.testing.assert_array_equal(model.outliers(X, rule="tail", level=level), model.outlier_pvalues(X) < level)
    np.testing.assert_array_equal(model.outliers(X, rule="tail"), model.outliers(X, rule="tail", level=0.01))


def test_a_higher_level_flags_fewer_outliers():
    X, _, centers = t_mixture(n=1000, dof=5.0, scale=0.01)
    rows = np.vstack([X, np.random.default_rng(0).uniform(-20, 20, (100, 3))])
    model = TKMeans(4, init=centers).fit(rows)
    sure, unsure = (model.outliers(rows, level=level) for level in (0.999, 0.1))
    assert sure.sum() < unsure.sum()
    assert np.all(unsure[sure])


def test_outliers_that_lie_together_are_warned_about_as_a_missed_cluster():
    X, _, centers = t_mixture(n=1000, dof=30.0, scale=0.01)
    clump = np.full(3, 30.0) + 0.1 * np.random.default_rng(0).normal(size=(80, 3))
    model = TKMeans(4, init=centers).fit(np.vstack([X, clump]))
    with pytest.warns(UserWarning, match=r"100% of the outliers .*\(80 rows, .* missed cluster. Try a larger n_"):
        assert model.outliers(np.vstack([X, clump])).sum() == 80


def test_scattered_outliers_are_not_warned_about_as_a_missed_cluster():
    X, _, centers = t_mixture(n=1000, dof=30.0, scale=0.01)
    rows = np.vstack([X, np.random.default_rng(0).uniform(-30, 30, (80, 3))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TKMeans(4, init=centers).fit(rows).outliers(rows).sum() >= 78


@pytest.mark.parametrize("rows", [np.zeros((10, 2)), np.eye(3), np.ones((1, 1))], ids=["equal", "few", "one"])
def test_equal_rows_and_single_rows_are_no_outliers(rows):
    model = TKMeans(1).fit(rows)
    assert not model.outliers(rows).any()


def test_outliers_refuses_invalid_rules_and_levels():
    model = TKMeans(1).fit(np.eye(3))
    with pytest.raises(ValueError, match="rule must be one of 'strays', 'tail', got 'sigma'"):
        model.outliers(np.eye(3), rule="sigma")
    with pytest.raises(ValueError, match=r"level must be a positive number, got -0\.1"):
        model.outliers(np.eye(3), level=-0.1)
    with pytest.raises(ValueError, match=r"level must be a probability below 1, got 5"):
        model.outliers(np.eye(3), level=5)


@pytest.mark.parametrize(("p", "scale", "dof"), [(1, 0.3, 1.0), (2, 2.0, 4.5), (30, 1e-3, 150.0)])
def test_the_slopes_of_the_core_density_are_its_derivatives(p, scale, dof):
    r = np.geomspace(1e-4, 1e3, 7) * scale

    def log_core(log_p, log_scale, log_dof):
        return _log_core(r, np.exp(log_p), np.exp(log_scale), np.exp(log_dof))

    h, at = 1e-5, np.log([p, scale, dof])
    slopes = [(log_core(*(at + step)) - log_core(*(at - step))) / (2 * h) for step in h * np.eye(3)]
    np.testing.assert_allclose(_core_slopes(r, p, scale, dof), slopes, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_outliers_that_are_spread_evenly_are_no_heap_and_one_heap_is(seed):
    rng = np.random.default_rng(seed)
    centers = np.array([[-5.0, 0.0], [5.0, 0.0]])
    even = rng.uniform(-10, 10, size=(200, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_clumps(even, np.arange(200), 4.0, centers)
    heap = rng.normal([0, 9], size=(40, 2))
    for strays in (heap, np.vstack([even, heap / 4])):
        with pytest.warns(UserWarning, match="they look like a missed cluster"):
            warn_of_clumps(strays, np.arange(len(strays)), 4.0, centers)


def test_rows_at_both_ends_of_all_numbers_are_outliers_of_a_tiny_cluster():
    rows = 1e-90 * np.random.default_rng(0).normal(size=(60, 3))
    most = np.finfo(float).max
    X = np.array([[1, 0, 0], [most, most, -most], [-most, -most, -most], [0, 0, 1]])
    assert np.all(TKMeans(1).fit(rows).outliers(X))


def test_outliers_of_one_feature_that_a_cluster_could_hold_are_a_heap_or_not_without_a_warning_of_numpy():
    with warnings.catch_warnings(action="error"):
        warn_of_clumps(np.linspace(0, 1, 12)[:, None], np.arange(12), 3.0, np.zeros((1, 1)))


# ---- few rows, and rows beyond all others --------------------------------------------------------


def test_few_clean_rows_hold_hardly_ever_outliers():
    """Where outliers begin and end is taken from the same distances, which has its cost."""
    flagged = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.vstack([rng.normal(size=(6, 2)), 15 + rng.normal(size=(6, 2))])
        flagged += bool(np.any(TKMeans(2).fit(X).outliers(X)))
    assert flagged <= 1


def test_one_stray_beyond_all_squares_makes_no_missed_cluster_of_the_others():
    X, _ = make_contaminated(400, 4, 3, random_state=1)
    model = TKMeans(4).fit(X)
    found = model.outliers(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.outliers(np.vstack([X, [[1e200] * 3]])), [*found, True])


def test_a_search_for_outliers_ignores_underflow_even_where_it_would_raise():
    X = np.random.default_rng(0).normal(size=(100, 2)) + np.repeat([[0], [9]], 50, axis=0)
    X[0] = 1e9
    model = TKMeans(2).fit(X)
    with np.errstate(all="raise"):
        assert model.outliers(X)[0]


@pytest.mark.parametrize(("n", "away", "found"), [(100, 20, 0.7), (200, 20, 0.8), (500, 12, 0.7), (500, 20, 0.9)])
def test_a_single_gross_error_in_a_small_table_is_an_outlier(n, away, found):
    flagged = []
    for seed in range(20):
        x = np.random.default_rng(seed).normal(50, 5, (n, 1))
        x[7] = 50 + 5 * away
        flagged.append(TKMeans(1).fit(x).outliers(x)[7])
    assert np.mean(flagged) >= found


@pytest.mark.parametrize("n_far", [3, 15, 30])
def test_rows_around_ellipses_in_many_columns_are_outliers_and_no_others(n_far):
    p = 30
    for seed in range(3):
        rng = np.random.default_rng(seed)
        centers, steps = np.array([[0] * p, [6] * p, [6] * 15 + [-6] * 15]), rng.normal(size=(n_far, p))
        steps *= 26 / np.linalg.norm(steps, axis=1)[:, None]  # ordinary rows are 5.5 from their centre
        rows = np.repeat(centers, 100, axis=0) + rng.normal(size=(300, p))
        X = np.vstack([rows, centers[rng.integers(3, size=n_far)] + steps])
        found = StudentTMixture(3).fit(X).outliers(X)
        assert np.all(found[300:])
        assert not np.any(found[:300])
