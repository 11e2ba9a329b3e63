"""Oracle of blocks of columns, independent given the component (mathematics 1j): sums over the blocks' own oracles."""

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from oracles.missing import MissingLikelihood
from oracles.models import Array, Likelihood

Block = tuple[Sequence[int], Likelihood]


class Columns(Likelihood):
    """natural and T(x) are those of the blocks, one after another."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = blocks
        self.dimension = sum(len(columns) for columns, _ in blocks)
        self.prior_natural = np.concatenate([own.prior_natural for _, own in blocks])

    def parts(self, natural: Array) -> Iterator[tuple[Sequence[int], Likelihood, Array]]:
        """The columns, the oracle and the natural parameter of every block."""
        ends = list(accumulate(len(own.prior_natural) for _, own in self.blocks))
        for (columns, own), part in zip(self.blocks, np.split(natural, ends[:-1]), strict=True):
            yield columns, own, part

    def natural(self, **component: Any) -> Array:
        """From a dict of the arrays of each block, in the order of the blocks."""
        named = zip(self.blocks, component.values(), strict=True)
        return np.concatenate([own.natural(**values) for (_, own), values in named])

    def sufficient_statistics(self, rows: Array) -> Array:
        return np.hstack([own.sufficient_statistics(rows[:, columns]) for columns, own in self.blocks])

    def log_normaliser(self, natural: Array) -> float:
        return sum(own.log_normaliser(part) for _, own, part in self.parts(natural))

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        parts = self.parts(natural)
        return sum((own.expected_log_likelihood(part, rows[:, columns]) for columns, own, part in parts), np.zeros(1))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        parts = self.parts(natural)
        return sum((own.log_predictive(part, rows[:, columns]) for columns, own, part in parts), np.zeros(1))

    def kl(self, natural: Array) -> float:
        return sum(own.kl(part) for _, own, part in self.parts(natural))

    def log_base_measure(self, rows: Array) -> Array:
        return sum((own.log_base_measure(rows[:, columns]) for columns, own in self.blocks), np.zeros(1))


class MissingColumns(Columns, MissingLikelihood):
    """Blocks that all leave out single missing values."""

    def mixed(self, responsibilities: Array, naturals: Sequence[Array], rows: Array) -> tuple[Array, Array]:
        mean, variance = np.zeros(rows.shape), np.zeros(rows.shape)
        for parts in zip(*(self.parts(natural) for natural in naturals), strict=True):
            columns, own = list(parts[0][0]), parts[0][1]
            assert isinstance(own, MissingLikelihood)
            found = own.mixed(responsibilities, [part for *_, part in parts], rows[:, columns])
            mean[:, columns], variance[:, columns] = found
        return mean, variance


class Whole(Likelihood):
    """A block of which a row has all columns or none; a row that has none adds nothing."""

    def __init__(self, own: Likelihood) -> None:
        self.own, self.dimension, self.prior_natural = own, own.dimension, own.prior_natural

    def _filled(self, rows: Array, of: Callable[[Array], Array]) -> Array:
        """What `of` says of the rows that have the block, and zeros of the others."""
        present = ~np.isnan(rows).any(axis=1)
        found = of(rows[present])
        out = np.zeros((len(rows), *found.shape[1:]))
        out[present] = found
        return out

    def natural(self, **component: Any) -> Array:
        return self.own.natural(**component)

    def sufficient_statistics(self, rows: Array) -> Array:
        return self._filled(rows, self.own.sufficient_statistics)

    def log_normaliser(self, natural: Array) -> float:
        return self.own.log_normaliser(natural)

    def expected_log_likelihood(self, natural: Array, rows: Array) -> Array:
        return self._filled(rows, lambda rows: self.own.expected_log_likelihood(natural, rows))

    def log_predictive(self, natural: Array, rows: Array) -> Array:
        return self._filled(rows, lambda rows: self.own.log_predictive(natural, rows))

    def kl(self, natural: Array) -> float:
        return self.own.kl(natural)

    def log_base_measure(self, rows: Array) -> Array:
        return self._filled(rows, self.own.log_base_measure)
