"""Differences of logarithms of gamma functions, without losing their digits."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import digamma, gammaln

from tkmeans.stats import Array

# From here on the asymptotic series are exact to double precision, while the
# difference of two nearly equal large numbers is not.
_SERIES_FROM = 20.0


def log_minus_digamma(a: float) -> float:
    """``ln(a) - psi(a)``: positive, falling from infinity to 0."""
    if a < _SERIES_FROM:
        return math.log(a) - float(digamma(a))
    b = 1 / a / a  # a * a may overflow
    return 0.5 / a + b * (1 / 12 - b * (1 / 120 - b * (1 / 252 - b * (1 / 240 - b / 132))))


def log_gamma_ratio(a: float, b: Array) -> Array:
    """``ln(Gamma(a + b) / Gamma(a)) - b ln(a)``, which tends to 0 as a grows."""
    if a < _SERIES_FROM:
        return gammaln(a + b) - gammaln(a) - b * np.log(a)
    return (a - 0.5 + b) * np.log1p(b / a) - b + _stirling_rest(a + b) - _stirling_rest(a)


def _stirling_rest(a: Array) -> Array:
    """``ln Gamma(a)`` beyond Stirling's formula, for large a."""
    b = np.square(1 / a)  # in this order: a may be too large to square
    return (1 / 12 - b * (1 / 360 - b * (1 / 1260 - b * (1 / 1680 - b / 1188)))) / a
