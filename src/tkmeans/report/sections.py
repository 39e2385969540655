"""Sections of the page, as HTML: what was found, how sure it is, and how it was made; empty without content."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tkmeans.cluster_descriptions import NOTABLE, Category, quantile
from tkmeans.plots import style
from tkmeans.plots.diagnostic_displays import criterion_title, objective_name
from tkmeans.report import markup
from tkmeans.report.clustering import Clustering
from tkmeans.report.markup import cell, count, facts, fragment, grouped, named, number, percent, swatch, tag, text
from tkmeans.row_answers import UNSURE
from tkmeans.stats import Array
from tkmeans.versions import versions

_CARD_COLUMNS = 6  # on the card of a cluster
_EXAMPLES = 3  # typical rows, and as many least typical ones
_FEW_CLUSTERS = 4  # whose examples are unfolded
_TABLE_COLUMNS, _LISTED_COLUMNS, _LISTED_ROWS, _LISTED_VALUES = 40, 200, 500, 8
_BINS = 24  # of a histogram
_SURE = 0.95


def lead(found: Clustering, estimator: Any) -> str:
    """The result in two sentences; the second is the command's."""
    n, p = found.values.shape
    facts = {"rows": count(n, "row"), "columns": count(p, "column"), "clusters": count(len(found.centers), "cluster")}
    sentence = found.rows.sentence(lambda cells: (_cell_name(found, *place) for place in cells))
    return fragment("lead", **facts, method=text(type(estimator).__name__), sentence=text(sentence))


def _cell_name(found: Clustering, i: int, j: int) -> str:
    return f"{found.names[j]} = {cell(found.values[i, j], found.digits[j])} ({_row_name(found, i)})"


def _row_name(found: Clustering, i: int) -> str:
    return f"row {i}" if found.row_names is None else found.row_names[i]


def tiles(found: Clustering, estimator: Any) -> str:
    """The figures to remember."""
    (n, p), rows, n_clusters = found.values.shape, found.rows, len(found.centers)
    counted = {"row": n, "column": p, "cluster": n_clusters}
    counted |= {} if rows.outlier is None else {"outlier": int(rows.outlier.sum())}
    shown = {f"{what}{'s' * (number != 1)}": grouped(number) for what, number in counted.items()}
    if rows.probability is not None and n_clusters > 1:
        shown["between clusters"] = grouped(rows.n_unsure)
    shares = {"of the values missing": float(np.isnan(found.values).mean()) or None}
    known = {"noise": "noise_weight_", "of the searches agree": "agreement_"}
    shares |= {what: getattr(estimator, attribute, None) for what, attribute in known.items()}
    shown |= {what: percent(float(share)) for what, share in shares.items() if share is not None}
    return "".join(f"<div><dt>{what}</dt><dd>{value}</dd></div>" for what, value in shown.items())


def remarks(found: Clustering, estimator: Any) -> str:
    """What a reader should be warned of."""
    heard = list(found.remarks)
    if getattr(estimator, "converged_", True) is False:
        heard.append(f"The fit did not settle within {estimator.n_iter_} iterations: the clusters may still be moving.")
    if blank := int(np.sum(~found.rows.known)):
        heard.append(f"{count(blank, 'row')} without a single value, and so without a cluster.")
    if empty := sum(cluster.n_rows == 0 for cluster in found.description):
        heard.append(f"{count(empty, 'cluster')} without any row: there may be fewer clusters than were asked for.")
    return "".join(f'<p class="remark" role="note">{text(words)}</p>' for words in heard)


def glossary(found: Clustering) -> str:
    """The words of the page, for a reader who has never met them."""
    known = [name for name in ("outlier", "pvalue", "probability") if getattr(found.rows, name) is not None]
    return fragment("words") + "".join(fragment(f"words-{name}") for name in known)


def how_many(found: Clustering, selection: Any) -> str:
    """Where the number of clusters comes from."""
    if selection is None:
        return fragment("given", clusters=len(found.centers))
    tried, name, best = np.asarray(selection.n_clusters), str(selection.criterion), int(selection.best)
    criterion, span = name.upper() if len(name) <= 3 else name, f"{tried.min()} to {tried.max()}"
    marks, following = [(float(best), "best", f"chosen: {best}")], ""
    if (runner_up := getattr(selection, "runner_up", None)) is not None:
        behind = f", {selection.margin:.1f} nats behind" if name != "stability" else ""
        following = f" and {int(runner_up)} comes next{behind}"
        marks.append((float(runner_up), "second", f"runner-up: {int(runner_up)}"))
    names = {"x_name": "number of clusters", "y_name": criterion_title(name)}
    names["label"] = f"{criterion} for {span} clusters; best at {best}"
    own = selection.shapes == selection.best_shape
    chart = markup.line_chart(tried[own], selection.values[own], **names, marks=marks)
    words = {"criterion": text(criterion), "meaning": fragment(f"criterion-{name}"), "span": span, "next": following}
    return fragment("tried", **words, numbers=count(int(np.sum(own)), "number"), best=best, chart=chart)


