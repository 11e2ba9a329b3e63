"""Covariances and their inverses, in the form of scikit-learn's mixtures."""

import numpy as np
from numpy.typing import NDArray

from stickbreak.result.fit import Fit


def covariances(fit: Fit) -> NDArray[np.float64]:
    """Return covariances (K, D, D), variances of independent columns (K, D), or one variance for all columns (K,).

    Raises
    ------
    AttributeError
        The components have no covariances.
    """
    found = fit.point_estimates
    for name in ("covariance", "variance"):
        # Likelihoods of counts have rates, but no separate variances.
        if name in found:
            return np.asarray(found[name])
    likelihood = fit.model.likelihood
    known = getattr(likelihood, "covariance", None)
    if known is None:
        raise AttributeError(f"the components of a {type(likelihood).__name__} have no covariances")
    return np.broadcast_to(known, (fit.n_components, *known.shape))


def precisions(fit: Fit) -> NDArray[np.float64]:
    """Return the inverses of the covariances, in the same shapes."""
    factors = precisions_cholesky(fit)
    return factors @ factors.transpose(0, 2, 1) if factors.ndim == 3 else factors**2


def precisions_cholesky(fit: Fit) -> NDArray[np.float64]:
    """Return upper triangular matrices U with U U^T the precision, or reciprocals of standard deviations.

    Raises
    ------
    AttributeError
        The components have no covariances, or singular ones.
    """
    found = covariances(fit)
    if any(fit._state.lost_columns):
        raise AttributeError("covariances are singular: fit_.support has the columns that the model does not see")
    if found.ndim < 3:
        return np.asarray(found**-0.5)
    lower = np.linalg.cholesky(found)
    return np.linalg.solve(lower, np.broadcast_to(np.eye(found.shape[1]), found.shape)).transpose(0, 2, 1)
