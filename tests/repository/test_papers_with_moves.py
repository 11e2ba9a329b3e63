"""The papers' experiments with births and merges at tiny sizes: they run, and what they compute is right."""

from pathlib import Path

import numpy as np
import pytest

import digit_runs
import digits
import edges
import memoized_ablation
import memoized_mnist
import memoized_mnist_figures
import memoized_toy_moves
import stickbreak as sb


@pytest.fixture(autouse=True)
def results(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Write figures to a temporary folder."""
    monkeypatch.setenv("RESULTS", str(tmp_path))
    return tmp_path / "papers"


@pytest.fixture(scope="module")
def few() -> digits.Digits:
    """Three kinds of images in forty dimensions, each with noise, and a tenth of the digits wrong."""
    rng = np.random.default_rng(0)
    kinds = rng.integers(3, size=240)
    patterns = rng.integers(0, 120, size=(3, digits.SIDE**2))
    noise = rng.integers(0, 3, size=(240, 40)) @ rng.integers(0, 2, size=(40, digits.SIDE**2))
    labels = np.where(rng.random(240) < 0.1, 9, kinds)
    return digits.project((patterns[kinds] + noise).astype(np.uint8), labels)


def test_digits_are_projected_and_seen_again() -> None:
    """Images of few directions are reconstructed from fifty components, largest variance first."""
    rng = np.random.default_rng(1)
    pixels = (rng.integers(0, 9, size=(80, 3)) @ rng.integers(0, 9, size=(3, digits.SIDE**2))).astype(np.uint8)
    found = digits.project(pixels, np.arange(80))
    assert found.rows.dtype == np.float32
    assert found.rows.shape == (80, digits.DIMENSION)
    np.testing.assert_allclose(found.rows.mean(axis=0), 0, atol=1e-5)
    singular = np.linalg.svd(pixels / 255 - (pixels / 255).mean(axis=0), compute_uv=False)[: digits.DIMENSION]
    np.testing.assert_allclose(np.linalg.norm(found.rows, axis=0), singular, atol=1e-4)
    np.testing.assert_allclose(found.images(found.rows).reshape(80, -1), pixels / 255, atol=1e-5)


def test_joined_responsibilities() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(4), size=10)
    expected = np.stack([shares[:, 0], shares[:, 1] + shares[:, 3], shares[:, 2]], axis=1)
    np.testing.assert_array_equal(memoized_toy_moves.joined(shares, 1, 3), expected)
    other = memoized_toy_moves.joined(shares, 3, 1)
    np.testing.assert_array_equal(other, expected[:, [0, 2, 1]])


def test_true_covariances_match_themselves() -> None:
    true = np.array([edges.covariance(side) for side in edges.edges()])
    nearest, errors = memoized_toy_moves.match(1.1 * true[::-1], true)
    assert nearest == list(range(8))[::-1]
    np.testing.assert_allclose(errors, 0.1)


@pytest.mark.slow
def test_memoized_toy_moves(results: Path) -> None:
    patches = edges.generate(6000)
    ideal = edges.best_possible(patches).elbo / 6000
    runs = {2: [memoized_toy_moves.run(patches, 2, 4, seed, 2) for seed in range(2)]}
    assert all(one.bounds == sorted(one.bounds) for one in runs[2])
    memoized_toy_moves.report(runs, ideal)
    merges = {judge: [memoized_toy_moves.merging(patches, judge, 2, 0, 2)] for judge in memoized_toy_moves.JUDGES}
    memoized_toy_moves.report_merging(merges)
    # Merges judged by all rows are never ruinous; those judged by a batch of 60 are.
    assert merges["all rows"][0].ruinous == 0
    assert merges["one batch"][0].ruinous > 0
    for (one,) in merges.values():
        assert one.components[-1] == memoized_toy_moves.N_COMPONENTS - one.accepted
    memoized_toy_moves.draw(runs, merges, ideal)
    assert (results / "memoized_toy_moves.svg").stat().st_size > 0


def test_what_is_kept_of_a_run(few: digits.Digits, results: Path) -> None:
    algorithm = sb.Memoized(2, sparsity=2, max_passes=4, tol=0)
    kept_run, found = digit_runs.run(few, "MO", algorithm, digits.model(), seed=0, threads=1, n_components=3)
    assert kept_run.passes == [1, 2, 3, 4]
    assert kept_run.loss == pytest.approx(-found.elbo / (240 * 50), abs=1e-6)
    assert kept_run.loss_after(2) == kept_run.losses[1]
    assert kept_run.loss_after(9) == kept_run.loss
    assert kept_run.until(kept_run.losses[0] + 1) == kept_run.seconds[0]
    assert kept_run.until(kept_run.loss - 1) is None
    labels = found.predict(few.rows)
    agreeing = sum(np.bincount(few.labels[labels == k]).max() for k in np.unique(labels))
    assert kept_run.alignment == pytest.approx(agreeing / 240)
    assert kept_run.effective == len(np.unique(labels))
    digit_runs.keep("runs", [kept_run])
    assert digit_runs.kept("runs") == [kept_run]
    assert digit_runs.kept("others") == []


def test_spread() -> None:
    assert digit_runs.spread([3.0, 1.0, 2.0], 1) == "2.0 (1.0 to 3.0)"
    assert digit_runs.spread([1.0, 2.0, None], 0) == "2 (1 to never)"
    assert digit_runs.spread([None, None], 0) == "never"


@pytest.mark.slow
def test_memoized_mnist(
    monkeypatch: pytest.MonkeyPatch, few: digits.Digits, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(memoized_mnist, "BATCHES", (2, 3))
    monkeypatch.setattr(memoized_mnist, "N_COMPONENTS", 5)
    monkeypatch.setattr(memoized_mnist, "SKLEARN_ITERATIONS", 2)
    monkeypatch.setattr(memoized_mnist, "load", lambda: few)
    arguments = "memoized_mnist.py --seeds 2 --starts 1 --passes 2 --split-passes 3"
    monkeypatch.setattr("sys.argv", arguments.split())
    monkeypatch.setattr(memoized_mnist, "LARGER", {"from K = 5": (sb.Birth(fresh=3), 0.2, 5)})
    memoized_mnist.main()
    kept = {part: digit_runs.kept(memoized_mnist.file_of(part)) for part in memoized_mnist.PARTS}
    assert {part: len(runs) for part, runs in kept.items()} == {
        "births": 4,
        "starts": 6,
        "stochastic": 12,
        "vdp": 2,
        "larger": 2,
        "scikit-learn": 1,
    }
    for runs in kept.values():
        assert np.isfinite([one.loss for one in runs]).all()
    told = capsys.readouterr().out
    assert "ELBO of 3 batches below that of 2" in told
    assert "below the best of 3 k-means++ starts" in told
    names = {"memoized_mnist", *(f"memoized_mnist_{name}" for name in ("final", "alignment", "means"))}
    assert {file.stem for file in results.glob("*.svg")} == names


def test_every_run_has_a_family() -> None:
    for name in ("MO-BM, 20 batches", "MO, 20 batches, random", "SO c, 100 batches, kmeans++", "scikit-learn"):
        one_run = digit_runs.Run(name, 0, [1], [0.5], [1.0], 1.0, [1], 1, 1.0, 1.0)
        assert name.startswith(memoized_mnist_figures.family(one_run))


def test_memoized_ablation(few: digits.Digits, results: Path) -> None:
    found = {}
    for variant in memoized_ablation.variants(4):
        runs = found[variant.name] = memoized_ablation.measure(few, variant, 2, 2, 1, 1)
        assert len(memoized_ablation.cells(runs)) == len(memoized_ablation.LEVELS) + 3
        memoized_ablation.report(runs)
    # Distance bounds save work and change no result.
    assert found["one batch, bounds"][0].loss == found["one batch, margin"][0].loss
    memoized_ablation.draw(found)
    assert (results / "memoized_ablation.svg").stat().st_size > 0
