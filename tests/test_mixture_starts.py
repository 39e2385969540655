"""Where EM of a mixture begins: the bulk of the rows, parameters from labels, and the choice between starts."""

import math

import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler
from support.mixture_oracle import log_density, log_prior, matrices, matrix, round_shapes
from support.thoroughness import thorough
from threadpoolctl import ThreadpoolController

from tkmeans import StudentTMixture
from tkmeans.fitting.mixture_choice import (
    MixtureStart,
    best_start,
    noise_is_a_cluster,
    same_clusters,
    spread_evenly,
)
from tkmeans.fitting.mixture_choice import (
    _crowded as crowded,
)
from tkmeans.fitting.mixture_setting import (
    FIRST_NOISE,
    MOST_FIRST_NOISE,
    MOST_NOISE,
    Bulk,
    Setting,
    bulk_of,
    from_labels,
    judged,
    on_one_thread,
    with_noise,
    with_prior,
    without_noise,
)
from tkmeans.models.covariances import SHAPES
from tkmeans.models.mixture import StudentMixture
from tkmeans.sources import Sample

KINDS = tuple(SHAPES)


def sample_of(X, weight=None):
    X = np.asarray(X, dtype=float)
    return Sample(X, np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float))


def setting_of(sample, n_components, kind="full", *, noise=True, prior_rows=4.0, ridge=1e-4, dof=None, **options):
    model = StudentMixture(shape=SHAPES[kind], shared_dof=True, estimate_dof=dof is None, **options)
    return Setting(model, n_components, prior_rows, ridge, bulk_of(sample), noise, dof)


def radii(bulk, X):
    """How many radii from the centre of the bulk rows are."""
    return np.linalg.norm((X - bulk.center) / (bulk.units * bulk.radius), axis=1)


CENTERS = np.array([[0.0, 0.0], [8.0, 1.0], [3.0, 9.0]])
SPREADS = np.array([[[1.0, 0.6], [0.6, 0.8]], [[0.5, -0.2], [-0.2, 1.5]], [[0.9, 0.0], [0.0, 0.3]]])


def gaussian_groups(n=2000, seed=0):
    """Three groups of different shapes, with their labels."""
    rng = np.random.default_rng(seed)
    parts = [rng.multivariate_normal(c, S, size=n) for c, S in zip(CENTERS, SPREADS, strict=True)]
    return np.vstack(parts), np.repeat(np.arange(3), n)


# ---- the bulk ---------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 3, 10])
def test_the_bulk_of_gaussian_rows_holds_nine_of_ten(p):
    rng = np.random.default_rng(p)
    unit = 10.0 ** rng.uniform(-3, 3, p)
    X = rng.normal(size=(20_000, p)) * unit + 5 * unit
    bulk = bulk_of(sample_of(X))
    np.testing.assert_allclose(bulk.center / unit, 5, atol=0.05)
    np.testing.assert_allclose(bulk.units / unit, 0.6745, rtol=0.05)
    assert np.mean(radii(bulk, X) < 1) == pytest.approx(0.9, abs=0.01)
    ball = math.pi ** (p / 2) / math.gamma(p / 2 + 1)
    assert bulk.log_volume == pytest.approx(np.log(ball * np.prod(unit * np.sqrt(chi2.ppf(0.9, p)))), abs=0.05 * p)


@pytest.mark.parametrize("share", [0.1, 0.4])
def test_rows_far_away_change_the_bulk_by_little_and_not_with_their_distance(share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3)) * [1, 10, 0.1]
    clean = bulk_of(sample_of(X))
    moved = rng.random(1000) < share
    directions = rng.normal(size=(1000, 3))
    bulks = []
    for distance in (1e7, 1e10, 1e80):
        there = X.copy()
        there[moved] = distance * directions[moved]
        bulks.append(bulk_of(sample_of(there)))
    for bulk in bulks[1:]:
        np.testing.assert_allclose(bulk.center, bulks[0].center)
        np.testing.assert_allclose(bulk.units, bulks[0].units)
        assert bulk.radius == pytest.approx(bulks[0].radius)
    np.testing.assert_allclose((bulk.center - clean.center) / clean.units, 0, atol=0.5)
    assert np.all(bulk.units < 2.5 * clean.units)
    assert bulk.log_volume < clean.log_volume + 3 * np.log(3)


def test_far_rows_that_lie_together_leave_the_centre_of_the_bulk_among_the_others():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 2))
    X[:400] = 1e9
    bulk = bulk_of(sample_of(X))
    assert np.all(np.abs(bulk.center) < 1.5)
    assert np.all(radii(bulk, X[:400]) > 1e6)
    assert np.mean(radii(bulk, X[400:]) < 1) > 0.5


def test_weights_of_rows_count_as_repetitions_in_the_bulk():
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(200, 2)), rng.integers(0, 4, 200)
    weighted, repeated = bulk_of(sample_of(X, weight)), bulk_of(sample_of(np.repeat(X, weight, axis=0)))
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a, b)


