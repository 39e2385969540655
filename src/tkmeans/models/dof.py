"""The equation for the degrees of freedom, eqn:nu_eq, solved as it stands."""

from __future__ import annotations

import math

from scipy.optimize import brentq
from scipy.special import digamma

# Below 1 the tails are heavier than Cauchy's and, in many dimensions, the likelihood
# rewards centres that collapse onto single rows; above 200 a t distribution cannot be
# told from a Gaussian and the estimate would drift for ever.
BOUNDS = (1.0, 200.0)

# From here on the asymptotic series is exact to double precision, while the
# difference of two nearly equal logarithms is not.
_SERIES_FROM = 20.0


def log_minus_digamma(a: float) -> float:
    """``ln(a) - psi(a)``: positive, falling from infinity to 0."""
    if a < _SERIES_FROM:
        return math.log(a) - float(digamma(a))
    b = 1 / (a * a)
    return 0.5 / a + b * (1 / 12 - b * (1 / 120 - b * (1 / 252 - b * (1 / 240 - b / 132))))


def solve_dof(eta: float, bounds: tuple[float, float] = BOUNDS) -> float:
    """The root nu of ``ln(nu/2) - psi(nu/2) + eta = 0``, or the nearer bound.

    The paper takes 1/(-eta), its first-order approximation, which can lower the
    likelihood; the left side falls in nu, so the root is unique and the bound is
    the best admissible value where there is none in between.
    """
    low, high = bounds

    def left_side(nu: float) -> float:
        return log_minus_digamma(nu / 2) + eta

    if left_side(low) <= 0:
        return low
    if left_side(high) >= 0:
        return high
    return float(brentq(left_side, low, high, xtol=1e-13, rtol=1e-14))
