"""A fitted model: everything that can be asked of a fit, once.

Estimators, reports, the command and model files ask a `FittedModel`; dask ships it to where the rows are. Its
parameters are in the user's coordinates; rows are read in a frame that fits them.

A family of models (round: `Clusters` here; shapes: `tkmeans.mixture_components`; hard:
`tkmeans.baselines.hard_assignment`) is a record of such parameters. It knows its `centers` and how to `take` clusters
in another order, the fitted `attributes` (and the way back, `from_attributes`), what a fit leaves in the user's
coordinates (`leaving`), the `frame` for rows of some type, and the `posterior` in that frame: `rows`, `memberships`
and `distances` of a block, the `evidence` of a source and the `unit` of distances.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import betaincc, betaincinv, betaln, fdtrc

from tkmeans.sources.base import Answer, Column, Source, nearest_to_zero, observed_features, to_numpy
from tkmeans.stats import HORIZON, LARGEST_SINGLE, Array, Block, Fit, Frame, Kernel, Params, Rows, Stats, namespace

# Squared distances beyond this are as good as infinite; times the largest weight they stay finite.
FARTHEST_SQUARE, LEAST_DRAWN = 1e250, 1e-30  # the latter of u: rows are drawn up to 1e15 deviations away

# With more degrees of freedom `fdtrc` of SciPy 1.14 loses digits; `betaincc` does not, but takes ten times as long.
NEARLY_GAUSSIAN = 1e6
# Tail probabilities of so many rows, of one dof and all features, come from a table, but for those below the least.
MANY_ROWS, TAIL_CUBICS, LEAST_TAIL = 4096, 2048, 1e-60
# With more still no digit of a tail probability changes, but SciPy's functions fail.
AS_GOOD_AS_GAUSSIAN = 1e20

# With fewer complete rows, those with missing values are looked at too when outliers are sought.
ENOUGH_COMPLETE_ROWS = 100

_BODY, _TAIL = 500, 200  # points of a sketch: quantiles of all rows, and the farthest rows themselves
# A tally distinguishes 128 steps per octave, the leading bits of a float64, over 200 octaves around 1.
_BITS_DROPPED, _FIRST_STEP, _STEPS = 45, (1023 - 100) * 128, 200 * 128


class Left(NamedTuple):
    """What a fit leaves, in the user's coordinates."""

    params: Any
    sizes: Array | None  # by which to number the clusters before their rows are looked at; None for as they are
    log_volume: float = 0.0  # of the frame's unit of volume, per row


# ---- round clusters --------------------------------------------------------------------


