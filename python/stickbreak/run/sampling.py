"""`sample`: from a model and data to draws of its posterior."""

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import CheckpointError, InvalidArgument, NotSupported
from stickbreak.io import arrays, streams
from stickbreak.io.names import Names, naming, with_column
from stickbreak.io.positions import distinct
from stickbreak.io.requests import ChainPlan, Specification
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.mixture import Mixture
from stickbreak.model.processes import FiniteDirichlet
from stickbreak.result import advising_chains, support
from stickbreak.result.draws import Draw, Ran
from stickbreak.result.extending import chains_of
from stickbreak.result.fit import Fit
from stickbreak.result.room import room_of_draws
from stickbreak.result.trace import Trace
from stickbreak.run.algorithms import Memoized
from stickbreak.run.checkpoints import Checkpoint
from stickbreak.run.converging import ran_out, warn_of
from stickbreak.run.fitting import checked_callbacks, checkpoint_file
from stickbreak.run.moves import usual_moves
from stickbreak.run.observing import Observer
from stickbreak.run.progress import sweep_bar
from stickbreak.run.reading import Given, on_missing, read
from stickbreak.run.samplers import BlockedGibbs, Sampler, Slice, SplitMerge, TreeGuided
from stickbreak.run.starting import Start, Starts, named, starts_of
from stickbreak.run.until import Until, until_of
from stickbreak.shards.cluster import Cluster
from stickbreak.shards.sharding import Loaded

# The posterior depends on estimated parameters, so runs with other seeds have the same.
_SEED_OF_FIT = 0
# Those behind the first are for clusters without a closed marginal likelihood.
_SAMPLERS = "a sampler, such as CollapsedGibbs() or BlockedGibbs(); algorithms are for fit"
_USUAL = (SplitMerge(), BlockedGibbs(), Slice())


