"""The degrees of freedom nu: their bounds, eqn:nu_eq solved as it stands, and gamma functions in full precision."""

import math

import numpy as np
from scipy.special import digamma, gammaln

from tkmeans.stats import Array

# Below 1 tails are heavier than Cauchy's; above 200 rows cannot tell a t from a Gaussian: the estimate would drift.
BOUNDS, PER_COLUMN, LIGHTEST = (1.0, 200.0), 100.0, 1e4
# The most that a row on a centre may weigh more than an ordinary one where nothing is known yet: u(0) = 1 + p/nu.
MOST_TRUST = 9.0
# From here on asymptotic series are exact to double precision; the difference of nearly equal large numbers is not.
_SERIES_FROM = 20.0


def first_dof(n_features: int) -> float:
    """Tails to begin with: heavy, so that outliers do not pull, but not so heavy that one row holds a centre.

    Seeds are rows. With nu = 1 in many dimensions a row with a centre on it outweighs all others of its cluster.
    """
    return max(BOUNDS[0], n_features / (MOST_TRUST - 1))


def most_dof(n_features: float) -> float:
    """The lightest tails of a round model: its squared distances vary by 2/nu more than the 2/p of a Gaussian.

    So in many columns 200 is not light; above 1e4 single precision has no digits left.
    """
    return min(max(BOUNDS[1], PER_COLUMN * n_features), LIGHTEST)


def least_dof(n_clusters: int, n_features: int, n_rows: float) -> float:
    """The heaviest tails with which the likelihood has a maximum.

    With every centre on a row of its own it goes as alpha^-(K p - nu (n - K))/2, so alpha
    would vanish if nu were less than K p / (n - K); twice that is on the safe side.
    """
    K = int(n_clusters)
    return min(max(BOUNDS[0], 2 * K * n_features / max(n_rows - K, 1)), BOUNDS[1])


def solve_dof(eta: float, bounds: tuple[float, float] = BOUNDS) -> float:
    """The root nu of ``ln(nu/2) - psi(nu/2) + eta = 0``, or the nearer bound.

    The paper takes 1/(-eta), its first-order approximation, which can lower the likelihood; the left side falls in nu,
    so the root is unique and the bound is the best admissible value where there is none in between.
    """
    low, high = bounds
    if not eta < -1 / high or eta <= -2 / low:  # 1/nu < ln(nu/2) - psi(nu/2) < 2/nu
        return low if eta <= -2 / low else high
    # By secants in t = 2/nu, in which the left side is nearly the parabola eta + t/2 + t^2/12.
    before, rest, t = 0.0, eta, math.sqrt(9 - 12 * eta) - 3
    for _ in range(20):  # four to six do
        value = log_minus_digamma(1 / t) + eta
        if abs(t - before) <= 1e-15 * t or value == rest:
            break
        before, rest, t = t, value, max(t - value * (t - before) / (value - rest), t / 2)
    return min(max(2 / t, low), high)


def log_minus_digamma(a: float) -> float:
    """``ln(a) - psi(a)``: positive, falling from infinity to 0."""
    if a < _SERIES_FROM:
        return math.log(a) - float(digamma(a))
    b = 1 / a / a  # a * a may overflow
    return 0.5 / a + b * (1 / 12 - b * (1 / 120 - b * (1 / 252 - b * (1 / 240 - b / 132))))


def log_gamma_ratio(a: float, b: Array) -> Array:
    """``ln(Gamma(a + b) / Gamma(a)) - b ln(a)``, which tends to 0 as a grows."""
    if a < _SERIES_FROM:
        return gammaln(a + b) - gammaln(a) - b * math.log(a)
    return (a - 0.5 + b) * np.log1p(b / a) - b + _stirling_rest(a + b) - _stirling_rest(a)


def _stirling_rest(a: Array) -> Array:
    """``ln Gamma(a)`` beyond Stirling's formula, for large a."""
    b = np.square(1 / a)  # in this order: a may be too large to square
    return (1 / 12 - b * (1 / 360 - b * (1 / 1260 - b * (1 / 1680 - b / 1188)))) / a
