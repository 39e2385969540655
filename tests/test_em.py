"""The loop: when it stops, what it counts, and that acceleration can only help."""

import numpy as np
import pytest
from support.lloyd import Lloyd
from support.model_inputs import equal_params, never, source_of, t_mixture

from tkmeans import engines
from tkmeans.em import Anderson, Plateau, Progress, SmallGain, SmallMove, em
from tkmeans.models import Fast, Student


class Recorder:
    """An observer that keeps what it is told of every iteration, and may ask to stop."""

    def __init__(self, stop_after=None, request="stop: early"):
        self.stop_after, self.request, self.runs, self.calls = stop_after, request, [], []

    def begin(self, frame, max_iter):
        self.calls.append(("begin", max_iter))

    def step(self, progress):
        self.runs.append(progress)
        return self.request if progress.n_iter == self.stop_after else None

    def end(self):
        self.calls.append(("end",))


X, _, CENTERS = t_mixture(n=600)
SOURCE = source_of(X)
START = equal_params(SOURCE.frame.enter(CENTERS), scale=0.5, dof=1.0)


def test_small_gain_stops_at_a_gain_below_the_tolerance():
    assert SmallGain(0.1)(Progress([1.0, 1.05]))
    assert not SmallGain(0.1)(Progress([1.0, 1.2]))


def test_small_move_stops_at_a_movement_below_the_tolerance():
    assert SmallMove(0.1)(Progress([0.0], movement=0.05))
    assert not SmallMove(0.1)(Progress([0.0], movement=0.2))


def test_plateau_stops_at_iterations_no_better_than_as_many_before():
    assert not Plateau(0.1, times=2)(Progress([1.0, 3.0, 1.0]))  # too few to say
    assert not Plateau(0.1, times=2)(Progress([9.0, 0.0, 4.0, 1.0, 4.0]))
    assert Plateau(0.1, times=2)(Progress([0.0, 1.0, 4.0, 4.1, 1.0]))
    assert Plateau(0.1, times=1)(Progress([1.0, 1.05]))


def test_stopping_rules_stop_at_a_tolerance_that_is_just_met():
    assert SmallGain(0.5)(Progress([1.0, 1.5]))
    assert SmallMove(0.5)(Progress([0.0], movement=0.5))
    assert Plateau(0.5, times=1)(Progress([1.0, 1.5]))
    assert not Plateau(0.5, times=2)(Progress([1.0, 1.0, 2.0, 2.0]))


@pytest.mark.parametrize("tol", [1e-6, 1e-9])
def test_em_ends_before_a_visit_to_the_rows_that_cannot_gain_the_tolerance(tol):
    rows, _, centers = t_mixture(n=2000, n_features=5, dof=5.0, spacing=30.0)
    source = source_of(rows)
    start = equal_params(source.frame.enter(centers + 0.05), scale=1e-4, dof=5.0)
    fit = em(source, Student(), start, stop=SmallGain(tol))
    longer = em(source, Student(), start, stop=never, max_iter=40)
    assert fit.converged
    assert fit.history == longer.history[: len(fit.history)]
    assert fit.history[-1] - fit.history[-2] > tol  # without the slope there would be one more
    assert longer.history[-1] - fit.history[-1] <= tol


def test_em_that_creeps_makes_the_last_visit_to_the_rows(monkeypatch):
    rng = np.random.default_rng(5)  # 100 clusters, many of which touch
    centers, shares = rng.normal(scale=3.0, size=(100, 6)), rng.dirichlet(np.full(100, 2.0))
    source = source_of(centers[rng.choice(100, 10_000, p=shares)] + rng.standard_normal((10_000, 6)))
    start = equal_params(source.frame.enter(centers + 0.3), scale=source.frame.unit**-2, dof=50.0)
    model, ahead = Student(engine=engines.select("auto"), estimate_weights=True), Student.ahead
    fit = em(source, model, start, stop=SmallGain(1e-6))
    assert ahead(model, fit.stats, fit.params)[1] is not None
    monkeypatch.setattr(Student, "ahead", lambda *given: (ahead(*given)[0], None))
    assert fit.history == em(source, model, start, stop=SmallGain(1e-6)).history


