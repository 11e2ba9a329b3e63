"""Initialisation of inference: the `init` argument."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak._core import FitState
from stickbreak.io import arrays
from stickbreak.model.model import Model
from stickbreak.result.fitted import Fitted

_WORDS = ("kmeans++", "random", "sequential")
_ARRAYS = ("labels of shape (n,)", "responsibilities of shape (n, K)")
# The form that the core reads.
Start: TypeAlias = str | NDArray[np.int64] | NDArray[np.float64] | FitState


def start(init: object, model: Model, n_rows: int | None, n_columns: int, missing: str = "error") -> Start:
    """Return the checked `init`; `n_rows` is None for data read in blocks."""
    others = (*_ARRAYS, model._fit)
    if isinstance(init, str):
        if init == "sequential" and n_rows is None:
            reason = "it takes rows in random order, which these do not have"
            found = 'init="sequential" for data that are read in blocks'
            raise checks.not_supported("init", found, reason, '"kmeans++" or "random"')
        # The core refuses a word that is not for this model, with the reason.
        return init if init in _WORDS else checks.word("init", init, model._starts, or_else=others)
    if isinstance(init, Fitted):
        return _start_from_fit(init, model, n_columns, missing)
    allowed = " or ".join([*map(repr, model._starts), *others])
    array = arrays.numeric(init, "init", allowed)
    if array.ndim == 0:
        hint = f"for {init} components write n_components={init}" if checks.is_integer(init) else ""
        raise checks.invalid_type("init", checks.describe(init), allowed, hint)
    if array.ndim == 1:
        return arrays.labels(array, "init", n_rows)
    if array.ndim == 2:
        return arrays.responsibilities(array, "init", n_rows)
    raise checks.invalid_argument("init", f"an array of shape {array.shape}", " or ".join(others))


def _start_from_fit(fit: Fitted, model: Model, n_columns: int, missing: str) -> FitState:
    found, wanted = type(fit.model), type(model)
    if found._has_documents is not wanted._has_documents:
        raise checks.invalid_argument("init", f"a fit of a {found.__name__}", f"a fit of a {wanted.__name__}")
    dimension = fit._state.dimension
    if dimension != n_columns:
        raise checks.invalid_argument(
            "init", f"a fit with D = {dimension}", f"a fit with D = {n_columns}, as in the data"
        )
    hint = "to start from what it says of the rows, write init=fit.predict_proba(X)"
    likelihoods = type(fit.model.likelihood).__name__, type(model.likelihood).__name__
    if likelihoods[0] != likelihoods[1]:
        raise checks.invalid_argument("init", f"a fit of {likelihoods[0]}", f"a fit of {likelihoods[1]}", hint)
    if fit._state.missing != missing:
        # The two differ in whether statistics include counts per column.
        kept = fit._state.missing
        raise checks.invalid_argument("init", f"a fit with missing={kept!r}", f"a fit with missing={missing!r}", hint)
    return fit._state
