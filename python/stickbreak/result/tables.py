"""Tables of a fit: its components by name, and outlier scores of rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.errors import NotSupported
from stickbreak.io import arrays, names
from stickbreak.io.cells import Level
from stickbreak.io.levels import Levels, shown
from stickbreak.io.room import fitting
from stickbreak.model.counts import NegativeBinomial
from stickbreak.model.likelihoods import Likelihood
from stickbreak.result import by_chunk
from stickbreak.result.fitted import Fitted
from stickbreak.shards.pieces import is_collection
from stickbreak.terminal import plain

_ROUNDING = 1e-9
# Names of parameters in the table.
_TITLES = {"mean": "mean", "rate": "rate", "probabilities": "probability"}


class Tabular(Fitted):
    """A fit that can be shown as a table."""

    def summary(self) -> Any:
        """Return the components as a pandas DataFrame, one row per component, indexed by position.

        Returns
        -------
        pandas.DataFrame
            The columns "weight" and "count". For each column of the data, called NAME after its name or its position
            from 0, the `point_estimates`: "mean NAME" and "sd NAME" for Gaussians and `NegativeBinomial`, "rate NAME"
            for `Poisson`, "probability NAME" for `Bernoulli` and `Multinomial`; for `Categorical` the most probable
            code, "code NAME", and its "probability NAME". Columns with `levels` have the most probable level, "level
            NAME", in place of the code, and flags of two words the second one, as in "probability NAME = yes".

        Raises
        ------
        NotSupported
            pandas is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> import stickbreak as sb
        >>> rows = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
        >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), pd.DataFrame(rows, columns=["size"]))
        >>> fit.summary().round(1).columns.tolist()
        ['weight', 'count', 'mean size', 'sd size']
        """
        table: dict[str, NDArray[Any]] = {"weight": self.weights, "count": self.counts}
        titles = [str(d) for d in range(self._state.dimension)] if self.column_names is None else self.column_names
        for column, name in enumerate(titles):
            word = self._word(column)
            for title, values in self._described(column).items():
                of_word = f" = {word}" if word is not None and title == "probability" else ""
                table[plain(f"{title} {name}{of_word}", breaks=True)] = values
        return as_frame(table, "summary()")

    def as_table(self, X: ArrayLike) -> Any:
        """Return rows as a pandas DataFrame with the names of the columns, and levels in place of codes.

        Methods that return rows, such as `sample` and `impute`, return arrays with codes.

        Parameters
        ----------
        X : array_like of shape (m, D)
            Rows as these methods return them.

        Returns
        -------
        pandas.DataFrame
            The same rows. A missing level is None, or NaN where pandas has its own type of text. Flags without levels
            stay numbers: those that `impute` fills in are probabilities.

        Raises
        ------
        InvalidType, InvalidArgument
            `X` is not an array of D columns, or has a number that is no code of a level.
        NotSupported
            pandas is not installed.

        Examples
        --------
        >>> import pandas as pd
        >>> import stickbreak as sb
        >>> table = pd.DataFrame({"town": ["Ulm", "Bonn"] * 50})
        >>> fit = sb.fit(sb.Mixture(likelihood=sb.Columns({"town": sb.Categorical()})), table)
        >>> fit.as_table([[1.0], [0.0]])["town"].tolist()
        ['Ulm', 'Bonn']
        """
        return with_levels(X, self.column_names, range(self._state.dimension), self._levels)

    def outlier_scores(
        self, X: ArrayLike, *, n: int = 10_000, seed: int = 0, threads: int | None = None
    ) -> NDArray[np.float64]:
        """Return outlier scores: the share of rows drawn from the fit that have a higher density.

        A row of score 0.99 has a lower density than 99% of the drawn rows. Scores do not depend on units or columns.
        New rows of the same kind have scores that are uniform from 0 to 1.

        Parameters
        ----------
        X : array_like of shape (m, D)
            The rows. Rows with missing values are compared with draws that lack the same values.
        n : int
            Number of rows to draw, at least 100. The standard error of a score is at most 0.5 / sqrt(n).
        seed : int
            Decides the draws; 0 to 2**64 - 1.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (m,)
            Scores from 0 to 1.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        NotSupported
            The rows have exposures.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
        >>> bool(fit.outlier_scores([[9.0, 9.0]])[0] > 0.99)
        True
        """
        if getattr(self.model.likelihood, "exposure", None) is not None:
            reason = "drawn rows have the exposure of an average row"
            raise checks.not_supported("exposure", "outlier_scores with an exposure", reason, "log_predictive")
        if is_collection(X):
            options = {"n": n, "seed": seed, "threads": threads}
            scores: NDArray[np.float64] = by_chunk.mapped(self.outlier_scores, X, np.float64, None, **options)
            return scores
        rows = self._rows(X)
        n = checks.integer("n", n, minimum=100)
        threads = checks.threads(threads)

        def density(rows: arrays.Rows) -> NDArray[np.float64]:
            return self._state.log_predictive(rows, self._state.objective != "variational", threads)

        drawn = self._state.sample(n, checks.seed(seed), threads)
        with names.naming(self.column_names):
            found = density(rows)
        if isinstance(rows, arrays.SparseRows) or self._state.missing == "error":
            return _shares_above(density(drawn), found)
        scores = np.empty(len(rows))
        holes = np.isnan(rows)
        patterns, which = np.unique(holes, axis=0, return_inverse=True)
        for index, pattern in enumerate(patterns):
            has_pattern = which.ravel() == index
            scores[has_pattern] = _shares_above(density(np.where(pattern, np.nan, drawn)), found[has_pattern])
        return scores

    def _described(self, column: int) -> dict[str, NDArray[Any]]:
        """Return the entries of a column in the table: arrays with one value per component, by name."""
        found = _of_column(self._model.likelihood, self._state.point_estimates, column, self.n_components)
        levels = self._levels[column] if self._levels else None
        if levels is None or "code" not in found:
            return found
        named = (shown(each, levels) for each in found.pop("code").tolist())
        words = np.array([plain(each, breaks=True) if isinstance(each, str) else each for each in named], dtype=object)
        return {"level": words, **found}

    def _word(self, column: int) -> Level | None:
        """Return the second of the two levels of a column of flags."""
        levels = self._levels[column] if self._levels else None
        if not levels or self._model.likelihood._domains(None, self._state.dimension)[column] != "binary":
            return None
        return levels[-1]


def _of_column(
    likelihood: Likelihood, estimates: dict[str, NDArray[np.float64]], column: int, n_components: int
) -> dict[str, NDArray[Any]]:
    """Return the entries of a column under a likelihood, given its point estimates as the core names them."""
    found: dict[str, NDArray[Any]] = {}
    likelihood, estimates, column = likelihood._part(estimates, column)
    for name, title in _TITLES.items():
        values = estimates.get(name)
        if values is not None and values.ndim == 2:
            found[title] = values[:, column]
        elif values is not None:
            found |= {"code": values[:, column].argmax(axis=1), title: values[:, column].max(axis=1)}
    if "covariance" in estimates:
        found["sd"] = estimates["covariance"][:, column, column] ** 0.5
    elif "variance" in estimates:
        variance = estimates["variance"]
        found["sd"] = (variance if variance.ndim == 1 else variance[:, column]) ** 0.5
    elif isinstance(likelihood, NegativeBinomial):
        # It differs from row to row if these have exposures.
        if likelihood.exposure is None:
            found["sd"] = likelihood._variances(estimates["mean"])[:, column] ** 0.5
    elif "mean" in estimates:
        known: Any = likelihood
        covariance = np.asarray(known.covariance)
        found["sd"] = np.zeros(n_components) + covariance[column, column] ** 0.5
    return found


def with_levels(X: ArrayLike, titles: names.Names | None, places: Sequence[int], levels: Levels) -> Any:
    """Return rows as a pandas DataFrame with levels in place of codes.

    Parameters
    ----------
    X : array_like of shape (m, d)
        The user's rows.
    titles : tuple of str, optional
        The names of the columns.
    places : sequence of int
        Their positions in the data of the fit, which are their titles if they have no names.
    levels : tuple
        The levels of the columns; empty if no column has any.
    """
    found = names.named(X, "X", titles).data
    given = arrays.rows(found, "X", n_columns=len(places))
    table: dict[Any, Any] = {}
    called: Sequence[str | int] = places if titles is None else titles
    with fitting("X", given.shape):
        rows = np.asarray(given, dtype=np.float64)
        for column, title in enumerate(called):
            known = levels[column] if levels else None
            table[title] = rows[:, column] if known is None else _words(rows[:, column], known, title)
        return as_frame(table, "as_table()")


def _words(codes: NDArray[np.float64], levels: Sequence[Level], column: str | int) -> NDArray[Any]:
    """Return the levels of codes, and None for missing ones."""
    present = ~np.isnan(codes)
    in_range = (codes >= 0) & (codes < len(levels))
    wrong = present & (np.where(in_range, codes, 0.5) % 1.0 != 0.0)
    if wrong.any():
        row = int(wrong.argmax())
        found, allowed = f"{codes[row]:g} in row {row}, column {column!r}", f"a code from 0 to {len(levels) - 1}"
        raise checks.invalid_argument("X", found, allowed)
    words = np.full(len(codes), None, dtype=object)
    words[present] = np.array(levels, dtype=object)[codes[present].astype(np.int64)]
    return words


def as_frame(table: dict[str, Any], what: str, index: Any = None) -> Any:
    """Return a table as a pandas DataFrame.

    Raises
    ------
    NotSupported
        pandas is not installed.
    """
    try:
        import pandas
    except ImportError as error:
        raise NotSupported(f"{what} needs the package pandas: pip install pandas") from error
    return pandas.DataFrame(table, index=index)


def _shares_above(drawn: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, for each density, the fraction of drawn ones above it."""
    drawn.sort()
    # Equal rows of counts may differ in the last bits of their densities.
    room = _ROUNDING * np.where(np.isfinite(found), 1.0 + abs(found), 0.0)
    return 1.0 - drawn.searchsorted(found + room, side="right") / len(drawn)
