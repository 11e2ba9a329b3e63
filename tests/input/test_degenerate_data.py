"""Degenerate data give finite, monotone fits: mathematics 7, number 20."""

from collections.abc import Callable

import numpy as np
import pytest

import stickbreak as sb
from cases import LIKELIHOODS, LikelihoodName, clustered_rows

# Tests of columns that the model leaves out are in tests/model/test_support.py.
pytestmark = pytest.mark.filterwarnings("ignore::stickbreak.SupportWarning")

RNG = np.random.default_rng


def constant_columns() -> np.ndarray:
    rows = clustered_rows(RNG(0), 120, 4, 3)
    rows[:, [0, 2]] = [7.0, 0.0]
    return rows


def repeated_rows() -> np.ndarray:
    return np.repeat(clustered_rows(RNG(1), 6, 3, 2), 25, axis=0)


def fewer_rows_than_columns() -> np.ndarray:
    return clustered_rows(RNG(2), 6, 20, 2)


def collinear() -> np.ndarray:
    return np.outer(RNG(3).standard_normal(100), [1.0, -2.0, 0.5])


def one_column() -> np.ndarray:
    return clustered_rows(RNG(4), 50, 1, 2)


def two_rows() -> np.ndarray:
    return np.array([[0.0, 1.0], [2.0, -1.0]])


def outlier() -> np.ndarray:
    rows = clustered_rows(RNG(5), 100, 2, 2)
    rows[0] = 1e6
    return rows


def mixed_scales() -> np.ndarray:
    return clustered_rows(RNG(6), 100, 3, 2) * [1e-8, 1.0, 1e8]


def tiny() -> np.ndarray:
    return 1e-30 * clustered_rows(RNG(7), 100, 2, 2)


def large() -> np.ndarray:
    return 1e30 * clustered_rows(RNG(8), 100, 2, 2)


def very_tiny() -> np.ndarray:
    return 1e-100 * clustered_rows(RNG(7), 100, 2, 2)


def very_large() -> np.ndarray:
    return 1e100 * clustered_rows(RNG(8), 100, 2, 2)


def subnormal_noise() -> np.ndarray:
    rows = clustered_rows(RNG(9), 60, 2, 2)
    rows[:, 1] = np.where(rows[:, 1] > 0, 5e-324, 0.0)
    return rows


DATA = [
    constant_columns,
    repeated_rows,
    fewer_rows_than_columns,
    collinear,
    one_column,
    two_rows,
    outlier,
    mixed_scales,
    tiny,
    large,
    very_tiny,
    very_large,
    subnormal_noise,
]


def own_model(likelihood: LikelihoodName) -> sb.Mixture:
    chosen = sb.Gaussian() if likelihood == "gaussian" else sb.ZeroMeanGaussian()
    return sb.Mixture(likelihood=chosen, process=sb.DirichletProcess())


def assert_sound(fit: sb.Fit, rows: np.ndarray, total: float) -> None:
    """Assert that everything is finite, the bound is monotone, and masses are right."""
    bounds = np.array([record.objective for record in fit.history])
    assert np.isfinite(bounds).all()
    # Scales that are estimated may lose digits in directions without scatter.
    assert (np.diff(bounds) >= -1e-7 * (1.0 + np.abs(bounds[1:]))).all()
    assert fit.counts.sum() == pytest.approx(total, rel=1e-9)
    for values in (*fit.components.values(), fit.weights, fit.log_predictive(rows), fit.predict_proba(rows)):
        assert np.isfinite(values).all()
    assert np.isfinite(fit.sample(20, seed=0)).all()


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("make", DATA)
@pytest.mark.parametrize("init", ["kmeans++", "random"])
def test_degenerate(likelihood: LikelihoodName, make: Callable[[], np.ndarray], init: str) -> None:
    rows = make()
    components = min(4, len(rows))
    batches = min(3, len(rows))
    for algorithm in [
        sb.Full(sparsity=None, max_passes=12, tol=0.0),
        sb.Memoized(batches=batches, sparsity=min(2, components), max_passes=12, tol=0.0),
    ]:
        fit = sb.fit(own_model(likelihood), rows, algorithm, n_components=components, init=init, progress=False)
        assert_sound(fit, rows, len(rows))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_as_many_components_as_rows(likelihood: LikelihoodName) -> None:
    rows = clustered_rows(RNG(10), 9, 2, 3)
    algorithm = sb.Memoized(batches=9, sparsity=9, max_passes=10, tol=0.0)
    fit = sb.fit(own_model(likelihood), rows, algorithm, n_components=9, progress=False)
    assert fit.n_components == 9
    assert_sound(fit, rows, 9)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_identical_rows(likelihood: LikelihoodName) -> None:
    """Identical rows have a covariance of zero; the default scale must still be positive definite."""
    rows = np.full((40, 2), 3.0)
    if likelihood == "gaussian":
        given = sb.Gaussian(mean=[0.0, 0.0], mean_precision=0.1, dof=4.0, scale=np.eye(2))
    else:
        given = sb.ZeroMeanGaussian(dof=4.0, scale=np.eye(2))
    for model in [own_model(likelihood), sb.Mixture(likelihood=given, process=sb.DirichletProcess())]:
        for init in ["kmeans++", "random"]:
            fit = sb.fit(model, rows, sb.Full(max_passes=10, tol=0.0), n_components=3, init=init, progress=False)
            assert_sound(fit, rows, 40)
            assert np.linalg.eigvalsh(fit.model.likelihood.scale).min() > 0


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_without_weight(shuffle: bool) -> None:
    """Test whole batches of weight zero, with most other rows of weight zero too."""
    rows = clustered_rows(RNG(11), 100, 2, 2)
    weights = (np.arange(100) % 7 == 0).astype(float)
    weights[:40] = 0.0
    algorithm = sb.Memoized(batches=10, shuffle=shuffle, max_passes=10, tol=0.0)
    fit = sb.fit(own_model("gaussian"), rows, algorithm, n_components=3, sample_weight=weights, progress=False)
    assert_sound(fit, rows, weights.sum())


