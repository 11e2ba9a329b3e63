"""A background: a fixed density with heavy tails for rows that belong to no component."""

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from stickbreak import _core
from stickbreak.model.specification import Specification


class _OfMixtures(Specification):
    _family: ClassVar[str] = "backgrounds"


@dataclass(frozen=True, eq=False, repr=False)
class Background(_OfMixtures):
    r"""A background for rows that belong to no component, such as outliers between clusters.

    .. math:: \epsilon \sim \mathrm{Beta}(e_1, e_0), \quad
              x_n \sim \epsilon \, p_0 + (1 - \epsilon) \sum_k w_k F(\phi_k)

    :math:`p_0` is a multivariate Cauchy density without correlation ([1]_ has a uniform one), fixed before the fit. By
    default its centre and scale are the mean and the standard deviation of each column; rows far from most others are
    left out of these. `Fit.predict` returns -1 for rows whose most probable place is the background.

    It is for columns of real numbers: `Gaussian`, `StudentT`, the other Gaussians, and `Columns` of these.

    Parameters
    ----------
    outliers : float
        :math:`e_1`, prior pseudo-count of rows in the background, at most 1e9.
    inliers : float
        :math:`e_0`, prior pseudo-count of rows in components, at most 1e9. By default 1 of 100 rows is expected in the
        background; the data decide as soon as there are a few hundred.
    centre : array_like of shape (D,), optional
        The centre of :math:`p_0`, in the units of the data. Default: the mean of most rows.
    scale : float or array_like of shape (D,), optional
        The scale of :math:`p_0` in each column, in its unit, positive: in a column half of the rows of the background
        are within one scale of the centre. Default: the standard deviation of most rows.

    Raises
    ------
    InvalidType, InvalidArgument
        A parameter is not as described.

    References
    ----------
    .. [1] Banfield, J. D. and Raftery, A. E. (1993). Model-based Gaussian and non-Gaussian clustering. Biometrics 49.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal([[0, 0], [9, 9]], size=(200, 2, 2)).reshape(-1, 2)
    >>> X[:3] = [[0, 9], [9, 0], [20, 20]]
    >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian(), background=sb.Background()), X)
    >>> fit.n_components, fit.predict(X)[:3]
    (2, array([-1, -1, -1]))
    """

    outliers: float = 1.0
    inliers: float = 99.0
    centre: ArrayLike | None = None
    scale: float | ArrayLike | None = None

    def _check(self) -> None:
        _core.check_background(self._to_core()[1])
