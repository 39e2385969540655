"""What the paper printed, typed once in publication.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

REPETITIONS = 100  # "all experiment are repeated 100 times"
METHODS = (
    "k-means",
    "k-means++",
    "k-medoids",
    "k-medians",
    "GMM",
    "TMM",
    "t-k-means",
    "fast t-k-means",
    "fast t-k-means++",
)


class Cell(NamedTuple):
    """A mean and a standard deviation over repetitions."""

    mean: float
    std: float


@cache
def tables() -> dict[str, dict[str, dict[str, Cell]]]:
    """Measure -> data set -> method -> cell, for "ARI", "MSE", "W/B", "iterations" and "seconds"."""
    text = files("tkmeans.paper").joinpath("publication.toml").read_text(encoding="utf-8")
    raw = tomllib.loads(text)
    measures = {
        "ARI": raw["table1"],
        **raw["table2"],
        "iterations": {"iris": raw["table3"]["iterations"]},
        "seconds": {"iris": raw["table3"]["seconds"]},
    }
    return {
        measure: {name: {method: Cell(*cell) for method, cell in column.items()} for name, column in sets.items()}
        for measure, sets in measures.items()
    }
