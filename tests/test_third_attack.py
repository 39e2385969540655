"""What a third attack broke in Python, each with a test that fails if it comes back. docs/development lists them."""

import pickle
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from support.model_inputs import t_mixture

import tkmeans
from tkmeans import MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.fitting.observers import TimeLimit
from tkmeans.sources import ArraySource

X, LABELS, CENTERS = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)


# ---- a mixture that goes on from an earlier fit ---------------------------------------------------------


def warm(**params):
    return StudentTMixture(3, warm_start=True, **params).fit(X)


def test_a_warm_start_follows_a_dof_that_was_set_since():
    assert np.all(warm().set_params(dof=4.0).fit(X).dof_ == 4.0)


def test_a_warm_start_follows_noise_that_was_switched_off_or_on_since():
    far = np.vstack([X, np.random.default_rng(0).uniform(-50, 50, (12, 3))])
    model = StudentTMixture(3, warm_start=True, noise=True).fit(far)
    first = model.noise_weight_
    assert model.set_params(noise=False).fit(far).noise_weight_ == 0.0
    assert model.set_params(noise=True).fit(far).noise_weight_ == pytest.approx(first, rel=0.05)


def test_a_warm_start_follows_a_size_ratio_that_was_set_since():
    sizes = np.linalg.det(warm(noise=False).set_params(size_ratio=1.0).fit(X).covariances_)
    np.testing.assert_allclose(sizes, sizes[0], rtol=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_warm_start_with_other_components_or_features_begins_anew(kind):
    for other in {"full", "tied", "diag", "spherical"} - {kind}:
        fresh = StudentTMixture(3, covariance_type=kind).fit(X).covariances_
        np.testing.assert_array_equal(
            warm(covariance_type=other).set_params(covariance_type=kind).fit(X).covariances_, fresh
        )
    assert warm(covariance_type=kind).set_params(n_components=2).fit(X).means_.shape == (2, 3)
    assert warm(covariance_type=kind).fit(X[:, :2]).means_.shape == (3, 2)


@pytest.mark.parametrize("unit", [1e-30, 1e-3, 1e6, 1e30])
def test_a_warm_start_on_the_same_rows_in_another_unit_begins_anew(unit):
    model = warm().fit(X * unit)
    np.testing.assert_array_equal(model.means_, StudentTMixture(3).fit(X * unit).means_)


def test_a_warm_start_with_the_same_settings_never_loses_likelihood():
    model = StudentTMixture(3, warm_start=True, max_iter=1, shrinkage=0.0, noise=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        bounds = [model.fit(X).lower_bound_ for _ in range(6)]
    assert np.all(np.diff(bounds) >= -1e-9)


# ---- tails beside noise -------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [2, 12, 30])
def test_beside_noise_a_row_on_a_centre_counts_at_most_four_times_as_much_as_an_ordinary_one(p):
    rows, _, _ = t_mixture(n=400, n_clusters=2, n_features=p, dof=1.0, scale=0.001, seed=1)
    model = StudentTMixture(2).fit(rows)
    assert np.all(model.dof_ >= max(3.0, p / 3) - 1e-9)
    assert StudentTMixture(2, noise=False).fit(rows).dof_[0] < 3.0  # where there is no noise it is free


# ---- streams, checkpoints, files ------------------------------------------------------------------------


def test_a_stream_follows_a_dof_and_weights_that_were_set_since():
    stream = MiniBatchTKMeans(3).partial_fit(np.vstack([X] * 20))
    assert stream.set_params(dof=3.0).partial_fit(X).dof_ == 3.0
    np.testing.assert_allclose(stream.set_params(cluster_weights="equal").partial_fit(X).cluster_weights_, 1 / 3)


def test_a_narrow_limit_of_time_holds_on_a_machine_that_has_been_up_for_long():
    with mock.patch("tkmeans.fitting.observers.time.monotonic", return_value=1e6):
        limit = TimeLimit(np.float16(30))
        assert limit.left == 30.0
        assert not limit.is_up


def test_several_starts_that_ended_early_go_on_with_a_higher_limit(tmp_path):
    rows = np.random.default_rng(0).standard_t(1.5, size=(300, 2))
    settings = {"init": "random", "random_state": 0}
    with pytest.warns(ConvergenceWarning):
        TKMeans(4, max_iter=4, checkpoint=tmp_path / "c.npz", **settings).fit(rows)
    resumed = TKMeans(4, **settings).fit(rows, resume=tmp_path / "c.npz")
    whole = TKMeans(4, **settings).fit(rows)
    assert resumed.converged_
    assert resumed.lower_bound_ == whole.lower_bound_
    np.testing.assert_array_equal(resumed.cluster_centers_, whole.cluster_centers_)


def test_shapes_of_a_forged_checkpoint_that_are_no_matrices_are_refused(tmp_path):
    path = tmp_path / "c.npz"
    rows = np.vstack([X, np.random.default_rng(0).uniform(-50, 50, (12, 3))])
    StudentTMixture(3, noise=True, checkpoint=path).fit(rows)
    with np.load(path) as file:
        arrays = dict(file)
    place = "best" if "best_params_bulk" in arrays else "run"
    for name in ("params_bulk", "params_covariances", "params_bulk_center"):
        np.savez(path, **(arrays | {f"{place}_{name}": arrays[f"{place}_{name}"][..., :2]}))
        with pytest.raises(ValueError, match=f"{name} has the shape"):
            StudentTMixture(3, noise=True).fit(rows, resume=path)


def views(mapped):
    yield np.asarray(mapped)
    yield np.asarray(mapped)[10:]
    yield np.asarray(mapped).reshape(-1, 3)
    yield np.asarray(mapped).T[:3].T


def test_the_file_behind_a_view_of_a_mapped_array_is_not_written_over(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    before = path.read_bytes()
    model = TKMeans(3).fit(X)
    for rows in views(np.load(path, mmap_mode="r")):
        for write in (
            lambda rows=rows: model.predict(rows, out=path),
            lambda rows=rows: TKMeans(3, checkpoint=path).fit(rows),
            lambda rows=rows: tkmeans.write_report(path, model, rows),
        ):
            with pytest.raises(FileExistsError, match="is the input"):
                write()
    assert path.read_bytes() == before


def test_a_column_may_be_called_filename():
    frame = pd.DataFrame(X, columns=["filename", "base", "c"])
    np.testing.assert_array_equal(TKMeans(3).fit(frame).predict(frame), TKMeans(3).fit(X).labels_)


@pytest.mark.parametrize("Estimator", [TKMeans, StudentTMixture])
def test_an_estimator_fitted_on_a_dask_collection_can_be_pickled(Estimator):
    rows = pytest.importorskip("dask.array").from_array(X, chunks=(50, 3))
    model = Estimator(3).fit(rows)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.labels_.compute(), model.labels_.compute())
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model.predict(rows))).compute(), model.predict(X))


