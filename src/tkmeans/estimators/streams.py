"""What is kept of a stream besides its statistics: its first rows, and what its latest say of the model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from tkmeans.estimators.validation import observed_features
from tkmeans.models import CenterModel
from tkmeans.models.stepwise import halved
from tkmeans.stats import Array, Block, Params, Stats

# How many of the latest rows' distances are kept.
KEPT_DISTANCES = 4096


class Waiting(NamedTuple):
    """The first rows, kept until there are enough to search for clusters once and for all."""

    X: Array  # (n, p)
    weight: Array  # (n,)
    searched: int = 0  # how many rows of positive weight there were at the last search

    def joined(self, X: Array, weight: Array) -> Waiting:
        """With one more batch."""
        return Waiting(np.concatenate([self.X, X]), np.concatenate([self.weight, weight]), self.searched)

    @property
    def counted(self) -> int:
        """Rows of positive weight."""
        return int(np.count_nonzero(self.weight))

    def can_start(self, n_clusters: int) -> bool:
        """Whether there is a row for every cluster, and a value of every feature."""
        observed = ~np.all(np.isnan(self.X[self.weight > 0]), axis=0)
        return self.counted >= n_clusters and bool(np.all(observed))


class Distances(NamedTuple):
    """Of the latest rows to their centres, the oldest first: they say who is an outlier."""

    d2: Array  # (n,)
    n_seen: Array  # (n,) the features that each was measured over
    weight: Array  # (n,)

    @classmethod
    def of(cls, d2: Array, n_seen: Array, weight: Array | None) -> Distances:
        """Those of one batch or, at equal intervals, of as many of its rows as are kept."""
        thin = slice(None, None, -(-len(d2) // KEPT_DISTANCES))
        weight = np.ones(len(d2)) if weight is None else weight
        return cls(d2[thin], np.broadcast_to(n_seen, d2.shape)[thin], weight[thin])

    def then(self, newer: Distances) -> Distances:
        """With those of one more batch, and the oldest forgotten."""
        return Distances(*(np.concatenate(both)[-KEPT_DISTANCES:] for both in zip(self, newer, strict=True)))


class Latest(NamedTuple):
    """Fading sums over batches, each around the centres that it met before they learned from it."""

    stats: Stats
    variance: Array  # (K,) of a feature of `stats.wx`, if there is no drift

    @classmethod
    def nothing(cls, like: Stats) -> Latest:
        """Before the first batch."""
        return cls(like.faded(0.0), 0.0 * like.n)

    def after(self, batch: Stats, variance: Array, half_life: float) -> Latest:
        """With one more batch, whose rows now count most."""
        kept = halved(batch.total, half_life)
        return Latest(self.stats.faded(kept).merge(batch), kept**2 * self.variance + variance)

    def shifts(self) -> Array:
        """From each centre to where the latest rows would have it, (K, p)."""
        wx, seen = self.stats.wx, self.stats.seen
        return np.divide(wx, seen, out=np.zeros_like(wx), where=seen > 0)

    def pvalues(self) -> Array:
        """How probable shifts at least this long are if the centres are where they should be, (K,).

        Then the sum of u(x - mu) over a cluster's rows has the mean 0, and over its variance its
        square follows a chi-squared distribution with p degrees of freedom. The variance is
        that of the rows themselves, so clusters need not be as wide as the model thinks.
        """
        square = np.sum(self.stats.wx**2, axis=1)
        ratio = np.divide(square, self.variance, out=0 * square, where=self.variance > 0)
        return chdtrc(self.stats.wx.shape[1], ratio)


def pull_variance(block: Block, model: CenterModel, params: Params) -> Array:
    """What a block adds to the variance of a feature of `Stats.wx`: the sum of (tau u)^2 |x - mu|^2 / p, (K,)."""
    kernel = model.kernel(params)
    tau = model.engine.memberships(block, params, kernel)  # (n, K)
    d2 = model.engine.distances(block, params) ** 2  # (n, K)
    gain = np.reshape(kernel.gain[observed_features(block.X)], (-1, 1))
    pull = (tau * gain / (1 + kernel.slope * d2)) ** 2 * d2
    weight = np.ones(len(d2)) if block.weight is None else block.weight
    return np.asarray(weight @ pull, dtype=float) / params.centers.shape[1]
