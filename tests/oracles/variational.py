"""Oracle of variational inference for mixtures: the specification's formulas, written for clarity, not for speed.

It is a port of the checking program that accompanies the specification of the variational side, as far as the
engine reaches: sections 0 (the objective), 3.1 (top-L local step), 4.1, 4.3 and 4.4 (full and memoized engine, pair
gaps), 5.2 (divergence of k-means++) and 6 (predictive density) here, 1a, 1b, 2a and 2d in `models`. The formulas
there were verified against Monte Carlo, quadrature, enumeration and finite differences; `tests/test_oracles.py`
repeats the cheap ones.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, xlogy

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
    "Memo",
    "NormalWishart",
    "Specification",
    "StickBreaking",
    "ZeroMeanWishart",
    "collapsed_elbo",
    "elbo_of_responsibilities",
    "entropies",
    "fit_full",
    "gaussian_kl",
    "general_elbo",
    "global_step",
    "kmeans_divergence",
    "local_scores",
    "local_step",
    "log_evidence_dirichlet_process",
    "log_evidence_finite",
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
    expected = [mixture.likelihood.expected_log_likelihood(natural, rows) for natural in state.naturals]
    return np.asarray(mixture.process.expected_log_weights(state.eta) + np.column_stack(expected))


def local_step(rows: Array, mixture: Specification, state: Globals, sparsity: int | None = None) -> Array:
    """Optimal responsibilities with at most `sparsity` non-zeros a row."""
    return top_l_responsibilities(local_scores(rows, mixture, state), sparsity)


def global_step(rows: Array, responsibilities: Array, mixture: Specification, weights: Array | None = None) -> Globals:
    """Optimal globals given the responsibilities."""
    weighted = responsibilities if weights is None else responsibilities * weights[:, None]
    statistics = weighted.T @ mixture.likelihood.sufficient_statistics(rows)
    naturals = [mixture.likelihood.prior_natural + own for own in statistics]
    return Globals(naturals, mixture.process.update(weighted.sum(0)))


def entropies(responsibilities: Array, weights: Array | None = None) -> Array:
    """H_k = -sum_n w_n r_nk log r_nk."""
    terms = -xlogy(responsibilities, responsibilities)
    return np.asarray(terms.sum(0) if weights is None else weights @ terms)


def pair_gaps(responsibilities: Array, weights: Array | None = None) -> Array:
    """G_ab = H_a + H_b - H_ab = sum_n w_n [p log(1 + q/p) + q log(1 + p/q)], zero wherever p q = 0 (spec 4.4)."""
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
    """The bound for arbitrary, not necessarily optimal, factors (spec 0)."""
    weights = np.ones(len(rows)) if weights is None else weights
    scores = local_scores(rows, mixture, state)
    expected = (responsibilities * scores).sum(1) - xlogy(responsibilities, responsibilities).sum(1)
    kl = sum(mixture.likelihood.kl(natural) for natural in state.naturals) + mixture.process.kl(state.eta)
    return float(weights @ expected - kl)


def collapsed_elbo(
    statistics: Array, counts: Array, entropy: Array, log_base_measure: float, mixture: Specification
) -> float:
    """The bound at the optimal globals, from summaries only (spec 0)."""
    likelihood = mixture.likelihood
    prior = likelihood.log_normaliser(likelihood.prior_natural)
    data = sum(likelihood.log_normaliser(likelihood.prior_natural + own) - prior for own in statistics)
    return float(data + log_base_measure + mixture.process.collapsed(counts) + entropy.sum())


def elbo_of_responsibilities(
    rows: Array, responsibilities: Array, mixture: Specification, weights: Array | None = None
) -> float:
    """The bound after one global step from the given responsibilities."""
    state = global_step(rows, responsibilities, mixture, weights)
    return general_elbo(rows, responsibilities, mixture, state, weights)


# ------------------------------------------------------------------------------------------------- engines
@dataclass(frozen=True)
class Pass:
    """What one pass leaves behind: the globals, the responsibilities behind them, and the bound of both."""

    state: Globals
    responsibilities: Array
    elbo: float


def fit_full(
    rows: Array,
    responsibilities: Array,
    mixture: Specification,
    passes: int,
    sparsity: int | None = None,
    weights: Array | None = None,
) -> list[Pass]:
    """Full variational inference (spec 4.1); entry 0 is the state after the first global step."""
    state = global_step(rows, responsibilities, mixture, weights)
    trajectory = [Pass(state, responsibilities, general_elbo(rows, responsibilities, mixture, state, weights))]
    for _ in range(passes):
        responsibilities = local_step(rows, mixture, state, sparsity)
        state = global_step(rows, responsibilities, mixture, weights)
        trajectory.append(Pass(state, responsibilities, general_elbo(rows, responsibilities, mixture, state, weights)))
    return trajectory


class Memo:
    """Memoized inference over fixed batches (spec 4.3), from responsibilities of all rows, which every batch remembers
    until its first visit.
    """

    def __init__(
        self,
        rows: Array,
        responsibilities: Array,
        mixture: Specification,
        batches: Sequence[NDArray[np.intp]],
        sparsity: int | None = None,
    ) -> None:
        self.rows, self.mixture, self.batches, self.sparsity = rows, mixture, batches, sparsity
        self.responsibilities = [responsibilities[batch] for batch in batches]
        shape = len(batches), responsibilities.shape[1]
        self.statistics = np.zeros((*shape, len(mixture.likelihood.prior_natural)))
        self.counts, self.entropy = np.zeros(shape), np.zeros(shape)
        for batch_index, own in enumerate(self.responsibilities):
            self.remember(batch_index, own)

    @property
    def state(self) -> Globals:
        """The optimal globals for what is remembered."""
        naturals = [self.mixture.likelihood.prior_natural + own for own in self.statistics.sum(0)]
        return Globals(naturals, self.mixture.process.update(self.counts.sum(0)))

    def visit(self, batch_index: int) -> None:
        """Local step on one batch at the current globals; its summary is replaced."""
        rows = self.rows[self.batches[batch_index]]
        self.remember(batch_index, local_step(rows, self.mixture, self.state, self.sparsity))

    def remember(self, batch_index: int, responsibilities: Array) -> None:
        """Put the summary of these responsibilities in the place of the batch's old one."""
        statistics = self.mixture.likelihood.sufficient_statistics(self.rows[self.batches[batch_index]])
        self.responsibilities[batch_index] = responsibilities
        self.statistics[batch_index] = responsibilities.T @ statistics
        self.counts[batch_index] = responsibilities.sum(0)
        self.entropy[batch_index] = entropies(responsibilities)

    def elbo(self) -> float:
        """The bound from the summaries, exact after every visit."""
        constant = float(self.mixture.likelihood.log_base_measure(self.rows).sum())
        totals = self.statistics.sum(0), self.counts.sum(0), self.entropy.sum(0)
        return collapsed_elbo(*totals, constant, self.mixture)


