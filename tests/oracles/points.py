"""Oracle of the point estimates of components: maximum likelihood, MAP and plug-in densities (mathematics 1.8 and 6.1).

Densities and priors are SciPy's, so that no formula of the variational oracle is used twice. A point is a dictionary
with the names of `Fit.point_estimates`, of one component.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy import stats
from scipy.special import xlogy

from oracles import columns, discrete, exposures, gaussians, models
from oracles.models import Array

Point: TypeAlias = dict[str, Array]
# The ridge of variances of maximum likelihood, as a fraction of their prior expectation.
RIDGE = 1e-6


class Points(ABC):
    """The point estimates that one likelihood has for a component."""

    def __init__(self, likelihood: Any) -> None:
        self.likelihood = likelihood

    @abstractmethod
    def log_density(self, point: Point, rows: Array) -> Array:
        """log p(x | phi) for every row."""

    @abstractmethod
    def log_prior(self, point: Point) -> float:
        """log p(phi) under the base measure, in the parametrisation that MAP maximises over."""

    @abstractmethod
    def mode(self, statistics: Array) -> Point:
        """The mode of p(phi) prod p(x | phi)^r, from the statistics of a component."""

    @abstractmethod
    def plug_in(self, natural: Array) -> Point:
        """Return the point that represents a component of a variational fit in a plug-in density (mathematics 1.8)."""

    @abstractmethod
    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        """The maximum of sum r {log p(x | phi) - blur}, which `ridge`, added to variances, keeps finite."""

    def ridge(self) -> Any:
        """Return the ridge that `fit` adds to variances of maximum likelihood: 1e-6 of their prior expectation."""
        return 0.0

    def blur(self, point: Point, ridge: Any) -> float:
        """Return the loss of a row's expected log density from noise with the variance `ridge`."""
        return 0.0


def weighted_mean(rows: Array, weights: Array) -> Array:
    return np.asarray(weights @ rows / weights.sum())


class FullPoints(Points):
    """Modes over mean and precision matrix."""

    likelihood: models.NormalWishart

    def log_density(self, point: Point, rows: Array) -> Array:
        gaussian = stats.multivariate_normal(point["mean"], point["covariance"])
        return np.asarray(gaussian.logpdf(rows)).reshape(len(rows))

    def log_prior(self, point: Point) -> float:
        dof, mean_precision, mean, scale = self.likelihood.decode(self.likelihood.prior_natural)
        precision = np.linalg.inv(point["covariance"])
        wishart = stats.wishart.logpdf(precision, dof, np.linalg.inv(scale))
        gaussian = stats.multivariate_normal.logpdf(point["mean"], mean, point["covariance"] / mean_precision)
        return float(wishart + gaussian)

    def mode(self, statistics: Array) -> Point:
        dof, _, mean, scale = self.likelihood.decode(self.likelihood.posterior(statistics))
        return {"mean": mean, "covariance": scale / (dof - self.likelihood.dimension)}

    def plug_in(self, natural: Array) -> Point:
        dof, _, mean, scale = self.likelihood.decode(natural)
        return {"mean": mean, "covariance": scale / dof}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        covariance = np.atleast_2d(np.cov(rows.T, aweights=weights, ddof=0))
        return {
            "mean": weighted_mean(rows, weights),
            "covariance": covariance + np.diag(ridge * np.ones(len(covariance))),
        }

    def ridge(self) -> Any:
        dof, _, _, scale = self.likelihood.decode(self.likelihood.prior_natural)
        return RIDGE * np.diag(scale) / dof

    def blur(self, point: Point, ridge: Any) -> float:
        return float((ridge * np.diag(np.linalg.inv(point["covariance"]))).sum() / 2)


