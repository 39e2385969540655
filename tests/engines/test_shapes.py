"""The engine for clusters with shapes: the reference against scipy, the native one against the reference."""

import inspect
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr, logsumexp
from scipy.stats import multivariate_t
from support.shape_oracle import assert_everything_agrees, assert_sums_agree, shape_case

from tkmeans.engines import native, reference, shapes
from tkmeans.engines.native import _native
from tkmeans.engines.native import shapes as native_shapes
from tkmeans.models.noise import noise_kernel
from tkmeans.stats import Block, Frame

INSTRUCTION_SETS = _native.available_instruction_sets()
FORMS = ["full", "diag"]


def mixture_of_scipy(X, kernel, log_weights, dof):
    """The log-densities, (n, K), of the components with their weights."""
    columns = []
    for center, factor, log_weight, nu in zip(kernel.centers, kernel.factors, log_weights, dof, strict=True):
        inverse = np.linalg.inv(factor) if factor.ndim == 2 else np.diag(1 / factor)
        columns.append(log_weight + multivariate_t(center, inverse @ inverse.T, nu).logpdf(X).reshape(-1))
    return np.stack(columns, axis=1)


# ---- the definition ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [1, 2, 5])
def test_log_densities_and_memberships_without_noise_are_those_of_a_mixture_of_multivariate_t(p, form):
    block, kernel, facts = shape_case(p, 4, 50, form)
    log_f = mixture_of_scipy(block.X, kernel, facts.log_weights, facts.dof)
    for engine in (shapes, native_shapes):
        said = engine.rows(block, kernel)
        np.testing.assert_allclose(said.log_density, logsumexp(log_f, axis=1), rtol=1e-11)
        np.testing.assert_array_equal(said.label, log_f.argmax(axis=1))
        np.testing.assert_array_equal(said.noise, 0)
        tau = np.exp(log_f - logsumexp(log_f, axis=1, keepdims=True))
        np.testing.assert_allclose(engine.memberships(block, kernel), tau, atol=1e-11)
        np.testing.assert_allclose(said.entropy, entr(tau).sum(axis=1), atol=1e-11)


@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_noise_is_flat_in_the_bulk_and_falls_with_the_radius_and_its_logarithm_beyond(form, box):
    p, share = 3, 0.2
    block, kernel, facts = shape_case(p, 2, 200, form, noise=share, far=[1e3, 1e9], box=box)
    noise = kernel.noise
    factor = noise.factor if form == "full" else np.diag(noise.factor)
    r = np.linalg.norm((block.X - noise.center) @ factor.T, ord=np.inf if box else 2, axis=1)
    volume = (8 if box else 4 / 3 * np.pi) / np.linalg.det(factor)
    falling = np.log(0.3 * share / (p * volume)) - p * np.log(r) - 2 * np.log1p(np.log(np.maximum(r, 1)))
    log_q = np.where(r <= 1, np.log(0.7 * share / volume), falling)
    assert r.min() < 1
    assert r.max() > 1e6
    log_f = mixture_of_scipy(block.X, kernel, facts.log_weights, facts.dof)
    log_density = logsumexp(np.column_stack([log_f, log_q]), axis=1)
    for engine in (shapes, native_shapes):
        said = engine.rows(block, kernel)
        np.testing.assert_allclose(said.log_density, log_density, rtol=1e-11)
        np.testing.assert_allclose(said.noise, np.exp(log_q - log_density), rtol=1e-10)
        tau = np.exp(np.column_stack([log_f, log_q]) - log_density[:, None])
        np.testing.assert_allclose(said.entropy, entr(tau).sum(axis=1), atol=1e-10)
        beyond = engine.summarize(block, kernel).beyond
        assert beyond == pytest.approx(np.sum(np.exp(log_q - log_density)[r > 1]), rel=1e-10)


