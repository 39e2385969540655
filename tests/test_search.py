"""The robust search: the same right answer from every seed, outliers or not."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score
from support.model_inputs import t_mixture
from support.paper_data import benchmark_set

from tkmeans import TKMeans, engines
from tkmeans.engines import native, reference
from tkmeans.search import fitted_tails, robust_search
from tkmeans.search.center_search import TAIL_ROWS
from tkmeans.search.reference_search import ReferenceSearch
from tkmeans.sources import Sample
from tkmeans.sources.base import canonical

NOISE = {
    "clean": lambda rng, n, p: np.empty((0, p)),
    "20 % uniform": lambda rng, n, p: rng.uniform(-1, 1, (n // 5, p)),
    "5 % far": lambda rng, n, p: rng.uniform(-10, 10, (n // 20, p)),
    "10 % Cauchy": lambda rng, n, p: rng.standard_cauchy((n // 10, p)),
    "30 % far": lambda rng, n, p: rng.uniform(-10, 10, (3 * n // 10, p)),
    "5 % in one clump far away": lambda rng, n, p: 8 + 2 * rng.normal(size=(n // 20, p)),
}


def separated(n_clusters, n_features, sizes, seed, *, heavy=False, std=0.03):
    """Clusters that do not touch: their centres keep eight standard deviations apart."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-1, 1, (1, n_features))
    apart = 8 * std * np.sqrt(n_features)
    while len(centers) < n_clusters:
        point = rng.uniform(-1, 1, n_features)
        if np.linalg.norm(centers - point, axis=1).min() > apart:
            centers = np.vstack([centers, point])
    y = np.repeat(np.arange(n_clusters), sizes)
    noise = rng.standard_t(3, (len(y), n_features)) if heavy else rng.standard_normal((len(y), n_features))
    return centers[y] + std * noise, y


@pytest.mark.parametrize("noise", NOISE)
@pytest.mark.parametrize(
    ("n_clusters", "n_features", "sizes", "heavy"),
    [
        (10, 2, 100, False),
        (10, 2, [20] * 5 + [400] * 5, False),
        (6, 5, 100, True),
        (4, 128, 60, False),
        (3, 1, 200, False),
    ],
    ids=["plain", "sizes differ 20 times", "heavy tails", "128 dimensions", "one dimension"],
)
def test_the_search_finds_separated_clusters_from_every_seed(n_clusters, n_features, sizes, heavy, noise):
    for seed in range(3):
        std = 0.01 if n_features == 1 else 0.03
        X, y = separated(n_clusters, n_features, sizes, seed, heavy=heavy, std=std)
        rows = np.vstack([X, NOISE[noise](np.random.default_rng(seed), len(X), n_features)])
        labels = TKMeans(n_clusters, random_state=seed).fit_predict(rows)[: len(X)]
        assert adjusted_rand_score(y, labels) > 0.97


@pytest.mark.parametrize("name", ["S1", "S3", "A1", "A3", "dim032", "unbalance"])
@pytest.mark.parametrize("noise", ["clean", "5 % far", "30 % far"])
def test_all_seeds_of_the_search_agree_on_the_papers_sets(name, noise):
    # The full table, 20 seeds and ten sets, is benchmarks/stability.py.
    bar = {"S1": 0.984, "S3": 0.726, "A1": 0.946, "A3": 0.994, "dim032": 1.0, "unbalance": 0.99}[name]
    X, y = benchmark_set(name)
    scores = []
    for seed in range(3):
        rows = np.vstack([X, NOISE[noise](np.random.default_rng(seed), len(X), X.shape[1])])
        labels = TKMeans(len(np.unique(y)), random_state=seed).fit_predict(rows)[: len(X)]
        scores.append(adjusted_rand_score(y, labels))
    assert min(scores) >= bar
    assert np.ptp(scores) < 0.006


