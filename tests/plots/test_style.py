"""Pictures can be read in grey and by the colour-blind."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tkmeans.plots import style

# Machado, Oliveira and Fernandes (2009), full severity, for linear RGB.
SIMULATED = {
    "normal": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(color, matrix):
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    xyz = TO_XYZ @ np.clip(np.asarray(matrix) @ linear, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", SIMULATED)
def test_colours_differ_for_every_kind_of_colour_vision(vision):
    colors = [lab(color, SIMULATED[vision]) for color in style.COLORS]
    apart = {(i, j): np.linalg.norm(colors[i] - colors[j]) for i, j in itertools.combinations(range(14), 2)}
    assert min(apart.values()) > 3 * 2.3  # 2.3 is just noticeable
    assert min(apart[pair] for pair in itertools.combinations(range(7), 2)) > 6 * 2.3  # few clusters are most common
    assert min(apart[i, i + 7] for i in range(7)) > 9 * 2.3  # shades of one colour


def test_colours_are_dark_enough_on_white():
    assert all(lab(color, np.eye(3))[0] < 80 for color in style.COLORS)


def test_fifty_six_clusters_look_different_and_neighbours_differ_in_marker_and_in_colour():
    looks = [(style.color(k), style.marker(k)) for k in range(56)]
    assert len(set(looks)) == 56
    assert all(a[0] != b[0] and a[1] != b[1] for a, b in itertools.pairwise(looks))


def test_importing_the_plots_does_not_import_matplotlib():
    code = "import sys, tkmeans.plots; sys.exit('matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_plots_without_matplotlib_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'tkmeans\[plots\]'"):
        style.axes_for(None)
