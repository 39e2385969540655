"""Rows as the components of a mixture see them: moments, and distances in each one's metric.

What is quickest depends on how many features there are, so there are two kinds of rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache
from typing import Self, final

import numpy as np
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from tkmeans.stats import Array

_FEW = 3


class Rows(ABC):
    """n rows of p features. Weights are (K, n), centres (K, p)."""

    @staticmethod
    def of(x: Array) -> Rows:
        """The rows of an array, (n, p)."""
        return FewFeatures(x.shape[1], products(x)) if x.shape[1] <= _FEW else ManyFeatures(x)

    @abstractmethod
    def means(self, weight: Array) -> Array:
        """The weighted means, (K, p)."""

    @abstractmethod
    def scatters(self, weight: Array, centers: Array | None = None) -> tuple[Array, Array]:
        """The centres, or else the weighted means, and the sums of w (x - c)(x - c)^T around them, (K, p, p)."""

    @abstractmethod
    def measure(self, centers: Array, covariances: Array) -> tuple[Array, Array]:
        """(x - c)^T C^-1 (x - c), (K, n), and the determinants of C, (K,)."""

    @abstractmethod
    def join(self, other: Self) -> Self:
        """These rows, then others."""


@final
class FewFeatures(Rows):
    """Rows by the products of their features, in which moments and squared distances are linear.

    Then one product of matrices serves all components. It costs the digits by which the
    square of a row exceeds its distance, so rows should be around the origin; and the
    number of products grows with p^2.
    """

    def __init__(self, n_features: int, terms: Array) -> None:
        self._n_features, self._terms = n_features, terms  # (m, n), see `products`

    def means(self, weight: Array) -> Array:
        """One product of matrices."""
        sums = weight @ self._terms[: self._n_features + 1].T
        return sums[:, 1:] / sums[:, :1]

    def scatters(self, weight: Array, centers: Array | None = None) -> tuple[Array, Array]:
        """w (x - c)(x - c)^T = w x x^T - c (w x)^T - (w x - w c) c^T: one product of matrices for all sums."""
        p = self._n_features
        mass, sums, squares = np.split(weight @ self._terms.T, [1, p + 1], axis=1)
        if centers is None:
            centers = sums / mass
        first, second = _pairs(p)
        scatter = np.empty((len(centers), p, p))
        scatter[:, first, second] = scatter[:, second, first] = squares
        scatter -= centers[:, :, None] * sums[:, None, :]
        scatter -= (sums - mass * centers)[:, :, None] * centers[:, None, :]
        return centers, scatter

    def measure(self, centers: Array, covariances: Array) -> tuple[Array, Array]:
        """x^T P x - 2 (P c)^T x + c^T P c, where P is the inverse of C."""
        precisions = np.linalg.inv(covariances)
        turned = (precisions @ centers[:, :, None])[:, :, 0]
        first, second = _pairs(centers.shape[1])
        squares = precisions[:, first, second] * np.where(first == second, 1, 2)
        constant = np.sum(centers * turned, axis=1, keepdims=True)
        d2 = np.concatenate([constant, -2 * turned, squares], axis=1) @ self._terms
        return d2, np.linalg.det(covariances)

    def join(self, other: FewFeatures) -> FewFeatures:
        """These rows, then others."""
        return FewFeatures(self._n_features, np.concatenate([self._terms, other._terms], axis=1))


@final
class ManyFeatures(Rows):
    """Rows as they are, looked at by one component after the other."""

    def __init__(self, x: Array) -> None:
        self.x = np.ascontiguousarray(x)  # (n, p)
        self._features = np.ascontiguousarray(x.T)  # sums over features then run along the rows

    def means(self, weight: Array) -> Array:
        """One product of matrices."""
        return weight @ self.x / weight.sum(axis=1)[:, None]

    def scatters(self, weight: Array, centers: Array | None = None) -> tuple[Array, Array]:
        """Of the rows that count: with many features most are some other component's altogether."""
        if centers is None:
            centers = self.means(weight)
        scatter = np.empty((len(centers), *2 * centers.shape[1:]))
        for k, (w, center) in enumerate(zip(weight, centers, strict=True)):
            # All rows but those whose part is lost in rounding anyway; what is not a number counts.
            own = np.flatnonzero(~(w <= np.finfo(float).eps / max(len(w), 1) * w.sum()))
            part = self.x[own] - center
            part *= np.sqrt(w[own])[:, None]
            np.matmul(part.T, part, out=scatter[k])  # symmetric, which halves the work
        return centers, scatter

    def measure(self, centers: Array, covariances: Array) -> tuple[Array, Array]:
        """|L^-1 (x - c)|^2, and the square of the product of L's diagonal, where L is the Cholesky factor of C."""
        d2, det = np.empty((len(centers), len(self.x))), np.empty(len(centers))
        away = np.empty_like(self._features)
        for k, (center, covariance) in enumerate(zip(centers, covariances, strict=True)):
            np.subtract(self._features, center[:, None], out=away)
            factor, failed = dpotrf(covariance, lower=1)
            if failed:  # not positive definite, or not numbers: what the inverse says of it
                np.einsum("pn,pn->n", np.linalg.inv(covariance) @ away, away, out=d2[k])
                det[k] = np.linalg.det(covariance)
                continue
            dtrsm(1.0, factor, away.T, side=1, lower=1, trans_a=1, overwrite_b=1)  # `away` becomes L^-1 away
            np.einsum("pn,pn->n", away, away, out=d2[k])
            det[k] = np.prod(np.diagonal(factor)) ** 2
        return d2, det

    def join(self, other: ManyFeatures) -> ManyFeatures:
        """These rows, then others."""
        return ManyFeatures(np.concatenate([self.x, other.x]))


def products(x: Array) -> Array:
    """1, the features of each row, and their products two by two: (m, n), m = (p + 1)(p + 2)/2."""
    features = x.T
    first, second = _pairs(len(features))
    return np.concatenate([np.ones((1, len(x))), features, features[first] * features[second]])


@cache
def _pairs(n_features: int) -> tuple[Array, Array]:
    """The two features of every product."""
    return np.triu_indices(n_features)
