"""Denoising by the expected patch log likelihood (EPLL) of Zoran and Weiss (2011), with zero-mean Gaussian mixtures.

The photograph x given its noisy version y and the noise's standard deviation s minimises

    D / (2 s^2) |x - y|^2 - sum over all patches i of log p(P_i x)

with D pixels a patch. Half quadratic splitting: for growing beta, z_i is the most probable patch given P_i x with noise
of variance 1 / beta, that is the Wiener estimate under the component that is then most probable; and
x = (D / s^2 y + beta sum P_i' z_i) / (D / s^2 + beta times the number of patches over a pixel). The mean of a patch
stays as it is.

Where `mixed`, z_i is the mean of the Wiener estimates under all components, weighted by how probable they are: the
posterior mean of a patch. To choose one component costs a mixture the more, the more alike its components are under
noise; to weigh them does not: a component in two equal pieces is then as good as in one.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import stickbreak as sb
from images import SIDE
from patch_rows import BASIS

Image = NDArray[np.float32]
Array = NDArray[np.float64]
# Values of beta in units of 1 / s^2, one step each.
BETAS = (1, 4, 8, 16, 32)
# Patches that are looked at together: few enough to stay in the cache.
BLOCK = 4096
# Components that are less probable than the best by this factor are left out of a mean.
LEAST = 1e-3


@dataclass(frozen=True)
class Prior:
    """Log weights (K,) and covariances (K, 63, 63) of patches in the basis of `patch_rows`."""

    log_weights: Array
    covariances: Array

    @classmethod
    def of(cls, found: sb.Fit) -> "Prior":
        """Posterior means of weights and precisions, or what a fit of maximum likelihood found; components in use."""
        used = found.counts >= 0.5
        return cls(np.log(found.weights[used]), found.point_estimates["covariance"][used])

    @classmethod
    def single(cls, rows: NDArray[np.float32]) -> "Prior":
        """One Gaussian with the covariance of the rows."""
        wide = rows.astype(np.float64)
        return cls(np.zeros(1), (wide.T @ wide / len(rows))[None])


@dataclass(frozen=True)
class Step:
    """What a step needs to know of each component under noise of one variance."""

    constants: NDArray[np.float32]
    whiteners: NDArray[np.float32]
    filters: NDArray[np.float32]

    @classmethod
    def of(cls, prior: Prior, variance: float) -> "Step":
        noisy = prior.covariances + variance * np.eye(prior.covariances.shape[1])
        values, vectors = np.linalg.eigh(noisy)
        whiteners = vectors / np.sqrt(values)[:, None, :]
        constants = prior.log_weights - 0.5 * np.log(values).sum(axis=1)
        filters = np.linalg.solve(noisy, prior.covariances)
        return cls(*(array.astype(np.float32) for array in (constants, whiteners, filters)))

    def clean(self, rows: NDArray[np.float32], *, mixed: bool = False) -> NDArray[np.float32]:
        """The Wiener estimate of each row under its most probable component, or their mean under all."""
        scores = np.empty((len(self.constants), len(rows)), dtype=np.float32)
        for k, (constant, whitener) in enumerate(zip(self.constants, self.whiteners, strict=True)):
            white = rows @ whitener
            scores[k] = constant - 0.5 * np.einsum("nd,nd->n", white, white)
        weights = np.exp(scores - scores.max(axis=0))
        weights[weights < (LEAST if mixed else 1)] = 0
        weights /= weights.sum(axis=0)
        cleaned = np.zeros_like(rows)
        for k in np.flatnonzero(weights.any(axis=1)):
            own = np.flatnonzero(weights[k])
            cleaned[own] += weights[k, own, None] * (rows[own] @ self.filters[k])
        return cleaned


def denoise(noisy: Image, sigma: float, prior: Prior, threads: int, *, mixed: bool = False) -> Image:
    """The estimate of a photograph, values from 0 (black) to 1."""
    weight = SIDE * SIDE / sigma**2
    image = noisy
    for beta in (factor / sigma**2 for factor in BETAS):
        step = Step.of(prior, 1 / beta)
        patches = np.lib.stride_tricks.sliding_window_view(image, (SIDE, SIDE))
        places = patches.shape[:2]
        flat = patches.reshape(-1, SIDE * SIDE)

        def cleaned(begin: int, step: Step = step, flat: Image = flat) -> Image:
            part = flat[begin : begin + BLOCK]
            return step.clean(part @ BASIS, mixed=mixed) @ BASIS.T + part.mean(axis=1, keepdims=True)

        # Threads share the blocks, so each needs but one of the linear algebra's own.
        with threadpool_limits(1), ThreadPoolExecutor(threads) as pool:
            parts = np.concatenate(list(pool.map(cleaned, range(0, len(flat), BLOCK))))
        sums, counts = _overlay(parts.reshape(*places, SIDE, SIDE), noisy.shape)
        image = ((weight * noisy + beta * sums) / (weight + beta * counts)).astype(np.float32)
    return image


def psnr(image: Image, truth: Image) -> float:
    """Peak signal-to-noise ratio in decibels, white being 1; values beyond black and white are cut."""
    return float(-10 * np.log10(np.mean((np.clip(image, 0, 1).astype(np.float64) - truth) ** 2)))


def noisy_versions(images: Iterable[NDArray[np.uint8]], sigma: float, seed: int = 0) -> Iterator[tuple[Image, Image]]:
    """Each photograph, and with Gaussian noise, whose values may be beyond black and white."""
    for index, image in enumerate(images):
        truth = image.astype(np.float32) / 255
        noise = np.random.default_rng([seed, index]).standard_normal(truth.shape, dtype=np.float32)
        yield truth, truth + np.float32(sigma) * noise


def _overlay(patches: Image, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """The sum of all patches at their places, and how many are over each pixel."""
    sums, counts = np.zeros(shape), np.zeros(shape)
    height, width = patches.shape[:2]
    for row in range(SIDE):
        for column in range(SIDE):
            place = np.s_[row : row + height, column : column + width]
            sums[place] += patches[:, :, row, column]
            counts[place] += 1
    return sums, counts
