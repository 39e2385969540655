"""Stepwise EM (Cappé and Moulines 2009): any model with centres, on rows that are seen once.

An iteration visits one batch. Its statistics are added to what is remembered of all batches before, and the model's
own M-step follows from the sum: no formula is new. The memory fades, because its oldest part was judged by parameters
that knew little (docs/decisions/0011).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from tkmeans.stats import Array, Block, Params, Stats


class Tracked(NamedTuple):
    """Parameters, and what is remembered of the rows they were learned from."""

    params: Params
    memory: Stats  # around `params.centers`
    rows: float  # the summed weight of all rows so far, faded or not

    @property
    def centers(self) -> Array:
        """Of shape (K, p), in the coordinates of a frame."""
        return self.params.centers


@final
@dataclass(frozen=True, kw_only=True)
class Stepwise:
    """A model that learns from a stream of batches.

    A row that came when the stream was half as long counts half; with a `half_life`, it also counts half for every so
    many rows that came after it. Neither depends on how the stream is cut into batches.
    """

    model: Any
    half_life: float | None = None  # in rows
    climbs = False  # every iteration is about other rows, so nothing is sure to grow

    def e_step(self, tracked: Tracked) -> Callable[[Block], Stats]:
        """The model's own."""
        return self.model.e_step(tracked.params)

    def m_step(self, stats: Stats, tracked: Tracked) -> Tracked:
        """What the model makes of the memory and the new batch together."""
        rows = tracked.rows + stats.total
        kept = tracked.rows / rows * (1.0 if self.half_life is None else 0.5 ** (stats.total / self.half_life))
        memory = tracked.memory.faded(kept).merge(stats)
        params = self.model.m_step(memory, tracked.params)
        return Tracked(params, memory.around(params.centers - tracked.centers), rows)
