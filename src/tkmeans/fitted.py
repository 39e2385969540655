"""A fitted model: everything that can be asked of a fit, once.

Estimators, reports, the command and model files ask it; dask ships it to where the rows are.
Its parameters are in the user's coordinates; rows are read in a frame that fits them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, Self, final

import numpy as np
from scipy.special import betaincc, fdtrc

from tkmeans.search import TINY_CLUSTER
from tkmeans.sources import Answer, Column, Source
from tkmeans.sources.base import nearest_to_zero, observed_features, to_numpy
from tkmeans.stats import HORIZON, LARGEST_SINGLE, Array, Block, Fit, Frame, Kernel, Params, Rows, Stats, namespace

# Squared distances beyond this are as good as infinite; times the largest weight they stay finite.
FARTHEST_SQUARE = 1e250

# With more degrees of freedom `fdtrc` of SciPy 1.14 loses digits; `betaincc` does not, but takes ten times as long.
NEARLY_GAUSSIAN = 1e6
# With more still no digit of a tail probability changes, but SciPy's functions fail.
AS_GOOD_AS_GAUSSIAN = 1e20

# With fewer complete rows, those with missing values are looked at too when outliers are sought.
ENOUGH_COMPLETE_ROWS = 100

_BODY, _TAIL = 500, 200  # points of a sketch: quantiles of all rows, and the farthest rows themselves
# A tally distinguishes 128 steps per octave, the leading bits of a float64, over 200 octaves around 1.
_BITS_DROPPED, _FIRST_STEP, _STEPS = 45, (1023 - 100) * 128, 200 * 128


# ---- what a family of models must answer -----------------------------------------------


class Posterior(Protocol):
    """What a model says of the rows of a block, in the coordinates of a frame."""

    unit: float  # of distances, in the user's

    def rows(self, block: Block) -> Rows:
        """Label, squared distance, log-density and trust of each row."""
        ...

    def log_volume(self, n_observed: Any) -> Any:
        """The logarithm of the volume that the frame takes for 1, over so many features."""
        ...

    def memberships(self, block: Block) -> Array:
        """The probability of every cluster, (n, K)."""
        ...

    def entropy(self, block: Block) -> Array:
        """Of the memberships of each row."""
        ...

    def evidence(self, source: Source, *, entropy: bool) -> Evidence:
        """How well all rows of a source fit; the entropy is 0 if nobody asks for it and it would cost something."""
        ...

    def distances(self, block: Block) -> Array:
        """The distance to every centre, (n, K), in the user's units."""
        ...


class FittedParams(Protocol):
    """Parameters in the user's coordinates; each family of models has a record of them."""

    @property
    def centers(self) -> Array:
        """Of shape (K, p)."""
        ...

    def take(self, order: Array) -> Self:
        """The same with the clusters in another order."""
        ...

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes of scikit-learn's kind, by name."""
        ...

    @classmethod
    def leaving(cls, params: Any, frame: Frame, dtype: Any, model: Any) -> Self:
        """The parameters of a fit, out of the frame it was made in."""
        ...

    @classmethod
    def from_attributes(cls, fitted: dict[str, Any], model: Any) -> Self:
        """The parameters that fitted attributes tell of: the inverse of `attributes`."""
        ...

    @staticmethod
    def summary(review: Review) -> dict[str, Any]:
        """The fitted attributes that are about all training rows."""
        ...

    @staticmethod
    def sizes(fit: Any) -> Array | None:
        """By which to number the clusters of a fit, before its rows are looked at."""
        ...

    @staticmethod
    def path(fit: Any, frame: Frame) -> dict[str, Any]:
        """The fitted attributes that tell how a fit came to its end."""
        ...

    def frame(self, dtype: Any) -> Frame:
        """Coordinates that fit the clusters, and rows of this type."""
        ...

    def posterior(self, model: Any, frame: Frame) -> Posterior:
        """Ready to look at rows."""
        ...


# ---- round clusters --------------------------------------------------------------------


