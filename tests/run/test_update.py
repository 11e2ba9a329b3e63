"""`Fit.update`: new data as one more batch of a memoized fit (mathematics 4.3), against the oracle's memo."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinds
import stickbreak as sb
from cases import (
    Case,
    cases,
    clustered_rows,
    fit_from,
    make_case,
    visible_bits,
)
from oracles import engines


def fitted(case: Case, n: int, **settings: Any) -> sb.Fit:
    """The fit whose first `n` rows keep the responsibilities of the case."""
    algorithm = sb.Full(**{"sparsity": None, "max_passes": 0, "margin": None} | settings)
    return sb.fit(case.model, case.rows[:n], algorithm, **start_of(case, n))


def start_of(case: Case, n: int) -> dict[str, Any]:
    return {"init": case.responsibilities[:n], "sample_weight": case.weights[:n], "progress": False}


def visited(case: Case, n: int, visits: int, sparsity: int | None = None) -> engines.Memo:
    """The oracle's memo of two batches, of which the second contributes nothing before its first visit."""
    batches = [np.arange(n), np.arange(n, len(case.rows))]
    memo = engines.Memo(case.rows, case.responsibilities, case.mixture, batches, sparsity, case.weights)
    memo.responsibilities[n:] = 0.0
    memo.order()
    for _ in range(visits):
        memo.run([1])
    return memo


EVERY_LIKELIHOOD = [(likelihood, "nested") for likelihood in kinds.LIKELIHOODS]
EVERY_PROCESS = [("gaussian", process) for process in kinds.PROCESSES]


@pytest.mark.parametrize(("likelihood", "process"), [*EVERY_LIKELIHOOD, *EVERY_PROCESS])
@pytest.mark.parametrize("sparsity", [None, 2])
@pytest.mark.parametrize("visits", [1, 4])
def test_an_update_is_a_memoized_visit(likelihood: str, process: str, sparsity: int | None, visits: int) -> None:
    case = make_case(4, n=90, n_components=4, support=2, likelihood=likelihood, process=process, weighted=True)
    fit = fitted(case, 60, sparsity=sparsity)
    later = fit.update(case.rows[60:], sample_weight=case.weights[60:], max_passes=visits, tol=0.0)
    memo = visited(case, 60, visits, sparsity)
    assert later.elbo == pytest.approx(memo.elbo(), rel=1e-9)
    counts = (case.weights @ memo.responsibilities)[: case.n_components]
    np.testing.assert_allclose(later.counts, counts, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("likelihood", ["diagonal", "bernoulli", "poisson"])
def test_missing_values(likelihood: str) -> None:
    case = make_case(4, n=90, n_components=3, support=2, likelihood=likelihood, process="nested", with_missing=True)
    fit = fit_from(dataclasses.replace(case, rows=case.rows[:60]), missing="marginalize", **start_of(case, 60))
    later = fit.update(case.rows[60:])
    assert later.elbo == pytest.approx(visited(case, 60, 1).elbo(), rel=1e-9)
    empty = np.vstack([case.rows[60:], np.full((2, 3), np.nan)])
    with pytest.warns(sb.EmptyRowsWarning, match="2 rows"):
        again = fit.update(empty)
    assert again.elbo == pytest.approx(later.elbo, rel=1e-12)
    with pytest.raises(sb.InvalidArgument, match="X_new"):
        fitted(make_case(5, n=60), 40).update(np.full((3, 3), np.nan))


@given(cases(min_rows=4, weighted=True), st.integers(1, 6))
def test_the_bound_is_that_of_all_rows_and_never_falls(case: Case, visits: int) -> None:
    half = len(case.rows) // 2
    if not 1 <= case.n_components <= half or not (case.weights[:half].any() and case.weights[half:].any()):
        return
    fit = fitted(case, half)
    later = fit.update(case.rows[half:], sample_weight=case.weights[half:], max_passes=visits, tol=0.0)
    assert later.counts.sum() == pytest.approx(case.weights.sum(), rel=1e-11)
    bounds = [record.elbo for record in later.history]
    assert len(bounds) == visits
    assert later.elbo == pytest.approx(bounds[-1], rel=1e-12)
    assert (np.diff(bounds) >= -1e-9 * case.scale).all()


def test_weights_count_as_equal_rows_do() -> None:
    case = make_case(5, n=60)
    fit = fitted(case, 40)
    double = fit.update(case.rows[40:], sample_weight=np.full(20, 2.0))
    repeated = fit.update(np.repeat(case.rows[40:], 2, axis=0))
    assert double.elbo == pytest.approx(repeated.elbo, rel=1e-12)
    np.testing.assert_allclose(double.counts, repeated.counts, rtol=1e-12)


def test_the_fit_stays_as_it_is_and_its_history_goes_on() -> None:
    case = make_case(6, n=60)
    fit = fitted(case, 40, max_passes=3, tol=0.0)
    before = visible_bits(fit, case.rows)
    later = fit.update(case.rows[40:], max_passes=50)
    assert visible_bits(fit, case.rows) == before
    assert later.stop_reason is sb.StopReason.CONVERGED
    assert [record.index for record in later.history] == list(range(len(later.history)))
    assert later.history[:3] == fit.history
    seconds = [record.seconds for record in later.history]
    assert seconds == sorted(seconds)
    assert "60 rows" in repr(later)
    assert fit.update(case.rows[40:]).stop_reason is sb.StopReason.MAX_PASSES


def test_threads_make_no_difference() -> None:
    rows = clustered_rows(np.random.default_rng(0), 40_000, 3, 5)
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows[:5000], sb.Full(max_passes=3), n_components=8)
    one, two = (fit.update(rows[5000:], max_passes=3, threads=threads) for threads in (1, 2))
    assert visible_bits(one, rows[:100]) == visible_bits(two, rows[:100])


