"""Counts whose rows have an exposure: the oracle, special cases, and what is refused by name."""

from functools import partial
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from oracles import engines
from oracles import variational as oracle
from oracles.exposures import ExposedNegativeBinomial, ExposedPoisson
from oracles.models import Array, StickBreaking
from stickbreak.testing.generators import random_responsibilities

KINDS = (sb.Poisson, sb.NegativeBinomial)
RATES = np.array([[2.0, 9.0, 1.0, 4.0], [8.0, 1.0, 5.0, 1.0], [1.0, 1.0, 1.0, 20.0]])
START = sb.Full(sparsity=None, margin=None, max_passes=0)
PASSES = sb.Full(moves=(), sparsity=None, margin=None, max_passes=8, tol=0)
every_kind = pytest.mark.parametrize("kind", KINDS)


def counts(n: int, spread: float = 0.7, seed: int = 0) -> tuple[Array, Array, Any]:
    """Return Poisson counts of three clusters, the exposures of the rows, and the clusters."""
    rng = np.random.default_rng(seed)
    labels, exposures = rng.integers(3, size=n), rng.lognormal(0.0, spread, n)
    return rng.poisson(RATES[labels] * exposures[:, None]).astype(float), exposures, labels


def fitted(rows: Any, likelihood: Any, algorithm: Any = None, **options: Any) -> sb.Fit:
    return sb.fit(sb.Mixture(likelihood), rows, algorithm, progress=False, **options)


def given_parameters(kind: Any) -> dict[str, Any]:
    more = {"dispersion": np.array([0.7, 1.5, 3.0, 1.1, 2.0])} if kind is sb.NegativeBinomial else {}
    return {"shape": np.array([0.5, 1.0, 3.0, 2.0, 1.3]), "rate": 0.7} | more


def mixture(kind: Any, column: int) -> tuple[sb.Mixture, oracle.Specification]:
    """Return a model with exposures in a column as a public object and as an oracle."""
    parameters = given_parameters(kind)
    ours = kind(**parameters, exposure=column)
    theirs: Any = ExposedPoisson if kind is sb.Poisson else ExposedNegativeBinomial
    model = sb.Mixture(ours, process=sb.DirichletProcess(concentration=0.8))
    return model, oracle.Specification(theirs(**parameters, exposure=column), StickBreaking(0.8))


