"""Bad input: class and argument of the error, which is raised before any work."""

import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import stickbreak as sb
from cases import visible_bits

ROWS = np.random.default_rng(0).standard_normal((30, 2))
MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
NAN, INFINITY = float("nan"), float("inf")

Maker = Callable[[], object]
Case = tuple[Maker, type[Exception], str]


def spoilt(value: float, dtype: type = np.float64) -> np.ndarray:
    rows = ROWS.astype(dtype)
    rows[17, 1] = value
    return rows


def with_entry(array: np.ndarray, value: float) -> np.ndarray:
    array = np.array(array, dtype=float)
    array[3] = value
    return array


SPECIFICATIONS: list[Case] = [
    (lambda: sb.Gaussian(mean_precision=0.0), sb.InvalidArgument, "mean_precision"),
    (lambda: sb.Gaussian(mean_precision=-1.0), sb.InvalidArgument, "mean_precision"),
    (lambda: sb.Gaussian(mean_precision=NAN), sb.InvalidArgument, "mean_precision"),
    (lambda: sb.Gaussian(mean_precision="much"), sb.InvalidType, "mean_precision"),
    (lambda: sb.Gaussian(mean_precision=[1.0, 2.0]), sb.InvalidArgument, "mean_precision"),
    (lambda: sb.Gaussian(dof=0.0), sb.InvalidArgument, "dof"),
    (lambda: sb.Gaussian(dof=INFINITY), sb.InvalidArgument, "dof"),
    (lambda: sb.Gaussian(dof=2.0, scale=np.eye(3)), sb.InvalidArgument, "dof"),
    (lambda: sb.Gaussian(mean=[[0.0, 0.0]]), sb.InvalidArgument, "mean"),
    (lambda: sb.Gaussian(mean=[0.0, NAN]), sb.InvalidArgument, "mean"),
    (lambda: sb.Gaussian(mean=["a", "b"]), sb.InvalidType, "mean"),
    (lambda: sb.Gaussian(scale=np.ones(3)), sb.InvalidArgument, "scale"),
    (lambda: sb.Gaussian(scale=np.ones((2, 3))), sb.InvalidArgument, "scale"),
    (lambda: sb.Gaussian(scale=-np.eye(2)), sb.InvalidArgument, "scale"),
    (lambda: sb.Gaussian(scale=np.ones((2, 2))), sb.InvalidArgument, "scale"),
    (lambda: sb.Gaussian(scale=[[1.0, 0.5], [0.0, 1.0]]), sb.InvalidArgument, "scale"),
    (lambda: sb.Gaussian(scale=[[1.0, NAN], [NAN, 1.0]]), sb.InvalidArgument, "scale"),
    (lambda: sb.ZeroMeanGaussian(dof=-3.0), sb.InvalidArgument, "dof"),
    (lambda: sb.ZeroMeanGaussian(dof=1.0, scale=np.eye(2)), sb.InvalidArgument, "dof"),
    (lambda: sb.ZeroMeanGaussian(scale=np.zeros((2, 2))), sb.InvalidArgument, "scale"),
    (lambda: sb.DirichletProcess(concentration=0.0), sb.InvalidArgument, "concentration"),
    (lambda: sb.DirichletProcess(concentration=-1.0), sb.InvalidArgument, "concentration"),
    (lambda: sb.DirichletProcess(concentration=NAN), sb.InvalidArgument, "concentration"),
    (lambda: sb.DirichletProcess(concentration=INFINITY), sb.InvalidArgument, "concentration"),
    (lambda: sb.DirichletProcess(concentration="1"), sb.InvalidType, "concentration"),
    (lambda: sb.DirichletProcess(concentration=None), sb.InvalidType, "concentration"),
    (lambda: sb.DirichletProcess(truncation="nest"), sb.InvalidArgument, "truncation"),
    (lambda: sb.DirichletProcess(truncation=3), sb.InvalidType, "truncation"),
    (lambda: sb.FiniteDirichlet(n_components=0), sb.InvalidArgument, "n_components"),
    (lambda: sb.FiniteDirichlet(n_components=-2), sb.InvalidArgument, "n_components"),
    (lambda: sb.FiniteDirichlet(n_components=2.5), sb.InvalidType, "n_components"),
    (lambda: sb.FiniteDirichlet(n_components=True), sb.InvalidType, "n_components"),
    (lambda: sb.FiniteDirichlet(n_components=3, concentration=0), sb.InvalidArgument, "concentration"),
    (lambda: sb.FiniteDirichlet(n_components=10**30), sb.InvalidArgument, "n_components"),
    (lambda: sb.FiniteDirichlet(n_components=2**32), sb.InvalidArgument, "n_components"),
    (lambda: sb.FiniteDirichlet(n_components=3, concentration=1e308), sb.InvalidArgument, "concentration"),
    (lambda: sb.MixtureOfFiniteMixtures(rate=1e5), sb.InvalidArgument, "rate"),
    (lambda: sb.MixtureOfFiniteMixtures(concentration=True), sb.InvalidType, "concentration"),
    (lambda: sb.PitmanYor(sb.Beta(1, 2), concentration=-0.5), sb.InvalidArgument, "concentration"),
    (lambda: sb.PitmanYor(sb.Beta), sb.InvalidType, "discount"),
    (lambda: sb.DirichletProcess(concentration=[1.0]), sb.InvalidArgument, "concentration"),
    (lambda: sb.DirichletProcess(concentration=1j), sb.InvalidType, "concentration"),
    (lambda: sb.Gaussian(mean_precision=5e-324), sb.InvalidArgument, "mean_precision"),
    (lambda: sb.Gaussian(scale="a"), sb.InvalidType, "scale"),
    (lambda: sb.Gaussian(scale=2.0), sb.InvalidArgument, "scale"),
    (lambda: sb.Gaussian(scale=np.eye(2) * 1j), sb.InvalidType, "scale"),
    (lambda: sb.Gaussian(scale=np.eye(2).astype(object)), sb.InvalidType, "scale"),
    (lambda: sb.Gaussian(mean=[0.0, 0.0, 0.0], scale=np.eye(2)), sb.InvalidArgument, "mean"),
    (lambda: sb.Gaussian(mean=[]), sb.InvalidArgument, "mean"),
    (lambda: sb.Mixture(likelihood=sb.Gaussian, process=sb.DirichletProcess()), sb.InvalidType, "likelihood"),
    (lambda: sb.Mixture(likelihood="gaussian", process=sb.DirichletProcess()), sb.InvalidType, "likelihood"),
    (lambda: sb.Mixture(likelihood=sb.Gaussian(), process=1.0), sb.InvalidType, "process"),
    (lambda: sb.Mixture(likelihood=sb.DirichletProcess(), process=sb.Gaussian()), sb.InvalidType, "likelihood"),
]

