"""Rows that are stored without their zeros, as matrices and arrays of `scipy.sparse` are."""

from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, diags_array

from tkmeans.sources.arrays import ArraySource, BlockSource
from tkmeans.sources.base import BLOCK_ROWS, MEASURED_ROWS, Sample, Survey, quantile, survey
from tkmeans.sparse_rows import SparseRows
from tkmeans.stats import HORIZON, Array, Block, Frame

# Numbers of a sample in memory with all of its zeros: the search then sees what it would see of dense rows.
# Larger ones, and those with more columns than rows, are searched in the subspace of their largest singular vectors.
FULL_SAMPLE, FEW_COLUMNS = 2**22, 1000
SUBSPACE, EXTRA, ROUNDS = 10, 5, 1  # the fewest vectors, how many more make them come out well, and iterations
ONE_LENGTH = 1e-6  # rows whose squared lengths differ by less, as those of tf-idf, have one length in the subspace too
DOF_PER_COLUMN = 10.0  # at least, among many columns: a row near a centre counts no more than 1.1 times
ENTRIES_PER_COLUMN = 10  # of a block, at least: its sums have the size of all centres


@final
class SparseSource(BlockSource):
    """Sparse rows in memory, visited in blocks by one or more threads."""

    array_library = "scipy.sparse"
    X: SparseRows

    def __init__(self, X: SparseRows, weight: Any, frame: Frame | None = None, *, n_threads: int = 1, **_: Any) -> None:
        entries = (len(X.value) or 1) / max(len(X), 1)  # of a row
        block_rows = max(BLOCK_ROWS.get(), int(ENTRIES_PER_COLUMN * X.n_features / entries))
        super().__init__(weight, frame, min(n_threads, -(-len(X) // block_rows)), block_rows)
        self.X, self._with_zeros = X, False
        (self.n_rows, self.n_features), self.dtype = X.shape, X.dtype

    def engine(self, engine: Any) -> Any:
        """The native engine for sparse rows; without, or with bad cells, a few rows are read with their zeros."""
        self._with_zeros = engine.NAME == "reference" or self.bounds is not None
        if self._with_zeros:
            self.block_rows = max(1, FULL_SAMPLE // 4 // self.n_features)
            return engine
        return import_module("tkmeans.engines.native.sparse")

    def blocks(self) -> Iterator[Block]:
        """The rows in blocks of fixed size."""
        for block in super().blocks():
            yield block._replace(X=np.asarray(block.X)) if self._with_zeros else block

    def rows(self, picked: Array) -> Array:
        """Rows by their numbers, with their zeros."""
        return np.asarray(self.X[picked])

    def _rows(self, picked: Array) -> Any:
        """Rows by their numbers, in double precision."""
        return (self.X if len(picked) == self.n_rows else self.X[picked]).csr().astype(np.float64)

    def survey(self) -> Survey:
        """Count rows; every value is there, as those of sparse rows must be."""
        p = self.n_features
        found = survey(Block(np.zeros((self.n_rows, 1)), self.weight, None))  # type: ignore[arg-type]
        return found._replace(observed=np.full(p, found.n_counted), infinite=np.zeros(p, bool))

    def example(self, sample: Sample) -> Any:
        """All rows, as an array of SciPy."""
        return self.X.csr()

    def sample(self, size: int, rng: np.random.RandomState) -> Sample:
        """About `size` rows; with all features, or if these are too many, in a subspace that `lift` leads back from."""
        all_numbers = ArraySource(np.arange(float(self.n_rows))[:, None], self.weight, Frame(np.zeros(1), 1.0))
        numbers, weight = all_numbers.sample(size, rng)
        picked = numbers[:, 0].astype(np.int64)
        if len(picked) * self.n_features <= FULL_SAMPLE and self.n_features <= max(len(picked), FEW_COLUMNS):
            return Sample(self.frame.enter(self.rows(picked), coarse=True), weight)
        X, horizon = self._rows(picked), HORIZON["float64"]
        X.data = np.clip(X.data / self.frame.unit, -horizon, horizon)
        basis, coordinates = _subspace(X, weight, max(SUBSPACE, self.n_clusters + EXTRA))
        self.least_dof = DOF_PER_COLUMN * self.n_features
        self.lift = partial(_lifted, X, basis, Sample(coordinates, weight), self.frame.origin / self.frame.unit)
        return Sample(coordinates, weight)

    def measure(self) -> Frame:
        """As for dense rows; most medians are zero without a look at the column."""
        weight = np.ones(self.n_rows) if self.weight is None else self.weight.astype(np.float64)
        counted = np.flatnonzero(weight > 0)
        picked = counted[:: max(1, len(counted) // MEASURED_ROWS)]
        X, weight = self._rows(picked), weight[picked]
        origin = np.zeros(self.n_features)
        stored = np.bincount(X.indices, np.repeat(weight, np.diff(X.indptr)), self.n_features)
        full = np.flatnonzero(stored >= np.sum(weight) / 2)  # not so many that their zeros matter
        origin[full] = quantile(X[:, full].toarray(), weight) if len(full) else 0.0
        size = float(np.median(np.abs(X.data))) if np.any(X.data) else 1.0  # so that squares are numbers
        with np.errstate(over="ignore"):
            X, shift = X / (size or 1.0), origin / (size or 1.0)
            squares = X.power(2).sum(axis=1) - 2 * (X @ shift) + shift @ shift
        distance = np.sqrt(np.maximum(squares, 0.0) / self.n_features) * (size or 1.0)
        spread = float(quantile(distance, weight))
        if not 0 < spread < np.inf:  # most rows are equal: let the others speak
            others = (distance > 0) & np.isfinite(distance)
            spread = float(quantile(distance[others], weight[others])) if np.any(others) else 1.0
        return Frame(origin.astype(self.dtype), spread)


def _subspace(X: Any, weight: Array, size: int) -> tuple[Array, Array]:
    """The largest singular vectors (p, q), by subspace iteration, far rows counting no more than others; rows there."""
    squares = X.power(2).sum(axis=1)
    counted = diags_array(np.sqrt(weight / np.maximum(np.median(squares) + squares, np.finfo(float).tiny))) @ X
    size = min(size, *X.shape)
    Z = counted @ np.random.RandomState(0).standard_normal((X.shape[1], min(size + EXTRA, *X.shape)))
    for _ in range(ROUNDS):
        Z = counted @ (counted.T @ _orthonormal(Z))
    basis = _orthonormal(counted.T @ _orthonormal(Z))[:, :size]  # (p, q)
    coordinates = X @ basis
    longest, shortest = np.max(squares), np.min(squares[squares > 0], initial=np.inf)  # but for rows of zeros
    if longest - shortest <= ONE_LENGTH * longest:
        length = np.sqrt(np.sum(coordinates**2, axis=1, keepdims=True) / (longest or 1.0))
        coordinates = coordinates / np.where(length > 0, length, 1.0)
    return basis, coordinates


def _lifted(X: Any, basis: Array, sample: Sample, origin: Array, centers: Array) -> tuple[Array, float]:
    """Centres among all features, from those in the subspace, and the median squared distance per feature."""
    if centers.shape[1] != X.shape[1]:
        label, d2 = _nearest(sample.X, centers)
        trust = sample.weight / (1 + d2 / (np.median(d2) or np.mean(d2) or 1.0))
        shares = csr_array((trust, (label, np.arange(len(label)))), (len(centers), len(label)))
        total = shares.sum(axis=1)[:, None]
        means = (shares @ X).toarray() / np.where(total > 0, total, 1.0)
        centers = np.where(total > 0, means, centers @ basis.T) - origin
    return centers, float(quantile(_nearest(X, centers + origin)[1], sample.weight)) / X.shape[1]


def _orthonormal(Z: Array) -> Array:
    """An orthonormal basis of the columns of Z, from the largest singular vector down; 0 for those beyond its rank."""
    values, vectors = np.linalg.eigh(Z.T @ Z)
    seen = values > len(values) * np.finfo(float).eps * values[-1]
    return Z @ (vectors / np.sqrt(np.where(seen, values, np.inf)))[:, ::-1]


def _nearest(X: Any, centers: Array) -> tuple[Array, Array]:
    """The nearest centre of each row, dense or sparse, and its squared distance."""
    half = X @ centers.T - np.sum(centers**2, axis=1) / 2  # (m, K)
    squares = np.sum(X**2, axis=1) if isinstance(X, np.ndarray) else X.power(2).sum(axis=1)
    return np.argmax(half, axis=1), np.maximum(squares - 2 * np.max(half, axis=1), 0.0)
