"""Rows that are stored without their zeros, and cut into blocks without a copy."""

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from scipy.sparse import csr_array, vstack

from tkmeans.stats import Array


def check_indices(X: Any) -> None:
    """Refuse what is a matrix or array of SciPy with indices beyond its shape: who follows them crashes."""
    try:
        if hasattr(X, "check_format"):
            copy(X).check_format(full_check=True)  # which may trim what it checks
        elif getattr(X, "format", "") == "coo" and any(
            np.any((at < 0) | (at >= n)) for at, n in zip(X.coords, X.shape, strict=True)
        ):
            raise ValueError("coordinates beyond its shape")
    except ValueError as error:
        raise ValueError(f"X is a damaged sparse matrix ({error}); make it anew from its entries") from None


@final
@dataclass(frozen=True, eq=False)
class SparseRows:
    """Complete rows in compressed form, with the columns of each in ascending order."""

    value: Array  # (entries,) float64 or float32
    column: Array  # (entries,) int32
    first: Array  # (n + 1,) int64, where each row begins
    n_features: int

    @classmethod
    def of(cls, X: Any) -> "SparseRows":
        """Those of a CSR matrix or array of SciPy, which stays as it is."""
        if not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        return cls(X.data, X.indices.astype(np.int32, copy=False), X.indptr.astype(np.int64), X.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self), self.n_features

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.value.dtype

    def astype(self, dtype: Any, copy: bool = False) -> Self:
        """The same rows with values of another type."""
        return replace(self, value=self.value.astype(dtype, copy=copy))

    def csr(self) -> Any:
        """As an array of SciPy, on the same memory."""
        begin, end = self.first[0], self.first[-1]
        return csr_array((self.value[begin:end], self.column[begin:end], self.first - begin), self.shape)

    def __len__(self) -> int:
        return len(self.first) - 1

    def __getitem__(self, rows: Any) -> "SparseRows":
        rows = rows[0] if isinstance(rows, tuple) else rows  # all columns of these rows
        if isinstance(rows, slice):  # a run of them, on the same memory
            begin, end, _ = rows.indices(len(self))
            return replace(self, first=self.first[begin : end + 1])
        return SparseRows.of(self.csr()[rows])

    def then(self, other: "SparseRows") -> "SparseRows":
        """With the rows of another one below."""
        return SparseRows.of(vstack([self.csr(), other.csr()], format="csr"))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.csr().toarray().astype(dtype or self.dtype, copy=False)
