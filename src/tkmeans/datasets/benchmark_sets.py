"""The fourteen benchmark sets of the paper, from a folder, from scikit-learn or from their public home."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

_HOME = "https://raw.githubusercontent.com/THUYimingLi/t-k-means/e33b4ab1c9700c911431be52f84ce03dfa4b7998/datamat/"


class _Entry(NamedTuple):
    n_clusters: int
    sha256: str  # of the .mat file
    oddity: str


_INTEGERS = "Each feature was rescaled affinely and rounded to integers."
_UNLABELLED = "The file has no labels: its last column is 0."
_SETS = {
    "A1": _Entry(20, "bd4239e542e3b556a5ff4721f3bb92383f860a07095e17bd1a9171b4456ed439", ""),
    "A2": _Entry(35, "031c78de33785bbed262147877831dbd81be83468638e9b019ddb7b3aeae6d5d", ""),
    "A3": _Entry(50, "6c0277097cbb539f50e7e726e209f678ac10890fa166a89a878c696d63df3774", ""),
    "S1": _Entry(15, "318d36c09d7ca7faed73b139cc489bc925896c0060c2f8dc1e2549093dc6c417", ""),
    "S2": _Entry(15, "346fff5cae2f520f433794824f28a9e4fac33643297b786c815855a9bf10dc85", ""),
    "S3": _Entry(15, "3b7e61492d9ed6f3dce6827d2aeb98ddc764ddf4da348d243dce0f2da5a02d88", ""),
    "S4": _Entry(15, "b6297f26edead892b0cebb60249321c4bf91ec27fb3a1f3fd9d6e6094544cd58", ""),
    "unbalance": _Entry(
        8,
        "d00e35049b88292f93cddc7bdd86b2f10b68d8e233dcdf78169206028166b1bd",
        "Three clusters have 2000 rows each and five have 100.",
    ),
    "dim032": _Entry(16, "b89d15043a35287ca0398efe7228f2ea245d24d16c636439a772ed2d30b926ed", ""),
    "dim064": _Entry(16, "282aeb0cc859b4b19cbfdc5721afb494bfb8388b1571a974133377c1933a900c", ""),
    "bezdekiris": _Entry(
        3,
        "20c51f6eb1d3a2f518ba047ab6604266cab2fb27fa8a49400abbbaa889da2964",
        "This is scikit-learn's iris (Bezdek's corrected copy), and is taken from there, with its labels.",
    ),
    "iris": _Entry(
        3,
        "e6b097be0b2f05f157161fa4d28608f0e71bd099ff40ef92e3615002e0ee8c6e",
        f"UCI's iris with its two wrong rows, the 35th and the 38th. {_INTEGERS} {_UNLABELLED}",
    ),
    "seed": _Entry(3, "0de62da48c4ca6ed9c3c6f87c50c41d5a15e2a3ee5cdccbb5e06d2849646ac5d", _UNLABELLED),
    "wine": _Entry(
        3,
        "669e7f218fef9eac428cf3320cf545b9eff3cafbc136180bd9e73a59cbdf1890",
        f"The 14th feature repeats the 13th, so that proline counts twice. {_INTEGERS} {_UNLABELLED}",
    ),
}
SYNTHETIC = ("A1", "A2", "A3", "S1", "S2", "S3", "S4", "unbalance", "dim032", "dim064")
REAL = ("bezdekiris", "iris", "seed", "wine")

_SOURCES = (
    "Synthetic sets: P. Fränti and S. Sieranoja, K-means properties on six clustering benchmark datasets, "
    "Applied Intelligence 48 (2018), 4743-4759. Real sets: UCI Machine Learning Repository."
)


def fetch_benchmark(
    name: str, *, data_home: str | os.PathLike[str] | None = None, return_X_y: bool = False, base_url: str = _HOME
) -> Any:
    """Load one of the paper's fourteen data sets.

    bezdekiris is scikit-learn's iris. For the others it looks into the folder that the
    environment variable ``TKMEANS_DATA`` names, for ``<name>.npz`` or ``<name>.mat``; then
    into the cache, which is filled from the public home of the paper's code on first use
    (that needs ``pip install 'tkmeans[datasets]'``). Every .mat file is checked by its SHA-256.

    Parameters
    ----------
    name : str
        A1, A2, A3, S1, S2, S3, S4, unbalance, dim032, dim064 (synthetic, with labels),
        bezdekiris, iris, seed or wine (real).
    data_home : path, default=None
        The folder of the cache; None is the usual place for caches of the system.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    base_url : str, default=the paper's repository at a fixed commit
        Where files are fetched from: a mirror, for example.

    Returns
    -------
    dataset : :class:`~sklearn.utils.Bunch`
        ``data`` of shape (n_samples, n_features), as it was published; ``target``, cluster
        numbers from 0 on, or None where the set has no labels; ``n_clusters``; ``name``;
        ``oddity``, what is strange about the set, or ""; ``DESCR``.

    See Also
    --------
    scaled : The scaling the paper's authors applied.
    make_s_like : Sets of the same kind, without a network.

    Examples
    --------
    >>> from tkmeans.datasets import fetch_benchmark
    >>> iris = fetch_benchmark("bezdekiris")
    >>> iris.data.shape, iris.n_clusters
    ((150, 4), 3)
    >>> iris.oddity
    "This is scikit-learn's iris (Bezdek's corrected copy), and is taken from there, with its labels."
    """
    if name not in _SETS:
        raise ValueError(f"name must be one of {', '.join(_SETS)}, got {name!r}")
    X, y = _rows(name, data_home, base_url)
    if return_X_y:
        return X, y
    n_clusters, _, oddity = _SETS[name]
    kind = "synthetic" if name in SYNTHETIC else "real"
    text = f"{name}: {len(X)} rows, {X.shape[1]} features, {n_clusters} clusters ({kind}). {oddity}".strip()
    return Bunch(data=X, target=y, n_clusters=n_clusters, name=name, oddity=oddity, DESCR=f"{text}\n\n{_SOURCES}")


def scaled(X: Any) -> Any:
    """Scale as the paper's authors did: z-scores (ddof 1), then each feature to [-1, 1].

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        The rows; no feature may be constant.

    Returns
    -------
    scaled : ndarray of shape (n_samples, n_features)
        The same rows in [-1, 1].

    Examples
    --------
    >>> from tkmeans.datasets import scaled
    >>> scaled([[1, 0], [2, 10], [3, 40]])
    array([[-1. , -1. ],
           [ 0. , -0.5],
           [ 1. ,  1. ]])
    """
    X = np.asarray(X, dtype=float)
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1


def _rows(name: str, data_home: str | os.PathLike[str] | None, base_url: str) -> tuple[Any, Any]:
    if name == "bezdekiris":
        from sklearn.datasets import load_iris

        return load_iris(return_X_y=True)
    if folder := os.environ.get("TKMEANS_DATA"):
        for place in (f"{name}.npz", f"{name}.mat", f"mat/{name}.mat"):
            if (path := Path(folder, place)).exists():
                return _read(path, name)
    return _read(_fetched(name, data_home, base_url), name)


def _fetched(name: str, data_home: str | os.PathLike[str] | None, base_url: str) -> Path:
    """The file in the cache, fetched if it is not there."""
    ways_out = (
        "set TKMEANS_DATA to a folder that holds it, or make a set of the same kind with "
        "tkmeans.datasets.make_s_like and its neighbours"
    )
    try:
        import pooch
    except ImportError:
        how = "pip install 'tkmeans[datasets]'"
        raise ImportError(f"fetching the data set {name!r} needs pooch: {how}; or {ways_out}") from None
    url = f"{base_url}{name}.mat"
    folder = Path(data_home) if data_home is not None else pooch.os_cache("tkmeans")
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(url, f"sha256:{_SETS[name].sha256}", f"{name}.mat", folder))
    except OSError as error:  # what requests raises is one
        raise OSError(f"the data set {name!r} could not be fetched from {url} ({error}); {ways_out}") from error


def _read(path: Path, name: str) -> tuple[Any, Any]:
    if path.suffix == ".npz":
        with np.load(path) as file:
            y = file["y"].astype(np.int64) - 1 if "y" in file else None
            return file["X"].astype(float), y
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != _SETS[name].sha256:
        raise ValueError(
            f"{path} is not the data set {name!r}: its SHA-256 is {found}, expected {_SETS[name].sha256}; "
            "delete it and fetch it again"
        )
    from scipy.io import loadmat

    rows = loadmat(path)[name][0, 0]  # a 2x1 cell: rows with the label last, and the centres
    labels = rows[:, -1].astype(np.int64)
    return rows[:, :-1].astype(float), labels - 1 if np.any(labels) else None
