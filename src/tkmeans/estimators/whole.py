"""A fit happens as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a fit that has left its best parameters on the estimator, and says so."""


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Give the estimator back all attributes it had, unless the block ends well.

    Whatever goes wrong in a fit, a half-fitted estimator, with the centres of one fit and the labels or
    the number of features of another, would be worse than none.
    """
    before = dict(vars(estimator))  # attributes are replaced by a fit, never changed in place
    try:
        yield
    except Interrupted:
        raise
    except BaseException:  # Ctrl-C too
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
