"""Another processor gives the same clusters; `python -m benchmarks.instruction_sets` asks for many more of them."""

import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris, load_wine

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans

native = pytest.importorskip("tkmeans.engines.native", reason="needs the native engine")
INSTRUCTION_SETS = native._native.available_instruction_sets()
# In float32 digits took between 7 and 9 iterations, by instruction set, as long as the sums were in single precision.
TABLES = {"iris": (load_iris, 3), "wine": (load_wine, 3), "digits": (load_digits, 10)}
ESTIMATORS = (TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture)


def centers_of(fit):
    return fit.cluster_centers_ if hasattr(fit, "cluster_centers_") else fit.means_


def fit_all(path):
    """Every estimator on every table, in both precisions, into a file. It runs in a process of its own."""
    found = {}
    for name, (load, n_clusters) in TABLES.items():
        X = load().data
        for estimator in ESTIMATORS[: 4 if name != "digits" else 1]:
            for dtype in ("float64", "float32"):
                fit = estimator(n_clusters, random_state=0).fit(X.astype(dtype))
                key = f"{name} {estimator.__name__} {dtype}"
                found |= {f"{key} labels": fit.labels_, f"{key} centers": centers_of(fit) / X.std()}
    np.savez(path, used=native.instruction_set(), **found)


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """What fit_all finds with each instruction set of this machine, chosen as a user does."""
    folder = tmp_path_factory.mktemp("fits")
    running = {}
    for name in INSTRUCTION_SETS:
        environment = {**os.environ, "TKMEANS_INSTRUCTION_SET": name, "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-W", "ignore", __file__, str(folder / f"{name}.npz")]
        running[name] = subprocess.Popen(command, env=environment)
    assert {name: process.wait(timeout=300) for name, process in running.items()} == dict.fromkeys(running, 0)
    found = {name: dict(np.load(folder / f"{name}.npz")) for name in running}
    assert {name: str(values.pop("used")) for name, values in found.items()} == {name: name for name in running}
    return found


@pytest.mark.parametrize("other", INSTRUCTION_SETS[:-1])
def test_another_instruction_set_gives_every_row_the_same_label(fits, other):
    for key, values in fits[INSTRUCTION_SETS[-1]].items():
        if key.endswith("labels"):
            np.testing.assert_array_equal(fits[other][key], values, err_msg=key)


@pytest.mark.thorough
@pytest.mark.parametrize("other", INSTRUCTION_SETS[:-1])
def test_another_instruction_set_moves_centers_by_the_rounding_of_their_type_at_most(fits, other):
    for key, values in fits[INSTRUCTION_SETS[-1]].items():
        if key.endswith("centers"):
            tolerance = 1e-12 if "float64" in key else 2 * np.finfo(np.float32).eps * np.abs(values).max()
            np.testing.assert_allclose(fits[other][key], values, rtol=0, atol=tolerance, err_msg=key)


if __name__ == "__main__":
    fit_all(sys.argv[1])
