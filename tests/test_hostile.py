"""Whatever is passed: a right answer or a refusal that is on the list, never a crash, NaN or silent cast.

Here a few hundred inputs, calls and files, and every kind of rows once; `python -m benchmarks.trust` tries 230 000.
"""

import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support.answer_checks import REFUSALS, WrongAnswer, outcome_of
from support.forged_files import CASES
from support.hostile_cases import HostileCase, any_hostile_case, hostile_case
from support.hostile_values import CONTAINERS, DTYPES, INVALID_TABLES, INVALID_WEIGHTS, ROW_KINDS, WEIGHTS
from support.public_calls import (
    ALL_PARAMETERS,
    CALLS,
    PARAMETERS,
    RECORDS,
    VALUES,
    Hostile,
    HostileCall,
    hostile_call,
    kind_of,
    made_call,
    outcome_of_call,
)

from tkmeans import StudentTMixture, TKMeans
from tkmeans.baselines import KMedoids

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "errors.md"


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(any_hostile_case)
def test_every_hostile_input_ends_in_a_right_result_or_a_documented_refusal(case):
    outcome_of(case)


@pytest.mark.parametrize("kind", ROW_KINDS)
def test_hostile_rows_of_every_kind_are_fitted_or_refused(kind):
    X = ROW_KINDS[kind](np.random.default_rng(0), 25, 3)
    assert outcome_of(HostileCase(kind, TKMeans(2, max_iter=20, random_state=0), X, rows=X)) in {"result", *REFUSALS}


@pytest.mark.parametrize("name", CONTAINERS)
def test_the_same_numbers_in_any_container_give_the_same_fit(name):
    X = ROW_KINDS["holes"](np.random.default_rng(1), 40, 3)
    case = HostileCase(name, TKMeans(2, random_state=0), CONTAINERS[name](X), rows=X)
    assert outcome_of(case) == "result"


@pytest.mark.parametrize("name", DTYPES)
def test_rows_of_every_dtype_of_numbers_are_fitted(name):
    X = DTYPES[name](ROW_KINDS["ordinary"](np.random.default_rng(2), 40, 3))
    rows = X.astype(np.float32 if name in ("f4", ">f4") else np.float64)
    assert outcome_of(HostileCase(name, TKMeans(2, random_state=0), X, rows=rows)) == "result"


@pytest.mark.parametrize("name", INVALID_TABLES)
@pytest.mark.parametrize("estimator", [TKMeans(2), StudentTMixture(2), KMedoids(2)], ids=lambda e: type(e).__name__)
def test_input_that_is_no_table_of_numbers_is_refused(name, estimator):
    X = ROW_KINDS["ordinary"](np.random.default_rng(3), 12, 3)
    assert outcome_of(HostileCase(name, estimator, INVALID_TABLES[name](X), refused=True)) != "result"


@pytest.mark.parametrize("name", WEIGHTS | INVALID_WEIGHTS)
def test_sample_weights_of_every_kind_are_used_or_refused(name):
    X = ROW_KINDS["ordinary"](np.random.default_rng(4), 30, 2)
    wrong = name in INVALID_WEIGHTS
    weight = (WEIGHTS | INVALID_WEIGHTS)[name](X, Random(0))
    mass = None if wrong else np.broadcast_to(np.asarray(weight, float), len(X))
    outcome = outcome_of(HostileCase(name, TKMeans(2, random_state=0), X, weight, rows=X, mass=mass, refused=wrong))
    assert outcome in {"result", "weights", "fewer rows than clusters"}


# ---- every public function, by reflection -----------------------------------------------------


def test_every_parameter_of_every_public_function_has_hostile_values():
    """Whoever adds a public name or a parameter says in tests/support/public_calls.py what is hostile to it."""
    without_a_call = {function for function, _ in ALL_PARAMETERS} - set(CALLS)
    without_values = set()
    for function, parameter in ALL_PARAMETERS:
        try:
            assert VALUES[kind_of(function, parameter)]
        except KeyError:
            without_values.add(f"{function}({parameter})")
    assert (without_a_call, without_values) == (set(), set())