@final
class Clusters(NamedTuple):
    """Round clusters of one width, in the user's coordinates."""

    centers: Array  # (K, p) mu, in the type of the rows
    scale: float  # alpha
    dof: float  # nu
    weights: Array  # (K,) pi

    @classmethod
    def leaving(cls, fit: Fit, frame: Frame, dtype: Any, model: Any = None) -> Left:  # noqa: ARG003
        """What a fit leaves, out of the frame it was made in."""
        params, stats = fit.params, fit.stats
        centers = frame.leave(params.centers).astype(dtype)
        clusters = cls(centers, params.scale * frame.unit**2, params.dof, np.exp(params.log_weights))
        return Left(clusters, np.round(stats.n), np.log(frame.unit) * stats.cells / np.sum(stats.n))

    @classmethod
    def from_attributes(cls, fitted: dict[str, Any], model: Any) -> "Clusters":  # noqa: ARG003
        """The clusters that fitted attributes tell of."""
        return cls(fitted["cluster_centers_"], fitted["scale_"], fitted["dof_"], fitted["cluster_weights_"])

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes, by name."""
        return dict(zip(("cluster_centers_", "scale_", "dof_", "cluster_weights_"), self, strict=True))

    def take(self, order: Array) -> "Clusters":
        """The same with the clusters in another order."""
        return self._replace(centers=self.centers[order], weights=self.weights[order])

    def frame(self, dtype: Any) -> Frame:
        """The unit is the root of the scale."""
        return Frame(nearest_to_zero(self.centers).astype(dtype), float(np.sqrt(self.scale)))

    def posterior(self, model: Any, frame: Frame) -> "RoundPosterior":
        """Ready to look at rows, by the engine of the model."""
        centers = self.centers.astype(np.float64)
        params = Params(frame.enter(centers), 1.0, self.dof, np.log(self.weights))
        along = np.cos(np.arange(1.0, centers.shape[1] + 1))
        order = by_size(centers, -np.sum(centers / centers.shape[1] * along, axis=1))
        compared = params._replace(centers=params.centers[order], log_weights=params.log_weights[order])
        return RoundPosterior(model, params, model.kernel(params), frame.unit, self, order, compared)

    def fits_single(self, least: float, most: float) -> bool:
        """Whether single precision can hold the parameters, with a spread between these bounds."""
        return least < np.sqrt(self.scale) * 1e5 < most * 1e5 and np.max(np.abs(self.centers)) < LARGEST_SINGLE

    def draw(self, n_rows: int, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Rows of the model, and the cluster of each (eqn:XU)."""
        n_clusters, p = self.centers.shape
        labels = rng.choice(n_clusters, n_rows, p=self.weights / self.weights.sum())
        noise = rng.standard_normal((n_rows, p)) * np.sqrt(self.scale)
        u = rng.chisquare(self.dof, n_rows) / self.dof
        rows = self.centers[labels] + noise / np.sqrt(np.maximum(u, LEAST_DRAWN))[:, None]
        return rows.astype(self.centers.dtype), labels


@final
class RoundPosterior(NamedTuple):
    """The E-step of round clusters."""

    model: Any
    params: Params  # in the frame, whose unit is the root of the scale
    kernel: Kernel
    unit: float
    clusters: Clusters
    order: Array  # (K,) in which clusters are compared: of equally near ones the first, however they are numbered
    compared: Params  # in that order

    def rows(self, block: Block, *, brief: bool = False) -> Rows:
        """The engine's answers for each row; if they are `brief`, the label and the distance alone."""
        short = brief and self.params.dof < 1e9  # beyond, only logarithms tell 1 + d2/nu apart
        found: Rows = self.model.engine.rows(block, self.compared, self.kernel, brief=short)
        xp, labels = namespace(found.label), found.label
        return found._replace(label=xp.take(xp.asarray(self.order, device=labels.device), labels))

    def memberships(self, block: Block) -> Array:
        """The probability of every cluster for each row, (n, K)."""
        return self.model.engine.memberships(block, self.params, self.kernel)

    def distances(self, block: Block) -> Array:
        """The Euclidean distance to every centre, (n, K)."""
        distances = self.model.engine.distances(block, self.params)
        xp = namespace(distances)
        with np.errstate(over="ignore"):
            distances *= self.unit  # a Python number: the type of the rows stays
        most = float(xp.finfo(distances.dtype).max)
        horizon = HORIZON["float32" if distances.dtype == xp.float32 else "float64"] * self.unit
        far = xp.max(distances, axis=1) > 0.5 * min(horizon, most)
        if bool(xp.any(far)):  # too far for the frame
            exact = far_distances(to_numpy(block.X[far]), self.clusters.centers.astype(np.float64))
            distances[far] = xp.asarray(np.minimum(exact, most), dtype=distances.dtype, device=distances.device)
        return distances

    def evidence(self, source: Source) -> "Evidence":
        """How well all rows of a source fit."""
        stats: Stats = source.reduce(self.model.e_step(self.params))
        objective = float(stats.objective - stats.cells * np.log(self.unit))
        n_parameters = n_round_parameters(self.params.centers.shape, self.model.estimate_dof, self.clusters.weights)
        return Evidence(objective, stats.entropy, stats.total, n_parameters)


def n_round_parameters(shape: tuple[int, ...], estimate_dof: bool, weights: Array) -> int:
    """Centres of this shape, the scale, nu if it was estimated, and weights if they differ."""
    n_clusters, p = shape
    return n_clusters * p + 1 + estimate_dof + (n_clusters - 1 if np.ptp(weights) > 1e-12 else 0)


