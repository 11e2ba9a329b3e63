"""The simulations of Blei and Jordan (2006): mixtures of Gaussians of known covariance.

The data are mixtures from a Dirichlet process of concentration 1. All components have the autocorrelation matrix of
a first-order autoregression, S[i, j] = 0.9^|i - j|, which the model knows; means come from N(0, S / kappa) with
kappa = D / 20, so that two centres are on average as far apart in every dimension: sqrt(40) standard deviations. (The
paper scales its base distribution "for comparison across dimensions" too, but the text at hand does not say how; so its
values are not ours to compare with.) 100 rows to fit, 100 to foretell, ten data sets for each D. Truncation 20 with the
last stick 1, sequential starts from random permutations of which the one with the best bound is kept, passes until one
gains less than 1e-10 nats a row. As many starts by k-means++ stand beside them.

"Held out" is the mean log predictive density of the held-out rows. Beside it the one that knows the true partition of
the rows to fit: what no method can be expected to beat. Standard errors are those of ten data sets.

python benches/papers/blei_jordan.py [--permutations 20]
"""

import argparse
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import stickbreak as sb
from figures import print_head, save

Array = NDArray[np.float64]
CORRELATION = 0.9
SEPARATION = 20.0
CONCENTRATION = 1.0
ROWS = 100
TRUNCATION = 20
DIMENSIONS = (5, 10, 20, 30, 40, 50)
DATA_SETS = 10
# Sweeps from which the burn-in and the lag of a sampler follow, and draws that foretell.
PILOT = 4000
DRAWS = 100
SAMPLERS = {"truncated": sb.BlockedGibbs(truncation=TRUNCATION), "collapsed": sb.CollapsedGibbs()}
STARTS = ("sequential", "kmeans++")
# The data set whose bound is drawn against the truncation: the first with as many clusters, none of them of one row.
DRAWN = 20
CLUSTERS_DRAWN = 5
TRUNCATIONS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 25, 30, 40, 50)
ITERATIONS_DRAWN = 25
# The first data set of the plane with as many clusters as are drawn, and the stages at which its density is drawn.
PLANE_SEED = 1
STAGES = (0, 1, 2, 5, 1000)


@dataclass(frozen=True)
class DataSet:
    """Rows of a mixture from a Dirichlet process; the first ones are to fit."""

    rows: Array
    labels: NDArray[np.int64]
    covariance: Array
    mean_precision: float

    @property
    def train(self) -> Array:
        return self.rows[:ROWS]

    @property
    def held_out(self) -> Array:
        return self.rows[ROWS:]

    @property
    def cluster_sizes(self) -> list[int]:
        return np.unique(self.labels[:ROWS], return_counts=True)[1].tolist()

    @property
    def n_clusters(self) -> int:
        return len(self.cluster_sizes)

    def known_partition(self) -> float:
        """Mean log predictive density of the held-out rows, given how the others are partitioned."""
        known = self.labels[:ROWS]
        terms = [self._term(self.train[known == label]) for label in np.unique(known)]
        terms.append(self._term(self.train[:0], CONCENTRATION))
        return float(logsumexp(terms, axis=0).mean())

    def _term(self, members: Array, mass: float | None = None) -> Array:
        precision = self.mean_precision + len(members)
        density = multivariate_normal(members.sum(axis=0) / precision, (1 + 1 / precision) * self.covariance)
        weight = (len(members) if mass is None else mass) / (ROWS + CONCENTRATION)
        return np.log(weight) + density.logpdf(self.held_out)


def generate(dimension: int, seed: int) -> DataSet:
    """Labels by the Chinese restaurant process, then means and rows."""
    rng = np.random.default_rng([dimension, seed])
    counts: list[int] = []
    labels = np.empty(2 * ROWS, np.int64)
    for n in range(2 * ROWS):
        labels[n] = rng.choice(len(counts) + 1, p=np.array([*counts, CONCENTRATION]) / (n + CONCENTRATION))
        if labels[n] == len(counts):
            counts.append(0)
        counts[labels[n]] += 1
    places = np.arange(dimension)
    covariance = CORRELATION ** np.abs(places[:, None] - places)
    factor = np.linalg.cholesky(covariance)
    mean_precision = dimension / SEPARATION
    means = rng.normal(size=(len(counts), dimension)) @ factor.T / np.sqrt(mean_precision)
    rows = means[labels] + rng.normal(size=(2 * ROWS, dimension)) @ factor.T
    return DataSet(rows, labels, covariance, mean_precision)


