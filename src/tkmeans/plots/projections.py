"""Projections of many columns to the two of a picture, the rows to draw, and where one cluster ends there."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import Voronoi, cKDTree

from tkmeans.stats import Array

_ENOUGH = 20_000  # rows to find a plane by


class View(NamedTuple):
    """Where rows and centres stand in a picture."""

    names: tuple[str, str]  # of the axes
    project: Callable[[Array, Array], Array]  # rows, and the centre of each one's cluster; NaN if a row has no place
    place: Callable[[Array], Array]  # centres


def choose_view(X: Array, features: Any, names: Any, trusted: Array, expected: Array) -> View:
    """Two columns if two are named or there are no more; otherwise the principal plane of the trusted rows."""
    p, labels = X.shape[1], column_names(X.shape[1], names)
    if features is None and p > 2:
        return principal_plane(X, trusted, expected)
    if features is None and p == 1:
        return View((labels[0], ""), lambda X, _: np.c_[X, heights(len(X))], lambda X: np.c_[X, np.full(len(X), 0.5)])
    i, j = [0, 1] if features is None else _columns(features, labels)
    return View((labels[i], labels[j]), lambda X, _: X[:, (i, j)], lambda centers: centers[:, (i, j)])


def heights(n_rows: int) -> Array:
    """Of rows with one column: even in whatever order they come, so that none hides another; they mean nothing."""
    return np.arange(n_rows) * ((np.sqrt(5) - 1) / 2) % 1  # multiples of the golden ratio


def column_names(n_columns: int, *given: Sequence[Any] | None) -> list[str]:
    """The first names that are there, or numbers."""
    known = next((names for names in given if names is not None), [f"feature {j}" for j in range(n_columns)])
    if len(names := [*map(str, known)]) != n_columns:
        raise ValueError(f"feature_names must name the {n_columns} columns of X, got {len(names)} names")
    return names


def principal_plane(X: Array, trusted: Array, expected: Array) -> View:
    """The plane in which the trusted rows differ most: outliers would turn it towards themselves."""
    rows: Array = np.where(np.isnan(X), expected, X)[trusted if trusted.any() else slice(None)]
    rows = rows[:: -(-len(rows) // _ENOUGH)]
    if (largest := np.max(np.abs(rows), initial=0.0)) > 1e150:
        raise ValueError(f"X has the value {largest:.3g}, whose square is no number to draw with; rescale X")
    origin = rows.mean(axis=0)
    variances, directions = np.linalg.eigh(np.atleast_2d(np.cov(rows.T, bias=True)))
    axes = directions[:, [-1, -2]]
    axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), [0, 1]])  # a direction has no sign: choose one
    shares = variances[[-1, -2]] / max(variances.sum(), np.finfo(float).tiny)
    first, second = (f"principal component {k + 1} ({share:.0%} of the variance)" for k, share in enumerate(shares))

    def project(X: Array, expected: Array) -> Array:
        observed = ~np.isnan(X)
        places = (np.where(observed, X, expected) - origin) @ axes  # a missing value is expected to be its centre's
        return np.where(observed.any(axis=1, keepdims=True), places, np.nan)

    return View((first, second), project, lambda centers: (centers - origin) @ axes)


def _columns(features: Sequence[int | str], names: list[str]) -> list[int]:
    if len(features) != 2:
        raise ValueError(f"features must be two columns, got {features!r}")
    for feature in features:
        if feature not in (names if isinstance(feature, str) else range(-len(names), len(names))):
            by_name = f"there are {', '.join(names[:20])}"
            there = by_name if isinstance(feature, str) else f"they are numbered from 0 to {len(names) - 1}"
            raise ValueError(f"features={feature!r} is not a column; {there}")
    return [names.index(f) if isinstance(f, str) else int(f) % len(names) for f in features]


def drawn_rows(outliers: Array, places: Array, max_rows: int) -> Array:
    """Row numbers to draw: all that have a place or, of very many, a fixed random sample with the outliers first."""
    if len(there := np.flatnonzero(~np.isnan(places).any(axis=1))) <= max_rows:
        return there
    rng = np.random.default_rng(0)  # the same picture every time
    strays, rest = there[outliers[there]], there[~outliers[there]]
    if len(strays) > max_rows // 2:
        strays = rng.choice(strays, max_rows // 2, replace=False)
    return np.sort(np.concatenate([strays, rng.choice(rest, min(len(rest), max_rows - len(strays)), replace=False)]))


def cell_borders(centers: Array, farthest: float) -> list[Array]:
    """The ends, (2, 2), of the borders between the Voronoi cells of centres within `farthest` of the origin."""
    corners = 100 * farthest * np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])  # with these no border is infinite
    diagram = Voronoi(np.vstack([centers, corners]))
    return [diagram.vertices[ends] for ends in diagram.ridge_vertices if min(ends) >= 0]


def agreement(places: Array, labels: Array, centers: Array) -> float:
    """The share of rows that stand in the cell of their own cluster: how far boundaries tell the truth."""
    return float(np.mean(cKDTree(centers).query(places)[1] == labels)) if len(places) else 1.0


def centers_of(estimator: Any) -> Array:
    """The centres of any fitted estimator that has some."""
    for name in ("cluster_centers_", "means_"):
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name), dtype=float)
    lacks = f"the estimator {type(estimator).__name__} has neither cluster_centers_ nor means_: is it fitted?"
    raise ValueError(f"{lacks} Of a pipeline pass the last step, and the scaler where there is a place for it.")


def full_covariances(estimator: Any) -> Array | None:
    """The scale matrices of a mixture's components, (K, p, p); None for other estimators."""
    C, kind = getattr(estimator, "covariances_", None), getattr(estimator, "covariance_type", "")
    if C is None:
        return None
    K, p = np.shape(centers_of(estimator))
    return np.broadcast_to(C, (K, p, p)) if kind in ("full", "tied") else np.reshape(C, (K, -1, 1)) * np.eye(p)
