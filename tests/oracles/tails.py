"""Oracle of rows with heavy tails (mathematics 1k): x | u ~ N(mu, inverse(u Lambda)), u ~ Gamma(f / 2, f / 2)."""

from dataclasses import dataclass

import numpy as np
from scipy import optimize
from scipy.special import digamma, gammaln, logsumexp, xlogy

from oracles.models import LOG_2PI, Array, NormalWishart, Process, quadratic_form, wishart_expected_log_determinant


@dataclass(frozen=True)
class Sums:
    """Sums of one component: N, S (natural), H, A = sum r E ln u, E = sum r {H[q(u)] + (D / 2 - 1) E ln u}."""

    count: float
    natural: Array
    entropy: float
    log: float
    rest: float

    def __add__(self, other: "Sums") -> "Sums":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Sums(*(a + b for a, b in pairs))

    @property
    def mass(self) -> float:
        """U, the sum of scales."""
        return float(self.natural[1])


def gamma_entropy(shape: Array, rate: Array) -> Array:
    return np.asarray(shape - np.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape))


def log_normaliser(f: float) -> float:
    return float(f / 2 * np.log(f / 2) - gammaln(f / 2))


def local(prior: NormalWishart, natural: Array, rows: Array, f: float) -> tuple[Array, float, Array]:
    """Scores with the scale integrated out, and q(u) = Gamma(a, b)."""
    dof, mean_precision, mean, scale = prior.decode(natural)
    dimension, a = prior.dimension, (f + prior.dimension) / 2
    e = dimension / mean_precision + dof * quadratic_form(rows - mean, np.linalg.inv(scale))
    constant = (wishart_expected_log_determinant(dof, scale) - dimension * np.log(np.pi * f)) / 2
    return constant + gammaln(a) - gammaln(f / 2) - a * np.log1p(e / f), a, (f + e) / 2


def before(f: float, n: int) -> tuple[Array, Array]:
    """q(u) of rows without a component: the distribution of scales itself."""
    return np.full(n, f / 2), np.full(n, f / 2)


def sums(prior: NormalWishart, rows: Array, responsibilities: Array, a: Array, b: Array) -> Sums:
    """Sums over rows of one component."""
    r, mean, log = responsibilities, a / b, digamma(a) - np.log(b)
    outer = np.einsum("ni,nj->nij", rows, rows).reshape(len(rows), -1)
    statistics = np.column_stack([np.ones(len(rows)), mean, mean[:, None] * rows, mean[:, None] * outer])
    rest = gamma_entropy(a, b) + (prior.dimension / 2 - 1) * log
    return Sums(r.sum(), r @ statistics, -xlogy(r, r).sum(), r @ log, r @ rest)


def contribution(of: Sums, f: float) -> float:
    """Q(f)."""
    return of.count * log_normaliser(f) + f / 2 * (of.log - of.mass) + of.rest


def bound(prior: NormalWishart, components: list[Sums], f: float, process: Process) -> float:
    """The evidence lower bound from sums at the optimal globals."""
    counts = np.array([one.count for one in components])
    start = prior.log_normaliser(prior.prior_natural)
    of_components = sum(
        prior.log_normaliser(prior.prior_natural + one.natural) - start + contribution(one, f) + one.entropy
        for one in components
    )
    return float(of_components - prior.dimension / 2 * LOG_2PI * counts.sum() + process.collapsed(counts))


def step(
    prior: NormalWishart, components: list[Sums], rows: Array, f: float, process: Process
) -> tuple[list[Sums], Array]:
    """One pass over all rows with all responsibilities: the new sums and the responsibilities."""
    eta = process.update(np.array([one.count for one in components]))
    found = [local(prior, prior.prior_natural + one.natural, rows, f) for one in components]
    weights = np.column_stack([scores for scores, _, _ in found]) + process.expected_log_weights(eta)
    r = np.exp(weights - logsumexp(weights, axis=1, keepdims=True))
    of = [sums(prior, rows, r[:, k], np.full(len(rows), a), b) for k, (_, a, b) in enumerate(found)]
    return of, r


def best_tail(components: list[Sums]) -> float:
    """The f with the largest sum of contributions."""
    total = sum(components[1:], components[0])
    found = optimize.minimize_scalar(
        lambda t: -contribution(total, float(np.exp(t))),
        bounds=(0, np.log(1000)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(np.exp(found.x))


def log_predictive(prior: NormalWishart, natural: Array, rows: Array, f: float) -> Array:
    """Log of the integral of Gamma(u | f / 2, f / 2) t(x | u) over u: the trapezoid rule in ln u."""
    dof, mean_precision, mean, scale = prior.decode(natural)
    dimension, width = prior.dimension, min(0.25, 0.5 / np.sqrt(f)) / 2
    t = np.arange(-80, 7, width)[:, None]
    u = np.exp(t)
    g = u * mean_precision / (u + mean_precision)
    square = quadratic_form(rows - mean, np.linalg.inv(scale))
    given = (
        gammaln((dof + 1) / 2)
        - gammaln((dof + 1 - dimension) / 2)
        + dimension / 2 * np.log(g / np.pi)
        - np.linalg.slogdet(scale)[1] / 2
        - (dof + 1) / 2 * np.log1p(g * square)
    )
    return np.asarray(logsumexp(log_normaliser(f) + f / 2 * (t - u) + given, axis=0) + np.log(width))
