"""Pictures of fits, topics, traces and hierarchies, with matplotlib: ``pip install "stickbreak[plot]"``.

Every function draws into the given Axes, or into new ones, and returns them.

>>> import numpy as np
>>> import stickbreak as sb
>>> centres = np.repeat([[-5.0, 0.0], [5.0, 0.0]], 100, axis=0)
>>> X = np.random.default_rng(0).normal(centres)
>>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
>>> sb.plot.clusters(fit, X).get_xlabel()
'column 0'
"""

from stickbreak.plot.chains import autocorrelation, chains, cluster_numbers, similarity
from stickbreak.plot.components import card, means, profiles
from stickbreak.plot.densities import density
from stickbreak.plot.passes import bound, n_components
from stickbreak.plot.rows import clusters, responsibilities
from stickbreak.plot.trees import dendrogram
from stickbreak.plot.words import topic, topics

__all__ = [
    "autocorrelation",
    "bound",
    "card",
    "chains",
    "cluster_numbers",
    "clusters",
    "dendrogram",
    "density",
    "means",
    "n_components",
    "profiles",
    "responsibilities",
    "similarity",
    "topic",
    "topics",
]
