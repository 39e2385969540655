"""Sections of the page on the whole: in short, how sure, the data, the fit, how it was made."""

from typing import Any

import numpy as np

from tkmeans.plots.diagnostic_displays import criterion_title, objective_name
from tkmeans.report.charts import line_chart, shares_bar
from tkmeans.report.cluster_sections import sureness
from tkmeans.report.clustering import Clustering
from tkmeans.report.markup import count, facts, fragment, grouped, named, number, percent, text
from tkmeans.versions import versions

_CRITERIA = {
    "icl": ", which weighs how well the clusters describe the rows against how many they are and how much they overlap",
    "bic": ", which weighs how well the clusters describe the rows against how many they are",
    "stability": ", which asks whether every cluster comes back when the rows are drawn again",
}


def lead(found: Clustering, method: str) -> str:
    """The answer in a sentence or two."""
    told = {"rows": count(found.n_rows, "row"), "columns": count(found.n_columns, "column")}
    words = fragment("lead", **told, clusters=count(found.n_clusters, "cluster"), method=text(method))
    if found.outliers is None:
        return words
    strays = int(found.outliers.sum())
    if strays == 0:
        return words + fragment("no-outliers")
    fit = "fits none of them: an outlier" if strays == 1 else "fit none of them: the outliers"
    return words + fragment("some-outliers", rows=count(strays, "row"), share=percent(strays / found.n_rows), fit=fit)


def tiles(found: Clustering) -> str:
    """The figures to remember."""
    shown = [
        (grouped(found.n_rows), "rows"),
        (str(found.n_columns), "column" if found.n_columns == 1 else "columns"),
        (str(found.n_clusters), "cluster" if found.n_clusters == 1 else "clusters"),
    ]
    if found.outliers is not None:
        strays = int(found.outliers.sum())
        shown.append((grouped(strays), "outlier" if strays == 1 else "outliers"))
    shares = sureness(found)
    if shares and found.n_clusters > 1:
        whom = "of the other rows" if np.any(~found.core) else "of the rows"
        shown.append((percent(shares[0][2]), f"{whom} surely in their cluster"))
    if missing := float(np.isnan(found.values).mean()):
        shown.append((percent(missing), "of the values missing"))
    return "".join(f"<div><dt>{what}</dt><dd>{value}</dd></div>" for value, what in shown)


def remarks(found: Clustering, estimator: Any) -> str:
    """What a reader should be warned of."""
    heard = list(found.remarks)
    if getattr(estimator, "converged_", True) is False:
        heard.append(f"The fit did not settle within {estimator.n_iter_} iterations: the clusters may still be moving.")
    if blank := int(np.isnan(found.values).all(axis=1).sum()):
        heard.append(f"{count(blank, 'row')} without a single value: nothing tells where they belong.")
    if empty := int(np.sum(found.sizes == 0)):
        heard.append(f"{count(empty, 'cluster')} without any row: there may be fewer than were asked for.")
    return "".join(f'<p class="remark" role="note">{text(words)}</p>' for words in heard)


def glossary(found: Clustering) -> str:
    """The words of the page, for a reader who has never met them."""
    known = [name for name in ("outliers", "pvalues", "probabilities") if getattr(found, name) is not None]
    return fragment("words") + "".join(fragment(f"words-{name}") for name in known)


def how_many(found: Clustering, selection: Any) -> str:
    """Where the number of clusters comes from."""
    if selection is None:
        return fragment("given", clusters=found.n_clusters)
    tried, name, best = np.asarray(selection.n_clusters), str(selection.criterion), int(selection.best)
    criterion, span = name.upper() if len(name) <= 3 else name, f"{tried.min()} to {tried.max()}"
    marks, following = [(float(best), "best", f"chosen: {best}")], ""
    if (runner_up := getattr(selection, "runner_up", None)) is not None:
        following = f" and {int(runner_up)} comes next"
        marks.append((float(runner_up), "second", f"runner-up: {int(runner_up)}"))
    names = {"x_name": "number of clusters", "y_name": criterion_title(name)}
    label = f"{criterion} for {span} clusters; best at {best}"
    told = {"span": span, "best": best, "next": following, "criterion": text(criterion)}
    told |= {"numbers": count(len(tried), "number"), "meaning": _CRITERIA.get(name, "")}
    chart = line_chart(tried, getattr(selection, name), **names, label=label, marks=marks)
    return fragment("tried", **told, chart=chart)


