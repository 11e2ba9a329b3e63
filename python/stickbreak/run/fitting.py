"""`fit`: from a model and data to a fitted model."""

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import CheckpointError, SourceError
from stickbreak.io import arrays, streams
from stickbreak.model.mixture import Mixture
from stickbreak.result.fit import Fit
from stickbreak.result.history import Record, StopReason
from stickbreak.run.algorithms import Algorithm, Full, Memoized, Stochastic
from stickbreak.run.checkpoints import Checkpoint, CheckpointFile, Resumed
from stickbreak.run.initialisation import Start, number_of_components, start, wide_start, widens
from stickbreak.run.moves import usual_moves
from stickbreak.run.observing import Callback, Observer
from stickbreak.run.progress import progress_bar


def fit(
    model: Mixture,
    data: ArrayLike | Callable[[], Iterable[ArrayLike]] | str | os.PathLike[str],
    algorithm: Full | Memoized | Stochastic | None = None,
    *,
    n_components: int | None = None,
    init: str | ArrayLike | Fit = "kmeans++",
    n_init: int = 1,
    seed: int = 0,
    threads: int | None = None,
    sample_weight: ArrayLike | None = None,
    missing: str = "error",
    progress: bool | None = None,
    callbacks: Iterable[Callable[[Record], object]] = (),
    checkpoint: Checkpoint | None = None,
) -> Fit:
    r"""Fit a mixture to data by variational inference.

    Finds a distribution q over weights, components and assignments that makes the evidence lower bound (ELBO)

    .. math:: \mathcal L = E_q \log p(X, z, \phi, w) - E_q \log q(z, \phi, w) \le \log p(X)

    as large as it gets from where it starts, by turns over the responsibilities of the rows (local step) and the
    components and weights (global step) [1]_; every turn raises it or leaves it. With several batches the global step
    follows each of them [2]_; with `sparsity` L each row keeps its L best components, which is the best choice among
    all with at most L [3]_. The same seed gives the same bits whatever the number of threads. Between passes moves may
    change the number of components; each is judged by the exact bound of all data [2]_.

    Ctrl-C stops within a second (where moves of a thousand components are being judged, once they are) and returns the
    last complete state, with `stop_reason` INTERRUPTED. In the middle of a pass that is the state after the last batch,
    so its bound may be above that of the last record. While the start is still being made there is none, and
    KeyboardInterrupt is raised.

    A fit that ends with `stop_reason` MAX_PASSES, not CONVERGED, has made all the passes that its algorithm allows, 100
    by default, while its bound still rose or moves were left to try (`Stochastic` always ends so). No warning says it.

    Under stick-breaking priors (`DirichletProcess`, `PitmanYor`) the bound wants components in falling order of their
    counts, and after every pass they are put into it, so component k of the fit is not label k of `init`. With
    ``max_passes=0`` they stay where they were. The order of a `FiniteDirichlet` never changes.

    Parameters
    ----------
    model : Mixture
        The model.
    data : array_like of shape (n, D), callable, or path
        The rows: an array, a memory map, a pandas, Polars or Arrow table, or nested lists; at least two rows. float32
        and float64 are used as they are, float16 becomes float32, integers and booleans become float64, which a
        `ConversionWarning` says once. float32 is scored in float32; counts, entropies and the bound are float64 always.
        Data larger than memory are a memory map, a function without arguments that returns an iterator of blocks of
        rows, or the path of a Parquet file, which needs PyArrow. Of the last two one batch and one block are in memory
        at a time; they are read again in every pass, must bring the same rows each time, and need ``shuffle=False``.
    algorithm : Full, Memoized or Stochastic, optional
        How to maximise. Default: ``Memoized(moves=(Birth(), Merge(), Delete()))``, which finds the number of
        components, or ``Memoized()`` where the model takes no moves: `FiniteDirichlet`, ``truncation="stick"``,
        ``SphericalGaussian(base="product")``; with ``shuffle=False`` for data that are read in blocks. An algorithm
        that is given has the moves that it says, by itself none.
    n_components : int, optional
        K, the number of components to start from, 1 to n; only moves change it later. Default: the process's own
        number, else that of `init`, else 1 with `Birth` or `Split` among the moves, else the smaller of 50 and n.
    init : {"kmeans++", "random", "sequential"}, array_like or Fit
        Where to start: seeds spread over the data by k-means++ on the Bregman divergence of the likelihood [4]_;
        random rows as seeds; the rows one after another in random order, each with the responsibilities that it has
        under the components made of the rows before it [1]_ (of more than 1000 rows, blocks of ``ceil(n / 1000)``
        share a step; under a process that treats all components alike each of the first K rows has one to itself,
        because nothing would ever tell them apart otherwise); integer labels of shape (n,), from 0; responsibilities of
        shape (n, K), rows with sum one; or an earlier fit with the same likelihood and columns.
    n_init : int
        How many times to start, with different seeds (the first is `seed`); the fit with the highest ELBO is kept.
        Where the number of components grows and neither `n_components` nor `init` says how many there are at first,
        every second start has, once the others are done, ``2 K + 10`` of them, K being what the first one found: where
        clusters overlap, moves find from many what they miss from one.
        The starts run side by side where there are threads to spare, each in memory of its own; with `callbacks`, with
        a `checkpoint` and for data read in blocks one after another. The result is the same.
    seed : int
        Decides every random choice; 0 to 2**64 - 1.
    threads : int, optional
        The number of threads. Default: one for every core.
    sample_weight : array_like of shape (n,), optional
        Weights of the rows, at least 0, of a sum from 1e-100 to 1e12. Weight 2 means two equal rows with the same
        responsibilities.
    missing : {"error", "marginalize"}
        What to do with missing values (NaN): raise an error, or let each row count with the values that it has, which
        is exact for `DiagonalGaussian`, `Bernoulli` and `Poisson`, and refused (NotSupported) for the others and for
        sparse arrays. Rows without any value have no part in the fit, which an `EmptyRowsWarning` says.
    progress : bool, optional
        Whether to show a progress bar on stderr. Default: on a terminal, after two seconds.
    callbacks : iterable of callables
        Called with a `Record` after every pass; a true answer stops the fit. An exception in one of them stops the
        fit and is raised.
    checkpoint : Checkpoint, optional
        A file that keeps the state, so that a fit that is killed goes on where it was when the same call is made again,
        and ends with the same bits.

    Returns
    -------
    Fit
        The fitted model.

    Raises
    ------
    InvalidType
        An argument has the wrong type; the error's `argument` says which.
    InvalidArgument
        An argument has a value that is not allowed, among them NaN or infinity in `data`.
    NotSupported
        The request is for something that this version, model or algorithm does not serve, such as moves of a model
        that takes none.
    CheckpointError
        The file of `checkpoint` cannot be written, is damaged, or was written for other data or settings; it is left as
        it is.
    SourceError
        Data read in blocks could not be read before a pass was complete; later on the fit is returned as it was then,
        with the error in `Fit.error`.
    NumericalError
        A computation left the range of floating-point numbers.

    References
    ----------
    .. [1] Blei, D. M. and Jordan, M. I. (2006). Variational inference for Dirichlet process mixtures. Bayesian
           Analysis 1(1).
    .. [2] Hughes, M. C. and Sudderth, E. B. (2013). Memoized online variational inference for Dirichlet process
           mixture models. Advances in Neural Information Processing Systems 26.
    .. [3] Hughes, M. C. and Sudderth, E. B. (2016). Fast learning of clusters and topics via sparse posteriors.
           arXiv:1609.07521.
    .. [4] Ackermann, M. R. and Blömer, J. (2009). Coresets and approximate clustering for Bregman divergences. ACM-SIAM
           Symposium on Discrete Algorithms.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-5, 1, size=(100, 2)), rng.normal(5, 1, size=(100, 2))])
    >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(concentration=1.0))
    >>> fit = sb.fit(model, X)
    >>> fit.n_components
    2
    >>> fit.components["mean"].shape
    (2, 2)
    >>> labels = fit.predict(X)
    >>> len(set(labels[:100])), len(set(labels[100:])), bool(labels[0] != labels[100])
    (1, 1, True)
    """
    checks.instance("model", model, Mixture, "a Mixture")
    holes = checks.word("missing", missing, ("error", "marginalize")) == "marginalize"
    _check_missing(model, holes)
    callbacks = _callbacks(callbacks)
    if progress is not None:
        progress = checks.flag("progress", progress)
    seeds = _seeds(seed, checks.integer("n_init", n_init, minimum=1, maximum=10_000))
    threads = checks.threads(threads)
    file = _checkpoint_file(checkpoint, seeds)
    stream = streams.stream(data, type(model.likelihood))
    chosen = _algorithm(algorithm, model, in_blocks=stream is not None)
    rows: arrays.Rows | arrays.BlockSource
    if stream is None:
        rows = table = arrays.rows(data, "data", likelihood=type(model.likelihood), minimum=2)
        n_rows, n_columns = rows.shape
    else:
        rows, n_rows, n_columns = stream.for_core, None, stream.n_columns
    beginning = start(init, model, n_rows, n_columns, missing)
    is_widened = widens(n_components, model, beginning, grows=chosen._grows)
    n_components = number_of_components(n_components, model, beginning, n_rows, grows=chosen._grows)
    if n_rows is not None and n_components is not None:
        _check_sizes(chosen, n_components, n_rows)
    weights = arrays.sample_weights(sample_weight, n_rows)
    if holes:
        empty = arrays.rows_without_values(table) if stream is None else stream.rows_without_values()
        weights = arrays.without_empty_rows(weights, empty, "data")
    job = _Job(model, rows, weights, holes, chosen, beginning, n_components, threads)
    bar = progress_bar(progress, chosen.max_passes, n_init)
    try:
        # Callbacks see one run at a time, a checkpoint keeps one, and a source is read by one.
        one_by_one = bool(callbacks) or file is not None or stream is not None
        rounds = _rounds(seeds, one_by_one=one_by_one, is_widened=is_widened)
        return _best_of(job, rounds, n_rows, Observer(callbacks, bar, file), file)
    finally:
        if bar is not None:
            bar.close()


