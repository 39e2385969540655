"""Which source goes with what people pass, by the name of the library it comes from."""

from __future__ import annotations

import os
from typing import Any

from sklearn import get_config

from tkmeans.sources.arrays import ArraySource, TensorSource
from tkmeans.sources.base import Source
from tkmeans.stats import Array


def kind_of(X: Any) -> str:
    """Say "array", "tensor", "file" or "dask", without importing what X does not come from."""
    library = type(X).__module__.partition(".")[0]
    if library in ("dask", "dask_expr"):
        return "dask"
    if isinstance(X, (str, os.PathLike)) or type(X).__module__ in ("tkmeans.sources.files", "pyarrow._dataset"):
        return "file"
    # Without this switch scikit-learn reads tensors as NumPy arrays, and so do we.
    follows_the_array_api = library in ("torch", "cupy") or (library != "numpy" and hasattr(X, "__array_namespace__"))
    return "tensor" if follows_the_array_api and get_config()["array_api_dispatch"] else "array"


def as_source(X: Any, weight: Array | None, *, n_threads: int = 1, names: Any = None) -> Source:
    """The source of the rows of X.

    `names` are the columns to read, for kinds that have columns; None means all.
    """
    kind = kind_of(X)
    if kind == "dask":
        from tkmeans.sources.dask import DaskSource

        return DaskSource(X, weight, names)
    if kind == "file":
        from tkmeans.sources.files import DataFile, FileSource

        return FileSource(X if isinstance(X, DataFile) else DataFile(X, columns=names), weight, n_threads)
    return TensorSource(X, weight) if kind == "tensor" else ArraySource(X, weight, n_threads=n_threads)
