"""
A tour: from rows to a report
=============================

This page is also a notebook: download it at the end, or copy its cells one by
one. It clusters 1050 rows of which 50 are errors, and asks the questions that
people ask of clusters: which are there, which rows belong to none, how many
clusters are right, what sets them apart, and where new rows belong.
"""

# %%
# The rows
# --------
#
# Four kinds of parcels, by length, width and height in centimetres. In 50
# rows the scanner failed and sent random numbers. (Columns in different units
# have to be scaled first; other examples do that.)
import tempfile
from pathlib import Path

import numpy as np
from sklearn.cluster import KMeans

from tkmeans import TKMeans, describe, select_clusters, write_report
from tkmeans.plots import ClustersDisplay

rng = np.random.default_rng(0)
names = ["length", "width", "height"]
kinds = np.array([[20, 10, 5], [35, 25, 8], [60, 12, 6], [58, 40, 20]])
which = rng.choice(4, size=1050, p=[0.4, 0.3, 0.2, 0.1])
X = kinds[which] + 1.2 * rng.normal(size=(1050, 3))
wrong = rng.choice(1050, size=50, replace=False)
X[wrong] = rng.uniform(0, 150, size=(50, 3))

# %%
# The clusters
# ------------
#
# ``TKMeans`` has the parameters and attributes of scikit-learn's ``KMeans``.
# A notebook shows the fit.
model = TKMeans(n_clusters=4, random_state=0).fit(X)
model

# %%
# Compare the centres with those of ``KMeans``, which follow the errors.
print("true centres\n", kinds)
print("TKMeans\n", model.cluster_centers_.round(1))
kmeans = KMeans(n_clusters=4, n_init=10, random_state=0).fit(X)
print("KMeans\n", kmeans.cluster_centers_.round(1))

# %%
# The outliers
# ------------
#
# ``outliers`` flags the rows that no cluster explains; ``outlier_pvalues``
# gives the tail probability of each.
flagged = np.flatnonzero(model.outliers(X))
print(len(flagged), "rows flagged,", np.isin(flagged, wrong).sum(), "of 50")
worst = model.outlier_pvalues(X).argmin()
print("the most improbable row:", X[worst].round(1))

# %%
# A picture
# ---------
#
# Outliers beyond the frame are arrows at its edge.
ClustersDisplay.from_estimator(
    model, X, features=("length", "width"), feature_names=names
)

# %%
# How many clusters?
# ------------------
#
# ``select_clusters`` compares mixtures with every number of clusters, in
# which no row judges a centre that it has made. Look at the runner-up, too: a
# criterion that differs little leaves the choice to you.
found = select_clusters(X, range(2, 8))
print(found)

# %%
# What sets the clusters apart?
# -----------------------------
#
# ``describe`` compares each cluster with the other rows, robustly, and says
# the result in one sentence.
describe(model, X, feature_names=names)

# %%
# New rows
# --------
#
# ``predict`` labels new rows. With ``outlier_label`` it marks those that
# belong to no cluster.
new = [[21.0, 9.5, 5.2], [59.0, 41.0, 19.0], [21.0, 95.0, 5.2]]
print(model.predict(new, outlier_label=-1))

# %%
# A report for other people
# -------------------------
#
# ``write_report`` makes one HTML file that needs no Python to be read.
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder, "parcels.html")
    write_report(page, model, X, feature_names=names)
    print(page.name, page.stat().st_size // 1000, "kB")
