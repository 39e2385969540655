"""Statistics are sums over rows, so what is done to them must be what was done to the rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.model_inputs import equal_params, plain_frame, t_mixture

from tkmeans.engines import reference
from tkmeans.models import Student
from tkmeans.stats import HORIZON, Block, Frame, Stats

X, _, CENTERS = t_mixture(n=200)
HOLES = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
PARAMS = equal_params(CENTERS)
MODEL = Student()


def summary(rows, weight=None):
    return reference.summarize(Block(rows, weight, plain_frame(3)), PARAMS, MODEL.kernel(PARAMS))


def assert_equal(ours, other, rtol=1e-12):
    for name, a, b in zip(Stats._fields, ours, other, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12, err_msg=name)


def sums_around(centers, rows, trusted, like):
    """wx and wd2 written out, row by row, for memberships times trusts that are given."""
    away = np.nan_to_num(rows[:, None] - centers)  # (n, K, p)
    wx = np.einsum("nk,nkp->kp", trusted, away)
    wd2 = np.einsum("nk,nkp->k", trusted, away**2)
    return like._replace(wx=wx, wd2=wd2)


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), length=st.floats(1e-3, 1e3), holes=st.booleans())
def test_statistics_around_moved_centres_are_those_of_rows_measured_from_there(seed, length, holes):
    rows = HOLES if holes else X
    step = length * np.random.default_rng(seed).standard_normal(CENTERS.shape)
    block, kernel = Block(rows, None, plain_frame(3)), MODEL.kernel(PARAMS)
    tau = reference.memberships(block, PARAMS, kernel)
    n_seen = (~np.isnan(rows)).sum(axis=1, keepdims=True)
    d2 = reference.distances(block, PARAMS) ** 2
    trusted = tau * (PARAMS.dof + n_seen) / (PARAMS.dof + d2 / PARAMS.scale)
    before = summary(rows)
    assert_equal(before, sums_around(CENTERS, rows, trusted, before), rtol=1e-10)
    after = before.around(step)
    expected = sums_around(CENTERS + step, rows, trusted, before)
    np.testing.assert_allclose(after.wx, expected.wx, rtol=0, atol=1e-12 * np.abs(expected.wx).max())
    np.testing.assert_allclose(after.wd2, expected.wd2, rtol=1e-10)
    assert_equal(after._replace(wx=0.0, wd2=0.0), before._replace(wx=0.0, wd2=0.0))


def test_statistics_moved_to_other_centres_and_back_are_unchanged():
    step = np.random.default_rng(0).standard_normal(CENTERS.shape)
    assert_equal(summary(HOLES).around(step).around(-step), summary(HOLES), rtol=1e-10)


@pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "holes"])
def test_faded_statistics_are_those_of_rows_that_weigh_less(rows):
    assert_equal(summary(rows).faded(0.3), summary(rows, np.full(len(rows), 0.3)))


def test_statistics_taken_in_another_order_are_those_of_centres_in_that_order():
    order = np.array([2, 0, 3, 1])
    params = PARAMS._replace(centers=CENTERS[order])
    for rows in (X, HOLES):
        block = Block(rows, None, plain_frame(3))
        assert_equal(summary(rows).take(order), reference.summarize(block, params, MODEL.kernel(params)), rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_frame_restores_rows_and_keeps_those_beyond_the_horizon_at_it(dtype):
    unit, far = (1e10, 1e200) if dtype == "float64" else (1e3, 1e30)
    frame = Frame(np.array([2.0, -1.0], dtype), unit)
    rows = np.array([[5.0, 7.0], [far, -far]], dtype)
    np.testing.assert_allclose(frame.enter(rows)[0], (rows[0] - frame.origin) / unit, rtol=1e-6)
    np.testing.assert_allclose(frame.enter(rows)[1], HORIZON[dtype] * np.array([1, -1]), rtol=1e-6)
    np.testing.assert_allclose(frame.leave(frame.enter(rows[:1])), rows[:1], rtol=1e-5)


def test_a_frame_enters_a_difference_too_large_for_its_dtype_without_a_warning():
    largest = np.finfo(np.float32).max
    entered = Frame(np.array([-largest]), 1e30).enter(np.array([[largest]]))
    assert entered[0, 0] == pytest.approx(largest / 1e30, rel=1e-6)
