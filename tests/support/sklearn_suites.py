"""Run scikit-learn's own tests with one of its classes replaced by ours, and compare with a list of expected failures.

The tests are those of the installed scikit-learn, unchanged but for one import that gives our class
the name of theirs, and for the name of the class in the message of an estimator that is not fitted. The lists are
tests/drop_in/*.toml. In tests/, ``python -m support.sklearn_suites`` prints how many tests pass, and how many fail for
which reason.
"""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import sklearn

LISTS = Path(__file__).parents[1] / "drop_in"

# Seeded, so that a test without a random_state of its own has the same outcome in every run.
OPTIONS = ("-p", "sklearn.conftest", "-p", "pytest_randomly", "--randomly-seed=0", "--randomly-dont-reorganize")
OPTIONS += ("-p", "no:cacheprovider", "--tb=short", "--junitxml=outcomes.xml", "test_swapped.py")

# Variables that would choose other tests, or turn warnings into errors.
_CHOICES = ("PYTEST_", "SKLEARN_", "SCIPY_ARRAY_API", "PYTHONWARNINGS")


@dataclass(frozen=True)
class Suite:
    """A module of scikit-learn's tests, and the classes of ours that take the place of theirs."""

    name: str
    module: str
    swapped: Mapping[str, str]  # theirs: ours

    @property
    def list(self) -> Path:
        return LISTS / f"sklearn_{self.name}.toml"


SUITES = (
    Suite(
        "kmeans",
        "sklearn.cluster.tests.test_k_means",
        {"KMeans": "TKMeans", "MiniBatchKMeans": "MiniBatchTKMeans"},
    ),
    Suite("mixture", "sklearn.mixture.tests.test_gaussian_mixture", {"GaussianMixture": "StudentTMixture"}),
)


@dataclass(frozen=True)
class Expected:
    """Tests that fail for one reason, which shows in the text of their error."""

    reason: str
    error: str  # a regular expression
    tests: Sequence[str]  # the names of tests; * stands for any characters
    always: bool = True  # False if the processor decides

    def names(self, test: str) -> bool:
        return any(_matches(pattern, test) for pattern in self.tests)


def _matches(pattern: str, test: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), test) is not None


@dataclass(frozen=True)
class Outcomes:
    """What became of the tests of a suite."""

    passed: frozenset[str]
    skipped: frozenset[str]
    failed: Mapping[str, str]  # by test, the text of the error


def read_list(suite: Suite) -> tuple[str, list[Expected]]:
    """The version of scikit-learn that a list was written for, and the list."""
    content = tomllib.loads(suite.list.read_text(encoding="utf-8"))
    return content["scikit_learn"], [Expected(**entry) for entry in content["expected"]]


def swapped_source(suite: Suite) -> str:
    """The source of the tests in which our classes have the names of theirs; line numbers stay."""
    path = importlib.util.find_spec(suite.module).origin
    source = Path(path).read_text(encoding="utf-8")
    imports = [node for node in ast.parse(source).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    lines = source.splitlines()
    names = ", ".join(f"{ours} as {theirs}" for theirs, ours in suite.swapped.items())
    lines[imports[-1].end_lineno - 1] += f"; from tkmeans import {names}"
    text = "\n".join(lines) + "\n"
    for theirs, ours in suite.swapped.items():
        text = text.replace(f"This {theirs} instance is not fitted", f"This {ours} instance is not fitted")
    return text


def run(suite: Suite, folder: Path) -> Outcomes:
    """Run the tests in a process of their own, with no settings but scikit-learn's."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_swapped.py").write_text(swapped_source(suite), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_CHOICES)}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "pytest", *OPTIONS]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # all passed, or some failed
        raise RuntimeError(f"pytest ended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return read_outcomes(folder / "outcomes.xml")


def read_outcomes(report: Path) -> Outcomes:
    """The outcomes in a report of pytest's in the format of JUnit."""
    passed, skipped, failed = set(), set(), {}
    for case in ElementTree.parse(report).iter("testcase"):
        test = case.get("name")
        errors = [*case.iter("failure"), *case.iter("error")]
        if errors:
            failed[test] = "\n".join(f"{error.get('message')}\n{error.text}" for error in errors)
        elif case.find("skipped") is not None:
            skipped.add(test)
        else:
            passed.add(test)
    return Outcomes(frozenset(passed), frozenset(skipped), failed)


def disagreements(outcomes: Outcomes, expected: Sequence[Expected]) -> list[str]:
    """Where outcomes and list differ, a line each."""
    lines = []
    for test, error in outcomes.failed.items():
        entries, shown = [entry for entry in expected if entry.names(test)], " ".join(error.split())[:200]
        if len(entries) != 1:
            how = "is not on the list" if not entries else "has several reasons"
            lines.append(f"{test} fails and {how}: {shown}")
        elif not re.search(entries[0].error, error):
            lines.append(f"{test} fails for another reason than {entries[0].reason!r}: {shown}")
    for entry in expected:
        listed = [test for test in outcomes.passed if entry.always and entry.names(test)]
        lines += [f"{test} passes: remove it from {entry.reason!r}" for test in listed]
        known = [*outcomes.failed, *outcomes.passed]
        idle = [pattern for pattern in entry.tests if not any(_matches(pattern, test) for test in known)]
        lines += [f"{pattern!r} of {entry.reason!r} names no test that ran" for pattern in idle]
    return sorted(lines)


def summary(suite: Suite, outcomes: Outcomes, expected: Sequence[Expected]) -> str:
    """How many tests pass, and how many fail for each reason."""
    n_run = len(outcomes.passed) + len(outcomes.failed)
    header = (
        f"scikit-learn {sklearn.__version__}, {suite.module} on {', '.join(suite.swapped.values())}: "
        f"{len(outcomes.passed)} of {n_run} pass, {len(outcomes.skipped)} skipped"
    )
    counts = Counter(entry.reason for entry in expected for test in outcomes.failed if entry.names(test))
    return "\n".join([header, *(f"{count:5} fail: {reason}" for reason, count in counts.most_common())])


def main() -> None:
    """Print the summaries and where the lists are wrong."""
    for suite in SUITES:
        version, expected = read_list(suite)
        with tempfile.TemporaryDirectory() as folder:
            outcomes = run(suite, Path(folder))
        print(summary(suite, outcomes, expected))
        if version != sklearn.__version__:
            print(f"The list was written for scikit-learn {version}.")
        print(*disagreements(outcomes, expected), "", sep="\n")


if __name__ == "__main__":
    main()
