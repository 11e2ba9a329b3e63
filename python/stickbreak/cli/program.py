"""What holds for all commands: exit codes, and how errors are told."""

import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, NoReturn

import click

from stickbreak import checks, interrupts
from stickbreak.cli.output import print_json, say
from stickbreak.cli.specifications import owners_of
from stickbreak.cli.wording import in_options
from stickbreak.errors import ConvergenceWarning, InvalidArgument, InvalidType, NotSupported, StickbreakError
from stickbreak.run.algorithms import Algorithm
from stickbreak.run.samplers import Sampler
from stickbreak.run.units import Words


class ExitCode(IntEnum):
    """The exit codes."""

    OK = 0
    FAILED = 1
    """The data, the model or the computation failed."""
    WRONG_USAGE = 2
    """Unknown options, missing arguments, values that an option does not allow or that do not go together."""
    INTERRUPTED = 130
    """Ctrl-C, as the shell counts it."""
    CLOSED_PIPE = 141
    """Broken pipe, with the exit code of a shell."""


# Options by their titles in --help. Options for parameters of a model are in none.
_GROUPS = {
    "Output": (
        *("out", "force", "rows", "labels", "loss", "proportions", "words", "proba", "elbo", "n", "quiet"),
        *("as_json", "no_rows", "checkpoint", "every_seconds"),
    ),
    "Data": (
        *("missing", "weights", "weight_column", "columns", "keep", "key", "delimiter", "header"),
        *("vocabulary", "test"),
    ),
    "Model": ("likelihood", "process", "n_components", "n_topics"),
    "Start": ("init", "n_init", "seed"),
    "Algorithm": (
        *("schedule", "tree", "threads", "sampler", "draws", "warmup", "chains", "thin", "until_ess", "max_seconds"),
        *owners_of([*Algorithm.__subclasses__(), *Sampler.__subclasses__(), Words]),
    ),
}


