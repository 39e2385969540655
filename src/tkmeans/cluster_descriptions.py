"""Clusters in words: what sets each apart from the other rows, measured robustly and put into a sentence."""

import os
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from tkmeans.docstrings import documented
from tkmeans.estimators.validation import check_clusterer
from tkmeans.plots.projections import column_names
from tkmeans.row_answers import RowAnswers, answers
from tkmeans.sources.files import DataFile, open_table
from tkmeans.sources.number_checks import as_numbers, check_names
from tkmeans.stats import Array
from tkmeans.tables.table import CHUNK, one_line

SIGMA = 1.4826  # a median absolute deviation times this is a standard deviation, for Gaussian values
NOTABLE, _TRAITS = 1.0, 3  # the least effect that a sentence mentions, and the most columns
_MORE, _CATEGORIES = 0.2, 2  # by how much a value is more frequent than elsewhere to be mentioned, and the most values
_LEVELS = 50  # a column of text with more values describes no cluster
_ENOUGH = 10_000  # rows that a median is taken of
_NO_WORD = r"[\W\d]*|.|no|none|true|false"  # values that mean nothing without the name of their column
_DOUBTFUL = 0.9  # mean probability below which a sentence mentions it

# Words for more and less of what the last word of a name means, beside other words or alone; and units after it.
_LENGTHS = {"length": "long short", "duration": "long short", "width": "wide narrow", "depth": "deep shallow"}
_LENGTHS |= {"height": "tall short"}
_ALONE = {"mass": "heavy light", "weight": "heavy light", "age": "old young", "size": "large small"} | _LENGTHS
_ALONE |= {"area": "large small", "price": "expensive cheap", "speed": "fast slow"}
_STATISTICS = {"average", "avg", "mean", "median", "max", "maximum", "min", "minimum", "total", "sum", "std"}
_UNITS = {"mm", "cm", "m", "km", "g", "kg", "s", "ms", "h", "usd", "eur", "pct", "percent"}
_SPLIT = r"(?:[\s_-]|\.(?![0-9])|(?<![0-9])\.)+"  # words of a name; 2.5 is one
_LONG_NAME = 8  # words; of longer names nothing is left out
_BETWEEN = 0.25, 0.75  # of the other rows are in clusters below: neither high nor low


class Trait(NamedTuple):
    """How a column of numbers differs between a cluster and the other rows."""

    column: str
    effect: float  # difference of the medians in units of the spread within clusters; 0 between others
    median: float  # of the cluster
    others: float  # of all other rows, each at the median of its cluster
    words: str  # for a sentence
    gap: float = 0.0  # of a cluster between others: how far the nearest median is, in these units

    @property
    def level(self) -> str:
        """The effect in a word."""
        if self.gap:
            return "medium"
        if abs(self.effect) < NOTABLE:
            return "usual"
        return f"{'very ' * (abs(self.effect) >= 2 * NOTABLE)}{'high' if self.effect > 0 else 'low'}"


def _phrases(names: Sequence[str]) -> list[tuple[str, str, str]]:
    """Words for low, medium and high values of each column; a unit is left out if no other column is called alike."""
    split = [[word for word in re.split(_SPLIT, name, maxsplit=_LONG_NAME) if word] or [name] for name in names]
    alike = Counter(tuple(words[:n]) for words in split for n in range(1, len(words) + 1))
    found = []
    for words in split:
        short = words
        while 1 < len(short) <= _LONG_NAME and short[-1].casefold() in _UNITS:
            short = short[:-1]
        *rest, last = short if alike[tuple(short)] == 1 else words
        noun = [] if [word.casefold() for word in rest] == ["body"] else rest
        pairs = {} if _STATISTICS & {word.casefold() for word in rest} else _LENGTHS if noun else _ALONE
        more, less = pairs.get(last.casefold(), "high low").split()
        noun = noun if last.casefold() in pairs else [*rest, last]
        found.append((" ".join([less, *noun]), " ".join(["medium", *rest, last]), " ".join([more, *noun])))
    counted = Counter(high for *_, high in found)
    whole = [(f"low {name}", f"medium {name}", f"high {name}") for name in names]
    return [own if counted[own[2]] == 1 else whole[j] for j, own in enumerate(found)]


class Category(NamedTuple):
    """The most frequent value of a column of text in a cluster."""

    column: str
    value: str
    share: float  # of the cluster's rows
    others: float  # of all other rows

    def __str__(self) -> str:
        words = self.column if self.value == "yes" else self.value
        named = f"{self.column} {self.value}" if re.fullmatch(_NO_WORD, words, re.I) else words
        return f"{100 * self.share:.0f} % {named}"


