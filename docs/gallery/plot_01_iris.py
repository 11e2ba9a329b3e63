"""
A first fit: iris
=================

Fit a table of 150 flowers, and look at what was found.
"""

# %%
# The data are in scikit-learn. Columns of a data frame keep their names in the fit.
import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

import stickbreak as sb

iris = load_iris(as_frame=True)
table = iris.data.rename(columns=lambda name: name.removesuffix(" (cm)"))
table.head()

# %%
# A model needs a likelihood. The number of clusters is not given.
fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), table, progress=False)
fit.n_occupied

# %%
# ``summary`` is a table with one line a component.
fit.summary()

# %%
# Draw the rows on two of the columns. An ellipse holds 90 % of a component's rows.
figure, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
sb.plot.clusters(fit, table, columns=["petal length", "petal width"], ax=axes[0])
sb.plot.density(fit, "petal length", table, ax=axes[1])
plt.show()

# %%
# Each component has a card: its weight, and the columns in which it differs most from all rows.
figure, axes = plt.subplots(2, 2, figsize=(11, 6), layout="constrained")
for component, ax in enumerate(axes.flat):
    sb.plot.card(fit, component, ax=ax)
plt.show()

# %%
# The fit has not seen the species. ``label_shares`` compares them with the components.
species = iris.target_names[iris.target]
for component, shares in enumerate(sb.label_shares(fit.predict_proba(table), species)):
    print(
        component,
        ", ".join(
            f"{share.label} {share.share:.0%}" for share in shares if share.share > 0.005
        ),
    )

# %%
# Look at the advice before you use a fit. No line means that nothing was found to warn of.
for advice in fit.advice():
    print(advice.kind, "|", advice)