def how_sure(found: Clustering) -> str:
    """How clearly rows belong to their clusters."""
    if found.rows.probability is None or len(found.centers) == 1 or not np.any(found.rows.core):
        return ""
    sure = found.rows.probability[found.rows.core]  # outliers are far from all clusters, not between them
    words = {"sure": f"clear: probability at least {_SURE}", "likely": f"likely: {UNSURE} to {_SURE}"}
    words["open"] = f"between clusters: below {UNSURE}"
    rows = sure >= _SURE, (sure >= UNSURE) & (sure < _SURE), sure < UNSURE
    shares = {kind: float(np.mean(own)) for kind, own in zip(words, rows, strict=True)}
    keys = [fragment("key", kind=kind, words=words[kind], share=percent(shares[kind])) for kind in words]
    label = "; ".join(f"{percent(shares[kind])} {words[kind]}" for kind in words)
    return fragment("sure", bar=markup.shares_bar(shares, label), keys="".join(keys))


def data_facts(found: Clustering, scaler: Any, notes: Sequence[str] = ()) -> str:
    """What was clustered."""
    missing = np.isnan(found.values)
    gaps = f"{percent(float(missing.mean()))} of all values, in {count(int(missing.any(axis=1).sum()), 'row')}; "
    gaps += "nothing was filled in: a row counts with the values it has"
    rows = {"Rows": count(len(missing), "row"), "Columns": count(missing.shape[1], "column")}
    n_bad = 0 if found.rows.bad_cells is None else int(np.sum(found.rows.bad_cells))
    bad = f"; {count(n_bad, 'value')} far from all others of the column did not count in the clusters" * bool(n_bad)
    rows["Missing values"] = (gaps if missing.any() else "none") + bad
    rows["Scaling"] = fragment(f"scaled-by-{type(scaler).__name__}", name=text(type(scaler).__name__))
    rows |= {"Row numbers": "begin with 0"} if found.row_names is None else {}
    rows |= {"Notes": "".join(tag("p", text(note)) for note in notes)} if notes else {}
    return facts(rows.items())


def fit_facts(estimator: Any) -> str:
    """What was estimated, with what it means."""
    meanings: dict[str, tuple[str, Callable[[Any], str]]] = {
        "n_iter_": ("Iterations", lambda n: f"{n}" + ", converged" * bool(getattr(estimator, "converged_", False))),
        "agreement_": ("Agreement", lambda share: fragment("agreement", share=percent(float(share)))),
        "lower_bound_": (objective_name(estimator).capitalize(), lambda value: number(float(value), 6)),
        "inertia_": ("Sum of squared distances", lambda value: number(float(value), 6)),
        "dof_": ("Tail parameter ν", _tails),
        "scale_": ("Width of a cluster √α", lambda a: f"{number(float(np.sqrt(a)))}, the same for all clusters"),
        "noise_weight_": ("Noise", lambda share: fragment("noise", share=percent(float(share)))),
    }
    known = {name: getattr(estimator, name, None) for name in meanings}
    return facts((title, words(known[name])) for name, (title, words) in meanings.items() if known[name] is not None)


def _tails(dof: Any) -> str:
    dof = np.atleast_1d(dof).astype(float)
    values = ", ".join(number(value, 3) for value in dof[:12]) + (", …" if len(dof) > 12 else "")
    return f"{values}: " + fragment(("heavy-tails", "heavier-tails", "light-tails")[np.digitize(np.min(dof), [3, 30])])


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
    given = sorted(estimator.get_params(deep=False).items())
    parameters = [(f"<code>{text(name)}</code>", f"<code>{named(repr(value))}</code>") for name, value in given]
    software = [(text(name), text(value)) for name, value in versions().items() if value != "not installed"]
    call = text(call or f"{estimator!r}.fit(X)")
    return fragment("made", call=call, parameters=facts(parameters), software=facts(software))


