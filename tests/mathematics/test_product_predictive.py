"""The predictive density under the product base measure against SciPy's adaptive integral over the precision."""

import itertools

import numpy as np
import pytest
from scipy import integrate, optimize, special

import stickbreak as sb


def log_integral(square: float, d: int, shape: float, rate: float, kappa: float) -> float:
    """ln of the integral of N(x | m, (1 / lambda + 1 / kappa) I) over Gamma(lambda | shape, rate)."""

    def log_integrand(t: float) -> float:
        log_precision = -np.logaddexp(-t, -np.log(kappa))
        prior = shape * (t + np.log(rate)) - rate * np.exp(t) - special.gammaln(shape)
        return prior + d / 2 * (log_precision - np.log(2 * np.pi)) - np.exp(log_precision) * square / 2

    grid = np.linspace(-150.0, 20.0, 17_001)
    values = np.array([log_integrand(t) for t in grid])
    best = values.argmax()
    around = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
    mode = optimize.minimize_scalar(lambda t: -log_integrand(t), bounds=around, method="bounded").x
    height = log_integrand(mode)
    kept = grid[values > height - 60.0]
    edges = np.linspace(min(kept[0], mode) - 0.01, max(kept[-1], mode) + 0.01, 41)
    parts = [
        integrate.quad(lambda t: np.exp(log_integrand(t) - height), a, b, epsabs=0.0, epsrel=1e-11, limit=500)[0]
        for a, b in itertools.pairwise(edges)
    ]
    return height + np.log(sum(parts))


@pytest.mark.parametrize("shape", [0.01, 0.6, 1.5, 30.0])
@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.one_in(3)
def test_the_predictive_is_the_integral(shape: float, d: int) -> None:
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(12, d))
    likelihood = sb.SphericalGaussian(
        base="product", mean=np.zeros(d), mean_precision=0.1, shape=shape, rate=shape, prior="rule"
    )
    # Rows of no weight keep the data; a concentration near zero leaves the prior no weight.
    model = sb.Mixture(likelihood=likelihood, process=sb.FiniteDirichlet(n_components=1))
    fit = sb.fit(model, rows, sb.Full(max_passes=1), sample_weight=np.full(12, 1e-3), progress=False)
    parameters = {name: values[0] for name, values in fit.components.items()}
    for far in (0.0, 1.0, 30.0, 1e4, 1e8):
        row = parameters["mean"].copy()
        row[0] += far
        wanted = log_integral(
            far**2, d, float(parameters["shape"]), float(parameters["rate"]), float(parameters["mean_precision"])
        )
        found = fit.log_predictive(row[None])[0]
        assert found == pytest.approx(wanted, rel=1e-8, abs=1e-8), (far, found, wanted)
