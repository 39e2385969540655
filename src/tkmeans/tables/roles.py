"""The roles of columns: numbers to cluster by, and what is left out unless somebody asks for it."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.table import CHUNK, WORDS, Column, Table, TableError, complaint, day_number, one_line

Names = Sequence[str]
RESULTS = ("cluster", "probability", "outlier_pvalue")  # the columns that the command adds

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")  # of a name such as customerID_2
# Last words of names; what words of a name end with; last words of columns whose values hardly repeat.
_ALWAYS_ID, _POSTAL, _DATED = WORDS["identifiers"], {*WORDS["postal codes"]}, tuple(WORDS["dates"])
_LABELS = WORDS["labels"]
_SPANS = [(2e4, 6e4), *((10.0**n, 4.2 * 10.0 ** (n + 1)) for n in (8, 11, 14, 17))]  # days by Excel; seconds and less
_NUMBERING, _INDEXED, _FIRST, _MOMENTS = ({*WORDS[key]} for key in ("numberings", "indexed", "first", "moments"))
_NUMBERED = re.compile(r".{3,}nr|.*(?:schlue?ssel|kennung)")  # words for keys, and no psnr
_NEARLY, _LONG = 0.95, 9  # of the values are distinct where they identify rows; digits, more than a measurement has
FLAG, LABEL = "a flag: it has two values", "a label, by its name"  # clustered by if there are no measurements
_ENOUGH, LEVELS = 10, 50  # rows in which a pattern is no accident, and values, at most, of an encoded category


class Role(NamedTuple):
    """What becomes of a column."""

    name: str
    holds: str  # "number", "boolean", "date", "code" or "text"
    reason: str  # why it is not clustered by; empty if it is


class Choice(NamedTuple):
    """The columns to cluster by, and why not the others."""

    names: list[str]
    notes: list[str]
    roles: list[Role]


def choose(
    table: Table, columns: Names | None = None, without: Names = (), keep: Names = (), taken: Names = ()
) -> Choice:
    """The columns to cluster by, and notes on the others; `taken`, for weights and names of rows, are not chosen."""
    without, keep = ([column_named(table, name) for name in names] for names in (without, keep))
    given = dict.fromkeys(without, "left out") | dict.fromkeys(taken, "asked for otherwise")
    if columns is not None or table.is_matrix:
        chosen = table.names if columns is None else [column_named(table, name) for name in columns]
        found = [Role(name, table.kinds.get(name, "indicator"), given.get(name, "")) for name in chosen]
    else:
        seen = [(c, given.get(c.name, _role(table, c, keep))) for c in table.first(CHUNK)]
        found = [Role(c.name, "text" if c.is_text else c.kind, reason) for c, reason in seen]
        alone = () if any(not role.reason for role in found) else (FLAG, LABEL)
        found = [role._replace(reason="") if role.reason in alone else role for role in found]
    names = [role.name for role in found if not role.reason]
    left = [role for role in found if role.reason and role.name not in given]
    aside = {why: [role.name for role in left if role.reason == why] for why in dict.fromkeys(r.reason for r in left)}
    others = "; ".join(f"{listed(names)} ({reason})" for reason, names in aside.items())
    if not names:
        notes = [*table.notes, *["add delimiter='...' if another sign divides its cells"] * (len(table.names) == 1)]
        why = "; ".join([others or "all were left out", *(notes if table.format == "text" else table.notes)])
        raise TableError(f"{table.sheet} has no column of numbers to cluster by: {why}")
    if columns is not None:
        asked = [column for column in table.first(CHUNK) if column.name in names]
        check_numbers(table, asked)
        if empty := [c.name for c in asked if c.is_empty and _role(table, c, keep) == "empty"]:
            raise TableError(f"{table.source}: column {empty[0]!r} is empty; leave it out")
    numbers = [name for reason, names in aside.items() if reason not in ("text", "empty") for name in names]
    way_in = f"; add keep={numbers[:1]!r} to cluster by {numbers[0]!r} anyway" if numbers else ""
    return Choice(names, [f"not used for clustering: {others}{way_in}"] if aside else [], found)


def _role(table: Table, column: Column, keep: Sequence[str]) -> str:
    """Why a column is not clustered by; empty if it is."""
    reason = _why_not(column)
    if column.name in RESULTS and set(RESULTS) <= set(table.names) and column.name not in keep:
        return "from an earlier run"
    if column.name not in keep and reason in ("empty", "the same in every row"):
        return _throughout(table, column, reason)
    return reason if column.name not in keep or reason == "text" else ""


def _why_not(column: Column, varies: bool = False) -> str:
    """Why a column, which may vary in later rows alone, is not clustered by unless somebody asks for it; or nothing."""
    if column.is_empty and not varies:
        return "empty"
    if column.is_text or column.kind == "date":
        return "a date" if column.kind == "date" else "text"
    known = column.values[~np.isnan(column.values)]
    # The floats of such keys may be equal where their digits are not; measurements have zeros there.
    is_blurred = len(known) >= _ENOUGH and np.all((known >= 2**53) & (known < 1e20)) and np.any(known % 1e6)
    if not (varies or is_blurred or column.n_bad) and np.ptp(known) == 0 and len(column.values) > 1:
        return "the same in every row"
    distinct, steps = np.unique(known), np.diff(known)
    is_short = len(known) < _ENOUGH and column.kind != "boolean"
    if len(distinct) == 2 and not (varies or is_short or is_blurred or column.n_bad):
        return FLAG
    if column.n_bad or column.kind in ("code", "boolean") or not np.all(known == np.round(known)):
        is_clock = len(known) == len(column.values) >= _ENOUGH and 0 < np.max(steps) / 1.001 < np.min(steps)
        code = "a code, as 0815 or 12E4 are" if column.kind == "code" else ""
        return "a clock: it goes up in equal steps" if is_clock and not column.n_bad else code
    plain = unicodedata.normalize("NFKD", column.name).encode("ascii", "ignore").decode()  # without accents
    words = [word.casefold() for word in _WORD.findall(plain)] or [""]
    if len(distinct) == len(column.values) > 2 and _counts(known, distinct):
        return "a row number"
    if words[-1] in _ALWAYS_ID or words[-1].endswith("nummer"):  # which, other than number, is no count
        return "an identifier, by its name"
    is_long = words[0] in ("plz", "postleitzahl") and bool(np.all((known >= 1000) & (known < 100_000)))
    if words[-1] in _POSTAL or (words[-1] == "code" and set(words) & _POSTAL) or is_long:
        return "a postal code, by its name"
    is_moment = "to" not in words and (bool(_MOMENTS & {*words}) or words[-1] == "at")  # sales to date are amounts
    is_dated = any(word.endswith(_DATED) for word in words) or is_moment
    if (is_dated or (len(distinct) >= _ENOUGH and distinct[0] >= 1e7)) and _are_dates(distinct, is_moment):
        return "a date, by its name and its values" if is_dated else "a date, by its values"
    if words[-1] in _LABELS and len(distinct) <= LEVELS:
        return LABEL
    if len(known) >= _ENOUGH and (is_blurred or len(distinct) >= _NEARLY * len(known)):
        is_long = known.min() >= 10 ** (_LONG - 1) and known.max() < 10 * 10.0 ** np.floor(np.log10(known.min()))
        if is_long and 2 * np.count_nonzero(known % 10) > len(known):  # amounts are round
            return "a key: long numbers that hardly repeat"
        counts = words[-1] not in ("index", "idx") or {*words[:-1]} <= _INDEXED  # and is no body mass index
        named = (counts and words[-1] in _NUMBERING) or words[0] in _FIRST or _NUMBERED.fullmatch(words[-1])
        if named or "unnamed" in words or words[:2] == ["index", "level"]:  # as pandas calls it
            return "an identifier, by its name and its distinct values"
    return ""


def _are_dates(distinct: Array, is_moment: bool) -> bool:
    """Whether whole numbers, as 20261118 or 202611, are of 1900 to 2100; moments also as 261118, and in `_SPANS`."""
    digits = [f"{x:.0f}" for x in distinct]
    days = [[f"{x[:4]}-{x[4:6]}-{x[6:] or '01'}" for x in digits], [f"20{x[:2]}-{x[2:4]}-{x[4:]}" for x in digits]]
    written = (all("1900" <= x < "2101" and day_number(x) is not None for x in each) for each in days[: 1 + is_moment])
    return any(written) or (is_moment and any(low <= distinct[0] and distinct[-1] < high for low, high in _SPANS))


def _counts(known: Array, distinct: Array) -> bool:
    """Whether distinct whole numbers are in arithmetic progression, in any order, or count up with few gaps."""
    steps = np.diff(distinct)
    if bool(np.all(steps == steps[0])):
        return len(known) >= _ENOUGH or (steps[0] == 1 and known[0] in (0, 1) and bool(np.all(np.diff(known) == 1)))
    return len(known) >= 2 * _ENOUGH and float(np.median(steps)) == 1 and bool(np.all(np.diff(known) > 0))


def _throughout(table: Table, column: Column, reason: str) -> str:
    """Why a column that is constant or empty at first is left out: it stays so, is text, or is no measurement."""
    whole = table.known_rows is not None and len(column.values) >= table.known_rows
    known = column.values[~np.isnan(column.values)][:1]
    n_bad, n_numbers, others = 0, 0, set[float]()
    for (cells,) in () if whole else table.chunks([column.name]):
        numbers = cells.values[~np.isnan(cells.values)]
        n_bad, n_numbers = n_bad + len(cells.wrong), n_numbers + len(numbers)
        others |= {*np.unique(numbers[~np.isin(numbers, known)])[:2].tolist()}
    late = FLAG if len(known) == len(others) == 1 and not n_bad else ""
    return "text" if n_bad > n_numbers else _why_not(column, True) or late if n_bad or others else reason


def indicators(table: Table, name: str) -> list[str]:
    """An indicator, such as species=Gentoo, for every value of a category, however it is written."""
    pairs, kind = zip(table.cells(name), table.column(name).values.tolist(), strict=True), table.kinds[name]
    known = {repr(x).removesuffix(".0") if kind == "number" and x == x else word for word, x in pairs if word}
    return [f"{name}={x}" for x in sorted({word.casefold() for word in known} if kind == "boolean" else known)]


def levels(table: Table, names: Sequence[str]) -> list[str]:
    """The indicators that stand for categories: one for each value, or one in all if there are two."""
    found = []
    for name in (column_named(table, name) for name in names):
        if not 2 <= len(made := indicators(table, name)) <= LEVELS:
            raise TableError(f"{table.source}: column {name!r} has {len(made)} values; 2 to {LEVELS} can be encoded")
        made = made if len(made) > 2 else made[1:]
        if clash := [each for each in made if name not in (table.indicated(each) or ())[:1]]:
            raise TableError(f"{table.source}: {clash[0]!r} could be of another column than {name!r}; rename one")
        found += made
    return found


def column_named(table: Table, word: str) -> str:
    """The column of this name or, failing that, of this number; or an indicator such as "species=Gentoo"."""
    word = word if word in table.names or table.indicated(word) is not None else word.strip()
    if word in table.names or table.indicated(word) is not None:
        return word
    if word.isdecimal() and 1 <= int(word) <= len(table.names):
        return table.names[int(word) - 1]
    close = [name for name in table.names if word and word.casefold() in name.casefold()]
    close = close[:3] or difflib.get_close_matches(word, table.names, n=1)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"its columns are {listed(table.names)}"
    raise TableError(f"{table.source} has no column {word!r}; {hint}")


def check_numbers(table: Table, columns: Iterable[Column]) -> None:
    """Complain about cells that are not numbers, of all these columns at once."""
    if faults := [fault for column in columns if (fault := _fault(table, column))]:
        raise TableError("\n".join(faults))


def _fault(table: Table, column: Column) -> str:
    if column.is_text:
        example = next(cell for cell in table.cells(column.name) if cell)
        way_out = f"clusters are made of numbers, and columns=['{column.name}={example}', ...] would make one of it"
        return f"{table.source}: column {column.name!r} is text, such as {example!r}; {way_out}"
    return complaint(table.source, column) if column.n_bad else ""


def listed(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, if there are not too many."""
    named = [one_line(name) or "''" for name in names]
    shown = named if len(names) <= most + 1 else named[:most]  # "and 1 more" is no shorter than a name
    return ", ".join(shown) + (f" and {len(names) - most} more" if len(shown) < len(names) else "")
