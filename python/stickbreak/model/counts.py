"""Observation models of counts, flags and codes. See `likelihoods`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io.names import Names, shown
from stickbreak.model.likelihoods import Likelihood

# The word for an exposure that is the sum of the row.
TOTAL = "total"


@dataclass(frozen=True, eq=False, repr=False)
class Multinomial(Likelihood):
    r"""Rows of counts, such as the words of documents, with a Dirichlet base measure.

    .. math:: x \mid \phi \sim \mathrm{Multinomial}(\textstyle\sum_v x_v, \phi), \quad
              \phi \sim \mathrm{Dirichlet}(\beta_0)

    The total of a row is not modelled. Data may be dense or a SciPy sparse array, which never becomes dense.

    Parameters
    ----------
    pseudo_counts : float or array_like of shape (D,), optional
        :math:`\beta_0 > 0`, for each word. Default: 0.1.
    coefficient : bool
        Whether densities include the multinomial coefficient :math:`(\sum x_v)! / \prod x_v!`. Otherwise they are
        densities of one sequence of words. Bounds and densities differ by a constant of the data; nothing else changes.
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers, or `coefficient` is not a flag.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Multinomial(pseudo_counts=0.5)
    Multinomial(pseudo_counts=0.5, coefficient=True)
    """

    pseudo_counts: ArrayLike | None = None
    _: KW_ONLY
    coefficient: bool = True
    prior: Literal["rule"] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Bernoulli(Likelihood):
    r"""Rows of zeros and ones with independent columns, with a Beta base measure each.

    .. math:: x_d \mid p_d \sim \mathrm{Bernoulli}(p_d), \quad p_d \sim \mathrm{Beta}(a_{0d}, b_{0d})

    Data may be dense or a SciPy sparse array, which never becomes dense. Values of dense data may be missing
    (``fit(missing="marginalize")``). Columns of two words in a table have levels, as under `Categorical`.

    Parameters
    ----------
    successes : float or array_like of shape (D,), optional
        :math:`a_0 > 0`. Default: 1.
    failures : float or array_like of shape (D,), optional
        :math:`b_0 > 0`. Default: 1.
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Bernoulli(successes=0.5, failures=0.5)
    Bernoulli(successes=0.5, failures=0.5)
    """

    successes: ArrayLike | None = None
    _: KW_ONLY
    failures: ArrayLike | None = None
    prior: Literal["rule"] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(Likelihood):
    r"""Rows of integer codes with independent columns, with a Dirichlet base measure each.

    .. math:: x_d \mid \phi_d \sim \mathrm{Categorical}(\phi_d), \quad
              \phi_d \sim \mathrm{Dirichlet}(\beta_{0d}, \dots, \beta_{0d})

    Column d holds codes from 0 to its number of levels minus one. The order of codes has no meaning. Values may be
    missing (``fit(missing="marginalize")``). Text and declared categories of tables have levels in place of codes. The
    fit keeps them as `Fit.levels`, and later tables are matched with them by value. A code that is negative, fractional
    or too large is an error that names its column.

    Parameters
    ----------
    pseudo_counts : float or array_like of shape (D,), optional
        :math:`\beta_0 > 0`, for each level of each column. Default: 0.5.
    levels : int or array_like of int, shape (D,), optional
        Number of levels of each column, at most 2**20. Default: the largest code of the column plus one. Set it if
        later rows may have larger codes.
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Categorical(levels=[2, 3])
    Categorical(levels=[2.0, 3.0])
    """

    pseudo_counts: ArrayLike | None = None
    _: KW_ONLY
    levels: ArrayLike | None = None
    prior: Literal["rule"] | None = None

    def _n_levels(self, names: Names | None, n_columns: int) -> tuple[int | None, ...]:
        given = np.asarray([] if self.levels is None else self.levels, dtype=np.float64).reshape(-1).tolist()
        # The core refuses other numbers.
        if len(given) not in (1, n_columns) or not all(float(each).is_integer() for each in given):
            return (None,) * n_columns
        return tuple(int(each) for each in given) * (n_columns if len(given) == 1 else 1)

    def _with_levels(self, sizes: Sequence[int | None]) -> Self:
        known = [size for size in sizes if size is not None]
        if self.levels is not None or not known or len(known) < len(sizes):
            return self
        return replace(self, levels=known)


@dataclass(frozen=True, eq=False, repr=False)
class NegativeBinomial(Likelihood):
    r"""Rows of counts that vary more than Poisson counts, with independent columns and a Beta base measure each.

    .. math:: x_d \mid p_d \sim \mathrm{NB}(\rho_d e, p_d), \quad p_d \sim \mathrm{Beta}(a_{0d}, \rho_d b_0), \quad
              \mathrm{E}[x_d \mid p_d] = e \theta_d, \quad \theta_d = \rho_d \frac{p_d}{1 - p_d}, \quad
              \mathrm{Var}[x_d \mid p_d] = e \theta_d \Big(1 + \frac{\theta_d}{\rho_d}\Big)

    where e is the exposure of the row, by default 1.

    The dispersion :math:`\rho_d` of a column is shared by all components and estimated: the larger it is, the nearer
    the counts are to Poisson counts. Data may be dense or a SciPy sparse array, which never becomes dense. Values of
    dense data may be missing (``fit(missing="marginalize")``), but not with an `exposure`.

    Parameters
    ----------
    dispersion : float or array_like of shape (D,), optional
        :math:`\rho`, from 1e-6 to 1e9 (any positive number with `exposure=` here). Default: 2 divided by the mean
        exposure.
    shape : float or array_like of shape (D,), optional
        :math:`a_0 > 0`. Default: rate times (column mean + 1e-3 overall mean), divided by the mean exposure, so that
        the prior mean is near that of the column.
    rate : float, optional
        :math:`b_0 > 0`, the weight of the prior as a sum of exposures. Default: the mean exposure, the weight of one
        row.
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.
    exposure : int or str, optional
        The position or the name of the column that holds the exposure :math:`e > 0` of each row, such as its library
        size or its time at risk; that column is not modelled. Or "total": the exposure is the sum of the row. Default:
        1 for every row.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    Notes
    -----
    `Fit.components` has the posterior of each component, `shape` (K, D) and `rate` (K,) (with missing values (K, D)):
    the expected count is :math:`\rho a / (\rho b - 1)`, infinite if :math:`\rho b \le 1`. `Fit.point_estimates` has
    it under the name "mean"; where it is infinite, the count at the expected probability, :math:`a / b`. With an
    `exposure` it is the count per unit of exposure, and the entry of a column of exposures is their mean in the
    component; other entries of that column mean nothing. For the estimate of the dispersion, rows whose exposures
    differ by less than 0.2 % are taken together. Counts above
    4,096 enter the estimate of the dispersion in groups that differ by less than 0.05 %. Counts above :math:`10^8` lose
    digits: use logarithms and a Gaussian. A dispersion far below 0.1 may not be found, and clusters break; give it.
    Under the objectives "map" and "ml" it stays at 2 unless you give it; "map" is the mode of :math:`p`,
    :math:`\theta = \rho (a - 1) / (\rho b - 1)`.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.NegativeBinomial()
    NegativeBinomial()
    >>> sb.NegativeBinomial(5, rate=0.5)
    NegativeBinomial(dispersion=5.0, rate=0.5)
    """

    dispersion: ArrayLike | None = None
    _: KW_ONLY
    shape: ArrayLike | None = None
    rate: float | None = None
    prior: Literal["rule"] | None = None
    exposure: int | str | None = None

    def _placed(self, names: Names | None, n_columns: int) -> Self:
        """Return the same likelihood with the position of its exposures."""
        return replace(self, exposure=_placed(self.exposure, names, n_columns))

    def _named(self, names: Names | None) -> Self:
        """Return the same likelihood with the name of the column of its exposures."""
        is_place = isinstance(self.exposure, int) and names is not None
        return replace(self, exposure=names[self.exposure]) if is_place else self  # type: ignore[index]

    def _variances(self, mean: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the variances of counts with these means, shape (K, D); the dispersions are known."""
        return np.asarray(mean * (1.0 + mean / np.asarray(self.dispersion)))


