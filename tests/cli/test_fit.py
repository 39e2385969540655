"""`tkmeans fit` on files as people have them."""

import csv
import io
import json

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from tkmeans import TKMeans
from tkmeans.tables import read_table

ADDED = ["cluster", "probability", "outlier_pvalue"]


def cells_of(path, delimiter, encoding):
    return list(csv.reader(io.StringIO(path.read_text(encoding=encoding)), delimiter=delimiter))


@pytest.mark.parametrize(
    ("layout", "encoding"),
    [
        ({}, "utf-8"),
        ({"encoding": "utf-8-sig", "delimiter": ";", "decimal": ",", "newline": "\r\n"}, "utf-8-sig"),
        ({"encoding": "utf-16", "delimiter": "\t"}, "utf-16"),
    ],
    ids=["plain", "BOM, semicolons, decimal commas", "UTF-16, tabs"],
)
def test_fit_accepts_text_columns_missing_values_and_any_layout_and_keeps_them_in_the_output(
    run, csv_file, tmp_path, are_species, layout, encoding
):
    file, out = csv_file(**layout), tmp_path / "out.csv"
    done = run("fit", file, "-k", 3, "--out", out)
    assert "species, island, sex (text)" in done.stderr
    assert "6 missing values in 4 rows" in done.stderr
    delimiter = layout.get("delimiter", ",")
    before, after = cells_of(file, delimiter, encoding), cells_of(out, delimiter, encoding)
    assert after[0] == [*before[0], *ADDED]
    assert [row[:6] for row in after] == before  # all columns and rows, in their order
    assert are_species([row[6] for row in after[1:]])
    assert after[5][6:] == ["", "", ""]  # the row without a single value
    signs = {sign for row in after[1:] for sign in row[7] + row[8] if not sign.isalnum() and sign != "-"}
    assert signs == {layout.get("decimal", ".")}
    assert out.read_bytes()[:2] == file.read_bytes()[:2]  # the byte-order mark, too


def test_clusters_do_not_depend_on_the_layout_and_encoding_of_the_file(run, csv_file):
    documents = [
        run("fit", csv_file(f"{i}.csv", **layout), "-k", 3, "--json").document
        for i, layout in enumerate([{}, {"delimiter": ";", "decimal": ",", "encoding": "utf-16"}])
    ]
    assert documents[0]["clusters"] == documents[1]["clusters"]


@pytest.mark.filterwarnings("ignore:.*without a single observed value")
def test_the_fit_command_returns_what_the_library_returns_for_scaled_rows(run, csv_file, tmp_path):
    file, out = csv_file(), tmp_path / "out.csv"
    document = run("fit", file, "-k", 3, "--shape", "round", "--out", out, "--json").document
    table = read_table(file)
    X = np.column_stack([table.column(name).values for name in document["columns"]])
    low, middle, high = np.nanquantile(X, [0.25, 0.5, 0.75], axis=0)
    reach = 6 * (high - low) / 1.349
    spread = np.nanstd(np.where(np.abs(X - middle) <= reach, X, np.nan), axis=0)
    Z = (X - middle) / spread
    model = TKMeans(3, random_state=0).fit(Z)
    known = ~np.isnan(X).all(axis=1)
    written = read_table(out)
    np.testing.assert_array_equal(written.column("cluster").values[known], model.labels_[known])
    for name, values in (
        ("probability", model.predict_proba(Z).max(axis=1)),
        ("outlier_pvalue", model.outlier_pvalues(Z)),
    ):
        np.testing.assert_allclose(written.column(name).values[known], values[known], rtol=1e-5)
    assert document["outliers"]["lines"] == (np.flatnonzero(model.outliers(Z)) + 2).tolist()
    centers = [[cluster["center"][name] for name in document["columns"]] for cluster in document["clusters"]]
    np.testing.assert_allclose(centers, model.cluster_centers_ * spread + middle)


def test_a_cell_that_is_not_a_number_is_an_error_that_names_it_and_the_option_to_use(run, csv_file):
    file = csv_file(change=lambda row: [cell.replace("37000", "37OOO") for cell in row])
    said = run("fit", file, "-k", 3, code=1).stderr
    assert "column 'body_mass_g'" in said
    assert "line 22: '37OOO'" in said
    assert "add --missing 37OOO if that stands for a missing value, or --without body_mass_g" in said
    assert "7 missing values" in run("fit", file, "-k", 3, "--missing", "37OOO").stderr
    assert "body_mass_g" not in run("fit", file, "-k", 3, "--without", "body_mass_g", "--json").document["columns"]


