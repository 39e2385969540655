"""Select the number of clusters, and their shape: by the evidence for mixtures, or by stability."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from tkmeans.cluster_stability import Progress, plain_copy, show_progress, stability
from tkmeans.docstrings import documented
from tkmeans.estimators import StudentTMixture
from tkmeans.estimators.inputs import open_rows
from tkmeans.estimators.validation import check_choice, check_integer, check_n_jobs
from tkmeans.fitting.selections import CRITERIA, UP_TO_20, Selection
from tkmeans.models.covariances import SHAPES

__all__ = ["Selection", "select_clusters", "select_n_clusters"]


@documented("select_*", "draws", returns="selection")
def select_clusters(
    X: Any,
    n_clusters: Iterable[int] = UP_TO_20,
    *,
    shapes: Sequence[str] | None = None,
    criterion: str = "evidence",
    estimator: Any = None,
    sample_weight: Any = None,
    n_resamples: int = 20,
    random_state: Any = None,
    n_jobs: int | None = None,
    progress: bool | Progress = False,
) -> Selection:
    """Choose the number of clusters, and among several shapes the shape.

    Mixtures of ellipses with noise (:class:`StudentTMixture`) are fitted to a sample of the rows and compared by their
    evidence, in which no row judges a centre or a shape that it has made. The best number is then fitted to all rows.
    Clusters are heaps of any width, direction and profile. Rings and bent shapes are cut in pieces.
    """
    check_choice("criterion", criterion, CRITERIA)
    check_integer("n_resamples", n_resamples, least=1)
    check_n_jobs("n_jobs", n_jobs)
    asked = [] if shapes is None else shapes
    if isinstance(asked, str) or not isinstance(asked, Iterable) or (not (asked := list(asked)) and shapes is not None):
        raise ValueError(f'shapes must be a sequence of at least one shape, such as ("full",), got {shapes!r}')
    for shape in asked:
        check_choice("shapes", shape, [*SHAPES])
    if not isinstance(n_clusters, Iterable) or not (numbers := list(n_clusters)):
        raise ValueError(f"n_clusters must name at least one number, as range(1, 21) does, got {n_clusters!r}")
    for k in numbers:
        check_integer("n_clusters", k, least=1)
    rng, numbers = check_random_state(random_state), sorted({int(k) for k in numbers})
    template = StudentTMixture() if estimator is None else estimator
    if not hasattr(template, "set_params"):
        raise TypeError(f"estimator must be a TKMeans, a StudentTMixture or None, got {estimator!r}")
    reader = plain_copy(template if isinstance(template, StudentTMixture) else StudentTMixture())
    done, total = count(1), len(numbers) * max(len(asked), 1)

    def sized(K: Any, shape: Any) -> Any:
        if isinstance(template, StudentTMixture):
            shape = str(shape) if asked or estimator is None else template.covariance_type
            return plain_copy(template).set_params(n_components=int(K), covariance_type=shape)
        return plain_copy(template).set_params(n_clusters=int(K))

    def tick() -> None:
        show_progress(next(done), total, "select_clusters", progress)

    with warnings.catch_warnings(action="ignore"):  # a wrong number of clusters is what they would tell of
        with open_rows(reader, X, sample_weight, reset=True, method="select_clusters") as source:
            least = 1 if n_clusters is UP_TO_20 else numbers[-1]
            found = reader._selection(source, least, numbers, asked, n_jobs, tick)
        found = replace(found, criterion=criterion)
        if criterion == "stability":
            seeds = rng.randint(np.iinfo(np.int32).max, size=len(found.n_clusters))
            tried = zip(map(sized, found.n_clusters, found.shapes), seeds, strict=True)
            options = {"sample_weight": sample_weight, "n_resamples": n_resamples, "n_jobs": n_jobs}
            worst = [stability(each, X, random_state=seed, **options).mean.min() for each, seed in tried]
            found = replace(found, stability=np.array(worst))
    return replace(found, best_estimator=sized(found.best, found.best_shape).fit(X, sample_weight=sample_weight))


select_n_clusters = select_clusters  # its earlier name
