"""The `Source` interface (reduce, collect, sample, survey), and the choice of the frame that rows are read in."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial, reduce
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from tkmeans.sparse_rows import SparseRows
from tkmeans.stats import Array, Block, Frame, Mergeable, namespace

# Blocks have the same size whatever the number of threads and are merged in order, so results do not depend on it, to
# the last bit. Large enough that what Python does per block is negligible, small enough to keep every thread busy.
BLOCK_ROWS: ContextVar[int] = ContextVar("block_rows", default=8192)

MEASURED_ROWS, USUAL_ROWS = 4096, 4500  # that the frame is measured on, and the deviations of columns, about
MEASURED_CELLS, LEAST_MEASURED = 2**19, 500  # of many columns so many values, about, but no fewer rows
BAD = 9.0  # deviations from the column's median: a bad cell, perhaps
NARROW = 32  # columns: of fewer a copy along memory, (p, n), takes less time than it saves
_NAMED = 5  # rows in a message, at most


M = TypeVar("M", bound=Mergeable)
T = TypeVar("T")
Bounds = tuple[Array, Array]  # the lowest and highest values of columns, (p,) each


class Sample(NamedTuple):
    """Rows in memory that stand for all rows."""

    X: Array  # (m, p) float64, in the frame
    weight: Array  # (m,) positive; sums to the total weight of the source


class Column(NamedTuple):
    """One of the results that a look at the rows has for each of them."""

    name: str
    dtype: Any
    width: int | None = None  # None for one number per row


class Survey(NamedTuple):
    """What must be known of all rows before a fit; rows of weight 0 do not count."""

    n_rows: int
    n_counted: int
    total: float  # weight
    least: float  # weight
    lightest: float  # weight that is positive
    heaviest: float  # weight
    observed: Array  # (p,) rows that count and have the feature
    infinite: Array  # (p,) whether any row at all is infinite there
    n_empty: int = 0  # rows without a single observed value
    first_empty: tuple[int, ...] = ()  # the numbers of a few of them

    def merge(self, other: "Survey") -> "Survey":
        """The survey of both sets of rows."""
        sums = Survey(*(ours + theirs for ours, theirs in zip(self, other, strict=True)))  # of truths: either
        least, lightest = min(self.least, other.least), min(self.lightest, other.lightest)
        heaviest = max(self.heaviest, other.heaviest)
        empty = (*self.first_empty, *(self.n_rows + row for row in other.first_empty))[:_NAMED]
        return sums._replace(least=least, lightest=lightest, heaviest=heaviest, first_empty=empty)


class Answer(NamedTuple):
    """What a look at a block found: something for each row, and a summary of them."""

    rows: tuple[Array, ...]
    summary: Any = None  # Mergeable, or None if nobody asked


class Visited(Protocol):
    """All that the EM loop asks of a source."""

    frame: Frame

    @abstractmethod
    def reduce(self, summarize: Callable[[Block], M]) -> M:
        """The merged summaries of all blocks, in the order of the rows."""


class Source(AbstractContextManager[Any], Visited, ABC):
    """Rows that are visited block by block; use as a context manager."""

    n_rows: int  # a survey may be needed to know it
    n_features: int
    dtype: Any  # NumPy's float64 or float32
    X: Any = None  # the rows, where they are in memory
    names: list[str] | None = None  # of the features
    path: Any = None  # of the file or folder that they come from
    frame: Frame
    weight: Any = None  # of each row; None means one each
    n_counted: int = 0  # rows of positive weight, once a fit has surveyed them
    # From centres in the coordinates of a sample to those of the rows, and their width, where a sample has others.
    lift: Any = None
    least_dof = 0.0  # of a model of these rows
    n_clusters = 0  # wanted, once a start is sought
    least_scale = 0.0  # in the frame
    agreement: Any = None  # of the searches for a start, once there were some: `tkmeans.fitting.starts`
    search_limit: Any = None  # of the time for these searches
    resumed = False  # whether a fit goes on from a checkpoint, of which the search was complete
    bounds: Bounds | None = None  # what is outside is treated as missing
    columns: list[int] | None = None  # that a fit looks at, to which its frame belongs; None for all
    relations: Array | None = None  # of the others to these: `tkmeans.fitting.relations`
    measured: Array | None = None  # the rows that the frame was measured on
    guard: Any = None  # calls functions of blocks that no survey has looked at
    lean = False  # whether rows are too many to keep more than a label of each
    label_dtype: Any = np.int64  # of labels: those of many rows take as little room as they can
    lazy = False  # whether what is collected is computed later, and so has no summary yet
    array_library = "numpy"  # of the blocks

    def __exit__(self, *exception: object) -> None:
        """Nothing to close, unless a source has something."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The summed weight of the rows."""

    @abstractmethod
    def collect(self, look: Callable[[Block], Answer], columns: list[Column]) -> tuple[list[Any], Any]:
        """What `look` answers for each row, in the kind of array the rows came in, and the merged summary."""

    def survey(self) -> Survey:
        """Count rows and values, in one pass."""
        return self.reduce(survey)

    @abstractmethod
    def sample(self, size: int, rng: np.random.RandomState) -> Sample:
        """About `size` rows drawn in proportion to weight; all rows if there are no more."""

    @abstractmethod
    def measure(self) -> Frame:
        """The coordinates to work in, from rows at equal intervals."""

    def seen_by(self, function: Callable[[Block], T]) -> Callable[[Block], T]:
        """`function` of blocks as a fit sees them: checked, without bad cells, with the columns that tell something."""
        if self.columns is not None or self.bounds is not None:
            function = partial(_of_seen, function, self.bounds, self.columns)
        return function if self.guard is None else partial(self.guard, function)

    def beside(self, name: str) -> Any:
        """The file that results about these rows go to; None for rows that are not in a file."""
        return None

    def example(self, sample: Sample) -> Array:
        """What a callable `init` is given: the rows, or if they are not in memory, the sample."""
        return self.frame.leave(sample.X) if self.X is None else self.X


