"""The fitted attributes of scikit-learn's mixtures, computed from the fit."""

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from stickbreak.result.fit import Fit
from stickbreak.result.history import StopReason
from stickbreak.sklearn import gaussians
from stickbreak.sklearn.refusing import Refusing


class Attributes(Refusing):
    """Attributes of an estimator that stores its fit in `fit_`."""

    fit_: Fit

    @property
    def n_components_(self) -> int:
        """K, the number of components, including empty ones."""
        return self._fitted().n_components

    @property
    def weights_(self) -> NDArray[np.float64]:
        """Expected weights of the components relative to each other, shape (K,), with sum one.

        They are `Fit.weights` divided by their sum. `leftover_weight_` is the weight beyond the K components.
        """
        weights = self._fitted().weights
        return np.asarray(weights / weights.sum())

    @property
    def leftover_weight_(self) -> float:
        """Expected weight of all components beyond K: 0 if the process has K components only.

        With `Fit.weights` and `Fit.background_weight` it sums to one.
        """
        return self._fitted().leftover_weight

    @property
    def means_(self) -> NDArray[np.float64]:
        """Means of the components, shape (K, D), for Gaussians: posterior means or point estimates."""
        try:
            return np.asarray(self._fitted().point_estimates["mean"])
        except KeyError:
            likelihood = type(self.fit_.model.likelihood).__name__
            raise AttributeError(f"the components of a {likelihood} have no parameter `mean`") from None

    @property
    def covariances_(self) -> NDArray[np.float64]:
        """Covariances of the components, (K, D, D); for independent columns (K, D), for a single variance (K,)."""
        return gaussians.covariances(self._fitted())

    @property
    def precisions_(self) -> NDArray[np.float64]:
        """Inverses of `covariances_`, in the same shape."""
        return gaussians.precisions(self._fitted())

    @property
    def precisions_cholesky_(self) -> NDArray[np.float64]:
        """Upper triangular matrices U with ``precisions_ = U @ U.T``, or reciprocals of standard deviations."""
        return gaussians.precisions_cholesky(self._fitted())

    @property
    def lower_bounds_(self) -> NDArray[np.float64]:
        """The evidence lower bound after each pass, shape (`n_iter_`,), in nats of the whole data."""
        return np.array([record.elbo for record in self._fitted().history])

    @property
    def lower_bound_(self) -> float:
        """The evidence lower bound of the training data with all constants, in nats of the whole data."""
        return self._fitted().elbo

    @property
    def n_iter_(self) -> int:
        """Number of passes over the data."""
        return len(self._fitted().history)

    @property
    def converged_(self) -> bool:
        """Whether the fit ended because the bound rose by less than the tolerance; always False under `Stochastic`."""
        return self._fitted().stop_reason is StopReason.CONVERGED

    def _fitted(self) -> Fit:
        check_is_fitted(self)
        fitted: Fit = self.fit_
        return fitted
