"""The reference engine for clusters with shapes, in plain array-API operations. It is the definition.

Rows are complete, and sums in double precision. `tkmeans.engines.native.shapes` returns the same numbers, quickly.
"""

from importlib import import_module
from types import ModuleType
from typing import NamedTuple

import numpy as np

from tkmeans.engines import reference
from tkmeans.engines.reference import like
from tkmeans.shape_stats import NoiseKernel, ShapeKernel, ShapeRows, ShapeStats
from tkmeans.stats import Array, Block, namespace


def of(engine: ModuleType) -> ModuleType:
    """The part of an engine that knows shapes."""
    return import_module("tkmeans.engines.shapes" if engine is reference else "tkmeans.engines.native.shapes")


class _EStep(NamedTuple):
    away: list[Array]  # K times (n, p): x - mu
    d2: Array  # (n, K)
    log_base: Array  # (n, K) ln(1 + D/nu)
    log_f: Array  # (n, K) ln of weight and density
    tau: Array  # (n, K) the noise takes what is left to 1
    u: Array  # (n, K)
    noise: Array  # (n,)
    beyond: Array  # (n,) whether outside the ellipsoid of the noise
    log_density: Array  # (n,)


def summarize(block: Block, kernel: ShapeKernel) -> ShapeStats:
    """The sums of an E-step over one block."""
    e = _e_step(block, kernel)
    xp = namespace(e.tau)
    weight = xp.ones_like(e.log_density) if block.weight is None else like(block.weight, e.tau)
    tau = e.tau * weight[:, None]  # (n, K)
    wtau, scatters = tau * e.u, []
    for k, away in enumerate(e.away):
        part = xp.sqrt(wtau[:, k])[:, None] * away  # (n, p)
        scatters.append(part.T @ part if kernel.factors.ndim == 3 else xp.sum(part * part, axis=0))
    probabilities = xp.concat([e.tau, e.noise[:, None]], axis=1)
    logarithms = xp.log(xp.where(probabilities > 0, probabilities, xp.ones_like(probabilities)))
    wx = xp.stack([wtau[:, k] @ away for k, away in enumerate(e.away)])
    sums = xp.sum(tau, axis=0), xp.sum(wtau, axis=0), wx, xp.stack(scatters), -xp.sum(tau * e.log_base, axis=0)
    beyond = xp.where(e.beyond, e.noise, xp.zeros_like(e.noise))
    noise, of_it_beyond, log_likelihood = (float(xp.sum(weight * each)) for each in (e.noise, beyond, e.log_density))
    entropy = -float(xp.sum(weight[:, None] * probabilities * logarithms))
    return ShapeStats(*sums, noise, of_it_beyond, log_likelihood, entropy)


def rows(block: Block, kernel: ShapeKernel) -> ShapeRows:
    """The model's answers for each row."""
    e = _e_step(block, kernel)
    xp = namespace(e.tau)
    label = xp.argmax(e.log_f, axis=1)
    own = xp.arange(e.d2.shape[1], device=e.d2.device)[None, :] == label[:, None]  # (n, K)
    d2 = xp.sum(xp.where(own, e.d2, xp.zeros_like(e.d2)), axis=1)
    return ShapeRows(label, d2, e.log_density, xp.sum(e.tau * e.u, axis=1), e.noise)


def memberships(block: Block, kernel: ShapeKernel) -> Array:
    """The probability of every component for each row, (n, K); the noise has what is left to 1."""
    return _e_step(block, kernel).tau


def distances(block: Block, kernel: ShapeKernel) -> Array:
    """The distance of each row to every centre in the metric of its component, (n, K)."""
    d2 = _e_step(block, kernel).d2
    return namespace(d2).sqrt(d2)


def log_noise(x: Array, kernel: NoiseKernel) -> tuple[Array, Array]:
    """The log-density of the noise, with its weight, at rows in the frame, (n,), and whether they lie beyond."""
    xp = namespace(x)
    r2 = _square(x - like(kernel.center, x), kernel.factor, kernel.box)
    log_r = xp.log(xp.clip(r2, 1.0, None)) / 2
    falling = kernel.beyond - x.shape[1] * log_r - 2 * xp.log1p(log_r)
    beyond = r2 > 1
    return xp.where(beyond, falling, xp.full_like(falling, kernel.height)), beyond


def _e_step(block: Block, kernel: ShapeKernel) -> _EStep:
    xp = namespace(block.X)
    x = block.frame.enter(xp.astype(block.X, xp.float64))
    away = [x - like(center, x) for center in kernel.centers]
    d2 = xp.stack([_square(a, factor) for a, factor in zip(away, kernel.factors, strict=True)], axis=1)
    ratio = d2 * like(kernel.slope, x)
    log_base = xp.log1p(ratio)
    log_f = like(kernel.height, x) - like(kernel.exponent, x) * log_base  # (n, K)
    log_q = xp.full(x.shape[0], -np.inf, dtype=x.dtype, device=x.device)
    beyond = xp.zeros(x.shape[0], dtype=xp.bool, device=x.device)
    if kernel.noise is not None:
        log_q, beyond = log_noise(x, kernel.noise)
    top = xp.maximum(xp.max(log_f, axis=1), log_q)
    f, q = xp.exp(log_f - top[:, None]), xp.exp(log_q - top)
    whole = xp.sum(f, axis=1) + q
    u = like(kernel.gain, x) / (1 + ratio)
    return _EStep(away, d2, log_base, log_f, f / whole[:, None], u, q / whole, beyond, top + xp.log(whole))


def _square(away: Array, factor: Array, largest: bool = False) -> Array:
    """Squared distances, (n,), of differences, (n, p), in the metric of a factor; or its largest part."""
    factor, xp = like(factor, away), namespace(away)
    white = away @ factor.T if factor.ndim == 2 else away * factor
    return xp.max(white * white, axis=1) if largest and white.shape[1] else xp.sum(white * white, axis=1)
