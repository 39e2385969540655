"""The page of the report, put together from its sections and the data of its scatter plot, and written to a file."""

import base64
import hashlib
import itertools
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from tkmeans.atomic import check_not_input, mapped_file, replacing
from tkmeans.cluster_descriptions import quantile
from tkmeans.docstrings import documented
from tkmeans.estimators.validation import check_path
from tkmeans.plots import style
from tkmeans.plots.projections import agreement, drawn_rows, heights, principal_plane
from tkmeans.report import sections
from tkmeans.report.clustering import Clustering, look
from tkmeans.report.markup import count, embedded, fragment, part, shortened, swatch, text
from tkmeans.stats import Array

MAX_ROWS = 20_000  # drawn
MAX_COLUMNS = 12  # that can be chosen for the axes; the page stays below 2 MB
_NAME_BYTES = 1_500_000  # for the names of all drawn rows
_FARTHEST = 1e38  # what a float32 can hold
_TRIED_COLUMNS, _TRIED_ROWS = 6, 2000
_CLEAR = 0.9  # a pair of columns that tells so many rows' clusters is shown first: it has names and units


@documented("report_*", returns="path : Path\n    Where the page is.")
def write_report(
    path: str | os.PathLike[str],
    estimator: Any,
    X: Any,
    *,
    feature_names: Sequence[str] | None = None,
    row_names: Sequence[Any] | None = None,
    scaler: Any = None,
    categories: Mapping[str, Any] | None = None,
    selection: Any = None,
    title: str = "",
    call: str = "",
    notes: Sequence[str] = (),
) -> Path:
    """Write what was found as one HTML file, which opens in any browser and needs no network.

    The page holds a sentence on every cluster, a scatter plot that can be zoomed, a card for every cluster with
    histograms and categories, the outliers as a table, how sure the clusters are, how the fit went and how it was made.
    """
    check_path("path", path)
    check_not_input(path, mapped_file(X))
    if selection is not None and not hasattr(selection, "ranking"):
        raise TypeError(f"selection must be what select_n_clusters returns, got {selection!r}")
    found = look(estimator, X, feature_names, row_names, scaler, categories)
    title = title or f"{count(len(found.centers), 'cluster')} in {count(len(found.values), 'row')}"
    page = _page(found, estimator, scaler, selection, title, call, notes)
    with replacing(path) as file:
        file.write(page.encode("utf-8", errors="replace"))  # a name may hold half a character
    return Path(path)


def _page(
    found: Clustering, estimator: Any, scaler: Any, selection: Any, title: str, call: str, notes: Sequence[str]
) -> str:
    shown = {"style": part("style.css"), "script": "".join(map(part, ("geometry.js", "picture.js", "report.js")))}
    sums = {name: hashlib.sha256(content.encode()).digest() for name, content in shown.items()}
    # What a Content-Security-Policy knows an element by: nothing else may run.
    shown |= {f"{name}_hash": "sha256-" + base64.b64encode(digest).decode() for name, digest in sums.items()}
    outliers, sentences = sections.outliers(found), found.description.sentences()
    title_of_outliers = "Rows of least weight" if found.rows.outlier is None else "Outliers"
    n_drawn = len(base64.b64decode((data := drawing(found, scaler))["outliers"]))
    sample = f"Of {count(len(found.values), 'row')} a sample of {count(n_drawn, 'row')} is drawn, outliers first. "
    sizes = [count(cluster.n_rows, "row") for cluster in found.description]
    about: dict[str, tuple[Any, ...]] = dict.fromkeys(("glossary", "clusters", "how_sure", "columns"), (found,))
    about |= dict.fromkeys(("lead", "tiles", "remarks"), (found, estimator)) | {"how_many": (found, selection)}
    about |= dict.fromkeys(("fit_facts", "convergence"), (estimator,)) | {"made_by": (estimator, call)}
    about |= {"data_facts": (found, scaler, notes)}
    return Template(part("page.html")).substitute(
        **shown | {name: getattr(sections, name)(*given) for name, given in about.items()},
        **{"data": embedded(data), "title": text(title), "drawn": "" if n_drawn == len(found.values) else sample},
        sentences="".join(f"<li>{swatch(k)} <bdi>{text(words)}</bdi></li>" for k, words in enumerate(sentences)),
        legend="".join(fragment("legend", cluster=k, swatch=swatch(k), rows=rows) for k, rows in enumerate(sizes)),
        outliers=fragment("outliers", title=title_of_outliers, content=outliers) if outliers else "",
        outliers_link='<a href="#outliers">Outliers</a>' if outliers else "",
    )


def drawing(found: Clustering, scaler: Any) -> dict[str, Any]:
    """What the page's script needs to draw."""
    outliers = np.zeros(len(found.values), dtype=bool) if found.rows.outlier is None else found.rows.outlier
    drawn = drawn_rows(outliers, np.zeros((len(found.values), 2)), MAX_ROWS)
    names, slopes, digits = found.names, _slopes(found, scaler), found.digits
    chosen, held, centers = np.sort(found.telling[:MAX_COLUMNS]), found.values[drawn], found.centers
    columns = [_packed("column", names[j], held[:, j], centers[:, j], slopes[j], digits[j]) for j in chosen]
    view = [0, 1]
    if found.values.shape[1] == 1:
        columns += [_packed("height", "(height means nothing)", heights(len(drawn)), np.full(len(centers), 0.5), 1e-9)]
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


def _packed(kind: str, name: str, values: Array, centers: Array, slope: Any, decimals: Any = None) -> dict[str, Any]:
    """Values as float32 around their middle, so that no digit is spent on what all have in common."""
    # The slope is that of what the estimator saw, by these values: there distances are what they seem.
    middle = float(np.nanmedian(values)) if np.any(~np.isnan(values)) else 0.0
    packed = _base64(np.clip(values - middle, -_FARTHEST, _FARTHEST), "<f4")
    column = {"kind": kind, "name": shortened(name, 80), "middle": middle, "values": packed}
    return column | {"centers": centers.tolist(), "slope": slope, "decimals": decimals}


def _slopes(found: Clustering, scaler: Any) -> list[float | None]:
    """How much the scaler stretches each of the p columns; None if it bends them."""
    if scaler is None:
        return [1.0] * found.values.shape[1]
    low, high = quantile(found.values, 0, 1)
    points = np.array([low, low + (high - low) / 3, high])
    with warnings.catch_warnings(action="ignore", category=UserWarning), np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.asarray(scaler.transform(points.copy()), dtype=float)  # of three rows without names of columns
        first, second = np.where(high > low, np.diff(scaled, axis=0) / np.diff(points, axis=0), 1.0)  # 1 if constant
    return first.tolist() if np.allclose(first, second, rtol=1e-6) else [None] * found.values.shape[1]


def _clearest_pair(found: Clustering, drawn: Array) -> tuple[int, int] | None:
    """The two columns in which the nearest centre is most often the right one, if that is often enough."""
    if len(rows := drawn[found.rows.core[drawn]]) == 0:
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