ALGORITHMS: list[Case] = [
    (lambda: sb.Full(sparsity=0), sb.InvalidArgument, "sparsity"),
    (lambda: sb.Full(sparsity=-1), sb.InvalidArgument, "sparsity"),
    (lambda: sb.Full(sparsity=2.0), sb.InvalidType, "sparsity"),
    (lambda: sb.Full(sparsity=True), sb.InvalidType, "sparsity"),
    (lambda: sb.Full(sparsity="all"), sb.InvalidArgument, "sparsity"),
    (lambda: sb.Full(max_passes=-1), sb.InvalidArgument, "max_passes"),
    (lambda: sb.Full(max_passes=1.5), sb.InvalidType, "max_passes"),
    (lambda: sb.Full(max_passes="many"), sb.InvalidType, "max_passes"),
    (lambda: sb.Full(tol=-1e-6), sb.InvalidArgument, "tol"),
    (lambda: sb.Full(tol=NAN), sb.InvalidArgument, "tol"),
    (lambda: sb.Full(tol=INFINITY), sb.InvalidArgument, "tol"),
    (lambda: sb.Full(tol="small"), sb.InvalidType, "tol"),
    (lambda: sb.Full(objective="posterior"), sb.InvalidArgument, "objective"),
    (lambda: sb.Full(objective=3), sb.InvalidType, "objective"),
    (lambda: sb.Full(margin=-1.0), sb.InvalidArgument, "margin"),
    (lambda: sb.Full(bounds_memory=-1), sb.InvalidArgument, "bounds_memory"),
    (lambda: sb.Full(bounds_memory="1 GB"), sb.InvalidType, "bounds_memory"),
    (lambda: sb.Memoized(shard_rows=0), sb.InvalidArgument, "shard_rows"),
    (lambda: sb.Memoized(shard_rows=2**32), sb.InvalidArgument, "shard_rows"),
    (lambda: sb.Memoized(shard_rows=1e5), sb.InvalidType, "shard_rows"),
    (lambda: sb.Full(moves="birth"), sb.InvalidType, "moves"),
    (lambda: sb.Full(moves=(object(),)), sb.InvalidType, "moves"),
    (lambda: sb.Full(moves=(sb.Birth,)), sb.InvalidType, "moves"),
    (lambda: sb.Full(moves=sb.Birth()), sb.InvalidType, "moves"),
    (lambda: sb.Memoized(moves=(sb.Merge(), sb.Birth(), sb.Merge())), sb.InvalidArgument, "moves"),
    (lambda: sb.Birth(adoption="never"), sb.InvalidArgument, "adoption"),
    (lambda: sb.Birth(max_subsample=3), sb.InvalidArgument, "max_subsample"),
    (lambda: sb.Birth(max_subsample=100.0), sb.InvalidType, "max_subsample"),
    (lambda: sb.Birth(threshold=1.0), sb.InvalidArgument, "threshold"),
    (lambda: sb.Birth(threshold=-0.1), sb.InvalidArgument, "threshold"),
    (lambda: sb.Birth(threshold=NAN), sb.InvalidArgument, "threshold"),
    (lambda: sb.Birth(threshold=-INFINITY), sb.InvalidArgument, "threshold"),
    (lambda: sb.Birth(threshold=10**400), sb.InvalidArgument, "threshold"),
    (lambda: sb.Birth(threshold="low"), sb.InvalidType, "threshold"),
    (lambda: sb.Birth(threshold=None), sb.InvalidType, "threshold"),
    (lambda: sb.Birth(threshold=True), sb.InvalidType, "threshold"),
    (lambda: sb.Birth(threshold=[0.5]), sb.InvalidType, "threshold"),
    (lambda: sb.Birth(threshold=np.array([0.5])), sb.InvalidType, "threshold"),
    (lambda: sb.Birth(fresh=1), sb.InvalidArgument, "fresh"),
    (lambda: sb.Birth(fresh=True), sb.InvalidType, "fresh"),
    (lambda: sb.Split(candidates=0), sb.InvalidArgument, "candidates"),
    (lambda: sb.Delete(candidates=0), sb.InvalidArgument, "candidates"),
    (lambda: sb.Delete(candidates="all"), sb.InvalidType, "candidates"),
    (lambda: sb.Memoized(batches=0), sb.InvalidArgument, "batches"),
    (lambda: sb.Memoized(batches=2.0), sb.InvalidType, "batches"),
    (lambda: sb.Memoized(batches="many"), sb.InvalidArgument, "batches"),
    (lambda: sb.Memoized(batches=None), sb.InvalidType, "batches"),
    (lambda: sb.Memoized(shuffle="yes"), sb.InvalidType, "shuffle"),
]


