"""Densities of some columns of a fit: marginals and conditionals."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak._core import DensityState
from stickbreak._core import density as density_of
from stickbreak.errors import InvalidArgument
from stickbreak.io import arrays, names
from stickbreak.io.cells import Level
from stickbreak.io.levels import Levels, OfLevels, code, coded
from stickbreak.result.fitted import Fitted
from stickbreak.result.tables import with_levels

_COLUMNS_ALLOWED = "one column or a list of different columns, by their names or positions"
_GIVEN_ALLOWED = "a dict of columns, by their names or positions, and their values"


class _Columns(NamedTuple):
    """All columns of a fit: their names, their number, and the columns that the model does not see."""

    names: names.Names | None
    number: int
    lost: frozenset[int]
    levels: Levels


class Density:
    """The density of some columns of a fit: a mixture of J parts, made by `Fit.marginal` or `Fit.conditional`.

    It is immutable. Each part is the distribution of the columns given a component of the fit: a Student t, a normal,
    or a product of distributions of single columns. Behind these is a part of weight `Fit.leftover_weight`, unless the
    fit has none or the density is at point estimates. A background is the last two parts, its uniform and its far one.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> import stickbreak as sb
    >>> rng = np.random.default_rng(0)
    >>> size = np.repeat([1.0, 9.0], 100) + rng.normal(size=200)
    >>> price, age = 2.0 * size + rng.normal(size=200), rng.normal(size=200)
    >>> table = pd.DataFrame({"size": size, "price": price, "age": age})
    >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), table)
    >>> price = fit.conditional({"size": 9.0}).marginal("price")
    >>> price.column_names, price.mean.round()
    (('price',), array([18.]))
    """

    def __init__(self, state: DensityState, columns: tuple[int, ...], of_fit: _Columns, recipe: "_Recipe") -> None:
        checks.instance("state", state, DensityState, "what the core made; use Fit.marginal or Fit.conditional")
        self._state = state
        self._columns = columns
        self._of_fit = of_fit
        self._recipe = recipe

    @property
    def columns(self) -> tuple[int, ...]:
        """The d columns, by position in the data of the fit, in the order used by all arrays."""
        return self._columns

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the columns; None if the columns of the fit have no names."""
        known = self._of_fit.names
        return None if known is None else tuple(known[column] for column in self._columns)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Weights of the parts, shape (J,), which sum to one; read-only."""
        return _read_only(self._state.weights)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """Means of the parts, shape (J, d), read-only.

        A Student t distribution with at most one degree of freedom has no mean; its location is given instead. Codes of
        a `Categorical` are treated as numbers.
        """
        return _read_only(self._state.means)

    @cached_property
    def covariances(self) -> NDArray[np.float64]:
        """Covariances of the parts, shape (J, d, d), read-only.

        A Student t distribution with at most two degrees of freedom has no covariance. Its variances are given as
        infinite, and its covariances as nan.
        """
        d = len(self._columns)
        return _read_only(self._state.covariances.reshape(-1, d, d))

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        """Mean of a row, shape (d,), read-only. For a conditional density it is the regression on the given columns.

        A part without a mean, a Student t distribution with at most one degree of freedom, has its location instead.
        """
        return _read_only(self._state.mean)

    @cached_property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of a row, shape (d, d), read-only; infinite or nan if a part with positive weight has none."""
        return _read_only(self._state.covariance)

    def log_density(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.float64]:
        """Return the log density of each row.

        Parameters
        ----------
        X : array_like of shape (n, d)
            Rows with the columns of this density. The columns of a table are matched by name, those of an array by
            position. For a single column the shape may be (n,).
        threads : int, optional
            The number of threads, by default one per core; it never changes the result.

        Returns
        -------
        ndarray of float64, shape (n,)
            Nats, per unit of the columns; minus infinity for impossible values, such as a negative count, and for rows
            so far away that their squared distance overflows float64 (beyond about 1e154 standard deviations).

        Raises
        ------
        InvalidType, InvalidArgument
            `X` is not as described, or has NaN or infinity.
        """
        levels = self._levels
        data = coded(X, "X", OfLevels(levels), self.column_names, levels).data
        if len(self._columns) == 1 and np.ndim(data) == 1:
            data = np.asarray(data).reshape(-1, 1)
        rows = arrays.rows(data, "X", n_columns=len(self._columns), minimum=0)
        with names.naming(self.column_names):
            return self._state.log_density(rows, checks.threads(threads))

    def sample(self, n: int, *, seed: int = 0, threads: int | None = None) -> NDArray[np.float64]:
        """Draw rows.

        Parameters
        ----------
        n : int
            The number of rows.
        seed : int
            Decides the draw; 0 to 2**64 - 1.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n, d)
            Independent rows.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        """
        return self._state.sample(checks.integer("n", n, minimum=0), checks.seed(seed), checks.threads(threads))

    def as_table(self, X: ArrayLike) -> Any:
        """Return rows as a pandas DataFrame with the names of the columns, and levels in place of codes.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Rows as `sample` returns them.

        Returns
        -------
        pandas.DataFrame
            As `Fit.as_table`.

        Raises
        ------
        InvalidType, InvalidArgument, NotSupported
            As `Fit.as_table`.

        Examples
        --------
        >>> import pandas as pd
        >>> import stickbreak as sb
        >>> table = pd.DataFrame({"town": ["Ulm", "Bonn"] * 50, "size": [9.0, 2.0] * 50})
        >>> columns = sb.Columns({"town": sb.Categorical(), "size": sb.Gaussian()})
        >>> towns = sb.fit(sb.Mixture(likelihood=columns), table).conditional({"size": 9.0})
        >>> towns.as_table(towns.sample(2)).columns.tolist()
        ['town']
        """
        return with_levels(X, self.column_names, self._columns, self._levels)

    def marginal(self, columns: int | str | Iterable[int | str]) -> "Density":
        """Return the density of selected columns, in this order; see `Fit.marginal`.

        Parameters
        ----------
        columns : int, str, or iterable of these
            Columns of this density, by name or by position in the data of the fit.

        Returns
        -------
        Density
            The density.

        Raises
        ------
        InvalidType, InvalidArgument
            `columns` is not as described.
        """
        allowed = _COLUMNS_ALLOWED
        listed: Any = [columns] if isinstance(columns, str) or checks.is_integer(columns) else columns
        if isinstance(listed, bytes | Mapping):
            raise checks.invalid_type("columns", checks.describe(columns), allowed)
        chosen = self._positions("columns", checks.items("columns", listed, allowed), allowed)
        places = [self._columns.index(column) for column in chosen]
        recipe = self._recipe.then("marginal", list(chosen))
        return Density(self._state.marginal(places, None), chosen, self._of_fit, recipe)

    def conditional(self, given: Mapping[int | str, str | float]) -> "Density":
        """Return the density of the other columns given the values of some columns; see `Fit.conditional`.

        Parameters
        ----------
        given : dict
            Values by column of this density. A column is given by name or by position in the data of the fit.

        Returns
        -------
        Density
            The density of the remaining columns, in order.

        Raises
        ------
        InvalidType, InvalidArgument
            `given` is not as described, leaves no column, or has values that are impossible under the fit.
        """
        if not isinstance(given, Mapping):
            raise checks.invalid_type("given", checks.describe(given), _GIVEN_ALLOWED)
        chosen = self._positions("given", list(given), _GIVEN_ALLOWED)
        known = self._of_fit.levels or (None,) * self._of_fit.number
        values = [_value(key, value, known[column]) for column, (key, value) in zip(chosen, given.items(), strict=True)]
        others = tuple(column for column in self._columns if column not in chosen)
        if not others:
            raise checks.invalid_argument("given", "one value for every column", "values that leave a column")
        left, fixed = ([self._columns.index(column) for column in group] for group in (others, chosen))
        recipe = self._recipe.then("conditional", dict(zip(chosen, given.values(), strict=True)))
        try:
            state = self._state.conditional(left, fixed, np.array(values), None)
        except InvalidArgument:
            self._check_possible(given, fixed, values)
            raise
        return Density(state, others, self._of_fit, recipe)

    def _check_possible(self, given: Mapping[int | str, object], places: list[int], values: list[float]) -> None:
        """Refuse the first value whose density is zero, whatever the other columns are."""
        for (key, value), place, number in zip(given.items(), places, values, strict=True):
            if self._state.marginal([place], None).log_density(np.array([[number]]), None)[0] == -np.inf:
                found = f"{value!r} for the column {key!r}, whose density is zero under the fit"
                raise checks.invalid_argument("given", found, "values that a row of the fit can have") from None

    @property
    def _levels(self) -> Levels:
        return tuple(self._of_fit.levels[column] for column in self._columns) if self._of_fit.levels else ()

    def _positions(self, argument: str, listed: list[Any], allowed: str) -> tuple[int, ...]:
        """Return the columns as positions in the data of the fit."""
        of_fit = self._of_fit
        chosen = tuple(names.position(each, argument, of_fit.names, of_fit.number) for each in listed)
        if not chosen or len(set(chosen)) < len(chosen):
            found = "empty" if not chosen else f"{checks.quote(str(listed))}, where a column is repeated"
            raise checks.invalid_argument(argument, found, allowed)
        for column, each in zip(chosen, listed, strict=True):
            if column in of_fit.lost:
                found = f"the column {each!r}, which is constant or follows from others in the rows of the fit"
                raise checks.invalid_argument(argument, found, "of columns that the fit sees (Fit.support)")
            if column not in self._columns:
                raise checks.invalid_argument(argument, f"the column {each!r}", f"of the columns {self._shown()}")
        return chosen

    def _shown(self) -> str:
        return names.shown(self.column_names) if self.column_names else ", ".join(map(str, self._columns))

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, tuple(self._recipe)

    def __repr__(self) -> str:
        parts = "1 part" if len(self.weights) == 1 else f"{len(self.weights)} parts"
        return f"<Density of {self._shown()}: {parts}>"


