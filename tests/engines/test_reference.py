"""The reference engine defines the numbers, so its oracles are scipy and plain loops."""

import array_api_strict
import numpy as np
import pytest
from support.density_oracle import mixture_log_density
from support.model_inputs import equal_params, plain_frame, t_mixture

from tkmeans.engines import reference
from tkmeans.models import Fast, Student
from tkmeans.stats import Block, Frame, Params

X, _, CENTERS = t_mixture(n=200)
PARAMS = Params(CENTERS, 0.2, 2.5, np.log([0.1, 0.2, 0.3, 0.4]))
HOLES = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
HOLES[7] = np.nan


def block_of(X, weight=None):
    return Block(X, weight, plain_frame(X.shape[1]))


@pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "missing"])
def test_the_reference_log_likelihood_is_that_of_a_mixture_of_scipys_t_distributions(rows):
    said = reference.rows(block_of(rows), PARAMS, Student().kernel(PARAMS)).log_density
    np.testing.assert_allclose(said, mixture_log_density(rows, PARAMS), rtol=0, atol=1e-10)
    total = reference.summarize(block_of(rows), PARAMS, Student().kernel(PARAMS)).objective
    np.testing.assert_allclose(total, mixture_log_density(rows, PARAMS).sum(), rtol=1e-12)


@pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "missing"])
@pytest.mark.parametrize("power", [1, 0])
def test_reference_statistics_are_the_sums_of_a_loop_over_rows_and_clusters(rows, power):
    nu, alpha = PARAMS.dof, PARAMS.scale
    weight = np.random.default_rng(2).integers(0, 4, len(rows)).astype(float)
    kernel = Student().kernel(PARAMS)._replace(power=power)
    said = reference.summarize(block_of(rows, weight), PARAMS, kernel)
    tau = reference.memberships(block_of(rows), PARAMS, kernel)
    K, p = CENTERS.shape
    n, w, wd2, seen, wx, entropy, cells = (
        np.zeros(K),
        np.zeros(K),
        np.zeros(K),
        np.zeros((K, p)),
        np.zeros((K, p)),
        0.0,
        0,
    )
    for i, row in enumerate(rows):
        there = ~np.isnan(row)
        cells += weight[i] * there.sum()
        for k in range(K):
            step = np.where(there, row - CENTERS[k], 0.0)
            u = (nu + there.sum()) / (nu + step @ step / alpha)  # eqn:u_nk, for the observed features
            part = weight[i] * tau[i, k] * u**power
            n[k] += weight[i] * tau[i, k]
            w[k] += part
            wd2[k] += part * (step @ step)
            wx[k] += part * step
            seen[k] += part * there
            entropy -= weight[i] * tau[i, k] * np.log(tau[i, k])
    for name, value in {"n": n, "w": w, "wd2": wd2, "wx": wx, "entropy": entropy, "cells": cells}.items():
        np.testing.assert_allclose(getattr(said, name), value, rtol=1e-10, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(np.broadcast_to(said.observed, (K, p)), seen, rtol=1e-12)


def test_the_expected_log_u_is_the_mean_of_a_log_gamma_variable():
    # Integrated numerically: u given x follows gamma((nu + p) / 2, rate (nu + D / alpha) / 2), eqn:u.
    from scipy.stats import gamma

    one = equal_params(CENTERS[:1], scale=0.2, dof=2.5)
    said = reference.summarize(block_of(X[:5]), one, Student().kernel(one)).log_u[0]
    expected = 0.0
    for row in X[:5]:
        d2 = np.sum((row - CENTERS[0]) ** 2)
        posterior = gamma((2.5 + 3) / 2, scale=2 / (2.5 + d2 / 0.2))
        expected += posterior.expect(np.log, epsabs=1e-12, epsrel=1e-10)
    np.testing.assert_allclose(said, expected, rtol=1e-7)


def test_statistics_of_parts_add_up_to_those_of_the_whole_even_if_only_one_has_missing_values():
    kernel = Student().kernel(PARAMS)
    whole = reference.summarize(block_of(np.vstack([X, HOLES])), PARAMS, kernel)
    parts = reference.summarize(block_of(X), PARAMS, kernel).merge(reference.summarize(block_of(HOLES), PARAMS, kernel))
    for name, a, b in zip(whole._fields, whole, parts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-10, err_msg=name)


def test_memberships_are_probabilities_and_labels_their_largest():
    tau = reference.memberships(block_of(X), PARAMS, Student().kernel(PARAMS))
    np.testing.assert_allclose(tau.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(
        reference.rows(block_of(X), PARAMS, Student().kernel(PARAMS)).label, tau.argmax(axis=1)
    )


def test_distances_are_euclidean_and_taken_over_the_observed_features():
    said = reference.distances(block_of(HOLES), PARAMS)
    expected = np.sqrt(np.nansum((HOLES[:, None] - CENTERS) ** 2, axis=2))
    np.testing.assert_allclose(said, expected, rtol=1e-14)


@pytest.mark.parametrize("rows", [X, HOLES], ids=["complete", "missing"])
def test_the_reference_engine_gives_the_same_numbers_with_any_array_api_library(rows):
    xp = array_api_strict
    here = Block(rows, None, Frame(np.ones(3), 2.0))
    there = Block(xp.asarray(rows), None, Frame(xp.ones(3, dtype=xp.float64), 2.0))
    kernel = Student().kernel(PARAMS)
    for a, b in zip(reference.summarize(here, PARAMS, kernel), reference.summarize(there, PARAMS, kernel), strict=True):
        np.testing.assert_allclose(np.asarray(b), a, rtol=1e-13, atol=1e-13)
    for a, b in zip(reference.rows(here, PARAMS, kernel), reference.rows(there, PARAMS, kernel), strict=True):
        np.testing.assert_allclose(np.asarray(b), a, rtol=1e-13)


def test_the_log_density_with_a_huge_dof_is_that_of_a_gaussian():
    # ln(1 + D / (nu alpha)) times (nu + p) / 2 tends to D / (2 alpha): a Gaussian.
    from scipy.stats import multivariate_normal

    params = equal_params(CENTERS[:1], scale=0.2, dof=1e12)
    said = reference.rows(block_of(X), params, Student().kernel(params)).log_density
    np.testing.assert_allclose(said, multivariate_normal(CENTERS[0], 0.2).logpdf(X), rtol=1e-6)


def test_a_row_at_1e300_leaves_reference_statistics_finite():
    far = X.copy()
    far[3] = 1e300, -1e300, 5.0
    for model in (Student(), Fast()):
        stats = reference.summarize(block_of(far), PARAMS, model.kernel(PARAMS))
        assert all(np.all(np.isfinite(value)) for value in stats)
    fit = reference.rows(block_of(far), PARAMS, Student().kernel(PARAMS))
    assert fit.trust[3] < 1e-100


def test_statistics_of_single_precision_rows_are_summed_in_double_precision():
    rows = np.zeros((3, 2), np.float32)
    weight = np.array([2**24, 1, 1], np.float32)  # whose sum has one digit too many for single precision
    params = equal_params(np.ones((1, 2)))
    said = reference.summarize(Block(rows, weight, plain_frame(2, np.float32)), params, Student().kernel(params))
    assert said.n[0] == 2**24 + 2
    assert {said.n.dtype, said.w.dtype, said.wx.dtype, said.wd2.dtype, said.log_u.dtype} == {np.dtype(float)}


def test_negligible_weights_move_no_centre_in_single_precision():
    kernel = Student().kernel(PARAMS)
    exact = reference.summarize(block_of(X), PARAMS, kernel).wx
    for dtype, weight, moves in ((np.float32, 1e-39, False), (np.float32, 1e-30, True), (float, 1e-39, True)):
        block = Block(X.astype(dtype), np.full(len(X), weight, dtype), plain_frame(X.shape[1], dtype))
        said = reference.summarize(block, PARAMS, kernel).wx
        if moves:
            np.testing.assert_allclose(said / weight, exact, rtol=1e-3, atol=1e-3)
        else:
            assert not np.any(said)


def test_reference_memberships_stay_on_the_device_of_the_rows():
    kernel = Student().kernel(PARAMS)
    device = array_api_strict.Device("device1")
    rows = array_api_strict.asarray(X, device=device)
    frame = Frame(array_api_strict.zeros(X.shape[1], device=device), 1.0)
    tau = reference.memberships(Block(rows, None, frame), PARAMS, kernel)
    assert tau.device == device
    tau = np.asarray(array_api_strict.asarray(tau, device=array_api_strict.Device("CPU_DEVICE")))
    np.testing.assert_allclose(tau, reference.memberships(block_of(X), PARAMS, kernel), rtol=1e-13)