def far_distances(X: Array, centers: Array) -> Array:
    """Euclidean distances over the observed features of rows whose squares no float64 can hold."""
    away = np.nan_to_num(np.abs(X[:, None, :] / 2 - centers / 2))  # (n, K, p), halved: a difference may be too large
    largest = np.max(away, axis=2)
    with np.errstate(over="ignore"):
        return 2 * largest * np.sqrt(np.sum((away / np.where(largest > 0, largest, 1)[:, :, None]) ** 2, axis=2))


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model, which has an engine unless it is to be stored, its parameters, and the frame that rows are read in."""

    model: Any
    params: Any  # of the model's family
    frame: Frame

    @cached_property
    def posterior(self) -> Any:
        """The family's own part of every answer."""
        return self.params.posterior(self.model, self.frame)

    def ask(self, question: str, block: Block) -> Answer:
        """Answer for each row of a block: "label", "trust", "log_density", "pvalue"; or for each row and cluster."""
        if question == "entropy":
            tau: Array = self.posterior.memberships(block)
            xp = namespace(tau)
            return Answer((-xp.sum(tau * xp.log(xp.where(tau > 0, tau, xp.ones_like(tau))), axis=1),))
        if question in ("memberships", "distances"):
            return Answer((getattr(self.posterior, question)(block),))
        return Answer(self.fields(block, question))

    def fields(self, block: Block, *names: str, n_observed: Any = None) -> tuple[Array, ...]:
        """Some answers for each row, in the user's units, from one look at the rows."""
        brief = {"brief": True} if "order" in self.posterior._fields and not {"log_density", "trust"} & {*names} else {}
        rows: Rows = self.posterior.rows(block, **brief)
        if n_observed is None and names not in (("label",), ("trust",)):
            n_observed = observed_features(block.X)
        fields = []
        for name in names:
            if name == "d2":  # squares that no sum could hold are held at what one can
                xp, square = namespace(rows.d2), self.posterior.unit**2
                fields.append(xp.clip(xp.astype(rows.d2, xp.float64), 0.0, FARTHEST_SQUARE / square) * square)
            elif name == "n_observed":
                fields.append(np.full(block.X.shape[0], to_numpy(n_observed)))
            elif name == "log_density":
                if not isinstance(n_observed, int):
                    n_observed = namespace(n_observed).astype(n_observed, rows.log_density.dtype)
                fields.append(rows.log_density - n_observed * float(np.log(self.frame.unit)))
            elif name == "pvalue":  # the special function is SciPy's, wherever the rows are
                pvalue = self.pvalues(*map(to_numpy, (rows.d2, n_observed, rows.label)))
                fields.append(namespace(rows.d2).asarray(pvalue, device=rows.d2.device))
            else:
                fields.append(rows.d2 if name == "z" else getattr(rows, name))
        return tuple(fields)

    def pvalues(self, z: Array, n_observed: Any, label: Any = 0) -> Array:
        """The probabilities of larger squared distances, over the squared scale, than these."""
        p = np.where(np.greater(n_observed, 0), n_observed, np.nan)  # none, no answer
        dof = np.minimum(self.params.dof, AS_GOOD_AS_GAUSSIAN)
        dof = dof[label] if np.ndim(dof) and np.ptp(dof) else np.max(dof)  # each component may have its own
        return tail_of_f(p, dof, z.astype(np.float64))

    # -- the training rows

    def training(self, source: Source, names: tuple[str, ...], sizes: Any, by_rows: bool, tallied: bool) -> "Training":
        """Number the clusters by size, at last by their rows if asked to, and label every row just as `predict` would.

        Most often the `sizes` of a fit are right, and one look is enough. Distances are `tallied` to find outliers.
        """
        params, made_in, order = self.params, source.frame, np.arange(len(self.params.centers))
        if sizes is not None:
            order = by_size(params.centers, sizes)
            params = params.take(order)
        source.frame = self.frame  # whatever the order of the clusters
        columns = [Column(name, source.label_dtype if name == "label" else np.float64) for name in names]
        try:
            for last in (False, False, True):
                fitted = replace(self, params=params)
                rows: Any = None  # not two sets of them, if there are many
                if source.lazy or source.bounds is not None:
                    rows, bounds = [], source.bounds
                    for name, column in zip(names, columns, strict=True):
                        source.bounds = bounds if name == "label" else None  # all else is asked of whole rows
                        rows.append(source.collect(partial(fitted.ask, name), [column])[0][0])
                    source.bounds = None
                    review = source.reduce(partial(fitted.reviewed, tallied))
                    if bounds is not None:
                        source.bounds = bounds
                        forgiving = source.reduce(partial(fitted.reviewed, False))
                        review = review._replace(sizes=forgiving.sizes, inertia=forgiving.inertia)
                else:
                    rows, review = source.collect(partial(fitted.review, names, tallied), columns)
                changed = by_size(params.centers, review.sizes)
                if last or not by_rows or np.array_equal(changed, np.arange(len(changed))):
                    break  # rows between two clusters may change sides for ever
                params, order = params.take(changed), order[changed]
                if "order" in fitted.posterior._fields and not source.lazy:  # labels do not depend on the numbering
                    review = review._replace(sizes=review.sizes[changed])
                    xp, new = namespace(rows[0]), np.argsort(changed)
                    rows[0] = xp.take(xp.asarray(new, dtype=rows[0].dtype, device=rows[0].device), rows[0])
                    break
        finally:
            source.frame = made_in
        return Training(params, order, review, dict(zip(names, rows, strict=True)))

    def review(self, names: tuple[str, ...], tallied: bool, block: Block) -> Answer:
        """Fields of the training rows, and what a fit keeps of them as a whole."""
        n_features, observed = block.X.shape[1], observed_features(block.X)
        label, d2, *rows = self.fields(block, "label", "d2", *names, n_observed=observed)
        label, d2, weight, n_observed = map(to_numpy, (label, d2, block.weight, observed))
        mass = np.ones(len(d2)) if weight is None else weight
        sizes = np.bincount(label, mass * (n_observed > 0), len(self.params.centers))  # nothing is known of some rows
        inertia = float(np.sum(d2) if weight is None else d2 @ weight)
        if not tallied:
            return Answer(tuple(rows), Review(sizes, inertia))
        z = d2 / self.posterior.unit**2
        complete = slice(None) if isinstance(n_observed, int) else n_observed == n_features
        whole = mass[complete]
        n_complete = float(max(np.count_nonzero(whole), np.sum(whole)))  # weights that sum to 1 do not make rows few
        found = Review(sizes, inertia, tally(z[complete], None if weight is None else whole), n_complete)
        if not isinstance(n_observed, int):
            partly = (n_observed > 0) & (n_observed < n_features)
            found = found._replace(incomplete=tally(z[partly] * (n_features / n_observed[partly]), mass[partly]))
        return Answer(tuple(rows), found)

    def reviewed(self, tallied: bool, block: Block) -> "Review":
        """The review alone."""
        return self.review((), tallied, block).summary


