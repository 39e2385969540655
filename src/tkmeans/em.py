"""The EM loop, its stopping rules and Anderson acceleration.

Visit the rows, move the parameters, until a rule stops it. What varies comes in as an argument: where rows live
(`source`), what is fitted (`model`), where to begin (`start`), when to end (`stop`) and who observes (`observers`).
"""

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple, final

import numpy as np
from scipy.linalg.lapack import dposv

from tkmeans.models import Model
from tkmeans.sources import Visited
from tkmeans.stats import Array, Frame, Outcome, P, S


class Progress(NamedTuple):
    """All that a run needs to go on from here; an iteration makes a new one, so none is ever half-made."""

    history: list[float]  # objective per unit of sample weight, at the start and after every iteration
    movement: float = np.inf  # root mean square step of the centres, in units of the frame
    params: Any = None  # after the last accepted step
    stats: Any = None  # at `params`
    total: float = 1.0  # sample weight, as first summed up
    n_passes: int = 1
    mixer: "Anderson | None" = None  # None for plain steps

    @property
    def n_iter(self) -> int:
        """The iterations so far."""
        return len(self.history) - 1


Request = Literal["stop: converged", "stop: early"]


class Observer(ABC):
    """Observes a run, and may ask it to stop."""

    def begin(self, frame: Frame, max_iter: int) -> None:  # noqa: B027
        """A run begins, in the coordinates of this frame."""

    @abstractmethod
    def step(self, progress: Progress) -> Request | None:
        """An iteration is done; None lets the run go on."""

    def end(self) -> None:  # noqa: B027
        """The run has ended, and not by Ctrl-C."""


# ---- when to stop: values with a name ----------------------------------------------

ROUNDING = 1e-14  # of an objective that is a sum over many rows
SHORT = 1 / 3  # of the gain of a step, by the slope at its end: it went less than 4/5 of the way to the top

StoppingRule = Callable[[Progress], bool]


@final
@dataclass(frozen=True)
class SmallGain:
    """Stop once an iteration gains less than `tol` per unit of sample weight, or than rounding leaves of it."""

    tol: float

    def __call__(self, progress: Progress) -> bool:
        """Whether the last iteration gained too little."""
        before, last = progress.history[-2:]
        return last - before <= max(self.tol, ROUNDING * abs(last))


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
    """Stop once `times` iterations, each on other rows, were on average no better than as many before, up to `tol`."""

    tol: float
    times: int

    def __call__(self, progress: Progress) -> bool:
        """Whether the latest iterations gained too little over those before."""
        if len(progress.history) < 2 * self.times:
            return False
        before, latest = np.reshape(progress.history[-2 * self.times :], (2, self.times)).mean(axis=1)
        return bool(latest - before <= self.tol)


# ---- the loop ----------------------------------------------------------------------


def em(
    source: Visited,
    model: Model[P, S],
    start: P,
    *,
    stop: StoppingRule,
    max_iter: int = 300,
    accelerate: "bool | Anderson" = True,  # or what an earlier run knew of its steps
    observers: Sequence[Observer] = (),
    resume: Progress | None = None,
) -> Outcome[P, S]:
    """Run EM from parameters, or from where an earlier run was left; the objective of a climbing model never drops.

    Ends at the last accepted parameters, with the statistics *at* these, so labels and likelihood always belong to the
    parameters that are returned. Ctrl-C ends a run like a limit, once there is an iteration to keep.
    """
    for observer in observers:
        observer.begin(source.frame, max_iter)
    if (run := resume) is None:
        stats = source.reduce(model.e_step(start))
        # Steps may be combined if they are smooth and about the same rows: such models can `pack` parameters.
        mixer = Anderson() if accelerate and model.climbs and hasattr(model, "pack") else None
        mixer = accelerate if isinstance(accelerate, Anderson) else mixer
        run = Progress([stats.objective / stats.total], np.inf, start, stats, stats.total, 1, mixer)
    converged = len(run.history) > 1 and stop(run)
    interrupted: BaseException | None = None
    try:
        while not converged and len(run.history) <= max_iter:
            before, run = run, _step(source, model, run, stop)
            if len(run.history) == len(before.history):  # no step was accepted, or none is worth a visit
                converged = True
                break
            requests = [observer.step(run) for observer in observers]
            converged = stop(run) or "stop: converged" in requests
            if "stop: early" in requests:
                break
        if not converged and len(run.history) > max_iter and run.mixer is not None:  # the limit may have come in time
            converged = not _ahead(model, run._replace(mixer=deepcopy(run.mixer)), stop)[2]
        for observer in observers:
            observer.end()
    except KeyboardInterrupt as fault:
        if len(run.history) == 1:
            raise
        converged, interrupted = False, fault
    return Outcome(run.params, run.stats, run.history, run.n_passes, converged, interrupted, (model, run.mixer))


