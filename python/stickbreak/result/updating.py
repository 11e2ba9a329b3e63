"""Further data for a fit."""

from typing import Self

from numpy.typing import ArrayLike

from stickbreak import checks
from stickbreak.io import arrays, names
from stickbreak.result.fitted import Fitted


class Updating(Fitted):
    """A fit of a mixture to which rows can be added."""

    def update(
        self,
        X_new: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        max_passes: int = 1,
        tol: float = 1e-6,
        threads: int | None = None,
    ) -> Self:
        r"""Return this fit with more data: the new rows become one more batch of a memoized fit.

        A visit runs the local step of the new rows, and replaces their sums S of the visit before:

        .. math:: S \leftarrow S + S^{\text{new}} - S^{\text{old}}

        Components, weights and the bound are then exactly those of all rows, and the bound rises from visit to visit.
        Old rows keep their responsibilities. Parameters of the base measure that are estimated are estimated again. If
        many new rows are unlike the old ones, make a new `fit` from this one (`init=`).

        Parameters
        ----------
        X_new : array_like of shape (n, D)
            The new rows, at least one.
        sample_weight : array_like of shape (n,), optional
            Weights of the new rows, at least 0, not all zero.
        exposure : array_like of shape (n,), optional
            The exposure of each row, if `fit` had it as an argument.
        max_passes : int
            Maximum number of visits of the new rows, at least 1. One costs little more than `predict` and is right for
            rows like the old ones. Further visits let the new rows see the components that they changed.
        tol : float
            Stop after a visit that gains less than this many nats per unit of the new weight. 0 never stops early.
        threads : int, optional
            The number of threads.

        Returns
        -------
        Fit
            The new fit. Its `history` has one more record per visit. This fit does not change.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described; the new rows are too far from the old ones for float64; or some lie off
            `support`.
        NotSupported
            The `elbo` of this fit is nan: some of its rows have no responsibilities yet.
        NumericalError
            A computation left the range of floating-point numbers.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> rng = np.random.default_rng(0)
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> fit = sb.fit(model, rng.normal(size=(100, 2)), sb.Full(max_passes=5), n_components=3)
        >>> later = fit.update(rng.normal(size=(50, 2)))
        >>> round(float(fit.counts.sum())), round(float(later.counts.sum()))
        (100, 150)
        >>> len(later.history) - len(fit.history)
        1
        """
        rows = self._rows(X_new, "X_new", minimum=1, exposure=exposure)
        weights = arrays.sample_weights(sample_weight, rows.shape[0])
        if self._state.missing == "marginalize":
            weights = arrays.without_empty_rows(weights, arrays.rows_without_values(rows), "X_new")
        max_passes = checks.integer("max_passes", max_passes, minimum=1)
        tol = checks.non_negative("tol", tol)
        with names.naming(self.column_names):
            state = self._state.update(rows, weights, max_passes, tol, checks.threads(threads))
        remarks = tuple(advice for advice in self._remarks if advice.kind not in ("passes", "starts"))
        return type(self)(state, column_names=self.column_names, levels=self._levels, remarks=remarks)
