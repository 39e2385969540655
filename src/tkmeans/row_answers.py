"""What a fitted model answers for each row, asked by its public methods: for the command, descriptions and reports."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from tkmeans.stats import Array

UNSURE = 0.8  # rows of a lower probability lie between clusters
_NAMED_CELLS = 3  # bad ones that are named
_BLOCK = 50_000  # rows whose probabilities for all clusters are in memory at one time


class RowAnswers(NamedTuple):
    """What a model answers for each row; None for what it cannot answer."""

    label: Array  # (n,)
    known: Array  # (n,) bool: False for rows without a single value
    outlier: Any = None  # (n,) bool
    probability: Any = None  # (n,) of the row's cluster
    pvalue: Any = None  # (n,)
    bad_cells: Any = None  # (n, p) bool; None also where no value is bad

    @property
    def core(self) -> Array:
        """Rows that have a value and are no outliers, (n,)."""
        return self.known if self.outlier is None else self.known & ~self.outlier

    def counts(self, n_clusters: int) -> tuple[Array, Array]:
        """The rows of each cluster without outliers, and the outliers that are nearest to it."""
        core, outliers = self.label[self.core], self.label[self.known & ~self.core]
        return np.bincount(core, minlength=n_clusters), np.bincount(outliers, minlength=n_clusters)

    @property
    def n_unsure(self) -> int:
        """How many rows lie between clusters; outliers are far from all of them."""
        return 0 if self.probability is None else int(np.sum(self.probability[self.core] < UNSURE))

    def sentence(self, named: Callable[[Any], Iterable[str]]) -> str:
        """Which cells are bad, how many outliers there are, and how many rows lie between clusters."""
        parts = []
        if self.bad_cells is not None:
            n = len(places := np.argwhere(self.bad_cells))
            cells = [*named(places[:_NAMED_CELLS].tolist()), *[f"and {n - _NAMED_CELLS} more"] * (n > _NAMED_CELLS)]
            one = "1 value is far from all others of its column", "It counts"
            are, count = one if n == 1 else (f"{n} values are far from all others of their columns", "They count")
            parts.append(f"{are}: {'; '.join(cells)}. {count} in the test for outliers, but not in the clusters.")
        if self.outlier is not None:
            are = "is an outlier" if (n := int(np.sum(self.outlier))) == 1 else "are outliers"
            some = f"{n} of {len(self.label)} rows {are}: far from every cluster."
            parts.append(some if n else f"No row {'as a whole ' * (self.bad_cells is not None)}is an outlier.")
        if n := self.n_unsure:
            parts.append(f"{n} {'row lies' if n == 1 else 'rows lie'} between clusters (probability below {UNSURE}).")
        return " ".join(parts)


def answers(model: Any, X: Array, *, fitted: bool = False, pvalues: bool = True, **outlier_rule: Any) -> RowAnswers:
    """Ask a model what it can answer for each row of X; `fitted` on them, it knows some of it already."""
    probability = pvalue = outlier = None
    label = np.asarray(model.labels_ if fitted else model.predict(X))
    if hasattr(model, "predict_proba"):
        blocks = (np.asarray(model.predict_proba(X[i : i + _BLOCK])).max(axis=1) for i in range(0, len(X), _BLOCK))
        probability = np.concatenate([*blocks]).astype(np.float64)
    if hasattr(model, "outliers"):
        from sklearn.exceptions import NotFittedError  # the command line is there before scikit-learn is

        with suppress(NotFittedError):  # what Ctrl-C has left does not know
            outlier = np.asarray(model.outliers(X, **outlier_rule), dtype=bool)
    if pvalues and hasattr(model, "outlier_pvalues"):
        pvalue = np.asarray(model.outlier_pvalues_ if fitted else model.outlier_pvalues(X))
    cells = np.asarray(model.find_bad_cells(X)) if hasattr(model, "cell_bounds_") else np.False_
    values = np.asarray(X)
    with np.errstate(over="ignore", invalid="ignore"):  # of the largest numbers
        known = np.ones(len(values), bool) if np.isfinite(np.sum(values)) else ~np.isnan(values).all(axis=1)
    return RowAnswers(label, known, outlier, probability, pvalue, cells if np.any(cells) else None)
