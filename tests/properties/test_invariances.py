"""What the data are does not depend on how they are told: over the whole zoo.

Tolerances. Two fits that do the same sums in another order differ by rounding, 1e-16 of the data's size,
which at most a few thousand additions and some hundred steps of a contraction make 1e-10: ALIKE. Two fits from
different starts to the same optimum each stop when an iteration gains less than `tol` = 1e-6 in log-likelihood
(1e-4 of the spread for FastTKMeans): near an optimum a gain of g per row is a move of about sqrt(2 g) widths,
and the width here is 0.14, so 2e-4 and, as the last steps of slow EM add up, a few times that: SAME_OPTIMUM.
"""

from functools import cache
from itertools import cycle

import numpy as np
import pytest
from sklearn.base import clone
from zoo import CENTERS, DATA, ROWS, TIMES, animals, centers_of, data_for

ALIKE = 1e-9
SAME_OPTIMUM = 2e-3


def fitted(animal, X, **options):
    return clone(animal.estimator).fit(X, **options)


@cache
def plainly_fitted(animal, data="rows"):
    """The fit that others are compared with, which nobody changes."""
    return fitted(animal, DATA[data])


def matched(centers, to):
    """Centres in the order of those that they are nearest to."""
    return centers[np.linalg.norm(to[:, None] - centers, axis=2).argmin(axis=1)]


@animals(stream=False)
def test_the_order_of_the_rows_does_not_matter(animal):
    for name, X in data_for(animal).items():
        shuffled = np.random.default_rng(0).permutation(len(X))
        one, other = plainly_fitted(animal, name), fitted(animal, X[shuffled])
        np.testing.assert_allclose(centers_of(other), centers_of(one), atol=ALIKE, err_msg=name)
        np.testing.assert_array_equal(other.predict(X), one.predict(X), err_msg=name)


@animals(lucky=False)
def test_the_order_of_the_columns_does_not_matter(animal):
    columns = [2, 0, 1]
    one, other = plainly_fitted(animal), fitted(animal, ROWS[:, columns])
    tolerance = 0.05 if animal.stream else SAME_OPTIMUM  # a stream stops at the noise of its batches
    np.testing.assert_allclose(
        matched(centers_of(other), centers_of(one)[:, columns]), centers_of(one)[:, columns], atol=tolerance
    )


@animals()
def test_a_change_of_unit_by_a_power_of_two_changes_no_bit(animal):
    for factor, (name, X) in zip(cycle([2.0**-40, 2.0**40]), data_for(animal).items(), strict=False):
        one, other = plainly_fitted(animal, name), fitted(animal, X * factor)
        np.testing.assert_array_equal(centers_of(other), centers_of(one) * factor, err_msg=name)
        np.testing.assert_array_equal(other.predict(X * factor), one.predict(X), err_msg=name)


@animals()
@pytest.mark.parametrize("shift", [-1.0, 2.0**20])
def test_a_shift_of_the_origin_shifts_the_centres(animal, shift):
    # At 2^20 a row keeps 32 bits behind the point: 2e-10, which EM hands on to the centres.
    one, other = plainly_fitted(animal), fitted(animal, ROWS + shift)
    np.testing.assert_allclose(centers_of(other) - shift, centers_of(one), atol=1e-7)
    np.testing.assert_array_equal(other.predict(ROWS + shift), one.predict(ROWS))


@animals(round=True, lucky=False)
def test_a_rotation_turns_the_centres(animal):
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    one, other = plainly_fitted(animal), fitted(animal, ROWS @ turn)
    expected = centers_of(one) @ turn
    tolerance = 0.05 if animal.stream else SAME_OPTIMUM
    np.testing.assert_allclose(matched(centers_of(other), expected), expected, atol=tolerance)


@animals(stream=False)
def test_a_weight_is_a_number_of_repetitions(animal):
    for name, X in data_for(animal).items():
        times = np.resize(TIMES, len(X))
        weighted, repeated = fitted(animal, X, sample_weight=times), fitted(animal, X.repeat(times, axis=0))
        np.testing.assert_allclose(centers_of(weighted), centers_of(repeated), atol=ALIKE, err_msg=name)
        np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X), err_msg=name)


@animals(stream=False)
def test_rows_of_weight_zero_might_as_well_not_be_there(animal):
    X = np.vstack([ROWS, np.full((20, 3), 50.0)])
    with_them = fitted(animal, X, sample_weight=np.r_[np.ones(len(ROWS)), np.zeros(20)])
    np.testing.assert_allclose(centers_of(with_them), centers_of(plainly_fitted(animal)), atol=ALIKE)


@animals(stream=False)
def test_all_rows_twice_are_the_same_clusters(animal):
    one, other = plainly_fitted(animal), fitted(animal, np.vstack([ROWS, ROWS]))
    np.testing.assert_allclose(centers_of(other), centers_of(one), atol=SAME_OPTIMUM)
    np.testing.assert_array_equal(other.predict(ROWS), one.predict(ROWS))


@animals()
def test_single_precision_gives_the_same_clusters(animal):
    rows = ROWS.astype(np.float32)
    one, other = fitted(animal, rows.astype(np.float64)), fitted(animal, rows)
    assert centers_of(other).dtype == (np.float32 if animal.single else np.float64)
    # Single precision has 1e-7; its rounding moves the stop, so the tolerance is that of another start.
    np.testing.assert_allclose(centers_of(other), centers_of(one), atol=SAME_OPTIMUM if animal.single else 0)
    np.testing.assert_array_equal(other.predict(rows), one.predict(rows.astype(np.float64)))


@animals(missing=True)
@pytest.mark.parametrize("data", DATA)
def test_both_engines_give_the_same_clusters(animal, data):
    native, reference = (
        clone(animal.estimator).set_params(engine=engine).fit(DATA[data]) for engine in ("native", "reference")
    )
    np.testing.assert_allclose(centers_of(reference), centers_of(native), atol=1e-7)  # rounding over many steps
    np.testing.assert_array_equal(reference.labels_, native.labels_)
    for method in ("predict_proba", "transform", "robust_weights"):
        said = getattr(reference, method)(DATA[data])
        np.testing.assert_allclose(said, getattr(native, method)(DATA[data]), atol=1e-6, err_msg=method)


@animals(lucky=False)
def test_the_centres_are_those_that_the_rows_were_drawn_around(animal):
    """Without this, all of the above would hold for an estimator that always answers the same."""
    found = matched(centers_of(plainly_fitted(animal)), CENTERS)
    # 60 rows of width 0.14 and one medoid among them: a mean is known to 0.02, a medoid to a width.
    np.testing.assert_allclose(found, CENTERS, atol=0.15)


@animals()
def test_rows_are_looked_at_one_by_one_wherever_they_are_cut(animal):
    for name, X in data_for(animal).items():
        model = plainly_fitted(animal, name)
        for method in ("predict", "predict_proba", "transform", "score_samples", "robust_weights", "outlier_pvalues"):
            look = getattr(model, method, None)
            if look is None:
                continue
            whole = look(X)
            for cut in (1, 7, 100, len(X) - 1):
                parts = np.concatenate([look(X[:cut]), look(X[cut:])])
                # A vector of the processor may hold other rows then: the last bits of a logarithm may change.
                np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-13, err_msg=f"{name}, {method}")
