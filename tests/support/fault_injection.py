"""Faults at any point of any operation: out of memory, a full disk, Ctrl-C, a source that fails, a file that changes.

`inject_many(n, seed)` draws the operation, the fault and the point at which it happens, and checks what is left: the
exception must be the one that happened or name it, the estimator must be as it was or as Ctrl-C is documented
to leave it, the same operation again must give the undisturbed result, threads must have ended, and
files must be whole or as they were.
"""

import copy
import errno
import gc
import io
import linecache
import os
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

import tkmeans.sources.dask as dask_source
from support.estimator_cases import centers_of
from support.interruptible_operations import FITS, OPERATIONS, WRITES, CommandFailed, SilentCallback, X, prior_estimator
from tkmeans import atomic
from tkmeans.engines import native, reference
from tkmeans.estimators.clusterer import Interrupted
from tkmeans.fitting.observers import SHARE_OF_TIME
from tkmeans.sources.arrays import BlockSource
from tkmeans.sources.base import BLOCK_ROWS
from tkmeans.tables.arrow_table import ArrowTable
from tkmeans.tables.table_files import MatrixTable

OUR_CODE = str(Path(atomic.__file__).parent)
OLD = b"what was there before"
GOOD_ROWS = X.copy()


class WrongOutcome(AssertionError):
    """Something was lost, half-written or swallowed."""


# ---- places where a fault may happen ----------------------------------------------------------


class Trigger:
    """Counts the points at which a fault could happen, and raises the fault at one of them."""

    def __init__(self, fault=None, at=None):
        self._lock, self._fault, self._at = threading.Lock(), fault, at
        self.n_points, self.fired = 0, False

    def __call__(self):
        with self._lock:
            self.n_points += 1
            now = self.n_points == self._at
        if now:
            self.fired = True
            self._fault()


@contextmanager
def at_calls(trigger, *places):
    """A point at every call of these functions, given as pairs of owner and name."""

    def triggering(original):
        def call(*args, **options):
            trigger()
            return original(*args, **options)

        return call

    with ExitStack() as stack:
        for owner, name in places:
            stack.enter_context(mock.patch.object(owner, name, triggering(getattr(owner, name))))
        yield


@contextmanager
def at_lines(trigger):
    """A point at every line of the package that this thread, or one that it starts, comes to."""

    def trace(frame, event, arg):
        if not frame.f_code.co_filename.startswith(OUR_CODE):
            return None
        visits = Counter()

        def trace_line(frame, event, arg):
            if event == "line" and not _leaves_a_block(frame, visits):
                trigger()
            return trace_line

        return trace_line

    before = sys.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
        threading.settrace(before)


def _leaves_a_block(frame, visits):
    """Whether a `with` is visited again at its end, where Python lets no interrupt in before __exit__ is called."""
    if not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
        return False
    visits[frame.f_lineno] += 1
    return visits[frame.f_lineno] % 2 == 0


@contextmanager
def at_blocks(trigger):
    """A point before every block of rows."""
    original = BlockSource.blocks

    def blocks(self):
        for block in original(self):
            trigger()
            yield block

    with mock.patch.object(BlockSource, "blocks", blocks):
        yield


class FullDisk(io.FileIO):
    """A file on a disk that may be full after any 64 bytes."""

    def __init__(self, file, mode, trigger):
        super().__init__(file, mode)
        self._trigger = trigger

    def write(self, data):
        for place in range(0, len(data), 64):
            try:
                self._trigger()
            except OSError:
                super().write(memoryview(data)[:place])
                raise
        return super().write(data)


