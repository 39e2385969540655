"""EM as an estimator runs it: told to `verbose`, and to scikit-learn's callbacks where it has them (1.9 on)."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from tkmeans.em import Progress, StoppingRule, em
from tkmeans.models import Model
from tkmeans.sources import Source
from tkmeans.stats import Array, Outcome, P, S

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """There are no callbacks to support."""

    def with_callbacks(method: Any) -> Any:
        """There are no callbacks to end."""
        return method


__all__ = ["CallbackSupportMixin", "run_em", "told_to_callbacks"]

Fitting = Callable[[Any, Array, Array | None], Any]


def told_to_callbacks(fit_rows: Fitting) -> Fitting:
    """Decorate a method that fits checked rows and weights: the callbacks see its beginning, its runs and its end."""

    @wraps(fit_rows)
    def wrapper(estimator: Any, X: Array, weight: Array | None) -> Any:
        if not getattr(estimator, "_skl_callbacks", None):
            return fit_rows(estimator, X, weight)
        facts = {"estimator": estimator, "X": X, "metadata": {"sample_weight": weight}}
        estimator._fit_task = estimator._init_callback_context(max_subtasks=None)
        try:
            estimator._fit_task.call_on_fit_task_begin(**facts)
            fitted = fit_rows(estimator, X, weight)
            estimator._fit_task.call_on_fit_task_end(**facts, reconstruction_attributes={})
        finally:
            del estimator._fit_task
        return fitted

    return with_callbacks(wrapper)


def run_em(
    estimator: Any,
    source: Source,
    model: Model[P, S],
    params: P,
    *,
    stop: StoppingRule,
    max_iter: int,
    accelerate: bool = True,
) -> Outcome[P, S]:
    """Run `em` for an estimator, whose callbacks may end it early."""
    watch = _Watch(estimator, max_iter)
    outcome = em(
        source,
        model,
        params,
        stop=lambda progress: stop(progress) or watch.asked_to_stop,
        max_iter=max_iter,
        accelerate=accelerate,
        on_step=watch,
    )
    watch.end()
    return outcome


class _Watch:
    """One run of EM: a subtask of the fit, with the iterations as its own subtasks."""

    def __init__(self, estimator: Any, max_iter: int) -> None:
        self.asked_to_stop = False
        self._estimator = estimator
        self._task: Any = None
        if hasattr(estimator, "_fit_task"):
            self._task = estimator._fit_task.subcontext("EM", max_subtasks=max_iter)
            self._task.call_on_fit_task_begin(estimator=estimator)

    def __call__(self, n_iter: int, progress: Progress) -> None:
        if self._estimator.verbose:
            name = type(self._estimator).__name__
            print(f"[{name}] iteration {n_iter}: objective per row {progress.history[-1]:.8g}")
        if self._task is not None:
            iteration = self._task.subcontext("iteration")
            iteration.call_on_fit_task_begin(estimator=self._estimator)
            self.asked_to_stop = iteration.call_on_fit_task_end(estimator=self._estimator)

    def end(self) -> None:
        if self._task is not None:
            self._task.call_on_fit_task_end(estimator=self._estimator)
