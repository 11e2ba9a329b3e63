"""Missing values of new rows under a fit: their means, and draws of them."""

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io import names
from stickbreak.result.fitted import Fitted


class Imputing(Fitted):
    """A fit that fills in missing values."""

    @overload
    def impute(
        self, X: ArrayLike, *, return_variance: Literal[False] = False, threads: int | None = None
    ) -> NDArray[np.float64]: ...

    @overload
    def impute(
        self, X: ArrayLike, *, return_variance: Literal[True], threads: int | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...

    def impute(
        self, X: ArrayLike, *, return_variance: bool = False, threads: int | None = None
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], NDArray[np.float64]]:
        r"""Return rows with each missing value replaced by its expectation given the present values of the row.

        .. math:: E[x_d \mid x_o] = \sum_k r_k \mu_{kd}, \quad r_k \propto E_q[w_k] \, p(x_o \mid \lambda_k)

        with the predictive mean :math:`\mu_{kd}` of component k given the row; the prior has the left-over weight.
        Requires a fit with ``missing="marginalize"``. Expectations understate the spread of values; `sample_missing`
        does not.

        Parameters
        ----------
        X : array_like of shape (n, D)
            Dense rows; NaN marks a missing value. Columns of the result are in the order of `X`. Values of columns with
            `levels` become codes.
        return_variance : bool
            Whether to return the variances too.
        threads : int, optional
            The number of threads.

        Returns
        -------
        values : ndarray of float64, shape (n, D)
            Present values are unchanged. Expected counts and flags are not rounded. A missing code of `Categorical` is
            replaced by the most probable one. A value stays NaN in a column without any value in the data of the fit.
        variances : ndarray of float64, shape (n, D)
            Predictive variances of the missing values, infinite if undefined; 0 for the other values; NaN where the
            value stays NaN. For a code, the
            probability of all other codes. Only with `return_variance`.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        NotSupported
            The fit does not allow missing values.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> rng = np.random.default_rng(0)
        >>> X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 50, axis=0) + rng.normal(size=(100, 2))
        >>> X[0, 1] = np.nan
        >>> model = sb.Mixture(likelihood=sb.DiagonalGaussian())
        >>> fit = sb.fit(model, X, n_components=2, missing="marginalize")
        >>> bool(abs(fit.impute(X)[0, 1]) < 1)
        True
        """
        self._check_missing("impute")
        data, _, order, *_ = self._coded(X, "X")
        with names.naming(self.column_names):
            found = self._state.impute(self._checked(data, "X"), checks.threads(threads))
        values, variances = (names.in_place(each, order) for each in found)
        return (values, variances) if checks.flag("return_variance", return_variance) else values

    def sample_missing(self, X: ArrayLike, *, seed: int = 0, threads: int | None = None) -> NDArray[np.float64]:
        """Return rows with each missing value drawn from its predictive distribution given the present values.

        Draws with several seeds form a multiple imputation.

        Parameters
        ----------
        X : array_like of shape (n, D)
            Dense rows; NaN marks a missing value. Columns of the result are in the order of `X`.
        seed : int
            Decides the draw; 0 to 2**64 - 1.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n, D)
            Present values are unchanged.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        NotSupported
            The fit does not allow missing values.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).integers(2, size=(100, 3)).astype(float)
        >>> X[0, 1] = np.nan
        >>> model = sb.Mixture(likelihood=sb.Bernoulli())
        >>> fit = sb.fit(model, X, n_components=2, missing="marginalize")
        >>> bool(fit.sample_missing(X)[0, 1] in (0, 1))
        True
        """
        self._check_missing("sample_missing")
        data, _, order, *_ = self._coded(X, "X")
        with names.naming(self.column_names):
            drawn = self._state.sample_missing(self._checked(data, "X"), checks.seed(seed), checks.threads(threads))
        return names.in_place(drawn, order)

    def _check_missing(self, what: str) -> None:
        if self._state.missing != "marginalize":
            reason = "it was fitted to data without missing values"
            raise checks.not_supported("missing", f"{what} of this fit", reason, 'fit(..., missing="marginalize")')
