"""Plain k-means as a model of the loop: an oracle, since everyone knows what it must return."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from tkmeans.stats import Stats


@dataclass(frozen=True)
class Lloyd:
    """Every row belongs to its nearest centre and counts fully there."""

    climbs = True

    def e_step(self, params):
        return partial(sums_of_the_nearest, params=params)

    def m_step(self, stats, params):
        """Centres are means; one that nobody claims stays."""
        step = np.divide(stats.wx, stats.observed, out=np.zeros_like(stats.wx), where=stats.observed > 0)
        return params._replace(centers=params.centers + step)

    def pack(self, params):
        return np.ravel(params.centers)

    def unpack(self, vector, like):
        return like._replace(centers=vector.reshape(like.centers.shape))


def sums_of_the_nearest(block, params):
    """The statistics of one block; the objective is minus the inertia, over the observed features."""
    x = block.frame.enter(block.X)  # (n, p)
    away = x[:, None] - params.centers  # (n, K, p)
    d2 = np.nansum(away**2, axis=2)  # (n, K)
    weight = np.ones(len(x)) if block.weight is None else block.weight
    nearest = d2.argmin(axis=1)[:, None] == np.arange(len(params.centers))  # (n, K)
    tau = weight[:, None] * nearest
    observed = ~np.isnan(x)
    n = tau.sum(axis=0)
    return Stats(
        n=n,
        w=n,
        observed=tau.T @ observed,
        wx=np.einsum("nk,nkp->kp", tau, np.nan_to_num(away)),
        wd2=(tau * d2).sum(axis=0),
        log_u=np.zeros_like(n),
        cells=float(weight @ observed.sum(axis=1)),
        objective=-float(weight @ d2.min(axis=1)),
        entropy=0.0,
    )
