"""How estimators are built: a face on a record, with nothing overridden on the way."""

import inspect
import pickle

import numpy as np
import pytest

import tkmeans
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.fitted import FittedModel

FINAL = [TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture, KMedians, KMedoids]
X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [9, 9]], 30, axis=0)


def ours_above(final):
    return [cls for cls in final.__mro__[1:] if cls.__module__.startswith("tkmeans")]


def size_of(final, number):
    return {"n_components" if final is StudentTMixture else "n_clusters": number}


@pytest.mark.parametrize("final", FINAL)
def test_at_most_two_classes_of_the_library_stand_above_a_final_estimator(final):
    assert len(ours_above(final)) <= 2


@pytest.mark.parametrize("final", FINAL)
def test_an_estimator_overrides_no_concrete_method_of_another_class_of_the_library(final):
    own = {name for name, value in vars(final).items() if callable(value) or isinstance(value, property)}
    for above in ours_above(final):
        concrete = {
            name
            for name, value in vars(above).items()
            if (inspect.isroutine(value) or isinstance(value, property) or hasattr(value, "__get__"))
            and not getattr(value, "__isabstractmethod__", False)
            and not name.startswith("__")
        }
        assert not own & concrete


@pytest.mark.parametrize("final", FINAL)
def test_a_method_that_an_estimator_lacks_is_no_attribute_of_it(final):
    estimator = final(**size_of(final, 2))
    for name in final._lacks:
        assert not hasattr(estimator, name)


@pytest.mark.parametrize("final", FINAL)
def test_a_fitted_estimator_is_a_face_on_a_record_that_can_be_pickled(final):
    model = final(**size_of(final, 2), random_state=0).fit(X)
    assert isinstance(model._fitted_model, FittedModel)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("final", FINAL)
def test_a_second_fit_leaves_nothing_of_the_first(final):
    model = final(**size_of(final, 2), random_state=0).fit(X)
    before = set(vars(model))
    model.fit(X[:, :1])
    assert set(vars(model)) == before
    assert model._fitted_model.params.centers.shape == (2, 1)


def test_every_public_estimator_is_among_those_inspected():
    public = {getattr(tkmeans, name) for name in tkmeans.__all__}
    assert {cls for cls in public if hasattr(cls, "fit")} <= set(FINAL)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_a_parameter_changed_after_the_fit_changes_no_answer(kind):
    model = StudentTMixture(2, covariance_type=kind, random_state=0).fit(X)
    labels, density = model.predict(X), model.score_samples(X)
    model.set_params(covariance_type="diag" if kind == "full" else "full", dof=3.0)
    np.testing.assert_array_equal(model.predict(X), labels)
    np.testing.assert_array_equal(model.score_samples(X), density)
    medoids = KMedoids(2, random_state=0).fit(X)
    distances = medoids.transform(X)
    np.testing.assert_array_equal(medoids.set_params(metric="cityblock").transform(X), distances)
