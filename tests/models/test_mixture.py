"""The mixture model against scipy's densities, scikit-learn's EM, and its own promise to climb."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import multivariate_t
from sklearn.mixture import GaussianMixture
from support.model_inputs import plain_frame, t_mixture

from tkmeans import engines
from tkmeans.em import Never, SmallGain, em
from tkmeans.models.covariances import SHAPES
from tkmeans.models.mixture import MixtureParams, StudentMixture
from tkmeans.sources import ArraySource

TYPES = tuple(SHAPES)


def as_is(X, weight=None, **options):
    return ArraySource(X, weight, plain_frame(X.shape[1]), **options)


def random_params(kind, n_components, p, rng):
    A = rng.normal(size=(n_components, p, p))
    full = A @ A.swapaxes(1, 2) + 0.2 * np.eye(p)
    covariances = {
        "full": full,
        "tied": np.repeat(full[:1], n_components, axis=0),
        "diag": np.diagonal(full, axis1=1, axis2=2).copy(),
        "spherical": full[:, :1, 0].copy(),
    }[kind]
    weights = rng.dirichlet(np.ones(n_components))
    return MixtureParams(
        rng.normal(size=(n_components, p)), covariances, rng.uniform(1, 30, n_components), np.log(weights)
    )


def matrices(kind, params):
    p = params.centers.shape[1]
    if kind in ("full", "tied"):
        return params.covariances
    return [np.diag(np.broadcast_to(covariances, p)) for covariances in params.covariances]


def component_log_densities(kind, X, params):
    return np.column_stack(
        [
            log_weight + multivariate_t.logpdf(X, center, matrix, df=dof)
            for log_weight, center, matrix, dof in zip(
                params.log_weights, params.centers, matrices(kind, params), params.dof, strict=True
            )
        ]
    )


@pytest.mark.parametrize("engine", ["reference", "auto"])
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("p", [2, 5])
def test_densities_and_memberships_of_a_student_mixture_are_scipys(kind, p, engine):
    rng = np.random.default_rng(0)
    X, params = rng.normal(size=(40, p)) * 3, random_params(kind, 3, p, rng)
    each = component_log_densities(kind, X, params)
    seen = StudentMixture(shape=SHAPES[kind], engine=engines.select(engine)).looking(params)(X)
    np.testing.assert_allclose(seen.log_density, logsumexp(each, axis=1), rtol=1e-10)
    np.testing.assert_allclose(seen.tau.T, np.exp(each - logsumexp(each, axis=1, keepdims=True)), rtol=1e-9)


@pytest.mark.parametrize("kind", TYPES)
def test_em_of_a_student_mixture_with_a_huge_dof_is_scikit_learns_gaussian_mixture(kind):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(80, 2)) @ [[1, 0.5], [0, 0.4]], rng.normal(size=(60, 2)) * [0.3, 1.5] + [4, 1]])
    shape = SHAPES[kind]
    start = MixtureParams(np.array([[0.0, 0], [4, 1]]), shape.start(1.0, 2, 2), np.full(2, 1e9), np.log([0.5, 0.5]))
    fit = em(
        as_is(X), StudentMixture(shape=shape, estimate_dof=False), start, stop=Never(), max_iter=400, accelerate=False
    )
    theirs = GaussianMixture(
        2, covariance_type=kind, means_init=start.centers, tol=0, max_iter=400, reg_covar=0, random_state=0
    )
    with pytest.warns(match="did not converge"):
        theirs.fit(X)
    np.testing.assert_allclose(fit.params.centers, theirs.means_, atol=1e-5)
    np.testing.assert_allclose(np.exp(fit.params.log_weights), theirs.weights_, atol=1e-5)
    mine = {"tied": fit.params.covariances[0], "spherical": fit.params.covariances[:, 0]}.get(
        kind, fit.params.covariances
    )
    np.testing.assert_allclose(mine, theirs.covariances_, atol=1e-5)


problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**31),
        "kind": st.sampled_from(TYPES),
        "n": st.integers(10, 50),
        "n_components": st.integers(1, 4),
        "p": st.integers(1, 4),
        "estimate_dof": st.booleans(),
        "shared_dof": st.booleans(),
        "weighted": st.booleans(),
        "accelerate": st.booleans(),
        "ties": st.booleans(),
        "engine": st.sampled_from(["reference", "auto"]),
    }
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems)
def test_no_step_lowers_the_log_likelihood_of_a_student_mixture(problem):
    rng = np.random.default_rng(problem["seed"])
    X = rng.standard_t(2, (problem["n"], problem["p"]))
    if problem["ties"]:
        X = np.round(X)  # components that collapse: the floor is reached
    weight = rng.integers(1, 4, len(X)).astype(float) if problem["weighted"] else None
    start = random_params(problem["kind"], problem["n_components"], problem["p"], rng)
    start = start._replace(centers=X[rng.choice(len(X), problem["n_components"], replace=False)])
    if problem["shared_dof"]:
        start = start._replace(dof=np.full(problem["n_components"], 3.0))
    model = StudentMixture(
        shape=SHAPES[problem["kind"]],
        estimate_dof=problem["estimate_dof"],
        shared_dof=problem["shared_dof"],
        floor=1e-3,
        engine=engines.select(problem["engine"]),
    )
    start = start._replace(covariances=model.shape.raised(start.covariances, 1e-3))
    visited = []

    class Recording:
        def reduce(self, summarize):
            stats = as_is(X, weight).reduce(summarize)
            visited.append(stats.objective)
            return stats

    fit = em(Recording(), model, start, stop=Never(), max_iter=15, accelerate=problem["accelerate"])
    assert np.all(np.diff(fit.history) >= 0)
    if not problem["accelerate"]:  # then every visit is a plain M-step, the last one perhaps rejected
        assert np.all(np.diff(visited) >= -1e-9 * (1 + np.abs(visited[1:])))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("shared_dof", [True, False])
def test_packing_and_unpacking_parameters_of_a_student_mixture_changes_nothing(kind, shared_dof):
    params = random_params(kind, 3, 4, np.random.default_rng(3))
    if shared_dof:
        params = params._replace(dof=np.full(3, 4.5))
    model = StudentMixture(shape=SHAPES[kind], shared_dof=shared_dof)
    for a, b in zip(params, model.unpack(model.pack(params), params), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", TYPES)
def test_rows_cut_into_blocks_give_the_same_student_mixture(kind):
    X, _, centers = t_mixture(n=300)
    start = MixtureParams(centers, SHAPES[kind].start(0.2, 4, 3), np.full(4, 2.0), np.full(4, -np.log(4)))
    model = StudentMixture(shape=SHAPES[kind], floor=1e-6)
    whole = em(as_is(X), model, start, stop=SmallGain(1e-8), accelerate=False)
    cut = em(as_is(X, block_rows=41), model, start, stop=SmallGain(1e-8), accelerate=False)
    for a, b in zip(whole.params, cut.params, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_no_variance_of_a_student_mixture_falls_below_the_floor():
    X = np.repeat(np.array([[0.0, 0.0], [5.0, 5.0]]), 10, axis=0)
    for kind in TYPES:
        model = StudentMixture(shape=SHAPES[kind], floor=1e-4)
        start = MixtureParams(X[[0, 10]], SHAPES[kind].start(1.0, 2, 2), np.full(2, 2.0), np.log([0.5, 0.5]))
        fit = em(as_is(X), model, start, stop=Never(), max_iter=50)
        covariances = fit.params.covariances
        variances = np.linalg.eigvalsh(covariances) if covariances.ndim == 3 else covariances
        assert variances.min() == pytest.approx(1e-4)
        assert np.isfinite(fit.history[-1])


@pytest.mark.parametrize("engine", ["reference", "auto"])
@pytest.mark.parametrize("p", [2, 6])
def test_statistics_of_a_student_mixture_are_sums_over_all_rows_even_very_far_ones(p, engine):
    rng = np.random.default_rng(0)
    params = random_params("full", 3, p, rng)
    params = params._replace(centers=params.centers * 20)
    X = params.centers[rng.integers(3, size=50)] + rng.normal(size=(50, p))
    X[7] = 1e11
    model = StudentMixture(shape=SHAPES["full"], engine=engines.select(engine))
    stats = as_is(X).reduce(model.e_step(params))
    seen = model.looking(params)(X)
    for k, center in enumerate(params.centers):
        tau_u = seen.tau[k] * seen.relative_u[k] * (1 + p / params.dof[k])
        away = X - center
        np.testing.assert_allclose(stats.wx[k], tau_u @ away, rtol=1e-9)
        np.testing.assert_allclose(stats.scatter[k], (tau_u * away.T) @ away, rtol=1e-9)


def test_a_covariance_that_is_singular_up_to_rounding_still_measures_distances_along_its_other_axes():
    along, across = np.array([3.0, 4.0]) / 5, np.array([4.0, -3.0]) / 5
    flat = 2.0 * np.outer(along, along) - 1e-17 * np.outer(across, across)
    factors, log_det = SHAPES["full"].whitening(flat[None], 2)
    assert np.isfinite(log_det[0])
    np.testing.assert_allclose(np.sum((factors[0] @ along) ** 2), 1 / 2.0, rtol=1e-10)
    assert np.sum((factors[0] @ across) ** 2) > 1e14