def sample(
    model: Mixture,
    data: ArrayLike,
    sampler: Sampler | None = None,
    *,
    draws: int = 1000,
    warmup: int = 500,
    chains: int = 4,
    thin: int = 1,
    init: str | ArrayLike | Fit | Sequence[str | ArrayLike | Fit] | None = "dispersed",
    keep_rows: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    callbacks: Iterable[Callable[[Draw], object]] = (),
    checkpoint: Checkpoint | None = None,
    max_seconds: float | None = None,
    until: Until | None = None,
) -> Trace:
    r"""Draw partitions of the rows from their exact posterior by Markov chain Monte Carlo.

    The target is the posterior of the model that `fit` approximates, with the components integrated out,

    .. math:: p(\Pi \mid X) \propto p(\Pi) \prod_{c \in \Pi} m(X_c)

    where m is the marginal likelihood of the rows of a cluster. Draws follow the posterior in the limit of many sweeps;
    check `Trace.rhat` and `Trace.ess`. Chains run in parallel if threads are free. The same seed gives the same draws
    for any number of threads.

    Parameters of the likelihood that are `None` are estimated once, by ``sb.fit(model, data)``, whatever the seed
    (under ``DirichletProcess(1.0)`` if `fit` does not support the process, and with the mean of a prior on
    `mean_precision`).
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
        How chains move. Default: ``SplitMerge()``, the fastest that leaves bad starts; under likelihoods and processes
        that it does not support ``BlockedGibbs()``, or else ``Slice()``.
    draws : int
        Draws that each chain keeps, at least 1.
    warmup : int
        Sweeps of each chain before its first draw, at least 0.
    chains : int
        The number of chains, at least 1.
    thin : int
        Sweeps from one draw to the next, at least 1.
    init : {"dispersed", "single", "singletons", "ibhc", "one-on-top", "fit"}, array_like, Fit, or a sequence
        Where chains start. "dispersed", or None: far apart, so that chains which agree have come together. The first
        starts from "fit", the second from "singletons" (above 1,000 rows, and for `BlockedGibbs` and `Slice`, from
        random labels: twice as many as the fit has components), the third from "single", the fourth from labels at
        random, and so on again. No start has more clusters than the process, or the truncation of `BlockedGibbs`,
        allows. "single": all rows in one cluster.
        "singletons": each in its own. "ibhc": the trees of
        incremental Bayesian hierarchical clustering (see `hierarchy`). "one-on-top": each row in random order joins the
        nearest cluster, or opens one. "fit": the components of ``sb.fit(model, data)``, or "single" if all
        rows are equal. Or integer labels of shape (n,), or a fit: the most probable components of the rows. Of a
        sequence of these, each chain takes the next one in turn.
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
    until : Until, optional
        When draws are enough; `draws` stays the most. It is asked after 100 draws of each chain, and each time that
        their number has grown by a fifth, so that where chains end does not depend on time. `Trace.stop_reason` says
        what ended them.

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

    Warns
    -----
    ConvergenceWarning
        Chains disagree, have few effective draws, or never moved; `Trace.advice` has all advice.
    TruncationWarning
        `BlockedGibbs` needs more components.
    Advice
        Rows repeat or values are rounded, and draws have far more clusters than the fit has components.

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
    chosen = None if sampler is None else checks.instance("sampler", sampler, Sampler, _SAMPLERS)
    numbers = {"draws": draws, "warmup": warmup, "thin": thin, "chains": chains, "seed": seed, "threads": threads}
    plan = _plan(numbers, until, max_seconds)
    if progress is not None:
        progress = checks.flag("progress", progress)
    functions = checked_callbacks(callbacks)

    def predict(fit: Fit) -> NDArray[np.int64]:
        return fit.predict(data, exposure=exposure, threads=plan["threads"])

    with checkpoint_file(checkpoint, "sample", [plan["seed"]]) or nullcontext() as file:
        given = read(data, model, init=init, file=file, minimum=1, exposure=exposure)
        model = given.placed(model)
        plan["sampler"] = (chosen := chosen or _usual(model))._to_core()
        rows = own_rows(given, "data", copy=not chosen._in_place)
        kept = None if keep_rows is None else distinct(keep_rows, "keep_rows", rows.shape[0])
        plan["keep_rows"] = None if kept is None else kept.astype(np.uint32)
        _core.check_model(model.likelihood._to_core(), model.process._to_core(), plan["sampler"])
        asked = starts_of(init, rows, predict)
        resumed = None if file is None else file.read(rows.shape[0])
        likelihood, fit, of_fit, fit_seconds = _estimated(
            model, rows, asked, given, plan, predict, is_plain=exposure is None
        )
        starts = _starts(asked, rows.shape[0], chosen, model, of_fit)
        room = room_of_draws(plan["chains"], plan["draws"], rows.shape[0] if kept is None else len(kept))
        bar = sweep_bar(progress, plan["chains"], plan["warmup"] + plan["draws"] * plan["thin"])
        observer = Observer(functions, bar, file, resumed)
        try:
            found, state = _core.sample(
                rows,
                likelihood=likelihood,
                process=model.process._to_core(),
                plan=plan,
                init=starts,
                partitions=room,
                observer=observer,
            )
        except InvalidArgument as error:
            shown = _of_estimate(error, model.likelihood)
            raise with_column(shown, given.names, on_missing(model.likelihood)) from None
        except CheckpointError as error:
            raise error if file is None or error is observer.exception else file.refused(error) from None
        finally:
            observer.close()
    if fit is None:
        warn_of_columns(state, given.names)
    filled = Mixture(likelihood=Likelihood._from_core(*state.likelihood), process=model.process)
    ran = replace(_ran(plan, named(starts, asked, plan["chains"]), fit, fit_seconds), fingerprint=state.fingerprint)
    ran_chains = replace(
        chains_of(found, room, plan["chains"], ran),
        kept_rows=kept,
        exact=not isinstance(chosen, TreeGuided) or chosen.exact,
    )
    trace = Trace(ran_chains, filled, (state, rows), given.names, given.levels)
    advising_chains.warn_of_draws(trace.advice(), stacklevel=2)
    if found["error"] is not None:
        found["error"].trace = trace
        raise found["error"]
    return trace


def _usual(model: Mixture) -> Sampler:
    """Return the first of the usual samplers that supports the model."""
    reasons = []
    for sampler in _USUAL:
        try:
            _core.check_model(model.likelihood._to_core(), model.process._to_core(), sampler._to_core())
        except (NotSupported, InvalidArgument) as error:
            reasons.append(f"{sampler}: {error}")
            continue
        return sampler
    kinds = type(model.likelihood).__name__, type(model.process).__name__
    raise checks.not_supported("model", f"{kinds[0]} under a {kinds[1]}", "; ".join(reasons), "another process, or fit")


def _plan(numbers: Mapping[str, Any], until: object, max_seconds: float | None) -> ChainPlan:
    """Return the checked plan of all chains, of the first of the usual samplers."""
    draws = checks.integer("draws", numbers["draws"], minimum=1)
    chains = checks.integer("chains", numbers["chains"], minimum=1, maximum=10_000)
    return {
        "sampler": _USUAL[0]._to_core(),
        "draws": draws,
        "warmup": checks.integer("warmup", numbers["warmup"], minimum=0),
        "thin": checks.integer("thin", numbers["thin"], minimum=1),
        "chains": chains,
        "seed": checks.seed(numbers["seed"]),
        "max_seconds": None if max_seconds is None else checks.non_negative("max_seconds", max_seconds, ", or None"),
        "keep_rows": None,
        "threads": checks.threads(numbers["threads"]),
        "until": until_of(until, draws, chains),
        "resumed": None,
    }


def _of_estimate(error: InvalidArgument, likelihood: Likelihood) -> InvalidArgument:
    """Return the error, as one of the data if its argument was estimated from them."""
    if getattr(likelihood, error.argument or "", 0) is not None:
        return error
    found = f"rows whose estimated {error.argument} is {error.found}"
    allowed = f"rows none of which are far from all others, columns that differ by more, or a given {error.argument}"
    return checks.invalid_argument("data", found, allowed)


class _Estimate(NamedTuple):
    """The likelihood with all parameters, and the fit that they and starts come from."""

    likelihood: Specification
    # None if all parameters are given and no chain starts from a fit, and for rows that are all equal.
    fit: Fit | None = None
    # The labels of the fit, if a chain starts from it.
    labels: NDArray[np.int64] | None = None
    seconds: float = 0.0


def _estimated(
    model: Mixture,
    rows: arrays.Rows,
    asked: Starts,
    given: Given,
    plan: ChainPlan,
    predict: Callable[[Fit], NDArray[np.int64]],
    *,
    is_plain: bool,
) -> _Estimate:
    began = time.monotonic()
    own, process = model.likelihood._to_core(), model.process._to_core()
    with naming(given.names, on_missing(model.likelihood)):
        likelihood, state = _core.estimate(rows, own, process, _SEED_OF_FIT, asked.need_fit, plan["threads"])
    if state is None:
        return _Estimate(likelihood)
    warn_of_estimate(state, given.names)
    fit = Fit(state, **given.legend)
    labels = None
    if asked.need_fit:
        # A reader can be read only once, and its rows are here.
        labels = (
            Fit(state).predict(rows, threads=plan["threads"])
            if is_plain and isinstance(rows, np.ndarray)
            else predict(fit)
        )
    return _Estimate(likelihood, fit, labels, time.monotonic() - began)


def _starts(
    asked: Starts, n: int, sampler: Sampler, model: Mixture, of_fit: NDArray[np.int64] | None
) -> tuple[Start, ...]:
    """Return the starts that chains take in turn."""
    process = model.process
    limits = [process.n_components] if isinstance(process, FiniteDirichlet) else []
    if isinstance(sampler, BlockedGibbs) and sampler.truncation:
        limits.append(sampler.truncation)
    if sampler._in_place:
        # A sweep of theirs visits each row with each component, of which the default truncation follows the starts.
        limits.append(1 if of_fit is None else 2 * np.unique(of_fit).size)
    most = min(limits, default=n)
    if of_fit is not None and not asked.given:
        of_fit = _core.cut_to_clusters(of_fit.astype(np.uint32), most)
    return asked.filled(of_fit, n, most)


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


def _ran(plan: ChainPlan, starts: tuple[str, ...], fit: Fit | None, fit_seconds: float) -> Ran:
    return Ran(
        sampler=plan["sampler"],
        seeds=(plan["seed"],) * plan["chains"],
        starts=starts,
        warmup=plan["warmup"],
        thin=plan["thin"],
        asked=plan["draws"],
        fit_seconds=fit_seconds,
        fit_components=0 if fit is None else fit.n_occupied,
        repeats="" if fit is None else advising_chains.repeats_of(fit),
    )


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
