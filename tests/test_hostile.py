"""Whatever is passed: a right answer or a refusal that is on the list, never a crash, NaN or silent cast.

Here a few hundred inputs, and every kind of rows once; `python -m benchmarks.trust` tries 100 000.
"""

import re
from pathlib import Path
from random import Random

import numpy as np
import pytest
import strategies
from hypothesis import HealthCheck, given, settings
from judging import REFUSALS, WrongAnswer, judge
from nasty import CLOTHES, NONSENSE, TYPES, VALUES, WEIGHTS, WRONG_WEIGHTS
from strategies import Case, hostile_cases

from tkmeans import StudentTMixture, TKMeans
from tkmeans.baselines import KMedoids

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "errors.md"


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck))
@given(hostile_cases)
def test_every_hostile_input_ends_in_a_right_answer_or_a_documented_refusal(case):
    judge(case)


@pytest.mark.parametrize("kind", VALUES)
def test_rows_of_every_kind_are_fitted_or_refused(kind):
    X = VALUES[kind](np.random.default_rng(0), 25, 3)
    assert judge(Case(kind, TKMeans(2, max_iter=20, random_state=0), X, rows=X)) in {"result", *REFUSALS}


@pytest.mark.parametrize("name", CLOTHES)
def test_the_same_numbers_in_other_clothes_give_the_same_answer(name):
    X = VALUES["holes"](np.random.default_rng(1), 40, 3)
    case = Case(name, TKMeans(2, random_state=0), CLOTHES[name](X), rows=X)
    assert judge(case) == "result"


@pytest.mark.parametrize("name", TYPES)
def test_numbers_of_every_type_are_numbers(name):
    X = TYPES[name](VALUES["ordinary"](np.random.default_rng(2), 40, 3))
    rows = X.astype(np.float32 if name in ("f4", ">f4") else np.float64)
    assert judge(Case(name, TKMeans(2, random_state=0), X, rows=rows)) == "result"


@pytest.mark.parametrize("name", NONSENSE)
@pytest.mark.parametrize("estimator", [TKMeans(2), StudentTMixture(2), KMedoids(2)], ids=lambda e: type(e).__name__)
def test_what_is_no_table_of_numbers_is_refused(name, estimator):
    X = VALUES["ordinary"](np.random.default_rng(3), 12, 3)
    assert judge(Case(name, estimator, NONSENSE[name](X), refused=True)) != "result"


@pytest.mark.parametrize("name", WEIGHTS | WRONG_WEIGHTS)
def test_weights_are_counts_or_refused(name):
    X = VALUES["ordinary"](np.random.default_rng(4), 30, 2)
    wrong = name in WRONG_WEIGHTS
    weight = (WEIGHTS | WRONG_WEIGHTS)[name](X, Random(0))
    mass = None if wrong else np.broadcast_to(np.asarray(weight, float), len(X))
    outcome = judge(Case(name, TKMeans(2, random_state=0), X, weight, rows=X, mass=mass, refused=wrong))
    assert outcome in {"result", "weights", "fewer rows than clusters"}


# ---- the judge itself -------------------------------------------------------------------------


def test_equal_seeds_make_equal_cases():
    for seed in range(50):
        a, b = strategies.case(Random(seed)), strategies.case(Random(seed))
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
def test_the_judge_sees_what_is_wrong(wrong, complaint):
    X = VALUES["ordinary"](np.random.default_rng(5), 40, 2)
    with pytest.raises(WrongAnswer, match=complaint):
        judge(Case("broken", _Broken(wrong), X, rows=X))


def test_every_refusal_is_in_the_guide():
    text = GUIDE.read_text()
    missing = [name for name in REFUSALS if not re.search(rf"^\| {re.escape(name)} \|", text, re.MULTILINE)]
    assert not missing
