"""
How sure? The eruptions of Old Faithful
=======================================

A geyser erupts for about two or four minutes. Two clusters are easy to see. This page asks how sure a model is of them.

The page needs the folder ``STICKBREAK_DATA``.
"""

# %%
import os
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import stickbreak as sb

# needs: classic/faithful.csv
faithful = pd.read_csv(Path(os.environ["STICKBREAK_DATA"]) / "classic" / "faithful.csv")
model = sb.Mixture(likelihood=sb.Gaussian())
fit = sb.fit(model, faithful, progress=False)
fit.summary()

# %%
# Intervals of the means
# ----------------------
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
sb.plot.clusters(fit, faithful, ax=axes[0])
sb.plot.means(fit, "waiting", ax=axes[1])
plt.show()

# %%
# Intervals take the number of components as given. Unusual eruptions have a high score:
scores = fit.outlier_scores(faithful)
faithful.assign(score=scores).nlargest(5, "score").round(3)

# %%
# One column given another
# ------------------------
# ``conditional`` is the density of the other columns, given the values of some. How long do you wait after an eruption
# of two minutes, and after one of four and a half?
for minutes in (2.0, 4.5):
    waiting = fit.conditional({"eruptions": minutes})
    print(f"after {minutes} minutes: {waiting.mean[0]:.0f} minutes of waiting")

# %%
# The number of clusters
# ----------------------
# A sampler draws partitions from the exact posterior of the same model. The left picture shows the log joint density
# along the chains, with its R-hat as title.
trace = sb.sample(
    model,
    faithful,
    sb.SplitMerge(),
    draws=4000,
    warmup=500,
    chains=2,
    seed=0,
    progress=False,
)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.5), layout="constrained")
sb.plot.chains(trace, ax=axes[0])
sb.plot.cluster_numbers(trace, ax=axes[1])
plt.show()

# %%
# The fit has 2 components, but most draws have 4 to 6 clusters. A Dirichlet process expects small new clusters in any
# data, so a draw has a few of them besides the two groups, and sometimes cuts a group in two. Do not take the number of
# groups from this histogram. Look at what the draws have in common: how often are two eruptions in the same cluster?
ax = sb.plot.similarity(trace)
plt.show()

# %%
# Eruptions of the two groups are almost never together. Chains agree if R-hat is close to 1. Here is the R-hat of the
# number of clusters; the one above is that of the log joint density.
print(
    f"R-hat {trace.rhat('n_clusters'):.3f}, effective draws {trace.ess('n_clusters'):.0f}"
)
