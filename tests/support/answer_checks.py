"""What may become of a hostile input: a right answer, or a refusal that is on the list."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
from scipy.special import gammaln
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from support.hostile_cases import HostileCase
from tkmeans import MiniBatchTKMeans, StudentTMixture
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.stats import HORIZON

# Every way to be refused: a name for the tables, the classes of the exception, and the words it must have.
# docs/guides/errors.md is this list for people.
REFUSALS: dict[str, tuple[tuple[type[Exception], ...], str]] = {
    "weights": ((ValueError, TypeError), r"sample_weight (must|holds|is)"),
    "start": (
        (ValueError, TypeError),
        r"\b(init|means_init) (must|contains|holds) |init of the user's own|unexpected keyword argument 'random_state'"
        r"|The parameter '[\w ]+' should |'[\w ]+ precision' should be",
    ),
    "no table": (
        (ValueError, TypeError),
        r"X (in column .* )?(holds|must be) |Expected 2D array|Found array with dim|inhomogeneous"
        r"|Complex data not supported|argument must be .*string.* or .*number|np.matrix is not supported"
        r"|setting an array element|Feature names are only supported|Input should have at least 1 dimension",
    ),
    "sparse": ((TypeError,), r"Sparse data was passed"),
    "empty": ((ValueError,), r"Found array with \d+ (sample|feature)\(s\).*minimum of \d is required"),
    "infinite": ((ValueError,), r"X contains (NaN, )?infinity|X has infinite values in feature"),
    "missing values": ((ValueError,), r"X contains NaN"),
    "feature without values": ((ValueError,), r"feature .* has no observed value in any row"),
    "spread out of range": ((ValueError,), r"the spread of X is .*; rescale X"),
    "fewer rows than clusters": ((ValueError,), r"should be >= n_(clusters|components)=\d+; choose at most \d+"),
    "other features": ((ValueError,), r"X has \d+ features, but \w+ is expecting \d+"),
    "parameter": ((ValueError, TypeError), r"^\w+ must be |cannot be used to seed|n_jobs"),
    "not fitted yet": ((NotFittedError,), r"go on with partial_fit|not fitted yet|fit again, or resume"),
    "checkpoint": (
        (ValueError,),
        r"is not a whole checkpoint|checkpoint .* (is of another fit|cannot be resumed from)",
    ),
    "no file": ((FileNotFoundError,), r"nowhere"),
}

ANSWERS = ("predict", "predict_proba", "transform", "score_samples", "robust_weights", "outlier_pvalues", "outliers")
ANSWERS += ("noise_probability",)
ANSWERS += ("score", "assignment_entropy", "bic", "icl")


class WrongAnswer(AssertionError):
    """A result that cannot be, or an exception that is on no list."""


def outcome_of(case: HostileCase) -> str:
    """Try one case: "result", or the name of the refusal; everything else is an error."""
    before = _frozen(case.X), _frozen(case.weight)
    params = dict(case.estimator.get_params(deep=False))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no warning of NumPy's may leak; our own are UserWarnings
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings("ignore", "Explicit initial center position passed|init_size=", RuntimeWarning)
        outcome = _refusal(lambda: _try(case))
    _hold(before == (_frozen(case.X), _frozen(case.weight)), "the input was changed")
    now = case.estimator.get_params(deep=False)
    _hold(all(now[name] is value for name, value in params.items()), "a parameter was changed")
    _hold(not (case.refused and outcome == "result"), "nonsense was accepted")
    return outcome


def _refusal(act) -> str:
    try:
        act()
    except WrongAnswer:
        raise
    except Exception as error:
        for name, (classes, words) in REFUSALS.items():
            if isinstance(error, classes) and re.search(words, str(error)):
                return name
        raise WrongAnswer(f"undocumented {type(error).__name__}: {str(error)[:200]}") from error
    return "result"


def _try(case: HostileCase) -> None:
    model = case.estimator
    if case.given is not None:
        model.fit(case.given)
        outcomes = {
            _refusal(lambda name=name: getattr(model, name)(case.X)) for name in ANSWERS if hasattr(model, name)
        }
        _hold(len(outcomes) == 1, f"methods disagree on the same rows: {outcomes}")
        model.predict(case.X)  # raises what all of them raised
        if case.rows is not None:
            check_answers(model, case.rows)
        return
    if case.batches:
        for part in np.array_split(case.X, min(case.batches, len(case.X))):
            model.partial_fit(part)
        model.predict(part)  # raises if there were too few rows so far
        check_attributes(model, part)
        check_answers(model, part)
        return
    model.fit(case.X, sample_weight=case.weight)
    if case.rows is None:
        return
    check_attributes(model, case.rows)
    check_order_and_box(model, case.rows, case.mass)
    check_answers(model, case.rows)
    if case.X is not case.rows:
        again = clone(model).fit(case.rows)
        _hold(np.array_equal(_centers(again), _centers(model)), "the same numbers in another container, another answer")


# ---- what must be true of a fit ---------------------------------------------------------


def check_attributes(model: Any, rows: np.ndarray) -> None:
    """Everything that was fitted is finite and makes sense."""
    empty = np.all(np.isnan(rows), axis=1)
    for name, value in vars(model).items():
        if name.endswith("_") and not name.startswith("_") and np.asarray(value).dtype.kind in "fiu":
            value = np.asarray(value)[~empty] if name == "outlier_pvalues_" else value
            _hold(np.all(np.isfinite(value)), f"{name} is not finite")
    K, labels = len(_centers(model)), getattr(model, "labels_", np.zeros(len(rows), int))
    _hold(labels.shape == (len(rows),) and labels.dtype.kind == "i", "labels_ have another shape")
    _hold(labels.min() >= 0 and labels.max() < K, "a label that is no cluster's")
    if hasattr(model, "labels_"):
        _hold(np.array_equal(labels, model.predict(rows)), "labels_ are not what predict says")
    takes_single = not isinstance(model, (KMedians, KMedoids))
    wanted = np.float32 if rows.dtype == np.float32 and takes_single else np.float64
    _hold(_centers(model).dtype == wanted, f"centres of type {_centers(model).dtype}")
    for name in ("cluster_weights_", "weights_"):
        if hasattr(model, name):
            weights = getattr(model, name)
            _hold(np.all(weights >= 0) and abs(weights.sum() - 1) < 1e-6, f"{name} are no probabilities")
    for name in ("scale_", "dof_"):
        _hold(np.all(np.asarray(getattr(model, name, 1.0)) > 0), f"{name} is not positive")
    if hasattr(model, "covariances_"):
        _check_covariances(model)
    climbs = type(model).__name__ in ("TKMeans", "StudentTMixture")
    if climbs:
        history = np.array(model.lower_bounds_)
        # Rounding of the log of the unit, which is taken off every value.
        _hold(np.all(np.diff(history) >= -1e-12 * (1 + np.abs(history[1:]))), "the log-likelihood fell")


def _check_covariances(model: Any) -> None:
    spread = model.covariances_
    if model.covariance_type not in ("full", "tied"):
        _hold(np.all(spread > 0), "a variance that is not positive")
        return
    diagonal = np.sqrt(np.diagonal(spread, axis1=-2, axis2=-1))
    correlation = spread / diagonal[..., :, None] / diagonal[..., None, :]
    # reg_covar in the prior leaves the correlations positive up to rounding.
    _hold(np.linalg.eigvalsh(correlation).min() > -1e-10, "a covariance matrix that is not positive")


def check_order_and_box(model: Any, rows: np.ndarray, mass: np.ndarray | None) -> None:
    """Clusters are numbered by size, and centres lie among the rows that count."""
    mass = np.ones(len(rows)) if mass is None else mass
    centers = _centers(model)
    if hasattr(model, "inertia_") and not _has_ties(model, rows):
        known = ~np.all(np.isnan(rows), axis=1)
        sizes = np.bincount(model.labels_[known], mass[known], len(centers))
        # Sums of weights may be rounded.
        _hold(np.all(np.diff(sizes) <= 1e-6 * sizes.sum()), f"clusters are not numbered by size: {sizes}")
    if not isinstance(getattr(model, "init", ""), str) or getattr(model, "means_init", None) is not None:
        return  # a centre of the user's own that nobody claims may lie anywhere
    counted = rows[mass > 0].astype(np.float64)
    if getattr(model, "covariance_type", "") in ("full", "tied") and np.any(np.isnan(counted)):
        return  # what is missing is continued by regression, from a centre that began far away beyond the box
    low, high, middle = np.nanmin(counted, axis=0) / 2, np.nanmax(counted, axis=0) / 2, centers.astype(float) / 2
    # All of this is halved, as the largest numbers add up to more. Centres are means: they cannot leave the box but
    # by rounding, in their own type, of coordinates from zero and from an origin that may be the far end of the
    # box; and by extrapolation that has not converged, which is held to the box's size.
    with np.errstate(over="ignore"):
        slack = 4 * np.finfo(centers.dtype).eps * (np.maximum(np.abs(low), np.abs(high)) + (high - low))
        extrapolates = getattr(model, "accelerate", isinstance(model, MiniBatchTKMeans))  # on its first rows, always
        room = (high - low) * (1.0 if extrapolates else 1e-9) + slack
        # A coordinate that none of a cluster's rows has may lie anywhere.
        label = np.asarray(model.predict(rows))
        has = np.array([np.any(~np.isnan(rows[(mass > 0) & (label == k)]), axis=0) for k in range(len(centers))])
        beyond = (middle < low - room) | (middle > high + room)
        _hold(not np.any(beyond & has), "a centre outside of the rows")


# ---- what must be true of answers ---------------------------------------------------------


def check_answers(model: Any, rows: np.ndarray) -> None:
    """What a fitted model says of rows is finite, consistent, and what the definitions say."""
    n, K = len(rows), len(_centers(model))
    empty = np.all(np.isnan(rows), axis=1)
    answers = {name: getattr(model, name)(rows) for name in ANSWERS if hasattr(model, name)}
    for name, value in answers.items():
        value = np.asarray(value)[~empty] if name == "outlier_pvalues" else value
        _hold(np.all(np.isfinite(value)), f"{name} is not finite")
    if "transform" in answers:
        _check_distances(model, rows, answers["transform"])
    if "predict_proba" in answers:
        tau = answers["predict_proba"]
        single = tau.dtype == np.float32
        _hold(tau.shape == (n, K) and tau.min() >= 0, "probabilities of another shape or negative")
        _hold(np.abs(tau.sum(axis=1) - 1).max() < (1e-5 if single else 1e-12), "probabilities do not sum to 1")
        best = tau[np.arange(n), answers["predict"]]
        _hold(np.all(best >= tau.max(axis=1) - (1e-6 if single else 1e-14)), "a label is not the most probable")
    if "outliers" in answers:
        _hold(answers["outliers"].dtype == bool and answers["outliers"].shape == (n,), "outliers of another shape")
        pvalues = answers["outlier_pvalues"][~empty]
        _hold(np.all((pvalues >= 0) & (pvalues <= 1)), "a p-value that is none")
        if not isinstance(model, StudentTMixture):
            _check_density(model, rows, answers)


def _check_distances(model: Any, rows: np.ndarray, distances: np.ndarray) -> None:
    if isinstance(model, StudentTMixture):  # in the metric of each component
        _hold(np.all(distances >= 0), "a distance is negative")
        return
    metric = "cityblock" if isinstance(model, KMedians) else getattr(model, "metric", "euclidean")
    if metric not in ("euclidean", "cityblock"):
        return
    if hasattr(model, "cell_bounds_"):
        rows = np.where(model.find_bad_cells(rows), np.nan, rows)
    away = np.abs(rows[:, None].astype(np.longdouble) - _centers(model).astype(np.longdouble))
    # Extended precision holds the squares of all doubles; where a machine has none, overflow says nothing.
    exact = np.sqrt(np.nansum(away**2, axis=2)) if metric == "euclidean" else np.nansum(away, axis=2)
    known = np.isfinite(exact) & (exact < np.finfo(distances.dtype).max)
    # Rows are measured in a frame whose origin is a row or a centre: what is lost is a few units in the last
    # place of the coordinates, or of the distance, or the size of what is as good as zero.
    eps = 16 * np.finfo(distances.dtype).eps * np.sqrt(rows.shape[1])
    size = np.nanmax(np.abs(_centers(model).astype(np.longdouble)), initial=0)
    size = np.maximum(size, np.nanmax(np.abs(np.nan_to_num(rows)).astype(np.longdouble), axis=1))[:, None]
    # The latter: in the unit of the model, the square of each coordinate is a normal number or as good as zero.
    least = np.finfo(distances.dtype).smallest_normal * rows.shape[1] * np.longdouble(getattr(model, "scale_", 0.0))
    wrong = np.abs(distances - exact) > eps * np.maximum(exact, size) + np.sqrt(least)
    _hold(not np.any(wrong & known), "a distance is wrong")


def _check_density(model: Any, rows: np.ndarray, answers: dict[str, Any]) -> None:
    """Memberships and log-densities by the formula, in extended precision."""
    nu, alpha, centers = float(model.dof_), np.longdouble(model.scale_), _centers(model).astype(np.longdouble)
    if nu > 1e3 or rows.dtype == np.float32 or np.finfo(np.longdouble).eps > 1e-18:
        return
    seen = ~np.isnan(rows)
    p = seen.sum(axis=1)[:, None]
    d = np.sqrt(np.nansum((rows[:, None].astype(np.longdouble) - centers) ** 2, axis=2))
    with np.errstate(divide="ignore"):
        height = np.log(model.cluster_weights_) + gammaln((nu + p) / 2) - gammaln(nu / 2)
    height = height - p / 2 * np.log(nu * np.pi * alpha)
    # A row is known to a few units in the last place of its own and the centres' coordinates: what is
    # said of it must be true of some distances within that.
    size = np.maximum(np.abs(np.nan_to_num(rows)).max(axis=1), np.abs(centers).max())[:, None].astype(np.longdouble)
    lost = 64 * np.finfo(float).eps * np.sqrt(p) * np.maximum(size, d)
    low, high = (
        height - (nu + p) / 2 * np.log1p(reach**2 / (nu * alpha)) for reach in (d + lost, np.fmax(d - lost, 0))
    )
    # Beyond the horizon a row is as good as infinitely far, and its density is that at the horizon.
    near = d.max(axis=1) < 0.1 * HORIZON["float64"] * np.sqrt(alpha)
    said = answers["score_samples"]
    slack = 1e-11 * (1 + np.abs(said))
    wrong = (said < _log_sum(low) - slack) | (said > _log_sum(high) + slack)
    _hold(not np.any(wrong & near), "a log-density is wrong")
    tau = answers["predict_proba"]
    if hasattr(model, "cell_bounds_"):  # what is beyond is left out: tests/test_bad_cells.py
        near &= ~np.any(model.find_bad_cells(rows), axis=1)
    for k in range(len(centers)):
        others = np.arange(len(centers)) != k
        least = np.exp(low[:, k] - np.logaddexp(low[:, k], _log_sum(high[:, others])))
        most = np.exp(high[:, k] - np.logaddexp(high[:, k], _log_sum(low[:, others])))
        wrong = (tau[:, k] < least - 1e-11) | (tau[:, k] > most + 1e-11)
        _hold(not np.any(wrong & near), "a probability is wrong")


def _log_sum(log_f: np.ndarray) -> np.ndarray:
    if not log_f.shape[1]:
        return np.full(len(log_f), -np.inf)
    return np.logaddexp.reduce(log_f, axis=1)


def _has_ties(model: Any, rows: np.ndarray) -> bool:
    """Whether a row belongs to two clusters alike: its label may then change with their order."""
    if len(_centers(model)) == 1:
        return False
    near = -model.predict_proba(rows) if hasattr(model, "predict_proba") else model.transform(rows)
    first, second = np.sort(near, axis=1)[:, :2].T
    return bool(np.any(second - first <= 1e-6 * np.abs(second)))


# ---- small things --------------------------------------------------------------------------


def _centers(model: Any) -> np.ndarray:
    return model.means_ if hasattr(model, "means_") else model.cluster_centers_


def _hold(condition: Any, complaint: str) -> None:
    if not condition:
        raise WrongAnswer(complaint)


def _frozen(value: Any) -> Any:
    """What a value is now, to compare with later."""
    if isinstance(value, np.ndarray):
        return pickle.dumps((np.array(value), value.dtype, getattr(value, "mask", None)))
    if hasattr(value, "to_numpy"):
        return pickle.dumps(value.to_numpy())
    if isinstance(value, (list, tuple, dict, float)):
        return repr(value)
    return None
