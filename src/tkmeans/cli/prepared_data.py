"""The data of a command: a table, its chosen columns, and its rows scaled for clustering."""

import csv
import re
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any, NamedTuple

import numpy as np

from tkmeans.cli import screen
from tkmeans.cli.options import ColumnOptions, ReadingOptions, Scale
from tkmeans.stats import Array
from tkmeans.tables import CHUNK, Reading, Table, TableError, choose, read_table
from tkmeans.tables.file_content import WATCH
from tkmeans.tables.roles import FLAG, LABEL, Role, check_numbers, column_named, levels, listed
from tkmeans.tables.table import one_line

# scikit-learn's, and what they scale a column by
_SCALERS = {Scale.robust: ("RobustScaler", "its median and the deviation of values that are not far")}
_SCALERS |= {Scale.standard: ("StandardScaler", "its mean and standard deviation")}
_SCALERS |= {Scale.minmax: ("MinMaxScaler", "its least and largest value")}
_LIKE_NUMBER, _PLAIN = r"\W*[0-9]+(?:[.,][0-9]{3})*(?:[.,][0-9]*)?[KMBkmb]?\W*", r"-?[0-9]+(\.[0-9]+)?"
_LOOKED_AT, _MOST = 1000, 0.9  # cells of a column of text, and the share of them that is most
_FAR, _QUARTILES = 6.0, 1.349  # deviations, beyond which a value is far; of a Gaussian, between its quartiles
_ENOUGH = 200_000  # rows for a quartile: its error is a third of a per cent of the spread


class Data(NamedTuple):
    """Rows to cluster, in the user's units and scaled."""

    table: Table
    columns: list[str]
    values: list[Array]  # p columns in the user's units, NaN where missing
    Z: Array  # (n, p) scaled: what is clustered
    weights: Array | None
    id_column: str | None
    row_names: list[str] | None
    scaler: Any  # fitted; None if there is none
    notes: list[str]
    roles: list[Role]

    @property
    def categories(self) -> dict[str, Any]:
        """The columns of text, flags and labels, which can describe clusters, without the names of rows."""
        others = {role.name for role in self.roles if role.reason in (FLAG, LABEL)}
        telling = (name for name in self.table.names if name in others or self.table.column(name).is_text)
        return {name: self.table.cells(name) for name in telling if name != self.id_column}


def read_file(file: str, reading: ReadingOptions, **expected: Any) -> Table:
    """The table in a file; `expected` are the decimal sign where it leaves that open, and names of columns."""
    delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(reading.delimiter or "", reading.delimiter)
    given = reading._asdict() | {"delimiter": delimiter, "missing": tuple(reading.missing or ())} | expected
    with screen.counting(f"reading {file}") as update:
        (watched := copy_context()).run(WATCH.set, lambda done, total: update(completed=done, total=total))
        table = watched.run(read_table, file, Reading(**given))
        watched.run(table.load)
    return table


def split(table: Table, text: str | None) -> list[str]:
    """The columns that an option names, as in "a,b" or "2,5"."""
    if text is None or text in table.names:
        return [] if text is None else [text]
    hidden = {ord(sign): chr(0xE000 + ord(sign)) for sign in "\r\n"}  # which names may have, and end a line of csv's
    words = next(csv.reader([text.translate(hidden)], skipinitialspace=True), [])
    shown = {ord(private): chr(sign) for sign, private in hidden.items()}
    return [*dict.fromkeys(column_named(table, word.translate(shown)) for word in words)]


