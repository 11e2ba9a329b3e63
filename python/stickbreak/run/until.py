"""When the draws of chains are enough."""

from dataclasses import dataclass

from stickbreak import checks

# The number of draws of each chain at which it is first asked, as in the core.
_FIRST_ASKED = 100


@dataclass(frozen=True)
class Until:
    """Draws are enough: chains of `sample` end when every quantity that `Trace.ess` knows has these.

    A quantity that has one value in all draws of all chains needs no effective draws.

    Parameters
    ----------
    ess : float
        Effective draws over all chains, above 0.
    rhat : float
        R-hat at most, above 1.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(30, 1))
    >>> trace = sb.sample(sb.Mixture(sb.Gaussian()), X, draws=10_000, until=sb.Until(ess=200))
    >>> trace.stop_reason.value, bool(trace.ess() >= 200)
    ('until', True)
    """

    ess: float = 400.0
    rhat: float = 1.01

    def __post_init__(self) -> None:
        ess, rhat = checks.non_negative("ess", self.ess), checks.non_negative("rhat", self.rhat)
        for argument, value, least in (("ess", ess, 0.0), ("rhat", rhat, 1.0)):
            if value <= least:
                raise checks.invalid_argument(argument, str(value), f"a finite number above {least:.0f}")
            object.__setattr__(self, argument, value)


def until_of(until: object, draws: int, chains: int) -> tuple[float, float] | None:
    """Return what an argument `until` asks for; refuse what this number of draws cannot reach."""
    if until is None:
        return None
    found = checks.instance("until", until, Until, "an Until, or None")
    if draws < _FIRST_ASKED:
        raise checks.invalid_argument("draws", str(draws), f"at least {_FIRST_ASKED}, when `until` is first asked")
    # Of n draws at most n log10(n) count as effective (Vehtari et al. 2021), which is less than n for each digit of n.
    most = draws * chains * len(str(draws * chains))
    if found.ess > most:
        raise checks.invalid_argument("until", f"{found.ess:.6g} effective draws", f"at most {most} with so few draws")
    return found.ess, found.rhat
