"""Simulation-based calibration of samplers under overdispersed counts and under blocks of columns.

As in `test_calibration`, but rows come from `sample_prior`. Log joints of what it drew come from the oracles of the
likelihoods, so a mistake that a sampler shares with `sample_prior` changes their ranks.
"""

from typing import Any

import numpy as np
import pytest
from test_calibration import DRAWS, SAMPLERS, of_partition, p_values

import stickbreak as sb
from kinds import oracle_of
from oracles import partitions

# The tail that a truncation cuts off is too small to be seen here.
pytestmark = pytest.mark.filterwarnings("ignore::stickbreak.TruncationWarning")

N, REPLICATES = 8, 1000
# False alarms: 1e-4 for all checks of this file together: two statistics of each rank, 40 ranks.
LEVEL = 1e-4 / 80
USED = {name: SAMPLERS[name] for name in ("gibbs", "restricted", "blocked", "slice")}
USED["tree-guided"] = (sb.TreeGuided(global_moves=2, subset=4, scans=1), 30)


def _counts(rate: float = 2.0) -> sb.NegativeBinomial:
    return sb.NegativeBinomial([2.0, 0.7], shape=[3.0, 2.0], rate=rate)


def _blocks(rate: float = 0.5) -> sb.Columns:
    """Blocks whose columns alternate, one of them in another order than in the rows."""
    return sb.Columns(
        {
            (3, 0): sb.Gaussian(mean=[0.0, 1.0], mean_precision=0.3, dof=5.0, scale=[[1.0, 0.4], [0.4, 2.0]]),
            (1,): sb.Poisson([1.5], rate=rate),
            (2,): sb.Categorical([0.5], levels=[3]),
        }
    )


LIKELIHOODS = {"negative binomial": _counts, "columns": _blocks}


def _model(likelihood: Any, rate: float = 1.5) -> sb.Mixture:
    return sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(sb.Gamma(2.0, rate)))


def ranks(drawn_from: sb.Mixture, sampler: str, sampled: sb.Mixture | None = None) -> dict[str, np.ndarray]:
    """Return the rank of each quantity among its draws, 0 to `DRAWS`, one for each replicate."""
    model = sampled or drawn_from
    marginal = partitions.ConjugateMarginal(oracle_of(model).likelihood)
    chosen, thin = USED[sampler]
    rng = np.random.default_rng(list(USED).index(sampler))
    found: dict[str, list[int]] = {}
    for replicate in range(REPLICATES):
        first = sb.sample_prior(drawn_from, N, seed=replicate)
        options: dict[str, Any] = {"draws": DRAWS, "warmup": 5 * thin, "thin": thin, "chains": 1, "threads": 1}
        seed = REPLICATES + replicate
        trace = sb.sample(model, first.rows, chosen, init="single", progress=False, seed=seed, **options)
        concentration = first.hyperparameters["concentration"]
        blocks = [first.rows[first.labels == label] for label in np.unique(first.labels)]
        of_partitions = partitions.dirichlet(concentration)([len(block) for block in blocks])
        truth = [*of_partition(first.labels), of_partitions + sum(map(marginal.log_m, blocks)), concentration]
        drawn = np.transpose([[*of_partition(labels)] for labels in trace.partitions[0]])
        columns = [*drawn, trace.log_joint[0], trace.hyperparameters["concentration"][0]]
        names = ["clusters", "squares", "log joint", "concentration"]
        for name, true_value, others in zip(names, truth, columns, strict=True):
            # Log joints of equal partitions differ by rounding only; such ties are broken at random.
            below, ties = (others < true_value - 1e-7).sum(), (abs(others - true_value) <= 1e-7).sum()
            found.setdefault(name, []).append(int(below + rng.integers(ties + 1)))
    return {name: np.array(values) for name, values in found.items()}


@pytest.mark.long
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("sampler", USED)
def test_ranks_are_uniform(likelihood: str, sampler: str) -> None:
    found = ranks(_model(LIKELIHOODS[likelihood]()), sampler)
    assert min(min(p_values(values)) for values in found.values()) > LEVEL, found


@pytest.mark.long
@pytest.mark.parametrize("sampler", [name for name in USED if name != "blocked"])
def test_another_prior_is_seen(sampler: str) -> None:
    """Negative control: the concentration has half the rate in the sampler that it was drawn with.

    Blocked sampling has this control in `test_calibration`, and takes longest.
    """
    found = ranks(_model(_blocks()), sampler, _model(_blocks(), rate=0.75))
    assert min(p_values(found["concentration"])) < LEVEL


@pytest.mark.long
@pytest.mark.parametrize(("likelihood", "rate"), [("negative binomial", 8.0), ("columns", 2.0)])
def test_another_likelihood_is_seen(likelihood: str, rate: float) -> None:
    """Negative control: counts are drawn larger than the sampler takes them to be."""
    found = ranks(_model(LIKELIHOODS[likelihood]()), "gibbs", _model(LIKELIHOODS[likelihood](rate)))
    assert min(p_values(found["log joint"])) < LEVEL
