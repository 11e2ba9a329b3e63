"""`sample`: from a model and data to draws of its posterior."""

import math
import warnings
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import CheckpointError, InvalidArgument, TruncationWarning
from stickbreak.io import arrays, streams
from stickbreak.io.names import Names, naming, with_column
from stickbreak.io.positions import distinct
from stickbreak.io.requests import ChainPlan
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.mixture import Mixture
from stickbreak.result import support
from stickbreak.result.draws import Chains, Draw, Proposals
from stickbreak.result.fit import Fit
from stickbreak.result.trace import Trace
from stickbreak.run.algorithms import Memoized
from stickbreak.run.checkpoints import Checkpoint
from stickbreak.run.converging import ran_out, warn_of
from stickbreak.run.fitting import checked_callbacks, checkpoint_file
from stickbreak.run.moves import usual_moves
from stickbreak.run.observing import Observer
from stickbreak.run.progress import sweep_bar
from stickbreak.run.reading import Given, on_missing, read
from stickbreak.run.samplers import BlockedGibbs, CollapsedGibbs, Sampler, TreeGuided
from stickbreak.shards.cluster import Cluster
from stickbreak.shards.sharding import Loaded

# A warning is given if a larger share of the sweeps reaches the last components.
_OFTEN = 0.01
# The name of a start, or labels.
Start = str | NDArray[np.int64]

_STARTS = ("single", "singletons", "ibhc", "one-on-top", "fit")
# Larger partition arrays, in bytes, are stored in a memory map.
_MOST_IN_MEMORY = 2**30


