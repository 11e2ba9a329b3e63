"""The oracle itself, against SciPy, Monte Carlo, quadrature and brute force; nothing here touches the package."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp, xlogy

from oracles import engines, evidence
from oracles import variational as oracle
from oracles.models import Array, Likelihood, Process

SCALE = np.array([[2.0, 0.6], [0.6, 1.5]])
NORMAL_WISHART = oracle.NormalWishart(np.array([0.5, -1.0]), 0.4, 4.3, SCALE)
ZERO_MEAN = oracle.ZeroMeanWishart(3.7, SCALE)
MODELS: list[Likelihood] = [NORMAL_WISHART, ZERO_MEAN]
PROCESSES: list[Process] = [oracle.StickBreaking(1.7), oracle.FiniteSymmetricDirichlet(2.1)]

both_models = pytest.mark.parametrize("likelihood", MODELS, ids=["gaussian", "zero_mean"])
both_processes = pytest.mark.parametrize("process", PROCESSES, ids=["dirichlet_process", "finite"])


def problem(seed: int, n: int = 30, n_components: int = 3) -> tuple[Array, Array, Array]:
    """Rows, responsibilities, weights."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 2)) * [1.0, 2.0] + rng.choice([-2.0, 2.0], (n, 1))
    return rows, rng.dirichlet(np.ones(n_components), n), rng.choice([0.5, 1.0, 2.0], n)


def posterior(likelihood: Likelihood, seed: int = 1) -> Array:
    rows, responsibilities, _ = problem(seed)
    statistics = responsibilities.T @ likelihood.sufficient_statistics(rows)
    return np.asarray(likelihood.prior_natural + statistics[0])


def test_predictive_densities_are_students() -> None:
    rows, natural = problem(2)[0], posterior(NORMAL_WISHART)
    dof, precision, mean, scale = NORMAL_WISHART.decode(natural)
    student = stats.multivariate_t(mean, scale * (precision + 1) / (precision * (dof - 1)), dof - 1)
    np.testing.assert_allclose(NORMAL_WISHART.log_predictive(natural, rows), student.logpdf(rows), rtol=1e-11)
    natural = posterior(ZERO_MEAN)
    dof, scale = ZERO_MEAN.decode(natural)
    student = stats.multivariate_t(np.zeros(2), scale / (dof - 1), dof - 1)
    np.testing.assert_allclose(ZERO_MEAN.log_predictive(natural, rows), student.logpdf(rows), rtol=1e-11)


def test_expected_log_likelihood_against_monte_carlo() -> None:
    """5 standard errors at 3 rows: a false alarm has a probability below 2e-6, and the seed is fixed."""
    rng, rows, n_draws = np.random.default_rng(3), problem(3, n=3)[0], 40_000
    dof, precision, mean, scale = NORMAL_WISHART.decode(posterior(NORMAL_WISHART))
    precisions = stats.wishart.rvs(dof, np.linalg.inv(scale), size=n_draws, random_state=rng)
    factors = np.linalg.cholesky(np.linalg.inv(precisions) / precision)
    means = mean + np.einsum("mij,mj->mi", factors, rng.standard_normal((n_draws, 2)))
    log_determinants = np.linalg.slogdet(precisions)[1]
    for row, expected in zip(
        rows, NORMAL_WISHART.expected_log_likelihood(posterior(NORMAL_WISHART), rows), strict=True
    ):
        shift = row - means
        distance = np.einsum("mi,mij,mj->m", shift, precisions, shift)
        draws = 0.5 * (log_determinants - 2 * np.log(2 * np.pi) - distance)
        assert abs(draws.mean() - expected) < 5 * draws.std() / np.sqrt(n_draws)


@both_models
def test_kl_by_the_identity_of_exponential_families(likelihood: Likelihood) -> None:
    """<S, grad c> - KL = c(prior + S) - c(prior), with <S, grad c> read from the expected log-likelihood."""
    rows, responsibilities, _ = problem(4)
    natural = likelihood.prior_natural + responsibilities[:, 0] @ likelihood.sufficient_statistics(rows)
    expected = likelihood.expected_log_likelihood(natural, rows) - likelihood.log_base_measure(rows)
    gained = likelihood.log_normaliser(natural) - likelihood.log_normaliser(likelihood.prior_natural)
    assert responsibilities[:, 0] @ expected - likelihood.kl(natural) == pytest.approx(gained, rel=1e-11)


@both_models
def test_marginal_is_a_product_of_predictives(likelihood: Likelihood) -> None:
    rows, natural, total = problem(5, n=9)[0], likelihood.prior_natural, 0.0
    for row in rows:
        total += likelihood.log_predictive(natural, row[None])[0]
        natural = natural + likelihood.sufficient_statistics(row[None])[0]
    assert likelihood.log_marginal(rows) == pytest.approx(total, rel=1e-11)


