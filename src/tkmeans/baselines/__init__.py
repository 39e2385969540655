"""Methods to compare with, that no maintained and permissively licensed library offers."""

from tkmeans.baselines.hard_assignment import KMedians, KMedoids

__all__ = ["KMedians", "KMedoids"]
