"""
My sensor drifts: will I notice?
================================

A machine has four states, and a sensor with two channels reports them; five
per cent of what it sends are random numbers. After a while one of the states
begins to move, because something wears out. The model learns from one batch
after the other, forgets slowly, and reports which clusters have moved.
"""

# %%
# Sixty batches of 250 rows. From batch 30 on the third state moves.
import matplotlib.pyplot as plt
import numpy as np

from tkmeans import MiniBatchTKMeans

rng = np.random.default_rng(0)
states = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])


def batch(t):
    """What the sensor sends in the t-th batch."""
    where = states.copy()
    where[2, 1] += 0.1 * max(0, t - 30)
    rows = where[rng.integers(4, size=250)] + rng.normal(size=(250, 2))
    garbage = rng.random(250) < 0.05
    rows[garbage] = rng.uniform(-100, 100, size=(garbage.sum(), 2))
    return rows, where[2]


# %%
# The influence of a row halves after 2000 more rows. ``drift_pvalues_``
# compares the latest rows of each cluster with its centre.
model = MiniBatchTKMeans(
    n_clusters=4, half_life=2000, init_size=2000, random_state=0
)
track, truth, alarms = [], [], []
for t in range(60):
    rows, third = batch(t)
    centers = model.partial_fit(rows).cluster_centers_
    nearest = np.linalg.norm(centers - third, axis=1).argmin()
    track.append(centers[nearest, 1])
    truth.append(third[1])
    alarms.append(t >= 10 and model.drift_pvalues_.min() < 0.001 / 4)
print("first alarm in batch", int(np.argmax(alarms)), "(it moves from 30 on)")
print(f"outliers in the last batch: {model.outliers(rows).mean():.1%}")

# %%
# The centre follows with a delay that depends on ``half_life``. The random
# numbers do not move it.
fig, ax = plt.subplots(figsize=(6.8, 4), layout="constrained")
ax.plot(truth, "k--", label="where the state is")
ax.plot(track, linewidth=2, label="centre of the model")
late = np.flatnonzero(alarms)
ax.plot(late, np.asarray(track)[late], "rx", label="drift, p < 0.001")
ax.set(xlabel="batch", ylabel="second channel")
ax.legend(frameon=False)
