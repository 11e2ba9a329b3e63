"""
How clusters nest: a hierarchy
==============================

A hierarchy is a binary tree over rows under a mixture model. Each node has a probability that its rows are one cluster.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb

iris = load_iris(as_frame=True)
rows = iris.data.to_numpy()
model = sb.Mixture(likelihood=sb.Gaussian())
tree = sb.hierarchy(model, rows, "bhc")

# %%
# The dendrogram. A join is higher, the less probable it is that its rows are one cluster.
figure, ax = plt.subplots(figsize=(11, 4), layout="constrained")
sb.plot.dendrogram(tree, ax=ax)
ax.set_yscale("symlog", linthresh=0.01)
plt.show()

# %%
# ``cut`` gives labels. ``"map"`` is the most probable of all partitions that follow the tree.
for cut in ("bhc", "map"):
    labels = tree.cut(cut)
    print(
        cut,
        len(np.unique(labels)),
        "clusters, ARI",
        round(adjusted_rand_score(iris.target, labels), 2),
    )

# %%
# ``linkage`` is the table that SciPy's functions take.
tree.linkage[-3:]

# %%
# New rows are inserted one by one; the old tree does not change.
larger = tree.insert([[5.0, 3.4, 1.5, 0.2]])
print(larger.cut()[-1] == larger.cut()[0])
