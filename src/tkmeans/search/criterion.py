"""The criterion of the robust search: rows and a state in, its cost out.

This is the definition. `search.hpp` computes the same numbers quickly, and tests compare the two in many dimensions.

The cost is the ICL, in nats and halved, of a spherical t mixture with one scale alpha, fixed nu,
estimated cluster weights and a noise component; the constant of the t density and the penalty are left out. With d
the squared distance of a row to a centre and h = (nu + p)/2, minus the log-density at the row is, up to that constant,

    l(d) + (p/2) ln(nu alpha),   l(d) = h ln(1 + d/(nu alpha)).

A row of weight 1 costs, apart from the term of the scale,

    l(d1) + g/(1 + e^g) + ln(W/W_k)   in the cluster k of its nearest centre, with g = l(d2) - l(d1),
    l(cap) + ln K                     as noise, if d1 >= cap.

- d1 and d2 belong to its two nearest centres; others hardly count. The memberships of the two are 1/(1 + e^-g) and
  1/(1 + e^g), so l(d1) + g/(1 + e^g) is the expected loss: minus the log-likelihood plus the entropy, as in ICL.
- W_k is the weight of the rows nearest to centre k and nearer than cap to it; W is that of all rows.
- d1 is then measured to the mean of the *other* rows of the cluster, see `seen_from_others`, d2 is taken as no less,
  and a row that is beyond cap now costs as much as noise; W_k keeps it.
- Noise has the density of the rim of a cluster of average size, at d = cap = 600 p alpha. So a noise row costs the same
  wherever the centres are, and no centre pays on scattered outliers. K is the number of clusters asked for.
- While states of different scale are compared, the density of the noise is held where it was at `noise_scale`; cap
  moves accordingly, but is never less than nu alpha.

Where the native search takes a short cut:

- The second centre is ignored (g/(1 + e^g) is taken as 0) where g >= CLEAR_GAP = 8: at most 0.0027 nats per row.
  With small h, so in one or two dimensions, hardly any gap is that wide. This definition does the same.
- `descend` and `inhale` move centres and look again only at the rows they concern. Costs count after `refine`,
  `restore` or `seed`, which look at every row.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans.stats import Array

NOISE_REACH = 600.0  # noise begins at d = 600 p alpha: where a row stops pulling at centres
CLEAR_GAP = 8.0  # between the losses at the two nearest centres: beyond, a row belongs to the nearer one


class State(NamedTuple):
    """What is judged."""

    centers: Array  # (K, p)
    scale: float  # alpha
    dof: float  # nu
    n_clusters: int  # asked for; on its way the search has more or fewer centres
    noise_scale: float | None = None  # the alpha at which the density of the noise is held; None: the present one


class Nearest(NamedTuple):
    """The two nearest centres of each row; where there is no second one, it is -1, and infinitely far."""

    cluster: Array  # (n,) the nearest, of equals the first
    d1: Array  # (n,) squared distance
    d2: Array  # (n,) to the second
    second: Array  # (n,)
    loss: Any = None  # (n,) expected, or that of noise, where the search keeps it


def cost(X: Array, weight: Array, state: State) -> float:
    """The criterion for rows, (n, p), with their weights, (n,)."""
    p, total = X.shape[1], float(np.sum(weight))
    nearest = two_nearest(X, state.centers)
    mass = masses(nearest, weight, state)[nearest.cluster]  # (n,)
    d1 = seen_from_others(nearest.d1, mass)
    inside = (nearest.d1 < cap(state)) & (d1 < cap(state))  # a row may be near, yet noise as seen from the others
    row_cost = np.full(len(X), noise_loss(state) + math.log(state.n_clusters))
    d1, d2 = d1[inside], np.maximum(d1, nearest.d2)[inside]
    row_cost[inside] = expected_loss(d1, d2, state) + np.log(total / mass[inside])
    return float(weight @ row_cost) + total * p / 2 * math.log(state.dof * state.scale)


def masses(nearest: Nearest, weight: Array, state: State) -> Array:
    """The weight of the rows of each cluster, (K,), noise left out."""
    near = nearest.d1 < cap(state)
    return np.bincount(nearest.cluster[near], weight[near], len(state.centers))


def distances(nearest: Nearest, weight: Array, state: State) -> Array:
    """How far each row is, (n,), from the mean of the others: in a cluster of its own, from the next centre."""
    mass = masses(nearest, weight, state)[nearest.cluster]
    away = np.where(mass > 1, seen_from_others(nearest.d1, mass), nearest.d2)
    return np.where(nearest.d1 < cap(state), away, nearest.d1)


def two_nearest(X: Array, centers: Array) -> Nearest:
    """By squared Euclidean distance."""
    d, each = cdist(X, centers, "sqeuclidean"), np.arange(len(X))
    first = np.argmin(d, axis=1)
    d1, d[each, first] = d[each, first], np.inf
    second = np.argmin(d, axis=1)
    return Nearest(first, d1, d[each, second], np.where(np.isinf(d[each, second]), -1, second))


def loss(d: Array, state: State) -> Array:
    """l(d): minus the log-density at squared distance d, relative to that at the centre."""
    return (state.dof + state.centers.shape[1]) / 2 * np.log1p(d / (state.dof * state.scale))


def expected_loss(d1: Array, d2: Array, state: State) -> Array:
    """Over the memberships of the two nearest centres, d1 <= d2."""
    nearer = loss(d1, state)
    gap = loss(d2, state) - nearer
    return nearer + np.where(gap < CLEAR_GAP, gap / (1 + np.exp(np.minimum(gap, CLEAR_GAP))), 0.0)


def noise_loss(state: State) -> float:
    """The loss of a noise row, ln K apart: l(cap), and never less than l(nu alpha)."""
    p = state.centers.shape[1]
    h, held = (state.dof + p) / 2, state.noise_scale or state.scale
    return max(h * math.log1p(NOISE_REACH * p / state.dof) + p / 2 * math.log(held / state.scale), h * math.log(2))


def cap(state: State) -> float:
    """The squared distance from which on a row is noise: where `loss` reaches `noise_loss`."""
    return state.dof * state.scale * math.expm1(noise_loss(state) / ((state.dof + state.centers.shape[1]) / 2))


def seen_from_others(d1: Array, mass: Array) -> Array:
    """Squared distances to the mean of the *other* rows, from those to the mean of rows of weight `mass`.

    One copy of x left out, the mean is (mass mean - x)/(mass - 1): x is mass/(mass - 1) times as far from it, or with
    no others infinitely far. So a centre on a stray, or many centres in many dimensions, gain nothing from their rows.
    """
    others = mass > 1
    return np.where(others, d1 * np.divide(mass, mass - 1, out=np.ones(len(mass)), where=others) ** 2, np.inf)
