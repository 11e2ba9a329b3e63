"""Checks of single arguments. Each returns the plain value or raises an error that names the argument."""

import math
import operator
import reprlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeGuard, TypeVar

import numpy as np

from stickbreak.errors import InvalidArgument, InvalidType, NotSupported

T = TypeVar("T")

# Largest integer that the core reads.
LARGEST = 2**63 - 1
# Maximum number of threads: starting thousands takes longer than most fits.
MAX_THREADS = 1024
# Maximum number of characters of a foreign error's message.
_LONGEST_MESSAGE = 500
# Minimum similarity of a word that is suggested, from 0 to 1.
_LEAST_SIMILAR = 0.5


def invalid_argument(argument: str, found: str, allowed: str, hint: str = "") -> InvalidArgument:
    """Return the error for a value that is not allowed."""
    return InvalidArgument(_sentence(argument, found, allowed, hint), argument=argument, found=found, allowed=allowed)


def invalid_type(argument: str, found: str, allowed: str, hint: str = "") -> InvalidType:
    """Return the error for a type that is not allowed."""
    return InvalidType(_sentence(argument, found, allowed, hint), argument=argument, found=found, allowed=allowed)


def not_supported(argument: str, found: str, reason: str, allowed: str) -> NotSupported:
    """Return the error for a valid request that is not supported, worded as in the core."""
    message = f"{found} is not supported: {reason}; use {allowed}"
    return NotSupported(message, argument=argument, found=found, allowed=allowed)


@contextmanager
def calling(argument: str, *others: str) -> Iterator[None]:
    """Name an argument as the user typed it in errors that call it by one of the other names."""
    try:
        yield
    except (InvalidArgument, InvalidType) as error:
        name = error.argument or ""
        if name not in others:
            raise
        message = f"{argument}{str(error).removeprefix(name)}"
        raise type(error)(message, argument=argument, found=error.found, allowed=error.allowed) from None


def _sentence(argument: str, found: str, allowed: str, hint: str) -> str:
    return f"{argument} must be {allowed}, but it is {found}{hint and '; ' + hint}"


def describe(value: object) -> str:
    """Return a short description of a value for an error message, including its type."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    if isinstance(value, str | int | float | complex | np.generic):
        return f"{reprlib.repr(value)} of type {type(value).__name__}"
    return f"an object of type {type(value).__name__}"


def integer(
    argument: str, value: object, *, minimum: int, maximum: int | None = None, or_else: Sequence[str] = ()
) -> int:
    """Return `value` as an int in `minimum..=maximum`; `or_else` lists other allowed values for the error message."""
    limits = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    allowed = ", or ".join([f"an integer {limits}", *or_else])
    if not is_integer(value):
        raise invalid_type(argument, describe(value), allowed)
    number = operator.index(value)  # type: ignore[arg-type]
    if maximum is None and number > LARGEST:
        allowed = ", or ".join([f"an integer from {minimum} to {LARGEST}", *or_else])
        raise invalid_argument(argument, f"{float_or_inf(number):.3g}", allowed)
    if number < minimum or (maximum is not None and number > maximum):
        raise invalid_argument(argument, str(number), allowed)
    return number


def float_or_inf(value: float | np.number) -> float:
    """Return `value` as a float; infinity for an integer that overflows."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def seed(value: object) -> int:
    """Return the argument `seed`, an unsigned integer of 64 bits."""
    return integer("seed", value, minimum=0, maximum=2**64 - 1)


def threads(value: object) -> int | None:
    """Return the argument `threads`; None means one per core."""
    return None if value is None else integer("threads", value, minimum=1, maximum=MAX_THREADS, or_else=["None"])


def is_integer(value: object) -> bool:
    """Return whether `value` is an integer; excludes booleans, and times, which NumPy counts as integers."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_number(value: object) -> TypeGuard[float | np.number]:
    """Return whether `value` is a real scalar."""
    return is_integer(value) or isinstance(value, float | np.floating)


def within(argument: str, value: object, rule: Mapping[str, Any]) -> float:
    """Return `value` as a float after checking it against the range of a parameter of the registry."""
    if not is_number(value):
        raise invalid_type(argument, describe(value), rule["allowed"])
    number = float_or_inf(value)
    least, greatest = rule["range"]
    if not least <= number <= greatest:
        raise invalid_argument(argument, str(number), rule["allowed"])
    return number


def share(argument: str, value: object) -> float:
    """Return `value` as a float after checking that it lies above 0 and below 1."""
    allowed = "a number above 0 and below 1"
    if not is_number(value):
        raise invalid_type(argument, describe(value), allowed)
    number = float_or_inf(value)
    if not 0.0 < number < 1.0:
        raise invalid_argument(argument, str(number), allowed)
    return number


def non_negative(argument: str, value: object, or_else: str = "") -> float:
    """Return `value` as a finite float of at least 0; the error ends with what else is allowed."""
    allowed = f"a finite number of at least 0{or_else}"
    if not is_number(value):
        raise invalid_type(argument, describe(value), allowed)
    number = float_or_inf(value)
    if not 0.0 <= number < float("inf"):
        raise invalid_argument(argument, str(number), allowed)
    return number


def flag(argument: str, value: object) -> bool:
    """Return `value` after checking that it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise invalid_type(argument, describe(value), "True or False")
    return bool(value)


def word(argument: str, value: object, known: Sequence[str], *, or_else: Sequence[str] = ()) -> str:
    """Return `value` after checking that it is one of the `known` words; the error suggests the closest one."""
    allowed = " or ".join([*map(repr, known), *or_else])
    if not isinstance(value, str):
        raise invalid_type(argument, describe(value), allowed)
    if value not in known:
        raise invalid_argument(argument, quote(value), allowed, did_you_mean(value, known))
    return value


def has_surrogate(text: str) -> bool:
    """Return whether a text has a lone surrogate, so that it cannot be written as UTF-8."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def quote(value: str) -> str:
    """Return a word in quotation marks, shortened if it is long."""
    return reprlib.repr(value)


def brief(error: Exception) -> str:
    """Return the message of a foreign error, cut off where it is long: some quote what they read."""
    text = str(error)
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."


def did_you_mean(value: str, known: Sequence[str], form: str = "{!r}") -> str:
    """Return a question that suggests the closest of the `known` words; empty if none is close."""
    import difflib

    by_lower = {each.lower(): each for each in known}
    nearest = difflib.get_close_matches(value.lower(), by_lower, n=1, cutoff=_LEAST_SIMILAR)
    return f"did you mean {form.format(by_lower[nearest[0]])}?" if nearest else ""


def items(argument: str, value: Any, allowed: str) -> list[Any]:
    """Return the items of an iterable as a list."""
    try:
        return list(value)
    except Exception as error:  # foreign iterators raise what they like
        raise invalid_type(argument, describe(value), allowed) from error


def instance(argument: str, value: object, kind: type[T], allowed: str) -> T:
    """Return `value` after checking that it is an instance of `kind`."""
    if isinstance(value, kind):
        return value
    hint = ""
    if isinstance(value, type) and issubclass(value, kind):
        hint = f"write {value.__name__}(...)"
    elif isinstance(value, str):
        hint = did_you_mean(value, [each.__name__ for each in kind.__subclasses__()], "{}()")
    raise invalid_type(argument, describe(value), allowed, hint)