@final
class Clusters(NamedTuple):
    """Round clusters of one width, in the user's coordinates."""

    centers: Array  # (K, p) mu, in the type of the rows
    scale: float  # alpha
    dof: float  # nu
    weights: Array  # (K,) pi

    numbered_by_rows = True
    attribute_names = ("cluster_centers_", "scale_", "dof_", "cluster_weights_")

    @classmethod
    def leaving(cls, params: Params, frame: Frame, dtype: Any, model: Any = None) -> Clusters:  # noqa: ARG003
        """The parameters of a fit, out of the frame it was made in."""
        centers = frame.leave(params.centers).astype(dtype)
        return cls(centers, params.scale * frame.unit**2, params.dof, np.exp(params.log_weights))

    @classmethod
    def from_attributes(cls, fitted: dict[str, Any], model: Any) -> Clusters:  # noqa: ARG003
        """The clusters that these fitted attributes tell of."""
        return cls(*(fitted[name] for name in cls.attribute_names))

    @staticmethod
    def summary(review: Review) -> dict[str, Any]:
        """The weighted sum of squared distances to the nearest centre."""
        return {"inertia_": review.inertia}

    @staticmethod
    def sizes(fit: Fit) -> Array:
        """The summed memberships."""
        return np.round(fit.stats.n)

    @staticmethod
    def path(fit: Fit, frame: Frame) -> dict[str, Any]:
        """The log-likelihood per row, in the user's units."""
        log_unit = np.log(frame.unit) * fit.stats.cells / np.sum(fit.stats.n)
        return path_of(fit, log_unit)

    def take(self, order: Array) -> Clusters:
        """The same with the clusters in another order."""
        return self._replace(centers=self.centers[order], weights=self.weights[order])

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes, by name."""
        return dict(zip(self.attribute_names, self, strict=True))

    def frame(self, dtype: Any) -> Frame:
        """The unit is the root of the scale."""
        return Frame(nearest_to_zero(self.centers).astype(dtype), float(np.sqrt(self.scale)))

    def posterior(self, model: Any, frame: Frame) -> RoundPosterior:
        """Ready to look at rows."""
        centers = self.centers.astype(np.float64)
        params = Params(frame.enter(centers), 1.0, self.dof, np.log(self.weights))
        return RoundPosterior(model, params, model.kernel(params), frame.unit, centers)

    def fits_single(self, least: float, most: float) -> bool:
        """Whether single precision can hold the parameters, with a spread between these bounds."""
        farthest = float(np.max(np.abs(self.centers)))
        return least < np.sqrt(self.scale) * 1e5 < most * 1e5 and farthest < LARGEST_SINGLE

    def draw(self, n_rows: int, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Rows of the model, and the cluster of each (eqn:XU)."""
        n_clusters, p = self.centers.shape
        labels = rng.choice(n_clusters, n_rows, p=self.weights / self.weights.sum())
        noise = rng.standard_normal((n_rows, p)) * np.sqrt(self.scale)
        u = rng.chisquare(self.dof, n_rows) / self.dof
        return (self.centers[labels] + noise / np.sqrt(u)[:, None]).astype(self.centers.dtype), labels


def n_round_parameters(shape: tuple[int, ...], estimate_dof: bool, weights: Array) -> int:
    """How many numbers round clusters with centres of this shape are made of."""
    n_clusters, p = shape
    n_weights = n_clusters - 1 if np.ptp(weights) > 1e-12 else 0
    return n_clusters * p + 1 + estimate_dof + n_weights


def path_of(fit: Any, log_volume: float) -> dict[str, Any]:
    """How a fit came to its end, with a density in which the frame's unit of volume is this one."""
    bounds = [value - log_volume for value in fit.history]
    path = {"lower_bounds_": bounds, "lower_bound_": bounds[-1]}
    return path | {"n_iter_": len(fit.history) - 1, "converged_": fit.converged}


@final
class RoundPosterior(NamedTuple):
    """The E-step of round clusters, by the engine of the model."""

    model: Any
    params: Params  # in the frame, whose unit is the root of the scale
    kernel: Kernel
    unit: float
    centers: Array  # (K, p) in the user's coordinates

    def rows(self, block: Block) -> Rows:
        """Label, squared distance, log-density and trust of each row."""
        rows: Rows = self.model.engine.rows(block, self.params, self.kernel)
        return rows

    def log_volume(self, n_observed: Any) -> Any:
        """Every feature has the same unit."""
        return n_observed * float(np.log(self.unit))

    def memberships(self, block: Block) -> Array:
        """The probability of every cluster, (n, K)."""
        return self.model.engine.memberships(block, self.params, self.kernel)

    def entropy(self, block: Block) -> Array:
        """Of the memberships of each row."""
        tau = self.memberships(block)
        xp = namespace(tau)
        return -xp.sum(tau * xp.log(xp.where(tau > 0, tau, xp.ones_like(tau))), axis=1)

    def evidence(self, source: Source, *, entropy: bool) -> Evidence:
        """How well all rows of a source fit."""
        stats: Stats = source.reduce(self.model.e_step(self.params))
        objective = stats.objective - stats.cells * np.log(self.unit)
        weights = np.exp(self.params.log_weights)
        n_parameters = n_round_parameters(self.centers.shape, self.model.estimate_dof, weights)
        return Evidence(float(objective), stats.entropy, stats.total, n_parameters)

    def distances(self, block: Block) -> Array:
        """The distance to every centre, (n, K)."""
        distances = self.model.engine.distances(block, self.params)
        xp = namespace(distances)
        with np.errstate(over="ignore"):
            distances *= self.unit  # a Python number: the type of the rows stays
        most = float(xp.finfo(distances.dtype).max)
        horizon = HORIZON["float32" if distances.dtype == xp.float32 else "float64"] * self.unit
        far = xp.max(distances, axis=1) > 0.5 * min(horizon, most)
        if bool(xp.any(far)):  # too far for the frame
            exact = far_distances(to_numpy(block.X[far]), self.centers)
            distances[far] = xp.asarray(np.minimum(exact, most), dtype=distances.dtype, device=distances.device)
        return distances


