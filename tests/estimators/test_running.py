"""What people are told while a fit goes on: printed lines, scikit-learn's callbacks, and warnings at their line."""

import inspect
import re
import subprocess
import sys
import warnings
from unittest import mock

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.fitting import mixture_choice
from tkmeans.fitting.observers import TimeLimit

X, _, CENTERS = t_mixture(n=300, n_clusters=4, n_features=3, dof=4.0, scale=0.05)

ESTIMATORS = [
    TKMeans(4, cluster_weights="equal", random_state=0),
    FastTKMeans(4, random_state=0),
    MiniBatchTKMeans(4, init=CENTERS, cluster_weights="equal", init_size=100, batch_size=50),
    StudentTMixture(4, means_init=CENTERS),
]


class Recorder:
    """A callback that writes down what it is told, and may ask to stop."""

    max_propagation_depth = None  # goes along into a pipeline

    def __init__(self, stop_after=None):
        self.stop_after, self.begun, self.ended, self.seen = stop_after, [], [], []

    def setup(self, estimator, context):
        self.begun.append("setup")

    def teardown(self, estimator, context):
        self.ended.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, metadata=None):
        self.begun.append(context.task_name)
        self.seen.append((X, metadata))

    def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
        self.ended.append(context.task_name)
        if hasattr(fitted_estimator, "predict"):
            self.labels = fitted_estimator.predict(X)
        return self.stop_after is not None and self.ended.count("iteration") >= self.stop_after


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
class TestCallbacks:
    @pytest.fixture(autouse=True)
    def _callbacks(self):
        pytest.importorskip("sklearn.callback")

    def test_callbacks_see_the_fit_its_restarts_and_every_iteration(self, estimator):
        recorder = Recorder()
        weight = np.ones(len(X))
        estimator.set_callbacks(recorder).fit(X, sample_weight=weight)
        steps = getattr(estimator, "n_steps_", estimator.n_iter_)
        runs = recorder.begun.count("EM")
        assert recorder.begun[:2] == ["setup", "fit"]
        assert recorder.ended[-2:] == ["fit", "teardown"]
        assert runs == (2 if isinstance(estimator, MiniBatchTKMeans) else 1)  # the first rows, then the batches
        assert recorder.begun.count("iteration") >= steps
        assert sorted(recorder.begun[1:]) == sorted(recorder.ended[:-1])
        np.testing.assert_array_equal(recorder.seen[0][0], X)
        np.testing.assert_array_equal(recorder.seen[0][1]["sample_weight"], weight)
        np.testing.assert_array_equal(recorder.labels, estimator.predict(X))

    def test_callbacks_can_end_a_restart_and_leave_no_attribute_behind(self, estimator):
        before = set(vars(estimator.set_callbacks().fit(X)))
        recorder = Recorder(stop_after=1)
        estimator.set_callbacks(recorder).fit(X)
        assert recorder.ended.count("iteration") == recorder.ended.count("EM")  # one each
        assert set(vars(estimator.set_callbacks())) == before

    def test_callbacks_are_torn_down_when_a_fit_fails(self, estimator):
        recorder = Recorder()
        with pytest.raises(ValueError, match="should be >="):
            estimator.set_callbacks(recorder).fit(X[:3])
        assert recorder.ended == ["teardown"]
        assert not hasattr(estimator.set_callbacks(), "_fit_task")

    def test_callbacks_of_a_pipeline_reach_the_estimator_in_it(self, estimator):
        recorder = Recorder()
        make_pipeline(StandardScaler(), estimator.set_callbacks()).set_callbacks(recorder).fit(X)
        assert "iteration" in recorder.ended

    def test_the_progress_bar_of_scikit_learn_shows_the_fit(self, estimator, capsys):
        pytest.importorskip("rich")
        from sklearn.callback import ProgressBar

        estimator.set_callbacks(ProgressBar()).fit(X)
        assert f"{type(estimator).__name__} - fit" in capsys.readouterr().out
        estimator.set_callbacks()


def test_callbacks_see_a_finished_estimator_at_the_end_of_a_fit():
    pytest.importorskip("sklearn.callback")

    class AtTheEnd(Recorder):
        def on_fit_task_end(self, estimator, context, **facts):
            if context.task_name == "fit":
                self.attributes = dict(vars(estimator))
            return False

    for estimator in ESTIMATORS:
        callback = AtTheEnd()
        estimator.set_callbacks(callback).fit(X)
        after = vars(estimator.set_callbacks())
        fitted = {name for name in after if name.endswith("_")}
        assert "labels_" in fitted
        for name in fitted:
            np.testing.assert_array_equal(callback.attributes[name], after[name])


@pytest.mark.thorough
def test_estimators_fit_with_a_scikit_learn_that_has_no_callbacks():
    code = """
import sys
import numpy as np
import sklearn.pipeline  # has its own use for what is taken away now
sys.modules["sklearn.callback"] = None
from tkmeans import MiniBatchTKMeans, StudentTMixture, TKMeans
X = np.random.default_rng(0).normal(size=(50, 2))
for estimator in TKMeans(2), MiniBatchTKMeans(2, init_size=20, batch_size=10), StudentTMixture(2):
    estimator.fit(X)
    assert not hasattr(estimator, "set_callbacks")
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_verbose_prints_every_iteration_of_every_estimator(estimator, capsys):
    estimator.set_params(verbose=1).fit(X)
    lines = capsys.readouterr().out.splitlines()
    assert re.match(
        rf"\[{type(estimator).__name__}\] iteration 1: (objective|(penalised )?log-likelihood) per row", lines[0]
    )
    assert len(lines) >= estimator.n_iter_
    estimator.set_params(verbose=0)


@pytest.mark.parametrize("fit", ["fit", "fit_predict"])
def test_a_warning_of_a_fit_points_to_the_users_line(fit):
    model = TKMeans(4, max_iter=1, tol=0, init=X[:4])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(model, fit)(X)
        line = inspect.currentframe().f_lineno - 1
    assert [(w.category, w.filename, w.lineno) for w in caught] == [(ConvergenceWarning, __file__, line)]


# ---- limits of time ------------------------------------------------------------------------------


def test_a_time_limit_holds_the_search_of_a_mixture_too():
    rows, ends = np.random.default_rng(0).normal(size=(600, 60)), []
    for max_time in (1e-3, None):
        with mock.patch.object(mixture_choice, "_run", wraps=mixture_choice._run) as runs, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            StudentTMixture(8, max_time=max_time).fit(rows)
        ends.append(runs.call_count)
    assert ends[0] == 2 < ends[1]  # the first start, and it again as the best


def test_a_narrow_limit_of_time_holds_on_a_machine_that_has_been_up_for_long():
    with mock.patch("tkmeans.fitting.observers.time.monotonic", return_value=1e6):
        limit = TimeLimit(np.float16(30))
        assert limit.left == 30.0
        assert not limit.is_up