class ZeroMeanPoints(Points):
    """Modes over the precision matrix."""

    likelihood: models.ZeroMeanWishart

    def log_density(self, point: Point, rows: Array) -> Array:
        gaussian = stats.multivariate_normal(np.zeros(rows.shape[1]), point["covariance"])
        return np.asarray(gaussian.logpdf(rows)).reshape(len(rows))

    def log_prior(self, point: Point) -> float:
        dof, scale = self.likelihood.decode(self.likelihood.prior_natural)
        return float(stats.wishart.logpdf(np.linalg.inv(point["covariance"]), dof, np.linalg.inv(scale)))

    def mode(self, statistics: Array) -> Point:
        dof, scale = self.likelihood.decode(self.likelihood.posterior(statistics))
        return {"covariance": scale / (dof - self.likelihood.dimension - 1)}

    def plug_in(self, natural: Array) -> Point:
        dof, scale = self.likelihood.decode(natural)
        return {"covariance": scale / dof}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        second = (rows * weights[:, None]).T @ rows / weights.sum()
        return {"covariance": second + np.diag(ridge * np.ones(len(second)))}

    def ridge(self) -> Any:
        dof, scale = self.likelihood.decode(self.likelihood.prior_natural)
        return RIDGE * np.diag(scale) / dof

    def blur(self, point: Point, ridge: Any) -> float:
        return float((ridge * np.diag(np.linalg.inv(point["covariance"]))).sum() / 2)


class DiagonalPoints(Points):
    """Modes over means and precisions, column by column."""

    likelihood: gaussians.DiagonalNormalGamma

    def log_density(self, point: Point, rows: Array) -> Array:
        return np.asarray(stats.norm.logpdf(rows, point["mean"], np.sqrt(point["variance"])).sum(1))

    def log_prior(self, point: Point) -> float:
        shape, mean_precision, mean, rate = self.likelihood.decode(self.likelihood.prior_natural)
        gammas = stats.gamma.logpdf(1 / point["variance"], shape, scale=1 / rate)
        means = stats.norm.logpdf(point["mean"], mean, np.sqrt(point["variance"] / mean_precision))
        return float((gammas + means).sum())

    def mode(self, statistics: Array) -> Point:
        shape, _, mean, rate = self.likelihood.decode(self.likelihood.posterior(statistics))
        return {"mean": mean, "variance": rate / (shape - 0.5)}

    def plug_in(self, natural: Array) -> Point:
        shape, _, mean, rate = self.likelihood.decode(natural)
        return {"mean": mean, "variance": rate / shape}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        mean = weighted_mean(rows, weights)
        return {"mean": mean, "variance": weighted_mean((rows - mean) ** 2, weights) + ridge}

    def ridge(self) -> Any:
        shape, _, _, rate = self.likelihood.decode(self.likelihood.prior_natural)
        return RIDGE * rate / shape

    def blur(self, point: Point, ridge: Any) -> float:
        return float((ridge / point["variance"]).sum() / 2)


class SphericalPoints(Points):
    """Modes over mean and precision."""

    likelihood: gaussians.SphericalNormalGamma

    def log_density(self, point: Point, rows: Array) -> Array:
        return np.asarray(stats.norm.logpdf(rows, point["mean"], np.sqrt(point["variance"])).sum(1))

    def log_prior(self, point: Point) -> float:
        shape, mean_precision, mean, rate = self.likelihood.decode(self.likelihood.prior_natural)
        gamma = stats.gamma.logpdf(1 / point["variance"], shape, scale=1 / rate)
        means = stats.norm.logpdf(point["mean"], mean, np.sqrt(point["variance"] / mean_precision))
        return float(gamma + means.sum())

    def mode(self, statistics: Array) -> Point:
        shape, _, mean, rate = self.likelihood.decode(self.likelihood.posterior(statistics))
        return {"mean": mean, "variance": np.asarray(rate / (shape - 1 + self.likelihood.dimension / 2))}

    def plug_in(self, natural: Array) -> Point:
        shape, _, mean, rate = self.likelihood.decode(natural)
        return {"mean": mean, "variance": np.asarray(rate / shape)}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        mean = weighted_mean(rows, weights)
        return {"mean": mean, "variance": weighted_mean((rows - mean) ** 2, weights).mean() + ridge}

    def ridge(self) -> Any:
        shape, _, _, rate = self.likelihood.decode(self.likelihood.prior_natural)
        return RIDGE * rate / shape

    def blur(self, point: Point, ridge: Any) -> float:
        return float(self.likelihood.dimension * ridge / point["variance"] / 2)