def far_distances(X: Array, centers: Array) -> Array:
    """Euclidean distances over the observed features of rows whose squares no float64 can hold."""
    away = np.nan_to_num(np.abs(X[:, None, :] / 2 - centers / 2))  # (n, K, p), halved: a difference may be too large
    largest = np.max(away, axis=2)
    shape = away / np.where(largest > 0, largest, 1)[:, :, None]
    with np.errstate(over="ignore"):
        return 2 * largest * np.sqrt(np.sum(shape**2, axis=2))


# ---- the record ------------------------------------------------------------------------


@final
@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model, its parameters in the user's coordinates, and the frame that rows are read in.

    At rest its model has no engine, so that it can be stored; `reading` gives it one.
    """

    model: Any
    params: Any  # FittedParams of the model's family
    frame: Frame

    def at_rest(self) -> FittedModel:
        """The same without an engine, to keep."""
        return FittedModel(_with_engine(self.model, None), self.params, self.frame)

    def reading(self, dtype: Any, engine: Any) -> FittedModel:
        """The same, to read rows of this type with an engine."""
        return FittedModel(_with_engine(self.model, engine), self.params, self.params.frame(dtype))

    @cached_property
    def posterior(self) -> Any:
        """The family's own part of every answer."""
        return self.params.posterior(self.model, self.frame)

    # -- a block of rows in, an answer for each row out

    def fields(self, block: Block, *names: str) -> tuple[Array, ...]:
        """Some of what can be said of each row, in the user's units, from one look at the rows."""
        rows = self.posterior.rows(block)
        return tuple(getattr(self, f"_{name}")(block, rows) for name in names)

    def label(self, block: Block) -> Answer:
        """The most probable cluster."""
        return Answer((self.posterior.rows(block).label,))

    def log_density(self, block: Block) -> Answer:
        """The logarithm of the mixture's density."""
        return Answer(self.fields(block, "log_density"))

    def trust(self, block: Block) -> Answer:
        """The sum over clusters of tau u."""
        return Answer((self.posterior.rows(block).trust,))

    def pvalue(self, block: Block) -> Answer:
        """The probability of a larger distance from the own cluster."""
        return Answer(self.fields(block, "pvalue"))

    def memberships(self, block: Block) -> Answer:
        """The probability of every cluster."""
        return Answer((self.posterior.memberships(block),))

    def distances(self, block: Block) -> Answer:
        """The distance to every centre."""
        return Answer((self.posterior.distances(block),))

    def entropy(self, block: Block) -> Answer:
        """How open it is which cluster each row belongs to, in nats."""
        return Answer((self.posterior.entropy(block),))

    def inertia(self, block: Block) -> Inertia:
        """The weighted sum of squared distances to the nearest centres."""
        (d2,) = self.fields(block, "d2")
        return Inertia(_weighted_sum(to_numpy(d2), to_numpy(block.weight)))

    def review(self, names: tuple[str, ...], block: Block) -> Answer:
        """Fields of the training rows, and what a fit keeps of them as a whole."""
        label, d2, *rows = self.fields(block, "label", "d2", *names)
        label, d2, weight = to_numpy(label), to_numpy(d2), to_numpy(block.weight)
        sizes = np.bincount(label, weight, len(self.params.centers))
        inertia = _weighted_sum(d2, weight)
        n_features, n_observed = block.X.shape[1], to_numpy(observed_features(block.X))
        z = d2 / self.posterior.unit**2
        if isinstance(n_observed, int):
            n_complete = len(z) if weight is None else int(np.count_nonzero(weight))
            return Answer(tuple(rows), Review(sizes, inertia, tally(z, weight), n_complete))
        mass = np.ones(len(z)) if weight is None else weight
        complete, partly = n_observed == n_features, (n_observed > 0) & (n_observed < n_features)
        scaled = z[partly] * (n_features / n_observed[partly])
        n_complete = int(np.count_nonzero(mass[complete]))
        found = Review(sizes, inertia, tally(z[complete], mass[complete]), n_complete, tally(scaled, mass[partly]))
        return Answer(tuple(rows), found)

    def reviewed(self, block: Block) -> Review:
        """The review alone."""
        found: Review = self.review((), block).summary
        return found

    def _label(self, block: Block, rows: Rows) -> Array:
        return rows.label

    def _d2(self, block: Block, rows: Rows) -> Array:
        """Squares that no sum could hold are held at what one can."""
        xp = namespace(rows.d2)
        square = self.posterior.unit**2
        return xp.clip(xp.astype(rows.d2, xp.float64), 0.0, FARTHEST_SQUARE / square) * square

    def _n_observed(self, block: Block, rows: Rows) -> Array:
        n_observed = observed_features(block.X)
        return np.full(block.X.shape[0], n_observed) if isinstance(n_observed, int) else to_numpy(n_observed)

    def _log_density(self, block: Block, rows: Rows) -> Array:
        n_observed = observed_features(block.X)
        if not isinstance(n_observed, int):
            n_observed = namespace(n_observed).astype(n_observed, rows.log_density.dtype)
        return rows.log_density - self.posterior.log_volume(n_observed)

    def _pvalue(self, block: Block, rows: Rows) -> Array:
        """The tail of F(p, nu); the special function is SciPy's, wherever the rows are."""
        d2, n_observed = to_numpy(rows.d2).astype(np.float64), to_numpy(observed_features(block.X))
        p = np.where(np.asarray(n_observed) > 0, n_observed, np.nan)  # nothing observed, nothing to say
        pvalue = tail_of_f(p, min(self.params.dof, AS_GOOD_AS_GAUSSIAN), d2)
        if isinstance(rows.d2, np.ndarray):
            return pvalue
        return namespace(rows.d2).asarray(pvalue, device=rows.d2.device)

    # -- all rows of a source

    def training(self, source: Source, names: tuple[str, ...], sizes: Array | None, *, renumber: bool) -> Training:
        """Number the clusters by size, by their rows if asked to, and label every row just as `predict` would.

        Most often the `sizes` that come with a fit are right, and one look at the rows is enough.
        """
        order = np.arange(len(self.params.centers)) if sizes is None else by_size(self.params.centers, sizes)
        fitted, made_in = self.take(order), source.frame
        source.frame = self.frame  # whatever the order of the clusters
        try:
            for last in (False, False, True):
                rows: Any = None  # not two sets of them, if there are many
                rows, found = fitted.visit(source, names)
                changed = by_size(fitted.params.centers, found.sizes)
                if last or not renumber or np.array_equal(changed, np.arange(len(changed))):
                    break  # rows between two clusters may change sides for ever
                fitted, order = fitted.take(changed), order[changed]
        finally:
            source.frame = made_in
        return Training(fitted, order, found, dict(zip(names, rows, strict=True)))

    def evidence(self, source: Source, *, entropy: bool) -> Evidence:
        """How well all rows of a source fit."""
        found: Evidence = self.posterior.evidence(source, entropy=entropy)
        return found

    def visit(self, source: Source, names: tuple[str, ...]) -> tuple[list[Any], Review]:
        """Fields of all rows, and their review."""
        columns = [label_column(source) if name == "label" else Column(name, np.float64) for name in names]
        if not source.lazy:
            return source.collect(partial(self.review, names), columns)
        rows = [source.collect(partial(self._look, name), [c])[0][0] for name, c in zip(names, columns, strict=True)]
        return rows, source.reduce(self.reviewed)

    def _look(self, name: str, block: Block) -> Answer:
        return Answer(self.fields(block, name))

    def take(self, order: Array) -> FittedModel:
        """The same with the clusters in another order."""
        return FittedModel(self.model, self.params.take(order), self.frame)


