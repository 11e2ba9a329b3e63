"""`load`: a fit from a model file."""

import os

from stickbreak.errors import InternalError, ModelFileError, StickbreakError
from stickbreak.io import files
from stickbreak.result.fit import Fit


def load(path: str | os.PathLike[str]) -> Fit:
    """Read a fit from a model file that `Fit.save` wrote.

    Parameters
    ----------
    path : str or path-like
        Where the file is.

    Returns
    -------
    Fit
        The fit; everything that it computes equals what the saved one computes.

    Raises
    ------
    InvalidType
        `path` is not a path.
    ModelFileError
        The file is missing, is no model file, is damaged, or needs a newer stickbreak.

    Examples
    --------
    >>> import stickbreak as sb
    >>> try:
    ...     sb.load("no-such-file.safetensors")
    ... except sb.ModelFileError as error:
    ...     print(error)
    no-such-file.safetensors: there is no such file
    """
    parts = files.read(path)
    try:
        return Fit._from_parts(*parts)
    except InternalError:
        raise
    except (StickbreakError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{os.fspath(path)}: the model in the file is damaged: {files.said(error)}") from error
