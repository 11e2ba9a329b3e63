"""Every law that `stickbreak.testing` checks, of every likelihood and process there is.

Mathematics 7, numbers 1, 4, 5, 6, 20 and 21, on clean and degenerate data, weighted or not, in float32 and float64.
"""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from stickbreak.testing import (
    Problem,
    check_additive_summaries,
    check_determinism,
    check_laws,
    check_monotone_bound,
    check_permutation,
    check_recomputed_elbo,
    problems,
)


@given(problems())
def test_the_bound_never_falls(problem: Problem) -> None:
    """Number 1: at every sparsity, in any batches, from the end of the first pass on."""
    algorithm = dataclasses.replace(problem.algorithm, max_passes=15)
    check_monotone_bound(problem.model, problem.X, algorithm, **problem.options)


@given(problems())
def test_the_bound_is_that_of_the_responsibilities(problem: Problem) -> None:
    """Number 6, for any remembered batches."""
    check_recomputed_elbo(problem.model, problem.X, problem.algorithm, **problem.options)


@given(problems())
def test_summaries_add(problem: Problem) -> None:
    """Number 5: the summary of all rows is the sum of those of any parts, in any order of the rows."""
    check_additive_summaries(problem.model, problem.X, problem.algorithm, **problem.options)


@given(problems())
def test_order_of_rows(problem: Problem) -> None:
    """Number 4: permuted rows give the same bound and permuted answers."""
    check_permutation(problem.model, problem.X, **problem.options)


@given(problems(kinds=["clusters"], dtype="float64"), st.integers(1, 5))
def test_order_of_rows_over_passes(problem: Problem, sparsity: int) -> None:
    """Number 4: also after passes at any sparsity, where no rows are alike and so no components tie."""
    algorithm = sb.Full(sparsity=min(sparsity, problem.n_components), max_passes=3, tol=0.0)
    check_permutation(problem.model, problem.X, algorithm, **problem.options)


@given(problems())
def test_same_seed_same_bits(problem: Problem) -> None:
    """Number 21, for small and degenerate data; `test_determinism.py` has enough rows to keep threads busy."""
    check_determinism(problem.model, problem.X, problem.algorithm, **problem.options)


@given(problems())
def test_all_laws_at_once(problem: Problem) -> None:
    check_laws(problem.model, problem.X, problem.algorithm, **problem.options)
