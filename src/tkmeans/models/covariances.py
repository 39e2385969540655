"""Covariance structures of mixture components: full, tied, diagonal, spherical.

Shapes come as stacks, one entry for each component: matrices (K, p, p), variances
(K, p) or one variance (K, 1). What EM needs of a shape is how to whiten differences with
it, what follows from the sums over rows, and how to extrapolate it.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg.lapack import dtrtri

from tkmeans.shape_stats import ShapeStats
from tkmeans.stats import Array


class Shape(ABC):
    """A family of covariances."""

    tied = False  # whether all components share one shape
    round = False  # whether all features share one variance

    @abstractmethod
    def start(self, variance: float, n_components: int, n_features: int) -> Array:
        """Round shapes of this variance."""

    @abstractmethod
    def whitening(self, covariances: Array, n_features: int) -> tuple[Array, Array]:
        """Factors, (K, p, p) or (K, p), that make differences round, and ln det of each shape."""

    @abstractmethod
    def around(self, scatter: Array, w: Array, step: Array) -> Array:
        """The sums that a shape follows from, around centres that lie `step` away, from an engine's sums."""

    @abstractmethod
    def squares(self, factors: Array, scatter: Array, n_features: int) -> Array:
        """The trace of each inverse shape times `scatter`, (K,)."""

    @abstractmethod
    def part(self, covariances: Array, features: Array) -> Array:
        """The shapes over some of the features, a mask (p,)."""

    @abstractmethod
    def completed(self, stats: ShapeStats, covariances: Array, features: Array) -> ShapeStats:
        """The expected sums over all features, from the sums of rows of which only these were observed."""

    @abstractmethod
    def rescaled(self, covariances: Array, unit: Array) -> Array:
        """The shapes with every feature multiplied by its unit, (p,)."""

    @abstractmethod
    def logarithm(self, covariances: Array) -> Array:
        """Without constraints, for extrapolation."""

    @abstractmethod
    def exponential(self, logarithm: Array, like: Array) -> Array:
        """The inverse, with variances no more than a hundredfold beyond those of `like`."""

    @abstractmethod
    def n_parameters(self, n_components: int, n_features: int) -> int:
        """How many numbers the shapes are made of."""

    def log_sizes(self, covariances: Array, n_features: int) -> Array:
        """The logarithm of |Sigma|^(1/p), (K,)."""
        return self.whitening(covariances, n_features)[1] / n_features


@final
@dataclass(frozen=True)
class Ellipsoid(Shape):
    """Any covariance matrix, for each component or for all."""

    tied: bool = False

    def start(self, variance: float, n_components: int, n_features: int) -> Array:
        """Multiples of the identity."""
        return np.tile(variance * np.eye(n_features), (n_components, 1, 1))

    def whitening(self, covariances: Array, n_features: int) -> tuple[Array, Array]:
        """The inverse of the Cholesky factor; where rounding leaves none, of the nearest positive definite matrix."""
        try:
            root = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            variances, axes = _principal(covariances)
            # The Cholesky factor of A A^T is the transposed triangle of A^T = QR, up to the signs of its rows.
            upper = np.linalg.qr((axes * np.sqrt(variances)[:, None, :]).swapaxes(1, 2), mode="r")
            root = (upper * np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, :, None]).swapaxes(1, 2)
        inverse = np.array([dtrtri(triangle, lower=1)[0] for triangle in root]).reshape(root.shape)
        return inverse, 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)

    def around(self, scatter: Array, w: Array, step: Array) -> Array:
        """Of weighted outer products."""
        return scatter - w[:, None, None] * (step[:, :, None] * step[:, None, :])

    def squares(self, factors: Array, scatter: Array, n_features: int) -> Array:
        """By the whitened scatter."""
        return np.einsum("kij,jl,kil->k", factors, scatter, factors, optimize=True)

    def part(self, covariances: Array, features: Array) -> Array:
        """A block of each matrix."""
        return covariances[:, features][:, :, features]

    def completed(self, stats: ShapeStats, covariances: Array, features: Array) -> ShapeStats:
        """Differences continue by regression on what was observed; its residuals add their covariance."""
        cross = covariances[:, :, features]  # (K, p, q)
        ahead = cross @ np.linalg.pinv(self.part(covariances, features), hermitian=True)
        beside = covariances - ahead @ cross.swapaxes(1, 2)
        beside[:, features], beside[:, :, features] = 0.0, 0.0
        ahead[:, features] = np.eye(np.count_nonzero(features))
        scatter = ahead @ stats.scatter @ ahead.swapaxes(1, 2) + stats.n[:, None, None] * beside
        return stats._replace(wx=np.einsum("kpq,kq->kp", ahead, stats.wx), scatter=scatter)

    def rescaled(self, covariances: Array, unit: Array) -> Array:
        """Entry by entry."""
        return covariances * np.outer(unit, unit)

    def logarithm(self, covariances: Array) -> Array:
        """The matrix logarithm."""
        variances, axes = _principal(covariances)
        return _composed(np.log(variances), axes)

    def exponential(self, logarithm: Array, like: Array) -> Array:
        """The matrix exponential."""
        values, axes = np.linalg.eigh(logarithm)
        return _composed(_within_reach(values, _principal(like)[0]), axes)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """A symmetric matrix each, or one."""
        return (1 if self.tied else n_components) * n_features * (n_features + 1) // 2


