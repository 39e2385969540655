"""What k-medians and k-medoids share: each row belongs to its nearest centre.

Sums give no medians: the statistics are the rows and their labels, and merging joins them (docs/decisions/0010).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np
from scipy.spatial import distance

from tkmeans.em import SmallGain, em
from tkmeans.estimators import validation
from tkmeans.estimators.inputs import Accepts, measure
from tkmeans.fitted import Left
from tkmeans.fitting.restarts import Plan, Run
from tkmeans.fitting.starts import canonical, n_starts
from tkmeans.search import seeding
from tkmeans.sources import ArraySource, Sample, Source
from tkmeans.sources.number_checks import checked_centers
from tkmeans.stats import Array, Block, Frame, Rows

LARGEST = 1e150  # whose square is a number
SEEDINGS: dict[str, seeding.Seeding] = {"k-means++": seeding.kmeans_plusplus, "random": seeding.random_rows}

CHECKS: dict[str, validation.Check] = dict.fromkeys(("n_clusters", "max_iter"), validation.at_least_one)
CHECKS |= {"n_init": validation.one_or_auto}
CHECKS |= {"init": partial(validation.check_init, choices=SEEDINGS, hint=" or an array of centres")}

# A hard assignment has neither probabilities nor a density.
_NO_PROBABILITIES = {"predict_proba", "robust_weights", "assignment_entropy"}
_NO_DENSITY = {"score_samples", "aic", "bic", "icl", "sample", "outliers", "outlier_pvalues"}
LACKS = frozenset(_NO_PROBABILITIES | _NO_DENSITY | {"lower_bound_", "lower_bounds_", "converged_"})


def distances_between(a: Array, b: Array, metric: Any) -> Array:
    """The distance of every row of a to every row of b."""
    if metric == "cosine":  # knows no length, but squares it
        a, b = (rows / np.max(np.abs(rows), axis=1, keepdims=True) for rows in (a, b))
    return distance.cdist(a, b, metric)


class Centers(NamedTuple):
    """All there is to estimate."""

    centers: Array  # (K, p)
    made_of: Array | None = None  # (n,) the labels of the rows that the centres were made of


class Labelled(NamedTuple):
    """The rows, and the centre each belongs to."""

    x: Array  # (n, p)
    weight: Array  # (n,)
    labels: Array  # (n,)
    objective: float  # minus the sum of distances

    @property
    def total(self) -> float:
        """The summed weight of the rows."""
        return float(self.weight.sum())

    def merge(self, other: Labelled) -> Labelled:
        """All rows, in their order."""
        rows = (np.concatenate(pair) for pair in zip(self[:3], other[:3], strict=True))
        return Labelled._make([*rows, self.objective + other.objective])


@dataclass
class HardModel(ABC):
    """Each row belongs to its nearest centre; how a centre follows from its rows is left open."""

    metric: str
    climbs = True

    @abstractmethod
    def center(self, x: Array, weight: Array) -> Array:
        """The best centre for these rows."""

    def e_step(self, params: Centers) -> Callable[[Block], Labelled]:
        """A function that labels one block of rows."""

        def label(block: Block) -> Labelled:
            distances = distances_between(block.X, params.centers, self.metric)
            weight = np.ones(len(block.X)) if block.weight is None else block.weight
            return Labelled(block.X, weight, distances.argmin(axis=1), -float(weight @ distances.min(axis=1)))

        return label

    def m_step(self, stats: Labelled, params: Centers) -> Centers:
        """The best centre of each cluster; one that nobody belongs to stays, as does one with the same rows."""
        centers, labels, before = params.centers.copy(), stats.labels, params.made_of
        changed = np.unique(labels)
        if before is not None:
            moved = labels != before
            changed = np.intersect1d(changed, np.concatenate([labels[moved], before[moved]]))
        order = np.argsort(labels, kind="stable")
        first, end = (np.searchsorted(labels[order], changed, side) for side in ("left", "right"))
        for k, own in zip(changed, map(slice, first, end), strict=True):
            centers[k] = self.center(stats.x[order[own]], stats.weight[order[own]])
        return Centers(centers, labels)


@final
class HardCenters(NamedTuple):
    """The centres of a fit, in the user's coordinates."""

    centers: Array  # (K, p)

    @classmethod
    def leaving(cls, fit: Any, frame: Frame, dtype: Any, model: Any) -> Left:  # noqa: ARG003
        """The centres, in the user's coordinates already; nothing is known of sizes before rows are looked at."""
        return Left(cls(fit.params.centers), None)

    @classmethod
    def from_attributes(cls, fitted: dict[str, Any], model: Any) -> HardCenters:  # noqa: ARG003
        """The centres that these fitted attributes tell of."""
        return cls(fitted["cluster_centers_"])

    def take(self, order: Array) -> HardCenters:
        """The same with the clusters in another order."""
        return HardCenters(self.centers[order])

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes, by name."""
        return {"cluster_centers_": self.centers}

    def frame(self, dtype: Any) -> Frame:
        """Coordinates as they are."""
        return as_it_is(self.centers.shape[1])

    def posterior(self, model: HardModel, frame: Frame) -> HardPosterior:
        """Ready to look at rows."""
        return HardPosterior(model.metric, self.centers)


@final
class HardPosterior(NamedTuple):
    """Distances, and nothing else."""

    metric: str
    centers: Array  # (K, p)
    unit: float = 1.0  # that of the rows

    def rows(self, block: Block) -> Rows:
        """The nearest centre and the distance to it; there is no density."""
        distances = self.distances(block)
        return Rows(distances.argmin(axis=1), distances.min(axis=1), None, None)

    def distances(self, block: Block) -> Array:
        """In the metric of the method, (n, K)."""
        return distances_between(block.X, self.centers, self.metric)


def as_it_is(n_features: int) -> Frame:
    """The user's coordinates as a frame."""
    return Frame(np.zeros(n_features), 1.0)


