"""Columns that tell nothing: constant ones, copies, and linear combinations of others."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.model_inputs import two_groups

from tkmeans import StudentTMixture, TKMeans, load, save, select_clusters
from tkmeans.persistence import ModelFileError, checksum
from tkmeans.persistence.encoding import encode

CENTERS = np.array([[0, 0], [10, 0], [0, 10], [10, 10.0]])
GROUPS = np.random.default_rng(0).integers(0, 4, 600)
ROWS = CENTERS[GROUPS] + np.random.default_rng(1).normal(size=(600, 2))
ROWS[:5] = 300 + 50 * np.random.default_rng(2).normal(size=(5, 2))  # far rows follow the equations, too
MAP = np.random.default_rng(3).normal(size=(2, 8))


def with_constants(n, value=3.0):
    return np.hstack([ROWS, np.full((600, n), value)])


def looked_at(model):
    return model._fitted_model.params.columns


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
@pytest.mark.parametrize("n", [1, 5, 20])
def test_constant_columns_change_nothing_to_the_last_bit(kind, n):
    plain = StudentTMixture(4, covariance_type=kind).fit(ROWS)
    model = StudentTMixture(4, covariance_type=kind).fit(with_constants(n))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.means_[:, :2], plain.means_)
    np.testing.assert_array_equal(model.means_[:, 2:], 3.0)
    np.testing.assert_array_equal(model.outlier_pvalues_, plain.outlier_pvalues_)
    np.testing.assert_array_equal(model.outliers(with_constants(n)), plain.outliers(ROWS))
    assert model.lower_bound_ == plain.lower_bound_


def test_copies_and_combinations_lead_to_the_clusters_of_the_columns_that_they_are_made_of():
    plain = StudentTMixture(4).fit(ROWS)
    for X in (np.hstack([ROWS, ROWS]), np.hstack([ROWS, ROWS @ MAP + 3]), np.hstack([ROWS, (ROWS @ MAP).round(2)])):
        model = StudentTMixture(4).fit(X)
        assert len(looked_at(model)) == 2
        assert adjusted_rand_score(model.labels_, plain.labels_) == 1
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_the_columns_of_an_encoded_category_sum_to_one_and_one_of_them_is_left_out():
    levels = np.random.default_rng(4).integers(0, 3, 600)
    model = StudentTMixture(4).fit(np.hstack([ROWS, np.eye(3)[levels]]))
    assert len(looked_at(model)) == 4


def test_centres_shapes_and_drawn_rows_follow_the_equations():
    X = np.hstack([ROWS, ROWS @ MAP + 3])
    model = StudentTMixture(4, random_state=0).fit(X)
    np.testing.assert_allclose(model.means_[:, 2:], model.means_[:, :2] @ MAP + 3, atol=1e-8)
    whole = np.hstack([np.eye(2), MAP])  # (2, 10)
    expected = whole.T @ model.covariances_[:, :2, :2] @ whole
    unit = np.median(np.abs(X - np.median(X, axis=0)), axis=0)
    np.testing.assert_allclose(model.covariances_, expected, atol=1.1e-4 * np.max(unit) ** 2)  # reg_covar beside
    assert np.all(np.linalg.eigvalsh(model.precisions_) > 0)
    drawn, _ = model.sample(100)
    np.testing.assert_allclose(drawn[:, 2:], drawn[:, :2] @ MAP + 3, atol=1e-6)


def test_an_equation_that_one_row_breaks_is_none():
    X = np.random.default_rng(5).normal(size=(40_000, 3))
    X = np.hstack([X, X.sum(axis=1, keepdims=True), np.zeros((40_000, 1))])
    assert len(looked_at(StudentTMixture(1).fit(X))) == 3
    X[39_999, 4] = 1.0
    X[20_001, 3] += 1.0
    assert looked_at(StudentTMixture(1).fit(X)) is None


def test_of_few_rows_no_column_is_left_out_though_equations_hold():
    X = np.random.default_rng(6).normal(size=(30, 40))
    assert looked_at(StudentTMixture(1).fit(X)) is None


def test_columns_of_rounding_errors_are_constant():
    X = np.hstack([ROWS, 1e6 + 1e-10 * np.random.default_rng(7).integers(-1, 2, (600, 6))])
    assert looked_at(StudentTMixture(4).fit(X)) == [0, 1]


def test_rows_that_are_all_equal_keep_their_columns():
    model = StudentTMixture(1).fit(np.ones((20, 3)))
    np.testing.assert_array_equal(model.means_, 1.0)


def test_round_components_look_at_all_columns_and_those_along_axes_leave_out_constant_ones_alone():
    X = np.hstack([with_constants(2), ROWS])
    assert looked_at(StudentTMixture(4, covariance_type="spherical").fit(X)) is None
    assert looked_at(StudentTMixture(4, covariance_type="diag").fit(X)) == [0, 1, 4, 5]


def test_with_missing_values_constant_columns_alone_are_left_out():
    X = np.hstack([with_constants(8), ROWS])
    X[np.random.default_rng(8).random(X.shape) < 0.1] = np.nan
    model = StudentTMixture(4).fit(X)
    assert looked_at(model) == [0, 1, 10, 11]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert adjusted_rand_score(GROUPS, model.labels_) > 0.9


@pytest.mark.parametrize("estimator", [StudentTMixture("auto"), TKMeans("auto")])
def test_constant_columns_do_not_change_the_number_of_clusters(estimator):
    model = estimator.fit(with_constants(16))
    assert model.n_clusters_ == 4
    assert adjusted_rand_score(GROUPS[5:], model.labels_[5:]) == 1
    assert select_clusters(with_constants(16), range(2, 6), shapes=("full", "diag", "spherical")).best == 4


def test_cells_of_all_columns_are_judged():
    X = np.random.default_rng(9).normal(size=(600, 8)) + 9.0 * (GROUPS[:, None] % 2)
    X[:, [1, 3]] = 5.0
    X[7, 2] = 1e5
    cells = StudentTMixture(2).fit(X).find_bad_cells(X)
    assert cells.shape == X.shape
    np.testing.assert_array_equal(np.argwhere(cells), [[7, 2]])


@pytest.mark.parametrize("kind", ["full", "tied", "diag"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_model_file_keeps_the_equations(kind, dtype, tmp_path):
    X = np.hstack([with_constants(3), ROWS.sum(axis=1, keepdims=True)]).astype(dtype)
    model = make_pipeline(StandardScaler(), StudentTMixture(4, covariance_type=kind)).fit(X)
    save(model, tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    for method in ("predict", "score_samples", "transform", "predict_proba"):
        np.testing.assert_array_equal(getattr(loaded, method)(X), getattr(model, method)(X))
    np.testing.assert_array_equal(loaded[-1].covariances_, model[-1].covariances_)
    assert looked_at(loaded[-1]) == looked_at(model[-1])


def test_a_model_file_with_other_equations_is_refused(tmp_path):
    save(StudentTMixture(4).fit(with_constants(2)), tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    relations = StudentTMixture(4).fit(np.hstack([ROWS, ROWS]))._fitted_model.params.relations
    document["estimator"]["fitted"]["_relations"] = encode(relations)
    document["checksum"] = checksum(document)
    (tmp_path / "forged.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="relations"):
        load(tmp_path / "forged.json")


def test_a_fit_goes_on_where_it_was(tmp_path):
    X, path = with_constants(5), tmp_path / "fit.npz"
    whole = StudentTMixture(4).fit(X)
    with pytest.warns(UserWarning, match="converge"):
        StudentTMixture(4, max_iter=2, checkpoint=path).fit(X)
    np.testing.assert_array_equal(StudentTMixture(4).fit(X, resume=path).means_, whole.means_)
    again = StudentTMixture(4, warm_start=True).fit(X).fit(X)
    np.testing.assert_allclose(again.means_, whole.means_, atol=1e-3)


def test_first_means_and_precisions_are_of_all_columns():
    X = np.hstack([with_constants(2), ROWS.sum(axis=1, keepdims=True)])
    whole = StudentTMixture(4).fit(X)
    model = StudentTMixture(4, means_init=whole.means_, precisions_init=whole.precisions_).fit(X)
    np.testing.assert_array_equal(model.labels_, whole.labels_)


def test_files_and_dask_collections_leave_out_the_same_columns(tmp_path):
    dask_array = pytest.importorskip("dask.array")
    X = np.hstack([with_constants(3), ROWS.sum(axis=1, keepdims=True)])
    whole = StudentTMixture(4).fit(X)
    np.save(tmp_path / "rows.npy", X)
    of_file = StudentTMixture(4).fit(tmp_path / "rows.npy")
    np.testing.assert_array_equal(of_file.means_, whole.means_)
    of_dask = StudentTMixture(4).fit(dask_array.from_array(X, chunks=(150, X.shape[1])))
    np.testing.assert_allclose(of_dask.means_, whole.means_, atol=1e-9)
    np.testing.assert_array_equal(np.asarray(of_dask.predict(dask_array.from_array(X, chunks=(150, 6)))), whole.labels_)


@pytest.mark.parametrize("seed", range(3))
def test_flags_that_few_rows_have_do_not_part_rows_that_are_near_each_other(seed):
    rng = np.random.default_rng(seed)
    X = np.hstack([CENTERS[GROUPS] + rng.normal(size=(600, 2)), rng.random((600, 10)) < 0.01])
    assert adjusted_rand_score(GROUPS, StudentTMixture(4).fit(X).labels_) > 0.99
    assert StudentTMixture("auto").fit(X).n_components_ == 4


def test_clusters_that_differ_in_a_flag_alone_are_found():
    flag = np.repeat([0.0, 1.0], [420, 180])
    X = np.column_stack([np.random.default_rng(0).normal(size=(600, 2)), flag])
    assert adjusted_rand_score(flag, StudentTMixture(2).fit(X).labels_) == 1


# ---- weights, round components and p-values ------------------------------------------------------

X = two_groups()


@pytest.mark.filterwarnings("ignore")
def test_a_row_of_weight_2_is_that_row_twice_where_two_columns_tell_the_same():
    D, weight = load_digits().data[:600], np.random.default_rng(1).integers(1, 3, 600)
    weighted = StudentTMixture(10, random_state=0).fit(D, sample_weight=weight)
    repeated = StudentTMixture(10, random_state=0).fit(np.repeat(D, weight, axis=0))
    np.testing.assert_array_equal(weighted.predict(D), repeated.predict(D))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-9)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_constant_column_is_looked_at_by_round_components_alone_and_the_docstring_says_so(kind):
    beside = np.c_[X, np.full(len(X), 7.0)]
    own, wide = (StudentTMixture(2, covariance_type=kind, random_state=0).fit(rows) for rows in (X, beside))
    same = np.allclose(own.score_samples(X), wide.score_samples(beside), atol=1e-6)
    assert same == (kind != "spherical")
    assert 'not looked at (but by "spherical"' in StudentTMixture.__doc__


def test_rows_of_which_a_constant_column_is_all_that_was_observed_have_p_values():
    X = np.c_[np.random.default_rng(0).normal(size=60), np.full(60, 3.0)]
    X[:6, 0] = np.nan
    assert np.all(np.isfinite(StudentTMixture(1).fit(X).outlier_pvalues_))
