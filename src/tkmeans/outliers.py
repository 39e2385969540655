"""Which rows are outliers: the verdict, from the distances of all rows to their centres.

A fitted t distribution absorbs contamination into its tail, so a level on its own tail
probability is either blind (with outliers) or flags its level (without). The verdict
asks another question: are the distances better explained by *two* groups, a core whose
squared distances follow scale * F(p, nu) with a scale and a nu of its own, and strays,
which are log-uniform from well outside the core to the farthest row? If the Bayesian
information criterion says no, nobody is an outlier. If it says yes, outliers are the
rows that are more probably strays.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import cKDTree
from scipy.special import betaincinv, betaln, digamma, expit, fdtrc, logit

from tkmeans.stats import Array

# Strays begin at this multiple of the median squared distance: nearer rows are the core's.
WELL_OUTSIDE = 20.0

# With fewer complete rows, those with missing values are looked at too.
ENOUGH_COMPLETE_ROWS = 100

_BODY, _TAIL = 500, 200  # points of a sketch: quantiles of all rows, and the farthest rows themselves
# A tally distinguishes 128 steps per octave, the leading bits of a float64, over 200 octaves around 1.
_BITS_DROPPED, _FIRST_STEP, _STEPS = 45, (1023 - 100) * 128, 200 * 128
_CORE_DOF = (1.0, 1000.0)
FARTHEST = 1e200  # times the median: as good as infinitely far, and ratios are numbers still
_FARTHEST_CHECKED = 2000  # rows looked at in the search for clumps


class Sketch(NamedTuple):
    """The distribution of squared distances, in a few hundred points."""

    d2: Array  # ascending
    mass: Array  # the rows each point stands for


class OutlierModel(NamedTuple):
    """A core and strays around it."""

    core_scale: float
    core_dof: float
    share: float  # of strays among all rows; 0 if one group is enough
    begin: float  # squared distance from which on there are strays
    end: float  # squared distance of the farthest row
    threshold: float  # squared distance from which on a row is an outlier


def comparable(d2: Array, n_seen: Array, n_features: int, weight: Array | None = None) -> tuple[Array, Array | None]:
    """The squared distances, and weights, of rows that can be compared with each other.

    Those of complete rows if there are enough: over few features there is nearly always some
    centre close by. Else all, in proportion to the features that were observed.
    """
    if np.ndim(n_seen) == 0:
        return d2, weight
    complete = (n_seen == n_features) & (True if weight is None else weight > 0)
    kept = complete if np.count_nonzero(complete) >= ENOUGH_COMPLETE_ROWS else n_seen > 0
    return d2[kept] * (n_features / n_seen[kept]), None if weight is None else weight[kept]


class Tally(NamedTuple):
    """How often which squared distance occurs; the tallies of blocks add up."""

    mass: Array  # (_STEPS,)
    moment: Array  # (_STEPS,) sum of mass times distance, for the mean of each step
    farthest: Array  # at most _TAIL distances, ascending
    farthest_mass: Array

    def merge(self, other: Tally) -> Tally:
        """The tally of both sets of rows."""
        far = np.concatenate([self.farthest, other.farthest])
        far_mass = np.concatenate([self.farthest_mass, other.farthest_mass])
        kept = np.argsort(far, kind="stable")[-_TAIL:]
        return Tally(self.mass + other.mass, self.moment + other.moment, far[kept], far_mass[kept])

    def sketch(self) -> Sketch:
        """The farthest rows one by one, the others in steps of about equal mass."""
        tail_steps = _steps(self.farthest)
        mass = self.mass - np.bincount(tail_steps, self.farthest_mass, _STEPS)
        moment = self.moment - np.bincount(tail_steps, self.farthest_mass * self.farthest, _STEPS)
        body = np.flatnonzero(mass > 1e-12 * np.sum(self.mass))  # rounding may leave crumbs of weights
        mass, moment = mass[body], moment[body]
        up_to = np.cumsum(mass)
        group = np.floor((up_to - mass / 2) / up_to[-1:] * _BODY)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        if len(starts):
            mass, moment = np.add.reduceat(mass, starts), np.add.reduceat(moment, starts)
        d2 = np.concatenate([np.maximum(moment, 0) / mass, self.farthest])
        return Sketch(np.maximum.accumulate(d2), np.concatenate([mass, self.farthest_mass]))


def tally(d2: Array, weight: Array | None = None) -> Tally:
    """Tally squared distances, best in a unit near their own."""
    d2 = np.ascontiguousarray(d2, dtype=np.float64)
    mass = None if weight is None else np.asarray(weight, dtype=np.float64)
    steps = _steps(d2)
    counted = np.arange(len(d2)) if mass is None else np.flatnonzero(mass)
    if len(counted) > _TAIL:
        counted = counted[np.argpartition(d2[counted], -_TAIL)[-_TAIL:]]
    far = counted[np.argsort(d2[counted], kind="stable")]
    return Tally(
        np.bincount(steps, mass, _STEPS).astype(np.float64),
        np.bincount(steps, d2 if mass is None else d2 * mass, _STEPS),
        d2[far],
        np.ones(len(far)) if mass is None else mass[far],
    )


def sketch(d2: Array, weight: Array | None = None) -> Sketch:
    """Summarise squared distances in a few hundred points."""
    return tally(d2, weight).sketch()


def _steps(d2: Array) -> Array:
    return np.clip((d2.view(np.int64) >> _BITS_DROPPED) - _FIRST_STEP, 0, _STEPS - 1)


def fit_outlier_model(distances: Sketch, n_features: int, level: float = 0.5) -> OutlierModel:
    """The one- or two-group model of the distances, whichever the BIC prefers.

    The threshold is where the probability of being a stray passes `level`.
    """
    n_rows = float(np.sum(distances.mass))
    middle = median(distances)
    begin, end = WELL_OUTSIDE * middle, float(distances.d2[-1])
    nobody = 4 * end  # without strays, a row twice as far away as the farthest is one all the same
    # A distance of 0 has no logarithm; it is as good as very close.
    d2 = distances.d2
    if middle > 0:
        d2, end = np.clip(d2, 1e-9 * middle, FARTHEST * middle), min(end, FARTHEST * middle)
    if not 0 < begin < end:
        return OutlierModel(middle / n_features, _CORE_DOF[1], 0.0, begin, end, nobody)

    log_stray = np.where(d2 >= begin, -np.log(d2) - np.log(np.log(end / begin)), -np.inf)

    def loss_of_one(theta: Array) -> tuple[float, Array]:
        core, slopes = _log_core(d2, n_features, *np.exp(theta)), _core_slopes(d2, n_features, *np.exp(theta))
        return -float(distances.mass @ core), -(slopes @ distances.mass)

    def loss_of_two(theta: Array) -> tuple[float, Array]:
        core, slopes = _log_core(d2, n_features, *np.exp(theta[:2])), _core_slopes(d2, n_features, *np.exp(theta[:2]))
        core = core - np.logaddexp(0, theta[2])
        both = np.logaddexp(core, log_stray - np.logaddexp(0, -theta[2]))
        belongs = distances.mass * np.exp(core - both)  # to the core
        share_slope = n_rows - np.sum(belongs) - n_rows * expit(theta[2])
        return -float(distances.mass @ both), -np.append(slopes @ belongs, share_slope)

    first_scale = np.log(middle / n_features)
    bounds = [
        (first_scale - 8, first_scale + 8),
        (float(np.log(_CORE_DOF[0])), float(np.log(_CORE_DOF[1]))),
        (-14.0, 2.0),
    ]
    one = _least(loss_of_one, [[first_scale, np.log(nu)] for nu in (1.5, 20.0)], bounds[:2])
    starts = [[first_scale, np.log(nu), np.log(share)] for nu in (2.0, 20.0) for share in (0.03, 0.3)]
    two = _least(loss_of_two, starts, bounds)
    if one.fun - two.fun < np.log(n_rows) / 2:
        return OutlierModel(float(np.exp(one.x[0])), float(np.exp(one.x[1])), 0.0, begin, end, nobody)
    scale, dof, share = float(np.exp(two.x[0])), float(np.exp(two.x[1])), float(expit(two.x[2]))
    found = _first_stray(n_features, scale, dof, share, begin, end, level)
    return OutlierModel(scale, dof, share, begin, end, nobody if found is None else found)


@lru_cache(maxsize=4096)  # blocks of rows ask the same again and again
def threshold_over(n_seen: int, model: OutlierModel, n_features: int, level: float = 0.5) -> float:
    """The threshold for rows that have only `n_seen` of the features.

    A round core's squared distances over fewer features follow scale * F(n_seen, nu), and log-uniform
    strays are log-uniform still; so both groups are the same, but nearer.
    """
    if n_seen == n_features or model.core_scale == 0:
        return model.threshold
    if n_seen == 0:
        return np.inf  # nothing is known of such a row
    whole, part = ((p, model.core_scale, model.core_dof) for p in (n_features, n_seen))
    if model.share > 0:
        nearer = _core_quantile(0.5, *part) / _core_quantile(0.5, *whole)
        found = _first_stray(*part, model.share, model.begin * nearer, model.end * nearer, level)
        if found is not None:
            return found
    tail = fdtrc(n_features, model.core_dof, model.end / (n_features * model.core_scale))
    return 4 * _core_quantile(max(tail, 1e-300), *part)


def warn_of_clumps(strays: Array, radius: float) -> None:
    """Warn if outliers are not scattered: many within the radius of a cluster are a missed cluster."""
    if len(strays) > _FARTHEST_CHECKED:
        strays = strays[:: -(-len(strays) // _FARTHEST_CHECKED)]
    together = 0
    if len(strays):
        largest = max(float(np.max(np.abs(strays))), radius)  # the squares of far strays may overflow
        points = strays / largest
        together = int(np.max(cKDTree(points).query_ball_point(points, radius / largest, return_length=True)))
    if together >= max(10, 0.1 * len(strays)):
        warnings.warn(
            f"{together / len(strays):.0%} of the outliers lie together within {radius:.3g} of one point: "
            "they look like a missed cluster. Try a larger n_clusters.",
            UserWarning,
            stacklevel=3,
        )


def _log_core(r: Array, p: int, scale: float, dof: float) -> Array:
    """The log-density of a squared distance r where r / (p scale) follows F(p, dof)."""
    z = r / (dof * scale)
    return -betaln(p / 2, dof / 2) - np.log(r) + p / 2 * np.log(z) - (dof + p) / 2 * np.log1p(z)


def _core_slopes(r: Array, p: int, scale: float, dof: float) -> Array:
    """The derivatives of `_log_core` by the logarithms of scale and dof, (2, n)."""
    z = r / (dof * scale)
    pull = (dof + p) / 2 * z / (1 + z) - p / 2
    constant = dof / 2 * (digamma((dof + p) / 2) - digamma(dof / 2))
    return np.array([pull, pull + constant - dof / 2 * np.log1p(z)])


def _core_quantile(tail: float, p: int, scale: float, dof: float) -> float:
    """The squared distance that a fraction `tail` of the core exceeds."""
    return float(scale * dof * (1 / betaincinv(dof / 2, p / 2, tail) - 1))


def _first_stray(
    p: int, scale: float, dof: float, share: float, begin: float, end: float, level: float
) -> float | None:
    """The least squared distance at which a row is a stray with the probability `level`; None if there is none."""
    grid = np.geomspace(begin, end, 2000)
    log_odds = logit(share) - np.log(grid) - np.log(np.log(end / begin)) - _log_core(grid, p, scale, dof)
    stray = log_odds > logit(level)
    # The odds rise with the distance, because a log-uniform tail is the heavier one.
    return float(grid[stray.argmax()]) if stray.any() else None


def _least(
    loss: Callable[[Array], tuple[float, Array]], starts: list[list[float]], bounds: list[tuple[float, float]]
) -> Any:
    """The best of local minimisations from several starts."""
    return min(
        (minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds) for start in starts), key=lambda r: r.fun
    )


def median(distances: Sketch) -> float:
    """The squared distance that half of the rows exceed."""
    up_to = np.cumsum(distances.mass)
    return float(distances.d2[np.searchsorted(up_to, up_to[-1] / 2)])