def _with_engine(model: Any, engine: Any) -> Any:
    return replace(model, engine=engine) if hasattr(model, "engine") else model


def by_size(centers: Array, sizes: Array) -> Array:
    """The order of clusters from the largest to the smallest, ties by coordinates."""
    return np.lexsort([*centers.T[::-1], -sizes])


def label_column(source: Source) -> Column:
    """Labels of many rows take as little room as they can."""
    return Column("cluster", np.int32 if source.lean else np.int64)


def tail_of_f(p: Array, dof: float, d2: Array) -> Array:
    """The probability of a larger squared distance, over the squared scale, than these: P(F(p, nu) > d2/p)."""
    if dof < NEARLY_GAUSSIAN:
        return fdtrc(p, dof, d2 / p)
    ratio = d2 / dof
    return betaincc(p / 2, dof / 2, ratio / (1 + ratio))


# ---- the training rows as a whole --------------------------------------------------------


class Evidence(NamedTuple):
    """How well rows fit, in the user's units."""

    objective: float  # the log-likelihood
    entropy: float  # of the memberships
    total: float  # weight of the rows
    n_parameters: int

    @property
    def per_row(self) -> float:
        """The mean log-likelihood."""
        return self.objective / self.total

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


class Inertia(NamedTuple):
    """A sum of squared distances."""

    value: float

    def merge(self, other: Inertia) -> Inertia:
        """The sum over both sets of rows."""
        return Inertia(self.value + other.value)


