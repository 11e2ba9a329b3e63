"""Hypothesis strategies for the parts of a fit: specifications, rows, weights, algorithms.

Hypothesis draws sizes, kinds and seeds, and arrays are then made from the seed. This is fast, and failing examples
shrink to few rows, columns and components of the simplest kind.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import DTypeLike, NDArray

from stickbreak import checks
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.mixture import Mixture
from stickbreak.model.processes import Process
from stickbreak.run.algorithms import Full, Memoized, Stochastic
from stickbreak.testing.generators import DOMAINS, Setting, random_rows, random_specification

MAX_COMPONENTS = 5
MAX_COLUMNS = 4
MAX_ROWS = 40
WEIGHTS = (0.5, 1.0, 2.0, 3.25)

seeds = st.integers(0, 2**32 - 1).map(np.random.default_rng)


def likelihoods(
    dimension: int = 2,
    *,
    kinds: Sequence[type[Likelihood]] | None = None,
    filled: bool | None = None,
    setting: Setting | None = None,
) -> st.SearchStrategy[Likelihood]:
    """Draw a likelihood for rows of a given number of columns.

    Parameters
    ----------
    dimension : int
        D, the number of columns.
    kinds : sequence of types, optional
        The classes to draw from. Default: all that exist.
    filled : bool, optional
        Whether every parameter has a value (True) or takes its data-dependent default if it has one (False). Default:
        either.
    setting : stickbreak.testing.generators.Setting, optional
        Location and spread of the rows, to which parameters are adapted; it has its own number of columns. Default:
        about zero, with a spread of about one.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of Likelihood

    Examples
    --------
    >>> from hypothesis import given
    >>> import stickbreak as sb
    >>> from stickbreak.testing import likelihoods
    >>> @given(likelihoods(3, kinds=[sb.Gaussian], filled=True))
    ... def test_mean_has_a_value_for_each_column(likelihood):
    ...     assert likelihood.mean.shape == (3,)
    >>> test_mean_has_a_value_for_each_column()
    """
    checks.integer("dimension", dimension, minimum=1)
    where = setting or Setting(dimension)
    return st.builds(
        lambda rng, kind, with_values: random_specification(rng, kind, where, filled=with_values),
        seeds,
        st.sampled_from(kinds_of("kinds", kinds, Likelihood)),
        st.booleans() if filled is None else st.just(filled),
    )


def processes(
    n_components: int | None = None, *, kinds: Sequence[type[Process]] | None = None
) -> st.SearchStrategy[Process]:
    """Draw a prior on the weights.

    Parameters
    ----------
    n_components : int, optional
        The number of components of a process with a fixed number. Default: any from 1 to 5.
    kinds : sequence of types, optional
        The classes to draw from. Default: all that `fit` supports.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of Process

    Examples
    --------
    >>> from hypothesis import given
    >>> from stickbreak.testing import processes
    >>> @given(processes())
    ... def test_repr(process):
    ...     assert "concentration=" in repr(process)
    >>> test_repr()
    """
    if n_components is not None:
        checks.integer("n_components", n_components, minimum=1)
    number = st.integers(1, MAX_COMPONENTS) if n_components is None else st.just(n_components)
    return st.builds(
        lambda rng, kind, chosen: random_specification(rng, kind, Setting(1), n_components=chosen),
        seeds,
        st.sampled_from(kinds_of("kinds", kinds, Process)),
        number,
    )


def models(
    dimension: int = 2,
    *,
    n_components: int | None = None,
    likelihoods: Sequence[type[Likelihood]] | None = None,
    processes: Sequence[type[Process]] | None = None,
    filled: bool | None = None,
) -> st.SearchStrategy[Mixture]:
    """Draw a model for rows of a given number of columns.

    Parameters
    ----------
    dimension : int
        D, the number of columns.
    n_components : int, optional
        The number of components of a process with a fixed number. Default: any from 1 to 5.
    likelihoods, processes : sequence of types, optional
        The classes to draw from. Default: all that exist.
    filled : bool, optional
        Whether every parameter of the likelihood has a value (True) or takes its data-dependent default if it has one
        (False). Default: either.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of Mixture

    Examples
    --------
    >>> import pickle
    >>> from hypothesis import given
    >>> from stickbreak.testing import models
    >>> @given(models(3))
    ... def test_pickle(model):
    ...     assert pickle.loads(pickle.dumps(model)) == model
    >>> test_pickle()
    """
    return st.builds(
        Mixture,
        likelihood=_likelihoods(dimension, kinds=likelihoods, filled=filled),
        process=_processes(n_components, kinds=processes),
    )


# The strategies of these names, for functions in which an argument hides them.
_likelihoods, _processes = likelihoods, processes


def rows(
    n: int | None = None,
    dimension: int | None = None,
    *,
    domain: str = "real",
    kinds: Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
) -> st.SearchStrategy[NDArray[Any]]:
    """Draw rows of data, clean or degenerate.

    Parameters
    ----------
    n : int, optional
        The number of rows. Default: any from 2 to 40.
    dimension : int, optional
        D, the number of columns. Default: any from 1 to 4.
    domain : {"real", "centred", "counts", "binary", "codes", "mixed"}
        The domain of the values: numbers; numbers with columns of mean zero; integers from 0; zeros and ones; integer
        codes from 0 to 3.
    kinds : sequence of str, optional
        The kinds to draw from. Default: all of the domain. Every domain has "clusters", "duplicates" (few distinct
        rows) and "constant_columns". Numbers have "collinear", "scaled" (by 1e-12 to 1e12) and "outlier", and "real"
        also has "offset" (by up to 1e8 for data of size one). Counts, codes, and zeros and ones have "zero_rows" and
        "zero_columns". Counts have "outlier" (one row a thousand times as large) and "large" (up to 20,000).
    dtype : dtype, optional
        float32 or float64. Default: either.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of ndarray of shape (n, D)

    Examples
    --------
    >>> from hypothesis import given
    >>> from stickbreak.testing import rows
    >>> @given(rows(20, 3, kinds=["constant_columns"], dtype="float64"))
    ... def test_some_column_is_constant(X):
    ...     assert (X == X[0]).all(axis=0).any()
    >>> test_some_column_is_constant()
    """
    known = list(DOMAINS[checks.word("domain", domain, list(DOMAINS))])
    allowed = f"a sequence of words with at least one, among {', '.join(known)}"
    chosen = (
        known
        if kinds is None
        else [checks.word("kinds", kind, known) for kind in checks.items("kinds", kinds, allowed)]
    )
    if not chosen:
        raise checks.invalid_argument("kinds", "empty", allowed)
    dtypes = [np.dtype(np.float64), np.dtype(np.float32)]
    if dtype is not None:
        if np.dtype(dtype) not in dtypes:
            raise checks.invalid_argument("dtype", repr(dtype), "float32 or float64")
        dtypes = [np.dtype(dtype)]
    return _rows(
        st.integers(2, MAX_ROWS) if n is None else st.just(checks.integer("n", n, minimum=1)),
        st.integers(1, MAX_COLUMNS)
        if dimension is None
        else st.just(checks.integer("dimension", dimension, minimum=1)),
        domain,
        st.sampled_from(chosen),
        st.sampled_from(dtypes),
    )


@st.composite
def _rows(
    draw: st.DrawFn,
    n: st.SearchStrategy[int],
    dimension: st.SearchStrategy[int],
    domain: str,
    kinds: st.SearchStrategy[str],
    dtypes: st.SearchStrategy[np.dtype[Any]],
) -> NDArray[Any]:
    drawn = random_rows(draw(seeds), draw(n), draw(dimension), domain=domain, kind=draw(kinds))
    return drawn.astype(draw(dtypes))


def sample_weights(n: int, *, zeros: bool = True) -> st.SearchStrategy[NDArray[np.float64]]:
    """Draw weights of rows: all one, a few values, or spread from 0.1 to 10.

    Parameters
    ----------
    n : int
        The number of rows.
    zeros : bool
        Whether some weights, but never all, may be zero.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of ndarray of float64, shape (n,)

    Examples
    --------
    >>> from hypothesis import given
    >>> from stickbreak.testing import sample_weights
    >>> @given(sample_weights(10, zeros=False))
    ... def test_positive(weights):
    ...     assert (weights > 0).all()
    >>> test_positive()
    """
    return _sample_weights(checks.integer("n", n, minimum=1), checks.flag("zeros", zeros))


@st.composite
def _sample_weights(draw: st.DrawFn, n: int, zeros: bool) -> NDArray[np.float64]:
    rng = draw(seeds)
    kinds = {
        "ones": np.ones(n),
        "few": rng.choice(WEIGHTS, size=n),
        "spread": 10.0 ** rng.uniform(-1.0, 1.0, size=n),
    }
    weights = kinds[draw(st.sampled_from(list(kinds)))]
    if zeros and draw(st.booleans()):
        absent = rng.random(n) < 0.3
        absent[rng.integers(n)] = False
        weights = np.where(absent, 0.0, weights)
    return weights


def algorithms(
    *,
    n: int,
    n_components: int,
    max_passes: int | None = None,
    kinds: Sequence[type[Full | Memoized | Stochastic]] | None = None,
) -> st.SearchStrategy[Any]:
    """Draw an algorithm that never stops early, with its batches, sparsity and margin. It has no moves and no tree.

    Parameters
    ----------
    n : int
        The number of rows, which bounds the number of batches.
    n_components : int
        K, the number of components, which bounds the sparsity.
    max_passes : int, optional
        The number of passes. Default: any from 1 to 8.
    kinds : sequence of type, optional
        The classes to draw from. Default: `Full` and `Memoized`, whose bound never falls. The other is `Stochastic`.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of Full, Memoized or Stochastic

    Examples
    --------
    >>> from hypothesis import given
    >>> import stickbreak as sb
    >>> from stickbreak.testing import algorithms
    >>> @given(algorithms(n=3, n_components=5))
    ... def test_batches(algorithm):
    ...     assert isinstance(algorithm, sb.Full) or algorithm.batches <= 3
    >>> test_batches()
    """
    passes = st.integers(1, 8) if max_passes is None else st.just(checks.integer("max_passes", max_passes, minimum=0))
    known, allowed = (Full, Memoized, Stochastic), "a sequence of some of Full, Memoized and Stochastic"
    chosen = list(known[:2]) if kinds is None else checks.items("kinds", kinds, allowed)
    for kind in chosen:
        if kind not in known:
            raise checks.invalid_type("kinds", checks.describe(kind), allowed)
    if not chosen:
        raise checks.invalid_argument("kinds", "empty", allowed)
    return _algorithms(
        checks.integer("n", n, minimum=1),
        checks.integer("n_components", n_components, minimum=1),
        passes,
        st.sampled_from(chosen),
    )


@st.composite
def _algorithms(
    draw: st.DrawFn,
    n: int,
    n_components: int,
    passes: st.SearchStrategy[int],
    kinds: st.SearchStrategy[type[Full | Memoized | Stochastic]],
) -> Full | Memoized | Stochastic:
    settings: dict[str, Any] = {
        "sparsity": draw(st.sampled_from([None, "auto", *range(1, n_components + 1)])),
        # Components beyond this margin are below rounding, so they do not affect the laws.
        "margin": draw(st.sampled_from([None, 40.0])),
        "max_passes": draw(passes),
        "tol": 0.0,
    }
    kind = draw(kinds)
    if kind is Full:
        return Full(**settings)
    settings["shuffle"] = draw(st.booleans())
    if kind is Memoized:
        return Memoized(batches=draw(st.integers(1, min(n, 6))), **settings)
    settings |= {"delay": draw(st.sampled_from([1.0, 10.0])), "decay": draw(st.sampled_from([0.6, 0.9]))}
    return Stochastic(draw(st.integers(1, n)), **settings)


def kinds_of(argument: str, kinds: Sequence[type[Any]] | None, base: type[Any]) -> list[type[Any]]:
    """Return the classes to draw from; by default all that `fit` supports."""
    if kinds is None:
        return [
            kind for kind in base.__subclasses__() if kind._family != "processes" or "weights" in kind._entry["faces"]
        ]
    allowed = f"a sequence of classes of {base.__name__}, with at least one"
    chosen = checks.items(argument, kinds, allowed)
    for kind in chosen:
        if not (isinstance(kind, type) and issubclass(kind, base)):
            raise checks.invalid_type(argument, checks.describe(kind), allowed)
    if not chosen:
        raise checks.invalid_argument(argument, "empty", allowed)
    return chosen
