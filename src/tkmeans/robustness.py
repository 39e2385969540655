"""How robust a clusterer is: where it breaks as rows are added or left out, and what one row can do to it."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.parallel import Parallel, delayed

from tkmeans.datasets.generators import strays
from tkmeans.docstrings import documented
from tkmeans.estimators import StudentTMixture
from tkmeans.estimators.validation import check_choice, check_clusterer, check_integer, check_n_jobs, check_real
from tkmeans.plots.diagnostic_displays import RobustnessDisplay
from tkmeans.plots.projections import full_covariances
from tkmeans.sources.number_checks import as_numbers, checked_points, reals
from tkmeans.stats import Array

# What the rows that are added are, as arguments of `strays`.
KINDS: dict[str, dict[str, Any]] = {"far": {}, "cauchy": {"cauchy": True}, "inside": {"distance": 1.0}}
KINDS |= {"clump": {"heaps": 1}, "point": {"heaps": 1, "width": 0.0}}
FRACTIONS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
TRIMMED, _TRIMS = tuple(i / 50 for i in range(11)), 10  # levels, and fits for each at the most


@documented("curve_*")
@dataclass(frozen=True, eq=False)
class RobustnessCurve:
    """What `breakdown_curve`, `influence_curve` or `trimming_curves` measured."""

    x: Array
    values: dict[str, Array]

    @documented(returns="share : float\n    NaN if not even the first share holds.")
    def holds_up_to(self, least_ari: float = 0.95) -> float:
        """Find the largest share of contamination that the clusterer stands.

        Parameters
        ----------
        least_ari : float, default=0.95
            The ARI that every draw must have, at this share and at all smaller ones.
        """
        holds = np.logical_and.accumulate(np.min(self.values["ari"], axis=1) >= least_ari)
        return float(self.x[holds][-1]) if holds[0] else float("nan")

    @documented("ax", returns="display : tkmeans.plots.RobustnessDisplay")
    def plot(self, ax: Any = None) -> Any:
        """Draw the first of the measures."""
        measure = next(iter(self.values))
        return RobustnessDisplay(curves={measure: self}, measure=measure).plot(ax=ax)


@documented("breakdown_*", "draws", returns='curve : RobustnessCurve\n    "ari", "shift" and "scale", by fraction.')
def breakdown_curve(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    kind: str = "far",
    fractions: Sequence[float] = FRACTIONS,
    distance: float = 10.0,
    n_draws: int = 3,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> RobustnessCurve:
    """Find out how much contamination a clusterer stands, by adding more and more of it."""
    check_choice("kind", kind, choices=KINDS)
    check_integer("n_draws", n_draws, least=1)
    check_real("distance", distance, positive=True)
    X, shares = _checked(estimator, X, n_jobs), _shares(fractions, "fractions")
    labels, _, clean = _fitted(estimator, X)
    y = labels if y is None else column_or_1d(y)
    check_consistent_length(X, y)
    means, spread = _clusters(X, y)
    rng = check_random_state(random_state)
    added = [round(len(X) * share / (1 - share)) for share in shares for _ in range(n_draws)]
    tables = [np.vstack([X, strays(X, n, rng, **{"distance": distance, **KINDS[kind]})]) for n in added]
    fits = Parallel(n_jobs=n_jobs)(delayed(_fitted)(estimator, rows) for rows in tables)
    found = {"ari": [adjusted_rand_score(y, labels[: len(X)]) for labels, _, _ in fits]}
    found |= {"shift": [_shift(means, centers) / spread for _, centers, _ in fits]}
    found |= {"scale": [scale / clean for _, _, scale in fits]}
    return RobustnessCurve(shares, {name: np.reshape(each, (-1, n_draws)) for name, each in found.items()})


@documented("influence_*", "draws", returns='curve : RobustnessCurve\n    "influence": for a mean, the distance.')
def influence_curve(
    estimator: Any, X: Any, *, distances: Any = None, random_state: Any = None, n_jobs: int | None = None
) -> RobustnessCurve:
    """Find out what one row can do, by adding it farther and farther away from a centre.

    This is Tukey's sensitivity curve, of the centre that moves most. The row goes outwards from the outermost centre.
    """
    X = _checked(estimator, X, n_jobs)
    at = np.arange(0, 30.5, 1.0) if distances is None else reals(distances, "distances")
    labels, centers, _ = _fitted(estimator, X)
    if centers is None:
        lacks = f"{type(estimator).__name__} has no centres, so no row can move them"
        raise ValueError(f"{lacks}; use an estimator that has")
    _, spread = _clusters(X, labels)
    away = centers - centers.mean(axis=0)
    k = int(np.argmax(np.linalg.norm(away, axis=1)))
    rng = check_random_state(random_state)
    way = away[k] if len(away) > 1 else rng.standard_normal(X.shape[1])
    rows = centers[k] + spread * at[:, None] * way / np.linalg.norm(way)
    fits = Parallel(n_jobs=n_jobs)(delayed(_fitted)(estimator, np.vstack([X, row])) for row in rows)
    moved = np.array([_shift(centers, after) for _, after, _ in fits])
    return RobustnessCurve(at, {"influence": moved[:, None] / spread * (np.sum(labels == k) + 1)})


@documented(
    "trimming_*",
    "rows",
    "n_jobs",
    returns="curves : dict of str to RobustnessCurve\n    By name, such as '2 clusters'.",
)
def trimming_curves(
    X: Any, n_clusters: Sequence[int], *, levels: Any = TRIMMED, estimator: Any = None, n_jobs: int | None = None
) -> dict[str, RobustnessCurve]:
    """Find out how clusters change as more of the least probable rows are left out, as tclust's ctlcurves do."""
    estimator = StudentTMixture(noise=False, bad_cells=False) if estimator is None else estimator
    X, shares = _checked(estimator, X, n_jobs), _shares(levels, "levels")
    if not (hasattr(estimator, "score_samples") and hasattr(estimator, "predict_proba")):
        raise TypeError(f"estimator must have score_samples and predict_proba, as mixtures have, got {estimator!r}")
    if not np.iterable(n_clusters) or not (n_clusters := list(n_clusters)):
        raise ValueError(f"n_clusters must name at least one number, as [2, 3] does, got {n_clusters!r}")
    for K in n_clusters:
        check_integer("n_clusters", K, least=1)
    fits = Parallel(n_jobs=n_jobs)(delayed(_trimmed)(estimator, X, K, share) for K in n_clusters for share in shares)
    values = np.reshape(fits, (len(n_clusters), len(shares), 1, 2))
    curves = (RobustnessCurve(shares, {"criterion": own[..., 0], "smallest": own[..., 1]}) for own in values)
    return {f"{K} cluster{'s' * bool(K > 1)}": curve for K, curve in zip(n_clusters, curves, strict=True)}


