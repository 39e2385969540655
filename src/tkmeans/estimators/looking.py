"""What a fitted model says of the rows of one block: small functions that can travel to where the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, final

import numpy as np
from scipy.special import betaincc, fdtrc

from tkmeans.estimators.validation import observed_features
from tkmeans.models import CenterModel
from tkmeans.outliers import ENOUGH_COMPLETE_ROWS, OutlierModel, Tally, tally, threshold_over
from tkmeans.sources import Seen
from tkmeans.sources.base import to_numpy
from tkmeans.stats import HORIZON, Array, Block, Frame, Kernel, Params, Rows, namespace

# Squared distances beyond this are as good as infinite; times the largest weight they stay finite.
FARTHEST_SQUARE = 1e250

# With more degrees of freedom `fdtrc` of SciPy 1.14 loses digits; `betaincc` does not, but takes ten times as long.
NEARLY_GAUSSIAN = 1e6
# With more still no digit of a tail probability changes, but SciPy's functions fail.
AS_GOOD_AS_GAUSSIAN = 1e20


@final
@dataclass(frozen=True)
class Lens:
    """A fitted model, ready to look at rows in a frame whose unit is the root of its scale."""

    model: CenterModel
    params: Params
    kernel: Kernel
    frame: Frame
    centers: Array  # (K, p) in the user's coordinates

    def fields(self, block: Block, *names: str) -> tuple[Array, ...]:
        """Some of what can be said of each row, in the user's units."""
        rows = self.model.engine.rows(block, self.params, self.kernel)
        return tuple(getattr(self, f"_{name}")(block, rows) for name in names)

    def memberships(self, block: Block) -> Seen:
        """The probability of every cluster."""
        return Seen((self.model.engine.memberships(block, self.params, self.kernel),))

    def distances(self, block: Block) -> Seen:
        """The distance to every centre."""
        distances = self.model.engine.distances(block, self.params)
        xp = namespace(distances)
        with np.errstate(over="ignore"):
            distances *= self.frame.unit  # a Python number: the type of the rows stays
        most = float(xp.finfo(distances.dtype).max)
        horizon = HORIZON["float32" if distances.dtype == xp.float32 else "float64"] * self.frame.unit
        far = xp.max(distances, axis=1) > 0.5 * min(horizon, most)
        if bool(xp.any(far)):  # too far for the frame
            exact = far_distances(to_numpy(block.X[far]), self.centers)
            distances[far] = xp.asarray(np.minimum(exact, most), dtype=distances.dtype, device=distances.device)
        return Seen((distances,))

    def _label(self, block: Block, rows: Rows) -> Array:
        return rows.label

    def _d2(self, block: Block, rows: Rows) -> Array:
        """Squares that no sum could hold are held at what one can."""
        xp = namespace(rows.d2)
        square = self.frame.unit**2
        return xp.clip(xp.astype(rows.d2, xp.float64), 0.0, FARTHEST_SQUARE / square) * square

    def _n_seen(self, block: Block, rows: Rows) -> Array:
        n_seen = observed_features(block.X)
        return np.full(block.X.shape[0], n_seen) if isinstance(n_seen, int) else to_numpy(n_seen)

    def _log_density(self, block: Block, rows: Rows) -> Array:
        n_seen = observed_features(block.X)
        if not isinstance(n_seen, int):
            n_seen = namespace(n_seen).astype(n_seen, rows.log_density.dtype)
        return rows.log_density - n_seen * float(np.log(self.frame.unit))

    def _trust(self, block: Block, rows: Rows) -> Array:
        return rows.trust

    def _pvalue(self, block: Block, rows: Rows) -> Array:
        """The tail of F(p, nu); the special function is SciPy's, wherever the rows are."""
        d2, n_seen = to_numpy(rows.d2).astype(np.float64), to_numpy(observed_features(block.X))
        p = np.where(np.asarray(n_seen) > 0, n_seen, np.nan)  # nothing observed, nothing to say
        pvalue = tail_of_f(p, min(self.params.dof, AS_GOOD_AS_GAUSSIAN), d2)
        if isinstance(rows.d2, np.ndarray):
            return pvalue
        return namespace(rows.d2).asarray(pvalue, device=rows.d2.device)


def tail_of_f(p: Array, dof: float, d2: Array) -> Array:
    """The probability of a larger squared distance, over the squared scale, than these: P(F(p, nu) > d2/p)."""
    if dof < NEARLY_GAUSSIAN:
        return fdtrc(p, dof, d2 / p)
    ratio = d2 / dof
    return betaincc(p / 2, dof / 2, ratio / (1 + ratio))


def far_distances(X: Array, centers: Array) -> Array:
    """Euclidean distances over the observed features of rows whose squares no float64 can hold."""
    away = np.nan_to_num(np.abs(X[:, None, :] / 2 - centers / 2))  # (n, K, p), halved: a difference may be too large
    largest = np.max(away, axis=2)
    shape = away / np.where(largest > 0, largest, 1)[:, :, None]
    with np.errstate(over="ignore"):
        return 2 * largest * np.sqrt(np.sum(shape**2, axis=2))


