"""Likelihoods, processes and schedules as options: names, parameters and help come from the classes themselves.

Nothing here names a likelihood or a process, so a new one is on the command line as soon as its class exists.
"""

import re
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import MISSING, Field, fields
from inspect import getdoc
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import click

from stickbreak import checks
from stickbreak.cli.options import read_values
from stickbreak.errors import InvalidArgument
from stickbreak.model.specification import Specification

T = TypeVar("T")

# What docstrings say of priors of parameters, which only Python can give.
_OF_PRIORS = re.compile(r"; a (?:Gamma|Beta) prior [^.]*| (?:A (?:Gamma|Beta) prior|It is positive if) [^.]*\.")

# Words for what is None in Python, where an option left out means the default.
NONE = {"sparsity": "dense", "margin": "none"}

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Kind(click.ParamType, Generic[T]):  # type: ignore[type-arg]
    """The name of a subclass: `ZeroMeanGaussian` is called zero-mean-gaussian or, by its initials, zmg."""

    name = "name"

    def __init__(self, base: type[T]) -> None:
        self._argument = base.__name__.lower()
        self.classes: Mapping[str, type[T]] = {kebab(kind.__name__): kind for kind in _of_rows(base)}

    def names(self) -> str:
        """Return all names with their short forms."""
        return ", ".join(name + (f" ({_initials(name)})" if _initials(name) else "") for name in self.classes)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> type[T]:
        """Return the class that `value` names."""
        kind = self.find(value)
        if kind is not None:
            return kind
        try:
            checks.word(self._argument, value.lower().replace("_", "-"), list(self.classes))
        except InvalidArgument as error:
            raise click.BadParameter(str(error), ctx, param) from error
        raise AssertionError("a known word has a class")

    def find(self, value: str) -> type[T] | None:
        """Return the class that `value` names, if it names one."""
        wanted = value.lower().replace("_", "-")
        named = (
            kind for name, kind in self.classes.items() if wanted in (name, _initials(name), kind.__name__.lower())
        )
        return next(named, None)


class SomeOf(click.ParamType, Generic[T]):  # type: ignore[type-arg]
    """Names of subclasses with commas between them, or none."""

    name = "list"

    def __init__(self, kind: Kind[T]) -> None:
        self._kind = kind

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[type[T], ...]:
        """Return the classes that `value` names."""
        if value.strip().lower() == "none":
            return ()
        names = [name.strip() for name in value.split(",")]
        kinds = [kind for name in names if (kind := self._kind.find(name)) is not None]
        if len(kinds) < len(names):
            unknown = next(name for name in names if self._kind.find(name) is None)
            error = self._refused(value, unknown, (param and param.name) or self.name)
            raise click.BadParameter(str(error), ctx, param) from error
        return tuple(kinds)

    def _refused(self, value: str, unknown: str, argument: str) -> InvalidArgument:
        known = list(self._kind.classes)
        found = checks.quote(unknown) + ("" if unknown == value else f" in {checks.quote(value)}")
        allowed = f"some of {', '.join(map(repr, known))} with commas between them, or 'none'"
        return checks.invalid_argument(argument, found, allowed, checks.did_you_mean(unknown, known))


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """A number, numbers with commas between them, or the name of a data file with a vector or a matrix."""

    name = "numbers|file"
    # What else is allowed, for messages.
    _words: tuple[str, ...] = ()

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number or the array; in a file, one row or one column is a vector."""
        try:
            numbers = [float(part) for part in value.split(",")]
        except ValueError:
            pass
        else:
            return numbers if len(numbers) > 1 else numbers[0]
        try:
            rows = read_values(value)
        except InvalidArgument:
            words = "".join(f"{word!r}, " for word in self._words)
            found = f"{value!r} is neither {words}numbers with commas between them nor the name of a data file"
            self.fail(found, param, ctx)
        return rows.ravel() if 1 in rows.shape and rows.size > 1 else rows


class WordOrNumbers(Numbers):
    """A word, or `Numbers`, for a parameter that is a word in one class and an array in another."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(words)
        self.name = "|".join([*self._words, Numbers.name])

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word, the number or the array."""
        return value if value in self._words else super().convert(value, param, ctx)


class ColumnOrTotal(click.ParamType):  # type: ignore[type-arg]
    """The position or the name of a column, or a word."""

    name = "column"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the position, or the name."""
        return int(value) if str(value).isdecimal() else value


def parameter_options(*bases: type[Specification], besides: Container[str]) -> Decorator:
    """Return the decorator that gives a command an option for each parameter of the subclasses, `besides` aside.

    A parameter of which an earlier base has one of the same name is called by its base too, as in --process-rate.
    """
    owners: dict[str, list[tuple[type[Any], Field[Any]]]] = {}
    for base in bases:
        for name, owned in owners_of(_of_rows(base), besides).items():
            owners[_of_base(base, name) if name in owners else name] = owned

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for name, owned in reversed(owners.items()):
            command = click.option(option(name), name, type=_type(owned), help=_help(owned))(command)
        return command

    return decorate


def _of_base(base: type[Any], name: str) -> str:
    return f"{base.__name__.lower()}_{name}"


def _given_name(kind: type[Any], name: str, given: Container[str]) -> str:
    """Return the name under which a parameter of `kind` is among the given ones."""
    own = _of_base(kind.__base__ or kind, name)
    return own if own in given else name


