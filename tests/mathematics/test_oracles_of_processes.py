"""The oracles of all processes and engines: against enumeration, long sums, Monte Carlo and each other."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from oracles import discrete, engines, evidence, gaussians, models, point_engine
from oracles import variational as oracle
from oracles.models import Array, FiniteSymmetricDirichlet, Likelihood, Process, StickBreaking
from oracles.sticks import GammaConcentration, TailedStick, TruncatedStick

PROCESSES: dict[str, Process] = {
    "nested": StickBreaking(1.3),
    "pitman_yor": StickBreaking(0.8, 0.35),
    "truncated_stick": TruncatedStick(1.3),
    "tail": TailedStick(1.3),
    "sticks_nested": StickBreaking(1.3, first=2.2),
    "sticks_truncated": TruncatedStick(1.3, first=0.4),
    "sticks_tail": TailedStick(1.3, first=2.2),
    "finite": FiniteSymmetricDirichlet(2.1),
    "gamma_nested": GammaConcentration(StickBreaking, 1.5, 0.7),
    "gamma_truncated": GammaConcentration(TruncatedStick, 1.5, 0.7),
}
of_process = pytest.mark.parametrize("process", PROCESSES.values(), ids=PROCESSES.keys())
COUNTS = np.array([3.1, 0.4, 7.7, 1.2])

LIKELIHOODS: dict[str, Likelihood] = {
    "gaussian": models.NormalWishart(np.zeros(2), 0.3, 4.0, np.eye(2)),
    "diagonal": gaussians.DiagonalNormalGamma(np.zeros(2), 0.3, 2.0, np.ones(2)),
    "product": gaussians.SphericalIndependent(np.zeros(2), 0.3, 2.0, 1.0),
    "known": gaussians.KnownCovarianceGeneral(np.eye(2), np.zeros(2), np.diag([0.3, 0.5])),
}


def problem(seed: int, n: int = 24, n_components: int = 3) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, 2)) + rng.choice([-2.0, 2.0], (n, 1))
    return rows, rng.dirichlet(np.full(n_components, 0.5), n)


def counts_for(process: Process) -> Array:
    """Counts of four components, and of the tail where there is one."""
    return np.append(COUNTS, 0.8) if process.has_tail else COUNTS


@of_process
def test_collapsed_form_is_a_maximum(process: Process) -> None:
    """The collapsed form equals the general form at eta, and no eta nearby is larger."""
    counts = counts_for(process)
    eta = process.update(counts)

    def general(eta: Array) -> float:
        return float(counts @ process.expected_log_weights(eta) - process.kl(eta))

    assert general(eta) == pytest.approx(process.collapsed(counts), rel=1e-11)
    rng = np.random.default_rng(0)
    for _ in range(50):
        assert general(eta * rng.uniform(0.8, 1.25, eta.shape)) < general(eta)


@of_process
def test_weights_sum_to_one(process: Process) -> None:
    counts = counts_for(process)
    weights = process.expected_weights(process.update(counts))
    assert len(weights) == len(COUNTS) + 1
    assert weights.sum() == pytest.approx(1.0, rel=1e-14)
    assert (weights[-1] > 0) == (not isinstance(process, FiniteSymmetricDirichlet) and not without_rest(process))


def without_rest(process: Process) -> bool:
    return isinstance(process, TruncatedStick) or (
        isinstance(process, GammaConcentration) and process.kind is TruncatedStick
    )


@of_process
def test_falling_counts_are_the_best_order(process: Process) -> None:
    """Mathematics 2a.1, 2c, 2e and 2f: with sticks, and only there. Blei and Jordan's last component differs (2b.3)."""
    counts = counts_for(process)
    values = {
        order: process.collapsed(np.append(counts[list(order)], counts[len(COUNTS) :]))
        for order in itertools.permutations(range(len(COUNTS)))
    }
    best, falling = max(values, key=lambda order: values[order]), tuple(np.argsort(-COUNTS))
    if not process.ordered:
        assert max(values.values()) == pytest.approx(min(values.values()), rel=1e-13)
    elif not without_rest(process):
        assert best == falling
    else:
        assert (np.diff(COUNTS[list(best[:-1])]) < 0).all()
        assert best != falling


