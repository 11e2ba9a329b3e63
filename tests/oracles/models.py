"""Oracle of the Gaussian models with a full covariance and of two processes (mathematics 1a, 1b, 2a, 2d and 2e).

The other likelihoods lie in `gaussians`, `discrete` and `missing`, the other processes in `sticks`.

Conventions: a component is described by a flat natural parameter; the posterior of a component is
`prior_natural + S` with `S = sum_n w_n r_n T(x_n)`; `log_normaliser` is the cumulant `c` of the conjugate family;
`log p(x | phi) = log h(x) + <T(x), t_0(phi)>`. E[precision] = dof * inverse(scale). Everything is in nats.
"""

from abc import ABC, abstractmethod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammaln, multigammaln

Array: TypeAlias = NDArray[np.floating[Any]]
LOG_2PI = float(np.log(2 * np.pi))


def log_determinant(matrix: Array) -> float:
    """log |matrix| of a positive definite matrix."""
    return float(np.linalg.slogdet(matrix)[1])


def quadratic_form(rows: Array, matrix: Array) -> Array:
    """y' A y for every row y."""
    return np.asarray(np.einsum("ni,ij,nj->n", rows, matrix, rows))


def wishart_log_normaliser(dof: float, scale: Array) -> float:
    """c_W(nu, B) of W(Lambda | nu, inverse(B))."""
    dimension = len(scale)
    return float(multigammaln(dof / 2, dimension) + dof * dimension / 2 * np.log(2) - dof / 2 * log_determinant(scale))


def wishart_expected_log_determinant(dof: float, scale: Array) -> float:
    """E log |Lambda|."""
    dimension = len(scale)
    digammas = digamma((dof + 1 - np.arange(1, dimension + 1)) / 2).sum()
    return float(digammas + dimension * np.log(2) - log_determinant(scale))


def wishart_kl(dof: float, scale: Array, prior_dof: float, prior_scale: Array) -> float:
    """KL between two Wishart distributions."""
    dimension = len(scale)
    trace = np.trace(np.linalg.solve(scale, prior_scale))
    return float(
        (dof - prior_dof) / 2 * wishart_expected_log_determinant(dof, scale)
        - dof / 2 * (dimension - trace)
        + wishart_log_normaliser(prior_dof, prior_scale)
        - wishart_log_normaliser(dof, scale)
    )


def dirichlet_kl(parameters: Array, prior: Array) -> float:
    """KL between two Dirichlet (with two entries: Beta) distributions."""
    expected_log = digamma(parameters) - digamma(parameters.sum())
    return float(
        gammaln(parameters.sum())
        - gammaln(parameters).sum()
        - gammaln(prior.sum())
        + gammaln(prior).sum()
        + ((parameters - prior) * expected_log).sum()
    )


# ------------------------------------------------------------------------------------------ observation models
class Likelihood(ABC):
    """A conjugate exponential-family observation model."""

    dimension: int
    prior_natural: Array

    @abstractmethod
    def natural(self, **component: Array) -> Array:
        """The natural parameter of one component, from the names of the public API."""

    @abstractmethod
    def sufficient_statistics(self, rows: Array) -> Array:
        """T(x) for every row, flat."""

    @abstractmethod
    def log_normaliser(self, natural: Array) -> float:
        """c(lambda)."""

    @abstractmethod
    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        """E_q log p(x | phi) for every row."""

    @abstractmethod
    def log_predictive(self, natural: Array, rows: Array) -> Array:
        """log p(x | lambda) for every row."""

    @abstractmethod
    def kl(self, natural: Array) -> float:
        """KL(q || p) of one component against the prior."""

    def log_base_measure(self, rows: Array) -> Array:
        """log h(x) for every row."""
        return np.full(len(rows), -self.dimension / 2 * LOG_2PI)

    def posterior(self, statistics: Array) -> Array:
        """The optimal parameter of a component with these statistics: lambda = lambda_0 + S (mathematics 0)."""
        return np.asarray(self.prior_natural + statistics)

    def gain(self, statistics: Array) -> float:
        """Gain of a component at its optimum without log h: c(lambda_0 + S) - c(lambda_0) (mathematics 0)."""
        return self.log_normaliser(self.posterior(statistics)) - self.log_normaliser(self.prior_natural)

    def log_marginal(self, rows: Array, weights: Array | None = None) -> float:
        """log m(A) of rows that share one component."""
        weights = np.ones(len(rows)) if weights is None else weights
        return float(self.gain(weights @ self.sufficient_statistics(rows)) + weights @ self.log_base_measure(rows))


