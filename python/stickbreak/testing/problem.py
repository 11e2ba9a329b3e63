"""Complete problems: a model, suitable rows, weights, an algorithm and a start."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray

from stickbreak import checks
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.mixture import Mixture
from stickbreak.model.processes import Process
from stickbreak.run.algorithms import Full, Memoized
from stickbreak.testing import runs, strategies
from stickbreak.testing.generators import DOMAINS, random_responsibilities, random_specification, setting_of
from stickbreak.testing.laws import FitOptions


@dataclass(frozen=True)
class Problem:
    """The arguments of a fit, as drawn by `problems`.

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
        An initialisation, or responsibilities to start from.
    seed : int
        Random seed of the fit.
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


def problems(
    *,
    n: int | None = None,
    dimension: int | None = None,
    n_components: int | None = None,
    likelihoods: Sequence[type[Likelihood]] | None = None,
    processes: Sequence[type[Process]] | None = None,
    filled: bool | None = None,
    kinds: Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
    moves: bool = False,
) -> st.SearchStrategy[Problem]:
    """Draw a complete problem. Given arguments are fixed, the others are drawn to match.

    Parameters
    ----------
    n, dimension, n_components : int, optional
        Numbers of rows, columns and components. Default: any from 2 to 40, from 1 to 4, from 1 to 5.
    likelihoods, processes : sequence of types, optional
        The classes to draw from. Default: all that exist.
    filled : bool, optional
        Whether every parameter of the likelihood has a value, or takes its data-dependent default if there is one.
        Default: either.
    kinds : sequence of str, optional
        The kinds of data to draw from, see `rows`. Likelihoods whose rows have none of these kinds are left out.
        Default: all kinds that suit the likelihood.
    dtype : dtype, optional
        float32 or float64. Default: either.
    moves : bool
        Whether the algorithm makes moves, where the model takes them.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of Problem

    Examples
    --------
    >>> import warnings
    >>> from hypothesis import given, settings
    >>> import stickbreak as sb
    >>> from stickbreak.testing import problems
    >>> @settings(max_examples=5)
    ... @given(problems(kinds=["duplicates", "collinear"]))
    ... def test_weights_have_sum_one(problem):
    ...     with warnings.catch_warnings():
    ...         warnings.simplefilter("ignore", sb.SupportWarning)
    ...         fit = sb.fit(problem.model, problem.X, problem.algorithm, **problem.options)
    ...     assert abs(fit.weights.sum() + fit.leftover_weight - 1) < 1e-12
    >>> test_weights_have_sum_one()
    """
    least = 2
    if n_components is not None:
        least = max(least, checks.integer("n_components", n_components, minimum=1, maximum=n or strategies.MAX_ROWS))
    n_rows = st.integers(least, strategies.MAX_ROWS) if n is None else st.just(checks.integer("n", n, minimum=2))
    chosen = strategies.kinds_of("likelihoods", likelihoods, Likelihood)
    priors = strategies.kinds_of("processes", processes, Process)
    if kinds is not None:
        known = sorted({kind for likelihood in chosen for kind in DOMAINS[likelihood._domain]})
        kinds = [checks.word("kinds", kind, known) for kind in kinds]
        chosen = [likelihood for likelihood in chosen if _kinds_for(likelihood, kinds)]
    of_rows = {"dimension": dimension, "dtype": dtype}
    return _problems(n_rows, n_components, chosen, priors, filled, kinds, of_rows, checks.flag("moves", moves))


def _kinds_for(likelihood: type[Likelihood], kinds: Sequence[str] | None) -> list[str]:
    """Return the kinds that suit a likelihood; by default all of them."""
    known = DOMAINS[likelihood._domain]
    return list(known) if kinds is None else [kind for kind in kinds if kind in known]


@st.composite
def _problems(
    draw: st.DrawFn,
    n_rows: st.SearchStrategy[int],
    n_components: int | None,
    likelihoods: Sequence[type[Likelihood]],
    processes: Sequence[type[Process]],
    filled: bool | None,
    kinds: Sequence[str] | None,
    of_rows: dict[str, Any],
    has_moves: bool,
) -> Problem:
    n, kind = draw(n_rows), draw(st.sampled_from(likelihoods))
    X = draw(strategies.rows(n, domain=kind._domain, kinds=_kinds_for(kind, kinds), **of_rows))
    if n_components is None:
        n_components = draw(st.integers(1, min(strategies.MAX_COMPONENTS, n)))
    likelihood = random_specification(
        draw(strategies.seeds),
        kind,
        setting_of(np.asarray(X, np.float64)),
        filled=draw(st.booleans()) if filled is None else filled,
    )
    # Weights move the mean: they could leave a single row far from zero.
    weights = strategies.sample_weights(n, zeros=kind._domain != "centred")
    model = Mixture(likelihood=likelihood, process=draw(strategies.processes(n_components, kinds=processes)))
    algorithm = draw(strategies.algorithms(n=n, n_components=n_components))
    if has_moves and model._takes_moves:
        algorithm = replace(algorithm, moves=draw(runs.moves()))
    return Problem(
        model=model,
        X=X,
        algorithm=algorithm,
        n_components=n_components,
        sample_weight=draw(st.none() | weights),
        init=draw(_starts(n, n_components)),
        seed=draw(st.integers(0, 2**64 - 1)),
    )


@st.composite
def _starts(draw: st.DrawFn, n: int, n_components: int) -> str | NDArray[np.float64]:
    word = draw(st.sampled_from(["kmeans++", "random", None]))
    if word is not None:
        return word
    return random_responsibilities(draw(strategies.seeds), n, n_components, draw(st.integers(1, n_components)))