def test_falling_counts_are_the_best_order_of_truncated_sticks_at_concentration_one() -> None:
    process, falling = TruncatedStick(1.0), np.sort(COUNTS)[::-1]
    values = [process.collapsed(COUNTS[list(order)]) for order in itertools.permutations(range(len(COUNTS)))]
    assert process.collapsed(falling) == pytest.approx(max(values), rel=1e-14)
    assert TruncatedStick(3.0).collapsed(falling[::-1]) > TruncatedStick(3.0).collapsed(falling)


def test_order_never_costs() -> None:
    """Reordering by the engines never lowers the bound, under any process and concentration."""
    rng = np.random.default_rng(3)
    for concentration in (0.2, 1.0, 1.3, 6.0):
        for kind in (StickBreaking, TruncatedStick, TailedStick):
            mixture = oracle.Specification(LIKELIHOODS["gaussian"], kind(concentration))
            for _ in range(20):
                counts = rng.dirichlet(np.full(4 + mixture.process.has_tail, 0.4), 9).sum(0)
                order = engines.order_by_size(counts, mixture)
                assert mixture.process.collapsed(counts[order]) >= mixture.process.collapsed(counts)


def test_hard_labels_have_the_probability_of_their_partition() -> None:
    """Mathematics 2a.3: exp L* of hard counts, over all orders with their gaps, is the partition's probability."""
    process, sizes, terms = StickBreaking(1.3), [3, 1, 2], []
    for order in itertools.permutations(sizes):
        behind = np.cumsum(order[::-1])[::-1]
        terms.append(process.collapsed(np.array(order, float)) + np.log((1.3 + behind) / behind).sum())
    assert logsumexp(terms) == pytest.approx(evidence.log_ewens(sizes, 1.3), rel=1e-11)


@pytest.mark.parametrize(("first", "rest"), [(1.0, 1.3), (2.2, 0.7), (0.4, 3.0)])
def test_partitions_of_sticks(first: float, rest: float) -> None:
    """They sum to one, are Ewens' at first = 1, and are sums of exp L* over the places of their blocks."""
    sizes = [np.bincount(labels).tolist() for labels in evidence.set_partitions(5)]
    logs = [evidence.log_partition_of_sticks(of_blocks, first, rest) for of_blocks in sizes]
    assert logsumexp(logs) == pytest.approx(0.0, abs=1e-12)
    if first == 1.0:
        np.testing.assert_allclose(logs, [evidence.log_ewens(of_blocks, rest) for of_blocks in sizes], atol=1e-12)
    process, terms = StickBreaking(rest, first=first), []
    for places in itertools.permutations(range(120), 2):
        counts = np.zeros(120)
        counts[list(places)] = 3.0, 2.0
        terms.append(process.collapsed(counts))
    assert logsumexp(terms) == pytest.approx(evidence.log_partition_of_sticks([3, 2], first, rest), rel=1e-4)


def test_one_block_of_a_pitman_yor_process() -> None:
    """Four rows share a component if some stick takes all four: exp L* summed over its place is the probability.

    The terms fall like a power of the place, place^(-4 / discount) about, so that 4000 of them are enough.
    """
    process = StickBreaking(0.8, 0.35)
    terms = [process.collapsed(np.append(np.zeros(place), 4.0)) for place in range(4000)]
    assert logsumexp(terms) == pytest.approx(evidence.log_ewens([4], 0.8, 0.35), rel=1e-6)


def test_truncated_process_gives_every_labelling_its_probability() -> None:
    process = TruncatedStick(0.8)
    terms = [
        process.collapsed(np.bincount(labels, minlength=3).astype(float))
        for labels in itertools.product(range(3), repeat=5)
    ]
    assert logsumexp(terms) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(("concentration", "discount"), [(0.8, 0.0), (0.8, 0.4), (-0.1, 0.4)])
def test_partition_probabilities_sum_to_one(concentration: float, discount: float) -> None:
    sizes = [np.bincount(labels).tolist() for labels in evidence.set_partitions(6)]
    assert len(sizes) == 203  # the sixth Bell number
    total = logsumexp([evidence.log_ewens(sizes_of_blocks, concentration, discount) for sizes_of_blocks in sizes])
    assert total == pytest.approx(0.0, abs=1e-12)


def test_ewens_formula() -> None:
    sizes, concentration = [3, 1, 2], 1.3
    expected = 3 * np.log(concentration) + gammaln(sizes).sum()
    expected += gammaln(concentration) - gammaln(concentration + 6)
    assert evidence.log_ewens(sizes, concentration) == pytest.approx(expected, rel=1e-12)


