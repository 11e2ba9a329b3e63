"""Observation models: exponential families with conjugate base measures. Here are those of real numbers.

Defaults of parameters left `None` depend on the data; `Fit.model` has the values. To add a likelihood, add one class
here or in `counts` whose fields have the parameter names of the core.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self

from numpy.typing import ArrayLike

from stickbreak import _core
from stickbreak.io.names import Names
from stickbreak.model.gamma import Gamma
from stickbreak.model.specification import Specification


class Likelihood(Specification):
    """Base of all observation models."""

    _family: ClassVar[str] = "likelihoods"
    # The kind of its rows, a key of `stickbreak.testing.generators.DOMAINS`.
    _domain: ClassVar[str]
    # Whether rows may be a sparse array.
    _accepts_sparse: ClassVar[bool]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._domain = cls._entry["domain"]
        cls._accepts_sparse = "sparse" in cls._entry["supports"]

    def _check(self) -> None:
        _core.check_likelihood(*self._to_core())

    def _is_learned(self) -> bool:
        """Whether a parameter has a prior that samplers learn."""
        return any(isinstance(value, Gamma) for value in self._parameters().values())

    def _placed(self, names: Names | None, n_columns: int) -> Self:
        """Return the same likelihood with the positions of columns that its parameters name."""
        return self

    def _own_names(self) -> Names | None:
        """Return the names of the columns in the order of the likelihood, if it has them."""
        return None

    def _named(self, names: Names | None) -> Self:
        """Return the same likelihood with the names of columns that its parameters place."""
        return self

    def _domains(self, names: Names | None, n_columns: int) -> tuple[str, ...]:
        """Return the domain of each column."""
        return (self._domain,) * n_columns

    def _n_levels(self, names: Names | None, n_columns: int) -> tuple[int | None, ...]:
        """Return the number of levels of each column, if it is given."""
        return (None,) * n_columns

    def _with_levels(self, sizes: Sequence[int | None]) -> Self:
        """Return the same likelihood, once it is placed, with these numbers of levels where none are given."""
        return self

    def _nested(self, values: Mapping[str, Any], names: Names | None) -> dict[str, Any]:
        """Return values of parameters of components in the form that results show."""
        return dict(values)

    def _parts(
        self, values: Mapping[str, Any]
    ) -> Sequence[tuple[tuple[int, ...] | None, "Likelihood", dict[str, Any]]]:
        """Return the blocks: their columns (None for all), their likelihood, and their values by name."""
        return [(None, self, dict(values))]

    def _part(self, values: Mapping[str, Any], column: int) -> tuple["Likelihood", dict[str, Any], int]:
        """Return the block of a column: its likelihood, its values by name, and the position of the column in it."""
        return self, dict(values), column

    def _listed(self, parameters: Sequence[str], names: Names | None) -> str:
        """Return a text that lists parameters that the core names."""
        return ", ".join(parameters)


@dataclass(frozen=True, eq=False, repr=False)
class Gaussian(Likelihood):
    r"""Gaussian rows, mean and full covariance unknown, with a Normal-Wishart base measure.

    .. math:: x \mid \mu, \Lambda \sim N(\mu, \Lambda^{-1}), \quad \mu \mid \Lambda \sim N(m_0, (\kappa_0\Lambda)^{-1}),
              \quad \Lambda \sim W(\nu_0, B_0^{-1}), \quad E\Lambda = \nu_0 B_0^{-1}

    Parameters
    ----------
    mean : array_like of shape (D,), optional
        :math:`m_0`, in the units of the data. Default: the column means.
    mean_precision : float or Gamma, optional
        :math:`\kappa_0 > 0`, the weight of the prior mean in rows; a `Gamma` prior makes it unknown, for samplers only.
        Default: 0.1.
    dof : float, optional
        :math:`\nu_0 > D - 1`, the degrees of freedom of the Wishart distribution, at most 1e9. For a known covariance
        use `KnownCovarianceGaussian`. Default: D + 2.
    scale : array_like of shape (D, D), optional
        :math:`B_0`, symmetric positive definite: the inverse scale matrix of the Wishart distribution, in squared
        units of the data. Default: cov + 1e-3 diag(cov), times dof / (D + 2), where cov is the weighted covariance of
        the data. If you give a scale, constant and dependent columns stay in the model. `fit` refuses a scale below
        2e-13 of the variance of a column, or of its squared distance from `mean`, because float64 would lose it.
    resolution : float or array_like of shape (D,), optional
        Step to which the values of each column are rounded, in the units of the data; 0 for none. Above 0 the density
        is that of a cell of this width, so rounding gains nothing. Default: the way from a value of the column to the
        next one that is about as common, if values repeat; otherwise 0 (mathematics 10.5).
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
    >>> sb.Gaussian(mean=[0, 0], mean_precision=0.01)
    Gaussian(mean=[0.0, 0.0], mean_precision=0.01)
    >>> sb.Gaussian(dof=5) == sb.Gaussian(dof=5.0)
    True
    """

    mean: ArrayLike | None = None
    _: KW_ONLY
    mean_precision: float | Gamma | None = None
    dof: float | None = None
    scale: ArrayLike | None = None
    resolution: ArrayLike | None = None
    prior: Literal["rule"] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class StudentT(Likelihood):
    r"""Rows with heavy tails: Student t distributions, with a Normal-Wishart base measure.

    .. math:: x \mid u, \mu, \Lambda \sim N(\mu, (u\Lambda)^{-1}), \quad u \sim \mathrm{Gamma}(f/2, f/2), \quad
              \mu \mid \Lambda \sim N(m_0, (\kappa_0\Lambda)^{-1}), \quad \Lambda \sim W(\nu_0, B_0^{-1})

    With `covariance="diagonal"`, :math:`\Lambda` is diagonal, and each column has a base measure of this form in one
    dimension. The columns of a row share its scale u.

    A row far from the centre of its component has a small scale u, and so little weight in its mean and covariance. One
    cluster with tails stays one component, where `Gaussian` needs two or three. A component has the covariance
    :math:`\Lambda^{-1}` times :math:`f / (f - 2)` if f > 2; `Fit` reports :math:`\Lambda^{-1}`.

    Samplers that move rows one by one, `CollapsedGibbs`, `SplitMerge` and `TreeGuided`, need a marginal likelihood in
    closed form, which this model has not. Trees and the objectives "map" and "ml" are refused, too. Missing values are
    imputed if the covariance is full, and left out exactly if it is diagonal.

    Parameters
    ----------
    tail_dof : float, optional
        :math:`f`, the degrees of freedom of the tails, shared by all components, from 1 (Cauchy) to 1000 (hardly
        different from normal). Default: 4, then estimated between passes.
    covariance : {"full", "diagonal"}, optional
        "diagonal" for columns that are independent given the component and the scale of the row, as in
        `DiagonalGaussian`: for many columns.
    mean : array_like of shape (D,), optional
        :math:`m_0`, in the units of the data. Default: the column means.
    mean_precision : float, optional
        :math:`\kappa_0 > 0`, the weight of the prior mean in rows. Default: 0.1.
    dof : float, optional
        :math:`\nu_0 > D - 1`, the degrees of freedom of the Wishart distribution, at most 1e9; above 0 if the
        covariance is diagonal. Default: D + 2, or 3 if it is diagonal.
    scale : array_like of shape (D, D) or (D,), optional
        :math:`B_0`, symmetric positive definite, in squared units of the data, as for `Gaussian`; one positive number
        for each column if the covariance is diagonal. Default: cov + 1e-3 diag(cov), times dof / (D + 2), where cov is
        the weighted covariance of the data; if it is diagonal, the variances of the columns times 1.001 dof / 3.
    resolution : float or array_like of shape (D,), optional
        Step to which the values of each column are rounded, in the units of the data, as for `Gaussian`; 0 for none.
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    See Also
    --------
    Gaussian : the limit of many degrees of freedom.

    References
    ----------
    Svensén, M. & Bishop, C. M. (2005). Robust Bayesian mixture modelling. Neurocomputing 64, 235-252.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.StudentT(tail_dof=3)
    StudentT(tail_dof=3.0, covariance='full')
    >>> sb.StudentT(covariance="diagonal", scale=[1, 2])
    StudentT(covariance='diagonal', scale=[1.0, 2.0])
    """

    tail_dof: float | None = None
    _: KW_ONLY
    covariance: Literal["full", "diagonal"] = "full"
    mean: ArrayLike | None = None
    mean_precision: float | None = None
    dof: float | None = None
    scale: ArrayLike | None = None
    resolution: ArrayLike | None = None
    prior: Literal["rule"] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class ZeroMeanGaussian(Likelihood):
    r"""Gaussian rows of mean zero, full covariance unknown, with a Wishart base measure.

    .. math:: x \mid \Lambda \sim N(0, \Lambda^{-1}), \quad \Lambda \sim W(\nu_0, B_0^{-1}), \quad
              E\Lambda = \nu_0 B_0^{-1}

    Use it for data such as image patches less their own mean [1]_. The data are not centred, so use `Gaussian` for data
    far from zero. `fit` refuses a mean whose square is more than about 5e12 times the scale of a column (never with the
    default scale). Rounding of the bound grows with the offset: about 1e-3 nats at 1e5 standard deviations of a
    component, and 1e-2 at 1e6.

    Parameters
    ----------
    dof : float, optional
        :math:`\nu_0 > D - 1`, the degrees of freedom of the Wishart distribution, at most 1e9. Default: D + 2.
    scale : array_like of shape (D, D), optional
        :math:`B_0`, symmetric positive definite: the inverse scale matrix of the Wishart distribution, in squared
        units of the data. Default: M + 1e-3 diag(M), times dof / (D + 2), where M are the second moments of the data
        about zero. If you give a scale, constant and dependent columns stay in the model.
    resolution : float or array_like of shape (D,), optional
        Step to which the values of each column are rounded, in the units of the data; 0 for none. Above 0 the density
        is that of a cell of this width, so rounding gains nothing. Default: the way from a value of the column to the
        next one that is about as common, if values repeat; otherwise 0 (mathematics 10.5).
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.

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

    dof: float | None = None
    _: KW_ONLY
    scale: ArrayLike | None = None
    resolution: ArrayLike | None = None
    prior: Literal["rule"] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class DiagonalGaussian(Likelihood):
    r"""Gaussian rows with independent columns, means and variances unknown, with a Normal-Gamma base measure each.

    .. math:: x_d \mid \mu_d, \lambda_d \sim N(\mu_d, 1 / \lambda_d), \quad
              \mu_d \mid \lambda_d \sim N(m_{0d}, 1 / (\kappa_0\lambda_d)), \quad
              \lambda_d \sim \mathrm{Gamma}(a_0, b_{0d})

    Use it for data with many columns: a row costs D operations per component instead of the :math:`D^2 / 2` of
    `Gaussian`. Gamma distributions have a shape a and a rate b, with mean a / b. Values may be missing
    (``fit(missing="marginalize")``).

    Parameters
    ----------
    mean : array_like of shape (D,), optional
        :math:`m_0`, in the units of the data. Default: the column means.
    mean_precision : float or Gamma, optional
        :math:`\kappa_0 > 0`, the weight of the prior mean in rows; a `Gamma` prior makes it unknown, for samplers only.
        Default: 0.1.
    shape : float, optional
        :math:`a_0 > 0`, at most 1e9. Default: 1.5.
    rate : float or array_like of shape (D,), optional
        :math:`b_0 > 0`, in squared units of the data. Default: shape / 3 times 1.001 times the variance of each
        column. With one column and the default shape this is the default of `Gaussian`. If you give a rate, constant
        columns stay in the model. `fit` refuses a rate below 2e-13 of the variance of a column, or of its squared
        distance from `mean`.
    resolution : float or array_like of shape (D,), optional
        Step to which the values of each column are rounded, in the units of the data; 0 for none. Above 0 the density
        is that of a cell of this width, so rounding gains nothing. Default: the way from a value of the column to the
        next one that is about as common, if values repeat; otherwise 0 (mathematics 10.5).
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
    >>> sb.DiagonalGaussian(shape=2, rate=[0.5, 1.0])
    DiagonalGaussian(shape=2.0, rate=[0.5, 1.0])
    """

    mean: ArrayLike | None = None
    _: KW_ONLY
    mean_precision: float | Gamma | None = None
    shape: float | None = None
    rate: ArrayLike | None = None
    resolution: ArrayLike | None = None
    prior: Literal["rule"] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class SphericalGaussian(Likelihood):
    r"""Gaussian rows with one variance for all columns; variance and mean are unknown.

    .. math:: x \mid \mu, \lambda \sim N(\mu, I / \lambda), \quad \lambda \sim \mathrm{Gamma}(a_0, b_0)

    with, for ``base="conjugate"``, :math:`\mu \mid \lambda \sim N(m_0, I / (\kappa_0\lambda))`, and for
    ``base="product"`` :math:`\mu \sim N(m_0, I / \kappa_0)`, independent of :math:`\lambda` ([1]_, section 5). Gamma
    distributions have a shape a and a rate b, with mean a / b.

    The product base measure is conjugate to each factor alone. Components are found by iterating over :math:`q(\mu)
    q(\lambda)`, and there is no closed marginal likelihood.

    Under the conjugate base measure values may be missing (``fit(missing="marginalize")``).

    Parameters
    ----------
    mean : array_like of shape (D,), optional
        :math:`m_0`, in the units of the data. Default: the column means.
    mean_precision : float or Gamma, optional
        :math:`\kappa_0 > 0`; a `Gamma` prior makes it unknown, for samplers only. Default: 0.1 for the conjugate base
        measure, where it is the weight of the prior mean in rows; 0.1 / mean variance of the columns for the product.
    shape : float, optional
        :math:`a_0 > 0`, at most 1e9. Default: 1.5.
    rate : float, optional
        :math:`b_0 > 0`, in squared units of the data. Default: shape / 3 times 1.001 times the mean variance of
        the columns.
    base : {"conjugate", "product"}
        The base measure.
    resolution : float or array_like of shape (D,), optional
        Step to which the values of each column are rounded, in the units of the data; 0 for none. Above 0 the density
        is that of a cell of this width, so rounding gains nothing. Default: the way from a value of the column to the
        next one that is about as common, if values repeat; otherwise 0 (mathematics 10.5).
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers, or `base` is not a word.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    References
    ----------
    .. [1] Blei, D. M. and Jordan, M. I. (2006). Variational inference for Dirichlet process mixtures. Bayesian
           Analysis 1(1).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.SphericalGaussian(base="product", mean_precision=0.5)
    SphericalGaussian(mean_precision=0.5, base='product')
    """

    mean: ArrayLike | None = None
    _: KW_ONLY
    mean_precision: float | Gamma | None = None
    shape: float | None = None
    rate: float | None = None
    base: Literal["conjugate", "product"] = "conjugate"
    resolution: ArrayLike | None = None
    prior: Literal["rule"] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class KnownCovarianceGaussian(Likelihood):
    r"""Gaussian rows of a known covariance; only the mean is unknown, with a Gaussian base measure [1]_.

    .. math:: x \mid \mu \sim N(\mu, \Sigma), \quad \mu \sim N(m_0, \Sigma / \kappa_0)
              \ \text{ or }\ \mu \sim N(m_0, P_0^{-1})

    Values may be missing (``fit(missing="marginalize")``). Then ``mean_precision`` of the components has the shape (K,
    D, D).

    Parameters
    ----------
    covariance : array_like of shape (D, D)
        :math:`\Sigma`, symmetric positive definite, in squared units of the data.
    mean : array_like of shape (D,), optional
        :math:`m_0`, in the units of the data. Default: the column means.
    mean_precision : float or array_like of shape (D, D), optional
        :math:`\kappa_0 > 0`, the weight of the prior mean in rows, or :math:`P_0`, the symmetric positive definite
        precision matrix of the base measure. Default: 0.1.
    prior : {None, "rule"}, optional
        None: parameters that you leave out start at their defaults and are estimated between passes. "rule": they stay
        at their defaults.

    Raises
    ------
    InvalidType
        A parameter is not made of numbers.
    InvalidArgument
        A parameter has the wrong shape or a value that is not allowed.

    References
    ----------
    .. [1] Blei, D. M. and Jordan, M. I. (2006). Variational inference for Dirichlet process mixtures. Bayesian
           Analysis 1(1).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.KnownCovarianceGaussian([[2, 0], [0, 1]], mean_precision=0.5)
    KnownCovarianceGaussian(covariance=[[2.0, 0.0], [0.0, 1.0]], mean_precision=0.5)
    """

    covariance: ArrayLike
    _: KW_ONLY
    mean: ArrayLike | None = None
    mean_precision: ArrayLike | None = None
    prior: Literal["rule"] | None = None
