"""Blocks of columns, each with a likelihood of its own (mathematics 1j); `columns` in `kinds` has them in all tests."""

import itertools
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from cases import START, Case, fit_from, make_case, passes, replaced, visible_bits
from kinds import LIKELIHOODS, OF_ALL_COLUMNS, kind_of_likelihood, make_likelihood, make_process, make_rows
from oracles import columns, engines, models
from oracles import variational as oracle
from oracles.models import Array

PAIRS = list(itertools.product(OF_ALL_COLUMNS, OF_ALL_COLUMNS))


def pair_case(seed: int, first: str, second: str, n: int = 40) -> Case:
    """Two blocks of two columns, of these kinds, whose columns alternate in the rows."""
    rng = np.random.default_rng(seed)
    blocks = {(0, 2): make_likelihood(first, rng, 2), (3, 1): make_likelihood(second, rng, 2)}
    rows = np.empty((n, 4))
    for block, kind in zip(blocks, (first, second), strict=True):
        rows[:, block] = make_rows(kind, rng, n, 2, 3)
    model = sb.Mixture(likelihood=sb.Columns(blocks), process=make_process("nested", 3, 1.3))
    of_blocks = [(block, LIKELIHOODS[kind_of_likelihood(own)].to_oracle(own)) for block, own in blocks.items()]
    mixture = oracle.Specification(columns.Columns(of_blocks), models.StickBreaking(1.3))
    responsibilities = rng.dirichlet(np.full(3, 0.5), size=n)
    return Case(rows, responsibilities, np.ones(n), model, mixture)


