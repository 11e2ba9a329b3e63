"""Laws of symmetry and of the order of components: mathematics 7, numbers 10, 11, 12, 13 and 14."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from cases import (
    LIKELIHOODS,
    PROCESSES,
    Case,
    LikelihoodName,
    ProcessName,
    cases,
    fit_from,
    make_case,
    make_process,
    positive_definite,
)

SEEDS = st.integers(0, 2**32 - 1)
START = sb.Full(sparsity=None, max_passes=0)


def replaced(case: Case, **changes: object) -> Case:
    return dataclasses.replace(case, **changes)  # type: ignore[arg-type]


@given(cases(), st.integers(1, 5))
def test_twice_is_weight_two(case: Case, sparsity: int) -> None:
    """Number 10: duplicated rows equal weight two, in the bound and in every number of later passes."""
    weighted = replaced(case, weights=2.0 * case.weights)
    twice = replaced(
        case,
        rows=np.repeat(case.rows, 2, axis=0),
        responsibilities=np.repeat(case.responsibilities, 2, axis=0),
        weights=np.repeat(case.weights, 2),
    )
    for passes in [0, 3]:
        algorithm = sb.Full(sparsity=min(sparsity, case.n_components), max_passes=passes, tol=0.0)
        # Given responsibilities are not made sparse before the first pass.
        algorithm = START if passes == 0 else algorithm
        fit, other = fit_from(weighted, algorithm), fit_from(twice, algorithm)
        assert other.elbo == pytest.approx(fit.elbo, rel=1e-9, abs=1e-9 * case.scale)
        np.testing.assert_allclose(other.counts, fit.counts, rtol=1e-7, atol=1e-9)
        for name, values in fit.components.items():
            np.testing.assert_allclose(other.components[name], values, rtol=1e-6, atol=1e-7)


@given(cases())
def test_doubled_data_do_not_double_the_bound(case: Case) -> None:
    """Number 10: doubled data do not double the terms of the prior."""
    fit = fit_from(case).elbo
    assert fit_from(replaced(case, weights=2.0 * case.weights)).elbo != pytest.approx(2.0 * fit, rel=1e-9)


@given(cases(process="dirichlet_process", min_rows=8), st.integers(1, 3))
def test_empty_component_at_the_end(case: Case, n_empty: int) -> None:
    """Number 11: under the nested truncation an empty last component changes nothing."""
    padded = np.column_stack([case.responsibilities, np.zeros((len(case.rows), n_empty))])
    fit, other = fit_from(case), fit_from(replaced(case, responsibilities=padded))
    assert other.elbo == pytest.approx(fit.elbo, rel=1e-11, abs=1e-11 * case.scale)
    np.testing.assert_array_equal(other.counts[-n_empty:], 0.0)
    np.testing.assert_allclose(other.weights[: case.n_components], fit.weights, rtol=1e-13)


@given(cases(process="dirichlet_process", min_rows=6), st.integers(0, 4))
def test_empty_component_elsewhere(case: Case, place: int) -> None:
    """Number 11: inserted before a mass M it costs log (concentration + M) / concentration (mathematics 2a.2)."""
    place = min(place, case.n_components)
    widened = np.insert(case.responsibilities, place, 0.0, axis=1)
    behind = case.weights @ case.responsibilities[:, place:].sum(1)
    concentration = case.model.process.concentration
    expected = fit_from(case).elbo + np.log(concentration / (concentration + behind))
    other = fit_from(replaced(case, responsibilities=widened))
    assert other.elbo == pytest.approx(expected, rel=1e-10, abs=1e-10 * case.scale)


@given(cases(process="finite_dirichlet", min_rows=6))
def test_finite_mixtures_are_not_nested(case: Case) -> None:
    """Number 11: one more component of a finite mixture changes the prior, by an amount known in closed form."""
    padded = np.column_stack([case.responsibilities, np.zeros(len(case.rows))])
    concentration = case.model.process.concentration
    model = sb.Mixture(
        likelihood=case.model.likelihood,
        process=make_process("finite_dirichlet", case.n_components + 1, concentration),
    )
    counts = case.weights @ padded
    process = case.mixture.process
    change = process.collapsed(counts) - process.collapsed(counts[:-1])
    other = fit_from(replaced(case, responsibilities=padded, model=model))
    assert other.elbo == pytest.approx(fit_from(case).elbo + change, rel=1e-10, abs=1e-10 * case.scale)


@given(cases(process="dirichlet_process", n_components=3), SEEDS)
def test_decreasing_counts_are_the_best_order(case: Case, seed: int) -> None:
    """Number 12: no order of the sticks beats the one by size."""
    by_size = np.argsort(-(case.weights @ case.responsibilities), kind="stable")
    best = fit_from(replaced(case, responsibilities=case.responsibilities[:, by_size])).elbo
    for order in itertools.permutations(range(3)):
        other = fit_from(replaced(case, responsibilities=case.responsibilities[:, list(order)])).elbo
        assert other <= best + 1e-11 * (abs(best) + case.scale)


@given(cases(), SEEDS)
def test_labels_of_components(case: Case, seed: int) -> None:
    """Number 13: finite mixtures do not depend on the order of components; sticks do not after sorting by size."""
    order = np.random.default_rng(seed).permutation(case.n_components)
    passes = sb.Full(sparsity=None, max_passes=3, tol=0.0)
    if isinstance(case.model.process, sb.DirichletProcess):
        case = replaced(case, responsibilities=sorted_by_size(case, case.responsibilities))
        moved = replaced(case, responsibilities=sorted_by_size(case, case.responsibilities[:, order]))
        assert fit_from(moved).elbo == pytest.approx(fit_from(case).elbo, rel=1e-10, abs=1e-10 * case.scale)
        return
    fit, other = (
        fit_from(case, passes),
        fit_from(replaced(case, responsibilities=case.responsibilities[:, order]), passes),
    )
    assert other.elbo == pytest.approx(fit.elbo, rel=1e-9, abs=1e-9 * case.scale)
    np.testing.assert_allclose(other.counts, fit.counts[order], rtol=1e-7, atol=1e-9)


def sorted_by_size(case: Case, responsibilities: np.ndarray) -> np.ndarray:
    return responsibilities[:, np.argsort(-(case.weights @ responsibilities), kind="stable")]


def moved_model(case: Case, matrix: np.ndarray, shift: np.ndarray) -> sb.Mixture:
    before = case.model.likelihood
    scale = matrix @ before.scale @ matrix.T
    scale = (scale + scale.T) / 2
    if isinstance(before, sb.ZeroMeanGaussian):
        return sb.Mixture(likelihood=sb.ZeroMeanGaussian(dof=before.dof, scale=scale), process=case.model.process)
    likelihood = sb.Gaussian(
        mean=matrix @ before.mean + shift, mean_precision=before.mean_precision, dof=before.dof, scale=scale
    )
    return sb.Mixture(likelihood=likelihood, process=case.model.process)


@given(cases(), SEEDS, st.integers(1, 5))
def test_affine_maps(case: Case, seed: int, sparsity: int) -> None:
    """Number 14: x -> A x + t changes the bound by -N log |det A| only; zero-mean models use t = 0."""
    rng, dimension = np.random.default_rng(seed), case.rows.shape[1]
    matrix = positive_definite(rng, dimension) @ np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
    shift = 3.0 * rng.standard_normal(dimension)
    if isinstance(case.model.likelihood, sb.ZeroMeanGaussian):
        shift = np.zeros(dimension)
    moved = replaced(case, rows=case.rows @ matrix.T + shift, model=moved_model(case, matrix, shift))
    volume = np.linalg.slogdet(matrix)[1]
    algorithm = sb.Full(sparsity=min(sparsity, case.n_components), max_passes=2, tol=0.0)
    fit, other = fit_from(case, algorithm), fit_from(moved, algorithm)
    expected = fit.elbo - case.weights.sum() * volume
    assert other.elbo == pytest.approx(expected, rel=1e-8, abs=1e-8 * case.scale)
    np.testing.assert_allclose(other.predict_proba(moved.rows), fit.predict_proba(case.rows), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(
        other.log_predictive(moved.rows), fit.log_predictive(case.rows) - volume, rtol=1e-7, atol=1e-7
    )


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
def test_default_hyper_parameters_follow_units(likelihood: LikelihoodName, process: ProcessName) -> None:
    """The rule for hyper-parameters left None commutes with a change of the units of each column."""
    case = make_case(4, likelihood=likelihood, process=process)
    chosen = sb.Gaussian() if likelihood == "gaussian" else sb.ZeroMeanGaussian()
    model = sb.Mixture(likelihood=chosen, process=case.model.process)
    factors = np.array([2.5, 1e-3, 40.0])
    fit = fit_from(replaced(case, model=model), START)
    other = fit_from(replaced(case, model=model, rows=case.rows * factors), START)
    assert other.elbo == pytest.approx(fit.elbo - len(case.rows) * np.log(factors).sum(), rel=1e-9)
