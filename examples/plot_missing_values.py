"""
Half of my measurements are missing
===================================

Sensors fail, people skip questions. The usual way is to fill the holes and to cluster what one has
made up. How much does it cost, and what if nothing is filled in?
"""

# %%
# Six groups in eight features, three per cent of wild rows, and a growing share of holes.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline

from tkmeans import TKMeans
from tkmeans.datasets import make_contaminated

X, y = make_contaminated(
    n_samples=600, n_features=8, n_clusters=6, cluster_std=0.4, outlier_fraction=0.03, random_state=0
)
good = y >= 0

methods = {
    "TKMeans, holes and all": TKMeans(6, random_state=0),
    "nearest neighbours, then KMeans": make_pipeline(KNNImputer(), KMeans(6, n_init=5, random_state=0)),
    "means, then KMeans": make_pipeline(SimpleImputer(), KMeans(6, n_init=5, random_state=0)),
}
shares = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
scores = {name: [] for name in methods}
for share in shares:
    holes = np.where(np.random.default_rng(1).random(X.shape) < share, np.nan, X)
    empty = np.isnan(holes).all(axis=1)
    holes[empty, 0] = X[empty, 0]  # every row has something
    for name, method in methods.items():
        scores[name].append(adjusted_rand_score(y[good], method.fit_predict(holes)[good]))

# %%
# Agreement with the true groups; 1 is perfect. A row with holes counts with what it has, which is exact
# for round clusters, and the wild rows do no harm.
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for (name, score), marker in zip(scores.items(), "os^", strict=True):
    ax.plot(100 * shares, score, marker=marker, label=name)
ax.set(xlabel="values missing, %", ylabel="adjusted Rand index", ylim=(0, 1.03))
ax.legend(loc="lower left")
for name, score in scores.items():
    print(f"{name:<32}", np.round(score, 2))

# %%
# Features that go together *within* a cluster are another matter: neighbours can use that, round
# clusters cannot. The page of limits has figures.
