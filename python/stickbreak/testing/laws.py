"""The laws that every fit obeys, as checks.

A broken law raises AssertionError, which states what differed, by how much, and what was allowed and why. Each check
takes a model, rows and an algorithm, makes the fits it needs, and compares numbers of the package with other numbers of
the package. No check uses a formula of a likelihood or process, so each holds for all of them.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.errors import SupportWarning
from stickbreak.io import arrays
from stickbreak.io.arrays import DenseRows
from stickbreak.model.mixture import Mixture
from stickbreak.result.fit import Fit
from stickbreak.result.history import of_the_same_rows
from stickbreak.run.algorithms import Full, Memoized
from stickbreak.run.fitting import fit as run
from stickbreak.run.moves import Birth, Delete, Merge
from stickbreak.run.units import KdTree
from stickbreak.testing.arguments import numbers_of_threads, refuse_stochastic
from stickbreak.testing.bits import require_same_bits, visible_bits
from stickbreak.testing.local_step import responsibilities_of, size_of_statistics, summary_of
from stickbreak.testing.tolerances import (
    bound_tolerance,
    require_close,
    require_not_below,
    score_tolerance,
    sum_tolerance,
)


class FitOptions(TypedDict, total=False):
    """Keyword arguments of every check, with the same meaning as in `stickbreak.fit`.

    They are `n_components`, `init`, `sample_weight` and `seed`.
    """

    n_components: int | None
    init: Any
    sample_weight: ArrayLike | None
    seed: int


def check_monotone_bound(
    model: Mixture, X: ArrayLike, algorithm: Full | Memoized | None = None, **options: Unpack[FitOptions]
) -> None:
    """Check that the evidence lower bound never falls.

    From the end of the first pass on, every pass of `Full` and `Memoized` is a step of coordinate ascent.

    Parameters
    ----------
    model : Mixture
        The model.
    X : array_like of shape (n, D)
        The rows.
    algorithm : Full or Memoized, optional
        How to fit. Default: ``Full(max_passes=10, tol=0.0)``.
    **options : FitOptions
        `n_components`, `init`, `sample_weight` and `seed` of `stickbreak.fit`.

    Raises
    ------
    AssertionError
        A pass lost more nats than rounding explains.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_monotone_bound
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = sb.Mixture(sb.Gaussian())
    >>> check_monotone_bound(model, X, sb.Memoized(batches=4), n_components=3)
    """
    rows = arrays.rows(X)
    refuse_stochastic(algorithm)
    fit = _fit(model, rows, algorithm or Full(max_passes=10, tol=0.0), options)
    tolerance = bound_tolerance(fit, rows, options.get("sample_weight"))
    for before, after in of_the_same_rows(fit.history):
        message = f"the objective after pass {after.index}"
        require_not_below(message, after.objective, before.objective, tolerance)


def check_recomputed_elbo(
    model: Mixture, X: ArrayLike, algorithm: Full | Memoized | None = None, **options: Unpack[FitOptions]
) -> None:
    """Check that the evidence lower bound of a fit equals the bound recomputed from its responsibilities.

    The responsibilities of the fit's own local step are read as a table and summed again row by row. Then:

    - One more pass of `Full` from the fit reports the bound of that table, or, if it is higher, of the table with its
      columns sorted by decreasing sums, all of them or all but the last.
    - A start from the table with many batches reports the same, except for the order.
    - The bound of the fit, `Fit.evaluate` on its data, and the bound of the table increase in this order, because each
      maximises over one more factor.

    If the components beyond K have responsibilities too, for which the table has no column, or a part of each row is
    not seen, whose distribution the table does not have, one more pass replaces the table.

    Parameters
    ----------
    model : Mixture
        The model.
    X : array_like of shape (n, D)
        The rows.
    algorithm : Full or Memoized, optional
        How to fit. Default: ``Full(max_passes=10, tol=0.0)``.
    **options : FitOptions
        `n_components`, `init`, `sample_weight` and `seed` of `stickbreak.fit`.

    Raises
    ------
    AssertionError
        Two of the bounds differ by more than rounding explains, or are in the wrong order.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_recomputed_elbo
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> model = sb.Mixture(sb.Gaussian())
    >>> check_recomputed_elbo(model, X, sb.Memoized(batches=4), n_components=3)
    """
    rows = arrays.rows(X)
    weights = options.get("sample_weight")
    used = algorithm or Full(max_passes=10, tol=0.0)
    fit, objective = _fit(model, rows, used, options), used.objective
    tolerance = bound_tolerance(fit, rows, weights)
    evaluated = _evaluated(fit, rows, weights)
    if fit.history:  # without a pass, a start may have more components per row than the fit keeps
        require_not_below("Fit.evaluate on the data of the fit", evaluated, fit.elbo, tolerance)
    if fit.n_components > len(rows):  # just after births; no start may have as many
        return
    sparsity = min(fit._state.sparsity, fit.n_components) if fit.bound != "tail" else None
    chosen = Full(sparsity=sparsity, margin=fit._state.margin, max_passes=1, tol=0.0, objective=objective)
    following = _fit(fit.model, rows, chosen, {"sample_weight": weights, "init": fit})
    if fit.bound == "tail" or fit.model.likelihood._supports("hidden"):
        if fit.history:
            require_not_below("the bound after one more pass", following.elbo, evaluated, tolerance)
        return
    table = responsibilities_of(fit, rows)
    again: FitOptions = {"sample_weight": weights, "init": table}
    start = Full(sparsity=None, max_passes=0, objective=objective)
    recomputed = _fit(fit.model, rows, start, again).elbo
    require_not_below("the bound of the responsibilities", recomputed, evaluated, tolerance)
    sums = _weights(options, len(rows)) @ table
    highest = recomputed
    for n_sorted in (fit.n_components, fit.n_components - 1):
        order = np.append(np.argsort(-sums[:n_sorted], kind="stable"), np.arange(n_sorted, fit.n_components))
        ordered: FitOptions = {"sample_weight": weights, "init": table[:, order]}
        highest = max(highest, _fit(fit.model, rows, start, ordered).elbo)
    if fit.history:  # without a pass, components are sorted only before the next one
        require_close("the bound after one more pass", following.elbo, highest, tolerance)
    batches = min(3, len(rows))
    in_batches = Memoized(batches=batches, sparsity=None, max_passes=0, objective=objective)
    batched = _fit(fit.model, rows, in_batches, again)
    require_close(f"the bound of the responsibilities in {batches} batches", batched.elbo, recomputed, tolerance)


def check_additive_summaries(
    model: Mixture, X: ArrayLike, algorithm: Full | Memoized | None = None, **options: Unpack[FitOptions]
) -> None:
    """Check that summaries are additive: the summary of all rows is the sum over any parts, in any order of the rows.

    Batches, the memo, merges and distributed runs rely on it.

    Parameters
    ----------
    model : Mixture
        The model.
    X : array_like of shape (n, D)
        The rows, at least two.
    algorithm : Full or Memoized, optional
        How to fit. Default: ``Full(max_passes=3, tol=0.0)``.
    **options : FitOptions
        `n_components`, `init`, `sample_weight` and `seed` of `stickbreak.fit`; `seed` also decides the parts.

    Raises
    ------
    AssertionError
        A count, a statistic, an entropy or a pair gap differs by more than rounding explains.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_additive_summaries
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> check_additive_summaries(sb.Mixture(sb.Gaussian()), X, n_components=3)
    """
    rows = arrays.rows(X)
    weights = _weights(options, len(rows))
    fit = _fit(model, rows, algorithm or Full(max_passes=3, tol=0.0), options)
    order = np.random.default_rng(options.get("seed", 0)).permutation(len(rows))
    parts = [part for part in np.array_split(order, 3) if weights[part].any()]
    sparsity = fit._state.sparsity
    whole = summary_of(fit, rows, weights, sparsity)
    added = [summary_of(fit, rows[part], weights[part], sparsity) for part in parts]
    mass = float(weights.sum())
    for name, values in whole.items():
        largest = float(np.abs(values).max(initial=0.0))
        if name in ("log_normalizer", "log_base_measure", "tail"):
            tolerance = bound_tolerance(fit, rows, weights)
        else:
            is_moment = name in ("statistics", "tail_statistics")
            terms = size_of_statistics(fit, rows, weights) if is_moment else mass
            tolerance = sum_tolerance(terms + largest, rows)
        require_close(
            f"{name}, summed over three parts of the rows,", sum(part[name] for part in added), values, tolerance
        )


def check_permutation(
    model: Mixture, X: ArrayLike, algorithm: Full | Memoized | None = None, **options: Unpack[FitOptions]
) -> None:
    """Check that the order of the rows has no effect: permuted rows give the same bound and permuted results.

    Both fits start from the same responsibilities of the same rows, because the seeds of a random start depend on the
    order.

    Parameters
    ----------
    model : Mixture
        The model.
    X : array_like of shape (n, D)
        The rows.
    algorithm : Full, optional
        How to fit after the start. Default: ``Full(sparsity=None, max_passes=0)``, one global step. Rounding decides
        ties between components in every selection, so use sparse fits or many passes only for data without ties.
    **options : FitOptions
        `n_components`, `init`, `sample_weight` and `seed` of `stickbreak.fit`; `seed` also decides the order.

    Raises
    ------
    AssertionError
        The bound, a count, or a result for a row differs by more than rounding explains.
    InvalidArgument
        `algorithm` has batches, whose rows depend on the order.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_permutation
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> check_permutation(sb.Mixture(sb.Gaussian()), X, sb.Full(max_passes=3), n_components=3)
    """
    if not (algorithm is None or isinstance(algorithm, Full)):
        raise checks.invalid_argument("algorithm", repr(algorithm), "Full(...), because rows go to batches by order")
    rows = arrays.rows(X)
    weights = options.get("sample_weight")
    started = _fit(model, rows, Full(sparsity=None, max_passes=0), options)
    table = options.get("init", "kmeans++")
    if not (isinstance(table, np.ndarray) and table.ndim == 2):
        table = responsibilities_of(started, rows)
    order = np.random.default_rng(options.get("seed", 0)).permutation(len(rows))
    chosen = algorithm or Full(sparsity=None, max_passes=0)
    fit = _fit(started.model, rows, chosen, {"sample_weight": weights, "init": table})
    moved_weights = None if weights is None else np.asarray(weights)[order]
    moved = _fit(started.model, rows[order], chosen, {"sample_weight": moved_weights, "init": table[order]})
    tolerance = bound_tolerance(fit, rows, weights)
    require_close("the bound of the permuted rows", moved.elbo, fit.elbo, tolerance)
    mass = float(_weights(options, len(rows)).sum())
    require_close("the count of the permuted rows", moved.counts, fit.counts, sum_tolerance(mass, rows))
    evaluated, expected = (_evaluated(each, rows, weights) for each in (moved, fit))
    require_close("Fit.evaluate under the fit of the permuted rows", evaluated, expected, tolerance)
    _check_row_by_row(fit, rows, order)


def _check_row_by_row(fit: Fit, rows: DenseRows, order: NDArray[np.intp]) -> None:
    """Check that results for a row do not depend on its neighbours."""
    scores = fit.log_predictive(rows)
    tolerance = score_tolerance(scores[order], rows)
    require_close("Fit.log_predictive of permuted rows", fit.log_predictive(rows[order]), scores[order], tolerance)
    responsibilities, predicted = fit.predict_proba(rows)[order], fit.predict(rows[order])
    moved = fit.predict_proba(rows[order])
    by_component = score_tolerance(scores[order, None], rows)
    require_close("Fit.predict_proba of permuted rows", moved, responsibilities, by_component)
    chosen = responsibilities[np.arange(len(rows)), predicted]
    require_not_below(
        "the responsibility of Fit.predict of permuted rows", chosen, responsibilities.max(axis=1), tolerance
    )


def check_determinism(
    model: Mixture,
    X: ArrayLike,
    algorithm: Full | Memoized | None = None,
    *,
    threads: Sequence[int | None] = (1, 2, 3),
    **options: Unpack[FitOptions],
) -> None:
    """Check that the same seed gives the same bits, twice and for any number of threads.

    Threads share rows in blocks of 256 or more, so several threads are busy only with thousands of rows.

    Parameters
    ----------
    model : Mixture
        The model.
    X : array_like of shape (n, D)
        The rows.
    algorithm : Full or Memoized, optional
        How to fit. Default: ``Memoized(max_passes=3, tol=0.0)``.
    threads : sequence of int or None
        The numbers of threads; the first one runs twice. None means one per core.
    **options : FitOptions
        `n_components`, `init`, `sample_weight` and `seed` of `stickbreak.fit`.

    Raises
    ------
    AssertionError
        A visible number of the fits (see `visible_bits`) is not the same to the last bit.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_determinism
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> check_determinism(sb.Mixture(sb.Gaussian()), X, n_components=3, seed=1)
    """
    rows = arrays.rows(X)
    chosen = algorithm or Memoized(max_passes=3, tol=0.0)
    threads = numbers_of_threads(threads)
    require_same_bits(
        lambda number: visible_bits(_fit(model, rows, chosen, options, threads=number), rows), [threads[0], *threads]
    )


def check_gains(
    model: Mixture, X: ArrayLike, algorithm: Full | Memoized | None = None, **options: Unpack[FitOptions]
) -> None:
    """Check that moves keep their word: a pass raises the objective by at least the gains of the moves accepted in it.

    A move is accepted if the exact bound of all rows rises, and no other step lowers the bound.

    Parameters
    ----------
    model : Mixture
        The model, whose process takes moves.
    X : array_like of shape (n, D)
        The rows.
    algorithm : Full or Memoized, optional
        How to fit. Default: ``Memoized(moves=(Birth(), Merge(), Delete()), max_passes=10, tol=0.0)``.
    **options : FitOptions
        `n_components`, `init`, `sample_weight` and `seed` of `stickbreak.fit`.

    Raises
    ------
    AssertionError
        A pass gained less than its moves had promised, or a move was accepted without a gain.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_gains
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> check_gains(sb.Mixture(sb.Gaussian()), X, n_components=5)
    """
    rows = arrays.rows(X)
    refuse_stochastic(algorithm)
    usual = Memoized(moves=(Birth(), Merge(), Delete()), max_passes=10, tol=0.0)
    fit = _fit(model, rows, algorithm or usual, options)
    tolerance = bound_tolerance(fit, rows, options.get("sample_weight"))
    for before, after in of_the_same_rows(fit.history):
        promised = sum(report.gain for report in after.moves)
        require_not_below(f"the gain of the moves of pass {after.index}", promised, 0.0, tolerance)
        message = f"the objective after pass {after.index}, whose moves gain {promised:.3g} nats,"
        require_not_below(message, after.objective, before.objective + promised, tolerance)


def check_opened_tree(model: Mixture, X: ArrayLike, **options: Unpack[FitOptions]) -> None:
    """Check that a kd-tree whose nodes are all open is the same as rows.

    Parameters
    ----------
    model : Mixture
        The model, for rows that a tree takes: dense and complete.
    X : array_like of shape (n, D)
        The rows.
    **options : FitOptions
        `n_components`, `init`, `sample_weight` and `seed` of `stickbreak.fit`.

    Raises
    ------
    AssertionError
        A bound or a count differs by more than rounding explains.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_opened_tree
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> check_opened_tree(sb.Mixture(sb.Gaussian()), X, n_components=3)
    """
    rows = arrays.rows(X)
    weights = options.get("sample_weight")
    started = _fit(model, rows, Full(sparsity=None, max_passes=0), options)
    start: FitOptions = {"sample_weight": weights, "init": responsibilities_of(started, rows)}
    # Dense responsibilities, in which no tie between components is decided.
    plain = Full(sparsity=None, margin=None, max_passes=2, tol=0.0)
    fit = _fit(started.model, rows, plain, start)
    opened = _fit(started.model, rows, replace(plain, units=KdTree(depth=30, refine=False)), start)
    tolerance = bound_tolerance(fit, rows, weights)
    require_close("the bound of an opened tree", opened.elbo, fit.elbo, tolerance)
    mass = float(_weights(options, len(rows)).sum())
    require_close("the count of an opened tree", opened.counts, fit.counts, sum_tolerance(mass, rows))


def check_laws(
    model: Mixture, X: ArrayLike, algorithm: Full | Memoized | None = None, **options: Unpack[FitOptions]
) -> None:
    """Check all laws of this module for one model, one data set and one algorithm.

    Parameters
    ----------
    model : Mixture
        The model.
    X : array_like of shape (n, D)
        The rows.
    algorithm : Full or Memoized, optional
        How to fit; `check_permutation` has its own. Default: ``Memoized(max_passes=10, tol=0.0)``.
    **options : FitOptions
        `n_components`, `init`, `sample_weight` and `seed` of `stickbreak.fit`.

    Raises
    ------
    AssertionError
        A law is broken.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import check_laws
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> algorithm = sb.Memoized(batches=4, max_passes=5)
    >>> check_laws(sb.Mixture(sb.Gaussian()), X, algorithm, n_components=3)
    """
    chosen = algorithm or Memoized(max_passes=10, tol=0.0)
    check_monotone_bound(model, X, chosen, **options)
    check_gains(model, X, chosen, **options)
    check_recomputed_elbo(model, X, chosen, **options)
    check_additive_summaries(model, X, chosen, **options)
    check_permutation(model, X, **options)
    check_determinism(model, X, chosen, **options)


def _fit(
    model: Mixture, rows: DenseRows, algorithm: Full | Memoized, options: FitOptions, threads: int | None = None
) -> Fit:
    checks.instance("model", model, Mixture, "a Mixture; topic models have check_topics")
    with warnings.catch_warnings():
        # The rows are degenerate on purpose.
        warnings.simplefilter("ignore", SupportWarning)
        return run(model, rows, algorithm, threads=threads, progress=False, **options)


def _evaluated(fit: Fit, rows: DenseRows, weights: ArrayLike | None) -> float:
    """Return `Fit.evaluate` in float64, whatever the type of the rows.

    In float32 its rounding error depends on the covariances of the components, and no check has a formula for it.
    """
    return fit.evaluate(rows.astype(np.float64), sample_weight=weights)


def _weights(options: FitOptions, n_rows: int) -> NDArray[np.float64]:
    weights = arrays.sample_weights(options.get("sample_weight"), n_rows)
    return np.ones(n_rows) if weights is None else weights
