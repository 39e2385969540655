"""Trust: hostile inputs, calls and files, and faults on the way; what came of them.

python -m benchmarks.trust [--inputs 150000] [--calls 50000] [--models 10000] [--checkpoints 10000] [--tables 10000]
    [--faults 500] [--jobs 1] [--seed 0] [docs/benchmarks/trust.md]

An input is a fit or a prediction by one of the estimators (`tests/support/hostile_cases.py`), checked by
`tests/support/answer_checks.py`; a call is one of any public function with one hostile argument
(`tests/support/public_calls.py`); models, checkpoints and tables are good files that were mutated
(`tests/support/forged_files.py`). Each runs in a process of its own kind: one that crashes or hangs is
replaced, and what it was busy with is counted and named by its kind and number. `python -m benchmarks.trust --only
calls:17` tries that one again. The command fails on anything wrong.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.common import hold_to_the_bar, markdown, publish

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

PATIENCE = 60.0  # seconds for one input, which takes a hundredth of one
BATCH = 50  # inputs that a worker is given at a time
RESULT = "result"

# What is tried, with how many of each the issue of trust asks for, and what the page says of it.
KINDS = {
    "inputs": (
        150_000,
        "fits and predictions: rows of all sizes and shapes in all containers, with all weights and parameters",
    ),
    "calls": (50_000, "calls of every public function, with a hostile value for one of its parameters"),
    "models": (10_000, "forged model files with a right checksum, or damaged ones; what loads is asked everything"),
    "checkpoints": (10_000, "forged and damaged checkpoints, from which a fit is resumed"),
    "tables": (10_000, "damaged tables: text, compressed, Parquet, Feather, NPY, JSON, workbooks, DuckDB"),
}

INTRO = """\
A result was checked against the definitions, and has no NaN; a refusal must be on
[the list](../guides/errors.md); a warning that is not ours is an error.
{seconds:.0f} CPU seconds ({each:.1f} ms each), numbers {first} to {last} of each kind.

"""


@dataclass
class Tally:
    """What became of all inputs."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)  # (kind of input, outcome)
    wrong: list[str] = field(default_factory=list)  # with the number of the input
    crashes: list[str] = field(default_factory=list)
    hangs: list[str] = field(default_factory=list)

    @property
    def failures(self) -> list[str]:
        """All that must not be."""
        return [*self.wrong, *self.crashes, *self.hangs]


# ---- one input -----------------------------------------------------------------------------


def attempt(task: tuple[str, int]) -> tuple[str, str, str]:
    """The kind of this task, its outcome, and the complaint if it is a wrong answer."""
    from support.answer_checks import WrongAnswer, outcome_of

    suite, number = task
    kind, told = suite, ""
    try:
        if suite == "inputs":
            from support.hostile_cases import hostile_case

            made = hostile_case(Random(number))
            kind, told = f"inputs, {made.kind.partition(':')[0]}", f"{made.kind}, {type(made.estimator).__name__}: "
            return kind, outcome_of(made), ""
        if suite == "calls":
            from support.public_calls import hostile_call, outcome_of_call

            return kind, outcome_of_call(hostile_call(Random(number))), ""
        from support.forged_files import CASES

        return kind, CASES[suite](Random(number)), ""
    except WrongAnswer as error:
        return kind, "wrong answer", f"{suite}:{number}: {told}{error}"


def work(link: Connection) -> None:
    """Try the tasks that come in, one by one; announce each before, and tell its outcome after."""
    while (tasks := link.recv()) is not None:
        for task in tasks:
            link.send(("begin", task))
            link.send(("end", attempt(task)))
        link.send(("more", None))


# ---- all of them -----------------------------------------------------------------------------


