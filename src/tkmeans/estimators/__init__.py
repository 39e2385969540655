"""The scikit-learn estimators."""

from tkmeans.estimators.fast_tkmeans import FastTKMeans
from tkmeans.estimators.minibatch_tkmeans import MiniBatchTKMeans
from tkmeans.estimators.student_t_mixture import StudentTMixture
from tkmeans.estimators.tkmeans import TKMeans

__all__ = ["FastTKMeans", "MiniBatchTKMeans", "StudentTMixture", "TKMeans"]
