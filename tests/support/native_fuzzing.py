"""Random shapes and values for the native engine, with the reference engine as the oracle. `tools/fuzz` runs it.

Every execution has a number, from which all of it follows. Values are either ordinary, and then
every number must be the oracle's, or hostile (huge, tiny, infinite, all equal), and then answers must be in
range, and finite where the oracle's are.
"""

import argparse
import sys
import time
from collections import Counter
from typing import NamedTuple
from unittest import mock

import numpy as np

from support.engine_oracle import in_double, stats_errors
from support.shape_oracle import assert_everything_agrees, shape_case
from tkmeans.engines import native, reference, shapes
from tkmeans.engines.native import _native
from tkmeans.engines.native import shapes as native_shapes
from tkmeans.models import Student
from tkmeans.stats import HORIZON, Block, Frame, Kernel, Params, Stats

MOST_NUMBERS = 300_000  # of pairs times features, so that an execution takes milliseconds
SIZES = {
    "p": [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 257],
    "K": [1, 2, 3, 4, 5, 8, 13, 16, 33, 100, 257],
    "n": [0, 1, 2, 3, 7, 8, 31, 32, 33, 63, 127, 128, 129, 300, 1000],
}
HOSTILE = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1e-300, 1e-40, 1e-8, 1e8, 1e18, 1e30, 1e100, 1e160, 1e300, np.inf]
TOLERANCE = {"float64": 1e-11, "float32": 1e-4}


class Case(NamedTuple):
    """What an engine is given."""

    hostile: bool
    block: Block
    params: Params
    kernel: Kernel
    skip_far: bool
    instruction_set: str
    single_from: int