def _trimmed(estimator: Any, X: Array, n_clusters: int, level: float) -> tuple[float, float]:
    """The classification likelihood per row that is not left out, and the share of the smallest cluster."""
    size = "n_components" if "n_components" in estimator.get_params() else "n_clusters"
    model, kept = clone(estimator).set_params(**{size: int(n_clusters)}), np.arange(len(X))
    with warnings.catch_warnings(action="ignore"):  # a wrong number of clusters is what they would tell of
        for _ in range(_TRIMS):
            model.fit(X[kept])
            merit = model.score_samples(X) + np.log(np.max(model.predict_proba(X), axis=1))
            before, kept = kept, np.sort(np.argsort(-merit, kind="stable")[: len(X) - round(level * len(X))])
            if np.array_equal(before, kept):
                break
    sizes = np.bincount(model.predict(X[kept]), minlength=n_clusters)
    return float(np.mean(merit[kept])), float(np.min(sizes)) / len(kept)


def _shares(given: Any, name: str) -> Array:
    shares = np.asarray(as_numbers(given, name))
    if not (shares.dtype.kind in "biuf" and shares.ndim == 1 and len(shares) and np.all((shares >= 0) & (shares < 1))):
        raise ValueError(f"{name} must be numbers from 0 to below 1, got {given!r}")
    return shares


def _checked(estimator: Any, X: Any, n_jobs: int | None) -> Array:
    check_clusterer("estimator", estimator)
    check_n_jobs("n_jobs", n_jobs)
    X = checked_points(X, "X", 1e100)
    if not np.all(np.ptp(X, axis=0) > 1e-100):
        raise ValueError("X must have a spread in every column; drop those that are constant")
    return X


def _fitted(estimator: Any, X: Array) -> tuple[Array, Any, float]:
    """The labels and the centres, (K, p) or None, and the width of a cluster, NaN where there is no estimate."""
    with warnings.catch_warnings(action="ignore"):  # that contaminated rows give odd clusters is the point
        model = clone(estimator)
        labels = np.asarray(model.fit_predict(X))
    centers = getattr(model, "cluster_centers_", getattr(model, "means_", None))
    width = np.sqrt(getattr(model, "scale_", getattr(model, "inertia_", np.nan) / X.size))
    if (matrices := full_covariances(model)) is not None:  # the geometric mean of all axes of all components
        width = np.exp(np.mean(np.linalg.slogdet(matrices)[1]) / X.shape[1] / 2)
    return labels, None if centers is None else np.asarray(centers), float(width)


def _clusters(X: Array, y: Array) -> tuple[Array, float]:
    """The mean of each cluster, and the standard deviation within them, pooled over features and clusters."""
    names, of = np.unique(y, return_inverse=True)
    means = np.array([X[of == k].mean(axis=0) for k in range(len(names))])
    if not (spread := float(np.sqrt(np.mean((X - means[of]) ** 2)))) > 0:
        equal = f"X has {len(means)} clusters of equal rows, without a width to measure in"
        raise ValueError(f"{equal}; use fewer clusters")
    return means, spread


def _shift(means: Array, centers: Array | None) -> float:
    """The distance of the worst centre from the one that it is paired with; infinite if one has no centre."""
    if centers is None or len(centers) < len(means):
        return float("nan" if centers is None else "inf")
    away = cdist(means, centers)
    return float(np.max(away[linear_sum_assignment(away)]))
