"""State of `MiniBatchTKMeans` between batches: statistics, first rows, recent distances and drift."""

from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc

from tkmeans.fitted import ENOUGH_COMPLETE_ROWS, Sketch, tally
from tkmeans.models.stepwise import Stepwise, Tracked
from tkmeans.sources.base import merged, observed_features
from tkmeans.sparse_rows import SparseRows
from tkmeans.stats import Array, Block, Fit, Frame, Params, Stats

KEPT_DISTANCES, LATEST_BATCHES = 4096, 1000  # the latest rows and batches of which something is kept


class Waiting(NamedTuple):
    """The first rows, kept until there are enough to search for clusters once and for all."""

    X: Array  # (n, p)
    weight: Array  # (n,)
    searched: int = 0  # how many rows of positive weight there were at the last search
    repeated: int = 0  # rows that were left out, because others are equal
    n_batches: int = 1  # that they came in

    def joined(self, X: Array, weight: Array) -> "Waiting":
        """With one more batch."""
        sparse = isinstance(X, SparseRows)
        if isinstance(self.X, SparseRows) != sparse:
            raise ValueError("the first rows of a stream must be all sparse or all dense; convert this batch")
        rows = self.X.then(X) if sparse else np.concatenate([self.X, X])
        return self._replace(X=rows, weight=np.concatenate([self.weight, weight]), n_batches=self.n_batches + 1)

    def halved(self) -> "Waiting":
        """Of every two equal rows the heavier one: a majority of equal rows would leave clusters no scale."""
        X: Any = self.X
        ends = pairwise(X.first) if isinstance(X, SparseRows) else ()
        rows = [X.value[i:j].tobytes() + X.column[i:j].tobytes() for i, j in ends] or [row.tobytes() for row in X]
        which = np.unique(np.array(rows, dtype=object), return_inverse=True)[1]
        order, equal = np.argsort(which, kind="stable"), np.sort(which)
        first = np.flatnonzero((np.arange(len(rows)) - np.searchsorted(equal, equal)) % 2 == 0)
        weight, repeated = np.maximum.reduceat(self.weight[order], first), self.repeated + len(rows) - len(first)
        return Waiting(X[order[first]], weight, int(np.count_nonzero(weight)), repeated, self.n_batches)

    @property
    def counted(self) -> int:
        """Rows of positive weight."""
        return int(np.count_nonzero(self.weight))

    def can_start(self, n_clusters: int) -> bool:
        """Whether there is a row for every cluster, and a value of every feature."""
        if self.counted < n_clusters or isinstance(self.X, SparseRows):  # which are complete
            return self.counted >= n_clusters
        return bool(np.all(~np.all(np.isnan(self.X[self.weight > 0]), axis=0)))


