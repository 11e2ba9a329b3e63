"""What Python says of arguments and classes, in the words of the command line."""

import re
from collections.abc import Mapping

import click

from stickbreak.cli.specifications import Kind

_ARGUMENT = re.compile(r"""\b(\w+)=(\(\)|"[^"]+"|[\w.]+|)((?: or "[^"]+")*)""")


def in_options(text: str, options: Mapping[str, click.Option]) -> str:
    """Return `text` with options, which stand under their titles, in the place of arguments and classes.

    moves=() becomes --moves none, objective="map" --objective map, background=None no --background, and a
    DirichletProcess --process dirichlet-process.
    """
    titles = {option.name: title for title, option in options.items()}
    flags = {title: option for title, option in options.items() if option.is_bool_flag and option.secondary_opts}

    def spelled(found: re.Match[str]) -> str:
        name, value, others = found.groups()
        if name not in titles:
            return found[0]
        if options[titles[name]].is_flag and value == "None":
            return f"no {titles[name]}{others}"
        if titles[name] in flags and value in ("True", "False"):
            option = flags[titles[name]]
            return f"{(option.opts if value == 'True' else option.secondary_opts)[0]}{others}"
        # A fit is a model file here.
        value = {"()": "none", "fit": "MODEL"}.get(value, value)
        return f"{titles[name]} {value}{others}".replace('"', "").rstrip()

    text = _ARGUMENT.sub(spelled, text)
    for title, option in options.items():
        if isinstance(option.type, Kind):
            text = _with_names(text, title, option.type.classes)
    return text


def _with_names(text: str, title: str, classes: Mapping[str, type]) -> str:
    """Return `text` with the names of classes, which are values of the option `title`, in the place of classes."""
    names = {kind.__name__: name for name, kind in classes.items()}
    one = rf"\b(?:{'|'.join(names)})\b"
    # In a list the option follows the first name. Arguments of all names are options by now.
    row = re.compile(rf"(?:\ba )?({one}(?:(?:,| or) {one})*)(?:\(([^)]*)\))?")

    def spelled(found: re.Match[str]) -> str:
        row = re.sub(one, lambda kind: names[kind[0]], found[1])
        return f"{title} {row} {found[2] or ''}".rstrip()

    return row.sub(spelled, text)
