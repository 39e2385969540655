"""Where rows come from: anything that can be visited block by block."""

from tkmeans.sources.arrays import ArraySource, TensorSource
from tkmeans.sources.base import Answer, Column, Sample, Source, Survey, Visited
from tkmeans.sources.batches import Batches

__all__ = [
    "Answer",
    "ArraySource",
    "Batches",
    "Column",
    "Sample",
    "Source",
    "Survey",
    "TensorSource",
    "Visited",
]
