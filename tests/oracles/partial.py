"""Oracle of partial labels (mathematics 3.2): passes in which rows keep components of their class, and the evidence.

Classes are integers; -1 stands for a row of unknown class, and for a free component.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from oracles.engines import Memo, order_by_size
from oracles.models import Array, Likelihood
from oracles.variational import Globals, Specification, local_scores, top_l_responsibilities

Classes = NDArray[np.int64]


def allowed(of_rows: Classes, of_components: Classes) -> NDArray[np.bool_]:
    """Which components each row may belong to, (n, K)."""
    return np.asarray((of_rows[:, None] == -1) | (of_rows[:, None] == of_components))


def classes_of_components(of_rows: Classes, components: Classes, n_components: int) -> Classes:
    """The class of each component: that of the rows that are in it, where any has one."""
    found = [set(of_rows[components == k]) - {-1} for k in range(n_components)]
    assert all(len(classes) < 2 for classes in found)
    return np.array([min(classes, default=-1) for classes in found])


def local_step(
    rows: Array,
    mixture: Specification,
    state: Globals,
    of_rows: Classes,
    of_components: Classes,
    sparsity: int | None = None,
) -> Array:
    """Optimal responsibilities with at most `sparsity` non-zeros a row, all of them for allowed components.

    `of_components` has the tail, which is free.
    """
    scores = local_scores(rows, mixture, state)
    return top_l_responsibilities(np.where(allowed(of_rows, of_components), scores, -np.inf), sparsity)


# Responsibilities of rows of known class that sum to less than this are none.
NO_ROW = 1e-10


class LabelledMemo(Memo):
    """`Memo` with classes of rows and components; with one batch it is full inference."""

    def __init__(self, *arguments: Any, of_rows: Classes, of_components: Classes, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.of_rows = of_rows
        self.of_components = np.append(of_components, [-1] * (self.responsibilities.shape[1] - len(of_components)))

    def visit(self, batch_index: int) -> None:
        batch = self.batches[batch_index]
        self.responsibilities[batch] = local_step(
            self.rows[batch], self.mixture, self.state, self.of_rows[batch], self.of_components, self.sparsity
        )
        self.present[batch] = 1.0

    def run(self, visits: Sequence[int], *, reorder: bool = True) -> None:
        super().run(visits, reorder=reorder)
        has_rows = self.responsibilities[self.of_rows >= 0].sum(0) >= NO_ROW
        self.of_components = np.where(has_rows, self.of_components, -1)

    def order(self) -> None:
        order = order_by_size(self.counts, self.mixture)
        self.responsibilities, self.of_components = self.responsibilities[:, order], self.of_components[order]


def log_evidence(rows: Array, likelihood: Likelihood, concentration: float, allowed: NDArray[np.bool_]) -> float:
    """log p(X, every row in an allowed component), by enumeration of all assignments to K components.

    The weights have a symmetric Dirichlet prior with the parameter `concentration` / K.
    """
    n, k = allowed.shape
    each, terms = concentration / k, []
    for labels in itertools.product(range(k), repeat=n):
        if not allowed[np.arange(n), labels].all():
            continue
        counts = np.bincount(labels, minlength=k)
        of_labels = gammaln(each + counts).sum() - k * gammaln(each) + gammaln(k * each) - gammaln(k * each + n)
        members = [np.flatnonzero(np.array(labels) == component) for component in range(k)]
        terms.append(of_labels + sum(likelihood.log_marginal(rows[one]) for one in members if len(one)))
    return float(logsumexp(terms))


def pairs_of_one_class(of_components: Classes, pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs that may be merged."""
    return [(a, b) for a, b in pairs if of_components[a] == of_components[b]]
