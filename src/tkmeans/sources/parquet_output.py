"""Answers about each row, written to a Parquet file while they are computed."""

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tkmeans.atomic import check_not_input, replacing
from tkmeans.sources.base import Answer, Column, Source, to_numpy
from tkmeans.stats import Block

_ROW_GROUP = 1_000_000  # values in a row group of the output


def write_parquet(source: Source, look: Callable[[Block], Answer], column: Column, out: Any) -> Path:
    """Stream what `look` answers for each row into a Parquet file; its path."""
    from tkmeans.sources.arrays import BlockSource
    from tkmeans.tables.file_content import pyarrow

    if not isinstance(source, BlockSource):
        raise TypeError("out is for rows in memory or in files; store what a dask collection gives with dask")
    check_not_input(out, source.path)
    pa, pq = (pyarrow("to write Parquet", module) for module in ("pyarrow", "pyarrow.parquet"))
    names = [column.name] if column.width is None else [f"{column.name}{k}" for k in range(column.width)]
    schema = pa.schema([(name, pa.from_numpy_dtype(np.dtype(column.dtype))) for name in names])
    values = (to_numpy(answer.rows[0]).astype(column.dtype, copy=False) for answer in source.map(look))
    n_blocks = -(-_ROW_GROUP // ((column.width or 1) * source.block_rows))
    with replacing(out) as file, pq.ParquetWriter(file, schema) as writer:
        while blocks := list(islice(values, n_blocks)):
            group = np.concatenate(blocks)
            columns = [group] if group.ndim == 1 else list(np.ascontiguousarray(group.T))
            writer.write_table(pa.table(columns, schema=schema))
    return Path(out)