@contextmanager
def at_bytes(trigger):
    """A point as bytes are written, and when a file is made, flushed to the disk or put in its place."""

    def fdopen(descriptor, mode):
        return io.BufferedWriter(FullDisk(descriptor, mode, trigger))

    def path_open(path, mode="r", **options):
        if "a" not in mode:
            return original(path, mode, **options)
        return io.TextIOWrapper(io.BufferedWriter(FullDisk(path, "a", trigger)), newline="")

    original = Path.open
    system = [(os, "fsync"), (os, "replace"), (os, "chmod"), (tempfile, "mkstemp")]
    with (
        at_calls(trigger, *system),
        mock.patch.object(os, "fdopen", fdopen),
        mock.patch.object(Path, "open", path_open),
    ):
        yield


def _calls(*places):
    return lambda trigger: at_calls(trigger, *places)


PLACES = {
    "engine": _calls(*((engine, name) for engine in (native, reference) for name in ("summarize", "rows"))),
    "allocation": _calls(*((np, name) for name in ("empty", "zeros", "concatenate", "ascontiguousarray"))),
    "pass": _calls((BlockSource, "reduce"), (BlockSource, "collect"), (dask_source.DaskSource, "reduce")),
    "block": at_blocks,
    "line": at_lines,
    "disk": at_bytes,
    "reading": _calls((MatrixTable, "_read"), (ArrowTable, "_cells")),
    "partition": _calls((dask_source, "_array")),
    "callback": _calls((SilentCallback, "on_fit_task_begin"), (SilentCallback, "on_fit_task_end")),
}


# ---- what goes wrong --------------------------------------------------------------------------


def raising(make):
    def fault(folder):
        raise make()

    return fault


no_memory = raising(lambda: MemoryError("injected"))
ctrl_c = raising(lambda: KeyboardInterrupt("injected"))
disk_full = raising(lambda: OSError(errno.ENOSPC, "injected"))
no_permission = raising(lambda: PermissionError(errno.EACCES, "injected"))
broken = raising(lambda: RuntimeError("injected"))


def rewriting(change):
    """Somebody writes to the file that is being read."""

    def fault(folder):
        (path,) = folder.glob("X.*")
        rows = change(GOOD_ROWS)
        if path.suffix == ".npy":
            np.save(path, rows)
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"a": rows[:, 0], "b": rows[:, 1]}), path)

    return fault


def overwriting(value):
    """Somebody writes to the rows in memory."""

    def fault(folder):
        X[100:130, 1] = value

    return fault


class FaultKind(NamedTuple):
    """What is done, where it goes wrong, and how."""

    operations: list[str]
    place: str
    faults: list
    raises: bool = True  # False: somebody else meddles, and nothing is raised at once


FILES = ["a .npy file", "a Parquet file"]
IN_MEMORY = ["t-k-means", "t-k-means in two threads", "t-k-means by the reference", "fast t-k-means"]
FAULT_KINDS = {
    "out of memory in an engine": FaultKind(list(FITS), "engine", [no_memory]),
    "out of memory in NumPy": FaultKind(list(OPERATIONS), "allocation", [no_memory]),
    "out of memory at any line": FaultKind(list(OPERATIONS), "line", [no_memory]),
    "Ctrl-C at any line": FaultKind(list(OPERATIONS), "line", [ctrl_c]),
    "Ctrl-C in a pass": FaultKind(list(FITS), "pass", [ctrl_c]),
    "Ctrl-C in a block": FaultKind(list(FITS), "block", [ctrl_c]),
    "a block that cannot be read": FaultKind(list(FITS), "block", [broken, disk_full]),
    "a file that cannot be read": FaultKind([*FILES, "a CSV file"], "reading", [broken, no_permission]),
    "a partition that cannot be computed": FaultKind(["dask"], "partition", [broken, no_memory]),
    "a callback that fails": FaultKind([name for name in FITS if "callbacks" in name], "callback", [broken, ctrl_c]),
    "a full disk": FaultKind(list(WRITES), "disk", [disk_full]),
    "no permission": FaultKind(list(WRITES), "disk", [no_permission]),
    "a file that becomes shorter": FaultKind(FILES, "reading", [rewriting(lambda X: X[:-40])], raises=False),
    "a file that becomes longer": FaultKind(FILES, "reading", [rewriting(lambda X: np.vstack([X, X]))], raises=False),
    "a file whose values change": FaultKind(FILES, "reading", [rewriting(lambda X: X * np.inf)], raises=False),
    "rows that change in memory": FaultKind(
        IN_MEMORY, "pass", [overwriting(np.inf), overwriting(np.nan)], raises=False
    ),
}
FAULT_KINDS = {name: kind for name, kind in FAULT_KINDS.items() if kind.operations}