# ------------------------------------------------------------------------------------------------------- the oracle
@every_kind
@pytest.mark.parametrize("column", [0, 2, 4])
def test_pass_by_pass_against_the_oracle(kind: Any, column: int) -> None:
    rows, exposures, _ = counts(50)
    rows = np.insert(rows, column, exposures, axis=1)
    responsibilities, weights = random_responsibilities(np.random.default_rng(1), 50, 3, support=3), np.ones(50)
    model, expected = mixture(kind, column)
    fit = sb.fit(model, rows, PASSES, init=responsibilities, progress=False)
    trajectory = engines.fit_full(rows, responsibilities, expected, 8, None, weights)
    bounds = [record.objective for record in fit.history]
    # The bins of exposures of the histogram change the bound by less than 5e-7 nats per count.
    error = 5e-7 * rows.sum() if kind is sb.NegativeBinomial else 1e-7
    np.testing.assert_allclose(bounds, [each.elbo for each in trajectory[1:]], rtol=1e-12, atol=error)
    assert fit.evaluate(rows) >= fit.elbo - error
    state = trajectory[-1].state
    for component, natural in enumerate(state.naturals):
        shown = {name: array[component] for name, array in fit.components.items()}
        np.testing.assert_allclose(expected.likelihood.natural(**shown), natural, rtol=1e-7)
    proba, density = oracle.local_step(rows, expected, state), oracle.mixture_log_predictive(rows, expected, state)
    np.testing.assert_allclose(fit.predict_proba(rows), proba, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(fit.log_predictive(rows), density, rtol=1e-7)


@every_kind
def test_evidence_raises_the_bound_of_the_oracle(kind: Any) -> None:
    """The objective under estimated parameters is above that under any near ones, for the same components."""
    rows, exposures, labels = counts(200)
    rows = np.column_stack([rows, exposures])
    fit = fitted(rows, kind(exposure=4), PASSES, init=labels)
    found = fit.model.likelihood
    responsibilities = fit.predict_proba(rows)

    def bound(**other: Any) -> float:
        parameters: dict[str, Any] = {"shape": found.shape, "rate": found.rate}
        parameters |= {"dispersion": found.dispersion} if kind is sb.NegativeBinomial else {}
        theirs: Any = ExposedPoisson if kind is sb.Poisson else ExposedNegativeBinomial
        specification = oracle.Specification(theirs(**(parameters | other), exposure=4), StickBreaking(1.0))
        return float(oracle.collapsed_elbo(rows, responsibilities, specification, np.ones(len(rows))))

    best = bound()
    factors = np.exp(np.eye(5)[:4] * 0.1)
    nearby = [{"shape": found.shape * factor**sign} for factor in factors for sign in (1, -1)]
    nearby += [{"rate": found.rate * 1.1**sign} for sign in (1, -1)]
    if kind is sb.NegativeBinomial:
        inner = found.dispersion < 1e5  # at the limit the bound is flat
        nearby += [{"dispersion": found.dispersion * factor**sign} for factor in factors[inner[:4]] for sign in (1, -1)]
    # The guard pulls by a thousandth of a component.
    assert max(bound(**other) for other in nearby) < best + 1e-2


# ------------------------------------------------------------------------------------------------- special cases
@every_kind
def test_exposures_of_one_change_nothing(kind: Any) -> None:
    rows, _, _ = counts(150, 0.0)
    plain, exposed = fitted(rows, kind()), fitted(rows, kind(), exposure=np.ones(150))
    assert exposed.n_components == plain.n_components
    assert exposed.elbo == pytest.approx(plain.elbo, rel=1e-9)
    np.testing.assert_array_equal(exposed.predict(rows, exposure=np.ones(150)), plain.predict(rows))
    name = "rate" if kind is sb.Poisson else "mean"
    np.testing.assert_allclose(exposed.point_estimates[name][:, :4], plain.point_estimates[name], rtol=1e-6)
    np.testing.assert_allclose(exposed.point_estimates[name][:, 4], 1.0, rtol=1e-12)


@every_kind
@pytest.mark.parametrize("factor", [2.0, 1e6, 1e-6])
def test_the_unit_of_exposures_does_not_matter(kind: Any, factor: float) -> None:
    rows, exposures, labels = counts(150)
    one, other = (fitted(rows, kind(), PASSES, init=labels, exposure=unit * exposures) for unit in (1.0, factor))
    assert other.elbo == pytest.approx(one.elbo, rel=1e-9)
    name = "rate" if kind is sb.Poisson else "mean"
    found = other.point_estimates[name][:, :4] * factor
    np.testing.assert_allclose(found, one.point_estimates[name][:, :4], rtol=1e-5)
    one, other = (fitted(rows, kind(), exposure=unit * exposures) for unit in (1.0, factor))
    assert other.n_occupied == one.n_occupied


@every_kind
def test_exposures_find_the_clusters(kind: Any) -> None:
    rows, exposures, labels = counts(300)
    fit = fitted(rows, kind(), exposure=exposures)
    assert adjusted_rand_score(labels, fit.predict(rows, exposure=exposures)) > 0.85
    # Without them, clusters break by size.
    assert fitted(rows, kind()).n_components > fit.n_components + 2


@every_kind
def test_the_same_exposures_in_every_form(kind: Any) -> None:
    rows, exposures, labels = counts(100)
    frame = pd.DataFrame(rows, columns=list("abcd"))
    frame.insert(1, "size", exposures)
    with_column = np.column_stack([rows, exposures])
    options = {"init": labels, "algorithm": PASSES}
    # Estimates end within a tolerance.
    prior = {"shape": 1.0, "rate": 2.0} | ({"dispersion": 3.0} if kind is sb.NegativeBinomial else {})
    make = partial(kind, **prior)
    expected = fitted(rows, make(), exposure=exposures, **options)
    table = sparse.csr_array(rows)
    names = ("a", "b", "c", "d", "exposure")
    for fit, data, more in (
        (fitted(with_column, make(exposure=4), **options), with_column, {}),
        (fitted(frame, make(exposure="size"), **options), frame, {}),
        (fitted(sparse.csr_array(with_column), make(exposure=4), **options), with_column, {}),
        (fitted(table, make(), exposure=exposures, **options), table, {"exposure": exposures}),
        (fitted(frame[list("abcd")], make(), exposure=exposures.tolist(), **options), rows, {"exposure": exposures}),
        (fitted(lambda: iter([with_column[:40], with_column[40:]]), make(exposure=4), **options), with_column, {}),
    ):
        assert fit.elbo == pytest.approx(expected.elbo, rel=1e-10)
        ours, theirs = fit.log_predictive(data, **more), expected.log_predictive(rows, exposure=exposures)
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)
        np.testing.assert_array_equal(fit.predict(data, **more), expected.predict(rows, exposure=exposures))
        assert fit.column_names in (None, tuple(frame), names)
    assert fitted(frame, make(exposure="size"), START, init=labels).model.likelihood.exposure == "size"