def sample(
    model: Mixture,
    data: ArrayLike,
    sampler: Sampler | None = None,
    *,
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    thin: int = 1,
    init: str | ArrayLike | Fit | None = None,
    keep_rows: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    callbacks: Iterable[Callable[[Draw], object]] = (),
    checkpoint: Checkpoint | None = None,
    max_seconds: float | None = None,
) -> Trace:
    r"""Draw partitions of the rows from their exact posterior by Markov chain Monte Carlo.

    The target is the posterior of the model that `fit` approximates, with the components integrated out,

    .. math:: p(\Pi \mid X) \propto p(\Pi) \prod_{c \in \Pi} m(X_c)

    where m is the marginal likelihood of the rows of a cluster. Draws follow the posterior in the limit of many sweeps;
    check `Trace.rhat` and `Trace.ess`. Chains run in parallel if threads are free. The same seed gives the same draws
    for any number of threads.

    Parameters of the likelihood that are `None` are estimated once, by ``sb.fit(model, data, seed=seed)`` (under
    ``DirichletProcess(1.0)`` if `fit` does not support the process, and with the mean of a prior on `mean_precision`).
    `Trace.model` has the values. A `SupportWarning` names columns that the model does not see, as in `fit`.
    `resolution` is 0, because rounded values have no closed marginal likelihood. The `truncation` of a process has no
    effect.

    Ctrl-C stops within a second (later in a sweep of very many components) and returns the draws so far: from each
    chain as many as the slowest one has. While parameters are estimated it raises `KeyboardInterrupt`.

    Parameters
    ----------
    model : Mixture
        The model.
    data : array_like of shape (n, D)
        The rows, as in `fit`; data read in blocks are refused. `BlockedGibbs` and `Slice` read them where they are,
        also in a memory map. The other samplers keep them in memory as float64.
    sampler : CollapsedGibbs, SplitMerge, TreeGuided, BlockedGibbs or Slice, optional
        How chains move. Default: ``CollapsedGibbs()``.
    draws : int
        Draws that each chain keeps, at least 1.
    warmup : int
        Sweeps of each chain before its first draw, at least 0.
    chains : int
        The number of chains, at least 1.
    thin : int
        Sweeps from one draw to the next, at least 1.
    init : {"single", "singletons", "ibhc", "one-on-top", "fit"}, array_like or Fit, optional
        Where all chains start. "single": all rows in one cluster. "singletons": each in its own. "ibhc": the trees of
        incremental Bayesian hierarchical clustering (see `hierarchy`). "one-on-top": each row in random order joins the
        nearest cluster, or opens one. "fit": the components of ``sb.fit(model, data, seed=seed)``, or "single" if all
        rows are equal. Or integer labels of shape (n,), or a fit: the most probable components of the rows. Default:
        "ibhc" for `TreeGuided`, "fit" for `BlockedGibbs` (where small clusters share the last of its components) and
        `Slice`, else "single".
    keep_rows : array_like of int, shape (m,), optional
        Positions of rows, each at most once. The trace keeps the labels of these rows only; sizes of clusters count all
        rows. 1,000 draws of a million rows take 4 GB for each chain. Without the labels of all rows a trace has no
        predictions, densities or parameters. Default: all rows.
    exposure : array_like of shape (n,), optional
        The exposure of each row, as in `fit`.
    seed : int
        Decides every random choice; 0 to 2**64 - 1.
    threads : int, optional
        The number of threads. Default: one for every core.
    progress : bool, optional
        Whether to show a progress bar on stderr. Default: on a terminal, after two seconds.
    callbacks : iterable of callables
        Called with a `Draw` after every draw of every chain. If one returns true, all chains stop.
    checkpoint : Checkpoint, optional
        A file that keeps the chains. After a crash, an interrupt or the end of `max_seconds` the same call continues
        from it, and ends with the same draws. `draws` may be higher than before.
    max_seconds : float, optional
        Start no sweep after this time, and return the draws so far. The start itself is not cut short: "ibhc" takes
        seconds for 10,000 rows, and longer for large clusters. The same holds for Ctrl-C.

    Returns
    -------
    Trace
        The draws.

    Raises
    ------
    InvalidType
        An argument has the wrong type; the error's `argument` names it.
    InvalidArgument
        An argument has a value that is not allowed, including NaN in `data`, labels of another length than the data,
        fewer than two distinct rows if parameters are to be estimated, and a `max_seconds` that ends before the first
        draw.
    NotSupported
        The likelihood has no closed marginal likelihood, such as ``SphericalGaussian(base="product")``, the sampler
        does not support the process, or `data` are read in blocks.
    CheckpointError
        The file of `checkpoint` cannot be written, is in use by another run, is damaged, or was written for other data
        or settings, or by `fit`. The file is left as it is.
    NumericalError
        A computation left the range of floating-point numbers, or a sweep of `Slice` needs too many components. If
        each chain has a draw, the error's `trace` holds the draws so far.

    References
    ----------
    .. [1] Neal, R. M. (2000). Markov chain sampling methods for Dirichlet process mixture models. Journal of
           Computational and Graphical Statistics 9(2).

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-5, 1, size=(30, 2)), rng.normal(5, 1, size=(30, 2))])
    >>> process = sb.DirichletProcess(concentration=1.0)
    >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=process)
    >>> trace = sb.sample(model, X, sb.SplitMerge(), draws=100, warmup=50, chains=2)
    >>> trace.partitions.shape
    (2, 100, 60)
    >>> labels = trace.partitions[0, -1]
    >>> bool(labels[0] != labels[-1])
    True
    """
    checks.instance("model", model, Mixture, "a Mixture")._check_no_background("samplers")
    chosen = CollapsedGibbs() if sampler is None else sampler
    allowed = "a sampler, such as CollapsedGibbs() or BlockedGibbs(); algorithms are for fit"
    checks.instance("sampler", chosen, Sampler, allowed)
    plan: ChainPlan = {
        "sampler": chosen._to_core(),
        "draws": checks.integer("draws", draws, minimum=1),
        "warmup": checks.integer("warmup", warmup, minimum=0),
        "thin": checks.integer("thin", thin, minimum=1),
        "chains": checks.integer("chains", chains, minimum=1, maximum=10_000),
        "seed": checks.seed(seed),
        "max_seconds": None if max_seconds is None else checks.non_negative("max_seconds", max_seconds, ", or None"),
        "keep_rows": None,
        "threads": checks.threads(threads),
    }
    if progress is not None:
        progress = checks.flag("progress", progress)
    functions = checked_callbacks(callbacks)

    def predict(fit: Fit, threads: int | None) -> NDArray[np.int64]:
        return fit.predict(data, exposure=exposure, threads=threads)

    with checkpoint_file(checkpoint, "sample", [plan["seed"]]) or nullcontext() as file:
        given = read(data, model, init=init, file=file, minimum=1, exposure=exposure)
        model = given.placed(model)
        rows = own_rows(given, "data", copy=not chosen._in_place)
        kept = None if keep_rows is None else distinct(keep_rows, "keep_rows", rows.shape[0])
        plan["keep_rows"] = None if kept is None else kept.astype(np.uint32)
        _core.check_model(model.likelihood._to_core(), model.process._to_core(), plan["sampler"])
        start = _default_start(chosen) if init is None else _start(init, rows, predict)
        resumed = None if file is None else file.read(rows.shape[0])
        likelihood, start, fit = _estimated(model, rows, start, given, plan, predict)
        if init is None and isinstance(chosen, BlockedGibbs) and chosen.truncation and not isinstance(start, str):
            start = _core.cut_to_clusters(start.astype(np.uint32), chosen.truncation)
        room = _room(plan["chains"], plan["draws"], rows.shape[0] if kept is None else len(kept))
        bar = sweep_bar(progress, plan["chains"], plan["warmup"] + plan["draws"] * plan["thin"])
        observer = Observer(functions, bar, file, resumed)
        try:
            found, state = _core.sample(
                rows,
                likelihood=likelihood,
                process=model.process._to_core(),
                plan=plan,
                init=start,
                partitions=room,
                observer=observer,
            )
        except InvalidArgument as error:
            raise with_column(error, given.names, on_missing(model.likelihood)) from None
        except CheckpointError as error:
            raise error if file is None or error is observer.exception else file.refused(error) from None
        finally:
            observer.close()
    if fit is None:
        warn_of_columns(state, given.names)
    _warn_of_truncation(found["proposals"].pop("last_tenth", (0, 0)))
    filled = Mixture(likelihood=Likelihood._from_core(*state.likelihood), process=model.process)
    exact = not isinstance(chosen, TreeGuided) or chosen.exact
    arrays_of_chains = replace(_chains(found, room, plan["chains"]), kept_rows=kept, exact=exact)
    trace = Trace(arrays_of_chains, filled, (state, rows), given.names, given.levels)
    if found["error"] is not None:
        found["error"].trace = trace
        raise found["error"]
    return trace


