"""Random mixtures with shapes, and the reference engine as the oracle of the native one.

Errors are relative to the sum of the absolute contributions to a number, the scale on which rounding happens.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from tkmeans.engines import shapes
from tkmeans.models.noise import noise_kernel
from tkmeans.shape_stats import ShapeKernel, ShapeStats
from tkmeans.stats import Array, Block, Frame


class Facts(NamedTuple):
    """What a kernel was made of."""

    log_weights: Array
    dof: Array


def shape_case(
    p, K, n, form="full", *, noise=0.0, weighted=False, units=False, dtype="float64", offset=0.0, spread=2.0, dof=None,
    far=(), seed=0, box=False,
):  # fmt: skip
    """A block from overlapping clusters, parameters that are near but not at theirs, and the facts.

    `dof` is None for another one in each component; `far` are the values of rows far away; noise is flat in an
    ellipsoid, or in a `box`.
    """
    rng = np.random.default_rng([p, K, n, seed])
    centers = rng.normal(size=(K, p)) * spread
    roots = np.tril(rng.normal(size=(K, p, p)), -1) / (2 * np.sqrt(p)) + np.eye(p) * rng.uniform(0.5, 2, (K, 1, p))
    labels, X = rng.integers(K, size=n), rng.standard_t(5, (n, p))
    for k in range(K):
        X[labels == k] = centers[k] + X[labels == k] @ roots[k].T
    unit = 10 ** rng.uniform(-3, 3, p) if units else 1.0
    X = X * unit + offset
    for i, value in enumerate(far):
        X[(17 * i) % n, rng.integers(p)] = value
    factors = np.linalg.inv(roots * rng.uniform(0.8, 1.25, (K, 1, 1)))
    factors = np.tril(factors) if form == "full" else np.diagonal(factors, axis1=1, axis2=2).copy()
    diagonals = np.diagonal(factors, axis1=1, axis2=2) if form == "full" else factors
    log_weights = np.log(rng.dirichlet(np.ones(K))) + np.log1p(-noise)
    dof = rng.uniform(0.5, 30, K) if dof is None else np.full(K, dof)
    half = (dof + p) / 2
    log_norm = gammaln(half) - gammaln(dof / 2) - p / 2 * np.log(np.pi * dof)
    part = None
    if noise:
        slanted = np.tril(rng.normal(size=(p, p)), -1) * (not box) / (4 * p)
        bulk = (slanted + np.diag(rng.uniform(0.8, 1.25, p))) / (2 * (spread + 1) * np.sqrt(p))
        log_det = -2 * np.log(np.diagonal(bulk)).sum()
        factor = (bulk if form == "full" else np.diagonal(bulk))[None]
        part = noise_kernel(0.7 * noise, 0.3 * noise, rng.normal(size=p), factor, [log_det], box)
    kernel = ShapeKernel(
        centers + 0.1 * rng.normal(size=(K, p)),
        factors,
        log_weights + log_norm + np.log(diagonals).sum(axis=1),
        half,
        1 / dof,
        (dof + p) / dof,
        part,
    )
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    weight = (rng.random(n) * (rng.random(n) < 0.8)).astype(dtype) if weighted else None
    return Block(X, weight, Frame(np.full(p, offset, dtype), unit)), kernel, Facts(log_weights, dof)


def in_double(block):
    """The same numbers in double precision."""
    return block._replace(weight=None if block.weight is None else block.weight.astype(float))


def magnitudes(expected, block, kernel):
    """For each of the sums the size of its contributions, so that it can be compared."""
    weight = np.ones(len(block.X)) if block.weight is None else block.weight.astype(float)
    log_density = np.abs(shapes.rows(block, kernel).log_density)
    total = weight.sum()
    diagonal = expected.scatter if expected.scatter.ndim == 2 else np.diagonal(expected.scatter, axis1=1, axis2=2)
    diagonal = diagonal.max(initial=0)
    return ShapeStats(
        n=total,
        w=max(expected.w.max(), 1e-3 * total),
        wx=np.sqrt(max(expected.w.max() * diagonal, 0)),
        scatter=diagonal,
        log_u=max(np.abs(expected.log_u).max(), total),
        noise=total,
        beyond=total,
        log_likelihood=(weight * (log_density + kernel.exponent.max())).sum(),
        entropy=total,
    )


def assert_sums_agree(got, block, kernel, tolerance=1e-12):
    """`got` are the sums of the reference engine, up to rounding."""
    with np.errstate(over="ignore"):
        expected = shapes.summarize(in_double(block), kernel)
        scale = magnitudes(expected, in_double(block), kernel)
    for field in ShapeStats._fields[:9]:
        mine, oracle = np.asarray(getattr(got, field)), np.asarray(getattr(expected, field))
        assert mine.shape == oracle.shape, field
        error = np.max(np.abs(mine - oracle)) / (getattr(scale, field) or 1.0)
        assert error <= sharpness(kernel) * tolerance, f"{field}: {error:.1e}"
    if got.scatter.ndim == 3:
        np.testing.assert_array_equal(got.scatter, got.scatter.swapaxes(1, 2))


def sharpness(kernel):
    """A membership is as sharp as its exponent makes the rounding of a distance."""
    steepness = kernel.exponent * kernel.slope  # of ln f by D, for small D
    return max(1.0, 0.1 * float(np.max(np.minimum(kernel.exponent, 1e3 * steepness))))


def assert_everything_agrees(engine, block, kernel, tolerance=1e-12):
    """All that an engine can tell of a block is what the reference engine tells."""
    assert_sums_agree(engine.summarize(block, kernel), block, kernel, tolerance)
    tolerance = 10 * tolerance * sharpness(kernel)
    with np.errstate(over="ignore"):
        expected, tau = shapes.rows(in_double(block), kernel), shapes.memberships(in_double(block), kernel)
        distances = shapes.distances(in_double(block), kernel)
    got = engine.rows(block, kernel)
    assert got.label.dtype == np.int64
    assert {values.dtype for values in got[1:]} == {np.dtype(np.float64)}
    chosen = np.take_along_axis(tau, got.label[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, tau.max(axis=1), rtol=0, atol=tolerance)
    same = got.label == expected.label
    np.testing.assert_allclose(got.d2[same], expected.d2[same], rtol=tolerance)
    np.testing.assert_allclose(got.log_density, expected.log_density, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got.trust, expected.trust, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got.noise, expected.noise, rtol=0, atol=tolerance)
    np.testing.assert_allclose(engine.memberships(block, kernel), tau, rtol=0, atol=tolerance)
    np.testing.assert_allclose(engine.distances(block, kernel), distances, rtol=tolerance)
