"""Two photographs that ship with scikit-learn, cut into overlapping patches."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image

PHOTOGRAPHS = ("china.jpg", "flower.jpg")
SIDE = 8
# Shares of red, green and blue in the luminance, the usual ones of Rec. 709 monitors.
_LUMINANCE = np.array([0.2125, 0.7154, 0.0721])

Photograph = NDArray[np.uint8]
Patches = NDArray[np.float32]


def load_photograph(name: str, height: int | None = None) -> Photograph:
    """Return a photograph, shape (height, width, 3), or its middle at `height`, of the same form."""
    photograph: Photograph = load_sample_image(name)
    if height is None:
        return photograph
    full_height, full_width = photograph.shape[:2]
    height = min(height, full_height)
    width = full_width * height // full_height
    top, left = (full_height - height) // 2, (full_width - width) // 2
    return photograph[top : top + height, left : left + width]


def grid(photograph: Photograph) -> tuple[int, int]:
    """Return how many patches a photograph has from top to bottom and from left to right."""
    height, width = photograph.shape[:2]
    return height - SIDE + 1, width - SIDE + 1


def patches(photograph: Photograph) -> Patches:
    """Return the luminance, from 0 to 1, of all overlapping patches, each less its own mean, shape (n, 64).

    Their order is that of their corners: row by row, from left to right.
    """
    luminance = (photograph @ _LUMINANCE / 255.0).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(luminance, (SIDE, SIDE)).reshape(-1, SIDE * SIDE)
    return np.asarray(windows - windows.mean(axis=1, keepdims=True))


def contrast_strata(rows: Patches, n_strata: int) -> NDArray[np.int64]:
    """Return for each patch which of `n_strata` equal parts of the patches, ranked by contrast, holds it.

    Patches differ in contrast before anything else, so this is a good place to start several components from: seeds
    picked among the rows leave many with next to nothing.
    """
    energy: NDArray[Any] = np.einsum("ij,ij->i", rows, rows)
    labels = np.empty(len(rows), dtype=np.int64)
    labels[np.argsort(energy, kind="stable")] = np.arange(len(rows)) * n_strata // len(rows)
    return labels