@dataclass(frozen=True, eq=False, repr=False)
class Poisson(Likelihood):
    r"""Rows of counts with independent columns, with a Gamma base measure each.

    .. math:: x_d \mid \theta_d \sim \mathrm{Poisson}(e \theta_d), \quad \theta_d \sim \mathrm{Gamma}(a_{0d}, b_0)

    where e is the exposure of the row, by default 1. Gamma distributions have a shape a and a rate b, with mean a / b.
    Data may be dense or a SciPy sparse array, which never becomes dense. Values of dense data may be missing
    (``fit(missing="marginalize")``), but not with an `exposure`.

    Parameters
    ----------
    shape : float or array_like of shape (D,), optional
        :math:`a_0 > 0`. Default: rate times (column mean + 1e-3 overall mean), divided by the mean exposure, so that
        the prior mean is near that of the column.
    rate : float, optional
        :math:`b_0 > 0`, the weight of the prior as a sum of exposures. Default: the mean exposure, the weight of one
        row.
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.
    exposure : int or str, optional
        The position or the name of the column that holds the exposure :math:`e > 0` of each row, such as its library
        size or its time at risk; that column is not modelled. Or "total": the exposure is the sum of the row. Default:
        1 for every row.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    Notes
    -----
    `Fit.point_estimates` has the expected counts per unit of exposure under the name "rate". The entry of a column of
    exposures is their mean in the component; its `shape` means nothing.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Poisson(shape=2, rate=1)
    Poisson(shape=2.0, rate=1.0)
    """

    shape: ArrayLike | None = None
    _: KW_ONLY
    rate: float | None = None
    prior: Literal["rule"] | None = None
    exposure: int | str | None = None

    def _placed(self, names: Names | None, n_columns: int) -> Self:
        """Return the same likelihood with the position of its exposures."""
        return replace(self, exposure=_placed(self.exposure, names, n_columns))

    def _named(self, names: Names | None) -> Self:
        """Return the same likelihood with the name of the column of its exposures."""
        is_place = isinstance(self.exposure, int) and names is not None
        return replace(self, exposure=names[self.exposure]) if is_place else self  # type: ignore[index]


def _placed(exposure: int | str | None, names: Names | None, n_columns: int) -> int | str | None:
    """Return the position of a column of exposures that may have a name."""
    if exposure is None or exposure == TOTAL:
        return exposure
    if isinstance(exposure, int) and exposure < n_columns:
        return exposure
    known = f"a position from 0 to {n_columns - 1}"
    if isinstance(exposure, int):
        raise checks.invalid_argument("exposure", str(exposure), f'{known}, the name of a column, or "{TOTAL}"')
    if names is None:
        hint = "the columns of the data have no names"
        raise checks.invalid_argument("exposure", checks.quote(exposure), f'{known}, or "{TOTAL}"', hint)
    if exposure not in names:
        hint = checks.did_you_mean(exposure, [*names, TOTAL])
        allowed = f'{known}, one of the columns {shown(names)}, or "{TOTAL}"'
        raise checks.invalid_argument("exposure", checks.quote(exposure), allowed, hint)
    return names.index(exposure)
