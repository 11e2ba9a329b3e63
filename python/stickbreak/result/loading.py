"""`load`: a fit or a trace from its file."""

import os
from typing import Any

from stickbreak.errors import InternalError, ModelFileError, StickbreakError
from stickbreak.io import files
from stickbreak.result.kinds import fit_of_parts
from stickbreak.result.trace import Trace


def load(path: str | os.PathLike[str]) -> Any:
    """Read a fit from a model file that `Fit.save` wrote, or a trace that `Trace.save` wrote.

    Parameters
    ----------
    path : str or path-like
        Where the file is.

    Returns
    -------
    Fit, TopicFit or Trace
        The fit or the trace; everything that it computes equals what the saved one computes.

    Raises
    ------
    InvalidType
        `path` is not a path.
    ModelFileError
        The file is missing, is no such file, is damaged, or needs a newer stickbreak.

    Examples
    --------
    >>> import stickbreak as sb
    >>> try:
    ...     sb.load("no-such-file.safetensors")
    ... except sb.ModelFileError as error:
    ...     print(error)
    no-such-file.safetensors: there is no such file
    """
    is_trace = files.is_trace(path)
    parts = files.read(path, files.TRACE if is_trace else files.MODEL)
    try:
        return Trace._from_parts(*parts) if is_trace else fit_of_parts(*parts)
    except InternalError:
        raise
    except (StickbreakError, KeyError, TypeError, ValueError, OverflowError) as error:
        what = "trace" if is_trace else "model"
        raise ModelFileError(f"{os.fspath(path)}: the {what} in the file is damaged: {files.said(error)}") from error
