"""Model files: a fitted estimator as text that a person can read and that runs no code.

A file holds parameters and fitted attributes as JSON, floats to the last bit, with a version and a checksum.
Only the classes in `recipes` can come out of it.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tkmeans import __version__
from tkmeans.atomic import replacing
from tkmeans.docstrings import documented
from tkmeans.estimators.validation import check_params, check_path, check_switch
from tkmeans.persistence.encoding import ModelFileError, checksum, decode, encode, parse, pretty
from tkmeans.persistence.recipes import ESTIMATORS, SCALERS, Fields, class_of, kinds, restored
from tkmeans.sources.base import to_numpy

__all__ = ["ModelFileError", "load", "save"]

FORMAT, VERSION = "tkmeans-model", 1
# Parameters of a machine and a session, which no file carries to another.
_LOCAL = ("checkpoint", "n_jobs", "verbose")
_ENVELOPE = {"format", "version", "tkmeans", "scikit-learn", "checksum", "pipeline", "scaler", "estimator"}


@documented("save_*")
def save(estimator: Any, path: str | os.PathLike[str], *, training_rows: bool = True) -> None:
    """Write a fitted estimator to a model file, as a whole or not at all.

    The file is JSON, readable by a person, and no pickle: reading it cannot run code. :func:`load` is the way back.
    It holds what the fit has found, by which `predict` and the other methods answer: editing or replacing a fitted
    attribute such as `cluster_centers_` changes neither.
    """
    check_path("path", path)
    check_switch("training_rows", training_rows)
    names, scaler, last = None, None, estimator  # the names of a pipeline's steps
    if isinstance(estimator, Pipeline):
        if (n_steps := len(estimator.steps)) != 2:
            raise TypeError(f"a model file holds a pipeline of a scaler and an estimator, got {n_steps} steps")
        names, (scaler, last) = map(list, zip(*estimator.steps, strict=True))
    document = {"format": FORMAT, "version": VERSION, "tkmeans": __version__, "scikit-learn": sklearn.__version__}
    document |= {"checksum": "", "pipeline": names, "scaler": scaler and _written(scaler, SCALERS, training_rows)}
    document["estimator"] = _written(last, ESTIMATORS, training_rows)
    document["checksum"] = checksum(document)
    data = pretty(document).encode() + b"\n"
    try:
        _read(data)
    except ModelFileError as fault:
        raise ValueError(f"estimator cannot be saved: the file {fault}; fit it again after set_params") from None
    with replacing(path) as file:
        file.write(data)


@documented("load_*", returns="estimator : object\n    The estimator or pipeline.")
def load(path: str | os.PathLike[str]) -> Any:
    """Read an estimator or pipeline, fitted as it was to the last bit, from a file.

    Parameters of the machine it was written on (`checkpoint`, `n_jobs`, `verbose`) are not in the file.

    Raises
    ------
    ModelFileError
        If the file was changed, comes from a newer version, holds anything unknown or any value out of range: whatever
        is wrong with its content. A file that cannot be opened is an OSError.
    """
    check_path("path", path)
    try:
        return _read(Path(path).read_bytes())
    except ModelFileError as fault:
        words = str(fault)
    except RecursionError:
        words = "is nested too deeply to be a model file"
    except (ArithmeticError, LookupError, TypeError, ValueError) as fault:  # of what no check has thought of
        words = f"is not a model file of tkmeans: {fault}"
    raise ModelFileError(f"{os.fspath(path)} {' '.join(words.split())[:500]}")


def _written(estimator: Any, allowed: dict[str, Fields], training_rows: bool) -> dict[str, Any]:
    if (name := type(estimator).__name__) not in allowed or type(estimator) is not class_of(name):
        place = "" if allowed is ESTIMATORS else " as the scaler of a pipeline"
        raise TypeError(f"a model file can hold {', '.join(allowed)}{place}, got {estimator!r}")
    check_is_fitted(estimator)
    params = {key: value for key, value in estimator.get_params(deep=False).items() if key not in _LOCAL}
    wanted = [field for field, kind in kinds(name, params).items() if training_rows or "[n]" not in kind]
    answers = estimator._fitted_model.params.attributes() if allowed is ESTIMATORS else {}  # even if they were edited
    there = {name: value for name in wanted if (value := answers.get(name, getattr(estimator, name, None))) is not None}
    # What dask would still have to compute is left out.
    fitted = {field: _encoded(value) for field, value in there.items() if not hasattr(value, "__dask_graph__")}
    return {"class": name, "params": {key: _encoded_param(key, params[key]) for key in params}, "fitted": fitted}


def _encoded_param(key: str, value: Any) -> Any:
    try:
        return encode(os.fspath(value) if isinstance(value, os.PathLike) else value)
    except TypeError:
        refused = f"a model file cannot hold {key}={value!r}; it does not matter to a fitted estimator"
        raise TypeError(f"{refused}: set_params({key}=...) to text, a number, an array or None") from None


def _encoded(value: Any) -> Any:
    value = to_numpy(value) if hasattr(value, "__dlpack__") else value  # of another library, or on another device
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [str(name) for name in value]
    return encode(value._asdict() if hasattr(value, "_asdict") else value)


def _read(data: bytes) -> Any:
    try:
        document = parse(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ModelFileError("is not a model file of tkmeans: it is not text") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        found = document.get("format") if isinstance(document, dict) else type(document).__name__
        raise ModelFileError(f"is not a model file of tkmeans: its format is {found!r}")
    if type(version := document.get("version")) is not int or version < 1:
        raise ModelFileError(f"has the impossible version {version!r}")
    if version > VERSION:
        newer = f"was written by a newer tkmeans ({document.get('tkmeans')}, file version {version})"
        ours = f"this is {__version__}, which reads version {VERSION}"
        raise ModelFileError(f"{newer}; {ours}: pip install --upgrade tkmeans")
    if odd := sorted(_ENVELOPE ^ set(document)):
        raise ModelFileError(f"{'lacks' if odd[0] in _ENVELOPE else 'has the unknown entry'} {odd[0]!r}")
    if document["checksum"] != checksum(document):
        raise ModelFileError("was changed after it was written: its checksum does not fit; save the model again")
    last = _revived(document["estimator"], ESTIMATORS)
    if document["scaler"] is None and document["pipeline"] is None:
        return last
    scaler, names = _revived(document["scaler"], SCALERS), document["pipeline"]
    if scaler.n_features_in_ != last.n_features_in_:
        raise ModelFileError(f"scales {scaler.n_features_in_} columns but clusters {last.n_features_in_}")
    if not isinstance(names, list) or len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise ModelFileError(f"has {names!r} in the place of the names of two steps")
    if names[0] == names[1] or "__" in "".join(names):
        raise ModelFileError(f"calls its steps {names!r}, as no pipeline can")
    return Pipeline([(names[0], scaler), (names[1], last)])


def _revived(written: Any, allowed: dict[str, Fields]) -> Any:
    """An estimator from its entry in the file; nothing is looked up but names in `allowed`."""
    if not isinstance(written, dict) or set(written) != {"class", "params", "fitted"}:
        raise ModelFileError("has an estimator without a class, params and fitted, or with more than these")
    if not isinstance(name := written["class"], str) or name not in allowed:
        raise ModelFileError(f"holds {name!r}, which is not one of {', '.join(allowed)}")
    if not isinstance(written["params"], dict) or not isinstance(written["fitted"], dict):
        raise ModelFileError(f"has a {name} whose params and fitted are not named")
    params, fitted = ({key: decode(part) for key, part in written[each].items()} for each in ("params", "fitted"))
    estimator = _with_params(name, params)
    params = estimator.get_params(deep=False)
    if unknown := sorted(set(fitted) - set(wanted := kinds(name, params))):
        raise ModelFileError(f"has a {name} with the unknown attribute {unknown[0]!r}")
    sizes = {"p": restored("n_features_in_", fitted.get("n_features_in_"), "count from 1 on", {})}
    if (size := params.get("n_components", params.get("n_clusters", "auto"))) != "auto":
        sizes["K"] = size
    values: dict[str, Any] = {}
    for field, kind in wanted.items():
        if field in fitted:
            values[field] = restored(field, fitted[field], kind, sizes)
        elif not kind.endswith("?"):
            raise ModelFileError(f"has a {name} without {field}")
        elif allowed is SCALERS and not kind.startswith(("names", "output")):
            values[field] = None  # of a scaler that does not centre, for example
    if values.get("noise_weight_") and not {"noise_center_", "noise_covariance_", "_noise_shares"} <= set(values):
        raise ModelFileError(f"has a {name} with noise_weight_, but without where the noise is")
    kept = {k: values.pop(k) for k in [*values] if wanted[k].startswith(("names", "output"))}  # of the columns
    if allowed is ESTIMATORS:
        estimator._restore(values)
    else:
        vars(estimator).update(values)
        try:
            estimator.transform(np.zeros((1, sizes["p"])))  # with all that its parameters need
        except (AttributeError, TypeError, ValueError) as fault:
            raise ModelFileError(f"has a {name} that cannot be: {fault}") from None
    vars(estimator).update(kept)
    return estimator


def _with_params(name: str, params: dict[str, Any]) -> Any:
    estimator = class_of(name)()
    if unknown := sorted(set(params) - set(known := estimator.get_params(deep=False))):
        raise ModelFileError(f"has a {name} with the unknown parameter {unknown[0]!r}")
    for key in set(params).difference(_LOCAL):
        is_tuple = isinstance(known[key], tuple) and isinstance(params[key], list)
        setattr(estimator, key, tuple(params[key]) if is_tuple else params[key])
    try:
        if name in SCALERS:
            estimator._validate_params()
        else:
            check_params(estimator, estimator._checks)
            check_random_state(estimator.random_state)
    except (TypeError, ValueError) as fault:
        raise ModelFileError(f"has a {name} that cannot be: {fault}") from None
    return estimator
