"""Dask: lazy answers, one small result per pass, and partitions that fail by name."""

import os
import pickle
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from support.model_inputs import t_mixture, three_groups

from tkmeans import StudentTMixture, TKMeans
from tkmeans.plots import ClustersDisplay

dask = pytest.importorskip("dask", reason="needs the extra dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

from tkmeans.sources.dask import DaskSource  # noqa: E402

X, _, CENTERS = t_mixture(n=12_000, n_clusters=4, n_features=3, scale=0.05)
MODEL = TKMeans(4, init=CENTERS)


def lazily(rows, n_parts, prepare=lambda number, part: part):
    """A dask array whose chunks are made when they are asked for."""
    parts = [
        da.from_delayed(dask.delayed(prepare)(i, part), part.shape, part.dtype)
        for i, part in enumerate(np.array_split(rows, n_parts))
    ]
    return da.concatenate(parts)


def corrupt(number, part):
    if number == 2:
        raise OSError("the footer of the file is missing")
    return part


def test_predictions_of_dask_arrays_are_lazy_and_computed_by_chunks():
    model = MODEL.fit(X)
    data = lazily(X, 4, corrupt)
    answers = [model.predict(data), model.transform(data), model.predict_proba(data), model.outlier_pvalues(data)]
    assert [answer.shape for answer in answers] == [(12_000,), (12_000, 4), (12_000, 4), (12_000,)]
    np.testing.assert_array_equal(answers[0][:6000], model.labels_[:6000])  # chunks 0 and 1 are fine
    with pytest.raises(OSError, match="the footer"):
        answers[0].compute()


def test_only_small_results_leave_the_dask_workers(monkeypatch):
    gathered = []
    honest = DaskSource._compute

    def compute(self, tasks):
        found = honest(self, tasks)
        gathered.append(sum(getattr(part, "nbytes", 8) for record in found for part in record))
        return found

    monkeypatch.setattr(DaskSource, "_compute", compute)
    rows = np.tile(X, (5, 1))
    model = TKMeans(4, random_state=0, cluster_weights="equal").fit(lazily(rows, 8))
    assert max(gathered) <= 8192 * 4 * 8  # the rows that are measured; the data are 1.4 MB
    # Survey, frame, sample and review are one pass each; so is every step, and an extrapolation that was rejected.
    assert len(gathered) < 4 + 2 * (model.n_iter_ + 1)
    assert max(gathered[3:-2]) < 2000


@pytest.mark.parametrize("scheduler", ["sync", "threads"])
def test_a_dask_partition_that_cannot_be_computed_is_an_error_with_its_number(scheduler):
    with (
        dask.config.set(scheduler=scheduler),
        pytest.raises(RuntimeError, match="partition 2 of X cannot be computed: OSError: the footer of the file"),
    ):
        MODEL.fit(lazily(X, 4, corrupt))


def test_a_dask_partition_of_the_wrong_shape_is_an_error_with_its_number():
    def short(number, part):
        return part[:, :2] if number == 1 else part

    with pytest.raises(RuntimeError, match="partition 1 of X cannot be looked at: ValueError"):
        MODEL.fit(lazily(X, 4, short))


def test_predict_with_out_refuses_a_dask_collection_and_names_the_way_to_store_it(tmp_path):
    model = TKMeans(4, init=CENTERS).fit(X)
    with pytest.raises(TypeError, match="store what a dask collection gives with dask"):
        model.predict(da.from_array(X, chunks=(500, -1)), out=tmp_path / "labels.parquet")
    assert not list(tmp_path.iterdir())


def test_dask_partitions_may_be_empty():
    frame = dd.from_pandas(__import__("pandas").DataFrame(X, columns=list("abc")), npartitions=3)
    without_middle = frame.map_partitions(lambda part: part[part.index % 3 == 0] if part.index[0] else part.iloc[:0])
    rows = without_middle.compute().to_numpy()
    ours, theirs = MODEL.fit(without_middle).cluster_centers_, TKMeans(4, init=CENTERS).fit(rows).cluster_centers_
    np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    np.testing.assert_array_equal(MODEL.labels_.compute(), TKMeans(4, init=CENTERS).fit(rows).labels_)


def test_sample_weights_may_be_dask_arrays_and_series_of_the_same_partitions():
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    expected = TKMeans(4, init=CENTERS).fit(X, sample_weight=weight).cluster_centers_
    pd = pytest.importorskip("pandas")
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(w=weight), npartitions=3)
    pairs = [(da.from_array(X, chunks=(5000, 3)), da.from_array(weight, chunks=4000)), (frame[list("abc")], frame["w"])]
    for rows, weights in pairs:
        np.testing.assert_allclose(MODEL.fit(rows, sample_weight=weights).cluster_centers_, expected, rtol=1e-9)
    with pytest.raises(ValueError, match="sample_weight has 2 partitions and X has 3"):
        MODEL.fit(frame[list("abc")], sample_weight=frame["w"].repartition(npartitions=2))