@np.errstate(over="ignore", invalid="ignore")  # of the largest numbers
def prepare(file: str, reading: ReadingOptions, choice: ColumnOptions) -> Data:
    """Read the table, choose its columns and scale them; print what was decided."""
    table = read_file(file, reading)
    id_column, weight_column = (n if n is None else column_named(table, n) for n in (choice.id, choice.weights))
    others = [name for name in (id_column, weight_column) if name is not None]
    columns = None if choice.columns is None else split(table, choice.columns)
    encoded, keep = split(table, choice.encode), split(table, choice.keep)
    chosen = choose(table, columns, split(table, choice.without), keep, [*others, *encoded])
    names = list(dict.fromkeys(chosen.names + levels(table, encoded)))
    values = numbers(table, names)
    why = {role.name: role.reason for role in chosen.roles} | dict.fromkeys(others, "it names or weighs the rows")
    why |= {n: "no row has it" for n, x in zip(names, values, strict=True) if table.indicated(n) and not np.nansum(x)}
    for name in [*(columns or ()), *keep]:
        if name not in encoded and (reason := why.get(name, "it is not in --columns")):
            raise TableError(f"{table.source} cannot be clustered by {name!r}: {reason}")
    weights = None if weight_column is None else _weights(table, weight_column)
    scaler, notes = _scaler(table, values if weights is None else [x[weights > 0] for x in values], choice.scale, names)
    Z = np.column_stack(values)
    clustered = f"{screen.count(table.n_rows, 'row')}, clustered by {screen.count(len(names), 'column')}"
    doubts = *_like_numbers(table, chosen.roles), *missing_values(Z), *_stand_ins(names, values), *_total(table, values)
    notes = print_notes(table, f"{clustered}: {listed(names)}", *chosen.notes, *doubts, *notes)
    row_names = None if id_column is None else table.cells(id_column)
    if scaler is not None:
        Z = scaler.set_params(copy=False).transform(Z)
        scaler.set_params(copy=True)
    return Data(table, names, values, Z, weights, id_column, row_names, scaler, notes, chosen.roles)


def print_notes(table: Table, *texts: str) -> list[str]:
    """Print how the table was read, and these remarks; all of them, as printed."""
    notes = [screen.as_options(note) for note in (table.layout, *table.notes, *texts) if note]
    screen.notes(notes)
    return notes


def numbers(table: Table, names: list[str]) -> list[Array]:
    """The values of these columns, or of indicators such as species=Gentoo."""
    check_numbers(table, [table.column(name) for name in names if table.indicated(name) is None])
    indicators = [name for name in names if table.indicated(name)]
    found = zip(*(X.T for X in table.batches(indicators, CHUNK)), strict=True) if indicators else ()
    known = dict(zip(indicators, map(np.concatenate, found), strict=True))
    return [known[name] if name in known else table.column(name).values for name in names]


def _weights(table: Table, name: str) -> Array:
    """Sample weights from a column."""
    if table.column(name).is_text:
        raise TableError(f"{table.source}: weights are numbers, but {name!r} holds text; choose another column")
    (values,) = numbers(table, [name])
    if len(wrong := np.flatnonzero(~(values >= 0))):
        places = zip(wrong[:5], table.places(wrong[:5].tolist()), strict=True)
        rows = ", ".join(f"{table.row_word} {place}: {values[i]:g}" for i, place in places)
        found = f"{len(wrong)} in {name!r} are ({rows}); a weight of 0 ignores a row"
        raise TableError(f"{table.source}: weights must not be negative or missing, but {found}")
    if not np.any(values):
        raise TableError(f"{table.source}: all weights in {name!r} are 0, so that no row counts")
    return values


def missing_values(X: Array) -> list[str]:
    """A remark on missing values, if there are any."""
    if not np.any(gaps := np.isnan(X)):
        return []
    n_rows, n_lost = int(np.sum(gaps.any(axis=1))), int(np.sum(gaps.all(axis=1)))
    remark = f"{screen.count(int(gaps.sum()), 'missing value')} in {screen.count(n_rows, 'row')}"
    remark += "; such a row counts with the values it has" if n_rows > n_lost else ""
    lost = f"; {screen.count(n_lost, 'row')} without any value {'gets' if n_lost == 1 else 'get'} no cluster"
    return [remark + (lost if n_lost else "")]


