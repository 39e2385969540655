"""Starting centres for EM: the robust search and classical seedings."""

from tkmeans.search.center_search import Found, fitted_tails, is_better, robust_search, same_clusters

__all__ = ["Found", "fitted_tails", "is_better", "robust_search", "same_clusters"]
