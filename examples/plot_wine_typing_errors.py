"""
Which rows of my table are wrong?
=================================

A laboratory measured thirteen properties of 178 wines, and somebody typed the
figures into a table. In six rows a decimal point was lost. Find the three
kinds of wine, and these six rows.
"""

# %%
# The table with its errors: a value ten times too large in each of six rows.
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
# Columns have different units, so they are scaled: by medians and quartiles,
# which the errors do not move either.
X = RobustScaler().fit_transform(table)
models = {
    "KMeans": KMeans(3, n_init=10, random_state=0),
    "TKMeans": TKMeans(3, random_state=0),
}
for name, model in models.items():
    agreement = adjusted_rand_score(wine.target, model.fit_predict(X))
    sizes = np.sort(np.bincount(model.labels_))
    print(f"{name}: agreement with the kinds {agreement:.2f}, sizes {sizes}")

# %%
# The smallest cluster of ``KMeans`` is a single wrong row. ``TKMeans`` gives
# each wrong row a label, hardly any influence, and a small p-value.
model = models["TKMeans"]
for row in np.argsort(model.outlier_pvalues_)[:8]:
    away = np.abs(X[row] - model.cluster_centers_[model.labels_[row]])
    column = wine.feature_names[away.argmax()]
    truth = "typed wrongly" if row in wrong else "as measured"
    print(f"{row:3d} {model.outlier_pvalues_[row]:.1e} {column:<22} {truth}")

# %%
# ``outliers`` flags rows without a level to choose.
print("flagged:", np.flatnonzero(model.outliers(X)))
print("wrong:  ", wrong)

# %%
# The picture shows the plane in which the other rows differ most. Arrows at
# its edge point to rows beyond it.
ClustersDisplay.from_estimator(model, X)
