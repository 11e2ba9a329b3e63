"""Oracle of the models of counts, of binary features and of codes: mathematics 1e to 1i.

Conventions as in `models`.
"""

import numpy as np
from scipy.special import betaln, digamma, gammaln

from oracles.gaussians import gamma_kl
from oracles.models import Array, Likelihood, dirichlet_kl


class Multinomial(Likelihood):
    """x = counts of V words, p(x | phi) = n! / prod x_v! prod phi_v^x_v; phi ~ Dirichlet(beta).

    natural = beta, T(x) = x (mathematics 1e). Without the coefficient, the words of a row come in a given order.
    """

    def __init__(self, pseudo_counts: Array, coefficient: bool = True) -> None:
        self.prior_natural, self.coefficient = np.asarray(pseudo_counts, float), coefficient
        self.dimension = len(self.prior_natural)

    def natural(self, **component: Array) -> Array:
        return component["pseudo_counts"]

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.asarray(rows, float)

    def log_base_measure(self, rows: Array) -> Array:
        coefficients = gammaln(rows.sum(1) + 1) - gammaln(rows + 1).sum(1)
        return np.asarray(coefficients if self.coefficient else np.zeros(len(rows)))

    def log_normaliser(self, natural: Array) -> float:
        return float(gammaln(natural).sum() - gammaln(natural.sum()))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        return np.asarray(rows @ (digamma(natural) - digamma(natural.sum())) + self.log_base_measure(rows))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        total, lengths = natural.sum(), rows.sum(1)
        words = (gammaln(natural + rows) - gammaln(natural)).sum(1)
        return np.asarray(gammaln(total) - gammaln(total + lengths) + words + self.log_base_measure(rows))

    def kl(self, natural: Array) -> float:
        return dirichlet_kl(natural, self.prior_natural)


class Bernoulli(Likelihood):
    """x_d in {0, 1} with probability phi_d ~ Beta(a_d, b_d); natural = [a, b], T(x) = [x, 1 - x] (mathematics 1f)."""

    def __init__(self, successes: Array, failures: Array) -> None:
        self.dimension = len(successes)
        self.prior_natural = np.concatenate([successes, failures]).astype(float)

    def decode(self, natural: Array) -> Array:
        """Successes and failures, shape (2, D)."""
        return natural.reshape(2, self.dimension)

    def natural(self, **component: Array) -> Array:
        return np.concatenate([component["successes"], component["failures"]])

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([rows, 1 - rows])

    def log_base_measure(self, rows: Array) -> Array:
        return np.zeros(len(rows))

    def log_normaliser(self, natural: Array) -> float:
        return float(betaln(*self.decode(natural)).sum())

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        successes, failures = self.decode(natural)
        constant = digamma(successes + failures).sum()
        return np.asarray(rows @ digamma(successes) + (1 - rows) @ digamma(failures) - constant)

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        successes, failures = self.decode(natural)
        return np.asarray(rows @ np.log(successes) + (1 - rows) @ np.log(failures) - np.log(successes + failures).sum())

    def kl(self, natural: Array) -> float:
        columns = zip(self.decode(natural).T, self.decode(self.prior_natural).T, strict=True)
        return sum(dirichlet_kl(posterior, prior) for posterior, prior in columns)


class Categorical(Likelihood):
    """x_d in {0, ..., levels_d - 1} ~ phi_d, phi_d ~ Dirichlet(beta_d, ..., beta_d); x_d may be NaN (mathematics 1h).

    natural = [beta_dv], column after column, T(x) = [x_d = v].
    """

    def __init__(self, pseudo_counts: Array, levels: Array) -> None:
        self.levels = np.asarray(levels).astype(int)
        self.dimension = len(self.levels)
        self.prior_natural = np.repeat(np.broadcast_to(np.asarray(pseudo_counts, float), self.dimension), self.levels)

    def columns(self, natural: Array) -> list[Array]:
        """The pseudo-counts of each column."""
        return np.split(natural, np.cumsum(self.levels)[:-1])

    def flat(self, table: Array) -> Array:
        """Values by column and level, (D, L), as one vector."""
        return np.concatenate([row[:levels] for row, levels in zip(table, self.levels, strict=True)])

    def table(self, flat: Array) -> Array:
        """The opposite, with zeros beyond the levels of a column."""
        columns = self.columns(flat)
        return np.array([np.pad(column, (0, self.levels.max() - len(column))) for column in columns])

    def natural(self, **component: Array) -> Array:
        return self.flat(component["pseudo_counts"])

    def sufficient_statistics(self, rows: Array) -> Array:
        columns = [rows[:, [d]] == np.arange(levels) for d, levels in enumerate(self.levels)]
        return np.hstack(columns).astype(float)

    def log_base_measure(self, rows: Array) -> Array:
        return np.zeros(len(rows))

    def log_normaliser(self, natural: Array) -> float:
        return float(sum(gammaln(column).sum() - gammaln(column.sum()) for column in self.columns(natural)))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        logs = [digamma(column) - digamma(column.sum()) for column in self.columns(natural)]
        return self.sufficient_statistics(rows) @ np.concatenate(logs)

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        return self.sufficient_statistics(rows) @ np.log(self.probabilities(natural))

    def probabilities(self, natural: Array) -> Array:
        """Expected probabilities of all levels."""
        return np.concatenate([column / column.sum() for column in self.columns(natural)])

    def kl(self, natural: Array) -> float:
        columns = zip(self.columns(natural), self.columns(self.prior_natural), strict=True)
        return sum(dirichlet_kl(posterior, prior) for posterior, prior in columns)