def owners_of(
    kinds: Iterable[type[Any]], besides: Container[str] = ()
) -> dict[str, list[tuple[type[Any], Field[Any]]]]:
    """Return the fields of the classes by name, each with the classes that have it; without those in `besides`."""
    owners: dict[str, list[tuple[type[Any], Field[Any]]]] = {}
    for kind in kinds:
        for field in fields(kind):
            if field.name not in besides:
                owners.setdefault(field.name, []).append((kind, field))
    return owners


def _of_rows(base: type[T]) -> list[type[T]]:
    """Return the subclasses except those only for documents, which have a separate command, and those of blocks."""
    all_faces = ((kind, getattr(kind, "_entry", {}).get("faces")) for kind in base.__subclasses__())
    return [kind for kind, faces in all_faces if faces != ["documents"] and not _has_blocks(kind)]


def _has_blocks(kind: type[Any]) -> bool:
    """Return whether a likelihood consists of others, which a file describes."""
    parameters = getattr(kind, "_entry", {}).get("parameters", {})
    return any(rule["kind"] == "blocks" for rule in parameters.values())


def made(kind: type[T], given: Mapping[str, Any]) -> T:
    """Return an instance of `kind` with those of the given parameters that it has."""
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        name = _given_name(kind, field.name, given)
        value = given.get(name)
        if value is not None:
            values[field.name] = None if field.name in NONE and value == NONE[field.name] else value
        elif field.default is MISSING and field.default_factory is MISSING:
            raise click.BadOptionUsage(option(name), f"{kebab(kind.__name__)} needs {option(name)}")
    try:
        return kind(**values)
    except InvalidArgument as error:
        name = _given_name(kind, error.argument or "", given)
        if name == (error.argument or ""):
            raise
        raise checks.invalid_argument(name, error.found or "", error.allowed or "") from error


def check_used(
    kinds: Iterable[type[Any]], given: Mapping[str, Any], options: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Raise where a parameter was given that none of the chosen classes has.

    `options` has the options whose names are not those of their parameters.
    """
    chosen = list(kinds)
    known = {_given_name(kind, field.name, given) for kind in chosen for field in fields(kind)}
    for name, value in given.items():
        if value is not None and name not in known:
            names = " or ".join(kebab(kind.__name__) for kind in chosen)
            # The one option that has a name of its own for its False.
            typed = "--search" if (name, value) == ("exact", False) else options.get(name, option(name))
            raise click.BadOptionUsage(typed, f"{typed} does not go with {names}")


def option(name: str) -> str:
    """Return the option of a parameter."""
    return f"--{name.replace('_', '-')}"


def kebab(name: str) -> str:
    """`ZeroMeanGaussian` -> zero-mean-gaussian."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()


def default(kind: type[Any], name: str) -> Any:
    """Return the default of a parameter."""
    return next(field.default for field in fields(kind) if field.name == name)


def _initials(name: str) -> str | None:
    words = name.split("-")
    return "".join(word[0] for word in words) if len(words) > 1 else None


def _type(owned: list[tuple[type[Specification], "Field[Any]"]]) -> Any:
    # A parameter of several classes gets the type that accepts all their values: `Numbers` accepts numbers too.
    rules = [kind._entry["parameters"][field.name] for kind, field in owned]
    kinds = {rule["kind"] for rule in rules}
    if "word" in kinds and len(kinds) > 1:
        return WordOrNumbers(dict.fromkeys(word for rule in rules for word in rule.get("words", ())))
    return next(type_ for known, type_ in _TYPES if kinds <= known)


_NUMBER = {"number", "number or gamma", "number or beta"}
_TYPES: tuple[tuple[set[str], Any], ...] = (
    ({"flag"}, click.BOOL),
    ({"word"}, click.STRING),
    ({"integer"}, click.INT),
    ({"column or total"}, ColumnOrTotal()),
    (_NUMBER, click.FLOAT),
    (_NUMBER | {"pair", "number or vector", "number or matrix", "vector", "matrix", "vector or matrix"}, Numbers()),
)


def _help(owned: list[tuple[type[Specification], "Field[Any]"]]) -> str:
    texts: dict[str, list[str]] = {}
    for kind, field in owned:
        text = described(kind, field.name)
        if field.default not in (None, MISSING) and "Default" not in text:
            text = f"{text} Default: {field.default}."
        texts.setdefault(text, []).append(kebab(kind.__name__))
    return " ".join(f"[{', '.join(names)}] {text}" for text, names in texts.items())


def described(kind: type[Any], name: str) -> str:
    """Return what the docstring says of a parameter, as plain text."""
    entry = re.search(rf"^{name} : .*\n((?:    .*\n?|\n)+)", getdoc(kind) or "", re.MULTILINE)
    text = " ".join(entry[1].split()) if entry else ""
    text = re.sub(r":math:`([^`]*)`", lambda found: re.sub(r"\\(\w+)", r"\1", found[1]), text)
    text = re.sub(r"\s*(\(\[\d+\]_[^)]*\)|\[\d+\]_)", "", text).replace("`", "")
    text = _OF_PRIORS.sub("", text)
    sentences = re.split(r"(?<=\.) (?=[A-Z\"])", text)
    last = next((place for place, sentence in enumerate(sentences) if sentence.startswith("Default:")), 1)
    return " ".join([sentences[0], *sentences[last : last + 1]])
