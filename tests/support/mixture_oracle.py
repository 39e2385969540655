"""Mixtures with shapes the long way round: random parameters, and densities, moments and bounds row by row by scipy."""

import numpy as np
from scipy.special import digamma, gammaln, logsumexp
from scipy.stats import multivariate_t

from tkmeans.models.mixture import MixtureParams
from tkmeans.stats import Frame


def random_shapes(kind, n_components, p, rng):
    """Shapes of a kind, far from round and of different sizes."""
    A = rng.normal(size=(n_components, p, p))
    full = A @ A.swapaxes(1, 2) + 0.2 * np.eye(p)
    return {
        "full": full,
        "tied": np.repeat(full[:1], n_components, axis=0),
        "diag": np.diagonal(full, axis1=1, axis2=2).copy(),
        "spherical": full[:, :1, 0].copy(),
    }[kind]


def random_params(kind, n_components, p, rng, *, noise=False):
    """Parameters of a mixture around zero; with noise in an ellipsoid that holds most of it, or a "box", and beyond."""
    weights, dof = rng.dirichlet(np.full(n_components, 5.0)), rng.uniform(1, 30, n_components)
    centers, shapes = rng.normal(size=(n_components, p)) * 2, random_shapes(kind, n_components, p, rng)
    params = MixtureParams(centers, shapes, dof, np.log(weights))
    if not noise:
        return params
    share, beyond = rng.uniform(0.01, 0.25, 2)
    bulk = random_shapes(kind, 1, p, rng)[0] * 4
    return params._replace(
        log_weights=params.log_weights + np.log1p(-share - beyond),
        noise=share,
        beyond=beyond,
        bulk_center=rng.normal(size=p) / 2,
        bulk=bulk * np.eye(p) if noise == "box" and bulk.ndim == 2 else bulk,
        box=float(noise == "box"),
    )


def matrix(shape, p):
    """One shape of any kind as a matrix, (p, p)."""
    shape = np.asarray(shape)
    return shape if shape.ndim == 2 else np.diag(np.broadcast_to(shape, p))


def matrices(params):
    """The shapes of all components as matrices, (K, p, p)."""
    return np.array([matrix(shape, params.centers.shape[1]) for shape in params.covariances])


def log_noise(row, params, frame):
    """ln of share and density of the noise at one row in the user's units, NaN where missing; and whether beyond."""
    seen, p = ~np.isnan(row), len(row)
    q = np.count_nonzero(seen)
    bulk = matrix(params.bulk, p)[np.ix_(seen, seen)] * frame.unit**2 * (1 if params.box else q / p)
    away = row[seen] - (params.bulk_center * frame.unit + frame.origin)[seen]
    r = np.sqrt(away @ np.linalg.solve(bulk, away))
    volume = np.pi ** (q / 2) / np.exp(gammaln(q / 2 + 1)) * np.sqrt(np.linalg.det(bulk))
    if params.box:
        sides = 2 * np.sqrt(np.diag(bulk))
        r, volume = np.max(2 * np.abs(away) / sides), np.prod(sides)
    if r <= 1:
        return np.log(params.noise / volume), False
    return np.log(params.beyond / (q * volume) * r**-q / (1 + np.log(r)) ** 2), True


def log_parts(row, params, frame=None):
    """ln of weight and density of every component at one row in the user's units, (K,)."""
    frame = Frame(np.zeros(len(row)), 1.0) if frame is None else frame
    seen = ~np.isnan(row)
    if not seen.any():
        return np.array(params.log_weights)
    return np.array(
        [
            log_weight
            + multivariate_t.logpdf(row[seen], center[seen], covariance[np.ix_(seen, seen)] * frame.unit**2, df=dof)
            for log_weight, center, covariance, dof in zip(
                params.log_weights,
                params.centers * frame.unit + frame.origin,
                matrices(params),
                params.dof,
                strict=True,
            )
        ]
    )


