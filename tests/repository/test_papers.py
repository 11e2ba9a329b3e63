"""The papers' experiments and the bench of all likelihoods at tiny sizes: they run, and what they compute is right."""

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.special import softmax
from scipy.stats import multivariate_normal

import blei_jordan
import blei_jordan_images
import denoising
import images
import likelihoods
import memoized_patches
import memoized_toy
import patch_rows
import sparse_mixtures
import stickbreak as sb

# Pixels of a patch less their mean have the sum zero.
pytestmark = pytest.mark.filterwarnings("ignore::stickbreak.SupportWarning")


@pytest.fixture(autouse=True)
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Write figures to a temporary folder."""
    monkeypatch.setenv("RESULTS", str(tmp_path))
    return tmp_path / "papers"


@pytest.fixture(scope="module")
def photographs() -> images.Photographs:
    """Return four photographs of noise, two of them dark, all of different sizes."""
    rng = np.random.default_rng(0)
    return [rng.integers(low, low + 60, size=(41 + low % 7, 50), dtype=np.uint8) for low in (0, 3, 190, 193)]


def test_patches_are_mean_removed_windows(photographs: images.Photographs) -> None:
    every = images.patches(photographs, 10**6)
    assert every.shape == (sum(((len(image) - 8) // 4 + 1) * 11 for image in photographs), 64)
    first = photographs[0][:8, :8].ravel() / 255
    np.testing.assert_allclose(every[0], first - first.mean(), atol=1e-6)
    some = images.patches(photographs, 50, seed=3)
    assert len(some) == 50
    assert {row.tobytes() for row in some} <= {row.tobytes() for row in every}


def test_grids_are_means_of_cells(photographs: images.Photographs) -> None:
    rows = images.grids(photographs)
    assert rows.shape == (4, 64)
    # 41 rows make 8 cells of which the first has 6; 50 columns make 8 of which the first two have 7.
    assert rows[0, 0] == pytest.approx(photographs[0][:6, :7].mean() / 255, rel=1e-12)
    assert rows[0, -1] == pytest.approx(photographs[0][-5:, -6:].mean() / 255, rel=1e-12)


def test_the_density_of_the_known_partition() -> None:
    """The density of one row equals that of a joint normal distribution."""
    data = blei_jordan.generate(3, seed=1)
    assert data.train.shape == data.held_out.shape == (100, 3)
    assert sum(data.cluster_sizes) == 100
    row = data.held_out[0]
    density = 1 / 101 * multivariate_normal.pdf(row, np.zeros(3), data.covariance * (1 + 1 / data.mean_precision))
    for label in np.unique(data.labels[:100]):
        members = data.train[data.labels[:100] == label]
        # Rows of a cluster share the mean that is integrated out: every two have the covariance S / kappa.
        shared = np.eye(len(members) + 1) + 1 / data.mean_precision
        joint = multivariate_normal(cov=np.kron(shared, data.covariance))
        without = multivariate_normal(cov=np.kron(shared[1:, 1:], data.covariance))
        ratio = joint.logpdf(np.concatenate([row, members.ravel()])) - without.logpdf(members.ravel())
        density += len(members) / 101 * np.exp(ratio)
    only = blei_jordan.DataSet(
        np.concatenate([data.train, row[None]]), data.labels, data.covariance, data.mean_precision
    )
    assert only.known_partition() == pytest.approx(np.log(density), rel=1e-8)


def test_blei_jordan(results: Path) -> None:
    dimensions = {init: blei_jordan.by_dimension([5], 2, init, 2) for init in blei_jordan.STARTS}
    samplers = blei_jordan.by_sampler([5], 2, 200, 10)
    assert all(len(own[5].held_out) == 2 for own in samplers.values())
    data = blei_jordan.drawn_data()
    bounds = blei_jordan.by_truncation(data, [1, 4], 1)
    # One component has no stick to learn, and a nested bound is never above that of the truncated process.
    assert bounds["nested"][0] < bounds["stick"][0]
    traced, densities = blei_jordan.by_iteration(data, 3, 2)
    assert np.all(np.diff(traced) >= 0)
    blei_jordan.draw(dimensions, bounds, densities)
    assert (results / "blei_jordan.svg").stat().st_size > 0


def test_blei_jordan_images(photographs: images.Photographs, results: Path) -> None:
    rows = images.grids(photographs)
    found = blei_jordan_images.best_of(rows, [1, 2], 2)
    assert found.n_components == 2
    blei_jordan_images.report(found)
    blei_jordan_images.draw_counts(found)
    for component in range(2):
        shown = blei_jordan_images.most_probable(found, rows, component)
        assert set(shown.tolist()) in ({0, 1}, {2, 3})
    assert blei_jordan_images.members(found, rows, list(rows.reshape(-1, 8, 8))).axes
    assert (results / "blei_jordan_images.svg").stat().st_size > 0


def test_true_components_of_the_toy() -> None:
    patches = memoized_toy.generate(4000)
    assert np.bincount(patches.labels).tolist() == [500] * 8
    # Positive definite and all different.
    assert np.linalg.eigvalsh(patches.covariances).min() > 0
    distances = np.linalg.norm(patches.covariances[:, None] - patches.covariances, axis=(2, 3))
    norms = np.linalg.norm(patches.covariances, axis=(1, 2))
    assert np.all((distances > 2 * memoized_toy.NEAR * norms) | np.eye(8, dtype=bool))
    true_run = memoized_toy.Run()
    memoized_toy.compare(true_run, memoized_toy.best_possible(patches), patches)
    assert true_run.n_recovered == 8
    assert sorted(true_run.components) == list(range(8))


@pytest.mark.slow
def test_memoized_toy(results: Path) -> None:
    patches = memoized_toy.generate(1000)
    names = (memoized_toy.FULL, memoized_toy.MEMOIZED, *memoized_toy.STEPS)
    runs = {name: [memoized_toy.run(patches, name, 2, seed) for seed in range(2)] for name in names}
    for of_method in runs.values():
        assert [one.passes for one in of_method] == [[1, 2]] * 2
        assert np.isfinite([one.bounds for one in of_method]).all()
    memoized_toy.report(runs, 0.0)
    memoized_toy.print_traces(runs)
    memoized_toy.draw_traces(runs, 0.0)
    memoized_toy.draw_covariances(patches, memoized_toy.chosen(runs))
    assert {file.name for file in results.iterdir()} == {"memoized_toy.svg", "memoized_toy_covariances.svg"}


@pytest.mark.slow
def test_sparse_mixtures(monkeypatch: pytest.MonkeyPatch, photographs: images.Photographs, results: Path) -> None:
    monkeypatch.setattr(sparse_mixtures, "WIDTHS", (1, 2))
    rows, held_out = images.patches(photographs, 300), images.patches(photographs, 40, seed=1)
    start = sparse_mixtures.fit(rows, 4, sb.Full(max_passes=0), "random")
    curves = {}
    for schedule in sparse_mixtures.SCHEDULES:
        curves[schedule], dense = sparse_mixtures.curves(rows, held_out, start, schedule, 2)
        sparse_mixtures.compare(curves[schedule])
    assert list(curves["memoized"]) == ["L = 1", "L = 2", "dense", "L = 4, margin"]
    parts, gaps = sparse_mixtures.report_parts(rows, dense), sparse_mixtures.report_distances(rows, dense)
    sparse_mixtures.draw_curves({4: curves})
    sparse_mixtures.draw_parts({4: parts}, {4: gaps})
    assert {file.name for file in results.iterdir()} == {"sparse_mixtures.svg", "sparse_mixtures_parts.svg"}


def test_distances_are_the_mass_that_is_left_out() -> None:
    """Distances equal the dropped mass, also for rows other than those of the fit."""
    rows = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    dense = sparse_mixtures.fit(rows, 4, sb.Memoized(2, sparsity=None, max_passes=5), "random")
    few = rows[:20]
    kept = -np.sort(-dense.predict_proba(few), axis=1)
    assert kept[:, 1].max() > 0.01
    # With all four the components of the sparse fit must be the same to the last digits.
    for width in (1, 2, 4):
        left_out = 1 - kept[:, :width].sum(axis=1)
        np.testing.assert_allclose(sparse_mixtures.distances(few, dense, width), left_out, atol=1e-6)


@pytest.mark.parametrize("problem", likelihoods.PROBLEMS, ids=lambda problem: problem.name)
@pytest.mark.one_in(4)
def test_likelihoods(
    problem: likelihoods.Problem, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(likelihoods, "ROUNDS", 1)
    likelihoods.report(problem, 400, {"float32": 1e11, "float64": 5e10})
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith(problem.name)
    assert ("scikit-learn has none" in line) == (problem.peer is None)


def test_every_likelihood_is_timed() -> None:
    timed = {type(problem.likelihood) for problem in likelihoods.PROBLEMS}
    assert timed == set(sb.model.likelihoods.Likelihood.__subclasses__())


def test_rows_of_patches(photographs: images.Photographs) -> None:
    """A rotation of what is left of the pixels without their mean, but for noise of less than a step."""
    rows, owners = patch_rows.rows_of(photographs, 4)
    old = images.patches(photographs, 10**6)
    assert rows.shape == (patch_rows.n_patches(photographs, 4), 63) == (len(old), 63)
    np.testing.assert_allclose(patch_rows.BASIS.T @ patch_rows.BASIS, np.eye(63), atol=1e-6)
    noise = (rows @ patch_rows.BASIS.T - old) * 255
    assert np.abs(noise).max() < 1
    # Uniform on a step, less the mean of 64.
    assert noise.var() == pytest.approx(1 / 12 * 63 / 64, rel=0.02)
    assert np.bincount(owners).tolist() == [((len(image) - 8) // 4 + 1) * 11 for image in photographs]


def test_stream_of_patches_has_each_once(photographs: images.Photographs) -> None:
    source = patch_rows.stream(photographs, 2, 5)
    streamed = [np.concatenate(list(source())) for _ in range(2)]
    np.testing.assert_array_equal(*streamed)
    old, owners = patch_rows.rows_of(photographs, 2)
    assert streamed[0].shape == old.shape
    # The noise of a patch is another one, but patches differ by far more.
    which = cdist(streamed[0], old).argmin(axis=1)
    np.testing.assert_array_equal(np.sort(which), np.arange(len(old)))
    # Every fifth of the rows has a fifth of each photograph.
    fifth = np.bincount(owners[which[: len(old) // 5]])
    assert np.abs(fifth - np.bincount(owners) / 5).max() < 2


@pytest.fixture(scope="module")
def prior() -> denoising.Prior:
    """Two kinds of patches: smooth ones, and rare coarse ones."""
    falling = 0.3 / np.arange(1, 64) ** 2
    return denoising.Prior(np.log([0.9, 0.1]), np.array([np.diag(falling), np.diag(falling[::-1])]))


def test_a_step_is_the_wiener_estimate_of_the_most_probable_component(prior: denoising.Prior) -> None:
    rng = np.random.default_rng(0)
    truth = np.concatenate(
        [rng.multivariate_normal(np.zeros(63), covariance, size=30) for covariance in prior.covariances]
    )
    rows = (truth + 0.1 * rng.normal(size=truth.shape)).astype(np.float32)
    noisy = prior.covariances + 0.01 * np.eye(63)
    scores = [
        weight + multivariate_normal.logpdf(rows, np.zeros(63), covariance)
        for weight, covariance in zip(prior.log_weights, noisy, strict=True)
    ]
    labels = np.argmax(scores, axis=0)
    assert set(labels) == {0, 1}
    wanted = [prior.covariances[k] @ np.linalg.solve(noisy[k], row) for k, row in zip(labels, rows, strict=True)]
    cleaned = denoising.Step.of(prior, 0.01).clean(rows)
    np.testing.assert_allclose(cleaned, wanted, atol=2e-6)
    assert np.mean((cleaned - truth) ** 2) < np.mean((rows - truth) ** 2) / 2


def test_a_mixed_step_is_the_posterior_mean_however_the_components_are_cut(prior: denoising.Prior) -> None:
    rows = np.random.default_rng(0).normal(scale=0.1, size=(40, 63)).astype(np.float32)
    noisy = prior.covariances + 0.5 * np.eye(63)
    log_joint = np.array(
        [
            weight + multivariate_normal.logpdf(rows, np.zeros(63), covariance)
            for weight, covariance in zip(prior.log_weights, noisy, strict=True)
        ]
    )
    weights = softmax(log_joint, axis=0)
    assert (weights.min(axis=0) > denoising.LEAST).all()
    wieners = np.array(
        [rows @ np.linalg.solve(covariance, cov) for covariance, cov in zip(noisy, prior.covariances, strict=True)]
    )
    wanted = (weights[:, :, None] * wieners).sum(axis=0)
    cleaned = denoising.Step.of(prior, 0.5).clean(rows, mixed=True)
    np.testing.assert_allclose(cleaned, wanted, atol=1e-5)
    # The choice of one component does depend on how components are cut.
    pieces = np.repeat([0, 1], [12, 1])
    log_weights = prior.log_weights[pieces] - np.log(np.repeat([12, 1], [12, 1]))
    again = denoising.Step.of(denoising.Prior(log_weights, prior.covariances[pieces]), 0.5)
    np.testing.assert_allclose(again.clean(rows, mixed=True), cleaned, atol=1e-5)
    assert np.abs(again.clean(rows) - denoising.Step.of(prior, 0.5).clean(rows)).max() > 1e-3


def test_denoising_knows_its_limits(prior: denoising.Prior) -> None:
    """A wide prior keeps the noise; a prior of flat patches keeps only their means."""
    image = np.full((40, 45), 153, dtype=np.uint8)
    ((truth, noisy),) = denoising.noisy_versions([image], 0.1)
    assert denoising.psnr(noisy, truth) == pytest.approx(20, abs=0.3)
    anything = denoising.Prior(prior.log_weights, prior.covariances * 0 + 1e6 * np.eye(63))
    np.testing.assert_allclose(denoising.denoise(noisy, 0.1, anything, 1), noisy, atol=1e-5)
    flat = denoising.Prior(prior.log_weights, prior.covariances * 0)
    assert denoising.psnr(denoising.denoise(noisy, 0.1, flat, 1), truth) > 32
    np.testing.assert_array_equal(denoising.denoise(noisy, 0.1, prior, 1), denoising.denoise(noisy, 0.1, prior, 2))


@pytest.mark.slow
def test_memoized_patches(photographs: images.Photographs, results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    setting = memoized_patches.Setting(
        rows=None, passes=2, seconds=0.0, sparsity=4, threads=1, seed=0, held_out=200, photographs=1
    )
    large = [np.tile(image, (2, 2)) for image in photographs]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memoized_patches, "FIXED", 4)
        patch.setattr(memoized_patches, "N_EM", 4)
        traces = {"stream": memoized_patches.report_stream(large[:2], setting)}
        traces["bounds"] = memoized_patches.report_bounds(large, setting)
        memoized_patches.report_models(large, photographs, setting)
    assert all(trace.passes[-1] == 2 for of_report in traces.values() for trace in of_report.values())
    memoized_patches.draw(traces)
    assert {file.name for file in results.iterdir()} == {"memoized_patches.svg"}
    assert "births better on" not in capsys.readouterr().out
