"""What the EM loop asks of a model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Protocol, runtime_checkable

import numpy as np

from tkmeans.engines import reference
from tkmeans.stats import Array, Block, Kernel, P, Params, S, Stats


class Model(Protocol[P, S]):
    """What differs between methods, whatever their parameters and statistics are."""

    @property
    def climbs(self) -> bool:
        """Whether an M-step can never lower the objective."""
        ...

    def e_step(self, params: P) -> Callable[[Block], S]:
        """A function that sums the E-step under `params` over one block of rows."""
        ...

    def m_step(self, stats: S, params: P) -> P:
        """The parameters that follow from the statistics at `params`."""
        ...


@runtime_checkable
class Extrapolated(Model[P, S], Protocol[P, S]):
    """A model whose steps may be combined, because they are smooth and about the same rows: it can be accelerated."""

    def pack(self, params: P) -> Array:
        """What acceleration extrapolates, as one vector without constraints."""
        ...

    def unpack(self, vector: Array, like: P) -> P:
        """The inverse of `pack`; what it leaves out is taken from `like`."""
        ...


@dataclass(frozen=True, kw_only=True)
class CenterModel(ABC):
    """Clusters that differ in their centres alone: a kernel, and how parameters follow from sums."""

    engine: ModuleType = reference

    @property
    def climbs(self) -> bool:
        """Whether an M-step can never lower the objective."""
        return True

    @abstractmethod
    def kernel(self, params: Params) -> Kernel:
        """How distances become memberships under `params`."""

    @abstractmethod
    def m_step(self, stats: Stats, params: Params) -> Params:
        """The parameters that maximise the expected complete-data log-likelihood."""

    def e_step(self, params: Params) -> Callable[[Block], Stats]:
        """A function that sums the E-step under `params` over one block of rows."""
        return partial(self.engine.summarize, params=params, kernel=self.kernel(params))

    def pack(self, params: Params) -> Array:
        """What acceleration extrapolates, as one vector without constraints."""
        return np.ravel(params.centers)

    def unpack(self, vector: Array, like: Params) -> Params:
        """The inverse of `pack`; what it leaves out is taken from `like`."""
        return like._replace(centers=vector.reshape(like.centers.shape))


def moved_centers(stats: Stats, params: Params) -> tuple[Array, Array]:
    """The new centres (eqn:mu) and the step to them; a centre that nobody claims stays."""
    step = np.divide(stats.wx, stats.seen, out=np.zeros_like(stats.wx), where=stats.seen > 0)
    return params.centers + step, step


def log_shares(masses: Array) -> Array:
    """ln of each mass over their sum; a cluster that nobody claims keeps a share that has a logarithm."""
    return np.log(np.maximum(masses / np.sum(masses), np.finfo(float).tiny))


def normalized(log_weights: Array) -> Array:
    """The same weights up to a factor, summing to 1; none so small that it is 0."""
    return np.maximum(log_weights - np.logaddexp.reduce(log_weights), np.log(np.finfo(float).tiny))


def constant_tables(n_features: int, **values: float) -> dict[str, Array]:
    """Kernel tables of models that do not look at how many features were observed."""
    return {name: np.full(n_features + 1, value) for name, value in values.items()}