@every_kind
def test_totals_are_the_sums_of_rows(kind: Any) -> None:
    rows, _, labels = counts(100)
    for data in (rows, sparse.csr_array(rows)):
        ours = fitted(data, kind(exposure="total"), PASSES, init=labels)
        theirs = fitted(rows, kind(), PASSES, init=labels, exposure=rows.sum(axis=1))
        assert ours.elbo == pytest.approx(theirs.elbo, rel=1e-10)
        found, expected = ours.log_predictive(data), theirs.log_predictive(rows, exposure=rows.sum(axis=1))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


@every_kind
def test_rows_without_counts_inform_nothing(kind: Any) -> None:
    rows, _, labels = counts(60)
    more = np.vstack([rows, np.zeros((3, 4))])
    options = {"rate": 2.0, "shape": 1.0, "exposure": "total"}
    options |= {"dispersion": 1.0} if kind is sb.NegativeBinomial else {}
    for data in (more, sparse.csr_array(more)):
        fit = fitted(data, kind(**options), START, init=np.append(labels, [0, 1, 2]))
        np.testing.assert_allclose(fit.log_predictive(data)[60:], 0.0, atol=1e-12)
        assert np.isfinite(fit.elbo)


# --------------------------------------------------------------------------------------------- laws of a fit
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    algorithm=st.sampled_from([sb.Full, sb.Memoized]),
    form=st.sampled_from(["dense", "float32", "sparse", "weighted", "total", "stream"]),
)
def test_the_bound_of_sums_is_that_of_rows(seed: int, kind: Any, algorithm: Any, form: str) -> None:
    """`elbo` takes the base measure from the histogram, `evaluate` from the rows; the objective never falls."""
    rows, exposures, _ = counts(60, seed=seed)
    data: Any = np.column_stack([rows, exposures])
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 60) if form == "weighted" else None
    if form == "float32":
        data = data.astype(np.float32)
    if form == "sparse":
        data = sparse.csr_array(data)
    if form == "total":
        data = rows
    source = (lambda: iter([data[:25], data[25:]])) if form == "stream" else data
    exposure = "total" if form == "total" else 4
    batches = {"batches": 3, "shuffle": form != "stream"} if algorithm is sb.Memoized else {}
    chosen = algorithm(sparsity=None, margin=None, max_passes=20, tol=0, moves=(), **batches)
    fit = fitted(source, kind(exposure=exposure), chosen, n_components=3, seed=seed % 1000, sample_weight=weights)
    objectives = np.array([record.objective for record in fit.history])
    assert (np.diff(objectives) >= -1e-9 * np.abs(objectives[1:])).all()
    found = fit.evaluate(data, sample_weight=weights)
    # One more local step only raises the bound; 5e-7 nats per count are the bins of exposures.
    total = 2.0 * float(rows.sum())
    assert found >= fit.elbo - 5e-7 * total - (1e-7 * total if form == "float32" else 1e-9 * abs(fit.elbo))


@every_kind
def test_an_update_is_a_fit_of_all_rows(kind: Any) -> None:
    rows, exposures, _ = counts(200)
    prior = {"shape": 1.0, "rate": 2.0} | ({"dispersion": 3.0} if kind is sb.NegativeBinomial else {})
    fit = fitted(rows[:120], kind(**prior), exposure=exposures[:120])
    later = fit.update(rows[120:], exposure=exposures[120:], max_passes=20)
    assert later.counts.sum() == pytest.approx(200.0)
    assert later.elbo <= later.evaluate(rows, exposure=exposures) + 1e-6
    estimated = fitted(rows[:120], kind(), exposure=1e4 * exposures[:120])
    later = estimated.update(rows[120:], exposure=1e4 * exposures[120:], max_passes=5)
    objectives = [record.objective for record in later.history[-5:]]
    assert np.isfinite(objectives).all()


