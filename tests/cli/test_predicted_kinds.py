"""Numbers in the place of true and false, and the other way round."""

import pytest


@pytest.fixture
def model(run, table, tmp_path):
    def fitted(cells):
        rows = [f"{cells[i % 2]},{10 * (i % 2) + i % 5}" for i in range(40)]
        run("fit", table("flag,x", *rows), "-k", 2, "--keep", "flag", "--model", path := tmp_path / "m.json")
        return path

    return fitted


def note(run, table, model, *cells):
    rows = [f"{cell},{i}" for i, cell in enumerate(cells)]
    return " ".join(run("predict", model, table("flag,x", *rows, name="new.csv")).stderr.split())


def test_predict_names_a_column_of_true_and_false_in_the_place_of_measurements(run, table, model):
    text = note(run, table, model(["1.5", "7.25"]), "true", "false")
    assert "flag (boolean here, no unit there)" in text


def test_predict_names_a_column_of_numbers_in_the_place_of_true_and_false(run, table, model):
    text = note(run, table, model(["true", "false"]), "7", "1")
    assert "flag (no unit here, boolean there)" in text


def test_predict_is_silent_about_true_and_false_in_their_own_place(run, table, model):
    assert "there)" not in note(run, table, model(["true", "false"]), "True", "FALSE")
