"""MiniBatchTKMeans: as good as a fit to all rows, and honest about streams that change."""

import pickle

import numpy as np
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from support.model_inputs import t_mixture
from support.paper_data import benchmark_set

from tkmeans import MiniBatchTKMeans, TKMeans
from tkmeans.datasets import contaminate, make_contaminated, make_like
from tkmeans.sources.files import FileSource

X, LABELS, CENTERS = t_mixture(n=4000, n_clusters=4, n_features=3, dof=4.0, scale=0.02)


def streamed(model, rows, batch_size, weight=None):
    for begin in range(0, len(rows), batch_size):
        part = slice(begin, begin + batch_size)
        model.partial_fit(rows[part], sample_weight=None if weight is None else weight[part])
    return model


def noisy(rows, labels, seed=0):
    """With 10 % of Cauchy noise, in random order."""
    rows, labels = contaminate(rows, labels, "cauchy", fraction=0.1, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(rows))
    return rows[order], labels[order]


def nearest_distance(centers, true):
    """How far each true centre is from the nearest one found."""
    return np.linalg.norm(true[:, None] - centers, axis=2).min(axis=1)


# ---- as good as all rows at once -------------------------------------------------------


@pytest.mark.parametrize("name", ["A2", "S2", "S4", "dim032", "unbalance"])
def test_a_stream_with_cauchy_noise_ends_within_a_hundredth_of_the_batch_fit(name):
    assert_stream_as_good(*make_like(name, random_state=0))


def test_a_long_stream_of_which_few_rows_are_kept_ends_within_a_hundredth_of_the_batch_fit():
    rows, labels = make_contaminated(40_000, n_clusters=15, cluster_std=0.15, outlier_fraction=0, random_state=0)
    rows, labels = noisy(rows, labels)
    batch = TKMeans(15, random_state=0, bad_cells=False).fit(rows)
    stream = streamed(MiniBatchTKMeans(15, random_state=0), rows, 500)
    real = labels >= 0
    wanted = adjusted_rand_score(labels[real], batch.labels_[real])
    assert wanted < 0.95  # clusters touch: it is not for nothing
    assert abs(adjusted_rand_score(labels[real], stream.predict(rows)[real]) - wanted) <= 0.01
    assert abs(stream.score(rows) - batch.score(rows)) < 1e-3


@pytest.mark.filterwarnings("ignore:.*searches found other clusters")  # a thousand rows of S3 leave it open
@pytest.mark.parametrize("name", ["A1", "S1", "S3", "dim032"])
def test_a_stream_of_the_papers_data_ends_within_a_hundredth_of_the_batch_fit(name):
    assert_stream_as_good(*benchmark_set(name))


def assert_stream_as_good(rows, labels):
    n_clusters = len(np.unique(labels))
    rows, labels = noisy(rows, labels)
    real = labels >= 0
    batch = TKMeans(n_clusters, random_state=0).fit(rows)
    wanted = adjusted_rand_score(labels[real], batch.labels_[real])
    for model in (
        streamed(MiniBatchTKMeans(n_clusters, random_state=0), rows, 250),
        MiniBatchTKMeans(n_clusters, init_size=1000, batch_size=250, random_state=0).fit(rows),
    ):
        assert abs(adjusted_rand_score(labels[real], model.predict(rows)[real]) - wanted) <= 0.01


