"""The steps of the robust search in Python: the definition of the native ones, and their substitute without a compiler.

With the same random numbers they choose the same rows and centres as `search.hpp`, up to rounding; the plan,
`center_search.py`, serves both. Losses, cost and cap are those of `criterion.py`. Steps that move a few
centres look again only at the rows these concern, as the native steps do.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from tkmeans.search import criterion
from tkmeans.search.criterion import Nearest, State, cap, noise_loss, seen_from_others
from tkmeans.search.seeding import drawn
from tkmeans.stats import Array

# The constants of search_*.hpp, which explains them.
LOW_QUANTILE, LEAST_SHARE_OF_QUANTILE, LEAST_SHARE_OF_SCALE = 0.25, 0.1, 1e-10
SCALE_STEPS, SCALE_TOLERANCE, RESCALE_GROWTH, SCALE_DRIFT = 10, 0.01, 1.25, 1.2
MAX_RECEIVERS, REFIT_STEPS, NOTICEABLE_MOVE, NOTICEABLE_SHARE = 4, 2, 0.01, 1.02
SPLIT_DRAWS, SPLIT_STEPS, MEAN_SHIFT_WIDTH, PROMISE = 2, 3, 0.05, 0.3


class Candidate(NamedTuple):
    """A centre that might be added."""

    gain: float
    points: Array  # (1, p) the new centre; of a split (2, p), with where its parent moves
    parent: int = -1
    n_added: int = 0  # centres that had been added when the gain was computed


class ReferenceSearch:
    """The state of a search for starting centres, with the methods of the native `Search`."""

    def __init__(self, rows: Array, weight: Array, n_clusters: int, dof: float, least_scale: float = 0.0) -> None:
        self._X, self._weight = np.asarray(rows, np.float64), np.asarray(weight, np.float64)  # (n, p), (n,)
        self._state = State(np.empty((0, self._X.shape[1])), 1 / dof, dof, n_clusters)
        self._total, self._noise_price, self._least_scale = np.sum(self._weight), np.log(n_clusters), least_scale
        self._cheapest = np.inf  # price of a drop at the end of the way down; infinite if it is not known

    @property
    def clusters(self) -> int:
        """The number of centres."""
        return len(self._state.centers)

    @property
    def scale(self) -> float:
        """alpha."""
        return self._state.scale

    @property
    def cost(self) -> float:
        """The criterion."""
        return criterion.cost(self._X, self._weight, self._state)

    def read_centers(self, out: Array) -> None:
        """Fill the centres, (K, p)."""
        out[:] = self._state.centers

    def read_rows(self, masses: Array, nearest: Array, labels: Array) -> None:
        """Fill the weight of each cluster, and the distance and the nearest centre of each row."""
        masses[:], labels[:] = self._masses(), self._view.cluster
        nearest[:] = criterion.distances(self._view, self._weight, self._state)

    def restore(self, centers: Array, scale: float) -> None:
        """Come back to a state."""
        self._cheapest = np.inf
        self._state = self._state._replace(centers=np.array(centers, np.float64))
        self._set_scale(scale)
        self._view = self._view_of(self._X)

    def fix_noise(self) -> None:
        """Compare states from now on against the present density of the noise."""
        self._state = self._state._replace(noise_scale=self.scale)
        self.refine(0)

    def refine(self, steps: int) -> None:
        """Move the centres to the robust means of their rows, then settle the scale to about 1 %."""
        for _ in range(steps):
            u, cheapest = self._pull(self._weight, self._view.d1), self._cheapest
            self.restore(_means(self._X, u, self._view.cluster, self._state.centers), self.scale)
            self._cheapest = cheapest  # about what it was
            least = LEAST_SHARE_OF_QUANTILE * self._quantile_scale(self._view.d1)  # away from the likelihood's poles
            for _ in range(SCALE_STEPS):
                before = self.scale
                self._set_scale(max(self._next_scale(), least))
                if abs(self.scale - before) < SCALE_TOLERANCE * before:
                    break
        self._view = self._view._replace(loss=self._row_loss(self._view.d1, self._view.d2))

    def _set_scale(self, scale: float) -> None:
        self._state = self._state._replace(scale=max(float(scale), self._least_scale))

    def _next_scale(self) -> float:
        """One parameter-expanded step of eqn:alpha; a cluster of one row tells nothing of the scale."""
        d1, mass = self._view.d1, self._masses()[self._view.cluster]
        known = (d1 > 0) & (d1 < cap(self._state)) & (mass > 1.5)
        d = seen_from_others(d1[known], mass[known])
        u = self._weight[known] / self._base(d)
        return float(u @ d / (self._X.shape[1] * np.sum(u))) if u @ d > 0 else self.scale

    def _quantile_scale(self, d1: Array) -> float:
        """The lower quartile of the positive distances, rounded down to four significant bits, per feature."""
        d, weight = d1[d1 > 0], self._weight[d1 > 0]
        order = np.argsort(d)
        reached = np.searchsorted(np.cumsum(weight[order]), LOW_QUANTILE * np.sum(weight))
        fraction, exponent = np.frexp(d[order][reached] if np.any(weight) else 0.0)
        return float(np.ldexp(np.floor(fraction * 16) / 16, exponent)) / self._X.shape[1]

    @np.errstate(over="ignore")  # rows at the horizon over a scale of next to nothing: infinitely far
    def _base(self, d: Array) -> Array:
        return 1 + d / (self._state.dof * self.scale)

    def _pull(self, weight: Array, d: Array) -> Array:
        """How strongly rows at squared distance d pull at a centre: not at all beyond the cap."""
        return np.where(d < cap(self._state), weight / self._base(d), 0.0)

    @np.errstate(over="ignore")
    def _row_loss(self, d1: Array, d2: Array) -> Array:
        near = d1 < cap(self._state)
        expected = criterion.expected_loss(np.where(near, d1, 0.0), d2, self._state)
        return np.where(near, expected, noise_loss(self._state))

    def _view_of(self, X: Array) -> Nearest:
        view = criterion.two_nearest(X, self._state.centers)
        return view._replace(loss=self._row_loss(view.d1, view.d2))

    def _masses(self) -> Array:
        return criterion.masses(self._view, self._weight, self._state)

    def _members(self) -> list[Array]:
        counts = np.bincount(self._view.cluster, minlength=self.clusters)
        return np.split(np.argsort(self._view.cluster, kind="stable"), np.cumsum(counts)[:-1])

    def _size_cost(self, mass: Array) -> Array:
        """What the weight of a cluster costs its rows."""
        return mass * np.log(self._total / np.where(mass > 0, mass, self._total))

    def seed(self, target: int, uniforms: Array, trials: int) -> None:
        """Draw rows by loss and from the noise in turn; of some trials the one that lowers the loss most."""
        X, weight, uniform = self._X, self._weight, iter(uniforms)
        chosen = [drawn(weight, next(uniform))]
        d1 = np.sum((X - X[chosen[0]]) ** 2, axis=1)
        self._set_scale(self._quantile_scale(d1) or self.scale)
        self._least_scale, rescale_at = max(LEAST_SHARE_OF_SCALE * self.scale, self._least_scale), RESCALE_GROWTH
        while len(chosen) < target:
            if len(chosen) >= rescale_at:
                self._set_scale(self._quantile_scale(d1))
                rescale_at = RESCALE_GROWTH * len(chosen)
            far, loss = d1 >= cap(self._state), self._row_loss(d1, np.inf)
            noise, near = np.where(far, weight, 0.0), np.where(far, 0.0, weight * loss)
            tries = []
            for trial in range(trials):
                i = drawn(noise if (trial % 2 == 1 and np.any(noise)) or not np.any(near) else near, next(uniform))
                fall = np.maximum(loss - self._row_loss(np.sum((X - X[i]) ** 2, axis=1), np.inf), 0.0)
                tries.append((weight @ fall - min(weight[i], 1.0) * loss[i], i))  # one copy of itself does not count
            chosen.append(max(tries)[1])
            d1 = np.minimum(d1, np.sum((X - X[chosen[-1]]) ** 2, axis=1))
        self.restore(X[chosen], self.scale)

    def descend(self, target: int, floor: int) -> None:
        """Drop the cheapest centre until `target` are left, and down to `floor` while that lowers the cost."""
        price, stale = np.empty(self.clusters), np.empty(self.clusters, bool)  # of each drop; may it have changed?
        check_scale_at, reprice = self.clusters * 15 // 16, True
        while self.clusters > floor:
            if self.clusters <= check_scale_at:
                grown, check_scale_at = self._next_scale(), self.clusters * 15 // 16
                if reprice := grown > SCALE_DRIFT * self.scale:
                    self._set_scale(grown)
                    self.refine(1)
            members, mass = self._members(), self._masses()
            if reprice:
                price = np.array([self._drop(k, members, mass)[0] for k in range(self.clusters)])
                stale, reprice = np.zeros(self.clusters, dtype=bool), False
            while stale[k := int(np.argmin(price))]:  # drops make others dearer, hardly ever cheaper
                price[k], stale[k] = self._drop(k, members, mass)[0], False
            if self.clusters <= target and not price[k] < 0:
                self._cheapest = float(price[k])
                return
            stale |= self._carry_out(k, *self._drop(k, members, mass)[1:])
            price[k], stale[k] = price[-1], stale[-1]  # the last centre has taken the number of the dropped one
            price, stale = price[:-1], stale[:-1]
        self._cheapest = np.inf

    def _drop(self, k: int, members: list[Array], mass: Array) -> tuple[float, Array, Array]:
        """The price of dropping centre k, the centres that get most of its rows, (r,), and where they move, (r, p)."""
        reach, going = cap(self._state), members[k][self._view.d2[members[k]] < cap(self._state)]
        received = np.bincount(self._view.second[going], self._weight[going], self.clusters)
        receivers = np.argsort(-received, kind="stable")[:MAX_RECEIVERS]
        receivers = receivers[received[receivers] > 0]
        slot = np.full(self.clusters + 1, -1)  # the last entry is for second = -1
        slot[receivers] = np.arange(len(receivers))
        rows = np.concatenate([members[k], *(members[r] for r in receivers)])
        x, w, (first, old_d1, old_d2, second, before) = self._X[rows], self._weight[rows], (a[rows] for a in self._view)
        outside = np.where((second >= 0) & (second != k) & (slot[second] < 0), old_d2, np.inf)  # stays as it is
        at, d1 = np.where(first == k, slot[second], slot[first]), np.where(first == k, old_d2, old_d1)
        refitted = self._state.centers[receivers]
        for _ in range(REFIT_STEPS):
            refitted = _means(x, np.where(at >= 0, self._pull(w, d1), 0.0), at, refitted)
            d = np.column_stack([outside, cdist(x, refitted, "sqeuclidean"), np.full(len(x), np.inf)])
            at, (d1, d2) = np.argmin(d[:, :-1], axis=1) - 1, np.partition(d, 1, axis=1)[:, :2].T
        if not mass[k] > 1 or (mass[k] / (mass[k] - 1)) ** 2 > NOTICEABLE_SHARE:
            seen = seen_from_others(old_d1, np.full(len(x), mass[k]))
            before = np.where(first == k, self._row_loss(seen, np.maximum(seen, old_d2)), before)
        was_near, is_near = old_d1 < reach, d1 < reach
        now_at = np.where(at >= 0, np.append(receivers, -1)[at], second)[is_near]
        leaving, coming = (np.bincount(*pair, self.clusters) for pair in ((first, w * was_near), (now_at, w[is_near])))
        price = w @ (self._row_loss(d1, d2) - before)
        price += np.sum(self._size_cost(mass - leaving + coming) - self._size_cost(mass))
        return float(price + self._noise_price * (w @ was_near - w @ is_near)), receivers, refitted

    def _carry_out(self, k: int, receivers: Array, refitted: Array) -> Array:
        """Drop centre k; which prices may change by it, (K,), centres numbered as before."""
        (first, d1, d2, second, loss), centers, last = self._view, self._state.centers.copy(), self.clusters - 1
        moved, far = np.zeros((2, last + 2), dtype=bool)  # the last entries are for second = -1
        moved[[k, *receivers]] = far[k] = True
        shift = np.sum((centers[receivers] - refitted) ** 2, axis=1)
        far[receivers] = shift > NOTICEABLE_MOVE * centers.shape[1] * self.scale
        stale = np.bincount(first[far[first] | far[second]], minlength=last + 1) > 0
        stale[receivers] = True
        centers[receivers] = refitted
        centers[k] = centers[last]
        self._state = self._state._replace(centers=centers[:last])
        concerned = moved[first] | moved[second]
        first, second = (np.where(numbers == last, k, numbers) for numbers in (first, second))
        self._view = Nearest(first, d1.copy(), d2.copy(), second, loss.copy())
        for values, renewed in zip(self._view, self._view_of(self._X[concerned]), strict=True):
            values[concerned] = renewed
        return stale

    def inhale(self, needed: int, at_most: int, uniforms: Array, noise_draws: int) -> int:
        """Add the centres that promise a good part of what the cheapest drop costs, `needed` in any case; how many."""
        members, mass = self._members(), self._masses()
        if self._cheapest == np.inf:  # else it is what the way down ended with
            self._cheapest = min(self._drop(k, members, mass)[0] for k in range(self.clusters))
        worthwhile = PROMISE * self._cheapest if self._cheapest > 0 else self._cheapest
        pool, added = list(self._candidates(members, mass, uniforms, noise_draws)), 0
        while added < at_most and pool:
            best = pool[number := int(np.argmax([candidate.gain for candidate in pool]))]
            if not best.gain > (-np.inf if added < needed else worthwhile):
                break
            if best.parent < 0 and best.n_added != added:  # what was added since may have taken its rows
                pool[number] = best._replace(gain=self._gain_of_adding(best.points[0]), n_added=added)
            else:
                self._append(pool.pop(number))
                added += 1
        return added

    def _append(self, new: Candidate) -> None:
        """Rows of a parent that moves keep their distance until all rows are looked at again."""
        (first, d1, d2, second, _), k = self._view, self.clusters
        centers = np.vstack([self._state.centers, new.points[:1]])
        centers[new.parent] = new.points[-1]  # without a parent, -1: the new centre itself
        self._state = self._state._replace(centers=centers)
        d = np.sum((self._X - new.points[0]) ** 2, axis=1)
        second = np.where(d < d1, first, np.where(d < d2, k, second))
        d1, d2, first = np.minimum(d, d1), np.minimum(np.maximum(d, d1), d2), np.where(d < d1, k, first)
        self._view = Nearest(first, d1, d2, second, self._row_loss(d1, d2))

    def _candidates(self, members: list[Array], mass: Array, uniforms: Array, noise_draws: int) -> Iterator[Candidate]:
        """The better of two splits of each cluster, and the surroundings of noise rows."""
        for k, draws in enumerate(np.reshape(uniforms[: SPLIT_DRAWS * self.clusters], (-1, SPLIT_DRAWS))):
            if mass[k] > 0:
                starts = [self._ill_fitting(members[k], uniform) for uniform in draws]
                splits = [self._split(k, members[k], mass[k], *start) for start in zip(starts, (0, 1), strict=True)]
                yield max(splits, key=lambda c: c.gain)
        if np.any(noise := np.where(self._view.d1 < cap(self._state), 0.0, self._weight)):
            for uniform in uniforms[SPLIT_DRAWS * self.clusters :][:noise_draws]:
                yield self._surroundings(drawn(noise, uniform))

    def _ill_fitting(self, rows: Array, uniform: float) -> int:
        """A row of a cluster, drawn by what its loss exceeds the mean loss by; noise is left out."""
        share, loss = self._weight[rows] * (self._view.d1[rows] < cap(self._state)), self._view.loss[rows]
        excess = share * np.maximum(loss - share @ loss / np.sum(share), 0.0)
        return int(rows[drawn(excess, uniform) if np.any(excess) else 0])

    def _split(self, k: int, rows: Array, mass: Array, start: int, mirrored: int) -> Candidate:
        """A few steps of robust 2-means on the rows of cluster k; judged on these alone."""
        x, w, points = self._X[rows], self._weight[rows], np.stack([self._X[start], self._state.centers[k]])
        points[1] += mirrored * (points[1] - points[0])
        d = cdist(x, points, "sqeuclidean")  # (n, 2)
        for _ in range(SPLIT_STEPS):
            part, u = np.where(d[:, 0] < d[:, 1], 0, 1), self._pull(w, np.min(d, axis=1))
            if not np.all(np.bincount(part, u, 2) > 0):
                return Candidate(-np.inf, points, k)
            points = _means(x, u, part, points)
            d = cdist(x, points, "sqeuclidean")
        part, nearer = np.where(d[:, 0] < d[:, 1], 0, 1), np.min(d, axis=1)
        parts = np.bincount(part, w * (nearer < cap(self._state)), 2)
        seen = seen_from_others(nearer, parts[part])
        after = self._row_loss(seen, np.maximum(seen, np.minimum(np.max(d, axis=1), self._view.d2[rows])))
        gain = w @ (self._view.loss[rows] - after) + self._size_cost(mass) - np.sum(self._size_cost(parts))
        return Candidate(float(gain - self._noise_price * (mass - np.sum(parts))), points, k)

    def _surroundings(self, row: int) -> Candidate:
        """Mean shift from a noise row to the heap it belongs to, then its robust mean."""
        point, nu_alpha, reach = self._X[row], self._state.dof * self.scale, cap(self._state)
        for width in (MEAN_SHIFT_WIDTH * reach, MEAN_SHIFT_WIDTH * reach, nu_alpha):
            d = np.sum((self._X - point) ** 2, axis=1)
            near = (d < self._view.d1) & (d < reach)
            u = self._weight[near] / (1 + d[near] / width) ** (2 if width > nu_alpha else 1)
            if not np.sum(u) > 0:
                return Candidate(-np.inf, point[None])
            point = u @ self._X[near] / np.sum(u)
        return Candidate(self._gain_of_adding(point), point[None])

    def _gain_of_adding(self, point: Array) -> float:
        """How much the cost falls if nothing else moves; the rows that it captures see the mean of the others."""
        (first, d1, d2, _, loss), weight, reach = self._view, self._weight, cap(self._state)
        d, mass = np.sum((self._X - point) ** 2, axis=1), self._masses()
        if not (captured := float(weight @ ((d < d1) & (d < reach)))) > 1:
            return -np.inf
        d *= (captured / (captured - 1)) ** 2
        taken, near = (d < d1) & (d < reach), d1 < reach
        left = mass - np.bincount(first, weight * (taken & near), self.clusters)
        after = self._row_loss(np.minimum(d, d1), np.minimum(np.maximum(d, d1), d2))
        gain = weight @ np.where(d < reach, loss - after, 0.0) + self._noise_price * (weight @ (taken & ~near))
        return float(gain + np.sum(self._size_cost(mass) - self._size_cost(left)) - self._size_cost(weight @ taken))


def _means(X: Array, u: Array, cluster: Array, centers: Array) -> Array:
    """The mean of each cluster's rows, weighted by u, (n,); a centre that no row pulls at stays."""
    held = u > 0
    cluster, u, K = cluster[held], u[held], len(centers)
    mass = np.bincount(cluster, u, K)[:, None]  # (K, 1)
    sums = np.stack([np.bincount(cluster, u * column, K) for column in X[held].T], axis=1)  # (K, p)
    return np.where(mass > 0, sums / np.where(mass > 0, mass, 1.0), centers)
