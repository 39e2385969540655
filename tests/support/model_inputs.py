"""What models, engines and estimators are given: rows drawn from the model, sources, frames and parameters."""

import numpy as np

from tkmeans import TKMeans
from tkmeans.datasets import make_contaminated
from tkmeans.sources import ArraySource
from tkmeans.sources.base import measure
from tkmeans.stats import Frame, Params


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


def never(progress):
    """Let EM go on until the limit of iterations."""
    return False


def equal_params(centers, scale=0.1, dof=3.0):
    """Parameters with equal cluster weights."""
    centers = np.asarray(centers, dtype=float)
    return Params(centers, scale, dof, np.full(len(centers), -np.log(len(centers))))


def two_groups():
    """Rows of a large and a small group, far apart."""
    rng = np.random.default_rng(0)
    return np.vstack([rng.normal(0, 1, (60, 3)), rng.normal(9, 1, (30, 3))])


def three_groups(*bad):
    """Rows of three groups of 100; some cells, (rows, column, value), are wrong."""
    X = np.random.default_rng(0).normal(size=(300, 4)) + 6.0 * np.repeat(range(3), 100)[:, None]
    for rows, column, value in bad:
        X[rows, column] = value
    return X


def four_clusters():
    """Rows of four clusters with outliers, and a model of them."""
    X, _ = make_contaminated(400, 4, 3, random_state=1)
    return X, TKMeans(4).fit(X)
