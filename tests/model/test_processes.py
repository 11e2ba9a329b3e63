"""Priors on the weights: bounds at other concentrations, the tail, files and checkpoints.

Of every process, `test_every_model.py` has its bounds against the oracle and `test_every_law.py` its laws. What the
constructors and comparisons refuse is in `test_refusals_of_processes.py`.
"""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import stickbreak as sb
from cases import START, fit_from, globals_of, make_case, passes, replaced, visible_bits, with_process
from kinds import PROCESSES, every_process
from oracles import engines, evidence
from oracles import variational as oracle

TAIL = 2.5


# Bounds


@pytest.mark.parametrize("sparsity", [None, 2])
def test_negative_concentration_of_a_pitman_yor_process(sparsity: int | None) -> None:
    """Above -discount is enough: pass by pass as the oracle, and below the evidence."""
    case = make_case(1, process="pitman_yor", concentration=-0.3, weighted=True)
    expected = engines.fit_full(case.rows, case.responsibilities, case.mixture, 6, sparsity, case.weights)
    fit = fit_from(case, passes(6, sparsity))
    bounds = [record.elbo for record in fit.history]
    np.testing.assert_allclose(bounds, [each.elbo for each in expected[1:]], rtol=1e-9)
    weights = case.mixture.process.expected_weights(expected[-1].state.eta)
    np.testing.assert_allclose([*fit.weights, fit.leftover_weight], weights, rtol=1e-6)
    few = make_case(2, n=6, dimension=2, n_components=3, process="pitman_yor", concentration=-0.3)
    exact = evidence.log_evidence(few.rows, few.mixture.likelihood, few.mixture.process, 3)
    assert exact - 10.0 < fit_from(few, passes(30, sparsity)).elbo <= exact + 1e-9


@pytest.mark.parametrize("concentration", [0.3, 5.0])
@pytest.mark.parametrize("n_components", [1, 2, 5])
@every_process
def test_evidence_at_any_number_of_components(process: str, n_components: int, concentration: float) -> None:
    """Number 3 with one component, where the tail matters most, and with one component per row."""
    case = make_case(3, n=5, dimension=2, n_components=n_components, process=process, concentration=concentration)
    exact = evidence.log_evidence(case.rows, case.mixture.likelihood, case.mixture.process, n_components)
    fit = fit_from(case, passes(30))
    reached = max(fit.elbo, fit.evaluate(case.rows))
    assert reached <= exact + 1e-9
    assert reached > exact - 10.0
    if n_components == 1 and process in ("stick", "gamma_stick", "finite"):
        assert fit.elbo == pytest.approx(exact, rel=1e-10)  # nothing is left to approximate


def test_large_concentrations_of_truncated_sticks_keep_the_better_order() -> None:
    """The last stick, fixed to one, may suit a large component best: reordering must not lower the bound."""
    labels = np.repeat([0, 1], [10, 90])
    rows = np.random.default_rng(0).standard_normal((100, 1)) + 30.0 * labels[:, None]
    for concentration, counts in [(0.5, [90, 10]), (5.0, [10, 90])]:
        model = sb.Mixture(sb.Gaussian(), process=sb.DirichletProcess(concentration, truncation="stick"))
        for algorithm in (passes(3), sb.Memoized(batches=4, max_passes=3, tol=0.0)):
            fit = sb.fit(model, rows, algorithm, init=labels, progress=False)
            np.testing.assert_allclose(fit.counts, counts, atol=0.1)


def test_mean_of_the_concentration_follows_the_number_of_clusters() -> None:
    """Mathematics 2f: the posterior of an unknown concentration counts the components that hold something."""
    case = make_case(4, n=100)
    labels = np.arange(100) % 20
    model = sb.Mixture(likelihood=case.model.likelihood, process=sb.DirichletProcess(sb.Gamma(1.0, 1.0)))

    def mean(n_clusters: int) -> float:
        fit = sb.fit(model, case.rows, START, init=labels % n_clusters, n_components=20, progress=False)
        assert isinstance(fit.concentration, sb.Gamma)
        assert fit.concentration.shape == 1.0 + 20
        return fit.concentration.mean

    assert mean(2) < mean(10) < mean(20)


# Point estimates: those of sticks are in `test_point_estimates.py`


