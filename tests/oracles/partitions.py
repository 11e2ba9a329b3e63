"""Exact posteriors of partitions of a few rows: every partition, its prior probability and its marginal likelihoods."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import poisson

from oracles.models import Likelihood


def set_partitions(n):
    """Return the labels of all partitions of n rows, by first appearance, as tuples."""
    found = [()]
    for _ in range(n):
        found = [(*labels, label) for labels in found for label in range(max(labels, default=-1) + 2)]
    return found


def sizes_of_partitions(n, most=None):
    """Return the sizes of blocks, in falling order, that partitions of n rows can have."""
    if n == 0:
        return [()]
    firsts = range(min(n, most or n), 0, -1)
    return [(first, *others) for first in firsts for others in sizes_of_partitions(n - first, first)]


def draw_partition(log_prior, n, rng):
    """Draw the labels of n rows from a law of partitions that depends on the sizes of blocks alone."""
    all_sizes = sizes_of_partitions(n)
    log_p = [
        # As many partitions have these sizes.
        gammaln(n + 1) - sum(gammaln(np.add(sizes, 1))) - sum(gammaln(m + 1) for m in Counter(sizes).values())
        + log_prior(list(sizes))
        for sizes in all_sizes
    ]  # fmt: skip
    sizes = all_sizes[rng.choice(len(all_sizes), p=np.exp(log_p) / np.exp(log_p).sum())]
    return np.array(canonical(rng.permutation(np.repeat(np.arange(len(sizes)), sizes)).tolist()))


def canonical(labels):
    """Return labels from 0, by first appearance, as a tuple."""
    numbers = {}
    return tuple(numbers.setdefault(label, len(numbers)) for label in labels)


@dataclass(frozen=True)
class GaussianMarginal:
    """mu | L ~ N(m, (r L)^-1), L ~ W(Psi^-1, nu)."""

    m: np.ndarray
    r: float
    nu: float
    psi: np.ndarray

    def log_m(self, rows):
        (n, d), centre = rows.shape, rows.mean(0)
        away = centre - self.m
        scale = self.psi + (rows - centre).T @ (rows - centre) + self.r * n / (self.r + n) * np.outer(away, away)

        def normalizer(x):
            return d * (d - 1) / 4 * np.log(np.pi) + sum(gammaln(x - j / 2) for j in range(d))

        log_det = [np.linalg.slogdet(matrix)[1] for matrix in (self.psi, scale)]
        half = self.nu / 2, (self.nu + n) / 2
        return (
            -n * d / 2 * np.log(np.pi)
            + d / 2 * np.log(self.r / (self.r + n))
            + half[0] * log_det[0]
            - half[1] * log_det[1]
            + normalizer(half[1])
            - normalizer(half[0])
        )

    def draw(self, labels, rng):
        """Draw rows given their clusters, with parameters from the base measure (Bartlett's decomposition)."""
        d, rows = len(self.m), np.empty((len(labels), len(self.m)))
        root = np.linalg.cholesky(np.linalg.inv(self.psi))
        for label in np.unique(labels):
            bartlett = np.tril(rng.normal(size=(d, d)), -1) + np.diag(np.sqrt(rng.chisquare(self.nu - np.arange(d))))
            spread = np.linalg.inv((root @ bartlett).T)
            mean = self.m + spread @ rng.normal(size=d) / np.sqrt(self.r)
            members = labels == label
            rows[members] = mean + rng.normal(size=(members.sum(), d)) @ spread.T
        return rows


@dataclass(frozen=True)
class MultinomialMarginal:
    """Counts with theta ~ Dirichlet(beta), multinomial coefficients included."""

    beta: np.ndarray

    def log_m(self, rows):
        total, coefficient = rows.sum(0), gammaln(rows.sum(1) + 1) - gammaln(rows + 1).sum(1)
        words = (gammaln(self.beta + total) - gammaln(self.beta)).sum()
        return coefficient.sum() + gammaln(self.beta.sum()) - gammaln(self.beta.sum() + total.sum()) + words


@dataclass(frozen=True)
class ConjugateMarginal:
    """The marginal likelihood of any conjugate family: the ratio of two of its normalisers."""

    likelihood: Likelihood

    def log_m(self, rows):
        prior = self.likelihood.prior_natural
        posterior = prior + self.likelihood.sufficient_statistics(rows).sum(0)
        base = self.likelihood.log_base_measure(rows).sum()
        return self.likelihood.log_normaliser(posterior) - self.likelihood.log_normaliser(prior) + base


def dirichlet(alpha):
    """Return the log probability of a partition by its sizes under a Dirichlet process."""

    def log_p(sizes):
        n = sum(sizes)
        return len(sizes) * np.log(alpha) + gammaln(alpha) - gammaln(alpha + n) + sum(map(gammaln, sizes))

    return log_p


def pitman_yor(d, alpha):
    """Return the same under a Pitman-Yor process."""

    def log_p(sizes):
        opened = sum(np.log(alpha + i * d) for i in range(1, len(sizes)))
        rest = gammaln(alpha + 1) - gammaln(alpha + sum(sizes))
        return opened + rest + sum(gammaln(n - d) - gammaln(1 - d) for n in sizes)

    return log_p


def finite(k, alpha):
    """Return the same under a finite Dirichlet of k components and total mass alpha, labels summed out."""

    def log_p(sizes):
        if len(sizes) > k:
            return -np.inf
        labels = gammaln(k + 1) - gammaln(k - len(sizes) + 1)
        rest = gammaln(alpha) - gammaln(alpha + sum(sizes))
        return labels + rest + sum(gammaln(alpha / k + n) - gammaln(alpha / k) for n in sizes)

    return log_p


def finite_mixtures(gamma, rate):
    """Return the same under a mixture of finite mixtures: gamma for each of K components, K - 1 ~ Poisson(rate)."""
    every = np.arange(1, 500)
    log_weights = poisson.logpmf(every - 1, rate)

    @cache
    def log_v(n, t):
        k = every[t - 1 :]
        terms = gammaln(k + 1) - gammaln(k - t + 1) + gammaln(gamma * k) - gammaln(gamma * k + n)
        return logsumexp(terms + log_weights[t - 1 :])

    def log_p(sizes):
        return log_v(sum(sizes), len(sizes)) + sum(gammaln(gamma + n) - gammaln(gamma) for n in sizes)

    return log_p


def generalized_gamma(a, sigma):
    """Return the same under a normalized generalized gamma process (tau = 1), by the trapezoid rule in log u."""

    @cache
    def log_v(n, k):
        def log_integrand(v):
            psi = a / sigma * np.expm1(sigma * np.logaddexp(0, v))
            return n * v - psi - (n - k * sigma) * np.logaddexp(0, v) + k * np.log(a) - gammaln(n)

        grid = np.arange(-120.0, 320.0, 0.25)
        values = log_integrand(grid)
        kept = grid[values > values.max() - 60]
        grid = np.linspace(kept[0] - 1, kept[-1] + 1, 4001)
        return logsumexp(log_integrand(grid)) + np.log(grid[1] - grid[0])

    def log_p(sizes):
        return log_v(sum(sizes), len(sizes)) + sum(gammaln(n - sigma) - gammaln(1 - sigma) for n in sizes)

    return log_p


@dataclass
class Posterior:
    """All partitions of some rows with their exact probabilities."""

    marginal: GaussianMarginal | MultinomialMarginal | ConjugateMarginal
    log_prior: Callable
    rows: np.ndarray

    def __post_init__(self):
        self.partitions = set_partitions(len(self.rows))
        log_joint = np.array([self.log_joint(labels) for labels in self.partitions])
        self.evidence = logsumexp(log_joint)
        self.probabilities = np.exp(log_joint - self.evidence)

    def log_joint(self, labels):
        labels = np.asarray(labels)
        _, sizes = np.unique(labels, return_counts=True)
        marginals = sum(self.marginal.log_m(self.rows[labels == label]) for label in np.unique(labels))
        return self.log_prior(sizes.tolist()) + marginals
