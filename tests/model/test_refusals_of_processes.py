"""Priors on the weights that are refused, alone or together with something else, and bounds that are not compared.

Objectives that a prior does not serve are in `test_point_estimates.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import START, fit_from, make_case, passes, replaced, with_process

Make = Callable[[], object]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: sb.PitmanYor(0.3, truncation="tail"), "no geometric series"),
        (lambda: sb.FiniteDirichlet(3, concentration=sb.Gamma(1, 1)), "conjugate"),
        (lambda: sb.DirichletProcess(sb.Gamma(1, 1), truncation="tail"), "conjugate"),
    ],
)
def test_combinations_without_mathematics(make: Make, reason: str) -> None:
    with pytest.raises(sb.NotSupported, match=reason):
        make()


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: sb.PitmanYor(1.0), "discount"),
        (lambda: sb.PitmanYor(-0.1), "discount"),
        (lambda: sb.PitmanYor(np.nan), "discount"),
        (lambda: sb.PitmanYor([0.3]), "discount"),
        (lambda: sb.PitmanYor(0.5, concentration=-0.5), "concentration"),
        (lambda: sb.PitmanYor(0.0, concentration=0.0), "concentration"),
        (lambda: sb.PitmanYor(0.5, concentration=1e301), "concentration"),
        (lambda: sb.PitmanYor(0.5, concentration=np.nan), "concentration"),
        (lambda: sb.PitmanYor(0.5, truncation="stick"), "truncation"),
        # A learned discount may be near 0.
        (lambda: sb.PitmanYor(sb.Beta(1, 1), concentration=0.0), "concentration"),
        (lambda: sb.PitmanYor(sb.Beta(1, 1), concentration=-0.1), "concentration"),
        (lambda: sb.Beta(0.0, 1.0), "a"),
        (lambda: sb.Beta(1.0, 1e7), "b"),
        (lambda: sb.MixtureOfFiniteMixtures(0.0), "concentration"),
        (lambda: sb.MixtureOfFiniteMixtures(np.inf), "concentration"),
        (lambda: sb.MixtureOfFiniteMixtures(rate=0.0), "rate"),
        (lambda: sb.MixtureOfFiniteMixtures(rate=10_001), "rate"),
        (lambda: sb.MixtureOfFiniteMixtures(rate=np.nan), "rate"),
        # The core reads two numbers as a Gamma prior, but users may not write it so.
        (lambda: sb.DirichletProcess([1.0, 2.0]), "concentration"),
        (lambda: sb.DirichletProcess((1.0, 2.0)), "concentration"),
        (lambda: sb.DirichletProcess(truncation="nest"), "truncation"),
        (lambda: sb.Gamma(0.0, 1.0), "shape"),
        (lambda: sb.Gamma(1e301, 1.0), "shape"),
        (lambda: sb.Gamma(1.0, -1.0), "rate"),
        (lambda: sb.DirichletProcess(sticks=2.0), "sticks"),
        (lambda: sb.DirichletProcess(sticks=(2.0,)), "sticks"),
        (lambda: sb.DirichletProcess(sticks=(2.0, 3.0, 4.0)), "sticks"),
        (lambda: sb.DirichletProcess(sticks=(2.0, 0.0)), "sticks"),
        (lambda: sb.DirichletProcess(sticks=(2.0, -1.0)), "sticks"),
        (lambda: sb.DirichletProcess(sticks=(np.nan, 1.0)), "sticks"),
        (lambda: sb.DirichletProcess(2.0, sticks=(2.0, 3.0)), "sticks"),
        (lambda: sb.DirichletProcess(sb.Gamma(1, 1), sticks=(2.0, 3.0)), "sticks"),
        (lambda: sb.Gamma(1.0, np.nan), "rate"),
        (lambda: sb.Gamma(1.0, np.inf), "rate"),
    ],
)
def test_parameters_that_are_not_allowed(make: Make, argument: str) -> None:
    with pytest.raises(sb.InvalidArgument) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: sb.Gamma("1", 1), "shape"),
        (lambda: sb.Gamma(1, True), "rate"),
        (lambda: sb.Gamma([1.0], 1), "shape"),
        (lambda: sb.DirichletProcess(sticks="23"), "sticks"),
        (lambda: sb.DirichletProcess(sticks=(True, "3")), "sticks"),
        (lambda: sb.DirichletProcess(sticks=(True, True)), "sticks"),
        (lambda: sb.DirichletProcess(sticks=sb.Beta(2, 3)), "sticks"),
        (lambda: sb.PitmanYor("0.3"), "discount"),
        (lambda: sb.PitmanYor(True), "discount"),
        (lambda: sb.PitmanYor(sb.Gamma(1, 1)), "discount"),
        (lambda: sb.PitmanYor(0.3, concentration=sb.Beta(1, 1)), "concentration"),
        (lambda: sb.DirichletProcess(sb.Gamma), "concentration"),
        (lambda: sb.MixtureOfFiniteMixtures(sb.Gamma(1, 1)), "concentration"),
        (lambda: sb.MixtureOfFiniteMixtures(rate=None), "rate"),
        (lambda: sb.MixtureOfFiniteMixtures(rate="1"), "rate"),
        (lambda: sb.MixtureOfFiniteMixtures(rate=[1.0]), "rate"),
    ],
)
def test_parameters_of_the_wrong_type(make: Make, argument: str) -> None:
    with pytest.raises(sb.InvalidType) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "process",
    [sb.PitmanYor(np.nextafter(1, 0)), sb.PitmanYor(0.5, concentration=np.nextafter(-0.5, 0))],
    ids=["discount", "concentration"],
)
def test_the_last_that_is_allowed(process: Any) -> None:
    """The last allowed values give finite bounds that never fall."""
    case = make_case(1)
    bounds = [record.elbo for record in fit_from(with_process(case, process), passes(10)).history]
    assert np.isfinite(bounds).all()
    assert (np.diff(bounds) >= -1e-9 * (np.abs(bounds[1:]) + case.scale)).all()


@pytest.mark.parametrize(
    ("process", "argument", "allowed"),
    [
        (sb.PitmanYor(0.3, concentration=sb.Gamma(1, 1)), "concentration", "a number, or sb.sample"),
        (sb.PitmanYor(sb.Beta(1, 1)), "discount", "a number, or sb.sample"),
        (sb.MixtureOfFiniteMixtures(), "process", "a DirichletProcess or FiniteDirichlet"),
    ],
)
@pytest.mark.parametrize("algorithm", [sb.Full, sb.Memoized, sb.Stochastic])
def test_fits_refuse_what_only_samplers_know(process: Any, argument: str, allowed: str, algorithm: Any) -> None:
    case = make_case(2)
    model = sb.Mixture(likelihood=case.model.likelihood, process=process)
    for objective in ("variational", "map", "ml"):
        options = {"batch_size": 10} if algorithm is sb.Stochastic else {}
        chosen = algorithm(objective=objective, **options)
        with pytest.raises(sb.NotSupported) as caught:
            sb.fit(model, case.rows, chosen, n_components=2, callbacks=[unreached], progress=False)
        assert caught.value.argument == argument
        assert allowed in caught.value.allowed
        assert type(process).__name__ in caught.value.found


@pytest.mark.parametrize("algorithm", [sb.Full, sb.Memoized])
@pytest.mark.parametrize(
    ("objective", "process", "reason"),
    [
        ("map", sb.DirichletProcess(0.5), "at least 1"),
        ("map", sb.DirichletProcess(2.0, truncation="tail"), "averages over its prior"),
        ("ml", sb.DirichletProcess(2.0, truncation="tail"), "averages over its prior"),
        ("map", sb.DirichletProcess(sb.Gamma(1, 1)), "use a number"),
        ("ml", sb.DirichletProcess(sb.Gamma(1, 1), truncation="stick"), "use a number"),
        ("map", sb.PitmanYor(0.3, concentration=2.0), "discount=0"),
        ("map", sb.PitmanYor(0.0, concentration=0.5), "at least 1"),
        ("map", sb.FiniteDirichlet(4), "at least 4"),
    ],
)
def test_objectives_are_refused_with_the_reason(objective: str, process: Any, reason: str, algorithm: Any) -> None:
    """Objectives are refused before any pass, under every algorithm."""
    case = with_process(make_case(2), process)
    with pytest.raises(sb.NotSupported, match=reason):
        fit_from(case, algorithm(objective=objective), callbacks=[unreached])


def unreached(_: sb.Record) -> bool:
    raise AssertionError("a pass was made before the objective had been refused")


# Comparisons; `test_errata.py` has the bounds of different kinds


def test_comparison_is_the_difference_of_the_bounds() -> None:
    case = make_case(3)
    one, other = fit_from(case, passes(1)), fit_from(case, passes(5))
    assert other.compare(one) == -one.compare(other) == other.elbo - one.elbo > 0
    # The same kind of bound of another model of the same data is a comparison of models.
    for process in (sb.DirichletProcess(9.0), sb.DirichletProcess(sb.Gamma(1, 1)), sb.PitmanYor(0.4)):
        fit = fit_from(with_process(case, process), passes(5))
        assert one.compare(fit) == one.elbo - fit.elbo
    fewer = sb.fit(case.model, case.rows, passes(5), n_components=2, progress=False)
    assert one.compare(fewer) == one.elbo - fewer.elbo


def test_rows_in_the_tail_are_rows_of_the_comparison() -> None:
    """Two fits to the same rows, of which more or fewer lie in the tail, have the same weight of data."""
    rows = np.concatenate([np.random.default_rng(0).standard_normal((200, 2)), [[40.0, 40.0]]])
    prior = sb.Gaussian(mean=[0.0, 0.0], mean_precision=1.0, dof=4.0, scale=100 * np.eye(2))
    model = sb.Mixture(likelihood=prior, process=sb.DirichletProcess(1.0, truncation="tail"))
    labels = np.repeat([0, 1], [200, 1])
    one, two = (sb.fit(model, rows, passes(5), init=start, progress=False) for start in (np.zeros_like(labels), labels))
    assert one.tail_count > two.tail_count + 0.9
    assert two.compare(one) == two.elbo - one.elbo


def test_fits_to_other_data_are_not_compared() -> None:
    case = make_case(5)
    fit = fit_from(case, START)
    fewer = replaced(case, rows=case.rows[1:], responsibilities=case.responsibilities[1:], weights=case.weights[1:])
    heavier = replaced(case, weights=2.0 * case.weights)
    narrower = make_case(5, dimension=2)
    for other, found in [(fewer, "n_rows 59"), (heavier, "total weight 120"), (narrower, "dimension 2")]:
        with pytest.raises(sb.InvalidArgument, match=found) as caught:
            fit.compare(fit_from(other, START))
        assert caught.value.argument == "other"
    for wrong in (1.0, fit.elbo, None, fit.model):
        with pytest.raises(sb.InvalidType) as refused:
            fit.compare(wrong)  # type: ignore[arg-type]
        assert refused.value.argument == "other"


def test_posterior_densities_are_compared_within_one_kind_of_model() -> None:
    """They are per unit of the parameters; likelihoods of point estimates are not."""
    case = make_case(6, with_mode=True, concentration=5.0)
    finite = with_process(case, sb.FiniteDirichlet(4, concentration=5.0))
    diagonal = replaced(case, model=sb.Mixture(likelihood=sb.DiagonalGaussian(), process=case.model.process))
    for objective in ("map", "ml"):
        algorithm = sb.Full(objective=objective, max_passes=3)
        fit, again = fit_from(case, algorithm), fit_from(with_process(case, sb.DirichletProcess(2.0)), algorithm)
        assert fit.compare(again) == fit.elbo - again.elbo
        with pytest.raises(sb.InvalidArgument, match="the bound nested"):
            fit.compare(fit_from(case, START))
        for changed, role in [(finite, "the process FiniteDirichlet"), (diagonal, "the likelihood DiagonalGaussian")]:
            other = fit_from(changed, algorithm)
            if objective == "ml":
                assert fit.compare(other) == fit.elbo - other.elbo
            else:
                with pytest.raises(sb.InvalidArgument, match=role):
                    fit.compare(other)
