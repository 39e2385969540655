"""Fast t-k-means: nu fixed and alpha -> 0, as published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from tkmeans.models.base import CenterModel, constant_tables, moved_centers
from tkmeans.stats import Kernel, Params, Stats


@final
@dataclass(frozen=True, kw_only=True)
class Fast(CenterModel):
    """Memberships proportional to D^-(nu+p)/2, and centres weighted by them alone.

    These are fuzzy c-means memberships with m = 1 + 2/(nu + p). Taken literally the
    limit also weights the centres by u ~ 1/D, and then every centre collapses onto
    one row (``power=1`` does that); the published figures were made with tau alone.
    `Params.scale` is the small number that keeps D = 0 finite; it is not estimated.
    """

    power: int = 0

    @property
    def climbs(self) -> bool:
        """With tau alone as weight there is no function that every step improves."""
        return self.power == 1

    def kernel(self, params: Params) -> Kernel:
        """The t kernel with nu alpha replaced by a tiny number: the limit, without its pole."""
        n_features = params.centers.shape[1]
        half = (params.dof + np.arange(n_features + 1)) / 2
        tables = constant_tables(n_features, log_norm=0.0, gain=1.0, log_trust_bias=0.0)
        return Kernel(slope=1 / params.scale, power=self.power, exponent=half, **tables)

    def m_step(self, stats: Stats, params: Params) -> Params:
        """Only the centres move."""
        return params._replace(centers=moved_centers(stats, params)[0])
