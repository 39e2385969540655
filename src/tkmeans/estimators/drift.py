"""What the latest rows of a stream say of a model that had not learned from them yet."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from tkmeans.models.stepwise import halved
from tkmeans.stats import Array, Params, Stats


class Latest(NamedTuple):
    """Fading sums over batches, each around the centres that it met."""

    stats: Stats
    squares: float  # of the weights to which rows have faded, for the number of rows these amount to

    @classmethod
    def nothing(cls, like: Stats) -> Latest:
        """Before the first batch."""
        return cls(like.faded(0.0), 0.0)

    def after(self, batch: Stats, half_life: float) -> Latest:
        """With one more batch, whose rows now count most."""
        kept = halved(batch.total, half_life)
        return Latest(self.stats.faded(kept).merge(batch), kept**2 * self.squares + batch.total)

    def shifts(self) -> Array:
        """From each centre to where the latest rows would have it, (K, p)."""
        wx, seen = self.stats.wx, self.stats.seen
        return np.divide(wx, seen, out=np.zeros_like(wx), where=seen > 0)

    def pvalues(self, params: Params) -> Array:
        """How probable shifts at least this long are if the rows follow the model, (K,).

        For a row of a cluster u(x - mu) has the mean 0 and in each feature the variance
        alpha (nu + p) / (nu + p + 2), and the mean of u is 1: so the squared shift, over its
        variance, follows a chi-squared distribution with p degrees of freedom.
        """
        p = params.centers.shape[1]
        n, w = self.stats.n[:, None], self.stats.w[:, None]
        share_seen = np.divide(self.stats.seen, w, out=np.zeros_like(self.stats.seen), where=w > 0)
        rows = n * share_seen * (self.stats.total / max(self.squares, 1.0))
        variance = params.scale * (params.dof + p) / (params.dof + p + 2)
        return chdtrc(p, np.sum(rows * self.shifts() ** 2, axis=1) / variance)
