"""Oracle of the Gaussian models with a restricted or a known covariance: mathematics 1c, 1d and 1d'.

Conventions as in `models`.
"""

import numpy as np
from scipy import stats
from scipy.special import digamma, gammaln, logsumexp

from oracles.models import LOG_2PI, Array, Likelihood, log_determinant, quadratic_form


def gamma_kl(shape: Array, rate: Array, prior_shape: Array, prior_rate: Array) -> Array:
    """KL between two Gamma distributions of shape and rate, elementwise."""
    return np.asarray(
        (shape - prior_shape) * digamma(shape)
        - gammaln(shape)
        + gammaln(prior_shape)
        + prior_shape * np.log(rate / prior_rate)
        + shape * (prior_rate - rate) / rate
    )


def precision_kl(mean_precision: Array, prior_precision: Array) -> Array:
    """KL between two Gaussians of equal mean, a column: what kappa_0 and kappa alone add."""
    ratio = prior_precision / mean_precision
    return np.asarray(0.5 * (ratio - 1 - np.log(ratio)))


class DiagonalNormalGamma(Likelihood):
    """x_d ~ N(mu_d, 1 / lambda_d); lambda_d ~ Gamma(a, rate b_d); mu_d | lambda_d ~ N(m_d, 1 / (kappa lambda_d)).

    natural = [a, kappa, kappa m, b + kappa m^2 / 2], T(x) = [1/2, 1, x, x^2 / 2] (mathematics 1c).
    """

    def __init__(self, mean: Array, mean_precision: float, shape: float, rate: Array) -> None:
        self.dimension = len(mean)
        self.prior_natural = self.encode(shape, mean_precision, np.asarray(mean, float), np.asarray(rate, float))

    @staticmethod
    def encode(shape: float, mean_precision: float, mean: Array, rate: Array) -> Array:
        return np.concatenate([[shape, mean_precision], mean_precision * mean, rate + mean_precision * mean**2 / 2])

    def decode(self, natural: Array) -> tuple[float, float, Array, Array]:
        """shape, mean_precision, mean, rate."""
        dimension, mean_precision = self.dimension, float(natural[1])
        mean = natural[2 : 2 + dimension] / mean_precision
        return float(natural[0]), mean_precision, mean, natural[2 + dimension :] - mean_precision * mean**2 / 2

    def natural(self, **component: Array) -> Array:
        shape, mean_precision = float(component["shape"]), float(component["mean_precision"])
        return self.encode(shape, mean_precision, component["mean"], component["rate"])

    def sufficient_statistics(self, rows: Array) -> Array:
        ones = np.ones((len(rows), 1))
        return np.hstack([ones / 2, ones, rows, rows**2 / 2])

    def log_normaliser(self, natural: Array) -> float:
        shape, mean_precision, _, rate = self.decode(natural)
        gammas = (gammaln(shape) - shape * np.log(rate)).sum()
        return float(gammas + self.dimension / 2 * (LOG_2PI - np.log(mean_precision)))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        shape, mean_precision, mean, rate = self.decode(natural)
        constant = digamma(shape) - np.log(rate) - LOG_2PI - 1 / mean_precision
        return np.asarray(0.5 * (constant - shape / rate * (rows - mean) ** 2).sum(1))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        shape, mean_precision, mean, rate = self.decode(natural)
        scale = np.sqrt(rate * (mean_precision + 1) / (shape * mean_precision))
        return np.asarray(stats.t.logpdf(rows, 2 * shape, mean, scale).sum(1))

    def kl(self, natural: Array) -> float:
        shape, mean_precision, mean, rate = self.decode(natural)
        prior_shape, prior_precision, prior_mean, prior_rate = self.decode(self.prior_natural)
        shift = prior_precision / 2 * shape / rate * (mean - prior_mean) ** 2
        divergence = gamma_kl(np.asarray(shape), rate, np.asarray(prior_shape), prior_rate)
        return float(self.dimension * precision_kl(mean_precision, prior_precision) + (shift + divergence).sum())


