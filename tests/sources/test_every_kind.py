"""Whatever the rows live in, an estimator says the same of them."""

import functools
import itertools
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from support.model_inputs import t_mixture

import tkmeans
from tkmeans import FastTKMeans, StudentTMixture, TKMeans

X, _, CENTERS = t_mixture(n=9_500, n_clusters=5, n_features=3, dof=4.0, scale=0.05)
X[::50] = np.random.default_rng(1).uniform(-40, 40, X[::50].shape)  # strays
HOLES = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
HOLES[np.all(np.isnan(HOLES), axis=1)] = 0.0
WEIGHT = np.random.default_rng(3).integers(0, 4, len(X)).astype(float)
NAMES = ["width", "height", "depth"]

KINDS = [
    "array",
    "mapped array",
    "memory map",
    "Parquet directory",
    "Feather file",
    "CSV file",
    "Arrow dataset",
    "dask array",
    "dask dataframe",
    "torch tensor",
    "strict array",
]
TO_THE_LAST_BIT = set(KINDS[:7])


class Kind:
    """A way to keep rows, and how to get results out of what comes back."""

    def __init__(self, name, folder):
        self.name, self.folder, self.n_made = name, folder, 0

    def of(self, rows):
        """The rows in this kind of container."""
        self.n_made += 1
        rows = np.asarray(rows)
        place = self.folder / f"rows{self.n_made}"
        if self.name in ("mapped array", "memory map"):
            np.save(place.with_suffix(".npy"), rows)
            path = place.with_suffix(".npy")
            return np.load(path, mmap_mode="r") if self.name == "mapped array" else path
        if self.name in ("Parquet directory", "Feather file", "CSV file", "Arrow dataset"):
            return self._in_files(rows, place)
        if self.name == "dask array":
            import dask.array as da

            return da.from_array(rows, chunks=(max(1, len(rows) // 4 + 3), 2))
        if self.name == "dask dataframe":
            import dask.dataframe as dd
            import pandas as pd

            return dd.from_pandas(pd.DataFrame(rows, columns=NAMES[: rows.shape[1]]), npartitions=min(3, len(rows)))
        if self.name == "torch tensor":
            import torch

            return torch.from_numpy(rows.copy())
        if self.name == "strict array":
            return pytest.importorskip("array_api_strict").asarray(rows)
        return rows

    def _in_files(self, rows, place):
        pa = pytest.importorskip("pyarrow")
        import pyarrow.csv
        import pyarrow.dataset
        import pyarrow.feather
        import pyarrow.parquet

        table = pa.table({name: rows[:, j] for j, name in enumerate(NAMES[: rows.shape[1]])})
        if self.name == "Feather file":
            pyarrow.feather.write_feather(table, place.with_suffix(".feather"), chunksize=3001)
            return place.with_suffix(".feather")
        if self.name == "CSV file":
            pyarrow.csv.write_csv(table, place.with_suffix(".csv"))
            return place.with_suffix(".csv")
        place.mkdir()
        cuts = [0, len(rows) // 7, len(rows) // 2, len(rows)]  # nowhere near the borders of blocks
        for i, (start, end) in enumerate(itertools.pairwise(cuts)):
            part = table.slice(start, end - start)
            pyarrow.parquet.write_table(part, place / f"part{i}.parquet", row_group_size=4000)
        return pyarrow.dataset.dataset(place) if self.name == "Arrow dataset" else place

    def numpy(self, result):
        """What came back, as an array of NumPy, after a check that it came in the right container."""
        library = type(result).__module__.partition(".")[0]
        if isinstance(result, Path):
            import pyarrow.parquet

            columns = pyarrow.parquet.read_table(result).columns
            arrays = [column.to_numpy() for column in columns]
            return arrays[0] if len(arrays) == 1 else np.column_stack(arrays)
        wanted = {"dask array": "dask", "dask dataframe": "dask", "torch tensor": "torch"}
        assert library == {**wanted, "strict array": "array_api_strict"}.get(self.name, "numpy")
        return np.asarray(result.compute() if library == "dask" else result)


@pytest.fixture(params=KINDS)
def kind(request, tmp_path, monkeypatch):
    if request.param not in ("torch tensor", "strict array"):
        dask = pytest.importorskip("dask", reason="needs the extra dask")
        with dask.config.set(scheduler="sync"):
            yield Kind(request.param, tmp_path)
        return
    if request.param == "torch tensor":
        pytest.importorskip("array_api_compat", reason="needs the extra torch: array_api_compat is not installed")
        torch = pytest.importorskip("torch", reason="needs the extra torch: torch is not installed")
        torch.set_num_threads(1)  # so small tensors are slower with more
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield Kind(request.param, tmp_path)


def assert_same(kind, ours, theirs):
    """Equal to the last bit where rows come in the same blocks, to 1e-9 elsewhere."""
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)
    if kind.name in TO_THE_LAST_BIT:
        np.testing.assert_array_equal(ours, theirs)


def answers(model, rows, out):
    """Everything a fitted estimator says of rows."""
    methods = ["predict", "predict_proba", "transform", "robust_weights"]
    if not isinstance(model, FastTKMeans):
        methods += ["score_samples", "outlier_pvalues", "outliers", "noise_probability"]
    for name in methods:
        if name == "predict" or type(rows).__module__ != "pyarrow._dataset":
            yield name, getattr(model, name)(rows, **({"out": out} if name == "predict" and out else {}))


CASES = {
    "complete": (TKMeans(5, random_state=0), X),
    "missing": (TKMeans(5, random_state=0), HOLES),
    "whole powers": (TKMeans(5, random_state=0, dof=1.0), X),
    "fast": (FastTKMeans(5, random_state=0), X),
    "shapes": (StudentTMixture(5, random_state=0), X),
    "shapes, missing": (StudentTMixture(5, covariance_type="tied", random_state=0), HOLES),
}


@functools.cache
def expected(case):
    """What is said of an array."""
    estimator, rows = CASES[case]
    with sklearn.config_context(array_api_dispatch=False):
        model = sklearn.clone(estimator).fit(rows)
        return model, dict(answers(model, rows, None))


@pytest.mark.parametrize("case", CASES)
def test_centres_and_predictions_do_not_depend_on_the_container_of_the_rows(kind, case, tmp_path):
    estimator, rows = CASES[case]
    theirs, said = expected(case)
    data = kind.of(rows)
    ours = sklearn.clone(estimator).fit(data)
    assert_same(kind, np.asarray(ours.cluster_centers_), theirs.cluster_centers_)
    assert ours.n_iter_ == theirs.n_iter_
    for name in ("scale_", "dof_", "inertia_", "noise_weight_"):
        if hasattr(theirs, name):
            assert np.asarray(getattr(ours, name)) == pytest.approx(np.asarray(getattr(theirs, name)), rel=1e-9), name
    np.testing.assert_array_equal(kind.numpy(ours.labels_), theirs.labels_)
    out = tmp_path / "labels.parquet" if kind.name == "Arrow dataset" else None
    for name, answer in answers(ours, data, out):
        np.testing.assert_allclose(kind.numpy(answer), said[name], rtol=1e-6, atol=1e-9, err_msg=name)


def test_sample_weights_count_in_every_container_of_rows(kind):
    theirs = TKMeans(5, random_state=0).fit(X, sample_weight=WEIGHT)
    data = kind.of(X)
    ours = TKMeans(5, random_state=0).fit(data, sample_weight=WEIGHT)
    assert_same(kind, np.asarray(ours.cluster_centers_), theirs.cluster_centers_)
    of_rows = np.average(theirs.score_samples(X), weights=WEIGHT)
    assert ours.score(data, sample_weight=WEIGHT) == pytest.approx(of_rows, rel=1e-9)
    with pytest.raises(ValueError, match="must not be negative"):
        TKMeans(5).fit(data, sample_weight=-WEIGHT)
    for beyond in (1e60, 1e-60):
        with pytest.raises(ValueError, match=r"between 1e-50 and 1e\+50 .* divide them"):
            TKMeans(5).fit(data, sample_weight=beyond * WEIGHT)
    with pytest.raises(ValueError, match=r"shape \(9500,\)"):
        TKMeans(5).fit(data, sample_weight=WEIGHT[:7])


def test_scores_and_criteria_do_not_depend_on_the_container_of_the_rows(kind):
    model, data = expected("complete")[0], kind.of(X)
    with sklearn.config_context(array_api_dispatch=False):
        of_array = [model.score(X), model.aic(X), model.bic(X), model.icl(X)]
    if kind.name in ("torch tensor", "strict array"):
        model = TKMeans(5, random_state=0).fit(data)
    assert [model.score(data), model.aic(data), model.bic(data), model.icl(data)] == pytest.approx(of_array, rel=1e-9)


def test_outlier_label_marks_the_same_rows_in_every_container(kind, tmp_path):
    with sklearn.config_context(array_api_dispatch=False):
        marked_rows = expected("complete")[0].predict(X, outlier_label=-1)
    assert 0.01 < np.mean(marked_rows == -1) < 0.03
    data = kind.of(X)
    out = {"out": tmp_path / "marked.parquet"} if kind.name == "Arrow dataset" else {}
    marked = TKMeans(5, random_state=0).fit(data).predict(data, outlier_label=-1, **out)
    np.testing.assert_array_equal(kind.numpy(marked), marked_rows)


@pytest.mark.parametrize("init", ["k-means++", "random", "uniform", CENTERS], ids=str)
def test_every_init_gives_the_same_start_in_every_container_of_rows(kind, init):
    options = {"init": init, "n_init": 1, "random_state": 4, "max_iter": 2, "tol": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sklearn.exceptions.ConvergenceWarning)
        theirs, ours = (TKMeans(5, **options).fit(rows) for rows in (X, kind.of(X)))
    assert_same(kind, np.asarray(ours.cluster_centers_), theirs.cluster_centers_)


def test_a_callable_start_sees_rows_in_the_users_coordinates(kind):
    def start(rows, n_clusters, random_state):
        assert 1000 < rows.shape[0] <= len(X)
        assert np.abs(np.median(np.asarray(rows), axis=0) - np.median(X, axis=0)).max() < 1
        return CENTERS

    model = TKMeans(5, init=start, n_init=1, random_state=0).fit(kind.of(X))
    by_array = TKMeans(5, init=CENTERS).fit(X)
    np.testing.assert_allclose(np.asarray(model.cluster_centers_), by_array.cluster_centers_, rtol=1e-9)


def test_rows_in_single_precision_give_float32_centres_in_every_container(kind):
    if kind.name == "CSV file":
        pytest.skip("text has no precision of its own")
    theirs, ours = (TKMeans(5, random_state=0).fit(rows) for rows in (X.astype("f4"), kind.of(X.astype("f4"))))
    centers = np.asarray(ours.cluster_centers_)
    assert centers.dtype == np.float32
    np.testing.assert_allclose(centers, theirs.cluster_centers_, atol=1e-3)


def test_infinite_values_are_refused_with_their_feature_in_every_container(kind):
    rows = X[:500].copy()
    rows[400, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity|infinite values in feature (1|'height')|line 402: 'inf'"):
        TKMeans(5).fit(kind.of(rows))


def test_fewer_rows_than_clusters_are_refused_in_every_container(kind):
    with pytest.raises(ValueError, match="n_samples=4 should be >= n_clusters=5; choose at most 4"):
        TKMeans(5).fit(kind.of(X[:4]))


def test_a_feature_without_observed_values_is_refused_in_every_container_and_left_out_of_tables(kind):
    rows = X[:500].copy()
    rows[:, 2] = np.nan
    if kind.name in ("Parquet directory", "Feather file", "CSV file", "Arrow dataset"):
        with pytest.warns(UserWarning, match=r"not used for clustering: depth \(empty\)"):
            model = TKMeans(5).fit(kind.of(rows))
        assert "depth" not in model.feature_names_in_
        return
    with pytest.raises(ValueError, match=r"feature (2|'depth') has no observed value in any row; drop it"):
        TKMeans(5).fit(kind.of(rows))


def test_rows_without_observed_values_are_warned_about_by_their_numbers_in_every_container(kind):
    rows = X.copy()
    rows[[7, 8200, 9000]] = np.nan
    with pytest.warns(UserWarning, match=r"3 of 9500 rows without a single observed value \(row 7, 8200, 9000\)"):
        TKMeans(5, init=CENTERS).fit(kind.of(rows))


def test_predict_refuses_rows_with_fewer_features_in_every_container(kind):
    model = TKMeans(5, init=CENTERS).fit(kind.of(X))
    with pytest.raises(ValueError, match=r"expecting 3 features|no column 'depth'"):
        model.predict(kind.of(X[:, :2]))


def test_fitting_rows_in_another_container_forgets_the_fit_before(kind):
    model = TKMeans(5, random_state=0).fit(X[:1000])
    model.fit(kind.of(X))
    fresh = TKMeans(5, random_state=0).fit(kind.of(X))
    np.testing.assert_array_equal(np.asarray(model.cluster_centers_), np.asarray(fresh.cluster_centers_))
    assert vars(model).keys() == vars(fresh).keys()


def test_a_fit_resumes_from_its_checkpoint_to_the_same_end_in_every_container(kind, tmp_path):
    path, data = tmp_path / "fit.npz", kind.of(X)
    whole = TKMeans(5, random_state=0).fit(data)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning):
        TKMeans(5, random_state=0, max_iter=1, checkpoint=path).fit(data)
    ours = TKMeans(5, random_state=0).fit(data, resume=path)
    np.testing.assert_array_equal(np.asarray(ours.cluster_centers_), np.asarray(whole.cluster_centers_))
    assert ours.lower_bounds_ == whole.lower_bounds_


def test_a_model_file_restores_a_fit_to_any_container_as_arrays_of_numpy(kind, tmp_path):
    model = TKMeans(5, init=CENTERS, checkpoint=tmp_path / "fit.npz").fit(kind.of(X))
    tkmeans.save(model, tmp_path / "model.json")
    again = tkmeans.load(tmp_path / "model.json")
    np.testing.assert_array_equal(again.cluster_centers_, np.asarray(model.cluster_centers_))
    with sklearn.config_context(array_api_dispatch=False), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        np.testing.assert_array_equal(again.predict(X), TKMeans(5, init=CENTERS).fit(X).labels_)
    assert hasattr(again, "labels_") == (not kind.name.startswith("dask"))
