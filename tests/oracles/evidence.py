"""Exact log p(X) of small data, by summing over all partitions or labellings."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy import stats
from scipy.special import betaln, gammaln, logsumexp

from oracles.models import Array, FiniteSymmetricDirichlet, Likelihood, Process, StickBreaking
from oracles.sticks import GammaConcentration, TailedStick, TruncatedStick


def set_partitions(n: int) -> Iterator[list[int]]:
    """All partitions of n items as restricted-growth strings."""

    def extend(prefix: list[int], n_blocks: int) -> Iterator[list[int]]:
        if len(prefix) == n:
            yield prefix
            return
        for block in range(n_blocks + 1):
            yield from extend([*prefix, block], max(n_blocks, block + 1))

    yield from extend([0], 1)


def log_ewens(sizes: Sequence[int], concentration: float, discount: float = 0.0) -> float:
    """log probability of a partition under the Chinese restaurant process, with a discount the two-parameter one.

    Item by item: a new block has the weight concentration + (number of blocks) discount, a block its size - discount.
    """
    log_probability, seen = 0.0, 0
    for blocks, size in enumerate(sizes):
        for already in range(size):
            weight = already - discount if already else concentration + blocks * discount
            # The first item of all opens a block whatever the concentration, which a discount lets be negative.
            log_probability += np.log(weight / (concentration + seen)) if seen else 0.0
            seen += 1
    return float(log_probability)


class Marginals:
    """log m(A) of subsets of the rows, each computed once."""

    def __init__(self, rows: Array, likelihood: Likelihood) -> None:
        self.rows, self.likelihood = rows, likelihood
        self.known: dict[tuple[int, ...], float] = {}

    def of(self, members: Sequence[int]) -> float:
        """log m(A) of the rows with these indices."""
        key = tuple(members)
        if key not in self.known:
            self.known[key] = self.likelihood.log_marginal(self.rows[list(key)])
        return self.known[key]

    def of_partition(self, labels: Sequence[int]) -> float:
        """The sum over the blocks of a partition."""
        assigned = np.asarray(labels)
        return sum(self.of(np.flatnonzero(assigned == block).tolist()) for block in np.unique(assigned))


def log_evidence_of_partitions(
    rows: Array, likelihood: Likelihood, log_prior: Callable[[Sequence[int]], float]
) -> float:
    """Exact log p(X) of a mixture, from the log probabilities of partitions in blocks of given sizes."""
    marginals = Marginals(rows, likelihood)
    terms = [
        log_prior(np.bincount(labels).tolist()) + marginals.of_partition(labels) for labels in set_partitions(len(rows))
    ]
    return float(logsumexp(terms))


def log_evidence_dirichlet_process(
    rows: Array, likelihood: Likelihood, concentration: float, discount: float = 0.0
) -> float:
    """Exact log p(X) of a Dirichlet-process or Pitman-Yor mixture."""
    return log_evidence_of_partitions(rows, likelihood, lambda sizes: log_ewens(sizes, concentration, discount))


# Logarithms of concentrations at equal distances, between which all Gamma priors here have their mass.
LOG_CONCENTRATIONS = np.linspace(-40.0, 12.0, 391)


def log_partition_of_sticks(sizes: Sequence[int], first: float, rest: float) -> float:
    """Return log p(partition) under sticks v_k ~ Beta(first, rest), all k.

    With f(S) the probability that the blocks S come at a stick or behind it, f(S) = E (1 - v)^N f(S) + sum over blocks
    b of E v^n_b (1 - v)^(N - n_b) f(S without b), where N counts the rows of S.
    """
    found: dict[frozenset[int], float] = {frozenset(): 0.0}
    for count in range(1, len(sizes) + 1):
        for chosen in map(frozenset, itertools.combinations(range(len(sizes)), count)):
            n = sum(sizes[block] for block in chosen)
            terms = [
                betaln(first + sizes[block], rest + n - sizes[block]) + found[chosen - {block}] for block in chosen
            ]
            found[chosen] = float(
                logsumexp(terms)
                - betaln(first, rest)
                - np.log(-np.expm1(betaln(first, rest + n) - betaln(first, rest)))
            )
    return found[frozenset(range(len(sizes)))]


def log_mean_over_gamma(given: Array, shape: float, rate: float) -> float:
    """log of the mean of exp(given), one value for each of LOG_CONCENTRATIONS, under a Gamma prior.

    The integral over the logarithm is a sum over points at equal distances, of an integrand that vanishes at both ends.
    """
    density = stats.gamma.logpdf(np.exp(LOG_CONCENTRATIONS), shape, scale=1 / rate) + LOG_CONCENTRATIONS
    return float(logsumexp(given + density) + np.log(LOG_CONCENTRATIONS[1] - LOG_CONCENTRATIONS[0]))


def log_evidence_gamma(rows: Array, likelihood: Likelihood, shape: float, rate: float) -> float:
    """Exact log p(X) of a Dirichlet-process mixture whose concentration has a Gamma prior.

    By the number of blocks, on which alone the concentration acts: p(X | a) = sum_K a^K Gamma(a) / Gamma(a + n) M_K.
    """
    marginals, n = Marginals(rows, likelihood), len(rows)
    by_number: list[list[float]] = [[] for _ in range(n + 1)]
    for labels in set_partitions(n):
        sizes = np.bincount(labels)
        by_number[len(sizes)].append(float(gammaln(sizes).sum()) + marginals.of_partition(labels))
    terms = [logsumexp(logs) + blocks * LOG_CONCENTRATIONS for blocks, logs in enumerate(by_number) if logs]
    values = np.exp(LOG_CONCENTRATIONS)
    return log_mean_over_gamma(logsumexp(terms, axis=0) + gammaln(values) - gammaln(values + n), shape, rate)


def log_marginals_by_counts(rows: Array, likelihood: Likelihood, n_components: int) -> dict[tuple[int, ...], float]:
    """log of the sum of p(X | labelling) over the labellings with the same counts, by these counts."""
    marginals, terms = Marginals(rows, likelihood), defaultdict(list)
    for labels in itertools.product(range(n_components), repeat=len(rows)):
        counts = tuple(np.bincount(labels, minlength=n_components).tolist())
        terms[counts].append(marginals.of_partition(labels))
    return {counts: float(logsumexp(logs)) for counts, logs in terms.items()}


def log_sum_over_counts(process: Process, by_counts: dict[tuple[int, ...], float]) -> float:
    """log p(X) of a process of K components: its collapsed form of hard counts is the probability of each labelling."""
    terms = [process.collapsed(np.array(counts, float)) + log_marginals for counts, log_marginals in by_counts.items()]
    return float(logsumexp(terms))


def log_evidence_finite(rows: Array, likelihood: Likelihood, concentration: float, n_components: int) -> float:
    """Exact log p(X) of a finite mixture, by summing over all labellings."""
    by_counts = log_marginals_by_counts(rows, likelihood, n_components)
    return log_sum_over_counts(FiniteSymmetricDirichlet(concentration), by_counts)


def log_evidence_truncated(
    rows: Array, likelihood: Likelihood, process: TruncatedStick | GammaConcentration, n_components: int
) -> float:
    """Exact log p(X) of a mixture whose process is truncated itself, the last stick being one (mathematics 2b)."""
    by_counts = log_marginals_by_counts(rows, likelihood, n_components)
    if isinstance(process, TruncatedStick):
        return log_sum_over_counts(process, by_counts)
    # As `TruncatedStick.collapsed`, at all concentrations at once.
    counts, concentrations = np.array(list(by_counts)), np.exp(LOG_CONCENTRATIONS)[:, None, None]
    behind = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1] - counts
    sticks = betaln(1 + counts[:, :-1], concentrations + behind[:, :-1]) - betaln(1, concentrations)
    given = logsumexp(sticks.sum(2) + list(by_counts.values()), axis=1)
    return log_mean_over_gamma(given, process.shape, process.rate)


def log_evidence(rows: Array, likelihood: Likelihood, process: Process, n_components: int) -> float:
    """Return the exact log p(X) that the bound of a process refers to; K matters only for truncated processes."""
    if isinstance(process, FiniteSymmetricDirichlet):
        return log_evidence_finite(rows, likelihood, process.concentration, n_components)
    if isinstance(process, TruncatedStick) or getattr(process, "kind", None) is TruncatedStick:
        assert isinstance(process, TruncatedStick | GammaConcentration)
        return log_evidence_truncated(rows, likelihood, process, n_components)
    if isinstance(process, GammaConcentration):
        return log_evidence_gamma(rows, likelihood, process.shape, process.rate)
    assert isinstance(process, StickBreaking | TailedStick)
    if process.first != 1.0:
        return log_evidence_of_partitions(
            rows, likelihood, lambda sizes: log_partition_of_sticks(sizes, process.first, process.concentration)
        )
    discount = process.discount if isinstance(process, StickBreaking) else 0.0
    return log_evidence_dirichlet_process(rows, likelihood, process.concentration, discount)
