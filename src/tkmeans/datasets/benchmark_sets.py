"""The fourteen benchmark sets of the paper, from a folder, from scikit-learn or from their public home."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_array

from tkmeans.docstrings import documented

_HOME = "https://raw.githubusercontent.com/THUYimingLi/t-k-means/e33b4ab1c9700c911431be52f84ce03dfa4b7998/datamat/"

# Of each set its number of clusters, the SHA-256 of its .mat file, and what is strange about it.
_CATALOGUE = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
_SETS: dict[str, dict[str, Any]] = _CATALOGUE["sets"]

SYNTHETIC = ("A1", "A2", "A3", "S1", "S2", "S3", "S4", "unbalance", "dim032", "dim064")
REAL = ("bezdekiris", "iris", "seed", "wine")


@documented("fetch_*", returns="dataset")
def fetch_benchmark(
    name: str, *, data_home: str | os.PathLike[str] | None = None, return_X_y: bool = False, base_url: str = _HOME
) -> Any:
    """Load one of the paper's fourteen data sets.

    bezdekiris is scikit-learn's iris. The others are looked for as ``<name>.npz`` or ``<name>.mat`` in the folder that
    the environment variable ``TKMEANS_DATA`` names; then in the cache, which is filled from the public home of the
    paper's code on first use (with ``pip install 'tkmeans[datasets]'``). Every .mat file is checked by its SHA-256.
    """
    from sklearn.datasets import load_iris

    # As the paper spells them, too: dim32, dim64, Unbalance, Iris and the like.
    spelled = {known.lower().replace("dim0", "dim"): known for known in _SETS}
    name = spelled.get(str(name).lower().replace("dim0", "dim"), name)
    if name not in _SETS:
        raise ValueError(f"name must be one of {', '.join(_SETS)}, got {name!r}")
    X, y = load_iris(return_X_y=True) if name == "bezdekiris" else _read(_file(name, data_home, base_url), name)
    if return_X_y:
        return X, y
    n_clusters, oddity, sources = _SETS[name]["n_clusters"], _SETS[name]["oddity"], _CATALOGUE["sources"]
    kind = "synthetic" if name in SYNTHETIC else "real"
    text = f"{name}: {len(X)} rows, {X.shape[1]} features, {n_clusters} clusters ({kind}). {oddity}".strip()
    return Bunch(data=X, target=y, n_clusters=n_clusters, name=name, oddity=oddity, DESCR=f"{text}\n\n{sources}")


@documented("rows", returns="scaled : ndarray of shape (n_samples, n_features)")
def scaled(X: Any) -> Any:
    """Scale rows as the paper's authors did: z-scores (ddof 1), then each feature, none constant, to [-1, 1]."""
    X = check_array(X, dtype=np.float64, ensure_min_samples=2, input_name="X")
    if np.max(np.abs(X)) > 1e150 or not np.all(np.ptp(X, axis=0) > 1e-150):
        raise ValueError("X must have a spread in every column, between 1e-150 and 1e150; drop or rescale it")
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1


def _file(name: str, data_home: str | os.PathLike[str] | None, base_url: str) -> Path:
    """The file in the user's folder or in the cache, fetched if it is in neither."""
    if folder := os.environ.get("TKMEANS_DATA"):
        for place in (f"{name}.npz", f"{name}.mat", f"mat/{name}.mat"):
            if (path := Path(folder, place)).exists():
                return path
    ways_out = "set TKMEANS_DATA to a folder that holds it, or make a set like it with tkmeans.datasets.make_like"
    try:
        import pooch
    except ImportError:
        raise ImportError(f"fetching {name!r} needs pooch: pip install 'tkmeans[datasets]'; or {ways_out}") from None
    url = f"{base_url}{name}.mat"
    cache = Path(data_home) if data_home is not None else pooch.os_cache("tkmeans")
    pooch.get_logger().setLevel("WARNING")
    try:
        return Path(pooch.retrieve(url, f"sha256:{_SETS[name]['sha256']}", f"{name}.mat", cache))
    except OSError as error:  # what requests raises is one
        raise OSError(f"the data set {name!r} could not be fetched from {url} ({error}); {ways_out}") from error


def _read(path: Path, name: str) -> tuple[Any, Any]:
    if path.suffix == ".npz":
        with np.load(path) as file:
            return file["X"].astype(float), file["y"].astype(np.int64) - 1 if "y" in file else None
    if (found := hashlib.sha256(path.read_bytes()).hexdigest()) != (expected := _SETS[name]["sha256"]):
        sums = f"its SHA-256 is {found}, expected {expected}"
        raise ValueError(f"{path} is not the data set {name!r}: {sums}; delete it and fetch it again")
    from scipy.io import loadmat

    rows = loadmat(path)[name][0, 0]  # a 2x1 cell: rows with the label last, and the centres
    labels = rows[:, -1].astype(np.int64)
    return rows[:, :-1].astype(float), labels - 1 if np.any(labels) else None
