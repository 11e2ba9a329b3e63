"""How well a mixture of the patches of one photograph foretells the patches of another, beside scikit-learn's.

All fit the same model, a Dirichlet-process mixture of zero-mean Gaussians with the same prior and as many components,
to the same rows: all patches of one photograph. One function scores them all on all patches of the other photograph:
the log posterior predictive density, the left-over weight included. Patches overlap, so the standard error, which takes
them as independent, is too small.

scikit-learn has no zero-mean Gaussians: a prior precision of 1e12 holds its means at zero. It works in float64 and
dense, once from the start of the demo, which it has no public way to take, and once from its own, k-means. Each has one
thread; the seconds mean little on a machine with other work.
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
from threadpoolctl import threadpool_limits

import stickbreak as sb
from common.head import print_head
from stickbreak.demo.mixture import score
from stickbreak.demo.patches import PHOTOGRAPHS, Patches, contrast_strata, load_photograph, patches

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
PASSES = 20
# Rows scored at a time.
PART = 20_000


@dataclass
class Posterior:
    """Weights and components; the last ones are the left-over weight and the prior."""

    weights: Array
    dof: Array
    scale: Array

    @classmethod
    def of(cls, weights: Array, leftover: float, dof: Array, scale: Array, prior: sb.ZeroMeanGaussian) -> "Posterior":
        prior_scale = np.asarray(prior.scale)
        return cls(np.append(weights, leftover), np.append(dof, prior.dof), np.concatenate([scale, prior_scale[None]]))

    def log_predictive(self, rows: Patches) -> Array:
        """A mixture of Student t densities, in float64."""
        factors = np.linalg.cholesky(self.scale)
        parts = (rows[begin : begin + PART].astype(float).T for begin in range(0, len(rows), PART))
        return np.concatenate([logsumexp(self._log_terms(factors, part), axis=0) for part in parts])

    def _log_terms(self, factors: Array, columns: Array) -> Array:
        dimension = len(columns)
        terms = np.empty((len(self.weights), columns.shape[1]))
        for term, weight, dof, factor in zip(terms, self.weights, self.dof, factors, strict=True):
            distances = (solve_triangular(factor, columns, lower=True) ** 2).sum(axis=0)
            constant = gammaln((dof + 1) / 2) - gammaln((dof + 1 - dimension) / 2) - dimension / 2 * np.log(np.pi)
            term[:] = np.log(weight) + constant - np.log(np.diag(factor)).sum() - (dof + 1) / 2 * np.log1p(distances)
        return terms


def of_stickbreak(fit: sb.Fit) -> Posterior:
    components = fit.components
    return Posterior.of(fit.weights, fit.leftover_weight, components["dof"], components["scale"], fit.model.likelihood)


def of_scikit_learn(mixture: BayesianGaussianMixture, prior: sb.ZeroMeanGaussian) -> Posterior:
    """Its own `weights_` have sum one; the expected sticks leave some weight for the prior."""
    a, b = mixture.weight_concentration_
    remaining = np.cumprod(b / (a + b))
    weights = a / (a + b) * np.append(1.0, remaining[:-1])
    dof = mixture.degrees_of_freedom_
    return Posterior.of(weights, float(remaining[-1]), dof, mixture.covariances_ * dof[:, None, None], prior)


def fit_stickbreak(rows: Patches, n_components: int, init: str | Labels) -> sb.Fit:
    """As in the demo, but for the start and the threads."""
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.DirichletProcess(concentration=1.0))
    algorithm = sb.Memoized(sparsity=4, max_passes=PASSES)
    return sb.fit(model, rows, algorithm, n_components=n_components, init=init, threads=1, progress=False)


class FromLabels(BayesianGaussianMixture):
    """Starts from `labels`, where it has them."""

    labels: Labels | None = None

    def _initialize_parameters(self, X: Array, *args: object, **options: object) -> None:
        if self.labels is None:
            super()._initialize_parameters(X, *args, **options)
        else:
            self._initialize(X, np.eye(self.n_components)[self.labels])


def fit_scikit_learn(
    rows: Patches, prior: sb.ZeroMeanGaussian, n_components: int, iterations: int, labels: Labels | None
) -> Iterator[BayesianGaussianMixture]:
    """The mixture after every `PASSES` iterations."""
    wide = rows.astype(float)
    mixture = FromLabels(
        n_components=n_components,
        weight_concentration_prior=1.0,
        mean_prior=np.zeros(rows.shape[1]),
        mean_precision_prior=1e12,
        degrees_of_freedom_prior=prior.dof,
        covariance_prior=np.asarray(prior.scale),
        reg_covar=0.0,
        max_iter=PASSES,
        tol=0.0,
        warm_start=True,
        random_state=0,
    )
    mixture.labels = labels
    for _ in range(0, iterations, PASSES):
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", ConvergenceWarning)
            mixture.fit(wide)
        yield mixture


def report(who: str, passes: int, seconds: float, weights: Array, log_densities: Array) -> None:
    mean, error = score(log_densities)
    in_use = np.count_nonzero(weights[:-1] >= 1e-3)
    print(f"{who:<39} {passes:>6} {seconds:>8.0f} {in_use:>9} {mean:>10.3f} ± {error:.3f}", flush=True)


def compare(train: Patches, test: Patches, n_components: int, iterations: int) -> None:
    print(f"{'':<39} {'passes':>6} {'seconds':>8} {'w > 0.001':>9} {'nats a patch':>18}")
    labels = contrast_strata(train, n_components)
    for start, init in (("random rows", "random"), ("k-means++", "kmeans++"), ("the demo's", labels)):
        began = time.perf_counter()
        fit = fit_stickbreak(train, n_components, init)
        seconds = time.perf_counter() - began
        ours, log_densities = of_stickbreak(fit), fit.log_predictive(test)
        # One function scores all of them: here it is checked against the library's own.
        np.testing.assert_allclose(ours.log_predictive(test[::1000]), log_densities[::1000], rtol=1e-4)
        report(f"stickbreak, start: {start}", len(fit.history), seconds, ours.weights, log_densities)
    prior = fit.model.likelihood
    for start, given in (("the demo's", labels), ("its k-means", None)):
        seconds, began = 0.0, time.perf_counter()
        for turn, mixture in enumerate(fit_scikit_learn(train, prior, n_components, iterations, given), start=1):
            seconds += time.perf_counter() - began
            theirs = of_scikit_learn(mixture, prior)
            log_densities = theirs.log_predictive(test)
            report(f"scikit-learn, start: {start}", turn * PASSES, seconds, theirs.weights, log_densities)
            began = time.perf_counter()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--iterations", type=int, default=40, help=f"of scikit-learn, a multiple of {PASSES}")
    parser.add_argument("--height", type=int, help="only the middle of each photograph, of this height")
    options = parser.parse_args()
    rows = {name: patches(load_photograph(name, options.height)) for name in PHOTOGRAPHS}
    for train, test in (PHOTOGRAPHS, PHOTOGRAPHS[::-1]):
        print(f"\n{len(rows[train]):,} patches of {train}, K = {options.components}; scored: all patches of {test}")
        compare(rows[train], rows[test], options.components, options.iterations)


if __name__ == "__main__":
    print_head()
    main()
