"""Objectives "map" and "ml" and plug-in densities of every likelihood against the oracle (mathematics 1.8, 2g and 6.1).

Estimates, objective and densities of the oracle come from SciPy; see `oracles/points.py`.
"""

from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import Case, fit_from, flat, globals_of, make_case
from kinds import LIKELIHOODS, every_likelihood
from oracles import point_engine
from oracles.point_engine import Objective
from oracles.points import points_of

OBJECTIVES = pytest.mark.parametrize("objective", ["map", "ml"])
# Priors of the weights that have a mode: a concentration of at least 1 for sticks, of at least K for a finite mixture.
PROCESSES = {"nested": 1.6, "stick": 1.6, "finite": 5.5}
of_process = pytest.mark.parametrize("process", PROCESSES)


def point_case(seed: int, likelihood: str, process: str, **options: Any) -> Case:
    """Return a case whose priors have a mode, with many rows and every word or feature in each component."""
    options = {"n": 120, "weighted": True} | options
    return make_case(
        seed, likelihood=likelihood, process=process, with_mode=True, concentration=PROCESSES[process], **options
    )


def algorithm(objective: str, max_passes: int, sparsity: int | None = None) -> sb.Full:
    return sb.Full(objective=objective, sparsity=sparsity, margin=None, max_passes=max_passes, tol=0.0)


def fit_points(case: Case, objective: str, max_passes: int, sparsity: int | None = None) -> sb.Fit:
    return fit_from(case, algorithm(objective, max_passes, sparsity))


def expected_of(
    case: Case, objective: Objective, max_passes: int, sparsity: int | None = None
) -> list[point_engine.PointState]:
    return point_engine.fit_points(
        case.rows, case.responsibilities, case.mixture, objective, max_passes, sparsity, case.weights
    )


def by_weight(weights: np.ndarray) -> np.ndarray:
    """Places of components in falling order of weight.

    Point objectives mostly do not depend on the order, which is then left to rounding.
    """
    return np.argsort(-np.asarray(weights), kind="stable")


