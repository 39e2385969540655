"""The start that is chosen between independent searches."""

import signal
import threading
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import RobustScaler, StandardScaler

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans, load, save
from tkmeans.datasets import make_like
from tkmeans.fitting import start_choice
from tkmeans.fitting.start_choice import StartChoice, same_clusters, within_reach
from tkmeans.search import is_better, robust_search, seeding
from tkmeans.sources import Sample
from tkmeans.sources.base import canonical

BLOBS, BLOB_LABELS = make_blobs(300, centers=4, cluster_std=0.6, random_state=0)


def apart(n_clusters, p, gap, rng):
    """Centres that are at least `gap` from each other."""
    centers = [rng.uniform(0, gap * n_clusters ** (1 / p), p)]
    while len(centers) < n_clusters:
        new = rng.uniform(0, 1.2 * gap * n_clusters ** (1 / p), p)
        if min(np.linalg.norm(new - center) for center in centers) > gap:
            centers.append(new)
    return np.array(centers)


def blobs(n_clusters, p, n, gap=6.0, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_clusters
    return apart(n_clusters, p, gap, rng)[labels] + rng.normal(size=(n, p)), labels


def test_labellings_are_the_same_clusters_if_only_numbers_and_few_rows_differ():
    labels = np.repeat([0, 1, 2], [100, 100, 20])
    other = np.array([2, 0, 1])[labels]
    other[:5] = 0
    assert same_clusters(labels, other, np.ones(220))
    assert not same_clusters(labels, np.repeat([0, 1], [100, 120]), np.ones(220))  # the small one is lost
    assert not same_clusters(labels, np.repeat([0, 1, 2], [60, 140, 20]), np.ones(220))


def test_labellings_are_other_clusters_if_two_that_are_not_tiny_are_in_one():
    sizes = [1000, 33, 36, 35]
    right = np.repeat([0, 1, 2, 3], sizes)
    wrong = np.repeat([0, 0, 1, 2], sizes)
    wrong[-4:] = 3  # a cluster in two, and a small one with the largest, of which it is less than a tenth
    assert not same_clusters(right, wrong, np.ones(len(right)))
    assert not same_clusters(wrong, right, np.ones(len(right)))
    tiny = np.where(np.arange(len(right)) < 2, 4, right)  # two rows of 1104 in a cluster of their own
    assert same_clusters(right, tiny, np.ones(len(right)))
    assert same_clusters(tiny, right, np.ones(len(right)))


@pytest.mark.parametrize("sizes", [(1000, 30, 30, 30), (300, 9, 9, 9), (4000, 120, 120, 120), (1000, 100, 30)])
@pytest.mark.parametrize("scaled", [False, True])
def test_small_clusters_far_from_a_large_one_are_found_if_all_are_of_one_width(sizes, scaled):
    """They are outliers of their columns, so that searches without outliers know nothing of them."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(3):
        X = np.array([[0, 0], [8, 0], [0, 9], [-9, -4]])[y] + np.random.default_rng(seed).normal(size=(len(y), 2))
        model = TKMeans(len(sizes)).fit(StandardScaler().fit_transform(X) if scaled else X)
        assert adjusted_rand_score(y, model.labels_) > 0.99
        assert not np.any(model.outliers(StandardScaler().fit_transform(X) if scaled else X))


@pytest.mark.parametrize("sizes", [(2697, 205, 94, 12), (5000, 100, 20)])
def test_a_tiny_cluster_is_no_outliers_if_the_other_rows_are_likelier_with_it_too(sizes):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = apart(len(sizes), 3, 12.0, rng)[labels] + rng.normal(size=(len(labels), 3))
    with pytest.warns(ConvergenceWarning, match="hold hardly any"):
        assert adjusted_rand_score(labels, TKMeans(len(sizes)).fit_predict(X)) > 0.99


@pytest.mark.parametrize("p", [2, 5])
def test_small_clusters_far_from_a_large_one_are_found_beside_outliers_that_are_farther(p):
    y = np.repeat(np.arange(4), [1000, 30, 30, 30])
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = 2 * apart(4, p, 5.0, rng)[y] + rng.normal(size=(1090, p))
        X = np.vstack([X, rng.uniform(-100, 100, (20, p))])
        assert adjusted_rand_score(y, TKMeans(4).fit_predict(X)[:1090]) > 0.98


@pytest.mark.parametrize("estimator", [TKMeans, StudentTMixture])
def test_values_of_a_small_cluster_that_reaches_beyond_the_bounds_of_its_column_are_no_bad_cells(estimator):
    """Some of its rows are nine deviations from the median, others not quite."""
    y = np.repeat([0, 1], [980, 20])
    for seed in range(5):
        X = np.array([[0, 0], [10, 0]])[y] + np.random.default_rng(1000 + seed).normal(size=(1000, 2))
        model = estimator(2).fit(X)
        assert adjusted_rand_score(y, model.labels_) > 0.99
        assert not np.any(model.find_bad_cells(X))


def test_searches_that_agree_are_few_and_end_near_the_true_centres():
    sample = canonical(Sample(BLOBS, np.ones(300)))
    found, (n_searches, n_agreeing, margin) = StartChoice(sample, 4, None, np.random.RandomState(0)).result()
    assert n_searches == n_agreeing == 2
    assert margin == np.inf
    true = np.array([BLOBS[k == BLOB_LABELS].mean(axis=0) for k in range(4)])
    assert np.linalg.norm(true[:, None] - found.centers, axis=2).min(axis=1).max() < 0.3


@pytest.mark.parametrize("estimator", [TKMeans, StudentTMixture])
@pytest.mark.filterwarnings("ignore:.*searches found other clusters")
def test_neither_the_seed_nor_the_order_of_the_rows_changes_the_clusters(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)) * [1.0, 2.0, 0.3]  # no clusters: nothing but the search decides
    first = estimator(5, random_state=0).fit_predict(X)
    for seed in range(1, 4):
        order = rng.permutation(len(X))
        assert adjusted_rand_score(first[order], estimator(5, random_state=seed).fit_predict(X[order])) > 0.999


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 3, 0, 1), (3, 1, 2, 0)])
def test_neither_the_order_nor_the_sign_of_columns_changes_the_clusters_of_irises(order):
    X = RobustScaler().fit_transform(load_iris().data)
    first = TKMeans(3).fit(X)
    for signs in [(1, 1, 1, 1), (1, -1, -1, -1), (-1, 1, 1, -1)]:
        model = TKMeans(3).fit(X[:, order] * signs)
        assert model.lower_bound_ == pytest.approx(first.lower_bound_, abs=1e-4)
        assert adjusted_rand_score(first.labels_, model.labels_) > 0.95


def test_clusters_are_better_by_the_criterion_of_a_search_if_they_cost_less_there():
    sample = canonical(Sample(BLOBS, np.ones(300)))
    right = robust_search(sample, 4, np.random.RandomState(0), 1.0)
    true = np.array([BLOBS[k == BLOB_LABELS].mean(axis=0) for k in range(4)])
    between = np.array([true[0], true[1], (true[2] + true[3]) / 2, true[0] + 0.3])
    wrong = right._replace(centers=between, scale=1.0)
    assert is_better(right, wrong, sample)
    assert not is_better(wrong, right, sample)
    assert not is_better(right, right, sample)


def test_small_wide_clusters_are_found_beside_dense_ones_in_any_units():
    X, labels = make_like("unbalance", random_state=0)
    X = StandardScaler().fit_transform(X)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(X))
        assert adjusted_rand_score(labels[order], TKMeans(8).fit_predict(X[order])) > 0.999


def test_tight_heaps_of_far_rows_do_not_take_the_clusters_of_the_others():
    X, labels = blobs(8, 8, 1600)
    rng = np.random.default_rng(1)
    directions = rng.normal(size=(3, 8))
    directions *= 8 * np.sqrt(8) / np.linalg.norm(directions, axis=1, keepdims=True)
    heaps = X.mean(axis=0) + (directions * X.std(axis=0))[np.arange(180) % 3] + 0.2 * rng.normal(size=(180, 8))
    found = TKMeans(8).fit_predict(np.vstack([X, heaps]))
    assert adjusted_rand_score(labels, found[:1600]) > 0.99


@pytest.mark.parametrize("columns", [1, 5])
def test_a_small_true_cluster_far_away_is_not_given_up(columns):
    X, labels = blobs(5, 5, 1000)
    deviations = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    small = X[labels == 0].mean(axis=0) + np.random.default_rng(2).normal(size=(20, 5))
    small[:, :columns] += 30 * deviations[:columns]
    found = TKMeans(6).fit_predict(np.vstack([X, small]))
    assert len(set(found[1000:])) == 1
    assert not np.any(found[:1000] == found[1000])


def test_rows_with_a_far_value_are_outside_the_core_unless_they_are_most_rows():
    X = np.random.default_rng(0).normal(size=(200, 3))
    X[:10, 1] += 40
    np.testing.assert_array_equal(within_reach(Sample(X, np.ones(200))), np.arange(200) >= 10)
    X[:110, 0] = np.linspace(50, 500, 110)  # so are most rows; the median is among them
    assert np.all(within_reach(Sample(X, np.ones(200)))[110:]) or np.all(within_reach(Sample(X, np.ones(200))))
    assert np.all(within_reach(Sample(np.zeros((200, 3)), np.ones(200))))  # equal values have no deviation


@pytest.mark.parametrize("heap", [0, 3, 5])
def test_rows_that_a_search_leaves_out_are_outside_the_core_unless_some_lie_together(heap):
    """The columns are so wide that no value is far: clusters in the corners of a square."""
    rng = np.random.default_rng(0)
    rows = np.repeat([[-40, -40], [-40, 40], [40, -40], [40, 40]], 100, axis=0) + rng.normal(size=(400, 2))
    lonely = [[0.0, 0.0], [60.0, 0.0], [0.0, 60.0], [-60.0, 0.0]]
    together = np.array([100.0, 100.0]) + 0.1 * rng.normal(size=(heap, 2))
    sample = Sample(np.vstack([rows, lonely, together]), np.ones(404 + heap))
    assert np.all(within_reach(sample))
    found = robust_search(sample, 4, np.random.RandomState(0))
    assert found.left_out == pytest.approx((4 + heap) / (404 + heap))
    expected = np.arange(404 + heap) < (404 + heap if heap > 3 else 400)  # three rows are no cluster
    np.testing.assert_array_equal(within_reach(sample, None, found), expected)


@pytest.mark.parametrize("seed", range(6))
def test_a_cluster_of_six_rows_of_which_a_search_leaves_out_some_is_found(seed):
    rng, y = np.random.default_rng([seed, 2, 4]), np.repeat(range(4), [500, 500, 20, 6])
    centers = [np.zeros(2)]
    while len(centers) < 4:  # nine to sixteen deviations from one of the others
        step = rng.normal(size=2)
        step *= rng.uniform(9, 16) / np.linalg.norm(step)
        center = step + centers[rng.integers(len(centers))]
        centers += [center] if np.min(np.linalg.norm(center - centers, axis=1)) > 8 else []
    X = np.array(centers)[y] + rng.normal(size=(len(y), 2))
    assert adjusted_rand_score(y, TKMeans(4).fit_predict(X)) > 0.99


@pytest.mark.parametrize("p", [2, 5])
@pytest.mark.parametrize("width", [10, 20])
@pytest.mark.parametrize("seed", range(3))
def test_a_tight_majority_does_not_hide_small_wide_clusters(seed, width, p):
    """Nine tenths of the rows are one tight cluster: rows of the others are far by its measure."""
    rng, y = np.random.default_rng(seed), np.repeat(range(3), [900, 67, 33])
    X = 8 * width * np.eye(3, p)[(y + 2) % 3] * (y > 0)[:, None]
    X += rng.normal(size=X.shape) * np.array([1, width, width])[y][:, None]
    fitted = TKMeans(3).fit(X)
    of_truth = TKMeans(3, init=np.array([X[y == k].mean(axis=0) for k in range(3)])).fit(X)
    assert fitted.score(X) > of_truth.score(X) - 0.1  # nats per row
    assert adjusted_rand_score(y, fitted.labels_) > 0.8


def test_the_second_search_is_made_on_fewer_rows_first_and_on_all_if_that_ends_elsewhere(monkeypatch):
    rng = np.random.default_rng(0)
    rows = np.repeat([[-40, -40], [-40, 40], [40, -40], [40, 40]], 1000, axis=0) + rng.normal(size=(4000, 2))
    sample, search, misled, sizes = canonical(Sample(rows, np.ones(4000))), start_choice.robust_search, False, []

    def watched(part, *arguments):
        sizes.append(len(part.X))
        found = search(part, *arguments)
        return found._replace(labels=np.arange(len(part.X)) % 4) if misled and len(part.X) < 4000 else found

    monkeypatch.setattr(start_choice, "robust_search", watched)
    agreement = StartChoice(sample, 4, None, np.random.RandomState(0)).result()[1]
    assert (agreement.n_searches, agreement.n_agreeing, sizes) == (2, 2, [4000, 1000])
    misled, sizes = True, []
    agreement = StartChoice(sample, 4, None, np.random.RandomState(0)).result()[1]
    assert (agreement.n_searches, agreement.n_agreeing, sizes) == (2, 2, [4000, 1000, 4000])


def test_rows_that_come_in_turns_are_all_in_the_sample():
    X, labels = blobs(4, 2, 4000)  # row i is of cluster i mod 4, and the sample has three rows of four
    assert adjusted_rand_score(labels, TKMeans(4).fit_predict(X)) > 0.99


@pytest.mark.filterwarnings("ignore:.*searches found other clusters")  # S4 and noise: most of them do
def test_overlapping_clusters_with_cauchy_noise_are_not_given_up_for_tiny_ones_on_far_rows():
    X, labels = make_like("S4", random_state=0)
    noise = np.random.default_rng(0).standard_cauchy((500, 2)) * X.std(axis=0) + X.mean(axis=0)
    found = TKMeans(15).fit_predict(np.vstack([X, noise]))
    assert adjusted_rand_score(labels, found[: len(X)]) > 0.63


def test_in_many_dimensions_a_far_row_of_a_thinned_sample_is_no_cluster():
    rng = np.random.default_rng(0)
    labels, far = rng.integers(10, size=5000), rng.random(5000) < 0.02
    X = rng.normal(scale=0.6, size=(10, 200))[labels] + rng.normal(size=(5000, 200))
    X[far] = rng.uniform(-60, 60, (int(far.sum()), 200))
    assert adjusted_rand_score(labels[~far], TKMeans(10).fit_predict(X)[~far]) > 0.99


# ---- how sure a fit is --------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture])
def test_a_fit_says_how_many_searches_agree(estimator, tmp_path):
    options = {"init": "robust"} if estimator is FastTKMeans else {}
    model = estimator(4, **options).fit(BLOBS)
    assert model.agreement_ == 1
    assert model.n_searches_ >= 2
    assert not hasattr(model, "margin_")
    if estimator is MiniBatchTKMeans:
        return  # it cannot be saved
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert (again.agreement_, again.n_searches_) == (1, model.n_searches_)


def test_a_start_that_was_given_says_nothing_of_agreement():
    assert not hasattr(TKMeans(4, init="k-means++", random_state=0).fit(BLOBS), "agreement_")


def test_a_fit_warns_where_most_searches_found_other_clusters_that_are_as_good():
    rows = np.random.default_rng(3).uniform(size=(400, 2))
    for n_clusters in range(5, 12):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = TKMeans(n_clusters).fit(rows)
        told = [str(each.message) for each in caught if "searches found other clusters" in str(each.message)]
        split = 2 * model.agreement_ < 1 and model.margin_ < 0.02
        assert bool(told) == split
        if split:
            assert f"n_clusters={n_clusters} may not be what these rows have" in told[0]


@pytest.mark.parametrize("n_clusters", [3, 5, 6, 8])
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_number_of_clusters_gives_the_same_clusters_from_every_seed_and_none_that_is_empty(n_clusters):
    first = TKMeans(n_clusters, random_state=0).fit_predict(BLOBS)
    assert np.all(np.bincount(first, minlength=n_clusters) > 0)
    for seed in range(1, 6):
        order = np.random.default_rng(seed).permutation(300)
        found = TKMeans(n_clusters, random_state=seed).fit_predict(BLOBS[order])
        assert adjusted_rand_score(first[order], found) > 0.98


def test_an_empty_cluster_is_warned_of():
    rows = np.repeat([[0.0, 0.0], [5.0, 5.0]], 50, axis=0) + 0.01 * np.random.default_rng(0).normal(size=(100, 2))
    far = np.full((1, 2), 1e4)
    with pytest.warns(UserWarning, match="hold hardly any or none of the 100 rows"):
        TKMeans(3, init=np.vstack([rows[:1], rows[-1:], far]), dof=1e6).fit(rows)


# ---- starts that were not searched for ----------------------------------------------------


def test_a_wide_first_scale_leads_to_higher_likelihoods_from_random_rows(monkeypatch):
    gains = []
    for name in ("S1", "S2", "S3"):
        X, _ = make_like(name, random_state=0)
        for seed in range(4):
            start = X[np.random.default_rng(seed).choice(len(X), 15, replace=False)]
            likelihood = {}
            for width in (1.0, 10.0):
                monkeypatch.setattr(seeding, "FIRST_WIDTH", width)
                likelihood[width] = TKMeans(15, init=start, cluster_weights="equal").fit(X).lower_bound_
            gains.append(likelihood[10.0] - likelihood[1.0])
    assert np.mean(np.array(gains) > 0) > 0.6
    assert np.mean(gains) > 0


def test_true_centres_are_not_left_by_a_wide_first_scale():
    X, labels = blobs(30, 2, 3000, gap=6.0)
    true = np.array([X[labels == k].mean(axis=0) for k in range(30)])
    assert adjusted_rand_score(labels, TKMeans(30, init=true).fit_predict(X)) > 0.99


def test_a_tolerance_of_zero_ends_when_nothing_moves():
    model = TKMeans(4, tol=0.0).fit(BLOBS)
    assert model.converged_
    longer = TKMeans(4, tol=0.0, max_iter=3000).fit(BLOBS)
    assert model.lower_bound_ == pytest.approx(longer.lower_bound_, abs=1e-12)


def test_clusters_of_light_tails_that_are_rejected_do_not_limit_the_width_of_the_others(monkeypatch):
    sample = canonical(Sample(BLOBS, np.ones(300)))
    search = start_choice.robust_search

    def narrow_and_tiny(part, n_clusters, rng, tails, *rest):
        found = search(part, n_clusters, rng, tails, *rest)
        if tails == 1:
            return found
        labels = np.where(np.arange(len(part.X)) < 2, np.arange(len(part.X)) + 1, 0)  # two clusters of one row
        return found._replace(labels=labels, width=found.width / 1000)

    monkeypatch.setattr(start_choice, "robust_search", narrow_and_tiny)
    found, agreement = StartChoice(sample, 4, None, np.random.RandomState(0)).result()
    assert (agreement.n_searches, agreement.n_agreeing) == (3, 1)
    assert np.ptp(found.centers, axis=0).min() > 1


def test_with_scattered_far_rows_heavy_tails_on_all_rows_and_light_ones_on_the_core_are_enough():
    scattered = np.random.default_rng(0).uniform(-200, 200, (15, 2))
    sample = canonical(Sample(np.vstack([BLOBS, scattered]), np.ones(315)))
    assert not np.all(within_reach(sample))
    found, agreement = StartChoice(sample, 4, None, np.random.RandomState(0)).result()
    assert (agreement.n_searches, agreement.n_agreeing) == (2, 2)
    true = np.array([BLOBS[k == BLOB_LABELS].mean(axis=0) for k in range(4)])
    assert np.linalg.norm(true[:, None] - found.centers, axis=2).min(axis=1).max() < 0.3


def test_a_search_without_time_raises_and_a_fit_then_begins_with_rows_of_the_sample():
    sample = canonical(Sample(BLOBS, np.ones(300)))
    with pytest.raises(TimeoutError, match="no time left for the search"):
        robust_search(sample, 4, np.random.RandomState(0), seconds=0.0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        model = TKMeans(4, max_time=1e-9).fit(BLOBS)
    assert model.cluster_centers_.shape == (4, 2)
    assert np.all(np.isfinite(model.cluster_centers_))
    assert not hasattr(model, "agreement_")


def test_when_the_time_is_up_after_the_first_search_its_clusters_are_taken(monkeypatch):
    sample, search, calls = canonical(Sample(BLOBS, np.ones(300))), start_choice.robust_search, []

    def one_search(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise TimeoutError
        return search(*arguments)

    monkeypatch.setattr(start_choice, "robust_search", one_search)
    found, agreement = StartChoice(sample, 4, None, np.random.RandomState(0)).result()
    assert (agreement.n_searches, agreement.n_agreeing) == (1, 1)
    true = np.array([BLOBS[k == BLOB_LABELS].mean(axis=0) for k in range(4)])
    assert np.linalg.norm(true[:, None] - found.centers, axis=2).min(axis=1).max() < 0.3


def test_ctrl_c_ends_a_long_search():
    X, _ = blobs(3, 16, 20_000)
    sample = canonical(Sample(X, np.ones(len(X))))
    main = threading.main_thread().ident
    timer = threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            robust_search(sample, 2000, np.random.RandomState(0), seconds=60.0)  # takes minutes
    finally:
        timer.join()


# ---- large samples: searches begin on a few of the rows -------------------------------------


def many_blobs(monkeypatch, n=3000):
    """Rows that count as many, in eight clusters, with what every search was given."""
    X, labels = blobs(8, 5, n)
    sample, search, calls = canonical(Sample(X, np.ones(n))), start_choice.robust_search, []

    def noted(part, n_clusters, rng, tails, quiet_breaths, seconds, start=None, least_scale=0.0):
        calls.append((len(part.X), start is not None))
        return search(part, n_clusters, rng, tails, quiet_breaths, seconds, start, least_scale)

    monkeypatch.setattr(start_choice, "LARGE", 0)
    monkeypatch.setattr(start_choice, "VERY_LARGE", 0)
    monkeypatch.setattr(start_choice, "FEW_ROWS", n // 5)
    monkeypatch.setattr(start_choice, "robust_search", noted)
    return sample, np.array([X[labels == k].mean(axis=0) for k in range(8)]), calls


def test_of_a_large_sample_a_few_rows_are_enough_where_two_searches_agree(monkeypatch):
    sample, true, calls = many_blobs(monkeypatch)
    found, agreement = StartChoice(sample, 8, None, np.random.RandomState(0)).result()
    assert calls == [(600, False), (600, False)]
    assert (agreement.n_searches, agreement.n_agreeing) == (2, 2)
    assert np.linalg.norm(true[:, None] - found.centers, axis=2).min(axis=1).max() < 0.5  # of 75 rows each


def test_of_very_many_clusters_some_are_found_a_second_time(monkeypatch):
    sample, true, calls = many_blobs(monkeypatch)
    monkeypatch.setattr(start_choice, "SOME_CLUSTERS", 4)
    found, agreement = StartChoice(sample, 8, None, np.random.RandomState(0)).result()
    assert len(calls) == 2
    assert 200 < calls[1][0] < 400  # about half of the rows
    assert (agreement.n_searches, agreement.n_agreeing) == (2, 2)
    assert np.linalg.norm(true[:, None] - found.centers, axis=2).min(axis=1).max() < 0.5  # of 75 rows each


def test_where_searches_of_a_few_rows_differ_all_rows_are_searched_from_where_they_ended(monkeypatch):
    sample, _, calls = many_blobs(monkeypatch)
    monkeypatch.setattr(start_choice, "_is_clear", lambda *_: False)
    _, agreement = StartChoice(sample, 8, None, np.random.RandomState(0)).result()
    assert calls == [(600, False), (3000, True), (600, False)]  # the second ends in the clusters of the first
    assert (agreement.n_searches, agreement.n_agreeing) == (2, 2)


def test_of_a_sample_that_is_not_very_large_all_rows_are_searched_once(monkeypatch):
    sample, true, calls = many_blobs(monkeypatch)
    monkeypatch.setattr(start_choice, "VERY_LARGE", np.inf)
    found, _ = StartChoice(sample, 8, None, np.random.RandomState(0)).result()
    assert calls == [(600, False), (3000, True), (600, False)]
    assert np.linalg.norm(true[:, None] - found.centers, axis=2).min(axis=1).max() < 0.3


def test_clusters_of_far_rows_are_not_clear(monkeypatch):
    sample, _, calls = many_blobs(monkeypatch)
    sample.X[::30] += 300
    StartChoice(canonical(sample), 9, None, np.random.RandomState(0)).result()
    assert (3000, True) in calls


def test_where_a_few_rows_show_tiny_clusters_all_rows_are_searched_as_if_they_had_not_been(monkeypatch):
    sample, _, calls = many_blobs(monkeypatch)
    noted = start_choice.robust_search

    def tiny(part, *arguments):
        found = noted(part, *arguments)
        return found._replace(labels=np.minimum(np.arange(len(part.X)), 7)) if len(part.X) < 3000 else found

    monkeypatch.setattr(start_choice, "robust_search", tiny)
    found, _ = StartChoice(sample, 8, 5.0, np.random.RandomState(0)).result()
    assert calls == [(600, False), (3000, False)] * 2
    monkeypatch.setattr(start_choice, "LARGE", np.inf)
    np.testing.assert_array_equal(
        found.centers, StartChoice(sample, 8, 5.0, np.random.RandomState(0)).result()[0].centers
    )


def test_when_the_time_is_up_before_all_rows_are_searched_the_clusters_of_the_few_are_taken(monkeypatch):
    sample, true, calls = many_blobs(monkeypatch)
    noted = start_choice.robust_search

    def no_time(part, *arguments):
        if calls:
            raise TimeoutError
        return noted(part, *arguments)

    monkeypatch.setattr(start_choice, "robust_search", no_time)
    found, agreement = StartChoice(sample, 8, None, np.random.RandomState(0)).result()
    assert agreement.n_searches == 1
    assert np.linalg.norm(true[:, None] - found.centers, axis=2).min(axis=1).max() < 0.5


def test_a_search_that_begins_with_what_another_found_ends_there_unless_it_finds_better_clusters():
    X, _ = blobs(8, 5, 800)
    sample = canonical(Sample(X, np.ones(800)))
    right = robust_search(sample, 8, np.random.RandomState(0), 1.0)
    again = robust_search(sample, 8, np.random.RandomState(1), 1.0, 1, start=right)
    assert same_clusters(right.labels, again.labels, sample.weight)
    wrong = right._replace(centers=np.vstack([right.centers[:7], right.centers[:1] + 0.1]))
    better = robust_search(sample, 8, np.random.RandomState(1), 1.0, 1, start=wrong)
    assert same_clusters(right.labels, better.labels, sample.weight)


def test_a_large_sample_without_far_rows_starts_with_tails_as_light_as_they_are(monkeypatch):
    sample, _, _ = many_blobs(monkeypatch)
    assert StartChoice(sample, 8, None, np.random.RandomState(0)).result()[0].dof >= 20  # the rows are normal
    heavy = Sample(sample.X * 1.0, sample.weight)
    heavy.X[::20] += 40 * np.random.default_rng(0).standard_cauchy((150, 5))
    assert StartChoice(canonical(heavy), 8, None, np.random.RandomState(0)).result()[0].dof <= 5