def test_em_with_the_rule_never_ends_only_at_max_iter():
    fit = em(SOURCE, Student(), START, stop=never, max_iter=7, accelerate=False)
    assert len(fit.history) == 8
    assert fit.n_passes == 8
    assert not fit.converged


@pytest.mark.parametrize(
    "model", [Student(), Student(estimate_weights=True), Fast(), Lloyd()], ids=lambda m: repr(m)[:20]
)
@pytest.mark.parametrize("max_iter", [1, 3, 50])
def test_the_statistics_of_a_fit_belong_to_its_parameters(model, max_iter):
    fit = em(SOURCE, model, START, stop=SmallGain(1e-9), max_iter=max_iter)
    again = SOURCE.reduce(model.e_step(fit.params))
    for a, b in zip(fit.stats, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_movement_is_the_root_mean_square_step_of_the_centres():
    recorder = Recorder()
    first = em(SOURCE, Lloyd(), START, stop=never, max_iter=1, observers=[recorder])
    step = first.params.centers - START.centers
    assert [run.movement for run in recorder.runs] == [pytest.approx(np.sqrt((step**2).sum(axis=1).mean()))]


def test_acceleration_reaches_the_same_optimum_in_fewer_passes():
    plain = em(SOURCE, Student(), START, stop=SmallGain(1e-13), max_iter=5000, accelerate=False)
    quick = em(SOURCE, Student(), START, stop=SmallGain(1e-13), max_iter=5000)
    assert quick.n_passes < plain.n_passes / 2
    assert abs(quick.history[-1] - plain.history[-1]) < 1e-10
    np.testing.assert_allclose(quick.params.centers, plain.params.centers, atol=1e-4)


def test_an_extrapolation_that_lowers_the_objective_falls_back_to_the_plain_step(monkeypatch):
    wild = lambda self, x, gx: gx + 100.0  # noqa: E731
    monkeypatch.setattr(Anderson, "extrapolate", wild)
    misled = em(SOURCE, Student(), START, stop=never, max_iter=10)
    plain = em(SOURCE, Student(), START, stop=never, max_iter=10, accelerate=False)
    assert misled.history == plain.history
    assert misled.n_passes == 2 * plain.n_passes - 1


def test_anderson_solves_a_linear_fixed_point_in_as_many_steps_as_it_has_dimensions():
    rng = np.random.default_rng(0)
    A = 0.9 * np.linalg.qr(rng.normal(size=(4, 4)))[0]
    b = rng.normal(size=4)
    exact = np.linalg.solve(np.eye(4) - A, b)
    for bits, n_steps in ((50, 6), (Anderson().bits, 12)):  # a rough mix takes a few more
        mixer, x = Anderson(bits=bits), np.zeros(4)
        for _ in range(n_steps):
            gx = A @ x + b
            ahead = mixer.extrapolate(x, gx)
            x = gx if ahead is None else ahead
        np.testing.assert_allclose(x, exact, atol=1e-9)


def test_rounding_errors_in_the_steps_do_not_change_what_anderson_makes_of_them():
    rng = np.random.default_rng(0)
    A, b = 0.9 * np.linalg.qr(rng.normal(size=(4, 4)))[0], rng.normal(size=4)
    steps = [rng.normal(size=4) * 0.5**i for i in range(5)]
    here, elsewhere = Anderson(), Anderson()
    for x in steps:
        noise = 1 + 1e-13 * rng.normal(size=4)
        found = here.extrapolate(x, A @ x + b), elsewhere.extrapolate(x, (A @ x + b) * noise)
    assert found[0] is not None
    np.testing.assert_allclose(found[1], found[0], rtol=1e-11)


def test_anderson_extrapolates_nothing_from_equal_steps():
    mixer = Anderson()
    assert mixer.extrapolate(np.zeros(2), np.ones(2)) is None
    assert mixer.extrapolate(np.zeros(2), np.ones(2)) is None  # the same step again


def test_the_second_step_of_anderson_is_the_secant_to_the_fixed_point():
    mixer = Anderson(bits=50)
    assert mixer.extrapolate(np.array([0.0]), np.array([3.0])) is None  # g(x) = x/4 + 3, at rest at 4
    ahead = mixer.extrapolate(np.array([3.0]), np.array([3.75]))
    np.testing.assert_allclose(ahead, [4.0], rtol=1e-6)
    assert ahead[0] < 4.0  # the ridge holds back a little


def test_anderson_forgets_steps_before_one_that_is_longer():
    for first, second, remembered in ((1.0, 1.001, 1), (0.5, 0.501, 1), (1.0, 1.0, 2), (1.0, 0.9, 2)):
        mixer = Anderson()
        mixer.extrapolate(np.zeros(2), np.array([first, 0.0]))
        ahead = mixer.extrapolate(np.zeros(2), np.array([0.0, second]))
        assert len(mixer.residuals) == len(mixer.images) == remembered
        assert (ahead is None) == (remembered == 1)


def test_anderson_remembers_six_steps():
    mixer = Anderson()
    for k in range(10):
        mixer.extrapolate(np.zeros(3), 0.5**k * np.array([1.0, 0.1 * k, 0.01 * k * k]))
    assert len(mixer.residuals) == len(mixer.images) == 6


def test_em_continues_an_interrupted_run_to_the_same_end():
    options = {"stop": SmallGain(1e-10), "max_iter": 200}
    whole = em(SOURCE, Student(), START, **options)
    recorder = Recorder(stop_after=5)
    em(SOURCE, Student(), START, observers=[recorder], **options)
    assert [run.n_iter for run in recorder.runs] == [1, 2, 3, 4, 5]
    recorder.stop_after = None
    again = em(SOURCE, Student(), None, resume=recorder.runs[-1], observers=[recorder], **options)
    assert again.history == whole.history
    assert again.n_passes == whole.n_passes
    np.testing.assert_array_equal(again.params.centers, whole.params.centers)
    rested = em(SOURCE, Student(), None, resume=recorder.runs[-1], **options)  # at rest: nothing is left to do
    assert rested.converged
    assert rested.n_passes == whole.n_passes


def test_em_ends_before_a_step_that_lowers_the_objective(monkeypatch):
    monkeypatch.setattr(Student, "m_step", lambda _, stats, params: params._replace(centers=params.centers + 50))
    fit = em(SOURCE, Student(), START, stop=never, max_iter=10, accelerate=False)
    assert fit.converged is True
    assert fit.params is START
    assert len(fit.history) == 1


def test_em_counts_every_pass_over_the_rows():
    class Counting:
        frame, n_looks = SOURCE.frame, 0

        def reduce(self, summarize):
            Counting.n_looks += 1
            return SOURCE.reduce(summarize)

    for accelerate in (False, True):
        Counting.n_looks = 0
        fit = em(Counting(), Student(), START, stop=SmallGain(1e-10), max_iter=200, accelerate=accelerate)
        assert fit.n_passes == Counting.n_looks
    plain = em(SOURCE, Student(), START, stop=never, max_iter=7, accelerate=False)
    assert plain.n_passes == 8
    assert plain.converged is False


def test_the_history_of_em_is_the_objective_per_unit_of_weight():
    fit = em(SOURCE, Student(), START, stop=never, max_iter=2, accelerate=False)
    assert fit.history[-1] == pytest.approx(fit.stats.objective / fit.stats.total, rel=1e-14)
    assert fit.history[0] == pytest.approx(
        SOURCE.reduce(Student().e_step(START)).objective / fit.stats.total, rel=1e-14
    )


def test_anderson_after_forget_keeps_the_latest_step_only():
    mixer = Anderson()
    mixer.extrapolate(np.zeros(2), np.ones(2))
    mixer.extrapolate(np.ones(2), np.array([1.5, 1.2]))
    mixer.forget()
    x, gx = np.array([1.5, 1.2]), np.array([1.6, 1.3])
    after = mixer.extrapolate(x, gx)
    fresh = Anderson()
    fresh.extrapolate(np.ones(2), np.array([1.5, 1.2]))
    np.testing.assert_array_equal(after, fresh.extrapolate(x, gx))


def test_em_takes_plain_steps_with_a_model_that_climbs_but_cannot_be_extrapolated():
    class Stiff:
        climbs = True
        e_step, m_step = Student().e_step, Student().m_step

    stiff = em(SOURCE, Stiff(), START, stop=never, max_iter=7)
    plain = em(SOURCE, Student(), START, stop=never, max_iter=7, accelerate=False)
    assert stiff.history == plain.history


@pytest.mark.parametrize(
    ("block_rows", "accelerate"), [(1, True), (7, True), (7, False), (64, True), (64, False), (599, False)]
)
def test_em_over_any_blocks_gives_the_same_centres(block_rows, accelerate):
    options = {"stop": SmallGain(1e-8), "accelerate": accelerate}
    whole = em(SOURCE, Student(), START, **options)
    cut = em(source_of(X, block_rows=block_rows), Student(), START, **options)
    np.testing.assert_allclose(cut.params.centers, whole.params.centers, rtol=0, atol=1e-10)
    assert cut.params.scale == pytest.approx(whole.params.scale, rel=1e-9)


@pytest.mark.parametrize(("request_to_stop", "converged"), [("stop: early", False), ("stop: converged", True)])
def test_an_observer_ends_a_run_of_em_as_converged_or_not(request_to_stop, converged):
    recorder = Recorder(stop_after=2, request=request_to_stop)
    fit = em(SOURCE, Student(), START, stop=never, max_iter=9, observers=[recorder])
    assert len(fit.history) - 1 == 2
    assert fit.converged is converged
    assert recorder.calls == [("begin", 9), ("end",)]


def test_ctrl_c_ends_em_with_the_last_iteration_that_was_finished():
    class Interrupting(Recorder):
        def step(self, progress):
            super().step(progress)
            if progress.n_iter == 3:
                raise KeyboardInterrupt

    whole = em(SOURCE, Student(), START, stop=never, max_iter=3)
    fit = em(SOURCE, Student(), START, stop=never, max_iter=9, observers=[Interrupting()])
    assert fit.interrupted
    assert not fit.converged
    assert fit.history == whole.history
    np.testing.assert_array_equal(fit.params.centers, whole.params.centers)


def test_ctrl_c_again_and_again_loses_no_iteration_of_em():
    class Interrupting(Recorder):
        def step(self, progress):
            raise KeyboardInterrupt

        def end(self):
            raise KeyboardInterrupt

    class InterruptingAtTheEnd(Recorder):
        end = Interrupting.end

    for observer, n_iter in ((Interrupting(), 1), (InterruptingAtTheEnd(), 3)):
        fit = em(SOURCE, Student(), START, stop=never, max_iter=3, observers=[observer])
        assert fit.interrupted
        assert len(fit.history) - 1 == n_iter


def test_ctrl_c_before_the_first_iteration_leaves_em_with_nothing_to_return(monkeypatch):
    def interrupted(self, stats, params):
        raise KeyboardInterrupt

    monkeypatch.setattr(Student, "m_step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        em(SOURCE, Student(), START, stop=never, max_iter=9)


def test_a_fit_that_needs_as_many_iterations_as_it_may_have_has_converged():
    rows, _, centers = t_mixture(n=2000, n_features=5, dof=5.0, spacing=30.0)
    source = source_of(rows)
    start = equal_params(source.frame.enter(centers + 0.05), scale=1e-4, dof=5.0)
    free = em(source, Student(), start, stop=SmallGain(1e-6))
    bound = em(source, Student(), start, stop=SmallGain(1e-6), max_iter=len(free.history) - 1)
    assert free.converged
    assert bound.converged
    assert bound.history == free.history
    assert not em(source, Student(), start, stop=SmallGain(1e-6), max_iter=len(free.history) - 2).converged
