"""Draws against the exact posterior of all partitions of a few rows.

Each test has a fixed seed. Chi-squared statistics are compared with the quantile of 1 - 1e-6 of their law, so that all
of them together give a false alarm for fewer than one choice of seeds in 10,000.
"""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import betaln
from scipy.stats import chi2

import stickbreak as sb
from kinds import oracle_of
from oracles.partitions import (
    ConjugateMarginal,
    GaussianMarginal,
    MultinomialMarginal,
    Posterior,
    canonical,
    dirichlet,
    finite,
    finite_mixtures,
    generalized_gamma,
    pitman_yor,
)

POINTS = np.array([[0.1, 0.4], [-0.6, 0.2], [2.1, 1.7], [1.6, 2.4], [0.9, 1.0], [-0.2, 2.0]])
WORDS = np.array([[3, 0, 1, 0], [2, 1, 0, 0], [0, 2, 2, 1], [0, 0, 1, 3], [1, 1, 1, 0], [0, 0, 0, 2]], dtype=float)
BETA = np.array([0.4, 0.7, 1.0, 0.5])

PROCESSES = {
    "dirichlet": (sb.DirichletProcess(0.8), dirichlet(0.8)),
    "pitman-yor": (sb.PitmanYor(0.4, concentration=0.5), pitman_yor(0.4, 0.5)),
    "pitman-yor below 0": (sb.PitmanYor(0.6, concentration=-0.3), pitman_yor(0.6, -0.3)),
    "generalized gamma": (sb.NormalizedGeneralizedGamma(0.7, 0.5), generalized_gamma(0.7, 0.5)),
    "finite": (sb.FiniteDirichlet(3, concentration=1.5), finite(3, 1.5)),
    "finite mixtures": (sb.MixtureOfFiniteMixtures(0.7, rate=1.5), finite_mixtures(0.7, 1.5)),
}
SAMPLERS = {
    "gibbs": sb.CollapsedGibbs(),
    "subset": sb.CollapsedGibbs(subset=3),
    "restricted": sb.SplitMerge(scans=1, subset=1),
    "sequential": sb.SplitMerge(proposal="sequential", subset=1),
    "tree-guided": sb.TreeGuided(global_moves=2, subset=1),
    "fresh trees": sb.TreeGuided(global_moves=2, subset=1, trees="fresh", local="guided", evenness="max/n"),
    "blocked": sb.BlockedGibbs(),
    "slice": sb.Slice(),
}
# Under a discount of 0.5 a long chain needs too many jumps in some sweep; `test_slices_of_jumps` has a smaller one.
UNSUPPORTED = {
    ("blocked", "generalized gamma"),
    ("slice", "generalized gamma"),
    ("slice", "finite"),
    ("blocked", "finite mixtures"),
    ("slice", "finite mixtures"),
}


def gaussian():
    psi = np.array([[1.0, 0.2], [0.2, 0.8]])
    likelihood = sb.Gaussian(mean=[0.5, 0.9], mean_precision=0.1, dof=4.0, scale=psi)
    return likelihood, GaussianMarginal(np.array([0.5, 0.9]), 0.1, 4.0, psi), POINTS


def multinomial():
    return sb.Multinomial(pseudo_counts=BETA), MultinomialMarginal(BETA), WORDS


def columns():
    """A Gaussian whose columns are apart and turned, beside two blocks of the same likelihood."""
    counts = sb.NegativeBinomial([2.0], shape=[1.5], rate=0.4)
    blocks = {(3, 0): gaussian()[0], (1,): counts, (2,): counts}
    likelihood = sb.Columns(blocks | {(4,): sb.Categorical([0.5], levels=[3])})
    marginal = ConjugateMarginal(oracle_of(sb.Mixture(likelihood=likelihood)).likelihood)
    return likelihood, marginal, np.column_stack([POINTS[:, 1], WORDS[:, [0, 3]], POINTS[:, 0], [0, 0, 1, 2, 0, 1]])


LIKELIHOODS = {"gaussian": gaussian, "multinomial": multinomial, "columns": columns}


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.one_in(3)
def test_log_joint_is_that_of_the_oracle(likelihood, process):
    specified, marginal, rows = LIKELIHOODS[likelihood]()
    law, log_prior = PROCESSES[process]
    exact = Posterior(marginal, log_prior, rows)
    # Dense, sparse where that is possible, far from zero and in other units.
    data = [rows] if likelihood != "multinomial" else [rows, sparse.csr_array(rows), rows.astype(np.float32)]
    for each in data:
        trace = sb.sample(sb.Mixture(likelihood=specified, process=law), each, draws=300, warmup=0, chains=1)
        for labels, found in zip(trace.partitions[0], trace.log_joint[0], strict=True):
            assert tuple(labels) == canonical(labels)
            assert found == pytest.approx(exact.log_joint(labels), abs=1e-9)
        assert (trace.n_clusters[0] == trace.partitions[0].max(axis=1) + 1).all()


