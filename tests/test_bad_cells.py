"""A few bad values do not cost their rows, and no small cluster falls victim to that."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from support.model_inputs import t_mixture, three_groups

import tkmeans
from tkmeans import StudentTMixture, TKMeans
from tkmeans.fitting.incomplete_rows import without_bad_cells
from tkmeans.sources import Sample
from tkmeans.sources.base import limits

ESTIMATORS = [TKMeans, StudentTMixture]


def blobs(rng, n_features, n_rows=900, n_clusters=3):
    centers = 8 * np.eye(n_clusters, n_features)
    labels = np.arange(n_rows) % n_clusters
    return centers[labels] + rng.normal(size=(n_rows, n_features)), labels


def damaged(rng, X, share):
    """A share of all cells is far off, to either side."""
    bad = rng.random(X.shape) < share
    return np.where(bad, X + rng.choice([-1, 1], X.shape) * rng.uniform(100, 1000, X.shape), X), bad


def sample_of(X):
    return Sample(X, np.ones(len(X)))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("n_features", [4, 12])
def test_rows_keep_their_cluster_when_some_of_their_cells_are_bad(estimator, n_features):
    rng = np.random.default_rng(n_features)
    X, y = blobs(rng, n_features)
    Z, bad = damaged(rng, X, 0.03)
    model = estimator(3).fit(Z)
    few = np.sum(bad, axis=1) <= n_features // 4
    assert adjusted_rand_score(y[few], model.labels_[few]) > 0.99
    np.testing.assert_array_equal(model.find_bad_cells(Z)[few], bad[few])
    np.testing.assert_array_equal(model.labels_, model.predict(Z))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_bad_cells_are_missing_values_to_the_fit(estimator):
    """The same clusters as of the rows with NaN in these cells, from the same start."""
    rng = np.random.default_rng(1)
    X, _ = blobs(rng, 4)
    Z, bad = damaged(rng, X, 0.02)
    model = estimator(3).fit(Z)
    few = np.sum(bad, axis=1) <= 1
    holes = np.where(bad & few[:, None], np.nan, Z)
    start = {"init": model.cluster_centers_} if estimator is TKMeans else {"means_init": model.means_}
    weights = {"cluster_weights": "estimate"} if estimator is TKMeans and np.ptp(model.cluster_weights_) > 1e-9 else {}
    again = estimator(3, **start, **weights, tol=1e-9).fit(holes)
    closer = again.cluster_centers_[
        np.argmin(np.abs(again.cluster_centers_[:, None] - model.cluster_centers_).sum(2), 0)
    ]
    np.testing.assert_allclose(closer, model.cluster_centers_, atol=5e-3)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_row_with_a_bad_cell_keeps_its_cluster_and_is_flagged_as_a_whole(estimator):
    rng = np.random.default_rng(2)
    X, y = blobs(rng, 4)
    X[0, 1] = 1e4
    X[1, :2] = 1e4
    X[2] = 1e4
    X[3:5, 0] = -1e4
    model = estimator(3).fit(X)
    np.testing.assert_array_equal(model.find_bad_cells(X)[:3].sum(axis=1), [1, 0, 0])
    assert model.labels_[0] == np.bincount(model.labels_[y == 0]).argmax()
    assert model.predict_proba(X)[0].max() > 0.99
    assert np.all(model.outliers(X)[:3])
    assert np.all(model.outlier_pvalues_[:3] < 1e-3)


def test_the_rule_can_be_switched_off():
    rng = np.random.default_rng(3)
    Z, _ = damaged(rng, blobs(rng, 4)[0], 0.02)
    model = TKMeans(3, bad_cells=False).fit(Z)
    assert not hasattr(model, "cell_bounds_")
    assert not np.any(model.find_bad_cells(Z))


def test_clean_rows_have_no_bounds():
    for X in (blobs(np.random.default_rng(4), 4)[0], load_iris().data):
        assert not hasattr(TKMeans(3).fit(X), "cell_bounds_")


def test_the_end_of_a_long_tail_is_not_bad():
    """Half as far out there are more values, at any distance; in a heap of wrong values there are fewer."""
    X = np.random.default_rng(5).lognormal(sigma=1.5, size=(4000, 3))
    assert np.max(X) > 9 * np.quantile(X, 0.9)
    assert np.all(np.isinf(limits(sample_of(X))))
    X[:40, 1] = 1e4
    assert np.argwhere(np.isfinite(limits(sample_of(X)))).tolist() == [[1, 1]]


@pytest.mark.parametrize("n_bad", [1, 2, 4])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_small_cluster_far_out_in_some_columns_keeps_its_cells(estimator, n_bad):
    rng = np.random.default_rng(n_bad)
    X, y = blobs(rng, 4)
    far = X[y == 0][:20] + 80 * (np.arange(4) < n_bad) + 0.3 * rng.normal(size=(20, 4))
    Z = np.vstack([X, far])
    model = estimator(4).fit(Z)
    assert not np.any(model.find_bad_cells(Z))
    assert len(np.unique(model.labels_[-20:])) == 1
    assert adjusted_rand_score(np.append(y, np.full(20, 3)), model.labels_) > 0.99


@pytest.mark.parametrize(
    ("sizes", "centers"),
    [
        ((800, 50), [[3, 4, 5, 2], [3, 60, 5, 2]]),
        ((1000, 50, 50), [[3, 3], [40, 3], [3, 40]]),
        ((1000, 60), [[4] * 12, [4] * 11 + [50]]),
        ((1000, 60), [[4] * 8, [4] * 6 + [50, 60]]),
    ],
    ids=["one column of four", "two clusters", "one column of twelve", "two columns of eight"],
)
@pytest.mark.parametrize("estimator", [*ESTIMATORS, lambda K: StudentTMixture("auto")], ids=["round", "shapes", "auto"])
def test_a_minority_that_differs_in_few_columns_from_a_single_cluster_is_a_cluster(estimator, sizes, centers):
    """The others have no clusters that its rows could be spread over."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.random.default_rng(0).poisson(np.array(centers)[y]).astype(float)
    model = estimator(len(sizes)).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.99
    assert not np.any(model.find_bad_cells(X))


