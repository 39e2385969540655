"""Rows as the components of a mixture see them: moments, and distances in each one's metric.

What is quickest depends on how many features there are, so there are two kinds of rows. Weights are (K, n),
centres (K, p), scatters and covariances (K, p, p), squared distances (K, n).
"""

from typing import final

import numpy as np

from tkmeans.stats import Array

_FEW = 3


@final
class FewFeatures:
    """Rows by the products of their features, in which moments and squared distances are linear.

    Then one product of matrices serves all components. It costs the digits by which the square of a row exceeds its
    distance, so rows should be around the origin; and the number of products grows with p^2.
    """

    def __init__(self, x: Array) -> None:
        self.x = x  # (n, p)
        self._pairs = first, second = np.triu_indices(x.shape[1])
        self._terms = np.concatenate([np.ones((1, len(x))), x.T, x.T[first] * x.T[second]])  # (m, n)

    def means(self, weight: Array) -> Array:
        """The weighted means."""
        sums = weight @ self._terms[: self.x.shape[1] + 1].T
        return sums[:, 1:] / sums[:, :1]

    def scatters(self, weight: Array, centers: Array) -> Array:
        """w (x - c)(x - c)^T = w x x^T - c (w x)^T - (w x - w c) c^T: one product of matrices for all sums."""
        p, (first, second) = self.x.shape[1], self._pairs
        mass, sums, squares = np.split(weight @ self._terms.T, [1, p + 1], axis=1)
        scatter = np.empty((len(centers), p, p))
        scatter[:, first, second] = scatter[:, second, first] = squares
        scatter -= centers[:, :, None] * sums[:, None, :]
        return scatter - (sums - mass * centers)[:, :, None] * centers[:, None, :]

    def measure(self, centers: Array, covariances: Array) -> tuple[Array, Array]:
        """x^T P x - 2 (P c)^T x + c^T P c, where P is the inverse of C, and the determinants of C."""
        precisions, (first, second) = np.linalg.inv(covariances), self._pairs
        turned = (precisions @ centers[:, :, None])[:, :, 0]
        squares = precisions[:, first, second] * np.where(first == second, 1, 2)
        constant = np.sum(centers * turned, axis=1, keepdims=True)
        d2 = np.concatenate([constant, -2 * turned, squares], axis=1) @ self._terms
        return d2, np.linalg.det(covariances)


@final
class ManyFeatures:
    """Rows as they are, looked at by one component after the other."""

    def __init__(self, x: Array) -> None:
        self.x = np.ascontiguousarray(x)  # (n, p)

    def means(self, weight: Array) -> Array:
        """The weighted means."""
        return weight @ self.x / weight.sum(axis=1)[:, None]

    def scatters(self, weight: Array, centers: Array) -> Array:
        """Of the rows whose part is not lost in rounding: most are some other component's altogether."""
        scatter = np.empty((len(centers), *2 * centers.shape[1:]))
        for k, (w, center) in enumerate(zip(weight, centers, strict=True)):
            own = np.flatnonzero(~(w <= np.finfo(float).eps / len(w) * w.sum()))  # not a number counts
            part = (self.x[own] - center) * np.sqrt(w[own])[:, None]
            np.matmul(part.T, part, out=scatter[k])  # symmetric, which halves the work
        return scatter

    def measure(self, centers: Array, covariances: Array) -> tuple[Array, Array]:
        """(x - c)^T P (x - c), where P is the inverse of C, and the determinants of C."""
        d2 = np.empty((len(centers), len(self.x)))
        for k, (center, precision) in enumerate(zip(centers, np.linalg.inv(covariances), strict=True)):
            away = self.x - center
            np.einsum("np,np->n", away @ precision, away, out=d2[k])
        return d2, np.linalg.det(covariances)


Rows = FewFeatures | ManyFeatures


def rows_of(x: Array) -> Rows:
    """The rows of an array, (n, p)."""
    return FewFeatures(x) if x.shape[1] <= _FEW else ManyFeatures(x)