# ---- answers that agree with each other ---------------------------------------------------------------------


@pytest.mark.parametrize("Estimator", [TKMeans, StudentTMixture])
def test_the_score_is_the_mean_of_score_samples_where_cells_are_bad(Estimator):
    rows = X.copy()
    rows[3, 1] = 5000.0
    model = Estimator(3).fit(rows)
    assert model.find_bad_cells(rows)[3, 1]
    assert model.score(rows) == pytest.approx(model.score_samples(rows).mean(), rel=1e-12)


def test_a_report_and_a_description_after_ctrl_c_leave_out_the_outliers(tmp_path):
    model = TKMeans(3)
    stopped = mock.patch.object(ArraySource, "collect", mock.Mock(side_effect=KeyboardInterrupt))
    with stopped, pytest.raises(KeyboardInterrupt):
        model.fit(X)
    assert "outlier" not in tkmeans.describe(model, X).table()
    assert tkmeans.write_report(tmp_path / "r.html", model, X).exists()


def test_a_description_takes_the_arrow_table_that_the_fit_took():
    pa = pytest.importorskip("pyarrow")
    rows = pa.table({name: X[:, j] for j, name in enumerate("abc")})
    model = TKMeans(3).fit(rows)
    frame = pd.DataFrame(X, columns=list("abc"))
    assert tkmeans.describe(model, rows).sentences() == tkmeans.describe(model, frame).sentences()


def test_a_report_takes_a_dask_array_with_outliers(tmp_path):
    da = pytest.importorskip("dask.array")
    rows = np.vstack([X, [[500.0, 500.0, 500.0]]])
    model = TKMeans(3).fit(rows)
    page = tkmeans.write_report(tmp_path / "r.html", model, da.from_array(rows, chunks=(50, 3)))
    assert page.exists()


# ---- messages ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil"])
def test_nan_in_sparse_rows_is_named_with_the_way_out(form):
    rows = sparse.csr_array(np.where(np.quantile(X, 0.99) < X, np.nan, X)).asformat(form)
    with pytest.raises(ValueError, match=r"contains NaN, but sparse rows.*X\.toarray\(\)"):
        TKMeans(3).fit(rows)


def test_stability_names_what_is_no_rows_in_memory():
    for X in ("rows.csv", None, 3):
        with pytest.raises(TypeError, match="X must hold rows in memory"):
            tkmeans.stability(TKMeans(2), X)


def test_stability_of_a_pipeline_takes_weights():
    weight = np.random.default_rng(0).integers(0, 3, len(X))
    model = make_pipeline(RobustScaler(), TKMeans(3))
    assert tkmeans.stability(model, X, sample_weight=weight, n_resamples=3, random_state=0).sizes.sum() == weight.sum()


def test_a_report_of_a_pipeline_says_what_to_pass(tmp_path):
    with pytest.raises(ValueError, match="Of a pipeline pass the last step"):
        tkmeans.write_report(tmp_path / "r.html", make_pipeline(RobustScaler(), TKMeans(3)).fit(X), X)
