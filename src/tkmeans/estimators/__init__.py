"""The scikit-learn face of the package."""

from tkmeans.estimators.fast_tkmeans import FastTKMeans
from tkmeans.estimators.minibatch import MiniBatchTKMeans
from tkmeans.estimators.student_t_mixture import StudentTMixture
from tkmeans.estimators.tkmeans import TKMeans

__all__ = ["FastTKMeans", "MiniBatchTKMeans", "StudentTMixture", "TKMeans"]
