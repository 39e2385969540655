import numpy as np
import pytest
from scipy.stats import multivariate_t
from sklearn.exceptions import ConvergenceWarning
from support.paper_data import benchmark_set

from tkmeans import TKMeans, select_n_clusters
from tkmeans.datasets import make_contaminated
from tkmeans.selection import Selection, _criteria

X, _ = make_contaminated(n_samples=400, n_clusters=4, random_state=1)
AROUND_FOUR = range(2, 7)


@pytest.mark.parametrize("noise", ["clean", "5 % far"])
@pytest.mark.parametrize(("name", "true"), [("A1", 20), ("S2", 15), ("S4", 15), ("dim032", 16), ("dim064", 16)])
def test_select_n_clusters_finds_the_true_number_on_the_papers_sets(name, true, noise):
    # All nine sets, beside other ways to choose, are in benchmarks/selection.py.
    rows, _ = benchmark_set(name)
    if noise != "clean":
        far = np.random.default_rng(0).uniform(-10, 10, (len(rows) // 20, rows.shape[1]))
        rows = np.vstack([rows, far])
    assert select_n_clusters(rows, range(true - 4, true + 5), random_state=0).best == true


@pytest.mark.parametrize("criterion", ["icl", "bic", "stability"])
def test_every_criterion_selects_the_number_of_separated_clusters(criterion):
    found = select_n_clusters(X, AROUND_FOUR, criterion=criterion, random_state=0)
    assert found.best == 4
    assert found.runner_up in {2, 3, 5, 6}
    assert found.criterion == criterion
    assert (found.stability is not None) == (criterion == "stability")


def test_select_n_clusters_can_select_one_cluster():
    rows = np.random.default_rng(0).standard_normal((300, 3))
    assert select_n_clusters(rows, range(1, 5), random_state=0).best == 1


def test_a_selection_depends_neither_on_n_jobs_nor_on_the_order_of_the_numbers():
    one, two = (select_n_clusters(X, k, random_state=0, n_jobs=j) for k, j in (([2, 4, 3], 1), ([4, 3, 2], 2)))
    np.testing.assert_array_equal(one.table, two.table)


def test_a_row_of_weight_two_in_a_selection_is_that_row_twice():
    weight = np.arange(len(X)) % 2 + 1.0
    weighted = select_n_clusters(X, [3, 4], sample_weight=weight, random_state=0)
    repeated = select_n_clusters(np.repeat(X, weight.astype(int), axis=0), [3, 4], random_state=0)
    np.testing.assert_allclose(weighted.icl, repeated.icl, rtol=1e-6)
    np.testing.assert_allclose(weighted.bic, repeated.bic, rtol=1e-6)
    np.testing.assert_allclose(weighted.outlier_fraction, repeated.outlier_fraction, atol=1e-12)


def test_missing_values_do_not_change_the_selected_number_of_clusters():
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    holes = holes[~np.all(np.isnan(holes), axis=1)]
    assert select_n_clusters(holes, AROUND_FOUR, random_state=0).best == 4


def test_the_criteria_of_a_selection_are_those_of_centres_computed_without_each_row():
    # The longer way round: for every row the weighted means of the others, and scipy's density.
    rows = X[:60]
    model = TKMeans(3, dof=4.0, cluster_weights="equal", random_state=0, tol=1e-12, max_iter=2000).fit(rows)
    d2 = np.sum((rows[:, None] - model.cluster_centers_) ** 2, axis=2)
    pull = model.predict_proba(rows) * (4 + 2) / (4 + d2 / model.scale_)
    log_likelihood = fuzziness = 0.0
    for i, row in enumerate(rows):
        others = np.delete(np.arange(len(rows)), i)
        centers = pull[others].T @ rows[others] / pull[others].sum(axis=0)[:, None]
        shape = model.scale_ * np.eye(2)
        joint = np.array([multivariate_t(c, shape, df=4).pdf(row) / 3 for c in centers])
        tau = joint / joint.sum()
        log_likelihood += np.log(joint.sum())
        fuzziness -= min(pull[i].sum(), 1) * np.sum(tau * np.log(np.maximum(tau, 1e-300)))
    icl, bic = _criteria(model, rows, np.ones(60))
    expected = -2 * log_likelihood + (3 * 2 + 1) * np.log(60)
    np.testing.assert_allclose(bic, expected, rtol=1e-5)
    np.testing.assert_allclose(icl, expected + 2 * fuzziness, rtol=1e-5)


def test_a_centre_on_a_single_outlier_does_not_improve_the_criteria_of_a_selection():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.standard_normal((200, 50)), 30 + rng.standard_normal((1, 50))])
    without = TKMeans(1).fit(rows)
    with pytest.warns(ConvergenceWarning, match="hardly any"):
        with_it = TKMeans(2, init=rows[[0, -1]]).fit(rows)
    ones = np.ones(len(rows))
    assert with_it.bic(rows) < without.bic(rows)  # the ordinary criterion falls for it
    assert min(_criteria(with_it, rows, ones)) > max(_criteria(without, rows, ones))


