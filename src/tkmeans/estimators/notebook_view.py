"""What a notebook shows of an estimator: scikit-learn's diagram, and below it the fit."""

from collections.abc import Iterator
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr

from tkmeans.sources.base import to_numpy

_CLUSTERS, _FEATURES = 20, 6  # the most that are shown


def mimebundle(estimator: Any, **kwargs: Any) -> dict[str, str]:  # noqa: ARG001
    """What Jupyter asks for; scikit-learn 1.6 would give it the diagram alone."""
    html = {"text/html": html_repr(estimator)} if get_config()["display"] == "diagram" else {}
    return {"text/plain": repr(estimator)} | html


def html_repr(estimator: Any) -> str:
    """The diagram of the parameters and, of a fitted estimator, its clusters, outliers and agreement."""
    diagram: str = estimator_html_repr(estimator)
    if not hasattr(estimator, "_fitted_model"):
        return diagram
    centers = to_numpy(estimator.cluster_centers_)
    K, p = centers.shape
    labels, sizes = getattr(estimator, "labels_", None), [""] * K
    shares = getattr(estimator, "cluster_weights_", getattr(estimator, "weights_", [np.nan] * K))
    if labels is not None and not hasattr(labels, "__dask_graph__"):  # dask would have to compute them
        counts = np.bincount(to_numpy(labels), minlength=K)
        sizes, shares = [f"{count:,}" for count in counts], counts / len(labels)
    names = getattr(estimator, "feature_names_in_", [f"feature {j}" for j in range(p)])
    table = [["cluster", "rows", "share", *(f"centre: {name}" for name in names[:_FEATURES])]]
    for k, center in enumerate(centers[:_CLUSTERS, :_FEATURES]):
        table.append([str(k), sizes[k], _percent(shares[k]), *(f"{value:.4g}" for value in center)])
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in table)
    page = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    text = "".join(f"{sentence}. " for sentence in _sentences(estimator, K, p))
    return diagram + page.substitute(text=text, rows="\n".join(f"<tr>{row}</tr>" for row in rows))


def _sentences(estimator: Any, K: int, p: int) -> Iterator[str]:
    shown = f", of which the table shows {min(K, _CLUSTERS)}, with {min(p, _FEATURES)} of {p} features"
    yield f"{K} cluster{'s' * (K > 1)}{shown if K > _CLUSTERS or p > _FEATURES else ''}"
    distances = getattr(estimator, "_training_distances", None)
    if getattr(estimator, "noise_weight_", 0.0) > 0:
        yield f"{_percent(estimator.noise_weight_)} of the rows are noise"
    elif distances is not None:
        share = np.sum(distances.mass[distances.d2 > estimator._strays(0.5).threshold]) / np.sum(distances.mass)
        yield f"{_percent(share)} of the rows are outliers" if share else "No row is an outlier"
    if hasattr(estimator, "agreement_"):
        yield f"{_percent(estimator.agreement_, 0)} of independent searches found these clusters"
    if not getattr(estimator, "converged_", True):
        yield "The fit stopped before it converged"


def _percent(share: float, digits: int = 1) -> str:
    return "" if np.isnan(share) else f"{100 * share:.{digits}f} %"
