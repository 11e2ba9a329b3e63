"""Budgets of kd-trees whose nodes have few rows."""

import numpy as np
import pytest

import stickbreak as sb


@pytest.mark.parametrize("split", ["axis", "principal"])
@pytest.mark.parametrize("columns", [2, 5, 9])
@pytest.mark.parametrize("budget", [23, 41, 66, 101])
def test_units_stay_within_a_budget(budget: int, columns: int, split: str) -> None:
    """A node of few rows is opened to all of them at once, which takes more of a budget than two halves."""
    rows = np.random.default_rng(columns).standard_normal((150, columns))
    units = sb.KdTree(depth=4, split=split, tolerance=0.0, budget=budget, refine=False)
    model = sb.Mixture(sb.Gaussian(), process=sb.FiniteDirichlet(3))
    fit = sb.fit(model, rows, sb.Full(units=units, moves=(), max_passes=25), seed=1, progress=False)
    found = [record.n_units for record in fit.history]
    # Without the last few units there is no node left that could be opened.
    assert budget - 2 * columns - 4 < max(found) <= budget
