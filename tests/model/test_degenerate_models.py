"""Degenerate data under every likelihood and process: mathematics 7, number 20.

Everything stays finite, the bound never falls, and no mass is lost. `test_degenerate_data.py` has more data for
Gaussians with a full covariance, and `test_laws.py` draws all kinds of them.
"""

from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import Case, fit_from, flat, make_case, passes, replaced
from kinds import LIKELIHOODS, PROCESSES, every_likelihood, every_process, make_process, make_rows, public
from oracles.models import Array

# Tests of columns that the model leaves out are in test_support.py.
pytestmark = pytest.mark.filterwarnings("ignore::stickbreak.SupportWarning")

REAL = [name for name, kind in LIKELIHOODS.items() if kind.domain == "real"]
COUNTS = [name for name, kind in LIKELIHOODS.items() if kind.domain != "real"]


def default_likelihood(name: str, rows: Array) -> Any:
    """Return a likelihood whose parameters follow the data as far as possible."""
    kind = public(LIKELIHOODS[name].public)
    spread = max(float(np.var(rows, axis=0).mean()), 1e-3)
    if name == "known_covariance":
        return kind(spread * np.eye(rows.shape[1]))
    if name == "known_covariance_general":
        return kind(spread * np.eye(rows.shape[1]), mean_precision=np.eye(rows.shape[1]) / (10 * spread))
    if kind is sb.Columns:
        given = LIKELIHOODS[name].draw(np.random.default_rng(0), rows.shape[1], False)["blocks"]
        return sb.Columns({block: type(own)() for block, own in given.items()})
    return kind(**{"spherical_product": {"base": "product"}, "ordered_words": {"coefficient": False}}.get(name, {}))


def assert_sound(fit: sb.Fit, rows: Array, total: float) -> None:
    bounds = np.array([record.objective for record in fit.history])
    assert np.isfinite(bounds).all()
    # Scales that are estimated lose digits in directions without scatter.
    slack = 1e-6 * (1.0 + np.abs(bounds[1:]) + total * rows.shape[1])
    assert (np.diff(bounds) >= -slack).all()
    if fit.bound == "tail":
        assert fit.counts.sum() <= total * (1 + 1e-9)
    else:
        assert fit.counts.sum() == pytest.approx(total, rel=1e-9)
    for values in (*flat(fit.components).values(), fit.weights, fit.log_predictive(rows), fit.predict_proba(rows)):
        assert np.isfinite(values).all()
    assert np.isfinite(fit.evaluate(rows))
    assert np.isfinite(fit.sample(20, seed=0)).all()


def degenerate(name: str, kind: str) -> Array:
    """Return rows of a likelihood that are degenerate in one way."""
    rng = np.random.default_rng(1)
    n, dimension = {"fewer_rows_than_columns": (6, 20), "two_rows": (2, 3), "one_column": (50, 1)}.get(kind, (80, 3))
    rows = make_rows(name, rng, n, dimension, 3)
    if kind == "constant_columns":
        rows[:, [0, 2]] = rows[0, [0, 2]]
    if kind == "constant_rows":
        rows[:] = rows[0]
    if kind == "repeated_rows":
        rows = np.repeat(rows[:4], 20, axis=0)
    if kind == "outlier":
        bounded = LIKELIHOODS[name].domain in ("binary", "codes", "mixed")
        rows[5] = 1.0 if bounded else np.round(1e3 * (1.0 + np.abs(rows[5])))
    if kind == "zeros":
        rows[::2] = 0.0
    return rows


@every_likelihood
@pytest.mark.parametrize(
    "kind",
    [
        "constant_columns",
        "constant_rows",
        "repeated_rows",
        "outlier",
        "zeros",
        "fewer_rows_than_columns",
        "two_rows",
        "one_column",
    ],
)
@pytest.mark.parametrize("init", ["kmeans++", "random"])
@pytest.mark.one_in(3)
def test_degenerate_rows(likelihood: str, kind: str, init: str) -> None:
    rows = degenerate(likelihood, kind)
    components = min(4, len(rows))
    for algorithm in (
        passes(12),
        sb.Memoized(batches=min(3, len(rows)), sparsity=min(2, components), max_passes=12, tol=0.0),
    ):
        model = sb.Mixture(likelihood=default_likelihood(likelihood, rows), process=sb.DirichletProcess())
        fit = sb.fit(model, rows, algorithm, n_components=components, init=init, progress=False)
        assert_sound(fit, rows, len(rows))


@every_likelihood
@every_process
def test_as_many_components_as_rows(likelihood: str, process: str) -> None:
    """K = n works, with most components empty in the end; K > n is refused."""
    rows = make_rows(likelihood, np.random.default_rng(2), 9, 2, 3)
    model = sb.Mixture(likelihood=default_likelihood(likelihood, rows), process=make_process(process, 9, 1.3))
    fit = sb.fit(model, rows, sb.Memoized(batches=9, sparsity=9, max_passes=10, tol=0.0), n_components=9)
    assert_sound(fit, rows, 9.0)
    more = sb.Mixture(likelihood=model.likelihood, process=make_process(process, 10, 1.3))
    with pytest.raises(sb.InvalidArgument) as caught:
        sb.fit(more, rows, passes(1), n_components=10)
    assert caught.value.argument == "n_components"


