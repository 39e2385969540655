"""
Does this new row belong to any cluster?
========================================

``predict`` gives every row the label of some cluster, however far away it is.
``outlier_pvalues`` gives the probability of so large a distance for a row of
the nearest cluster, and ``predict(..., outlier_label=-1)`` marks the rows
that belong to none.
"""

# %%
# A model of the rows we have, five per cent of them far away.
import matplotlib.pyplot as plt
import numpy as np

from tkmeans import TKMeans
from tkmeans.datasets import make_contaminated

X, _ = make_contaminated(
    n_samples=600, n_clusters=5, outlier_range=4.0, random_state=1
)
model = TKMeans(n_clusters=5, random_state=0).fit(X)

# %%
# Five new rows: two in clusters, one between them, two outside.
inside = model.cluster_centers_[:2] + 0.03
between = model.cluster_centers_[:2].mean(axis=0)
new = np.vstack([inside, between, [[1.4, 1.4], [-1.4, 0.2]]])
labels = model.predict(new, outlier_label=-1)
for row, label, p in zip(
    new.round(2), labels, model.outlier_pvalues(new), strict=True
):
    print(row, "cluster" if label >= 0 else "outlier", label, f"p = {p:.1e}")

# %%
# The p-value of every place in the plane: dark where a row is ordinary.
side = np.linspace(-1.7, 1.7, 200)
places = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
pvalues = model.outlier_pvalues(places).reshape(200, 200)
fig, ax = plt.subplots(figsize=(6, 5.2), layout="constrained")
levels = [1e-4, 1e-3, 1e-2, 0.1, 1]
filled = ax.contourf(
    side, side, np.maximum(pvalues, 1.1e-4), levels, cmap="Blues", norm="log"
)
fig.colorbar(filled, label="p-value", format="%g")
ax.plot(*X.T, "k.", markersize=2)
for row, label in zip(new, labels, strict=True):
    look = "C1o" if label >= 0 else "C3X"
    ax.plot(*row, look, markersize=11, markeredgecolor="white")
ax.set(xlim=(-1.7, 1.7), ylim=(-1.7, 1.7), aspect="equal")
