"""The search's criterion: its definition is the ICL of a t mixture by scipy, and the native search computes it."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import entropy, multivariate_t

from tkmeans.engines import native
from tkmeans.engines.native import _native
from tkmeans.models.dof import first_dof
from tkmeans.search import criterion
from tkmeans.search.criterion import NOISE_REACH, State, two_nearest

DIMENSIONS = [1, 2, 3, 5, 8, 16, 50, 200]
QUICK_LOG_ERROR = 2e-11


def case(p, K, kind="plain", n=300, seed=0):
    """Rows of overlapping clusters, their weights, and a state near the truth."""
    rng = np.random.default_rng([p, K, seed])
    centers = rng.normal(size=(K, p)) * 3 / np.sqrt(p)
    X = centers[rng.integers(K, size=n)] + rng.normal(size=(n, p))
    weight = np.ones(n)
    if "weights" in kind:
        weight = rng.choice([0.0, 0.5, 1.0, 3.0], n)
    if "far" in kind:
        X[: n // 5] *= 10 ** rng.uniform(0, 6, (n // 5, 1))
    if "single" in kind:
        centers = np.vstack([centers, X[-2:] + 100])
        X[-2:] += 100  # two clusters of one row
        weight[-1] = 1.25
    return X, weight, State(centers + 0.1 * rng.normal(size=centers.shape), 0.8, first_dof(p), K)


def search_at(X, weight, state):
    """The native search, put there."""
    search = native.new_search(X, weight, state.n_clusters, state.dof, NOISE_REACH)
    if state.noise_scale is not None:
        search.restore(state.centers, state.noise_scale)
        search.fix_noise()
    search.restore(state.centers, state.scale)
    return search


def state_of(search, p, dof, n_clusters, noise_scale=None):
    centers = np.empty((search.clusters, p))
    search.read_centers(centers)
    return State(centers, search.scale, dof, n_clusters, noise_scale)


def assert_cost_agrees(search, X, weight, state):
    # quick_log is off by 2e-11: once in l(d1); once in g, whose term has a slope of at most 1/2; once in ln(W/W_k).
    # Rounding: d of p squares by p + 2 units, hence l by h times as many; the sum over rows by n units of its terms.
    n, p = X.shape
    h, total, unit = (state.dof + p) / 2, weight.sum(), np.finfo(float).eps
    largest = criterion.noise_loss(state) + abs(np.log(total)) + p * abs(np.log(state.dof * state.scale))
    rounding = total * unit * (1.5 * h * (p + 2) + n * largest)
    shortcut = total * (1.5 * h + 1) * QUICK_LOG_ERROR
    assert abs(search.cost - criterion.cost(X, weight, state)) <= shortcut + rounding


# The definition against scipy.


@pytest.mark.parametrize("p", DIMENSIONS)
def test_with_one_cluster_the_cost_is_minus_the_log_density_of_a_t_distribution(p):
    X, weight, state = case(p, 1, "weights")
    center, m = state.centers[0], weight.sum()
    from_others = center + (X - center) * m / (m - 1)
    log_density = multivariate_t(center, state.scale * np.eye(p), df=state.dof).logpdf(from_others)
    constant = gammaln((state.dof + p) / 2) - gammaln(state.dof / 2) - p / 2 * np.log(np.pi)
    assert criterion.cost(X, weight, state) == pytest.approx(-weight @ (log_density - constant), rel=1e-12)


@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_expected_loss_is_likelihood_and_entropy_of_the_two_nearest_up_to_the_clear_gap(p):
    X, _, state = case(p, 6)
    nearest = two_nearest(X, state.centers)
    losses = np.stack([criterion.loss(nearest.d1, state), criterion.loss(nearest.d2, state)])  # (2, n)
    tau = np.exp(-losses - logsumexp(-losses, axis=0))
    icl = -logsumexp(-losses, axis=0) + entropy(tau, axis=0)
    left_out = icl - criterion.expected_loss(nearest.d1, nearest.d2, state)
    clear = losses[1] - losses[0] >= criterion.CLEAR_GAP
    np.testing.assert_allclose(left_out[~clear], 0, atol=1e-11)
    assert np.all(left_out[clear] > -1e-11)
    assert np.all(left_out[clear] < 0.0027)


def test_a_row_pays_the_logarithm_of_the_share_of_its_cluster():
    X, weight, _ = case(2, 1)
    labels = np.arange(len(X)) % 3
    X = X + 1e4 * np.eye(3, 2)[labels]  # so far apart that no row is ambiguous
    weight[labels == 0] = 4.0
    state = State(1e4 * np.eye(3, 2), 1.0, 1.0, 3)
    alone = [criterion.cost(X[labels == k], weight[labels == k], state) for k in range(3)]
    shares = 400 * np.log(600 / 400) + 200 * np.log(600 / 100)
    assert criterion.cost(X, weight, state) == pytest.approx(sum(alone) + shares, rel=1e-13)


def test_rows_are_measured_to_the_mean_of_the_other_rows_of_their_cluster():
    X, weight, _ = case(3, 4)
    labels = np.arange(len(X)) % 4
    X = X + 1e3 * np.eye(4, 3)[labels]
    centers = np.stack([X[labels == k].mean(axis=0) for k in range(4)])
    state = State(centers, 10.0, 1.0, 4)
    without = np.stack([np.delete(X, i, axis=0)[np.delete(labels, i) == labels[i]].mean(axis=0) for i in range(len(X))])
    expected = np.sum((X - without) ** 2, axis=1)
    np.testing.assert_allclose(criterion.distances(two_nearest(X, centers), weight, state), expected, rtol=1e-9)


def test_a_weight_of_two_is_a_row_that_stands_twice():
    X, _, state = case(3, 4, "far")
    times = np.random.default_rng(0).integers(0, 4, len(X))
    repeated = criterion.cost(X.repeat(times, axis=0), np.ones(times.sum()), state)
    assert criterion.cost(X, times.astype(float), state) == pytest.approx(repeated, rel=1e-13)


def test_noise_costs_the_same_wherever_it_is_and_as_much_as_the_rim_of_a_cluster_of_average_size():
    X, weight, state = case(2, 4, "far")
    far = two_nearest(X, state.centers).d1 >= criterion.cap(state)
    assert 10 < far.sum() < 60
    elsewhere = np.where(far[:, None], X + 1e7, X)
    assert criterion.cost(elsewhere, weight, state) == criterion.cost(X, weight, state)
    assert criterion.cap(state) == pytest.approx(600 * 2 * state.scale)
    assert criterion.loss(criterion.cap(state), state) == pytest.approx(criterion.noise_loss(state))


def test_the_density_of_held_noise_does_not_follow_the_scale():
    _, _, state = case(2, 4)
    held = [state._replace(scale=scale, noise_scale=0.8) for scale in (0.2, 0.8, 3.0)]
    density = [criterion.noise_loss(s) + np.log(s.dof * s.scale) for s in held]  # p / 2 = 1
    np.testing.assert_allclose(density, density[0])
    wide = state._replace(scale=1e9, noise_scale=0.8)
    assert criterion.cap(wide) == pytest.approx(wide.dof * wide.scale)  # no narrower than that


# The native search against the definition.


@pytest.mark.parametrize("kind", ["plain", "weights", "far", "far, single", "weights, far, single"])
@pytest.mark.parametrize("K", [1, 2, 7, 30])
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_native_cost_is_the_defined_one(p, K, kind):
    X, weight, state = case(p, K, kind)
    for noise_scale in (None, 0.8, 0.1, 1e-6):
        for scale in (1e-3, 0.8, 50.0):
            moved = state._replace(scale=scale, noise_scale=noise_scale)
            assert_cost_agrees(search_at(X, weight, moved), X, weight, moved)


@pytest.mark.parametrize("instruction_set", _native.available_instruction_sets())
@pytest.mark.parametrize("p", [1, 3, 16])
def test_the_native_cost_is_the_defined_one_with_every_instruction_set(p, instruction_set, monkeypatch):
    monkeypatch.setattr(native, "_INSTRUCTION_SET", instruction_set)
    X, weight, state = case(p, 7, "weights, far")
    assert_cost_agrees(search_at(X, weight, state), X, weight, state)


@pytest.mark.parametrize("kind", ["plain", "weights, far"])
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_native_cost_is_the_defined_one_along_a_search(p, kind):
    X, weight, (_, _, dof, K, _) = case(p, 7, kind)
    uniforms = np.random.default_rng(p).random(100)
    search = native.new_search(X, weight, K, dof, NOISE_REACH)
    search.seed(2 * K, uniforms, 3)
    assert_cost_agrees(search, X, weight, state_of(search, p, dof, K))
    search.refine(2)
    assert_cost_agrees(search, X, weight, state_of(search, p, dof, K))
    search.descend(K, K)
    search.refine(1)
    assert_cost_agrees(search, X, weight, state_of(search, p, dof, K))
    search.fix_noise()
    held = search.scale
    assert search.inhale(1, 3, uniforms, 16) >= 1
    search.refine(1)
    assert_cost_agrees(search, X, weight, state_of(search, p, dof, K, held))


@pytest.mark.parametrize("kind", ["plain", "far, single", "weights, far, single"])
@pytest.mark.parametrize("K", [1, 7])
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_native_masses_and_distances_are_the_defined_ones(p, K, kind):
    X, weight, state = case(p, K, kind)
    search, nearest = search_at(X, weight, state), two_nearest(X, state.centers)
    masses, distances, labels = np.empty(len(state.centers)), np.empty(len(X)), np.empty(len(X), np.int64)
    search.read_rows(masses, distances, labels)
    np.testing.assert_array_equal(labels, nearest.cluster)
    np.testing.assert_array_equal(masses, criterion.masses(nearest, weight, state))  # sums of halves are exact
    expected = criterion.distances(nearest, weight, state)
    np.testing.assert_allclose(distances, expected, rtol=2 * (p + 8) * np.finfo(float).eps)