@dataclass(frozen=True)
class _Job:
    """Everything that the runs of one fit share."""

    model: Mixture
    rows: arrays.Rows | arrays.BlockSource
    weights: NDArray[np.float64] | None
    holes: bool
    algorithm: Algorithm
    start: Start
    n_components: int | None
    threads: int | None

    def run(
        self, seeds: list[int], observer: Observer, checkpoint_every: float | None, resume: bytes | None
    ) -> list[_core.State]:
        return _core.fit(
            self.rows,
            self.weights,
            likelihood=self.model.likelihood._to_core(),
            process=self.model.process._to_core(),
            objective=self.algorithm.objective or "variational",
            holes=self.holes,
            n_components=self.n_components,
            init=self.start.value,
            **self.algorithm._to_core(),
            moves=[move._to_core() for move in self.algorithm.moves],
            sparsity=self.algorithm.sparsity,
            margin=self.algorithm.margin,
            bounds_memory=self.algorithm.bounds_memory,
            max_passes=self.algorithm.max_passes,
            tol=self.algorithm.tol,
            seeds=seeds,
            threads=self.threads,
            checkpoint_every=checkpoint_every,
            resume=resume,
            observer=observer.for_core,
        )


@dataclass(frozen=True)
class _Round:
    """Seeds of runs that are made side by side, and whether these start with more components than were found before."""

    seeds: list[int]
    is_wide: bool


