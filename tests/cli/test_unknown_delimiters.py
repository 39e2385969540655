"""Files whose cells are divided by signs that nobody expects."""

import pytest


@pytest.mark.parametrize("sign", [":", "~", "\x01"])
def test_the_error_about_a_file_of_one_column_names_the_option_for_its_delimiter(run, table, sign):
    rows = [sign.join(["a", "b"]), *(sign.join([f"{i % 7}.5", f"{i % 5}.25"]) for i in range(40))]
    message = " ".join(run("fit", table(*rows), "-k", 2, code=1).output.split())
    assert "has no column of numbers to cluster by" in message
    assert "add --delimiter ... if another sign divides its cells" in message


def test_the_option_is_not_named_where_there_are_several_columns(run, table):
    message = run("fit", table("a,b", *(["x,y", "y,z"] * 20)), "-k", 2, code=1).output
    assert "--delimiter" not in message
