"""Stochastic inference (mathematics 4.2) against the oracle, and what it shares with the other algorithms."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import (
    clustered_rows,
    fit_from,
    flat,
    make_case,
    passes,
    visible_bits,
)
from kinds import every_likelihood, every_process
from oracles import engines


def own_fit(rows: np.ndarray, algorithm: sb.Stochastic, **options: Any) -> sb.Fit:
    model = sb.Mixture(likelihood=sb.Gaussian())
    return sb.fit(model, rows, algorithm, **{"n_components": 5, "progress": False} | options)


@every_likelihood
@every_process
@pytest.mark.parametrize("sparsity", [None, 2])
@pytest.mark.one_in(8)
def test_visits_interpolate_and_the_last_pass_is_exact(likelihood: str, process: str, sparsity: int | None) -> None:
    """Steps over consecutive batches, S <- (1 - rho) S + rho N / |B| S(B), and the pass that closes them."""
    case = make_case(2, n=60, support=2, likelihood=likelihood, process=process, weighted=True)
    batches = [np.arange(begin, begin + 15) for begin in range(0, 60, 15)]
    for delay, decay in [(0.0, 1.0), (10.0, 0.9), (1.5, 0.6)]:
        algorithm = sb.Stochastic(15, delay, decay, shuffle=False, sparsity=sparsity, margin=None, max_passes=3)
        fit = fit_from(case, algorithm)
        expected = engines.fit_stochastic(
            case.rows, case.responsibilities, case.mixture, batches, 3, delay, decay, sparsity, case.weights
        )
        assert fit.elbo == pytest.approx(expected.elbo, rel=1e-9, abs=1e-9 * case.scale)
        counts = (case.weights @ expected.responsibilities)[: case.n_components]
        np.testing.assert_allclose(fit.counts, counts, rtol=1e-7, atol=1e-8)


@every_likelihood
@every_process
def test_a_whole_step_on_all_rows_is_a_full_pass(likelihood: str, process: str) -> None:
    """Number 18: with rate 1 on one batch the visit and the closing pass are two passes of `Full`, to rounding."""
    case = make_case(3, n=80, likelihood=likelihood, process=process, weighted=True)
    algorithm = sb.Stochastic(80, delay=0.0, decay=1.0, sparsity=None, max_passes=1, margin=None)
    one, two = fit_from(case, algorithm), fit_from(case, passes(2))
    assert one.elbo == pytest.approx(two.elbo, rel=1e-12)
    np.testing.assert_allclose(one.counts, two.counts, rtol=1e-9, atol=1e-9)
    for name, values in flat(two.components).items():
        np.testing.assert_allclose(flat(one.components)[name], values, rtol=1e-8, atol=1e-8)


def test_records_have_no_bound_and_the_fit_has_an_exact_one() -> None:
    rows = clustered_rows(np.random.default_rng(0), 3000, 3, 5)
    fit = own_fit(rows, sb.Stochastic(100, max_passes=4, tol=1e9))
    assert len(fit.history) == 4
    assert all(np.isnan(record.elbo) for record in fit.history)
    assert fit.stop_reason is sb.StopReason.MAX_PASSES
    assert fit.counts.sum() == pytest.approx(3000)
    assert fit.elbo <= fit.evaluate(rows) + 1e-9 * abs(fit.elbo)
    # One more pass of coordinate ascent from what the fit is made of.
    again = sb.fit(fit.model, rows, sb.Full(max_passes=1), init=fit, progress=False)
    assert again.elbo >= fit.elbo


def test_it_gets_close_to_where_full_inference_goes() -> None:
    rows = clustered_rows(np.random.default_rng(1), 4000, 2, 4)
    stochastic = own_fit(rows, sb.Stochastic(200, delay=1.0, decay=0.7, max_passes=30))
    full = sb.fit(stochastic.model, rows, sb.Full(max_passes=100), n_components=5, progress=False)
    start = sb.fit(stochastic.model, rows, sb.Full(max_passes=0), n_components=5, progress=False)
    assert full.elbo - stochastic.elbo < 0.1 * (full.elbo - start.elbo)


def test_no_pass_is_the_state_after_the_first_global_step() -> None:
    case = make_case(4)
    by_step = fit_from(case, sb.Stochastic(20, max_passes=0))
    assert by_step.elbo == pytest.approx(fit_from(case, sb.Full(max_passes=0)).elbo, rel=1e-12)
    rows = clustered_rows(np.random.default_rng(2), 100, 2, 3)
    assert np.isnan(own_fit(rows, sb.Stochastic(20, max_passes=0), init="random").elbo)


def test_batches_without_weight_are_passed_over() -> None:
    case = make_case(5, n=60)
    weights = np.ones(60)
    weights[20:40] = 0.0
    fit = fit_from(case, sb.Stochastic(20, shuffle=False, max_passes=3), sample_weight=weights)
    assert fit.counts.sum() == pytest.approx(40)
    assert np.isfinite(fit.elbo)


def test_the_number_of_visits_follows_from_the_size() -> None:
    rows = clustered_rows(np.random.default_rng(3), 103, 2, 3)
    same = [own_fit(rows, sb.Stochastic(size, max_passes=2)).elbo for size in (35, 52)]
    # At most 35 rows: three batches, as for 40.
    assert own_fit(rows, sb.Stochastic(40, max_passes=2)).elbo == same[0] != same[1]


def test_threads_make_no_difference_and_seeds_do() -> None:
    rows = clustered_rows(np.random.default_rng(4), 20_000, 3, 5)
    fits = [
        own_fit(rows, sb.Stochastic(1000, max_passes=3), threads=threads, seed=seed, init="random")
        for threads, seed in [(1, 0), (2, 0), (1, 1)]
    ]
    assert visible_bits(fits[0], rows[:50]) == visible_bits(fits[1], rows[:50])
    assert visible_bits(fits[0], rows[:50]) != visible_bits(fits[2], rows[:50])


def test_a_callback_ends_it_with_an_exact_bound() -> None:
    rows = clustered_rows(np.random.default_rng(5), 1000, 2, 3)
    seen: list[sb.Record] = []

    def stop(record: sb.Record) -> bool:
        seen.append(record)
        return record.index == 1

    fit = own_fit(rows, sb.Stochastic(100, max_passes=9), callbacks=[stop])
    assert fit.stop_reason is sb.StopReason.CALLBACK
    assert len(seen) == len(fit.history) == 2
    assert fit.elbo == own_fit(rows, sb.Stochastic(100, max_passes=2)).elbo


def test_a_checkpoint_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    rows = clustered_rows(np.random.default_rng(6), 1000, 2, 3)
    checkpoint = sb.Checkpoint(tmp_path / "state", every_seconds=0)
    short = own_fit(rows, sb.Stochastic(100, max_passes=2), checkpoint=checkpoint)
    again = own_fit(rows, sb.Stochastic(100, max_passes=2), checkpoint=checkpoint)
    longer = own_fit(rows, sb.Stochastic(100, max_passes=5), checkpoint=checkpoint)
    assert visible_bits(again, rows) == visible_bits(short, rows)
    assert visible_bits(longer, rows) == visible_bits(own_fit(rows, sb.Stochastic(100, max_passes=5)), rows)
    for other in [sb.Stochastic(100, delay=1.0), sb.Stochastic(100, decay=0.8), sb.Memoized(batches=10)]:
        with pytest.raises(sb.CheckpointError):
            own_fit(rows, other, checkpoint=checkpoint)


def test_an_interrupt_in_a_pass_leaves_an_estimate() -> None:
    """A callback that is interrupted ends the run at once; what it has is returned without a bound."""
    rows = clustered_rows(np.random.default_rng(7), 1000, 2, 3)

    def interrupt(record: sb.Record) -> None:
        raise KeyboardInterrupt

    fit = own_fit(rows, sb.Stochastic(100, max_passes=9), callbacks=[interrupt])
    assert fit.stop_reason is sb.StopReason.INTERRUPTED
    assert fit.counts.sum() == pytest.approx(1000)


def test_steps_that_need_not_settle_are_warned_of() -> None:
    for decay in (0.0, 0.5, 1.1):
        with pytest.warns(sb.StepSizeWarning, match="should be above 0.5") as caught:
            sb.Stochastic(10, decay=decay)
        assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert sb.Stochastic(10, 0, 1).decay == 1.0


def test_bad_settings() -> None:
    for call, kind, argument in [
        (lambda: sb.Stochastic(0), sb.InvalidArgument, "batch_size"),
        (lambda: sb.Stochastic("auto"), sb.InvalidType, "batch_size"),
        (lambda: sb.Stochastic(10, delay=-1.0), sb.InvalidArgument, "delay"),
        (lambda: sb.Stochastic(10, delay=np.nan), sb.InvalidArgument, "delay"),
        (lambda: sb.Stochastic(10, decay=-0.1), sb.InvalidArgument, "decay"),
        (lambda: sb.Stochastic(10, decay=None), sb.InvalidType, "decay"),
        (lambda: sb.Stochastic(10, shuffle=1), sb.InvalidType, "shuffle"),
        (lambda: own_fit(np.eye(9), sb.Stochastic(10)), sb.InvalidArgument, "batch_size"),
    ]:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.argument == argument
    with pytest.raises(sb.NotSupported, match="exact bound"):
        sb.Stochastic(10, moves=(sb.Birth(),))
