"""The Beta distribution: a prior on a discount."""

from dataclasses import dataclass

from stickbreak import _core, checks


@dataclass(frozen=True)
class Beta:
    r"""Beta distribution of a number between 0 and 1.

    .. math:: p(x) \propto x^{a - 1} (1 - x)^{b - 1}, \quad E[x] = \frac{a}{a + b}

    As the `discount` of a `PitmanYor` or a `NormalizedGeneralizedGamma` it makes the discount unknown.
    `Trace.hyperparameters` then has its draws.

    Parameters
    ----------
    a, b : float
        Positive, 1e-3 to 1e6.

    Raises
    ------
    InvalidType, InvalidArgument
        `a` or `b` is not a number, or is out of range.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Beta(1.5, 1.5).mean
    0.5
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name, rule in _core.registry()["priors"]["Beta"]["parameters"].items():
            object.__setattr__(self, name, checks.within(name, getattr(self, name), rule))

    @property
    def mean(self) -> float:
        """The mean, a / (a + b)."""
        return self.a / (self.a + self.b)