class ProductPoints(SphericalPoints):
    """Modes over mean and precision under the product measure, by turns."""

    def log_prior(self, point: Point) -> float:
        shape, mean_precision, mean, rate = self.likelihood.decode(self.likelihood.prior_natural)
        gamma = stats.gamma.logpdf(1 / point["variance"], shape, scale=1 / rate)
        means = stats.norm.logpdf(point["mean"], mean, mean_precision**-0.5)
        return float(gamma + means.sum())

    def mode(self, statistics: Array) -> Point:
        shape, mean_precision, prior_mean, rate = self.likelihood.decode(self.likelihood.prior_natural)
        count, total, squares = float(statistics[0]), statistics[1:-1], float(statistics[-1])
        precision = shape / rate
        for _ in range(10_000):
            before = precision
            mean = (mean_precision * prior_mean + precision * total) / (mean_precision + precision * count)
            distances = squares - 2 * mean @ total + count * mean @ mean
            precision = (shape - 1 + count * self.likelihood.dimension / 2) / (rate + 0.5 * distances)
            if abs(precision - before) <= 1e-15 * precision:
                break
        return {"mean": mean, "variance": np.asarray(1 / precision)}


class KnownPoints(Points):
    """Modes over the mean; both priors."""

    likelihood: gaussians.KnownCovariance | gaussians.KnownCovarianceGeneral

    def log_density(self, point: Point, rows: Array) -> Array:
        gaussian = stats.multivariate_normal(point["mean"], self.likelihood.covariance)
        return np.asarray(gaussian.logpdf(rows)).reshape(len(rows))

    def log_prior(self, point: Point) -> float:
        mean_precision, mean = self.likelihood.decode(self.likelihood.prior_natural)
        if isinstance(self.likelihood, gaussians.KnownCovariance):
            covariance = self.likelihood.covariance / mean_precision
        else:
            covariance = np.linalg.inv(mean_precision)
        return float(stats.multivariate_normal.logpdf(point["mean"], mean, covariance))

    def mode(self, statistics: Array) -> Point:
        return self.plug_in(self.likelihood.posterior(statistics))

    def plug_in(self, natural: Array) -> Point:
        return {"mean": self.likelihood.decode(natural)[1]}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        return {"mean": weighted_mean(rows, weights)}


class MultinomialPoints(Points):
    """Modes over the simplex."""

    likelihood: discrete.Multinomial

    def log_density(self, point: Point, rows: Array) -> Array:
        return np.asarray(xlogy(rows, point["probabilities"]).sum(1) + self.likelihood.log_base_measure(rows))

    def log_prior(self, point: Point) -> float:
        return float(stats.dirichlet.logpdf(point["probabilities"], self.likelihood.prior_natural))

    def mode(self, statistics: Array) -> Point:
        above = np.maximum(self.likelihood.posterior(statistics) - 1, 0.0)
        return {"probabilities": above / above.sum()}

    def plug_in(self, natural: Array) -> Point:
        return {"probabilities": natural / natural.sum()}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        totals = weights @ rows
        return {"probabilities": totals / totals.sum()}


class BernoulliPoints(Points):
    """Modes over probabilities."""

    likelihood: discrete.Bernoulli

    def log_density(self, point: Point, rows: Array) -> Array:
        probabilities = point["probabilities"]
        return np.asarray((xlogy(rows, probabilities) + xlogy(1 - rows, 1 - probabilities)).sum(1))

    def log_prior(self, point: Point) -> float:
        return float(
            stats.beta.logpdf(point["probabilities"], *self.likelihood.decode(self.likelihood.prior_natural)).sum()
        )

    def mode(self, statistics: Array) -> Point:
        above = np.maximum(self.likelihood.decode(self.likelihood.posterior(statistics)) - 1, 0.0)
        return {"probabilities": above[0] / above.sum(0)}

    def plug_in(self, natural: Array) -> Point:
        successes, failures = self.likelihood.decode(natural)
        return {"probabilities": successes / (successes + failures)}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        return {"probabilities": weighted_mean(rows, weights)}


