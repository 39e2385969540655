"""
How far can one row move a centre?
==================================

A mean has no limit: one row that is far enough away takes it anywhere. This
example moves one row of a hundred away from its cluster, and measures how far
the centre follows.
"""

# %%
# Two clusters of fifty rows. The last row of the second one will move.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans

from tkmeans import TKMeans
from tkmeans.baselines import KMedians

rng = np.random.default_rng(0)
X = rng.normal(size=(100, 2))
X[50:, 0] += 12

# %%
# Every method starts at the true centres, so that only its notion of a centre
# matters and not its search. The shift is measured from the centres that the
# method finds without the row.
start = np.array([[0.0, 0.0], [12.0, 0.0]])
methods = {
    "KMeans": KMeans(2, init=start, n_init=1),
    "KMedians": KMedians(2, init=start),
    "TKMeans": TKMeans(2, dof=3.0, init=start, tol=1e-10),
}
distances = np.geomspace(1, 300, 40)
shifts = {}
for name, method in methods.items():
    before = method.fit(X[:-1]).cluster_centers_[:, None]  # (2, 1, 2)
    shifts[name] = []
    for distance in distances:
        X[-1] = [12 + distance, 0]
        shift = np.linalg.norm(method.fit(X).cluster_centers_ - before, axis=2)
        shifts[name].append(shift.min(axis=1).max())

# %%
# The centre of ``KMeans`` follows in proportion to the distance. A median
# moves by a bounded amount. The influence of a row on ``TKMeans`` falls with
# its distance, to almost nothing.
fig, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
styles = {"KMeans": "C1--", "KMedians": "C2:", "TKMeans": "C0-"}
for name, shift in shifts.items():
    ax.plot(distances, shift, styles[name], linewidth=2.5, label=name)
ax.set(xscale="log", yscale="log", ylim=(1e-3, 30))
ax.set_xlabel("distance of one row from its cluster")
ax.set_ylabel("how far the centre is off")
ax.legend(frameon=False)
for name, shift in shifts.items():
    print(f"{name:<9} off by {max(shift):.3f} at most, {shift[-1]:.4f} at 300")
