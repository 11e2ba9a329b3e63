"""Oracle of a background (mathematics 2h): eps ~ Beta(e1, e0), and a row has p0(x) with probability eps."""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import betaln, digamma, logsumexp

from oracles.models import Array
from oracles.variational import (
    Globals,
    Specification,
    collapsed_elbo,
    entropies,
    global_step,
    local_scores,
    top_l_responsibilities,
)


@dataclass(frozen=True)
class Background:
    """The prior of eps, and the centre, reach and tails of p0."""

    outliers: float
    inliers: float
    centre: Array
    reach: Array
    tails: float
    spread: float

    @classmethod
    def of(cls, fit: Any) -> "Background":
        """That of a fit."""
        own = fit.model.background
        return cls(own.outliers, own.inliers, own.centre, own.reach, own.tails, own.spread)

    def log_density(self, rows: Array) -> Array:
        """log p0 of the columns that every row has: partly uniform, partly multivariate Cauchy."""
        densities = np.empty(len(rows))
        for number, row in enumerate(rows):
            has = ~np.isnan(row)
            centre, reach = self.centre[has], self.reach[has]
            uniform = stats.uniform(centre - reach, 2 * reach).pdf(row[has]).prod()
            cauchy = stats.multivariate_t(centre, np.diag((self.spread * reach) ** 2 / 3), df=1).pdf(row[has])
            densities[number] = np.log((1 - self.tails) * uniform + self.tails * cauchy)
        return densities

    def posterior(self, outside: float, inside: float) -> tuple[float, float]:
        return self.outliers + outside, self.inliers + inside

    def log_weights(self, outside: float, inside: float) -> Array:
        """E log eps and E log(1 - eps)."""
        both = np.array(self.posterior(outside, inside))
        return np.asarray(digamma(both) - digamma(both.sum()))

    def weight(self, outside: float, inside: float) -> float:
        """E eps."""
        a, b = self.posterior(outside, inside)
        return a / (a + b)

    def gain(self, outside: float, inside: float) -> float:
        """log B(e1 + N0, e0 + N - N0) - log B(e1, e0)."""
        return float(betaln(*self.posterior(outside, inside)) - betaln(self.outliers, self.inliers))


def step(
    rows: Array, responsibilities: Array, mixture: Specification, own: Background, sparsity: int | None = None
) -> Array:
    """The responsibilities after those given, whose last column is the background."""
    state: Globals = global_step(rows, responsibilities[:, :-1], mixture)
    outside, inside = own.log_weights(responsibilities[:, -1].sum(), responsibilities[:, :-1].sum())
    scores = np.column_stack([local_scores(rows, mixture, state) + inside, own.log_density(rows) + outside])
    return top_l_responsibilities(scores, sparsity)


def bound(rows: Array, responsibilities: Array, mixture: Specification, own: Background) -> float:
    """The bound at the optimal globals."""
    behind = responsibilities[:, -1]
    # The bound of the components counts the base measures of all rows.
    of_behind = float(behind @ (own.log_density(rows) - mixture.likelihood.log_base_measure(rows)))
    weights = own.gain(behind.sum(), responsibilities[:, :-1].sum())
    of_components = collapsed_elbo(rows, responsibilities[:, :-1], mixture)
    return of_components + of_behind + float(entropies(responsibilities)[-1]) + weights


def log_evidence(rows: Array, mixture: Specification, own: Background, n_components: int) -> float:
    """log p(X) by enumeration of all assignments to K components of a finite prior and the background."""
    process: Any = mixture.process
    densities, terms = own.log_density(rows), []
    for labels in itertools.product(range(n_components + 1), repeat=len(rows)):
        of_rows = np.array(labels)
        counts = np.bincount(of_rows, minlength=n_components + 1).astype(float)
        members = [rows[of_rows == k] for k in range(n_components)]
        of_members = sum(mixture.likelihood.log_marginal(one) for one in members if len(one))
        of_labels = process.collapsed(counts[:-1]) + own.gain(counts[-1], counts[:-1].sum())
        terms.append(of_members + densities[of_rows == n_components].sum() + of_labels)
    return float(logsumexp(terms))
