"""Two photographs that ship with scikit-learn, cut into overlapping patches."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_sample_image

PHOTOGRAPHS = ("china.jpg", "flower.jpg")
SIDE = 8
# Weights of red, green and blue in the luminance of Rec. 709.
_LUMINANCE = np.array([0.2125, 0.7154, 0.0721])

Photograph = NDArray[np.uint8]
Patches = NDArray[np.float32]


def load_photograph(name: str, height: int | None = None) -> Photograph:
    """Return a photograph, shape (height, width, 3), or its centre with this `height` and the same aspect ratio."""
    photograph: Photograph = load_sample_image(name)
    if height is None:
        return photograph
    full_height, full_width = photograph.shape[:2]
    height = min(height, full_height)
    width = full_width * height // full_height
    top, left = (full_height - height) // 2, (full_width - width) // 2
    return photograph[top : top + height, left : left + width]


def grid(photograph: Photograph) -> tuple[int, int]:
    """Return the numbers of patches of a photograph from top to bottom and from left to right."""
    height, width = photograph.shape[:2]
    return height - SIDE + 1, width - SIDE + 1


def patches(photograph: Photograph) -> Patches:
    """Return the luminance, from 0 to 1, of all overlapping patches minus their own means, shape (n, 64).

    They are ordered by their corners: row by row, from left to right.
    """
    luminance = (photograph @ _LUMINANCE / 255.0).astype(np.float32)
    windows = np.lib.stride_tricks.sliding_window_view(luminance, (SIDE, SIDE)).reshape(-1, SIDE * SIDE)
    return np.asarray(windows - windows.mean(axis=1, keepdims=True))


def contrast_strata(rows: Patches, n_strata: int) -> NDArray[np.int64]:
    """Return for each patch which of `n_strata` equal parts, ranked by contrast, contains it.

    Patches differ mainly in contrast, so these are good initial labels for several components. Seeds picked among the
    rows would leave many components nearly empty.
    """
    energy: NDArray[Any] = np.einsum("ij,ij->i", rows, rows)
    labels = np.empty(len(rows), dtype=np.int64)
    labels[np.argsort(energy, kind="stable")] = np.arange(len(rows)) * n_strata // len(rows)
    return labels
