"""The verdict: nobody where there are only clusters, everybody who is far where there are strays."""

import warnings

import numpy as np
import pytest
from helpers import benchmark_set, t_mixture
from scipy import stats

from tkmeans import TKMeans
from tkmeans.outliers import OutlierModel, _log_core, fit_outlier_model, sketch

SETS = ["S1", "S2", "S3", "S4", "A1", "A2", "A3", "dim032"]


def true_centers(X, y):
    return np.array([X[y == k].mean(axis=0) for k in np.unique(y)])


@pytest.mark.parametrize("name", SETS)
def test_clean_benchmark_sets_have_at_most_one_per_cent_of_outliers(name):
    X, y = benchmark_set(name)
    model = TKMeans(len(np.unique(y)), init=true_centers(X, y)).fit(X)
    assert model.outliers(X).mean() <= 0.01


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", SETS)
def test_far_rows_are_found_and_hardly_anyone_else(name, seed):
    X, y = benchmark_set(name)
    far = np.random.default_rng(seed).uniform(-10, 10, (len(X) // 20, X.shape[1]))
    rows = np.vstack([X, far])
    found = TKMeans(len(np.unique(y)), init=true_centers(X, y)).fit(rows).outliers(rows)
    assert found[len(X) :].mean() >= 0.97  # recall
    assert found[len(X) :].sum() / found.sum() >= 0.98  # precision


@pytest.mark.parametrize(("p", "dof"), [(1, 3.0), (2, 1.0), (8, 30.0), (2, 500.0)])
def test_rows_from_one_t_distribution_are_one_group(p, dof):
    d2 = p * 0.3 * stats.f(p, dof).rvs(5000, random_state=0)
    model = fit_outlier_model(sketch(d2), p)
    assert model.share == 0
    assert not np.any(d2 > model.threshold)
    assert model.threshold == pytest.approx(4 * d2.max())


def test_the_core_and_the_share_of_strays_are_recovered():
    rng = np.random.default_rng(0)
    core = 2 * 0.3 * stats.f(2, 8.0).rvs(9000, random_state=0)
    strays = np.exp(rng.uniform(np.log(50), np.log(5000), 1000))
    model = fit_outlier_model(sketch(np.concatenate([core, strays])), 2)
    assert model.core_scale == pytest.approx(0.3, rel=0.1)
    assert model.core_dof == pytest.approx(8, rel=0.3)
    assert model.share == pytest.approx(0.1, abs=0.01)
    assert np.mean(core > model.threshold) < 0.002
    assert np.mean(strays > model.threshold) == 1


def test_the_core_density_is_that_of_a_scaled_f_distribution():
    r = np.geomspace(1e-3, 1e3, 20)
    np.testing.assert_allclose(_log_core(r, 3, 0.2, 5.0), stats.f(3, 5.0, scale=0.6).logpdf(r), rtol=1e-10)


def test_a_sketch_keeps_the_mass_and_the_farthest_rows():
    d2 = np.random.default_rng(0).exponential(size=20_000)
    weight = np.random.default_rng(1).integers(0, 3, len(d2))
    short = sketch(d2, weight)
    assert len(short.d2) < 1000
    assert short.mass.sum() == weight.sum()
    np.testing.assert_array_equal(short.d2[-100:], np.sort(d2[weight > 0])[-100:])
    exact = np.quantile(d2.repeat(weight), 0.5)
    assert short.d2[np.searchsorted(short.mass.cumsum(), weight.sum() / 2)] == pytest.approx(exact, rel=0.02)


def test_a_verdict_on_new_rows_uses_what_the_training_rows_taught():
    X, _, centers = t_mixture(n=1000, dof=30.0, scale=0.01)
    clean = TKMeans(4, init=centers).fit(X)
    dirty = TKMeans(4, init=centers).fit(np.vstack([X, np.random.default_rng(0).uniform(-50, 50, (60, 3))]))
    new = np.vstack([centers, [[40.0, 40.0, 40.0]]])
    for model in (clean, dirty):
        np.testing.assert_array_equal(model.outliers(new), [False] * 4 + [True])
        np.testing.assert_array_equal(model.predict(new, outlier_label=-1)[-1], -1)
        np.testing.assert_array_equal(model.predict(new, outlier_label=-1)[:4], model.predict(new)[:4])
        assert model.predict(new)[-1] >= 0


def test_the_tail_rule_flags_its_level_of_rows_from_the_model():
    X, _, centers = t_mixture(n=20_000, dof=3.0, scale=1e-4)
    model = TKMeans(4, init=centers).fit(X)
    for level in (0.01, 0.1):
        assert model.outliers(X, rule="tail", level=level).mean() == pytest.approx(level, rel=0.15)
        np.testing.assert_array_equal(model.outliers(X, rule="tail", level=level), model.outlier_pvalues(X) < level)
    np.testing.assert_array_equal(model.outliers(X, rule="tail"), model.outliers(X, rule="tail", level=0.01))


def test_a_higher_level_flags_fewer_strays():
    X, _, centers = t_mixture(n=1000, dof=5.0, scale=0.01)
    rows = np.vstack([X, np.random.default_rng(0).uniform(-20, 20, (100, 3))])
    model = TKMeans(4, init=centers).fit(rows)
    sure, unsure = (model.outliers(rows, level=level) for level in (0.999, 0.1))
    assert sure.sum() < unsure.sum()
    assert np.all(unsure[sure])


def test_outliers_that_lie_together_are_reported_as_a_missed_cluster():
    X, _, centers = t_mixture(n=1000, dof=30.0, scale=0.01)
    clump = np.full(3, 30.0) + 0.1 * np.random.default_rng(0).normal(size=(80, 3))
    model = TKMeans(4, init=centers).fit(np.vstack([X, clump]))
    with pytest.warns(UserWarning, match=r"100% of the outliers .* missed cluster. Try a larger n_clusters"):
        assert model.outliers(np.vstack([X, clump])).sum() == 80


def test_scattered_outliers_are_not_reported_as_a_cluster():
    X, _, centers = t_mixture(n=1000, dof=30.0, scale=0.01)
    rows = np.vstack([X, np.random.default_rng(0).uniform(-30, 30, (80, 3))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TKMeans(4, init=centers).fit(rows).outliers(rows).sum() >= 78


@pytest.mark.parametrize("rows", [np.zeros((10, 2)), np.eye(3), np.ones((1, 1))], ids=["equal", "few", "one"])
def test_awkward_distances_get_a_verdict(rows):
    model = TKMeans(1).fit(rows)
    assert not model.outliers(rows).any()


def test_rules_and_levels_that_make_no_sense_are_refused():
    model = TKMeans(1).fit(np.eye(3))
    with pytest.raises(ValueError, match="rule must be one of 'strays', 'tail', got 'sigma'"):
        model.outliers(np.eye(3), rule="sigma")
    with pytest.raises(ValueError, match=r"level must be a positive number, got -0\.1"):
        model.outliers(np.eye(3), level=-0.1)


def test_the_model_of_one_group_is_a_plain_record():
    assert OutlierModel(1.0, 2.0, 0.0, 3.0)._fields == ("core_scale", "core_dof", "share", "threshold")
