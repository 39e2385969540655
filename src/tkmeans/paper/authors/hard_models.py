"""The released k-means, k-medoids and k-medians: each row belongs to its nearest centre; Q = -sum of r D."""

from typing import final

import numpy as np

from tkmeans.baselines.hard_assignment import Centers, HardModel, Labelled
from tkmeans.stats import Array


class ReleasedHardModel(HardModel):
    """What is not sure to get better with every step: a centre is moved to the origin, or minimises something else."""

    climbs = False

    def __init__(self) -> None:
        super().__init__("sqeuclidean")


@final
class ReleasedKMeans(ReleasedHardModel):
    """k-means and k-means++. A cluster that lost its rows starts anew at the origin."""

    def center(self, x: Array, weight: Array) -> Array:
        """The mean of these rows."""
        return weight @ x / weight.sum()

    def m_step(self, stats: Labelled, params: Centers) -> Centers:
        """Centres are means, or 0."""
        new = super().m_step(stats, params)
        new.centers[np.bincount(stats.labels, minlength=len(new.centers)) == 0] = 0
        return new


@final
class ReleasedMedoids(ReleasedHardModel):
    """k-medoids, and what is called k-medians.

    Its "k-medians" has no medians. The centre is the *sample* with the least sum of
    absolute differences to the others of its cluster, a medoid (`norm` 1), and rows
    still go to the centre with the least *squared* distance. k-medoids takes squared
    distances for both (`norm` 2).
    """

    def __init__(self, norm: int) -> None:
        super().__init__()
        self.norm = norm

    def center(self, x: Array, weight: Array) -> Array:
        """The sample with the least sum of differences; with squared ones that is the sample next to the mean."""
        return x[np.argmin(((x - x.mean(axis=0)) ** 2).sum(axis=1) if self.norm == 2 else _absolute_differences(x))]


def _absolute_differences(x: Array) -> Array:
    """For each row the sum of its city-block distances to all rows, by sorting each feature."""
    n = len(x)
    rank = np.arange(n)[:, None]
    order = np.argsort(x, axis=0, kind="stable")
    up = np.take_along_axis(x, order, axis=0)
    below = np.cumsum(up, axis=0)
    costs = np.empty_like(x)
    np.put_along_axis(costs, order, (2 * rank + 2 - n) * up + below[-1] - 2 * below, axis=0)
    return costs.sum(axis=1)
