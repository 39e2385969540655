"""Rows as the components of a mixture see them: moments, and distances in each one's metric.

Weights are (K, n), centres (K, p), scatters and covariances (K, p, p), squared distances (K, n). One component after
the other: what is made on the way stays in the processor's cache.
"""

from typing import final

import numpy as np

from tkmeans.stats import Array


@final
class Rows:
    """The rows of an array."""

    def __init__(self, x: Array) -> None:
        self.x = np.ascontiguousarray(x)  # (n, p)
        self._features = np.ascontiguousarray(x.T)  # sums over features then run along the rows

    def means(self, weight: Array) -> Array:
        """The weighted means."""
        return weight @ self.x / weight.sum(axis=1)[:, None]

    def scatters(self, weight: Array, centers: Array) -> Array:
        """Of the rows whose part is not lost in rounding: most are some other component's altogether."""
        scatter = np.empty((len(centers), *2 * centers.shape[1:]))
        for k, (w, center) in enumerate(zip(weight, centers, strict=True)):
            own = np.flatnonzero(~(w <= np.finfo(float).eps / len(w) * w.sum()))  # not a number counts
            part = (self._features[:, own] - center[:, None]) * np.sqrt(w[own])
            np.matmul(part, part.T, out=scatter[k])  # symmetric, which halves the work
        return scatter

    def measure(self, centers: Array, covariances: Array) -> tuple[Array, Array]:
        """(x - c)^T P (x - c), where P is the inverse of C, and the determinants of C."""
        d2 = np.empty((len(centers), len(self.x)))
        for k, (center, precision) in enumerate(zip(centers, np.linalg.inv(covariances), strict=True)):
            away = self._features - center[:, None]
            np.einsum("pn,pn->n", precision @ away, away, out=d2[k])
        return d2, np.linalg.det(covariances)
