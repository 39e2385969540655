"""The mixture model against scipy, scikit-learn, numerical optimisers, and its own promise to climb."""

import math

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.mixture import GaussianMixture
from support.mixture_oracle import (
    expected,
    expected_log_likelihood,
    log_density,
    log_parts,
    log_prior,
    matrices,
    random_params,
    random_shapes,
    round_shapes,
    rounded,
)
from support.model_inputs import never, plain_frame, t_mixture

from tkmeans import engines
from tkmeans.em import SmallGain, em
from tkmeans.models.covariances import SHAPES
from tkmeans.models.mixture import NOISE_BOUNDS, MixtureParams, Prior, StudentMixture
from tkmeans.shape_stats import ShapeStats
from tkmeans.sources import ArraySource
from tkmeans.stats import Block, Frame

KINDS = tuple(SHAPES)
ENGINES = ["reference", "auto"]


def as_is(X, weight=None, **options):
    return ArraySource(X, weight, plain_frame(X.shape[1]), **options)


def with_holes(X, rng, share=0.3):
    return np.where(rng.random(X.shape) < share, np.nan, X)


def some_prior(kind, p, rng, *, rows=4.0, ridge=0.1, mass=1.5, grain=0.3):
    """With every part that a prior may have; `grain` is the variance of rounding, in half of the columns."""
    pooled, diagonal = random_shapes(kind, 1, p, rng)[0], SHAPES[kind].diagonal
    rounding = diagonal(grain * (np.arange(p) % 2 == 0)) if grain else None
    return Prior(rows, rows * pooled + ridge * diagonal(np.ones(p)), rng.normal(), mass, rounding)


def model_of(kind, engine="reference", **options):
    return StudentMixture(shape=SHAPES[kind], engine=engines.select(engine), **options)


def assert_same_params(got, want, rtol=1e-7, atol=1e-9):
    for name, a, b in zip(MixtureParams._fields, got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol, err_msg=name)


# ---- what is maximised ------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("noise", [False, True, "box"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_of_a_mixture_is_scipys_log_likelihood_in_the_units_of_the_user_plus_the_log_prior(
    kind, noise, holes, engine
):
    for p, K in [(1, 2), (2, 3), (4, 1)]:
        rng = np.random.default_rng(p)
        params, prior = random_params(kind, K, p, rng, noise=noise), some_prior(kind, p, rng)
        frame = Frame(rng.normal(size=p) * 5, 0.37)
        X = frame.leave(rng.standard_t(2, (30, p)) * 3)
        if holes:
            X = with_holes(X, rng)
            X = X[~np.isnan(X).all(axis=1)]
        weight = rng.uniform(0, 2, len(X))
        stats = model_of(kind, engine, prior=prior).e_step(params)(Block(X, weight, frame))
        likelihood, penalty = weight @ log_density(X, rounded(params, prior), frame), log_prior(params, prior)
        assert stats.log_likelihood == pytest.approx(likelihood, rel=1e-10)
        assert stats.log_prior == pytest.approx(penalty, rel=1e-10)
        assert stats.objective == pytest.approx(likelihood + penalty, rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_log_prior_of_a_mixture_is_zero_where_all_shapes_and_weights_are_as_expected(kind):
    rng, p, K, rows = np.random.default_rng(0), 3, 4, 5.0
    pooled = random_shapes(kind, 1, p, rng)
    constant = rows / 2 * (np.linalg.slogdet(matrices_of(pooled, p)[0])[1] + p)
    params = random_params(kind, K, p, rng)._replace(
        covariances=np.repeat(pooled, K, axis=0), log_weights=np.full(K, -np.log(K))
    )
    model = model_of(kind, prior=Prior(rows, rows * pooled[0], constant, 3.0))
    assert as_is(rng.normal(size=(5, p))).reduce(model.e_step(params)).log_prior == pytest.approx(0, abs=1e-10)


def matrices_of(shapes, p):
    K = len(shapes)
    return matrices(MixtureParams(np.zeros((K, p)), shapes, np.ones(K), np.zeros(K)))


# ---- climbing ---------------------------------------------------------------------------------

problems = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**31),
        "kind": st.sampled_from(KINDS),
        "n": st.integers(8, 40),
        "n_components": st.integers(1, 4),
        "p": st.integers(1, 4),
        "prior": st.sampled_from(["none", "ridge", "rows", "all"]),
        "size_ratio": st.sampled_from([math.inf, 25.0, 3.0]),
        "noise": st.sampled_from([False, True, "box"]),
        "dof": st.sampled_from(["own", "shared", "fixed"]),
        "weights": st.sampled_from(["one", "integers", "fractions", "zeros"]),
        "holes": st.sampled_from([0.0, 0.0, 0.2]),
        "ties": st.booleans(),
        "accelerate": st.booleans(),
        "engine": st.sampled_from(ENGINES),
    }
)


