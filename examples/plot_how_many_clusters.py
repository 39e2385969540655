"""
How many kinds of customers do I have?
======================================

An elbow in a curve of inertia is a matter of taste, and with a few outliers
in the table there is no elbow. Here are seven groups of customers by what
they spend and how often they come, and four per cent of rows that are robots,
refunds and typing errors.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from tkmeans import TKMeans, select_clusters
from tkmeans.datasets import make_contaminated
from tkmeans.plots import ClustersDisplay

X, _ = make_contaminated(
    n_samples=700, n_clusters=7, outlier_fraction=0.04, random_state=3
)
numbers = range(3, 11)

# %%
# A mixture for every number, compared by an evidence in which no row judges a
# centre that it has made.
found = select_clusters(X, numbers)
print(found)

# %%
# For comparison, the number with the best silhouette of ``KMeans``.
silhouettes = {
    k: silhouette_score(X, KMeans(k, random_state=0).fit_predict(X))
    for k in numbers
}
best = max(silhouettes, key=silhouettes.get)
print("silhouette of KMeans:", best, "clusters")

# %%
# The criterion (smaller is better) with the choice, the runner-up and the
# share of outliers; and the clusters of the choice.
fig, (left, right) = plt.subplots(
    1, 2, figsize=(8.4, 4.4), layout="constrained"
)
found.plot(ax=left)
model = TKMeans(found.best, random_state=0).fit(X)
ClustersDisplay.from_estimator(model, X, ax=right)