class SphericalNormalGamma(Likelihood):
    """x ~ N(mu, I / lambda); lambda ~ Gamma(a, rate b); mu | lambda ~ N(m, I / (kappa lambda)).

    natural = [a, kappa, kappa m, b + kappa |m|^2 / 2], T(x) = [D/2, 1, x, |x|^2 / 2] (mathematics 1d').
    """

    def __init__(self, mean: Array, mean_precision: float, shape: float, rate: float) -> None:
        self.dimension = len(mean)
        self.prior_natural = self.encode(shape, mean_precision, np.asarray(mean, float), rate)

    @staticmethod
    def encode(shape: float, mean_precision: float, mean: Array, rate: float) -> Array:
        length = rate + mean_precision * mean @ mean / 2
        return np.concatenate([[shape, mean_precision], mean_precision * mean, [length]])

    def decode(self, natural: Array) -> tuple[float, float, Array, float]:
        """shape, mean_precision, mean, rate."""
        mean_precision = float(natural[1])
        mean = natural[2:-1] / mean_precision
        return float(natural[0]), mean_precision, mean, float(natural[-1] - mean_precision * mean @ mean / 2)

    def natural(self, **component: Array) -> Array:
        shape, mean_precision = float(component["shape"]), float(component["mean_precision"])
        return self.encode(shape, mean_precision, component["mean"], float(component["rate"]))

    def sufficient_statistics(self, rows: Array) -> Array:
        ones = np.ones((len(rows), 1))
        return np.hstack([ones * self.dimension / 2, ones, rows, (rows**2).sum(1, keepdims=True) / 2])

    def log_normaliser(self, natural: Array) -> float:
        shape, mean_precision, _, rate = self.decode(natural)
        gammas = gammaln(shape) - shape * np.log(rate)
        return float(gammas + self.dimension / 2 * (LOG_2PI - np.log(mean_precision)))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        shape, mean_precision, mean, rate = self.decode(natural)
        constant = digamma(shape) - np.log(rate) - LOG_2PI - 1 / mean_precision
        return np.asarray(0.5 * (self.dimension * constant - shape / rate * ((rows - mean) ** 2).sum(1)))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        shape, mean_precision, mean, rate = self.decode(natural)
        scale = np.eye(self.dimension) * rate * (mean_precision + 1) / (shape * mean_precision)
        return np.asarray(stats.multivariate_t.logpdf(rows, mean, scale, 2 * shape)).reshape(len(rows))

    def kl(self, natural: Array) -> float:
        shape, mean_precision, mean, rate = self.decode(natural)
        prior_shape, prior_precision, prior_mean, prior_rate = self.decode(self.prior_natural)
        shift = prior_precision / 2 * shape / rate * ((mean - prior_mean) ** 2).sum()
        divergence = gamma_kl(*map(np.asarray, (shape, rate, prior_shape, prior_rate)))
        return float(self.dimension * precision_kl(mean_precision, prior_precision) + shift + divergence)


