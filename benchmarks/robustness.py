"""How robust methods are: breakdown, influence and efficiency; prints and draws the guide "How robust is it?".

python -m benchmarks.robustness [--jobs 2] [--draws 3] [--write]

With --write the guide docs/guides/robustness.md, its pictures and docs/images/robustness.json are written. Takes a few
minutes. Run it again whenever the search or a model has changed.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from string import Template
from typing import Any

import matplotlib as mpl
import numpy as np
from joblib import Parallel, delayed
from scipy import integrate, optimize, stats
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from benchmarks.trimmed_kmeans import TrimmedKMeans
from tkmeans import RobustnessCurve, StudentTMixture, TKMeans, breakdown_curve, influence_curve
from tkmeans.baselines import KMedians
from tkmeans.plots import RobustnessDisplay
from tkmeans.robustness import FRACTIONS

mpl.use("Agg")

DOCS = Path(__file__).resolve().parents[1] / "docs"
GUIDE, IMAGES = DOCS / "guides/robustness.md", DOCS / "images"
TEMPLATE = Path(__file__).with_suffix(".md")

KINDS = {"far": "far", "cauchy": "Cauchy", "inside": "inside", "clump": "clump", "point": "point"}
DISTANCES = (3.0, 10.0, 100.0)
CENTERS = np.array([[-6.0, -6.0], [6.0, -6.0], [-6.0, 6.0], [6.0, 6.0], [0.0, 0.0]])
LABELS = np.repeat(np.arange(5), 200)
ROWS = CENTERS[LABELS] + np.random.default_rng(0).normal(size=(1000, 2))
# Each method as a function of the share that is contaminated, which only one of them is told.
METHODS: dict[str, Callable[[float], Any]] = {
    "KMeans, n_init=10": lambda share: KMeans(5, n_init=10, random_state=0),  # noqa: ARG005
    "KMedians": lambda share: KMedians(5, random_state=0),  # noqa: ARG005
    "trimmed k-means": lambda share: TrimmedKMeans(5, trimmed=share, n_init=500, random_state=0),
    "GaussianMixture": lambda share: GaussianMixture(5, random_state=0),  # noqa: ARG005
    "TKMeans": lambda share: TKMeans(5, random_state=0),  # noqa: ARG005
    "StudentTMixture": lambda share: StudentTMixture(5, random_state=0),  # noqa: ARG005
}
TOLD = {"trimmed k-means": "K and the share"}
OURS = ("TKMeans", "StudentTMixture")
LEAST_ARI = 0.95
ROWS_OF_RUN, FEATURES = 300, (1, 2, 5, 10, 20)
MEASURED_DOFS = (1.0, 3.0, "estimate")  # with the others integration is enough
VERY_FAR = 1e5  # standard deviations
BAR = {("far", 0.40), ("cauchy", 0.50), ("clump", 0.25), ("point", 0.20)}  # wanted of ours


def curve(make: Callable[[float], Any], kind: str, options: argparse.Namespace, distance: float = 10.0) -> Any:
    """A breakdown curve of a method that may be told the share; all methods see the same rows."""
    parts = [
        breakdown_curve(
            make(share),
            ROWS,
            LABELS,
            kind=kind,
            fractions=[share],
            distance=distance,
            n_draws=options.draws,
            random_state=round(100 * share),
            n_jobs=options.jobs,
        )
        for share in FRACTIONS
    ]
    values = {measure: np.concatenate([part.values[measure] for part in parts]) for measure in parts[0].values}
    return RobustnessCurve(np.array(FRACTIONS), values)


def percent(share: float) -> str:
    """A share up to which a method holds."""
    return "–" if np.isnan(share) else f"{share:.0%}"


def shares_held(each: Any) -> str:
    """The shares at which a curve holds, without those at which it does not."""
    held = [x for x, ari in zip(each.x, each.values["ari"].min(axis=1), strict=True) if ari >= LEAST_ARI]
    whole = len(held) > 2 and held == [x for x in each.x if held[0] <= x <= held[-1]]
    return f"{held[0]:.0%} to {held[-1]:.0%}" if whole else ", ".join(f"{x:.0%}" for x in held) or "none"


def implosion(each: Any) -> str:
    """From which share on the scale is less than a thousandth of the clean one."""
    gone = each.x[each.values["scale"].min(axis=1) < 1e-3]
    return (
        f"From a share of {gone[0]:.0%} on it falls below a thousandth"
        if len(gone)
        else "Here it stays above a thousandth"
    )


def influence_line(values: np.ndarray) -> list[str]:
    """The largest influence up to 30 deviations, the last of these, and the one of a very far row."""
    return [f"{values[:-1].max():.2f}", f"{values[-2]:.2f}", f"{values[-1]:,.2f}".replace(",", " ")]


def table(lines: list[list[str]]) -> str:
    """Lines of a Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ---- the likelihood of a heap -------------------------------------------------------------