def log_density(X, params, frame=None):
    """The log-density of each row in the user's units, (n,); features that are NaN are marginalised out."""
    frame = Frame(np.zeros(X.shape[1]), 1.0) if frame is None else frame
    out = []
    for row in X:
        parts = list(log_parts(row, params, frame))
        if params.noise > 0:
            parts.append(log_noise(row, params, frame)[0])
        out.append(logsumexp(parts))
    return np.array(out)


def log_prior(params, prior):
    """-1/2 sum_k [tr(Sigma_k^-1 B) + a ln|Sigma_k|] + constant, and as many rows in every weight, as documented."""
    K, p = params.centers.shape
    total = prior.mass * sum(np.log(K) + log_weight for log_weight in params.log_weights)
    if prior.scatter is None:
        return total
    B = matrix(prior.scatter, p)
    for covariance in matrices(params):
        inverse = np.linalg.inv(covariance)
        total += prior.constant - (np.trace(inverse @ B) + prior.rows * np.linalg.slogdet(covariance)[1]) / 2
    return total


def rounded(params, prior):
    """The same with what rounding takes from the density of every component, tr(Sigma_k^-1 G)/2, in its weight."""
    if prior.grain is None:
        return params
    G = matrix(prior.grain, params.centers.shape[1])
    return params._replace(
        log_weights=params.log_weights - [np.trace(np.linalg.solve(shape, G)) / 2 for shape in matrices(params)]
    )


def expected(X, params):
    """Of complete rows under `params`: tau (n, K), u (n, K), E(ln u) (n, K), noise (n,) and whether beyond (n,)."""
    p = X.shape[1]
    frame = Frame(np.zeros(p), 1.0)
    log_f = np.array([log_parts(row, params) for row in X])
    log_q, beyond = np.full(len(X), -np.inf), np.zeros(len(X), bool)
    if params.noise > 0:
        log_q, beyond = map(np.array, zip(*(log_noise(row, params, frame) for row in X), strict=True))
    whole = logsumexp(np.column_stack([log_f, log_q]), axis=1)
    away = X[:, None] - params.centers
    d2 = np.einsum("nki,kij,nkj->nk", away, np.linalg.inv(matrices(params)), away)
    u = (params.dof + p) / (params.dof + d2)
    log_u = digamma((params.dof + p) / 2) - np.log((params.dof + d2) / 2)
    return np.exp(log_f - whole[:, None]), u, log_u, np.exp(log_q - whole), beyond


def expected_log_likelihood(X, weight, moments, params, prior, log_alpha=0.0):
    """What an M-step maximises over `params`: the expected log-likelihood of rows with their labels and u known.

    `log_alpha`, a number or (K,), is that of the scale of u in a model with one (parameter-expanded EM), in which
    Sigma stands for the covariance over that scale.
    """
    tau, u, log_u, noise, beyond = moments
    K, p = params.centers.shape
    half, total = params.dof / 2, 0.0
    log_alpha = np.broadcast_to(log_alpha, K)
    for k, covariance in enumerate(matrices(params)):
        away = X - params.centers[k]
        d2 = np.sum(away * np.linalg.solve(covariance, away.T).T, axis=1) / np.exp(log_alpha[k])
        log_det = np.linalg.slogdet(2 * np.pi * covariance)[1] + p * log_alpha[k]
        gaussian = -(log_det - p * log_u[:, k] + u[:, k] * d2) / 2
        own_log_u, own_u = log_u[:, k] - log_alpha[k], u[:, k] / np.exp(log_alpha[k])
        gamma = half[k] * np.log(half[k]) - gammaln(half[k]) + (half[k] - 1) * own_log_u - half[k] * own_u
        total += weight * tau[:, k] @ (params.log_weights[k] + gaussian + gamma - log_alpha[k])
    if params.noise > 0:
        total += weight * noise @ np.where(beyond, np.log(params.beyond), np.log(params.noise))
    return total + log_prior(params, prior)


def round_shapes(kind, variance, n_components, p):
    """Round shapes of this variance, in the form of a kind."""
    if kind in ("full", "tied"):
        return np.tile(variance * np.eye(p), (n_components, 1, 1))
    return np.full((n_components, p if kind == "diag" else 1), variance)