def test_far_rows_do_not_change_a_hundred_clusters_in_a_hundred_thousand_rows():
    X, y = separated(100, 2, 1000, seed=0, std=0.015)
    far = np.random.default_rng(0).uniform(-10, 10, (len(X) // 20, 2))
    clean = TKMeans(100, random_state=0).fit_predict(X)
    dirty = TKMeans(100, random_state=0).fit_predict(np.vstack([X, far]))[: len(X)]
    assert adjusted_rand_score(y, dirty) > adjusted_rand_score(y, clean) - 0.01
    assert adjusted_rand_score(y, clean) > 0.99


@pytest.mark.parametrize(
    ("n_features", "n_clusters", "n_rows"), [(50, 8, 150), (100, 3, 60), (200, 8, 400), (200, 3, 400)]
)
@pytest.mark.parametrize("init", ["robust", "k-means++"])
def test_no_centre_ends_on_a_single_row_in_many_dimensions_with_few_rows(n_features, n_clusters, n_rows, init):
    rng = np.random.default_rng(1)
    centers = rng.standard_normal((n_clusters, n_features))
    centers *= 10 / pdist(centers).min()  # in units of the standard deviation: less than two rows are apart
    y = np.arange(n_rows) % n_clusters
    X = centers[y] + rng.standard_normal((n_rows, n_features))
    model = TKMeans(n_clusters, init=init, n_init=3, random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert model.scale_ == pytest.approx(1, abs=0.2)  # less than 1, as maximum likelihood has it with few rows


@pytest.mark.parametrize("seed", [142, 325, *range(10)])  # with three breaths the first two left a centre on two rows
def test_no_centre_is_left_on_a_far_row_where_clusters_with_heavy_tails_touch(seed):
    X, _, _ = t_mixture(n=3000, n_clusters=6, n_features=3, dof=2.0, scale=0.6)
    assert np.bincount(TKMeans(6, random_state=seed).fit(X).labels_).min() > 400


@pytest.mark.thorough
def test_clusters_in_512_dimensions_with_far_rows_are_found():
    X, y = separated(8, 512, 50, seed=0)
    far = np.random.default_rng(0).uniform(-10, 10, (40, 512))
    labels = TKMeans(8, random_state=0).fit_predict(np.vstack([X, far]))[: len(X)]
    assert adjusted_rand_score(y, labels) == 1.0


@pytest.mark.parametrize("noise", ["clean", "5 % far", "20 % uniform"])
def test_cluster_weights_are_estimated_only_where_sizes_differ(noise):
    for sizes, differ in (([100] * 8, False), ([20, 20, 20, 20, 300, 300, 300, 300], True)):
        X, _ = separated(8, 2, sizes, seed=1)
        rows = np.vstack([X, NOISE[noise](np.random.default_rng(1), len(X), 2)])
        weights = TKMeans(8, random_state=0).fit(rows).cluster_weights_
        assert (np.ptp(weights) > 1e-6) == differ


def sample_of(X, weight=None):
    return canonical(Sample(np.asarray(X, dtype=float), np.ones(len(X)) if weight is None else weight))


def test_the_search_finds_equal_starts_from_equal_random_states_and_from_repeated_or_weighted_rows():
    X, _ = separated(5, 2, 60, seed=0)
    times = np.random.default_rng(0).integers(0, 3, len(X))
    repeated = robust_search(sample_of(X.repeat(times, axis=0)), 5, np.random.RandomState(0))
    shuffled = np.random.default_rng(1).permutation(np.flatnonzero(times))
    weighted = robust_search(sample_of(X[shuffled], times[shuffled].astype(float)), 5, np.random.RandomState(0))
    np.testing.assert_array_equal(repeated.centers, weighted.centers)
    assert repeated.scale == weighted.scale


@pytest.mark.parametrize(
    ("rows", "n_clusters"),
    [
        (np.zeros((1, 1)), 1),
        (np.zeros((5, 2)), 3),
        (np.eye(4), 4),
        (np.eye(4), 3),
        (np.arange(10.0)[:, None], 3),
        (np.repeat([[0.0, 0.0], [1.0, 1.0]], 50, axis=0), 5),
        (np.r_[np.zeros((50, 1)), [[1e6]]], 2),
        (np.random.default_rng(0).choice([-1e140, -1.0, 0.0, 5e-324, 1e140], (50, 2)), 4),
        (np.random.default_rng(0).normal(size=(30, 60)), 12),
    ],
    ids=["one row", "equal rows", "K = n", "K = n - 1", "a grid", "two points", "one off", "at 1e140", "wide"],
)
@pytest.mark.parametrize("steps", ["native", "python"])
def test_the_search_of_degenerate_samples_returns_as_many_finite_centres_as_asked_for(
    rows, n_clusters, steps, monkeypatch
):
    if steps == "python":
        monkeypatch.setattr(engines, "select", lambda name: reference)
    found = robust_search(sample_of(rows), n_clusters, np.random.RandomState(0))
    assert found.centers.shape == (n_clusters, rows.shape[1])
    assert np.all(np.isfinite(found.centers))
    assert 0 < found.scale < np.inf
    assert 1 <= found.dof <= 200


def test_the_search_with_a_fixed_dof_keeps_it_and_estimates_the_scale():
    X, _ = separated(5, 2, 100, seed=0, std=0.03)
    sample = sample_of(X)
    found = fitted_tails(robust_search(sample, 5, np.random.RandomState(0)), sample, 50.0)
    assert found.dof == 50
    assert found.scale == pytest.approx(0.03**2, rel=0.15)


ROWS = np.random.default_rng(0).normal(size=(20, 2))
UNIFORMS = np.random.default_rng(0).random(100)


def new_search(rows=ROWS, weight=None, n_clusters=3, dof=1.0, noise_reach=600.0, **limits):
    weight = np.ones(len(rows)) if weight is None else weight
    return native.new_search(rows, weight, n_clusters, dof, noise_reach, **limits)


def with_one(value):
    """The rows, one coordinate of which is another."""
    rows = ROWS.copy()
    rows[7, 1] = value
    return rows


def seeded(n_centers=4):
    search = new_search()
    search.seed(n_centers, UNIFORMS, 3)
    return search


@pytest.mark.parametrize("least", [0.5, 2.0])
def test_no_scale_of_a_search_is_below_the_least(least):
    rows = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 9.0], [5.0, 5.0]], [20, 10, 10, 10], axis=0)
    for search in (new_search(rows, least=least), ReferenceSearch(rows, np.ones(50), 3, 1.0, least)):
        search.seed(4, UNIFORMS, 3)
        search.refine(2)
        search.descend(3, 2)
        search.refine(2)
        assert search.scale >= least
        search.restore(rows[[0, 20, 40]], 0.01)
        search.refine(1)
        assert search.scale == pytest.approx(least)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": np.ones(19)}, "weights must have one entry per row"),
        ({"rows": np.empty((0, 2))}, "at least one row"),
        ({"rows": np.empty((20, 0))}, "one column"),
        ({"n_clusters": 0}, "clusters must be at least 1"),
        ({"dof": 0.0}, "dof must be positive"),
        ({"noise_reach": 0.0}, "noise_reach must be positive"),
        ({"dof": np.inf}, "dof must be positive and finite"),
        ({"noise_reach": np.nan}, "noise_reach must be positive and finite"),
        ({"least": -1.0}, "least_scale must be finite and not negative"),
        ({"least": np.nan}, "least_scale must be finite and not negative"),
        ({"rows": with_one(np.nan)}, "rows must be finite"),
        ({"rows": with_one(-np.inf)}, "rows must be finite"),
        ({"rows": with_one(1e160)}, "no coordinate beyond 1e140"),  # its square overflows
        ({"weight": np.zeros(20)}, "positive finite sum"),
        ({"weight": np.full(20, 1e307)}, "positive finite sum"),
        ({"weight": -np.arange(20.0)}, "must not be negative"),
        ({"weight": np.full(20, np.nan)}, "must not be negative"),
    ],
)
def test_a_native_search_refuses_invalid_rows_weights_and_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        new_search(**arguments)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda search: search.seed(4, UNIFORMS, 3), "seeded once"),
        (lambda search: search.inhale(0, 1, UNIFORMS[:9], 2), r"2 K \+ noise_draws uniforms"),
        (lambda search: search.inhale(0, 1, UNIFORMS, -1), "noise_draws must not be negative"),
        (lambda search: search.descend(3, 0), "floor must be at least 1"),
        (lambda search: search.restore(np.empty((3, 1)), 1.0), "same number of features"),
        (lambda search: search.restore(np.empty((0, 2)), 1.0), "at least one row"),
        (lambda search: search.restore(np.zeros((3, 2)), 0.0), "scale must be positive"),
        (lambda search: search.restore(np.zeros((3, 2)), np.inf), "scale must be positive and finite"),
        (lambda search: search.restore(np.full((3, 2), np.nan), 1.0), "centers must be finite"),
        (lambda search: search.restore(np.full((3, 2), 1e200), 1.0), "no coordinate beyond 1e140"),
        (lambda search: search.read_centers(np.empty((3, 2))), "shape of centers"),
        (lambda search: search.read_centers(np.empty((4, 3))), "shape of centers"),
        (lambda search: search.read_rows(np.empty(3), np.empty(20), np.empty(20, int)), "one entry per center"),
        (lambda search: search.read_rows(np.empty(4), np.empty(19), np.empty(20, int)), "one entry per row"),
        (lambda search: search.read_rows(np.empty(4), np.empty(20), np.empty(19, int)), "one entry per row"),
    ],
)
def test_a_native_search_refuses_invalid_arguments_and_stays_unchanged(call, message):
    search, untouched = seeded(), seeded()
    with pytest.raises(ValueError, match=message):
        call(search)
    assert search.clusters == untouched.clusters == 4
    assert search.cost == untouched.cost