def model_of(data: DataSet, truncation: str = "nested") -> sb.Mixture:
    likelihood = sb.KnownCovarianceGaussian(
        data.covariance, mean=np.zeros(len(data.covariance)), mean_precision=data.mean_precision
    )
    return sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(CONCENTRATION, truncation=truncation))


def fit(
    data: DataSet,
    n_components: int = TRUNCATION,
    *,
    init: str = "sequential",
    truncation: str = "stick",
    permutations: int = 1,
    seed: int = 0,
    passes: int = 1000,
) -> sb.Fit:
    model = model_of(data, truncation)
    algorithm = sb.Full(sparsity=None, margin=None, tol=1e-10, max_passes=passes)
    return sb.fit(
        model,
        data.train,
        algorithm,
        n_components=n_components,
        init=init,
        n_init=permutations,
        seed=seed,
        threads=1,
        progress=False,
    )


@dataclass
class OfDimension:
    """What the ten data sets of one dimension give, a value each."""

    held_out: list[float] = field(default_factory=list)
    known: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    passes: list[int] = field(default_factory=list)
    occupied: list[int] = field(default_factory=list)
    clusters: list[int] = field(default_factory=list)

    @property
    def missed(self) -> list[float]:
        """How much less than with the true partition."""
        return np.subtract(self.known, self.held_out).tolist()

    def add(self, data: DataSet, init: str, permutations: int) -> None:
        begun = time.process_time()
        found = fit(data, init=init, permutations=permutations)
        self.milliseconds.append(1e3 * (time.process_time() - begun) / permutations)
        self.held_out.append(float(found.log_predictive(data.held_out, threads=1).mean()))
        self.known.append(data.known_partition())
        self.passes.append(len(found.history))
        self.occupied.append(found.n_occupied)
        self.clusters.append(data.n_clusters)


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def by_dimension(dimensions: Sequence[int], n_sets: int, init: str, permutations: int) -> dict[int, OfDimension]:
    print(
        f"\nHeld-out rows, {n_sets} data sets a dimension, mean (standard error); nats a row; the best of "
        f"{permutations} {init} starts,\ntime: CPU milliseconds of one of them\n"
        f"{'D':>3} {'held out':>17} {'true partition':>17} {'less than that':>17} {'time':>15} {'passes':>7} "
        f"{'occupied':>9} {'clusters':>9}"
    )
    found = {}
    for dimension in dimensions:
        found[dimension] = own = OfDimension()
        for seed in range(n_sets):
            own.add(generate(dimension, seed), init, permutations)
        columns = [
            f"{mean:9.3f} ({error:.3f})" for mean, error in map(mean_and_error, (own.held_out, own.known, own.missed))
        ]
        mean, error = mean_and_error(own.milliseconds)
        print(
            f"{dimension:>3} "
            + " ".join(f"{column:>17}" for column in columns)
            + f" {f'{mean:.2f} ({error:.2f})':>15} {np.mean(own.passes):7.1f} {np.mean(own.occupied):9.1f} "
            f"{np.mean(own.clusters):9.1f}",
            flush=True,
        )
    return found


