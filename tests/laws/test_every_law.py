"""Laws of every likelihood under every process: mathematics 7, numbers 2, 3, 10 to 13, 15 and 19.

`test_laws_of_*.py` have the same of Gaussians with a full covariance, on data drawn by hypothesis.
"""

import itertools

import numpy as np
import pytest
from scipy.special import betaln

import stickbreak as sb
from cases import START, Case, fit_from, flat, globals_of, make_case, passes, replaced
from kinds import LIKELIHOODS, PROCESSES, every_likelihood, every_process
from oracles import engines, evidence
from oracles import variational as oracle
from oracles.models import Array


def same_size(case: Case, process: str, n_components: int) -> sb.Mixture:
    """Return the model of a case with another number of components, if the process fixes the number."""
    if process == "finite":
        finite = sb.FiniteDirichlet(n_components=n_components, concentration=case.model.process.concentration)
        return sb.Mixture(likelihood=case.model.likelihood, process=finite)
    return case.model


@every_likelihood
@every_process
def test_globals_are_a_maximum(likelihood: str, process: str) -> None:
    """Number 2: any other components and weights are worse."""
    case = make_case(1, likelihood=likelihood, process=process, weighted=True)
    fit = fit_from(case, START)
    state = globals_of(fit, case.weights.sum())
    start = engines.with_tail(case.responsibilities, case.mixture, case.n_components)

    def general(naturals: list[Array], eta: Array) -> float:
        return oracle.general_elbo(case.rows, start, case.mixture, oracle.Globals(naturals, eta), case.weights)

    slack = 1e-10 * (abs(fit.elbo) + case.scale)
    other = make_case(2, likelihood=likelihood, process=process).responsibilities[:, 0]
    moves = oracle.global_step(case.rows, np.column_stack([other] * 5), case.mixture).naturals[0]
    for k in range(case.n_components):
        for factor in (0.02, 0.2):
            moved = list(state.naturals)
            moved[k] = (1 - factor) * moved[k] + factor * moves
            assert general(moved, state.eta) < fit.elbo + slack
    for factor in (0.9, 1.1):
        assert general(state.naturals, state.eta * factor) < fit.elbo + slack


# Number 3


@every_likelihood
@every_process
@pytest.mark.one_in(3)
def test_evidence_is_not_exceeded(likelihood: str, process: str) -> None:
    """No bound is above log p(X), summed over all partitions or labellings; of six rows it is not far below.

    Blei and Jordan's truncation bounds the evidence of the truncated process, and not the other: see `test_errata.py`.
    """
    case = make_case(3, n=6, dimension=2, n_components=3, likelihood=likelihood, process=process)
    exact = evidence.log_evidence(case.rows, case.mixture.likelihood, case.mixture.process, 3)
    rng = np.random.default_rng(3)
    reached = []
    for start in (case.responsibilities, np.eye(3)[rng.integers(3, size=6)], np.full((6, 3), 1 / 3)):
        for sparsity in (1, 2, None):
            fit = fit_from(case, passes(30, sparsity), init=start)
            reached += [fit.elbo, fit.evaluate(case.rows)]
    assert max(reached) <= exact + 1e-9
    assert max(reached) > exact - 10.0


@pytest.mark.parametrize("likelihood", [name for name in LIKELIHOODS if name != "spherical_product"])
def test_one_component_is_the_marginal_likelihood(likelihood: str) -> None:
    """Numbers 15 and 19: a finite mixture of one has log m(X) and nothing else, nested sticks a stick more."""
    case = make_case(4, n=12, n_components=1, likelihood=likelihood, process="finite")
    exact = case.mixture.likelihood.log_marginal(case.rows)
    assert fit_from(case).elbo == pytest.approx(exact, rel=1e-10, abs=1e-10 * case.scale)
    case = make_case(4, n=12, n_components=1, likelihood=likelihood, process="nested")
    concentration = case.model.process.concentration
    stick = betaln(13, concentration) - betaln(1, concentration)
    exact = case.mixture.likelihood.log_marginal(case.rows) + stick
    assert fit_from(case).elbo == pytest.approx(exact, rel=1e-10, abs=1e-10 * case.scale)


def test_one_component_of_the_product_measure_is_below_the_marginal_likelihood() -> None:
    """It has no closed marginal likelihood; its bound is below the one by quadrature, and within a nat of it."""
    case = make_case(4, n=6, n_components=1, likelihood="spherical_product", process="finite")
    exact = case.mixture.likelihood.log_marginal(case.rows)
    assert exact - 1.0 < fit_from(case).elbo < exact


# Numbers 10 to 13


@every_likelihood
@every_process
def test_twice_is_weight_two(likelihood: str, process: str) -> None:
    """Number 10."""
    case = make_case(5, n=30, likelihood=likelihood, process=process, weighted=True)
    weighted = replaced(case, weights=2.0 * case.weights)
    twice = replaced(
        case,
        rows=np.repeat(case.rows, 2, axis=0),
        responsibilities=np.repeat(case.responsibilities, 2, axis=0),
        weights=np.repeat(case.weights, 2),
    )
    for algorithm in (START, passes(3, 2)):
        fit, other = fit_from(weighted, algorithm), fit_from(twice, algorithm)
        assert other.elbo == pytest.approx(fit.elbo, rel=1e-9, abs=1e-9 * case.scale)
        np.testing.assert_allclose(other.counts, fit.counts, rtol=1e-7, atol=1e-9)
        for name, values in flat(fit.components).items():
            np.testing.assert_allclose(flat(other.components)[name], values, rtol=1e-6, atol=1e-7)


