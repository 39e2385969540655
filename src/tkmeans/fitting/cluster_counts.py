"""Mixtures of every number of clusters, judged: one descent from too many.

On a sample, EM begins with joined pieces (`tkmeans.search.shape_search`) for the largest number, and then always with
the mixture before, of which two components are joined or one is given to the noise. The best of all go on for longer,
and from round clusters too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import entr

from tkmeans import engines
from tkmeans.em import SmallGain
from tkmeans.fitting.evidence import RIDGE, Judged, judged, log_noise
from tkmeans.fitting.mixture_starts import Setting, bulk_of, climb, from_labels, with_prior
from tkmeans.fitting.starts import canonical, complete, without_bad_cells
from tkmeans.models.covariances import SHAPES
from tkmeans.models.dof import first_dof
from tkmeans.models.mixture import MixtureParams
from tkmeans.search.shape_search import FARTHEST, LIGHT_TAILS, joined_labels, round_labels
from tkmeans.sources import ArraySource, Sample, Source
from tkmeans.stats import Array, Frame

SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER = 6000, 200
ABOVE = 1.5  # times the most clusters is where the descent begins
NEAR = 4  # components that one may be joined with
STEP = {"stop": SmallGain(1e-3), "max_iter": 20, "accelerate": False}  # of EM on the way, and for the best
LAST = {"stop": SmallGain(1e-5), "max_iter": 50}
CONTENDERS, CLOSE = 3, (20.0, 0.05)  # that go on: the best, if they are so close in nats, and in nats per row


class Descent:
    """Mixtures on a sample of the rows of a source, which has a frame; `most` is the largest number of clusters."""

    def __init__(self, source: Source, most: int, rng: Any, settings: Any) -> None:
        size = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * most)
        X, weight = source.sample(size, rng)
        rows = Sample(X, weight * min(1.0, size / source.total))  # a row stands for others, but it is one
        rows = without_bad_cells(rows, most) if settings.bad_cells else rows
        sample = canonical(complete(rows, 5))  # holes are filled only if complete rows are very few
        weight = sample.weight * max(1.0, len(sample.X) / np.sum(sample.weight))  # weights of 1/n do not make rows few
        self.sample, self.bulk, self.settings = sample._replace(weight=weight), bulk_of(sample), settings
        self._in_units = sample._replace(X=np.clip(sample.X / self.bulk.units, -FARTHEST, FARTHEST))
        self._source = ArraySource(sample.X, weight, Frame(np.zeros(sample.X.shape[1]), 1.0))

    def judged_counts(self, numbers: Collection[int], shape: str) -> Iterator[Judged]:
        """Every number once, the largest first; and then the best again, if they are better after more of EM."""
        top = max(numbers)
        top = max(top, min(math.ceil(ABOVE * top), len(self.sample.X) // 2))
        found = dict[int, Judged]()
        params = from_labels(self.sample, self._labels(top), self._setting(top, shape), core=True)
        for K in range(top, min(numbers) - 1, -1):
            setting = self._setting(K, shape)
            params = params if top == K else one_less(params, setting)[0]
            last = self._climbed(params, setting, STEP)
            params = last.params
            if K in numbers:
                found[K] = last
                yield last
        ranked = sorted(found, key=lambda K: found[K].evidence)
        close = found[ranked[0]].evidence + CLOSE[0] + CLOSE[1] * float(np.sum(self.sample.weight))
        tails = max(LIGHT_TAILS, first_dof(self.sample.X.shape[1]))
        for K in [K for K in ranked[:CONTENDERS] if found[K].evidence < close]:
            setting = self._setting(K, shape)
            labels = round_labels(self._in_units, K, np.random.RandomState(0), tails)
            for start in (found[K].params, from_labels(self.sample, labels, setting, core=True)):
                found[K] = min(found[K], self._climbed(start, setting, LAST), key=lambda each: each.evidence)
            yield found[K]
        best = min(found.values(), key=lambda each: each.evidence)
        while (K := best.n_clusters - 1) in found:  # down from the best once more
            setting = self._setting(K, shape)
            ways = [self._climbed(start, setting, LAST) for start in one_less(best.params, setting)]
            again = min(ways, key=lambda each: each.evidence)
            if again.evidence < found[K].evidence:
                yield again
            if again.evidence > best.evidence:
                break
            best = again

    def reshaped(self, params: MixtureParams, shape: str) -> Judged:
        """The same clusters in another shape, after EM."""
        setting, covariances = self._setting(len(params.centers), shape), params.covariances
        form, p = setting.model.shape, self.sample.X.shape[1]
        matrices = covariances if covariances.ndim == 3 else np.eye(p) * covariances[:, None, :]
        covariances = form.of_matrices(matrices, np.exp(params.log_weights))
        bulk = form.diagonal((self.bulk.units * self.bulk.radius) ** 2)
        return self._climbed(params._replace(covariances=covariances, bulk=bulk), setting, STEP)

    def _setting(self, n_clusters: int, shape: str) -> Setting:
        settings, p, n_rows = self.settings, self.sample.X.shape[1], float(np.sum(self.sample.weight))
        model = replace(settings._model(engines.select(settings.engine)), shape=SHAPES[shape])
        noise = "auto" if isinstance(settings.noise, str) else bool(settings.noise)
        dof = None if settings.dof == "estimate" else float(settings.dof)
        rows, ridge = settings.shrinkage * (p + 2.0), RIDGE * n_rows / n_clusters
        return Setting(model, n_clusters, rows, ridge, self.bulk, noise, dof)

    def _climbed(self, params: MixtureParams, setting: Setting, options: dict[str, Any]) -> Judged:
        fit = climb(self._source, with_prior(params, setting), params, setting.noise, **options)
        if fit.interrupted:
            raise fit.interrupted
        return judged(self.sample, setting, fit.params, fit.stats)

    def _labels(self, n_clusters: int) -> Array:
        """Joined pieces; round clusters where rows are too few for pieces."""
        volume, rng = self.bulk.log_volume - float(np.sum(np.log(self.bulk.units))), np.random.RandomState(0)
        joined = next(joined_labels(self._in_units, volume, n_clusters, rng), None)
        return round_labels(self._in_units, n_clusters, rng) if joined is None else joined


def one_less(params: MixtureParams, setting: Setting) -> list[MixtureParams]:
    """The two components joined whose union costs least as one ellipse, and the cheapest given to the noise.

    The cheaper way comes first; without noise there is no other.
    """
    shape, mass, noise = setting.model.shape, np.exp(params.log_weights), params.noise + params.beyond
    centers, covariances = params.centers, params.covariances
    (K, p), single = centers.shape, SHAPES["full"] if shape.tied else shape

    def cost(mass: Array, covariances: Array) -> Array:
        return mass * (p / 2 * (single.log_sizes(covariances) + 1 + math.log(2 * math.pi)) - np.log(mass))

    def without(k: int, centers: Array, covariances: Array, mass: Array) -> MixtureParams:
        centers, covariances, mass, dof = (np.delete(of, k, axis=0) for of in (centers, covariances, mass, params.dof))
        covariances = setting.model.bounded(shape.of_matrices(covariances, mass) if shape.tied else covariances, mass)
        return params._replace(centers=centers, covariances=covariances, log_weights=np.log(mass), dof=dof)

    apart = np.sum(((centers[:, None] - centers) / setting.bulk.units) ** 2, axis=2) - np.eye(K)
    near = np.argsort(apart, axis=1, kind="stable")[:, 1 : NEAR + 1]
    i, j = np.repeat(np.arange(K), near.shape[1]), near.ravel()
    both, away, column = mass[i] + mass[j], centers[i] - centers[j], (-1, *[1] * (covariances.ndim - 1))
    first, second = mass[i] / both, mass[j] / both
    between = single.of_matrices((first * second)[:, None, None] * (away[:, :, None] * away[:, None, :]), both)
    union = first.reshape(column) * covariances[i] + second.reshape(column) * covariances[j] + between
    own = cost(mass, covariances)
    prices = cost(both, union) - own[i] - own[j]
    best = int(np.argmin(prices))
    k, gone = i[best], j[best]
    middle = first[best] * centers[k] + second[best] * centers[gone]
    here = np.arange(K) == k
    joined = without(
        gone,
        np.where(here[:, None], middle, centers),
        np.where(here.reshape(column), union[best], covariances),
        np.where(here, both[best], mass),
    )
    if not noise:
        return [joined]
    as_noise = entr(noise + mass) - entr(noise) - mass * log_noise(centers, setting.bulk) - own
    lost = int(np.argmin(as_noise))
    dropped = without(lost, centers, covariances, mass)
    dropped = dropped._replace(noise=params.noise + mass[lost] / 2, beyond=params.beyond + mass[lost] / 2)
    return [joined, dropped] if prices[best] <= as_noise[lost] else [dropped, joined]
