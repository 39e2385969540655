"""Fits that run in other threads and processes, which can import this module but not a test."""

import hashlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from support.model_inputs import t_mixture
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans

ESTIMATORS = [
    lambda seed: TKMeans(4, n_jobs=2, random_state=seed),
    lambda seed: TKMeans(4, init="random", n_init=2, random_state=seed, max_iter=20),
    lambda seed: FastTKMeans(4, n_jobs=3, random_state=seed),
    lambda seed: MiniBatchTKMeans(4, init_size=500, batch_size=2000, max_iter=1, n_jobs=2, random_state=seed),
    lambda seed: StudentTMixture(2, random_state=seed, max_iter=5),
    lambda seed: TKMeans(4, engine="reference", random_state=seed, max_iter=5),
]


def answer(number):
    """A digest of all results of the fit with this number; equal for equal bits."""
    n_features = 1 + number % 5
    X, _, _ = t_mixture(n=9000 if number % 2 else 1200, n_clusters=4, n_features=n_features, seed=number)
    X = X.astype("float32") if number % 7 == 0 else X
    if number % 3 == 0 and number % len(ESTIMATORS) != 4:  # the mixture takes no missing values
        X[::11, 0] = np.nan if n_features > 1 else 0.0
    model = ESTIMATORS[number % len(ESTIMATORS)](number).fit(X)
    fitted = {name: value for name, value in sorted(vars(model).items()) if name.endswith("_")}
    digest = hashlib.sha256()
    for name, value in [*fitted.items(), ("predict", model.predict(X)), ("score", model.score(X))]:
        digest.update(name.encode() + np.asarray(value).tobytes())
    return digest.hexdigest()


def answers(numbers, n_threads=1):
    """The digests of several fits, n_threads of them at a time."""
    if n_threads == 1:
        return [answer(number) for number in numbers]
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(answer, numbers))


def fitted_centers(X, start, n_jobs):
    """The centres of a fit."""
    return TKMeans(len(start), init=start, n_jobs=n_jobs).fit(X).cluster_centers_
