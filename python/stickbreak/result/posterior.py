"""Posterior draws and intervals of the parameters of a fit."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stickbreak import checks
from stickbreak.errors import NotSupported
from stickbreak.model.gamma import Gamma
from stickbreak.model.processes import FiniteDirichlet
from stickbreak.result.fitted import Fitted

Draws = dict[str, NDArray[np.float64]]


class Posterior(Fitted):
    """A fit whose parameters can be drawn."""

    def sample_parameters(self, n: int, *, seed: int = 0) -> dict[str, NDArray[np.float64]]:
        r"""Draw weights and parameters of the components from their posterior q.

        Weights and components are independent under q, and so are the components. Weights come from their sticks,

        .. math:: v_k \sim \mathrm{Beta}(1 - d + N_k, \alpha + k d + N_{>k}), \quad
                  w_k = v_k \textstyle\prod_{l<k} (1 - v_l)

        or from the Dirichlet distribution of a `FiniteDirichlet`. Covariances of full Gaussians are inverse Wishart,
        and means are normal given the covariance. `Gaussian` and `ZeroMeanGaussian` need the package SciPy.

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
            The fit is a point estimate, or SciPy is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
        >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X)
        >>> drawn = fit.sample_parameters(500, seed=1)
        >>> {name: array.shape for name, array in drawn.items()}
        {'weights': (500, 2), 'mean': (500, 2, 1), 'covariance': (500, 2, 1, 1)}
        >>> bool(np.allclose(drawn["weights"].mean(axis=0), fit.weights, atol=0.01))
        True
        """
        n = checks.integer("n", n, minimum=1)
        generator = np.random.default_rng(checks.seed(seed))
        if self._state.objective != "variational":
            reason = "point estimates have no posterior"
            found = f"a fit of the objective {self._state.objective!r}"
            raise checks.not_supported("objective", found, reason, 'objective="variational"')
        return {"weights": _weights(self, n, generator), **_components(self, n, generator)}

    def intervals(self, level: float = 0.9, *, n: int = 2000, seed: int = 0) -> dict[str, NDArray[np.float64]]:
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
        outside = probability(level)
        drawn = self.sample_parameters(checks.integer("n", n, minimum=100), seed=seed)
        return {name: np.quantile(array, outside, axis=0) for name, array in drawn.items()}


def probability(level: object) -> tuple[float, float]:
    """Return the two probabilities between which an interval of this `level` lies."""
    allowed = "a number above 0 and below 1"
    if not isinstance(level, float | np.floating) and not checks.is_integer(level):
        raise checks.invalid_type("level", checks.describe(level), allowed)
    number = float(level)  # type: ignore[arg-type]
    if not 0.0 < number < 1.0:
        raise checks.invalid_argument("level", str(number), allowed)
    return (1.0 - number) / 2.0, (1.0 + number) / 2.0


def _weights(fit: Fitted, n: int, generator: "np.random.Generator") -> NDArray[np.float64]:
    """Draw weights, shape (n, K)."""
    process, counts = fit.model.process, fit.counts
    posterior = fit.concentration
    # Under a Gamma posterior the sticks use its mean.
    concentration = posterior.shape / posterior.rate if isinstance(posterior, Gamma) else posterior
    if isinstance(process, FiniteDirichlet):
        return generator.dirichlet(concentration / len(counts) + counts, size=n)
    discount = getattr(process, "discount", 0.0)
    later = counts.sum() - counts.cumsum() + fit.tail_count
    position = np.arange(1, len(counts) + 1)
    sticks = generator.beta(
        1.0 - discount + counts, concentration + position * discount + later.clip(0.0), size=(n, len(counts))
    )
    if fit.bound == "truncated_stick":
        sticks[:, -1] = 1.0
    left = np.ones((n, len(counts)))
    left[:, 1:] = (1.0 - sticks[:, :-1]).cumprod(axis=1)
    return np.asarray(sticks * left)


def _components(fit: Fitted, n: int, generator: "np.random.Generator") -> Draws:
    """Draw the parameters of components, under the names of their posteriors."""
    found = fit.components
    if "scale" in found:
        return _full(fit, found, n, generator)
    if "rate" in found and "mean" in found:
        return _diagonal(fit, found, n, generator)
    if "mean" in found:
        return _of_known_covariance(fit, found, n, generator)
    if "rate" in found:
        shape = found["shape"]
        rate = _beside(found["rate"], shape)
        return {"rate": generator.gamma(shape, 1.0 / rate, size=(n, *shape.shape))}
    if "successes" in found:
        size = (n, *found["successes"].shape)
        return {"probabilities": generator.beta(found["successes"], found["failures"], size=size)}
    return {"probabilities": _simplices(found["pseudo_counts"], n, generator)}


def _full(fit: Fitted, found: Draws, n: int, generator: "np.random.Generator") -> Draws:
    try:
        from scipy.stats import invwishart
    except ImportError as error:
        raise NotSupported("draws of covariances need the package scipy: pip install scipy") from error
    basis = fit.support.basis
    rank = basis.shape[1]
    covariances = np.empty((n, len(found["dof"]), *found["scale"].shape[1:]))
    means = np.empty(covariances.shape[:-1])
    for k, (dof, scale) in enumerate(zip(found["dof"], found["scale"], strict=True)):
        drawn = invwishart.rvs(float(dof), basis.T @ scale @ basis, size=n, random_state=generator)
        drawn = np.asarray(drawn).reshape(n, rank, rank)
        covariances[:, k] = basis @ drawn @ basis.T
        if "mean" in found:
            # Multiplies a standard normal vector by a factor of the covariance.
            factor = np.linalg.cholesky(drawn / found["mean_precision"][k])
            normal = generator.standard_normal((n, rank, 1))
            means[:, k] = found["mean"][k] + (factor @ normal)[..., 0] @ basis.T
    return {"mean": means, "covariance": covariances} if "mean" in found else {"covariance": covariances}


def _diagonal(fit: Fitted, found: Draws, n: int, generator: "np.random.Generator") -> Draws:
    """Draw means and variances of independent columns, or with one variance for all columns."""
    rate = found["rate"]
    shape = _beside(found["shape"], rate)
    precisions = generator.gamma(shape, 1.0, size=(n, *rate.shape))
    variances = rate / precisions
    precision = _beside(found["mean_precision"], found["mean"])
    if getattr(fit.model.likelihood, "base", None) == "product":
        spread = np.zeros((n, *found["mean"].shape)) + 1.0 / precision
    else:
        spread = _beside(variances, np.empty((n, *found["mean"].shape))) / precision
    normal = generator.standard_normal(spread.shape)
    return {"mean": found["mean"] + normal * spread**0.5, "variance": variances}


def _of_known_covariance(fit: Fitted, found: Draws, n: int, generator: "np.random.Generator") -> Draws:
    mean, precision = found["mean"], found["mean_precision"]
    if precision.ndim == 3:
        covariance = np.linalg.inv(precision)
    else:
        known: Any = fit.model.likelihood
        covariance = np.asarray(known.covariance) / precision[:, None, None]
    normal = generator.standard_normal((n, *mean.shape, 1))
    return {"mean": mean + (np.linalg.cholesky(covariance) @ normal)[..., 0]}


def _simplices(pseudo_counts: NDArray[np.float64], n: int, generator: "np.random.Generator") -> NDArray[np.float64]:
    """Draw probabilities from Dirichlet distributions; levels beyond those of a column stay at zero."""
    gammas = generator.standard_gamma(pseudo_counts, size=(n, *pseudo_counts.shape))
    return np.asarray(gammas / gammas.sum(axis=-1, keepdims=True))


def _beside(values: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with trailing axes of length one, so that they broadcast with an array of more axes."""
    return values.reshape(*values.shape, *[1] * (others.ndim - values.ndim))