def test_of_many_bad_cells_the_first_are_named_and_the_rest_counted(run, csv_file):
    counter = iter(range(100))
    file = csv_file(change=lambda row: [*row[:3], f"{row[3]}mm" if next(counter) in range(1, 25) else row[3], *row[4:]])
    said = run("fit", file, "-k", 3, code=1).stderr
    assert "line 2: " in said
    assert "and 19 more; correct them, or add --without flipper_length_mm" in said


def test_fit_reads_standard_input_and_writes_only_the_table_to_standard_output(run, csv_file, are_species):
    text = csv_file(delimiter=";", decimal=",").read_text()
    done = run("fit", "-", "-k", 3, "--out", "-", given=text)
    rows = list(csv.reader(io.StringIO(done.stdout), delimiter=";"))
    assert rows[0][-3:] == ADDED
    assert are_species([row[6] for row in rows[1:]])


def test_with_json_standard_output_holds_only_the_json_document(run, csv_file):
    done = run("fit", csv_file(), "-k", 3, "--json")
    document = json.loads(done.stdout)
    assert sum(cluster["rows"] + cluster["outliers"] for cluster in document["clusters"]) == 59  # one has no value
    assert document["labels"][4] is None
    assert document["columns"] == ["bill_length_mm", "flipper_length_mm", "body_mass_g"]
    assert document["carried"] == ["species", "island", "sex"]
    assert document["outliers"]["lines"] == [22]
    assert "scaled by its median and the deviation of values that are not far (--scale robust" in done.stderr


def test_the_summary_of_fit_has_sizes_centres_in_units_outliers_and_the_next_command(run, csv_file):
    file = csv_file()
    shown = run("fit", file, "-k", 3, "--without", "flipper_length_mm").stdout
    for text in ("bill_length_mm", "body_mass_g", "share", "1 of 60 rows is an outlier"):
        assert text in shown
    assert f"tkmeans outliers {file} -k 3 --without flipper_length_mm" in shown
    assert f"--out {file.with_name('penguins-clustered.csv')}" in shown


@pytest.mark.parametrize("suffix", ["parquet", "feather", "npy"])
def test_fit_writes_other_formats_by_suffix_and_reads_them_by_content(run, csv_file, tmp_path, are_species, suffix):
    written = tmp_path / f"out.{suffix}"
    run("fit", csv_file(), "-k", 3, "--out", written)
    table = read_table(written.rename(tmp_path / "renamed.dat"))
    assert table.names[-3:] == ADDED
    assert set(table.cells("species")) == {"Adelie", "Gentoo", "Chinstrap"}
    assert are_species(table.cells("cluster"))


def test_columns_added_by_an_earlier_run_are_not_features_of_the_next(run, csv_file, tmp_path):
    once, twice = tmp_path / "once.csv", tmp_path / "twice.csv"
    run("fit", csv_file(), "-k", 3, "--out", once)
    said = run("fit", once, "-k", 3, "--out", twice, code=1).stderr
    assert "already has a column 'cluster'; add --prefix tk_" in said
    assert not twice.exists()
    document = run("fit", once, "-k", 3, "--out", twice, "--prefix", "tk_", "--json").document
    assert read_table(twice).names[-6:] == [*ADDED, *(f"tk_{name}" for name in ADDED)]
    assert document["columns"] == ["bill_length_mm", "flipper_length_mm", "body_mass_g"]
    assert "cluster, probability, outlier_pvalue (from an earlier run)" in " ".join(document["notes"])


def test_mark_outliers_writes_minus_one_as_the_cluster_of_outliers(run, csv_file, tmp_path):
    run("fit", csv_file(), "-k", 3, "--out", tmp_path / "out.csv", "--mark-outliers")
    labels = read_table(tmp_path / "out.csv").column("cluster").values
    assert np.flatnonzero(labels == -1).tolist() == [20]


def test_columns_are_chosen_by_name_or_number_and_unknown_ones_are_an_error(run, csv_file):
    file = csv_file()
    assert run("fit", file, "-k", 2, "--columns", "body_mass_g,3", "--json").document["columns"] == [
        "body_mass_g",
        "bill_length_mm",
    ]
    said = run("fit", file, "-k", 2, "--columns", "bill", code=1).stderr
    assert "no column 'bill'; did you mean 'bill_length_mm'?" in said
    assert "column 'species' is text, such as 'Adelie'" in run("fit", file, "-k", 2, "--columns", "1", code=1).stderr
    assert "did you mean 'sex'?" in run("fit", file, "-k", 2, "--id", "sexx", code=1).stderr