def test_no_kind_of_hostile_values_is_for_parameters_that_are_gone():
    assert set(PARAMETERS) <= {parameter for _, parameter in ALL_PARAMETERS}
    assert not RECORDS & {function for function, _ in ALL_PARAMETERS}


@pytest.mark.parametrize("seed", range(120))
def test_a_hostile_argument_of_a_public_function_leads_to_a_result_or_a_documented_refusal(seed):
    outcome_of_call(hostile_call(Random(seed)))


@pytest.mark.parametrize("function", ["TKMeans", "FastTKMeans", "MiniBatchTKMeans", "KMedians", "KMedoids"])
def test_integers_of_every_width_are_taken_by_every_parameter_that_counts(function):
    for owner, parameter in ALL_PARAMETERS:
        if owner == function and kind_of(owner, parameter).startswith("count"):
            for hostile in VALUES["count"]:
                if hostile.taken:
                    assert outcome_of_call(made_call(Random(0), function, parameter, hostile)) == "result"


def test_hostile_calls_detect_undocumented_exceptions_and_accepted_nonsense():
    def careless(X):
        return X["no such key"]

    made = HostileCall("scaled", "X", careless, {"X": {}}, Hostile({}))
    with pytest.raises(WrongAnswer, match="undocumented KeyError"):
        outcome_of_call(made)
    with pytest.raises(WrongAnswer, match="was accepted"):
        outcome_of_call(made._replace(call=lambda X: X, hostile=Hostile({}, refused=True)))
    with pytest.raises(WrongAnswer, match="RuntimeWarning"):
        outcome_of_call(made._replace(call=lambda X: np.log(np.zeros(1))))


# ---- forged and damaged files --------------------------------------------------------------------


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("first", [0, 20])
def test_a_forged_or_damaged_file_is_refused_or_leads_to_finite_answers(kind, first):
    outcomes = {CASES[kind](Random(number)) for number in range(first, first + 20)}
    assert outcomes <= {"result", "refused"}


# ---- the outcome_of itself -------------------------------------------------------------------------


def test_equal_seeds_make_equal_hostile_cases():
    for seed in range(50):
        a, b = hostile_case(Random(seed)), hostile_case(Random(seed))
        assert (a.kind, type(a.estimator)) == (b.kind, type(b.estimator))
        if isinstance(a.rows, np.ndarray):
            np.testing.assert_array_equal(a.rows, b.rows)


class _Broken:
    """A TKMeans with one thing wrong with it."""

    def __init__(self, wrong):
        self._model, self._wrong = TKMeans(2, random_state=0), wrong

    def __getattr__(self, name):
        return getattr(self._model, name)

    def fit(self, X, sample_weight=None):
        self._model.fit(X, sample_weight=sample_weight)
        self._wrong(self._model, X)
        self.__dict__.update(self._model.__dict__)


def _nan_in_a_centre(model, X):
    model.cluster_centers_[0, 0] = np.nan


def _other_labels(model, X):
    model.labels_ = 1 - model.labels_


def _centre_outside(model, X):
    model.cluster_centers_ += 1e6
    model.labels_ = model.predict(X)


def _input_changed(model, X):
    X[0] += 1


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        (_nan_in_a_centre, "cluster_centers_ is not finite"),
        (_other_labels, "labels_ are not what predict says"),
        (_centre_outside, "a centre outside of the rows|not numbered by size"),
        (_input_changed, "the input was changed|labels_ are not"),
    ],
)
def test_the_checks_of_hostile_inputs_detect_wrong_results(wrong, complaint):
    X = ROW_KINDS["ordinary"](np.random.default_rng(5), 40, 2)
    with pytest.raises(WrongAnswer, match=complaint):
        outcome_of(HostileCase("broken", _Broken(wrong), X, rows=X))


def test_every_refusal_of_an_input_is_documented_in_the_guide():
    text = GUIDE.read_text()
    missing = [name for name in REFUSALS if not re.search(rf"^\| {re.escape(name)} \|", text, re.MULTILINE)]
    assert not missing


# ---- single cases --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [43001981, 43005397, 43011441, 41013034])
def test_steps_of_scoring_that_begin_too_far_away_are_not_made(number):
    assert outcome_of(hostile_case(Random(number))) == "result"
