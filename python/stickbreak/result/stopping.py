"""How many joins of components to make, by the rows around the borders of what is joined."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stickbreak.model.counts import NegativeBinomial
from stickbreak.result.dip import critical_dip, dip

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
# Two clusters of a valley below this part of the lower peak are never joined.
_GUARD = 0.1
# Components that share a row, at most.
_SHARING = 4
# Rows that are looked at, and values of each side of a dip.
_MOST_ROWS = 100_000
_MOST_VALUES = 1000
# A side of fewer rows has no shape.
_FEW = 4.0
# Bins of a density: this many per bandwidth, within limits.
_BINS_PER_BANDWIDTH, _FEWEST_BINS, _MOST_BINS = 4, 64, 4000
# A component of fewer rows is not asked for its kurtosis.
_FEWEST_OF_KURTOSIS = 8.0
# Smallest overlap, and the largest fall in powers of ten.
_LEAST_OVERLAP, _LARGEST_FALL = 1e-12, 4.0


class Constants(NamedTuple):
    """What `n_joins` was chosen by; docs/decisions/clusters.md has the measurements."""

    # Components look like pieces of shapes below this score.
    gate: float = -1.28
    # A valley of this depth speaks neither for nor against a join of pieces, or of Gaussian clusters.
    pieces: float = 0.3
    gaussian: float = 0.85
    # Weights of the dip, and of a fall of the overlap to a tenth.
    dip: float = 2.0
    fall: float = 1.0


@dataclass(frozen=True)
class Evidence:
    """What is measured at J joins.

    Parameters
    ----------
    flatness : float
        Standard score of the kurtosis of the components along their longest axes. Pieces of bars, rings and squares
        are flat there, so it is negative.
    overlap : ndarray of shape (J,)
        As in `Join`.
    valley : ndarray of shape (J,)
        The lowest density between the two nearest components of the clusters, divided by the lower of their peaks.
    dip : ndarray of shape (J,)
        Their dip, divided by the one that 10 % of uniform samples exceed.
    depth : ndarray of shape (J,)
        The same for all rows of the two clusters.
    """

    flatness: float
    overlap: Array
    valley: Array
    dip: Array
    depth: Array


class Shared(NamedTuple):
    """The rows, (n, D), their weights, and the largest responsibilities of each with their components, (n, L)."""

    rows: NDArray[Any]
    weights: Array
    components: Labels
    values: Array


class Moments(NamedTuple):
    """Means (K, D) and covariances (K, D, D)."""

    means: Array
    covariances: Array


CHOSEN = Constants()


def moments(estimates: dict[str, Array], likelihood: Any) -> Moments | None:
    """Return the moments of components, or None if rows are no real numbers."""
    if "mean" not in estimates or isinstance(likelihood, NegativeBinomial):
        return None
    means = estimates["mean"]
    unit = np.eye(means.shape[1])
    if "covariance" in estimates:
        return Moments(means, estimates["covariance"])
    if "variance" not in estimates:
        return Moments(means, np.broadcast_to(likelihood.covariance, (len(means), *unit.shape)))
    variances = estimates["variance"].reshape(len(means), -1, 1)
    return Moments(means, variances * unit)


def n_complete(shared: Shared) -> int:
    """Return the number of rows without missing values and with a weight."""
    return int(np.count_nonzero(_complete(shared)))


def _complete(shared: Shared) -> NDArray[np.bool_]:
    complete: NDArray[np.bool_] = np.isfinite(shared.rows).all(axis=1) & (shared.weights > 0.0)
    return complete


def n_joins(found: Evidence, constants: Constants = CHOSEN) -> int:
    """Return the number of joins to make: the one with the highest score, up to the first join over a valley."""
    n = len(found.overlap)
    flat = found.flatness < constants.gate
    evidence = np.log(np.maximum(found.valley, 1e-9) / (constants.pieces if flat else constants.gaussian))
    if flat:
        evidence += constants.dip * (1.0 - found.dip)
    scores = np.append(0.0, np.cumsum(np.clip(evidence, -1.0, 1.0)))
    if flat and n:
        # The overlap falls where all pieces of a shape are joined, thin shapes from a small one.
        overlaps = np.maximum(np.append(max(0.15, found.overlap[0]), found.overlap), _LEAST_OVERLAP)
        scores[:-1] += constants.fall * np.minimum(np.log10(overlaps[:-1] / overlaps[1:]), _LARGEST_FALL)
    over = np.flatnonzero(found.depth < _GUARD)
    return min(int(scores.argmax()), int(over[0]) if len(over) else n)


def evidence(shared: Shared, moments: Moments, pairs: list[tuple[int, int]], overlaps: list[float]) -> Evidence:
    """Measure what `n_joins` needs at joins of these pairs of clusters, each named by its lowest component."""
    shared, moments = _standardised(_some(shared), moments)
    gaps = _gaps(shared, len(moments.means))
    numbers = counts(shared, len(moments.means))
    labels = np.take_along_axis(shared.components, shared.values.argmax(axis=1)[:, None], axis=1)[:, 0]
    order = np.argsort(labels, kind="stable")
    ends = np.searchsorted(labels[order], np.arange(len(numbers) + 1))
    members = [order[begin:end] for begin, end in pairwise(ends)]
    clusters = {name: [name] for pair in pairs for name in pair}
    measured = []
    for one, other in pairs:
        a, b = clusters[one], clusters.pop(other)
        i, j = np.unravel_index(gaps[np.ix_(a, b)].argmax(), (len(a), len(b)))
        near = [a[i]], [b[j]]
        sides = [_projected(shared, members, moments, numbers, *of) for of in (near, (a, b))]
        measured.append((valley(*sides[0]), _relative_dip(*sides[0]), valley(*sides[1])))
        clusters[one] = a + b
    table = np.array(measured, dtype=np.float64).reshape(len(pairs), 3)
    return Evidence(_flatness(shared, numbers), np.array(overlaps), *table.T)


class Side(NamedTuple):
    """Sorted values of one side of a border, and their weights."""

    values: Array
    weights: Array

    def quantiles(self, shares: Array) -> Array:
        """Return the values below which there are these shares of the weight."""
        sums = np.cumsum(self.weights)
        places = np.searchsorted(sums, shares * sums[-1], side="right")
        found: Array = self.values[np.minimum(places, len(sums) - 1)]
        return found


def valley(one: Side, other: Side) -> float:
    """Return the lowest density between the medians of two sides, divided by the lower of the peaks around it.

    The density is that of both sides together, with a Gaussian kernel. Its width suits the narrower side, so a narrow
    cluster stands out from the thin rows of a wide one.
    """
    sizes = [float(side.weights.sum()) for side in (one, other)]
    if min(sizes) < _FEW:
        return 1.0
    low, high = min(one.values[0], other.values[0]), max(one.values[-1], other.values[-1])
    bandwidth = 0.9 * min(map(_deviation, (one, other))) * min(sizes) ** -0.2
    if bandwidth <= 0.0:
        return 1.0
    n_bins = int(min(_MOST_BINS, max(_FEWEST_BINS, np.ceil((high - low) / bandwidth * _BINS_PER_BANDWIDTH))))
    step = (high - low) / n_bins
    values, weights = (np.concatenate(parts) for parts in zip(one, other, strict=True))
    bins = np.histogram(values, bins=n_bins, range=(low, high), weights=weights)[0]
    reach = int(np.ceil(4.0 * bandwidth / step))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / bandwidth) ** 2)
    density = np.convolve(bins, kernel)[reach : reach + n_bins]
    medians = np.concatenate([side.quantiles(np.array([0.5])) for side in (one, other)])
    begin, end = np.sort(np.minimum((medians - low) / step, n_bins - 1).astype(np.int64))
    if end - begin < 2:
        return 1.0
    from_left = np.maximum.accumulate(density)[begin : end + 1]
    from_right = np.maximum.accumulate(density[::-1])[::-1][begin : end + 1]
    return float((density[begin : end + 1] / np.minimum(from_left, from_right)).min())


def _relative_dip(one: Side, other: Side) -> float:
    """Return the dip of as many values of both sides, divided by the critical one."""
    size = int(min(one.weights.sum(), other.weights.sum(), _MOST_VALUES))
    if size < 2:
        return 0.0
    shares = (np.arange(size) + 0.5) / size
    return dip(np.concatenate([one.quantiles(shares), other.quantiles(shares)])) / critical_dip(2 * size)


def _deviation(side: Side) -> float:
    mean = np.average(side.values, weights=side.weights)
    return float(np.average((side.values - mean) ** 2, weights=side.weights) ** 0.5)


def _some(shared: Shared) -> Shared:
    """Return evenly spaced rows without missing values, with at most `_SHARING` components each."""
    chosen = np.flatnonzero(_complete(shared))
    chosen = chosen[:: -(-len(chosen) // _MOST_ROWS) or 1]
    components, values = shared.components[chosen], shared.values[chosen]
    if values.shape[1] > _SHARING:
        largest = np.argpartition(values, -_SHARING, axis=1)[:, -_SHARING:]
        components = np.take_along_axis(components, largest, axis=1)
        values = np.take_along_axis(values, largest, axis=1)
        values = values / values.sum(axis=1, keepdims=True)
    return Shared(shared.rows[chosen].astype(np.float64), shared.weights[chosen], components, values)


def _standardised(shared: Shared, moments: Moments) -> tuple[Shared, Moments]:
    """Divide columns by their standard deviations, so that results do not depend on units."""
    mean, deviation = shared.rows.mean(axis=0), shared.rows.std(axis=0)
    scale = np.where(deviation > 0.0, deviation, np.inf)
    return shared._replace(rows=(shared.rows - mean) / scale), Moments(
        (moments.means - mean) / scale, moments.covariances / scale[:, None] / scale
    )


def _gaps(shared: Shared, n_components: int) -> Array:
    """Return the entropy that joining each pair of components removes, (K, K)."""
    gaps = np.zeros((n_components, n_components))
    width = shared.values.shape[1]
    for i in range(width):
        for j in range(i):
            r, s = shared.values[:, i], shared.values[:, j]
            gap = shared.weights * (_x_ln_x(r + s) - _x_ln_x(r) - _x_ln_x(s))
            np.add.at(gaps, (shared.components[:, i], shared.components[:, j]), gap)
    return gaps + gaps.T


def counts(shared: Shared, n_components: int) -> Array:
    """Return the number of rows of each component, (K,)."""
    shares = (shared.weights[:, None] * shared.values).ravel()
    return np.bincount(shared.components.ravel(), shares, minlength=n_components).astype(np.float64)


def _x_ln_x(x: Array) -> Array:
    return x * np.log(np.maximum(x, 1e-300))


def _projected(
    shared: Shared, members: list[Labels], moments: Moments, numbers: Array, a: list[int], b: list[int]
) -> tuple[Side, Side]:
    """Project the rows of two clusters on the direction that separates Gaussians of their moments best."""
    (mean_a, covariance_a), (mean_b, covariance_b) = (_pooled(moments, numbers, of) for of in (a, b))
    inverse = np.linalg.pinv(covariance_a + covariance_b, rcond=1e-12, hermitian=True)
    direction = inverse @ (mean_b - mean_a)
    one, other = (_side(shared, np.concatenate([members[k] for k in of]), direction) for of in (a, b))
    return one, other


def _pooled(moments: Moments, numbers: Array, of: list[int]) -> tuple[Array, Array]:
    # A component may have no complete rows.
    weights = np.maximum(numbers[of], 1e-12)
    weights = weights / weights.sum()
    mean = weights @ moments.means[of]
    apart = moments.means[of] - mean
    return mean, np.einsum("k,kij->ij", weights, moments.covariances[of]) + (apart.T * weights) @ apart


def _side(shared: Shared, rows: Labels, direction: Array) -> Side:
    values = shared.rows[rows] @ direction
    order = np.argsort(values, kind="stable")
    return Side(values[order], shared.weights[rows][order])


def _flatness(shared: Shared, numbers: Array) -> float:
    """Return the sum of the standard scores of the kurtosis of components, which is standard normal for Gaussians."""
    flat = shared.components.ravel()
    order = np.argsort(flat, kind="stable")
    ends = np.searchsorted(flat[order], np.arange(len(numbers) + 1))
    width = shared.components.shape[1]
    scores = []
    for k in np.flatnonzero(numbers >= _FEWEST_OF_KURTOSIS):
        places = order[ends[k] : ends[k + 1]]
        rows = places // width
        weights = shared.weights[rows] * shared.values.ravel()[places]
        n = numbers[k]
        centred = shared.rows[rows] - np.average(shared.rows[rows], axis=0, weights=weights)
        longest = np.linalg.eigh((centred.T * weights) @ centred)[1][:, -1]
        squares = (centred @ longest) ** 2
        total = weights @ squares
        if total > 0.0:
            kurtosis = n * (weights @ squares**2) / total**2
            variance = 24.0 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5))
            scores.append(np.clip((kurtosis - 3.0 * (n - 1) / (n + 1)) / variance**0.5, -5.0, 5.0))
    return float(np.sum(scores) / max(1, len(scores)) ** 0.5)
