"""The arguments of `fit` beside model, data and algorithm, for functions that pass them on."""

import os
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypedDict

from numpy.typing import ArrayLike

from stickbreak import checks
from stickbreak.errors import InvalidType
from stickbreak.result.fit import Fit
from stickbreak.result.history import Record
from stickbreak.result.topic_fit import TopicFit
from stickbreak.run.checkpoints import Checkpoint

Data: TypeAlias = ArrayLike | Callable[[], Iterable[ArrayLike]] | str | os.PathLike[str]


class OfAnyFit(TypedDict, total=False):
    """Arguments that make sense for every one of several fits."""

    n_components: int | None
    init: str | ArrayLike | Fit | TopicFit
    threads: int | None
    missing: str
    progress: bool | None
    callbacks: Iterable[Callable[[Record], object]]


class SeedOptions(OfAnyFit, total=False):
    """Arguments that `stability` passes on to every fit."""

    sample_weight: ArrayLike | None
    labels: ArrayLike | None
    exposure: ArrayLike | None


class FoldOptions(OfAnyFit, total=False):
    """Arguments that `cross_validate` passes on to every fit. Of `init`, it takes words only."""

    n_init: int


class FitOptions(FoldOptions, total=False):
    """All of them; `fit` has their defaults."""

    seed: int
    sample_weight: ArrayLike | None
    labels: ArrayLike | None
    exposure: ArrayLike | None
    checkpoint: Checkpoint | None
    cluster: object


def check_known(function: str, options: Iterable[str], known: Iterable[str]) -> None:
    """Refuse options of a function that are no arguments of `fit`; `known` are those that it passes on."""
    for name in options:
        if name not in FitOptions.__annotations__:
            others = sorted(known)
            hint = checks.did_you_mean(name, others) or f"further arguments are {', '.join(others)}"
            message = f"{function} has no argument {checks.quote(name)}; {hint}"
            raise InvalidType(message, argument=name, found=name, allowed=", ".join(others))
