"""Where the library stands on foreign data, beside other methods.

    python -m benchmarks.foreign [--quick] [--draws 3] [--seeds 3] [--jobs 2] [--output docs/benchmarks/foreign.md]

The data are those of benchmarks/foreign_sets.py. iris, wine, breast cancer and digits come with scikit-learn, the other
sets are read from the folder `foreign` of TKMEANS_DATA (files of X, y0, y1, ...; by default ../shared/data next to the
repository); what is missing is left out, and the page lists it. Breathing k-means takes part where bkmeans is
installed, R's mclust and trimcluster where Rscript and the packages are.

There is no bar yet: the command records where the library stands, and never fails because of a figure.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed, parallel_config
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from benchmarks.common import markdown, publish
from benchmarks.foreign_sets import CONTAMINATIONS, GROUPS, SUITED, Case, cases, missing
from tkmeans import StudentTMixture, TKMeans

Fit = Callable[[np.ndarray, int, int], np.ndarray]  # rows, number of clusters, seed -> labels
Cell = Callable[[str, str], tuple[float, str]]  # method, group -> figure to compare, text to show

OURS: dict[str, Fit] = {"TKMeans": lambda X, K, seed: TKMeans(K, random_state=seed).fit_predict(X)}
for _type in ("full", "tied", "diag", "spherical"):
    OURS[f"StudentTMixture, {_type}"] = lambda X, K, seed, type_=_type: StudentTMixture(
        K, covariance_type=type_, random_state=seed
    ).fit_predict(X)
FULL = "StudentTMixture, full"
KMEANS, GMM = "KMeans, n_init=10", "GaussianMixture"
OTHERS: dict[str, Fit] = {
    KMEANS: lambda X, K, seed: KMeans(K, n_init=10, random_state=seed).fit_predict(X),
    GMM: lambda X, K, seed: GaussianMixture(K, random_state=seed).fit_predict(X),
    "GaussianMixture, regularised": lambda X, K, seed: GaussianMixture(
        K, n_init=3, reg_covar=1e-4 * X.var(), random_state=seed
    ).fit_predict(X),
    "HDBSCAN": lambda X, _, __: HDBSCAN(min_cluster_size=max(5, len(X) // 50), copy=True).fit_predict(X),
}
WITHOUT_SEED = ("HDBSCAN",)
# R: the packages a method needs, and the expression that gives the labels of the rows X.
R_METHODS = {
    "mclust": (["mclust"], "Mclust(X, G = K, verbose = FALSE)$classification"),
    "mclust, noise": (
        ["mclust", "prabclus"],
        "{noise <- NNclean(X, 12)$z == 0; start <- if (any(noise)) list(noise = noise) else NULL; "
        "Mclust(X, G = K, initialization = start, verbose = FALSE)$classification}",
    ),
    "trimcluster, 10 %": (["trimcluster"], "trimkmeans(X, K, trim = 0.1, runs = 50)$classification"),
}
CLOSE = 0.01  # mean ARI of two methods that are called equal
SAME = 0.99  # ARI of two seeds that are said to agree


class Outcome(NamedTuple):
    """What one method reached on one draw of a data set."""

    method: str
    case: Case
    ari: float  # mean over the seeds
    agreement: float  # lowest ARI between the labels of two seeds
    seconds: float  # CPU, mean of a fit
    failure: str


def r_fit(packages: list[str], expression: str) -> Fit:
    """A function that fits in R; the CPU time of R's start is included."""

    def fit(X: np.ndarray, K: int, seed: int) -> np.ndarray:
        with tempfile.TemporaryDirectory() as folder:
            rows, labels = Path(folder, "rows.csv"), Path(folder, "labels.csv")
            np.savetxt(rows, X, delimiter=",")
            script = "; ".join(f"suppressMessages(library({package}))" for package in packages)
            script += f"; set.seed({seed}); K <- {K}; X <- as.matrix(read.csv('{rows}', header = FALSE))"
            script += f"; labels <- as.integer({expression}); stopifnot(length(labels) == nrow(X))"
            script += f"; write(labels, '{labels}', ncolumns = 1)"
            subprocess.run(["Rscript", "-e", script], check=True, capture_output=True)
            return np.loadtxt(labels, dtype=int)

    return fit


def other_methods() -> tuple[dict[str, Fit], list[str]]:
    """The other methods that can run here, and the names of those that cannot."""
    found, absent = dict(OTHERS), []
    if importlib.util.find_spec("bkmeans"):
        from bkmeans import BKMeans

        found["breathing k-means"] = lambda X, K, seed: BKMeans(n_clusters=K, random_state=seed).fit(X).labels_
    else:
        absent.append("breathing k-means (package bkmeans)")
    for name, (packages, expression) in R_METHODS.items():
        if shutil.which("Rscript") and all(_has_r_package(package) for package in packages):
            found[name] = r_fit(packages, expression)
        else:
            absent.append(f"R's {name} ({', '.join(['Rscript', *packages])})")
    return found, absent


