"""How many threads: what scikit-learn's users expect of n_jobs."""

import os

import joblib
import numpy as np
import pytest
from support.concurrent_fits import fitted_centers
from support.model_inputs import t_mixture

from tkmeans import TKMeans
from tkmeans.sources import ArraySource

X, _, CENTERS = t_mixture(n=50_000, n_clusters=4, n_features=2)


@pytest.fixture
def threads_used(monkeypatch):
    """The numbers of threads that sources were opened with."""
    used = []
    honest = ArraySource.__init__

    def spy(self, *args, n_threads=1, **options):
        used.append(n_threads)
        honest(self, *args, n_threads=n_threads, **options)

    monkeypatch.setattr(ArraySource, "__init__", spy)
    return used


def test_n_jobs_none_means_one_thread_unless_joblib_is_configured(threads_used):
    TKMeans(4, init=CENTERS).fit(X)
    assert set(threads_used) == {1}
    threads_used.clear()
    with joblib.parallel_config(backend="threading", n_jobs=2):
        TKMeans(4, init=CENTERS).fit(X)
    assert set(threads_used) == {2}


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs a system with CPU affinity")
def test_n_jobs_minus_one_means_the_cores_this_process_may_use(threads_used):
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        TKMeans(4, init=CENTERS, n_jobs=-1).fit(X)
    finally:
        os.sched_setaffinity(0, allowed)
    assert set(threads_used) == {1}


def test_fits_inside_parallel_workers_give_the_same_centres():
    alone = TKMeans(4, init=CENTERS).fit(X).cluster_centers_
    together = joblib.Parallel(n_jobs=2)(joblib.delayed(fitted_centers)(X, CENTERS, n_jobs) for n_jobs in (1, 2, -1))
    for centers in together:
        np.testing.assert_array_equal(centers, alone)
