"""Mixtures that belong to draws of partitions: weights and parameters of clusters, and densities at them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import NotSupported
from stickbreak.io import arrays, exposures, names
from stickbreak.io.levels import Levels
from stickbreak.model.mixture import Mixture
from stickbreak.result.drawing import probability
from stickbreak.result.draws import Chains

_Draws = tuple[NDArray[np.int32], NDArray[np.float64], int]


class DensityBand(NamedTuple):
    """The density of rows and how sure it is, from `Trace.density`: in the units of the data.

    Parameters
    ----------
    mean : ndarray of float64, shape (m,)
        The posterior mean of the density of each row, which is its posterior predictive density.
    lower, upper : ndarray of float64, shape (m,)
        The ends of the credible interval of the density of each row.
    """

    mean: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


class Mixing:
    """Methods of `Trace` that draw weights and parameters of the clusters of its draws."""

    _chains: Chains
    _model: Mixture
    _sampled: tuple[_core.SampledModel, arrays.Rows] | None
    _column_names: names.Names | None
    _levels: Levels

    def sample_parameters(
        self, k: int | None = None, *, seed: int = 0, threads: int | None = None
    ) -> dict[str, NDArray[np.float64]]:
        r"""Draw the weight and the parameters of each cluster once for every draw, from their posterior given it.

        Given the partition, clusters are independent, and their parameters have the posteriors of the likelihood. Under
        a `DirichletProcess`

        .. math:: (w_1, \ldots, w_K, w_\text{rest}) \sim \mathrm{Dirichlet}(n_1, \ldots, n_K, \alpha)

        and as the process has it otherwise. The rest are the components without rows.

        Parameters
        ----------
        k : int, optional
            Draws with this number of clusters only. Default: all draws.
        seed : int
            Decides the draws of weights and parameters; 0 to 2**64 - 1.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        dict of ndarray
            "chain", "draw" and "cluster" (its label in `partitions`), "weights", and the names of
            `Fit.sample_parameters`, in the units of the data. With `k`, "chain" and "draw" have the shape (S,) for the
            S draws, and the others begin with the axes (S, k). Without, all have one entry for each cluster of each
            draw, one draw after another.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or no draw has `k` clusters.
        NotSupported
            The trace has no rows, or not the labels of all rows.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 50)).reshape(-1, 1)
        >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=50, warmup=20, chains=2)
        >>> drawn = trace.sample_parameters(2)
        >>> drawn["weights"].shape[1], drawn["mean"].shape[1:], drawn["covariance"].shape[1:]
        (2, (2, 1), (2, 1, 1))
        >>> bool((np.sort(drawn["mean"][:, :, 0].mean(axis=0)).round() == [-5, 5]).all())
        True
        """
        state, own = self._whole("sample_parameters")
        numbers = self._chains.n_clusters.ravel()
        wanted = None if k is None else checks.integer("k", k, minimum=1)
        chosen = np.arange(numbers.size) if wanted is None else np.flatnonzero(numbers == wanted)
        if not chosen.size:
            low, high = numbers.min(), numbers.max()
            raise checks.invalid_argument(
                "k", str(wanted), f"a number of clusters of some draw, which have {low} to {high}"
            )
        draws = self._some_draws(state, chosen, checks.seed(seed))
        found = _core.parameters_of_draws(state, own, draws, checks.threads(threads))
        values = {"weights": found.pop("weights"), **found}

        def shown(values: dict[str, NDArray[Any]]) -> dict[str, Any]:
            weights = {"weights": values.pop("weights")}
            return weights | self._model.likelihood._nested(values, self._column_names)

        chain, draw = chosen // self._chains.n_clusters.shape[1], chosen % self._chains.n_clusters.shape[1]
        clusters = np.concatenate([np.arange(number) for number in numbers[chosen]])
        if wanted is None:
            owners = np.concatenate([np.full(number, index) for index, number in enumerate(numbers[chosen])])
            places = {"chain": chain[owners], "draw": draw[owners], "cluster": clusters}
            return {**places, **shown({name: value[0] for name, value in values.items()})}
        shape = (chosen.size, wanted)
        places = {"chain": chain, "draw": draw, "cluster": clusters.reshape(shape)}
        return {**places, **shown({name: value[0].reshape(*shape, *value.shape[2:]) for name, value in values.items()})}

    def density(self, X: ArrayLike, level: float = 0.9, *, seed: int = 0, threads: int | None = None) -> DensityBand:
        r"""Return the density of rows with a credible interval.

        They are the mean and quantiles over the draws of

        .. math:: f_t(x) = \sum_c w_{tc} \, p(x \mid \theta_{tc}) + w_{t,\text{rest}} \, m(x)

        at weights and parameters drawn once for each draw, as by `sample_parameters`; m is the density of a row in a
        cluster of its own. With more draws the mean approaches the density of `log_predictive`.

        Parameters
        ----------
        X : array_like of shape (m, D)
            The rows, such as a grid.
        level : float
            Probability of the central interval, above 0 and below 1.
        seed : int
            Decides the draws of weights and parameters; 0 to 2**64 - 1.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        DensityBand
            `mean`, `lower` and `upper`; 0 for rows off `support`. A density beyond the range of float64, as with
            hundreds of columns, is 0 or infinite, and its quantiles may be nan: `log_predictive` has the logarithm of
            the mean.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or the densities at all draws do not fit in memory.
        NotSupported
            The trace has no rows, or not the labels of all rows.
        NumericalError
            A row is so far away that its log density overflows float64 (beyond about 1e154 standard deviations).

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 50)).reshape(-1, 1)
        >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=50, warmup=20, chains=2)
        >>> band = trace.density([[-5.0], [0.0]])
        >>> bool((band.lower <= band.upper).all()), bool(band.lower[0] > band.upper[1])
        (True, True)
        """
        ends = probability(level)
        state, own = self._whole("density")
        rows = self._new_rows(X, own)
        values = self._log_densities(state, own, rows, seed, threads)
        return DensityBand(*_core.density_band(values, ends))

    def log_likelihood(self, *, seed: int = 0, threads: int | None = None) -> NDArray[np.float64]:
        """Return the log density of each row of the data at each draw: the logs of the terms of `density`.

        Rows are independent given weights and parameters, so this is the pointwise log-likelihood, as leave-one-out
        cross-validation by importance sampling needs it: ``arviz.loo(trace.to_arviz(log_likelihood=True))``.

        Parameters
        ----------
        seed : int
            Decides the draws of weights and parameters; 0 to 2**64 - 1.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        ndarray of float64, shape (chains, draws, n)
            Log densities in nats, in the units of the data.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or the numbers do not fit in memory.
        NotSupported
            The trace has no rows, or not the labels of all rows.
        """
        state, own = self._whole("log_likelihood")
        values = self._log_densities(state, own, own, seed, threads)
        return values.reshape(*self._chains.n_clusters.shape, -1)

    def _log_densities(
        self, state: _core.SampledModel, own: arrays.Rows, rows: arrays.Rows, seed: object, threads: object
    ) -> NDArray[np.float64]:
        """Return log densities of rows at all draws, (T, m); minus infinity off the support."""
        draws = self._some_draws(state, np.arange(self._chains.n_clusters.size), checks.seed(seed))
        values, off = _core.log_densities(state, own, draws, rows, checks.threads(threads))
        values[:, off] = -np.inf
        return values

    def _some_draws(self, state: _core.SampledModel, chosen: NDArray[np.int64], seed: int) -> _Draws:
        """Return labels and learned parameters of some draws, by index over all chains."""
        labels = self._chains.partitions
        traced = self._traced(state).reshape(self._chains.n_clusters.size, -1)
        return np.ascontiguousarray(labels.reshape(-1, labels.shape[-1])[chosen]), traced[chosen].ravel(), seed

    def _traced(self, state: _core.SampledModel) -> NDArray[np.float64]:
        """Return the learned parameters of all draws, concatenated."""
        names = state.names
        if not names:
            return np.zeros(0)
        return np.ascontiguousarray(np.stack([self._chains.hyperparameters[name] for name in names], axis=-1)).ravel()

    def _with_rows(self, what: str) -> tuple[_core.SampledModel, arrays.Rows]:
        if self._sampled is None:
            reason = "the trace was saved without its rows"
            raise checks.not_supported("self", f"{what} of this trace", reason, "Trace.save(path, rows=True)")
        return self._sampled

    def _whole(self, what: str) -> tuple[_core.SampledModel, arrays.Rows]:
        """Return the model and the rows, for methods that need the labels of all rows."""
        found = self._with_rows(what)
        if self._chains.kept_rows is not None:
            reason = f"it has the labels of {len(self._chains.kept_rows)} rows only"
            raise checks.not_supported("self", f"{what} of this trace", reason, "sample(..., keep_rows=None)")
        return found

    @contextmanager
    def _of_partitions(self, what: str) -> Iterator[None]:
        """Name the likelihood where the core has no marginal likelihood for a method, and what works instead."""
        try:
            yield
        except NotSupported as error:
            if "closed marginal likelihood" not in str(error):
                raise
            found = f"Trace.{what} with {type(self._model.likelihood).__name__}"
            reason = "it has no closed marginal likelihood"
            raise checks.not_supported("likelihood", found, reason, "Trace.density") from None

    def _new_rows(self, X: object, own: arrays.Rows, exposure: ArrayLike | None = None) -> arrays.Rows:
        known = exposures.Known(self._model.likelihood, self._column_names, self._levels, own.shape[1])
        return exposures.rows(X, "X", exposure, known)
