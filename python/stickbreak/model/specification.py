"""Base of likelihoods, processes and moves. The registry of the core defines the allowed parameters."""

import math
import numbers
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.errors import NotSupported
from stickbreak.io.arrays import numeric
from stickbreak.io.room import check_room
from stickbreak.model.beta import Beta
from stickbreak.model.gamma import Gamma

_LARGEST_ARRAY_SHOWN = 9
_MOST_COLUMNS = 2**32
# The prior that may replace a number, by the kind of the parameter.
_PRIORS: dict[str, type[Gamma] | type[Beta]] = {"number or gamma": Gamma, "number or beta": Beta}
# Kinds of parameters that files of earlier versions do not have.
_LATER = ("pair", "column or total")

# The registry of the core: likelihoods, processes, moves and priors, by family and name.
REGISTRY: dict[str, Any] = _core.registry()


@dataclass(frozen=True, eq=False, repr=False)
class Specification:
    """A frozen, checked set of named parameters that the core knows under `_name`.

    Arrays are copied to read-only float64, so that values cannot change after the check. Subclasses are dataclasses
    with the same three options. Their fields are the parameters of their entry in the registry; a test compares names,
    types and defaults.
    """

    # The section of the registry that contains the class.
    _family: ClassVar[str]
    # Its name in the registry; by default the name of the class.
    _name: ClassVar[str]
    _entry: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "_family" in cls.__dict__:  # the base of a family
            return
        if "_name" not in cls.__dict__:
            cls._name = cls.__name__
        cls._entry = REGISTRY[cls._family][cls._name]

    def __post_init__(self) -> None:
        for field in fields(self):
            rule = self._entry["parameters"][field.name]
            object.__setattr__(self, field.name, _converted(field.name, getattr(self, field.name), rule))
        self._check()

    def _has_face(self, face: str) -> bool:
        """Whether it implements this face of its trait in the core."""
        return face in self._entry["faces"]

    def _supports(self, feature: str) -> bool:
        """Whether it supports this feature of the registry, given its parameters."""
        supports = self._entry["supports"]
        if feature not in supports:
            return False
        unless = supports[feature]
        if unless is not None and self._entry["parameters"][unless[0]]["kind"] == "column or total":
            # A column lacks what the total does.
            return getattr(self, unless[0]) is None
        return unless is None or getattr(self, unless[0]) != unless[1]

    def _check(self) -> None:
        """Ask the core whether the parameters are allowed."""
        raise NotImplementedError

    def _parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _to_core(self) -> tuple[str, dict[str, Any]]:
        return self._name, {name: _to_core(value) for name, value in self._parameters().items()}

    @classmethod
    def _from_core(cls, name: str, parameters: dict[str, Any]) -> Self:
        """Make the specification that the core calls `name`, using a subclass of this class."""
        for kind in cls.__subclasses__():
            if kind._name == name:
                return kind._of_core(parameters)
        known = [kind._name for kind in cls.__subclasses__()]
        hint = checks.did_you_mean(name, known) or f"it knows {', '.join(known)}"
        raise NotSupported(f"this version of stickbreak knows no {cls.__name__.lower()} called {name!r}; {hint}")

    @classmethod
    def _of_core(cls, parameters: dict[str, Any]) -> Self:
        """Make the specification from the parameters of the core."""
        # All parameters are required: a default for a missing one would give a different model.
        rules = cls._entry["parameters"].items()
        given = {field: rule for field, rule in rules if rule["kind"] not in _LATER or field in parameters}
        return cls(**{field: _from_core(parameters[field], rule) for field, rule in given.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        # Uses the constructor, because unpickled arrays would be writable.
        return _remade, (type(self), self._parameters())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, Specification):
            return NotImplemented
        return all(_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashable, self._parameters().values())))

    def __repr__(self) -> str:
        # None usually means that nothing was given. For parameters with another default, None is a choice and is shown.
        silent = {field.name for field in fields(self) if field.default is None}
        parameters = self._parameters().items()
        shown = [f"{name}={_shown(value)}" for name, value in parameters if value is not None or name not in silent]
        return f"{type(self).__name__}({', '.join(shown)})"


def _remade(kind: type[Specification], parameters: dict[str, Any]) -> Specification:
    return kind(**parameters)


def _to_core(value: Any) -> Any:
    # A pair, and a prior of a number, are passed as the array of two numbers, a flag as 0 or 1.
    if isinstance(value, Gamma):
        return np.array([value.shape, value.rate])
    if isinstance(value, Beta):
        return np.array([value.a, value.b])
    if isinstance(value, tuple):
        return np.array(value)
    return float(value) if isinstance(value, bool) else value


