"""Marginal and conditional densities against sums and integrals of the predictive density of whole rows."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stickbreak as sb

# Allowed deviation of a fraction of draws, in standard errors: one false alarm in a hundred thousand numbers.
Z = 4.5
N = 40_000

Array = np.ndarray[Any, Any]
# Values of a column and their weights in a sum: all values, or nodes of a quadrature rule.
Rule = tuple[Array, Array]


def real_rows(d: int) -> Array:
    rng = np.random.default_rng(3)
    mixing = np.eye(d) + 0.7 * np.tri(d, k=-1)
    return rng.normal(size=(60, d)) @ mixing.T + np.repeat([[0.0], [5.0]], 30, axis=0) * np.arange(1, d + 1)


def whole_rows(d: int, highest: int) -> Array:
    rng = np.random.default_rng(4)
    shares = np.repeat([[0.2], [0.8]], 30, axis=0) * np.ones(d)
    return rng.binomial(highest, shares).astype(float)


def integral() -> Rule:
    """The trapezoidal rule after x = 2 + sinh(u), exact to rounding for densities with algebraic tails too."""
    u = np.linspace(-40.0, 40.0, 6001)
    return 2.0 + np.sinh(u), np.cosh(u) * (u[1] - u[0])


def whole(highest: int) -> Rule:
    return np.arange(highest + 1.0), np.ones(highest + 1)


KNOWN = np.array([[1.0, 0.3, 0.1], [0.3, 2.0, 0.2], [0.1, 0.2, 1.5]])
Case = tuple[Any, Array, Rule]
REAL: dict[str, Callable[[int], Any]] = {
    "Gaussian": lambda d: sb.Gaussian(),
    "ZeroMeanGaussian": lambda d: sb.ZeroMeanGaussian(),
    "DiagonalGaussian": lambda d: sb.DiagonalGaussian(),
    "SphericalGaussian": lambda d: sb.SphericalGaussian(),
    "KnownCovarianceGaussian": lambda d: sb.KnownCovarianceGaussian(KNOWN[:d, :d]),
    "KnownCovarianceGaussian, general": lambda d: sb.KnownCovarianceGaussian(
        KNOWN[:d, :d], mean_precision=np.diag([0.1, 0.5, 2.0])[:d, :d]
    ),
}
WHOLE = {
    "Bernoulli": (sb.Bernoulli, 1),
    "Categorical": (sb.Categorical, 3),
    "Poisson": (sb.Poisson, 6),
    # A prior with so many rows has no long tail.
    "NegativeBinomial": (lambda: sb.NegativeBinomial(2.0, rate=30.0), 6),
}
NAMES = [*REAL, *WHOLE]


def case(name: str, d: int) -> Case:
    if name in REAL:
        return REAL[name](d), real_rows(d), integral()
    likelihood, highest = WHOLE[name]
    return likelihood(), whole_rows(d, highest), whole(400 if highest == 6 else highest)


def fitted(likelihood: Any, X: Any, *, process: Any = None, objective: str | None = None, **options: Any) -> sb.Fit:
    model = sb.Mixture(likelihood=likelihood, process=process or sb.DirichletProcess(3.0))
    algorithm = sb.Full(objective=objective, max_passes=5, tol=0)
    return sb.fit(model, X, algorithm, n_components=None if process else 2, progress=False, **options)


def log_summed(fit: sb.Fit, rule: Rule, fixed: dict[int, float], free: int, *, plug_in: bool) -> float:
    """ln of the sum over the free column of the density of rows of which all other columns are fixed."""
    nodes, factors = rule
    rows = np.empty((len(nodes), len(fixed) + 1))
    rows[:, free] = nodes
    for column, value in fixed.items():
        rows[:, column] = value
    return float(np.log(np.exp(fit.log_predictive(rows, plug_in=plug_in)) @ factors))


@pytest.mark.parametrize("plug_in", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_marginals_are_sums_over_the_other_column(name: str, plug_in: bool) -> None:
    likelihood, X, rule = case(name, 2)
    fit = fitted(likelihood, X)
    for kept, free in ((0, 1), (1, 0)):
        values = X[[0, 20, 40, 59], kept]
        found = fit.marginal(kept, plug_in=plug_in).log_density(values)
        expected = [log_summed(fit, rule, {kept: value}, free, plug_in=plug_in) for value in values]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("plug_in", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_conditionals_are_shares_of_the_joint_density(name: str, plug_in: bool) -> None:
    likelihood, X, rule = case(name, 3)
    fit = fitted(likelihood, X)
    given = {2: X[45, 2], 0: X[45, 0]}
    density = fit.conditional(given, plug_in=plug_in)
    assert density.columns == (1,)
    of_given = log_summed(fit, rule, given, 1, plug_in=plug_in)
    rows = np.tile(X[45], (4, 1))
    rows[:, 1] = X[[0, 20, 40, 59], 1]
    expected = fit.log_predictive(rows, plug_in=plug_in) - of_given
    np.testing.assert_allclose(density.log_density(rows[:, [1]]), expected, rtol=1e-9, atol=1e-9)
    # Its weights, means and covariance are those of the same density.
    nodes, factors = rule
    shares = np.exp(density.log_density(nodes)) * factors
    assert shares.sum() == pytest.approx(1.0, rel=1e-9)
    assert density.mean == pytest.approx(shares @ nodes, rel=1e-7)
    assert density.covariance == pytest.approx(shares @ (nodes - density.mean) ** 2, rel=1e-6)
    assert density.weights.sum() == pytest.approx(1.0)
    assert density.weights @ density.means == pytest.approx(density.mean)


@pytest.mark.parametrize("name", NAMES)
def test_two_columns_given_one(name: str) -> None:
    likelihood, X, _ = case(name, 3)
    fit = fitted(likelihood, X)
    density = fit.conditional({1: X[3, 1]})
    expected = fit.log_predictive(X[:5] * [1, 0, 1] + X[3] * [0, 1, 0]) - fit.marginal(1).log_density(X[3, [1]])
    np.testing.assert_allclose(density.log_density(X[:5, [0, 2]]), expected, rtol=1e-9, atol=1e-9)
    # Columns in any order, and conditioning in steps.
    turned = fit.marginal([2, 0, 1]).conditional({1: X[3, 1]})
    assert turned.columns == (2, 0)
    np.testing.assert_allclose(turned.log_density(X[:5, [2, 0]]), expected, rtol=1e-9, atol=1e-9)
    step = density.conditional({0: X[3, 0]})
    at_once = fit.conditional({0: X[3, 0], 1: X[3, 1]})
    np.testing.assert_allclose(step.log_density(X[:5, [2]]), at_once.log_density(X[:5, [2]]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_all_columns_are_the_predictive(name: str) -> None:
    likelihood, X, _ = case(name, 3)
    for options in ({}, {"process": sb.FiniteDirichlet(2)}, {"objective": "ml"}):
        fit = fitted(likelihood, X, **options)
        density = fit.marginal(range(3))
        np.testing.assert_allclose(density.log_density(X), fit.log_predictive(X), rtol=1e-9, atol=1e-9)
        left_over = fit.leftover_weight > 0 and "objective" not in options
        assert len(density.weights) == fit.n_components + left_over
        assert density.weights[: fit.n_components] == pytest.approx(
            fit.weights if left_over else fit.weights / fit.weights.sum()
        )


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("Gaussian", "ZeroMeanGaussian")])
def test_marginals_of_fits_with_missing_values(name: str) -> None:
    likelihood, X, _ = case(name, 3)
    holes = X.copy()
    holes[::4, 0] = np.nan
    holes[1::5, 2] = np.nan
    fit = fitted(likelihood, holes, missing="marginalize")
    masked = X.copy()
    masked[:, 1] = np.nan
    found = fit.marginal([0, 2]).log_density(X[:, [0, 2]])
    np.testing.assert_allclose(found, fit.log_predictive(masked), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_draws_follow_the_density(name: str) -> None:
    likelihood, X, rule = case(name, 3)
    nodes, factors = rule
    fit = fitted(likelihood, X)
    for density in (fit.marginal(1), fit.conditional({0: X[0, 0], 2: X[0, 2]}), fit.marginal(1, plug_in=True)):
        drawn = density.sample(N, seed=5)
        assert drawn.shape == (N, 1)
        assert (drawn == density.sample(N, seed=5, threads=3)).all()
        shares = np.exp(density.log_density(nodes)) * factors
        for quantile in (0.1, 0.5, 0.9):
            cut = nodes[np.searchsorted(shares.cumsum(), quantile)] + 1e-9
            expected = shares[nodes <= cut].sum()
            # Where nodes are far apart the last one counts for half a step beyond the cut.
            step = 0.0 if name in WHOLE else shares.max()
            assert abs((drawn <= cut).mean() - expected) <= Z * (expected * abs(1 - expected) / N) ** 0.5 + step + 1e-9


def test_columns_of_draws_hang_together() -> None:
    fit = fitted(sb.Gaussian(), real_rows(3))
    density = fit.marginal([2, 0], plug_in=True)
    drawn = density.sample(N, seed=1)
    spread = drawn.std(axis=0)
    assert (abs(drawn.mean(axis=0) - density.mean) <= Z * spread / N**0.5).all()
    products = (drawn[:, 0] - density.mean[0]) * (drawn[:, 1] - density.mean[1])
    assert abs(products.mean() - density.covariance[0, 1]) <= Z * products.std() / N**0.5


def test_without_enough_degrees_of_freedom_there_is_no_covariance() -> None:
    fit = fitted(sb.Gaussian(dof=2.5, scale=np.eye(2), mean=[0.0, 0.0], mean_precision=1.0), real_rows(2))
    density = fit.marginal([0, 1])
    of_prior = density.covariances[-1]
    assert np.isinf(of_prior[[0, 1], [0, 1]]).all()
    assert np.isnan(of_prior[0, 1])
    assert np.isfinite(density.covariances[:-1]).all()
    # Given columns add degrees of freedom: 1.5 and 1.
    assert np.isfinite(fit.conditional({0: 1.0}).covariance).all()


def test_columns_by_name_and_position() -> None:
    table = pd.DataFrame(real_rows(3), columns=["a", "b", "c"])
    fit = fitted(sb.Gaussian(), table)
    density = fit.marginal(["c", "a"])
    assert density.column_names == ("c", "a")
    assert density.columns == (2, 0)
    assert repr(density).startswith("<Density of 'c', 'a': ")
    by_position = fit.marginal([2, 0]).log_density(table.to_numpy()[:, [2, 0]])
    # Columns of a table are matched by name.
    assert (density.log_density(table[["a", "c"]]) == by_position).all()
    assert fit.conditional({"b": 1}).column_names == ("a", "c")
    with pytest.raises(sb.InvalidArgument, match="without 'c'"):
        density.log_density(table[["a"]])
    assert (density.sample(3, seed=2) == fit.marginal([2, 0]).sample(3, seed=2)).all()


def test_columns_that_say_nothing_are_refused() -> None:
    X = real_rows(2)
    table = pd.DataFrame({"one": 1.0, "x": X[:, 0], "y": X[:, 1], "sum": X.sum(axis=1)})
    with pytest.warns(sb.SupportWarning):
        fit = fitted(sb.Gaussian(), table)
    lost = {"one", *(table.columns[d] for d in fit.support.dependent)}
    seen = [name for name in table.columns if name not in lost]
    assert fit.conditional({seen[0]: 1.0}).column_names == (seen[1],)
    for name in lost:
        for ask in (lambda: fit.marginal([name]), lambda: fit.conditional({name: 1.0})):  # noqa: B023
            with pytest.raises(sb.InvalidArgument, match="constant or follows from others"):
                ask()
    # The density of the columns that are left is per unit of these. One unit of x and y is an area of sqrt(3) on the
    # plane (x, y, x + y).
    found = fit.marginal(seen).log_density(table[seen])
    np.testing.assert_allclose(found, fit.log_predictive(table) + 0.5 * np.log(3.0), rtol=1e-9, atol=1e-9)


def test_arrays_are_read_only() -> None:
    density = fitted(sb.Gaussian(), real_rows(2)).marginal(0)
    for array in (density.weights, density.means, density.covariances, density.mean, density.covariance):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(AttributeError):
        density.columns = (1,)  # type: ignore[misc]


BAD = [
    (lambda fit: fit.marginal([]), sb.InvalidArgument, "empty"),
    (lambda fit: fit.marginal([0, 0]), sb.InvalidArgument, "repeated"),
    (lambda fit: fit.marginal(3), sb.InvalidArgument, "from 0 to 2"),
    (lambda fit: fit.marginal("age"), sb.InvalidArgument, "have no names"),
    (lambda fit: fit.marginal(None), sb.InvalidType, "columns must be one column or a list"),
    (lambda fit: fit.marginal([0.5]), sb.InvalidType, "columns must be an integer"),
    (lambda fit: fit.marginal([True]), sb.InvalidType, "columns must be an integer"),
    (lambda fit: fit.marginal(0, plug_in=1), sb.InvalidType, "plug_in"),
    (lambda fit: fit.marginal(0, threads=0), sb.InvalidArgument, "threads"),
    (lambda fit: fit.marginal(0).log_density([[1.0, 2.0]]), sb.InvalidArgument, "of 1 columns"),
    (lambda fit: fit.marginal(0).log_density([np.nan]), sb.InvalidArgument, "NaN in row 0"),
    (lambda fit: fit.marginal(0).log_density("one"), sb.InvalidType, "X"),
    (lambda fit: fit.marginal(0).marginal(1), sb.InvalidArgument, "the column 1"),
    (lambda fit: fit.marginal(0).conditional({0: 1.0}), sb.InvalidArgument, "leave a column"),
    (lambda fit: fit.marginal(0).sample(-1), sb.InvalidArgument, "n must be"),
    (lambda fit: fit.conditional([0]), sb.InvalidType, "a dict of columns"),
    (lambda fit: fit.conditional({}), sb.InvalidArgument, "empty"),
    (lambda fit: fit.conditional({0: "a"}), sb.InvalidType, "a finite number for the column 0"),
    (lambda fit: fit.conditional({0: np.inf}), sb.InvalidArgument, "a finite number for the column 0"),
    (lambda fit: fit.conditional({0: 1.0, 1: 1.0, 2: 1.0}), sb.InvalidArgument, "leave a column"),
    (lambda fit: fit.conditional({"age": 1.0}), sb.InvalidArgument, "have no names"),
]


@pytest.mark.parametrize(("ask", "error", "match"), BAD)
def test_bad_input(ask: Callable[[sb.Fit], Any], error: type[Exception], match: str) -> None:
    fit = fitted(sb.Gaussian(), real_rows(3))
    with pytest.raises(error, match=match):
        ask(fit)


def test_values_that_no_row_can_have() -> None:
    X = whole_rows(3, 3)
    fit = fitted(sb.Categorical(), X)
    assert fit.marginal(0).log_density([-1.0, 0.5, 4.0]).tolist() == [-np.inf] * 3
    found = "it is 0.5 for the column 0, whose density is zero"
    with pytest.raises(sb.InvalidArgument, match=f"given must be values that a row of the fit can have, but {found}"):
        fit.conditional({0: 0.5})
    with pytest.raises(sb.InvalidArgument, match=found):
        fit.conditional({1: 1.0, 0: 0.5})


def test_likelihoods_without_closed_marginals_are_named() -> None:
    counts = fitted(sb.Multinomial(), whole_rows(3, 6))
    with pytest.raises(sb.NotSupported, match="number of words"):
        counts.marginal(0)
    product = fitted(sb.SphericalGaussian(base="product"), real_rows(2))
    with pytest.raises(sb.NotSupported, match="plug_in=True"):
        product.conditional({0: 1.0})
    found = product.marginal([0, 1], plug_in=True).log_density(real_rows(2))
    np.testing.assert_allclose(found, product.log_predictive(real_rows(2), plug_in=True), rtol=1e-9)
