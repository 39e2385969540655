"""The page of the report, put together from its sections and written to a file."""

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from tkmeans.atomic import check_not_input, replacing
from tkmeans.docstrings import documented
from tkmeans.estimators.validation import check_path
from tkmeans.report import sections
from tkmeans.report.clustering import Clustering, look
from tkmeans.report.markup import count, embedded, fragment, part, swatch, text
from tkmeans.report.scatter_data import drawing


@documented(returns="path : Path\n    Where the page is.")
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
) -> Path:
    """Write what was found as one HTML file, which opens in any browser and needs no network.

    The page holds a sentence on every cluster, a scatter plot that can be zoomed, a card for every cluster with
    histograms and categories, the outliers as a table, how sure the clusters are, how the fit went and how it was made.

    Parameters
    ----------
    path : str or path-like
        The file. It is there whole or not at all.
    estimator : fitted clusterer
        One of ours, or any with `predict` and `cluster_centers_` or `means_`; what it cannot tell is left out.
    X : array-like of shape (n_samples, n_features)
        The rows, in your units. NaN marks a missing value.
    feature_names, row_names : sequences of str, default=None
        Names of the columns and of the rows; those of a data frame are known.
    scaler, selection : fitted transformer and Selection, default=None
        The scikit-learn scaler on whose output the estimator was fitted, and how the number of clusters was chosen.
    categories : mapping of str to array-like, default=None
        Columns of text that describe the clusters, by name.
    title, call : str, default=""
        The heading of the page, and what made this fit, such as a command; by default the estimator's own words.

    Examples
    --------
    >>> import tempfile
    >>> from tkmeans import TKMeans, write_report
    >>> from tkmeans.datasets import make_contaminated
    >>> X, _ = make_contaminated(n_samples=200, n_clusters=3, random_state=0)
    >>> model = TKMeans(n_clusters=3, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_report(f"{folder}/clusters.html", model, X, feature_names=["height", "weight"])
    ...     page.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    check_path("path", path)
    check_not_input(path, getattr(X, "filename", None))  # that an array is mapped to
    if selection is not None and not hasattr(selection, "ranking"):
        raise TypeError(f"selection must be what select_n_clusters returns, got {selection!r}")
    found = look(estimator, X, feature_names, row_names, scaler, categories)
    title = title or f"{count(len(found.centers), 'cluster')} in {count(len(found.values), 'row')}"
    page = _page(found, estimator, scaler, selection, title, call)
    with replacing(path) as file:
        file.write(page.encode("utf-8", errors="replace"))  # a name may hold half a character
    return Path(path)


def _page(found: Clustering, estimator: Any, scaler: Any, selection: Any, title: str, call: str) -> str:
    style, script = part("style.css"), "".join(map(part, ("geometry.js", "picture.js", "report.js")))
    outliers, sentences = sections.outliers(found), found.description.sentences()
    title_of_outliers = "Rows of least weight" if found.rows.outlier is None else "Outliers"
    n_drawn = len(base64.b64decode((data := drawing(found, scaler))["outliers"]))
    sample = f"Of {count(len(found.values), 'row')} a sample of {count(n_drawn, 'row')} is drawn, outliers first. "
    sizes = [count(cluster.n_rows, "row") for cluster in found.description]
    about: dict[str, tuple[Any, ...]] = dict.fromkeys(("glossary", "clusters", "how_sure", "columns"), (found,))
    about |= dict.fromkeys(("lead", "tiles", "remarks"), (found, estimator)) | {"how_many": (found, selection)}
    about |= dict.fromkeys(("fit_facts", "convergence"), (estimator,)) | {"made_by": (estimator, call)}
    about |= {"data_facts": (found, scaler)}
    return Template(part("page.html")).substitute(
        **{"style": style, "style_hash": _hash(style), "script": script, "script_hash": _hash(script)},
        **{name: getattr(sections, name)(*given) for name, given in about.items()},
        **{"data": embedded(data), "title": text(title), "drawn": "" if n_drawn == len(found.values) else sample},
        sentences="".join(f"<li>{swatch(k)} <bdi>{text(words)}</bdi></li>" for k, words in enumerate(sentences)),
        legend="".join(fragment("legend", cluster=k, swatch=swatch(k), rows=rows) for k, rows in enumerate(sizes)),
        outliers=fragment("outliers", title=title_of_outliers, content=outliers) if outliers else "",
        outliers_link='<a href="#outliers">Outliers</a>' if outliers else "",
    )


def _hash(content: str) -> str:
    """What a Content-Security-Policy knows an element by: nothing else may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