def test_tail_is_a_sum_over_all_later_components() -> None:
    """Number 22: 4000 components at the prior, summed one by one."""
    process, eta = TailedStick(1.7), TailedStick(1.7).update(np.array([3.0, 2.0, 0.4]))
    whole = StickBreaking(1.7).expected_log_weights(np.vstack([eta, np.tile([1.0, 1.7], (4000, 1))]))
    weights = process.expected_log_weights(eta)
    np.testing.assert_allclose(weights[:-1], whole[:2], rtol=1e-14)
    assert weights[-1] == pytest.approx(logsumexp(whole[2:]), rel=1e-12)


def test_gamma_prior_against_monte_carlo() -> None:
    """E_q of log p - log q over concentration and sticks, drawn; 5 standard errors, fixed seed."""
    rng, n_draws, counts = np.random.default_rng(1), 60_000, COUNTS
    for process in (PROCESSES["gamma_nested"], PROCESSES["gamma_truncated"]):
        assert isinstance(process, GammaConcentration)
        eta = process.update(counts)
        sticks, (shape, rate) = eta[:-1], eta[-1]
        concentration = rng.gamma(shape, 1 / rate, n_draws)
        v = rng.beta(sticks[:, 0], sticks[:, 1], (n_draws, len(sticks)))
        drawn = stats.gamma.logpdf(concentration, process.shape, scale=1 / process.rate)
        drawn -= stats.gamma.logpdf(concentration, shape, scale=1 / rate)
        drawn += stats.beta.logpdf(v, 1.0, concentration[:, None]).sum(1) - stats.beta.logpdf(v, *sticks.T).sum(1)
        log_v = np.column_stack([np.log(v), np.zeros(n_draws)])[:, : len(counts)]
        rest = np.column_stack([np.zeros(n_draws), np.cumsum(np.log1p(-v), 1)])[:, : len(counts)]
        drawn += (log_v + rest) @ counts
        assert abs(drawn.mean() - process.collapsed(counts)) < 5 * drawn.std() / np.sqrt(n_draws)


@of_process
@pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS.keys())
@pytest.mark.one_in(3)
def test_evidence_is_above_the_bound(process: Process, likelihood: Likelihood) -> None:
    """Number 3, and not far above: the bound of six rows is within ten nats, of truncated sticks of their own."""
    rows, responsibilities = problem(2, n=6)
    exact = evidence.log_evidence(rows, likelihood, process, 3)
    mixture = oracle.Specification(likelihood, process)
    reached = [each.elbo for each in engines.fit_full(rows, responsibilities, mixture, 40)]
    assert exact - 10 < max(reached) <= exact


def test_gamma_evidence_is_a_mean_over_concentrations() -> None:
    """p(X) = E p(X | concentration), with draws from the prior; 5 standard errors, fixed seed."""
    rows, likelihood = problem(3, n=4)[0], LIKELIHOODS["gaussian"]
    draws = np.random.default_rng(2).gamma(1.5, 1 / 0.7, 400)
    given = [evidence.log_evidence_dirichlet_process(rows, likelihood, concentration) for concentration in draws]
    values = np.exp(np.array(given) - max(given))
    exact = np.exp(evidence.log_evidence_gamma(rows, likelihood, 1.5, 0.7) - max(given))
    assert abs(values.mean() - exact) < 5 * values.std() / np.sqrt(len(draws))


@of_process
@pytest.mark.parametrize("likelihood", LIKELIHOODS.values(), ids=LIKELIHOODS.keys())
@pytest.mark.parametrize("sparsity", [1, 2, None])
@pytest.mark.one_in(3)
def test_full_inference_never_loses(process: Process, likelihood: Likelihood, sparsity: int | None) -> None:
    """Number 1, the order of the components included; the general form is the collapsed one after every pass."""
    rows, responsibilities = problem(4)
    weights = np.random.default_rng(4).choice([0.5, 1.0, 2.0], len(rows))
    mixture = oracle.Specification(likelihood, process)
    trajectory = engines.fit_full(rows, responsibilities, mixture, 10, sparsity, weights)
    bounds = np.array([each.elbo for each in trajectory])[1 if sparsity else 0 :]
    assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()
    last = trajectory[-1]
    collapsed = oracle.collapsed_elbo(rows, last.responsibilities, mixture, weights)
    assert last.elbo == pytest.approx(collapsed, rel=1e-9)
    counts = weights @ last.responsibilities
    if process.ordered and not without_rest(process):
        assert (np.diff(counts[:3]) <= 0).all()
    np.testing.assert_allclose(last.responsibilities.sum(1), 1.0, rtol=1e-12)


