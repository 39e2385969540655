"""A short model: a mixture of round Gaussians that share one variance.

Copy this file to begin a model of your own. A model needs four things:
params, stats, an E-step and an M-step. The loop (`em`), sources, frames,
threads, files and stopping rules are there already.

The file runs as a test, `pytest new_model.py`: its end compares the model with
scikit-learn and SciPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, final

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import logsumexp
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from tkmeans.em import SmallGain, em
from tkmeans.models import Model
from tkmeans.sources import ArraySource
from tkmeans.stats import Array, Block

# ---- the model ------------------------------------------------------


class GaussianParams(NamedTuple):
    """1. What EM estimates, in a frame; `em` itself reads `centers` only."""

    centers: Array  # (K, p) mu
    variance: float
    log_weights: Array  # (K,) ln pi


class GaussianStats(NamedTuple):
    """2. What the M-step needs of all rows: sums, which can be added."""

    n: Array  # (K,) sum of tau
    x: Array  # (K, p) sum of tau (x - mu_old)
    d2: float  # sum of tau |x - mu_old|^2
    objective: float  # what EM maximises: here the log-likelihood

    @property
    def total(self) -> float:
        """The summed weight of the rows."""
        return float(self.n.sum())

    def merge(self, other: GaussianStats) -> GaussianStats:
        """The sums over both sets of rows."""
        return GaussianStats(
            *(a + b for a, b in zip(self, other, strict=True))
        )


@final
@dataclass(frozen=True)
class RoundGaussians(Model[GaussianParams, GaussianStats]):
    """The model: what is given, here nothing. Params are what is estimated."""

    @property
    def climbs(self) -> bool:
        """Whether an M-step never lowers the objective: an exact one."""
        return True

    def e_step(
        self, params: GaussianParams
    ) -> Callable[[Block], GaussianStats]:
        """3. A function that sums the E-step over one block."""
        # It is sent to other machines: a partial can be pickled.
        return partial(summarize, params=params)

    def m_step(
        self, stats: GaussianStats, params: GaussianParams
    ) -> GaussianParams:
        """4. The params that maximise the expected log-likelihood."""
        p = params.centers.shape[1]
        step = stats.x / stats.n[:, None]  # (K, p)
        # The sums are around the old centres: shift them to the new ones.
        d2 = stats.d2 - np.sum(stats.n[:, None] * step**2)
        return GaussianParams(
            centers=params.centers + step,
            variance=float(d2 / (stats.total * p)),
            log_weights=np.log(stats.n / stats.total),
        )


def summarize(block: Block, params: GaussianParams) -> GaussianStats:
    """The E-step of one block: tau, and its sums."""
    centers, variance, log_weights = params
    x = block.frame.enter(block.X)  # (n, p)
    away = x[:, None, :] - centers  # (n, K, p)
    d2 = np.sum(away**2, axis=2)  # (n, K)
    log_norm = x.shape[1] / 2 * np.log(2 * np.pi * variance)
    log_f = log_weights - d2 / (2 * variance) - log_norm  # (n, K)
    log_density = logsumexp(log_f, axis=1)  # (n,)
    weight = np.ones(len(x)) if block.weight is None else block.weight
    tau = np.exp(log_f - log_density[:, None]) * weight[:, None]  # (n, K)
    return GaussianStats(
        n=tau.sum(axis=0),
        x=np.einsum("nk,nkp->kp", tau, away),
        d2=float(np.sum(tau * d2)),
        objective=float(weight @ log_density),
    )


# ---- checks against independent oracles ------------------------------


class Fitted(NamedTuple):
    """A fit in the user's coordinates."""

    centers: Array  # (K, p)
    variance: float
    weights: Array  # (K,)
    log_likelihood: float  # per row


def fit(X: Array, start: Array, weight: Array | None = None) -> Fitted:
    """Run EM to the end."""
    # Several blocks, so that merging is tested too.
    source = ArraySource(X, weight, block_rows=100)
    source.frame = frame = source.measure()
    equal = np.full(len(start), -np.log(len(start)))
    first = GaussianParams(frame.enter(start), 1.0, equal)
    stop = SmallGain(1e-13)
    end = em(source, RoundGaussians(), first, stop=stop, max_iter=5000)
    assert end.converged
    assert np.all(np.diff(end.history) >= 0)
    return Fitted(
        centers=frame.leave(end.params.centers),
        variance=end.params.variance * frame.unit**2,
        weights=np.exp(end.params.log_weights),
        # A density has a unit, too.
        log_likelihood=end.history[-1] - X.shape[1] * np.log(frame.unit),
    )


def test_one_feature_agrees_with_scikit_learn() -> None:
    """With one feature, a "tied" covariance is one variance."""
    rng = np.random.default_rng(0)
    X = np.append(rng.normal(50, 2, 300), rng.normal(60, 2, 100))[:, None]
    start = np.array([[45.0], [65.0]])
    theirs = GaussianMixture(
        n_components=2,
        covariance_type="tied",
        reg_covar=0,
        tol=1e-13,
        max_iter=5000,
        means_init=start,
    ).fit(X)
    ours = fit(X, start)
    assert_allclose(ours.centers, theirs.means_, rtol=1e-5)
    assert_allclose(ours.variance, theirs.covariances_.item(), rtol=1e-4)
    assert_allclose(ours.weights, theirs.weights_, rtol=1e-4)
    assert_allclose(ours.log_likelihood, theirs.score(X), rtol=1e-10)


def test_two_features_and_weights_agree_with_scipy() -> None:
    """The maximum for two features; sample weights as repeated rows."""
    rng = np.random.default_rng(1)
    groups = [rng.normal([0, 0], 1, (200, 2)), rng.normal([4, 1], 1, (100, 2))]
    X = np.concatenate(groups)
    times = rng.integers(1, 4, len(X))
    start = np.array([[-1.0, 0.0], [5.0, 0.0]])
    ours = fit(np.repeat(X, times, axis=0), start)

    def log_likelihood(centers: Array, variance: float) -> float:
        density = np.zeros(len(X))
        for share, center in zip(ours.weights, centers, strict=True):
            density += share * multivariate_normal(center, variance).pdf(X)
        return float(np.average(np.log(density), weights=times))

    most = log_likelihood(ours.centers, ours.variance)
    assert_allclose(ours.log_likelihood, most, rtol=1e-12)
    for change in 0.99, 1.01:
        assert log_likelihood(ours.centers, ours.variance * change) < most
        assert log_likelihood(ours.centers * change, ours.variance) < most
    weighted = fit(X, start, weight=times.astype(float))
    assert_allclose(weighted.centers, ours.centers, rtol=1e-4)
    assert_allclose(weighted.log_likelihood, most, rtol=1e-9)
