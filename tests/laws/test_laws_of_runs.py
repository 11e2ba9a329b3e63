"""Laws of moves, stochastic steps, kd-trees, samplers and topic models, on problems that `stickbreak.testing` draws."""

import dataclasses
import warnings
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import stickbreak as sb
from stickbreak import testing
from stickbreak.testing import Problem, problems

# Kinds of rows that no sampler refuses: six duplicates may be all equal.
PLAIN = ["clusters", "outlier"]


@given(problems(moves=True))
def test_moves(problem: Problem) -> None:
    """Moves keep their word, and the bound of what they leave is that of its responsibilities."""
    arguments = (problem.model, problem.X, problem.algorithm)
    testing.check_monotone_bound(*arguments, **problem.options)
    testing.check_gains(*arguments, **problem.options)
    testing.check_recomputed_elbo(*arguments, **problem.options)


@given(problems(), st.data())
def test_stochastic_steps(problem: Problem, data: st.DataObject) -> None:
    """They may lower the bound, but a step is the same for any number of threads, and its summaries are additive."""
    n, k = len(problem.X), problem.n_components
    algorithm = data.draw(testing.algorithms(n=n, n_components=k, max_passes=3, kinds=[sb.Stochastic]))
    arguments: Any = (problem.model, problem.X, algorithm)
    testing.check_determinism(*arguments, **problem.options)
    testing.check_additive_summaries(*arguments, **problem.options)


@given(problems(), testing.trees())
def test_trees(problem: Problem, tree: sb.KdTree) -> None:
    """Opened nodes never lower the bound, at most that of the rows; a tree of single rows is the same as rows."""
    likelihood = problem.model.likelihood
    assume(not isinstance(likelihood, sb.Columns) and not likelihood._supports("hidden"))
    algorithm = dataclasses.replace(problem.algorithm, units=tree)
    testing.check_monotone_bound(problem.model, problem.X, algorithm, **problem.options)
    testing.check_opened_tree(problem.model, problem.X, **problem.options)


@given(problems(n=6, kinds=PLAIN, dtype="float64"), testing.samplers(n=6), st.integers(0, 2**32))
def test_draws(problem: Problem, sampler: Any, seed: int) -> None:
    """Of the combinations that are supported: docs/samplers.md has their table, and a test that it is right."""
    try:
        testing.check_draws(problem.model, problem.X, sampler, seed=seed)
    except sb.NotSupported:
        assume(False)  # hypothesis then draws another, and fails if too few are left


@given(testing.topic_models(), testing.documents(12, 9), st.integers(0, 2**32), st.sampled_from([None, 1, 2]))
def test_topics(model: sb.TopicModel, counts: np.ndarray, seed: int, sparsity: int | None) -> None:
    n_topics = model.process.n_topics
    assume(n_topics <= counts.sum() and (sparsity or 1) <= n_topics)
    for algorithm in (
        sb.Full(sparsity=sparsity, max_passes=6, tol=0.0),
        sb.Memoized(batches=3, sparsity=sparsity, max_passes=3, tol=0.0),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            testing.check_topics(model, counts, algorithm, seed=seed)
