"""Base measures estimated by evidence: at the end of a fit no other base measure has more (mathematics 10)."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

import stickbreak as sb
from kinds import LIKELIHOODS, kind_of_likelihood, make_rows, with_holes
from oracles.models import Array, Likelihood
from oracles.quadrature import gauss_legendre
from stickbreak.model.specification import REGISTRY
from stickbreak.testing.generators import positive_definite
from stickbreak.testing.local_step import responsibilities_of

GUARD = 0.001
# Parameters of which all columns share one value.
SHARED = ("pseudo_counts", "successes", "failures")
KINDS = [
    "gaussian",
    "zero_mean_gaussian",
    "diagonal",
    "spherical",
    "spherical_product",
    "known_covariance",
    "multinomial",
    "bernoulli",
    "categorical",
    "poisson",
    "negative_binomial",
]

# Likelihoods tried with missing values too.
HOLED = ["diagonal", "spherical", "known_covariance", "bernoulli", "poisson", "negative_binomial"]


def default(kind: str, dimension: int, **given: Any) -> Any:
    """A likelihood of this kind with its default parameters."""
    arguments: dict[str, Any] = {}
    if kind == "known_covariance":
        arguments["covariance"] = positive_definite(np.random.default_rng(5), dimension)
    if kind == "spherical_product":
        arguments["base"] = "product"
    if "resolution" in REGISTRY["likelihoods"][LIKELIHOODS[kind].public]["parameters"]:
        arguments["resolution"] = 0
    return getattr(sb, LIKELIHOODS[kind].public)(**(arguments | given))


def free(likelihood: Any) -> list[str]:
    """The parameters that evidence decides."""
    rules = REGISTRY["likelihoods"][type(likelihood).__name__]["parameters"]
    return [name for name, rule in rules.items() if rule["estimated"]]


def to_oracle(likelihood: Any, *, with_missing: bool = False) -> Likelihood:
    kind = LIKELIHOODS[kind_of_likelihood(likelihood)]
    if with_missing:
        assert kind.with_holes is not None
        return kind.with_holes(likelihood)
    return kind.to_oracle(likelihood)


def guard(likelihood: Any, start: Any) -> float:
    """Return the guard of a base measure (mathematics 10.1); of overdispersed counts that of their rates (10.4)."""
    if isinstance(likelihood, sb.NegativeBinomial):
        likelihood, start = (sb.Poisson(each.shape, rate=each.rate) for each in (likelihood, start))
    return float(GUARD * to_oracle(likelihood).kl(to_oracle(start).prior_natural))


class Objective:
    """The part of the objective that depends on the base measure, as a function of free numbers."""

    def __init__(self, fit: sb.Fit, start: Any, rows: Array) -> None:
        self.likelihood, self.names = fit.model.likelihood, free(fit.model.likelihood)
        self.with_missing = bool(np.isnan(rows).any())
        self.start, self.rows, self.table = start, rows, responsibilities_of(fit, rows)

    def of(self, likelihood: Any) -> float:
        """Return the evidence plus the guard of a base measure."""
        oracle_likelihood = to_oracle(likelihood, with_missing=self.with_missing)
        sums = self.table.T @ oracle_likelihood.sufficient_statistics(self.rows)
        gain = sum(oracle_likelihood.gain(statistics) for statistics in sums)
        return float(gain + oracle_likelihood.log_base_measure(self.rows).sum() - guard(likelihood, self.start))

    def best(self) -> Any:
        """Return the negative of the best objective that a general optimiser finds from here."""
        return optimize.minimize(lambda packed: -self.of(self.unpack(packed)), self.pack(), method="BFGS")

    def pack(self) -> Array:
        parts = []
        for name in self.names:
            value = np.asarray(getattr(self.likelihood, name))
            if name == "dof":
                parts.append(np.log(np.atleast_1d(value - self.dimension + 1)))
            elif name == "scale":
                factor = np.linalg.cholesky(value / self.likelihood.dof)
                below = np.tril_indices(self.dimension, -1)
                parts += [np.log(np.diag(factor)), factor[below]]
            else:
                parts.append(np.log(np.atleast_1d(value)[:1] if name in SHARED else np.atleast_1d(value)))
        return np.concatenate(parts)

    @property
    def dimension(self) -> int:
        return len(self.likelihood.scale)

    def unpack(self, packed: Array) -> Any:
        found: dict[str, Any] = {}
        values = list(packed)

        def take(number: int) -> Array:
            taken = np.array(values[:number])
            del values[:number]
            return taken

        for name in self.names:
            size = 1 if name in SHARED else np.size(getattr(self.likelihood, name))
            if name == "dof":
                # Not fewer than one for each column.
                found[name] = float(max(np.exp(take(1)[0]), 1.0) + self.dimension - 1)
            elif name == "scale":
                factor = np.diag(np.exp(take(self.dimension)))
                factor[np.tril_indices(self.dimension, -1)] = take(self.dimension * (self.dimension - 1) // 2)
                found[name] = factor @ factor.T * found.get("dof", self.likelihood.dof)
            else:
                value = np.exp(take(size))
                if name in SHARED:
                    value = np.full(np.shape(getattr(self.likelihood, name)), value[0])
                if name == "shape" and "Gaussian" in type(self.likelihood).__name__:
                    value = np.maximum(value, 0.5)
                found[name] = float(value[0]) if np.ndim(getattr(self.likelihood, name)) == 0 else value
        return dataclasses.replace(self.likelihood, **found)


def fitted(
    kind: str,
    seed: int,
    *,
    missing: bool = False,
    n: int = 300,
    k: int = 6,
    process: Any = None,
    n_components: int | None = None,
    **given: Any,
) -> tuple[sb.Fit, Any, Array]:
    """A fit that has settled, the likelihood by the rule, and the rows."""
    rng = np.random.default_rng(seed)
    rows = make_rows(kind if kind != "spherical_product" else "spherical", rng, n, 3, k)
    if kind == "negative_binomial":
        # Poisson counts have no finite dispersion.
        rows = rng.poisson(rows * rng.gamma(2.0, 0.5, rows.shape)).astype(float)
    rows = with_holes(rng, rows) if missing else rows
    likelihood = default(kind, 3, **given)
    algorithm = sb.Full(moves=(), sparsity=None, margin=None, max_passes=3000, tol=1e-15)
    word = "marginalize" if missing else "error"
    model = sb.Mixture(likelihood=likelihood, process=process or sb.DirichletProcess())
    fit = sb.fit(model, rows, algorithm, init="kmeans++", n_components=n_components or k, seed=seed, missing=word)
    ruled = sb.Mixture(likelihood=dataclasses.replace(likelihood, prior="rule"))
    start = sb.fit(ruled, rows, sb.Full(max_passes=0, moves=()), init=np.zeros(n, int), missing=word)
    return fit, start.model.likelihood, rows


@pytest.mark.parametrize(("kind", "missing"), [*((kind, False) for kind in KINDS), *((kind, True) for kind in HOLED)])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.one_in(3)
def test_no_other_base_measure_has_more_evidence(kind: str, missing: bool, seed: int) -> None:
    fit, start, rows = fitted(kind, seed, missing=missing)
    objective = Objective(fit, start, rows)
    here = objective.of(fit.model.likelihood)
    best = objective.best()
    assert -best.fun <= here + 1e-6 * (1 + abs(here)), objective.unpack(best.x)
    # It is far from its start, so the comparison is not trivial.
    assert here > objective.of(start) + 1.0


def newton_gains(function: Callable[[Array], float], at: Array, step: float = 1e-3) -> Array:
    """What a Newton step of each number alone, and of all together, would add, nats."""
    steps = step * np.eye(len(at))
    rises = np.array([function(at + one) - function(at - one) for one in steps])
    curves = np.array(
        [
            [
                sum(sign * other * function(at + sign * one + other * two) for sign in (1, -1) for other in (1, -1))
                for two in steps
            ]
            for one in steps
        ]
    )
    gradient, hessian = rises / (2 * step), curves / (4 * step**2)
    together = -0.5 * gradient @ np.linalg.solve(hessian, gradient)
    return np.append(-0.5 * gradient**2 / np.diag(hessian), together)


@pytest.mark.parametrize(("kind", "missing"), [*((kind, False) for kind in KINDS), *((kind, True) for kind in HOLED)])
def test_a_newton_step_gains_nothing_more(kind: str, missing: bool) -> None:
    """A guard that is too weak or too strong by a factor, such as the number of columns or levels, leaves a gain."""
    fit, start, rows = fitted(kind, 7, missing=missing, n=40, k=2)
    objective = Objective(fit, start, rows)
    gains = newton_gains(lambda packed: objective.of(objective.unpack(packed)), objective.pack())
    assert (np.abs(gains) < 1e-8).all(), dict(zip([*objective.names, "all"], gains, strict=False))


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_the_bound_and_the_guard(kind: str) -> None:
    fit, start, _ = fitted(kind, 2)
    cost = guard(fit.model.likelihood, start)
    assert fit.objective == pytest.approx(fit.elbo - cost, abs=1e-7 * (1 + cost))
    assert fit.history[-1].objective == pytest.approx(fit.objective, rel=1e-12)
    rises = np.diff([record.objective for record in fit.history])
    assert (rises >= -1e-9 * abs(fit.elbo)).all()


@pytest.mark.parametrize(("kind", "missing"), [*((kind, False) for kind in KINDS), *((kind, True) for kind in HOLED)])
def test_under_a_tail_the_objective_rises(kind: str, missing: bool) -> None:
    """One component of six clusters: the tail has rows, and its part of the bound changes with the base measure."""
    process = sb.DirichletProcess(100.0, truncation="tail")
    fit, start, rows = fitted(kind, 2, missing=missing, process=process, n_components=1)
    assert fit.tail_count > 5.0
    assert fit.model.likelihood != start
    rises = np.diff([record.objective for record in fit.history])
    assert (rises >= -1e-9 * abs(fit.elbo)).all()
    # Scores of rows, and not the statistics of the tail.
    assert fit.evaluate(rows) == pytest.approx(fit.elbo, rel=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if len(free(default(kind, 3))) > 1])
@pytest.mark.one_in(3)
def test_what_is_given_stays_and_the_rest_is_best(kind: str) -> None:
    for name in free(default(kind, 3)):
        value = {"dof": 7.5, "scale": np.diag([0.5, 1.0, 2.0])}.get(name, 0.7)
        fit, start, rows = fitted(kind, 3, **{name: value})
        assert np.array_equal(
            np.broadcast_to(value, np.shape(getattr(fit.model.likelihood, name))), getattr(fit.model.likelihood, name)
        )
        objective = Objective(fit, start, rows)
        objective.names.remove(name)
        here = objective.of(fit.model.likelihood)
        best = objective.best()
        assert -best.fun <= here + 1e-6 * (1 + abs(here)), (name, objective.unpack(best.x))


@pytest.mark.parametrize("kind", KINDS)
def test_the_rule_and_point_estimates_estimate_nothing(kind: str) -> None:
    fit, start, rows = fitted(kind, 4, prior="rule")
    assert fit.model.likelihood == start
    assert fit.objective == fit.elbo
    assert all(record.base_measure_gain == 0 for record in fit.history)
    by_points = sb.Full(moves=(), max_passes=5, objective="ml")
    points = sb.fit(sb.Mixture(likelihood=default(kind, 3)), rows, by_points, init="kmeans++", n_components=3)
    assert dataclasses.replace(points.model.likelihood, prior="rule") == start


@pytest.mark.parametrize("kind", ["gaussian", "diagonal", "poisson", "negative_binomial"])
def test_a_saved_fit_goes_on_estimating(kind: str, tmp_path: Any) -> None:
    fit, _, _ = fitted(kind, 5)
    fit.save(tmp_path / "fit.sbk")
    loaded = sb.load(tmp_path / "fit.sbk")
    assert (loaded.objective, loaded.model.likelihood) == (fit.objective, fit.model.likelihood)
    more = make_rows(kind, np.random.default_rng(6), 200, 3, 3)
    updated, again = fit.update(more, max_passes=3), loaded.update(more, max_passes=3)
    assert updated.elbo == again.elbo
    assert updated.model.likelihood == again.model.likelihood != fit.model.likelihood


def test_one_component_has_a_finite_base_measure() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 2))
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(moves=(), max_passes=500), n_components=1)
    estimated = fit.model.likelihood
    assert estimated.mean_precision < (1 + GUARD) * 0.1 / GUARD
    assert estimated.dof < 1e9
    ruled = sb.fit(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), rows, sb.Full(moves=()), n_components=1)
    new = np.random.default_rng(1).standard_normal((4000, 2))
    assert fit.log_predictive(new).mean() > ruled.log_predictive(new).mean() - 0.1


@pytest.mark.parametrize("likelihood", [sb.Gaussian, sb.DiagonalGaussian, sb.SphericalGaussian])
def test_the_bound_of_rounded_rows_is_one_of_their_cells(likelihood: Any) -> None:
    """log p of the cells over their volumes, by quadrature: one column, one component, four rows."""
    given = {"Gaussian": {"dof": 3.0, "scale": [[2.0]]}}.get(likelihood.__name__, {"shape": 1.5, "rate": 1.0})
    model = likelihood(mean=[0.0], mean_precision=0.5, resolution=0.25, **given)
    rows = np.array([[0.0], [1.0], [1.0], [3.0]])
    only = sb.Mixture(likelihood=model, process=sb.FiniteDirichlet(n_components=1))
    fit = sb.fit(only, rows, sb.Full(moves=()))

    mean, width = (each[:, None] for each in gauss_legendre(-10.0, 10.0, 25))
    # In the square root of the precision the integrand is smooth at zero too.
    root, step = gauss_legendre(0.0, 30.0**0.5, 15)
    share = np.ones(np.broadcast_shapes(mean.shape, root.shape))
    for row in rows[:, 0]:
        share *= (stats.norm.cdf((row + 0.125 - mean) * root) - stats.norm.cdf((row - 0.125 - mean) * root)) / 0.25
    prior = stats.gamma.pdf(root**2, 1.5) * stats.norm.pdf(mean, 0.0, (0.5**0.5 * root) ** -1)
    evidence = (share * prior * width * step * 2 * root).sum()
    assert fit.elbo <= np.log(evidence) + 1e-9
    assert fit.elbo > np.log(evidence) - 0.2


def test_columns_on_a_grid_do_not_reward_points() -> None:
    """Flags and rounded columns: what is estimated stays away from zero, and clusters are found."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=600)
    rows = rng.normal(size=(3, 4))[labels] * 4 + rng.normal(size=(600, 4))
    rows = np.column_stack([np.round(rows, 1), rng.integers(2, size=600)])
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows)
    estimated = fit.model.likelihood
    assert np.allclose(estimated.resolution, [0.1, 0.1, 0.1, 0.1, 1.09], rtol=0.02)
    assert np.linalg.eigvalsh(estimated.scale).min() > 0
    assert fit.n_components <= 6
