"""Data sets: the paper's, and generators of sets like them."""

from tkmeans.datasets.benchmark_sets import REAL, SYNTHETIC, fetch_benchmark, scaled
from tkmeans.datasets.generators import (
    contaminate,
    make_a_like,
    make_contaminated,
    make_dim_like,
    make_s_like,
    make_unbalance_like,
)

__all__ = ["REAL", "SYNTHETIC", "contaminate", "fetch_benchmark", "make_a_like", "make_contaminated"]
__all__ += ["make_dim_like", "make_s_like", "make_unbalance_like", "scaled"]
