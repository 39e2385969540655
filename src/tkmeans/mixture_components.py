"""Fitted components of a Student-t mixture in the user's coordinates: what `tkmeans.fitted` asks of shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np
from scipy.special import entr

from tkmeans.fitted import FARTHEST_SQUARE, Evidence, Left
from tkmeans.models.covariances import Shape
from tkmeans.models.mixture import EStep, MixtureParams, StudentMixture
from tkmeans.sources import Source
from tkmeans.sources.base import nearest_to_zero
from tkmeans.stats import Array, Block, Frame, Rows


@final
class Components(NamedTuple):
    """The components of a mixture."""

    centers: Array  # (K, p) mu
    covariances: Array  # (K, ...) Sigma, see `tkmeans.models.covariances`
    dof: Array  # (K,) nu
    weights: Array  # (K,) pi
    shape: Shape  # what EM asks of the covariances

    @classmethod
    def leaving(cls, fit: Any, frame: Frame, dtype: Any, model: StudentMixture) -> Left:  # noqa: ARG003
        """What a fit leaves, out of the frame it was made in; what differs by rounding alone is of one size."""
        params, weights = fit.params, np.exp(fit.params.log_weights)
        covariances = _rescaled(params.covariances, frame.unit * np.ones(params.centers.shape[1]))
        found = cls(frame.leave(params.centers), covariances, np.array(params.dof), weights, model.shape)
        return Left(found, np.round(weights, 12), float(np.log(frame.unit * np.ones(params.centers.shape[1])).sum()))

    @classmethod
    def from_attributes(cls, fitted: dict[str, Any], model: StudentMixture) -> Components:
        """The components that these fitted attributes tell of."""
        centers, covariances = fitted["means_"], fitted["covariances_"]
        if model.shape.tied:
            covariances = np.broadcast_to(covariances, (len(centers), *covariances.shape))
        covariances = covariances[:, None] if covariances.ndim == 1 else covariances
        return cls(centers, covariances, fitted["dof_"], fitted["weights_"], model.shape)

    def take(self, order: Array) -> Components:
        """The same with the components in another order."""
        centers, covariances, dof, weights, shape = self
        return Components(centers[order], covariances[order], dof[order], weights[order], shape)

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes, by name."""
        covariances = self.covariances[0] if self.shape.tied else self.covariances
        covariances = covariances[:, 0] if self.shape.round else covariances
        attributes = {"weights_": self.weights, "means_": self.centers, "dof_": self.dof}
        return attributes | {"covariances_": covariances}

    def frame(self, dtype: Any) -> Frame:
        """The unit of a feature is its standard deviation, averaged over the components."""
        variances = self.covariances
        if variances.ndim == 3:
            variances = np.diagonal(variances, axis1=1, axis2=2)
        unit: Any = np.sqrt(variances.mean(axis=0)) * np.ones(self.centers.shape[1])
        return Frame(nearest_to_zero(self.centers), unit)

    def entered(self, frame: Frame) -> MixtureParams:
        """The parameters in the coordinates of a frame."""
        covariances = _rescaled(self.covariances, 1 / frame.unit)
        return MixtureParams(frame.enter(self.centers), covariances, self.dof, np.log(self.weights))

    def posterior(self, model: Any, frame: Frame) -> ShapePosterior:
        """Ready to look at rows."""
        gain = 1 + self.centers.shape[1] / self.dof
        return ShapePosterior(model, self, model.looking(self.entered(frame)), gain, float(np.log(frame.unit).sum()))

    def draw(self, n_rows: int, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Rows of the model, and the component of each."""
        n_components, p = self.centers.shape
        labels = rng.choice(n_components, n_rows, p=self.weights / self.weights.sum())
        frame = self.frame(np.float64)
        params = self.entered(frame)
        factors, _ = self.shape.whitening(params.covariances, p)
        noise = rng.standard_normal((n_rows, p))
        for k, factor in enumerate(factors):
            own = labels == k
            u = rng.chisquare(self.dof[k], own.sum()) / self.dof[k]
            colored = np.linalg.solve(factor, noise[own].T).T if factor.ndim == 2 else noise[own] / factor
            noise[own] = params.centers[k] + colored / np.sqrt(u)[:, None]
        return frame.leave(noise), labels


@final
class ShapePosterior(NamedTuple):
    """The E-step of a mixture; distances are in the metric of each component."""

    model: Any
    components: Components
    look: Callable[[Array], EStep]
    gain: Array  # (K,) u at the centre
    log_unit: float  # of the frame's volume

    @property
    def unit(self) -> float:
        """A component's own metric has none."""
        return 1.0

    def rows(self, block: Block) -> Rows:
        """Label, squared distance, log-density and trust of each row."""
        e = self.look(block.frame.enter(block.X))
        label = e.tau.argmax(axis=0)
        return Rows(label, e.d2[label, np.arange(len(label))], e.log_density, self.gain @ (e.tau * e.relative_u))

    def log_volume(self, n_observed: Any) -> float:
        """All features are observed."""
        return self.log_unit

    def memberships(self, block: Block) -> Array:
        """The probability of every component, (n, K)."""
        return self.look(block.frame.enter(block.X)).tau.T

    def entropy(self, block: Block) -> Array:
        """Of the memberships of each row."""
        return np.sum(entr(self.memberships(block)), axis=1)

    def distances(self, block: Block) -> Array:
        """The Mahalanobis distance to every centre, (n, K)."""
        return np.sqrt(np.minimum(self.look(block.frame.enter(block.X)).d2, FARTHEST_SQUARE)).T

    def evidence(self, source: Source, *, entropy: bool) -> Evidence:
        """How well all rows of a source fit."""
        blocks: Any = list(source.blocks())  # type: ignore[attr-defined]
        log_density = np.concatenate([self.look(b.frame.enter(b.X)).log_density for b in blocks]) - self.log_unit
        total = float(len(log_density) if source.weight is None else source.weight.sum())
        summed = log_density.sum() if source.weight is None else (log_density * source.weight).sum()
        open_questions = float(np.sum(np.concatenate([self.entropy(b) for b in blocks]))) if entropy else 0.0
        return Evidence(float(summed), open_questions, total, self._n_parameters())

    def _n_parameters(self) -> int:
        """Centres, shapes, weights, and nu where it was estimated."""
        K, p = self.components.centers.shape
        n_dof = 0 if not self.model.estimate_dof else 1 if self.model.shared_dof else K
        return K * p + self.components.shape.n_parameters(K, p) + K - 1 + n_dof


def _rescaled(covariances: Array, unit: Array) -> Array:
    """Shapes in other units: (K, p, p), (K, p) or (K, 1), where all units are equal."""
    if covariances.ndim == 3:
        return covariances * np.outer(unit, unit)
    return covariances * np.square(unit)[: covariances.shape[1]]
