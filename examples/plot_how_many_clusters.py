"""
How many kinds of customers do I have?
======================================

An elbow in the inertia is a matter of taste, and with a few wild rows in the table there is no
elbow. Here are seven groups of customers by what they spend and how often they come, and four per
cent of rows that are robots, refunds and typing errors.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from tkmeans import TKMeans, select_n_clusters
from tkmeans.datasets import make_contaminated
from tkmeans.plots import ClustersDisplay

X, _ = make_contaminated(n_samples=700, n_clusters=7, outlier_fraction=0.04, random_state=3)
numbers = range(3, 11)

# %%
# One fit for every number, judged by rows that had no part in their own centre.
found = select_n_clusters(X, numbers, random_state=0)
print(found)

# %%
# What the usual way says: the number of clusters with the best silhouette.
silhouettes = {k: silhouette_score(X, KMeans(k, random_state=0).fit_predict(X)) for k in numbers}
print("silhouette of KMeans:", max(silhouettes, key=silhouettes.get), "clusters")

# %%
# The criterion (small is good) with the choice, its runner-up and the share of outliers; and the choice.
fig, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
found.plot(ax=left)
ClustersDisplay.from_estimator(TKMeans(found.best, random_state=0).fit(X), X, ax=right)