@pytest.mark.parametrize(
    ("target", "uniforms", "trials", "message"),
    [
        (4, UNIFORMS[:9], 3, r"trials \* \(target - 1\) uniforms"),
        (0, UNIFORMS, 3, "at least 1"),
        (4, UNIFORMS, 0, "at least 1"),
        (2**62, UNIFORMS, 3, r"trials \* \(target - 1\) uniforms"),  # a product that overflows
        (1, UNIFORMS[:0], 3, "uniforms"),
    ],
)
def test_seeding_a_native_search_needs_as_many_uniforms_as_it_draws(target, uniforms, trials, message):
    with pytest.raises(ValueError, match=message):
        new_search().seed(target, uniforms, trials)
    new_search().seed(4, UNIFORMS[:10], 3)


@pytest.mark.parametrize(
    "call",
    [
        lambda search: search.refine(1),
        lambda search: search.inhale(0, 1, UNIFORMS, 2),
        lambda search: search.descend(3, 2),
        lambda search: search.cost,
        lambda search: search.read_rows(np.empty(0), np.empty(20), np.empty(20, int)),
    ],
    ids=["refine", "inhale", "descend", "cost", "read_rows"],
)
def test_a_native_search_without_centres_refuses_to_be_improved(call):
    with pytest.raises(ValueError, match="seed or restore comes first"):
        call(new_search())


