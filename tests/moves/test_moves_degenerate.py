"""Adversarial data with moves, from one component and from ten: finite and monotone (mathematics 7, number 20)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import stickbreak as sb
from cases import clustered_rows
from growing import MOVES, assert_sound, every_set

# Tests of columns that the model leaves out are in tests/model/test_support.py.
pytestmark = pytest.mark.filterwarnings("ignore::stickbreak.SupportWarning")

RNG = np.random.default_rng


def equal_rows() -> np.ndarray:
    return np.full((200, 3), 2.5)


def two_rows() -> np.ndarray:
    return np.array([[0.0, 1.0], [2.0, -1.0]])


def two_values() -> np.ndarray:
    return np.repeat(two_rows(), 60, axis=0)


def outlier() -> np.ndarray:
    rows = clustered_rows(RNG(5), 200, 2, 2)
    rows[17] = 1e8
    return rows


def clusters_of_one_row() -> np.ndarray:
    return 1e4 * np.arange(30.0)[:, None] * [1.0, -1.0] + RNG(6).standard_normal((30, 2))


def one_cluster() -> np.ndarray:
    return RNG(7).standard_normal((2000, 2))


def fewer_rows_than_columns() -> np.ndarray:
    return clustered_rows(RNG(2), 12, 30, 3)


def constant_columns() -> np.ndarray:
    rows = clustered_rows(RNG(0), 300, 4, 3)
    rows[:, [0, 2]] = [7.0, 0.0]
    return rows


def repeated_rows() -> np.ndarray:
    return np.repeat(clustered_rows(RNG(1), 6, 3, 2), 40, axis=0)


def mixed_scales() -> np.ndarray:
    return clustered_rows(RNG(6), 200, 3, 2) * [1e-8, 1.0, 1e8]


def offset_float32() -> np.ndarray:
    return (clustered_rows(RNG(8), 400, 3, 3) + 1e6).astype(np.float32)


DATA = [
    equal_rows,
    two_rows,
    two_values,
    outlier,
    clusters_of_one_row,
    one_cluster,
    fewer_rows_than_columns,
    constant_columns,
    repeated_rows,
    mixed_scales,
    offset_float32,
]
LIKELIHOODS: dict[str, Any] = {
    "gaussian": sb.Gaussian,
    "zero_mean": sb.ZeroMeanGaussian,
    "diagonal": sb.DiagonalGaussian,
    "spherical": sb.SphericalGaussian,
}
every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS)


def algorithms(moves: Any, n: int, k: int) -> list[Any]:
    """Dense with one batch, and sparse with a few."""
    passes: dict[str, Any] = {"max_passes": 8, "tol": 0.0, "moves": moves}
    return [
        sb.Full(sparsity=None, margin=None, **passes),
        sb.Memoized(batches=min(3, n), sparsity=min(2, k), **passes),
    ]


def rounding_of(likelihood: str, rows: np.ndarray) -> float:
    """Return the rounding error of the bound, in nats, if the mean does not follow the rows.

    Log determinants of second moments about zero lose digits by their condition number: far from zero, nearly all.
    """
    if likelihood != "zero_mean" or np.abs(rows.mean(0)).max() < 1e3 * rows.std(0).max():
        return 0.0
    exact = rows.astype(np.float64)
    return len(rows) * float(np.finfo(np.float64).eps * np.linalg.cond(exact.T @ exact))


@every_set
@every_likelihood
@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("k", [1, 10])
@pytest.mark.one_in(11)
def test_degenerate(likelihood: str, make: Callable[[], np.ndarray], k: int, moves: Any) -> None:
    rows = make()
    k = min(k, len(rows))
    model = sb.Mixture(likelihood=LIKELIHOODS[likelihood](), process=sb.DirichletProcess())
    for algorithm in algorithms(moves, len(rows), k):
        fit = sb.fit(model, rows, algorithm, n_components=k, progress=False)
        assert_sound(fit, rows, len(rows), exact=rows.dtype == np.float64, rounding=rounding_of(likelihood, rows))


@every_set
def test_weights_of_zero(moves: Any) -> None:
    """Whole batches and most other rows have weight zero."""
    rows = clustered_rows(RNG(11), 300, 2, 3)
    weights = (np.arange(300) % 5 == 0).astype(float)
    weights[:100] = 0.0
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    for k in (1, 10):
        algorithm = sb.Memoized(batches=10, shuffle=False, max_passes=8, tol=0.0, moves=moves)
        fit = sb.fit(model, rows, algorithm, n_components=k, sample_weight=weights, progress=False)
        assert_sound(fit, rows, weights.sum())
    with pytest.raises(sb.StickbreakError):
        sb.fit(model, rows, sb.Full(moves=moves), sample_weight=np.zeros(300), progress=False)


@pytest.mark.filterwarnings("ignore::stickbreak.errors.EmptyRowsWarning")
@every_set
@pytest.mark.parametrize("likelihood", [sb.DiagonalGaussian, sb.Bernoulli, sb.Poisson])
@pytest.mark.one_in(3)
def test_missing_values(likelihood: Any, moves: Any) -> None:
    """Most values are missing, some rows altogether."""
    rng = RNG(12)
    rows = clustered_rows(rng, 400, 5, 3)
    if likelihood is not sb.DiagonalGaussian:
        rows = rng.poisson(np.exp(rows.clip(-3, 2))).astype(float)
    if likelihood is sb.Bernoulli:
        rows = (rows > 0).astype(float)
    rows[rng.random(rows.shape) < 0.6] = np.nan
    rows[0] = [0.0, 1.0, 0.0, 1.0, 0.0]
    model = sb.Mixture(likelihood=likelihood(), process=sb.DirichletProcess())
    for k in (1, 10):
        for algorithm in algorithms(moves, 400, k):
            fit = sb.fit(model, rows, algorithm, n_components=k, missing="marginalize", progress=False)
            assert_sound(fit, rows, np.isfinite(rows).any(1).sum())


@every_set
@pytest.mark.parametrize("likelihood", [sb.Multinomial, sb.Bernoulli, sb.Poisson])
@pytest.mark.one_in(6)
def test_sparse_counts(likelihood: Any, moves: Any) -> None:
    """Sparse rows, of which some are empty, give the same number of components and the bound of dense ones."""
    rng = RNG(13)
    rates = rng.choice([0.02, 0.1, 3.0], size=(4, 30))
    counts = rng.poisson(rates[rng.integers(4, size=500)]).astype(float)
    counts[::50] = 0.0
    if likelihood is sb.Bernoulli:
        counts = (counts > 0).astype(float)
    model = sb.Mixture(likelihood=likelihood(), process=sb.DirichletProcess())
    for k in (1, 10):
        for algorithm in algorithms(moves, 500, k):
            fits = [
                sb.fit(model, rows, algorithm, n_components=k, progress=False)
                for rows in (counts, sparse.csr_array(counts))
            ]
            for fit in fits:
                assert_sound(fit, counts, 500)


@pytest.mark.parametrize(
    "moves",
    [pytest.param(moves, marks=[pytest.mark.slow] if name != "births" else []) for name, moves in MOVES.items()],
    ids=MOVES,
)
@pytest.mark.slow
def test_a_million_rows_in_one_cluster(moves: Any) -> None:
    rows = RNG(14).standard_normal((1_000_000, 3))
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    fit = sb.fit(model, rows, sb.Memoized(max_passes=6, moves=moves), progress=False)
    assert_sound(fit, rows, 1e6)
    assert fit.n_components == 1


@pytest.mark.parametrize("seed", [9, 10])
def test_a_tail_keeps_its_place_in_rows_that_a_delete_deals(seed: int) -> None:
    """With L other slots, a row kept one component too many, and the next visit lowered the bound by half a nat."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, 2)) * rng.choice([0.5, 2.0], size=(30, 1))
    process = sb.DirichletProcess(concentration=5.0, truncation="tail")
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian(prior="rule"), process=process)
    algorithm = sb.Memoized(batches=2, moves=(sb.Delete(),), sparsity=2, margin=None, max_passes=8, tol=0.0)
    fit = sb.fit(model, rows, algorithm, n_components=3, seed=seed, progress=False)
    assert sum(record.accepted for record in fit.history) > 0
    bounds = np.array([record.elbo for record in fit.history])
    assert np.diff(bounds).min() > -1e-9 * abs(bounds[-1])