def test_tail_without_concentration_is_nested() -> None:
    """Number 22: as the concentration vanishes, so do the tail and the difference of the bounds."""
    rows, responsibilities = problem(5)
    likelihood = LIKELIHOODS["gaussian"]
    tail, nested = (oracle.Specification(likelihood, kind(1e-3)) for kind in (TailedStick, StickBreaking))
    last = engines.fit_full(rows, responsibilities, tail, 15)[-1]
    assert last.responsibilities[:, -1].max() < 1e-12
    assert last.elbo == pytest.approx(engines.fit_full(rows, responsibilities, nested, 15)[-1].elbo, rel=1e-9)


def test_tail_is_above_nested_at_equal_globals() -> None:
    rows, responsibilities = problem(6)
    likelihood = LIKELIHOODS["gaussian"]
    tail, nested = (oracle.Specification(likelihood, kind(1.7)) for kind in (TailedStick, StickBreaking))
    state = engines.fit_full(rows, responsibilities, tail, 5)[-1].state
    bounds = [oracle.general_elbo(rows, oracle.local_step(rows, each, state), each, state) for each in (tail, nested)]
    assert bounds[0] > bounds[1]


def test_released_component_leaves_the_tail_bound() -> None:
    """Mathematics 2c: one component more, at its prior, and less tail: the same bound."""
    rows, responsibilities = problem(7)
    mixture = oracle.Specification(LIKELIHOODS["gaussian"], TailedStick(1.7))
    state = engines.fit_full(rows, responsibilities, mixture, 3)[-1].state
    released = oracle.Globals([*state.naturals, mixture.likelihood.prior_natural], np.vstack([state.eta, [1.0, 1.7]]))
    bounds = [
        oracle.general_elbo(rows, oracle.local_step(rows, mixture, each), mixture, each) for each in (state, released)
    ]
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)


# Stochastic steps and the sequential start


@of_process
def test_first_stochastic_step_of_rate_one_is_a_full_step(process: Process) -> None:
    """Number 18."""
    rows, responsibilities = problem(8)
    mixture = oracle.Specification(LIKELIHOODS["gaussian"], process)
    everything = [np.arange(len(rows))]
    fit = engines.fit_stochastic(rows, responsibilities, mixture, everything, 1, delay=0.0, decay=1.0, reorder=False)
    full = engines.fit_full(rows, responsibilities, mixture, 2, reorder=False)[-1]
    assert fit.elbo == pytest.approx(full.elbo, rel=1e-12)


@pytest.mark.parametrize("likelihood", [LIKELIHOODS["gaussian"], LIKELIHOODS["diagonal"]], ids=["gaussian", "diagonal"])
def test_interpolated_statistics_are_interpolated_parameters(likelihood: Likelihood) -> None:
    """Number 18: (1 - rho) lambda + rho (lambda_0 + S') is the parameter of the interpolated statistics."""
    rows, responsibilities = problem(9)
    mixture = oracle.Specification(likelihood, StickBreaking(1.0))
    first, second = (engines.Totals.of(rows, table, mixture) for table in (responsibilities, responsibilities[::-1]))
    mixed = first.towards(second, 0.3).state(mixture)
    for natural, one, other in zip(
        mixed.naturals, first.state(mixture).naturals, second.state(mixture).naturals, strict=True
    ):
        np.testing.assert_allclose(natural, 0.7 * one + 0.3 * other, rtol=1e-12)
    assert [engines.learning_rate(step, 2.0, 0.5) for step in (1, 2)] == pytest.approx([3**-0.5, 0.5])


@of_process
def test_sequential_start_gives_every_row_its_place(process: Process) -> None:
    rows, _ = problem(10)
    mixture = oracle.Specification(LIKELIHOODS["gaussian"], process)
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    responsibilities = engines.sequential_start(rows, mixture, 4, order)
    np.testing.assert_allclose(responsibilities.sum(1), 1.0, rtol=1e-12)
    if process.ordered:
        assert responsibilities.std(0).max() > 0.02  # sticks break the symmetry of equal components
    else:
        np.testing.assert_allclose(responsibilities, 0.25, rtol=1e-12)


# Point objectives


