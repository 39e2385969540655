"""The clusters do not depend on how the data are represented: for every estimator.

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
from support.estimator_cases import CENTERS, DATA, ROWS, TIMES, centers_of, data_for, every_estimator

ALIKE = 1e-9
SAME_OPTIMUM = 2e-3


def fitted(case, X, **options):
    return clone(case.estimator).fit(X, **options)


@cache
def plainly_fitted(case, data="rows"):
    """The fit that others are compared with, which nobody changes."""
    return fitted(case, DATA[data])


def matched(centers, to):
    """Centres in the order of those that they are nearest to."""
    return centers[np.linalg.norm(to[:, None] - centers, axis=2).argmin(axis=1)]


@every_estimator(batches=False)
def test_the_order_of_the_rows_does_not_change_the_clusters(case):
    for name, X in data_for(case).items():
        shuffled = np.random.default_rng(0).permutation(len(X))
        one, other = plainly_fitted(case, name), fitted(case, X[shuffled])
        np.testing.assert_allclose(centers_of(other), centers_of(one), atol=ALIKE, err_msg=name)
        np.testing.assert_array_equal(other.predict(X), one.predict(X), err_msg=name)


@every_estimator(random_start=False)
def test_the_order_of_the_columns_does_not_change_the_clusters(case):
    columns = [2, 0, 1]
    one, other = plainly_fitted(case), fitted(case, ROWS[:, columns])
    tolerance = 0.05 if case.batches else SAME_OPTIMUM  # a stream stops at the noise of its batches
    np.testing.assert_allclose(
        matched(centers_of(other), centers_of(one)[:, columns]), centers_of(one)[:, columns], atol=tolerance
    )


@every_estimator()
def test_a_change_of_unit_by_a_power_of_two_changes_no_bit_of_the_centres(case):
    for factor, (name, X) in zip(cycle([2.0**-40, 2.0**40]), data_for(case).items(), strict=False):
        one, other = plainly_fitted(case, name), fitted(case, X * factor)
        np.testing.assert_array_equal(centers_of(other), centers_of(one) * factor, err_msg=name)
        np.testing.assert_array_equal(other.predict(X * factor), one.predict(X), err_msg=name)


@every_estimator()
@pytest.mark.parametrize("shift", [-1.0, 2.0**20])
def test_a_shift_of_the_origin_shifts_the_centres(case, shift):
    # At 2^20 a row keeps 32 bits behind the point: 2e-10, which EM hands on to the centres.
    one, other = plainly_fitted(case), fitted(case, ROWS + shift)
    np.testing.assert_allclose(centers_of(other) - shift, centers_of(one), atol=1e-7)
    np.testing.assert_array_equal(other.predict(ROWS + shift), one.predict(ROWS))


@every_estimator(isotropic=True, random_start=False)
def test_a_rotation_of_the_rows_rotates_the_centres(case):
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]
    one, other = plainly_fitted(case), fitted(case, ROWS @ turn)
    expected = centers_of(one) @ turn
    tolerance = 0.05 if case.batches else SAME_OPTIMUM
    np.testing.assert_allclose(matched(centers_of(other), expected), expected, atol=tolerance)


@every_estimator(batches=False)
@pytest.mark.filterwarnings("ignore:.*hold hardly any")  # from random starts
def test_a_sample_weight_is_a_number_of_repetitions(case):
    for name, X in data_for(case).items():
        times = np.resize(TIMES, len(X))
        weighted, repeated = fitted(case, X, sample_weight=times), fitted(case, X.repeat(times, axis=0))
        np.testing.assert_allclose(centers_of(weighted), centers_of(repeated), atol=ALIKE, err_msg=name)
        np.testing.assert_array_equal(weighted.predict(X), repeated.predict(X), err_msg=name)


@every_estimator(batches=False)
def test_rows_of_weight_zero_do_not_change_the_clusters(case):
    X = np.vstack([ROWS, np.full((20, 3), 50.0)])
    with_them = fitted(case, X, sample_weight=np.r_[np.ones(len(ROWS)), np.zeros(20)])
    np.testing.assert_allclose(centers_of(with_them), centers_of(plainly_fitted(case)), atol=ALIKE)


@every_estimator(batches=False, prior=False)
def test_all_rows_taken_twice_give_the_same_clusters(case):
    one, other = plainly_fitted(case), fitted(case, np.vstack([ROWS, ROWS]))
    np.testing.assert_allclose(centers_of(other), centers_of(one), atol=SAME_OPTIMUM)
    np.testing.assert_array_equal(other.predict(ROWS), one.predict(ROWS))


@every_estimator()
def test_rows_in_single_precision_give_the_same_clusters(case):
    rows = ROWS.astype(np.float32)
    one, other = fitted(case, rows.astype(np.float64)), fitted(case, rows)
    assert centers_of(other).dtype == (np.float32 if case.keeps_float32 else np.float64)
    # Single precision has 1e-7; its rounding moves the stop, so the tolerance is that of another start.
    np.testing.assert_allclose(centers_of(other), centers_of(one), atol=SAME_OPTIMUM if case.keeps_float32 else 0)
    np.testing.assert_array_equal(other.predict(rows), one.predict(rows.astype(np.float64)))


@every_estimator(takes_missing=True)
@pytest.mark.parametrize("data", DATA)
def test_both_engines_give_the_same_clusters(case, data):
    native, reference = (
        clone(case.estimator).set_params(engine=engine).fit(DATA[data]) for engine in ("native", "reference")
    )
    np.testing.assert_allclose(centers_of(reference), centers_of(native), atol=1e-7)  # rounding over many steps
    np.testing.assert_array_equal(reference.labels_, native.labels_)
    for method in ("predict_proba", "transform", "robust_weights"):
        said = getattr(reference, method)(DATA[data])
        np.testing.assert_allclose(said, getattr(native, method)(DATA[data]), atol=1e-6, err_msg=method)


@every_estimator(random_start=False)
def test_every_estimator_finds_the_centres_that_the_rows_were_drawn_around(case):
    """Without this, all of the above would hold for an estimator that always answers the same."""
    found = matched(centers_of(plainly_fitted(case)), CENTERS)
    # 60 rows of width 0.14 and one medoid among them: a mean is known to 0.02, a medoid to a width.
    np.testing.assert_allclose(found, CENTERS, atol=0.15)


@every_estimator()
def test_predictions_of_rows_do_not_depend_on_the_rows_beside_them(case):
    for name, X in data_for(case).items():
        model = plainly_fitted(case, name)
        for method in ("predict", "predict_proba", "transform", "score_samples", "robust_weights", "outlier_pvalues"):
            look = getattr(model, method, None)
            if look is None:
                continue
            whole = look(X)
            for cut in (1, 7, 100, len(X) - 1):
                parts = np.concatenate([look(X[:cut]), look(X[cut:])])
                # A vector of the processor may hold other rows then: the last bits of a logarithm may change.
                np.testing.assert_allclose(parts, whole, rtol=1e-12, atol=1e-13, err_msg=f"{name}, {method}")
