"""Other units and another origin, for every Gaussian: mathematics 7, number 14."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import fit_from, make_case, passes, replaced
from kinds import LIKELIHOODS, every_process, public
from oracles.models import Array


def affine_gaussian(likelihood: Any, matrix: Array, shift: Array) -> dict[str, Any]:
    return {"mean": matrix @ likelihood.mean + shift, "scale": matrix @ likelihood.scale @ matrix.T}


def affine_zero_mean(likelihood: Any, matrix: Array, shift: Array) -> dict[str, Any]:
    return {"scale": matrix @ likelihood.scale @ matrix.T}


def affine_diagonal(likelihood: Any, matrix: Array, shift: Array) -> dict[str, Any]:
    return {"mean": matrix @ likelihood.mean + shift, "rate": np.diag(matrix) ** 2 * likelihood.rate}


def affine_spherical(likelihood: Any, matrix: Array, shift: Array) -> dict[str, Any]:
    return {"mean": matrix @ likelihood.mean + shift, "rate": squared_scale(matrix) * likelihood.rate}


def affine_product(likelihood: Any, matrix: Array, shift: Array) -> dict[str, Any]:
    changed = affine_spherical(likelihood, matrix, shift)
    return changed | {"mean_precision": likelihood.mean_precision / squared_scale(matrix)}


def affine_known(likelihood: Any, matrix: Array, shift: Array) -> dict[str, Any]:
    return {"mean": matrix @ likelihood.mean + shift, "covariance": matrix @ likelihood.covariance @ matrix.T}


def affine_known_general(likelihood: Any, matrix: Array, shift: Array) -> dict[str, Any]:
    inverse = np.linalg.inv(matrix)
    return affine_known(likelihood, matrix, shift) | {"mean_precision": inverse.T @ likelihood.mean_precision @ inverse}


def squared_scale(matrix: Array) -> float:
    """s^2 of a scalar times an orthogonal matrix."""
    return float(abs(np.linalg.det(matrix)) ** (2 / len(matrix)))


AFFINE: dict[str, Callable[[Any, Array, Array], dict[str, Any]]] = {
    "gaussian": affine_gaussian,
    "zero_mean_gaussian": affine_zero_mean,
    "diagonal": affine_diagonal,
    "spherical": affine_spherical,
    "spherical_product": affine_product,
    "known_covariance": affine_known,
    "known_covariance_general": affine_known_general,
}
REAL = [name for name, kind in LIKELIHOODS.items() if kind.domain == "real"]


def symmetric(matrix: Array) -> Array:
    """Without the rounding that a product of three matrices leaves on one side of the diagonal."""
    return np.asarray((matrix + matrix.T) / 2)


def map_for(likelihood: str, rng: np.random.Generator, dimension: int) -> tuple[Array, Array]:
    """A map of the rows that the likelihood follows: x -> A x + t."""
    matrix = np.eye(dimension) + 0.4 * rng.standard_normal((dimension, dimension))
    if likelihood == "diagonal":
        matrix = np.diag(rng.uniform(0.4, 2.5, dimension))
    if likelihood.startswith("spherical"):
        matrix = 1.7 * np.linalg.qr(matrix)[0]
    shift = np.zeros(dimension) if likelihood == "zero_mean_gaussian" else 5.0 * rng.standard_normal(dimension)
    return matrix, shift


@pytest.mark.parametrize("likelihood", REAL)
@every_process
def test_affine_maps(likelihood: str, process: str) -> None:
    """Number 14: the same responsibilities; bound and density less the logarithm of the volume."""
    case = make_case(11, likelihood=likelihood, process=process, weighted=True)
    before, rng = case.model.likelihood, np.random.default_rng(11)
    matrix, shift = map_for(likelihood, rng, case.rows.shape[1])
    changed = AFFINE[likelihood](before, matrix, shift)
    changed = {name: symmetric(value) if np.ndim(value) == 2 else value for name, value in changed.items()}
    model = sb.Mixture(likelihood=dataclasses.replace(before, **changed), process=case.model.process)
    moved = replaced(case, rows=case.rows @ matrix.T + shift, model=model)
    volume = float(np.linalg.slogdet(matrix)[1])
    fit, other = fit_from(case, passes(3, 2)), fit_from(moved, passes(3, 2))
    assert other.elbo == pytest.approx(fit.elbo - case.weights.sum() * volume, rel=1e-8, abs=1e-8 * case.scale)
    np.testing.assert_allclose(other.predict_proba(moved.rows), fit.predict_proba(case.rows), rtol=1e-5, atol=1e-8)
    expected = fit.log_predictive(case.rows) - volume
    np.testing.assert_allclose(other.log_predictive(moved.rows), expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("likelihood", ["diagonal", "spherical", "spherical_product"])
def test_default_parameters_follow_scale_and_place(likelihood: str) -> None:
    """The rules for parameters left None commute with a change of units and of the origin, each column by itself or
    all together.
    """
    case = make_case(12, likelihood=likelihood)
    kind = public(LIKELIHOODS[likelihood].public)
    options = {"base": "product"} if likelihood == "spherical_product" else {}
    model = sb.Mixture(likelihood=kind(**options), process=sb.DirichletProcess())
    factor, shift = 250.0, np.array([3.0, -40.0, 0.5])
    fit = fit_from(replaced(case, model=model), passes(2))
    moved = fit_from(replaced(case, model=model, rows=factor * case.rows + shift), passes(2))
    assert moved.elbo == pytest.approx(fit.elbo - len(case.rows) * 3 * np.log(factor), rel=1e-9)
    np.testing.assert_allclose(moved.model.likelihood.mean, factor * fit.model.likelihood.mean + shift, rtol=1e-10)
    np.testing.assert_allclose(moved.model.likelihood.rate, factor**2 * fit.model.likelihood.rate, rtol=1e-9)
