"""Numerals of a text file: its decimal and thousands signs, and the numbers in its cells."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from tkmeans.stats import Array
from tkmeans.tables.file_content import numpy_of
from tkmeans.tables.table import DATE, TRUTH, WORDS, Cells, Reading, TableError, day_number, gone_numbers, one_line

PLAIN = ("", "number", "code", "text")  # kinds whose cells are numbers as they stand there, or none
MISSING = frozenset(["", "na", "n/a", "#n/a", "nan", "-nan", "+nan", "null", "none", "?", "-", "--", "."])
SPACES = " \u00a0\u2009\u202f'\u2019"  # signs that stand between groups of three digits and never before decimals

_PLAIN = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GROUPS = r"[+-]?[1-9][0-9]{{0,2}}(?:{0}[0-9]{{3}})+"  # with the sign put in: 1,234,567
POINTED = re.compile(_GROUPS.format(r"\."))
_LAKHS = r"[+-]?[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}"  # 12,34,567, as in India
_LEADING = re.compile(r"0[0-9]+|0[1-9]\.[0-9]+")  # 0815; 01.2024, which is a month or a code
_PLACE = re.compile(r"[0-9]{1,3}E[0-9]{1,2}")  # 12E4, which is a house, a seat or a power of ten
_SPACED = _GROUPS.format(f"[{SPACES}]")
_NUMERIC = re.compile(rf"(?:[+-]?(?:[0-9][0-9.,]*|[.,][0-9]+)|{_SPACED}(?:[.,][0-9]*)?)(?:[eE][+-]?[0-9]+)?")
_UNITS = "|".join(map(re.escape, sorted([*WORDS["units"], *WORDS["measures"]], key=len, reverse=True)))
_UNIT = re.compile(rf"(?<![^\W\d])(?:{_UNITS})(?![^\W\d])")


@final
class Numerals:
    """How a file writes numbers: the decimal sign, whether anything shows it, and signs between groups of digits."""

    def __init__(self, decimal: str = ".", thousands: str = "", missing: Iterable[str] = (), sure: bool = True) -> None:
        self.decimal, self.thousands, self.sure = decimal, thousands, sure
        self.given = frozenset(word.strip().casefold() for word in missing)  # further ones for a missing value
        self.missing = MISSING | self.given
        self._gone = frozenset(gone_numbers(missing))
        sign = f"[{re.escape(thousands)}]" if thousands else ""
        groups = rf"(?:{_GROUPS.format(sign)}|{_LAKHS})" if "," in thousands else _GROUPS.format(sign)
        self._grouped = re.compile(rf"{groups}(?:{re.escape(decimal)}[0-9]+)?")
        # Characters to replace in a number that is not plain yet.
        self._plainly = str.maketrans({"\u2212": "-", decimal: "."} | dict.fromkeys(thousands))

    def is_missing(self, cell: str) -> bool:
        """Whether a cell marks a missing value."""
        return cell.strip().casefold() in self.missing or bool(self._gone and self._number(cell.strip()) in self._gone)

    def number(self, cell: str) -> float | None:
        """The number in a cell: NaN if it is missing, None if it is no number."""
        if self.decimal == "." and not self.given and _PLAIN.fullmatch(cell) and abs(value := float(cell)) < np.inf:
            return value  # as most are
        return np.nan if self.is_missing(cell) else self._number(cell.strip())

    def _number(self, text: str) -> float | None:
        text = _signed(text)
        strange = self.decimal != "." and "." in text and "." not in self.thousands  # 1.5 in a file of 1,5
        if strange or (any(sign in text for sign in self.thousands) and not self._grouped.fullmatch(text)):
            return None
        text = text.translate(self._plainly)
        value = float(text) if _PLAIN.fullmatch(text) else np.inf
        return None if np.isinf(value) else value

    def kind_of(self, cells: Iterable[str]) -> str:
        """What a column of such cells holds: one of `KINDS`, a unit of numbers, or "" if all are missing."""
        if not (known := [cell.strip() for cell in cells if not self.is_missing(cell)]):
            return ""
        if all(map(DATE.fullmatch, known)):
            return "date"
        if all(cell.casefold() in TRUTH for cell in known):
            return "boolean"
        unit, count = Counter(unit_of(cell) for cell in known).most_common(1)[0]
        if unit and 2 * count > len(known):
            return unit
        leading = any(map(_LEADING.fullmatch, known))
        if leading and (all(map(str.isdecimal, known)) or len({re.sub("[0-9]", "0", cell) for cell in known}) == 1):
            return "code"
        if all(map(_PLACE.fullmatch, known)):
            return "code"
        return "number" if 2 * sum(self.number(cell) is not None for cell in known) >= len(known) else "text"

    def doubts(self, columns: Mapping[str, Iterable[str]], reading: Reading) -> Iterator[str]:
        """Notes on columns of which all values are 1.234 or, if points part groups, 1234."""
        for name, cells in columns.items() if not (self.sure or reading.thousands) else ():
            known = {_UNIT.sub("", cell).strip() for cell in cells if cell.strip("0 ") and not self.is_missing(cell)}
            if known and all(map(POINTED.fullmatch, known)):
                read = f"{(first := min(known))!r} in {one_line(name)} is read as {first}"
                yield f"{read}; add thousands='.' if it is {first.replace('.', '')}"

    def values(self, cells: Sequence[str], kind: str) -> tuple[Array, list[int]]:
        """The numbers in the cells of a column of this kind, and the indices of those that hold none."""
        is_plain = kind in PLAIN
        readers: dict[str, Any] = {"boolean": lambda cell: TRUTH.get(cell.casefold()), "date": day_number}
        readers["%"] = lambda cell: self.number(cell.replace("%", "", 1).strip()) if "%" in cell else None
        read = self.number if is_plain else readers.get(kind, lambda cell: self.number(cell.replace(kind, "", 1)))
        found = [read(cell) if is_plain else np.nan if self.is_missing(cell) else read(cell.strip()) for cell in cells]
        bad = [i for i, value in enumerate(found) if value is None]
        return np.array([np.nan if value is None else value for value in found], dtype=np.float64), bad

    def cells(self, array: Any, kind: str) -> Cells:
        """The cells of a column of this kind, which is a dictionary array of text."""
        found, wrong = self.values(array.dictionary.to_pylist(), kind)
        indices = numpy_of(array.indices)
        values = found[indices] if len(found) else np.full(len(array), np.nan)
        return Cells(values, np.flatnonzero(np.isin(indices, wrong)) if wrong else np.empty(0, np.int64), array)


def unit_of(cell: str) -> str:
    """The currency or per cent sign in a cell that is a number otherwise; empty if there is none."""
    found = _UNIT.findall(cell)
    if len(found) != 1 or (found[0] in WORDS["measures"] and cell.strip().startswith(found[0])):  # s12 is no time
        return ""
    return found[0] if _NUMERIC.fullmatch(_signed(_UNIT.sub("", cell))) else ""


def _signed(text: str) -> str:
    """A number as accountants write it, (1.50) or 1.50-, with its sign in front."""
    if (text := text.strip())[:1] == "(" and text[-1:] == ")":
        return f"-{text[1:-1].strip()}"
    return f"-{text[:-1]}" if text[-1:] == "-" and text[:1] not in "+-" else text


def guess_numerals(columns: Iterable[Sequence[str]], reading: Reading, source: str) -> Numerals:
    """Find out which sign stands before the decimals; complain where only a person can know."""
    before, between, either, mixed = _evidence(columns)
    other, thousands = {".": ",", ",": "."}, reading.thousands
    decimal = other.get(thousands or "") if reading.decimal is None else reading.decimal
    # What groups digits does not stand before decimals; between commas, a cell such as 1,2 may be a list.
    guess = "," if before[","] + between["."] > before["."] + between[","] else "."
    is_open = not before.total() + between["."] + between[","]
    by_blanks = between[" "] and "," in either and "." not in either  # where blanks stand between groups, commas do not
    guess = "," if is_open and reading.delimiter != "," and (by_blanks or reading.usual == ",") else guess
    sign = "." if guess == "," == reading.delimiter and not between["."] else "," * (is_open and guess == ".")
    found = either.get(sign) or (mixed if is_open and guess == "." and thousands is None else "")
    if decimal is None and found:
        sign = "," if "," in found else "."
        meanings = f"{found.replace(',', '.')} or {found.replace(sign, '')}"
        raise TableError(f"{source}: {found!r} may be {meanings}; add decimal='{sign}' or thousands='{sign}' to choose")
    sure, decimal = not is_open or decimal is not None, guess if decimal is None else decimal
    if thousands is None:
        group = other.get(decimal, "")
        thousands = group * (between[group] > 0 or group in either) + SPACES * (between[" "] > 0)
    return Numerals(decimal, thousands, reading.missing, sure)


def _evidence(columns: Iterable[Sequence[str]]) -> tuple[Counter[str], Counter[str], dict[str, str], str]:
    """How often signs are before decimals and between groups, cells where they may be either, and a mixed column's."""
    before, between, either, mixed = Counter[str](), Counter[str](), dict[str, str](), ""
    for cells in columns:
        pointed, n_digits = "", 0  # the first that could do either, and the most of a whole number other than 0
        kind = Numerals().kind_of(cells)
        plain = (_signed(_UNIT.sub("", cell) if unit_of(cell) else cell) for cell in cells if kind != "code")
        for text in filter(_NUMERIC.fullmatch, plain):
            if any(sign in text for sign in SPACES):
                between[" "] += 1
                text = text.translate(str.maketrans(dict.fromkeys(SPACES)))
            signs = [sign for sign in text if sign in ".,"]
            if len(set(signs)) == 2:
                before[signs[-1]] += 1
                between[signs[0]] += 1
            elif signs and not re.fullmatch(rf"{_GROUPS.format(re.escape(signs[0]))}|{_LAKHS}", text):
                before[signs[0]] += len(signs) == 1  # 12.5.2024 is no number
            elif len(signs) > 1:
                between[signs[0]] += 1
            elif signs:
                either.setdefault(signs[0], text)
                pointed = pointed or text * (signs == ["."])
            elif text.strip("+-0"):
                n_digits = max(n_digits, len(text.lstrip("+-")))
        if pointed and 0 < n_digits < 4 and kind != "text":
            mixed = mixed or pointed  # 2.696 beside 786, and no 1234, may be 2696
    return before, between, either, mixed
