"""Mutations of good files: model files with a right checksum, checkpoints, and tables of every kind.

Each `*_case` makes a file from a `random.Random`, reads it and uses what comes out. It returns the outcome, "result" or
"refused", and raises `WrongAnswer` for anything else.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import io
import json
import lzma
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import tkmeans
from support.answer_checks import ANSWERS, REFUSALS, WrongAnswer, _refusal
from tkmeans import FastTKMeans, MiniBatchTKMeans, ModelFileError, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.fitting.observers import SHARE_OF_TIME
from tkmeans.persistence.encoding import checksum

RNG = np.random.default_rng(0)
ROWS = np.vstack([RNG.normal(size=(30, 2)), RNG.normal(size=(20, 2)) + 9, [[80.0, -60.0], [0.5, np.nan]]])
NUMBERS: list[Any] = [
    0,
    -1,
    1,
    2,
    10**9,
    2**31,
    2**63,
    2**70,
    10**40,
    0.0,
    -0.0,
    1e-300,
    5e-324,
    1e300,
    -1e300,
    1e154,
    0.5,
]
NUMBERS += [{"float": "nan"}, {"float": "inf"}, {"float": "-inf"}, {"float": "x"}, 1.5, -2.5, True]
THINGS: list[Any] = [
    *NUMBERS,
    None,
    "",
    "x",
    "nan",
    [],
    {},
    [[]],
    [1.0],
    [1.0, 2.0],
    {"float": 1.0},
    "\ud800",
    "\x1b[31m",
]
THINGS += [
    {"dtype": "float64", "shape": [0], "data": []},
    {"dtype": "float64", "shape": [2, 2], "data": [[1.0, 2.0]] * 2},
]
THINGS += [{"dtype": "int64", "shape": [], "data": 3}, {"dtype": "float32", "shape": [0, 10**40], "data": []}]
THINGS += [json.loads("[" * 200 + "]" * 200), "a" * 1000, "robust", "auto", "full", [True, None], {"dtype": "object"}]


@contextmanager
def _warnings_are_errors() -> Iterator[None]:
    """No warning of NumPy's may leak; our own are UserWarnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)
        warnings.filterwarnings(
            "ignore", category=RuntimeWarning, module=r"sklearn\.preprocessing"
        )  # a forged scaler's
        yield


@cache
def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="forged-"))


# ---- model files -----------------------------------------------------------------------------


@cache
def good_models() -> list[str]:
    """Model files of every class that they can hold."""
    complete = ROWS[:-1]
    models = [TKMeans(2, random_state=0), TKMeans(2, init=ROWS[[0, 40]]), FastTKMeans(2), MiniBatchTKMeans(2)]
    models += [StudentTMixture(2, covariance_type=kind) for kind in ("full", "tied", "diag", "spherical")]
    models += [StudentTMixture(2, noise=True), make_pipeline(RobustScaler(), TKMeans(2))]
    hard = [
        KMedians(2),
        KMedoids(2),
        make_pipeline(StandardScaler(), KMedians(2)),
        make_pipeline(MinMaxScaler(), KMedoids(2)),
    ]
    path, found = _folder() / "good.json", []
    with _warnings_are_errors():
        for each, rows in [(model, ROWS) for model in models] + [(model, complete) for model in hard]:
            tkmeans.save(each.fit(pd.DataFrame(rows, columns=["a", "b"])), path)
            found.append(path.read_text())
    return found


def _places(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a tree of JSON."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place] * bool(place) + [found for key, part in parts for found in _places(part, (*place, key))]


def _at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _changed_tree(random: Random, document: Any) -> None:
    """Change something in a tree of JSON: drop it, add to it, exchange it, or put something else there."""
    depth, places = random.randint(1, 7), _places(document)
    place = random.choice([found for found in places if len(found) <= depth] or places)
    within, key = _at(document, place[:-1]), place[-1]
    how = random.random()
    if how < 0.1:
        del within[key]
    elif how < 0.2:
        within[key] = copy.deepcopy(_at(document, random.choice(places)))
    elif how < 0.3 and isinstance(within, list):
        within.insert(key, random.choice(THINGS))
    elif how < 0.35 and isinstance(within, dict):
        within[random.choice(["x", "predict", "checkpoint", "n_jobs", "__class__", "labels_"])] = random.choice(THINGS)
    elif how < 0.5 and isinstance(within[key], float):
        value = within[key] * random.choice([-1.0, 1e-10, 1e10, 1e150, 1e-150, 0.0])
        within[key] = value if np.isfinite(value) else {"float": str(value)}  # as model files write it
    else:
        within[key] = copy.deepcopy(random.choice(NUMBERS if isinstance(within[key], (int, float)) else THINGS))


def _changed_bytes(random: Random, data: bytes) -> bytes:
    """Change, cut out, double or insert some bytes."""
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 8])):
        at, length = random.randrange(max(len(changed), 1)), random.choice([1, 1, 2, 8, 100])
        how = random.random()
        if how < 0.4:
            changed[at : at + 1] = bytes([random.randrange(256)])
        elif how < 0.55:
            del changed[at : at + length]
        elif how < 0.7:
            changed[at:at] = changed[at : at + length]
        elif how < 0.85:
            changed[at:at] = random.choice(
                [b"\x00", b"\xff\xff\xff\xff", b'"', b",", b"\n", b"nan", b"1e999", b"-", b";"]
            )
        else:
            del changed[at:]
    return bytes(changed)


