"""A fit happens as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in a fit that has left its best parameters on the estimator, and says so."""

    def __init__(self, message: str, estimator: Any) -> None:
        super().__init__(message)
        self.estimator = estimator


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Give the estimator back all attributes it had, unless the block ends well.

    Whatever goes wrong in a fit, a half-fitted estimator, with the centres of one fit and the labels or
    the number of features of another, would be worse than none.
    """
    before = dict(vars(estimator))  # attributes are replaced by a fit, never changed in place
    try:
        yield
    except BaseException as fault:  # Ctrl-C too
        if isinstance(fault, Interrupted) and fault.estimator is estimator:
            raise
        vars(estimator).clear()
        vars(estimator).update(before)
        if isinstance(fault, Interrupted):  # in a fit that this one has begun with, of which nothing is left
            raise KeyboardInterrupt from None
        raise