def test_the_bulk_moves_and_scales_with_the_columns():
    X = np.random.default_rng(3).standard_t(3, (301, 2))
    unit, shift = np.array([1e-3, 40.0]), np.array([5.0, -7.0])
    plain, scaled = bulk_of(sample_of(X)), bulk_of(sample_of(X * unit + shift))
    np.testing.assert_allclose(scaled.center, plain.center * unit + shift)
    np.testing.assert_allclose(scaled.units, plain.units * unit)
    assert scaled.radius == pytest.approx(plain.radius)


def test_columns_with_mostly_one_value_or_only_one_have_a_unit():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.normal(size=100), np.zeros(100), np.full(100, 3.0)])
    X[:30, 1] = rng.uniform(1, 2, 30)
    bulk = bulk_of(sample_of(X))
    assert 1 <= bulk.units[1] <= 2
    assert bulk.units[2] == 1
    assert np.isfinite(bulk.log_volume)


# ---- from labels to parameters ----------------------------------------------------------------


@pytest.mark.parametrize("core", [False, True])
def test_true_labels_of_gaussian_groups_give_their_centres_shapes_and_weights(core):
    X, labels = gaussian_groups()
    sample = sample_of(X)
    params = from_labels(sample, labels, setting_of(sample, 3, dof=1e6), core)
    np.testing.assert_allclose(params.centers, CENTERS, atol=0.15)
    for found, true in zip(params.covariances, SPREADS, strict=True):
        np.testing.assert_allclose(found, true, atol=0.25 * np.trace(true) / 2)
    np.testing.assert_allclose(params.log_weights - np.logaddexp.reduce(params.log_weights), -np.log(3))
    np.testing.assert_array_equal(params.dof, 1e6)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_give_shapes_of_every_kind_with_sizes_within_the_ratio(kind):
    X, labels = gaussian_groups(300)
    X[labels == 1] = CENTERS[1] + 30 * (X[labels == 1] - CENTERS[1])
    sample = sample_of(X)
    setting = setting_of(sample, 3, kind, size_ratio=4.0)
    for core in (True, False):
        params = from_labels(sample, labels, setting, core)
        assert params.covariances.shape == round_shapes(kind, 1.0, 3, 2).shape
        sizes = np.linalg.det(matrices(params)) ** 0.5
        assert sizes.max() <= 4.0 * sizes.min() * (1 + 1e-9)


@pytest.mark.parametrize("distance", [1e2, 1e4])
def test_far_rows_in_a_group_do_not_move_the_start_from_its_core(distance):
    X, labels = gaussian_groups(500)
    rng = np.random.default_rng(1)
    far = np.flatnonzero(rng.random(len(X)) < 0.3)
    X[far] = CENTERS[labels[far]] + distance * rng.uniform(0.5, 1, (len(far), 2))
    sample = sample_of(X)
    params = from_labels(sample, labels, setting_of(sample, 3), core=True)
    np.testing.assert_allclose(params.centers, CENTERS, atol=0.7)
    for found, true in zip(params.covariances, SPREADS, strict=True):
        assert np.trace(found) < 6 * np.trace(true)
    assert params.noise + params.beyond == pytest.approx(0.3, abs=0.04)


