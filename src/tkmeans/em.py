"""The one loop: visit the rows, move the parameters, until a rule says stop.

What varies comes in as an argument: where rows live (`source`), what is fitted
(`model`), where to begin (`params`) and when to end (`stop`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, final

import numpy as np

from tkmeans.models import Model
from tkmeans.sources import Source
from tkmeans.stats import Array, Outcome, P, S

# ---- when to stop: values with a name ----------------------------------------------


@dataclass
class Progress:
    """How far a run has come."""

    history: list[float]  # objective per unit of sample weight
    movement: float = np.inf  # root mean square step of the centres, in units of the frame


StoppingRule = Callable[[Progress], bool]


@final
@dataclass(frozen=True)
class SmallGain:
    """Stop once an iteration gains less than `tol` per unit of sample weight."""

    tol: float

    def __call__(self, progress: Progress) -> bool:
        """Whether the last iteration gained too little."""
        return progress.history[-1] - progress.history[-2] <= self.tol


@final
@dataclass(frozen=True)
class SmallMove:
    """Stop once the centres move by less than `tol`, for models that climb nothing."""

    tol: float

    def __call__(self, progress: Progress) -> bool:
        """Whether the centres have come to rest."""
        return progress.movement <= self.tol


@final
@dataclass(frozen=True)
class Plateau:
    """Stop once `times` iterations were on average no better than as many before them, up to `tol`.

    For objectives that go up and down because every iteration looks at other rows.
    """

    tol: float
    times: int

    def __call__(self, progress: Progress) -> bool:
        """Whether the latest iterations gained too little over those before."""
        if len(progress.history) < 2 * self.times:
            return False
        before, latest = np.reshape(progress.history[-2 * self.times :], (2, self.times)).mean(axis=1)
        return bool(latest - before <= self.tol)


@final
@dataclass(frozen=True)
class Never:
    """Go on until the limit of iterations."""

    def __call__(self, progress: Progress) -> bool:
        """Not yet."""
        return False


# ---- the loop ----------------------------------------------------------------------


def em(
    source: Source,
    model: Model[P, S],
    params: P,
    *,
    stop: StoppingRule,
    max_iter: int = 300,
    accelerate: bool = True,
    on_step: Callable[[int, Progress], None] | None = None,
) -> Outcome[P, S]:
    """Run EM from `params`; the objective of a climbing model never drops.

    Ends at the last accepted parameters, with the statistics *at* these, so
    labels and likelihood always belong to the parameters that are returned.
    """
    visits = Visits(source, model)
    mixer = Anderson() if accelerate and model.climbs else None
    stats = visits(params)
    total = stats.total
    progress = Progress([stats.objective / total])
    for n_iter in range(1, max_iter + 1):
        new = model.m_step(stats, params)
        new, new_stats = _best_step(visits, mixer, params, new, stats)
        if model.climbs and new_stats.objective < stats.objective:
            # An exact M-step loses by rounding alone: there is nothing left to gain.
            return Outcome(params, stats, progress.history, visits.count, converged=True)
        progress.movement = _rms(new.centers - params.centers)
        params, stats = new, new_stats
        if not model.climbs:
            total = stats.total  # batches of a stream need not weigh the same
        progress.history.append(stats.objective / total)
        if on_step is not None:
            on_step(n_iter, progress)
        if stop(progress):
            return Outcome(params, stats, progress.history, visits.count, converged=True)
    return Outcome(params, stats, progress.history, visits.count, converged=False)


def _best_step(visits: Visits[P, S], mixer: Anderson | None, old: P, plain: P, stats: S) -> tuple[P, S]:
    """The extrapolated step if it does not lose, the plain one otherwise."""
    model = visits.model
    if mixer is not None:
        leap = mixer.extrapolate(model.pack(old), model.pack(plain))
        if leap is not None:
            ahead = model.unpack(leap, plain)
            stats_ahead = visits(ahead)
            if stats_ahead.objective >= stats.objective:
                return ahead, stats_ahead
            mixer.forget()
    return plain, visits(plain)


class Visits(Generic[P, S]):
    """A pass over all rows, counted: passes are what a fit costs."""

    def __init__(self, source: Source, model: Model[P, S]) -> None:
        self.source, self.model, self.count = source, model, 0

    def __call__(self, params: P) -> S:
        """The statistics of all rows under `params`."""
        self.count += 1
        return self.source.reduce(self.model.e_step(params))


# ---- acceleration ------------------------------------------------------------------


class Anderson:
    """Anderson acceleration of a fixed-point map x -> g(x) (Walker and Ni 2011, type II).

    Of the last few steps it takes the affine combination whose residual g(x) - x
    is least, and answers the same combination of their images.
    """

    def __init__(self, depth: int = 5) -> None:
        self._residuals: deque[Array] = deque(maxlen=depth + 1)
        self._images: deque[Array] = deque(maxlen=depth + 1)

    def extrapolate(self, x: Array, gx: Array) -> Array | None:
        """The next point to try, or None while there is nothing to combine."""
        self._residuals.append(gx - x)
        self._images.append(gx)
        if len(self._residuals) < 2:
            return None
        if np.sum(self._residuals[-1] ** 2) > np.sum(self._residuals[-2] ** 2):
            self.forget()  # steps that grow lead away from where they seem to come from
            return None
        residual_steps = np.diff(np.asarray(self._residuals), axis=0)  # (m, d)
        image_steps = np.diff(np.asarray(self._images), axis=0)  # (m, d)
        lengths = np.linalg.norm(residual_steps, axis=1, keepdims=True)
        if not np.all(lengths > 0):
            return None
        directions = residual_steps / lengths
        # Nearly parallel steps tell apart rounding errors only: the ridge makes little of them.
        # einsum, because a BLAS may round differently with another number of threads.
        gram = np.einsum("id,jd->ij", directions, directions) + 1e-6 * np.eye(len(directions))
        mix = np.linalg.solve(gram, np.einsum("id,d->i", directions, self._residuals[-1]))
        return gx - np.einsum("i,id->d", mix, image_steps / lengths)

    def forget(self) -> None:
        """Start over from the latest step, after an extrapolation that failed."""
        while len(self._residuals) > 1:
            self._residuals.popleft()
            self._images.popleft()


def _rms(steps: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(steps * steps, axis=1))))
