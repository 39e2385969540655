"""Whatever goes wrong: an answer is whole or the one before, files are whole or as they were, and life goes on."""

import errno
import os
import subprocess
import sys
import threading
from contextlib import contextmanager, nullcontext
from itertools import count
from unittest import mock

import numpy as np
import pytest
from support.fault_injection import (
    FAULT_KINDS,
    Trigger,
    WrongOutcome,
    disk_full,
    inject_many,
    inject_one,
    no_memory,
    run_with_fault,
    small_blocks_and_frequent_checkpoints,
)
from support.interruptible_operations import write_runs
from support.model_inputs import t_mixture

from tkmeans import MiniBatchTKMeans, StudentTMixture, TKMeans, save
from tkmeans.baselines import KMedoids
from tkmeans.estimators import clusterer
from tkmeans.fitted import FittedModel
from tkmeans.paper import experiment_runs
from tkmeans.sources import ArraySource

X, _, _ = t_mixture(n=300, n_clusters=3, n_features=2)
WIDER, _, _ = t_mixture(n=200, n_clusters=3, n_features=4)


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_a_fault_of_any_kind_loses_nothing_and_leaves_nothing_behind(kind):
    assert next(filter(None, (inject_one(kind, (2, number)) for number in count())))


@pytest.mark.slow
def test_three_hundred_faults_at_random_lose_nothing():
    counts = inject_many(300, seed=8)
    assert counts.total() == 300
    assert {kind for kind, _ in counts} == set(FAULT_KINDS)


def test_fault_injection_detects_a_half_fitted_estimator(monkeypatch, tmp_path):
    monkeypatch.setattr(clusterer, "transaction", nullcontext)
    trigger = Trigger(lambda: no_memory(tmp_path), at=2)
    with small_blocks_and_frequent_checkpoints(), pytest.raises(WrongOutcome, match=r"half-fitted: .*n_features_in_"):
        run_with_fault("t-k-means", FAULT_KINDS["Ctrl-C in a pass"], trigger, tmp_path, old_output=False)


def test_fault_injection_detects_a_half_written_file(monkeypatch, tmp_path):
    @contextmanager
    def careless(path):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            yield file

    monkeypatch.setattr("tkmeans.persistence.replacing", careless)
    trigger = Trigger(lambda: disk_full(tmp_path), at=2)
    with pytest.raises(WrongOutcome, match=r"model\.json is not whole"):
        run_with_fault("a model file", FAULT_KINDS["a full disk"], trigger, tmp_path, old_output=True)


# ---- fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [TKMeans(3), StudentTMixture(3), KMedoids(3), MiniBatchTKMeans(3)], ids=repr)
def test_a_fit_that_fails_does_not_change_the_number_of_features(estimator):
    estimator.fit(X)
    with pytest.raises(ValueError, match="should be >="):
        estimator.fit(WIDER[:2])
    assert estimator.n_features_in_ == 2
    assert estimator.predict(X).shape == (300,)