def test_the_density_of_the_noise_integrates_to_one_in_one_dimension():
    kernel = noise_kernel(0.6, 0.4, np.array([0.3]), np.array([[[2.0]]]), np.array([-2 * np.log(2.0)]), 0.0)
    mass = rest = 0.0
    for side in (-1, 1):
        rim = -np.log(2.0)  # where the density jumps: each part is seen from its own side
        for log_r, inward in ((np.linspace(-30, rim, 100_001), -1e-12), (np.linspace(rim, 300, 400_001), 1e-12)):
            x = 0.3 + side * np.exp(log_r + inward)[:, None]
            density = np.exp(shapes.log_noise(x, kernel)[0] + log_r)
            mass += np.trapezoid(density, log_r)
        # Beyond, r f(r) = c (1 + ln(r / radius))^-2 with the c of the last point.
        rest += density[-1] * (1 + log_r[-1] + np.log(2.0))
    assert mass + rest == pytest.approx(1, abs=1e-6)
    assert rest < 0.01


@pytest.mark.parametrize("box", [False, True])
def test_the_density_of_the_noise_integrates_to_one_in_two_dimensions(box):
    factor = np.array([[1.5, 0.0], [0.0 if box else -0.7, 0.6]])
    kernel = noise_kernel(0.6, 0.4, np.array([1.0, -2.0]), factor[None], np.array([-2 * np.log(0.9)]), box)
    log_r, angle = np.linspace(-12, 150, 20_001), np.linspace(0, 2 * np.pi, 401)[:-1]
    around = np.stack([np.cos(angle), np.sin(angle)], axis=1)  # (400, 2)
    rays = []
    for direction in around:
        x = kernel.center + np.exp(log_r)[:, None] * direction
        density = np.exp(shapes.log_noise(x, kernel)[0] + 2 * log_r)
        rest = density[-1] * (1 + log_r[-1] + np.log(np.linalg.norm(factor @ direction, ord=np.inf if box else 2)))
        rays.append(np.trapezoid(density, log_r) + rest)
    assert np.mean(rays) * 2 * np.pi == pytest.approx(1, abs=1e-3)


# ---- the native engine ------------------------------------------------------------------------


def test_the_part_of_an_engine_that_knows_shapes_has_the_same_functions_in_both_engines():
    assert shapes.of(reference) is shapes
    assert shapes.of(native) is native_shapes
    for name in ("summarize", "rows", "memberships", "distances"):
        signatures = [inspect.signature(getattr(engine, name)) for engine in (shapes, native_shapes)]
        assert signatures[0] == signatures[1], name


KINDS = {
    "plain": {},
    "noise": {"noise": 0.1},
    "weighted": {"noise": 0.1, "weighted": True},
    "units": {"noise": 0.1, "units": True, "offset": 100.0},
    "apart": {"spread": 30.0},
    "gaussian": {"dof": 1e8, "noise": 0.05},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 17, 33, 64])
def test_native_numbers_of_shapes_agree_with_the_reference_engine(p, form, kind):
    for K, n in [(1, 37), (2, 1), (2, 300), (7, 129), (40, 100)]:
        block, kernel, _ = shape_case(p, K, n, form, **KINDS[kind])
        assert_everything_agrees(native_shapes, block, kernel)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["plain", "weighted", "units"])
