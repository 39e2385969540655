"""Robust k-means from a Student-t mixture, as scikit-learn estimators."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tkmeans.cluster_stability import Stability, stability
    from tkmeans.estimators import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
    from tkmeans.persistence import ModelFileError, load, save
    from tkmeans.report import write_report
    from tkmeans.selection import Selection, select_n_clusters
    from tkmeans.sources.files import DataFile
    from tkmeans.versions import show_versions

__version__ = "0.1.0"
__all__ = [
    "DataFile",
    "FastTKMeans",
    "MiniBatchTKMeans",
    "ModelFileError",
    "Selection",
    "Stability",
    "StudentTMixture",
    "TKMeans",
    "load",
    "save",
    "select_n_clusters",
    "show_versions",
    "stability",
    "write_report",
]

# Public names are imported when they are first used: scikit-learn imports pandas
# where it finds it, and a bare `import tkmeans` should cost nothing.
_HOMES = {
    "DataFile": "tkmeans.sources.files",
    "FastTKMeans": "tkmeans.estimators",
    "MiniBatchTKMeans": "tkmeans.estimators",
    "ModelFileError": "tkmeans.persistence",
    "Selection": "tkmeans.selection",
    "Stability": "tkmeans.cluster_stability",
    "StudentTMixture": "tkmeans.estimators",
    "TKMeans": "tkmeans.estimators",
    "load": "tkmeans.persistence",
    "save": "tkmeans.persistence",
    "select_n_clusters": "tkmeans.selection",
    "show_versions": "tkmeans.versions",
    "stability": "tkmeans.cluster_stability",
    "write_report": "tkmeans.report",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tkmeans' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