def _from_core(value: Any, rule: dict[str, Any]) -> Any:
    if rule["kind"] == "pair" and value is not None:
        return tuple(value.tolist())
    if rule["kind"] == "flag":  # the core keeps every number as a float
        return bool(value)
    if rule["kind"] == "integer" or (rule["kind"] == "column or total" and isinstance(value, float)):
        return int(value)
    prior = _PRIORS.get(rule["kind"])
    if prior is not None and isinstance(value, np.ndarray) and value.shape == (2,):
        return prior(*value.tolist())
    return value


def _converted(
    argument: str, value: object, rule: dict[str, Any]
) -> str | int | float | Gamma | Beta | tuple[float, float] | NDArray[np.float64] | None:
    kind, follows_data = rule["kind"], not rule["required"] and (rule["default"] is None or rule["estimated"])
    if value is None and follows_data:
        return None
    if isinstance(value, Gamma | Beta) and isinstance(value, _PRIORS.get(kind, ())):
        return value
    if kind == "word":
        return checks.word(argument, value, rule["words"], or_else=["None"] if follows_data else [])
    if kind == "flag":
        return checks.flag(argument, value)
    if kind == "integer":
        least, greatest = rule["range"]
        return checks.integer(argument, value, minimum=least, maximum=greatest)
    if kind == "column or total":
        return _column(argument, value)
    if kind == "pair":
        return _pair(argument, value)
    if kind == "number" and rule["default"] is not None:
        return _number(argument, value, rule, or_none=follows_data)
    return _number_or_array(argument, value, kind, follows_data)


def _column(argument: str, value: object) -> int | str:
    """Return a position or a name; whether there is such a column, the data show."""
    others = ["the name of a column", '"total"', "None"]
    if isinstance(value, str) and value:
        if checks.has_surrogate(value):
            found = f"{checks.quote(value)}, which has a lone surrogate"
            raise checks.invalid_argument(argument, found, "the name of a column that can be written as UTF-8")
        return str(value)
    return checks.integer(argument, value, minimum=0, maximum=_MOST_COLUMNS - 1, or_else=others)


def _pair(argument: str, value: object) -> tuple[float, float]:
    """Return two numbers; the core checks their range."""
    allowed = "two numbers, or None"
    if isinstance(value, Gamma | Beta):
        raise checks.invalid_type(argument, checks.describe(value), allowed)
    found = numeric(value, argument, allowed)
    if found.dtype.kind == "b":
        raise checks.invalid_type(argument, checks.describe(value), allowed)
    if found.shape != (2,):
        raise checks.invalid_argument(argument, f"numbers of shape {found.shape}", allowed)
    return float(found[0]), float(found[1])


def _number_or_array(argument: str, value: object, kind: str, follows_data: bool) -> float | NDArray[np.float64]:
    allowed = "a number" if kind == "number" else "an array of numbers"
    if follows_data:
        allowed += ", or None"
    if kind in _PRIORS:
        allowed = f"a number, or a {_PRIORS[kind].__name__} prior" + (", or None" if follows_data else "")
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        raise checks.invalid_type(argument, checks.describe(value), allowed)
    if isinstance(value, numbers.Real):
        return checks.float_or_inf(value)  # type: ignore[arg-type]
    found = numeric(value, argument, allowed)
    if found.ndim > 0 and kind in _PRIORS:
        raise checks.invalid_argument(argument, f"an array of shape {found.shape}", allowed)
    # A view may have far more values than memory. The core makes a copy, too.
    check_room(argument, found.shape, 2 * found.size)
    array = np.array(found, dtype=np.float64, order="C")
    if array.ndim == 0:
        return float(array)
    array.flags.writeable = False
    return array


def _number(argument: str, value: object, rule: dict[str, Any], *, or_none: bool) -> float:
    """Return `value` as a float after checking that it is finite.

    The core checks the range, but it does not know whether None is allowed.
    """
    allowed = rule["allowed"] + (", or None" if or_none else "")
    if not isinstance(value, numbers.Real):
        array = numeric(value, argument, allowed)
        if array.ndim > 0:
            raise checks.invalid_type(argument, checks.describe(value), allowed)
        value = array[()]
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        raise checks.invalid_type(argument, checks.describe(value), allowed)
    number = checks.float_or_inf(value)  # type: ignore[arg-type]
    least, greatest = rule["range"]
    if not math.isfinite(number) or (or_none and not least <= number <= greatest):
        raise checks.invalid_argument(argument, str(number), allowed)
    return number


def _equal(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        return np.array_equal(left, right)
    return type(left) is type(right) and left == right


def _hashable(value: object) -> object:
    return (value.shape, tuple(value.ravel().tolist())) if isinstance(value, np.ndarray) else value


def _shown(value: object) -> str:
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.size <= _LARGEST_ARRAY_SHOWN:
        return repr(value.tolist())
    return f"<{' x '.join(map(str, value.shape))} array>"
