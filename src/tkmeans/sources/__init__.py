"""Where rows come from. A source maps a function over blocks; nothing else is asked of it."""

from tkmeans.sources.arrays import ArraySource
from tkmeans.sources.base import Sample, Source
from tkmeans.sources.batches import Batches

__all__ = ["ArraySource", "Batches", "Sample", "Source"]
