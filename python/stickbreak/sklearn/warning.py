"""Warnings of the estimators, in the classes of scikit-learn where it has one."""

import warnings

from sklearn.exceptions import ConvergenceWarning

from stickbreak import errors
from stickbreak.result.fit import Fit
from stickbreak.run.algorithms import Algorithm
from stickbreak.run.converging import ran_out


def warn_of(found: Fit, algorithm: Algorithm | None) -> None:
    """Warn of columns that the model leaves out and of a fit that did not converge, in the name of the caller's caller.

    The latter also with a tolerance of 0, as scikit-learn's estimators do.
    """
    said = {type(advice): advice for advice in found.advice()}
    if errors.SupportWarning in said:
        warnings.warn(said[errors.SupportWarning], stacklevel=3)
    of_passes = said.get(errors.ConvergenceWarning) or (algorithm and ran_out(found, algorithm))
    if of_passes:
        warnings.warn(str(of_passes), ConvergenceWarning, stacklevel=3)
