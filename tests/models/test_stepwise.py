"""Stepwise EM: what is remembered, how it fades, and that it comes to rest where EM does."""

import numpy as np
import pytest
from support.density_oracle import mixture_log_density
from support.model_inputs import equal_params, never, plain_frame, t_mixture

from tkmeans import engines
from tkmeans.em import SmallGain, em
from tkmeans.models import Fast, Stepwise, Student, Tracked
from tkmeans.sources import ArraySource, Batches
from tkmeans.stats import Block

X, _, CENTERS = t_mixture(n=900)
FRAME = plain_frame(3)
START = equal_params(CENTERS, scale=0.2)


def stats_of(rows, params, model):
    return model.e_step(params)(Block(rows, None, FRAME))


def tracked_from(rows, params, model):
    """As after a first batch, learned from as a whole."""
    stats = stats_of(rows, params, model)
    return Tracked(params, stats, stats.total)


def test_stepwise_em_remembers_the_sum_over_all_rows_around_the_present_centres_weighted_by_age():
    stepwise = Stepwise(model=Student(), half_life=500.0)
    batches = np.split(X, [300, 420, 720])
    tracked = tracked_from(batches[0], START, stepwise.model)
    judged_by = [START]
    for batch in batches[1:]:
        judged_by.append(tracked.params)
        tracked = stepwise.m_step(stats_of(batch, tracked.params, stepwise.model), tracked)
    n, wx, wd2, came = np.zeros(4), np.zeros((4, 3)), np.zeros(4), 0
    for batch, params in zip(batches, judged_by, strict=True):
        came += len(batch)
        age = 900 - came
        weight = came / 900 * 0.5 ** (age / 500)
        d2 = ((batch[:, None] - params.centers) ** 2).sum(-1)
        density = (1 + d2 / (params.dof * params.scale)) ** (-(params.dof + 3) / 2)
        tau = weight * density / density.sum(axis=1, keepdims=True)
        trusted = tau * (params.dof + 3) / (params.dof + d2 / params.scale)
        away = batch[:, None] - tracked.centers
        n += tau.sum(axis=0)
        wx += np.einsum("nk,nkp->kp", trusted, away)
        wd2 += np.einsum("nk,nkp->k", trusted, away**2)
    assert tracked.rows == pytest.approx(900)
    np.testing.assert_allclose(tracked.memory.n, n, rtol=1e-10)
    np.testing.assert_allclose(tracked.memory.wx, wx, atol=1e-10)
    np.testing.assert_allclose(tracked.memory.wd2, wd2, rtol=1e-10)


@pytest.mark.parametrize("half_life", [None, 200.0])
def test_what_stepwise_em_remembers_of_a_row_does_not_depend_on_how_the_stream_is_cut(half_life):
    frozen = Stepwise(model=Fast(), half_life=half_life)  # any model: only the sums are looked at
    first = tracked_from(X[:300], START, frozen.model)._replace(memory=stats_of(X[:300], START, frozen.model))

    def left_of_first_batch(cuts):
        tracked = first
        for rows in np.split(X[300:], cuts):
            nothing = stats_of(rows, START, frozen.model)._replace(w=0.0, wd2=0.0)  # their weight, and nothing else
            tracked = frozen.m_step(nothing, tracked)
        return tracked.memory.w

    np.testing.assert_allclose(left_of_first_batch([]), left_of_first_batch([7, 150, 430]), rtol=1e-12)


def test_a_fixed_point_of_em_is_a_fixed_point_of_stepwise_em():
    with ArraySource(X, None, FRAME) as source:
        best = em(source, Student(), START, stop=SmallGain(1e-14), max_iter=5000)
    tracked = Tracked(best.params, best.stats, best.stats.total)
    after = Stepwise(model=Student()).m_step(best.stats, tracked)
    np.testing.assert_allclose(after.centers, best.params.centers, atol=1e-6)
    assert after.params.dof == pytest.approx(best.params.dof, rel=1e-4)
    assert after.params.scale == pytest.approx(best.params.scale, rel=1e-5)


def test_stepwise_em_scores_every_batch_per_unit_of_weight_before_learning_from_it():
    weight = np.repeat([1.0, 2.0, 0.5], 100)
    start = tracked_from(X[:100], START, Student())
    with ArraySource(X[:300], weight, FRAME) as source:
        batches = Batches(source, np.arange(300), 100)
        run = em(batches, Stepwise(model=Student()), start, stop=never, max_iter=2)
        first = source.part(np.arange(100)).reduce(Student().e_step(START))
    learned = Stepwise(model=Student()).m_step(first, start)
    assert run.history[0] == pytest.approx(mixture_log_density(X[:100], START).mean(), rel=1e-10)
    assert run.history[1] == pytest.approx(mixture_log_density(X[100:200], learned.params).mean(), rel=1e-10)
    assert len(run.history) == 3


def test_many_passes_of_stepwise_em_over_batches_end_in_the_optimum_of_em():
    student = Student(engine=engines.select("auto"))
    with ArraySource(X, None, FRAME) as source:
        best = em(source, student, START, stop=SmallGain(1e-12), max_iter=5000)
        batches = Batches(source, np.random.default_rng(0).permutation(len(X)), 100)
        start = tracked_from(X[:100], START, student)
        stepwise = em(batches, Stepwise(model=student), start, stop=never, max_iter=9 * 100)
        reached = source.reduce(student.e_step(stepwise.params.params))
    assert best.stats.objective - reached.objective < 1e-5 * len(X)
    np.testing.assert_allclose(stepwise.params.centers, best.params.centers, atol=2e-3)


def test_steps_of_stepwise_em_are_not_extrapolated():
    assert hasattr(Student(), "pack")
    assert not hasattr(Stepwise(model=Student()), "pack")
