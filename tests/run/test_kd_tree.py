"""Nodes of kd-trees as units, compared with the oracle, with rows, and with themselves after a stop."""

import dataclasses
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from cases import fit_from, make_case, passes, replaced, visible_bits
from kinds import every_one_of_all_columns, every_process
from oracles import engines, nodes, variational

Array = np.ndarray
USUAL = (sb.Birth(), sb.Merge(), sb.Delete())
# Likelihoods whose columns have separate units, and whether these are about zero.
UNITS = {"gaussian": False, "diagonal": False, "zero_mean_gaussian": True}


def tree(**settings: Any) -> sb.KdTree:
    return sb.KdTree(**{"refine": False, "tolerance": 0.01} | settings)


def clusters(n: int, dimension: int = 2, k: int = 4, seed: int = 0, separation: float = 6.0) -> Array:
    rng = np.random.default_rng(seed)
    centres = separation * rng.standard_normal((k, dimension))
    return np.asarray(centres[rng.integers(k, size=n)] + rng.standard_normal((n, dimension)))


def fit(rows: Any, units: Any, algorithm: Any = None, **options: Any) -> sb.Fit:
    algorithm = sb.Full(moves=USUAL) if algorithm is None else algorithm
    model = options.pop("model", sb.Mixture(likelihood=sb.Gaussian()))
    return sb.fit(model, rows, dataclasses.replace(algorithm, units=units), progress=False, **options)


