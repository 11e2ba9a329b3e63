"""
Missing values
==============

569 tumours with six measurements each. This page removes a tenth of the values, fits the rest, and fills in the missing
values.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import stickbreak as sb

cancer = load_breast_cancer(as_frame=True)
columns = [
    "mean radius",
    "mean texture",
    "mean smoothness",
    "mean concavity",
    "mean symmetry",
    "worst area",
]
table = np.log(cancer.data[columns] + 0.01)
absent = np.random.default_rng(0).random(table.shape) < 0.1
damaged = table.mask(absent)
damaged.isna().sum()

# %%
# With ``missing="marginalize"`` a ``Gaussian`` imputes missing values, NaN, from the others of the row and its cluster.
model = sb.Mixture(likelihood=sb.Gaussian())
moves = (sb.Birth(), sb.Merge(), sb.Delete())
algorithm = sb.Memoized(moves=moves, tol=1e-3)
fit = sb.fit(model, damaged, algorithm, missing="marginalize", progress=False)
fit.n_occupied

# %%
# ``impute`` fills in missing values. The table shows the root mean squared error in standard deviations of the column,
# beside that of the simplest way: the mean of the column.
filled = pd.DataFrame(fit.impute(damaged), columns=columns)
errors = pd.DataFrame(
    {
        name: ((values - table) / table.std()).where(absent).pow(2).mean().pow(0.5)
        for name, values in {
            "stickbreak": filled,
            "mean of the column": damaged.fillna(damaged.mean()),
        }.items()
    }
)
errors.round(2)

# %%
# An imputed value is uncertain. ``sample_missing`` draws values from their distribution.
draws = [fit.sample_missing(damaged, seed=seed) for seed in range(100)]
row = int(np.flatnonzero(absent[:, 5])[0])
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.hist([draw[row, 5] for draw in draws], bins=20)
ax.axvline(table.iloc[row, 5], color="black", label="true value")
ax.set(xlabel="worst area, logarithm", ylabel="draws")
ax.legend()
plt.show()

# %%
# Rows with missing values have scores too.
scores = fit.log_predictive(damaged)
print(f"mean log density {scores.mean():.2f} nats a row")