def _rounds(seeds: list[int], *, one_by_one: bool, is_widened: bool) -> list[_Round]:
    """Return all runs of a fit; with `is_widened` every second one is wide, and comes after the others."""
    groups = [_Round(seeds[::2], False), _Round(seeds[1::2], True)] if is_widened else [_Round(seeds, False)]
    if one_by_one:
        groups = [_Round([seed], group.is_wide) for group in groups for seed in group.seeds]
    return [group for group in groups if group.seeds]


def _best_of(
    job: _Job, rounds: list[_Round], n_rows: int | None, observer: Observer, file: CheckpointFile | None
) -> Fit:
    """Run once for each seed and keep the highest bound; a stop from outside ends all of it."""
    resumed = Resumed() if file is None else file.read(n_rows)
    best, n_wide = resumed.best, resumed.n_wide
    for index in range(resumed.index, len(rounds)):
        own = rounds[index]
        observer.start_round(sum(len(each.seeds) for each in rounds[:index]), len(own.seeds))
        if file is not None:
            file.start_run(index, best, n_wide)
        resume = resumed.run if index == resumed.index else None
        its_job = replace(job, n_components=n_wide) if own.is_wide else job
        try:
            states, stopped_by = _run(its_job, own.seeds, observer, file, resume)
            fits = [Fit(state) for state in states]
            _check_rows_are_as_many(best, fits)
        except SourceError as failure:
            if best is None:
                raise
            return Fit(best._state, stop_reason=StopReason.SOURCE_ERROR, error=failure)
        if n_wide is None and fits:
            n_wide = wide_start(fits[0])
        for each in fits:
            if best is None or _bound(each) > _bound(best):
                best = each
        if stopped_by is not None and best is not None:
            error = next((each.error for each in fits if each.error is not None), None)
            return Fit(best._state, stop_reason=stopped_by, error=error)
        if best is None:
            raise KeyboardInterrupt
    assert best is not None  # there is at least one seed
    return best