class Review(NamedTuple):
    """What a fit keeps of the training rows as a whole."""

    sizes: Array  # (K,) summed weights
    inertia: float
    distances: Tally  # squared, over the squared scale, of rows with all features
    n_complete: int  # rows with all features
    incomplete: Tally | None = None  # of the others, in proportion to the features that were observed

    def merge(self, other: Review) -> Review:
        """The review of both sets of rows."""
        incomplete = [part for part in (self.incomplete, other.incomplete) if part is not None]
        return Review(
            self.sizes + other.sizes,
            self.inertia + other.inertia,
            self.distances.merge(other.distances),
            self.n_complete + other.n_complete,
            incomplete[0].merge(incomplete[1]) if len(incomplete) == 2 else next(iter(incomplete), None),
        )

    def tiny_clusters(self) -> Array:
        """The clusters that hold hardly any rows."""
        return np.flatnonzero((self.sizes > 0) & (self.sizes < TINY_CLUSTER * self.sizes.sum() / len(self.sizes)))

    def comparable(self) -> Sketch:
        """The distances that say who is an outlier: of complete rows if there are enough, else of all."""
        if self.incomplete is None or self.n_complete >= ENOUGH_COMPLETE_ROWS:
            return self.distances.sketch()
        return self.distances.merge(self.incomplete).sketch()


class Training(NamedTuple):
    """A fitted model whose clusters are numbered by size, and what it says of its training rows."""

    fitted: FittedModel
    order: Array  # (K,) the numbers that the clusters had before
    review: Review
    rows: dict[str, Any]  # what is kept of each row, by field


def _weighted_sum(values: Array, weight: Array | None) -> float:
    return float(np.sum(values) if weight is None else values @ weight)


# ---- the distribution of distances ---------------------------------------------------------


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

    mass: Array  # (_STEPS,)
    moment: Array  # (_STEPS,) sum of mass times distance, for the mean of each step
    farthest: Array  # at most _TAIL distances, ascending
    farthest_mass: Array

    def merge(self, other: Tally) -> Tally:
        """The tally of both sets of rows."""
        far = np.concatenate([self.farthest, other.farthest])
        far_mass = np.concatenate([self.farthest_mass, other.farthest_mass])
        kept = np.argsort(far, kind="stable")[-_TAIL:]
        return Tally(self.mass + other.mass, self.moment + other.moment, far[kept], far_mass[kept])

    def sketch(self) -> Sketch:
        """The farthest rows one by one, the others in steps of about equal mass."""
        tail_steps = _steps(self.farthest)
        mass = self.mass - np.bincount(tail_steps, self.farthest_mass, _STEPS)
        moment = self.moment - np.bincount(tail_steps, self.farthest_mass * self.farthest, _STEPS)
        body = np.flatnonzero(mass > 1e-12 * np.sum(self.mass))  # rounding may leave crumbs of weights
        mass, moment = mass[body], moment[body]
        up_to = np.cumsum(mass)
        group = np.floor((up_to - mass / 2) / up_to[-1:] * _BODY)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
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
    return Tally(
        np.bincount(steps, mass, _STEPS).astype(np.float64),
        np.bincount(steps, d2 if mass is None else d2 * mass, _STEPS),
        d2[far],
        np.ones(len(far)) if mass is None else mass[far],
    )


def sketch(d2: Array, weight: Array | None = None) -> Sketch:
    """Summarise squared distances in a few hundred points."""
    return tally(d2, weight).sketch()


def _steps(d2: Array) -> Array:
    return np.clip((d2.view(np.int64) >> _BITS_DROPPED) - _FIRST_STEP, 0, _STEPS - 1)