def two_answers(share: float) -> tuple[list[str], bool]:
    """Log-likelihood and ARI from the truth and by the search, with a clump; and whether the wrong one is likelier."""
    rng = np.random.RandomState(1)
    n, half = round(len(ROWS) * share / (1 - share)), np.ptp(ROWS, axis=0) / 2
    heap = np.array([0.6, 1.0]) * 10 * half + 0.01 * half * rng.standard_normal((n, 2))
    Z = np.vstack([ROWS, heap])
    fits = [model.fit(Z) for model in (TKMeans(5, init=CENTERS), TKMeans(5, random_state=0))]
    scores = [adjusted_rand_score(LABELS, fit.labels_[: len(ROWS)]) for fit in fits]
    told = [f"{fit.lower_bound_:.3f} ({ari:.2f})" for fit, ari in zip(fits, scores, strict=True)]
    likelier = scores[1] < LEAST_ARI <= scores[0] and fits[1].lower_bound_ > fits[0].lower_bound_
    return [f"{share:.0%}", *told], likelier


# ---- efficiency ---------------------------------------------------------------------------


def exact_efficiency(nu: float, p: int) -> float:
    """Of the location of a t distribution at the normal one, with its scale estimated: (E psi')^2 / E psi^2."""

    def mean(f: Callable[[float], float]) -> float:
        return integrate.quad(lambda s: f(s) * stats.chi2(p).pdf(s), 0, p + 40 * np.sqrt(2 * p), limit=200)[0]

    alpha = optimize.brentq(lambda a: mean(lambda s: (nu + p) * s / (nu * a + s)) - p, 1e-3, 50)
    slope = mean(lambda s: 1 / (nu * alpha + s) - 2 / p * s / (nu * alpha + s) ** 2)
    return slope**2 / (mean(lambda s: s / (nu * alpha + s) ** 2) / p)


def measured_efficiency(dof: Any, p: int) -> float:
    """The mean squared error of means over that of centres, over samples of normal rows."""
    rng = np.random.default_rng(p)
    errors = np.zeros(2)
    for _ in range(runs(p)):
        X = rng.normal(size=(ROWS_OF_RUN, p))
        centre = TKMeans(1, dof=dof, init=np.zeros((1, p))).fit(X).cluster_centers_[0]
        errors += np.sum(X.mean(axis=0) ** 2), np.sum(centre**2)
    return errors[0] / errors[1]


