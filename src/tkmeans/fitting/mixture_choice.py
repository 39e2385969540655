"""The choice between starts of a mixture by short runs on a sample: the most likely, and how much of it is noise."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import polygamma

from tkmeans.em import SmallGain
from tkmeans.fitting.mixture_setting import (
    Bulk,
    Setting,
    climb,
    from_labels,
    judged,
    on_one_thread,
    with_far_noise,
    with_noise,
    with_prior,
    without_noise,
)
from tkmeans.fitting.start_choice import CORE_GAIN, LEAST_FEATURES, Agreement, within_reach
from tkmeans.models.dof import BOUNDS
from tkmeans.models.mixture import MixtureParams
from tkmeans.models.noise import NO_NOISE, NOISE_BOUNDS, log_volume
from tkmeans.search import same_clusters
from tkmeans.search.shape_search import start_labels
from tkmeans.sources import ArraySource, Sample
from tkmeans.stats import Array, Frame

AS_GAUSSIAN = 30.0  # tails that hold no noise
FIRST_ITER, ENOUGH, FINALISTS = 8, 3, 3  # of all starts; starts that must agree; the best of the others that go on
PILOT_ITER, PILOT_STOP = 60, SmallGain(1e-4)
CROWDED, RING, FEW_STRAYS = 0.4, 0.2, 10  # see `noise_is_a_cluster`
LESS_NOISE: dict[Any, Any] = {"auto": "distant", "distant": False}  # to try where noise is a cluster
by_merit = attrgetter("merit")


class MixtureStart(NamedTuple):
    """Where a run on the sample has led."""

    params: MixtureParams
    merit: float
    labels: Array  # (n,)
    noise: Array  # (n,) the probability of noise


@on_one_thread
def chosen_start(sample: Sample, setting: Setting, seed: int) -> tuple[MixtureParams, Agreement]:
    """The best start; or one that was sought without the far rows, if it is much better for the other rows.

    These must gain more than a mixture of so many more components costs that far rows have in the best start.
    """
    K, bulk, core = setting.n_components, setting.bulk, within_reach(sample, setting.spread)
    labels = start_labels(sample, bulk.units, bulk.log_volume, K, seed)
    best, agreement = best_start(sample, labels, setting)
    inner = Sample(sample.X[core], sample.weight[core])
    if np.all(core) or len(inner.X) <= K or setting.limit.is_up:
        return best.params, agreement
    labels = start_labels(inner, bulk.units, bulk.log_volume, K, seed)
    place = np.cumsum(core) - 1  # of a row of the core among these
    other, of_core = best_start(sample, (np.where(core, each[place], -1) for each in labels), setting)
    gain = float(np.diff([judged(inner, with_prior(own, setting), own)[0] for own in (best.params, other.params)])[0])
    p, mass = sample.X.shape[1], np.sum(inner.weight)
    sizes, outside = (np.bincount(best.labels[own], sample.weight[own], K) for own in (core, ~core))
    shapes = setting.model.shape.n_parameters(K, p) - setting.model.shape.n_parameters(K - 1, p)
    cost = np.count_nonzero(sizes < outside) * (p + shapes + 1) / 2 * np.log(max(mass, 1.0)) / mass  # by the BIC
    if other.merit > best.merit or gain > max(CORE_GAIN * max(p, LEAST_FEATURES), cost):
        return other.params, of_core
    return best.params, agreement


def best_start(sample: Sample, labellings: Iterable[Array], setting: Setting) -> tuple[MixtureStart, Agreement]:
    """The best of the starts from several labellings, and how many of those that went on led there.

    If its noise is doubtful, all is tried again with less noise. The noise is kept if it gains 1 in log-likelihood for
    each row that is noise with it alone, unless these are what the bound of sizes cuts off from a wide cluster.
    """
    best, agreement, tried, heavy = _most_likely(sample, labellings, setting)
    found, share = (best, agreement), best.params.noise + best.params.beyond
    boxless = setting.box or setting.model.shape.round or setting.noise in ("wide", "distant") or setting.limit.is_up
    if heavy and not boxless and _box_is_better(sample, best, setting):
        return best_start(sample, tried, setting._replace(box=True))
    if setting.noise in LESS_NOISE:
        other = with_far_noise(sample, setting, LESS_NOISE[setting.noise])
        doubtful = noise_is_doubtful(sample, best, setting) if share else bool(other.noise)
        is_cut = not doubtful and share > NO_NOISE and _is_cut_off(sample, best, tried, other)
        plain = best_start(sample, tried, other) if doubtful or is_cut else found
        if is_cut or best.merit - plain[0].merit < share - plain[0].params.noise - plain[0].params.beyond:
            found = plain
    return (with_little_noise(sample, found[0], setting), found[1]) if setting.noise == "auto" else found


def _most_likely(
    sample: Sample, labellings: Iterable[Array], setting: Setting
) -> tuple[MixtureStart, Agreement, list[Array], bool]:
    """The most likely of the starts, how sure it is, the labellings tried, and whether heavy tails may hold noise.

    Each begins with the core of its groups. If EM takes the first few to the same clusters, the others are not tried;
    else all are tried with the whole of their groups, too, and the best few go on. A single one goes on at once.
    """
    tried, runs, n_finalists, later = [], [], FINALISTS, iter(labellings)
    first = list(islice(later, 2))
    n_iter, enough = (PILOT_ITER, 1) if len(first) == 1 else (FIRST_ITER, ENOUGH)
    for labels in chain(first, later):
        tried.append(labels)
        runs.append(_run(sample, from_labels(sample, labels, setting, core=True), setting, n_iter))
        agreed = len(runs) == enough and all(same_clusters(run.labels, runs[0].labels, sample.weight) for run in runs)
        if agreed or setting.limit.is_up:
            n_finalists = 1
            break
    else:
        runs += [_run(sample, from_labels(sample, labels, setting), setting, FIRST_ITER) for labels in tried]
    runs.sort(key=lambda run: -run.merit)
    finals = runs if enough == 1 else [_run(sample, run.params, setting, PILOT_ITER) for run in runs[:n_finalists]]
    light = setting._replace(dof=BOUNDS[1])  # heavy tails may hold the noise, which EM does not take back
    heavy = setting.noise and setting.dof is None and np.min(max(finals, key=by_merit).params.dof) < AS_GAUSSIAN
    if heavy and enough > 1 and not setting.limit.is_up:
        again = (from_labels(sample, labels, light, core=True) for labels in tried)
        begun = max((_run(sample, params, setting, FIRST_ITER) for params in again), key=by_merit)
        finals.append(_run(sample, begun.params, setting, PILOT_ITER))
    best, *others = sorted(finals, key=lambda run: -run.merit)
    unlike = [run for run in others if not same_clusters(run.labels, best.labels, sample.weight)]
    n_searches = len(finals) if n_finalists > 1 else max(len(runs), 2 * (enough == 1))  # two agree on a single one
    lead = best.merit - unlike[0].merit if unlike else np.inf
    return best, Agreement(n_searches, n_searches - len(unlike), lead), tried, bool(heavy)


def _box_is_better(sample: Sample, start: MixtureStart, setting: Setting) -> bool:
    """Whether the rows are likelier with light tails and noise that is flat in the box, and this noise is even."""
    share = np.average(start.noise, weights=sample.weight)
    boxed = with_noise(start.params, share, setting._replace(box=True))
    probe = _run(sample, boxed._replace(dof=np.full_like(boxed.dof, BOUNDS[1])), setting, FIRST_ITER)
    return probe.merit > start.merit and spread_evenly(sample, probe, setting.bulk)


def _is_cut_off(sample: Sample, start: MixtureStart, tried: list[Array], setting: Setting) -> bool:
    """Whether noise is what a wide cluster has lost to the bound of sizes: the rows are likelier without both."""
    if not setting.model.is_at_bound(start.params):
        return False
    free = setting._replace(model=replace(setting.model, size_ratio=np.inf))
    return best_start(sample, tried, free)[0].merit > start.merit


def noise_is_doubtful(sample: Sample, start: MixtureStart, setting: Setting) -> bool:
    """Whether the noise of a start may be a cluster, or all rows within reach may be noise."""
    if not start.params.box and noise_is_a_cluster(sample, start, setting):
        return True
    return start.params.noise + start.params.beyond > NO_NOISE and all_is_noise(sample, start, setting)


def with_little_noise(sample: Sample, start: MixtureStart, setting: Setting) -> MixtureStart:
    """The one with the least noise of those that have the clusters of a start and are nearly as likely.

    Noise beyond all rows within reach is least, then such that is flat as far as that. More noise must gain ln n nats,
    what two shares cost by the BIC: so a distant row does not decide whether others are noise.
    """
    share, n, alike = start.params.noise + start.params.beyond, max(setting.n_rows, 1.0), list[MixtureStart]()
    distant = with_far_noise(sample, setting, "distant")
    wide = distant._replace(noise="wide")
    if share * n <= 1:  # none to compare with
        where = with_noise(start.params, share, wide)._replace(log_weights=start.params.log_weights)
        params = where._replace(noise=NOISE_BOUNDS[0], beyond=start.params.beyond)
        return start._replace(params=params) if share else start
    for other in (distant, wide):
        run = _run(sample, with_noise(without_noise(start.params), share, other), other, PILOT_ITER)
        alike += [run] * same_clusters(run.labels, start.labels, sample.weight)
        if alike and start.params.noise > NO_NOISE and run.merit >= start.merit - np.log(n) / n:
            break  # there was noise in the bulk, and it is not needed
    enough = max(run.merit for run in (*alike, start)) - np.log(n) / n
    return next(run for run in (*alike, start) if run.merit >= enough)


def noise_is_a_cluster(sample: Sample, start: MixtureStart, setting: Setting) -> bool:
    """Whether rows called noise are crowded, though noise is spread evenly in the bulk, or a ring in it or around it.

    It is a ring in the bulk if more than CROWDED of it is not at the distances from the centre where noise would be, by
    the statistic of Kolmogorov and Smirnov (level 1 %). A ring around the bulk has half as many rows as a component,
    or more, on all sides, and the logarithms of the distances of all noise have a variance below RING times that of a
    Gaussian; it is .4 times where rows are spread over a box.
    """
    (n, p), bulk = sample.X.shape, setting.bulk
    away = (sample.X - bulk.center) / (bulk.units * bulk.radius)
    squares = np.sum(away**2, axis=1)
    held, within = sample.weight * start.noise, np.argsort(squares, kind="stable")[: np.count_nonzero(squares < 1)]
    if np.max(mass := held[within], initial=0.0) >= FEW_STRAYS:
        return True  # equal rows
    if np.sum(mass) >= FEW_STRAYS:
        shift = np.max(np.abs(np.cumsum(mass) / np.sum(mass) - squares[within] ** (p / 2)))
        if shift > max(CROWDED, 1.63 * np.sum(mass**2) ** 0.5 / np.sum(mass)):
            return True
    log_cap = log_volume(p - 1, 0.0) - log_volume(p, 0.0) - np.log(p)  # of a small cap, as a share of the sphere
    for strays in (start.noise > 0.5, (start.noise > 0.5) & within_reach(sample, setting.spread)):  # with far rows, too
        inner, outer = np.flatnonzero(strays & (squares < 1)), np.flatnonzero(strays & (squares > 1))
        if len(inner) >= FEW_STRAYS and _crowded(away[inner], start.params.noise * n, p):
            return True
        if p > 1 and len(outer) >= max(FEW_STRAYS, n / (len(start.params.centers) + 1) / 2):
            sides = away[outer] / np.sqrt(squares[outer, None])
            on_all_sides = not _crowded(sides, len(outer) * np.exp(log_cap), p - 1)
            if on_all_sides and np.var(np.log(squares[strays])) < RING * polygamma(1, p / 2):
                return True
    return False


def all_is_noise(sample: Sample, start: MixtureStart, setting: Setting) -> bool:
    """Whether rows within reach are more probable spread over their box than in these clusters: it is one of them."""
    core, bulk = within_reach(sample, setting.spread), setting.bulk
    likelihood = judged(Sample(sample.X[core], sample.weight[core]), setting.model, start.params)[0]
    return likelihood < -log_volume(len(bulk.units), 2 * float(np.sum(np.log(bulk.box[1]))), 1.0)


def spread_evenly(sample: Sample, start: MixtureStart, bulk: Bulk) -> bool:
    """Whether rows called noise in the box lie as far from each other as rows that are drawn from it.

    A box differs from an ellipsoid by its corners: with fewer rows than corners it is not seen.
    """
    (center, half), p = bulk.box, sample.X.shape[1]
    found = (sample.X[start.noise > 0.5] - center) / half
    found = found[np.max(np.abs(found), axis=1) < 1]
    if len(found) < FEW_STRAYS or np.log2(len(found)) < p:
        return False
    both = found, np.random.RandomState(0).uniform(-1, 1, found.shape)
    near, drawn = (np.mean(np.log(np.maximum(cKDTree(x).query(x, k=2)[0][:, 1], 1e-300))) for x in both)
    return bool(p * (near - drawn) > np.log(CROWDED))


def _crowded(points: Array, density: float, dimension: int) -> bool:
    """Whether a ball that reaches from a point to the next would hold few points at this density: 1 is expected."""
    away = cKDTree(points).query(points, k=2)[0][:, 1]  # in many dimensions the farthest would be all of a mean
    nearest = np.log(np.maximum(away, 1e-300))
    return bool(np.log(density) + dimension * np.mean(nearest) + np.euler_gamma < np.log(CROWDED))


def _run(sample: Sample, params: MixtureParams, setting: Setting, max_iter: int) -> MixtureStart:
    """A run on the sample, with the prior at the pooled shape of its start."""
    source = ArraySource(sample.X, sample.weight, Frame(np.zeros(sample.X.shape[1]), 1.0))
    model = with_prior(params, setting)
    fit = climb(source, model, params, setting.noise, stop=PILOT_STOP, max_iter=max_iter, observers=[setting.limit])
    if fit.interrupted:  # of a start nothing is kept
        raise fit.interrupted
    merit, labels, noise = judged(sample, model, fit.params)
    alone = np.flatnonzero((np.bincount(labels)[labels] == 1) & (sample.weight < 2))
    if setting.noise and np.any(far := ~within_reach(sample, setting.spread)[alone]):  # one far row is no cluster
        merit += sample.weight[alone[far]] @ np.log(np.maximum(noise[alone[far]], 1e-300)) / np.sum(sample.weight)
    return MixtureStart(fit.params, round(merit, 9), labels, noise)  # of equals the first one is the best everywhere