def test_columns_without_information_are_left_out_and_named(run, tmp_path):
    file = tmp_path / "table.csv"
    rng = np.random.default_rng(0)
    lines = [f"{i},{i * 7 % 41},5,,{x:.3f}" for i, x in enumerate(rng.normal(size=40), start=1)]
    file.write_text("\n".join([",ID,constant,empty,x", *lines]))
    document = run("fit", file, "-k", 2, "--json").document
    assert document["columns"] == ["x"]
    assert (
        "not used for clustering: x1, ID (a row number); "
        "constant (the same in every row); empty (empty); add --keep x1 to cluster by 'x1' anyway"
    ) in document["notes"]


def test_a_column_without_interquartile_range_is_scaled_by_its_standard_deviation(run, tmp_path):
    file = tmp_path / "table.csv"
    rng = np.random.default_rng(0)
    values = np.c_[rng.normal(size=60), np.where(np.arange(60) % 5 == 0, 1000.0, 0.0)]
    np.savetxt(file, values, delimiter=",", header="x,rare", comments="")
    model = tmp_path / "model.json"
    run("fit", file, "-k", 2, "--keep", "rare", "--model", model)
    scale = json.loads(model.read_text())["scaler"]["fitted"]["scale_"]["data"]
    assert scale[1] == pytest.approx(values[:, 1].std())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", ["round", "elliptical"])
@pytest.mark.parametrize("far", [0, 5])
def test_a_column_with_two_heaps_of_values_counts_as_much_as_one_with_noise(run, tmp_path, seed, shape, far):
    """Its quartiles lie in different heaps, forty deviations apart."""
    rng, y = np.random.default_rng(seed), np.repeat([0, 1], [60, 40])
    values = np.column_stack([rng.normal(20 + 40 * y, 1), rng.normal(50, 5, 100)])
    values[:far] = 1e5 * rng.normal(size=(far, 2))
    np.savetxt(tmp_path / "table.csv", values, delimiter=",", header="temp,hum", comments="")
    labels = run("fit", tmp_path / "table.csv", "-k", 2, "--shape", shape, "--json").document["labels"]
    assert adjusted_rand_score(y[far:], labels[far:]) == 1


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_the_option_scale_chooses_the_scaler(run, csv_file, scale):
    done = run("fit", csv_file(), "-k", 3, "--scale", scale, "--json")
    scaling = {"none": None, "standard": "StandardScaler", "minmax": "MinMaxScaler"}[scale]
    assert done.document["scaling"] == scaling
    assert ("not scaled" if scale == "none" else f"--scale {scale}") in done.stderr


@pytest.mark.filterwarnings("ignore:.*without a single observed value")
def test_the_option_weights_is_sample_weight_of_the_library(run, csv_file):
    file = csv_file(change=lambda row: [*row, {"sex": "n", "male": "3"}.get(row[5], "1")])
    document = run("fit", file, "-k", 3, "--weights", "n", "--scale", "none", "--shape", "round", "--json").document
    table = read_table(file)
    X = np.column_stack([table.column(name).values for name in document["columns"]])
    model = TKMeans(3, random_state=0).fit(X, sample_weight=table.column("n").values)
    centers = [list(cluster["center"].values()) for cluster in document["clusters"]]
    np.testing.assert_array_equal(centers, model.cluster_centers_)


def test_invalid_weights_are_an_error_that_names_the_row(run, csv_file):
    file = csv_file(change=lambda row: [*row, "n" if row[0] == "species" else "-1" if row[4] == "37000" else "1"])
    assert "in 'n' are (line 22: -1)" in run("fit", file, "-k", 3, "--weights", "n", code=1).stderr


def test_fit_with_the_option_report_writes_a_report_in_the_users_units(run, csv_file, tmp_path, reports):
    run("fit", csv_file(), "-k", 3, "--report", tmp_path / "report.html", "--id", "species")
    (path, estimator, X), options = reports[0]
    assert path == tmp_path / "report.html"
    assert X.shape == (60, 3)
    assert np.nanmax(X) == 37000  # in the user's units
    assert options["feature_names"] == ["bill_length_mm", "flipper_length_mm", "body_mass_g"]
    assert options["row_names"][:3] == ["Adelie", "Gentoo", "Chinstrap"]
    np.testing.assert_array_equal(estimator.predict(options["scaler"].transform(X)), estimator.labels_)
