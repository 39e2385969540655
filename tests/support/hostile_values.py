"""Hostile rows, their containers, and weights.

Each table maps a description to a function that makes such a thing.
"""

from __future__ import annotations

import warnings
from random import Random

import numpy as np
import pandas as pd
import scipy.sparse

LARGEST = np.finfo(float).max


# ---- rows ------------------------------------------------------------------------------


def _ordinary(rng, n, p):
    return rng.choice([-5.0, 0.0, 5.0], (n, 1)) + rng.standard_normal((n, p))


def _powers(rng, low, high, shape):
    return 10.0 ** rng.uniform(low, high, shape)


def _with(X, rng, value, share=0.2):
    return np.where(rng.random(X.shape) < share, value, X)


def _far_rows(rng, n, p):
    X = _ordinary(rng, n, p)
    X[rng.integers(n, size=rng.integers(1, 4))] = rng.choice([-1, 1], p) * _powers(rng, 20, 307, ())
    return X


def _far_row(rng, n, p):
    X = _ordinary(rng, n, p)
    X[rng.integers(n)] = 1e300
    return X


def _constant_column(rng, n, p):
    X = _ordinary(rng, n, p)
    X[:, rng.integers(p)] = rng.choice([0.0, -7.0, 1e-300, 1e300])
    return X


def _empty_rows(rng, n, p):
    X = _ordinary(rng, n, p)
    X[rng.random(n) < 0.3] = np.nan
    return X


def _empty_column(rng, n, p):
    X = _ordinary(rng, n, p)
    X[:, rng.integers(p)] = np.nan
    return X


ROW_KINDS = {
    "ordinary": _ordinary,
    "heavy tails": lambda rng, n, p: rng.standard_cauchy((n, p)) ** 3,
    "tiny": lambda rng, n, p: _ordinary(rng, n, p) * _powers(rng, -170, -100, ()),
    "subnormal": lambda rng, n, p: np.round(_ordinary(rng, n, p) * _powers(rng, 0, 10, ())) * 5e-324,
    "huge": lambda rng, n, p: _ordinary(rng, n, p) / 20 * _powers(rng, 100, 308, ()),
    "features of all sizes": lambda rng, n, p: _ordinary(rng, n, p) * _powers(rng, -150, 150, p),
    "rows of all sizes": lambda rng, n, p: _ordinary(rng, n, p) * _powers(rng, -150, 150, (n, 1)),
    "entries of all sizes": lambda rng, n, p: _ordinary(rng, n, p) * _powers(rng, -300, 300, (n, p)),
    "a row at 1e300": _far_row,
    "far rows": _far_rows,
    "largest numbers": lambda rng, n, p: rng.choice([-LARGEST, LARGEST, 0.0, 1.0], (n, p)),
    "duplicates": lambda rng, n, p: np.round(_ordinary(rng, n, p) / 3),
    "two distinct rows": lambda rng, n, p: rng.standard_normal((2, p))[rng.integers(2, size=n)],
    "equal rows": lambda rng, n, p: np.tile(_ordinary(rng, 1, p) * _powers(rng, -100, 100, ()), (n, 1)),
    "zeros": lambda rng, n, p: rng.choice([-0.0, 0.0], (n, p)),
    "zeros but for one": lambda rng, n, p: np.eye(n, p) * _powers(rng, -100, 100, ()) * (np.arange(n) == 0)[:, None],
    "a constant column": _constant_column,
    "collinear": lambda rng, n, p: rng.standard_normal((n, 1)) * rng.standard_normal(p),
    "digits lost": lambda rng, n, p: _ordinary(rng, n, p) + rng.choice([1e8, 1e12, 1e15, 1e17]),
    "next to each other": lambda rng, n, p: 1 + np.finfo(float).eps * rng.integers(0, 3, (n, p)),
    "holes": lambda rng, n, p: _with(_ordinary(rng, n, p), rng, np.nan, rng.choice([0.02, 0.3, 0.8])),
    "holes and far rows": lambda rng, n, p: _with(_far_rows(rng, n, p), rng, np.nan),
    "empty rows": _empty_rows,
    "an empty column": _empty_column,
    "nothing but holes": lambda rng, n, p: np.full((n, p), np.nan),
    "infinite": lambda rng, n, p: _with(_ordinary(rng, n, p), rng, rng.choice([-np.inf, np.inf])),
    "holes and infinite": lambda rng, n, p: _with(_with(_ordinary(rng, n, p), rng, np.inf), rng, np.nan),
}


def rows_of_kind(random: Random, kind: str) -> np.ndarray:
    rng = np.random.default_rng(random.getrandbits(32))
    n, p = random.choice([1, 2, 3, 5, 8, 13, 20, 40, 60]), random.choice([1, 2, 2, 3, 4, 6])
    return ROW_KINDS[kind](rng, n, p)


# ---- containers of rows -------------------------------------------------------------------


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _unaligned(X):
    room = np.empty(X.nbytes + 1, np.uint8)[1:].view()
    out = room[: X.nbytes].view(X.dtype).reshape(X.shape)
    out[:] = X
    return out


def _frame(X):
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])


def _nullable(X):
    return _frame(X).astype("Float64")


# The same numbers in another container: the result must be the same, to the last bit.
CONTAINERS = {
    "Fortran order": np.asfortranarray,
    "negative strides": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "every second": lambda X: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "read-only": _read_only,
    "unaligned": _unaligned,
    "big-endian": lambda X: X.astype(">f8"),
    "object": lambda X: X.astype(object),
    "list of lists": lambda X: X.tolist(),
    "tuple of arrays": tuple,
    "DataFrame": _frame,
    "nullable DataFrame": _nullable,
    "masked, but nothing": lambda X: np.ma.masked_array(X, mask=False),
    "masked where missing": lambda X: np.ma.masked_array(np.where(np.isnan(X), -777.0, X), mask=np.isnan(X)),
}

