"""The records of clusters with shapes: what `tkmeans.stats` is for round ones.

A `Block` enters an engine with a `ShapeKernel`; a `ShapeStats` leaves it. Shapes: n rows, p features, K components.
"""

from typing import NamedTuple

from tkmeans.stats import Array


class NoiseKernel(NamedTuple):
    """The noise component, as plain numbers: flat in an ellipsoid or a box, falling beyond it.

    With ``r = |factor (x - center)|``, or the largest entry for a box, its log-density with its weight is ``height``
    where r <= 1 and ``beyond - p ln(r) - 2 ln(1 + ln(r))`` elsewhere.
    """

    center: Array  # (p,)
    factor: Array  # (p, p), or (p,) if it is diagonal
    height: float  # in the bulk
    beyond: float  # just outside it
    box: bool = False  # whose factor is diagonal


class ShapeKernel(NamedTuple):
    """How a row becomes memberships and influence, as plain numbers.

    With ``D = |factor (x - center)|^2`` and ``base = 1 + slope D`` the log-density of a component, with its
    weight, is ``height - exponent ln(base)``, and ``u = gain / base``.
    """

    centers: Array  # (K, p) mu, in the coordinates of a frame
    factors: Array  # (K, p, p) lower triangular with factor Sigma factor^T = 1, or (K, p) if Sigma is diagonal
    height: Array  # (K,) ln of the weight times the density at the centre
    exponent: Array  # (K,) (nu + p) / 2
    slope: Array  # (K,) 1 / nu
    gain: Array  # (K,) u at the centre, (nu + p) / nu
    noise: NoiseKernel | None = None


class ShapeStats(NamedTuple):
    """Sums over rows, around the old centres; everything an M-step needs."""

    n: Array  # (K,) sum of tau
    w: Array  # (K,) sum of tau u
    wx: Array  # (K, p) sum of tau u (x - mu_old)
    scatter: Array  # (K, p, p) sum of tau u (x - mu_old)(x - mu_old)^T, or (K, p), its diagonal
    log_u: Array  # (K,) sum of tau E(ln u); from an engine, minus the sum of tau ln(base)
    noise: float  # sum of the probabilities of the noise
    beyond: float  # the same over rows outside its ellipsoid
    log_likelihood: float
    entropy: float  # of the memberships, the noise included
    log_prior: float = 0.0  # of the parameters; not a sum

    @property
    def objective(self) -> float:
        """The penalised log-likelihood."""
        return self.log_likelihood + self.log_prior

    @property
    def total(self) -> float:
        """The summed weight of the rows."""
        return float(self.n.sum()) + self.noise

    def merge(self, other: "ShapeStats") -> "ShapeStats":
        """The statistics of both sets of rows together."""
        return ShapeStats._make([*(a + b for a, b in zip(self[:9], other[:9], strict=True)), self.log_prior])


class ShapeRows(NamedTuple):
    """What an engine can tell of each row."""

    label: Array  # (n,) the most probable component, noise apart
    d2: Array  # (n,) squared Mahalanobis distance to it
    log_density: Array  # (n,)
    trust: Array  # (n,) sum over components of tau u: near 0 for outliers
    noise: Array  # (n,) the probability of the noise
    entropy: Array  # (n,) of the memberships, the noise included