@pytest.mark.parametrize("options", [{}, {"dof": 1.0}, {"cluster_weights": "estimate"}, {"init": CENTERS}])
def test_minibatch_fits_rows_within_init_size_exactly_as_tkmeans_does(options):
    small, whole = MiniBatchTKMeans(4, random_state=0, **options), TKMeans(4, random_state=0, **options)
    for model in (small, whole):
        model.fit(X[:1000])
    np.testing.assert_array_equal(small.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(small.labels_, whole.labels_)
    assert (small.dof_, small.scale_, small.n_iter_) == (whole.dof_, whole.scale_, whole.n_iter_)
    np.testing.assert_array_equal(small.outlier_pvalues_, whole.outlier_pvalues_)


@pytest.mark.parametrize("dof", [1.5, 4.0, 30.0])
def test_a_stream_estimates_the_dof_of_a_batch_fit(dof):
    rows, _, _ = t_mixture(n=20_000, n_clusters=3, n_features=4, dof=dof, scale=0.01, seed=1)
    whole = TKMeans(3, random_state=0, bad_cells=False).fit(rows)
    stream = streamed(MiniBatchTKMeans(3, random_state=0, init_size=500), rows, 500)
    fit = MiniBatchTKMeans(3, random_state=0, init_size=500, max_no_improvement=None).fit(rows)
    assert 1 / stream.dof_ == pytest.approx(1 / whole.dof_, abs=0.01)  # 0 is a Gaussian, 1 is Cauchy
    assert 1 / fit.dof_ == pytest.approx(1 / whole.dof_, abs=0.01)
    assert stream.scale_ == pytest.approx(whole.scale_, rel=0.02)
    assert stream.score(rows) == pytest.approx(whole.score(rows), abs=1e-3)


def test_a_minibatch_fit_that_converges_early_counts_the_rows_it_has_used():
    quick = MiniBatchTKMeans(4, init_size=500, batch_size=100, max_no_improvement=3, random_state=0).fit(X)
    assert quick.converged_
    assert quick.n_steps_ * 100 < len(X)
    assert quick.n_iter_ == 1
    slow = MiniBatchTKMeans(4, init_size=500, batch_size=100, max_no_improvement=None, random_state=0).fit(X)
    assert slow.n_iter_ >= 2
    assert len(slow.lower_bounds_) == slow.n_steps_ + 1


def test_a_minibatch_fit_that_runs_out_of_passes_warns():
    with pytest.warns(ConvergenceWarning, match="MiniBatchTKMeans did not converge in max_iter=1 iterations"):
        model = MiniBatchTKMeans(4, init_size=500, max_iter=1, max_no_improvement=None, random_state=0).fit(X)
    assert not model.converged_
    assert model.n_iter_ == 1


def test_rows_ordered_by_cluster_do_not_harm_a_minibatch_fit():
    order = np.argsort(LABELS)
    model = MiniBatchTKMeans(4, init_size=200, batch_size=50, random_state=0).fit(X[order])
    assert adjusted_rand_score(LABELS[order], model.labels_) > 0.99


# ---- the first rows of a stream ------------------------------------------------------------


def test_a_stream_keeps_its_first_rows_until_there_is_one_for_every_cluster():
    model = MiniBatchTKMeans(4, random_state=0)
    model.partial_fit(X[:3])
    with pytest.raises(NotFittedError, match="the 3 rows so far are too few for n_clusters=4"):
        model.predict(X)
    model.partial_fit(X[3:50])
    np.testing.assert_array_equal(model.labels_, model.predict(X[3:50]))
    whole = TKMeans(4, random_state=0).fit(X[:50])
    np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_)


def test_a_stream_keeps_its_first_rows_until_every_feature_has_a_value():
    rows = X.copy()
    rows[:20, 1] = np.nan
    model = MiniBatchTKMeans(4, random_state=0).partial_fit(rows[:20])
    with pytest.raises(NotFittedError, match="no value of some feature"):
        model.predict(X)
    assert np.all(np.isfinite(model.partial_fit(rows[20:100]).cluster_centers_))
    rows[:, 1] = np.nan
    with pytest.raises(ValueError, match="feature 1 has no observed value in any row; drop it"):
        streamed(MiniBatchTKMeans(4), rows, 500)


def test_a_stream_before_its_first_row_is_not_fitted():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        MiniBatchTKMeans().predict(X)


@pytest.mark.parametrize("batch_size", [1, 17, 400])
def test_a_stream_in_small_batches_gets_as_good_a_start(batch_size):
    model = streamed(MiniBatchTKMeans(4, init_size=300, random_state=0), X[:400], batch_size)
    assert adjusted_rand_score(LABELS, model.predict(X)) > 0.99
    assert model.n_samples_seen_ == 400


@pytest.mark.filterwarnings("ignore:.*searches found other clusters")  # of rows that have one
def test_a_stream_whose_first_rows_were_of_one_cluster_is_corrected_by_later_rows():
    ordered = X[np.argsort(LABELS, kind="stable")]
    first_of_one_cluster, mixed = ordered[:100], X[:500]
    model = MiniBatchTKMeans(4, init_size=600, random_state=0).partial_fit(first_of_one_cluster)
    assert nearest_distance(model.cluster_centers_, CENTERS).max() > 0.5
    model.partial_fit(mixed)
    assert nearest_distance(model.cluster_centers_, CENTERS).max() < 0.05


