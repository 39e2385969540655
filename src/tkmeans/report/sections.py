"""Sections of the page, as HTML: in short, clusters, outliers, columns, how sure, the data, the fit, how it was made.

One that has nothing to say is empty.
"""

from typing import Any

import numpy as np

from tkmeans.plots.diagnostic_displays import criterion_title, objective_name
from tkmeans.report import markup
from tkmeans.report.clustering import Clustering, quantiles
from tkmeans.report.markup import cell, count, facts, fragment, grouped, named, number, percent, swatch, tag, text
from tkmeans.stats import Array
from tkmeans.versions import versions

_CARD_COLUMNS = 6  # told on the card of a cluster
_EXAMPLES = 3  # typical rows, and as many least typical ones
_FEW_CLUSTERS = 4  # whose examples are unfolded
_TABLE_COLUMNS = 40
_LISTED_COLUMNS = 200
_LISTED_ROWS = 500
_LISTED_VALUES = 8
_SURE, _LIKELY = 0.95, 0.7

_CRITERIA = {
    "icl": ", which weighs how well the clusters describe the rows against how many they are and how much they overlap",
    "bic": ", which weighs how well the clusters describe the rows against how many they are",
    "stability": ", which asks whether every cluster comes back when the rows are drawn again",
}


# ---- the whole ---------------------------------------------------------------------------------


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
    chart = markup.line_chart(tried, getattr(selection, name), **names, label=label, marks=marks)
    return fragment("tried", **told, chart=chart)


def how_sure(found: Clustering) -> str:
    """How clearly rows belong to their clusters."""
    shares = sureness(found)
    if not shares or found.n_clusters == 1:
        return ""
    label = "; ".join(f"{percent(share)} {words}" for _, words, share in shares)
    keys = "".join(fragment("key", kind=kind, words=words, share=percent(share)) for kind, words, share in shares)
    whom = "Of the rows that are no outliers" if np.any(~found.core) else "Of all rows"
    bar = markup.shares_bar([(kind, share) for kind, _, share in shares], label)
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
    chart = markup.line_chart(np.arange(len(values)), values, x_name="iteration", y_name=name, label=label)
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


# ---- clusters, outliers and columns ------------------------------------------------------------


def clusters(found: Clustering) -> str:
    """A card for each cluster, and all centres in one table."""
    cards = "".join(_card(found, k) for k in range(found.n_clusters))
    return f'<div class="cards">{cards}</div>{_centers(found)}'


def outliers(found: Clustering) -> str:
    """The rows that fit nowhere, the farthest first, or those that are trusted least."""
    if found.outliers is not None:
        chosen, words = np.flatnonzero(found.outliers), fragment("far-rows")
        chosen = chosen[np.argsort(-found.distances[chosen], kind="stable")]
    elif found.weights is not None:
        chosen, words = np.argsort(found.weights, kind="stable")[:20], fragment("least-trusted")
    else:
        return ""
    if len(chosen) == 0:
        return fragment("no-rows")
    listed = chosen[:_LISTED_ROWS]
    if len(listed) < len(chosen):
        words += f" The {len(listed)} farthest of {count(len(chosen), 'row')} are listed."
    return fragment("listed-rows", words=words, table=_row_table(found, listed))


def sureness(found: Clustering) -> list[tuple[str, str, float]]:
    """Shares of rows by how sure their cluster is: (class, words, share)."""
    certainty = found.certainty
    if certainty is None:
        return []
    sure = certainty[found.core] if found.core.any() else certainty
    shares = [float(np.mean(sure >= _SURE)), float(np.mean((sure >= _LIKELY) & (sure < _SURE)))]
    return [
        ("sure", f"sure: at least {percent(_SURE)} probable", shares[0]),
        ("likely", f"likely: {percent(_LIKELY)} to {percent(_SURE)}", shares[1]),
        ("open", f"open: below {percent(_LIKELY)}, another cluster is close", max(0.0, 1 - sum(shares))),
    ]


def columns(found: Clustering) -> str:
    """Every column: what is missing, and the range."""
    shown = found.values[:, :_LISTED_COLUMNS]
    missing, ranges = np.isnan(shown).mean(axis=0), quantiles(shown, [0, 0.5, 1])
    rows = [
        [
            tag("th", named(found.names[j]), scope="row"),
            _td(percent(float(missing[j])), missing[j]),
            *(_td(cell(q, found.digits[j]), q) for q in ranges[:, j]),
        ]
        for j in range(shown.shape[1])
    ]
    all_listed = found.n_columns <= _LISTED_COLUMNS
    note = "" if all_listed else f"<p>The first {_LISTED_COLUMNS} of {count(found.n_columns, 'column')}.</p>"
    header = [_heading(name) for name in ("Column", "Missing", "Least", "Median", "Largest")]
    return note + markup.table(header, rows, label="Columns of the data", kind="sortable")


def _card(found: Clustering, k: int) -> str:
    parts = {"cluster": k, "swatch": swatch(k), "size": _size(found, k)}
    if found.sizes[k] == 0:
        return fragment("card", **parts, content="")
    all_fit = found.n_columns <= _CARD_COLUMNS
    told = np.sort(found.telling) if all_fit else np.argsort(-np.abs(found.apart[k]))[:_CARD_COLUMNS]
    profile = fragment("profile", rows="".join(_profile_row(found, k, j) for j in told))
    more = f'<p class="note">The {len(told)} columns that set it apart most, of {found.n_columns}.</p>'
    return fragment("card", **parts, content=profile + ("" if all_fit else more) + _examples(found, k, told))