def rows_and_weights(problem, rng):
    """Rows with heavy tails, and whatever else was asked for."""
    n, p = problem["n"], problem["p"]
    if problem["prior"] == "none":  # then a component on as many rows as features has an infinite likelihood
        n = 5 * n + 50
    X = rng.standard_t(2, (n, p)) * rng.choice([1, 3], (n, 1))
    if problem["ties"] and problem["prior"] != "none":  # components on equal rows: only a prior keeps them finite
        X = np.round(X)
    X = with_holes(X, rng, problem["holes"])
    weight = {
        "one": None,
        "integers": rng.integers(1, 4, n).astype(float),
        "fractions": rng.uniform(0, 1, n),
        "zeros": rng.uniform(0.5, 2, n) * (rng.random(n) < 0.7),
    }[problem["weights"]]
    if weight is not None:
        weight[: problem["n_components"]] += 1.0
    return X, weight


def model_and_start(problem, X, rng):
    kind, K, p = problem["kind"], problem["n_components"], problem["p"]
    prior = {
        "none": Prior(),
        "ridge": some_prior(kind, p, rng, rows=0.0, mass=0.0, grain=0.0),
        "rows": some_prior(kind, p, rng, rows=p + 2.0, ridge=1e-3, mass=0.0, grain=0.0),
        "all": some_prior(kind, p, rng),
    }[problem["prior"]]
    model = model_of(
        kind,
        problem["engine"],
        estimate_dof=problem["dof"] != "fixed",
        shared_dof=problem["dof"] == "shared",
        size_ratio=problem["size_ratio"],
        prior=prior,
    )
    start = random_params(kind, K, p, rng, noise=problem["noise"])
    centers = np.nan_to_num(X[rng.choice(len(X), K, replace=False)])
    start = start._replace(centers=centers, covariances=model.bounded(start.covariances, np.ones(K)))
    return model, start if problem["dof"] == "own" else start._replace(dof=np.full(K, start.dof[0]))


LOST = {"seed": 533581, "kind": "spherical", "n": 8, "n_components": 3, "p": 4, "prior": "ridge", "size_ratio": 25.0}
LOST |= {"noise": True, "dof": "own", "weights": "zeros", "holes": 0.0, "ties": False, "accelerate": False}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems)
@example(LOST | {"engine": "reference"})  # a component that loses its rows, and whose size a ridge alone decides
def test_no_step_lowers_the_penalised_log_likelihood_of_a_mixture(problem):
    rng = np.random.default_rng(problem["seed"])
    X, weight = rows_and_weights(problem, rng)
    model, start = model_and_start(problem, X, rng)
    visited = []

    class Recording:
        frame = plain_frame(X.shape[1])

        def reduce(self, summarize):
            stats = as_is(X, weight).reduce(summarize)
            visited.append(stats.objective)
            return stats

    fit = em(Recording(), model, start, stop=flat, max_iter=12, accelerate=problem["accelerate"])
    assert np.all(np.diff(fit.history) >= 0)
    if not problem["accelerate"]:  # then every visit is a plain M-step, the last one perhaps rejected
        assert np.all(np.diff(visited) >= -1e-9 * (1 + np.abs(visited[1:])))
    assert_admissible(fit.params, model)


