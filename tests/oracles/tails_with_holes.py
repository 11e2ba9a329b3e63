"""Oracle of rows with heavy tails, a full covariance and missing values (mathematics 1k and 1.7.1)."""

import numpy as np
from scipy.special import digamma, gammaln

from oracles.holes import Imputing, log_determinant
from oracles.models import LOG_2PI, Array, NormalWishart, Process
from oracles.tails import Sums, gamma_entropy, log_normaliser, log_predictive


class ImputingTails(Imputing):
    """One row at a time: q(u) = Gamma(a, b), and q(x_m | u) normal with the covariance V / u.

    `cells` are the variances of rounding of the columns, which count for present values only.
    """

    def __init__(
        self, mean: Array, mean_precision: float, dof: float, scale: Array, cells: Array | None = None
    ) -> None:
        super().__init__(mean, mean_precision, dof, scale)
        self.cells = np.zeros(self.dimension) if cells is None else cells

    def of_cells(self, row: Array) -> Array:
        """The covariance of a row within its cell."""
        return np.diag(np.where(np.isnan(row), 0.0, self.cells))

    def scale(self, natural: Array, row: Array, f: float) -> tuple[float, float, float]:
        """The score, a and b."""
        dof, precision, mean, scale = self.decode(natural)
        present = np.flatnonzero(~np.isnan(row))
        block, away = scale[np.ix_(present, present)], row[present] - mean[present]
        of_cells = float(np.trace(np.linalg.solve(scale, self.of_cells(row))))
        e = self.dimension / precision + dof * (float(away @ np.linalg.solve(block, away)) + of_cells)
        n, a = len(present), (f + len(present)) / 2
        expected = digamma((dof - np.arange(self.dimension)) / 2).sum() + self.dimension * np.log(2)
        of_columns = expected - (self.dimension - n) * np.log(dof) - log_determinant(block) - n * np.log(np.pi * f)
        score = of_columns / 2 + gammaln(a) - gammaln(f / 2) - a * np.log1p(e / f)
        return float(score), a, (f + e) / 2

    def sums_of_tails(self, natural: Array, rows: Array, r: Array, f: float, *, before: bool = False) -> Sums:
        """Sums of a component whose rows are filled under `natural`; `before` they have been scored, q(u) is p(u).

        The entropy is only that of the missing values.
        """
        total, log, rest, entropy = np.zeros(len(self.prior_natural)), 0.0, 0.0, 0.0
        for row, share in zip(rows, r, strict=True):
            _, filled, covariance = self.local(natural, row)
            _, a, b = self.scale(natural, row, f)
            a, b = (f / 2, f / 2) if before else (a, b)
            missing = np.flatnonzero(np.isnan(row))
            moment = a / b * (np.outer(filled, filled) + self.of_cells(row)) + covariance
            total += share * np.concatenate([[1.0, a / b], a / b * filled, moment.ravel()])
            of_row = digamma(a) - np.log(b)
            log += share * of_row
            n = self.dimension - len(missing)
            rest += share * float(gamma_entropy(np.array(a), np.array(b)) + (n / 2 - 1) * of_row)
            inner = covariance[np.ix_(missing, missing)]
            entropy += share * 0.5 * (len(missing) * (LOG_2PI + 1) + log_determinant(inner))
        return Sums(float(r.sum()), total, entropy, log, rest)

    def log_predictive_of_tails(self, natural: Array, row: Array, f: float) -> float:
        """The predictive density of the present columns."""
        dof, precision, mean, scale = self.decode(natural)
        present = np.flatnonzero(~np.isnan(row))
        block = scale[np.ix_(present, present)]
        own = NormalWishart(mean[present], precision, dof - (self.dimension - len(present)), block)
        return float(log_predictive(own, own.prior_natural, row[None, present], f)[0])


def bound(prior: ImputingTails, components: list[Sums], f: float, entropy: float, process: Process) -> float:
    """The evidence lower bound; `entropy` is that of all responsibilities."""
    start = prior.log_normaliser(prior.prior_natural)
    of_components = sum(
        prior.log_normaliser(prior.prior_natural + one.natural)
        - start
        + one.count * log_normaliser(f)
        + f / 2 * (one.log - one.mass)
        + one.rest
        + one.entropy
        for one in components
    )
    counts = np.array([one.count for one in components])
    constant = -prior.dimension / 2 * LOG_2PI * counts.sum()
    return float(of_components + constant + process.collapsed(counts) + entropy)
