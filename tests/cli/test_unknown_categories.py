"""Values of an encoded column that the rows of the fit did not have."""

import json

import pytest

from tkmeans import load


def cut(name, values):
    """A table of a length and a category, one row a line."""
    return [f"len,{name}", *values]


@pytest.fixture
def model(run, table, tmp_path):
    """Fit a model by a length and these categories, in turn."""

    def fitted(*values, options=("--encode", "cat")):
        rows = [f"{50 * (i % len(values)) + i % 7 / 10},{values[i % len(values)]}" for i in range(30)]
        run("fit", table(*cut("cat", rows)), "-k", 2, *options, "--model", path := tmp_path / "model.json")
        return path

    return fitted


def said(done):
    return " ".join(done.stderr.split())


@pytest.mark.parametrize("known", ["xy", "xyz"])
def test_predict_names_a_value_that_the_fit_did_not_have_however_many_it_had(run, table, model, known):
    new = table(*cut("cat", ["1.5,x", "1.5,y", "1.5,zebra", "51,zebra"]), name="new.csv")
    assert "The model does not know cat=zebra." in said(run("predict", model(*known), new))


@pytest.mark.parametrize("scale", ["robust", "none"])
def test_predict_is_silent_about_both_of_two_values(run, table, model, scale):
    file = model("x", "y", options=("--encode", "cat", "--scale", scale))
    done = run("predict", file, table(*cut("cat", ["1.5,x", "1.5,y"]), name="new.csv"))
    assert "does not know" not in said(done)


def test_predict_names_the_values_of_a_file_that_writes_all_of_them_in_another_way(run, table, model):
    done = run("predict", model("x", "y"), table(*cut("cat", ["1.5,X", "51,Y"]), name="new.csv"))
    assert "The model does not know cat=X, cat=Y." in said(done)


def test_predict_knows_the_other_values_of_a_column_of_which_one_was_chosen(run, table, model):
    file = model("x", "y", "z", options=("--columns", "len,cat=y"))
    assert "does not know" not in said(
        run("predict", file, table(*cut("cat", ["1.5,x", "2,y", "3,z"]), name="new.csv"))
    )
    done = run("predict", file, table(*cut("cat", ["1.5,x", "2,y", "3,zebra"]), name="newer.csv"))
    assert "The model does not know cat=zebra." in said(done)


def test_a_model_keeps_both_values_of_a_category(model):
    file = model("x", "y")
    assert load(file).steps[0][1]._other_values.tolist() == ["cat=x"]
    assert json.loads(file.read_text())["scaler"]["fitted"]["_other_values"] == ["cat=x"]
