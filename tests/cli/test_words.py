"""What the commands say: plans, sentences, lines of the file, and nothing that steers a terminal."""

import html
import importlib
import json
import re
import sys
from contextlib import contextmanager

import numpy as np
import pytest
from rich.console import Console
from support.command_tables import positive_groups

from tkmeans.cli import screen
from tkmeans.fitting.start_choice import Agreement, StartChoice


@pytest.fixture
def terminal(monkeypatch):
    """Standard output as a terminal of 80 columns."""
    monkeypatch.setattr(screen, "out", Console(width=80, force_terminal=True, emoji=False, color_system=None))


def test_the_dry_run_shows_the_role_of_every_column_and_computes_nothing(run, csv_file, monkeypatch):
    importlib.import_module("tkmeans.persistence")  # whose errors every command knows
    monkeypatch.setitem(sys.modules, "tkmeans.estimators", None)
    file = csv_file(change=lambda row: ["tag_id" if row[0] == "species" else "12", *row])
    document = run("fit", file, "--dry-run", "--json", "--encode", "sex").document
    roles = {column["column"]: column["role"] for column in document["columns"]}
    assert roles["species"] == "not used: text"
    assert roles["tag_id"] == "not used: the same in every row"
    assert roles["body_mass_g"] == roles["sex=male"] == "used for clustering"
    assert "body_mass_g" in run("fit", file, "--dry-run").stdout


def test_an_encoded_category_is_clustered_by_and_known_to_predict(run, csv_file, tmp_path):
    model = tmp_path / "model.json"
    file = csv_file()
    fitted = run("fit", file, "-k", 3, "--encode", "species", "--model", model, "--json").document
    assert fitted["columns"][-3:] == ["species=Adelie", "species=Chinstrap", "species=Gentoo"]
    assert run("predict", model, file, "--json").document["labels"] == fitted["labels"]


def test_a_point_within_a_number_belongs_to_the_name_of_a_column(run, table):
    said = run("fit", table("PM2.5,petal.length", *(f"{a},{b}" for a, b in positive_groups(60))), "-k", 2).stdout
    sentences = re.findall(r"^Cluster \d .*$", said, re.MULTILINE)
    assert len(sentences) == 2
    for sentence in sentences:
        assert re.search(r"\b(high|low) PM2\.5\b", sentence)
        assert re.search(r"\b(long|short) petal\b", sentence)


def test_centres_of_dates_are_said_to_be_days(run, table):
    rows = [f"{a},{b},2024-{1 + i % 12:02}-11" for i, (a, b) in enumerate(positive_groups(60))]
    file = table("a,b,day", *rows)
    said = "Centres are in your units; rows are counted without outliers"
    assert f"{said}; dates are days since 1970-01-01." in run("fit", file, "-k", 2, "--keep", "day").stdout
    assert f"{said}." in run("fit", file, "-k", 2).stdout


def test_the_sentence_of_each_cluster_names_its_species(run, csv_file):
    done = run("fit", csv_file(), "-k", 3)
    sentences = re.findall(r"^Cluster \d .*$", done.stdout, re.MULTILINE)
    assert {re.search(r"\d+ % (\w+)", sentence)[1] for sentence in sentences} == {"Adelie", "Gentoo", "Chinstrap"}
    assert any("heavy" in sentence and "Gentoo" in sentence for sentence in sentences)


@pytest.mark.parametrize("shape", ["round", "elliptical"])
def test_the_report_and_the_command_agree_in_counts_row_numbers_and_wording(run, csv_file, tmp_path, shape):
    words = ("fit", csv_file(), "-k", 3, "--shape", shape, "--report", tmp_path / "page.html")
    printed, document = run(*words).stdout, run(*words, "--json").document
    markup = (tmp_path / "page.html").read_text(encoding="utf-8")
    page = html.unescape(re.sub(r"<[^>]+>", "", markup)).replace("\u202f", "").replace("\u00a0", " ")
    for cluster in document["clusters"]:
        assert cluster["sentence"] in page
        assert cluster["sentence"] in printed
        assert re.search(rf"Cluster {cluster['cluster']} \({cluster['rows']} rows\b", page)
        assert f"{cluster['cluster']} {cluster['rows']} rows" in page  # below the scatter plot
    assert (summary := re.search(r"(\d+ of \d+ rows [^.]*outlier|No row)[^\n]*$", printed, re.MULTILINE)[0]) in page
    assert summary.startswith(f"{document['outliers']['count']} of 60 rows")
    assert f"{document['unsure']}</dd>" in markup or not document["unsure"]
    listed = re.findall(r'class="pointer"[^>]*>(?:<bdi>)?([^<]*)', markup.split('id="outliers"')[1])
    assert sorted(listed) == [f"line {line}" for line in document["outliers"]["lines"]]
    assert "line 22" in listed
    assert "row 21" not in page