def with_process(process: Any) -> sb.Mixture:
    return sb.Mixture(likelihood=sb.Gaussian(), process=process)


NOT_SUPPORTED: list[Maker] = [
    lambda: sb.Stochastic(10, moves=(sb.Birth(),)),
    *(
        lambda move=move, model=model: run(algorithm=sb.Memoized(moves=(move,)), model=model)
        for move in (sb.Birth(), sb.Split(), sb.Merge(), sb.Delete())
        for model in (
            with_process(sb.DirichletProcess(truncation="stick")),
            with_process(sb.FiniteDirichlet(n_components=3)),
            sb.Mixture(likelihood=sb.SphericalGaussian(base="product")),
        )
    ),
    *(
        lambda objective=objective: run(algorithm=sb.Full(objective=objective, moves=(sb.Merge(),)), n_components=2)
        for objective in ("map", "ml")
    ),
    lambda: run(algorithm=sb.Full(objective="map"), model=with_process(sb.DirichletProcess(0.5))),
    lambda: run(algorithm=sb.Memoized(objective="ml"), model=with_process(sb.DirichletProcess(truncation="tail"))),
    lambda: sb.PitmanYor(0.5, truncation="tail"),
    lambda: run(model=sb.Mixture(sb.ZeroMeanGaussian()), missing="marginalize"),
    lambda: fitted().save("model.safetensors", memo=True),
]


def unreached(_: sb.Record) -> bool:
    raise AssertionError("a pass was made before the arguments had been checked")


def run(rows: Any = ROWS, algorithm: Any = None, model: Any = MODEL, **options: Any) -> sb.Fit:
    algorithm = sb.Full(max_passes=3) if algorithm is None else algorithm
    return sb.fit(model, rows, algorithm, **{"progress": False, "callbacks": [unreached]} | options)


