"""
What does a typical digit look like?
====================================

The centre of a cluster of images is an image. If the scanner failed for some
of the images, a mean shows that; a robust centre does not.
"""

# %%
# The digits 0, 1 and 4 of scikit-learn's collection, 8 by 8 pixels with
# values from 0 to 16. In one of ten images a block of pixels is at 120.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from tkmeans import TKMeans

digits = load_digits()
kept = np.isin(digits.target, [0, 1, 4])
images, target = digits.images[kept].copy(), digits.target[kept]
rng = np.random.default_rng(0)
broken = rng.choice(len(images), size=len(images) // 10, replace=False)
for image in broken:
    row, column = rng.integers(0, 4, size=2)
    images[image, row : row + 5, column : column + 5] = 120
X = images.reshape(len(images), -1)

# %%
# Agreement of the clusters with the digits, over the images that are intact.
intact = np.setdiff1d(np.arange(len(X)), broken)
models = {
    "KMeans": KMeans(3, n_init=10, random_state=0),
    "TKMeans": TKMeans(3, random_state=0),
}
for name, model in models.items():
    labels = model.fit_predict(X)
    score = adjusted_rand_score(target[intact], labels[intact])
    print(f"{name:<8} {score:.3f}")
flagged = models["TKMeans"].outliers(X)
print(
    flagged.sum(), "images flagged,", flagged[broken].sum(), "of them broken"
)

# %%
# The centres, and three of the broken images.
fig, axes = plt.subplots(3, 3, figsize=(5.4, 5.8), layout="constrained")
rows = {"some broken images": images[broken[:3]]} | {
    f"centres of {name}": model.cluster_centers_.reshape(3, 8, 8)
    for name, model in models.items()
}
for line, (title, pictures) in zip(axes, rows.items(), strict=True):
    for ax, picture in zip(line, pictures, strict=True):
        ax.imshow(picture, cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
    line[1].set_title(title)