def runs(p: int) -> int:
    """Samples that make the efficiency exact to two or three hundredths."""
    return max(200, 3000 // p)


def efficiencies(jobs: int) -> list[list[str]]:
    """A line for each dof."""
    dofs = (1.0, 2.0, 3.0, 5.0, 10.0, "estimate")
    pairs = [(dof, p) for dof in MEASURED_DOFS for p in FEATURES]
    found = dict(zip(pairs, Parallel(n_jobs=jobs)(delayed(measured_efficiency)(*pair) for pair in pairs), strict=True))
    lines = []
    for dof in dofs:
        exact = ["" if dof == "estimate" else f"{exact_efficiency(dof, p):.3f}" for p in FEATURES]
        told = [f" ({found[dof, p]:.2f})" if dof in MEASURED_DOFS else "" for p in FEATURES]
        lines.append([str(dof), *((e + m).strip() for e, m in zip(exact, told, strict=True))])
    return lines


# ---- pictures -----------------------------------------------------------------------------


def draw(curves: dict[tuple[str, str], Any], influences: dict[str, Any]) -> None:
    """The three pictures of the guide."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4), sharey=True, layout="constrained")
    for ax, (kind, title) in zip(axes.flat, KINDS.items(), strict=False):
        RobustnessDisplay(curves={m: curves[m, kind] for m in METHODS}).plot(ax=ax)
        ax.set(title=title, ylim=(-0.05, 1.05), xlabel="", ylabel="")
        ax.get_legend().remove()
    legend_in(axes.flat[-1], axes.flat[0])
    figure.supxlabel("contaminating rows, as a share of all")
    figure.supylabel("ARI of the good rows, worst draw")
    figure.savefig(IMAGES / "robustness-ari.png", dpi=100)
    plt.close(figure)

    figure, axes = plt.subplots(2, 5, figsize=(13, 6.4), sharex=True, sharey="row", layout="constrained")
    for row, measure in zip(axes, ("shift", "scale"), strict=True):
        for ax, (kind, title) in zip(row, KINDS.items(), strict=True):
            display = RobustnessDisplay(curves={m: curves[m, kind] for m in METHODS}, measure=measure).plot(ax=ax)
            ax.get_legend().remove()
            label = "shift (std. deviations)" if measure == "shift" else "scale (clean: 1)"
            ax.set(xlabel="", title=title if measure == "shift" else "", ylabel=label if ax is row[0] else "")
            ax.set_ylim(*((1e-3, 1e5) if measure == "shift" else (1e-2, 2e2)))
            for line in display.lines_:
                line.set_markersize(3)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=6, frameon=False)
    figure.supxlabel("contaminating rows, as a share of all")
    figure.savefig(IMAGES / "robustness-centres.png", dpi=100)
    plt.close(figure)

    figure, ax = plt.subplots(figsize=(6.6, 4), layout="constrained")
    RobustnessDisplay(curves=influences, measure="influence").plot(ax=ax)
    ax.set_ylim(-0.3, 10)
    figure.savefig(IMAGES / "robustness-influence.png", dpi=100)
    plt.close(figure)


def legend_in(empty: Any, drawn: Any) -> None:
    """The legend of one panel in another, empty one."""
    empty.axis("off")
    empty.legend(*drawn.get_legend_handles_labels(), loc="center", frameon=False)


# ---- the guide ----------------------------------------------------------------------------


def measured(options: argparse.Namespace) -> dict[str, Any]:
    """Everything that the guide tells, and its pictures."""
    curves = {(name, kind): curve(make, kind, options) for kind in KINDS for name, make in METHODS.items()}
    hold = {key: each.holds_up_to(LEAST_ARI) for key, each in curves.items()}
    heaps = {
        (name, kind, at): hold[name, kind] if at == 10 else curve(make, kind, options, at).holds_up_to(LEAST_ARI)
        for name, make in METHODS.items()
        for kind in ("clump", "point")
        for at in DISTANCES
    }
    started = {kind: curve(lambda _: TKMeans(5, init=CENTERS), kind, options).holds_up_to() for kind in KINDS}
    six = {kind: curve(lambda _: TKMeans(6, random_state=0), kind, options) for kind in ("clump", "point")}
    one_row = METHODS | {"TKMeans, dof=1": lambda _: TKMeans(5, dof=1.0, random_state=0)}
    at_most = {"distances": [*range(31), VERY_FAR], "random_state": 0, "n_jobs": options.jobs}
    all_influences = {m: influence_curve(make(1 / (len(ROWS) + 1)), ROWS, **at_most) for m, make in one_row.items()}
    influences = {
        m: RobustnessCurve(c.x[:-1], {"influence": c.values["influence"][:-1]}) for m, c in all_influences.items()
    }
    lone = np.vstack([ROWS, [[100.0, 100.0]]])
    answers = [two_answers(share) for share in (0.05, 0.1, 0.2, 0.3, 0.5)]
    wrong = [line[0] for line, likelier in answers if likelier]
    at = {kind: FRACTIONS.index(hold["TKMeans", kind]) for kind in KINDS}
    scales = [curves["TKMeans", kind].values["scale"][i] for kind, i in at.items()]
    told = {
        "draws": str(options.draws),
        "runs": f"{runs(FEATURES[0])} (p = {FEATURES[0]}) to {runs(FEATURES[-1])} (p = {FEATURES[-1]})",
        "dof_without": f"{TKMeans(5, random_state=0).fit(ROWS).dof_:.0f}",
        "dof_with": f"{TKMeans(5, random_state=0).fit(lone).dof_:.1f}",
        "rows": str(ROWS_OF_RUN),
        "holds": table([[m, TOLD.get(m, "K"), *(percent(hold[m, kind]) for kind in KINDS)] for m in METHODS]),
        "distances": table(
            [[m, *(percent(heaps[m, kind, x]) for kind in ("clump", "point") for x in DISTANCES)] for m in METHODS]
        ),
        "truth": table(
            [
                ["TKMeans, started at the truth", *(percent(started[kind]) for kind in KINDS)],
                ["TKMeans, with its search", *(percent(hold["TKMeans", kind]) for kind in KINDS)],
            ]
        ),
        "likelihood": table([line for line, _ in answers]),
        "why": (
            f"The wrong answer is the likelier one at {', '.join(wrong)}. A search for the most likely answer is "
            "therefore right to find it: it breaks before the model does because it is a good search."
            if wrong
            else "In this draw the search ends at the right answer wherever the fit from the truth does."
        ),
        "six_clump": shares_held(six["clump"]),
        "six_point": shares_held(six["point"]),
        "implosion": implosion(curves["TKMeans", "point"]),
        "tk_shift": f"{max(np.max(curves['TKMeans', kind].values['shift'][i]) for kind, i in at.items()):.2f}",
        "tk_scale_low": f"{np.min(scales):.2f}",
        "tk_scale_high": f"{np.max(scales):.2f}",
        "km_shift": f"{np.min(curves['KMeans, n_init=10', 'far'].values['shift'][1]):.0f}",
        "influence": table([[m, *influence_line(c.values["influence"][:, 0])] for m, c in all_influences.items()]),
        "efficiency": table(efficiencies(options.jobs)),
    }
    if options.write:
        draw(curves, influences)
    told["below"] = "; ".join(
        f"{m}: {KINDS[kind]} {percent(hold[m, kind])}, wanted {share:.0%}"
        for m in OURS
        for kind, share in sorted(BAR)
        if not hold[m, kind] >= share
    )
    return told


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.monotonic()
    with threadpool_limits(1):
        told = measured(options)
    print(Template(TEMPLATE.read_text(encoding="utf-8")).substitute(told))
    print(f"{time.monotonic() - start:.0f} s. Below what is wanted: {told['below'] or 'nothing'}.")
    if options.write:
        (IMAGES / "robustness.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        GUIDE.write_text(made(), encoding="utf-8")


def made() -> str:
    """The guide that the stored figures give."""
    told = json.loads((IMAGES / "robustness.json").read_text(encoding="utf-8"))
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(told)


if __name__ == "__main__":
    main()