def _has_r_package(name: str) -> bool:
    asked = f"quit(status = !requireNamespace('{name}', quietly = TRUE))"
    return subprocess.run(["Rscript", "-e", asked], capture_output=True).returncode == 0


def measure(case: Case, method: str, fit: Fit, n_seeds: int) -> Outcome:
    """Fit once for every seed, and for every number of clusters in the labellings; the best labelling counts."""
    warnings.simplefilter("ignore")  # some methods do not converge, and warn
    fits: dict[int, list[np.ndarray]] = {}
    failure, start, before = "", time.process_time(), _seconds_of_children()
    for K in {_n_clusters(y) for y in case.labellings}:
        for seed in range(1 if method in WITHOUT_SEED else n_seeds):
            try:
                labels = fit(case.X, K, seed)
            except Exception as error:  # a method that gives nothing has ARI 0, and so has its agreement
                labels, failure = np.zeros(len(case.X), int), f"{type(error).__name__}: {error}".splitlines()[0]
            fits.setdefault(K, []).append(labels)
    seconds = time.process_time() - start + _seconds_of_children() - before
    ari, agreement = max(_scores(y, fits[_n_clusters(y)]) for y in case.labellings)
    seconds /= sum(map(len, fits.values()))
    return Outcome(method, case, ari, 0.0 if failure else agreement, seconds, failure)


def _n_clusters(y: np.ndarray) -> int:
    return len(np.unique(y[y > 0]))


def _seconds_of_children() -> float:
    """CPU seconds of processes that have ended: Rscript."""
    times = os.times()
    return times.children_user + times.children_system


def _scores(y: np.ndarray, fits: list[np.ndarray]) -> tuple[float, float]:
    """Mean ARI to a labelling and lowest ARI between two fits, on rows that belong to a cluster."""
    good = y > 0
    ari = np.mean([adjusted_rand_score(y[good], labels[good]) for labels in fits])
    pairs = itertools.combinations(fits, 2)
    return float(ari), min((adjusted_rand_score(a[good], b[good]) for a, b in pairs), default=1.0)


def measure_all(data: list[Case], methods: dict[str, Fit], options: argparse.Namespace) -> Iterator[Outcome]:
    """Outcomes as they are done, with a progress line on stderr."""
    tasks = [
        delayed(measure)(case, name, fit, options.seeds if case.group in CONTAMINATIONS else seeds_of_clean(options))
        for case in data
        for name, fit in methods.items()
    ]
    start = time.monotonic()
    with parallel_config(backend="loky", n_jobs=options.jobs, inner_max_num_threads=1):
        for done, outcome in enumerate(Parallel(return_as="generator_unordered")(tasks), 1):
            if done % 50 == 0 or done == len(tasks):
                minutes = (time.monotonic() - start) / 60
                print(f"{done} of {len(tasks)} measurements, {minutes:.1f} minutes", file=sys.stderr, flush=True)
            yield outcome


def seeds_of_clean(options: argparse.Namespace) -> int:
    """As many fits of a set that has no draws as of one that has."""
    return options.seeds * options.draws


class Sets:
    """Outcomes by method and set; a contaminated set is the mean of its draws, its agreement the lowest of them."""

    def __init__(self, outcomes: Iterable[Outcome], data: list[Case]) -> None:
        of_group = {group: {case.name: case for case in data if case.group == group} for group in GROUPS}
        self.groups = {group: members for group, members in of_group.items() if members}
        draws: dict[tuple[str, str], list[Outcome]] = {}
        for outcome in outcomes:
            draws.setdefault((outcome.method, outcome.case.name), []).append(outcome)
        self.ari = {key: _rounded(np.mean([each.ari for each in of])) for key, of in draws.items()}
        self.agreement = {key: _rounded(min(each.agreement for each in of)) for key, of in draws.items()}
        self.seconds = {key: float(np.mean([each.seconds for each in of])) for key, of in draws.items()}
        self.failures = sorted({(*key, each.failure) for key, of in draws.items() for each in of if each.failure})

    def mean(self, method: str, group: str) -> tuple[float, str]:
        """Mean ARI over the sets of a group."""
        value = _rounded(np.mean([self.ari[method, name] for name in self.groups[group]]))
        return value, f"{value:.3f}"

    def worst(self, method: str, group: str) -> tuple[float, str]:
        """The set of a group with the lowest ARI."""
        value, name = min((self.ari[method, name], name) for name in self.groups[group])
        return value, f"{value:.3f} {name.split(' + ')[0]}"

    def agreeing(self, method: str, group: str) -> tuple[float, str]:
        """Mean over the sets of the lowest ARI between seeds, and the number of sets where seeds agree."""
        if method in WITHOUT_SEED:
            return -np.inf, "–"
        lowest = [self.agreement[method, name] for name in self.groups[group]]
        value = _rounded(np.mean(lowest))
        return value, f"{value:.3f} ({sum(each >= SAME for each in lowest)})"

    def cpu(self, method: str, group: str) -> tuple[float, str]:
        """CPU seconds of one fit of every set; less is better."""
        value = round(sum(self.seconds[method, name] for name in self.groups[group]), 2)
        return -value, f"{value:.2f}"


