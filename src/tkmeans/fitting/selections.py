"""A choice of the number of clusters: mixtures of every number, judged in one descent from too many.

On a sample, EM begins with joined pieces (`tkmeans.search.shape_search`) for the largest number, and then always with
the mixture before, of which components are joined or given to the noise. The best of all go on for longer, and from
starts of their own.
"""

import math
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from threading import Event
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from tkmeans import engines
from tkmeans.docstrings import documented
from tkmeans.em import SmallGain
from tkmeans.fitting import mixture_setting
from tkmeans.fitting.evidence import RIDGE, Judged, judged, log_noise
from tkmeans.fitting.incomplete_rows import complete, without_bad_cells
from tkmeans.fitting.mixture_setting import IN_BULK, THINNEST, Setting, bulk_of, climb, from_labels, with_prior
from tkmeans.fitting.relations import rounding
from tkmeans.models.covariances import SHAPES
from tkmeans.models.dof import first_dof
from tkmeans.models.mixture import MixtureParams
from tkmeans.search.shape_search import (
    LIGHT_TAILS,
    PIECE_ROWS,
    QUICK_PIECES,
    TOP_PIECES,
    Pieces,
    frames,
    in_units_of,
    joined,
    joined_labels,
    round_labels,
)
from tkmeans.sources import ArraySource, Sample, Source
from tkmeans.sources.base import canonical, quantile
from tkmeans.stats import Array, Frame

UP_TO_20 = range(1, 21)  # numbers to try where none are given; fewer, if there are fewer rows
CRITERIA = ("evidence", "icl", "bic", "stability")
SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER = 6000, 200
ABOVE, FEWER = 2.0, 0.9  # times the most clusters is where the descent begins; what a step to these leaves of more
# EM ends with an iteration that gains less, in nats: on the way ROUGH, or ROUGH_PER_ROW times the rows; last FINE.
ROUGH, ROUGH_PER_ROW, FINE = 1.0, 1e-3, 0.01
LIKELY = 2  # numbers that are tried again in any case
LEAST_DOF = 3.0  # beside noise

# A number of clusters is stable if the least stable of its clusters is: the mark of prediction strength
# (Tibshirani and Walther 2005), on Hennig's similarity.
STABLE_ENOUGH = 0.8

# Nats from which on a choice is better, clearly better, far better (Kass and Raftery 1995).
CLOSENESS = {1.0: "hardly better", 3.0: "somewhat better", 5.0: "clearly better", np.inf: "far better"}
FORMATS = {"n_clusters": "d", "shape": ">", "outlier_fraction": ".1%", "stability": ".2f"}