@pytest.mark.parametrize("core", [False, True])
def test_a_row_of_weight_zero_changes_nothing_in_a_start(core):
    X, labels = gaussian_groups(100)
    with_extra, extra = np.vstack([X, [[1e6, 1e6], CENTERS[0]]]), np.r_[labels, 0, 0]
    weight = np.r_[np.ones(len(X)), 0.0, 0.0]
    plain = sample_of(X)
    setting = setting_of(plain, 3)
    a, b = from_labels(plain, labels, setting, core), from_labels(sample_of(with_extra, weight), extra, setting, core)
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("core", [False, True])
def test_weights_of_rows_count_as_repetitions_in_a_start(core):
    X, labels = gaussian_groups(100)
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    weighted, repeated = sample_of(X, weight), sample_of(np.repeat(X, weight, axis=0))
    setting = setting_of(weighted, 3)
    a = from_labels(weighted, labels, setting, core)
    b = from_labels(repeated, np.repeat(labels, weight), setting, core)
    for one, other in zip(a, b, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("core", [False, True])
def test_a_start_scales_with_the_columns(core):
    X, labels = gaussian_groups(200)
    unit, shift = np.array([1e-3, 1e2]), np.array([3.0, -40.0])
    plain, scaled = sample_of(X), sample_of(X * unit + shift)
    a = from_labels(plain, labels, setting_of(plain, 3), core)
    b = from_labels(scaled, labels, setting_of(scaled, 3), core)
    np.testing.assert_allclose((b.centers - shift) / unit, a.centers, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(b.covariances / np.outer(unit, unit), a.covariances, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose([b.noise, b.beyond], [a.noise, a.beyond])
    np.testing.assert_allclose(b.bulk / np.outer(unit, unit), a.bulk, rtol=1e-9)


def test_a_component_without_rows_starts_at_a_row_away_from_the_others():
    X, labels = gaussian_groups(100)
    X[0] = 1e9  # not at the farthest of all
    sample = sample_of(X)
    params = from_labels(sample, np.where(labels == 2, -1, labels), setting_of(sample, 3))
    assert any(np.array_equal(params.centers[2], row) for row in X[1:])
    assert np.linalg.norm(params.centers[2] - CENTERS[2]) < 4
    assert np.all(np.linalg.eigvalsh(params.covariances) > 0)


def test_groups_of_equal_rows_have_a_volume_in_a_start():
    X, labels = gaussian_groups(100)
    X[100:180] = CENTERS[1]  # most of a group
    X[190:200] = CENTERS[1]
    for kind in KINDS:
        sample = sample_of(X)
        params = from_labels(sample, labels, setting_of(sample, 3, kind), core=True)
        assert np.all(np.linalg.eigvalsh(matrices(params)) > 0)
        np.testing.assert_allclose(params.centers[1], CENTERS[1])
        assert params.noise + params.beyond < 0.1


# ---- noise and prior --------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("kind", KINDS)
def test_the_noise_of_a_start_has_a_bounded_share_half_of_it_in_the_bulk(kind, share):
    X, labels = gaussian_groups(200)
    sample = sample_of(X)
    setting = setting_of(sample, 3, kind)
    labels = np.where(np.random.default_rng(0).random(len(X)) < share, -1, labels)
    params = from_labels(sample, labels, setting)
    total = params.noise + params.beyond
    assert params.noise == params.beyond
    assert FIRST_NOISE <= total <= MOST_FIRST_NOISE
    assert total == pytest.approx(np.clip(np.mean(labels < 0), FIRST_NOISE, MOST_FIRST_NOISE))
    assert np.exp(params.log_weights).sum() + total == pytest.approx(1)
    np.testing.assert_array_equal(params.bulk_center, setting.bulk.center)
    squares = (setting.bulk.units * setting.bulk.radius) ** 2
    np.testing.assert_allclose(np.diag(matrix(params.bulk, 2)), squares.mean() if kind == "spherical" else squares)


def test_noise_that_is_taken_away_leaves_the_weights_in_proportion():
    X, labels = gaussian_groups(50)
    sample = sample_of(X)
    params = from_labels(sample, labels, setting_of(sample, 3))
    plain = without_noise(params)
    assert plain.noise == plain.beyond == 0
    assert np.exp(plain.log_weights).sum() == pytest.approx(1)
    np.testing.assert_allclose(np.diff(plain.log_weights), np.diff(params.log_weights), atol=1e-12)
    assert with_noise(plain, 0.1, setting_of(sample, 3, noise=False)) is plain


@pytest.mark.parametrize("kind", KINDS)
def test_the_prior_is_worth_its_rows_at_the_pooled_shape_and_one_where_all_is_as_expected(kind):
    X, labels = gaussian_groups(300)
    sample = sample_of(X)
    setting = setting_of(sample, 3, kind, prior_rows=5.0, ridge=0.0)
    params = from_labels(sample, labels, setting)
    model = with_prior(params, setting)
    assert model.prior.rows == (0.0 if kind == "tied" else 5.0)
    assert model.prior.mass == 5.0
    if kind != "tied":
        pooled = model.prior.scatter / 5.0
        same = params._replace(covariances=np.repeat(pooled[None], 3, axis=0), log_weights=np.full(3, -np.log(3)))
        assert log_prior(same, model.prior) == pytest.approx(0, abs=1e-9)
        weights = np.exp(params.log_weights)
        mean = np.average(matrices(params), axis=0, weights=weights)
        squares = setting.bulk.units**2
        thin = np.diag(squares if kind != "spherical" else np.full(2, squares.mean()))
        np.testing.assert_allclose(matrix(pooled, 2), mean + 0.02 * thin, rtol=1e-9, atol=1e-12)
    bare = setting._replace(prior_rows=0.0, ridge=0.0)
    assert with_prior(params, bare) is setting.model


# ---- the choice -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_starts_are_judged_by_the_penalised_likelihood_per_row(kind):
    X, labels = gaussian_groups(60)
    sample = sample_of(X, np.random.default_rng(0).uniform(0.5, 2, len(X)))
    setting = setting_of(sample, 3, kind)
    params = from_labels(sample, labels, setting)
    model = with_prior(params, setting)
    likelihood = sample.weight @ log_density(X, params) + log_prior(params, model.prior)
    got = judged(sample, model, params)[0]
    assert got == pytest.approx(likelihood / sample.weight.sum(), rel=1e-10)


@pytest.mark.parametrize("kind", ["full", "diag"])
def test_the_best_of_several_labellings_is_the_one_that_is_true(kind):
    X, labels = gaussian_groups(150)
    X = np.vstack([X, np.random.default_rng(0).uniform(-200, 200, (30, 2))])
    labels = np.r_[labels, np.full(30, -1)]
    sample = sample_of(X)
    wrong = np.where(X[:, 0] > 4, 2, np.where(X[:, 0] > 0, 1, 0))
    start, agreement = best_start(sample, [wrong, labels, np.zeros(len(X), int)], setting_of(sample, 3, kind))
    nearest = np.linalg.norm(start.params.centers[:, None] - CENTERS, axis=2)
    assert np.all(nearest.min(axis=0) < 0.4)
    assert np.isfinite(start.merit)
    assert 1 <= agreement.n_agreeing <= agreement.n_searches <= 4  # three, and perhaps one with light tails
    assert 0 < start.params.noise + start.params.beyond < MOST_NOISE


def test_a_start_with_too_much_noise_is_made_without():
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (400, 2))  # as flat as noise
    sample = sample_of(X)
    start, _ = best_start(sample, [np.zeros(400, int)], setting_of(sample, 1, noise="auto"))
    assert start.params.noise + start.params.beyond <= MOST_NOISE
    assert np.exp(start.params.log_weights).sum() + start.params.noise + start.params.beyond == pytest.approx(1)


EVEN = {
    "flat": lambda rng, n, p: rng.random((n, p)),
    "answers": lambda rng, n, p: rng.integers(1, 6, size=(n, p)).astype(float),
    "edges": lambda rng, n, p: rng.beta(0.5, 0.5, size=(n, p)),
}


@pytest.mark.parametrize("far", [0, 1])
@pytest.mark.parametrize(("n", "p", "n_components"), [(300, 2, 2), (300, 5, 1), (1000, 5, 2), (1000, 10, 1)])
@pytest.mark.parametrize("kind", EVEN)
def test_rows_that_are_even_in_a_box_are_a_cluster_and_not_noise(kind, n, p, n_components, far):
    for seed in range(2):
        X = EVEN[kind](np.random.default_rng(seed), n, p)
        X[:far] = 1e6
        np.testing.assert_array_equal(StudentTMixture(n_components).fit(X).outliers(X), np.arange(n) < far)


@pytest.mark.parametrize("seed", range(6))
def test_a_cluster_wider_than_the_ratio_allows_is_not_taken_for_noise(seed):
    """One is seventeen times as wide as the other: their variances have a ratio of 278, and 25 are allowed."""
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(0, 5, (500, 2)), rng.normal(6, 0.3, (500, 2))])
    model = StudentTMixture(2).fit(X)
    assert np.mean(model.outliers(X)) < 0.01
    assert adjusted_rand_score(np.repeat([0, 1], 500), model.labels_) > 0.85
    wider = StudentTMixture(2, size_ratio=1000).fit(X)
    assert np.mean(wider.outliers(X)) < 0.01
    assert adjusted_rand_score(np.repeat([0, 1], 500), wider.labels_) > 0.97