def fitted(n_components: int = 2) -> sb.Fit:
    return sb.fit(MODEL, ROWS, sb.Full(max_passes=1), n_components=n_components, progress=False)


FINITE = sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(n_components=3))
OTHER = sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.DirichletProcess())
FIXED = sb.Mixture(likelihood=sb.ZeroMeanGaussian(scale=np.eye(2)), process=sb.DirichletProcess())

DATA: list[Case] = [
    (lambda: run(spoilt(NAN)), sb.InvalidArgument, "data"),
    (lambda: run(spoilt(INFINITY)), sb.InvalidArgument, "data"),
    (lambda: run(spoilt(-INFINITY)), sb.InvalidArgument, "data"),
    (lambda: run(spoilt(NAN, np.float32)), sb.InvalidArgument, "data"),
    (lambda: run(spoilt(INFINITY, np.float32), sb.Memoized(batches=4)), sb.InvalidArgument, "data"),
    (lambda: run(spoilt(NAN), init=np.zeros(30, int)), sb.InvalidArgument, "data"),
    (lambda: run(ROWS[:, 0]), sb.InvalidArgument, "data"),
    (lambda: run(ROWS[None]), sb.InvalidArgument, "data"),
    (lambda: run(ROWS[:0]), sb.InvalidArgument, "data"),
    (lambda: run(ROWS[:1]), sb.InvalidArgument, "data"),
    (lambda: run([]), sb.InvalidArgument, "data"),
    (lambda: run(1e154 * ROWS), sb.InvalidArgument, "data"),
    (lambda: run(1e-170 * ROWS), sb.InvalidArgument, "data"),
    (lambda: run((1e-40 * ROWS).astype(np.float32)), sb.InvalidArgument, "data"),
    (lambda: run(1e7 + ROWS, model=FIXED), sb.InvalidArgument, "data"),
    (lambda: run(ROWS[:, :0]), sb.InvalidArgument, "data"),
    (lambda: run(3.0), (sb.InvalidType, sb.InvalidArgument), "data"),
    (lambda: run(None), sb.InvalidType, "data"),
    (lambda: run("rows.csv"), sb.InvalidArgument, "data"),
    (lambda: run([[1.0, 2.0], [3.0]]), sb.InvalidType, "data"),
    (lambda: run(ROWS.astype(complex)), sb.InvalidType, "data"),
    (lambda: run(ROWS.astype(object)), sb.InvalidType, "data"),
    (lambda: run(ROWS.astype(str)), sb.InvalidType, "data"),
    (lambda: run(np.zeros((30, 2), "datetime64[s]")), sb.InvalidType, "data"),
    (lambda: run(sparse.csr_array(ROWS)), sb.InvalidType, "data"),
    (lambda: run(np.ma.masked_greater(ROWS, 1.0)), sb.InvalidType, "data"),
]

