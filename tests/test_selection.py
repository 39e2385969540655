import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.sparse import csr_array
from scipy.stats import multivariate_t
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.paper_data import benchmark_set
from support.thoroughness import thorough

from tkmeans import StudentTMixture, TKMeans, load, save, select_clusters, select_n_clusters, stability
from tkmeans.datasets import make_contaminated
from tkmeans.fitting import selections
from tkmeans.fitting.evidence import Judged, log_peak, shape_integrals
from tkmeans.fitting.selections import Selection, best_of

X, _ = make_contaminated(n_samples=400, n_clusters=4, random_state=1)
AROUND_FOUR = range(2, 7)
SHAPES = ("full", "tied", "diag", "spherical")


def chosen(rows, **options):
    return select_clusters(rows, range(1, 11), **options).best


# ---- the number of clusters ------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["clean", *thorough("5 % far")])
@pytest.mark.parametrize(("name", "true"), [("A1", 20), ("S2", 15), ("S4", 15), ("dim032", 16), ("unbalance", 8)])
def test_the_true_number_is_selected_on_the_papers_sets(name, true, noise):
    # All sets, beside other ways to choose, are in benchmarks/selection.py.
    rows, _ = benchmark_set(name)
    if noise != "clean":
        far = np.random.default_rng(0).uniform(-10, 10, (len(rows) // 20, rows.shape[1]))
        rows = np.vstack([rows, far])
    assert select_clusters(rows, range(true - 4, true + 5)).best == true


@pytest.mark.thorough
def test_the_number_selected_is_the_same_whichever_others_are_tried():
    rows, _ = benchmark_set("S4")
    rows = np.vstack([rows, np.random.default_rng(0).uniform(-10, 10, (len(rows) // 20, 2))])
    assert [select_clusters(rows, numbers).best for numbers in (range(11, 20), range(5, 41))] == [15, 15]


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: rng.standard_normal((300, 3)),
        lambda rng: rng.standard_t(3, (400, 3)),
        lambda rng: rng.dirichlet([0.5, 0.5, 1], 600)[:, :2] ** 0.5 * rng.choice([-1, 1], (600, 2)),  # uniform
        lambda rng: rng.normal(size=(500, 2)) @ [[20, 3], [0, 1]],
    ],
    ids=["round", "heavy tails", "disc", "long"],
)
def test_rows_in_one_heap_are_one_cluster(draw):
    assert chosen(draw(np.random.default_rng(0))) == 1


def test_long_clusters_and_boxes_are_not_cut_in_pieces():
    rng = np.random.default_rng(0)
    long = rng.normal(size=(600, 2)) * [1, 12] + np.repeat([[0, 0], [7, 0], [14, 0]], 200, axis=0)
    assert chosen(long) == 3
    boxes = rng.uniform(size=(900, 2)) * [1, 4] + np.repeat([[0, 0], [2, 1], [4, 0]], 300, axis=0)
    assert chosen(boxes) == 3
    assert chosen(load_iris().data) == 3


def test_neither_missing_values_nor_weights_nor_extreme_values_change_the_number():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.normal(size=(100, 3)) + center for center in 8 * np.eye(4, 3)])
    assert chosen(rows) == 4
    with pytest.warns(UserWarning, match="without a single observed value"):
        assert chosen(np.where(rng.random(rows.shape) < 0.2, np.nan, rows)) == 4
    assert chosen(rows, sample_weight=rng.integers(0, 3, len(rows))) == 4
    assert chosen(rows, sample_weight=np.full(len(rows), 1 / len(rows))) == 4
    for extreme in ([1.79e308] * 3, [-1.79e308] * 3, [0, 0, -1.79e308]):
        assert chosen(np.vstack([rows, [extreme]])) == 4


@pytest.mark.parametrize("missing", [0.2, 0.3])
@pytest.mark.parametrize("seed", [0, 4])
def test_clusters_of_which_few_rows_are_complete_are_counted_rightly(missing, seed):
    # Of 60 rows each, 8 deviations apart, 14 to 25 are complete.
    rng = np.random.default_rng(seed)
    rows = np.repeat([[0.0, 0, 0, 0], [8, 8, 0, 0], [0, 8, 8, 8]], 60, axis=0) + rng.normal(size=(180, 4))
    rows[rng.random(rows.shape) < missing] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*without a single observed value")
        assert chosen(rows) == 3


def test_few_and_equal_rows_have_a_number_of_clusters():
    assert select_clusters(np.repeat([[0.0, 0.0], [5.0, 5.0]], 30, axis=0), range(1, 4)).best <= 2
    assert select_clusters(X[:5], range(1, 6)).best >= 1
    assert select_clusters(X[:2], [1]).best == 1


# ---- the evidence, the longer way round ------------------------------------------------------


@pytest.mark.parametrize("form", ["(p, p)", "(p,)", "(1,)"])
def test_the_evidence_is_the_product_of_the_densities_of_every_row_given_the_rows_before(form):
    # Gaussian rows around a known centre: given the others, the next row has a t distribution.
    rng, p, prior = np.random.default_rng(0), 3, 5.0
    rows = rng.normal(size=(40, p)) * [1, 2, 3]
    pooled = np.diag([2.0, 3.0, 4.0]) if form != "(1,)" else np.eye(p) * 3.0
    n = len(rows)
    scatter = rows.T @ rows
    expected = 0.0
    for i, row in enumerate(rows):
        past = rows[:i].T @ rows[:i] + prior * pooled
        if form == "(p, p)":
            free = prior + i - p + 1
            expected += multivariate_t(shape=past / free, df=free).logpdf(row)
        elif form == "(p,)":
            free = prior + i
            expected += sum(multivariate_t(shape=past[j, j] / free, df=free).logpdf(row[j]) for j in range(p))
        else:
            free = p * (prior + i)
            expected += multivariate_t(shape=np.eye(p) * np.trace(past) / free, df=free).logpdf(row)
    if form == "(p,)":
        scatter = np.diag(np.diag(scatter))
    elif form == "(1,)":
        scatter = np.eye(p) * np.trace(scatter) / p
    covariance = (scatter + prior * pooled) / (n + prior)
    log_det, log_det_pooled = np.linalg.slogdet(covariance)[1], np.linalg.slogdet(pooled)[1]
    inverse = np.linalg.inv(covariance)
    log_likelihood = -n / 2 * (p * np.log(2 * np.pi) + log_det) - np.trace(inverse @ scatter) / 2
    of_prior = prior / 2 * (log_det_pooled - log_det - np.trace(inverse @ pooled))
    shape = {"(p, p)": (p, p), "(p,)": (p,), "(1,)": (1,)}[form]
    found = log_likelihood + of_prior + shape_integrals(np.array([float(n)]), prior, p, shape)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@pytest.mark.parametrize("power", [1.0, 2.5, 10.0])
def test_the_profiles_of_clusters_are_densities(power):
    on_a_line, _ = quad(lambda x: np.exp(log_peak(power, 2.0, 1) - (x**2 / 2) ** power / 2), -20, 20, limit=200)
    in_the_plane, _ = quad(
        lambda r: 2 * np.pi * r * np.exp(log_peak(power, 2.0, 2) - (r**2 / 2) ** power / 2), 0, 20, limit=200
    )
    np.testing.assert_allclose([on_a_line, in_the_plane], 1, rtol=1e-7)


def test_whole_numbers_are_not_clusters_each():
    y = np.repeat([5, 12, 20], 200)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        assert select_clusters(np.rint(y + 1.5 * rng.normal(size=600))[:, None]).best == 3
        assert select_clusters(np.rint(1.5 * rng.normal(size=600))[:, None]).best == 1


def test_amounts_that_are_often_zero_do_not_add_clusters():
    rng = np.random.default_rng(0)
    X = np.array([[0, 0], [6, 1], [2, 7]])[rng.choice(3, 600)] + rng.normal(size=(600, 2))
    spent = np.where(rng.uniform(size=600) < 0.6, 0, rng.exponential(10, 600))
    assert select_clusters(np.column_stack([X, spent]), range(1, 9)).best == 3


@pytest.mark.parametrize(("n_features", "most"), [(2, 8), (9, 5), (30, 5)])
def test_a_choice_of_the_number_begins_with_no_more_components_than_the_rows_can_give_a_shape(
    n_features, most, monkeypatch
):
    # Twice the largest number, if each then has two rows for every dimension and one more; else hardly more than it.
    tried, climb = [], selections.climb
    monkeypatch.setattr(selections, "climb", lambda *a, **o: tried.append(len(a[2].centers)) or climb(*a, **o))
    rows = np.random.default_rng(0).normal(size=(100, n_features))
    select_clusters(rows, range(1, 5))
    assert max(tried) == most


def test_of_the_mixtures_of_a_number_the_best_counts_for_each_criterion():
    first, second = Judged(3, 10.0, 24.0, 23.0, 0.1, "first"), Judged(3, 11.0, 25.0, 22.0, 0.2, "second")
    assert best_of(first, second) == best_of(second, first) == Judged(3, 10.0, 24.0, 22.0, 0.1, "first")


def test_a_cluster_of_a_single_outlier_does_not_improve_the_evidence():
    rng = np.random.default_rng(0)
    rows = np.vstack([rng.standard_normal((200, 50)), 30 + rng.standard_normal((1, 50))])
    assert select_clusters(rows, [1, 2, 3]).best == 1


def test_a_far_clump_of_rows_is_noise_until_it_gets_a_cluster():
    clump = 25 + 0.05 * np.random.default_rng(0).standard_normal((12, 2))
    found = select_clusters(np.vstack([X[:380], clump]), [4, 5, 6])
    assert found.best == 5
    assert found.outlier_fraction[0] - found.outlier_fraction[1] >= 0.5 * 12 / 392


# ---- what a selection does with its arguments ------------------------------------------------


@pytest.mark.parametrize("criterion", ["evidence", "icl", "bic", "stability"])
def test_every_criterion_selects_the_number_of_separated_clusters(criterion):
    found = select_n_clusters(X, [3, 4, 5], criterion=criterion, n_resamples=3, random_state=0)
    assert found.best == 4
    assert found.runner_up in {3, 5}
    assert found.criterion == criterion
    assert (found.stability is not None) == (criterion == "stability")


def test_a_selection_depends_neither_on_n_jobs_nor_on_the_order_of_the_numbers_or_rows():
    shuffled = X[np.random.default_rng(0).permutation(len(X))]
    options = {"shapes": SHAPES[:2]}
    tables = [
        select_clusters(X, [2, 4, 3], n_jobs=1, **options).table,
        select_clusters(X, [4, 3, 2], n_jobs=2, **options).table,
    ]
    np.testing.assert_array_equal(*tables)
    again = select_clusters(shuffled, [2, 3, 4], **options).table
    np.testing.assert_allclose(again.evidence, tables[0].evidence, rtol=1e-9)


def test_a_row_of_weight_two_in_a_selection_is_that_row_twice():
    weight = np.arange(len(X)) % 2 + 1.0
    weighted = select_clusters(X, [3, 4], sample_weight=weight)
    repeated = select_clusters(np.repeat(X, weight.astype(int), axis=0), [3, 4])
    for name in ("evidence", "icl", "bic", "outlier_fraction"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)


@pytest.mark.parametrize("estimator", [None, StudentTMixture(covariance_type="tied"), TKMeans()])
def test_the_fitted_estimator_of_a_selection_is_the_one_that_the_number_and_shape_give(estimator):
    found = select_clusters(X, AROUND_FOUR, shapes=("diag", "spherical"), estimator=estimator)
    best = found.best_estimator
    assert (found.best, found.best_shape, best.n_clusters_) == (4, "spherical", 4)
    like = TKMeans(4) if isinstance(estimator, TKMeans) else StudentTMixture(4, covariance_type="spherical")
    np.testing.assert_array_equal(best.labels_, like.fit(X).labels_)


def test_a_selection_names_a_simpler_shape_that_would_do_as_well():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2)) + np.repeat([[0, 0], [9, 0]], 200, axis=0)
    assert select_clusters(rows, [1, 2, 3]).simpler_shape == "spherical"
    assert select_clusters(rows @ [[1, 0], [3, 1]], [1, 2, 3]).simpler_shape == "tied"
    rows[:200] = rows[:200] @ [[0.4, 0.3], [0.3, 0.4]]
    assert select_clusters(rows @ [[1, 0], [3, 1]], [1, 2, 3]).simpler_shape is None


