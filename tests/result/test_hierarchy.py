"""Hierarchies against sums over all tree-consistent partitions by the oracle, and what can be done with them."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.cluster.hierarchy import fcluster, is_monotonic, is_valid_linkage
from scipy.special import gammaln, logsumexp

import stickbreak as sb
from kinds import oracle_of
from oracles.forests import Forests
from oracles.partitions import ConjugateMarginal, GaussianMarginal, MultinomialMarginal, dirichlet, pitman_yor

RNG = np.random.default_rng(1)
PSI = np.array([[1.0, 0.2], [0.2, 0.8]])
GAUSSIAN = sb.Gaussian(mean=[0.0, 0.0], mean_precision=0.1, dof=4.0, scale=PSI)
MODEL = sb.Mixture(likelihood=GAUSSIAN, process=sb.DirichletProcess(0.8))
X = np.concatenate([RNG.normal(-6, 1, size=(20, 2)), RNG.normal(6, 1, size=(25, 2))])
BETA = np.array([0.4, 0.7, 1.0, 0.5])
WORDS = RNG.poisson([[3, 0.5, 0.2, 1.0]] * 4 + [[0.2, 2.0, 3.0, 0.1]] * 3).astype(float)
# A Gaussian beside two blocks of counts.
BLOCKS = sb.Columns({(3, 0): GAUSSIAN, (1,): sb.Poisson([1.5], rate=0.4), (2,): sb.Poisson([0.7], rate=0.9)})
TABLE = np.column_stack([X[17:24, 1], WORDS[:, [0, 2]], X[17:24, 0]])
METHODS = ("bhc", "incremental")


def consistent(members, joins, node, n):
    """Yield all partitions of the rows below a node that follow the tree."""
    yield [members[node]]
    if node >= n:
        left, right = joins[node - n]
        for one in consistent(members, joins, left, n):
            for other in consistent(members, joins, right, n):
                yield one + other


CASES = {
    "gaussian": (MODEL, X[15:23], GaussianMarginal(np.zeros(2), 0.1, 4.0, PSI)),
    "multinomial": (
        sb.Mixture(likelihood=sb.Multinomial(pseudo_counts=BETA), process=sb.DirichletProcess(0.8)),
        WORDS,
        MultinomialMarginal(BETA),
    ),
    "columns": (
        sb.Mixture(likelihood=BLOCKS, process=sb.DirichletProcess(0.8)),
        TABLE,
        ConjugateMarginal(oracle_of(sb.Mixture(likelihood=BLOCKS)).likelihood),
    ),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_potentials_are_those_of_the_oracle(case, method):
    model, rows, marginal = CASES[case]
    log_prior = dirichlet(0.8)
    tree = sb.hierarchy(model, rows, method)
    n, joins = len(rows), tree.joins.tolist()
    members = [[row] for row in range(n)]
    for left, right in joins:
        members.append(sorted(members[left] + members[right]))

    def log_joint(partition):
        return log_prior([len(part) for part in partition]) + sum(marginal.log_m(rows[part]) for part in partition)

    logs = [log_joint(partition) for partition in consistent(members, joins, 2 * n - 2, n)]
    assert tree.elbo == pytest.approx(logsumexp(logs), abs=1e-9)
    labels = tree.cut("map")
    best = [np.flatnonzero(labels == label).tolist() for label in np.unique(labels)]
    assert log_joint(best) == pytest.approx(max(logs), abs=1e-9)
    # The weights of clusters are in the units of the data, as the bound is.
    weights = [np.log(0.8) + gammaln(len(part)) + marginal.log_m(rows[part]) for part in members]
    np.testing.assert_allclose(tree.log_weights, weights, atol=1e-9)
    total = tree.log_potentials[-1] + gammaln(0.8) - gammaln(0.8 + n)
    assert total == pytest.approx(tree.elbo, abs=1e-9)
    # phi_l phi_r / h and h + phi_l phi_r.
    for k, (left, right) in enumerate(joins):
        apart = tree.log_potentials[left] + tree.log_potentials[right]
        weight = tree.log_weights[n + k]
        assert tree.log_dissimilarities[n + k] == pytest.approx(apart - weight, abs=1e-9)
        assert tree.log_potentials[n + k] == pytest.approx(np.logaddexp(apart, weight), abs=1e-9)


def log_mass_and_u(sizes, sigma, log_u, log_m, shape):
    """Return log p(partition, u, m) of a Pitman-Yor process with m = mass / sigma ~ Gamma(shape, 1)."""
    u, mass, n = np.exp(log_u), sigma * np.exp(log_m), sum(sizes)
    blocks = [
        np.log(mass) + gammaln(size - sigma) - gammaln(1 - sigma) - (size - sigma) * np.log1p(u) for size in sizes
    ]
    measure = (n - 1) * log_u - gammaln(n) - mass / sigma * ((1 + u) ** sigma - 1) + sum(blocks)
    return measure + stats.gamma(shape).logpdf(np.exp(log_m))


@pytest.mark.parametrize("sizes", [[5], [3, 2], [2, 1, 1, 1]])
def test_the_random_mass_and_u_integrate_to_the_law_of_partitions(sizes):
    sigma, alpha = 0.4, 1.3
    grid, step = np.linspace(-60.0, 40.0, 2001, retstep=True)
    log_u, log_m = np.meshgrid(grid, grid[np.abs(grid) < 30])
    # Densities in u and m, integrated over their logarithms.
    logs = log_mass_and_u(sizes, sigma, log_u, log_m, alpha / sigma) + log_u + log_m
    assert logsumexp(logs) + 2 * np.log(step) == pytest.approx(pitman_yor(sigma, alpha)(sizes), abs=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_the_bound_of_a_pitman_yor_process_has_the_density_of_its_mass(method):
    sigma, alpha, marginal = 0.4, 1.3, GaussianMarginal(np.zeros(2), 0.1, 4.0, PSI)
    rows = X[16:23]
    tree = sb.hierarchy(sb.Mixture(likelihood=GAUSSIAN, process=sb.PitmanYor(sigma, concentration=alpha)), rows, method)
    given = tree.hyperparameters
    assert list(given) == ["concentration", "discount", "log_u", "log_mass"]
    n, joins = len(rows), tree.joins.tolist()
    members = [[row] for row in range(n)]
    for left, right in joins:
        members.append(sorted(members[left] + members[right]))
    log_m = given["log_mass"] - np.log(sigma)

    def log_joint(partition):
        prior = log_mass_and_u([len(part) for part in partition], sigma, given["log_u"], log_m, alpha / sigma)
        return prior + sum(marginal.log_m(rows[part]) for part in partition)

    logs = [log_joint(partition) for partition in consistent(members, joins, 2 * n - 2, n)]
    assert tree.elbo == pytest.approx(logsumexp(logs), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_linkage_is_that_of_scipy(method):
    tree = sb.hierarchy(MODEL, X, method, seed=3)
    assert is_valid_linkage(tree.linkage)
    assert is_monotonic(tree.linkage)
    assert tree.linkage[-1, 3] == 45
    assert (tree.linkage[:, 2] >= 0).all()
    halves = fcluster(tree.linkage, 2, "maxclust")
    assert len(set(halves[:20])) == len(set(halves[20:])) == 1
    assert set(tree.cut()[:20]).isdisjoint(tree.cut()[20:])


@pytest.mark.parametrize("method", METHODS)
def test_threads_and_seeds(method):
    one, two = (sb.hierarchy(MODEL, X, method, n_trials=2, threads=threads) for threads in (1, 2))
    assert (one.joins == two.joins).all()
    assert (one.log_potentials == two.log_potentials).all()
    if method == "incremental":
        assert (one.joins != sb.hierarchy(MODEL, X, method, seed=9).joins).any()


@pytest.mark.parametrize(
    "process", [sb.NormalizedGeneralizedGamma(0.7, 0.5), sb.PitmanYor(0.3), sb.DirichletProcess(sb.Gamma(1, 1))]
)
def test_more_trials_are_no_worse(process):
    model = sb.Mixture(likelihood=GAUSSIAN, process=process)
    for method in METHODS:
        tree = sb.hierarchy(model, X, method, n_trials=4)
        assert np.isfinite(tree.elbo)
        assert len(set(tree.cut("map").tolist())) >= 2


def test_rows_are_inserted():
    tree = sb.hierarchy(MODEL, X[5:])
    more = tree.insert(X[:5])
    assert len(tree.joins) == 39
    assert len(more.joins) == 44
    labels = more.cut("map")
    assert set(labels[:15]) | set(labels[40:]) == set(labels[:15])
    counts = sb.Mixture(likelihood=sb.Multinomial(pseudo_counts=BETA))
    dense = sb.hierarchy(counts, WORDS[:5]).insert(WORDS[5:])
    for of in (np.asarray, sparse.csr_array):
        few = sb.hierarchy(counts, sparse.csr_array(WORDS[:5])).insert(of(WORDS[5:]))
        many = sb.hierarchy(counts, WORDS[:5]).insert(of(WORDS[5:]))
        assert (dense.joins == few.joins).all()
        assert (dense.joins == many.joins).all()
        assert dense.elbo == pytest.approx(few.elbo, abs=1e-9)
        assert dense.elbo == pytest.approx(many.elbo, abs=1e-9)
    for wrong in (X[:, :1], np.array([[np.nan, 0.0]]), np.zeros((0, 2)), X[:3] + 1e200):
        with pytest.raises(sb.InvalidArgument) as caught:
            tree.insert(wrong)
        assert caught.value.argument == "X_new"
    # The scale that was estimated from the other rows is lost beside the scatter of these.
    estimated = sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian()), X)
    with pytest.raises(sb.InvalidArgument, match="X_new must be rows of about the size of the others") as caught:
        estimated.insert(X[:1] + 1e9)
    assert caught.value.argument == "X_new"


# In the last two an insertion takes off several subtrees, and the order in which they return changes the tree.
INSERTED = {
    **{
        f"clusters {seed}": (
            seed,
            lambda rng: rng.normal(size=(26, 2)) * [2.0, 1.0] + 2.0 * rng.integers(-1, 2, (26, 1)),
        )
        for seed in range(4)
    },
    "walk": (5, lambda rng: 0.7 * np.cumsum(rng.normal(size=(40, 2)), axis=0)),
    "tails": (0, lambda rng: rng.standard_t(1.5, size=(40, 2))),
}


@pytest.mark.parametrize("case", INSERTED)
def test_rows_are_inserted_as_by_the_oracle(case):
    """One row after another; subtrees that are taken off return to the end of the queue, the lowest one first."""
    seed, draw = INSERTED[case]
    rows = draw(np.random.default_rng(seed))
    n = len(rows)
    marginal = GaussianMarginal(np.zeros(2), 0.1, 4.0, PSI)

    def log_h(members):
        return np.log(0.8) + gammaln(len(members)) + marginal.log_m(rows[sorted(members)])

    forests = Forests(log_h)
    expected = forests.greedy(forests.incremental([0], range(1, n)))
    tree = sb.hierarchy(MODEL, rows[:1]).insert(rows[1:])
    members = [frozenset([row]) for row in range(n)]
    for left, right in tree.joins.tolist():
        members.append(members[left] | members[right])
    assert set(members[n:]) == forests.clusters(expected)
    assert tree.log_potentials[-1] == pytest.approx(forests.log_phi(expected), abs=1e-9)


@pytest.mark.parametrize("case", [*CASES, "sparse"])
def test_files_keep_everything(tmp_path, case):
    model, rows, _ = CASES["multinomial" if case == "sparse" else case]
    tree = sb.hierarchy(model, sparse.csr_array(rows) if case == "sparse" else rows)
    tree.save(tmp_path / "tree.safetensors")
    for again in (sb.load(tmp_path / "tree.safetensors"), pickle.loads(pickle.dumps(tree))):
        assert (again.joins == tree.joins).all()
        assert again.log_potentials == pytest.approx(tree.log_potentials, abs=1e-9)
        assert again.elbo == pytest.approx(tree.elbo, abs=1e-9)
        assert again.model == tree.model
        assert repr(again) == repr(tree)


def values(tree):
    """Return all that a hierarchy computes."""
    return [tree.joins, tree.linkage, tree.log_weights, tree.log_potentials, tree.log_dissimilarities, tree.elbo]


@pytest.mark.parametrize("method", METHODS)
def test_files_keep_every_bit(tmp_path, method):
    tree = sb.hierarchy(MODEL, X, method).insert(X[:4] + 0.5)
    tree.save(tmp_path / "tree.safetensors")
    for kept, expected in zip(values(sb.load(tmp_path / "tree.safetensors")), values(tree), strict=True):
        assert np.array_equal(kept, expected)


def changed(tree, header=None, **found):
    """Return the hierarchy of parts that were changed."""
    old_header, arrays = tree._to_parts()
    return sb.Hierarchy._from_parts({**old_header, **(header or {})}, {**arrays, **found})


def test_states_that_no_hierarchy_has_are_refused():
    law = {"process": "FiniteDirichlet", "process_parameters": {"n_components": 3.0, "concentration": 0.8}}
    tree = sb.hierarchy(MODEL, X)
    assert changed(tree).elbo == tree.elbo
    dof = {"likelihood_parameters": {**tree._to_parts()[0]["likelihood_parameters"], "dof": None}}
    wrong = [(tree, law, {}), (tree, dof, {}), (tree, {}, {"state": np.array([0.8, 0.0, 1.0, np.log(0.8)])})]
    tree = sb.hierarchy(sb.Mixture(likelihood=GAUSSIAN, process=sb.NormalizedGeneralizedGamma(0.7, 0.5)), X)
    state = tree._to_parts()[1]["state"]
    assert changed(tree).elbo == tree.elbo
    for index, value in [(2, 1e308), (2, -1e308), (2, np.nan), (3, 1e308), (3, state[3] + 0.1), (0, 0.8), (1, 0.4)]:
        other = state.copy()
        other[index] = value
        wrong.append((tree, {}, {"state": other}))
    wrong.append((tree, {}, {"state": state[:2]}))
    for hierarchy, header, found in wrong:
        with pytest.raises((sb.StickbreakError, ValueError)):
            changed(hierarchy, header, **found)


def test_one_row_and_equal_rows():
    for rows in (X[:1], np.repeat(X[:1], 6, axis=0)):
        for method in METHODS:
            tree = sb.hierarchy(MODEL, rows, method)
            assert (tree.cut() == 0).all()
            assert tree.joins.shape == (len(rows) - 1, 2)


@pytest.mark.parametrize(
    ("process", "names"),
    [
        (sb.DirichletProcess(0.8), ["concentration"]),
        (sb.DirichletProcess(sb.Gamma(1, 1)), ["concentration"]),
        (sb.PitmanYor(0.3, concentration=0.8), ["concentration", "discount", "log_u", "log_mass"]),
        (sb.NormalizedGeneralizedGamma(0.8, 0.3), ["mass", "discount", "log_u"]),
    ],
)
def test_hyperparameters_are_those_of_the_tree(process, names):
    tree = sb.hierarchy(sb.Mixture(likelihood=GAUSSIAN, process=process), X, n_trials=2)
    found = tree.hyperparameters
    assert list(found) == names
    assert np.isfinite(list(found.values())).all()
    if not isinstance(getattr(process, names[0]), sb.Gamma):
        assert found[names[0]] == 0.8
        assert found.get("discount", 0.0) == getattr(process, "discount", 0.0)
    else:
        # The weight of a row by itself has the factor of the concentration.
        model = sb.Mixture(likelihood=GAUSSIAN, process=sb.DirichletProcess(found["concentration"]))
        assert sb.hierarchy(model, X).log_weights == pytest.approx(tree.log_weights, abs=1e-9)
    assert tree.insert(X[:2]).hyperparameters == found


def test_learned_parameters_of_a_pitman_yor_process_are_those_of_the_tree():
    process = sb.PitmanYor(sb.Beta(1.0, 3.0), concentration=sb.Gamma(2.0, 1.0))
    tree = sb.hierarchy(sb.Mixture(likelihood=GAUSSIAN, process=process), X, n_trials=5)
    found = tree.hyperparameters
    assert list(found) == ["concentration", "discount", "log_u", "log_mass"]
    assert 0.0 < found["discount"] < 1.0
    assert found["concentration"] not in (1.0, 2.0)
    # The weight of a row by itself has the factor a (1 + u)^-(1 - d); under a concentration of 1 it has none.
    plain = sb.hierarchy(sb.Mixture(likelihood=GAUSSIAN, process=sb.DirichletProcess(1.0)), X)
    prior = tree.log_weights[: len(X)] - plain.log_weights[: len(X)]
    expected = found["log_mass"] - (1.0 - found["discount"]) * np.logaddexp(0.0, found["log_u"])
    assert prior == pytest.approx(np.full(len(X), expected), abs=1e-9)
    assert tree.insert(X[:2]).hyperparameters == found


def test_trials_do_not_drift_to_large_concentrations():
    rows = np.random.default_rng(5).normal(size=(6, 2))
    model = sb.Mixture(likelihood=GAUSSIAN, process=sb.DirichletProcess(sb.Gamma(1, 1)))
    tree = sb.hierarchy(model, rows, n_trials=1000)
    k = len(set(tree.cut("map").tolist()))
    grid = np.linspace(0.01, 30, 3000)
    best = grid[np.argmax(k * np.log(grid) + gammaln(grid) - gammaln(grid + 6) - grid)]
    assert tree.hyperparameters["concentration"] == pytest.approx(best, abs=1.0)


def test_columns_that_the_model_does_not_see_are_named():
    rows = np.column_stack([X, np.ones(len(X))])
    model = sb.Mixture(likelihood=sb.Gaussian(prior="rule"))
    with pytest.warns(sb.SupportWarning, match="column 2 is constant"):
        sb.hierarchy(model, rows)
    with pytest.warns(sb.SupportWarning, match="column 2 is constant"):
        sb.sample(model, rows, draws=2, warmup=0, chains=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sb.hierarchy(model, X)


@pytest.mark.parametrize(
    ("likelihood", "process", "said"),
    [
        (sb.SphericalGaussian(base="product"), sb.DirichletProcess(), r'SphericalGaussian\(base="product"\)'),
        (sb.Gaussian(), sb.FiniteDirichlet(3), "a hierarchy under FiniteDirichlet"),
        (sb.Gaussian(), sb.MixtureOfFiniteMixtures(), "a hierarchy under MixtureOfFiniteMixtures"),
        (sb.Gaussian(), sb.PitmanYor(0.3, concentration=-0.1), "a hierarchy under PitmanYor"),
    ],
)
def test_models_are_refused_before_a_fit(monkeypatch, likelihood, process, said):
    def never(*_, **__):
        raise AssertionError("a fit was begun")

    monkeypatch.setattr("stickbreak._core.estimate", never)
    model = sb.Mixture(likelihood=likelihood, process=process)
    with pytest.raises(sb.NotSupported, match=said):
        sb.hierarchy(model, X)
    if isinstance(likelihood, sb.SphericalGaussian):
        with pytest.raises(sb.NotSupported, match=said):
            sb.sample(model, X, draws=2)
    with pytest.raises(sb.InvalidArgument, match="incremental"):
        sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian()), np.arange(32_770.0).reshape(-1, 2))


def test_too_many_rows_for_all_pairs_are_refused():
    with pytest.raises(sb.InvalidArgument, match="incremental") as caught:
        sb.hierarchy(MODEL, np.zeros((16_385, 2)))
    assert caught.value.argument == "method"


@pytest.mark.parametrize(
    "process", [sb.FiniteDirichlet(3), sb.PitmanYor(0.5, concentration=-0.2), sb.MixtureOfFiniteMixtures()]
)
def test_processes_without_product_form_are_refused(process):
    with pytest.raises(sb.NotSupported):
        sb.hierarchy(sb.Mixture(likelihood=GAUSSIAN, process=process), X)


@pytest.mark.parametrize(
    ("given", "name"), [({"method": "ward"}, "method"), ({"n_trials": 0}, "n_trials"), ({"seed": -1}, "seed")]
)
def test_bad_arguments_are_named(given, name):
    with pytest.raises(sb.InvalidArgument) as caught:
        sb.hierarchy(MODEL, X, **given)
    assert caught.value.argument == name


def test_likelihoods_without_a_closed_marginal_are_refused():
    with pytest.raises(sb.NotSupported):
        sb.hierarchy(sb.Mixture(likelihood=sb.SphericalGaussian(base="product")), X)
    with pytest.raises(sb.InvalidArgument):
        sb.hierarchy(MODEL, X).cut("ward")


def test_the_command_line_names_a_hierarchy(tmp_path, capsys):
    from stickbreak.cli.commands import program

    sb.hierarchy(MODEL, X).save(tmp_path / "tree.safetensors")
    assert program.main(["info", str(tmp_path / "tree.safetensors")], standalone_mode=False) == 1
    assert "a hierarchy" in capsys.readouterr().err
