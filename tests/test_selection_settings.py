"""What `select_clusters` tries: numbers up to that of the rows, and the given shapes; Ctrl-C ends it."""

import os
import subprocess
import sys
import warnings

import pytest
from support.model_inputs import four_clusters, two_groups

from tkmeans import StudentTMixture, TKMeans, select_clusters

X = two_groups()


def test_the_default_numbers_of_clusters_end_at_the_number_of_rows():
    X, _ = four_clusters()
    found = select_clusters(X[:10])
    assert found.n_clusters.max() <= 10
    assert found.best == TKMeans("auto").fit(X[:10]).n_clusters_
    with pytest.raises(ValueError, match="n_clusters=20"):
        select_clusters(X[:10], range(1, 21, 19))


@pytest.mark.parametrize("shape", ["full", "diag", "spherical", "tied"])
def test_the_number_of_clusters_is_chosen_with_the_shape_of_the_given_estimator(shape):
    found = select_clusters(X, [1, 2, 3], estimator=StudentTMixture(covariance_type=shape), random_state=0)
    assert {*found.shapes} == {shape}
    assert found.best_estimator.covariance_type == shape


def test_shapes_that_are_given_come_before_that_of_the_estimator():
    with warnings.catch_warnings(action="error"):
        for estimator in (None, TKMeans(), StudentTMixture(covariance_type="diag")):
            found = select_clusters(X, [2], shapes=["spherical"], estimator=estimator, random_state=0)
            assert {*found.shapes} == {"spherical"}
        assert {*select_clusters(X, [2], estimator=TKMeans(), random_state=0).shapes} == {"full"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_ctrl_c_in_a_choice_of_k_on_threads_ends_them_and_the_process():
    code = """
import os, signal, threading, numpy as np
from tkmeans import select_clusters
rows = np.random.default_rng(0).normal(size=(6000, 20))
threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    select_clusters(rows, range(1, 61), shapes=("full", "diag", "tied"), n_jobs=2)
except KeyboardInterrupt:
    print("ended with", threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("ended with 1\n", "ended with 2\n")  # the timer may be one of them
