"""Engines compute the E-step sums of a block of rows: `native` (C++) or `reference` (array API), which defines them."""

import warnings
from functools import cache
from importlib import import_module
from types import ModuleType

from tkmeans.engines import reference

CHOICES = ("auto", "native", "reference")
# A module that is pickled by its name, as in the graph of lazy answers.
Engine = type("Engine", (ModuleType,), {"__reduce__": lambda self: (import_module, (self.__name__,))})
reference.__class__ = Engine


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
        slow = "tkmeans runs on its reference engine, which gives the same answers many times slower"
        way_out = "To have it, install a C++17 compiler, then tkmeans with pip's --no-cache-dir."
        warnings.warn(f"{slow}: the native one is not built ({why}). {way_out}", RuntimeWarning, stacklevel=2)
        return reference
    native.__class__ = Engine
    return native
