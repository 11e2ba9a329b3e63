"""What the tests of moves share: sets of moves, what a fit tells of its passes, and what every fit must be."""

from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from stickbreak.testing import visible_bits

USUAL = (sb.Birth(), sb.Merge(), sb.Delete())
# By name, every set of moves that has its own code.
MOVES: dict[str, tuple[Any, ...]] = {
    "births": USUAL,
    "adopted": (sb.Birth(adoption="pass"), sb.Merge(), sb.Delete()),
    "splits": (sb.Split(), sb.Merge(), sb.Delete()),
    "all": (sb.Birth(fresh=4, max_subsample=500), sb.Split(candidates=3), sb.Merge(), sb.Delete(candidates=3)),
}
every_set = pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)


def told(fit: sb.Fit) -> list[Any]:
    """All that the passes tell but their seconds."""
    return [(repr(record.elbo), record.n_components, record.moves) for record in fit.history]


def bits(fit: sb.Fit, rows: Any) -> Any:
    """Every number that a fit shows, of its passes too."""
    return visible_bits(fit, rows), told(fit)


def assert_sound(fit: sb.Fit, rows: Any, mass: float, *, exact: bool = True, rounding: float = 0.0) -> None:
    """Everything finite, the bound monotone, masses and moves accounted for.

    `exact` is for float64; the bound may fall by `rounding`, in nats.
    """
    bounds = np.array([record.objective for record in fit.history])
    assert np.isfinite(bounds).all()
    slack = 1e-9 if exact else 1e-6
    # What the margin drops is at most n K exp(-20) a pass.
    dropped = mass * (1 + max(record.n_components for record in fit.history)) * np.exp(-20.0)
    assert (np.diff(bounds) >= -dropped - rounding - slack * (1.0 + np.abs(bounds[1:]))).all()
    assert fit.counts.sum() == pytest.approx(mass, rel=1e-6)
    assert (fit.counts >= 0).all()
    assert (np.diff(fit.counts) <= 0).all()
    for values in (*fit.components.values(), fit.weights):
        assert np.isfinite(values).all()
    for record in fit.history:
        for report in record.moves:
            assert 0 <= report.accepted <= report.proposed
            assert report.gain >= 0.0
            assert report.accepted + sum(report.refused.values()) == report.proposed, report