def _run(
    job: _Job, seeds: list[int], observer: Observer, file: CheckpointFile | None, resume: bytes | None
) -> tuple[list[_core.State], StopReason | None]:
    """Run once for each seed; return also what stopped the runs from outside, if anything did."""
    states: list[_core.State] = []
    try:
        states = job.run(seeds, observer, None if file is None else file.every_seconds, resume)
    except CheckpointError as error:
        raise error if file is None else file.refused(error) from None
    except BaseException as error:
        if observer.exception is None and not observer.interrupted and not isinstance(error, KeyboardInterrupt):
            raise
    if observer.exception is not None:
        raise observer.exception
    if len(states) < len(seeds) or observer.interrupted:
        return states, StopReason.INTERRUPTED
    reasons = {StopReason(state.stop_reason) for state in states}
    from_outside = (StopReason.INTERRUPTED, StopReason.SOURCE_ERROR, StopReason.CALLBACK)
    stops = (reason for reason in from_outside if reason in reasons)
    return states, next(stops, None)


def _check_rows_are_as_many(best: Fit | None, fits: list[Fit]) -> None:
    """Refuse to compare bounds of other rows: each start counts the rows of a source anew."""
    if best is None:
        return
    at_first = best._state.n_rows
    for then in (fit._state.n_rows for fit in fits):
        if then != at_first:
            found = f"it brought {at_first} rows at first, and {then} then"
            raise SourceError(f"the data source failed: {found}; every reading must bring the same rows")


def _bound(fit: Fit) -> float:
    return -math.inf if math.isnan(fit.elbo) else fit.elbo


def _algorithm(algorithm: object, model: Mixture, *, in_blocks: bool) -> Algorithm:
    if algorithm is None:
        return Memoized(shuffle=not in_blocks, moves=usual_moves(model))
    chosen = checks.instance("algorithm", algorithm, Algorithm, "an algorithm, such as Full() or Memoized()")
    if in_blocks and isinstance(chosen, Memoized | Stochastic) and chosen.shuffle:
        raise checks.invalid_argument("shuffle", "True", "False for data that are read in blocks, one after another")
    return chosen


def _checkpoint_file(checkpoint: object, seeds: list[int]) -> CheckpointFile | None:
    if checkpoint is None:
        return None
    checked = checks.instance("checkpoint", checkpoint, Checkpoint, "a Checkpoint(path), or None")
    return CheckpointFile(checked, seeds[0], len(seeds))


def _check_missing(model: Mixture, holes: bool) -> None:
    if holes and not model.likelihood._accepts_missing:
        raise checks.not_supported(
            "missing",
            f'missing="marginalize" for {type(model.likelihood).__name__}',
            "it would not be exact",
            "DiagonalGaussian, Bernoulli or Poisson, or data without missing values",
        )


def _callbacks(callbacks: object) -> list[Callback]:
    allowed = "a sequence of functions"
    if callable(callbacks):
        raise checks.invalid_type("callbacks", checks.describe(callbacks), allowed, "for one function write [function]")
    if not isinstance(callbacks, Iterable):
        raise checks.invalid_type("callbacks", checks.describe(callbacks), allowed)
    try:
        functions: list[Any] = list(callbacks)
    except Exception as error:  # foreign iterators raise what they like
        raise checks.invalid_type("callbacks", checks.describe(callbacks), allowed) from error
    for function in functions:
        if not callable(function):
            raise checks.invalid_type("callbacks", f"a sequence with {checks.describe(function)}", allowed)
    return functions


def _seeds(seed: object, n_init: int) -> list[int]:
    """Return one seed for each start: the user's own first, so that more starts are never worse than one."""
    first = checks.seed(seed)
    return [first, *np.random.SeedSequence(first).generate_state(n_init - 1, np.uint64).tolist()]


def _check_sizes(algorithm: Algorithm, n_components: int, n_rows: int) -> None:
    sparsity = algorithm.sparsity
    if isinstance(sparsity, int) and sparsity > n_components and not algorithm._grows:
        allowed = f"at most {n_components}, the number of components, or None for all of them"
        raise checks.invalid_argument("sparsity", str(sparsity), allowed)
    batches = algorithm.batches if isinstance(algorithm, Memoized) else "auto"
    if isinstance(batches, int) and batches > n_rows:
        raise checks.invalid_argument("batches", str(batches), f"at most {n_rows}, the number of rows")
    if isinstance(algorithm, Stochastic) and algorithm.batch_size > n_rows:
        raise checks.invalid_argument("batch_size", str(algorithm.batch_size), f"at most {n_rows}, the number of rows")
