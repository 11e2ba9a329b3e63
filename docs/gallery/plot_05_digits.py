"""
Handwritten digits without labels
=================================

1,797 images of 8 x 8 pixels. The fit gets the pixels without the labels, and finds ways to write each digit.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

import stickbreak as sb

digits = load_digits()
pixels = digits.data
components = PCA(20, random_state=0).fit(pixels)
rows = components.transform(pixels)
rows.shape

# %%
# Twenty principal components keep most of the variance. With a full covariance in all 64 columns, each cluster would
# need more rows than it has.
print(f"{components.explained_variance_ratio_.sum():.0%} of the variance")
fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, progress=False)
fit.n_occupied

# %%
# The mean image of each component, the largest first.
means = components.inverse_transform(fit.components["mean"])
order = np.argsort(fit.counts)[::-1][: fit.n_occupied]
figure, axes = plt.subplots(2, -(-len(order) // 2), figsize=(10, 3), layout="constrained")
for ax in axes.flat:
    ax.axis("off")
for ax, component in zip(axes.flat, order, strict=False):
    ax.imshow(means[component].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{fit.counts[component]:.0f}", fontsize=9)
plt.show()

# %%
# Compare with the true digits. Rows are components, columns are digits.
labels = fit.predict(rows)
table = np.array(
    [
        [np.sum((labels == k) & (digits.target == digit)) for digit in range(10)]
        for k in order
    ]
)
figure, ax = plt.subplots(figsize=(6, 7), layout="constrained")
ax.imshow(table, cmap="Blues", aspect="auto")
ax.set(
    xticks=range(10),
    yticks=range(len(order)),
    xlabel="digit",
    ylabel="component",
    yticklabels=order,
)
for (row, digit), count in np.ndenumerate(table):
    if count:
        ax.text(
            digit,
            row,
            count,
            ha="center",
            va="center",
            fontsize=7,
            color="white" if count > 90 else "black",
        )
plt.show()

# %%
# Label every component with its most frequent digit. This share of the images then has the right label:
print(f"{table.max(axis=1).sum() / len(rows):.0%}")

# %%
# New digits are draws from the fit.
drawn = components.inverse_transform(fit.sample(20, seed=1))
figure, axes = plt.subplots(2, 10, figsize=(10, 2.2), layout="constrained")
for ax, image in zip(axes.flat, drawn, strict=True):
    ax.imshow(image.reshape(8, 8), cmap="gray_r")
    ax.axis("off")
plt.show()
