"""The released fast t-k-means: our own fast model, but for centres that stand on a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans import engines
from tkmeans.models import Fast
from tkmeans.paper.released import (
    Spheres,
    most_probable,
    numbers,
    shares,
)
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
        """Q = sum of tau ln f = sum of ln (sum of f) + sum of tau ln tau, where our f is (D/alpha)^-c."""
        log_unit = (1 + self.x.shape[1]) / 2 * np.log(_ALMOST_0)
        return float(self.sums.objective - self.sums.entropy - self.sums.n.sum() * log_unit)

    @property
    def labels(self) -> Array:
        """The most probable cluster of each row."""
        with np.errstate(all="ignore"):
            return most_probable(shares(densities(self.x, self.centers)))

    def merge(self, other: Summed) -> Summed:
        """All rows, in their order."""
        return Summed(self.sums.merge(other.sums), np.concatenate([self.x, other.x]), self.centers)


@final
class ReleasedFast:
    """Fast t-k-means, and from shifted k-means++ seeds fast t-k-means++.

    With alpha -> 0 the equations weight a row by tau u, and u is proportional to 1/D; the
    code leaves u out and weights by tau alone. Taken literally the centres would
    collapse onto single rows. So this is our own `Fast`, tau proportional to D^-c with
    c = (1 + p)/2 and Q = sum of tau ln D^-c, but for one thing: where D^-c is infinite the
    code's tau is not a number, and a centre that (nearly) stands on a row goes to the origin;
    the row counts for nobody. Where all centres do so they stay together, so the "++"
    variant moves its seeds by 0.01 first.
    """

    climbs = False

    def __init__(self) -> None:
        self._fast = Fast(power=0, every_pair=True, engine=engines.select("auto"))

    def e_step(self, params: Spheres) -> Callable[[Block], Summed]:
        """A function that does the E-step under `params` for one block of rows."""
        sum_up = self._fast.e_step(Params(params.centers, _ALMOST_0, 1.0, np.zeros(len(params.centers))))

        def visit(block: Block) -> Summed:
            x = block.frame.enter(block.X)
            if not may_be_infinite(x, params.centers):
                return Summed(sum_up(block), x, params.centers)
            with np.errstate(all="ignore"):
                infinite = np.isinf(densities(x, params.centers))  # (K, n)
            sums = sum_up(block._replace(weight=1.0 - infinite.any(axis=0)))
            sums.seen[infinite.any(axis=1)] = np.nan
            return Summed(sums, x, params.centers)

        return visit

    def m_step(self, stats: Summed, params: Spheres) -> Spheres:
        """Only the centres move, with the weights tau."""
        with np.errstate(all="ignore"):
            return params._replace(centers=numbers(params.centers + stats.sums.wx / stats.sums.seen))


def densities(x: Array, centers: Array) -> Array:
    """D^-c, (K, n)."""
    return cdist(centers, x, "sqeuclidean") ** (-(1 + x.shape[1]) / 2)


def may_be_infinite(x: Array, centers: Array) -> bool:
    """Whether any row is so near to a centre in its first coordinate that D^-c may be beyond all numbers."""
    reach = 2 * np.finfo(float).max ** (-1 / (1 + x.shape[1]))
    up = np.sort(x[:, 0])
    return bool(
        np.any(np.searchsorted(up, centers[:, 0] + reach, "right") > np.searchsorted(up, centers[:, 0] - reach))
    )
