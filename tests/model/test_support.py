"""Constant columns, columns that follow from others, and rows off the subspace."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from test_units import blobs, same_partition

import stickbreak as sb

FULL = sb.Mixture(likelihood=sb.Gaussian())


def fitted(rows: np.ndarray, likelihood: object = None, **options: object) -> sb.Fit:
    """A fit without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SupportWarning)
        model = sb.Mixture(likelihood=sb.Gaussian() if likelihood is None else likelihood)
        return sb.fit(model, rows, progress=False, **options)


def with_copies(rows: np.ndarray) -> np.ndarray:
    return np.column_stack([rows, 3.0 * rows - 2.0])


@pytest.mark.parametrize("kind", [sb.Gaussian, sb.ZeroMeanGaussian, sb.DiagonalGaussian])
@pytest.mark.parametrize("n_constant", [1, 4])
def test_constant_columns_change_nothing(kind: type, n_constant: int) -> None:
    rows = blobs()
    wide = np.insert(rows, [1] * n_constant, np.arange(n_constant) - 1.5, axis=1)
    plain = sb.fit(sb.Mixture(likelihood=kind()), rows, progress=False)
    names = ", ".join(map(str, range(1, 1 + n_constant)))
    with pytest.warns(sb.SupportWarning, match=rf"columns? {names} (is|are) constant;"):
        fit = sb.fit(sb.Mixture(likelihood=kind()), wide, progress=False)
    assert fit.elbo == pytest.approx(plain.elbo, rel=1e-12)
    np.testing.assert_array_equal(fit.predict(wide), plain.predict(rows))
    assert (fit.support.rank, fit.support.constant, fit.support.dependent) == (3, tuple(range(1, 1 + n_constant)), ())
    if kind is not sb.ZeroMeanGaussian:
        assert (fit.components["mean"][:, 1] == -1.5).all()
    assert (fit.sample(20)[:, 1] == -1.5).all()


@pytest.mark.parametrize("row", [[3.0, 3.0], [0.0, -2.0, 5.0]])
def test_equal_rows_have_one_direction_about_zero(row: list[float]) -> None:
    rows = np.tile(row, (40, 1))
    first = int(np.flatnonzero(row)[0])
    fit, alone = fitted(rows, sb.ZeroMeanGaussian()), fitted(rows[:, [first]], sb.ZeroMeanGaussian())
    assert (fit.support.rank, fit.support.dependent) == (1, ())
    assert fit.support.constant == tuple(j for j in range(len(row)) if j != first)
    assert fit.elbo == pytest.approx(alone.elbo, rel=1e-12)
    np.testing.assert_allclose(fit.log_predictive(rows), alone.log_predictive(rows[:, [first]]), rtol=1e-12)


