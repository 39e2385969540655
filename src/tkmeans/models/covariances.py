"""Covariance structures of mixture components: full, tied, diagonal, spherical.

Shapes come as stacks, one entry for each component: matrices (K, p, p), variances (K, p) or one variance (K, 1). EM
asks how to whiten differences with a shape, what follows from the sums over rows, and how to extrapolate it.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg.lapack import dtrtri

from tkmeans.shape_stats import ShapeStats
from tkmeans.stats import Array


@final
@dataclass(frozen=True)
class Ellipsoid:
    """Any covariance matrix, for each component or (`tied`) one for all."""

    tied: bool = False
    round = False

    def of_matrices(self, matrices: Array, mass: Array) -> Array:
        """The most likely shapes of components with these scale matrices, or their diagonals, and masses, (K,)."""
        matrices = matrices if matrices.ndim == 3 else np.eye(matrices.shape[1]) * matrices[:, None, :]
        return np.repeat(np.average(matrices, axis=0, weights=mass)[None], len(mass), axis=0) if self.tied else matrices

    def pooled(self, covariances: Array, weights: Array, caution: float) -> Array:
        """The weighted mean of shapes, or with a `caution` below 1 a point on the way to their geometric mean.

        Both in the metric of the arithmetic mean, so that no linear map of the features matters.
        """
        mean = np.tensordot(weights, covariances, 1)
        if caution == 1:
            return mean
        factor = self.whitening(mean[None], len(mean))[0][0]
        variances, axes = np.linalg.eigh(factor @ covariances @ factor.T)
        logarithms = (axes * np.log(np.maximum(variances, 1e-12))[:, None, :]) @ axes.swapaxes(1, 2)
        powers, axes = np.linalg.eigh((1 - caution) * np.tensordot(weights, logarithms, 1))
        root = np.linalg.solve(factor, axes * np.exp(powers / 2))
        return root @ root.T

    def diagonal(self, variances: Array) -> Array:
        """One shape with these variances of the features, (p,)."""
        return np.diag(variances)

    def whitening(self, covariances: Array, n_features: int) -> tuple[Array, Array]:
        """Factors, (K, p, p) or (K, p), that make differences round, and ln det of each shape."""
        root = cholesky(covariances)
        inverse = np.array([dtrtri(triangle, lower=1)[0] if n_features else triangle for triangle in root])
        return inverse, 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)

    def log_sizes(self, covariances: Array) -> Array:
        """The logarithm of |Sigma|^(1/p), (K,)."""
        return 2 * np.log(np.diagonal(cholesky(covariances), axis1=1, axis2=2)).mean(axis=1)

    def around(self, scatter: Array, w: Array, step: Array) -> Array:
        """The sums that a shape follows from, around centres that lie `step` away, from an engine's sums."""
        p = scatter.shape[1]
        left = scatter - w[:, None, None] * (step[:, :, None] * step[:, None, :])
        return left + np.eye(p) * (1e-15 * p * scatter + 1e-200)  # rounding has no sign, and no variance is 0

    def squares(self, factors: Array, scatter: Array) -> Array:
        """The trace of each inverse shape times `scatter`, (K,)."""
        return np.sum((factors @ scatter) * factors, axis=(1, 2))

    def part(self, covariances: Array, features: Array) -> Array:
        """The shapes over some of the features, a mask (p,)."""
        return covariances[:, features][:, :, features]

    def completed(self, stats: ShapeStats, covariances: Array, features: Array) -> ShapeStats:
        """The expected sums over all features, from the sums of rows of which only these were observed.

        Differences continue by regression on what was observed; its residuals add their covariance.
        """
        cross = covariances[:, :, features]  # (K, p, q)
        factors, _ = self.whitening(self.part(covariances, features), cross.shape[2])
        ahead = cross @ factors.swapaxes(1, 2) @ factors
        beside = covariances - ahead @ cross.swapaxes(1, 2)
        beside[:, features], beside[:, :, features] = 0.0, 0.0
        ahead[:, features] = np.eye(int(np.count_nonzero(features)))
        scatter = ahead @ stats.scatter @ ahead.swapaxes(1, 2) + stats.n[:, None, None] * beside
        return stats._replace(wx=np.einsum("kpq,kq->kp", ahead, stats.wx), scatter=scatter)

    def logarithm(self, covariances: Array) -> Array:
        """Without constraints, for extrapolation.

        The Cholesky factor, rows over their diagonal, whose logarithm stands there: no unit of a feature matters.
        Of one feature that of the variance: then all shapes are one model.
        """
        if covariances.shape[1] == 1:
            return np.log(covariances)
        root = cholesky(covariances)
        diagonal = np.diagonal(root, axis1=1, axis2=2)
        return root / diagonal[:, :, None] + (np.log(diagonal) - 1)[:, :, None] * np.eye(root.shape[1])

    def exponential(self, logarithm: Array, like: Array) -> Array:
        """The inverse, with no variance more than a hundredfold beyond its own in `like`."""
        if logarithm.shape[1] == 1:
            return np.exp(np.clip(logarithm, np.log(like / 100), np.log(like * 100)))
        identity = np.eye(logarithm.shape[1])
        before = np.log(np.diagonal(cholesky(like), axis1=1, axis2=2))
        after = np.clip(np.diagonal(logarithm, axis1=1, axis2=2), before - np.log(10), before + np.log(10))
        root = (logarithm * (1 - identity) + identity) * np.exp(after)[:, :, None]
        return root @ root.swapaxes(1, 2)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """How many numbers the shapes are made of."""
        return (1 if self.tied else n_components) * n_features * (n_features + 1) // 2


