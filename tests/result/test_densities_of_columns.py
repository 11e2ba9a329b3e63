"""Predictive densities of counts and of blocks of columns: mass one, and draws whose quantiles are uniform.

Sums over whole numbers are cut where the tail has less than 1e-12 of the mass, and real columns are integrated by the
trapezoidal rule, which is exact to rounding for these densities.
"""

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stickbreak as sb

Array = np.ndarray[Any, Any]
# Draws, the draws that outlier scores compare them with, and the allowed deviation of a fraction in standard errors.
N, COMPARED, Z = 4000, 10_000, 5.0
QUANTILES = np.linspace(0.1, 0.9, 9)

# income, flag, visits, grade, kind
BLOCKS = {(0,): sb.Gaussian(), (2,): sb.NegativeBinomial(2.0, rate=30.0)}
BLOCKS |= {(3, 1): sb.Categorical(0.5, levels=[3, 2]), (4,): sb.Categorical(0.5, levels=[2])}
U = np.linspace(-17.0, 17.0, 241)
NODES = [2.0 + np.sinh(U), np.arange(2.0), np.arange(90.0), np.arange(3.0), np.arange(2.0)]
# What a sum over the values of each column is multiplied by.
FACTORS = [np.cosh(U) * (U[1] - U[0]), *(np.ones(len(nodes)) for nodes in NODES[1:])]
SUBSETS = [subset for size in range(1, 5) for subset in combinations(range(5), size)]


def rows(seed: int = 51) -> Array:
    """Return clusters that differ in every column."""
    rng = np.random.default_rng(seed)
    cluster = np.arange(240) % 3
    income, visits = rng.normal(4.0 * cluster, 1.0 + cluster), rng.negative_binomial(4, 1 / (1.2 + 0.3 * cluster))
    flag, kind = rng.random(240) < 0.2 + 0.3 * cluster, rng.random(240) < 0.7 - 0.2 * cluster
    grade = (cluster + (rng.random(240) < 0.3)) % 3
    return np.column_stack([income, flag, visits, grade, kind]).astype(float)


def with_holes(X: Array) -> Array:
    """Return rows of which some lack the only real column, and others single values of the other blocks."""
    holes = X.copy()
    holes[::4, 0] = np.nan
    for column, step in ((1, 5), (2, 7), (3, 6), (4, 9)):
        holes[1::step, column] = np.nan
    return holes


def of_columns(*, missing: bool) -> sb.Fit:
    X = rows()
    model = sb.Mixture(likelihood=sb.Columns(BLOCKS), process=sb.DirichletProcess(2.0))
    options: dict[str, Any] = {"missing": "marginalize"} if missing else {}
    start = np.arange(240) % 3
    return sb.fit(model, with_holes(X) if missing else X, sb.Full(max_passes=5, tol=0), init=start, **options)


@pytest.fixture(scope="module", params=["complete", "with holes"])
def fit(request: pytest.FixtureRequest) -> sb.Fit:
    return of_columns(missing=request.param == "with holes")


@pytest.fixture(scope="module")
def holed() -> sb.Fit:
    return of_columns(missing=True)


@pytest.fixture(scope="module")
def counted() -> sb.Fit:
    return of_counts(missing=False)


def grid(columns: tuple[int, ...]) -> Array:
    """Return all rows of the nodes of some columns, the last column changing fastest."""
    return np.stack(np.meshgrid(*(NODES[column] for column in columns), indexing="ij"), axis=-1).reshape(
        -1, len(columns)
    )


def shape(columns: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(len(NODES[column]) for column in columns)


@pytest.fixture(scope="module")
def table(fit: sb.Fit) -> Array:
    """Return the density of all rows of the grid, times their factors: a probability for each."""
    every = (0, 1, 2, 3, 4)
    masses = np.exp(fit.log_predictive(grid(every))).reshape(shape(every))
    return masses * FACTORS[0].reshape(-1, 1, 1, 1, 1)


def test_rows_have_mass_one(table: Array) -> None:
    assert table.sum() == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("kept", SUBSETS, ids=str)
@pytest.mark.one_in(3)
def test_marginals_are_sums_over_all_other_columns(kept: tuple[int, ...], fit: sb.Fit, table: Array) -> None:
    expected = table.sum(axis=tuple(set(range(5)) - set(kept)))
    found = np.exp(fit.marginal(kept).log_density(grid(kept))).reshape(shape(kept))
    if 0 in kept:
        found = found * FACTORS[0].reshape(-1, *[1] * (len(kept) - 1))
    assert found.sum() == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-14)


