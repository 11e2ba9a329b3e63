"""Where inference starts: the `init` argument and the number of components that follows from it."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak._core import State
from stickbreak.io import arrays
from stickbreak.model.mixture import Mixture
from stickbreak.result.fit import Fit

_WORDS = ("kmeans++", "random", "sequential")
_OTHERS = ("labels of shape (n,)", "responsibilities of shape (n, K)", "a Fit")
_DEFAULT_N_COMPONENTS = 50
# A wide start has so many components for each one that was found, and so many besides.
_WIDE = (2, 10)


@dataclass(frozen=True)
class Start:
    """A checked `init`.

    Parameters
    ----------
    value : str, ndarray or State
        What the core reads.
    kind : {"word", "labels", "responsibilities", "fit"}
        What it is.
    n_components : int, optional
        How many components it has; for labels, the least number that holds them all.
    """

    value: "str | NDArray[np.int64] | NDArray[np.float64] | State"
    kind: Literal["word", "labels", "responsibilities", "fit"]
    n_components: int | None = None


def start(init: object, model: Mixture, n_rows: int | None, n_columns: int, missing: str = "error") -> Start:
    """Return the checked `init`; `n_rows` is None for data that are read in blocks."""
    if isinstance(init, str):
        if init == "sequential" and n_rows is None:
            reason = "it takes rows in random order, which these do not have"
            found = 'init="sequential" for data that are read in blocks'
            raise checks.not_supported("init", found, reason, '"kmeans++" or "random"')
        return Start(checks.word("init", init, _WORDS, or_else=_OTHERS), "word")
    if isinstance(init, Fit):
        return _start_from_fit(init, model, n_columns, missing)
    array = arrays.numeric(init, "init", " or ".join([*map(repr, _WORDS), *_OTHERS]))
    if array.ndim == 0:
        hint = f"for {init} components write n_components={init}" if checks.is_integer(init) else ""
        raise checks.invalid_type("init", checks.describe(init), " or ".join([*map(repr, _WORDS), *_OTHERS]), hint)
    if array.ndim == 1:
        labels = arrays.labels(array, "init", n_rows)
        return Start(labels, "labels", int(labels.max()) + 1)
    if array.ndim == 2:
        responsibilities = arrays.responsibilities(array, "init", n_rows)
        return Start(responsibilities, "responsibilities", responsibilities.shape[1])
    raise checks.invalid_argument("init", f"an array of shape {array.shape}", " or ".join(_OTHERS))


def _start_from_fit(fit: Fit, model: Mixture, n_columns: int, missing: str) -> Start:
    dimension = fit._state.dimension
    if dimension != n_columns:
        raise checks.invalid_argument(
            "init", f"a fit with D = {dimension}", f"a fit with D = {n_columns}, as in the data"
        )
    found, wanted = type(fit.model.likelihood), type(model.likelihood)
    if found is not wanted:
        hint = "to start from what it says of the rows, write init=fit.predict_proba(X)"
        raise checks.invalid_argument("init", f"a fit of {found.__name__}", f"a fit of {wanted.__name__}", hint)
    if fit._state.missing != missing:
        # Its statistics count the values of each column, or do not.
        hint = "to start from what it says of the rows, write init=fit.predict_proba(X)"
        own = fit._state.missing
        raise checks.invalid_argument("init", f"a fit with missing={own!r}", f"a fit with missing={missing!r}", hint)
    return Start(fit._state, "fit", fit.n_components)


def number_of_components(
    requested: object, model: Mixture, start: Start, n_rows: int | None, *, grows: bool
) -> int | None:
    """Return K: as requested, else the process's own, else that of the start, else 1 if it grows, else 50, at most n.

    Where n is not known yet, the last is None, and the core compares the others with it.
    """
    own = model.process._fixed_n_components
    if requested is not None:
        requested = checks.integer("n_components", requested, minimum=1, maximum=n_rows, or_else=["None"])
        if own is not None and requested != own:
            raise checks.invalid_argument("n_components", str(requested), f"{own}, the number of the process")
    number = requested or own or start.n_components or (1 if grows else None)
    if number is None and n_rows is not None:
        number = min(_DEFAULT_N_COMPONENTS, n_rows)
    if number is None:
        return None
    if n_rows is not None and number > n_rows:
        # Whoever said the number is to blame.
        argument, found = ("n_components", str(number)) if own else ("init", f"of {number} components")
        raise checks.invalid_argument(argument, found, f"at most {n_rows}, the number of rows")
    _check_start_holds(start, number, asked_for=requested is not None)
    return number


def widens(requested: object, model: Mixture, start: Start, *, grows: bool) -> bool:
    """Return whether further starts may begin with more components than one: nobody said how many."""
    return grows and requested is None and model.process._fixed_n_components is None and start.kind == "word"


def wide_start(found: Fit) -> int:
    """Return the number of components of a start that has more than were found, at most n."""
    factor, more = _WIDE
    return min(factor * found.n_occupied + more, found._state.n_rows)


def _check_start_holds(start: Start, number: int, *, asked_for: bool) -> None:
    if start.n_components is None or start.n_components == number:
        return
    if start.kind == "labels":
        # Labels need not use every component.
        if start.n_components > number:
            highest = start.n_components - 1
            raise checks.invalid_argument("init", f"labels up to {highest}", f"labels from 0 to {number - 1}")
    elif asked_for:
        raise checks.invalid_argument("n_components", str(number), f"{start.n_components}, the number of init")
    else:
        allowed = f"of {number} components, the number of the process"
        raise checks.invalid_argument("init", f"of {start.n_components} components", allowed)
