import numpy as np
import pytest
from support.model_inputs import t_mixture

from tkmeans.fitting.incomplete_rows import complete
from tkmeans.search import seeding
from tkmeans.sources import Sample
from tkmeans.sources.base import canonical

X, LABELS, CENTERS = t_mixture(n=400, dof=30.0, scale=0.01)
SEEDINGS = [seeding.uniform, seeding.random_rows, seeding.kmeans_plusplus]


def sample_of(X, weight=None):
    return canonical(Sample(X, np.ones(len(X)) if weight is None else weight))


@pytest.mark.parametrize("seeds", SEEDINGS)
def test_seeds_do_not_depend_on_the_order_of_rows_nor_on_repetition_instead_of_weights(seeds):
    rng = np.random.default_rng(0)
    times = rng.integers(0, 4, len(X))
    repeated = sample_of(X.repeat(times, axis=0))
    shuffled = rng.permutation(np.flatnonzero(times))
    weighted = sample_of(X[shuffled], times[shuffled].astype(float))
    a, b = (seeds(sample, 4, np.random.RandomState(7)) for sample in (repeated, weighted))
    np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seeds", [seeding.random_rows, seeding.kmeans_plusplus])
def test_seeds_are_distinct_rows_as_long_as_there_are_any(seeds):
    chosen = seeds(sample_of(X), 20, np.random.RandomState(0))
    assert len(np.unique(chosen, axis=0)) == 20
    assert all(np.any(np.all(row == X, axis=1)) for row in chosen)
    few = seeds(sample_of(X[:3]), 5, np.random.RandomState(0))
    assert few.shape == (5, 3)
    assert len(np.unique(few, axis=0)) == 3


def test_uniform_seeds_lie_in_the_bounding_box():
    seeds = seeding.uniform(sample_of(X), 100, np.random.RandomState(0))
    assert np.all((seeds >= X.min(axis=0)) & (seeds <= X.max(axis=0)))


def test_greedy_kmeans_plusplus_finds_every_well_separated_cluster():
    for seed in range(20):
        seeds = seeding.kmeans_plusplus(sample_of(X), 4, np.random.RandomState(seed))
        nearest = np.linalg.norm(seeds[:, None] - CENTERS, axis=2).argmin(axis=1)
        assert sorted(nearest) == [0, 1, 2, 3]


def test_kmeans_plusplus_draws_no_row_of_negligible_weight():
    weight = np.where(LABELS == 0, 1e-12, 1.0)
    for seed in range(10):
        seeds = seeding.kmeans_plusplus(sample_of(X, weight), 3, np.random.RandomState(seed))
        nearest = np.linalg.norm(seeds[:, None] - CENTERS, axis=2).argmin(axis=1)
        assert 0 not in nearest


def test_a_canonical_sample_joins_equal_rows_and_adds_their_weights():
    rows = np.array([[1.0, 2.0], [0.0, 5.0], [1.0, 0.0], [-0.0, 5.0], [1.0, 2.0]])
    sample = canonical(Sample(rows, np.array([1.0, 2.0, 3.0, 4.0, 5.0])))
    found = {tuple(row): weight for row, weight in zip(sample.X, sample.weight, strict=True)}
    assert found == {(0.0, 5.0): 6, (1.0, 0.0): 3, (1.0, 2.0): 6}


@pytest.mark.parametrize("n_values", [2, 3, 1000])
def test_the_order_of_a_canonical_sample_does_not_depend_on_that_of_the_rows(n_values):
    rng = np.random.default_rng(0)
    rows = rng.integers(n_values, size=(200, 4)) + np.where(rng.random((200, 1)) < 0.1, np.inf, 0.0)
    sample, shuffled = (canonical(Sample(part, np.ones(200))) for part in (rows, rng.permutation(rows)))
    np.testing.assert_array_equal(sample.X, shuffled.X)
    np.testing.assert_array_equal(sample.weight, shuffled.weight)
    np.testing.assert_array_equal(np.unique(sample.X, axis=0), np.unique(rows, axis=0))
    assert len(sample.X) == len(np.unique(rows, axis=0))


