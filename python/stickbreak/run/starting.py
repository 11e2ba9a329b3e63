"""Where the chains of `sample` start."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.io import arrays
from stickbreak.result.fit import Fit

# A name, a number of labels that are drawn at random, or labels.
Start: TypeAlias = str | int | NDArray[np.int64]

DISPERSED = "dispersed"
NAMES = ("single", "singletons", "ibhc", "one-on-top", "fit")
# Up to this many rows a chain may start with each row in a cluster of its own.
_MOST_SINGLETONS = 1000


@dataclass(frozen=True)
class Starts:
    """The starts that a user gave, which chains take in turn; none if they are to differ by chain."""

    given: tuple[Start, ...]

    @property
    def need_fit(self) -> bool:
        """Whether any of them is the fit, or depends on it."""
        return not self.given or any(isinstance(start, str) and start == "fit" for start in self.given)

    def filled(self, of_fit: NDArray[np.int64] | None, n: int, most: int) -> tuple[Start, ...]:
        """Return the starts, with the labels of the fit of all rows; None if all rows are equal.

        By default there are four, so that chains which agree have come together from afar: the fit, all rows apart (or
        at random, with twice the clusters of the fit), all rows together, and all rows at random. The process allows
        at most `most` clusters.
        """
        if self.given:
            together: Start = "single" if of_fit is None else of_fit
            return tuple(together if isinstance(start, str) and start == "fit" else start for start in self.given)
        n_clusters = 1 if of_fit is None else int(np.unique(of_fit).size)
        mixed = max(1, min(2 * n_clusters, n, most))
        apart = "singletons" if n <= min(_MOST_SINGLETONS, most) else mixed
        return ("single" if of_fit is None else of_fit, apart, "single", mixed)


def named(starts: Sequence[Start], given: Starts, chains: int) -> tuple[str, ...]:
    """Return a word for the start of each chain."""
    words = [_word(start) for start in starts]
    for place, start in enumerate(given.given or ("fit",)):
        if isinstance(start, str) and start == "fit":
            words[place] = "fit"
    return tuple(words[chain % len(words)] for chain in range(chains))


def _word(start: Start) -> str:
    if isinstance(start, int):
        return "random"
    return start if isinstance(start, str) else "labels"


def starts_of(init: object, rows: arrays.Rows, predict: Callable[[Fit], NDArray[np.int64]]) -> Starts:
    """Return the starts that `init` names: one, one for each chain, or none."""
    if init is None or (isinstance(init, str) and init == DISPERSED):
        return Starts(())
    if isinstance(init, list | tuple) and any(isinstance(one, str | Fit | list | tuple | np.ndarray) for one in init):
        return Starts(tuple(_start(one, f"init[{place}]", rows, predict) for place, one in enumerate(init)))
    return Starts((_start(init, "init", rows, predict),))


def _start(init: object, argument: str, rows: arrays.Rows, predict: Callable[[Fit], NDArray[np.int64]]) -> Start:
    if isinstance(init, str):
        known = (DISPERSED, *NAMES) if argument == "init" else NAMES
        return checks.word(argument, init, known, or_else=("labels of shape (n,)", "a Fit"))
    if isinstance(init, Fit):
        if init._state.dimension != rows.shape[1]:
            found = f"a fit with D = {init._state.dimension}"
            raise checks.invalid_argument(argument, found, f"a fit with D = {rows.shape[1]}, as in the data")
        return predict(init)
    allowed = " or ".join([*map(repr, (DISPERSED, *NAMES)), "labels of shape (n,)", "a Fit"])
    return arrays.labels(arrays.numeric(init, argument, allowed), argument, rows.shape[0])