@pytest.mark.thorough
@settings(max_examples=1500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems)
def test_no_step_of_many_mixtures_lowers_the_penalised_log_likelihood(problem):
    test_no_step_lowers_the_penalised_log_likelihood_of_a_mixture.hypothesis.inner_test(problem)


def flat(progress):
    """Whether a component is about to have no volume, as without a prior it may."""
    return np.linalg.eigvalsh(matrices(progress.params)).min() < 1e-4


def assert_admissible(params, model):
    assert np.all(np.isfinite(params.centers))
    sizes = np.exp(model.shape.log_sizes(params.covariances))
    variances = np.linalg.eigvalsh(matrices(params))
    if not model.shape.tied and np.all(variances[:, 0] > 1e-9 * variances[:, -1]):  # there is a volume to measure
        assert sizes.max() <= (1 + 1e-6) * model.size_ratio * sizes.min()
    assert np.exp(params.log_weights).sum() + params.noise + params.beyond == pytest.approx(1)
    if params.noise > 0:
        for share in (params.noise, params.beyond):
            assert NOISE_BOUNDS[0] <= share <= NOISE_BOUNDS[1]
    if model.estimate_dof:
        assert np.all((params.dof >= 1) & (params.dof <= 200))


@pytest.mark.parametrize("in_bulk", [0.9, 0.6, 0.3])
def test_a_step_climbs_where_most_rows_are_noise_and_its_shares_are_at_their_bounds(in_bulk):
    rng = np.random.default_rng(0)
    inside = rng.uniform(-3, 3, int(1000 * in_bulk))
    X = np.concatenate([inside, 50 * rng.choice([-1, 1], 1000 - len(inside))])[:, None]
    params = MixtureParams(
        np.zeros((1, 1)),
        np.full((1, 1), 1e-4),
        np.array([30.0]),
        np.log([0.2]),
        0.4,
        0.4,
        np.zeros(1),
        np.full(1, 10.0),
    )
    model = model_of("diag", estimate_dof=False, prior=Prior(0.0, np.full(1, 1e-4)))
    fit = em(as_is(X), model, params, stop=never, max_iter=200, accelerate=False)
    shares = np.exp(fit.params.log_weights[0]), fit.params.noise, fit.params.beyond
    masses = fit.stats.n[0], fit.stats.noise - fit.stats.beyond, fit.stats.beyond
    best = best_shares(masses)
    assert np.dot(masses, np.log(shares)) == pytest.approx(np.dot(masses, np.log(best)), rel=1e-6)


def test_a_share_of_noise_in_the_bulk_that_has_fallen_to_its_bound_stays_there():
    """So that noise can be beyond the bulk alone; its share is then the most likely one."""
    X = np.concatenate([np.linspace(-3, 3, 90), [500.0] * 10])[:, None]
    shares = NOISE_BOUNDS[0], 0.3
    start = MixtureParams(np.zeros((1, 1)), np.full((1, 1), 1e-4), np.array([30.0]), np.log([0.7]), *shares)
    start = start._replace(bulk_center=np.zeros(1), bulk=np.full(1, 100.0))
    model = model_of("diag", estimate_dof=False, prior=Prior(0.0, np.full(1, 1e-4)))
    fit = em(as_is(X), model, start, stop=never, max_iter=20)
    assert fit.params.noise <= 2 * NOISE_BOUNDS[0]
    assert fit.params.beyond == pytest.approx(0.1, rel=1e-6)


def best_shares(masses):
    """Of the component and of the noise in and beyond the bulk, on a fine grid of what is allowed."""
    grid = np.linspace(NOISE_BOUNDS[0], NOISE_BOUNDS[1], 901)
    noise, beyond = np.meshgrid(grid, grid, indexing="ij")
    gain = masses[0] * np.log1p(-noise - beyond) + masses[1] * np.log(noise) + masses[2] * np.log(beyond)
    i, j = np.unravel_index(np.argmax(gain), gain.shape)
    return 1 - grid[i] - grid[j], grid[i], grid[j]


# ---- the M-step -------------------------------------------------------------------------------