@pytest.mark.parametrize("beyond", [1e-60, 1e60])
def test_dask_sample_weights_are_validated_before_the_conversion_to_single_precision(beyond):
    weight = np.where(np.arange(len(X)) < 500, beyond, 1.0)
    with pytest.raises(ValueError, match=r"between 1e-20 and 1e\+10 for rows of float32"):
        MODEL.fit(
            da.from_array(X.astype(np.float32), chunks=(5000, 3)), sample_weight=da.from_array(weight, chunks=5000)
        )


def test_columns_of_a_dask_dataframe_are_found_by_name_and_text_is_refused():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc")).assign(name="row")
    model = MODEL.fit(dd.from_pandas(frame[list("abc")], npartitions=2))
    shuffled = dd.from_pandas(frame[["name", "c", "a", "b"]], npartitions=2)
    np.testing.assert_array_equal(model.predict(shuffled), model.labels_)
    with pytest.raises(ValueError, match=r"column 'name' of the dask dataframe holds .*not numbers; leave it out"):
        TKMeans(4).fit(shuffled)
    with pytest.raises(ValueError, match="the dask dataframe has no column 'b'; it has 'a', 'c'"):
        model.predict(dd.from_pandas(frame[["a", "c"]], npartitions=2))


def test_tkmeans_works_in_a_pipeline_of_dask_ml():
    preprocessing = pytest.importorskip("dask_ml.preprocessing", reason="dask-ml is not installed")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    ours = make_pipeline(preprocessing.StandardScaler(), TKMeans(4, random_state=0)).fit(da.from_array(X, chunks=3000))
    theirs = make_pipeline(StandardScaler(), TKMeans(4, random_state=0)).fit(X)
    np.testing.assert_allclose(ours[-1].cluster_centers_, theirs[-1].cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(ours.predict(da.from_array(X, chunks=3000)).compute(), theirs.predict(X))


# ---- a cluster of processes ----------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    with (
        dask.config.set({"distributed.worker.memory.terminate": False, "distributed.admin.log-format": "%(message)s"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def slowly(number, part):
    time.sleep(0.03)
    return part


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_dask_worker_does_not_change_the_fit(client, tmp_path):
    options = {"init": X[:4], "tol": 0, "max_iter": 8, "cluster_weights": "equal"}
    data = lazily(X, 8, slowly)
    whole = TKMeans(4, **options).fit(data)
    victims = []

    honest = DaskSource.reduce

    def reduce(self, summarize):
        victims.append(1)
        if len(victims) == 6:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        return honest(self, summarize)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DaskSource, "reduce", reduce)
        again = TKMeans(4, **options).fit(data)
    assert len(victims) > 6
    np.testing.assert_array_equal(again.cluster_centers_, whole.cluster_centers_)
    np.testing.assert_array_equal(again.labels_.compute(), whole.labels_.compute())


def greedily(number, part):
    if number == 2:
        held = np.ones(1 << 27)  # a gigabyte
        time.sleep(10 * held[0])
    return part


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_partition_that_needs_more_memory_than_a_worker_has_fails_and_the_estimator_is_as_before():
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    model = TKMeans(4, init=CENTERS).fit(X)
    before = model.cluster_centers_.copy()
    settings = {"distributed.scheduler.allowed-failures": 0, "distributed.worker.memory.terminate": 0.9}
    limits = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "memory_limit": "700MB"}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(**limits, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        with pytest.raises(distributed.scheduler.KilledWorker):
            model.fit(lazily(X, 4, greedily))
        np.testing.assert_array_equal(model.cluster_centers_, before)
        np.testing.assert_allclose(model.fit(lazily(X, 4)).cluster_centers_, before)  # the cluster works on


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_lost_scheduler_is_the_error_of_dask_and_the_estimator_is_as_before(tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs the extra dask")
    model = TKMeans(4, init=CENTERS).fit(X)
    before, passes, honest = model.cluster_centers_.copy(), [], DaskSource.reduce
    where = ["--scheduler-file", str(tmp_path / "scheduler.json"), "--no-dashboard"]
    programs = {"scheduler": ["--port", "0"], "worker": ["--no-nanny", "--nthreads", "1", "--death-timeout", "5"]}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.dask_{name}", *where, *options], **quiet)
        for name, options in programs.items()
    ]

    def reduce(self, summarize):
        passes.append(1)
        if len(passes) == 3:
            running[0].kill()
        return honest(self, summarize)

    waits = {"distributed.client.scheduler-info-interval": "1s", "distributed.comm.timeouts.connect": "2s"}
    try:
        with dask.config.set(waits), pytest.MonkeyPatch.context() as patch:
            client = distributed.Client(scheduler_file=where[1], timeout=60)
            client.wait_for_workers(1, timeout=60)
            client._timeout = 3  # to find the scheduler again
            patch.setattr(DaskSource, "reduce", reduce)
            with pytest.raises(distributed.client.FutureCancelledError):
                model.fit(lazily(X, 4))
            client.close(timeout=2)
    finally:
        for process in running:
            process.kill()
            process.wait()
    assert len(passes) >= 3
    np.testing.assert_array_equal(model.cluster_centers_, before)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_corrupt_file_is_an_error_with_the_number_of_its_partition_and_the_dask_cluster_works_on(client, tmp_path):
    pd = pytest.importorskip("pandas")
    for i, part in enumerate(np.array_split(X, 4)):
        pd.DataFrame(part, columns=list("abc")).to_parquet(tmp_path / f"part{i}.parquet")
    data = dd.read_parquet(tmp_path)
    damaged = tmp_path / "part3.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-1000])
    assert data.npartitions == 4
    with pytest.raises(RuntimeError, match="partition 3 of X cannot be computed"):
        MODEL.fit(data)
    assert client.submit(sum, [1, 2]).result() == 3
    sound = lazily(X, 4)
    np.testing.assert_allclose(MODEL.fit(sound).cluster_centers_, TKMeans(4, init=CENTERS).fit(X).cluster_centers_)


# ---- values, weights and pickles -----------------------------------------------------------------

SPACE, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)
QUESTIONS = ["predict", "score_samples", "transform", "outliers", "score", "bic"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_infinite_values_of_new_rows_in_a_dask_collection_are_refused_with_the_partition(question):
    da = pytest.importorskip("dask.array")
    model, X = TKMeans(3).fit(three_groups()), da.from_array(three_groups((150, 1, -np.inf)), chunks=(100, 4))
    with pytest.raises(RuntimeError, match=r"partition 1 of X .* infinite values in feature 1"):
        np.asarray(getattr(model, question)(X))


def test_masked_values_are_missing_in_dask_collections_and_pictures_too():
    dask_array, pyplot = pytest.importorskip("dask.array"), pytest.importorskip("matplotlib.pyplot")
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(60, 2)), rng.normal(size=(40, 2)) + 8]
    mask = rng.random(X.shape) < 0.1
    masked = np.ma.array(np.where(mask, -999.0, X), mask=mask)
    whole = TKMeans(2).fit(np.where(mask, np.nan, X))
    of_dask = TKMeans(2).fit(dask_array.from_array(masked, chunks=(50, 2), asarray=False))
    np.testing.assert_allclose(of_dask.cluster_centers_, whole.cluster_centers_, atol=1e-6)
    display = ClustersDisplay.from_estimator(whole, masked)
    assert display.ax_.get_xlim()[0] > -20
    pyplot.close(display.figure_)


def test_weights_of_another_number_of_rows_in_dask_are_refused_in_our_words():
    da = pytest.importorskip("dask.array")
    X = da.from_array(three_groups(), chunks=(100, 4))
    with pytest.raises(ValueError, match=r"sample_weight must have shape \(300,\), one weight per row, got \(299,\)"):
        TKMeans(3).fit(X, sample_weight=da.ones(299, chunks=100))


@pytest.mark.parametrize("Estimator", [TKMeans, StudentTMixture])
def test_an_estimator_fitted_on_a_dask_collection_can_be_pickled(Estimator):
    rows = pytest.importorskip("dask.array").from_array(SPACE, chunks=(50, 3))
    model = Estimator(3).fit(rows)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.labels_.compute(), model.labels_.compute())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model.predict(rows))).compute(), model.predict(SPACE))
