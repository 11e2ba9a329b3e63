"""The dip against linear programs over distributions with one mode, and against published critical values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from stickbreak.result.dip import critical_dip, dip

Array = NDArray[np.float64]
# Hartigan and Hartigan (1985), table 1, with the digits of later and larger simulations: the dips that 10 % and 5 % of
# samples of n uniform values exceed.
PUBLISHED = {
    10: (0.1305, 0.1396),
    20: (0.0972, 0.1051),
    50: (0.0649, 0.0703),
    100: (0.0472, 0.0511),
    200: (0.0340, 0.0368),
    500: (0.0219, 0.0237),
    1000: (0.01561, 0.01693),
}


def nearest(values: Array, mode: int) -> float:
    """The distance to the nearest distribution that is convex before a value, concave after it, and may jump there."""
    x, n = np.sort(values), len(values)
    left, right = np.arange(mode + 1), np.arange(mode + 1, n + 1)
    place = np.append(x[: mode + 1], x[mode:])  # the mode is there twice: before and after its jump
    distance = n + 1
    rows, limits = [], []

    def at_most(terms: dict[int, float], limit: float) -> None:
        rows.append(np.bincount(list(terms), list(terms.values()), minlength=n + 2))
        limits.append(limit)

    for k in range(n + 1):
        i = k if k <= mode else k - 1
        # The empirical distribution is i / n before value i and (i + 1) / n from it on.
        before, after = i / n, (i + 1) / n
        at_most({k: 1.0, distance: -1.0}, after if k == mode + 1 else before)
        at_most({k: -1.0, distance: -1.0}, -(before if k == mode else after))
        if k < n:
            at_most({k: 1.0, k + 1: -1.0}, 0.0)
    for side, sign in ((left, 1.0), (right, -1.0)):
        for a, b, c in zip(side, side[1:], side[2:], strict=False):
            one, other = sign / (place[b] - place[a]), sign / (place[c] - place[b])
            at_most({int(b): one + other, int(a): -one, int(c): -other}, 0.0)
    objective = np.zeros(n + 2)
    objective[distance] = 1.0
    bounds = [(None, None)] * (n + 1) + [(0, None)]
    return float(linprog(objective, np.array(rows), np.array(limits), bounds=bounds).fun)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(3, 11), st.sampled_from([0.0, 3.0, 8.0]))
def test_dip_is_the_distance_to_the_nearest_distribution_with_one_mode(seed: int, n: int, apart: float) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=n) + apart * rng.integers(3, size=n)
    by_force = max(0.5 / n, min(nearest(values, mode) for mode in range(n)))
    assert dip(values) == pytest.approx(by_force, abs=1e-9)


@pytest.mark.parametrize("n", [20, 50, 100])
def test_dips_of_uniform_samples_exceed_published_values_as_often_as_they_should(n: int) -> None:
    rng = np.random.default_rng(n)
    samples = 1500
    dips = np.array([dip(rng.uniform(size=n)) for _ in range(samples)])
    for share, limit in zip((0.1, 0.05), PUBLISHED[n], strict=True):
        deviation = (share * (1 - share) / samples) ** 0.5
        assert abs(np.mean(dips > limit) - share) < 4 * deviation


def test_critical_values_are_near_the_published_ones() -> None:
    for n, (limit, _) in PUBLISHED.items():
        assert critical_dip(n) == pytest.approx(limit, rel=0.02)


def test_dip_has_neither_place_nor_scale_nor_direction() -> None:
    values = np.random.default_rng(0).normal(size=200) ** 3
    for other in (values[::-1], 1e6 + values, -1e-3 * values):
        assert dip(other) == pytest.approx(dip(values), rel=1e-6)


def test_dips_are_between_one_row_and_a_quarter() -> None:
    assert dip([3.0]) == 0.5
    assert dip(np.full(20, 3.0)) == pytest.approx(1 / 40)
    assert dip(np.arange(20.0)) == pytest.approx(1 / 40)
    far = np.append(
        np.random.default_rng(0).normal(size=500) * 1e-3, 1.0 + np.random.default_rng(1).normal(size=500) * 1e-3
    )
    assert dip(far) == pytest.approx(0.25, abs=0.01)


def test_rounded_values_have_about_the_dip_of_the_values() -> None:
    values = np.random.default_rng(0).normal(size=2000)
    assert dip(np.round(values, 1)) < critical_dip(2000) / 2
    assert dip(np.round(np.append(values, values + 6), 1)) == pytest.approx(
        dip(np.append(values, values + 6)), rel=0.05
    )
