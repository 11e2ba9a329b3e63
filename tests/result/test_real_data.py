"""Real data sets: those in scikit-learn's wheel, and the project's own where they are present."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import BayesianGaussianMixture

import stickbreak as sb

MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())


def best(rows: np.ndarray, n_components: int, **options: object) -> sb.Fit:
    settings = {"n_components": n_components, "n_init": 8, "progress": False} | options
    return sb.fit(MODEL, rows, sb.Full(sparsity=None, max_passes=300), **settings)


def never_falls(fit: sb.Fit, tolerance: float) -> bool:
    bounds = np.array([record.objective for record in fit.history])
    return bool((np.diff(bounds) >= -tolerance * np.abs(bounds[1:])).all())


def test_iris() -> None:
    """No start at the species themselves reaches a higher bound; two of the species are hard to tell apart."""
    rows, labels = load_iris(return_X_y=True)
    fit = best(rows, 3)
    assert never_falls(fit, 1e-9)
    assert fit.objective >= best(rows, 3, init=labels, n_init=1).objective - 1e-3
    assert adjusted_rand_score(labels == 0, fit.predict(rows) == fit.predict(rows[:1])) > 0.9


def test_digits_have_constant_columns() -> None:
    """Some pixels are zero in every image."""
    rows, labels = load_digits(return_X_y=True)
    assert (np.ptp(rows, axis=0) == 0).any()
    # A weak prior on the size of a cluster: the default one is about as wide as all data.
    likelihood = sb.Gaussian(scale=np.eye(64) * 64, dof=66)
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess())
    fit = sb.fit(model, rows, sb.Memoized(batches=5, max_passes=60), n_components=20, progress=False)
    assert never_falls(fit, 1e-9)
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.4


def test_faithful(data_directory: Path) -> None:
    """Two kinds of eruptions: short with a short wait, long with a long one."""
    rows = np.loadtxt(data_directory / "classic" / "faithful.csv", delimiter=",", skiprows=1)
    assert rows.shape == (272, 2)
    fit = best(rows, 2)
    order = np.argsort(fit.components["mean"][:, 0])
    np.testing.assert_allclose(fit.components["mean"][order], [[2.05, 54.6], [4.3, 79.9]], rtol=0.03)
    np.testing.assert_allclose(fit.weights[order], [0.36, 0.64], atol=0.03)
    assert best(rows, 1).elbo < fit.elbo


def test_asterisk(data_directory: Path) -> None:
    """Eight Gaussian rays."""
    with np.load(data_directory / "bnpy_toy" / "asterisk_k8.npz", allow_pickle=False) as file:
        rows, labels = file["X"], file["labels"]
    fit = best(rows, 8)
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.9


def test_toy_of_thirteen_clusters(data_directory: Path) -> None:
    """As good as scikit-learn's mixture, by the labels."""
    with np.load(data_directory / "nrmm" / "toy.npz", allow_pickle=False) as file:
        rows, labels = file["X"], file["gt_labels"]
    fit = best(rows, 13)
    other = BayesianGaussianMixture(
        n_components=13,
        weight_concentration_prior=1.0,
        mean_precision_prior=0.1,
        degrees_of_freedom_prior=4.0,
        covariance_prior=fit.model.likelihood.scale,
        max_iter=200,
        n_init=2,
        tol=1e-5,
        random_state=0,
    ).fit(rows)
    ours = adjusted_rand_score(labels, fit.predict(rows))
    assert ours > 0.8
    assert ours > adjusted_rand_score(labels, other.predict(rows)) - 0.1


@pytest.mark.slow
def test_flow_cytometry(data_directory: Path) -> None:
    """Nine thousand cells, small integers: memoized and full reach bounds of the same size."""
    with np.load(data_directory / "gvhd_pos" / "gvhd_pos.npz", allow_pickle=False) as file:
        rows = file["X"]
    assert rows.dtype == np.int16
    with pytest.warns(sb.ConversionWarning, match="integers"):
        full = sb.fit(MODEL, rows, sb.Full(max_passes=400), n_components=20, progress=False)
    rows = rows.astype(np.float64)
    memoized = sb.fit(MODEL, rows, sb.Memoized(batches=10, max_passes=400), n_components=20, progress=False)
    for fit in (full, memoized):
        assert never_falls(fit, 1e-9)
        assert fit.stop_reason in (sb.StopReason.CONVERGED, sb.StopReason.MAX_PASSES)
    assert abs(full.elbo - memoized.elbo) < 0.1 * len(rows)


@pytest.mark.slow
def test_handwritten_digits_in_fifty_dimensions(data_directory: Path) -> None:
    """Sixty thousand images, their 50 leading principal components, float32."""
    import gzip

    from sklearn.decomposition import PCA

    with gzip.open(data_directory / "mnist" / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(60_000, 784)
    with gzip.open(data_directory / "mnist" / "train-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    rows = PCA(50, random_state=0).fit_transform(images.astype(np.float32) / 255)
    fit = sb.fit(MODEL, rows, sb.Memoized(batches=20, sparsity=4, max_passes=30), n_components=100, progress=False)
    assert never_falls(fit, 1e-6)
    # How often the commonest digit of a cluster is right.
    found = fit.predict(rows)
    right = sum(np.bincount(labels[found == k]).max() for k in np.unique(found))
    assert right / 60_000 > 0.7
