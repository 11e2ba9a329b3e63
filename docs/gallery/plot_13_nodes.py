"""
Many rows as a few nodes: kd-trees
==================================

A kd-tree cuts the rows into nodes, and a node whose rows agree about their component counts as one unit of the fit
(Kurihara, Welling and Vlassis 2006). Nodes are opened where rows would disagree.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

import stickbreak as sb

rng = np.random.default_rng(0)
centres = rng.normal(size=(10, 2)) * 12
rows = centres[rng.integers(10, size=200_000)] + rng.normal(size=(200_000, 2))
model = sb.Mixture(
    likelihood=sb.Gaussian(), process=sb.DirichletProcess(truncation="tail")
)

# %%
# Splits from one component, as in the paper. The left picture shows how the number of components grows, the right one
# how many nodes stand for the 200,000 rows of each pass.
tree = sb.KdTree(tolerance=0.01, refine=False)
fit = sb.fit(model, rows, sb.Full(units=tree, moves=(sb.Split(),)), progress=False)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.5), layout="constrained")
sb.plot.n_components(fit, ax=axes[0])
axes[1].plot(
    [record.index + 1 for record in fit.history],
    [record.n_units for record in fit.history],
    "o-",
)
axes[1].set(xlabel="pass", ylabel="nodes", yscale="log")
plt.show()

# %%
# What does it cost? ``evaluate`` computes the bound of these components over the rows themselves. The difference to the
# bound on nodes, in nats a row, is what rows would still gain from responsibilities of their own.
gap = (fit.evaluate(rows) - fit.elbo) / len(rows)
print(
    f"{fit.n_components} components, {fit.history[-1].n_units} nodes, {gap:.5f} nats a row"
)

# %%
# The more nodes, the smaller the gap. A ``budget`` is the largest number of nodes.
budgets = [256, 512, 1024, 2048, 4096]
gaps = []
for budget in budgets:
    units = sb.KdTree(budget=budget, tolerance=0.0, refine=False)
    nodes = sb.fit(
        fit.model, rows, sb.Full(units=units, max_passes=300), init=fit, progress=False
    )
    gaps.append((nodes.evaluate(rows) - nodes.elbo) / len(rows))
figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.loglog(budgets, gaps, "o-")
ax.set(xlabel="nodes", ylabel="gap to rows, nats a row")
plt.show()
