"""Choosing the coordinates to work in."""

from __future__ import annotations

import math

import numpy as np

from tkmeans.stats import Array, Frame

_ROWS_TO_LOOK_AT = 4096


def measure(X: Array, weight: Array | None) -> Frame:
    """A frame for the rows of X.

    The origin is the median of each feature and the unit the data's spread: the
    median distance from there, divided by the root of p. Over rows taken at equal
    intervals: neither can be carried away by outliers, nor depends on chance. Rows
    of weight 0 do not count.
    """
    picked = evenly(len(X), weight)
    X, weight = X[picked], np.ones(len(picked)) if weight is None else weight[picked]
    origin = _median(X, weight)
    with np.errstate(over="ignore"):
        away = np.abs(X.astype(np.float64) - origin)
        away[np.isnan(away)] = 0  # what was not observed is not away
        largest = np.max(away, axis=1)  # taken out before squaring: no overflow, no underflow
        shape = away / np.where((largest > 0) & np.isfinite(largest), largest, 1)[:, None]
        distance = largest * np.sqrt(np.mean(shape**2, axis=1))
    spread = float(_median(distance[:, None], weight)[0])
    if not 0 < spread < math.inf:  # most rows are equal: let the others speak
        others = (distance > 0) & np.isfinite(distance)
        spread = float(_median(distance[others, None], weight[others])[0]) if np.any(others) else 1.0
    return Frame(origin.astype(X.dtype), spread)


def nearest_to_zero(centers: Array) -> Array:
    """The origin to measure rows from that are near these centres: of each feature, the smallest coordinate.

    A row is then no farther from the origin than from zero, give or take a factor of two, so what rounding
    takes away is no more than it was given with; even if some centre lies on a row at the end of the world.
    """
    least = np.min(np.abs(centers), axis=0)
    return np.where(np.any(centers == -least, axis=0), -least, least)  # whatever the order of the centres


def evenly(n_rows: int, weight: Array | None) -> Array:
    """The numbers of the rows to measure; measuring these alone gives the same frame."""
    if weight is None:
        return np.arange(0, n_rows, stride(n_rows))
    counted = np.flatnonzero(weight > 0)
    return counted[:: stride(len(counted))]


def stride(n_counted: int) -> int:
    """The interval between rows to measure."""
    return max(1, n_counted // _ROWS_TO_LOOK_AT)


def _median(X: Array, weight: Array) -> Array:
    """Of each column; a row of weight 2 counts as two rows."""
    if not np.any(np.isnan(X)):
        return np.quantile(X, 0.5, axis=0, weights=weight, method="inverted_cdf")
    return np.array([_median(X[seen, j, None], weight[seen])[0] for j, seen in enumerate(~np.isnan(X).T)])