def _rounded(value: float) -> float:
    """As it is shown, so that figures which look equal are equal; no minus before a zero."""
    return round(float(value), 3) + 0.0


def by_group(sets: Sets, others: Iterable[str], cell: Cell) -> str:
    """A table of methods and groups; ours is bold where one of the others is better."""
    best = {group: max(cell(other, group)[0] for other in others) for group in sets.groups}
    rows = []
    for method in OURS:
        cells = {group: cell(method, group) for group in sets.groups}
        rows.append([method, *(_bold(text, value < best[group]) for group, (value, text) in cells.items())])
    rows += [[other, *(cell(other, group)[1] for group in sets.groups)] for other in others]
    return markdown(["", *(f"{group} ({len(members)})" for group, members in sets.groups.items())], rows)


def by_set(sets: Sets, others: Iterable[str]) -> str:
    """A table for every group: ours on each set, and the best of the others."""
    header = ["set", "rows × columns", "K", *(name.replace("StudentTMixture, ", "") for name in OURS)]
    header += ["best of the others", "difference"]
    text = ""
    for group, members in sets.groups.items():
        rows = []
        for name, case in members.items():
            winner = max(others, key=lambda other: sets.ari[other, name])
            best = sets.ari[winner, name]
            clusters = " or ".join(dict.fromkeys(str(_n_clusters(y)) for y in case.labellings))
            row = [name.split(" + ")[0], f"{case.X.shape[0]} × {case.X.shape[1]}", clusters]
            row += [_bold(f"{sets.ari[ours, name]:.3f}", sets.ari[ours, name] < best) for ours in OURS]
            ahead = _rounded(max(sets.ari["TKMeans", name], sets.ari[FULL, name]) - best)
            rows.append([*row, f"{best:.3f} {winner}", f"{ahead:+.3f}"])
        text += f"\n### {group}\n\n" + markdown(header, rows)
    return text


def _bold(text: str, bold: bool) -> str:
    return f"**{text}**" if bold else text


def summary(sets: Sets, others: Iterable[str], n_seeds: int) -> str:
    """What is better than what, with figures."""
    text = "".join(compared(sets, ours, other) for ours in ("TKMeans", FULL) for other in (KMEANS, GMM, "HDBSCAN"))
    if n_seeds > 1:
        text += agreement_of_tables(sets, ["TKMeans", FULL, *(o for o in others if o not in WITHOUT_SEED)], n_seeds)
    seconds = {method: -sum(sets.cpu(method, group)[0] for group in sets.groups) for method in (*OURS, *others)}
    ratios = [f"{method} {seconds[method] / seconds[KMEANS]:.1f}" for method in seconds if method != KMEANS]
    return text + f"- **Time.** CPU time of one fit of every set, as a multiple of {KMEANS}: {'; '.join(ratios)}.\n"


def compared(sets: Sets, ours: str, other: str) -> str:
    """On which kinds of data one of ours is better than another method, and on which it is not."""
    kinds = {group: list(members) for group, members in sets.groups.items() if group not in CONTAMINATIONS}
    kinds["contaminated sets"] = [name for group in CONTAMINATIONS for name in sets.groups[group]]
    found: dict[str, list[str]] = {"better": [], "worse": [], f"within {CLOSE:g}": []}
    for kind, names in kinds.items():
        a, b = (_rounded(np.mean([sets.ari[method, name] for name in names])) for method in (ours, other))
        which = f"within {CLOSE:g}" if abs(a - b) < CLOSE else "better" if a > b else "worse"
        found[which].append(f"{kind} ({a:.3f} against {b:.3f})")
    text = "; ".join(f"{which} on {', '.join(of)}" for which, of in found.items() if of)
    lost = ", ".join(group for group in CONTAMINATIONS if sets.mean(ours, group)[0] <= sets.mean(other, group)[0])
    gains = [sets.ari[ours, name] - sets.ari[other, name] for names in kinds.values() for name in names]
    higher, lower = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    return (
        f"- **{ours}, compared with {other}**: {text}.{f' Not better with {lost}.' if lost else ''}\n"
        f"  ARI is higher on {higher} of {len(gains)} sets and lower on {lower}.\n"
    )


