"""Sparse rows: the answers of dense rows, without their zeros in memory."""

import subprocess
import sys
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.sources.base import BLOCK_ROWS

ESTIMATORS = [
    TKMeans(3),
    TKMeans(3, cluster_weights="estimate", init="random", n_init=2),
    TKMeans(3, dof=1.0, init="k-means++"),
    TKMeans(3, engine="reference"),
    FastTKMeans(3),
    MiniBatchTKMeans(3),
    MiniBatchTKMeans(3, init_size=100, batch_size=50, max_iter=3),
]
ANSWERS = ("predict_proba", "transform", "score_samples", "robust_weights", "outlier_pvalues", "assignment_entropy")


def rows(seed=0, n=400, p=8):
    """Three clusters in different columns, most values zero, one column without zeros, and three far rows."""
    rng = np.random.default_rng(seed)
    X = 0.3 * rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.4)
    X[: n // 2, 0] += 4
    X[n // 2 : n // 2 + n // 4, 1] += 5
    X[:, p - 1] = 2 + 0.1 * rng.standard_normal(n)
    X[:3, 2] = [80, -90, 100]
    return X


def quiet(model, *data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.set_params(random_state=0).fit(*data, **options)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
@pytest.mark.parametrize("weighted", [False, True], ids=["rows", "weights"])
def test_sparse_rows_have_the_clusters_of_dense_ones_to_nine_digits(estimator, weighted):
    X = rows()
    weight = np.random.default_rng(1).random(len(X)) if weighted else None
    dense = quiet(estimator, X, sample_weight=weight)
    centers, labels = dense.cluster_centers_, dense.labels_
    sparse = quiet(estimator, scipy.sparse.csr_array(X), sample_weight=weight)
    np.testing.assert_allclose(sparse.cluster_centers_, centers, atol=1e-9 * np.ptp(X))
    np.testing.assert_array_equal(sparse.labels_, labels)


def test_a_model_answers_for_sparse_rows_what_it_answers_for_dense_ones():
    X = rows()
    S, model = scipy.sparse.csr_matrix(X), quiet(TKMeans(3), X)
    np.testing.assert_array_equal(model.predict(S), model.predict(X))
    np.testing.assert_array_equal(model.predict(S, outlier_label=-1), model.predict(X, outlier_label=-1))
    np.testing.assert_array_equal(model.outliers(S), model.outliers(X))
    assert model.outliers(S).sum() == 3
    for name in ANSWERS:
        np.testing.assert_allclose(getattr(model, name)(S), getattr(model, name)(X), rtol=1e-9, atol=1e-12)
    for name in ("score", "aic", "bic", "icl"):
        assert getattr(model, name)(S) == pytest.approx(getattr(model, name)(X), rel=1e-12)
    weight = np.arange(len(X)) + 1.0
    assert model.score(S, sample_weight=weight) == pytest.approx(model.score(X, sample_weight=weight), rel=1e-12)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_format_of_scipy_gives_the_same_clusters(form, kind):
    X = rows(n=60)
    S = getattr(scipy.sparse, f"{form}_{kind}")(X)
    expected = quiet(TKMeans(3), scipy.sparse.csr_array(X)).cluster_centers_
    np.testing.assert_array_equal(quiet(TKMeans(3), S).cluster_centers_, expected)


def test_entries_that_stand_twice_are_added_and_the_matrix_stays_as_it_is():
    X = rows(n=60)
    once = scipy.sparse.csr_array(X)
    twice = scipy.sparse.csr_array(
        (np.repeat(once.data / 2, 2), np.repeat(once.indices, 2), 2 * once.indptr), shape=once.shape
    )
    before = twice.data.copy(), twice.indices.copy()
    np.testing.assert_array_equal(quiet(TKMeans(3), twice).cluster_centers_, quiet(TKMeans(3), once).cluster_centers_)
    np.testing.assert_array_equal(twice.data, before[0])
    np.testing.assert_array_equal(twice.indices, before[1])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, bool, np.float32])
def test_numbers_of_every_type_are_read(dtype):
    X = (rows(n=90) > 1).astype(dtype)
    dense, sparse = quiet(TKMeans(3), X), quiet(TKMeans(3), scipy.sparse.csr_array(X))
    assert sparse.cluster_centers_.dtype == (np.float32 if dtype is np.float32 else np.float64)
    assert adjusted_rand_score(dense.labels_, sparse.labels_) == 1


def test_64_bit_indices_are_read():
    S = scipy.sparse.csr_array(rows(n=60))
    wide = S.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_array_equal(quiet(TKMeans(3), wide).cluster_centers_, quiet(TKMeans(3), S).cluster_centers_)


def test_threads_change_no_bit():
    S = scipy.sparse.csr_array(rows(n=500))
    token = BLOCK_ROWS.set(64)
    try:
        one, two = (quiet(TKMeans(3, n_jobs=n_jobs), S) for n_jobs in (1, 2))
    finally:
        BLOCK_ROWS.reset(token)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.outlier_pvalues_, two.outlier_pvalues_)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_missing_or_infinite_are_refused(value):
    S = scipy.sparse.csr_array(rows(n=40))
    S.data[3] = value
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        TKMeans(3).fit(S)