class Distances(NamedTuple):
    """Of the latest rows to their centres, the oldest first: they decide who is an outlier."""

    d2: Array  # (n,)
    n_observed: Array  # (n,) the features that each was measured over
    weight: Array  # (n,)

    @classmethod
    def of(cls, d2: Array, n_observed: Array, weight: Array | None) -> "Distances":
        """Those of one batch or, at equal intervals, of as many of its rows as are kept."""
        thin = slice(None, None, -(-len(d2) // KEPT_DISTANCES))
        weight = np.ones(len(d2)) if weight is None else weight
        return cls(*(np.array(values[thin]) for values in (d2, n_observed, weight)))  # a view would hold all rows

    def sketch(self, n_features: int) -> Sketch:
        """Those of complete rows, or if these are few, of all in proportion to what was observed; in some points."""
        complete = (self.n_observed == n_features) & (self.weight > 0)
        kept = complete if np.count_nonzero(complete) >= ENOUGH_COMPLETE_ROWS else self.n_observed > 0
        one = np.clip(np.mean(self.weight[kept]), 1e-100, 1.0)  # small weights do not make rows few
        return tally(self.d2[kept] * (n_features / self.n_observed[kept]), self.weight[kept] / one).sketch()

    def then(self, newer: "Distances") -> "Distances":
        """With those of one more batch, and the oldest forgotten."""
        return Distances(*(np.concatenate(both)[-KEPT_DISTANCES:] for both in zip(self, newer, strict=True)))


class Latest(NamedTuple):
    """Fading sums over batches, each around the centres that it met before they learned from it."""

    stats: Stats
    variance: Array  # (K,) of a feature of `stats.wx`, if there is no drift

    def after(self, batch: Stats, variance: Array, half_life: float) -> "Latest":
        """With one more batch, whose rows now count most."""
        kept = 0.5 ** (batch.total / half_life)  # of the weight of older rows
        return Latest(self.stats.faded(kept).merge(batch), kept**2 * self.variance + variance)

    def pvalues(self) -> Array:
        """How probable shifts at least this long are if the centres are where they should be, (K,).

        Then the sum of u(x - mu) over a cluster's rows has the mean 0, and its square over its variance, which is that
        of the rows themselves, follows a chi-squared distribution with p degrees of freedom.
        """
        square = np.sum(self.stats.wx**2, axis=1)
        with np.errstate(over="ignore"):  # beyond all numbers is as improbable as can be
            ratio = np.divide(square, self.variance, out=0 * square, where=self.variance > 0)
        return chdtrc(self.stats.wx.shape[1], ratio)


class Stream(NamedTuple):
    """What is known of a stream; a batch makes a new one."""

    frame: Frame  # of the first fit; the parameters are in it
    tracked: Tracked
    latest: Latest
    distances: Distances
    bounds: list[float]  # log-likelihood per row of the latest batches, each judged before it was learned from
    n_steps: int  # batches learned from
    n_rows: int  # rows given so far

    @classmethod
    def after_fit(cls, fit: Fit, order: Array, source: Any, distances: Distances, bounds: list[float]) -> "Stream":
        """The state after a fit to rows at hand, with the clusters in another order."""
        params, memory = fit.params, fit.stats.take(order)
        params = params._replace(centers=params.centers[order], log_weights=params.log_weights[order])
        tracked = Tracked(params, memory, fit.stats.total)
        nothing = Latest(memory.faded(0.0), 0.0 * memory.n)  # before the first batch
        return cls(source.frame, tracked, nothing, distances, bounds, len(fit.history) - 1, source.n_rows)

    @property
    def remembered(self) -> float:
        """About how many rows the memory stands for."""
        return max(self.tracked.rows, self.n_rows) * self.tracked.memory.total / self.tracked.rows

    def learn(self, batch: Any, model: Stepwise, recent: float) -> "Stream":
        """One step of stepwise EM; what came more than `recent` rows ago counts less than half as recent."""
        before = self.tracked
        judged = zip(*batch.map(partial(judge, model=model.model, params=before.params)), strict=True)
        stats, variance = merged(next(judged)), sum(next(judged))
        bounds, latest = [*self.bounds, self.per_row(stats)], self.latest.after(stats, variance, recent)
        after = self._replace(tracked=model.m_step(stats, before), latest=latest, bounds=bounds[-LATEST_BATCHES:])
        return after._replace(n_steps=self.n_steps + 1, n_rows=self.n_rows + batch.n_rows)

    def per_row(self, stats: Stats) -> float:
        """The log-likelihood per row, in the user's units."""
        return float(stats.objective - stats.cells * np.log(self.frame.unit)) / stats.total

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes that are about the stream."""
        wx, observed = self.latest.stats.wx, self.latest.stats.observed
        shifts = np.divide(wx, observed, out=np.zeros_like(wx), where=observed > 0)  # to where the latest rows are
        found = {"lower_bound_": self.per_row(self.tracked.memory), "lower_bounds_": self.bounds, "_stream": self}
        found |= {"cluster_sizes_": self.tracked.memory.n, "recent_sizes_": self.latest.stats.n}
        found |= {"center_drift_": np.linalg.norm(shifts, axis=1) * self.frame.unit, "n_steps_": self.n_steps}
        return found | {"drift_pvalues_": self.latest.pvalues(), "n_samples_seen_": self.n_rows}


def judge(block: Block, model: Any, params: Params) -> tuple[Stats, Array]:
    """The statistics of a block, and the variance of a feature of its wx: the sum of (tau u)^2 |x - mu|^2 / p, (K,)."""
    kernel, engine, (K, p) = model.kernel(params), model.engine, params.centers.shape
    if block.weight is None and getattr(engine, "NAME", None) == "native":
        sums = np.zeros((5, K))
        return engine.summarize(block, params, kernel, sums=sums), sums[4] / p
    pull, away = engine.memberships(block, params, kernel), engine.distances(block, params)  # (n, K)
    pull *= away
    away *= kernel.slope * away
    pull *= np.reshape(kernel.gain[observed_features(block.X)], (-1, 1)).astype(pull.dtype) / (1 + away)
    weight = np.ones(len(pull)) if block.weight is None else block.weight
    return engine.summarize(block, params, kernel), np.einsum("i,ik,ik->k", weight, pull, pull, dtype=float) / p