@pytest.mark.parametrize("p", [3, 5, 10, 20])
@pytest.mark.parametrize("n_strays", [3, 20])
def test_rows_that_have_made_tails_heavy_are_outliers_where_there_is_no_noise(p, n_strays):
    """Six times as far from the centre as ordinary rows, but near by the volume of the bulk."""
    for seed in range(3):
        rng, y = np.random.default_rng(seed), np.repeat(range(4), 200)
        centers = rng.uniform(0, 60, (4, p))
        away = rng.normal(size=(n_strays, p))
        away *= 6 * p**0.5 / np.linalg.norm(away, axis=1, keepdims=True)
        X = np.vstack([centers[y] + rng.normal(size=(800, p)), centers[rng.integers(4, size=n_strays)] + away])
        distances = np.min(np.linalg.norm(X[:, None] - centers, axis=2), axis=1)
        found = StudentTMixture(4).fit(X).outliers(X)
        assert np.all(found[distances > 5.9 * p**0.5])
        assert np.mean(found[:800]) < 0.01


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("nu", [3, 5])
def test_heavy_tails_of_the_clusters_themselves_are_no_outliers(nu, seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.standard_t(nu, (300, 4)) + c for c in (0, 20, 40)])
    assert np.mean(StudentTMixture(3).fit(X).outliers(X)) < 0.01


@pytest.mark.parametrize("seed", range(4))
def test_rows_of_a_cluster_fifty_times_as_wide_as_another_are_no_outliers(seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal([100, 30], [3, 1], (100, 2)), rng.normal([5000, 1500], [150, 45], (100, 2))])
    model = StudentTMixture(2).fit(X / X.std(axis=0))
    assert adjusted_rand_score(np.repeat([0, 1], 100), model.labels_) == 1
    assert not np.any(model.outliers(X / X.std(axis=0)))
    assert np.all(model.outliers(np.array([[1e6, 0.0], [0.0, -1e6]])))


@pytest.mark.parametrize("seed", range(4))
def test_of_few_rows_in_many_columns_most_are_not_noise(seed):
    """Counts like those of genes: the prior is worth more rows than there are, which hides how many the noise has."""
    rng, y = np.random.default_rng(seed), np.repeat(range(4), [80, 60, 40, 20])
    means = np.tile(rng.gamma(1, 2, 200), (4, 1))
    for own in means:
        own[rng.choice(200, 16, replace=False)] *= 6
    X = np.sqrt(rng.poisson(means[y] * rng.lognormal(0, 0.3, (200, 1))))
    model = StudentTMixture(4).fit(X)
    assert np.mean(model.noise_probability(X)) <= MOST_NOISE
    assert np.mean(model.outliers(X)) < 0.01
    assert adjusted_rand_score(y, model.labels_) > 0.95


