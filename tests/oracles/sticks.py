"""Oracle of the other stick-breaking priors: mathematics 2b, 2c and 2f.

`StickBreaking` of `models` has the nested truncation and the Pitman-Yor process. Conventions as there.
"""

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaln, digamma

from oracles.gaussians import gamma_kl
from oracles.models import Array, Process, StickBreaking, counts_behind, dirichlet_kl


def expected_log_sticks(eta: Array) -> tuple[Array, Array]:
    """E log v_k and E log (1 - v_k)."""
    expected = digamma(eta) - digamma(eta.sum(1, keepdims=True))
    return expected[:, 0], expected[:, 1]


class TruncatedStick(Process):
    """Blei and Jordan's truncation q(v_K = 1) = 1: free sticks 1 .. K - 1, no mass left over (mathematics 2b).

    The bound is that of the truncated process, and no lower bound of the evidence of the Dirichlet process.
    """

    def __init__(self, concentration: float, first: float = 1.0) -> None:
        self.concentration, self.first = concentration, first

    def update(self, counts: Array) -> Array:
        return np.column_stack([self.first + counts[:-1], self.concentration + counts_behind(counts)[:-1]])

    def expected_log_weights(self, eta: Array) -> Array:
        log_stick, log_rest = expected_log_sticks(eta)
        return np.append(log_stick, 0.0) + np.append(0.0, np.cumsum(log_rest))

    def kl(self, eta: Array) -> float:
        return sum(dirichlet_kl(parameters, np.array([self.first, self.concentration])) for parameters in eta)

    def collapsed(self, counts: Array) -> float:
        return float((betaln(*self.update(counts).T) - betaln(self.first, self.concentration)).sum())

    def expected_weights(self, eta: Array) -> Array:
        proportion = np.append(eta[:, 0] / eta.sum(1), 1.0)
        return np.append(proportion * np.append(1.0, np.cumprod(1 - proportion[:-1])), 0.0)


class TailedStick(Process):
    """Kurihara, Welling and Vlassis: q is the prior beyond K, where rows may belong too (mathematics 2c).

    Counts and log weights have K + 1 entries, the last for the tail: log sum_{k > K} exp E log w_k in closed form.
    """

    has_tail = True

    def __init__(self, concentration: float, first: float = 1.0) -> None:
        self.concentration, self.first = concentration, first
        self.log_stick = float(digamma(first) - digamma(first + concentration))
        self.log_rest = float(digamma(concentration) - digamma(first + concentration))

    @property
    def tail_log_weight(self) -> float:
        """E log v - log(1 - g) with g = exp E log (1 - v), both under the prior."""
        return self.log_stick - float(np.log(-np.expm1(self.log_rest)))

    def update(self, counts: Array) -> Array:
        return np.column_stack([self.first + counts[:-1], self.concentration + counts_behind(counts)[:-1]])

    def expected_log_weights(self, eta: Array) -> Array:
        log_stick, log_rest = expected_log_sticks(eta)
        return np.append(log_stick, self.tail_log_weight) + np.append(0.0, np.cumsum(log_rest))

    def kl(self, eta: Array) -> float:
        return sum(dirichlet_kl(parameters, np.array([self.first, self.concentration])) for parameters in eta)

    def collapsed(self, counts: Array) -> float:
        sticks = (betaln(*self.update(counts).T) - betaln(self.first, self.concentration)).sum()
        return float(sticks + counts[-1] * self.tail_log_weight)

    def expected_weights(self, eta: Array) -> Array:
        return StickBreaking.expected_weights(StickBreaking(self.concentration), eta)


class GammaConcentration(Process):
    """The nested or Blei and Jordan's truncation with concentration ~ Gamma(shape, rate) (mathematics 2f).

    eta has the free sticks and, as its last row, shape and rate of q(concentration).
    """

    def __init__(self, kind: type[StickBreaking] | type[TruncatedStick], shape: float, rate: float) -> None:
        self.kind, self.shape, self.rate = kind, shape, rate

    def update(self, counts: Array) -> Array:
        """Return sticks and q(concentration): the fixed point of the mean concentration."""

        def posterior(log_mean: float) -> tuple[Array, float, float]:
            eta = self.kind(float(np.exp(log_mean))).update(counts)
            return eta, self.shape + len(eta), float(self.rate - expected_log_sticks(eta)[1].sum())

        def excess(log_mean: float) -> float:
            _, shape, rate = posterior(log_mean)
            return float(np.log(shape / rate) - log_mean)

        eta, shape, rate = posterior(brentq(excess, -100.0, 100.0, xtol=1e-15, rtol=1e-15))
        return np.vstack([eta, [shape, rate]])

    def expected_log_weights(self, eta: Array) -> Array:
        return self.kind(1.0).expected_log_weights(eta[:-1])

    def kl(self, eta: Array) -> float:
        """E_q of log q(v) q(concentration) - log p(v | concentration) p(concentration)."""
        sticks, (shape, rate) = eta[:-1], eta[-1]
        log_stick, log_rest = expected_log_sticks(sticks)
        mean, expected_log = shape / rate, digamma(shape) - np.log(rate)
        log_posterior = (sticks[:, 0] - 1) * log_stick + (sticks[:, 1] - 1) * log_rest - betaln(*sticks.T)
        prior = expected_log + (mean - 1) * log_rest
        return float(
            (log_posterior - prior).sum() + gamma_kl(shape, rate, np.asarray(self.shape), np.asarray(self.rate))
        )

    def collapsed(self, counts: Array) -> float:
        eta = self.update(counts)
        shape, rate = eta[-1]
        mean, expected_log = shape / rate, digamma(shape) - np.log(rate)
        divergence = gamma_kl(shape, rate, np.asarray(self.shape), np.asarray(self.rate))
        return float(self.kind(mean).collapsed(counts) + (len(eta) - 1) * (expected_log - np.log(mean)) - divergence)

    def expected_weights(self, eta: Array) -> Array:
        return self.kind(1.0).expected_weights(eta[:-1])
