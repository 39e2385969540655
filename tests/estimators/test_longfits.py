"""Fits that are cut short: by a limit, by Ctrl-C, or by the end of their process."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, TKMeans
from tkmeans.sources import ArraySource

X, _, CENTERS = t_mixture(n=3000, n_clusters=6, n_features=3, dof=2.0, scale=0.6)
SLOW_START = X[:6] * 0.3  # far from any optimum: dozens of iterations
OPTIONS = {
    "one run": {"init": SLOW_START.tolist(), "tol": 1e-9, "cluster_weights": "equal"},
    "plain steps": {"init": SLOW_START.tolist(), "tol": 1e-9, "cluster_weights": "estimate", "accelerate": False},
    "several starts": {"init": "random", "n_init": 3, "random_state": 0},
    "fast": {"init": SLOW_START.tolist(), "tol": 1e-6},
}


def estimator_of(name, **more):
    return (FastTKMeans if name == "fast" else TKMeans)(6, **{**OPTIONS[name], **more})


KILLED_WHILE_WRITING = """
import json, os, signal, sys
import numpy as np
import tkmeans
from tkmeans.fitting import checkpoints
from tkmeans.fitting.observers import SHARE_OF_TIME

path, nth, when, name, options = *sys.argv[1:2], int(sys.argv[2]), *sys.argv[3:]
SHARE_OF_TIME.set(1e9)  # one after every iteration
honest, n_written = np.savez, 0

def savez(file, **arrays):
    global n_written
    n_written += 1
    if n_written == nth and when == "in the middle":
        file.write(b"half a checkpoint")
        file.flush()
        os.kill(os.getpid(), signal.SIGKILL)
    honest(file, **arrays)
    if n_written == nth + 1:  # the one before is whole and in its place
        os.kill(os.getpid(), signal.SIGKILL)

