"""From the bytes of a file to text."""

from __future__ import annotations

import codecs
from typing import NamedTuple

from tkmeans.tables.records import TableError

# The longer marks first: UTF-32's begins like UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Decoded(NamedTuple):
    """Text, and how to turn it into the same bytes again."""

    text: str
    encoding: str
    mark: bytes  # the byte-order mark, if there was one
    guessed: bool = False  # neither a mark nor the bytes themselves settle it


def decode(data: bytes, encoding: str | None, source: str) -> Decoded:
    """Decode by what the user says, by the byte-order mark, or by what the bytes look like."""
    mark, marked = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", None))
    wanted = _checked(encoding) if encoding else marked
    if wanted is not None:
        try:
            text = data.removeprefix(mark).decode(wanted)
        except UnicodeDecodeError as fault:
            raise TableError(f"{source} is not {wanted}: byte {fault.start} does not fit; add --encoding") from None
        return Decoded(text, wanted, mark)
    for name in _plausible(data):
        try:
            return Decoded(data.decode(name), name, b"", guessed=name != "utf-8")
        except UnicodeDecodeError:
            continue
    raise TableError(f"{source} is not a table that tkmeans can read: it is neither text nor Parquet, Feather or NPY")


def _plausible(data: bytes) -> tuple[str, ...]:
    if b"\0" not in data:
        # Windows-1252 is Latin-1 with letters where that has none; the few bytes it lacks are Latin-1's.
        return ("utf-8", "cp1252", "latin-1")
    # Text in UTF-16 has a zero in every other byte, as long as it is mostly ASCII.
    even, odd = data[0::2].count(0), data[1::2].count(0)
    if max(even, odd) < 0.4 * len(data) / 2 or min(even, odd) > 0.01 * len(data):
        return ()
    return ("utf-16-be",) if even > odd else ("utf-16-le",)


def _checked(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise TableError(f"no encoding is called {encoding!r}; try utf-8, latin-1 or utf-16") from None
