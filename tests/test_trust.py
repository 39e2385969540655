"""Answers and files that can be trusted: extreme values, copies, limits of time, types, weights of 0, foreign files."""

import os
import re
import stat
import threading
import warnings
from unittest import mock

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from support.model_inputs import t_mixture

import tkmeans
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.atomic import replacing
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.sources import ArraySource
from tkmeans.tables.table import unique_names

X, LABELS, CENTERS = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)
ESTIMATORS = [TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture, KMedians, KMedoids]
NO_DATA = -1.797e308  # a usual mark for a missing value


@pytest.fixture(autouse=True)
def no_warning_of_another_library():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


# ---- extreme values ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1e150, NO_DATA, -NO_DATA])
def test_one_row_at_the_end_of_all_numbers_does_not_change_the_selected_number_of_clusters(value):
    rows = np.vstack([X, [value, value]])
    found = tkmeans.select_n_clusters(rows, range(1, 6), random_state=0)
    assert found.best == 3
    assert np.all(np.isfinite(found.icl[found.n_clusters >= 2]))


@pytest.mark.parametrize("value", [1e150, NO_DATA])
def test_one_row_at_the_end_of_all_numbers_does_not_change_the_stability_of_the_clusters(value):
    rows = np.vstack([X, [value, value]])
    found = tkmeans.stability(TKMeans(3, random_state=0), rows, n_resamples=5, random_state=0)
    assert found.mean.min() > 0.95


def test_a_report_of_rows_with_one_at_the_end_of_all_numbers_has_no_number_that_is_none(tmp_path):
    rows = np.vstack([X, [NO_DATA, NO_DATA]])
    page = tkmeans.write_report(tmp_path / "report.html", TKMeans(3, random_state=0).fit(rows), rows).read_text()
    words = page.partition("<script>")[0]
    assert not re.search(r"\b(nan|inf|Infinity)\b", re.sub(r"<style>.*?</style>", "", words, flags=re.DOTALL))


# ---- checkpoints that are not theirs --------------------------------------------------------------


@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans, StudentTMixture])
def test_a_clone_does_not_write_to_the_checkpoint_of_the_original(Estimator, tmp_path):
    original = Estimator(3, checkpoint=tmp_path / "fit.npz")
    assert clone(original).checkpoint is None
    assert clone(make_pipeline(RobustScaler(), original))[-1].checkpoint is None
    assert original.checkpoint == tmp_path / "fit.npz"


def test_functions_that_fit_copies_leave_the_checkpoint_of_a_fit_as_it_was(tmp_path):
    path = tmp_path / "fit.npz"
    model = TKMeans(3, random_state=0, checkpoint=path).fit(X)
    before = path.read_bytes(), path.stat().st_mtime_ns
    tkmeans.stability(model, X, n_resamples=2, random_state=0)
    tkmeans.select_n_clusters(X, [2, 3], estimator=model, random_state=0)
    tkmeans.breakdown_curve(model, X, fractions=[0.1], n_draws=1, random_state=0)
    tkmeans.influence_curve(model, X, distances=[3.0])
    GridSearchCV(model, {"n_clusters": [2, 3]}, cv=2).fit(X)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


# ---- time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans, StudentTMixture])
def test_a_fit_whose_time_is_up_makes_no_more_than_a_few_passes_over_the_rows(Estimator):
    rows = np.random.default_rng(0).normal(size=(20_000, 4))
    passes = []

    def counted(method):
        honest = getattr(ArraySource, method)

        def count(source, *args):
            passes.extend([method] * (source.n_rows == len(rows)))  # and not of a sample
            return honest(source, *args)

        return mock.patch.object(ArraySource, method, count)

    with counted("reduce"), counted("collect"), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # that time was up, and of what that led to
        Estimator(40, max_time=1e-9, random_state=0).fit(rows)
    assert len(passes) <= 12  # a start, an iteration and the labels; the start of a mixture is a fit of its own


# ---- types ------------------------------------------------------------------------------------------

FLOATS = [np.float16, np.float32, np.float64, np.longdouble]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]


