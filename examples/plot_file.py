"""
A file that need not fit into memory
====================================

``fit`` takes the name of a file in place of an array. The file is read in
chunks, once for every iteration, and the result is the same as for the array.
"""

# %%
# A file of 60 000 rows with a column of text, as another program wrote it:
# semicolons, decimal commas, missing values.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from tkmeans import DataFile, TKMeans

rng = np.random.default_rng(0)
centers = np.array([[18, 30], [24, 62], [31, 45]])
rows = centers[rng.integers(3, size=60_000)]
rows = rows + rng.normal(size=(60_000, 2)) * 1.5
rows[rng.random(60_000) < 0.02] *= 10
folder = tempfile.TemporaryDirectory()
path = Path(folder.name, "rooms.csv")
with path.open("w") as file:
    file.write("room;temperature;humidity\n")
    for number, (a, b) in enumerate(rows):
        humidity = "" if number % 50 == 0 else f"{b:.2f}"
        line = f"room {number % 7};{a:.2f};{humidity}\n"
        file.write(line.replace(".", ","))
print(path.read_text()[:75])

# %%
# The reader finds out how the file is written. ``columns`` chooses what to
# cluster by. (A path alone would take all columns of numbers.)
measured = DataFile(path, columns=["temperature", "humidity"])
model = TKMeans(n_clusters=3, random_state=0).fit(measured)
print(model.feature_names_in_)
print(model.cluster_centers_.round(2))

# %%
# Answers go to a file beside it.
answers = model.predict(measured)
print(answers.name, answers.stat().st_size // 1000, "kB")

# %%
# The first thousand rows, and the centres.
fig, ax = plt.subplots(figsize=(6, 4.4), layout="constrained")
some, labels = rows[:1000], model.labels_[:1000]
for k, marker in enumerate("osD"):
    ax.plot(*some[labels == k].T, marker, markersize=3, alpha=0.5)
ax.plot(*model.cluster_centers_.T, "k*", markersize=16, label="centre")
ax.set(xlim=(10, 40), ylim=(22, 70))
ax.set(xlabel="temperature", ylabel="humidity")
ax.legend(frameon=False)
folder.cleanup()
