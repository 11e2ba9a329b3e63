"""The estimators of scikit-learn that `structure.py` is beside, each on one thread."""

import warnings
from collections.abc import Iterator
from typing import TypeVar

import numpy as np
import threadpoolctl
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp
from sklearn.cluster import HDBSCAN
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Mixture = TypeVar("Mixture", GaussianMixture, BayesianGaussianMixture)
# The number of components is chosen by BIC on at most this many rows, with at most this many components.
ROWS_OF_BIC = 5000
MAX_COMPONENTS = 300
# The search ends after this many numbers of components in a row that have no lower BIC.
PATIENCE = 8
# Gaussian mixtures have three k-means starts up to this many rows, one above.
ROWS_OF_THREE_STARTS = 2000
# HDBSCAN compares all pairs of rows, so it is given at most this many.
ROWS_OF_HDBSCAN = 20_000


def sample(rows: Array, size: int) -> NDArray[np.intp]:
    """Pick `size` rows at random, or all if there are fewer; return their indices."""
    if len(rows) <= size:
        return np.arange(len(rows))
    return np.sort(np.random.default_rng(0).choice(len(rows), size=size, replace=False))


def fitted(mixture: Mixture, rows: Array) -> Mixture | None:
    """None where a covariance is singular."""
    with warnings.catch_warnings(), threadpoolctl.threadpool_limits(1):
        warnings.simplefilter("ignore")
        try:
            return mixture.fit(rows)
        except ValueError:
            return None


def gaussian_mixture(rows: Array, n_components: int) -> GaussianMixture | None:
    starts = 3 if len(rows) <= ROWS_OF_THREE_STARTS else 1
    return fitted(GaussianMixture(n_components, n_init=starts, random_state=0), rows)


def candidates(limit: int) -> Iterator[int]:
    """All numbers to 20, then steps of a tenth."""
    k = 1
    while k <= limit:
        yield k
        k = k + 1 if k < 20 else int(1.1 * k)


def number_by_bic(rows: Array) -> int:
    """The number of components of the lowest BIC; components have at least D + 1 rows on average.

    The candidates between the neighbours of the best one are tried too, at most ten of them.
    """
    rows = rows[sample(rows, ROWS_OF_BIC)]
    found: dict[int, float] = {}

    def bic(k: int) -> None:
        mixture = gaussian_mixture(rows, k)
        found[k] = np.inf if mixture is None else mixture.bic(rows)

    for k in candidates(min(MAX_COMPONENTS, max(1, len(rows) // (rows.shape[1] + 1)))):
        bic(k)
        if list(found).index(min(found, key=found.__getitem__)) + PATIENCE < len(found):
            break
    tried = list(found)
    best = tried.index(min(found, key=found.__getitem__))
    between = np.arange(tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)] + 1)
    between = between[~np.isin(between, tried)]
    for k in between[np.linspace(0, len(between) - 1, min(10, len(between))).astype(int)]:
        bic(int(k))
    return min(found, key=found.__getitem__)


def bayesian_mixture(rows: Array, n_components: int = 30) -> BayesianGaussianMixture | None:
    n_components = min(n_components, len(rows))
    return fitted(BayesianGaussianMixture(n_components=n_components, random_state=0), rows)


def log_predictive(mixture: BayesianGaussianMixture, rows: Array) -> Array:
    """The log posterior predictive density, a mixture of Student t densities.

    `score_samples` is no log density: it holds the expected log densities of the components.
    """
    dimension = rows.shape[1]
    dof = mixture.degrees_of_freedom_ - dimension + 1
    inflation = (1 + 1 / mixture.mean_precision_) / dof * mixture.degrees_of_freedom_
    # The inverse of `precisions_cholesky_` is the transposed factor of the covariance.
    factors = np.sqrt(inflation)[:, None, None] * np.linalg.inv(mixture.precisions_cholesky_).transpose(0, 2, 1)
    terms = np.empty((len(dof), len(rows)))
    for term, weight, mean, nu, factor in zip(terms, mixture.weights_, mixture.means_, dof, factors, strict=True):
        distances = (solve_triangular(factor, (rows - mean).T, lower=True) ** 2).sum(axis=0)
        constant = gammaln((nu + dimension) / 2) - gammaln(nu / 2) - dimension / 2 * np.log(np.pi * nu)
        constant += np.log(max(weight, 1e-300)) - np.log(np.diag(factor)).sum()
        term[:] = constant - (nu + dimension) / 2 * np.log1p(distances / nu)
    return logsumexp(terms, axis=0)


def hdbscan_labels(rows: Array) -> Labels:
    """-1 is noise."""
    with threadpoolctl.threadpool_limits(1):
        return HDBSCAN(copy=True).fit_predict(rows)
