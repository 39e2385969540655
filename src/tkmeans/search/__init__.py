"""Where EM begins: the robust search, and the classical seedings."""

from tkmeans.search.robust import Found, robust_search

__all__ = ["Found", "robust_search"]