def check_rows(estimator: Any, X: Array) -> None:
    """Complain of rows whose distances are not numbers."""
    _check_squares(X, "X")
    if getattr(estimator, "metric", None) == "cosine" and not np.all(np.any(X, axis=1)):
        row = int(np.argmin(np.any(X, axis=1)))
        raise ValueError(f'X holds nothing but zeros in row {row}, which has no direction for metric="cosine"')


ACCEPTS = Accepts(missing=False, sparse=False, single=False, elsewhere=False, check=check_rows)


def _check_squares(points: Array, name: str) -> None:
    largest = float(np.max(np.abs(points)))
    if largest > LARGEST:
        raise ValueError(f"{name} holds values as large as {largest:.3g}, whose squares no float64 can; rescale it")


def hard_plan(estimator: Any, source: Source, run_from: Callable[[Sample, Array], Run], extras: Any = None) -> Plan:
    """From every start a run over the rows, sorted and with equal ones joined: a row of weight 2 is that row twice."""
    assert isinstance(source, ArraySource)
    measure(source)
    source.frame = as_it_is(source.n_features)
    weight = np.ones(source.n_rows) if source.weight is None else source.weight
    sample = canonical(Sample(source.X[weight > 0], weight[weight > 0]))

    def runs(rng: np.random.RandomState) -> Iterator[Run]:
        for _ in range(n_starts(estimator.init, estimator.n_init)):
            if isinstance(estimator.init, str):
                centers = SEEDINGS[estimator.init](sample, estimator.n_clusters, rng)
            else:
                centers = checked_centers(estimator.init, "init", (estimator.n_clusters, sample.X.shape[1]))
                _check_squares(centers, "init")
            yield run_from(sample, centers)

    return Plan(runs, lambda fit: fit.stats.objective, extras=extras or cost_of)


def alternating(model: HardModel, sample: Sample, centers: Array, max_iter: int) -> Run:
    """Label rows and move centres in turn, until nothing gets better."""
    source = ArraySource(sample.X, sample.weight, as_it_is(sample.X.shape[1]))
    return partial(em, source, model, Centers(centers), stop=SmallGain(0.0), max_iter=max_iter)


def cost_of(training: Any, fit: Any, source: Source, found: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """The sum of distances."""
    return {"inertia_": -fit.stats.objective}
