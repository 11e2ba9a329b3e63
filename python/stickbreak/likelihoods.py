"""Observation models: an exponential family with its conjugate base measure each.

A parameter left `None` follows the data, by the same rule wherever the model is used; the values used are read back
from `Fit.model`. To add a likelihood, add one class here: its fields are the names that the core knows.
"""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from stickbreak import _core
from stickbreak.specification import Specification


class Likelihood(Specification):
    """Base of all observation models."""

    # What its rows look like, by the names of `stickbreak.testing.generators.DOMAINS`.
    _domain: ClassVar[str] = "real"

    def _check(self) -> None:
        _core.check_likelihood(*self._to_core())


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Likelihood):
    r"""Gaussian rows, mean and full covariance unknown, with a Normal-Wishart base measure.

    .. math:: x \mid \mu, \Lambda \sim N(\mu, \Lambda^{-1}), \quad \mu \mid \Lambda \sim N(m_0, (\kappa_0\Lambda)^{-1}),
              \quad \Lambda \sim W(\nu_0, B_0^{-1}), \quad E\Lambda = \nu_0 B_0^{-1}

    Parameters
    ----------
    mean : array_like of shape (D,), optional
        :math:`m_0`, in the units of the data. Default: the column means.
    mean_precision : float, optional
        :math:`\kappa_0 > 0`: how many rows the prior mean is worth. Default: 0.1.
    dof : float, optional
        :math:`\nu_0 > D - 1`: degrees of freedom of the Wishart distribution. Default: D + 2.
    scale : array_like of shape (D, D), optional
        :math:`B_0`, symmetric positive definite: the inverse scale matrix of the Wishart distribution, in squared
        units of the data. Default: cov + 1e-3 tr(cov) / D I, where cov is the covariance of the data about the
        column means (weighted sums divided by the total weight). The ridge keeps it definite where the covariance
        of the data is singular. `fit` refuses a scale below 2e-13 of the variance of a column, or of its squared
        distance from `mean`: float64 would lose it beside them.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Gaussian(mean=[0, 0], mean_precision=0.01)
    Gaussian(mean=[0.0, 0.0], mean_precision=0.01)
    >>> sb.Gaussian(dof=5) == sb.Gaussian(dof=5.0)
    True
    """

    _name: ClassVar[str] = "Gaussian"

    mean: ArrayLike | None = None
    _: KW_ONLY
    mean_precision: float | None = None
    dof: float | None = None
    scale: ArrayLike | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ZeroMeanGaussian(Likelihood):
    r"""Gaussian rows of mean zero, full covariance unknown, with a Wishart base measure.

    .. math:: x \mid \Lambda \sim N(0, \Lambda^{-1}), \quad \Lambda \sim W(\nu_0, B_0^{-1}), \quad
              E\Lambda = \nu_0 B_0^{-1}

    The model for data such as image patches whose own mean was removed [1]_. The data are not centred, so it is not for
    data far from zero: `fit` refuses a mean whose square is more than about 5e12 times what `scale` gives a column,
    beside which float64 would lose it; use `Gaussian` there.

    Parameters
    ----------
    dof : float, optional
        :math:`\nu_0 > D - 1`: degrees of freedom of the Wishart distribution. Default: D + 2.
    scale : array_like of shape (D, D), optional
        :math:`B_0`, symmetric positive definite: the inverse scale matrix of the Wishart distribution, in squared
        units of the data. Default: cov + 1e-3 tr(cov) / D I, where cov is the covariance of the data about the
        column means (weighted sums divided by the total weight).

    Raises
    ------
    InvalidType
        A parameter is not made of numbers.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    References
    ----------
    .. [1] Hughes, M. C. and Sudderth, E. B. (2016). Fast learning of clusters and topics via sparse posteriors.
           arXiv:1609.07521.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.ZeroMeanGaussian(dof=4, scale=[[1, 0], [0, 1]])
    ZeroMeanGaussian(dof=4.0, scale=[[1.0, 0.0], [0.0, 1.0]])
    """

    _name: ClassVar[str] = "ZeroMeanGaussian"
    _domain: ClassVar[str] = "centred"

    dof: float | None = None
    _: KW_ONLY
    scale: ArrayLike | None = None
