"""Nested parameters of an estimator, such as `process__concentration`, and likelihoods by name."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from stickbreak import checks
from stickbreak.model.columns import Columns
from stickbreak.model.likelihoods import Gaussian, Likelihood
from stickbreak.model.processes import DirichletProcess
from stickbreak.run.choosing import blocks_of, choices_for, likelihoods_of

_DEFAULTS: Mapping[str, Any] = {"likelihood": Gaussian, "process": DirichletProcess}
# `DiagonalGaussian` is called "diagonal_gaussian".
WORDS: dict[str, type[Likelihood]] = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind
    for kind in Likelihood.__subclasses__()
    if kind is not Columns
}
# Chooses a likelihood for each column.
AUTO = "auto"
WORDS[AUTO] = Columns


def likelihood(value: object, data: object = None, *, may_miss: bool = False) -> Likelihood:
    """Return the likelihood of an estimator: the default for None, or the likelihood with the given name.

    "auto" follows the data; without any it is a `Gaussian`.

    Raises
    ------
    InvalidType, InvalidArgument
        The value is none of these, or the named likelihood has required parameters; or as in `columns_for`.
    """
    if value is None or (isinstance(value, str) and value == AUTO and data is None):
        return Gaussian()
    if isinstance(value, str) and value == AUTO:
        choices = choices_for(data, "X")
        return blocks_of(choices, likelihoods_of(choices, may_miss=may_miss))
    if isinstance(value, str):
        kind = WORDS[checks.word("likelihood", value, list(WORDS), or_else=("a likelihood",))]
        required = [name for name, rule in kind._entry["parameters"].items() if rule["required"]]
        if required:
            hint = f"write {kind.__name__}({required[0]}=...)"
            raise checks.invalid_argument("likelihood", repr(value), f"one with its `{required[0]}`", hint)
        return kind()
    return checks.instance("likelihood", value, Likelihood, "a likelihood, its name, or None")


def parameters(shallow: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of the parts of an estimator, under their nested names."""
    found: dict[str, Any] = {}
    for role, value in shallow.items():
        if isinstance(value, type) or not is_dataclass(value):
            continue
        found |= {f"{role}__{field.name}": getattr(value, field.name) for field in fields(value)}
    return found


def changed(shallow: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changed parts, with the given nested parameters.

    Raises
    ------
    ValueError
        A part has no such parameter, or is None and has no default.
    """
    parts: dict[str, Any] = {}
    for name, value in given.items():
        role, _, parameter = name.partition("__")
        part = parts.get(role, given.get(role, shallow.get(role)))
        if part is None and role in _DEFAULTS:
            part = _DEFAULTS[role]()
        elif role == "likelihood" and isinstance(part, str):
            part = likelihood(part)
        known = [] if isinstance(part, type) or not is_dataclass(part) else [field.name for field in fields(part)]
        if parameter not in known:
            hint = checks.did_you_mean(parameter, known)
            of_part = "" if part is None else f" of {type(part).__name__}"
            raise ValueError(f"invalid parameter {parameter!r}{of_part}, in {name!r}{'; ' + hint if hint else ''}")
        parts[role] = replace(part, **{parameter: value})
    return parts
