"""Data of the interactive scatter plot, encoded for the page's script."""

import base64
import itertools
import warnings
from typing import Any

import numpy as np

from tkmeans.plots import style
from tkmeans.plots.projections import agreement, drawn_rows, heights, principal_plane
from tkmeans.report.clustering import Clustering, quantiles
from tkmeans.report.markup import fragment, shortened
from tkmeans.stats import Array

MAX_ROWS = 20_000  # drawn
MAX_COLUMNS = 12  # that can be chosen for the axes; the page stays below 2 MB
_NAME_BYTES = 1_500_000  # for the names of all drawn rows
_FARTHEST = 1e38  # what a float32 can hold
_TRIED_COLUMNS, _TRIED_ROWS = 6, 2000
_CLEAR = 0.9  # a pair of columns that tells so many rows' clusters is shown first: it has names and units


def drawing(found: Clustering, scaler: Any) -> dict[str, Any]:
    """What the page's script needs to draw."""
    outliers = np.zeros(len(found.values), dtype=bool) if found.rows.outlier is None else found.rows.outlier
    drawn = drawn_rows(outliers, np.zeros((len(found.values), 2)), MAX_ROWS)
    names, slopes, digits = found.names, _slopes(found, scaler), found.digits
    chosen, held, centers = np.sort(found.telling[:MAX_COLUMNS]), found.values[drawn], found.centers
    columns = [_packed("column", names[j], held[:, j], centers[:, j], slopes[j], digits[j]) for j in chosen]
    view = [0, 1]
    if found.values.shape[1] == 1:
        middle = np.full(len(found.centers), 0.5)
        columns.append(_packed("height", "(height means nothing)", heights(len(drawn)), middle, 1e-9))
    elif found.values.shape[1] > 2:
        if (pair := _clearest_pair(found, drawn)) is not None:
            view = [2 + int(np.searchsorted(chosen, j)) for j in pair]
        expected = found.input_centers[found.rows.label]
        plane = principal_plane(found.inputs, found.rows.core, expected)
        places, centers = plane.project(found.inputs[drawn], expected[drawn]), plane.place(found.input_centers)
        columns = [_packed("plane", plane.names[i], places[:, i], centers[:, i], 1.0) for i in (0, 1)] + columns
    sure = found.rows.probability
    rows: dict[str, Any] = {"labels": _base64(found.rows.label[drawn], "<u2"), "numbers": _base64(drawn, "<u4")}
    rows |= {"outliers": _base64(outliers[drawn], "u1"), "rows": _names(found, drawn)}
    rows["certainty"] = None if sure is None else _base64(np.floor(1000 * sure[drawn]), "<u2")
    shapes = [fragment(f"marker-{marker}") for marker in style.MARKERS]
    return {"columns": columns, "view": view, **rows, "colors": style.COLORS, "shapes": shapes}


def _packed(
    kind: str, name: str, values: Array, centers: Array, slope: float | None, decimals: int | None = None
) -> dict[str, Any]:
    """Values as float32 around their middle, so that no digit is spent on what all have in common.

    The slope is that of what the estimator saw, by these values: there distances are what they seem.
    """
    middle = float(np.nanmedian(values)) if np.any(~np.isnan(values)) else 0.0
    packed = _base64(np.clip(values - middle, -_FARTHEST, _FARTHEST), "<f4")
    column = {"kind": kind, "name": shortened(name, 80), "middle": middle, "values": packed}
    return column | {"centers": centers.tolist(), "slope": slope, "decimals": decimals}


def _slopes(found: Clustering, scaler: Any) -> list[float | None]:
    """How much the scaler stretches each of the p columns; None if it bends them."""
    if scaler is None:
        return [1.0] * found.values.shape[1]
    low, high = quantiles(found.values, [0, 1])
    middle = low + (high - low) / 3
    with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
        warnings.simplefilter("ignore", UserWarning)  # the three rows have no names of columns
        three = np.asarray(scaler.transform(np.array([low, middle, high])), dtype=float)
        first, second = (three[1] - three[0]) / (middle - low), (three[2] - three[1]) / (high - middle)
    first, second = (np.where(high > low, slope, 1.0) for slope in (first, second))  # 1 if constant
    return first.tolist() if np.allclose(first, second, rtol=1e-6) else [None] * found.values.shape[1]


def _clearest_pair(found: Clustering, drawn: Array) -> tuple[int, int] | None:
    """The two columns in which the nearest centre is most often the right one, if that is often enough."""
    rows = drawn[found.rows.core[drawn]]
    if len(rows) == 0:
        return None
    rows = rows[:: -(-len(rows) // _TRIED_ROWS)]
    best, share = None, _CLEAR
    for pair in itertools.combinations(sorted(found.telling[:_TRIED_COLUMNS]), 2):
        places = found.inputs[rows][:, pair]
        whole = ~np.isnan(places).any(axis=1)
        right = agreement(places[whole], found.rows.label[rows][whole], found.input_centers[:, pair])
        if right > share and whole.mean() > 0.5:
            best, share = pair, right
    return best


def _names(found: Clustering, drawn: Array) -> list[str] | None:
    """Names of the drawn rows, cut so that the page stays small."""
    if found.row_names is None:
        return None
    names = [found.row_names[i] for i in drawn]
    for length in (60, 40, 25, 15):
        names = [shortened(name, length) for name in names]
        if sum(len(name.encode(errors="replace")) for name in names) <= _NAME_BYTES:
            break
    return names


def _base64(values: Array, dtype: str) -> str:
    return base64.b64encode(np.asarray(values).astype(dtype).tobytes()).decode("ascii")
