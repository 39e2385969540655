"""What estimators with a t distribution around each centre share: a density, outliers, and the choice of weights."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tkmeans.em import SmallGain
from tkmeans.estimators.base import SCALE_FLOOR, CenterEstimator, Start
from tkmeans.estimators.longfit import Runs
from tkmeans.estimators.looking import Review, astray, improbable, labels
from tkmeans.estimators.predicting import label_column
from tkmeans.estimators.validation import check_choice, check_dof, check_integer, check_real, warn_user
from tkmeans.models import Student
from tkmeans.models.dof import least_dof
from tkmeans.outliers import OutlierModel, Sketch, fit_outlier_model, median, warn_of_clumps
from tkmeans.sources import ArraySource, Column, Source, TensorSource
from tkmeans.sources.base import to_numpy
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

    def _climb(self, source: Source, start: Start, tol: float, runs: Runs) -> None:
        """EM over all rows of the source, with equal or estimated cluster weights, or both if that is open."""
        lowest = least_dof(self.n_clusters, self.n_features_in_, n_rows_of(source))
        dof = max(start.dof, lowest) if self.dof == "estimate" else float(self.dof)
        equal = np.full(self.n_clusters, -np.log(self.n_clusters))
        params = Params(start.centers, start.scale, dof, equal)
        options = {"stop": SmallGain(tol), "max_iter": self.max_iter, "accelerate": self.accelerate}
        for model in self._candidates(source, start):
            runs.em(source, model, params, **options)

    def _candidates(self, source: Source, start: Start) -> Iterator[Student]:
        open_question = [False, True] if start.weights_differ is None else [start.weights_differ]
        icl_decides = self.cluster_weights == "auto" and (len(open_question) > 1 or self._n_init() > 1)
        for estimate_weights in {"equal": [False], "estimate": [True], "auto": open_question}[self.cluster_weights]:
            yield self._student(source, n_rows_of(source), estimate_weights, want_entropy=icl_decides)

    def _student(self, source: Source, n_rows: float, estimate_weights: bool, *, want_entropy: bool) -> Student:
        """The model to fit to so many rows like those of the source."""
        return Student(
            engine=self._engine(source),
            estimate_dof=self.dof == "estimate",
            estimate_weights=estimate_weights,
            want_entropy=want_entropy,
            least_dof=least_dof(self.n_clusters, self.n_features_in_, n_rows),
            scale_floor=SCALE_FLOOR[source.dtype.name],
        )

    def _merit(self, fit: Fit) -> float:
        """The likelihood among like models; ICL where weights may be equal or not."""
        if self.cluster_weights != "auto":
            return fit.stats.objective
        return -self._icl(fit.stats, np.exp(fit.params.log_weights))

    def _model(self, engine: Any) -> Student:
        return Student(engine=engine)

    _row_fields: tuple[str, ...] = ("pvalue",)
    _objective = "log-likelihood"

    def _keep_review(self, found: Review, rows: dict[str, Array], source: Source) -> None:
        d2, mass = found.comparable().sketch()  # in units of the scale
        if median(Sketch(d2, mass)) > COLLAPSED * self.n_features_in_:
            warn_user(
                f"The scale collapsed to {self.scale_:.3g}: {self.n_clusters} centres fit equal rows, or a few rows in "
                f"{self.n_features_in_} dimensions, ever better, so the likelihood has no maximum. "
                "Labels are of use, p-values are not: take fewer clusters or a larger dof such as 30."
            )
        self._training_distances = Sketch(d2 * self.scale_, mass)
        self.__dict__.pop("outlier_pvalues_", None)  # of an earlier fit
        if rows:
            self.outlier_pvalues_ = rows["pvalue"]

    # ---- labels and outliers ---------------------------------------------------------

    def predict(self, X: Any, *, outlier_label: int | None = None, out: Any = None) -> Any:
        """Say which cluster each row belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to label.
        outlier_label : int, default=None
            A label such as -1 for the rows that :meth:`outliers` finds. None gives
            every row the cluster it is nearest to.
        out : path, default=None
            The Parquet file to write labels to. None returns them, or if X is a path, writes
            them beside it.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The number of the most probable cluster; or the path of the file written.
        """
        with self._checked(X, "predict") as source:
            column = label_column(source)
            if outlier_label is None:
                return self._look(source, "label", column, out)
            check_integer("outlier_label", outlier_label, least=-(2**31))
            mark = partial(labels, self._lens(source), self._strays(0.5), 0.5, outlier_label)
            return self._answer(source, mark, column, out)

    def outliers(self, X: Any, *, rule: str = "strays", level: float | None = None) -> Any:
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
        level = {"strays": 0.5, "tail": 0.01}[rule] if level is None else level
        check_real("level", level, positive=True)
        if level >= 1:
            raise ValueError(f"level must be a probability below 1, got {level!r}")
        with self._checked(X, "outliers") as source:
            lens = self._lens(source)
            judge = partial(improbable, lens, level)
            if rule == "strays":
                judge = partial(astray, lens, self._strays(level), level)
            found = self._answer(source, judge, Column("outlier", np.bool_))
            if isinstance(source, (ArraySource, TensorSource)):  # rows elsewhere are too many to look at together
                strays = source.rows(np.flatnonzero(to_numpy(found)))
                strays = strays[~np.any(np.isnan(strays), axis=1)]
                warn_of_clumps(strays, 3 * np.sqrt(self.n_features_in_ * self.scale_))
        return found

    def _strays(self, level: float) -> OutlierModel:
        """What the training rows say of strays."""
        if not hasattr(self, "_training_distances"):
            raise NotFittedError("the fit was interrupted before its outliers were looked at; let it end, or resume it")
        return fit_outlier_model(self._training_distances, self.n_features_in_, level)

    # ---- the density ---------------------------------------------------------------

    def score_samples(self, X: Any) -> Any:
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
        with self._checked(X, "score_samples") as source:
            return self._look(source, "log_density", Column("log_density", source.dtype))

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
        stats = self._stats(X, sample_weight)
        return stats.objective / stats.total

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
        centers, weights = to_numpy(self.cluster_centers_), to_numpy(self.cluster_weights_)
        labels = rng.choice(self.n_clusters, n_samples, p=weights / weights.sum())
        noise = rng.standard_normal((n_samples, self.n_features_in_)) * np.sqrt(self.scale_)
        u = rng.chisquare(self.dof_, n_samples) / self.dof_  # eqn:XU
        X = centers[labels] + noise / np.sqrt(u)[:, None]
        return X.astype(centers.dtype), labels

    def outlier_pvalues(self, X: Any) -> Any:
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
        with self._checked(X, "outlier_pvalues") as source:
            return self._look(source, "pvalue", Column("outlier_pvalue", np.float64))

    def _stats(self, X: Any, sample_weight: Any = None) -> Stats:
        """The statistics of X under the fitted model, with the log-likelihood in the user's units."""
        with self._checked(X, "score", sample_weight) as source:
            lens = self._lens(source)
            stats = source.reduce(lens.model.e_step(lens.params))
        return stats._replace(objective=stats.objective - stats.cells * np.log(lens.frame.unit))

    def _icl(self, stats: Stats, cluster_weights: Array) -> float:
        penalty = self._n_parameters(cluster_weights) * np.log(np.sum(stats.n))
        return float(-2 * stats.objective + penalty + 2 * stats.entropy)

    def _n_parameters(self, cluster_weights: Array) -> int:
        """Centres, the scale, nu if it was estimated, and weights if they differ."""
        weights_differ = np.ptp(to_numpy(cluster_weights)) > 1e-12
        n_weights = self.n_clusters - 1 if weights_differ else 0
        return self.n_clusters * self.n_features_in_ + 1 + (self.dof == "estimate") + n_weights


def n_rows_of(source: Source) -> float:
    """As rows count at least once, weights that sum to 1 do not make them few."""
    return max(source.n_rows, source.total)
