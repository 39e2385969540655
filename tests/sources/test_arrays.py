import threading

import numpy as np
import pytest
from support.model_inputs import source_of, t_mixture

from tkmeans.sources.base import measure, quantile

X, _, _ = t_mixture(n=1000)


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_blocks_of_an_array_come_back_in_the_order_of_the_rows(n_threads):
    with source_of(X, n_threads=n_threads, block_rows=64) as source:
        np.testing.assert_array_equal(np.concatenate(list(source.map(lambda block: block.X))), X)


def test_threads_share_the_blocks_of_an_array():
    seen = set()
    both = threading.Barrier(2, timeout=30)  # breaks unless two threads meet here

    def meet(block):
        both.wait()
        seen.add(threading.get_ident())

    with source_of(X, n_threads=2, block_rows=500) as source:
        list(source.map(meet))
    assert len(seen) == 2


def test_an_error_in_a_block_reaches_the_caller_and_the_threads_end():
    def fail(block):
        raise RuntimeError("a block that cannot be read")

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="cannot be read"), source_of(X, n_threads=3, block_rows=10) as source:
        list(source.map(fail))
    assert threading.active_count() == before


def test_a_sample_as_large_as_the_data_is_the_data_in_the_frame_but_for_its_last_13_bits():
    source = source_of(X)
    sample = source.sample(len(X), np.random.RandomState(0))
    np.testing.assert_allclose(sample.X, (X - source.frame.origin) / source.frame.unit, rtol=2.0**-40)
    mantissas, _ = np.frexp(sample.X)
    np.testing.assert_array_equal(mantissas * 2.0**40 % 1, 0)
    np.testing.assert_array_equal(sample.weight, 1)


def test_a_sample_has_the_weight_of_all_rows_and_draws_them_by_weight():
    weight = np.zeros(len(X))
    weight[::2] = 1.0
    weight[10] = 500.0
    source = source_of(X, weight)
    sample = source.sample(100, np.random.RandomState(0))
    assert sample.weight.sum() == pytest.approx(weight.sum())
    heavy = np.flatnonzero(np.all(np.isclose(source.frame.leave(sample.X), X[10]), axis=1))
    assert sample.weight[heavy] == pytest.approx(500, rel=0.05)
    unweighted = source.frame.enter(X[1::2])
    assert not any(np.any(np.all(row == sample.X, axis=1)) for row in unweighted)


def test_equal_random_states_draw_equal_samples():
    a, b = (source_of(X).sample(50, np.random.RandomState(3)) for _ in range(2))
    np.testing.assert_array_equal(a.X, b.X)


def test_a_frame_hardly_changes_with_outliers():
    clean = measure(X, None)
    dirty = measure(np.vstack([X, np.full((100, 3), 1e6)]), None)
    assert np.all(np.abs(dirty.origin - clean.origin) < clean.unit)
    assert 0.5 < dirty.unit / clean.unit < 2


@pytest.mark.parametrize(
    "rows", [np.zeros((5, 2)), np.ones((1, 3)), np.full((4, 1), 1e300)], ids=["zero", "one", "huge"]
)
def test_equal_rows_have_a_frame_with_a_positive_unit(rows):
    frame = measure(rows, None)
    assert 0 < frame.unit < np.inf
    np.testing.assert_array_equal(frame.enter(rows), 0)


def test_the_frame_of_many_columns_is_near_that_of_all_their_values():
    wide = np.random.default_rng(0).normal(loc=5.0, scale=3.0, size=(4096, 700))
    frame = measure(wide, None)
    error = 1.2533 * 3.0 / np.sqrt(500)  # the standard error of a median of 500 normal values
    assert np.max(np.abs(frame.origin - np.median(wide, axis=0))) < 5 * error
    assert frame.unit == pytest.approx(3.0, rel=0.02)


def test_a_column_without_a_value_in_any_row_that_is_measured_has_its_origin_at_zero():
    X = np.random.default_rng(0).normal(size=(100, 2))
    X[:, 1] = np.nan
    frame = measure(X, None)
    assert frame.origin[1] == 0
    assert frame.origin[0] == np.sort(X[:, 0])[49]


def test_rows_of_weight_zero_do_not_count_in_a_frame():
    weight = np.ones(len(X) + 50)
    weight[len(X) :] = 0
    with_zeros = measure(np.vstack([X, np.full((50, 3), 1e9)]), weight)
    np.testing.assert_array_equal(with_zeros.origin, measure(X, np.ones(len(X))).origin)
    assert with_zeros.unit == measure(X, np.ones(len(X))).unit


@pytest.mark.parametrize("weight", ["equal", "whole", "any"])
@pytest.mark.parametrize("n", [1, 2, 7, 1000])
def test_quantiles_of_columns_are_those_of_numpy_for_weighted_rows(n, weight):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)).round(1)
    weights = {"equal": np.full(n, 0.7), "whole": rng.integers(1, 4, n) * 1.0, "any": rng.random(n) + 0.01}[weight]
    shares = (0.1, 0.25, 0.5, 0.9)
    expected = [np.quantile(X, share, axis=0, weights=weights, method="inverted_cdf") for share in shares]
    np.testing.assert_array_equal(quantile(X, weights, *shares), expected)
    np.testing.assert_array_equal(quantile(X[:, 1], weights), expected[2][1])
    holed = np.vstack([X, np.full((2, 3), np.nan)])
    np.testing.assert_array_equal(quantile(holed, np.append(weights, [1.0, 2.0]), *shares), expected)
