"""Identifiers, postal codes and codes with zeros are not clustered by; measurements like them are."""

import json
import re

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet
from support.command_tables import columns_of, groups, lines, positive_groups, write_columns

from tkmeans import TKMeans
from tkmeans.tables import choose, read_table

pytestmark = pytest.mark.usefixtures("own_folder")

N = 60


# ---- names of columns ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Postleitzahl", "a postal code, by its name"),
        ("PLZ_Kunde", "a postal code, by its name"),
        ("PLZ Ort", "a postal code, by its name"),
        ("Code postal", "a postal code, by its name"),
        ("Código_Postal", "a postal code, by its name"),
        ("codigopostal", "a postal code, by its name"),
        ("Kundennummer", "an identifier, by its name"),
        ("ARTIKELNUMMER", "an identifier, by its name"),
        ("klantnummer", "an identifier, by its name"),
        ("Auftragsnr", "an identifier, by its name and its distinct values"),
        ("Gemeindeschlüssel", "an identifier, by its name and its distinct values"),
        ("numéro", "an identifier, by its name and its distinct values"),
        ("código_cliente", "an identifier, by its name and its distinct values"),
        ("id_cliente", "an identifier, by its name and its distinct values"),
        ("codice", "an identifier, by its name and its distinct values"),
    ],
)
def test_identifiers_have_names_in_other_languages_too(table, name, reason):
    codes = 10_000 + np.random.default_rng(1).permutation(9 * N)[:N]
    file = table(f"{name},a,b", *(f"{code},{a},{b}" for code, (a, b) in zip(codes, positive_groups(), strict=True)))
    roles = {role.name: role.reason for role in choose(read_table(file)).roles}
    assert roles == {name: reason, "a": "", "b": ""}


@pytest.mark.parametrize("name", ["PLZ_Einwohner", "psnr", "Kennzahl", "numero_clienti", "Anzahl", "codes", "video"])
def test_measurements_with_similar_names_are_clustered_by(table, name):
    counts = np.random.default_rng(1).permutation(9 * N)[:N] * 3
    file = table(f"{name},a,b", *(f"{x},{a},{b}" for x, (a, b) in zip(counts, positive_groups(), strict=True)))
    assert choose(read_table(file)).names == [name, "a", "b"]


@pytest.mark.parametrize("name", ["OBJECTID", "uid", "sku", "SKU", "CUSTOMERID", "orderid", "station_uid", "ean"])
def test_identifiers_written_as_one_word_are_not_clustered_by(run, table, name):
    numbers = np.random.default_rng(0).integers(1000, 9999, N)
    file = table(f"{name},x", *(f"{a},{b}" for a, b in zip(numbers, positive_groups(p=3)[:, 0], strict=True)))
    assert "identifier" in run("fit", file, "--dry-run", "--json").document["columns"][0]["role"]


@pytest.mark.parametrize(
    ("name", "used"),
    [("body_mass_index", True), ("Price Index", True), ("index", False), ("row_index", False), ("idx", False)],
)
def test_an_index_that_measures_something_is_clustered_by(run, table, name, used):
    numbers = np.random.default_rng(0).choice(9000, N, replace=False)
    file = table(f"{name},x", *(f"{a},{b}" for a, b in zip(numbers, positive_groups(p=3)[:, 0], strict=True)))
    role = run("fit", file, "--dry-run", "--json").document["columns"][0]["role"]
    assert (role == "used for clustering") is used


def test_the_index_of_a_frame_is_no_measurement(run, tmp_path):
    X, order = groups(), np.random.default_rng(1).permutation(100)[:60]
    file = write_columns(tmp_path / "t.parquet", {"a": X[:, 0], "b": X[:, 1], "__index_level_0__": order})
    assert run("fit", file, "-k", 2, "--json").document["columns"] == ["a", "b"]


# ---- long numbers --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["k.csv", "k.parquet", "k.jsonl"])
@pytest.mark.parametrize("first", [9400000000000001, 90071992547409930, 8944500102198304826])
@pytest.mark.parametrize("step", [1, 7])
def test_long_identifiers_are_keys_though_their_floats_repeat(run, tmp_path, name, first, step):
    numbers = [first + step * int(i) for i in np.random.default_rng(1).permutation(200)]
    rows = [
        {"account": n, "a": a, "b": b}
        for n, (a, b) in zip(numbers, positive_groups(200, digits=3).tolist(), strict=True)
    ]
    if name == "k.parquet":
        parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / name)
    else:
        lines = map(json.dumps, rows) if name == "k.jsonl" else (",".join(map(str, row.values())) for row in rows)
        (tmp_path / name).write_text("\n".join([*["account,a,b"] * (name == "k.csv"), *lines]))
    document = run("fit", tmp_path / name, "--dry-run", "--json").document
    roles = {each["column"]: each["role"] for each in document["columns"]}
    assert re.fullmatch("not used: a (key: .*|row number)", roles.pop("account"))
    assert {*roles.values()} == {"used for clustering"}