def test_the_starting_scale_is_ten_times_that_of_the_nearest_distances_despite_outliers_and_at_most_that_of_all_rows():
    dirty = np.vstack([X, np.random.default_rng(0).uniform(-100, 100, (80, 3))])
    nearest = np.min(np.sum((X[:, None] - CENTERS) ** 2, axis=2), axis=1)
    assert seeding.starting_scale(sample_of(dirty), CENTERS) == pytest.approx(10 * np.median(nearest) / 3, rel=0.3)
    assert seeding.starting_scale(sample_of(X), CENTERS + 50) == 1
    assert seeding.starting_scale(sample_of(X[:4]), X[:4]) == 0


def with_few_complete_rows(seed=0):
    missing = np.random.default_rng(seed).random((60, 3)) < 0.6
    missing[missing.all(axis=1), 0] = False
    return np.where(missing, np.nan, X[:60])


def apart_with_holes(seed=0, n=600, share=0.4):
    """Three clusters that differ in every column, each with a spread of its own, and their rows with holes."""
    rng, y = np.random.default_rng(seed), np.repeat(range(3), n // 3)
    rows = np.array([0.0, 50.0, 100.0])[y][:, None] + rng.normal(size=(n, 4)) * [1.0, 2.0, 3.0, 4.0]
    missing = rng.random(rows.shape) < share
    missing[missing.all(axis=1), 0] = False
    return rows, np.where(missing, np.nan, rows), y


def test_missing_values_of_a_sample_are_filled_from_rows_of_the_same_cluster():
    _, holed, _ = apart_with_holes()
    filled = complete(Sample(holed, np.ones(600)), 20, holed).X
    kept = np.sort(holed[~np.isnan(holed)])
    assert np.all(np.isin(kept, filled))
    y = np.rint(np.median(filled, axis=1) / 50)
    assert np.all(np.abs(filled - 50 * y[:, None]) < 25)


def test_filled_values_spread_as_those_that_were_observed_and_make_no_heaps():
    _, holed, _ = apart_with_holes(n=3000)
    filled = complete(Sample(holed, np.ones(3000)), 200, holed).X
    assert len(np.unique(filled[:, 0])) > 2700  # a hole may be filled by one donor alone
    y = np.rint(np.median(filled, axis=1) / 50)
    within = filled - 50 * y[:, None]
    np.testing.assert_allclose(within.std(axis=0), [1, 2, 3, 4], rtol=0.1)


def test_holes_in_columns_of_few_values_are_filled_with_these():
    rng = np.random.default_rng(0)
    holed = np.where(rng.random((300, 4)) < 0.4, np.nan, rng.integers(1, 6, (300, 4)))
    holed[np.isnan(holed).all(axis=1)] = 3.0
    assert {*np.unique(complete(Sample(holed, np.ones(300)), 20, holed).X).tolist()} <= {1.0, 2.0, 3.0, 4.0, 5.0}


def test_a_sample_with_enough_complete_rows_is_reduced_to_them():
    rows = X.copy()
    rows[:300, 1] = np.nan
    whole = complete(Sample(rows, np.ones(400)), 4, rows)
    np.testing.assert_array_equal(whole.X, X[300:])


def test_a_sample_of_rows_without_a_common_feature_is_filled_with_medians():
    rows = np.array([[1.0, np.nan], [np.nan, 2.0], [np.nan, np.nan], [3.0, np.nan]])
    filled = complete(Sample(rows, np.array([1.0, 2.0, 4.0, 8.0])), 2, rows)
    np.testing.assert_array_equal(filled.X, [[1, 0], [3, 0], [0, 2]])  # 0 is the median, in the frame
    np.testing.assert_array_equal(filled.weight, [1, 8, 2])


def test_a_filled_sample_does_not_depend_on_the_order_of_rows_nor_on_repetition_instead_of_weights():
    rng = np.random.default_rng(0)
    rows, times = with_few_complete_rows(), rng.integers(1, 4, 60)
    order = rng.permutation(60)
    repeated = complete(Sample(rows.repeat(times, axis=0), np.ones(times.sum())), 4, rows)
    weighted = complete(Sample(rows[order], times[order].astype(float)), 4, rows)
    np.testing.assert_array_equal(repeated.X, weighted.X)
    np.testing.assert_array_equal(repeated.weight, weighted.weight)