@pytest.mark.parametrize("n_columns", [3, 12])
def test_every_column_is_shown_on_a_terminal_of_80_columns(run, tmp_path, terminal, n_columns):
    names = [f"a rather long name {j}" for j in range(n_columns)]
    rows = np.random.default_rng(0).normal(np.repeat([[0.0], [9.0]], 30, axis=0), size=(60, n_columns))
    np.savetxt(tmp_path / "wide.csv", rows, delimiter=",", header=",".join(names), comments="")
    shown = run("fit", tmp_path / "wide.csv", "-k", 2).stdout
    table = [line for line in shown.splitlines() if line[:1] in "│┃"]
    assert max(map(len, table)) <= 80
    assert all(any(name in line for line in table) for name in names)


def test_more_clusters_than_make_sense_are_warned_of_before_the_fit_and_not_all_printed(run, csv_file):
    done = run("fit", csv_file(), "-k", 40)
    assert "Note: 40 clusters of 60 rows are 1.5 rows each" in done.stderr
    assert "10 more clusters: --json or --out shows them" in done.stdout
    assert "rows each" not in run("fit", csv_file(), "-k", 3).stderr


@pytest.mark.parametrize("name", ["fit", "outliers"])
def test_without_k_the_number_of_clusters_is_the_one_that_select_k_suggests(run, csv_file, name):
    best = run("select-k", csv_file(), "--json").document["best"]
    done = run(name, csv_file(), "--json")
    assert f"{best} cluster" in done.stderr
    assert "by evidence" in done.stderr
    if name == "fit":
        assert done.document["n_clusters"] == best


def test_predict_with_table_and_model_in_the_wrong_order_says_the_right_one(run, csv_file, tmp_path):
    file, model = csv_file(), tmp_path / "model.json"
    run("fit", file, "-k", 3, "--model", model)
    said = run("predict", file, model, code=1).stderr
    assert f"model.json is the model, which comes first: tkmeans predict {model} {file}" in said


def test_names_from_a_file_cannot_steer_the_terminal(run, tmp_path, terminal, monkeypatch):
    monkeypatch.setattr(screen, "err", Console(stderr=True, width=80, force_terminal=True, color_system=None))
    hostile = ["x\x1b[2Jx", "c\x9b2Jx", "[bold]y[/bold]", ":x:", "turned\u202eback", "[link=http://a.example]z[/link]"]
    rows = np.random.default_rng(0).normal(np.repeat([[0.0], [9.0]], 20, axis=0), size=(40, len(hostile)))
    lines = [",".join(map(repr, row)) for row in rows.tolist()]
    (tmp_path / "hostile.csv").write_text("\n".join([",".join(hostile), *lines]) + "\n")
    for words in (["-k", 2], ["--dry-run"], ["-k", 2, "--columns", "none"]):
        done = run("fit", tmp_path / "hostile.csv", *words, code=int("none" in words))
        said = done.stdout + re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", done.stderr)  # those of the progress bar
        assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e]", said)
        assert "\x1b[2J" not in done.stdout + done.stderr
        for name in ("[bold]y[/bold]", ":x:"):
            assert name in said.replace("\n", "")
    printed = run("fit", tmp_path / "hostile.csv", "-k", 2, "--json").stdout
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", printed)
    assert json.loads(printed)["columns"] == hostile


@pytest.fixture
def shares(monkeypatch):
    """The shares that progress bars show, by what they are about."""
    shown = {}

    @contextmanager
    def recorded(what, *, transient=True):
        name, known = what.split()[0], {}

        def update(**facts):
            known.update(facts)
            shown.setdefault(name, []).append(known["completed"] / known["total"])

        yield update

    monkeypatch.setattr(screen, "counting", recorded)
    monkeypatch.setattr(screen, "err", Console(stderr=True, width=80, force_terminal=True, color_system=None))
    return shown