class Worker:
    """A process, what it is busy with, and since when."""

    def __init__(self, batches: Iterator[list[tuple[str, int]]]) -> None:
        self.batches, self.left = batches, []
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.link, other = context.Pipe()
        self.process = context.Process(target=work, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.busy: tuple[str, int] | None = None
        self.since = time.monotonic()
        self._feed()

    def _feed(self) -> None:
        self.left = self.left or next(self.batches, [])
        self.link.send(self.left or None)
        self.done = not self.left

    def listen(self, tally: Tally) -> None:
        """Take one message, or bury a process that crashed or hung and start another."""
        if not self.link.poll():
            if time.monotonic() - self.since > PATIENCE:
                self.process.kill()
                self._bury(tally.hangs, f"no answer in {PATIENCE:.0f} s")
            return
        try:
            word, content = self.link.recv()
        except EOFError:
            if not self.done:
                self.process.join()
                self._bury(tally.crashes, f"exit code {self.process.exitcode}")
            return
        self.since = time.monotonic()
        if word == "begin":
            self.busy = content
        elif word == "end":
            kind, outcome, complaint = content
            tally.outcomes[kind, outcome] += 1
            tally.wrong.extend([complaint] if complaint else [])
            self.left.remove(self.busy)
        else:
            self._feed()

    def _bury(self, kept: list[str], what: str) -> None:
        kept.append(f"{self.busy}: {what}")  # the kind and the number
        if self.busy in self.left:
            self.left.remove(self.busy)
        self._start()


def hostile_tasks(tasks: list[tuple[str, int]], jobs: int) -> Tally:
    """Try all tasks in so many processes."""
    batches = (tasks[i : i + BATCH] for i in range(0, len(tasks), BATCH))
    tally, workers = Tally(), [Worker(batches) for _ in range(jobs)]
    told = known = 0
    while not all(worker.done for worker in workers):
        wait([worker.link for worker in workers if not worker.done], timeout=1.0)
        for worker in workers:
            if not worker.done:
                worker.listen(tally)
        tried, failures = sum(tally.outcomes.values()), tally.failures
        if len(failures) > known:
            print("failed:", *failures[known:], sep="\n  ", flush=True)
            known = len(failures)
        if tried >= told + 5000:
            told = tried
            print(f"{tried} of {len(tasks)}, {known} failures", flush=True)
    for worker in workers:
        worker.process.join()
    return tally


def tasks_suite(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The section about inputs, calls and files, and what failed."""
    before = _cpu_seconds()
    sizes = {kind: getattr(options, kind) for kind in KINDS}
    tasks = [(kind, options.seed + i) for kind, n in sizes.items() for i in range(n)]
    tally = hostile_tasks(tasks, options.jobs)
    seconds, n = _cpu_seconds() - before, len(tasks)
    last = options.seed + max(sizes.values()) - 1
    text = "".join(f"- {size} {KINDS[kind][1]}\n" for kind, size in sizes.items() if size) + "\n"
    text += INTRO.format(seconds=seconds, each=1000 * seconds / max(n, 1), first=options.seed, last=last)
    refusals = sorted({outcome for _, outcome in tally.outcomes} - {RESULT, "wrong answer"})
    rows = []
    for kind in sorted({kind for kind, _ in tally.outcomes}):
        by_outcome = {outcome: count for (k, outcome), count in tally.outcomes.items() if k == kind}
        refused = sum(by_outcome.get(name, 0) for name in refusals)
        row = [kind, sum(by_outcome.values()), by_outcome.get(RESULT, 0), refused, by_outcome.get("wrong answer", 0)]
        rows.append([str(cell) for cell in row])
    text += "## By kind\n\n" + markdown(["what is hostile", "tried", "results", "refused", "wrong"], rows)
    counts = Counter[str]()
    for (_, outcome), count in tally.outcomes.items():
        counts[outcome] += count
    outcomes = [RESULT, *sorted(refusals, key=lambda name: -counts[name])]
    text += "\n## By outcome\n\n" + markdown(["outcome", "tried"], [[o, str(counts[o])] for o in outcomes])
    return text + _failures(tally), tally.failures


def _failures(tally: Tally) -> str:
    nan = sum("not finite" in complaint for complaint in tally.wrong)
    rows = [
        ["wrong answers (undocumented exceptions among them)", str(len(tally.wrong))],
        ["NaN or infinity in a fitted attribute or an answer", str(nan)],
        ["crashes", str(len(tally.crashes))],
        [f"hangs (more than {PATIENCE:.0f} s)", str(len(tally.hangs))],
    ]
    return "\n## What must not be\n\n" + markdown(["", "tried"], rows)


# ---- faults ------------------------------------------------------------------------------------


def faults_suite(options: argparse.Namespace) -> tuple[str, list[str]]:
    """The section about faults injected into fits and files, and what failed; empty if there are none to inject."""
    try:
        from support.fault_injection import inject_many
    except ImportError:
        return "", []
    before = time.process_time()
    try:
        outcomes: Mapping[tuple[str, str], int] = inject_many(options.faults, options.seed)
    except AssertionError as harm:
        return f"\n## Faults injected\n\n{options.faults} faults; some did harm.\n", [str(harm)]
    seconds = time.process_time() - before
    n = sum(outcomes.values())
    text = f"\n## Faults injected\n\n{n} faults, {seconds:.0f} CPU seconds; none did harm.\n\n"
    rows = [[kind, outcome, str(count)] for (kind, outcome), count in sorted(outcomes.items())]
    return text + markdown(["fault", "outcome", "faults"], rows), []


Suite = Callable[[argparse.Namespace], tuple[str, list[str]]]
SUITES: list[Suite] = [tasks_suite, faults_suite]


def _cpu_seconds() -> float:
    """Of the processes that have ended, and of this one."""
    used: list[Any] = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    """Print the figures, and fail on anything that must not be."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?")
    for kind, (size, _) in KINDS.items():
        parser.add_argument(f"--{kind}", type=int, default=size)
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first of each kind")
    parser.add_argument("--only", help="try the one with this kind and number, as calls:17, and tell")
    options = parser.parse_args()
    if options.only is not None:
        kind, _, number = options.only.rpartition(":")
        print(*attempt((kind or "inputs", int(number))))
        return
    for library in ("OPENBLAS", "MKL", "OMP"):  # the processes to come inherit it
        os.environ[f"{library}_NUM_THREADS"] = "1"
    text, failures = "", []
    for suite in SUITES:
        section, failed = suite(options)
        text, failures = text + section, failures + failed
    publish("Trust", text, options.path)
    hold_to_the_bar(failures)


if __name__ == "__main__":
    main()
