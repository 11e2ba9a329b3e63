"""
Heart disease
=============

303 patients with chest pain, of whom 139 have a narrowed heart vessel. Amounts, flags and categories stand in one table
of 13 columns. Do clusters of patients agree with the disease?

The data are the Cleveland part of `Heart Disease <https://doi.org/10.24432/C52P4X>`_ by Janosi, Steinbrunn, Pfisterer
and Detrano (CC BY 4.0), with codes written as words: :download:`hearts.csv <../gallery/data/hearts.csv>`.
"""

# %%
# ``columns_for`` chooses a likelihood for each column, and prints why. The diagnosis is left out.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb

hearts = pd.read_csv("data/hearts.csv")
is_ill = hearts["disease"] > 0
table = hearts.drop(columns="disease")
columns = sb.columns_for(table)

# %%
# A third of the values of ``st_depression`` are zero, and the table above warns of it. What happens without
# ``split_zeros``?
first = sb.fit(
    sb.Mixture(likelihood=columns),
    table,
    missing="marginalize",
    progress=False,
)
first.summary()[["count", "mean st_depression", "sd st_depression"]].round(2)

# %%
# One component has the zeros, with a standard deviation of nearly nothing. It is a cluster of this column, and not of
# patients. ``split_zeros`` makes a flag and an amount of the column.
split = sb.split_zeros(table, "st_depression")
model = sb.Mixture(likelihood=sb.columns_for(split, verbose=False))
fit = sb.fit(model, split, missing="marginalize", progress=False)
fit.summary().round(2).T

# %%
# What the clusters are
# ---------------------
# The columns of this table are the diagnosis: 0 is no disease, and 4 the most severe one.
labels = fit.predict(split)
pd.crosstab(labels, hearts["disease"])

# %%
# The larger cluster is mostly healthy, and has one patient of grade 4. Most patients of the other are ill. The
# agreement is real and far from perfect. Clusters are what the columns have in common, and the disease is one of
# several reasons for that. Use a classifier to predict it.
print(f"with zeros       {adjusted_rand_score(is_ill, first.predict(table)):.2f}")
print(f"with split zeros {adjusted_rand_score(is_ill, labels):.2f}")

# %%
# For comparison: indicators of categories as numbers, in a Gaussian mixture of the patients without missing values.
complete = table.dropna()
numbers = pd.get_dummies(complete, drop_first=True).astype(float)
one_hot = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), numbers, progress=False)
agreement = adjusted_rand_score(is_ill[complete.index], one_hot.predict(numbers))
print(f"{agreement:.2f}, {one_hot.n_occupied} clusters")

# %%
# Pictures
# --------
# All components side by side, in the lines where they differ most. Red values are above those of all patients.
figure, ax = plt.subplots(figsize=(8, 6), layout="constrained")
sb.plot.profiles(fit, n_columns=20, ax=ax)
plt.show()

# %%
# The two components, beside all patients. The values of all patients are in brackets.
figure, axes = plt.subplots(1, 2, figsize=(13, 4), layout="constrained")
for component, ax in enumerate(axes):
    sb.plot.card(fit, component, ax=ax)
plt.show()

# %%
# ``means`` draws one column with posterior intervals, here the probability of pain under exercise.
figure, axes = plt.subplots(1, 2, figsize=(13, 3.5), layout="constrained")
sb.plot.means(fit, "exercise_angina", ax=axes[0])
sb.plot.density(fit, "max_heart_rate", split, ax=axes[1])
plt.show()

# %%
# New patients
# ------------
# Results of scans are often not there yet. A row may lack them.
new = pd.DataFrame(
    {
        "age": [45, 66],
        "sex": ["female", "male"],
        "chest_pain": ["atypical angina", "no pain"],
        "blood_pressure": [120, 150],
        "cholesterol": [230, 270],
        "high_sugar": [False, True],
        "ecg": ["normal", "hypertrophy"],
        "max_heart_rate": [170, 120],
        "exercise_angina": [False, True],
        "st_depression > 0": [False, True],
        "st_depression": [np.nan, 2.5],
        "st_slope": ["up", "flat"],
        "vessels": [np.nan, np.nan],
        "thallium": [None, None],
    }
)
pd.DataFrame(fit.predict_proba(new).round(2))

# %%
# ``conditional`` gives the other columns, given some: the highest heart rate and the probability of pain under
# exercise, by age and sex.
rows = []
for age in (40, 70):
    for sex in fit.levels["sex"]:
        law = fit.conditional({"age": age, "sex": sex})
        rate, pain = law.marginal(["max_heart_rate", "exercise_angina"]).mean
        rows.append(
            {"age": age, "sex": sex, "max_heart_rate": rate, "exercise_angina": pain}
        )
pd.DataFrame(rows).round(2)

# %%
# Missing values
# --------------
# Six patients lack the result of a scan. ``impute`` gives the most probable one, as a code of ``fit.levels``; counts of
# vessels are their own codes.
filled = pd.DataFrame(fit.impute(split), columns=split.columns)
filled["thallium"] = filled["thallium"].map(dict(enumerate(fit.levels["thallium"])))
lacking = table["vessels"].isna() | table["thallium"].isna()
scans = ["vessels", "thallium"]
pd.concat([table[scans], filled[scans]], axis=1, keys=["given", "filled"])[lacking]

# %%
# How good is that? Hide a fifth of a column, and compare with the commonest value. The slope follows from the other
# columns, the scans only a little, and the number of vessels not at all.
hidden = np.random.default_rng(0).random(len(split)) < 0.2
rows = []
for name in ("st_slope", "thallium", "vessels"):
    damaged = split.assign(**{name: split[name].where(~hidden)})
    again = sb.fit(model, damaged, missing="marginalize", progress=False)
    codes = again.impute(damaged)[:, split.columns.get_loc(name)]
    words = again.levels.get(name)
    guesses = codes if words is None else np.array(words)[codes.astype(int)]
    tested = hidden & split[name].notna()
    truth, commonest = split[name][tested], damaged[name].mode()[0]
    rows.append(
        {
            "column": name,
            "right": (guesses[tested] == truth).mean(),
            "commonest value": (truth == commonest).mean(),
        }
    )
pd.DataFrame(rows).round(2)
