"""Foreign data with reference labels; the starts of TKMeans and StudentTMixture were developed on them.

Three sources: benchmark sets of Gagolewski (fcps, wut), real tables (scikit-learn, UCI), and nine bases, generated or
real, to which seven kinds of contamination are added. The files are read from the folder `foreign` of TKMEANS_DATA.

A labelling has 1, 2, ... for clusters and 0 for rows that belong to none. A set may have several labellings.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import multivariate_normal
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score

import benchmarks.common  # noqa: F401, sets TKMEANS_DATA where the data lie next to the repository

_FILES = """
fcps_atom fcps_chainlink fcps_engytime fcps_hepta fcps_lsun fcps_target fcps_tetra fcps_twodiamonds fcps_wingnut
uci_ecoli uci_ionosphere uci_statlog
wut_circles wut_cross wut_graph wut_isolation wut_labirynth wut_mk1 wut_mk2 wut_mk3 wut_mk4 wut_olympic wut_smile
wut_stripes wut_trajectories wut_trapped_lovers wut_twosplashes wut_windows wut_x1 wut_x2 wut_x3 wut_z1 wut_z2 wut_z3
"""
FILES = _FILES.split()
SUITED = 0.7  # ARI that the reference labels' own means, or ellipses, must reach

Labelled = tuple[np.ndarray, np.ndarray]
Random = np.random.Generator


class Case(NamedTuple):
    """One data set to cluster."""

    group: str
    name: str
    X: np.ndarray  # (n, p)
    labellings: list[np.ndarray]  # (n,) each


def missing() -> list[str]:
    """Names of the files that are not there."""
    return [name for name in FILES if not (_folder() / f"{name}.npz").exists()]


def cases(draws: int) -> Iterator[Case]:
    """Every data set; the contaminated ones `draws` times, each time with other random numbers."""
    for file in sorted(_folder().glob("*.npz")):
        if not file.stem.startswith("uci_"):
            X, labellings = _read(file)
            yield Case(suited_to(X, labellings), file.stem.replace("_", "/", 1), X, labellings)
    tables = real_tables()
    for name, (X, y) in tables.items():
        yield Case("real tables", f"{name}, raw", X, [y])
        yield Case("real tables", f"{name}, standardised", standardised(X), [y])
    for contamination, contaminate in CONTAMINATIONS.items():
        for base, draw_base in bases(tables).items():
            for draw in range(draws):
                rng = np.random.default_rng([7, draw])
                X, y = contaminate(rng, *draw_base(rng))
                yield Case(contamination, f"{base} + {contamination}", X, [y])


def _folder() -> Path:
    return Path(os.environ.get("TKMEANS_DATA", "")) / "foreign"


def _read(file: Path) -> tuple[np.ndarray, list[np.ndarray]]:
    with np.load(file) as arrays:
        labellings = [arrays[key].astype(int) for key in sorted(arrays.files) if key.startswith("y")]
        return arrays["X"].astype(float), labellings


def suited_to(X: np.ndarray, labellings: list[np.ndarray]) -> str:
    """Whether centres, or else ellipses, can describe the reference clusters at all."""
    by_center, by_ellipse = np.max([_recovered(X[y > 0], y[y > 0]) for y in labellings], axis=0)
    if by_center >= SUITED:
        return "round-suited"
    return "ellipse-suited" if by_ellipse >= SUITED else "suited to neither"


def _recovered(X: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """ARI of assigning each row to the nearest true mean, and to the likeliest true Gaussian."""
    d2, log_density = [], []
    for k in np.unique(y):
        own = X[y == k]
        covariance = np.cov(own.T) + 1e-6 * X.var() * np.eye(X.shape[1])
        d2.append(((X - own.mean(0)) ** 2).sum(1))
        log_density.append(np.log(len(own)) + multivariate_normal(own.mean(0), covariance).logpdf(X))
    return adjusted_rand_score(y, np.argmin(d2, 0)), adjusted_rand_score(y, np.argmax(log_density, 0))


def real_tables() -> dict[str, Labelled]:
    """Tables with the classes that people gave to their rows."""
    loaders = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer, "digits": load_digits}
    tables = {}
    for name, load in loaders.items():
        X, y = load(return_X_y=True)
        tables[name] = X.astype(float), y + 1
    for file in sorted(_folder().glob("uci_*.npz")):
        X, labellings = _read(file)
        tables[file.stem.removeprefix("uci_")] = X, labellings[0]
    return tables


def standardised(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and variance 1, without the constant ones."""
    deviation = X.std(0)
    return (X - X.mean(0))[:, deviation > 0] / deviation[deviation > 0]


