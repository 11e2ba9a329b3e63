"""Simulation-based calibration: parameters from the prior rank uniformly among draws from their posterior.

Each replicate draws learned parameters, a partition and rows from the model, and then chains given the rows. What was
drawn first is one more draw from the posterior, so its rank among the others is uniform (Talts et al. 2018). That
holds whatever the model, and so where partitions cannot be enumerated; it needs draws that are nearly independent.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

import stickbreak as sb
from oracles import partitions
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.processes import Process

# The tail that a truncation cuts off is too small to be seen here.
pytestmark = pytest.mark.filterwarnings("ignore::stickbreak.TruncationWarning")

# False alarms: 1e-4 for all checks of this file together: two statistics of each rank, 31 cells.
LEVEL = 1e-4 / 240
N, DRAWS, REPLICATES = 8, 19, 1000
LIKELIHOOD = sb.Gaussian(mean=[0.0, 0.0], mean_precision=0.3, dof=5.0, scale=np.eye(2))
MARGINAL = partitions.GaussianMarginal(np.zeros(2), 0.3, 5.0, np.eye(2))
# Sweeps from one draw to the next: several times the autocorrelation time of every quantity.
SAMPLERS = {
    "gibbs": (sb.CollapsedGibbs(), 20),
    "subset": (sb.CollapsedGibbs(subset=4), 40),
    "restricted": (sb.SplitMerge(subset=4, scans=1), 30),
    "sequential": (sb.SplitMerge(proposal="sequential", subset=4), 30),
    "blocked": (sb.BlockedGibbs(truncation=120), 60),
    "slice": (sb.Slice(), 60),
}
# Slices under a discount near 1 need more jumps than there is room for.
UNSUPPORTED = {
    ("blocked", "generalized gamma"),
    ("slice", "generalized gamma"),
    ("slice", "finite"),
    ("blocked", "finite mixtures"),
    ("slice", "finite mixtures"),
}

Law = Callable[[list[int]], float]


@dataclass(frozen=True)
class Case:
    """A process, its learned parameters drawn from their priors, and the law of partitions given them."""

    process: Process
    draw: Callable[[np.random.Generator], dict[str, float]]
    law: Callable[..., Law]


def _dirichlet(rate: float) -> Case:
    process = sb.DirichletProcess(sb.Gamma(2.0, rate))
    return Case(process, lambda rng: {"concentration": rng.gamma(2.0) / 1.5}, partitions.dirichlet)


CASES = {
    "dirichlet": _dirichlet(1.5),
    "pitman-yor": Case(sb.PitmanYor(0.4, concentration=0.7), lambda rng: {}, lambda: partitions.pitman_yor(0.4, 0.7)),
    "finite": Case(sb.FiniteDirichlet(3, concentration=2.0), lambda rng: {}, lambda: partitions.finite(3, 2.0)),
    "generalized gamma": Case(
        sb.NormalizedGeneralizedGamma(sb.Gamma(2.0, 1.5), sb.Beta(1.5, 2.5)),
        lambda rng: {"mass": rng.gamma(2.0) / 1.5, "discount": rng.beta(1.5, 2.5)},
        lambda mass, discount: partitions.generalized_gamma(mass, discount),
    ),
    # Large discounts, whose tails a truncation would change, are rare.
    "learned pitman-yor": Case(
        sb.PitmanYor(sb.Beta(2.0, 18.0), concentration=sb.Gamma(2.0, 1.5)),
        lambda rng: {"concentration": rng.gamma(2.0) / 1.5, "discount": rng.beta(2.0, 18.0)},
        lambda concentration, discount: partitions.pitman_yor(discount, concentration),
    ),
    "finite mixtures": Case(
        sb.MixtureOfFiniteMixtures(0.7, rate=1.5), lambda rng: {}, lambda: partitions.finite_mixtures(0.7, 1.5)
    ),
}


def ranks(case: Case, sampler: str, likelihood: Likelihood = LIKELIHOOD) -> dict[str, np.ndarray]:
    """Return the rank of each quantity among its draws, 0 to `DRAWS`, one for each replicate."""
    model = sb.Mixture(likelihood=likelihood, process=case.process)
    rng = np.random.default_rng(list(SAMPLERS).index(sampler))
    found: dict[str, list[int]] = {}
    for replicate in range(REPLICATES):
        learned = case.draw(rng)
        law = case.law(*learned.values())
        labels = partitions.draw_partition(law, N, rng)
        rows = MARGINAL.draw(labels, rng)
        chosen, thin = SAMPLERS[sampler]
        options = {"draws": DRAWS, "warmup": 5 * thin, "thin": thin, "chains": 1, "seed": replicate, "threads": 1}
        if isinstance(chosen, sb.BlockedGibbs) and isinstance(model.process, sb.FiniteDirichlet):
            chosen = sb.BlockedGibbs()
        trace = sb.sample(model, rows, chosen, init="single", progress=False, **options)
        truth = [*of_partition(labels), log_joint(law, labels, rows), *learned.values()]
        drawn = [[*of_partition(labelling)] for labelling in trace.partitions[0]]
        columns = [*np.transpose(drawn), trace.log_joint[0], *(trace.hyperparameters[name][0] for name in learned)]
        names = ["clusters", "squares", "log joint", *learned]
        for name, true_value, others in zip(names, truth, columns, strict=True):
            # Log joints of equal partitions differ by rounding only; such ties are broken at random.
            below, ties = (others < true_value - 1e-7).sum(), (abs(others - true_value) <= 1e-7).sum()
            found.setdefault(name, []).append(int(below + rng.integers(ties + 1)))
    return {name: np.array(values) for name, values in found.items()}


def of_partition(labels: np.ndarray) -> tuple[int, int]:
    """Return the number of clusters and the sum of squared sizes."""
    sizes = np.bincount(labels)
    return len(sizes), int((sizes**2).sum())


def log_joint(law: Law, labels: np.ndarray, rows: np.ndarray) -> float:
    """Return log p(X, partition | hyper-parameters)."""
    blocks = [rows[labels == label] for label in np.unique(labels)]
    return law([len(block) for block in blocks]) + sum(MARGINAL.log_m(block) for block in blocks)


def p_values(found: np.ndarray) -> Iterator[float]:
    """Yield those of the frequencies of ranks and of their mean."""
    counts = np.bincount(found, minlength=DRAWS + 1)
    yield stats.chisquare(counts).pvalue
    error = np.sqrt(((DRAWS + 1) ** 2 - 1) / 12 / len(found))
    yield 2 * stats.norm.sf(abs(found.mean() - DRAWS / 2) / error)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_ranks_are_uniform(case: str, sampler: str) -> None:
    if (sampler, case) in UNSUPPORTED:
        pytest.skip("the sampler does not support the process")
    found = {name: list(p_values(values)) for name, values in ranks(CASES[case], sampler).items()}
    assert min(map(min, found.values())) > LEVEL, found


@pytest.mark.long
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_another_prior_is_seen(sampler: str) -> None:
    """Negative control: the concentration has half the rate in the sampler that it was drawn with."""
    found = ranks(_dirichlet(0.75), sampler)
    assert min(p_values(found["concentration"])) < LEVEL


@pytest.mark.long
def test_another_likelihood_is_seen() -> None:
    """Negative control: clusters are drawn wider about the mean than the sampler takes them to be."""
    narrow = sb.Gaussian(mean=[0.0, 0.0], mean_precision=1.5, dof=5.0, scale=np.eye(2))
    found = ranks(CASES["dirichlet"], "gibbs", narrow)
    assert min(p_values(found["clusters"])) < LEVEL