@every_likelihood
@every_process
def test_empty_component_at_the_end(likelihood: str, process: str) -> None:
    """Number 11: nested truncations at a fixed concentration do not change; otherwise the bound falls.

    The amount is that of the prior of the weights alone, and a component that holds nothing is at its prior.
    """
    case = make_case(6, likelihood=likelihood, process=process, weighted=True)
    longer = np.column_stack([case.responsibilities, np.zeros(len(case.rows))])
    fit = fit_from(case, START)
    other = fit_from(replaced(case, responsibilities=longer, model=same_size(case, process, 5)), START)
    counts, prior = case.weights @ longer, case.mixture.process
    if prior.has_tail:
        change = prior.collapsed(np.append(counts, 0.0)) - prior.collapsed(np.append(counts[:-1], 0.0))
    else:
        change = prior.collapsed(counts) - prior.collapsed(counts[:-1])
    if PROCESSES[process].nested:
        assert change == pytest.approx(0.0, abs=1e-12)
    else:
        assert change < -1e-3
    assert other.elbo - fit.elbo == pytest.approx(change, abs=1e-9 * (abs(fit.elbo) + case.scale))
    prior = globals_of(other, case.weights.sum()).naturals[-1]
    np.testing.assert_allclose(prior, case.mixture.likelihood.prior_natural, rtol=1e-12, atol=1e-12)
    assert other.counts[-1] == 0.0


def test_empty_component_of_truncated_sticks_costs_what_the_last_stick_takes() -> None:
    """Number 11 for 2b, in closed form: log B(1 + N_K, concentration) / B(1, concentration)."""
    case = make_case(7, process="stick")
    longer = np.column_stack([case.responsibilities, np.zeros(len(case.rows))])
    change = fit_from(replaced(case, responsibilities=longer)).elbo - fit_from(case).elbo
    last, concentration = case.responsibilities[:, -1].sum(), case.model.process.concentration
    expected = betaln(1 + last, concentration) - betaln(1, concentration)
    assert change == pytest.approx(expected, rel=1e-9)
    nested = sb.Mixture(likelihood=case.model.likelihood, process=sb.DirichletProcess(concentration=concentration))
    gap = fit_from(case).elbo - fit_from(replaced(case, model=nested)).elbo
    assert gap == pytest.approx(-expected, rel=1e-9)


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("process", ["nested", "tail", "sticks_tail"])
def test_empty_component_elsewhere(process: str, place: int) -> None:
    """Number 11: inserted before a mass M it costs log B(a, b) / B(a, b + M), log (b + M) / b where a = 1."""
    case = make_case(8, process=process)
    widened = np.insert(case.responsibilities, place, 0.0, axis=1)
    behind, (a, b) = (
        case.responsibilities[:, place:].sum(),
        case.model.process.sticks or (1.0, case.model.process.concentration),
    )
    change = fit_from(replaced(case, responsibilities=widened)).elbo - fit_from(case).elbo
    assert change == pytest.approx(betaln(a, b + behind) - betaln(a, b), rel=1e-9)


@pytest.mark.parametrize("process", [name for name in PROCESSES if name != "gamma_stick"])
def test_best_order_of_components(process: str) -> None:
    """Number 12: falling counts are the best order of sticks, and no order matters to a finite mixture.

    Of Blei and Jordan's truncation only at concentration 1: its last component takes what is left over.
    """
    concentration = 1.0 if process == "stick" else None
    case = make_case(9, n_components=3, process=process, concentration=concentration)
    order = np.argsort(-case.responsibilities.sum(0), kind="stable")
    bounds = {
        each: fit_from(replaced(case, responsibilities=case.responsibilities[:, list(each)])).elbo
        for each in itertools.permutations(range(3))
    }
    slack = 1e-11 * case.scale
    if case.mixture.process.ordered:
        assert bounds[tuple(order)] == pytest.approx(max(bounds.values()), rel=1e-13)
        assert min(bounds.values()) < max(bounds.values()) - slack
    else:
        assert max(bounds.values()) - min(bounds.values()) < slack


@every_likelihood
@pytest.mark.parametrize("process", [name for name in PROCESSES if "stick" not in name])
def test_labels_of_components(likelihood: str, process: str) -> None:
    """Number 13: passes from permuted components end at the same place.

    In a finite mixture with the components permuted; under sticks, which are put in order before the first pass and
    after each, with the same components in the same places.
    """
    case = make_case(10, likelihood=likelihood, process=process)
    order = np.random.default_rng(10).permutation(case.n_components)
    fit = fit_from(case, passes(4))
    other = fit_from(replaced(case, responsibilities=case.responsibilities[:, order]), passes(4))
    places = order if process == "finite" else np.arange(case.n_components)
    assert other.elbo == pytest.approx(fit.elbo, rel=1e-9, abs=1e-9 * case.scale)
    np.testing.assert_allclose(other.counts, fit.counts[places], rtol=1e-6, atol=1e-8)
    for name, values in flat(fit.components).items():
        np.testing.assert_allclose(flat(other.components)[name], values[places], rtol=1e-5, atol=1e-6)
