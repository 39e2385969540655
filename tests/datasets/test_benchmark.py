"""The paper's sets, wherever they come from."""

import hashlib
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest
from sklearn.datasets import load_iris
from support.paper_data import data_folder

from tkmeans.datasets import REAL, SYNTHETIC, fetch_benchmark, scaled

OTHERS = [name for name in SYNTHETIC + REAL if name != "bezdekiris"]


@pytest.fixture(autouse=True)
def _no_folder(monkeypatch):
    monkeypatch.delenv("TKMEANS_DATA", raising=False)


@pytest.fixture(scope="module")  # before _no_folder takes the variable away
def shared():
    folder = data_folder()
    if not (folder / "mat").exists():
        pytest.skip(f"needs the paper's data sets as .mat files, which are not in {folder}")
    return folder


@pytest.fixture
def mirror(shared):
    """The files on a server of our own."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(shared / "mat"))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("name", OTHERS)
def test_npz_and_mat_files_of_a_benchmark_set_hold_the_same_rows_and_labels(name, shared, monkeypatch):
    monkeypatch.setenv("TKMEANS_DATA", str(shared))
    X, y = fetch_benchmark(name, return_X_y=True)
    monkeypatch.setenv("TKMEANS_DATA", str(shared / "mat"))
    again, labels = fetch_benchmark(name, return_X_y=True)
    np.testing.assert_array_equal(X, again)
    np.testing.assert_array_equal(y, labels)
    bunch = fetch_benchmark(name)
    if name in SYNTHETIC:
        np.testing.assert_array_equal(np.unique(bunch.target), np.arange(bunch.n_clusters))
    else:
        assert bunch.target is None
        assert "no labels" in bunch.DESCR


def test_files_of_benchmark_sets_are_fetched_once_and_kept(mirror, tmp_path):
    X, y = fetch_benchmark("A1", data_home=tmp_path, base_url=mirror, return_X_y=True)
    assert X.shape == (3000, 2)
    assert len(np.unique(y)) == 20
    again = fetch_benchmark("A1", data_home=tmp_path, base_url="http://127.0.0.1:9/")  # nobody listens there
    np.testing.assert_array_equal(again.data, X)


def test_fetch_benchmark_without_a_network_names_the_alternatives(tmp_path):
    with pytest.raises(OSError, match=r"'S1' could not be fetched from http://127.*TKMEANS_DATA.*make_like"):
        fetch_benchmark("S1", data_home=tmp_path, base_url="http://127.0.0.1:9/")


def test_fetch_benchmark_without_pooch_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install 'tkmeans\[datasets\]'.*TKMEANS_DATA"):
        fetch_benchmark("S1", data_home=tmp_path)


def test_a_file_of_a_benchmark_set_with_another_checksum_is_refused(tmp_path, monkeypatch):
    (tmp_path / "S1.mat").write_bytes(b"something else")
    monkeypatch.setenv("TKMEANS_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=f"is not the data set 'S1'.*{hashlib.sha256(b'something else').hexdigest()}"):
        fetch_benchmark("S1")


def test_bezdekiris_is_scikit_learns_iris_with_its_labels(shared):
    bunch = fetch_benchmark("bezdekiris")
    np.testing.assert_array_equal(bunch.data, np.load(shared / "bezdekiris.npz")["X"])
    np.testing.assert_array_equal(bunch.target, load_iris().target)


def test_the_oddities_stated_of_benchmark_sets_are_true(shared, monkeypatch):
    monkeypatch.setenv("TKMEANS_DATA", str(shared))
    wine = fetch_benchmark("wine")
    np.testing.assert_array_equal(wine.data[:, 12], wine.data[:, 13])
    assert "14th feature repeats the 13th" in wine.oddity
    iris = fetch_benchmark("iris")
    differs = np.abs(scaled(iris.data) - scaled(load_iris().data)).max(axis=1) > 1e-4
    np.testing.assert_array_equal(np.flatnonzero(differs) + 1, [35, 38])
    assert "35th and the 38th" in iris.oddity
    sizes = np.bincount(fetch_benchmark("unbalance").target)
    assert sorted(sizes) == [100] * 5 + [2000] * 3


def test_fetch_benchmark_refuses_an_unknown_name_and_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"name must be one of A1, .*, got 'S5'"):
        fetch_benchmark("S5")


def test_scaled_maps_every_feature_linearly_to_minus_one_to_one():
    X = np.random.default_rng(0).normal(size=(50, 3)) * [1, 100, 1e-3] + 7
    out = scaled(X)
    np.testing.assert_allclose(out.min(axis=0), -1)
    np.testing.assert_allclose(out.max(axis=0), 1)
    for j in range(3):
        assert np.corrcoef(out[:, j], X[:, j])[0, 1] == pytest.approx(1)


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("dim32", "dim032"),
        ("dim64", "dim064"),
        ("Unbalance", "unbalance"),
        ("DIM032", "dim032"),
        ("a1", "A1"),
        ("Seed", "seed"),
    ],
)
def test_the_paper_s_own_spelling_of_a_data_set_is_understood(spelled, name, shared, monkeypatch):
    monkeypatch.setenv("TKMEANS_DATA", str(shared))
    assert fetch_benchmark(spelled).name == name
