"""The best of other languages beside us: R's mclust, trimcluster and tclust, on the paper's sets and a hard simulation.

    python -m benchmarks.r_packages [--jobs 2] [--draws 2] [--limit 20] [--keep FILE] [--out PAGE]

R is optional. In Debian: apt-get install r-base-core r-cran-mclust r-cran-trimcluster r-cran-prabclus; tclust takes
part where it is installed. What is missing is left out, and the page lists it. Takes half an hour of one core.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config
from scipy.spatial import KDTree
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks.common import load, markdown, publish
from benchmarks.stability import CONTAMINATIONS
from benchmarks.trimmed_kmeans import TrimmedKMeans
from tkmeans import StudentTMixture, TKMeans

SETS = ("A1", "S1", "S3", "unbalance", "dim032")
KINDS = ("clean", "+ 5 % far", "+ 10 % Cauchy")
PAPER_DRAWS = 1
TRIMMED = "trimmed k-means, 500 starts"
README_CELLS = (  # the columns of README's table
    ("A3", "clean"),
    ("S3", "clean"),
    ("S1", "+ 5 % far"),
    ("A1", "+ 5 % far"),
    ("unbalance", "+ 5 % far"),
    ("S2", "+ 10 % Cauchy"),
    ("A3", "+ 30 % far"),
)


class Case(NamedTuple):
    """Rows, the cluster of each (-1 for contamination), and what a method may be given."""

    name: str
    X: np.ndarray
    y: np.ndarray

    @property
    def K(self) -> int:
        """The number of clusters."""
        return len(np.unique(self.y[self.y >= 0]))

    @property
    def share(self) -> float:
        """The share of rows that belong to no cluster."""
        return float(np.mean(self.y < 0))


Fit = Callable[[Case, int, float], tuple[np.ndarray, float]]  # case, seed, limit -> labels, CPU seconds


def python(make: Callable[[Case, int], object]) -> Fit:
    """A clusterer of Python."""

    def fit(case: Case, seed: int, _limit: float) -> tuple[np.ndarray, float]:
        start = time.process_time()
        labels = make(case, seed).fit_predict(case.X)
        return labels, time.process_time() - start

    return fit


def r(packages: str, expression: str) -> Fit:
    """An expression of R that gives the labels of X; `noise` are the rows with the most distant neighbours."""

    def fit(case: Case, seed: int, limit: float) -> tuple[np.ndarray, float]:
        n_noise = round(case.share * len(case.X))
        reach = KDTree(case.X).query(case.X, 13)[0][:, -1]
        noise = np.zeros(len(case.X), int)
        noise[np.argsort(-reach)[:n_noise]] = 1
        with tempfile.TemporaryDirectory() as folder:
            np.savetxt(Path(folder, "rows.csv"), np.column_stack([noise, case.X]), delimiter=",")
            lines = [
                *(f"suppressMessages(library({package}))" for package in packages.split()),
                f"set.seed({seed}); K <- {case.K}; share <- {case.share}",
                f"X <- as.matrix(read.csv('{folder}/rows.csv', header = FALSE)); noise <- X[, 1] == 1",
                "X <- X[, -1]; some <- if (any(noise)) list(noise = noise) else NULL",
                f"start <- proc.time(); labels <- {expression}",
                f"write(c(sum((proc.time() - start)[1:2]), labels), '{folder}/labels.csv', ncolumns = 1)",
            ]
            within = lambda: resource.setrlimit(resource.RLIMIT_CPU, (round(limit), round(limit) + 5))  # noqa: E731
            subprocess.run(["Rscript", "-e", "; ".join(lines)], check=True, capture_output=True, preexec_fn=within)
            seconds, *labels = np.atleast_1d(np.loadtxt(Path(folder, "labels.csv")))
        if not labels:  # R could not fit its models, and gives nothing: one cluster for all
            labels = np.zeros(len(case.X))
        return np.array(labels, int), float(seconds)

    return fit


# By name: what it is given beside the rows, and how it is run. Ours first.
OURS: dict[str, tuple[str, Fit]] = {
    "TKMeans": ("K", python(lambda c, s: TKMeans(c.K, random_state=s))),
    "StudentTMixture": ("K", python(lambda c, s: StudentTMixture(c.K, random_state=s))),
}
OTHERS: dict[str, tuple[str, Fit]] = {
    "KMeans, n_init=10": ("K", python(lambda c, s: KMeans(c.K, n_init=10, random_state=s))),
    "GaussianMixture": ("K", python(lambda c, s: GaussianMixture(c.K, random_state=s))),
    "HDBSCAN": ("least size n/50", python(lambda c, _: HDBSCAN(min_cluster_size=len(c.X) // 50, copy=True))),
    TRIMMED: (
        "K, the share of noise",
        python(lambda c, s: TrimmedKMeans(c.K, trimmed=c.share, random_state=s)),
    ),
}
_MCLUST = "Mclust(X, G = K, initialization = {}, verbose = FALSE)$classification"
_CLEANED = "{{clean <- NNclean(X, 12)$z == 0; {}}}".format(
    _MCLUST.format("if (any(clean)) list(noise = clean) else NULL")
)
IN_R: dict[str, tuple[str, str, str]] = {
    "R mclust": ("K", "mclust", _MCLUST.format("NULL")),
    "R mclust, noise by NNclean": ("K", "mclust prabclus", _CLEANED),
    "R mclust, noise given": ("K, the share of noise", "mclust", _MCLUST.format("some")),
    "R trimcluster, 5 runs": (
        "K, the share of noise",
        "trimcluster",
        "trimkmeans(X, K, trim = share, runs = 5, printcrit = FALSE)$classification",
    ),
    "R tclust, 500 starts": (
        "K, the share of noise",
        "tclust",
        "tclust(X, k = K, alpha = share, nstart = 500)$cluster",
    ),
    "R tclust::tkmeans, 500 starts": (
        "K, the share of noise",
        "tclust",
        "tkmeans(X, k = K, alpha = share, nstart = 500)$cluster",
    ),
}


def methods() -> tuple[dict[str, tuple[str, Fit]], list[str]]:
    """All that can run here, and what is missing."""
    found, missing = OURS | OTHERS, []
    for name, (told, packages, expression) in IN_R.items():
        absent = [package for package in packages.split() if not has(package)]
        if absent:
            missing.append(f"{name} (needs {' and '.join(absent)})")
        else:
            found[name] = (told, r(packages, expression))
    return found, missing


def has(package: str) -> bool:
    """Whether R and one of its packages are installed."""
    asked = f"quit(status = !requireNamespace('{package}', quietly = TRUE))"
    return (
        bool(shutil.which("Rscript")) and subprocess.run(["Rscript", "-e", asked], capture_output=True).returncode == 0
    )


# ---- data ---------------------------------------------------------------------------------


def paper_case(name: str, kind: str, seed: int) -> Case:
    """One of the paper's sets, with fresh contamination."""
    genuine, y = load(name)
    fraction, draw = CONTAMINATIONS[kind]
    n = round(fraction * len(genuine))
    X = np.vstack([genuine, draw(np.random.default_rng(seed), n, genuine.shape[1])])
    return Case(f"{name} {kind}", X, np.concatenate([y, np.full(n, -1)]))


