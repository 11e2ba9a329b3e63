"""
Patches of a photograph
=======================

A mixture of zero-mean Gaussians is a good model of small image patches: each component is a texture, such as an edge of
one direction. ``make demo`` fits half a million patches; this page fits 12,000.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

import stickbreak as sb

photograph = load_sample_image("china.jpg").mean(axis=2) / 255
patches = extract_patches_2d(
    photograph, (6, 6), max_patches=12_000, random_state=0
).reshape(-1, 36)
# The brightness of a patch is not part of its texture.
patches -= patches.mean(axis=1, keepdims=True)
patches.shape

# %%
# Without its mean, a patch has no variance in one direction. The fit leaves this direction out, with a warning.
import warnings

with warnings.catch_warnings():
    warnings.simplefilter("ignore", sb.SupportWarning)
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian())
    algorithm = sb.Full(max_passes=100, tol=0.01)
    fit = sb.fit(model, patches, algorithm, n_components=12, progress=False)
fit.n_occupied

# %%
# Each line shows a component, from smooth to rough: first its leading direction, then eight of its patches. The number
# counts its patches.
labels = fit.predict(patches)
contrast = np.array([patches[labels == k].std() for k in range(fit.n_components)])
chosen = np.argsort(contrast)[:: max(1, fit.n_components // 6)][:6]
figure, axes = plt.subplots(
    len(chosen), 9, figsize=(9, 1.05 * len(chosen)), layout="constrained"
)
for row, k in zip(axes, chosen, strict=True):
    own = patches[labels == k]
    leading = np.linalg.svd(own, full_matrices=False)[2][0]
    for ax, image in zip(row, [leading, *own[:8]], strict=True):
        ax.imshow(image.reshape(6, 6), cmap="gray")
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(f"{len(own)}", rotation=0, ha="right", va="center")
plt.show()

# %%
# Draws from the fit look like patches without their brightness.
figure, axes = plt.subplots(2, 12, figsize=(10, 1.9), layout="constrained")
for ax, image in zip(axes.flat, fit.sample(24, seed=3), strict=True):
    ax.imshow(image.reshape(6, 6), cmap="gray")
    ax.axis("off")
plt.show()
