"""Priors on the weights of the components, and on partitions of the rows.

To add a process, add one class here whose fields have the parameter names of the core. A process with a fixed number of
components calls it `n_components`.
"""

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar, Literal, Self

from stickbreak import _core
from stickbreak.model.beta import Beta
from stickbreak.model.gamma import Gamma
from stickbreak.model.specification import Specification


class Process(Specification):
    """Base of all priors on weights."""

    _family: ClassVar[str] = "processes"

    def _check(self) -> None:
        _core.check_process(*self._to_core())


@dataclass(frozen=True, eq=False, repr=False)
class DirichletProcess(Process):
    r"""Dirichlet process: infinitely many components, of which the data occupy a finite number [1]_.

    .. math:: w_k = v_k \prod_{l<k} (1 - v_l), \quad v_k \sim \mathrm{Beta}(1, \alpha)

    Parameters
    ----------
    concentration : float or Gamma
        :math:`\alpha > 0`, 1e-300 to 1e300. A priori n rows occupy about :math:`\alpha \log(1 + n / \alpha)`
        components. With a `Gamma` prior its posterior is `Fit.concentration` ([1]_, appendix). It keeps its default if
        `sticks` is given.
    truncation : {"nested", "stick", "tail"}
        How the variational family is truncated at K components. "nested" sets :math:`q(z_n > K) = 0` and leaves later
        sticks at their prior ([2]_, section 2). An empty component at the end changes nothing, so bounds of different K
        compare. "stick" sets :math:`v_K = 1` [1]_. Its bound belongs to the truncated process and does not compare with
        the others. "tail" lets rows belong to the components beyond K, which stay at their prior [3]_. Its bound is at
        least that of "nested" under the same base measure.
    sticks : tuple of two floats, optional
        a and b of a prior Beta(a, b) of every :math:`v_k`, 1e-3 to 1e6 each ([3]_, section 5). None is Beta(1,
        concentration). With a < 1 small components come among large ones. With a > 1 several large ones are expected,
        so that a fit may divide one cluster among copies. Unless a is 1 the process is not a Dirichlet process: its
        partitions have no closed probabilities. So only `BlockedGibbs` and `Slice` sample it, their `Trace` refuses
        what needs weights of clusters (`predict`, `log_predictive`, `density`, `sample_parameters`, `log_likelihood`),
        and `Fit.concentration` is None.

    Raises
    ------
    InvalidType
        A parameter is neither a number nor a `Gamma`, or not a word, or `sticks` are no numbers.
    InvalidArgument
        `concentration` is not positive, or too small or large, `truncation` is unknown, or `sticks` are not two
        positive numbers, or are given beside a `concentration` other than 1.
    NotSupported
        `concentration` is a `Gamma` and `truncation` is "tail", where the posterior of the concentration is not a
        Gamma.

    References
    ----------
    .. [1] Blei, D. M. and Jordan, M. I. (2006). Variational inference for Dirichlet process mixtures. Bayesian
           Analysis 1(1).
    .. [2] Hughes, M. C. and Sudderth, E. B. (2013). Memoized online variational inference for Dirichlet process
           mixture models. Advances in Neural Information Processing Systems 26.
    .. [3] Kurihara, K., Welling, M. and Vlassis, N. (2006). Accelerated variational Dirichlet process mixtures.
           Advances in Neural Information Processing Systems 19.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.DirichletProcess(concentration=2)
    DirichletProcess(concentration=2.0, truncation='nested')
    >>> sb.DirichletProcess(concentration=sb.Gamma(1, 1), truncation="stick")
    DirichletProcess(concentration=Gamma(shape=1.0, rate=1.0), truncation='stick')
    >>> sb.DirichletProcess(sticks=(2, 3)).sticks
    (2.0, 3.0)
    """

    concentration: float | Gamma = 1.0
    _: KW_ONLY
    truncation: Literal["nested", "stick", "tail"] = "nested"
    sticks: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class FiniteDirichlet(Process):
    r"""Symmetric Dirichlet prior on the weights of a fixed number of components.

    .. math:: (w_1, \dots, w_K) \sim \mathrm{Dirichlet}(\alpha / K, \dots, \alpha / K)

    Parameters
    ----------
    n_components : int
        K, at least 1.
    concentration : float
        :math:`\alpha > 0`, the total mass, divided equally between the K components. ``objective="map"`` needs at least
        K, because otherwise the density of the weights is infinite.

    Raises
    ------
    InvalidType
        `n_components` is not an integer, or `concentration` is not a number.
    InvalidArgument
        `n_components` is below 1, or `concentration` is not positive.
    NotSupported
        `concentration` is a `Gamma`, which is conjugate only to the sticks of a `DirichletProcess`.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.FiniteDirichlet(n_components=10)
    FiniteDirichlet(n_components=10, concentration=1.0)
    """

    n_components: int
    _: KW_ONLY
    concentration: float | Gamma = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class LatentDirichlet(Process):
    r"""Latent Dirichlet allocation: every document has its own weights of a fixed number of topics [1]_.

    .. math:: \pi_d \sim \mathrm{Dirichlet}(\alpha / K, \dots, \alpha / K)

    It is the process of a `TopicModel`; mixtures refuse it.

    Parameters
    ----------
    n_topics : int
        K, 1 to 16,777,216. `fit` takes at most as many topics as the documents have tokens, that is, words counted as
        often as they occur. There may be more topics than distinct words.
    concentration : float or None
        :math:`\alpha`, 1e-9 to 1e9, the total mass, divided equally between the K topics. The smaller it is, the fewer
        topics a document has. None starts from 0.5 and estimates it by the bound (mathematics 11.6). With one topic it
        stays at 0.5, because the documents then say nothing about it.

    Raises
    ------
    InvalidType
        `n_topics` is not an integer, or `concentration` is neither a number nor None.
    InvalidArgument
        `n_topics` or `concentration` is out of its range.

    References
    ----------
    .. [1] Blei, D. M., Ng, A. Y. and Jordan, M. I. (2003). Latent Dirichlet allocation. Journal of Machine Learning
           Research 3.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.LatentDirichlet(n_topics=100)
    LatentDirichlet(n_topics=100, concentration=0.5)
    """

    n_topics: int
    concentration: float | None = 0.5


