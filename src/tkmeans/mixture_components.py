"""Fitted components of a Student-t mixture in the user's coordinates: what `tkmeans.fitted` asks of shapes."""

from collections.abc import Callable
from typing import Any, NamedTuple, final

import numpy as np

from tkmeans.fitted import FARTHEST_SQUARE, LEAST_DRAWN, Evidence, Left
from tkmeans.models.covariances import Shape
from tkmeans.models.mixture import MixtureParams, StudentMixture, by_observed
from tkmeans.shape_stats import ShapeKernel, ShapeRows
from tkmeans.sources.base import Source, nearest_to_zero
from tkmeans.stats import LARGEST_SINGLE, Array, Block, Frame, namespace


@final
class Components(NamedTuple):
    """The components of a mixture, and its noise."""

    centers: Array  # (K, p) mu, in the type of the rows
    covariances: Array  # (K, ...) Sigma, see `tkmeans.models.covariances`
    dof: Array  # (K,) nu
    weights: Array  # (K,) pi of a row that is not noise
    shape: Shape  # what EM asks of the covariances
    noise: float = 0.0  # the probability of noise in the bulk
    beyond: float = 0.0  # the probability of noise beyond it
    bulk_center: Array = 0.0  # (p,)
    bulk: Array = 1.0  # (...) like one covariance: where the density of the noise is flat
    box: float = 0.0  # 1 if it is flat in the box around that ellipsoid
    relations: Array | None = None  # of all columns of the rows to those above: `tkmeans.fitting.relations`

    @property
    def columns(self) -> list[int] | None:
        """The columns of rows that the components are of; None for all."""
        return None if self.relations is None else np.flatnonzero(self.relations[:, 0] == 0).tolist()

    @property
    def scale(self) -> float:
        """The size of the smallest component, a variance."""
        return float(np.exp(np.min(self.shape.log_sizes(self.covariances))))

    @property
    def _variances(self) -> Array:
        return np.diagonal(self.covariances, axis1=1, axis2=2) if self.covariances.ndim == 3 else self.covariances

    @classmethod
    def leaving(cls, fit: Any, frame: Frame, dtype: Any, model: StudentMixture) -> Left:
        """What a fit leaves, out of the frame it was made in; what differs by rounding alone is of one size."""
        params, square = fit.params, frame.unit**2
        weights = np.exp(params.log_weights - np.logaddexp.reduce(params.log_weights))
        centers, shapes = frame.leave(params.centers).astype(dtype), params.covariances * square
        bulk_center = frame.leave(params.bulk_center) if params.noise else 0.0
        noise = params.noise, params.beyond, bulk_center, params.bulk * square if params.noise else 1.0, params.box
        return Left(cls(centers, shapes, np.array(params.dof), weights, model.shape, *noise), np.round(weights, 12))

    @classmethod
    def from_attributes(cls, fitted: dict[str, Any], model: StudentMixture) -> "Components":
        """The components that these fitted attributes tell of."""
        centers, covariances = fitted["means_"], fitted["covariances_"]
        if model.shape.tied:
            covariances = np.broadcast_to(covariances, (len(centers), *covariances.shape))
        covariances = covariances[:, None] if covariances.ndim == 1 else covariances
        relations = fitted.get("_relations")
        columns: Any = slice(None) if relations is None else np.flatnonzero(relations[:, 0] == 0)
        noise: tuple[Any, ...] = ()
        if fitted.get("noise_weight_"):
            bulk = model.shape.part(fitted["noise_covariance_"][None], columns)[0]
            where = fitted["noise_center_"][columns], bulk, float(fitted.get("noise_in_box_", False))
            noise = (*fitted["_noise_shares"], *where)
        shapes = np.ascontiguousarray(model.shape.part(covariances, columns))
        found = cls(centers[:, columns], shapes, fitted["dof_"], fitted["weights_"], model.shape, *noise)
        found = found._replace(relations=relations)
        with np.errstate(all="ignore"):  # of relations that no fit has found
            if relations is not None and not np.allclose(found.attributes()["covariances_"], fitted["covariances_"]):
                raise ValueError("the relations of its columns are not those of its shapes")
        return found

    def take(self, order: Array) -> "Components":
        """The same with the components in another order."""
        return Components._make([*(by_component[order] for by_component in self[:4]), *self[4:]])

    def attributes(self) -> dict[str, Any]:
        """The fitted attributes, by name."""
        covariances = self._over_all(self.covariances[:1] if self.shape.tied else self.covariances)
        covariances = covariances[0] if self.shape.tied else covariances[:, 0] if self.shape.round else covariances
        attributes = {"weights_": self.weights, "means_": self._over_columns(self.centers), "dof_": self.dof}
        attributes |= {"covariances_": covariances, "noise_weight_": float(self.noise + self.beyond)}
        if self.noise:
            where = self._over_columns(self.bulk_center[None])[0], self._over_all(self.bulk[None])[0]
            attributes |= dict(zip(("noise_center_", "noise_covariance_"), where, strict=True))
            attributes |= {"noise_in_box_": bool(self.box), "_noise_shares": [self.noise, self.beyond]}
        return attributes if self.relations is None else attributes | {"_relations": self.relations}

    def _over_columns(self, points: Array, others: int = 1) -> Array:
        """Points, with the columns that follow from theirs; or variances, with `others` 0, and those of constants."""
        if self.relations is None:
            return points
        whole, seen = np.repeat(self.relations[None, :, others], len(points), axis=0), self.relations[:, 0] == 0
        if self.relations.shape[1] > 2:
            whole += points @ self.relations[:, 2:][:, seen].T
        whole[:, seen] = points
        return whole.astype(points.dtype)

    def _over_all(self, covariances: Array) -> Array:
        """Shapes, with the columns that follow from theirs: what these vary beside is as thin as a cluster may be."""
        if self.relations is None or covariances.ndim == 2:
            return self._over_columns(covariances, 0)
        thin, loadings = self.relations[:, 0], self.relations[:, 2:][:, self.relations[:, 0] == 0]
        return loadings @ covariances @ loadings.T + np.diag(thin)

    def frame(self, dtype: Any) -> Frame:
        """The unit is a standard deviation, averaged over features and components, in whatever order these are."""
        variances = np.sort(self._variances, axis=None)
        return Frame(nearest_to_zero(self.centers).astype(dtype), float(np.exp(np.mean(np.log(variances)) / 2)))

    def entered(self, frame: Frame) -> MixtureParams:
        """The parameters in the coordinates of a frame."""
        square, centers = frame.unit**2, frame.enter(self.centers.astype(np.float64))
        log_weights = np.log(np.maximum(self.weights, np.finfo(float).tiny)) + np.log1p(-self.noise - self.beyond)
        bulk_center = frame.enter(np.asarray(self.bulk_center, np.float64)) if self.noise else 0.0
        noise = self.noise, self.beyond, bulk_center, self.bulk / square if self.noise else 1.0, self.box
        return MixtureParams(centers, self.covariances / square, self.dof, log_weights, *noise)

    def posterior(self, model: Any, frame: Frame) -> "ShapePosterior":
        """Ready to look at rows, by the engine of the model."""
        return ShapePosterior(model, self, self.entered(frame))

    def fits_single(self, least: float, most: float) -> bool:
        """Whether single precision can hold the parameters, with a spread between these bounds."""
        narrow, wide = np.sqrt(np.min(self._variances)), np.sqrt(np.max(self._variances))
        return bool(least < narrow and wide < most and np.max(np.abs(self.centers)) < LARGEST_SINGLE)

    def draw(self, n_rows: int, rng: np.random.RandomState) -> tuple[Array, Array]:
        """Rows of the model's components, and the component of each; noise is not drawn."""
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
            noise[own] = params.centers[k] + colored / np.sqrt(np.maximum(u, LEAST_DRAWN))[:, None]
        return self._over_columns(frame.leave(noise)).astype(self.centers.dtype), labels


