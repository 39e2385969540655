"""Engines compute the E-step sums of a block of rows: `native` (C++) or `reference` (array API), which defines them."""

import warnings
from functools import cache
from types import ModuleType

from tkmeans.engines import reference

CHOICES = ("auto", "native", "reference")


@cache  # so that what is missing is reported once
def select(name: str) -> ModuleType:
    """The engine of that name; "auto" is the fastest there is."""
    if name == "reference":
        return reference
    try:
        from tkmeans.engines import native
    except ImportError as why:
        if name == "native":
            raise ImportError(f'engine="native" is not built here ({why}); reinstall tkmeans, or use "auto"') from why
        slow = "tkmeans runs on its reference engine, which gives the same answers many times slower: the native one is"
        remedy = "To have it, install a C++17 compiler, then tkmeans with pip's --no-cache-dir."
        warnings.warn(f"{slow} not built ({why}). {remedy}", RuntimeWarning, stacklevel=2)
        return reference
    return native