class SphericalIndependent(Likelihood):
    """x ~ N(mu, I / lambda); lambda ~ Gamma(a_0, rate b_0) and, independently, mu ~ N(m_0, I / p_0): the product
    base measure, which has no conjugate form. q(mu) q(lambda) = N(m, I / p) Gamma(a, b) (mathematics 1d').

    "natural" = [a, p, m, b] and T(x) = [1, x, |x|^2]; nothing here adds up but the statistics.
    """

    def __init__(self, mean: Array, mean_precision: float, shape: float, rate: float) -> None:
        self.dimension = len(mean)
        self.prior_natural = self.encode(shape, mean_precision, np.asarray(mean, float), rate)

    @staticmethod
    def encode(shape: float, mean_precision: float, mean: Array, rate: float) -> Array:
        return np.concatenate([[shape, mean_precision], mean, [rate]])

    def decode(self, natural: Array) -> tuple[float, float, Array, float]:
        """shape, mean_precision, mean, rate."""
        return float(natural[0]), float(natural[1]), natural[2:-1], float(natural[-1])

    def natural(self, **component: Array) -> Array:
        shape, mean_precision = float(component["shape"]), float(component["mean_precision"])
        return self.encode(shape, mean_precision, component["mean"], float(component["rate"]))

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([np.ones((len(rows), 1)), rows, (rows**2).sum(1, keepdims=True)])

    def sweep(self, natural: Array, statistics: Array) -> Array:
        """One update of q(mu) and then of q(lambda)."""
        prior_shape, prior_precision, prior_mean, prior_rate = self.decode(self.prior_natural)
        shape, _, _, rate = self.decode(natural)
        count, total, squares = float(statistics[0]), statistics[1:-1], float(statistics[-1])
        mean_precision = prior_precision + shape / rate * count
        mean = (prior_precision * prior_mean + shape / rate * total) / mean_precision
        distances = squares - 2 * mean @ total + count * mean @ mean
        new_rate = prior_rate + 0.5 * (distances + count * self.dimension / mean_precision)
        return self.encode(prior_shape + count * self.dimension / 2, mean_precision, mean, float(new_rate))

    def posterior(self, statistics: Array) -> Array:
        """The fixed point of the sweeps that is reached from the prior."""
        natural = self.prior_natural
        for _ in range(10_000):
            before, natural = natural, self.sweep(natural, statistics)
            if (np.abs(before - natural) <= 1e-14 * np.abs(natural)).all():
                break
        return natural

    def gain(self, statistics: Array) -> float:
        natural = self.posterior(statistics)
        shape, mean_precision, mean, rate = self.decode(natural)
        count, total, squares = float(statistics[0]), statistics[1:-1], float(statistics[-1])
        distances = squares - 2 * mean @ total + count * (mean @ mean + self.dimension / mean_precision)
        expected = 0.5 * (count * self.dimension * (digamma(shape) - np.log(rate)) - shape / rate * distances)
        return float(expected) - self.kl(natural)

    def log_normaliser(self, natural: Array) -> float:
        raise NotImplementedError("the product base measure has no closed marginal likelihood")

    def log_marginal(self, rows: Array, weights: Array | None = None) -> float:
        """log m(A) by quadrature over lambda: given it, columns are independent Gaussians with correlated rows."""
        if weights is not None:
            raise NotImplementedError("weights have no meaning for an exact marginal of this model")
        prior_shape, prior_precision, prior_mean, prior_rate = self.decode(self.prior_natural)
        centred, n, values = rows - prior_mean, len(rows), np.exp(LOG_PRECISIONS)
        # The rows of a column have the covariance I / lambda + 1 1' / p_0, whose inverse and determinant are known.
        shared = values / (prior_precision + n * values)
        quadratic = values * ((centred**2).sum() - shared * (centred.sum(0) ** 2).sum())
        determinant = np.log1p(n * values / prior_precision) - n * LOG_PRECISIONS
        gaussian = -0.5 * (self.dimension * (n * LOG_2PI + determinant) + quadratic)
        prior = stats.gamma.logpdf(values, prior_shape, scale=1 / prior_rate)
        return float(log_integral(gaussian + prior + LOG_PRECISIONS))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        shape, mean_precision, mean, rate = self.decode(natural)
        constant = self.dimension * (digamma(shape) - np.log(rate) - LOG_2PI)
        distances = ((rows - mean) ** 2).sum(1) + self.dimension / mean_precision
        return np.asarray(0.5 * (constant - shape / rate * distances))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        """By quadrature over lambda: E_q p(x | mu, lambda) has no closed form here."""
        shape, mean_precision, mean, rate = self.decode(natural)
        values = np.exp(LOG_PRECISIONS)
        density = stats.gamma.logpdf(values, shape, scale=1 / rate) + LOG_PRECISIONS
        variances = 1 / values + 1 / mean_precision
        distances = ((rows - mean) ** 2).sum(1)[:, None]
        gaussians = -0.5 * (self.dimension * (LOG_2PI + np.log(variances)) + distances / variances)
        return log_integral(gaussians + density)

    def kl(self, natural: Array) -> float:
        shape, mean_precision, mean, rate = self.decode(natural)
        prior_shape, prior_precision, prior_mean, prior_rate = self.decode(self.prior_natural)
        means = self.dimension * precision_kl(mean_precision, prior_precision)
        means += prior_precision / 2 * ((mean - prior_mean) ** 2).sum()
        return float(means + gamma_kl(*map(np.asarray, (shape, rate, prior_shape, prior_rate))))


# Points for integrals over the logarithm of a precision: the integrands vanish smoothly at both ends, where points at
# equal distances are very accurate.
LOG_PRECISIONS = np.linspace(-30.0, 30.0, 3001)


def log_integral(log_values: Array) -> Array:
    """log of the integral over `LOG_PRECISIONS`, along the last axis."""
    return np.asarray(logsumexp(log_values, axis=-1) + np.log(LOG_PRECISIONS[1] - LOG_PRECISIONS[0]))


