"""
Which of my clusters are real?
==============================

Every clusterer returns as many clusters as it is asked for. ``stability``
draws the rows anew, clusters them again and reports how well each cluster is
found again: 1 is always the same, below 0.6 it is not there.
"""

# %%
# Four clusters. Asked for five, a clusterer has to cut one of them.
import matplotlib.pyplot as plt
import numpy as np

from tkmeans import TKMeans, stability
from tkmeans.plots import ClustersDisplay

rng = np.random.default_rng(0)
centers = np.array([[0, 0], [8, 0], [8, 7], [1, 8]])
X = centers[rng.choice(4, 500, p=[0.4, 0.2, 0.2, 0.2])]
X = X + rng.normal(size=(500, 2))

# %%
model = TKMeans(n_clusters=5, random_state=0).fit(X)
found = stability(model, X, n_resamples=40, random_state=0)
print(found)

# %%
# The clusters with their numbers, and the similarity of each with those of
# the resamples. The fifth cluster is in another place every time.
fig, (left, right) = plt.subplots(
    1, 2, figsize=(9, 4), layout="constrained", width_ratios=[5, 6]
)
ClustersDisplay.from_estimator(model, X, ax=left, legend=False)
found.plot(ax=right)
