"""What the EM loop and the seeding ask of a source."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from tkmeans.stats import Array, Block, Frame, S


class Sample(NamedTuple):
    """Rows in memory that stand for all rows."""

    X: Array  # (m, p) float64, in the frame
    weight: Array  # (m,) positive; sums to the total weight of the source


class Source(Protocol):
    """Rows that are visited block by block."""

    frame: Frame

    def reduce(self, summarize: Callable[[Block], S]) -> S:
        """The merged statistics of all blocks, in the order of the rows."""
        ...

    def sample(self, size: int, rng: np.random.RandomState) -> Sample:
        """About `size` rows drawn in proportion to weight; all rows if there are no more."""
        ...
