"""`sample_prior`: rows and labels from a model alone."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.model.mixture import Mixture


@dataclass(frozen=True, eq=False)
class PriorSample:
    """A table drawn from a model, from `sample_prior`.

    Parameters
    ----------
    rows : ndarray of float64, shape (n, D)
        The rows.
    labels : ndarray of int64, shape (n,)
        The cluster of each row, numbered from 0 by first appearance.
    hyperparameters : dict of str to float
        Parameters with a prior, as drawn.
    """

    rows: NDArray[np.float64]
    labels: NDArray[np.int64]
    hyperparameters: dict[str, float]

    def __repr__(self) -> str:
        n, d = self.rows.shape
        return f"<PriorSample of {n} rows of {d} columns in {self.labels.max() + 1} clusters>"


def sample_prior(model: Mixture, n: int, *, n_columns: int | None = None, seed: int = 0) -> PriorSample:
    r"""Draw a partition of n rows and the rows from a model, before it has seen data: a prior predictive draw.

    .. math:: \Pi \sim p(\Pi), \quad x_i \mid \Pi, x_{1:i-1} \sim \frac{m(X_c \cup x_i)}{m(X_c)}

    where c is the cluster of row i and :math:`X_c` the rows before it there. So components are drawn from the base
    measure, but integrated out. Use it to see what a model takes for likely, and to test a sampler: rows that it drew
    must give its parameters back.

    Parameters
    ----------
    model : Mixture
        The model. All parameters of its likelihood must be given, because the defaults of those that are `None` depend
        on data.
    n : int
        The number of rows, at least 1.
    n_columns : int, optional
        D. Needed if no parameter of the likelihood has an entry for each column.
    seed : int
        Decides the draw; 0 to 2**64 - 1.

    Returns
    -------
    PriorSample
        With `rows`, `labels` and `hyperparameters`.

    Raises
    ------
    InvalidType, InvalidArgument
        An argument is not as described, a parameter of the likelihood is `None`, or parameters have other numbers of
        columns.
    NotSupported
        The likelihood has no closed marginal likelihood, or does not describe the rows completely: a `Multinomial` has
        no law of the number of words in a row.
    NumericalError
        A computation left the range of floating-point numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> likelihood = sb.Gaussian(mean=[0.0, 0.0], mean_precision=0.01, dof=5.0, scale=np.eye(2))
    >>> drawn = sb.sample_prior(sb.Mixture(likelihood=likelihood), 100)
    >>> drawn.rows.shape, drawn.labels.shape
    ((100, 2), (100,))
    """
    checks.instance("model", model, Mixture, "a Mixture")._check_no_background("draws from the prior")
    number = checks.integer("n", n, minimum=1, maximum=2**32 - 2)
    columns = None if n_columns is None else checks.integer("n_columns", n_columns, minimum=1, or_else=["None"])
    model = model._placed(model.likelihood._own_names(), columns or 0)
    if getattr(model.likelihood, "exposure", None) is not None:
        reason = "the exposures of rows are known from data alone"
        raise checks.not_supported("exposure", "sample_prior with an exposure", reason, "exposure=None")
    likelihood, process = model.likelihood._to_core(), model.process._to_core()
    return PriorSample(*_core.sample_prior(likelihood, process, number, columns, checks.seed(seed)))