def test_after_init_size_rows_a_stream_keeps_its_cluster_numbers_and_no_rows():
    model = streamed(MiniBatchTKMeans(4, init_size=500, random_state=0), X[:500], 100)
    before = model.predict(X)
    rare = X[LABELS[before == 3][0] == LABELS]  # the smallest becomes the largest
    streamed(model, np.tile(rare, (5, 1)), 500)
    np.testing.assert_array_equal(model.predict(X), before)
    assert model.cluster_sizes_.argmax() == 3
    sizes = [len(pickle.dumps(model)), len(pickle.dumps(streamed(model, X, 100)))]
    assert sizes[1] - sizes[0] < 8 * LABELS.size  # the latest distances, and nothing that grows with the stream
    for _ in range(3):
        streamed(model, X, 100)
    assert len(pickle.dumps(model)) - sizes[1] < 16 * 200  # the log-likelihoods of up to 1000 batches


def test_a_minibatch_fit_keeps_nothing_of_its_rows_but_the_attributes_in_the_docs():
    model = MiniBatchTKMeans(4, random_state=0).fit(np.tile(X, (5, 1)))
    kept = model._stream.distances
    assert max(map(len, kept)) <= 4096
    assert all(values.base is None for values in kept)  # a view would hold all rows


def test_minibatch_refuses_a_file_before_it_reads_it(tmp_path, monkeypatch):
    def survey(self):
        raise AssertionError("the file was read")

    monkeypatch.setattr(FileSource, "survey", survey)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(
        TypeError, match="takes batches from arrays in memory, of NumPy or SciPy; hand the blocks of larger data"
    ):
        MiniBatchTKMeans(4).fit(tmp_path / "X.npy")


# ---- one batch like any other ----------------------------------------------------------------


def started(**options):
    return MiniBatchTKMeans(4, random_state=0, **options).fit(X[:1000])


def test_a_row_of_weight_two_in_a_batch_is_that_row_twice():
    times = np.random.default_rng(0).integers(0, 3, 1000)
    weighted = started().partial_fit(X[1000:2000], sample_weight=times)
    repeated = started().partial_fit(X[1000:2000].repeat(times, axis=0))
    for name in ("cluster_centers_", "scale_", "dof_", "cluster_sizes_", "center_drift_", "drift_pvalues_"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9, err_msg=name)
    assert weighted.inertia_ == pytest.approx(repeated.inertia_)


def test_a_stream_learns_from_the_observed_values_of_rows_with_missing_values():
    rows = np.where(np.random.default_rng(0).random(X.shape) < [0.0, 0.3, 0.3], np.nan, X)
    model = streamed(MiniBatchTKMeans(4, init_size=500, random_state=0), rows, 250)
    assert nearest_distance(model.cluster_centers_, CENTERS).max() < 0.02
    assert np.all((model.drift_pvalues_ > 0) & (model.drift_pvalues_ <= 1))
    assert model.outliers(rows).mean() < 0.01
    rows[1] = np.nan
    with pytest.warns(UserWarning, match=r"1 of 100 rows without a single observed value \(row 1\)"):
        model.partial_fit(rows[:100])
    assert np.isnan(model.outlier_pvalues_[1])


@pytest.mark.parametrize(("first", "then"), [("f4", "f8"), ("f8", "f4"), ("f4", "f4"), ("f8", "i4")])
def test_the_dtype_of_the_rows_may_change_during_a_stream(first, then):
    rows = X * 1000
    model = MiniBatchTKMeans(4, random_state=0).fit(rows[:1000].astype(first))
    model.partial_fit(rows[1000:2000].astype(then))
    assert model.cluster_centers_.dtype == ("f4" if (first, then) == ("f4", "f4") else "f8")
    plain = MiniBatchTKMeans(4, random_state=0).fit(rows[:1000]).partial_fit(rows[1000:2000])
    np.testing.assert_allclose(model.cluster_centers_, plain.cluster_centers_, atol=1.0)  # half a unit of rounding
    assert model.transform(rows.astype(then)).dtype == ("f4" if then == "f4" else "f8")


def test_a_stream_of_small_batches_in_single_precision_ends_where_double_precision_does():
    single, double = (
        streamed(MiniBatchTKMeans(4, init_size=500, random_state=0), (X[:2000] + 100).astype(dtype), 20)
        for dtype in ("f4", "f8")
    )
    np.testing.assert_allclose(single.cluster_centers_, double.cluster_centers_, atol=1e-4)


def test_partial_fit_refuses_another_number_of_features():
    with pytest.raises(ValueError, match="X has 2 features, but MiniBatchTKMeans is expecting 3"):
        started().partial_fit(X[:, :2])


