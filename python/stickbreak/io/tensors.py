"""The arrays of a safetensors file, read directly from the file: piece by piece, or each into its own memory.

The checksum is verified before memory is allocated for any array.
"""

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Number of bytes read at a time.
_PIECE = 1 << 20
# NumPy types by their names in the file.
_TYPES = {
    "BOOL": "|b1",
    **{f"{letter}{bits}": f"<{letter.lower()}{bits // 8}" for letter in "IUF" for bits in (16, 32, 64)},
    "I8": "|i1",
    "U8": "|u1",
}


class Described(NamedTuple):
    """One array of a file."""

    name: str
    dtype: "np.dtype[Any]"
    shape: tuple[int, ...]
    pieces: Iterable[bytes | memoryview]


class Tensors:
    """The arrays of a safetensors file whose layout has been checked.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    ValueError, KeyError, TypeError
        The description of an array does not match the file.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            size = int.from_bytes(self._file.read(8), "little")
            self._entries = json.loads(self._file.read(size))
            self._first = 8 + size
        except BaseException:
            self._file.close()
            raise
        self._entries.pop("__metadata__", None)

    def __enter__(self) -> "Tensors":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def described(self) -> Iterator[Described]:
        """Yield the arrays sorted by name; the pieces of each must be read before the next one."""
        for name in sorted(self._entries):
            dtype, shape, begin, end = self._entry(name)
            yield Described(name, dtype, shape, self._pieces(begin, end))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Read all arrays."""
        arrays = {}
        for name in self._entries:
            dtype, shape, begin, _ = self._entry(name)
            array = np.empty(shape, dtype)
            self._file.seek(begin)
            if array.nbytes and self._file.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:
                raise ValueError(f"the array {name} is cut off")
            arrays[name] = array
        return arrays

    def _entry(self, name: str) -> "tuple[np.dtype[Any], tuple[int, ...], int, int]":
        entry = self._entries[name]
        dtype, shape = np.dtype(_TYPES[entry["dtype"]]), tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        if end - begin != dtype.itemsize * math.prod(shape):
            raise ValueError(f"the array {name} of shape {shape} has {end - begin} bytes")
        return dtype, shape, self._first + begin, self._first + end

    def _pieces(self, begin: int, end: int) -> Iterator[bytes]:
        self._file.seek(begin)
        while begin < end:
            piece = self._file.read(min(_PIECE, end - begin))
            if not piece:
                raise ValueError("the file is cut off")
            begin += len(piece)
            yield piece