@dataclass(frozen=True)
class ClusterDescription:
    """One cluster of a :class:`Description`."""

    cluster: int
    n_rows: int  # without outliers
    share: float  # of all rows that have a value
    n_outliers: int  # rows that are nearest to this cluster but flagged as outliers
    probability: float | None  # of this cluster for its rows, on average; None if the model does not tell
    typical_row: int | None  # the number of the most typical row, from 0
    traits: tuple[Trait, ...]  # all columns, the largest effect first
    categories: tuple[Category, ...]  # the most telling first
    medians: tuple[str, ...] = ()  # by which it differs from clusters that would have the same sentence

    @property
    def sentence(self) -> str:
        """The cluster in one sentence."""
        apart = ", ".join(trait.words for trait in self.traits[:_TRAITS] if trait.level != "usual")
        telling = [str(each) for each in self.categories if each.share >= 0.5 and each.share - each.others >= _MORE]
        parts = [apart or "no column sets it apart", ", ".join(telling[:_CATEGORIES]), ", ".join(self.medians)]
        if self.probability is not None and self.probability < _DOUBTFUL:
            parts.append(f"not clear-cut: {100 * self.probability:.0f} % probable on average")
        outliers = f" and {self.n_outliers} outlier{'s' * (self.n_outliers > 1)}" if self.n_outliers else ""
        words = one_line("; ".join(filter(None, parts))) if self.n_rows else "empty"
        return f"Cluster {self.cluster} ({self.n_rows} row{'s' * (self.n_rows != 1)}{outliers}): {words}"


class Description(tuple[ClusterDescription, ...]):
    """The clusters of a model in words; prints as one sentence for each.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans import TKMeans, describe
    >>> X = np.array([[0.0], [1], [2], [50], [51], [52], [53]])
    >>> found = describe(TKMeans(2, random_state=0).fit(X), X, feature_names=["age"])
    >>> found.sentences()
    ['Cluster 0 (4 rows): old', 'Cluster 1 (3 rows): young']
    >>> found.table()["age"]
    [51.5, 1.0]
    """

    def __repr__(self) -> str:
        return "\n".join(self.sentences())

    def _repr_html_(self) -> str:
        return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in self.sentences()) + "</ul>"

    @documented(returns="sentences : list of str\n    In the order of the clusters.")
    def sentences(self) -> list[str]:
        """Return one sentence for each cluster."""
        return [cluster.sentence for cluster in self]

    @documented(returns="records : list of dict\n    One for each cluster.")
    def records(self) -> list[dict[str, Any]]:
        """Return everything that was found, as plain values for JSON."""
        names = "traits", "categories"
        parts = ({name: [each._asdict() for each in getattr(cluster, name)] for name in names} for cluster in self)
        return [vars(each) | part | {"sentence": each.sentence} for each, part in zip(self, parts, strict=True)]

    @documented(returns="table : dict of str to list\n    The columns by name.")
    def table(self) -> dict[str, list[Any]]:
        """Return the facts as columns with a cell for each cluster, as ``pandas.DataFrame`` takes them.

        Where a column of the data has the name of a fact, or one of text that of a median, the kind comes before it.
        """
        facts = "cluster", "n_rows", "share", "n_outliers", "probability"
        table: dict[str, list[Any]] = {fact: [getattr(each, fact) for each in self] for fact in facts}
        for part, kind, cell in (("traits", "median", "median"), ("categories", "text", "value")):
            for each in zip(*(sorted(getattr(cluster, part)) for cluster in self), strict=True):
                name = each[0].column
                while name in table:
                    name = f"{kind} {name}"
                table[name] = [getattr(found, cell) for found in each]
        return table


@documented("described_*", returns="description")
def describe(
    model: Any, X: Any, *, feature_names: Sequence[str] | None = None, categories: Mapping[str, Any] | None = None
) -> Description:
    """Describe in words what sets the clusters of a fitted model apart.

    A column of numbers is compared by its median in the cluster and in the other rows, in units of the median absolute
    deviation within clusters, so that outliers have no influence; "medium" is a cluster with at least a quarter of the
    other rows on each side. A column of text is compared by the share of its most frequent value. Medians of very many
    rows are those of 10 000 rows, drawn at random.
    """
    check_clusterer("model", model, ("predict",))
    if categories is not None and not isinstance(categories, Mapping):
        raise TypeError(f"categories must be a mapping of names to columns of text, got {categories!r}")
    if issparse(X):
        raise TypeError("X is sparse, and describe looks at every value; pass X.toarray(), or some of its columns")
    steps = [step for _, step in model.steps] if hasattr(model, "steps") else [model]
    values, names, texts = _columns(steps[0], X, feature_names)
    check_names(names, "feature_names")
    texts |= {str(name): cells for name, cells in (categories or {}).items()}
    check_is_fitted(steps[-1])
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of known names, and what a fit has reported
        rows = answers(steps[-1], model[:-1].transform(values) if len(steps) > 1 else values, pvalues=False)
    n_centers = len(getattr(steps[-1], "cluster_centers_", getattr(steps[-1], "means_", ())))
    return described(rows._replace(known=~np.isnan(values).all(axis=1)), [*values.T], names, texts, n_centers)


