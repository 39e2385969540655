"""scikit-learn's own idea of what an estimator must do."""

import warnings

import pytest
from sklearn.utils.estimator_checks import (
    check_estimator_sparse_array,
    check_estimator_sparse_matrix,
    parametrize_with_checks,
)

from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids

ESTIMATORS = [
    TKMeans(),
    TKMeans(n_clusters=3, dof=1.0),
    TKMeans(n_clusters=2, cluster_weights="estimate", init="random"),
    TKMeans(n_clusters=3, cluster_weights="equal", accelerate=False, init="k-means++"),
    FastTKMeans(),
    FastTKMeans(n_clusters=3, init="uniform"),
    MiniBatchTKMeans(),
    MiniBatchTKMeans(n_clusters=3, dof=1.0, batch_size=10, half_life=100),
    StudentTMixture(),
    StudentTMixture(n_components=2, covariance_type="tied", init_params="k-means++"),
    StudentTMixture(n_components=3, covariance_type="diag", shared_dof=True, init_params="random"),
    StudentTMixture(n_components=2, covariance_type="spherical", dof=3.0, accelerate=False),
    KMedians(),
    KMedians(n_clusters=3, init="random"),
    KMedoids(),
    KMedoids(n_clusters=3, method="alternate", metric="cityblock", init="random"),
]


def failing(estimator):
    """Of estimators that take sparse rows and have probabilities, which a test below leaves out."""
    why = "scikit-learn takes what has predict_proba for a classifier of four classes"
    sparse = {"check_estimator_sparse_matrix": why, "check_estimator_sparse_array": why}
    return sparse if estimator.__sklearn_tags__().input_tags.sparse else {}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=failing)
def test_every_estimator_check_of_scikit_learn_passes(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the checks provoke warnings on purpose
        check(estimator)


@pytest.mark.parametrize("check", [check_estimator_sparse_matrix, check_estimator_sparse_array])
@pytest.mark.parametrize("estimator", [e for e in ESTIMATORS if failing(e)], ids=repr)
def test_the_sparse_checks_of_scikit_learn_pass_without_probabilities(estimator, check):
    lacks = {"_lacks": estimator._lacks | {"predict_proba"}, "__init__": type(estimator).__init__}
    without = type(type(estimator).__name__, (type(estimator),), lacks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(type(estimator).__name__, without(**estimator.get_params()))


@pytest.mark.parametrize("estimator", ESTIMATORS[:1] + ESTIMATORS[4:5], ids=lambda e: type(e).__name__)
def test_the_estimator_checks_that_scikit_learns_kmeans_fails_are_among_those_that_pass(estimator):
    from sklearn.utils.estimator_checks import estimator_checks_generator

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {check.func.__name__ for _, check in estimator_checks_generator(estimator)}
    assert any("sample_weight_equivalence" in name for name in names)