checkpoints.np.savez = savez
getattr(tkmeans, name)(6, checkpoint=path, **json.loads(options)).fit(np.load(path + ".X.npy"))
print("ended")
"""


def killed(tmp_path, name, nth, when="after"):
    """The checkpoint of a fit whose process was killed while it wrote the nth."""
    path = tmp_path / "fit.npz"
    np.save(f"{path}.X.npy", X)
    arguments = [str(path), str(nth), when, type(estimator_of(name)).__name__, json.dumps(OPTIONS[name])]
    command = [sys.executable, "-W", "ignore", "-c", KILLED_WHILE_WRITING, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr + done.stdout
    return path


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs a system with SIGKILL")
@pytest.mark.parametrize(
    ("name", "nth", "when"),
    [("one run", 7, "after"), ("one run", 4, "in the middle"), ("several starts", 30, "after"), ("fast", 5, "after")],
)
def test_a_killed_fit_resumed_from_its_checkpoint_ends_as_an_undisturbed_one(tmp_path, name, nth, when):
    path = killed(tmp_path, name, nth, when)
    whole = estimator_of(name).fit(X)
    assert whole.n_iter_ > 5
    resumed = estimator_of(name, random_state=None).fit(X, resume=path)
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(resumed.labels_, whole.labels_)
    assert resumed.lower_bounds_ == whole.lower_bounds_
    assert (resumed.scale_, resumed.dof_, resumed.n_iter_) == (whole.scale_, whole.dof_, whole.n_iter_)


@pytest.mark.parametrize("name", ["one run", "plain steps", "fast"])
@pytest.mark.parametrize("max_iter", [1, 2, 8])
def test_a_fit_cut_at_any_iteration_resumes_to_the_same_end(tmp_path, name, max_iter):
    path = tmp_path / "fit.npz"
    whole = estimator_of(name).fit(X)
    part = estimator_of(name, max_iter=max_iter, checkpoint=path)
    with pytest.warns(ConvergenceWarning):
        part.fit(X)
    resumed = part.set_params(max_iter=300).fit(X, resume=path)
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)
    assert resumed.lower_bounds_ == whole.lower_bounds_


def test_a_finished_fit_resumes_to_itself_whatever_the_random_state(tmp_path):
    path = tmp_path / "fit.npz"
    whole = TKMeans(6, checkpoint=path).fit(X)  # no random_state
    again = TKMeans(6).fit(X, resume=path)
    np.testing.assert_array_equal(again.cluster_centers_, whole.cluster_centers_)
    assert [file.name for file in tmp_path.iterdir()] == ["fit.npz"]


def test_a_checkpoint_holds_plain_arrays_only(tmp_path):
    path = tmp_path / "fit.npz"
    TKMeans(6, random_state=0, checkpoint=path).fit(X)
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    assert json.loads(str(arrays["meta"]))["format"] == "tkmeans checkpoint 3"
    assert arrays["best_params_centers"].shape == (6, 3)


def test_a_checkpoint_of_another_fit_is_refused_with_the_difference(tmp_path):
    path = tmp_path / "fit.npz"
    TKMeans(6, random_state=0, checkpoint=path).fit(X)
    with pytest.raises(ValueError, match="is of another fit: n_clusters was 6 and is 5; resume with the same data"):
        TKMeans(5).fit(X, resume=path)
    with pytest.raises(ValueError, match="n_rows was 3000 and is 2999"):
        TKMeans(6).fit(X[1:], resume=path)
    with pytest.raises(ValueError, match="the median of the rows was"):
        TKMeans(6).fit(X + 1, resume=path)
    with pytest.raises(ValueError, match="the estimator was 'TKMeans' and is 'FastTKMeans'"):
        FastTKMeans(6).fit(X, resume=path)


def test_a_missing_or_truncated_checkpoint_is_refused(tmp_path):
    path = tmp_path / "fit.npz"
    with pytest.raises(FileNotFoundError, match=r"there is no checkpoint .*fit\.npz"):
        TKMeans(6).fit(X, resume=path)
    TKMeans(6, random_state=0, checkpoint=path).fit(X)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"fit\.npz' is not a whole checkpoint of tkmeans"):
        TKMeans(6).fit(X, resume=path)


def test_a_fit_ends_with_a_warning_when_max_time_is_over():
    with pytest.warns(
        ConvergenceWarning, match=r"did not converge in max_time=1e-09 seconds \(1 iterations\); raise max_t"
    ):
        model = TKMeans(6, init=SLOW_START, max_time=1e-9).fit(X)
    assert model.n_iter_ == 1
    assert len(model.labels_) == len(X)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        assert TKMeans(6, init="random", n_init=50, max_time=1e-9, random_state=0).fit(X).n_iter_ == 1
    with pytest.raises(ValueError, match="max_time must be a positive number of seconds or None, got 0"):
        TKMeans(6, max_time=0).fit(X)


def interrupt_at(monkeypatch, nth):
    """Ctrl-C in the middle of the nth pass over the rows."""
    honest, n_passes = ArraySource.reduce, 0

    def reduce(self, summarize):
        nonlocal n_passes
        n_passes += 1
        if n_passes == nth:
            signal.raise_signal(signal.SIGINT)
        return honest(self, summarize)

    monkeypatch.setattr(ArraySource, "reduce", reduce)


@pytest.fixture
def ctrl_c():
    """Python's own way with Ctrl-C: processes in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_the_best_parameters_so_far_on_the_estimator_and_says_so(monkeypatch, tmp_path):
    path = tmp_path / "fit.npz"
    options = {"init": SLOW_START, "accelerate": False, "tol": 1e-9, "cluster_weights": "equal"}
    whole = TKMeans(6, **options).fit(X)
    with pytest.warns(ConvergenceWarning):
        part = TKMeans(6, **options, max_iter=3).fit(X)
    model = TKMeans(6, **options, checkpoint=path)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 1 + 1 + 3 + 1)  # the survey, the start, three iterations, and one more
        with pytest.raises(KeyboardInterrupt) as said:
            model.fit(X)
    assert "interrupted after 3 iterations. The best parameters so far are on the estimator" in str(said.value)
    assert f"resume={str(path)!r}" in str(said.value)
    np.testing.assert_array_equal(np.sort(model.cluster_centers_, axis=0), np.sort(part.cluster_centers_, axis=0))
    assert model.n_iter_ == 3
    assert not model.converged_
    assert model.predict(X).shape == (len(X),)
    assert not hasattr(model, "labels_")
    with pytest.raises(NotFittedError, match="distances of the training rows are lost"):
        model.outliers(X)
    resumed = model.fit(X, resume=path)
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_before_the_first_iteration_leaves_the_estimator_as_it_was(monkeypatch):
    model = TKMeans(6, random_state=0).fit(X)
    centers = model.cluster_centers_
    interrupt_at(monkeypatch, 2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X + 1)
    assert model.cluster_centers_ is centers


def test_the_log_likelihoods_printed_by_verbose_are_lower_bounds(capsys):
    model = TKMeans(6, init=SLOW_START, cluster_weights="equal", verbose=1).fit(X * 1000)
    told = [float(line.split("per row ")[1].split(",")[0]) for line in capsys.readouterr().out.splitlines()]
    np.testing.assert_allclose(told, model.lower_bounds_[1:], rtol=1e-6)
