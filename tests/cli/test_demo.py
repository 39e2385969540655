import sys

import pytest


@pytest.fixture
def demo(run, tmp_path):
    def run_demo(*words):
        return run("demo", "--picture", tmp_path / "demo.png", "--report", tmp_path / "demo.html", *words)

    return run_demo


def test_the_demo_compares_with_kmeans_and_writes_a_picture_and_a_report(demo, tmp_path):
    done = demo()
    assert "KMeans" in done.output
    assert "15 of 15" in done.output  # what TKMeans found
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "demo.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("seed", [1, 2])
def test_the_demo_finds_all_clusters_with_other_seeds_and_without_matplotlib(demo, tmp_path, monkeypatch, seed):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = demo("--seed", seed)
    assert "15 of 15" in done.output
    assert "pip install 'tkmeans[plots]'" in done.output
    assert (tmp_path / "demo.html").exists()
