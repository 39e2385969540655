"""The command `tkmeans bench`: how TKMeans compares with scikit-learn's KMeans on this machine."""

import time
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from tkmeans.cli import screen
from tkmeans.cli.estimator_calls import as_messages
from tkmeans.cli.options import ColumnOptions, Json, ReadingOptions
from tkmeans.cli.prepared_data import prepare
from tkmeans.stats import Array
from tkmeans.tables import TableError
from tkmeans.tables.roles import column_named


class Task(NamedTuple):
    """Rows to cluster, and what is known about them."""

    what: str
    Z: Array
    truth: Sequence[Any] | None  # the cluster of each row
    genuine: Array  # (n,) bool: the rows that are no outliers


def bench(
    reading: ReadingOptions,
    choice: ColumnOptions,
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="Your table; made-up data without it.")] = None,
    k: Annotated[int, typer.Option("-k", "--clusters", min=1, help="The number of clusters.")] = 15,
    truth: Annotated[str | None, typer.Option(help="The column that holds the right clusters, if any.")] = None,
    rows: Annotated[int, typer.Option(min=100, help="Rows of the made-up data.")] = 20_000,
    features: Annotated[int, typer.Option(min=1, help="Columns of the made-up data.")] = 2,
    outliers: Annotated[float, typer.Option(min=0.0, max=1.0, help="Outliers in the made-up data.")] = 0.05,
    rounds: Annotated[int, typer.Option(min=2, help="How often each method runs, in turn.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the first round; others follow.")] = 0,
    json: Json = False,
) -> None:
    """Compare TKMeans with scikit-learn's KMeans: time, right answers, and answers that depend on the seed.

    Times are CPU seconds on one thread, the least of several rounds in which the methods take turns.
    """
    from sklearn.cluster import KMeans

    from tkmeans import TKMeans

    task = _made_up(k, rows, features, outliers, seed) if file is None else _own(file, reading, choice, truth)
    methods: dict[str, Callable[[int], Any]] = {
        "KMeans": lambda seed: KMeans(k, random_state=seed),
        "KMeans, n_init=10": lambda seed: KMeans(k, n_init=10, random_state=seed),
        "TKMeans": lambda seed: TKMeans(k, random_state=seed),
        "TKMeans, dof=1": lambda seed: TKMeans(k, dof=1.0, random_state=seed),
    }
    measured = _measure(methods, task, [seed + i for i in range(rounds)])
    if json:
        screen.print_json({"data": task.what, "rounds": rounds, "methods": measured})
        return
    base = next(each["cpu_seconds"] for each in measured if each["method"] == "KMeans, n_init=10")
    header = ["method", "CPU seconds", "relative", *(["ARI"] if task.truth is not None else []), "ARI between seeds"]
    lines = [
        [each["method"], f"{each['cpu_seconds']:.3f}", f"{each['cpu_seconds'] / base:.2f}"]
        + [f"{ari:.3f}" for ari in (each["ari"], each["agreement"]) if ari is not None]
        for each in measured
    ]
    screen.tell(task.what + ".")
    screen.print_table(header, lines, text=[0])
    right = "ARI is the agreement with the right clusters, outliers aside: 1 is perfect, 0 is chance. "
    screen.tell((right if task.truth is not None else "") + "ARI between seeds is 1 if the seed makes no difference.")


def _made_up(k: int, rows: int, features: int, outliers: float, seed: int) -> Task:
    from tkmeans.datasets import make_contaminated

    X, y = make_contaminated(rows, k, features, outlier_fraction=outliers, random_state=seed)
    what = f"{rows} rows of {screen.count(features, 'feature')} in {k} clusters, and {len(y) - rows} outliers"
    return Task(what, X, y, y >= 0)


def _own(file: str, reading: ReadingOptions, choice: ColumnOptions, truth: str | None) -> Task:
    if truth is not None:
        choice = choice._replace(without=",".join(filter(None, [choice.without, truth])))
    data = prepare(file, reading, choice)
    whole = ~np.isnan(data.X).any(axis=1)
    if not whole.any():
        raise TableError(f"{file} has no row without missing values, which KMeans cannot take")
    if not whole.all():
        screen.warn(f"{np.sum(~whole)} rows with missing values are left out, because KMeans cannot take them")
    labels = None if truth is None else np.array(data.table.cells(column_named(data.table, truth)))[whole]
    return Task(f"{file}: {int(whole.sum())} rows", data.Z[whole], labels, np.ones(int(whole.sum()), dtype=bool))


def _measure(methods: dict[str, Callable[[int], Any]], task: Task, seeds: list[int]) -> list[dict[str, Any]]:
    """For each method the CPU seconds of its quickest fit, and its ARI with the truth and between seeds."""
    from sklearn.metrics import adjusted_rand_score
    from threadpoolctl import threadpool_limits

    seconds = dict.fromkeys(methods, np.inf)
    labels: dict[str, list[Array]] = {name: [] for name in methods}
    with threadpool_limits(1), screen.progress() as progress:
        bar = progress.add_task("measuring", total=len(seeds) * len(methods))
        for seed in seeds:
            for name, method in methods.items():
                start = time.process_time()
                with as_messages(task.what):
                    labels[name].append(method(seed).fit(task.Z).labels_)
                seconds[name] = min(seconds[name], time.process_time() - start)
                progress.advance(bar)
    measured = []
    for name, found in labels.items():
        right = None
        if task.truth is not None:
            truth = np.asarray(task.truth)[task.genuine]
            right = float(np.mean([adjusted_rand_score(truth, each[task.genuine]) for each in found]))
        agreement = float(np.mean([adjusted_rand_score(a, b) for a, b in combinations(found, 2)]))
        measured.append({"method": name, "cpu_seconds": seconds[name], "ari": right, "agreement": agreement})
    return measured