def test_a_model_without_noise_has_starts_without():
    X, labels = gaussian_groups(100)
    sample = sample_of(X)
    setting = setting_of(sample, 3, noise=False)
    start, _ = best_start(sample, [labels], setting)
    assert start.params.noise == start.params.beyond == 0


def test_the_volume_of_a_bulk_is_that_of_its_ellipsoid():
    bulk = Bulk(np.array([1.0, 2.0]), np.array([2.0, 0.5]), 3.0)
    assert bulk.log_volume == pytest.approx(np.log(np.pi * 6 * 1.5))


def test_two_labellings_have_the_same_clusters_if_nearly_all_rows_of_each_are_in_one_of_the_other():
    one = np.repeat([0, 1, 2], 100)
    renamed, moved = np.array([2, 0, 1])[one], one.copy()
    moved[0] = 1
    assert same_clusters(one, renamed, np.ones(300))
    assert same_clusters(one, moved, np.ones(300))
    assert not same_clusters(one, np.minimum(one, 1), np.ones(300))  # two are joined
    assert not same_clusters(np.minimum(one, 1), one, np.ones(300))  # one is cut
    assert same_clusters(one, np.minimum(one, 1), np.repeat([1.0, 1.0, 1e-3], 100))  # what is joined weighs nothing


def test_rows_of_no_cluster_are_no_cluster_of_their_own_but_missing_in_the_others():
    one = np.repeat([0, 1, 2], 100)
    few, many, other = one.copy(), one.copy(), one.copy()
    few[::20], many[100:120], other[1::20] = -1, -1, -1
    assert same_clusters(one, few, np.ones(300))
    assert same_clusters(few, other, np.ones(300))  # though none of their rows without a cluster is the same
    assert not same_clusters(one, many, np.ones(300))  # a fifth of a cluster is missing
    assert not same_clusters(many, one, np.ones(300))


def test_a_single_labelling_is_what_two_searches_have_found():
    X, labels = gaussian_groups(400)
    sample = sample_of(X)
    start, agreement = best_start(sample, [labels], setting_of(sample, 3))
    assert adjusted_rand_score(labels, start.labels) == 1.0
    assert agreement == (2, 2, np.inf)


# ---- noise that is a cluster ----------------------------------------------------------------


def ring_of(rng, n, p, radius):
    directions = rng.normal(size=(n, p))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    return directions * radius * (1 + 0.05 * rng.normal(size=(n, 1)))


@pytest.mark.parametrize("n_ring", [350, 420])
def test_a_ring_around_a_cluster_is_a_cluster_and_not_noise(n_ring):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(1000 - n_ring, 2)), ring_of(rng, n_ring, 2, 14.0)])
    model = StudentTMixture(2).fit(X)
    assert adjusted_rand_score(np.repeat([0, 1], [1000 - n_ring, n_ring]), model.labels_) > 0.99
    assert np.mean(model.outliers(X)) < 0.01


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1])
@pytest.mark.parametrize("seed", range(3))
def test_a_ring_within_the_bulk_is_a_cluster_and_not_noise(seed, share):
    rng = np.random.default_rng(seed)
    X = np.vstack(
        [0.5 * rng.normal(size=(500, 2)), ring_of(rng, 500, 2, 4.0), rng.uniform(-5, 5, (int(1e3 * share), 2))]
    )
    model = StudentTMixture(2).fit(X)
    assert adjusted_rand_score(np.repeat([0, 1], 500), model.labels_[:1000]) > 0.8
    assert np.mean(model.outliers(X)[:1000]) < 0.01


@pytest.mark.parametrize("p", [2, 3, 8])
def test_rows_spread_over_a_box_are_not_taken_for_a_ring(p):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(300, p)), rng.normal(size=(300, p)) + 10, rng.uniform(-90, 100, size=(250, p))])
    found = StudentTMixture(2).fit(X).outliers(X)
    assert np.mean(found[600:]) > 0.98
    assert np.mean(found[:600]) < 0.01


@pytest.mark.parametrize(("p", "seed"), [(5, 2), (8, 0), (10, 0)])
def test_even_noise_among_gaussian_clusters_goes_to_the_noise_and_not_into_the_tails(p, seed):
    rng = np.random.default_rng(seed)
    clusters = rng.normal(size=(900, p)) + np.repeat(rng.uniform(-9, 9, size=(6, p)), 150, axis=0)
    X = np.vstack([clusters, rng.uniform(clusters.min(axis=0), clusters.max(axis=0), size=(225, p))])
    model = StudentTMixture(6).fit(X)
    gaussian = StudentTMixture(6, dof=100.0).fit(X)
    assert model.score(X) > gaussian.score(X) - 0.01  # a fit with tails given is no better
    assert model.noise_weight_ == pytest.approx(0.2, abs=0.03)
    found = model.outliers(X)
    assert np.mean(found[900:]) > 0.85
    assert np.mean(found[:900]) < 0.01


