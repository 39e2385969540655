"""Every estimator in its main settings, and small data sets, for properties that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from support.model_inputs import t_mixture
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids


@dataclass(frozen=True, eq=False)
class EstimatorCase:
    """An estimator, and the traits that decide which properties it has."""

    estimator: Any
    takes_missing: bool = True  # accepts NaN
    keeps_float32: bool = True  # computes in float32 if the rows are
    isotropic: bool = True  # rotations of the rows rotate the centres
    batches: bool = False  # learns from batches of rows in a random order
    random_start: bool = False  # starts from random rows, and may end in a lesser optimum
    prior: bool = False  # a prior worth some rows: more rows count more against it


def _mixture(kind: str) -> EstimatorCase:
    estimator = StudentTMixture(4, covariance_type=kind, random_state=0)
    return EstimatorCase(estimator, isotropic=kind == "spherical", prior=True)


ESTIMATORS = {
    "TKMeans": EstimatorCase(TKMeans(4, random_state=0)),
    "TKMeans, equal weights": EstimatorCase(TKMeans(4, cluster_weights="equal", init="k-means++", random_state=0)),
    "TKMeans, plain EM": EstimatorCase(TKMeans(4, cluster_weights="estimate", accelerate=False, random_state=0)),
    "TKMeans, dof=1": EstimatorCase(TKMeans(4, dof=1.0, random_state=0)),
    "TKMeans, random starts": EstimatorCase(TKMeans(4, init="random", n_init=2, random_state=0), random_start=True),
    "FastTKMeans": EstimatorCase(FastTKMeans(4, random_state=0)),
    "MiniBatchTKMeans": EstimatorCase(MiniBatchTKMeans(4, random_state=0)),
    "MiniBatchTKMeans, batches": EstimatorCase(
        MiniBatchTKMeans(4, batch_size=40, init_size=60, random_state=0), batches=True
    ),
    "StudentTMixture, full": _mixture("full"),
    "StudentTMixture, tied": _mixture("tied"),
    "StudentTMixture, diag": _mixture("diag"),
    "StudentTMixture, spherical": _mixture("spherical"),
    "KMedians": EstimatorCase(
        KMedians(4, n_init=3, random_state=0), takes_missing=False, keeps_float32=False, isotropic=False
    ),
    "KMedoids": EstimatorCase(KMedoids(4, random_state=0), takes_missing=False, keeps_float32=False),
    "KMedoids, alternate": EstimatorCase(
        KMedoids(4, method="alternate", random_state=0), takes_missing=False, keeps_float32=False
    ),
}

# Clusters so well separated that every start leads to the same optimum.
ROWS, LABELS, CENTERS = t_mixture(n=160, n_clusters=4, n_features=3, dof=5.0, scale=0.02, seed=5)
TIMES = np.random.default_rng(6).integers(0, 4, len(ROWS))


def _with_missing_values() -> np.ndarray:
    X = np.where(np.random.default_rng(7).random(ROWS.shape) < 0.1, np.nan, ROWS)
    X[np.all(np.isnan(X), axis=1)] = 0.0
    return X


DATA = {
    "rows": ROWS,
    "rows with missing values": _with_missing_values(),
    "repeated rows": np.round(4 * ROWS) / 4,
    "rows and outliers": np.vstack([ROWS, 30 * np.random.default_rng(8).standard_normal((6, 3))]),
}


def every_estimator(**traits: bool) -> Any:
    """A parametrization over the estimators with these traits."""
    chosen = {
        name: case
        for name, case in ESTIMATORS.items()
        if all(getattr(case, trait) == value for trait, value in traits.items())
    }
    return pytest.mark.parametrize("case", chosen.values(), ids=chosen.keys())


def data_for(case: EstimatorCase) -> dict[str, np.ndarray]:
    """The data sets that the estimator accepts."""
    return {name: X for name, X in DATA.items() if case.takes_missing or not np.any(np.isnan(X))}


def centers_of(model: Any) -> np.ndarray:
    """The centres: means_ or cluster_centers_."""
    return model.means_ if hasattr(model, "means_") else model.cluster_centers_


def fitted_attributes(model: Any) -> dict[str, Any]:
    """The fitted attributes, by name."""
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
