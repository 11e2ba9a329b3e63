"""A Gamma prior on the mean precision of Gaussians: draws against quadrature over it, and what traces do with it."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import chi2, gamma

import stickbreak as sb
from oracles.partitions import GaussianMarginal, Posterior, canonical, dirichlet
from sampling.test_drawn_mixtures import REAL, check_density, sampled
from sampling.test_exact_posterior import POINTS, SAMPLERS, statistic

PSI = np.array([[1.0, 0.2], [0.2, 0.8]])
PRIOR = sb.Gamma(0.7, 2.0)
ROWS = POINTS[:5]
MODEL = sb.Mixture(
    likelihood=sb.Gaussian(mean=[0.5, 0.9], mean_precision=PRIOR, dof=4.0, scale=PSI),
    process=sb.DirichletProcess(0.8),
)


def posterior_at(value, rows=ROWS):
    return Posterior(GaussianMarginal(np.array([0.5, 0.9]), value, 4.0, PSI), dirichlet(0.8), rows)


@pytest.mark.parametrize("sampler", ["gibbs", "restricted", "tree-guided", "fresh trees", "blocked", "slice"])
@pytest.mark.one_in(6)
@pytest.mark.filterwarnings("ignore::stickbreak.TruncationWarning")
def test_draws_follow_the_posterior(sampler):
    logs, partitions = np.linspace(-12.0, 4.0, 120), posterior_at(1.0).partitions
    given = [posterior_at(np.exp(log)) for log in logs]
    # The density of the logarithm has the value as a factor.
    of_prior = gamma.logpdf(np.exp(logs), PRIOR.shape, scale=1 / PRIOR.rate) + logs
    joint = of_prior[:, None] + [[one.log_joint(labels) for labels in partitions] for one in given]
    joint = np.exp(joint - logsumexp(joint))
    trace = sb.sample(MODEL, ROWS, SAMPLERS[sampler], init="single", draws=2000, warmup=50, thin=16, chains=1, seed=3)
    exact = SimpleNamespace(partitions=partitions, probabilities=joint.sum(0))
    found, degrees = statistic(trace, exact)
    assert found < chi2.ppf(1 - 1e-6, degrees), (found, degrees)
    drawn = np.log(trace.hyperparameters["mean_precision"][0])
    many = trace.n_clusters[0] > 2
    few = [max(labels) < 2 for labels in exact.partitions]
    for values, expected in [
        (drawn, joint.sum(1) @ logs),
        (drawn**2, joint.sum(1) @ logs**2),
        (drawn * ~many, joint[:, few].sum(1) @ logs),
    ]:
        # 4.9 standard errors: once in a million.
        assert abs(values.mean() - expected) < 4.9 * values.std() / np.sqrt(2000 / 1.5)


@pytest.mark.parametrize("sampler", ["gibbs", "slice"])
def test_values_of_draws_are_those_at_their_precision(sampler):
    """Joint probabilities, predictive densities and predicted clusters, each from scratch."""
    trace = sb.sample(MODEL, ROWS, SAMPLERS[sampler], draws=30, warmup=5, chains=1)
    values = trace.hyperparameters["mean_precision"][0]
    new, densities = POINTS[5], []
    for labels, value, log_joint in zip(trace.partitions[0], values, trace.log_joint[0], strict=True):
        before, after = posterior_at(value), posterior_at(value, POINTS)
        assert log_joint == pytest.approx(before.log_joint(canonical(labels.tolist())), abs=1e-9)
        joined = [after.log_joint((*labels.tolist(), label)) for label in range(labels.max() + 2)]
        densities.append(logsumexp(joined) - log_joint)
    expected = logsumexp(densities) - np.log(30)
    assert trace.log_predictive(new[None], threads=1)[0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", [sb.Gaussian, sb.DiagonalGaussian, sb.SphericalGaussian])
def test_densities_and_parameters_use_it(kind):
    trace = sampled(kind(mean_precision=sb.Gamma(0.5, 5.0)), REAL)
    assert isinstance(trace.model.likelihood.mean_precision, sb.Gamma)
    check_density(trace, REAL[::6])
    assert len(trace.sample_parameters(threads=1)["weights"]) == trace.n_clusters.sum()


def test_a_precision_has_no_unit():
    """Powers of two, so that nothing is rounded."""
    one = sb.Gaussian(mean=[0.5, 0.9], mean_precision=PRIOR, dof=4.0, scale=PSI)
    other = sb.Gaussian(mean=[8.0, 14.4], mean_precision=PRIOR, dof=4.0, scale=256 * PSI)
    traces = [sampled(one, REAL, draws=20), sampled(other, 16 * REAL, draws=20)]
    np.testing.assert_array_equal(traces[0].partitions, traces[1].partitions)
    drawn = [trace.hyperparameters["mean_precision"] for trace in traces]
    np.testing.assert_allclose(drawn[0], drawn[1], rtol=1e-9)
    assert traces[1].model.likelihood.mean_precision == PRIOR


def test_files_checkpoints_and_threads_keep_it(tmp_path):
    path = tmp_path / "run.checkpoint"
    options = {"draws": 12, "warmup": 4, "chains": 2, "seed": 7}
    for sampler in (sb.CollapsedGibbs(), sb.Slice()):
        whole = sb.sample(MODEL, REAL, sampler, threads=1, **options)
        again = sb.sample(MODEL, REAL, sampler, threads=3, **options)
        np.testing.assert_array_equal(whole.partitions, again.partitions)
        np.testing.assert_array_equal(*(t.hyperparameters["mean_precision"] for t in (whole, again)))
        sb.sample(MODEL, REAL, sampler, **{**options, "draws": 5}, checkpoint=sb.Checkpoint(path, every_seconds=0))
        resumed = sb.sample(MODEL, REAL, sampler, **options, checkpoint=sb.Checkpoint(path))
        np.testing.assert_array_equal(whole.log_joint, resumed.log_joint)
        path.unlink()
    whole.save(tmp_path / "trace.stickbreak")
    loaded = sb.load(tmp_path / "trace.stickbreak")
    assert loaded.model == whole.model
    np.testing.assert_array_equal(loaded.log_predictive(REAL), whole.log_predictive(REAL))


def test_a_prior_sample_has_it():
    drawn = [sb.sample_prior(MODEL, 3, seed=seed).hyperparameters["mean_precision"] for seed in range(400)]
    mean, deviation = PRIOR.shape / PRIOR.rate, PRIOR.shape**0.5 / PRIOR.rate
    assert abs(np.mean(drawn) - mean) < 4.9 * deviation / 20


def test_what_is_left_open_is_estimated():
    model = sb.Mixture(likelihood=sb.Gaussian(mean_precision=PRIOR), process=sb.DirichletProcess())
    trace = sb.sample(model, REAL, draws=5, warmup=2, chains=1)
    assert trace.model.likelihood.mean_precision == PRIOR
    assert trace.model.likelihood.scale is not None


def test_others_refuse_it_by_name():
    for call in (
        lambda: sb.fit(MODEL, REAL),
        lambda: sb.hierarchy(MODEL, REAL),
        lambda: sb.stability(MODEL, REAL),
    ):
        with pytest.raises(sb.NotSupported, match="Gamma prior on the mean_precision of Gaussian"):
            call()
    with pytest.raises(sb.InvalidType, match="mean_precision"):
        sb.Gaussian(mean_precision=sb.Beta(1, 1))
    with pytest.raises(sb.InvalidArgument, match="mean_precision"):
        sb.Gaussian(mean_precision=[2.0, 1.0])


def test_prior_rows_that_are_too_far_away_name_their_precision():
    likelihood = sb.Gaussian(mean=[0.0, 0.0], dof=5, scale=np.eye(2), mean_precision=sb.Gamma(0.001, 0.001))
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess())
    with pytest.raises(sb.NumericalError, match=r"the drawn mean_precision of .* too far away; choose a prior"):
        sb.sample_prior(model, 30, seed=0)


def test_densities_far_from_all_rows_use_it():
    """There they are those of a new cluster. The clusters are far apart, so the precision is far below its prior's."""
    far = np.repeat([[-300.0, 0.0], [300.0, 0.0], [0.0, 300.0]], 8, axis=0) + REAL
    likelihood = sb.Gaussian(mean=[0.0, 0.0], mean_precision=sb.Gamma(1.0, 1.0), dof=4.0, scale=PSI)
    trace = sampled(likelihood, far, init=np.repeat([0, 1, 2], 8))
    assert trace.hyperparameters["mean_precision"].mean() < 0.01
    check_density(trace, [[0.0, 0.0], [150.0, 150.0], [-900.0, 400.0]])
