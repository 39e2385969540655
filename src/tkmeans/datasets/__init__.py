"""Data to try things on; made here, so that nothing has to be fetched."""

from tkmeans.datasets.generators import make_contaminated

__all__ = ["make_contaminated"]
