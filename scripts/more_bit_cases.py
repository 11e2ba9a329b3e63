"""More small fits that `scripts/bits.py` compares: topic models, kd-trees, samplers and hierarchies."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import bit_cases
import stickbreak as sb
from bit_cases import KINDS, MOVES, PRIOR, Case, Rows, case, killed, memoized, table, weights


@functools.cache
def documents(n: int = 150, words: int = 60, topics: int = 5, length: float = 40.0, dtype: str = "float64") -> Any:
    """Return counts of the words of documents; one document is empty."""
    rng = np.random.default_rng([n, words, topics])
    of_topics = rng.dirichlet(np.full(words, 0.1), size=topics)
    shares = rng.dirichlet(np.full(topics, 0.3), size=n)
    counts = np.stack([rng.multinomial(rng.poisson(length) + 1, share @ of_topics) for share in shares])
    counts[n // 2] = 0
    return csr_array(counts.astype(dtype))


def topics(name: str, rows: Any, algorithm: Any, *, n_topics: int = 8, word: float = 0.1, **overrides: Any) -> Case:
    """Return a case of a topic model, by default in one thread."""
    options = {"seed": 3, "threads": bit_cases.THREADS, "progress": False} | overrides
    model = sb.TopicModel(process=sb.LatentDirichlet(n_topics), word_concentration=word)
    return Case(name, rows, functools.partial(sb.fit, model, rows, algorithm, **options))


def of_topics(folder: Path) -> Iterator[Case]:
    """Topic models by algorithm, objective, sparsity and every setting of documents."""
    rows, single = documents(), documents(dtype="float32")
    for objective in ("map", "variational"):
        for sparsity in ("auto", 1, 3, None):
            shown = f"{objective} sparsity={sparsity}"
            chosen = memoized(objective=objective, sparsity=sparsity)
            yield topics(f"memoized {shown}", rows, chosen)
            yield topics(f"float32 {shown}", single, chosen)
        yield topics(f"full {objective}", rows, sb.Full(objective=objective, max_passes=6, tol=0.0))
        stochastic = sb.Stochastic(40, objective=objective, max_passes=4)
        yield topics(f"stochastic {objective}", rows, stochastic)
    yield topics("by itself", rows, None)
    yield topics("dense counts", rows.toarray(), memoized())
    yield topics("words of documents", rows, memoized(), word=0.6, n_topics=12)
    choices = {
        "first_pass": sb.Words(first_pass="scaled"),
        "cold": sb.Words(warm_start=False),
        "restarts": sb.Words(restarts=3),
        "steps": sb.Words(max_steps=3, step_tol=0.0),
    }
    for name, words in choices.items():
        for objective in ("map", "variational"):
            chosen = memoized(objective=objective, sparsity=4, units=words)
            yield topics(f"{name} {objective}", documents(length=160.0), chosen, n_topics=10)
    for init in ("kmeans++", "random", np.arange(rows.shape[0]) % 8):
        yield topics(f"init {init if isinstance(init, str) else 'labels'}", rows, memoized(), init=init)
    first = topics("", rows, memoized())
    yield Case("init a fit", rows, lambda: topics("", rows, memoized(), init=first.make()).make())
    yield topics("weighted", rows, memoized(), sample_weight=weights(rows.shape[0]))
    yield topics("3 starts", rows, memoized(max_passes=3), n_init=3)
    yield topics("converged", rows, sb.Memoized(batches=2))
    for threads in (1, 2, 3):
        yield topics(f"threads={threads}", documents(n=600), memoized(sparsity=4), threads=threads)
    options = {"seed": 3, "threads": bit_cases.THREADS, "progress": False}
    arguments = (sb.TopicModel(process=sb.LatentDirichlet(8)), rows, memoized())
    yield Case("killed", rows, functools.partial(killed, folder / "topics.checkpoint", arguments, options))
    yield Case(
        "update", rows, lambda: topics("", rows[:100], memoized()).make().update(rows[100:], threads=bit_cases.THREADS)
    )


def of_trees(folder: Path) -> Iterator[Case]:
    """Mixtures over the nodes of kd-trees."""
    large = table("real", n=6000, d=3, clusters=6, spread=8.0)
    kept: dict[str, Any] = {"refine": False, "expand_every": 2}
    for likelihood in ("Gaussian", "DiagonalGaussian", "SphericalGaussian", "Multinomial", "Bernoulli", "Poisson"):
        kind = KINDS[likelihood]
        rows = large if kind.domain == "real" else table(kind.domain, n=3000, d=4)
        tree = sb.KdTree(**kept, depth=5)
        made = kind.default(rows.shape[1])
        yield case(likelihood, rows, made, memoized(units=tree, max_passes=8), n_components=7)
        moving = memoized(units=tree, moves=MOVES["all"], max_passes=8)
        yield case(f"{likelihood} moves", rows, made, moving, n_components=2)
    choices: dict[str, dict[str, Any]] = {
        "responsibility": {"rule": "responsibility"},
        "budget": {"budget": 60},
        "principal": {"split": "principal"},
        "tolerance": {"tolerance": 0.05},
        "deep": {"depth": 9},
        "closed": {"depth": 3, "expand_every": 50},
    }
    for name, options in choices.items():
        full = sb.Full(units=sb.KdTree(**(kept | options)), max_passes=8)
        yield case(name, large, sb.Gaussian(), full, n_components=7)
        single = memoized(units=sb.KdTree(**(kept | options)), sparsity=2, max_passes=8)
        yield case(f"{name} float32", large.astype(np.float32), sb.DiagonalGaussian(), single, n_components=7)
    many = table("real", n=17_000, d=2, clusters=6, spread=8.0)
    refined = memoized(batches=2, units=sb.KdTree(), max_passes=8)
    yield case("refined", many, sb.DiagonalGaussian(), refined, n_components=7)
    by_trial = memoized(batches=2, units="auto", max_passes=4)
    yield case("auto", many, sb.DiagonalGaussian(), by_trial, n_components=7)
    tail = sb.DirichletProcess(truncation="tail")
    nodes = memoized(units=sb.KdTree(**kept), max_passes=8)
    yield case("tail", large, sb.Gaussian(), nodes, process=tail, n_components=7)
    yield case("weighted", large, sb.Gaussian(), nodes, n_components=7, sample_weight=weights(len(large)))
    for threads in (1, 2, 3):
        chosen = memoized(units=sb.KdTree(**kept), moves=MOVES["all"], max_passes=8)
        yield case(f"threads={threads}", large, sb.Gaussian(), chosen, n_components=4, threads=threads)
    options = {"n_components": 7, "seed": 3, "threads": bit_cases.THREADS, "progress": False}
    arguments = (sb.Mixture(likelihood=sb.Gaussian()), large, nodes)
    yield Case("killed", large, functools.partial(killed, folder / "tree.checkpoint", arguments, options))


PARTITIONS: dict[str, Any] = {
    "DirichletProcess": sb.DirichletProcess(1.5),
    "DirichletProcess Gamma": sb.DirichletProcess(PRIOR),
    "PitmanYor": sb.PitmanYor(0.3, concentration=1.0),
    "PitmanYor priors": sb.PitmanYor(sb.Beta(1.0, 9.0), concentration=PRIOR),
    "NormalizedGeneralizedGamma": sb.NormalizedGeneralizedGamma(1.0, discount=0.2),
    "MixtureOfFiniteMixtures": sb.MixtureOfFiniteMixtures(1.0, rate=2.0),
    "FiniteDirichlet": sb.FiniteDirichlet(6),
}
SAMPLERS: dict[str, Any] = {
    "CollapsedGibbs": sb.CollapsedGibbs(),
    "CollapsedGibbs subset": sb.CollapsedGibbs(subset=20),
    "SplitMerge": sb.SplitMerge(proposal="restricted"),
    "SplitMerge sequential": sb.SplitMerge(proposal="sequential", scans=1),
    "TreeGuided": sb.TreeGuided(global_moves=4, depth=2),
    "TreeGuided fresh": sb.TreeGuided(global_moves=4, trees="fresh", evenness="max/n", local="guided"),
    "TreeGuided published": sb.TreeGuided(global_moves=4, exact=False),
    "BlockedGibbs": sb.BlockedGibbs(),
    "Slice": sb.Slice(),
}
NOT_SUPPORTED = {
    ("BlockedGibbs", "NormalizedGeneralizedGamma"),
    ("BlockedGibbs", "MixtureOfFiniteMixtures"),
    ("Slice", "MixtureOfFiniteMixtures"),
    ("Slice", "FiniteDirichlet"),
}


def chains(name: str, rows: Rows, likelihood: Any, process: Any, sampler: Any, **overrides: Any) -> Case:
    """Return a case of two short chains, by default in one thread."""
    short = {"draws": 6, "warmup": 2, "chains": 2, "seed": 3, "threads": bit_cases.THREADS, "progress": False}
    model = sb.Mixture(likelihood=likelihood, process=process)
    return Case(name, rows, functools.partial(sb.sample, model, rows, sampler, **(short | overrides)))


def of_samplers() -> Iterator[Case]:
    """Every sampler under every process that it knows, every likelihood and every start."""
    rows, first = table("real", n=60), PARTITIONS["DirichletProcess"]
    for sampler, chosen in SAMPLERS.items():
        for name, process in PARTITIONS.items():
            if (sampler, name) in NOT_SUPPORTED:
                continue
            is_wide = sampler == "BlockedGibbs" and name.startswith("PitmanYor")
            made = sb.BlockedGibbs(truncation=80) if is_wide else chosen
            yield chains(f"{sampler}/{name}", rows, sb.Gaussian(), process, made)
    for name, kind in KINDS.items():
        # Traces of others have no predictive density, which is compared.
        if not kind.has_marginal:
            continue
        rows_of_kind, made = table(kind.domain, n=60, d=4), kind.default(4)
        for sampler in ("CollapsedGibbs", "SplitMerge", "TreeGuided", "Slice"):
            yield chains(f"{sampler}/{name}", rows_of_kind, made, first, SAMPLERS[sampler])
    starts: tuple[Any, ...] = ("single", "singletons", "ibhc", "one-on-top", np.arange(60) % 4)
    for init in starts:
        shown = init if isinstance(init, str) else "labels"
        yield chains(f"init {shown}", rows, sb.DiagonalGaussian(), first, sb.CollapsedGibbs(), init=init)
    single = rows.astype(np.float32)
    yield chains("float32", single, sb.SphericalGaussian(), first, sb.CollapsedGibbs())
    for threads in (1, 2):
        own_threads = {"threads": threads, "thin": 2}
        yield chains(f"threads={threads}", rows, sb.Gaussian(), first, sb.TreeGuided(), **own_threads)


def of_hierarchies() -> Iterator[Case]:
    """Trees of joins by either method."""
    for name in ("Gaussian", "DiagonalGaussian", "Multinomial", "Bernoulli", "Poisson"):
        rows, made = table(KINDS[name].domain, n=60, d=4), KINDS[name].default(4)
        model = sb.Mixture(likelihood=made, process=PARTITIONS["DirichletProcess"])
        for method in ("bhc", "incremental"):
            make = functools.partial(sb.hierarchy, model, rows, method, seed=3, threads=bit_cases.THREADS)
            yield Case(f"{name} {method}", rows, make)


def groups(folder: Path) -> dict[str, Iterator[Case]]:
    """The cases by group; some of them write files in `folder`."""
    return {
        "topics": of_topics(folder),
        "trees": of_trees(folder),
        "samplers": of_samplers(),
        "hierarchies": of_hierarchies(),
    }
