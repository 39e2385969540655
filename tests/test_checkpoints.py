"""Checkpoints: a fit that is resumed ends as it would have ended; forged checkpoints are refused."""

import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, StudentTMixture, TKMeans
from tkmeans.datasets import make_contaminated

# ---- fits that go on -----------------------------------------------------------------------------


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


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*searches found other")
@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (partial(StudentTMixture, 5, random_state=0, tol=1e-9), (3000, 15, 4)),
        (partial(TKMeans, 60, random_state=0), (6000, 30, 8)),
        (partial(TKMeans, 20, random_state=0, cluster_weights="equal"), (5000, 10, 4)),
    ],
)
def test_a_fit_whose_search_was_cut_short_resumes_to_the_result_of_an_uninterrupted_one(make, shape, tmp_path):
    X, _ = make_contaminated(*shape, random_state=1, cluster_std=0.3)
    file = tmp_path / "checkpoint.npz"
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.005 seconds ended the search for a start"):
        make(max_time=0.005, checkpoint=file).fit(X)
    resumed, whole = make().fit(X, resume=file), make().fit(X)
    assert resumed.lower_bounds_ == whole.lower_bounds_
    np.testing.assert_array_equal(resumed.labels_, whole.labels_)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:.*searches found other")
def test_a_fit_that_is_resumed_with_little_time_searches_as_it_did_before(tmp_path):
    X, _ = make_contaminated(6000, 30, 8, random_state=1, cluster_std=0.3)
    file = tmp_path / "checkpoint.npz"
    make = partial(TKMeans, 60, random_state=0, tol=1e-12)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        make(max_iter=2, checkpoint=file).fit(X)
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.001 seconds \(3 iterations\)"):
        make(max_time=1e-3, checkpoint=file).fit(X, resume=file)
    assert make(max_iter=8).fit(X, resume=file).lower_bounds_ == make(max_iter=8).fit(X).lower_bounds_


# ---- forged checkpoints --------------------------------------------------------------------------

PLANE, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)
SPACE, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)
ROWS = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0], [9]], 20, axis=0)
FITS = [FastTKMeans(2, init=ROWS[[0, 1]], max_iter=3), TKMeans(2, init=ROWS[[0, 1]], max_iter=3, tol=0)]
FITS += [StudentTMixture(2, covariance_type=shape, max_iter=2) for shape in ("full", "tied", "diag", "spherical")]


def checkpoint_of(model, path):
    model.set_params(checkpoint=path).fit(ROWS)
    with np.load(path) as file:
        return dict(file)


def test_shapes_of_a_forged_checkpoint_that_are_no_matrices_are_refused(tmp_path):
    path = tmp_path / "c.npz"
    rows = np.vstack([SPACE, np.random.default_rng(0).uniform(-50, 50, (12, 3))])
    StudentTMixture(3, noise=True, checkpoint=path).fit(rows)
    with np.load(path) as file:
        arrays = dict(file)
    place = "best" if "best_params_bulk" in arrays else "run"
    for name in ("params_bulk", "params_covariances", "params_bulk_center"):
        np.savez(path, **(arrays | {f"{place}_{name}": arrays[f"{place}_{name}"][..., :2]}))
        with pytest.raises(ValueError, match=f"{name} has the shape"):
            StudentTMixture(3, noise=True).fit(rows, resume=path)


def test_checkpoints_with_nothing_in_an_array_are_refused(tmp_path):
    path = tmp_path / "fit.npz"
    model = StudentTMixture(3, checkpoint=path, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(PLANE)
    with np.load(path) as file:
        arrays = dict(file)
    name = next(name for name in arrays if name.endswith("params_covariances"))
    np.savez(path, **arrays | {name: arrays[name][:0]})
    with pytest.raises(ValueError, match=f"{name} is not numbers"):
        model.fit(PLANE, resume=path)


@pytest.mark.parametrize("model", FITS)
@pytest.mark.filterwarnings("ignore")
def test_entries_of_a_checkpoint_with_another_shape_are_refused(model, tmp_path):
    path = tmp_path / "forged.npz"
    arrays = checkpoint_of(model, path)
    model.set_params(checkpoint=None).fit(ROWS, resume=path)  # as it is, a fit goes on from it
    numbers = [name for name in arrays if name.startswith(("run_", "best_")) and arrays[name].dtype.kind == "f"]
    assert any("history" in name for name in numbers)
    for name in numbers:
        np.savez(path, **arrays | {name: arrays[name][..., None]})
        with pytest.raises(ValueError, match=rf"forged.*not a whole checkpoint.*{name} has the shape"):
            model.fit(ROWS, resume=path)