def _warn_of_truncation(last_tenth: tuple[int, ...]) -> None:
    """Warn if a larger share of the sweeps than `_OFTEN` has reached the last tenth of the components."""
    n_sweeps, n_reached, *_ = last_tenth
    if n_reached > _OFTEN * n_sweeps:
        text = f"the last tenth of the components had rows in {n_reached} of {n_sweeps} sweeps, so that the truncation"
        suggestions = ("a larger truncation", "Slice()")
        warnings.warn(TruncationWarning(f"{text} matters", suggestions=suggestions), stacklevel=3)


def _estimated(
    model: Mixture,
    rows: arrays.Rows,
    start: Start,
    given: Given,
    plan: ChainPlan,
    predict: Callable[[Fit, int | None], NDArray[np.int64]],
) -> tuple[tuple[str, dict[str, Any]], Start, _core.FitState | None]:
    """Return the likelihood with all parameters, the start, and the fit that either of them came from."""
    own, process = model.likelihood._to_core(), model.process._to_core()
    from_fit = isinstance(start, str) and start == "fit"
    with naming(given.names, on_missing(model.likelihood)):
        likelihood, fit = _core.estimate(rows, own, process, plan["seed"], from_fit, plan["threads"])
    if fit is not None:
        warn_of_estimate(fit, given.names)
    if from_fit:
        # All rows are equal if there is no fit.
        found = None if fit is None else Fit(fit, **given.legend)
        start = "single" if found is None else predict(found, plan["threads"])
    return likelihood, start, fit


