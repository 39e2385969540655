"""Input stays as it is: neither results nor checkpoints, reports or outputs of the command are written over it."""

import os
import subprocess
import sys

import numpy as np
import pytest
from support.model_inputs import t_mixture, two_groups
from support.table_files import command, written

import tkmeans
from tkmeans import TKMeans

PLANE, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    np.save(folder / "part.npy", PLANE)
    return folder


TWO_GROUPS = two_groups()


# ---- files and folders that are the input --------------------------------------------------------


@pytest.mark.parametrize("name", ["file", "link", "folder"])
def test_neither_results_nor_checkpoints_are_written_over_the_input(name, folder):
    file = folder / "part.npy"
    before = file.read_bytes()
    out, given = file, folder if name == "folder" else file
    if name == "link":
        out = folder.parent / "link"
        out.symlink_to(file)
    with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
        TKMeans(3).fit(PLANE).predict(given, out=out)
    with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
        TKMeans(3, checkpoint=out).fit(given)
    assert file.read_bytes() == before


@pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
def test_nothing_is_written_over_a_file_that_a_folder_of_the_input_links_to(link, tmp_path):
    folder = tmp_path / "folder"
    real = written(tmp_path / "real.csv", "x,y\n1.5,2\n3,4.5\n8,9\n")
    before, said = real.read_bytes(), "is the input or in it, which is not overwritten"
    folder.mkdir()
    getattr(folder / "a.csv", link)(real)
    (folder / ".lost").symlink_to(tmp_path / "nowhere")
    with pytest.raises(FileExistsError, match=said):
        TKMeans(1).fit([[1.0, 2.0]]).predict(folder, out=real)
    with pytest.raises(FileExistsError, match=said):
        TKMeans(1, checkpoint=real).fit(folder)
    for option in ("--out", "--model"):
        done = command("fit", folder, "-k", 1, option, real)
        assert done.exit_code == 1
        assert "which is not overwritten" in " ".join(done.stderr.split())
    assert real.read_bytes() == before


def test_a_dataset_of_pyarrow_is_not_written_over_by_what_is_made_of_it(tmp_path):
    pa, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(dict(zip("abc", TWO_GROUPS.T, strict=True))), path)
    before = path.read_bytes()
    one = dataset.dataset(str(path))
    for given in (one, dataset.dataset([one])):  # and a union
        model = TKMeans(2, random_state=0).fit(given)
        with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
            model.predict(given, out=str(path))
        with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
            TKMeans(2, random_state=0, checkpoint=str(path)).fit(given)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("what", ["sample_weight", "init"])
def test_a_checkpoint_is_not_written_over_the_file_of_weights_or_of_first_centres(what, tmp_path):
    X = np.random.default_rng(0).normal(size=(200, 2)) + np.repeat([[0], [9]], 100, axis=0)
    path = tmp_path / "given.npy"
    np.save(path, np.ones(200) if what == "sample_weight" else X[[0, 150]])
    before, given = path.read_bytes(), np.load(path, mmap_mode="r")
    model = TKMeans(2, checkpoint=path, **({"init": given} if what == "init" else {}))
    with pytest.raises(FileExistsError, match="is the input"):
        model.fit(X, sample_weight=given if what == "sample_weight" else None)
    assert path.read_bytes() == before


# ---- files that arrays are mapped from -----------------------------------------------------------

SPACE, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)


def views(mapped):
    yield np.asarray(mapped)
    yield np.asarray(mapped)[10:]
    yield np.asarray(mapped).reshape(-1, 3)
    yield np.asarray(mapped).T[:3].T


def test_neither_checkpoints_nor_reports_are_written_to_the_file_that_the_rows_are_mapped_from(folder):
    rows = np.load(folder / "part.npy", mmap_mode="r")
    with pytest.raises(FileExistsError, match="which is not overwritten"):
        TKMeans(3, checkpoint=folder / "part.npy").fit(rows)
    with pytest.raises(FileExistsError, match="which is not overwritten"):
        tkmeans.write_report(folder / "part.npy", TKMeans(3).fit(rows), rows)
    assert np.array_equal(np.load(folder / "part.npy"), PLANE)