def test_a_far_clump_of_rows_is_flagged_as_outliers_until_it_gets_a_cluster():
    rng = np.random.default_rng(0)
    clump = 25 + 0.05 * rng.standard_normal((12, 2))
    found = select_n_clusters(np.vstack([X[:380], clump]), [4, 5, 6], random_state=0)
    assert found.best == 5
    assert found.outlier_fraction[0] - found.outlier_fraction[1] >= 12 / 392 - 1e-9


def test_the_largest_number_of_stable_clusters_is_selected_by_stability():
    numbers, worst = np.array([1, 2, 3, 4, 5]), np.array([1.0, 0.95, 0.85, 0.5, 0.6])
    nothing = np.zeros(5)
    found = Selection(numbers, nothing, nothing, nothing, worst, "stability")
    assert found.ranking.tolist() == [3, 2, 1, 5, 4]


def test_a_selection_has_a_table_and_prints_it_with_the_choice_marked():
    found = select_n_clusters(X, [3, 4], random_state=0)
    assert found.table.dtype.names == ("n_clusters", "icl", "bic", "outlier_fraction")
    assert [line.split("<-")[-1].strip() for line in repr(found).splitlines()[2:]] == ["runner-up", "best"]
    assert "4 clusters by icl" in repr(found)
    assert select_n_clusters(X, [4], random_state=0).runner_up is None


def test_the_plot_of_a_selection_shows_every_number_that_was_tried():
    pytest.importorskip("matplotlib").use("Agg")
    plots = pytest.importorskip("tkmeans.plots")
    found = select_n_clusters(X, [3, 4, 5], random_state=0)
    display = found.plot()
    assert isinstance(display, plots.SelectionDisplay)
    np.testing.assert_array_equal(display.n_clusters, [3, 4, 5])
    assert display.best == 4


def test_a_selection_among_many_rows_uses_a_sample_and_finds_the_same_number(monkeypatch):
    monkeypatch.setattr("tkmeans.selection.MAX_ROWS", 200)
    monkeypatch.setattr("tkmeans.selection.MAX_ROWS_PER_CLUSTER", 30)
    told = []
    select_n_clusters(X, [3, 4], random_state=0, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
    assert select_n_clusters(X, AROUND_FOUR, random_state=0).best == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_clusters": []}, "n_clusters must name at least one"),
        ({"n_clusters": [0, 1]}, "n_clusters must be"),
        ({"n_clusters": [2.5]}, "n_clusters must be"),
        ({"n_clusters": [1000]}, "at most the 420 rows of X, got 1000"),
        ({"criterion": "silhouette"}, "criterion must be"),
        ({"n_resamples": 0}, "n_resamples must be"),
    ],
)
def test_select_n_clusters_refuses_invalid_arguments(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        select_n_clusters(X, **arguments)


def test_select_n_clusters_takes_masked_values_as_missing_and_refuses_text():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    masked = np.ma.masked_array(np.where(np.arange(60)[:, None] % 7 == 0, 1e9, rows), mask=False)
    masked[::7, 0] = np.ma.masked
    masked[::7, 1] = rows[::7, 1]
    found = select_n_clusters(masked, range(1, 3), random_state=0)
    np.testing.assert_array_equal(found.icl, select_n_clusters(masked.filled(np.nan), range(1, 3), random_state=0).icl)
    with pytest.raises(TypeError, match="X holds text"):
        select_n_clusters(rows.astype(str))
