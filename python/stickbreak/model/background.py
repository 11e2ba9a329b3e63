"""A background: a fixed density, uniform and with heavy tails, for rows that belong to no component."""

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

    :math:`p_0` is fixed before the fit: most of it is uniform, within a reach to both sides of a centre ([1]_), the
    rest a multivariate Cauchy density around the same centre, for rows far away. By default it reaches over the values
    of each column, without those far from most others. `Fit.predict` returns -1 for rows whose most probable place is
    the background.

    It is for columns of real numbers: `Gaussian`, `StudentT`, the other Gaussians, and `Columns` of these.

    Parameters
    ----------
    outliers : float
        :math:`e_1`, prior pseudo-count of rows in the background, at most 1e9.
    inliers : float
        :math:`e_0`, prior pseudo-count of rows in components, at most 1e9. By default 1 of 100 rows is expected in the
        background; the data decide as soon as there are a few hundred.
    centre : array_like of shape (D,), optional
        The centre of :math:`p_0`, in the units of the data. Default: the middle of the usual values.
    reach : float or array_like of shape (D,), optional
        How far the uniform part of :math:`p_0` reaches from the centre in each column, in its unit, positive. Default:
        half of the range of the usual values, and one percent more; tiny for a constant column.
    tails : float, optional
        The weight of the Cauchy part, from 1e-9 to 1. Default: 0.02; more, the more rows are beyond the default reach
        around the default centre.
    spread : float, optional
        The scale of the Cauchy part, as a multiple of the standard deviation of the uniform part. Default: 1; with rows
        beyond the default reach around the default centre, how many reaches their median is away.

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
    reach: float | ArrayLike | None = None
    tails: float | None = None
    spread: float | None = None

    def _check(self) -> None:
        _core.check_background(self._to_core()[1])
