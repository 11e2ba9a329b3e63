"""Good arguments of public callables by the names of parameters, and objects whose methods are called."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import stickbreak as sb
import stickbreak.sklearn
from fuzzing.inputs import array

Generator = np.random.Generator
Maker = Callable[[Generator], Any]


def _one_of(*choices: Any) -> Callable[[Generator], Any]:
    return lambda rng: choices[rng.integers(len(choices))]


def _rows(rng: Generator) -> Any:
    """Return rows of two columns that every likelihood takes, in one of the forms of tables."""
    flags = rng.integers(0, 2, size=(int(rng.integers(3, 20)), 2)).astype(float)
    choice = rng.integers(10)
    if choice == 0:
        return array(rng, flags.shape)
    if choice == 1:
        import pandas as pd

        return pd.DataFrame(flags, columns=["a", "b"])
    if choice == 2:
        import polars as pl

        return pl.DataFrame(flags, schema=["a", "b"], orient="row")
    if choice == 3:
        import pyarrow as pa

        return pa.table({"a": flags[:, 0], "b": flags[:, 1]})
    if choice == 4:
        from scipy import sparse

        forms = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]
        return sparse.csr_array(flags).asformat(forms[rng.integers(len(forms))])
    if choice == 5:
        return flags.tolist()
    if choice == 6:
        return lambda: iter([flags, flags])
    return flags + (rng.normal(size=flags.shape) if choice == 7 else 0.0)


def _counts(rng: Generator) -> Any:
    counts = rng.poisson(1.0, size=(int(rng.integers(1, 12)), 4))
    return counts.astype(float) if rng.random() < 0.7 else array(rng, (3, 4))


def _model(rng: Generator) -> Any:
    likelihoods = [sb.Gaussian(), sb.DiagonalGaussian(), sb.Bernoulli(), sb.Poisson(), sb.SphericalGaussian()]
    likelihoods += [sb.ZeroMeanGaussian(), sb.Categorical(), sb.KnownCovarianceGaussian(np.eye(2)), sb.Multinomial()]
    processes = [sb.DirichletProcess(), sb.PitmanYor(0.3), sb.FiniteDirichlet(2)]
    processes += [
        sb.DirichletProcess(sticks=(2.0, 3.0)),
        sb.DirichletProcess(sb.Gamma(1.0, 1.0)),
        sb.NormalizedGeneralizedGamma(1.0, 0.3),
    ]
    processes += [sb.PitmanYor(sb.Beta(1.0, 9.0), concentration=sb.Gamma(1.0, 1.0)), sb.MixtureOfFiniteMixtures()]
    return sb.Mixture(
        likelihood=likelihoods[rng.integers(len(likelihoods))], process=processes[rng.integers(len(processes))]
    )


def _weights(rng: Generator) -> Any:
    return None if rng.random() < 0.5 else rng.uniform(0.0, 2.0, size=20)


def _path(rng: Generator) -> Any:
    folder = Path(_folder().name)
    names = ["out.safetensors", "missing/out", "", ".", "a\0b", "x" * 300, "checkpoint"]
    return folder / names[rng.integers(len(names))] if rng.random() < 0.8 else names[rng.integers(len(names))] or "/"


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix=f"stickbreak-fuzz-{os.getpid()}-")


def _vector(rng: Generator) -> Any:
    return rng.uniform(0.2, 3.0, size=2)


def _square(rng: Generator) -> Any:
    factor = rng.normal(size=(2, 2))
    return factor @ factor.T + np.eye(2)


def _fit(rng: Generator) -> Any:
    return _fits()[rng.integers(len(_fits()))]


# --- objects ---


@cache
def _flags() -> Any:
    return np.random.default_rng(1).integers(0, 2, size=(24, 2)).astype(float)


@cache
def _normal() -> Any:
    rng = np.random.default_rng(2)
    return rng.normal(size=(24, 2)) + 6.0 * rng.integers(2, size=(24, 1))


@cache
def _fits() -> list[Any]:
    models = [sb.Mixture(likelihood=each) for each in (sb.Gaussian(), sb.DiagonalGaussian(), sb.SphericalGaussian())]
    fits = [_fitted(model, _normal()) for model in models]
    tail = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(truncation="tail"))
    fits.append(_fitted(tail, _normal()))
    fits += [
        _fitted(sb.Mixture(likelihood=each), _flags()) for each in (sb.Bernoulli(), sb.Poisson(), sb.Categorical())
    ]
    return fits


def _fitted(model: Any, rows: Any) -> Any:
    return sb.fit(model, rows, sb.Full(max_passes=2), n_components=2, threads=1, progress=False)


@cache
def _topics() -> Any:
    counts = np.random.default_rng(3).poisson(1.0, size=(20, 4))
    return sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, sb.Full(max_passes=2), threads=1, progress=False)


@cache
def _trace() -> Any:
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(sb.Gamma(1.0, 1.0)))
    return sb.sample(model, _normal(), draws=5, warmup=2, chains=2, threads=1, progress=False)


@cache
def _tree() -> Any:
    return sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian()), _normal(), threads=1)


@cache
def _clusters() -> Any:
    return _fits()[0].combine(_normal(), threads=1)


def _estimator(rng: Generator) -> Any:
    algorithm = sb.Full(max_passes=2)
    estimator = sb.sklearn.BayesianMixture(algorithm=algorithm, threads=1)
    return estimator.fit(_normal()) if rng.random() < 0.7 else estimator


def _topic_estimator(rng: Generator) -> Any:
    estimator = sb.sklearn.TopicModel(2, algorithm=sb.Full(max_passes=2), threads=1)
    counts = np.random.default_rng(3).poisson(1.0, size=(20, 4))
    return estimator.fit(counts) if rng.random() < 0.7 else estimator


MAKERS: dict[str, Callable[[Generator], Any]] = {
    "Fit": _fit,
    "TopicFit": lambda _: _topics(),
    "Trace": lambda _: _trace(),
    "Hierarchy": lambda _: _tree(),
    "Density": lambda rng: _fits()[0].marginal([0, 1], threads=1),
    "Clusters": lambda _: _clusters(),
    "NormalizedGeneralizedGamma": lambda _: sb.NormalizedGeneralizedGamma(1.0, 0.3),
    "BayesianMixture": _estimator,
    "sklearn.TopicModel": _topic_estimator,
}


# --- good values, by parameter, by `owner.(parameter)` or by `callable(parameter)` ---

_ONE = _one_of(0.5, 1.0, 1, 2.5)
_FEW = _one_of(1, 2, 3)
_FLAG = _one_of(True, False)
_SEED = _one_of(0, 1, 2**31)
_NONE = _one_of(None)
_COLUMNS = _one_of(None, [0], [1, 0], [0, 1])
_LABELS: Maker = lambda rng: rng.integers(0, 2, size=20)  # noqa: E731

GOOD: dict[str, Maker] = {
    # Likelihoods and processes
    "base": _one_of("conjugate", "product"),
    "coefficient": _FLAG,
    "concentration": _one_of(0.5, 2, sb.Gamma(1.0, 2.0)),
    "sticks": _one_of(None, (2.0, 3.0), [0.5, 1]),
    "blocks": _one_of({(0, 1): sb.Gaussian()}, {0: sb.Poisson(), 1: sb.DiagonalGaussian()}),
    "covariance": _square,
    "discount": _one_of(0.1, 0.5, 0.9, sb.Beta(1.0, 2.0)),
    "dof": _one_of(None, 3.0, 7),
    "failures": _one_of(None, 1.0, [0.5, 2.0]),
    "levels": _one_of(None, 3, [2, 4]),
    "mass": _one_of(0.5, 2.0, sb.Gamma(1.0, 1.0)),
    "mean": _one_of(None, [0.0, 1.0]),
    "mean_precision": _one_of(None, 0.1, 1.0),
    "prior": _one_of(None, "rule"),
    "pseudo_counts": _one_of(None, 0.5, [0.5, 2.0]),
    "rate": _one_of(None, 1.0, 2),
    "resolution": _one_of(None, 0.0, [0.1, 0.0]),
    "scale": lambda rng: None if rng.random() < 0.3 else _square(rng),
    "shape": _one_of(None, 1.5, 2.0),
    "tail_dof": _one_of(None, 3.0, 1, 1000),
    "dispersion": _one_of(None, 3.0, [0.5, 2.0]),
    "successes": _one_of(None, 1.0, [0.5, 2.0]),
    "truncation": _one_of("nested", "tail"),
    "word_concentration": _one_of(0.1, None, 1),
    "a": _ONE,
    "b": _ONE,
    "Background(outliers)": _one_of(0.5, 1),
    "Background(inliers)": _one_of(20, 99.0),
    "Background(centre)": _one_of(None, [0.0, 1.0]),
    "Background(reach)": _one_of(None, 2.0, [1.0, 3.0]),
    "Background(tails)": _one_of(None, 0.1, 1.0),
    "Background(spread)": _one_of(None, 2.0),
    "background": _one_of(None, sb.Background()),
    "Gamma(shape)": _ONE,
    "Gamma(rate)": _ONE,
    "MixtureOfFiniteMixtures(concentration)": _ONE,
    "MixtureOfFiniteMixtures(rate)": _ONE,
    "NegativeBinomial(exposure)": _one_of(None, 1, "a", "total"),
    "Poisson(exposure)": _one_of(None, 1, "a", "total"),
    "likelihood": lambda rng: _model(rng).likelihood,
    "process": lambda rng: _model(rng).process,
    "TopicModel(process)": _one_of(sb.LatentDirichlet(2), sb.LatentDirichlet(3, None)),
    # Algorithms, moves, units and samplers
    "adoption": _one_of("split", "pass"),
    "batch_size": _one_of(1, 5, 100),
    "batches": _one_of("auto", 1, 2),
    "bounds_memory": _one_of(1, 2**20),
    "shard_rows": _one_of(7, 2**17),
    "budget": _one_of(None, 10),
    "candidates": _FEW,
    "decay": _one_of(0.6, 1.0),
    "delay": _one_of(0.0, 10.0),
    "depth": _FEW,
    "evenness": _one_of("max", "max/n"),
    "exact": _FLAG,
    "expand_every": _FEW,
    "first_pass": _one_of("plain", "scaled"),
    "fresh": _FEW,
    "global_moves": _FEW,
    "local": _one_of("uniform", "guided"),
    "margin": _one_of(None, 20.0, 5),
    "max_passes": _one_of(0, 1, 2),
    "max_steps": _one_of(1, 20),
    "max_subsample": _one_of(2, 100),
    "moves": _one_of((), (sb.Birth(), sb.Merge()), [sb.Delete()]),
    "objective": _one_of(None, "variational", "map"),
    "proposal": _one_of("restricted", "sequential"),
    "refine": _FLAG,
    "restarts": _one_of(0, 2),
    "rule": _one_of("gain", "responsibility"),
    "scans": _FEW,
    "shuffle": _FLAG,
    "sparsity": _one_of("auto", None, 1, 2),
    "split": _one_of("axis", "principal"),
    "step_tol": _one_of(0.0, 0.05),
    "subset": _one_of(None, 2),
    "threshold": _one_of(0.1, 0.5),
    "tol": _one_of(0.0, 1e-3),
    "tolerance": _one_of(0.0, 0.1),
    "trees": _one_of("guide", "fresh"),
    "units": _one_of(None, "auto", sb.KdTree(depth=2), sb.Words()),
    "warm_start": _FLAG,
    # Functions that fit, sample and compare
    "X": _rows,
    "algorithm": _one_of(None, sb.Full(max_passes=2), sb.Memoized(2, max_passes=2), sb.Stochastic(5, max_passes=2)),
    "callbacks": _one_of((), [lambda _: False], [lambda _: True]),
    "chains": _FEW,
    "checkpoint": _NONE,
    "cluster": _NONE,
    "data": _rows,
    "draws": _FEW,
    "every_seconds": _one_of(0, 1.5),
    "fits": lambda rng: [_fits()[0], _fits()[rng.integers(4)]],
    "folds": _one_of(2, 3),
    "held_out": lambda rng: None if rng.random() < 0.5 else _rows(rng),
    "instructions": _one_of(None, "portable"),
    "init": _one_of("kmeans++", "random"),
    "sample(init)": _one_of(None, "single", "singletons", "ibhc"),
    "labels": _LABELS,
    "max_seconds": _one_of(None, 0.5),
    "until": _one_of(None, sb.Until(20.0, 1.5)),
    "rhat": _one_of(1.01, 2.0),
    "ess": _one_of(100, 400.0),
    "method": _one_of("bhc", "incremental"),
    "missing": _one_of("error", "marginalize"),
    "model": lambda rng: _model(rng) if rng.random() < 0.8 else sb.TopicModel(sb.LatentDirichlet(2)),
    "n": _one_of(1, 5),
    "n_components": _one_of(None, 1, 2),
    "FiniteDirichlet(n_components)": _FEW,
    "n_init": _one_of(1, 2),
    "n_topics": _FEW,
    "n_trials": _FEW,
    "partial_labels": _LABELS,
    "path": _path,
    "progress": _one_of(False),
    "responsibilities": lambda rng: rng.dirichlet([1.0, 1.0], size=20),
    "sample_weight": _weights,
    "exposure": _weights,
    "sampler": _one_of(None, sb.CollapsedGibbs(), sb.SplitMerge(), sb.TreeGuided(global_moves=2)),
    "seed": _SEED,
    "split_zeros(columns)": _one_of("a", ["a", "b"], ["b"]),
    "thin": _one_of(1, 2),
    "threads": _one_of(1),
    "warmup": _one_of(0, 1, 2),
    # Methods
    "X_new": _rows,
    "columns": _COLUMNS,
    "Fit.(columns)": _one_of([0], [1, 0], 1),
    "Density.(columns)": _one_of([0], 1, [1, 0]),
    "docs": _counts,
    "given": _one_of({0: 1.0}, {1: 0.0}, {}),
    "level": _one_of(0.5, 0.9),
    "measure": _one_of("npmi", "umass"),
    "Trace.(chain)": _one_of(0),
    "Trace.(draw)": _one_of(0, 1),
    "k": _one_of(None, 1, 2),
    "keep_rows": _one_of(None, [0, 2]),
    "log_likelihood": _FLAG,
    "loss": _one_of("vi", "binder"),
    "max_clusters": _one_of(None, 1, 3),
    "max_lag": _one_of(None, 0, 1),
    "precision": _one_of(0.05, 0.1),
    "probability": _one_of(0.9, 0.95),
    "quantile": _one_of(0.1, 0.5),
    "runs": _FEW,
    "size": _one_of(3, 2000),
    "Trace.save(rows)": _FLAG,
    "metric": _one_of("vi", "binder", "ari"),
    "partition_distance(a)": _LABELS,
    "partition_distance(b)": _LABELS,
    "memo": _FLAG,
    "min_words": _FEW,
    "n_clusters": _one_of(None, 1, 2),
    "n_seeds": _one_of(2, 3),
    "name": _one_of("log_joint", "n_clusters", "largest_cluster", "concentration"),
    "other": _fit,
    "plug_in": _FLAG,
    "return_variance": _FLAG,
    "rows": _one_of(None, [0, 1, 5]),
    "sparse": _FLAG,
    "tail": _FLAG,
    "test": _counts,
    "unseen": _one_of("ignore", "error"),
    "vocabulary": _one_of(None, ["a", "b", "c", "d"]),
    "Hierarchy.(method)": _one_of("bhc", "map"),
    "TopicFit.(method)": _one_of("map", "vb", "ml"),
    "TopicFit.(concentration)": _one_of(0.1, 1.0),
    # Pictures
    "ax": _NONE,
    "column": _one_of(0, 1),
    "component": _one_of(0, 1),
    "fit": _fit,
    "n_columns": _FEW,
    "n_words": _FEW,
    "number": _one_of(0, 1),
    "trace": lambda _: _trace(),
    "traces": lambda _: [_trace()],
    "tree": lambda _: _tree(),
    "plot.dendrogram(method)": _one_of("bhc", "map"),
    "plot.topic(fit)": lambda _: _topics(),
    "plot.topics(fit)": lambda _: _topics(),
    # Estimators of scikit-learn
    "deep": _FLAG,
    "n_samples": _FEW,
    "random_state": _one_of(None, 3),
    "verbose": _one_of(False),
    "y": _NONE,
    "sklearn.TopicModel.(X)": _counts,
    "sklearn.(concentration)": _one_of(None, 0.5),
    # Errors, warnings and records
    "accepted": _FEW,
    "allowed": _one_of("an integer"),
    "argument": _one_of(None, "seed"),
    "base_measure_gain": _ONE,
    "basis": lambda _: np.eye(2),
    "residual": _one_of(()),
    "chain": _FEW,
    "clusters": _one_of((0, 1)),
    "constant": _one_of(()),
    "dependent": _one_of(()),
    "elbo": _ONE,
    "evaluated_share": _ONE,
    "found": _one_of("1.5"),
    "gain": _ONE,
    "gap": _ONE,
    "index": _FEW,
    "kind": _one_of("", "merge"),
    "label": _one_of(1, "a"),
    "log_joint": _ONE,
    "message": _one_of("words"),
    "n_units": _FEW,
    "n_batches": _FEW,
    "overlap": _ONE,
    "proposed": _FEW,
    "rank": _FEW,
    "refused": _one_of({}),
    "seconds": _ONE,
    "share": _ONE,
    "suggestions": _one_of((), ("more passes",)),
    "text": _one_of("words"),
}
