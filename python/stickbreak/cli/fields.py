"""Fields of algorithms, samplers and units as options: names, kinds of values and defaults come from the dataclasses.

A field has the help that a command gives, otherwise that of its docstring. So a new field is an option at once.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import MISSING, Field, dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import click

from stickbreak.cli.specifications import NONE, Decorator, described, kebab, option, owners_of


@dataclass(frozen=True)
class Said:
    """Help for a field, without its owners and its default; `flag` has the two names of a yes or no.

    `option` is the name of the option, if it is not that of the field.
    """

    text: str
    metavar: str | None = None
    flag: str | None = None
    option: str | None = None


class NumberOr(click.ParamType):  # type: ignore[type-arg]
    """A number, or one of some words."""

    def __init__(self, kind: type[int] | type[float], name: str, *words: str) -> None:
        self._kind, self._words = kind, words
        self.name = "|".join([name, *words])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        """Return the number or the word."""
        if value in self._words:
            return str(value)
        try:
            return self._kind(value)
        except ValueError:
            noun = "an integer" if self._kind is int else "a number"
            self.fail(f"{value!r} is neither {noun} nor {' nor '.join(map(repr, self._words))}", param, ctx)


def field_options(*kinds: type[Any], said: Mapping[str, Said], besides: Container[str] = ()) -> Decorator:
    """Return the decorator that gives a command an option for each field of the classes, first those in `said`."""
    owners = owners_of(kinds, besides)
    names = [*(name for name in said if name in owners), *(name for name in owners if name not in said)]

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name in reversed(names):
            command = _option(name, owners[name], said.get(name), of_all=len(owners[name]) == len(kinds))(command)
        return command

    return decorate


def _option(name: str, owned: list[tuple[type[Any], Field[Any]]], said: Said | None, *, of_all: bool) -> Decorator:
    said = said or Said(next((text for kind, _ in owned if (text := described(kind, name))), ""))
    owner = "" if of_all else f"{', '.join(kebab(kind.__name__) for kind, _ in owned)}: "
    field = owned[0][1]
    flag = said.flag or f"{option(name)}/--no-{option(name)[2:]}"
    defaults = dict.fromkeys(_shown(field.default, flag) for _, field in owned if field.default not in (None, MISSING))
    default = f" [default: {', '.join(defaults)}]" if defaults else ""
    help_ = f"{owner}{said.text}{default}"
    if field.type is bool:
        return click.option(flag, name, default=None, help=help_)
    kind, metavar = _type(name, field.type, said.metavar)
    return click.option(said.option or option(name), name, type=kind, metavar=metavar, help=help_)


def _shown(default: object, flag: str) -> str:
    if isinstance(default, bool):
        return flag.split("/")[not default].removeprefix("--")
    return f"{default:g}" if isinstance(default, float) else str(default)


def _type(name: str, hint: Any, metavar: str | None) -> tuple[Any, str | None]:
    """Return the type of the values of a field, and what stands for one in the help."""
    union = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    parts = [part for part in union if part is not NoneType]
    number = next((part for part in parts if part in (int, float)), None)
    words = [word for part in parts for word in get_args(part)]
    if number is None:
        return click.STRING, metavar or "|".join(words).upper()
    words += [NONE[name]] if name in NONE else []
    if words:
        return NumberOr(number, (metavar or "n").lower(), *words), None
    return number, metavar or ("N" if number is int else "X")
