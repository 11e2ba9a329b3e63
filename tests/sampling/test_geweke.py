"""Geweke's test: rows redrawn given the partition, and the partition given the rows, leave the prior as it is.

With the parameters of the clusters drawn anew each time, the partition after a sweep follows its prior, whatever the
number of rows. A sampler that is off by a factor drifts away from it (Geweke 2004).
"""

import numpy as np
import pytest
from scipy import stats

import stickbreak as sb
from oracles import partitions

# False alarms: 1e-4 for all tests of this file together.
LEVEL = 1e-4 / 20
N, SWEEPS, BATCHES = 6, 6000, 60
DOF, PRECISION = 5.0, 0.3
LIKELIHOOD = sb.Gaussian(mean=[0.0, 0.0], mean_precision=PRECISION, dof=DOF, scale=np.eye(2))
MARGINAL = partitions.GaussianMarginal(np.zeros(2), PRECISION, DOF, np.eye(2))
PROCESSES = {
    "dirichlet": (sb.DirichletProcess(1.3), partitions.dirichlet(1.3)),
    "pitman-yor": (sb.PitmanYor(0.4, concentration=0.7), partitions.pitman_yor(0.4, 0.7)),
    "finite": (sb.FiniteDirichlet(3, concentration=2.0), partitions.finite(3, 2.0)),
    "finite mixtures": (sb.MixtureOfFiniteMixtures(0.7, rate=1.5), partitions.finite_mixtures(0.7, 1.5)),
}
SAMPLERS = {
    "gibbs": sb.CollapsedGibbs(),
    "subset": sb.CollapsedGibbs(subset=2),
    "restricted": sb.SplitMerge(subset=1),
    "sequential": sb.SplitMerge(proposal="sequential", subset=1),
    "tree-guided": sb.TreeGuided(global_moves=2, subset=1),
}


def expectations(law) -> tuple[float, float]:
    """Return the prior means of the number of clusters and of the sum of squared sizes."""
    total = np.zeros(3)
    for labels in partitions.set_partitions(N):
        sizes = np.bincount(labels)
        total += np.exp(law(sizes)) * np.array([1.0, len(sizes), (sizes**2).sum()])
    assert total[0] == pytest.approx(1.0)
    return total[1], total[2]


def scores(process: str, sampler: str, law) -> np.ndarray:
    """Return how far the means of many sweeps are from those under a law, in standard errors."""
    model = sb.Mixture(likelihood=LIKELIHOOD, process=PROCESSES[process][0])
    rng = np.random.default_rng(list(PROCESSES).index(process))
    labels = np.zeros(N, dtype=int)
    found = np.empty((SWEEPS, 2))
    for sweep in range(SWEEPS):
        rows = MARGINAL.draw(labels, rng)
        options = {"draws": 1, "warmup": 0, "chains": 1, "init": labels, "seed": sweep, "threads": 1}
        labels = sb.sample(model, rows, SAMPLERS[sampler], progress=False, **options).partitions[0, 0].astype(int)
        sizes = np.bincount(labels)
        found[sweep] = len(sizes), (sizes**2).sum()
    means = found.reshape(BATCHES, -1, 2).mean(1)
    return (means.mean(0) - expectations(law)) / (means.std(0, ddof=1) / np.sqrt(BATCHES))


@pytest.mark.long
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_partitions_keep_their_prior(process: str, sampler: str) -> None:
    found = scores(process, sampler, PROCESSES[process][1])
    assert (np.abs(found) < stats.t.isf(LEVEL / 4, BATCHES - 1)).all(), found


@pytest.mark.long
def test_another_concentration_is_seen() -> None:
    found = scores("dirichlet", "gibbs", partitions.dirichlet(1.6))
    assert (np.abs(found) > stats.t.isf(LEVEL / 4, BATCHES - 1)).all(), found
