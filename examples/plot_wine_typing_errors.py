"""
Which rows of my table are wrong?
=================================

A laboratory measured thirteen properties of 178 wines, and somebody typed the figures into a
table. In six rows a decimal point was lost. We want the three kinds of wine, and these six rows.
"""

# %%
# The table, with its errors: a value ten times too large in each of six rows.
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import RobustScaler

from tkmeans import TKMeans
from tkmeans.plots import ClustersDisplay

wine = load_wine()
rng = np.random.default_rng(0)
wrong = np.sort(rng.choice(len(wine.data), size=6, replace=False))
columns = rng.choice(wine.data.shape[1], size=6)
table = wine.data.copy()
table[wrong, columns] *= 10

# %%
# Columns have different units, so they are scaled; by medians and quartiles, which the errors
# do not move either.
X = RobustScaler().fit_transform(table)
models = {"KMeans": KMeans(3, n_init=10, random_state=0), "TKMeans": TKMeans(3, random_state=0)}
for name, model in models.items():
    agreement = adjusted_rand_score(wine.target, model.fit_predict(X))
    print(f"{name}: agreement with the kinds of wine {agreement:.2f}, sizes {np.sort(np.bincount(model.labels_))}")

# %%
# KMeans spends a centre on an error: its smallest "kind" is a single wine. TKMeans gives each error a
# cluster, but hardly a say in where it is, and a small p-value.
model = models["TKMeans"]
suspects = np.argsort(model.outlier_pvalues_)[:8]
for row in suspects:
    farthest = np.argmax(np.abs(X[row] - model.cluster_centers_[model.labels_[row]]))
    truth = "typed wrongly" if row in wrong else "as measured"
    print(f"row {row:3d}  p = {model.outlier_pvalues_[row]:.1e}  {wine.feature_names[farthest]:<30} {truth}")

# %%
# ``outliers`` gives a verdict without a level to choose.
found = np.flatnonzero(model.outliers(X))
print("flagged:", found)
print("wrong:  ", wrong)

# %%
# The picture shows the plane in which the other rows differ most. Arrows at its edge point to what
# is beyond.
ClustersDisplay.from_estimator(model, X)
