"""
Half of my measurements are missing
===================================

Sensors fail, and people skip questions. The usual way is to fill the gaps and
to cluster the filled table. How much does that cost, and what if nothing is
filled in?
"""

# %%
# Six groups in eight features, three per cent of outliers, and a growing
# share of missing values.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from tkmeans import TKMeans
from tkmeans.datasets import make_contaminated

X, y = make_contaminated(
    n_samples=600,
    n_features=8,
    n_clusters=6,
    cluster_std=0.4,
    outlier_fraction=0.03,
    random_state=0,
)
kmeans = KMeans(6, n_init=5, random_state=0)
methods = {
    "TKMeans, nothing filled in": TKMeans(6, random_state=0),
    "nearest neighbours, then KMeans": make_pipeline(KNNImputer(), kmeans),
    "means, then KMeans": make_pipeline(SimpleImputer(), kmeans),
}
good, shares = y >= 0, np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
scores = {name: [] for name in methods}
for share in shares:
    missing = np.random.default_rng(1).random(X.shape) < share
    missing[missing.all(axis=1), 0] = False  # every row has something
    table = np.where(missing, np.nan, X)
    for name, method in methods.items():
        labels = method.fit_predict(table)
        scores[name].append(adjusted_rand_score(y[good], labels[good]))

# %%
# Agreement with the true groups; 1 is perfect. A row counts with the values
# that it has, which is exact for round clusters.
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for (name, score), marker in zip(scores.items(), "os^", strict=True):
    ax.plot(100 * shares, score, marker=marker, linewidth=2, label=name)
ax.set(
    xlabel="values missing, %", ylabel="adjusted Rand index", ylim=(0, 1.03)
)
ax.legend(loc="lower left", frameon=False)
for name, score in scores.items():
    print(f"{name:<32}", np.round(score, 2))

# %%
# If features depend on each other *within* a cluster, neighbours can use
# that, and round clusters cannot. The page of limits has figures.