@pytest.mark.parametrize("kind", [*FLOATS, *INTEGERS, bool, object], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_weights_of_one_in_any_type_are_no_weights(Estimator, kind):
    plain = Estimator(3, random_state=0).fit(X)
    weighted = Estimator(3, random_state=0).fit(X, sample_weight=np.ones(len(X), kind))
    np.testing.assert_allclose(_centers(weighted), _centers(plain), rtol=1e-9)


@pytest.mark.parametrize("integer", INTEGERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_the_number_of_clusters_may_be_an_integer_of_any_width(Estimator, integer):
    narrow, plain = (Estimator(kind(3), random_state=0).fit(X) for kind in (integer, int))
    np.testing.assert_array_equal(_centers(narrow), _centers(plain))


def _centers(model):
    return getattr(model, "cluster_centers_", getattr(model, "means_", None))


# ---- rows of weight 0 ---------------------------------------------------------------------------------

FEW, WILD = X[::13], np.array([[1e6, -1e6], [0.0, 1e9], [3.0, 3.0]])
PADDED, WEIGHT = np.vstack([WILD, FEW]), np.r_[np.zeros(3), np.ones(len(FEW))]


@pytest.mark.parametrize("Estimator", ESTIMATORS)
def test_rows_of_weight_zero_change_no_fitted_number(Estimator):
    """Few rows, where their number decides the bounds of the dof."""
    alone = Estimator(2, random_state=0).fit(FEW)
    beside = Estimator(2, random_state=0).fit(PADDED, sample_weight=WEIGHT)
    np.testing.assert_allclose(_centers(beside), _centers(alone), rtol=1e-9, atol=1e-12)
    for name in ("dof_", "scale_", "cluster_weights_", "weights_", "covariances_", "inertia_", "n_iter_"):
        if hasattr(alone, name):
            np.testing.assert_allclose(getattr(beside, name), getattr(alone, name), rtol=1e-6, err_msg=name)
    assert beside.score(PADDED, sample_weight=WEIGHT) == pytest.approx(alone.score(FEW))


def test_rows_of_weight_zero_do_not_change_a_selection():
    rows, weight = np.vstack([WILD, X]), np.r_[np.zeros(3), np.ones(len(X))]
    alone = tkmeans.select_n_clusters(X, range(1, 5), random_state=0)
    beside = tkmeans.select_n_clusters(rows, range(1, 5), sample_weight=weight, random_state=0)
    assert beside.best == alone.best
    np.testing.assert_allclose(beside.icl, alone.icl, rtol=1e-9)
    np.testing.assert_allclose(beside.outlier_fraction, alone.outlier_fraction, atol=1e-12)


def test_rows_of_weight_zero_teach_a_stream_nothing():
    alone, beside = (MiniBatchTKMeans(3, init_size=60, random_state=0).partial_fit(X) for _ in range(2))
    alone.partial_fit(X[:20])
    beside.partial_fit(np.vstack([WILD, X[:20]]), sample_weight=np.r_[np.zeros(3), np.ones(20)])
    np.testing.assert_allclose(beside.cluster_centers_, alone.cluster_centers_, rtol=1e-12)
    assert (beside.dof_, beside.scale_) == pytest.approx((alone.dof_, alone.scale_), rel=1e-12)


# ---- names and files ------------------------------------------------------------------------------------


def test_a_header_with_one_name_very_often_is_read_in_linear_time():
    """With a search from 2 on for each, two hundred thousand names would take hours."""
    names, notes = unique_names(["a", "a_2", ""] * 70_000)
    assert len(set(names)) == len(names) == 210_000
    assert len(notes) == 6


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
def test_writing_a_file_never_touches_the_umask_of_the_process(tmp_path):
    with mock.patch("os.umask", side_effect=AssertionError("other threads would write with another mask")):
        with replacing(tmp_path / "new") as file:
            file.write(b"new")
        (tmp_path / "private").write_bytes(b"old")
        (tmp_path / "private").chmod(0o600)
        with replacing(tmp_path / "private") as file:
            (part,) = tmp_path.glob(".private.*.part")
            assert stat.S_IMODE(part.stat().st_mode) == 0o600  # from the first byte on
            file.write(b"new")
    (tmp_path / "usual").write_bytes(b"")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


def test_files_that_are_written_by_many_threads_at_once_are_whole(tmp_path):
    def write(number):
        for _ in range(20):
            with replacing(tmp_path / "one") as file:
                file.write(bytes([number]) * 1000)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    content = (tmp_path / "one").read_bytes()
    assert content == content[:1] * 1000
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


@pytest.mark.parametrize("kind", [str, complex, "M8[s]"])
def test_a_dask_partition_that_holds_something_else_than_was_declared_is_refused(kind):
    da = pytest.importorskip("dask.array")
    import dask

    parts = [da.from_delayed(dask.delayed(X[:60].astype)(each), (60, 2), float) for each in (float, kind)]
    with pytest.raises(RuntimeError, match="partition 1 of X cannot be looked at: TypeError: it holds"):
        TKMeans(2).fit(da.concatenate(parts))


def test_a_partition_of_text_in_a_dask_dataframe_that_declares_floats_is_refused():
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    spoiled = dd.from_pandas(frame, npartitions=2).map_partitions(
        lambda part: part.astype({"a": str}) if part.index[0] else part, meta=frame.iloc[:0]
    )
    with pytest.raises(
        RuntimeError, match="partition 1 of X cannot be looked at: TypeError: it in column 'a' holds text"
    ):
        TKMeans(2).fit(spoiled)


def test_a_feather_file_whose_text_points_outside_of_it_is_refused(tmp_path):
    """Arrow would read there, and the process end."""
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / "t.feather"
    table = pa.table({"x": X[:, 0], "word": ["a"] * len(X)})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    offsets = np.arange(len(X) + 1, dtype=np.int32).tobytes()
    data = path.read_bytes()
    assert data.count(offsets) == 1
    path.write_bytes(data.replace(offsets, (np.arange(len(X) + 1, dtype=np.int32) * 10**7).tobytes()))
    with pytest.raises((ValueError, OSError), match=r"t\.feather"):
        TKMeans(2).fit(path)


def test_neither_views_nor_names_in_a_duckdb_database_read_other_files(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n" + "".join(f"{x},{y}\n" for x, y in X))
    query = f"SELECT * FROM read_csv('{secret}')"
    for name, statement in {
        "view": f"CREATE VIEW t AS {query}",
        "name": f'CREATE TABLE "{query}" AS SELECT 1 AS x',
    }.items():
        with duckdb.connect(str(tmp_path / f"{name}.duckdb")) as base:
            base.execute(statement)
        with pytest.raises(
            ValueError, match=rf"{name}\.duckdb (cannot be read|has no column of numbers)|n_samples=1 should"
        ):
            TKMeans(2).fit(tmp_path / f"{name}.duckdb")


@pytest.mark.parametrize("dof", [1.0, 1e6, 1e12, 1e300])
def test_labels_are_the_most_probable_clusters_with_any_degrees_of_freedom(dof):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(90, 3)) + np.repeat([[0.0], [6.0], [12.0]], [50, 30, 10], axis=0)
    model = TKMeans(3, dof=dof, cluster_weights="estimate").fit(rows)
    np.testing.assert_array_equal(model.predict(rows), model.predict_proba(rows).argmax(axis=1))
    np.testing.assert_array_equal(np.bincount(model.labels_), [50, 30, 10])
