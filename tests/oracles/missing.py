"""Oracle of models whose rows have missing entries (NaN), and of imputation (mathematics 1.7 and 6.2).

Only observed entries enter a density; everything else is as in `models`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import betaln, digamma, gammaln, logsumexp

from oracles import discrete
from oracles.discrete import beta_kl, log_beta
from oracles.gaussians import gamma_kl, precision_kl
from oracles.models import LOG_2PI, Array, Likelihood, dirichlet_kl, quadratic_form
from oracles.variational import Globals, Specification


def observed(rows: Array) -> tuple[Array, Array]:
    """The mask as numbers, and the rows with zeros for missing values."""
    mask = ~np.isnan(rows)
    return mask.astype(float), np.where(mask, rows, 0.0)


def by_columns(rows: Array) -> Iterator[tuple[Array, Array]]:
    """For each set of columns that some rows have: the places of these rows, and the columns."""
    patterns, which = np.unique(~np.isnan(rows), axis=0, return_inverse=True)
    for index, pattern in enumerate(patterns):
        yield np.flatnonzero(which.ravel() == index), np.flatnonzero(pattern)


class MissingLikelihood(Likelihood):
    """A model that marginalises over missing entries exactly, column by column."""

    def predictive_mean(self, natural: Array) -> Array:
        """mu_kd of mathematics 6.2: the mean of a missing entry."""
        raise NotImplementedError

    def predictive_variance(self, natural: Array) -> Array:
        """v_kd of mathematics 6.2."""
        raise NotImplementedError

    def conditional(self, natural: Array, rows: Array) -> tuple[Array, Array]:
        """Means and variances of the entries given what each row has; the default is of independent columns."""
        shape = rows.shape
        mean, variance = self.predictive_mean(natural), self.predictive_variance(natural)
        return np.broadcast_to(mean, shape), np.broadcast_to(variance, shape)

    def of_column(self, natural: Array, column: int) -> Array:
        """The natural parameters of one column."""
        return natural.reshape(-1, self.dimension)[:, column]

    def mixed(self, responsibilities: Array, naturals: Sequence[Array], rows: Array) -> tuple[Array, Array]:
        """Values and variances of all entries, where they are missing."""
        moments = [self.conditional(each, rows) for each in naturals]
        means = np.stack([mean for mean, _ in moments], axis=1)
        variances = np.stack([variance for _, variance in moments], axis=1)
        shares = responsibilities[:, :, None]
        mean = (shares * means).sum(1)
        # A column of weight zero must not turn an infinite variance into NaN.
        second = np.where(shares > 0, variances + means**2, 0.0)
        return mean, (shares * second).sum(1) - mean**2


class MissingDiagonal(MissingLikelihood):
    """Independent normal columns (mathematics 1.7).

    natural = [a_d, kappa_d, kappa_d m_d, b_d + kappa_d m_d^2 / 2], T(x) = M [1/2, 1, x, x^2 / 2].
    """

    def __init__(self, mean: Array, mean_precision: float, shape: float, rate: Array) -> None:
        self.dimension = len(mean)
        spread = [np.broadcast_to(np.asarray(each, float), self.dimension) for each in (shape, mean_precision)]
        self.prior_natural = self.encode(*spread, np.asarray(mean, float), np.asarray(rate, float))

    @staticmethod
    def encode(shape: Array, mean_precision: Array, mean: Array, rate: Array) -> Array:
        return np.concatenate([shape, mean_precision, mean_precision * mean, rate + mean_precision * mean**2 / 2])

    def decode(self, natural: Array) -> tuple[Array, Array, Array, Array]:
        """shape, mean_precision, mean, rate, each (D,)."""
        shape, mean_precision, total, length = natural.reshape(4, self.dimension)
        mean = total / mean_precision
        return shape, mean_precision, mean, length - mean_precision * mean**2 / 2

    def natural(self, **component: Array) -> Array:
        return self.encode(*(component[name] for name in ("shape", "mean_precision", "mean", "rate")))

    def sufficient_statistics(self, rows: Array) -> Array:
        mask, filled = observed(rows)
        return np.hstack([mask / 2, mask, filled, filled**2 / 2])

    def log_base_measure(self, rows: Array) -> Array:
        return np.asarray(-observed(rows)[0].sum(1) / 2 * LOG_2PI)

    def log_normaliser(self, natural: Array) -> float:
        shape, mean_precision, _, rate = self.decode(natural)
        return float((gammaln(shape) - shape * np.log(rate) + 0.5 * (LOG_2PI - np.log(mean_precision))).sum())

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        shape, mean_precision, mean, rate = self.decode(natural)
        constant = digamma(shape) - np.log(rate) - LOG_2PI - 1 / mean_precision
        return np.asarray(0.5 * (mask * (constant - shape / rate * (filled - mean) ** 2)).sum(1))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        shape, mean_precision, mean, rate = self.decode(natural)
        scale = np.sqrt(rate * (mean_precision + 1) / (shape * mean_precision))
        return np.asarray((mask * stats.t.logpdf(filled, 2 * shape, mean, scale)).sum(1))

    def kl(self, natural: Array) -> float:
        shape, mean_precision, mean, rate = self.decode(natural)
        prior_shape, prior_precision, prior_mean, prior_rate = self.decode(self.prior_natural)
        shift = prior_precision / 2 * shape / rate * (mean - prior_mean) ** 2
        divergence = gamma_kl(shape, rate, prior_shape, prior_rate)
        return float((precision_kl(mean_precision, prior_precision) + shift + divergence).sum())

    def predictive_mean(self, natural: Array) -> Array:
        return self.decode(natural)[2]

    def predictive_variance(self, natural: Array) -> Array:
        shape, mean_precision, _, rate = self.decode(natural)
        with np.errstate(divide="ignore"):
            variance = rate * (mean_precision + 1) / (mean_precision * np.maximum(shape - 1, 0.0))
        return np.asarray(variance)


class MissingSpherical(MissingLikelihood):
    """Normal columns of one variance, each with its own count (mathematics 1.7).

    natural = [kappa_d, kappa_d m_d, a, b + sum kappa_d m_d^2 / 2], T(x) = M [1, x], |o| / 2, sum x^2 / 2.
    """

    log_base_measure = MissingDiagonal.log_base_measure

    def __init__(self, mean: Array, mean_precision: float, shape: float, rate: float) -> None:
        self.dimension = len(mean)
        spread = np.full(self.dimension, float(mean_precision))
        self.prior_natural = self.encode(shape, spread, np.asarray(mean, float), rate)

    @staticmethod
    def encode(shape: float, mean_precision: Array, mean: Array, rate: float) -> Array:
        total = mean_precision * mean
        return np.concatenate([mean_precision, total, [shape, rate + total @ mean / 2]])

    def decode(self, natural: Array) -> tuple[float, Array, Array, float]:
        """shape, mean_precision (D,), mean (D,), rate."""
        mean_precision, total = natural[:-2].reshape(2, self.dimension)
        mean = total / mean_precision
        return float(natural[-2]), mean_precision, mean, float(natural[-1] - total @ mean / 2)

    def natural(self, **component: Array) -> Array:
        shape, rate = float(component["shape"]), float(component["rate"])
        return self.encode(shape, component["mean_precision"], component["mean"], rate)

    def of_column(self, natural: Array, column: int) -> Array:
        return super().of_column(natural[:-2], column)

    def sufficient_statistics(self, rows: Array) -> Array:
        mask, filled = observed(rows)
        return np.hstack([mask, filled, mask.sum(1, keepdims=True) / 2, (filled**2).sum(1, keepdims=True) / 2])

    def log_normaliser(self, natural: Array) -> float:
        shape, mean_precision, _, rate = self.decode(natural)
        return float(gammaln(shape) - shape * np.log(rate) + 0.5 * (LOG_2PI - np.log(mean_precision)).sum())

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        shape, mean_precision, mean, rate = self.decode(natural)
        constant = digamma(shape) - np.log(rate) - LOG_2PI - 1 / mean_precision
        return np.asarray(0.5 * (mask * (constant - shape / rate * (filled - mean) ** 2)).sum(1))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        """A multivariate Student t of the columns that a row has."""
        shape, mean_precision, mean, rate = self.decode(natural)
        found = np.zeros(len(rows))
        for places, present in by_columns(rows):
            if len(present):
                scale = np.diag(rate / shape * (1 + 1 / mean_precision[present]))
                found[places] = stats.multivariate_t.logpdf(
                    rows[np.ix_(places, present)], mean[present], scale, 2 * shape
                )
        return found

    def kl(self, natural: Array) -> float:
        shape, mean_precision, mean, rate = self.decode(natural)
        prior_shape, prior_precision, prior_mean, prior_rate = self.decode(self.prior_natural)
        shift = prior_precision / 2 * shape / rate * (mean - prior_mean) ** 2
        divergence = gamma_kl(*map(np.asarray, (shape, rate, prior_shape, prior_rate)))
        return float((precision_kl(mean_precision, prior_precision) + shift).sum() + divergence)

    def predictive_mean(self, natural: Array) -> Array:
        return self.decode(natural)[2]

    def conditional(self, natural: Array, rows: Array) -> tuple[Array, Array]:
        """The values of a row are those of a component whose precision they have updated."""
        mask, filled = observed(rows)
        shape, mean_precision, mean, rate = self.decode(natural)
        new_shape = shape + mask.sum(1) / 2
        new_rate = rate + (mask * mean_precision / (mean_precision + 1) * (filled - mean) ** 2).sum(1) / 2
        with np.errstate(divide="ignore"):
            variance = new_rate / np.maximum(new_shape - 1, 0.0)
        return np.broadcast_to(mean, rows.shape), variance[:, None] * (1 + 1 / mean_precision)


class MissingKnown(MissingLikelihood):
    """A known covariance: mu ~ N(m, P^-1) with a general P (mathematics 1.7).

    natural = [P row by row, P m], T(x) = [A row by row, A x] with A the inverse of the covariance of what is seen.
    """

    def __init__(self, covariance: Array, mean: Array, mean_precision: Any) -> None:
        self.covariance, self.dimension = np.asarray(covariance, float), len(mean)
        prior = np.asarray(mean_precision, float)
        self.prior_natural = self.encode(prior if prior.ndim else prior * np.linalg.inv(self.covariance), mean)

    @staticmethod
    def encode(mean_precision: Array, mean: Array) -> Array:
        return np.concatenate([mean_precision.ravel(), mean_precision @ mean])

    def decode(self, natural: Array) -> tuple[Array, Array]:
        """mean_precision (D, D), mean (D,)."""
        mean_precision = natural[: self.dimension**2].reshape(self.dimension, self.dimension)
        return mean_precision, np.linalg.solve(mean_precision, natural[self.dimension**2 :])

    def natural(self, **component: Array) -> Array:
        return self.encode(component["mean_precision"], component["mean"])

    def of_column(self, natural: Array, column: int) -> Array:
        matrix = natural.reshape(self.dimension + 1, self.dimension)
        return np.append(matrix[column], matrix[-1, column])

    def seen(self, rows: Array) -> Iterator[tuple[Array, Array, Array, Array]]:
        """For each set of columns that rows have: places of the rows, columns, A in all columns, rows with zeros."""
        for places, present in by_columns(rows):
            precision = np.zeros_like(self.covariance)
            precision[np.ix_(present, present)] = np.linalg.inv(self.covariance[np.ix_(present, present)])
            yield places, present, precision, np.nan_to_num(rows[places])

    def log_constant(self, present: Array) -> float:
        return -0.5 * (len(present) * LOG_2PI + float(np.linalg.slogdet(self.covariance[np.ix_(present, present)])[1]))

    def sufficient_statistics(self, rows: Array) -> Array:
        found = np.empty((len(rows), self.dimension * (self.dimension + 1)))
        for places, _, precision, filled in self.seen(rows):
            found[places] = np.hstack([np.tile(precision.ravel(), (len(places), 1)), filled @ precision])
        return found

    def log_base_measure(self, rows: Array) -> Array:
        found = np.empty(len(rows))
        for places, present, precision, filled in self.seen(rows):
            found[places] = self.log_constant(present) - quadratic_form(filled, precision) / 2
        return found

    def log_normaliser(self, natural: Array) -> float:
        mean_precision, mean = self.decode(natural)
        constant = self.dimension * LOG_2PI - np.linalg.slogdet(mean_precision)[1]
        return float(0.5 * (mean @ mean_precision @ mean + constant))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        mean_precision, mean = self.decode(natural)
        spread = np.linalg.inv(mean_precision)
        found = np.empty(len(rows))
        for places, present, precision, filled in self.seen(rows):
            distance = np.trace(precision @ spread) + quadratic_form(filled - mean, precision)
            found[places] = self.log_constant(present) - 0.5 * distance
        return found

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        mean_precision, mean = self.decode(natural)
        spread = self.covariance + np.linalg.inv(mean_precision)
        found = np.zeros(len(rows))
        for places, present in by_columns(rows):
            if len(present):
                found[places] = stats.multivariate_normal.logpdf(
                    rows[np.ix_(places, present)], mean[present], spread[np.ix_(present, present)]
                )
        return found

    def kl(self, natural: Array) -> float:
        (mean_precision, mean), (prior, prior_mean) = self.decode(natural), self.decode(self.prior_natural)
        trace = np.trace(np.linalg.solve(mean_precision, prior)) - self.dimension
        log_ratio = np.linalg.slogdet(mean_precision)[1] - np.linalg.slogdet(prior)[1]
        return float(0.5 * (trace + (mean - prior_mean) @ prior @ (mean - prior_mean) + log_ratio))

    def conditional(self, natural: Array, rows: Array) -> tuple[Array, Array]:
        mean_precision, mean = self.decode(natural)
        spread = self.covariance + np.linalg.inv(mean_precision)
        means, variances = np.empty_like(rows), np.empty_like(rows)
        for places, present in by_columns(rows):
            gain = spread[:, present] @ np.linalg.inv(spread[np.ix_(present, present)])
            means[places] = mean + (rows[np.ix_(places, present)] - mean[present]) @ gain.T
            variances[places] = np.diag(spread - gain @ spread[present])
        return means, variances


class MissingBernoulli(MissingLikelihood):
    """natural = [a_d, b_d], T(x) = M [x, 1 - x] (mathematics 1.7)."""

    def __init__(self, successes: Array, failures: Array) -> None:
        self.dimension = len(successes)
        self.prior_natural = np.concatenate([successes, failures]).astype(float)

    def decode(self, natural: Array) -> Array:
        """Successes and failures, shape (2, D)."""
        return natural.reshape(2, self.dimension)

    def natural(self, **component: Array) -> Array:
        return np.concatenate([component["successes"], component["failures"]])

    def sufficient_statistics(self, rows: Array) -> Array:
        mask, filled = observed(rows)
        return np.hstack([filled, mask - filled])

    def log_base_measure(self, rows: Array) -> Array:
        return np.zeros(len(rows))

    def log_normaliser(self, natural: Array) -> float:
        return float(betaln(*self.decode(natural)).sum())

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        successes, failures = self.decode(natural)
        constant = mask @ digamma(successes + failures)
        return np.asarray(filled @ digamma(successes) + (mask - filled) @ digamma(failures) - constant)

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        successes, failures = self.decode(natural)
        constant = mask @ np.log(successes + failures)
        return np.asarray(filled @ np.log(successes) + (mask - filled) @ np.log(failures) - constant)

    def kl(self, natural: Array) -> float:
        columns = zip(self.decode(natural).T, self.decode(self.prior_natural).T, strict=True)
        return sum(dirichlet_kl(posterior, prior) for posterior, prior in columns)

    def predictive_mean(self, natural: Array) -> Array:
        successes, failures = self.decode(natural)
        return np.asarray(successes / (successes + failures))

    def predictive_variance(self, natural: Array) -> Array:
        probability = self.predictive_mean(natural)
        return np.asarray(probability * (1 - probability))


class MissingCategorical(discrete.Categorical, MissingLikelihood):
    """A missing code is the most probable one, and its variance the probability of the others (mathematics 6.2)."""

    def of_column(self, natural: Array, column: int) -> Array:
        return self.columns(natural)[column]

    def mixed(self, responsibilities: Array, naturals: Sequence[Array], rows: Array) -> tuple[Array, Array]:
        mixtures = responsibilities @ np.array([self.probabilities(each) for each in naturals])
        columns = np.split(mixtures, np.cumsum(self.levels)[:-1], axis=1)
        modes = np.column_stack([column.argmax(1) for column in columns]).astype(float)
        return modes, 1.0 - np.column_stack([column.max(1) for column in columns])


class MissingPoisson(MissingLikelihood):
    """natural = [b_d, a_d] (a rate for every column), T(x) = M [1, x] (mathematics 1.7)."""

    def __init__(self, shape: Array, rate: Array) -> None:
        self.dimension = len(shape)
        self.prior_natural = np.concatenate([np.broadcast_to(np.asarray(rate, float), self.dimension), shape])

    def decode(self, natural: Array) -> tuple[Array, Array]:
        """shape, rate, each (D,)."""
        rate, shape = natural.reshape(2, self.dimension)
        return shape, rate

    def natural(self, **component: Array) -> Array:
        return np.concatenate([component["rate"], component["shape"]])

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack(observed(rows))

    def log_base_measure(self, rows: Array) -> Array:
        mask, filled = observed(rows)
        return np.asarray(-(mask * gammaln(filled + 1)).sum(1))

    def log_normaliser(self, natural: Array) -> float:
        shape, rate = self.decode(natural)
        return float((gammaln(shape) - shape * np.log(rate)).sum())

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        shape, rate = self.decode(natural)
        expected = filled @ (digamma(shape) - np.log(rate)) - mask @ (shape / rate)
        return np.asarray(expected + self.log_base_measure(rows))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        shape, rate = self.decode(natural)
        return np.asarray((mask * stats.nbinom.logpmf(filled, shape, rate / (rate + 1))).sum(1))

    def kl(self, natural: Array) -> float:
        shape, rate = self.decode(natural)
        return float(gamma_kl(shape, rate, *self.decode(self.prior_natural)).sum())

    def predictive_mean(self, natural: Array) -> Array:
        shape, rate = self.decode(natural)
        return np.asarray(shape / rate)

    def predictive_variance(self, natural: Array) -> Array:
        shape, rate = self.decode(natural)
        return np.asarray(shape / rate * (1 + 1 / rate))


class MissingNegativeBinomial(MissingLikelihood):
    """natural = [rho b_d, a_d] (a rate for every column), T(x) = M [rho, x] (mathematics 1.7 and 1i)."""

    def __init__(self, dispersion: Array, shape: Array, rate: Array) -> None:
        self.dispersion, self.dimension = np.asarray(dispersion, float), len(shape)
        self.prior_natural = np.concatenate([self.dispersion * rate, shape])

    def decode(self, natural: Array) -> tuple[Array, Array]:
        """a, b, each (D,)."""
        b, a = natural.reshape(2, self.dimension)
        return a, b

    def natural(self, **component: Array) -> Array:
        return np.concatenate([self.dispersion * component["rate"], component["shape"]])

    def sufficient_statistics(self, rows: Array) -> Array:
        mask, filled = observed(rows)
        return np.hstack([mask * self.dispersion, filled])

    def log_base_measure(self, rows: Array) -> Array:
        mask, filled = observed(rows)
        terms = gammaln(filled + self.dispersion) - gammaln(self.dispersion) - gammaln(filled + 1)
        return np.asarray((mask * terms).sum(1))

    def log_normaliser(self, natural: Array) -> float:
        return float(log_beta(*self.decode(natural)).sum())

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        a, b = self.decode(natural)
        total = digamma(a + b)
        expected = filled @ (digamma(a) - total) + mask @ (self.dispersion * (digamma(b) - total))
        return np.asarray(expected + self.log_base_measure(rows))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        mask, filled = observed(rows)
        a, b = self.decode(natural)
        terms = log_beta(a + filled, b + self.dispersion) - log_beta(a, b)
        return np.asarray((mask * terms).sum(1) + self.log_base_measure(rows))

    def kl(self, natural: Array) -> float:
        return float(beta_kl(*self.decode(natural), *self.decode(self.prior_natural)).sum())

    def predictive_mean(self, natural: Array) -> Array:
        a, b = self.decode(natural)
        return np.asarray(self.dispersion * a / np.where(b > 1, b - 1, b))

    def predictive_variance(self, natural: Array) -> Array:
        (a, b), rho = self.decode(natural), self.dispersion
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = rho * (rho + b - 1) * a * (a + b - 1) / ((b - 2) * (b - 1) ** 2)
        return np.where(b > 2, variance, np.inf)


def predictive_responsibilities(rows: Array, mixture: Specification, state: Globals) -> tuple[Array, Sequence[Array]]:
    """r^p of mathematics 6.2, with the parameters its columns belong to: the components and, last, the prior."""
    naturals = [*state.naturals, mixture.likelihood.prior_natural]
    with np.errstate(divide="ignore"):
        log_weights = np.log(mixture.process.expected_weights(state.eta))
    scores = log_weights + np.column_stack([mixture.likelihood.log_predictive(each, rows) for each in naturals])
    return np.exp(scores - logsumexp(scores, axis=1, keepdims=True)), naturals


def imputed(rows: Array, mixture: Specification, state: Globals) -> tuple[Array, Array]:
    """Rows with missing values filled by predictive means, and the variances of all entries, zero where observed."""
    likelihood = mixture.likelihood
    assert isinstance(likelihood, MissingLikelihood)
    responsibilities, naturals = predictive_responsibilities(rows, mixture, state)
    mean, variance = likelihood.mixed(responsibilities, naturals, rows)
    absent = np.isnan(rows)
    return np.where(absent, mean, rows), np.where(absent, variance, 0.0)