OPTIONS: list[Case] = [
    (lambda: run(model=sb.Gaussian()), sb.InvalidType, "model"),
    (lambda: run(model=sb.Mixture), sb.InvalidType, "model"),
    (lambda: run(algorithm="full"), sb.InvalidType, "algorithm"),
    (lambda: run(algorithm=sb.Full), sb.InvalidType, "algorithm"),
    (lambda: run(algorithm=sb.Full(sparsity=5), n_components=4), sb.InvalidArgument, "sparsity"),
    (lambda: run(algorithm=sb.Memoized(batches=31)), sb.InvalidArgument, "batches"),
    (lambda: run(n_components=0), sb.InvalidArgument, "n_components"),
    (lambda: run(n_components=31), sb.InvalidArgument, "n_components"),
    (lambda: run(n_components=2.0), sb.InvalidType, "n_components"),
    (lambda: run(n_components=True), sb.InvalidType, "n_components"),
    (lambda: run(model=FINITE, n_components=4), sb.InvalidArgument, "n_components"),
    (lambda: run(model=FINITE, rows=ROWS[:2]), sb.InvalidArgument, "n_components"),
    (lambda: run(init="kmeans"), sb.InvalidArgument, "init"),
    (lambda: run(init=None), sb.InvalidType, "init"),
    (lambda: run(init=np.zeros(29, int)), sb.InvalidArgument, "init"),
    (lambda: run(init=np.zeros(30)), sb.InvalidType, "init"),
    (lambda: run(init=with_entry(np.zeros(30), -1).astype(int)), sb.InvalidArgument, "init"),
    (lambda: run(init=np.arange(30), n_components=5), sb.InvalidArgument, "init"),
    (lambda: run(init=np.arange(30), model=FINITE), sb.InvalidArgument, "init"),
    (lambda: run(init=np.zeros((30, 2, 1))), sb.InvalidArgument, "init"),
    (lambda: run(init=np.arange(30) * 10**15), sb.InvalidArgument, "init"),
    (lambda: run(init=np.full(30, 2**63, np.uint64)), sb.InvalidArgument, "init"),
    (lambda: run(init=np.full((30, 40), 1 / 40)), sb.InvalidArgument, "init"),
    (lambda: run(init=fitted(n_components=3), rows=ROWS[:2]), sb.InvalidArgument, "init"),
    (lambda: run(init=3), sb.InvalidType, "init"),
    (lambda: run(init=np.full((30, 2), np.longdouble("1e4000"))), sb.InvalidArgument, "init"),
    (lambda: run(init=np.full((30, 2), 0.5 + 0j)), sb.InvalidType, "init"),
    (lambda: run(init=["a"] * 30), sb.InvalidType, "init"),
    (lambda: run(init=np.full((29, 2), 0.5)), sb.InvalidArgument, "init"),
    (lambda: run(init=np.ones((30, 0))), sb.InvalidArgument, "init"),
    (lambda: run(init=np.full((30, 2), 0.4)), sb.InvalidArgument, "init"),
    (lambda: run(init=np.tile([1.5, -0.5], (30, 1))), sb.InvalidArgument, "init"),
    (lambda: run(init=with_entry(np.full((30, 2), 0.5), NAN)), sb.InvalidArgument, "init"),
    (lambda: run(init=np.full((30, 2), 0.5), n_components=3), sb.InvalidArgument, "n_components"),
    (lambda: run(init=np.full((30, 2), 0.5), model=FINITE), sb.InvalidArgument, "init"),
    (lambda: run(init=fitted(), rows=ROWS[:, :1]), sb.InvalidArgument, "init"),
    (lambda: run(init=fitted(), model=OTHER), sb.InvalidArgument, "init"),
    (lambda: run(init=fitted(3), rows=ROWS + 1e12), sb.InvalidArgument, "init"),
    (lambda: run(callbacks=np.array(2.0)), sb.InvalidType, "callbacks"),
    (lambda: run(n_components=np.timedelta64(3, "s")), sb.InvalidType, "n_components"),
    (lambda: run(n_init=0), sb.InvalidArgument, "n_init"),
    (lambda: run(n_init="3"), sb.InvalidType, "n_init"),
    (lambda: run(seed=-1), sb.InvalidArgument, "seed"),
    (lambda: run(seed=2**64), sb.InvalidArgument, "seed"),
    (lambda: run(seed=0.5), sb.InvalidType, "seed"),
    (lambda: run(seed=None), sb.InvalidType, "seed"),
    (lambda: run(threads=0), sb.InvalidArgument, "threads"),
    (lambda: run(threads=1.0), sb.InvalidType, "threads"),
    (lambda: run(sample_weight=np.ones(29)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.ones((30, 1))), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=with_entry(np.ones(30), -1.0)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=with_entry(np.ones(30), NAN)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=with_entry(np.ones(30), INFINITY)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.zeros(30)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.full(30, 1e11)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.full(30, 1e307)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.full(30, 1e308)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.full(30, 1e300)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.full(30, 5e-324)), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.full(30, np.longdouble("1e4000"))), sb.InvalidArgument, "sample_weight"),
    (lambda: run(sample_weight=np.full(30, 1j)), sb.InvalidType, "sample_weight"),
    (lambda: run(missing="erro"), sb.InvalidArgument, "missing"),
    (lambda: run(sample_weight=["heavy"] * 30), sb.InvalidType, "sample_weight"),
    (lambda: run(missing=None), sb.InvalidType, "missing"),
    (lambda: run(progress="yes"), sb.InvalidType, "progress"),
    (lambda: run(callbacks=unreached), sb.InvalidType, "callbacks"),
    (lambda: run(callbacks=[3]), sb.InvalidType, "callbacks"),
    (lambda: run(callbacks=None), sb.InvalidType, "callbacks"),
    (lambda: run(model=mixture_of(mean=[0.0, 0.0, 0.0])), sb.InvalidArgument, "mean"),
    (lambda: run(model=mixture_of(scale=np.eye(3))), sb.InvalidArgument, "scale"),
    (lambda: run(model=mixture_of(scale=1e-100 * np.eye(2))), sb.InvalidArgument, "scale"),
    (lambda: run(model=mixture_of(mean=[1e10, 0.0])), sb.InvalidArgument, "mean"),
    (lambda: run(model=mixture_of(dof=1.0)), sb.InvalidArgument, "dof"),
]

