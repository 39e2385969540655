import pytest


def test_the_demo_compares_and_leaves_a_picture(run, tmp_path):
    picture = tmp_path / "demo.png"
    done = run("demo", "--picture", picture)
    assert "KMeans" in done.output
    assert "15 of 15" in done.output  # what TKMeans found
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_demo_does_not_depend_on_luck(run, tmp_path, seed):
    assert "15 of 15" in run("demo", "--picture", tmp_path / "demo.png", "--seed", seed).output