@pytest.mark.parametrize("estimator", [StudentTMixture(2), KMedians(2), KMedoids(2)], ids=repr)
def test_what_needs_every_zero_refuses_sparse_rows_with_the_way_out(estimator):
    with pytest.raises(TypeError, match=r"Sparse data was passed .* Use '\.toarray\(\)'"):
        estimator.fit(scipy.sparse.csr_array(rows(n=40)))


@pytest.mark.parametrize("batch_size", [40, 150])
def test_a_stream_of_sparse_batches_learns_what_one_of_dense_batches_learns(batch_size):
    X = np.random.default_rng(2).permutation(rows(n=600))
    streams = []
    for convert in (np.asarray, scipy.sparse.csr_array):
        model = MiniBatchTKMeans(3, init_size=200, random_state=0)
        for first in range(0, len(X), batch_size):
            model.partial_fit(convert(X[first : first + batch_size]))
        streams.append(model)
    dense, sparse = streams
    np.testing.assert_allclose(sparse.cluster_centers_, dense.cluster_centers_, atol=1e-9)
    np.testing.assert_allclose(sparse.drift_pvalues_, dense.drift_pvalues_, atol=1e-6)


def test_the_first_rows_of_a_stream_are_all_sparse_or_all_dense():
    model = MiniBatchTKMeans(3, random_state=0).partial_fit(rows(n=60))
    with pytest.raises(ValueError, match="all sparse or all dense; convert this batch"):
        model.partial_fit(scipy.sparse.csr_array(rows(n=60)))


def test_a_fit_goes_on_from_a_checkpoint(tmp_path):
    S = scipy.sparse.csr_array(rows())
    whole = TKMeans(3, init="random", n_init=2, random_state=0).fit(S)
    options = {"init": "random", "n_init": 2, "random_state": 0, "checkpoint": tmp_path / "fit.npz"}
    quiet(TKMeans(3, max_iter=2, **options), S)
    again = TKMeans(3, max_iter=2, **options)
    np.testing.assert_array_equal(
        quiet(again, S, resume=tmp_path / "fit.npz").cluster_centers_, quiet(again, S).cluster_centers_
    )
    other = scipy.sparse.csr_array(rows(seed=3))
    with pytest.raises(ValueError, match="is of another fit"):
        again.fit(other, resume=tmp_path / "fit.npz")
    assert whole.converged_


# ---- many more columns than rows ----------------------------------------------------------