def clusters(found: Clustering) -> str:
    """A card for each cluster, and all centres in one table."""
    return tag("div", "".join(_card(found, k) for k in range(len(found.centers))), class_="cards") + _centers(found)


def outliers(found: Clustering) -> str:
    """The rows that fit no cluster, the farthest first, or those that have the least weight."""
    if found.rows.outlier is not None:
        chosen, words = np.flatnonzero(found.rows.outlier), fragment("far-rows")
        chosen = chosen[np.argsort(-found.distances[chosen], kind="stable")]
    elif found.weights is not None:
        chosen, words = np.argsort(found.weights, kind="stable")[:20], fragment("least-trusted")
    else:
        return ""
    if len(chosen) == 0:
        return fragment("no-rows")
    cut = f" The {_LISTED_ROWS} farthest of {count(len(chosen), 'row')} are listed." * (len(chosen) > _LISTED_ROWS)
    return fragment("listed-rows", words=words + cut, table=_row_table(found, chosen[:_LISTED_ROWS]))


def columns(found: Clustering) -> str:
    """Every column: what is missing, and the range."""
    shown = found.values[:, :_LISTED_COLUMNS]
    missing, ranges = np.isnan(shown).mean(axis=0), quantile(shown, 0, 0.5, 1)
    rows = []
    for j, name in enumerate(found.names[:_LISTED_COLUMNS]):
        cells = [tag("th", named(name), scope="row"), _td(percent(float(missing[j])), missing[j])]
        rows.append(cells + [_td(cell(q, found.digits[j]), q) for q in ranges[:, j]])
    note = f"<p>The first {_LISTED_COLUMNS} of {count(len(found.names), 'column')}.</p>"
    header, note = ("Column", "Missing", "Least", "Median", "Largest"), note * (len(found.names) > _LISTED_COLUMNS)
    return note + markup.table(header, rows, label="Columns of the data", kind="sortable")


def _card(found: Clustering, k: int) -> str:
    cluster = found.description[k]
    name, _, words = cluster.sentence.partition(": ")
    words, share = text(words[:1].upper() + words[1:]), percent(cluster.share)
    parts = {"swatch": swatch(k), "name": name, "words": words, "share": share}
    if cluster.n_rows == 0:
        return fragment("card", **parts, sure="", content="")
    sure = "" if cluster.probability is None else f"; their mean probability is {percent(cluster.probability)}"
    shown, note = np.arange(len(found.names)), ""
    if len(shown) > _CARD_COLUMNS:
        note = f'<p class="note">The {_CARD_COLUMNS} columns that set it apart most, of {len(shown)}.</p>'
        shown = np.argsort(-np.abs(found.effects[k]), kind="stable")[:_CARD_COLUMNS]
    profile = fragment("profile", rows="".join(_profile_row(found, k, int(j)) for j in shown)) + note
    values = "".join(_category(category, k) for category in cluster.categories)
    categories = fragment("categories", rows=values) if values else ""
    return fragment("card", **parts, sure=sure, content=profile + categories + _examples(found, k, shown))


def _category(category: Category, k: int) -> str:
    shares = {"width": f"{100 * category.share:.1f}", "others": f"{100 * category.others:.1f}"}
    words = {"column": named(category.column), "value": named(category.value), "share": percent(category.share)}
    return fragment("category", **words, **shares, color=style.color(k), elsewhere=percent(category.others))


def _profile_row(found: Clustering, k: int, j: int) -> str:
    spread, trait = found.spreads[k, j], found.traits[k].get(found.names[j])
    digits = 1 if found.digits[j] == 0 else found.digits[j]  # a centre of whole numbers is not whole
    around = "" if np.isnan(spread) else f' <span class="faint">± {cell(spread, digits)}</span>'
    words = trait.level if trait else "usual"
    shown = {"column": named(found.names[j]), "center": cell(found.centers[k, j], digits), "around": around}
    return fragment("profile-row", **shown, histogram=_histogram(found, k, j), words=words)


def _histogram(found: Clustering, k: int, j: int) -> str:
    """The values of a column in a cluster, before those of all rows that are no outliers."""
    values, own = found.values[found.rows.core, j], found.rows.label[found.rows.core] == k
    low, high = quantile(values[:, None], 0.01, 0.99)[:, 0]
    if not high - low > 1e-9 * max(abs(low), abs(high)):  # too little for bars
        return ""
    paths = []
    for rows in (values, values[own]):
        heights = np.histogram(np.clip(rows[~np.isnan(rows)], low, high), _BINS, (low, high))[0]
        steps = (f"V{20 - 18 * height / max(1, heights.max()):.1f}h4" for height in heights)
        paths.append(f"M2 20{''.join(steps)}V20z")
    return fragment("histogram", all=paths[0], own=paths[1], color=style.color(k))


