"""The photographs of BSDS500 in grey, and what the papers make of them.

They are looked for in `bsds500/{train,val}_gray.npz` of `STICKBREAK_DATA`, else of `../shared/data`.
"""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SIDE = 8
STRIDE = 4

Photographs = list[NDArray[np.uint8]]


def photographs(split: str) -> Photographs:
    """All of them, landscape ones first; `split` is "train" (200) or "val" (100)."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("STICKBREAK_DATA", beside))
    with np.load(folder / "bsds500" / f"{split}_gray.npz", allow_pickle=False) as file:
        return [image for shape in ("landscape", "portrait") for image in file[shape]]


def patches(images: Photographs, n_rows: int, seed: int = 0) -> NDArray[np.float32]:
    """Patches of 8 x 8 pixels, four apart, each less its mean, values in units of white; a random choice in order."""
    windows = [np.lib.stride_tricks.sliding_window_view(image, (SIDE, SIDE))[::STRIDE, ::STRIDE] for image in images]
    ends = np.cumsum([view.shape[0] * view.shape[1] for view in windows])
    total = int(ends[-1])
    chosen = np.sort(np.random.default_rng(seed).choice(total, min(n_rows, total), replace=False))
    found = []
    for view, end in zip(windows, ends, strict=True):
        count = view.shape[0] * view.shape[1]
        own = chosen[(chosen >= end - count) & (chosen < end)] - (end - count)
        found.append(view[np.unravel_index(own, view.shape[:2])].reshape(-1, SIDE * SIDE))
    rows = np.concatenate(found).astype(np.float32) / 255
    return rows - rows.mean(axis=1, keepdims=True)


def grids(images: Photographs) -> NDArray[np.float64]:
    """Each photograph as the means of 8 x 8 cells, from 0 (black) to 1, one row each."""
    return np.array([_cells(image).ravel() / 255 for image in images])


def _cells(image: NDArray[np.uint8]) -> NDArray[np.float64]:
    bands = np.array_split(image, SIDE, axis=0)
    return np.array([[cell.mean() for cell in np.array_split(band, SIDE, axis=1)] for band in bands])
