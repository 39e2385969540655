"""Breakdown and influence curves, against what is known of means, medians and t distributions."""

import numpy as np
import pytest
from scipy import integrate, optimize, stats
from sklearn.cluster import DBSCAN, KMeans
from sklearn.mixture import GaussianMixture
from support.model_inputs import t_mixture

import tkmeans
from tkmeans import RobustnessCurve, StudentTMixture, TKMeans, breakdown_curve, influence_curve, trimming_curves
from tkmeans.baselines import KMedians
from tkmeans.datasets import scaled
from tkmeans.datasets.generators import strays
from tkmeans.robustness import KINDS

rng = np.random.default_rng(0)
ONE = rng.normal(size=(400, 2))
Y = np.repeat(np.arange(3), 60)
THREE = rng.normal(size=(180, 2)) + np.array([[0, 0], [20, 0], [0, 20]])[Y]
MEAN = KMeans(1, n_init=1, random_state=0)


def test_a_point_mass_moves_a_mean_by_its_share_times_its_distance():
    curve = breakdown_curve(MEAN, ONE, kind="point", fractions=[0.0, 0.2, 0.5], n_draws=1, random_state=3)
    at = strays(ONE, 1, np.random.RandomState(3), 10.0, **KINDS["point"])[0]  # of the first draw
    spread = np.sqrt(np.mean((ONE - ONE.mean(axis=0)) ** 2))
    assert curve.values["shift"][0, 0] == pytest.approx(0, abs=1e-9)
    same = breakdown_curve(MEAN, ONE, kind="point", fractions=[0.2], n_draws=1, random_state=3).values["shift"][0, 0]
    assert same == pytest.approx(0.2 * np.linalg.norm(at - ONE.mean(axis=0)) / spread, rel=1e-9)


def test_the_scale_of_kmeans_is_its_root_mean_square_over_that_of_clean_rows():
    curve = breakdown_curve(MEAN, ONE, kind="inside", fractions=[0.25], n_draws=1, random_state=1)
    Z = np.vstack([ONE, strays(ONE, 133, np.random.RandomState(1), **KINDS["inside"])])
    assert curve.values["scale"][0, 0] == pytest.approx(np.sqrt(Z.var(axis=0).sum() / ONE.var(axis=0).sum()))


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
@pytest.mark.parametrize("mixture", [GaussianMixture, StudentTMixture])
def test_without_contamination_every_clusterer_keeps_its_scale_and_finds_its_own_clusters(mixture, kind):
    model = mixture(3, covariance_type=kind, random_state=0)
    curve = breakdown_curve(model, THREE, Y, fractions=[0.0], n_draws=2, random_state=0)
    np.testing.assert_allclose(curve.values["scale"], 1, rtol=1e-9)
    np.testing.assert_allclose(curve.values["ari"], 1)
    assert curve.values["shift"].max() < 0.2


def test_kmeans_breaks_at_one_far_row_and_tkmeans_does_not():
    options = {"fractions": [0.0, 0.006, 0.2], "distance": 100.0, "random_state": 0}
    means = breakdown_curve(KMeans(3, n_init=3, random_state=0), THREE, Y, **options)
    ours = breakdown_curve(TKMeans(3, random_state=0), THREE, Y, **options)
    assert (means.holds_up_to(), ours.holds_up_to()) == (0.0, 0.2)
    assert means.values["scale"][-1].min() > 5
    assert ours.values["scale"][-1].max() < 2
    assert ours.values["shift"].max() < 0.5 < means.values["shift"][1].min()


def test_without_labels_the_clusters_of_the_clean_fit_are_the_true_ones():
    model = TKMeans(3, random_state=0)
    given, own = (breakdown_curve(model, THREE, y, fractions=[0.1], random_state=0) for y in (Y, None))
    np.testing.assert_array_equal(given.values["ari"], own.values["ari"])


def test_a_clusterer_without_centres_has_labels_to_judge_only():
    curve = breakdown_curve(DBSCAN(eps=3.0), THREE, Y, fractions=[0.0, 0.1], n_draws=1, random_state=0)
    assert np.isfinite(curve.values["ari"]).all()
    assert np.isnan(curve.values["shift"]).all()
    assert np.isnan(curve.values["scale"]).all()
    with pytest.raises(ValueError, match="DBSCAN has no centres"):
        influence_curve(DBSCAN(), THREE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("share", "added"), [(0.0, 0), (0.2, 45), (0.5, 180)])
def test_the_share_of_contamination_counts_all_rows(kind, share, added):
    seen = []

    class Spy(KMeans):
        def fit_predict(self, X, y=None, sample_weight=None):
            seen.append(X)
            return super().fit_predict(X)

    breakdown_curve(Spy(3, n_init=1, random_state=0), THREE, Y, kind=kind, fractions=[share], n_draws=1, random_state=0)
    rows = seen[-1]
    np.testing.assert_array_equal(rows[:180], THREE)
    assert len(rows) == 180 + added


