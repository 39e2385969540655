"""TKMeans: the paper's t-k-means, for people who use KMeans."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, final

import numpy as np
from scipy.special import fdtrc
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tkmeans import engines
from tkmeans.em import SmallGain, em
from tkmeans.estimators.base import SCALE_FLOOR, CenterEstimator, Start
from tkmeans.estimators.validation import (
    check_choice,
    check_dof,
    check_integer,
    check_real,
    checked_sample_weight,
    observed_features,
)
from tkmeans.models import Student
from tkmeans.models.dof import least_dof
from tkmeans.outliers import comparable, fit_outlier_model, sketch, threshold_over, warn_of_clumps
from tkmeans.sources import ArraySource
from tkmeans.stats import Array, Fit, Params, Stats

# The median row of a t distribution is about one scale per feature from its centre; a million is no such fit.
COLLAPSED = 1e6


@final
class TKMeans(CenterEstimator):
    """Robust k-means: a mixture of Student t distributions that share one round shape.

    Use it like :class:`sklearn.cluster.KMeans`. Far rows count little in the centres
    (they keep a label, and a small p-value says what they are), so that a few per cent
    of outliers do not move the clusters.

    Parameters
    ----------
    n_clusters : int, default=8
        The number of clusters.
    dof : "estimate" or float, default="estimate"
        The degrees of freedom nu: how heavy the tails are. The estimate solves the
        likelihood equation exactly and stays between 1 (Cauchy) and 200 (as good as
        Gaussian). A number fixes it: 1.0 is robust and quickest, a huge one gives a
        Gaussian mixture.
    cluster_weights : {"auto", "equal", "estimate"}, default="auto"
        Whether clusters are equally probable beforehand, as in k-means and in the paper,
        or have weights of their own, for clusters of very different size. "auto" lets the
        robust search decide; from another start it fits both and keeps the one with the
        better integrated classification likelihood.
    init : {"robust", "k-means++", "random", "uniform"}, array or callable, default="robust"
        Where to begin. "robust" searches for the good optimum on a sample of the rows, so
        that outliers and seeds make no difference. An array holds the centres, of shape (n_clusters, n_features). A
        callable takes X, n_clusters and random_state and returns such an array.
    n_init : "auto" or int, default="auto"
        How many starts to try; the best is kept. "auto" is 10 for "random", "uniform"
        and a callable, and 1 otherwise.
    max_iter : int, default=300
        The most iterations of one run.
    tol : float, default=1e-6
        A run ends when an iteration gains less than this in log-likelihood per row.
    accelerate : bool, default=True
        Extrapolate over iterations (Anderson acceleration). The likelihood still never
        drops, and the same optimum is reached in a fraction of the passes.
    engine : {"auto", "native", "reference"}, default="auto"
        The code that visits the rows.
    n_jobs : int, default=None
        Threads to use, as elsewhere in scikit-learn: None means 1 unless in a
        :obj:`joblib.parallel_config` context, -1 means all. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Makes the start reproducible.
    verbose : int, default=0
        Print every iteration if positive.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres mu. Clusters are numbered by size, the largest first.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row.
    inertia_ : float
        The weighted sum of squared distances to the nearest centre.
    scale_ : float
        The squared scale alpha that all clusters share. At least the square of 1e-10
        (float32: 1e-5) of the data's spread.
    dof_ : float
        The degrees of freedom nu.
    cluster_weights_ : ndarray of shape (n_clusters,)
        The probability of each cluster.
    lower_bound_ : float
        The log-likelihood per row at the end.
    lower_bounds_ : list of float
        The log-likelihood per row at the start and after every iteration.
    outlier_pvalues_ : ndarray of shape (n_samples,)
        How probable a distance at least this large is for a row of the nearest cluster.
    n_iter_ : int
        Iterations of the best run.
    converged_ : bool
        Whether the best run ended before `max_iter`.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X had some.

    See Also
    --------
    FastTKMeans : The paper's fast variant, with no scale to estimate.

    Notes
    -----
    Missing values are NaN, in `fit` and in every method that takes rows. Nothing is filled in:
    over the features that a row has, the model is a t mixture with the same scale and the same
    degrees of freedom, and a row counts in a centre's features where it was observed. This is
    exact if values are missing at random. A row with no observed value does not count; its
    probabilities are the cluster weights, its p-value is NaN, it is never an outlier, and
    `fit` warns of it.

    References
    ----------
    Y. Li, Y. Zhang, Q. Tang, W. Huang, Y. Jiang, S.-T. Xia, "t-k-means: A Robust and
    Stable k-means Variant".

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
        n_clusters: int = 8,
        *,
        dof: float | str = "estimate",
        cluster_weights: str = "auto",
        init: Any = "robust",
        n_init: int | str = "auto",
        max_iter: int = 300,
        tol: float = 1e-6,
        accelerate: bool = True,
        engine: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.dof = dof
        self.cluster_weights = cluster_weights
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.accelerate = accelerate
        self.engine = engine
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting -----------------------------------------------------------------

    def _check_params(self) -> None:
        check_dof(self.dof)
        check_choice("cluster_weights", self.cluster_weights, ["auto", "equal", "estimate"])

    def _run(self, source: ArraySource, start: Start) -> Fit:
        dof = max(start.dof, self._least_dof(source)) if self.dof == "estimate" else float(self.dof)
        equal = np.full(self.n_clusters, -np.log(self.n_clusters))
        params = Params(start.centers, start.scale, dof, equal)
        runs = (
            em(
                source,
                model,
                params,
                stop=SmallGain(self.tol),
                max_iter=self.max_iter,
                accelerate=self.accelerate,
                on_step=self._on_step,
            )
            for model in self._candidates(source, start)
        )
        return max(runs, key=self._merit)

    def _candidates(self, source: ArraySource, start: Start) -> Iterator[Student]:
        open_question = [False, True] if start.weights_differ is None else [start.weights_differ]
        icl_decides = self.cluster_weights == "auto" and (len(open_question) > 1 or self._n_init() > 1)
        for estimate_weights in {"equal": [False], "estimate": [True], "auto": open_question}[self.cluster_weights]:
            yield Student(
                engine=engines.select(self.engine),
                estimate_dof=self.dof == "estimate",
                estimate_weights=estimate_weights,
                want_entropy=icl_decides,
                least_dof=self._least_dof(source),
                scale_floor=SCALE_FLOOR[source.X.dtype.name],
            )

    def _least_dof(self, source: ArraySource) -> float:
        """As rows count at least once, weights that sum to 1 do not make them few."""
        n_rows = len(source.X) if source.weight is None else max(len(source.X), float(np.sum(source.weight)))
        return least_dof(self.n_clusters, self.n_features_in_, n_rows)

    def _merit(self, fit: Fit) -> float:
        """The likelihood among like models; ICL where weights may be equal or not."""
        if self.cluster_weights != "auto":
            return fit.stats.objective
        return -self._icl(fit.stats, np.exp(fit.params.log_weights))

    def _model(self) -> Student:
        return Student(engine=engines.select(self.engine))

    def _keep_distances(self, d2: Array, n_seen: Array, weight: Array | None) -> None:
        if np.median(d2) > COLLAPSED * self.n_features_in_ * self.scale_:
            warnings.warn(
                f"The scale collapsed to {self.scale_:.3g}: {self.n_clusters} centres fit equal rows, or a few rows in "
                f"{self.n_features_in_} dimensions, ever better, so the likelihood has no maximum. "
                "Labels are of use, p-values are not: take fewer clusters or a larger dof such as 30.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.outlier_pvalues_ = self._tail_probability(d2, n_seen)
        self._training_distances = sketch(*comparable(d2, n_seen, self.n_features_in_, weight))

    # ---- labels and outliers ---------------------------------------------------------

    def predict(self, X: Any, *, outlier_label: int | None = None) -> Array:
        """Say which cluster each row belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to label.
        outlier_label : int, default=None
            A label such as -1 for the rows that :meth:`outliers` finds. None gives
            every row the cluster it is nearest to.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The number of the most probable cluster.
        """
        X = self._checked(X)
        labels, d2 = self._look(X, "label", "d2")
        if outlier_label is not None:
            check_integer("outlier_label", outlier_label, least=-(2**31))
            labels[self._stray(d2, observed_features(X), 0.5)] = outlier_label
        return labels

    def outliers(self, X: Any, *, rule: str = "strays", level: float | None = None) -> Array:
        """Say which rows are outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to judge.
        rule : {"strays", "tail"}, default="strays"
            "strays" asks of the training rows whether their distances from the centres
            form one group or two, a core and strays far around it; if there are strays,
            rows that are more probably one of them are outliers, and if there are none,
            only new rows twice as far away as the farthest. "tail" flags rows whose
            :meth:`outlier_pvalues` are below the level, which on clean data flags that
            fraction of the rows.
        level : float, default=None
            The least probability of being a stray (None: 0.5), or the largest tail
            probability (None: 0.01).

        Returns
        -------
        outliers : ndarray of bool, shape (n_samples,)
            True for outliers; False for rows without a single observed feature.

        Warns
        -----
        UserWarning
            If many outliers lie together, as those of a cluster that was missed do.

        Examples
        --------
        >>> from tkmeans import TKMeans
        >>> from tkmeans.datasets import make_contaminated
        >>> X, y = make_contaminated(n_clusters=4, outlier_fraction=0.05, random_state=0)
        >>> found = TKMeans(n_clusters=4, random_state=0).fit(X).outliers(X)
        >>> int(found.sum()), int((found & (y == -1)).sum())
        (150, 150)
        """
        check_choice("rule", rule, ["strays", "tail"])
        X = self._checked(X)
        level = {"strays": 0.5, "tail": 0.01}[rule] if level is None else level
        check_real("level", level, positive=True)
        if level >= 1:
            raise ValueError(f"level must be a probability below 1, got {level!r}")
        (d2,), n_seen = self._look(X, "d2"), observed_features(X)
        found = self._tail_probability(d2, n_seen) < level if rule == "tail" else self._stray(d2, n_seen, level)
        complete = found & np.asarray(n_seen == X.shape[1])
        warn_of_clumps(X[complete], 3 * np.sqrt(self.n_features_in_ * self.scale_))
        return found

    def _stray(self, d2: Array, n_seen: Array, level: float) -> Array:
        """Whether rows at these squared distances, over so many features, are more probably strays than `level`."""
        model = fit_outlier_model(self._training_distances, self.n_features_in_, level)
        numbers, which = np.unique(n_seen, return_inverse=True)  # most often all features, and one number
        thresholds = np.array([threshold_over(int(number), model, self.n_features_in_, level) for number in numbers])
        return d2 > thresholds[which.reshape(np.shape(n_seen))]

    # ---- the density ---------------------------------------------------------------

    def score_samples(self, X: Any) -> Array:
        """Compute the log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to score.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            The logarithm of the mixture's density.
        """
        return self._look(self._checked(X), "log_density")[0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to score.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        score : float
            The larger, the better the rows fit the model.
        """
        X = self._checked(X)
        log_density = self._look(X, "log_density")[0]
        return float(np.average(log_density, weights=checked_sample_weight(sample_weight, X)))

    def aic(self, X: Any) -> float:
        """Compute the Akaike information criterion of the model on X; smaller is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to judge by.

        Returns
        -------
        aic : float
        """
        stats = self._stats(X)
        return -2 * stats.objective + 2 * self._n_parameters(self.cluster_weights_)

    def bic(self, X: Any) -> float:
        """Compute the Bayesian information criterion of the model on X; smaller is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to judge by.

        Returns
        -------
        bic : float
        """
        stats = self._stats(X)
        return self._icl(stats, self.cluster_weights_) - 2 * stats.entropy

    def icl(self, X: Any) -> float:
        """Compute the integrated classification likelihood of the model on X; smaller is better.

        It is the BIC plus twice the entropy of the memberships, so that it also counts
        how well the clusters are separated. It is what to choose K by.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to judge by.

        Returns
        -------
        icl : float
        """
        return self._icl(self._stats(X), self.cluster_weights_)

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the fitted model.

        Parameters
        ----------
        n_samples : int, default=1
            How many.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        labels : ndarray of shape (n_samples,)
            The cluster each was drawn from.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, least=1)
        rng = check_random_state(self.random_state)
        labels = rng.choice(self.n_clusters, n_samples, p=self.cluster_weights_ / self.cluster_weights_.sum())
        noise = rng.standard_normal((n_samples, self.n_features_in_)) * np.sqrt(self.scale_)
        u = rng.chisquare(self.dof_, n_samples) / self.dof_  # eqn:XU
        X = self.cluster_centers_[labels] + noise / np.sqrt(u)[:, None]
        return X.astype(self.cluster_centers_.dtype), labels

    def outlier_pvalues(self, X: Any) -> Array:
        """Say how probable so large a distance is for a row of the nearest cluster.

        Under the model the squared distance over p times the scale follows an F
        distribution with p and nu degrees of freedom: an exact tail probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to judge.

        Returns
        -------
        pvalues : ndarray of shape (n_samples,)
            Small for rows that do not look like any cluster's; NaN for rows without a
            single observed feature.
        """
        X = self._checked(X)
        return self._tail_probability(self._look(X, "d2")[0], observed_features(X))

    def _tail_probability(self, d2: Array, n_seen: Array) -> Array:
        p = np.where(n_seen > 0, n_seen, np.nan)  # nothing observed, nothing to say
        return fdtrc(p, self.dof_, d2 / (p * self.scale_))

    def _stats(self, X: Any) -> Stats:
        """The statistics of X under the fitted model, with the log-likelihood in the user's units."""
        X = self._checked(X)
        model, params, frame = self._fitted(X.dtype)
        with self._source(X, None, frame) as source:
            stats = source.reduce(model.e_step(params))
        return stats._replace(objective=stats.objective - stats.cells * np.log(frame.unit))

    def _icl(self, stats: Stats, cluster_weights: Array) -> float:
        penalty = self._n_parameters(cluster_weights) * np.log(np.sum(stats.n))
        return float(-2 * stats.objective + penalty + 2 * stats.entropy)

    def _n_parameters(self, cluster_weights: Array) -> int:
        """Centres, the scale, nu if it was estimated, and weights if they differ."""
        weights_differ = np.ptp(cluster_weights) > 1e-12
        n_weights = self.n_clusters - 1 if weights_differ else 0
        return self.n_clusters * self.n_features_in_ + 1 + (self.dof == "estimate") + n_weights