STEPS = {
    "plain": {},
    "gaussian": {"dof": "fixed"},
    "shared dof": {"dof": "shared"},
    "ratio": {"size_ratio": 2.0},
    "ratio, shared dof": {"size_ratio": 1.3, "dof": "shared"},
    "prior": {"prior": True},
    "all": {"prior": True, "noise": True, "size_ratio": 1.5, "dof": "shared"},
}


class Step:
    """An M-step, what it maximises, and its parameters as one vector without constraints but bounds on size and nu."""

    def __init__(self, kind, case, seed):
        rng = np.random.default_rng([seed, KINDS.index(kind), list(STEPS).index(case)])
        choice, self.p, self.K = STEPS[case], 2, 3
        dof = choice.get("dof", "own")
        prior = some_prior(kind, self.p, rng) if choice.get("prior") else Prior()
        self.model = model_of(
            kind,
            estimate_dof=dof != "fixed",
            shared_dof=dof == "shared",
            size_ratio=choice.get("size_ratio", math.inf),
            prior=prior,
        )
        self.X, self.weight = rng.standard_t(4, (40, self.p)) * 2, rng.uniform(0.2, 2, 40)
        old = random_params(kind, self.K, self.p, rng, noise=choice.get("noise", False))
        if dof != "own":
            old = old._replace(dof=np.full(self.K, 4.0))
        self.moments, self.kind = expected(self.X, rounded(old, prior)), kind
        stats = as_is(self.X, self.weight).reduce(self.model.e_step(old))
        self.new = self.model.m_step(stats, old)
        self.expanded = prior.scatter is None and self.model.size_ratio == math.inf
        self.expanded = self.expanded and not (kind == "tied" and dof == "own")

    @property
    def scales(self):
        """How many scales of u are free."""
        return self.expanded * (1 if self.kind == "tied" else self.K)

    @property
    def vector(self):
        """The answer of the M-step, the scales of u at their best."""
        new = self.new
        roots = np.linalg.cholesky(matrices(new))[: 1 if self.kind == "tied" else None]
        diagonals = np.log(np.diagonal(roots, axis1=1, axis2=2))
        lower = roots[:, 1, 0] if self.kind in ("full", "tied") else np.zeros(0)
        if self.kind == "spherical":
            diagonals = diagonals[:, :1]
        shares = np.concatenate([new.log_weights, np.log([new.noise, new.beyond]) if new.noise else []])
        tau, u = self.moments[0] * self.weight[:, None], self.moments[1]
        w, n = (tau * u).sum(axis=0), tau.sum(axis=0)
        log_alpha = np.log(w / n) if self.scales > 1 else np.log([w.sum() / n.sum()])
        dof = np.log(new.dof[:1] if self.model.shared_dof else new.dof) if self.model.estimate_dof else []
        parts = new.centers.ravel(), diagonals.ravel(), lower, shares, log_alpha[: self.scales], dof
        self.cuts = np.cumsum([len(part) for part in parts])[:-1]
        return np.concatenate(parts)

    def params(self, vector):
        """The parameters and the scales of u that a vector stands for."""
        centers, diagonals, lower, shares, log_alpha, dof = np.split(vector, self.cuts)
        m = 1 if self.kind == "tied" else self.K
        roots = np.zeros((m, self.p, self.p))
        roots[:, [0, 1], [0, 1]] = np.exp(diagonals.reshape(m, -1))
        if len(lower):
            roots[:, 1, 0] = lower
        full = np.repeat(roots @ roots.swapaxes(1, 2), self.K // m, axis=0)
        variances = np.diagonal(full, axis1=1, axis2=2)
        shapes = {"diag": variances, "spherical": variances[:, :1]}.get(self.kind, full)
        shares = shares - np.logaddexp.reduce(shares)
        noise, beyond = np.exp(shares[self.K :]) if self.new.noise else (0.0, 0.0)
        new = self.new._replace(
            centers=centers.reshape(self.K, self.p),
            covariances=shapes,
            dof=np.broadcast_to(np.exp(dof), self.K) if len(dof) else self.new.dof,
            log_weights=shares[: self.K],
            noise=noise,
            beyond=beyond,
        )
        return new, log_alpha if len(log_alpha) else 0.0

    def __call__(self, vector):
        params, log_alpha = self.params(vector)
        lost = self.weight @ self.moments[0] @ (rounded(params, self.model.prior).log_weights - params.log_weights)
        return lost + expected_log_likelihood(self.X, self.weight, self.moments, params, self.model.prior, log_alpha)

    def room(self, vector):
        """How much each pair of sizes may grow apart, and nu within its bounds: not negative where admissible."""
        params, _ = self.params(vector)
        log_sizes = np.linalg.slogdet(matrices(params))[1] / self.p
        pairs = np.subtract.outer(log_sizes, log_sizes)[~np.eye(self.K, dtype=bool)]
        ratio = min(self.model.size_ratio, 1e6) if self.kind != "tied" else 1e6
        dof = np.log(params.dof) if self.model.estimate_dof else np.array([1.0])
        return np.concatenate([np.log(ratio) - pairs, dof, np.log(200) - dof])


@pytest.mark.parametrize("case", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_no_admissible_change_of_an_m_steps_answer_has_a_higher_expected_log_likelihood(kind, case):
    step = Step(kind, case, seed=0)
    rng, best, answer = np.random.default_rng(1), step(step.vector), step.vector
    tried = 0
    for _ in range(400):
        change = rng.normal(size=len(answer)) * (rng.random(len(answer)) < rng.uniform(0.1, 1))
        vector = answer + 10 ** rng.uniform(-4, 0) * change
        if np.all(step.room(vector) >= 0):
            tried += 1
            assert step(vector) <= best + 1e-9
    assert tried > 50


@pytest.mark.parametrize("case", STEPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_numerical_optimiser_gains_nothing_over_an_m_step(kind, case):
    step = Step(kind, case, seed=1)
    answer, best = step.vector, step(step.vector)
    assert step.room(answer).min() >= -1e-9
    found = minimize(
        lambda vector: -step(vector),
        answer,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": step.room}],
        options={"ftol": 1e-12, "maxiter": 100},
    )
    assert np.min(step.room(found.x)) > -1e-7
    assert -found.fun <= best + 1e-7


def test_a_component_that_nobody_claims_keeps_its_centre_and_a_size_within_the_ratio():
    X = np.random.default_rng(0).normal(size=(100, 2))
    for prior in (Prior(), Prior(0.0, np.full(2, 1e-3))):
        model = model_of("diag", size_ratio=2.0, prior=prior, estimate_dof=False)
        params = MixtureParams(
            np.array([[0.0, 0], [1e9, 0]]), np.full((2, 2), 1e4), np.full(2, 1e6), np.log([0.5, 0.5])
        )
        stats = as_is(X).reduce(model.e_step(params))
        assert stats.n[1] == 0
        moved = model.m_step(stats, params)
        variances = np.exp(np.log(moved.covariances).mean(axis=1))
        assert variances[0] == pytest.approx(np.exp(np.log(X.var(axis=0)).mean()), rel=1e-2)
        assert variances[0] / 2.0001 < variances[1] < 2.0001 * variances[0]
        np.testing.assert_array_equal(moved.centers[1], params.centers[1])


# ---- missing values ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_with_missing_values_has_the_density_of_scipys_marginal(kind, engine):
    rng = np.random.default_rng(4)
    params, model = random_params(kind, 3, 4, rng), model_of(kind, engine)
    for row in with_holes(rng.standard_t(3, (25, 4)) * 3, rng, 0.4):
        stats = as_is(row[None]).reduce(model.e_step(params))
        parts = log_parts(row, params)
        whole = np.logaddexp.reduce(parts)
        assert stats.log_likelihood == pytest.approx(whole, rel=1e-10, abs=1e-10)
        np.testing.assert_allclose(stats.n, np.exp(parts - whole), rtol=1e-9)


@pytest.mark.parametrize("noise", [False, True, "box"])
@pytest.mark.parametrize("kind", KINDS)
def test_sums_over_rows_with_missing_values_are_their_conditional_moments_row_by_row(kind, noise):
    rng = np.random.default_rng(5)
    p, K = 3, 2
    params = random_params(kind, K, p, rng, noise=noise)
    X, weight = with_holes(rng.standard_t(3, (30, p)) * 2, rng, 0.4), rng.uniform(0, 2, 30)
    X = X[(some := ~np.isnan(X).all(axis=1))]
    weight = weight[some]
    stats = as_is(X, weight).reduce(model_of(kind).e_step(params))
    wx, scatter, w = np.zeros((K, p)), np.zeros((K, p, p)), np.zeros(K)
    for row, own_weight in zip(X, weight, strict=True):
        o = ~np.isnan(row)
        m = ~o
        tau = np.exp(log_parts(row, params) - log_density(row[None], params)[0])
        for k, S in enumerate(matrices(params)):
            inverse = np.linalg.inv(S[np.ix_(o, o)])
            away = row[o] - params.centers[k][o]
            u = (params.dof[k] + o.sum()) / (params.dof[k] + away @ inverse @ away)
            whole, rest = np.zeros(p), np.zeros((p, p))
            whole[o], whole[m] = away, S[np.ix_(m, o)] @ inverse @ away
            rest[np.ix_(m, m)] = S[np.ix_(m, m)] - S[np.ix_(m, o)] @ inverse @ S[np.ix_(o, m)]
            w[k] += own_weight * tau[k] * u
            wx[k] += own_weight * tau[k] * u * whole
            scatter[k] += own_weight * tau[k] * (u * np.outer(whole, whole) + rest)
    if stats.scatter.ndim == 2:
        scatter = np.diagonal(scatter, axis1=1, axis2=2)
    np.testing.assert_allclose(stats.w, w, rtol=1e-9)
    np.testing.assert_allclose(stats.wx, wx, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(stats.scatter, scatter, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("noise", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_of_which_nothing_was_observed_has_density_one_and_moves_no_centre(kind, noise, engine):
    rng = np.random.default_rng(6)
    params, model = random_params(kind, 3, 2, rng, noise=noise), model_of(kind, engine, estimate_dof=False)
    X = rng.normal(size=(40, 2)) * 2
    with_empty = np.vstack([X, np.full((10, 2), np.nan)])
    without, stats = (as_is(rows).reduce(model.e_step(params)) for rows in (X, with_empty))
    assert stats.log_likelihood == pytest.approx(without.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(stats.n - without.n, 10 * np.exp(params.log_weights), rtol=1e-9)
    assert stats.noise - without.noise == pytest.approx(10 * (params.noise + params.beyond))
    assert stats.beyond - without.beyond == pytest.approx(10 * params.beyond)
    np.testing.assert_allclose(stats.wx, without.wx, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_which_nothing_was_observed_change_no_estimate(kind):
    X, _, centers = t_mixture(n=300, n_clusters=2, n_features=2)
    shape = SHAPES[kind]
    params = MixtureParams(
        centers, round_shapes(kind, 0.2, 2, 2), np.full(2, 3.0), np.log([0.49, 0.49]), 0.01, 0.01, centers.mean(axis=0),
        shape.diagonal(np.full(2, 50.0)),
    )  # fmt: skip
    with_empty = np.vstack([X, np.full((60, 2), np.nan)])
    model = model_of(kind, prior=Prior(4.0, shape.diagonal(np.full(2, 0.4))), shared_dof=True)
    fits = [em(as_is(rows), model, params, stop=SmallGain(1e-13), max_iter=3000) for rows in (X, with_empty)]
    assert_same_params(fits[1].params, fits[0].params, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_under_which_all_was_observed_changes_no_sum(kind):
    rng = np.random.default_rng(7)
    params, model = random_params(kind, 3, 3, rng, noise=True), model_of(kind)
    X, everything = rng.normal(size=(20, 3)), np.ones(3, dtype=bool)
    stats = as_is(X).reduce(model.e_step(params))
    for a, b in zip(model.shape.completed(stats, params.covariances, everything), stats, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    for a, b in zip(model.kernel(params, everything)[:6], model.kernel(params)[:6], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    some = X.copy()
    some[0, 0] = np.nan  # now all rows are grouped by what was observed
    masked = as_is(some).reduce(model.e_step(params))
    alone, first = (as_is(rows).reduce(model.e_step(params)) for rows in (some[1:], some[:1]))
    for name, a, b, c in zip(ShapeStats._fields, masked[:9], alone[:9], first[:9], strict=False):
        np.testing.assert_allclose(a, b + c, rtol=1e-10, atol=1e-10, err_msg=name)


# ---- known relations --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_em_of_a_mixture_with_a_huge_dof_is_scikit_learns_gaussian_mixture(kind):
    rng = np.random.default_rng(1)
    X = np.vstack([rng.normal(size=(80, 2)) @ [[1, 0.5], [0, 0.4]], rng.normal(size=(60, 2)) * [0.3, 1.5] + [4, 1]])
    centers, shapes = np.array([[0.0, 0], [4, 1]]), round_shapes(kind, 1.0, 2, 2)
    start = MixtureParams(centers, shapes, np.full(2, 1e9), np.log([0.5, 0.5]))
    fit = em(as_is(X), model_of(kind, estimate_dof=False), start, stop=never, max_iter=400, accelerate=False)
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


def mapped(params, A, b, kind):
    """The parameters of the same mixture of rows A x + b."""

    def shape(covariance):
        return A @ covariance @ A.T if kind in ("full", "tied") else covariance * np.diag(A) ** 2

    return params._replace(
        centers=params.centers @ A.T + b,
        covariances=np.array([shape(covariance) for covariance in params.covariances]),
        bulk_center=A @ params.bulk_center + b,
        bulk=shape(params.bulk),
    )


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("shared_dof", [True, False])
@pytest.mark.parametrize("kind", ["full", "tied"])
def test_em_of_ellipses_without_prior_commutes_with_linear_maps_of_the_rows(kind, shared_dof, engine):
    rng = np.random.default_rng(8)
    X, p = rng.standard_t(3, (200, 3)) * 2, 3
    start = random_params(kind, 2, p, rng, noise=True)._replace(dof=np.full(2, 4.0))
    model = model_of(kind, engine, shared_dof=shared_dof)
    A, b = rng.normal(size=(p, p)) * [[100], [1], [0.01]], rng.normal(size=p) * 10
    assert_commute(model, X, start, A, b, kind)


@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
def test_em_of_any_but_round_shapes_without_prior_commutes_with_scalings_of_the_columns(kind, holes):
    rng = np.random.default_rng(9)
    X, p = with_holes(rng.standard_t(3, (200, 3)) * 2, rng, holes), 3
    start = random_params(kind, 2, p, rng, noise=True)
    A, b = np.diag([1e3, -1.0, 1e-3]), rng.normal(size=p)
    assert_commute(model_of(kind), X, start, A, b, kind)


def assert_commute(model, X, start, A, b, kind):
    here = em(as_is(X), model, start, stop=never, max_iter=10, accelerate=False)
    Y = X @ A.T + b if not np.isnan(X).any() else X * np.diag(A) + b
    there = em(as_is(Y), model, mapped(start, A, b, kind), stop=never, max_iter=10, accelerate=False)
    assert len(here.history) == len(there.history) == 11
    expected_there = mapped(here.params, A, b, kind)
    unit = np.abs(A).sum(axis=1)
    got = there.params
    np.testing.assert_allclose(got.centers / unit, expected_there.centers / unit, atol=1e-7)
    square = np.outer(unit, unit) if kind in ("full", "tied") else unit**2
    np.testing.assert_allclose(got.covariances / square, expected_there.covariances / square, atol=1e-7)
    for name in ("dof", "log_weights", "noise", "beyond"):
        np.testing.assert_allclose(getattr(got, name), getattr(expected_there, name), rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("estimate_dof", [True, False])
@pytest.mark.parametrize("shared_dof", [True, False])
@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_packing_and_unpacking_parameters_of_a_mixture_changes_nothing(kind, noise, shared_dof, estimate_dof):
    params = random_params(kind, 3, 4, np.random.default_rng(3), noise=noise)
    if shared_dof:
        params = params._replace(dof=np.full(3, 4.5))
    model = model_of(kind, shared_dof=shared_dof, estimate_dof=estimate_dof)
    assert_same_params(model.unpack(model.pack(params), params), params, rtol=1e-10, atol=1e-12)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(KINDS), st.booleans(), st.floats(0.01, 50))
def test_whatever_vector_is_unpacked_gives_admissible_parameters(seed, kind, noise, length):
    rng = np.random.default_rng(seed)
    model = model_of(kind, size_ratio=4.0)
    like = random_params(kind, 3, 2, rng, noise=noise)
    vector = model.pack(like)
    params = model.unpack(vector + length * rng.normal(size=len(vector)), like)
    assert_admissible(params, model)
    assert np.all(np.isfinite(as_is(rng.normal(size=(5, 2))).reduce(model.e_step(params)).objective))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_cut_into_blocks_give_the_same_mixture(kind):
    X, _, centers = t_mixture(n=300)
    X = with_holes(X, np.random.default_rng(0), 0.05)
    start = MixtureParams(
        centers, round_shapes(kind, 0.2, 4, 3), np.full(4, 2.0), np.full(4, np.log(0.98 / 4)), 0.01, 0.01,
        np.zeros(3), SHAPES[kind].diagonal(np.full(3, 25.0)),
    )  # fmt: skip
    model = model_of(kind, prior=Prior(5.0, 5.0 * SHAPES[kind].diagonal(np.full(3, 0.1))), size_ratio=10.0)
    whole = em(as_is(X), model, start, stop=SmallGain(1e-8), accelerate=False)
    cut = em(as_is(X, block_rows=41), model, start, stop=SmallGain(1e-8), accelerate=False)
    assert_same_params(cut.params, whole.params)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("p", [2, 6])
def test_statistics_of_a_mixture_are_sums_over_all_rows_even_very_far_ones(p, engine):
    rng = np.random.default_rng(0)
    params = random_params("full", 3, p, rng)
    params = params._replace(centers=params.centers * 20)
    X = params.centers[rng.integers(3, size=50)] + rng.normal(size=(50, p))
    X[7] = 1e11
    stats = as_is(X).reduce(model_of("full", engine).e_step(params))
    tau, u, log_u, _, _ = expected(X, params)
    for k, center in enumerate(params.centers):
        away, tau_u = X - center, tau[:, k] * u[:, k]
        np.testing.assert_allclose(stats.wx[k], tau_u @ away, rtol=1e-8)
        np.testing.assert_allclose(stats.scatter[k], (tau_u * away.T) @ away, rtol=1e-8)
        assert stats.log_u[k] == pytest.approx(tau[:, k] @ log_u[:, k], rel=1e-8)


def test_rows_of_weight_zero_and_repeated_rows_count_as_their_weights_say():
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(30, 2)) * 2, rng.integers(0, 4, 30)
    for kind in KINDS:
        params = random_params(kind, 2, 2, rng, noise=True)
        summarize = model_of(kind, prior=some_prior(kind, 2, rng)).e_step(params)
        weighted, repeated = as_is(X, weight.astype(float)), as_is(np.repeat(X, weight, axis=0))
        for a, b in zip(weighted.reduce(summarize), repeated.reduce(summarize), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
def test_noise_keeps_rows_however_far_from_moving_the_centres(engine):
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(100, 2)), np.zeros((10, 2))])
    params = random_params("full", 1, 2, rng, noise=True)._replace(centers=np.zeros((1, 2)))
    model, answers = model_of("full", engine, estimate_dof=False), []
    params = params._replace(dof=np.array([30.0]))
    for distance in (1e3, 1e6, 1e12):
        X[100:] = distance
        answers.append(em(as_is(X), model, params, stop=never, max_iter=20).params)
    np.testing.assert_allclose(answers[0].centers, answers[2].centers, atol=1e-6)
    np.testing.assert_allclose(answers[1].covariances, answers[2].covariances, rtol=1e-6)