def topics(n=600, p=20000, K=4, seed=0, per_row=40):
    """Rows of unit length: half of the entries of each in the thousand columns of its topic."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    own = 1000 * y[:, None] + rng.integers(1000, size=(n, per_row // 2))
    columns = np.hstack([own, rng.integers(p, size=(n, per_row // 2))])
    S = scipy.sparse.csr_array((np.ones(columns.size), columns.ravel(), per_row * np.arange(n + 1)), shape=(n, p))
    S.sum_duplicates()
    lengths = np.sqrt((S * S).sum(axis=1))
    return scipy.sparse.csr_array(scipy.sparse.diags_array(1 / lengths) @ S), y


def test_topics_in_many_more_columns_than_rows_are_found():
    S, y = topics()
    model = quiet(TKMeans(4), S)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert model.dof_ == 10 * S.shape[1]  # decision 22
    assert np.all(np.isfinite(model.outlier_pvalues_))


@pytest.mark.parametrize("init", ["k-means++", "random", "array", "callable"])
def test_many_columns_are_fitted_from_every_start(init):
    S, y = topics(n=300)
    means = np.vstack([S[y == k].mean(axis=0) for k in range(4)])
    start = {"array": means, "callable": lambda X, K, random_state: means}.get(init, init)
    model = quiet(TKMeans(4, init=start, n_init=1), S)
    assert model.cluster_centers_.shape == (4, S.shape[1])
    assert len(set(model.labels_)) == 4
    if init in ("array", "callable"):  # the others leave it to chance
        assert adjusted_rand_score(y, model.labels_) > 0.95


def test_far_rows_among_many_columns_do_not_move_the_clusters():
    S, y = topics()
    drawn = {"random_state": np.random.default_rng(0)}  # "rng" since SciPy 1.15
    far = scipy.sparse.random_array((20, S.shape[1]), density=0.002, **drawn) * 1000
    model = quiet(TKMeans(4), scipy.sparse.vstack([S, far], format="csr"))
    assert adjusted_rand_score(y, model.labels_[: len(y)]) > 0.95
    assert model.outliers(S).mean() < 0.01
    assert model.outliers(scipy.sparse.csr_array(far)).all()


@pytest.mark.parametrize("streamed", [False, True])
def test_batches_of_many_columns_find_the_topics(streamed):
    S, y = topics(n=1200)
    model = MiniBatchTKMeans(4, init_size=400, batch_size=200, random_state=0)
    for first in range(0, S.shape[0], 200) if streamed else ():
        model.partial_fit(S[first : first + 200])
    model = model if streamed else quiet(model, S)
    assert adjusted_rand_score(y, model.predict(S)) > 0.95
    assert model.dof_ == 10 * S.shape[1]


@pytest.mark.parametrize("hostile", ["zeros", "huge", "rows of zeros"])
def test_strange_rows_among_many_columns_give_finite_centres(hostile):
    S, _ = topics(n=300)
    zeros = scipy.sparse.csr_array(S.shape)
    more = {"zeros": [], "huge": [S, 1e200 * S[:3]], "rows of zeros": [S]}[hostile]
    S = scipy.sparse.vstack([zeros, *more], format="csr")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # our own, but not NumPy's
        model = TKMeans(4).fit(S)
    assert np.all(np.isfinite(model.cluster_centers_))
    assert np.all(np.isfinite(model.transform(S)))


def test_the_order_of_rows_among_many_columns_makes_no_difference():
    S, _ = topics()
    order = np.random.default_rng(0).permutation(S.shape[0])
    one, other = quiet(TKMeans(4), S).labels_, quiet(TKMeans(4), S[order]).labels_
    np.testing.assert_array_equal(one[order], other)


def test_the_zeros_of_many_columns_are_never_in_memory():
    S, _ = topics(n=3000, p=20000)
    quiet(TKMeans(4), S[:100])  # what is imported once
    tracemalloc.start()
    quiet(TKMeans(4), S)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * S.shape[0] * S.shape[1]


# ---- damaged matrices, frames, and few distinct rows ---------------------------------------------

X, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)


def test_a_sparse_matrix_with_an_index_beyond_its_shape_is_refused_and_crashes_nothing():
    code = """
import scipy.sparse as sparse
from tkmeans import TKMeans
for format in ("csr", "csc", "coo"):
    A = sparse.random(50, 20, 0.3, format=format, random_state=0)
    model = TKMeans(2).fit(A)
    (A.col if format == "coo" else A.indices)[3] = 99_999_999
    for call in (model.fit, model.predict):
        try:
            call(A)
        except ValueError as error:
            print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.count("X is a damaged sparse matrix") == 6


def test_a_sparse_matrix_whose_rows_begin_beyond_its_entries_is_refused_and_not_changed():
    A = sparse.random(50, 20, 0.3, format="csr", random_state=0)
    A.indptr[3] = 99_999_999
    data = A.data
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        TKMeans(2).fit(A)
    assert A.data is data


def test_a_frame_of_sparse_columns_gives_the_clusters_of_the_sparse_matrix():
    pandas = pytest.importorskip("pandas")
    A = sparse.random(60, 4, 0.5, format="csr", random_state=0)
    frame = pandas.DataFrame.sparse.from_spmatrix(A, columns=list("abcd"))
    model = TKMeans(2, random_state=0).fit(frame)
    assert list(model.feature_names_in_) == list("abcd")
    assert np.array_equal(model.predict(frame), TKMeans(2, random_state=0).fit(A).labels_)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_nan_in_sparse_rows_is_named_with_the_way_out(form):
    rows = sparse.csr_array(np.where(np.quantile(X, 0.99) < X, np.nan, X)).asformat(form)
    with pytest.raises(ValueError, match=r"contains NaN, but sparse rows.*X\.toarray\(\)"):
        TKMeans(3).fit(rows)


@pytest.mark.parametrize("n_distinct", [1, 2, 5, 12])
@pytest.mark.parametrize("estimator", [TKMeans(2), FastTKMeans(2), MiniBatchTKMeans(2)])
def test_wide_sparse_rows_of_which_few_are_distinct_have_the_clusters_of_dense_ones(estimator, n_distinct):
    X = sparse.csr_array(np.eye(n_distinct, 1100)[np.arange(200) % n_distinct])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of one distinct row
        labels = clone(estimator).fit(X).labels_
    assert len({*zip((np.arange(200) % n_distinct).tolist(), labels.tolist(), strict=True)}) == n_distinct
    assert len({*labels.tolist()}) == min(n_distinct, 2)
