"""An estimator is its parameters and, after a fit, its fit: nothing else, and nothing from before."""

import copy
import pickle
import threading

import numpy as np
from sklearn.base import clone
from support.estimator_cases import ROWS, centers_of, every_estimator, fitted_attributes


def assert_same_fit(one, other):
    a, b = fitted_attributes(one), fitted_attributes(other)
    assert a.keys() == b.keys()
    for name, value in a.items():
        np.testing.assert_array_equal(b[name], value, err_msg=name)


def answers(model):
    methods = ("predict", "predict_proba", "transform", "score_samples", "score", "outliers", "robust_weights")
    return {name: getattr(model, name)(ROWS) for name in methods if hasattr(model, name)}


@every_estimator()
def test_fitting_twice_gives_the_fit_of_fitting_once(case):
    model = clone(case.estimator).fit(ROWS)
    first = copy.deepcopy(model)
    assert_same_fit(model.fit(ROWS), first)


@every_estimator()
def test_a_fit_forgets_the_fit_before(case):
    other = ROWS[:90, :2]
    used = clone(case.estimator).fit(other).fit(ROWS)
    assert_same_fit(used, clone(case.estimator).fit(ROWS))


@every_estimator()
def test_a_fit_that_fails_leaves_the_fit_before_unchanged(case):
    model = clone(case.estimator).fit(ROWS)
    before = answers(model)
    for wrong in (ROWS[:2], ROWS[:2, :2], np.full((20, 3), np.inf), ROWS.astype(str)):
        try:
            model.fit(wrong)
        except (ValueError, TypeError):
            pass
        else:
            raise AssertionError("that should have been refused")
    for name, value in answers(model).items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)
    assert_same_fit(model.fit(ROWS), clone(case.estimator).fit(ROWS))


@every_estimator()
def test_a_pickled_estimator_has_the_same_fit_and_predictions(case):
    model = clone(case.estimator).fit(ROWS)
    back = pickle.loads(pickle.dumps(model))
    assert_same_fit(back, model)
    for name, value in answers(model).items():
        np.testing.assert_array_equal(answers(back)[name], value, err_msg=name)


@every_estimator()
def test_a_clone_has_the_parameters_and_nothing_of_the_fit(case):
    model = clone(case.estimator).fit(ROWS)
    copied = clone(model)
    assert fitted_attributes(copied) == {}
    assert copied.get_params() == model.get_params()
    assert_same_fit(copied.fit(ROWS), model)


@every_estimator()
def test_parameters_set_after_a_fit_are_used_by_the_next(case):
    name = "n_clusters" if hasattr(case.estimator, "n_clusters") else "n_components"
    later = clone(case.estimator).set_params(**{name: 2}).fit(ROWS).set_params(**{name: 4}).fit(ROWS)
    assert_same_fit(later, clone(case.estimator).fit(ROWS))
    assert len(centers_of(later)) == 4


@every_estimator()
def test_a_fit_changes_neither_rows_nor_weights_nor_parameters(case):
    X, weight = ROWS.copy(), np.ones(len(ROWS))
    model = clone(case.estimator)
    before = model.get_params()
    answers(model.fit(X, sample_weight=weight))
    np.testing.assert_array_equal(X, ROWS)
    np.testing.assert_array_equal(weight, 1)
    assert model.get_params() == before


@every_estimator()
def test_one_fitted_estimator_predicts_from_many_threads_at_once(case):
    model = clone(case.estimator).fit(ROWS)
    expected, seen = answers(model), []
    threads = [threading.Thread(target=lambda: seen.append(answers(model))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4
    for found in seen:
        for name, value in expected.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
