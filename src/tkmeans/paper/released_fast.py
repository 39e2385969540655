"""The released fast t-k-means: our own fast model, but for centres that stand on a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np

from tkmeans import engines
from tkmeans.models import Fast
from tkmeans.paper.released import AsReleased, Spheres, numbers, squared_distances
from tkmeans.stats import Array, Block, Params, Stats

_ALMOST_0 = 1e-20  # what stands for alpha -> 0


class Summed(NamedTuple):
    """The sums of our own E-step, and what it looked at."""

    sums: Stats
    x: Array  # (n, p)
    centers: Array  # (K, p)

    @property
    def total(self) -> float:
        """The number of rows."""
        return float(len(self.x))

    @property
    def objective(self) -> float:
        """Q up to a constant: sum of tau ln f = sum of ln (sum of f) + sum of tau ln tau."""
        return self.sums.objective - self.sums.entropy

    @property
    def labels(self) -> Array:
        """The most probable cluster of each row, which is the nearest."""
        return np.argmin(squared_distances(self.x, self.centers), axis=0)

    def merge(self, other: Summed) -> Summed:
        """All rows, in their order."""
        return Summed(self.sums.merge(other.sums), np.concatenate([self.x, other.x]), self.centers)


@final
class ReleasedFast(AsReleased):
    """Fast t-k-means, and from shifted k-means++ seeds fast t-k-means++.

    With alpha -> 0 the equations weight a row by tau u, and u is proportional to 1/D; the
    code leaves u out and weights by tau alone. Taken literally the centres would
    collapse onto single rows. So this is our own `Fast`, tau proportional to D^-c with
    c = (1 + p)/2 and Q = sum of tau ln D^-c, but for one thing: at D = 0 the code's tau is not
    a number, and a centre that stands on a row goes to the origin. Where all do so they
    stay together, so the "++" variant moves its seeds by 0.01 first.
    """

    def __init__(self) -> None:
        self._fast = Fast(power=0, engine=engines.select("auto"))

    def e_step(self, params: Spheres) -> Callable[[Block], Summed]:
        """A function that does the E-step under `params` for one block of rows."""
        sum_up = self._fast.e_step(Params(params.centers, _ALMOST_0, 1.0, np.zeros(len(params.centers))))

        def visit(block: Block) -> Summed:
            x, sums = block.frame.enter(block.X), sum_up(block)
            sums.seen[standing_on_a_row(params.centers, x)] = np.nan
            return Summed(sums, x, params.centers)

        return visit

    def m_step(self, stats: Summed, params: Spheres) -> Spheres:
        """Only the centres move, with the weights tau."""
        with np.errstate(all="ignore"):
            return params._replace(centers=numbers(params.centers + stats.sums.wx / stats.sums.seen))


def standing_on_a_row(centers: Array, x: Array) -> list[int]:
    """The centres that are equal to some row; hardly any shares even one coordinate with a row."""
    first = np.ascontiguousarray(x[:, 0])
    return [k for k, center in enumerate(centers) if center[0] in first and np.any(np.all(x == center, axis=1))]
