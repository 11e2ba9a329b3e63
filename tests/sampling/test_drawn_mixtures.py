"""Weights, parameters and densities at draws: against predictive densities, closed posteriors and each other."""

import numpy as np
import pytest
from scipy import sparse, stats

import stickbreak as sb

RNG = np.random.default_rng(0)
CENTRES = np.repeat([[-2.0, 0.0], [2.0, 1.0]], 12, axis=0)
REAL = CENTRES + RNG.normal(size=(24, 2)) * [1.0, 0.3]
COUNTS = RNG.poisson(np.repeat([[3.0, 1.0, 6.0], [9.0, 4.0, 1.0]], 12, axis=0)).astype(float)
FLAGS = (RNG.random((24, 4)) < np.repeat([[0.2, 0.8, 0.5, 0.1], [0.9, 0.3, 0.5, 0.6]], 12, axis=0)).astype(float)
CODES = np.repeat([[0, 2], [1, 0]], 12, axis=0) + RNG.integers(0, 2, size=(24, 2))
WIDE = np.column_stack([REAL * [1000.0, 0.01], np.full(24, 7.0), REAL.sum(axis=1)])

LIKELIHOODS = {
    "Gaussian": (sb.Gaussian(), REAL),
    "Gaussian, float32": (sb.Gaussian(), REAL.astype(np.float32)),
    "ZeroMeanGaussian": (sb.ZeroMeanGaussian(), REAL),
    "DiagonalGaussian": (sb.DiagonalGaussian(), REAL),
    "SphericalGaussian": (sb.SphericalGaussian(), REAL),
    "KnownCovarianceGaussian": (sb.KnownCovarianceGaussian(covariance=np.eye(2)), REAL),
    "Multinomial": (sb.Multinomial(), COUNTS),
    "Multinomial, sparse": (sb.Multinomial(), sparse.csr_array(COUNTS)),
    "Poisson": (sb.Poisson(), COUNTS),
    "Bernoulli": (sb.Bernoulli(), FLAGS),
    "Categorical": (sb.Categorical(), CODES),
}
PROCESSES = {
    "DirichletProcess": sb.DirichletProcess(2.0),
    "learned": sb.DirichletProcess(sb.Gamma(2.0, 2.0)),
    "PitmanYor": sb.PitmanYor(0.4, concentration=0.5),
    "FiniteDirichlet": sb.FiniteDirichlet(6, concentration=3.0),
    "NormalizedGeneralizedGamma": sb.NormalizedGeneralizedGamma(1.0, 0.4),
    "PitmanYor, learned": sb.PitmanYor(sb.Beta(1.0, 2.0), concentration=sb.Gamma(2.0, 2.0)),
    "MixtureOfFiniteMixtures": sb.MixtureOfFiniteMixtures(1.0, rate=2.0),
}


def sampled(likelihood=LIKELIHOODS["Gaussian"][0], data=REAL, process=PROCESSES["DirichletProcess"], **options):
    model = sb.Mixture(likelihood=likelihood, process=process)
    settings = {"draws": 400, "warmup": 50, "chains": 2, "threads": 1}
    return sb.sample(model, data, **{**settings, **options})