def test_neither_selection_nor_stability_use_the_checkpoint_or_the_time_limit_of_an_estimator(tmp_path):
    file = tmp_path / "mine.npz"
    file.write_bytes(b"my checkpoint")
    for estimator in (TKMeans(4, checkpoint=file, max_time=1e-9), StudentTMixture(4, checkpoint=file, max_time=1e-9)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = select_clusters(X, [3, 4], estimator=estimator)
            stability(estimator, X, n_resamples=2, random_state=0)
            stability(make_pipeline(StandardScaler(), estimator), X, n_resamples=2, random_state=0)
        assert found.best_estimator.converged_
        assert (estimator.checkpoint, estimator.max_time) == (file, 1e-9)
    assert file.read_bytes() == b"my checkpoint"


def test_a_selection_among_many_rows_uses_a_sample_and_counts_the_numbers(monkeypatch):
    monkeypatch.setattr("tkmeans.fitting.selections.SAMPLE_ROWS", 200)
    monkeypatch.setattr("tkmeans.fitting.selections.SAMPLE_ROWS_PER_CLUSTER", 30)
    told = []
    found = select_clusters(X, AROUND_FOUR, random_state=0, progress=lambda done, total: told.append((done, total)))
    assert told == [(done, 5) for done in range(1, 6)]
    assert found.best == 4


def test_a_selection_reads_files(tmp_path):
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b", comments="")
    found = select_clusters(tmp_path / "rows.csv", AROUND_FOUR)
    assert found.best == 4
    np.testing.assert_allclose(found.evidence, select_clusters(X, AROUND_FOUR).evidence, rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_clusters": []}, "n_clusters must name at least one"),
        ({"n_clusters": [0, 1]}, "n_clusters must be"),
        ({"n_clusters": [2.5]}, "n_clusters must be"),
        ({"n_clusters": [1000]}, "n_samples=420 should be >= n_clusters=1000"),
        ({"shapes": "full"}, "shapes must be"),
        ({"shapes": []}, "shapes must be"),
        ({"shapes": ["round"]}, "shapes must be"),
        ({"criterion": "silhouette"}, "criterion must be"),
        ({"n_resamples": 0}, "n_resamples must be"),
    ],
)
def test_select_clusters_refuses_invalid_arguments(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        select_clusters(X, **arguments)


def test_select_clusters_takes_masked_values_as_missing_and_refuses_text():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    masked = np.ma.masked_array(np.where(np.arange(60)[:, None] % 7 == 0, 1e9, rows), mask=False)
    masked[::7, 0] = np.ma.masked
    masked[::7, 1] = rows[::7, 1]
    found = select_clusters(masked, range(1, 3))
    np.testing.assert_array_equal(found.evidence, select_clusters(masked.filled(np.nan), range(1, 3)).evidence)
    with pytest.raises(TypeError, match="X holds text"):
        select_clusters(rows.astype(str))


@pytest.mark.parametrize("choose", [select_clusters, TKMeans("auto").fit, StudentTMixture("auto").fit])
def test_the_number_of_clusters_of_sparse_rows_is_not_chosen(choose):
    with pytest.raises(TypeError, match=r"(?i)sparse.*toarray"):
        choose(csr_array(np.eye(30)))


# ---- what a selection tells --------------------------------------------------------------------


def entries(numbers, criterion, values, shapes="full"):
    given = {criterion: np.array(values)} | {"n_clusters": np.array(numbers), "criterion": criterion}
    nothing = np.zeros(len(numbers))
    rest = {name: nothing for name in ("evidence", "icl", "bic", "outlier_fraction") if name not in given}
    return Selection(shapes=np.broadcast_to(shapes, len(numbers)), **given, **rest)


def test_the_largest_number_of_stable_clusters_is_selected_by_stability():
    found = entries([1, 2, 3, 4, 5], "stability", [1.0, 0.95, 0.85, 0.5, 0.6])
    assert found.ranking.tolist() == [3, 2, 1, 5, 4]
    assert found.sentence == "3 clusters by stability; 2 comes next"


def test_the_margin_of_a_selection_is_in_nats():
    found = entries([1, 2, 3], "evidence", [50.0, 40.0, 40.0 + np.log(3)])
    np.testing.assert_allclose(found.margin, np.log(3))
    twice = entries([1, 2, 3], "bic", [100.0, 80.0, 80.0 + 2 * np.log(3)])
    np.testing.assert_allclose(twice.margin, found.margin)


@pytest.mark.parametrize(
    ("nats", "words"),
    [(0.4, "hardly better than 2"), (2.0, "somewhat better than 2"), (4.0, "clearly better"), (6.0, "far better")],
)
def test_the_sentence_of_a_selection_says_how_close_the_runner_up_is(nats, words):
    sentence = entries([1, 2], "evidence", [10.0, 10.0 + nats]).sentence
    assert sentence.startswith("1 cluster by evidence")
    assert words in sentence
    assert f"({nats:.1f} nats)" in sentence


@pytest.mark.parametrize(("best", "says"), [(2, False), (3, False), (4, True)])
def test_the_sentence_of_a_selection_says_if_the_best_is_the_largest_number_that_was_tried(best, says):
    sentence = entries([2, 3, 4], "evidence", 50.0 + abs(np.arange(2, 5) - best)).sentence
    assert sentence.endswith("; more were not tried") == says


def test_the_runner_up_of_a_selection_is_another_number_and_not_another_shape():
    found = entries([2, 3, 2, 3], "evidence", [5.0, 9.0, 4.0, 7.0], ["full", "full", "tied", "tied"])
    assert (found.best, found.best_shape, found.runner_up, found.margin) == (2, "tied", 3, 3.0)


def test_a_selection_has_a_table_and_prints_it_with_the_choice_marked():
    found = select_clusters(X, [3, 4])
    names = ("n_clusters", "shape", "evidence", "icl", "bic", "outlier_fraction")
    assert found.table.dtype.names == names
    assert [line.split("<-")[-1].strip() for line in repr(found).splitlines()[2:]] == ["runner-up", "best"]
    assert repr(found).startswith("4 clusters by evidence, far better than 3")
    alone = select_clusters(X, [4])
    assert (alone.runner_up, alone.margin) == (None, np.inf)


def test_the_plot_of_a_selection_has_a_line_for_each_shape():
    pytest.importorskip("matplotlib").use("Agg")
    plots = pytest.importorskip("tkmeans.plots")
    found = select_clusters(X, [3, 4, 5], shapes=("full", "spherical"))
    display = found.plot()
    assert isinstance(display, plots.SelectionDisplay)
    labels = display.ax_.get_legend_handles_labels()[1]
    assert labels[:2] == ["shape: spherical", "shape: full"]
    np.testing.assert_array_equal(display.line_.get_xydata()[:, 1], found.evidence[found.shapes == "spherical"])
    assert display.best == 4


# ---- estimators that choose -----------------------------------------------------------------


@pytest.mark.parametrize("estimator", [TKMeans, StudentTMixture])
def test_an_estimator_with_auto_fits_the_number_that_select_clusters_selects(estimator, tmp_path):
    model = estimator("auto").fit(X)
    assert model.n_clusters_ == model.selection_.best == select_clusters(X).best == 4
    np.testing.assert_array_equal(model.labels_, estimator(4).fit(X).labels_)
    assert "auto" in model.get_params().values()
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.n_clusters_ == 4
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_an_estimator_that_is_fitted_again_with_a_number_keeps_no_selection():
    model = StudentTMixture("auto").fit(X)
    assert model.n_components_ == 4
    model.set_params(n_components=3).fit(X)
    assert model.n_components_ == 3
    assert not hasattr(model, "selection_")


@pytest.mark.parametrize(
    ("rows", "message"), [(np.full((5, 2), np.inf), "infinity"), (X[:0], "0 sample"), (X.astype(str), "text")]
)
def test_an_estimator_with_auto_refuses_what_others_refuse_and_stays_as_it_was(rows, message):
    model = TKMeans("auto")
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(rows)
    assert vars(model) == vars(TKMeans("auto"))


def test_other_words_than_auto_are_no_number_of_clusters():
    for model in (TKMeans("many"), StudentTMixture("many")):
        with pytest.raises(TypeError, match='must be an integer of at least 1 or "auto", got'):
            model.fit(X)


@pytest.mark.parametrize(("n_features", "n_rows", "true"), [(50, 40, 5), (100, 30, 4), (20, 30, 5)])
def test_the_number_is_found_where_rows_are_fewer_than_the_numbers_of_an_ellipse(n_features, n_rows, true):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(0, 2, (true, n_features)), n_rows, axis=0) + rng.normal(size=(true * n_rows, n_features))
    found = select_clusters(X, range(1, 11))
    assert (found.best, found.best_shape) == (true, "diag")
    assert found.best_estimator.covariance_type == "diag"
    assert StudentTMixture("auto").fit(X).weights_.shape == (true,)  # with full ellipses, as it was asked for


