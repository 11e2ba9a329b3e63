"""
Missing values
==============

569 tumours with 30 measurements. A tenth of the values is taken away; the fit leaves them out, and fills them in.
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
holes = np.random.default_rng(0).random(table.shape) < 0.1
damaged = table.mask(holes)
damaged.isna().sum()

# %%
# ``missing="marginalize"`` integrates missing values out. Missing values are NaN.
model = sb.Mixture(likelihood=sb.DiagonalGaussian())
moves = (sb.Birth(), sb.Merge(), sb.Delete())
algorithm = sb.Memoized(moves=moves, tol=1e-3)
fit = sb.fit(model, damaged, algorithm, missing="marginalize", progress=False)
fit.n_occupied

# %%
# ``impute`` fills values in. How far off are they, in standard deviations of their column? The mean of the column is
# the simplest way to fill in a value.
filled = pd.DataFrame(fit.impute(damaged), columns=columns)
spread = table.std()
errors = pd.DataFrame(
    {
        "stickbreak": ((filled - table) / spread)[holes].pow(2).mean().pow(0.5),
        "mean of the column": ((damaged.fillna(damaged.mean()) - table) / spread)[holes]
        .pow(2)
        .mean()
        .pow(0.5),
    }
)
errors.round(2)

# %%
# A value is not sure. ``sample_missing`` draws values instead.
draws = [fit.sample_missing(damaged, seed=seed) for seed in range(100)]
row = int(np.flatnonzero(holes[:, 5])[0])
figure, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.hist([draw[row, 5] for draw in draws], bins=20)
ax.axvline(table.iloc[row, 5], color="black", label="true value")
ax.set(xlabel="worst area, logarithm", ylabel="draws")
ax.legend()
plt.show()

# %%
# Rows can be scored with their holes.
scores = fit.log_predictive(damaged)
print(f"mean log density {scores.mean():.2f} nats a row")