@every_kind
def test_files_keep_exposures(kind: Any, tmp_path: Path) -> None:
    rows, exposures, _ = counts(80)
    fit = fitted(rows, kind(), exposure=exposures)
    fit.save(tmp_path / "fit.safetensors")
    again = sb.load(tmp_path / "fit.safetensors")
    assert again.model.likelihood == fit.model.likelihood
    assert again.elbo == fit.elbo
    later, other = (each.update(rows, exposure=exposures) for each in (fit, again))
    assert later.elbo == other.elbo
    resumed = fitted(rows, fit.model.likelihood.__class__(), init=again, exposure=exposures)
    assert resumed.elbo >= fit.elbo - 1e-6 * abs(fit.elbo)
    assert eval(repr(kind(exposure="size")), vars(sb)) == kind(exposure="size")
    assert kind(exposure=np.int64(3)) == kind(exposure=3) != kind(exposure="total")


@every_kind
def test_drawn_rows_have_the_mean_exposure(kind: Any) -> None:
    rows, exposures, _ = counts(400)
    fit = fitted(rows, kind(), exposure=exposures)
    drawn = fit.sample(4000, seed=1)
    np.testing.assert_allclose(drawn[:, 4], exposures.mean(), rtol=1e-12)
    expected = rows.mean(axis=0)
    np.testing.assert_allclose(drawn[:, :4].mean(axis=0), expected, rtol=0.15)
    parameters = fit.sample_parameters(500)["rate" if kind is sb.Poisson else "mean"].mean(axis=0)
    np.testing.assert_allclose(parameters, next(iter(fit.point_estimates.values())), rtol=0.1)


@every_kind
@pytest.mark.parametrize(
    "sampler", [sb.CollapsedGibbs(), sb.SplitMerge(), sb.TreeGuided(), sb.BlockedGibbs(), sb.Slice()]
)
def test_every_sampler_takes_exposures(kind: Any, sampler: Any) -> None:
    rows, exposures, labels = counts(45)
    settings: dict[str, Any] = {"draws": 15, "warmup": 15, "chains": 1, "progress": False}
    trace = sb.sample(sb.Mixture(kind()), rows, sampler, exposure=exposures, **settings)
    assert adjusted_rand_score(labels, trace.point_estimate().labels) > 0.6
    assert adjusted_rand_score(labels, trace.predict(rows, exposure=exposures)) > 0.6
    assert np.isfinite(trace.log_predictive(rows, exposure=exposures)).all()
    same = sb.sample(sb.Mixture(kind(exposure=4)), np.column_stack([rows, exposures]), sampler, **settings)
    np.testing.assert_array_equal(same.partitions, trace.partitions)


@every_kind
def test_hierarchies_take_a_column(kind: Any) -> None:
    rows, exposures, labels = counts(40)
    tree = sb.hierarchy(sb.Mixture(kind(exposure=4)), np.column_stack([rows, exposures]))
    assert adjusted_rand_score(labels, tree.cut()) > 0.6


def cells(n: int, genes: int) -> tuple[Array, Any, Array]:
    """Return counts of genes in cells of six types and of different sizes, the types, and the sizes."""
    rng = np.random.default_rng(0)
    base, differs = rng.gamma(0.5, 4.0, genes), rng.random((6, genes)) < 0.3
    rates = base * np.exp(rng.normal(size=(6, genes)) * differs)
    labels, sizes = rng.integers(6, size=n), rng.lognormal(0.0, 0.5, n)
    noise = rng.gamma(2.0, 0.5, (n, genes))
    return rng.poisson(sizes[:, None] * rates[labels] * noise).astype(float), labels, sizes