def test_rows_called_noise_are_a_cluster_if_they_are_crowded_in_the_bulk():
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, size=(2000, 2))
    sample = sample_of(X)
    setting = setting_of(sample, 1)._replace(bulk=Bulk(np.zeros(2), np.ones(2), np.sqrt(2)))
    params = without_noise(from_labels(sample, np.zeros(len(X), int), setting_of(sample, 1)))

    def verdict(called_noise):
        share = np.mean(called_noise)
        start = MixtureStart(params._replace(noise=share), 0.0, np.zeros(len(X), int), 1.0 * called_noise)
        return noise_is_a_cluster(sample, start, setting)

    assert not verdict(rng.uniform(size=len(X)) < 0.1)
    assert verdict(np.hypot(*(X - 0.3).T) < 0.3)
    assert verdict(np.abs(X[:, 0]) < 0.05)


@pytest.mark.parametrize("p", [2, 5, 8])
def test_rows_called_noise_are_spread_evenly_if_they_are_as_far_apart_as_rows_drawn_from_their_box(p):
    rng = np.random.default_rng(p)
    X = rng.uniform(-1, 1, size=(300, p))
    sample = sample_of(X)
    params = without_noise(from_labels(sample, np.zeros(len(X), int), setting_of(sample, 1)))

    def verdict(rows):
        start = MixtureStart(params, 0.0, np.zeros(len(rows), int), np.ones(len(rows)))
        return spread_evenly(
            sample_of(rows), start, Bulk(np.zeros(p), np.ones(p), 1.0, np.array([np.zeros(p), np.ones(p)]))
        )

    assert verdict(X)
    assert verdict(np.vstack([X, 50 * X]))  # what is not in the box is not looked at
    assert not verdict(X[: max(9, 2**p - 1)])  # a box has as many corners
    assert not verdict(X / 2)  # all in a corner of it
    assert not verdict(np.clip(rng.normal(size=(300, p)) / 4, -0.99, 0.99))
    assert not verdict(np.repeat(X[:20], 2, axis=0))


def test_one_distant_row_does_not_make_a_crowd_in_many_dimensions_even():
    """The volumes between rows are compared in logarithms: as numbers, one distant row would be all of their mean."""
    rng, p = np.random.default_rng(0), 20
    crowd = 0.1 * rng.normal(size=(60, p)) / math.sqrt(p)
    even = rng.normal(size=(60, p))
    even *= rng.uniform(size=(60, 1)) ** (1 / p) / np.linalg.norm(even, axis=1, keepdims=True)
    distant = np.full((1, p), 0.99 / math.sqrt(p))
    assert crowded(crowd, 60, p)
    assert crowded(np.vstack([crowd, distant]), 61, p)
    assert not crowded(even, 60, p)


@pytest.mark.parametrize("sizes", [(100, 10, 10), (60, 6, 6), (90, 10)])
@pytest.mark.parametrize("seed", range(4))
def test_small_clusters_far_away_are_no_noise(sizes, seed):
    """A start sought without them cuts the large cluster, and the rows of that gain by so many more parameters."""
    rng = np.random.default_rng([7, seed])
    directions = np.linalg.qr(rng.normal(size=(4, 4)))[0][: len(sizes)]
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = 30 * directions[y] + rng.normal(size=(len(y), 4))
    model = StudentTMixture(len(sizes)).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.outliers(X).mean() < 0.05


@pytest.mark.parametrize("p", [2, 4, 8])
@pytest.mark.parametrize("seed", range(3))
def test_noise_that_is_not_worth_its_shares_is_dropped(seed, p):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(300, p)), rng.normal(size=(30, p)) + 20])
    model = StudentTMixture(2).fit(X)
    assert model.noise_weight_ * len(X) < 1  # row
    assert not np.any(model.outliers(X))
    far = np.vstack([X, rng.choice([-1, 1], (20, p)) * rng.uniform(100, 200, (20, p))])
    assert np.all(StudentTMixture(2).fit(far).outliers(far)[-20:])  # this noise is


@pytest.mark.parametrize("far", [1, 60])
@pytest.mark.parametrize("radius", [8.0, 14.0])
@pytest.mark.parametrize("seed", [0, *thorough(1, 2)])
def test_far_rows_do_not_turn_a_ring_into_noise(seed, radius, far):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(400, 2)), ring_of(rng, 400, 2, radius)])
    directions = rng.normal(size=(far, 2))
    distant = directions / np.linalg.norm(directions, axis=1)[:, None] * rng.uniform(100, 1000, (far, 1))
    rows = np.vstack([X, distant])
    model, clean = StudentTMixture(2).fit(rows), StudentTMixture(2).fit(X)
    assert adjusted_rand_score(np.repeat([0, 1], 400), clean.labels_) > 0.9
    assert adjusted_rand_score(clean.labels_, model.labels_[:800]) > 0.99
    assert not np.any(clean.outliers(X))
    assert np.array_equal(np.flatnonzero(model.outliers(rows)), np.arange(800, len(rows)))


