"""Where EM of a mixture begins: labels become parameters, and short runs on a sample decide between them.

A start also fixes what a run does not estimate: the pooled shape of the prior, and the ellipsoid of the noise.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial, wraps
from itertools import chain, islice
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from scipy.linalg.lapack import dtrtri
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist
from scipy.special import chdtri, polygamma
from threadpoolctl import ThreadpoolController

from tkmeans.em import SmallGain, em
from tkmeans.fit_warnings import warn_user
from tkmeans.fitting import relations
from tkmeans.fitting import starts as of_centers
from tkmeans.fitting.incomplete_rows import complete, without_bad_cells
from tkmeans.fitting.observers import TimeLimit
from tkmeans.fitting.start_choice import CORE_GAIN, FAR, LEAST_FEATURES, Agreement, within_reach
from tkmeans.models.covariances import SHAPES, AxisAligned, Ellipsoid
from tkmeans.models.dof import BOUNDS
from tkmeans.models.mixture import MixtureParams, Prior, StudentMixture
from tkmeans.models.noise import NO_NOISE, NOISE_BOUNDS, log_volume
from tkmeans.models.protocols import log_shares, normalized
from tkmeans.search import same_clusters, seeding
from tkmeans.search.shape_search import FARTHEST, MANY_FEATURES, moments, start_labels
from tkmeans.sources import ArraySource, Sample, Source
from tkmeans.sources.base import canonical, limits, out_of_bounds, quantile, usual
from tkmeans.sources.number_checks import checked_centers, checked_precisions, checked_weights
from tkmeans.stats import Array, Block, Frame

SAMPLE_ROWS = 4000  # that a start is chosen on, at least
IN_BULK, MOST_BULK = 0.9, 2.0  # of the rows that are not far; times what holds 95 % of a Gaussian, at most
FIRST_DOF, AS_GAUSSIAN = 5.0, 30.0  # tails to begin with, and such that hold no noise
FIRST_NOISE, MOST_FIRST_NOISE = 0.02, 0.3  # the share of the noise in a start, at least and at most
MOST_NOISE = 0.4  # of the rows; more are a cluster
FIRST_ITER, ENOUGH, FINALISTS = 8, 3, 3  # of all starts; starts that must agree; the best of the others that go on
PILOT_ITER, PILOT_STOP = 60, SmallGain(1e-4)
MANY_TIMES = 10.0  # the rows of the prior: of components with more the geometric mean of shapes means something
THINNEST = 0.02  # of a column's squared unit, in the pooled shape of the prior
CROWDED, RING, FEW_STRAYS = 0.4, 0.2, 10  # see `noise_is_a_cluster`
STRAY = 1e-3  # tail probability in the core of a group, below which a row is counted as noise at first
LESS_NOISE: dict[Any, Any] = {"auto": "distant", "distant": False}  # to try where noise is a cluster
FOREVER = TimeLimit(np.inf)
by_merit = attrgetter("merit")
F = TypeVar("F", bound=Callable[..., Any])
_controller = cache(ThreadpoolController)  # to find the libraries takes longer than to hold them


class Bulk(NamedTuple):
    """Where most rows lie: an ellipsoid along the columns; and the box of the rows that are not far."""

    center: Array  # (p,)
    units: Array  # (p,) of the columns
    radius: float  # in these units
    box: Array = 0.0  # (2, p) its centre, and half of its sides
    grain: Array = 0.0  # (p,) variances of rounding, in columns of steps

    @property
    def log_volume(self) -> float:
        """The logarithm of its volume."""
        return log_volume(len(self.units), 2 * float(np.sum(np.log(self.units * self.radius))))


class Setting(NamedTuple):
    """What is the same for all starts."""

    model: StudentMixture  # without a prior
    n_components: int
    prior_rows: float  # in each component
    ridge: float  # times the squared units of the columns, added to the scatter of each component
    bulk: Bulk
    noise: bool | str  # "auto" may come to "distant", if noise nearer would be a cluster or is not worth its shares
    dof: float | None  # None if it is estimated
    n_rows: float = 0.0  # of the whole fit
    limit: TimeLimit = FOREVER  # of the search
    spread: Any = None  # of the columns of the sample (`usual`), if it is known
    box: bool = False  # whether noise begins flat in the box


class MixtureStart(NamedTuple):
    """Where a run on the sample has led."""

    params: MixtureParams
    merit: float
    labels: Array  # (n,)
    noise: Array  # (n,) the probability of noise


def bulk_of(sample: Sample, spread: Any = None, slack: Any = 0.0, one: float = 1.0) -> Bulk:
    """By medians of columns, deviations and distances: half of the rows may be anywhere; `spread` if it is known.

    Values of a column that differ by no more than its `slack` are equal; of joined rows each weighs `one`.
    """
    X, weight = sample
    center = quantile(X, weight) if spread is None else spread[0]
    away, core = X - center, within_reach(sample, spread)
    units, grain = relations.column_units(away, weight, np.broadcast_to(slack, center.shape), one)
    p, squares = len(units), np.sum(np.minimum(np.abs(away) / units, 1e120) ** 2, axis=1)  # beyond, as good as infinite
    outer = quantile(squares[core], weight[core], IN_BULK)
    gaussian = quantile(squares, weight) * chdtri(p, 0.05) / chdtri(p, 0.5)  # where very many rows are far
    radius = np.sqrt(max(min(outer, MOST_BULK * gaussian), 1e-12)) * (1 + 1e-6)  # no row lies on the rim
    low, high = (end(X[core & (weight > 0)], axis=0) for end in (np.min, np.max))
    steps = np.sqrt(12 * grain) / units  # the outermost values stand for half a step more
    steps = np.where(steps < 1 + 1e-6, steps, 0.0)  # longer ones are no steps of measurement
    radius = np.exp(np.mean(np.log(radius + steps / 2)))
    box = np.stack([low / 2 + high / 2, (high / 2 - low / 2) * (1 + 1e-6) + (1e-6 + steps / 2) * units])
    return Bulk(center, units, float(radius), box, grain)


def on_one_thread(function: F) -> F:
    """Decorate a function in which BLAS has one thread: several wait for each other, long on a busy machine."""

    @wraps(function)
    def alone(*args: Any, **options: Any) -> Any:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **options)

    return cast(F, alone)


# ---- all starts of a fit ------------------------------------------------------------------------


def starts(
    settings: Any, source: Source, before: Any, rng: np.random.RandomState
) -> Iterator[tuple[StudentMixture, MixtureParams]]:
    """As many starts as an estimator asks for, each with its model; `before` are the components of an earlier fit."""
    K, given = int(settings.n_components), settings.means_init is not None
    robust = settings.init_params == "robust" and not given
    size = max(SAMPLE_ROWS, of_centers.SAMPLE_ROWS_PER_CLUSTER * K)
    row = min(1.0, source.total / max(source.n_counted, 1))  # weights that sum to 1 do not make rows few
    whole = source.sample(size, np.random.RandomState(0) if settings.init_params == "robust" else rng)
    whole, n_rows = whole._replace(weight=whole.weight / row), source.total / row
    spread = usual(whole) if robust else None
    rows = without_bad_cells(whole, K, spread) if robust and settings.bad_cells else whole
    known = None if np.any(np.isnan(rows.X)) else spread
    sample = canonical(complete(rows, K, whole.X, max(1.0, n_rows / size)))
    if len(sample.X) < K:
        warn_user(f"X has only {len(sample.X)} distinct rows for n_components={K}: some will be empty.")
    ridge = min(float(settings.reg_covar), 1e12) * n_rows / K  # with more, shapes are round to the last digit
    prior = min(float(settings.shrinkage), 1e12) * (sample.X.shape[1] + 2)
    dof = None if settings.dof == "estimate" else float(settings.dof)
    one, model = np.min(whole.weight[whole.weight > 0], initial=1.0), settings._model(settings._engine(source))
    bulk = bulk_of(sample, known, relations.rounding(source), one)
    reach = FARTHEST * bulk.units  # what is farther is as far
    far, sample = sample.X, sample._replace(X=np.clip(sample.X, bulk.center - reach, bulk.center + reach))
    unlimited = settings.max_time is None or source.resumed
    limit = source.search_limit = FOREVER if unlimited else TimeLimit(of_centers.SEARCH_TIME * settings.max_time)
    setting = Setting(model, K, prior, ridge, bulk, settings.noise, dof, n_rows, limit, known)
    few = isinstance(model.shape, Ellipsoid) and len(sample.X) < K * (sample.X.shape[1] + 1)  # scatters are singular
    sought = setting._replace(model=replace(model, shape=SHAPES["diag"])) if few else setting
    of_weights = setting._replace(prior_rows=prior * row, ridge=ridge * row)
    width = source.frame.unit * np.max(bulk.units) * bulk.radius
    form = before and (before.shape, before.columns, *before.centers.shape)  # and of rows in about this unit:
    goes_on = form == (model.shape, source.columns, K, sample.X.shape[1])
    goes_on = goes_on and 1e-4 < np.max(before.covariances) ** 0.5 / width < 3
    members = list[Array]()  # of the starts that were searched for
    for number in range(1 if given or goes_on else settings.n_init):
        if goes_on:
            params = _gone_on(before.entered(source.frame), setting)
        elif robust:
            search = partial(chosen_start, setting=sought, seed=number)
            if least := int(settings.min_cluster_size or 0):
                search = partial(of_centers.without_heaps, search, partial(_members, sought), K, least / source.total)
            params, agreement = search(sample)
            if few:
                shapes = model.shape.of_matrices(params.covariances, np.exp(params.log_weights))
                params = params._replace(covariances=shapes, bulk=model.shape.diagonal(params.bulk + 0 * bulk.units))
            source.agreement = source.agreement or agreement
            if settings.n_init > 1:
                members.append(_members(setting, sample, (params, None)))
            if any(same_clusters(members[-1], each, sample.weight) for each in members[:-1]):
                continue  # EM would end in these again
        else:
            params = from_labels(sample, _seeded(settings, source, sample, setting, rng), setting)
        clipped = (np.abs(params.centers - bulk.center) > 0.9 * reach) & (not goes_on)
        for k in np.flatnonzero(np.any(clipped, axis=1)):  # where its rows are, which the sample has held nearer
            if np.any(own := _members(setting, sample, (params, None)) == k):
                params.centers[k] = np.where(clipped[k], quantile(far[own], sample.weight[own]), params.centers[k])
        if robust and settings.bad_cells and number == 0:
            low, high = limits(whole, params.centers, spread)
            if np.any(out_of_bounds(whole.X, low, high)):
                bounds = np.full((2, source.n_features), [[-np.inf], [np.inf]])
                bounds[:, source.columns or slice(None)] = source.frame.leave(low), source.frame.leave(high)
                source.bounds = bounds[0], bounds[1]
        params = params if goes_on else _as_given(settings, source, params, setting)
        yield with_prior(params, of_weights), params


def _members(setting: Setting, sample: Sample, found: tuple[MixtureParams, Any]) -> Array:
    """The component of each row, -1 for noise."""
    _, labels, noise = judged(sample, with_prior(found[0], setting), found[0])
    return np.where(noise > 0.5, -1, labels)


def _gone_on(params: MixtureParams, setting: Setting) -> MixtureParams:
    """Where an earlier fit ended, as near as the settings of this one allow."""
    (K, p), model = params.centers.shape, setting.model
    dof = np.clip(params.dof, *model.dof_bounds(p)) if setting.dof is None else np.full(K, setting.dof)
    covariances = model.bounded(params.covariances, np.exp(params.log_weights))
    params = params._replace(dof=np.full(K, np.median(dof)) if model.shared_dof else dof, covariances=covariances)
    if not setting.noise:
        return without_noise(params)
    return with_noise(params, 0.0, setting) if setting.noise != "auto" and not params.noise else params


def _seeded(settings: Any, source: Source, sample: Sample, setting: Setting, rng: np.random.RandomState) -> Array:
    """Labels by the nearest of given or drawn centres, every column in its unit."""
    in_units = sample._replace(X=sample.X / setting.bulk.units)
    if settings.means_init is not None:
        shape = (settings.n_components, source.n_features)
        centers = checked_centers(settings.means_init, "means_init", shape, "n_components")
        centers = source.frame.enter(centers[:, source.columns or slice(None)]) / setting.bulk.units
    elif len(sample.X) <= settings.n_components:
        return np.arange(len(sample.X))
    else:
        centers = SEEDINGS[settings.init_params](in_units, settings.n_components, rng)
    return centers if centers.ndim == 1 else np.argmin(cdist(in_units.X, centers, "sqeuclidean"), axis=1)


def _kmeans(sample: Sample, n_components: int, rng: np.random.RandomState) -> Array:
    from sklearn.cluster import KMeans  # 10 MB that other starts can do without

    return KMeans(n_components, n_init=1, random_state=rng).fit(sample.X, sample_weight=sample.weight).labels_


SEEDINGS: dict[str, Any] = {
    "kmeans": _kmeans,
    "k-means++": seeding.kmeans_plusplus,
    "random": lambda sample, n_components, rng: rng.randint(n_components, size=len(sample.X)),
    "random_from_data": seeding.random_rows,
}


def _as_given(settings: Any, source: Source, params: MixtureParams, setting: Setting) -> MixtureParams:
    """What the user has given instead of what was found."""
    K, p, kind = settings.n_components, source.n_features, settings.covariance_type
    if settings.means_init is not None:
        centers = checked_centers(settings.means_init, "means_init", (K, p), "n_components")
        params = params._replace(centers=source.frame.enter(centers[:, source.columns or slice(None)]))
    if settings.weights_init is not None:
        log_weights = log_shares(checked_weights(settings.weights_init, K))
        params = params._replace(log_weights=log_weights + np.log1p(-params.noise - params.beyond))
    if settings.precisions_init is not None:
        precisions = checked_precisions(settings.precisions_init, kind, K, p)
        covariances = np.linalg.inv(precisions) if kind in ("full", "tied") else 1 / precisions
        form = (K, 1) if kind == "spherical" else (K, *covariances.shape[kind != "tied" :])
        covariances = np.broadcast_to(covariances.reshape(-1, *form[1:]), form)
        covariances = setting.model.shape.part(covariances, source.columns or slice(None))
        mass = np.exp(params.log_weights)
        params = params._replace(covariances=setting.model.bounded(covariances / source.frame.unit**2, mass))
    return params


def climb(
    source: Any, model: StudentMixture, start: MixtureParams, noise: bool | str, *, resume: Any = None, **options: Any
) -> Any:
    """EM with noise; if that is "auto", without where noise would be a cluster."""
    if resume is None or resume.params.noise > 0:
        fit = em(source, model, start, resume=resume, **options)
        if fit.interrupted or noise != "auto" or fit.stats.noise <= MOST_NOISE * fit.stats.total:
            return fit
        resume = None
    return em(source, model, without_noise(start), resume=resume, **options)


# ---- the choice between starts ----------------------------------------------------------------


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
    ready = heavy and not (setting.box or setting.model.shape.round or setting.limit.is_up)
    if ready and setting.noise not in ("wide", "distant"):
        boxed = with_noise(best.params, np.average(best.noise, weights=sample.weight), setting._replace(box=True))
        probe = _run(sample, boxed._replace(dof=np.full_like(boxed.dof, BOUNDS[1])), setting, FIRST_ITER)
        if probe.merit > best.merit and spread_evenly(sample, probe, setting.bulk):
            return best_start(sample, tried, setting._replace(box=True))
    unlike = [run for run in others if not same_clusters(run.labels, best.labels, sample.weight)]
    n_searches = len(finals) if n_finalists > 1 else max(len(runs), 2 * (enough == 1))  # two agree on a single one
    lead = best.merit - unlike[0].merit if unlike else np.inf
    found = best, Agreement(n_searches, n_searches - len(unlike), lead)
    share = best.params.noise + best.params.beyond
    if setting.noise in LESS_NOISE:
        other = with_far_noise(sample, setting, LESS_NOISE[setting.noise])
        wrong = not best.params.box and noise_is_a_cluster(sample, best, setting) if share else bool(other.noise)
        wrong, is_cut = wrong or (share > NO_NOISE and all_is_noise(sample, best, setting)), False
        if share > NO_NOISE and not wrong and setting.model.is_at_bound(best.params):
            free = other._replace(model=replace(setting.model, size_ratio=np.inf))  # is it what a wide one has lost?
            wrong = is_cut = best_start(sample, tried, free)[0].merit > best.merit
        plain = best_start(sample, tried, other) if wrong else found
        taken = share - plain[0].params.noise - plain[0].params.beyond
        if is_cut or best.merit - plain[0].merit < taken:  # less than 1 for a row that is noise in the best alone
            found = plain
    return (with_little_noise(sample, found[0], setting), found[1]) if setting.noise == "auto" else found


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


def with_far_noise(sample: Sample, setting: Setting, noise: bool | str) -> Setting:
    """The same with a bulk that holds all rows within reach; without "distant" noise, if these are all rows."""
    bulk, core = setting.bulk, within_reach(sample, setting.spread)
    farthest = np.max(np.sum(((sample.X[core] - bulk.center) / bulk.units) ** 2, axis=1)) ** 0.5 * (1 + 1e-6)
    reach = 1.4826 * FAR / 2 * (len(bulk.units) ** 0.5 + 1)
    noise = noise if noise != "distant" or not np.all(core) else False
    return setting._replace(bulk=bulk._replace(radius=max(farthest, reach)), noise=noise, box=False)


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
    merit, *of_rows = judged(sample, model, fit.params)
    return MixtureStart(fit.params, round(merit, 9), *of_rows)  # of equals the first one is the best everywhere


def judged(sample: Sample, model: StudentMixture, params: MixtureParams) -> tuple[float, Array, Array]:
    """The penalised likelihood per row, labels and the probability of noise."""
    whitening = model.shape.whitening(params.covariances, sample.X.shape[1])
    kernel = model.kernel(params, whitening=whitening)
    rows = model.engine_for(kernel).rows(Block(sample.X, None, Frame(np.zeros(sample.X.shape[1]), 1.0)), kernel)
    objective = sample.weight @ np.asarray(rows.log_density) + model.log_prior(params, *whitening)
    return float(objective / np.sum(sample.weight)), np.asarray(rows.label), np.asarray(rows.noise)


# ---- from labels to parameters ----------------------------------------------------------------


def with_prior(params: MixtureParams, setting: Setting) -> StudentMixture:
    """The model with a prior at the pooled shape of these parameters."""
    shape, p = setting.model.shape, params.centers.shape[1]
    rows = 0.0 if shape.tied or len(params.centers) == 1 else setting.prior_rows  # what is pooled needs none
    if not setting.prior_rows and not setting.ridge:
        return setting.model
    squares = shape.diagonal(setting.bulk.units**2)
    weights = np.exp(params.log_weights - np.logaddexp.reduce(params.log_weights))
    caution = min(1.0, MANY_TIMES * len(weights) * (p + 2) / max(setting.n_rows, 1.0))
    pooled = shape.pooled(params.covariances, weights, caution) + THINNEST * squares
    constant = rows / 2 * (float(shape.log_sizes(pooled[None])[0]) * p + p)
    stepped = setting.prior_rows and not shape.round and np.any(setting.bulk.grain)
    grain = shape.diagonal(setting.bulk.grain) if stepped else None
    prior = Prior(rows, rows * pooled + setting.ridge * squares, constant, setting.prior_rows, grain)
    return replace(setting.model, prior=prior)


def from_labels(sample: Sample, labels: Array, setting: Setting, core: bool = False) -> MixtureParams:
    """Centres and shapes of groups of rows, and noise.

    A row far from the median of its group counts little; with `core`, only the half of a group counts that is nearest
    to its centre, and what is improbable in that half's Gaussian is noise at first.
    """
    (X, weight), K, units = sample, setting.n_components, setting.bulk.units
    p = X.shape[1]
    dof = max(FIRST_DOF, setting.model.dof_bounds(p)[0]) if setting.dof is None else setting.dof
    aligned = p > MANY_FEATURES and isinstance(setting.model.shape, AxisAligned)  # matrices would be too large
    squares = units**2 if aligned else np.diag(units**2)
    mass, centers, covariances = np.full(K, 1e-6), np.zeros((K, p)), np.zeros((K, *squares.shape))
    strays, (middling, rare) = labels < 0, chdtri(p, [0.5, STRAY])
    for k in range(K):
        own = np.flatnonzero(labels == k)
        if not len(own):  # it begins at a row that is far from the other centres, but not the farthest
            others = centers[:k] if k else setting.bulk.center[None]
            d2 = np.min(np.sum(((X[:, None] - others) / units) ** 2, axis=2), axis=1)
            centers[k] = X[np.argsort(d2, kind="stable")[int(0.9 * (len(X) - 1))]]
            continue
        x, own_weight = X[own], weight[own]
        mass[k] = np.sum(own_weight)
        middle = quantile(x, own_weight)
        width = 1.48 * quantile(np.abs(x - middle), own_weight) + 1e-3 * units
        trust = own_weight * (dof + p) / (dof + np.sum(((x - middle) / width) ** 2, axis=1))
        centers[k], covariances[k] = moments(x, trust / mass[k], aligned)
        if core and len(x) > 2 * (p + 2):
            for _ in range(2):
                d2 = _squares(x - centers[k], covariances[k], squares)
                inner = d2 <= quantile(d2, own_weight)
                centers[k], covariances[k] = moments(x[inner], own_weight[inner] / np.sum(own_weight[inner]), aligned)
            d2 = _squares(x - centers[k], covariances[k], squares)
            factor = quantile(d2, own_weight) / middling
            if factor > 0:  # else most rows of the group are equal
                covariances[k] *= factor
                strays[own] = d2 > factor * rare
    pooled = np.tensordot(mass / np.sum(mass), covariances, 1) + THINNEST * squares
    rows = p + 2.0  # a start is shrunk in any case: few rows may have no volume
    covariances = ((mass * covariances.T + rows * pooled[..., None]) / (mass + rows)).T
    covariances = covariances + (setting.bulk.grain if aligned else np.diag(setting.bulk.grain))
    covariances = setting.model.bounded(setting.model.shape.of_matrices(covariances, mass), mass)
    params = MixtureParams(centers, covariances, np.full(K, dof), np.log(mass / np.sum(mass)))
    return with_noise(params, float(np.average(strays, weights=weight)), setting)


def _squares(away: Array, covariance: Array, squares: Array) -> Array:
    """Squared Mahalanobis distances, (n,)."""
    covariance = covariance + 1e-3 * THINNEST * squares
    if covariance.ndim == 1:
        return np.sum(away**2 / covariance, axis=1)
    white = away @ dtrtri(np.linalg.cholesky(covariance), lower=1)[0].T
    return np.einsum("ij,ij->i", white, white)


def with_noise(params: MixtureParams, share: float, setting: Setting) -> MixtureParams:
    """The same with noise, if there is to be any: half of it in the bulk, or hardly any of distant noise."""
    if not setting.noise:
        return params
    shape, bulk = setting.model.shape, setting.bulk
    share = min(max(FIRST_NOISE, share), MOST_FIRST_NOISE)
    log_weights = normalized(params.log_weights) + np.log1p(-share)
    center, reach = bulk.box if setting.box else (bulk.center, bulk.units * bulk.radius)
    params = params._replace(bulk_center=center, bulk=shape.diagonal(reach**2), box=float(setting.box))
    inside = NOISE_BOUNDS[0] if setting.noise == "distant" else share / 2
    return params._replace(log_weights=log_weights, noise=inside, beyond=share - inside)


def without_noise(params: MixtureParams) -> MixtureParams:
    """The same without noise."""
    return MixtureParams(*params[:3], normalized(params.log_weights))