@pytest.mark.parametrize("seed", range(3))
def test_far_rows_that_were_not_rounded_do_not_hide_that_the_others_were(seed):
    rng = np.random.default_rng(seed)
    X = np.round(2 * (rng.normal(size=(1000, 2)) + np.repeat([[0, 0], [5, 0]], 500, axis=0)))
    assert select_clusters(np.vstack([X, rng.uniform(-80, 80, (50, 2))]), range(1, 16)).best == 2


@pytest.mark.parametrize(("n_features", "n_rows", "apart"), [(4, 25, 13), (6, 60, 13), (6, 60, 100), (10, 60, 13)])
@pytest.mark.parametrize("rescaled", [False, True])
def test_clusters_in_a_row_along_one_column_are_counted_in_any_units(n_features, n_rows, apart, rescaled):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(3 * n_rows, n_features))
        X[:, 0] += apart * np.repeat([0, 1, 2], n_rows)
        units = 10 ** rng.uniform(-3, 3, n_features) if rescaled else 1.0
        assert select_clusters(X * units, range(1, 7)).best == 3


@pytest.mark.parametrize(("n_rows", "n_far", "p", "apart"), [(285, 15, 2, 12), (500, 25, 3, 12), (300, 10, 2, 11)])
def test_a_cluster_just_beyond_the_bound_of_bad_cells_is_counted(n_rows, n_far, p, apart):
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(n_rows + n_far, p))
        X[n_rows:, 0] += apart
        assert select_clusters(X, range(1, 5)).best == 2


def test_a_choice_among_many_rows_does_not_depend_on_the_random_state():
    X, _ = make_contaminated(n_samples=8000, n_clusters=3, random_state=0)
    found = [select_clusters(X, range(2, 5), random_state=state) for state in (None, 0, 1)]
    for other in found[1:]:
        np.testing.assert_array_equal(other.evidence, found[0].evidence)
