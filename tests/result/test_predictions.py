"""Predictions of a fit: `predict`, `predict_proba`, `log_predictive` and `sample`."""

import numpy as np
import pytest
from scipy import sparse, stats

import stickbreak as sb
from cases import LIKELIHOODS, PROCESSES, LikelihoodName, ProcessName, clustered_rows, make_process

MIXTURES = pytest.mark.parametrize(
    ("likelihood", "process"), [(likelihood, process) for likelihood in LIKELIHOODS for process in PROCESSES]
)
# A test with a fixed seed either passes for ever or fails for ever; the level is how likely a sound sampler
# would have been to fail at the moment the seed was chosen.
FALSE_ALARM = 1e-6


def fitted(likelihood: LikelihoodName, process: ProcessName, dimension: int, sparsity: int | None = 2) -> sb.Fit:
    rows = clustered_rows(np.random.default_rng(dimension), 60, dimension, 3)
    chosen = sb.Gaussian() if likelihood == "gaussian" else sb.ZeroMeanGaussian()
    model = sb.Mixture(likelihood=chosen, process=make_process(process, 3, 2.0))
    return sb.fit(model, rows, sb.Full(sparsity=sparsity, max_passes=10), n_components=3, progress=False)


def tangent_grid(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Points that cover the whole line, and their weights: x = 3 tan(angle) copes with the tails of a Student."""
    angle = (np.arange(n) + 0.5) / n * np.pi - np.pi / 2
    return 3 * np.tan(angle), 3 * (1 + np.tan(angle) ** 2) * np.pi / n


@MIXTURES
def test_density_integrates_to_one_on_the_line(likelihood: LikelihoodName, process: ProcessName) -> None:
    fit = fitted(likelihood, process, 1)
    points, weights = tangent_grid(4000)
    assert weights @ np.exp(fit.log_predictive(points[:, None])) == pytest.approx(1.0, abs=1e-6)


@MIXTURES
def test_density_integrates_to_one_in_the_plane(likelihood: LikelihoodName, process: ProcessName) -> None:
    fit = fitted(likelihood, process, 2)
    points, weights = tangent_grid(600)
    grid = np.stack(np.meshgrid(points, points, indexing="ij"), -1).reshape(-1, 2)
    density = np.exp(fit.log_predictive(grid)).reshape(600, 600)
    assert weights @ density @ weights == pytest.approx(1.0, abs=1e-3)


@MIXTURES
def test_sample_has_the_distribution_of_the_density(likelihood: LikelihoodName, process: ProcessName) -> None:
    """Kolmogorov-Smirnov against the integrated density, on the line."""
    fit = fitted(likelihood, process, 1)
    points, weights = tangent_grid(20_000)
    masses = weights * np.exp(fit.log_predictive(points[:, None]))
    cumulative = np.cumsum(masses) - masses / 2
    draws = fit.sample(20_000, seed=1)
    assert draws.shape == (20_000, 1)
    test = stats.kstest(draws[:, 0], lambda values: np.interp(values, points, cumulative))
    assert test.pvalue > FALSE_ALARM


def scipy_sample(fit: sb.Fit, n: int, rng: np.random.Generator) -> np.ndarray:
    """The same mixture of Students by SciPy, the prior's own among them where mass is left over."""
    parts, prior = fit.components, fit.model.likelihood
    weights = np.append(fit.weights, fit.leftover_weight)
    labels = rng.choice(len(weights), size=n, p=weights / weights.sum())
    rows = np.empty((n, parts["scale"].shape[-1]))
    for k in range(len(weights)):
        last = k == fit.n_components
        dof, scale = (prior.dof, prior.scale) if last else (parts["dof"][k], parts["scale"][k])
        dimension, mean, spread = len(scale), np.zeros(len(scale)), 1.0
        if "mean" in parts:
            mean = prior.mean if last else parts["mean"][k]
            precision = prior.mean_precision if last else parts["mean_precision"][k]
            spread = (precision + 1) / precision
        own_dof, size = dof - dimension + 1, int((labels == k).sum())
        if size:
            student = stats.multivariate_t(mean, spread * scale / own_dof, own_dof)
            rows[labels == k] = student.rvs(size, random_state=rng).reshape(size, dimension)
    return rows


@MIXTURES
@pytest.mark.parametrize("dimension", [2, 5])
def test_sample_against_scipy(likelihood: LikelihoodName, process: ProcessName, dimension: int) -> None:
    """Two samples, compared in their density, their length and each coordinate, at a joint level of 1e-6."""
    fit = fitted(likelihood, process, dimension)
    ours = fit.sample(8000, seed=2)
    theirs = scipy_sample(fit, 8000, np.random.default_rng(3))
    views = [lambda rows: fit.log_predictive(rows), lambda rows: np.linalg.norm(rows, axis=1)]
    views += [lambda rows, d=d: rows[:, d] for d in range(dimension)]
    views += [lambda rows: rows[:, 0] * rows[:, 1]]
    for view in views:
        assert stats.ks_2samp(view(ours), view(theirs)).pvalue > FALSE_ALARM / len(views)


@MIXTURES
def test_mean_log_density_of_a_sample_is_the_negative_entropy(likelihood: LikelihoodName, process: ProcessName) -> None:
    """Five standard errors, by quadrature on the line: a sample that is too narrow or too wide would show."""
    fit = fitted(likelihood, process, 1)
    points, weights = tangent_grid(20_000)
    logs = fit.log_predictive(points[:, None])
    expected = weights @ (np.exp(logs) * logs)
    draws = fit.log_predictive(fit.sample(40_000, seed=4))
    assert abs(draws.mean() - expected) < 5 * draws.std() / 200


def test_samples_of_several_sizes() -> None:
    fit = fitted("gaussian", "dirichlet_process", 3)
    assert fit.sample(0, seed=0).shape == (0, 3)
    assert fit.sample(1, seed=0).shape == (1, 3)
    draws = fit.sample(1000, seed=0)
    assert np.isfinite(draws).all()
    assert len(np.unique(draws, axis=0)) == 1000


@MIXTURES
def test_predict_is_the_best_component(likelihood: LikelihoodName, process: ProcessName) -> None:
    fit = fitted(likelihood, process, 3, sparsity=1)
    rows = clustered_rows(np.random.default_rng(9), 500, 3, 3)
    responsibilities = fit.predict_proba(rows)
    assert responsibilities.shape == (500, fit.n_components)
    np.testing.assert_allclose(responsibilities.sum(1), 1.0, rtol=1e-12)
    assert (responsibilities >= 0).all()
    np.testing.assert_array_equal(fit.predict(rows), responsibilities.argmax(1))
    # The dense local step is asked for, however sparse the fit was.
    assert (responsibilities.max(1) < 1.0).any()


@pytest.mark.parametrize("sparsity", [1, 2, 3, None])
def test_sparse_responsibilities(sparsity: int | None) -> None:
    fit = fitted("gaussian", "dirichlet_process", 3, sparsity=sparsity)
    rows = clustered_rows(np.random.default_rng(9), 300, 3, 3)
    kept, dense = fit.predict_proba(rows, sparse=True), fit.predict_proba(rows)
    assert isinstance(kept, sparse.csr_array)
    assert kept.shape == dense.shape
    assert kept.has_sorted_indices
    np.testing.assert_array_equal(np.diff(kept.indptr), sparsity or 3)
    np.testing.assert_allclose(kept.sum(1), 1.0, rtol=1e-12)
    best = np.sort(dense, axis=1)[:, ::-1][:, : sparsity or 3]
    expected = best / best.sum(1, keepdims=True)
    np.testing.assert_allclose(np.sort(kept.toarray(), axis=1)[:, ::-1][:, : sparsity or 3], expected, rtol=1e-9)
    np.testing.assert_array_equal(kept.toarray().argmax(1), dense.argmax(1))


def test_far_rows_have_finite_answers() -> None:
    fit = fitted("gaussian", "dirichlet_process", 2)
    far = np.array([[1e6, -1e6], [1e12, 1e12]])
    assert np.isfinite(fit.log_predictive(far)).all()
    np.testing.assert_allclose(fit.predict_proba(far).sum(1), 1.0, rtol=1e-12)
    assert set(fit.predict(far)) <= {0, 1, 2}


def test_weights_and_counts_agree() -> None:
    for process in PROCESSES:
        fit = fitted("gaussian", process, 2)
        assert fit.weights.shape == fit.counts.shape == (3,)
        assert fit.weights.sum() + fit.leftover_weight == pytest.approx(1.0, rel=1e-12)
        assert fit.counts.sum() == pytest.approx(60.0, rel=1e-12)
        assert fit.n_occupied == (fit.counts >= 0.5).sum()
        assert (fit.leftover_weight == 0.0) == (process == "finite_dirichlet")
        assert [len(values) for values in fit.components.values()] == [3] * len(fit.components)


def test_results_cannot_be_written_to() -> None:
    """A fit is immutable: its arrays cannot be written to."""
    fit = fitted("gaussian", "dirichlet_process", 2)
    before = fit.components["mean"].copy()
    for array in [fit.components["mean"], fit.counts, fit.weights]:
        try:
            array[:] = 0.0
        except ValueError:
            assert not array.flags.writeable
    np.testing.assert_array_equal(fit.components["mean"], before)
    assert fit.counts.sum() == pytest.approx(60.0)
    fit.components.clear()
    assert set(fit.components) == {"mean", "mean_precision", "dof", "scale"}


@pytest.mark.parametrize("tail", [False, True])
def test_a_large_table_of_responsibilities_is_that_of_its_parts(tail: bool) -> None:
    # More rows than two chunks of a local step have.
    X = np.random.default_rng(0).normal(size=(70_001, 1)).astype(np.float32)
    process = sb.DirichletProcess(truncation="tail") if tail else sb.DirichletProcess()
    model = sb.Mixture(sb.Gaussian(), process=process)
    fit = sb.fit(model, X[:300], sb.Full(max_passes=3, moves=()), n_components=3)
    table = fit.predict_proba(X, tail=tail, threads=2)
    assert table.shape == (len(X), fit.n_components + tail)
    for first in (0, 32_700, 65_500, 69_990):
        part = slice(first, first + 100)
        np.testing.assert_array_equal(table[part], fit.predict_proba(X[part], tail=tail, threads=1))
