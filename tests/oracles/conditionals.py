"""Missing values of a row given its present ones, from the posterior of one component (mathematics 6.2 and 1k)."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from oracles.models import Array


@dataclass(frozen=True)
class Conditional:
    """A Student t distribution given some values, at a scale matrix of `spread` times B / dof.

    `mean` is that of the missing values, `inner` their block of B / dof given the others, and `square` the squared
    distance of the n given ones, both where the spread is 1.
    """

    dof: float
    n: int
    mean: Array
    inner: Array
    square: float

    def covariance(self, spread: Array) -> Array:
        """Of the missing values, one for each spread."""
        times = (self.dof * spread + self.square) / (self.dof + self.n - 2)
        return np.asarray(times[:, None, None] * self.inner)

    def log_density(self, spread: Array) -> Array:
        """Of the given values, up to a constant."""
        return np.asarray(
            -self.n / 2 * np.log(spread) - (self.dof + self.n) / 2 * np.log1p(self.square / spread / self.dof)
        )


def conditional(posterior: dict[str, Array], row: Array) -> Conditional:
    """The predictive distribution of a component given the present values of a row."""
    dof, mean = float(posterior["dof"]) - len(row) + 1, posterior["mean"]
    missing, present = np.flatnonzero(np.isnan(row)), np.flatnonzero(~np.isnan(row))
    scale = posterior["scale"] / dof
    block, across = scale[np.ix_(present, present)], scale[np.ix_(present, missing)]
    away, slopes = row[present] - mean[present], np.linalg.solve(block, across).T
    inner = scale[np.ix_(missing, missing)] - slopes @ across
    square = float(away @ np.linalg.solve(block, away))
    return Conditional(dof, len(present), mean[missing] + slopes @ away, inner, square)


def of_normal(posterior: dict[str, Array], row: Array) -> tuple[Array, Array]:
    """Mean and covariance of the missing values under a Gaussian."""
    found = conditional(posterior, row)
    return found.mean, found.covariance(1 + 1 / np.array([float(posterior["mean_precision"])]))[0]


def of_tails(posterior: dict[str, Array], row: Array, tail_dof: float) -> tuple[Array, Array]:
    """The same where the row has a scale u that is not known: the trapezoid rule in ln u."""
    found, t = conditional(posterior, row), np.arange(-100.0, 8.0, 0.05)
    spread = np.exp(-t) + 1 / float(posterior["mean_precision"])
    prior = stats.gamma(tail_dof / 2, scale=2 / tail_dof).logpdf(np.exp(t)) + t
    log_weights = prior + found.log_density(spread)
    weights = np.exp(log_weights - log_weights.max())
    return found.mean, np.einsum("u,uij->ij", weights / weights.sum(), found.covariance(spread))
