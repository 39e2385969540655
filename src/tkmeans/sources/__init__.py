"""Where rows come from: anything that can be visited block by block."""

from tkmeans.sources.arrays import ArraySource, Batches, TensorSource
from tkmeans.sources.base import Answer, Column, Sample, Source, Survey, Visited

__all__ = ["Answer", "ArraySource", "Batches", "Column", "Sample", "Source", "Survey", "TensorSource", "Visited"]
