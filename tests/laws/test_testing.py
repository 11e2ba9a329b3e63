"""`stickbreak.testing` itself: strategies respect their arguments, and every check finds its violation."""

import dataclasses
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

import stickbreak as sb
from stickbreak import testing
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.processes import Process
from stickbreak.run.moves import Move
from stickbreak.run.samplers import Sampler
from stickbreak.testing import generators, laws, laws_of_draws

ROWS = generators.clustered_rows(np.random.default_rng(0), 120, 2, 3)
MODEL = sb.Mixture(likelihood=sb.Gaussian())


# Strategies


def some(strategy: st.SearchStrategy[Any], shows: Callable[[Any], bool]) -> Any:
    """Return a value with this property, not the simplest one: most of the time of `find` would go into that."""
    return find(strategy, shows, settings=settings(phases=[Phase.generate], max_examples=2000))


@pytest.mark.parametrize("kind", Likelihood.__subclasses__())
def test_every_likelihood_is_drawn_with_and_without_values(kind: type[Likelihood]) -> None:
    for filled in (True, False):
        likelihood = some(testing.likelihoods(3, filled=filled), lambda each: type(each) is kind)
        fields = [field.name for field in dataclasses.fields(kind) if field.default is None]
        # How the others are found is no value of the base measure, nor is where exposures are.
        optional = [name for name in fields if name not in ("prior", "resolution", "exposure")]
        assert {getattr(likelihood, name) is not None for name in optional} == ({filled} if optional else set())


@pytest.mark.parametrize("kind", [kind for kind in Process.__subclasses__() if "weights" in kind._entry["faces"]])
def test_every_process_is_drawn(kind: type[Process]) -> None:
    process = some(testing.processes(3), lambda each: type(each) is kind)
    assert getattr(process, "n_components", 3) == 3
    assert some(testing.models(2, n_components=3), lambda model: type(model.process) is kind)