QUESTIONS: list[Case] = [
    (lambda: fitted().predict(ROWS[:, :1]), sb.InvalidArgument, "X"),
    (lambda: fitted().predict(ROWS[0]), sb.InvalidArgument, "X"),
    (lambda: fitted().predict(ROWS.astype(object)), sb.InvalidType, "X"),
    (lambda: fitted().predict(ROWS, threads=0), sb.InvalidArgument, "threads"),
    (lambda: fitted().evaluate(ROWS, sample_weight=-np.ones(30)), sb.InvalidArgument, "sample_weight"),
    (lambda: fitted().sample(10**30), sb.InvalidArgument, "n"),
    (lambda: sb.Fit(3), sb.InvalidType, "state"),
    (lambda: fitted().predict(spoilt(NAN)), sb.InvalidArgument, "X"),
    (lambda: fitted().predict_proba(spoilt(INFINITY)), sb.InvalidArgument, "X"),
    (lambda: fitted().predict_proba(ROWS, sparse="csr"), sb.InvalidType, "sparse"),
    (lambda: fitted().log_predictive(ROWS[0]), sb.InvalidArgument, "X"),
    (lambda: fitted().log_predictive("rows"), sb.InvalidType, "X"),
    (lambda: fitted().evaluate(np.hstack([ROWS, ROWS])), sb.InvalidArgument, "X"),
    (lambda: fitted().evaluate(spoilt(NAN, np.float32)), sb.InvalidArgument, "X"),
    (lambda: fitted().evaluate(ROWS, sample_weight=np.ones(3)), sb.InvalidArgument, "sample_weight"),
    (lambda: fitted().sample(-1), sb.InvalidArgument, "n"),
    (lambda: fitted().sample(2.5), sb.InvalidType, "n"),
    (lambda: fitted().sample(3, seed=-5), sb.InvalidArgument, "seed"),
    (lambda: fitted().save(3), sb.InvalidType, "path"),
    (lambda: sb.load(None), sb.InvalidType, "path"),
    (lambda: fitted().save(""), sb.InvalidArgument, "path"),
    (lambda: sb.load(""), sb.InvalidArgument, "path"),
    (lambda: sb.Checkpoint(""), sb.InvalidArgument, "path"),
    (lambda: sb.fit(fitted().model, ""), sb.InvalidArgument, "data"),
]


def mixture_of(**parameters: Any) -> sb.Mixture:
    return sb.Mixture(likelihood=sb.Gaussian(**parameters), process=sb.DirichletProcess())


@pytest.mark.parametrize(
    ("make", "kind", "argument"),
    [*SPECIFICATIONS, *ALGORITHMS, *DATA, *OPTIONS, *QUESTIONS],
)
def test_bad_input(make: Maker, kind: type[Exception], argument: str) -> None:
    """The error is of the right class, names the argument, and says what was found and what is allowed."""
    with pytest.raises(kind) as caught:
        make()
    error: Any = caught.value
    assert isinstance(error, sb.StickbreakError)
    assert error.argument == argument
    for words in (error.found, error.allowed):
        assert isinstance(words, str)
        assert words
        assert words in str(error)
    assert argument in str(error)


@pytest.mark.parametrize("make", NOT_SUPPORTED)
def test_not_supported(make: Maker) -> None:
    """Unsupported requests are refused with an alternative."""
    with pytest.raises(sb.NotSupported) as caught:
        make()
    error = caught.value
    assert (error.argument or "").isidentifier()
    assert error.found
    assert error.allowed
    assert re.fullmatch(f"{re.escape(error.found)} is not supported: .+; use {re.escape(error.allowed)}", str(error))


