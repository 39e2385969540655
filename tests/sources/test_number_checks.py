"""Weights, precisions and tables that people pass are taken or refused as GaussianMixture takes or refuses them."""

import re

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from tkmeans.sources.number_checks import as_numbers, checked_precisions, checked_weights

X = np.random.default_rng(0).normal(size=(40, 2))
WEIGHTS = [[0.5, 0.5], [0.9, 0.1], [1.5, -0.5], [0.5, 0.6], [0.3, 0.3, 0.4]]
EYE, SKEW = np.eye(2), np.array([[1.0, 0.5], [0.0, 1.0]])
PRECISIONS = {
    "full": [np.stack([EYE, EYE]), np.stack([EYE, SKEW]), np.stack([EYE, -EYE]), EYE],
    "tied": [EYE, SKEW, -EYE, np.ones(2)],
    "diag": [np.ones((2, 2)), -np.ones((2, 2)), np.ones(2)],
    "spherical": [np.ones(2), np.zeros(2), np.ones((2, 2))],
}


def refusal(function, *arguments):
    """The first words of the ValueError, or None."""
    try:
        function(*arguments)
    except ValueError as error:
        return re.match(r"The parameter '[\w ]+' should (be \w+|have the shape)|'[\w ]+' should be \w+", str(error))[0]
    return None


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_weights_are_refused_as_a_gaussian_mixture_refuses_them(weights):
    theirs = refusal(GaussianMixture(2, weights_init=np.array(weights), random_state=0).fit, X)
    assert refusal(checked_weights, weights, 2) == theirs


@pytest.mark.parametrize(
    ("kind", "number"), [(kind, i) for kind, cases in PRECISIONS.items() for i in range(len(cases))]
)
def test_precisions_are_refused_as_a_gaussian_mixture_refuses_them(kind, number):
    precisions = PRECISIONS[kind][number]
    mixture = GaussianMixture(2, covariance_type=kind, precisions_init=precisions, random_state=0)
    assert refusal(checked_precisions, precisions, kind, 2, 2) == refusal(mixture.fit, X)


def test_masked_numbers_are_missing_and_lazy_tables_are_computed():
    masked = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(as_numbers(masked, "X"), [[1.0, np.nan], [3.0, 4.0]])
    polars = pytest.importorskip("polars", reason="needs polars")
    frame = polars.DataFrame({"a": [1.0, 2.0]})
    assert as_numbers(frame.lazy(), "X").equals(frame)
    with pytest.raises(TypeError, match="table of numbers"):
        as_numbers("rows.csv", "X")


def test_text_in_a_column_of_arrow_and_under_a_mask_is_refused_by_name():
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")
    numbers, words = pyarrow.table({"a": [1.0]}), pyarrow.table({"a": [1.0], "b": ["one"]})

    class Query:  # of DuckDB
        def to_arrow_table(self):
            return numbers

    assert as_numbers(Query(), "X").equals(numbers)
    with pytest.raises((TypeError, ValueError), match="column 'b'"):
        as_numbers(words, "X")
    with pytest.raises((TypeError, ValueError), match="text"):
        as_numbers(np.ma.MaskedArray(["one", "two"], mask=[True, False]), "X")
    with pytest.raises(ValueError, match="rows of equal length"):
        as_numbers([[1.0], [1.0, 2.0]], "X")
