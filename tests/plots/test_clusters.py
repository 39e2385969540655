import io
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from support.model_inputs import four_clusters

from tkmeans import FastTKMeans, StudentTMixture, TKMeans
from tkmeans.datasets import make_contaminated
from tkmeans.plots import ClustersDisplay


@pytest.fixture(scope="module")
def fitted():
    """A fitted estimator that answers without computing, and its rows."""
    X, _ = make_contaminated(600, 5, random_state=0)
    model = TKMeans(5, random_state=0).fit(X)
    outliers = model.outliers(X)
    known = SimpleNamespace(
        cluster_centers_=model.cluster_centers_,
        labels_=model.labels_,
        predict=lambda _: model.labels_,
        outliers=lambda _: outliers,
    )
    return known, X


def test_clusters_display_draws_into_the_given_axes_and_returns_them(fitted, ax):
    display = ClustersDisplay.from_estimator(*fitted, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


def test_clusters_display_without_axes_makes_a_figure(fitted):
    display = ClustersDisplay.from_estimator(*fitted)
    assert display.ax_ in display.figure_.axes


def test_every_row_is_drawn_once_as_a_member_or_as_an_outlier(fitted, ax):
    model, X = fitted
    display = ClustersDisplay.from_estimator(model, X, ax=ax)
    outliers = model.outliers(X)
    for k, points in enumerate(display.points_):
        np.testing.assert_array_equal(points.get_offsets(), X[(model.labels_ == k) & ~outliers])
    inside = display.outliers_.get_offsets()
    edge = [c for c in ax.collections if not c.get_clip_on()]
    assert len(inside) + sum(len(c.get_offsets()) for c in edge) == outliers.sum()
    assert f"outlier ({outliers.sum()}" in ax.get_legend_handles_labels()[1][0]


def test_the_limits_of_a_clusters_plot_hold_all_rows_but_the_outliers(fitted, ax):
    model, X = fitted
    ClustersDisplay.from_estimator(model, X, ax=ax)
    core = X[~model.outliers(X)]
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert left < core[:, 0].min() < core[:, 0].max() < right < 10
    assert bottom < core[:, 1].min() < core[:, 1].max() < top < 10


def test_rows_beyond_the_edge_of_a_clusters_plot_are_marked_on_it(ax):
    X = np.array([[0.0, 0], [1, 1], [50, 0.5], [0.5, -70]])
    ClustersDisplay.from_predictions(X, [0, 0, -1, -1], ax=ax, limits=((0, 1), (0, 1)))
    marks = {tuple(np.round(p, 2)) for c in ax.collections if not c.get_clip_on() for p in c.get_offsets()}
    assert marks == {(1.0, 0.5), (0.5, 0.0)}


def test_centres_in_a_clusters_plot_carry_their_numbers(fitted, ax):
    model, X = fitted
    ClustersDisplay.from_estimator(model, X, ax=ax)
    numbers = {text.get_text(): text.xy for text in ax.texts}
    assert set(numbers) == set("01234")
    np.testing.assert_array_equal(numbers["3"], model.cluster_centers_[3])


def test_a_centre_beyond_the_edge_of_a_clusters_plot_is_counted_in_the_legend(ax):
    X = np.array([[0.0, 0], [1, 1], [9, 9]])
    ClustersDisplay.from_predictions(
        X, [0, 0, 1], centers=[[0.5, 0.5], [9, 9]], ax=ax, limits=((-1, 2), (-1, 2)), boundaries=False
    )
    assert ax.get_legend_handles_labels()[1] == ["centre (1 of 2 beyond the edge)"]


def test_the_axes_of_a_clusters_plot_have_the_names_of_a_data_frames_columns(fitted, ax):
    model, X = fitted
    ClustersDisplay.from_estimator(model, pd.DataFrame(X, columns=["length", "width"]), ax=ax)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("length", "width")


@pytest.mark.parametrize(
    "model",
    [TKMeans(5), FastTKMeans(5), StudentTMixture(5), KMeans(5, n_init=1)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("p", [1, 2, 6])
def test_clusters_display_draws_any_estimator_with_centres(model, p, ax):
    X, _ = make_contaminated(300, 5, p, outlier_fraction=0.0, random_state=1)
    display = ClustersDisplay.from_estimator(clone(model).set_params(random_state=0).fit(X), X, ax=ax)
    assert len(display.points_) == 5
    assert len(display.points) == len(X)


def test_clusters_display_refuses_an_estimator_without_centres_by_its_name(ax):
    with pytest.raises(ValueError, match="KMeans has neither cluster_centers_ nor means_: is it fitted"):
        ClustersDisplay.from_estimator(type("KMeans", (), {"predict": len})(), np.zeros((3, 2)), ax=ax)


def test_boundaries_are_drawn_where_they_separate_the_clusters(fitted, ax):
    assert ClustersDisplay.from_estimator(*fitted, ax=ax).boundaries_ is not None


def test_boundaries_are_left_out_where_they_do_not_separate_the_clusters(ax):
    rng = np.random.default_rng(0)
    centers = np.zeros((4, 6))
    centers[:, 2:] = 40 * np.eye(4)  # apart, but not in the first two columns
    labels = np.arange(400) % 4
    X = centers[labels] + rng.normal(size=(400, 6))
    look = {"centers": centers, "ax": ax}
    assert ClustersDisplay.from_predictions(X, labels, features=(0, 1), **look).boundaries_ is None
    assert ClustersDisplay.from_predictions(X, labels, features=(0, 1), boundaries=True, **look).boundaries_ is not None


def test_one_cluster_has_no_boundaries(ax):
    X = np.random.default_rng(0).normal(size=(50, 2))
    assert ClustersDisplay.from_estimator(TKMeans(1).fit(X), X, ax=ax).boundaries_ is None


def test_a_row_without_a_drawn_value_is_left_out_of_a_clusters_plot(fitted, ax):
    model, X = fitted
    X = X.copy()
    X[:7, 0] = np.nan
    display = ClustersDisplay.from_estimator(model, X, ax=ax)
    assert len(display.points) == len(X) - 7
    assert display.n_rows == len(X)


def test_a_row_with_missing_values_is_drawn_in_the_principal_plane(ax):
    X, _ = make_contaminated(300, 3, 4, outlier_fraction=0.0, random_state=0)
    X[::5, 1] = np.nan
    model = TKMeans(3, random_state=0).fit(X)
    assert len(ClustersDisplay.from_estimator(model, X, ax=ax).points) == len(X)


def test_clusters_display_draws_labels_below_zero_as_outliers(ax):
    X = np.array([[0.0, 0], [1, 1], [2, 2]])
    display = ClustersDisplay.from_predictions(X, [0, -1, 0], ax=ax)
    np.testing.assert_array_equal(display.outliers, [False, True, False])
    assert display.centers_ is None


def test_clusters_display_samples_very_many_rows_and_rasterizes_them(ax):
    X = np.random.default_rng(0).normal(size=(30_000, 2))
    display = ClustersDisplay.from_predictions(X, np.arange(30_000) % 60, ax=ax)
    assert len(display.points) == 20_000
    assert display.n_rows == 30_000
    assert len(display.points_) == 60
    assert all(points.get_rasterized() for points in display.points_)


def test_a_clusters_plot_of_equal_rows_has_limits(ax):
    ClustersDisplay.from_predictions(np.ones((5, 2)), np.zeros(5, dtype=int), ax=ax)
    assert ax.get_xlim() == (0.5, 1.5)


def test_clusters_display_refuses_feature_names_of_another_number_than_columns(ax):
    with pytest.raises(ValueError, match="must name the 2 columns of X, got 3 names"):
        ClustersDisplay.from_predictions(np.ones((5, 2)), np.zeros(5), feature_names="abc", ax=ax)


def test_an_ellipse_of_two_deviations_is_drawn_for_each_component_of_a_mixture(ax):
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(200, 3)) * [3, 1, 1], rng.normal(size=(200, 3)) * [1, 4, 1] + 20])
    for kind in ("full", "tied", "diag", "spherical"):
        model = StudentTMixture(2, covariance_type=kind, random_state=0).fit(rows)
        display = ClustersDisplay.from_estimator(model, rows, features=[0, 2], ax=ax)
        assert display.boundaries_ is None
        for k, line in enumerate(display.shapes_):
            own = model.covariances_ if kind == "tied" else model.covariances_[k]
            full = (own if np.ndim(own) == 2 else own * np.eye(3))[np.ix_([0, 2], [0, 2])]
            away = np.transpose(line.get_data()) - model.means_[k, [0, 2]]
            np.testing.assert_allclose(np.einsum("ni,ij,nj->n", away, np.linalg.inv(full), away), 4, rtol=1e-8)
    assert ClustersDisplay.from_estimator(TKMeans(2, random_state=0).fit(rows), rows, ax=ax).shapes_ == []