class CategoricalPoints(Points):
    """Modes over probabilities, which stand in a table with zeros beyond the levels of a column."""

    likelihood: discrete.Categorical

    def log_density(self, point: Point, rows: Array) -> Array:
        statistics = self.likelihood.sufficient_statistics(rows)
        return np.asarray(xlogy(statistics, self.likelihood.flat(point["probabilities"])).sum(1))

    def log_prior(self, point: Point) -> float:
        mode, prior = (self.likelihood.columns(each) for each in (self._flat(point), self.likelihood.prior_natural))
        return float(sum(stats.dirichlet.logpdf(p, b) for p, b in zip(mode, prior, strict=True)))

    def _flat(self, point: Point) -> Array:
        return self.likelihood.flat(point["probabilities"])

    def _normalised(self, flat: Array) -> Point:
        columns = [column / column.sum() for column in self.likelihood.columns(flat)]
        return {"probabilities": self.likelihood.table(np.concatenate(columns))}

    def mode(self, statistics: Array) -> Point:
        return self._normalised(np.maximum(self.likelihood.posterior(statistics) - 1, 0.0))

    def plug_in(self, natural: Array) -> Point:
        return self._normalised(natural)

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        return self._normalised(weights @ self.likelihood.sufficient_statistics(rows))


class PoissonPoints(Points):
    """Modes over rates."""

    likelihood: discrete.Poisson

    def log_density(self, point: Point, rows: Array) -> Array:
        return np.asarray(stats.poisson.logpmf(rows, point["rate"]).sum(1))

    def log_prior(self, point: Point) -> float:
        natural = self.likelihood.prior_natural
        return float(stats.gamma.logpdf(point["rate"], natural[1:], scale=1 / natural[0]).sum())

    def mode(self, statistics: Array) -> Point:
        natural = self.likelihood.posterior(statistics)
        return {"rate": np.maximum(natural[1:] - 1, 0.0) / natural[0]}

    def plug_in(self, natural: Array) -> Point:
        return {"rate": natural[1:] / natural[0]}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        return {"rate": weighted_mean(rows, weights)}


class NegativeBinomialPoints(Points):
    """Modes over probabilities, as expected counts."""

    likelihood: discrete.NegativeBinomial

    def log_density(self, point: Point, rows: Array) -> Array:
        rho = self.likelihood.dispersion
        return np.asarray(stats.nbinom.logpmf(rows, rho, rho / (rho + point["mean"])).sum(1))

    def log_prior(self, point: Point) -> float:
        a, b = self.likelihood.decode(self.likelihood.prior_natural)
        return float(stats.beta.logpdf(point["mean"] / (point["mean"] + self.likelihood.dispersion), a, b).sum())

    def mode(self, statistics: Array) -> Point:
        a, b = self.likelihood.decode(self.likelihood.posterior(statistics))
        return {"mean": self.likelihood.dispersion * np.maximum(a - 1, 0.0) / (b - 1)}

    def plug_in(self, natural: Array) -> Point:
        a, b = self.likelihood.decode(natural)
        return {"mean": self.likelihood.dispersion * a / np.where(b > 1, b - 1, b)}

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        return {"mean": weighted_mean(rows, weights)}


class ColumnsPoints(Points):
    """Points of the blocks, each under the columns of its block."""

    likelihood: columns.Columns

    def parts(self, *values: Array) -> Iterator[tuple[Any, ...]]:
        """The title, the columns and the points of each block, and its parts of natural parameters or statistics."""
        split = zip(*(self.likelihood.parts(value) for value in values), strict=True)
        for parts in split:
            block, own = parts[0][0], parts[0][1]
            title = ", ".join(map(str, block))
            yield title, list(block), points_of(own), *(part for *_, part in parts)

    def own(self, point: Point, title: str) -> Point:
        """The points of a block."""
        start = f"{title}."
        return {name.removeprefix(start): value for name, value in point.items() if name.startswith(start)}

    def named(self, title: str, own: Point) -> Point:
        """These points under the columns of the block."""
        return {f"{title}.{name}": value for name, value in own.items()}

    def log_density(self, point: Point, rows: Array) -> Array:
        parts = self.parts(self.likelihood.prior_natural)
        found = (each.log_density(self.own(point, title), rows[:, block]) for title, block, each, _ in parts)
        return np.asarray(sum(found, np.zeros(len(rows))))

    def log_prior(self, point: Point) -> float:
        parts = self.parts(self.likelihood.prior_natural)
        return sum(each.log_prior(self.own(point, title)) for title, _, each, _ in parts)

    def mode(self, statistics: Array) -> Point:
        found: Point = {}
        for title, _, each, own in self.parts(statistics):
            found |= self.named(title, each.mode(own))
        return found

    def plug_in(self, natural: Array) -> Point:
        found: Point = {}
        for title, _, each, own in self.parts(natural):
            found |= self.named(title, each.plug_in(own))
        return found

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        found: Point = {}
        parts = self.parts(self.likelihood.prior_natural)
        for (title, block, each, _), own in zip(parts, ridge, strict=True):
            found |= self.named(title, each.most_likely(rows[:, block], weights, own))
        return found

    def ridge(self) -> Any:
        return [each.ridge() for _, _, each, _ in self.parts(self.likelihood.prior_natural)]

    def blur(self, point: Point, ridge: Any) -> float:
        parts = self.parts(self.likelihood.prior_natural)
        return sum(
            each.blur(self.own(point, title), own) for (title, _, each, _), own in zip(parts, ridge, strict=True)
        )


