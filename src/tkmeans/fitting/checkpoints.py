"""Checkpoints: the state of a running fit in an .npz file of plain arrays, to resume it from (no pickle)."""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from tkmeans.atomic import replacing
from tkmeans.em import Anderson, Progress
from tkmeans.models.mixture import MixtureParams
from tkmeans.shape_stats import ShapeStats
from tkmeans.sources import Source
from tkmeans.stats import Array, Fit, Outcome, Params, Stats

_FORMAT = "tkmeans checkpoint 3"
_LARGEST = 1e300
_RANGES = {"params_centers": (-1e101, 1e101), "params_scale": (1e-290, 1e290), "params_log_weights": (-_LARGEST, 1e-6)}
_RANGES |= {f"stats_{name}": (0.0, _LARGEST) for name in ("n", "w", "observed", "wd2", "cells", "noise", "beyond")}
_RANGES |= {"params_dof": (1e-6, _LARGEST), "params_noise": (0.0, 1.0), "params_beyond": (0.0, 1.0)}
_RANGES |= {"n_passes": (0, 2**62), "total": (1e-290, _LARGEST), "movement": (0.0, np.inf)}

# What may change between a fit and its continuation.
_FREE = {"checkpoint", "engine", "max_iter", "max_time", "n_jobs", "random_state", "tol", "verbose"}


def fingerprint(estimator: str, params: dict[str, Any], source: Source) -> dict[str, Any]:
    """What must be the same for a checkpoint to be of this fit, by name."""
    settings = {name: _named(value) for name, value in params.items() if name not in _FREE}
    origin, unit = source.frame
    data = {"n_rows": source.n_rows, "n_features": source.n_features, "dtype": str(source.dtype)}
    data |= {"the median of the rows": [float(x) for x in origin], "the spread of the rows": float(unit)}
    return {"the estimator": estimator, **settings, **data}


def _named(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if callable(value):
        return getattr(value, "__qualname__", type(value).__name__)
    try:
        numbers = np.ascontiguousarray(value, dtype=complex if np.iscomplexobj(value) else float)
        return "array " + hashlib.sha256(numbers.tobytes()).hexdigest()[:16]
    except (TypeError, ValueError, OverflowError):  # what is no array of numbers is refused where it is used
        return type(value).__name__


@final
@dataclass(frozen=True)
class Checkpoint:
    """Where a fit is: the best of its finished runs, and the run under way."""

    fit: dict[str, Any]  # its fingerprint
    rng_state: dict[str, Any]  # when the fit began
    n_finished: int
    best: Fit | None
    run: Progress | None

    def write(self, path: Any) -> None:
        """Put the checkpoint in the place of the one before; there is always a whole one."""
        state = {name: value for name, value in self.rng_state.items() if name != "state"}
        inner = {name: value for name, value in self.rng_state["state"].items() if name != "key"}
        meta = {"format": _FORMAT, "fit": self.fit, "n_finished": self.n_finished, "rng": state, "rng_inner": inner}
        arrays = {"meta": np.array(json.dumps(meta)), "rng_key": self.rng_state["state"]["key"]}
        if self.best is not None:
            arrays |= _flat("best", self.best) | {"best_converged": np.array(self.best.converged)}
        if self.run is not None:
            arrays |= _flat("run", self.run)
            arrays |= {"run_movement": np.array(self.run.movement), "run_total": np.array(self.run.total)}
            if self.run.mixer is not None:
                arrays |= {"residuals": np.array(self.run.mixer.residuals), "images": np.array(self.run.mixer.images)}
        with replacing(path) as file:
            np.savez(file, **arrays)

    @staticmethod
    def read(path: Any, fit: dict[str, Any]) -> "Checkpoint":
        """The checkpoint at `path`, which must be of the fit with this fingerprint; ValueError if it is not."""
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(f"there is no checkpoint {str(path)!r} to resume from; fit without resume")
        try:
            with zipfile.ZipFile(path) as members:
                if any(member.compress_type for member in members.infolist()):  # a few bytes could become very many
                    raise ValueError("it is compressed")
            with open(path, "rb") as stored, np.load(stored, allow_pickle=False) as file:
                arrays = dict(file)
            meta = json.loads(str(arrays["meta"]))
            if meta["format"] != _FORMAT:
                raise ValueError(f"its format is {meta['format']!r}, this version reads {_FORMAT!r}")
            name = next((name for name, value in fit.items() if meta["fit"].get(name) != value), None)
            if name is None:
                return _checked(meta, arrays, fit)
        except Exception as error:
            raise ValueError(f"{str(path)!r} is not a whole checkpoint of tkmeans: {error}") from error
        other = f"is of another fit: {name} was {meta['fit'].get(name)!r} and is {fit[name]!r}"
        raise ValueError(f"checkpoint {str(path)!r} {other}; resume with the same data and settings, or without resume")


@contextmanager
def resuming(estimator: Any, path: Any) -> Iterator[None]:
    """Refuse a checkpoint that leads to no fit: its numbers may be in range, and yet be of no rows.

    Nothing of NumPy's warns in a fit, so what would is such a checkpoint's doing.
    """
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            yield
        if not all(np.all(np.isfinite(value)) for value in estimator._fitted_model.params if np.ndim(value)):
            raise ValueError("its numbers lead to no finite fit")
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"checkpoint {str(path)!r} cannot be resumed from: {error}") from error


