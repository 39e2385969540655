"""The clustering that a report describes: rows, clusters and what the estimator answers, computed once."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from tkmeans.cluster_descriptions import SIGMA, Description, Trait, described, quantile
from tkmeans.estimators.validation import check_clusterer
from tkmeans.plots.projections import centers_of, column_names, full_covariances
from tkmeans.report.markup import decimals_of
from tkmeans.row_answers import RowAnswers, answers
from tkmeans.sources.number_checks import as_numbers
from tkmeans.stats import Array


@dataclass(frozen=True)
class Clustering:
    """Rows, clusters and what the estimator answers for each row; None for what it cannot answer."""

    values: Array  # (n, p) in the user's units
    names: list[str]  # of the p columns
    row_names: list[str] | None
    inputs: Array  # (n, p) what the estimator saw: the scaler's output, or the same values
    centers: Array  # (K, p) in the user's units
    input_centers: Array  # (K, p) as the estimator has them
    deviations: Array  # (K, p) of the inputs from their centres
    rows: RowAnswers
    weights: Array | None  # (n,)
    remarks: list[str]  # what the estimator warned of
    description: Description
    digits: list[int | None]  # decimals to show of each column

    @cached_property
    def distances(self) -> Array:
        """How far each row is from its centre, as the estimator saw it; over the columns it has, brought up to all."""
        away = np.clip(self.inputs, -1e150, 1e150) - np.clip(self.input_centers[self.rows.label], -1e150, 1e150)
        d2 = np.square(away)  # of the largest numbers the squares are none
        n_observed, total = np.sum(~np.isnan(d2), axis=1), np.nansum(d2, axis=1) * d2.shape[1]
        return np.where(n_observed > 0, np.sqrt(total / np.maximum(n_observed, 1)), np.nan)

    @cached_property
    def usual_distances(self) -> Array:
        """The median distance of the core of each cluster, (K,)."""
        own = (self.rows.core & (self.rows.label == k) for k in range(len(self.centers)))
        return np.array([quantile(self.distances[rows, None])[0] for rows in own])

    @cached_property
    def spreads(self) -> Array:
        """The robust standard deviation of each column in each cluster's core, (K, p)."""
        away = (self.values[self.rows.core & (self.rows.label == k)] - center for k, center in enumerate(self.centers))
        return np.array([SIGMA * quantile(np.abs(own)) for own in away])

    @cached_property
    def effects(self) -> Array:
        """How far each cluster is from the other rows, in units of the spread within clusters, (K, p)."""
        effects = [[own[name].effect if name in own else 0.0 for name in self.names] for own in self.traits]
        return np.array(effects)  # columns that are described by shares have none

    @cached_property
    def traits(self) -> list[dict[str, Trait]]:
        """What is known of the columns of each cluster, by name."""
        return [{trait.column: trait for trait in cluster.traits} for cluster in self.description]

    @cached_property
    def telling(self) -> Array:
        """The columns, those first that tell the clusters apart best, (p,)."""
        within = np.sqrt(np.mean(np.square(np.nan_to_num(self.spreads)), axis=0))
        score = np.std(self.centers, axis=0) / np.where(within > 0, within, np.max(within, initial=0) or 1)
        return np.argsort(-score, kind="stable")

    def typical(self, k: int, n: int) -> tuple[Array, Array]:
        """The most typical rows of a cluster and the least typical ones that are no outliers."""
        own = np.flatnonzero(self.rows.core & (self.rows.label == k) & ~np.isnan(self.distances))
        complete = own[~np.isnan(self.values[own]).any(axis=1)]
        own = complete if len(complete) >= 2 * n else own  # a row with gaps is near in the little it has
        order = own[np.argsort((self.distances if self.weights is None else -self.weights)[own], kind="stable")]
        return order[:n], order[::-1][: min(n, max(len(order) - n, 0))]


def look(estimator: Any, X: Any, feature_names: Any, row_names: Any, scaler: Any, categories: Any) -> Clustering:
    """Ask a fitted estimator all that it can answer about X; the parameters are those of `write_report`."""
    check_clusterer("estimator", estimator)
    if scaler is not None and not hasattr(scaler, "inverse_transform"):
        raise TypeError(f"scaler must be a fitted scaler of scikit-learn, got {scaler!r}")
    check_is_fitted(estimator)
    values = check_array(as_numbers(X, "X"), dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")
    known = getattr(X, "columns", None), getattr(estimator, "feature_names_in_", None)
    names = column_names(values.shape[1], feature_names, *known)
    Z = X if scaler is None else scaler.transform(X)
    input_centers = centers_of(estimator)
    if values.shape[1] != (wanted := input_centers.shape[1]):
        expected = f"{type(estimator).__name__} is expecting {wanted} features as input"
        raise ValueError(f"X has {values.shape[1]} features, but {expected}")
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as heard:  # for the report
        rows = answers(estimator, Z)._replace(known=~np.isnan(values).all(axis=1))
        weights = np.asarray(estimator.robust_weights(Z)) if hasattr(estimator, "robust_weights") else None
    inputs = values if scaler is None else np.asarray(Z, dtype=float)
    centers = input_centers if scaler is None else np.asarray(scaler.inverse_transform(input_centers), dtype=float)
    seen = values, names, _row_names(X, row_names, len(values)), inputs, centers, input_centers, deviations(estimator)
    remarks = list(dict.fromkeys(str(warning.message) for warning in heard))  # each once
    description = described(rows, [*values.T], names, categories or {}, len(centers))
    return Clustering(*seen, rows, weights, remarks, description, [decimals_of(column) for column in values.T])


def deviations(model: Any) -> Array:
    """How far rows of each cluster typically are from its centre in each column, (K, p)."""
    if (covariances := full_covariances(model)) is None:  # one width for all
        return np.full(centers_of(model).shape, np.sqrt(getattr(model, "scale_", 1.0)))
    return np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))


def _row_names(X: Any, given: Sequence[Any] | None, n: int) -> list[str] | None:
    if given is None:
        given = getattr(X, "index", None)
        if given is None or callable(given) or np.array_equal(given, np.arange(n)):
            return None
    if len(given) != n:
        raise ValueError(f"row_names must name the {n} rows of X, got {len(given)} names")
    return [str(name) for name in given]
