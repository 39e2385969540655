"""Where rows come from: anything that can be visited block by block."""

from tkmeans.sources.arrays import ArraySource, TensorSource
from tkmeans.sources.base import Column, Sample, Seen, Source, Survey, Visited
from tkmeans.sources.batches import Batches
from tkmeans.sources.opening import as_source, kind_of

__all__ = [
    "ArraySource",
    "Batches",
    "Column",
    "Sample",
    "Seen",
    "Source",
    "Survey",
    "TensorSource",
    "Visited",
    "as_source",
    "kind_of",
]
