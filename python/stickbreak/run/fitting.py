"""`fit`: from a model and data to a fitted model."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from stickbreak import _core, checks
from stickbreak.errors import CheckpointError, InvalidArgument
from stickbreak.io import arrays, partial
from stickbreak.io.names import with_column
from stickbreak.model.mixture import Mixture
from stickbreak.model.model import Model
from stickbreak.model.topic_model import TopicModel
from stickbreak.result import advising, repeating
from stickbreak.result.fit import Fit
from stickbreak.result.history import Record, StopReason
from stickbreak.result.kinds import fit_of
from stickbreak.result.topic_fit import TopicFit
from stickbreak.run.algorithms import Algorithm, Full, Memoized, Stochastic
from stickbreak.run.checkpoints import Checkpoint, CheckpointFile
from stickbreak.run.converging import beaten, ran_out, warn_of
from stickbreak.run.initialisation import start
from stickbreak.run.moves import usual_moves
from stickbreak.run.observing import Observer
from stickbreak.run.options import Data, FitOptions
from stickbreak.run.progress import progress_bar
from stickbreak.run.reading import Given, read
from stickbreak.shards.cluster import Cluster
from stickbreak.shards.sharding import SHARD_ROWS, Loaded, Sharding


@overload
def fit(
    model: Mixture,
    data: Data,
    algorithm: Full | Memoized | Stochastic | None = None,
    **options: Unpack[FitOptions],
) -> Fit: ...


@overload
def fit(
    model: TopicModel,
    data: Data,
    algorithm: Full | Memoized | Stochastic | None = None,
    **options: Unpack[FitOptions],
) -> TopicFit: ...


def fit(
    model: Mixture | TopicModel,
    data: Data,
    algorithm: Full | Memoized | Stochastic | None = None,
    *,
    n_components: int | None = None,
    init: str | ArrayLike | Fit | TopicFit = "kmeans++",
    n_init: int = 1,
    seed: int = 0,
    threads: int | None = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    missing: str = "error",
    progress: bool | None = None,
    callbacks: Iterable[Callable[[Record], object]] = (),
    checkpoint: Checkpoint | None = None,
    cluster: object = None,
) -> Fit | TopicFit:
    r"""Fit a mixture or a topic model to data by variational inference.

    Find a distribution q over weights, components and assignments that maximises the evidence lower bound (ELBO)

    .. math:: \mathcal L = E_q \log p(X, z, \phi, w) - E_q \log q(z, \phi, w) \le \log p(X)

    The fit alternates between the responsibilities of the rows (local step) and the components and weights (global
    step) [1]_. No step lowers the bound; the fit ends at a local optimum. With several batches a global step follows
    each batch [2]_. With `sparsity` L each row keeps its L best components [3]_. Between passes moves may change the
    number of components. Each move is judged by the exact bound of all data [2]_. The same seed gives the same bits for
    any number of threads.

    Ctrl-C stops within a second (later if moves of a thousand components are being judged). The fit returns the state
    after the last batch, with `stop_reason` INTERRUPTED. Its bound may be above that of the last record. During the
    start there is no state yet, and KeyboardInterrupt is raised.

    When births find nothing more, they are tried once more under a prior that is less certain of the components. Up to
    200,000 rows in at most six columns, the fit is then also tried from the clusters of a tree of at most 20,000 rows
    (where trees of up to 1,000 neighbouring rows have more clusters than components there, of at most 100 rows on
    average). Up to 20,000 rows, components that overlap are rearranged. The best state is kept. Until another one is
    better, the `history` shows that state.

    The `stop_reason` MAX_PASSES means that the passes ran out (by default 500, or 100 without births) while the bound
    still rose or moves were left to try. A `ConvergenceWarning` states the last rise, unless the last ten passes
    together changed the objective by less than 0.1 nats. ``sb.fit(model, data, algorithm,
    init=fit)`` continues from there. `Stochastic` always ends this way.

    Under stick-breaking priors (`DirichletProcess`, `PitmanYor`) components are sorted by decreasing count after every
    pass, because the bound is then highest. So component k of the fit is not label k of `init`, except with
    ``max_passes=0``. The order of a `FiniteDirichlet` never changes.

    Results do not depend on the units of the data: columns are divided by powers of two near their standard deviations
    (a single one if the likelihood has one variance). `Gaussian`, `ZeroMeanGaussian` and `DiagonalGaussian` leave out
    constant columns. The first two also leave out columns that are affine functions of others, unless their scale or
    rate is given. A `SupportWarning` names these columns, and `Fit.support` has the directions that are left.

    Parameters
    ----------
    model : Mixture or TopicModel
        The model.
    data : array_like of shape (n, D), callable, or path
        At least two rows, or one document: an array, a memory map, a pandas, Polars or Arrow table, or nested lists.
        float16 becomes float32; integers and booleans become float64, which a `ConversionWarning` reports once: it
        rounds integers above 2^53. float32 is scored in float32; counts, entropies and the bound are always float64.
        For data larger than memory use a memory map, a function without arguments that returns an iterator of blocks,
        the path of a Parquet file or of a folder of them (needs PyArrow), or a collection of dask (`cluster`).
        Functions and paths need ``shuffle=False``. They are read again in every pass and must return the same rows each
        time. Text and categories in blocks of `Columns` become codes (`Fit.levels`); blocks and files are then read
        once more. Names of columns are kept in `Fit.column_names`. If `init` or a checkpoint has names, columns are
        matched by name, and missing or new names are refused.
    algorithm : Full, Memoized or Stochastic, optional
        How to maximise. Default: ``Memoized(moves=(Birth(), Merge(), Delete()))``, which finds the number of
        components. For models without moves (`TopicModel`, `FiniteDirichlet`, ``truncation="stick"``,
        ``SphericalGaussian(base="product")``) the default is ``Memoized()``. Data in blocks get ``shuffle=False``. An
        algorithm that you pass makes only the moves that you list.
    n_components : int, optional
        K, the number of components at the start, 1 to n. Only moves change it later. Default: the number of the
        process; else that of `init`; else 1 with `Birth` or `Split` among the moves; else the smaller of 50 and n. A
        `TopicModel` has its own number.
    init : {"kmeans++", "random", "sequential"}, array_like or Fit
        Where to start. "kmeans++" spreads seeds over the data by the divergence of the likelihood [4]_ (for `Gaussian`
        by the distance from means) and swaps seeds if that is better [5]_. "random" takes random rows as seeds.
        "sequential" adds rows one after another in random order, each with its responsibilities under the components so
        far [1]_; with more than 1000 rows, blocks of ``ceil(n / 1000)`` share a step. Or integer labels of shape (n,),
        from 0; responsibilities of shape (n, K) with rows of sum one; or an earlier fit with the same likelihood and
        columns. With labels and a larger `n_components`, the other components start empty; the numbers of
        responsibilities and of a fit must be equal to it.
    n_init : int
        Number of starts with different seeds (the first is `seed`). The fit with the highest objective is kept. If K is
        not fixed, every second start has ``2 K + 10`` components, where K is the number in use (`Fit.n_occupied`) after
        the first start. This escapes local optima when clusters overlap. `Fit.runner_up` compares the best two. Starts
        run in parallel if threads are free, each with its own memory. With `callbacks`, a `checkpoint` or data in
        blocks they run one after another. The result is the same.
    seed : int
        Decides every random choice; 0 to 2**64 - 1.
    threads : int, optional
        The number of threads. Default: one for every core. A small table takes fewer, which do not have to wait for
        each other.
    sample_weight : array_like of shape (n,), optional
        Row weights, at least 0, with a sum from 1e-100 to 1e12. A row of weight 2 counts as two equal rows.
    labels : array_like of shape (n,), optional
        The class of each row, an integer from 0, and -1 where it is unknown. Each component then has a class or is
        free (`Fit.classes`). A row of a class belongs to components of this class only, a row of unknown class to any.
        The fit starts with one component for each class, and one free component if some rows are of unknown class;
        further components go where rows are far from theirs. Births and splits keep the class of what they replace.
        Merges join components of one class, and each class keeps a component. A component to which no labelled row
        belongs is free. `init` may be "kmeans++", the component of each row, or an earlier fit with labels. Rows of
        weight 0 count as rows of unknown class. Predictions ignore labels. See mathematics 3.2.
    exposure : array_like of shape (n,), optional
        The exposure of each row, above 0, for `Poisson` and `NegativeBinomial`: a library size, or a time at risk. It
        becomes a last column of the rows, which the components of the fit have too. Methods of the fit that read rows
        have the same argument. Or give the likelihood the column of `data` that holds it, or "total".
    missing : {"error", "marginalize"}
        What to do with missing values (NaN): raise an error, or use the values that a row has. The latter is exact for
        `DiagonalGaussian`, `SphericalGaussian` with ``base="conjugate"``, `KnownCovarianceGaussian`, `Bernoulli`,
        `Categorical`, `Poisson`, `NegativeBinomial` and a diagonal `StudentT`. `Gaussian` and the full `StudentT`
        impute: the missing values of a row have a distribution that follows from the others and the component, and the
        bound is that of the present values (mathematics 1.7.1). Other likelihoods and sparse arrays raise NotSupported.
        Rows without any value are left out, with an `EmptyRowsWarning`.
    progress : bool, optional
        Whether to show a progress bar on stderr. Default: on a terminal and in a notebook, after two seconds.
    callbacks : iterable of callables
        Called with a `Record` after every pass, and with the last one and the current time every second while
        components are rearranged. If one returns true, the fit stops (after one more pass over all rows, if components
        were sought in others). An exception in one stops the fit and is raised.
    checkpoint : Checkpoint, optional
        A file that keeps the state. After a crash the same call continues from it, and ends with the same bits.
    cluster : dask.distributed.Client or "here", optional
        The workers that hold the data: an array or a data frame of dask, or the path of Parquet files, in shards of
        `shard_rows` rows. `threads` is then the number for each worker. "here" fits the same shards in this process,
        with the same bits, and so does None for collections of dask. See the page on many machines.

    Returns
    -------
    Fit or TopicFit
        The fitted model; a `TopicFit` for a `TopicModel`.

    Raises
    ------
    InvalidType
        An argument has the wrong type; the error's `argument` names it.
    InvalidArgument
        An argument has a value that is not allowed, including NaN or infinity in `data`, or an earlier fit as `init`
        for data off its `support`.
    NotSupported
        This version, model or algorithm does not support the request, such as moves of a `FiniteDirichlet`, or `labels`
        of a `TopicModel`, of data in blocks or with a `KdTree`.
    CheckpointError
        The file of `checkpoint` cannot be written, is in use by another fit, is damaged, or was written for other data
        or settings. The file is left as it is.
    SourceError
        Data in blocks could not be read, or data changed, before the first pass was complete. Later such an error ends
        the fit, which is returned with the error in `Fit.error`. Changes of an array in memory are noticed where the
        objective falls, values are not allowed, or a sparse array has other columns.
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
    >>> process = sb.DirichletProcess(concentration=1.0)
    >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=process)
    >>> fit = sb.fit(model, X)
    >>> fit.n_components
    2
    >>> fit.components["mean"].shape
    (2, 2)
    >>> labels = fit.predict(X)
    >>> len(set(labels[:100])), len(set(labels[100:])), bool(labels[0] != labels[100])
    (1, 1, True)
    """
    # All arguments, by their names.
    found: Fit | TopicFit = run_fit(**locals())
    warn_of(found)
    return found


_PARAMETERS = inspect.signature(fit).parameters.values()
_DEFAULTS: Any = {each.name: each.default for each in _PARAMETERS if each.kind is each.KEYWORD_ONLY}


def run_fit(
    model: Mixture | TopicModel,
    data: Data,
    algorithm: Full | Memoized | Stochastic | None = None,
    **options: Unpack[FitOptions],
) -> Any:
    """Run `fit` without its warnings at the end."""
    checks.instance("model", model, Model, "a Mixture or a TopicModel")
    given: FitOptions = _DEFAULTS | options
    marginalizes = checks.word("missing", given["missing"], ("error", "marginalize")) == "marginalize"
    callbacks = checked_callbacks(given["callbacks"])
    progress = None if given["progress"] is None else checks.flag("progress", given["progress"])
    seeds = _seeds(given["seed"], checks.integer("n_init", given["n_init"], minimum=1, maximum=10_000))
    threads = checks.threads(given["threads"])
    file = checkpoint_file(given["checkpoint"], "fit", seeds)
    with file or nullcontext():
        rows = read(
            data,
            model,
            init=given["init"],
            file=file,
            minimum=model._min_rows,
            may_miss=marginalizes,
            exposure=given["exposure"],
            sharding=Sharding(given["cluster"], getattr(algorithm, "shard_rows", SHARD_ROWS), threads),
        )
        model = rows.placed(model)
        chosen = _algorithm(algorithm, model, in_blocks=rows.n_rows is None)
        chosen._check_model(model)
        beginning = start(given["init"], model, rows.n_rows, rows.n_columns, given["missing"])
        n_components = given["n_components"]
        if n_components is not None:
            # The number of topics may exceed that of documents.
            most = None if model._has_documents else rows.n_rows
            n_components = checks.integer("n_components", n_components, minimum=1, maximum=most, or_else=["None"])
        weights = arrays.sample_weights(given["sample_weight"], rows.n_rows)
        labels = partial.labels(given["labels"], "labels", rows.n_rows)
        resumed = None if file is None else file.read(rows.n_rows)
        bar = progress_bar(progress, chosen.max_passes, len(seeds))
        observer = Observer(callbacks, bar, file, resumed, len(seeds))
        if bar is not None:
            rows.watch(bar.read)
        state = None
        try:
            with rows.ending(), _errors_told(rows, model, file, observer):
                if marginalizes:
                    weights = arrays.without_empty_rows(weights, rows.rows_without_values(), "data")
                if isinstance(rows.source, Loaded | Cluster):
                    rows.source.weigh(weights)
                state = _core.fit(
                    rows.for_core,
                    weights,
                    specification={
                        "likelihood": model.likelihood._to_core(),
                        "process": model.process._to_core(),
                        "background": model._background,
                        "objective": chosen.objective or model._objective,
                        "missing": marginalizes,
                    },
                    settings={**chosen._to_core(n_components, seeds, threads), "labels": labels},
                    init=beginning,
                    observer=observer,
                )
            return _with_remarks(state, rows, model, chosen, observer.first_objective)
        except KeyboardInterrupt:
            if state is None:
                raise
            # Only the remarks are missing.
            return fit_of(state, **rows.legend, stop_reason=StopReason.INTERRUPTED)


@contextmanager
def _errors_told(rows: Given, model: Model, file: CheckpointFile | None, observer: Observer) -> Iterator[None]:
    """Name columns and the checkpoint file in errors of the core; close the progress bar at the end."""
    try:
        yield
    except InvalidArgument as error:
        hint = model._hint_on_missing if error.argument == "data" else ""
        if hint and "its block" in (error.allowed or ""):  # only where missing values are taken
            hint = "make all columns of the block missing, or use Gaussian or DiagonalGaussian for it"
        if isinstance(rows.source, Loaded | Cluster):
            error = rows.source.located(error)
        raise with_column(error, rows.names, hint) from None
    except CheckpointError as error:
        raise error if file is None or error is observer.exception else file.refused(error) from None
    finally:
        observer.close()


def _with_remarks(
    state: _core.FitState, rows: Given, model: Model, algorithm: Algorithm, first: float | None
) -> Fit | TopicFit:
    """Return the fit with advice on the data and the run; `first` is the final objective of the first start."""
    found = fit_of(state, **rows.legend)
    of_run = (
        # With a tolerance of 0 the passes always run out.
        ran_out(found, algorithm) if algorithm.tol > 0.0 else None,
        found._advice_on(algorithm.sparsity),
        beaten(found, first, algorithm),
    )
    sample = rows.look()
    of_rows = advising.of_rows(sample, model.likelihood, rows.names)
    of_fit = [*repeating.of_fit(found, None if sample is None else sample.rows)]
    if isinstance(found, Fit):
        of_fit += [*advising.of_steps(sample, found), *advising.of_counts(sample, found)]
    remarks = (*(advice for advice in of_run if advice is not None), *of_rows, *of_fit)
    return fit_of(state, **rows.legend, remarks=remarks) if remarks else found


def _algorithm(algorithm: object, model: Model, *, in_blocks: bool) -> Algorithm:
    if algorithm is None:
        return Memoized(shuffle=not in_blocks, moves=usual_moves(model))
    allowed = "an algorithm, such as Full() or Memoized(); samplers are for sample"
    chosen = checks.instance("algorithm", algorithm, Algorithm, allowed)
    if in_blocks and isinstance(chosen, Memoized | Stochastic) and chosen.shuffle:
        raise checks.invalid_argument("shuffle", "True", "False for data that are read in blocks, one after another")
    return chosen


def checkpoint_file(checkpoint: object, function: str, seeds: list[int]) -> CheckpointFile | None:
    """Return the file for the argument `checkpoint` of a function, if given."""
    if checkpoint is None:
        return None
    checked = checks.instance("checkpoint", checkpoint, Checkpoint, "a Checkpoint(path), or None")
    return CheckpointFile(checked, function, seeds[0], len(seeds))


def checked_callbacks(callbacks: object) -> list[Any]:
    """Return the argument `callbacks` as a list of functions."""
    allowed = "a sequence of functions"
    if callable(callbacks):
        raise checks.invalid_type("callbacks", checks.describe(callbacks), allowed, "for one function write [function]")
    functions = checks.items("callbacks", callbacks, allowed)
    for function in functions:
        if not callable(function):
            raise checks.invalid_type("callbacks", f"a sequence with {checks.describe(function)}", allowed)
    return functions


def _seeds(seed: object, n_init: int) -> list[int]:
    """Return one seed per start. The first is the user's, so that more starts are never worse than one."""
    first = checks.seed(seed)
    if n_init == 1:
        # NumPy's generators take long to import, and Ctrl-C is lost meanwhile.
        return [first]
    return [first, *np.random.SeedSequence(first).generate_state(n_init - 1, np.uint64).tolist()]
