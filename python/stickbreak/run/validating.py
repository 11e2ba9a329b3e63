"""`cross_validate`: how well a model predicts held-out rows."""

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from stickbreak import checks
from stickbreak.io import arrays, levels, names
from stickbreak.io.room import fitting
from stickbreak.model.mixture import Mixture
from stickbreak.result.fit import Fit
from stickbreak.result.history import StopReason
from stickbreak.result.tables import as_frame
from stickbreak.run.algorithms import Full, Memoized, Stochastic
from stickbreak.run.fitting import fit
from stickbreak.run.options import FoldOptions, check_known

# Arguments of `fit` that refer to all rows.
_OF_ALL_ROWS = ("sample_weight", "labels", "exposure", "init", "checkpoint")
_ALLOWED = "a Mixture, or a dict of them by name"


def cross_validate(
    model: Mixture | Mapping[str, Mixture],
    X: ArrayLike,
    algorithm: Full | Memoized | Stochastic | None = None,
    *,
    folds: int = 5,
    seed: int = 0,
    **options: Unpack[FoldOptions],
) -> Any:
    """Fit a model to all folds of the rows but one, and score the held-out fold, for each fold in turn.

    Parameters
    ----------
    model : Mixture, or dict of str to Mixture
        One model, or several to compare on the same folds.
    X : array_like of shape (n, D)
        The rows, at least three.
    algorithm : Full, Memoized or Stochastic, optional
        As in `fit`.
    folds : int
        Number of folds, from 2 to n. Every fit must have at least two rows.
    seed : int
        Decides the assignment of rows to folds, and is the `seed` of every fit.
    **options
        Further arguments of `fit`, such as `n_components`, `n_init` or `threads`. Not allowed are `sample_weight`,
        `labels`, `exposure`, `init` and `checkpoint`, which refer to all rows; exposures may be a column of `X`.

    Returns
    -------
    pandas.DataFrame
        One row per model and fold: "model" and "fold", "n_train" and "n_test", "n_components", "elbo" of the training
        rows, "log_predictive", the mean log predictive density of the held-out rows in nats per row, "seconds", and
        "stop_reason", the value of `Fit.stop_reason`. Ctrl-C ends the table: its last row is the fit that was
        interrupted, NaN where that had no result yet.

    Raises
    ------
    InvalidType, InvalidArgument, NotSupported
        An argument is not as described, `fit` refuses it, or pandas is not installed.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
    >>> table = sb.cross_validate(sb.Mixture(likelihood=sb.Gaussian()), X, folds=4)
    >>> table["n_components"].tolist(), table["n_test"].tolist()
    ([2, 2, 2, 2], [50, 50, 50, 50])
    """
    models = dict(model) if isinstance(model, Mapping) else {"model": model}
    if not models:
        raise checks.invalid_argument("model", "an empty dict", _ALLOWED)
    for each in models.values():
        checks.instance("model", each, Mixture, _ALLOWED)
    _check_options(options)
    table: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
    for name, each in models.items():
        data, labels, each = _rows(X, each)
        n = data.shape[0]
        if n < 3:
            raise checks.invalid_argument("X", f"of shape {data.shape}", "an array of at least three rows")
        folds = checks.integer("folds", folds, minimum=2, maximum=n)
        with fitting("X", data.shape):
            order = np.random.default_rng(checks.seed(seed)).permutation(n)
        for fold in range(folds):
            with fitting("X", data.shape):
                chosen = np.zeros(n, dtype=bool)
                chosen[order[fold::folds]] = True
                both = (data[~chosen], data[chosen])
            train, test = (levels.CodedRows(rows, labels) if labels else rows for rows in both)
            sizes = {"model": name, "fold": fold, "n_train": n - int(chosen.sum()), "n_test": int(chosen.sum())}
            row = sizes | _interrupted_row()
            try:
                found = fit(each, train, algorithm, seed=seed, **options)
                row |= _row_of(found)
                densities = found.log_predictive(test, threads=options.get("threads"))
                row |= {"log_predictive": float(densities.mean()), "stop_reason": found.stop_reason.value}
            except KeyboardInterrupt:
                # Between fits, or while one begins or is judged.
                row["stop_reason"] = StopReason.INTERRUPTED.value
            for column in _COLUMNS:
                table[column].append(row[column])
            if row["stop_reason"] == StopReason.INTERRUPTED.value:
                return as_frame(table, "cross_validate")
    return as_frame(table, "cross_validate")


_COLUMNS = ("model", "fold", "n_train", "n_test", "n_components", "elbo", "log_predictive", "seconds", "stop_reason")


def _interrupted_row() -> dict[str, Any]:
    """Return what stands for a fit that was interrupted before it had a result."""
    nan = float("nan")
    return {"n_components": 0, "elbo": nan, "log_predictive": nan, "seconds": nan, "stop_reason": None}


def _row_of(found: Fit) -> dict[str, Any]:
    """Return what a row says of a fit."""
    seconds = found.history[-1].seconds if found.history else 0.0
    return {"n_components": found.n_components, "elbo": found.elbo, "seconds": seconds}


def _check_options(options: Mapping[str, object]) -> None:
    """Refuse options that are not arguments of `fit`, or belong to all rows."""
    for name, value in options.items():
        if name in _OF_ALL_ROWS and not isinstance(value, str | None):
            raise checks.not_supported(name, f"{name} in cross_validate", "it belongs to all rows", "fit for each fold")
    check_known("cross_validate", options, FoldOptions.__annotations__.keys() - {"init"})


def _rows(X: object, model: Mixture) -> tuple[Any, names.Names | None, Mixture]:
    """Return rows that can be indexed by a mask, the names of their columns, and the model with their levels."""
    found = levels.coded(arrays.with_whole_parts(X, "X"), "X", model.likelihood, learn=True)
    rows = arrays.rows(found.data, "X", likelihood=type(model.likelihood))
    if found.sizes:
        # A fold may lack levels.
        model = model._placed(found.names, rows.shape[1])._with_levels(found.sizes)
    return (found.data if isinstance(rows, arrays.SparseRows) else rows), found.names, model
