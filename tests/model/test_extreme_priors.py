"""Beside very large priors and counts, against limits that are known exactly."""

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

import stickbreak as sb

ROWS = np.random.default_rng(3).integers(2, size=(60, 4)).astype(float)
START = sb.Full(max_passes=0, sparsity=1)


def bound(likelihood: object, process: object, labels: np.ndarray | None = None, rows: np.ndarray = ROWS) -> float:
    model = sb.Mixture(likelihood=likelihood, process=process)
    init = np.zeros(len(rows), dtype=int) if labels is None else labels
    return sb.fit(model, rows, START, init=init, progress=False).elbo


@pytest.mark.parametrize("concentration", [1e12, 1e18, 1e100, 1e300])
def test_weights_that_are_all_but_known(concentration: float) -> None:
    """Two equal weights cost ln 2 a row, and the empty component nothing."""
    known = sb.KnownCovarianceGaussian(np.eye(4))
    one, two = bound(known, sb.FiniteDirichlet(1)), bound(known, sb.FiniteDirichlet(2, concentration=concentration))
    assert one - two == pytest.approx(60 * np.log(2), rel=1e-8)


@pytest.mark.parametrize("size", [1e12, 1e16, 1e100])
def test_rates_and_probabilities_that_are_all_but_known(size: float) -> None:
    one = sb.FiniteDirichlet(1)
    assert bound(sb.Bernoulli(size, failures=size), one) == pytest.approx(240 * np.log(0.5), rel=1e-9)
    assert bound(sb.Poisson(size, rate=size), one) == pytest.approx(stats.poisson.logpmf(ROWS, 1).sum(), rel=1e-9)


REAL = ROWS + np.random.default_rng(4).normal(size=ROWS.shape)


@pytest.mark.parametrize(
    "known",
    [
        lambda size: sb.ZeroMeanGaussian(dof=size, scale=size * np.eye(4)),
        lambda size: sb.Gaussian(np.zeros(4), mean_precision=1e12, dof=size, scale=size * np.eye(4)),
        lambda size: sb.DiagonalGaussian(np.zeros(4), mean_precision=1e12, shape=size, rate=size),
        lambda size: sb.SphericalGaussian(np.zeros(4), mean_precision=1e12, shape=size, rate=size),
        lambda size: sb.SphericalGaussian(np.zeros(4), mean_precision=1e12, shape=size, rate=size, base="product"),
    ],
)
def test_precisions_that_are_all_but_known(known: Callable[[float], object]) -> None:
    """At the largest number allowed rows still count as they should: the precision is 1 and the mean 0, each within
    1e-4 of itself; beyond it the number is refused."""
    expected = stats.norm.logpdf(REAL).sum()
    assert bound(known(1e9), sb.FiniteDirichlet(1), rows=REAL) == pytest.approx(expected, abs=1e-3)
    for size in (1.0000001e9, 1e12, 1e16, 1e300):
        with pytest.raises(sb.InvalidArgument) as caught:
            known(size)
        assert caught.value.argument in ("dof", "shape")
        assert caught.value.allowed == "a number from 1e-300 to 1e9"


@pytest.mark.parametrize("size", [1.0, 1e12, 1e16, 1e20, 1e100])
def test_the_two_forms_of_the_bound_beside_large_pseudo_counts(size: float) -> None:
    rows = np.random.default_rng(5).integers(5, size=(60, 4)).astype(float)
    model = sb.Mixture(likelihood=sb.Multinomial(size), process=sb.FiniteDirichlet(1))
    fit = sb.fit(model, rows, START, init=np.zeros(60, dtype=int), progress=False)
    assert fit.evaluate(rows) == pytest.approx(fit.elbo, rel=1e-10)


def test_priors_on_the_concentration_at_their_limits() -> None:
    for shape, rate in itertools.product([1e-200, 1.0, 1e200], repeat=2):
        process = sb.DirichletProcess(sb.Gamma(shape, rate))
        assert np.isfinite(bound(sb.Bernoulli(), process))
    for name in ("shape", "rate"):
        for wrong in (9e-201, 1e-220, 1.1e200):
            with pytest.raises(sb.InvalidArgument) as caught:
                sb.Gamma(**{"shape": 1.0, "rate": 1.0, name: wrong})
            assert (caught.value.argument, caught.value.allowed) == (name, "a number from 1e-200 to 1e200")


def test_small_numbers_in_messages() -> None:
    sparse = scipy.sparse.csr_array(np.full((3, 2), 1e-300))
    with pytest.raises(sb.InvalidArgument, match="1e-300 in row 0, column 0"):
        sb.fit(sb.Mixture(likelihood=sb.Poisson()), sparse, n_components=1, progress=False)
    model = sb.Mixture(likelihood=sb.Multinomial(1e-300))
    with pytest.raises(sb.InvalidArgument) as caught:
        sb.fit(model, ROWS, sb.Full(objective="map"), n_components=1, progress=False)
    assert caught.value.found == "1e-300"


@pytest.mark.parametrize("count", [3.0, 300.0, 1e9, 7e13, 2.0**52])
def test_the_predictive_of_large_counts(count: float) -> None:
    """Under a uniform prior of two words without data, all ways to share n words are alike: 1 / (n + 1)."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    fit = sb.fit(
        sb.Mixture(likelihood=sb.Multinomial(1.0), process=sb.FiniteDirichlet(1)),
        rows,
        START,
        init=np.zeros(2, dtype=int),
        sample_weight=[1e-90, 1e-90],
        progress=False,
    )
    densities = fit.log_predictive([[count, 5.0], [count, 0.0], [1.0, count]])
    totals = np.array([count + 5, count, count + 1])
    np.testing.assert_allclose(densities, -np.log(totals + 1), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_counts_that_float64_would_round(dtype: type) -> None:
    rows = np.ones((5, 3), dtype=dtype)
    rows[2, 1] = 2**53 + 1
    for table in (rows, scipy.sparse.csr_array(rows)):
        with pytest.raises(sb.InvalidArgument, match="9007199254740993") as caught:
            sb.fit(sb.Mixture(likelihood=sb.Poisson()), table, n_components=1, progress=False)
        assert caught.value.allowed == "whole numbers from 0 to 2^53"


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, 0.5])
def test_a_source_that_brings_other_values_later(wrong: float) -> None:
    """The last complete state is returned; values are checked at every reading."""
    rows, calls = np.random.default_rng(0).poisson(3.0, size=(90, 3)).astype(float), []

    def blocks() -> object:
        calls.append(0)
        late = rows.copy()
        if len(calls) > 7:
            late[50, 1] = wrong
        return iter(np.array_split(late, 4))

    algorithm = sb.Memoized(batches=3, shuffle=False, max_passes=30, tol=0.0)
    fit = sb.fit(sb.Mixture(likelihood=sb.Poisson()), blocks, algorithm, n_components=2, init="random", progress=False)
    assert fit.stop_reason is sb.StopReason.SOURCE_ERROR
    assert "whole numbers" in str(fit.error)
    assert 0 < len(fit.history) < 30


def test_a_start_from_a_fit_that_treats_missing_values_otherwise() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 2))
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    plain = sb.fit(model, rows, START, n_components=2, progress=False)
    with pytest.raises(sb.InvalidArgument, match="missing='error'") as caught:
        sb.fit(model, rows, START, init=plain, missing="marginalize", progress=False)
    assert caught.value.argument == "init"