def by_size(centers: Array, sizes: Array) -> Array:
    """The order of clusters from the largest to the smallest, ties by coordinates."""
    ties = len({*sizes.tolist()}) < len(sizes)
    return np.lexsort([*centers.T[::-1], -sizes]) if ties else np.argsort(-sizes)  # a key takes 3 kB


def tail_of_f(p: Any, dof: Any, d2: Array) -> Array:
    """The probability of a larger squared distance, over the squared scale, than these: P(F(p, nu) > d2/p)."""
    if np.max(dof, initial=0.0) >= NEARLY_GAUSSIAN:
        ratio = d2 / dof
        return betaincc(p / 2, dof / 2, ratio / (1 + ratio))
    if np.ndim(p) == 0 and p in (2, 4, 6) and np.ndim(dof) == 0:  # a finite sum
        ratio = d2 / dof
        tail, rest = np.exp(-dof / 2 * np.log1p(ratio)), 1 - 1 / (1 + ratio)
        more = 0.0 if p == 2 else dof / 2 * rest * (1 if p == 4 else 1 + (dof / 2 + 1) / 2 * rest)
        return np.minimum(tail * (1 + more), 1.0)  # whatever rounding does
    if len(d2) < MANY_ROWS or np.ndim(dof):
        return fdtrc(p, dof, d2 / p)
    if np.ndim(p):  # most rows are complete
        complete, most = p == np.nanmax(p), np.nanmax(p)
        tail = fdtrc(p, dof, d2 / p, where=~complete, out=np.empty(len(d2)))
        tail[complete] = tail_of_f(most, dof, d2[complete])
        return tail
    cubics, per_unit = _tail_cubics(float(p), float(dof))
    at = np.sqrt(np.log1p(d2 / dof)) * per_unit
    beyond = np.flatnonzero(~(at < len(cubics)))
    at[beyond] = 0.0
    knot = at.astype(np.int64)
    at -= knot
    c = cubics[knot]
    tail = np.exp(((c[:, 3] * at + c[:, 2]) * at + c[:, 1]) * at + c[:, 0])
    tail[beyond] = fdtrc(p, dof, d2[beyond] / p)
    return tail


