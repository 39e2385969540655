"""What the EM loop asks of a model."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from tkmeans.stats import TINY, Array, Block, P, S

LOG_TINY = float(np.log(TINY))


class Model(Protocol[P, S]):
    """What differs between methods, whatever their parameters and statistics are."""

    @property
    def climbs(self) -> bool:
        """Whether an M-step can never lower the objective."""

    def e_step(self, params: P) -> Callable[[Block], S]:
        """A function that sums the E-step under `params` over one block of rows."""

    def m_step(self, stats: S, params: P) -> P:
        """The parameters that follow from the statistics at `params`."""


def log_shares(masses: Array) -> Array:
    """ln of each mass over their sum; a cluster that nobody claims keeps a share that has a logarithm."""
    return np.log(np.maximum(masses / masses.sum(), TINY))


def normalized(log_weights: Array) -> Array:
    """The same weights up to a factor, summing to 1; none so small that it is 0."""
    return np.maximum(log_weights - np.logaddexp.reduce(log_weights), LOG_TINY)