def test_point_estimates_of_a_pitman_yor_process() -> None:
    """Maximum likelihood has no use for the prior; without a discount the mode is that of the Dirichlet process."""
    case = make_case(5, n=120, with_mode=True, concentration=1.6)
    for objective, discount in [("ml", 0.4), ("ml", 0.0), ("map", 0.0)]:
        algorithm = sb.Full(objective=objective, sparsity=None, margin=None, max_passes=3, tol=0.0)
        other = with_process(case, sb.PitmanYor(discount, concentration=1.6))
        fit, found = fit_from(case, algorithm), fit_from(other, algorithm)
        assert found.bound == objective
        assert found.elbo == pytest.approx(fit.elbo, rel=1e-12)
        np.testing.assert_allclose(found.weights, fit.weights, rtol=1e-10)


# Sticks


@pytest.mark.parametrize("sticks", [(2.2, 0.7), (0.4, 3.0), (1.0, 2.0)])
@pytest.mark.parametrize("truncation", ["nested", "stick", "tail"])
def test_sticks_of_any_beta_prior(truncation: str, sticks: tuple[float, float]) -> None:
    """Pass by pass as the oracle, below the evidence, and with a = 1 the Dirichlet process."""
    case = with_process(make_case(9, weighted=True), sb.DirichletProcess(sticks=sticks, truncation=truncation))
    expected = engines.fit_full(case.rows, case.responsibilities, case.mixture, 5, None, case.weights)
    fit = fit_from(case, passes(5))
    np.testing.assert_allclose([each.elbo for each in fit.history], [each.elbo for each in expected[1:]], rtol=1e-9)
    few = with_process(make_case(2, n=6, dimension=2, n_components=3), case.model.process)
    exact = evidence.log_evidence(few.rows, few.mixture.likelihood, few.mixture.process, 3)
    assert exact - 10.0 < fit_from(few, passes(30)).elbo <= exact + 1e-9
    if sticks[0] == 1.0:
        same = with_process(case, sb.DirichletProcess(sticks[1], truncation=truncation))
        assert fit_from(same, passes(5)).elbo == fit.elbo
        assert fit.concentration == sticks[1]


def test_moves_under_sticks_are_judged_by_their_bound() -> None:
    """Three clusters in eight pieces come together, and the bound of the fit is that of its own responsibilities."""
    rng = np.random.default_rng(3)
    rows = np.concatenate([rng.normal(mean, 1.0, (60, 2)) for mean in (-8.0, 0.0, 8.0)])
    for truncation in ("nested", "tail"):
        model = sb.Mixture(sb.Gaussian(), process=sb.DirichletProcess(sticks=(2.0, 3.0), truncation=truncation))
        fit = sb.fit(model, rows, sb.Memoized(moves=(sb.Birth(), sb.Merge(), sb.Delete())), n_components=8)
        assert fit.n_components == 3
        bounds = [record.elbo for record in fit.history]
        assert (np.diff(bounds) >= -1e-8 * np.abs(bounds[1:])).all()


def test_prior_sticks_give_labels_their_probabilities() -> None:
    """The numbers of clusters of 4 rows: the means over 3,000 draws are within 5 standard errors of the oracle's."""
    sticks = (2.0, 3.0)
    likelihood = sb.KnownCovarianceGaussian(covariance=[[1.0]], mean=[0.0], mean_precision=1.0)
    model = sb.Mixture(likelihood, process=sb.DirichletProcess(sticks=sticks))
    found = np.array([sb.sample_prior(model, 4, seed=seed).labels.max() + 1 for seed in range(3000)])
    probabilities = np.zeros(5)
    for labels in evidence.set_partitions(4):
        sizes = np.bincount(labels).tolist()
        probabilities[len(sizes)] += np.exp(evidence.log_partition_of_sticks(sizes, *sticks))
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    for k in range(1, 5):
        error = np.sqrt(probabilities[k] * (1 - probabilities[k]) / len(found))
        assert abs(np.mean(found == k) - probabilities[k]) < 5 * error


# The tail


@pytest.mark.parametrize("sparsity", [1, 2, None])
def test_count_of_the_tail(sparsity: int | None) -> None:
    """The oracle's, and with the counts of the components the mass of all rows."""
    case = make_case(6, n=90, process="tail", concentration=TAIL, weighted=True)
    last = engines.fit_full(case.rows, case.responsibilities, case.mixture, 6, sparsity, case.weights)[-1]
    fit = fit_from(case, passes(6, sparsity))
    expected = case.weights @ last.responsibilities[:, -1]
    assert fit.tail_count == pytest.approx(expected, rel=1e-6, abs=1e-8)
    assert fit.counts.sum() + fit.tail_count == pytest.approx(case.weights.sum(), rel=1e-12)
    assert sparsity is not None or fit.tail_count > 1e-3