@dataclass(frozen=True, eq=False, repr=False)
class PitmanYor(Process):
    r"""Pitman-Yor process: a Dirichlet process with many more small components [1]_.

    .. math:: w_k = v_k \prod_{l<k} (1 - v_l), \quad v_k \sim \mathrm{Beta}(1 - d, \alpha + k d)

    A priori the number of components that n rows occupy grows like :math:`n^d`, and their sizes follow a power law.

    Priors of the parameters are supported by `sample` only, which draws them; `fit` takes numbers.

    Parameters
    ----------
    discount : float or Beta
        :math:`0 \le d < 1`; 0 is the Dirichlet process. A `Beta` prior makes it unknown; it is then between 1e-6 and
        1 - 1e-6, and independent of the concentration a priori.
    concentration : float or Gamma
        :math:`\alpha > -d`, at most 1e300. It is positive if the discount has a prior. A `Gamma` prior makes it
        unknown.
    truncation : {"nested"}
        As in `DirichletProcess`.

    Raises
    ------
    InvalidType
        A parameter is neither a number nor its prior, or not a word.
    InvalidArgument
        `discount` is outside [0, 1), `concentration` is not above ``-discount``, or `truncation` is unknown.
    NotSupported
        `truncation` is "tail": the sticks have different priors, so the weights of the tail are not a geometric series.

    References
    ----------
    .. [1] Pitman, J. and Yor, M. (1997). The two-parameter Poisson-Dirichlet distribution derived from a stable
           subordinator. Annals of Probability 25(2).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.PitmanYor(0.3, concentration=2)
    PitmanYor(discount=0.3, concentration=2.0, truncation='nested')
    >>> sb.PitmanYor(sb.Beta(1, 3), concentration=sb.Gamma(2, 1)).discount
    Beta(a=1.0, b=3.0)
    """

    discount: float | Beta
    _: KW_ONLY
    concentration: float | Gamma = 1.0
    truncation: Literal["nested", "tail"] = "nested"


