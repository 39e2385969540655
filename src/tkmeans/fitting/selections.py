"""A choice of the number of clusters, and what it was chosen by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils.parallel import Parallel, delayed

from tkmeans.fitting.cluster_counts import Descent
from tkmeans.fitting.evidence import Judged
from tkmeans.sources import Source
from tkmeans.stats import Array

CRITERIA = ("evidence", "icl", "bic", "stability")
DEFAULT_NUMBERS = range(1, 21)

# A number of clusters is stable if the least stable of its clusters is: the mark of prediction strength
# (Tibshirani and Walther 2005), on Hennig's similarity.
STABLE_ENOUGH = 0.8

# Nats from which on a choice is better, clearly better, far better (Kass and Raftery 1995).
CLOSENESS = {1.0: "hardly better", 3.0: "somewhat better", 5.0: "clearly better", np.inf: "far better"}


FORMATS = {"n_clusters": "17d", "shape": ">17s", "probability": "17.3f", "evidence": "17.1f", "icl": "17.1f"}
FORMATS |= {"bic": "17.1f", "outlier_fraction": "17.1%", "stability": "17.2f"}


@dataclass(frozen=True, eq=False)
class Selection:
    """What :func:`select_clusters` found: one entry for each number of clusters and shape that was tried.

    Attributes
    ----------
    n_clusters : ndarray of shape (n_tried,)
        The numbers of clusters, ascending for each shape.
    shapes : ndarray of shape (n_tried,)
        The shapes of the clusters.
    evidence : ndarray of shape (n_tried,)
        Minus the logarithm of the probability of the rows, in nats; smaller is better.
    icl, bic : ndarray of shape (n_tried,)
        Other criteria of the same mixtures, on the scale of twice the logarithm; smaller is better.
    outlier_fraction : ndarray of shape (n_tried,)
        The share of noise. If it falls sharply where a cluster is added, these rows were a cluster.
    stability : ndarray of shape (n_tried,) or None
        The mean similarity of the least stable cluster over resamples, if that is the criterion; larger is better.
    criterion : str
        What was chosen by.
    simpler_shape : str or None
        A simpler shape that describes the chosen clusters as well.
    best_estimator : estimator or None
        The estimator fitted with the best number and shape.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans import select_clusters
    >>> X = np.random.default_rng(0).normal(size=(60, 2)) + np.repeat([[0, 0], [20, 0], [0, 20]], 20, axis=0)
    >>> found = select_clusters(X, range(2, 5), random_state=0)
    >>> found.best, found.best_shape, found.simpler_shape
    (3, 'full', 'spherical')
    >>> found.table.dtype.names
    ('n_clusters', 'shape', 'probability', 'evidence', 'icl', 'bic', 'outlier_fraction')
    """

    n_clusters: Array
    shapes: Array
    evidence: Array
    icl: Array
    bic: Array
    outlier_fraction: Array
    stability: Array | None = None
    criterion: str = "evidence"
    simpler_shape: str | None = None
    best_estimator: Any = None

    @property
    def values(self) -> Array:
        """The values of the criterion that was chosen by."""
        return np.asarray(getattr(self, self.criterion))

    @property
    def _order(self) -> Array:
        """The entries, the most credible first."""
        if self.criterion != "stability":
            return np.argsort(self.values, kind="stable")
        stable = self.values >= STABLE_ENOUGH
        merit: Array = np.where(stable, self.n_clusters, self.values)
        return np.lexsort([-merit, ~stable])

    @property
    def ranking(self) -> Array:
        """The numbers of clusters, the most credible first."""
        return np.array([*dict.fromkeys(self.n_clusters[self._order].tolist())])

    @property
    def best(self) -> int:
        """The number of clusters to take."""
        return int(self.ranking[0])

    @property
    def best_shape(self) -> str:
        """The shape to take."""
        return str(self.shapes[self._order[0]])

    @property
    def runner_up(self) -> int | None:
        """The second choice; None if one number was tried."""
        return int(self.ranking[1]) if len(self.ranking) > 1 else None

    @property
    def margin(self) -> float:
        """By how much the best number is better than the runner-up: in nats, or in stability."""
        if self.runner_up is None:
            return np.inf
        best, second = (self.values[self._order][self.n_clusters[self._order] == k][0] for k in self.ranking[:2])
        return float(abs(second - best)) / (2 if self.criterion in ("icl", "bic") else 1)

    @property
    def probabilities(self) -> Array:
        """How credible each entry is, if one of them is right; NaN where the criterion is stability."""
        if self.criterion == "stability":
            return np.full(len(self.values), np.nan)
        return np.asarray(softmax(-self.values / (1 if self.criterion == "evidence" else 2)))

    @property
    def sentence(self) -> str:
        """The choice, the runner-up, and how close it is."""
        chosen = f"{self.best} cluster{'s' * (self.best > 1)} by {self.criterion}"
        if self.runner_up is None:
            return chosen
        if self.criterion == "stability":
            return f"{chosen}; {self.runner_up} comes next"
        words = next(words for nats, words in CLOSENESS.items() if self.margin < nats or nats == np.inf)
        return f"{chosen}, {words} than {self.runner_up} ({self.margin:.1f} nats)"

    @property
    def table(self) -> Array:
        """One record for each entry, as ``pandas.DataFrame`` takes it."""
        columns = {"n_clusters": self.n_clusters, "shape": self.shapes, "probability": self.probabilities}
        columns |= {name: getattr(self, name) for name in ("evidence", "icl", "bic", "outlier_fraction", "stability")}
        columns = {name: column for name, column in columns.items() if column is not None}
        return np.rec.fromarrays([*columns.values()], dtype=None, names=[*columns])  # type: ignore[call-overload]

    def __repr__(self) -> str:
        order = self._order
        second = [i for i in order if self.n_clusters[i] == self.runner_up]
        marks = {i: "  <- runner-up" for i in second[:1]} | {order[0]: "  <- best"}
        lines = [self.sentence, "".join(f"{name:>17}" for name in self.table.dtype.names)]
        for i, record in enumerate(self.table):
            cells = (format(value, FORMATS[name]) for name, value in zip(self.table.dtype.names, record, strict=True))
            lines.append("".join(cells) + marks.get(i, ""))
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Draw the criterion against the number of clusters, a line for each shape.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        display : :class:`tkmeans.plots.SelectionDisplay`
        """
        from tkmeans.plots import SelectionDisplay

        shown = ("n_clusters", "values", "criterion", "best", "runner_up", "outlier_fraction", "shapes")
        return SelectionDisplay(**{name: getattr(self, name) for name in shown}).plot(ax=ax)


