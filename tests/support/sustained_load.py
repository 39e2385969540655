"""Work that goes on for long, in a process of its own whose memory is measured or limited.

python -m support.sustained_load NAME NUMBER prints what was found, as JSON.
"""

import gc
import itertools
import json
import sys
import tempfile
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import tkmeans
from support.model_inputs import t_mixture
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans

SPARE = 48 << 20  # bytes that a service may use beyond what it has when it begins
N_THREADS = 4


def megabytes(field):
    """Of memory that this process has: field 0 of addresses, 1 in use."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[field])
    return pages * __import__("resource").getpagesize() / 2**20


def limit_memory(spare=None):
    """Allow so many bytes more than there are, or any number."""
    import resource

    limit = resource.RLIM_INFINITY if spare is None else int(megabytes(0) * 2**20) + spare
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))


def fits(n_fits):
    """The growth of memory over three quarters of so many fits, the first quarter being the warm-up."""
    X, _, _ = t_mixture(n=2000, n_clusters=3, n_features=4)
    estimators = [
        TKMeans(3, n_jobs=2),
        FastTKMeans(3, max_iter=20),
        MiniBatchTKMeans(3, batch_size=500, max_iter=1, random_state=0),
        StudentTMixture(3, max_iter=2, init_params="k-means++", random_state=0),
    ]
    path = Path(tempfile.mkdtemp()) / "model.json"
    for number in range(n_fits):
        if number == n_fits // 4:
            before = megabytes(1)
        model = tkmeans.TKMeans(3) if number % 10 == 0 else estimators[number % len(estimators)]
        model.fit(X)
        model.predict(X)
        model.predict_proba(X)
        if number % 10 == 0:
            tkmeans.save(model, path)
            tkmeans.load(path)
    return {"growth": megabytes(1) - before}


def service(seconds):
    """Requests of many threads, under a limit of memory; now and then one that needs more than there is."""
    X, _, _ = t_mixture(n=3000, n_clusters=5, n_features=6)
    path = Path(tempfile.mkdtemp()) / "model.json"
    tkmeans.save(TKMeans(5).fit(X), path)
    model = tkmeans.load(path)
    methods = [model.predict, model.predict_proba, model.transform, model.outlier_pvalues, model.score_samples]
    expected = [method(X) for method in methods]
    huge = np.broadcast_to(X[:1], (20_000_000, X.shape[1]))  # takes no memory itself; its labels would
    until, served, wrong, refused = [time.monotonic() + 1], [0], [], [0]
    together = threading.Barrier(N_THREADS)

    def serve(thread):
        rng = np.random.default_rng(thread)
        for number in itertools.count():
            if time.monotonic() > until[0]:
                return
            start, which = int(rng.integers(len(X))), int(rng.integers(len(methods)))
            rows = slice(start, start + int(rng.integers(1, 1000)))
            if not np.array_equal(methods[which](X[rows]), expected[which][rows]):
                wrong.append(methods[which].__name__)
            if thread == 0 and number % 200 == 199:
                try:
                    model.predict(huge)
                    wrong.append("the huge request was served")
                except MemoryError:
                    refused[0] += 1
            served[0] += 1  # of several threads: a few may be lost

    def run(thread):
        together.wait()
        serve(thread)

    with ThreadPoolExecutor(N_THREADS) as pool:  # a second of warm-up; a thread's first request takes addresses
        limit_memory(600 << 20)
        list(pool.map(run, [1, 2, 3, 4]))
        before, served[0], until[0] = megabytes(1), 0, time.monotonic() + seconds
        limit_memory(SPARE)
        list(pool.map(run, range(N_THREADS)))
    return {"served": served[0], "wrong": wrong, "refused": refused[0], "growth": megabytes(1) - before}


def refit(n_rows):
    """A fit that does not find the memory it needs, after one that did; and a third when there is memory again."""
    X, _, _ = t_mixture(n=n_rows, n_clusters=3, n_features=4)
    model = TKMeans(3, random_state=0).fit(X[:1000])
    before = {name: np.array(value, copy=True) for name, value in vars(model).items() if name.endswith("_")}
    failed = False
    limit_memory(1 << 20)
    try:
        model.fit(X)
    except MemoryError:
        failed = True
    limit_memory()
    same = all(np.array_equal(getattr(model, name), value) for name, value in before.items())
    again = np.array_equal(model.fit(X).labels_, TKMeans(3, random_state=0).fit(X).labels_)
    return {"failed": failed, "same": same, "again": again}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(globals()[sys.argv[1]](int(sys.argv[2]))))