def test_contaminating_rows_lie_where_their_kind_says():
    low, high = THREE.min(axis=0), THREE.max(axis=0)
    middle, half = (low + high) / 2, (high - low) / 2
    rows = {}
    for kind, how in KINDS.items():
        found = strays(THREE, 500, np.random.RandomState(0), **{"distance": 10.0, **how})
        rows[kind] = (found - middle) / half
    assert np.abs(rows["inside"]).max() <= 1
    assert 9 < np.abs(rows["far"]).max() <= 10
    assert np.ptp(rows["point"], axis=0).max() == 0
    assert np.abs(rows["point"][0]).max() == pytest.approx(10)
    assert rows["clump"].std(axis=0) == pytest.approx([0.01, 0.01], rel=0.1)
    assert np.quantile(np.abs(rows["cauchy"]), 0.99) > 10  # a tail that no box holds


def test_the_breakdown_curve_is_the_same_for_one_seed_and_any_number_of_jobs():
    options = {"kind": "cauchy", "fractions": [0.1, 0.3], "n_draws": 2, "random_state": 7}
    one, two = (breakdown_curve(TKMeans(3, random_state=0), THREE, Y, n_jobs=n, **options) for n in (1, 2))
    for measure, values in one.values.items():
        np.testing.assert_array_equal(values, two.values[measure])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "odd"}, "kind"),
        ({"fractions": [0.0, 1.0]}, "fractions must be numbers from 0 to below 1"),
        ({"fractions": []}, "fractions"),
        ({"n_draws": 0}, "n_draws"),
        ({"distance": 0.0}, "distance"),
        ({"y": [0, 1]}, "inconsistent"),
    ],
)
def test_a_wrong_argument_of_the_breakdown_curve_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        breakdown_curve(MEAN, ONE, **options)


def test_a_curve_holds_up_to_the_last_fraction_before_its_first_failure():
    x = np.array([0.0, 0.1, 0.2, 0.3])
    assert RobustnessCurve(x, {"ari": np.array([[1, 1], [1, 0.96], [1, 0.5], [1, 1]])}).holds_up_to() == 0.1
    assert np.isnan(RobustnessCurve(x, {"ari": np.array([[0.9], [1], [1], [1]])}).holds_up_to())
    assert RobustnessCurve(x, {"ari": np.ones((4, 1))}).holds_up_to(1.0) == 0.3


# ---- influence -------------------------------------------------------------------------


def test_the_influence_on_a_mean_is_the_distance_of_the_row():
    at = np.array([0.0, 1.0, 10.0, 1000.0])
    np.testing.assert_allclose(influence_curve(MEAN, ONE, distances=at).values["influence"][:, 0], at, atol=1e-9)


def test_the_influence_on_a_coordinate_wise_median_does_not_grow_with_the_distance():
    curve = influence_curve(KMedians(1, random_state=0), ONE, distances=[10.0, 1e6], random_state=0)
    near, far = curve.values["influence"][:, 0]
    assert near == far


def test_the_influence_on_the_centre_of_a_t_distribution_is_its_influence_function():
    # The location of a t distribution with fixed nu is an M-estimator: psi(x) = w x, and the influence of a row at x is
    # psi(x) / E psi', at the scale that the model finds for normal rows.
    nu, p = 3.0, 2
    normal = np.random.default_rng(5).normal(size=(4000, p))
    mean = lambda f: integrate.quad(lambda s: f(s) * stats.chi2(p).pdf(s), 0, 200)[0]  # noqa: E731
    alpha = optimize.brentq(lambda a: mean(lambda s: (nu + p) * s / (nu * a + s)) - p, 0.05, 5)
    weight = lambda s: 1 / (nu * alpha + s)  # noqa: E731
    slope = mean(lambda s: weight(s) - 2 / p * s * weight(s) ** 2)
    at = np.array([0.5, 2.0, 5.0, 20.0])
    found = influence_curve(TKMeans(1, dof=nu, tol=1e-14, bad_cells=False), normal, distances=at, random_state=0)
    np.testing.assert_allclose(found.values["influence"][:, 0], weight(at**2) * at / slope, rtol=0.1)


def test_the_added_row_starts_at_the_outermost_centre_and_moves_away_from_the_others():
    seen = []

    class Spy(KMeans):
        def fit_predict(self, X, y=None, sample_weight=None):
            seen.append(X)
            return super().fit_predict(X)

    influence_curve(Spy(3, n_init=3, random_state=0), THREE, distances=[0.0, 5.0])
    start, away = seen[1][-1], seen[2][-1]
    centers = np.array([THREE[k == Y].mean(axis=0) for k in range(3)])
    outermost = centers[np.linalg.norm(centers - centers.mean(axis=0), axis=1).argmax()]
    np.testing.assert_allclose(start, outermost, atol=1e-9)
    assert np.linalg.norm(away - centers.mean(axis=0)) > np.linalg.norm(start - centers.mean(axis=0))


# ---- the guide ---------------------------------------------------------------------------