def test_a_fit_without_memory_for_its_labels_keeps_the_fit_before(monkeypatch):
    model = TKMeans(3, random_state=0).fit(X)
    labels, centers = model.labels_, model.cluster_centers_
    monkeypatch.setattr(ArraySource, "collect", mock.Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        model.fit(WIDER)
    assert model.labels_ is labels
    assert model.cluster_centers_ is centers


def interrupted(function, *arguments):
    """Call it, and press Ctrl-C as soon as it looks at rows one by one."""
    with (
        mock.patch.object(FittedModel, "fields", mock.Mock(side_effect=KeyboardInterrupt)),
        pytest.raises(KeyboardInterrupt) as said,
    ):
        function(*arguments)
    return str(said.value)


def test_ctrl_c_while_rows_are_labelled_leaves_the_parameters_that_were_found():
    whole, model = TKMeans(3, random_state=0).fit(X), TKMeans(3, random_state=0).fit(WIDER)
    assert "best parameters so far" in interrupted(model.fit, X)
    np.testing.assert_allclose(np.sort(model.cluster_centers_, axis=0), np.sort(whole.cluster_centers_, axis=0))
    assert not hasattr(model, "labels_")


def test_ctrl_c_in_the_start_of_a_mixture_leaves_the_mixture_before():
    model = StudentTMixture(3, random_state=0).fit(WIDER)
    means = model.means_
    with (
        mock.patch("tkmeans.fitting.mixture_choice.judged", mock.Mock(side_effect=KeyboardInterrupt)),
        pytest.raises(KeyboardInterrupt, match=r"^$"),
    ):
        model.fit(X)
    assert model.means_ is means
    assert model.n_features_in_ == 4


def test_a_stream_continues_after_interrupted_batches_as_if_undisturbed():
    stream, undisturbed = (MiniBatchTKMeans(3, init_size=150, random_state=0) for _ in range(2))
    for batch in np.array_split(np.vstack([X, X + 0.01]), 6):
        interrupted(stream.partial_fit, batch)
        stream.partial_fit(batch)
        undisturbed.partial_fit(batch)
    assert stream.n_samples_seen_ == undisturbed.n_samples_seen_ == 600
    np.testing.assert_array_equal(stream.cluster_centers_, undisturbed.cluster_centers_)
    np.testing.assert_array_equal(stream.drift_pvalues_, undisturbed.drift_pvalues_)


OUT_OF_MEMORY = """
import resource, sys
import numpy as np
from tkmeans.engines import native
from tkmeans.models import Student
from tkmeans.stats import Block, Frame, Params

K, p = 500, 20000
params = Params(np.zeros((K, p)), 1.0, 3.0, np.full(K, -np.log(K)))
kernel, block = Student().kernel(params), Block(np.zeros((64, p)), None, Frame(np.zeros(p), 1.0))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
out = np.empty((64, K))
resource.setrlimit(resource.RLIMIT_AS, (used + (20 << 20), resource.RLIM_INFINITY))
try:
    native.distances(block, params)
except MemoryError:
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(native.distances(block, params).max())
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's limits of memory")
def test_the_native_engine_raises_memory_error_and_works_when_there_is_memory_again():
    done = subprocess.run([sys.executable, "-c", OUT_OF_MEMORY], capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "0.0"), done.stderr


# ---- files ---------------------------------------------------------------------------------------


def test_threads_that_read_a_file_end_if_the_sample_weights_are_invalid(tmp_path):
    path = tmp_path / "X.csv"
    np.savetxt(path, X, delimiter=",", header="a,b", comments="")
    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="sample_weight must have shape") as kept:
        TKMeans(3).fit(path, sample_weight=[1.0])
    assert set(threading.enumerate()) <= before, kept


def test_a_file_that_changes_during_a_fit_is_an_error_that_names_it(tmp_path):
    path = tmp_path / "X.npy"
    np.save(path, X)

    def meddle(rows, n_clusters, random_state):
        np.save(path, np.vstack([X, X]))
        return rows[:n_clusters]

    with pytest.raises(ValueError, match=r"X\.npy has changed while it was read; try again, or take a copy"):
        TKMeans(3, init=meddle, n_init=1, random_state=0).fit(path)


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path, monkeypatch):
    path = tmp_path / "model.json"
    model = TKMeans(3, random_state=0).fit(X)
    monkeypatch.setattr(os, "fsync", mock.Mock(side_effect=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
    with pytest.raises(OSError, match="No space left on device") as fault:
        save(model, path)
    assert fault.value.filename == str(path)
    assert not any(tmp_path.iterdir())


def test_an_error_about_a_file_that_cannot_be_created_names_it_and_not_the_temporary_one(tmp_path):
    path = tmp_path / "no such folder" / "model.json"
    with pytest.raises(FileNotFoundError) as fault:
        save(TKMeans(3, random_state=0).fit(X), path)
    assert str(fault.value).endswith(f"directory: {str(path)!r}")


def test_a_run_of_the_reproduction_whose_line_was_cut_off_is_repeated(tmp_path):
    path = tmp_path / "runs.csv"
    keys = [experiment_runs.Key("made up", "k-means", "correct", rep) for rep in range(3)]
    runs = {key: dict.fromkeys(experiment_runs.MEASURES, 0.123456) for key in keys}
    write_runs(path, runs)
    path.write_bytes(path.read_bytes()[:-5])  # seconds are 0.123 now
    assert list(experiment_runs.read(path)) == keys[:2]
    with mock.patch.object(experiment_runs, "_do", lambda key: (key, runs[key])):
        assert experiment_runs.perform(keys, path, n_jobs=1) == runs
    assert experiment_runs.read(path) == runs


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is always full")
def test_a_command_whose_output_meets_a_full_disk_exits_with_one_sentence(tmp_path):
    np.savetxt(tmp_path / "X.csv", X[:20], delimiter=",", header="a,b", comments="")
    code = "from tkmeans.cli import main; main()"
    command = [sys.executable, "-c", code, "fit", str(tmp_path / "X.csv"), "-k", "2", "--json"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Error: No space left on device"