@documented("tried_*")
@dataclass(frozen=True, eq=False)
class Selection:
    """What :func:`select_clusters` found: one entry for each number of clusters and shape that was tried."""

    n_clusters: Array
    shapes: Array
    evidence: Array
    icl: Array
    bic: Array
    outlier_fraction: Array
    stability: Array | None = None
    criterion: str = "evidence"
    simpler_shape: str | None = None
    best_estimator: Any = None

    @property
    def values(self) -> Array:
        """The values of the criterion that was chosen by."""
        return np.asarray(getattr(self, self.criterion))

    @property
    def _order(self) -> Array:
        """The entries, the most credible first."""
        if self.criterion != "stability":
            return np.argsort(self.values, kind="stable")
        stable = self.values >= STABLE_ENOUGH
        merit: Array = np.where(stable, self.n_clusters, self.values)
        return np.lexsort([-merit, ~stable])

    @property
    def ranking(self) -> Array:
        """The numbers of clusters, the most credible first."""
        return np.array([*dict.fromkeys(self.n_clusters[self._order].tolist())])

    @property
    def best(self) -> int:
        """The number of clusters to take."""
        return int(self.ranking[0])

    @property
    def best_shape(self) -> str:
        """The shape to take."""
        return str(self.shapes[self._order[0]])

    @property
    def runner_up(self) -> int | None:
        """The second choice; None if one number was tried."""
        return int(self.ranking[1]) if len(self.ranking) > 1 else None

    @property
    def margin(self) -> float:
        """By how much the best number is better than the runner-up: in nats, or in stability."""
        others = self._order[self.n_clusters[self._order] != self.best]
        gap = abs(self.values[others[0]] - self.values[self._order[0]]) if len(others) else np.inf
        return float(gap) / (2 if self.criterion in ("icl", "bic") else 1)

    @property
    def sentence(self) -> str:
        """The choice, the runner-up, and how close it is."""
        chosen = f"{self.best} cluster{'s' * (self.best > 1)} by {self.criterion}"
        if self.runner_up is None or self.criterion == "stability":
            return chosen if self.runner_up is None else f"{chosen}; {self.runner_up} comes next"
        words = next(words for nats, words in CLOSENESS.items() if self.margin < nats or nats == np.inf)
        more = "; more were not tried" if self.best == np.max(self.n_clusters) else ""
        return f"{chosen}, {words} than {self.runner_up} ({self.margin:.1f} nats){more}"

    @property
    def table(self) -> Array:
        """One record for each entry, as ``pandas.DataFrame`` takes it."""
        shown = ("evidence", "icl", "bic", "outlier_fraction", *["stability"] * (self.stability is not None))
        columns = {"n_clusters": self.n_clusters, "shape": self.shapes} | {name: getattr(self, name) for name in shown}
        return np.rec.fromarrays([*columns.values()], dtype=None, names=[*columns])  # type: ignore[call-overload]

    def __repr__(self) -> str:
        names, marks = self.table.dtype.names, {self.runner_up: "  <- runner-up", self.best: "  <- best"}
        lines = [self.sentence, "".join(f"{name:>17}" for name in names)]
        for i, record in enumerate(self.table):
            cells = (format(value, FORMATS.get(name, ".1f")) for name, value in zip(names, record, strict=True))
            first = bool(i == next(j for j in self._order if self.n_clusters[j] == record.n_clusters))
            lines.append("".join(f"{cell:>17}" for cell in cells) + marks.get(int(record.n_clusters), "") * first)
        return "\n".join(lines)

    @documented("ax", returns="display : tkmeans.plots.SelectionDisplay")
    def plot(self, ax: Any = None) -> Any:
        """Draw the criterion, with a line for each shape."""
        from tkmeans.plots import SelectionDisplay

        shown = ("n_clusters", "values", "criterion", "best", "runner_up", "outlier_fraction", "shapes")
        return SelectionDisplay(**{name: getattr(self, name) for name in shown}).plot(ax=ax)


@mixture_setting.on_one_thread
def compared(
    source: Source, numbers: Any, shapes: Any, settings: Any, n_jobs: Any = None, tick: Any = bool
) -> Selection:
    """The choice among mixtures of these numbers and shapes, by evidence; `tick` is called after each."""
    descent = Descent(source, max(numbers), settings)
    numbers = [K for K in numbers if max(len(descent.sample.X), min(numbers)) >= K]
    n_threads = min(effective_n_jobs(n_jobs), len(shapes))
    with ThreadPoolExecutor(n_threads) as pool:
        try:
            tried = [*(pool.map if n_threads > 1 else map)(partial(descent.found, numbers, tick), shapes)]
        except BaseException:  # Ctrl-C too
            descent.given_up.set()
            raise
    entries = [(shape, found[K]) for shape, found in zip(shapes, tried, strict=True) for K in numbers]
    shape, best = min(entries, key=lambda entry: entry[1].evidence)
    simpler = {"full": ("spherical", "tied", "diag"), "diag": ("spherical",)}.get(shape, ())
    as_good = (name for name in simpler if descent.reshaped(best.params, name).evidence <= best.evidence)
    names, *columns = zip(*((name, *each[:5]) for name, each in entries), strict=True)
    of_entries: dict[str, Any] = dict(zip(Judged._fields, map(np.array, columns), strict=False))
    return Selection(shapes=np.array(names), simpler_shape=next(as_good, None), **of_entries)


