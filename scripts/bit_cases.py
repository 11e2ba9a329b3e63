"""The small fits that `scripts/bits.py` compares: every choice that a user has, alone and in some combinations.

Names of cases are stable, and rows depend on nothing but the arguments of `table`. Only the public API is used, so that
the same file runs on builds whose insides differ.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.sparse import csr_array

import stickbreak as sb

# Threads of every fit and query that does not say its own; `scripts/bits.py --threads` sets it.
THREADS = 1

Rows = NDArray[Any]
Make = Callable[[int], Any]


@dataclass(frozen=True)
class Case:
    """A named fit, trace or hierarchy: `make` returns it, and it then predicts the first rows of `rows`."""

    name: str
    rows: Any
    make: Callable[[], Any]


@dataclass(frozen=True)
class Kind:
    """A likelihood: what its rows are, one with the default parameters, and one whose prior has a mode."""

    domain: str
    default: Make
    modal: Make
    takes_moves: bool = True
    # Beside the bound.
    objectives: tuple[str, ...] = ("map", "ml")
    # Whether samplers that integrate components out take it.
    has_marginal: bool = True


KINDS: dict[str, Kind] = {
    "Gaussian": Kind("real", lambda d: sb.Gaussian(), lambda d: sb.Gaussian(dof=d + 4.0, scale=np.eye(d))),
    "ZeroMeanGaussian": Kind(
        "centred", lambda d: sb.ZeroMeanGaussian(), lambda d: sb.ZeroMeanGaussian(dof=d + 4.0, scale=np.eye(d))
    ),
    "DiagonalGaussian": Kind(
        "real", lambda d: sb.DiagonalGaussian(), lambda d: sb.DiagonalGaussian(shape=3.0, rate=np.ones(d))
    ),
    "SphericalGaussian": Kind(
        "real", lambda d: sb.SphericalGaussian(), lambda d: sb.SphericalGaussian(shape=3.0, rate=1.0)
    ),
    "SphericalGaussian product": Kind(
        "real",
        lambda d: sb.SphericalGaussian(base="product"),
        lambda d: sb.SphericalGaussian(shape=3.0, rate=1.0, base="product"),
        takes_moves=False,
    ),
    "KnownCovarianceGaussian": Kind(
        "real",
        lambda d: sb.KnownCovarianceGaussian(np.eye(d) + 0.2),
        lambda d: sb.KnownCovarianceGaussian(np.eye(d) + 0.2),
    ),
    "KnownCovarianceGaussian matrix": Kind(
        "real",
        lambda d: sb.KnownCovarianceGaussian(np.eye(d), mean_precision=0.1 * np.eye(d) + 0.01),
        lambda d: sb.KnownCovarianceGaussian(np.eye(d), mean_precision=0.1 * np.eye(d) + 0.01),
    ),
    "Multinomial": Kind("counts", lambda d: sb.Multinomial(), lambda d: sb.Multinomial(np.full(d, 1.5))),
    "Multinomial no coefficient": Kind(
        "counts",
        lambda d: sb.Multinomial(coefficient=False),
        lambda d: sb.Multinomial(np.full(d, 1.5), coefficient=False),
    ),
    "Multinomial CSR": Kind("sparse counts", lambda d: sb.Multinomial(), lambda d: sb.Multinomial(np.full(d, 1.5))),
    "Bernoulli": Kind(
        "flags", lambda d: sb.Bernoulli(), lambda d: sb.Bernoulli(np.full(d, 1.5), failures=np.full(d, 1.5))
    ),
    "Bernoulli CSR": Kind(
        "sparse flags", lambda d: sb.Bernoulli(), lambda d: sb.Bernoulli(np.full(d, 1.5), failures=np.full(d, 1.5))
    ),
    "Poisson": Kind("counts", lambda d: sb.Poisson(), lambda d: sb.Poisson(np.full(d, 1.5), rate=1.0)),
    "Poisson CSR": Kind("sparse counts", lambda d: sb.Poisson(), lambda d: sb.Poisson(np.full(d, 1.5), rate=1.0)),
}

# Builds of before do not have it.
if hasattr(sb, "NegativeBinomial"):
    KINDS |= {
        "NegativeBinomial": Kind(
            "counts",
            lambda d: sb.NegativeBinomial(),
            lambda d: sb.NegativeBinomial(3.0, shape=np.full(d, 1.5), rate=1.0),
        ),
        "NegativeBinomial CSR": Kind(
            "sparse counts",
            lambda d: sb.NegativeBinomial(),
            lambda d: sb.NegativeBinomial(3.0, shape=np.full(d, 1.5), rate=1.0),
        ),
    }

if hasattr(sb, "StudentT"):
    KINDS |= {
        "StudentT": Kind(
            "real",
            lambda d: sb.StudentT(),
            lambda d: sb.StudentT(4.0, dof=d + 4.0, scale=np.eye(d)),
            objectives=(),
            has_marginal=False,
        ),
        "StudentT diagonal": Kind(
            "real",
            lambda d: sb.StudentT(covariance="diagonal"),
            lambda d: sb.StudentT(4.0, covariance="diagonal", dof=6.0, scale=np.ones(d)),
            objectives=(),
            has_marginal=False,
        ),
    }

PRIOR = sb.Gamma(2.0, 1.0)
PROCESSES: dict[str, Callable[[int, Any], Any]] = {
    "DirichletProcess nested": lambda k, c: sb.DirichletProcess(c),
    "DirichletProcess stick": lambda k, c: sb.DirichletProcess(c, truncation="stick"),
    "DirichletProcess tail": lambda k, c: sb.DirichletProcess(c, truncation="tail"),
    "PitmanYor nested": lambda k, c: sb.PitmanYor(0.3, concentration=c),
    "FiniteDirichlet": lambda k, c: sb.FiniteDirichlet(k, concentration=c),
}

MOVES: dict[str, tuple[Any, ...]] = {
    "birth": (sb.Birth(),),
    "birth small": (sb.Birth(max_subsample=60, threshold=0.3, fresh=4),),
    "birth by pass": (sb.Birth(adoption="pass"),),
    "split": (sb.Split(candidates=3),),
    "merge": (sb.Merge(),),
    "delete": (sb.Delete(candidates=5),),
    "split merge": (sb.Split(), sb.Merge()),
    "all": (sb.Birth(), sb.Split(), sb.Merge(), sb.Delete()),
    "all by pass": (sb.Birth(adoption="pass"), sb.Split(), sb.Merge(), sb.Delete()),
}


@functools.cache
def table(domain: str, n: int = 500, d: int = 3, clusters: int = 5, dtype: str = "float64", spread: float = 3.0) -> Any:
    """Return rows of some clusters in a domain."""
    rng = np.random.default_rng([n, d, clusters, len(domain)])
    of = rng.integers(clusters, size=n)
    if domain == "centred":
        factors = rng.standard_normal((clusters, d, d)) * np.exp(rng.normal(size=(clusters, 1, 1)))
        rows = np.einsum("nij,nj->ni", factors[of], rng.standard_normal((n, d)))
    elif domain.endswith("flags"):
        rows = (rng.random((n, d)) < rng.beta(0.4, 0.4, size=(clusters, d))[of]).astype(float)
    elif domain.endswith("counts"):
        rows = rng.poisson(rng.gamma(0.7, 4.0, size=(clusters, d))[of]).astype(float)
    else:
        rows = spread * rng.standard_normal((clusters, d))[of] + rng.standard_normal((n, d))
    rows = rows.astype(dtype)
    return csr_array(rows) if domain.startswith("sparse") else rows


def with_holes(rows: Rows) -> Rows:
    """Return the same rows with a fifth of the values missing; every row keeps at least one."""
    rng = np.random.default_rng(7)
    missing = rng.random(rows.shape) < 0.2
    missing[np.arange(len(rows)), rng.integers(rows.shape[1], size=len(rows))] = False
    return np.where(missing, np.nan, rows).astype(rows.dtype)


def weights(n: int) -> Rows:
    """Return weights of rows, some of them zero."""
    rng = np.random.default_rng(11)
    drawn = rng.uniform(0.2, 3.0, n)
    drawn[rng.random(n) < 0.05] = 0.0
    return drawn


def memoized(**options: Any) -> sb.Memoized:
    """Return memoized inference with a few passes."""
    return sb.Memoized(**({"batches": 3, "max_passes": 6, "tol": 0.0} | options))


def case(name: str, rows: Any, likelihood: Any, algorithm: Any, *, process: Any = None, **overrides: Any) -> Case:
    """Return a case of one call of `fit`, by default in one thread; `process` may be a function."""
    options = {"seed": 3, "threads": THREADS, "progress": False} | overrides
    own = {"background": behind} if (behind := options.pop("background", None)) else {}

    def make() -> sb.Fit:
        chosen = process() if callable(process) else process or sb.DirichletProcess()
        return sb.fit(sb.Mixture(likelihood=likelihood, process=chosen, **own), rows, algorithm, **options)

    return Case(name, rows, make)


def of_likelihoods() -> Iterator[Case]:
    """Every likelihood: memoized, dense, hard in float32, in every objective, and as `fit` chooses by itself."""
    k = 7
    for name, kind in KINDS.items():
        d = 8 if kind.domain.endswith(("counts", "flags")) else 4
        rows, single = table(kind.domain, d=d), table(kind.domain, d=d, dtype="float32")
        default, modal = kind.default(d), kind.modal(d)
        yield case(f"{name}/memoized", rows, default, memoized(), n_components=k)
        dense = sb.Full(sparsity=None, margin=None, max_passes=6, tol=0.0)
        yield case(f"{name}/dense", rows, default, dense, process=sb.FiniteDirichlet(k))
        hard = memoized(sparsity=1, margin=None)
        yield case(f"{name}/hard float32", single, default, hard, n_components=k)
        yield case(f"{name}/by itself", rows, default, None)
        for objective in kind.objectives:
            process = sb.FiniteDirichlet(k, concentration=1.5 * k)
            chosen = memoized(objective=objective, sparsity=2)
            yield case(f"{name}/{objective}", rows, modal, chosen, process=process)


def of_processes() -> Iterator[Case]:
    """Every process, with a number and a prior for its concentration, in every objective that it has."""
    k, rows, modal = 6, table("real"), KINDS["Gaussian"].modal(3)
    for name, make in PROCESSES.items():
        for concentration, shown in ((2.0, ""), (PRIOR, ", Gamma")):
            process, name_of_case = functools.partial(make, k, concentration), f"{name}{shown}"
            yield case(f"{name_of_case}/memoized", rows, sb.Gaussian(), memoized(), process=process, n_components=k)
            diagonal = table("real", dtype="float32")
            dense = sb.Full(sparsity=None, max_passes=6)
            yield case(
                f"{name_of_case}/full float32", diagonal, sb.DiagonalGaussian(), dense, process=process, n_components=k
            )
        for objective in ("map", "ml"):
            process = functools.partial(make, k, 1.5 * k)
            yield case(
                f"{name}/{objective}", rows, modal, memoized(objective=objective), process=process, n_components=k
            )


def of_algorithms() -> Iterator[Case]:
    """Every algorithm and what it can be asked for."""
    rows, k = table("real", n=800), 12
    sparsities: tuple[Any, ...] = ("auto", 1, 4, None)
    for sparsity, margin in itertools.product(sparsities, (20.0, None)):
        shown = f"sparsity={sparsity} margin={margin}"
        full = sb.Full(sparsity=sparsity, margin=margin, max_passes=5, tol=0.0)
        yield case(f"full {shown}", rows, sb.Gaussian(), full, n_components=k)
        chosen = memoized(sparsity=sparsity, margin=margin)
        single = rows.astype(np.float32)
        yield case(f"memoized {shown} float32", single, sb.Gaussian(), chosen, n_components=k)
        stochastic = sb.Stochastic(200, sparsity=sparsity, margin=margin, max_passes=3)
        yield case(f"stochastic {shown}", rows, sb.DiagonalGaussian(), stochastic, n_components=k)
    for batches, shuffle in itertools.product(("auto", 1, 2, 7, 50), (True, False)):
        chosen = memoized(batches=batches, shuffle=shuffle)
        yield case(f"memoized batches={batches} shuffle={shuffle}", rows, sb.Gaussian(), chosen, n_components=k)
    if hasattr(sb.Memoized, "shard_rows"):
        for shard_rows, moves in itertools.product((33, 150), ((), MOVES["all"])):
            chosen = memoized(shard_rows=shard_rows, moves=moves)
            yield case(f"shard_rows={shard_rows} {len(moves)} moves", rows, sb.Gaussian(), chosen, n_components=k)
    for size, delay, decay in ((64, 1.0, 0.6), (300, 10.0, 0.9)):
        stochastic = sb.Stochastic(size, delay, decay, shuffle=False, max_passes=4)
        yield case(f"stochastic {size} {delay} {decay}", rows, sb.Gaussian(), stochastic, n_components=k)
    yield case("converged", rows, sb.Gaussian(), sb.Memoized(batches=2), n_components=5)
    yield case("no passes", rows, sb.Gaussian(), sb.Full(max_passes=0), n_components=5)


def of_shapes() -> Iterator[Case]:
    """Few and many columns, components and rows; enough rows a column that distance bounds are kept."""
    for d, k in ((1, 5), (2, 40), (16, 10), (30, 6)):
        rows = table("real", n=700, d=d, clusters=k)
        yield case(f"D={d} K={k}", rows, sb.Gaussian(), memoized(), n_components=k)
        single = table("real", n=700, d=d, clusters=k, dtype="float32")
        chosen = memoized(sparsity=4)
        yield case(f"D={d} K={k} float32", single, sb.Gaussian(), chosen, n_components=k)
    # Distance bounds are kept from 40 columns and 400 rows a column in a batch on.
    rows = table("real", n=16_400, d=40, clusters=8, spread=1.0)
    for margin, memory in ((20.0, 2**27), (20.0, 0), (0.0, 2**27)):
        chosen = sb.Memoized(batches=1, margin=margin, bounds_memory=memory, sparsity=4, max_passes=5, tol=0.0)
        yield case(f"distance bounds margin={margin} memory={memory}", rows, sb.Gaussian(), chosen, n_components=9)
    single = table("real", n=32_400, d=40, clusters=8, dtype="float32", spread=1.0)
    chosen = memoized(batches=2, sparsity=2, max_passes=4)
    yield case("distance bounds float32", single, sb.Gaussian(), chosen, n_components=9)
    chosen = memoized(batches=1, max_passes=4, moves=MOVES["all"])
    yield case("distance bounds moves", rows, sb.Gaussian(), chosen, n_components=12)


def of_sources(folder: Path) -> Iterator[Case]:
    """The same rows from every kind of source."""
    for dtype in ("float64", "float32"):
        rows = table("real", n=600, d=4, dtype=dtype)
        np.save(folder / f"{dtype}.npy", rows)
        columns = {f"x{i}": rows[:, i] for i in range(rows.shape[1])}
        pq.write_table(pa.table(columns), folder / f"{dtype}.parquet", row_group_size=170)
        sources: dict[str, Any] = {
            "array": rows,
            "Fortran order": np.asfortranarray(rows),
            "every second": np.repeat(rows, 2, axis=0)[::2],
            "memory map": np.load(folder / f"{dtype}.npy", mmap_mode="r"),
            "blocks": functools.partial(_blocks, rows, (7, 100, 101, 400)),
            "Parquet": folder / f"{dtype}.parquet",
        }
        for name, source in sources.items():
            for likelihood, moves in ((sb.Gaussian(), ()), (sb.DiagonalGaussian(), MOVES["all"])):
                model = sb.Mixture(likelihood=likelihood)
                chosen = memoized(shuffle=False, moves=moves)
                make = functools.partial(
                    sb.fit, model, source, chosen, n_components=6, seed=3, threads=THREADS, progress=False
                )
                yield Case(f"{name} {dtype} {type(likelihood).__name__}", rows, make)


def _blocks(rows: Any, cuts: Iterable[int]) -> Iterator[Any]:
    ends = [*cuts, rows.shape[0]]
    return (rows[begin:end] for begin, end in zip([0, *ends], ends, strict=False))


def of_rows() -> Iterator[Case]:
    """Missing values and weights."""
    for name, algorithm in (("memoized", memoized()), ("moves", memoized(moves=MOVES["all"]))):
        for likelihood in ("DiagonalGaussian", "Bernoulli", "Poisson"):
            rows = with_holes(table(KINDS[likelihood].domain, d=6))
            made = KINDS[likelihood].default(6)
            options: dict[str, Any] = {"missing": "marginalize", "n_components": 6}
            yield case(f"missing {likelihood} {name}", rows, made, algorithm, **options)
        for likelihood in ("Gaussian", "Multinomial CSR", "SphericalGaussian product"):
            if name == "moves" and not KINDS[likelihood].takes_moves:
                continue
            rows, made = table(KINDS[likelihood].domain, d=6), KINDS[likelihood].default(6)
            options = {"sample_weight": weights(rows.shape[0]), "n_components": 6}
            yield case(f"weighted {likelihood} {name}", rows, made, algorithm, **options)
    rows = with_holes(table("real", d=6, dtype="float32"))
    options = {"missing": "marginalize", "n_components": 6, "sample_weight": weights(len(rows))}
    yield case("missing weighted float32", rows, sb.DiagonalGaussian(), memoized(), **options)
    if hasattr(sb, "Background"):
        far = np.vstack([table("real"), np.random.default_rng(5).uniform(-40.0, 40.0, size=(25, 3))])
        chosen = {"memoized": memoized(), "moves": memoized(moves=MOVES["all"]), "by itself": None}
        for name, likelihood in itertools.product(chosen, ("Gaussian", "StudentT")):
            options = {"background": sb.Background(), "n_components": None if name == "by itself" else 5}
            yield case(f"background {likelihood} {name}", far, KINDS[likelihood].default(3), chosen[name], **options)


def of_starts() -> Iterator[Case]:
    """Every `init`, and several starts."""
    rows = table("real", n=400)
    first = sb.fit(
        sb.Mixture(likelihood=sb.Gaussian()), rows, memoized(), n_components=5, seed=1, threads=THREADS, progress=False
    )
    shares = np.random.default_rng(2).dirichlet(np.full(6, 0.3), size=len(rows))
    starts: dict[str, Any] = {
        "kmeans++": "kmeans++",
        "random": "random",
        "sequential": "sequential",
        "labels": np.arange(len(rows)) % 6,
        "responsibilities": shares,
        "a fit": first,
    }
    for name, init in starts.items():
        options = {"init": init} | ({"n_components": 6} if isinstance(init, str) else {})
        yield case(f"init {name}", rows, sb.Gaussian(), memoized(), **options)
        yield case(f"init {name}, moves", rows, sb.Gaussian(), memoized(moves=MOVES["all"]), **options)
    for likelihood in ("Multinomial CSR", "Poisson", "ZeroMeanGaussian"):
        own_rows, made = table(KINDS[likelihood].domain, n=300, d=5), KINDS[likelihood].default(5)
        yield case(f"init sequential {likelihood}", own_rows, made, memoized(), init="sequential", n_components=5)
        yield case(f"init random {likelihood}", own_rows, made, memoized(), init="random", n_components=5)
    long = table("real", n=2500, d=2)
    yield case("init sequential in blocks", long, sb.Gaussian(), memoized(), init="sequential", n_components=6)
    finite = sb.FiniteDirichlet(6)
    yield case("init sequential finite", rows, sb.Gaussian(), memoized(), init="sequential", process=finite)
    yield case("3 starts", rows, sb.Gaussian(), memoized(), n_components=6, n_init=3)
    yield case("3 wide starts", rows, sb.Gaussian(), memoized(moves=MOVES["all"]), n_init=3)
    stop = [lambda record: False]
    yield case("3 starts one by one", rows, sb.Gaussian(), memoized(), n_components=6, n_init=3, callbacks=stop)


def of_moves() -> Iterator[Case]:
    """Every kind of move, from one component and from many."""
    for name, kinds in MOVES.items():
        for likelihood in ("Gaussian", "DiagonalGaussian", "Multinomial CSR", "ZeroMeanGaussian", "Bernoulli"):
            kind = KINDS[likelihood]
            rows, made = table(kind.domain, n=600, d=6), kind.default(6)
            first = 1 if name.startswith(("birth", "split")) else 14
            chosen = memoized(moves=kinds, max_passes=8)
            yield case(f"{name}/{likelihood}", rows, made, chosen, n_components=first)
    rows = table("real", n=800)
    for name, process in (("tail", sb.DirichletProcess(truncation="tail")), ("PitmanYor", sb.PitmanYor(0.2))):
        chosen = memoized(moves=MOVES["all"], sparsity=2)
        yield case(f"all/{name}", rows, sb.Gaussian(), chosen, process=process, n_components=3)
    learned = sb.DirichletProcess(PRIOR)
    yield case("all/Gamma", rows, sb.Gaussian(), memoized(moves=MOVES["all"]), process=learned, n_components=3)
    yield case("all/full", rows, sb.Gaussian(), sb.Full(moves=MOVES["all"], max_passes=8), n_components=10)
    single = rows.astype(np.float32)
    hard = memoized(moves=MOVES["all"], sparsity=1)
    yield case("all/hard float32", single, sb.SphericalGaussian(), hard, n_components=10)
    large = table("real", n=5000, d=4, clusters=12, spread=6.0)
    yield case("all/many rows", large, sb.Gaussian(), memoized(moves=MOVES["all"]), n_components=16)


def of_updates() -> Iterator[Case]:
    """Fits that take in more rows later."""
    for likelihood in ("Gaussian", "DiagonalGaussian", "Multinomial CSR", "Poisson"):
        rows, made = table(KINDS[likelihood].domain, d=5), KINDS[likelihood].default(5)
        first = case("", rows[:350], made, memoized(sparsity=4), n_components=6)
        options = {"sample_weight": weights(rows.shape[0] - 350)} if likelihood == "Gaussian" else {}
        yield Case(f"update {likelihood}", rows, functools.partial(_updated, first, rows[350:], options))


def _updated(first: Case, rows: Any, options: dict[str, Any]) -> Any:
    return first.make().update(rows, max_passes=3, tol=0.0, threads=THREADS, **options)


class Kill(BaseException):
    """Ends a fit from a callback."""


def of_checkpoints(folder: Path) -> Iterator[Case]:
    """Fits that are killed after some passes and go on from their checkpoint."""
    rows = table("real", n=600)
    chosen: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "full": (sb.Gaussian(), sb.Full(max_passes=6, tol=0.0), {"n_components": 6}),
        "memoized": (sb.Gaussian(), memoized(), {"n_components": 6}),
        "stochastic": (sb.DiagonalGaussian(), sb.Stochastic(150, max_passes=5), {"n_components": 6}),
        "moves": (sb.Gaussian(), memoized(moves=MOVES["all"]), {"n_components": 2}),
        "by pass": (sb.Gaussian(), memoized(moves=MOVES["all by pass"]), {"n_components": 2}),
        "3 starts": (sb.Gaussian(), memoized(), {"n_components": 6, "n_init": 3}),
    }
    for name, (likelihood, algorithm, options) in chosen.items():
        arguments = (sb.Mixture(likelihood=likelihood), rows, algorithm)
        path = folder / f"{name}.checkpoint"
        yield Case(f"killed {name}", rows, functools.partial(killed, path, arguments, options))


def killed(path: Path, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the fit that continues from the checkpoint of one killed after three passes."""
    n_passes = itertools.count(1)

    def kill(_: sb.Record) -> None:
        if next(n_passes) == 3:
            raise Kill

    path.unlink(missing_ok=True)
    options = options | {"seed": 3, "threads": THREADS, "progress": False}
    checkpoint = sb.Checkpoint(path, every_seconds=0)
    with contextlib.suppress(Kill):
        sb.fit(*arguments, callbacks=[kill], checkpoint=checkpoint, **options)
    return sb.fit(*arguments, checkpoint=checkpoint, **options)


