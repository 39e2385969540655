"""Rows in dask collections: visited where they are, by the scheduler that is there."""

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any, final

import numpy as np

from tkmeans.sources import base
from tkmeans.sources.base import Answer, Column, M, Sample, Source, Survey, merged
from tkmeans.sources.number_checks import as_numbers
from tkmeans.stats import Array, Block, Frame

_MERGED_AT_ONCE = 8  # summaries, on the way from the partitions to the one of all rows
_OF_THE_CLUSTER = ("KilledWorker", "FutureCancelledError", "CommClosedError")  # and not of a partition


class PartitionError(RuntimeError):
    """A partition that cannot be computed or looked at, by its number."""


@final
class DaskSource(Source):
    """A dask array or dataframe. Only summaries, and the few rows of a sample, leave the workers."""

    lazy = True

    def __init__(self, X: Any, weight: Any, names: list[str] | None) -> None:
        if hasattr(X, "columns"):
            self.names = _chosen(X, names)
            X = X[self.names]
            single = all(X.dtypes[name] == np.float32 for name in self.names)
            self._lengths = [np.nan] * X.npartitions  # of the partitions; NaN where a survey has to count them
        else:
            if X.ndim != 2:
                raise ValueError(f"X must have two dimensions, rows and features, got an array of shape {X.shape}")
            X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
            single = X.dtype == np.float32
            self._lengths = list(X.chunks[0])
        self.n_features, self.dtype = X.shape[1], np.dtype("f4" if single else "f8")
        self._parts = list(np.ravel(X.to_delayed()))
        self._surveys: list[Survey] = []
        self.weight = weight
        self._weights = [None] * len(self._parts) if weight is None else self._partitioned(weight)

    @property
    def n_rows(self) -> int:  # type: ignore[override]
        """The number of rows."""
        if np.any(np.isnan(self._lengths)):
            self.survey()
        return int(sum(self._lengths))

    @property
    def total(self) -> float:
        """The summed weight of the rows."""
        return float(self.survey().total)

    def reduce(self, summarize: Callable[[Block], M]) -> M:
        """The merged summaries of all partitions, in their order, in one graph."""
        from dask import delayed

        level = self._on_every_partition(merged, summarize)
        while len(level) > 1:
            groups = (level[i : i + _MERGED_AT_ONCE] for i in range(0, len(level), _MERGED_AT_ONCE))
            level = [delayed(merged, pure=False)(group) for group in groups]
        return self._compute(level)[0]

    def survey(self) -> Survey:
        """Count rows and values, in one pass; the counts of each partition are kept."""
        if not self._surveys:
            # The range of weights is looked at before they are made to fit the rows' type.
            self._surveys = self._compute(self._on_every_partition(merged, base.survey, weight_dtype=np.float64))
            self._lengths = [found.n_rows for found in self._surveys]
        return merged(self._surveys)

    def collect(self, look: Callable[[Block], Answer], columns: list[Column]) -> tuple[list[Any], Any]:
        """What `look` will answer for each row: lazy arrays, and no summary."""
        import dask.array as da

        found, whole = [*zip(self._on_every_partition(_columns, look), self._lengths, strict=True)], []
        for j, column in enumerate(columns):
            width = () if column.width is None else (column.width,)
            parts = [da.from_delayed(part[j], (n, *width), dtype=column.dtype) for part, n in found]
            whole.append(da.concatenate(parts, allow_unknown_chunksizes=True))
        return whole, None

    def _on_every_partition(self, join: Any, function: Callable[[Block], Any], weight_dtype: Any = None) -> list[Any]:
        from dask import delayed

        function = self.seen_by(function)
        # One node of the graph, so that parameters travel once to each worker, not once with each task.
        shared = SimpleNamespace(join=join, function=function, n_features=self.n_features, dtype=self.dtype)
        shared.weight_dtype, shared.frame = weight_dtype or self.dtype, getattr(self, "frame", None)  # none in a survey
        task, once = delayed(_visited, pure=False), delayed(shared, traverse=False)
        pairs = zip(self._parts, self._weights, strict=True)
        return [task(once, part, weight, number) for number, (part, weight) in enumerate(pairs)]

    def _compute(self, tasks: list[Any]) -> Any:
        import dask

        try:
            return dask.compute(*tasks)
        except Exception as error:
            if isinstance(error, PartitionError) or type(error).__name__ in _OF_THE_CLUSTER:
                raise
            for number, part in enumerate(self._parts):  # one by one, to find the one that cannot be computed
                try:
                    dask.delayed(len)(part).compute()
                except Exception as reason:
                    raise PartitionError(f"partition {number} of X cannot be computed: {_told(reason)}") from error
            raise

    def measure(self) -> Frame:
        """The coordinates to work in, from rows at equal intervals."""
        n_counted = self._of_partitions("n_counted")
        stride = max(1, int(sum(n_counted)) // base.MEASURED_ROWS)
        X, weight = self._rows(np.arange(0, sum(n_counted), stride), n_counted)
        self.measured = X[:, self.columns or slice(None)]
        return base.measure(self.measured, None if self.weight is None else weight)

    def sample(self, size: int, rng: np.random.RandomState) -> Sample:
        """About `size` rows in proportion to weight, evenly along the rows; all rows if no more."""
        n_counted, masses = self._of_partitions("n_counted"), self._of_partitions("total")
        if sum(n_counted) <= size:
            X, weight = self._rows(np.arange(sum(n_counted)), n_counted)
        else:
            each = float(sum(masses)) / size
            X, times = self._rows((np.arange(size) + rng.random_sample(size)) * each, masses, by_mass=True)
            weight = times * each
        return Sample(self.frame.enter(X[:, self.columns or slice(None)], coarse=True), weight)

    def _of_partitions(self, field: str) -> list[float]:
        self.survey()
        return [getattr(found, field) for found in self._surveys]

    def _rows(self, places: Array, extents: list[float], *, by_mass: bool = False) -> tuple[Array, Array]:
        """Rows by ascending places on a line along which the partitions have these extents, in one pass."""
        from dask import delayed

        pick, ends = delayed(_picked, pure=False), np.cumsum(extents)
        owner = np.minimum(np.searchsorted(ends, places, side="right"), len(ends) - 1)
        own, pairs = places - (ends - extents)[owner], [*zip(self._parts, self._weights, strict=True)]
        tasks = [pick(*pairs[i], own[owner == i], self.dtype, by_mass) for i in np.unique(owner)]
        X, weight = zip(*self._compute(tasks), strict=True)
        return np.concatenate(X), np.concatenate(weight)

    def _partitioned(self, weight: Any) -> list[Any]:
        """The weights of each partition's rows."""
        if hasattr(weight, "to_delayed"):
            if not hasattr(weight, "npartitions") or weight.ndim != 1:
                raise ValueError("sample_weight must have one weight per row")
            chunks = getattr(weight, "chunks", None)
            if chunks is not None and not np.any(np.isnan([*self._lengths, *chunks[0]])):
                if weight.shape != (n := sum(self._lengths),):
                    raise ValueError(f"sample_weight must have shape ({n},), one weight per row, got {weight.shape}")
                weight = weight.rechunk((tuple(self._lengths),))
            if weight.npartitions != len(self._parts):
                found = f"sample_weight has {weight.npartitions} partitions and X has {len(self._parts)}"
                raise ValueError(f"{found}; they must be partitioned alike")
            return list(np.ravel(weight.to_delayed()))
        self._weights = [None] * len(self._parts)
        n_rows = self.n_rows
        self._surveys = []  # counted without weights
        weight = np.broadcast_to(weight, n_rows) if np.ndim(weight) == 0 else np.asarray(weight)
        if weight.shape != (n_rows,):
            raise ValueError(f"sample_weight must have shape ({n_rows},), one weight per row, got {weight.shape}")
        return np.split(weight, np.cumsum(self._lengths)[:-1].astype(int))


def _chosen(X: Any, names: list[str] | None) -> list[str]:
    """The columns to read, all of which must be there and hold numbers."""
    from pandas.api.types import is_numeric_dtype

    present = list(X.columns)
    for name in names or present:
        if name not in present:
            raise ValueError(f"the dask dataframe has no column {name!r}; it has {', '.join(map(repr, present))}")
        if not is_numeric_dtype(X.dtypes[name]):
            raise ValueError(f"column {name!r} of the dask dataframe holds {X.dtypes[name]}, not numbers; leave it out")
    return names or present


def _visited(shared: Any, part: Any, weight: Any, number: int) -> Any:
    try:
        X, size, frame = _array(part, shared.dtype), base.BLOCK_ROWS.get(), shared.frame
        if X.shape[1:] != (shared.n_features,):
            raise ValueError(f"it has the shape {X.shape}, where {shared.n_features} features were expected")
        weight = None if weight is None else _array(weight, shared.weight_dtype)
        if weight is not None and weight.shape != X.shape[:1]:
            raise ValueError(f"it has {len(X)} rows, but sample_weight has {len(weight)} there")
        cuts = [slice(start, start + size) for start in range(0, max(len(X), 1), size)]
        blocks = (Block(X[cut], None if weight is None else weight[cut], frame) for cut in cuts)
        return shared.join(map(shared.function, blocks))
    except Exception as error:
        raise PartitionError(f"partition {number} of X cannot be looked at: {_told(error)}") from error


def _columns(answers: Iterable[Answer]) -> tuple[Array, ...]:
    """What was found of all rows, one column after the other."""
    return tuple(map(np.concatenate, zip(*(answer.rows for answer in answers), strict=True)))


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"


def _picked(part: Any, weight: Any, places: Array, dtype: Any, by_mass: bool) -> tuple[Array, Array]:
    """Rows by places along the cumulated weight, and how often; or by numbers among those that count, and weights."""
    X = _array(part, dtype)
    weight = np.ones(len(X)) if weight is None else _array(weight, dtype)
    up_to = np.cumsum(weight if by_mass else weight > 0, dtype=np.float64)
    found = np.minimum(np.searchsorted(up_to, places, side="right"), np.flatnonzero(weight > 0)[-1])
    picked, times = np.unique(found, return_counts=True)
    return X[picked], times if by_mass else weight[picked].astype(np.float64)


def _array(part: Any, dtype: Any) -> Array:
    """A partition as an array of NumPy; its numbers are numbers, whatever its collection has declared."""
    pandas = hasattr(part, "to_numpy")
    found = as_numbers(part.to_frame() if pandas and part.ndim == 1 else part, "it")
    if not pandas and found.dtype.kind == "c":
        raise TypeError("it holds complex numbers; choose real ones, as by .real or abs()")
    return np.ascontiguousarray(part.to_numpy(dtype=dtype, na_value=np.nan) if pandas else found, dtype=dtype)