def test_reading_shows_a_growing_share_of_what_is_done(run, tmp_path, shares):
    rows = np.random.default_rng(0).normal(np.repeat([[0.0], [3.0]], 20_000, axis=0), size=(40_000, 4))
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",")
    run("fit", tmp_path / "rows.csv", "-k", 2)
    reading = shares["reading"]
    assert reading[-1] == 1
    assert len(reading) > 6
    assert 0.3 < np.median(reading) < 0.9
    assert np.min(np.diff(reading)) > -0.05  # a look at the beginning of the file is counted again


def test_a_message_of_the_library_suggests_options_to_those_who_type_commands():
    said = "add decimal=',' or missing=['<LOD', 'x'], keep=['a b', 'c'], header=False or table='...'"
    options = "add --decimal , or --missing '<LOD' --missing x, --keep 'a b,c', --no-header or --table ..."
    assert screen.as_options(said) == options
    assert (
        screen.as_options("""add without=["it's [a] \\"name\\""] to""") == """add --without 'it'"'"'s [a] "name"' to"""
    )


def test_with_json_the_outliers_predict_and_select_k_commands_print_json_and_nothing_else(run, csv_file, tmp_path):
    file = csv_file()
    run("fit", file, "-k", 3, "--model", tmp_path / "model.json")
    for words in (
        ("outliers", file, "-k", 3),
        ("predict", tmp_path / "model.json", file),
        ("select-k", file, "--max", 3),
    ):
        assert isinstance(json.loads(run(*words, "--json").stdout), dict)


def test_the_summary_says_how_many_searches_found_these_clusters(run, tmp_path):
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "rows.csv", np.vstack([rng.normal(0, 1, (60, 2)), rng.normal(9, 1, (60, 2))]), delimiter=",")
    assert "2 of 2 independent searches found these clusters." in run("fit", tmp_path / "rows.csv", "-k", 2).stdout


def test_the_summary_says_if_most_searches_found_other_clusters(run, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    np.savetxt(tmp_path / "rows.csv", np.vstack([rng.normal(0, 1, (60, 2)), rng.normal(9, 1, (60, 2))]), delimiter=",")
    monkeypatch.setattr("tkmeans.fitting.start_choice.StartChoice.result", partial_agreement(StartChoice.result))
    text = " ".join(run("fit", tmp_path / "rows.csv", "-k", 2, "--shape", "round").stdout.split())
    assert "1 of 3 independent searches found these clusters. Most searches found other ones" in text


def partial_agreement(result):
    return lambda choice: (result(choice)[0], Agreement(3, 1, 0.1))


def test_a_number_that_was_chosen_without_the_least_size_is_said_to_be(run, csv_file):
    words = ("fit", csv_file(), "--shape", "round")
    assert "chosen without --min-cluster-size" in run(*words, "--min-cluster-size", 5).stderr
    assert "min-cluster-size" not in run(*words).stderr


def test_none_is_an_answer_in_a_column_of_text_and_a_missing_value_in_one_of_numbers(run, table):
    rows = [f"{a},{b},{'none' if i < 60 else 'asthma'}" for i, (a, b) in enumerate(positive_groups(p=2))]
    found = run("fit", table("weight,height,illness", *rows, "none,none,asthma"), "--json").document
    known = {c["categories"][0]["value"]: c["categories"][0]["share"] for c in found["clusters"] if c["categories"]}
    assert "none" in known


SEPARATORS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("sign", SEPARATORS)
@pytest.mark.parametrize("command", ["fit", "outliers", "dry", "predict"])
def test_neither_names_nor_cells_begin_a_line_of_the_screen(run, table, sign, command):
    name, cell = f"height{sign}Error: disk", f"x{sign}Error: cell"
    rows = (f'{a},{a},"{cell if i % 2 else "y"}","{cell}{i}"' for i, (a, _) in enumerate(positive_groups(60)))
    file = table(f'"{name}",b,"{name} in words",who', *rows)
    words = {"fit": (), "outliers": ("--id", "who"), "dry": ("--dry-run",), "predict": ("--model", "m.json")}[command]
    done = run("outliers" if command == "outliers" else "fit", file, "-k", 2, *words)
    done = run("predict", "m.json", file) if command == "predict" else done
    assert "disk" in done.output
    assert not [line for line in done.output.splitlines() if line.strip(" │").startswith("Error:")]
    assert not {*done.output} & {*SEPARATORS} - {"\n"}