class Poisson(Likelihood):
    """x_d ~ Poisson(theta_d), theta_d ~ Gamma(a_d, rate b); natural = [b, a], T(x) = [1, x] (mathematics 1g)."""

    def __init__(self, shape: Array, rate: float) -> None:
        self.dimension = len(shape)
        self.prior_natural = np.append(rate, shape).astype(float)

    def natural(self, **component: Array) -> Array:
        return np.append(component["rate"], component["shape"])

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([np.ones((len(rows), 1)), rows])

    def log_base_measure(self, rows: Array) -> Array:
        return np.asarray(-gammaln(rows + 1).sum(1))

    def log_normaliser(self, natural: Array) -> float:
        rate, shape = natural[0], natural[1:]
        return float((gammaln(shape) - shape * np.log(rate)).sum())

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        rate, shape = natural[0], natural[1:]
        return np.asarray(rows @ (digamma(shape) - np.log(rate)) - shape.sum() / rate + self.log_base_measure(rows))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        rate, shape = natural[0], natural[1:]
        columns = gammaln(shape + rows) - gammaln(shape) + shape * np.log(rate / (rate + 1)) - rows * np.log(rate + 1)
        return np.asarray(columns.sum(1) + self.log_base_measure(rows))

    def kl(self, natural: Array) -> float:
        return float(gamma_kl(natural[1:], natural[0], self.prior_natural[1:], self.prior_natural[0]).sum())


def log_beta(a: Array, b: Array) -> Array:
    """ln B(a, b); SciPy's own loses digits where one of them is large."""
    return np.asarray(gammaln(a) + gammaln(b) - gammaln(a + b))


def beta_kl(a: Array, b: Array, a0: Array, b0: Array) -> Array:
    """KL(Beta(a, b) || Beta(a0, b0)) of each pair."""
    total = digamma(a + b)
    return np.asarray(
        log_beta(a0, b0) - log_beta(a, b) + (a - a0) * (digamma(a) - total) + (b - b0) * (digamma(b) - total)
    )


class NegativeBinomial(Likelihood):
    """x_d ~ NB(rho_d, p_d), p_d ~ Beta(a_d, rho_d b); natural = [rho b, a], T(x) = [rho, x] (mathematics 1i)."""

    def __init__(self, dispersion: Array, shape: Array, rate: float) -> None:
        self.dispersion, self.dimension = np.asarray(dispersion, float), len(shape)
        self.prior_natural = np.concatenate([self.dispersion * rate, shape])

    def decode(self, natural: Array) -> tuple[Array, Array]:
        """a, b, each (D,)."""
        b, a = natural.reshape(2, self.dimension)
        return a, b

    def natural(self, **component: Array) -> Array:
        return np.concatenate([self.dispersion * component["rate"], component["shape"]])

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([np.broadcast_to(self.dispersion, rows.shape), rows])

    def log_base_measure(self, rows: Array) -> Array:
        rho = self.dispersion
        return np.asarray((gammaln(rows + rho) - gammaln(rho) - gammaln(rows + 1)).sum(1))

    def log_normaliser(self, natural: Array) -> float:
        return float(log_beta(*self.decode(natural)).sum())

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        a, b = self.decode(natural)
        total = digamma(a + b)
        constant = (self.dispersion * (digamma(b) - total)).sum()
        return np.asarray(rows @ (digamma(a) - total) + constant + self.log_base_measure(rows))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        a, b = self.decode(natural)
        return np.asarray(
            (log_beta(a + rows, b + self.dispersion) - log_beta(a, b)).sum(1) + self.log_base_measure(rows)
        )

    def kl(self, natural: Array) -> float:
        return float(beta_kl(*self.decode(natural), *self.decode(self.prior_natural)).sum())