@pytest.mark.parametrize(
    "likelihood",
    [sb.Gaussian(), sb.Gaussian(prior="rule"), sb.ZeroMeanGaussian(), sb.DiagonalGaussian(), sb.SphericalGaussian()],
)
@pytest.mark.parametrize("weight", [1e-90, 1.0, 3e7, 1.6e9])
@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.one_in(9)
def test_large_weights_end_in_a_fit(likelihood: Any, weight: float, seed: int) -> None:
    """Beside sums of 1e11 float64 loses the scatter of a part of few rows. Such a part is no gain."""
    rng = RNG(seed)
    rows = np.concatenate([rng.normal(centre, 1, size=(200, 2)) for centre in (-8, 0, 8)])
    model = sb.Mixture(likelihood=likelihood)
    fit = sb.fit(model, rows, sample_weight=np.full(600, weight), progress=False)
    assert np.isfinite(fit.objective)
    assert fit.counts.sum() == pytest.approx(600 * weight)
    if weight > 1.0:
        # Components are sought with weights of one, which tell two about zero.
        assert fit.n_occupied >= (2 if isinstance(likelihood, sb.ZeroMeanGaussian) else 3)


@pytest.mark.parametrize("name", ["tails", "holes"])
def test_a_twin_is_deleted(name: str) -> None:
    """Each row belongs to both of two equal components. With one less the rows lose no more than their entropies."""
    rng = np.random.default_rng(0)
    if name == "tails":
        likelihood, rows, missing = sb.StudentT(), rng.standard_t(3, size=(300, 2)), "error"
    else:
        likelihood, rows, missing = sb.Gaussian(), rng.normal(size=(300, 3)), "marginalize"
        rows[rng.random(rows.shape) < 0.2] = np.nan
        rows = rows[~np.isnan(rows).all(axis=1)]
    algorithm = sb.Memoized(batches=2, max_passes=2, tol=0.0, moves=(sb.run.moves.Delete(),))
    twins = np.full((len(rows), 2), 0.5)
    fit = sb.fit(sb.Mixture(likelihood), rows, algorithm, init=twins, missing=missing, progress=False)
    assert [record.n_components for record in fit.history] == [1, 1]