def test_the_file_behind_a_view_of_a_mapped_array_is_not_written_over(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, SPACE)
    before = path.read_bytes()
    model = TKMeans(3).fit(SPACE)
    for rows in views(np.load(path, mmap_mode="r")):
        for write in (
            lambda rows=rows: model.predict(rows, out=path),
            lambda rows=rows: TKMeans(3, checkpoint=path).fit(rows),
            lambda rows=rows: tkmeans.write_report(path, model, rows),
        ):
            with pytest.raises(FileExistsError, match="is the input"):
                write()
    assert path.read_bytes() == before


# ---- the command ---------------------------------------------------------------------------------


def in_a_process(*words):
    code = f"from tkmeans.cli import main; import sys; sys.argv[1:] = {[*map(str, words)]!r}; main()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.thorough
def test_the_command_does_not_write_into_a_file_of_its_input_folder(folder):
    pytest.importorskip("typer")
    words = ["fit", str(folder), "-k", "3", "--out", str(folder / "part.npy")]
    code = f"from tkmeans.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "which is not overwritten" in done.stderr
    assert np.array_equal(np.load(folder / "part.npy"), PLANE)


@pytest.mark.thorough
def test_the_command_does_not_write_over_the_model_that_it_predicts_with(folder, tmp_path):
    pytest.importorskip("typer")
    model = tmp_path / "model.json"
    tkmeans.save(TKMeans(3).fit(PLANE), model)
    before = model.read_bytes()
    words = ["predict", str(model), str(folder / "part.npy"), "--out", str(model)]
    code = f"from tkmeans.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert model.read_bytes() == before


@pytest.mark.thorough
@pytest.mark.skipif(os.name == "nt", reason="Windows has no /dev/stdin")
def test_the_command_does_not_write_over_the_file_that_standard_input_comes_from(tmp_path):
    pytest.importorskip("typer")
    path = written(tmp_path / "rows.csv", "a,b\n" + "".join(f"{x},{y}\n" for x, y in PLANE.tolist()))
    words = ["fit", "-", "-k", "3", "--out", str(path)]
    code = f"from tkmeans.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    before = path.read_text()
    with path.open() as rows:
        done = subprocess.run([sys.executable, "-c", code], stdin=rows, capture_output=True, text=True, check=False)
    assert (done.returncode, path.read_text() == before) == (1, True)


@pytest.mark.thorough
def test_the_command_refuses_names_that_are_formulas_and_files_called_minus(folder):
    pytest.importorskip("typer")
    given = "fit", folder / "part.npy", "-k", 3, "--out", folder.parent / "out.csv"
    done = in_a_process(*given, "--prefix", "=")
    assert (done.returncode, "names that begin with '=' are formulas" in done.stderr) == (2, True)
    done = in_a_process(*given, "--model", "-")
    assert (done.returncode, "only tables can go to -" in done.stderr) == (2, True)


# ---- names of results ----------------------------------------------------------------------------


def test_results_are_not_written_as_parquet_under_the_name_of_another_format(tmp_path):
    pytest.importorskip("pyarrow")
    model = TKMeans(2, random_state=0).fit(TWO_GROUPS)
    for name in ("o.csv", "o.TSV", "o.txt", "o.json", "o.xlsx", "o.npy", "o.feather"):
        with pytest.raises(ValueError, match=r"out is written as Parquet; name it \*.parquet, got .*o\."):
            model.predict(TWO_GROUPS, out=tmp_path / name)
    assert not [*tmp_path.iterdir()]
    assert model.predict(TWO_GROUPS, out=tmp_path / "o.parquet").exists()
