"""Long chains on the tree-guided paper's toy data against the paper's own program."""

import numpy as np
import pytest

import stickbreak as sb

# Long runs of the authors' program: mean and its standard error.
N_CLUSTERS, LOG_JOINT = (13.62, 0.02), (-1589.3, 0.3)
SAMPLERS = {
    "gibbs": sb.CollapsedGibbs(),
    "subset": sb.CollapsedGibbs(subset=650),
    "restricted": sb.SplitMerge(proposal="restricted"),
    "sequential": sb.SplitMerge(proposal="sequential"),
    "tree-guided": sb.TreeGuided(),
}


def paper_scale(rows):
    """Return the scale of the base measure in the paper: as the covariance, with a determinant of 1/10."""
    covariance = np.cov(rows.T)
    return covariance / np.sqrt(10 * np.linalg.det(covariance))


@pytest.mark.parametrize(
    "name",
    [
        *(pytest.param(name, marks=pytest.mark.slow) for name in SAMPLERS if name != "tree-guided"),
        # As long as all others together; the next test has shorter chains of it.
        pytest.param("tree-guided", marks=pytest.mark.long),
    ],
)
def test_every_sampler_agrees_with_the_reference(data_directory, name):
    """Four standard errors of the difference: each check fails for one seed in 16,000."""
    rows = np.load(data_directory / "nrmm" / "toy.npz")["X"].astype(float)
    likelihood = sb.Gaussian(mean=rows.mean(axis=0), mean_precision=0.1, dof=8.0, scale=paper_scale(rows))
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(1.0))
    # Steps on a random half of the rows need longer to leave the start.
    longer = {"warmup": 2000, "thin": 4} if name == "subset" else {"warmup": 1000}
    trace = sb.sample(model, rows, SAMPLERS[name], draws=6000, chains=2, seed=2, threads=1, **longer)
    for quantity, (expected, error) in (("n_clusters", N_CLUSTERS), ("log_joint", LOG_JOINT)):
        drawn = getattr(trace, quantity)
        standard_error = drawn.std() / np.sqrt(trace.ess(quantity))
        assert abs(drawn.mean() - expected) < 4 * np.hypot(standard_error, error), (
            quantity,
            drawn.mean(),
            standard_error,
        )
        assert trace.rhat(quantity) < 1.02


@pytest.mark.parametrize(
    "init",
    [
        *(pytest.param(start, marks=pytest.mark.slow) for start in ("single", "ibhc")),
        # These take minutes.
        *(pytest.param(start, marks=pytest.mark.long) for start in ("singletons", "one-on-top")),
    ],
)
def test_tree_guided_chains_agree_from_every_start(data_directory, init):
    """Four standard errors of the difference: each check fails for one seed in 16,000."""
    rows = np.load(data_directory / "nrmm" / "toy.npz")["X"].astype(float)
    likelihood = sb.Gaussian(mean=rows.mean(axis=0), mean_precision=0.1, dof=8.0, scale=paper_scale(rows))
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(1.0))
    trace = sb.sample(model, rows, sb.TreeGuided(), draws=3000, warmup=300, chains=2, init=init, seed=4, threads=1)
    for quantity, (expected, error) in (("n_clusters", N_CLUSTERS), ("log_joint", LOG_JOINT)):
        drawn = getattr(trace, quantity)
        standard_error = drawn.std() / np.sqrt(trace.ess(quantity))
        assert abs(drawn.mean() - expected) < 4 * np.hypot(standard_error, error), (
            quantity,
            drawn.mean(),
            standard_error,
        )
