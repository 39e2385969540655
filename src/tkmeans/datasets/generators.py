"""Generators of data: clusters with outliers, and sets of the same kind as the paper's synthetic ones."""

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state, check_X_y

from tkmeans.datasets.benchmark_sets import SYNTHETIC
from tkmeans.docstrings import documented

# Clusters of the A sets; and the standard deviation that makes clusters overlap about as much as in S1 to S4.
_SIZES, _S_SPREAD = {"A1": 20, "A2": 35, "A3": 50}, {"S1": 0.09, "S2": 0.117, "S3": 0.172, "S4": 0.197}
CONTAMINATIONS = ("uniform", "far", "cauchy", "clumped")


@documented(returns="contaminated")
@documented("contaminated_*")
def make_contaminated(
    n_samples: int = 3000,
    n_clusters: int = 15,
    n_features: int = 2,
    *,
    outlier_fraction: float = 0.05,
    outlier_range: float = 10.0,
    cluster_std: float = 0.05,
    random_state: Any = None,
) -> tuple[Any, Any]:
    """Make round clusters in the cube [-1, 1]^p, and outliers scattered far beyond it."""
    n_samples, n_clusters, n_features = _checked(int, n_samples=n_samples, n_clusters=n_clusters, n_features=n_features)
    reals = {"outlier_fraction": outlier_fraction, "outlier_range": outlier_range, "cluster_std": cluster_std}
    outlier_fraction, outlier_range, cluster_std = _checked(float, **reals)
    rng = check_random_state(random_state)
    X, y = _spaced(n_clusters, n_features, np.arange(n_samples) % n_clusters, cluster_std, rng)
    n_outliers = round(outlier_fraction * n_samples)
    return _with_outliers(X, y, rng.uniform(-outlier_range, outlier_range, (n_outliers, n_features)))


@documented("like_*", "random_state", returns="labelled")
def make_like(name: str = "S1", *, random_state: Any = None) -> tuple[Any, Any]:
    """Make rows and labels of the size and the difficulty of one of the paper's synthetic sets."""
    if not isinstance(name, str) or name not in SYNTHETIC:
        raise ValueError(f"name must be one of {', '.join(SYNTHETIC)}, got {name!r}")
    rng = check_random_state(random_state)
    if n_clusters := _SIZES.get(name, 0):
        return _spaced(n_clusters, 2, np.repeat(np.arange(n_clusters), 150), 0.35 / np.sqrt(n_clusters), rng)
    if name.startswith("S"):
        return _spaced(15, 2, np.sort(np.arange(5000) % 15), _S_SPREAD[name], rng)
    if name.startswith("dim"):
        return _around(rng.uniform(-1, 1, (16, int(name[3:]))), np.repeat(np.arange(16), 64), 0.05, rng)
    dense = np.array([[-0.85, -0.2], [-0.65, 0.2], [-0.45, -0.2]]) + rng.uniform(-0.02, 0.02, (3, 2))
    wide = np.array([[0.4, -0.8], [0.4, 0.8], [0.65, 0.0], [0.9, -0.8], [0.9, 0.8]]) + rng.uniform(-0.05, 0.05, (5, 2))
    y = np.repeat(np.arange(8), np.repeat([2000, 100], [3, 5]))
    return _around(np.vstack([dense, wide]), y, np.repeat([0.03, 0.05], [3, 5])[y, None], rng)


@documented(returns="contaminated")
@documented("strays_*")
def contaminate(X: Any, y: Any, kind: str = "uniform", *, fraction: float = 0.2, random_state: Any = None) -> Any:
    """Add rows that belong to no cluster."""
    if not isinstance(kind, str) or kind not in CONTAMINATIONS:
        raise ValueError(f"kind must be one of {', '.join(CONTAMINATIONS)}, got {kind!r}")
    (fraction,) = _checked(float, fraction=fraction)
    rng = check_random_state(random_state)
    X, y = check_X_y(X, y, dtype=np.float64)
    if np.max(np.abs(X)) > 1e300:
        raise ValueError("X must be at most 1e300 in size, for what is far from it to be a number; rescale it")
    n, distance = int(np.ceil(fraction * len(X))), {"far": 10, "clumped": 3}.get(kind, 1)
    return _with_outliers(X, y, strays(X, n, rng, distance, cauchy=kind == "cauchy", heaps=5 * (kind == "clumped")))


def strays(X: Any, n: int, rng: Any, distance: float, cauchy: bool = False, heaps: int = 0, width: float = 0.01) -> Any:
    """Rows that belong to no cluster: `distance` half-widths of X around its middle, in heaps, or Cauchy noise."""
    p, middle, half = X.shape[1], (X.max(axis=0) + X.min(axis=0)) / 2, np.ptp(X, axis=0) / 2
    if cauchy:
        return X[rng.randint(len(X), size=n)] + half * rng.standard_cauchy((n, p))
    if not heaps:
        return middle + distance * half * rng.uniform(-1, 1, (n, p))
    away = rng.standard_normal((heaps, p))
    places = middle + distance * half * away / np.max(np.abs(away), axis=1, keepdims=True)
    return places[rng.randint(heaps, size=n)] + width * half * rng.standard_normal((n, p))


def _checked(kind: type, **given: Any) -> list[Any]:
    """These as numbers of Python, int from 1 or float from 0 on; an error names the one that is none of these."""
    least = int(kind is int)
    for name, value in given.items():
        right = isinstance(value, Integral if kind is int else Real) and not isinstance(value, (bool, np.bool_))
        if not right or not least <= (value if isinstance(value, int) else float(value)) <= 10**9:
            wanted = f"{name} must be at least {least}, at most 1e9" + ", and an integer" * (kind is int)
            raise (ValueError if right else TypeError)(f"{wanted}, got {value!r}")
    return [kind(value) for value in given.values()]


def _spaced(n_clusters: int, n_features: int, y: Any, spread: Any, rng: np.random.RandomState) -> tuple[Any, Any]:
    """Clusters around random points in the cube, each the one of many that is farthest from those before."""
    points = rng.uniform(-1, 1, (1, n_features))
    while len(points) < n_clusters:
        tries = rng.uniform(-1, 1, (50, n_features))
        points = np.vstack([points, tries[((tries[:, None] - points) ** 2).sum(-1).min(1).argmax()]])
    return _around(points, y, spread, rng)


def _around(centers: Any, y: Any, spread: Any, rng: np.random.RandomState) -> tuple[Any, Any]:
    """Round Gaussian clusters: a row for each label, and the labels."""
    return centers[y] + spread * rng.standard_normal((len(y), centers.shape[1])), y


def _with_outliers(X: Any, y: Any, outliers: Any) -> tuple[Any, Any]:
    return np.vstack([X, outliers]), np.concatenate([y, np.full(len(outliers), -1)])
