"""What rows may hold under each likelihood, and sparse tables of them."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from numpy.typing import NDArray

import stickbreak as sb

Array = NDArray[Any]
COUNTS = [sb.Multinomial(), sb.Poisson()]
DISCRETE = [*COUNTS, sb.Bernoulli()]
GAUSSIANS = [sb.Gaussian(), sb.DiagonalGaussian(), sb.SphericalGaussian(), sb.ZeroMeanGaussian()]


def fit(likelihood: Any, rows: Any, **options: Any) -> sb.Fit:
    return sb.fit(sb.Mixture(likelihood=likelihood), rows, sb.Full(max_passes=3), n_components=2, **options)


def flags(n: int = 30, d: int = 4) -> Array:
    return np.random.default_rng(0).integers(2, size=(n, d)).astype(float)


def name(likelihood: object) -> str:
    return type(likelihood).__name__


@pytest.mark.parametrize("likelihood", COUNTS, ids=name)
@pytest.mark.parametrize("wrong", [-1.0, 0.5, 2.0**53 + 2, np.inf, np.nan])
def test_what_is_no_count(likelihood: Any, wrong: float) -> None:
    rows = flags()
    fitted = fit(likelihood, rows)
    rows[3, 2] = wrong
    for call, argument in [(lambda: fit(likelihood, rows), "data"), (lambda: fitted.predict(rows), "X")]:
        with pytest.raises(sb.InvalidArgument, match="row 3, column 2") as caught:
            call()
        assert caught.value.argument == argument
        assert caught.value.allowed == "whole numbers from 0 to 2^53"


@pytest.mark.parametrize("wrong", [2.0, -1.0, 0.5, np.nan])
def test_what_is_neither_zero_nor_one(wrong: float) -> None:
    rows = flags()
    rows[7, 0] = wrong
    with pytest.raises(sb.InvalidArgument, match="row 7, column 0") as caught:
        fit(sb.Bernoulli(), rows)
    assert caught.value.allowed == "0 or 1 everywhere"


@pytest.mark.parametrize("likelihood", COUNTS, ids=name)
def test_the_largest_count_is_taken(likelihood: Any) -> None:
    rows = flags()
    rows[0, 0] = 2.0**53
    assert np.isfinite(fit(likelihood, rows).elbo)


@pytest.mark.parametrize("likelihood", DISCRETE, ids=name)
def test_a_wrong_value_in_a_sparse_table_is_named(likelihood: Any) -> None:
    rows = flags()
    rows[4, 1] = -3.0
    with pytest.raises(sb.InvalidArgument, match="-3 in row 4, column 1"):
        fit(likelihood, scipy.sparse.csr_array(rows))


@pytest.mark.parametrize("likelihood", DISCRETE, ids=name)
@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "csr_matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, np.uint8])
def test_sparse_and_dense_agree(likelihood: Any, form: str, dtype: type) -> None:
    rows = flags(200, 12) * (1.0 if isinstance(likelihood, sb.Bernoulli) else 3.0)
    rows[17] = 0.0  # a document without a word
    sparse = getattr(scipy.sparse, form)(rows.astype(dtype))
    dense_dtype = np.float32 if dtype is np.float32 else np.float64
    tolerance = 1e-4 if dtype is np.float32 else 1e-10
    # Not from k-means++, where seeds of flags tie and rounding decides.
    start = np.arange(200) % 2
    ours, dense = fit(likelihood, sparse, init=start), fit(likelihood, rows.astype(dense_dtype), init=start)
    assert ours.elbo == pytest.approx(dense.elbo, rel=tolerance)
    np.testing.assert_allclose(ours.predict_proba(sparse), dense.predict_proba(rows), atol=100 * tolerance)
    densities = ours.log_predictive(sparse), dense.log_predictive(rows)
    np.testing.assert_allclose(*densities, rtol=10 * tolerance, atol=tolerance)
    assert ours.evaluate(sparse) == pytest.approx(dense.evaluate(rows), rel=tolerance)


@pytest.mark.parametrize("likelihood", DISCRETE, ids=name)
def test_indices_may_be_unsorted_and_repeated(likelihood: Any) -> None:
    """As SciPy reads them: repeated entries add up. The user's own table stays as it is."""
    whole = flags(60, 5)
    table = scipy.sparse.csr_array(whole)
    starts, columns, values = [0], [], []
    for row in range(60):
        stored = np.flatnonzero(whole[row])[::-1]
        columns.extend([*stored, *stored])
        values.extend([1.0] * len(stored) + [0.0] * len(stored))
        starts.append(len(columns))
    messy = scipy.sparse.csr_array((values, columns, starts), shape=whole.shape)
    assert not messy.has_canonical_format
    before = messy.indices.copy()
    assert fit(likelihood, messy).elbo == fit(likelihood, table).elbo
    np.testing.assert_array_equal(messy.indices, before)