def test_a_loaded_fit_can_be_updated(tmp_path: Any) -> None:
    case = make_case(7, n=60)
    fit = fitted(case, 40)
    fit.save(tmp_path / "model")
    again = sb.load(tmp_path / "model").update(case.rows[40:])
    assert visible_bits(again, case.rows) == visible_bits(fit.update(case.rows[40:]), case.rows)
    again.save(tmp_path / "later")
    assert sb.load(tmp_path / "later").elbo == again.elbo


def test_rows_of_the_other_type_are_measured_from_the_same_origin() -> None:
    """An offset that float32 cannot hold: the rows that it can hold are those same numbers in float64."""
    rows = 1e6 + 1 / 3 + clustered_rows(np.random.default_rng(1), 300, 2, 3)
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(max_passes=5), n_components=3)
    single = rows[:100].astype(np.float32)
    assert visible_bits(fit.update(single), rows) == visible_bits(fit.update(single.astype(np.float64)), rows)


def test_refusals() -> None:
    rows = clustered_rows(np.random.default_rng(2), 200, 2, 3)
    model = sb.Mixture(likelihood=sb.Gaussian())
    fit = sb.fit(model, rows, sb.Full(max_passes=3), n_components=3)
    incomplete = sb.fit(model, rows, sb.Memoized(batches=2, max_passes=0), n_components=3, init="random")
    assert np.isnan(incomplete.elbo)
    with pytest.raises(sb.NotSupported, match="elbo is nan"):
        incomplete.update(rows)
    broken = rows.copy()
    broken[7, 1] = np.nan
    for call, kind, argument in [
        (lambda: fit.update(rows + 1e12), sb.InvalidArgument, "X_new"),
        (lambda: fit.update(broken), sb.InvalidArgument, "X_new"),
        (lambda: fit.update(rows[:, :1]), sb.InvalidArgument, "X_new"),
        (lambda: fit.update(rows[:0]), sb.InvalidArgument, "X_new"),
        (lambda: fit.update("rows"), sb.InvalidType, "X_new"),
        (lambda: fit.update(rows, sample_weight=np.zeros(200)), sb.InvalidArgument, "sample_weight"),
        (lambda: fit.update(rows, sample_weight=[1.0]), sb.InvalidArgument, "sample_weight"),
        (lambda: fit.update(rows, max_passes=0), sb.InvalidArgument, "max_passes"),
        (lambda: fit.update(rows, max_passes=None), sb.InvalidType, "max_passes"),
        (lambda: fit.update(rows, tol=-1.0), sb.InvalidArgument, "tol"),
        (lambda: fit.update(rows, threads=0), sb.InvalidArgument, "threads"),
    ]:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.argument == argument


def test_an_update_ends_when_it_gains_little_for_each_new_row() -> None:
    """However many rows the fit has: two of its clusters are small, and the new rows move them far."""
    rng = np.random.default_rng(0)

    def pair(n: int) -> Any:
        return np.concatenate([rng.normal([30.0, 0.0], 1.0, size=(n, 2)), rng.normal([32.0, 0.0], 1.0, size=(n, 2))])

    rows = np.concatenate([rng.normal(size=(20_000, 2)), pair(20)])
    start = np.repeat([0, 1, 2], [20_000, 20, 20])
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, sb.Memoized(max_passes=200), init=start, progress=False)
    updated = fit.update(pair(1000), max_passes=500, tol=1e-6)
    assert updated.stop_reason is sb.StopReason.CONVERGED
    *_, before, last = np.diff([record.objective for record in updated.history])
    assert 0.0 <= last < 1e-6 * 2000 <= before