class Descent:
    """Mixtures on a sample of the rows of a source, which has a frame; `most` is the largest number of clusters."""

    def __init__(self, source: Source, most: int, settings: Any) -> None:
        size = max(SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * most)
        X, weight = source.sample(size, np.random.RandomState(0))
        rows = Sample(X, weight * (min(max(np.sum(weight), len(X)), size) / np.sum(weight)))  # rows count as rows
        rows = without_bad_cells(rows, most, at_most=True) if settings.bad_cells else rows
        sample = canonical(complete(rows, np.clip(len(X) / 400, 1, 5), X))  # whole rows, if a 20th are: 20 to 100
        one = np.min(rows.weight[rows.weight > 0], initial=1.0)
        bulk = bulk_of(sample, None, rounding(source), one)  # of all: small clusters may be as far away as outliers
        squares = np.sum(((sample.X - bulk.center) / bulk.units) ** 2, axis=1)
        bulk = bulk._replace(radius=float(np.sqrt(max(quantile(squares, sample.weight, IN_BULK), 1e-12))))
        self.sample, self.bulk, self.settings = sample, bulk, settings
        self._frames = frames(sample, bulk.units, most)
        self._source, n = ArraySource(*sample, Frame(np.zeros(sample.X.shape[1]), 1.0)), np.sum(sample.weight)
        self._rough = {"stop": SmallGain(max(ROUGH / n, ROUGH_PER_ROW)), "max_iter": 20, "accelerate": False}
        self._fine = {"stop": SmallGain(FINE / n), "max_iter": 100}
        self.given_up = Event()  # threads end when nobody waits for them any more

    def found(self, numbers: Collection[int], tick: Callable[[], None], shape: str) -> dict[int, Judged]:
        """Every number once, the largest first; then the best again, with more of EM and from other starts."""
        (n, p), most = self.sample.X.shape, max(numbers)
        K = max(most, min(math.ceil(ABOVE * most), n // 2, max(most + 1, n // (PIECE_ROWS * (p + 1)))))
        found, params = dict[int, Judged](), next(self._starts(K, shape, TOP_PIECES))
        while most < K:  # numbers that nobody has asked for: several at a time
            params = self._tried(params, shape, self._rough | {"accelerate": True}, judge=False).params
            params = self._joined(params, K := max(int(FEWER * K), most), shape)
        for K in range(most, min(numbers) - 1, -1):
            params = params if most == K else self._joined(params, K, shape)
            params = (last := self._tried(params, shape, judge=K in numbers)).params
            if K in numbers:
                found[K] = last
                tick()
        likely, tried = sorted(sorted(found, key=lambda K: found[K].evidence)[:LIKELY]), set[int]()
        while True:  # until the best number and its neighbours have been tried from starts of their own, and from above
            best = min(found, key=lambda K: found[K].evidence)
            left = [K for K in (best - 1, best + 1, best, *likely) if K in found and K not in tried]
            if not left:
                return found
            tried.add(K := left[-1])
            if K + 1 in tried:
                above = self._joined(found[K + 1].params, K, shape)
                found[K] = best_of(found[K], self._tried(above, shape))
            own = best_of(*(self._tried(start, shape) for start in self._starts(K, shape)))
            own = best_of(own, self._tried(own.params, shape, self._fine))  # in any case: it has seen less of EM
            if found[K].evidence < own.evidence:
                found[K] = best_of(found[K], self._tried(found[K].params, shape, self._fine))
            found[K] = best_of(own, found[K])

    def _starts(self, K: int, shape: str, pieces: Any = QUICK_PIECES) -> Iterator[MixtureParams]:
        """From joined pieces, if rows are not too few for these, and from round clusters that may touch."""
        rng, tails = np.random.RandomState(0), max(LIGHT_TAILS, first_dof(self.sample.X.shape[1]))
        *_, last = in_units = [in_units_of(self.sample, units) for units in self._frames]
        volume = self.bulk.log_volume - float(np.sum(np.log(self._frames[-1])))
        groups = islice(joined_labels(last, volume, K, rng, pieces), 1)
        touching = (round_labels(each, K, rng, tails) for each in in_units)
        for labels in chain(groups, touching):
            yield from_labels(self.sample, labels, self._setting(K, shape), core=True)

    def reshaped(self, params: MixtureParams, shape: str) -> Any:
        """The same clusters in another shape, after EM."""
        covariances = SHAPES[shape].of_matrices(as_matrices(params), np.exp(params.log_weights))
        bulk = SHAPES[shape].diagonal((self.bulk.units * self.bulk.radius) ** 2)
        return self._tried(params._replace(covariances=covariances, bulk=bulk), shape)

    def _setting(self, n_clusters: int, shape: str) -> Setting:  # a heavy tail is no reason for another cluster
        settings, n_rows = self.settings, float(np.sum(self.sample.weight))
        model = settings._model(engines.select(settings.engine))
        model = replace(model, shape=SHAPES[shape], least_dof=min(model.least_dof, LEAST_DOF), most_trust=math.inf)
        dof = None if settings.dof == "estimate" else float(settings.dof)
        rows = settings.shrinkage * (self.sample.X.shape[1] + 2.0)
        ridge = RIDGE * n_rows / n_clusters
        return Setting(model, n_clusters, rows, ridge, self.bulk, settings.noise, dof, floor=THINNEST[1])

    def _tried(self, params: MixtureParams, shape: str, options: Any = None, judge: bool = True) -> Any:
        setting = self._setting(len(params.centers), shape)
        fit = climb(self._source, with_prior(params, setting), params, setting.noise, **options or self._rough)
        if fit.interrupted or self.given_up.is_set():
            raise fit.interrupted or KeyboardInterrupt
        return judged(self.sample, setting, fit.params, fit.stats) if judge else fit

    def _joined(self, params: MixtureParams, K: int, shape: str) -> MixtureParams:
        """With components joined whose union costs least as one ellipse, or given to the noise, until K are left."""
        units, rows = self.bulk.units, np.sum(self.sample.weight)
        mass, matrices, noise = rows * np.exp(params.log_weights), as_matrices(params), params.noise + params.beyond
        pieces = Pieces(mass, params.centers / units, mass[:, None, None] * matrices / np.outer(units, units))
        volumes = -log_noise(params.centers, self.bulk) - np.sum(np.log(units))  # noise is as thin as 1 row in these
        group = joined(pieces, K, rows * noise, volumes if noise else math.inf)
        shares = mass * (group == np.arange(K)[:, None])  # (K, as many as before)
        mass, lost = np.sum(shares, axis=1), np.sum(mass[group < 0]) / (2 * rows)
        shares /= mass[:, None]
        centers = shares @ params.centers
        away = params.centers - centers[group]
        matrices = np.tensordot(shares, matrices + away[:, :, None] * away[:, None, :], 1)
        model = self._setting(K, shape).model
        covariances = model.bounded(model.shape.of_matrices(matrices, mass), mass)
        params = params._replace(noise=params.noise + lost, beyond=params.beyond + lost, dof=params.dof[-K:])
        return params._replace(centers=centers, covariances=covariances, log_weights=np.log(mass / rows))


def best_of(*tried: Judged) -> Judged:
    """The one of most evidence, wherever EM has stopped; with the least of the other criteria."""
    icl, bic = min(each.icl for each in tried), min(each.bic for each in tried)
    return min(tried, key=lambda each: each.evidence)._replace(icl=icl, bic=bic)


def as_matrices(params: MixtureParams) -> Array:
    """The covariances as matrices, (K, p, p)."""
    covariances = params.covariances
    return covariances if covariances.ndim == 3 else np.eye(params.centers.shape[1]) * covariances[:, None, :]
