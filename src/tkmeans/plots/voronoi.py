"""Voronoi cells of centres: where one cluster ends and the next begins."""

import numpy as np
from scipy.spatial import cKDTree

from tkmeans.stats import Array


def voronoi_cells(centers: Array, low: Array, high: Array) -> list[Array]:
    """The part of the box from `low` to `high` that is nearest to each centre, a polygon each."""
    box = np.array([low, [high[0], low[1]], high, [low[0], high[1]]], dtype=float)
    polygons = []
    for k, own in enumerate(centers):
        cell = box
        for j, other in enumerate(centers):
            if j != k and len(cell) and not np.array_equal(own, other):
                cell = _nearer(cell, own, other)
        polygons.append(cell)
    return polygons


def agreement(places: Array, labels: Array, centers: Array) -> float:
    """The share of rows that stand in the cell of their own cluster: how far boundaries tell the truth."""
    if len(places) == 0:
        return 1.0
    return float(np.mean(cKDTree(centers).query(places)[1] == labels))


def _nearer(polygon: Array, own: Array, other: Array) -> Array:
    """The part of a convex polygon that is nearer to `own` than to `other` (Sutherland and Hodgman's clipping)."""
    side = (polygon - (own + other) / 2) @ (other - own)  # negative where `own` is nearer
    after, side_after = np.roll(polygon, -1, axis=0), np.roll(side, -1)
    kept = []
    for corner, following, here, there in zip(polygon, after, side, side_after, strict=True):
        if here <= 0:
            kept.append(corner)
        if (here < 0 < there) or (there < 0 < here):
            kept.append(corner + (following - corner) * (here / (here - there)))
    return np.array(kept).reshape(-1, 2)