@final
class ShapePosterior(NamedTuple):
    """The E-step of a mixture; distances are in the metric of each component."""

    model: Any
    components: Components
    params: MixtureParams  # in the frame
    unit: float = 1.0  # a component's own metric has none

    def rows(self, block: Block) -> ShapeRows:
        """Label, squared distance, log-density, trust and probability of noise of each row."""
        return ShapeRows(*self._by_pattern(block, lambda engine, part, kernel: tuple(engine.rows(part, kernel))))

    def memberships(self, block: Block) -> Array:
        """The probability of every component for a row that is not noise, (n, K)."""
        return self._by_pattern(block, lambda engine, part, k: (engine.memberships(part, k._replace(noise=None)),))[0]

    def distances(self, block: Block) -> Array:
        """The Mahalanobis distance to every centre, (n, K)."""
        distances = self._by_pattern(block, lambda engine, part, kernel: (engine.distances(part, kernel),))[0]
        xp, most = namespace(distances), float(namespace(block.X).finfo(block.X.dtype).max)
        return xp.clip(distances, 0.0, min(FARTHEST_SQUARE**0.5, most))

    def evidence(self, source: Source) -> Evidence:
        """How well all rows of a source fit."""
        stats = source.reduce(self.model.e_step(self.params))
        return Evidence(stats.log_likelihood, stats.entropy, stats.total, self.n_parameters())

    def n_parameters(self) -> int:
        """Centres, shapes, weights, the share of the noise, and nu where it was estimated."""
        K, p = self.components.centers.shape
        n_dof = 0 if not self.model.estimate_dof else 1 if self.model.shared_dof else K
        return K * p + self.components.shape.n_parameters(K, p) + K - 1 + n_dof + (self.components.noise > 0)

    def _by_pattern(self, block: Block, look: Callable[[Any, Block, ShapeKernel], tuple[Array, ...]]) -> list[Array]:
        """What `look` answers for the rows, which it sees by what was observed of them, in their own order."""
        found, places = [], []
        for part, observed, numbers in by_observed(block):
            kernel = self.model.kernel(self.params, observed)
            found.append(look(self.model.engine_for(kernel), part, kernel))
            places.append(numbers)
        if part is block:
            return list(found[0])
        xp = namespace(block.X)
        order = xp.asarray(np.argsort(np.concatenate(places)), device=block.X.device)
        return [xp.take(xp.concat(parts), order, axis=0) for parts in zip(*found, strict=True)]