def overdispersed(spread: float, seed: int, d: int) -> tuple[Array, Array]:
    """Return counts of six clusters that vary more than Poisson counts, and the sizes of the rows."""
    rng = np.random.default_rng(seed)
    rates, labels = rng.gamma(1.0, 5.0, (6, d)), rng.integers(6, size=300)
    sizes = rng.lognormal(0.0, spread, 300)
    noise = rng.gamma(3.0, 1 / 3.0, (300, d))
    return rng.poisson(rates[labels] * noise * sizes[:, None]).astype(float), sizes


def kinds_of_advice(fit: sb.Fit) -> set[str]:
    return {advice.kind for advice in fit.advice()}


@pytest.mark.parametrize("seed", range(2))
def test_advice_on_rows_of_different_sizes(seed: int) -> None:
    rows, sizes = overdispersed(0.5, seed, 12)
    fit = fitted(rows, sb.NegativeBinomial())
    found = next(advice for advice in fit.advice() if advice.kind == "exposure")
    assert found.suggestions[0].startswith('NegativeBinomial(exposure="total")')
    # What is suggested helps.
    better = fitted(rows, sb.NegativeBinomial(exposure="total"))
    assert "exposure" not in kinds_of_advice(better)
    assert better.n_occupied < fit.n_occupied
    assert "exposure" not in kinds_of_advice(fitted(rows, sb.NegativeBinomial(), exposure=sizes))


@every_kind
def test_names_that_no_file_can_have_are_refused(kind: Any) -> None:
    with pytest.raises(sb.InvalidArgument, match="lone surrogate") as caught:
        kind(exposure="a\ud800")
    assert caught.value.argument == "exposure"


def test_advice_names_the_block() -> None:
    rows, _ = overdispersed(0.5, 0, 12)
    other = np.random.default_rng(1).poisson(9.0, (len(rows), 3))
    blocks = {tuple(range(12)): sb.NegativeBinomial(), (12, 13, 14): sb.Poisson()}
    found = [a for a in fitted(np.hstack((rows, other)), sb.Columns(blocks)).advice() if a.kind == "exposure"]
    assert [str(advice).split(" within")[0] for advice in found] == [
        "row totals of the columns 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more"
    ]
    assert not any("fit(" in suggestion for suggestion in found[0].suggestions)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("d", [2, 5, 12])
def test_no_advice_on_ordinary_counts(seed: int, d: int) -> None:
    rows, _ = overdispersed(0.0, seed, d)
    for kind in KINDS:
        assert "exposure" not in kinds_of_advice(fitted(rows, kind()))
    rows, exposures, _ = counts(400, 0.0, seed)
    assert not kinds_of_advice(fitted(rows, sb.Poisson())) & {"exposure", "overdispersed"}
    rows, exposures, _ = counts(400, 0.7, seed)
    assert "overdispersed" not in kinds_of_advice(fitted(rows, sb.Poisson(), exposure=exposures))
    assert "overdispersed" not in kinds_of_advice(fitted(rows, sb.Poisson(exposure="total")))


@every_kind
def test_seeds_spread_over_clusters_of_any_size(kind: Any) -> None:
    rows, exposures, labels = counts(300, 1.0, seed=3)
    prior = {"prior": "rule"} | ({"dispersion": 1e3} if kind is sb.NegativeBinomial else {})
    found = [
        adjusted_rand_score(labels, fitted(rows, kind(**prior), PASSES, n_components=3, **more).predict(rows, **seen))
        for seed in range(5)
        for more, seen in [({"exposure": exposures, "seed": seed}, {"exposure": exposures})]
    ]
    assert np.median(found) > 0.8


@pytest.mark.slow
@pytest.mark.parametrize("form", ["total", "size"])
def test_types_of_cells(form: str) -> None:
    rows, labels, sizes = cells(400, 200)
    options: dict[str, Any] = {} if form == "total" else {"exposure": sizes}
    fit = fitted(rows, sb.NegativeBinomial(exposure="total" if form == "total" else None), **options)
    assert 6 <= fit.n_occupied <= 8
    assert adjusted_rand_score(labels, fit.predict(rows, **options)) > 0.95