@pytest.mark.parametrize("objective", ["map", "ml"])
@pytest.mark.parametrize("sparsity", [1, 2, None])
@pytest.mark.parametrize("name", ["nested", "finite"])
def test_point_objectives_never_fall(objective: point_engine.Objective, sparsity: int | None, name: str) -> None:
    """Point objectives never fall, with the terms of the prior for MAP. All counts are positive."""
    rng = np.random.default_rng(11)
    labels = rng.integers(3, size=60)
    rows = rng.poisson(np.array([[2.0, 9.0], [12.0, 1.0], [5.0, 4.0]])[labels]).astype(float)
    likelihood = discrete.Poisson(np.array([1.5, 2.0]), 0.4)
    process: Process = StickBreaking(1.6) if name == "nested" else FiniteSymmetricDirichlet(3.6)
    mixture = oracle.Specification(likelihood, process)
    start = 0.6 * np.eye(3)[labels] + 0.4 * rng.dirichlet(np.ones(3), 60)
    weights = rng.choice([0.5, 1.0, 2.0], 60)
    trajectory = point_engine.fit_points(rows, start, mixture, objective, 12, sparsity, weights)
    values = np.array([each.objective for each in trajectory])[1 if sparsity else 0 :]
    assert (np.diff(values) >= -1e-10 * np.abs(values[1:])).all()
    assert np.diff(values).max() > 0.01


def test_maximum_likelihood_with_all_components_is_the_log_likelihood() -> None:
    """Mathematics 2g: at the optimal responsibilities the objective is sum log sum pi p."""
    rows, responsibilities = problem(12)
    mixture = oracle.Specification(LIKELIHOODS["gaussian"], FiniteSymmetricDirichlet(3.0))
    last = point_engine.fit_points(rows, responsibilities, mixture, "ml", 4)[-1]
    scores = point_engine.point_scores(rows, mixture, last.weights, last.points)
    best = oracle.top_l_responsibilities(scores)
    value = (best * scores).sum() - (best * np.log(best)).sum()
    plug_in = point_engine.plug_in_log_density(rows, mixture, last.weights, last.points)
    assert value == pytest.approx(plug_in.sum(), rel=1e-11)


@pytest.mark.parametrize("process", [StickBreaking(1.6), TruncatedStick(1.6), FiniteSymmetricDirichlet(4.4)])
def test_most_probable_weights(process: Process) -> None:
    """No other weights, and no other sticks, have more of sum N_k log w_k + log p."""
    weights, log_prior = point_engine.most_probable_weights(process, COUNTS)
    best, rng = COUNTS @ np.log(weights) + log_prior, np.random.default_rng(13)
    for _ in range(200):
        if isinstance(process, FiniteSymmetricDirichlet):
            other = rng.dirichlet(200 * weights)
            prior = stats.dirichlet.logpdf(other, np.full(4, 1.1))
        else:
            rest = 1 - np.append(0.0, np.cumsum(weights)[:-1])
            sticks = np.clip(weights / rest * rng.uniform(0.9, 1.1, 4), 1e-6, 1 - 1e-6)
            free = sticks if isinstance(process, StickBreaking) else sticks[:-1]
            prior = stats.beta.logpdf(free, 1, 1.6).sum()
            last = np.array([]) if isinstance(process, StickBreaking) else np.array([1.0])
            sticks = np.concatenate([free, last])
            other = sticks * np.append(1.0, np.cumprod(1 - sticks)[:-1])
        assert COUNTS @ np.log(other) + prior <= best + 1e-12


def test_modes_of_truncated_sticks_want_the_largest_component_last() -> None:
    """Under MAP the order of nested sticks is of no account, and of truncated ones falling counts are the worst.

    The last weight of Blei and Jordan's truncation takes concentration - 1 rows more than it has (mathematics 2g).
    """
    falling = np.sort(COUNTS)[::-1]

    def value(process: Process, counts: Array) -> float:
        weights, log_prior = point_engine.most_probable_weights(process, counts)
        return float(counts @ np.log(weights) + log_prior)

    nested, truncated = StickBreaking(1.6), TruncatedStick(1.6)
    assert value(nested, falling) == pytest.approx(value(nested, falling[::-1]), rel=1e-12)
    values = {order: value(truncated, falling[list(order)]) for order in itertools.permutations(range(4))}
    assert max(values, key=lambda order: values[order])[-1] == 0
    assert value(truncated, falling) == pytest.approx(min(values.values()), rel=1e-12)