# In the rows of the grid that are given: a likely and an unlikely one.
GIVEN = [(120, 0, 3, 1, 0), (160, 1, 20, 0, 1)]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("known", SUBSETS, ids=str)
@pytest.mark.one_in(3)
def test_conditionals_are_joint_over_marginal(
    known: tuple[int, ...], given: tuple[int, ...], fit: sb.Fit, table: Array
) -> None:
    """Also across blocks, and between the columns of one."""
    rest = tuple(sorted(set(range(5)) - set(known)))
    slices = tuple(given[column] if column in known else slice(None) for column in range(5))
    expected = table[slices] / table[slices].sum()
    values = {column: NODES[column][given[column]] for column in reversed(known)}
    density = fit.conditional(values)
    assert density.columns == rest
    found = np.exp(density.log_density(grid(rest))).reshape(shape(rest))
    if 0 in rest:
        found = found * FACTORS[0].reshape(-1, *[1] * (len(rest) - 1))
    assert found.sum() == pytest.approx(1.0, rel=1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-14)


@pytest.mark.parametrize("process", [sb.DirichletProcess(2.0), sb.FiniteDirichlet(3)], ids=["nested", "finite"])
def test_densities_at_point_estimates_have_mass_one(process: Any) -> None:
    """Of whole rows, of columns of three blocks, and given a column of another one."""
    start, some = np.arange(240) % 3, (0, 2, 3)
    model = sb.Mixture(likelihood=sb.Columns(BLOCKS), process=process)
    fit = sb.fit(model, rows(), sb.Full(max_passes=5, tol=0), init=start)
    whole = np.exp(fit.log_predictive(grid((0, 1, 2, 3, 4)), plug_in=True)).reshape(shape((0, 1, 2, 3, 4)))
    whole *= FACTORS[0].reshape(-1, 1, 1, 1, 1)
    assert whole.sum() == pytest.approx(1.0, rel=1e-9)
    factors = FACTORS[0].reshape(-1, 1, 1)
    found = np.exp(fit.marginal(some, plug_in=True).log_density(grid(some))).reshape(shape(some)) * factors
    np.testing.assert_allclose(found, whole.sum(axis=(1, 4)), rtol=1e-8, atol=1e-14)
    density = fit.conditional({1: 1.0, 4: 0.0}, plug_in=True)
    found = np.exp(density.log_density(grid(some))).reshape(shape(some)) * factors
    np.testing.assert_allclose(found, whole[:, 1, :, :, 0] / whole[:, 1, :, :, 0].sum(), rtol=1e-8, atol=1e-14)


def quantiles(masses: Array, nodes: Array, values: Array, rng: np.random.Generator) -> Array:
    """Return the probability integral transforms of values: randomised for whole numbers."""
    after = np.cumsum(masses)
    if nodes is NODES[0]:
        # Of the trapezoidal rule: at a node, half of its own mass.
        return np.interp(np.arcsinh(values - 2.0), U, after - masses / 2)
    place = values.astype(int)
    return after[place] - masses[place] * rng.random(len(values))


def assert_uniform(found: Array, title: object = "") -> None:
    """Compare nine fractions with those of uniform numbers: 5 standard errors each."""
    shares = (found[:, None] <= QUANTILES).mean(axis=0)
    errors = np.sqrt(QUANTILES * (1 - QUANTILES) / len(found))
    assert (abs(shares - QUANTILES) <= Z * errors).all(), (title, (shares - QUANTILES) / errors)


def masses_of(density: Any, column: int) -> Array:
    """Return the probabilities of the nodes of the only column of a density."""
    return np.exp(density.log_density(NODES[column])) * FACTORS[column]