# Three clusters of different size, width and direction: share of rows, centre, axes and their angle.
_THREE = ((0.5, (0.0, 0.0), (2.0, 0.5), 0.7), (0.3, (6.0, 1.0), (1.0, 1.0), 0.0), (0.2, (2.0, 6.0), (0.4, 1.6), 0.4))
DESIGNS = {
    "Gauss": "no contamination",
    "wide noise": "10 % uniform in a box five times as wide",
    "side noise": "15 % uniform in a strip that cuts through one cluster",
    "sun spot": "1 % in one far spot, a hundred widths away",
    "heavy tails": "the clusters are t distributed, with 2 degrees of freedom",
    "one heavy": "one cluster is t distributed with 1.5 degrees of freedom, the others are Gaussian",
    "skewed noise": "15 % with exponential coordinates, from the middle outwards in one direction",
    "dense patch": "5 % uniform in a small square between the clusters",
}


def design(name: str, p: int, seed: int, n: int = 1000) -> Case:
    """One draw: three overlapping clusters, in 20 dimensions with 18 features that tell nothing."""
    rng = np.random.default_rng(seed)
    noise_share = {"wide noise": 0.1, "side noise": 0.15, "sun spot": 0.01, "skewed noise": 0.15, "dense patch": 0.05}
    n_noise = round(n * noise_share.get(name, 0.0))
    y = rng.choice(3, size=n - n_noise, p=[share for share, *_ in _THREE])
    X = np.empty((len(y), 2))
    for k, (_, centre, axes, angle) in enumerate(_THREE):
        own = np.flatnonzero(y == k)
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        z = rng.normal(size=(len(own), 2))
        dof = 2.0 if name == "heavy tails" else 1.5 if name == "one heavy" and k == 0 else None
        if dof is not None:
            z /= np.sqrt(rng.gamma(dof / 2, 2 / dof, size=(len(own), 1)))
        X[own] = np.array(centre) + (z * axes) @ turn.T
    low, high = np.array([-4.0, -4.0]), np.array([9.0, 11.0])
    strays = {
        "wide noise": lambda m: (low + high) / 2 + 5 * (high - low) / 2 * rng.uniform(-1, 1, (m, 2)),
        "side noise": lambda m: np.column_stack([rng.uniform(5, 9, m), rng.uniform(-4, 11, m)]),
        "sun spot": lambda m: np.array([100.0, -80.0]) + 0.5 * rng.normal(size=(m, 2)),
        "skewed noise": lambda m: np.array([2.0, 2.0]) + rng.exponential(8.0, size=(m, 2)) * [1, -1],
        "dense patch": lambda m: np.array([3.5, 3.0]) + rng.uniform(-0.7, 0.7, (m, 2)),
    }
    if n_noise:
        X, y = np.vstack([X, strays[name](n_noise)]), np.concatenate([y, np.full(n_noise, -1)])
    X = np.column_stack([X, rng.normal(size=(len(X), p - 2))])
    return Case(f"{name}, p = {p}", X, y)