def _like_numbers(table: Table, roles: list[Role]) -> Iterator[str]:
    """Remarks on columns of text whose cells are numbers in a way, or in several ways, that cannot be read."""
    for name in (role.name for role in roles if role.reason == "text"):
        cells = [cell for cell in table.cells(name) if cell][:_LOOKED_AT]
        odd = [cell for cell in cells if re.fullmatch(_LIKE_NUMBER, cell) and not re.fullmatch(_PLAIN, cell)]
        if odd and sum(bool(re.fullmatch(_LIKE_NUMBER, cell)) for cell in cells) >= _MOST * len(cells):
            like = f"column {one_line(name)} is text, though its cells look like numbers, such as {odd[0]!r}"
            yield f"{like}; write all of them in one way, such as 1234.5, to cluster by it"


def _stand_ins(names: list[str], columns: list[Array]) -> Iterator[str]:
    """Remarks on numbers of nines that occur again and again, far from all others: -999 may be a missing value."""
    for name, x in zip(names, columns, strict=True):
        for value in (end for end in (np.nanmin(x), np.nanmax(x)) if re.fullmatch("-?99+", f"{end:g}")):
            n, others = np.count_nonzero(x == value), x[(x != value) & ~np.isnan(x)]
            if n > 1 and len(others) and np.min(np.abs(others - value)) > np.ptp(others):
                found = f"{n} values of {one_line(name)} are {value:g}, far from all others"
                yield f"{found}; add missing=['{value:g}'] if that stands for a missing value"


def _total(table: Table, columns: list[Array]) -> Iterator[str]:
    """A remark on a last row that is the sum of the others, in half of the columns or more."""
    sums = [len(x) > 3 and x[-1] != 0 and bool(np.isclose(x[-1], np.nansum(x[:-1]), 1e-4, 0)) for x in columns]
    if any(sums) and 2 * sum(sums) >= len(sums):
        yield f"the last row ({table.where([table.n_rows - 1])[0]}) is the sum of the others; leave out such a total"


def _scaler(table: Table, columns: list[Array], scale: Scale, names: list[str]) -> tuple[Any, list[str]]:
    """A fitted scaler, and remarks on it; columns without values, or of a spread beyond all bounds, are refused."""
    from sklearn import preprocessing

    from tkmeans.estimators.inputs import SPREADS

    if empty := [name for name, column in zip(names, columns, strict=True) if np.all(np.isnan(column))]:
        raise TableError(f"{table.source}: column {empty[0]!r} is empty; leave it out")
    name, what = _SCALERS.get(scale, _SCALERS[Scale.robust])
    others = ", ".join(other for other in Scale if other is not scale)
    notes = [f"each column is scaled by {what} (--scale {scale}; there are also {others})"]
    if scale in (Scale.robust, Scale.none):
        # Interquartile ranges would make columns with two heaps of values small. One look at each column, and of very
        # many rows at some, always the same.
        few = [x if len(x) <= _ENOUGH else np.random.default_rng(0).choice(x, _ENOUGH) for x in columns]
        seen = [some if np.any(~np.isnan(some)) else x for some, x in zip(few, columns, strict=True)]
        low, middle, high = np.transpose([np.nanquantile(x, [0.25, 0.5, 0.75]) for x in seen])
        reach = _FAR * np.where(high > low, (high - low) / _QUARTILES, np.inf)
        scaler = preprocessing.RobustScaler().fit(np.zeros((2, len(columns))))
        near = [x[np.abs(x - at) <= most] for x, at, most in zip(seen, middle, reach, strict=True)]
        spread = [np.std(x) or np.ptp(x) or 1.0 for x in near]  # of the least numbers the range
        scaler.center_, scaler.scale_ = middle, np.array(spread)
    else:
        scaler = getattr(preprocessing, name)().fit(np.column_stack(columns))
    (least, most), spreads = SPREADS["float64"], getattr(scaler, "data_range_", scaler.scale_)
    if len(wrong := np.flatnonzero((spreads != 0) & ~((spreads >= least) & (spreads <= most)))):
        found = f"the spread of column {names[wrong[0]]!r}, by {what}, is not between {least:g} and {most:g}"
        way_out = ", or add --scale robust" if scale in (Scale.standard, Scale.minmax) else " or leave it out"
        raise TableError(f"{table.source}: {found}; rescale it{way_out}")
    unscaled = ["columns are not scaled: those with the largest numbers count most"]
    return (None, unscaled) if scale is Scale.none else (scaler, notes)
