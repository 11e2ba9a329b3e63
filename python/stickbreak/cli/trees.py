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
    given = dict(_setting(setting) for setting in settings)
    if word is not None:
        checks.word("units", word, _WORDS)
    if given and word != "kd-tree":
        raise click.UsageError("--kd-tree needs --units kd-tree")
    return {"kd-tree": sb.KdTree(**given) if word == "kd-tree" else None, "auto": "auto"}.get(word or "rows")


def _setting(setting: str) -> tuple[str, Any]:
    """Return a name and a value; `KdTree` checks the value."""
    name, equals, text = setting.partition("=")
    name = name.strip().replace("-", "_")
    known = [field.name for field in fields(sb.KdTree)]
    if not equals:
        raise click.BadParameter(f"{setting!r} is no NAME=VALUE", param_hint="'--kd-tree'")
    checks.word("--kd-tree", name, known)
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
