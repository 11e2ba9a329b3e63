"""The draws that calibration and Geweke's test start from: against enumeration and SciPy.

Each check fails for one seed in a million.
"""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from oracles import partitions

LAWS = {
    "dirichlet": partitions.dirichlet(1.3),
    "pitman-yor": partitions.pitman_yor(0.4, 0.7),
    "finite": partitions.finite(3, 2.0),
    "generalized gamma": partitions.generalized_gamma(0.7, 0.5),
    "finite mixtures": partitions.finite_mixtures(0.7, 1.5),
}


@pytest.mark.parametrize("n", range(8))
def test_sizes_are_those_of_all_partitions(n: int) -> None:
    every = {tuple(sorted(Counter(labels).values(), reverse=True)) for labels in partitions.set_partitions(n)}
    assert sorted(every) == sorted(partitions.sizes_of_partitions(n))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.one_in(2)
def test_partitions_follow_their_law(law: str) -> None:
    every = partitions.set_partitions(4)
    probabilities = np.exp([LAWS[law](np.bincount(labels).tolist()) for labels in every])
    assert probabilities.sum() == pytest.approx(1.0)
    rng = np.random.default_rng(0)
    drawn = Counter(tuple(partitions.draw_partition(LAWS[law], 4, rng).tolist()) for _ in range(5_000))
    possible = probabilities > 0
    assert sum(drawn[labels] for labels, is_possible in zip(every, possible, strict=True) if not is_possible) == 0
    counts = [drawn[labels] for labels, is_possible in zip(every, possible, strict=True) if is_possible]
    assert stats.chisquare(counts, 5_000 * probabilities[possible]).pvalue > 1e-6


def test_rows_follow_the_base_measure() -> None:
    """One row is Student's t, and two of a cluster share its mean: E x y = E Sigma / kappa."""
    psi = np.array([[1.0, 0.3], [0.3, 0.7]])
    marginal = partitions.GaussianMarginal(np.array([0.5, -1.0]), 0.4, 9.0, psi)
    rng = np.random.default_rng(1)
    rows = np.array([marginal.draw(np.array([0, 0, 1]), rng) for _ in range(5_000)])
    dof = 9.0 - 2 + 1
    for column in range(2):
        scale = np.sqrt(psi[column, column] * 1.4 / (0.4 * dof))
        law = stats.t(dof, marginal.m[column], scale)
        assert stats.kstest(rows[:, 0, column], law.cdf).pvalue > 1e-6
    away = rows - marginal.m
    for other, expected in ((1, psi[0, 1] / (9.0 - 3.0) / 0.4), (2, 0.0)):
        products = away[:, 0, 0] * away[:, other, 1]
        assert abs(products.mean() - expected) < 4.9 * products.std() / np.sqrt(len(products))