def test_beta_expectations_by_quadrature() -> None:
    eta = np.array([[2.5, 3.5], [1.2, 0.9]])
    expected = oracle.StickBreaking(1.0).expected_log_weights(eta)

    def mean_of(function: object, parameters: Array) -> float:
        density = stats.beta(*parameters).pdf
        return float(integrate.quad(lambda v: density(v) * function(v), 0, 1, limit=200)[0])  # type: ignore[operator]

    first = mean_of(np.log, eta[0])
    second = mean_of(np.log, eta[1]) + mean_of(lambda v: np.log1p(-v), eta[0])
    np.testing.assert_allclose(expected, [first, second], rtol=1e-7)


@both_processes
def test_collapsed_process_is_its_optimum(process: Process) -> None:
    counts = np.array([4.0, 0.0, 2.5])
    eta = process.update(counts)
    best = counts @ process.expected_log_weights(eta) - process.kl(eta)
    assert best == pytest.approx(process.collapsed(counts), rel=1e-12)
    for factor in (0.9, 1.1):
        other = eta * factor
        assert counts @ process.expected_log_weights(other) - process.kl(other) < best


@both_processes
def test_expected_weights_by_monte_carlo(process: Process) -> None:
    """5 standard errors at 3 weights, fixed seed."""
    rng, eta, n_draws = np.random.default_rng(6), process.update(np.array([4.0, 1.0, 2.5])), 40_000
    if isinstance(process, oracle.StickBreaking):
        sticks = rng.beta(eta[:, 0], eta[:, 1], (n_draws, 3))
        draws = sticks * np.column_stack([np.ones(n_draws), np.cumprod(1 - sticks, 1)[:, :-1]])
    else:
        draws = rng.dirichlet(eta, n_draws)
    expected = process.expected_weights(eta)
    assert expected.sum() == pytest.approx(1.0, rel=1e-12)
    assert (np.abs(draws.mean(0) - expected[:-1]) < 5 * draws.std(0) / np.sqrt(n_draws)).all()


@pytest.mark.parametrize("sparsity", [1, 2, 3, 5, None])
def test_top_l_against_all_supports(sparsity: int | None) -> None:
    scores = np.random.default_rng(7).normal(0, 2, (20, 5))
    responsibilities = oracle.top_l_responsibilities(scores, sparsity)
    reached = (responsibilities * scores - xlogy(responsibilities, responsibilities)).sum(1)
    supports = [list(s) for s in itertools.combinations(range(5), sparsity or 5)]
    best = np.max([logsumexp(scores[:, support], axis=1) for support in supports], axis=0)
    np.testing.assert_allclose(reached, best, rtol=1e-12)
    assert ((responsibilities > 0).sum(1) <= (sparsity or 5)).all()


def test_top_l_ties_go_to_the_lower_index() -> None:
    responsibilities = oracle.top_l_responsibilities(np.zeros((1, 4)), 2)
    np.testing.assert_allclose(responsibilities, [[0.5, 0.5, 0.0, 0.0]])


def test_pair_gaps_are_lost_entropy() -> None:
    _, responsibilities, weights = problem(8)
    responsibilities[:10, 0] = 0.0
    responsibilities /= responsibilities.sum(1, keepdims=True)
    gaps, entropies = oracle.pair_gaps(responsibilities, weights), oracle.entropies(responsibilities, weights)
    for a, b in itertools.combinations(range(3), 2):
        merged = responsibilities[:, a] + responsibilities[:, b]
        lost = entropies[a] + entropies[b] + weights @ xlogy(merged, merged)
        assert gaps[a, b] == gaps[b, a] == pytest.approx(lost, rel=1e-10)


@both_models
@both_processes
def test_general_form_equals_collapsed_form(likelihood: Likelihood, process: Process) -> None:
    rows, responsibilities, weights = problem(9)
    mixture = oracle.Specification(likelihood, process)
    collapsed = oracle.collapsed_elbo(rows, responsibilities, mixture, weights)
    general = oracle.elbo_of_responsibilities(rows, responsibilities, mixture, weights)
    assert general == pytest.approx(collapsed, rel=1e-12)


@both_models
@both_processes
@pytest.mark.parametrize("sparsity", [1, 2, None])
def test_full_inference_never_loses(likelihood: Likelihood, process: Process, sparsity: int | None) -> None:
    rows, responsibilities, weights = problem(10)
    mixture = oracle.Specification(likelihood, process)
    trajectory = engines.fit_full(rows, responsibilities, mixture, 8, sparsity, weights)
    bounds = np.array([each.elbo for each in trajectory])[1 if sparsity else 0 :]
    assert (np.diff(bounds) >= -1e-10 * np.abs(bounds[1:])).all()