@pytest.mark.parametrize(
    ("algorithm", "model", "found", "allowed"),
    [
        (
            sb.Full(moves=(sb.Merge(),)),
            with_process(sb.FiniteDirichlet(n_components=3)),
            'a move with a process whose bound is "finite"',
            'moves=(), or a DirichletProcess with truncation="nested" or "tail"',
        ),
        (
            sb.Full(moves=(sb.Merge(),), objective="map"),
            MODEL,
            'a move with objective="map"',
            'moves=() or objective="variational"',
        ),
        (
            sb.Full(moves=(sb.Merge(),)),
            sb.Mixture(likelihood=sb.SphericalGaussian(base="product")),
            'a move with SphericalGaussian(base="product")',
            'moves=() or base="conjugate"',
        ),
    ],
)
def test_refused_moves_say_what_they_do_not_go_with(algorithm: Any, model: Any, found: str, allowed: str) -> None:
    with pytest.raises(sb.NotSupported) as caught:
        run(algorithm=algorithm, model=model)
    assert (caught.value.argument, caught.value.found, caught.value.allowed) == ("moves", found, allowed)


@pytest.mark.parametrize("value", [1.0, -0.1, NAN, INFINITY, "low", None, [0.5], True, 1j])
def test_range_of_a_threshold_is_said(value: Any) -> None:
    """The range is stated for every kind of wrong value."""
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        sb.Birth(threshold=value)
    assert caught.value.allowed == "a number from 0 on, below 1"


@pytest.mark.parametrize("value", [0, 0.5, np.float32(0.5), np.array(0.5)])
def test_threshold_is_a_plain_number(value: Any) -> None:
    threshold = sb.Birth(threshold=value).threshold
    assert type(threshold) is float
    assert threshold == value


def test_classes_of_the_errors() -> None:
    assert issubclass(sb.InvalidArgument, ValueError)
    assert issubclass(sb.InvalidType, TypeError)
    kinds = [getattr(sb, name) for name in sb.__all__ if isinstance(getattr(sb, name), type)]
    errors = [kind for kind in kinds if issubclass(kind, Exception)]
    assert len(errors) == 19
    assert all(issubclass(kind, sb.StickbreakError) for kind in errors if not issubclass(kind, Warning))
    assert issubclass(sb.ConversionWarning, UserWarning)


def test_errors_survive_pickling() -> None:
    """Worker processes pickle errors to return them."""
    errors: list[tuple[Maker, type[Any]]] = [
        (lambda: sb.Memoized(batches=0), sb.InvalidArgument),
        (lambda: sb.Stochastic(10, moves=(sb.Birth(),)), sb.NotSupported),
    ]
    for make, kind in errors:
        with pytest.raises(kind) as caught:
            make()
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value)
        assert (again.argument, again.found, again.allowed) == (
            caught.value.argument,
            caught.value.found,
            caught.value.allowed,
        )
    error = sb.NumericalError("too large", component=3)
    assert pickle.loads(pickle.dumps(error)).component == 3


def test_place_of_a_bad_number_is_named() -> None:
    """The error states the row and the column of a bad number."""
    with pytest.raises(sb.InvalidArgument) as caught:
        run(spoilt(NAN))
    assert "17" in caught.value.found
    assert "nan" in caught.value.found.lower()


@pytest.mark.parametrize(
    ("make", "nearest"),
    [
        (lambda: run(init="kmeans+"), "'kmeans++'"),
        (lambda: run(init="Random"), "'random'"),
        (lambda: run(missing="erro"), "'error'"),
        (lambda: sb.Full(objective="variationl"), "'variational'"),
        (lambda: sb.Full(sparsity="aut"), "'auto'"),
        (lambda: sb.Memoized(batches="AUTO"), "'auto'"),
        (lambda: sb.DirichletProcess(truncation="neste"), "'nested'"),
        (lambda: sb.Mixture(likelihood="gausian"), "Gaussian()"),
        (lambda: sb.Mixture(likelihood="zero_mean_gaussian"), "ZeroMeanGaussian()"),
        (lambda: sb.Mixture(likelihood=sb.Gaussian(), process="dirichlet process"), "DirichletProcess()"),
        (lambda: run(algorithm="memoised"), "Memoized()"),
    ],
)
def test_misspelt_names_are_guessed(make: Maker, nearest: str) -> None:
    with pytest.raises(sb.StickbreakError) as caught:
        make()
    assert f"did you mean {nearest}?" in str(caught.value)


def test_words_unlike_all_others_get_no_guess() -> None:
    with pytest.raises(sb.InvalidArgument) as caught:
        run(missing="drop")
    assert str(caught.value) == "missing must be 'error' or 'marginalize', but it is 'drop'"


