"""Covariance structures of mixture components: full, tied, diagonal, spherical.

Shapes come as stacks, one entry for each component: matrices (K, p, p), variances
(K, p) or one variance (K,). What EM needs of a shape is how to whiten differences with
it, what to sum over rows, and the best admissible shape for given sums.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri

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
        """What makes differences round (see `whiten`), and ln det of each shape."""

    @abstractmethod
    def whiten(self, away: Array, factor: Array) -> Array:
        """Differences (p, n) in the metric of one component."""

    @abstractmethod
    def scatter(self, weight: Array, away: Array) -> Array:
        """The sum over rows that the shape follows from."""

    @abstractmethod
    def below(self, covariances: Array, floor: float) -> Array:
        """Which shapes have a variance below `floor` in some direction, (K,)."""

    @abstractmethod
    def raised(self, covariances: Array, floor: float) -> Array:
        """The most likely shapes with no variance below `floor`."""

    @abstractmethod
    def logarithm(self, covariances: Array) -> Array:
        """Without constraints, for extrapolation."""

    @abstractmethod
    def exponential(self, logarithm: Array, like: Array) -> Array:
        """The inverse, with variances no more than a hundredfold beyond those of `like`."""

    @abstractmethod
    def n_parameters(self, n_components: int, n_features: int) -> int:
        """How many numbers the shapes are made of."""


@final
@dataclass(frozen=True)
class Ellipsoid(Shape):
    """Any covariance matrix, for each component or for all."""

    tied: bool = False

    def start(self, variance: float, n_components: int, n_features: int) -> Array:
        """Multiples of the identity."""
        return np.tile(variance * np.eye(n_features), (n_components, 1, 1))

    def whitening(self, covariances: Array, n_features: int) -> tuple[Array, Array]:
        """The inverse of the Cholesky factor or, where rounding leaves none, axes over their standard deviations."""
        try:
            root = np.linalg.cholesky(covariances)
        except np.linalg.LinAlgError:
            variances, axes = _principal(covariances)
            return (axes / np.sqrt(variances)[:, None, :]).swapaxes(1, 2), np.log(variances).sum(axis=1)
        inverse = np.array([dtrtri(triangle, lower=1)[0] for triangle in root])
        return inverse, 2 * np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)

    def whiten(self, away: Array, factor: Array) -> Array:
        """Round, in some coordinates."""
        return factor @ away

    def scatter(self, weight: Array, away: Array) -> Array:
        """The sum of weighted outer products."""
        part = np.sqrt(weight) * away
        return part @ part.T  # symmetric, which halves the work

    def below(self, covariances: Array, floor: float) -> Array:
        """Those that are not positive definite without the floor."""
        return np.array([dpotrf(matrix)[1] != 0 for matrix in covariances - floor * np.eye(covariances.shape[1])])

    def raised(self, covariances: Array, floor: float) -> Array:
        """Eigenvalues below the floor are raised to it: the constrained maximum of the likelihood."""
        variances, axes = np.linalg.eigh(covariances)
        return _composed(np.maximum(variances, floor), axes)

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
        return 1 / np.sqrt(covariances), np.log(covariances).mean(axis=1) * n_features

    def whiten(self, away: Array, factor: Array) -> Array:
        """Feature by feature."""
        return away * factor[:, None]

    def scatter(self, weight: Array, away: Array) -> Array:
        """The sum of weighted squares; their mean over features if round."""
        squares = np.square(away) @ weight
        return squares.mean(keepdims=True) if self.round else squares

    def below(self, covariances: Array, floor: float) -> Array:
        """The least variance decides."""
        return covariances.min(axis=1) < floor

    def raised(self, covariances: Array, floor: float) -> Array:
        """Variances below the floor are raised to it."""
        return np.maximum(covariances, floor)

    def logarithm(self, covariances: Array) -> Array:
        """Number by number."""
        return np.log(covariances)

    def exponential(self, logarithm: Array, like: Array) -> Array:
        """Number by number."""
        return _within_reach(logarithm, like)

    def n_parameters(self, n_components: int, n_features: int) -> int:
        """One for each feature, or one."""
        return n_components * (1 if self.round else n_features)


def _principal(covariances: Array) -> tuple[Array, Array]:
    """Variances along the axes, and the axes; positive even where rounding leaves nothing of the least."""
    variances, axes = np.linalg.eigh(covariances)
    return np.maximum(variances, 1e-15 * variances[:, -1:]), axes


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