def check_density(trace, new):
    """The mean of the density is the predictive density: within 4.5 standard errors of the draws of components."""
    each = np.exp(trace._log_densities(*trace._whole("density"), trace._new_rows(new, trace._whole("")[1]), 3, 1))
    band = trace.density(new, level=0.8, seed=3, threads=1)
    np.testing.assert_allclose(band.mean, each.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose([band.lower, band.upper], np.quantile(each, [0.1, 0.9], axis=0), rtol=1e-9)
    # Partitions are the same in both, so only the components' randomness counts; it is at most that of the densities.
    error = each.std(axis=0) / len(each) ** 0.5
    assert (np.abs(band.mean - np.exp(trace.log_predictive(new, threads=1))) < 4.5 * error).all()


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_mean_density_is_the_predictive_density(name):
    likelihood, data = LIKELIHOODS[name]
    check_density(sampled(likelihood, data), data[::6])


@pytest.mark.parametrize("name", PROCESSES)
def test_so_it_is_under_every_process(name):
    check_density(sampled(process=PROCESSES[name]), [[-2.0, 0.0], [0.0, 0.5], [3.0, 1.5]])


def test_units_and_columns_without_variance_are_heeded():
    with pytest.warns(sb.SupportWarning):
        trace = sampled(data=WIDE)
    check_density(trace, WIDE[::6])
    off = WIDE[:2] + np.array([0.0, 0.0, 1.0, 0.0])
    assert (trace.density(off, threads=1).mean == 0.0).all()
    drawn = trace.sample_parameters(threads=1)
    assert drawn["mean"].shape[1:] == (4,)
    np.testing.assert_allclose(drawn["mean"][:, 2], 7.0)
    np.testing.assert_allclose(drawn["covariance"][:, 2], 0.0, atol=1e-12)


def test_the_pointwise_log_likelihood_is_the_log_density_of_each_row():
    trace = sampled(draws=30)
    found = trace.log_likelihood(seed=5, threads=1)
    assert found.shape == (2, 30, 24)
    band = trace.density(REAL, seed=5, threads=1)
    np.testing.assert_allclose(np.exp(found).mean(axis=(0, 1)), band.mean, rtol=1e-12)


def test_parameters_follow_their_posterior():
    """Two clusters far apart: every draw has the same partition, and parameters the closed posterior given it."""
    data = np.concatenate([RNG.normal(-50.0, size=(15, 1)), RNG.normal(50.0, size=(9, 1))])
    likelihood = sb.KnownCovarianceGaussian(covariance=[[2.0]], mean=[1.0], mean_precision=0.5)
    trace = sampled(likelihood, data, draws=500, init=[0] * 15 + [1] * 9)
    drawn = trace.sample_parameters(2, seed=2, threads=1)
    assert drawn["weights"].shape == (1000, 2)
    for k, rows in enumerate((data[:15], data[15:])):
        # The prior has the precision 0.5 / 2, a row 1 / 2.
        precision = (0.5 + len(rows)) / 2.0
        mean = (0.5 * 1.0 + rows.sum()) / (0.5 + len(rows))
        assert stats.kstest(drawn["mean"][:, k, 0], stats.norm(mean, precision**-0.5).cdf).pvalue > 1e-4
        # Weights under the concentration 2 are Dirichlet (15, 9, 2).
        assert stats.kstest(drawn["weights"][:, k], stats.beta(len(rows), 26 - len(rows)).cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_shapes_and_labels_are_those_of_the_draws(name):
    likelihood, data = LIKELIHOODS[name]
    trace = sampled(likelihood, data, draws=20)
    every = trace.sample_parameters(seed=1, threads=1)
    numbers = trace.n_clusters
    assert len(every["weights"]) == numbers.sum()
    np.testing.assert_array_equal(np.bincount(every["chain"] * 20 + every["draw"]), numbers.ravel())
    assert (every["cluster"] < numbers[every["chain"], every["draw"]]).all()
    k = int(numbers[0, 0])
    some = trace.sample_parameters(k, seed=1, threads=1)
    assert set(some) == set(every)
    assert len(some["chain"]) == (numbers == k).sum()
    for parameter, values in some.items():
        expected = every[parameter].shape[1:]
        assert values.shape == (len(some["chain"]), *(() if parameter in ("chain", "draw") else (k, *expected)))
        assert np.isfinite(values).all()
    assert (some["weights"].sum(axis=1) < 1.0).all()


def test_seeds_and_threads():
    trace = sampled(draws=20)
    one, same, other = (
        trace.sample_parameters(seed=seed, threads=threads) for seed, threads in ((1, 1), (1, 3), (2, 1))
    )
    for name in one:
        np.testing.assert_array_equal(one[name], same[name])
    assert (one["weights"] != other["weights"]).all()
    np.testing.assert_array_equal(trace.log_likelihood(threads=1), trace.log_likelihood(threads=3))


def test_arviz_compares_models_by_the_log_likelihood():
    arviz = pytest.importorskip("arviz")
    trace = sampled(draws=100)
    found = trace.to_arviz(log_likelihood=True)
    np.testing.assert_array_equal(np.asarray(found.log_likelihood["rows"]), trace.log_likelihood())
    assert np.isfinite(
        float(arviz.loo(found).elpd_loo if hasattr(arviz.loo(found), "elpd_loo") else arviz.loo(found).elpd)
    )
    assert "log_likelihood" not in dir(trace.to_arviz()) or not hasattr(trace.to_arviz(), "log_likelihood")


@pytest.mark.parametrize(
    ("method", "options", "argument"),
    [
        ("sample_parameters", {"k": 0}, "k"),
        ("sample_parameters", {"k": 24}, "k"),
        ("sample_parameters", {"seed": 1.5}, "seed"),
        ("density", {"X": [[0.0]]}, "X"),
        ("density", {"X": [[np.nan, 0.0]]}, "X"),
        ("density", {"X": REAL, "level": 2.0}, "level"),
        ("log_likelihood", {"threads": 0}, "threads"),
        ("to_arviz", {"log_likelihood": "yes"}, "log_likelihood"),
    ],
)
def test_bad_arguments_are_named(method, options, argument):
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        getattr(sampled(draws=5, warmup=0), method)(**options)
    assert caught.value.argument == argument


def test_what_needs_all_labels_says_so():
    trace = sampled(draws=5, warmup=0, keep_rows=[0, 1])
    for method in (trace.sample_parameters, trace.log_likelihood, lambda: trace.density(REAL)):
        with pytest.raises(sb.NotSupported, match="keep_rows=None"):
            method()


# --- prior predictive ---

GIVEN = sb.Gaussian(mean=[1.0, -2.0], mean_precision=0.5, dof=6.0, scale=[[2.0, 0.5], [0.5, 1.0]])


def test_a_row_of_the_prior_has_the_base_density():
    """The first row of many draws is Student t: m(x) has the mean, and moments of the base measure."""
    rows = np.array([sb.sample_prior(sb.Mixture(likelihood=GIVEN), 1, seed=seed).rows[0] for seed in range(2000)])
    # t with dof - D + 1 degrees of freedom and the scale B (1 + 1 / kappa) / (dof - D + 1).
    for column, (centre, scale) in enumerate(((1.0, 2.0), (-2.0, 1.0))):
        law = stats.t(5.0, centre, (scale * 3.0 / 5.0) ** 0.5)
        assert stats.kstest(rows[:, column], law.cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", PROCESSES)
def test_partitions_of_the_prior_have_their_law(name):
    """How often two rows are together, and how far two rows of one cluster are from each other."""
    model = sb.Mixture(likelihood=GIVEN, process=PROCESSES[name])
    drawn = [sb.sample_prior(model, 2, seed=seed) for seed in range(3000)]
    together = np.array([each.labels[0] == each.labels[1] for each in drawn])
    trace = sb.sample(model, [[0.0, 0.0]], draws=1, warmup=0, chains=1, threads=1)
    expected = {"DirichletProcess": 1 / 3, "PitmanYor": 0.6 / 1.5, "FiniteDirichlet": 1.5 / 4.0}
    if name in expected:
        error = (expected[name] * (1 - expected[name]) / len(drawn)) ** 0.5
        assert abs(together.mean() - expected[name]) < 4.5 * error
    assert trace.n_clusters.item() == 1
    differences = np.array([np.diff(each.rows[:, 0])[0] for each in drawn])
    # Given its covariance the difference of two rows is normal, so it is t with dof - D + 1 degrees of freedom.
    law = stats.t(5.0, 0.0, (2.0 * 2.0 / 5.0) ** 0.5)
    assert stats.kstest(differences[together], law.cdf).pvalue > 1e-4


def test_learned_parameters_are_drawn_from_their_prior():
    model = sb.Mixture(likelihood=GIVEN, process=sb.DirichletProcess(sb.Gamma(2.0, 4.0)))
    drawn = [sb.sample_prior(model, 1, seed=seed).hyperparameters["concentration"] for seed in range(1000)]
    assert stats.kstest(drawn, stats.gamma(2.0, scale=0.25).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("likelihood", "options", "argument"),
    [
        (sb.Gaussian(), {}, "mean"),
        (sb.Gaussian(mean=[0.0, 0.0]), {}, "mean_precision"),
        (GIVEN, {"n_columns": 3}, "n_columns"),
        (GIVEN, {"n": 0}, "n"),
        (GIVEN, {"seed": -1}, "seed"),
        (sb.Poisson(shape=1.0, rate=1.0), {}, "n_columns"),
        (sb.Multinomial(pseudo_counts=1.0), {"n_columns": 3}, "model"),
        (sb.SphericalGaussian(base="product"), {"n_columns": 3}, "likelihood"),
    ],
)
def test_models_that_do_not_describe_rows_are_refused(likelihood, options, argument):
    with pytest.raises((sb.InvalidArgument, sb.InvalidType, sb.NotSupported)) as caught:
        sb.sample_prior(sb.Mixture(likelihood=likelihood), **{"n": 5, **options})
    assert caught.value.argument == argument


@pytest.mark.parametrize("likelihood", [sb.Poisson(shape=2.0, rate=1.0), sb.Bernoulli(successes=1.0, failures=1.0)])
def test_a_sampler_takes_rows_of_the_prior(likelihood):
    drawn = sb.sample_prior(sb.Mixture(likelihood=likelihood), 20, n_columns=3, seed=1)
    trace = sampled(likelihood, drawn.rows, draws=5)
    assert trace.partitions.shape[-1] == len(drawn.labels) == 20
