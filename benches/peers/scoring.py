"""One score for the posteriors of all packages: the evidence lower bound after one local step, and held-out density.

A package hands in the parameters of its posterior and nothing else. Responsibilities follow from them by one dense
local step, so what a package counts, drops or rounds on its way does not matter here. Only NumPy and SciPy are used;
section numbers are those of docs/mathematics.md. All values are in nats, with all constants.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import betaln, digamma, gammaln, logsumexp, multigammaln

Array = NDArray[np.float64]
# Rows scored at a time.
PART = 10_000


@dataclass(frozen=True)
class Prior:
    """Normal-Wishart prior of a component, E[precision] = dof * inverse(scale), and Beta(1, concentration) sticks."""

    concentration: float
    mean: Array
    mean_precision: float
    dof: float
    scale: Array


@dataclass(frozen=True)
class Posterior:
    """Beta parameters of K sticks and Normal-Wishart parameters of K components, K first."""

    stick_on: Array
    stick_off: Array
    mean: Array
    mean_precision: Array
    dof: Array
    scale: Array

    @classmethod
    def load(cls, path: Path) -> "Posterior":
        with np.load(path, allow_pickle=False) as file:
            return cls(**{name: file[name] for name in cls.__dataclass_fields__})

    @property
    def counts(self) -> Array:
        """Expected number of rows of each component: what its stick has more than its prior."""
        return self.stick_on - 1


def elbo(rows: Array, posterior: Posterior, prior: Prior) -> float:
    """The bound of the nested truncation after a dense local step.

    With optimal responsibilities it is the sum of log sum_k exp(E log w_k + E log p(x_n | k)), less the divergences
    of components and sticks.
    """
    log_weights = expected_log_weights(posterior)
    factors = np.linalg.cholesky(posterior.scale)
    local = 0.0
    for distances in squared_distances(rows, posterior.mean, factors):
        local += float(logsumexp(log_weights + expected_log_density(distances, factors, posterior), axis=1).sum())
    return local - float(
        divergence_of_components(posterior, prior).sum() + divergence_of_sticks(posterior, prior).sum()
    )


def log_predictive(rows: Array, posterior: Posterior, prior: Prior) -> Array:
    """Log posterior predictive density: Student t of each component, and of the prior with the left-over weight."""
    expected = posterior.stick_on / (posterior.stick_on + posterior.stick_off)
    remaining = np.cumprod(1 - expected)
    weights = np.concatenate([expected * np.append(1.0, remaining[:-1]), remaining[-1:]])
    mean = np.concatenate([posterior.mean, prior.mean[None]])
    kappa = np.append(posterior.mean_precision, prior.mean_precision)
    dof = np.append(posterior.dof, prior.dof)
    factors = np.linalg.cholesky(np.concatenate([posterior.scale, prior.scale[None]]))
    dimension = rows.shape[1]
    constant = (
        gammaln((dof + 1) / 2)
        - gammaln((dof + 1 - dimension) / 2)
        + dimension / 2 * (np.log(kappa / (kappa + 1)) - np.log(np.pi))
        - log_determinant(factors) / 2
    )
    parts = [
        logsumexp(np.log(weights) + constant - (dof + 1) / 2 * np.log1p(kappa / (kappa + 1) * distances), axis=1)
        for distances in squared_distances(rows, mean, factors)
    ]
    return np.concatenate(parts)


def squared_distances(rows: Array, means: Array, factors: Array) -> Iterator[Array]:
    """(x - m_k)' inverse(B_k) (x - m_k) of some rows at a time, shape (rows, K)."""
    for begin in range(0, len(rows), PART):
        part = rows[begin : begin + PART].astype(np.float64)
        pairs = zip(means, factors, strict=True)
        columns = [(solve_triangular(factor, (part - mean).T, lower=True) ** 2).sum(axis=0) for mean, factor in pairs]
        yield np.stack(columns, axis=1)


def expected_log_weights(posterior: Posterior) -> Array:
    """E log w_k of the sticks (2a)."""
    both = digamma(posterior.stick_on + posterior.stick_off)
    log_rest = np.cumsum(digamma(posterior.stick_off) - both)
    return digamma(posterior.stick_on) - both + np.append(0.0, log_rest[:-1])


def expected_log_density(distances: Array, factors: Array, posterior: Posterior) -> Array:
    """E log p(x | k) from the squared distances (1a)."""
    dimension = factors.shape[-1]
    constant = (
        expected_log_determinant(posterior.dof, factors)
        - dimension * np.log(2 * np.pi)
        - dimension / posterior.mean_precision
    )
    return (constant - posterior.dof * distances) / 2


def expected_log_determinant(dof: Array, factors: Array) -> Array:
    """E log of the determinant of the precision (1a)."""
    dimension = factors.shape[-1]
    halves = digamma((dof[:, None] - np.arange(dimension)) / 2).sum(axis=1)
    return halves + dimension * np.log(2) - log_determinant(factors)


def log_determinant(factors: Array) -> Array:
    return 2 * np.log(np.diagonal(factors, axis1=-2, axis2=-1)).sum(axis=-1)


def divergence_of_components(posterior: Posterior, prior: Prior) -> Array:
    """KL(q || p) of each Normal-Wishart (1a)."""
    dimension = len(prior.mean)
    factors = np.linalg.cholesky(posterior.scale)
    ratio = prior.mean_precision / posterior.mean_precision
    dof = posterior.dof
    shifts = np.array(
        [
            (solve_triangular(factor, mean - prior.mean, lower=True) ** 2).sum()
            for factor, mean in zip(factors, posterior.mean, strict=True)
        ]
    )
    traces = np.trace(np.linalg.solve(posterior.scale, prior.scale[None]), axis1=1, axis2=2)
    of_means = dimension / 2 * (ratio - 1 - np.log(ratio)) + prior.mean_precision * dof / 2 * shifts
    of_precisions = (
        (dof - prior.dof) / 2 * expected_log_determinant(dof, factors)
        - dof / 2 * (dimension - traces)
        + log_normaliser(np.atleast_1d(prior.dof), np.linalg.cholesky(prior.scale)[None])
        - log_normaliser(dof, factors)
    )
    return of_means + of_precisions


def log_normaliser(dof: Array, factors: Array) -> Array:
    """Of a Wishart distribution (1b)."""
    dimension = factors.shape[-1]
    gammas = np.array([multigammaln(value / 2, dimension) for value in dof])
    return gammas + dof * dimension / 2 * np.log(2) - dof / 2 * log_determinant(factors)


def divergence_of_sticks(posterior: Posterior, prior: Prior) -> Array:
    """KL(q || p) of each Beta (2a)."""
    on, off = posterior.stick_on, posterior.stick_off
    both = digamma(on + off)
    return (
        betaln(1.0, prior.concentration)
        - betaln(on, off)
        + (on - 1) * (digamma(on) - both)
        + (off - prior.concentration) * (digamma(off) - both)
    )
