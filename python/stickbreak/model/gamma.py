"""The Gamma distribution: a prior on a positive number, and the posterior of a concentration."""

from dataclasses import dataclass
from typing import Self

from stickbreak import _core, checks


@dataclass(frozen=True)
class Gamma:
    r"""Gamma distribution of a positive number, with shape and rate.

    .. math:: p(\alpha) = \frac{b^a}{\Gamma(a)} \alpha^{a-1} e^{-b \alpha}, \quad E[\alpha] = a / b

    As the `concentration` of a `DirichletProcess` it makes the concentration unknown. `Fit.concentration` then has the
    posterior ([1]_, appendix), and `Trace.hyperparameters` its draws. For samplers it may also be the `concentration`
    of a `PitmanYor`, the `mass` of a `NormalizedGeneralizedGamma`, and the `mean_precision` of a `Gaussian`,
    `DiagonalGaussian` or `SphericalGaussian`.

    Parameters
    ----------
    shape : float
        :math:`a > 0`, 1e-200 to 1e200.
    rate : float
        :math:`b > 0`, 1e-200 to 1e200. It is the reciprocal of the scale.

    Raises
    ------
    InvalidType, InvalidArgument
        `shape` or `rate` is not a number, or is out of range.

    References
    ----------
    .. [1] Blei, D. M. and Jordan, M. I. (2006). Variational inference for Dirichlet process mixtures. Bayesian
           Analysis 1(1).

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Gamma(2, 0.5).mean
    4.0
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        for name, rule in _core.registry()["priors"]["Gamma"]["parameters"].items():
            object.__setattr__(self, name, checks.within(name, getattr(self, name), rule))

    @classmethod
    def _of_posterior(cls, shape: float, rate: float) -> Self:
        """Return a posterior, whose parameters may be outside the range of a prior."""
        made = object.__new__(cls)
        object.__setattr__(made, "shape", shape)
        object.__setattr__(made, "rate", rate)
        return made

    @property
    def mean(self) -> float:
        """The mean, shape / rate."""
        return self.shape / self.rate
