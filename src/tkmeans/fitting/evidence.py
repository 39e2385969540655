"""What speaks for a mixture and its number of clusters: minus ln of the probability of the rows, parameters integrated.

A likelihood at parameters that the rows have made is too large, the more so the more parameters. Here no row judges a
centre or a shape that it has made: with the weights of an E-step given, the integral over the shape of a component is
exact, with an inverse Wishart prior worth p + 2 rows at the pooled shape, as in EM. A centre may be where noise may be.
To the evidence come

- profiles: where the distances from a centre, each without its own row, fall off faster than those of a Gaussian, the
  component is an exponential of a power of the squared distance, as in a box; else a box would be cut in pieces;
- ENTROPY of the entropy of the memberships: of clusters that overlap, more is asked than to fit better;
- ln K!, a Poisson prior with mean 1 of the number of clusters.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.special import entr, gammaln

from tkmeans.fitting.mixture_setting import Bulk, Setting
from tkmeans.models.mixture import MixtureParams
from tkmeans.shape_stats import ShapeKernel, ShapeRows, ShapeStats
from tkmeans.sources import Sample
from tkmeans.stats import Array, Block, Frame

ENTROPY = 0.25
RIDGE = 1e-4  # of a column's squared unit, in every shape, beside its grain
POWERS = np.array([1.0, 1.25, 1.6, 2.0, 2.6, 4.0, 8.0])  # of profiles; 1 is the Gaussian
# Nats, a factor of 20: more is asked of a cluster beyond the bulk, which may be a heap of outliers, and for each row of
# a component in which most rows have hardly any influence: these are strays, and no cluster.
STRONG = 3.0


class Judged(NamedTuple):
    """A mixture, and what speaks for it; smaller is better."""

    n_clusters: int
    evidence: float  # in nats
    icl: float
    bic: float
    outlier_fraction: float  # the share of the noise
    params: MixtureParams


def judged(sample: Sample, setting: Setting, params: MixtureParams, stats: ShapeStats) -> Judged:
    """What speaks for a mixture, of which these are the sums of an E-step."""
    model, shape, bulk, noise = setting.model, setting.model.shape, setting.bulk, params.noise + params.beyond
    (K, p), rows, log_rows = params.centers.shape, params.centers.shape[1] + 2.0, math.log(np.sum(sample.weight))
    n_parameters = K * p + shape.n_parameters(K, p) + K - 1 + model.estimate_dof + (noise > 0)
    bic = n_parameters * log_rows - 2 * stats.log_likelihood
    n, w, column = np.maximum(stats.n, 1e-9), np.maximum(stats.w, 1e-9), (-1, *[1] * (params.covariances.ndim - 1))
    total, step = np.sum(n), stats.wx / w[:, None]
    grain = shape.diagonal(np.zeros(p) if shape.round else bulk.grain)
    scatter = shape.around(stats.scatter, w, step) + n.reshape(column) * (shape.diagonal(RIDGE * bulk.units**2) + grain)
    pooled = np.sum(scatter, axis=0, keepdims=True) / total
    covariances = np.repeat(pooled, K, axis=0) if shape.tied else (scatter + rows * pooled) / (n + rows).reshape(column)
    log_weights, centers = np.log(n / total) + math.log1p(-noise), params.centers + step
    factors, log_det = shape.whitening(covariances, p)
    kernel = model.kernel(params._replace(centers=centers, log_weights=log_weights), whitening=(factors, log_det))
    rounded = shape.squares(factors, grain)  # (K,) what the squared distance of a row is more, on average over its cell
    kernel = kernel._replace(height=kernel.height - rounded / 2)
    of_rows = model.engine_for(kernel).rows(Block(*sample, Frame(np.zeros(p), 1.0)), kernel)
    of_rows = ShapeRows(*map(np.asarray, of_rows))
    entropy = float(sample.weight @ (of_rows.entropy - entr(of_rows.noise) - entr(1 - of_rows.noise)))
    of_rows = of_rows._replace(d2=of_rows.d2 + rounded[of_rows.label])
    log_likelihood = float(sample.weight @ of_rows.log_density)
    log_likelihood += light_tails(kernel, n + rows, w, sample.weight, of_rows, 2 * rounded < p)
    log_prior = log_noise(centers, bulk)
    log_prior = log_prior - STRONG * (log_prior < -bulk.log_volume)
    integrals = np.minimum(p / 2 * np.log(2 * math.pi / w) + log_det / 2 + log_prior, 0.0)  # over centres, and shapes
    if not shape.tied:
        prior = shape.whitening(pooled, p)[1] - log_det - shape.squares(factors, pooled[0])
        integrals += rows / 2 * prior + shape_integrals(n, rows, p, covariances.shape[1:])
    of_weights = math.lgamma(K * rows) - math.lgamma(total + K * rows) - K * math.lgamma(rows)
    integrals += gammaln(n + rows) - n * np.log(n / total) - STRONG * (n - w) * (2 * w < n)
    evidence = ENTROPY * entropy - log_likelihood - float(np.sum(integrals)) - of_weights + math.lgamma(K + 1)
    evidence += shape.n_parameters(1, p) / 2 * log_rows
    return Judged(K, evidence, bic + 2 * stats.entropy, bic, noise, params)


def log_noise(centers: Array, bulk: Bulk) -> Array:
    """ln of the density of noise at these places, in or beyond the bulk, (K,)."""
    r2 = np.sum(((centers - bulk.center) / (bulk.units * bulk.radius)) ** 2, axis=1)
    log_r = np.log(np.maximum(r2, 1.0)) / 2
    return -bulk.log_volume - centers.shape[1] * log_r - 2 * np.log1p(log_r)


def shape_integrals(n: Array, prior_rows: float, p: int, form: tuple[int, ...]) -> Array:
    """ln of the integral over each component's shape over the likelihood and the prior of the shape it has, (K,)."""
    # A matrix (p, p) is one variance of dimension p, variances (p,) are p of dimension 1; (1,) was measured p times.
    q, times, often = (p, 1, 1) if len(form) == 2 else (1, 1, p) if form == (1,) else (1, p, 1)
    mass, prior = n * often, prior_rows * often
    whole = mass + prior
    found = gammaln((whole[:, None] - np.arange(q)) / 2).sum(axis=1) - gammaln((prior - np.arange(q)) / 2).sum()
    return times * (found + q / 2 * (mass * math.log(2) + prior * math.log(prior) - whole * np.log(whole) + whole))


