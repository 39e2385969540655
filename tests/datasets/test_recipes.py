"""Generated sets have the sizes and the difficulty of those they imitate."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.metrics import adjusted_rand_score
from support.paper_data import benchmark_set

from tkmeans.datasets import SYNTHETIC, contaminate, make_like


def separability(X, y):
    """ARI of the rows' nearest true mean: what the best centres could reach."""
    means = np.array([X[y == k].mean(axis=0) for k in np.unique(y)])
    return adjusted_rand_score(y, cdist(X, means).argmin(axis=1))


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_generated_set_is_as_large_and_about_as_hard_as_the_set_it_imitates(name):
    X, y = benchmark_set(name)
    made = [make_like(name, random_state=seed) for seed in range(5)]
    assert all(rows.shape == X.shape for rows, _ in made)
    for _, labels in made:  # the sizes of the A and S sets vary by a few rows
        np.testing.assert_allclose(sorted(np.bincount(labels)), sorted(np.bincount(y)[1:]), rtol=0.15)
    assert np.mean([separability(*pair) for pair in made]) == pytest.approx(separability(X, y), abs=0.04)


def test_generators_make_equal_data_from_equal_seeds_and_other_data_from_others():
    for name in SYNTHETIC:
        one, again, other = (make_like(name, random_state=seed)[0] for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, again)
        assert not np.array_equal(one, other)


@pytest.mark.parametrize("kind", ["uniform", "far", "cauchy", "clumped"])
def test_contaminate_keeps_the_rows_and_appends_outliers_of_the_given_kind(kind):
    X, y = make_like("S1", random_state=0)
    Z, labels = contaminate(X, y, kind, fraction=0.1, random_state=0)
    np.testing.assert_array_equal(Z[:5000], X)
    np.testing.assert_array_equal(labels[:5000], y)
    assert np.all(labels[5000:] == -1)
    assert len(Z) == 5500
    out, low, high = Z[5000:], X.min(axis=0), X.max(axis=0)
    inside = np.mean(np.all((out >= low) & (out <= high), axis=1))
    if kind == "uniform":
        assert inside == 1.0
    elif kind == "far":
        assert inside < 0.05
        assert np.all(np.abs(out - (low + high) / 2) <= 5 * (high - low))
    elif kind == "cauchy":
        width = np.abs(out - np.median(out, axis=0)).max() / (high - low).max()
        assert width > 20  # no moments, no bounds
    else:
        assert inside == 0.0
        assert len(np.unique(np.round(out / 0.5), axis=0)) < 25  # heaps, not a cloud


def test_generators_refuse_invalid_parameters_and_name_the_valid_ones():
    with pytest.raises(ValueError, match=r"name must be one of A1, .*dim064, got 'S5'"):
        make_like("S5")
    X, y = make_like("A1", random_state=0)
    with pytest.raises(ValueError, match="kind must be one of uniform, far, cauchy, clumped, got 'wild'"):
        contaminate(X, y, "wild")
    with pytest.raises(ValueError, match="fraction must be at least 0"):
        contaminate(X, y, fraction=-0.1)