@dataclass
class OfSampler:
    """What the data sets of one dimension give under one sampler, a value each."""

    held_out: list[float] = field(default_factory=list)
    missed: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    sweep: list[float] = field(default_factory=list)
    burn_in: list[int] = field(default_factory=list)
    lag: list[int] = field(default_factory=list)
    autocorrelation: list[Array] = field(default_factory=list)

    def add(self, data: DataSet, sampler: sb.BlockedGibbs | sb.CollapsedGibbs, pilot: int, draws: int) -> None:
        """Add the time of burn-in and `draws` uncorrelated draws, both by a pilot run, and what the draws foretell."""
        options = {"chains": 1, "init": "single", "threads": 1, "progress": False}
        first = sb.sample(model_of(data), data.train, sampler, draws=pilot, warmup=0, seed=0, **options)
        needed = first.raftery_lewis("largest_cluster")
        # A size that never changes says nothing: nan.
        burn_in, lag = (int(np.nan_to_num(value, nan=1.0)) for value in (needed.burn_in, needed.lag))
        begun = time.process_time()
        trace = sb.sample(model_of(data), data.train, sampler, draws=draws, warmup=burn_in, thin=lag, seed=1, **options)
        self.milliseconds.append(1e3 * (time.process_time() - begun))
        self.sweep.append(self.milliseconds[-1] / (burn_in + draws * lag))
        self.held_out.append(float(trace.log_predictive(data.held_out, threads=1).mean()))
        self.missed.append(data.known_partition() - self.held_out[-1])
        self.burn_in.append(burn_in)
        self.lag.append(lag)
        self.autocorrelation.append(first.autocorrelation("largest_cluster", max_lag=10)[0])


def by_sampler(dimensions: Sequence[int], n_sets: int, pilot: int, draws: int) -> dict[str, dict[int, OfSampler]]:
    print(
        f"\nGibbs samplers on the same data: burn-in and lag by Raftery and Lewis for the size of the largest cluster, "
        f"from {pilot} sweeps;\ntime: CPU milliseconds of the burn-in and {draws} draws; mean (standard error)"
        f"\n{'D':>3} {'Gibbs':>10} {'held out':>17} {'less than true':>17} {'time':>17} {'a sweep':>8} "
        f"{'burn-in':>8} {'lag':>5}   autocorrelation at 1, 5, 10"
    )
    found: dict[str, dict[int, OfSampler]] = {name: {} for name in SAMPLERS}
    for dimension in dimensions:
        for name, sampler in SAMPLERS.items():
            found[name][dimension] = own = OfSampler()
            for seed in range(n_sets):
                own.add(generate(dimension, seed), sampler, pilot, draws)
            columns = [mean_and_error(values) for values in (own.held_out, own.missed, own.milliseconds)]
            shown = [f"{f'{mean:.3f} ({error:.3f})':>17}" for mean, error in columns]
            lags = np.nanmean(own.autocorrelation, axis=0)[[1, 5, 10]]
            print(
                f"{dimension:>3} {name:>10} {' '.join(shown)} {np.mean(own.sweep):8.3f} {np.mean(own.burn_in):8.1f} "
                f"{np.mean(own.lag):5.1f}   " + ", ".join(f"{value:.3f}" for value in lags),
                flush=True,
            )
    return found


def drawn_data() -> DataSet:
    """The first data set with five clusters, none of them of one row."""
    found = (generate(DRAWN, seed) for seed in range(1000))
    return next(data for data in found if data.n_clusters == CLUSTERS_DRAWN and min(data.cluster_sizes) > 1)


def by_truncation(data: DataSet, truncations: Sequence[int], permutations: int) -> dict[str, list[float]]:
    """The best bound of each truncation: of the truncated process, and of the whole one."""
    print(
        f"\nBound by truncation T: D = {DRAWN}, clusters of {data.cluster_sizes} rows, best of {permutations} "
        "sequential starts.\nWith the last stick 1 it is the bound of another model for each T, the truncated process; "
        "nested ones all bound one evidence\n"
        f"{'T':>4} {'last stick 1':>14} {'nested':>14}"
    )
    bounds: dict[str, list[float]] = {"stick": [], "nested": []}
    for n_components in truncations:
        for truncation, values in bounds.items():
            values.append(fit(data, n_components, truncation=truncation, permutations=permutations).elbo)
        print(f"{n_components:>4} {bounds['stick'][-1]:14.4f} {bounds['nested'][-1]:14.4f}", flush=True)
    return bounds