def least(likelihood: str, dimension: int) -> int:
    """Return the number of rows above which a node takes less memory than its rows (mathematics 12.2)."""
    squares = {"gaussian": dimension * (dimension + 1) // 2, "diagonal": dimension}
    squares["zero_mean_gaussian"] = squares["gaussian"]
    n_squares = squares.get(likelihood, 1 if likelihood.startswith("spherical") else 0)
    row = dimension + 4
    return 2 * math.ceil((row + n_squares) / row)


@every_one_of_all_columns
@every_process
@pytest.mark.parametrize("sparsity", [1, 2, None])
@pytest.mark.one_in(3)
def test_passes_over_nodes(likelihood: str, process: str, sparsity: int | None) -> None:
    """Every pass over a frontier that stays has the bound and the counts of rows that share responsibilities."""
    case = make_case(3, n=90, likelihood=likelihood, process=process, weighted=True)
    unit = np.ones(case.rows.shape[1])
    if likelihood in UNITS:
        unit = nodes.units_of_columns(case.rows, about_zero=UNITS[likelihood], weights=case.weights)
    members = nodes.frontier(case.rows / unit, 3, least(likelihood, 3) if likelihood != "categorical" else 2)
    expected = nodes.fit_tied(case.rows, case.responsibilities, case.mixture, members, 4, sparsity, case.weights)
    units = sb.KdTree(depth=3, split="axis", tolerance=1e300, refine=False)
    found = fit_from(case, dataclasses.replace(passes(4, sparsity), units=units))
    assert [record.n_units for record in found.history] == [len(members)] * 4
    bounds = [record.elbo for record in found.history]
    np.testing.assert_allclose(bounds, [each.elbo for each in expected], rtol=1e-9, atol=1e-9 * case.scale)
    counts = (case.weights @ expected[-1].responsibilities)[: case.n_components]
    np.testing.assert_allclose(found.counts, counts, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("budget", [None, 40])
def test_opened_nodes_are_those_of_the_oracle(budget: int | None) -> None:
    """Gains weigh the rows of a node by their masses, and a budget is spent on the largest gains times mass."""
    case = make_case(8, n=400, dimension=2, likelihood="gaussian", process="nested")
    weights = np.random.default_rng(8).choice([0.01, 5.0], p=[0.8, 0.2], size=400)
    case = replaced(case, weights=weights, responsibilities=np.eye(4)[np.digitize(case.rows[:, 0], [-2.0, 0.0, 2.0])])
    order = engines.order_by_size(weights @ case.responsibilities, case.mixture)
    state = variational.global_step(case.rows, case.responsibilities[:, order], case.mixture, weights)
    scores = variational.local_scores(case.rows, case.mixture, state)
    unit = nodes.units_of_columns(case.rows, weights=weights)
    settings = least("gaussian", 2), 0.002, budget or math.inf
    # Nodes of at most 32 rows are judged by all of them.
    first = nodes.frontier(case.rows / unit, 4, settings[0])
    expected, others = (
        nodes.open_by_gain(case.rows / unit, first, scores, masses, *settings) for masses in (weights, np.ones(400))
    )
    units = sb.KdTree(depth=4, split="axis", tolerance=settings[1], budget=budget, refine=False)
    found = fit_from(case, dataclasses.replace(passes(1), units=units))
    assert found.history[0].n_units == len(expected)
    bound = nodes.fit_tied(case.rows, case.responsibilities, case.mixture, expected, 1, weights=weights)[0].elbo
    assert found.history[0].elbo == pytest.approx(bound, rel=1e-9)
    wrong = nodes.fit_tied(case.rows, case.responsibilities, case.mixture, others, 1, weights=weights)[0].elbo
    assert wrong != pytest.approx(bound, rel=1e-6)


@every_one_of_all_columns
@pytest.mark.one_in(3)
def test_nodes_of_many_rows(likelihood: str) -> None:
    """Sums over a node of more rows than one task reads are those of all rows; its bound is at most that of rows."""
    case = make_case(9, n=5000, dimension=2, n_components=3, likelihood=likelihood, process="nested", weighted=True)
    # The blocks of a node differ, as where rows come in the order of time.
    order = np.argsort(case.rows[:, 0], kind="stable")
    case = replaced(case, rows=case.rows[order], weights=case.weights[order])
    one = [np.arange(5000)]
    expected = nodes.fit_tied(case.rows, case.responsibilities, case.mixture, one, 2, weights=case.weights)
    units = sb.KdTree(depth=0, split="axis", tolerance=1e300, refine=False)
    found = fit_from(case, dataclasses.replace(passes(2), units=units))
    assert [record.n_units for record in found.history] == [1, 1]
    assert found.elbo == pytest.approx(expected[-1].elbo, rel=1e-9)
    assert found.elbo <= found.evaluate(case.rows, sample_weight=case.weights) + 1e-9 * abs(found.elbo)


@every_one_of_all_columns
@every_process
@pytest.mark.one_in(3)
def test_an_open_tree_is_its_rows(likelihood: str, process: str) -> None:
    """With every node open, passes equal passes over rows."""
    case = make_case(5, n=70, likelihood=likelihood, process=process, weighted=True)
    expected = engines.fit_full(case.rows, case.responsibilities, case.mixture, 4, 2, case.weights)[1:]
    found = fit_from(case, dataclasses.replace(passes(4, 2), units=sb.KdTree(depth=30, refine=False)))
    assert found.history[0].n_units == 70
    bounds = [record.elbo for record in found.history]
    np.testing.assert_allclose(bounds, [each.elbo for each in expected], rtol=1e-9, atol=1e-9 * case.scale)


@pytest.mark.parametrize("objective", ["map", "ml"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@every_one_of_all_columns
def test_an_open_tree_is_its_rows_under_every_objective(likelihood: str, dtype: type, objective: Any) -> None:
    case = make_case(6, n=60, likelihood=likelihood, process="finite", weighted=True, with_mode=True, concentration=8.0)
    algorithm = sb.Full(objective=objective, sparsity=2, margin=None, max_passes=4, tol=0.0)
    case = replaced(case, rows=case.rows.astype(dtype))
    flat = fit_from(case, algorithm)
    found = fit_from(case, dataclasses.replace(algorithm, units=sb.KdTree(depth=30, refine=False)))
    digits = 1e-9 if dtype == np.float64 else 1e-5
    for one, other in zip(flat.history, found.history, strict=True):
        assert one.elbo == pytest.approx(other.elbo, rel=digits, abs=digits * case.scale)


@given(
    n=st.integers(4, 60),
    dimension=st.integers(1, 4),
    seed=st.integers(0, 1000),
    depth=st.integers(0, 6),
    split=st.sampled_from(["axis", "principal"]),
    rule=st.sampled_from(["gain", "responsibility"]),
    tail=st.booleans(),
    batches=st.integers(1, 4),
)
def test_the_bound_never_falls(
    n: int, dimension: int, seed: int, depth: int, split: Any, rule: Any, tail: bool, batches: int
) -> None:
    """Passes, opened nodes and moves never lower the bound, which is at most that of the rows."""
    rows = clusters(n + 2, dimension, seed=seed)
    process = sb.DirichletProcess(truncation="tail" if tail else "nested")
    model = sb.Mixture(likelihood=sb.Gaussian(prior="rule"), process=process)
    units = tree(depth=depth, split=split, rule=rule, tolerance=0.0, expand_every=1)
    algorithm = sb.Memoized(batches=min(batches, n), moves=USUAL, margin=None, max_passes=12)
    found = fit(rows, units, algorithm, model=model, seed=seed)
    objectives = np.array([record.objective for record in found.history])
    assert (np.diff(objectives) >= -1e-8 * (1 + np.abs(objectives[1:]))).all()
    sizes = np.array([record.n_units for record in found.history])
    assert (np.diff(sizes) >= 0).all()
    assert sizes[-1] <= n + 2
    assert found.evaluate(rows) >= found.elbo - 1e-8 * (1 + abs(found.elbo))


@pytest.mark.parametrize(
    ("algorithm", "dtype"),
    [
        (sb.Full(moves=USUAL), np.float32),
        (sb.Memoized(batches=3, moves=USUAL), np.float64),
        pytest.param(sb.Full(moves=USUAL), np.float64, marks=pytest.mark.slow),
        pytest.param(sb.Memoized(batches=3, moves=USUAL), np.float32, marks=pytest.mark.slow),
    ],
    ids=["full-float32", "memo-float64", "full-float64", "memo-float32"],
)
@pytest.mark.one_in(4)
def test_refining_ends_with_rows(algorithm: Any, dtype: type) -> None:
    """First few nodes, then all rows, and at the end a bound as good as that of rows alone from the same start."""
    rows = clusters(20_000, 2).astype(dtype)
    found, flat = fit(rows, sb.KdTree(), algorithm), fit(rows, None, algorithm)
    sizes = [record.n_units for record in found.history]
    assert sizes[0] < 1000
    assert sizes[-1] == 20_000
    assert found.stop_reason is sb.StopReason.CONVERGED
    assert found.n_components == flat.n_components == 4
    assert found.objective >= flat.objective - 1e-6 * abs(flat.objective)


@pytest.mark.slow
def test_nothing_is_left_to_open_at_the_end() -> None:
    """A fit that has converged on nodes has no node worth opening: another round leaves it as it is."""
    rows = clusters(8000, 2)
    found = fit(rows, tree())
    assert found.stop_reason is sb.StopReason.CONVERGED
    assert found.history[-1].n_units < 2000
    flat = fit(rows, None)
    assert 0.0 <= flat.elbo - found.elbo < 0.02 * len(rows)
    finer = fit(rows, tree(tolerance=1e-3))
    assert finer.history[-1].n_units > found.history[-1].n_units


def test_a_budget_limits_the_units() -> None:
    found = fit(clusters(20_000, 2), tree(budget=500, tolerance=0.0))
    assert 256 < found.history[-1].n_units <= 500
    assert found.stop_reason is sb.StopReason.CONVERGED


def test_the_last_pass_allowed_is_no_convergence() -> None:
    """A fit with nodes worth opening has not converged, even if nothing else is left to gain."""
    found = fit(clusters(3000), tree(tolerance=0.0), sb.Full(max_passes=2))
    assert found.stop_reason is sb.StopReason.MAX_PASSES
    assert len(found.history) == 2


@pytest.mark.parametrize(("max_passes", "on_nodes"), [(1, 0), (2, 1), (4, 3), (7, 5), (20, 15)])
@pytest.mark.one_in(5)
def test_refining_comes_before_passes_run_out(max_passes: int, on_nodes: int) -> None:
    """At least the last quarter of the passes is over rows."""
    rows = clusters(17_000, 2, separation=0.5)
    found = fit(rows, sb.KdTree(tolerance=1e300), sb.Full(max_passes=max_passes, tol=0.0))
    sizes = [record.n_units for record in found.history]
    assert all(size < 17_000 for size in sizes[:on_nodes])
    assert sizes[on_nodes:] == [17_000] * (max_passes - on_nodes)


@pytest.mark.parametrize("algorithm", [sb.Full(moves=USUAL), sb.Memoized(batches=2, moves=USUAL)], ids=["full", "memo"])
@pytest.mark.one_in(2)
def test_few_rows_are_units_from_the_start(algorithm: Any) -> None:
    """With few rows a tree saves nothing: the fit equals one without a tree, to the bit."""
    rows = clusters(3000, 3, separation=1.5)
    found, flat = fit(rows, sb.KdTree(), algorithm), fit(rows, None, algorithm)
    assert visible_bits(found, rows[:50]) == visible_bits(flat, rows[:50])


@pytest.mark.slow
def test_nodes_are_opened_for_moves() -> None:
    """No rule opens nodes in which one component has all rows, so before the end all are opened once for births."""
    rows = clusters(8000, 2, k=8, separation=8.0)
    assert fit(rows, None).n_components == 8
    for depth in (1, 2, 6):
        found = fit(rows, tree(depth=depth))
        assert found.stop_reason is sb.StopReason.CONVERGED
        assert found.n_components == 8


def test_nodes_are_not_opened_without_moves() -> None:
    found = fit(clusters(20_000, 2), tree(depth=1), sb.Full(), n_components=1)
    assert {record.n_units for record in found.history} == {2}


@pytest.mark.parametrize("likelihood", [sb.Multinomial(), sb.Poisson()])
@pytest.mark.parametrize(("n", "seed"), [(1600, 2), (8000, 1)])
@pytest.mark.one_in(2)
def test_a_few_rows_of_another_cluster_are_seen(n: int, seed: int, likelihood: Any) -> None:
    """Before a fit ends 512 rows of a node are looked at; 32 miss what is worth 0.015 and 0.15 nats a row here."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(12, 0.3), size=4)
    rows = np.array([rng.multinomial(80, shares[each % 4]) for each in range(n)], dtype=float)
    model = sb.Mixture(likelihood=likelihood)
    found = fit(rows, tree(depth=4, tolerance=1e-3), sb.Full(moves=USUAL, max_passes=300), model=model)
    assert found.stop_reason is sb.StopReason.CONVERGED
    assert found.history[-1].n_units < n / 4
    assert abs(found.evaluate(rows) - found.elbo) / n <= 1e-3


def after(stop: int) -> Any:
    """Return a callback that ends a fit after this many passes."""
    return lambda record: record.index + 1 == stop


@pytest.mark.parametrize("rule", ["gain", "responsibility"])
@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.slow
def test_a_stopped_fit_goes_on(rule: Any, refine: bool, tmp_path: Path) -> None:
    """A fit stopped after any pass continues with the frontier of the checkpoint to the same bits."""
    # With fewer rows, a fit that ends on rows has no tree.
    rows = clusters(17_000 if refine else 3000, 3, seed=4)
    units = sb.KdTree(rule=rule, tolerance=0.02, expand_every=2, refine=refine)
    algorithm = sb.Memoized(batches=3, moves=USUAL, max_passes=8 if refine else 14)
    whole = fit(rows, units, algorithm)
    stopped = sb.Checkpoint(tmp_path / "stopped", every_seconds=0)
    for stop in range(1, len(whole.history)):
        # One pass more than the last time; a copy goes on to the end.
        fit(rows, units, algorithm, checkpoint=stopped, callbacks=[after(stop)])
        checkpoint = sb.Checkpoint(shutil.copy(stopped.path, tmp_path / f"{stop}"), every_seconds=0)
        found = fit(rows, units, algorithm, checkpoint=checkpoint)
        assert visible_bits(found, rows[:50]) == visible_bits(whole, rows[:50])
        sizes = [[(record.n_units, record.elbo) for record in each.history] for each in (found, whole)]
        assert sizes[0] == sizes[1] or repr(sizes[0]) == repr(sizes[1])
    other = sb.Checkpoint(tmp_path / "1", every_seconds=0)
    with pytest.raises(sb.CheckpointError, match="units"):
        fit(rows, None, algorithm, checkpoint=other)


@pytest.mark.parametrize("split", ["axis", "principal"])
@pytest.mark.one_in(2)
def test_threads_change_nothing(split: Any) -> None:
    rows = clusters(12_000, 3, seed=2)
    one, three = (fit(rows, tree(split=split), threads=threads) for threads in (1, 3))
    assert visible_bits(one, rows[:50]) == visible_bits(three, rows[:50])


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.slow
def test_blocks_and_memory_maps_are_rows_in_memory(refine: bool, tmp_path: Path) -> None:
    rows = clusters(4000, 3, seed=6)
    algorithm = sb.Memoized(batches=3, shuffle=False, moves=USUAL)
    units = sb.KdTree(refine=refine)
    expected = fit(rows, units, algorithm)
    streamed = fit(lambda: iter([rows[:1800], rows[1800:]]), units, algorithm)
    np.save(tmp_path / "rows.npy", rows)
    mapped = fit(np.load(tmp_path / "rows.npy", mmap_mode="r"), units, algorithm)
    for found in (streamed, mapped):
        assert visible_bits(found, rows[:50]) == visible_bits(expected, rows[:50])
        assert [record.n_units for record in found.history] == [record.n_units for record in expected.history]


def test_weights_are_repetitions() -> None:
    """A row of weight 2 equals two rows in one node; rows of weight 0 have no effect."""
    rows = clusters(400, 2)
    weights = np.random.default_rng(0).choice([0.0, 1.0, 3.0], size=400)
    repeated = np.repeat(rows, weights.astype(int), axis=0)
    labels = (rows[:, 0] > 0).astype(int)
    algorithm = sb.Full(max_passes=1, sparsity=None, margin=None)
    model = sb.Mixture(likelihood=sb.Gaussian(mean=[0.0, 0.0], mean_precision=0.1, dof=4.0, scale=np.eye(2)))
    one = fit(rows, tree(depth=30), algorithm, model=model, sample_weight=weights, init=labels)
    two = fit(repeated, tree(depth=30), algorithm, model=model, init=np.repeat(labels, weights.astype(int)))
    assert one.elbo == pytest.approx(two.elbo, rel=1e-9)


MOVES: dict[str, tuple[Any, int]] = {"birth": (sb.Birth(), 1), "merge": (sb.Merge(), 7), "delete": (sb.Delete(), 7)}


@pytest.mark.parametrize("kind", MOVES)
@pytest.mark.parametrize("batches", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("likelihood", [sb.Gaussian(prior="rule"), sb.DiagonalGaussian(prior="rule")])
def test_moves_gain_what_they_say(kind: str, batches: int, dtype: type, likelihood: Any) -> None:
    """The bound of a pass with a move minus that of the pass without it equals the predicted gain."""
    move, k = MOVES[kind]
    rows = clusters(3000, 2, k=3, separation=4.0).astype(dtype)
    labels = np.random.default_rng(1).integers(k, size=3000) if kind == "delete" else (rows[:, 0] * 2).astype(int) % k
    model, units = sb.Mixture(likelihood=likelihood), sb.KdTree(depth=6, refine=False)
    algorithm = sb.Memoized(batches=batches, max_passes=1, margin=None, sparsity=None)
    with_move, without = (
        fit(rows, units, dataclasses.replace(algorithm, moves=moves), model=model, init=labels)
        for moves in ((move,), ())
    )
    (report,) = with_move.history[0].moves
    assert with_move.history[0].n_units < 3000
    assert report.accepted > 0
    assert with_move.elbo - without.elbo == pytest.approx(report.gain, rel=1e-6, abs=1e-6)
    # What batches remember is what nodes contribute: the next pass begins from it and does not fall.
    longer = dataclasses.replace(algorithm, max_passes=2)
    assert fit(rows, units, longer, model=model, init=with_move).elbo >= with_move.elbo - 1e-4 * batches


DEGENERATE = {
    "all equal": np.ones((50, 2)),
    "one constant column": np.column_stack([np.arange(60.0), np.full(60, 3.0)]),
    "two values": np.repeat([[0.0, 1.0], [5.0, -1.0]], 40, axis=0),
    "huge offsets": clusters(200) + 1e8,
    "far apart": np.concatenate([clusters(100), clusters(100) + 1e7]),
    "two rows": np.array([[0.0, 1.0], [2.0, 3.0]]),
}


@pytest.mark.filterwarnings("ignore::stickbreak.SupportWarning")
@pytest.mark.parametrize("rows", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize("settings", [{}, {"split": "principal"}, {"rule": "responsibility"}, {"refine": True}])
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.one_in(2)
def test_degenerate_data(rows: Array, settings: dict[str, Any], batches: int) -> None:
    found = fit(rows, tree(tolerance=0.0, **settings), sb.Memoized(batches=batches, moves=USUAL))
    assert np.isfinite(found.elbo)
    assert found.counts.sum() == pytest.approx(len(rows))
    if settings.get("rule") != "responsibility" and "refine" not in settings and len(np.unique(rows, axis=0)) == 1:
        # Equal rows gain nothing.
        assert len({record.n_units for record in found.history}) == 1


def test_one_row_a_batch() -> None:
    rows = clusters(12)
    found = fit(rows, sb.KdTree(), sb.Memoized(batches=12, moves=USUAL))
    assert np.isfinite(found.elbo)
    assert {record.n_units for record in found.history} == {12}


@pytest.mark.parametrize("split", ["axis", "principal"])
@pytest.mark.slow
def test_many_columns(split: Any) -> None:
    rows = clusters(800, 256, k=3)
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    found = fit(rows, tree(split=split, depth=2, budget=200), sb.Full(moves=USUAL, max_passes=40), model=model)
    assert np.isfinite(found.elbo)
    # Cuts across single columns hardly part clusters there.
    assert found.n_components == 3 or split == "axis"
    assert found.history[-1].n_units <= 200


@pytest.mark.parametrize(("rule", "tolerance"), [("gain", 0.01), ("responsibility", 0.1)])
def test_the_accelerated_algorithm_of_the_paper(rule: Any, tolerance: float) -> None:
    """Splits on nodes under the infinite tail, by both rules: the clusters of rows and a free-energy ratio near one."""
    rows = clusters(20_000, 2, k=6, separation=10.0)
    process = sb.DirichletProcess(truncation="tail")
    model = sb.Mixture(likelihood=sb.Gaussian(prior="rule"), process=process)
    units = sb.KdTree(rule=rule, tolerance=tolerance, split="axis", refine=False)
    algorithm = sb.Full(sparsity=None, margin=None, moves=(sb.Split(),))
    found, flat = (fit(rows, choice, algorithm, model=model) for choice in (units, None))
    assert found.bound == "tail"
    assert found.elbo <= flat.elbo
    assert (found.counts > 1).sum() == (flat.counts > 1).sum() == 6
    assert 1 + (flat.elbo - found.elbo) / abs(flat.elbo) < 1.001
    assert found.history[-1].n_units < 2000


@pytest.mark.slow
def test_a_start_of_many_components_is_not_lost() -> None:
    """Nodes too coarse for the components of a start would merge them, so they are opened before the first pass."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((17_000, 6)) * rng.gamma(1.0, size=(17_000, 1))
    algorithm = sb.Full(max_passes=60)
    found, flat = (fit(rows, units, algorithm, n_components=8) for units in (sb.KdTree(), None))
    assert found.objective >= flat.objective - 1e-3 * abs(flat.objective)


@pytest.mark.slow
def test_units_that_a_trial_decides() -> None:
    """Two clear clusters in two columns take a tree; noise in many columns does not."""
    easy = fit(clusters(20_000, 2, k=2, separation=10.0), "auto")
    assert easy.history[0].n_units < 1000
    assert easy.history[-1].n_units == 20_000
    # Nodes that are opened for moves do not count: the fit to all rows ends on rows.
    assert fit(clusters(20_000, 2, k=8, separation=8.0), "auto").history[0].n_units < 1000
    noise = np.random.default_rng(0).standard_normal((17_000, 6)) * np.random.default_rng(1).gamma(
        1.0, size=(17_000, 1)
    )
    hard = fit(noise, "auto", sb.Full(max_passes=2), n_components=8)
    assert hard.history[0].n_units == 17_000
    few = fit(clusters(500), "auto")
    assert few.history[0].n_units == 500


REFUSED: dict[str, tuple[Any, Any, str]] = {
    "stochastic": (clusters(50), {"algorithm": sb.Stochastic(10)}, "Stochastic"),
    "missing": (np.where(clusters(50) > 8, np.nan, clusters(50)), {"missing": "marginalize"}, "marginalize"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_no_tree_is_refused_by_name(case: str) -> None:
    rows, options, word = REFUSED[case]
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    with pytest.raises(sb.NotSupported, match=word) as caught:
        fit(rows, sb.KdTree(), options.pop("algorithm", sb.Full()), model=model, **options)
    assert caught.value.argument == "units"


def test_sparse_rows_and_documents_have_no_tree() -> None:
    from scipy import sparse

    counts = sparse.csr_array(np.random.default_rng(0).poisson(0.3, size=(40, 6)).astype(float))
    for model in (sb.Mixture(likelihood=sb.Poisson()), sb.TopicModel(process=sb.LatentDirichlet(n_topics=2))):
        with pytest.raises(sb.NotSupported) as caught:
            sb.fit(model, counts, sb.Full(units=sb.KdTree()), progress=False)
        assert caught.value.argument == "units"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("depth", -1),
        ("depth", 31),
        ("depth", 1.5),
        ("expand_every", 0),
        ("rule", "best"),
        ("tolerance", -0.1),
        ("tolerance", math.nan),
        ("budget", 0),
        ("split", "random"),
        ("refine", "yes"),
    ],
)
def test_arguments_out_of_range(name: str, value: Any) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        sb.KdTree(**{name: value})
    assert caught.value.argument == name


def test_stochastic_refuses_a_tree_when_it_is_made() -> None:
    with pytest.raises(sb.NotSupported) as caught:
        sb.Stochastic(10, units=sb.KdTree())
    assert caught.value.argument == "units"
    assert sb.Stochastic(10, units="auto").units == "auto"


@pytest.mark.parametrize("value", ["tree", 3, True, sb.Full()])
def test_units_that_are_none(value: Any) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        sb.Full(units=value)
    assert caught.value.argument == "units"


def test_the_estimator_takes_units() -> None:
    from stickbreak.sklearn import BayesianMixture

    rows = clusters(4000)
    for options in ({}, {"n_components": 4}, {"algorithm": sb.Full(moves=USUAL)}):
        found = BayesianMixture(units=tree(), random_state=0, **options).fit(rows)  # type: ignore[arg-type]
        assert found.fit_.history[0].n_units < 1000


def test_a_case_keeps_its_rows() -> None:
    """Nodes are built from centred rows: shifted rows have the same units."""
    case = make_case(8, n=80)
    shifted = replaced(case, rows=case.rows + 2.0**10)
    one, two = (
        fit(each.rows, tree(tolerance=0.0), sb.Full(max_passes=8), init=case.responsibilities)
        for each in (case, shifted)
    )
    assert [record.n_units for record in one.history] == [record.n_units for record in two.history]
    assert one.elbo == pytest.approx(two.elbo, rel=1e-6)