# ---- labels, names and warnings ------------------------------------------------------------------


def test_a_picture_takes_as_long_as_it_has_clusters_whatever_their_numbers_are():
    X, _ = four_clusters()
    display = ClustersDisplay.from_predictions(X, np.where(X[:, 0] > 0, 0, 10**9))
    assert len(display.points_) == 2
    assert sum(len(points.get_offsets()) for points in display.points_) == len(X)


def test_names_of_columns_in_a_picture_are_no_formulas():
    X, model = four_clusters()
    names = ["cost ($) per unit ($)", "$x_{$", "c"]
    display = ClustersDisplay.from_estimator(model, X, features=[0, 1], feature_names=names)
    assert display.ax_.get_xlabel() == names[0]
    display.figure_.savefig(io.BytesIO())


def test_a_warning_of_outliers_in_a_picture_refers_to_the_line_that_drew_it():
    pytest.importorskip("matplotlib")
    X = np.random.default_rng(0).normal(size=(300, 2)) + np.repeat([[0], [60]], [260, 40], axis=0)
    with pytest.warns(UserWarning, match="lie together") as caught:
        ClustersDisplay.from_estimator(TKMeans(1).fit(X), X)
    assert {warning.filename for warning in caught if "together" in str(warning.message)} == {__file__}