def model_case(random: Random) -> str:
    """Read a forged model file, and ask the model everything."""
    text, path = random.choice(good_models()), _folder() / "model.json"
    if random.random() < 0.85:
        document = json.loads(text)
        for _ in range(random.choice([1, 1, 1, 2, 4])):
            _changed_tree(random, document)
            if not isinstance(document, dict) or not document:
                break
        document = document | {"checksum": checksum(document)}
        path.write_text(json.dumps(document), encoding="utf-8")
    else:
        path.write_bytes(_changed_bytes(random, text.encode()))
    with _warnings_are_errors():
        try:
            model = tkmeans.load(path)
        except ModelFileError as error:
            _hold(str(path) in str(error) and "\n" not in str(error), f"an odd refusal: {error}")
            return "refused"
        except Exception as error:
            raise WrongAnswer(f"undocumented {type(error).__name__}: {str(error)[:200]}") from error
        _hold(getattr(model, "checkpoint", None) is None, "a model file brought a checkpoint")
        rows = ROWS[:-1, : model.n_features_in_]
        rows = rows if rows.shape[1] == model.n_features_in_ else np.ones((3, model.n_features_in_))
        for name in ANSWERS:
            if hasattr(model, name):
                _check_answer(model, name, rows)
    return "result"


def _check_answer(model: Any, name: str, rows: Any) -> None:
    found: list[Any] = []
    outcome = _refusal(lambda: found.append(getattr(model, name)(rows)))
    if outcome == "result":
        _hold(np.all(np.isfinite(np.asarray(found[0], float))), f"{name} of a forged model is not finite")


# ---- checkpoints -------------------------------------------------------------------------------


def _fits() -> list[Any]:
    slow = {"init": ROWS[[0, 1]], "max_iter": 5, "tol": 0.0}
    return [
        TKMeans(2, **slow),
        TKMeans(2, cluster_weights="estimate", accelerate=False, **slow),
        TKMeans(2, init="random", n_init=3, random_state=0),
        FastTKMeans(2, init=ROWS[[0, 1]], max_iter=3),
        StudentTMixture(2, max_iter=4, tol=0.0, random_state=0),
        StudentTMixture(2, covariance_type="diag", noise=True, max_iter=4, random_state=0),
    ]


@cache
def good_checkpoints() -> list[tuple[int, dict[str, np.ndarray], bytes]]:
    """Checkpoints of fits, by the number of the fit: of runs that are under way, and that are done."""
    found = []
    path = _folder() / "good.npz"
    SHARE_OF_TIME.set(1e9)
    with _warnings_are_errors():
        for number, estimator in enumerate(_fits()):
            estimator.set_params(checkpoint=path).fit(ROWS)
            with np.load(path) as arrays:
                found.append((number, dict(arrays), path.read_bytes()))
    return found


def checkpoint_case(random: Random) -> str:
    """Resume from a forged checkpoint; a fit that comes out is a fit."""
    number, arrays, data = random.choice(good_checkpoints())
    path, arrays = _folder() / "forged.npz", {name: array.copy() for name, array in arrays.items()}
    if random.random() < 0.85:
        for _ in range(random.choice([1, 1, 2, 4])):
            _changed_arrays(random, arrays)
        np.savez(path, **arrays)
    else:
        path.write_bytes(_changed_bytes(random, data))
    model = _fits()[number].set_params(max_iter=random.choice([1, 6, 30]))
    with _warnings_are_errors():
        try:
            model.fit(ROWS, resume=path)
        except ValueError as error:
            _hold("checkpoint" in str(error) and str(path) in str(error), f"an odd refusal: {error}")
            _hold(not hasattr(model, "n_features_in_"), "a half-fitted estimator")
            return "refused"
        except Exception as error:
            raise WrongAnswer(f"undocumented {type(error).__name__}: {str(error)[:200]}") from error
        for name, value in vars(model).items():
            if name.endswith("_") and not name.startswith("_") and np.asarray(value).dtype.kind == "f":
                value = np.asarray(value)[:-1] if name == "outlier_pvalues_" else value
                _hold(np.all(np.isfinite(value)), f"{name} of a resumed fit is not finite")
        for name in ANSWERS:
            if hasattr(model, name):
                _check_answer(model, name, ROWS[:-1])
    return "result"


