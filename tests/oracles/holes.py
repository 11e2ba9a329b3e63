"""Oracle of missing values under a full covariance, by imputation (mathematics 1.7.1)."""

import numpy as np
from scipy.special import digamma, logsumexp, xlogy

from oracles.models import LOG_2PI, Array, NormalWishart, Process


def log_determinant(matrix: Array) -> float:
    return float(np.linalg.slogdet(matrix)[1]) if matrix.size else 0.0


class Imputing(NormalWishart):
    """One row at a time, from blocks of B."""

    def local(self, natural: Array, row: Array) -> tuple[float, Array, Array]:
        """The score, and mean and covariance of the filled row, zero where it is present."""
        dof, precision, mean, scale = self.decode(natural)
        present, missing = np.flatnonzero(~np.isnan(row)), np.flatnonzero(np.isnan(row))
        block = scale[np.ix_(present, present)]
        slopes = np.linalg.solve(block, scale[np.ix_(present, missing)]).T
        away = row[present] - mean[present]
        square = float(away @ np.linalg.solve(block, away))
        score = 0.5 * (
            float(digamma((dof - np.arange(self.dimension)) / 2).sum())
            + self.dimension * np.log(2)
            - len(missing) * np.log(dof)
            - log_determinant(block)
            - len(present) * LOG_2PI
            - self.dimension / precision
            - dof * square
        )
        filled, covariance = row.copy(), np.zeros_like(scale)
        filled[missing] = mean[missing] + slopes @ away
        covariance[np.ix_(missing, missing)] = (
            scale[np.ix_(missing, missing)] - slopes @ scale[np.ix_(present, missing)]
        ) / dof
        return float(score), filled, covariance

    def sums(self, natural: Array, rows: Array, r: Array) -> tuple[Array, float]:
        """S and Q of a component whose rows are filled under `natural`."""
        total, entropy = np.zeros(len(self.prior_natural)), 0.0
        for row, share in zip(rows, r, strict=True):
            _, filled, covariance = self.local(natural, row)
            missing = np.flatnonzero(np.isnan(row))
            moment = np.outer(filled, filled) + covariance
            total += share * np.concatenate([[1.0, 1.0], filled, moment.ravel()])
            inner = covariance[np.ix_(missing, missing)]
            entropy += share * 0.5 * (len(missing) * (LOG_2PI + 1) + log_determinant(inner))
        return total, entropy

    def log_predictive_of_present(self, natural: Array, row: Array) -> float:
        """The predictive density of the present columns, a Student t."""
        dof, precision, mean, scale = self.decode(natural)
        present = np.flatnonzero(~np.isnan(row))
        lost = self.dimension - len(present)
        block = scale[np.ix_(present, present)]
        own = NormalWishart(mean[present], precision, dof - lost, block)
        return float(own.log_predictive(own.prior_natural, row[None, present])[0])


def bound(prior: Imputing, components: list[tuple[Array, float]], r: Array, process: Process) -> float:
    """The evidence lower bound of the present values, from (S, Q) of every component and all responsibilities."""
    start = prior.log_normaliser(prior.prior_natural)
    of_components = sum(
        prior.log_normaliser(prior.prior_natural + natural) - start + entropy for natural, entropy in components
    )
    counts = r.sum(0)
    constant = -prior.dimension / 2 * LOG_2PI * counts.sum()
    return float(of_components + constant + process.collapsed(counts) - xlogy(r, r).sum())


def step(prior: Imputing, components: list[tuple[Array, float]], rows: Array, process: Process, counts: Array) -> Array:
    """Responsibilities of the next pass."""
    log_weights = process.expected_log_weights(process.update(counts))
    scores = np.array([[prior.local(prior.prior_natural + s, row)[0] for s, _ in components] for row in rows])
    weights = scores + log_weights
    return np.asarray(np.exp(weights - logsumexp(weights, axis=1, keepdims=True)))
