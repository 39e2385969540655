"""What the docstrings of many public functions have in common, written once."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Warns", "See Also", "Notes", "References", "Examples")
_BETWEEN = re.compile(rf"\n\n(?=(?:{'|'.join(_SECTIONS)})\n---)")
_ENTRIES = """\
X : array-like of shape (n_samples, n_features), path or dask collection
    The rows. For a path, answers for each row go to a Parquet file beside it, and its path is returned: those of
    predict for rows.csv to rows.cluster.parquet, in place of any file of that name.
y, sample_weight : ignored, and array-like of shape (n_samples,), default=None
    How often each row counts.
estimator : object
    A fitted estimator.
ax : matplotlib Axes, default=None
    Where to draw; None makes a new figure.
weights, outliers : array-likes of float and of bool, shape (n_samples,), the latter default=None
    About 1 for an ordinary row, near 0 for one without influence; which rows are outliers: their bars are hatched.
jaccard, sizes : array-likes of shape (n_resamples, n_clusters) and (n_clusters,), the latter default=None
    The Jaccard similarity of each cluster with the most similar one of a resample, NaN if there is none; rows in each
    cluster, shown beside its number.
random_state : int, RandomState instance or None, default=None
    Makes the data reproducible.
n_clusters, max_iter : int, default=8 and 300
    The number of clusters, and the most iterations of one run; those of a swapping KMedoids are sweeps over all rows.
init, random_state : {"k-means++", "random"} or array, default="k-means++", and as in scikit-learn, default=None
    Where to begin; of an array, KMedoids takes the nearest rows. Makes a start that is drawn reproducible.
n_init : "auto" or int, default="auto"
    How many starts to try; that with the least sum of distances is kept. "auto" is 10 for "random", 1 otherwise.
bad_cells : {"auto", True, False}, default="auto"
    Whether values far from all others of their column are treated as missing, where the rest of their row is
    ordinary; see :meth:`find_bad_cells`. Only with the "robust" start, not in sparse rows; True is as "auto".
min_cluster_size : int, default=None
    The least number of rows, or their summed weight, that make a cluster. Smaller heaps, such as one error that was
    made many times, are left out of the search for a start, so that none of the clusters is spent on them. Only with
    the "robust" start, and not for sparse rows of very many columns; "auto" chooses the number of clusters without it.
engine, n_jobs : {"auto", "native", "reference"}, default="auto", and int, default=None
    The code that visits the rows; threads to use, as elsewhere in scikit-learn. Results do not depend on `n_jobs`.
max_time, checkpoint : float and path, default=None
    Seconds after which a fit ends with what it has; a file from which ``fit(X, resume=path)`` can go on.
verbose, random_state : int, default=0, and int, RandomState instance or None, default=None
    Print every iteration if positive; for starts that are drawn (``init="robust"`` draws nothing from it).
cluster_centers_ : ndarray of shape (n_clusters, n_features)
    The centres mu. Clusters are numbered by size, the largest first.
dof_, cluster_weights_ : float and ndarray of shape (n_clusters,)
    The degrees of freedom nu; the probability of each cluster.
labels_, inertia_ : ndarray of shape (n_samples,) and float
    The cluster of each row; the weighted sum of squared distances to the nearest centre.
inertia_, labels_, n_iter_ : float, ndarray of shape (n_samples,) and int
    The weighted sum of distances to the centres; the cluster of each row; iterations, or sweeps, of the best run.
cell_bounds_ : ndarray of shape (2, n_features)
    The lowest and the highest value of each feature that is no bad cell, if the training rows have bad cells.
agreement_, n_searches_, margin_ : float, int and float
    The share of independent searches for a start that ended in these clusters, if there were searches, and how
    many there were; how much better they are than the next best clusters, in nats per row, if there were others.
n_iter_, converged_ : int and bool
    Iterations of the best run, and whether it ended before `max_iter`.
n_features_in_, feature_names_in_ : int and ndarray of shape (n_features,)
    The number of features, and their names, where X had some."""
_SHARED = {re.split(r"\W", entry)[0]: entry for entry in re.split(r"\n(?=\S)", _ENTRIES)}  # by their first names
_SHARED["seen"] = "X : array-like of shape (n_samples, n_features), path or dask collection\n    The rows."
_JOBS = "    How many fits run at a time, on which the result does not depend"
_SHARED["n_jobs"] = f"n_jobs : int, default=None\n{_JOBS}."
_SHARED["draws"] = f"n_jobs, random_state : as in scikit-learn, default=None\n{_JOBS}; for what is drawn."
_SHARED["rows"] = "X : array-like of shape (n_samples, n_features)\n    The rows."


def documented(*shared: str, returns: str = "") -> Callable[[F], F]:
    """Add to a docstring what shared parameters and attributes are, after its own ones, and what is returned."""
    attributes = [_SHARED[name] for name in shared if name.endswith("_")]
    parameters = [_SHARED[name] for name in shared if not name.endswith("_")]

    def complete(function: F) -> F:
        summary, *found = _BETWEEN.split(inspect.cleandoc(function.__doc__ or ""))
        sections = {section.partition("\n")[0]: section for section in found}
        for name, lines in {"Parameters": parameters, "Attributes": attributes, "Returns": [returns]}.items():
            if any(lines):
                sections[name] = "\n".join([sections.get(name, f"{name}\n{'-' * len(name)}"), *lines])
        function.__doc__ = "\n\n".join([summary, *(sections[name] for name in _SECTIONS if name in sections)])
        return function

    return complete
