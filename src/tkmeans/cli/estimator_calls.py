"""Fit and predict for the commands, with the library's warnings and errors as command-line messages."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tkmeans.cli import screen
from tkmeans.cli.options import ModelOptions, Shape
from tkmeans.cli.prepared_data import Data
from tkmeans.row_answers import RowAnswers, answers
from tkmeans.stats import Array
from tkmeans.tables import Table, TableError

_FEW_ROWS, _ROWS_PER_NUMBER = 5, 2  # of a cluster; that an ellipse is made of

# Parameters of the library as options of the command.
_OPTIONS = {"n_clusters": "-k", "n_components": "-k", "random_state": "--seed", "max_iter": "--max-iter"}
_OPTIONS |= {"min_cluster_size": "--min-cluster-size"}


def fitted(data: Data, settings: ModelOptions, largest: int | None = None) -> tuple[Any, Any]:
    """TKMeans or StudentTMixture on the scaled rows, and how the number of clusters was chosen if any were compared."""
    from tkmeans import StudentTMixture, TKMeans

    n_clusters, selection = settings.k, None
    if n_clusters is None or largest is not None:
        selection = selected(data, range(1, (largest or 20) + 1), "evidence", settings.seed, settings.jobs)
        notes = [selection.sentence if n_clusters else f"{selection.sentence}; add -k for another number"]
        if settings.min_cluster_size:
            notes.append("the number was chosen without --min-cluster-size; -k may be better")
        if settings.shape == Shape.round and selection.simpler_shape != "spherical" and selection.best > 1:
            notes.append("these clusters differ in shape or width: --shape elliptical follows them")
        screen.notes(notes)
        n_clusters = n_clusters or selection.best
    n_rows, rows = data.table.n_rows, screen.count(data.table.n_rows, "row")
    if 1 < n_clusters <= n_rows < _FEW_ROWS * n_clusters:
        each = f"{n_clusters} clusters of {rows} are {n_rows / n_clusters:.1f} rows each"
        suggests = ", and 'tkmeans select-k' suggests a number" * (selection is None)
        screen.warn(f"{each}; so small clusters mean little{suggests}")
    is_elliptical = settings.shape == Shape.elliptical
    if settings.shape == Shape.auto:
        p = data.Z.shape[1]
        needed = _ROWS_PER_NUMBER * n_clusters * (p + p * (p + 1) // 2)  # of centres and covariances
        why = f"{rows}, {needed} needed for {screen.count(n_clusters, 'ellipse')} of {screen.count(p, 'column')}"
        is_elliptical = n_rows >= needed
        screen.notes([f"clusters are {'elliptical' if is_elliptical else 'round'} ({why}); --shape chooses otherwise"])
    estimator: Any = StudentTMixture if is_elliptical else TKMeans
    with screen.counting(f"clustering {rows}"), as_messages(data.table):
        model = estimator(n_clusters, max_iter=settings.max_iter, random_state=settings.seed, n_jobs=settings.jobs)
        model.set_params(min_cluster_size=settings.min_cluster_size)
        return model.fit(data.Z, sample_weight=data.weights), selection


def selected(data: Data, numbers: range, criterion: str, seed: int, jobs: int) -> Any:
    """The choice among these numbers of clusters."""
    from tkmeans.selection import select_clusters

    if data.table.n_rows < 2:
        raise TableError(f"{data.table.source} has only one row, which is one cluster")
    if numbers.start > data.table.n_rows:
        raise TableError(f"--min {numbers.start} is more than the {data.table.n_rows} rows of {data.table.source}")
    numbers = range(numbers.start, min(numbers.stop, data.table.n_rows + 1))
    with screen.counting("trying numbers of clusters") as update, as_messages(data.table):
        options: dict[str, Any] = {"criterion": criterion, "random_state": seed, "n_jobs": jobs}
        options["progress"] = lambda done, total: update(completed=done, total=total)
        return select_clusters(data.Z, numbers, sample_weight=data.weights, **options)


def answer(model: Any, Z: Array, table: Table, **asked: Any) -> RowAnswers:
    """What the model answers for each row."""
    with screen.counting("looking at the rows"), as_messages(table, of_fit="fitted" in asked):
        return answers(model, Z, **asked)


@contextmanager
def as_messages(table: Table, *, of_fit: bool = True) -> Iterator[None]:
    """Print the library's warnings; make what it refuses an error of the data."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", ".*without a single observed value")  # the command has reported it
        try:
            yield
        except ValueError as fault:
            raise TableError(f"{table.source}: {_in_our_words(str(fault), table)}") from None
    for text in dict.fromkeys(str(warning.message) for warning in caught):
        screen.warn(_in_our_words(text if of_fit else text.partition(" Try a larger")[0], table))


def _in_our_words(text: str, table: Table) -> str:
    """Parameters as options, without those that the command lacks, and rows by their places in the file."""
    text = re.sub("|".join(_OPTIONS), lambda theirs: _OPTIONS[theirs[0]], text.rpartition("degenerate data. ")[2])
    text = re.sub(", or tol=.* good enough", "", text)
    text = re.sub("n_samples=(.*) should be >= -k=([0-9]*)", r"too few rows (\1) for \2 clusters", text)
    rows = re.compile(r"(?<=rows, such as )[0-9, ]+")
    return rows.sub(lambda found: ", ".join(table.where([*map(int, found[0].split(","))])), text)