def case(number):
    rng = np.random.default_rng(number)
    p, K, n = (int(rng.choice(SIZES[name])) for name in "pKn")
    n = min(n, max(1, MOST_NUMBERS // (p * K)))
    dtype = rng.choice(["float64", "float32"])
    hostile = rng.random() < 0.5
    centers = rng.normal(size=(K, p)) * rng.choice([0.3, 2.0])
    X = centers[rng.integers(K, size=n)] + rng.normal(size=(n, p))
    scale, dof, unit = 10 ** rng.uniform(-2, 1), rng.choice([1.0, 2.0, 3.7, 50.0, rng.uniform(0.5, 10)]), 1.0
    if hostile:
        X, centers = _spoiled(X, rng), np.clip(_spoiled(centers, rng), -HORIZON[dtype], HORIZON[dtype])
        # Estimators keep the scale above 1e-20, and above 1e-10 in single precision.
        scale, dof = 10 ** rng.uniform(-40 if dtype == "float64" else -20, 10), rng.choice([0.1, 1.0, 30.0, 1e4, 1e8])
        unit = 10 ** (rng.uniform(-1, 1) * (300 if dtype == "float64" else 30)) if rng.random() < 0.2 else 1.0
    if rng.random() < 0.4:
        X[rng.random(X.shape) < rng.choice([0.01, 0.3, 0.9])] = np.nan
        if n:
            X[rng.integers(n)] = np.nan
    origin = np.zeros(p, dtype) if rng.random() < 0.5 else rng.normal(size=p).astype(dtype)
    with np.errstate(over="ignore"):
        X = X.astype(dtype)
    params = Params(centers, scale, float(dof), _log_weights(K, rng))
    kernel = Student().kernel(params)._replace(power=int(rng.choice([1, 0])), log_sums=bool(rng.random() < 0.5))
    block = Block(_laid_out(X, rng), _weights(n, hostile, rng, dtype), Frame(origin, unit))
    skip_far = bool(rng.random() < 0.5)
    instruction_set = str(rng.choice(_native.available_instruction_sets()))
    return Case(hostile, block, params, kernel, skip_far, instruction_set, int(rng.choice([0, native.SINGLE_FROM])))


def _spoiled(values, rng):
    """Some or all of them replaced by others that arithmetic is afraid of, or by one and the same row."""
    values = values.copy()
    if len(values) and rng.random() < 0.2:
        values[:] = values[0]
    chosen = rng.random(values.shape) < rng.choice([0.01, 0.2, 1.0])
    values[chosen] = rng.choice(HOSTILE, chosen.sum()) * rng.choice([-1.0, 1.0], chosen.sum())
    return values


def _laid_out(X, rng):
    """The same rows elsewhere in memory."""
    n, p = X.shape
    way = rng.integers(5)
    if way == 1:
        return np.asfortranarray(X)
    if way == 2:
        wide = np.zeros((2 * n, p + 3), X.dtype)
        wide[::2, 1 : p + 1] = X
        return wide[::2, 1 : p + 1]
    if way == 3:
        return np.ascontiguousarray(X[::-1])[::-1]
    if way == 4:
        X.setflags(write=False)
    return X


def _weights(n, hostile, rng, dtype):
    if rng.random() < 0.4:
        return None
    weight = rng.random(n) * (rng.random(n) < 0.8)
    return (weight * (rng.choice([1e-12, 1.0, 1e12]) if hostile else 1.0)).astype(dtype)


def _log_weights(K, rng):
    if rng.random() < 0.5:
        return np.full(K, -np.log(K))
    log_weights = np.log(rng.dirichlet(np.ones(K)) + 1e-300)
    if K > 1 and rng.random() < 0.2:
        log_weights[rng.integers(1, K)] = -np.inf
    return log_weights


# ---- what must hold -------------------------------------------------------------------------


def check_engine(number):
    """One block through every function of the engine."""
    hostile, block, params, kernel, skip_far, instruction_set, single_from = case(number)
    X, K = block.X, len(params.centers)
    dtype = X.dtype.name
    with (
        mock.patch.multiple(native, _INSTRUCTION_SET=instruction_set, SINGLE_FROM=single_from),
        np.errstate(all="ignore"),
    ):
        sums = native.summarize(block, params, kernel, skip_far=skip_far)
        said = native.rows(block, params, kernel)
        tau = native.memberships(block, params, kernel)
        distances = native.distances(block, params)
        assert said.label.shape == (len(X),), "a label for each row"
        assert np.all((said.label >= 0) & (said.label < K)), "labels are numbers of clusters"
        finite = np.isfinite(reference.summarize(in_double(block), params, kernel).objective)
        if finite:
            np.testing.assert_allclose(tau.sum(axis=1), 1, rtol=1e-4, err_msg="memberships sum to 1")
            total = len(X) if block.weight is None else np.sum(block.weight, dtype=float)
            np.testing.assert_allclose(sums.n.sum(), total, rtol=1e-4, err_msg="rows are shared out")
            for name, values in (*sums._asdict().items(), *said._asdict().items(), ("distances", distances)):
                assert np.all(np.isfinite(values)), f"{name} is finite"
        if hostile:
            return "hostile"
        wanted = Stats._fields if kernel.log_sums else set(Stats._fields) - {"log_u", "entropy"}
        for field, error in stats_errors(sums, block, params, kernel, wanted).items():
            assert error <= TOLERANCE[dtype], f"{field} is off by {error:.1e}"
        _check_rows(said, tau, distances, in_double(block), params, kernel, TOLERANCE[dtype])
    return "ordinary"


def _check_rows(said, tau, distances, block, params, kernel, tolerance):
    expected = reference.rows(block, params, kernel)
    np.testing.assert_allclose(tau, reference.memberships(block, params, kernel), atol=100 * tolerance)
    np.testing.assert_allclose(distances, reference.distances(block, params), rtol=tolerance, atol=10 * tolerance)
    np.testing.assert_allclose(said.trust, expected.trust, rtol=100 * tolerance)
    np.testing.assert_allclose(said.log_density, expected.log_density, rtol=tolerance, atol=100 * tolerance)
    chosen = np.take_along_axis(tau, said.label[:, None], axis=1)[:, 0]
    assert np.all(chosen >= tau.max(axis=1) * (1 - 100 * tolerance)), "the label is the most probable cluster"


def check_shapes(number):
    """One block through every function for clusters with shapes."""
    rng = np.random.default_rng(number)
    p, K, n = (int(rng.choice(SIZES[name])) for name in "pKn")
    K = min(K, max(1, MOST_NUMBERS // (p * p)))
    n = min(max(n, 1), max(1, MOST_NUMBERS // (p * K)))
    form, dtype = str(rng.choice(["full", "diag"])), str(rng.choice(["float64", "float32"]))
    choices = {
        "noise": float(rng.choice([0.0, 1e-9, 0.2])),
        "weighted": rng.random() < 0.5,
        "units": rng.random() < 0.5,
    }
    block, kernel, _ = shape_case(p, K, n, form, dtype=dtype, spread=10 ** rng.uniform(-2, 2), seed=number, **choices)
    hostile = rng.random() < 0.5
    if hostile:
        with np.errstate(over="ignore"):
            X = _spoiled(block.X.astype(float), rng).astype(dtype)
        block = block._replace(X=X, weight=_weights(n, hostile, rng, dtype))
        factors = kernel.factors * 10 ** rng.uniform(-100, 100)
        height = np.where(rng.random(K) < 0.2, -np.inf, kernel.height)
        kernel = kernel._replace(centers=np.clip(_spoiled(kernel.centers, rng), -1e100, 1e100), factors=factors)
        kernel = kernel._replace(height=np.where(np.arange(K) > 0, height, kernel.height))
    block = block._replace(X=_laid_out(block.X, rng))
    with (
        mock.patch.object(native, "_INSTRUCTION_SET", str(rng.choice(_native.available_instruction_sets()))),
        np.errstate(all="ignore"),
    ):
        if not hostile:
            assert_everything_agrees(native_shapes, block, kernel, TOLERANCE["float64"])
            return "shapes"
        sums, said = native_shapes.summarize(block, kernel), native_shapes.rows(block, kernel)
        for name, values in (*sums._asdict().items(), *said._asdict().items()):
            assert np.all(np.isfinite(values)), f"{name} is finite"
        tau = native_shapes.memberships(block, kernel)
        np.testing.assert_allclose(tau.sum(axis=1) + said.noise, 1, rtol=1e-9, err_msg="memberships sum to 1")
        total = n if block.weight is None else np.sum(block.weight, dtype=float)
        np.testing.assert_allclose(sums.total, total, rtol=1e-9, err_msg="rows are shared out")
        distances, oracle = native_shapes.distances(block, kernel), shapes.distances(block, kernel)
        inside = np.abs(block.frame.enter(block.X.astype(float))).max(axis=1)
        rounding = 1e-12 * p * np.abs(kernel.factors).max() * np.maximum(inside[:, None], np.abs(kernel.centers).max())
        wrong = np.isfinite(oracle) & ~(np.abs(distances - oracle) <= 1e-9 * oracle + rounding)
        assert not np.any(wrong), f"distances {distances[wrong]} are {oracle[wrong]}"
    return "hostile shapes"


def check_search(number):
    """A search of any rows, moved about at random: it refuses them, or keeps as many finite centres as it says."""
    rng = np.random.default_rng(number)
    p, n, K = int(rng.choice([1, 2, 3, 4, 7, 33])), int(rng.integers(1, 200)), int(rng.integers(1, 12))
    X = rng.normal(size=(n, p)) * 10 ** rng.uniform(-3, 3)
    hostile = rng.random() < 0.6
    X = _spoiled(X, rng) if hostile else X
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n) * (rng.choice([1e-200, 1.0, 1e200]) if hostile else 1.0)
    instruction_set = str(rng.choice(_native.available_instruction_sets()))
    try:
        with mock.patch.object(native, "_INSTRUCTION_SET", instruction_set):
            search = native.new_search(X, weight, K, float(rng.choice([0.1, 1.0, 100.0])), 600.0)
    except ValueError:
        assert np.any(~(np.abs(X) <= 1e140)) or not 0 < weight.sum() < np.inf, "good rows are not refused"
        return "refused"
    search.seed(int(rng.integers(1, 2 * K + 1)), rng.random(100), int(rng.integers(1, 4)))
    for _ in range(int(rng.integers(1, 8))):
        _move(search, X, rng)
        centers = np.empty((search.clusters, p))
        search.read_centers(centers)
        assert search.clusters >= 1, "there is a centre"
        assert np.all(np.isfinite(centers)), "centres are finite"
        masses, nearest, labels = np.empty(search.clusters), np.empty(n), np.empty(n, np.int64)
        search.read_rows(masses, nearest, labels)
        assert np.all((labels >= 0) & (labels < search.clusters)), "labels are centres"
        assert np.all(masses >= 0), "masses are not negative"
        assert not np.any(np.isnan(nearest)), "distances are numbers"
        search.cost  # noqa: B018
    return "searched"


def _move(search, X, rng):
    way = rng.integers(5)
    if way == 0:
        search.refine(int(rng.integers(0, 4)))
    elif way == 1:
        target = int(rng.integers(1, search.clusters + 2))
        search.descend(target, int(rng.integers(1, target + 1)))
    elif way == 2:
        draws = int(rng.integers(0, 20))
        search.inhale(int(rng.integers(0, 4)), int(rng.integers(0, 8)), rng.random(2 * search.clusters + draws), draws)
    elif way == 3:
        search.fix_noise()
    else:
        rows = X[rng.integers(len(X), size=int(rng.integers(1, 12)))]
        search.restore(np.ascontiguousarray(rows), 10 ** rng.uniform(-300, 300))


def check(number):
    """One execution; its kind."""
    return {2: check_shapes, 3: check_search}.get(number % 4, check_engine)(number)


def main():
    """Executions until the time is over, or only one."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--first", type=int, default=0, help="the number of the first execution")
    options.add_argument("--only", type=int, help="the number of the only execution")
    given = options.parse_args()
    if given.only is not None:
        print(check(given.only))
        return
    number, kinds, until = given.first, Counter(), time.monotonic() + given.seconds
    while time.monotonic() < until:
        try:
            kinds[check(number)] += 1
        except BaseException:
            print(f"execution {number} failed; tools/fuzz --only {number} has it again", file=sys.stderr, flush=True)
            raise
        number += 1
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"{kinds.total()} executions from {given.first} on, no finding: {told}")


if __name__ == "__main__":
    main()
