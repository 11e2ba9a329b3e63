"""Every public callable: constructors, functions, and methods of everything that functions return.

Parameters are read from signatures. Each gets a good value of its name; then one or two are replaced by wild ones.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

import stickbreak as sb
import stickbreak.sklearn
from fuzzing import Failure, generator
from fuzzing.good import GOOD, MAKERS
from fuzzing.inputs import problem_of, wild

Generator = np.random.Generator

_KIND = 6
_ALLOWED = (
    *(sb.InvalidArgument, sb.InvalidType, sb.NotSupported, sb.NumericalError),
    *(sb.SourceError, sb.ModelFileError, sb.CheckpointError),
)
# Made by the package alone, from parts of its own.
_INNER = {
    *(
        "Clusters",
        "CredibleBall",
        "Density",
        "DensityBand",
        "Fit",
        "Hierarchy",
        "PointEstimate",
        "PriorSample",
        "RunLength",
        "RunnerUp",
    ),
    *("SimilarityBlock", "Stability", "StopReason", "ChainsStopped", "TopicFit", "Trace"),
}
# What returns nan where there is nothing to compute a number from, such as the bound before all rows were seen.
_NAN = {
    "TopicFit.document_completion",
    "TopicFit.coherence",
    "Trace.autocorrelation",
    "Trace.ess",
    "Trace.raftery_lewis",
    "Trace.rhat",
    "sklearn.TopicModel.score",
    "fit",
}
# What returns minus infinity for rows whose squared distance overflows, and the least value that such rows have.
_OVERFLOWS = {"Density.log_density", "Trace.log_predictive"}
_LEAST_OVERFLOWING = 1e150
# Parameters of scikit-learn's interface, which it alone passes.
_KEPT = ("deep",)
# Parameters that decide how much is done: a large number that is allowed takes long.
_WORK = """
    batches chains depth draws folds fresh global_moves levels max_passes max_steps max_subsample min_words n
    n_components n_init n_samples n_topics n_trials n_words restarts runs scans thin threads warmup