@pytest.mark.parametrize("name", OF_ALL_COLUMNS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_block_is_its_likelihood_to_the_bit(name: str, dtype: type) -> None:
    case = make_case(31, likelihood=name, n=80)
    rows = case.rows.astype(dtype)
    blocks = sb.Columns({(0, 1, 2): case.model.likelihood})
    algorithm = sb.Memoized(batches=3, sparsity=2, max_passes=4, tol=0.0)
    alone, within = (
        sb.fit(sb.Mixture(likelihood=each, process=case.model.process), rows, algorithm, n_components=4, progress=False)
        for each in (case.model.likelihood, blocks)
    )
    bits = {key.replace("components.0.", "components."): each for key, each in visible_bits(within, rows).items()}
    assert visible_bits(alone, rows) == bits


@pytest.mark.parametrize(("first", "second"), PAIRS)
@pytest.mark.one_in(5)
def test_the_bound_of_every_two_blocks_is_their_sum(first: str, second: str) -> None:
    """Weights and entropies count once: what two blocks have more than both alone is the same for all pairs."""
    case = pair_case(32, first, second)
    together = fit_from(case, START).elbo
    alone = []
    for block, own in case.model.likelihood._positions():
        model = sb.Mixture(likelihood=own, process=case.model.process)
        alone.append(fit_from(replaced(case, rows=case.rows[:, list(block)], model=model), START).elbo)
    shares = np.clip(case.responsibilities, 1e-300, None)
    entropy = -(shares * np.log(shares)).sum()
    of_weights = models.StickBreaking(1.3).collapsed(case.responsibilities.sum(0)) + entropy
    assert together == pytest.approx(sum(alone) - of_weights, rel=1e-10)


@given(seed=st.integers(0, 2**32 - 1), pair=st.sampled_from(PAIRS))
def test_densities_are_sums_of_those_of_blocks(seed: int, pair: tuple[str, str]) -> None:
    case = pair_case(seed, *pair, n=20)
    fit = fit_from(case, START)
    state = oracle.Globals(
        [case.mixture.likelihood.natural(**of) for of in of_components(fit)],
        case.mixture.process.update(fit.counts),
    )
    expected = oracle.mixture_log_predictive(case.rows, case.mixture, state)
    np.testing.assert_allclose(fit.log_predictive(case.rows), expected, rtol=1e-7, atol=1e-7)


def of_components(fit: sb.Fit) -> list[dict[str, Any]]:
    """The arrays of every component, block by block."""
    return [
        {title: {name: np.asarray(values[k]) for name, values in own.items()} for title, own in fit.components.items()}
        for k in range(fit.n_components)
    ]


# Missing values


def whole_case(seed: int, second: str = "negative_binomial") -> Case:
    """Rows of a Gaussian block and another one, each of which some rows lack."""
    case = pair_case(seed, "gaussian", second, n=60)
    rng = np.random.default_rng(seed)
    rows = case.rows.copy()
    rows[np.ix_(rng.random(60) < 0.3, [0, 2])] = np.nan
    rows[np.isfinite(rows[:, 0]) & (rng.random(60) < 0.3), 1] = np.nan
    (first, own), (block, _) = case.mixture.likelihood.blocks  # type: ignore[attr-defined]
    likelihood = case.model.likelihood.blocks[block]  # type: ignore[attr-defined]
    of_holes = LIKELIHOODS[kind_of_likelihood(likelihood)].with_holes
    assert of_holes is not None
    of_blocks = [(first, columns.Whole(own)), (block, of_holes(likelihood))]
    return replaced(
        case, rows=rows, mixture=oracle.Specification(columns.Columns(of_blocks), models.StickBreaking(1.3))
    )


@pytest.mark.parametrize("second", ["negative_binomial", "categorical", "bernoulli", "diagonal"])
def test_rows_that_lack_a_block_add_nothing_to_it(second: str) -> None:
    """The block's posterior has the count of the rows that have it, the sticks have that of all rows."""
    case = whole_case(33, second)
    fit = fit_from(case, passes(3), missing="marginalize")
    engine = engines.fit_full(case.rows, case.responsibilities, case.mixture, 3)
    assert fit.elbo == pytest.approx(engine[-1].elbo, rel=1e-9, abs=1e-8)
    dof = fit.components["0, 2"]["dof"] - case.model.likelihood.blocks[(0, 2)].dof  # type: ignore[attr-defined]
    present = np.isfinite(case.rows[:, 0])
    assert dof.sum() == pytest.approx(present.sum())
    assert fit.counts.sum() == pytest.approx(len(case.rows))


def test_a_row_lacks_all_columns_of_such_a_block_or_none() -> None:
    rows = np.random.default_rng(34).normal(size=(40, 3))
    rows[::7, [0, 2]] = np.nan
    half = rows.copy()
    half[3, 2] = np.nan
    model = sb.Mixture(sb.Columns({(0, 2): sb.ZeroMeanGaussian(), (1,): sb.Gaussian()}))
    with pytest.raises(sb.InvalidArgument, match="NaN in row 3, column 2") as caught:
        sb.fit(model, half, missing="marginalize", progress=False)
    assert str(caught.value).endswith(
        "needs all columns of the block or none, but it is NaN in row 3, column 2; make all columns of the block "
        "missing, or use Gaussian or DiagonalGaussian for it"
    )
    fit = sb.fit(model, rows, missing="marginalize", progress=False)
    with pytest.raises(sb.InvalidArgument, match="NaN in row 3, column 2"):
        fit.predict(half)


def test_values_of_a_lacking_block_are_filled_in() -> None:
    """Two clusters apart in the counts: the numbers that a row lacks are those of its cluster."""
    rng = np.random.default_rng(35)
    cluster = np.arange(200) % 2
    rows = np.column_stack(
        [rng.normal(50.0 * cluster, 1.0), rng.normal(-20.0 * cluster, 1.0), rng.poisson(2 + 60 * cluster)]
    )
    rows = np.column_stack([rows, cluster])
    likelihood = sb.Columns({(0, 1): sb.Gaussian(), (2,): sb.Poisson(), (3,): sb.Categorical()})
    fit = sb.fit(sb.Mixture(likelihood=likelihood), rows, missing="marginalize", progress=False)
    holes = rows[:6].copy()
    holes[:, [0, 1, 3]] = np.nan
    means, variances = fit.impute(holes, return_variance=True)
    np.testing.assert_allclose(means[:, 0], 50.0 * cluster[:6], atol=1.0)
    np.testing.assert_allclose(means[:, 1], -20.0 * cluster[:6], atol=1.0)
    np.testing.assert_array_equal(means[:, 3], cluster[:6])
    np.testing.assert_array_equal(means[:, 2], rows[:6, 2])
    assert (variances[:, :2] > 0.5).all()
    # Between the clusters they are 625 and 100.
    assert (variances[:, :2] < 10.0).all()
    drawn = fit.sample_missing(holes, seed=1)
    np.testing.assert_allclose(drawn[:, 0], 50.0 * cluster[:6], atol=8.0)
    np.testing.assert_array_equal(drawn[:, 3], cluster[:6])


# Columns by name, and columns that are left out


def frame(seed: int = 36) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(3, size=150)
    return pd.DataFrame(
        {
            "age": rng.normal(20.0 * cluster, 3.0),
            "visits": rng.poisson(1 + 10 * cluster),
            "income": rng.normal(1e4 * cluster, 2e3),
            "member": (rng.random(150) < 0.2 + 0.3 * cluster).astype(float),
        }
    )


BLOCKS = {"income, age": sb.Gaussian(), "visits": sb.Poisson(), ("member",): sb.Bernoulli()}


def test_names_are_positions_in_any_order() -> None:
    table = frame()
    by_name = sb.fit(sb.Mixture(likelihood=sb.Columns(BLOCKS)), table, progress=False)
    positions = sb.Columns({(2, 0): sb.Gaussian(), 1: sb.Poisson(), (3,): sb.Bernoulli()})
    by_position = sb.fit(sb.Mixture(likelihood=positions), table.to_numpy(), progress=False)
    assert by_name.elbo == by_position.elbo
    assert list(by_name.components) == ["income, age", "visits", "member"]
    assert list(by_position.components) == ["2, 0", "1", "3"]
    assert list(by_name.model.likelihood.blocks) == [("income", "age"), ("visits",), ("member",)]
    assert list(by_position.model.likelihood.blocks) == [(2, 0), (1,), (3,)]
    moved = sb.fit(sb.Mixture(likelihood=sb.Columns(BLOCKS)), table[table.columns[::-1]], progress=False)
    assert moved.elbo == pytest.approx(by_name.elbo, rel=1e-9)
    np.testing.assert_array_equal(by_name.predict(table[table.columns[::-1]]), by_name.predict(table))
    # The model of a fit, whose blocks have names, is one for tables again.
    again = sb.fit(by_name.model, table, START, init=by_name.predict(table), progress=False)
    assert again.n_components == by_name.n_components


def test_columns_that_do_not_vary_are_left_out_of_their_blocks() -> None:
    """Constant and dependent columns, and blocks that are nothing else, change neither bound nor labels."""
    table = frame()
    plain = sb.fit(sb.Mixture(likelihood=sb.Columns(BLOCKS)), table, progress=False)
    more = table.assign(same=7.0, twice=2.0 * table["age"] + 1.0, still=0.25)
    blocks = {"same, income, age, twice": sb.Gaussian(), "visits": sb.Poisson(), "member": sb.Bernoulli()}
    likelihood = sb.Columns(blocks | {"still": sb.DiagonalGaussian()})
    with pytest.warns(sb.SupportWarning) as caught:
        fit = sb.fit(sb.Mixture(likelihood=likelihood), more, progress=False)
    assert {"'same'", "'twice'", "'still'"} <= set(str(caught[0].message).replace(",", " ").split())
    np.testing.assert_array_equal(fit.predict(more), plain.predict(table))
    # The dependent column stretches the volume along the age.
    assert fit.elbo == pytest.approx(plain.elbo - len(table) * np.log(5.0) / 2, rel=1e-9)
    with pytest.warns(sb.SupportWarning, match="column 6"):
        assert np.isneginf(fit.log_predictive(more.assign(still=1.0))).all()
    assert np.isfinite(fit.log_predictive(more)).all()
    np.testing.assert_allclose(fit.sample(5, seed=0)[:, [4, 6]], [[7.0, 0.25]] * 5)


def test_blocks_have_their_own_resolution() -> None:
    table = frame().round({"age": 0})
    blocks = {"age": sb.DiagonalGaussian(), "income": sb.Gaussian(), "visits, member": sb.Poisson()}
    model = sb.fit(sb.Mixture(likelihood=sb.Columns(blocks)), table, progress=False).model.likelihood
    assert [float(np.max(own.resolution)) for own in (model.blocks[("age",)], model.blocks[("income",)])] == [1.0, 0.0]


def test_laws_of_some_columns_given_others() -> None:
    """The density of some columns times that of the rest given these is that of all, across and within blocks."""
    table = frame()
    fit = sb.fit(sb.Mixture(likelihood=sb.Columns(BLOCKS)), table, progress=False)
    row = table.iloc[3]
    for given_names in (["age"], ["visits", "income"], ["member"], ["age", "income", "visits"]):
        rest = [name for name in table.columns if name not in given_names]
        first = fit.marginal(given_names).log_density([row[given_names].tolist()])[0]
        second = fit.conditional({name: row[name] for name in given_names}).log_density([row[rest].tolist()])[0]
        assert first + second == pytest.approx(fit.log_predictive(table.iloc[[3]])[0], rel=1e-10)


# Files and values


def test_files_and_values(tmp_path: Path) -> None:
    table = frame()
    likelihood = sb.Columns(BLOCKS)
    fit = sb.fit(sb.Mixture(likelihood=likelihood), table, progress=False)
    fit.save(tmp_path / "model.safetensors")
    again = sb.load(tmp_path / "model.safetensors")
    assert again.model == fit.model
    assert again.elbo == fit.elbo
    np.testing.assert_array_equal(again.log_predictive(table), fit.log_predictive(table))
    assert pickle.loads(pickle.dumps(likelihood)) == likelihood
    assert hash(likelihood) == hash(sb.Columns(BLOCKS))
    assert likelihood != sb.Columns({**BLOCKS, "visits": sb.NegativeBinomial()})
    assert eval(repr(likelihood), vars(sb).copy()) == likelihood
    with pytest.raises(TypeError, match="cannot be changed"):
        likelihood.blocks["visits"] = sb.Poisson()  # type: ignore[index]


# Refusals


@pytest.mark.parametrize(
    ("blocks", "error", "found"),
    [
        ([("a", sb.Poisson())], sb.InvalidType, "list"),
        ({}, sb.InvalidArgument, "empty dict"),
        ({"a, a": sb.Poisson()}, sb.InvalidArgument, "'a' twice"),
        ({"a": sb.Poisson(), "b, a": sb.Gaussian()}, sb.InvalidArgument, "'a' twice"),
        ({(): sb.Poisson()}, sb.InvalidArgument, "without columns"),
        ({"a,": sb.Poisson()}, sb.InvalidArgument, "a name is empty"),
        ({"b, a\ud800": sb.Poisson()}, sb.InvalidArgument, r"'a\\ud800', which has a lone surrogate"),
        ({("a\ud800", 1): sb.Poisson()}, sb.InvalidArgument, r"'a\\ud800', which has a lone surrogate"),
        ({(0, 0): sb.Poisson()}, sb.InvalidArgument, "0 twice"),
        ({-1: sb.Poisson()}, sb.InvalidArgument, "-1"),
        ({True: sb.Poisson()}, sb.InvalidType, "True"),
        ({0.5: sb.Poisson()}, sb.InvalidType, "0.5"),
        ({0: "poisson"}, sb.InvalidType, "'poisson'"),
        ({0: sb.Poisson}, sb.InvalidType, r"Poisson\(\)"),
        ({0: sb.Columns({0: sb.Poisson()})}, sb.NotSupported, "Columns for 0"),
        ({0: sb.Gaussian(mean_precision=sb.Gamma(1.0, 1.0))}, sb.NotSupported, "Gamma prior"),
    ],
)
def test_blocks_that_are_none(blocks: Any, error: type[Exception], found: str) -> None:
    with pytest.raises(error, match=found) as caught:
        sb.Columns(blocks)
    assert caught.value.argument == "blocks"  # type: ignore[attr-defined]


def refused(likelihood: Any, rows: Any, **options: Any) -> Any:
    """The error for these rows."""
    with pytest.raises(sb.StickbreakError) as caught:
        sb.fit(sb.Mixture(likelihood=likelihood), rows, progress=False, **options)
    return caught.value


def test_blocks_of_other_columns_are_refused_by_name() -> None:
    table = frame()
    less = sb.Columns({"age": sb.Gaussian(), "visits": sb.Poisson()})
    assert "no block with the columns 'income', 'member'" in str(refused(less, table))
    assert "'visit'" in str(refused(sb.Columns({"visit": sb.Poisson()}), table))
    assert "did you mean 'visits'" in str(refused(sb.Columns({"visit": sb.Poisson()}), table))
    assert refused(sb.Columns(BLOCKS), table.to_numpy()).argument == "blocks"
    twice = sb.Columns({"age": sb.Gaussian(), 0: sb.Gaussian(), "visits, income, member": sb.Poisson()})
    assert "0 twice, also as 'age'" in str(refused(twice, table))
    far = sb.Columns({(0, 1, 2, 3, 9): sb.Gaussian()})
    assert "9" in str(refused(far, table.to_numpy()))
    other = refused(sb.Columns({**BLOCKS, "visits": sb.Bernoulli()}), table)
    assert "column 'visits'" in str(other)
    assert other.allowed == "0 or 1 everywhere"


def test_what_needs_one_likelihood_is_refused_by_name() -> None:
    table = frame()
    error = refused(sb.Columns(BLOCKS), table, algorithm=sb.Memoized(units=sb.KdTree()))
    assert error.argument == "units"
    assert "Columns" in str(error)
    counts = sb.Columns({(0, 1): sb.Poisson(), (2,): sb.Poisson()})
    assert "sparse" in str(refused(counts, scipy.sparse.csr_array(np.ones((20, 3)))))


def test_whole_tables_of_one_cluster_are_one_component() -> None:
    rng = np.random.default_rng(37)
    rows: Array = np.column_stack([rng.normal(size=(400, 2)), rng.poisson(3.0, 400), rng.integers(4, size=400)])
    likelihood = sb.Columns({(0, 1): sb.Gaussian(), 2: sb.NegativeBinomial(), 3: sb.Categorical()})
    assert sb.fit(sb.Mixture(likelihood=likelihood), rows, progress=False).n_components == 1


@pytest.mark.parametrize("kind", [sb.Poisson, sb.NegativeBinomial])
def test_a_block_has_exposures_of_its_own(kind: Any) -> None:
    """Counts at risk for some time, beside numbers: the bound is that of the block with its exposures alone."""
    rng = np.random.default_rng(38)
    table = frame().assign(years=rng.uniform(0.2, 5.0, 150))
    table["visits"] = rng.poisson(table["visits"] * table["years"])
    labels = (table["age"] > 20.0).to_numpy().astype(int)
    counts, numbers, flags = kind(exposure="years", prior="rule"), sb.Gaussian(prior="rule"), sb.Bernoulli(prior="rule")
    blocks = {"income, age": numbers, "visits, years": counts, "member": flags}

    def of(likelihood: Any, names: list[str]) -> sb.Fit:
        model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(concentration=1.0))
        return sb.fit(model, table[names], START, init=labels, progress=False)

    fit = of(sb.Columns(blocks), list(table.columns))
    alone = [of(numbers, ["income", "age"]), of(counts, ["visits", "years"]), of(flags, ["member"])]
    of_weights = models.StickBreaking(1.0).collapsed(np.bincount(labels).astype(float))
    assert fit.elbo == pytest.approx(sum(each.elbo for each in alone) - 2 * of_weights, rel=1e-9)
    assert fit.model.likelihood.blocks[("visits", "years")].exposure == "years"
    with pytest.raises(sb.InvalidArgument, match="years"):
        sb.fit(sb.Mixture(likelihood=sb.Columns(blocks)), table.assign(years=0.0), progress=False)
    with pytest.raises(sb.NotSupported, match="exposure"):
        sb.fit(sb.Mixture(likelihood=sb.Columns(blocks)), table, missing="marginalize", progress=False)


