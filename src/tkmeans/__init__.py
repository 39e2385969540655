"""Robust k-means from a Student-t mixture, as scikit-learn estimators."""

from tkmeans.estimators import FastTKMeans, TKMeans

__version__ = "0.1.0"
__all__ = ["FastTKMeans", "TKMeans"]