def test_log_joint_has_the_units_of_the_data():
    likelihood, _, rows = gaussian()
    trace = sb.sample(sb.Mixture(likelihood=likelihood), rows, draws=20, warmup=0, chains=1)
    factors = np.array([1e5, 3e-4])
    scaled = sb.Gaussian(
        mean=factors * likelihood.mean + 7.0,
        mean_precision=0.1,
        dof=4.0,
        scale=likelihood.scale * np.outer(factors, factors),
    )
    other = sb.sample(sb.Mixture(likelihood=scaled), factors * rows + 7.0, draws=20, warmup=0, chains=1)
    assert (other.partitions == trace.partitions).all()
    assert other.log_joint == pytest.approx(trace.log_joint - rows.shape[0] * np.log(factors).sum(), abs=1e-6)


def statistic(trace, exact):
    """Return the chi-squared statistic of the visits of all partitions, and its degrees of freedom."""
    visits = dict.fromkeys(exact.partitions, 0)
    for labels in trace.partitions.reshape(-1, trace.partitions.shape[-1]):
        visits[tuple(labels.tolist())] += 1
    expected = exact.probabilities * sum(visits.values())
    # Rare partitions share a cell.
    often = expected >= 8
    found = np.array(list(visits.values()))
    cells = np.append(found[often], found[~often].sum()), np.append(expected[often], expected[~often].sum())
    return float(((cells[0] - cells[1]) ** 2 / cells[1]).sum()), often.sum()


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("likelihood", ["gaussian", "multinomial"])
@pytest.mark.one_in(10)
@pytest.mark.filterwarnings("ignore::stickbreak.TruncationWarning")
def test_draws_follow_the_posterior(likelihood, process, sampler):
    if (sampler, process) in UNSUPPORTED:
        pytest.skip("the sampler does not support the process")
    specified, marginal, rows = LIKELIHOODS[likelihood]()
    law, log_prior = PROCESSES[process]
    exact = Posterior(marginal, log_prior, rows[:5])
    model = sb.Mixture(likelihood=specified, process=law)
    moves = SAMPLERS[sampler]
    if sampler == "blocked" and "pitman-yor" in process:
        # A power law, whose tail would be seen.
        moves = sb.BlockedGibbs(truncation=400)
    # Draws this far apart are as good as independent: the correlation of two is below 3e-3.
    thin = 25 if process == "pitman-yor below 0" else 16
    trace = sb.sample(model, rows[:5], moves, init="single", draws=2000, warmup=50, thin=thin, chains=1, seed=3)
    found, degrees = statistic(trace, exact)
    assert found < chi2.ppf(1 - 1e-6, degrees), (found, degrees)


@pytest.mark.parametrize(
    "sampler", ["gibbs", "restricted", "tree-guided", "slice", pytest.param("blocked", marks=pytest.mark.slow)]
)
def test_draws_of_blocks_follow_the_posterior(sampler):
    """Blocks of one likelihood with few rows, whose drawn parameters must not hang together."""
    counts = sb.Poisson([0.7], rate=0.3)
    likelihood = sb.Columns({(column,): counts for column in range(3)})
    rows = np.array([[0.0, 4.0, 1.0], [3.0, 0.0, 2.0], [1.0, 1.0, 5.0], [5.0, 2.0, 0.0]])
    marginal = ConjugateMarginal(oracle_of(sb.Mixture(likelihood=likelihood)).likelihood)
    exact = Posterior(marginal, dirichlet(0.8), rows)
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(0.8))
    options = {"init": "single", "draws": 2000, "warmup": 50, "thin": 8, "chains": 1, "seed": 3}
    trace = sb.sample(model, rows, SAMPLERS[sampler], **options)
    found, degrees = statistic(trace, exact)
    assert found < chi2.ppf(1 - 1e-6, degrees), (found, degrees)


def test_slices_of_jumps():
    likelihood, marginal, rows = gaussian()
    exact = Posterior(marginal, generalized_gamma(0.7, 0.25), rows[:5])
    model = sb.Mixture(likelihood=likelihood, process=sb.NormalizedGeneralizedGamma(0.7, 0.25))
    trace = sb.sample(model, rows[:5], sb.Slice(), draws=2000, warmup=50, thin=16, chains=1, seed=3)
    found, degrees = statistic(trace, exact)
    assert found < chi2.ppf(1 - 1e-6, degrees), (found, degrees)