def out_of_bounds(X: Array, low: Array, high: Array) -> Array:
    """The cells below or above bounds of their columns, (n, p), in rows that are ordinary otherwise.

    There they are at most a quarter of the observed cells; or one, if another was observed.
    """
    xp = namespace(X)
    with np.errstate(over="ignore"):  # no bound at all is infinite in single precision
        low, high = (xp.asarray(bound, dtype=X.dtype, device=X.device) for bound in (low, high))
    if not bool(xp.any(outside := (low > X) | (high < X))):
        return outside
    rows = np.flatnonzero(np.any(outside, axis=1)) if isinstance(X, np.ndarray) else slice(None)  # few, most often
    both = outside[rows, ...], ~xp.isnan(X[rows, ...])
    n_outside, n_present = (xp.sum(xp.astype(x, xp.int64), axis=1, keepdims=True) for x in both)
    outside[rows, ...] &= ((n_outside == 1) | (4 * n_outside <= n_present)) & (2 * n_outside <= n_present)
    return outside


def _of_seen(function: Callable[[Block], T], bounds: Bounds | None, columns: Any, block: Block) -> T:
    """`function` of a block without the cells that are out of bounds, and with some of its columns."""
    X, xp = block.X, namespace(block.X)
    if bounds is not None and bool(xp.any(bad := out_of_bounds(X, *bounds))):
        X = xp.where(bad, xp.full_like(X, xp.nan), X)
    X = X if columns is None else xp.take(X, xp.asarray(columns, device=X.device), axis=1)
    return function(block._replace(X=X))


def survey(block: Block) -> Survey:
    """Look for what is missing or infinite; rows that are neither cost one sum."""
    X, weight, xp = block.X, block.weight, namespace(block.X)
    n_rows, n_features = X.shape
    n_counted, weights = n_rows, (1.0, 1.0, 1.0)
    if weight is not None and n_rows:
        n_counted = int(xp.sum(xp.astype(weight != 0, xp.int64)))
        lightest = xp.min(xp.where(weight > 0, weight, xp.full_like(weight, xp.inf)))
        weights = (float(xp.min(weight)), float(lightest), float(xp.max(weight)))
    with np.errstate(over="ignore", invalid="ignore"):  # a sum of large numbers may overflow: then look again
        fine = bool(xp.isfinite(xp.sum(X)))
        total = float(n_rows if weight is None else xp.sum(weight, dtype=xp.float64))
    if fine:
        return Survey(n_rows, n_counted, total, *weights, np.full(n_features, n_counted), np.zeros(n_features, bool))
    present = ~xp.isnan(X) if weight is None else ~xp.isnan(X) & (weight > 0)[:, None]
    observed = to_numpy(xp.sum(xp.astype(present, xp.int64), axis=0))
    infinite = to_numpy(xp.any(xp.isinf(X), axis=0))
    empty = np.flatnonzero(to_numpy(xp.all(xp.isnan(X), axis=1)))
    return Survey(n_rows, n_counted, total, *weights, observed, infinite, len(empty), tuple(empty[:_NAMED].tolist()))


