"""The memoized engine: mathematics 7, number 6, against `Full` and against the oracle's batches."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import stickbreak as sb
from cases import (
    LIKELIHOODS,
    PROCESSES,
    Case,
    LikelihoodName,
    ProcessName,
    cases,
    clustered_rows,
    fit_from,
    globals_of,
    make_case,
    make_process,
    visible_bits,
)
from oracles import engines
from oracles import variational as oracle


@given(cases(), st.integers(1, 5), st.booleans())
def test_one_batch_is_full(case: Case, sparsity: int, shuffle: bool) -> None:
    """Number 6: with one batch every pass is that of `Full`, bit for bit, whatever `shuffle` says."""
    sparsity = min(sparsity, case.n_components)
    full = fit_from(case, sb.Full(sparsity=sparsity, max_passes=4, tol=0.0))
    memoized = fit_from(case, sb.Memoized(batches=1, shuffle=shuffle, sparsity=sparsity, max_passes=4, tol=0.0))
    assert visible_bits(memoized, case.rows) == visible_bits(full, case.rows)


@pytest.mark.parametrize("init", ["kmeans++", "random"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_batch_is_full_from_seeds(init: str, dtype: type) -> None:
    rows = clustered_rows(np.random.default_rng(0), 3000, 4, 6).astype(dtype)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    options = {"n_components": 6, "init": init, "seed": 5, "progress": False}
    full = sb.fit(model, rows, sb.Full(sparsity=3, max_passes=5, tol=0.0), **options)
    memoized = sb.fit(model, rows, sb.Memoized(batches=1, sparsity=3, max_passes=5, tol=0.0), **options)
    assert visible_bits(memoized, rows) == visible_bits(full, rows)


@given(cases(), st.integers(2, 8), st.booleans(), st.integers(0, 1000))
def test_the_first_pass_from_random_rows_is_that_of_one_batch(
    case: Case, n_batches: int, shuffle: bool, seed: int
) -> None:
    """Single rows stand in for all batches until the last one, however many there are."""
    assume(case.n_components <= len(case.rows))
    options = {"init": "random", "n_components": case.n_components, "seed": seed}
    algorithm = sb.Memoized(batches=min(n_batches, len(case.rows)), shuffle=shuffle, max_passes=1, tol=0.0)
    full = fit_from(case, sb.Full(max_passes=1, tol=0.0), **options)
    of_batches = fit_from(case, algorithm, **options)
    assert of_batches.elbo == pytest.approx(full.elbo, rel=1e-9)
    np.testing.assert_allclose(of_batches.counts, full.counts, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("sparsity", [None, 2])
def test_pass_by_pass(likelihood: LikelihoodName, process: ProcessName, sparsity: int | None) -> None:
    """Number 6: every pass over three runs of rows, which without `shuffle` are visited in their order, has the bound
    of the oracle.
    """
    case = make_case(8, n=120, n_components=4, likelihood=likelihood, process=process)
    algorithm = sb.Memoized(batches=3, shuffle=False, sparsity=sparsity, max_passes=8, tol=0.0)
    fit = fit_from(case, algorithm, sample_weight=None)
    batches = [np.arange(40 * batch, 40 * (batch + 1)) for batch in range(3)]
    memo = engines.Memo(case.rows, case.responsibilities, case.mixture, batches, sparsity)
    memo.order()
    for record in fit.history:
        memo.run(range(3))
        assert record.elbo == pytest.approx(memo.elbo(), rel=1e-9)
    for natural, other in zip(globals_of(fit).naturals, memo.state.naturals, strict=True):
        np.testing.assert_allclose(natural, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("sparsity", [None, 2])
@pytest.mark.one_in(3)
def test_bound_at_a_fixed_point(
    likelihood: LikelihoodName, process: ProcessName, shuffle: bool, sparsity: int | None
) -> None:
    """Number 6: where nothing moves any more, the remembered responsibilities are those of one local step, and the
    bound is their recomputed one.
    """
    case = make_case(3, n=90, n_components=3, likelihood=likelihood, process=process, weighted=True)
    algorithm = sb.Memoized(batches=5, shuffle=shuffle, sparsity=sparsity, max_passes=800, tol=0.0)
    fit = fit_from(case, algorithm)
    responsibilities = fit.predict_proba(case.rows, sparse=True).toarray()
    expected = oracle.elbo_of_responsibilities(case.rows, responsibilities, case.mixture, case.weights)
    assert fit.elbo == pytest.approx(expected, rel=1e-9)
    assert fit.evaluate(case.rows, sample_weight=case.weights) == pytest.approx(fit.elbo, rel=1e-9)
    np.testing.assert_allclose(fit.counts, case.weights @ responsibilities, rtol=1e-4, atol=1e-4)


@given(cases(), st.integers(2, 8), st.booleans(), st.integers(0, 3))
def test_every_row_counts_once(case: Case, n_batches: int, shuffle: bool, passes: int) -> None:
    """Batches are a partition of the rows: from the first pass on the total mass is all of it."""
    algorithm = sb.Memoized(batches=min(n_batches, len(case.rows)), shuffle=shuffle, max_passes=passes, tol=0.0)
    fit = fit_from(case, algorithm)
    assert fit.counts.sum() == pytest.approx(case.weights.sum(), rel=1e-11)
    dof = case.model.likelihood.dof
    np.testing.assert_allclose(fit.components["dof"] - dof, fit.counts, rtol=1e-9, atol=1e-9)
    assert (fit.counts >= 0).all()


def test_one_row_a_batch() -> None:
    case = make_case(5, n=12, n_components=3)
    fit = fit_from(case, sb.Memoized(batches=12, max_passes=20, tol=0.0))
    bounds = [record.elbo for record in fit.history]
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()


def test_automatic_batches_are_one_for_every_5000_rows() -> None:
    rows = clustered_rows(np.random.default_rng(1), 11_000, 2, 3)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())

    def bits(rows: np.ndarray, batches: object) -> dict[str, bytes]:
        algorithm = sb.Memoized(batches=batches, max_passes=2, tol=0.0)
        return visible_bits(sb.fit(model, rows, algorithm, n_components=3, progress=False), rows[:100])

    assert bits(rows, "auto") == bits(rows, 2)
    assert bits(rows, "auto") != bits(rows, 3)
    assert bits(rows[:4000], "auto") == bits(rows[:4000], 1)


def test_automatic_algorithm_is_memoized() -> None:
    rows = clustered_rows(np.random.default_rng(1), 300, 2, 3)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    moves = (sb.Birth(), sb.Merge(), sb.Delete())
    for n_components in (None, 3):
        omitted = sb.fit(model, rows, n_components=n_components, progress=False)
        named = sb.fit(model, rows, sb.Memoized(moves=moves), n_components=n_components, progress=False)
        assert visible_bits(omitted, rows) == visible_bits(named, rows)
        assert [record.moves for record in omitted.history] == [record.moves for record in named.history]


@pytest.mark.parametrize(
    "model",
    [
        sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(4)),
        sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(truncation="stick")),
        sb.Mixture(likelihood=sb.SphericalGaussian(base="product")),
    ],
    ids=lambda model: repr(model),
)
def test_automatic_algorithm_of_models_without_moves(model: sb.Mixture) -> None:
    """They keep the number of components that they start with, as if `Memoized()` had been written."""
    rows = clustered_rows(np.random.default_rng(1), 30, 2, 3)
    omitted, named = (sb.fit(model, rows, algorithm, progress=False) for algorithm in (None, sb.Memoized()))
    assert visible_bits(omitted, rows) == visible_bits(named, rows)
    assert omitted.n_components == getattr(model.process, "n_components", 30)
    assert all(record.moves == () for record in omitted.history)


def test_where_inference_starts() -> None:
    """The start has the requested number, else that of `init`, else one if it can grow, else min(50, n)."""
    rows = clustered_rows(np.random.default_rng(1), 70, 2, 3)
    model, grows = sb.Mixture(likelihood=sb.Gaussian()), sb.Memoized(moves=(sb.Split(),), max_passes=0)
    labels = np.arange(70) % 4
    for algorithm in (grows, sb.Full(moves=(sb.Birth(),), max_passes=0)):
        assert sb.fit(model, rows, algorithm, progress=False).n_components == 1
        assert sb.fit(model, rows, algorithm, n_components=6, progress=False).n_components == 6
        assert sb.fit(model, rows, algorithm, init=labels, progress=False).n_components == 4
    for moves in ((), (sb.Merge(), sb.Delete())):
        assert sb.fit(model, rows, sb.Memoized(moves=moves, max_passes=0), progress=False).n_components == 50
        assert sb.fit(model, rows[:20], sb.Memoized(moves=moves, max_passes=0), progress=False).n_components == 20


def test_sparsity_may_exceed_where_it_starts_only_if_it_grows() -> None:
    rows = clustered_rows(np.random.default_rng(1), 70, 2, 3)
    model = sb.Mixture(likelihood=sb.Gaussian())
    grown = sb.fit(model, rows, sb.Memoized(sparsity=4, moves=(sb.Birth(),)), progress=False)
    assert np.diff(grown.predict_proba(rows, sparse=True).indptr).max() <= 4
    with pytest.raises(sb.InvalidArgument) as refused:
        sb.fit(model, rows, sb.Memoized(sparsity=4, moves=(sb.Merge(),)), n_components=3, progress=False)
    assert refused.value.argument == "sparsity"


def test_automatic_sparsity_is_sixteen_or_all() -> None:
    rows = clustered_rows(np.random.default_rng(2), 400, 2, 10)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())

    def bits(n_components: int, sparsity: object) -> dict[str, bytes]:
        algorithm = sb.Full(sparsity=sparsity, max_passes=3, tol=0.0)
        fit = sb.fit(model, rows, algorithm, n_components=n_components, progress=False)
        return visible_bits(fit, rows)

    assert bits(24, "auto") == bits(24, 16) != bits(24, None)
    assert bits(5, "auto") == bits(5, 5) == bits(5, None)


def test_several_batches_learn_faster_than_one() -> None:
    """Why batches exist: after the same number of passes the bound is higher."""
    rows = clustered_rows(np.random.default_rng(4), 5000, 3, 8)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=make_process("finite_dirichlet", 8, 1.0))
    options = {"init": "random", "seed": 1, "progress": False}
    full = sb.fit(model, rows, sb.Full(max_passes=5, tol=0.0), **options)
    memoized = sb.fit(model, rows, sb.Memoized(batches=10, max_passes=5, tol=0.0), **options)
    assert memoized.elbo > full.elbo


def test_unshuffled_batches_are_runs_of_rows() -> None:
    """Rows swapped within their run leave every pass the same up to rounding; swapped between runs they do not."""
    case = make_case(6, n=80, n_components=4)
    algorithm = sb.Memoized(batches=4, shuffle=False, max_passes=3, tol=0.0)

    def bounds(order: np.ndarray) -> np.ndarray:
        fit = sb.fit(case.model, case.rows[order], algorithm, init=case.responsibilities[order], progress=False)
        return np.array([record.elbo for record in fit.history])

    runs = np.arange(80).reshape(4, 20)
    rng, original = np.random.default_rng(0), bounds(np.arange(80))
    within = bounds(np.concatenate([rng.permutation(run) for run in runs]))
    between = bounds(rng.permutation(80))
    np.testing.assert_allclose(within, original, rtol=1e-10)
    assert np.abs(between - original).max() > 1e-6 * np.abs(original).max()


def test_shuffled_batches_are_spread_over_the_rows() -> None:
    """With sorted rows, unshuffled batches see one cluster each and end lower; shuffled batches do not."""
    rng = np.random.default_rng(7)
    rows = np.sort(rng.normal(0.0, 1.0, (2000, 1)) + rng.choice([-4.0, 0.0, 4.0], (2000, 1)), axis=0)
    model = sb.Mixture(likelihood=sb.Gaussian(prior="rule"), process=sb.DirichletProcess())

    def first_bound(shuffle: bool) -> float:
        algorithm = sb.Memoized(batches=10, shuffle=shuffle, max_passes=1, tol=0.0)
        return sb.fit(model, rows, algorithm, n_components=3, seed=0, progress=False).elbo

    assert first_bound(shuffle=True) > first_bound(shuffle=False)
