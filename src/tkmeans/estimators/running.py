"""EM as an estimator runs it: told to `verbose`, and to scikit-learn's callbacks where it has them (1.9 on)."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tkmeans.em import Progress, StoppingRule, em
from tkmeans.models import Model
from tkmeans.sources import Source, Visited
from tkmeans.stats import Frame, Outcome, P, S

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """There are no callbacks to support."""

    def with_callbacks(method: Any) -> Any:
        """There are no callbacks to end."""
        return method


__all__ = ["CallbackSupportMixin", "run_em", "told_to_callbacks"]

Fitting = Callable[[Any, Any, Any], Any]


def told_to_callbacks(fit_rows: Fitting) -> Fitting:
    """Decorate a method that fits checked rows and weights, or a source: callbacks see its beginning, runs and end."""

    @wraps(fit_rows)
    def wrapper(estimator: Any, rows: Any, other: Any) -> Any:
        if not getattr(estimator, "_skl_callbacks", None):
            return fit_rows(estimator, rows, other)
        X, weight = (getattr(rows, "X", None), rows.weight) if isinstance(rows, Source) else (rows, other)
        facts = {"estimator": estimator, "X": X, "metadata": {"sample_weight": weight}}
        estimator._fit_task = estimator._init_callback_context(max_subtasks=None)
        try:
            estimator._fit_task.call_on_fit_task_begin(**facts)
            fitted = fit_rows(estimator, rows, other)
            estimator._fit_task.call_on_fit_task_end(**facts, reconstruction_attributes={})
        finally:
            del estimator._fit_task
        return fitted

    return with_callbacks(wrapper)


def run_em(
    estimator: Any,
    source: Visited,
    model: Model[P, S],
    start: P | Progress,
    *,
    stop: StoppingRule,
    max_iter: int,
    accelerate: bool = True,
    on_step: Callable[[Progress], bool] | None = None,
) -> Outcome[P, S]:
    """Run `em` for an estimator, whose callbacks may end it early; so may `on_step`, by answering True."""
    watch = _Watch(estimator, source.frame, max_iter, on_step)
    outcome = em(
        source,
        model,
        start,
        stop=lambda progress: stop(progress) or watch.asked_to_stop,
        max_iter=max_iter,
        accelerate=accelerate,
        on_step=watch,
    )
    watch.end()
    return outcome


class _Watch:
    """One run of EM: a subtask of the fit, with the iterations as its own subtasks."""

    def __init__(self, estimator: Any, frame: Frame, max_iter: int, on_step: Callable[[Progress], bool] | None) -> None:
        self.asked_to_stop = False
        self._estimator, self._on_step = estimator, on_step
        self._log_unit = float(np.mean(np.log(frame.unit)))
        self._begun = time.monotonic()
        self._task: Any = None
        if hasattr(estimator, "_fit_task"):
            self._task = estimator._fit_task.subcontext("EM", max_subtasks=max_iter)
            self._task.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, n_iter: int, progress: Progress) -> bool:
        if self._estimator.verbose:
            print(self._line(n_iter, progress))
        if self._task is not None:
            iteration = self._task.subcontext("iteration")
            iteration.call_on_fit_task_begin(estimator=self._estimator)
            self.asked_to_stop = iteration.call_on_fit_task_end(estimator=self._estimator)
        return self._on_step is not None and self._on_step(progress)

    def _line(self, n_iter: int, progress: Progress) -> str:
        """An iteration, with the objective in the user's units."""
        value = progress.history[-1] - self._log_unit * getattr(progress.stats, "cells", 0.0) / progress.total
        gain = progress.history[-1] - progress.history[-2]
        objective = getattr(self._estimator, "_objective", "objective")
        return (
            f"[{type(self._estimator).__name__}] iteration {n_iter}: {objective} "
            f"per row {value:.8g}, gain {gain:.2g}, {time.monotonic() - self._begun:.1f} s"
        )

    def end(self) -> None:
        if self._task is not None:
            self._task.call_on_fit_task_end(estimator=self._estimator)