def test_too_few_components_are_seen():
    """The last tenth of two components is one, whose rows a third component should share."""
    likelihood, marginal, rows = gaussian()
    exact = Posterior(marginal, dirichlet(0.8), rows[:5])
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(0.8))
    with pytest.warns(sb.TruncationWarning, match="the last tenth"):
        trace = sb.sample(model, rows[:5], sb.BlockedGibbs(truncation=2), draws=2000, thin=4, chains=1)
    found, degrees = statistic(trace, exact)
    assert found > 2 * chi2.ppf(1 - 1e-6, degrees)


def test_a_wrong_concentration_is_seen():
    likelihood, marginal, rows = gaussian()
    exact = Posterior(marginal, dirichlet(0.9), rows[:5])
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(0.6))
    trace = sb.sample(model, rows[:5], draws=4000, warmup=50, thin=25, chains=1, seed=3)
    found, degrees = statistic(trace, exact)
    assert found > 2 * chi2.ppf(1 - 1e-6, degrees)


@pytest.mark.parametrize("sampler", ["gibbs", "blocked", "slice"])
def test_a_learned_concentration_has_its_posterior(sampler):
    """p(alpha | K) alpha^(shape + K - 1) e^(-rate alpha) Gamma(alpha) / Gamma(alpha + n), mixed over partitions."""
    likelihood, marginal, rows = gaussian()
    grid = np.exp(np.linspace(-8.0, 5.0, 400))
    weights = grid**2.0 * np.exp(-1.5 * grid) * grid  # Gamma(3, 1.5) in log alpha
    # The probability of the rows given their partition has no concentration in it.
    given = Posterior(marginal, lambda sizes: 0.0, rows[:5])
    partitions = given.partitions
    prior = [[dirichlet(alpha)(np.bincount(labels).tolist()) for labels in partitions] for alpha in grid]
    joint = weights[:, None] * np.exp(np.array(prior) + [given.log_joint(labels) for labels in partitions])
    weights = joint.sum(1) / joint.sum()
    together = joint[:, [labels[0] == labels[1] for labels in partitions]].sum() / joint.sum()
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(sb.Gamma(3.0, 1.5)))
    moves = SAMPLERS[sampler]
    trace = sb.sample(model, rows[:5], moves, init="single", draws=8000, warmup=50, thin=10, chains=1, seed=5)
    drawn = trace.hyperparameters["concentration"][0]
    for found, expected in [
        (drawn, weights @ grid),
        (np.log(drawn), weights @ np.log(grid)),
        ((trace.partitions[0, :, 0] == trace.partitions[0, :, 1]).astype(float), together),
    ]:
        error = found.std() / np.sqrt(8000 / 1.5)
        # 4.9 standard errors: once in a million.
        assert abs(found.mean() - expected) < 4.9 * error


@pytest.mark.parametrize("truncation", [2, 3])
@pytest.mark.filterwarnings("ignore::stickbreak.TruncationWarning")
def test_a_concentration_learned_from_few_sticks_has_its_posterior(truncation):
    """All labels of five rows, whose last stick takes what the others leave: its rows tell of the others' sticks."""
    likelihood, marginal, rows = gaussian()
    labels = np.array(list(product(range(truncation), repeat=5)))
    given = Posterior(marginal, lambda sizes: 0.0, rows[:5])
    log_likelihood = np.array([given.log_joint(canonical(each)) for each in labels])
    counts = (labels[:, :, None] == np.arange(truncation)).sum(1)
    behind = counts[:, ::-1].cumsum(1)[:, ::-1][:, 1:]
    grid = np.exp(np.linspace(-9.0, 5.0, 600))
    log_prior = [(betaln(1 + counts[:, :-1], alpha + behind) - betaln(1, alpha)).sum(1) for alpha in grid]
    weights = (grid * stats.gamma.pdf(grid, 2.0, scale=1.0))[:, None] * np.exp(np.array(log_prior) + log_likelihood)
    weights /= weights.sum()
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(sb.Gamma(2.0, 1.0)))
    sampler = sb.BlockedGibbs(truncation=truncation)
    trace = sb.sample(model, rows[:5], sampler, init="single", draws=4000, warmup=50, thin=10, chains=1, seed=5)
    drawn = trace.hyperparameters["concentration"][0]
    is_together = labels[:, 0] == labels[:, 1]
    for found, expected in [
        (drawn, weights.sum(1) @ grid),
        (np.log(drawn), weights.sum(1) @ np.log(grid)),
        ((trace.partitions[0, :, 0] == trace.partitions[0, :, 1]).astype(float), weights.sum(0) @ is_together),
    ]:
        batches = found.reshape(50, -1).mean(1)
        assert abs(found.mean() - expected) < 5.6 * batches.std(ddof=1) / np.sqrt(50)


