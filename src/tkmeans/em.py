"""The one loop: visit the rows, move the parameters, until a rule says stop.

What varies comes in as an argument: where rows live (`source`), what is fitted
(`model`), where to begin (`params`) and when to end (`stop`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from tkmeans.models import Extrapolated, Model
from tkmeans.sources import Visited
from tkmeans.stats import Array, Outcome, P, S

# ---- when to stop: values with a name ----------------------------------------------


@dataclass
class Progress:
    """How far a run has come: all that it needs to go on from there."""

    history: list[float]  # objective per unit of sample weight
    movement: float = np.inf  # root mean square step of the centres, in units of the frame
    params: Any = None  # after the last accepted step
    stats: Any = None  # at `params`
    total: float = 1.0  # sample weight, as first summed up
    n_passes: int = 0
    mixer: Anderson | None = None

    def outcome(self, *, converged: bool) -> Outcome[Any, Any]:
        """The end of a run that stops here."""
        return Outcome(self.params, self.stats, self.history, self.n_passes, converged)


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
    source: Visited,
    model: Model[P, S],
    start: P | Progress,
    *,
    stop: StoppingRule,
    max_iter: int = 300,
    accelerate: bool = True,
    on_step: Callable[[int, Progress], object] | None = None,
) -> Outcome[P, S]:
    """Run EM from parameters, or from where an earlier run was left; the objective of a climbing model never drops.

    Ends at the last accepted parameters, with the statistics *at* these, so
    labels and likelihood always belong to the parameters that are returned.
    `on_step` is told of every accepted step and ends the run by answering True.
    """
    run = start if isinstance(start, Progress) else _begin(source, model, start, accelerate)
    if len(run.history) > 1 and stop(run):
        return run.outcome(converged=True)
    for n_iter in range(len(run.history), max_iter + 1):
        plain = model.m_step(run.stats, run.params)
        params, stats = _best_step(source, model, run, plain)
        if model.climbs and stats.objective < run.stats.objective:
            # An exact M-step loses by rounding alone: there is nothing left to gain.
            return run.outcome(converged=True)
        run.movement = _rms(params.centers - run.params.centers)
        run.params, run.stats = params, stats
        if not model.climbs:
            run.total = stats.total  # batches of a stream need not weigh the same
        run.history.append(stats.objective / run.total)
        enough = on_step is not None and on_step(n_iter, run) is True
        if stop(run):
            return run.outcome(converged=True)
        if enough:
            break
    return run.outcome(converged=False)


def _begin(source: Visited, model: Model[P, S], params: P, accelerate: bool) -> Progress:
    stats = source.reduce(model.e_step(params))
    total = stats.total
    mixer = Anderson() if accelerate and model.climbs and isinstance(model, Extrapolated) else None
    return Progress([stats.objective / total], params=params, stats=stats, total=total, n_passes=1, mixer=mixer)


def _best_step(source: Visited, model: Model[P, S], run: Progress, plain: P) -> tuple[P, S]:
    """The extrapolated step if it does not lose, the plain one otherwise."""
    if run.mixer is not None and isinstance(model, Extrapolated):
        leap = run.mixer.extrapolate(model.pack(run.params), model.pack(plain))
        if leap is not None:
            ahead = model.unpack(leap, plain)
            run.n_passes += 1
            stats_ahead = source.reduce(model.e_step(ahead))
            if stats_ahead.objective >= run.stats.objective:
                return ahead, stats_ahead
            run.mixer.forget()
    run.n_passes += 1
    return plain, source.reduce(model.e_step(plain))


# ---- acceleration ------------------------------------------------------------------


class Anderson:
    """Anderson acceleration of a fixed-point map x -> g(x) (Walker and Ni 2011, type II).

    Of the last few steps it takes the affine combination whose residual g(x) - x
    is least, and answers the same combination of their images.
    """

    def __init__(self, depth: int = 5) -> None:
        self.residuals: deque[Array] = deque(maxlen=depth + 1)
        self.images: deque[Array] = deque(maxlen=depth + 1)

    def extrapolate(self, x: Array, gx: Array) -> Array | None:
        """The next point to try, or None while there is nothing to combine."""
        self.residuals.append(gx - x)
        self.images.append(gx)
        if len(self.residuals) < 2:
            return None
        if np.sum(self.residuals[-1] ** 2) > np.sum(self.residuals[-2] ** 2):
            self.forget()  # steps that grow lead away from where they seem to come from
            return None
        residual_steps = np.diff(np.asarray(self.residuals), axis=0)  # (m, d)
        image_steps = np.diff(np.asarray(self.images), axis=0)  # (m, d)
        lengths = np.linalg.norm(residual_steps, axis=1, keepdims=True)
        if not np.all(lengths > 0):
            return None
        directions = residual_steps / lengths
        # Nearly parallel steps tell apart rounding errors only: the ridge makes little of them.
        # einsum, because a BLAS may round differently with another number of threads.
        gram = np.einsum("id,jd->ij", directions, directions) + 1e-6 * np.eye(len(directions))
        mix = np.linalg.solve(gram, np.einsum("id,d->i", directions, self.residuals[-1]))
        return gx - np.einsum("i,id->d", mix, image_steps / lengths)

    def forget(self) -> None:
        """Start over from the latest step, after an extrapolation that failed."""
        while len(self.residuals) > 1:
            self.residuals.popleft()
            self.images.popleft()


def _rms(steps: Array) -> float:
    return float(np.sqrt(np.mean(np.sum(steps * steps, axis=1))))
