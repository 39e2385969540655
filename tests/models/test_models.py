"""Each model against something written by others, or written out."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import digamma
from scipy.stats import multivariate_normal, multivariate_t
from sklearn.cluster import KMeans
from support.density_oracle import mixture_log_density
from support.lloyd import Lloyd
from support.model_inputs import equal_params, never, plain_frame, source_of, t_mixture

from tkmeans import engines
from tkmeans.em import SmallGain, SmallMove, em
from tkmeans.engines import reference
from tkmeans.models import Fast, Student
from tkmeans.models.student import eta
from tkmeans.sources import ArraySource
from tkmeans.stats import Block, Params


def as_is(X, weight=None):
    return ArraySource(X, weight, plain_frame(X.shape[1]))


def test_em_with_a_huge_dof_is_that_of_a_spherical_gaussian_mixture_of_one_variance():
    X, _, centers = t_mixture(n=300, dof=50.0)
    fit = em(
        as_is(X),
        Student(estimate_dof=False, estimate_weights=True),
        equal_params(centers, scale=0.3, dof=1e8),
        stop=never,
        max_iter=20,
        accelerate=False,
    )
    mu, variance, pi = centers.copy(), 0.3, np.full(4, 0.25)
    for _ in range(20):
        density = np.column_stack([multivariate_normal(m, variance).pdf(X) for m in mu]) * pi
        r = density / density.sum(axis=1, keepdims=True)
        pi = r.mean(axis=0)
        mu = (r.T @ X) / r.sum(axis=0)[:, None]
        variance = np.sum(r * ((X[:, None] - mu) ** 2).sum(-1)) / X.size
    np.testing.assert_allclose(fit.params.centers, mu, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(fit.params.scale, variance, rtol=1e-5)
    np.testing.assert_allclose(np.exp(fit.params.log_weights), pi, rtol=1e-5)


def test_one_m_step_of_student_is_the_papers_equations_written_out():
    X, _, centers = t_mixture(n=300, n_features=3)
    params = equal_params(centers + 0.7, scale=0.3, dof=3.0)  # far off: centres and scale have a long way to go
    p, nu, alpha = X.shape[1], params.dof, params.scale
    density = np.column_stack([multivariate_t(mu, alpha * np.eye(p), nu).pdf(X) for mu in params.centers])
    tau = density / density.sum(axis=1, keepdims=True)  # eqn:tau
    u = (nu + p) / (nu + ((X[:, None] - params.centers) ** 2).sum(-1) / alpha)  # eqn:u_nk
    mu = (tau * u).T @ X / (tau * u).sum(axis=0)[:, None]  # eqn:mu
    new = Student(estimate_dof=False).m_step(as_is(X).reduce(Student().e_step(params)), params)
    np.testing.assert_allclose(new.centers, mu, rtol=1e-10)
    # eqn:alpha around the new centres, over the sum of the weights, where the paper has the number of rows
    around = np.sum(tau * u * ((X[:, None] - mu) ** 2).sum(-1))
    assert new.scale == pytest.approx(around / (p * np.sum(tau * u)), rel=1e-10)
    assert Student(least_dof=50.0).m_step(as_is(X).reduce(Student().e_step(params)), params).dof == 50.0


@pytest.mark.parametrize("seed", range(5))
def test_lloyd_from_an_equal_start_agrees_with_scikit_learns_kmeans(seed):
    X, _, _ = t_mixture(n=400, dof=30.0, seed=seed)
    start = X[np.random.default_rng(seed).choice(len(X), 4, replace=False)]
    ours = em(as_is(X), Lloyd(), equal_params(start), stop=SmallMove(0.0), accelerate=False)
    theirs = KMeans(4, init=start, n_init=1, tol=0, algorithm="lloyd").fit(X)
    np.testing.assert_allclose(ours.params.centers, theirs.cluster_centers_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(-ours.stats.objective, theirs.inertia_, rtol=1e-10)


def test_lloyd_counts_the_observed_features_of_the_rows_of_each_cluster():
    X, _, centers = t_mixture(n=200)
    rows = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    rows = rows[~np.isnan(rows).all(axis=1)]  # a row without values is nobody's
    said = as_is(rows).reduce(Lloyd().e_step(equal_params(centers)))
    d2 = np.nansum((rows[:, None] - centers) ** 2, axis=2)
    nearest = d2.argmin(axis=1)
    for k in range(len(centers)):
        np.testing.assert_array_equal(said.observed[k], np.sum(~np.isnan(rows[nearest == k]), axis=0))
    np.testing.assert_allclose(said.objective, -d2.min(axis=1).sum(), rtol=1e-12)


@pytest.mark.parametrize(("dof", "n_features"), [(1.0, 2), (1.0, 5), (4.0, 3)])
def test_fast_memberships_are_those_of_fuzzy_c_means(dof, n_features):
    X, _, centers = t_mixture(n=100, n_features=n_features)
    m = 1 + 2 / (dof + n_features)
    d = np.linalg.norm(X[:, None] - centers, axis=2)
    ratio = (d[:, :, None] / d[:, None, :]) ** (2 / (m - 1))  # Bezdek's formula
    params = equal_params(centers, scale=1e-20, dof=dof)
    block = Block(X, None, plain_frame(n_features))
    said = reference.memberships(block, params, Fast().kernel(params))
    np.testing.assert_allclose(said, 1 / ratio.sum(axis=2), rtol=1e-9, atol=1e-15)


def test_the_fixed_point_of_em_solves_the_papers_equations():
    X, _, centers = t_mixture(n=800)
    fit = em(as_is(X), Student(), equal_params(centers), stop=SmallGain(0.0), max_iter=2000)
    q, p = fit.params, 3
    d2 = ((X[:, None] - q.centers) ** 2).sum(-1)
    log_f = -(q.dof + p) / 2 * np.log1p(d2 / (q.dof * q.scale))
    tau = np.exp(log_f - np.logaddexp.reduce(log_f, axis=1, keepdims=True))  # eqn:tau
    u = (q.dof + p) / (q.dof + d2 / q.scale)  # eqn:u_nk
    np.testing.assert_allclose((tau * u).T @ X / (tau * u).sum(axis=0)[:, None], q.centers, atol=1e-6)  # eqn:mu
    np.testing.assert_allclose((tau * u * d2).sum() / (p * tau.sum()), q.scale, rtol=1e-6)  # eqn:alpha
    half = (q.dof + p) / 2
    eta = 1 + (tau * (np.log(u) - u)).sum() / tau.sum() + digamma(half) - np.log(half)
    np.testing.assert_allclose(np.log(q.dof / 2) - digamma(q.dof / 2) + eta, 0, atol=1e-6)  # eqn:nu_eq


@pytest.mark.parametrize("expansion", [1.0, 0.8])
def test_eta_is_the_constant_of_the_papers_equation_pooled_over_rows(expansion):
    X, _, centers = t_mixture(n=300)
    q, p = equal_params(centers + 0.3, scale=0.2, dof=4.0), 3
    d2 = ((X[:, None] - q.centers) ** 2).sum(-1)
    f = (1 + d2 / (q.dof * q.scale)) ** (-(q.dof + p) / 2)
    tau = f / f.sum(axis=1, keepdims=True)
    u = (q.dof + p) / (q.dof + d2 / q.scale) / expansion
    half = (q.dof + p) / 2
    expected = 1 + (tau * (np.log(u) - u)).sum() / len(X) + digamma(half) - np.log(half)
    assert eta(as_is(X).reduce(Student().e_step(q)), expansion) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_features", [2, 8])
@pytest.mark.parametrize("seed", range(3))
def test_em_recovers_dof_and_scale_of_generated_rows(n_features, seed):
    X, _, centers = t_mixture(n=5000, n_features=n_features, dof=3.0, scale=0.05, seed=seed)
    fit = em(source_of(X), Student(), _entered(X, centers), stop=SmallGain(1e-9))
    assert abs(fit.params.dof - 3) < 0.2
    assert abs(fit.params.scale * source_of(X).frame.unit ** 2 / 0.05 - 1) < 0.05


def _entered(X, centers):
    return equal_params(source_of(X).frame.enter(centers), scale=0.1, dof=1.0)


problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**31),
        "n": st.integers(8, 60),
        "n_clusters": st.integers(1, 5),
        "n_features": st.integers(1, 5),
        "dof": st.sampled_from([1.0, 2.0, 5.0, 100.0]),
        "estimate_dof": st.booleans(),
        "estimate_weights": st.booleans(),
        "weighted": st.booleans(),
        "missing": st.booleans(),
        "accelerate": st.booleans(),
        "engine": st.sampled_from(["reference", "auto"]),
    }
)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems)
def test_no_accepted_step_of_student_lowers_the_log_likelihood(problem):
    rng = np.random.default_rng(problem["seed"])
    X = rng.standard_t(2, (problem["n"], problem["n_features"]))
    if problem["missing"]:
        X[1:][rng.random(X[1:].shape) < 0.2] = np.nan
    weight = rng.integers(0, 3, len(X)).astype(float) if problem["weighted"] else None
    if weight is not None:
        weight[0] = 1.0
    start = np.nan_to_num(X[rng.choice(len(X), problem["n_clusters"], replace=False)])
    model = Student(
        estimate_dof=problem["estimate_dof"],
        estimate_weights=problem["estimate_weights"],
        scale_floor=1e-6,
        engine=engines.select(problem["engine"]),
    )
    visited = []
    source = _Recording(X, weight, visited)
    fit = em(
        source,
        model,
        equal_params(start, scale=1.0, dof=problem["dof"]),
        stop=never,
        max_iter=12,
        accelerate=problem["accelerate"],
    )
    gains = np.diff(fit.history)
    assert np.all(gains >= 0)
    if not problem["accelerate"]:  # then every visit is a plain step, the last one perhaps rejected
        objective = np.array(visited)
        assert np.all(np.diff(objective) >= -1e-11 * (1 + np.abs(objective[1:])))


@pytest.mark.thorough
@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems)
def test_no_accepted_step_of_student_on_many_problems_lowers_the_log_likelihood(problem):
    test_no_accepted_step_of_student_lowers_the_log_likelihood.hypothesis.inner_test(problem)


class _Recording:
    """A source that remembers the objective of every visit, accepted or not."""

    def __init__(self, X, weight, visited):
        self._inner, self._visited = as_is(X, weight), visited

    def reduce(self, summarize):
        stats = self._inner.reduce(summarize)
        self._visited.append(stats.objective)
        return stats


def test_the_objective_of_a_fit_is_scipys_log_likelihood_of_its_parameters():
    X, _, centers = t_mixture(n=150)
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    model = Student(estimate_weights=True)
    fit = em(as_is(X, weight), model, equal_params(centers), stop=SmallGain(1e-10))
    np.testing.assert_allclose(fit.stats.objective, weight @ mixture_log_density(X, fit.params), rtol=1e-10)
    assert np.ptp(fit.params.log_weights) > 0.01


def test_a_cluster_without_rows_keeps_its_centre_and_stays_finite():
    X, _, centers = t_mixture(n=100)
    lost = np.vstack([centers, np.full((1, 3), 1e9)])
    for model in (Lloyd(), Student(), Student(estimate_weights=True)):
        fit = em(as_is(X), model, equal_params(lost), stop=never, max_iter=10)
        assert np.all(np.isfinite(fit.params.centers))
    fit = em(as_is(X), Lloyd(), equal_params(lost), stop=never, max_iter=10)
    np.testing.assert_array_equal(fit.params.centers[-1], lost[-1])


@pytest.mark.parametrize("accelerate", [True, False])
def test_a_cluster_outweighed_by_1e40_keeps_a_weight_above_zero(accelerate):
    X, _, centers = t_mixture(n=100)
    weight = np.where(np.arange(100) == 0, 1e40, 1.0)
    model = Student(estimate_weights=True, scale_floor=1e-20)
    fit = em(as_is(X, weight), model, equal_params(centers), stop=never, max_iter=50, accelerate=accelerate)
    assert np.all(np.exp(fit.params.log_weights) > 0)


def test_rows_without_observed_values_leave_the_parameters_unchanged():
    params = equal_params(np.eye(2))
    stats = as_is(np.full((5, 2), np.nan)).reduce(Student().e_step(params))
    for before, after in zip(params, Student().m_step(stats, params), strict=True):
        np.testing.assert_array_equal(before, after)


def test_the_literal_limit_of_a_vanishing_scale_puts_every_centre_on_a_row():
    # FastTKMeans uses tau alone; with u = 1/D as well, every centre ends on a row.
    X, _, _ = t_mixture(n=300, n_clusters=3, n_features=2, dof=30.0)
    start = np.random.default_rng(0).uniform(-3, 3, (3, 2))
    for power, on_a_row in ((1, True), (0, False)):
        params = equal_params(start, scale=1e-16, dof=1.0)
        fit = em(as_is(X), Fast(power=power), params, stop=never, max_iter=300, accelerate=False)
        nearest = np.linalg.norm(X[:, None] - fit.params.centers, axis=2).min(axis=0)
        assert np.all(nearest < 1e-6) == on_a_row


@pytest.mark.parametrize("missing", [False, True])
def test_the_slope_that_scoring_tells_of_is_the_derivative_of_the_log_likelihood(missing):
    X, _, centers = t_mixture(n=40, spacing=30.0)
    X[::7, 1] = np.nan if missing else X[::7, 1]
    model = Student(estimate_weights=True)
    params = Params(centers + 0.05, 0.12, 4.0, np.log([0.1, 0.2, 0.3, 0.4]))
    stats = as_is(X).reduce(model.e_step(params))
    slope, here = model.ahead(stats, params)[1], model.pack(params)

    def log_likelihood(vector):
        at = model.unpack(vector, params)  # which makes weights sum to 1
        return mixture_log_density(X, at).sum()

    step = 1e-5 * np.eye(len(here))
    wanted = [(log_likelihood(here + each) - log_likelihood(here - each)) / 2e-5 for each in step]
    np.testing.assert_allclose(slope, wanted, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(("dof", "n_features"), [(3.0, 2), (5.0, 16), (50.0, 8)])
def test_one_step_of_scoring_is_nearly_all_the_way_where_clusters_stand_apart(dof, n_features):
    X, _, centers = t_mixture(n=4000, n_features=n_features, dof=dof, spacing=60.0)
    rng, model = np.random.default_rng(1), Student()
    start = equal_params(centers, dof=dof)
    top = em(as_is(X), model, start, stop=never, max_iter=40)
    off = top.params._replace(centers=top.params.centers + 0.05 * rng.normal(size=centers.shape))
    stats = as_is(X).reduce(model.e_step(off))
    left = []
    for params in (model.unpack(model.ahead(stats, off)[0], off), model.m_step(stats, off)):
        left.append(top.stats.objective - as_is(X).reduce(model.e_step(params)).objective)
    assert left[0] < 0.01 * (top.stats.objective - stats.objective)
    assert left[0] < 0.3 * left[1]  # a step of EM


def test_scoring_promises_nothing_where_clusters_overlap():
    X, _, centers = t_mixture(spacing=0.5)
    model, params = Student(), equal_params(centers)
    goal, slope = model.ahead(as_is(X).reduce(model.e_step(params)), params)
    assert goal is not None
    assert slope is None


def test_packing_and_unpacking_parameters_of_student_changes_nothing():
    params = Params(np.arange(6.0).reshape(3, 2), 0.25, 4.0, np.log([0.5, 0.25, 0.25]))
    for estimate_dof in (True, False):
        for estimate_weights in (True, False):
            model = Student(estimate_dof=estimate_dof, estimate_weights=estimate_weights)
            back = model.unpack(model.pack(params), params)
            for a, b in zip(params, back, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-14)


def test_unpacking_an_extreme_extrapolation_limits_scale_and_dof():
    params = Params(np.zeros((1, 1)), 0.25, 4.0, np.zeros(1))
    model = Student(scale_floor=1e-3)
    wild = model.unpack(np.array([0.0, 1e6, -1e6]), params)
    assert wild.scale == 25.0
    assert wild.dof == 200.0
    back = model.unpack(np.array([0.0, -1e6, 1e6]), params)
    assert back.scale == pytest.approx(2.5e-3)
    assert back.dof == 1.0