# ---- one fault --------------------------------------------------------------------------------


@contextmanager
def small_blocks_and_frequent_checkpoints():
    """Many small blocks, a checkpoint after every iteration, and warnings that nobody minds."""
    settings = [(BLOCK_ROWS, BLOCK_ROWS.set(128)), (SHARE_OF_TIME, SHARE_OF_TIME.set(1e9))]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for setting, before in settings:
            setting.reset(before)


@cache
def undisturbed(name):
    """The estimator after the operation, if nothing goes wrong."""
    return _after(name, lambda trigger: ExitStack(), Trigger())


@cache
def n_points(name, place):
    trigger = Trigger()
    _after(name, PLACES[place], trigger)
    return trigger.n_points


def _after(name, place, trigger):
    estimator = copy.deepcopy(prior_estimator(name))
    with tempfile.TemporaryDirectory() as folder:
        OPERATIONS[name].prepare(Path(folder))
        with place(trigger):
            OPERATIONS[name].run(estimator, Path(folder))
    return estimator


def inject_one(kind, seed):
    """One fault of this kind; how it ended, or None if its point was never reached."""
    rng = np.random.default_rng(seed)
    kind = FAULT_KINDS[kind]
    name, fault = kind.operations[rng.integers(len(kind.operations))], kind.faults[rng.integers(len(kind.faults))]
    with small_blocks_and_frequent_checkpoints(), tempfile.TemporaryDirectory() as folder:
        points = n_points(name, kind.place)
        if not points:
            return None
        trigger = Trigger(lambda: fault(Path(folder)), at=rng.integers(points) + 1)
        try:
            outcome = run_with_fault(name, kind, trigger, Path(folder), old_output=rng.random() < 0.5)
        except WrongOutcome as wrong:
            raise WrongOutcome(f"{name}, point {trigger._at} of {points}: {wrong}") from wrong
        finally:
            X[:] = GOOD_ROWS
    return outcome if trigger.fired else None


def run_with_fault(name, kind, trigger, folder, *, old_output):
    operation, estimator = OPERATIONS[name], copy.deepcopy(prior_estimator(name))
    undisturbed(name)
    operation.prepare(folder)
    if old_output and operation.output and not (folder / operation.output).exists():
        (folder / operation.output).write_bytes(OLD)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    attributes, threads = copy.deepcopy(vars(estimator)) if estimator else {}, set(threading.enumerate())
    with _nothing_ignored():
        outcome = _outcome(operation, kind, trigger, estimator, folder)
        if outcome == "raised":
            now = _state(estimator)
            changed = [key for key in {**attributes, **now} if not _same(key, attributes, now)]
            _check(not changed, f"half-fitted: {changed}")
        _check(outcome != "coped" or _all_finite(estimator), "an attribute is not finite")
        _check_threads(threads)
    _check_files(operation, kind, files, folder)
    if not trigger.fired or estimator is None:
        return outcome
    X[:] = GOOD_ROWS
    operation.prepare(folder)
    operation.run(estimator, folder)
    expected = _state(undisturbed(name))
    changed = [key for key in expected if not _same(key, expected, _state(estimator))]
    _check(not changed, f"afterwards another answer: {changed}")
    return outcome


