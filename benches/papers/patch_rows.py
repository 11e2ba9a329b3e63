"""Patches of photographs as rows of a density: less their mean, in 63 coordinates, and without steps of grey values.

A patch of 8 x 8 pixels less its mean has 63 degrees of freedom. Of 64 columns one direction would have no spread at
all; there every density is as high as its prior allows, and the higher the more rows a component has. So rows are
coordinates in the basis of the two-dimensional cosine transform without its constant: a rotation, which changes nothing
else. For the same reason grey values get noise that is uniform over a step: in flat parts of a photograph all pixels
are equal, and a component that has only such patches has no highest likelihood. (Densities of patches are often
compared in the first 63 pixels instead of these coordinates; there they are log 8 = 2.08 nats higher.)
"""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.fft import idctn

from images import SIDE, Photographs

Rows = NDArray[np.float32]
N_COLUMNS = SIDE * SIDE - 1
WHITE = 255
_WAVES = [idctn(wave.reshape(SIDE, SIDE), norm="ortho").ravel() for wave in np.eye(SIDE * SIDE)[1:]]
# The coordinates of a patch are its pixels, line by line, times this, shape (64, 63); its columns are orthonormal.
BASIS: Rows = np.array(_WAVES, dtype=np.float32).T
# Photographs of which a block of a stream has a part.
IN_BLOCK = 10


def n_patches(images: Photographs, stride: int) -> int:
    """How many patches there are, `stride` pixels apart."""
    return sum(_windows(image, stride)[1] for image in images)


def rows_of(images: Photographs, stride: int, every: int = 1) -> tuple[Rows, NDArray[np.intp]]:
    """One in `every` patches of each photograph, and the number of the photograph of each row."""
    parts = [_part(image, index, stride, 0, every) for index, image in enumerate(images)]
    owners = np.repeat(np.arange(len(images)), [len(part) for part in parts])
    return np.concatenate(parts), owners


def stream(images: Photographs, stride: int, n_phases: int) -> Callable[[], Iterator[Rows]]:
    """A source of blocks that makes rows as they are asked for. Of each photograph it takes one patch in `n_phases`,
    then those beside them, and so on: each of `n_phases` runs of rows is like the whole.
    """

    def blocks() -> Iterator[Rows]:
        for phase in range(n_phases):
            for begin in range(0, len(images), IN_BLOCK):
                own = enumerate(images[begin : begin + IN_BLOCK], begin)
                yield np.concatenate([_part(image, index, stride, phase, n_phases) for index, image in own])

    return blocks


def _windows(image: NDArray[np.uint8], stride: int) -> tuple[NDArray[np.uint8], int]:
    """All patches by place, shape (rows, columns, 8, 8), and how many they are."""
    view = np.lib.stride_tricks.sliding_window_view(image, (SIDE, SIDE))[::stride, ::stride]
    return view, view.shape[0] * view.shape[1]


def _part(image: NDArray[np.uint8], index: int, stride: int, first: int, every: int) -> Rows:
    """One in `every` patches, from the one numbered `first` on; the same in every call."""
    view, count = _windows(image, stride)
    places = np.unravel_index(np.arange(first, count, every), view.shape[:2])
    pixels = view[places].reshape(-1, SIDE * SIDE).astype(np.float32)
    pixels += np.random.default_rng([index, first, every]).random(pixels.shape, dtype=np.float32)
    # The coordinates know nothing of the mean.
    return pixels @ BASIS / np.float32(WHITE)