@pytest.mark.parametrize(
    ("kind", "shows"),
    [
        ("duplicates", lambda X: len(np.unique(X, axis=0)) <= len(X) // 5 + 1),
        ("constant_columns", lambda X: (X[0] == X).all(axis=0).any()),
        ("collinear", lambda X: np.linalg.matrix_rank(X) == 1),
        ("outlier", lambda X: np.abs(X).max() > 100 * np.median(np.abs(X))),
        ("offset", lambda X: np.abs(X).min() > 100),
    ],
)
@given(data=st.data())
def test_kinds_of_rows(kind: str, shows: Callable[[np.ndarray], bool], data: st.DataObject) -> None:
    X = data.draw(testing.rows(30, 3, kinds=[kind], dtype="float64"))
    assert X.shape == (30, 3)
    assert shows(X)


@pytest.mark.parametrize(
    ("domain", "kind", "shows"),
    [
        ("counts", "clusters", lambda X: X.max() > 1),
        ("counts", "zero_rows", lambda X: (X == 0).all(axis=1).any()),
        ("counts", "zero_columns", lambda X: (X == 0).all(axis=0).any()),
        ("counts", "outlier", lambda X: (X == 0).all(axis=1).any() or X.max() >= 1000),
        ("counts", "large", lambda X: X.max() > 100),
        ("binary", "clusters", lambda X: set(np.unique(X)) == {0.0, 1.0}),
        ("binary", "zero_rows", lambda X: (X == 0).all(axis=1).any()),
        ("codes", "clusters", lambda X: X.max() < 4),
    ],
)
@given(data=st.data())
def test_kinds_of_counts(domain: str, kind: str, shows: Callable[[np.ndarray], bool], data: st.DataObject) -> None:
    X = data.draw(testing.rows(40, 3, domain=domain, kinds=[kind]))
    assert (X >= 0).all()
    np.testing.assert_array_equal(X, np.round(X))
    assert X.max() <= (1 if domain == "binary" else 2**24)
    assert shows(X)


@pytest.mark.parametrize(
    ("kind", "shows"),
    [
        (sb.SphericalGaussian, lambda each: each.base == "product" and each.mean_precision is not None),
        (sb.KnownCovarianceGaussian, lambda each: np.ndim(each.mean_precision) == 2),
        (sb.KnownCovarianceGaussian, lambda each: np.ndim(each.mean_precision) == 0),
        (sb.Multinomial, lambda each: not each.coefficient),
        (sb.DirichletProcess, lambda each: each.truncation == "tail"),
        (sb.DirichletProcess, lambda each: isinstance(each.concentration, sb.Gamma)),
        (sb.PitmanYor, lambda each: each.discount > 0.1),
    ],
)
def test_variants_are_drawn(kind: type, shows: Callable[[object], bool]) -> None:
    draw = testing.likelihoods(2, kinds=[kind]) if issubclass(kind, Likelihood) else testing.processes(kinds=[kind])
    assert some(draw, shows) is not None


@given(testing.rows(12, 2, domain="centred"))
def test_centred_rows_have_mean_zero(X: np.ndarray) -> None:
    assert X.dtype in (np.float32, np.float64)
    assert (np.abs(X.mean(axis=0, dtype=float)) <= 1e-6 * np.abs(X).max()).all()


@given(testing.sample_weights(9))
def test_some_weight_is_positive(weights: np.ndarray) -> None:
    assert weights.shape == (9,)
    assert (weights >= 0).all()
    assert weights.any()


def test_some_weights_are_zero() -> None:
    assert some(testing.sample_weights(9), lambda weights: (weights == 0).any()) is not None


@given(testing.problems(likelihoods=[sb.ZeroMeanGaussian], processes=[sb.FiniteDirichlet], filled=True, dimension=2))
def test_problems_are_what_was_asked_for(problem: testing.Problem) -> None:
    assert isinstance(problem.model.likelihood, sb.ZeroMeanGaussian)
    assert problem.model.likelihood.scale.shape == (2, 2)
    assert problem.model.process.n_components == problem.n_components <= len(problem.X)
    fit = sb.fit(problem.model, problem.X, problem.algorithm, **problem.options)
    assert fit.n_components == problem.n_components


@given(testing.problems(kinds=["constant_columns", "zero_rows"]))
def test_problems_have_the_kinds_that_their_likelihood_knows(problem: testing.Problem) -> None:
    zeros = bool((problem.X == 0).all(axis=1).any())
    constant = bool((problem.X[0] == problem.X).all(axis=0).any())
    counts = type(problem.model.likelihood)._domain in ("counts", "binary", "codes")
    assert constant or (counts and zeros)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: testing.rows(kinds=["dupplicates"]), "kinds"),
        (lambda: testing.rows(domain="complex"), "domain"),
        (lambda: testing.rows(0), "n"),
        (lambda: testing.likelihoods(0), "dimension"),
        (lambda: testing.likelihoods(2, kinds=[sb.FiniteDirichlet]), "kinds"),
        (lambda: testing.processes(0), "n_components"),
        (lambda: testing.problems(likelihoods=[sb.DirichletProcess]), "likelihoods"),
        (lambda: testing.problems(n=3, n_components=4), "n_components"),
        (lambda: testing.problems(kinds=["dupplicates"]), "kinds"),
        (lambda: testing.problems(likelihoods=[sb.Bernoulli], kinds=["collinear"]), "kinds"),
        (lambda: testing.sample_weights(5, zeros="no"), "zeros"),
        (lambda: testing.algorithms(n=5, n_components=0), "n_components"),
        (lambda: testing.algorithms(n=5, n_components=1, kinds=[sb.KdTree]), "kinds"),
        (lambda: testing.problems(moves="all"), "moves"),
        (lambda: testing.samplers(n=0), "n"),
        (lambda: testing.topic_models(n_topics=0), "n_topics"),
        (lambda: testing.documents(0, 3), "n"),
        (lambda: testing.documents(3, 1), "n_words"),
        (lambda: testing.check_permutation(MODEL, ROWS, sb.Memoized(batches=2)), "algorithm"),
    ],
)
def test_bad_arguments_are_named(call: Callable[[], object], argument: str) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        call()
    assert caught.value.argument == argument


@pytest.mark.parametrize("kind", Move.__subclasses__())
def test_every_move_is_drawn(kind: type[Move]) -> None:
    assert some(testing.moves(), lambda drawn: kind in map(type, drawn) and len(drawn) > 1)
    assert some(testing.problems(moves=True), lambda problem: kind in map(type, problem.algorithm.moves))


@pytest.mark.parametrize("kind", Sampler.__subclasses__())
def test_every_sampler_is_drawn(kind: type[Sampler]) -> None:
    assert some(testing.samplers(n=4), lambda sampler: type(sampler) is kind)


def test_every_algorithm_is_drawn() -> None:
    for kind in (sb.Full, sb.Memoized, sb.Stochastic):
        assert type(some(testing.algorithms(n=9, n_components=2, kinds=[kind]), lambda _: True)) is kind