def _changed_arrays(random: Random, arrays: dict[str, np.ndarray]) -> None:
    name = random.choice(list(arrays))
    array, how = arrays[name], random.random()
    if name == "meta" and array.dtype.kind == "U":
        meta = json.loads(str(array))
        _changed_tree(random, meta)
        arrays[name] = np.array(json.dumps(meta))
    elif how < 0.1:
        del arrays[name]
    elif how < 0.2:
        arrays[name] = arrays[random.choice(list(arrays))]
    elif how < 0.35:
        made = random.choice(
            [lambda a: a[:0], lambda a: a[..., None], np.ravel, np.transpose, lambda a: np.repeat(a, 2)]
        )
        arrays[name] = made(np.atleast_1d(array))
    elif how < 0.45:
        arrays[name] = np.array(random.choice(["x", 3, 2.5, True, b"x", 1j, np.datetime64("2020")]))
    elif array.dtype.kind in "fiub" and array.size:
        flat = array.reshape(-1)
        values = [0, -1, 1e300, -1e300, 1e-300, np.nan, np.inf, 1e154, 2**40, 0.5, 1e99, -1e101]
        value = random.choice(values) if random.random() < 0.7 else float(flat[0]) * random.choice([-1, 1e20, 1e-20, 0])
        where = slice(None) if random.random() < 0.3 else random.randrange(array.size)
        with np.errstate(all="ignore"):
            if array.dtype.kind != "f":
                value = int(np.nan_to_num(value, posinf=9, neginf=-9)) % 2**31
            flat[where] = value


# ---- tables --------------------------------------------------------------------------------------


@cache
def good_tables() -> list[tuple[str, bytes]]:
    """A table in every kind of file that is read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    frame = pd.DataFrame(np.round(ROWS[:-1], 2), columns=["x", "y"]).assign(word=["a", "b", "c"] * 17)
    text = frame.to_csv(index=False).encode()
    table = pa.Table.from_pandas(frame)
    parquet, feather, npy, book = (io.BytesIO() for _ in range(4))
    pq.write_table(table, parquet)
    with pa.ipc.new_file(feather, table.schema) as writer:
        writer.write_table(table)
    np.save(npy, ROWS[:-1])
    records = np.zeros(40, [("x", float), ("y", "f4")])
    records["x"], records["y"] = ROWS[:40].T
    named = io.BytesIO()
    np.save(named, records)
    found = [
        ("t.csv", text),
        ("t.tsv", text.replace(b",", b"\t")),
        ("c.csv", text.replace(b",", b";").replace(b".", b",")),
    ]
    found += [("t.csv.gz", gzip.compress(text)), ("t.csv.bz2", bz2.compress(text)), ("t.csv.xz", lzma.compress(text))]
    found += [("t.csv.zst", pa.compress(text, codec="zstd", asbytes=True)), ("u.csv", text.decode().encode("utf-16"))]
    found += [("n.csv", text.split(b"\n", 1)[1]), ("t.parquet", parquet.getvalue()), ("t.feather", feather.getvalue())]
    found += [("t.npy", npy.getvalue()), ("named.npy", named.getvalue())]
    found += [
        ("t.jsonl", frame.to_json(orient="records", lines=True).encode()),
        ("t.json", frame.to_json(orient="records").encode()),
    ]
    try:
        frame.to_excel(book, index=False)
        found.append(("t.xlsx", book.getvalue()))
    except ImportError:  # without openpyxl there is nothing to write one with
        pass
    try:
        import duckdb

        path = _folder() / "made.duckdb"
        with duckdb.connect(str(path)) as base:
            base.register("frame", frame)
            base.execute("CREATE TABLE t AS SELECT * FROM frame")
        found.append(("t.duckdb", path.read_bytes()))
    except ImportError:
        pass
    return found


CELLS = [
    b"1e999",
    b"",
    b"nan",
    b"text",
    b'"',
    b"1,5",
    b"0x10",
    b"1_000",
    b"\xff",
    b"=1+1",
    b"-1.7976931348623157e308",
    b"2020-01-01",
]


def table_case(random: Random) -> str:
    """Fit the rows of a mutated table."""
    tables = good_tables()
    name, data = random.choice(tables)
    if name.endswith("duckdb") and random.random() < 0.8:  # it takes longest
        name, data = tables[0]
    path = _folder() / name
    if random.random() < 0.3 and name.endswith(("csv", "tsv", "json", "jsonl")):
        cells = data.split(b"," if name != "t.tsv" else b"\t")
        for _ in range(random.choice([1, 3, 20])):
            cells[random.randrange(len(cells))] = random.choice(CELLS)
        path.write_bytes(b",".join(cells))
    else:
        path.write_bytes(_changed_bytes(random, data))
    with _warnings_are_errors():
        try:
            model = TKMeans(2, random_state=0, max_iter=3).fit(path)
        except (ValueError, TypeError, OSError) as error:
            on_the_list = any(
                isinstance(error, classes) and re.search(words, str(error)) for classes, words in REFUSALS.values()
            )
            _hold(
                on_the_list or name in str(error), f"{name}: an odd refusal: {type(error).__name__}: {str(error)[:200]}"
            )
            return "refused"
        except Exception as error:
            raise WrongAnswer(f"{name}: undocumented {type(error).__name__}: {str(error)[:200]}") from error
        _hold(np.all(np.isfinite(model.cluster_centers_)), f"{name}: centres that are not finite")
    return "result"


CASES: dict[str, Callable[[Random], str]] = {"models": model_case, "checkpoints": checkpoint_case, "tables": table_case}


def _hold(condition: Any, complaint: str) -> None:
    if not condition:
        raise WrongAnswer(complaint)
