"""
How births and merges find the number of clusters
=================================================

The fit starts from one component. Births split components; merges and deletes remove superfluous ones. This page looks
at a run pass by pass.
"""

# %%
# 25 clusters of 100 to 2000 rows.
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import stickbreak as sb

rng = np.random.default_rng(0)
corners = 12.0 * np.stack(np.meshgrid(np.arange(5), np.arange(5)), axis=-1).reshape(25, 2)
sizes = np.geomspace(100, 2000, 25).round().astype(int)
X = rng.normal(np.repeat(corners, sizes, axis=0), 2.0)
X.shape

# %%
fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X, progress=False)
figure, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
sb.plot.n_components(fit, ax=axes[0])
sb.plot.bound(fit, ax=axes[1])
sb.plot.clusters(fit, X, ax=axes[2]).get_legend().remove()
plt.show()

# %%
# ``history`` has a record for every pass: what each move proposed, and what was accepted.
pd.DataFrame(
    [
        {
            "pass": record.index + 1,
            "move": move.kind,
            "proposed": move.proposed,
            "accepted": move.accepted,
        }
        for record in fit.history
        for move in record.moves
        if move.proposed
    ]
)

# %%
# With the number given
# ---------------------
# A fit of 25 components that starts from random rows often has two of them in one cluster. Then two other clusters
# share one component, and the bound is lower.
model = sb.Mixture(likelihood=sb.Gaussian())
settings = {"n_components": 25, "init": "random", "progress": False}
given = [
    sb.fit(model, X, sb.Memoized(tol=1e-4), seed=seed, **settings) for seed in range(4)
]
pd.DataFrame(
    {
        "ELBO below the moves, nats": [fit.elbo - each.elbo for each in given],
        "components in use": [each.n_occupied for each in given],
    }
).round(1)
