"""
My sensor drifts: will I notice?
================================

A machine has four states, and a sensor with two channels that reports them, with five per cent of garbage.
After a while one of the states begins to move: something wears out. The model learns from one batch
after the other, forgets slowly, and says when a cluster is no longer where it was.
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
# Every batch is judged before the model learns from it. A row counts half after 2000 more rows.
model = MiniBatchTKMeans(n_clusters=4, half_life=2000, init_size=2000, random_state=0)
track, truth, alarms = [], [], []
for t in range(60):
    rows, third = batch(t)
    model.partial_fit(rows)
    track.append(model.cluster_centers_[np.linalg.norm(model.cluster_centers_ - third, axis=1).argmin(), 1])
    truth.append(third[1])
    alarms.append(t >= 10 and model.drift_pvalues_.min() < 0.001 / 4)
print("first alarm in batch", int(np.argmax(alarms)), "- the state moves from batch 30 on")
print(f"flagged as garbage in the last batch: {model.outliers(rows).mean():.1%} of the rows")

# %%
# The centre follows, with the delay of its memory. The garbage, which would have thrown a mean about, does nothing.
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(truth, "k--", label="where the state is")
ax.plot(track, label="where the model has it")
ax.plot(np.flatnonzero(alarms), np.asarray(track)[alarms], "rx", label="drift, p < 0.001")
ax.set(xlabel="batch", ylabel="second channel")
ax.legend()
