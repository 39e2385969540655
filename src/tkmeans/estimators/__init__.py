"""The scikit-learn face of the package."""

from tkmeans.estimators.fast import FastTKMeans
from tkmeans.estimators.minibatch import MiniBatchTKMeans
from tkmeans.estimators.mixture import StudentTMixture
from tkmeans.estimators.tkmeans import TKMeans

__all__ = ["FastTKMeans", "MiniBatchTKMeans", "StudentTMixture", "TKMeans"]