@dataclass(frozen=True, eq=False, repr=False)
class MixtureOfFiniteMixtures(Process):
    r"""Mixture of finite mixtures: a symmetric Dirichlet prior over an unknown number of components [1]_.

    .. math:: K - 1 \sim \mathrm{Poisson}(\lambda), \quad
        (w_1, \dots, w_K) \sim \mathrm{Dirichlet}(\gamma, \dots, \gamma)

    The number of clusters of n rows approaches K as n grows, where that of a `DirichletProcess` grows without limit. It
    is supported by `sample` only.

    Parameters
    ----------
    concentration : float
        :math:`\gamma > 0` of each component, 1e-300 to 1e300. A `FiniteDirichlet` has one for all components together.
    rate : float
        Expected number of components less one, :math:`\lambda > 0`, 1e-300 to 1e4.

    Raises
    ------
    InvalidType, InvalidArgument
        A parameter has a type or a value that is not allowed.

    References
    ----------
    .. [1] Miller, J. W. and Harrison, M. T. (2018). Mixture models with a prior on the number of components. Journal
           of the American Statistical Association 113(521).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.MixtureOfFiniteMixtures(rate=4)
    MixtureOfFiniteMixtures(concentration=1.0, rate=4.0)
    """

    concentration: float = 1.0
    _: KW_ONLY
    rate: float = 1.0


@dataclass(frozen=True, eq=False, repr=False)
class NormalizedGeneralizedGamma(Process):
    r"""Normalized generalized gamma process, whose cluster sizes follow a power law [1]_.

    The weights are the normalised jumps of a completely random measure with the Lévy intensity

    .. math:: \rho(s) = \frac{a}{\Gamma(1 - \sigma)} s^{-1 - \sigma} e^{-s}

    It is supported by `sample` only. `Trace.log_joint` integrates out its auxiliary variable.

    Parameters
    ----------
    mass : float or Gamma
        :math:`a > 0`, 1e-100 to 1e100. A `Gamma` prior makes it unknown. The parametrisation with
        :math:`\alpha = a / \sigma` is ``mass=alpha * discount``.
    discount : float or Beta
        :math:`0 \le \sigma < 1`; 0 is the Dirichlet process of concentration a. A `Beta` prior makes it unknown; it is
        then between 1e-6 and 1 - 1e-6, and independent of the mass a priori.

    Raises
    ------
    InvalidType, InvalidArgument
        A parameter has a type or a value that is not allowed.

    References
    ----------
    .. [1] James, L. F., Lijoi, A. and Prünster, I. (2009). Posterior analysis for normalized random measures with
           independent increments. Scandinavian Journal of Statistics 36(1).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.NormalizedGeneralizedGamma(0.7, discount=sb.Beta(1.5, 1.5))
    NormalizedGeneralizedGamma(mass=0.7, discount=Beta(a=1.5, b=1.5))
    >>> sb.NormalizedGeneralizedGamma.inverse_gaussian(0.7)
    NormalizedGeneralizedGamma(mass=0.7, discount=0.5)
    """

    mass: float | Gamma
    discount: float | Beta

    @classmethod
    def inverse_gaussian(cls, mass: float | Gamma) -> Self:
        """Return the normalized inverse Gaussian process, which has the discount 1/2.

        Parameters
        ----------
        mass : float or Gamma
            As in `NormalizedGeneralizedGamma`.

        Returns
        -------
        NormalizedGeneralizedGamma
            The process.
        """
        return cls(mass, 0.5)
