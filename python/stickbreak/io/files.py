"""Files: safetensors for the arrays, with a JSON header in the metadata. Their content is never executed.

The metadata hold `format` (kind of file), `version` (of that format), `header`, a JSON object in which numbers that are
not finite are written as `{"$float": "nan"}`, because JSON has none, and `checksum`, BLAKE2b-128 of the header and the
arrays. A reader ignores unknown entries in metadata, header and arrays, so a newer stickbreak may add to a file without
changing the version. A new version is one that older readers must refuse. `docs/files.md` has the layout.
"""

import hashlib
import json
import math
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from stickbreak.checks import describe, instance, invalid_argument, invalid_type
from stickbreak.errors import CheckpointError, ModelFileError
from stickbreak.io.locks import Held, Lock
from stickbreak.io.replacing import beside, check_replaceable, replacing
from stickbreak.io.tensors import Described, Tensors

Header = dict[str, Any]
Arrays = dict[str, NDArray[Any]]

# The arrays of a model file, besides the parameters.
_STATE_ARRAYS = ("counts", "statistics", "entropies", "origin")
_PREFIXES = ("likelihood.", "process.", "background.", "coordinates.", "documents.")


@dataclass(frozen=True)
class Kind:
    """A kind of file.

    Parameters
    ----------
    noun : str
        Its name in messages.
    format : str
        Its name in the metadata.
    version : int
        The version that is written, and the highest that can be read.
    oldest : int
        The lowest version that can be read.
    error : type
        The error class for files that cannot be read or written.
    """

    noun: str
    format: str
    version: int
    oldest: int
    error: type[ModelFileError] | type[CheckpointError]


MODEL = Kind("model file", "stickbreak-model", 2, 1, ModelFileError)
TRACE = Kind("trace", "stickbreak-trace", 1, 1, ModelFileError)
HIERARCHY = Kind("hierarchy", "stickbreak-hierarchy", 1, 1, ModelFileError)
CHECKPOINT = Kind("checkpoint", "stickbreak-checkpoint", 12, 12, CheckpointError)


def write(path: str | os.PathLike[str], header: Header, arrays: Arrays, kind: Kind = MODEL) -> None:
    """Write a file; an existing file is replaced only when the new one is complete and on disk.

    Raises
    ------
    InvalidType, InvalidArgument
        `path` is not a path, or is empty.
    ModelFileError, CheckpointError
        The file cannot be written.
    """
    target = _target(path, kind)
    # safetensors writes raw memory, so arrays must be in C order.
    tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    text = json.dumps(_to_json(header), allow_nan=False)
    metadata = {
        "format": kind.format,
        "version": str(kind.version),
        "header": text,
        "checksum": checksum(text, tensors),
    }
    try:
        with replacing(target) as file:
            file.write(save(tensors, metadata))
    except (OSError, SafetensorError) as error:
        raise kind.error(f"{path}: the {kind.noun} cannot be written: {_reason(error)}") from error


def check_writable(path: str | os.PathLike[str], kind: Kind = MODEL) -> None:
    """Raise the error that `write` would raise for this path, as far as it can be known beforehand."""
    target = _target(path, kind)
    try:
        check_replaceable(target)
    except OSError as error:
        raise kind.error(f"{path}: the {kind.noun} cannot be written: {_reason(error)}") from error


def lock(path: str | os.PathLike[str], kind: Kind) -> Lock:
    """Take the lock of a path, to hold while files are written to it.

    Raises
    ------
    ModelFileError, CheckpointError
        The lock is taken, or the path cannot be a file.
    """
    try:
        return Lock(beside(_target(path, kind), ".lock"))
    except Held as error:
        raise kind.error(f"{path}: another run writes to this {kind.noun}; give another path") from error


def kind_of(path: str | os.PathLike[str]) -> Kind:
    """Return the kind stated in a file; a model if the file cannot be read."""
    name = _format_of(path)
    return next((kind for kind in (TRACE, HIERARCHY) if kind.format == name), MODEL)


def is_own(path: str | os.PathLike[str]) -> bool:
    """Return whether this package wrote a file, by what the file states."""
    return _format_of(path) in {kind.format for kind in (MODEL, TRACE, HIERARCHY, CHECKPOINT)}


def _format_of(path: str | os.PathLike[str]) -> str | None:
    file_path = as_path(path)
    try:
        # A named pipe would wait for its writer.
        if not file_path.is_file():
            return None
        with safe_open(file_path, framework="numpy") as file:
            return (file.metadata() or {}).get("format")
    except (OSError, SafetensorError, ValueError):
        return None


