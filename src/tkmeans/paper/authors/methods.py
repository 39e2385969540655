"""The nine methods of the paper as their authors released them: start, model, stopping rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans.baselines.hard_assignment import Centers, HardModel, Labelled
from tkmeans.em import Progress, em
from tkmeans.models import Model
from tkmeans.paper.authors import soft_models as soft
from tkmeans.search import seeding
from tkmeans.sources import ArraySource, Sample
from tkmeans.stats import Array, Frame


class Run(NamedTuple):
    """What the released code returns."""

    labels: Array  # (n,) of the last E-step
    centers: Array  # (K, p) one M-step later
    n_iter: int


def uniform(X: Array, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Uniform in the bounding box of the rows."""
    return seeding.uniform(Sample(X, np.ones(len(X))), n_clusters, rng)


def random_rows(X: Array, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Rows drawn without replacement."""
    return X[rng.permutation(len(X))[:n_clusters]]


def plusplus(X: Array, n_clusters: int, rng: np.random.RandomState) -> Array:
    """Classic k-means++: one trial for each seed, where scikit-learn tries several."""
    return roulette(X, rng.randint(len(X)), rng.random_sample(n_clusters - 1))


def shifted_plusplus(X: Array, n_clusters: int, rng: np.random.RandomState) -> Array:
    """The same, moved by 0.01 in every coordinate: fast t-k-means cannot start on a row."""
    return plusplus(X, n_clusters, rng) + 0.01


def roulette(X: Array, first: int, uniforms: Array) -> Array:
    """Row `first`, then for each number the first row whose cumulated normalised D^2 exceeds it."""
    seeds, nearest = [X[first]], np.full(len(X), np.inf)
    for number in uniforms:
        nearest = np.minimum(nearest, cdist(seeds[-1:], X, "sqeuclidean")[0])
        seeds.append(X[min(np.searchsorted(np.cumsum(nearest / nearest.sum()), number, side="right"), len(X) - 1)])
    return np.array(seeds)


@final
class ReleasedKMeans(HardModel):
    """k-means and k-means++, Q = -sum of r D. A cluster that lost its rows starts anew at the origin."""

    def m_step(self, stats: Labelled, params: Centers) -> Centers:
        """Centres are means, or 0."""
        new = super().m_step(stats, params)
        new.centers[np.bincount(stats.labels, minlength=len(new.centers)) == 0] = 0
        return new


def medoid(x: Array, _: Array) -> Array:
    """The row with the least sum of squared distances to all, which is the one next to the mean."""
    return x[np.argmin(((x - x.mean(axis=0)) ** 2).sum(axis=1))]


def no_median(x: Array, _: Array) -> Array:
    """The centre of the released "k-medians", a medoid: the row with the least sum of absolute differences to all."""
    # The sums come from sorting each feature. Rows still go to the centre with the least *squared* distance.
    n, rank, costs = len(x), np.arange(len(x))[:, None], np.empty_like(x)
    order = np.argsort(x, axis=0, kind="stable")
    up = np.take_along_axis(x, order, axis=0)
    below = np.cumsum(up, axis=0)
    np.put_along_axis(costs, order, (2 * rank + 2 - n) * up + below[-1] - 2 * below, axis=0)
    return x[np.argmin(costs.sum(axis=1))]


@final
@dataclass(frozen=True)
class QuietFor:
    """Stop once Q has changed by less than `tol` in each of the last `times` iterations.

    An absolute change of the *sum* over all rows: how exact the answer is depends on how many rows there are. With
    `steady`, a change that is within `tol` of the one before counts as quiet too, however large both are; the code
    does so in its t-k-means, GMM and TMM. Q counts as 0 before the first iteration. A NaN ends the run.
    """

    n_rows: int
    tol: float = 0.1
    times: int = 4
    steady: bool = False

    def __call__(self, progress: Progress) -> bool:
        """Whether the last few iterations were quiet."""
        # As many of them as matter; a change before the first is 0.
        q = np.array([0.0, 0.0, *progress.history][-self.times - 2 :]) * self.n_rows
        change = np.abs(np.diff(q))
        quiet = (change[1:] < self.tol) | (self.steady & (np.abs(np.diff(change)) < self.tol))
        return bool(np.isnan(q[-1]) or (len(quiet) == self.times and np.all(quiet)))


class Released(NamedTuple):
    """One method: where it begins, what it does and when it ends."""

    start: Callable[[Array, int, np.random.RandomState], Array]
    model: Model[Any, Any]
    first: Callable[[Array], Any]  # the parameters around the first centres
    steady: bool = False  # see QuietFor
    max_iter: int = 200

    def run(self, X: Array, centers: Array, _: int = 0) -> Run:
        """Cluster the rows of X from these centres, which is all that is drawn: a seed changes nothing."""
        source = ArraySource(X, None, Frame(np.zeros(X.shape[1]), 1.0), block_rows=len(X))
        stop, n_steps = QuietFor(len(X), steady=self.steady), self.max_iter - 1  # the first E-step is an iteration here
        fit = em(source, self.model, self.first(centers), stop=stop, max_iter=n_steps)
        return Run(fit.stats.labels, self.model.m_step(fit.stats, fit.params).centers, len(fit.history))


_kmeans = ReleasedKMeans("sqeuclidean", lambda x, weight: weight @ x / weight.sum(), climbs=False)
METHODS = {
    "k-means": Released(uniform, _kmeans, Centers),
    "k-means++": Released(plusplus, _kmeans, Centers),
    "k-medoids": Released(random_rows, HardModel("sqeuclidean", medoid, climbs=False), Centers),
    "k-medians": Released(random_rows, HardModel("sqeuclidean", no_median, climbs=False), Centers),
    "GMM": Released(uniform, soft.ReleasedGMM(), soft.Components.around, steady=True),
    "TMM": Released(uniform, soft.ReleasedTMM(), soft.Components.around, steady=True, max_iter=500),
    "t-k-means": Released(uniform, soft.ReleasedTKMeans(), soft.Spheres, steady=True, max_iter=500),
    "fast t-k-means": Released(uniform, soft.ReleasedFast(), soft.Spheres),
    "fast t-k-means++": Released(shifted_plusplus, soft.ReleasedFast(), soft.Spheres),
}