class NormalWishart(Likelihood):
    """x | mu, Lambda ~ N(mu, inverse(Lambda)); Lambda ~ W(nu, inverse(B)); mu | Lambda ~ N(m, inverse(kappa Lambda)).

    natural = [nu, kappa, kappa m, vec(B + kappa m m')], T(x) = [1, 1, x, vec(x x')] (mathematics 1a).
    """

    def __init__(self, mean: Array, mean_precision: float, dof: float, scale: Array) -> None:
        self.dimension = len(mean)
        self.prior_natural = self.encode(dof, mean_precision, np.asarray(mean, float), np.asarray(scale, float))

    @staticmethod
    def encode(dof: float, mean_precision: float, mean: Array, scale: Array) -> Array:
        moment = scale + mean_precision * np.outer(mean, mean)
        return np.concatenate([[dof, mean_precision], mean_precision * mean, moment.ravel()])

    def decode(self, natural: Array) -> tuple[float, float, Array, Array]:
        """dof, mean_precision, mean, scale."""
        dimension, dof, mean_precision = self.dimension, float(natural[0]), float(natural[1])
        mean = natural[2 : 2 + dimension] / mean_precision
        moment = natural[2 + dimension :].reshape(dimension, dimension)
        return dof, mean_precision, mean, moment - mean_precision * np.outer(mean, mean)

    def natural(self, **component: Array) -> Array:
        parts = component["dof"], component["mean_precision"], component["mean"], component["scale"]
        return self.encode(float(parts[0]), float(parts[1]), parts[2], parts[3])

    def sufficient_statistics(self, rows: Array) -> Array:
        ones = np.ones((len(rows), 1))
        return np.hstack([ones, ones, rows, np.einsum("ni,nj->nij", rows, rows).reshape(len(rows), -1)])

    def log_normaliser(self, natural: Array) -> float:
        dof, mean_precision, _, scale = self.decode(natural)
        return wishart_log_normaliser(dof, scale) + self.dimension / 2 * (LOG_2PI - float(np.log(mean_precision)))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        dof, mean_precision, mean, scale = self.decode(natural)
        dimension = self.dimension
        distance = quadratic_form(rows - mean, np.linalg.inv(scale))
        constant = wishart_expected_log_determinant(dof, scale) - dimension * LOG_2PI - dimension / mean_precision
        return np.asarray(0.5 * (constant - dof * distance))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        dof, mean_precision, mean, scale = self.decode(natural)
        shrink = mean_precision / (mean_precision + 1)
        distance = quadratic_form(rows - mean, np.linalg.inv(scale))
        constant = student_constant(dof, scale) + self.dimension / 2 * np.log(shrink)
        return np.asarray(constant - (dof + 1) / 2 * np.log1p(shrink * distance))

    def kl(self, natural: Array) -> float:
        dof, mean_precision, mean, scale = self.decode(natural)
        prior_dof, prior_precision, prior_mean, prior_scale = self.decode(self.prior_natural)
        shift = mean - prior_mean
        ratio = prior_precision / mean_precision
        return float(
            self.dimension / 2 * (ratio - 1 - np.log(ratio))
            + prior_precision * dof / 2 * shift @ np.linalg.solve(scale, shift)
            + wishart_kl(dof, scale, prior_dof, prior_scale)
        )

    def plug_in_moments(self, natural: Array) -> tuple[Array, Array]:
        """Mean m and covariance B / nu that stand for a component in k-means++ (mathematics 5.2)."""
        dof, _, mean, scale = self.decode(natural)
        return mean, scale / dof


class ZeroMeanWishart(Likelihood):
    """x | Lambda ~ N(0, inverse(Lambda)); Lambda ~ W(nu, inverse(B)).

    natural = [nu, vec(B)], T(x) = [1, vec(x x')] (mathematics 1b).
    """

    def __init__(self, dof: float, scale: Array) -> None:
        self.dimension = len(scale)
        self.prior_natural = self.encode(dof, np.asarray(scale, float))

    @staticmethod
    def encode(dof: float, scale: Array) -> Array:
        return np.concatenate([[dof], scale.ravel()])

    def decode(self, natural: Array) -> tuple[float, Array]:
        """dof, scale."""
        return float(natural[0]), natural[1:].reshape(self.dimension, self.dimension)

    def natural(self, **component: Array) -> Array:
        return self.encode(float(component["dof"]), component["scale"])

    def sufficient_statistics(self, rows: Array) -> Array:
        products = np.einsum("ni,nj->nij", rows, rows).reshape(len(rows), -1)
        return np.hstack([np.ones((len(rows), 1)), products])

    def log_normaliser(self, natural: Array) -> float:
        return wishart_log_normaliser(*self.decode(natural))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        dof, scale = self.decode(natural)
        constant = wishart_expected_log_determinant(dof, scale) - self.dimension * LOG_2PI
        return np.asarray(0.5 * (constant - dof * quadratic_form(rows, np.linalg.inv(scale))))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        dof, scale = self.decode(natural)
        distance = quadratic_form(rows, np.linalg.inv(scale))
        return np.asarray(student_constant(dof, scale) - (dof + 1) / 2 * np.log1p(distance))

    def kl(self, natural: Array) -> float:
        return wishart_kl(*self.decode(natural), *self.decode(self.prior_natural))

    def plug_in_moments(self, natural: Array) -> tuple[Array, Array]:
        """As for `NormalWishart`."""
        dof, scale = self.decode(natural)
        return np.zeros(self.dimension), scale / dof