@pytest.mark.parametrize("sampler", ["gibbs", "restricted", "tree-guided", "blocked"])
@pytest.mark.filterwarnings("ignore::stickbreak.TruncationWarning")
def test_learned_parameters_of_a_pitman_yor_process_have_their_posterior(sampler):
    """The posterior of both parameters on a grid, each with all partitions of five rows."""
    likelihood, marginal, rows = gaussian()
    given = Posterior(marginal, lambda sizes: 0.0, rows[:5])
    # The midpoint rule in log alpha and d: Gamma(3, 1.5) and Beta(2, 8), under which large discounts are rare.
    log_alphas = np.linspace(-6.0, 3.5, 120)
    discounts = (np.arange(100) + 0.5) / 100
    log_prior_of_alphas = 3.0 * log_alphas - 1.5 * np.exp(log_alphas)
    log_prior_of_discounts = np.log(discounts) + 7.0 * np.log1p(-discounts)
    sizes = [tuple(sorted(np.bincount(labels).tolist())) for labels in given.partitions]
    log_joint = np.empty((120, 100, len(sizes)))
    for i, log_alpha in enumerate(log_alphas):
        for j, discount in enumerate(discounts):
            law = pitman_yor(discount, np.exp(log_alpha))
            of_sizes = {each: law(each) for each in set(sizes)}
            log_joint[i, j] = [of_sizes[each] for each in sizes]
    log_joint += log_prior_of_alphas[:, None, None] + log_prior_of_discounts[:, None]
    log_joint += [given.log_joint(labels) for labels in given.partitions]
    joint = np.exp(log_joint - log_joint.max())
    joint /= joint.sum()

    process = sb.PitmanYor(sb.Beta(2.0, 8.0), concentration=sb.Gamma(3.0, 1.5))
    moves = sb.BlockedGibbs(truncation=400) if sampler == "blocked" else SAMPLERS[sampler]
    model = sb.Mixture(likelihood=likelihood, process=process)
    # Draws this far apart are as good as independent, also of the parameters.
    trace = sb.sample(model, rows[:5], moves, init="single", draws=2000, warmup=50, thin=40, chains=1, seed=5)
    exact = SimpleNamespace(partitions=given.partitions, probabilities=joint.sum((0, 1)))
    found, degrees = statistic(trace, exact)
    assert found < chi2.ppf(1 - 1e-6, degrees), (found, degrees)
    alpha, discount = (trace.hyperparameters[name][0] for name in ("concentration", "discount"))
    weights = joint.sum(2)
    products = log_alphas[:, None] * discounts
    for values, expected in [
        (np.log(alpha), (weights.sum(1) * log_alphas).sum()),
        (alpha, (weights.sum(1) * np.exp(log_alphas)).sum()),
        (discount, (weights.sum(0) * discounts).sum()),
        (np.log(alpha) * discount, (weights * products).sum()),
    ]:
        # Errors of means from those of 50 batches; their t-values exceed 5.6 once in a million.
        batches = values.reshape(50, -1).mean(1)
        assert abs(values.mean() - expected) < 5.6 * batches.std(ddof=1) / np.sqrt(50)


@pytest.mark.parametrize("process", ["dirichlet", "finite mixtures"])
def test_the_predictive_density_is_the_mean_over_draws(process):
    likelihood, marginal, rows = gaussian()
    law, log_prior = PROCESSES[process]
    model = sb.Mixture(likelihood=likelihood, process=law)
    trace = sb.sample(model, rows[:5], draws=30, warmup=5, chains=2)
    new = np.array([[0.3, 1.2], [4.0, -3.0]])
    before = Posterior(marginal, log_prior, rows[:5])
    for row, found in zip(new, trace.log_predictive(new), strict=True):
        after = Posterior(marginal, log_prior, np.vstack([rows[:5], row]))
        terms = []
        for labels in trace.partitions.reshape(-1, 5):
            joined = [after.log_joint([*labels, label]) for label in range(labels.max() + 2)]
            terms.append(np.exp(np.logaddexp.reduce(joined) - before.log_joint(labels)))
        assert found == pytest.approx(np.log(np.mean(terms)), abs=1e-9)
