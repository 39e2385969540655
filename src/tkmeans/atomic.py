"""Atomic file replacement: a file is there as a whole or not at all."""

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
_DISK_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


def check_not_input(path: str | os.PathLike[str], source: Any) -> None:
    """Refuse to write to a file of the source, a path or a dataset of pyarrow, or to a new one or by a link in it."""
    for each in (*getattr(source, "files", ()), *getattr(source, "children", ())):
        check_not_input(path, each)
    if not isinstance(source, (str, os.PathLike)) or not os.path.exists(source):
        return
    linked = (file.samefile(path) for file in Path(source).rglob("*") if os.path.exists(path) and file.is_file())
    places = (place for place in (Path(path), *Path(path).resolve().parents) if place.exists())
    if any(place.samefile(source) for place in places) or any(linked):
        raise FileExistsError(f"{path} is the input or in it, which is not overwritten; choose another name")


def mapped_file(X: Any) -> Any:
    """The file that an array, or the one it is a view of, is mapped to; None if it is in memory."""
    while isinstance(X, np.ndarray) and not isinstance(X, np.memmap):
        X = X.base
    return X.filename if isinstance(X, np.memmap) else None


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends well, and vanishes when it does not.

    What was there stays until the new file is on the disk. A device or a pipe is written to directly.
    """
    target = Path(os.path.realpath(path))  # a link stays, the file it points to is replaced
    before = os.stat(path) if os.path.exists(path) else None
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(path, "wb") as file:  # the target of /dev/stdout is no name if it is a pipe
            yield file
        return
    name = str(target.with_name(f".{target.name}.{secrets.token_hex(8)}.part"))
    try:
        # The system takes off what the umask forbids; a file that others may not read is not theirs to read meanwhile.
        mode = 0o666 if before is None else stat.S_IMODE(before.st_mode) & 0o666
        with os.fdopen(os.open(name, _NEW, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if before is not None:
            os.chmod(name, stat.S_IMODE(before.st_mode))
        os.replace(name, target)
    except BaseException as fault:  # Ctrl-C too
        with suppress(OSError):
            os.unlink(name)
        of_full_disk = isinstance(fault, OSError) and fault.filename is None and fault.errno in _DISK_FULL
        if isinstance(fault, OSError) and (of_full_disk or fault.filename == name):
            fault.filename = os.fspath(path)  # a name that people know
            del fault.filename2
        raise
