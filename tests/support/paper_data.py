"""The paper's data sets and source, which are not part of the project; tests that need them skip without."""

import os
from pathlib import Path

import numpy as np
import pytest

from tkmeans.datasets import scaled

_SHARED = Path(__file__).resolve().parents[3] / "shared"  # next to the repository


def data_folder():
    """The folder with the data sets: the one that TKMEANS_DATA names, or ../shared/data of the repository."""
    folder = Path(os.environ.get("TKMEANS_DATA") or _SHARED / "data")
    if not folder.exists():
        pytest.skip("needs the paper's data sets, which are not part of the project: set TKMEANS_DATA to their folder")
    return folder


def benchmark_set(name):
    """One of the data sets, scaled as the paper's authors did, with its labels."""
    path = data_folder() / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"needs {path.name} of the paper's data sets, which are not part of the project")
    with np.load(path) as data:
        return scaled(data["X"]), data["y"]


def paper_source():
    """The paper's LaTeX source."""
    path = _SHARED / "paper" / "t-k-means.tex"
    if not path.exists():
        pytest.skip("needs the paper's source, which is not part of the project")
    return path.read_text()
