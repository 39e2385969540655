"""Fits that take long: a limit of time, interruption, and going on where one was left."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, final

import numpy as np

from tkmeans.em import Progress
from tkmeans.estimators.checkpoints import Checkpoint, fingerprint
from tkmeans.estimators.running import run_em
from tkmeans.models import CenterModel
from tkmeans.sources import Source
from tkmeans.stats import Fit, Params

# A checkpoint is written unless that would take more than this share of the time.
_SHARE_OF_TIME = 0.05


class TimeUp(Exception):
    """There is no time for another run."""


@final
class Runs:
    """The runs of one fit, the best of which counts."""

    def __init__(
        self, estimator: Any, source: Source, rng: np.random.RandomState, merit: Callable[[Fit], float], resume: Any
    ) -> None:
        self.rng, self._merit, self._estimator = rng, merit, estimator
        # Estimators that learn from batches have neither a limit of time nor checkpoints.
        self._path, limit = getattr(estimator, "checkpoint", None), getattr(estimator, "max_time", None)
        self._begun = self._saved = time.monotonic()
        self._time = np.inf if limit is None else float(limit)
        self._writing = 0.0  # seconds that the last checkpoint took
        self._fit = {} if self._path is None and resume is None else fingerprint(estimator, source)
        self._n_started = self._n_finished = 0
        self._best: Fit | None = None
        self._latest: Fit | None = None  # of the run under way
        self._left: Progress | None = None  # the run that a checkpoint was written in
        self._rng_state: dict[str, Any] = rng.get_state(legacy=False)
        if resume is not None:
            self._go_on(Checkpoint.read(resume, self._fit))

    def _go_on(self, checkpoint: Checkpoint) -> None:
        self._rng_state = checkpoint.rng_state
        self.rng = np.random.RandomState()
        self.rng.set_state(self._rng_state)
        self._n_finished, self._best, self._left = checkpoint.n_finished, checkpoint.best, checkpoint.run

    @property
    def time_is_up(self) -> bool:
        """Whether `max_time` has passed."""
        return time.monotonic() - self._begun >= self._time

    def em(self, source: Source, model: CenterModel, params: Params, **options: Any) -> None:
        """One run of the loop, unless a checkpoint says that it is done already."""
        self._n_started += 1
        if self._n_started <= self._n_finished:
            return
        if self.time_is_up and self._best is not None:
            raise TimeUp
        start, self._left = self._left or params, None
        self._run: Progress | None = None
        fit = run_em(self._estimator, source, model, start, on_step=self._on_step, **options)
        if not fit.converged and self._path is not None:
            self._save()  # as it is: with a higher limit it can go on
        self._best, self._latest, self._run = max([*self._finished(), fit], key=self._merit), None, None
        self._n_finished = self._n_started
        if fit.converged and self._path is not None:
            self._save()

    def keep(self, fit: Fit) -> None:
        """Count a run that was made in another way."""
        self._best = max([*self._finished(), fit], key=self._merit)

    def has_any(self) -> bool:
        """Whether there are parameters better than a start."""
        return self._best is not None or self._latest is not None

    def best(self) -> Fit:
        """The best run, be it finished or not."""
        # Of equal runs the first one counts.
        return max([*self._finished(), *([] if self._latest is None else [self._latest])], key=self._merit)

    def _finished(self) -> list[Fit]:
        return [] if self._best is None else [self._best]

    def _on_step(self, run: Progress) -> bool:
        # A copy, because an interrupt may come in the middle of the next step.
        self._run, self._latest = run, run.outcome(converged=False)._replace(history=list(run.history))
        now = time.monotonic()
        if self._path is not None and (now - self._saved) * _SHARE_OF_TIME >= self._writing:
            self._save()
        return self.time_is_up

    def _save(self) -> None:
        begun = time.monotonic()
        Checkpoint(self._fit, self._rng_state, self._n_finished, self._best, self._run).write(self._path)
        self._saved = time.monotonic()
        self._writing = self._saved - begun
