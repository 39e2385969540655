"""Data sets: the paper's, and generators of sets like them."""

from tkmeans.datasets.benchmark_sets import REAL, SYNTHETIC, fetch_benchmark, scaled
from tkmeans.datasets.generators import contaminate, make_contaminated, make_like

__all__ = ["REAL", "SYNTHETIC", "contaminate", "fetch_benchmark", "make_contaminated", "make_like", "scaled"]
