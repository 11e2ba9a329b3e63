"""Oracle of rows with heavy tails and independent columns (mathematics 1k).

x_d | u ~ N(mu_d, 1 / (u lambda_d)), with one u ~ Gamma(f / 2, f / 2) for each row. Values may be missing (NaN).
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, logsumexp, xlogy

from oracles.models import LOG_2PI, Array, Process
from oracles.tails import gamma_entropy, log_normaliser


@dataclass(frozen=True)
class NormalGamma:
    """Columns with mean m, precision of the mean kappa, shape a and rate b, (D,) each."""

    mean: Array
    mean_precision: Array
    shape: Array
    rate: Array

    @classmethod
    def of_prior(cls, mean: Array, mean_precision: float, dof: float, scale: Array) -> "NormalGamma":
        one = np.ones(len(mean))
        return cls(np.asarray(mean), mean_precision * one, dof / 2 * one, np.asarray(scale) / 2)

    @property
    def log_normaliser(self) -> float:
        terms = gammaln(self.shape) - self.shape * np.log(self.rate) + (LOG_2PI - np.log(self.mean_precision)) / 2
        return float(terms.sum())


@dataclass(frozen=True)
class Sums:
    """Sums of one component: N and H, sum r E ln u, the sum of entropies with what belongs to them, and by column the
    numbers of rows, the sums of scales, and those of x and x^2 times scales."""

    count: float
    entropy: float
    mass: float
    log: float
    rest: float
    rows: Array
    masses: Array
    values: Array
    squares: Array

    def posterior(self, prior: NormalGamma) -> NormalGamma:
        precision = prior.mean_precision + self.masses
        mean = (prior.mean_precision * prior.mean + self.values) / precision
        squares = self.squares + prior.mean_precision * prior.mean**2 - precision * mean**2
        return NormalGamma(mean, precision, prior.shape + self.rows / 2, prior.rate + squares / 2)


def local(own: NormalGamma, rows: Array, f: float) -> tuple[Array, Array, Array]:
    """Scores with the scale integrated out, and q(u) = Gamma(a, b)."""
    seen = ~np.isnan(rows)
    n = seen.sum(1)
    e = np.where(seen, 1 / own.mean_precision + own.shape / own.rate * (rows - own.mean) ** 2, 0).sum(1)
    of_columns = np.where(seen, digamma(own.shape) - np.log(own.rate), 0).sum(1) / 2
    a = (f + n) / 2
    return of_columns - n / 2 * np.log(np.pi * f) + gammaln(a) - gammaln(f / 2) - a * np.log1p(e / f), a, (f + e) / 2


def sums(rows: Array, responsibilities: Array, a: Array, b: Array) -> Sums:
    """Sums over rows of one component."""
    r, mean, log, seen = responsibilities, a / b, digamma(a) - np.log(b), ~np.isnan(rows)
    filled = np.where(seen, rows, 0)
    rest = gamma_entropy(a, b) + (seen.sum(1) / 2 - 1) * log
    of_rows = (r.sum(), -xlogy(r, r).sum(), r @ mean, r @ log, r @ rest)
    return Sums(*of_rows, r @ seen, (r * mean) @ seen, (r * mean) @ filled, (r * mean) @ filled**2)


def bound(prior: NormalGamma, components: list[Sums], f: float, process: Process) -> float:
    """The evidence lower bound from sums at the optimal globals."""
    of_components = sum(
        one.posterior(prior).log_normaliser
        - prior.log_normaliser
        + one.count * log_normaliser(f)
        + f / 2 * (one.log - one.mass)
        + one.rest
        + one.entropy
        - one.rows.sum() * LOG_2PI / 2
        for one in components
    )
    return float(of_components + process.collapsed(np.array([one.count for one in components])))


def step(prior: NormalGamma, components: list[Sums], rows: Array, f: float, process: Process) -> list[Sums]:
    """One pass over all rows with all responsibilities: the new sums."""
    eta = process.update(np.array([one.count for one in components]))
    found = [local(one.posterior(prior), rows, f) for one in components]
    weights = np.column_stack([scores for scores, _, _ in found]) + process.expected_log_weights(eta)
    r = np.exp(weights - logsumexp(weights, axis=1, keepdims=True))
    return [sums(rows, r[:, k], a, b) for k, (_, a, b) in enumerate(found)]


def log_predictive(own: NormalGamma, rows: Array, f: float) -> Array:
    """Log of the integral over u of Gamma(u | f / 2, f / 2) times a product of t densities: trapezoids in ln u."""
    width = min(0.25, 0.5 / np.sqrt(f)) / 2
    t = np.arange(-80, 7, width)[:, None, None]
    variance = own.rate * (np.exp(-t) + 1 / own.mean_precision)
    constant = gammaln(own.shape + 0.5) - gammaln(own.shape) - np.log(2 * np.pi * variance) / 2
    terms = constant - (own.shape + 0.5) * np.log1p((rows - own.mean) ** 2 / (2 * variance))
    given = np.where(np.isnan(rows), 0, terms).sum(2)
    weights = log_normaliser(f) + f / 2 * (t - np.exp(t))[:, :, 0]
    return np.asarray(logsumexp(weights + given, axis=0) + np.log(width))
