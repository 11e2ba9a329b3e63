"""Mixtures and topic models as scikit-learn estimators, for pipelines, grid searches and tables with named columns.

They need the package scikit-learn: ``pip install 'stickbreak[sklearn]'``.

>>> import numpy as np
>>> from sklearn.pipeline import make_pipeline
>>> from sklearn.preprocessing import StandardScaler
>>> from stickbreak.sklearn import BayesianMixture
>>> rng = np.random.default_rng(0)
>>> X = np.concatenate([rng.normal(-5, 1, size=(100, 2)), rng.normal(5, 1, size=(100, 2))])
>>> pipeline = make_pipeline(StandardScaler(), BayesianMixture(random_state=0))
>>> pipeline.fit(X).predict(X).shape
(200,)
"""

try:
    from sklearn.utils.validation import validate_data as _validate_data  # noqa: F401
except ImportError as error:
    raise ImportError(
        "stickbreak.sklearn needs the package scikit-learn, 1.6 or newer: pip install 'stickbreak[sklearn]'"
    ) from error

from stickbreak.sklearn.mixture import BayesianMixture
from stickbreak.sklearn.topics import TopicModel

__all__ = ["BayesianMixture", "TopicModel"]
