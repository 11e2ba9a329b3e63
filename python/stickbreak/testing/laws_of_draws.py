"""The laws that samplers and topic models obey, as checks like those of `stickbreak.testing.laws`."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from stickbreak import checks
from stickbreak.errors import BiasWarning, SupportWarning, TruncationWarning
from stickbreak.io import arrays
from stickbreak.model.mixture import Mixture
from stickbreak.model.topic_model import TopicModel
from stickbreak.result.history import of_the_same_rows
from stickbreak.result.topic_fit import TopicFit
from stickbreak.result.trace import Trace
from stickbreak.run.algorithms import Full, Memoized
from stickbreak.run.fitting import fit
from stickbreak.run.samplers import CollapsedGibbs, Sampler
from stickbreak.run.sampling import sample
from stickbreak.testing.arguments import numbers_of_threads
from stickbreak.testing.bits import require_same_bits
from stickbreak.testing.tolerances import BOUND, ESTIMATED, Tolerance, require_close, require_not_below


def check_draws(
    model: Mixture,
    X: ArrayLike,
    sampler: Sampler | None = None,
    *,
    draws: int = 20,
    seed: int = 0,
    threads: Sequence[int | None] = (1, 2),
) -> None:
    """Check that draws are partitions with their log joint, and the same for any number of threads.

    - Clusters are numbered in the order of first appearance; `n_clusters`, `largest_cluster` and `cluster_sizes` count
      what `partitions` has.
    - Every `log_joint` is finite. Under fixed parameters a partition has one: in every draw, in every chain, and under
      `CollapsedGibbs`. (Not where it depends on the order of labels, as under `DirichletProcess` with `sticks`.)
    - The same seed gives the same bits for any number of threads.

    Parameters
    ----------
    model : Mixture
        The model; parameters of the likelihood that are None are estimated first.
    X : array_like of shape (n, D)
        The rows. With few of them, more partitions occur twice.
    sampler : Sampler, optional
        How chains move. Default: ``CollapsedGibbs()``.
    draws : int
        The number of draws of each of two chains.
    seed : int
        Random seed of the chains.
    threads : sequence of int or None
        The numbers of threads. None means one per core.

    Raises
    ------
    AssertionError
        A law is broken.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_draws
    >>> X = np.random.default_rng(0).normal(size=(6, 2))
    >>> check_draws(sb.Mixture(sb.Gaussian()), X, sb.SplitMerge())
    """
    rows, chosen, threads = arrays.rows(X), sampler or CollapsedGibbs(), numbers_of_threads(threads)
    traces: list[Trace] = []

    def bits(number: int | None) -> dict[str, bytes]:
        traces.append(_sampled(model, rows, chosen, draws, seed, number))
        # Labels as floats, because a difference is told as one.
        found = {"partitions": traces[-1].partitions, "log_joint": traces[-1].log_joint}
        return {name: np.asarray(values, np.float64).tobytes() for name, values in found.items()}

    require_same_bits(bits, threads)
    trace = traces[0]
    _check_partitions(trace)
    if not trace.hyperparameters and getattr(model.process, "sticks", None) is None:
        other = _sampled(trace.model, rows, CollapsedGibbs(), draws, seed + 1, threads[0])
        # As in the bound of a fit, an estimated scale may be small in directions without scatter.
        _check_joints([trace, other], BOUND if trace.model == model else ESTIMATED)


def check_topics(
    model: TopicModel,
    X: ArrayLike,
    algorithm: Full | Memoized | None = None,
    *,
    seed: int = 0,
    threads: Sequence[int | None] = (1, 2),
) -> None:
    """Check that a fit of a topic model is sound, and the same for any number of threads.

    - The objective of `Full` never falls after its second pass, before which documents start afresh. (With topics as
      point estimates and ``word_concentration=None`` it may: the evidence of the words is raised instead.)
    - Topics, weights, and the shares of every document with words are not negative and add up to one; counts add up to
      the number of words.
    - The same seed gives the same bits for any number of threads.

    Parameters
    ----------
    model : TopicModel
        The model.
    X : array_like or sparse array of shape (n, V)
        Counts of words; a document may have none.
    algorithm : Full or Memoized, optional
        How to fit. Default: ``Full(max_passes=10, tol=0.0)``.
    seed : int
        Random seed of the fit.
    threads : sequence of int or None
        The numbers of threads. None means one per core.

    Raises
    ------
    AssertionError
        A law is broken.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_topics
    >>> counts = np.random.default_rng(0).poisson(1.0, size=(30, 8))
    >>> check_topics(sb.TopicModel(sb.LatentDirichlet(3)), counts)
    """
    checks.instance("model", model, TopicModel, "a TopicModel")
    table: Any = X
    table = table.toarray() if issparse(X) else arrays.numeric(X, "X", "counts of words")
    counts, chosen = np.asarray(table, dtype=np.float64), algorithm or Full(max_passes=10, tol=0.0)
    threads = numbers_of_threads(threads)
    fits: list[TopicFit] = []

    def bits(number: int | None) -> dict[str, bytes]:
        fits.append(_fitted(model, counts, chosen, seed, number))
        return _bits(fits[-1], counts)

    require_same_bits(bits, threads)
    found, words = fits[0], counts.sum(axis=1)
    rounding = Tolerance(1e-9, "1e-9, for sums of shares")
    shares = found.transform(counts)[words > 0]
    distributions = {"the topics": found.topics, "the weights": found.weights[None], "the shares of a document": shares}
    for name, values in distributions.items():
        require_not_below(name, values, 0.0, rounding)
        require_close(f"the sum of {name}", values.sum(axis=1), np.ones(len(values)), rounding)
    total = float(words.sum())
    of_words = Tolerance(1e-9 * total, "1e-9 of the number of words")
    require_close("the sum of the counts", found.counts.sum(), total, of_words)
    if isinstance(chosen, Full) and (found.bound != "map" or model.word_concentration is not None):
        tolerance = Tolerance(1e-6 * abs(found.elbo), "1e-6 of the bound, with estimated concentrations")
        for before, after in of_the_same_rows(found.history[2:]):
            require_not_below(f"the objective after pass {after.index}", after.objective, before.objective, tolerance)


def _check_partitions(trace: Trace) -> None:
    # (chains, draws, n)
    for chain, of_chain in enumerate(trace.partitions):
        for index, labels in enumerate(of_chain):
            where = f"draw {index} of chain {chain}"
            first = np.unique(labels, return_index=True)
            if not (np.array_equal(first[0], np.arange(len(first[0]))) and (np.diff(first[1]) > 0).all()):
                raise AssertionError(f"{where} is not numbered in the order of first appearance: {labels.tolist()}")
            sizes = np.bincount(labels)
            if not np.array_equal(trace.cluster_sizes(chain, index), sizes):
                raise AssertionError(f"cluster_sizes of {where} does not count {labels.tolist()}")
            if not np.isfinite(trace.log_joint[chain, index]):
                raise AssertionError(f"log_joint of {where} is {trace.log_joint[chain, index]}")
            if trace.n_clusters[chain, index] != len(sizes) or trace.largest_cluster[chain, index] != sizes.max():
                raise AssertionError(f"n_clusters or largest_cluster of {where} do not count {labels.tolist()}")


def _check_joints(traces: list[Trace], relative: float) -> None:
    known: dict[bytes, float] = {}
    for trace in traces:
        partitions = trace.partitions.reshape(-1, trace.partitions.shape[-1])
        for labels, joint in zip(partitions, trace.log_joint.ravel(), strict=True):
            first = known.setdefault(labels.tobytes(), float(joint))
            tolerance = Tolerance(relative * (1.0 + abs(first)), f"{relative:g} of its size")
            require_close(f"log_joint of {labels.tolist()}, drawn again,", joint, first, tolerance)


def _sampled(model: Mixture, rows: NDArray[Any], sampler: Sampler, draws: int, seed: int, threads: int | None) -> Trace:
    with warnings.catch_warnings():
        for kind in (SupportWarning, TruncationWarning, BiasWarning):
            warnings.simplefilter("ignore", kind)
        return sample(
            model,
            rows,
            sampler,
            draws=draws,
            warmup=0,
            chains=2,
            init="single",
            seed=seed,
            threads=threads,
            progress=False,
        )


def _fitted(
    model: TopicModel, counts: NDArray[np.float64], algorithm: Full | Memoized, seed: int, threads: int | None
) -> TopicFit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fit(model, counts, algorithm, seed=seed, threads=threads, progress=False)
    assert isinstance(found, TopicFit)
    return found


def _bits(found: TopicFit, counts: NDArray[np.float64]) -> dict[str, bytes]:
    values = {
        "topics": found.topics,
        "counts": found.counts,
        "history": [record.elbo for record in found.history],
        "transform": found.transform(counts),
    }
    return {name: np.asarray(value).tobytes() for name, value in values.items()}
