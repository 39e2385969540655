"""What a fifth attack found in Python, each with a test that fails if it comes back. docs/development lists them."""

import numpy as np
import pytest

from tkmeans import TKMeans

GROUPS = np.repeat(range(3), 100)


def three_groups(*bad):
    """Rows of three groups; some cells, (rows, column, value), are wrong."""
    X = np.random.default_rng(0).normal(size=(300, 4)) + 6.0 * GROUPS[:, None]
    for rows, column, value in bad:
        X[rows, column] = value
    return X


SPOILED = three_groups((slice(10, 15), 2, 9999.0), (slice(200, 205), 0, -500.0))

# ---- infinite values --------------------------------------------------------------------------

QUESTIONS = ["predict", "score_samples", "transform", "outliers", "score", "bic"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_infinite_values_of_new_rows_in_a_file_are_refused_as_those_of_arrays_are(question, tmp_path):
    model, X = TKMeans(3).fit(three_groups()), three_groups((5, 1, np.inf))
    with pytest.raises(ValueError, match="infinity"):
        getattr(model, question)(X)
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(ValueError, match="X has infinite values in feature 1; clip them or mark them as NaN"):
        getattr(model, question)(tmp_path / "rows.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_infinite_values_of_new_rows_in_a_dask_collection_are_refused_with_the_partition(question):
    da = pytest.importorskip("dask.array")
    model, X = TKMeans(3).fit(three_groups()), da.from_array(three_groups((150, 1, -np.inf)), chunks=(100, 4))
    with pytest.raises(RuntimeError, match=r"partition 1 of X .* infinite values in feature 1"):
        np.asarray(getattr(model, question)(X))