class _Recipe(NamedTuple):
    """How a density was made, from which it is made again after pickling."""

    fit: "Densities"
    plug_in: bool
    steps: tuple[tuple[str, Any], ...]

    def then(self, method: str, argument: object) -> "_Recipe":
        return self._replace(steps=(*self.steps, (method, argument)))


def _made(fit: "Densities", plug_in: bool, steps: tuple[tuple[str, Any], ...]) -> Density:
    density = fit._density(plug_in, None)
    for method, argument in steps:
        density = getattr(density, method)(argument)
    return density


class Densities(Fitted):
    """A fit that gives densities of some of its columns."""

    def marginal(
        self, columns: int | str | Iterable[int | str], *, plug_in: bool = False, threads: int | None = None
    ) -> Density:
        r"""Return the density of some columns of a row.

        It is the posterior predictive density of `log_predictive`, integrated over all other columns:

        .. math:: p(x_a) = \sum_{k \le K} E_q[w_k] \, p(x_a \mid \lambda_k) + E_q[w_{>K}] \, p(x_a \mid \lambda_0)

        The marginals of a component have a closed form (mathematics 6.4). For `Gaussian`, `ZeroMeanGaussian` and
        `SphericalGaussian` they are Student t, for `KnownCovarianceGaussian` normal. The columns of `DiagonalGaussian`,
        `Bernoulli`, `Poisson`, `NegativeBinomial` and `Categorical` are independent given the component.

        Parameters
        ----------
        columns : int, str, or iterable of these
            One or more columns, by name or position. The density has them in this order.
        plug_in : bool
            Whether to use the densities of the components at `point_estimates`, with normalised weights; for Gaussians
            they are normal. Fits of the objective "map" or "ml" always do.
        threads : int, optional
            The number of threads.

        Returns
        -------
        Density
            Weights, means and covariances of its parts, `log_density` and `sample`.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or a column is constant or depends on others (`support`), so that the fit
            has no density for it.
        NotSupported
            The likelihood is `Multinomial`, whose columns share the number of words of a row, or
            ``SphericalGaussian(base="product")`` without `plug_in`.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> centres = np.repeat([[-5.0, 0.0], [5.0, 0.0]], 100, axis=0)
        >>> X = np.random.default_rng(0).normal(centres)
        >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
        >>> density = fit.marginal(0)
        >>> density
        <Density of 0: 3 parts>
        >>> middle, right = density.log_density([0.0, 5.0])
        >>> bool(middle < right)
        True
        """
        return self._density(plug_in, threads).marginal(columns)

    def conditional(
        self, given: Mapping[int | str, str | float], *, plug_in: bool = False, threads: int | None = None
    ) -> Density:
        r"""Return the density of the other columns of a row, given the values of some columns.

        .. math:: p(x_a \mid x_b) = \sum_k r_k \, p(x_a \mid x_b, \lambda_k), \quad
                  r_k \propto E_q[w_k] \, p(x_b \mid \lambda_k)

        over the components and, last, the left-over weight. See `marginal` for the supported likelihoods and the form
        of the densities. Within a component, a given column changes the mean of the others only if the component models
        them jointly, as `Gaussian` does. With independent columns it changes only the weights.

        Parameters
        ----------
        given : dict
            Values by column name or position, as in ``{"age": 40}``; at least one column, but not all. A column with
            `levels` is given by its level.
        plug_in : bool
            As in `marginal`.
        threads : int, optional
            The number of threads.

        Returns
        -------
        Density
            The density of the columns that are not given, in the order of the fit, without columns that `support`
            leaves out. Its `mean` is the regression on the given columns.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, the values are impossible under the fit, or as in `marginal`.
        NotSupported
            As in `marginal`.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> x = np.random.default_rng(0).normal(size=500)
        >>> X = np.stack([x, 3.0 * x + np.random.default_rng(1).normal(size=500)], axis=1)
        >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
        >>> fit.conditional({0: 1.0}).mean.round(1)
        array([3.])
        """
        return self._density(plug_in, threads).conditional(given)

    def _density(self, plug_in: object, threads: object) -> Density:
        """Return the density of all columns that the model sees."""
        state = density_of(self._state, checks.flag("plug_in", plug_in), checks.threads(threads))
        lost = frozenset(column for kind in self._state.lost_columns for column in kind)
        of_fit = _Columns(self.column_names, self._state.dimension, lost, self._levels)
        columns = tuple(column for column in range(of_fit.number) if column not in lost)
        return Density(state, columns, of_fit, _Recipe(self, bool(plug_in), ()))


def _value(key: object, value: object, levels: tuple[Level, ...] | None) -> float:
    if levels is not None:
        return code(value, levels, "given", key)
    allowed = f"a finite number for the column {key!r}"
    if not (checks.is_integer(value) or isinstance(value, float | np.floating | bool | np.bool_)):
        raise checks.invalid_type("given", checks.describe(value), allowed)
    number = checks.float_or_inf(value)  # type: ignore[arg-type]
    if not np.isfinite(number):
        raise checks.invalid_argument("given", str(number), allowed)
    return number


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.flags.writeable = False
    return array
