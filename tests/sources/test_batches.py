"""A visit to batches is a visit to the next one."""

import numpy as np
import pytest
from support.model_inputs import source_of, t_mixture

from tkmeans.sources import Batches

X, _, _ = t_mixture(n=100)


def visited(source, times):
    """The rows of so many visits."""

    class Rows(list):
        def merge(self, other):
            return Rows([*self, *other])

    return [np.array(source.reduce(lambda block: Rows(block.X))) for _ in range(times)]


@pytest.mark.parametrize("batch_size", [1, 7, 33, 100, 1000])
def test_a_pass_over_batches_visits_every_row_once_in_the_given_order_and_begins_again(batch_size):
    order = np.random.default_rng(0).permutation(len(X))
    batches = Batches(source_of(X), order, batch_size)
    first, second = (np.concatenate(visited(batches, batches.per_pass)) for _ in range(2))
    np.testing.assert_array_equal(first, X[order])
    np.testing.assert_array_equal(second, X[order])


def test_batches_are_no_larger_than_asked_for_and_of_nearly_equal_size():
    batches = Batches(source_of(X), np.arange(100), 33)
    assert [len(rows) for rows in visited(batches, 4)] == [25, 25, 25, 25]


def test_batches_have_the_weights_of_their_rows():
    weight = np.arange(100.0)
    batches = Batches(source_of(X, weight), np.arange(100)[::-1], 50)

    class Weights(list):
        def merge(self, other):
            return Weights([*self, *other])

    np.testing.assert_array_equal(batches.reduce(lambda block: Weights(block.weight)), weight[:49:-1])