def how_sure(found: Clustering) -> str:
    """How clearly rows belong to their clusters."""
    shares = sureness(found)
    if not shares or found.n_clusters == 1:
        return ""
    label = "; ".join(f"{percent(share)} {words}" for _, words, share in shares)
    keys = "".join(fragment("key", kind=kind, words=words, share=percent(share)) for kind, words, share in shares)
    whom = "Of the rows that are no outliers" if np.any(~found.core) else "Of all rows"
    bar = shares_bar([(kind, share) for kind, _, share in shares], label)
    return fragment("sure", whom=whom, bar=bar, keys=keys)


def data_facts(found: Clustering, scaler: Any) -> str:
    """What was clustered."""
    missing, told = np.isnan(found.values), [("Rows", count(found.n_rows, "row"))]
    gaps = f"{percent(float(missing.mean()))} of all values, in {count(int(missing.any(axis=1).sum()), 'row')}; "
    gaps += "nothing was filled in: a row counts with the values it has"
    told.append(("Columns", count(found.n_columns, "column")))
    told.append(("Missing values", gaps if missing.any() else "none"))
    told.append(("Scaling", "none: columns were used in their own units" if scaler is None else _scaling(scaler)))
    if found.row_names is None:
        told.append(("Row numbers", "begin with 0"))
    return facts(told)


def _scaling(scaler: Any) -> str:
    words = {
        "RobustScaler": "every column by its median and the range of its middle half, which outliers do not change",
        "StandardScaler": "every column by its mean and standard deviation",
        "MinMaxScaler": "every column to the range from its least to its largest value",
    }.get(type(scaler).__name__)
    name = f"<code>{text(type(scaler).__name__)}</code>"
    return (f"{words} ({name})" if words else name) + "; this page shows the values as they were"


def fit_facts(estimator: Any) -> str:
    """What was estimated, with what it means."""
    told = []
    if hasattr(estimator, "n_iter_"):
        settled = ", then nothing moved any more" if getattr(estimator, "converged_", False) else ""
        told.append(("Iterations", f"{estimator.n_iter_}{settled}"))
    if hasattr(estimator, "lower_bound_"):
        told.append((objective_name(estimator).capitalize(), number(float(estimator.lower_bound_), 6)))
    if hasattr(estimator, "inertia_"):
        told.append(("Sum of squared distances", number(float(estimator.inertia_), 6)))
    if hasattr(estimator, "dof_"):
        dof = np.atleast_1d(estimator.dof_).astype(float)
        tails = ("heavy-tails", "heavier-tails", "light-tails")[np.digitize(np.min(dof), [3, 30])]
        values = ", ".join(number(value, 3) for value in dof[:12]) + (", …" if len(dof) > 12 else "")
        told.append(("Tail parameter ν", f"{values}: {fragment(tails)}"))
    if hasattr(estimator, "scale_"):
        told.append(("Width of a cluster √α", f"{number(float(np.sqrt(estimator.scale_)))}, the same for all clusters"))
    return facts(told)


def convergence(estimator: Any) -> str:
    """The objective over the iterations."""
    values, name = np.array(getattr(estimator, "lower_bounds_", ()), dtype=float), objective_name(estimator)
    if len(values) < 2:
        return ""
    label = f"The {name} rises from {values[0]:.6g} to {values[-1]:.6g} in {len(values) - 1} iterations"
    chart = line_chart(np.arange(len(values)), values, x_name="iteration", y_name=name, label=label)
    return fragment("convergence", name=name, chart=chart)


def made_by(estimator: Any, call: str) -> str:
    """The call, and the versions."""
    parameters = [
        (f"<code>{text(name)}</code>", f"<code>{named(repr(value))}</code>")
        for name, value in sorted(estimator.get_params(deep=False).items())
    ]
    software = [(text(name), text(value)) for name, value in versions().items() if value != "not installed"]
    call = text(call or f"{estimator!r}.fit(X)")
    return fragment("made", call=call, parameters=facts(parameters), software=facts(software))
