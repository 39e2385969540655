"""How good a clustering is: the three measures of the paper, and the centroid index.

ARI is scikit-learn's. MSE and W/B need no true labels; the paper does not define them, its code has these formulas.
"""

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import column_or_1d

from tkmeans.docstrings import documented
from tkmeans.sources.number_checks import checked_points

__all__ = ["adjusted_rand_score", "centroid_index", "clustering_mse", "within_between_ratio"]

LARGEST = 1e150  # whose square is a number


@documented("centroid_*", returns="index : int\n    0 if both clusterings have the same clusters.")
def centroid_index(centers: Any, other: Any) -> int:
    """Count the clusters whose centre another clustering lacks.

    Each centre of one clustering is assigned to the nearest one of the other, and those that none is assigned to are
    counted; then the other way round, and the larger count is the index. It is 0 if both have the same clusters, and c
    if c centres would have to move. It counts clusters, where the adjusted Rand index counts pairs of rows.

    References
    ----------
    P. Fränti, M. Rezaei and Q. Zhao, "Centroid index: cluster level similarity measure", Pattern Recognition 47 (2014).
    """
    ours, theirs = checked_points(centers, "centers", LARGEST), checked_points(other, "other", LARGEST)
    if ours.shape[1] != theirs.shape[1]:
        raise ValueError(f"centers have {ours.shape[1]} features and other {theirs.shape[1]}; give both the same")
    d2 = cdist(ours, theirs, "sqeuclidean")
    return max(d2.shape[axis] - len(np.unique(d2.argmin(axis=axis))) for axis in (0, 1))  # centres that none chose


@documented("mse_*", returns="mse : float\n    0 if all rows of a cluster are equal.")
def clustering_mse(X: Any, labels: Any) -> float:
    r"""Compute the mean squared distance of the rows to the mean of their cluster.

    .. math:: \mathrm{MSE} = \frac1N \sum_k \sum_{n: l_n = k} \|x_n - \bar x_k\|^2,
        \qquad \bar x_k = \frac1{N_k} \sum_{n: l_n = k} x_n

    It looks at the labels alone. k-means minimises it, so no method can do better than the best k-means run: a robust
    method that leaves outliers out of its centres is not after this number.
    """
    X, labels = _checked(X, labels)
    number = np.unique(labels, return_inverse=True)[1]
    means = np.column_stack([np.bincount(number, column) for column in X.T]) / np.bincount(number)[:, None]  # (K, p)
    return float(np.mean(((X - means[number]) ** 2).sum(axis=1)))


@documented("between_*", returns="ratio : float\n    Smaller for narrow clusters that are far apart.")
def within_between_ratio(X: Any, labels: Any, centers: Any) -> float:
    r"""Compute W/B, the scatter within clusters over the scatter between them.

    .. math:: W = \frac1N \sum_n \|x_n - \mu_{l_n}\|^2, \qquad
        B = \frac1N \sum_k N_k \|\bar x - \mu_k\|^2

    with the centres that the method *returned*, which need not be means: then W + B is not the total scatter, and
    centres that lie far out make B larger and the ratio smaller. Infinite if all centres are the mean of the rows.
    """
    X, labels = _checked(X, labels)
    centers = checked_points(centers, "centers", LARGEST)
    if centers.shape[1] != X.shape[1]:
        raise ValueError(f"centers must have the {X.shape[1]} features of X, got {centers.shape[1]}")
    if labels.dtype.kind not in "biu":
        raise TypeError(f"labels must be row numbers of centers, got {labels.dtype}")
    labels = labels.astype(np.intp)
    if labels.min() < 0 or labels.max() >= len(centers):
        found = f"got {labels.min()} to {labels.max()}"
        raise ValueError(f"labels must be row numbers of centers, 0 to {len(centers) - 1}, {found}")
    between = np.bincount(labels, minlength=len(centers)) @ ((X.mean(axis=0) - centers) ** 2).sum(axis=1) / len(X)
    return float(np.mean(((X - centers[labels]) ** 2).sum(axis=1)) / between) if between > 0 else float("inf")


def _checked(X: Any, labels: Any) -> tuple[Any, Any]:
    X, labels = checked_points(X, "X", LARGEST), column_or_1d(labels)
    if len(labels) != len(X):
        raise ValueError(f"labels must have an entry for each of the {len(X)} rows of X, got {len(labels)}")
    return X, labels
