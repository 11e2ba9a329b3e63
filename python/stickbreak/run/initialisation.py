"""Initialisation of inference: the `init` argument."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak._core import FitState
from stickbreak.io import arrays
from stickbreak.model.mixture import Mixture
from stickbreak.model.topic_model import TopicModel
from stickbreak.result.fit import Fit
from stickbreak.result.topic_fit import TopicFit

_WORDS = ("kmeans++", "random", "sequential")
_OTHERS = ("labels of shape (n,)", "responsibilities of shape (n, K)", "a Fit")
# The form that the core reads.
Start: TypeAlias = str | NDArray[np.int64] | NDArray[np.float64] | FitState


def start(
    init: object, model: Mixture | TopicModel, n_rows: int | None, n_columns: int, missing: str = "error"
) -> Start:
    """Return the checked `init`; `n_rows` is None for data read in blocks."""
    if isinstance(init, str):
        if init == "sequential" and n_rows is None:
            reason = "it takes rows in random order, which these do not have"
            found = 'init="sequential" for data that are read in blocks'
            raise checks.not_supported("init", found, reason, '"kmeans++" or "random"')
        if isinstance(model, TopicModel) and init != "sequential":  # which the core refuses, saying why
            return checks.word("init", init, _WORDS[:2], or_else=[*_OTHERS[:2], "a TopicFit"])
        return checks.word("init", init, _WORDS, or_else=_OTHERS)
    if isinstance(init, Fit | TopicFit):
        if isinstance(init, TopicFit) is not isinstance(model, TopicModel):
            found, wanted = type(init.model).__name__, type(model).__name__
            raise checks.invalid_argument("init", f"a fit of a {found}", f"a fit of a {wanted}")
        return _start_from_fit(init, model, n_columns, missing)
    array = arrays.numeric(init, "init", " or ".join([*map(repr, _WORDS), *_OTHERS]))
    if array.ndim == 0:
        hint = f"for {init} components write n_components={init}" if checks.is_integer(init) else ""
        raise checks.invalid_type("init", checks.describe(init), " or ".join([*map(repr, _WORDS), *_OTHERS]), hint)
    if array.ndim == 1:
        return arrays.labels(array, "init", n_rows)
    if array.ndim == 2:
        return arrays.responsibilities(array, "init", n_rows)
    raise checks.invalid_argument("init", f"an array of shape {array.shape}", " or ".join(_OTHERS))


def _start_from_fit(fit: Fit | TopicFit, model: Mixture | TopicModel, n_columns: int, missing: str) -> FitState:
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
        # The two differ in whether statistics include counts per column.
        hint = "to start from what it says of the rows, write init=fit.predict_proba(X)"
        own = fit._state.missing
        raise checks.invalid_argument("init", f"a fit with missing={own!r}", f"a fit with missing={missing!r}", hint)
    return fit._state