def agreement_of_tables(sets: Sets, methods: Iterable[str], n_seeds: int) -> str:
    """On how many real tables the seeds agree."""
    counts = []
    for method in methods:
        lowest = {name: sets.agreement[method, name] for name in sets.groups["real tables"]}
        least = min(lowest, key=lowest.__getitem__)
        same = sum(value >= SAME for value in lowest.values())
        counts.append(f"{method} {same} (lowest {lowest[least]:.3f}, {least})")
    return (
        f"- **Seeds.** The number of real tables, of {len(lowest)}, on which {n_seeds} seeds give the same clusters\n"
        f"  (lowest ARI between two of them at least {SAME:g}): {'; '.join(counts)}.\n"
    )


def page(sets: Sets, others: dict[str, Fit], absent: list[str], options: argparse.Namespace) -> str:
    """The whole page."""
    text = (
        "Benchmark sets of Gagolewski's collection (fcps, wut), real tables raw and standardised, and nine bases with\n"
        "seven kinds of contamination. Both were developed on them: the choice between starts of TKMeans, and the\n"
        "starts, the noise, the tails and the prior of StudentTMixture, were fixed by these figures (decisions 21,\n"
        "18), so that other data will be less kind to them. Mean ARI:\n\n"
        f"{summary(sets, others, seeds_of_clean(options))}\n"
        "## How it is measured\n\n"
        f"Contaminated sets: {options.draws} draws with {options.seeds} seeds each; "
        f"other sets: {seeds_of_clean(options)} seeds.\n"
        "A figure is the mean over them, agreement the lowest ARI between two seeds of any draw.\n"
        "ARI is computed on the rows that belong to a cluster. Where a set has several reference labellings, the best\n"
        "one counts. K is given. A set is round-suited if assigning rows to the nearest mean of the reference\n"
        f"clusters has an ARI of at least {SUITED:g}, ellipse-suited if only a Gaussian for each cluster has, and\n"
        "suited to neither otherwise.\n\n"
        "Methods have their defaults, with these exceptions. GaussianMixture, regularised has `n_init=3` and\n"
        "`reg_covar=1e-4 * X.var()`, which one huge row makes too large. HDBSCAN is not given K, has\n"
        "`min_cluster_size=max(5, n // 50)` and no seed, and its noise counts as one cluster.\n"
        "Agreement between seeds does not mean being right: KMeans agrees with itself where far rows have all\n"
        "centres but one, and the good rows are a single cluster from every seed.\n"
        f"CPU seconds are those of a process with one thread, {options.jobs} processes at a time.\n\n"
        "In the rows of this library **bold marks a loss**: one of the other methods is better. There is no bar yet.\n"
    )
    if absent:
        text += f"\nNot installed, left out: {'; '.join(absent)}.\n"
    if missing():
        text += f"\nNot in TKMEANS_DATA, left out: {', '.join(missing())}.\n"
    if sets.failures:
        text += "\nFits that failed count as ARI 0:\n\n"
        text += "".join(f"- {method}, {name}: {failure}\n" for method, name, failure in sets.failures)
    for title, cell in {
        "Mean ARI (number of sets)": sets.mean,
        "Worst set": sets.worst,
        f"Agreement between seeds: mean over sets of the lowest ARI between two seeds (sets of at least {SAME:g})": (
            sets.agreeing
        ),
        "CPU seconds for one fit of every set": sets.cpu,
    }.items():
        if cell != sets.agreeing or options.seeds > 1:
            text += f"\n## {title}\n\n{by_group(sets, others, cell)}"
    return text + (
        "\n## By set\n\nMean ARI. The difference is between the better of TKMeans and StudentTMixture, full, and the\n"
        f"best of the other methods.\n{by_set(sets, others)}"
    )


def main() -> None:
    """Measure, print, and keep the page if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path)
    parser.add_argument("--draws", type=int, default=3, help="draws of every contaminated set")
    parser.add_argument("--seeds", type=int, default=3, help="seeds for every draw; times draws for other sets")
    parser.add_argument("--quick", action="store_true", help="one draw and one seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes, with one thread each")
    options = parser.parse_args()
    if options.quick:
        options.draws = options.seeds = 1
    others, absent = other_methods()
    for what, names in {"not installed": absent, "not in TKMEANS_DATA": missing()}.items():
        if names:
            print(f"left out, {what}: {', '.join(names)}", file=sys.stderr)
    data = list(cases(options.draws))
    sets = Sets(measure_all(data, OURS | others, options), data)
    publish("Foreign data", page(sets, others, absent, options), options.output)


if __name__ == "__main__":
    main()
