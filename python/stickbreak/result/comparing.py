"""Which bounds may be compared, and `compare`: several fits in a table."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from stickbreak import checks
from stickbreak.errors import InvalidArgument
from stickbreak.io import frames
from stickbreak.result.fitted import Fitted
from stickbreak.result.tables import as_frame
from stickbreak.result.topic_fit import TopicFit

# Counts are sums of rounded responsibilities.
_ROUNDING = 1e-6
_ALLOWED = "at least two fits, in a list or by name in a dict"


def check(one: Fitted, other: Fitted) -> None:
    """Raise InvalidArgument if the bounds of two fits cannot be compared."""
    for argument, fit in (("self", one), ("other", other)):
        if math.isnan(fit.elbo):
            raise checks.invalid_argument(argument, "a fit without a bound: its elbo is nan", "a fit with a bound")
    check_data(one, other)
    for name, first, others in _compared(one, other):
        if first != others:
            raise checks.invalid_argument("other", f"a fit with {name} {others}", f"a fit with {name} {first}")


def check_data(one: Fitted, other: Fitted) -> None:
    """Raise InvalidArgument if two fits are known to have different rows or columns."""
    for name in ("n_rows", "dimension"):
        first, others = getattr(one._state, name), getattr(other._state, name)
        if first != others:
            raise checks.invalid_argument("other", f"a fit with {name} {others}", f"a fit with {name} {first}")
    names, others = one.column_names, other.column_names
    if names is not None and others is not None and names != others:
        raise checks.invalid_argument("other", f"a fit of the columns {others}", f"a fit of the columns {names}")
    mass, others = (float(fit.counts.sum() + fit._state.tail_count) for fit in (one, other))
    if abs(mass - others) > _ROUNDING * mass:
        found, allowed = (f"a fit to rows of the total weight {value:.10g}" for value in (others, mass))
        raise checks.invalid_argument("other", found, allowed)


def compare(fits: Iterable[Fitted] | Mapping[str, Fitted], *, held_out: ArrayLike | None = None) -> Any:
    """Compare fits of the same data in a table, the best first.

    Bounds of the same kind show which fit is the better approximation, or the better model. Fits that `Fit.compare`
    refuses have no gain here. All fits can be compared by held-out rows. Topic models with different objectives are
    refused; compare them by `TopicFit.document_completion`.

    Parameters
    ----------
    fits : iterable of Fit or TopicFit, or dict of str to these
        At least two fits to the same rows and columns.
    held_out : array_like of shape (m, D), optional
        Held-out rows that were used in none of the fits, at least two.

    Returns
    -------
    pandas.DataFrame
        One row per fit, labelled by its name or position: "likelihood", "process", "n_components", "bound", "elbo" in
        nats, "gain" over the first fit of the table by `Fit.objective`, in nats (nan if bounds cannot be compared), and
        "estimated", the estimated hyper-parameters, which raise the bound by some nats by themselves; those of
        `Columns` are listed by block, as in "shape of visits". With `held_out` also "held_out", the mean log predictive
        density of these rows in nats, "difference", how much it exceeds that of the first fit, and its "standard_error"
        over rows. Sorted by "held_out", else by the objective.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described, fits are known to have different rows or columns, or topic models have bounds
        of different kinds.
    NotSupported
        pandas is not installed, or `held_out` is given for topic models.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> rng = np.random.default_rng(0)
    >>> X, new = (rng.normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1) for _ in range(2))
    >>> model = sb.Mixture(likelihood=sb.Gaussian())
    >>> fits = {f"K = {k}": sb.fit(model, X, sb.Full(), n_components=k) for k in (1, 2)}
    >>> sb.compare(fits, held_out=new).index.tolist()
    ['K = 2', 'K = 1']
    """
    named = _named(fits)
    first_name, first = next(iter(named.items()))
    for name, fit in named.items():
        try:
            check_data(first, fit)
        except InvalidArgument as error:
            found = f"{error.found} ({name!r}) beside {error.allowed} ({first_name!r})"
            raise checks.invalid_argument("fits", found, "fits of the same rows and columns") from error
    if isinstance(first, TopicFit):
        _check_topics(named, held_out)
    densities = None
    if held_out is not None:
        # Some tables can be read only once.
        held_out = frames.understood(held_out, "held_out")
        densities = {name: _densities(fit, held_out) for name, fit in named.items()}
    values = {name: fit.objective if densities is None else densities[name].mean() for name, fit in named.items()}
    order = sorted(named, key=lambda name: -math.inf if math.isnan(values[name]) else values[name], reverse=True)
    best = named[order[0]]
    table: dict[str, list[Any]] = {
        "likelihood": [type(named[name].model.likelihood).__name__ for name in order],
        "process": [type(named[name].model.process).__name__ for name in order],
        "n_components": [named[name].n_components for name in order],
        "bound": [named[name].bound for name in order],
        "elbo": [named[name].elbo for name in order],
        "gain": [_gain(named[name], best) for name in order],
        "estimated": [_estimated(named[name]) for name in order],
    }
    if densities is not None:
        apart = [densities[name] - densities[order[0]] for name in order]
        n = len(apart[0])
        table["held_out"] = [values[name] for name in order]
        table["difference"] = [each.mean() for each in apart]
        table["standard_error"] = [float(((each - each.mean()) ** 2).sum() / (n - 1) / n) ** 0.5 for each in apart]
    return as_frame(table, "compare", index=order)


def _estimated(fit: Fitted) -> str:
    listed: str = fit._model.likelihood._listed(fit._state.to_parts()[0].get("estimated", []), fit.column_names)
    return listed


def _named(fits: object) -> dict[Any, Fitted]:
    if isinstance(fits, Fitted | str):
        raise checks.invalid_type("fits", checks.describe(fits), _ALLOWED)
    named = dict(fits) if isinstance(fits, Mapping) else dict(enumerate(checks.items("fits", fits, _ALLOWED)))
    for fit in named.values():
        checks.instance("fits", fit, Fitted, _ALLOWED)
    if len(named) < 2:
        raise checks.invalid_argument("fits", f"{len(named)} of them", _ALLOWED)
    return named


def _check_topics(fits: Mapping[Any, Fitted], held_out: object) -> None:
    """Refuse topic models of several objectives, for which neither bounds nor densities can be compared."""
    if held_out is not None:
        reason = "documents have no density in closed form"
        raise checks.not_supported("held_out", "held_out for topic models", reason, "TopicFit.document_completion")
    bounds = sorted({fit.bound for fit in fits.values()})
    if len(bounds) > 1:
        found = f"fits whose bounds are {' and '.join(map(repr, bounds))}"
        hint = "compare them by TopicFit.document_completion"
        raise checks.invalid_argument("fits", found, "topic models of one objective", hint)


def _densities(fit: Any, held_out: ArrayLike) -> Any:
    rows = fit._rows(held_out, "held_out")
    with checks.calling("held_out", "X"):
        found = fit.log_predictive(rows)
    if len(found) < 2 or not np.isfinite(found).all():
        what = f"{len(found)} of them" if len(found) < 2 else "rows without a density under a fit"
        raise checks.invalid_argument("held_out", what, "at least two rows, on the support of every fit")
    return found


def _gain(fit: Fitted, best: Fitted) -> float:
    try:
        check(best, fit)
    except InvalidArgument:
        return math.nan
    return fit.objective - best.objective


def _compared(one: Fitted, other: Fitted) -> Iterator[tuple[str, object, object]]:
    """Yield the properties that must agree, by name."""
    yield "the bound", one.bound, other.bound
    if one.bound == "map":  # densities are per unit of the parameters
        for role in ("likelihood", "process"):
            yield f"the {role}", type(getattr(one.model, role)).__name__, type(getattr(other.model, role)).__name__
    if hasattr(one._state, "classes") and hasattr(other._state, "classes"):  # a topic model has no labels
        classes, others_classes = (sorted(set(fit._state.classes.tolist()) - {-1}) for fit in (one, other))
        yield "the classes of labels", classes, others_classes
    first, others = one._state.lost_columns, other._state.lost_columns
    for index, name in enumerate(("constant", "dependent")):
        yield f"the {name} columns", first[index], others[index]