@pytest.mark.parametrize("power", [16, 18, 24, 40])
def test_large_measurements_that_repeat_are_no_keys(run, table, power):
    file = table(
        "density,a", *(f"{1 + i % 3 * 0.5}e{power},{a}" for i, (a, _) in enumerate(positive_groups(60, digits=3)))
    )
    assert run("fit", file, "-k", 2, "--json").document["columns"] == ["density", "a"]


def test_round_amounts_of_one_length_are_no_keys(run, table):
    amounts = np.random.default_rng(0).integers(10**8, 10**9, N) * 100
    file = table("gdp,x", *(f"{a},{b}" for a, b in zip(amounts, positive_groups(p=3)[:, 0], strict=True)))
    assert run("fit", file, "--dry-run", "--json").document["columns"][0]["role"] == "used for clustering"


# ---- codes with zeros ----------------------------------------------------------------------------


def test_codes_keep_their_zeros_wherever_the_first_stands(run, table, tmp_path):
    items = [*np.random.default_rng(1).integers(10_000, 99_999, 690).astype(str), *["00123"] * 10]
    file = table("a,b,item", *(f"{row},{item}" for row, item in zip(lines(groups(700)), items, strict=True)))
    out = tmp_path / "o.parquet"
    assert run("fit", file, "-k", 2, "--out", out, "--json").document["columns"] == ["a", "b"]
    assert parquet.read_table(out)["item"].to_pylist() == items
    with pytest.warns(UserWarning, match="item .a code, as 0815 or 12E4 are"):
        assert TKMeans(2).fit(file).n_features_in_ == 2


@pytest.mark.parametrize("order", [("a.csv", "b.csv"), ("b.csv", "a.csv")])
def test_codes_of_a_folder_keep_their_zeros_whichever_file_has_them(run, table, tmp_path, order):
    X, items = groups(80), [f"{i * 1237 % 99991:05}" for i in range(20, 100)]
    rows = [f"{row},{item}" for row, item in zip(lines(X), items, strict=True)]
    with_zeros = [item[0] == "0" for item in items]
    for name, wanted in zip(order, (False, True), strict=True):
        table("a,b,item", *(row for row, has in zip(rows, with_zeros, strict=True) if has is wanted), name=f"f/{name}")
    out = tmp_path / "o.parquet"
    assert run("fit", tmp_path / "f", "-k", 2, "--out", out, "--json").document["columns"] == ["a", "b"]
    assert sorted(parquet.read_table(out)["item"].to_pylist()) == sorted(items)


@pytest.mark.parametrize("form", ["{0:02}.{1}", "0{2}.{1}", "0{2}.1{2}"])
def test_numbers_with_a_zero_before_another_digit_are_codes_with_points_too(run, table, form):
    cells = [form.format(1 + i % 12, 2020 + i % 5, 1 + i % 9) for i in range(N)]
    file = table("monat,a,b", *(f"{x},{a},{b}" for x, (a, b) in zip(cells, positive_groups(), strict=True)))
    assert columns_of(run, file)["monat"] == "not used: a code, as 0815 or 12E4 are"
    assert columns_of(run, file, "--keep", "monat")["monat"] == "used for clustering"
    run("fit", file, "-k", 2, "--out", "o.parquet")
    assert parquet.read_table("o.parquet").column("monat").to_pylist() == cells


@pytest.mark.parametrize("cells", [["0.25", "1.25", "7.50"], ["00.25", "01.25", "12.5"], ["10.25", "12.75", "11.50"]])
def test_decimals_are_no_codes(run, table, cells):
    file = table("x,a,b", *(f"{cells[i % 3]},{a},{b}" for i, (a, b) in enumerate(positive_groups())))
    assert columns_of(run, file)["x"] == "used for clustering"


# ---- columns that begin or vary late -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "early", "late", "reason"),
    [
        ("store_id", "101", "207", "an identifier, by its name"),
        ("store_id", "", "207", "an identifier, by its name"),
        ("zip", "10115", "80331", "a postal code, by its name"),
        ("dept", "01", "02", "a code, as 0815 or 12E4 are"),
        ("size", "1", "2", "a flag: it has two values"),
        ("size", "", "2", ""),
    ],
)
def test_a_column_that_varies_late_is_what_it_would_be_if_it_varied_early(run, table, name, early, late, reason):
    rows = (f"{i % 2 * 9 + i % 7 / 7:.3f},{early if i < 66000 else late}" for i in range(66100))
    document = run("fit", table(f"a,{name}", *rows), "--dry-run", "--json").document
    roles = {each["column"]: each["role"] for each in document["columns"]}
    assert roles[name] == (f"not used: {reason}" if reason else "used for clustering")


@pytest.mark.parametrize("first", ["", "1"])
def test_what_a_column_holds_does_not_depend_on_where_its_first_cell_stands(run, table, first):
    late = [f"{['true', 'false'][i % 2]},${i % 7}.50,2020-01-{10 + i % 9},1e{i % 3}" for i in range(150)]
    rows = [f"{row},{rest}" for row, rest in zip(lines(groups(700)), [",,,"] * 550 + late, strict=True)]
    rows = rows if not first else rows[::-1]
    plan = run("fit", table("a,b,c,d,e,f", *rows), "--dry-run", "--json").document["columns"]
    assert [each["holds"] for each in plan] == ["number", "number", "boolean", "number", "date", "number"]
