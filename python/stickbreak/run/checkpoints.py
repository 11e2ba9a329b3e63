"""Checkpoints: the state that a killed run needs to continue. The file is replaced only when the new one is complete.

The file has the layout of `files`. Its header states which function wrote it, "fit" or "sample" (older files do not),
the run of the fit, the first seed and the number of starts, and, once the first run has ended, the number of components
of wide starts. The array "run" holds the state of that run as written by the core. If there was an earlier run, the
best one is stored in the header as "best" and in arrays whose names begin with "best.", as in a model file.
"""

import warnings
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from stickbreak import checks
from stickbreak._core import FitState
from stickbreak.errors import CheckpointError, StickbreakError
from stickbreak.io import files, levels, names
from stickbreak.result.kinds import fit_of, fit_of_parts

_PREFIX = "best."


@dataclass(frozen=True)
class Checkpoint:
    """A file that keeps the state of `fit` or `sample`, so that a killed run can continue.

    If the file exists, the run continues from it and ends with the same bits as one that was never stopped. The same
    call after a crash finishes the work; after the end it returns the result. Data, weights, order of rows, model and
    settings must be those of the file. Only `max_passes`, `tol`, `max_seconds`, `threads`, `progress` and `callbacks`
    may differ, and `draws` may be higher. Of several starts (`n_init`) only the one that was running continues.
    Otherwise `CheckpointError` is raised and the file is left as it is.

    One run at a time may use a path. Another one with the same path on this machine gets a `CheckpointError`.

    The state is written after the start, after the first batch that ends `every_seconds` after the last write, and at
    the end, also if Ctrl-C or a callback ends the fit. If a later write fails, you get one warning, and the fit
    continues.

    Parameters
    ----------
    path : str or path-like
        The file. Its folder must exist.
    every_seconds : float
        Time between two writes, at least 0; 0 writes after every batch.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    >>> short, long = sb.Full(max_passes=3, tol=0), sb.Full(max_passes=5, tol=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "fit.checkpoint")
    ...     checkpoint = sb.Checkpoint(path, every_seconds=600)
    ...     first = sb.fit(model, X, short, n_components=3, checkpoint=checkpoint)
    ...     longer = sb.fit(model, X, long, n_components=3, checkpoint=checkpoint)
    >>> longer.history[:3] == first.history, len(longer.history)
    (True, 5)
    """

    path: Any
    _: KW_ONLY
    every_seconds: float = 60.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", files.as_path(self.path))
        object.__setattr__(self, "every_seconds", checks.non_negative("every_seconds", self.every_seconds))


@dataclass(frozen=True)
class Resumed:
    """Content of a checkpoint file.

    Parameters
    ----------
    index : int
        The run in which it was written; 0 except in fits with several starts.
    run : bytes, optional
        The state of that run; None if there is no file.
    best : FitState, optional
        The best fit before it.
    n_wide : int, optional
        Number of components of wide starts; None before the end of the first run.
    """

    index: int = 0
    run: bytes | None = None
    best: FitState | None = None
    n_wide: int | None = None


