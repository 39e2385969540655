"""
Which colours does this photograph have?
========================================

A palette of six colours is k-means with K = 6 on the pixels. Cameras have hot
pixels and scans have dust: a few per cent of the pixels have colours that are
not in the picture, and should not be in the palette.
"""

# %%
# The flower that comes with scikit-learn. Five per cent of its pixels are
# burnt out to a pure colour.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

from tkmeans import TKMeans

picture = load_sample_image("flower.jpg")[::5, ::5] / 255.0
rng = np.random.default_rng(0)
burnt = picture.copy()
hot = rng.random(picture.shape[:2]) < 0.05
burnt[hot] = rng.integers(0, 2, size=(hot.sum(), 3))
pixels, clean = burnt.reshape(-1, 3), picture.reshape(-1, 3)

# %%
# The palette of the clean picture is the one to find.
K = 6
kmeans = KMeans(K, n_init=3, random_state=0)
palettes = {
    "clean, KMeans": kmeans.fit(clean).cluster_centers_,
    "burnt, KMeans": kmeans.fit(pixels).cluster_centers_,
    "burnt, TKMeans": TKMeans(K, random_state=0).fit(pixels).cluster_centers_,
}

# %%
# The distance of the true colours from the nearest one of the palette.
# ``KMeans`` gives some of its six colours to hot pixels.
for name, palette in palettes.items():
    nearest = np.linalg.norm(clean[:, None] - palette, axis=2).min(axis=1)
    print(f"{name:<15} {np.median(nearest):.3f} in the median")

# %%
fig, axes = plt.subplots(
    1, 4, figsize=(7, 2.6), layout="constrained", width_ratios=[4, 1, 1, 1]
)
axes[0].imshow(burnt)
axes[0].set_axis_off()
for ax, (name, palette) in zip(axes[1:], palettes.items(), strict=True):
    order = np.argsort(palette.sum(axis=1))
    ax.imshow(np.clip(palette[order, None], 0, 1), aspect="auto")
    ax.set(title=name.replace(", ", "\n"), xticks=[], yticks=[])