# ------------------------------------------------------------------------------------------------- what is refused
@every_kind
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, 1e-300, 1e200])
@pytest.mark.parametrize("form", ["column", "argument", "sparse", "stream", "new"])
def test_exposures_are_positive(kind: Any, value: float, form: str) -> None:
    rows, exposures, _ = counts(30)
    fit = fitted(rows, kind(), exposure=exposures) if form == "new" else None
    exposures[7] = value
    data: Any = np.column_stack([rows, exposures])
    if form == "sparse":
        data = sparse.csr_array(data)
    source = (lambda: iter([data])) if form == "stream" else data
    calls: dict[str, Any] = {"argument": lambda: fitted(rows, kind(), exposure=exposures)}
    calls["new"] = lambda: fit.predict(data)  # type: ignore[union-attr]
    with pytest.raises(sb.InvalidArgument) as caught:
        calls.get(form, lambda: fitted(source, kind(exposure=4)))()
    assert caught.value.argument == {"argument": "exposure", "new": "X"}.get(form, "data")
    assert "row 7" in str(caught.value)
    assert form == "argument" or "column 4" in str(caught.value)


@every_kind
def test_a_column_without_counts_is_named(kind: Any) -> None:
    rows, exposures, _ = counts(30)
    data = pd.DataFrame(np.column_stack([rows, exposures]), columns=[*"abcd", "size"])
    with pytest.raises(sb.InvalidArgument, match="column 'size'"):
        fitted(data, kind(exposure="a"))
    data.loc[3, "size"] = 0.0
    with pytest.raises(sb.InvalidArgument, match=r"row 3, column 'size'") as caught:
        fitted(data, kind(exposure="size"))
    assert caught.value.argument == "data"


@every_kind
@pytest.mark.parametrize(
    ("exposure", "text"),
    [(5, "from 0 to 4"), ("sise", "did you mean 'size'"), ("", "from 0"), (-1, "from 0"), (2**40, "from 0")],
)
def test_unknown_columns(kind: Any, exposure: Any, text: str) -> None:
    rows, exposures, _ = counts(30)
    data = pd.DataFrame(np.column_stack([rows, exposures]), columns=[*"abcd", "size"])
    for run in (fitted, lambda data, likelihood: sb.sample(sb.Mixture(likelihood), data, draws=1)):
        with pytest.raises((sb.InvalidArgument, sb.InvalidType), match=text) as caught:
            run(data, kind(exposure=exposure))
        assert caught.value.argument == "exposure"
    with pytest.raises(sb.InvalidArgument, match="no names"):
        fitted(data.to_numpy(), kind(exposure="size"))


@every_kind
@pytest.mark.parametrize("exposure", [True, 1.5, np.ones(3), ["a"]])
def test_other_types_are_refused(kind: Any, exposure: Any) -> None:
    with pytest.raises(sb.InvalidType) as caught:
        kind(exposure=exposure)
    assert caught.value.argument == "exposure"


@every_kind
def test_the_only_column_holds_no_exposures(kind: Any) -> None:
    with pytest.raises(sb.InvalidArgument) as caught:
        fitted(np.ones((5, 1)), kind(exposure=0))
    assert caught.value.argument == "exposure"


@every_kind
@pytest.mark.parametrize("exposure", [np.ones(29), np.ones((30, 1)), 2.0, ["a"] * 30, np.ones(30, dtype=bool)])
def test_arrays_of_another_form_are_refused(kind: Any, exposure: Any) -> None:
    rows, _, _ = counts(30)
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        fitted(rows, kind(), exposure=exposure)
    assert caught.value.argument == "exposure"


