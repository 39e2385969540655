"""The records that pass between the EM loop, models, engines and sources: rows go in, small addable numbers come out.

A `Block` enters an engine together with `Params` and a `Kernel`; a `Stats` leaves it. Only `Stats` travels between
blocks, threads, processes and machines, so the algorithm never has to know where rows live.

Shapes: n rows, p features, K clusters.
"""

from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np

# Arrays of any library that follows the array API; NumPy's in most of the package.
Array = Any

# Coordinates this many units away are as good as infinitely far; held there, their squares and products stay finite.
HORIZON = {"float64": 1e100, "float32": 1e12}
LARGEST_SINGLE = float(np.finfo(np.float32).max)

# Summed weights below this have no digits left in single precision: nobody claims such a centre, and it stays.
CRUMBS_SINGLE = 1e-36
TINY = float(np.finfo(np.float64).tiny)


def namespace(x: Array) -> Any:
    """The library of an array, with the names of the array API."""
    if hasattr(x, "__array_namespace__"):
        return x.__array_namespace__()
    import array_api_compat  # of libraries that have the functions, but not all of their names

    return array_api_compat.array_namespace(x)


class Frame(NamedTuple):
    """The coordinates the algorithm works in: ``(x - origin) / unit``.

    Squared distances lose their digits where data lie far from zero and overflow where they are large; and what is
    measured in the data's own unit comes out the same in metres and in miles.
    """

    origin: Array  # (p,) of the data's own type, so that the difference is exact
    unit: float  # the spread of the data

    def enter(self, points: Array, *, coarse: bool = False) -> Array:
        """From the user's coordinates to ours; if they are `coarse`, in float64 without the last 13 bits.

        These depend on the unit and the origin, and so would what is decided by rows that are equally far away.
        """
        xp = namespace(points)
        horizon = HORIZON["float64"] * self.unit
        if points.dtype == xp.float32:
            horizon = min(HORIZON["float32"] * self.unit, LARGEST_SINGLE)
        with np.errstate(over="ignore", invalid="ignore"):  # what is infinitely far is held at the horizon
            inside = xp.clip(points - self.origin, -horizon, horizon) * (1.0 / self.unit)
        if not coarse:
            return inside
        high = (inside := inside.astype(np.float64, copy=False)) * (2.0**13 + 1)  # Veltkamp 1968
        return np.subtract(high, np.subtract(high, inside, out=inside), out=high)

    def leave(self, points: Array) -> Array:
        """From our coordinates to the user's."""
        return points * self.unit + self.origin


class Block(NamedTuple):
    """A run of rows in the user's coordinates, and the frame to read them in."""

    X: Array  # (n, p); NaN where a feature was not observed
    weight: Array | None  # (n,) sample weights; None means one each
    frame: Frame


class Params(NamedTuple):
    """What EM estimates (the paper's Psi), in the coordinates of a frame."""

    centers: Array  # (K, p) mu
    scale: float  # alpha
    dof: float  # nu
    log_weights: Array  # (K,) ln pi


class Kernel(NamedTuple):
    """How a squared distance D becomes a membership and a trust, as plain numbers.

    With ``base = 1 + slope * D`` the log-membership of a row in a cluster is ``log_weights + log_norm - exponent *
    ln(base)``, its trust is ``u = gain / base``, and it counts ``tau * u**power`` in that cluster's centre. The last
    four are tables over the number of *observed* features, 0 to p: with a spherical scale the marginal of a t
    distribution is a t distribution.
    """

    slope: float  # 1 / (nu alpha)
    power: int  # q. 1: the paper's t-k-means; 0: its fast variant as published
    exponent: Array  # (p + 1,) (nu + p) / 2
    log_norm: Array  # (p + 1,) ln of the density at the centre
    gain: Array  # (p + 1,) u at the centre
    log_u_bias: Array  # (p + 1,) E(ln u) - ln E(u), eqn: un
    log_sums: bool = True  # are log_u and entropy wanted? Without them an engine may take a shorter way


class Located(Protocol):
    """Parameters of any model that runs in the loop: they have centres."""

    @property
    def centers(self) -> Array:
        """Of shape (K, p), in the coordinates of a frame."""


class Mergeable(Protocol):
    """What blocks of rows can be summed up in."""

    def merge(self, other: Self) -> Self:
        """The summary of both blocks, this one's rows first."""


class Summary(Mergeable, Protocol):
    """What any model's E-step computes for a block of rows."""

    @property
    def objective(self) -> float:
        """What the model maximises, summed over the rows."""

    @property
    def total(self) -> float:
        """The summed weight of the rows."""


P = TypeVar("P", bound=Located)
S = TypeVar("S", bound=Summary)


class Stats(NamedTuple):
    """Sums over rows, around the old centres; everything an M-step needs."""

    n: Array  # (K,) sum of tau
    w: Array  # (K,) sum of tau u^q
    observed: Array  # (K, p) the same over rows that have the feature, or (K, 1) if all have
    wx: Array  # (K, p) sum of tau u^q (x - mu_old)
    wd2: Array  # (K,) sum of tau u^q |x - mu_old|^2
    log_u: Array  # (K,) sum of tau E(ln u)
    cells: float  # sum over rows of their observed features
    objective: float  # the log-likelihood, or what the model maximises in its place
    entropy: float  # of the memberships, for ICL

    @property
    def total(self) -> float:
        """The summed weight of the rows."""
        return float(np.add.reduce(self.n))

    @property
    def step(self) -> Array:
        """From the old centres to the new ones, (K, p), eqn:mu; a centre that nobody claims stays."""
        return self.wx / np.maximum(self.observed, TINY)

    def merge(self, other: "Stats") -> "Stats":
        """The statistics of both sets of rows; `observed` of shapes (K, 1) and (K, p) add up by broadcasting."""
        return Stats(*(a + b for a, b in zip(self, other, strict=True)))

    def faded(self, kept: float) -> "Stats":
        """The statistics of the same rows, each counting `kept` times what it did."""
        return Stats(*(kept * a for a in self))

    def take(self, order: Array) -> "Stats":
        """The same with the clusters in another order."""
        return Stats._make([*(by_cluster[order] for by_cluster in self[:6]), *self[6:]])

    def around(self, step: Array) -> "Stats":
        """The same sums around centres that lie `step`, (K, p), away from the old ones; memberships stay the same."""
        wx = self.wx - self.observed * step
        return self._replace(wx=wx, wd2=self.wd2 - ((self.wx + wx) * step).sum(axis=1))


class Rows(NamedTuple):
    """What an engine can tell of each row."""

    label: Array  # (n,) the most probable cluster
    d2: Array  # (n,) squared distance to the nearest centre
    log_density: Array  # (n,)
    trust: Array  # (n,) sum over clusters of tau u: near 0 for outliers


class Outcome(NamedTuple, Generic[P, S]):
    """Where a run of EM ended, and how it came there."""

    params: P
    stats: S  # at `params`
    history: list[float]  # objective per unit of sample weight, after every accepted step
    n_passes: int  # visits to the data, rejected steps included
    converged: bool
    interrupted: BaseException | None = None  # the Ctrl-C that ended it
    left: Any = None  # the model and its acceleration, for a run that goes on


Fit = Outcome[Params, Stats]