@pytest.mark.parametrize("likelihood", GAUSSIANS, ids=name)
def test_gaussians_take_no_sparse_table(likelihood: Any) -> None:
    with pytest.raises(sb.InvalidType, match="toarray") as caught:
        fit(likelihood, scipy.sparse.csr_array(flags()))
    assert caught.value.argument == "data"


def test_a_broken_sparse_table_is_refused() -> None:
    table = scipy.sparse.csr_array(flags())
    table.indices[3] = 99
    with pytest.raises(sb.InvalidArgument, match="fit together"):
        fit(sb.Multinomial(), table)


@pytest.mark.parametrize("n_columns", [2**33, 2**45])
def test_more_columns_than_can_be_numbered_are_refused(n_columns: int) -> None:
    """Their indices would be cut to 32 bits."""
    table = scipy.sparse.csr_array((np.ones(2), [0, n_columns - 1], [0, 1, 2]), shape=(2, n_columns))
    with pytest.raises(sb.InvalidArgument, match="at most 4294967296 columns") as caught:
        fit(sb.Multinomial(), table)
    assert caught.value.argument == "data"


@pytest.mark.slow
def test_a_sparse_table_never_becomes_dense() -> None:
    """100,000 x 200,000 values would be 160 GB."""
    rng = np.random.default_rng(0)
    columns = rng.integers(200_000, size=300_000)
    starts = np.arange(0, 300_001, 3)
    table = scipy.sparse.csr_array((np.ones(300_000), columns, starts), shape=(100_000, 200_000))
    fitted = fit(sb.Multinomial(), table)
    assert np.isfinite(fitted.elbo)
    assert fitted.predict(table).shape == (100_000,)


@pytest.mark.parametrize("likelihood", DISCRETE, ids=name)
def test_whole_numbers_are_converted_without_a_word(likelihood: Any, recwarn: pytest.WarningsRecorder) -> None:
    fit(likelihood, flags().astype(np.int64))
    assert not [warning for warning in recwarn if issubclass(warning.category, sb.ConversionWarning)]


@pytest.mark.parametrize(
    ("covariance", "found"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "without a Cholesky factor"),
        ([[1.0, 0.5], [0.4, 1.0]], "different at"),
        ([1.0, 2.0], "an array of shape"),
    ],
)
def test_covariances_that_are_none(covariance: Any, found: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=found) as caught:
        sb.KnownCovarianceGaussian(covariance)
    assert caught.value.argument == "covariance"


