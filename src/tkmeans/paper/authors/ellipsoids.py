"""The released GMM and TMM: mixtures with a covariance matrix for each component.

Both carry a slip that makes their rows of the published tables artefacts: the running
sums of the covariance are not reset from one component to the next, so the last
component's matrix is that of all rows around all centres.
"""

from __future__ import annotations

from itertools import accumulate
from typing import NamedTuple, final

import numpy as np
from scipy.special import gamma

from tkmeans.paper.authors import soft_model
from tkmeans.paper.authors.moments import Rows
from tkmeans.paper.authors.soft_model import Measured, Memberships, SoftModel, numbers
from tkmeans.stats import Array


class Components(NamedTuple):
    """Parameters of a mixture."""

    centers: Array  # (K, p)
    covariances: Array  # (K, p, p)
    weights: Array  # (K,) pi
    dof: Array  # (K,) nu
    measured: Measured | None = None

    @classmethod
    def around(cls, centers: Array) -> Components:
        """Where the released code begins: unit covariances, equal weights, nu = 15."""
        n_components, p = centers.shape
        covariances = np.broadcast_to(np.eye(p), (n_components, p, p))
        return cls(
            centers, covariances, np.full(n_components, 1 / n_components), np.full(n_components, soft_model.FIRST_DOF)
        )

    def measure(self, rows: Rows) -> Measured:
        """How far rows are from these components."""
        return Measured(rows, *rows.measure(self.centers, self.covariances))


@final
class ReleasedGMM(SoftModel):
    """A Gaussian mixture whose density *grows* with the distance: exp(+D/2).

    The covariance sums carry over from component to component, and 1e-10 I is added
    where a determinant is at most 1e-10.
    """

    def density(self, measured: Measured, params: Components) -> tuple[Array, Array, Array, Array]:
        """pi / sqrt(det), and D falls by -1/2 where it should be +1/2; full trust."""
        _, d2, det = measured
        return params.weights / np.sqrt(det), np.full(len(d2), -0.5), d2, np.broadcast_to(1.0, d2.shape)

    def m_step(self, stats: Memberships, params: Components) -> Components:
        """Means and covariances with the weights tau."""
        rows, tau, sizes = stats.measured.rows, stats.tau, stats.sizes
        with np.errstate(all="ignore"):
            raw = rows.means(tau)  # NaN and all: the sums see it
            covariances = carried(rows.scatters(tau, raw), sizes)
            small = ~(np.linalg.det(covariances) > 1e-10)
            covariances[small] += 1e-10 * np.eye(raw.shape[1])
            new = Components(numbers(raw), covariances, sizes / tau.shape[1], params.dof)
            return new._replace(measured=new.measure(rows))


@final
class ReleasedTMM(SoftModel):
    """A mixture of t distributions, with a covariance and a nu for each component.

    Centres are weighted by tau / u where EM says tau u; the covariance sums carry over
    from component to component and get 1e-4 I added; nu is that of t-k-means.
    """

    def density(self, measured: Measured, params: Components) -> tuple[Array, Array, Array, Array]:
        """pi times the t density at the centre; ln(1 + D/nu) falls by (nu + p)/2."""
        nu, p = params.dof, params.centers.shape[1]
        height = params.weights * gamma((nu + p) / 2) / gamma(nu / 2)
        height = height / np.sqrt(measured.det) / (np.pi * nu) ** (p / 2)
        return height, (nu + p) / 2, *soft_model.bases(measured.d2, 1 / nu)

    def m_step(self, stats: Memberships, params: Components) -> Components:
        """Centres with tau / u, covariances with tau u around them, then nu."""
        (rows, _, _), tau, trust, sizes, _ = stats
        nu, p = params.dof, params.centers.shape[1]
        with np.errstate(all="ignore"):
            raw = rows.means(tau / trust)
            scatters = rows.scatters(tau * trust, raw) * (1 + p / nu)[:, None, None]
            covariances = carried(scatters, sizes) + 1e-4 * np.eye(p)
            new = Components(numbers(raw), covariances, sizes / tau.shape[1], nu)
            measured = new.measure(rows)
            means = soft_model.mean_log_u_minus_u(tau, sizes, measured.d2, 1 / nu, 1 + p / nu)
            return new._replace(dof=soft_model.next_dof(means, nu, p), measured=measured)


def carried(sums: Array, sizes: Array) -> Array:
    """S/n for each component, where the sums S and n go on from the component before."""
    return np.array(list(accumulate(sums))) / np.cumsum(sizes)[:, None, None]