@lru_cache(maxsize=8)
def _tail_cubics(p: float, dof: float) -> tuple[Array, float]:
    """Hermite cubics for the logarithm of a tail probability over t = sqrt(ln(1 + d2/nu)), and how many per unit of t.

    In t it is smooth where d2 = 0, for every p; a probability is wrong by less than 1e-8 of itself.
    """
    a, b = dof / 2, p / 2
    last = math.sqrt(-math.log(betaincinv(a, b, LEAST_TAIL)))
    t = np.linspace(0.0, last, TAIL_CUBICS + 1)
    t[0] = 1e-100  # in place of 0, where the slope is a limit
    tail, step = fdtrc(p, dof, dof / p * np.expm1(t * t)), last / TAIL_CUBICS
    slope = -2 * step * t * np.exp((b - 1) * np.log(-np.expm1(-t * t)) - a * t * t - betaln(a, b)) / tail
    first, rise = np.log(tail[:-1]), np.diff(np.log(tail))
    cubics = np.stack([first, slope[:-1], 3 * rise - 2 * slope[:-1] - slope[1:], slope[:-1] + slope[1:] - 2 * rise])
    return np.ascontiguousarray(cubics.T), 1 / step


# ---- the training rows as a whole --------------------------------------------------------


class Evidence(NamedTuple):
    """How well rows fit, in the user's units."""

    objective: float  # the log-likelihood
    entropy: float  # of the memberships
    total: float  # weight of the rows
    n_parameters: int

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return -2 * self.objective + 2 * self.n_parameters

    @property
    def icl(self) -> float:
        """The integrated classification likelihood: BIC and twice the entropy."""
        return float(-2 * self.objective + self.n_parameters * np.log(self.total) + 2 * self.entropy)

    @property
    def bic(self) -> float:
        """The Bayesian information criterion."""
        return self.icl - 2 * self.entropy


class Review(NamedTuple):
    """What a fit keeps of the training rows as a whole."""

    sizes: Array  # (K,) summed weights
    inertia: float
    complete: "Tally | None" = None  # squared distances over the squared scale, of rows with all features, if wanted
    n_complete: float = 0  # rows with all features, by weight if that is more
    incomplete: "Tally | None" = None  # of the others, in proportion to the features that were observed

    def merge(self, other: "Review") -> "Review":
        """The review of both sets of rows."""
        tallies = (self.complete, other.complete), (self.incomplete, other.incomplete)
        complete, incomplete = (mine.merge(theirs) if mine and theirs else mine or theirs for mine, theirs in tallies)
        n_complete = self.n_complete + other.n_complete
        return Review(self.sizes + other.sizes, self.inertia + other.inertia, complete, n_complete, incomplete)

    def comparable(self, source: Source) -> "Sketch":
        """The distances that decide who is an outlier: of complete rows if there are enough, else of all."""
        assert self.complete is not None
        others = None if self.n_complete >= ENOUGH_COMPLETE_ROWS else self.incomplete
        found = (self.complete if others is None else self.complete.merge(others)).sketch()
        one = min(1.0, source.total / max(source.n_counted, 1))  # weights that sum to 1 do not make rows few
        return found._replace(mass=found.mass / one)