class CheckpointFile:
    """The file of one call of `fit` or `sample`.

    Parameters
    ----------
    checkpoint : Checkpoint
        The checkpoint that the user passed.
    function : str
        "fit" or "sample".
    seed : int
        The seed of the first run.
    n_init : int
        Number of runs.

    Raises
    ------
    CheckpointError
        The file cannot be written, or another run writes to it.
    """

    def __init__(self, checkpoint: Checkpoint, function: str, seed: int, n_init: int) -> None:
        self.every_seconds = checkpoint.every_seconds
        self._path: Path = checkpoint.path
        self._function = function
        self._settings = {"seed": seed, "n_init": n_init}
        self._index = 0
        self._best: FitState | None = None
        self._n_wide: int | None = None
        self._failed = False
        self._content: tuple[files.Header, files.Arrays] | None = None
        # The column names and the levels of the data, which `write` stores.
        self.column_names: names.Names | None = None
        self.levels: levels.Levels = ()
        # Lock first: the steps below would disturb another fit.
        self._lock = files.lock(self._path, files.CHECKPOINT)
        try:
            files.check_writable(self._path, files.CHECKPOINT)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> "CheckpointFile":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._lock.release()

    def read_names(self) -> tuple[names.Names | None, levels.Levels]:
        """Return the column names and the levels stored in the file, if any.

        Raises
        ------
        CheckpointError
            The file is not a checkpoint, or is damaged.
        """
        if not self._path.exists():
            return None, ()
        self._content = files.read(self._path, files.CHECKPOINT)
        kept = self._content[0].get("column_names")
        try:
            found = names.of_file(kept, len(kept) if isinstance(kept, list) else 0)
            return found, levels.of_file(self._content[0].get("levels"), None if found is None else len(found))
        except ValueError as error:
            raise self.refused(f"the checkpoint is damaged: {error}") from error

    def read(self, n_rows: int | None) -> Resumed:
        """Return the content of the file; `n_rows` is None for data read in blocks.

        Raises
        ------
        CheckpointError
            The file is not a checkpoint, is damaged, or was written by another function or for another seed or number
            of starts.
        """
        if not self._path.exists():
            return Resumed()
        header, arrays = self._content or files.read(self._path, files.CHECKPOINT)
        self._content = None
        writer = header.get("function", self._function)
        if writer != self._function:
            raise self.refused(f"it is a checkpoint of `{writer}`, from which `{self._function}` cannot go on")
        try:
            for name, value in self._settings.items():
                if header[name] != value:
                    raise self.refused(f"the checkpoint was written for {name} = {header[name]}, but it is {value} now")
            index = checks.integer("index", header["index"], minimum=0, maximum=self._settings["n_init"] - 1)
            n_wide = checks.integer("n_wide", header["n_wide"], minimum=1, maximum=n_rows) if index > 0 else None
            return Resumed(index, arrays["run"].tobytes(), _best_of(header, arrays), n_wide)
        except CheckpointError:
            raise
        except (StickbreakError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise self.refused(f"the checkpoint is damaged: {files.said(error)}") from error

    def refused(self, why: object) -> CheckpointError:
        """Return the error for a file from which this run cannot continue."""
        return CheckpointError(f"{self._path}: {why}; give another path, or delete the file")

    def start_run(self, index: int, best: FitState | None, n_wide: int | None) -> None:
        """Set the run of the next states, the best fit so far, and the number of components of wide starts."""
        self._index, self._best, self._n_wide = index, best, n_wide

    def write(self, run: bytes) -> None:
        """Replace the file. A failure is only a warning, because the run is worth more than its checkpoint."""
        header: files.Header = {"function": self._function, **self._settings, "index": self._index}
        if self._n_wide is not None:
            header["n_wide"] = self._n_wide
        if self.column_names is not None:
            header["column_names"] = list(self.column_names)
        if self.levels:
            header["levels"] = levels.to_header(self.levels)
        arrays: files.Arrays = {"run": np.frombuffer(run, dtype=np.uint8)}
        if self._best is not None:
            header["best"], of_best = fit_of(self._best)._to_parts()
            arrays |= {_PREFIX + name: array for name, array in of_best.items()}
        try:
            files.write(self._path, header, arrays, files.CHECKPOINT)
        except CheckpointError as error:
            if not self._failed:
                self._failed = True
                warnings.warn(f"`{self._function}` goes on without a checkpoint: {error}", RuntimeWarning, stacklevel=2)


def _best_of(header: files.Header, arrays: files.Arrays) -> FitState | None:
    if "best" not in header:
        return None
    parts = {name.removeprefix(_PREFIX): array for name, array in arrays.items() if name.startswith(_PREFIX)}
    return fit_of_parts(header["best"], parts)._state
