"""The restarts of a fit, and the best of them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tkmeans.em import Observer
from tkmeans.fitting.checkpoints import Checkpoint
from tkmeans.fitting.observers import Checkpointer, TimeLimit

Run = partial[Any]  # `em` with all arguments but its observers and what to resume from
Runs = Callable[[np.random.RandomState], Iterator[Run]]


class Plan(NamedTuple):
    """What an estimator wants done, as values."""

    runs: Runs  # one for every start and model to try
    merit: Callable[[Any], float]  # decides between runs: the larger, the better
    row_fields: tuple[str, ...] = ()  # what is kept of every training row besides its label
    # More fitted attributes: of the training, the fit, the source and the attributes so far.
    extras: Callable[..., dict[str, Any]] | None = None


def best_run(
    runs: Runs,
    merit: Callable[[Any], float],
    rng: np.random.RandomState,
    observers: Sequence[Observer] = (),
    left: Checkpoint | None = None,  # of an earlier fit: the runs that were done then are not made again
) -> Any:
    """The best of all runs by a merit, or of those that there was time for; of equal runs the first."""
    writers = [observer for observer in observers if isinstance(observer, Checkpointer)]
    best, n_finished, resume = None, 0, None
    if left is not None:
        rng = np.random.RandomState()
        rng.set_state(left.rng_state)
        best, n_finished, resume = left.best, left.n_finished, left.run
    ended = np.inf if best is None or best.converged else len(best.history)  # early
    for writer in writers:
        writer.restarted(rng.get_state(legacy=False), n_finished, best)
    try:
        for number, run in enumerate(runs(rng), start=1):
            if number == 1 and ended <= run.keywords.get("max_iter", 0):
                best, n_finished, resume = None, 0, None  # what was done ended early, and may go on now
            if number <= n_finished:
                continue
            if best is not None and any(isinstance(observer, TimeLimit) and observer.is_up for observer in observers):
                break
            fit = run(observers=observers, resume=resume)
            best, resume = fit if best is None else max(best, fit, key=merit), None
            if fit.interrupted:
                return best._replace(interrupted=fit.interrupted)
            for writer in writers:
                writer.finished(fit, number, best)
    except KeyboardInterrupt as fault:
        if best is None:
            raise
        return best._replace(interrupted=fault)
    return best
