"""Numbers with a unit: currencies, per cents and measurements, in the fit and in predict."""

import json

import pytest
from support.command_tables import positive_groups, said

from tkmeans.tables import read_table

pytestmark = pytest.mark.usefixtures("own_folder")

# ---- what is read --------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["R$ {}", "{} zł", "{} kr", "kr. {}", "{} Kč", "₽{}", "US$ {}", "{} PLN", "A${}"])
def test_amounts_in_other_currencies_are_numbers(table, form):
    values = positive_groups(p=1).ravel()
    found = read_table(table("shop;amount", *(f"s{i};{form.format(x)}" for i, x in enumerate(values.tolist()))))
    assert found.column("amount").values.tolist() == values.tolist()


@pytest.mark.parametrize("word", ["s", "m", "h", "kg", "min", "km/h"])
def test_letters_before_numbers_are_no_units_of_measurement(table, word):
    found = read_table(table("subject,x", *(f"{word}{i},{i}.5" for i in range(1, 13))))
    assert found.kinds["subject"] == "text"


@pytest.mark.parametrize("codes", [["2E1", "3E4", "1E3", "2E5"], ["12E4", "7E1", "1E12", "100E2"]])
def test_numbers_with_an_E_between_are_codes_if_all_are_like_that(table, codes):
    cells = codes * 5
    assert read_table(table("plate,x", *(f"{cell},{i}.5" for i, cell in enumerate(cells)))).kinds["plate"] == "code"
    found = read_table(table("value,x", *(f"{cell},{i}.5" for i, cell in enumerate([*cells, "1.5e3"]))))
    assert found.kinds["value"] == "number"


@pytest.mark.parametrize("word", ["lei", "crown", "kr", "Ft"])
def test_words_with_a_currency_in_them_stay_text(table, word):
    found = read_table(table("name,x", *(f"{word}{i} {word}s,{i}.5" for i in range(12))))
    assert found.kinds["name"] == "text"


@pytest.mark.parametrize("form", ["{} kg", "{}cm", "{} °C", "{} min", "{} km/h"])
def test_measurements_with_a_unit_are_numbers(table, form):
    values = positive_groups(p=1).ravel()
    found = read_table(table("name,x", *(f"s{i},{form.format(x)}" for i, x in enumerate(values.tolist()))))
    assert found.column("x").values.tolist() == values.tolist()


def test_two_units_in_one_column_are_complained_of(run, table):
    cells = [f"{x} kg" if i % 9 else f"{1000 * x:.0f} g" for i, x in enumerate(positive_groups(p=1).ravel())]
    file = table("name,x", *(f"s{i},{cell}" for i, cell in enumerate(cells)))
    assert "cells of column 'x' are numbers, but 7 are not: line 2:" in said(run("fit", file, "-k", 2, code=1))


# ---- other units than those of the fit -----------------------------------------------------------

N = 60


@pytest.mark.parametrize(
    ("fitted", "given"),
    [("{:.1f} %", "{:.3f}"), ("{:.3f}", "{:.1f} %"), ("{:.1f} EUR", "{:.1f} USD"), ("${:.1f}", "{:.1f}")],
)
@pytest.mark.parametrize("scale", ["robust", "none"])
def test_predict_says_which_columns_are_in_other_units_than_those_of_the_fit(run, table, fitted, given, scale):
    rows = [[form.format(a) + f";{b}" for a, b in positive_groups(60)] for form in (fitted, given)]
    model = table("", name="m.json")
    run("fit", table("share;area", *rows[0]), "-k", 2, "--scale", scale, "--model", model)
    said = [" ".join(run("predict", model, table("share;area", *each, name="new.csv")).output.split()) for each in rows]
    assert "units" not in said[0]
    assert "Not in the units that the model was fitted in; convert if need be: share (" in said[1]
    assert "area (" not in said[1]


@pytest.mark.parametrize(
    ("fitted", "given", "note"),
    [
        ("{} EUR", "{} €", ""),
        ("${}", "{} USD", ""),
        ("{} EUR", "", ""),  # no value is none to convert
        ("{} %", "{}", "share (no unit here, % there)"),
        ("{}", "£{}", "share (GBP here, no unit there)"),
    ],
)
def test_units_are_named_where_they_are_not_those_of_the_fit(run, table, fitted, given, note):
    rows = [[f"{form.format(a)},{b}" for a, b in positive_groups()] for form in (fitted, given)]
    run("fit", table("share,area", *rows[0]), "-k", 2, "--model", "m.json")
    found = said(run("predict", "m.json", table("share,area", *rows[1], name="new.csv")))
    assert "1.5" not in found
    assert note in found
    assert ("units" in found) == bool(note)


def test_predict_mentions_other_units_and_dates_in_the_place_of_numbers(run, table):
    kilograms, days = [f"{x} kg" for x in positive_groups(p=1).ravel()], [f"2021-01-{1 + i % 28:02}" for i in range(N)]
    model, pounds = "m.json", [cell.replace("kg", "lb") for cell in kilograms]
    run("fit", table("w,x", *(f"{w},{i % 7}.5" for i, w in enumerate(kilograms))), "-k", 2, "--model", model)
    for other, words in ((pounds, "w (lb here, kg there)"), (days, "w (date here, kg there)")):
        new = table("w,x", *(f"{w},{i % 7}.5" for i, w in enumerate(other)), name="new.csv")
        assert f"convert if need be: {words}" in said(run("predict", model, new))


def test_a_model_of_plain_numbers_is_written_as_it_always_was(run, table):
    run("fit", table("a,b", *(f"{a},{b}" for a, b in positive_groups(60))), "-k", 2, "--model", "m.json")
    with open("m.json") as file:
        assert set(json.load(file)["scaler"]["fitted"]) == {"n_features_in_", "feature_names_in_", "center_", "scale_"}