def compared(
    source: Source,
    numbers: Sequence[int],
    shapes: Sequence[str],
    settings: Any,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
    ticks: Iterator[Any] | None = None,
) -> Selection:
    """The choice among mixtures of these numbers and shapes, by evidence; each takes one of `ticks`."""
    descent, one_at_a_time = Descent(source, max(numbers), rng, settings), Lock()
    numbers = [K for K in numbers if max(len(descent.sample.X), min(numbers)) >= K]

    def tried(shape: str) -> dict[int, Judged]:
        found = dict[int, Judged]()
        for judged in descent.judged_counts(numbers, shape):
            if ticks is not None and judged.n_clusters not in found:
                with one_at_a_time:
                    next(ticks, None)
            found[judged.n_clusters] = judged
        return found

    found = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(tried)(shape) for shape in shapes)
    entries = [(shape, by_number[K]) for shape, by_number in zip(shapes, found, strict=True) for K in sorted(by_number)]
    shape, best = min(entries, key=lambda entry: entry[1].evidence)
    simpler = {"full": ("spherical", "tied", "diag"), "diag": ("spherical",)}.get(shape, ())
    as_good = (name for name in simpler if descent.reshaped(best.params, name).evidence <= best.evidence)
    names, judged = zip(*entries, strict=True)
    columns: dict[str, Any] = {name: np.array([getattr(each, name) for each in judged]) for name in Judged._fields[:5]}
    return Selection(shapes=np.array(names), simpler_shape=next(as_good, None), **columns)
