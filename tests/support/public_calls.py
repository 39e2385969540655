"""Hostile arguments for every parameter of every public function, by reflection.

`PARAMETERS` says of each parameter what kind of thing it is, `VALUES` has hostile values of each kind, and `CALLS` an
ordinary call of each function. A hostile call is an ordinary one with one argument replaced.
`tests/test_hostile.py` fails for a public name without a call and for a parameter without a kind.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

import tkmeans
from support.answer_checks import REFUSALS, WrongAnswer
from support.hostile_cases import INVALID_PARAMETERS
from support.hostile_values import CONTAINERS, DTYPES, INVALID_TABLES, INVALID_WEIGHTS, ROW_KINDS, WEIGHTS
from tkmeans import DataFile, FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids

MODULES = ("tkmeans", "tkmeans.baselines", "tkmeans.metrics", "tkmeans.datasets", "tkmeans.plots")
ESTIMATORS = (TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture, KMedians, KMedoids)

# Results that hold what they are given: not called with anything hostile. An exception; a list; functions of others.
RECORDS = {"Description", "RobustnessCurve", "Selection", "Stability", "ModelFileError", "REAL", "SYNTHETIC"}
RECORDS |= {"ClustersDisplay", "ConvergenceDisplay", "RobustWeightsDisplay", "RobustnessDisplay"}
RECORDS |= {"SelectionDisplay", "StabilityDisplay", "adjusted_rand_score", "show_versions"}


class Hostile(NamedTuple):
    """A value to be passed."""

    value: Any
    refused: bool = False  # whether it must be refused
    taken: bool = False  # whether it must lead to a result


# ---- an ordinary call of everything --------------------------------------------------------

RNG = np.random.default_rng(0)
ROWS = np.round(np.vstack([RNG.normal(size=(16, 2)), RNG.normal(size=(14, 2)) + 12, [[90.0, -70.0]]]), 3)
LABELS = np.repeat([0, 1], [16, 15])
MODEL = TKMeans(2, random_state=0).fit(ROWS)


def _folder() -> Path:
    folder = Path(tempfile.gettempdir()) / "hostile-calls"
    if not folder.exists():
        folder.mkdir(exist_ok=True)
        np.savetxt(folder / "rows.csv", ROWS, delimiter=",", header="a,b", comments="", fmt="%.3f")
        tkmeans.save(MODEL, folder / "model.json")
    return folder


def _fresh(random: Random) -> Any:
    return random.choice(ESTIMATORS)(2, random_state=0)


def _mixture(random: Random) -> Any:
    return random.choice([TKMeans(2, random_state=0), StudentTMixture(2, random_state=0)])


ONE_FIT = {"n_resamples": 2, "random_state": 0}
CALLS: dict[str, Callable[[Random], tuple[Callable[..., Any], dict[str, Any]]]] = {
    "DataFile": lambda r: (_fit_of_file, {"path": _folder() / "rows.csv"}),
    **dict.fromkeys(
        ("select_clusters", "select_n_clusters"),
        lambda r: (tkmeans.select_clusters, {"X": ROWS, "n_clusters": [1, 2], "random_state": 0}),
    ),
    "stability": lambda r: (tkmeans.stability, {"estimator": _fresh(r), "X": ROWS, **ONE_FIT}),
    "breakdown_curve": lambda r: (
        tkmeans.breakdown_curve,
        {"estimator": TKMeans(2), "X": ROWS, "fractions": [0.1], "n_draws": 1, "random_state": 0},
    ),
    "influence_curve": lambda r: (tkmeans.influence_curve, {"estimator": TKMeans(2), "X": ROWS, "distances": [3.0]}),
    "trimming_curves": lambda r: (tkmeans.trimming_curves, {"X": ROWS, "n_clusters": [1, 2], "levels": [0.1]}),
    "describe": lambda r: (tkmeans.describe, {"model": MODEL, "X": ROWS}),
    "write_report": lambda r: (
        tkmeans.write_report,
        {"path": _folder() / "report.html", "estimator": MODEL, "X": ROWS},
    ),
    "save": lambda r: (tkmeans.save, {"estimator": MODEL, "path": _folder() / "saved.json"}),
    "load": lambda r: (tkmeans.load, {"path": _folder() / "model.json"}),
    "to_onnx": lambda r: (tkmeans.to_onnx, {"model": MODEL}),
    "centroid_index": lambda r: (_of("metrics", "centroid_index"), {"centers": ROWS[:3], "other": ROWS[3:6]}),
    "clustering_mse": lambda r: (_of("metrics", "clustering_mse"), {"X": ROWS, "labels": LABELS}),
    "within_between_ratio": lambda r: (
        _of("metrics", "within_between_ratio"),
        {"X": ROWS, "labels": LABELS, "centers": ROWS[[0, 20]]},
    ),
    "make_contaminated": lambda r: (
        _of("datasets", "make_contaminated"),
        {"n_samples": 30, "n_clusters": 2, "random_state": 0},
    ),
    "make_like": lambda r: (_of("datasets", "make_like"), {"name": "dim032", "random_state": 0}),
    "contaminate": lambda r: (_of("datasets", "contaminate"), {"X": ROWS, "y": LABELS, "random_state": 0}),
    "scaled": lambda r: (_of("datasets", "scaled"), {"X": ROWS}),
    "fetch_benchmark": lambda r: (_of("datasets", "fetch_benchmark"), {"name": "bezdekiris"}),
}
for _Estimator in ESTIMATORS:
    _name = _Estimator.__name__
    CALLS[_name] = lambda r, E=_Estimator: (_fit_with(E), {"random_state": 0})
    for _method, _ in inspect.getmembers(_Estimator, callable):
        CALLS[f"{_name}.{_method}"] = lambda r, E=_Estimator, m=_method: _method_of(E, m)


def _of(module: str, name: str) -> Callable[..., Any]:
    return getattr(importlib.import_module(f"tkmeans.{module}"), name)


def _fit_with(Estimator: Any) -> Callable[..., Any]:
    size = Estimator._size

    def fit(**params: Any) -> Any:
        return Estimator(**{size: 2, **params}).fit(ROWS)

    return fit


def _fit_of_file(**params: Any) -> Any:
    return TKMeans(2, random_state=0).fit(DataFile(**params))


def _method_of(Estimator: Any, method: str) -> tuple[Callable[..., Any], dict[str, Any]]:
    model = Estimator(2, random_state=0)
    if not method.startswith(("fit", "partial_fit")):
        model.fit(ROWS)
    return getattr(model, method), {} if method == "sample" else {"X": ROWS}


# ---- what every parameter is -----------------------------------------------------------------

PARAMETERS = {
    "X": "rows",
    "sample_weight": "weights",
    "y": "ignored",
    "estimator": "model",
    "model": "model",
    "scaler": "scaler",
    "selection": "selection",
    "path": "path",
    "out": "out",
    "resume": "path or None",
    "checkpoint": "out",
    "data_home": "out",
    "base_url": "word or path",
    "centers": "points",
    "other": "points",
    "labels": "labels",
    "means_init": "points or None",
    "weights_init": "points or None",
    "precisions_init": "points or None",
    "init": "start",
    "n_init": "count or auto",
    "max_time": "real or None",
    "half_life": "real or None",
    "level": "real or None",
    "dof": "real or estimate",
    "progress": "switch or callable",
    "random_state": "seed",
    "columns": "names",
    "without": "names",
    "keep": "names",
    "missing": "names",
    "feature_names": "names",
    "row_names": "names",
    "categories": "mapping",
    "fractions": "reals",
    "distances": "reals",
    "levels": "reals",
    "n_jobs": "jobs",
    "title": "text",
    "call": "text",
    "notes": "names",
    "verbose": "verbosity",
    "verbose_interval": "ignored",
    "reassignment_ratio": "ignored",
    "noise": "switch or auto",
    "bad_cells": "switch or auto",
    "header": "switch or None",
}
PARAMETERS |= dict.fromkeys(
    ["n_clusters", "n_components", "max_iter", "batch_size", "n_resamples", "n_draws", "n_samples", "n_features"],
    "count",
)
PARAMETERS |= dict.fromkeys(["init_size", "max_no_improvement", "min_cluster_size"], "count or None")
PARAMETERS |= {"outlier_label": "label"}
PARAMETERS |= dict.fromkeys(
    ["tol", "reg_covar", "distance", "shrinkage", "size_ratio", "outlier_fraction", "outlier_range", "cluster_std"],
    "real",
)
PARAMETERS |= {"fraction": "real"}
PARAMETERS |= dict.fromkeys(["accelerate", "copy_x", "shared_dof", "warm_start", "compute_labels"], "switch")
PARAMETERS |= dict.fromkeys(["training_rows", "return_X_y"], "switch")
PARAMETERS |= dict.fromkeys(
    ["cluster_weights", "engine", "algorithm", "covariance_type", "init_params", "metric"], "word"
)
PARAMETERS |= dict.fromkeys(["method", "rule", "criterion", "kind", "name"], "word")
PARAMETERS |= dict.fromkeys(["delimiter", "decimal", "thousands", "encoding", "table"], "word or None")
PARAMETERS |= {"shapes": "shapes"}

# Where a name means something else, or an ordinary value of the kind would take too long.
SPECIAL = dict.fromkeys(("select_clusters.n_clusters", "select_n_clusters.n_clusters"), "counts")
SPECIAL |= {"trimming_curves.n_clusters": "counts"}
SPECIAL |= dict.fromkeys(("select_clusters.estimator", "select_n_clusters.estimator"), "TKMeans or None")
SPECIAL |= {"trimming_curves.estimator": "model or None"}
SPECIAL |= {"fetch_benchmark.return_X_y": "switch or None"}
SPECIAL |= {
    "contaminate.y": "labels",
    "breakdown_curve.y": "labels or None",
    "save.path": "out",
    "write_report.path": "out",
}
SPECIAL |= {"DataFile.path": "path", "fit_transform.y": "ignored"}


# ---- hostile values of every kind --------------------------------------------------------------

INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
FLOATS = [np.float16, np.float32, np.float64, np.longdouble]
JUNK: list[Any] = [1j, [2], {}, {"a": 1}, b"auto", np.array([1, 2]), np.datetime64("2020"), pd.NA, object(), ...]
JUNK += [(1, 2), set(), np.ma.masked, Decimal("NaN"), range(3), np.array(None), type, "\x00", "\ud800", "x" * 10_000]


def _all(values: Any, **traits: bool) -> list[Hostile]:
    return [Hostile(value, **traits) for value in values]


COUNT = _all([kind(2) for kind in INTEGERS], taken=True) + _all(
    [2.5, np.nan, "3", -1, np.float64(2), True], refused=True
)
COUNT += _all([0, np.array(2), 2**70]) + _all(JUNK, refused=True)
REAL = _all([kind(1) for kind in [*FLOATS, *INTEGERS]]) + _all([Fraction(3, 2), 1, 1.0, 0, np.array(1.0)])
REAL += _all([-1.0, np.nan, "1", True, *(kind(-1) for kind in FLOATS)], refused=True) + _all(JUNK, refused=True)
REAL += _all([1e-300, 1e300, 5e-324, np.inf, 10**400])
NONE = _all([None])
AUTO = "auto"
SWITCH = _all([True, False, np.True_], taken=True) + _all(["no", 2.5, None, AUTO, *JUNK], refused=True) + _all([0, 1])
WORD = _all(["nonsense", "", 3, None, True, np.str_("nonsense"), *JUNK], refused=True)
NAMES = _all(
    [["a"], ["b", "a"], ("a",), np.array(["a", "b"]), pd.Index(["a"]), [], None, "a", ["a", "a"], ["nobody"], [None]]
)
NAMES += _all([[1.5], [["a"]], 5, {"a": 1}, ["\x1b[31ma"], ["<script>"], object(), iter(["a"]), [b"a"], ["a"] * 5000])
NAMES += _all([["x"] * 31, list(range(31)), [f"{i}" for i in range(31)], ["a", np.str_("b")], [np.nan, "a"]])
PATHS = _all(["/nowhere/at/all.csv", "", "/dev/fd", "/dev/null", 5, b"/nowhere", None, "\x00", "x" * 5000, *JUNK[:9]])
LABELS_OF = [
    lambda X: LABELS,
    lambda X: LABELS.astype(np.int8),
    lambda X: LABELS.astype(float),
    lambda X: LABELS.tolist(),
]
LABELS_OF += [lambda X: pd.Series(LABELS), lambda X: LABELS.astype(str), lambda X: LABELS - 1, lambda X: LABELS * 10**6]
LABELS_OF += [lambda X: LABELS[:-1], lambda X: LABELS[:, None], lambda X: LABELS.astype(object), lambda X: None]
LABELS_OF += [
    lambda X: np.where(LABELS, np.nan, 0.0),
    lambda X: "labels",
    lambda X: 5,
    lambda X: [],
    lambda X: LABELS * 0.5,
]
POINTS = [*(lambda X, make=make: make(X[:2]) for make in [*CONTAINERS.values(), *INVALID_TABLES.values()])]
MODELS = _all(["TKMeans", None, 5, TKMeans, object(), [], RobustScaler(), {}], refused=True)
MODELS += _all([TKMeans(2), StudentTMixture(2), KMedians(2), make_pipeline(RobustScaler(), TKMeans(2)), MODEL])
MODELS += _all(
    [FastTKMeans(2).fit(ROWS), MiniBatchTKMeans(2).fit(ROWS), make_pipeline(RobustScaler(), KMedoids(2)).fit(ROWS)]
)
MODELS += _all([TKMeans(40), TKMeans(2).fit(np.c_[ROWS, ROWS])])

VALUES: dict[str, list[Hostile] | list[Callable[[np.ndarray], Any]]] = {
    "count": COUNT,
    "count or None": COUNT + NONE,
    "count or auto": COUNT + _all(["auto"]),
    "label": _all([-1, np.int8(-1), np.uint8(7), 2**31 - 1, None, 2**31, 2**70])
    + COUNT[8:11]
    + _all(JUNK, refused=True),
    "counts": _all(
        [[np.int8(1), np.uint8(2)], range(1, 3), {2, 1}, {2: None}.keys(), np.array([1, 2], np.int8), (2,)], taken=True
    )
    + _all([[], [0], [2.5], ["2"], "12", 3, None, [True], [40], {}, 1j, [[1]], [np.nan], object()], refused=True),
    "real": REAL,
    "real or None": REAL + NONE,
    "real or estimate": REAL + _all(["estimate"]),
    "reals": _all([[0.1], np.array([0.1], np.float32), (0.1, 0.2), pd.Series([0.1])])
    + _all([["x"], [np.nan], [np.inf], [-1.0], [1j], "0.1", [[0.1]], [None], {}, object(), [b"x"], [1e300]]),
    "switch": SWITCH,
    "switch or auto": [each for each in SWITCH if each.value is not AUTO] + _all(["auto"]),
    "switch or None": _all([True, False, None, "no", 1, 2.5, *JUNK]),
    "switch or callable": _all([False, lambda *_: None, None, "yes", 1, *JUNK]),
    "word": WORD,
    "word or None": [each._replace(refused=False) for each in WORD]
    + _all([";", ",", ".", "utf-8", "latin-1", "\n", "é"]),
    "word or path": _all(["file:///nowhere/", "", "nonsense://x", None, 5, *JUNK]),
    "text": _all(["<script>alert(1)</script>", "", "\x1b[31m", "é\u202e", None, 5, *JUNK]),
    "names": NAMES,
    "mapping": _all(
        [{}, None, {"c": ["x"] * 31}, {"c": np.arange(31)}, {5: ["x"] * 31}, {"<b>": ["<i>"] * 31}, [], "c"]
    )
    + _all([{"c": ["x"]}, {"c": None}, {"c": 5}, {"c": [["x"]] * 31}, {"c": [None, np.nan, 1j] + [0] * 28}, object()]),
    "shapes": _all([None, ("full",), ["tied", "diag"], {"spherical"}], taken=True)
    + _all(["full", (), [], ["nonsense"], [3], 5, [None], {}, 1j, object()], refused=True),
    "path": PATHS,
    "path or None": PATHS,
    "out": _all([None, "/nowhere/at/all", "/", 5, "", "\x00", *JUNK[:9]]),
    "model": MODELS,
    "model or None": [each for each in MODELS if each.value is not None] + _all([None], taken=True),
    "TKMeans or None": [*_all([None, TKMeans(2), TKMeans(3, dof=1.0), MODEL], taken=True), *MODELS[:1], *MODELS[2:6]],
    "scaler": _all(
        [None, RobustScaler(), RobustScaler().fit(ROWS), RobustScaler().fit(ROWS[:, :1]), "x", 5, TKMeans(2)]
    ),
    "selection": _all([None, "x", 5, tkmeans.select_n_clusters(ROWS, [1, 2]), object(), MODEL]),
    "seed": _all([0, np.int8(3), np.uint32(7), np.int64(5), None, np.random.RandomState(0), 2**32 - 1])
    + _all([-1, 2.5, "seed", 2**40, 1j, {}, np.random.default_rng(0), object()], refused=True),
    "jobs": _all([1, np.int8(1), None, np.uint64(1)]) + _all([0, "two", 1.5, [1], 1j, {}, True], refused=True),
    "verbosity": _all([0, False, np.int8(0), "loud", None, 1j, [1], {}, object(), -1]),
    "ignored": _all([None, *JUNK]),
    "start": _all([value for value in INVALID_PARAMETERS["init"]])
    + _all(["k-means++", ROWS[:2], ROWS[:2].tolist(), *JUNK]),
    "points": POINTS,
    "points or None": [
        *POINTS,
        lambda X: None,
        lambda X: np.ones(2) / 2,
        lambda X: np.ones((2, 2, 2)),
        lambda X: np.eye(2),
    ],
    "labels": LABELS_OF,
    "labels or None": LABELS_OF,
    "rows": [
        *(lambda X, make=make: make(X) for make in [*CONTAINERS.values(), *DTYPES.values(), *INVALID_TABLES.values()]),
        *(lambda X, make=make: make(np.random.default_rng(1), 31, 2) for make in ROW_KINDS.values()),
        lambda X: X[:1],
        lambda X: X[:, :1],
        lambda X: np.where(np.arange(31)[:, None] == 5, -1.797e308, X),
        lambda X: pd.DataFrame(X, columns=["\x1b[31mred", "<script>"]),
        lambda X: pd.DataFrame(X, columns=["a", "a"]),
    ],
    "weights": [
        *(lambda X, make=make: make(X, Random(0)) for make in [*WEIGHTS.values(), *INVALID_WEIGHTS.values()]),
        *(lambda X, kind=kind: np.ones(31, kind) for kind in [*INTEGERS, *FLOATS, bool, object]),
        *(lambda X, kind=kind: kind(2) for kind in [*INTEGERS, *FLOATS]),
        lambda X: np.where(np.arange(31) == 30, 0.0, 1.0),
    ],
}


def public_parameters() -> Iterator[tuple[str, str]]:
    """Every public function, class and method that is called, with each of its parameters."""
    for home in MODULES:
        module = importlib.import_module(home)
        for name in module.__all__:
            if name in RECORDS:
                continue
            called = getattr(module, name)
            yield from ((name, parameter) for parameter in _parameters(called))
            if inspect.isclass(called):
                for method, function in inspect.getmembers(called, callable):
                    ours = (getattr(function, "__module__", None) or "").startswith("tkmeans")
                    if ours and not method.startswith("_") and method != "open" and _there(called, method):
                        yield from ((f"{name}.{method}", parameter) for parameter in _parameters(function))


def _there(called: Any, method: str) -> bool:
    """Whether an object of the class has a method, which some estimators lack."""
    return called not in ESTIMATORS or hasattr(called(), method)


def _parameters(function: Any) -> list[str]:
    found = inspect.signature(function).parameters.values()
    return [each.name for each in found if each.name != "self" and each.kind not in (each.VAR_KEYWORD,)]


def kind_of(function: str, parameter: str) -> str:
    """What kind of thing a parameter is; KeyError if nobody has said."""
    method = function.rpartition(".")[2]
    return SPECIAL.get(f"{function}.{parameter}") or SPECIAL.get(f"{method}.{parameter}") or PARAMETERS[parameter]


ALL_PARAMETERS = list(public_parameters())


# ---- one hostile call ----------------------------------------------------------------------------


class HostileCall(NamedTuple):
    """An ordinary call with one argument replaced."""

    function: str
    parameter: str
    call: Callable[..., Any]
    arguments: dict[str, Any]
    hostile: Hostile


def hostile_call(random: Random) -> HostileCall:
    """A call of any public function, with any hostile value for any parameter."""
    function, parameter = random.choice(ALL_PARAMETERS)
    values = VALUES[kind_of(function, parameter)]
    return made_call(random, function, parameter, random.choice(values))


def made_call(random: Random, function: str, parameter: str, value: Any) -> HostileCall:
    """An ordinary call with this value."""
    call, arguments = CALLS[function](random)
    hostile = value if isinstance(value, Hostile) else Hostile(value(ROWS.copy()))
    if hasattr(hostile.value, "get_params") and not isinstance(hostile.value, type):
        hostile = hostile._replace(value=hostile.value if _is_fitted(hostile.value) else clone(hostile.value))
    return HostileCall(function, parameter, call, {**arguments, parameter: hostile.value}, hostile)


def _is_fitted(model: Any) -> bool:
    return any(
        name.endswith("_") and not name.startswith("__") for name in vars(getattr(model, "_final_estimator", model))
    )


# Arguments of many parts: that a part is wrong is told by Python or NumPy, without the name of the parameter.
IN_PARTS = {
    "names",
    "mapping",
    "reals",
    "labels",
    "labels or None",
    "scaler",
    "selection",
    "switch or callable",
    "text",
}
IN_PARTS |= {"word or None", "word or path", "start"}  # the last: exceptions of one's own callable are passed on
ODD_FILES = {"path", "path or None", "out", "word or path"}


def outcome_of_call(made: HostileCall) -> str:
    """Make the call: "result", or "refused"; everything else is an error."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings(
            "ignore", "Explicit initial center position passed|init_size=|algorithm=", RuntimeWarning
        )
        try:
            made.call(**made.arguments)
        except Exception as error:
            if not _is_documented(error, made):
                value = repr(made.hostile.value)[:80]
                told = f"{type(error).__name__}: {str(error)[:200]}"
                raise WrongAnswer(f"{made.function}({made.parameter}={value}) undocumented {told}") from error
            if made.hostile.taken:
                raise WrongAnswer(
                    f"{made.function}({made.parameter}={made.hostile.value!r}) refused: {error}"
                ) from error
            return "refused"
    if made.hostile.refused:
        raise WrongAnswer(f"{made.function}({made.parameter}={made.hostile.value!r}) was accepted")
    return "result"


def _is_documented(error: Exception, made: HostileCall) -> bool:
    """Whether an exception is of a class that is documented, and tells what it is about."""
    words = str(error)
    if any(isinstance(error, classes) and re.search(pattern, words) for classes, pattern in REFUSALS.values()):
        return True
    kind = kind_of(made.function, made.parameter)
    if (isinstance(error, OSError) and kind in ODD_FILES) or isinstance(error, ImportError):
        return True
    if made.function in ("scaled", "contaminate", "fetch_benchmark") and isinstance(error, (TypeError, ValueError)):
        return True  # these are below the checks of the package, and have scikit-learn's
    named = re.search(rf"\b{re.escape(made.parameter)}\b", words) or str(made.arguments.get("path", "\n")) in words
    holds = "a model file can hold" in words or "to_onnx" in words
    return isinstance(error, (TypeError, ValueError)) and bool(named or holds or kind in IN_PARTS)
