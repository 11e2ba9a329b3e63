"""
Few rows, many columns: the lesson of wine
==========================================

178 wines have 13 measurements each, and come from three growers. This page shows what matters when rows are few: the
scale of the prior, and the shape of the clusters.
"""

# %%
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.datasets import load_wine
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb

wine = load_wine(as_frame=True)
wine.data.describe().loc[["mean", "std"]].T

# %%
# Three models
# ------------
# ``prior="rule"`` takes the scale of a cluster from all rows. By default it is estimated from the clusters. A diagonal
# covariance has far fewer parameters: 13 instead of 91 a cluster.
models = {
    "full, rule": sb.Mixture(likelihood=sb.Gaussian(prior="rule")),
    "full, estimated": sb.Mixture(likelihood=sb.Gaussian()),
    "diagonal, estimated": sb.Mixture(likelihood=sb.DiagonalGaussian()),
}
fits = {name: sb.fit(model, wine.data, progress=False) for name, model in models.items()}
table = pd.DataFrame(
    {
        "clusters": {name: fit.n_occupied for name, fit in fits.items()},
        "agreement with the growers (ARI)": {
            name: adjusted_rand_score(wine.target, fit.predict(wine.data))
            for name, fit in fits.items()
        },
    }
)
table.round(2)

# %%
# The rule expects each cluster to be as wide as the whole table in all 13 columns. Sixty rows are too few to show
# otherwise, so two growers stay in one cluster. The diagonal model cannot follow columns that vary together, so it cuts
# clusters into pieces. With full covariances and an estimated prior, three clusters have nearly all wines.
for name, fit in fits.items():
    print(f"{name:20}", sorted(fit.counts.round().astype(int).tolist(), reverse=True))

# %%
# Which model should you believe without the growers? Cross-validation compares densities of rows held out; higher is
# better.
scores = sb.cross_validate(models, wine.data, folds=4)
scores.groupby("model")["log_predictive"].agg(["mean", "sem"]).round(2)

# %%
# Pictures
# --------
figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained")
for ax, (name, fit) in zip(axes, fits.items(), strict=True):
    sb.plot.clusters(fit, wine.data, columns=["flavanoids", "proline"], ax=ax)
    ax.set_title(name)
    ax.get_legend().remove()
plt.show()

# %%
# Clusters of a few wines are unusual wines. The advice says that such covariances rest on the prior more than on rows,
# and what to try.
for advice in fits["full, estimated"].advice():
    print(advice.kind, "|", advice)
