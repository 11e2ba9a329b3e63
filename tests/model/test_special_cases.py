"""Pairs of equivalent models: each has the same bound and the same predictions."""

import dataclasses

import numpy as np
import pytest

import stickbreak as sb
from cases import START, fit_from, make_case, passes, replaced
from kinds import public


@pytest.mark.parametrize("likelihood", ["diagonal", "spherical"])
def test_one_column_of_any_gaussian_is_the_full_one(likelihood: str) -> None:
    """At D = 1 they are `Gaussian` with dof = 2 shape and scale = 2 rate, by default too."""
    case = make_case(13, dimension=1, likelihood=likelihood)
    special = case.model.likelihood
    full = sb.Gaussian(
        mean=special.mean,
        mean_precision=special.mean_precision,
        dof=2 * special.shape,
        scale=np.reshape(2 * np.asarray(special.rate), (1, 1)),
    )
    for mine, theirs in ((special, full), (type(special)(), sb.Gaussian())):
        fits = [
            fit_from(replaced(case, model=sb.Mixture(likelihood=each, process=case.model.process)), passes(4))
            for each in (mine, theirs)
        ]
        assert fits[0].elbo == pytest.approx(fits[1].elbo, rel=1e-10)
        predicted = [fit.log_predictive(case.rows) for fit in fits]
        np.testing.assert_allclose(predicted[0], predicted[1], rtol=1e-9)


def test_both_priors_of_a_known_covariance_agree() -> None:
    """A matrix that is the multiple kappa_0 of the known precision is the number kappa_0."""
    case = make_case(14, likelihood="known_covariance")
    special = case.model.likelihood
    known = np.linalg.inv(special.covariance)
    general = dataclasses.replace(special, mean_precision=special.mean_precision * (known + known.T) / 2)
    fits = [
        fit_from(replaced(case, model=sb.Mixture(likelihood=each, process=case.model.process)), passes(4))
        for each in (special, general)
    ]
    assert fits[0].elbo == pytest.approx(fits[1].elbo, rel=1e-9)
    np.testing.assert_allclose(fits[0].components["mean"], fits[1].components["mean"], rtol=1e-8)
    np.testing.assert_allclose(
        fits[1].components["mean_precision"],
        fits[0].components["mean_precision"][:, None, None] * known,
        rtol=1e-8,
        atol=1e-8,
    )


def test_coefficient_shifts_the_bound_by_a_constant() -> None:
    """With it or without, the components are the same; the bound differs by the sum of log h."""
    case = make_case(15, likelihood="multinomial", weighted=True)
    without = dataclasses.replace(case.model.likelihood, coefficient=False)
    fits = [
        fit_from(replaced(case, model=sb.Mixture(likelihood=each, process=case.model.process)), passes(4))
        for each in (case.model.likelihood, without)
    ]
    constant = case.weights @ case.mixture.likelihood.log_base_measure(case.rows)
    assert fits[0].elbo - fits[1].elbo == pytest.approx(constant, rel=1e-9)
    np.testing.assert_allclose(fits[0].components["pseudo_counts"], fits[1].components["pseudo_counts"], rtol=1e-9)


def test_no_discount_is_the_dirichlet_process() -> None:
    case = make_case(16)
    pitman_yor = public("PitmanYor")(0.0, concentration=case.model.process.concentration)
    model = sb.Mixture(likelihood=case.model.likelihood, process=pitman_yor)
    fit, other = fit_from(case, passes(4)), fit_from(replaced(case, model=model), passes(4))
    assert other.elbo == pytest.approx(fit.elbo, rel=1e-12)
    assert other.bound == fit.bound


def test_small_concentration_leaves_nothing_to_the_tail() -> None:
    """Number 22: as the concentration vanishes the tail's bound becomes the nested one."""
    case = make_case(17, process="tail", concentration=1e-4)
    nested = replaced(
        case, model=sb.Mixture(likelihood=case.model.likelihood, process=sb.DirichletProcess(concentration=1e-4))
    )
    fit, other = fit_from(case, passes(10)), fit_from(nested, passes(10))
    assert fit.elbo == pytest.approx(other.elbo, rel=1e-9)
    assert fit.predict_proba(case.rows, tail=True)[:, -1].max() < 1e-12


def test_tail_is_above_nested_at_equal_components() -> None:
    """Mathematics 2c: rows may use the tail, so with the same components and sticks the bound is higher."""
    for seed in range(5):
        case = make_case(seed, process="tail")
        nested = sb.DirichletProcess(concentration=case.model.process.concentration)
        other = replaced(case, model=sb.Mixture(likelihood=case.model.likelihood, process=nested))
        fits = [fit_from(each, START) for each in (case, other)]
        assert fits[0].elbo == pytest.approx(fits[1].elbo, rel=1e-12)  # no row is in the tail yet
        assert fits[0].evaluate(case.rows) > fits[1].evaluate(case.rows)


def test_prior_on_the_concentration_that_is_nearly_a_point() -> None:
    """A Gamma prior of shape 1e8 is the number that is its mean, but for 1e-4 of it."""
    case = make_case(18)
    mean = case.model.process.concentration
    prior = public("Gamma")(shape=1e8, rate=1e8 / mean)
    model = sb.Mixture(likelihood=case.model.likelihood, process=sb.DirichletProcess(concentration=prior))
    fit, other = fit_from(case, passes(4)), fit_from(replaced(case, model=model), passes(4))
    assert other.elbo == pytest.approx(fit.elbo, rel=1e-5)
    assert other.concentration.mean == pytest.approx(mean, rel=1e-5)
