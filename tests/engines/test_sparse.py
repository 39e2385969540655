"""The native engine for sparse rows returns what the reference engine returns for the same rows with their zeros."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from support.engine_oracle import stats_errors

from tkmeans.engines import reference
from tkmeans.models import Fast, Student
from tkmeans.sparse_rows import SparseRows
from tkmeans.stats import Block, Frame, Params

engine = pytest.importorskip("tkmeans.engines.native.sparse")

SHAPES = {"plane": (50, 2, 3), "one cluster": (40, 7, 1), "many": (120, 60, 37), "wide": (30, 3000, 5)}


@pytest.fixture(params=SHAPES, ids=str)
def case(request):
    """A block with its zeros, the same without, and parameters; a row is zero, and one lies on a centre."""
    n, p, K = SHAPES[request.param]
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.3)
    X[3] = 0
    centers = 0.3 * rng.standard_normal((K, p))
    centers[0] = X[1]
    frame = Frame(0.2 * rng.standard_normal(p), 1.7)
    params = Params(frame.enter(centers), 0.4, 3.0, np.log(rng.dirichlet(np.ones(K))))
    weight = rng.random(n)
    weight[5] = 0
    return Block(X, weight, frame), Block(SparseRows.of(csr_array(X)), weight, frame), params


@pytest.mark.parametrize("model", [Student(), Fast()], ids=["student", "fast"])
def test_the_sums_are_those_of_the_reference_engine(case, model):
    dense, sparse, params = case
    kernel = model.kernel(params)
    errors = stats_errors(engine.summarize(sparse, params, kernel), dense, params, kernel)
    assert max(errors.values()) < 1e-12


def test_without_weights_every_row_counts_once(case):
    dense, sparse, params = case
    kernel = Student().kernel(params)
    errors = stats_errors(
        engine.summarize(sparse._replace(weight=None), params, kernel), dense._replace(weight=None), params, kernel
    )
    assert max(errors.values()) < 1e-12


def test_the_answers_for_each_row_are_those_of_the_reference_engine(case):
    dense, sparse, params = case
    kernel = Student().kernel(params)
    expected, got = reference.rows(dense, params, kernel), engine.rows(sparse, params, kernel)
    np.testing.assert_array_equal(got.label, expected.label)
    for field in ("d2", "log_density", "trust"):
        np.testing.assert_allclose(getattr(got, field), getattr(expected, field), rtol=1e-9, atol=1e-11)
    tau = reference.memberships(dense, params, kernel)
    np.testing.assert_allclose(engine.memberships(sparse, params, kernel), tau, atol=1e-11)
    distances = reference.distances(dense, params)
    np.testing.assert_allclose(engine.distances(sparse, params), distances, rtol=1e-9, atol=1e-11)


def test_a_row_on_a_centre_has_no_distance_from_it():
    X = np.array([[0.0, 1e8, 0.0, 3.0]])
    block = Block(SparseRows.of(csr_array(X)), None, Frame(np.zeros(4), 1.0))
    params = Params(np.vstack([X, X + 1e-3]), 1.0, 1.0, np.log([0.5, 0.5]))
    np.testing.assert_allclose(engine.distances(block, params), [[0.0, 2e-3]], rtol=1e-4)


def test_single_precision_rows_are_summed_in_double_precision(case):
    dense, sparse, params = case
    kernel = Student().kernel(params)
    single = sparse.X.astype(np.float32)
    block = Block(single, dense.weight.astype(np.float32), Frame(dense.frame.origin.astype(np.float32), 1.7))
    in_double = Block(np.asarray(single).astype(float), block.weight, block.frame)
    assert max(stats_errors(engine.summarize(block, params, kernel), in_double, params, kernel).values()) < 1e-12
    assert engine.rows(block, params, kernel).d2.dtype == np.float32


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_as_far_as_numbers_go_are_held_at_the_horizon(dtype):
    far = np.finfo(dtype).max
    X = np.array([[far, 0.0], [-far, far], [1.0, 0.0], [0.0, 0.0]], dtype=dtype)
    block = Block(SparseRows.of(csr_array(X)), None, Frame(np.zeros(2, dtype), 1.0))
    params = Params(np.array([[0.0, 0.0], [1.0, 1.0]]), 1.0, 2.0, np.log([0.5, 0.5]))
    kernel = Student().kernel(params)
    assert all(np.all(np.isfinite(field)) for field in engine.summarize(block, params, kernel))
    assert all(np.all(np.isfinite(field)) for field in engine.rows(block, params, kernel))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"column": [0, 7]}, "columns must ascend"),
        ({"column": [-1, 1]}, "columns must ascend"),
        ({"column": [1, 1]}, "columns must ascend"),
        ({"first": [0, 3]}, "rows must lie within"),
        ({"first": [2, 1]}, "rows must lie one after another"),
        ({"first": [-1, 2]}, "rows must lie within"),
        ({"value": [1.0]}, "as many"),
    ],
)
def test_the_native_engine_refuses_entries_that_are_not_where_they_should_be(change, message):
    good = {"value": [1.0, 2.0], "column": [0, 1], "first": [0, 2]} | change
    types = {"value": float, "column": np.int32, "first": np.int64}
    X = SparseRows(**{name: np.array(values, types[name]) for name, values in good.items()}, n_features=2)
    params = Params(np.zeros((1, 2)), 1.0, 1.0, np.zeros(1))
    with pytest.raises(ValueError, match=message):
        engine.summarize(Block(X, None, Frame(np.zeros(2), 1.0)), params, Student().kernel(params))