@both_models
def test_evidence_bounds_the_elbo(likelihood: Likelihood) -> None:
    rows, responsibilities, _ = problem(11, n=6)
    mixture = oracle.Specification(likelihood, oracle.StickBreaking(1.3))
    reached = engines.fit_full(rows, responsibilities, mixture, 30)[-1].elbo
    exact = evidence.log_evidence_dirichlet_process(rows, likelihood, 1.3)
    assert reached < exact < reached + 10
    finite = oracle.Specification(likelihood, oracle.FiniteSymmetricDirichlet(1.3))
    reached = engines.fit_full(rows, responsibilities, finite, 30)[-1].elbo
    assert reached < evidence.log_evidence_finite(rows, likelihood, 1.3, 3) < reached + 10


def test_ewens_probabilities_sum_to_one() -> None:
    sizes = [np.bincount(partition).tolist() for partition in evidence.set_partitions(6)]
    assert len(sizes) == 203  # the sixth Bell number
    assert logsumexp([evidence.log_ewens(sizes_of_blocks, 0.8) for sizes_of_blocks in sizes]) == pytest.approx(
        0.0, abs=1e-12
    )


def test_one_batch_memoized_is_full() -> None:
    rows, responsibilities, weights = problem(12)
    mixture = oracle.Specification(NORMAL_WISHART, oracle.StickBreaking(1.0))
    trajectory = engines.fit_full(rows, responsibilities, mixture, 4, sparsity=2, weights=weights)
    memo = engines.Memo(rows, responsibilities, mixture, [np.arange(len(rows))], sparsity=2, weights=weights)
    assert memo.elbo() == pytest.approx(trajectory[0].elbo, rel=1e-12)
    memo.order()
    for each in trajectory[1:]:
        memo.run([0])
        assert memo.elbo() == pytest.approx(each.elbo, rel=1e-12)


def test_memoized_bound_never_falls_once_every_batch_was_visited() -> None:
    rows, responsibilities, _ = problem(13)
    mixture = oracle.Specification(ZERO_MEAN, oracle.StickBreaking(1.0))
    memo = engines.Memo(rows, responsibilities, mixture, [np.arange(start, 30, 3) for start in range(3)], sparsity=2)
    bounds = []
    for batch in [0, 1, 2, 2, 0, 1, 1, 0, 2]:
        memo.visit(batch)
        bounds.append(memo.elbo())
    memo.order()
    bounds.append(memo.elbo())
    assert (np.diff(bounds[2:]) >= -1e-10 * abs(bounds[-1])).all()
    assert oracle.collapsed_elbo(rows, memo.responsibilities, mixture) == pytest.approx(bounds[-1], rel=1e-12)


@both_models
@both_processes
def test_predictive_density_integrates_to_one(likelihood: Likelihood, process: Process) -> None:
    rows, responsibilities, _ = problem(14)
    mixture = oracle.Specification(likelihood, process)
    state = oracle.global_step(rows, responsibilities, mixture)
    angle = np.linspace(-np.pi / 2, np.pi / 2, 801)[1:-1]
    axis, jacobian = np.tan(angle), (1 + np.tan(angle) ** 2) * (angle[1] - angle[0])
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    density = np.exp(oracle.mixture_log_predictive(grid, mixture, state)).reshape(len(axis), -1)
    assert jacobian @ density @ jacobian == pytest.approx(1.0, abs=1e-4)


def test_divergence_is_a_gap_of_log_likelihoods() -> None:
    """KL(N_n || N_j) = l(n | n) - l(n | j) with l the expected Gaussian log density, by Monte Carlo-free moments."""
    rng = np.random.default_rng(15)
    covariances = [np.eye(3) + factor @ factor.T for factor in rng.standard_normal((2, 3, 3))]
    means = rng.standard_normal((2, 3))

    def expected(mean: Array, covariance: Array) -> float:
        moment = covariances[0] + np.outer(means[0] - mean, means[0] - mean)
        return float(-0.5 * (np.linalg.slogdet(covariance)[1] + np.trace(np.linalg.solve(covariance, moment))))

    gap = expected(means[0], covariances[0]) - expected(means[1], covariances[1])
    divergence = oracle.gaussian_kl(means[0], covariances[0], means[1], covariances[1])
    assert divergence == pytest.approx(gap, rel=1e-12)


@both_models
def test_divergence_of_a_row_to_its_own_centre_is_zero(likelihood: Likelihood) -> None:
    assert isinstance(likelihood, oracle.NormalWishart | oracle.ZeroMeanWishart)
    rows = problem(16, n=5)[0]
    centres = [likelihood.prior_natural + statistics for statistics in likelihood.sufficient_statistics(rows)]
    divergence = oracle.kmeans_divergence(rows, likelihood, centres)
    np.testing.assert_allclose(np.diag(divergence), 0.0, atol=1e-12)
    assert (divergence > -1e-12).all()
    assert divergence.max() > 0.1
