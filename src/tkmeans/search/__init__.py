"""Starting centres for EM: the robust search and classical seedings."""

from tkmeans.search.center_search import Found, robust_search

__all__ = ["Found", "robust_search"]