# ---- runs ---------------------------------------------------------------------------------


def measure(case: Case, method: str, fit: Fit, seed: int, limit: float) -> tuple[str, str, float, float]:
    """The case, the method, ARI on the rows of clusters (NaN: over the limit, 0: failed) and CPU seconds."""
    warnings.simplefilter("ignore")
    good = case.y >= 0
    try:
        labels, seconds = fit(case, seed, limit)
        return case.name, method, adjusted_rand_score(case.y[good], labels[good]), seconds
    except subprocess.CalledProcessError as error:
        if error.returncode > 0:
            print(case.name, method, error.stderr.decode()[-300:], file=sys.stderr)
        return case.name, method, float("nan") if error.returncode < 0 else 0.0, limit


def scores(cases: list[list[Case]], found: dict[str, tuple[str, Fit]], options: argparse.Namespace) -> dict:
    """Mean ARI and CPU seconds by case and method; and for README's cells mean and deviation of trimmed k-means."""
    done: dict[tuple[str, str], tuple[float, float]] = {}
    if options.keep is not None and options.keep.exists():
        for case, method, *figures in map(json.loads, options.keep.read_text().splitlines()):
            done[case, method] = tuple(figures)
    tasks = [
        delayed(of_case)(draws, name, fit, options.limit)
        for draws in cases
        for name, (_, fit) in found.items()
        if (draws[0].name, name) not in done
    ]
    tasks += [delayed(of_readme)(*cell) for cell in README_CELLS if ("README", " ".join(cell)) not in done]
    start = time.monotonic()
    with parallel_config("loky", n_jobs=options.jobs, inner_max_num_threads=1):
        for i, (case, method, *figures) in enumerate(Parallel(return_as="generator_unordered")(tasks), 1):
            done[case, method] = tuple(figures)
            if options.keep is not None:
                with options.keep.open("a") as file:
                    file.write(json.dumps([case, method, *figures]) + "\n")
            if i % 10 == 0:
                print(f"{i} of {len(tasks)}, {time.monotonic() - start:.0f} s", file=sys.stderr, flush=True)
    return done


def of_case(draws: list[Case], name: str, fit: Fit, limit: float) -> tuple[str, str, float, float]:
    """Means over the draws of one case."""
    each = []
    for seed, case in enumerate(draws):
        each.append(measure(case, name, fit, seed, limit)[2:])
        if np.isnan(each[-1][0]):
            break
    ari, seconds = np.mean(each, axis=0)
    return draws[0].name, name, float(ari), float(seconds)


def table(cases: list[list[Case]], found: dict[str, tuple[str, Fit]], done: dict) -> str:
    """A line for each case; bold where another method is better than both of ours."""
    lines = []
    for name in (draws[0].name for draws in cases):
        ours = max(round(done[name, method][0], 3) for method in OURS)
        line = [name]
        for method in found:
            value = round(done[name, method][0], 3)
            text = "over limit" if np.isnan(value) else f"{value:.3f}"
            line.append(f"**{text}**" if method not in OURS and value > ours else text)
        lines.append(line)
    names = [draws[0].name for draws in cases]
    means = [np.mean([done[name, method][0] for name in names]) for method in found]
    lines.append(["mean", *("-" if np.isnan(mean) else f"{mean:.3f}" for mean in means)])
    lines.append(["CPU seconds, mean", *(f"{np.mean([done[name, m][1] for name in names]):.2f}" for m in found)])
    return markdown(["data", *found], lines)


