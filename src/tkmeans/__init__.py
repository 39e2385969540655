"""Robust k-means from a Student-t mixture, as scikit-learn estimators."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tkmeans.estimators import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
    from tkmeans.resampling import Stability, stability
    from tkmeans.versions import show_versions

__version__ = "0.1.0"
__all__ = [
    "FastTKMeans",
    "MiniBatchTKMeans",
    "Stability",
    "StudentTMixture",
    "TKMeans",
    "show_versions",
    "stability",
]

# Public names are imported when they are first used: scikit-learn imports pandas
# where it finds it, and a bare `import tkmeans` should cost nothing.
_HOMES = {
    "FastTKMeans": "tkmeans.estimators",
    "MiniBatchTKMeans": "tkmeans.estimators",
    "Stability": "tkmeans.resampling",
    "StudentTMixture": "tkmeans.estimators",
    "TKMeans": "tkmeans.estimators",
    "show_versions": "tkmeans.versions",
    "stability": "tkmeans.resampling",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'tkmeans' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