def test_columns_of_drawn_rows_have_uniform_quantiles(fit: sb.Fit) -> None:
    """Each alone, and given the flag of the same row and the grade, which is in the same block."""
    drawn, rng = fit.sample(N, seed=1), np.random.default_rng(2)
    for column, nodes in enumerate(NODES):
        masses = masses_of(fit.marginal(column), column)
        assert_uniform(quantiles(masses, nodes, drawn[:, column], rng), column)
    for known, value in ((1, 0.0), (1, 1.0), (3, 0.0), (3, 2.0)):
        same = drawn[drawn[:, known] == value]
        # Otherwise nothing is compared.
        assert len(same) > N / 10
        for column in sorted(set(range(5)) - {known}):
            masses = masses_of(fit.conditional({known: value}).marginal(column), column)
            assert_uniform(quantiles(masses, NODES[column], same[:, column], rng), (known, value, column))


def test_the_quantiles_of_another_component_are_not_uniform(fit: sb.Fit) -> None:
    """Negative control: values of rows with one grade are no draws of the marginal distribution."""
    drawn, rng = fit.sample(N, seed=1), np.random.default_rng(2)
    found = quantiles(masses_of(fit.marginal(0), 0), NODES[0], drawn[drawn[:, 3] == 0.0, 0], rng)
    with pytest.raises(AssertionError):
        assert_uniform(found)


def of_scores(fit: sb.Fit, absent: tuple[int, ...]) -> Array:
    """Return the outlier scores of drawn rows that lack some columns."""
    drawn = fit.sample(N, seed=3)
    drawn[:, absent] = np.nan
    return fit.outlier_scores(drawn, n=COMPARED, seed=4)


@pytest.mark.parametrize("absent", [(), (1, 3), (2, 3)], ids=str)
def test_outlier_scores_of_drawn_rows_are_uniform(absent: tuple[int, ...], holed: sb.Fit) -> None:
    """Also of rows that lack a block or single values. All scores share the rows that they are compared with."""
    shares = (of_scores(holed, absent)[:, None] <= QUANTILES).mean(axis=0)
    errors = np.sqrt(QUANTILES * (1 - QUANTILES) * (1 / N + 1 / COMPARED))
    assert (abs(shares - QUANTILES) <= Z * errors).all()


def test_outlier_scores_of_whole_numbers_leave_out_ties(holed: sb.Fit, counted: sb.Fit) -> None:
    """Of two draws that differ either may have the higher density, so scores have half the mean of that."""
    small = np.arange(90.0)
    pairs = np.stack(np.meshgrid(small, small, indexing="ij"), axis=-1).reshape(-1, 2)
    cases = [
        (of_scores(holed, (0, 2)), holed.marginal([1, 3, 4]).log_density(grid((1, 3, 4)))),
        (of_scores(counted, ()), counted.log_predictive(pairs)),
    ]
    for scores, log_masses in cases:
        ties = np.exp(2.0 * log_masses).sum()
        error = np.sqrt((1 / N + 1 / COMPARED) / 12)
        assert abs(scores.mean() - (1 - ties) / 2) <= Z * error
    # With ties the first mean would be another one.
    assert np.exp(2.0 * cases[0][1]).sum() > 2 * Z * error


# Missing values


LACKING = [(0,), (1,), (1, 3), (4,), (3, 4), (0, 2, 4), (0, 1, 2, 3)]


@pytest.mark.parametrize("absent", LACKING, ids=str)
def test_missing_values_have_the_moments_of_the_conditional(absent: tuple[int, ...], holed: sb.Fit) -> None:
    """Means and variances of numbers; of codes, the most probable one and the probability of the others."""
    holes = rows(52)[:6]
    holes[:, absent] = np.nan
    values, variances = holed.impute(holes, return_variance=True)
    for row, value, variance in zip(holes, values, variances, strict=True):
        density = holed.conditional({column: row[column] for column in range(5) if column not in absent})
        for column in absent:
            own = density.marginal(column)
            if column in (0, 2):
                assert (value[column], variance[column]) == pytest.approx((own.mean[0], own.covariance[0, 0]), rel=1e-8)
                continue
            masses = masses_of(own, column)
            assert value[column] == masses.argmax()
            assert variance[column] == pytest.approx(1.0 - masses.max(), rel=1e-8)


