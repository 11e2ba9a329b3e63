"""Whole problems: a model, rows that suit it, weights, an algorithm and a start, which all fit together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray

from stickbreak.algorithms import Full, Memoized
from stickbreak.likelihoods import Likelihood
from stickbreak.model import Mixture
from stickbreak.processes import Process
from stickbreak.testing import strategies
from stickbreak.testing.generators import random_responsibilities, random_specification, setting_of
from stickbreak.testing.laws import FitOptions


@dataclass(frozen=True)
class Problem:
    """What a fit needs, as `problems` draws it.

    Parameters
    ----------
    model : Mixture
        The model.
    X : ndarray of shape (n, D)
        The rows, float32 or float64.
    algorithm : Full or Memoized
        An algorithm that never stops early.
    n_components : int
        K, the number of components, at most n.
    sample_weight : ndarray of shape (n,) or None
        Weights of the rows.
    init : str or ndarray of shape (n, K)
        A way to start, or responsibilities to start from.
    seed : int
        Decides what is random in the fit.
    """

    model: Mixture
    X: NDArray[Any]
    algorithm: Full | Memoized
    n_components: int
    sample_weight: NDArray[np.float64] | None
    init: str | NDArray[np.float64]
    seed: int

    @property
    def options(self) -> FitOptions:
        """The remaining arguments of `stickbreak.fit` and of the checks, by name."""
        return {
            "n_components": self.n_components,
            "sample_weight": self.sample_weight,
            "init": self.init,
            "seed": self.seed,
        }


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    n: int | None = None,
    dimension: int | None = None,
    n_components: int | None = None,
    likelihoods: Sequence[type[Likelihood]] | None = None,
    processes: Sequence[type[Process]] | None = None,
    filled: bool | None = None,
    kinds: Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
) -> Problem:
    """Draw a whole problem. What is given is fixed, the rest is drawn to fit.

    Parameters
    ----------
    n, dimension, n_components : int, optional
        Numbers of rows, columns and components. Default: any from 2 to 40, from 1 to 4, from 1 to 5.
    likelihoods, processes : sequence of types, optional
        The classes to draw from. Default: all that exist.
    filled : bool, optional
        Whether every parameter of the likelihood has a value, or follows the data wherever it may. Default: either.
    kinds : sequence of str, optional
        The kinds of data to draw from, see `rows`. Default: all that the likelihood is made for.
    dtype : dtype, optional
        float32 or float64. Default: either.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of Problem

    Examples
    --------
    >>> from hypothesis import given, settings
    >>> import stickbreak as sb
    >>> from stickbreak.testing import problems
    >>> @settings(max_examples=5)
    ... @given(problems(kinds=["duplicates", "collinear"]))
    ... def test_weights_have_sum_one(problem):
    ...     fit = sb.fit(problem.model, problem.X, problem.algorithm, **problem.options)
    ...     assert abs(fit.weights.sum() + fit.leftover_weight - 1) < 1e-12
    >>> test_weights_have_sum_one()
    """
    kind = draw(st.sampled_from(strategies._kinds("likelihoods", likelihoods, Likelihood)))
    least = 2 if n_components is None else max(2, n_components)
    n = draw(st.integers(least, strategies.MAX_ROWS)) if n is None else n
    X = draw(strategies.rows(n, dimension, domain=kind._domain, kinds=kinds, dtype=dtype))
    if n_components is None:
        n_components = draw(st.integers(1, min(strategies.MAX_COMPONENTS, n)))
    with_values = draw(st.booleans()) if filled is None else filled
    likelihood = random_specification(
        draw(strategies.seeds), kind, setting_of(np.asarray(X, np.float64)), filled=with_values
    )
    process = draw(strategies.processes(n_components, kinds=processes))
    return Problem(
        model=Mixture(likelihood=likelihood, process=process),
        X=X,
        algorithm=draw(strategies.algorithms(n=n, n_components=n_components)),
        n_components=n_components,
        sample_weight=draw(st.none() | strategies.sample_weights(n)),
        init=draw(_starts(n, n_components)),
        seed=draw(st.integers(0, 2**64 - 1)),
    )


@st.composite
def _starts(draw: st.DrawFn, n: int, n_components: int) -> str | NDArray[np.float64]:
    words = draw(st.sampled_from([None, "kmeans++", "random"]))
    if words is not None:
        return words
    return random_responsibilities(draw(strategies.seeds), n, n_components, draw(st.integers(1, n_components)))