def _step(source: Visited, model: Any, run: Progress, stop: StoppingRule) -> Progress:
    """The next parameters if they do not lose, else the plain step; none if rounding decides, or it is not worth it."""
    params, plain, worth = _ahead(model, run, stop)
    if not worth:
        return run
    stats, n_passes = source.reduce(model.e_step(params)), run.n_passes + 1
    if run.mixer is not None and params is not plain and not stats.objective >= run.stats.objective:
        run.mixer.forget()
        params = model.m_step(run.stats, run.params) if plain is None else plain
        stats, n_passes = source.reduce(model.e_step(params)), n_passes + 1
    if model.climbs and stats.objective < run.stats.objective:
        return run._replace(n_passes=n_passes)
    total = run.total if model.climbs else stats.total  # batches of a stream need not weigh the same
    steps = params.centers - run.params.centers
    movement = math.sqrt(np.einsum("kj,kj->", steps, steps) / len(steps))
    return Progress([*run.history, stats.objective / total], movement, params, stats, total, n_passes, run.mixer)


def _ahead(model: Any, run: Progress, stop: StoppingRule) -> tuple[Any, Any, bool]:
    """A leap, the model's own or a mix of steps; the plain step if it is known; and whether a visit may be worth it."""
    scores = run.mixer is not None and hasattr(model, "ahead")
    goal, slope = model.ahead(run.stats, run.params) if scores else (None, None)
    plain = model.m_step(run.stats, run.params) if goal is None else None
    if run.mixer is None:
        return plain, plain, True
    leap = run.mixer.extrapolate(here := model.pack(run.params), model.pack(plain) if goal is None else goal)
    leap = goal if leap is None else leap
    params = plain if leap is None else model.unpack(leap, run.params if plain is None else plain)
    if slope is None or len(run.history) < 2 or len(run.mixer.images) < 2:
        return params, plain, True
    last, gain = here - (run.mixer.images[-2] - run.mixer.residuals[-2]), run.history[-1] - run.history[-2]
    short = np.add.reduce(slope * last) > SHORT * gain * run.total  # the objective still rises along the step
    most = np.add.reduce(np.abs(slope * (leap - here))) / run.total  # of the next; half is usual
    return params, plain, bool(short) or not stop(run._replace(history=[*run.history, run.history[-1] + float(most)]))


# ---- acceleration ------------------------------------------------------------------


@dataclass
class Anderson:
    """Anderson acceleration of a fixed-point map x -> g(x) (Walker and Ni 2011, type II).

    Of the last few steps it takes the affine combination of least residual g(x) - x, and answers that of their images.
    """

    residuals: deque[Array] = field(default_factory=partial(deque, maxlen=6))  # of the last steps, one more than depth
    images: deque[Array] = field(default_factory=partial(deque, maxlen=6))
    bits: int = 16  # of the mix. Any near the best will do; of a rough one, rounding errors elsewhere change nothing

    def extrapolate(self, x: Array, gx: Array) -> Array | None:
        """The next point to try, or None while there is nothing to combine."""
        self.residuals.append(gx - x)
        self.images.append(gx)
        if len(self.residuals) < 2:
            return None
        both = np.array([*self.residuals, *self.images]).reshape(2, -1, len(x))
        both[:, :-1] = both[:, 1:] - both[:, :-1]  # (m + 1, d) each: the steps between them, and the last one
        # einsum, because a BLAS may round differently with another number of threads.
        products = np.einsum("id,jd->ij", both[0], both[0])
        if 2 * products[-1, -2] > products[-2, -2]:  # the last residual is longer than the one before
            self.forget()  # steps that grow lead away from where they seem to come from
            return None
        gram = products[:-1, :-1]
        if 0.0 in gram.diagonal():
            return None
        gram.flat[:: len(products)] *= 1 + 1e-6  # nearly parallel steps tell apart rounding errors: make little of them
        mix = dposv(gram, products[:-1, -1])[1]
        unit = 2.0 ** (max(math.frexp(np.maximum.reduce(np.abs(mix)))[1], 0) - self.bits)
        return gx - np.einsum("i,id->d", unit * np.rint(mix / unit), both[1, :-1])

    def forget(self) -> None:
        """Start over from the latest step, after an extrapolation that failed."""
        while len(self.residuals) > 1:
            self.residuals.popleft()
            self.images.popleft()