""".split()


def run(seed: int, number: int) -> str:
    """Run one case; return how it ended."""
    rng = generator(seed, _KIND, number)
    names = subjects()
    name = names[rng.integers(len(names))]
    function = _found(name, rng)
    named = _spoil(rng, _arguments(rng, name, function))
    try:
        result = _called(function, named)
    except Exception as error:
        if (who := who_refuses(error)) is not None:
            return f"refused{who}"
        raise Failure(f"{type(error).__name__}: {error}\n    {name}(**{named!r})"[:3000]) from error
    finally:
        _close_figures()
    if name in _OVERFLOWS:
        result = _without_overflows(result, named["X"])
    if problem := problem_of(result, may_be_nan=name in _NAN):
        raise Failure(f"{problem}\n    {name}(**{named!r})"[:3000])
    return "success"


def good_call(rng: Generator) -> tuple[str, dict[str, Any], Callable[[], Any]]:
    """Return the name of a callable, good arguments, and what calls it with them."""
    names = subjects()
    name = names[rng.integers(len(names))]
    function = _found(name, rng)
    named = _arguments(rng, name, function)
    return name, named, lambda: _called(function, named)


def _called(function: Callable[..., Any], named: dict[str, Any]) -> Any:
    parameters = inspect.signature(function).parameters.values()
    kinds = {parameter.name: parameter.kind for parameter in parameters}
    positional = [named.pop(name) for name, kind in kinds.items() if kind is inspect.Parameter.POSITIONAL_ONLY]
    return function(*positional, **named)


def _without_overflows(densities: Any, rows: Any) -> Any:
    """Return log densities but those of minus infinity whose rows are so far away that they must be."""
    values = np.asarray(rows, dtype=np.float64).reshape(len(densities), -1)
    is_far = (np.abs(values) > _LEAST_OVERFLOWING).any(axis=1)
    return densities[~(is_far & np.isneginf(densities))]


# --- what is called ---


@cache
def subjects() -> list[str]:
    """Return the names of all public callables that have parameters."""
    return [name for name in _names() if parameters_of(name)]


def _names() -> Iterator[str]:
    for name in sb.__all__:
        member = getattr(sb, name)
        # Errors and warnings without a constructor of their own take anything.
        makes = inspect.getattr_static(member, "__init__", None)
        is_plain = isinstance(member, type) and makes in (Exception.__init__, UserWarning.__init__)
        if callable(member) and name not in _INNER and not is_plain:
            yield name
    for name in sb.plot.__all__:
        yield f"plot.{name}"
    for name in sb.sklearn.__all__:
        yield f"sklearn.{name}"
    for owner in MAKERS:
        made = MAKERS[owner](np.random.default_rng(0))
        for name in dir(type(made)):
            if not name.startswith("_") and _is_own_method(inspect.getattr_static(type(made), name)):
                yield f"{owner}.{name}"


def _is_own_method(member: object) -> bool:
    """Return whether a member of a class is a function of the package, not of a base class of scikit-learn."""
    function = getattr(member, "__func__", member)
    return inspect.isfunction(function) and function.__module__.startswith("stickbreak")


def parameters_of(name: str) -> list[str]:
    """Return the parameters of a public callable, those of `**options` too."""
    found = inspect.signature(_found(name, np.random.default_rng(0))).parameters.values()
    names = [parameter.name for parameter in found if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    return names + (["n_init", "missing", "threads"] if name == "cross_validate" else [])


def _found(name: str, rng: Generator) -> Callable[..., Any]:
    owner, _, member = name.rpartition(".")
    parent: Any = {"": sb, "plot": sb.plot, "sklearn": sb.sklearn}.get(owner) or MAKERS[owner](rng)
    found: Callable[..., Any] = getattr(parent, member)
    return found


# --- arguments ---


def _arguments(rng: Generator, name: str, function: Callable[..., Any]) -> dict[str, Any]:
    """Return good arguments: all that are required, and some of the others."""
    found = inspect.signature(function).parameters
    named = {}
    for each in parameters_of(name):
        is_required = each in found and found[each].default is inspect.Parameter.empty
        if is_required or each in _ALWAYS or rng.random() < 0.4:
            named[each] = good(name, each)(rng)
    return named


def good(name: str, parameter: str) -> Callable[[Generator], Any]:
    """Return what makes good values of a parameter: of this callable, of its owner, or of any with such a name."""
    owner = name.rpartition(".")[0]
    for key in (f"{name}({parameter})", f"{owner}.({parameter})", parameter):
        if key in GOOD:
            return GOOD[key]
    raise KeyError(f"no good value of {parameter} of {name} is known: add it to the table")


# Without them a call takes long, or draws on stderr.
_ALWAYS = ("threads", "progress", "draws", "warmup", "chains", "max_passes", "global_moves", "checkpoint")


def _spoil(rng: Generator, named: dict[str, Any]) -> dict[str, Any]:
    names = sorted(name for name in named if name not in _KEPT)
    for _ in range(int(rng.integers(1, 3)) if names and rng.random() < 0.7 else 0):
        name = names[rng.integers(len(names))]
        value = wild(rng)
        if name in _WORK and isinstance(value, int | np.integer) and not -64 < value < 64:
            value = -1
        # A bar is a word on stderr.
        named[name] = False if name in ("progress", "verbose") and isinstance(value, bool | np.bool_) else value
    return named


def who_refuses(error: Exception) -> str | None:
    """Return whose refusal an error is, with a space in front unless it is the package; None if it is none."""
    if isinstance(error, _ALLOWED):
        return ""
    return " by scikit-learn" if _is_of_scikit_learn(error) else None


def _is_of_scikit_learn(error: BaseException) -> bool:
    """Return whether a check of scikit-learn itself, called by an estimator, has refused an argument."""
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    own = [place for place, file in enumerate(files) if "/stickbreak/" in file]
    after = files[(own[-1] if own else -1) + 1 :]
    if any("/site-packages/sklearn/" in file for file in after):
        return True
    # An estimator may add to the message where the value is.
    context = error.__context__
    return (
        isinstance(context, ValueError) and files[-1].endswith("sklearn/validating.py") and _is_of_scikit_learn(context)
    )


def _close_figures() -> None:
    from matplotlib import pyplot

    pyplot.close("all")