@pytest.mark.parametrize("distance", [1e2, 1e4, 1e6])
def test_a_distant_row_does_not_decide_which_other_rows_are_noise(distance):
    """The 122nd row of wine is far from the others, but by itself not worth a noise component."""
    X = StandardScaler().fit_transform(load_wine().data)
    rows = np.vstack([X, X[:1] + distance])
    clean, found = (np.flatnonzero(StudentTMixture(3).fit(each).outliers(each)) for each in (X, rows))
    assert np.array_equal(found, np.append(clean, len(X)))


def test_a_far_row_that_the_fit_has_not_seen_is_noise_where_the_fit_has_found_none():
    X, _ = gaussian_groups(200)
    model = StudentTMixture(3).fit(X)
    assert not np.any(model.outliers(X))
    assert np.all(model.outliers(np.array([[1e3, 0.0], [0.0, -1e6]])))


def test_counts_are_clustered_by_where_they_are_not_by_what_they_share():
    """Rows that agree in a small count lie on a line, which would be a component without the variance of rounding."""
    y = np.repeat([0, 1, 2], [1000, 50, 50])
    X = np.random.default_rng(0).poisson(np.array([[3, 3], [40, 3], [3, 40]])[y]).astype(float)
    model = StudentTMixture(3).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert np.min(np.diagonal(model.covariances_, axis1=1, axis2=2)) > 1 / 12
    assert StudentTMixture(3, covariance_type="diag").fit(X / 7).covariances_.min() > 1 / 12 / 49


def test_a_frequent_value_is_as_wide_as_makes_it_no_denser_than_the_other_values():
    X = np.column_stack([np.arange(1000.0), np.append(np.zeros(250), 7 + np.linspace(0, 3, 750))])
    grain = bulk_of(sample_of(X[np.random.default_rng(0).permutation(1000)])).grain
    assert grain[0] == 0
    width = (250 / 1000) / (750 / 1000 / 3)  # 750 values fill an interval of 3
    assert grain[1] == pytest.approx(width**2 / 12, rel=0.02)  # the variance of a uniform distribution
    flags = np.column_stack([np.arange(1000.0), np.arange(1000) % 5 == 0])
    assert bulk_of(sample_of(flags)).grain[1] == pytest.approx(1 / 12)  # two values are steps
    few = np.column_stack([np.arange(1000.0), np.append(np.zeros(990), np.linspace(1, 2, 10))])
    assert 1 <= bulk_of(sample_of(few)).units[1] <= 1.2  # the nearest of a few others speak