def _size(found: Clustering, k: int) -> str:
    words = f"<b>{count(int(found.sizes[k]), 'row')}</b> ({percent(found.sizes[k] / max(1, found.filled.sum()))})"
    strays = int(np.sum((found.labels == k) & ~found.core))
    if strays:
        words += f", and {count(strays, 'outlier')} nearest to it"
    if found.probabilities is None or found.n_clusters == 1 or found.sizes[k] == 0:
        return words + "."
    mean = found.probabilities[(found.labels == k) & found.core].mean(axis=0)
    words += f". Its rows belong here with {percent(float(mean[k]))} probability on average"
    mean[k] = -1
    rival = int(mean.argmax())
    return words + (f"; the closest rival is cluster {rival}." if mean[rival] >= 0.001 else ".")


def _profile_row(found: Clustering, k: int, j: int) -> str:
    low, usual, high = found.overall[:, j]
    center, spread = found.centers[k, j], found.spreads[k, j]
    digits = 1 if found.digits[j] == 0 else found.digits[j]  # a centre of whole numbers is not whole
    return fragment(
        "profile-row",
        column=named(found.names[j]),
        strip=markup.range_strip(low, high, usual, center, spread, k),
        center=cell(center, digits),
        around="" if np.isnan(spread) else f' <span class="faint">± {cell(spread, digits)}</span>',
        words=_words(found.apart[k, j]),
    )


def _words(apart: float) -> str:
    """Where a centre lies among all rows; `apart` is a share of the range of nine rows in ten."""
    size = "" if abs(apart) < 0.35 else "very "
    return "usual" if abs(apart) < 0.1 else f"{size}{'high' if apart > 0 else 'low'}"


def _examples(found: Clustering, k: int, told: Array) -> str:
    header = [tag("th", name, scope="col") for name in ("Row", *(named(found.names[j]) for j in told))]

    def listed(rows: Array, label: str) -> str:
        names = (tag("th", _pointer(found, i), scope="row") for i in rows)
        cells = ([name, *(_value(found, i, j) for j in told)] for name, i in zip(names, rows, strict=True))
        return markup.table(header, cells, label=f"{label} of cluster {k}")

    typical, rim = found.typical(k, _EXAMPLES)
    least = f"<h4>Least typical rows that still belong</h4>{listed(rim, 'Least typical rows')}" if len(rim) else ""
    unfolded = " open" if found.n_clusters <= _FEW_CLUSTERS else ""
    return fragment("examples", unfolded=unfolded, typical=listed(typical, "Typical rows"), rim=least)


def _centers(found: Clustering) -> str:
    told = np.sort(found.telling[:_TABLE_COLUMNS])
    header = [_heading(name) for name in ("Cluster", "Rows", *(named(found.names[j]) for j in told))]
    rows = []
    for k in range(found.n_clusters):
        cells = [tag("th", f"{swatch(k)} {k}", scope="row", data_v=k), _td(f"{found.sizes[k]}", float(found.sizes[k]))]
        for j in told:
            level = int(np.clip(np.round(5 * found.apart[k, j]), -3, 3))
            tint = f"low{-level}" if level < 0 else f"high{level}" if level else None
            value = found.centers[k, j]
            cells.append(tag("td", cell(value, found.digits[j]), data_v=_bare(value), class_=tint))
        rows.append(cells)
    note = "" if len(told) == found.n_columns else f" (the {len(told)} columns that tell clusters apart best)"
    unfolded = " open" if len(told) <= _CARD_COLUMNS else ""
    centers = markup.table(header, rows, label="Centres of all clusters", kind="sortable centers")
    return fragment("centers", unfolded=unfolded, note=note, table=centers)


def _row_table(found: Clustering, rows: Array) -> str:
    told = np.sort(found.telling[:_LISTED_VALUES])
    known = ("Row", "Cluster", "How far", "Stands out in", *(["p-value"] if found.pvalues is not None else []))
    header = [_heading(name) for name in (*known, *(named(found.names[j]) for j in told))]
    body = []
    for i in rows:
        k = int(found.labels[i])
        times = found.distances[i] / found.usual_distances[k] if found.usual_distances[k] > 0 else np.nan
        cells = [
            tag("th", _pointer(found, i), scope="row", data_v=found.row_name(i)),
            tag("td", f"{swatch(k)} {k}", data_v=k),
            _td(f"{number(times, 2)} ×" if times < 100 else f"{number(float(f'{times:.2g}'), 6)} ×", times),
            tag("td", _reason(found, i)),
        ]
        if found.pvalues is not None:
            cells.append(_td(number(found.pvalues[i], 2), found.pvalues[i]))
        body.append(cells + [_value(found, i, j) for j in told])
    return markup.table(header, body, label="Rows that stand out", kind="sortable tall")


def _reason(found: Clustering, i: int) -> str:
    """The column that makes most of the row's distance, its value, and what its cluster has."""
    k = found.labels[i]
    away = np.square(found.inputs[i] - found.input_centers[k])
    if np.isnan(away).all():
        return '<span class="missing">all values missing</span>'
    j = int(np.nanargmax(away))
    value, expected = (cell(x, found.digits[j]) for x in (found.values[i, j], found.centers[k, j]))
    return fragment("reason", column=named(found.names[j]), value=value, expected=expected)


def _pointer(found: Clustering, i: int) -> str:
    """The name of a row, as a button that shows it in the picture."""
    return fragment("pointer", row=int(i), name=named(found.row_name(i)))


def _value(found: Clustering, i: int, j: int) -> str:
    value = found.values[i, j]
    return _td(cell(value, found.digits[j]), value)


def _td(content: str, value: float) -> str:
    return f'<td class="number" data-v="{_bare(value)}">{content}</td>'


def _bare(value: float) -> str:
    """A number for a script to sort by."""
    return "" if np.isnan(value) else repr(float(value))


def _heading(name: str) -> str:
    return f'<th scope="col"><button type="button">{name}</button></th>'
