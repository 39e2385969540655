"""Draw the five pictures of how-it-works.md: python docs/how_it_works.py."""

from pathlib import Path

import matplotlib as mpl
import numpy as np
from sklearn.cluster import KMeans

from tkmeans import TKMeans
from tkmeans.plots import style

mpl.use("Agg")
from matplotlib import pyplot as plt

IMAGES = Path(__file__).resolve().parent / "images"
CENTERS = np.array([[-4.0, 0.0], [0.0, 3.0], [4.0, 0.0]])
INK, SOFT = "#1a1a1a", "#8a8a8a"


def rows():
    """Three clusters of 60 rows, and 15 outliers."""
    rng = np.random.default_rng(3)
    clusters = [rng.normal(center, 0.9, (60, 2)) for center in CENTERS]
    far = rng.uniform([-30, -30], [30, 30], (15, 2))
    return np.vstack([*clusters, far])


def frame(ax, title):
    """Show the clusters, and the outliers that are near."""
    ax.set(xlim=(-8, 8), ylim=(-4.5, 6.5), xticks=[], yticks=[], aspect=1)
    ax.set_title(title, size=11)


def clusters(ax, X, labels, size=14):
    """Rows in the colour and marker of their cluster."""
    for k in range(labels.max() + 1):
        own = X[labels == k]
        look = {"color": style.color(k), "marker": style.marker(k)}
        ax.scatter(*own.T, s=size, linewidth=0, alpha=0.75, **look)


def centers(ax, found):
    """Centres as large crosses."""
    ax.scatter(*found.T, s=150, marker="+", color=INK, linewidth=2.2)


def save(figure, number):
    """Write a picture."""
    figure.savefig(IMAGES / f"how-{number}.png", dpi=100)
    plt.close(figure)


def one_problem(X):
    """KMeans and TKMeans on the same rows."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    models = KMeans(3, n_init=10, random_state=0), TKMeans(3, random_state=0)
    for ax, model in zip(axes, models, strict=True):
        model.fit(X)
        clusters(ax, X, model.labels_)
        centers(ax, model.cluster_centers_)
        frame(ax, type(model).__name__)
    save(figure, 1)


def two_weights():
    """The weight of a row by its distance."""
    distance = np.linspace(0, 8, 400)
    figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for dof, dashes in ((1.0, "-"), (4.0, "--"), (20.0, "-.")):
        weight = (dof + 2) / (dof + distance**2)
        ax.plot(distance, weight, dashes, label=f"t, ν = {dof:g}", lw=2)
    ax.axhline(1, color=SOFT, ls=":", lw=2, label="k-means")
    ax.set(xlabel="distance from the centre, in widths", ylabel="weight u")
    ax.set(xlim=(0, 8), ylim=(0, 3.2))
    ax.legend(frameon=False)
    save(figure, 2)


def three_steps(X):
    """The way of the centres in EM, from a start of three rows."""
    start = np.array([[-1.5, -3.0], [0.0, -3.8], [1.5, -3.0]])
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    path = [start]
    for n in (1, 2, 3, 4, 6, 8, 12, 20, 40):
        model = TKMeans(3, init=start, max_iter=n, cluster_weights="equal")
        path.append(silent(model, X).cluster_centers_)
    path = np.array(path)  # (steps, 3, 2), clusters in one order
    for i in range(1, len(path)):
        away = np.linalg.norm(path[i - 1][:, None] - path[i], axis=2)
        path[i] = path[i][away.argmin(axis=1)]
    weight = model.robust_weights(X)
    sizes = 40 * weight / weight.max() + 0.5
    axes[0].scatter(*X.T, s=sizes, color="#c8c8c8", linewidth=0)
    for k in range(3):
        axes[0].plot(*path[:, k].T, "-o", ms=4, lw=1.8, color=style.color(k))
    centers(axes[0], path[-1])
    frame(axes[0], "the way of the centres; dots show weights")
    best = model.predict_proba(X).max(axis=1)
    shown = axes[1].scatter(*X.T, s=16, c=best, cmap="viridis", vmin=0.33)
    centers(axes[1], path[-1])
    frame(axes[1], "probability of the row's cluster")
    figure.colorbar(shown, ax=axes[1], shrink=0.8)
    save(figure, 3)


def silent(model, X):
    """Fit without a warning that the fit was cut short."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def four_starts():
    """A poor start and the search, on fifteen clusters."""
    from tkmeans.datasets import make_contaminated

    X, _ = make_contaminated(1500, random_state=1)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    titles = "EM from one random start", "EM from the start of the search"
    for ax, init, title in zip(axes, ("random", "robust"), titles, strict=True):
        model = silent(TKMeans(15, init=init, n_init=1, random_state=4), X)
        clusters(ax, X, model.labels_, size=7)
        centers(ax, model.cluster_centers_)
        frame(ax, title)
        ax.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4))
    save(figure, 4)


def five_outliers(X):
    """Distances of all rows from their centres, and who is flagged."""
    model = TKMeans(3, random_state=0).fit(X)
    distance, flagged = model.transform(X).min(axis=1), model.outliers(X)
    figure, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    bins = np.geomspace(distance.min(), distance.max(), 30)
    both = [distance[~flagged], distance[flagged]]
    colors = [style.color(0), style.color(5)]
    axes[0].hist(both, bins, stacked=True, color=colors)
    axes[0].set(xscale="log", ylabel="rows")
    axes[0].set_xlabel("distance from the nearest centre")
    axes[0].legend(["core", "outliers"], frameon=False)
    clusters(axes[1], X, np.where(flagged, -1, model.labels_))
    axes[1].scatter(*X[flagged].T, s=30, marker="x", color=INK)
    axes[1].set(xticks=[], yticks=[], aspect=1)
    axes[1].set_title(f"{flagged.sum()} of {len(X)} rows are flagged", size=11)
    save(figure, 5)


if __name__ == "__main__":
    data = rows()
    one_problem(data)
    two_weights()
    three_steps(data)
    four_starts()
    five_outliers(data)
