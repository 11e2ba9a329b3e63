"""Helpers of the tests of moves: sets of moves, records of passes, and requirements on every fit."""

from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from stickbreak.testing import visible_bits

USUAL = (sb.Birth(), sb.Merge(), sb.Delete())
# Every set of moves with code of its own, by name.
MOVES: dict[str, tuple[Any, ...]] = {
    "births": USUAL,
    "adopted": (sb.Birth(adoption="pass"), sb.Merge(), sb.Delete()),
    "splits": (sb.Split(), sb.Merge(), sb.Delete()),
    "all": (sb.Birth(fresh=4, max_subsample=500), sb.Split(candidates=3), sb.Merge(), sb.Delete(candidates=3)),
}
every_set = pytest.mark.parametrize("moves", MOVES.values(), ids=MOVES)


def told(fit: sb.Fit) -> list[Any]:
    """Return everything in the records of passes except seconds."""
    return [(repr(record.elbo), record.n_components, record.moves) for record in fit.history]


def bits(fit: sb.Fit, rows: Any) -> Any:
    """Return every number of a fit and of its passes."""
    return visible_bits(fit, rows), told(fit)


def assert_sound(fit: sb.Fit, rows: Any, mass: float, *, exact: bool = True, rounding: float = 0.0) -> None:
    """Assert that everything is finite, the bound is monotone, and masses and moves are accounted for.

    `exact` is for float64; the bound may fall by `rounding`, in nats.
    """
    bounds = np.array([record.objective for record in fit.history])
    assert np.isfinite(bounds).all()
    slack = 1e-9 if exact else 1e-6
    # The margin drops at most n K exp(-20) per pass.
    dropped = mass * (1 + max(record.n_components for record in fit.history)) * np.exp(-20.0)
    # Those of a search in other rows than all do not compare with those of the passes after it.
    rises = np.where(np.diff([record.mass for record in fit.history]) == 0.0, np.diff(bounds), 0.0)
    assert (rises >= -dropped - rounding - slack * (1.0 + np.abs(bounds[1:]))).all()
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