def student_constant(dof: float, scale: Array) -> float:
    """The constant that the predictive densities of both Gaussian models share."""
    dimension = len(scale)
    gammas = gammaln((dof + 1) / 2) - gammaln((dof + 1 - dimension) / 2)
    return float(gammas - dimension / 2 * np.log(np.pi) - log_determinant(scale) / 2)


# -------------------------------------------------------------------------------------------- processes
def counts_behind(counts: Array) -> Array:
    """N_{>k}."""
    return np.append(np.cumsum(counts[::-1])[::-1][1:], 0.0)


class Process(ABC):
    """A prior on the weights."""

    # Whether the bound depends on the order of the components, so that passes end with them in falling order of size.
    ordered: bool = True
    # Whether rows may belong to the infinite tail: the responsibilities then have one column more, the last.
    has_tail: bool = False

    @abstractmethod
    def update(self, counts: Array) -> Array:
        """The optimal parameters eta of q(weights) given the counts."""

    @abstractmethod
    def expected_log_weights(self, eta: Array) -> Array:
        """E log w_k."""

    @abstractmethod
    def kl(self, eta: Array) -> float:
        """KL of q(weights) against the prior."""

    @abstractmethod
    def collapsed(self, counts: Array) -> float:
        """sum_k N_k E log w_k - KL at the optimal eta."""

    @abstractmethod
    def expected_weights(self, eta: Array) -> Array:
        """E w_1 .. E w_K and, last, the left-over mass."""


class StickBreaking(Process):
    """Dirichlet process (mathematics 2a), or with a discount Pitman-Yor process (2e), with the nested truncation
    q(z_n > K) = 0: v_k ~ Beta(1 - d, concentration + k d), or Beta(first - d, ...) for sticks of a general Beta prior.
    """

    def __init__(self, concentration: float, discount: float = 0.0, first: float = 1.0) -> None:
        self.concentration, self.discount, self.first = concentration, discount, first

    def prior(self, n_components: int) -> Array:
        """The parameters of the sticks a priori, one row each."""
        places = np.arange(1, n_components + 1)
        first = np.full(n_components, self.first - self.discount)
        return np.column_stack([first, self.concentration + self.discount * places])

    def update(self, counts: Array) -> Array:
        return self.prior(len(counts)) + np.column_stack([counts, counts_behind(counts)])

    def expected_log_weights(self, eta: Array) -> Array:
        expected_log = digamma(eta) - digamma(eta.sum(1, keepdims=True))
        return np.asarray(expected_log[:, 0] + np.append(0.0, np.cumsum(expected_log[:, 1])[:-1]))

    def kl(self, eta: Array) -> float:
        return sum(dirichlet_kl(posterior, prior) for posterior, prior in zip(eta, self.prior(len(eta)), strict=True))

    def collapsed(self, counts: Array) -> float:
        eta, prior = self.update(counts), self.prior(len(counts))
        return float((betaln(*eta.T) - betaln(*prior.T)).sum())

    def expected_weights(self, eta: Array) -> Array:
        proportion = eta[:, 0] / eta.sum(1)
        rest = np.append(1.0, np.cumprod(1 - proportion))
        return np.append(proportion * rest[:-1], rest[-1])


class FiniteSymmetricDirichlet(Process):
    """weights ~ Dirichlet(concentration / K, ..., concentration / K) (mathematics 2d)."""

    ordered = False

    def __init__(self, concentration: float) -> None:
        self.concentration = concentration

    def update(self, counts: Array) -> Array:
        return self.concentration / len(counts) + counts

    def expected_log_weights(self, eta: Array) -> Array:
        return np.asarray(digamma(eta) - digamma(eta.sum()))

    def kl(self, eta: Array) -> float:
        return dirichlet_kl(eta, np.full(len(eta), self.concentration / len(eta)))

    def collapsed(self, counts: Array) -> float:
        n_components, total = len(counts), self.concentration
        share = total / n_components
        return float(
            gammaln(share + counts).sum()
            - gammaln(total + counts.sum())
            - n_components * gammaln(share)
            + gammaln(total)
        )

    def expected_weights(self, eta: Array) -> Array:
        return np.append(eta / eta.sum(), 0.0)