def test_a_bound_needs_a_row() -> None:
    with pytest.raises(sb.InvalidArgument, match="at least one row") as caught:
        fitted().evaluate(ROWS[:0])
    assert caught.value.argument == "X"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: run(ROWS[:, 0]), "data.reshape(-1, 1)"),
        (lambda: fitted().predict(ROWS[0]), "X.reshape(1, -1)"),
        (lambda: run(init=3), "n_components=3"),
        (lambda: run(algorithm=sb.Full), "Full(...)"),
        (lambda: run(callbacks=unreached), "[function]"),
        (lambda: run(sparse.csr_array(ROWS)), "toarray"),
        (lambda: sb.DirichletProcess(concentration="1"), "must be a number,"),
        (lambda: sb.Gaussian(scale=np.ones((2, 3))), "(2, 3)"),
        (lambda: sb.Gaussian(scale=np.ones(3)), "(3,)"),
        (lambda: sb.FiniteDirichlet(n_components=10**30), "4294967294"),
        (lambda: run((1e-40 * ROWS).astype(np.float32)), "float64"),
        (lambda: run(1e7 + ROWS, model=FIXED), "Gaussian"),
    ],
)
def test_errors_say_what_to_do(make: Maker, words: str) -> None:
    with pytest.raises(sb.StickbreakError) as caught:
        make()
    assert words in str(caught.value)


def test_an_empty_list_gets_no_advice_on_columns() -> None:
    with pytest.raises(sb.InvalidArgument) as caught:
        run([])
    assert "reshape" not in str(caught.value)


def test_rows_out_of_range_are_numerical_errors() -> None:
    """Finite rows with infinite squares never give nan or infinity in a result."""
    fit = fitted()
    with pytest.raises(sb.NumericalError):
        fit.predict(1e200 * ROWS)
    with pytest.raises(sb.NumericalError):
        fit.evaluate(1e154 * ROWS)


@pytest.mark.parametrize("make", [each[0] for each in [*OPTIONS, *DATA]])
def test_what_fails_leaves_everything_as_it_was(make: Maker) -> None:
    before = ROWS.tobytes()
    with pytest.raises(sb.StickbreakError):
        make()
    assert ROWS.tobytes() == before


def test_a_fit_survives_bad_questions() -> None:
    fit = fitted()
    start = np.full((30, 2), 0.5)
    weights = with_entry(np.ones(30), -1.0)
    arrays = [ROWS.copy(), start.copy(), weights.copy()]
    before = visible_bits(fit, ROWS)
    for ask in [
        lambda: fit.predict(spoilt(NAN)),
        lambda: fit.predict_proba(ROWS[:, :1]),
        lambda: fit.log_predictive(1e200 * ROWS),
        lambda: fit.evaluate(ROWS, sample_weight=weights),
        lambda: fit.sample(-1),
        lambda: fit.save("/no/such/folder/model"),
        lambda: run(spoilt(INFINITY), init=fit),
        lambda: run(init=fit, model=OTHER),
        lambda: run(init=start, sample_weight=weights),
    ]:
        with pytest.raises(sb.StickbreakError):
            ask()
    assert visible_bits(fit, ROWS) == before
    for array, copy in zip([ROWS, start, weights], arrays, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_arguments_after_the_first_are_keywords() -> None:
    for call in [
        lambda: sb.Memoized(5, True),
        lambda: sb.fit(MODEL, ROWS, sb.Full(), 3),
        lambda: fitted().predict_proba(ROWS, True),
        lambda: fitted().sample(3, 1),
        lambda: fitted().save("path", True),
    ]:
        with pytest.raises(TypeError):
            call()


def test_models_cannot_be_changed() -> None:
    for instance, name in [
        (sb.Gaussian(), "dof"),
        (sb.DirichletProcess(), "concentration"),
        (sb.Full(), "tol"),
        (MODEL, "process"),
    ]:
        with pytest.raises(AttributeError):
            setattr(instance, name, 1.0)


def test_overflow_is_a_numerical_error() -> None:
    """Finite data with infinite squares are an error, never nan in a result."""
    huge = 1e200 * ROWS
    with pytest.raises(sb.StickbreakError) as caught:
        sb.fit(MODEL, huge, sb.Full(max_passes=3), n_components=2, progress=False)
    assert isinstance(caught.value, sb.NumericalError | sb.InvalidArgument)
