"""Checkpoints: the state of a running fit in an .npz file of plain arrays, to resume it from (no pickle)."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from tkmeans.atomic import replacing
from tkmeans.em import Anderson, Progress
from tkmeans.models.mixture import MixtureParams
from tkmeans.shape_stats import ShapeStats
from tkmeans.sources import Source
from tkmeans.stats import Fit, Outcome, Params, Stats

_FORMAT = "tkmeans checkpoint 3"
_RECORDS: dict[str, Any] = {"Params": (Params, Stats), "MixtureParams": (MixtureParams, ShapeStats)}

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
    return "array " + hashlib.sha256(np.ascontiguousarray(value, dtype=float).tobytes()).hexdigest()[:16]


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
            arrays |= _flat("run", self.run.outcome(converged=False))
            arrays |= {"run_movement": np.array(self.run.movement), "run_total": np.array(self.run.total)}
            if self.run.mixer is not None:
                arrays |= {"residuals": np.array(self.run.mixer.residuals), "images": np.array(self.run.mixer.images)}
        with replacing(path) as file:
            np.savez(file, **arrays)

    @staticmethod
    def read(path: Any, fit: dict[str, Any]) -> Checkpoint:
        """The checkpoint at `path`, which must be of the fit with this fingerprint."""
        path = Path(path)
        if not path.exists():
            raise FileNotFoundError(f"there is no checkpoint {str(path)!r} to resume from; fit without resume")
        try:
            with open(path, "rb") as stored, np.load(stored, allow_pickle=False) as file:
                arrays = dict(file)
            meta = json.loads(str(arrays["meta"]))
            if meta["format"] != _FORMAT:
                raise ValueError(f"its format is {meta['format']!r}, this version reads {_FORMAT!r}")
        except Exception as error:
            raise ValueError(f"{str(path)!r} is not a whole checkpoint of tkmeans: {error}") from error
        for name, value in fit.items():
            if meta["fit"].get(name) != value:
                other = f"{name} was {meta['fit'].get(name)!r} and is {value!r}"
                what_to_do = "resume with the same data and settings, or fit without resume"
                raise ValueError(f"checkpoint {str(path)!r} is of another fit: {other}; {what_to_do}")
        inner = meta["rng_inner"] | {"key": arrays["rng_key"]}
        best = _fit(arrays, "best", bool(arrays["best_converged"])) if "best_history" in arrays else None
        run = _progress(arrays) if "run_history" in arrays else None
        return Checkpoint(meta["fit"], meta["rng"] | {"state": inner}, meta["n_finished"], best, run)


def _flat(prefix: str, fit: Fit) -> dict[str, Any]:
    fields = {f"params_{name}": value for name, value in fit.params._asdict().items()}
    fields |= {f"stats_{name}": value for name, value in fit.stats._asdict().items()}
    fields |= {"records": type(fit.params).__name__, "history": fit.history, "n_passes": fit.n_passes}
    return {f"{prefix}_{name}": np.asarray(value) for name, value in fields.items()}


def _fit(arrays: dict[str, Any], prefix: str, converged: bool) -> Fit:
    def field(name: str) -> Any:
        value = arrays[f"{prefix}_{name}"]
        return value if value.ndim else value.item()

    params, stats = (
        record(*(field(f"{kind}_{name}") for name in record._fields))
        for kind, record in zip(("params", "stats"), _RECORDS[field("records")], strict=True)
    )
    return Outcome(params, stats, field("history").tolist(), field("n_passes"), converged)


def _progress(arrays: dict[str, Any]) -> Progress:
    params, stats, history, n_passes, *_ = _fit(arrays, "run", converged=False)
    mixer = None
    if "residuals" in arrays:
        mixer = Anderson()
        mixer.residuals.extend(arrays["residuals"])
        mixer.images.extend(arrays["images"])
    movement, total = float(arrays["run_movement"]), float(arrays["run_total"])
    return Progress(history, movement, params, stats, total, n_passes, mixer)
