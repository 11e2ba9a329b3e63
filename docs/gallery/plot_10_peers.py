"""
Beside other libraries
======================

Five data sets, four methods with their usual settings. None of the methods is told the number of clusters, except that
scikit-learn's Bayesian mixture gets an upper limit.
"""

# %%
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.cluster import HDBSCAN
from sklearn.datasets import load_iris, load_wine, make_circles
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

import stickbreak as sb

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)


def blobs(n_clusters: int, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return Gaussian clusters of unequal size and shape, and their labels."""
    labels = rng.choice(
        n_clusters, size=n_rows, p=rng.dirichlet(np.full(n_clusters, 3.0))
    )
    centres = rng.uniform(-12, 12, size=(n_clusters, 2))
    shapes = rng.normal(scale=0.5, size=(n_clusters, 2, 2)) + 0.5 * np.eye(2)
    return centres[labels] + np.einsum(
        "nij,nj->ni", shapes[labels], rng.normal(size=(n_rows, 2))
    ), labels


sets = {
    "iris": load_iris(return_X_y=True),
    "wine": load_wine(return_X_y=True),
    "12 clusters": blobs(12, 1500),
    "40 clusters": blobs(40, 4000),
    "two rings": make_circles(1000, factor=0.4, noise=0.05, random_state=0),
}

# %%
# The methods
# -----------


def by_bic(X: np.ndarray) -> np.ndarray:
    """Return the labels of the Gaussian mixture with the lowest BIC."""
    most = min(16, len(X) // (X.shape[1] + 1))
    fits = [
        GaussianMixture(k, random_state=0, reg_covar=1e-4).fit(X)
        for k in range(1, most + 1)
    ]
    return min(fits, key=lambda fit: fit.bic(X)).predict(X)


methods = {
    "stickbreak": lambda X: sb.fit(
        sb.Mixture(likelihood=sb.Gaussian()), X, progress=False
    ).predict(X),
    "BayesianGaussianMixture(20)": lambda X: BayesianGaussianMixture(
        n_components=20, random_state=0, max_iter=200
    ).fit_predict(X),
    "GaussianMixture, K by BIC": by_bic,
    "HDBSCAN": lambda X: HDBSCAN(copy=True).fit_predict(X),
}
results = []
found = {}
for name, (X, labels) in sets.items():
    for method, run in methods.items():
        started = time.process_time()
        found[name, method] = run(X)
        results.append(
            {
                "data": name,
                "method": method,
                "clusters": len(set(found[name, method]) - {-1}),
                "ARI": adjusted_rand_score(labels, found[name, method]),
                "CPU seconds": time.process_time() - started,
            }
        )
table = pd.DataFrame(results)

# %%
# Agreement with the true labels
# ------------------------------
table.pivot(index="data", columns="method", values="ARI").loc[list(sets)].round(2)

# %%
# Number of clusters
# ------------------
table.pivot(index="data", columns="method", values="clusters").loc[list(sets)]

# %%
# CPU seconds
# -----------
table.pivot(index="data", columns="method", values="CPU seconds").loc[list(sets)].round(2)

# %%
# Pictures
# --------
# Gaussian methods cut a ring into pieces, which is what they are for. Use HDBSCAN for such clusters.
figure, axes = plt.subplots(2, 4, figsize=(14, 7), layout="constrained")
for row, name in zip(axes, ("12 clusters", "two rings"), strict=True):
    for ax, method in zip(row, methods, strict=True):
        ax.scatter(*sets[name][0].T, c=found[name, method], s=4, cmap="tab20")
        ax.set(title=method if name == "12 clusters" else "", xticks=[], yticks=[])
    row[0].set_ylabel(name)
plt.show()

# %%
# More sets, held-out densities and time: the benches in the repository.