@pytest.mark.parametrize("n_features", [1, 2, 3, 40])
def test_a_native_search_of_rows_at_1e140_keeps_its_centres_among_them(n_features):
    rows = np.random.default_rng(0).choice([-1e140, -1.0, 0.0, 5e-324, 1e140], (50, n_features))
    search = new_search(rows, n_clusters=4)
    search.seed(8, np.linspace(0, 0.99, 30), 3)
    search.refine(3)
    search.descend(2, 1)
    search.inhale(2, 4, np.linspace(0, 0.99, 30), 6)
    search.refine(3)
    centers = np.empty((search.clusters, n_features))
    search.read_centers(centers)
    assert np.all(np.abs(centers) <= 1e140)


@pytest.mark.parametrize("dof", [1.0, 3.0, 30.0])
def test_the_scale_of_a_start_is_the_most_likely_one_of_its_distances(dof):
    n, p = 3000, 3
    d2 = p * 0.05 * stats.f(p, dof).rvs(n, random_state=0)
    found = robust_search(
        Sample(np.random.default_rng(0).normal(size=(60, p)), np.ones(60)), 2, np.random.RandomState(0)
    )
    found = found._replace(scale=0.2, nearest=d2, labels=np.zeros(n, int))
    seen = d2[:: n // TAIL_ROWS]
    best = minimize_scalar(
        lambda log_scale: -np.mean(stats.f.logpdf(seen, p, dof, scale=p * np.exp(log_scale))), (-6, 0), tol=1e-10
    )
    started = fitted_tails(found, Sample(np.zeros((n, p)), np.ones(n)), dof)
    assert started.dof == dof
    assert started.scale == pytest.approx(np.exp(best.x), rel=0.02)