def by_iteration(data: DataSet, iterations: int, permutations: int) -> tuple[list[float], list[float]]:
    """Bound and held-out density after each iteration of the best of the permutations."""
    best = max(range(permutations), key=lambda seed: fit(data, seed=seed).elbo)
    fits = [fit(data, seed=best, passes=passes) for passes in range(iterations + 1)]
    # A run that has converged stays where it is.
    fits = [found for passes, found in enumerate(fits) if len(found.history) == passes]
    bounds = [found.elbo for found in fits]
    densities = [float(found.log_predictive(data.held_out, threads=1).mean()) for found in fits]
    print(
        f"\nBy iteration, the same data, T = {TRUNCATION}\n"
        f"{'':>4} {'bound':>14} {'relative change':>16} {'held out':>10}"
    )
    for index, (bound, density) in enumerate(zip(bounds, densities, strict=True)):
        change = f"{(bound - bounds[index - 1]) / abs(bound):16.1e}" if index else " " * 16
        print(f"{index:>4} {bound:14.6f} {change} {density:10.4f}")
    return bounds, densities


def errorbars(panel: plt.Axes, dimensions: dict[int, OfDimension], name: str, **style: str) -> None:
    means, errors = zip(*(mean_and_error(getattr(own, name)) for own in dimensions.values()), strict=True)
    panel.errorbar(list(dimensions), means, errors, fmt="o-", capsize=3, markersize=4, **style)


def draw(
    dimensions: dict[str, dict[int, OfDimension]], bounds: dict[str, list[float]], densities: Sequence[float]
) -> None:
    figure, ((held_out, seconds), (truncation, iteration)) = plt.subplots(2, 2, figsize=(9, 6.5), layout="constrained")
    for init, own in dimensions.items():
        errorbars(held_out, own, "missed", label=init)
        errorbars(seconds, own, "milliseconds", label=init)
    held_out.set(xlabel="D", ylabel="nats a held-out row less than\nwith the true partition", ylim=(0, None))
    held_out.legend()
    seconds.set(xlabel="D", ylabel="CPU milliseconds to converge", ylim=(0, None))
    seconds.legend()
    for name, label in (("stick", "last stick 1 (truncated process)"), ("nested", "nested (whole process)")):
        truncation.plot(TRUNCATIONS[: len(bounds[name])], bounds[name], "o-", label=label, markersize=4)
    truncation.set(xlabel="truncation T", ylabel="bound, nats")
    truncation.legend()
    iteration.plot(densities, "o-", markersize=4)
    iteration.set(xlabel="iteration", ylabel="nats a held-out row")
    save(figure, "blei_jordan")


def draw_plane(permutations: int) -> None:
    """The predictive density of 100 rows in the plane, at stages of the best of the sequential starts (figure 2)."""
    data = generate(2, PLANE_SEED)
    best = max(range(permutations), key=lambda seed: fit(data, seed=seed).elbo)
    edges = [
        np.linspace(low - 3, high + 3, 200) for low, high in zip(data.train.min(0), data.train.max(0), strict=True)
    ]
    grid = np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1)
    figure, panels = plt.subplots(1, len(STAGES), figsize=(13, 3.6), sharey=True, layout="constrained")
    print(f"\nPredictive density in the plane by iteration: {data.n_clusters} clusters of {data.cluster_sizes} rows")
    for panel, passes in zip(panels, STAGES, strict=True):
        found = fit(data, seed=best, passes=passes)
        density = np.exp(found.log_predictive(grid.reshape(-1, 2), threads=1)).reshape(grid.shape[:2])
        panel.contour(*edges, density.T, levels=12, linewidths=0.8)
        panel.plot(*data.train.T, "k.", markersize=2)
        panel.set_title("the start" if passes == 0 else f"iteration {len(found.history)}")
        print(
            f"{len(found.history):>4} {found.elbo:14.4f} {found.log_predictive(data.held_out, threads=1).mean():10.4f}"
        )
    save(figure, "blei_jordan_plane")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--permutations", type=int, default=20, help="sequential starts of every fit")
    options = parser.parse_args()
    print(f"stickbreak {sb.__version__}, one thread; load before {os.getloadavg()[0]:.1f}")
    dimensions = {init: by_dimension(DIMENSIONS, DATA_SETS, init, options.permutations) for init in STARTS}
    by_sampler(DIMENSIONS, DATA_SETS, PILOT, DRAWS)
    data = drawn_data()
    bounds = by_truncation(data, TRUNCATIONS, options.permutations)
    _, densities = by_iteration(data, ITERATIONS_DRAWN, options.permutations)
    draw(dimensions, bounds, densities)
    draw_plane(options.permutations)
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
