"""Oracle of moves (mathematics 4.4 to 4.8): the change of the bound from the responsibilities of all rows.

The components come first and the tail, where the process has one, last. Weights are those of the components in falling
order of their counts, which is the order that a fit puts them into after a move.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from oracles.engines import Totals
from oracles.models import Array
from oracles.variational import Specification, collapsed_elbo, entropies, local_step, pair_gaps


def bound(rows: Array, responsibilities: Array, mixture: Specification, weights: Array | None = None) -> float:
    """The bound of these responsibilities, with the components in falling order of their counts."""
    masses = np.ones(len(rows)) if weights is None else weights
    order = falling(masses @ responsibilities, mixture)
    return float(collapsed_elbo(rows, responsibilities[:, order], mixture, weights))


def falling(counts: Array, mixture: Specification) -> Array:
    """The order in which counts fall, the tail last."""
    last = len(counts) - mixture.process.has_tail
    return np.concatenate([np.argsort(-counts[:last], kind="stable"), np.arange(last, len(counts))])


def merged(responsibilities: Array, a: int, b: int) -> Array:
    """Column b joined to column a."""
    joined = responsibilities.copy()
    joined[:, a] += joined[:, b]
    return np.delete(joined, b, axis=1)


def split(responsibilities: Array, target: int, shares: Array, mixture: Specification) -> Array:
    """Divide the target's column between the columns of `shares`: the first replaces it, the others come last."""
    parts = responsibilities[:, [target]] * shares
    last = responsibilities.shape[1] - mixture.process.has_tail
    dealt = np.column_stack([responsibilities[:, :last], parts[:, 1:], responsibilities[:, last:]])
    dealt[:, target] = parts[:, 0]
    return dealt


@dataclass(frozen=True)
class Ledger:
    """The quantities for judging changes: gains, counts, entropies and merge-entropy gaps of all components."""

    mixture: Specification
    totals: Totals
    entropies: Array
    gaps: Array

    @classmethod
    def of(cls, rows: Array, responsibilities: Array, mixture: Specification, weights: Array | None = None) -> "Ledger":
        return cls(
            mixture,
            Totals.of(rows, responsibilities, mixture, weights),
            entropies(responsibilities, weights),
            pair_gaps(responsibilities, weights),
        )

    def allocation(self, counts: Array) -> float:
        return float(self.mixture.process.collapsed(counts[falling(counts, self.mixture)]))

    def without_entropy(self, a: int, b: int) -> float:
        """U_ab: what merging the pair would change if no row were shared (mathematics 4.5)."""
        gain, statistics, counts = self.mixture.likelihood.gain, self.totals.statistics, self.totals.counts
        ratio = gain(statistics[a] + statistics[b]) - gain(statistics[a]) - gain(statistics[b])
        after = counts.copy()
        after[a] += after[b]
        return float(ratio) + self.allocation(np.delete(after, b)) - self.allocation(counts)

    def merge_change(self, a: int, b: int) -> float:
        """U_ab - G_ab."""
        return self.without_entropy(a, b) - float(self.gaps[a, b])


def split_change(
    rows: Array,
    responsibilities: Array,
    mixture: Specification,
    target: int,
    shares: Array,
    weights: Array | None = None,
) -> float:
    """sum_j gain(S_j) - gain(S) + L*(N') - L*(N) + sum_j H_j - H of the parts of a target (mathematics 4.6.2)."""
    dealt = split(responsibilities, target, shares, mixture)
    before, after = (Ledger.of(rows, each, mixture, weights) for each in (responsibilities, dealt))
    last = responsibilities.shape[1] - mixture.process.has_tail
    parts = [target, *range(last, last + shares.shape[1] - 1)]
    gain = mixture.likelihood.gain
    data = sum(gain(after.totals.statistics[j]) for j in parts) - gain(before.totals.statistics[target])
    weight = after.allocation(after.totals.counts) - before.allocation(before.totals.counts)
    return float(data + weight + after.entropies[parts].sum() - before.entropies[target])


def renormalised(rows: Array, responsibilities: Array, mixture: Specification, gone: int) -> Array:
    """The rows of a component dealt to the others in the proportions that they have of them; a row of which they have
    nothing by a local step without it (mathematics 4.7)."""
    left = np.delete(responsibilities, gone, axis=1)
    rest = left.sum(1, keepdims=True)
    alone = rest[:, 0] <= 0.0
    shared = np.divide(left, rest, out=np.zeros_like(left), where=rest > 0.0)
    if alone.any():
        totals = Totals.of(rows[~alone], shared[~alone], mixture)
        shared[alone] = local_step(rows[alone], mixture, totals.state(mixture))
    return shared


@dataclass(frozen=True)
class Merged:
    """Responsibilities after merges, and what each of them changed."""

    responsibilities: Array
    changes: Sequence[float]


def settle_merges(
    rows: Array,
    responsibilities: Array,
    mixture: Specification,
    pairs: Sequence[tuple[int, int]],
    weights: Array | None = None,
) -> Merged:
    """Merge pairs in the order of their gains before any merge, each component once, if they still raise the bound."""
    names = list(range(responsibilities.shape[1]))
    ledger = Ledger.of(rows, responsibilities, mixture, weights)
    first = {pair: ledger.merge_change(*pair) for pair in pairs}
    taken: set[int] = set()
    changes = []
    for pair in sorted((pair for pair in pairs if first[pair] > 0.0), key=lambda pair: -first[pair]):
        if taken & set(pair):
            continue
        a, b = sorted(names.index(name) for name in pair)
        gain = Ledger.of(rows, responsibilities, mixture, weights).merge_change(a, b)
        if gain > 0.0:
            changes.append(gain)
            responsibilities = merged(responsibilities, a, b)
            names.pop(b)
            taken |= set(pair)
    return Merged(responsibilities, changes)