@final
@dataclass(frozen=True)
class AxisAligned(Shape):
    """A variance for each feature, or (`round`) one for all features."""

    round: bool = False

    def start(self, variance: float, n_components: int, n_features: int) -> Array:
        """The same variance everywhere."""
        return np.full((n_components, 1 if self.round else n_features), variance)

    def whitening(self, covariances: Array, n_features: int) -> tuple[Array, Array]:
        """One over the standard deviations."""
        factors = np.broadcast_to(1 / np.sqrt(covariances), (len(covariances), n_features))
        return factors, np.log(covariances).mean(axis=1) * n_features

    def around(self, scatter: Array, w: Array, step: Array) -> Array:
        """Of weighted squares; their mean over features if round."""
        squares = scatter - w[:, None] * np.square(step)
        return squares.mean(axis=1, keepdims=True) if self.round else squares

    def squares(self, factors: Array, scatter: Array, n_features: int) -> Array:
        """Feature by feature."""
        return np.sum(np.square(factors) * scatter, axis=1)

    def part(self, covariances: Array, features: Array) -> Array:
        """Some of the variances; the one there is, if round."""
        return covariances if self.round else covariances[:, features]

    def completed(self, stats: ShapeStats, covariances: Array, features: Array) -> ShapeStats:
        """Features say nothing of each other: what was not observed is as it was."""
        wx = np.zeros_like(stats.n, shape=(len(stats.n), len(features)))
        scatter = stats.n[:, None] * np.broadcast_to(covariances, wx.shape)
        wx[:, features], scatter[:, features] = stats.wx, stats.scatter
        return stats._replace(wx=wx, scatter=scatter)

    def rescaled(self, covariances: Array, unit: Array) -> Array:
        """Number by number; round shapes have one unit."""
        return covariances * np.square(unit)[: covariances.shape[-1]]

    def logarithm(self, covariances: Array) -> Array:
        """Number by number."""
        return np.log(covariances)

    def exponential(self, logarithm: Array, like: Array) -> Array:
        """Number by number."""
        return _within_reach(logarithm, like)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """One for each feature, or one."""
        return n_components * (1 if self.round else n_features)


def sizes_within(sizes: Array, mass: Array, ratio: float) -> Array:
    """The most likely sizes, (K,), of which the largest is at most `ratio` times the smallest.

    They minimise the sum of mass (ln t + size/t) (Fritz, Garcia-Escudero and Mayo-Iscar 2013). Whatever the
    bound m below is, the best t are the sizes held between m and ratio m; and m solves a linear
    equation in each of the intervals between which the set of sizes that are held does not change.
    """
    if not np.max(sizes) > ratio * np.min(sizes):
        return sizes
    edges = np.unique(np.concatenate([sizes, sizes / ratio]))
    inner = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2, [edges[-1] * 2]])[:, None]  # (m, 1)
    low, high = sizes < inner, sizes > ratio * inner  # (m, K)
    held = ((low | high) * mass).sum(axis=1)
    bound = (low * (mass * sizes) + high * (mass * sizes / ratio)).sum(axis=1)
    least = np.where(held > 0, bound / np.where(held > 0, held, 1.0), inner[:, 0])[:, None]  # (m, 1)
    options = np.clip(sizes, least, ratio * least)
    loss = (mass * (np.log(options) + sizes / options)).sum(axis=1)
    best: Array = options[np.argmin(loss)]
    return best


def _principal(covariances: Array) -> tuple[Array, Array]:
    """Variances along the axes, and the axes; positive even where rounding leaves nothing of the least."""
    variances, axes = np.linalg.eigh(covariances)
    return np.maximum(variances, 1e-15 * np.maximum(variances[:, -1:], 1e-285)), axes


def _within_reach(log_variances: Array, like: Array) -> Array:
    return np.exp(np.clip(log_variances, np.log(like.min() / 100), np.log(like.max() * 100)))


def _composed(values: Array, axes: Array) -> Array:
    return (axes * values[:, None, :]) @ axes.swapaxes(1, 2)


SHAPES: dict[str, Shape] = {
    "full": Ellipsoid(),
    "tied": Ellipsoid(tied=True),
    "diag": AxisAligned(),
    "spherical": AxisAligned(round=True),
}