NEW_LIKELIHOOD = """
    from dataclasses import KW_ONLY, dataclass
    from typing import ClassVar
    from hypothesis import find, settings, given
    import stickbreak as sb
    from stickbreak import testing
    from stickbreak.model.likelihoods import Likelihood

    @dataclass(frozen=True, eq=False, repr=False)
    class Newcomer(Likelihood):
        _name: ClassVar[str] = "ZeroMeanGaussian"
        _domain: ClassVar[str] = "centred"
        dof: float | None = None
        _: KW_ONLY
        scale: object = None

    assert find(testing.likelihoods(2), lambda each: isinstance(each, Newcomer)).dof is None

    @settings(max_examples=10, deadline=None, database=None)
    @given(testing.problems(likelihoods=[Newcomer]))
    def test(problem):
        assert isinstance(problem.model.likelihood, Newcomer)
        testing.check_laws(problem.model, problem.X, problem.algorithm, **problem.options)

    test()
"""


def test_a_new_likelihood_is_drawn_and_checked_unasked() -> None:
    """Runs in a separate process, because a registry entry cannot be removed."""
    script = textwrap.dedent(NEW_LIKELIHOOD)
    subprocess.run([sys.executable, "-c", script], check=True, timeout=300)


def test_without_hypothesis_the_extra_is_named() -> None:
    script = "import sys; sys.modules['hypothesis'] = None; import stickbreak.testing"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert run.returncode == 1
    assert "pip install 'stickbreak[testing]'" in run.stderr


# Checks


def test_sound_fits_pass() -> None:
    testing.check_laws(MODEL, ROWS, sb.Memoized(batches=3, sparsity=2, max_passes=4, tol=0.0), n_components=3)


def raised(check: Callable[..., None], **options: object) -> str:
    with pytest.raises(AssertionError) as caught:
        check(MODEL, ROWS, n_components=3, **options)
    return str(caught.value)


def test_a_falling_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = sb.Fit.history.fget
    monkeypatch.setattr(sb.Fit, "history", property(lambda fit: history(fit)[::-1]))
    message = raised(testing.check_monotone_bound)
    assert "the objective after pass" in message
    assert "allowed" in message
    assert "1e-06 of the terms of the bound" in message


def test_a_bound_that_is_no_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sb.Fit, "evaluate", lambda *_, **__: float("nan"))
    assert "is nan" in raised(testing.check_recomputed_elbo).replace("np.float64(nan)", "nan")


def test_a_wrong_evaluation_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = sb.Fit.evaluate
    for error in (-10.0, 10.0):
        monkeypatch.setattr(sb.Fit, "evaluate", lambda fit, *args, e=error, **kwds: evaluate(fit, *args, **kwds) + e)
        assert "should not be below" in raised(testing.check_recomputed_elbo)


def test_a_wrong_table_of_responsibilities_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that differs from the local step has another bound than one more pass."""
    monkeypatch.setattr(laws, "responsibilities_of", lambda fit, rows: np.full((len(rows), fit.n_components), 1 / 3))
    raised(testing.check_recomputed_elbo)


def test_a_summary_with_a_constant_in_it_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    summary_of = laws.summary_of

    def doctored(*args: object) -> dict[str, np.ndarray]:
        summary = summary_of(*args)
        return summary | {"entropies": summary["entropies"] + 1e-6}

    monkeypatch.setattr(laws, "summary_of", doctored)
    assert raised(testing.check_additive_summaries).startswith("entropies, summed over three parts of the rows, at [")


def test_an_infinite_summary_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinite summaries are found although infinities are additive."""
    summary_of = laws.summary_of

    def doctored(*args: object) -> dict[str, np.ndarray]:
        summary = summary_of(*args)
        return summary | {"pair_gaps": np.full_like(summary["pair_gaps"], np.inf)}

    monkeypatch.setattr(laws, "summary_of", doctored)
    assert "pair_gaps" in raised(testing.check_additive_summaries)


@pytest.mark.parametrize("name", ["log_predictive", "predict_proba"])
def test_answers_that_depend_on_the_neighbours_are_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    answer = getattr(sb.Fit, name)
    monkeypatch.setattr(
        sb.Fit, name, lambda fit, X: answer(fit, X) + 1e-6 * np.arange(len(X)).reshape(-1, *[1] * (name[0] == "p"))
    )
    assert f"Fit.{name} of permuted rows at [" in raised(testing.check_permutation)


