"""Units of a fit as the command line says them."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import click

import stickbreak as sb
from stickbreak import checks

_WORDS = ("rows", "kd-tree", "auto")
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}


def units_of(word: str | None, settings: Iterable[str]) -> Any:
    """Return the units that `--units` and `--kd-tree` name; None for rows."""
    given: dict[str, Any] = {}
    for setting in settings:
        name, value = _setting(setting)
        if name in given:
            raise click.BadParameter(f"{name!r} is given twice", param_hint="'--kd-tree'")
        given[name] = value
    if word is not None:
        checks.word("units", word, _WORDS)
    if given and word != "kd-tree":
        raise click.UsageError("--kd-tree needs --units kd-tree")
    if word != "kd-tree":
        return "auto" if word == "auto" else None
    try:
        return sb.KdTree(**given)
    except (sb.InvalidArgument, sb.InvalidType) as error:
        raise click.UsageError(f"--kd-tree {error}") from error


def _setting(setting: str) -> tuple[str, Any]:
    """Return a name and a value; `KdTree` checks the value."""
    name, equals, text = setting.partition("=")
    name = name.strip().replace("-", "_")
    known = [field.name for field in fields(sb.KdTree)]
    if not equals:
        raise click.BadParameter(f"{setting!r} is no NAME=VALUE", param_hint="'--kd-tree'")
    if name not in known:
        hint = checks.did_you_mean(name, known)
        text = f"{name!r} is none of {', '.join(known)}" + (f"; {hint}" if hint else "")
        raise click.BadParameter(text, param_hint="'--kd-tree'")
    word = text.strip().lower()
    if word in _FLAGS:
        return name, _FLAGS[word]
    if word == "none":
        return name, None
    for number in (int, float):
        try:
            return name, number(word)
        except ValueError:
            continue
    return name, text.strip()
