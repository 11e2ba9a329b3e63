"""Conditional samplers of rows with heavy tails against the posterior of all partitions."""

from typing import Any

import numpy as np
import pytest
from scipy import integrate
from scipy.special import gammaln, logsumexp

import stickbreak as sb
from oracles.models import Array

MEAN, PRECISION, DOF, SCALE, TAIL = 0.2, 0.5, 3.0, 2.0, 3.0
ROWS = np.array([[-1.0], [-0.6], [2.5], [9.0]])


def log_evidence(rows: Array) -> float:
    """Log density of the rows of one cluster: quadrature over its mean and log precision."""
    precisions = np.exp(np.linspace(-9.0, 5.0, 400))
    means = np.sinh(np.linspace(-4.5, 4.5, 900))
    mean, precision = np.meshgrid(means, precisions, indexing="ij")
    spread = PRECISION * precision
    prior = 0.5 * np.log(spread / (2 * np.pi)) - 0.5 * spread * (mean - MEAN) ** 2
    shape, rate = DOF / 2, SCALE / 2
    prior = prior + shape * np.log(rate) - gammaln(shape) + (shape - 1) * np.log(precision) - rate * precision
    density = prior
    for x in rows:
        square = precision * (x - mean) ** 2
        constant = gammaln((TAIL + 1) / 2) - gammaln(TAIL / 2) - 0.5 * np.log(np.pi * TAIL)
        density = density + constant + 0.5 * np.log(precision) - (TAIL + 1) / 2 * np.log1p(square / TAIL)
    inner = integrate.simpson(np.exp(density), x=means, axis=0)
    return float(np.log(integrate.simpson(inner * precisions, x=np.log(precisions))))


def partitions(n: int) -> list[tuple[int, ...]]:
    """All partitions of n rows as labels in order of first appearance."""
    found: list[tuple[int, ...]] = [(0,)]
    for _ in range(1, n):
        found = [(*labels, label) for labels in found for label in range(max(labels) + 2)]
    return found


def likelihood(covariance: Any) -> sb.StudentT:
    scale = [[SCALE]] if covariance == "full" else [SCALE]
    values: dict[str, Any] = {"mean": [MEAN], "mean_precision": PRECISION, "dof": DOF, "scale": scale, "resolution": 0}
    return sb.StudentT(TAIL, covariance=covariance, **values)


@pytest.mark.slow
@pytest.mark.parametrize("covariance", ["full", "diagonal"])
@pytest.mark.parametrize("sampler", [sb.BlockedGibbs(truncation=25), sb.Slice()])
def test_partitions_have_their_posterior(sampler: Any, covariance: str) -> None:
    alpha, all_of = 1.0, partitions(4)
    log_weights = []
    for labels in all_of:
        blocks = [ROWS[np.array(labels) == label, 0] for label in range(max(labels) + 1)]
        prior = len(blocks) * np.log(alpha) + sum(float(gammaln(len(block))) for block in blocks)
        log_weights.append(prior + sum(log_evidence(block) for block in blocks))
    exact = np.exp(np.array(log_weights) - logsumexp(log_weights))
    model = sb.Mixture(likelihood(covariance), process=sb.DirichletProcess(alpha))
    trace = sb.sample(model, ROWS, sampler, draws=20_000, warmup=500, chains=4, seed=2, progress=False)
    drawn = np.asarray(trace.partitions).reshape(-1, 4)
    found = np.array([np.all(drawn == labels, axis=1) for labels in all_of])
    # Batches of draws give the standard errors.
    batches = found.reshape(len(all_of), 80, -1).mean(2)
    errors = batches.std(1, ddof=1) / np.sqrt(80) + 1e-4
    assert found.any(0).all()
    np.testing.assert_array_less(np.abs(batches.mean(1) - exact), 5 * errors)


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_scales_follow_from_the_seed(covariance: str) -> None:
    own = likelihood(covariance)
    runs = [
        sb.sample(
            sb.Mixture(own), ROWS, sb.Slice(), draws=20, warmup=5, chains=2, seed=4, threads=threads, progress=False
        )
        for threads in (1, 2)
    ]
    np.testing.assert_array_equal(runs[0].partitions, runs[1].partitions)
    np.testing.assert_array_equal(runs[0].log_joint, runs[1].log_joint)
