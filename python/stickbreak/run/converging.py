"""Advice on fits that end too early: the passes ran out, or a later start beat the first one."""

import warnings

from stickbreak.errors import Advice, ConvergenceWarning, SparsityWarning, SupportWarning
from stickbreak.result.fitted import Fitted
from stickbreak.result.history import StopReason
from stickbreak.run.algorithms import Algorithm, Stochastic

# Number of passes, and the change of the objective over all of them, in nats, up to which a fit has settled.
_STILL, _NOTHING = 10, 0.1


def ran_out(fit: Fitted, algorithm: Algorithm) -> ConvergenceWarning | None:
    """Return the advice for a fit that used up its passes; None if it should end that way.

    `Stochastic` makes a fixed number of passes.
    """
    if fit.stop_reason is not StopReason.MAX_PASSES or isinstance(algorithm, Stochastic) or not fit.history:
        return None
    if _is_settled(fit):
        return None
    last = fit.history[-1].objective
    gain = last - fit.history[-2].objective if len(fit.history) > 1 else float("nan")
    mass = max(1.0, float(fit.counts.sum()))
    if gain > algorithm.tol * mass:
        why = f": the last one still raised the objective by {gain:.3g} nats"
    elif gain < -algorithm.tol * mass:
        why = f": in the last one the objective fell by {-gain:.3g} nats"
    else:
        why = ", the last one with moves left to try" if algorithm.moves else ""
    passes = "1 pass" if len(fit.history) == 1 else f"{len(fit.history)} passes"
    on = ("init=fit to go on from here",) if fit._goes_on else ()
    tries = ("more of them (max_passes=)", *on)
    return ConvergenceWarning(f"the fit has not converged after {passes}{why}", suggestions=tries)


def _is_settled(fit: Fitted) -> bool:
    """Return whether the last passes changed the objective by nothing that matters, and no move was accepted."""
    last = fit.history[-_STILL:]
    rise = abs(fit.history[-1].objective - last[0].objective)
    return len(last) == _STILL and rise <= _NOTHING and not any(record.accepted for record in last)


def beaten(fit: Fitted, first: float | None, algorithm: Algorithm) -> Advice | None:
    """Return advice if a later start found a higher objective than the first, which is None if unknown."""
    if first is None:
        return None
    gain = fit.objective - first
    # A nat is about the information of a single row.
    if not gain > max(1.0, algorithm.tol * float(fit.counts.sum())):
        return None
    text = f"another start found a bound {gain:.3g} nats above that of the first"
    return Advice(text, kind="starts", suggestions=("more starts (n_init=), which may find a higher one still",))


def warn_of(fit: Fitted, *, stacklevel: int = 3) -> None:
    """Warn of columns that the model does not see and of passes that ran out; blames the caller of the caller."""
    for advice in fit.advice():
        if isinstance(advice, SupportWarning | ConvergenceWarning | SparsityWarning):
            warnings.warn(advice, stacklevel=stacklevel)
