"""Oracle of variational inference for mixtures: docs/mathematics.md, written for clarity, not for speed.

This file has mathematics 0 (the objective), 3.1 (top-L local step), 4.4 (pair gaps), 5.2 (divergence of k-means++) and
6 (predictive density). Likelihoods and processes (mathematics 1, 2 and 6.2) are in `models`, `gaussians`, `discrete`,
`sticks` and `missing`; 1.8 and 2g in `points` and `point_engine`; 4.1 to 4.3 and 5.3 in `engines`; sums over all
partitions in `evidence`. The formulas were verified against Monte Carlo, quadrature, enumeration and finite
differences; `tests/mathematics/test_oracles*.py` repeats the cheap checks.

Under a process with an infinite tail, responsibilities and scores have one column more, the last.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, xlogy

from oracles.models import (
    Array,
    FiniteSymmetricDirichlet,
    Likelihood,
    NormalWishart,
    Process,
    StickBreaking,
    ZeroMeanWishart,
    log_determinant,
)

__all__ = [
    "FiniteSymmetricDirichlet",
    "Globals",
    "NormalWishart",
    "Specification",
    "StickBreaking",
    "ZeroMeanWishart",
    "collapsed_elbo",
    "elbo_of_responsibilities",
    "entropies",
    "gaussian_kl",
    "general_elbo",
    "global_step",
    "kmeans_divergence",
    "local_scores",
    "local_step",
    "mixture_log_predictive",
    "pair_gaps",
    "top_l_responsibilities",
]


# ----------------------------------------------------------------------------------- local step and the bound
@dataclass(frozen=True)
class Globals:
    """q(phi) as one natural parameter a component and q(weights) as eta."""

    naturals: list[Array]
    eta: Array


@dataclass(frozen=True)
class Specification:
    """A likelihood and a process: a mixture."""

    likelihood: Likelihood
    process: Process


def top_l_responsibilities(scores: Array, sparsity: int | None = None) -> Array:
    """argmax of sum r W - r log r over simplex rows with at most `sparsity` non-zeros; ties to the lower index."""
    if sparsity is not None and sparsity < scores.shape[1]:
        keep = np.argsort(-scores, axis=1, kind="stable")[:, :sparsity]
        kept = np.full_like(scores, -np.inf)
        np.put_along_axis(kept, keep, np.take_along_axis(scores, keep, 1), 1)
        scores = kept
    return np.asarray(np.exp(scores - logsumexp(scores, axis=1, keepdims=True)))


def local_scores(rows: Array, mixture: Specification, state: Globals) -> Array:
    """W_nk = E log w_k + E log p(x_n | phi_k)."""
    tail = [mixture.likelihood.prior_natural] if mixture.process.has_tail else []
    naturals = [*state.naturals, *tail]
    expected = [mixture.likelihood.expected_log_likelihood(natural, rows) for natural in naturals]
    return np.asarray(mixture.process.expected_log_weights(state.eta) + np.column_stack(expected))


def local_step(rows: Array, mixture: Specification, state: Globals, sparsity: int | None = None) -> Array:
    """Optimal responsibilities with at most `sparsity` non-zeros a row."""
    return top_l_responsibilities(local_scores(rows, mixture, state), sparsity)


def global_step(rows: Array, responsibilities: Array, mixture: Specification, weights: Array | None = None) -> Globals:
    """Optimal globals given the responsibilities."""
    weighted = responsibilities if weights is None else responsibilities * weights[:, None]
    statistics = weighted.T @ mixture.likelihood.sufficient_statistics(rows)
    if mixture.process.has_tail:
        statistics = statistics[:-1]
    naturals = [mixture.likelihood.posterior(row) for row in statistics]
    return Globals(naturals, mixture.process.update(weighted.sum(0)))


def entropies(responsibilities: Array, weights: Array | None = None) -> Array:
    """H_k = -sum_n w_n r_nk log r_nk."""
    terms = -xlogy(responsibilities, responsibilities)
    return np.asarray(terms.sum(0) if weights is None else weights @ terms)


def pair_gaps(responsibilities: Array, weights: Array | None = None) -> Array:
    """G_ab = H_a + H_b - H_ab = sum_n w_n [p log(1 + q/p) + q log(1 + p/q)], 0 if p q = 0 (mathematics 4.4)."""
    weights = np.ones(len(responsibilities)) if weights is None else weights
    n_components = responsibilities.shape[1]
    gaps = np.zeros((n_components, n_components))
    for a, b in itertools.combinations(range(n_components), 2):
        p, q = responsibilities[:, a], responsibilities[:, b]
        shared = (p > 0) & (q > 0)
        p, q = p[shared], q[shared]
        gaps[a, b] = gaps[b, a] = weights[shared] @ (p * np.log1p(q / p) + q * np.log1p(p / q))
    return gaps


def general_elbo(
    rows: Array, responsibilities: Array, mixture: Specification, state: Globals, weights: Array | None = None
) -> float:
    """The bound for arbitrary, not necessarily optimal, factors (mathematics 0)."""
    weights = np.ones(len(rows)) if weights is None else weights
    scores = local_scores(rows, mixture, state)
    expected = (responsibilities * scores).sum(1) - xlogy(responsibilities, responsibilities).sum(1)
    kl = sum(mixture.likelihood.kl(natural) for natural in state.naturals) + mixture.process.kl(state.eta)
    return float(weights @ expected - kl)


def collapsed_elbo(rows: Array, responsibilities: Array, mixture: Specification, weights: Array | None = None) -> float:
    """The bound at the optimal globals, from counts, statistics and entropies (mathematics 0, and 2c for the tail)."""
    weights = np.ones(len(rows)) if weights is None else weights
    likelihood, weighted = mixture.likelihood, responsibilities * weights[:, None]
    statistics, constants = weighted.T @ likelihood.sufficient_statistics(rows), likelihood.log_base_measure(rows)
    data, explained = float(weights @ constants), len(statistics)
    if mixture.process.has_tail:
        explained -= 1
        tail = weighted[:, -1]
        expected = likelihood.expected_log_likelihood(likelihood.prior_natural, rows)
        data += float(tail @ (expected - constants))
    data += sum(likelihood.gain(row) for row in statistics[:explained])
    entropy = entropies(responsibilities, weights).sum()
    return float(data + mixture.process.collapsed(weighted.sum(0)) + entropy)


def elbo_of_responsibilities(
    rows: Array, responsibilities: Array, mixture: Specification, weights: Array | None = None
) -> float:
    """The bound after one global step from the given responsibilities."""
    state = global_step(rows, responsibilities, mixture, weights)
    return general_elbo(rows, responsibilities, mixture, state, weights)


# ------------------------------------------------------------------------------------- starts and predictions
def kmeans_divergence(rows: Array, likelihood: NormalWishart | ZeroMeanWishart, naturals: Sequence[Array]) -> Array:
    """D(x_n, centre_j), shape (n, J): KL(N_n || N_j) between smoothed plug-in Gaussians, or with a free mean half the
    squared distance from the mean of the centre's rows, in units of the prior's scale (mathematics 5.2).
    """
    if isinstance(likelihood, NormalWishart):
        statistics = np.array([natural - likelihood.prior_natural for natural in naturals])
        means = statistics[:, 2 : 2 + rows.shape[1]] / statistics[:, 1:2]
        squares = np.diag(likelihood.decode(likelihood.prior_natural)[3])
        return np.asarray(0.5 * ((rows[:, None] - means) ** 2 / squares).sum(axis=2))
    points = [likelihood.plug_in_moments(likelihood.prior_natural + t) for t in likelihood.sufficient_statistics(rows)]
    centres = [likelihood.plug_in_moments(natural) for natural in naturals]
    return np.array([[gaussian_kl(*point, *centre) for centre in centres] for point in points])


def gaussian_kl(mean: Array, covariance: Array, other_mean: Array, other_covariance: Array) -> float:
    """KL(N(mean, covariance) || N(other_mean, other_covariance))."""
    shift = other_mean - mean
    solved = np.linalg.solve(other_covariance, np.column_stack([covariance, shift]))
    log_ratio = log_determinant(other_covariance) - log_determinant(covariance)
    return float(0.5 * (np.trace(solved[:, :-1]) + log_ratio - len(mean) + shift @ solved[:, -1]))


def mixture_log_predictive(rows: Array, mixture: Specification, state: Globals) -> Array:
    """log of sum_k E[w_k] p(x | lambda_k) + E[w_rest] p(x | lambda_0) (mathematics 6)."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.process.expected_weights(state.eta))
    naturals = [*state.naturals, mixture.likelihood.prior_natural]
    densities = np.column_stack([mixture.likelihood.log_predictive(natural, rows) for natural in naturals])
    return np.asarray(logsumexp(log_weights + densities, axis=1))
