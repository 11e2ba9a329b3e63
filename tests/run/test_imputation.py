"""`impute` and `sample_missing`: mathematics 6.2, and 7.1, number 8."""

import functools
from typing import Any

import numpy as np
import pytest
from scipy import sparse, stats

import stickbreak as sb
from cases import START, Case, component, fit_from, globals_of, make_case, passes
from kinds import every_marginalising, every_process
from oracles import conditionals, missing
from oracles.models import Array


def fitted(seed: int, likelihood: str, process: str = "nested", **options: Any) -> tuple[Case, sb.Fit]:
    case = make_case(seed, likelihood=likelihood, process=process, with_missing=True, **options)
    return case, fit_from(case, passes(3), missing="marginalize")


@every_marginalising
@every_process
def test_means_and_variances(likelihood: str, process: str) -> None:
    """Of the predictive mixture given what was observed, the left-over weight at the prior included."""
    case, fit = fitted(1, likelihood, process)
    state = globals_of(fit, case.weights.sum(), with_missing=True)
    rows = make_case(2, likelihood=likelihood, process=process, with_missing=True, n=40).rows
    values, variances = missing.imputed(rows, case.mixture, state)
    np.testing.assert_allclose(fit.impute(rows), values, rtol=1e-8, atol=1e-9)
    found, spread = fit.impute(rows, return_variance=True)
    np.testing.assert_array_equal(found, fit.impute(rows))
    np.testing.assert_allclose(spread, variances, rtol=1e-7, atol=1e-9)


@every_marginalising
def test_observed_entries_are_returned_untouched(likelihood: str) -> None:
    case, fit = fitted(3, likelihood)
    seen = ~np.isnan(case.rows)
    for filled in (fit.impute(case.rows), fit.sample_missing(case.rows, seed=1)):
        np.testing.assert_array_equal(filled[seen], case.rows[seen])
        assert np.isfinite(filled).all()
    np.testing.assert_array_equal(fit.impute(case.rows, return_variance=True)[1][seen], 0.0)


@every_marginalising
def test_an_empty_row_gets_the_mean_of_all(likelihood: str) -> None:
    """sum_k E w_k mu_k, with the left-over weight at the prior."""
    case, fit = fitted(4, likelihood)
    oracle_likelihood = case.mixture.likelihood
    assert isinstance(oracle_likelihood, missing.MissingLikelihood)
    naturals = [*globals_of(fit, with_missing=True).naturals, oracle_likelihood.prior_natural]
    empty = np.full((2, case.rows.shape[1]), np.nan)
    expected, _ = oracle_likelihood.mixed(np.append(fit.weights, fit.leftover_weight)[None], naturals, empty[:1])
    found = fit.impute(empty)
    np.testing.assert_allclose(found, np.tile(expected, (2, 1)), rtol=1e-10)


@every_marginalising
def test_one_component_gives_its_own_mean(likelihood: str) -> None:
    case = make_case(5, likelihood=likelihood, process="finite", n_components=1, with_missing=True)
    fit = fit_from(case, START, missing="marginalize")
    oracle_likelihood = case.mixture.likelihood
    assert isinstance(oracle_likelihood, missing.MissingLikelihood)
    absent = np.isnan(case.rows)
    mean, _ = oracle_likelihood.mixed(np.ones((len(absent), 1)), globals_of(fit, with_missing=True).naturals, case.rows)
    np.testing.assert_allclose(fit.impute(case.rows)[absent], mean[absent], rtol=1e-10)


@every_marginalising
def test_draws_have_the_imputed_mean_and_variance(likelihood: str) -> None:
    """5 standard errors for each entry of three rows, fixed seed; variances by their own fourth moments."""
    case, fit = fitted(6, likelihood)
    rows = case.rows[np.isnan(case.rows).any(1)][:3]
    n_draws = 4000
    draws = fit.sample_missing(np.repeat(rows, n_draws, axis=0), seed=2).reshape(3, n_draws, -1)
    means, variances = fit.impute(rows, return_variance=True)
    absent = np.isnan(rows)
    if likelihood == "columns_with_holes":
        # The last column has codes.
        absent[:, 2] = False
    if likelihood == "categorical":
        # The most probable code and the probability of the others.
        draws, variances = (draws != means[:, None]).astype(float), variances * (1 - variances)
        means = fit.impute(rows, return_variance=True)[1]
    error = np.abs(draws.mean(1) - means)[absent]
    assert (error < 5 * draws.std(1)[absent] / np.sqrt(n_draws)).all()
    squares = (draws - draws.mean(1, keepdims=True)) ** 2
    finite = absent & np.isfinite(variances)
    off = np.abs(squares.mean(1) - variances)[finite]
    assert (off < 5 * squares.std(1)[finite] / np.sqrt(n_draws) + 1e-12).all()
    if likelihood == "bernoulli":
        assert np.isin(draws, (0, 1)).all()
    if likelihood == "poisson":
        np.testing.assert_array_equal(draws, np.round(draws))


