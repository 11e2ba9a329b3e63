"""`cross_validate`: how well a model predicts held-out rows."""

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from stickbreak import checks
from stickbreak.errors import InvalidType
from stickbreak.io import arrays, names
from stickbreak.model.mixture import Mixture
from stickbreak.result.history import StopReason
from stickbreak.result.tables import as_frame
from stickbreak.run.algorithms import Full, Memoized, Stochastic
from stickbreak.run.fitting import fit
from stickbreak.run.options import FitOptions, FoldOptions

# Arguments of `fit` that refer to all rows.
_OF_ALL_ROWS = ("sample_weight", "init", "checkpoint")
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
        `init` and `checkpoint`, which refer to all rows.

    Returns
    -------
    pandas.DataFrame
        One row per model and fold: "model" and "fold", "n_train" and "n_test", "n_components", "elbo" of the training
        rows, "log_predictive", the mean log predictive density of the held-out rows in nats per row, "seconds", and
        "stop_reason", the value of `Fit.stop_reason`. Ctrl-C ends the table: its last row is the fit that was
        interrupted.

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
        data, labels = _rows(X, each)
        n = data.shape[0]
        if n < 3:
            raise checks.invalid_argument("X", f"of shape {data.shape}", "an array of at least three rows")
        folds = checks.integer("folds", folds, minimum=2, maximum=n)
        order = np.random.default_rng(checks.seed(seed)).permutation(n)
        for fold in range(folds):
            chosen = np.zeros(n, dtype=bool)
            chosen[order[fold::folds]] = True
            train, test = (names.Table(data[rows], labels) if labels else data[rows] for rows in (~chosen, chosen))
            found = fit(each, train, algorithm, seed=seed, **options)
            values = (name, fold, n - int(chosen.sum()), int(chosen.sum()), found.n_components, found.elbo)
            densities = found.log_predictive(test, threads=options.get("threads"))
            seconds = found.history[-1].seconds if found.history else 0.0
            ended = (float(densities.mean()), seconds, found.stop_reason.value)
            for column, value in zip(_COLUMNS, (*values, *ended), strict=True):
                table[column].append(value)
            if found.stop_reason is StopReason.INTERRUPTED:
                return as_frame(table, "cross_validate")
    return as_frame(table, "cross_validate")


_COLUMNS = ("model", "fold", "n_train", "n_test", "n_components", "elbo", "log_predictive", "seconds", "stop_reason")


def _check_options(options: Mapping[str, object]) -> None:
    """Refuse options that are not arguments of `fit`, or belong to all rows."""
    for name, value in options.items():
        if name in _OF_ALL_ROWS and not isinstance(value, str | None):
            raise checks.not_supported(name, f"{name} in cross_validate", "it belongs to all rows", "fit for each fold")
        if name not in FitOptions.__annotations__:
            others = sorted(FoldOptions.__annotations__.keys() - {"init"})
            hint = checks.did_you_mean(name, others) or f"further arguments are {', '.join(others)}"
            message = f"cross_validate has no argument {checks.quote(name)}; {hint}"
            raise InvalidType(message, argument=name, found=name, allowed=", ".join(others))


def _rows(X: object, model: Mixture) -> tuple[Any, names.Names | None]:
    """Return rows that can be indexed by a mask, and the names of their columns."""
    kind = type(model.likelihood)
    found = names.named(arrays.with_whole_parts(X, "X"), "X")
    rows = arrays.rows(found.data, "X", likelihood=kind)
    return (found.data if isinstance(rows, arrays.SparseRows) else rows), found.names
