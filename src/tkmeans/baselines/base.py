"""What k-medians and k-medoids share: the scikit-learn face."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tkmeans.baselines.hard import Found, distances_between
from tkmeans.estimators.numbers import checked_points, checked_rows
from tkmeans.estimators.validation import (
    check_choice,
    check_enough_rows,
    check_integer,
    check_spread,
    checked_sample_weight,
    warn_of_early_end,
)
from tkmeans.estimators.whole import all_or_nothing
from tkmeans.search import seeding
from tkmeans.sources import Sample
from tkmeans.sources.base import measure
from tkmeans.stats import Array

LARGEST = 1e150  # whose square is a number

SEEDINGS: dict[str, seeding.Seeding] = {"k-means++": seeding.kmeans_plusplus, "random": seeding.random_rows}


def _check_squares(points: Array, name: str) -> None:
    largest = float(np.max(np.abs(points)))
    if largest > LARGEST:
        raise ValueError(f"{name} holds values as large as {largest:.3g}, whose squares no float64 can; rescale it")


class Baseline(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator, ABC):
    """A scikit-learn clusterer with centres and some distance to them."""

    n_clusters: int
    init: Any
    n_init: int | str
    max_iter: int
    random_state: Any

    @property
    @abstractmethod
    def _metric(self) -> str:
        """The distance, as scipy calls it."""

    @abstractmethod
    def _check_params(self) -> None:
        """Complain about parameters that make no sense."""

    @abstractmethod
    def _search(self, sample: Sample, centers: Array) -> Found:
        """The clusters found from these centres."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the clusters of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to cluster.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        check_integer("n_clusters", self.n_clusters, least=1)
        check_integer("max_iter", self.max_iter, least=1)
        if self.n_init != "auto":
            check_integer("n_init", self.n_init, least=1)
        if isinstance(self.init, str):
            check_choice("init", self.init, SEEDINGS, hint=" or an array of centres")
        self._check_params()
        with all_or_nothing(self):
            return self._fit(X, sample_weight)

    def _fit(self, X: Any, sample_weight: Any) -> Self:
        X = self._rows(X, reset=True)
        weight = checked_sample_weight(sample_weight, X)
        check_enough_rows(self.n_clusters, X, weight)
        check_spread(measure(X, weight).unit)
        weight = np.ones(len(X)) if weight is None else weight
        # In canonical order with equal rows joined: a row of weight 2 is that row twice.
        sample = seeding.canonical(Sample(X[weight > 0], weight[weight > 0]))
        rng = check_random_state(self.random_state)
        best = min(
            (self._search(sample, self._start(sample, rng)) for _ in range(self._n_init())), key=lambda f: f.cost
        )
        self.cluster_centers_ = best.centers
        for last in (False, False, True):  # rows midway between centres may change sides with the order
            self.labels_ = distances_between(X, self.cluster_centers_, self._metric).argmin(axis=1)
            sizes = np.bincount(self.labels_, weights=weight, minlength=self.n_clusters)
            order = np.lexsort([*self.cluster_centers_.T[::-1], -sizes])  # the largest cluster first
            if last or np.array_equal(order, np.arange(self.n_clusters)):
                break
            self.cluster_centers_ = self.cluster_centers_[order]
        self.inertia_ = best.cost
        self.n_iter_ = best.n_iter
        if not best.converged:
            warn_of_early_end(self)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Find the clusters of X and say which one each row belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to cluster.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The number of each row's cluster.
        """
        return self.fit(X, sample_weight=sample_weight).labels_

    def predict(self, X: Any) -> Array:
        """Say which cluster each row belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to label.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The number of the cluster with the nearest centre.
        """
        return self.transform(X).argmin(axis=1)

    def transform(self, X: Any) -> Array:
        """Measure the distance of each row to every centre.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to measure.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            In the metric of the method.
        """
        check_is_fitted(self)
        X = self._rows(X, reset=False)
        return distances_between(X, self.cluster_centers_, self._metric)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute minus the sum of distances to the nearest centre.

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
            The larger, the better the rows fit.
        """
        nearest = self.transform(X).min(axis=1)
        weight = checked_sample_weight(sample_weight, nearest[:, None])
        return -float(nearest.sum() if weight is None else nearest @ weight)

    def _rows(self, X: Any, *, reset: bool) -> Array:
        """The rows of X, whose distances are numbers."""
        X = checked_rows(self, X, reset=reset, dtype=np.float64, missing=False)
        _check_squares(X, "X")
        if self._metric == "cosine" and not np.all(np.any(X, axis=1)):
            row = int(np.argmin(np.any(X, axis=1)))
            raise ValueError(f'X holds nothing but zeros in row {row}, which has no direction for metric="cosine"')
        return X

    def _n_init(self) -> int:
        if not isinstance(self.init, str):
            return 1
        if self.n_init == "auto":
            return 10 if self.init == "random" else 1
        return int(self.n_init)

    def _start(self, sample: Sample, rng: np.random.RandomState) -> Array:
        if isinstance(self.init, str):
            return SEEDINGS[self.init](sample, self.n_clusters, rng)
        centers = checked_points(self.init, "init")
        _check_squares(centers, "init")
        wanted = (self.n_clusters, sample.X.shape[1])
        if centers.shape != wanted:
            raise ValueError(f"init must give centres of shape {wanted} (n_clusters, n_features), got {centers.shape}")
        return centers

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)