@every_likelihood
@every_process
def test_rows_without_weight(likelihood: str, process: str) -> None:
    """With whole batches and most other rows of weight zero, the fit is that of the rows of positive weight."""
    case = make_case(3, n=60, likelihood=likelihood, process=process)
    weights = (np.arange(60) % 5 == 0).astype(float)
    weights[:20] = 0.0
    kept = weights > 0
    algorithm = sb.Memoized(batches=6, shuffle=False, margin=None, max_passes=6, tol=0.0)
    assert_sound(fit_from(case, algorithm, sample_weight=weights), case.rows, weights.sum())
    weighted = fit_from(case, passes(6), sample_weight=weights)
    alone = fit_from(of_rows(case, kept), passes(6))
    assert weighted.elbo == pytest.approx(alone.elbo, rel=1e-9, abs=1e-9 * case.scale)
    np.testing.assert_allclose(weighted.counts, alone.counts, rtol=1e-7, atol=1e-9)


def of_rows(case: Case, kept: Array) -> Case:
    return replaced(
        case, rows=case.rows[kept], responsibilities=case.responsibilities[kept], weights=case.weights[kept]
    )


@pytest.mark.parametrize("likelihood", [name for name in REAL if name != "zero_mean_gaussian"])
@pytest.mark.parametrize("process", ["nested", "tail", "finite"])
def test_offsets_change_nothing(likelihood: str, process: str) -> None:
    """Rows are centred first, so that 1e8 in every number costs no more than its own rounding.

    The rows are multiples of 2^-20, which float64 holds exactly at 1e8; what remains is the rounding of the column
    means, about 1e-8 here, which moves the bound by far less than the 1e-7 allowed.
    """
    rows = np.round(make_rows(likelihood, np.random.default_rng(4), 200, 3, 4) * 2**20) / 2**20
    start = np.random.default_rng(5).dirichlet(np.full(4, 0.3), 200)
    model = sb.Mixture(likelihood=default_likelihood(likelihood, rows), process=make_process(process, 4, 1.3))
    fit = sb.fit(model, rows, passes(6, 2), init=start, progress=False)
    moved = sb.fit(model, rows + 1e8, passes(6, 2), init=start, progress=False)
    assert_sound(moved, rows + 1e8, 200.0)
    assert moved.elbo == pytest.approx(fit.elbo, rel=1e-7)
    np.testing.assert_allclose(moved.components["mean"] - 1e8, fit.components["mean"], atol=1e-6)
    np.testing.assert_array_equal(moved.predict(rows + 1e8), fit.predict(rows))
    np.testing.assert_allclose(moved.log_predictive(rows + 1e8), fit.log_predictive(rows), atol=1e-5)


@pytest.mark.parametrize("likelihood", REAL)
@pytest.mark.parametrize("size", [1e-30, 1e30, 1e-100, 1e100])
def test_units_of_any_size(likelihood: str, size: float) -> None:
    """Parameters that follow the data follow their units."""
    rows = size * make_rows(likelihood, np.random.default_rng(6), 100, 2, 2)
    kind = public(LIKELIHOODS[likelihood].public)
    options: dict[str, Any] = {"base": "product"} if likelihood == "spherical_product" else {}
    if likelihood.startswith("known_covariance"):
        options["covariance"] = size**2 * np.eye(2)
    if likelihood == "known_covariance_general":
        options["mean_precision"] = 0.1 * np.eye(2) / size**2
    model = sb.Mixture(likelihood=kind(**options), process=sb.DirichletProcess())
    assert_sound(sb.fit(model, rows, passes(8), n_components=3, progress=False), rows, 100.0)


@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("concentration", [1e-8, 1e-3, 1e3, 1e8])
def test_extreme_concentrations(process: str, concentration: float) -> None:
    """Priors that want one component or as many as there are rows still give finite, monotone fits."""
    case = make_case(7, process=process, concentration=concentration)
    for algorithm in (passes(10), passes(10, 1)):
        fit = fit_from(case, algorithm)
        bounds = np.array([record.objective for record in fit.history])
        assert np.isfinite(bounds).all()
        slack = 1e-9 * (np.abs(bounds[1:]) + case.scale)
        assert (np.diff(bounds) >= -slack).all()
        assert fit.weights.sum() + fit.leftover_weight == pytest.approx(1.0, rel=1e-12)
        assert np.isfinite(fit.log_predictive(case.rows)).all()


@pytest.mark.parametrize("likelihood", COUNTS)
def test_nothing_but_zeros_and_nothing_but_ones(likelihood: str) -> None:
    for value in (0.0, 1.0):
        rows = np.full((30, 4), value)
        model = sb.Mixture(likelihood=default_likelihood(likelihood, rows), process=sb.DirichletProcess())
        assert_sound(sb.fit(model, rows, passes(8), n_components=3, progress=False), rows, 30.0)
