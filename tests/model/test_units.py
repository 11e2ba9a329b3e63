"""Units of columns: results in other units or with another origin differ only by the change of units."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import stickbreak as sb

Make = Callable[[], sb.Gaussian | sb.ZeroMeanGaussian | sb.DiagonalGaussian | sb.SphericalGaussian]
# Whether each column may have a unit of its own.
LIKELIHOODS: dict[str, tuple[Make, bool]] = {
    "gaussian": (sb.Gaussian, True),
    "zero_mean": (sb.ZeroMeanGaussian, True),
    "diagonal": (sb.DiagonalGaussian, True),
    "spherical": (sb.SphericalGaussian, False),
    "product": (lambda: sb.SphericalGaussian(base="product"), False),
}


def blobs(n: int = 400, dimension: int = 3) -> np.ndarray:
    """Five clear clusters."""
    rng = np.random.default_rng(3)
    centres = 8.0 * rng.standard_normal((5, dimension))
    return centres[np.arange(n) % 5] + rng.standard_normal((n, dimension))


def same_partition(one: np.ndarray, other: np.ndarray) -> bool:
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", LIKELIHOODS)
@settings(max_examples=6, deadline=None)
@given(
    powers=st.lists(st.integers(-40, 40), min_size=3, max_size=3), batches=st.sampled_from([1, 3]), far=st.booleans()
)
@pytest.mark.one_in(3)
def test_powers_of_two_move_no_bit(name: str, dtype: type, powers: list[int], batches: int, far: bool) -> None:
    make, by_column = LIKELIHOODS[name]
    factors = 2.0 ** np.array(powers if by_column else powers[:1] * 3)
    rows = blobs().astype(dtype)
    rows[:2] += 2.0**22 * far
    moved = (rows * factors).astype(dtype)
    model, algorithm = sb.Mixture(likelihood=make()), sb.Memoized(batches=batches, max_passes=6)
    fit, other = (sb.fit(model, data, algorithm, n_components=6, progress=False) for data in (rows, moved))
    volume = float(np.log(factors).sum())
    np.testing.assert_array_equal(other.counts, fit.counts)
    np.testing.assert_array_equal(other.predict_proba(moved), fit.predict_proba(rows))
    assert other.elbo == pytest.approx(fit.elbo - len(rows) * volume, rel=1e-9)
    np.testing.assert_allclose(other.log_predictive(moved), fit.log_predictive(rows) - volume, rtol=1e-9, atol=1e-9)
    assert other.evaluate(moved) == pytest.approx(fit.evaluate(rows) - len(rows) * volume, rel=1e-9)
    np.testing.assert_array_equal(other.sample(5), fit.sample(5) * factors)
    if "mean" in fit.components:
        np.testing.assert_array_equal(other.components["mean"], fit.components["mean"] * factors)
        np.testing.assert_array_equal(other.point_estimates["mean"], fit.point_estimates["mean"] * factors)
    for parameter, raised in [("scale", np.outer(factors, factors)), ("rate", factors**2)]:
        if parameter in fit.components:
            of_spherical = raised if by_column else raised.flat[0]
            np.testing.assert_array_equal(other.components[parameter], fit.components[parameter] * of_spherical)
            mine, its = (getattr(each.model.likelihood, parameter) for each in (fit, other))
            np.testing.assert_array_equal(its, mine * of_spherical)


@pytest.mark.parametrize("name", ["gaussian", "diagonal"])
@settings(max_examples=10, deadline=None)
@given(
    factors=st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=3),
    shifts=st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3),
)
@pytest.mark.one_in(2)
def test_any_units_and_origin_give_the_same_clusters(name: str, factors: list[float], shifts: list[float]) -> None:
    rows = blobs()
    moved = (rows + rows.std(0) * shifts) * factors
    model = sb.Mixture(likelihood=LIKELIHOODS[name][0]())
    fit, other = (sb.fit(model, data, progress=False) for data in (rows, moved))
    assert same_partition(fit.predict(rows), other.predict(moved))
    assert other.elbo == pytest.approx(fit.elbo - len(rows) * np.log(factors).sum(), rel=1e-6, abs=1e-3)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_the_shown_model_is_the_model(name: str) -> None:
    """What `Fit.model` shows, given as parameters, is the same model to the last bit."""
    rows = blobs() * ([1e-3, 5.0, 1e4] if LIKELIHOODS[name][1] else 300.0)
    algorithm = sb.Full(max_passes=4)
    ruled = dataclasses.replace(LIKELIHOODS[name][0](), prior="rule")
    fit = sb.fit(sb.Mixture(likelihood=ruled), rows, algorithm, n_components=5, progress=False)
    again = sb.fit(fit.model, rows, algorithm, n_components=5, progress=False)
    assert (again.elbo, again.model) == (fit.elbo, fit.model)


@pytest.mark.parametrize("objective", ["map", "ml"])
@pytest.mark.parametrize("name", ["gaussian", "zero_mean", "diagonal", "spherical"])
def test_point_estimates_follow_units(name: str, objective: str) -> None:
    """The value of "map" has a density of parameters in it, which has units too."""
    rows, chosen = blobs(), LIKELIHOODS[name][0]()
    factor = 8.0
    if isinstance(chosen, sb.SphericalGaussian | sb.DiagonalGaussian):
        chosen = type(chosen)(shape=2.0)
    elif objective == "map":
        chosen = type(chosen)(dof=8.0)
    algorithm = sb.Full(max_passes=5, objective=objective)
    model = sb.Mixture(likelihood=chosen, process=sb.FiniteDirichlet(n_components=3, concentration=6.0))
    fit, other = (sb.fit(model, each, algorithm, progress=False) for each in (rows, factor * rows))
    # Jacobians of a mean and of a precision, for each component.
    of_mean, of_precision = {"gaussian": (3, 12), "zero_mean": (0, 12), "diagonal": (3, 6), "spherical": (3, 2)}[name]
    jacobian = 3 * (of_precision - of_mean) * np.log(factor) if objective == "map" else 0.0
    assert other.elbo == pytest.approx(fit.elbo - len(rows) * 3 * np.log(factor) + jacobian, rel=1e-9)


def test_a_file_of_another_unit_is_refused(tmp_path: object) -> None:
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), 100.0 * blobs(), n_components=2, progress=False)
    header, arrays = fit._to_parts()
    units = arrays["coordinates.units"]
    for wrong in (3.0 * units, -units, 0.0 * units, units * np.nan, 2.0 * units, units[:2]):
        with pytest.raises(sb.StickbreakError):
            sb.Fit._from_parts(header, arrays | {"coordinates.units": wrong})