@every_marginalising
def test_the_seed_decides_the_draws(likelihood: str) -> None:
    case, fit = fitted(7, likelihood)
    one, again, other = (fit.sample_missing(case.rows, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_entries_of_a_row_are_drawn_together() -> None:
    """Two missing values of a row are filled from one component: clusters apart in both columns are never mixed."""
    rng = np.random.default_rng(8)
    rows = np.repeat([[-50.0, -50.0, 0.0], [50.0, 50.0, 0.0]], 50, axis=0) + rng.standard_normal((100, 3))
    case = make_case(8, likelihood="diagonal", process="finite", n_components=2)
    kind = type(case.model.likelihood)
    model = sb.Mixture(likelihood=kind(), process=sb.FiniteDirichlet(2))
    labels = np.arange(100) // 50
    fit = sb.fit(model, rows, START, init=labels, missing="marginalize", progress=False)
    rows_without = np.tile([np.nan, np.nan, 0.0], (400, 1))
    filled = fit.sample_missing(rows_without, seed=1)
    # Student tails are long, but a column that lies 50 standard deviations off its cluster is not to be expected.
    np.testing.assert_array_equal(filled[:, 0] > 0, filled[:, 1] > 0)
    assert 0.3 < (filled[:, 0] > 0).mean() < 0.7


@every_marginalising
def test_rows_without_holes_come_back(likelihood: str) -> None:
    fit = fitted(9, likelihood)[1]
    rows = make_case(9, likelihood=likelihood).rows
    np.testing.assert_array_equal(fit.impute(rows), rows)
    np.testing.assert_array_equal(fit.sample_missing(rows, seed=0), rows)


@every_marginalising
def test_imputation_needs_a_fit_with_holes(likelihood: str) -> None:
    case = make_case(10, likelihood=likelihood)
    fit = fit_from(case, passes(1))
    for read in (fit.impute, fit.sample_missing):
        with pytest.raises(sb.NotSupported, match="missing"):
            read(case.rows)


@pytest.mark.parametrize("kind", [sb.Bernoulli, sb.Poisson], ids=["bernoulli", "poisson"])
@pytest.mark.one_in(2)
def test_a_sparse_table_has_no_holes_and_never_becomes_dense(kind: Any) -> None:
    """10 million x 100,000 values would be 8 TB."""
    rows = np.zeros((2, 100_000))
    rows[0, 0] = np.nan
    fit = sb.fit(sb.Mixture(kind(prior="rule")), rows, n_components=1, missing="marginalize")
    empty = np.zeros(0)
    table = sparse.csr_array((empty, empty.astype(np.int32), np.zeros(10**7 + 1, np.int32)), shape=(10**7, 100_000))
    for read in (fit.impute, fit.sample_missing):
        with pytest.raises(sb.NotSupported, match="sparse"):
            read(table)


@every_marginalising
def test_fits_with_holes_are_saved(likelihood: str, tmp_path: Any) -> None:
    case, fit = fitted(11, likelihood)
    fit.save(tmp_path / "model.safetensors")
    again = sb.load(tmp_path / "model.safetensors")
    assert again.elbo == fit.elbo
    np.testing.assert_array_equal(again.impute(case.rows), fit.impute(case.rows))
    np.testing.assert_array_equal(again.log_predictive(case.rows), fit.log_predictive(case.rows))


def correlated(seed: int) -> Array:
    """Return rows of three correlated columns with some missing values."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((80, 3)) @ np.array([[1.0, 0.6, -0.3], [0.0, 1.0, 0.4], [0.0, 0.0, 1.2]]) + [3, -1, 0]
    rows[::6, 1] = np.nan
    return rows


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        sb.Gaussian,
        sb.DiagonalGaussian,
        sb.SphericalGaussian,
        functools.partial(sb.KnownCovarianceGaussian, covariance=[[1.0, 0.4, 0.2], [0.4, 2.0, 0.5], [0.2, 0.5, 1.0]]),
        functools.partial(sb.StudentT, tail_dof=5.0),
        functools.partial(sb.StudentT, covariance="diagonal", tail_dof=5.0),
    ],
)
def test_missing_values_far_from_the_rows_follow_the_conditional_density(kind: Any, known: bool) -> None:
    """With few rows, values that are there tell how wide a component is, so a far row is imputed from a wide one."""
    rows = correlated(3)[:14]
    model = sb.Mixture(kind(), process=sb.FiniteDirichlet(1))
    fit = sb.fit(model, rows, sb.Full(tol=1e-3), missing="marginalize", progress=False)
    given = {0: 40.0, 1: -35.0} if known else {0: 40.0}
    row = np.full((1, 3), np.nan)
    row[0, list(given)] = list(given.values())
    absent, n = np.isnan(row[0]), 2_000
    law = fit.conditional(given)
    values, variances = fit.impute(row, return_variance=True)
    np.testing.assert_allclose(values[0, absent], law.mean, rtol=1e-6)
    np.testing.assert_allclose(variances[0, absent], np.diag(law.covariance), rtol=1e-6)
    drawn = fit.sample_missing(np.repeat(row, n, axis=0), seed=1)[:, absent]
    # One of a million seeds has a smaller probability.
    for found, expected in zip(drawn.T, law.sample(n, seed=2).T, strict=True):
        assert stats.ks_2samp(found, expected).pvalue > 1e-6


# Two of three values are missing, one, and the first and the last.
HOLES = np.array([[3.7, np.nan, np.nan], [np.nan, -1.0, np.nan], [np.nan, np.nan, 2.0], [4.0, np.nan, -1.0]])


def one_component(tail_dof: float | None) -> sb.Fit:
    """Return a fit of one component, of a Gaussian without degrees of freedom of a tail."""
    likelihood = sb.Gaussian() if tail_dof is None else sb.StudentT(tail_dof)
    model = sb.Mixture(likelihood, process=sb.FiniteDirichlet(1))
    return sb.fit(model, correlated(3), missing="marginalize", progress=False)


def expected(fit: sb.Fit, row: Array, tail_dof: float | None) -> tuple[Array, Array]:
    """Return mean and covariance of the missing values of a row."""
    if tail_dof is None:
        return conditionals.of_normal(component(fit, 0), row)
    return conditionals.of_tails(component(fit, 0), row, tail_dof)


@pytest.mark.parametrize("tail_dof", [None, 1.5, 2.0, 6.0])
def test_missing_values_follow_the_conditional_distribution(tail_dof: float | None) -> None:
    """With few degrees of freedom a variance exists only because of the values that are there."""
    fit = one_component(tail_dof)
    values, variances = fit.impute(HOLES, return_variance=True)
    for row, found, spread in zip(HOLES, values, variances, strict=True):
        absent = np.isnan(row)
        mean, covariance = expected(fit, row, tail_dof)
        np.testing.assert_allclose(found[absent], mean, rtol=1e-9)
        np.testing.assert_allclose(spread[absent], np.diag(covariance), rtol=1e-9 if tail_dof is None else 1e-5)
        np.testing.assert_array_equal((found[~absent], spread[~absent]), (row[~absent], 0.0 * row[~absent]))


@pytest.mark.parametrize(("tail_dof", "n"), [(None, 10_000), (6.0, 1_000)])
def test_missing_values_are_drawn_together(tail_dof: float | None, n: int) -> None:
    """Means and covariances of draws are within 5 standard errors of those of the conditional distribution."""
    fit = one_component(tail_dof)
    drawn = fit.sample_missing(np.repeat(HOLES, n, axis=0), seed=5).reshape(len(HOLES), n, 3)
    for row, draws in zip(HOLES, drawn, strict=True):
        absent = np.isnan(row)
        np.testing.assert_array_equal(draws[:, ~absent], np.tile(row[~absent], (n, 1)))
        mean, covariance = expected(fit, row, tail_dof)
        away = draws[:, absent] - mean
        products = np.einsum("ni,nj->nij", away, away).reshape(n, -1)
        for values, target in ((away, np.zeros(len(mean))), (products, covariance.ravel())):
            errors = values.std(0) / np.sqrt(n)
            np.testing.assert_array_less(np.abs(values.mean(0) - target), 5 * errors)


@pytest.mark.parametrize("constant", [(0,), (2,), (0, 2)])
def test_codes_are_imputed_beside_constant_columns(constant: tuple[int, ...]) -> None:
    """Constant columns, which the model does not see, move neither the codes nor the numbers that are imputed."""
    rng = np.random.default_rng(4)
    labels = np.arange(120) % 3
    table = np.column_stack([rng.standard_normal((120, 3)), np.array([2.0, 0.0, 3.0])[labels], labels < 2])
    table[:, 1] += 6.0 * labels
    table[::10, 3] = np.nan
    table[5::10, 4] = np.nan
    table[:, constant] = 7.0
    blocks = sb.Columns({(0, 1, 2): sb.DiagonalGaussian(), (3, 4): sb.Categorical()})
    options: dict[str, Any] = {"init": labels, "missing": "marginalize", "progress": False}
    with pytest.warns(sb.SupportWarning):
        fit = sb.fit(sb.Mixture(blocks, process=sb.FiniteDirichlet(3)), table, START, **options)
    rows = np.array([[0.0, 0.0, 0.0, 2, 1], [0.0, 6.0, 0.0, 0, 1], [0.0, 12.0, 0.0, 3, 0]])
    rows[:, constant] = 7.0
    without_codes, without_number = rows.copy(), rows.copy()
    without_codes[:, 3:] = without_number[:, 1] = np.nan
    values, variances = fit.impute(without_codes, return_variance=True)
    np.testing.assert_array_equal(values, rows)
    assert (variances[:, 3:] > 0).all()
    assert (variances[:, 3:] < 0.2).all()
    np.testing.assert_allclose(fit.impute(without_number), rows, atol=0.5)