def _checked(meta: dict[str, Any], arrays: dict[str, Array], fit: dict[str, Any]) -> Checkpoint:
    """A checkpoint from the entries of a file, each of which has its type, its shape and its range."""
    K = fit["n_components" if "n_components" in fit else "n_clusters"]
    p = len(fit["the median of the rows"])  # of all columns that the fit looks at
    form = {"full": (p, p), "tied": (p, p), "diag": (p,), "spherical": (1,)}.get(fit.get("covariance_type", ""), ())
    shapes: dict[str, Any] = {f"stats_{name}": [(K,)] for name in ("n", "w", "wd2", "log_u")}
    shapes |= {"params_centers": [(K, p)], "stats_wx": [(K, p)], "params_covariances": [(K, *form)]}
    shapes |= {"params_dof": [(K,) if form else ()], "params_log_weights": [(K,)], "stats_observed": [(K, p), (K, 1)]}
    shapes |= {"stats_scatter": [(K, *form), (K, p)], "params_bulk": [form, ()], "params_bulk_center": [(p,), ()]}

    def entry(name: str) -> Any:
        array, field = arrays[name], name.partition("_")[2]
        low, high = _RANGES.get(field, (-_LARGEST, _LARGEST))
        of_numbers = array.dtype == np.float64 or (field == "n_passes" and array.dtype.kind == "i")
        if not of_numbers or (field and not array.size) or not np.all((array >= low) & (array <= high)):
            raise ValueError(f"{name} is not numbers between {low:g} and {high:g}")
        if field and array.shape not in shapes.get(field, [(array.size,)] if field == "history" else [()]):
            raise ValueError(f"{name} has the shape {array.shape}, not that of a fit of {K} clusters and {p} features")
        return array if array.ndim else array.item()

    def outcome(prefix: str, converged: bool) -> Fit:
        records: Any = {"params": MixtureParams, "stats": ShapeStats} if form else {"params": Params, "stats": Stats}
        params, stats = (of(*(entry(f"{prefix}_{kind}_{name}") for name in of._fields)) for kind, of in records.items())
        return Outcome(params, stats, entry(f"{prefix}_history").tolist(), entry(f"{prefix}_n_passes"), converged)

    state = meta["rng"] | {"state": meta["rng_inner"] | {"key": arrays["rng_key"]}}
    np.random.RandomState().set_state(state)
    best = outcome("best", bool(arrays["best_converged"])) if "best_history" in arrays else None
    run = None
    if "run_history" in arrays:
        params, stats, history, n_passes, *_ = outcome("run", converged=False)
        mixer = Anderson() if "residuals" in arrays else None
        run = Progress(history, entry("run_movement"), params, stats, entry("run_total"), n_passes, mixer)
        if mixer is not None:
            mixer.residuals.extend(entry("residuals"))
            mixer.images.extend(entry("images"))
    n_finished = meta["n_finished"]
    if type(n_finished) is not int or not 0 <= n_finished < 2**31 or (n_finished > 0) != (best is not None):
        raise ValueError(f"it has {n_finished!r} runs that are done, and {'the' if best else 'no'} best of them")
    return Checkpoint(meta["fit"], state, n_finished, best, run)


def _flat(prefix: str, fit: Fit | Progress) -> dict[str, Any]:
    fields = {f"params_{name}": value for name, value in fit.params._asdict().items()}
    fields |= {f"stats_{name}": value for name, value in fit.stats._asdict().items()}
    fields |= {"history": fit.history, "n_passes": fit.n_passes}
    return {f"{prefix}_{name}": np.asarray(value) for name, value in fields.items()}
