"""The released code's own runs, with the starts they had: 9 methods on 3 inputs."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import digamma

from tkmeans.baselines.hard_assignment import Centers, HardModel, Labelled
from tkmeans.em import Progress, em
from tkmeans.paper.authors.methods import METHODS, QuietFor, plusplus, random_rows, roulette, shifted_plusplus, uniform
from tkmeans.paper.authors.soft_models import Components, ReleasedFast, ReleasedTKMeans, Spheres, next_dof
from tkmeans.sources import ArraySource
from tkmeans.stats import Block, Frame

RUNS = np.load(Path(__file__).parents[1] / "data" / "released_runs.npz")
INPUTS = ("iris", "S1sub", "dim032sub")
KEYS = {name: name.lower().replace("fast t-k", "fast-t-k") for name in METHODS}


def start_of(source, method):
    X = RUNS[f"{source}/X"]
    if method in ("k-medoids", "k-medians"):
        return X[RUNS[f"{source}/start_medoids"]]
    if method.endswith("++"):
        seeds = roulette(X, int(RUNS[f"{source}/pp_first"]), RUNS[f"{source}/pp_uniforms"])
        return seeds + 0.01 if method.startswith("fast") else seeds
    return RUNS[f"{source}/start_centers"]


@pytest.mark.parametrize("source", INPUTS)
@pytest.mark.parametrize("method", METHODS)
def test_every_run_of_the_released_code_is_repeated_label_by_label(source, method):
    X = RUNS[f"{source}/X"]
    wanted = {field: RUNS[f"{source}/{KEYS[method]}/{field}"] for field in ("labels", "centers", "n_iter")}
    run = METHODS[method].run(X, start_of(source, method))
    assert run.n_iter == wanted["n_iter"]
    np.testing.assert_allclose(run.centers, wanted["centers"], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(run.labels, wanted["labels"])


def test_there_are_27_recorded_runs_of_the_released_code():
    assert len(METHODS) * len(INPUTS) == 27
    assert all(f"{source}/{KEYS[method]}/labels" in RUNS for source in INPUTS for method in METHODS)


# ---- the parts, each the long way round ----------------------------------------------


def as_matlab_stops(Q, tol=0.1, steady=False):
    """The loop as it was written, with its counter; the iteration it ends at, or None."""
    before = change_before = count = 0
    for i, now in enumerate(Q, start=1):
        if np.isnan(now):
            return i
        change = abs(before - now)
        count = count + 1 if change < tol or (steady and abs(change_before - change) < tol) else 0
        before, change_before = now, change
        if count > 3:
            return i
    return None


@pytest.mark.parametrize("steady", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_run_ends_where_the_released_counter_ends_it(seed, steady):
    rng = np.random.default_rng(seed)
    steps = rng.choice([0.02, 0.2, 0.25, 3.0], size=60, p=[0.5, 0.2, 0.2, 0.1])
    Q = np.cumsum(steps) - 40.0 * (seed % 2)
    if seed % 5 == 4:
        Q[30] = np.nan
    rule = QuietFor(7, steady=steady)
    ends = [i for i in range(2, 61) if rule(Progress(list(Q[:i] / 7)))]
    assert (ends or [None])[0] == as_matlab_stops(Q, steady=steady)


@pytest.mark.parametrize("method", [name for name, each in METHODS.items() if isinstance(each.model, HardModel)])
def test_rows_cut_into_blocks_give_the_same_released_run_of_hard_methods(method):
    X, centers = RUNS["iris/X"], start_of("iris", method)
    released = METHODS[method]
    whole = released.run(X, centers)
    frame, start = Frame(np.zeros(4), 1.0), released.first(centers)
    stop = QuietFor(len(X), steady=released.steady)
    cut = em(ArraySource(X, None, frame, block_rows=37), released.model, start, stop=stop, max_iter=499)
    assert len(cut.history) == whole.n_iter
    np.testing.assert_array_equal(cut.stats.labels, whole.labels)


def test_the_released_loop_for_nu_takes_one_step_whatever_eta_is():
    for nu0 in np.logspace(-3, 5, 400):
        eta = -1 / nu0
        nu = nu0 + 0.01
        assert np.log(nu) - digamma(nu) + eta <= 0  # so the released while-loop is left here
    mean, dof, p = -1.4, 7.0, 3
    eta = 1 + mean + digamma(5.0) - np.log(5.0)
    assert next_dof(mean, dof, p) == pytest.approx(1 / -eta + 0.01)


@pytest.mark.parametrize(("method", "metric"), [("k-medoids", "sqeuclidean"), ("k-medians", "cityblock")])
def test_a_released_medoid_has_the_least_sum_of_distances_to_its_cluster(method, metric):
    X = np.random.default_rng(0).normal(size=(200, 3))
    labels = np.random.default_rng(1).integers(4, size=200)
    new = METHODS[method].model.m_step(Labelled(X, np.ones(200), labels, 0.0), Centers(np.zeros((4, 3))))
    for k in range(4):
        own = X[labels == k]
        np.testing.assert_array_equal(new.centers[k], own[cdist(own, own, metric).sum(axis=1).argmin()])


def test_far_rows_pull_a_released_centre_more_than_a_mean_would():
    X = np.vstack([np.random.default_rng(0).normal(size=(50, 2)), [[30.0, 0.0]]])
    params = Spheres(X[:-1].mean(axis=0)[None], 1.0, 15.0)
    model = ReleasedTKMeans()
    moved = model.m_step(model.e_step(params)(Block(X, None, Frame(np.zeros(2), 1.0))), params)
    assert moved.centers[0, 0] > X.mean(axis=0)[0] > params.centers[0, 0]


def test_released_fast_t_k_means_that_starts_on_rows_ends_with_all_centres_in_one_place():
    X = RUNS["iris/X"]
    on_rows = METHODS["fast t-k-means++"].run(X, X[[0, 60, 120]])
    np.testing.assert_allclose(on_rows.centers, on_rows.centers[[0, 0, 0]], rtol=0, atol=1e-10)
    assert len(set(METHODS["fast t-k-means++"].run(X, X[[0, 60, 120]] + 0.01).labels)) == 3


def test_a_released_k_means_cluster_without_rows_moves_to_the_origin():
    X = RUNS["S1sub/X"]
    centers = np.vstack([RUNS["S1sub/start_centers"][:2], [[90.0, 90.0]]])
    model = METHODS["k-means"].model
    stats = model.e_step(Centers(centers))(Block(X, None, Frame(np.zeros(2), 1.0)))
    np.testing.assert_array_equal(model.m_step(stats, Centers(centers)).centers[2], 0)


def test_released_fast_t_k_means_weights_rows_by_membership_alone():
    X, centers = RUNS["S1sub/X"], RUNS["S1sub/start_centers"]
    params = Spheres(centers, 1.0, 1.0)
    model = ReleasedFast()
    stats = model.e_step(params)(Block(X, None, Frame(np.zeros(2), 1.0)))
    d = np.linalg.norm(X[:, None] - centers, axis=2)
    tau = d**-3.0 / (d**-3.0).sum(axis=1, keepdims=True)  # D^-(1+p)/2
    np.testing.assert_array_equal(stats.labels, tau.argmax(axis=1))
    assert stats.objective == pytest.approx(np.sum(tau * np.log(d**-3.0)), rel=1e-9)
    np.testing.assert_allclose(model.m_step(stats, params).centers, (tau.T @ X) / tau.sum(axis=0)[:, None], rtol=1e-10)


def test_a_released_fast_centre_moves_even_if_no_row_is_near():
    X = RUNS["dim032sub/X"]
    params = Spheres(np.vstack([X[:5] + 0.01, np.full((1, 32), 9.0)]), 1.0, 1.0)
    tau = cdist(X, params.centers) ** -33.0
    tau /= tau.sum(axis=1, keepdims=True)
    assert tau[:, 5].max() < 1e-16
    model = ReleasedFast()
    moved = model.m_step(model.e_step(params)(Block(X, None, Frame(np.zeros(32), 1.0))), params).centers
    np.testing.assert_allclose(moved, (tau.T @ X) / tau.sum(axis=0)[:, None], atol=1e-9)


@pytest.mark.parametrize(("source", "away"), [("S1sub", 0.0), ("dim032sub", 0.0), ("dim032sub", 1e-12)])
def test_a_released_fast_centre_that_stands_on_a_row_goes_to_the_origin(source, away):
    X = RUNS[f"{source}/X"]
    params = Spheres(np.vstack([X[7] + away, X[8] + 0.01, X[-1] - 0.01]), 1.0, 1.0)
    block = Block(X, None, Frame(np.zeros(X.shape[1]), 1.0))
    model = ReleasedFast()
    with np.errstate(all="ignore"):
        f = cdist(params.centers, X) ** -(1.0 + X.shape[1])
        tau = f / f.sum(axis=0)
        centers = tau @ X / tau.sum(axis=1)[:, None]
        q = np.nansum(tau * np.log(f))
    moved = model.m_step(model.e_step(params)(block), params)
    np.testing.assert_array_equal(moved.centers[0], 0)
    np.testing.assert_allclose(moved.centers[1:], centers[1:], rtol=1e-9)
    assert model.e_step(params)(block).objective == pytest.approx(q, rel=1e-9)


def test_starts_of_the_released_methods_are_what_the_released_code_draws():
    X = RUNS["S1sub/X"]
    rng = np.random.RandomState(0)
    box = uniform(X, 500, rng)
    assert np.all((box >= X.min(axis=0)) & (box <= X.max(axis=0)))
    rows = random_rows(X, len(X), rng)
    np.testing.assert_array_equal(np.unique(rows, axis=0), np.unique(X, axis=0))  # without replacement
    assert set(map(tuple, plusplus(X, 6, rng))) <= set(map(tuple, X))
    a, b = np.random.RandomState(3), np.random.RandomState(3)
    np.testing.assert_array_equal(shifted_plusplus(X, 6, a), plusplus(X, 6, b) + 0.01)


def test_the_released_seeding_draws_rows_in_proportion_to_squared_distance():
    X = np.array([[0.0], [1.0], [2.0]])  # from row 0: D^2 = 0, 1, 4
    picks = [roulette(X, 0, [number])[1, 0] for number in (0.0, 0.19, 0.21, 0.99)]
    assert picks == [1.0, 1.0, 2.0, 2.0]


def test_no_released_method_is_accelerated():
    for released in METHODS.values():
        assert not released.model.climbs
        assert not hasattr(released.model, "pack")


def test_a_row_whose_density_overflows_in_the_released_gmm_counts_for_no_component():
    X = np.array([[0.0, 0.0], [1.0, 0.0], [60.0, 0.0]])  # e^(D/2) overflows for the last, whatever its weight
    params = Components.around(np.array([[0.0, 0.0], [1.0, 1.0]]))._replace(weights=np.array([1e-300, 1.0]))
    stats = METHODS["GMM"].model.e_step(params)(Block(X, None, Frame(np.zeros(2), 1.0)))
    with np.errstate(over="ignore", invalid="ignore"):
        f = params.weights[:, None] * np.exp(cdist(params.centers, X, "sqeuclidean") / 2)
        np.testing.assert_allclose(stats.tau, f / f.sum(axis=0), rtol=1e-12)
    assert np.all(np.isnan(stats.tau[:, 2]))
    assert np.isfinite(stats.objective)
