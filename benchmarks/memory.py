"""What a fit adds to the memory of the process, beyond the data.

python -m benchmarks.memory
"""

from __future__ import annotations

import resource

import numpy as np

from benchmarks.common import generated
from tkmeans import TKMeans

LIMIT = 64  # megabytes, for 1e6 rows of 16 features and 100 clusters


def peak_megabytes() -> float:
    """The most memory this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print it, and fail above the limit."""
    TKMeans(2).fit(np.random.default_rng(0).normal(size=(1000, 16)))  # what is loaded once does not count
    X = generated(1_000_000, 16, 100)
    before = peak_megabytes()
    TKMeans(100, random_state=0).fit(X)
    added = peak_megabytes() - before
    print(f"fitting 1e6 x 16 float64 ({X.nbytes / 2**20:.0f} MB) with 100 clusters adds {added:.0f} MB")
    if added > LIMIT:
        raise SystemExit(f"more than {LIMIT} MB")


if __name__ == "__main__":
    main()
