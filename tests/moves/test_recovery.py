"""Mixtures with a known truth, from the data to the labels."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from cases import PROCESSES, ProcessName, make_process, positive_definite, separated_mixture

ALGORITHMS = pytest.mark.parametrize(
    "algorithm",
    [
        sb.Full(sparsity=None, max_passes=200),
        sb.Full(sparsity=1, max_passes=200),
        sb.Memoized(batches=10, sparsity=3, max_passes=200),
    ],
    ids=["dense", "hard", "memoized"],
)


@ALGORITHMS
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("dimension", "n_clusters", "width"), [(2, 5, None), (8, 4, None), (8, 7, 10.0)])
@pytest.mark.one_in(3)
def test_separated_clusters(
    algorithm: object, process: ProcessName, dtype: type, dimension: int, n_clusters: int, width: float | None
) -> None:
    """Clusters twelve standard deviations apart are found exactly, with their sizes, means and covariances."""
    rows, labels = separated_mixture(0, n=3000, dimension=dimension, n_clusters=n_clusters)
    likelihood = sb.Gaussian(scale=None if width is None else width * np.eye(dimension))
    model = sb.Mixture(likelihood=likelihood, process=make_process(process, n_clusters, 1.0))
    fit = sb.fit(model, rows.astype(dtype), algorithm, n_components=n_clusters, n_init=5, progress=False)
    found = fit.predict(rows.astype(dtype))
    assert adjusted_rand_score(labels, found) > 0.999
    for label in range(n_clusters):
        members = rows[labels == label]
        k = np.bincount(found[labels == label]).argmax()
        assert fit.counts[k] == pytest.approx(len(members), rel=1e-2)
        assert fit.weights[k] == pytest.approx(len(members) / 3000, rel=2e-2)
        np.testing.assert_allclose(fit.components["mean"][k], members.mean(0), atol=0.05)
        # The prior is worth D + 2 rows of the covariance of all data, hence the tolerance.
        covariance = fit.components["scale"][k] / fit.components["dof"][k]
        np.testing.assert_allclose(covariance, np.cov(members.T) + prior_part(fit, k), atol=0.15)


def prior_part(fit: sb.Fit, k: int) -> np.ndarray:
    """What the prior adds to the expected inverse precision: its scale, shared out over all rows."""
    return np.asarray(fit.model.likelihood.scale / fit.components["dof"][k])


@ALGORITHMS
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.one_in(2)
def test_shapes_around_zero(algorithm: object, process: ProcessName) -> None:
    """Clusters that differ only in their covariance, as image patches do."""
    rng = np.random.default_rng(1)
    dimension, n_clusters = 16, 4
    labels = rng.integers(n_clusters, size=4000)
    factors = []
    for _ in range(n_clusters):
        basis = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
        factors.append(basis * np.where(np.arange(dimension) < 4, 3.0, 0.1))
    rows = np.einsum("nij,nj->ni", np.array(factors)[labels], rng.standard_normal((4000, dimension)))
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=make_process(process, n_clusters, 1.0))
    fit = sb.fit(model, rows, algorithm, n_components=n_clusters, n_init=6, progress=False)
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.99


@pytest.mark.parametrize("n_components", [15, 50])
@pytest.mark.one_in(2)
def test_too_many_components_join_no_clusters(n_components: int) -> None:
    """Without moves a Dirichlet process with spare components may split clusters, but a start that spreads its seeds
    never joins them.
    """
    rows, labels = separated_mixture(2, n=2000, dimension=2, n_clusters=4)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    for seed in range(3):
        fit = sb.fit(model, rows, sb.Full(max_passes=200), n_components=n_components, seed=seed, progress=False)
        found = fit.predict(rows)
        for k in np.unique(found):
            assert len(np.unique(labels[found == k])) == 1
        assert fit.n_occupied < n_components


def test_bound_prefers_the_true_number() -> None:
    """The nested bound of different numbers of components can be compared: it rises up to the truth, and then stays,
    because components beyond it are empty, up to their start.
    """
    rows, _ = separated_mixture(3, n=1500, dimension=2, n_clusters=4)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    bounds = {
        k: sb.fit(model, rows, sb.Full(max_passes=100), n_components=k, n_init=8, progress=False).elbo
        for k in (1, 2, 3, 4, 6, 8)
    }
    assert bounds[1] < bounds[2] < bounds[3] < bounds[4] - 100
    for k in (6, 8):
        assert abs(bounds[k] - bounds[4]) < 50


def test_density_is_near_the_true_one() -> None:
    """Held-out log density of a fit to 4000 rows, within 0.05 nats a row of the distribution that made them."""
    rng = np.random.default_rng(4)
    covariances = [positive_definite(rng, 3) for _ in range(3)]
    centres = 4.0 * rng.standard_normal((3, 3))

    def draw(n: int) -> np.ndarray:
        labels = rng.integers(3, size=n)
        factors = np.linalg.cholesky(np.array(covariances))[labels]
        return centres[labels] + np.einsum("nij,nj->ni", factors, rng.standard_normal((n, 3)))

    def true_log_density(rows: np.ndarray) -> np.ndarray:
        terms = []
        for centre, covariance in zip(centres, covariances, strict=True):
            distance = np.einsum("ni,ij,nj->n", rows - centre, np.linalg.inv(covariance), rows - centre)
            terms.append(-0.5 * (distance + np.linalg.slogdet(2 * np.pi * covariance)[1]) - np.log(3))
        return np.logaddexp.reduce(terms)

    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    fit = sb.fit(model, draw(4000), sb.Memoized(batches=4), n_components=3, n_init=6, progress=False)
    fresh = draw(4000)
    gap = true_log_density(fresh).mean() - fit.log_predictive(fresh).mean()
    assert -0.02 < gap < 0.05
