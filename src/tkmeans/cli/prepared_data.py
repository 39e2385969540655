"""The data of a command: a table, its chosen columns, and its rows scaled for clustering."""

from typing import Any, NamedTuple

import numpy as np

from tkmeans.cli import screen
from tkmeans.cli.column_choice import choose, column_named, listed, weights_of
from tkmeans.cli.options import ColumnOptions, ReadingOptions, Scale
from tkmeans.stats import Array
from tkmeans.tables import Reading, Table, read_table

_SCALERS = {  # scikit-learn's, and what they scale a column by
    Scale.robust: ("RobustScaler", "its median and interquartile range"),
    Scale.standard: ("StandardScaler", "its mean and standard deviation"),
    Scale.minmax: ("MinMaxScaler", "its least and largest value"),
}


class Data(NamedTuple):
    """Rows to cluster, in the user's units and scaled."""

    table: Table
    columns: list[str]
    X: Array  # (n, p) NaN where missing
    Z: Array  # (n, p) scaled: what is clustered
    weights: Array | None
    id_column: str | None
    row_names: list[str] | None
    scaler: Any  # fitted; None if there is none
    notes: list[str]


def read_file(file: str, said: ReadingOptions) -> Table:
    """The table in a file."""
    delimiter = {"tab": "\t", "\\t": "\t", "space": " "}.get(said.delimiter or "", said.delimiter)
    given = said._asdict() | {"delimiter": delimiter, "missing": tuple(said.missing or ())}
    with screen.working(f"reading {file}"):
        return read_table(file, Reading(**given))


def prepare(file: str, said: ReadingOptions, choice: ColumnOptions) -> Data:
    """Read the table, choose its columns and scale them; what was decided on the way is said."""
    table = read_file(file, said)
    id_column = None if choice.id is None else column_named(table, choice.id)
    weight_column = None if choice.weights is None else column_named(table, choice.weights)
    others = [name for name in (id_column, weight_column) if name is not None]
    names, aside = choose(table, choice.columns, choice.without, others)
    X = numbers(table, names)
    weights = None if weight_column is None else weights_of(table, weight_column)
    scaler, notes = _scaler(X if weights is None else X[weights > 0], choice.scale, names)
    columns = f"{screen.count(len(names), 'column')}: {listed(names)}"
    clustered = f"{screen.count(table.n_rows, 'row')}, clustered by {columns}"
    notes = [*table.notes, clustered, *aside, *missing_values(X), *notes]
    screen.notes(notes)
    row_names = None if id_column is None else table.cells(id_column)
    Z = X if scaler is None else scaler.transform(X)
    return Data(table, names, X, Z, weights, id_column, row_names, scaler, notes)


def numbers(table: Table, names: list[str]) -> Array:
    """The columns side by side; single precision if all of them are."""
    return np.column_stack([table.column(name).values for name in names])


def missing_values(X: Array) -> list[str]:
    """What to say about missing values, if there are any."""
    gaps = np.isnan(X)
    n_rows, n_lost = int(np.sum(gaps.any(axis=1))), int(np.sum(gaps.all(axis=1)))
    if not n_rows:
        return []
    said = f"{screen.count(int(gaps.sum()), 'missing value')} in {screen.count(n_rows, 'row')}"
    if n_rows > n_lost:
        said += "; such a row counts with the values it has"
    if n_lost:
        said += f"; {screen.count(n_lost, 'row')} without any value {'gets' if n_lost == 1 else 'get'} no cluster"
    return [said]


def _scaler(X: Array, scale: Scale, names: list[str]) -> tuple[Any, list[str]]:
    """A fitted scaler, and what to say about it."""
    from sklearn import preprocessing

    if scale is Scale.none:
        return None, ["columns were not scaled: those with the largest numbers count most"]
    name, what = _SCALERS[scale]
    scaler = getattr(preprocessing, name)().fit(X)
    others = ", ".join(other for other in Scale if other is not scale)
    notes = [f"each column was scaled by {what} (--scale {scale}; there are also {others})"]
    if scale is Scale.robust:
        low, high = np.nanpercentile(X, [25, 75], axis=0)
        if len(flat := np.flatnonzero(low == high)):  # dividing by their range is not possible
            scaler.scale_[flat] = [np.nanstd(X[:, j]) or 1.0 for j in flat]
            equal = ", ".join(names[j] for j in flat)
            notes.append(f"half of the values are equal in {equal}: scaled by the standard deviation instead")
    return scaler, notes