def _outcome(operation, kind, trigger, estimator, folder):
    try:
        with PLACES[kind.place](trigger):
            operation.run(estimator, folder)
    except Interrupted:
        _check(not hasattr(estimator, "labels_"), "labels of an earlier fit")
        _check(np.all(np.isfinite(centers_of(estimator))), "centres that are not finite")
        estimator.predict(X)
        return "interrupted"
    except CommandFailed as fault:
        _check(fault.args[0] in (1, 130), f"exit code {fault.args[0]}")
        return "raised"
    except BaseException as fault:
        _check(_tells(fault, kind, folder), f"the fault became {fault!r}")
        return "raised"
    _check(not (trigger.fired and kind.raises), "the fault was swallowed")
    return "coped"


def _tells(fault, kind, folder):
    """Whether it is the fault that happened, or comes from it; or names the file or feature that has changed."""
    if not kind.raises:
        return isinstance(fault, ValueError) and (str(folder) in str(fault) or "values in feature 1" in str(fault))
    while fault is not None:
        if "injected" in str(fault):
            return True
        fault = fault.__cause__ or fault.__context__
    return False


def _check(holds, what):
    if not holds:
        raise WrongOutcome(what)


def _state(estimator):
    return {} if estimator is None else vars(estimator)


def _same(key, a, b):
    return key == "checkpoint" or (key in a and key in b and _equal(a[key], b[key]))


def _equal(a, b):
    """To the last bit."""
    if hasattr(a, "compute") and hasattr(b, "compute"):
        a, b = a.compute(scheduler="synchronous"), b.compute(scheduler="synchronous")
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and (np.array_equal(a, b) if a.dtype == object else a.tobytes() == b.tobytes())
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(_equal, a, b))
    return type(a) is type(b) and (a == b or repr(a) == repr(b))


def _all_finite(estimator):
    numbers = [value for key, value in _state(estimator).items() if key.endswith("_") and np.ndim(value) < 3]
    return all(np.all(np.isfinite(value)) for value in numbers if np.asarray(value).dtype.kind == "f")


def _check_threads(before):
    """Threads of an executor that nobody holds any more end by themselves, a moment later."""
    for _ in range(500):
        if set(threading.enumerate()) <= before:
            return
        gc.collect()
        time.sleep(0.01)
    raise WrongOutcome(f"threads go on: {set(threading.enumerate()) - before}")


def _check_files(operation, kind, before, folder):
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    left = set(after) - set(before) - {operation.output}
    _check(not left, f"files are left: {left}")
    for name in before:
        _check(name in after, f"{name} is lost")
        _check(name == operation.output or not kind.raises or after[name] == before[name], f"{name} was changed")
    if operation.output in after and after[operation.output] != before.get(operation.output):
        try:
            whole = operation.is_complete(folder / operation.output)
        except Exception as fault:
            raise WrongOutcome(f"{operation.output} is not whole: {fault}") from fault
        _check(whole, f"{operation.output} is not whole")


@contextmanager
def _nothing_ignored():
    """Exceptions in a destructor are printed by Python and forgotten."""
    ignored = []
    with mock.patch.object(sys, "unraisablehook", lambda told: ignored.append(repr(told.exc_value))):
        yield
        _check(not ignored, f"printed and ignored: {ignored}")


# ---- many faults ------------------------------------------------------------------------------


def inject_many(n, seed=0):
    """Inject n faults; how many of each kind ended how, as {(kind, outcome): count}.

    Raises WrongOutcome, with what it takes to have them again, if something was lost, half-written or swallowed.
    """
    counts, wrong, number = Counter(), [], 0
    while counts.total() + len(wrong) < n:
        kind = list(FAULT_KINDS)[number % len(FAULT_KINDS)]
        try:
            outcome = inject_one(kind, (seed, number))
            if outcome is not None:
                counts[kind, outcome] += 1
        except WrongOutcome as fault:
            wrong.append(f"inject_one({kind!r}, ({seed}, {number})): {fault}")
        number += 1
    if wrong:
        raise WrongOutcome(f"{len(wrong)} of {n} faults did harm:\n" + "\n".join(wrong))
    return counts