def observed_features(X: Array) -> Any:
    """How many features each row has: one number if all have all, so that complete data cost nothing."""
    if isinstance(X, SparseRows):  # which are complete
        return X.n_features
    xp = namespace(X)
    with np.errstate(over="ignore", invalid="ignore"):  # one pass, no mask; a sum that overflows both ways is NaN, too
        if bool(xp.isnan(xp.sum(X))) and bool(xp.any(missing := xp.isnan(X))):
            return xp.sum(xp.astype(~missing, xp.int64), axis=1)
    return int(X.shape[1])


def to_numpy(values: Any) -> Any:
    """An array of any library as a NumPy array; everything else as it is."""
    if values is None or isinstance(values, (np.ndarray, np.generic, float, int, tuple)):
        return values
    if hasattr(values, "detach"):  # torch
        return values.detach().cpu().numpy()
    try:
        return np.asarray(values)
    except (TypeError, RuntimeError):  # it is on another device
        return np.from_dlpack(values, device="cpu", copy=True)


def merged(parts: Iterable[M]) -> M:
    """One summary of many, in their order."""
    return reduce(lambda whole, part: whole.merge(part), parts)


def measure(X: Array, weight: Array | None) -> Frame:
    """A frame for rows like these, all of which count.

    The origin is the median of each feature and the unit the data's spread: the median distance from there, divided by
    the root of p. Neither can be carried away by outliers, nor depends on chance.
    """
    X, weight = thinned(Sample(X, np.ones(len(X)) if weight is None else weight))
    origin = quantile(X, weight)
    with np.errstate(over="ignore", invalid="ignore"):  # some NaN are invalid in themselves
        away = np.abs(np.asarray(X.T, np.float64, order="C" if X.shape[1] < NARROW else "K") - origin[:, None])
        away[np.isnan(away)] = 0  # (p, n); what was not observed is not away
        largest = np.max(away, axis=0)  # taken out before squaring: no overflow, no underflow
        shape = away / np.where((largest > 0) & np.isfinite(largest), largest, 1)
        distance = largest * np.sqrt(np.add.reduce(np.ascontiguousarray(shape**2)) / X.shape[1])
    spread = float(quantile(distance, weight))
    if spread == 0:  # most rows are equal: let the others speak
        others = (distance > 0) & np.isfinite(distance)
        spread = float(quantile(distance[others], weight[others])) if np.any(others) else 1.0
    return Frame(origin.astype(X.dtype), spread)


def nearest_to_zero(centers: Array) -> Array:
    """The origin to measure rows from that are near these centres: of each feature, the smallest coordinate.

    A row is then no farther from the origin than from zero, give or take a factor of two, so what rounding
    takes away is no more than it was given with; even if some centre lies on an extremely far row.
    """
    least = np.min(np.abs(centers), axis=0)
    return np.where(np.any(centers == -least, axis=0), -least, least)  # whatever the order of the centres


def quantile(values: Array, weight: Array, *shares: float) -> Array:
    """The least value of each column that a share (0.5) of the weight does not exceed, without holes; (shares, p)."""
    if values.size and np.isnan(np.minimum.reduce(values, axis=None)):  # a sum could overflow
        values = np.where(np.all(np.isnan(values), axis=0), 0.0, values)  # nothing is known of such a column
        columns = enumerate(~np.isnan(values).T)
        return np.array([quantile(values[known, j], weight[known], *shares) for j, known in columns]).T
    each = np.ascontiguousarray(values.T)  # (p, n): along memory
    least, most = np.minimum.reduce(weight), np.maximum.reduce(weight)
    times = weight / least if 0 < least < most < 2**20 * least else weight  # rows taken several times: sums are exact
    if 0 < least == most or (most < 8 * least and np.array_equal(times, whole := times.astype(np.int64))):
        each = np.repeat(each, whole, axis=-1) if least < most else each
        places = [max(math.ceil(share * each.shape[-1]) - 1, 0) for share in shares or (0.5,)]
        found = np.partition(each, places, axis=-1)[..., places]
    else:
        order = np.argsort(each, axis=-1)
        up_to = np.cumsum(times[order], axis=-1)  # (p, n)
        places = [np.count_nonzero(up_to < share * up_to[..., -1:], axis=-1) for share in shares or (0.5,)]
        found = np.take_along_axis(each, np.take_along_axis(order, np.stack(places, axis=-1), -1), -1)
    return np.moveaxis(found, -1, 0) if len(shares) > 1 else found[..., 0]


