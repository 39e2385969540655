"""The record of a fit: distances without bounds, reviews and tallies that add up, what single precision holds."""

from fractions import Fraction

import numpy as np
import pytest
from support.model_inputs import t_mixture

from tkmeans import TKMeans
from tkmeans.fitted import ENOUGH_COMPLETE_ROWS, Clusters, Review, Sketch, far_distances, tail_of_f, tally
from tkmeans.sources import ArraySource

X, _, _ = t_mixture(n=200, n_clusters=3, n_features=2, scale=0.02, seed=4)


def exact_distance(row, center):
    """By fractions, whose squares have no bounds; a root that is right to 30 digits."""
    square = sum((Fraction(x) - Fraction(c)) ** 2 for x, c in zip(row, center, strict=True) if x == x)
    root = Fraction(abs(int(square)).bit_length() and 2 ** (int(square).bit_length() // 2 + 1))
    for _ in range(200):
        root = Fraction(int((root + square / root) / 2 * 2**20), 2**20)
    return float(root) if root < Fraction(np.finfo(float).max) else np.inf


def test_distances_of_rows_whose_squares_no_number_holds_are_right():
    rows = np.array([[1e300, -3e200], [np.nan, -4e307], [8e307, 6e307], [-1.7e308, 0.0]])
    centers = np.array([[0.0, 0.0], [5e299, 2e200], [7e307, -1e307]])
    wanted = [[exact_distance(row, center) for center in centers] for row in rows]
    np.testing.assert_allclose(far_distances(rows, centers), wanted, rtol=1e-14)


def test_transform_gives_the_same_distances_for_rows_within_and_beyond_the_frame():
    model = TKMeans(3, random_state=0).fit(X)
    rows = np.array([[1e90, -2e90], [1e250, 3e250], [0.3, 0.4]])
    wanted = [[exact_distance(row, center) for center in model.cluster_centers_] for row in rows[:2]]
    found = model.transform(rows)
    np.testing.assert_allclose(found[:2], wanted, rtol=1e-12)
    np.testing.assert_allclose(found[2], np.linalg.norm(rows[2] - model.cluster_centers_, axis=1), rtol=1e-12)


def test_parameters_fit_into_single_precision_if_scale_and_centres_do():
    def fits(scale, center=1.0):
        return Clusters(np.array([[center, 0.0]]), scale, 3.0, np.ones(1)).fits_single(1e-10, 1e10)

    assert fits(1.0)
    assert fits(1.1e-30)  # its root times 1e5 is within the bounds
    assert not fits(0.9e-30)
    assert fits(0.9e20)
    assert not fits(1.1e20)
    assert fits(1.0, 1e38)
    assert not fits(1.0, 1e39)


def with_weights(n, seed):
    rng = np.random.default_rng(seed)
    return rng.chisquare(3, n) * 10.0 ** rng.integers(-2, 3, n), rng.integers(0, 4, n).astype(float)


def test_the_tally_of_all_rows_is_that_of_its_parts():
    d2, weight = with_weights(3000, 0)
    parts = tally(d2[:700], weight[:700]).merge(tally(d2[700:], weight[700:]))
    for own, whole in zip(parts, tally(d2, weight), strict=True):
        np.testing.assert_allclose(own, whole, rtol=1e-12)


def test_the_tally_of_rows_that_are_far_apart_is_that_of_its_parts():
    near, far = np.array([1e-9, 2e-9, 3e-9]), np.array([1e9, 2e9])
    for parts in ((near, far), (far, near), (np.empty(0), np.append(near, far))):
        merged = tally(parts[0]).merge(tally(parts[1])).sketch()
        np.testing.assert_array_equal(merged.d2, [*near, *far])
        np.testing.assert_array_equal(merged.mass, np.ones(5))


def test_a_sketch_has_the_mass_of_all_rows_and_their_median():
    d2, weight = with_weights(3000, 1)
    sketch = tally(d2, weight).sketch()
    assert np.sum(sketch.mass) == pytest.approx(np.sum(weight))
    assert np.all(np.diff(sketch.d2) >= 0)
    assert sketch.d2[-1] == np.max(d2[weight > 0])
    assert sketch.median == pytest.approx(np.median(np.repeat(d2, weight.astype(int))), rel=0.02)
    assert Sketch(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 3.0])).median == 3.0


def review(complete, incomplete):
    tallies = [tally(np.array(d2)) if len(d2) else None for d2 in (complete, incomplete)]
    return Review(np.array([1.0, 2.0]), 5.0, tallies[0], len(complete), tallies[1])


@pytest.mark.parametrize("first", [[], [3.0]])
@pytest.mark.parametrize("second", [[], [4.0, 5.0]])
def test_the_review_of_all_rows_is_that_of_its_parts_whichever_have_missing_values(first, second):
    merged = review([1.0, 2.0], first).merge(review([6.0], second))
    assert merged.sizes.tolist() == [2.0, 4.0]
    assert (merged.inertia, merged.n_complete) == (10.0, 3)
    assert merged.complete.farthest.tolist() == [1.0, 2.0, 6.0]
    assert ([] if merged.incomplete is None else merged.incomplete.farthest.tolist()) == first + second


def test_outliers_are_judged_by_complete_rows_if_there_are_enough_of_them():
    few, many = review([1.0, 2.0], [9.0]), review([1.0] * ENOUGH_COMPLETE_ROWS, [9.0])
    source = ArraySource(np.zeros((3, 1)), None)
    assert few.comparable(source).d2.tolist() == [1.0, 2.0, 9.0]
    assert many.comparable(source).d2[-1] == 1.0


# ---- tails ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 4, 6])
def test_tails_are_probabilities_at_any_distance(p):
    d2 = np.concatenate([[0.0, np.inf], np.geomspace(1e-300, 1e300, 5000)])
    for dof in (0.3, 1.0, 5.0, 200.0):
        tail = tail_of_f(p, dof, d2)
        assert np.all((tail >= 0) & (tail <= 1))
        assert (tail[0], tail[1]) == (1, 0)
