"""Shapes of components against the long way round, and bounded sizes against a numerical optimiser."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import expm, logm, sqrtm
from scipy.optimize import minimize_scalar
from support.mixture_oracle import matrix, random_shapes

from tkmeans.models.covariances import SHAPES, cholesky, sizes_within
from tkmeans.models.noise import NOISE_BOUNDS, noise_shares

KINDS = tuple(SHAPES)


# ---- sizes within a ratio ---------------------------------------------------------------------

numbers = st.floats(1e-3, 1e3)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(numbers, st.floats(0.01, 100)), min_size=2, max_size=6), st.floats(1, 50))
def test_sizes_within_a_ratio_cost_no_more_than_the_best_on_a_fine_grid_of_bounds(pairs, ratio):
    sizes, mass = np.array(pairs).T
    found = sizes_within(sizes, mass, ratio)
    assert found.max() <= ratio * found.min() * (1 + 1e-12)

    def loss(t):
        return float(np.sum(mass * (np.log(t) + sizes / t)))

    def held(log_bound):  # whatever the least size is, every other is best as near to its own as it may be
        return loss(np.clip(sizes, np.exp(log_bound), ratio * np.exp(log_bound)))

    grid = np.linspace(np.log(sizes.min() / ratio), np.log(sizes.max()), 400)
    best = grid[np.argmin([held(bound) for bound in grid])]
    width = grid[1] - grid[0]
    finest = minimize_scalar(held, bounds=(best - width, best + width), method="bounded", options={"xatol": 1e-12})
    assert loss(found) <= min(finest.fun, held(best)) + 1e-9 * (1 + abs(finest.fun))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(numbers, st.floats(0.01, 100)), min_size=2, max_size=4), st.floats(1.01, 50), st.integers(0))
def test_no_other_sizes_within_the_ratio_cost_less(pairs, ratio, seed):
    sizes, mass = np.array(pairs).T
    found, rng = sizes_within(sizes, mass, ratio), np.random.default_rng(seed)
    for _ in range(50):
        other = found * np.exp(rng.normal(size=len(sizes)) * 10 ** rng.uniform(-5, 0))
        other = np.clip(other, other.max() / ratio, None)
        loss = np.sum(mass * (np.log(found) + sizes / found))
        assert loss <= np.sum(mass * (np.log(other) + sizes / other)) + 1e-9 * (1 + abs(loss))


def test_sizes_that_are_within_the_ratio_stay_as_they_are():
    sizes = np.array([1.0, 2.0, 2.9])
    assert sizes_within(sizes, np.ones(3), 3.0) is sizes
    np.testing.assert_array_equal(sizes_within(sizes, np.ones(3), np.inf), sizes)


def test_sizes_scale_with_their_unit_and_not_with_that_of_the_masses():
    sizes, mass = np.array([1.0, 20.0, 300.0]), np.array([5.0, 1.0, 2.0])
    found = sizes_within(sizes, mass, 4.0)
    np.testing.assert_allclose(sizes_within(1e-6 * sizes, 1e3 * mass, 4.0), 1e-6 * found, rtol=1e-12)


def test_a_ratio_of_one_makes_all_sizes_their_mean_by_mass():
    sizes, mass = np.array([1.0, 20.0, 300.0]), np.array([5.0, 1.0, 2.0])
    np.testing.assert_allclose(sizes_within(sizes, mass, 1.0), np.average(sizes, weights=mass))


# ---- shares of the noise ----------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(st.floats(0, 100), st.floats(0, 100), st.floats(0.01, 100))
def test_shares_of_the_noise_are_the_most_likely_ones_within_their_bounds(inside, beyond, rest):
    noise, outer = noise_shares(inside, beyond, rest)
    low, high = NOISE_BOUNDS
    assert low <= noise <= high
    assert low <= outer <= high

    def gain(a, b):
        return inside * np.log(a) + beyond * np.log(b) + rest * np.log1p(-a - b)

    grid = np.concatenate([np.geomspace(low, high, 300), np.linspace(low, high, 300)])
    best = np.max(gain(grid[:, None], grid))
    assert gain(noise, outer) >= best - 1e-9 * (1 + abs(best))


# ---- shapes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", [1, 2, 5])
def test_whitening_factors_make_a_shape_the_identity(kind, p):
    shapes = random_shapes(kind, 3, p, np.random.default_rng(p))
    factors, log_det = SHAPES[kind].whitening(shapes, p)
    for shape, factor, logarithm in zip(shapes, factors, log_det, strict=True):
        root = factor if factor.ndim == 2 else np.diag(factor)
        full = matrix(shape, p)
        np.testing.assert_allclose(root @ full @ root.T, np.eye(p), atol=1e-9)
        np.testing.assert_array_equal(np.triu(root, 1), 0)
        assert logarithm == pytest.approx(np.linalg.slogdet(full)[1])
    np.testing.assert_allclose(np.exp(SHAPES[kind].log_sizes(shapes)) ** p, np.exp(log_det), rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_squares_are_traces_of_the_inverse_shape_times_a_scatter(kind):
    rng = np.random.default_rng(0)
    shapes, scatter = random_shapes(kind, 3, 4, rng), random_shapes(kind, 1, 4, rng)[0]
    factors, _ = SHAPES[kind].whitening(shapes, 4)
    traces = [np.trace(np.linalg.solve(matrix(shape, 4), matrix(scatter, 4))) for shape in shapes]
    np.testing.assert_allclose(SHAPES[kind].squares(factors, scatter), traces, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_scatter_around_new_centres_is_that_of_the_differences_from_these(kind):
    rng = np.random.default_rng(1)
    X, weight, step = rng.normal(size=(20, 3)), rng.uniform(0, 1, 20), None
    old = rng.normal(size=3)
    step = weight @ (X - old) / weight.sum()
    own = {
        "full": lambda S: S,
        "tied": lambda S: S,
        "diag": np.diag,
        "spherical": lambda S: np.diag(S).mean(keepdims=True),
    }
    engine = (lambda S: S) if kind in ("full", "tied") else np.diag
    around_old = engine((weight * (X - old).T) @ (X - old))
    around_new = own[kind]((weight * (X - old - step).T) @ (X - old - step))
    found = SHAPES[kind].around(around_old[None], weight.sum(keepdims=True), step[None])[0]
    np.testing.assert_allclose(found, around_new, rtol=1e-10)


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_a_variance_of_equal_rows_is_positive_whatever_rounding_does(kind):
    for x in np.random.default_rng(2).normal(size=200):
        away = np.full((7, 1), x)
        weight = np.full(7, 0.1)
        scatter, w = (weight @ away**2)[None], np.array([weight.sum()])
        found = SHAPES[kind].around(scatter, w, (weight @ away)[None] / w)
        assert 0 < found[0, 0] < 1e-14


@pytest.mark.parametrize("kind", KINDS)
def test_the_exponential_of_the_logarithm_of_a_shape_is_the_shape(kind):
    shapes = random_shapes(kind, 3, 4, np.random.default_rng(2)) * 1e-5
    shape = SHAPES[kind]
    np.testing.assert_allclose(shape.exponential(shape.logarithm(shapes), shapes), shapes, rtol=1e-10, atol=1e-18)


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_become_the_shape_that_is_most_likely_under_them(kind):
    rng, p, mass = np.random.default_rng(3), 3, np.array([1.0, 3.0])
    full = random_shapes("full", 2, p, rng)
    found = SHAPES[kind].of_matrices(full, mass)

    def loss(shapes):
        """Twice minus the log-likelihood of rows with these covariances."""
        pairs = zip(mass, shapes, full, strict=True)
        return sum(
            m * (np.linalg.slogdet(matrix(S, p))[1] + np.trace(np.linalg.solve(matrix(S, p), A))) for m, S, A in pairs
        )

    for _ in range(200):
        change = np.exp(10 ** rng.uniform(-4, 0) * rng.normal(size=(1 if kind == "tied" else 2, *found.shape[1:])))
        if kind in ("full", "tied"):
            change = np.sqrt(np.diagonal(change, axis1=1, axis2=2))
            other = found * (change[:, :, None] * change[:, None, :])
        else:
            other = found * change
        assert loss(found) <= loss(other) + 1e-10


def test_numbers_of_parameters_are_those_of_symmetric_matrices_variances_or_one_variance():
    assert [SHAPES[kind].n_parameters(5, 3) for kind in ("full", "tied", "diag", "spherical")] == [30, 6, 15, 5]


def test_a_covariance_that_is_singular_up_to_rounding_still_measures_distances_along_its_other_axes():
    along, across = np.array([3.0, 4.0]) / 5, np.array([4.0, -3.0]) / 5
    flat = 2.0 * np.outer(along, along) - 1e-17 * np.outer(across, across)
    factors, log_det = SHAPES["full"].whitening(flat[None], 2)
    assert np.isfinite(log_det[0])
    np.testing.assert_allclose(np.sum((factors[0] @ along) ** 2), 1 / 2.0, rtol=1e-10)
    assert np.sum((factors[0] @ across) ** 2) > 1e14


def test_the_factor_of_a_nearly_singular_covariance_does_not_depend_on_the_units_of_the_features():
    A = np.array([[1.0, 2, 3], [2, 4, 6], [3, 6, 9 + 1e-30]])
    units = np.array([1e-6, 1.0, 1e6])
    plain, scaled = cholesky(A[None])[0], cholesky((A * np.outer(units, units))[None])[0]
    np.testing.assert_allclose(scaled / units[:, None], plain, atol=1e-6)
    np.testing.assert_allclose(plain @ plain.T, A, atol=1e-12)


# ---- pooled shapes ------------------------------------------------------------------------------------


def pooled_the_long_way(covariances, weights, caution):
    mean = np.tensordot(weights, covariances, 1)
    root = sqrtm(mean)
    inverse = np.linalg.inv(root)
    return (
        root
        @ expm((1 - caution) * sum(w * logm(inverse @ C @ inverse) for w, C in zip(weights, covariances, strict=True)))
        @ root
    )


@pytest.mark.parametrize("caution", [0.0, 0.3, 1.0])
def test_pooled_shapes_are_on_the_way_from_the_arithmetic_to_the_geometric_mean(caution):
    rng = np.random.default_rng(0)
    weights = np.array([0.5, 0.3, 0.2])
    matrices = random_shapes("full", 3, 4, rng)
    wanted = pooled_the_long_way(matrices, weights, caution)
    np.testing.assert_allclose(SHAPES["full"].pooled(matrices, weights, caution), wanted, rtol=1e-9, atol=1e-12)
    variances = rng.uniform(0.1, 5.0, (3, 4))
    diagonal = pooled_the_long_way(np.array([np.diag(v) for v in variances]), weights, caution)
    np.testing.assert_allclose(SHAPES["diag"].pooled(variances, weights, caution), np.diagonal(diagonal), rtol=1e-9)


def test_pooled_shapes_follow_a_linear_map_of_the_rows():
    rng = np.random.default_rng(1)
    weights, way = np.array([0.6, 0.4]), rng.normal(size=(3, 3))
    matrices = random_shapes("full", 2, 3, rng)
    before = SHAPES["full"].pooled(matrices, weights, 0.2)
    after = SHAPES["full"].pooled(way @ matrices @ way.T, weights, 0.2)
    np.testing.assert_allclose(after, way @ before @ way.T, rtol=1e-9, atol=1e-12)


def test_thin_shapes_in_several_directions_have_a_thinner_pooled_shape_where_rows_are_many():
    lines = np.array([[[100.0, 0.0], [0.0, 0.01]], [[0.01, 0.0], [0.0, 100.0]]])
    np.testing.assert_allclose(SHAPES["full"].pooled(lines, np.array([0.5, 0.5]), 0.0), np.eye(2), atol=1e-9)
