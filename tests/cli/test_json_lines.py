"""JSON with one value on each line."""

import json

import pytest

ROWS = [json.dumps({"a": i % 7, "b": i % 3 + i / 100}) for i in range(60)]


def said(done):
    return " ".join(done.output.split())


@pytest.mark.parametrize("broken", ['{"a": 1,', '{"a": 1} x', "nonsense"])
@pytest.mark.parametrize(("newline", "above"), [("\n", 0), ("\r\n", 0), ("\n", 2)])
def test_a_broken_line_is_named_by_its_number_in_the_file(run, tmp_path, broken, newline, above):
    lines = [*ROWS[:20], *[""] * above, *ROWS[20:40], broken, *ROWS[40:]]
    (tmp_path / "t.jsonl").write_bytes(newline.join(lines).encode())
    message = said(run("fit", tmp_path / "t.jsonl", "-k", 2, code=1))
    assert f"line {41 + above} column" in message


def test_empty_lines_and_lines_of_blanks_are_no_rows(run, tmp_path):
    (tmp_path / "t.jsonl").write_text("\n".join([*ROWS[:30], "", "   ", *ROWS[30:], ""]))
    assert run("fit", tmp_path / "t.jsonl", "-k", 2, "--json").document["rows"] == len(ROWS)
