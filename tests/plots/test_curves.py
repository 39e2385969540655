"""Convergence, selection, weights, stability and losses."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from tkmeans import FastTKMeans, RobustnessCurve, StudentTMixture, TKMeans
from tkmeans import cluster_stability as resampling
from tkmeans.datasets import make_contaminated
from tkmeans.plots import (
    ConvergenceDisplay,
    RobustnessDisplay,
    RobustWeightsDisplay,
    SelectionDisplay,
    StabilityDisplay,
)
from tkmeans.plots import diagnostic_displays as stability

X, _ = make_contaminated(300, 3, random_state=0)
PATH = {"n_clusters": [1, 2, 3, 4], "values": [9.0, 4.0, 2.0, 3.0], "best": 3, "runner_up": 4}

DISPLAYS = {
    "convergence": lambda: ConvergenceDisplay(values=[1, 2, 3]),
    "selection": lambda: SelectionDisplay(criterion="icl", **PATH),
    "selection with outliers": lambda: SelectionDisplay(criterion="bic", outlier_fraction=[0.1] * 4, **PATH),
    "stability": lambda: StabilityDisplay(jaccard=np.ones((5, 3))),
    "weights": lambda: RobustWeightsDisplay(weights=[1.0, 0.9, 0.0], outliers=[False, False, True]),
}


@pytest.mark.parametrize("name", DISPLAYS)
def test_every_display_draws_into_the_given_axes_and_returns_itself(name, ax):
    display = DISPLAYS[name]()
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert ax.get_xlabel() or display.outlier_ax_.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("name", DISPLAYS)
def test_every_display_makes_a_figure_where_no_axes_are_given(name, tmp_path):
    display = DISPLAYS[name]().plot()
    assert display.ax_ in display.figure_.axes
    display.figure_.savefig(tmp_path / "picture.png")


# ---- convergence ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (TKMeans(3, random_state=0), "log-likelihood per row"),
        (StudentTMixture(3, random_state=0), "log-likelihood per row"),
        (FastTKMeans(3, random_state=0), "objective per row"),
    ],
)
def test_convergence_display_shows_the_objective_of_every_iteration(model, name, ax):
    display = ConvergenceDisplay.from_estimator(model.fit(X), ax=ax)
    np.testing.assert_array_equal(display.line_.get_ydata(), model.lower_bounds_)
    np.testing.assert_array_equal(display.line_.get_xdata(), np.arange(model.n_iter_ + 1))
    assert ax.get_ylabel() == name


def test_convergence_display_refuses_an_estimator_without_lower_bounds(ax):
    with pytest.raises(ValueError, match="KMeans has no lower_bounds_"):
        ConvergenceDisplay.from_estimator(KMeans(3, n_init=1).fit(X), ax=ax)


# ---- selection -----------------------------------------------------------------------


def test_selection_display_marks_the_choice_and_the_runner_up(ax):
    SelectionDisplay(criterion="icl", **PATH).plot(ax)
    marked = {line.get_label(): line.get_xydata().tolist() for line in ax.lines}
    assert marked["chosen: 3"] == [[3, 2.0]]
    assert marked["runner-up: 4"] == [[4, 3.0]]
    assert ax.get_ylabel() == "ICL (smaller is better)"


def test_selection_display_by_stability_says_that_larger_is_better(ax):
    SelectionDisplay(criterion="stability", **PATH).plot(ax)
    assert ax.get_ylabel() == "stability (larger is better)"


def test_selection_display_accepts_missing_values_and_no_runner_up(ax):
    SelectionDisplay(n_clusters=[1, 2], values=[np.nan, 3.0], criterion="bic", best=2).plot(ax)
    assert ax.get_legend_handles_labels()[1] == ["chosen: 2"]


def test_selection_display_shows_the_share_of_outliers_below_on_the_same_scale(ax):
    display = SelectionDisplay(criterion="icl", outlier_fraction=[0.4, 0.3, 0.2, 0.1], **PATH).plot(ax)
    below = display.outlier_ax_
    assert [bar.get_height() for bar in below.patches] == [0.4, 0.3, 0.2, 0.1]
    assert below.get_xlim() == ax.get_xlim()
    ax.figure.canvas.draw()
    assert below.get_position().y1 < ax.get_position().y0


def test_selection_display_adds_the_outliers_below_axes_without_a_grid():
    from matplotlib import pyplot as plt

    ax = plt.figure().add_axes((0.1, 0.4, 0.8, 0.5))
    assert SelectionDisplay(criterion="icl", outlier_fraction=[0.1] * 4, **PATH).plot(ax).outlier_ax_ is not None


# ---- weights -------------------------------------------------------------------------


def test_every_row_is_in_a_bar_of_robust_weights_display_and_outliers_are_hatched(ax):
    display = RobustWeightsDisplay.from_estimator(TKMeans(3, random_state=0).fit(X), X, ax=ax)
    plain = sum(bar.get_height() for bar in ax.patches if not bar.get_hatch())
    hatched = sum(bar.get_height() for bar in ax.patches if bar.get_hatch())
    assert plain == np.sum(~display.outliers)
    assert hatched == np.sum(display.outliers) > 0


def test_robust_weights_display_accepts_an_estimator_without_outliers(ax):
    model = FastTKMeans(3, random_state=0).fit(X)
    display = RobustWeightsDisplay.from_estimator(model, X, ax=ax)
    assert sum(bar.get_height() for bar in ax.patches) == len(X)
    assert not display.outliers.any()


def test_robust_weights_display_refuses_an_estimator_without_robust_weights(ax):
    with pytest.raises(ValueError, match="KMeans trusts all rows alike"):
        RobustWeightsDisplay.from_estimator(KMeans(3, n_init=1).fit(X), X, ax=ax)


# ---- stability -----------------------------------------------------------------------


def test_stability_display_shows_every_resample_and_the_mean(ax):
    jaccard = np.array([[1.0, 0.2], [0.8, 0.6], [0.9, np.nan]])
    display = StabilityDisplay(jaccard=jaccard, sizes=[7, 3]).plot(ax=ax)
    np.testing.assert_array_equal(display.points_.get_offsets()[:, 0], jaccard.ravel())
    np.testing.assert_allclose(display.means_.get_offsets(), [[0.9, 0], [0.4, 1]])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0 (7 rows)", "1 (3 rows)"]


def test_stability_display_has_the_thresholds_of_stability_results():
    assert (stability.DOUBTFUL, stability.STABLE) == (resampling.DOUBTFUL, resampling.STABLE)


def test_a_robustness_display_of_trimming_curves_names_what_is_left_out(ax):
    curve = RobustnessCurve(np.array([0.0, 0.1]), {"criterion": np.array([[1.0], [2.0]])})
    display = RobustnessDisplay(curves={"2 clusters": curve}, measure="criterion").plot(ax=ax)
    assert ax.get_xlabel() == "rows left out, as a share of all"
    assert ax.get_ylabel() == "classification log-likelihood per row"
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), [1.0, 2.0])
