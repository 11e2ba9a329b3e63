"""`load`: read a fit, a trace or a hierarchy from a file."""

import os
from typing import Any

from stickbreak.errors import InternalError, ModelFileError, StickbreakError
from stickbreak.io import files
from stickbreak.result.hierarchy import Hierarchy
from stickbreak.result.kinds import fit_of_parts
from stickbreak.result.trace import Trace

_READERS: dict[files.Kind, Any] = {
    files.MODEL: fit_of_parts,
    files.TRACE: Trace._from_parts,
    files.HIERARCHY: Hierarchy._from_parts,
}


def load(path: str | os.PathLike[str]) -> Any:
    """Read a result from a file that `Fit.save`, `Trace.save` or `Hierarchy.save` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    Fit, TopicFit, Trace or Hierarchy
        The result. All its results equal those of the saved object.

    Raises
    ------
    InvalidType, InvalidArgument
        `path` is not a path, or is empty.
    ModelFileError
        The file is missing, is not such a file, is damaged, or needs a newer stickbreak.

    Examples
    --------
    >>> import stickbreak as sb
    >>> try:
    ...     sb.load("no-such-file.safetensors")
    ... except sb.ModelFileError as error:
    ...     print(error)
    no-such-file.safetensors: there is no such file
    """
    kind = files.kind_of(path)
    parts = files.read(path, kind)
    try:
        return _READERS[kind](*parts)
    except InternalError:
        raise
    except (StickbreakError, AttributeError, LookupError, TypeError, ValueError, OverflowError) as error:
        what = "model" if kind is files.MODEL else kind.noun
        raise ModelFileError(f"{os.fspath(path)}: the {what} in the file is damaged: {files.said(error)}") from error
