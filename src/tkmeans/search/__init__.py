"""Where EM begins: the robust search, and the classical seedings."""

from tkmeans.search.robust import TINY_CLUSTER, Found, robust_search

__all__ = ["TINY_CLUSTER", "Found", "robust_search"]
