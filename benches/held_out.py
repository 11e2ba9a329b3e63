"""How well a mixture of the patches of one photograph foretells the patches of another, beside scikit-learn's.

Both fit the same model, a Dirichlet-process mixture of zero-mean Gaussians with the same prior and as many components,
to the same rows, all patches of one photograph; neither sees the other photograph. Both are scored by the same function,
the log posterior predictive density, left-over weight included, of all patches of the other. Patches overlap, so the
standard error, which takes them as independent, is too small.

What cannot be equal: scikit-learn starts from k-means, and has no zero-mean Gaussians (a prior precision of the means of
1e12 holds them at zero). It works in float64, on all cores, and gets more passes; `--iterations` says how many.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import gammaln, logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

import stickbreak as sb
from stickbreak.demo.mixture import Settings, fit_patches, score
from stickbreak.demo.patches import PHOTOGRAPHS, Patches, load_photograph, patches

Array = NDArray[np.float64]
# scikit-learn reports after each of this many iterations.
STRIDE = 10


@dataclass
class Posterior:
    """What the predictive density needs: the components, the prior as a last one, and a weight for each."""

    weights: Array
    dof: Array
    scale: Array

    def log_predictive(self, rows: Patches) -> Array:
        """Mixture of Student t densities (spec 1b and 6), in float64."""
        return np.concatenate([self._of_part(part.astype(float)) for part in np.array_split(rows, len(rows) // 20_000 + 1)])

    def _of_part(self, rows: Array) -> Array:
        dimension = rows.shape[1]
        terms = np.empty((len(self.weights), len(rows)))
        for term, weight, dof, scale in zip(terms, self.weights, self.dof, self.scale, strict=True):
            factor = np.linalg.cholesky(scale)
            distances = (solve_triangular(factor, rows.T, lower=True) ** 2).sum(axis=0)
            term[:] = (
                np.log(weight)
                + gammaln((dof + 1) / 2)
                - gammaln((dof + 1 - dimension) / 2)
                - dimension / 2 * np.log(np.pi)
                - np.log(np.diag(factor)).sum()
                - (dof + 1) / 2 * np.log1p(distances)
            )
        return logsumexp(terms, axis=0)


def posterior(weights: Array, leftover: float, dof: Array, scale: Array, prior: sb.ZeroMeanGaussian) -> Posterior:
    return Posterior(
        np.append(weights, leftover), np.append(dof, prior.dof), np.concatenate([scale, np.asarray(prior.scale)[None]])
    )


def of_stickbreak(fit: sb.Fit) -> Posterior:
    likelihood = fit.model.likelihood
    return posterior(
        fit.weights, fit.leftover_weight, fit.components["dof"], fit.components["scale"], likelihood
    )


def of_scikit_learn(mixture: BayesianGaussianMixture, prior: sb.ZeroMeanGaussian) -> Posterior:
    a, b = mixture.weight_concentration_
    remaining = np.cumprod(b / (a + b))
    weights = a / (a + b) * np.append(1.0, remaining[:-1])
    dof = mixture.degrees_of_freedom_
    return posterior(weights, float(remaining[-1]), dof, mixture.covariances_ * dof[:, None, None], prior)


def fit_scikit_learn(
    rows: Patches, prior: sb.ZeroMeanGaussian, n_components: int, iterations: int
) -> Iterator[tuple[int, float, BayesianGaussianMixture]]:
    """Iterations, seconds and the mixture, after every few iterations."""
    wide = rows.astype(float)
    mixture = BayesianGaussianMixture(
        n_components=n_components,
        weight_concentration_prior=1.0,
        mean_prior=np.zeros(rows.shape[1]),
        mean_precision_prior=1e12,
        degrees_of_freedom_prior=prior.dof,
        covariance_prior=np.asarray(prior.scale),
        reg_covar=0.0,
        max_iter=STRIDE,
        tol=0.0,
        warm_start=True,
        random_state=0,
    )
    seconds = 0.0
    for done in range(STRIDE, iterations + 1, STRIDE):
        began = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(wide)
        seconds += time.perf_counter() - began
        yield done, seconds, mixture


def report(who: str, passes: int, seconds: float, weights: Array, n: int, log_densities: Array) -> None:
    mean, error = score(log_densities)
    in_use = np.count_nonzero(weights[:-1] * n >= 100)
    print(f"  {who:<14} {passes:>6} {seconds:>9.1f} {in_use:>6} {mean:>10.3f} ± {error:.3f}", flush=True)


def compare(train: Patches, test: Patches, n_components: int, iterations: int) -> None:
    print(f"  {'':<14} {'passes':>6} {'seconds':>9} {'in use':>6} {'nats a patch':>14}")
    began = time.perf_counter()
    fit = fit_patches(train, Settings(n_components=n_components))
    seconds = time.perf_counter() - began
    ours, log_densities = of_stickbreak(fit), fit.log_predictive(test)
    # The same function scores both: here it is checked against the library's own.
    np.testing.assert_allclose(ours.log_predictive(test[::1000]), log_densities[::1000], rtol=1e-4)
    report("stickbreak", len(fit.history), seconds, ours.weights, len(train), log_densities)
    prior = fit.model.likelihood
    for done, seconds, mixture in fit_scikit_learn(train, prior, n_components, iterations):
        theirs = of_scikit_learn(mixture, prior)
        report("scikit-learn", done, seconds, theirs.weights, len(train), theirs.log_predictive(test))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=60, help="of scikit-learn")
    parser.add_argument("--height", type=int, help="only the middle of each photograph, of this height")
    options = parser.parse_args()
    rows = {name: patches(load_photograph(name, options.height)) for name in PHOTOGRAPHS}
    for train, test in (PHOTOGRAPHS, PHOTOGRAPHS[::-1]):
        n = len(rows[train])
        print(f"\nFitted to {train}, {n:,} patches; scored on {test}, {len(rows[test]):,}; K = {options.components}")
        compare(rows[train], rows[test], options.components, options.iterations)


if __name__ == "__main__":
    main()
