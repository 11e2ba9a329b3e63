"""Oracle of the engines: full, memoized, stochastic inference, the sequential start (mathematics 4.1 to 4.3 and 5.3).

Responsibilities of all rows are kept, so that every bound is recomputed from them and none from summaries.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oracles.models import Array
from oracles.variational import (
    Globals,
    Specification,
    elbo_of_responsibilities,
    general_elbo,
    global_step,
    local_step,
    top_l_responsibilities,
)


@dataclass(frozen=True)
class Pass:
    """Result of one pass: the globals, the responsibilities they were computed from, and the bound of both."""

    state: Globals
    responsibilities: Array
    elbo: float


def with_tail(responsibilities: Array, mixture: Specification, n_components: int) -> Array:
    """Responsibilities of K components with a column for the tail, empty, where the process has one."""
    if not mixture.process.has_tail or responsibilities.shape[1] == n_components + 1:
        return responsibilities
    return np.column_stack([responsibilities, np.zeros(len(responsibilities))])


def order_by_size(counts: Array, mixture: Specification) -> NDArray[np.intp]:
    """The order of columns in which counts fall, equal ones as they stood, the tail last (mathematics 2a.1 and 2c).

    If the process does not depend on the order, it stays unchanged. If sorting would lower the bound, all but the last
    component are sorted: the last one of Blei and Jordan's truncation takes the remaining weight, which at a
    large concentration suits a large component.
    """
    stay, n_components = np.arange(len(counts)), len(counts) - mixture.process.has_tail
    if mixture.process.ordered:
        for n_moved in (n_components, n_components - 1):
            order = stay.copy()
            order[:n_moved] = np.argsort(-counts[:n_moved], kind="stable")
            if mixture.process.collapsed(counts[order]) >= mixture.process.collapsed(counts):
                return order
    return stay


def fit_full(
    rows: Array,
    responsibilities: Array,
    mixture: Specification,
    passes: int,
    sparsity: int | None = None,
    weights: Array | None = None,
    *,
    reorder: bool = True,
) -> list[Pass]:
    """Full variational inference (mathematics 4.1); entry 0 is the state after the first global step, in its order.

    The passes start from the components in the order of `order_by_size`, and each of them ends with it.
    """

    masses = np.ones(len(rows)) if weights is None else weights

    def global_half(responsibilities: Array) -> Pass:
        state = global_step(rows, responsibilities, mixture, weights)
        return Pass(state, responsibilities, general_elbo(rows, responsibilities, mixture, state, weights))

    def ordered(last: Pass) -> Pass:
        order = order_by_size(masses @ last.responsibilities, mixture)
        return global_half(last.responsibilities[:, order]) if reorder else last

    responsibilities = with_tail(responsibilities, mixture, responsibilities.shape[1])
    trajectory = [global_half(responsibilities)]
    last = trajectory[0] if passes == 0 else ordered(trajectory[0])
    for _ in range(passes):
        last = ordered(global_half(local_step(rows, mixture, last.state, sparsity)))
        trajectory.append(last)
    return trajectory


class Memo:
    """Memoized inference over fixed batches (mathematics 4.3), from responsibilities of all rows.

    Every batch remembers its own until its first visit; a `late` batch contributes nothing before it.
    """

    def __init__(
        self,
        rows: Array,
        responsibilities: Array,
        mixture: Specification,
        batches: Sequence[NDArray[np.intp]],
        sparsity: int | None = None,
        weights: Array | None = None,
        late: Sequence[int] = (),
    ) -> None:
        self.rows, self.mixture, self.batches, self.sparsity = rows, mixture, batches, sparsity
        self.weights = np.ones(len(rows)) if weights is None else weights
        self.present = np.ones(len(rows))
        for batch_index in late:
            self.present[batches[batch_index]] = 0.0
        self.responsibilities = with_tail(responsibilities, mixture, responsibilities.shape[1]).copy()

    @property
    def masses(self) -> Array:
        """The weights of the rows that contribute."""
        return np.asarray(self.weights * self.present)

    @property
    def counts(self) -> Array:
        """The counts of what is remembered, the tail's last."""
        return np.asarray(self.masses @ self.responsibilities)

    @property
    def state(self) -> Globals:
        """The optimal globals for what is remembered."""
        return global_step(self.rows, self.responsibilities, self.mixture, self.masses)

    def visit(self, batch_index: int) -> None:
        """Local step on one batch at the current globals; what it remembers is replaced."""
        batch = self.batches[batch_index]
        self.responsibilities[batch] = local_step(self.rows[batch], self.mixture, self.state, self.sparsity)
        self.present[batch] = 1.0

    def order(self) -> None:
        """Put the components in the order of `order_by_size`, as a pass ends and the first one begins."""
        self.responsibilities = self.responsibilities[:, order_by_size(self.counts, self.mixture)]

    def run(self, visits: Sequence[int], *, reorder: bool = True) -> None:
        """One pass: the batches in this order, and the order of the components."""
        for batch_index in visits:
            self.visit(batch_index)
        if reorder:
            self.order()

    def elbo(self) -> float:
        """The bound of what is remembered, exact after every visit."""
        return elbo_of_responsibilities(self.rows, self.responsibilities, self.mixture, self.masses)


