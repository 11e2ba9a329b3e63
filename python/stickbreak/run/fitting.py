"""`fit`: from a model and data to a fitted model."""

import os
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from stickbreak import _core, checks
from stickbreak.errors import CheckpointError
from stickbreak.io import arrays
from stickbreak.model.mixture import Mixture
from stickbreak.model.topic_model import TopicModel
from stickbreak.result import advising
from stickbreak.result.fit import Fit
from stickbreak.result.history import Record
from stickbreak.result.kinds import fit_of
from stickbreak.result.topic_fit import TopicFit
from stickbreak.run.algorithms import Algorithm, Full, Memoized, Stochastic
from stickbreak.run.checkpoints import Checkpoint, CheckpointFile
from stickbreak.run.converging import beaten, hard, ran_out, warn_of
from stickbreak.run.initialisation import start
from stickbreak.run.moves import usual_moves
from stickbreak.run.observing import Observer
from stickbreak.run.progress import progress_bar
from stickbreak.run.reading import read


@overload
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
) -> Fit: ...


@overload
def fit(
    model: TopicModel,
    data: ArrayLike | Callable[[], Iterable[ArrayLike]] | str | os.PathLike[str],
    algorithm: Full | Memoized | Stochastic | None = None,
    *,
    n_components: int | None = None,
    init: str | ArrayLike | TopicFit = "kmeans++",
    n_init: int = 1,
    seed: int = 0,
    threads: int | None = None,
    sample_weight: ArrayLike | None = None,
    missing: str = "error",
    progress: bool | None = None,
    callbacks: Iterable[Callable[[Record], object]] = (),
    checkpoint: Checkpoint | None = None,
) -> TopicFit: ...


