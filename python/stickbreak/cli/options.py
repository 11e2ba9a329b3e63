"""Options and arguments that several commands share."""

import csv
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from stickbreak import checks, interrupts
from stickbreak.errors import ConversionWarning, InvalidArgument, ModelFileError
from stickbreak.io import datafiles
from stickbreak.result.fit import Fit
from stickbreak.result.hierarchy import Hierarchy
from stickbreak.result.loading import load
from stickbreak.result.topic_fit import TopicFit
from stickbreak.run.checkpoints import Checkpoint
from stickbreak.run.progress import reading_bar

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "space": " "}
# Options that not every data file takes.
_ONLY_FOR = {"key": (".npz",), "delimiter": datafiles.TEXT, "header": datafiles.TEXT}

model_argument = click.argument("model")
data_argument = click.argument("data")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout, for programs.")
force_option = click.option("--force", is_flag=True, help="Replace the file of --out even if another program wrote it.")
threads_option = click.option(
    "--threads", type=int, metavar="N", help="Number of threads. It never changes the result. [default: one a core]"
)


def checkpoint_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a checkpoint; they become `checkpoint` and `every_seconds`."""
    seconds = click.option(
        "--checkpoint-seconds",
        "every_seconds",
        type=float,
        metavar="SECONDS",
        help="The time between checkpoints. [default: 60]",
    )
    said = "Keep the state of the run in this file while it goes on. Where the file exists already, go on from it."
    return click.option("--checkpoint", metavar="FILE", help=said)(seconds(command))


def checkpoint_of(path: str | None, every_seconds: float | None) -> Checkpoint | None:
    """Return the checkpoint that the options ask for."""
    if path is None:
        if every_seconds is not None:
            raise click.BadOptionUsage("--checkpoint-seconds", "--checkpoint-seconds needs --checkpoint")
        return None
    return Checkpoint(path) if every_seconds is None else Checkpoint(path, every_seconds=every_seconds)


def load_fit(path: str) -> Fit:
    """Read a fit from a model file; raise ModelFileError for a trace or a topic model."""
    found = load(path)
    if not isinstance(found, Fit):
        kinds = {TopicFit: "a topic model of `stickbreak topics`", Hierarchy: "a hierarchy of `stickbreak.hierarchy`"}
        what = kinds.get(type(found), "a trace of `stickbreak mcmc`")
        raise ModelFileError(f"{path}: {what}, not the model file of a mixture")
    return found


@contextmanager
def watched(path: str, *, quiet: bool) -> Iterator[Callable[[float], None] | None]:
    """Show a bar while a file is read, on a terminal and after two seconds; give what moves it."""
    bar = reading_bar(False if quiet else None, Path(path).name)
    try:
        yield None if bar is None else bar.read
    finally:
        if bar is not None:
            bar.close()
    # Readers import packages, where Ctrl-C may be lost.
    interrupts.check()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a data file is read."""

    columns: str | None = None
    weight_column: str | None = None
    key: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    keep: str | None = None
    quiet: bool = False

    def read(
        self, path: str, *, may_miss: bool = False, words: datafiles.TextColumns | None = None
    ) -> datafiles.DataFile:
        """Read the rows, with NaN for missing values where they may miss; `words` says which columns may hold text."""
        self._check_fits(datafiles.suffix_of(Path(path)))
        delimiter = None if self.delimiter is None else _DELIMITERS.get(self.delimiter.lower(), self.delimiter)
        with watched(path, quiet=self.quiet) as watch:
            return datafiles.read(
                path,
                columns=None if self.columns is None else items(self.columns),
                weight_column=self.weight_column,
                key=self.key,
                delimiter=delimiter,
                header=self.header,
                may_miss=may_miss,
                keep=None if self.keep is None else items(self.keep),
                watch=watch,
                words=words,
            )

    def _check_fits(self, suffix: str) -> None:
        for name, suffixes in _ONLY_FOR.items():
            if getattr(self, name) is not None and suffix in datafiles.SUFFIXES and suffix not in suffixes:
                raise click.BadOptionUsage(f"--{name}", f"--{name} does not go with {suffix} files")


def _joined(ctx: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> str | None:
    """Make one list of an option that is given several times."""
    return ",".join(given) if given else None


keep_option = click.option(
    "--keep",
    multiple=True,
    callback=_joined,
    metavar="LIST",
    help="Columns of DATA to write beside the result as they stand, such as an id: names, or positions from 1, with "
    "commas between them. They are not part of the data then.",
)
columns_option = click.option(
    "--columns",
    multiple=True,
    callback=_joined,
    metavar="LIST",
    help="Columns to use, with commas between them: names, positions from 1 or ranges such as 2-5. [default: all]",
)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that say how its data file is read."""
    for option in (
        click.option(
            "--header/--no-header",
            default=None,
            help="Whether the first line of a text file holds names. [default: where none of its fields is a number]",
        ),
        click.option(
            "--delimiter",
            metavar="CHARACTER",
            help="Between the fields of a text file: comma, semicolon, tab, space or another character. "
            "[default: what the first line has]",
        ),
        click.option("--key", metavar="NAME", help="Which array of an .npz file, where it has several."),
        columns_option,
    ):
        command = option(command)
    return command


def weight_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options for the weights of the rows."""
    for option in (
        click.option(
            "--weight-column",
            metavar="COLUMN",
            help="The column of DATA that holds the weights of the rows: a name, or a position from 1. "
            "It is not part of the data then.",
        ),
        click.option(
            "--weights", metavar="FILE", help="A data file of one column: the weights of the rows of DATA. [default: 1]"
        ),
    ):
        command = option(command)
    return command


def read_weighted(
    data: str,
    weights: str | None,
    reading: Reading,
    *,
    may_miss: bool,
    words: datafiles.TextColumns | None = None,
) -> tuple[datafiles.DataFile, Any]:
    """Return a data file and the weights of its rows, from its own column or a file of their own."""
    if weights is not None and reading.weight_column is not None:
        raise click.BadOptionUsage("--weights", "--weights and --weight-column exclude each other")
    read = reading.read(data, may_miss=may_miss, words=words)
    return read, read.weights if weights is None else read_column("weights", weights)


def read_column(argument: str, path: str) -> Any:
    """Return the one column of a data file."""
    try:
        rows = read_values(path)
    except InvalidArgument as error:
        if error.argument != "path":
            raise
        raise checks.invalid_argument(argument, error.found or "", error.allowed or "") from error
    if rows.shape[1] != 1:
        raise checks.invalid_argument(argument, f"{path!r} with {rows.shape[1]} columns", "a data file of one column")
    return rows[:, 0]


def read_values(path: str) -> Any:
    """Return what a data file holds beside rows: weights, labels or a parameter, of which a copy costs nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConversionWarning)
        return datafiles.read(path).rows


def items(text: str) -> list[str]:
    """Split a list with commas; names that contain commas are quoted."""
    return next(csv.reader([text], skipinitialspace=True), [])
