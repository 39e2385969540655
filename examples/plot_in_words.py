"""
What sets my clusters apart?
============================

A table of centres is hard to read. ``describe`` compares each cluster with
the other rows, column by column, and names what differs most. Categories that
the clusters were not made of are described by their shares.
"""

# %%
# Scikit-learn's 178 wines: thirteen measured properties, in different units,
# so they are scaled by medians and quartiles.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler

from tkmeans import TKMeans, describe

wine = load_wine()
model = make_pipeline(RobustScaler(), TKMeans(3, random_state=0))
model = model.fit(wine.data)

# %%
# One sentence for each cluster. The cultivar is a column of text that the
# clusters were not made of.
cultivar = wine.target_names[wine.target]
found = describe(
    model,
    wine.data,
    feature_names=wine.feature_names,
    categories={"cultivar": cultivar},
)
print(found)

# %%
# The effects behind the words: differences of medians, in units of the spread
# within clusters.
effects = np.array(
    [
        [{trait.column: trait.effect for trait in cluster.traits}[name]]
        for cluster in found
        for name in wine.feature_names
    ]
).reshape(len(found), -1)
strongest = np.argsort(-np.abs(effects).max(axis=0))[:7]
fig, ax = plt.subplots(figsize=(6.8, 4.4), layout="constrained")
for k, effect in enumerate(effects):
    places = np.arange(7) + 0.26 * (k - 1)
    ax.barh(places, effect[strongest], 0.24, label=f"cluster {k}")
ax.axvline(0, color="black", linewidth=0.8)
ax.set_yticks(np.arange(7), [wine.feature_names[j] for j in strongest])
ax.invert_yaxis()
ax.set_xlabel("difference from the other rows")
ax.legend(frameon=False)