class KnownCovariance(Likelihood):
    """x ~ N(mu, inverse(Lambda)) with Lambda known; mu ~ N(m, inverse(kappa Lambda)).

    natural = [kappa, kappa m], T(x) = [1, x] (mathematics 1d, scaled prior).
    """

    def __init__(self, covariance: Array, mean: Array, mean_precision: float) -> None:
        self.covariance, self.precision = covariance, np.linalg.inv(covariance)
        self.dimension = len(mean)
        self.prior_natural = self.encode(mean_precision, np.asarray(mean, float))

    @staticmethod
    def encode(mean_precision: float, mean: Array) -> Array:
        return np.append(mean_precision, mean_precision * mean)

    @staticmethod
    def decode(natural: Array) -> tuple[float, Array]:
        """mean_precision, mean."""
        return float(natural[0]), natural[1:] / natural[0]

    def natural(self, **component: Array) -> Array:
        return self.encode(float(component["mean_precision"]), component["mean"])

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([np.ones((len(rows), 1)), rows])

    def log_base_measure(self, rows: Array) -> Array:
        constant = log_determinant(self.precision) - self.dimension * LOG_2PI
        return np.asarray(0.5 * (constant - quadratic_form(rows, self.precision)))

    def log_normaliser(self, natural: Array) -> float:
        mean_precision, mean = self.decode(natural)
        constant = self.dimension * (LOG_2PI - np.log(mean_precision)) - log_determinant(self.precision)
        return float(0.5 * (mean_precision * mean @ self.precision @ mean + constant))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        mean_precision, mean = self.decode(natural)
        constant = log_determinant(self.precision) - self.dimension * (LOG_2PI + 1 / mean_precision)
        return np.asarray(0.5 * (constant - quadratic_form(rows - mean, self.precision)))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        mean_precision, mean = self.decode(natural)
        gaussian = stats.multivariate_normal(mean, self.covariance * (1 + 1 / mean_precision))
        return np.asarray(gaussian.logpdf(rows)).reshape(len(rows))

    def kl(self, natural: Array) -> float:
        mean_precision, mean = self.decode(natural)
        prior_precision, prior_mean = self.decode(self.prior_natural)
        shift = mean - prior_mean
        means = prior_precision / 2 * shift @ self.precision @ shift
        return float(self.dimension * precision_kl(mean_precision, prior_precision) + means)


class KnownCovarianceGeneral(Likelihood):
    """As `KnownCovariance` with a prior precision that is no multiple of Lambda: mu ~ N(m, inverse(P)).

    natural = [vec P, P m], T(x) = [vec Lambda, Lambda x] (mathematics 1d, general prior).
    """

    log_base_measure = KnownCovariance.log_base_measure

    def __init__(self, covariance: Array, mean: Array, mean_precision: Array) -> None:
        self.covariance, self.precision = covariance, np.linalg.inv(covariance)
        self.dimension = len(mean)
        self.prior_natural = self.encode(np.asarray(mean_precision, float), np.asarray(mean, float))

    @staticmethod
    def encode(mean_precision: Array, mean: Array) -> Array:
        return np.concatenate([mean_precision.ravel(), mean_precision @ mean])

    def decode(self, natural: Array) -> tuple[Array, Array]:
        """mean_precision (D, D), mean."""
        mean_precision = natural[: self.dimension**2].reshape(self.dimension, self.dimension)
        return mean_precision, np.linalg.solve(mean_precision, natural[self.dimension**2 :])

    def natural(self, **component: Array) -> Array:
        return self.encode(component["mean_precision"], component["mean"])

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([np.tile(self.precision.ravel(), (len(rows), 1)), rows @ self.precision])

    def log_normaliser(self, natural: Array) -> float:
        mean_precision, mean = self.decode(natural)
        constant = self.dimension * LOG_2PI - log_determinant(mean_precision)
        return float(0.5 * (mean @ mean_precision @ mean + constant))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        mean_precision, mean = self.decode(natural)
        spread = np.trace(np.linalg.solve(mean_precision, self.precision))
        constant = log_determinant(self.precision) - self.dimension * LOG_2PI - spread
        return np.asarray(0.5 * (constant - quadratic_form(rows - mean, self.precision)))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        mean_precision, mean = self.decode(natural)
        gaussian = stats.multivariate_normal(mean, self.covariance + np.linalg.inv(mean_precision))
        return np.asarray(gaussian.logpdf(rows)).reshape(len(rows))

    def kl(self, natural: Array) -> float:
        (mean_precision, mean), (prior, prior_mean) = self.decode(natural), self.decode(self.prior_natural)
        shift = mean - prior_mean
        trace = np.trace(np.linalg.solve(mean_precision, prior))
        log_ratio = log_determinant(mean_precision) - log_determinant(prior)
        return float(0.5 * (trace - self.dimension + shift @ prior @ shift + log_ratio))
