"""Engines turn a block of rows into statistics: `reference` defines the numbers."""

from __future__ import annotations

from types import ModuleType

from tkmeans.engines import reference

CHOICES = ("auto", "reference")


def select(name: str) -> ModuleType:
    """The engine of that name; "auto" is the fastest there is."""
    if name not in CHOICES:
        raise ValueError(f"engine must be one of {CHOICES}, got {name!r}")
    return reference
