"""Oracle of the point objectives: weights, value and coordinate ascent (mathematics 2g and 6.1)."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp, xlogy

from oracles.models import Array, FiniteSymmetricDirichlet, Process, StickBreaking, counts_behind
from oracles.points import Point, points_of
from oracles.sticks import TruncatedStick
from oracles.variational import Specification, top_l_responsibilities

Objective: TypeAlias = Literal["map", "ml"]


def most_probable_weights(process: Process, counts: Array) -> tuple[Array, float]:
    """The MAP weights of K components, and log p of them: a Dirichlet density, or that of the sticks."""
    if isinstance(process, FiniteSymmetricDirichlet):
        share = process.concentration / len(counts)
        weights = np.maximum(counts + share - 1, 0.0)
        weights = weights / weights.sum()
        return weights, float(stats.dirichlet.logpdf(weights, np.full(len(counts), share)))
    assert isinstance(process, StickBreaking | TruncatedStick)
    concentration = process.concentration
    sticks = counts / (counts + concentration - 1 + counts_behind(counts))
    free = sticks
    if isinstance(process, TruncatedStick):
        sticks, free = np.append(sticks[:-1], 1.0), sticks[:-1]
    weights = sticks * np.append(1.0, np.cumprod(1 - sticks)[:-1])
    return weights, float(stats.beta.logpdf(free, 1, concentration).sum())


@dataclass(frozen=True)
class PointState:
    """Point estimates of weights and components, the responsibilities behind them, and the objective of both."""

    weights: Array
    points: list[Point]
    responsibilities: Array
    objective: float


def point_scores(rows: Array, mixture: Specification, weights: Array, points: list[Point]) -> Array:
    """log pi_k + log p(x_n | phi_k), shape (n, K)."""
    estimates = points_of(mixture.likelihood)
    densities = np.column_stack([estimates.log_density(point, rows) for point in points])
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(weights) + densities)


def objective_scores(
    rows: Array, mixture: Specification, objective: Objective, weights: Array, points: list[Point]
) -> Array:
    """W_nk of the local step: log pi_k + log p(x_n | phi_k), for maximum likelihood less what its ridge costs a row.

    With it in both steps the ridge is a part of the objective, which then cannot fall.
    """
    estimates, scores = points_of(mixture.likelihood), point_scores(rows, mixture, weights, points)
    return scores - [estimates.blur(point, estimates.ridge()) for point in points] if objective == "ml" else scores


def maximise(
    rows: Array, responsibilities: Array, mixture: Specification, objective: Objective, sample_weight: Array
) -> PointState:
    """The M step, and the objective after it."""
    estimates, prior = points_of(mixture.likelihood), 0.0
    weighted = responsibilities * sample_weight[:, None]
    counts = weighted.sum(0)
    if objective == "ml":
        weights = counts / counts.sum()
        points = [estimates.most_likely(rows, column, estimates.ridge()) for column in weighted.T]
    else:
        weights, prior = most_probable_weights(mixture.process, counts)
        points = [estimates.mode(each) for each in weighted.T @ mixture.likelihood.sufficient_statistics(rows)]
        prior += sum(estimates.log_prior(point) for point in points)
    scores = objective_scores(rows, mixture, objective, weights, points)
    kept = np.where(responsibilities > 0, responsibilities * np.where(responsibilities > 0, scores, 0.0), 0.0)
    value = sample_weight @ (kept - xlogy(responsibilities, responsibilities)).sum(1)
    return PointState(weights, points, responsibilities, float(value + prior))


def order_by_size(counts: Array, mixture: Specification, objective: Objective) -> NDArray[np.intp]:
    """As in the variational engine, by what the most probable weights make of an order."""
    stay = np.arange(len(counts))

    def value(order: NDArray[np.intp]) -> float:
        weights, log_prior = most_probable_weights(mixture.process, counts[order])
        return float(xlogy(counts[order], weights).sum() + log_prior)

    if mixture.process.ordered:
        for n_moved in (len(counts), len(counts) - 1):
            order = stay.copy()
            order[:n_moved] = np.argsort(-counts[:n_moved], kind="stable")
            if objective == "ml" or value(order) >= value(stay) - 1e-12 * abs(value(stay)):
                return order
    return stay


def fit_points(
    rows: Array,
    responsibilities: Array,
    mixture: Specification,
    objective: Objective,
    passes: int,
    sparsity: int | None = None,
    sample_weight: Array | None = None,
) -> list[PointState]:
    """Coordinate ascent of a point objective; entry 0 is the state after the first M step.

    As in the variational engine, passes begin and end with the components in the order of `order_by_size`.
    """
    sample_weight = np.ones(len(rows)) if sample_weight is None else sample_weight

    def maximum(responsibilities: Array) -> PointState:
        return maximise(rows, responsibilities, mixture, objective, sample_weight)

    trajectory = [maximum(responsibilities)]
    last = maximum(responsibilities[:, order_by_size(sample_weight @ responsibilities, mixture, objective)])
    for _ in range(passes):
        responsibilities = top_l_responsibilities(
            objective_scores(rows, mixture, objective, last.weights, last.points), sparsity
        )
        last = maximum(responsibilities[:, order_by_size(sample_weight @ responsibilities, mixture, objective)])
        trajectory.append(last)
    return trajectory


def plug_in_log_density(rows: Array, mixture: Specification, weights: Array, points: list[Point]) -> Array:
    """log sum_k pi_k p(x | phi_k) with weights that sum to one over the K components (mathematics 6.1)."""
    return np.asarray(logsumexp(point_scores(rows, mixture, weights / weights.sum(), points), axis=1))
