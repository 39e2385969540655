"""The bytes of a file, compressed or not, of standard input or of memory; they may be read many times."""

import codecs
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np

from tkmeans.tables.table import TableError

# Called with how many bytes of how many have been read, for progress bars; text is read twice.
WATCH: ContextVar[Callable[[int, int], None]] = ContextVar("watch", default=lambda *_: None)

_PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd", b"\xfd7zXZ": "xz"}


def pyarrow(purpose: str = "to read this file", module: str = "pyarrow") -> Any:
    """The pyarrow module or one of its own, or how to get it."""
    return imported(module, f"pyarrow is needed {purpose}: pip install 'tkmeans[io]'")


def imported(module: str, way_to_get_it: str) -> Any:
    """An optional module, or how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(way_to_get_it) from error


def numpy_of(array: Any) -> Any:
    """Arrow's numbers as an array, NaN where missing; by Arrow's own way pandas would be imported."""
    if array.null_count:
        arrow = pyarrow()
        array = (array if arrow.types.is_floating(array.type) else array.cast("float64", safe=False)).fill_null(np.nan)
    kind = np.dtype(array.type.to_pandas_dtype())
    return np.frombuffer(array.buffers()[1] or b"", kind, len(array), array.offset * kind.itemsize)


def csv_batches(file: Any, encoding: str, *how: Any) -> Iterator[Any]:
    """Batches of text; then Arrow's threads have let go of the decoder: one that waits while Python ends aborts it."""
    freed = Event()
    try:
        yield from pyarrow(module="pyarrow.csv").open_csv(_in_utf8(file, encoding, freed), *how)
    finally:
        freed.wait(timeout=10)


def _in_utf8(file: Any, encoding: str, freed: Event) -> Any:
    """The file, decoded if it must be; `freed` is set when nothing holds the decoder any more."""
    if encoding == "utf-8":
        freed.set()
        return file
    decode = codecs.getincrementaldecoder(encoding)().decode

    def utf8(data: Any) -> bytes:
        return decode(data, not len(data)).encode()

    finalize(utf8, freed.set)
    return pyarrow().TransformInputStream(file, utf8)


class NoRows(TableError):
    """A table without rows: in a folder, others may have some."""


class Content(NamedTuple):
    """Where the bytes of a table are."""

    source: str  # for messages
    path: Path | None  # None for what is in memory
    data: bytes = b""
    packing: str = ""
    size: int = 0  # as it is stored

    def open(self) -> Any:
        """The bytes as a file, unpacked."""
        if self.packing == "xz":
            return import_module("lzma").open(self.path or io.BytesIO(self.data))
        if self.packing:
            return self.native()[0]
        return io.BytesIO(self.data) if self.path is None else io.FileIO(self.path)

    def native(self) -> tuple[Any, Any]:
        """The bytes as Arrow's own file, unpacked, and what it is read from."""
        # Arrow reads ahead in a thread; a file of Python's would need the interpreter there, even while that ends.
        arrow = pyarrow("to unpack it" if self.packing else "to read text files")
        if self.packing == "xz":  # which Arrow does not unpack
            return self._replace(path=None, data=self.read(), packing="").native()
        raw = arrow.BufferReader(self.data) if self.path is None else arrow.OSFile(os.fsencode(self.path))
        return arrow.CompressedInputStream(raw, self.packing) if self.packing else raw, raw

    def read(self, n_bytes: int | None = None) -> bytes:
        """The first bytes, or all."""
        with self.open() as file:
            return file.read(n_bytes)

    def stamp(self) -> tuple[int, ...]:
        """What would be another if somebody wrote to the file."""
        found = None if self.path is None else self.path.stat()
        return () if found is None else (found.st_size, found.st_mtime_ns)


def content_of(path: str | os.PathLike[str]) -> Content:
    """The content of a file; "-" is standard input, which is kept."""
    source, file = os.fsencode(path).decode(errors="backslashreplace") or repr(path), Path(path)
    if source == "-":
        source, head = "standard input", sys.stdin.buffer.read()
    else:
        try:
            with open(file, "rb") as opened:
                head = opened.read(8 if file.is_file() else -1)  # a pipe can be read once
        except FileNotFoundError:
            raise FileNotFoundError(f"there is no file or folder {source}") from None
        except IsADirectoryError:
            raise TableError(f"{source} is a folder; name a file in it") from None
    kept = file if os.fspath(path) != "-" and file.is_file() else None
    if not (size := len(head) if kept is None else kept.stat().st_size):
        raise NoRows(f"{source} is empty")
    packing = next((name for magic, name in _PACKED.items() if head.startswith(magic)), "")
    return Content(source, kept, head, packing, size)
