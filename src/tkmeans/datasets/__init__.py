"""Data to try things on: the paper's sets, and generators of sets like them."""

from tkmeans.datasets.benchmark import REAL, SYNTHETIC, fetch_benchmark, scaled
from tkmeans.datasets.generators import make_contaminated
from tkmeans.datasets.recipes import contaminate, make_a_like, make_dim_like, make_s_like, make_unbalance_like

__all__ = [
    "REAL",
    "SYNTHETIC",
    "contaminate",
    "fetch_benchmark",
    "make_a_like",
    "make_contaminated",
    "make_dim_like",
    "make_s_like",
    "make_unbalance_like",
    "scaled",
]
