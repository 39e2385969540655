"""Results about each row, streamed into a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tkmeans.atomic import replacing
from tkmeans.sources.base import Answer, Column, Source, to_numpy
from tkmeans.stats import Block


def write_parquet(source: Source, look: Callable[[Block], Answer], column: Column, out: Any) -> Path:
    """Stream what `look` says of each row into a Parquet file; its path."""
    from tkmeans.sources.arrays import BlockSource
    from tkmeans.sources.formats import pyarrow

    if not isinstance(source, BlockSource):
        raise TypeError("out is for rows in memory or in files; store what a dask collection gives with dask")
    pa = pyarrow("to write Parquet")
    import pyarrow.parquet as pq

    names = [column.name] if column.width is None else [f"{column.name}{k}" for k in range(column.width)]
    schema = pa.schema([(name, pa.from_numpy_dtype(np.dtype(column.dtype))) for name in names])
    with replacing(out) as file, pq.ParquetWriter(file, schema) as writer:
        waiting: list[Any] = []
        for seen in source.map(look):
            values = to_numpy(seen.rows[0]).astype(column.dtype, copy=False)
            waiting.append(values)
            if sum(map(len, waiting)) >= _ROW_GROUP // (column.width or 1):
                _flush(pa, writer, schema, waiting)
        _flush(pa, writer, schema, waiting)
    return Path(out)


# Values in a row group of the output.
_ROW_GROUP = 1_000_000


def _flush(pa: Any, writer: Any, schema: Any, waiting: list[Any]) -> None:
    if not waiting:
        return
    values = np.concatenate(waiting)
    waiting.clear()
    columns = [values] if values.ndim == 1 else list(np.ascontiguousarray(values.T))
    writer.write_table(pa.table(columns, schema=schema))