def test_a_column_of_exposures_belongs_to_the_block_of_its_counts() -> None:
    rows = np.random.default_rng(40).integers(1, 9, size=(60, 4)).astype(float)
    by_place = sb.Columns({0: sb.Gaussian(), (1, 3): sb.Poisson(exposure=2)})
    found = str(refused(by_place, rows))
    assert found.endswith("with the column 2; add the column of exposures to the block of its counts, 1, 3")
    by_name = sb.Columns({"x": sb.Gaussian(), "a, b": sb.Poisson(exposure="years")})
    found = str(refused(by_name, pd.DataFrame(rows, columns=["x", "a", "years", "b"])))
    assert found.endswith("with the column 'years'; add the column of exposures to the block of its counts, a, b")
    assert str(refused(by_name, pd.DataFrame(rows, columns=["c", "a", "years", "b"]))).count("exposures") == 0


def test_positions_of_exposures_are_those_of_the_table() -> None:
    """As those of the keys; a column of another block is refused."""
    rng = np.random.default_rng(39)
    rows = np.column_stack([rng.normal(size=100), rng.uniform(0.5, 2.0, 100), rng.poisson(3.0, size=(100, 2))])
    likelihood = sb.Columns({(0,): sb.Gaussian(), (1, 2, 3): sb.NegativeBinomial(exposure=1)})
    fit = sb.fit(sb.Mixture(likelihood=likelihood), rows, START, init=np.arange(100) % 2, progress=False)
    table = pd.DataFrame(rows, columns=["x", "years", "a", "b"])
    named = sb.Columns({"x": sb.Gaussian(), "years, a, b": sb.NegativeBinomial(exposure="years")})
    by_name = sb.fit(sb.Mixture(likelihood=named), table, START, init=np.arange(100) % 2, progress=False)
    assert fit.elbo == by_name.elbo
    assert fit.model.likelihood.blocks[(1, 2, 3)].exposure == 1
    assert by_name.model.likelihood.blocks[("years", "a", "b")].exposure == "years"
    with pytest.raises(sb.InvalidArgument, match="another block") as caught:
        sb.Columns({(0, 1): sb.Gaussian(), (2, 3): sb.Poisson(exposure=1)})
    assert caught.value.argument == "exposure"