def test_partial_fit_refuses_another_number_of_clusters():
    with pytest.raises(ValueError, match="n_clusters=5, but the stream has 4 clusters; begin anew with fit"):
        started().set_params(n_clusters=5).partial_fit(X)


def test_batches_may_be_data_frames_whose_names_must_match():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = streamed(MiniBatchTKMeans(4, init_size=500, random_state=0), table, 300)
    assert list(model.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(table.rename(columns={"a": "z"}))


def test_attributes_of_the_last_batch_equal_the_methods_applied_to_it():
    model, batch = started(), X[1000:1500]
    expected = model.score(batch)
    model.partial_fit(batch)
    np.testing.assert_array_equal(model.labels_, model.predict(batch))
    np.testing.assert_array_equal(model.outlier_pvalues_, model.outlier_pvalues(batch))
    assert model.inertia_ == pytest.approx((model.transform(batch).min(axis=1) ** 2).sum())
    assert model.lower_bounds_[-1] == pytest.approx(expected, rel=1e-9)  # judged before it was learned from
    assert (model.n_steps_, model.n_samples_seen_) == (started().n_steps_ + 1, 1500)


def test_pvalues_and_outliers_are_those_of_the_last_batch_whether_earlier_ones_were_asked_for_or_not():
    far = np.random.default_rng(0).uniform(-300, 300, (400, 3))
    asked, silent = (MiniBatchTKMeans(4, init_size=600, random_state=0) for _ in range(2))
    for batch in (X[:300], X[300:600], X[600:900], np.vstack([far, X[900:1500]]), X[1500:1700]):
        for model in (asked, silent):
            model.partial_fit(batch)
        np.testing.assert_array_equal(asked.outlier_pvalues_, asked.outlier_pvalues(batch))
        found = asked.outliers(far)
    np.testing.assert_array_equal(silent.outlier_pvalues_, asked.outlier_pvalues_)
    np.testing.assert_array_equal(silent.outliers(far), found)
    again = pickle.loads(pickle.dumps(silent.partial_fit(X[:100])))
    np.testing.assert_array_equal(again.outlier_pvalues_, again.outlier_pvalues(X[:100]))
    for model in (asked, silent):
        model.fit(X[:1000])
        np.testing.assert_array_equal(model.outlier_pvalues_, model.outlier_pvalues(X[:1000]))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("share_missing", [0.0, 0.2])
def test_native_and_reference_engine_find_the_same_drift(dtype, share_missing):
    rows = np.where(np.random.default_rng(0).random(X.shape) < [0.0, share_missing, share_missing], np.nan, X)
    rows = rows.astype(dtype)
    models = [started(engine=engine).partial_fit(rows[1000:]) for engine in ("native", "reference")]
    ours, reference = (model.drift_pvalues_ for model in models)
    np.testing.assert_allclose(ours, reference, rtol=1e-3 if dtype == "f4" else 1e-9)


def test_outliers_of_a_stream_are_flagged_by_its_latest_rows():
    rng = np.random.default_rng(0)
    model = streamed(MiniBatchTKMeans(4, init_size=500, random_state=0), X[:2000], 250)
    far = rng.uniform(-300, 300, (400, 3))
    mixed = np.vstack([X[2000:], far])[rng.permutation(2400)]
    streamed(model, mixed, 240)
    assert model.outliers(far).mean() > 0.97
    assert model.outliers(X).mean() < 0.01


def test_fit_restarts_a_stream_and_partial_fit_continues_it():
    model = streamed(MiniBatchTKMeans(4, init_size=500, random_state=0), X, 500)
    model.fit(X[:1000, :2])
    fresh = MiniBatchTKMeans(4, init_size=500, random_state=0).fit(X[:1000, :2])
    for part in (X[1000:1100, :2], X[1100:1300, :2]):
        model.partial_fit(part)
        fresh.partial_fit(part)
    np.testing.assert_array_equal(model.cluster_centers_, fresh.cluster_centers_)
    assert model.n_samples_seen_ == 1300


def test_a_pickled_stream_continues_as_the_original():
    model = streamed(MiniBatchTKMeans(4, random_state=0), X[:600], 200)  # some rows still wait
    other = pickle.loads(pickle.dumps(model))
    for half in (X[600:2400], X[2400:]):
        streamed(model, half, 200)
        other = pickle.loads(pickle.dumps(streamed(other, half, 200)))
    np.testing.assert_array_equal(model.cluster_centers_, other.cluster_centers_)


def test_the_number_of_threads_changes_no_bit_of_a_stream():
    rows = np.tile(X, (6, 1))
    one, two = (
        MiniBatchTKMeans(4, batch_size=10_000, n_jobs=n_jobs, random_state=0).fit(rows).partial_fit(rows)
        for n_jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.drift_pvalues_, two.drift_pvalues_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"init_size": 0}, "init_size must be an integer of at least 1, got 0"),
        ({"max_no_improvement": 0}, "max_no_improvement must be an integer of at least 1, got 0"),
        ({"half_life": -3}, "half_life must be a positive number of rows, or None, got -3"),
        ({"dof": -1.0}, "dof must be a positive number"),
    ],
)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_an_invalid_parameter_of_minibatch_is_an_error_with_its_name_and_value(options, message, method):
    with pytest.raises(ValueError, match=message):
        getattr(MiniBatchTKMeans(4).set_params(**options), method)(X)


