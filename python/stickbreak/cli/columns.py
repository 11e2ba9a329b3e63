"""Tables with columns of several kinds on the command line: `--likelihood auto` and `--columns-spec`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import click

from stickbreak import checks
from stickbreak.cli.output import say
from stickbreak.cli.program import rows_of
from stickbreak.cli.specifications import Kind, kebab, made, owners_of
from stickbreak.errors import InvalidArgument, StickbreakError
from stickbreak.io import datafiles
from stickbreak.io.cells import MixedRows
from stickbreak.io.datafiles import cures
from stickbreak.io.datafiles.sources import of_file
from stickbreak.io.levels import TAKE_LEVELS
from stickbreak.io.names import shown
from stickbreak.model.columns import Columns
from stickbreak.model.likelihoods import Gaussian, Likelihood
from stickbreak.result.fit import Fit
from stickbreak.run.choosing import blocks_of, choices_for, likelihoods_of, table_of

AUTO = "auto"
_ARGUMENT = "columns_spec"
_SHAPE = 'a JSON object such as {"age, income": {"likelihood": "gaussian"}, "sex": "categorical"}'
spec_option = click.option(
    "--columns-spec",
    metavar="FILE",
    help="A JSON file with a likelihood for each block of columns, in place of --likelihood, such as "
    '{"age, income": {"likelihood": "gaussian"}, "sex": "categorical"}. Parameters stand beside the name of the '
    "likelihood. Columns of categorical and bernoulli may hold text.",
)


class LikelihoodName(Kind[Likelihood]):
    """The name of a likelihood, or auto, for which `Columns` stands."""

    def __init__(self) -> None:
        super().__init__(Likelihood)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> type[Likelihood]:
        """Return the class that `value` names."""
        if isinstance(value, type) or value.lower() == AUTO:
            return Columns
        if self.find(value) is None:
            known = [*self.classes, AUTO]
            try:
                checks.word("likelihood", value.lower().replace("_", "-"), known)
            except InvalidArgument as error:
                raise click.BadParameter(str(error), ctx, param) from error
        return super().convert(value, param, ctx)

    def names(self) -> str:
        """Return all names with their short forms."""
        return f"{super().names()}, or {AUTO}, which chooses one for each column"


_LIKELIHOODS = LikelihoodName()

likelihood_option = click.option(
    "--likelihood",
    type=_LIKELIHOODS,
    metavar="NAME",
    help=f"What the rows of one component look like: {_LIKELIHOODS.names()}. [default: gaussian, or auto if columns "
    "hold text]",
)


class Chosen:
    """The likelihood that the options of a command ask for, which may follow the data.

    Parameters
    ----------
    likelihood : type, optional
        The class; `Columns` for "auto", None for the default.
    spec : str, optional
        The file with the blocks of columns.
    given : mapping
        The options of the command. With parameters of a likelihood the default is a `Gaussian`.
    """

    def __init__(self, likelihood: type[Likelihood] | None, spec: str | None, given: Mapping[str, Any]) -> None:
        if spec is not None and likelihood is not None:
            raise click.BadOptionUsage("--columns-spec", "--columns-spec and --likelihood exclude each other")
        self._spec = spec
        self._blocks = None if spec is None else read_spec(spec)
        self._is_auto = likelihood is Columns
        known = owners_of(_LIKELIHOODS.classes.values(), ("n_components",))
        has_parameters = any(given.get(name) is not None for name in known)
        self._may_be_auto = likelihood is None and spec is None and not has_parameters
        self.kind: type[Likelihood] = Columns if spec is not None else likelihood or Gaussian

    def made(self, given: Mapping[str, Any]) -> Likelihood:
        """Return the likelihood before the data are known; a `Gaussian` if it follows them."""
        return Gaussian() if self.kind is Columns else made(self.kind, given)

    @property
    def text(self) -> datafiles.TextColumns | None:
        """Which columns of the data may hold text."""
        if self._is_auto or self._may_be_auto:
            return datafiles.TextColumns(others="most")
        if self._blocks is None:
            return datafiles.TextColumns(others="some") if self.kind._domain in TAKE_LEVELS else None
        parts = [(key, part) for key, (part, _) in self._blocks.items()]
        never = {name for key, part in parts if part._domain not in ("codes", "binary") for name in _names(key)}
        # Without names of columns these are positions.
        positions = {int(name) - 1 for name in never if name.isdecimal()}
        return datafiles.TextColumns(never=frozenset(never | positions), others="some")

    def of_data(
        self, table: datafiles.DataFile, path: str, *, quiet: bool, may_miss: bool = False
    ) -> Likelihood | None:
        """Return the likelihood that follows the data, if it does, and say on stderr which one was chosen.

        Later rows may lack single values if they `may_miss`.
        """
        if self._blocks is not None:
            return self._columns(table)
        if not (self._is_auto or (self._may_be_auto and isinstance(table.rows, MixedRows))):
            return None
        with rows_of(path):
            choices = choices_for(table, "data", "leave them out: choose the others by --columns")
        parts = likelihoods_of(choices, may_miss=may_miss)
        if not quiet:
            if not self._is_auto:
                said = f"stickbreak: {path} has columns that are no numbers, so the likelihood is auto:"
                say(said, err=True)
            for line in table_of(choices, parts, may_miss=may_miss).splitlines():
                say(line, err=True)
        return blocks_of(choices, parts)

    def _columns(self, table: datafiles.DataFile) -> Columns:
        blocks: dict[Any, Likelihood] = {}
        for key, (part, _) in (self._blocks or {}).items():
            names = _names(key)
            self._check_known(names, table.names)
            if table.names is None and all(name.isdecimal() and int(name) > 0 for name in names):
                blocks[tuple(int(name) - 1 for name in names)] = part
            else:
                blocks[names] = part
        try:
            found = Columns(blocks)
            found._placed(table.names, table.rows.shape[1])
            return found
        except StickbreakError as error:
            raise _refused(self._spec or "", getattr(error, "found", None) or str(error), error) from error

    def _check_known(self, names: Sequence[str], known: Sequence[str] | None) -> None:
        """Refuse names that no column of the data has."""
        unknown = next((name for name in names if known is not None and name not in known), None)
        if unknown is not None:
            found, listed = f"the column {checks.quote(unknown)}, which the data do not have", shown(known or ())
            hint = checks.did_you_mean(unknown, known or ())
            raise _refused(self._spec or "", found, allowed=f"an object with the columns {listed}", hint=hint)


def of_fit(fit: Fit) -> datafiles.TextColumns | None:
    """Return which columns of the data of a fit hold text."""
    if fit.model.likelihood._domain not in TAKE_LEVELS:
        return None
    words = {column for column, levels in fit.levels.items() if any(isinstance(level, str) for level in levels)}
    return datafiles.TextColumns(always=frozenset(words))


def read_spec(path: str) -> dict[str, tuple[Likelihood, str]]:
    """Return the likelihood of each block, and its name, from a JSON file.

    Raises
    ------
    InvalidArgument
        The file cannot be read, is no such JSON, or names a likelihood or a parameter that does not exist.
    """
    try:
        # From bytes, because JSON may be in UTF-16, as shells of Windows write it.
        content = json.loads(Path(path).read_bytes(), object_pairs_hook=_once)
    except OSError as error:
        raise _refused(path, error.strerror or str(error), error) from error
    except _RepeatedKey as error:
        raise _refused(path, f"the key {checks.quote(str(error))} twice", error) from error
    except UnicodeDecodeError as error:
        raise _refused(path, f"text that is not in UTF-8; {cures.of_encoding(of_file(Path(path)))}", error) from error
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"no JSON ({checks.brief(error)})", error) from error
    if not isinstance(content, dict) or not content:
        raise _refused(path, "an empty object" if content == {} else f"JSON of the type {type(content).__name__}")
    found = {key: _part(path, key, value) for key, value in content.items()}
    try:
        Columns({key: part for key, (part, _) in found.items()})
    except StickbreakError as error:
        raise _refused(path, getattr(error, "found", None) or str(error), error) from error
    return found


def _part(path: str, key: str, value: object) -> tuple[Likelihood, str]:
    parameters = dict(value) if isinstance(value, dict) else {"likelihood": value}
    name = parameters.pop("likelihood", None)
    known = list(_LIKELIHOODS.classes)
    kind = _LIKELIHOODS.find(name) if isinstance(name, str) else None
    if kind is None:
        found = "no likelihood" if name is None else f"the likelihood {name!r}"
        hint = checks.did_you_mean(name, known) if isinstance(name, str) else ""
        raise _refused(path, f"{found} for {key!r}", allowed=f"one of the likelihoods {', '.join(known)}", hint=hint)
    names = [field.name for field in fields(kind)]
    for parameter in parameters:
        if parameter not in names:
            found = f"the parameter {parameter!r} of {kebab(kind.__name__)} for {key!r}"
            hint = checks.did_you_mean(parameter, names)
            raise _refused(path, found, allowed=f"one of its parameters {', '.join(names)}", hint=hint)
    try:
        return kind(**parameters), kebab(kind.__name__)
    except (StickbreakError, TypeError) as error:
        found = f"{checks.brief(error)}, for {key!r}"
        raise _refused(path, found, error, allowed=f"values that {kind.__name__} takes") from error


def _names(key: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in key.split(","))


class _RepeatedKey(Exception):
    """A key that an object has twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _RepeatedKey(key)
        found[key] = value
    return found


def _refused(
    path: str, found: str, cause: Exception | None = None, *, allowed: str = _SHAPE, hint: str = ""
) -> InvalidArgument:
    return checks.invalid_argument(_ARGUMENT, f"{checks.quote(path)} with {found}", allowed, hint)