@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def light_tails(kernel: ShapeKernel, whole: Array, w: Array, weight: Array, rows: ShapeRows, wide: Any = True) -> float:
    """By how much clusters are better described by a density that falls off faster than a Gaussian, less its cost.

    `whole` is the mass of each shape, that of the prior included, `w` the influence in each centre, (K,). Of clusters
    that are not `wide`, but hardly more than a step, the profile is not seen.
    """
    label, d2, noise = rows.label, rows.d2, rows.noise
    (K, p), powers, one = kernel.centers.shape, POWERS[:, None], np.minimum(weight, 1.0)
    u, q, mass = one * kernel.gain[label] / (1 + kernel.slope[label] * d2), d2 / whole[label], weight * (1 - noise)
    rest = 1 - np.minimum(u / w[label], 0.999)  # of the influence in the centre, without the row
    log_alone = np.log((whole[label] - one) * q / rest**2 / np.maximum(1 - u * q / rest, 1e-3))
    total = np.bincount(label, mass, K) + 1e-9
    moments = np.array([np.bincount(label, mass * np.exp(power * log_alone), K) for power in POWERS]) / total
    scales = np.maximum((powers / p * moments) ** (1 / powers), 1e-12)  # (powers, K)
    merits = total * (log_peak(powers, scales, p) - p / (2 * powers))
    gains = np.max(merits, axis=0) - merits[0] - np.log(np.maximum(total, 2.0)) / 2
    return float(np.sum(gains[(gains > 0) & (total > p + 2) & wide]))


def log_peak(power: Any, scale: Any, p: int) -> Any:
    """ln of the density of exp(-(d^2/scale)^power / 2) at the centre, but for ln det of the shape."""
    half = p / (2 * power)
    return math.lgamma(p / 2 + 1) - gammaln(1 + half) - half * math.log(2) - p / 2 * np.log(math.pi * scale)
