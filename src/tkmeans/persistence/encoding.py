"""Values as JSON and back, to the last bit."""

import hashlib
import json
from itertools import chain
from numbers import Integral, Real
from typing import Any

import numpy as np

from tkmeans.stats import Array

# JSON has no words for these.
_SPECIAL = {"inf": np.inf, "-inf": -np.inf, "nan": np.nan}
_DTYPES = ("float64", "float32", "int64", "int32")


class ModelFileError(ValueError):
    """Why a model file is not read.

    Examples
    --------
    >>> import tkmeans
    >>> issubclass(tkmeans.ModelFileError, ValueError)
    True
    """


def encode(value: Any) -> Any:
    """A value in the words of JSON; a float is written with as many digits as tell it from all others."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.ndarray):
        if value.dtype.name not in _DTYPES:
            raise TypeError(f"a model file cannot hold an array of {value.dtype}")
        data: Any = value.tolist()  # a float32 as the float64 of the same value
        if value.dtype.kind == "f" and not np.all(np.isfinite(value)):
            data = np.where(np.isfinite(value), value.astype(object), value.astype(str)).tolist()
        return {"dtype": value.dtype.name, "shape": list(value.shape), "data": data}
    if isinstance(value, (np.bool_, Integral)):
        return bool(value) if isinstance(value, np.bool_) else int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if np.isfinite(number) else {"float": str(number)}
    if isinstance(value, dict):
        return {key: encode(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(part) for part in value]
    raise TypeError(f"a model file cannot hold {value!r}")


def decode(value: Any) -> Any:
    """The value that was encoded; tuples come back as lists."""
    if isinstance(value, list):
        return [decode(part) for part in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"float"}:
        return _decode_float(value["float"])
    if set(value) == {"dtype", "shape", "data"}:
        return _decode_array(value)
    return {key: decode(part) for key, part in value.items()}


def checksum(document: dict[str, Any]) -> str:
    """The SHA-256 of all but the checksum itself, however the file is indented."""
    content = {key: value for key, value in document.items() if key != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def pretty(value: Any, indent: int = 0) -> str:
    """JSON for people: a line for every entry, but rows of numbers on one line."""
    inner, end = "\n" + " " * (indent + 2), "\n" + " " * indent
    if isinstance(value, dict) and value:
        parts = [f"{json.dumps(key)}: {pretty(part, indent + 2)}" for key, part in value.items()]
        return "{" + inner + ("," + inner).join(parts) + end + "}"
    if isinstance(value, list) and any(isinstance(part, (list, dict)) for part in value):
        return "[" + inner + ("," + inner).join(pretty(part, indent + 2) for part in value) + end + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def parse(text: str) -> Any:
    """JSON to the letter: no key twice, no NaN, no nesting without end."""
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_constant=_refuse)
    except ValueError as fault:
        raise ModelFileError(f"is not a model file of tkmeans: {fault}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _decode_float(value: Any) -> float:
    if isinstance(value, float):
        return value
    if isinstance(value, str) and value in _SPECIAL:
        return _SPECIAL[value]
    raise ModelFileError(f"has {value!r} in the place of a number")


def _decode_array(written: dict[str, Any]) -> Array:
    dtype, shape, flat = written["dtype"], written["shape"], [written["data"]]
    if dtype not in _DTYPES:
        raise ModelFileError(f"has an array of the unknown type {dtype!r}")
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        raise ModelFileError(f"has an array of the impossible shape {shape!r}")
    for size in shape:
        if not all(isinstance(part, list) and len(part) == size for part in flat):
            raise ModelFileError(f"has an array that is not of its shape {tuple(shape)}")
        flat = list(chain.from_iterable(flat))
    if dtype.startswith("float"):
        flat = [_decode_float(value) for value in flat]
    elif wrong := [value for value in flat if type(value) is not int]:
        raise ModelFileError(f"has {wrong[0]!r} in the place of an integer")
    try:
        with np.errstate(over="raise"):
            return np.array(flat, dtype=dtype).reshape(shape)
    except (OverflowError, FloatingPointError):
        raise ModelFileError(f"has a number that does not fit into {dtype}, or a shape beyond all bounds") from None
