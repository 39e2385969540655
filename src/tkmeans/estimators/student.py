"""What estimators with a t distribution around each centre share: a density, outliers, and the choice of weights."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import fdtrc
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tkmeans import engines
from tkmeans.em import SmallGain
from tkmeans.estimators.base import SCALE_FLOOR, CenterEstimator, Start
from tkmeans.estimators.running import run_em
from tkmeans.estimators.validation import (
    check_choice,
    check_dof,
    check_integer,
    check_real,
    checked_sample_weight,
    observed_features,
    warn_user,
)
from tkmeans.models import Student
from tkmeans.models.dof import least_dof
from tkmeans.outliers import comparable, fit_outlier_model, sketch, threshold_over, warn_of_clumps
from tkmeans.sources import ArraySource
from tkmeans.stats import Array, Fit, Params, Stats

# The median row of a t distribution is about one scale per feature from its centre; a million is no such fit.
COLLAPSED = 1e6


class StudentEstimator(CenterEstimator, ABC):
    """A clusterer whose clusters are t distributions of one round shape."""

    # Set by __init__ of the final classes, as what `CenterEstimator` lists.
    cluster_weights: str

    # ---- fitting -----------------------------------------------------------------

    def _check_params(self) -> None:
        check_dof(self.dof)
        check_choice("cluster_weights", self.cluster_weights, ["auto", "equal", "estimate"])

    def _climb(self, source: ArraySource, start: Start, tol: float) -> Fit:
        """EM over all rows of the source, with equal or estimated cluster weights or whichever is better."""
        lowest = least_dof(self.n_clusters, self.n_features_in_, n_rows_of(source))
        dof = max(start.dof, lowest) if self.dof == "estimate" else float(self.dof)
        equal = np.full(self.n_clusters, -np.log(self.n_clusters))
        params = Params(start.centers, start.scale, dof, equal)
        runs = (
            run_em(
                self,
                source,
                model,
                params,
                stop=SmallGain(tol),
                max_iter=self.max_iter,
                accelerate=self.accelerate,
            )
            for model in self._candidates(source, start)
        )
        return max(runs, key=self._merit)

    def _candidates(self, source: ArraySource, start: Start) -> Iterator[Student]:
        open_question = [False, True] if start.weights_differ is None else [start.weights_differ]
        icl_decides = self.cluster_weights == "auto" and (len(open_question) > 1 or self._n_init() > 1)
        for estimate_weights in {"equal": [False], "estimate": [True], "auto": open_question}[self.cluster_weights]:
            yield self._student(source.X.dtype, n_rows_of(source), estimate_weights, want_entropy=icl_decides)

    def _student(self, dtype: Any, n_rows: float, estimate_weights: bool, *, want_entropy: bool) -> Student:
        """The model to fit to so many rows of this type."""
        return Student(
            engine=engines.select(self.engine),
            estimate_dof=self.dof == "estimate",
            estimate_weights=estimate_weights,
            want_entropy=want_entropy,
            least_dof=least_dof(self.n_clusters, self.n_features_in_, n_rows),
            scale_floor=SCALE_FLOOR[dtype.name],
        )

    def _merit(self, fit: Fit) -> float:
        """The likelihood among like models; ICL where weights may be equal or not."""
        if self.cluster_weights != "auto":
            return fit.stats.objective
        return -self._icl(fit.stats, np.exp(fit.params.log_weights))

    def _model(self) -> Student:
        return Student(engine=engines.select(self.engine))

    def _keep_distances(self, d2: Array, n_seen: Array, weight: Array | None) -> None:
        if np.median(d2) > COLLAPSED * self.n_features_in_ * self.scale_:
            warn_user(
                f"The scale collapsed to {self.scale_:.3g}: {self.n_clusters} centres fit equal rows, or a few rows in "
                f"{self.n_features_in_} dimensions, ever better, so the likelihood has no maximum. "
                "Labels are of use, p-values are not: take fewer clusters or a larger dof such as 30."
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


def n_rows_of(source: ArraySource) -> float:
    """As rows count at least once, weights that sum to 1 do not make them few."""
    return len(source.X) if source.weight is None else max(len(source.X), float(np.sum(source.weight)))
