"""
What a random measure expects: sizes of clusters
================================================

A Dirichlet process expects few clusters, most of them large. A normalized generalized gamma process with a discount
expects ever more small ones (Lee and Choi 2015). This page draws data from both, and asks a sampler which
of them it was.
"""

# %%
# Sizes of clusters of 2,000 rows drawn from each prior, the largest first:
import warnings

import matplotlib.pyplot as plt
import numpy as np

import stickbreak as sb

base = sb.Gaussian(
    mean=[0.0, 0.0], mean_precision=0.01, dof=6.0, scale=[[1.0, 0.0], [0.0, 1.0]]
)
processes = {
    "Dirichlet process": sb.DirichletProcess(3.0),
    "discount 0.3": sb.NormalizedGeneralizedGamma(3.0, 0.3),
    "discount 0.6": sb.NormalizedGeneralizedGamma(3.0, 0.6),
}
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
drawn = {}
for name, process in processes.items():
    drawn[name] = sb.sample_prior(
        sb.Mixture(likelihood=base, process=process), 2000, seed=2
    )
    sizes = np.sort(np.unique(drawn[name].labels, return_counts=True)[1])[::-1]
    ax.loglog(
        np.arange(1, len(sizes) + 1),
        sizes,
        "o-",
        markersize=3,
        label=f"{name}: {len(sizes)} clusters",
    )
ax.set(xlabel="cluster", ylabel="rows")
ax.legend()
plt.show()

# %%
# A sampler learns mass and discount from the rows. Its posterior of the discount, for 400 rows of each prior. Masses
# mix slowly: few of these draws are effective, of which a trace warns. Those of the discount suffice for a picture:
warnings.simplefilter("ignore", sb.errors.ConvergenceWarning)
learned = sb.NormalizedGeneralizedGamma(sb.Gamma(1.0, 1.0), sb.Beta(1.5, 1.5))
figure, ax = plt.subplots(figsize=(6, 4), layout="constrained")
for name, sample in drawn.items():
    trace = sb.sample(
        sb.Mixture(likelihood=base, process=learned),
        sample.rows[:400],
        sb.SplitMerge(),
        draws=2000,
        warmup=500,
        chains=2,
        seed=0,
        progress=False,
    )
    print(
        f"{name}: effective draws {trace.ess('discount'):.0f}, of the mass {trace.ess('mass'):.0f}"
    )
    ax.hist(
        trace.hyperparameters["discount"].ravel(),
        bins=30,
        alpha=0.5,
        density=True,
        label=name,
    )
ax.set(xlabel="discount", ylabel="posterior density")
ax.legend()
plt.show()

# %%
# 0.6 is plain. The discount of the Dirichlet process is 0, but 400 rows of it look much like those of 0.3, and the
# prior Beta(1.5, 1.5) expects 0.5.
