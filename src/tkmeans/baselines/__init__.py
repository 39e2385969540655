"""Methods to compare with, that no maintained and permissively licensed library offers."""

from tkmeans.baselines.kmedians import KMedians
from tkmeans.baselines.kmedoids import KMedoids

__all__ = ["KMedians", "KMedoids"]