class Training(NamedTuple):
    """The parameters of a fit with clusters numbered by size, and their answers for the training rows."""

    params: Any
    order: Array  # (K,) the numbers that the clusters had before
    review: Review
    rows: dict[str, Any]  # what is kept of each row, by field


class Sketch(NamedTuple):
    """The distribution of squared distances, in a few hundred points."""

    d2: Array  # ascending
    mass: Array  # the rows each point stands for

    @property
    def median(self) -> float:
        """The squared distance that half of the rows exceed."""
        up_to = np.cumsum(self.mass)
        return float(self.d2[np.searchsorted(up_to, up_to[-1] / 2)])


class Tally(NamedTuple):
    """How often which squared distance occurs; the tallies of blocks add up."""

    first: int  # the step that the sums begin at
    sums: Array  # (2, steps) mass, and mass times distance, for the mean of each step
    farthest: Array  # at most _TAIL distances, ascending
    farthest_mass: Array

    def merge(self, other: "Tally") -> "Tally":
        """The tally of both sets of rows."""
        far = np.concatenate([self.farthest, other.farthest])
        far_mass = np.concatenate([self.farthest_mass, other.farthest_mass])
        kept = np.argsort(far, kind="stable")[-_TAIL:]
        first = min(self.first, other.first)
        sums = np.zeros((2, max(each.first + each.sums.shape[1] for each in (self, other)) - first))
        for each in (self, other):
            sums[:, each.first - first :][:, : each.sums.shape[1]] += each.sums
        return Tally(first, sums, far[kept], far_mass[kept])

    def sketch(self) -> Sketch:
        """The farthest rows one by one, the others in steps of about equal mass."""
        tail_steps, n_steps = _steps(self.farthest) - self.first, self.sums.shape[1]
        mass = self.sums[0] - np.bincount(tail_steps, self.farthest_mass, n_steps)
        moment = self.sums[1] - np.bincount(tail_steps, self.farthest_mass * self.farthest, n_steps)
        body = mass > 1e-12 * np.sum(self.sums[0])  # rounding may leave tiny weights
        mass, moment = mass[body], moment[body]
        up_to = np.cumsum(mass)
        starts = np.flatnonzero(np.diff(np.floor((up_to - mass / 2) / up_to[-1:] * _BODY), prepend=-1))
        if len(starts):
            mass, moment = np.add.reduceat(mass, starts), np.add.reduceat(moment, starts)
        d2 = np.concatenate([np.maximum(moment, 0) / mass, self.farthest])
        return Sketch(np.maximum.accumulate(d2), np.concatenate([mass, self.farthest_mass]))


def tally(d2: Array, weight: Array | None = None) -> Tally:
    """Tally squared distances, best in a unit near their own."""
    d2 = np.ascontiguousarray(d2, dtype=np.float64)
    mass = None if weight is None else np.asarray(weight, dtype=np.float64)
    steps = _steps(d2)
    counted = np.arange(len(d2)) if mass is None else np.flatnonzero(mass)
    if len(counted) > _TAIL:
        counted = counted[np.argpartition(d2[counted], -_TAIL)[-_TAIL:]]
    far = counted[np.argsort(d2[counted], kind="stable")]
    first = int(np.min(steps, initial=_STEPS))
    steps -= first
    sums = np.array([np.bincount(steps, mass), np.bincount(steps, d2 if mass is None else d2 * mass)], np.float64)
    return Tally(first, sums, d2[far], np.ones(len(far)) if mass is None else mass[far])


def _steps(d2: Array) -> Array:
    return np.clip((d2.view(np.int64) >> _BITS_DROPPED) - _FIRST_STEP, 0, _STEPS - 1)