class Program(click.Group):
    """A group of commands whose every error is one line on stderr and, with `--json`, an object on stdout."""

    def main(  # type: ignore[override]
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> int:
        """Run a command; return its exit code, or exit with it in standalone mode."""
        args = list(sys.argv[1:] if args is None else args)
        _replace_closed_streams()
        with warnings.catch_warnings():
            warnings.showwarning = _tell_warning
            # The printed summary says how the fit ended and has its advice.
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                with interrupts.remembered():
                    code = self._run(args, prog_name, **extra)
            except BrokenPipeError:
                code = _leave_closed_pipe()
        if standalone_mode:
            sys.exit(code)
        return code

    def _run(self, args: list[str], prog_name: str | None, **extra: Any) -> int:
        wants_json = "--json" in args
        try:
            # A command returns its exit code if it is not 0.
            code = super().main(args, prog_name, standalone_mode=False, **extra)
            sys.stdout.flush()
            return code or ExitCode.OK
        except click.exceptions.NoArgsIsHelpError as error:
            for line in error.format_message().splitlines():
                say(line, err=True)
            return ExitCode.WRONG_USAGE
        except click.UsageError as error:
            where = f"; see {error.ctx.command_path} --help" if error.ctx else ""
            return _tell(error, error.format_message().rstrip(".") + where, ExitCode.WRONG_USAGE, wants_json)
        except _Refused as error:
            return _tell(error, error.format_message(), ExitCode.WRONG_USAGE, wants_json)
        except _Interrupted as error:
            return _tell(error, "interrupted", ExitCode.INTERRUPTED, wants_json)
        except StickbreakError as error:
            return _tell(error, str(error), ExitCode.FAILED, wants_json)
        except MemoryError as error:
            return _tell(error, "there is not enough memory", ExitCode.FAILED, wants_json)
        except BrokenPipeError:
            raise
        except OSError as error:
            return _tell(error, str(error), ExitCode.FAILED, wants_json)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order in which they are used."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was named; click has ways of its own with a closed pipe and with Ctrl-C."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _leave_closed_pipe()
        except KeyboardInterrupt as interrupt:
            raise _Interrupted from interrupt


class Command(click.Command):
    """A command that tells errors of its options by the names that they have on the command line."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        self._check_texts(ctx)
        try:
            return super().invoke(ctx)
        except (InvalidArgument, InvalidType, NotSupported) as error:
            self._raise_named(error)

    def _check_texts(self, ctx: click.Context) -> None:
        """Raise if an argument has characters that no file name can have; no other argument needs them either."""
        for parameter in self.params:
            given = ctx.params.get(parameter.name or "")
            for text in given if isinstance(given, tuple) else (given,):
                if isinstance(text, str) and not _can_be_path(text):
                    found = (
                        f"{checks.quote(text)} has a null character or a lone surrogate, which no file name can have"
                    )
                    raise click.BadParameter(found, ctx, parameter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        of_option = {name: title for title, names in _GROUPS.items() for name in names}
        # Commands that make a model have the parameters of all its parts.
        makes_model = not {each.name for each in self.params}.isdisjoint(("likelihood", "n_topics"))
        others = "Parameters of the model" if makes_model else "Options"
        groups: dict[str, list[tuple[str, str]]] = {title: [] for title in [*_GROUPS, others, "Help"]}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                # Click's own option has another name.
                title = "Help" if "--help" in parameter.opts else of_option.get(parameter.name or "", others)
                groups[title].append(record)
        for title, records in groups.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)

    def options(self) -> dict[str, click.Option]:
        """Return the options by their longest names."""
        return {_title(each): each for each in self.params if isinstance(each, click.Option)}

    def _raise_named(self, error: InvalidArgument | InvalidType | NotSupported) -> NoReturn:
        options = self.options()
        for title, option in options.items():
            if error.argument != option.name:
                continue
            if isinstance(error, NotSupported):
                words = (in_options(text or "", options) for text in (str(error), error.found, error.allowed))
                raise _Refused(title, *words) from error
            # On the command line None is an option left out.
            said = re.sub(r",? or None( for all of them)?(?=,|;|$)", "", str(error).removeprefix(error.argument))
            said = said.replace("must be None", "must be left out").replace("a Fit", "a model file")
            message = f"{title}{said}"
            raise _Refused(title, message, error.found, error.allowed) from error
        raise error


class _Refused(click.ClickException):
    """A value that an option does not allow.

    Parameters
    ----------
    option_name : str
        The option.
    message : str
        The whole sentence.
    found, allowed : str, optional
        What was found, and what is allowed, in words.
    """

    def __init__(self, option_name: str, message: str, found: str | None, allowed: str | None) -> None:
        super().__init__(message)
        self.option_name = option_name
        self.found = found
        self.allowed = allowed


class _Interrupted(Exception):
    """Ctrl-C."""


@contextmanager
def rows_of(data: str, weights: str | None = None, *, weight_column: str | None = None) -> Iterator[None]:
    """Name the file and the option in errors of the rows, or of the weights, that were read from it."""
    in_weights = ("--weights", weights) if weight_column is None else ("--weight-column", data)
    try:
        yield
    except (InvalidArgument, InvalidType) as error:
        argument = error.argument or ""
        # Report the file, not the option: the option is valid, its contents are not.
        name, path = {"data": ("data", data), "X": ("data", data), "sample_weight": in_weights}.get(
            argument, ("", None)
        )
        if path is None:
            raise
        said = _in_options(str(error).removeprefix(argument))
        found = error.found or ""
        if " row " in found:
            said = said.replace(found, f"{found} (counted from 0)", 1)
        message = f"{path}: {name}{said}"
        raise type(error)(message, argument=name, found=error.found, allowed=error.allowed) from error


def _tell(error: BaseException, message: str, code: ExitCode, wants_json: bool) -> int:
    line = " ".join(message.split())
    say(f"stickbreak: error: {line}", err=True)
    if wants_json:
        cause = error.__cause__ if isinstance(error, _Refused | _Interrupted | click.BadParameter) else None
        said = error if isinstance(error, _Refused) else cause or error
        details = {name: getattr(said, name, None) for name in ("found", "allowed")}
        argument = _argument(error)
        named = {"type": type(cause or error).__name__, "message": line, "argument": argument}
        try:
            print_json({"error": {**named, **details}})
        except BrokenPipeError:
            raise
        except OSError:
            # Stdout is full; the line on stderr has said it all.
            _leave_closed_pipe()
    return code


def _argument(error: BaseException) -> str | None:
    """Return the argument at fault, by the name of its option with underscores."""
    name = getattr(error, "argument", None)
    if isinstance(error, click.BadParameter) and error.param is not None:
        name = _title(error.param)
    elif isinstance(error, click.BadOptionUsage | click.NoSuchOption | _Refused):
        name = error.option_name
    return None if name is None else name.lstrip("-").replace("-", "_")


def _can_be_path(text: str) -> bool:
    try:
        # Undecodable bytes of a name are surrogates that become these bytes again.
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def _title(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len)


def _tell_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    say(f"stickbreak: warning: {' '.join(_in_options(str(message)).split())}", err=True)


def _in_options(text: str) -> str:
    """Return `text` in the words of the command that runs, if one does."""
    context = click.get_current_context(silent=True)
    if context is None or not isinstance(context.command, Command):
        return text
    return in_options(text, context.command.options())


def _replace_closed_streams() -> None:
    """Open a stream that was closed before the program began: Python has None in its place."""
    if sys.stdout is None:
        # Closing it means that nothing is read, so the writer gets the error of a closed pipe.
        reader, writer = os.pipe()
        os.close(reader)
        sys.stdout = open(writer, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _leave_closed_pipe() -> int:
    # The rest of the buffer must not raise again when the interpreter exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.CLOSED_PIPE