def test_a_start_that_depends_on_the_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start with weights that do not move with the rows is found."""
    options = {"sample_weight": np.linspace(0.1, 3.0, len(ROWS))}
    testing.check_permutation(MODEL, ROWS, n_components=3, **options)
    run = laws.run
    monkeypatch.setattr(
        laws, "run", lambda *args, **kwds: run(*args, **kwds | {"sample_weight": options["sample_weight"]})
    )
    assert "the bound of the permuted rows" in raised(testing.check_permutation, **options)


def test_a_bit_that_depends_on_the_threads_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = laws.run

    def doctored(*args: object, threads: int | None, seed: int = 0, **kwds: object) -> sb.Fit:
        return run(*args, threads=threads, seed=seed + (threads == 3), **kwds)

    monkeypatch.setattr(laws, "run", doctored)
    message = raised(testing.check_determinism)
    assert "with threads=3 against threads=1" in message
    assert "the same seed gives the same bits" in message


def test_moves_that_promise_more_than_they_gain_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    history = sb.Fit.history.fget
    added = 0.0

    def doctored(fit: sb.Fit) -> list[sb.Record]:
        more = [dataclasses.replace(report, gain=report.gain + added) for report in one]
        return [dataclasses.replace(record, moves=[*record.moves, *more]) for record in history(fit)]

    one = sb.fit(MODEL, ROWS, sb.Memoized(moves=(sb.Birth(),), max_passes=3)).history[0].moves[:1]
    testing.check_gains(MODEL, ROWS)
    monkeypatch.setattr(sb.Fit, "history", property(doctored))
    added = 1e4
    assert "whose moves gain" in raised(testing.check_gains)
    added = -1e9
    assert "the gain of the moves of pass" in raised(testing.check_gains)


def test_a_tree_that_is_not_its_rows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laws, "KdTree", lambda **_: sb.KdTree(depth=0, expand_every=9, refine=False))
    assert "of an opened tree" in raised(testing.check_opened_tree)


FEW = ROWS[:6]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("partitions", lambda partitions: 1 + partitions, "first appearance"),
        ("log_joint", lambda joints: joints + 1e-3 * np.arange(joints.size).reshape(joints.shape), "drawn again"),
        ("log_joint", lambda joints: np.full_like(joints, np.nan), "is nan"),
        ("n_clusters", lambda numbers: numbers + 1, "n_clusters or largest_cluster"),
    ],
)
def test_unsound_draws_are_found(monkeypatch: pytest.MonkeyPatch, name: str, change: Any, said: str) -> None:
    declared = inspect.getattr_static(sb.Trace, name)
    value = declared.fget if isinstance(declared, property) else declared.func
    monkeypatch.setattr(sb.Trace, name, property(lambda trace: change(value(trace))))
    with pytest.raises(AssertionError, match=said):
        testing.check_draws(MODEL, FEW, sb.CollapsedGibbs())


def test_draws_that_depend_on_the_threads_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = laws_of_draws.sample

    def doctored(*args: Any, threads: int, seed: int, **kwds: Any) -> sb.Trace:
        return sample(*args, threads=threads, seed=seed + threads, **kwds)

    monkeypatch.setattr(laws_of_draws, "sample", doctored)
    with pytest.raises(AssertionError, match="with threads=2 against threads=1"):
        testing.check_draws(MODEL, FEW)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("topics", lambda topics: 1.01 * topics, "the sum of the topics"),
        ("counts", lambda counts: counts + 1.0, "the sum of the counts"),
        ("history", lambda history: history[::-1], "the objective after pass"),
    ],
)
def test_unsound_topics_are_found(monkeypatch: pytest.MonkeyPatch, name: str, change: Any, said: str) -> None:
    declared = inspect.getattr_static(sb.TopicFit, name)
    value = declared.fget if isinstance(declared, property) else declared.func
    counts = np.random.default_rng(1).poisson(3.0, size=(20, 6))
    model = sb.TopicModel(sb.LatentDirichlet(2))
    testing.check_topics(model, counts)
    monkeypatch.setattr(sb.TopicFit, name, property(lambda fit: change(value(fit))))
    with pytest.raises(AssertionError, match=said):
        testing.check_topics(model, counts)


def test_visible_bits_tell_fits_apart() -> None:
    one, other = (sb.fit(MODEL, ROWS, sb.Full(max_passes=2), n_components=3, seed=seed) for seed in (0, 1))
    assert testing.visible_bits(one, ROWS) != testing.visible_bits(other, ROWS)
