"""k-medians and k-medoids: each row belongs to its nearest centre.

Sums give no medians: the statistics are the rows and their labels, and merging joins them (docs/decisions/0010).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple, final

import numpy as np
from scipy.spatial import distance
from sklearn.base import BaseEstimator, ClusterMixin

from tkmeans.docstrings import documented
from tkmeans.em import SmallGain, em
from tkmeans.estimators import validation
from tkmeans.estimators.clusterer import NO_DENSITY, Clusterer
from tkmeans.estimators.inputs import Accepts, measure
from tkmeans.fitted import Left, Training
from tkmeans.fitting.restarts import Plan, Run
from tkmeans.fitting.starts import n_starts
from tkmeans.search import seeding
from tkmeans.sources import ArraySource, Sample, Source
from tkmeans.sources.base import canonical, quantile
from tkmeans.sources.number_checks import checked_centers
from tkmeans.stats import Array, Block, Frame, Outcome, Rows

LARGEST = 1e150  # whose square is a number
SEEDINGS: dict[str, seeding.Seeding] = {"k-means++": seeding.kmeans_plusplus, "random": seeding.random_rows}

CHECKS = {name: validation.SHARED[name] for name in ("n_clusters", "max_iter", "n_init")}
CHECKS |= {"init": partial(validation.check_init, choices=SEEDINGS, hint=" or an array of centres")}

# A hard assignment has neither probabilities nor a density.
_NO_PROBABILITIES = {"predict_proba", "robust_weights", "assignment_entropy"}
LACKS = frozenset(_NO_PROBABILITIES | NO_DENSITY | {"lower_bound_", "lower_bounds_", "converged_"})


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

    def merge(self, other: "Labelled") -> "Labelled":
        """All rows, in their order."""
        rows = (np.concatenate(pair) for pair in zip(self[:3], other[:3], strict=True))
        return Labelled._make([*rows, self.objective + other.objective])


@dataclass
class HardModel:
    """Each row belongs to its nearest centre."""

    metric: str
    center: Callable[[Array, Array], Array] = field(compare=False)  # the best one for rows and their weights
    climbs: bool = True

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
    """The centres of a fit, in the user's coordinates, and the distances from them: there is nothing else to ask."""

    centers: Array  # (K, p)
    metric: str
    unit: float = 1.0  # that of the rows

    @classmethod
    def leaving(cls, fit: Any, frame: Frame, dtype: Any, model: HardModel) -> Left:  # noqa: ARG003
        """The centres, in the user's coordinates already; nothing is known of sizes before rows are looked at."""
        return Left(cls(fit.params.centers, model.metric), None)

    @classmethod
    def from_attributes(cls, fitted: dict[str, Any], model: HardModel) -> "HardCenters":
        """The centres that these fitted attributes tell of."""
        return cls(fitted["cluster_centers_"], model.metric)

    def take(self, order: Array) -> "HardCenters":
        """The same with the clusters in another order."""
        return self._replace(centers=self.centers[order])

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes, by name."""
        return {"cluster_centers_": self.centers}

    def frame(self, dtype: Any) -> Frame:
        """Coordinates as they are."""
        return Frame(np.zeros(self.centers.shape[1]), 1.0)

    def posterior(self, model: HardModel, frame: Frame) -> "HardCenters":
        """Ready to look at rows."""
        return self

    def rows(self, block: Block) -> Rows:
        """The nearest centre and the distance to it; there is no density."""
        distances = self.distances(block)
        return Rows(distances.argmin(axis=1), distances.min(axis=1), None, None)

    def distances(self, block: Block) -> Array:
        """In the metric of the method, (n, K)."""
        return np.minimum(distances_between(block.X, self.centers, self.metric), np.finfo(np.float64).max)


def check_rows(estimator: Any, X: Array) -> None:
    """Complain of rows whose distances are not numbers."""
    _check_squares(X, "X")
    if getattr(estimator, "metric", None) == "cosine" and not np.all(np.any(X, axis=1)):
        row = int(np.argmin(np.any(X, axis=1)))
        raise ValueError(f'X holds nothing but zeros in row {row}, which has no direction for metric="cosine"')


CHOICES = {"metric": ("euclidean", "cityblock", "sqeuclidean", "cosine"), "method": ("swap", "alternate")}
ACCEPTS = Accepts(missing=False, sparse=False, single=False, elsewhere=False, check=check_rows)


def _check_squares(points: Array, name: str) -> None:
    if (largest := float(np.max(np.abs(points)))) > LARGEST:
        raise ValueError(f"{name} holds values as large as {largest:.3g}, whose squares no float64 can; rescale it")


def hard_plan(estimator: Any, source: Source, run_from: Callable[..., Run], more: Any = lambda *_: {}) -> Plan:
    """From every start a run over the rows, sorted and with equal ones joined: a row of weight 2 is that row twice."""
    assert isinstance(source, ArraySource)
    measure(source)
    source.frame = Frame(np.zeros(source.n_features), 1.0)  # coordinates as they are
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

    def extras(training: Training, fit: Any, *_: Any) -> dict[str, Any]:
        return {"inertia_": -fit.stats.objective} | more(source.X, training.params.centers)

    return Plan(runs, lambda fit: fit.stats.objective, extras=extras)


def alternating(estimator: Any, sample: Sample, centers: Array) -> Run:
    """Label rows and move centres in turn, until nothing gets better."""
    source = ArraySource(sample.X, sample.weight, Frame(np.zeros(sample.X.shape[1]), 1.0))
    how = {"stop": SmallGain(0.0), "max_iter": estimator.max_iter}
    return partial(em, source, estimator._model(None), Centers(centers), **how)


def weighted_medians(x: Array, weight: Array) -> Array:
    """The median of each column, a row of weight 2 counting as two rows; midway where two values do."""
    return quantile(x, weight) / 2 - quantile(-x, weight) / 2  # the lower one, and the upper one


@final
@documented("n_clusters", "init", "n_init", "inertia_", "n_features_in_")
class KMedians(Clusterer, ClusterMixin, BaseEstimator):
    """k-medians: k-means with city-block distances and medians.

    A classical robust variant, here to compare with. Medians resist outliers within a cluster, but nothing keeps a far
    outlier from becoming a cluster of its own. The centres of :class:`KMedoids` are rows.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The medians. Clusters are numbered by size, the largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans.baselines import KMedians
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [8, 8], [8, 9]])
    >>> KMedians(n_clusters=2, random_state=0).fit(X).cluster_centers_
    array([[0. , 0. ],
           [8. , 8.5]])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self._keep(locals())

    _checks, _accepts, _lacks, _family = CHECKS, ACCEPTS, LACKS, HardCenters

    def _model(self, engine: Any) -> HardModel:
        return HardModel("cityblock", weighted_medians)

    def _plan(self, source: Source) -> Plan:
        return hard_plan(self, source, partial(alternating, self))


