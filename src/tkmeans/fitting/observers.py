"""Observers that EM calls after each iteration: verbose output, scikit-learn callbacks, time limit, checkpoints."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, final

import numpy as np

from tkmeans.em import Observer, Progress, Request
from tkmeans.fitting.checkpoints import Checkpoint
from tkmeans.sources import Source
from tkmeans.stats import Fit, Frame

# The most of a fit's time that writing checkpoints may take.
SHARE_OF_TIME: ContextVar[float] = ContextVar("share_of_time", default=0.05)


@final
class Verbose(Observer):
    """Prints every iteration, with the objective in the user's units."""

    def __init__(self, estimator: str, objective: str) -> None:
        self._estimator, self._objective = estimator, objective

    def begin(self, frame: Frame, max_iter: int) -> None:
        """Note the unit and the time."""
        self._log_unit = float(np.mean(np.log(frame.unit)))
        self._begun = time.monotonic()

    def step(self, progress: Progress) -> Request | None:
        """Print one line."""
        value = progress.history[-1] - self._log_unit * getattr(progress.stats, "cells", 0.0) / progress.total
        gain = progress.history[-1] - progress.history[-2]
        found = f"per row {value:.8g}, gain {gain:.2g}, {time.monotonic() - self._begun:.1f} s"
        print(f"[{self._estimator}] iteration {progress.n_iter}: {self._objective} {found}")
        return None


@final
class SklearnCallbacks(Observer):
    """Every run is a subtask of the fit, with the iterations as its own subtasks; a callback may end it."""

    def __init__(self, estimator: Any, task: Any) -> None:
        self._estimator, self._task = estimator, task

    def begin(self, frame: Frame, max_iter: int) -> None:
        """Begin the subtask."""
        self._run = self._task.subcontext("EM", max_subtasks=max_iter)
        self._run.call_on_fit_task_begin(estimator=self._estimator)

    def step(self, progress: Progress) -> Request | None:
        """An iteration as a subtask that is over."""
        iteration = self._run.subcontext("iteration")
        iteration.call_on_fit_task_begin(estimator=self._estimator)
        return "stop: converged" if iteration.call_on_fit_task_end(estimator=self._estimator) else None

    def end(self) -> None:
        """End the subtask."""
        self._run.call_on_fit_task_end(estimator=self._estimator)


@contextmanager
def sklearn_callbacks(estimator: Any, source: Source) -> Iterator[list[Observer]]:
    """Report the fit in the block to scikit-learn's callbacks; the observers report its runs."""
    facts = {"estimator": estimator, "X": getattr(source, "X", None), "metadata": {"sample_weight": source.weight}}
    task = estimator._init_callback_context(max_subtasks=None)
    task.call_on_fit_task_begin(**facts)
    yield [SklearnCallbacks(estimator, task)]
    task.call_on_fit_task_end(**facts, reconstruction_attributes={})


@final
class TimeLimit(Observer):
    """Ends the fit with what it has, so many seconds after this was made."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + float(seconds)  # a narrow number has no room for the clock
        self.has_cut = False  # whether something ended because the time was up

    @property
    def left(self) -> float:
        """The seconds left."""
        return self._end - time.monotonic()

    @property
    def is_up(self) -> bool:
        """Whether the time has passed."""
        self.has_cut = self.has_cut or self.left <= 0
        return self.has_cut

    def step(self, progress: Progress) -> Request | None:
        """Stop when the time has passed."""
        return "stop: early" if self.is_up else None


@final
class Checkpointer(Observer):
    """Keeps the state of a fit in a file, unless that would take more than a share of the time."""

    def __init__(self, path: Any, fit: dict[str, Any], source: Source) -> None:
        self._path, self._share, self._source = path, SHARE_OF_TIME.get(), source
        self._state = Checkpoint(fit, rng_state={}, n_finished=0, best=None, run=None)
        self._saved = time.monotonic()
        self._writing = 0.0  # seconds that the last checkpoint took

    def restarted(self, rng_state: dict[str, Any], n_finished: int, best: Fit | None) -> None:
        """Note the state of the random numbers when the fit began, and the runs that are done."""
        self._state = replace(self._state, rng_state=rng_state, n_finished=n_finished, best=best)

    def finished(self, fit: Fit, n_finished: int, best: Fit) -> None:
        """Save after a run; one that has not converged is saved as it is, and with a higher limit can go on."""
        cut = self._source.search_limit is not None and self._source.search_limit.has_cut
        if cut or not fit.converged:
            self._save()
        if not cut:
            self._state = replace(self._state, n_finished=n_finished, best=best, run=None)
            if fit.converged:
                self._save()

    def begin(self, frame: Frame, max_iter: int) -> None:
        """A run that has made no step is not worth saving."""
        self._state = replace(self._state, run=None)

    def step(self, progress: Progress) -> Request | None:
        """Save, if it is time; of a run from where a search was cut short nothing, so that it is made again."""
        cut = self._source.search_limit is not None and self._source.search_limit.has_cut
        self._state = replace(self._state, run=None if cut else progress)
        if (time.monotonic() - self._saved) * self._share >= self._writing:
            self._save()
        return None

    def _save(self) -> None:
        begun = time.monotonic()
        self._state.write(self._path)
        self._saved = time.monotonic()
        self._writing = self._saved - begun
