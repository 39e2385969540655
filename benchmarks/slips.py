"""What the slips of the released code do: to the optimum that is found, and to robustness.

python -m benchmarks.slips [--out docs/benchmarks/slips.md]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import digamma
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.common import CLUSTERS, load, markdown, publish
from tkmeans import TKMeans
from tkmeans.datasets import contaminate
from tkmeans.em import SmallMove, em
from tkmeans.models import student
from tkmeans.models.dof import solve_dof
from tkmeans.paper.authors.methods import METHODS, uniform
from tkmeans.paper.authors.soft_models import (
    FIRST_DOF,
    Memberships,
    Rows,
    Spheres,
    mean_log_u_minus_u,
    next_dof,
    numbers,
)
from tkmeans.sources import ArraySource
from tkmeans.stats import Block, Frame, Params

SETS = ("S1", "S2", "A1", "unbalance")
RUNS = 20
NU_SAMPLES = 20
TEXT = f"""ARI, mean ± standard deviation. Rows scaled to [-1, 1] as in the paper.

## One at a time, on clean rows

{RUNS} uniform starts, alpha from 0.01 and nu from 15 as released.

{{clean}}
## With 5 % of far rows

{RUNS // 2} draws of rows that are uniform in a box ten times as wide as the data; ARI on the original rows. Starts
are the methods' own, or the true means of the clusters, which a robust method keeps.

{{robust}}
## nu = 1/(-eta) is no M-step

t-k-means from the true parameters on {NU_SAMPLES} samples of three clusters whose nu is known, with the nu of the paper
(1/(-eta), eta pooled) and with the exact root: the mean of what it ends with, and in how many of the samples a step
lowered the likelihood.

{{dof}}"""


@dataclass(frozen=True)
class Slips:
    """t-k-means with any of the released code's slips; without one it is plain EM."""

    power: int = 1  # of u in the centres' weights; -1 as released
    frozen: bool = False  # the exponent of tau keeps the first nu
    released_dof: bool = False  # nu = 1/(-eta) + 0.01, eta a mean of cluster means

    climbs = False

    def e_step(self, params: Spheres) -> Callable[[Block], Memberships]:
        """A function that does the E-step under `params` for one block of rows."""
        return lambda block: self.look(block.frame.enter(block.X), params)

    def look(self, x: np.ndarray, params: Spheres) -> Memberships:
        """tau and u of every pair, without Q."""
        nu, p, measured = params.dof, x.shape[1], params.measure(Rows(x))
        log_base = np.log1p(measured.d2 / (nu * params.scale))
        log_f = -((FIRST_DOF if self.frozen else nu) + p) / 2 * log_base
        log_f -= log_f.max(axis=0)
        tau = np.exp(log_f)
        tau /= tau.sum(axis=0)
        return Memberships(measured, tau, np.exp(-log_base), tau.sum(axis=1), 0.0)

    def m_step(self, stats: Memberships, params: Spheres) -> Spheres:
        """Centres, then alpha around them, then nu."""
        (rows, _, _), tau, trust, sizes, _ = stats
        x, nu, p = rows.x, params.dof, rows.x.shape[1]
        u = (1 + p / nu) * trust
        weight = tau * u**self.power
        centers = numbers(rows.means(weight))
        d2 = cdist(centers, x, "sqeuclidean")
        scale = float(np.vdot(tau * u, d2) / (p * len(x)))
        if self.released_dof:
            means = mean_log_u_minus_u(tau, sizes, d2, 1 / (nu * scale), 1 + p / nu)
            return Spheres(centers, scale, float(next_dof(means.mean(), nu, p)))
        half = (nu + p) / 2
        eta = 1 + np.vdot(tau, np.log(u) - u) / len(x) + digamma(half) - np.log(half)
        return Spheres(centers, scale, solve_dof(float(eta)))

    def labels(self, x: np.ndarray, centers: np.ndarray) -> np.ndarray:
        """Where EM from these centres puts the rows."""
        source = ArraySource(x, None, Frame(np.zeros(x.shape[1]), 1.0), block_rows=len(x))
        start, stop = Spheres(centers), SmallMove(1e-5)
        return em(source, self, start, stop=stop, max_iter=300, accelerate=False).stats.labels


VARIANTS = {
    "the equations, exact nu": Slips(),
    "centres weighted by tau": Slips(power=0),
    "centres weighted by tau / u": Slips(power=-1),
    "exponent of tau frozen": Slips(frozen=True),
    "nu = 1/(-eta) + 0.01": Slips(released_dof=True),
    "all of these, with tau / u": Slips(power=-1, frozen=True, released_dof=True),
}


def table(heads: list[str], scores: dict[str, Callable[[str, int], float]], runs: int) -> str:
    """Mean and standard deviation of each score on each set."""
    rows = []
    for name, score in scores.items():
        each = [[score(data, seed) for seed in range(runs)] for data in SETS]
        rows.append([name, *(f"{np.mean(values):.3f} ± {np.std(values, ddof=1):.3f}" for values in each)])
    return markdown([*heads, *SETS], rows)


def one_by_one(model: Slips) -> Callable[[str, int], float]:
    """ARI on clean rows from a uniform start."""

    def score(data: str, seed: int) -> float:
        X, y = load(data)
        start = uniform(X, CLUSTERS[data], np.random.RandomState(seed))
        return adjusted_rand_score(y, model.labels(X, start))

    return score


def with_far_rows(fit: Callable[[np.ndarray, np.ndarray, int], np.ndarray]) -> Callable[[str, int], float]:
    """ARI on the original rows, when 5 % of far ones are among them; `fit` gets the true means too."""

    def score(data: str, seed: int) -> float:
        X, y = load(data)
        Z, _ = contaminate(X, y, "far", fraction=0.05, random_state=seed)
        means = np.array([X[y == k].mean(axis=0) for k in np.unique(y)])
        return adjusted_rand_score(y, fit(Z, means, seed)[: len(X)])

    return score


def released(method: str, *, right: bool) -> Callable[[np.ndarray, np.ndarray, int], np.ndarray]:
    """A released method, from its own start or from the true means of the clusters."""

    def fit(Z: np.ndarray, means: np.ndarray, seed: int) -> np.ndarray:
        start = means if right else METHODS[method].start(Z, len(means), np.random.RandomState(seed))
        return METHODS[method].run(Z, start).labels

    return fit


def default(Z: np.ndarray, means: np.ndarray, seed: int) -> np.ndarray:
    """TKMeans with nothing set but the number of clusters."""
    return TKMeans(len(means), random_state=seed).fit_predict(Z)


def nu_steps(nu: float) -> list[str]:
    """What both updates of nu find, and in how many samples the likelihood fell."""
    rng = np.random.default_rng(int(nu))
    found, fell = {"1/(-eta)": [], "exact root": []}, dict.fromkeys(("1/(-eta)", "exact root"), 0)
    for _ in range(NU_SAMPLES):
        centers = np.array([[0.0, 0.0], [40.0, 0.0], [0.0, 40.0]])
        X = np.repeat(centers, 300, axis=0)
        X += rng.normal(size=X.shape) / np.sqrt(rng.gamma(nu / 2, 2 / nu, size=(900, 1)))
        source = ArraySource(X, None, Frame(np.zeros(2), 1.0))
        for name in found:
            update = (lambda value, *_: 1 / -value) if name == "1/(-eta)" else solve_dof
            params, history = Params(centers, 1.0, nu, np.full(3, -np.log(3))), []
            with mock.patch.object(student, "solve_dof", update):
                for _ in range(200):
                    stats = source.reduce(student.Student().e_step(params))
                    history.append(stats.objective)
                    params = student.Student().m_step(stats, params)
            found[name].append(params.dof)
            fell[name] += np.min(np.diff(history)) < -1e-6 * abs(history[0])
    return [f"{nu:g}", *(f"{np.mean(found[name]):.2f} ({fell[name]} of {NU_SAMPLES})" for name in found)]


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--out", type=Path)
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    methods = ("k-means++", "t-k-means", "fast t-k-means", "fast t-k-means++")
    far = {f"{name}, released": with_far_rows(released(name, right=False)) for name in methods}
    far |= {
        f"{name}, released, from the true means": with_far_rows(released(name, right=True)) for name in methods[1:3]
    }
    far["t-k-means, the equations, from the true means"] = with_far_rows(lambda Z, means, _: Slips().labels(Z, means))
    far["TKMeans, nothing set"] = with_far_rows(default)
    with threadpool_limits(1), np.errstate(all="ignore"):
        clean = table(["t-k-means with"], {name: one_by_one(model) for name, model in VARIANTS.items()}, RUNS)
        robust = table(["method"], far, RUNS // 2)
        dof = markdown(["true nu", "nu = 1/(-eta)", "exact root"], [nu_steps(nu) for nu in (1.0, 3.0, 10.0)])
    publish("What the slips of the released code do", TEXT.format(clean=clean, robust=robust, dof=dof), options.out)


if __name__ == "__main__":
    main()