def test_native_numbers_of_shapes_from_single_precision_rows_are_those_of_the_same_rows_in_double(form, kind):
    for p, K in [(1, 3), (3, 7), (17, 5), (64, 2)]:
        block, kernel, _ = shape_case(p, K, 300, form, dtype="float32", **KINDS[kind])
        assert_everything_agrees(native_shapes, block, kernel)
        got = native_shapes.summarize(block, kernel)
        X, weight, frame = block
        block = Block(X.astype(float), None if weight is None else weight.astype(float), frame)
        for a, b in zip(got, native_shapes.summarize(block, kernel), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
def test_every_instruction_set_of_this_machine_has_the_numbers_of_shapes(instruction_set, monkeypatch):
    monkeypatch.setattr(native, "_INSTRUCTION_SET", instruction_set)
    for form in FORMS:
        for p, K, n in [(1, 13, 300), (3, 7, 61), (8, 5, 129), (9, 5, 129), (16, 2, 300), (17, 13, 300), (70, 3, 130)]:
            for kind in ("plain", "weighted", "apart"):
                block, kernel, _ = shape_case(p, K, n, form, **KINDS[kind])
                assert_everything_agrees(native_shapes, block, kernel)


@settings(max_examples=100, deadline=None)
@given(
    p=st.integers(1, 24),
    K=st.integers(1, 12),
    n=st.integers(1, 300),
    form=st.sampled_from(FORMS),
    noise=st.sampled_from([0.0, 1e-6, 0.3]),
    box=st.booleans(),
    weighted=st.booleans(),
    units=st.booleans(),
    dtype=st.sampled_from(["float64", "float32"]),
    spread=st.floats(0.01, 100),
    dof=st.one_of(st.none(), st.floats(0.5, 1e6)),
    seed=st.integers(0, 2**32),
)
def test_native_numbers_of_any_shapes_agree_with_the_reference_engine(p, K, n, form, **choices):
    block, kernel, _ = shape_case(p, K, n, form, **choices)
    assert_everything_agrees(native_shapes, block, kernel)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("p", [1, 3, 17, 64])
@pytest.mark.parametrize("noise", [{}, {"noise": 0.1}, {"noise": 0.1, "box": True}])
def test_rows_as_far_as_the_horizon_and_beyond_leave_native_numbers_finite_and_those_of_the_reference(p, form, noise):
    far = [1e12, -1e30, 1e90, -1e90, 1e200, np.inf]
    block, kernel, _ = shape_case(p, 5, 200, form, **noise, far=far)
    assert_everything_agrees(native_shapes, block, kernel, tolerance=1e-10)
    for values in (*native_shapes.summarize(block, kernel), *native_shapes.rows(block, kernel)):
        assert np.all(np.isfinite(values))


@pytest.mark.parametrize("form", FORMS)
def test_components_so_thin_that_far_rows_overflow_leave_native_numbers_finite(form):
    for p in (2, 17):
        block, kernel, _ = shape_case(p, 3, 100, form, noise=0.1, far=[1e90, -1e90])
        kernel = kernel._replace(factors=kernel.factors * 1e80)
        for values in (*native_shapes.summarize(block, kernel), *native_shapes.rows(block, kernel)):
            assert np.all(np.isfinite(values))
        np.testing.assert_allclose(native_shapes.rows(block, kernel).noise, 1)


def test_native_distances_keep_their_digits_in_thin_clusters_far_from_zero():
    for p in (2, 17):
        block, kernel, _ = shape_case(p, 3, 100, spread=1e-3)
        centers = kernel.centers + 1e3
        X = centers[np.arange(100) % 3] + 1e-6 * block.X
        kernel = kernel._replace(centers=centers, factors=kernel.factors * 1e6)
        block = block._replace(X=X)
        exact = [((X - c).astype(np.longdouble) @ f.T.astype(np.longdouble)) for c, f in zip(*kernel[:2], strict=True)]
        expected = np.stack([np.sqrt((white * white).sum(axis=1)) for white in exact], axis=1)
        np.testing.assert_allclose(native_shapes.distances(block, kernel), expected.astype(float), rtol=1e-12)


def test_equal_components_share_rows_equally_and_the_first_has_the_label():
    for p in (2, 17):
        block, kernel, _ = shape_case(p, 1, 100)
        twice = kernel._replace(**{name: np.repeat(getattr(kernel, name), 2, axis=0) for name in kernel._fields[:6]})
        for engine in (shapes, native_shapes):
            np.testing.assert_array_equal(engine.rows(block, twice).label, 0)
            np.testing.assert_array_equal(engine.memberships(block, twice), 0.5)
            stats = engine.summarize(block, twice)
            np.testing.assert_allclose(stats.n, [50, 50])
            np.testing.assert_array_equal(stats.scatter[0], stats.scatter[1])


def test_a_component_without_weight_has_no_members_in_native_sums():
    for p in (2, 17):
        block, kernel, _ = shape_case(p, 3, 100, far=[1e90])
        kernel = kernel._replace(height=np.array([-np.inf, 0.0, 0.0]))
        got = native_shapes.summarize(block, kernel)
        assert got.n[0] == 0
        assert not got.scatter[0].any()
        assert np.isfinite(got.log_likelihood)
        assert np.isfinite(got.entropy)
        assert np.all(native_shapes.rows(block, kernel).label > 0)


def test_a_label_is_that_of_the_nearest_component_however_surely_a_row_is_noise():
    block, kernel, _ = shape_case(2, 4, 50, noise=0.1, dof=1e6)
    far = block._replace(X=block.X * 1e3)
    assert np.all(native_shapes.memberships(far, kernel) < 1e-300)
    np.testing.assert_array_equal(native_shapes.rows(far, kernel).label, shapes.rows(far, kernel).label)


@pytest.mark.parametrize("form", FORMS)
def test_rows_of_weight_zero_change_no_native_sum(form):
    for p in (3, 20):
        block, kernel, _ = shape_case(p, 4, 256, form, noise=0.1)
        X = np.concatenate([block.X, np.full((50, p), 1e90), block.X[:50] + 1])
        weight = np.repeat([1.0, 0.0], [256, 100])
        got = native_shapes.summarize(Block(X, weight, block.frame), kernel)
        assert_sums_agree(got, block, kernel)
        np.testing.assert_allclose(got.total, 256)


def test_native_sums_of_shapes_scale_exactly_with_the_unit_of_the_weights():
    for p in (3, 20):
        block, kernel, _ = shape_case(p, 4, 300, weighted=True, noise=0.1)
        expected = native_shapes.summarize(block, kernel)
        for unit in (2.0**-200, 2.0**200):
            got = native_shapes.summarize(block._replace(weight=block.weight * unit), kernel)
            for a, b in zip(got[:8], expected[:8], strict=True):
                np.testing.assert_array_equal(np.asarray(a) / unit, b)


def test_no_rows_give_native_sums_of_zero():
    block, kernel, _ = shape_case(3, 2, 1, noise=0.1)
    none = block._replace(X=block.X[:0])
    assert not any(np.any(values) for values in native_shapes.summarize(none, kernel))
    assert native_shapes.memberships(none, kernel).shape == (0, 2)


def test_the_native_engine_for_shapes_accepts_blocks_in_any_memory_order_and_read_only():
    block, kernel, _ = shape_case(5, 4, 200)
    expected = native_shapes.summarize(block, kernel)
    wide = np.zeros((400, 10))
    wide[::2, ::2] = block.X
    frozen = block.X.copy()
    frozen.flags.writeable = False
    for X in (np.asfortranarray(block.X), wide[::2, ::2], frozen):
        for a, b in zip(native_shapes.summarize(block._replace(X=X), kernel), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_native_numbers_of_shapes_from_many_threads_at_once_are_equal_to_the_last_bit():
    work = [shape_case(p, 10, 700, form, noise=0.1)[:2] for p in (2, 20) for form in FORMS]
    expected = [native_shapes.summarize(*arguments) for arguments in work]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(10):
            results = pool.map(lambda arguments: native_shapes.summarize(*arguments), work * 4)
            for got, want in zip(results, expected * 4, strict=True):
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_the_native_engine_for_shapes_refuses_rows_with_missing_values():
    block, kernel, _ = shape_case(3, 2, 300)
    block.X[200, 1] = np.nan
    for function in (native_shapes.summarize, native_shapes.rows, native_shapes.memberships, native_shapes.distances):
        with pytest.raises(ValueError, match="complete"):
            function(block, kernel)


def test_the_native_engine_for_shapes_refuses_integers():
    _, kernel, _ = shape_case(3, 2, 10)
    with pytest.raises(TypeError, match="float32 and float64"):
        native_shapes.summarize(Block(np.zeros((4, 3), int), None, Frame(np.zeros(3), 1.0)), kernel)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"centers": np.zeros((2, 4))}, "factors must be of shape"),
        ({"factors": np.ones((2, 3, 2))}, "factors must be of shape"),
        ({"factors": np.ones((1, 3, 3))}, "factors must be of shape"),
        ({"height": np.zeros(5), "exponent": np.ones(5), "slope": np.ones(5), "gain": np.ones(5)}, "numbers must be"),
        ({"centers": np.zeros((2, 2)), "factors": np.ones((2, 2, 2))}, "same number of features"),
    ],
)
def test_the_native_engine_for_shapes_refuses_kernels_that_do_not_match(change, words):
    block, kernel, _ = shape_case(3, 2, 10)
    with pytest.raises(ValueError, match=words):
        native_shapes.rows(block, kernel._replace(**change))


def test_the_native_engine_for_shapes_refuses_weights_and_frames_that_do_not_match():
    block, kernel, _ = shape_case(3, 2, 10)
    with pytest.raises(ValueError, match="one entry per row"):
        native_shapes.summarize(block._replace(weight=np.ones(9)), kernel)
    with pytest.raises(ValueError, match="frame must be"):
        native_shapes.summarize(block._replace(frame=Frame(np.zeros(4), 1.0)), kernel)
