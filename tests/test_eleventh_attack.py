"""What testers with fresh eyes found in the Python interface, for the eleventh time."""

from random import Random

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from support.answer_checks import outcome_of
from support.hostile_cases import hostile_case

from tkmeans import StudentTMixture, TKMeans, select_clusters
from tkmeans.fitted import tail_of_f


def whole_numbers(spacing, spread, seed, n_clusters=3, p=1):
    y = np.repeat(np.arange(n_clusters), 100)
    rng = np.random.default_rng(seed)
    return np.round(spacing * y[:, None] + spread * rng.normal(size=(len(y), p))), y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_clusters", [3, 7])
@pytest.mark.parametrize("others", ["none", "constant", "binary"])
def test_mixtures_find_groups_in_one_column_of_whole_numbers(seed, n_clusters, others):
    """Equal rows are joined before units are measured: a value is frequent by its rows, not among distinct ones."""
    X, y = whole_numbers(6, 0.3, seed, n_clusters)
    other = {"none": np.empty((len(y), 0)), "constant": np.ones((len(y), 1)), "binary": np.arange(len(y))[:, None] % 2}
    model = StudentTMixture(n_clusters).fit(np.hstack([X, other[others]]))
    assert adjusted_rand_score(y, model.labels_) == 1


def test_the_number_of_groups_in_one_column_of_whole_numbers_is_found():
    for seed in range(3):
        assert select_clusters(whole_numbers(20, 0.3, seed)[0], range(1, 7)).best == 3


@pytest.mark.parametrize(("dtype", "offset"), [("float32", 1e5), ("float32", 1e6), ("float64", 1e14)])
def test_mixtures_of_rows_with_an_offset_are_those_of_the_same_numbers_without_it(dtype, offset):
    y = np.repeat(np.arange(3), 200)
    for seed in range(4):
        X = np.array([[0, 0], [5, 0], [0, 5]])[y] + np.random.default_rng(seed).normal(size=(600, 2))
        stored = (X + offset).astype(dtype)
        model, same = (StudentTMixture(3).fit(rows) for rows in (stored, stored.astype(float) - offset))
        assert adjusted_rand_score(model.labels_, same.labels_) > 0.98
        np.testing.assert_allclose(model.covariances_, same.covariances_, rtol=0.03, atol=0.03)


@pytest.mark.parametrize("estimator", [TKMeans, StudentTMixture])
@pytest.mark.parametrize("p", [1, 2])
def test_whole_numbers_beside_a_frequent_one_are_no_outliers(estimator, p):
    for seed in range(4):
        X, _ = whole_numbers(20, 0.4, seed, 2, p)
        assert not np.any(estimator(2).fit(X).outliers(X))


@pytest.mark.parametrize("p", [4, 6])
def test_rare_ones_in_rows_of_zeros_are_no_outliers(p):
    for seed in range(4):
        X = (np.random.default_rng(seed).random((300, p)) < 0.1).astype(float)
        assert not np.any(StudentTMixture(1).fit(X).outliers(X))


def test_few_clean_rows_hold_hardly_ever_outliers():
    """Where outliers begin and end is taken from the same distances, which has its cost."""
    flagged = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = np.vstack([rng.normal(size=(6, 2)), 15 + rng.normal(size=(6, 2))])
        flagged += bool(np.any(TKMeans(2).fit(X).outliers(X)))
    assert flagged <= 1


@pytest.mark.parametrize("p", [2, 4, 6])
def test_tails_are_probabilities_at_any_distance(p):
    d2 = np.concatenate([[0.0, np.inf], np.geomspace(1e-300, 1e300, 5000)])
    for dof in (0.3, 1.0, 5.0, 200.0):
        tail = tail_of_f(p, dof, d2)
        assert np.all((tail >= 0) & (tail <= 1))
        assert (tail[0], tail[1]) == (1, 0)


def test_a_file_with_nan_that_signal_is_read_without_a_warning(tmp_path):
    rows = np.zeros(40, [("a", "<f4"), ("b", "<f8")])
    rows["a"], rows["b"] = np.arange(40) % 2 * 9 + np.linspace(0, 1, 40), np.linspace(0, 1, 40)
    rows["a"].view("<u4")[3] = 0x7F800001  # a NaN that is no quiet one
    np.save(tmp_path / "rows.npy", rows)
    with np.errstate(invalid="raise"):
        assert adjusted_rand_score(TKMeans(2).fit(tmp_path / "rows.npy").labels_[4:], np.arange(36) % 2) == 1


@pytest.mark.parametrize("number", [43001981, 43005397, 43011441, 41013034])
def test_steps_of_scoring_that_begin_too_far_away_are_not_made(number):
    assert outcome_of(hostile_case(Random(number))) == "result"
