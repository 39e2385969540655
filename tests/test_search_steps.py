"""Every step of the native search against its definition, which is written here as plainly as it can be.

Sums are taken in another order than the native ones, so centres agree to rounding; which row or
centre a step picks must be the same.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from test_criterion import DIMENSIONS, case, search_at, state_of

from tkmeans.engines import native
from tkmeans.search import criterion
from tkmeans.search.criterion import NOISE_REACH, State, cap

KINDS = ["plain", "far", "weights, far, single"]


class View(NamedTuple):
    """The two nearest centres of each row, and what it loses by them; -1 and infinity where there is none."""

    first: np.ndarray
    d1: np.ndarray
    second: np.ndarray
    d2: np.ndarray
    loss: np.ndarray


def view_of(X, state):
    d = np.pad(cdist(X, state.centers, "sqeuclidean"), ((0, 0), (0, 1)), constant_values=np.inf)
    order = np.argsort(d, axis=1, kind="stable")[:, :2]
    (first, second), (d1, d2) = order.T, np.take_along_axis(d, order, axis=1).T
    return View(first, d1, np.where(np.isinf(d2), -1, second), d2, bounded_loss(d1, d2, state))


def bounded_loss(d1, d2, state):
    """The expected loss of a row, or that of noise."""
    near = d1 < cap(state)
    return np.where(near, criterion.expected_loss(np.where(near, d1, 0), d2, state), criterion.noise_loss(state))


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
        view = view_of(X, state)
        inside = (view.d1 < cap(state)) & (weight > 0)
        alone = inside & (np.bincount(view.first[inside], minlength=len(kept))[view.first] == 1)
        yield X, np.where(alone, 1.0, weight * (1 + np.arange(n) / 1024)), state


def robust_mean(X, u):
    return u @ X / u.sum()


def pull(weight, d, state):
    """How strongly rows at squared distance d pull at a centre: not at all beyond the cap."""
    return np.where(d < cap(state), weight / (1 + d / (state.dof * state.scale)), 0.0)


def mass_of(view, weight, state):
    near = view.d1 < cap(state)
    return np.bincount(view.first[near], weight[near], len(state.centers))


def size_cost(mass, total):
    """What the weight of a cluster costs its rows."""
    return np.where(mass > 0, mass * np.log(total / np.where(mass > 0, mass, 1)), 0.0)


def drawn(odds, uniform):
    return min(np.searchsorted(np.cumsum(odds), uniform * odds.sum(), side="right"), len(odds) - 1)


# Refining: robust means of the assigned rows, then the scale.


def refined(X, weight, state):
    view = view_of(X, state)
    centers = state.centers.copy()
    for k in range(len(centers)):
        u = np.where(view.first == k, pull(weight, view.d1, state), 0)
        if u.sum() > 0:
            centers[k] = robust_mean(X, u)
    state = state._replace(centers=centers)
    least = 0.1 * low_quartile(view_of(X, state).d1, weight) / X.shape[1]
    for _ in range(10):
        before = state.scale
        state = state._replace(scale=max(next_scale(X, weight, state), least))
        if abs(state.scale - before) < 0.01 * before:
            break
    return state


def next_scale(X, weight, state):
    """One parameter-expanded step of eqn:alpha; a cluster of one row tells nothing of the scale."""
    view = view_of(X, state)
    mass = mass_of(view, weight, state)[view.first]
    known = (view.d1 < cap(state)) & (mass > 1.5)
    d = criterion.seen_from_others(view.d1[known], mass[known])
    u = weight[known] / (1 + d / (state.dof * state.scale)) * (d > 0)
    return u @ d / (X.shape[1] * u.sum()) if u @ d > 0 else state.scale


def low_quartile(d, weight):
    """Of the positive distances, rounded down to four significant bits."""
    d, weight = d[d > 0], weight[d > 0]
    order = np.argsort(d)
    reached = np.searchsorted(np.cumsum(weight[order]), 0.25 * weight.sum())
    fraction, exponent = np.frexp(d[order][reached])
    return np.ldexp(np.floor(fraction * 16) / 16, exponent)


def assert_same_state(search, expected):
    got = state_of(search, expected.centers.shape[1], expected.dof, expected.n_clusters)
    np.testing.assert_allclose(got.centers, expected.centers, rtol=1e-10, atol=1e-10)
    assert got.scale == pytest.approx(expected.scale, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [1, 7])
@pytest.mark.parametrize("p", DIMENSIONS)
def test_refining_moves_centres_to_robust_means_and_settles_the_scale(p, K, kind):
    X, weight, state = case(p, K, kind)
    search = search_at(X, weight, state)
    for _ in range(3):
        search.refine(1)
        state = refined(X, weight, state)
        assert_same_state(search, state)


@pytest.mark.parametrize("p", [1, 2, 8])
def test_refining_against_held_noise_is_the_same_with_another_cap(p):
    X, weight, state = case(p, 7, "far")
    for noise_scale in (0.1, 10.0):
        held = state._replace(noise_scale=noise_scale)
        search = search_at(X, weight, held)
        search.refine(1)
        assert_same_state(search, refined(X, weight, held))


@pytest.mark.parametrize("p", [1, 2, 8])
def test_the_scale_stays_above_a_tenth_of_the_lower_quartile(p):
    half = np.random.default_rng(p).normal(size=(100, p))
    half[:20] *= 1e-6  # where the likelihood has a pole with a nu as small as 0.1
    X, weight = np.vstack([half, -half]), np.ones(200)
    state = State(np.zeros((1, p)), 1e-12, 0.1, 5)
    search = search_at(X, weight, state)
    search.refine(1)
    settled = refined(X, weight, state)
    assert_same_state(search, settled)
    assert settled.scale == pytest.approx(0.1 * low_quartile(view_of(X, settled).d1, weight) / p)


# The first seeds: greedy k-means++ with a bounded loss, and a scale that follows.


def seeded(X, weight, dof, n_clusters, target, uniforms, trials):
    """The numbers of the rows that become centres, and the scale."""
    uniform, p = iter(uniforms), X.shape[1]
    chosen = [drawn(weight, next(uniform))]
    d1 = cdist(X, X[chosen], "sqeuclidean")[:, 0]
    state = State(X[chosen], low_quartile(d1, weight) / p, dof, n_clusters)
    least, rescale_at = 1e-10 * state.scale, 1.25
    while len(chosen) < target:
        if len(chosen) >= rescale_at:
            state = state._replace(scale=max(low_quartile(d1, weight) / p, least))
            rescale_at = 1.25 * len(chosen)
        loss = nearest_loss(d1, state)
        far = d1 >= cap(state)
        by_loss, by_noise = weight * loss * ~far, weight * far
        gains = []
        for trial in range(trials):
            from_noise = (trial % 2 == 1 and by_noise.sum() > 0) or by_loss.sum() == 0
            i = drawn(by_noise if from_noise else by_loss, next(uniform))
            after = np.minimum(loss, nearest_loss(cdist(X, X[[i]], "sqeuclidean")[:, 0], state))
            gains.append((weight @ (loss - after) - min(weight[i], 1) * loss[i], i))  # itself does not count
        chosen.append(max(gains)[1])
        d1 = np.minimum(d1, cdist(X, X[chosen[-1:]], "sqeuclidean")[:, 0])
    return chosen, state.scale


def nearest_loss(d, state):
    return np.minimum(criterion.loss(d, state), criterion.noise_loss(state))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_first_seeds_are_the_rows_that_lower_the_bounded_loss_most(p, kind):
    X, weight, (_, _, dof, K, _) = case(p, 7, kind)
    uniforms = np.random.default_rng(p).random(60)
    search = native.new_search(X, weight, K, dof, NOISE_REACH)
    search.seed(2 * K, uniforms, 3)
    chosen, scale = seeded(X, weight, dof, K, 2 * K, uniforms, 3)
    got = state_of(search, p, dof, K)
    np.testing.assert_array_equal(got.centers, X[chosen])
    assert got.scale == pytest.approx(scale, rel=1e-14)


# Dropping a centre: its rows go to their second-nearest centres, the four that get most are refitted.


class Drop(NamedTuple):
    price: float
    receivers: np.ndarray
    refitted: np.ndarray


def drop_of(k, X, weight, view, state):
    mass, total = mass_of(view, weight, state), weight.sum()
    going = (view.first == k) & (view.second >= 0) & (view.d2 < cap(state))
    received = np.bincount(view.second[going], weight[going], len(state.centers))
    receivers = [j for j in np.argsort(-received, kind="stable")[:4] if received[j] > 0]
    slot = np.full(len(state.centers) + 1, -1)  # the last entry is for second = -1
    slot[receivers] = np.arange(len(receivers))

    local = np.flatnonzero((view.first == k) | (slot[view.first] >= 0))
    x, w, first, second, old_d1, old_d2 = (a[local] for a in (X, weight, view.first, view.second, view.d1, view.d2))
    outside = np.where((second >= 0) & (second != k) & (slot[second] < 0), old_d2, np.inf)
    at, d1 = np.where(first == k, slot[second], slot[first]), np.where(first == k, old_d2, old_d1)
    refitted = state.centers[receivers].copy()
    for _ in range(2):
        for r in range(len(receivers)):
            u = pull(w, d1, state) * (at == r)
            if u.sum() > 0:
                refitted[r] = robust_mean(x, u)
        d = np.column_stack([outside, *(np.sum((x - c) ** 2, axis=1) for c in refitted)])
        at, (d1, d2) = np.argmin(d, axis=1) - 1, np.sort(np.pad(d, ((0, 0), (0, 1)), constant_values=np.inf))[:, :2].T

    before = view.loss[local]
    if not mass[k] > 1 or (mass[k] / (mass[k] - 1)) ** 2 > 1.02:
        seen = criterion.seen_from_others(old_d1, np.full(len(local), mass[k]))
        before = np.where(first == k, bounded_loss(seen, np.maximum(seen, old_d2), state), before)
    was_near, is_near = old_d1 < cap(state), d1 < cap(state)
    now_at = np.where(at >= 0, np.append(receivers, -1).astype(int)[at], second)
    after = mass.copy()
    np.subtract.at(after, first[was_near], w[was_near])
    np.add.at(after, now_at[is_near], w[is_near])
    price = w @ (bounded_loss(d1, d2, state) - before)
    price += np.sum(size_cost(after, total) - size_cost(mass, total))
    price += np.log(state.n_clusters) * (w @ was_near - w @ is_near)
    return Drop(price, receivers, refitted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_centre_that_is_missed_least_is_dropped_and_its_receivers_are_refitted(p, kind):
    for X, weight, state in varied(p, kind):
        search, view = search_at(X, weight, state), view_of(X, state)
        search.descend(len(state.centers) - 1, len(state.centers) - 1)
        drops = [drop_of(k, X, weight, view, state) for k in range(len(state.centers))]
        k = int(np.argmin([drop.price for drop in drops]))
        centers = state.centers.copy()
        centers[drops[k].receivers] = drops[k].refitted
        centers[k] = centers[-1]
        assert_same_state(search, state._replace(centers=centers[:-1]))


@pytest.mark.parametrize("p", DIMENSIONS)
def test_below_the_target_centres_are_dropped_only_while_that_lowers_the_cost(p):
    X, weight, state = case(p, 7)
    doubled = state._replace(centers=np.vstack([state.centers, state.centers + 1e-3]))
    for start in (state, doubled):
        search = search_at(X, weight, start)
        search.descend(100, 1)
        search.refine(0)
        left = state_of(search, p, state.dof, 7)
        view = view_of(X, left)
        cheapest = min(drop_of(k, X, weight, view, left).price for k in range(len(left.centers)))
        assert len(left.centers) == 1 or cheapest > 0
        assert len(left.centers) <= len(state.centers)


# Adding centres: every cluster split in two, and heaps among the noise; the best first, if they promise enough.


class Candidate(NamedTuple):
    gain: float
    points: np.ndarray  # the new centre; then, of a split, where the parent moves
    parent: int = -1
    added: int = 0  # centres that had been added when the gain was computed


def split(k, row, X, weight, view, state):
    """A few steps of robust 2-means on the rows of the cluster."""
    points, members = np.stack([X[row], state.centers[k]]), view.first == k
    x, w = X[members], weight[members]
    for _ in range(3):
        d = cdist(x, points, "sqeuclidean")
        part, u = np.where(d[:, 0] < d[:, 1], 0, 1), pull(w, d.min(axis=1), state)
        if not (u[part == 0].sum() > 0 and u[part == 1].sum() > 0):
            return Candidate(-np.inf, points, k)
        points = np.stack([robust_mean(x[part == i], u[part == i]) for i in (0, 1)])
    d = cdist(x, points, "sqeuclidean")
    part, near = np.where(d[:, 0] < d[:, 1], 0, 1), d.min(axis=1) < cap(state)
    mass, whole, total = np.bincount(part[near], w[near], 2), mass_of(view, weight, state)[k], weight.sum()
    seen = criterion.seen_from_others(d.min(axis=1), mass[part])
    after = bounded_loss(seen, np.maximum(seen, np.minimum(d.max(axis=1), view.d2[members])), state)
    gain = w @ (view.loss[members] - after) + size_cost(whole, total) - np.sum(size_cost(mass, total))
    return Candidate(gain - np.log(state.n_clusters) * (whole - mass.sum()), points, k)


def ill_fitting(k, uniform, weight, view, state):
    """A row of the cluster, drawn by what its loss exceeds the mean loss by."""
    share = np.where((view.first == k) & (view.d1 < cap(state)), weight, 0)
    excess = share * np.maximum(view.loss - share @ view.loss / share.sum(), 0)
    return drawn(excess, uniform) if excess.sum() > 0 else np.argmax(view.first == k)


def surroundings(row, X, weight, view, state):
    """Mean shift from a noise row to the heap it belongs to, then its robust mean."""
    point = X[row]
    nu_alpha = state.dof * state.scale
    for width in (0.05 * cap(state), 0.05 * cap(state), nu_alpha):
        d = np.sum((X - point) ** 2, axis=1)
        u = np.where((d < view.d1) & (d < cap(state)), weight / (1 + d / width) ** (2 if width > nu_alpha else 1), 0)
        if u.sum() == 0:
            return Candidate(-np.inf, point[None])
        point = robust_mean(X, u)
    return Candidate(gain_of_adding(point, X, weight, view, state), point[None])


def gain_of_adding(point, X, weight, view, state):
    """How much the cost falls if nothing else moves; the rows it captures see the mean of the others."""
    d, total = np.sum((X - point) ** 2, axis=1), weight.sum()
    captured = weight @ ((d < view.d1) & (d < cap(state)))
    if captured <= 1:
        return -np.inf
    d = criterion.seen_from_others(d, np.full(len(d), captured))
    d1, d2 = np.minimum(d, view.d1), np.minimum(np.maximum(d, view.d1), view.d2)
    gain = weight @ np.where(d < cap(state), view.loss - bounded_loss(d1, d2, state), 0)
    taken, near = (d < view.d1) & (d < cap(state)), view.d1 < cap(state)
    mass = mass_of(view, weight, state)
    left = mass - np.bincount(view.first, weight * (taken & near), len(mass))
    gain += np.sum(size_cost(mass, total) - size_cost(left, total)) - size_cost(weight @ taken, total)
    return gain + np.log(state.n_clusters) * (weight @ (taken & ~near))


def appended(view, d, k, state):
    """The view with one centre more."""
    nearest, near = d < view.d1, d < view.d2
    d1, d2 = np.where(nearest, d, view.d1), np.where(nearest, view.d1, np.where(near, d, view.d2))
    first, second = np.where(nearest, k, view.first), np.where(nearest, view.first, np.where(near, k, view.second))
    return View(first, d1, second, d2, np.where(near, bounded_loss(d1, d2, state), view.loss))


def inhaled(X, weight, state, needed, at_most, uniforms, noise_draws):
    view, K = view_of(X, state), len(state.centers)
    cheapest = min(drop_of(k, X, weight, view, state).price for k in range(K))
    worthwhile = 0.3 * cheapest if cheapest > 0 else cheapest
    mass, far = mass_of(view, weight, state), view.d1 >= cap(state)
    pool = []
    for k, pair in enumerate(np.reshape(uniforms[: 2 * K], (K, 2))):
        if mass[k] > 0:
            rows = [ill_fitting(k, uniform, weight, view, state) for uniform in pair]
            pool.append(max((split(k, row, X, weight, view, state) for row in rows), key=lambda c: c.gain))
    if weight @ far > 0:
        rows = [drawn(weight * far, uniform) for uniform in uniforms[2 * K : 2 * K + noise_draws]]
        pool += [surroundings(row, X, weight, view, state) for row in rows]
    added = 0
    while added < at_most and pool:
        number = int(np.argmax([c.gain for c in pool]))
        best = pool[number]
        if not best.gain > (-np.inf if added < needed else worthwhile):
            break
        if best.parent < 0 and best.added != added:  # what was added since may have taken its rows
            gain = gain_of_adding(best.points[0], X, weight, view, state)
            pool[number] = best._replace(gain=gain, added=added)
            continue
        centers = np.vstack([state.centers, best.points[:1]])
        if best.parent >= 0:
            centers[best.parent] = best.points[1]
        view = appended(view, np.sum((X - best.points[0]) ** 2, axis=1), len(centers) - 1, state)
        state = state._replace(centers=centers)
        del pool[number]
        added += 1
    return state


@pytest.mark.parametrize("kind", [*KINDS, "heap"])
@pytest.mark.parametrize("p", DIMENSIONS)
def test_the_centres_that_promise_most_are_added(p, kind):
    uniforms = np.random.default_rng(p).random(100)
    for X, weight, state in varied(p, kind):
        for needed, at_most in ((0, 20), (2, 3)):
            search = search_at(X, weight, state)
            added = search.inhale(needed, at_most, uniforms, 16)
            expected = inhaled(X, weight, state, needed, at_most, uniforms, 16)
            assert added == len(expected.centers) - len(state.centers)
            assert_same_state(search, expected)
