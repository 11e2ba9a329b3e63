"""The model file: safetensors for the arrays, with a JSON header in its metadata. Nothing in it is ever executed.

The metadata hold `format` (always "stickbreak-model"), `version` (of the format) and `header`, a JSON object whose
numbers that are not finite are written as `{"$float": "nan"}`, because JSON has none.
"""

import json
import math
import os
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from stickbreak.checks import describe, invalid_type
from stickbreak.errors import ModelFileError

FORMAT = "stickbreak-model"
VERSION = 1

Header = dict[str, Any]
Arrays = dict[str, NDArray[np.float64]]


def write(path: str | os.PathLike[str], header: Header, arrays: Arrays) -> None:
    """Write a model file; an existing one is replaced only once the new one is complete.

    Raises
    ------
    InvalidType
        `path` is not a path.
    ModelFileError
        The file cannot be written.
    """
    target = _writable(path)
    metadata = {"format": FORMAT, "version": str(VERSION), "header": json.dumps(_to_json(header), allow_nan=False)}
    # safetensors writes the memory as it lies: other orders than C would come back scrambled.
    tensors = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # A name of its own: several threads may write the same model.
    part = target.with_name(f".{target.name}.{os.getpid()}.{uuid.uuid4().hex}.part")
    try:
        try:
            part.write_bytes(save(tensors, metadata))
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except (OSError, SafetensorError) as error:
        raise ModelFileError(f"{path}: the model file cannot be written: {error}") from error


def read(path: str | os.PathLike[str]) -> tuple[Header, Arrays]:
    """Read a model file.

    Raises
    ------
    InvalidType
        `path` is not a path.
    ModelFileError
        The file is missing, is no model file, is damaged, or needs a newer stickbreak.
    """
    file_path = _path(path)
    try:
        if not file_path.is_file():
            raise ModelFileError(f"{file_path}: {'not a file' if file_path.exists() else 'there is no such file'}")
        with safe_open(file_path, framework="numpy") as file:
            header = _header(file.metadata(), file_path)
            arrays: Arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, ValueError, SafetensorError) as error:
        raise ModelFileError(f"{file_path}: not a model file, or damaged: {error}") from error
    return header, arrays


def _path(path: object) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise invalid_type("path", describe(path), "a path: a string or a pathlib.Path")
    return Path(os.fsdecode(path))


def _writable(path: object) -> Path:
    try:
        target = Path(os.path.realpath(_path(path)))
        irregular = target.exists() and not target.is_file()
    except (OSError, ValueError) as error:
        raise ModelFileError(f"{path}: not a path of a file: {error}") from error
    if irregular:
        raise ModelFileError(f"{path}: exists and is not a regular file")
    return target


def _header(metadata: dict[str, str] | None, path: Path) -> Header:
    if not metadata or metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path}: a safetensors file, but not a model of stickbreak")
    version = metadata.get("version", "")
    if version.isdecimal() and int(version) > VERSION:
        raise ModelFileError(
            f"{path}: written by a newer stickbreak (format {version}; this one reads up to {VERSION}); please upgrade"
        )
    try:
        header = _from_json(json.loads(metadata["header"]))
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"{path}: the header of the model file is damaged: {error}") from error
    if version != str(VERSION) or not isinstance(header, dict):
        raise ModelFileError(f"{path}: the header of the model file is damaged")
    return header


def _to_json(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    return value


def _from_json(value: Any) -> Any:
    if isinstance(value, dict):
        if value.keys() == {"$float"}:
            return float(value["$float"])
        return {key: _from_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_from_json(item) for item in value]
    return value