DTYPES = {
    name: lambda X, name=name: converted(X, np.dtype(name))
    for name in ["f2", "f4", ">f4", "g", "i1", "u1", "i2", "u2", "i4", ">i4", "u4", "i8", "u8", "?"]
}


def converted(X, dtype):
    if dtype.kind == "b":
        return X > 0
    if dtype.kind in "iu":
        bounds = np.iinfo(dtype)
        return np.clip(np.nan_to_num(X), float(bounds.min) / 2, float(bounds.max) / 2).astype(dtype)
    with np.errstate(over="ignore"):
        return X.astype(dtype)


def _matrix(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(X)


# What is no table of numbers, and must be refused.
INVALID_TABLES = {
    "complex": lambda X: X + 1j,
    "complex objects": lambda X: (X + 1j).astype(object),
    "text": lambda X: X.astype(str),
    "bytes": lambda X: X.astype("S"),
    "text among objects": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 0, "1.5", X.astype(object)),
    "a dictionary among objects": lambda X: np.where(np.arange(X.size).reshape(X.shape) == 0, {}, X.astype(object)),
    "list with text": lambda X: [*X.tolist()[:-1], ["1.5"] * X.shape[1]],
    "text column": lambda X: _frame(X).assign(f0="1"),
    "date column": lambda X: _frame(X).assign(f0=pd.Timestamp("2020-01-01")),
    "categories of text": lambda X: _frame(X).assign(f0=pd.Categorical(["1"] * len(X))),
    "names of two kinds": lambda X: pd.DataFrame(X).assign(word=1.0),
    "dates": lambda X: np.arange(X.size).reshape(X.shape).astype("M8[s]"),
    "durations": lambda X: np.arange(X.size).reshape(X.shape).astype("m8[s]"),
    "ragged": lambda X: [*X.tolist(), [1.0] * (X.shape[1] + 1)],
    "records": lambda X: np.zeros(len(X), [("a", float), ("b", float)]),
    "sparse with NaN": lambda X: scipy.sparse.csr_array(np.where(np.eye(*X.shape) == 1, np.nan, X)),
    "sparse and complex": lambda X: scipy.sparse.coo_matrix(np.nan_to_num(X) * 1j),
    "matrix": _matrix,
    "3-d": lambda X: X[:, :, None],
    "1-d": lambda X: X[:, 0],
    "0-d": lambda X: np.array(1.0),
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "None": lambda X: None,
    "a number": lambda X: 3.0,
    "a dictionary": lambda X: {"a": 1},
    "a generator": lambda X: (row for row in X),
    "a path to nowhere": lambda X: "/nowhere/at/all.npy",
}


# ---- weights ------------------------------------------------------------------------------


def _some(X, random, values):
    rng = np.random.default_rng(random.getrandbits(32))
    return rng.choice(values, len(X)).astype(float)


WEIGHTS = {
    "ones": lambda X, random: np.ones(len(X)),
    "whole": lambda X, random: _some(X, random, [1, 2, 3]),
    "some zero": lambda X, random: _some(X, random, [0, 1, 2]),
    "one positive": lambda X, random: np.eye(1, len(X))[0],
    "tiny": lambda X, random: _some(X, random, [1e-300, 2e-300]),
    "huge": lambda X, random: _some(X, random, [1e290, 1e300]),
    "of all sizes": lambda X, random: _some(X, random, 10.0 ** np.arange(-300, 300, 7)),
    "one outweighs all": lambda X, random: np.where(np.arange(len(X)) == 0, 1e30, 1.0),
    "subnormal": lambda X, random: _some(X, random, [5e-324, 1e-320]),
    "a number": lambda X, random: 2.5,
    "bool": lambda X, random: _some(X, random, [0, 1, 1]).astype(bool),
    "list": lambda X, random: _some(X, random, [1, 2]).tolist(),
    "Series": lambda X, random: pd.Series(_some(X, random, [1, 2])),
    "read-only": lambda X, random: _read_only(_some(X, random, [1, 2])),
    "negative strides": lambda X, random: _some(X, random, [1, 2])[::-1],
}

INVALID_WEIGHTS = {
    "all zero": lambda X, random: np.zeros(len(X)),
    "negative": lambda X, random: np.where(np.arange(len(X)) == 0, -1.0, 1.0),
    "missing": lambda X, random: np.where(np.arange(len(X)) == 0, np.nan, 1.0),
    "infinite": lambda X, random: np.where(np.arange(len(X)) == 0, np.inf, 1.0),
    "too few": lambda X, random: np.ones(len(X) - 1),
    "too many": lambda X, random: np.ones(len(X) + 1),
    "a column": lambda X, random: np.ones((len(X), 1)),
    "text": lambda X, random: np.full(len(X), "1"),
    "text among objects": lambda X, random: np.full(len(X), "1", dtype=object),
    "complex": lambda X, random: np.ones(len(X)) + 1j,
    "masked": lambda X, random: np.ma.masked_array(np.ones(len(X)), mask=np.arange(len(X)) == 0),
    "None among them": lambda X, random: [None] + [1.0] * (len(X) - 1),
    "dates": lambda X, random: np.arange(len(X)).astype("M8[s]"),
    "a negative number": lambda X, random: -1.0,
    "NaN": lambda X, random: np.nan,
    "a word": lambda X, random: "balanced",
    "a dictionary": lambda X, random: {0: 1.0},
}
