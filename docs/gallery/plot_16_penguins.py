"""
Penguins
========

344 penguins of three species: four measurements, the island and the sex. Numbers and words stand in one table, and
some values are missing.

The data are the `Palmer penguins <https://allisonhorst.github.io/palmerpenguins/>`_ of Gorman, Williams and Fraser
(2014): :download:`penguins.csv <../gallery/data/penguins.csv>`.
"""

# %%
# ``columns_for`` chooses a likelihood for each column, and prints why. The species are left out: the clusters do not
# see them.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb

penguins = pd.read_csv("data/penguins.csv")
table = penguins.drop(columns="species")
columns = sb.columns_for(table)

# %%
# Two penguins were not measured, and the sex of nine more is not known. ``missing="marginalize"`` takes them as they
# are.
fit = sb.fit(
    sb.Mixture(likelihood=columns),
    table,
    missing="marginalize",
    progress=False,
)
fit.summary().round(2).T

# %%
# What the clusters are
# ---------------------
labels = fit.predict(table)
pd.crosstab(labels, [penguins["species"], penguins["sex"].fillna("unknown")])

# %%
# A cluster is one sex of one species. One bird has a cluster of its own: a female with an unusually long bill. So the
# agreement with the species is moderate, and that with species and sex nearly perfect. An adjusted Rand index is 1 for
# equal groups and about 0 for unrelated ones.
known = penguins["sex"].notna()
both = penguins["species"] + ", " + penguins["sex"]
print(f"species          {adjusted_rand_score(penguins['species'], labels):.2f}")
print(f"species and sex  {adjusted_rand_score(both[known], labels[known]):.2f}")

# %%
# Clusters describe all columns that they see. Without the sex, they are the species:
without = table.drop(columns="sex")
model = sb.Mixture(likelihood=sb.columns_for(without, verbose=False))
species = sb.fit(model, without, missing="marginalize", progress=False)
agreement = adjusted_rand_score(penguins["species"], species.predict(without))
print(f"species {agreement:.2f}, {species.n_occupied} clusters")

# %%
# For comparison: indicators of islands and sexes as numbers, in a Gaussian mixture of the birds without missing values.
complete = table.dropna()
numbers = pd.get_dummies(complete, drop_first=True).astype(float)
one_hot = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), numbers, progress=False)
found = one_hot.predict(numbers)
print(
    f"species and sex {adjusted_rand_score(both[complete.index], found):.2f}, "
    f"species {adjusted_rand_score(penguins['species'][complete.index], found):.2f}, "
    f"{one_hot.n_occupied} clusters"
)

# %%
# Pictures
# --------
# ``profiles`` has all components side by side. Red values are above those of all penguins, and blue ones below.
figure, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
ax = sb.plot.profiles(fit, ax=ax)
plt.show()

# %%
# ``card`` shows in what one component differs most from all. Two columns of numbers have a joint density.
figure, axes = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
sb.plot.card(fit, 3, ax=axes[0])
sb.plot.density(fit, ["bill_length", "bill_depth"], table, ax=axes[1])
plt.show()

# %%
# The same two columns with the clusters, and the body masses:
figure, axes = plt.subplots(1, 2, figsize=(13, 4), layout="constrained")
sb.plot.clusters(fit, table, columns=["bill_length", "bill_depth"], ax=axes[0])
sb.plot.density(fit, "body_mass", table, ax=axes[1])
plt.show()

# %%
# New penguins
# ------------
# The columns of new rows may be in any order. Of the second bird only the island is known: a row may lack values.
new = pd.DataFrame(
    {
        "sex": ["male", None],
        "island": ["Biscoe", "Dream"],
        "body_mass": [5600.0, np.nan],
        "bill_length": [50.0, np.nan],
        "bill_depth": [16.0, np.nan],
        "flipper_length": [222.0, np.nan],
    }
)
pd.DataFrame(fit.predict_proba(new).round(2))

# %%
# The body mass, given the sex and the island, beside the mean of the penguins in the table:
rows = []
for island in fit.levels["island"]:
    for sex in fit.levels["sex"]:
        mass = fit.conditional({"sex": sex, "island": island}).marginal("body_mass")
        like = penguins[(penguins["sex"] == sex) & (penguins["island"] == island)]
        rows.append(
            {
                "island": island,
                "sex": sex,
                "expected": mass.mean[0],
                "sd": mass.covariance[0, 0] ** 0.5,
                "mean in the table": like["body_mass"].mean(),
                "penguins": len(like),
            }
        )
pd.DataFrame(rows).round(0)

# %%
# Missing values
# --------------
# ``impute`` fills in missing values: expected numbers, and the most probable categories as codes of ``fit.levels``.
filled = pd.DataFrame(fit.impute(table), columns=table.columns)
filled["sex"] = filled["sex"].map(dict(enumerate(fit.levels["sex"])))
filled["island"] = table["island"]
filled[~known].round(1)

# %%
# How good is that? Hide a fifth of the known sexes, and fit again.
hidden = known & (np.random.default_rng(0).random(len(table)) < 0.2)
damaged = table.assign(sex=table["sex"].where(~hidden))
model = sb.Mixture(likelihood=sb.columns_for(damaged, verbose=False))
again = sb.fit(model, damaged, missing="marginalize", progress=False)
codes = again.impute(damaged)[:, table.columns.get_loc("sex")].astype(int)
guesses = np.array(again.levels["sex"])[codes]
right = (guesses == table["sex"])[hidden].mean()
print(f"{right:.0%} of {hidden.sum()} hidden sexes are right")
