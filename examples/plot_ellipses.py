"""
Long and wide clusters among noise
==================================

``TKMeans`` looks for round clusters of one width. If clusters are long, or of
different widths, use ``StudentTMixture``. It has the interface of
``GaussianMixture``, and a component for rows that belong to no cluster.
"""

# %%
# Three clusters of different shape and size, and noise around them.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from tkmeans import StudentTMixture, TKMeans
from tkmeans.plots import ClustersDisplay

rng = np.random.default_rng(3)
clusters = [
    rng.multivariate_normal([0, 0], [[9, 8], [8, 9]], 400),
    rng.multivariate_normal([0, 9], [[6, 0], [0, 0.3]], 300),
    rng.multivariate_normal([9, -2], [[0.5, 0], [0, 0.5]], 150),
]
noise = rng.uniform([-25, -20], [25, 25], size=(80, 2))
X = np.vstack([*clusters, noise])
truth = np.repeat([0, 1, 2, -1], [400, 300, 150, 80])

# %%
# Agreement with the true clusters, over the rows that have one.
models = {
    "GaussianMixture": GaussianMixture(3, n_init=10, random_state=0),
    "TKMeans": TKMeans(3, random_state=0),
    "StudentTMixture": StudentTMixture(3, random_state=0),
}
own = truth >= 0
for name, model in models.items():
    labels = model.fit(X).predict(X)
    print(f"{name:<16} {adjusted_rand_score(truth[own], labels[own]):.3f}")

# %%
# An ellipse is two standard deviations wide. One component of the mixture of
# Gaussians holds the noise together with the small cluster.
frame = ((-14, 14), (-11, 14))
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, name in zip(axes, ["GaussianMixture", "StudentTMixture"], strict=True):
    display = ClustersDisplay.from_estimator(
        models[name], X, ax=ax, limits=frame, legend=False
    )
    display.ax_.set_title(name)

# %%
# The probability of noise is known for every row.
noisy = models["StudentTMixture"].noise_probability(X)
print(f"{(noisy > 0.5).sum()} rows are noise with more than 50 %;")
print(f"{(noisy[~own] > 0.5).sum()} of them were drawn as noise")