def _examples(found: Clustering, k: int, shown: Array) -> str:
    header, chosen, tables = ["Row", *(named(found.names[j]) for j in shown)], found.typical(k, _EXAMPLES), []
    for rows, label in zip(chosen, ("Typical rows", "Least typical rows"), strict=True):
        cells = ([_row_heading(found, i), *(_value(found, i, j) for j in shown)] for i in rows)
        tables.append(markup.table(header, cells, label=f"{label} of cluster {k}"))
    least = f"<h4>Least typical rows that still belong</h4>{tables[1]}" if len(chosen[1]) else ""
    unfolded = " open" if len(found.centers) <= _FEW_CLUSTERS else ""
    return fragment("examples", unfolded=unfolded, typical=tables[0], rim=least)


def _centers(found: Clustering) -> str:
    shown = np.sort(found.telling[:_TABLE_COLUMNS])
    header, rows = ["Cluster", "Rows", *(named(found.names[j]) for j in shown)], []
    for k, cluster in enumerate(found.description):
        rows.append([tag("th", f"{swatch(k)} {k}", scope="row", data_v=k), _td(f"{cluster.n_rows}", cluster.n_rows)])
        for j, value in zip(shown, found.centers[k, shown], strict=True):
            level = int(np.clip(found.effects[k, j] / NOTABLE, -3, 3))
            tint = f"low{-level}" if level < 0 else f"high{level}" if level else None
            rows[-1].append(_td(cell(value, found.digits[j]), value, tint))
    note = "" if len(shown) == len(found.names) else f" (the {len(shown)} columns that tell clusters apart best)"
    centers = markup.table(header, rows, label="Centres of all clusters", kind="sortable centers")
    return fragment("centers", unfolded=" open" if len(shown) <= _CARD_COLUMNS else "", note=note, table=centers)


def _row_table(found: Clustering, rows: Array) -> str:
    shown, pvalues = np.sort(found.telling[:_LISTED_VALUES]), found.rows.pvalue
    known = ("Row", "Cluster", "How far", "Stands out in", *(["p-value"] if pvalues is not None else []))
    header, body = [*known, *(named(found.names[j]) for j in shown)], []
    for i in rows:
        k = int(found.rows.label[i])
        times = found.distances[i] / found.usual_distances[k] if found.usual_distances[k] > 0 else np.nan
        far = number(times, 2) if times < 100 else number(float(f"{times:.2g}"), 6)
        cells = [_row_heading(found, i), tag("td", f"{swatch(k)} {k}", data_v=k)]
        cells += [_td(f"{far} ×", times), tag("td", _reason(found, i))]
        cells += [] if pvalues is None else [_td(number(pvalues[i], 2), pvalues[i])]
        body.append(cells + [_value(found, i, j) for j in shown])
    return markup.table(header, body, label="Rows that stand out", kind="sortable tall")


def _reason(found: Clustering, i: int) -> str:
    """The column in which a row is the most spreads from its centre, its value, and that of the centre."""
    k = found.rows.label[i]
    with np.errstate(over="ignore"):  # of the largest numbers
        away = np.abs(found.inputs[i] - found.input_centers[k]) / found.deviations[k]
    if np.isnan(away).all():
        return '<span class="missing">all values missing</span>'
    j = int(np.nanargmax(away))
    value, expected = (cell(x, found.digits[j]) for x in (found.values[i, j], found.centers[k, j]))
    return fragment("reason", column=named(found.names[j]), value=value, expected=expected)


def _row_heading(found: Clustering, i: int) -> str:
    """The name of a row, as a button that shows it in the picture."""
    name = _row_name(found, i)
    return tag("th", fragment("pointer", row=int(i), name=named(name)), scope="row", data_v=name)


def _value(found: Clustering, i: int, j: int) -> str:
    return _td(cell(found.values[i, j], found.digits[j]), found.values[i, j])


def _td(content: str, value: float, kind: str | None = "number") -> str:
    """A cell with the number that a script sorts it by."""
    return tag("td", content, class_=kind, data_v="" if np.isnan(value) else repr(float(value)))
