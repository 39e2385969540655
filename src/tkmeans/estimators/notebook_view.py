"""What a notebook shows of an estimator: scikit-learn's diagram, and below it the fit."""

from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr

from tkmeans.sources.base import to_numpy
from tkmeans.stats import Array

_CLUSTERS, _FEATURES = 20, 6  # the most that are shown


def html_repr(estimator: Any) -> str:
    """The diagram of the parameters and, of a fitted estimator, its clusters, outliers and agreement."""
    diagram: str = estimator_html_repr(estimator)
    return diagram + _fit(estimator) if hasattr(estimator, "_fitted_model") else diagram


def mimebundle(estimator: Any, **kwargs: Any) -> dict[str, str]:  # noqa: ARG001
    """What Jupyter asks for; scikit-learn 1.6 does not let `html_repr` take part."""
    html = {"text/html": html_repr(estimator)} if get_config()["display"] == "diagram" else {}
    return {"text/plain": repr(estimator)} | html


def _fit(estimator: Any) -> str:
    centers = to_numpy(estimator._fitted_model.params.centers)
    K, p = centers.shape
    sizes, shares = _sizes(estimator, K)
    names = getattr(estimator, "feature_names_in_", [f"feature {j}" for j in range(p)])[:_FEATURES]
    head = ["cluster", "rows", "share", *(f"centre: {name}" for name in names)]
    rows = [
        _row(f'<th scope="row">{k}</th>', sizes[k], _percent(shares[k]), *(f"{value:.4g}" for value in center))
        for k, center in enumerate(centers[:_CLUSTERS, :_FEATURES])
    ]
    more = [(K, _CLUSTERS, "clusters"), (p, _FEATURES, "features")]
    hidden = [f"{n - most} more {noun} not shown" for n, most, noun in more if n > most]
    page = Template(Path(__file__).with_suffix(".html").read_text(encoding="utf-8"))
    return page.substitute(
        summary=". ".join([f"{K} cluster{'s' * (K > 1)}", *_remarks(estimator)]),
        head="".join(f'<th scope="col">{escape(str(word))}</th>' for word in head),
        rows="\n".join(rows),
        hidden="; ".join(hidden),
    )


def _row(head: str, *cells: str) -> str:
    return f"<tr>{head}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f} %"


def _sizes(estimator: Any, K: int) -> tuple[list[str], Array]:
    """Rows in each cluster as text, and shares; where rows are not counted yet, the shares of the fit."""
    labels = getattr(estimator, "labels_", None)
    if labels is not None and not hasattr(labels, "__dask_graph__"):
        labels = to_numpy(labels)
        counts = np.bincount(labels[labels >= 0], minlength=K)
        return [f"{count:,}" for count in counts], counts / max(counts.sum(), 1)
    weights = getattr(estimator, "cluster_weights_", getattr(estimator, "weights_", np.full(K, np.nan)))
    return [""] * K, to_numpy(weights)


def _remarks(estimator: Any) -> list[str]:
    """What else there is to know of the fit, in a few words each."""
    said, distances = [], getattr(estimator, "_training_distances", None)
    if getattr(estimator, "noise_weight_", 0.0) > 0:
        said.append(f"{_percent(estimator.noise_weight_)} of the rows are noise")
    elif distances is not None:
        threshold = estimator._strays(0.5).threshold
        share = np.sum(distances.mass[distances.d2 > threshold]) / np.sum(distances.mass)
        said.append(f"{_percent(share)} of the rows are outliers" if share else "No row is an outlier")
    if hasattr(estimator, "agreement_"):
        said.append(f"{_percent(estimator.agreement_, 0)} of independent searches found these clusters")
    if not getattr(estimator, "converged_", True):
        said.append("The fit stopped before it converged")
    return said
