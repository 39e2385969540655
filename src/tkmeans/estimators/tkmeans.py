"""TKMeans: the paper's t-k-means, for people who use KMeans."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, final

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from tkmeans.docstrings import documented
from tkmeans.em import SmallGain, em
from tkmeans.estimators import validation
from tkmeans.estimators.clusterer import Clusterer, Floats
from tkmeans.estimators.inputs import measure
from tkmeans.fit_warnings import warn_user
from tkmeans.fitted import Evidence, Sketch, Training, n_round_parameters
from tkmeans.fitting.restarts import Plan, Run, Runs
from tkmeans.fitting.starts import SCALE_FLOOR, Start, n_starts, starts
from tkmeans.models import Student
from tkmeans.models.dof import least_dof
from tkmeans.sources import Source
from tkmeans.stats import Fit, Params

# The median row of a t distribution is about one scale per feature from its centre; a million is no such fit.
COLLAPSED = 1e6
SAME_CENTER = 1e-6  # of the root of the scale: no row tells two centres so close apart


@final
@documented("cell_bounds_", "agreement_", "n_iter_", "n_features_in_")
@documented("bad_cells", "min_cluster_size", "engine", "max_time", "verbose", "cluster_centers_", "labels_", "dof_")
@documented("round_*")
class TKMeans(Clusterer, ClusterMixin, BaseEstimator):
    """Robust k-means: a mixture of Student t distributions that share one round shape.

    Use it like :class:`sklearn.cluster.KMeans`. Far rows count little in the centres (they keep a label, and a small
    p-value identifies them), so that a few per cent of outliers do not move the clusters. The method is that of Y. Li,
    Y. Zhang, Q. Tang, W. Huang, Y. Jiang and S.-T. Xia, "t-k-means: A Robust and Stable k-means Variant".

    See Also
    --------
    FastTKMeans : The fast variant of the authors' code, with no scale to estimate.

    Notes
    -----
    Missing values are NaN, in `fit` and in every method that takes rows. Nothing is filled in: over the features that a
    row has, the model is a t mixture with the same scale and dof, which is exact if values are missing at random. A row
    without any value does not count, has the cluster weights as probabilities, no p-value, and is never an outlier.

    Examples
    --------
    Two groups, and one row that is a typing error:

    >>> import numpy as np
    >>> from tkmeans import TKMeans
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [8, 8], [8, 9], [9, 8], [900, 9]])
    >>> model = TKMeans(n_clusters=2, random_state=0).fit(X)
    >>> model.cluster_centers_.round(1)
    array([[0.5, 0.5],
           [8.2, 8.2]])
    >>> model.labels_
    array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> model.outlier_pvalues_.argmin()
    np.int64(7)
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        dof: float | str = "estimate",
        cluster_weights: str = "auto",
        bad_cells: bool | str = "auto",
        min_cluster_size: int | None = None,
        init: Any = "robust",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        accelerate: bool = True,
        engine: str = "auto",
        n_jobs: int | None = None,
        max_time: float | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        copy_x: bool = True,
        algorithm: str = "lloyd",
    ) -> None:
        self._keep(locals())

    cluster_centers_: Floats
    inertia_: float
    _checks = validation.SHARED | validation.LONG_FITS | validation.STUDENT | validation.KMEANS | validation.SEARCH
    _checks |= {"n_clusters": validation.one_or_auto, "accelerate": validation.check_switch}
    _objective = "log-likelihood"

    def _model(self, engine: Any) -> Student:
        return Student(engine=engine, estimate_dof=self.dof == "estimate")

    def _plan(self, source: Source) -> Plan:
        if self.algorithm == "elkan" and self.n_clusters == 1:
            warn_user("algorithm='elkan' doesn't make sense for a single cluster; it has no effect.", RuntimeWarning)
        return student_plan(self, source, partial(self._runs, source))

    def _runs(self, source: Source, rng: np.random.RandomState) -> Iterator[Run]:
        for start in starts(self, source, None if self.dof == "estimate" else float(self.dof), rng):
            yield from climbs(self, source, start, tol=self.tol, accelerate=self.accelerate)