def fit(
    model: Mixture | TopicModel,
    data: ArrayLike | Callable[[], Iterable[ArrayLike]] | str | os.PathLike[str],
    algorithm: Full | Memoized | Stochastic | None = None,
    *,
    n_components: int | None = None,
    init: str | ArrayLike | Fit | TopicFit = "kmeans++",
    n_init: int = 1,
    seed: int = 0,
    threads: int | None = None,
    sample_weight: ArrayLike | None = None,
    missing: str = "error",
    progress: bool | None = None,
    callbacks: Iterable[Callable[[Record], object]] = (),
    checkpoint: Checkpoint | None = None,
) -> Fit | TopicFit:
    r"""Fit a mixture or a topic model to data by variational inference.

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
    by default, while its bound still rose or moves were left to try (`Stochastic` always ends so). A
    `ConvergenceWarning` has the last rise; ``sb.fit(model, data, algorithm, init=fit)`` goes on from there.

    Under stick-breaking priors (`DirichletProcess`, `PitmanYor`) the bound wants components in falling order of their
    counts, and after every pass they are put into it, so component k of the fit is not label k of `init`. With
    ``max_passes=0`` they stay where they were. The order of a `FiniteDirichlet` never changes.

    Columns are divided by powers of two near their standard deviations before anything else (one for all columns where
    the likelihood has one variance), so results do not depend on the units of the data, to the last bit where units
    differ by powers of two. `Gaussian`, `ZeroMeanGaussian` and `DiagonalGaussian` do not see constant columns, and the
    first two no column that is an affine function of others, unless their scale or rate is given; a `SupportWarning`
    names them, and `Fit.support` has the directions that are left.

    Parameters
    ----------
    model : Mixture or TopicModel
        The model.
    data : array_like of shape (n, D), callable, or path
        The rows: an array, a memory map, a pandas, Polars or Arrow table, or nested lists; at least two rows. float32
        and float64 are used as they are, float16 becomes float32, integers and booleans become float64, which a
        `ConversionWarning` reports once. float32 is scored in float32; counts, entropies and the bound are always
        float64. Data larger than memory are a memory map, a function without arguments that returns an iterator of
        blocks of rows, or the path of a Parquet file or of a folder of them,
        which needs PyArrow. Of the last two one batch and one block are
        in memory at a time. They are read again in every pass, must bring the same rows each time, and need
        ``shuffle=False``. The names of the columns of a table, or of a Parquet file, are kept in
        `Fit.column_names`; where `init` is a fit of named columns, or a checkpoint has them, another order of the
        columns is put right, and missing or new names are refused.
    algorithm : Full, Memoized or Stochastic, optional
        How to maximise. Default: ``Memoized(moves=(Birth(), Merge(), Delete()))``, which finds the number of
        components, or ``Memoized()`` where the model takes no moves: `FiniteDirichlet`, ``truncation="stick"``,
        ``SphericalGaussian(base="product")``; with ``shuffle=False`` for data that are read in blocks. An algorithm
        that is given has the moves that it names, by itself none.
    n_components : int, optional
        K, the number of components to start from, 1 to n; only moves change it later. Default: the process's own
        number, else that of `init`, else 1 with `Birth` or `Split` among the moves, else the smaller of 50 and n. A
        `TopicModel` has its own number.
    init : {"kmeans++", "random", "sequential"}, array_like or Fit
        Where to start: seeds spread over the data by k-means++ on the divergence of the likelihood [4]_ (for `Gaussian`
        the distance from means), and swapped where that is better [5]_;
        random rows as seeds; the rows one after another in random order, each with the responsibilities that it has
        under the components made of the rows before it [1]_ (of more than 1000 rows, blocks of ``ceil(n / 1000)``
        share a step; under a process that treats all components alike each of the first K rows has one to itself,
        because nothing would ever tell them apart otherwise); integer labels of shape (n,), from 0; responsibilities of
        shape (n, K), rows with sum one; or an earlier fit with the same likelihood and columns.
    n_init : int
        How many times to start, with different seeds (the first is `seed`); the fit with the highest objective is kept.
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
        What to do with missing values (NaN): raise an error, or let each row count with the values that it has. That
        is exact for `DiagonalGaussian`, `SphericalGaussian` with ``base="conjugate"``, `KnownCovarianceGaussian`,
        `Bernoulli`, `Categorical` and `Poisson`, and refused (NotSupported) for the others and for sparse arrays. Rows
        without any value have no part in the fit, which an `EmptyRowsWarning` reports.
    progress : bool, optional
        Whether to show a progress bar on stderr. Default: on a terminal and in a notebook, after two seconds.
    callbacks : iterable of callables
        Called with a `Record` after every pass; a true answer stops the fit. An exception in one of them stops the
        fit and is raised.
    checkpoint : Checkpoint, optional
        A file that keeps the state, so that a fit that is killed goes on where it was when the same call is made again,
        and ends with the same bits.

    Returns
    -------
    Fit or TopicFit
        The fitted model: of a `TopicModel` a `TopicFit`.

    Raises
    ------
    InvalidType
        An argument has the wrong type; the error's `argument` names it.
    InvalidArgument
        An argument has a value that is not allowed, among them NaN or infinity in `data`, and an earlier fit as `init`
        of data off its `support`.
    NotSupported
        The request is for something that this version, model or algorithm does not serve, such as moves of a model
        that takes none.
    CheckpointError
        The file of `checkpoint` cannot be written, is written to by another fit, is damaged, or was written for other
        data or settings; it is left as it is.
    SourceError
        Data read in blocks could not be read, or were not the same in every reading, before a pass was complete; later
        on the fit is returned as it was then, with the error in `Fit.error`.
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
    .. [5] Lattanzi, S. and Sohler, C. (2019). A better k-means++ algorithm via local search. International Conference
           on Machine Learning.

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
    found: Fit | TopicFit = run_fit(
        model,
        data,
        algorithm,
        n_components=n_components,
        init=init,
        n_init=n_init,
        seed=seed,
        threads=threads,
        sample_weight=sample_weight,
        missing=missing,
        progress=progress,
        callbacks=callbacks,
        checkpoint=checkpoint,
    )
    warn_of(found)
    return found


def run_fit(
    model: Mixture | TopicModel,
    data: ArrayLike | Callable[[], Iterable[ArrayLike]] | str | os.PathLike[str],
    algorithm: Full | Memoized | Stochastic | None,
    *,
    n_components: int | None,
    init: str | ArrayLike | Fit | TopicFit,
    n_init: int,
    seed: int,
    threads: int | None,
    sample_weight: ArrayLike | None,
    missing: str,
    progress: bool | None,
    callbacks: Iterable[Callable[[Record], object]] = (),
    checkpoint: Checkpoint | None = None,
) -> Any:
    """Do what `fit` does without its warnings at the end."""
    of_topics = isinstance(model, TopicModel)
    if not of_topics:
        checks.instance("model", model, Mixture, "a Mixture or a TopicModel")
    marginalizes = checks.word("missing", missing, ("error", "marginalize")) == "marginalize"
    callbacks = checked_callbacks(callbacks)
    if progress is not None:
        progress = checks.flag("progress", progress)
    seeds = _seeds(seed, checks.integer("n_init", n_init, minimum=1, maximum=10_000))
    threads = checks.threads(threads)
    file = checkpoint_file(checkpoint, "fit", seeds)
    with file or nullcontext():
        given = read(data, model, init=init, file=file, minimum=1 if of_topics else 2, may_miss=marginalizes)
        n_rows = given.n_rows
        chosen = _algorithm(algorithm, model, in_blocks=n_rows is None)
        chosen._check_documents(of_topics)
        beginning = start(init, model, n_rows, given.n_columns, missing)
        if n_components is not None:
            most = None if of_topics else n_rows
            n_components = checks.integer("n_components", n_components, minimum=1, maximum=most, or_else=["None"])
        weights = arrays.sample_weights(sample_weight, n_rows)
        resumed = None if file is None else file.read(n_rows)
        bar = progress_bar(progress, chosen.max_passes, n_init)
        observer = Observer(callbacks, bar, file, resumed, n_init)
        if bar is not None:
            given.watch(bar.read)
        try:
            if marginalizes:
                weights = arrays.without_empty_rows(weights, given.rows_without_values(), "data")
            state = _core.fit(
                given.for_core,
                weights,
                specification={
                    "likelihood": model.likelihood._to_core(),
                    "process": model.process._to_core(),
                    "objective": chosen.objective or ("map" if of_topics else "variational"),
                    "missing": marginalizes,
                },
                settings=chosen._to_core(n_components, seeds, threads),
                init=beginning,
                observer=observer,
            )
        except CheckpointError as error:
            raise error if file is None or error is observer.exception else file.refused(error) from None
        finally:
            observer.close()
        remarks = tuple(advising.of_rows(given.look(), model.likelihood, given.names))
        found = fit_of(state, column_names=given.names, remarks=remarks)
        # Without a tolerance the passes are meant to run out.
        of_passes = ran_out(found, chosen) if chosen.tol > 0.0 else None
        of_run = of_passes, hard(found, chosen), beaten(found, observer.first_objective, chosen)
        own = tuple(advice for advice in of_run if advice is not None)
        return fit_of(state, column_names=given.names, remarks=(*own, *remarks)) if own else found


def _algorithm(algorithm: object, model: Mixture | TopicModel, *, in_blocks: bool) -> Algorithm:
    if algorithm is None:
        return Memoized(shuffle=not in_blocks, moves=usual_moves(model))
    allowed = "an algorithm, such as Full() or Memoized(); samplers are for sample"
    chosen = checks.instance("algorithm", algorithm, Algorithm, allowed)
    if in_blocks and isinstance(chosen, Memoized | Stochastic) and chosen.shuffle:
        raise checks.invalid_argument("shuffle", "True", "False for data that are read in blocks, one after another")
    return chosen


def checkpoint_file(checkpoint: object, function: str, seeds: list[int]) -> CheckpointFile | None:
    """Return the file of the argument `checkpoint` of a function, if there is one."""
    if checkpoint is None:
        return None
    checked = checks.instance("checkpoint", checkpoint, Checkpoint, "a Checkpoint(path), or None")
    return CheckpointFile(checked, function, seeds[0], len(seeds))


def checked_callbacks(callbacks: object) -> list[Any]:
    """Return the argument `callbacks` as a list of functions."""
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