@every_kind
def test_what_has_no_exposure_is_refused_by_name(kind: Any) -> None:
    rows, exposures, _ = counts(30)
    data = np.column_stack([rows, exposures])
    fit = fitted(rows, kind(), exposure=exposures)
    with_holes = data.copy()
    with_holes[3, 1] = np.nan
    named = pd.DataFrame(rows, columns=["a", "b", "c", "exposure"])
    prior = {"shape": 1.0, "rate": 1.0} | ({"dispersion": 1.0} if kind is sb.NegativeBinomial else {})
    refused: list[Any] = [
        lambda: fitted(with_holes, kind(exposure=4), missing="marginalize"),
        lambda: fitted(rows, kind(exposure="total"), missing="marginalize"),
        lambda: fitted(data, kind(exposure=4), exposure=exposures),
        lambda: fitted(rows, sb.Multinomial(), exposure=exposures),
        lambda: fitted(lambda: iter([rows]), kind(), exposure=exposures),
        lambda: fitted(named, kind(), exposure=exposures),
        lambda: sb.fit(sb.TopicModel(sb.LatentDirichlet(n_topics=2)), rows, exposure=exposures),
        lambda: sb.cross_validate(sb.Mixture(kind()), rows, exposure=exposures),
        lambda: fitted(rows, kind(exposure="total")).predict(rows, exposure=exposures),
        lambda: fitted(rows, kind()).predict(rows, exposure=exposures),
        lambda: fit.outlier_scores(data),
        lambda: sb.plot.card(fit, 0),
        lambda: fit.marginal([0, 1]).log_density(rows[:, :2]),
        lambda: sb.sample_prior(sb.Mixture(kind(exposure="total", **prior)), 5, n_columns=3),
    ]
    for number, call in enumerate(refused):
        with pytest.raises((sb.InvalidArgument, sb.NotSupported)) as caught:
            call()
        assert caught.value.argument == "exposure", (number, str(caught.value))
    with pytest.raises(sb.InvalidArgument, match="exposure="):
        fit.predict(rows)
    with pytest.raises(sb.InvalidArgument, match="NaN in row 3, column 1") as caught:
        fitted(with_holes, kind(exposure=4))
    assert "marginalize" not in str(caught.value)


@every_kind
def test_columns_in_another_order_keep_their_exposures(kind: Any) -> None:
    rows, exposures, _ = counts(60)
    data = pd.DataFrame(np.column_stack([rows, exposures]), columns=[*"abcd", "size"])
    fit = fitted(data, kind(exposure="size"))
    other = data[["size", *"dcba"]]
    np.testing.assert_array_equal(fit.predict(other), fit.predict(data))
    assert fitted(other, kind(exposure="size"), PASSES, init=fit).n_components == fit.n_components
    with pytest.raises(sb.InvalidArgument, match="another order"):
        fitted(other, kind(exposure=0), PASSES, init=fit)


@pytest.mark.parametrize("size", [2, 4])
def test_parameters_of_other_columns_are_refused_beside_an_array_of_exposures(size: int) -> None:
    """The error counts the columns of the user's data, without the exposures."""
    model = sb.Mixture(likelihood=sb.NegativeBinomial(np.full(size, 2.0)))
    with pytest.raises(
        sb.InvalidArgument, match=f"of size 3, the number of columns of the data, .* size {size}"
    ) as caught:
        sb.fit(model, np.ones((20, 3)), exposure=np.ones(20), progress=False)
    assert caught.value.argument == "dispersion"


def test_a_fit_without_exposures_is_called_by_its_likelihood() -> None:
    table = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20)})
    fit = fitted(table, sb.Columns({"a": sb.Gaussian(), "b": sb.Poisson()}))
    with pytest.raises(sb.NotSupported, match=r"^an exposure for Columns is not supported"):
        fit.predict(table, exposure=np.ones(20))


def test_parameters_have_one_number_for_each_column_of_counts() -> None:
    """Also beside exposures in an array, which become a column without parameters."""
    rng = np.random.default_rng(5)
    exposures = rng.uniform(0.5, 2.0, 60)
    rows = rng.poisson(3.0 * exposures[:, None], size=(60, 3)).astype(float)
    model = sb.Mixture(likelihood=sb.NegativeBinomial([2.0, 3.0, 4.0], shape=[1.0, 2.0, 3.0]))
    fit = sb.fit(model, rows, exposure=exposures, progress=False)
    np.testing.assert_array_equal(fit.model.likelihood.dispersion[:3], [2.0, 3.0, 4.0])


@pytest.mark.parametrize("column", [0, 1, 3])
def test_sparse_rows_have_the_scores_of_dense_ones(column: int) -> None:
    """Wherever the exposure stands, also in the first column."""
    rows, exposures, _ = counts(60)
    rows = np.insert(rows, column, exposures, axis=1)
    fit = sb.fit(sb.Mixture(likelihood=sb.Poisson(exposure=column)), rows)
    csr = sparse.csr_array(rows)
    np.testing.assert_allclose(fit.log_predictive(csr), fit.log_predictive(rows), rtol=1e-10)
    np.testing.assert_allclose(fit.predict_proba(csr), fit.predict_proba(rows), atol=1e-10)