# ---- streams that change ---------------------------------------------------------------------


def test_with_a_half_life_centres_follow_rows_that_move_and_without_one_they_lag():
    rng = np.random.default_rng(0)
    follower = MiniBatchTKMeans(4, half_life=1000, random_state=0).fit(X)
    keeper = MiniBatchTKMeans(4, random_state=0).fit(X)
    shift = np.zeros(3)
    for _ in range(40):
        shift += [0.02, 0.0, 0.0]
        batch = X[rng.choice(len(X), 500)] + shift
        follower.partial_fit(batch)
        keeper.partial_fit(batch)
    assert nearest_distance(follower.cluster_centers_, CENTERS + shift).max() < 0.1
    assert nearest_distance(keeper.cluster_centers_, CENTERS + shift).min() > 0.2
    assert keeper.center_drift_.min() > 0.2  # and it shows
    assert keeper.drift_pvalues_.max() < 1e-6
    assert keeper.lower_bounds_[-1] < keeper.lower_bounds_[-40] - 0.5


def draws(rng, n, kind):
    """Rows around CENTERS: as the model has them, or with clusters of unequal width and 10 % Cauchy noise."""
    labels = rng.integers(4, size=n)
    noise = rng.standard_normal((n, 3))
    if kind == "model":
        return CENTERS[labels] + 0.1 * noise / np.sqrt(rng.chisquare(4, (n, 1)) / 4)
    rows = CENTERS[labels] + noise * np.array([0.03, 0.05, 0.1, 0.2])[labels][:, None]
    stray = rng.random(n) < 0.1
    rows[stray] = 3 * rng.standard_cauchy((stray.sum(), 3))
    return rows


@pytest.mark.parametrize("kind", ["model", "unequal and noisy"])
def test_without_drift_drift_pvalues_are_uniform(kind):
    rng = np.random.default_rng(0)
    model = MiniBatchTKMeans(4, batch_size=100, random_state=0).fit(draws(rng, 50_000, kind))
    pvalues = []
    for _ in range(60):
        streamed(model, draws(rng, 1000, kind), 200)  # ten half-lives: all but independent of the last
        pvalues.append(model.drift_pvalues_)
    assert stats.kstest(np.ravel(pvalues), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("kind", ["model", "unequal and noisy"])
def test_a_cluster_that_moves_is_the_only_one_with_small_drift_pvalues(kind):
    rng = np.random.default_rng(1)
    model = MiniBatchTKMeans(4, batch_size=500, random_state=0).fit(draws(rng, 20_000, kind))
    moving = int(model.predict(CENTERS[2:3])[0])
    for _ in range(3):
        rows = draws(rng, 1000, kind)
        rows[np.linalg.norm(rows - CENTERS[2], axis=1) < 1] += 0.05
        model.partial_fit(rows)
    assert model.drift_pvalues_[moving] < 1e-6
    assert np.all(np.delete(model.drift_pvalues_, moving) > 1e-3)
    moved = 0.05 * np.sqrt(3)
    assert 0.4 * moved < model.center_drift_[moving] < 1.1 * moved


def test_a_cluster_that_grows_has_the_largest_recent_size():
    model = started(batch_size=200)
    np.testing.assert_allclose(model.recent_sizes_, 0)
    np.testing.assert_allclose(model.cluster_sizes_.sum(), 1000)
    streamed(model, X[model.predict(X) == 2], 200)
    assert model.recent_sizes_[2] > 0.99 * model.recent_sizes_.sum()
    assert model.cluster_sizes_[2] < 0.9 * model.cluster_sizes_.sum()
