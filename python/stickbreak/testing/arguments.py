"""Checks of the arguments of laws."""

from stickbreak import checks
from stickbreak.run.algorithms import Stochastic


def refuse_stochastic(algorithm: object) -> None:
    """Raise InvalidArgument for an algorithm whose bound may fall."""
    if isinstance(algorithm, Stochastic):
        found = "Stochastic(...)"
        raise checks.invalid_argument(
            "algorithm", found, "Full or Memoized, because stochastic steps may lower the bound"
        )


def numbers_of_threads(threads: object) -> list[int | None]:
    """Return the numbers of threads to compare, at least one."""
    allowed = "a sequence of numbers of threads, each from 1 on or None, with at least one"
    numbers = checks.items("threads", threads, allowed)
    if not numbers:
        raise checks.invalid_argument("threads", "empty", allowed)
    return [checks.threads(number) for number in numbers]
