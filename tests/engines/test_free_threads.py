"""Free-threaded Python: the extension needs no global lock, and does not bring it back."""

import sys
import sysconfig
import threading
from pathlib import Path

import numpy as np
import pytest

native = pytest.importorskip("tkmeans.engines.native", reason="needs the native engine")

from tkmeans.models import Student  # noqa: E402
from tkmeans.stats import Block, Frame, Params  # noqa: E402

free_threaded = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="needs a free-threaded Python, such as 3.14t"
)


def test_the_extension_is_built_as_one_that_needs_no_global_lock():
    build = (Path(__file__).parents[2] / "CMakeLists.txt").read_text(encoding="utf-8")
    (line,) = [line for line in build.splitlines() if line.startswith("nanobind_add_module(_native ")]
    assert "FREE_THREADED" in line.split()


@free_threaded
def test_importing_the_extension_leaves_the_global_lock_off():
    assert not sys._is_gil_enabled()


@free_threaded
def test_threads_without_a_global_lock_get_the_numbers_of_one_thread():
    rng = np.random.default_rng(0)
    X, centers = rng.normal(size=(5000, 6)), rng.normal(size=(8, 6))
    params = Params(centers, 0.5, 3.0, np.full(8, -np.log(8)))
    block, kernel = Block(X, None, Frame(np.zeros(6), 1.0)), Student().kernel(params)
    expected, together, found = native.summarize(block, params, kernel), threading.Barrier(8), []

    def work():
        together.wait(timeout=60)
        found.extend(native.summarize(block, params, kernel) for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 160
    for stats in found:
        for got, want in zip(stats, expected, strict=True):
            np.testing.assert_array_equal(got, want)
    assert not sys._is_gil_enabled()