class Review(NamedTuple):
    """What a fit keeps of the training rows as a whole."""

    sizes: Array  # (K,) weight of the rows of each cluster
    inertia: float
    distances: Tally  # of complete rows, in units of the scale
    n_complete: int  # how many of these count
    incomplete: Tally | None = None  # of the others, as if all features had been observed

    def merge(self, other: Review) -> Review:
        """The review of both sets of rows."""
        parts = [part for part in (self.incomplete, other.incomplete) if part is not None]
        return Review(
            self.sizes + other.sizes,
            self.inertia + other.inertia,
            self.distances.merge(other.distances),
            self.n_complete + other.n_complete,
            parts[0].merge(parts[1]) if len(parts) > 1 else parts[0] if parts else None,
        )

    def comparable(self) -> Tally:
        """The distances that say who is an outlier, as `outliers.comparable` chooses them."""
        if self.incomplete is None or self.n_complete >= ENOUGH_COMPLETE_ROWS:
            return self.distances
        return self.distances.merge(self.incomplete)


class Inertia(NamedTuple):
    """A sum of squared distances."""

    value: float

    def merge(self, other: Inertia) -> Inertia:
        """The sum over both sets of rows."""
        return Inertia(self.value + other.value)


def inertia(lens: Lens, block: Block) -> Inertia:
    """The weighted sum of squared distances to the nearest centres."""
    d2 = to_numpy(lens.fields(block, "d2")[0])
    return Inertia(float(np.sum(d2) if block.weight is None else d2 @ to_numpy(block.weight)))


def review(lens: Lens, names: tuple[str, ...], block: Block) -> Seen:
    """Fields of the training rows, and their review."""
    label, d2, *rows = lens.fields(block, "label", "d2", *names)
    label, d2 = to_numpy(label), to_numpy(d2)
    weight = None if block.weight is None else to_numpy(block.weight)
    sizes = np.bincount(label, weight, len(lens.params.centers))
    inertia = float(np.sum(d2) if weight is None else d2 @ weight)
    n_features, n_seen = block.X.shape[1], to_numpy(observed_features(block.X))
    z = d2 / lens.frame.unit**2
    if isinstance(n_seen, int):
        n_complete = len(z) if weight is None else int(np.count_nonzero(weight))
        return Seen(tuple(rows), Review(sizes, inertia, tally(z, weight), n_complete))
    mass = np.ones(len(z)) if weight is None else weight
    complete, partly = n_seen == n_features, (n_seen > 0) & (n_seen < n_features)
    scaled = z[partly] * (n_features / n_seen[partly])
    n_complete = int(np.count_nonzero(mass[complete]))
    found = Review(sizes, inertia, tally(z[complete], mass[complete]), n_complete, tally(scaled, mass[partly]))
    return Seen(tuple(rows), found)


def reviewed(lens: Lens, block: Block) -> Review:
    """The review alone."""
    found: Review = review(lens, (), block).summary
    return found


def look(lens: Lens, names: tuple[str, ...], block: Block) -> Seen:
    """Fields of each row."""
    return Seen(lens.fields(block, *names))


def labels(lens: Lens, strays: OutlierModel, level: float, outlier_label: int, block: Block) -> Seen:
    """The cluster of each row, or `outlier_label` for strays."""
    label, d2 = lens.fields(block, "label", "d2")
    xp = namespace(label)
    return Seen((xp.where(_stray(d2, block.X, strays, level), xp.full_like(label, outlier_label), label),))


def astray(lens: Lens, strays: OutlierModel, level: float, block: Block) -> Seen:
    """Whether each row is more probably a stray than `level`."""
    return Seen((_stray(lens.fields(block, "d2")[0], block.X, strays, level),))


def improbable(lens: Lens, level: float, block: Block) -> Seen:
    """Whether each row's tail probability is below the level."""
    return Seen((lens.fields(block, "pvalue")[0] < level,))


def entropy(lens: Lens, block: Block) -> Seen:
    """How open it is which cluster each row belongs to, in nats."""
    tau = lens.memberships(block).rows[0]
    xp = namespace(tau)
    return Seen((-xp.sum(tau * xp.log(xp.where(tau > 0, tau, xp.ones_like(tau))), axis=1),))


def _stray(d2: Array, X: Array, strays: OutlierModel, level: float) -> Array:
    n_seen = observed_features(X)
    if isinstance(n_seen, int):
        return d2 > threshold_over(n_seen, strays, X.shape[1], level)
    numbers, which = np.unique(to_numpy(n_seen), return_inverse=True)
    thresholds = np.array([threshold_over(int(number), strays, X.shape[1], level) for number in numbers])
    return d2 > namespace(d2).asarray(thresholds[which], device=d2.device)
