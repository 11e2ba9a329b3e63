"""Further data for a fit."""

from collections.abc import Callable
from os import PathLike
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.errors import InvalidArgument
from stickbreak.io import arrays, names
from stickbreak.result.fitted import Fitted
from stickbreak.shards.pieces import ShardedData, check_alone
from stickbreak.shards.sharding import SHARD_ROWS, Sharding


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
        cluster: object = None,
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
            The new rows, at least one. An array or a data frame of dask, and with a `cluster` the path of Parquet
            files, is visited in shards of 2**17 rows, as float64.
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
        cluster : dask.distributed.Client or "here", optional
            The workers that hold the new rows, as in `fit`.

        Returns
        -------
        Fit
            The new fit. Its `history` has one more record per visit. This fit does not change. If a collection can no
            longer be read after the first visit, or the user interrupts, it is the state after the last one, and
            `stop_reason` says so.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described; the new rows are too far from the old ones for float64; or some lie off
            `support`.
        NotSupported
            The `elbo` of this fit is nan: some of its rows have no responsibilities yet; or an `exposure`, or levels of
            columns, for a collection.
        SourceError
            A collection cannot be read, or changes between two readings, or its cluster is lost.
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
        max_passes = checks.integer("max_passes", max_passes, minimum=1)
        tol, threads = checks.non_negative("tol", tol), checks.threads(threads)
        shards = Sharding(cluster, SHARD_ROWS, threads, "X_new", "float64").of(X_new)
        if shards is None:
            if isinstance(X_new, str | PathLike):
                hint = 'cluster="here" reads Parquet files in this process'
                raise checks.invalid_type("X_new", checks.describe(X_new), "rows, or a path with a cluster", hint)
            rows = self._rows(X_new, "X_new", minimum=1, exposure=exposure)
            weights = self._weights(sample_weight, rows.shape[0], lambda: arrays.rows_without_values(rows))
            with names.naming(self.column_names):
                state = self._state.update(rows, weights, max_passes, tol, threads)
        else:
            check_alone("exposure", exposure)
            self._check_columns(shards.data)
            weights = self._weights(sample_weight, shards.data.n_rows, shards.rows_without_values)
            shards.weigh(weights)
            try:
                with names.naming(self.column_names):
                    state = self._state.update(shards.for_core, weights, max_passes, tol, threads)
            except InvalidArgument as error:
                raise shards.located(error) from None
        remarks = tuple(advice for advice in self._remarks if advice.kind not in ("passes", "starts"))
        return type(self)(state, column_names=self.column_names, levels=self._levels, remarks=remarks)

    def _weights(
        self, sample_weight: ArrayLike | None, n_rows: int, empty: Callable[[], NDArray[np.bool_]]
    ) -> NDArray[np.float64] | None:
        weights = arrays.sample_weights(sample_weight, n_rows)
        return arrays.without_empty_rows(weights, empty(), "X_new") if self._state.missing == "marginalize" else weights

    def _check_columns(self, data: ShardedData) -> None:
        """Refuse a collection of other columns than this fit has."""
        if any(levels is not None for levels in self._levels):
            reason = "the levels of its columns are not known"
            raise checks.not_supported("X_new", "a collection with columns of levels", reason, "rows in memory")
        data.put_in_order(self.column_names)
        if data.n_columns != self._state.dimension:
            allowed = f"a collection of {self._state.dimension} columns, as the fit had"
            raise checks.invalid_argument("X_new", f"one of {data.n_columns}", allowed)
