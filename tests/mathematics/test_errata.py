"""Errors of the papers, each shown beside what we compute: mathematics 9, numbers 1, 2, 6 and 10.

BJ is Blei and Jordan (2006), VDP Kurihara, Welling and Vlassis (2006), MO Hughes and Sudderth (2013).
"""

import numpy as np
import pytest
from scipy.special import logsumexp

import stickbreak as sb
from cases import START, fit_from, globals_of, make_case, passes, replaced
from kinds import make_process
from oracles import evidence
from oracles import variational as oracle
from oracles.models import NormalWishart, StickBreaking
from stickbreak.testing.local_step import summary_of


def test_erratum_1_the_tail_is_a_sum_of_exponentials() -> None:
    """VDP Eq. 6 prints S_{n,T+1} in the numerator of the tail's responsibility where exp S_{n,T+1} belongs.

    The tail's column is compared with 4000 components beyond K, each at the prior, summed one by one.
    """
    case = make_case(1, process="tail")
    concentration = case.model.process.concentration
    fit = fit_from(case, passes(3))
    state = globals_of(fit, len(case.rows))
    beyond = np.tile([1.0, concentration], (4000, 1))
    log_weights = StickBreaking(concentration).expected_log_weights(np.vstack([state.eta, beyond]))
    naturals = [*state.naturals, case.mixture.likelihood.prior_natural]
    expected = [case.mixture.likelihood.expected_log_likelihood(each, case.rows) for each in naturals]
    finite_scores = log_weights[: fit.n_components] + np.column_stack(expected[:-1])
    scores = log_weights[fit.n_components :] + np.asarray(expected[-1])[:, None]
    tail = logsumexp(scores, axis=1)
    exact = np.exp(tail - np.logaddexp(logsumexp(finite_scores, axis=1), tail))
    found = fit.predict_proba(case.rows, tail=True)[:, -1]
    np.testing.assert_allclose(found, exact, rtol=1e-9)
    assert found.min() > 0
    printed = scores[:, 0] / -np.expm1(-1 / concentration)
    assert (np.abs(printed - np.exp(tail)) > 1.0).all()


def test_erratum_2_what_is_left_over_is_taken_under_q() -> None:
    """VDP Eq. 7 takes the weights that are left over under the prior of the sticks; the density is then no density."""
    case = make_case(2, dimension=1, likelihood="gaussian", process="tail")
    concentration = case.model.process.concentration
    fit = fit_from(case, passes(3))
    assert fit.weights.sum() + fit.leftover_weight == pytest.approx(1.0, rel=1e-14)
    under_prior = (concentration / (1 + concentration)) ** fit.n_components
    printed = fit.weights.sum() + under_prior
    assert abs(printed - 1.0) > 1e-2
    # The line as tan of an angle: Student tails are long.
    angle = np.linspace(-np.pi / 2, np.pi / 2, 40_001)[1:-1]
    density = np.exp(fit.log_predictive(np.tan(angle)[:, None])) * (1 + np.tan(angle) ** 2)
    assert density.sum() * (angle[1] - angle[0]) == pytest.approx(1.0, abs=1e-6)


TWO_NEAR_ROWS = np.array([[0.0, 0.0], [0.05, 0.0]])
UNIT = {"mean": [0.0, 0.0], "mean_precision": 0.5, "dof": 4.0, "scale": np.eye(2)}


def one_component(process: str) -> sb.Fit:
    model = sb.Mixture(likelihood=sb.Gaussian(**UNIT), process=make_process(process, 1, 1.3))
    return sb.fit(model, TWO_NEAR_ROWS, START, init=np.zeros(2, int), progress=False)


def test_erratum_6_the_truncated_bound_may_exceed_the_evidence() -> None:
    """BJ's bound is one of the truncated process: of two near rows and one component it is above log p(X)."""
    likelihood = NormalWishart(np.zeros(2), 0.5, 4.0, np.eye(2))
    exact = evidence.log_evidence_dirichlet_process(TWO_NEAR_ROWS, likelihood, 1.3)
    truncated, nested = one_component("stick"), one_component("nested")
    assert exact == pytest.approx(-3.204, abs=5e-4)
    assert truncated.bound == "truncated_stick"
    assert truncated.elbo == pytest.approx(-2.805, abs=5e-4)
    assert truncated.elbo > exact
    assert nested.bound == "nested"
    assert nested.elbo < exact
    tail = one_component("tail")
    assert tail.bound == "tail"
    assert tail.elbo < exact


@pytest.mark.parametrize(("one", "other"), [("stick", "nested"), ("stick", "tail"), ("nested", "finite")])
def test_erratum_6_bounds_of_different_kinds_are_not_compared(one: str, other: str) -> None:
    with pytest.raises(sb.InvalidArgument):
        one_component(one).compare(one_component(other))
    assert one_component(one).compare(one_component(one)) == 0.0


@pytest.mark.parametrize("process", ["nested", "stick", "tail", "pitman_yor"])
def test_erratum_10_a_merge_gains_the_log_normaliser_of_the_prior(process: str) -> None:
    """MO Eq. 12 scores a merge by M = exp a_0(lambda_0 + s), without - a_0(lambda_0).

    In a ratio of probabilities the constant cancels; in the change of the bound it does not: with it the prediction
    from statistics, counts and the gap is exact, and without it off by c(lambda_0).
    """
    case = make_case(10, process=process, n_components=3)
    fit = fit_from(case, START)
    state = globals_of(fit, len(case.rows))
    responsibilities = case.responsibilities
    merged = np.column_stack([responsibilities[:, 0] + responsibilities[:, 1], responsibilities[:, 2]])
    change = fit_from(replaced(case, responsibilities=merged), START).elbo - fit.elbo
    likelihood, process_of_case = case.mixture.likelihood, case.mixture.process
    prior = likelihood.log_normaliser(likelihood.prior_natural)
    first, second = state.naturals[:2]
    ratio = likelihood.log_normaliser(first + second - likelihood.prior_natural)
    ratio -= likelihood.log_normaliser(first) + likelihood.log_normaliser(second)
    tail = [0.0] if process_of_case.has_tail else []
    counts = [np.append(own_counts, tail) for own_counts in (merged.sum(0), responsibilities.sum(0))]
    gap = oracle.pair_gaps(responsibilities)[0, 1]
    rest = process_of_case.collapsed(counts[0]) - process_of_case.collapsed(counts[1]) - gap
    assert change == pytest.approx(ratio + prior + rest, rel=1e-9, abs=1e-8)
    assert abs(ratio + rest - change) == pytest.approx(abs(prior), rel=1e-6)
    assert abs(prior) > 0.1


def test_erratum_10_the_gap_is_that_of_the_summary() -> None:
    """What a merge needs beside statistics and counts is kept with them: the entropy that two components would lose."""
    case = make_case(11, n_components=3)
    fit = fit_from(case, START)
    found = summary_of(fit, case.rows, None, None)["pair_gaps"]
    expected = oracle.pair_gaps(oracle.local_step(case.rows, case.mixture, globals_of(fit)))
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
