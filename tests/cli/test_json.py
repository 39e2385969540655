"""JSON for the command: which forms are tables, and what the others are refused with."""

import json

import pytest
from support.command_tables import groups, positive_groups

from tkmeans.tables import read_table

pytestmark = pytest.mark.usefixtures("own_folder")

N = 60


def test_arrays_a_line_are_rows_of_json(run, table):
    X = groups(60)
    file = table(*(json.dumps([*row]) for row in X), name="t.jsonl")
    found = run("fit", file, "-k", 2, "--json").document
    assert found["columns"] == ["x1", "x2"]
    named = table(
        '["Name", "Score", "Level"]', *(json.dumps([f"n{i}", *row]) for i, row in enumerate(X)), name="n.jsonl"
    )
    again = run("fit", named, "-k", 2, "--json").document
    assert again["columns"] == ["Score", "Level"]
    assert again["labels"] == found["labels"]


@pytest.mark.parametrize("beside", [{}, {"total": N, "next": None, "of": "2024"}])
def test_rows_inside_of_an_object_of_json_are_the_table(run, table, beside):
    rows = [{"a": a, "b": b} for a, b in positive_groups().tolist()]
    file = table(json.dumps({"data": rows} | beside), name="t.json")
    assert run("fit", file, "-k", 2, "--json").document["rows"] == N


def test_an_object_of_json_with_two_lists_is_read_as_columns(table):
    file = table(json.dumps({"a": [1, 2], "what": [{"x": 1}, {"x": 2}]}), name="t.json")
    assert read_table(file).names == ["a", "what"]


@pytest.mark.parametrize("orient", ["columns", "index", "table", "split", "numbers"])
def test_json_that_is_no_table_is_refused_with_the_form_that_is_one(run, table, orient):
    X, names = groups(60), ["a", "b"]
    rows = {str(i): dict(zip(names, row, strict=True)) for i, row in enumerate(X)}
    forms = {"columns": {name: {i: row[name] for i, row in rows.items()} for name in names}, "index": rows}
    forms |= {"table": {"schema": {"fields": names}, "data": [*rows.values()]}, "numbers": [*X[:, 0]]}
    forms |= {"split": {"columns": names, "index": [*rows], "data": X.tolist()}}
    message = run("fit", table(json.dumps(forms[orient], indent=1), name="t.json"), "-k", 2, code=1).output
    assert "is JSON but no table" in message
    assert "orient='records'" in message


def test_a_name_of_half_a_character_in_json_is_refused(run, table):
    file = table('[{"\\ud800": 1.5, "b": 2}, {"\\ud800": 2.5, "b": 3}]', name="t.json")
    assert "t.json cannot be read" in run("fit", file, "-k", 1, code=1).stderr
