import numpy as np
import pytest
from matplotlib.path import Path
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA

from tkmeans.plots.projections import (
    agreement,
    cell_borders,
    choose_view,
    drawn_rows,
    principal_plane,
)

RNG = np.random.default_rng(0)


def crossings(a, b, borders):
    """How many borders the way from a to b crosses."""
    way = Path([a, b])
    return sum(way.intersects_path(Path(ends)) for ends in borders)


@pytest.mark.parametrize("n_centers", [2, 3, 12])
def test_the_way_to_another_point_crosses_a_border_exactly_if_another_centre_is_nearest_there(n_centers):
    centers = RNG.uniform(-2, 2, (n_centers, 2))
    borders = cell_borders(centers, 2.0)
    points = RNG.uniform(-3, 3, (100, 2))
    nearest = cdist(points, centers).argmin(axis=1)
    for a, b, j, k in zip(points, points[1:], nearest, nearest[1:], strict=False):
        assert (crossings(a, b, borders) == 0) == (j == k)


@pytest.mark.parametrize("centers", [np.zeros((2, 2)), np.column_stack([np.arange(3.0), np.zeros(3)])])
def test_centres_that_are_equal_or_in_line_have_borders_where_they_differ(centers):
    borders = cell_borders(centers, 2.0)
    near = [ends for ends in borders if ends[:, 1].prod() < 0]  # that cross the line of the centres
    np.testing.assert_allclose(sorted(ends[0, 0] for ends in near), np.unique(centers[:, 0])[1:] - 0.5)


def test_agreement_is_the_share_of_rows_in_the_voronoi_cell_of_their_cluster():
    centers = np.array([[0.0, 0], [10, 0]])
    places = np.array([[1.0, 0], [4, 3], [6, 0], [9, 9]])
    assert agreement(places, np.array([0, 0, 0, 1]), centers) == 0.75
    assert agreement(places[:0], np.array([], dtype=int), centers) == 1.0


def test_the_principal_plane_is_that_of_scikit_learns_pca_of_the_trusted_rows():
    X = RNG.normal(size=(200, 5)) * [5, 1, 3, 1, 1] + 7
    X[-1] = 1e4
    trusted = np.arange(200) < 199
    plane = principal_plane(X, trusted, X)
    pca = PCA(2).fit(X[trusted])
    theirs = pca.transform(X)
    ours = plane.project(X, X)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs), rtol=1e-8, atol=1e-8)
    assert f"({pca.explained_variance_ratio_[1]:.0%} of the variance)" in plane.names[1]


def test_the_principal_plane_takes_missing_values_from_the_centre_and_has_no_place_for_empty_rows():
    X = RNG.normal(size=(50, 3))
    center = np.array([1.0, 2, 3])
    plane = principal_plane(X, np.ones(50, dtype=bool), X)
    holed = np.array([[0.5, np.nan, 0.1], [np.nan] * 3])
    filled = np.array([[0.5, 2.0, 0.1]])
    places = plane.project(holed, np.vstack([center, center]))
    np.testing.assert_allclose(places[0], plane.place(filled)[0])
    assert np.isnan(places[1]).all()


@pytest.mark.parametrize(
    ("p", "features", "names"),
    [
        (1, None, ("a", "")),
        (2, None, ("a", "b")),
        (4, (0, 2), ("a", "c")),
        (4, ("d", 1), ("d", "b")),
        (4, (-1, 0), ("d", "a")),
    ],
)
def test_a_view_shows_one_column_or_the_chosen_pair(p, features, names):
    X = RNG.normal(size=(20, p))
    view = choose_view(X, features, "abcd"[:p], np.ones(20, dtype=bool), X)
    assert view.names == names
    assert view.project(X, X).shape == view.place(X).shape == (20, 2)
    for axis, name in enumerate(names):
        if name:
            np.testing.assert_array_equal(view.project(X, X)[:, axis], X[:, "abcd".index(name)])


def test_a_view_of_many_columns_is_their_principal_plane():
    X = RNG.normal(size=(20, 4))
    view = choose_view(X, None, None, np.ones(20, dtype=bool), X)
    np.testing.assert_array_equal(view.place(X), principal_plane(X, np.ones(20, dtype=bool), X).place(X))


@pytest.mark.parametrize(
    ("features", "message"),
    [((0,), "two columns"), ((0, 9), "numbered from 0 to 3"), (("a", "z"), "'z' is not a column; there are a, b")],
)
def test_a_view_of_a_column_that_does_not_exist_is_an_error_that_names_it(features, message):
    X = np.zeros((3, 4))
    with pytest.raises(ValueError, match=message):
        choose_view(X, features, "abcd", np.ones(3, dtype=bool), X)


def test_of_very_many_rows_a_fixed_sample_with_all_outliers_is_drawn():
    outliers = RNG.random(10_000) < 0.02
    places = np.zeros((10_000, 2))
    places[:10] = np.nan
    drawn = drawn_rows(outliers, places, 1000)
    assert len(drawn) == len(set(drawn)) == 1000
    assert np.array_equal(drawn, drawn_rows(outliers, places, 1000))
    assert set(np.flatnonzero(outliers)[np.flatnonzero(outliers) >= 10]) <= set(drawn)
    assert drawn.min() >= 10


def test_outliers_fill_at_most_half_of_the_sample_that_is_drawn():
    drawn = drawn_rows(np.arange(10_000) < 6000, np.zeros((10_000, 2)), 1000)
    assert np.sum(drawn < 6000) == 500