@pytest.mark.parametrize(
    ("sizes", "centers"),
    [
        ((1000, 200, 50, 20), [[0, 0], [12, 0], [0, 12], [12, 12]]),
        ((500, 500, 500, 30, 30, 30), [[0, 0, 0], [6, 0, 0], [0, 6, 0], [0, 0, 20], [6, 0, 20], [0, 6, 20]]),
    ],
    ids=["two of four", "three of six"],
)
@pytest.mark.parametrize("seed", [1000, 1011, 1015, 1021])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_several_small_clusters_far_out_in_one_column_keep_their_cells(estimator, seed, sizes, centers):
    """In the other columns their rows are spread over the large clusters, as rows with wrong values are."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    X = np.array(centers)[y] + np.random.default_rng(seed).normal(size=(len(y), len(centers[0])))
    model = estimator(len(sizes)).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.98
    assert not np.any(model.find_bad_cells(X))


@pytest.mark.parametrize("value", [9999.0, None], ids=["the same", "anywhere"])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_values_that_are_wrong_in_rows_of_all_clusters_are_bad_however_alike_they_are(estimator, value):
    rng = np.random.default_rng(12)
    X, y = blobs(rng, 4)
    wrong = rng.choice(len(X), 45, replace=False)
    X[wrong, 3] = rng.uniform(100, 10000, 45) if value is None else value
    model = estimator(3).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.99
    np.testing.assert_array_equal(np.flatnonzero(model.find_bad_cells(X)[:, 3]), np.sort(wrong))


def test_cells_of_rows_of_all_clusters_are_bad_and_those_of_one_are_left_to_the_centres():
    rng = np.random.default_rng(6)
    X, y = blobs(rng, 4)
    anywhere, of_one = X.copy(), X.copy()
    anywhere[::31, 3] += 100
    of_one[np.flatnonzero(y == 1)[::10], 3] += 100
    np.testing.assert_array_equal(np.isnan(without_bad_cells(sample_of(anywhere), 3).X), np.abs(anywhere - X) > 50)
    assert not np.any(np.isnan(without_bad_cells(sample_of(of_one), 3).X))


def test_where_most_far_cells_are_in_rows_that_are_far_as_a_whole_none_is_bad():
    rng = np.random.default_rng(10)
    X, _ = blobs(rng, 8)
    X[:60] = rng.uniform(-100, 100, (60, 8))
    X[0] = np.append(X[100, :7], 1e3)  # and one that is not
    assert np.all(np.isinf(limits(sample_of(X))))
    assert not hasattr(TKMeans(3).fit(X), "cell_bounds_")


def test_the_unit_of_a_column_does_not_matter():
    rng = np.random.default_rng(7)
    Z, _ = damaged(rng, blobs(rng, 4)[0], 0.02)
    units = np.array([1e-3, 1.0, 50.0, 1e6])
    np.testing.assert_allclose(limits(sample_of(Z * units)), np.array(limits(sample_of(Z))) * units, rtol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_bounds_are_kept_in_model_files(estimator, tmp_path):
    rng = np.random.default_rng(8)
    Z, _ = damaged(rng, blobs(rng, 4)[0], 0.02)
    model = estimator(3).fit(Z)
    tkmeans.save(model, tmp_path / "model.json")
    again = tkmeans.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.cell_bounds_, model.cell_bounds_)
    np.testing.assert_array_equal(again.predict(Z), model.labels_)
    np.testing.assert_array_equal(again.outliers(Z), model.outliers(Z))


def test_rows_in_files_and_blocks_have_the_same_bad_cells(tmp_path):
    rng = np.random.default_rng(9)
    Z, _ = damaged(rng, blobs(rng, 4)[0], 0.02)
    np.save(tmp_path / "rows.npy", Z)
    inside, outside = TKMeans(3).fit(Z), TKMeans(3).fit(tmp_path / "rows.npy")
    np.testing.assert_array_equal(outside.labels_, inside.labels_)
    np.testing.assert_array_equal(outside.cell_bounds_, inside.cell_bounds_)
    single = TKMeans(3).fit(Z.astype(np.float32))
    np.testing.assert_array_equal(single.labels_, inside.labels_)
    np.testing.assert_array_equal(single.predict(Z.astype(np.float32)), inside.labels_)
    np.testing.assert_array_equal(single.find_bad_cells(Z.astype(np.float32)), inside.find_bad_cells(Z))


def test_sparse_rows_have_no_bad_cells_to_show():
    X = csr_array(np.kron(np.eye(5), np.ones((6, 1))))
    with pytest.raises(TypeError, match="X is sparse"):
        TKMeans(5).fit(X).find_bad_cells(X)


def test_a_few_wrong_cells_do_not_decide_the_number_of_clusters():
    rng = np.random.default_rng(13)
    X, _ = blobs(rng, 5, n_rows=400, n_clusters=4)
    X[rng.choice(400, 6, replace=False), rng.integers(5, size=6)] = rng.uniform(1e2, 1e4, 6)
    assert tkmeans.select_clusters(X, range(2, 7)).best == 4


@pytest.mark.parametrize("seed", range(5))
def test_a_few_equal_marks_in_every_column_do_not_decide_the_number_of_clusters(seed):
    rng = np.random.default_rng(seed)
    centers = rng.normal(0, 6, (4, 5))
    X = centers[rng.integers(4, size=600)] + rng.normal(size=(600, 5))
    for j in range(5):  # each in rows of its own: a row with two marks is far as a whole
        X[rng.permutation(np.arange(j, 600, 5))[:6], j] = -999.0
    assert tkmeans.select_clusters(X, range(1, 11)).best == 4


@pytest.mark.parametrize("n_rows", [3, 4, 6, 10])
def test_few_rows_that_are_spread_over_the_clusters_are_no_cluster_because_of_one_column(n_rows):
    rng = np.random.default_rng(n_rows)
    kept = []
    for _ in range(20):
        X, _ = blobs(rng, 5, n_rows=600)
        wrong = rng.choice(600, n_rows, replace=False)
        X[wrong, 4] = 1000.0
        kept.append(not np.any(np.isnan(without_bad_cells(sample_of(X), 3).X)))
    assert np.mean(kept) <= 0.25  # a tenth is expected by chance


@pytest.mark.parametrize("huge", [1e155, 1e200, 1e307])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.filterwarnings("error:.*encountered:RuntimeWarning")
def test_gigantic_values_are_bad_cells_too(estimator, huge):
    rng = np.random.default_rng(14)
    X, y = blobs(rng, 4)
    X[::61, 1] = huge * rng.uniform(0.5, 1, 15)  # in rows of all clusters
    model = estimator(3).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.99
    np.testing.assert_array_equal(np.flatnonzero(np.any(model.find_bad_cells(X), axis=1)), np.arange(0, 900, 61))


# ---- answers for rows with bad cells -------------------------------------------------------------

X, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)
SPOILED = three_groups((slice(10, 15), 2, 9999.0), (slice(200, 205), 0, -500.0))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_model_with_bad_cells_answers_for_sparse_rows_as_for_the_same_rows_with_zeros(dtype):
    model, X = TKMeans(3).fit(SPOILED), SPOILED.astype(dtype)
    X[::7, 1] = 0
    for ask in (model.predict, model.predict_proba, model.assignment_entropy, model.robust_weights, model.transform):
        np.testing.assert_allclose(ask(sparse.csr_array(X)), ask(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("Estimator", [TKMeans, StudentTMixture])
def test_the_score_is_the_mean_of_score_samples_where_cells_are_bad(Estimator):
    rows = X.copy()
    rows[3, 1] = 5000.0
    model = Estimator(3).fit(rows)
    assert model.find_bad_cells(rows)[3, 1]
    assert model.score(rows) == pytest.approx(model.score_samples(rows).mean(), rel=1e-12)


@pytest.mark.parametrize("Estimator", [TKMeans, StudentTMixture])
def test_distances_and_inertia_leave_out_bad_cells_as_the_labels_do(Estimator):
    model = Estimator(3).fit(SPOILED)
    assert np.count_nonzero(model.find_bad_cells(SPOILED)) == 10
    holes = np.where(model.find_bad_cells(SPOILED), np.nan, SPOILED)
    distances = model.transform(SPOILED)
    np.testing.assert_allclose(distances, model.transform(holes), rtol=1e-12)
    if Estimator is TKMeans:
        np.testing.assert_array_equal(distances.argmin(axis=1), model.predict(SPOILED))
        away = np.nan_to_num(holes - model.cluster_centers_[model.labels_])
        assert model.inertia_ == pytest.approx(np.sum(away**2), rel=1e-9)


def test_rows_that_are_far_by_a_bad_cell_alone_are_not_taken_for_a_missed_cluster():
    rng, y = np.random.default_rng(0), np.repeat(range(3), 200)
    rows = np.array([[0, 0, 0], [10, 0, 0], [0, 10, 0]])[y] + rng.normal(size=(600, 3))
    rows[rng.random(600) < 0.05, 2] = -999
    model = TKMeans(3).fit(rows)
    assert np.all(model.outliers(rows)[model.find_bad_cells(rows).any(axis=1)])  # and there is no warning


def test_the_last_digits_of_the_unit_change_neither_bad_cells_nor_clusters():
    rows = np.random.default_rng(11).standard_cauchy((200, 3))
    first, second = (TKMeans(4).fit(rows * factor) for factor in (1, 1 + 1e-12))
    np.testing.assert_array_equal(first.find_bad_cells(rows), second.find_bad_cells(rows * (1 + 1e-12)))
    np.testing.assert_array_equal(first.labels_, second.labels_)
    assert first.dof_ == pytest.approx(second.dof_, rel=1e-6)