class ExposedPoints(Points):
    """Modes of counts whose rows have their total as an exposure: those of rows of exposure 1 under the same prior."""

    likelihood: exposures.Exposed
    inner: Points

    def log_prior(self, point: Point) -> float:
        return self.inner.log_prior(point)

    def mode(self, statistics: Array) -> Point:
        return self.inner.mode(statistics)

    def plug_in(self, natural: Array) -> Point:
        return self.inner.plug_in(natural)

    def most_likely(self, rows: Array, weights: Array, ridge: Any) -> Point:
        counts, total = self.likelihood.counts(rows), float(weights @ self.likelihood.exposure(rows)[:, 0])
        return dict.fromkeys(self.inner.most_likely(rows, weights, ridge), weights @ counts / total)


class ExposedPoissonPoints(ExposedPoints):
    """Modes over rates per exposure."""

    def __init__(self, likelihood: exposures.ExposedPoisson) -> None:
        self.likelihood, self.inner = likelihood, PoissonPoints(likelihood.without)

    def log_density(self, point: Point, rows: Array) -> Array:
        means = self.likelihood.exposure(rows) * point["rate"]
        return np.asarray(stats.poisson.logpmf(self.likelihood.counts(rows), means).sum(1))


class ExposedNegativeBinomialPoints(ExposedPoints):
    """Modes over probabilities, as expected counts per exposure."""

    def __init__(self, likelihood: exposures.ExposedNegativeBinomial) -> None:
        self.likelihood, self.inner = likelihood, NegativeBinomialPoints(likelihood.without)

    def log_density(self, point: Point, rows: Array) -> Array:
        counts, rho = self.likelihood.counts(rows), self.likelihood.without.dispersion
        # A row without counts has the exposure 0, and any dispersion.
        dispersions = np.where(counts.any(1, keepdims=True), self.likelihood.dispersions(rows), 1.0)
        terms = stats.nbinom.logpmf(counts, dispersions, rho / (rho + point["mean"]))
        return np.asarray(np.where(counts.any(1), terms.sum(1), 0.0))


POINTS: dict[type[models.Likelihood], Callable[[Any], Points]] = {
    models.NormalWishart: FullPoints,
    models.ZeroMeanWishart: ZeroMeanPoints,
    gaussians.DiagonalNormalGamma: DiagonalPoints,
    gaussians.SphericalNormalGamma: SphericalPoints,
    gaussians.SphericalIndependent: ProductPoints,
    gaussians.KnownCovariance: KnownPoints,
    gaussians.KnownCovarianceGeneral: KnownPoints,
    discrete.Multinomial: MultinomialPoints,
    discrete.Bernoulli: BernoulliPoints,
    discrete.Categorical: CategoricalPoints,
    discrete.Poisson: PoissonPoints,
    discrete.NegativeBinomial: NegativeBinomialPoints,
    columns.Columns: ColumnsPoints,
    exposures.ExposedPoisson: ExposedPoissonPoints,
    exposures.ExposedNegativeBinomial: ExposedNegativeBinomialPoints,
}


def points_of(likelihood: models.Likelihood) -> Points:
    """The point estimates of a likelihood."""
    return POINTS[type(likelihood)](likelihood)