def described(
    rows: RowAnswers, columns: Sequence[Array], names: Sequence[str], texts: Mapping[str, Any], n_clusters: int
) -> Description:
    """Describe clusters by columns of numbers and by columns of text."""
    texts = dict(texts)
    known = zip(names, (column[~np.isnan(column)] for column in columns), strict=True)
    begun = ((name, values) for name, values in known if {*values[:1000].tolist()} <= {0, 1})  # most columns end here
    yes_or_no = {name for name, values in begun if {*np.unique(values).tolist()} == {0, 1}}
    for j, name in enumerate(names):
        base, _, value = name.partition("=")  # of an indicator such as species=Gentoo
        if name in yes_or_no and base not in texts:
            called = f"{base} {value}" if value and re.fullmatch(_NO_WORD, value, re.I) else value or name
            texts[called] = np.where(np.isnan(columns[j]), "", np.where(columns[j] == 1, "yes", "no"))
    labels, known = rows.label, rows.known & (rows.label >= 0)
    core, n_known = rows.core & (labels >= 0), max(1, int(known.sum()))
    n_clusters = max(n_clusters, labels.max(initial=0) + 1)
    groups = [np.flatnonzero(core & (labels == k)) for k in range(n_clusters)]
    n_outliers = rows._replace(known=known).counts(n_clusters)[1]
    chosen = [_some(group) for group in groups]
    values = [np.column_stack([column[few] for column in columns]) for few in chosen]
    medians = np.array([quantile(of_cluster) for of_cluster in values])  # (K, p)
    seen = _some(np.flatnonzero(core))
    some, of = np.column_stack([column[seen] for column in columns]), labels[seen]
    away, width = np.abs(some - medians[of]), np.fmax.reduce(medians) - np.fmin.reduce(medians)
    mad = SIGMA * quantile(away)  # pooled; where that is 0, as in counts, the mean deviation takes its place
    spread = np.where(mad > 0, mad, np.nansum(away, axis=0) / max(1, len(away)))
    unknown = np.where(width > 0, width / 10, np.inf)  # of columns that are equal within clusters, or everywhere
    spread = np.where((spread > 0) & (spread < np.inf), spread, unknown)
    few = min(_LEVELS, max(2, len(labels) // 2))
    categories = {name: np.asarray(cells, dtype=object) for name, cells in texts.items()}
    if odd := [name for name, cells in categories.items() if cells.shape != labels.shape]:
        raise ValueError(f"categories must have one value for each of the {len(labels)} rows; {odd[0]!r} has not")
    shares = [_shares(name, cells, groups) for name, cells in categories.items() if len({*cells}) <= few]
    sure, found, phrases = rows.probability, [], _phrases(names)
    for k, group in enumerate(groups):
        others, gap = _others(k, medians, np.array([len(each) for each in groups]))
        gap = np.nan_to_num(np.where(gap >= NOTABLE * spread, gap / spread, 0.0))
        effects = np.where(gap > 0, 0.0, np.nan_to_num((medians[k] - others) / spread, posinf=0.0, neginf=0.0))
        side = np.where(gap > 0, 1, np.where(effects > 0, 2, 0)).tolist()
        words_of = [phrase[place] for phrase, place in zip(phrases, side, strict=True)]
        traits = map(Trait, names, effects.tolist(), medians[k].tolist(), others.tolist(), words_of, gap.tolist())
        away = np.abs(values[k] - medians[k]) / spread  # a missing value is as far away as can be
        typical = int(chosen[k][np.argmin(np.nan_to_num(away, nan=1e9).sum(axis=1))]) if len(group) else None
        probability = None if sure is None or not len(group) else float(sure[group].mean())
        apart = sorted((t for t in traits if t.column not in yes_or_no), key=lambda t: -max(abs(t.effect), t.gap))
        own = sorted((each[k] for each in shares), key=lambda each: each.others - each.share)
        counted = k, len(group), len(group) / n_known, int(n_outliers[k]), probability, typical
        found.append(ClusterDescription(*counted, tuple(apart), tuple(own)))
    words = [frozenset(re.split("[,;] ", re.sub(r"\d+ %", "", each.sentence.partition(": ")[2]))) for each in found]
    for alike in {*words}:  # whatever the order and the shares
        _tell_apart(found, [k for k, own in enumerate(words) if own == alike], names, medians, spread)
    return Description(found)


def _others(k: int, medians: Array, sizes: Array) -> tuple[Array, Array]:
    """The medians of all other rows, each at the median of its cluster; and how far the nearest one is, 0 at an end."""
    order = np.argsort(medians, axis=0)
    values = np.take_along_axis(medians, order, axis=0)
    mass = np.where((order == k) | np.isnan(values), 0, sizes[order])  # (K, p)
    until, total = np.cumsum(mass, axis=0), np.sum(mass, axis=0)
    ends = [np.argmax(2 * until >= total, axis=0), np.argmax(2 * until > total, axis=0)]
    low, high = np.take_along_axis(values, np.array(ends), axis=0) / 2
    below = np.sum(mass * (values < medians[k]), axis=0) / np.maximum(total, 1)
    nearest = np.min(np.where(mass > 0, np.abs(values - medians[k]), np.inf), axis=0)
    between = (_BETWEEN[0] <= below) & (below <= _BETWEEN[1])
    return np.where(total > 0, low + high, np.nan), np.where(between, nearest, 0.0)


def _tell_apart(found: list[Any], alike: list[int], names: Sequence[str], medians: Array, spread: Array) -> None:
    """Give clusters with the same words their medians in the column where these differ most."""
    j = int(np.argmax(reach := np.nan_to_num(np.ptp(medians[alike], axis=0) / spread)))
    if reach[j] > 0:
        own = medians[alike, j].tolist()
        digits = next((d for d in (6, 9, 12) if len({f"{m:.{d}g}" for m in own}) == len({*own})), 17)
        for k, value in zip(alike, own, strict=True):
            found[k] = replace(found[k], medians=(*found[k].medians, f"median {names[j]} {value:.{digits}g}"))
        for value in {*own}:  # the same here, so another column is next
            _tell_apart(found, [k for k in alike if medians[k, j] == value], names, medians, spread)


def _shares(name: str, cells: Array, groups: list[Array]) -> list[Category]:
    """The most frequent value in each group, with its share there and in all others."""
    missing = np.array([cell is None or cell == "" or cell != cell for cell in cells])
    values, codes = np.unique(np.where(missing, "", cells).astype(str), return_inverse=True)
    counts = np.array([np.bincount(codes[rows[~missing[rows]]], minlength=len(values)) for rows in groups])
    n, rest = np.array([[len(rows)] for rows in groups]), counts.sum(axis=0) - counts
    own, rest = counts / np.maximum(1, n), rest / np.maximum(1, n.sum() - n)
    return [Category(name, str(values[v]), float(own[k, v]), float(rest[k, v])) for k, v in enumerate(own.argmax(1))]


def _some(rows: Array) -> Array:
    """Some rows at random, but always the same, if there are very many: enough for a median."""
    return rows if len(rows) <= _ENOUGH else rows[np.random.default_rng(0).integers(len(rows), size=_ENOUGH)]


def quantile(rows: Array, *levels: float) -> Array:
    """The median, or quantiles, of each column over the values that are there; NaN where there is none."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        if levels:
            return np.nanquantile(rows, levels, axis=0)
        return (np.nanmedian if np.isnan(np.sum(rows)) else np.median)(rows, axis=0)


def _columns(first: Any, X: Any, names: Sequence[str] | None) -> tuple[Array, list[str], dict[str, Array]]:
    """The numbers that the first step was fitted on, their names, and the text of the other columns."""
    fitted = [str(name) for name in getattr(first, "feature_names_in_", ())]
    texts: dict[str, Array] = {}
    if isinstance(X, (str, os.PathLike, DataFile)):
        table, chosen = open_table(X if isinstance(X, DataFile) else DataFile(X), fitted or None)
        values = np.concatenate([*table.batches(chosen, CHUNK)])
        texts = {name: np.array(table.cells(name)) for name in table.names if table.column(name).is_text}
    elif hasattr(X, "columns"):
        present = list(getattr(X, "column_names", X.columns))  # the columns of an Arrow table are arrays
        check_names(present, "X")
        chosen = fitted or present
        values = np.column_stack([np.asarray(X[name], dtype=np.float64) for name in chosen])
        others = {str(name): np.asarray(X[name], dtype=object) for name in present if name not in chosen}
        texts = {name: cells for name, cells in others.items() if any(isinstance(cell, str) for cell in cells)}
    else:
        values = check_array(as_numbers(X, "X"), dtype=np.float64, ensure_all_finite="allow-nan", input_name="X")
        chosen = fitted or [f"x{j}" for j in range(values.shape[1])]
    return values, column_names(values.shape[1], names, chosen), texts
