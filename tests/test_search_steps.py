"""Every step of the native search against its definition in Python, and whole searches by both.

Sums are taken in another order than the native ones, so centres agree to rounding; which row or
centre a step picks must be the same.
"""

import numpy as np
import pytest
from support.thoroughness import thorough
from test_criterion import DIMENSIONS, case, search_at, state_of

from tkmeans import engines
from tkmeans.engines import native, reference
from tkmeans.search import robust_search
from tkmeans.search.criterion import NOISE_REACH, State, cap, two_nearest
from tkmeans.search.reference_search import ReferenceSearch
from tkmeans.sources import Sample
from tkmeans.sources.base import canonical

KINDS = ["plain", "far", "weights, far, single"]


def definition_at(X, weight, state):
    """The search in Python, put there."""
    search = ReferenceSearch(X, weight, state.n_clusters, state.dof)
    if state.noise_scale is not None:
        search.restore(state.centers, state.noise_scale)
        search.fix_noise()
    search.restore(state.centers, state.scale)
    return search


def both_at(X, weight, state):
    return search_at(X, weight, state), definition_at(X, weight, state)


def assert_same_state(search, definition, X):
    got, expected = (state_of(each, X.shape[1], 1.0, 1) for each in (search, definition))
    np.testing.assert_allclose(got.centers, expected.centers, rtol=1e-10, atol=1e-10)
    assert got.scale == pytest.approx(expected.scale, rel=1e-10)


def varied(p, kind):
    """States with few centres and many, a narrow cap and a wide one, cheap noise and dear noise.

    Weights differ, since lone rows of one weight would promise exactly the same, and their sums are exact. But a row
    alone in its cluster has weight 1: what its loss exceeds the mean by is 0 then, without rounding.
    """
    for seed, (n, K, narrow) in enumerate([(300, 7, False), (300, 7, True), (60, 12, False), (60, 12, True)] * 3):
        X, weight, state = case(p, K, kind, n, seed)
        if kind == "heap":
            X[: n // 5] += 300
        kept = state.centers[seed % 2 :: 2] if seed > 3 else state.centers
        state = state._replace(centers=kept, n_clusters=K if seed % 3 else 10**6)
        if narrow:  # the least cap, 1.5 p: many rows of a cluster that is dropped become noise
            state = state._replace(scale=1.5 * p / state.dof, noise_scale=1e-9)
        nearest = two_nearest(X, kept)
        inside = (nearest.d1 < cap(state)) & (weight > 0)
        alone = inside & (np.bincount(nearest.cluster[inside], minlength=len(kept))[nearest.cluster] == 1)
        yield X, np.where(alone, 1.0, weight * (1 + np.arange(n) / 1024)), state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [1, 7])
@pytest.mark.parametrize("p", DIMENSIONS)
def test_refining_moves_centres_to_robust_means_and_settles_the_scale(p, K, kind):
    X, weight, state = case(p, K, kind)
    search, definition = both_at(X, weight, state)
    for _ in range(3):
        search.refine(1)
        definition.refine(1)
        assert_same_state(search, definition, X)


@pytest.mark.parametrize("p", [1, 2, 8])
def test_refining_against_held_noise_is_the_same_with_another_cap(p):
    X, weight, state = case(p, 7, "far")
    for noise_scale in (0.1, 10.0):
        search, definition = both_at(X, weight, state._replace(noise_scale=noise_scale))
        search.refine(1)
        definition.refine(1)
        assert_same_state(search, definition, X)


@pytest.mark.parametrize("p", [1, 2, 8])
def test_a_robust_mean_weighs_a_row_by_its_distance_and_leaves_noise_out(p):
    X, weight, state = case(p, 1, "weights, far")
    definition = definition_at(X, weight, state)
    definition.refine(1)
    d = np.sum((X - state.centers[0]) ** 2, axis=1)
    u = weight / (state.dof + d / state.scale) * (d < 600 * p * state.scale)
    expected = [np.average(column, weights=u) for column in X.T]
    np.testing.assert_allclose(state_of(definition, p, 1.0, 1).centers[0], expected, rtol=1e-12)