# ---- the plan of all estimators with t distributions of one round shape --------------------


def student_plan(estimator: Any, source: Source, runs: Runs, *, extras: Any = None, fields: Any = ("pvalue",)) -> Plan:
    """Measure the rows, search for starts, climb from each, and keep the best."""
    measure(source)
    return Plan(runs, student_merit(estimator), fields, distances_kept if extras is None else extras)


def climbs(estimator: Any, source: Source, start: Start, *, tol: float, accelerate: bool) -> Iterator[Run]:
    """From one start EM with equal or estimated cluster weights, or both if that is open."""
    K = int(estimator.n_clusters)  # the logarithm of a narrow integer has few digits
    n_rows = max(source.n_rows, source.total)  # weights that sum to 1 do not make rows few
    open_question = [False, True] if start.weights_differ is None else [start.weights_differ]
    several = len(open_question) > 1 or n_starts(estimator.init, estimator.n_init) > 1
    icl_decides = estimator.cluster_weights == "auto" and several
    for weights in {"equal": [False], "estimate": [True], "auto": open_question}[estimator.cluster_weights]:
        model = student(estimator, source, n_rows, weights, want_entropy=icl_decides)
        dof = max(start.dof, model.least_dof) if estimator.dof == "estimate" else estimator.dof
        params = Params(start.centers, start.scale, float(dof), np.full(K, -np.log(K)))
        # Among many columns every step is a large one, and memberships are as good as hard.
        stop = SmallGain(tol if source.lift is None else tol * source.n_features)
        options = {"stop": stop, "max_iter": estimator.max_iter, "accelerate": accelerate and source.lift is None}
        yield partial(em, source, model, params, **options)


def student(estimator: Any, source: Source, n_rows: float, estimate_weights: bool, *, want_entropy: bool) -> Student:
    """The model to fit to so many rows like those of the source."""
    least = max(source.least_dof, least_dof(estimator.n_clusters, source.n_features, n_rows))
    floor = max(source.least_scale, SCALE_FLOOR[source.dtype.name])
    model = replace(estimator._model(estimator._engine(source)), least_dof=least, scale_floor=floor)
    return replace(model, estimate_weights=estimate_weights, want_entropy=want_entropy)


def student_merit(estimator: Any) -> Callable[[Fit], float]:
    """The likelihood among like models; ICL where weights may be equal or not."""
    if estimator.cluster_weights != "auto":
        return lambda fit: fit.stats.objective
    estimate_dof = estimator.dof == "estimate"

    def minus_icl(fit: Fit) -> float:
        n_parameters = n_round_parameters(fit.params.centers.shape, estimate_dof, np.exp(fit.params.log_weights))
        return -Evidence(fit.stats.objective, fit.stats.entropy, fit.stats.total, n_parameters).icl

    return minus_icl


def distances_kept(training: Training, fit: Fit, source: Source, found: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """The distances of the training rows, which decide who is an outlier."""
    d2, mass = distances = training.review.comparable(source)  # in units of the scale
    params, sizes = training.params, training.review.sizes
    if distances.median > COLLAPSED * source.n_features:
        why = f"{len(sizes)} centres fit equal rows, or a few rows in {source.n_features} dimensions, ever better"
        remedy = "Labels are usable, p-values are not: use fewer clusters or a larger dof such as 30."
        warn_user(f"The scale collapsed to {params.scale:.3g}: {why}, so the likelihood has no maximum. {remedy}")
    if np.min(sizes) > 0 and len(sizes) > 1:
        part = 0.5 / source.n_features  # so that sums and differences are finite
        along = np.argsort((part * params.centers) @ np.cos(np.arange(1.0, source.n_features + 1)))
        apart = np.max(np.abs(np.diff(part * params.centers[along], axis=0)), axis=1)
        if np.min(apart) < part * SAME_CENTER * params.scale**0.5:
            warn_user("Some centres are at the same place, and their rows are divided by rounding; use fewer clusters.")
    return {"_training_distances": Sketch(d2 * params.scale, mass)}