def read(path: str | os.PathLike[str], kind: Kind = MODEL) -> tuple[Header, Arrays]:
    """Read a file.

    Raises
    ------
    InvalidType, InvalidArgument
        `path` is not a path, or is empty.
    ModelFileError, CheckpointError
        The file is missing, is of another kind, is damaged, or needs a newer stickbreak.
    """
    file_path = as_path(path)
    try:
        if not file_path.is_file():
            raise kind.error(f"{file_path}: {'not a file' if file_path.exists() else 'there is no such file'}")
        # safetensors reports system errors as a missing file, so system errors are raised here first.
        with file_path.open("rb"):
            pass
        # Checks the layout and the sizes, and reads no arrays.
        with safe_open(file_path, framework="numpy") as file:
            metadata = _metadata(file.metadata(), file_path, kind)
        header = json.loads(metadata["header"], object_hook=_from_json)
        if not isinstance(header, dict):
            raise kind.error(f"{file_path}: the header of the {kind.noun} is damaged")
        with Tensors(file_path) as tensors:
            # Files of other programs may lack a checksum.
            if metadata.get("checksum") not in (None, _digest(metadata["header"], tensors.described())):
                raise kind.error(f"{file_path}: the {kind.noun} is damaged: its checksum does not fit its content")
            arrays = tensors.arrays()
    except OSError as error:
        raise kind.error(f"{file_path}: cannot be read: {error.strerror or error}") from error
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, SafetensorError) as error:
        raise kind.error(f"{file_path}: not a {kind.noun}, or damaged: {said(error)}") from error
    return header, arrays


def checksum(header: str, arrays: Arrays) -> str:
    """Return the checksum of a file with this header, as stored in the metadata, and these arrays."""
    return _digest(
        header,
        (
            Described(name, array.dtype, array.shape, [np.ascontiguousarray(array).data])
            for name, array in sorted(arrays.items())
        ),
    )


def _digest(header: str, arrays: Iterable[Described]) -> str:
    """Return the checksum of a header and of arrays sorted by name."""
    digest = hashlib.blake2b(header.encode(), digest_size=16)
    for array in arrays:
        digest.update(f"\n{array.name} {array.dtype.str} {array.shape}\n".encode())
        for piece in array.pieces:
            digest.update(piece)
    return digest.hexdigest()


def said(error: Exception) -> str:
    """Return the description of an error in the content of a file; a KeyError states only the name of the field."""
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def as_path(path: object) -> Path:
    """Return the argument `path` as a path."""
    if not isinstance(path, str | os.PathLike):
        raise invalid_type("path", describe(path), "a path: a string or a pathlib.Path")
    text = os.fsdecode(path)
    if not text:
        raise invalid_argument("path", "''", "the name of a file")
    return Path(text)


def _target(path: object, kind: Kind) -> Path:
    named = as_path(path)
    try:
        target = Path(os.path.realpath(named))
        irregular = target.exists() and not target.is_file()
    except (OSError, ValueError) as error:
        raise kind.error(f"{path}: not a path of a file: {error}") from error
    if irregular:
        raise kind.error(f"{path}: exists and is not a regular file")
    return target


def _reason(error: Exception) -> str:
    """Return why a file cannot be written, without the name of the temporary one."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _metadata(metadata: dict[str, str] | None, path: Path, kind: Kind) -> dict[str, str]:
    if not metadata or metadata.get("format") != kind.format:
        raise kind.error(f"{path}: a safetensors file, but not a {kind.noun} of stickbreak")
    version = metadata.get("version", "")
    if not version.isdecimal() or int(version) < 1:
        raise kind.error(f"{path}: the header of the {kind.noun} is damaged: version {version!r}")
    if int(version) > kind.version:
        raise kind.error(
            f"{path}: written by a newer stickbreak (format {version}; this one reads up to {kind.version}); "
            "please upgrade"
        )
    if int(version) < kind.oldest:
        raise kind.error(
            f"{path}: written by an older stickbreak (format {version}; this one reads from {kind.oldest} on); "
            "give another path, or delete the file"
        )
    return metadata


def _to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return value


def _from_json(value: dict[str, Any]) -> Any:
    return float(value["$float"]) if value.keys() == {"$float"} else value


def check_kinds(state: object, state_arrays: Arrays) -> None:
    """Refuse parameters and arrays of kinds that the core cannot read; ignore unknown entries."""
    header = instance("state", state, dict, "an object")
    roles = ("likelihood_parameters", "process_parameters", "background_parameters")
    for role in (role for role in roles if role in header or role != "background_parameters"):
        for name, value in instance(role, header[role], dict, "an object").items():
            if isinstance(value, bool) or not isinstance(value, int | float | str | None):
                raise invalid_type(f"{role}.{name}", describe(value), "a number or a word")
    for name, array in state_arrays.items():
        if (name in _STATE_ARRAYS or name.startswith(_PREFIXES)) and array.dtype != np.float64:
            raise invalid_type(name, describe(array), "an array of float64")
