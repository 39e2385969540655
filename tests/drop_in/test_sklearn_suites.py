"""scikit-learn's own tests of KMeans and GaussianMixture, run on our classes; see support.sklearn_suites."""

import sys
from pathlib import Path

import pytest
import sklearn
from support.sklearn_suites import SUITES, Expected, Outcomes, disagreements, read_list, run, summary, swapped_source

EXPECTED = [
    Expected("sparse", "Sparse data", ["test_a[*]"]),
    Expected("keyword", "unexpected keyword", ["test_b"]),
    Expected("rounding", "Not equal", ["test_c"], always=False),
]
AS_LISTED = {"test_a[x]": "Sparse data", "test_b": "unexpected keyword", "test_c": "Not equal", "test_d": None}


@pytest.fixture(params=SUITES, ids=lambda suite: suite.name)
def suite(request):
    pytest.importorskip(request.param.module, reason="scikit-learn is installed without its tests")
    return request.param


@pytest.mark.thorough
def test_scikit_learns_tests_fail_only_as_listed(suite, tmp_path):
    version, expected = read_list(suite)
    if version != sklearn.__version__:
        pytest.skip(f"the list was written for scikit-learn {version}, not {sklearn.__version__}")
    outcomes = run(suite, tmp_path)
    wrong = disagreements(outcomes, expected)
    assert not wrong, "\n".join([summary(suite, outcomes, expected), *wrong])


def test_the_source_of_the_tests_changes_in_one_line_and_in_the_name_of_the_class_that_is_not_fitted(suite):
    theirs = Path(sys.modules[suite.module].__file__).read_text(encoding="utf-8")
    pairs = zip(theirs.splitlines(), swapped_source(suite).splitlines(), strict=True)
    changed = [new.removeprefix(old) for old, new in pairs if new != old and "instance is not fitted" not in old]
    names = ", ".join(f"{ours} as {theirs}" for theirs, ours in suite.swapped.items())
    assert changed == [f"; from tkmeans import {names}"]


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, None),
        ({"test_c": None}, None),
        ({"test_a[y]": None}, "test_a[y] passes"),
        ({"test_b": "Sparse data"}, "test_b fails for another reason"),
        ({"test_d": "Not equal"}, "test_d fails and is not on the list"),
    ],
    ids=["as listed", "may pass", "passes", "another reason", "not listed"],
)
def test_every_disagreement_with_the_list_is_reported(changed, line):
    lines = disagreements(outcomes_of(AS_LISTED | changed), EXPECTED)
    assert [found.startswith(line) for found in lines] == [True] * (line is not None)


@pytest.mark.parametrize("test", ["test_a[x]", "test_b", "test_c"])
def test_an_entry_that_names_no_test_is_reported(test):
    outcomes = outcomes_of({name: error for name, error in AS_LISTED.items() if name != test})
    (line,) = disagreements(outcomes, EXPECTED)
    assert line.endswith("names no test that ran")


def outcomes_of(errors):
    """Outcomes of tests by name; the error of one that passed is None."""
    failed = {test: error for test, error in errors.items() if error is not None}
    return Outcomes(frozenset(errors.keys() - failed.keys()), frozenset(), failed)