def kmeans_divergence(rows: Array, likelihood: Likelihood, naturals: Sequence[Array]) -> Array:
    """D(x_n, centre_j), shape (n, J): KL(N_n || N_j) between smoothed plug-in Gaussians (spec 5.2)."""
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
    """log of sum_k E[w_k] p(x | lambda_k) + E[w_rest] p(x | lambda_0) (spec 6)."""
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.process.expected_weights(state.eta))
    naturals = [*state.naturals, mixture.likelihood.prior_natural]
    densities = np.column_stack([mixture.likelihood.log_predictive(natural, rows) for natural in naturals])
    return np.asarray(logsumexp(log_weights + densities, axis=1))


# ---------------------------------------------------------------------------------------- exact references
def set_partitions(n: int) -> Iterator[list[int]]:
    """All partitions of n items as restricted-growth strings."""

    def extend(prefix: list[int], n_blocks: int) -> Iterator[list[int]]:
        if len(prefix) == n:
            yield prefix
            return
        for block in range(n_blocks + 1):
            yield from extend([*prefix, block], max(n_blocks, block + 1))

    yield from extend([0], 1)


def log_ewens(sizes: Sequence[int], concentration: float) -> float:
    """log probability of a partition under the Chinese restaurant process."""
    n = sum(sizes)
    gammas = sum(gammaln(size) for size in sizes) + gammaln(concentration) - gammaln(concentration + n)
    return float(len(sizes) * np.log(concentration) + gammas)


def log_evidence_dirichlet_process(rows: Array, likelihood: Likelihood, concentration: float) -> float:
    """Exact log p(X) of a Dirichlet-process mixture, by summing over all set partitions."""
    terms = []
    for partition in set_partitions(len(rows)):
        labels = np.array(partition)
        groups = [rows[labels == block] for block in range(labels.max() + 1)]
        marginal = sum(likelihood.log_marginal(group) for group in groups)
        terms.append(log_ewens([len(group) for group in groups], concentration) + marginal)
    return float(logsumexp(terms))


def log_evidence_finite(rows: Array, likelihood: Likelihood, concentration: float, n_components: int) -> float:
    """Exact log p(X) of a finite mixture, by summing over all labellings."""
    process = FiniteSymmetricDirichlet(concentration)
    terms = []
    for labels in itertools.product(range(n_components), repeat=len(rows)):
        assigned = np.array(labels)
        counts = np.bincount(assigned, minlength=n_components).astype(float)
        groups = [rows[assigned == k] for k in range(n_components) if counts[k] > 0]
        terms.append(process.collapsed(counts) + sum(likelihood.log_marginal(group) for group in groups))
    return float(logsumexp(terms))
