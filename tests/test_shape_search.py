"""Labels to start a mixture from: pieces joined to ellipses, against the likelihood of every possible step by scipy."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.metrics import adjusted_rand_score

from tkmeans.search.shape_search import RIDGE, Pieces, joined, round_labels, start_labels, summed
from tkmeans.sources import Sample
from tkmeans.sources.base import canonical


def cut(*groups, weights=None):
    """A sample of several groups of rows, with the number of its group for each row."""
    X = np.vstack(groups)
    weight = np.ones(len(X)) if weights is None else weights
    return Sample(X, weight), np.repeat(np.arange(len(groups)), [len(group) for group in groups])


def pieces_of(*groups):
    return summed(*cut(*groups))[1]


def partition(groups):
    """Which pieces are together, whatever their group is called; and which are noise."""
    return {frozenset(np.flatnonzero(groups == g)) for g in set(groups[groups >= 0])}, set(np.flatnonzero(groups < 0))


def far_apart(rng, p=2, n=20):
    """Two long ellipses, each in three pieces, far from each other."""
    along = np.diag([1.0] + [0.05] * (p - 1))
    places = [(x, y) for y in (0.0, 6.0) for x in (-2.0, 0.0, 2.0)]
    return [rng.normal(size=(n, p)) @ along + np.r_[place, np.zeros(p - 2)] for place in places]


def test_summed_pieces_have_the_weighted_moments_of_their_rows():
    rng = np.random.default_rng(0)
    sample, labels = cut(rng.normal(size=(10, 3)), rng.normal(size=(5, 3)) + 4, weights=rng.uniform(0.5, 3, 15))
    labels = np.where(labels == 1, 7, labels)
    labels[3] = -1
    numbers, pieces = summed(sample, labels)
    np.testing.assert_array_equal(numbers, [0, 7])
    for i, number in enumerate(numbers):
        own = labels == number
        x, weight = sample.X[own], sample.weight[own]
        assert pieces.mass[i] == pytest.approx(weight.sum())
        np.testing.assert_allclose(pieces.mean[i], np.average(x, axis=0, weights=weight))
        covariance = np.cov(x.T, aweights=weight, ddof=0)
        np.testing.assert_allclose(pieces.scatter[i], covariance * weight.sum(), rtol=1e-10)


def test_the_two_halves_of_one_ellipse_are_joined_before_two_ellipses():
    rng = np.random.default_rng(1)
    halves = [rng.uniform([low, -0.1], [low + 1, 0.1], (40, 2)) for low in (0.0, 1.0)]
    across = rng.uniform([-0.1, 0.4], [0.1, 1.4], (40, 2))  # nearer to the left half than the right one is
    pieces = pieces_of(*halves, across)
    assert partition(joined(pieces, 2, 0.0, math.inf)) == ({frozenset([0, 1]), frozenset([2])}, set())


@pytest.mark.parametrize("p", [2, 4])
def test_pieces_of_two_ellipses_become_these_two_ellipses(p):
    pieces = pieces_of(*far_apart(np.random.default_rng(2), p))
    assert partition(joined(pieces, 2, 0.0, math.inf)) == ({frozenset([0, 1, 2]), frozenset([3, 4, 5])}, set())


def test_scattered_pieces_far_away_are_given_to_the_noise():
    rng = np.random.default_rng(3)
    strays = [rng.uniform(-40, 40, (4, 2)) for _ in range(3)]
    pieces = pieces_of(*far_apart(rng, n=60), *strays)
    together, noise = partition(joined(pieces, 2, 0.0, 2 * math.log(80.0)))
    assert together == {frozenset([0, 1, 2]), frozenset([3, 4, 5])}
    assert noise == {6, 7, 8}


def test_no_piece_is_noise_in_an_infinite_volume():
    rng = np.random.default_rng(4)
    pieces = pieces_of(*far_apart(rng), *(rng.uniform(-1e3, 1e3, (3, 2)) for _ in range(4)))
    for n_groups in range(1, 10):
        groups = joined(pieces, n_groups, 10.0, math.inf)
        assert groups.min() == 0


@pytest.mark.parametrize("log_volume", [2.0, 9.0, math.inf])
@pytest.mark.parametrize("m", [2, 5, 40])
def test_pieces_become_exactly_as_many_groups_as_asked_for(m, log_volume):
    rng = np.random.default_rng(m)
    pieces = pieces_of(*(rng.normal(size=(rng.integers(3, 9), 2)) + rng.uniform(-9, 9, 2) for _ in range(m)))
    for n_groups in range(1, min(m, 12) + 1):
        groups = joined(pieces, n_groups, 2.0, log_volume)
        assert groups.shape == (m,)
        assert set(groups[groups >= 0]) == set(range(n_groups))


def test_pieces_that_are_each_others_neighbours_in_no_way_are_joined_all_the_same():
    rng = np.random.default_rng(5)
    clouds = [rng.normal(size=(3, 2)) * 0.01 + place for place in ([0, 0], [1e4, 0]) for _ in range(20)]
    groups = joined(pieces_of(*clouds), 1, 0.0, math.inf)
    np.testing.assert_array_equal(groups, 0)


def test_pieces_with_the_same_mean_are_different_pieces():
    rng = np.random.default_rng(6)
    ring = np.vstack([x := rng.normal(size=(20, 2)), -x])
    away = np.array([50.0, 0.0])
    pieces = pieces_of(ring, 3 * ring, ring + away, 3 * ring + away)
    mean = pieces.mean.copy()
    mean[1], mean[3] = mean[0], mean[2]  # exactly
    groups = joined(pieces._replace(mean=mean), 2, 0.0, math.inf)
    assert partition(groups) == ({frozenset([0, 1]), frozenset([2, 3])}, set())


@pytest.mark.parametrize("log_volume", [8.0, math.inf])
def test_the_order_of_the_pieces_does_not_matter(log_volume):
    rng = np.random.default_rng(7)
    groups = [rng.normal(size=(8, 3)) * rng.uniform(0.2, 2, 3) + rng.uniform(-6, 6, 3) for _ in range(30)]
    pieces = pieces_of(*groups)
    for n_groups in (2, 7, 20):
        together, noise = partition(joined(pieces, n_groups, 3.0, log_volume))
        for _ in range(5):
            order = rng.permutation(30)
            again = joined(Pieces(*(values[order] for values in pieces)), n_groups, 3.0, log_volume)
            other, lost = partition(again)
            assert {frozenset(order[list(group)]) for group in other} == together
            assert set(order[list(lost)]) == noise


def test_groups_do_not_depend_on_the_units_of_the_columns():
    rng = np.random.default_rng(8)
    groups = [rng.normal(size=(8, 3)) * rng.uniform(0.2, 2, 3) + rng.uniform(-6, 6, 3) for _ in range(20)]
    units = np.array([1e-3, 1.0, 1e4])
    for log_volume in (8.0, math.inf):
        plain = joined(pieces_of(*groups), 5, 3.0, log_volume)
        scaled = joined(pieces_of(*(g * units for g in groups)), 5, 3.0, log_volume + np.log(units).sum())
        np.testing.assert_array_equal(scaled, plain)


# ---- the first step by brute force ------------------------------------------------------------


def minus_log_likelihood(groups, noise, strays, log_volume, pooled, total):
    """Of all rows under the best weights and the best ellipses with their prior, and under the noise."""
    p = pooled.shape[0]
    rows = p + 2
    loss = 0.0
    for X in groups:
        away = X - X.mean(axis=0)
        S = (away.T @ away + rows * pooled) / (len(X) + rows)
        loss -= multivariate_normal.logpdf(X, X.mean(axis=0), S).sum() + len(X) * np.log(len(X) / total)
        # a prior worth p + 2 rows at the pooled shape, which is 1 there
        loss += rows / 2 * (np.trace(np.linalg.solve(S, pooled)) + np.linalg.slogdet(S)[1])
        loss -= rows / 2 * (p + np.linalg.slogdet(pooled)[1])
    stray = strays + sum(map(len, noise))
    return loss + sum(map(len, noise)) * log_volume - stray * np.log(stray / total)


@pytest.mark.parametrize("seed", range(30))
def test_the_first_step_is_the_one_of_all_possible_ones_that_costs_least(seed):
    rng = np.random.default_rng(seed)
    groups = [
        rng.normal(size=(rng.integers(3, 12), 2)) * rng.uniform(0.1, 1, 2) + rng.uniform(-4, 4, 2) for _ in range(5)
    ]
    log_volume, strays = rng.uniform(2, 6), 3.0
    pieces = pieces_of(*groups)
    pooled = pieces.scatter.sum(axis=0) / pieces.mass.sum()
    pooled = pooled + RIDGE * np.diag(np.diag(pooled))
    total = pieces.mass.sum() + strays + 1
    costs = {}
    for i in range(5):
        rest = [g for k, g in enumerate(groups) if k != i]
        costs[i,] = minus_log_likelihood(rest, [groups[i]], strays + 1, log_volume, pooled, total)
    for i, j in itertools.combinations(range(5), 2):
        rest = [g for k, g in enumerate(groups) if k not in (i, j)]
        both = np.vstack([groups[i], groups[j]])
        costs[i, j] = minus_log_likelihood([*rest, both], [], strays + 1, log_volume, pooled, total)
    together, noise = partition(joined(pieces, 4, strays, log_volume))
    best = min(costs, key=costs.__getitem__)
    if len(best) == 1:
        assert noise == set(best)
    else:
        assert noise == set()
        assert frozenset(best) in together


# ---- labels -----------------------------------------------------------------------------------


def long_clusters(seed=0):
    rng = np.random.default_rng(seed)
    groups = [rng.normal(size=(150, 2)) * [1.0, 0.06] + [0, y] for y in (0.0, 0.6, 1.2)]
    sample, truth = cut(*groups, rng.uniform(-8, 8, (20, 2)))
    return canonical(sample), sample, truth


@pytest.mark.parametrize("units", [np.array([1.0, 1.0]), np.array([1.0, 0.1])])
def test_start_labels_are_numbers_of_components_or_minus_one(units):
    sample, _, _ = long_clusters()
    labellings = list(start_labels(sample, units, 5.0, 3, 0))
    assert len(labellings) >= 3
    for labels in labellings:
        assert labels.shape == (len(sample.X),)
        assert set(labels) <= {-1, 0, 1, 2}


def test_start_labels_are_a_function_of_the_sample_and_the_random_state():
    sample, _, _ = long_clusters()
    first, again = (list(start_labels(sample, np.array([1, 0.3]), 5.0, 3, 3)) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_some_start_labels_find_long_clusters_that_lie_side_by_side():
    sample, _, _ = long_clusters()
    truth = np.round(np.clip(sample.X[:, 1], 0, 1.2) / 0.6)
    clear = np.abs(sample.X[:, 1] - 0.6 * truth) < 0.2
    scores = [
        adjusted_rand_score(truth[clear], labels[clear])
        for labels in start_labels(sample, np.array([1.0, 1.0]), 5.0, 3, 0)
    ]
    assert max(scores) > 0.85


def test_there_is_a_start_in_the_units_of_the_user_only_where_these_differ_from_those_of_the_columns():
    sample, _, _ = long_clusters()
    same, other = (len(list(start_labels(sample, np.array(units), 5.0, 3, 0))) for units in ([2.0, 2.05], [2.0, 0.5]))
    assert other > same


@pytest.mark.parametrize("units", [np.ones(3), np.array([1.0, 2.0, 1.0])])
def test_clusters_that_round_and_joined_pieces_agree_on_are_the_only_start(units):
    rng = np.random.default_rng(4)
    truth = np.repeat(np.arange(4), 80)
    X = rng.normal(size=(320, 3)) + 12.0 * rng.permutation(np.eye(4, 3))[truth]
    sample = canonical(Sample(np.column_stack([X, truth])[rng.permutation(320)], np.ones(320)))
    sample, truth = sample._replace(X=sample.X[:, :3]), sample.X[:, 3]
    (labels,) = start_labels(sample, units, 8.0, 4, 0)
    assert adjusted_rand_score(truth[labels >= 0], labels[labels >= 0]) == 1.0
    assert np.mean(labels >= 0) > 0.95


def test_few_rows_are_labelled_without_pieces():
    rng = np.random.default_rng(0)
    for n in (3, 4, 6, 9):
        sample = canonical(Sample(rng.normal(size=(n, 2)), np.ones(n)))
        for labels in start_labels(sample, np.ones(2), 3.0, 3, 0):
            assert labels.shape == (len(sample.X),)
            assert set(labels) <= {-1, 0, 1, 2}


def test_rows_out_of_reach_of_every_round_cluster_have_no_label():
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(200, 2)) * 0.1, rng.normal(size=(200, 2)) * 0.1 + 3, [[1e6, -1e6]]])
    sample = canonical(Sample(X, np.ones(len(X))))
    labels = round_labels(sample, 2, np.random.RandomState(0))
    assert labels[np.argmax(sample.X[:, 0])] == -1
    left = sample.X.sum(axis=1) < 3
    inner = np.abs(sample.X).max(axis=1) < 10
    assert len(set(labels[left & inner & (labels >= 0)])) == 1
    assert len(set(labels[~left & inner & (labels >= 0)])) == 1


def test_a_start_sees_clusters_in_a_column_of_small_units_beside_one_of_large_units():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    units = np.array([2e-3, 500.0])
    sample = canonical(Sample((rng.normal(size=(300, 2)) + 8.0 * y[:, None] * [1, 0]) * units, np.ones(300)))
    truth = sample.X[:, 0] > 4.0 * units[0]
    labels = list(start_labels(sample, units, 10.0, 2, 0))
    for each in (labels[1], labels[-2]):  # those of round clusters in units of the columns
        assert adjusted_rand_score(truth[each >= 0], each[each >= 0]) > 0.95
        assert np.mean(each >= 0) > 0.9


# ---- few rows ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_pieces", [2, 3])
def test_a_round_search_that_leaves_every_centre_a_single_row_still_tells_the_nearest_centre_of_each(n_pieces):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        rows = rng.normal(size=(8, 2)) + np.repeat([[0], [3]], 4, axis=0)
        sample = canonical(Sample(np.pad(rows, ((0, 0), (0, 4))), np.ones(8)))
        assert np.any(round_labels(sample, n_pieces, np.random.RandomState(seed), None, 0) >= 0)