def bases(tables: dict[str, Labelled]) -> dict[str, Callable[[Random], Labelled]]:
    """What is contaminated: generated clusters, and tables that have clusters."""
    generated = {
        "blobs 2-d": partial(blobs, n_clusters=8, p=2, gap=6.0),
        "blobs 8-d": partial(blobs, n_clusters=8, p=8, gap=6.0),
        "touching 2-d": partial(blobs, n_clusters=8, p=2, gap=3.6),
        "ellipses 5-d": partial(blobs, n_clusters=5, p=5, gap=5.0, aspect=4.0),
        "widths 1:4": partial(blobs, n_clusters=6, p=3, gap=13.0, widths=np.geomspace(1, 4, 6)),
    }
    given = {name: tables[name] for name in ("iris", "wine", "ecoli", "breast cancer") if name in tables}
    given |= {name: (standardised(X), y) for name, (X, y) in given.items() if name != "iris"}
    return generated | {name: lambda _, table=table: table for name, table in given.items()}


def blobs(
    rng: Random, n_clusters: int, p: int, gap: float, widths: np.ndarray | None = None, aspect: float = 1.0
) -> Labelled:
    """2000 rows in Gaussian clusters of equal size, whose centres are at least `gap` apart."""
    centers = _centers_apart(rng, n_clusters, p, gap)
    widths = np.ones(n_clusters) if widths is None else widths
    axes = np.array([aspect] + [1.0] * (p - 1))
    axes /= np.exp(np.log(axes).mean())
    parts = []
    for center, width in zip(centers, widths, strict=True):
        Z = rng.normal(size=(2000 // n_clusters, p))
        if aspect != 1.0:
            Z = (Z * axes) @ np.linalg.qr(rng.normal(size=(p, p)))[0]
        parts.append(center + width * Z)
    return np.vstack(parts), np.repeat(np.arange(n_clusters) + 1, 2000 // n_clusters)


def _centers_apart(rng: Random, n_clusters: int, p: int, gap: float) -> list[np.ndarray]:
    """Uniform in a box that grows when no place is found."""
    side, tries = gap * n_clusters ** (1 / p), 0
    centers: list[np.ndarray] = []
    while len(centers) < n_clusters:
        center, tries = rng.uniform(0, side, p), tries + 1
        if all(np.sum((center - other) ** 2) > gap**2 for other in centers):
            centers.append(center)
            tries = 0
        elif tries > 300:
            side, tries = side * 1.1, 0
    return centers


def _with_noise(X: np.ndarray, y: np.ndarray, noise: np.ndarray) -> Labelled:
    return np.vstack([X, noise]), np.concatenate([y, np.zeros(len(noise), int)])


def far(rng: Random, X: np.ndarray, y: np.ndarray, share: float) -> Labelled:
    """Add rows that are uniform in a box ten times as wide as the data."""
    middle, half = (X.min(0) + X.max(0)) / 2, (X.max(0) - X.min(0)) / 2
    n_noise = round(share / (1 - share) * len(X))
    return _with_noise(X, y, middle + rng.uniform(-10, 10, (n_noise, X.shape[1])) * half)


def cauchy(rng: Random, X: np.ndarray, y: np.ndarray) -> Labelled:
    """Add rows that are copies with Cauchy noise in every column."""
    n_noise = round(len(X) / 9)
    copies = X[rng.integers(len(X), size=n_noise)]
    return _with_noise(X, y, copies + X.std(0) * rng.standard_cauchy((n_noise, X.shape[1])))


def inside(rng: Random, X: np.ndarray, y: np.ndarray) -> Labelled:
    """Add rows that are uniform in the box of the data."""
    return _with_noise(X, y, rng.uniform(X.min(0), X.max(0), (round(len(X) / 4), X.shape[1])))


def clumps(rng: Random, X: np.ndarray, y: np.ndarray) -> Labelled:
    """Add rows in three tight clumps, eight root mean square radii away."""
    n_noise, p, deviation = round(len(X) / 9), X.shape[1], X.std(0)
    directions = rng.normal(size=(3, p))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    centers = X.mean(0) + directions * deviation * 8 * np.sqrt(p)
    return _with_noise(X, y, centers[np.arange(n_noise) % 3] + 0.05 * deviation * rng.normal(size=(n_noise, p)))


def one_huge(_: Random, X: np.ndarray, y: np.ndarray) -> Labelled:
    """Add a single row, a million standard deviations away."""
    return _with_noise(X, y, X[:1] + 1e6 * X.std(0))


def one_column(rng: Random, X: np.ndarray, y: np.ndarray) -> Labelled:
    """Move 5 % of the values of one column by 20 standard deviations; the rows keep their labels."""
    X = X.copy()
    rows, column = rng.choice(len(X), len(X) // 20, replace=False), rng.integers(X.shape[1])
    X[rows, column] += 20 * X[:, column].std()
    return X, y


CONTAMINATIONS: dict[str, Callable[[Random, np.ndarray, np.ndarray], Labelled]] = {
    "5 % far": partial(far, share=0.05),
    "30 % far": partial(far, share=0.3),
    "10 % Cauchy": cauchy,
    "20 % inside": inside,
    "10 % clumps": clumps,
    "one huge": one_huge,
    "5 % of a column": one_column,
}
GROUPS = ("round-suited", "ellipse-suited", "suited to neither", "real tables", *CONTAMINATIONS)
