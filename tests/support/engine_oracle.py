"""The reference engine as the oracle of the native one.

float32 rows are compared on the same numbers in float64, so that an error is the native engine's own. Errors
are relative to the sum of the absolute contributions to a number, the scale on which rounding happens.
"""

import numpy as np

from tkmeans.engines import reference
from tkmeans.stats import Block, Frame, Stats


def in_double(block):
    weight = None if block.weight is None else block.weight.astype(float)
    return Block(block.X.astype(float), weight, Frame(block.frame.origin.astype(float), block.frame.unit))


def magnitudes(block, params, kernel):
    """For each field of Stats the largest sum of absolute contributions to one of its numbers."""
    e = reference._e_step(block, params, kernel)
    weight = np.ones(len(e.x)) if block.weight is None else block.weight
    tau = weight[:, None] * e.tau
    wtau = tau * e.u**kernel.power
    log_base = np.log1p(kernel.slope * e.d2)
    log_gain, bias = np.log(kernel.gain)[e.n_observed], kernel.log_u_bias[e.n_observed]
    log_density = np.abs(kernel.log_norm[e.n_observed]) + kernel.exponent[e.n_observed] * log_base.min(axis=1) + 1
    return Stats(
        n=tau.sum(axis=0).max(),
        w=wtau.sum(axis=0).max(),
        observed=wtau.sum(axis=0).max(),
        wx=(wtau.T @ np.abs(e.x) + wtau.sum(axis=0)[:, None] * np.abs(params.centers)).max(),
        wd2=(wtau * e.d2).sum(axis=0).max(),
        log_u=(tau * (log_base + np.abs(log_gain)[:, None] + np.abs(bias)[:, None])).sum(axis=0).max(),
        cells=(weight * e.n_observed).sum(),
        objective=(weight * log_density).sum(),
        entropy=weight.sum(),
    )


def stats_errors(got, block, params, kernel, fields=Stats._fields):
    """How far each field of `got` is off, relative to its magnitude."""
    block = in_double(block)
    expected, scale = reference.summarize(block, params, kernel), magnitudes(block, params, kernel)
    assert got.observed.shape == expected.observed.shape
    away = {field: np.max(np.abs(np.asarray(getattr(got, field)) - getattr(expected, field))) for field in fields}
    return {field: float(error / (getattr(scale, field) or 1)) for field, error in away.items()}