# ---------------------------------------------------------------------------------------------- stochastic steps
def learning_rate(step: int, delay: float, decay: float) -> float:
    """rho_t = (t + delay)^-decay, t = 1, 2, ... (mathematics 4.2)."""
    return float((step + delay) ** -decay)


@dataclass(frozen=True)
class Totals:
    """The statistics and counts that stochastic steps interpolate, K rows, the tail's last."""

    statistics: Array
    counts: Array

    @classmethod
    def of(cls, rows: Array, responsibilities: Array, mixture: Specification, weights: Array | None = None) -> "Totals":
        weighted = responsibilities if weights is None else responsibilities * weights[:, None]
        return cls(weighted.T @ mixture.likelihood.sufficient_statistics(rows), weighted.sum(0))

    def state(self, mixture: Specification) -> Globals:
        """Return the globals of these totals."""
        last = len(self.counts) - mixture.process.has_tail
        naturals = [mixture.likelihood.posterior(statistics) for statistics in self.statistics[:last]]
        return Globals(naturals, mixture.process.update(self.counts))

    def towards(self, other: "Totals", rate: float) -> "Totals":
        """(1 - rho) S + rho S'."""
        return Totals(
            (1 - rate) * self.statistics + rate * other.statistics, (1 - rate) * self.counts + rate * other.counts
        )

    def times(self, factor: float) -> "Totals":
        return Totals(factor * self.statistics, factor * self.counts)

    def ordered(self, mixture: Specification) -> "Totals":
        """With the components in the order of `order_by_size`."""
        order = order_by_size(self.counts, mixture)
        return Totals(self.statistics[order], self.counts[order])


def fit_stochastic(
    rows: Array,
    responsibilities: Array,
    mixture: Specification,
    batches: Sequence[NDArray[np.intp]],
    passes: int,
    delay: float,
    decay: float,
    sparsity: int | None = None,
    weights: Array | None = None,
    *,
    reorder: bool = True,
) -> Pass:
    """Stochastic inference: passes over the batches, a step each, and the full pass that closes it (mathematics 4.2).

    As in `fit_full`, passes start from and end with the order of `order_by_size`, the closing one too.
    """
    masses = np.ones(len(rows)) if weights is None else weights
    start = with_tail(responsibilities, mixture, responsibilities.shape[1])
    totals, step = Totals.of(rows, start, mixture, masses), 0
    for _ in range(passes):
        totals = totals.ordered(mixture) if reorder else totals
        for batch in batches:
            step += 1
            shares = local_step(rows[batch], mixture, totals.state(mixture), sparsity)
            seen = Totals.of(rows[batch], shares, mixture, masses[batch])
            scale = masses.sum() / masses[batch].sum()
            totals = totals.towards(seen.times(scale), learning_rate(step, delay, decay))
    totals = totals.ordered(mixture) if reorder else totals
    final = local_step(rows, mixture, totals.state(mixture), sparsity)
    if reorder:
        final = final[:, order_by_size(masses @ final, mixture)]
    state = global_step(rows, final, mixture, masses)
    return Pass(state, final, general_elbo(rows, final, mixture, state, masses))


# ----------------------------------------------------------------------------------------------------- start
def sequential_start(
    rows: Array,
    mixture: Specification,
    n_components: int,
    order: Sequence[int],
    weights: Array | None = None,
    n_single: int = 0,
) -> Array:
    """Responsibilities of Blei and Jordan's start (mathematics 5.3, soft, by predictive weights).

    One row after the other is scored against the rows before it.

    The first `n_single` rows have a component to themselves, which keeps components apart where the prior does not. No
    row starts in the tail.
    """
    weights = np.ones(len(rows)) if weights is None else weights
    n_columns = n_components + mixture.process.has_tail
    statistics = mixture.likelihood.sufficient_statistics(rows)
    totals = Totals(np.zeros((n_columns, statistics.shape[1])), np.zeros(n_columns))
    responsibilities = np.zeros((len(rows), n_columns))
    for place, index in enumerate(order):
        if place < n_single:
            responsibilities[index, place] = 1.0
        else:
            state = totals.state(mixture)
            predictive = [mixture.likelihood.log_predictive(natural, rows[[index]])[0] for natural in state.naturals]
            shares = mixture.process.expected_weights(state.eta)[:n_components]
            scores = np.asarray([np.log(shares) + predictive[:n_components]])
            responsibilities[index, :n_components] = top_l_responsibilities(scores)[0]
        weighted = weights[index] * responsibilities[index]
        totals = Totals(totals.statistics + np.outer(weighted, statistics[index]), totals.counts + weighted)
    return responsibilities
