"""
Trees that guide a sampler
==========================

Gibbs sampling moves one row at a time, so from a bad start it takes long to split a cluster that stands for two. The
tree-guided sampler (Lee and Choi 2015) keeps a tree over the rows of each cluster, and proposes to cut it where its
parts differ most, or to join clusters whose trees are alike.

The page needs the folder ``STICKBREAK_DATA``.
"""

# %%
# 1,300 rows of 13 clusters: the toy data of the paper.
import os
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import stickbreak as sb

# needs: nrmm/toy.npz
rows = np.load(Path(os.environ["STICKBREAK_DATA"]) / "nrmm" / "toy.npz")["X"]
covariance = np.cov(rows.T)
base = sb.Gaussian(
    mean=rows.mean(axis=0),
    mean_precision=0.1,
    dof=8.0,
    scale=covariance / (10 * np.linalg.det(covariance)) ** 0.5,
)
model = sb.Mixture(
    likelihood=base,
    process=sb.NormalizedGeneralizedGamma(sb.Gamma(1.0, 1.0), sb.Beta(1.5, 1.5)),
)

# %%
# The log joint probability of three samplers from the same start, in which rows lie on top of each other in few
# clusters. The last one is the published sampler: it does not leave the posterior as it is, so its draws are biased.
# 200 draws from there, without warmup, show the way to the posterior; each trace warns that they are not yet of it.
warnings.simplefilter("ignore", sb.errors.ConvergenceWarning)
samplers = {
    "Gibbs": sb.CollapsedGibbs(),
    "tree-guided": sb.TreeGuided(),
    "tree-guided, published": sb.TreeGuided(exact=False),
}
traces = {
    name: sb.sample(
        model,
        rows,
        sampler,
        draws=200,
        warmup=0,
        chains=2,
        init="one-on-top",
        seed=1,
        progress=False,
    )
    for name, sampler in samplers.items()
}
figure, axes = plt.subplots(1, 3, figsize=(12, 3.5), sharey=True, layout="constrained")
for ax, (name, trace) in zip(axes, traces.items(), strict=True):
    sb.plot.chains(trace, ax=ax)
    ax.set_title(name)
plt.show()

# %%
# How often are proposals accepted? Those of the tree change a whole cluster at once.
for kind, share in traces["tree-guided"].acceptance.items():
    print(f"{kind:16s} {share:.3f}")

# %%
# The number of clusters, and how often two rows are in the same one:
figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
sb.plot.cluster_numbers(traces["tree-guided"], ax=axes[0])
sb.plot.similarity(traces["tree-guided"], rows=np.arange(0, 1300, 5), ax=axes[1])
plt.show()
