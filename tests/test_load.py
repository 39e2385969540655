"""Under load: memory does not grow, threads do not disturb each other, and what lacks memory fails alone."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from support.concurrent_fits import answers
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, MiniBatchTKMeans, TKMeans

needs_linux = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's limits of memory")
TESTS = Path(__file__).resolve().parent


def under_load(name, number, timeout=300):
    """What support.sustained_load finds, in a process of its own."""
    command = [sys.executable, "-m", "support.sustained_load", name, str(number)]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    environment |= {"MALLOC_ARENA_MAX": "4", "MALLOC_MMAP_THRESHOLD_": "65536"}  # arrays are given back at once
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@needs_linux
@pytest.mark.parametrize("n_fits", [120, pytest.param(1000, marks=pytest.mark.slow)])
def test_fits_one_after_the_other_do_not_make_memory_grow(n_fits):
    labels = 2000 * 8 / 2**20  # megabytes that a fit's labels take: the least that could be left behind by a fit
    assert under_load("fits", n_fits, timeout=1200)["growth"] < n_fits * labels / 2


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some have no three clusters
def test_fifty_threads_that_fit_at_once_find_what_they_find_alone():
    makers = [
        lambda: TKMeans(3, n_jobs=2),
        lambda: FastTKMeans(3, random_state=0),
        lambda: MiniBatchTKMeans(3, random_state=0),
    ]
    tables = [t_mixture(n=200, scale=0.01, n_clusters=3, n_features=1 + seed % 4, seed=seed)[0] for seed in range(50)]
    alone = [makers[number % 3]().fit(X) for number, X in enumerate(tables)]
    together, found = threading.Barrier(50), {}

    def fit(number):
        together.wait(timeout=60)
        found[number] = makers[number % 3]().fit(tables[number])

    threads = [threading.Thread(target=fit, args=(number,)) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, expected in enumerate(alone):
        np.testing.assert_array_equal(found[number].cluster_centers_, expected.cluster_centers_)
        np.testing.assert_array_equal(found[number].labels_, expected.labels_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # some fits are cut short
def test_hundreds_of_fits_in_fifty_threads_give_the_same_bits():
    numbers = list(range(100))
    assert answers(numbers * 2, n_threads=50) == answers(numbers) * 2


@needs_linux
@pytest.mark.parametrize("seconds", [2, pytest.param(int(os.environ.get("LOAD_SECONDS", 120)), marks=pytest.mark.slow)])
def test_a_service_answers_at_full_speed_under_a_limit_of_memory(seconds):
    found = under_load("service", seconds, timeout=seconds + 300)
    assert not found["wrong"]
    assert found["served"] > 20 * seconds
    assert found["refused"] > 0  # requests that need more memory than there is; the next ones are answered
    assert found["growth"] < 8  # megabytes


@needs_linux
def test_a_fit_without_the_memory_it_needs_leaves_the_model_before_and_succeeds_later():
    assert under_load("refit", 200_000) == {"failed": True, "same": True, "again": True}