def test_equal_values_that_are_written_with_an_offset_are_equal():
    steps = np.random.default_rng(0).integers(1, 6, (300, 2)).astype(float)
    shifted = (0.01 * steps + 100) - 100.03  # with the digits that 100 has left
    assert len(np.unique(shifted[:, 0])) > 4
    grain = bulk_of(sample_of(shifted), slack=1e-12).grain
    np.testing.assert_allclose(grain, 1e-4 / 12)


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize("amounts", [lambda rng: rng.exponential(10, 600), lambda rng: rng.lognormal(3, 1, 600)])
def test_amounts_that_are_often_zero_do_not_hide_clusters_in_other_columns(share, amounts):
    """All zeros lie in a plane, which would be a component if it had no width."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        y = rng.choice(3, 600)
        spent = np.where(rng.uniform(size=600) < share, 0, amounts(rng))
        X = np.column_stack([np.array([[0, 0], [6, 1], [2, 7]])[y] + rng.normal(size=(600, 2)), spent])
        model = StudentTMixture(3).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.97
        assert np.mean(model.outliers(X)) < 0.02


def inactive_customers(rng):
    """Most have spent and ordered nothing; the others are of two kinds."""
    y = np.repeat(range(3), [650, 200, 150])
    spent, orders = np.array([0, 50, 10])[y] + 5 * rng.normal(size=1000), np.array([0, 3, 30])[y]
    amounts = np.column_stack([spent, orders + 2 * rng.normal(size=1000)]).clip(0) * (y > 0)[:, None]
    return np.column_stack([amounts, rng.normal(40, 10, 1000)]), y


def one_category_each(rng):
    """Six kinds of customers, each of which buys one kind of things."""
    y = np.repeat(range(6), 100)
    return np.eye(6)[y] * 20 * rng.lognormal(0, 0.3, (600, 1)), y


@pytest.mark.parametrize("draw", [inactive_customers, one_category_each])
@pytest.mark.parametrize("seed", range(3))
def test_a_cluster_of_equal_rows_that_is_most_of_a_column_stays_apart(draw, seed):
    X, y = draw(np.random.default_rng(seed))
    assert adjusted_rand_score(y, StudentTMixture(len(set(y))).fit(X).labels_) > 0.97
    assert StudentTMixture("auto").fit(X).n_components_ == len(set(y))


def test_a_cluster_of_zeros_and_one_of_positive_amounts_are_told_apart():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), np.append(np.zeros(200), rng.normal(100, 10, 200))])
    assert adjusted_rand_score(np.repeat([0, 1], 200), StudentTMixture(2).fit_predict(X)) == 1


@pytest.mark.parametrize("seed", range(3))
def test_noise_that_is_even_in_a_box_is_found_up_to_its_corners(seed):
    rng = np.random.default_rng(seed)
    centers = np.array([[x, y] for x in (-6, 0, 6) for y in (-6, 0, 6)])
    clusters = (rng.normal(size=(100, 9, 2)) + centers).reshape(-1, 2)
    X = np.vstack([clusters, rng.uniform(-10, 10, size=(300, 2))])
    model = StudentTMixture(9, random_state=seed).fit(X)
    assert model.noise_in_box_
    np.testing.assert_allclose(model.noise_center_, 0, atol=0.5)
    np.testing.assert_allclose(np.sqrt(np.diag(model.noise_covariance_)), 10, rtol=0.05)
    assert adjusted_rand_score(np.tile(np.arange(9), 100), model.labels_[:900]) > 0.9
    corners = np.flatnonzero(np.min(np.abs(X[900:]), axis=1) > 8.5)  # of the box, beyond the ellipsoid in it
    assert np.all(model.outliers(X)[900 + corners])


@pytest.mark.parametrize("kind", ["full", "spherical"])
def test_noise_is_in_no_box_where_rows_are_not_even_in_one(kind):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_t(3, size=(300, 2)), rng.standard_t(3, size=(300, 2)) + 12])
    model = StudentTMixture(2, covariance_type=kind, noise=True).fit(X)
    assert not model.noise_in_box_


def blas_threads():
    return {each["num_threads"] for each in ThreadpoolController().select(user_api="blas").info()}


def test_the_linear_algebra_of_starts_has_one_thread_and_gets_the_others_back():
    before, seen = blas_threads(), []

    @on_one_thread
    def inner(fault):
        seen.append(blas_threads())
        if fault:
            raise fault

    @on_one_thread
    def outer(fault=None):
        inner(fault)
        seen.append(blas_threads())

    outer()
    assert all(threads <= {1} for threads in seen)
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        outer(ZeroDivisionError())
    assert blas_threads() == before


@pytest.mark.parametrize(("n_rows", "n_features"), [(60, 300), (100, 300)])
@pytest.mark.parametrize("seed", [1, 2])
def test_fewer_rows_than_columns_are_clustered_by_the_few_columns_that_differ(seed, n_rows, n_features):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n_rows)
    X = rng.normal(size=(n_rows, n_features))
    X[:, :20] += (rng.normal(size=(3, 20)) * 2.5)[y]
    assert adjusted_rand_score(y, StudentTMixture(3).fit_predict(X)) == 1


# ---- clusters that are far apart -----------------------------------------------------------------


def in_a_row(n, p, apart, seed):
    """Three round clusters of unit width along the first column."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(3 * n, p)), np.repeat([0, 1, 2], n)
    X[:, 0] += apart * y
    return X, y, 10 ** rng.uniform(-3, 3, p)


@pytest.mark.parametrize(("n", "p", "apart"), [(25, 4, 13), (60, 6, 13), (100, 10, 13), (300, 20, 13), (60, 6, 100)])
def test_clusters_along_one_column_are_found_in_any_units(n, p, apart):
    for seed in range(4):
        X, y, units = in_a_row(n, p, apart, seed)
        assert adjusted_rand_score(y, StudentTMixture(3).fit(X * units).labels_) == 1


def test_the_distance_between_clusters_does_not_make_them_wide():
    widths = []
    for apart in (13, 100):
        X, _, _ = in_a_row(60, 6, apart, 0)
        model = StudentTMixture(3, reg_covar=0.0).fit(X)
        widths.append(np.sqrt(model.covariances_[:, 0, 0]))
    np.testing.assert_allclose(widths[1], widths[0], rtol=0.1)
    assert model.outlier_pvalues(X[:1] - [[12, 0, 0, 0, 0, 0]]) < 1e-6


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("p", "apart", "far"), [(2, 2.5, 300), (5, 3, 300), (8, 3.5, 300)])
def test_a_far_row_alone_is_no_component_if_clusters_would_be_joined_for_it(p, apart, far, seed):
    X = np.random.default_rng(seed).normal(size=(80, p))
    X[40:, 0] += apart
    sample, true = sample_of(np.vstack([X, np.full((1, p), far)])), np.repeat([0, 1, -1], [40, 40, 1])
    alone = np.repeat([0, 1], [80, 1])
    setting = setting_of(sample, 2, noise="auto", prior_rows=p + 2.0, ridge=1e-4 * 81 / 2)
    found = best_start(sample, [alone, true], setting)[0]
    assert adjusted_rand_score(true[:80], found.labels[:80]) > 0.3  # of two that overlap
    assert found.noise[80] > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_long_boxes_side_by_side_are_found_among_noise(seed):
    rng = np.random.default_rng(seed)
    boxes = [rng.uniform((20 + 110 * k, 20), (100 + 110 * k, 250), (800, 2)) for k in range(6)]
    X = np.vstack([*boxes, rng.uniform((-70, -20), (750, 290), (600, 2))])
    found = StudentTMixture(6).fit_predict(X)[:4800]
    assert adjusted_rand_score(np.repeat(np.arange(6), 800), found) > 0.97