@dataclass(frozen=True)
class AxisAligned:
    """A variance for each feature, or (`round`) one for all features."""

    tied = False
    round: bool = False

    def of_matrices(self, matrices: Array, mass: Array) -> Array:
        """Their diagonals, which may be given instead, or the mean of these."""
        variances = matrices if matrices.ndim == 2 else np.diagonal(matrices, axis1=1, axis2=2)
        return variances.mean(axis=1, keepdims=True) if self.round else variances.copy()

    def pooled(self, covariances: Array, weights: Array, caution: float) -> Array:
        """The same, of each variance."""
        mean = weights @ covariances
        return mean * np.exp((1 - caution) * (weights @ np.log(np.maximum(covariances / mean, 1e-12))))

    def diagonal(self, variances: Array) -> Array:
        """The variances, or their mean."""
        return variances.mean(keepdims=True) if self.round else variances

    def whitening(self, covariances: Array, n_features: int) -> tuple[Array, Array]:
        """One over the standard deviations."""
        factors = np.broadcast_to(1 / np.sqrt(covariances), (len(covariances), n_features))
        return factors, np.broadcast_to(np.log(covariances), factors.shape).sum(axis=1)

    def log_sizes(self, covariances: Array) -> Array:
        """The mean logarithm of the variances."""
        return np.log(covariances).mean(axis=1)

    def around(self, scatter: Array, w: Array, step: Array) -> Array:
        """Of weighted squares; their mean over features if round."""
        squares = np.maximum(scatter - w[:, None] * np.square(step), 1e-16 * scatter + 1e-200)  # rounding has no sign
        return squares.mean(axis=1, keepdims=True) if self.round else squares

    def squares(self, factors: Array, scatter: Array) -> Array:
        """Feature by feature."""
        return np.sum(np.square(factors) * scatter, axis=1)

    def part(self, covariances: Array, features: Array) -> Array:
        """Some of the variances; the one there is, if round."""
        return covariances if self.round else covariances[:, features]

    def completed(self, stats: ShapeStats, covariances: Array, features: Array) -> ShapeStats:
        """Features are independent: what was not observed is as it was."""
        wx = np.zeros_like(stats.n, shape=(len(stats.n), len(features)))
        scatter = stats.n[:, None] * np.broadcast_to(covariances, wx.shape)
        wx[:, features], scatter[:, features] = stats.wx, stats.scatter
        return stats._replace(wx=wx, scatter=scatter)

    def logarithm(self, covariances: Array) -> Array:
        """Number by number."""
        return np.log(covariances)

    def exponential(self, logarithm: Array, like: Array) -> Array:
        """Number by number."""
        before = np.log(like)
        return np.exp(np.clip(logarithm, before - np.log(100), before + np.log(100)))

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
    return options[np.argmin((mass * (np.log(options) + sizes / options)).sum(axis=1))]


def cholesky(covariances: Array) -> Array:
    """Lower triangular factors, (K, p, p); where rounding leaves none, of the nearest positive definite matrices."""
    try:
        return np.linalg.cholesky(covariances)
    except np.linalg.LinAlgError:
        unit = np.sqrt(np.maximum(np.diagonal(covariances, axis1=1, axis2=2), 1e-200))  # (K, p)
        variances, axes = np.linalg.eigh(covariances / (unit[:, :, None] * unit[:, None, :]))
        deviations = np.sqrt(np.maximum(variances, 1e-15 * np.maximum(variances[:, -1:], 1.0)))
        # The Cholesky factor of A A^T is the transposed triangle of A^T = QR, up to the signs of its rows.
        upper: Array = np.linalg.qr((axes * deviations[:, None, :]).swapaxes(1, 2), mode="r")
        signs = np.where(np.diagonal(upper, axis1=1, axis2=2) < 0, -1.0, 1.0)[:, :, None]
        return unit[:, :, None] * (upper * signs).swapaxes(1, 2)


Shape = Ellipsoid | AxisAligned
SHAPES: dict[str, Shape] = {"full": Ellipsoid(), "tied": Ellipsoid(tied=True)}
SHAPES |= {"diag": AxisAligned(), "spherical": AxisAligned(round=True)}
