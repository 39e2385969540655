"""The noise component: a proper density for rows that belong to no cluster, wherever they are.

A share of the noise is uniform in the bulk, an ellipsoid or a box of volume V that holds most rows of the clusters. The
rest lies beyond it, where at r times the bulk's radius the density is

    1/(p V) r^-p (1 + ln r)^-2,

so that the logarithm of the radius has a density, (1 + ln r)^-2, that is nearly flat far out: rows ten and ten
thousand radii away are about as probable. There is no largest radius to be given, and a far row changes nothing.
"""

import math
import sys

from tkmeans.shape_stats import NoiseKernel
from tkmeans.stats import Array

# Of each part of the noise: less would take EM for ever, and far rows are noise with less; more are the clusters.
NOISE_BOUNDS = (1e-8, 0.45)
NO_NOISE = 2e-8  # in the bulk: a share that has fallen so low stays there, so that noise can be beyond it alone


def noise_kernel(share: float, beyond: float, center: Array, factors: Array, log_det: Array, box: float) -> NoiseKernel:
    """The noise of such shares in, and beyond, an ellipsoid with these factors, (1, ...), and ln det, or its box."""
    p = len(center)
    volume = log_volume(p, float(log_det[0]), box)
    rim = math.log(beyond) - volume - math.log(max(p, 1))
    return NoiseKernel(center, factors[0], math.log(share) - volume, rim, bool(box))


def log_volume(p: int, log_det: float, box: float = 0.0) -> float:
    """Of an ellipsoid whose matrix has this ln det, or of the box around it."""
    return (p * math.log(2) if box else p / 2 * math.log(math.pi) - math.lgamma(p / 2 + 1)) + log_det / 2


def noise_shares(inside: float, beyond: float, rest: float) -> tuple[float, float]:
    """The most likely shares within bounds, of noise in the bulk and beyond it, if components have mass `rest`.

    The larger share reaches its bound first; what is left is divided as if there were no other.
    """
    large, small = max(inside, beyond), min(inside, beyond)
    first = _share(large, small + rest, 1.0)
    second = _share(small, rest, 1 - first)
    first = _share(large, rest, 1 - second)
    return (first, second) if inside >= beyond else (second, first)


def _share(mass: float, other: float, whole: float) -> float:
    return min(max(whole * mass / max(mass + other, sys.float_info.min), NOISE_BOUNDS[0]), NOISE_BOUNDS[1])
