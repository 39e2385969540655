"""Fast t-k-means: the limit of a vanishing scale with fixed degrees of freedom, as in the released code."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import final

import numpy as np

from tkmeans.engines import reference
from tkmeans.stats import Block, Kernel, Params, Stats


@final
@dataclass(frozen=True, kw_only=True)
class Fast:
    """Memberships proportional to D^-(nu+p)/2, and centres weighted by them alone.

    These are fuzzy c-means memberships with m = 1 + 2/(nu + p). Taken literally the limit also weights the centres by
    u ~ 1/D, and then every centre collapses onto one row (``power=1`` does that); the published figures were made with
    tau alone. `Params.scale` is the small number that keeps D = 0 finite; it is not estimated.
    """

    power: int = 0
    engine: ModuleType = reference

    @property
    def climbs(self) -> bool:
        """With tau alone as weight there is no function that every step improves."""
        return self.power == 1

    def kernel(self, params: Params) -> Kernel:
        """The t kernel with nu alpha replaced by a tiny number: the limit, without its pole."""
        p = np.arange(params.centers.shape[1] + 1)
        zeros, exponent = np.zeros(len(p)), (params.dof + p) / 2
        return Kernel(1 / params.scale, self.power, exponent, log_norm=zeros, gain=zeros + 1, log_u_bias=zeros)

    def e_step(self, params: Params) -> Callable[[Block], Stats]:
        """A function that sums tau u^q over one block of rows."""
        return partial(self.engine.summarize, params=params, kernel=self.kernel(params))

    def m_step(self, stats: Stats, params: Params) -> Params:
        """Only the centres move."""
        return params._replace(centers=params.centers + stats.step)