def test_copies_change_nothing_but_the_volume() -> None:
    rows = blobs()
    plain = sb.fit(FULL, rows, progress=False)
    with pytest.warns(sb.SupportWarning, match="columns 3, 4, 5 follow from the others"):
        fit = sb.fit(FULL, with_copies(rows), progress=False)
    assert fit.elbo == pytest.approx(plain.elbo - len(rows) / 2 * 3 * np.log(10.0), rel=1e-9)
    assert same_partition(fit.predict(with_copies(rows)), plain.predict(rows))
    basis = fit.support.basis
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-14)
    drawn = fit.sample(200)
    np.testing.assert_allclose(drawn[:, 3:], 3.0 * drawn[:, :3] - 2.0, atol=1e-9)
    scale = fit.components["scale"]
    np.testing.assert_allclose(scale[:, 3:, :3], 3.0 * scale[:, :3, :3], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_composition_is_that_without_a_column(dtype: type) -> None:
    parts = np.exp(blobs() / 4.0)
    rows = (parts / parts.sum(1, keepdims=True)).astype(dtype)
    fit, less = fitted(rows), fitted(rows[:, :2])
    assert fit.support.dependent == (2,)
    assert fit.elbo == pytest.approx(less.elbo - len(rows) / 2 * np.log(3.0), rel=1e-6)
    assert same_partition(fit.predict(rows), less.predict(rows[:, :2]))


def test_the_density_integrates_to_one_on_the_subspace() -> None:
    rows = np.random.default_rng(0).standard_normal((200, 2))
    fit = fitted(np.column_stack([rows, rows[:, 0] - 2.0 * rows[:, 1] + 1.0]), n_components=2)
    grid = np.linspace(-12.0, 12.0, 241)
    x, y = (axis.ravel() for axis in np.meshgrid(grid, grid))
    density = np.exp(fit.log_predictive(np.column_stack([x, y, x - 2.0 * y + 1.0])))
    area = (grid[1] - grid[0]) ** 2 * np.sqrt(1.0 + 1.0 + 4.0)
    assert density.sum() * area == pytest.approx(1.0, abs=3e-3)


def test_rows_off_the_subspace() -> None:
    rows = np.column_stack([with_copies(blobs()), np.full(400, 7.0)])
    fit = fitted(rows)
    off = rows[:5].copy()
    off[0, 4] += 1.0
    off[1, 6] = 8.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.log_predictive(rows[:5]), fit.predict(rows[:5]), fit.evaluate(rows[:5])
    with pytest.warns(sb.SupportWarning, match="2 rows lie off the subspace of the fit in columns 4, 6;") as caught:
        densities = fit.log_predictive(off)
    assert len(caught) == 1
    assert np.isneginf(densities).tolist() == [True, True, False, False, False]
    for ask in (fit.predict, fit.predict_proba):
        with pytest.warns(sb.SupportWarning, match="projected") as caught:
            projected = ask(off)
        assert len(caught) == 1
        np.testing.assert_array_equal(projected, ask(rows[:5]))
    with pytest.warns(sb.SupportWarning, match="2 rows lie off"):
        assert fit.evaluate(off) == pytest.approx(fit.evaluate(off[2:]), rel=1e-12)
    weights = np.array([0.0, 0.0, 1.0, 1.0, 1.0])
    assert fit.evaluate(off, sample_weight=weights) == pytest.approx(fit.evaluate(off[2:]), rel=1e-12)
    with pytest.warns(sb.SupportWarning), pytest.raises(sb.InvalidArgument, match="off the subspace"):
        fit.evaluate(off[:2])
    with pytest.raises(sb.InvalidArgument, match="columns 4, 6") as error:
        fit.update(off)
    assert error.value.argument == "X_new"
    with pytest.raises(sb.InvalidArgument, match="columns 4, 6"):
        sb.fit(FULL, np.concatenate([rows, off]), init=fit, progress=False)
    assert fit.update(rows[:50]).n_components == fit.n_components


def test_a_fit_goes_on_in_its_own_coordinates() -> None:
    rows = with_copies(100.0 * blobs())
    fit = fitted(rows)
    for model in (FULL, fit.model):
        again = fitted(rows, model.likelihood, init=fit)
        # The base measure is estimated a little further.
        assert again.elbo == pytest.approx(fit.elbo, rel=1e-5)
        assert again.support.dependent == fit.support.dependent


def test_what_is_given_is_not_taken_away() -> None:
    rows = np.column_stack([blobs(), np.zeros(400)])
    for given in (sb.Gaussian(scale=np.eye(4)), sb.ZeroMeanGaussian(scale=np.eye(4)), sb.DiagonalGaussian(rate=1.0)):
        fit = sb.fit(sb.Mixture(likelihood=given), rows, progress=False)
        assert fit.support.rank == 4
    known = sb.KnownCovarianceGaussian(np.eye(4))
    assert sb.fit(sb.Mixture(likelihood=known), rows, n_components=3, progress=False).support.rank == 4


@pytest.mark.parametrize("kind", [sb.Gaussian, sb.ZeroMeanGaussian, sb.DiagonalGaussian])
def test_the_shown_model_leaves_the_same_out(kind: type) -> None:
    rows = np.column_stack([blobs() * [1e-3, 1.0, 50.0], np.full(400, 7.0)])
    rows = rows if kind is sb.DiagonalGaussian else np.column_stack([rows, rows[:, :3] @ [1.0, 2.0, -3.0]])
    algorithm = sb.Full(max_passes=3)
    fit = fitted(rows, kind(prior="rule"), algorithm=algorithm, n_components=5)
    again = fitted(rows, fit.model.likelihood, algorithm=algorithm, n_components=5)
    assert (again.support.constant, again.support.dependent) == (fit.support.constant, fit.support.dependent)
    assert again.elbo == pytest.approx(fit.elbo, rel=1e-12)
    assert again.model == fit.model


def test_too_few_rows_span_no_subspace() -> None:
    rows = np.random.default_rng(0).standard_normal((12, 30))
    with pytest.warns(sb.SupportWarning, match="too few different rows to span 30 columns"):
        fit = sb.fit(FULL, rows, progress=False)
    assert (fit.support.rank, np.isfinite(fit.elbo)) == (30, True)
    assert fitted(np.repeat(rows, 3, axis=0)).support.rank == 30


def test_data_that_vary_give_no_warning() -> None:
    """Near copies, an offset, equal rows, a row that differs and rounded columns: all columns stay."""
    rows = blobs()
    near = np.column_stack([rows, rows + 1e-3 * np.random.default_rng(1).standard_normal(rows.shape)])
    one = np.column_stack([rows, rows[:, 0]])
    one[7, 3] += 20.0
    rare = np.column_stack([rows, np.arange(400) == 3]).astype(float)
    for data in (rows, near, rows + 1e6, np.ones((20, 2)), one, np.round(rows), rare):
        assert sb.fit(FULL, data, n_components=3, progress=False).support.rank == data.shape[1]


def test_a_single_row_off_a_copy_keeps_the_column() -> None:
    """The row changes the moments of many rows little, but would have no density on the subspace."""
    rows = np.random.default_rng(2).standard_normal((20_000, 2))
    rows[:, 1] = rows[:, 0]
    rows[5, 1] += 4e-3
    assert fitted(rows, n_components=1).support.rank == 2
    rows[5, 1] = rows[5, 0]
    assert fitted(rows, n_components=1).support.rank == 1


def test_compare_refuses_another_support() -> None:
    rows = np.column_stack([blobs(), np.zeros(400)])
    other = rows.copy()
    other[0, 3] = 1.0
    with pytest.raises(sb.InvalidArgument, match="constant columns"):
        fitted(rows).compare(fitted(other))


@pytest.mark.parametrize("kind", [sb.Gaussian, sb.ZeroMeanGaussian])
def test_through_a_file(kind: type, tmp_path: Path) -> None:
    rows = np.column_stack([with_copies(30.0 * blobs()), np.full(400, 7.0)])
    fit = fitted(rows, kind())
    fit.save(tmp_path / "m")
    again = sb.load(tmp_path / "m")
    assert (again.elbo, again.model, again.support.constant) == (fit.elbo, fit.model, (6,))
    np.testing.assert_array_equal(again.log_predictive(rows), fit.log_predictive(rows))
    np.testing.assert_array_equal(again.support.basis, fit.support.basis)


def test_missing_values_and_constant_columns() -> None:
    rows = np.column_stack([blobs(), np.full(400, 7.0)])
    rows[::7, 1] = rows[::5, 3] = np.nan
    plain = sb.fit(sb.Mixture(likelihood=sb.DiagonalGaussian()), rows[:, :3], missing="marginalize", progress=False)
    fit = fitted(rows, sb.DiagonalGaussian(), missing="marginalize")
    assert fit.support.constant == (3,)
    assert fit.elbo == pytest.approx(plain.elbo, rel=1e-9)
    values, variances = fit.impute(rows, return_variance=True)
    np.testing.assert_allclose(values[:, 3], 7.0, rtol=1e-14)
    np.testing.assert_allclose(variances[:, 3], 0.0, atol=1e-12)
    assert (fit.sample_missing(rows)[:, 3] == 7.0).all()
    assert fit.components["mean_precision"].shape == (fit.n_components, 4)


def test_a_row_far_from_all_others_makes_no_column_dependent() -> None:
    """One far row dominates the moments, which alone would make one column a multiple of the other."""
    rows = np.random.default_rng(0).normal(np.repeat([[0.0, 0.0], [10.0, 0.0]], 200, axis=0))
    rows[3] = 1e8
    assert sb.fit(FULL, rows, progress=False).support.rank == 2