def of_threads() -> Iterator[Case]:
    """The same fits in 1, 2 and 3 threads: their names differ in nothing but that."""
    rows, large = table("real", n=900, d=5), table("real", n=16_400, d=40, clusters=8, spread=1.0)
    counts = table("sparse counts", n=900, d=12)
    for threads in (1, 2, 3):
        shown, options = f"threads={threads}", {"threads": threads, "n_components": 8}
        yield case(f"full {shown}", rows, sb.Gaussian(), sb.Full(max_passes=5, tol=0.0), **options)
        yield case(f"memoized {shown}", rows.astype(np.float32), sb.Gaussian(), memoized(), **options)
        yield case(f"moves {shown}", rows, sb.Gaussian(), memoized(moves=MOVES["all"]), **options)
        bounded = memoized(batches=1, sparsity=4, max_passes=4)
        yield case(f"distance bounds {shown}", large, sb.Gaussian(), bounded, **options)
        yield case(f"counts {shown}", counts, sb.Multinomial(), memoized(moves=MOVES["all"]), **options)
        yield case(f"stochastic {shown}", rows, sb.DiagonalGaussian(), sb.Stochastic(250, max_passes=3), **options)
        yield case(f"starts {shown}", rows, sb.Gaussian(), memoized(max_passes=3), n_init=4, **options)


def groups(folder: Path) -> dict[str, Iterable[Case]]:
    """The cases of mixtures by group; some of them read or write files in `folder`."""
    return {
        "likelihood": of_likelihoods(),
        "process": of_processes(),
        "algorithm": of_algorithms(),
        "shape": of_shapes(),
        "source": of_sources(folder),
        "rows": of_rows(),
        "start": of_starts(),
        "moves": of_moves(),
        "update": of_updates(),
        "checkpoint": of_checkpoints(folder),
        "threads": of_threads(),
    }
