"""The estimators inside scikit-learn's compositions, with weights that find their way."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans

X, LABELS, _ = t_mixture(n=300, n_clusters=3, n_features=2, dof=5.0, scale=0.05)
WEIGHT = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)

CLUSTERERS = [
    TKMeans(3, random_state=0),
    FastTKMeans(3, random_state=0),
    MiniBatchTKMeans(3, init_size=100, batch_size=50, random_state=0),
]
MIXTURE = StudentTMixture(3, random_state=0)
ALL = [*CLUSTERERS, MIXTURE]


def named(estimators):
    return pytest.mark.parametrize("estimator", estimators, ids=lambda e: type(e).__name__)


@named(ALL)
def test_an_estimator_in_a_pipeline_is_fitted_to_the_output_of_the_step_before(estimator):
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X)
    scaled = StandardScaler().fit_transform(X)
    alone = clone(estimator).fit(scaled)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(scaled))
    assert pipeline.score(X) == pytest.approx(alone.score(scaled))


@named(CLUSTERERS)
def test_distances_to_centres_are_features_for_the_next_step_of_a_pipeline(estimator):
    pipeline = make_pipeline(clone(estimator), KNeighborsClassifier()).fit(X, LABELS)
    assert pipeline.score(X, LABELS) > 0.95


@named(ALL)
def test_a_grid_search_scores_every_setting_as_the_estimator_does(estimator):
    name = "n_components" if estimator is MIXTURE else "n_clusters"
    search = GridSearchCV(clone(estimator), {name: [2, 3]}, cv=3).fit(X)
    for k, score in zip((2, 3), search.cv_results_["mean_test_score"], strict=True):
        assert score == pytest.approx(cross_val_score(clone(estimator).set_params(**{name: k}), X, cv=3).mean())
    assert search.best_params_ == {name: 3}
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


@named(CLUSTERERS)
def test_an_estimator_in_a_column_transformer_uses_its_columns_and_names_its_output(estimator):
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "word": "text"})
    columns = ColumnTransformer([("clusters", clone(estimator), ["a", "b"])], remainder="drop").fit(table)
    prefix = type(estimator).__name__.lower()
    assert list(columns.get_feature_names_out()) == [f"clusters__{prefix}{k}" for k in range(3)]
    np.testing.assert_array_equal(columns.transform(table), clone(estimator).fit_transform(X))


@named(CLUSTERERS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_transform_returns_the_kind_of_table_chosen_with_set_output(estimator, library):
    pytest.importorskip(library)
    made = clone(estimator).set_output(transform=library).fit_transform(X)
    assert type(made).__module__.startswith(library)
    assert list(made.columns) == [f"{type(estimator).__name__.lower()}{k}" for k in range(3)]
    np.testing.assert_array_equal(np.asarray(made), clone(estimator).fit_transform(X))


# ---- metadata routing --------------------------------------------------------------------


@pytest.fixture
def _routing():
    with config_context(enable_metadata_routing=True):
        yield


@named(ALL)
@pytest.mark.usefixtures("_routing")
def test_sample_weight_requested_by_routing_reaches_an_estimator_in_a_pipeline(estimator):
    weighted = clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    same = FunctionTransformer()
    pipeline = make_pipeline(same, weighted).fit(X, sample_weight=WEIGHT)
    alone = clone(estimator).fit(X, sample_weight=WEIGHT)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(X))
    assert pipeline.score(X, sample_weight=WEIGHT) == pytest.approx(alone.score(X, sample_weight=WEIGHT), rel=1e-12)
    assert alone.score(X, sample_weight=WEIGHT) != alone.score(X)


@named(ALL)
@pytest.mark.usefixtures("_routing")
def test_sample_weight_neither_requested_nor_declined_by_routing_is_an_error(estimator):
    with pytest.raises(ValueError, match=r"sample_weight.* but are not explicitly set as requested or not requested"):
        make_pipeline(FunctionTransformer(), clone(estimator)).fit(X, sample_weight=WEIGHT)


@named(ALL)
@pytest.mark.usefixtures("_routing")
def test_sample_weight_requested_by_routing_reaches_an_estimator_in_a_grid_search(estimator):
    name = "n_components" if estimator is MIXTURE else "n_clusters"
    weighted = clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    search = GridSearchCV(weighted, {name: [3]}, cv=2).fit(X, sample_weight=WEIGHT)
    halves = np.arange(150), np.arange(150, 300)
    scores = [
        clone(estimator).fit(X[train], sample_weight=WEIGHT[train]).score(X[test], sample_weight=WEIGHT[test])
        for test, train in (halves, halves[::-1])
    ]
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], [np.mean(scores)], rtol=1e-12)
    np.testing.assert_array_equal(search.predict(X), clone(estimator).fit(X, sample_weight=WEIGHT).predict(X))


@pytest.mark.usefixtures("_routing")
def test_partial_fit_can_request_sample_weight_by_routing():
    request = MiniBatchTKMeans().set_partial_fit_request(sample_weight=True).get_metadata_routing()
    assert request.partial_fit.requests["sample_weight"] is True


# ---- classes that people derive ------------------------------------------------------------------


def test_a_subclass_that_takes_fewer_parameters_can_be_cloned():
    class Few(TKMeans.__mro__[1]):  # the shared face; the estimators themselves are final
        def __init__(self, n_clusters=3):
            self.n_clusters, self.checkpoint = n_clusters, "elsewhere.npz"

        _checks, _plan, _model, _accepts = TKMeans._checks, TKMeans._plan, TKMeans._model, TKMeans._accepts

    assert clone(Few(4)).checkpoint is None
    assert clone(Few(4)).n_clusters == 4
