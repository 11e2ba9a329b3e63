"""
How clusters nest: a hierarchy
==============================

A hierarchy is a binary tree over the rows. For each node, the mixture model gives the probability that its rows are one
cluster.
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
# In the dendrogram, a high join means that its rows are probably not one cluster.
figure, ax = plt.subplots(figsize=(11, 4), layout="constrained")
sb.plot.dendrogram(tree, ax=ax)
ax.set_yscale("symlog", linthresh=0.01)
plt.show()

# %%
# ``cut`` returns labels. The clusters of ``"bhc"`` are the highest nodes whose rows are more probably one cluster than
# not. ``"map"`` is the most probable of all partitions that follow the tree.
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
# ``insert`` returns a larger tree; the old one does not change. The new flower is in the cluster of the first one:
larger = tree.insert([[5.0, 3.4, 1.5, 0.2]])
labels = larger.cut()
print(labels[-1] == labels[0])