def assert_points(fit: sb.Fit, state: point_engine.PointState, rtol: float) -> None:
    mine, theirs = by_weight(fit.weights), by_weight(state.weights)
    names = state.points[0].keys()
    assert set(names) <= set(flat(fit.point_estimates))
    for name in names:
        expected = np.array([state.points[k][name] for k in theirs])
        np.testing.assert_allclose(flat(fit.point_estimates)[name][mine], expected, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(fit.weights[mine], state.weights[theirs], rtol=rtol)


@every_likelihood
@of_process
@OBJECTIVES
def test_one_maximisation(likelihood: str, process: str, objective: Objective) -> None:
    """Estimates, weights and the value of the objective from given responsibilities."""
    case = point_case(1, likelihood, process)
    fit = fit_points(case, objective, 0)
    state = expected_of(case, objective, 0)[0]
    assert fit.bound == objective
    assert_points(fit, state, 1e-8)
    assert fit.elbo == pytest.approx(state.objective, rel=1e-9, abs=1e-9 * case.scale)


@every_likelihood
@of_process
@OBJECTIVES
@pytest.mark.parametrize("sparsity", [2, None])
@pytest.mark.one_in(3)
def test_pass_by_pass(likelihood: str, process: str, objective: Objective, sparsity: int | None) -> None:
    case = point_case(2, likelihood, process)
    fit = fit_points(case, objective, 4, sparsity)
    states = expected_of(case, objective, 4, sparsity)
    values = [record.elbo for record in fit.history]
    np.testing.assert_allclose(values, [state.objective for state in states[1:]], rtol=1e-8, atol=1e-8 * case.scale)
    assert_points(fit, states[-1], 1e-5)


@every_likelihood
@of_process
@OBJECTIVES
def test_responsibilities_and_densities(likelihood: str, process: str, objective: Objective) -> None:
    """The local step uses log pi + log p(x | phi), and the predictive density is always the plug-in one."""
    case = point_case(3, likelihood, process)
    fit = fit_points(case, objective, 2)
    state = expected_of(case, objective, 2)[-1]
    scores = point_engine.objective_scores(case.rows, case.mixture, objective, state.weights, state.points)
    responsibilities = point_engine.top_l_responsibilities(scores)[:, by_weight(state.weights)]
    found = fit.predict_proba(case.rows)[:, by_weight(fit.weights)]
    np.testing.assert_allclose(found, responsibilities, rtol=1e-5, atol=1e-8)
    expected = point_engine.plug_in_log_density(case.rows, case.mixture, state.weights, state.points)
    np.testing.assert_allclose(fit.log_predictive(case.rows), expected, rtol=1e-6, atol=1e-6)


@every_likelihood
@of_process
@OBJECTIVES
def test_objectives_never_fall(likelihood: str, process: str, objective: Objective) -> None:
    """At any sparsity, in batches too; for maximum likelihood the ridge of variances is a part of the objective."""
    case = point_case(4, likelihood, process)
    settings = {"objective": objective, "margin": None, "max_passes": 15, "tol": 0.0}
    for chosen in (
        sb.Full(sparsity=None, **settings),
        sb.Full(sparsity=2, **settings),
        sb.Memoized(batches=4, sparsity=2, **settings),
    ):
        fit = fit_from(case, chosen)
        values = [record.elbo for record in fit.history]
        slack = 1e-9 * (np.abs(values) + case.scale)
        assert (np.diff(values) >= -slack[1:]).all()
        assert fit.evaluate(case.rows, sample_weight=case.weights) >= fit.elbo - slack[-1]


@pytest.mark.parametrize("likelihood", [name for name, kind in LIKELIHOODS.items() if kind.domain == "real"])
def test_maximum_likelihood_of_rows_on_a_line_is_finite(likelihood: str) -> None:
    """Without the ridge the covariance would be singular and the objective infinite."""
    case = point_case(6, likelihood, "finite", weighted=False)
    line = np.outer(case.rows[:, 0], [1.0, -2.0, 0.5])
    fit = sb.fit(case.model, line, algorithm("ml", 3), init=case.responsibilities, progress=False)
    assert np.isfinite([record.elbo for record in fit.history]).all()
    assert np.isfinite(fit.log_predictive(line)).all()


@every_likelihood
@pytest.mark.parametrize("process", ["nested", "stick", "tail", "pitman_yor", "finite"])
def test_plug_in_density_of_a_variational_fit(likelihood: str, process: str) -> None:
    """Mathematics 6.1: weights E w_k that sum to one over the K components, and posterior means for the parameters."""
    case = make_case(7, n=80, likelihood=likelihood, process=process)
    fit = fit_from(case, sb.Full(sparsity=None, margin=None, max_passes=2, tol=0.0))
    state = globals_of(fit, float(len(case.rows)))
    points_of_kind = points_of(case.mixture.likelihood)
    points = [points_of_kind.plug_in(natural) for natural in state.naturals]
    for name in points[0]:
        expected = np.array([point[name] for point in points])
        np.testing.assert_allclose(flat(fit.point_estimates)[name], expected, rtol=1e-7, atol=1e-8)
    weights = case.mixture.process.expected_weights(state.eta)[:-1]
    expected = point_engine.plug_in_log_density(case.rows, case.mixture, weights, points)
    np.testing.assert_allclose(fit.log_predictive(case.rows, plug_in=True), expected, rtol=1e-7, atol=1e-7)


@every_likelihood
@OBJECTIVES
def test_point_fits_are_saved_and_sampled(likelihood: str, objective: Objective, tmp_path: Any) -> None:
    case = point_case(8, likelihood, "nested", weighted=False)
    fit = fit_points(case, objective, 3)
    path = tmp_path / "model.safetensors"
    fit.save(path)
    again = sb.load(path)
    assert again.bound == fit.bound == objective
    assert again.elbo == fit.elbo
    np.testing.assert_array_equal(again.log_predictive(case.rows), fit.log_predictive(case.rows))
    for name, values in flat(fit.point_estimates).items():
        np.testing.assert_array_equal(flat(again.point_estimates)[name], values)
    assert np.isfinite(fit.sample(20, seed=1)).all()


# Refusals


def test_map_needs_priors_with_a_mode() -> None:
    """Densities that are infinite at the edge have no mode; the error names what to change."""
    case = make_case(9, concentration=0.5)
    for process in (
        sb.DirichletProcess(concentration=0.5),
        sb.DirichletProcess(concentration=0.5, truncation="stick"),
        sb.FiniteDirichlet(n_components=4, concentration=1.0),
    ):
        model = sb.Mixture(likelihood=case.model.likelihood, process=process)
        with pytest.raises(sb.NotSupported, match="concentration"):
            sb.fit(model, case.rows, algorithm("map", 1), init=case.responsibilities, progress=False)


@pytest.mark.parametrize("process", ["pitman_yor", "tail", "gamma_nested", "gamma_stick"])
def test_map_is_refused_where_weights_have_no_mode(process: str) -> None:
    case = make_case(10, process=process)
    with pytest.raises(sb.NotSupported):
        fit_from(case, algorithm("map", 1))


@pytest.mark.parametrize("process", ["tail", "gamma_nested", "gamma_stick"])
def test_ml_is_refused_where_it_has_no_meaning(process: str) -> None:
    case = make_case(11, process=process)
    with pytest.raises(sb.NotSupported):
        fit_from(case, algorithm("ml", 1))


@pytest.mark.parametrize(
    ("likelihood", "arguments"),
    [
        ("multinomial", {"pseudo_counts": 0.5}),
        ("bernoulli", {"successes": 0.5, "failures": 2.0}),
        ("poisson", {"shape": 0.5, "rate": 1.0}),
    ],
)
def test_map_is_refused_where_parameters_have_no_mode(likelihood: str, arguments: dict[str, float]) -> None:
    case = point_case(12, likelihood, "nested")
    likelihood_without_mode = type(case.model.likelihood)(**arguments)
    model = sb.Mixture(likelihood=likelihood_without_mode, process=case.model.process)
    with pytest.raises(sb.InvalidArgument) as caught:
        sb.fit(model, case.rows, algorithm("map", 1), init=case.responsibilities, progress=False)
    assert caught.value.argument == next(iter(arguments))