def test_the_guide_on_robustness_is_what_its_stored_figures_give():
    guide = pytest.importorskip("benchmarks.robustness")
    assert guide.made() == guide.GUIDE.read_text(encoding="utf-8")


# ---- pictures ----------------------------------------------------------------------------


def test_a_curve_draws_itself_and_a_display_the_worst_draw_of_each_clusterer():
    pytest.importorskip("matplotlib").use("Agg")
    from tkmeans.plots import RobustnessDisplay

    curve = breakdown_curve(MEAN, ONE, fractions=[0.0, 0.1], n_draws=2, random_state=0)
    display = curve.plot()
    np.testing.assert_allclose(display.lines_[0].get_ydata(), curve.values["ari"].min(axis=1))
    both = RobustnessDisplay(curves={"a": curve, "b": curve}, measure="shift").plot()
    np.testing.assert_allclose(both.lines_[1].get_ydata(), curve.values["shift"].max(axis=1))
    assert both.ax_.get_yscale() == "log"
    assert influence_curve(MEAN, ONE, distances=[1.0]).plot().ax_.get_xlabel().startswith("distance")
    with pytest.raises(ValueError, match="measure must be one of"):
        RobustnessDisplay(curves={}, measure="odd")


# ---- rows left out ---------------------------------------------------------------------------------


def trimmed_gaussian(X, n_kept):
    """The mean log-density of the rows of one Gaussian that the others are left out of, by concentration steps."""
    kept = np.arange(len(X))
    for _ in range(100):
        covariance = np.cov(X[kept].T, bias=True) + 1e-6 * np.eye(X.shape[1])  # as GaussianMixture's
        merit = stats.multivariate_normal(X[kept].mean(axis=0), covariance).logpdf(X)
        before, kept = set(kept), np.argsort(-merit)[:n_kept]
        if before == set(kept):
            break
    return merit[kept].mean()


def test_the_criterion_of_one_gaussian_is_that_of_its_concentration_steps():
    X = np.vstack([ONE, np.random.default_rng(1).uniform(-30, 30, size=(40, 2))])
    curve = trimming_curves(X, [1], levels=[0.0, 0.1, 0.25], estimator=GaussianMixture(1))["1 cluster"]
    expected = [trimmed_gaussian(X, n) for n in (440, 396, 330)]
    np.testing.assert_allclose(curve.values["criterion"].ravel(), expected, rtol=1e-6)
    np.testing.assert_array_equal(curve.values["smallest"].ravel(), 1.0)


def test_with_no_row_left_out_the_criterion_is_the_mean_classification_log_likelihood():
    model = GaussianMixture(3, random_state=0).fit(THREE)
    curve = trimming_curves(THREE, [3], levels=[0.0], estimator=GaussianMixture(random_state=0))["3 clusters"]
    density = [
        stats.multivariate_normal(m, C).pdf(THREE) for m, C in zip(model.means_, model.covariances_, strict=True)
    ]
    joint = np.log(model.weights_[:, None] * density)
    assert curve.values["criterion"][0, 0] == pytest.approx(np.mean(np.max(joint, axis=0)))
    assert curve.values["smallest"][0, 0] == pytest.approx(1 / 3)


def test_the_criterion_rises_steeply_until_the_outliers_are_left_out_and_clusters_hold_from_there():
    X = np.vstack([THREE, np.random.default_rng(2).uniform(-300, 300, size=(20, 2))])
    found = trimming_curves(X, [2, 3], levels=[0.0, 0.05, 0.1, 0.15])
    assert list(found) == ["2 clusters", "3 clusters"]
    rises = np.diff(found["3 clusters"].values["criterion"].ravel())
    assert np.min(rises[:2]) > 2 * rises[2]
    assert found["3 clusters"].values["smallest"][2, 0] == pytest.approx(1 / 3, abs=0.01)
    assert found["3 clusters"].values["criterion"][2, 0] > found["2 clusters"].values["criterion"][2, 0] + 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"levels": [0.5, 1.0]}, "levels must be numbers from 0 to below 1"),
        ({"n_clusters": []}, "n_clusters must name at least one number"),
        ({"n_clusters": [0]}, "n_clusters must be an integer of at least 1"),
        ({"estimator": KMeans(2)}, "estimator must have score_samples and predict_proba"),
    ],
)
def test_trimming_curves_name_the_argument_that_is_wrong(change, words):
    with pytest.raises((TypeError, ValueError), match=words):
        trimming_curves(**({"X": THREE, "n_clusters": [2]} | change))


# ---- rows that are refused -----------------------------------------------------------------------

X, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


def test_curves_of_clusters_without_a_width_are_refused():
    for call in (tkmeans.breakdown_curve, tkmeans.influence_curve):
        with pytest.raises(ValueError, match="2 clusters of equal rows"):
            call(TKMeans(2), X[:2])


def test_equal_rows_and_complex_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="X must have a spread in every column"):
        scaled(np.full((3, 2), 4.41122742e89))
    with pytest.raises(ValueError, match="distances must be finite real numbers"):
        tkmeans.influence_curve(TKMeans(3), X, distances=[1j])
