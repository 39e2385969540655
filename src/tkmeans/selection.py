"""Select the number of clusters: by ICL or BIC with leave-one-out centres, or by stability."""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import entr, gammaln, logsumexp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.parallel import Parallel, delayed

from tkmeans.cluster_stability import Progress, stability, with_progress
from tkmeans.estimators import TKMeans
from tkmeans.estimators.inputs import checked_sample_weight
from tkmeans.estimators.validation import check_choice, check_integer, check_n_jobs
from tkmeans.fitted import FARTHEST_SQUARE, n_round_parameters
from tkmeans.sources.base import observed_features
from tkmeans.sources.number_checks import as_numbers
from tkmeans.stats import Array

CRITERIA = ("icl", "bic", "stability")

# Rows that are looked at: enough for a criterion that compares fits, whatever the number of rows.
MAX_ROWS, MAX_ROWS_PER_CLUSTER = 20_000, 300

# A number of clusters is stable if the least stable of its clusters is: the mark of prediction strength
# (Tibshirani and Walther 2005), on Hennig's similarity.
STABLE_ENOUGH = 0.8

# A row with a larger share in a centre than this is alone there: without it there is no centre.
ALONE = 1 - 1e-9


@dataclass(frozen=True, eq=False)
class Selection:
    """What :func:`select_n_clusters` found.

    Attributes
    ----------
    n_clusters : ndarray of shape (n_tried,)
        The numbers of clusters that were tried, ascending.
    icl, bic : ndarray of shape (n_tried,)
        The criteria; smaller is better.
    outlier_fraction : ndarray of shape (n_tried,)
        The share of rows that :meth:`TKMeans.outliers` flags. If it falls sharply where a cluster is
        added, the flagged rows were a cluster.
    stability : ndarray of shape (n_tried,) or None
        The mean similarity of the least stable cluster over resamples; larger is better. None
        unless it is the criterion.
    criterion : str
        What was chosen by.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans import select_n_clusters
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [20, 0], [0, 20]], 20, axis=0)
    >>> found = select_n_clusters(X, range(2, 5), random_state=0)
    >>> found.best, found.criterion
    (3, 'icl')
    >>> found.table.dtype.names
    ('n_clusters', 'icl', 'bic', 'outlier_fraction')
    """

    n_clusters: Array
    icl: Array
    bic: Array
    outlier_fraction: Array
    stability: Array | None
    criterion: str

    @property
    def values(self) -> Array:
        """The values of the criterion that was chosen by."""
        return {"icl": self.icl, "bic": self.bic, "stability": self.stability}[self.criterion]

    @property
    def ranking(self) -> Array:
        """The numbers of clusters, the most credible first."""
        if self.criterion != "stability":
            return self.n_clusters[np.argsort(self.values, kind="stable")]
        stable = self.values >= STABLE_ENOUGH
        merit: Array = np.where(stable, self.n_clusters, self.values)
        return self.n_clusters[np.lexsort([-merit, ~stable])]

    @property
    def best(self) -> int:
        """The number of clusters to take."""
        return int(self.ranking[0])

    @property
    def runner_up(self) -> int | None:
        """The second choice; None if one number was tried."""
        return int(self.ranking[1]) if len(self.n_clusters) > 1 else None

    @property
    def table(self) -> Array:
        """One record for each number of clusters, as ``pandas.DataFrame`` takes it."""
        names = ["n_clusters", "icl", "bic", "outlier_fraction"] + ["stability"] * (self.stability is not None)
        return np.rec.fromarrays([getattr(self, name) for name in names], dtype=None, names=names)  # type: ignore[call-overload]

    def __repr__(self) -> str:
        lines = [f"{self.best} clusters by {self.criterion}; the runner-up is {self.runner_up}"]
        lines.append("".join(f"{name:>17}" for name in self.table.dtype.names))
        marks = {self.best: "  <- best", self.runner_up: "  <- runner-up"}
        for record in self.table:
            cells = "".join(f"{value:17d}" if isinstance(value, np.integer) else f"{value:17.4g}" for value in record)
            lines.append(cells + marks.get(int(record.n_clusters), ""))
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw the criterion against the number of clusters.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : :class:`tkmeans.plots.SelectionDisplay`
        """
        from tkmeans.plots import SelectionDisplay

        shown = ("n_clusters", "values", "criterion", "best", "runner_up", "outlier_fraction")
        return SelectionDisplay(**{name: getattr(self, name) for name in shown}).plot(ax=ax)


def select_n_clusters(
    X: Any,
    n_clusters: Iterable[int] = range(1, 21),
    *,
    criterion: str = "icl",
    estimator: TKMeans | None = None,
    sample_weight: Any = None,
    n_resamples: int = 20,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
) -> Selection:
    """Choose the number of clusters.

    :class:`TKMeans` is fitted for every number, each from a robust search of its own. The fits are
    compared by an information criterion in which no row helps to place the centre it is judged by;
    otherwise a centre on a single stray would pay in many dimensions.

    Clusters are taken to be round and of one width. Where they are not, an information criterion
    cuts the long and the wide ones into round pieces, and "stability" is the better question.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows; NaN marks a missing value. Of very many rows a sample is looked at: 20 000, or 300 for each
        of the most clusters if that is more.
    n_clusters : iterable of int, default=range(1, 21)
        The numbers to try.
    criterion : {"icl", "bic", "stability"}, default="icl"
        "icl" is the BIC plus twice the entropy of the memberships, in which a row counts by its
        robust weight (it is of no interest which cluster an outlier is nearest to). "bic" takes overlapping
        clusters more readily. "stability" takes the largest number whose clusters all come back when the rows
        are drawn anew (a mean Jaccard similarity of at least 0.8); it fits every number `n_resamples` times more.
    estimator : TKMeans, default=None
        The estimator to copy, for other parameters than the defaults.
    sample_weight : array-like of shape (n_samples,), default=None
        How often each row counts.
    n_resamples : int, default=20
        Resamples for "stability".
    random_state : int, RandomState instance or None, default=None
        Makes the answer reproducible.
    n_jobs : int, default=None
        Fits at a time, as elsewhere in scikit-learn. The answer does not depend on it.
    progress : bool or callable, default=False
        Whether to count the fits on standard error; or a function that is called
        with the number that are done and the number of all.

    Returns
    -------
    selection : Selection
        The choice, its runner-up, and a table and a plot of what they were chosen by.

    Examples
    --------
    >>> from tkmeans import select_n_clusters
    >>> from tkmeans.datasets import make_contaminated
    >>> X, _ = make_contaminated(n_samples=600, n_clusters=6, random_state=0)
    >>> found = select_n_clusters(X, range(1, 11), random_state=0)
    >>> found.best
    6
    >>> float(found.outlier_fraction[found.n_clusters == 6].round(2)[0])
    0.05
    """
    check_choice("criterion", criterion, CRITERIA)
    check_integer("n_resamples", n_resamples, least=1)
    check_n_jobs("n_jobs", n_jobs)
    floats, name = [np.float64, np.float32], "select_n_clusters"
    with np.errstate(over="ignore", invalid="ignore"):  # of a sum in which scikit-learn looks for NaN
        X = check_array(as_numbers(X, "X"), dtype=floats, ensure_all_finite="allow-nan", estimator=name)
    weight = checked_sample_weight(sample_weight, X)
    rng = check_random_state(random_state)
    numbers = _checked_numbers(n_clusters, X, weight)
    if len(X) > (size := max(MAX_ROWS, MAX_ROWS_PER_CLUSTER * numbers[-1])):
        rows = np.sort(rng.choice(len(X), size, replace=False))
        X, weight = X[rows], None if weight is None else weight[rows]
    template = TKMeans() if estimator is None else estimator
    if not hasattr(template, "set_params"):
        raise TypeError(f"estimator must be a TKMeans or None, got {estimator!r}")
    seeds = rng.randint(np.iinfo(np.int32).max, size=len(numbers))
    resamples = n_resamples if criterion == "stability" else 0
    with warnings.catch_warnings():  # a wrong number of clusters is what they would tell of
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        fits = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(
            delayed(_try)(template, k, X, weight, seed, resamples) for k, seed in zip(numbers, seeds, strict=True)
        )
        tried = list(with_progress(fits, len(numbers), "select_n_clusters", progress))
    icl, bic, flagged, stable = (np.array(column) for column in zip(*tried, strict=True))
    return Selection(np.array(numbers), icl, bic, flagged, stable if resamples else None, criterion)


def _try(
    template: TKMeans, k: int, X: Array, weight: Array | None, seed: int, n_resamples: int
) -> tuple[float, float, float, float]:
    """ICL, BIC, the share of outliers and the stability of the least stable cluster."""
    estimator = clone(template).set_params(n_clusters=k, random_state=seed)
    estimator.fit(X, sample_weight=weight)
    ones = np.ones(len(X)) if weight is None else weight
    icl, bic = _criteria(estimator, X, ones)
    flagged = np.average(estimator.outliers(X), weights=ones)
    worst = np.nan
    if n_resamples:
        found = stability(estimator, X, n_resamples=n_resamples, sample_weight=weight, random_state=seed)
        worst = found.mean.min()
    return icl, bic, float(flagged), float(worst)


def _criteria(estimator: TKMeans, X: Array, weight: Array) -> tuple[float, float]:
    """ICL and BIC with every row's distances to the centres that the other rows make.

    A centre is a weighted mean. Without a row that has share h in it, it would be 1/(1 - h) times
    as far from that row; one copy of a row of weight 2 is left out.
    """
    counted = weight > 0
    X, weight = X[counted], weight[counted]
    p = np.broadcast_to(observed_features(X), len(X))[:, None]
    d2 = np.minimum(estimator.transform(X).astype(np.float64), FARTHEST_SQUARE**0.5) ** 2  # (n, K)
    nu, alpha = estimator.dof_, estimator.scale_
    pull = estimator.predict_proba(X) * (nu + p) / (nu + d2 / alpha)  # tau u, (n, K)
    share = np.minimum(weight, 1)[:, None] * pull / np.maximum(weight @ pull, np.finfo(float).tiny)
    away = np.where(share < ALONE, d2 / np.maximum(1 - share, 1 - ALONE) ** 2, np.inf)
    log_norm = gammaln((nu + p) / 2) - gammaln(nu / 2) - p / 2 * np.log(nu * np.pi * alpha)
    log_joint = np.log(estimator.cluster_weights_) + log_norm - (nu + p) / 2 * np.log1p(away / (nu * alpha))
    log_density = logsumexp(log_joint, axis=1)  # (n,)
    known = np.isfinite(log_density)  # a row that is alone in the only cluster has no density
    entropy = np.zeros(len(X))
    entropy[known] = np.sum(entr(np.exp(log_joint[known] - log_density[known, None])), axis=1)
    trust = np.minimum(pull.sum(axis=1), 1)
    total = float(np.sum(weight))
    shape, weights = estimator.cluster_centers_.shape, estimator.cluster_weights_
    penalty = n_round_parameters(shape, estimator.dof == "estimate", weights) * np.log(total)
    bic = float(penalty - 2 * weight @ log_density)
    return bic + 2 * float(weight @ (trust * entropy)), bic


def _checked_numbers(n_clusters: Iterable[int], X: Array, weight: Array | None) -> list[int]:
    if not isinstance(n_clusters, Iterable):
        raise TypeError(f"n_clusters must be numbers of clusters such as range(1, 21), got {n_clusters!r}")
    numbers = list(n_clusters)
    for k in numbers:
        check_integer("n_clusters", k, least=1)
    if not (numbers := sorted(set(numbers))):
        raise ValueError("n_clusters must name at least one number of clusters, got none; range(1, 21) is a start")
    n_rows = len(X) if weight is None else int(np.count_nonzero(weight))
    if numbers[-1] > n_rows:
        raise ValueError(f"n_clusters must be at most the {n_rows} rows of X, got {numbers[-1]}")
    return [int(k) for k in numbers]
