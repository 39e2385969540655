"""Each row belongs to its nearest centre: the model of k-medians and k-medoids.

Medians and medoids cannot be had from sums over blocks, so the statistics of these models
are the rows and their labels, and merging joins them (docs/decisions/0010).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import distance

from tkmeans.em import SmallGain, em
from tkmeans.sources import ArraySource, Sample
from tkmeans.stats import Array, Block, Frame


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
        return Labelled(
            np.concatenate([self.x, other.x]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.labels, other.labels]),
            self.objective + other.objective,
        )


class HardModel(ABC):
    """Each row belongs to its nearest centre; how a centre follows from its rows is left open."""

    climbs = True

    def __init__(self, metric: str) -> None:
        self.metric = metric

    @abstractmethod
    def center(self, x: Array, weight: Array) -> Array:
        """The best centre for these rows."""

    def e_step(self, params: Centers) -> Callable[[Block], Labelled]:
        """A function that labels one block of rows."""

        def label(block: Block) -> Labelled:
            distances = distances_between(block.X, params.centers, self.metric)
            weight = np.ones(len(block.X)) if block.weight is None else block.weight
            nearest = distances.argmin(axis=1)
            return Labelled(block.X, weight, nearest, -float(weight @ distances[np.arange(len(nearest)), nearest]))

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


class Found(NamedTuple):
    """Where one search ended."""

    centers: Array  # (K, p)
    cost: float
    n_iter: int
    converged: bool


def alternate(model: HardModel, sample: Sample, centers: Array, max_iter: int) -> Found:
    """Label rows and move centres in turn, until nothing gets better."""
    source = ArraySource(sample.X, sample.weight, Frame(np.zeros(sample.X.shape[1]), 1.0))
    fit = em(source, model, Centers(centers), stop=SmallGain(0.0), max_iter=max_iter)
    return Found(fit.params.centers, -fit.stats.objective, len(fit.history) - 1, fit.converged)
