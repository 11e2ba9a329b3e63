"""Effective sample sizes and R-hat against values of ArviZ (arviz-stats 0.8.0, bulk and rank)."""

import numpy as np
import pytest

from stickbreak import _core

# Effective sample size, R-hat.
EXPECTED = {
    "independent": (1864.3481629489534, 0.9998085903497649),
    "slow": (73.38983281578285, 1.0872097988707587),
    "antithetic": (1666.890750230186, 1.0015937065903924),
    "one chain": (86.77355076148345, None),
    "short": (19.265919722494797, 1.0917335448128747),
    "counts": (143.2248483615387, 1.0281076416092623),
    "apart": (7.235936615783618, 1.5332196371133697),
    "heavy": (2076.5366630929657, 0.9998908402619043),
    "shortest": (7.224719895935548, 2.9994207791566874),
}


def cases():
    rng = np.random.default_rng(5)
    found = {}
    kinds = [
        ("independent", 0.0, 4, 500),
        ("slow", 0.9, 3, 400),
        ("antithetic", -0.6, 2, 301),
        ("one chain", 0.5, 1, 250),
        ("short", 0.3, 2, 9),
    ]
    for name, phi, chains, n in kinds:
        x = np.zeros((chains, n))
        x[:, 0] = rng.normal(size=chains)
        for t in range(1, n):
            x[:, t] = phi * x[:, t - 1] + np.sqrt(1 - phi**2) * rng.normal(size=chains)
        found[name] = x
    found["counts"] = np.floor(3 * np.abs(found["slow"]))
    found["apart"] = found["independent"] + np.arange(4)[:, None]
    found["heavy"] = np.tan(found["independent"])
    found["shortest"] = rng.normal(size=(2, 4))
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_values_are_those_of_arviz(name):
    draws, (ess, rhat) = cases()[name], EXPECTED[name]
    assert _core.ess(draws) == pytest.approx(ess, rel=1e-10)
    # ArviZ has none for one chain; its halves have one.
    assert _core.rhat(draws) == pytest.approx(rhat, rel=1e-10) if rhat else 0.9 < _core.rhat(draws) < 1.1


def test_what_says_nothing_is_nan():
    for draws in (np.ones((2, 50)), np.zeros((2, 3)), np.full((2, 50), np.nan)):
        assert np.isnan(_core.ess(draws))
        assert np.isnan(_core.rhat(draws))
