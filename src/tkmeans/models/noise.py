"""The noise component: a proper density for rows that belong to no cluster, wherever they are.

In the bulk, an ellipsoid that holds most rows, it is flat. Beyond, at r times the bulk's radius, it falls as

    r^-p (1 + ln r)^-2,

so that the logarithm of the radius has a density, (1 + ln r)^-2, that is nearly flat far out: rows ten and ten
thousand radii away are about as probable. The bulk has the volume V; the integral beyond it is p times
that inside, so the density in the bulk is 1/((1 + p) V). There is no largest radius to be given, and a far
row changes nothing.
"""

import math

import numpy as np

from tkmeans.shape_stats import NoiseKernel
from tkmeans.stats import Array

BULK = 0.9  # of the rows lie in the bulk


def noise_kernel(share: float, center: Array, factors: Array, log_det: Array) -> NoiseKernel:
    """The noise of so many of the rows around the ellipsoid with these whitening factors, (1, ...), and ln det."""
    p = len(center)
    log_ball = p / 2 * math.log(math.pi) - math.lgamma(p / 2 + 1)
    height = math.log(share) - log_ball - float(log_det[0]) / 2 - math.log1p(p)
    return NoiseKernel(center, factors[0], 1.0, height)


def bulk_radius(d2: Array, weight: Array) -> float:
    """The squared radius of the bulk, of squared distances from its centre."""
    return float(np.quantile(d2, BULK, weights=weight, method="inverted_cdf"))
