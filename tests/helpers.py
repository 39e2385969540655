"""Data, models and oracles that the tests share. Oracles are written the long way round."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_t

from tkmeans import TKMeans
from tkmeans.sources import ArraySource
from tkmeans.sources.frames import measure
from tkmeans.stats import Frame, Params

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def benchmark_set(name):
    """One of the paper's data sets, z-scored and then scaled to [-1, 1] as its authors did."""
    path = SHARED / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"needs {path.name} of the paper's data sets, which are not part of the project")
    with np.load(path) as data:
        X, y = data["X"].astype(float), data["y"]
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1, y


def t_mixture(n=500, n_clusters=4, n_features=3, *, dof=3.0, scale=0.1, seed=0, spacing=3.0):
    """Rows drawn from the model, with the labels and the centres they came from."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(-spacing, spacing, (n_clusters, n_features))
    labels = rng.integers(n_clusters, size=n)
    noise = rng.standard_normal((n, n_features)) / np.sqrt(rng.chisquare(dof, (n, 1)) / dof)
    return centers[labels] + np.sqrt(scale) * noise, labels, centers


def plain_frame(n_features, dtype=float):
    """Coordinates as they are."""
    return Frame(np.zeros(n_features, dtype), 1.0)


def source_of(X, weight=None, **options):
    """The rows as a source, in the frame an estimator would choose."""
    return ArraySource(X, weight, measure(X, weight), **options)


def equal_params(centers, scale=0.1, dof=3.0):
    """Parameters with equal cluster weights."""
    centers = np.asarray(centers, dtype=float)
    return Params(centers, scale, dof, np.full(len(centers), -np.log(len(centers))))


def mixture_log_density(X, params):
    """The log-density of each row by scipy; features that are NaN are marginalised out."""
    out = np.empty(len(X))
    for i, row in enumerate(X):
        seen = ~np.isnan(row)
        if not seen.any():
            out[i] = 0.0
            continue
        each = [
            multivariate_t.logpdf(row[seen], center[seen], params.scale * np.eye(seen.sum()), df=params.dof)
            for center in params.centers
        ]
        out[i] = logsumexp(np.array(each) + params.log_weights)
    return out


def fitted_centers(X, start, n_jobs):
    """The centres of a fit; here, because other processes can import this file but not a test."""
    return TKMeans(len(start), init=start, n_jobs=n_jobs).fit(X).cluster_centers_
