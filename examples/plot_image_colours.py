"""
Which colours does this photograph have?
========================================

A palette of six colours is k-means with K = 6 on the pixels. Cameras have hot pixels, scans have dust: a
few per cent of pixels in colours that are not in the picture. A palette is no place for them.
"""

# %%
# The flower that comes with scikit-learn; five per cent of its pixels are burnt out to a pure colour.
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
pixels = burnt.reshape(-1, 3)

# %%
# The palette of the clean picture by KMeans is what we would like to get back.
K = 6
clean = KMeans(K, n_init=3, random_state=0).fit(picture.reshape(-1, 3)).cluster_centers_
models = {
    "KMeans": KMeans(K, n_init=3, random_state=0).fit(pixels),
    "TKMeans": TKMeans(K, random_state=0).fit(pixels),
}

# %%
# How far are the colours of the true picture from the nearest one of the palette? KMeans gives some of its six to
# colours that only hot pixels have.
true_pixels = picture.reshape(-1, 3)
palettes = {"clean picture, KMeans": clean} | {f"burnt, {name}": m.cluster_centers_ for name, m in models.items()}
for name, palette in palettes.items():
    nearest = np.linalg.norm(true_pixels[:, None] - palette, axis=2).min(axis=1)
    print(f"{name:<24} {np.median(nearest):.3f} off in the median")

# %%
fig, axes = plt.subplots(1, 4, figsize=(12, 3.2), layout="constrained", width_ratios=[4, 1, 1, 1])
axes[0].imshow(burnt)
axes[0].set_axis_off()
for ax, (name, palette) in zip(axes[1:], palettes.items(), strict=True):
    order = np.argsort(palette.sum(axis=1))
    ax.imshow(np.clip(palette[order, None], 0, 1), aspect="auto")
    ax.set(title=name.replace(", ", "\n"), xticks=[], yticks=[])
