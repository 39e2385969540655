"""Fit and predict for the commands, with the library's warnings and errors as command-line messages."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from tkmeans.cli import screen
from tkmeans.cli.options import ModelOptions, Shape
from tkmeans.cli.prepared_data import Data
from tkmeans.stats import Array
from tkmeans.tables import Table, TableError

_FEW_ROWS = 5  # in a cluster
_ROWS_PER_NUMBER = 2  # that an ellipse is made of
_BLOCK = 50_000  # rows whose probabilities for all clusters are in memory at one time

# The library's words, as the command says them.
_SPEECH = {"n_clusters": "-k", "n_components": "-k", "random_state": "--seed", "max_iter": "--max-iter"}


class Answer(NamedTuple):
    """What an estimator says of each row."""

    label: Array  # (n,)
    probability: Array  # (n,) of that cluster; or None, as for all that follow, from models that do not say
    pvalue: Array  # (n,)
    outlier: Array  # (n,) bool
    known: Array  # (n,) bool: False for rows without a single value


def fitted(data: Data, n_clusters: int, settings: ModelOptions) -> Any:
    """TKMeans or StudentTMixture on the scaled rows."""
    from tkmeans import StudentTMixture, TKMeans

    warn_of_many_clusters(n_clusters, data)
    estimator: Any = StudentTMixture if _elliptical(data, n_clusters, settings.shape) else TKMeans
    what = f"clustering {screen.count(data.table.n_rows, 'row')}"
    with screen.working(what), as_messages(data.table.source):
        model = estimator(n_clusters, max_iter=settings.max_iter, random_state=settings.seed, n_jobs=settings.jobs)
        return model.fit(data.Z, sample_weight=data.weights)


def _elliptical(data: Data, n_clusters: int, shape: Shape) -> bool:
    """Whether clusters get shapes of their own; "auto" says what it decides."""
    if shape != Shape.auto:
        return shape == Shape.elliptical
    n_rows, p = data.Z.shape
    needed = _ROWS_PER_NUMBER * n_clusters * (p + p * (p + 1) // 2)  # of centres and covariances
    chosen = "elliptical" if n_rows >= needed else "round"
    why = f"{screen.count(n_rows, 'row')}, {needed} needed for {n_clusters} ellipses of {screen.count(p, 'column')}"
    screen.notes([f"clusters are {chosen} ({why}); --shape chooses otherwise"])
    return n_rows >= needed


def deviations(model: Any) -> Array:
    """How far rows of each cluster typically are from its centre in each column, (K, p)."""
    from tkmeans.plots.projections import full_covariances

    covariances = full_covariances(model)
    if covariances is None:  # one width for all
        return np.full(model.cluster_centers_.shape, np.sqrt(model.scale_))
    return np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))


def answer(model: Any, Z: Array, table: Table, *, rule: str = "strays", level: float | None = None) -> Answer:
    """What the model says of the rows."""
    with screen.working("looking at the rows"), as_messages(table.source):
        label = np.asarray(model.predict(Z))
        probability = pvalue = outlier = None
        if hasattr(model, "predict_proba"):
            blocks = (model.predict_proba(Z[i : i + _BLOCK]).max(axis=1) for i in range(0, len(Z), _BLOCK))
            probability = np.concatenate([*blocks]).astype(np.float64)
        if hasattr(model, "outlier_pvalues"):
            pvalue, outlier = model.outlier_pvalues(Z), model.outliers(Z, rule=rule, level=level)
    return Answer(label, probability, pvalue, outlier, ~np.isnan(Z).all(axis=1))


def described(model: Any, data: Data) -> Any:
    """The clusters in words, by the columns that were clustered and those of text."""
    from sklearn.pipeline import make_pipeline

    from tkmeans.cluster_descriptions import describe

    whole = model if data.scaler is None else make_pipeline(data.scaler, model)
    with screen.working("describing the clusters"), as_messages(data.table.source):
        return describe(whole, data.X, feature_names=data.columns, categories=data.categories)


def warn_of_many_clusters(n_clusters: int, data: Data) -> None:
    """Say so before the work if clusters would hold a few rows each."""
    n_rows = data.table.n_rows
    if n_clusters > 1 and n_rows < _FEW_ROWS * n_clusters:
        screen.warn(
            f"{n_clusters} clusters of {screen.count(n_rows, 'row')} are {n_rows / n_clusters:.1f} rows each; "
            "so small clusters mean little, and 'tkmeans select-k' suggests a number"
        )


@contextmanager
def as_messages(source: str) -> Iterator[None]:
    """What the library warns of is said; what it refuses is the fault of the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".*without a single observed value")  # the command has said so
        try:
            yield
        except ValueError as fault:
            raise TableError(f"{source}: {_in_our_words(str(fault))}") from None
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        screen.warn(_in_our_words(text))


def _in_our_words(text: str) -> str:
    for theirs, ours in _SPEECH.items():
        text = text.replace(theirs, ours)
    return text
