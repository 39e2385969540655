"""Robust k-means from a Student-t mixture, as scikit-learn estimators."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tkmeans.cluster_descriptions import Description, describe
    from tkmeans.cluster_stability import Stability, stability
    from tkmeans.estimators import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
    from tkmeans.onnx_export import to_onnx
    from tkmeans.persistence import ModelFileError, load, save
    from tkmeans.report import write_report
    from tkmeans.robustness import RobustnessCurve, breakdown_curve, influence_curve, trimming_curves
    from tkmeans.selection import Selection, select_clusters, select_n_clusters
    from tkmeans.sources.files import DataFile
    from tkmeans.versions import show_versions

__version__ = "0.1.0"
__all__ = ["DataFile", "Description", "FastTKMeans", "MiniBatchTKMeans", "ModelFileError", "RobustnessCurve", "load"]
__all__ += ["Selection", "Stability", "StudentTMixture", "TKMeans", "breakdown_curve", "describe", "influence_curve"]
__all__ += ["save", "select_clusters", "select_n_clusters", "show_versions", "stability", "to_onnx", "write_report"]
__all__ += ["trimming_curves"]

# Public names are imported when they are first used: scikit-learn imports pandas
# where it finds it, and a bare `import tkmeans` should cost nothing.
_HOMES = {"cluster_descriptions": "Description describe", "cluster_stability": "Stability stability"}
_HOMES |= {"estimators": "FastTKMeans MiniBatchTKMeans StudentTMixture TKMeans", "onnx_export": "to_onnx"}
_HOMES |= {"persistence": "ModelFileError load save", "report": "write_report", "sources.files": "DataFile"}
_HOMES |= {"robustness": "RobustnessCurve breakdown_curve influence_curve trimming_curves"}
_HOMES |= {"selection": "Selection select_clusters select_n_clusters", "versions": "show_versions"}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"tkmeans.{home}"), name)
    raise AttributeError(f"module 'tkmeans' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
