"""Which rows a likelihood takes: finite numbers, counts or zeros and ones; dense, and for counts sparse."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import stickbreak as sb
from cases import START, Case, fit_from, make_case, passes, replaced, visible_bits
from kinds import LIKELIHOODS, every_likelihood, public

WRONG: dict[str, dict[str, float]] = {
    "real": {"nan": np.nan, "infinite": np.inf, "minus_infinite": -np.inf},
    "counts": {"nan": np.nan, "infinite": np.inf, "negative": -1.0, "half": 0.5, "beyond_2^53": 2.0**53 + 2},
    "codes": {"nan": np.nan, "infinite": np.inf, "negative": -1.0, "half": 0.5, "unseen": 4.0},
    "mixed": {"nan": np.nan, "infinite": np.inf, "negative": -1.0, "half": 0.5, "unseen": 4.0},
    "binary": {"nan": np.nan, "infinite": np.inf, "two": 2.0, "half": 0.5, "negative": -1.0},
}
READERS: dict[str, Callable[[sb.Fit, Any], Any]] = {
    "predict": lambda fit, rows: fit.predict(rows),
    "predict_proba": lambda fit, rows: fit.predict_proba(rows),
    "sparse_predict_proba": lambda fit, rows: fit.predict_proba(rows, sparse=True),
    "log_predictive": lambda fit, rows: fit.log_predictive(rows),
    "plug_in": lambda fit, rows: fit.log_predictive(rows, plug_in=True),
    "evaluate": lambda fit, rows: fit.evaluate(rows),
}
OF_COUNTS = [name for name, kind in LIKELIHOODS.items() if kind.domain not in ("real", "mixed")]
of_sparse_rows = pytest.mark.parametrize(
    "likelihood", [name for name, kind in LIKELIHOODS.items() if public(kind.public)._accepts_sparse]
)


@pytest.mark.parametrize(
    ("likelihood", "wrong"), [(name, wrong) for name, kind in LIKELIHOODS.items() for wrong in WRONG[kind.domain]]
)
def test_other_values_are_refused(likelihood: str, wrong: str) -> None:
    """In `fit` and in everything that reads rows; the error names the place."""
    case = make_case(1, likelihood=likelihood)
    fit = fit_from(case, passes(2))
    rows = case.rows.copy()
    rows[7, 2] = WRONG[LIKELIHOODS[likelihood].domain][wrong]
    with pytest.raises(sb.InvalidArgument, match="row 7, column 2") as caught:
        fit_from(replaced(case, rows=rows))
    assert caught.value.argument == "data"
    for read in READERS.values():
        with pytest.raises(sb.InvalidArgument, match="row 7, column 2") as caught:
            read(fit, rows)
        assert caught.value.argument == "X"


@every_likelihood
def test_every_reader_takes_rows_of_the_domain(likelihood: str) -> None:
    case = make_case(2, likelihood=likelihood)
    fit = fit_from(case, passes(2))
    for read in READERS.values():
        found = read(fit, case.rows)
        assert np.isfinite(found.toarray() if scipy.sparse.issparse(found) else found).all()


@pytest.mark.parametrize(
    ("likelihood", "dtype"),
    [(name, dtype) for name in OF_COUNTS for dtype in (np.int64, np.uint8, np.int16, np.float32)]
    + [("bernoulli", bool)],
)
def test_counts_of_any_type(likelihood: str, dtype: type) -> None:
    """These likelihoods expect integers, so their conversion does not warn."""
    case = make_case(3, likelihood=likelihood)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = fit_from(replaced(case, rows=case.rows.astype(dtype)), passes(3))
    tolerance = 1e-5 if dtype is np.float32 else 1e-12
    assert fit.elbo == pytest.approx(fit_from(case, passes(3)).elbo, rel=tolerance)


# Sparse rows


def sparse_case(seed: int, likelihood: str, **options: Any) -> tuple[Case, scipy.sparse.csr_array]:
    """A case with rows of zeros and columns of zeros among its rows, dense and sparse."""
    case = make_case(seed, likelihood=likelihood, dimension=6, **options)
    rows = np.where(np.random.default_rng(seed).random(case.rows.shape) < 0.6, 0.0, case.rows)
    rows[[0, 5]] = 0.0
    rows[:, 3] = 0.0
    return replaced(case, rows=rows), scipy.sparse.csr_array(rows)


@of_sparse_rows
@pytest.mark.parametrize("sparsity", [2, None])
def test_sparse_rows_are_dense_rows(likelihood: str, sparsity: int | None) -> None:
    """The same fit, in batches too, and the same answers."""
    case, table = sparse_case(4, likelihood, weighted=True)
    for algorithm in (
        passes(4, sparsity),
        sb.Memoized(batches=3, sparsity=sparsity, margin=None, max_passes=4, tol=0.0),
    ):
        dense, sparse = fit_from(case, algorithm), fit_from(replaced(case, rows=table), algorithm)
        assert sparse.elbo == pytest.approx(dense.elbo, rel=1e-10)
        np.testing.assert_allclose(sparse.counts, dense.counts, rtol=1e-9, atol=1e-10)
        for name, values in dense.components.items():
            np.testing.assert_allclose(sparse.components[name], values, rtol=1e-9, atol=1e-10)
        for name, read in READERS.items():
            if name != "sparse_predict_proba":
                np.testing.assert_allclose(read(sparse, table), read(dense, case.rows), rtol=1e-8, atol=1e-10)


@of_sparse_rows
@pytest.mark.parametrize("init", ["kmeans++", "random"])
def test_sparse_rows_start_where_dense_rows_do(likelihood: str, init: str) -> None:
    """The same seeds, and so the same fit, with parameters that follow the data in the same way."""
    case, table = sparse_case(5, likelihood)
    model = sb.Mixture(likelihood=public(LIKELIHOODS[likelihood].public)(), process=sb.DirichletProcess())
    options = {"n_components": 3, "init": init, "seed": 3, "progress": False}
    dense, sparse = (sb.fit(model, rows, passes(5), **options) for rows in (case.rows, table))
    assert sparse.elbo == pytest.approx(dense.elbo, rel=1e-9)
    np.testing.assert_array_equal(sparse.predict(table), dense.predict(case.rows))


@of_sparse_rows
def test_sparse_rows_in_any_form(likelihood: str) -> None:
    """Unsorted columns, duplicates that add up, explicit zeros, other formats and types of index: the same bits."""
    case, table = sparse_case(6, likelihood)
    expected = visible_bits(fit_from(replaced(case, rows=table), passes(2)), table)
    unsorted = table.copy()
    for row in range(unsorted.shape[0]):
        part = slice(unsorted.indptr[row], unsorted.indptr[row + 1])
        unsorted.indices[part] = unsorted.indices[part][::-1].copy()
        unsorted.data[part] = unsorted.data[part][::-1].copy()
    unsorted.has_sorted_indices = False
    coordinates = table.tocoo()
    zero = np.zeros(1, int)
    twice = scipy.sparse.coo_array(
        (
            np.concatenate([coordinates.data, [0.0, 0.0]]),
            (
                np.concatenate([coordinates.row, zero, zero]),
                np.concatenate([coordinates.col, zero, zero]),
            ),
        ),
        shape=table.shape,
    )
    forms = {
        "unsorted": unsorted,
        "duplicates": twice,
        "csc": table.tocsc(),
        "matrix": scipy.sparse.csr_matrix(table),
        "int64": scipy.sparse.csr_array(
            (table.data, table.indices.astype(np.int64), table.indptr.astype(np.int64)), shape=table.shape
        ),
    }
    for name, form in forms.items():
        before = form.copy()
        found = fit_from(replaced(case, rows=form), passes(2))
        assert visible_bits(found, table) == expected, name
        assert (before != form).nnz == 0, "the user's array was changed"


def test_duplicates_add_up() -> None:
    case, table = sparse_case(7, "poisson")
    halves = scipy.sparse.coo_array(
        (
            np.concatenate([table.tocoo().data, np.ones(table.nnz)]),
            (np.tile(table.tocoo().row, 2), np.tile(table.tocoo().col, 2)),
        ),
        shape=table.shape,
    )
    summed = replaced(case, rows=case.rows + (case.rows > 0))
    assert fit_from(replaced(case, rows=halves), passes(2)).elbo == pytest.approx(fit_from(summed, passes(2)).elbo)


@of_sparse_rows
def test_wrong_values_of_sparse_rows_are_refused(likelihood: str) -> None:
    case, table = sparse_case(8, likelihood)
    wrong = table.copy()
    wrong.data[3] = 0.5
    row = int(np.searchsorted(wrong.indptr, 3, side="right")) - 1
    with pytest.raises(sb.InvalidArgument, match=f"row {row}, column {wrong.indices[3]}"):
        fit_from(replaced(case, rows=wrong))
    with pytest.raises(sb.InvalidArgument, match="column"):
        fit_from(replaced(case, rows=table), passes(1)).predict(table[:, :4])


@pytest.mark.parametrize("likelihood", [name for name, kind in LIKELIHOODS.items() if kind.domain == "real"])
def test_sparse_rows_of_real_numbers_are_refused(likelihood: str) -> None:
    """Sparse real numbers would have to become dense, so they are refused with an alternative."""
    case = make_case(9, likelihood=likelihood)
    with pytest.raises((sb.InvalidType, sb.InvalidArgument, sb.NotSupported)):
        fit_from(replaced(case, rows=scipy.sparse.csr_array(case.rows)))


@pytest.mark.parametrize("likelihood", ["bernoulli", "poisson"])
def test_sparse_rows_have_no_holes(likelihood: str) -> None:
    """What a sparse array leaves out is zero; a NaN in it is refused whatever `missing` says."""
    case, table = sparse_case(10, likelihood)
    holed = table.copy()
    holed.data[0] = np.nan
    for missing in ("error", "marginalize"):
        with pytest.raises((sb.InvalidArgument, sb.NotSupported)):
            fit_from(replaced(case, rows=holed), missing=missing)


@of_sparse_rows
def test_rows_of_zeros(likelihood: str) -> None:
    """Rows of zeros are ordinary rows: a table of zeros has a fit with finite numbers."""
    case = make_case(11, likelihood=likelihood)
    fit = fit_from(replaced(case, rows=np.zeros_like(case.rows)), passes(5))
    assert np.isfinite([record.objective for record in fit.history]).all()
    assert np.isfinite(fit.log_predictive(case.rows)).all()
    np.testing.assert_allclose(fit.predict_proba(np.zeros((1, 3))).sum(), 1.0, rtol=1e-12)


def test_large_counts() -> None:
    """Up to 2^53; bounds stay finite and never fall, relative to their size."""
    rng = np.random.default_rng(12)
    for likelihood in ("multinomial", "poisson"):
        case = make_case(12, likelihood=likelihood)
        rows = np.floor(rng.uniform(0.0, 2.0**30, case.rows.shape))
        rows[0, 0] = 2.0**53
        model = sb.Mixture(likelihood=public(LIKELIHOODS[likelihood].public)(), process=sb.DirichletProcess())
        fit = sb.fit(model, rows, passes(6), n_components=3, progress=False)
        bounds = np.array([record.objective for record in fit.history])
        assert np.isfinite(bounds).all()
        assert (np.diff(bounds) >= -1e-9 * np.abs(bounds[1:])).all()


# Parameters


@pytest.mark.parametrize(
    ("name", "arguments", "argument"),
    [
        ("KnownCovarianceGaussian", {"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "covariance"),
        ("KnownCovarianceGaussian", {"covariance": [[1.0, 0.5], [0.0, 1.0]]}, "covariance"),
        ("KnownCovarianceGaussian", {"covariance": [[1.0, 0.0]]}, "covariance"),
        ("KnownCovarianceGaussian", {"covariance": np.eye(2), "mean_precision": 0.0}, "mean_precision"),
        ("KnownCovarianceGaussian", {"covariance": np.eye(2), "mean_precision": -np.eye(2)}, "mean_precision"),
        ("KnownCovarianceGaussian", {"covariance": np.eye(2), "mean_precision": np.eye(3)}, "mean_precision"),
        ("KnownCovarianceGaussian", {"covariance": np.eye(2), "mean": [0.0]}, "mean"),
        ("DiagonalGaussian", {"shape": 0.0}, "shape"),
        ("DiagonalGaussian", {"rate": [1.0, -1.0]}, "rate"),
        ("DiagonalGaussian", {"mean": [0.0], "rate": [1.0, 1.0]}, "rate"),
        ("DiagonalGaussian", {"mean_precision": -1.0}, "mean_precision"),
        ("SphericalGaussian", {"shape": -1.0}, "shape"),
        ("SphericalGaussian", {"rate": np.inf}, "rate"),
        ("SphericalGaussian", {"base": "produkt"}, "base"),
        ("Multinomial", {"pseudo_counts": 0.0}, "pseudo_counts"),
        ("Multinomial", {"pseudo_counts": [1.0, np.nan]}, "pseudo_counts"),
        ("Multinomial", {"coefficient": "yes"}, "coefficient"),
        ("Bernoulli", {"successes": -1.0}, "successes"),
        ("Bernoulli", {"failures": [1.0, 0.0]}, "failures"),
        ("Poisson", {"shape": [0.0]}, "shape"),
        ("Poisson", {"rate": 0.0}, "rate"),
    ],
)
def test_wrong_parameters_are_named(name: str, arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        public(name)(**arguments)
    assert caught.value.argument == argument


@pytest.mark.parametrize("likelihood", [name for name in LIKELIHOODS if name not in ("gaussian", "zero_mean_gaussian")])
def test_parameters_of_another_width_are_refused(likelihood: str) -> None:
    """Parameters for three columns, rows of four."""
    case = make_case(13, likelihood=likelihood)
    wide = np.column_stack([case.rows, case.rows[:, 0]])
    with pytest.raises(sb.InvalidArgument):
        sb.fit(case.model, wide, START, init=case.responsibilities, progress=False)


@every_likelihood
def test_specifications_are_values(likelihood: str) -> None:
    """Equal, hashable and shown with what they hold; read back from a fit as they were given."""
    case = make_case(14, likelihood=likelihood)
    again = make_case(14, likelihood=likelihood)
    assert case.model.likelihood == again.model.likelihood
    assert hash(case.model.likelihood) == hash(again.model.likelihood)
    assert type(case.model.likelihood).__name__ in repr(case.model.likelihood)
    given = case.model.likelihood
    # Absent parameters follow the data.
    assert fit_from(case).model == dataclasses.replace(case.model, likelihood=with_resolution(given, 3))


def with_resolution(given: Any, dimension: int) -> Any:
    """A likelihood with the resolution of continuous columns."""
    if isinstance(given, sb.Columns):
        return sb.Columns({block: with_resolution(own, len(block)) for block, own in given.blocks.items()})
    return dataclasses.replace(given, resolution=np.zeros(dimension)) if hasattr(given, "resolution") else given