@every_process
def test_only_a_tail_has_a_count_and_a_column(process: str) -> None:
    case = make_case(7, process=process)
    fit = fit_from(case, passes(3))
    if PROCESSES[process].bound == "tail":
        assert fit.tail_count > 0.0
        assert fit.predict_proba(case.rows, tail=True).shape == (60, 5)
    else:
        assert fit.tail_count == 0.0
        with pytest.raises(sb.NotSupported, match='truncation="tail"'):
            fit.predict_proba(case.rows, tail=True)
    with pytest.raises(sb.InvalidType) as caught:
        fit.predict_proba(case.rows, tail=1)  # type: ignore[call-overload]
    assert caught.value.argument == "tail"


@pytest.mark.parametrize("sparsity", [1, 2, None])
def test_kept_responsibilities_with_a_tail(sparsity: int | None) -> None:
    """Sparse, the tail is one of the L that a row keeps, or, where it is not asked for, no candidate."""
    case = make_case(8, n_components=2, process="tail", concentration=TAIL)
    fit = fit_from(case, passes(3, sparsity))
    scores = oracle.local_scores(case.rows, case.mixture, globals_of(fit, case.weights.sum()))
    for tail, kept_scores in [(True, scores), (False, scores[:, :-1])]:
        found = fit.predict_proba(case.rows, tail=tail, sparse=True)
        assert isinstance(found, scipy.sparse.csr_array)
        expected = oracle.top_l_responsibilities(kept_scores, sparsity)
        np.testing.assert_allclose(found.toarray(), expected, rtol=1e-7, atol=1e-11)
        np.testing.assert_allclose(found.sum(1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("batches", [1, 5])
def test_rows_far_from_all_components_go_to_the_tail(batches: int) -> None:
    """A row that only a new component explains belongs to the tail, and to no other's statistics."""
    rows = np.concatenate([np.random.default_rng(0).standard_normal((200, 2)), [[40.0, 40.0]]])
    prior = sb.Gaussian(mean=[0.0, 0.0], mean_precision=1.0, dof=4.0, scale=100 * np.eye(2))
    model = sb.Mixture(likelihood=prior, process=sb.DirichletProcess(1.0, truncation="tail"))
    algorithm = sb.Memoized(batches=batches, max_passes=10, tol=0.0, sparsity=None)
    fit = sb.fit(model, rows, algorithm, init=np.ones((201, 1)), progress=False)
    assert fit.tail_count == pytest.approx(1.0, abs=0.05)
    assert fit.counts[0] == pytest.approx(200.0, abs=0.05)
    assert fit.predict_proba(rows, tail=True)[-1, -1] > 0.95
    assert fit.predict(rows).max() == 0


@pytest.mark.parametrize("seed", range(5))
def test_released_component_leaves_every_answer(seed: int) -> None:
    """Number 11: a component at its prior, empty and last, was in the tail all along (mathematics 2c)."""
    case = make_case(seed, n=30, n_components=3, process="tail")
    longer = replaced(case, responsibilities=np.column_stack([case.responsibilities, np.zeros(30)]))
    one, other = fit_from(case, START), fit_from(longer, START)
    assert other.evaluate(case.rows) == pytest.approx(one.evaluate(case.rows), rel=1e-11)
    np.testing.assert_allclose(other.log_predictive(case.rows), one.log_predictive(case.rows), rtol=1e-11)
    released = other.predict_proba(case.rows, tail=True)
    together = np.column_stack([released[:, :3], released[:, 3:].sum(1)])
    np.testing.assert_allclose(together, one.predict_proba(case.rows, tail=True), rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("n_passes", [0, 1])
@pytest.mark.parametrize("process", [name for name, kind in PROCESSES.items() if kind.bound != "tail"])
def test_start_from_a_fit_with_a_tail(process: str, n_passes: int, tmp_path: Path) -> None:
    """A fit continues with the tail of its start only under the same prior, in memory or from a file."""
    case = make_case(9, n=50, n_components=2, process="tail", concentration=TAIL)
    first = fit_from(case, passes(4))
    assert first.tail_count > 1e-3
    algorithm = sb.Memoized(batches=2, max_passes=n_passes, tol=0.0)
    other = make_case(9, n=50, n_components=2, process=process, concentration=TAIL)
    plain = fit_from(replaced(other, rows=case.rows), algorithm, init=first)
    assert plain.tail_count == 0.0
    plain.save(tmp_path / "model")
    assert visible_bits(sb.load(tmp_path / "model"), case.rows) == visible_bits(plain, case.rows)
    assert fit_from(case, algorithm, init=first).tail_count > 1e-3
    assert fit_from(case, passes(3), init=plain).tail_count > 1e-3


# Files and checkpoints


def through_file(fit: sb.Fit, folder: Path) -> sb.Fit:
    fit.save(folder / "model")
    return sb.load(folder / "model")


WAYS: dict[str, Callable[[sb.Fit, Path], sb.Fit]] = {
    "file": through_file,
    "pickle": lambda fit, _: pickle.loads(pickle.dumps(fit)),
    "deepcopy": lambda fit, _: copy.deepcopy(fit),
}
ALGORITHMS: dict[str, Any] = {
    "full": sb.Full(max_passes=6, tol=0.0),
    "memoized": sb.Memoized(batches=3, sparsity=2, max_passes=6, tol=0.0),
    "stochastic": sb.Stochastic(30, max_passes=6),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_process
@pytest.mark.one_in(3)
def test_round_trip(process: str, dtype: type, way: Callable[[sb.Fit, Path], sb.Fit], tmp_path: Path) -> None:
    """A round trip keeps all bits, prior and posterior, and continues equally."""
    case = make_case(10, n=90, process=process)
    case = replaced(case, rows=case.rows.astype(dtype))
    for algorithm in (ALGORITHMS["full"], ALGORITHMS["memoized"]):
        fit = fit_from(case, algorithm)
        again = way(fit, tmp_path)
        assert visible_bits(again, case.rows) == visible_bits(fit, case.rows)
        assert (again.model, again.bound, again.concentration) == (fit.model, fit.bound, fit.concentration)
        assert again.model.process == case.model.process
        on = [fit_from(case, algorithm, init=each) for each in (fit, again)]
        assert visible_bits(on[0], case.rows) == visible_bits(on[1], case.rows)
        if process == "tail":
            tails = [each.predict_proba(case.rows, tail=True) for each in (fit, again)]
            assert tails[0].tobytes() == tails[1].tobytes()


class Crash(BaseException):
    """Ends a fit from a callback, after which its checkpoint must do."""


def crash(record: sb.Record) -> None:
    if record.index == 2:
        raise Crash


@pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS)
@every_process
def test_resumed_to_the_same_bits(process: str, algorithm: Any, tmp_path: Path) -> None:
    case = make_case(11, n=90, process=process, weighted=True)
    whole = fit_from(case, algorithm)
    checkpoint = sb.Checkpoint(tmp_path / "run", every_seconds=0)
    with pytest.raises(Crash):
        fit_from(case, algorithm, checkpoint=checkpoint, callbacks=[crash])
    seen: list[int] = []
    resumed = fit_from(case, algorithm, checkpoint=checkpoint, callbacks=[lambda record: seen.append(record.index)])
    assert seen == [3, 4, 5]
    assert visible_bits(resumed, case.rows) == visible_bits(whole, case.rows)
    assert resumed.concentration == whole.concentration


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (sb.DirichletProcess(1.0), sb.DirichletProcess(1.0, truncation="tail")),
        (sb.DirichletProcess(1.0), sb.DirichletProcess(1.0, truncation="stick")),
        (sb.DirichletProcess(2.0), sb.DirichletProcess(sb.Gamma(2.0, 1.0))),
        (sb.DirichletProcess(1.0), sb.PitmanYor(0.0, concentration=1.0)),
        (sb.DirichletProcess(sb.Gamma(2.0, 1.0)), sb.DirichletProcess(sb.Gamma(2.0, 1.5))),
        (sb.PitmanYor(0.3), sb.PitmanYor(0.4)),
    ],
)
def test_checkpoints_tell_priors_apart(one: Any, other: Any, tmp_path: Path) -> None:
    """Different priors are unequal, even if they compute the same."""
    case = make_case(12)
    checkpoint = sb.Checkpoint(tmp_path / "run")
    fit_from(with_process(case, one), ALGORITHMS["memoized"], checkpoint=checkpoint)
    with pytest.raises(sb.CheckpointError, match="give another path"):
        fit_from(with_process(case, other), ALGORITHMS["memoized"], checkpoint=checkpoint)
    assert one != other


@every_process
def test_specifications_are_values(process: str) -> None:
    """Equal, hashable, shown as one writes them, and read back from pickles and fits as they were given."""
    case, again = (make_case(13, process=process) for _ in range(2))
    given = case.model.process
    assert given is not again.model.process
    assert given == again.model.process
    assert hash(given) == hash(again.model.process)
    assert eval(repr(given), vars(sb)) == given
    assert pickle.loads(pickle.dumps(given)) == given
    assert fit_from(case).model.process == given
