"""Hypothesis strategies for moves, trees, samplers and topic models.

Classes of moves and samplers follow the registry, so new ones are drawn unasked.
"""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.model.processes import LatentDirichlet
from stickbreak.model.topic_model import TopicModel
from stickbreak.run.moves import Move
from stickbreak.run.samplers import Sampler
from stickbreak.run.units import KdTree
from stickbreak.testing.strategies import seeds

# Integers are drawn from the smallest allowed value up to this much more.
_MORE = 8


def moves() -> st.SearchStrategy[tuple[Move, ...]]:
    """Draw one or more moves for ``Memoized(moves=...)`` and ``Full(moves=...)``, each kind at most once.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of tuple of Move

    Examples
    --------
    >>> from hypothesis import given
    >>> import stickbreak as sb
    >>> from stickbreak.testing import moves
    >>> @given(moves())
    ... def test_moves_are_kept(drawn):
    ...     assert sb.Memoized(moves=drawn).moves == drawn
    >>> test_moves_are_kept()
    """
    one = st.sampled_from(Move.__subclasses__()).flatmap(_with_parameters)
    return st.lists(one, min_size=1, max_size=4, unique_by=type).map(tuple)


def trees() -> st.SearchStrategy[KdTree]:
    """Draw a kd-tree for ``Full(units=...)`` and ``Memoized(units=...)``.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of KdTree

    Examples
    --------
    >>> from hypothesis import given
    >>> import stickbreak as sb
    >>> from stickbreak.testing import trees
    >>> @given(trees())
    ... def test_trees_are_kept(tree):
    ...     assert sb.Full(units=tree).units == tree
    >>> test_trees_are_kept()
    """
    return st.builds(
        KdTree,
        depth=st.integers(0, 8),
        expand_every=st.integers(1, 4),
        rule=st.sampled_from(["gain", "responsibility"]),
        tolerance=st.sampled_from([0.0, 1e-3, 0.1]),
        budget=st.none() | st.integers(1, 40),
        split=st.sampled_from(["axis", "principal"]),
        refine=st.booleans(),
    )


def samplers(*, n: int) -> st.SearchStrategy[Sampler]:
    """Draw a sampler.

    Parameters
    ----------
    n : int
        The number of rows, which bounds the rows that a sweep visits. `BlockedGibbs` has at least as many components.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of Sampler

    Examples
    --------
    >>> from hypothesis import given
    >>> import stickbreak as sb
    >>> from stickbreak.testing import samplers
    >>> @given(samplers(n=5))
    ... def test_rows_of_a_sweep(sampler):
    ...     assert (getattr(sampler, "subset", None) or 0) <= 5
    >>> test_rows_of_a_sweep()
    """
    n = checks.integer("n", n, minimum=1)
    given = {"subset": st.none() | st.integers(1, n), "truncation": st.integers(n + 1, n + _MORE)}
    return st.sampled_from(Sampler.__subclasses__()).flatmap(lambda kind: _with_parameters(kind, **given))


def topic_models(*, n_topics: int | None = None) -> st.SearchStrategy[TopicModel]:
    """Draw a topic model, with given or estimated concentrations.

    Parameters
    ----------
    n_topics : int, optional
        K. Default: any from 1 to 5.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of TopicModel

    Examples
    --------
    >>> from hypothesis import given
    >>> from stickbreak.testing import topic_models
    >>> @given(topic_models(n_topics=3))
    ... def test_topics(model):
    ...     assert model.process.n_topics == 3
    >>> test_topics()
    """
    number = st.integers(1, 5) if n_topics is None else st.just(checks.integer("n_topics", n_topics, minimum=1))
    prior = st.none() | st.floats(0.05, 5.0)
    return st.builds(TopicModel, st.builds(LatentDirichlet, number, concentration=prior), word_concentration=prior)


def documents(n: int, n_words: int) -> st.SearchStrategy[NDArray[np.float64]]:
    """Draw counts of words: documents of a few topics, long and short, sometimes repeated or empty.

    Parameters
    ----------
    n : int
        The number of documents.
    n_words : int
        V, the size of the vocabulary, at least 2. Some words may not occur.

    Returns
    -------
    hypothesis.strategies.SearchStrategy of ndarray of float64, shape (n, V)

    Examples
    --------
    >>> from hypothesis import given
    >>> from stickbreak.testing import documents
    >>> @given(documents(6, 10))
    ... def test_counts(counts):
    ...     assert counts.shape == (6, 10) and (counts >= 0).all() and counts.any()
    >>> test_counts()
    """
    return _documents(checks.integer("n", n, minimum=1), checks.integer("n_words", n_words, minimum=2))


@st.composite
def _documents(draw: st.DrawFn, n: int, n_words: int) -> NDArray[np.float64]:
    rng = draw(seeds)
    topics = rng.dirichlet(np.full(n_words, 0.2), size=3)
    shares = rng.dirichlet(np.full(3, 0.5), size=n)
    counts = rng.poisson(10.0 ** rng.uniform(0.0, 2.5, size=(n, 1)) * (shares @ topics)).astype(np.float64)
    kind = draw(st.sampled_from(["plain", "repeated", "empty"]))
    if kind == "repeated":
        counts = counts[rng.integers(max(1, n // 3), size=n)]
    elif kind == "empty":
        counts[rng.random(n) < 0.3] = 0.0
    # There are enough words for a few topics.
    if counts.sum() < n_words:
        counts[0] += 1.0
    return counts


def _with_parameters(kind: type[Any], **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    rules = kind._entry["parameters"].items()
    return st.builds(kind, **{name: given[name] if name in given else _values(rule) for name, rule in rules})


def _values(rule: dict[str, Any]) -> st.SearchStrategy[Any]:
    if rule["kind"] == "word":
        return st.sampled_from(rule["words"])
    if rule["kind"] == "flag":
        return st.booleans()
    least, greatest = rule["range"]
    if rule["kind"] == "integer":
        return st.integers(least, min(greatest, least + _MORE))
    return st.floats(least, greatest, exclude_max=rule["below"])