@pytest.mark.parametrize("size", [1e-12, 1e9])
def test_weights_of_any_size(size: float) -> None:
    rows = clustered_rows(RNG(12), 100, 2, 2)
    weights = size * RNG(13).uniform(0.5, 1.5, 100)
    fit = sb.fit(
        own_model("gaussian"),
        rows,
        sb.Full(max_passes=10, tol=0.0),
        n_components=3,
        sample_weight=weights,
        progress=False,
    )
    assert_sound(fit, rows, weights.sum())


@pytest.mark.parametrize("offset", [1e4, 1e8])
def test_offsets_change_nothing(offset: float) -> None:
    """Rows of a full Gaussian are centred first, so an offset of 1e8 costs only its own rounding.

    The rows are multiples of 2^-20, which float64 holds exactly at 1e8; what remains is the rounding of the column
    means, about 1e-8 here, which moves the bound by far less than the 1e-7 allowed.
    """
    rows = np.round(clustered_rows(RNG(14), 300, 3, 4) * 2**20) / 2**20
    start = RNG(15).dirichlet(np.full(4, 0.3), 300)
    algorithm = sb.Full(sparsity=2, max_passes=8, tol=0.0)
    fit = sb.fit(own_model("gaussian"), rows, algorithm, init=start, progress=False)
    moved = sb.fit(own_model("gaussian"), rows + offset, algorithm, init=start, progress=False)
    assert_sound(moved, rows + offset, 300)
    np.testing.assert_allclose(moved.elbo, fit.elbo, rtol=1e-7)
    np.testing.assert_allclose(moved.components["scale"], fit.components["scale"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(moved.components["mean"] - offset, fit.components["mean"], atol=1e-6)
    np.testing.assert_array_equal(moved.predict(rows + offset), fit.predict(rows))
    np.testing.assert_allclose(moved.log_predictive(rows + offset), fit.log_predictive(rows), atol=1e-5)


def test_offset_in_single_precision() -> None:
    """float32 at an offset of 1000 rounds the data to 6e-5; the result is that of the rounded data."""
    rows = (clustered_rows(RNG(16), 300, 3, 4) + 1000.0).astype(np.float32)
    start = RNG(17).dirichlet(np.full(4, 0.3), 300)
    algorithm = sb.Full(sparsity=None, max_passes=0)
    single = sb.fit(own_model("gaussian"), rows, algorithm, init=start, progress=False)
    double = sb.fit(own_model("gaussian"), rows.astype(np.float64), algorithm, init=start, progress=False)
    assert abs(single.elbo - double.elbo) < 1e-5 * 300
    np.testing.assert_allclose(single.log_predictive(rows), double.log_predictive(rows.astype(float)), atol=1e-4)


def test_what_is_just_not_refused_is_sound() -> None:
    """`fit` refuses values that float64 would lose; just below that limit, results are as for any other data."""
    rows = clustered_rows(RNG(18), 100, 2, 2)
    for chosen, moved in [
        (sb.Gaussian(scale=1e-11 * np.eye(2)), rows),
        (sb.Gaussian(mean=[1e5, -1e5]), rows),
        (sb.ZeroMeanGaussian(), rows + 1e6),
    ]:
        model = sb.Mixture(likelihood=chosen, process=sb.DirichletProcess())
        fit = sb.fit(model, moved, sb.Full(max_passes=10, tol=0.0), n_components=3, progress=False)
        assert np.isfinite(fit.log_predictive(moved)).all()
        bounds = np.array([record.objective for record in fit.history])
        assert (np.diff(bounds) >= -1e-6 * (1.0 + np.abs(bounds[1:]))).all()


def test_sizes_change_nothing_but_units() -> None:
    """Scaling by a power of two changes only exponents: same clusters, and the bound minus the log volume."""
    rows = clustered_rows(RNG(19), 200, 2, 3)
    algorithm = sb.Full(max_passes=8, tol=0.0)
    options = {"init": np.arange(200) % 3, "progress": False}
    fit = sb.fit(own_model("gaussian"), rows, algorithm, **options)
    for power in [-300, 300]:
        scaled = sb.fit(own_model("gaussian"), rows * 2.0**power, algorithm, **options)
        np.testing.assert_array_equal(scaled.predict(rows * 2.0**power), fit.predict(rows))
        assert scaled.elbo == pytest.approx(fit.elbo - 200 * 2 * power * np.log(2.0), rel=1e-9)
