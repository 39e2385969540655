"""The native engine must return the reference engine's numbers; those are the oracle here."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from support.engine_oracle import in_double, magnitudes, stats_errors

from tkmeans.engines import native, reference
from tkmeans.engines.native import _native
from tkmeans.models import Student
from tkmeans.stats import Block, Frame, Params, Stats

TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
INSTRUCTION_SETS = _native.available_instruction_sets()


@pytest.fixture(autouse=True)
def any_number_of_rows_in_single_precision(monkeypatch):
    """As a large block is computed; blocks of estimators with few rows are computed in double."""
    monkeypatch.setattr(native, "SINGLE_FROM", 0)


def case(p, K, n, dtype="float64", *, dof=3.7, q=1, equal=True, weighted=False, missing=False, offset=0.0, spread=2.0):
    """A block from overlapping clusters, and parameters that are near but not at their centres."""
    rng = np.random.default_rng([p, K, n])
    centers = rng.normal(size=(K, p)) * spread
    X = (centers[rng.integers(K, size=n)] + rng.normal(size=(n, p)) + offset).astype(dtype)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    weight = (rng.random(n) * (rng.random(n) < 0.8)).astype(dtype) if weighted else None
    block = Block(X, weight, Frame(np.full(p, offset, dtype), 4.0))
    log_weights = np.full(K, -np.log(K)) if equal else np.log(rng.dirichlet(np.ones(K)))
    params = Params((centers + 0.3 * rng.normal(size=(K, p))) / 4, 1 / 16, dof, log_weights)
    return block, params, Student().kernel(params)._replace(power=q)


def assert_stats_agree(got, block, params, kernel, tolerance, fields=Stats._fields):
    for field, error in stats_errors(got, block, params, kernel, fields).items():
        assert error <= tolerance, f"{field}: {error:.1e}"


SHAPES = [(p, K, n) for p in (1, 2, 3, 4, 8, 16, 17, 64, 784) for K in (1, 2, 13, 100, 257) for n in (1, 37, 300)]
KINDS = {
    "plain": {},
    "weighted, q=0": {"weighted": True, "equal": False, "q": 0},
    "q=0": {"q": 0, "dof": 1.0},
    "missing": {"missing": True, "weighted": True, "equal": False},
    "missing, q=0": {"missing": True, "q": 0},
    "dof=1e8": {"dof": 1e8, "equal": False},
    "dof=1e8, missing": {"dof": 1e8, "missing": True},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_native_statistics_agree_with_the_reference_engine(dtype, kind):
    for p, K, n in SHAPES:
        block, params, kernel = case(p, K, n, dtype, offset=1e6, **KINDS[kind])
        assert_stats_agree(native.summarize(block, params, kernel), block, params, kernel, TOLERANCE[dtype])


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_the_sum_of_squared_pulls_is_that_of_memberships_trusts_and_distances(instruction_set, dtype, monkeypatch):
    monkeypatch.setattr(native, "_INSTRUCTION_SET", instruction_set)
    for p, K, n in [(1, 13, 300), (3, 7, 61), (17, 13, 300), (64, 30, 300), (200, 5, 130)]:
        for kind in ({}, {"missing": True}, {"equal": False, "dof": 30.0}):
            block, params, kernel = case(p, K, n, dtype, **kind)
            tau, away = reference.memberships(in_double(block), params, kernel), reference.distances(block, params)
            gain = kernel.gain[np.sum(~np.isnan(block.X), axis=1)][:, None]
            wanted = np.sum((tau * gain / (1 + kernel.slope * away.astype(float) ** 2) * away) ** 2, axis=0)
            for log_sums in (True, False):
                wanting, sums = kernel._replace(log_sums=log_sums), np.zeros((5, K))
                stats = native.summarize(block, params, wanting, sums=sums)
                np.testing.assert_allclose(sums[4], wanted, rtol=0, atol=20 * TOLERANCE[dtype] * wanted.max())
                for ours, plain in zip(stats, native.summarize(block, params, wanting), strict=True):
                    np.testing.assert_array_equal(ours, plain)


@pytest.mark.parametrize("instruction_set", INSTRUCTION_SETS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_every_instruction_set_of_this_machine_agrees_with_the_reference_engine(instruction_set, dtype, monkeypatch):
    monkeypatch.setattr(native, "_INSTRUCTION_SET", instruction_set)
    assert native.instruction_set() == instruction_set
    for p, K, n in [(1, 13, 300), (3, 7, 61), (17, 13, 300), (64, 30, 300), (200, 5, 130)]:
        for kind in KINDS.values():
            block, params, kernel = case(p, K, n, dtype, **kind)
            for log_sums in (True, False):
                got = native.summarize(block, params, kernel._replace(log_sums=log_sums))
                fields = Stats._fields if log_sums else [f for f in Stats._fields if f not in ("log_u", "entropy")]
                assert_stats_agree(got, block, params, kernel, 2 * TOLERANCE[dtype], fields)
            assert_rows_agree(block, params, kernel)


@pytest.mark.parametrize("kind", KINDS)
def test_few_rows_in_single_precision_are_summed_in_double(kind, monkeypatch):
    monkeypatch.undo()
    for p, K in [(2, 5), (17, 13), (64, 30)]:
        block, params, kernel = case(p, K, 300, "float32", **KINDS[kind])
        entered = Block(block.frame.enter(block.X).astype(float), None, Frame(np.zeros(p), 1.0))  # rounded as they are
        weight = None if block.weight is None else block.weight.astype(float)
        got = native.summarize(block, params, kernel)
        assert_stats_agree(got, entered._replace(weight=weight), params, kernel, TOLERANCE["float64"])


def test_an_environment_variable_chooses_a_lower_instruction_set():
    script = "from tkmeans.engines import native; print(native.instruction_set())"
    environment = {**os.environ, "TKMEANS_INSTRUCTION_SET": INSTRUCTION_SETS[0]}
    out = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == INSTRUCTION_SETS[0]


def test_an_unknown_instruction_set_is_refused_by_name():
    script = "import tkmeans.engines.native"
    environment = {**os.environ, "TKMEANS_INSTRUCTION_SET": "v9"}
    out = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert "TKMEANS_INSTRUCTION_SET must be one of" in out.stderr
    assert "v9" in out.stderr


def assert_rows_agree(block, params, kernel):
    dtype = block.X.dtype
    # A single row's membership is as sharp as its exponent makes the rounding of its distance.
    sharpness = max(1.0, float(kernel.exponent[-1]) if kernel.exponent[-1] < 1000 else 1.0)
    tolerance = TOLERANCE[str(dtype)] * sharpness
    got, expected = native.rows(block, params, kernel), reference.rows(in_double(block), params, kernel)
    tau = reference.memberships(in_double(block), params, kernel)
    assert got.label.dtype == np.int64
    assert {got.d2.dtype, got.log_density.dtype, got.trust.dtype} == {dtype}
    chosen = np.take_along_axis(tau, got.label[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, tau.max(axis=1), rtol=0, atol=tolerance)
    np.testing.assert_allclose(got.d2, expected.d2, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got.log_density, expected.log_density, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(got.trust, expected.trust, rtol=tolerance, atol=tolerance)
    brief = native.rows(block, params, kernel, brief=True)
    chosen = np.take_along_axis(tau, brief.label[:, None], axis=1)[:, 0]
    np.testing.assert_allclose(chosen, tau.max(axis=1), rtol=0, atol=tolerance)
    np.testing.assert_array_equal(brief.d2, got.d2)
    memberships = native.memberships(block, params, kernel)
    assert memberships.dtype == dtype
    np.testing.assert_allclose(memberships, tau, rtol=0, atol=tolerance)
    distances = native.distances(block, params)
    assert distances.dtype == dtype
    np.testing.assert_allclose(distances, reference.distances(in_double(block), params), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", ["plain", "missing", "dof=1e8"])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_native_rows_memberships_and_distances_agree_with_the_reference_engine(dtype, kind):
    for p, K, n in [
        (1, 1, 1),
        (1, 13, 300),
        (2, 15, 37),
        (8, 3, 129),
        (16, 13, 50),
        (17, 2, 300),
        (64, 20, 77),
        (784, 5, 40),
    ]:
        assert_rows_agree(*case(p, K, n, dtype, **KINDS[kind]))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("dof", [1.0, 2.0, 3.5, 8.0])
def test_native_statistics_by_whole_powers_agree_with_those_by_logarithms(dtype, dof):
    fields = [f for f in Stats._fields if f not in ("log_u", "entropy")]
    for p, K, n in [(1, 3, 40), (2, 15, 300), (3, 13, 130), (16, 32, 130), (17, 10, 300), (64, 20, 130), (784, 10, 70)]:
        for kind in ({}, {"equal": False, "weighted": True}, {"q": 0}, {"missing": True}):
            block, params, kernel = case(p, K, n, dtype, dof=dof, **kind)
            kernel = kernel._replace(log_sums=False)
            got = native.summarize(block, params, kernel)
            assert_stats_agree(got, block, params, kernel, TOLERANCE[dtype], fields)
            assert got.entropy == 0
            assert not got.log_u.any()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("spread", [0.05, 0.5, 2.0, 20.0])
def test_skipping_far_pairs_changes_native_statistics_by_rounding_only(dtype, spread):
    for p, K, n in [(16, 32, 300), (64, 100, 300), (256, 20, 130), (784, 10, 130)]:
        for kind in ({}, {"equal": False, "weighted": True}, {"q": 0}, {"missing": True}):
            for log_sums in (True, False):
                block, params, kernel = case(p, K, n, dtype, spread=spread, **kind)
                kernel = kernel._replace(log_sums=log_sums)
                plain = native.summarize(block, params, kernel, skip_far=False)
                skipping = native.summarize(block, params, kernel)
                scale = magnitudes(in_double(block), params, kernel)
                for field in Stats._fields:
                    error = np.max(np.abs(np.asarray(getattr(plain, field)) - getattr(skipping, field)))
                    bound = {"float64": 1e-14, "float32": 1e-6}[dtype]
                    assert error <= bound * max(1, K / 10) * getattr(scale, field), field


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_far_rows_in_tiles_of_a_few_rows_leave_statistics_as_without_skipping(dtype):
    """With so many clusters a tile has 16 rows; in tiles with a far row nearly all pairs count."""
    block, params, kernel = case(32, 900, 400, dtype, spread=3.0)
    block.X[::23] *= 40
    plain, skipping = (native.summarize(block, params, kernel, skip_far=skip) for skip in (False, True))
    scale = magnitudes(in_double(block), params, kernel)
    for field in Stats._fields:
        error = np.max(np.abs(np.asarray(getattr(plain, field)) - getattr(skipping, field)))
        assert error <= {"float64": 1e-14, "float32": 1e-6}[dtype] * 90 * getattr(scale, field), field


def test_native_statistics_scale_exactly_with_the_unit_of_the_weights():
    for p in (3, 64):
        block, params, kernel = case(p, 20, 300, weighted=True)
        expected = native.summarize(block, params, kernel)
        for unit in (2.0**-200, 2.0**200):
            got = native.summarize(block._replace(weight=block.weight * unit), params, kernel)
            for a, b in zip(got, expected, strict=True):
                np.testing.assert_array_equal(np.asarray(a) / unit, b)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("p", [1, 3, 17, 64])
def test_rows_at_the_end_of_the_range_of_floats_leave_native_statistics_finite(dtype, p):
    block, params, kernel = case(p, 5, 200, dtype)
    X = block.X.copy()
    X[3], X[50], X[51] = np.finfo(dtype).max / 4, 1e30, -1e18
    X[100, 0], X[101, -1] = np.inf, -np.inf
    block = block._replace(X=X)
    for log_sums in (True, False):
        for dof in (1.0, 3.7):
            kernel = Student().kernel(params._replace(dof=dof))._replace(log_sums=log_sums)
            got = native.summarize(block, params, kernel)
            for field in Stats._fields:
                assert np.all(np.isfinite(getattr(got, field))), field
            np.testing.assert_allclose(got.n.sum(), 200, rtol=1e-6)
    said = native.rows(block, params, kernel)
    assert all(np.all(np.isfinite(values)) for values in said)
    assert np.all(said.trust[[3, 50, 51, 100, 101]] < 1e-10)


@pytest.mark.parametrize("p", [2, 40])
def test_native_statistics_agree_with_the_reference_for_a_far_centre_and_a_tiny_scale(p):
    block, params, kernel = case(p, 5, 200)
    centers = params.centers.copy()
    centers[2] = 1e60
    for scale in (1 / 16, 1e-40):
        params = params._replace(centers=centers, scale=scale)
        kernel = Student().kernel(params)
        assert_stats_agree(native.summarize(block, params, kernel), block, params, kernel, 1e-11)


def test_native_outputs_must_be_contiguous_and_of_the_right_type_and_shape():
    block, params, kernel = case(3, 2, 10, "float64")
    prepared = native._prepared(block, params, kernel)
    for fill in (native._native.memberships, native._native.distances):
        with pytest.raises(TypeError):
            fill(native.instruction_set(), *prepared, np.empty((10, 4))[:, ::2])
        with pytest.raises(TypeError):
            fill(native.instruction_set(), *prepared, np.empty((10, 2), np.int64))
        with pytest.raises(ValueError, match="one row per row"):
            fill(native.instruction_set(), *prepared, np.empty((11, 2)))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_native_results_of_rows_on_or_next_to_a_centre_agree_with_the_reference_engine(dtype):
    block, params, kernel = case(64, 6, 200, dtype)
    X = (params.centers[np.arange(200) % 6] * 4).astype(dtype)
    X[::3] += np.asarray(1e-3, dtype)
    block = block._replace(X=X)
    params = params._replace(scale=1e-6)
    kernel = Student().kernel(params)
    np.testing.assert_allclose(
        native.distances(block, params), reference.distances(in_double(block), params), rtol=1e-3, atol=1e-6
    )
    tolerance = {"float64": 1e-10, "float32": 1e-2}[dtype]  # of a distance 1e-4 of the row's own length
    assert_stats_agree(native.summarize(block, params, kernel), block, params, kernel, tolerance)


def test_a_cluster_of_weight_zero_has_no_members_in_native_statistics():
    for p in (2, 64):
        for log_sums in (True, False):
            block, params, kernel = case(p, 4, 100)
            log_weights = np.array([-np.inf, -1e4, np.log(0.5), np.log(0.5)])
            got = native.summarize(block, params._replace(log_weights=log_weights), kernel._replace(log_sums=log_sums))
            assert np.all(got.n[:2] < 1e-200)
            on_centers = Block(params.centers, None, Frame(np.zeros(p), 1.0))
            brief = native.rows(on_centers, params._replace(log_weights=log_weights), kernel, brief=True)
            assert np.all(brief.label >= 2)
            np.testing.assert_allclose(got.n.sum(), 100)
            assert np.isfinite(got.objective)


def test_rows_without_an_observed_feature_have_density_one_and_the_cluster_weights_as_memberships():
    block, params, kernel = case(3, 4, 50, equal=False)
    block = block._replace(X=np.full((50, 3), np.nan))
    got = native.summarize(block, params, kernel)
    np.testing.assert_allclose(got.n, 50 * np.exp(params.log_weights))
    np.testing.assert_allclose(native.rows(block, params, kernel).log_density, 0, atol=1e-12)
    assert got.cells == 0
    assert not got.observed.any()


@pytest.mark.parametrize("p", [2, 17])
def test_a_missing_value_changes_the_native_results_of_its_own_row_only(p):
    block, params, kernel = case(p, 5, 500)
    X = block.X.copy()
    X[250, 0] = np.nan
    holed = native.rows(block._replace(X=X), params, kernel)
    whole = native.rows(block, params, kernel)
    others = np.arange(500) != 250
    np.testing.assert_allclose(holed.log_density[others], whole.log_density[others], rtol=1e-12, atol=1e-12)
    got = native.summarize(block._replace(X=X), params, kernel)
    assert_stats_agree(got, block._replace(X=X), params, kernel, 1e-12)


def test_the_native_engine_accepts_blocks_in_any_memory_order_and_read_only():
    block, params, kernel = case(5, 4, 200)
    expected = native.summarize(block, params, kernel)
    wide = np.zeros((400, 10))
    wide[::2, ::2] = block.X
    frozen = block.X.copy()
    frozen.flags.writeable = False
    for X in (np.asfortranarray(block.X), wide[::2, ::2], frozen):
        got = native.summarize(block._replace(X=X), params, kernel)
        for a, b in zip(got, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_native_results_from_many_threads_at_once_are_equal_to_the_last_bit():
    work = [case(p, 20, 700, dtype) for p in (2, 40) for dtype in TOLERANCE]
    expected = [native.summarize(*arguments) for arguments in work]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(20):
            for got, want in zip(pool.map(lambda a: native.summarize(*a), work * 4), expected * 4, strict=True):
                for a, b in zip(got, want, strict=True):
                    np.testing.assert_array_equal(a, b)


def test_the_native_engine_refuses_powers_of_u_other_than_0_and_1():
    block, params, kernel = case(2, 3, 10, q=2)
    with pytest.raises(ValueError, match="power must be 0 or 1"):
        native.summarize(block, params, kernel)


def test_the_native_engine_refuses_integers():
    block, params, kernel = case(2, 3, 10)
    with pytest.raises(TypeError, match="float32 and float64"):
        native.summarize(block._replace(X=np.zeros((3, 2), int)), params, kernel)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"centers": np.zeros((3, 5))}, "same number of features|one entry more"),
        ({"log_weights": np.zeros(7)}, "one entry per center"),
    ],
)
def test_the_native_engine_refuses_parameters_of_shapes_that_do_not_match(change, words):
    block, params, kernel = case(2, 3, 10)
    with pytest.raises(ValueError, match=words):
        native.summarize(block, params._replace(**change), kernel)


def test_the_native_engine_refuses_room_for_any_number_of_sums_but_four_or_five():
    block, params, kernel = case(2, 3, 10)
    for shape in ((3, 3), (5, 2), (6, 3)):
        with pytest.raises(ValueError, match="4 or 5 sums of each center"):
            native.summarize(block, params, kernel, sums=np.zeros(shape))


def test_the_stub_is_what_nanobind_writes_for_the_module():
    stubgen = pytest.importorskip("nanobind.stubgen")
    if tuple(map(int, version("nanobind").split(".")[:2])) < (3, 1):
        pytest.skip("older versions of nanobind write other stubs")
    generator = stubgen.StubGen(_native)
    generator.put(_native)
    kept = Path(native.__file__).with_name("_native.pyi")
    assert kept.read_text() == generator.get(), (
        f"python -m nanobind.stubgen -m {_native.__name__} -o src/tkmeans/engines/native/_native.pyi"
    )
