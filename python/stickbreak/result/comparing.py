"""Which bounds may be compared."""

import math
from collections.abc import Iterator

from stickbreak import checks
from stickbreak.result.fitted import Fitted

# Counts are sums of rounded responsibilities.
_ROUNDING = 1e-6


def check(one: Fitted, other: Fitted) -> None:
    """Raise InvalidArgument where the bounds of two fits do not say which one is better."""
    for argument, fit in (("self", one), ("other", other)):
        if math.isnan(fit.elbo):
            raise checks.invalid_argument(argument, "a fit without a bound: its elbo is nan", "a fit with a bound")
    for name, own, others in _compared(one, other):
        if own != others:
            raise checks.invalid_argument("other", f"a fit with {name} {others}", f"a fit with {name} {own}")
    mass, others = (float(fit.counts.sum() + fit.tail_count) for fit in (one, other))
    if abs(mass - others) > _ROUNDING * mass:
        found, allowed = (f"a fit to rows of the total weight {value:.10g}" for value in (others, mass))
        raise checks.invalid_argument("other", found, allowed)


def _compared(one: Fitted, other: Fitted) -> Iterator[tuple[str, object, object]]:
    """Give what must be the same, by name."""
    yield "the bound", one.bound, other.bound
    if one.bound == "map":  # densities are per unit of the parameters
        for role in ("likelihood", "process"):
            yield f"the {role}", type(getattr(one.model, role)).__name__, type(getattr(other.model, role)).__name__
    for name in ("n_rows", "dimension"):
        yield name, getattr(one._state, name), getattr(other._state, name)
    own, others = one._state.lost_columns, other._state.lost_columns
    for at, name in enumerate(("constant", "dependent")):
        yield f"the {name} columns", own[at], others[at]