def own_rows(given: Given, argument: str, *, copy: bool = True) -> arrays.Rows:
    """Return the rows to sample; data read in blocks are refused.

    A trace predicts with these rows later, so arrays in memory are copied. A memory map is not, if `copy` is false; if
    it is true, a copy in float64 must fit in memory.
    """
    rows = given.source
    if isinstance(rows, streams.Stream | Loaded | Cluster):
        reason = "a sampler visits rows in any order, as often as it has sweeps"
        raise checks.not_supported(argument, "data that are read in blocks", reason, "an array or a memory map")
    if copy:
        _core.check_copy(rows, argument)
    if isinstance(rows, arrays.SparseRows) or (isinstance(rows, np.memmap) and not copy):
        return rows
    copied = rows.copy()
    copied.flags.writeable = False
    return copied


def _default_start(sampler: Sampler) -> str:
    if sampler._in_place:
        return "fit"
    return "ibhc" if isinstance(sampler, TreeGuided) else "single"


def _start(init: object, rows: arrays.Rows, predict: Callable[[Fit, int | None], NDArray[np.int64]]) -> Start:
    if isinstance(init, str):
        return checks.word("init", init, _STARTS, or_else=("labels of shape (n,)", "a Fit"))
    if isinstance(init, Fit):
        if init._state.dimension != rows.shape[1]:
            found = f"a fit with D = {init._state.dimension}"
            raise checks.invalid_argument("init", found, f"a fit with D = {rows.shape[1]}, as in the data")
        return predict(init, None)
    allowed = " or ".join([*map(repr, _STARTS), "labels of shape (n,)", "a Fit"])
    return arrays.labels(arrays.numeric(init, "init", allowed), "init", rows.shape[0])


def warn_of_columns(state: _core.SampledModel | _core.HierarchyState, names: Names | None) -> None:
    """Warn of columns that the model does not see."""
    remark = support.of_columns(state, names)
    if remark is not None:
        warnings.warn(remark, stacklevel=3)


def warn_of_estimate(state: _core.FitState, names: Names | None) -> None:
    """Warn of columns that a fit for open parameters did not see, and of passes that ran out."""
    found = Fit(state, column_names=names)
    advice = ran_out(found, Memoized(moves=usual_moves(found.model)))
    remarks = () if advice is None else (advice,)
    warn_of(Fit(state, column_names=names, remarks=remarks), stacklevel=4)


def _room(chains: int, draws: int, n: int) -> NDArray[np.int32]:
    """Return an array for the labels of all draws."""
    shape = (chains, draws, n)
    try:
        if 4 * math.prod(shape) <= _MOST_IN_MEMORY:
            return np.empty(shape, dtype=np.int32)
        from tempfile import TemporaryFile

        with TemporaryFile() as file:
            return np.memmap(file, dtype=np.int32, mode="w+", shape=shape)
    except (MemoryError, OSError, OverflowError, ValueError) as error:
        found = (
            f"{draws}, for which {4 * math.prod(shape):.3g} bytes of labels do not fit in memory or on disk ({error})"
        )
        raise checks.invalid_argument("draws", found, "fewer, or thinned by `thin`; or `keep_rows`") from error


def _chains(found: dict[str, Any], room: NDArray[np.int32], chains: int) -> Chains:
    draws, names = found["draws"], found["names"]
    traced = found["traced"].reshape(chains, draws, len(names))
    return Chains(
        partitions=room[:, :draws] if draws == room.shape[1] else room[:, :draws].copy(),
        log_joint=found["log_joint"].reshape(chains, draws),
        n_clusters=found["n_clusters"].reshape(chains, draws),
        sizes=found["sizes"],
        hyperparameters={name: traced[..., column].copy() for column, name in enumerate(names)},
        seconds=found["seconds"],
        proposals={name: Proposals(*counts) for name, counts in found["proposals"].items()},
    )