@pytest.mark.parametrize("p", [1, 2, 8])
def test_the_scale_stays_above_a_tenth_of_the_lower_quartile(p):
    half = np.random.default_rng(p).normal(size=(100, p))
    half[:20] *= 1e-6  # where the likelihood has a pole with a nu as small as 0.1
    X, weight = np.vstack([half, -half]), np.ones(200)
    search, definition = both_at(X, weight, State(np.zeros((1, p)), 1e-12, 0.1, 5))
    search.refine(1)
    definition.refine(1)
    assert_same_state(search, definition, X)
    d = np.sort(np.sum((X - state_of(search, p, 0.1, 5).centers[0]) ** 2, axis=1))
    lower = 2.0 ** np.floor(np.log2(d[49]))
    steps = lower * (1 + np.arange(8) / 8)  # the quartile is rounded down to one of these
    assert search.scale == pytest.approx(0.1 * steps[steps <= d[49]][-1] / p)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_first_seeds_are_the_rows_that_lower_the_bounded_loss_most(p, kind):
    X, weight, (_, _, dof, K, _) = case(p, 7, kind)
    uniforms = np.random.default_rng(p).random(60)
    search, definition = native.new_search(X, weight, K, dof, NOISE_REACH), ReferenceSearch(X, weight, K, dof)
    search.seed(2 * K, uniforms, 3)
    definition.seed(2 * K, uniforms, 3)
    got, expected = state_of(search, p, dof, K), state_of(definition, p, dof, K)
    np.testing.assert_array_equal(got.centers, expected.centers)
    assert got.scale == pytest.approx(expected.scale, rel=1e-14)
    assert search.cost == pytest.approx(definition.cost, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_centre_that_is_missed_least_is_dropped_and_its_receivers_are_refitted(p, kind):
    for X, weight, state in varied(p, kind):
        search, definition = both_at(X, weight, state)
        for left in (len(state.centers) - 1, len(state.centers) // 2):
            search.descend(left, left)
            definition.descend(left, left)
            assert_same_state(search, definition, X)


@pytest.mark.parametrize("p", DIMENSIONS)
def test_below_the_target_centres_are_dropped_only_while_that_lowers_the_cost(p):
    X, weight, state = case(p, 7)
    doubled = state._replace(centers=np.vstack([state.centers, state.centers + 1e-3]))
    for start in (state, doubled):
        search, definition = both_at(X, weight, start)
        search.descend(100, 1)
        definition.descend(100, 1)
        assert_same_state(search, definition, X)
        assert search.clusters <= len(state.centers)


@pytest.mark.parametrize("kind", [*KINDS, "heap"])
@pytest.mark.parametrize("p", [*DIMENSIONS[:-1], *thorough(*DIMENSIONS[-1:])])
def test_the_centres_that_promise_most_are_added(p, kind):
    uniforms = np.random.default_rng(p).random(100)
    for X, weight, state in varied(p, kind):
        for needed, at_most in ((0, 20), (2, 3)):
            search, definition = both_at(X, weight, state)
            added = search.inhale(needed, at_most, uniforms, 16)
            assert added == definition.inhale(needed, at_most, uniforms, 16)
            assert added <= at_most
            assert_same_state(search, definition, X)


# Whole searches. A decision between two rows or centres that promise exactly the same falls by rounding; so does what
# is left of the scale where every centre sits on the one row it has. Rows with a continuous density, ten and more to a
# cluster, have neither.


def whole_searches(problem, monkeypatch):
    """What the plan finds with the native steps and with those in Python, and the next number each would draw."""
    rng = np.random.default_rng(problem)
    p, K = int(rng.choice([1, 2, 3, 5, 8, 16, 50])), int(rng.integers(1, 9))
    n = K * int(rng.integers(10, 40))
    centers = rng.normal(size=(K, p)) * rng.uniform(1, 6)
    X, weight = centers[rng.integers(K, size=n)] + rng.normal(size=(n, p)), np.ones(n)
    if problem % 3 == 1:
        X[: n // 5] *= 10 ** rng.uniform(0, 4, (n // 5, 1))
    if problem % 4 == 3:
        weight = rng.uniform(0.2, 3, n)
    sample = canonical(Sample(X, weight))
    for engine in (native, reference):
        random_state = np.random.RandomState(problem)
        with monkeypatch.context() as patch:
            patch.setattr(engines, "select", {"auto": engine}.get)
            yield robust_search(sample, K, random_state), random_state.random_sample()


@pytest.mark.parametrize("problem", range(40))
def test_the_search_in_python_finds_what_the_native_search_finds(problem, monkeypatch):
    (found, next_draw), (slowly, slow_draw) = whole_searches(problem, monkeypatch)
    assert next_draw == slow_draw  # as many breaths
    np.testing.assert_allclose(slowly.centers, found.centers, rtol=0, atol=1e-8 * np.abs(found.centers).max())
    assert slowly.scale == pytest.approx(found.scale, rel=1e-8)
    assert (slowly.dof, slowly.weights_differ) == (found.dof, found.weights_differ)
