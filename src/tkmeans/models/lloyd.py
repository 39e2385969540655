"""Plain k-means in the same loop: an oracle, since everyone knows what it must return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from tkmeans.models.base import CenterModel, constant_tables, moved_centers
from tkmeans.stats import Kernel, Params, Stats


@final
@dataclass(frozen=True, kw_only=True)
class Lloyd(CenterModel):
    """Every row belongs to its nearest centre and counts fully there."""

    def kernel(self, params: Params) -> Kernel:
        """Distances are all that matters."""
        n_features = params.centers.shape[1]
        tables = constant_tables(n_features, exponent=1.0, log_norm=0.0, gain=1.0, log_trust_bias=0.0)
        return Kernel(slope=1.0, power=0, hard=True, **tables)

    def m_step(self, stats: Stats, params: Params) -> Params:
        """Centres are means."""
        return params._replace(centers=moved_centers(stats, params)[0])
