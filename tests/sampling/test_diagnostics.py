"""Diagnoses against values of ArviZ (arviz-stats 0.8.0, bulk and rank), definitions and formulas."""

import numpy as np
import pytest
from scipy.stats import norm

import stickbreak as sb
from oracles.diagnostics import bulk_effective_draws
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


def test_effective_draws_of_short_chains_follow_the_published_rule():
    """Short chains run out of lags at pairs of every kind of signs."""
    rng = np.random.default_rng(0)
    for _ in range(2500):
        draws = rng.normal(size=(rng.integers(1, 5), rng.integers(4, 25)))
        draws = draws + rng.uniform(-0.9, 0.9) * np.roll(draws, 1, axis=1)
        assert _core.ess(draws) == pytest.approx(bulk_effective_draws(draws), rel=1e-10)


def test_what_says_nothing_is_nan():
    for draws in (np.zeros((2, 3)), np.full((2, 50), np.nan)):
        assert np.isnan(_core.ess(draws))
        assert np.isnan(_core.rhat(draws))
    # Chains that never move agree, and have no effective draws.
    assert np.isnan(_core.ess(np.ones((2, 50))))
    assert _core.rhat(np.ones((2, 50))) == 1.0


@pytest.mark.parametrize("name", ["independent", "slow", "antithetic", "one chain"])
def test_autocorrelations_are_those_of_the_definition(name):
    """As in ArviZ: by the mean of the chain, with the divisor n at all lags."""
    draws = cases()[name]
    found = _core.autocorrelation(draws, 7)
    for chain, of_chain in zip(draws, found, strict=True):
        centred = chain - chain.mean()
        products = np.correlate(centred, centred, "full")[len(chain) - 1 :]
        np.testing.assert_allclose(of_chain, products[:8] / products[0], atol=1e-13)


def run_length(draws, quantile, precision, probability):
    """Return burn-in, lag and draws by the formulas of Raftery and Lewis (1992), with counts from loops."""
    below = (draws <= np.quantile(draws, quantile)).astype(int)
    for lag in range(1, draws.shape[1]):
        chains = below[:, ::lag]
        counts, moves = np.zeros((2, 2, 2)), np.zeros((2, 2))
        for chain in chains:
            np.add.at(counts, (chain[:-2], chain[1:-1], chain[2:]), 1)
            np.add.at(moves, (chain[:-1], chain[1:]), 1)
        fitted = counts.sum(2, keepdims=True) * counts.sum(0, keepdims=True) / counts.sum((0, 2), keepdims=True)
        ratio = 2 * sum(n * np.log(n / f) for n, f in zip(counts.flat, fitted.flat, strict=True) if n)
        if ratio - 2 * np.log(counts.sum()) < 0:
            break
    alpha, beta = moves[0, 1] / moves[0].sum(), moves[1, 0] / moves[1].sum()
    burn_in = np.ceil(np.log(0.001 * (alpha + beta) / max(alpha, beta)) / np.log(abs(1 - alpha - beta))) * lag
    square = (norm.ppf((1 + probability) / 2) / precision) ** 2
    return burn_in, lag, np.ceil((2 - alpha - beta) * alpha * beta * square / (alpha + beta) ** 3) * lag


@pytest.mark.parametrize("name", ["independent", "slow", "antithetic", "one chain", "counts", "heavy"])
@pytest.mark.parametrize("wanted", [(0.025, 0.005, 0.95), (0.5, 0.02, 0.9), (0.9, 0.01, 0.99)])
def test_run_lengths_are_those_of_the_formulas(name, wanted):
    draws = cases()[name]
    *found, minimum = _core.run_length(draws, *wanted)
    assert found == pytest.approx(run_length(draws, *wanted), rel=1e-12)
    assert minimum == np.ceil(wanted[0] * (1 - wanted[0]) * (norm.ppf((1 + wanted[2]) / 2) / wanted[1]) ** 2)


def test_the_published_number_of_independent_draws():
    """3,746 draws for the 0.025 quantile within 0.005 with probability 0.95 (Raftery and Lewis 1992)."""
    assert _core.run_length(cases()["independent"], 0.025, 0.005, 0.95)[3] == 3746


MODEL = sb.Mixture(likelihood=sb.KnownCovarianceGaussian(covariance=[[1.0]], mean=[0.0], mean_precision=0.1))


@pytest.fixture(scope="module")
def trace():
    X = np.random.default_rng(0).normal(np.linspace(-3.0, 3.0, 15))[:, None]
    return sb.sample(MODEL, X, draws=60, warmup=10, chains=2, threads=1)


def test_every_quantity_is_diagnosed(trace):
    for name in ("log_joint", "n_clusters", "largest_cluster"):
        assert 4 < trace.ess(name) < 1000
        assert 0.9 < trace.rhat(name) < 1.5
        assert trace.autocorrelation(name).shape == (2, 51)
        assert trace.autocorrelation(name, 3)[:, 0].tolist() == [1.0, 1.0]
        assert isinstance(trace.raftery_lewis(name), sb.RunLength)


def test_arviz_gets_every_quantity(trace):
    arviz = pytest.importorskip("arviz")
    posterior = trace.to_arviz().posterior
    assert set(posterior) == {"log_joint", "n_clusters", "largest_cluster"}
    largest = np.asarray(posterior["largest_cluster"])
    np.testing.assert_array_equal(largest, trace.largest_cluster)
    found = trace.autocorrelation("largest_cluster", 20)
    expected = np.stack([np.asarray(arviz.autocorr(chain.astype(float)))[:21] for chain in largest])
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("method", "options", "argument"),
    [
        ("ess", {"name": "mass"}, "name"),
        ("autocorrelation", {"max_lag": 60}, "max_lag"),
        ("autocorrelation", {"max_lag": -1}, "max_lag"),
        ("autocorrelation", {"name": 3}, "name"),
        ("raftery_lewis", {"quantile": 0.0}, "quantile"),
        ("raftery_lewis", {"precision": float("nan")}, "precision"),
        ("raftery_lewis", {"probability": 1}, "probability"),
        ("raftery_lewis", {"probability": "high"}, "probability"),
    ],
)
def test_bad_arguments_are_named(trace, method, options, argument):
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        getattr(trace, method)(**options)
    assert caught.value.argument == argument


def test_a_probability_next_to_one_has_a_minimum(trace):
    largest = np.nextafter(1.0, 0.0)
    expected = 0.025 * 0.975 * (norm.isf((1.0 - largest) / 2.0) / 0.005) ** 2
    assert trace.raftery_lewis(probability=largest).minimum == pytest.approx(expected, rel=1e-9, abs=1.0)


def test_one_draw_says_nothing():
    trace = sb.sample(MODEL, [[0.0], [1.0]], draws=1, warmup=0, chains=1, threads=1)
    assert np.isnan([trace.ess(), trace.rhat(), *trace.raftery_lewis()[:3]]).all()
    assert np.isnan(trace.autocorrelation()).all()
    assert trace.autocorrelation().shape == (1, 1)
