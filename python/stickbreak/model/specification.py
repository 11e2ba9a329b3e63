"""What the specifications of likelihoods and processes share; a new one adds its fields and its name."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import Field, dataclass, fields
from typing import Any, ClassVar, Literal, Self, get_args, get_origin

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import NotSupported
from stickbreak.io.arrays import numeric
from stickbreak.model.gamma import Gamma

_LARGEST_ARRAY_SHOWN = 9


@dataclass(frozen=True, eq=False, repr=False)
class Specification:
    """A frozen, checked set of named parameters that the core knows under `_name`.

    Arrays are copied to read-only float64, so that what was checked stays what is used. Subclasses are
    dataclasses with the same three options; the kind of a field follows from its annotation: one of the words of a
    `Literal`, a flag, an integer, a number, a number or its `Gamma` prior, else an array of numbers.
    """

    _name: ClassVar[str]
    # The least value of an integer, where it is not one.
    _least: ClassVar[Mapping[str, int]] = {}
    # What a number may be, in the words of the core, where its range is the same for all data.
    _range: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, self._converted(field, getattr(self, field.name)))
        self._check()

    def _converted(self, field: "Field[Any]", value: object) -> str | int | float | Gamma | NDArray[np.float64] | None:
        if field.name in self._range:
            return _number(field.name, value, self._range[field.name])
        return _converted(field, value, self._least.get(field.name, 1))

    def _check(self) -> None:
        """Ask the core whether the parameters are allowed."""
        raise NotImplementedError

    def _parameters(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _to_core(self) -> tuple[str, dict[str, Any]]:
        return self._name, {name: _to_core(value) for name, value in self._parameters().items()}

    @classmethod
    def _from_core(cls, name: str, parameters: dict[str, Any]) -> Self:
        """Make the specification that the core calls `name`, among the subclasses of this class."""
        for kind in cls.__subclasses__():
            if kind._name == name:
                # All are needed: a default in the place of one that a file lacks would be another model.
                return kind(**{field.name: _from_core(field, parameters[field.name]) for field in fields(kind)})
        known = [kind._name for kind in cls.__subclasses__()]
        hint = checks.did_you_mean(name, known) or f"it knows {', '.join(known)}"
        raise NotSupported(f"this version of stickbreak knows no {cls.__name__.lower()} called {name!r}; {hint}")

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, because unpickled arrays would be writable.
        return _remade, (type(self), self._parameters())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, Specification):
            return NotImplemented
        return all(_equal(getattr(self, field.name), getattr(other, field.name)) for field in fields(self))

    def __hash__(self) -> int:
        return hash((type(self), *map(_hashable, self._parameters().values())))

    def __repr__(self) -> str:
        shown = [f"{name}={_shown(value)}" for name, value in self._parameters().items() if value is not None]
        return f"{type(self).__name__}({', '.join(shown)})"


def _remade(kind: type[Specification], parameters: dict[str, Any]) -> Specification:
    return kind(**parameters)


def _is_integer(field: "Field[Any]") -> bool:
    return field.type in (int, "int")


def _is_flag(field: "Field[Any]") -> bool:
    return field.type in (bool, "bool")


def _may_have_prior(field: "Field[Any]") -> bool:
    return Gamma in get_args(field.type)


def _to_core(value: Any) -> Any:
    # A prior of a number travels as the array of its two parameters, a flag as 0 or 1.
    if isinstance(value, Gamma):
        return np.array([value.shape, value.rate])
    return float(value) if isinstance(value, bool) else value


def _from_core(field: "Field[Any]", value: Any) -> Any:
    if _is_flag(field):  # the core keeps every number as a float
        return bool(value)
    if _is_integer(field):
        return int(value)
    if _may_have_prior(field) and isinstance(value, np.ndarray) and value.shape == (2,):
        return Gamma(*value.tolist())
    return value


def _converted(
    field: "Field[Any]", value: object, least: int
) -> str | int | float | Gamma | NDArray[np.float64] | None:
    if (value is None and field.default is None) or (isinstance(value, Gamma) and _may_have_prior(field)):
        return value
    if get_origin(field.type) is Literal:
        return checks.word(field.name, value, get_args(field.type))
    if _is_flag(field):
        return checks.flag(field.name, value)
    if _is_integer(field):
        return checks.integer(field.name, value, minimum=least, maximum=checks.MAX_COMPONENTS)
    allowed = "a number" if field.type in (float, float | None) else "an array of numbers"
    if field.default is None:
        allowed += ", or None"
    if _may_have_prior(field):
        allowed = "a number, or a Gamma prior"
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        raise checks.invalid_type(field.name, checks.describe(value), allowed)
    if isinstance(value, numbers.Real):
        return checks.float_or_inf(value)  # type: ignore[arg-type]
    array = np.array(numeric(value, field.name, allowed), dtype=np.float64, order="C")
    if array.ndim == 0:
        return float(array)
    if _may_have_prior(field):
        raise checks.invalid_argument(field.name, f"an array of shape {array.shape}", allowed)
    array.flags.writeable = False
    return array


def _number(argument: str, value: object, allowed: str) -> float:
    """Return `value` as a float where it is a finite number; whether it is in its range is for the core to say."""
    if not isinstance(value, numbers.Real):
        array = numeric(value, argument, allowed)
        if array.ndim > 0:
            raise checks.invalid_type(argument, checks.describe(value), allowed)
        value = array[()]
    if isinstance(value, bool | np.bool_ | np.timedelta64):
        raise checks.invalid_type(argument, checks.describe(value), allowed)
    number = checks.float_or_inf(value)  # type: ignore[arg-type]
    if not math.isfinite(number):
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
