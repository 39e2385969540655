import pytest
from typer.testing import CliRunner

import tkmeans
from tkmeans.cli import app


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def test_the_version_is_said():
    assert tkmeans.__version__ in run("--version").output


def test_the_demo_compares_and_leaves_a_picture(tmp_path):
    picture = tmp_path / "demo.png"
    done = run("demo", "--picture", picture)
    assert done.exit_code == 0, done.output
    assert "KMeans" in done.output
    assert "15 of 15" in done.output  # what TKMeans found
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_demo_does_not_depend_on_luck(tmp_path, seed):
    assert "15 of 15" in run("demo", "--picture", tmp_path / "demo.png", "--seed", seed).output