def lost(cases: list[list[Case]], found: dict[str, tuple[str, Fit]], done: dict) -> str:
    """In how many cases each method is ahead of ours, and behind."""
    lines = []
    names = [draws[0].name for draws in cases]
    for method in found:
        if method in OURS:
            continue
        each = []
        for ours in OURS:
            gaps = np.round([done[name, method][0] - done[name, ours][0] for name in names], 3)
            each.append(f"{int(np.sum(gaps > 0))} / {int(np.sum(gaps == 0))} / {int(np.sum(gaps < 0))}")
        lines.append([method, found[method][0], *each])
    return markdown(["method", "given", *(f"better / equal / worse than {ours}" for ours in OURS)], lines)


def of_readme(name: str, kind: str) -> tuple[str, str, float, float]:
    """Mean and deviation over five seeds of the strongest trimmed k-means that runs without R, given the share."""
    each = []
    for seed in range(5):
        case = paper_case(name, kind, seed)
        each.append(measure(case, TRIMMED, OTHERS[TRIMMED][1], seed, 0.0)[2])
    return "README", f"{name} {kind}", float(np.mean(each)), float(np.std(each))


def readme_row(done: dict) -> str:
    """README's row of trimmed k-means."""
    cells = (done["README", " ".join(cell)] for cell in README_CELLS)
    return "| trimmed k-means | " + " | ".join(f"{m:.3f} ± {std:.3f}".replace("0.", ".") for m, std in cells) + " |"


TEXT = """\
ARI on the rows that belong to clusters, mean over {draws} draws (the paper's sets: {paper_draws}); all
rows that a method calls noise count as one more cluster. **Bold: better than both of ours.** Every method has its
default settings but for what it is given: the number of clusters K, or also the exact share of contamination, which
nobody knows. "Noise by NNclean" lets R guess which rows are noise at first; "noise given" starts with the right number
of them, the rows with the most distant neighbours. Seconds are CPU seconds of one fit, without the start of R; a fit
that takes more than {limit:g} is given up, "over limit", and one that R could not make counts 0.
{versions}
{missing}

## The paper's sets, clean and contaminated

{paper}
{paper_lost}
## A hard simulation

In the spirit of Coretto and Hennig (*Robust improper maximum likelihood*, JASA 111, 2016), though not their designs:
three clusters of different size, width and direction that overlap, 1000 rows, in the plane and in 20 dimensions, of
which 18 tell nothing. The contamination:

{designs}

{hard}
{hard_lost}
## README's row of trimmed k-means

The strongest that runs without R: 500 starts, three steps each, the five best to the end, given the share; 5 seeds.

|  | A3 clean | S3 clean | S1 + 5 % far | A1 + 5 % far | unbalance + 5 % far | S2 + 10 % Cauchy | A3 + 30 % far |
|---|---|---|---|---|---|---|---|
{readme}
"""


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--limit", type=float, default=20.0, help="CPU seconds of one fit in R")
    parser.add_argument("--keep", type=Path, help="a file of what is done, so that a stopped run goes on")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found, missing = methods()
    paper = [[paper_case(name, kind, seed) for seed in range(PAPER_DRAWS)] for kind in KINDS for name in SETS]
    hard = [[design(name, p, seed) for seed in range(options.draws)] for p in (2, 20) for name in DESIGNS]
    done = scores(paper + hard, found, options)
    text = TEXT.format(
        draws=options.draws,
        paper_draws=PAPER_DRAWS,
        limit=options.limit,
        versions=versions(),
        missing=f"Not installed here: {', '.join(missing)}." if missing else "",
        paper=table(paper, found, done),
        paper_lost=lost(paper, found, done),
        designs="\n".join(f"- **{name}**: {what};" for name, what in DESIGNS.items())[:-1] + ".",
        hard=table(hard, found, done),
        hard_lost=lost(hard, found, done),
        readme=readme_row(done),
    )
    publish("The best of R beside us", text, options.out)


def versions() -> str:
    """Of what took part."""
    asked = "cat(R.version.string); for (x in c('mclust','trimcluster','prabclus','tclust')) "
    asked += "if (requireNamespace(x, quietly = TRUE)) cat(',', x, as.character(packageVersion(x)))"
    told = (
        subprocess.run(["Rscript", "-e", asked], capture_output=True, text=True).stdout
        if shutil.which("Rscript")
        else ""
    )
    return f"{told or 'R is not installed'}; Python {platform.python_version()}."


if __name__ == "__main__":
    main()
