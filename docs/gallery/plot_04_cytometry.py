"""
Cells of a patient: flow cytometry
==================================

A cytometer measures light from thousands of cells. Populations of cells are clusters; how many there are is a question
of medicine, not a setting. Here are 9,083 cells of a patient with graft-versus-host disease, with four markers.

The data are those of the R package mclust. The page needs the folder ``STICKBREAK_DATA``.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import stickbreak as sb

# needs: gvhd_pos/gvhd_pos.npz
file = Path(os.environ["STICKBREAK_DATA"]) / "gvhd_pos" / "gvhd_pos.npz"
cells = pd.DataFrame(np.load(file)["X"], columns=["CD4", "CD8b", "CD3", "CD8"]).astype(
    float
)
cells.describe().loc[["mean", "std", "min", "max"]].round(0)

# %%
# Populations are not exactly Gaussian. A fit describes each by one or several components.
moves = (sb.Birth(), sb.Merge(), sb.Delete())
algorithm = sb.Memoized(moves=moves, tol=1e-4)
fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), cells, algorithm, progress=False)
fit.summary().head(8)

# %%
figure, axes = plt.subplots(1, 2, figsize=(12, 5), layout="constrained")
sb.plot.clusters(fit, cells, columns=["CD4", "CD8"], ax=axes[0])
sb.plot.clusters(fit, cells, columns=["CD3", "CD8b"], ax=axes[1])
for ax in axes:
    ax.get_legend().remove()  # fifteen components are too many for a legend
plt.show()

# %%
# From components to populations
# ------------------------------
# ``combine`` joins components that overlap.
populations = fit.combine(cells)
populations

# %%
# Cells that are high in CD3, CD4 and CD8b go with the disease (Brinkman et al., 2007). How many cells belong to
# components whose means are above the median in these three markers?
labels = fit.predict(cells)
means = cells.groupby(labels).mean()
markers = ["CD3", "CD4", "CD8b"]
marked = means[(means[markers] > cells[markers].median()).all(axis=1)].index
print(f"{np.isin(labels, marked).mean():.1%} of the cells")

# %%
# How sure is it?
# ---------------
# Responsibilities near one half are cells between two components.
ax = sb.plot.responsibilities(fit, cells)
plt.show()
