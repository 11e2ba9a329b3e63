"""Warns of fits whose passes ran out."""

import warnings

from stickbreak.errors import ConvergenceWarning
from stickbreak.result.fitted import Fitted
from stickbreak.result.history import StopReason
from stickbreak.run.algorithms import Algorithm, Stochastic


def ran_out(fit: Fitted, algorithm: Algorithm) -> str | None:
    """Return what to say of a fit that used up its passes; None if that is how it should end.

    `Stochastic` makes a fixed number of passes.
    """
    if fit.stop_reason is not StopReason.MAX_PASSES or isinstance(algorithm, Stochastic) or not fit.history:
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
    return f"the fit has not converged after {passes}{why}; allow more with max_passes=, or go on with init=fit"


def warn_of_passes(fit: Fitted, algorithm: Algorithm) -> None:
    """Warn of a fit that used up its passes, at the caller of the caller; without a tolerance it was meant to."""
    text = ran_out(fit, algorithm) if algorithm.tol > 0.0 else None
    if text is not None:
        warnings.warn(text, ConvergenceWarning, stacklevel=3)
