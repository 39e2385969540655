"""The equation for the degrees of freedom, eqn:nu_eq, solved as it stands."""

from __future__ import annotations

from scipy.optimize import brentq

from tkmeans.models.special import log_minus_digamma

# Below 1 the tails are heavier than Cauchy's and, in many dimensions, the likelihood
# rewards centres that collapse onto single rows; above 200 a t distribution cannot be
# told from a Gaussian and the estimate would drift for ever.
BOUNDS = (1.0, 200.0)


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
