"""NumPy's own files: one array, or an archive of arrays."""

import difflib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import InvalidArgument, SourceError
from stickbreak.io.datafiles.columns import Choice, take

# These errors pass through: the caller handles the first, and the others are not damage. NumPy reads array headers with
# Python's parsers, and archives with its zip module, which raise various errors for damaged files.
_PASSED = (OSError, MemoryError, InvalidArgument, SourceError)


def read_npy(path: Path, choice: Choice) -> tuple[NDArray[Any], None]:
    """Return the array of a .npy file as a memory map."""
    try:
        # A shape that overflows fails later; suppresses NumPy's earlier warning.
        with np.errstate(all="ignore"):
            array = np.lib.format.open_memmap(path, mode="r")
    except _PASSED:
        raise
    except Exception as error:
        raise SourceError(f"{path}: not a .npy file of numbers, or damaged: {checks.brief(error)}") from error
    return _table(array, str(path), choice), None


def read_npz(path: Path, choice: Choice, key: str | None) -> tuple[NDArray[Any], None]:
    """Return one array of an .npz file."""
    if not zipfile.is_zipfile(path):
        raise SourceError(f"{path}: not an .npz file, or damaged")
    try:
        with np.errstate(all="ignore"), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            name = _name(path, archive.files, key)
            array = archive[name]
    except _PASSED:
        raise
    except Exception as error:
        raise SourceError(f"{path}: not an .npz file of numbers, or damaged: {checks.brief(error)}") from error
    return _table(array, f"{path}: array {name!r}", choice), None


def _name(path: Path, names: list[str], key: str | None) -> str:
    if not names:
        raise SourceError(f"{path}: there is no array in it")
    if key is None:
        if {"format", "shape", "data"} <= set(names):
            raise SourceError(
                f"{path}: it holds a sparse array, which only `topics` reads; in Python fit takes that of "
                "scipy.sparse.load_npz"
            )
        if len(names) > 1:
            raise checks.invalid_argument("key", "missing", f"one of the arrays in {path}: {', '.join(names)}")
        return names[0]
    if key not in names:
        nearest = difflib.get_close_matches(key, names, n=1, cutoff=0.5)
        hint = f"did you mean {nearest[0]!r}?" if nearest else ""
        raise checks.invalid_argument("key", repr(key), f"one of the arrays in {path}: {', '.join(names)}", hint)
    return key


def _table(array: Any, source: str, choice: Choice) -> NDArray[Any]:
    if not isinstance(array, np.ndarray):
        raise SourceError(f"{source}: not an array")
    if array.dtype.kind not in "biuf":
        raise SourceError(f"{source}: holds values of dtype {array.dtype}, not real numbers")
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or 0 in array.shape:
        raise SourceError(f"{source}: has shape {array.shape}, which is not that of a table")
    rows: NDArray[Any] = array
    return take(rows, choice.among(None, array.shape[1]))
