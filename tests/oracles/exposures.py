"""Oracles of counts whose rows have an exposure (mathematics 1g and 1i): T = [e, x], or [rho e, x]."""

from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, xlogy

from oracles.discrete import NegativeBinomial, Poisson, log_beta
from oracles.models import Array, Likelihood


class Exposed(Likelihood):
    """Rows whose exposure is their total, or in a column; that column is no part of natural parameters."""

    def __init__(self, exposure: Any, without: Likelihood) -> None:
        self.column = None if exposure == "total" else int(exposure)
        self.without: Any = without
        self.prior_natural = without.prior_natural
        self.dimension = without.dimension

    def counts(self, rows: Array) -> Array:
        """The columns of counts."""
        return rows if self.column is None else np.delete(rows, self.column, axis=-1)

    def exposure(self, rows: Array) -> Array:
        """The exposure of each row, (n, 1)."""
        return rows.sum(1, keepdims=True) if self.column is None else rows[:, [self.column]]

    def natural(self, **component: Array) -> Array:
        return np.asarray(self.without.natural(rate=component["rate"], shape=self.counts(component["shape"])))

    def log_normaliser(self, natural: Array) -> float:
        return float(self.without.log_normaliser(natural))

    def kl(self, natural: Array) -> float:
        return float(self.without.kl(natural))


class ExposedPoisson(Exposed):
    """x_d ~ Poisson(e theta_d), theta_d ~ Gamma(a_d, rate b)."""

    def __init__(self, shape: Array, rate: float, exposure: Any) -> None:
        counted = shape if exposure == "total" else np.delete(shape, int(exposure))
        super().__init__(exposure, Poisson(counted, rate))

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([self.exposure(rows), self.counts(rows)])

    def log_base_measure(self, rows: Array) -> Array:
        x, e = self.counts(rows), self.exposure(rows)
        return np.asarray((xlogy(x, e) - gammaln(x + 1)).sum(1))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        rate, shape = natural[0], natural[1:]
        x, e = self.counts(rows), self.exposure(rows)
        columns = x * (digamma(shape) - np.log(rate)) - e * shape / rate
        return np.asarray(columns.sum(1) + self.log_base_measure(rows))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        rate, shape = natural[0], natural[1:]
        x, e = self.counts(rows), self.exposure(rows)
        columns = gammaln(shape + x) - gammaln(shape) + shape * np.log(rate / (rate + e)) - x * np.log(rate + e)
        return np.asarray(columns.sum(1) + self.log_base_measure(rows))


class ExposedNegativeBinomial(Exposed):
    """x_d ~ NB(rho_d e, p_d), p_d ~ Beta(a_d, rho_d b)."""

    def __init__(self, dispersion: Array, shape: Array, rate: float, exposure: Any) -> None:
        counted = [each if exposure == "total" else np.delete(each, int(exposure)) for each in (dispersion, shape)]
        super().__init__(exposure, NegativeBinomial(counted[0], counted[1], rate))

    def dispersions(self, rows: Array) -> Array:
        """rho e, (n, D)."""
        return np.asarray(self.exposure(rows) * self.without.dispersion)

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([self.dispersions(rows), self.counts(rows)])

    def log_base_measure(self, rows: Array) -> Array:
        x = self.counts(rows)
        # A row without counts may have the exposure 0.
        rho = np.where(x > 0, self.dispersions(rows), 1.0)
        return np.asarray((gammaln(x + rho) - gammaln(rho) - gammaln(x + 1)).sum(1))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        a, b = self.without.decode(natural)
        total = digamma(a + b)
        columns = self.counts(rows) * (digamma(a) - total) + self.dispersions(rows) * (digamma(b) - total)
        return np.asarray(columns.sum(1) + self.log_base_measure(rows))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        a, b = self.without.decode(natural)
        columns = log_beta(a + self.counts(rows), b + self.dispersions(rows)) - log_beta(a, b)
        return np.asarray(columns.sum(1) + self.log_base_measure(rows))
