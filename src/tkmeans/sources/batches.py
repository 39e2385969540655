"""Rows in memory, a batch at a time."""

from collections.abc import Callable
from itertools import cycle
from typing import final

import numpy as np

from tkmeans.sources.arrays import ArraySource
from tkmeans.sources.base import M, Sample
from tkmeans.stats import Array, Block


@final
class Batches:
    """A source whose every visit is to the next batch of rows, round and round in a given order."""

    def __init__(self, whole: ArraySource, order: Array, batch_size: int) -> None:
        self.frame = whole.frame
        self._whole = whole
        # Of nearly equal size: a last batch of a few rows would be learned from like any other.
        batches = np.array_split(order, -(-len(order) // batch_size))
        self.per_pass = len(batches)
        self._next = cycle(batches)

    def reduce(self, summarize: Callable[[Block], M]) -> M:
        """The statistics of the next batch."""
        with self._whole.part(next(self._next)) as batch:
            return batch.reduce(summarize)

    def sample(self, size: int, rng: np.random.RandomState) -> Sample:
        """About `size` of all rows."""
        return self._whole.sample(size, rng)
