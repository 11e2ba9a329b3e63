"""Diagnoses of chains: effective draws, R-hat, autocorrelations, and how many draws a quantile needs."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.result.draws import Chains

# Lags of autocorrelations, unless a trace has fewer.
_LAGS = 50


class RunLength(NamedTuple):
    """How many draws a quantile needs, from `Trace.raftery_lewis`: in draws of the trace, nan where it cannot be told.

    Parameters
    ----------
    burn_in : float
        Draws at the beginning of each chain that should not count.
    lag : float
        Draws that are this far apart are a Markov chain of the first order.
    draws : float
        Draws after burn-in that suffice, added up over the chains.
    minimum : float
        Independent draws that would suffice.
    """

    burn_in: float
    lag: float
    draws: float
    minimum: float


class Diagnosing:
    """Methods of `Trace` that diagnose chains by quantities that do not depend on the names of clusters."""

    _chains: Chains

    def ess(self, name: str = "log_joint") -> float:
        """Return the effective sample size of a quantity over all chains.

        The bulk effective sample size [1]_ of rank-normalised draws, on split chains, by Geyer's initial monotone
        sequence. It is defined only for quantities that do not depend on the labels of clusters.

        Parameters
        ----------
        name : str
            "log_joint", "n_clusters", "largest_cluster" (its number of rows), or a name in `hyperparameters`.

        Returns
        -------
        float
            The effective number of draws; nan if all draws are equal or there are fewer than four per chain.

        Raises
        ------
        InvalidType, InvalidArgument
            `name` is not one of these names.

        References
        ----------
        .. [1] Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021). Rank-normalization,
               folding, and localization: an improved R-hat. Bayesian Analysis 16(2).
        """
        return _core.ess(self._quantity(name))

    def rhat(self, name: str = "log_joint") -> float:
        """Return R-hat of a quantity: how much chains differ from each other, 1 if they agree.

        The larger of the R-hat of ranks and of folded ranks, on split chains (Vehtari et al. 2021, as in `ess`).

        Parameters
        ----------
        name : str
            As in `ess`.

        Returns
        -------
        float
            R-hat; nan as in `ess`.

        Raises
        ------
        InvalidType, InvalidArgument
            `name` is not one of these names.
        """
        return _core.rhat(self._quantity(name))

    def autocorrelation(self, name: str = "log_joint", max_lag: int | None = None) -> NDArray[np.float64]:
        r"""Return the autocorrelations of a quantity in each chain.

        .. math:: \hat\rho_l = \sum_{t=1}^{T-l} (x_t - \bar x) (x_{t+l} - \bar x) \Big/ \sum_{t=1}^T (x_t - \bar x)^2

        Parameters
        ----------
        name : str
            As in `ess`.
        max_lag : int, optional
            The largest lag l, below the number of draws. Default: 50, or the largest that a short trace has.

        Returns
        -------
        ndarray of float64, shape (chains, max_lag + 1)
            By chain and lag, 1 at lag 0; nan for chains of equal values.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        """
        values = self._quantity(name)
        most = values.shape[1] - 1
        lag = min(_LAGS, most) if max_lag is None else checks.integer("max_lag", max_lag, minimum=0, maximum=most)
        return _core.autocorrelation(values, lag)

    def raftery_lewis(
        self, name: str = "log_joint", quantile: float = 0.025, precision: float = 0.005, probability: float = 0.95
    ) -> RunLength:
        """Return how many draws are needed to estimate a quantile of a quantity, and how many are burn-in.

        Whether a draw is at most the quantile is taken for a Markov chain of two states, thinned until it has the first
        order (Raftery and Lewis [1]_). Transitions are counted in each chain, and added up.

        Parameters
        ----------
        name : str
            As in `ess`.
        quantile : float
            The probability below the quantile, between 0 and 1.
        precision : float
            By how much the probability below the estimated quantile may be off, between 0 and 1.
        probability : float
            With which probability that precision is reached, between 0 and 1.

        Returns
        -------
        RunLength
            The numbers are rough unless the trace has more than `RunLength.minimum` draws. All but that one are nan if
            the draws show too few transitions, such as those of a quantity with hardly any values.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.

        References
        ----------
        .. [1] Raftery, A. E. and Lewis, S. M. (1992). How many iterations in the Gibbs sampler? In Bayesian Statistics
               4, Oxford University Press.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(20, 1))
        >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=200, chains=2)
        >>> trace.raftery_lewis().minimum
        3746.0
        """
        values = self._quantity(name)
        given = {"quantile": quantile, "precision": precision, "probability": probability}
        checked = [checks.share(argument, value) for argument, value in given.items()]
        return RunLength(*_core.run_length(values, *checked))

    def _quantities(self) -> dict[str, NDArray[Any]]:
        chains = self._chains
        found = {"log_joint": chains.log_joint, "n_clusters": chains.n_clusters, "largest_cluster": chains.largest}
        return {**found, **chains.hyperparameters}

    def _quantity(self, name: object) -> NDArray[np.float64]:
        known = self._quantities()
        return np.ascontiguousarray(known[checks.word("name", name, list(known))], dtype=np.float64)