def medoid(metric: str, x: Array, weight: Array) -> Array:
    """The row with the least sum of distances to all."""
    return x[np.argmin(distances_between(x, x, metric) @ weight)]


@final
@documented("medoids_*", "n_clusters", "init", "n_init", "inertia_", "n_features_in_")
class KMedoids(Clusterer, ClusterMixin, BaseEstimator):
    """k-medoids: every centre is one of the rows; those of :class:`KMedians` are medians.

    Attributes
    ----------
    cluster_centers_, medoid_indices_ : ndarrays of shape (n_clusters, n_features) and (n_clusters,)
        The medoids, and their row numbers in X. Clusters are numbered by size, the largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans.baselines import KMedoids
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [8, 8], [8, 9], [9, 8]])
    >>> KMedoids(n_clusters=2, random_state=0).fit(X).medoid_indices_
    array([0, 3])
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        metric: str = "euclidean",
        method: str = "swap",
        init: Any = "k-means++",
        n_init: int | str = "auto",
        max_iter: int = 300,
        random_state: Any = None,
    ) -> None:
        self._keep(locals())

    _checks = CHECKS | {name: partial(validation.check_choice, choices=known) for name, known in CHOICES.items()}
    _accepts, _lacks, _family = ACCEPTS, LACKS, HardCenters

    def _model(self, engine: Any) -> HardModel:
        return HardModel(self.metric, partial(medoid, self.metric))

    def _plan(self, source: Source) -> Plan:
        number = partial(distances_between, metric="sqeuclidean")
        return hard_plan(self, source, self._run_from, lambda X, at: {"medoid_indices_": number(X, at).argmin(axis=0)})

    def _run_from(self, sample: Sample, centers: Array) -> Run:
        medoids = distances_between(centers, sample.X, "sqeuclidean").argmin(axis=1)
        if self.method == "alternate":
            return alternating(self, sample, sample.X[medoids])
        return partial(swapped, sample, distances_between(sample.X, sample.X, self.metric), medoids, self.max_iter)


def swapped(sample: Sample, distances: Array, medoids: Array, max_iter: int, **_: Any) -> Outcome[Any, Any]:
    """Exchange a medoid for a row as soon as that lowers the cost; until a whole sweep finds nothing.

    What every row would gain as a new medoid, and what each medoid's removal would cost then, come from the distances
    to the nearest and second nearest medoid (FasterPAM). Sweeps are not observed.
    """
    weight, medoids, n_rows = sample.weight, medoids.copy(), len(distances)
    label, first, second = _two_nearest(distances, medoids)
    unchanged = 0  # rows tried since the last exchange
    for step in range(int(max_iter) * n_rows):
        sweep, row = divmod(step, n_rows)
        to_row = distances[:, row]
        closer = to_row < first
        gain = weight @ np.where(closer, to_row - first, 0.0)
        # Rows whose medoid goes away: to the new one if that is nearest now, else to the second.
        leaves = np.where(closer, 0.0, np.minimum(to_row, second) - first)
        change = gain + np.bincount(label, weights=weight * leaves, minlength=len(medoids))
        worst = int(np.argmin(change))
        unchanged += 1
        if change[worst] < -1e-12 * (weight @ first):
            medoids[worst], unchanged = row, 0
            label, first, second = _two_nearest(distances, medoids)
        elif unchanged >= n_rows:
            break
    cost = float(weight @ distances[:, medoids].min(axis=1))
    stats, path = SimpleNamespace(objective=-cost), [-cost] * (sweep + 2)
    return Outcome(Centers(sample.X[medoids]), stats, path, sweep + 1, converged=unchanged >= n_rows)


def _two_nearest(distances: Array, medoids: Array) -> tuple[Array, Array, Array]:
    """The nearest medoid of each row, the distance to it, and that to the next."""
    to_medoids = np.column_stack([distances[:, medoids], np.full(len(distances), np.inf)])  # (n, K + 1)
    first, second = np.partition(to_medoids, 1, axis=1)[:, :2].T
    return to_medoids.argmin(axis=1), first, second
