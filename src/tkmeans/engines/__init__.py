"""Engines compute the E-step sums of a block of rows: `native` (C++) or `reference` (array API), which defines them."""

import warnings
from functools import cache
from types import ModuleType

from tkmeans.engines import reference

CHOICES = ("auto", "native", "reference")


@cache  # so that what is missing is said once
def select(name: str) -> ModuleType:
    """The engine of that name; "auto" is the fastest there is."""
    if name == "reference":
        return reference
    try:
        from tkmeans.engines import native
    except ImportError as error:
        if name == "native":
            raise ImportError(
                f'engine="native" is not built here ({error}); reinstall tkmeans, or use "auto"'
            ) from error
        warnings.warn(
            "tkmeans runs on its reference engine, which is many times slower and has no robust search (k-means++ "
            f"serves in its place): the native one is not built ({error}). Reinstall it with a C++ compiler at hand.",
            RuntimeWarning,
            stacklevel=2,
        )
        return reference
    return native