@pytest.mark.parametrize("absent", [(1, 3), (0, 2), (0, 3, 4)], ids=str)
def test_drawn_missing_values_have_uniform_quantiles(absent: tuple[int, ...], holed: sb.Fit) -> None:
    row, rng = rows(52)[1], np.random.default_rng(5)
    holes = np.tile(row, (N, 1))
    holes[:, absent] = np.nan
    drawn = holed.sample_missing(holes, seed=6)
    density = holed.conditional({column: row[column] for column in range(5) if column not in absent})
    for column in absent:
        masses = masses_of(density.marginal(column), column)
        assert_uniform(quantiles(masses, NODES[column], drawn[:, column], rng), column)


# Counts alone


def of_counts(*, missing: bool) -> sb.Fit:
    """Return a fit of two columns with estimated dispersions, the second one overdispersed."""
    rng = np.random.default_rng(53)
    cluster = np.arange(300) % 2
    X = np.column_stack([rng.poisson(2 + 4 * cluster), rng.negative_binomial(3, 0.8 - 0.2 * cluster)]).astype(float)
    if missing:
        X[::4, 0] = np.nan
        X[1::8, 1] = np.nan
    options: dict[str, Any] = {"missing": "marginalize"} if missing else {}
    return sb.fit(sb.Mixture(likelihood=sb.NegativeBinomial()), X, sb.Full(max_passes=5), init=cluster, **options)


@pytest.mark.parametrize("missing", [False, True])
def test_rows_of_counts_have_mass_one_and_uniform_quantiles(missing: bool) -> None:
    """Of each column alone, and of one given the other."""
    fit, rng, counts = of_counts(missing=missing), np.random.default_rng(7), np.arange(400.0)
    dispersion = fit.model.likelihood.dispersion
    assert dispersion[0] > 2.0 * dispersion[1]
    pairs = np.stack(np.meshgrid(counts, counts, indexing="ij"), axis=-1).reshape(-1, 2)
    table = np.exp(fit.log_predictive(pairs)).reshape(400, 400)
    assert table.sum() == pytest.approx(1.0, rel=1e-9)
    for column in range(2):
        found = np.exp(fit.marginal(column).log_density(counts))
        np.testing.assert_allclose(table.sum(1 - column), found, rtol=1e-8, atol=1e-14)
    of_second = np.exp(fit.conditional({0: 7.0}).log_density(counts))
    np.testing.assert_allclose(table[7] / table[7].sum(), of_second, rtol=1e-8, atol=1e-14)
    drawn = fit.sample(N, seed=8)
    for column in range(2):
        masses = np.exp(fit.marginal(column).log_density(counts))
        assert_uniform(quantiles(masses, counts, drawn[:, column], rng), column)
    given = drawn[drawn[:, 0] == 2.0, 1]
    assert len(given) > N / 20
    assert_uniform(quantiles(np.exp(fit.conditional({0: 2.0}).log_density(counts)), counts, given, rng))


def test_draws_have_levels_in_tables() -> None:
    kind = np.arange(60) % 2
    size = np.random.default_rng(0).normal(9.0 * kind)
    table = pd.DataFrame({"size": size, "town": np.where(kind, "Ulm", "Bonn"), "grade": 10 * kind + 5, "flag": kind})
    blocks = {"size": sb.Gaussian(), "town, grade": sb.Categorical(), "flag": sb.Bernoulli()}
    fit = sb.fit(sb.Mixture(likelihood=sb.Columns(blocks)), table, progress=False)
    density = fit.conditional({"size": 9.0}).marginal(["grade", "flag", "town"])
    drawn = density.sample(50)
    shown = density.as_table(drawn)
    assert shown.columns.tolist() == ["grade", "flag", "town"]
    assert shown["grade"].tolist() == [(5, 15)[int(code)] for code in drawn[:, 0]]
    assert shown["town"].tolist() == [("Bonn", "Ulm")[int(code)] for code in drawn[:, 2]]
    np.testing.assert_array_equal(shown["flag"], drawn[:, 1])
    with pytest.raises(sb.InvalidArgument, match="7 in row 0, column 'grade'"):
        density.as_table([[7.0, 1.0, 0.0]])
    with pytest.raises(sb.InvalidArgument, match="of 3 columns"):
        density.as_table([[7.0, 1.0]])
    bare = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), np.column_stack([size, size[::-1]]), progress=False)
    assert bare.marginal(1).as_table([[3.0]]).columns.tolist() == [1]