def thinned(sample: Sample) -> Sample:
    """Rows at equal intervals: enough to measure the columns."""
    step = max(1, min(-(-sample.X.size // MEASURED_CELLS), len(sample.X) // LEAST_MEASURED))
    return Sample(sample.X[::step], sample.weight[::step])


def usual(sample: Sample) -> tuple[Array, Array, Array]:
    """Where the values of each column are: the median, and a deviation below and above, infinite if most are equal.

    It is the larger of those that the median deviation, the quartiles and the outer tenth of a side tell of.
    """
    X, weight = (values[:: -(-len(sample.X) // USUAL_ROWS) or 1] for values in sample)
    lowest, low, middle, high, highest = quantile(X, weight, 0.1, 0.25, 0.5, 0.75, 0.9)
    width = np.maximum(quantile(np.abs(X - middle), weight) * 1.4826, (high - low) / 1.349)
    below, above = (np.maximum(width, side / 1.2816) for side in (middle - lowest, highest - middle))
    return middle, np.where(width > 0, below, np.inf), np.where(width > 0, above, np.inf)


def limits(sample: Sample, centers: Array | None = None, spread: Any = None) -> tuple[Array, Array]:
    """Bounds of each column, (p,) each: BAD deviations out, from the outermost of these centres too.

    They are infinite on a side where fewer values are out of bounds than lie between them and half as far out, and
    everywhere if rows with too many values out of bounds are more than those with a few.
    """
    (X, weight), (middle, below, above) = sample, spread or usual(sample)
    low, high = middle - BAD * below, middle + BAD * above
    columns = np.asarray(X.T, order="C" if X.shape[1] < NARROW else "K")  # (p, n)
    if np.all(np.fmin.reduce(columns, axis=1) >= low) and np.all(np.fmax.reduce(columns, axis=1) <= high):
        return low - np.inf, high + np.inf
    half_low, half_high = middle - BAD / 2 * below, middle + BAD / 2 * above
    out = np.any((half_low > X) | (half_high < X), axis=1)  # few rows, most often; the others do not matter
    X, weight = X[out], weight[out]
    gap_low = 2 * (weight @ (low > X)) > weight @ (half_low > X)
    gap_high = 2 * (weight @ (high < X)) > weight @ (half_high < X)
    low, high = np.where(gap_low, low, -np.inf), np.where(gap_high, high, np.inf)
    some, few = np.any((low > X) | (high < X), axis=1), np.any(out_of_bounds(X, low, high), axis=1)
    if weight @ some > 2 * (weight @ few):
        gap_low = gap_high = np.zeros(len(low), bool)
    if centers is not None:
        low = np.minimum(low, np.min(centers, axis=0) - BAD * below)
        high = np.maximum(high, np.max(centers, axis=0) + BAD * above)
    return np.where(gap_low, low, -np.inf), np.where(gap_high, high, np.inf)


def canonical(sample: Sample) -> Sample:
    """Rows in an order of their own, whatever order they came in, equal ones joined and their weights added."""
    X, weight = np.add(sample.X, 0.0, order="C"), sample.weight  # -0.0 and 0.0 are one value
    # Sorted along a line askew to all columns, then by columns, which sort only rows that are still tied.
    with np.errstate(over="ignore", invalid="ignore"):  # row by row: a product of matrices may round by where a row is
        along = np.nan_to_num(np.einsum("ij,j->i", X, np.cos(np.arange(1.0, X.shape[1] + 1))))  # holes are infinite
    order = np.argsort(along, kind="stable")
    differs = np.append(True, along[order[1:]] != along[order[:-1]])  # from the row above, as far as was compared
    if np.any(X[order[ties := np.flatnonzero(~differs)]] != X[order[ties - 1]]):  # others have the same place there
        for column in range(X.shape[1]):
            tied = ~(differs & np.append(differs[1:], True))
            rows, group = order[tied], np.cumsum(differs)[tied]
            order[tied] = rows[np.lexsort([X[rows, column], group])]
            differs |= np.append(True, X[order[1:], column] != X[order[:-1], column])
    return Sample(X[order[differs]], np.add.reduceat(weight[order], np.flatnonzero(differs)))
