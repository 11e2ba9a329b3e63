"""Draws of rows, posterior draws and intervals of the parameters of a fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import _core, checks
from stickbreak.result.fitted import Fitted


class Drawing(Fitted):
    """A fit whose rows and parameters can be drawn."""

    def sample(self, n: int, *, seed: int = 0, threads: int | None = None) -> NDArray[np.float64]:
        """Draw rows from the posterior predictive distribution, the density of `log_predictive`.

        Parameters
        ----------
        n : int
            The number of rows.
        seed : int
            Decides the draw; 0 to 2**64 - 1.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n, D)
            Independent rows. Rows with exposures have that of an average row of the data.

        Raises
        ------
        InvalidType, InvalidArgument
            `n`, `seed` or `threads` is not as described.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> fit = sb.fit(model, X, sb.Full(max_passes=5), n_components=3)
        >>> fit.sample(4, seed=1).shape
        (4, 2)
        """
        return self._state.sample(checks.integer("n", n, minimum=0), checks.seed(seed), checks.threads(threads))

    def sample_parameters(self, n: int, *, seed: int = 0) -> dict[str, Any]:
        r"""Draw weights and parameters of the components from their posterior q.

        Weights and components are independent under q, and so are the components. Weights come from their sticks,

        .. math:: v_k \sim \mathrm{Beta}(1 - d + N_k, \alpha + k d + N_{>k}), \quad
                  w_k = v_k \textstyle\prod_{l<k} (1 - v_l)

        or from the Dirichlet distribution of a `FiniteDirichlet`. Covariances of full Gaussians are inverse Wishart,
        and means are normal given the covariance.

        Parameters
        ----------
        n : int
            The number of draws, at least 1.
        seed : int
            Decides the draws; 0 to 2**64 - 1.

        Returns
        -------
        dict of ndarray of float64
            "weights" of shape (n, K), and the names of `point_estimates`, each with n as its first axis and K as its
            second, in the units of the data. The posterior mean of a covariance is above its point estimate, which is
            the inverse of the mean precision.

        Raises
        ------
        InvalidType, InvalidArgument
            `n` or `seed` is not as described.
        NotSupported
            The fit is a point estimate.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
        >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
        >>> drawn = fit.sample_parameters(500, seed=1)
        >>> {name: array.shape for name, array in drawn.items()}
        {'weights': (500, 2), 'covariance': (500, 2, 1, 1), 'mean': (500, 2, 1)}
        >>> bool(np.allclose(drawn["weights"].mean(axis=0), fit.weights, atol=0.01))
        True
        """
        n = checks.integer("n", n, minimum=1)
        return self._weights_first(_core.sample_parameters(self._state, n, checks.seed(seed)))

    def intervals(self, level: float = 0.9, *, n: int = 2000, seed: int = 0) -> dict[str, Any]:
        """Return posterior intervals of the weights and of the parameters of the components.

        They are quantiles of `sample_parameters`. They take the number of components and the responsibilities as given,
        so they are narrower than intervals from `sample`.

        Parameters
        ----------
        level : float
            Probability of each interval, above 0 and below 1. Intervals are central.
        n : int
            The number of draws, at least 100.
        seed : int
            Decides the draws.

        Returns
        -------
        dict of ndarray of float64
            By the names of `sample_parameters`, each of shape (2, K, ...): the lower ends and the upper ends.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        NotSupported
            As in `sample_parameters`.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
        >>> low, high = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X).intervals(0.95)["mean"]
        >>> bool(((low < [[-5], [5]]) == (high > [[-5], [5]])).all())
        True
        """
        return self._weights_first(self._intervals(level, n, seed))

    def _intervals(self, level: float, n: int, seed: int) -> dict[str, NDArray[np.float64]]:
        """Return intervals as the core names them."""
        ends, n = probability(level), checks.integer("n", n, minimum=100)
        return _core.intervals(self._state, ends, n, checks.seed(seed))

    def _weights_first(self, found: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
        weights: dict[str, Any] = {"weights": found.pop("weights")}
        shown: dict[str, Any] = self._model.likelihood._nested(found, self._column_names)
        return weights | shown


def probability(level: object) -> tuple[float, float]:
    """Return the two probabilities between which an interval of this `level` lies."""
    number = checks.share("level", level)
    return (1.0 - number) / 2.0, (1.0 + number) / 2.0
