"""Columns that tell nothing: they are constant, or follow from others by a linear equation in every row.

An ellipse has no width along such an equation. What width a prior gives it there depends on its rows, so that with
every equation large components become more probable for any row. Columns that follow from others are left out instead.

Equations are found in the rows that the frame was measured on, and must then hold in all rows. Relations are an array
(p, p + 2) with a row for each column, in the user's coordinates: a variance, a constant and the coefficients of all
columns; of those looked at 0, 0, and 1 for itself. Along axes, where they are constants alone, (p, 2) is enough.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpstrf
from scipy.special import chdtri

from tkmeans.sources.base import Source, quantile, to_numpy
from tkmeans.stats import Array, Block

LOOKED_AT, CORE = 1000, 1e4  # rows, at least; units from the median: what is farther would take the digits of others
SUSPECT = 1e-5  # of a column's squared unit is left by the others, on average
# Equations hold to this part of the least deviation that `reg_covar` leaves a cluster, but for rounding, a multiple of
# a number's precision: a difference of so little parts no clusters, by a squared distance of 0.1. Values that
# differ at all as they are stored do so by more than STORED times that.
THIN, RIDGES, ROUNDING, STORED = 0.3, (1e-10, 1e-4), 16.0, 0.4
ATOM, NEAR = 0.05, 2.0  # of the rows have a frequent value, and others; times what holds 95 % of a Gaussian
FEW_OTHERS, GAP = 0.75, 0.3  # of the rows have a value: the others may be noise, if there is no such gap around it
ROWS_PER_COLUMN = 2  # in fewer any columns follow from each other


class Excess(NamedTuple):
    """By how much columns miss their equations, in any row."""

    most: Array  # (p,)

    def merge(self, other: "Excess") -> "Excess":
        """That of both sets of rows."""
        return Excess(np.maximum(self.most, other.most))


def leave_out_related(source: Source, measure: Callable[..., Array], shapes: Collection[str], ridge: float) -> None:
    """Have a source show only the columns that tell something to mixtures of these shapes, with this `reg_covar`.

    `measure` gives it its frame, and returns the rows that this was measured on.
    """
    rows, unit, p = measure(source), source.frame.unit, source.n_features
    if p == 1 or "spherical" in shapes:
        return
    X = source.frame.enter(rows[:: max(1, len(rows) // max(LOOKED_AT, 4 * p))], coarse=True)
    weight, width = np.ones(len(X)), 0 if "diag" in shapes else p
    center, loadings = quantile(X, weight), np.zeros((p, width))
    away, slack, relative = np.abs(X - center), rounding(source, ROUNDING), ROUNDING * float(np.finfo(source.dtype).eps)
    units, _ = column_units(X - center, weight, rounding(source))
    related = np.fmax.reduce(away) <= slack
    if width and not np.any(np.isnan(X)):
        _follow(X, units, center, related, loadings)
    if np.any(related):
        limits = slack + np.any(loadings, axis=1) * THIN * np.sqrt(np.clip(ridge, *RIDGES)) * units
        related &= source.reduce(partial(_missed, related.copy(), center, loadings, limits, relative)).most <= 0
    if np.all(related) or not np.any(related):
        return
    loadings[~related], center = np.eye(p, width)[~related], source.frame.leave(center)
    thin = np.maximum(max(ridge, 1e-8) * (units * unit) ** 2, 1e-250)
    source.relations = np.column_stack([thin, center - loadings @ center[:width], loadings])
    source.relations[~related, :2] = 0.0
    source.columns = np.flatnonzero(~related).tolist()
    measure(source)


def _follow(X: Array, units: Array, center: Array, related: Array, loadings: Array) -> None:
    """Note which columns follow from others, from which centre and how, as far as these rows can tell."""
    left, Z = np.flatnonzero(~related), (X - center) / units
    Z = Z[np.max(np.abs(Z), axis=1) < CORE][:, left]
    mean = np.mean(Z, axis=0) if len(Z) else np.zeros(len(left))
    tilt = 1 - 1e-9 * np.arange(len(left))  # of columns that tell the same the first is kept
    second = (Z - mean).T @ (Z - mean) / max(len(Z), 1)
    _, pivots, rank, _ = dpstrf(second * np.outer(tilt, tilt), tol=SUSPECT)  # takes the one of which most is left
    first, others = pivots[:rank] - 1, pivots[rank:] - 1
    if not len(others) or len(np.unique(Z, axis=0)) < ROWS_PER_COLUMN * (rank + 1):
        return
    found = np.linalg.solve(second[np.ix_(first, first)], second[np.ix_(first, others)])  # (rank, d)
    loadings[np.ix_(left[others], left[first])] = found.T * units[left[others], None] / units[left[first]]
    center[left] += units[left] * mean
    related[left[others]] = True


def _missed(related: Array, center: Array, loadings: Array, limits: Array, relative: float, block: Block) -> Excess:
    """By how much rows of a block miss the equations, beyond what rounding explains; infinite if one has no more."""
    X = to_numpy(block.frame.enter(block.X)).astype(np.float64)
    X -= center
    if np.any(np.isnan(X[:, ~related]).all(axis=1) & ~np.isnan(X).all(axis=1)):
        return Excess(np.full(len(center), np.inf))
    known = np.where(np.isnan(X), 0.0, X)[:, : loadings.shape[1]]
    away = np.abs(X - known @ loadings.T) - relative * (np.abs(known) @ np.abs(loadings.T))
    return Excess(np.fmax.reduce(away - limits, initial=-np.inf))


def rounding(source: Source, times: float = STORED) -> Array:
    """Differences that may be due to how the rows are stored, or computed, in the frame, (p,)."""
    origin, unit = source.frame
    return times * float(np.finfo(source.dtype).eps) * np.abs(np.asarray(origin, np.float64)) / unit


def column_units(apart: Array, weight: Array, slack: Array, one: float = 1.0) -> tuple[Array, Array]:
    """The median deviation of each column, and its grain, from its deviations, (n, p); `slack`, (p,), is no difference.

    Where most values are equal, the nearest of the others speak. A column in which most rows share their value with
    another is measured in steps, and rounding to a step has a variance of a twelfth of its square (Sheppard 1898).
    Elsewhere the grain is 0; but a frequent value stands for as many of the others as make it no denser than they are:
    its step is their width, four median deviations, times its odds. Rows that are far in other columns do not count.
    Equal rows may have been joined; a single one weighs `one`.
    """
    away = np.abs(apart)
    times = np.round(weight / one)  # how often a row is there, unless rows have weights of their own
    times = times if np.all(np.abs(times * one - weight) <= 1e-9 * weight) else np.ones(len(times))
    units, grain = quantile(away, weight), np.zeros(away.shape[1])
    varies = units > slack
    squares = np.nan_to_num(np.minimum(away / np.where(varies, units, np.inf), 1e120) ** 2)
    of_all, alike = np.sum(squares, axis=1), np.ptp(weight) == 0
    for j, column in enumerate(np.ascontiguousarray(apart.T)):
        q, others = np.count_nonzero(varies) - varies[j], of_all - squares[:, j]
        near = others <= NEAR * quantile(others, weight) * (chdtri(q, 0.05) / chdtri(q, 0.5) if q else 1.0)
        near = np.flatnonzero(near & ~np.isnan(column))
        if alike and varies[j] and len(near) * ATOM > 1 and np.all(np.diff(np.sort(column[near])) > slack[j]):
            continue  # no value is there twice
        order = near[np.argsort(column[near])]
        values, mass, often = column[order], weight[order], times[order]
        steps = np.diff(values, prepend=values[:1])
        group = np.cumsum(steps > slack[j])  # of equal values
        share = np.bincount(group, mass, 1) / max(np.sum(mass), 1e-200)
        atom, rest = np.max(share), group != np.argmax(share)
        if ATOM <= atom <= 1 - ATOM and len(share) - 1 >= np.sum(often[rest]) / 2:
            others, mass = values[rest], mass[rest]
            width = atom / (1 - atom) * 4 * quantile(np.abs(others - quantile(others, mass)), mass)
            distant = np.abs(others - values[~rest][0])
            reach = quantile(distant, mass)
            may_be_noise = atom > FEW_OTHERS and quantile(distant, mass, 0.05) < GAP * reach
            groups = order[~rest], order[rest]
            if width > reach and not may_be_noise and _differ(np.delete(apart, j, axis=1), weight, *groups):
                width = reach
            grain[j] = np.clip(width, 1e-100, 1e100) ** 2 / 12
            units[j] = units[j] if varies[j] else reach
        elif not varies[j]:
            some = away[:, j] > slack[j]
            units[j] = quantile(away[some, j], weight[some], 0.1) if np.any(some) else 1.0
            grain[j] = np.any(some) * max(units[j], 1e-100) ** 2 / 12
        elif 1 < len(share) < np.sum(often) / 2:
            firsts = values[np.append(True, np.diff(group) > 0)]
            shared = firsts[np.bincount(group, often) > 1]  # so that a few values that were not rounded do not matter
            grain[j] = min(np.min(np.diff(shared), initial=1e100), np.ptp(firsts)) ** 2 / 12
    return np.maximum(units, 1e-100), grain  # squares of units are numbers


def _differ(apart: Array, weight: Array, *groups: Array) -> bool:
    """Whether the means of two groups of rows are a deviation within them apart, over all columns together."""
    reach = np.maximum(quantile(np.abs(apart), weight, 0.9), 1e-100)
    parts = [(np.clip(np.nan_to_num(apart[rows] / reach), -2, 2), weight[rows, None]) for rows in groups]
    means = [np.sum(X * w, axis=0) / np.sum(w) for X, w in parts]
    scatter = sum(np.sum((X - mean) ** 2 * w, axis=0) for (X, w), mean in zip(parts, means, strict=True))
    within = scatter / sum(np.sum(w) for _, w in parts)
    return bool(np.sum((means[0] - means[1]) ** 2 / np.maximum(within, 1e-12)) > 1)
