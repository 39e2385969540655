"""Which rows are outliers, decided by the distances of all rows to their centres.

A fitted t distribution absorbs contamination into its tail, so a level on its own tail probability is either blind
(with outliers) or flags its level (without). The rule asks another question: are the distances better explained by
*two* groups, a core whose squared distances follow scale * F(p, nu) with a scale and a nu of its own, and strays,
which are log-uniform from well outside the core to the farthest row? If the Bayesian information criterion prefers
one group, with a core of all p features and of the fewer that tell something, as an estimated number, no row is an
outlier. Otherwise outliers are the rows that are more probably strays.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.spatial import cKDTree
from scipy.special import betaincinv, betaln, chdtri, digamma, expit, fdtrc, logit

from tkmeans.fit_warnings import warn_user
from tkmeans.fitted import FittedModel, Sketch
from tkmeans.models.noise import NO_NOISE, log_volume
from tkmeans.sources import Answer
from tkmeans.sources.base import observed_features, to_numpy
from tkmeans.stats import Array, Block, namespace

FAR = 20.0  # strays begin at this multiple of the median squared distance: nearer rows are the core's
RARE = 1e-9  # of ellipses they begin where the tail of a Gaussian is this small, if that is nearer
MUCH_NEARER, MANY = 20.0, 0.4  # times, in squared distances; of the rows
ROUNDING = 1e-6  # of the scale
MANY_STRAYS = 0.1  # of the rows: where sizes are at their bound, more are a cluster
_CORE_DOF = (1.0, 1000.0)
FARTHEST = 1e200  # times the median: as good as infinitely far, and ratios are numbers still
_FARTHEST_CHECKED = 2000  # rows looked at in the search for clumps


class OutlierModel(NamedTuple):
    """A core and strays around it."""

    core_scale: float
    core_dof: float
    share: float  # of strays among all rows; 0 if one group is enough
    begin: float  # squared distance from which on there are strays
    end: float  # squared distance of the farthest row
    threshold: float  # squared distance from which on a row is an outlier
    core_features: float  # as many as the distances of the core look like, at most all


@np.errstate(under="ignore")
def fit_outlier_model(
    distances: Sketch, n_features: int, level: float = 0.5, scale: float = 0.0, dof: float = np.inf, far: float = FAR
) -> OutlierModel:
    """The one- or two-group model of the distances, whichever the BIC prefers.

    The threshold is where the probability of being a stray passes `level`. Distances far below the `scale` of the
    clusters, which is then at its floor, are rounding errors of rows that equal their centre. Where many rows equal one
    another, and are much nearer to it than by this scale and `dof`, their distance is no measure of the others.
    """
    n_rows, middle, d2 = float(np.sum(distances.mass)), distances.median, distances.d2
    near = d2[np.searchsorted(np.cumsum(distances.mass), MANY * n_rows)]
    at_centers = MUCH_NEARER * near < _core_quantile(1 - MANY, n_features, scale, min(dof, _CORE_DOF[1]))
    begin, end = far * middle, float(distances.d2[-1])
    nobody = max(4 * end, ROUNDING * scale)  # without strays, a row twice as far as the farthest is one all the same
    if middle > 0:  # a distance of 0 has no logarithm; it is as good as very close
        d2, end = np.clip(d2, 1e-9 * middle, FARTHEST * middle), min(end, FARTHEST * middle)
    if at_centers or not max(1e-250, far * ROUNDING * scale) < begin < end:  # scales of a core near 0 would be 0
        return OutlierModel(middle / n_features, _CORE_DOF[1], 0.0, begin, end, nobody, n_features)
    end = max(end, math.e * begin)  # a narrow range would be no range, but a place that a row has chosen
    log_stray = np.where(d2 >= begin, -np.log(d2) - np.log(np.log(end / begin)), -np.inf)

    def loss(theta: Array) -> tuple[float, Array]:
        """Of one group, or with a fourth parameter of two."""
        core, slopes = _log_core(d2, *np.exp(theta[:3])), _core_slopes(d2, *np.exp(theta[:3]))
        if len(theta) == 3:
            return -float(distances.mass @ core), -(slopes @ distances.mass)
        core = core - np.logaddexp(0, theta[3])
        both = np.logaddexp(core, log_stray - np.logaddexp(0, -theta[3]))
        belongs = distances.mass * np.exp(core - both)  # to the core
        return -float(distances.mass @ both), -np.append(slopes @ belongs, n_rows * expit(-theta[3]) - np.sum(belongs))

    whole, first_scale = np.log(n_features), np.log(middle / n_features)
    starts = [[whole, first_scale, np.log(nu), np.log(share)] for nu in (1.5, 2.0, 20.0) for share in (0.03, 0.3)]

    def strays(fewest: float) -> tuple[bool, Any, Any]:
        """Whether there are some around a core of e^so many features or more, and the fits of one and two groups."""
        bounds = [(fewest, whole), (first_scale - 8, first_scale + 8), tuple(np.log(_CORE_DOF).tolist()), (-14.0, 2.0)]
        one = _least(loss, [starts[0][:3], starts[4][:3]], bounds[:3])
        two = _least(loss, starts[2:], bounds)
        return one.fun - two.fun >= np.log(n_rows), one.x, two.x  # two more parameters: a share, and where strays end

    found, core, both = strays(whole)
    if not found and n_features > 1:
        found, _, both = strays(0.0)
        found &= both[0] < np.log(n_features - 0.5)  # some of them tell nothing
    features, scale, dof = np.exp((both if found else core)[:3]).tolist()
    share = float(expit(both[3])) if found else 0.0
    first = _stray_at(features, scale, dof, share, begin, end, level) if found else None
    return OutlierModel(scale, dof, share, begin, end, first or nobody, features)


def has_noise(fitted: FittedModel) -> bool:
    """Whether a noise component answers; one that is as good as empty does not."""
    return any(getattr(fitted.params, name, 0) > NO_NOISE for name in ("noise", "beyond"))


def strays_of(fitted: FittedModel, distances: Sketch, level: float) -> OutlierModel | None:
    """The outlier model of a fit, by the distances of its training rows; None where its empty noise component answers.

    An empty noise component was beaten by heavy tails. If without strays tails are lighter, these made them so.
    """
    params, is_mixture = fitted.params, hasattr(fitted.params, "covariances")
    # Those of mixtures are Mahalanobis distances, which have no unit.
    scale, dof = 1.0 if is_mixture else getattr(params, "scale", 1.0), float(np.max(getattr(params, "dof", np.inf)))
    p = params.centers.shape[1]
    far = min(FAR, chdtri(p, RARE) / chdtri(p, 0.5)) if is_mixture else FAR  # round ones know no widths
    strays = fit_outlier_model(distances, p, level, scale, dof, far)
    lighter = strays.core_dof > dof and strays.core_scale > scale / 10  # a narrow one is of equal rows
    if strays.share > MANY_STRAYS and is_mixture and fitted.model.is_at_bound(params):
        strays = strays._replace(share=0.0, threshold=4 * strays.end)  # they are what a wide cluster may not have
    return strays if lighter or not getattr(params, "noise", 0) + getattr(params, "beyond", 0) else None


@lru_cache(maxsize=4096)  # blocks of rows ask the same again and again
def threshold_over(n_observed: int, model: OutlierModel, n_features: int, level: float = 0.5) -> float:
    """The threshold for rows that have only `n_observed` of the features."""
    if n_observed == n_features or model.core_scale == 0:
        return model.threshold
    if n_observed == 0:
        return np.inf  # nothing is known of such a row
    core, begin, end = _over(n_observed, model, n_features)
    if model.share > 0 and (found := _stray_at(*core, model.share, begin, end, level)) is not None:
        return found
    tail = fdtrc(model.core_features, model.core_dof, model.end / (model.core_features * model.core_scale))
    return 4 * _core_quantile(max(tail, 1e-300), *core)


def _over(n_observed: int, model: OutlierModel, n_features: int) -> tuple[tuple[float, float, float], float, float]:
    """The core over some of the features, and where strays begin and end there.

    A round core's squared distances over fewer features follow scale * F(n_observed, nu), and log-uniform
    strays are log-uniform still; so both groups are the same, but nearer.
    """
    shares = model.core_features, model.core_features * n_observed / n_features
    whole, part = ((p, model.core_scale, model.core_dof) for p in shares)
    nearer = 1.0 if n_observed == n_features else _core_quantile(0.5, *part) / _core_quantile(0.5, *whole)
    return part, model.begin * nearer, model.end * nearer


def warn_of_clumps(strays: Array, numbers: Array, radius: float, centers: Array, least: float = 0) -> None:
    """Warn if outliers, with these row numbers, are not scattered: `least` within the radius of a cluster are a heap.

    They are 10, a tenth of all, and more by four deviations than if all were spread evenly over their box.
    """
    strays, numbers = (each[:: -(-len(each) // _FARTHEST_CHECKED) or 1] for each in (strays, numbers))
    if not len(strays):
        return
    norm = 2.0 if radius > 1e-150 and float(np.max(np.abs(strays))) < 1e150 else np.inf  # squares overflow, or are 0
    tree = cKDTree(strays / 4)  # of which no difference overflows
    middle = np.argmax(tree.query_ball_point(tree.data, radius / 4, norm, return_length=True))
    heap = np.sort(numbers[tree.query_ball_point(tree.data[middle], radius / 4, norm)])
    n, p = strays.shape
    halves = np.ptp(np.vstack([strays, centers]) / 2, axis=0)  # of the sides of the box
    with np.errstate(over="ignore"):
        share = np.exp(log_volume(p, 0.0) - np.sum(np.log(2 * np.maximum(halves / radius, 1.0))))
    even = min(share, 1.0)  # of them in a ball
    if len(heap) >= max(10, 0.1 * n, least) and len(heap) > n * even + 4 * np.sqrt(n * even * (1 - even)):
        named = f"{len(heap)} rows, such as {', '.join(map(str, heap[:3]))}"
        found = f"{len(heap) / len(strays):.0%} of the outliers lie together within {radius:.3g} of one point ({named})"
        way_out = "Try a larger n_clusters; or, if they are one error made many times, leave them outliers:"
        words = f"{found}: they look like a missed cluster. {way_out} min_cluster_size={len(heap) + 1} keeps them so."
        warn_user(words, UserWarning)


def astray(fitted: FittedModel, strays: OutlierModel | None, level: float, block: Block) -> Answer:
    """Whether each row is more probably a stray, or noise, than `level`."""
    return Answer((_stray(fitted, block, strays, level),))


def noise_of(fitted: FittedModel, strays: OutlierModel | None, block: Block) -> Answer:
    """How probable it is that each row is noise or, where there is no noise component, a stray."""
    if strays is None:
        return Answer(fitted.fields(block, "noise"))
    (d2,), n_observed = fitted.fields(block, "d2"), observed_features(block.X)
    numbers, found = np.broadcast_to(to_numpy(n_observed), d2.shape), np.zeros(d2.shape)
    for number in np.unique(numbers):
        own = numbers == number
        found[own] = stray_probability(to_numpy(d2)[own].astype(float), int(number), strays, block.X.shape[1])
    return Answer((namespace(d2).asarray(found, dtype=d2.dtype, device=d2.device),))


def stray_probability(d2: Array, n_observed: int, model: OutlierModel, n_features: int) -> Array:
    """How probable strays are at these squared distances over so many of the features."""
    flagged = d2 > threshold_over(n_observed, model, n_features)
    if n_observed == 0 or model.share == 0 or model.core_scale == 0:
        return flagged.astype(float)
    core, begin, end = _over(n_observed, model, n_features)
    found = np.where(d2 >= begin, expit(_log_odds(np.clip(d2, begin, 1e6 * end), *core, model.share, begin, end)), 0.0)
    return np.where(flagged, np.maximum(found, 0.5 + 1e-6), np.minimum(found, 0.5))  # whatever rounding does


def labels_of(fitted: FittedModel, strays: OutlierModel | None, level: float, outlier: int, block: Block) -> Answer:
    """The cluster of each row, or the label `outlier` for strays."""
    (label,) = fitted.fields(block, "label")
    xp = namespace(label)
    return Answer((xp.where(_stray(fitted, block, strays, level), xp.full_like(label, outlier), label),))


def _stray(fitted: FittedModel, block: Block, strays: OutlierModel | None, level: float) -> Array:
    """By the probability of noise or, where there is no noise component, by the squared distance."""
    X, n_observed = block.X, observed_features(block.X)
    if strays is None:
        (noise,) = fitted.fields(block, "noise")
        return noise > level if isinstance(n_observed, int) else (noise > level) & (n_observed > 0)
    (evidence,) = fitted.fields(block, "d2")
    if isinstance(n_observed, int):
        return evidence > threshold_over(n_observed, strays, X.shape[1], level)
    numbers, which = np.unique(to_numpy(n_observed), return_inverse=True)
    thresholds = np.array([threshold_over(int(number), strays, X.shape[1], level) for number in numbers])
    return evidence > namespace(evidence).asarray(thresholds[which], device=evidence.device)


def _log_core(r: Array, p: float, scale: float, dof: float) -> Array:
    """The log-density of a squared distance r where r / (p scale) follows F(p, dof)."""
    z = r / (dof * scale)
    return -betaln(p / 2, dof / 2) - np.log(r) + p / 2 * np.log(z) - (dof + p) / 2 * np.log1p(z)


def _core_slopes(r: Array, p: float, scale: float, dof: float) -> Array:
    """The derivatives of `_log_core` by the logarithms of p, scale and dof, (3, n)."""
    z = r / (dof * scale)
    pull, both = (dof + p) / 2 * z / (1 + z) - p / 2, digamma((dof + p) / 2) - np.log1p(z)
    return np.array([p / 2 * (both - digamma(p / 2) + np.log(z)), pull, pull + dof / 2 * (both - digamma(dof / 2))])


def _core_quantile(tail: float, p: float, scale: float, dof: float) -> float:
    """The squared distance that a fraction `tail` of the core exceeds."""
    core = max(float(betaincinv(dof / 2, p / 2, tail)), 1e-300)  # 0 where tails are heavier than any number
    return scale * dof * (1 / core - 1)


def _stray_at(p: float, scale: float, dof: float, share: float, low: float, high: float, level: float) -> float | None:
    """The least squared distance at which a row is a stray with the probability `level`; None if there is none."""

    def above(r: Any) -> Any:
        return _log_odds(r, p, scale, dof, share, low, high) - logit(level)

    grid = np.geomspace(low, high, 2000)
    if not (stray := above(grid) > 0).any():
        return None
    # The odds rise with the distance, because a log-uniform tail is the heavier one.
    first = int(stray.argmax())
    return float(brentq(above, grid[first - 1], grid[first]) * (1 + 1e-11) if first else low)  # and not before it


def _log_odds(r: Array, p: float, scale: float, dof: float, share: float, low: float, high: float) -> Array:
    """Of being a stray at squared distances r."""
    return logit(share) - np.log(r) - np.log(np.log(high / low)) - _log_core(r, p, scale, dof)


def _least(loss: Callable[[Array], tuple[float, Array]], starts: list[list[float]], bounds: list[Any]) -> Any:
    """The best of local minimisations from several starts."""
    fits = (minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds) for start in starts)
    return min(fits, key=lambda fit: fit.fun)
