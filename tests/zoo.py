"""Every estimator in its main settings, and small data sets, for properties that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import t_mixture

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids


@dataclass(frozen=True, eq=False)
class Animal:
    """An estimator, and what is true of it by nature."""

    estimator: Any
    missing: bool = True  # takes NaN
    single: bool = True  # computes in float32 if the rows are
    round: bool = True  # does not know one direction from another
    stream: bool = False  # looks at batches of rows in a random order
    lucky: bool = False  # from random rows, it may end in a lesser optimum


def _mixture(kind: str) -> Animal:
    estimator = StudentTMixture(4, covariance_type=kind, random_state=0)
    return Animal(estimator, missing=False, single=False, round=kind != "diag")


ZOO = {
    "TKMeans": Animal(TKMeans(4, random_state=0)),
    "TKMeans, equal weights": Animal(TKMeans(4, cluster_weights="equal", init="k-means++", random_state=0)),
    "TKMeans, plain EM": Animal(TKMeans(4, cluster_weights="estimate", accelerate=False, random_state=0)),
    "TKMeans, dof=1": Animal(TKMeans(4, dof=1.0, random_state=0)),
    "TKMeans, random starts": Animal(TKMeans(4, init="random", n_init=2, random_state=0), lucky=True),
    "FastTKMeans": Animal(FastTKMeans(4, random_state=0)),
    "MiniBatchTKMeans": Animal(MiniBatchTKMeans(4, random_state=0)),
    "MiniBatchTKMeans, batches": Animal(MiniBatchTKMeans(4, batch_size=40, init_size=60, random_state=0), stream=True),
    "StudentTMixture, full": _mixture("full"),
    "StudentTMixture, tied": _mixture("tied"),
    "StudentTMixture, diag": _mixture("diag"),
    "StudentTMixture, spherical": _mixture("spherical"),
    "KMedians": Animal(KMedians(4, n_init=3, random_state=0), missing=False, single=False, round=False),
    "KMedoids": Animal(KMedoids(4, random_state=0), missing=False, single=False),
    "KMedoids, alternate": Animal(KMedoids(4, method="alternate", random_state=0), missing=False, single=False),
}

# Clusters that nobody could miss: what must not depend on the start does not.
ROWS, LABELS, CENTERS = t_mixture(n=160, n_clusters=4, n_features=3, dof=5.0, scale=0.02, seed=5)
TIMES = np.random.default_rng(6).integers(0, 4, len(ROWS))


def _with_holes() -> np.ndarray:
    X = np.where(np.random.default_rng(7).random(ROWS.shape) < 0.1, np.nan, ROWS)
    X[np.all(np.isnan(X), axis=1)] = 0.0
    return X


DATA = {
    "rows": ROWS,
    "rows with holes": _with_holes(),
    "repeated rows": np.round(4 * ROWS) / 4,
    "rows and strays": np.vstack([ROWS, 30 * np.random.default_rng(8).standard_normal((6, 3))]),
}


def animals(**nature: bool) -> Any:
    """A parametrization over the animals of this nature."""
    chosen = {
        name: animal
        for name, animal in ZOO.items()
        if all(getattr(animal, trait) == value for trait, value in nature.items())
    }
    return pytest.mark.parametrize("animal", chosen.values(), ids=chosen.keys())


def data_for(animal: Animal) -> dict[str, np.ndarray]:
    """The data sets that an animal takes."""
    return {name: X for name, X in DATA.items() if animal.missing or not np.any(np.isnan(X))}


def centers_of(model: Any) -> np.ndarray:
    """The centres, whatever they are called."""
    return model.means_ if hasattr(model, "means_") else model.cluster_centers_


def fitted_attributes(model: Any) -> dict[str, Any]:
    """All that a fit left behind."""
    return {name: value for name, value in vars(model).items() if name.endswith("_") and not name.startswith("_")}