def test_a_covariance_of_another_size_is_refused() -> None:
    with pytest.raises(sb.InvalidArgument, match="of size 4") as caught:
        fit(sb.KnownCovarianceGaussian(np.eye(3)), np.random.default_rng(0).normal(size=(20, 4)))
    assert caught.value.argument == "covariance"
    with pytest.raises(sb.InvalidArgument, match="positive definite") as caught:
        sb.KnownCovarianceGaussian(np.eye(2), mean_precision=-np.eye(2))
    assert caught.value.argument == "mean_precision"


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: sb.DiagonalGaussian(rate=[1.0, 0.0]), "rate"),
        (lambda: sb.DiagonalGaussian(shape=-1), "shape"),
        (lambda: sb.SphericalGaussian(base="other"), "base"),  # type: ignore[arg-type]
        (lambda: sb.SphericalGaussian(rate=0), "rate"),
        (lambda: sb.Multinomial([1.0, -1.0]), "pseudo_counts"),
        (lambda: sb.Bernoulli(failures=0), "failures"),
        (lambda: sb.Bernoulli([1.0, 2.0], failures=[1.0]), "failures"),
        (lambda: sb.Poisson(shape=[0.0]), "shape"),
        (lambda: sb.Poisson(rate=np.inf), "rate"),
    ],
)
def test_parameters_that_are_not_allowed(make: Any, argument: str) -> None:
    with pytest.raises(sb.InvalidArgument) as caught:
        make()
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "likelihood",
    [sb.DiagonalGaussian(rate=[1, 2]), sb.Multinomial([1, 2]), sb.Bernoulli([1, 2]), sb.Poisson([1, 2])],
    ids=name,
)
def test_parameters_of_another_size_than_the_data(likelihood: Any) -> None:
    with pytest.raises(sb.InvalidArgument, match="of size 4"):
        fit(likelihood, flags())


def test_the_coefficient_is_a_flag() -> None:
    with pytest.raises(sb.InvalidType):
        sb.Multinomial(coefficient=1)  # type: ignore[arg-type]
    rows = flags()
    with_it, without = fit(sb.Multinomial(), rows), fit(sb.Multinomial(coefficient=False), rows)
    assert with_it.model.likelihood.coefficient is True  # type: ignore[attr-defined]
    assert with_it.elbo - without.elbo == pytest.approx(
        np.sum(np.log([1.0, 1.0, 2.0, 6.0, 24.0])[rows.sum(1).astype(int)])
    )


PRODUCT = sb.SphericalGaussian(base="product")


@pytest.mark.parametrize("likelihood", [sb.ZeroMeanGaussian(), PRODUCT, sb.Multinomial()], ids=name)
def test_missing_values_that_cannot_be_left_out(likelihood: Any) -> None:
    with pytest.raises(sb.NotSupported, match="or data without missing values"):
        fit(likelihood, flags(), missing="marginalize")


def test_rows_without_values_have_no_part() -> None:
    rows = np.random.default_rng(0).normal(size=(50, 2))
    holed = np.concatenate([rows, np.full((3, 2), np.nan)])
    with pytest.warns(sb.EmptyRowsWarning, match="3 rows have no value"):
        fitted = fit(sb.DiagonalGaussian(), holed, missing="marginalize", init=np.arange(53) % 2)
    other = fit(sb.DiagonalGaussian(), rows, missing="marginalize", init=np.arange(50) % 2)
    assert fitted.counts.sum() == pytest.approx(50)
    assert fitted.elbo == pytest.approx(other.elbo, rel=1e-12)
    # What such a row gets is what the weights say.
    shares = np.exp(np.log(fitted.predict_proba(holed)[50:]))
    np.testing.assert_allclose(shares, shares[:1].repeat(3, axis=0))
    with pytest.raises(sb.InvalidArgument, match="without a value"):
        fit(sb.DiagonalGaussian(), np.full((4, 2), np.nan), missing="marginalize")


def test_a_fit_without_holes_takes_none() -> None:
    fitted = fit(sb.DiagonalGaussian(), np.random.default_rng(0).normal(size=(50, 2)))
    with pytest.raises(sb.InvalidArgument):
        fitted.predict([[np.nan, 0.0]])
    with pytest.raises(sb.NotSupported, match="marginalize"):
        fitted.impute([[np.nan, 0.0]])
    with pytest.raises(sb.NotSupported, match="marginalize"):
        fitted.sample_missing([[np.nan, 0.0]])
