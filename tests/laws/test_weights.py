"""`sample_weight`: weight two equals two rows with equal responsibilities, weight zero equals no row."""

import numpy as np
import pytest

import stickbreak as sb
from cases import LIKELIHOODS, PROCESSES, LikelihoodName, ProcessName, clustered_rows, make_case, make_process

ALGORITHMS = [sb.Full(sparsity=2, max_passes=4, tol=0.0), sb.Full(sparsity=None, max_passes=4, tol=0.0)]


def own_model(likelihood: LikelihoodName, process: ProcessName = "dirichlet_process") -> sb.Mixture:
    """A model whose hyper-parameters follow the data, and so the weights."""
    chosen = sb.Gaussian() if likelihood == "gaussian" else sb.ZeroMeanGaussian()
    return sb.Mixture(likelihood=chosen, process=make_process(process, 4, 1.3))


def assert_same(fit: sb.Fit, other: sb.Fit) -> None:
    assert other.elbo == pytest.approx(fit.elbo, rel=1e-10)
    np.testing.assert_allclose(other.counts, fit.counts, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(other.weights, fit.weights, rtol=1e-8)
    for name, values in fit.components.items():
        np.testing.assert_allclose(other.components[name], values, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=["sparse", "dense"])
def test_whole_weights_are_repeated_rows(likelihood: LikelihoodName, process: ProcessName, algorithm: sb.Full) -> None:
    case = make_case(1, n=70, n_components=4)
    repeats = np.random.default_rng(0).integers(0, 4, size=70)
    model = own_model(likelihood, process)
    weighted = sb.fit(model, case.rows, algorithm, init=case.responsibilities, sample_weight=repeats, progress=False)
    rows = np.repeat(case.rows, repeats, axis=0)
    start = np.repeat(case.responsibilities, repeats, axis=0)
    assert_same(sb.fit(model, rows, algorithm, init=start, progress=False), weighted)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=["sparse", "dense"])
def test_weight_zero_is_no_row(likelihood: LikelihoodName, algorithm: sb.Full) -> None:
    case = make_case(2, n=70, n_components=4)
    present = np.arange(70) % 3 > 0
    rows = np.where(present[:, None], case.rows, 1e3)  # far away, so that a single one of them would be seen
    model = own_model(likelihood)
    weighted = sb.fit(
        model, rows, algorithm, init=case.responsibilities, sample_weight=present.astype(float), progress=False
    )
    absent = sb.fit(model, rows[present], algorithm, init=case.responsibilities[present], progress=False)
    assert_same(absent, weighted)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_ones_are_no_weights(likelihood: LikelihoodName) -> None:
    case = make_case(3, n=70, n_components=4)
    for algorithm in [*ALGORITHMS, sb.Memoized(batches=5, max_passes=3, tol=0.0)]:
        without = sb.fit(own_model(likelihood), case.rows, algorithm, init=case.responsibilities, progress=False)
        ones = np.ones(70)
        weighted = sb.fit(
            own_model(likelihood), case.rows, algorithm, init=case.responsibilities, sample_weight=ones, progress=False
        )
        assert_same(without, weighted)


def test_weights_travel_with_their_rows_through_the_batches() -> None:
    """Heavy and light rows come from different clusters, so mixed-up weights would change the clusters' weights."""
    rng = np.random.default_rng(4)
    labels = rng.integers(2, size=4000)
    rows = rng.standard_normal((4000, 2)) + np.where(labels, 10.0, -10.0)[:, None]
    weights = np.where(labels, 3.0, 1.0)
    for shuffle in [True, False]:
        algorithm = sb.Memoized(batches=8, shuffle=shuffle, max_passes=10)
        fit = sb.fit(
            own_model("gaussian"), rows, algorithm, n_components=2, sample_weight=weights, seed=1, progress=False
        )
        np.testing.assert_allclose(np.sort(fit.counts), [weights[labels == 0].sum(), weights[labels == 1].sum()])


@pytest.mark.parametrize("init", ["kmeans++", "random"])
def test_seeds_never_come_from_rows_without_weight(init: str) -> None:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((500, 2))
    weights = np.ones(500)
    rows[::2] += 1e4
    weights[::2] = 0.0
    model = sb.Mixture(
        likelihood=sb.Gaussian(mean=[0, 0], mean_precision=1e-3, dof=4, scale=np.eye(2)), process=sb.DirichletProcess()
    )
    for seed in range(5):
        fit = sb.fit(
            model,
            rows,
            sb.Full(max_passes=0),
            n_components=6,
            init=init,
            sample_weight=weights,
            seed=seed,
            progress=False,
        )
        assert np.abs(fit.components["mean"]).max() < 10


def test_convergence_counts_weight_not_rows() -> None:
    """`tol` is nats per unit of weight: all weights times 1000 and `tol` unchanged stops no later."""
    rows = clustered_rows(np.random.default_rng(6), 400, 2, 3)
    model = own_model("gaussian")

    def passes(weight: float) -> int:
        options = {"init": np.arange(400) % 3, "sample_weight": np.full(400, weight), "progress": False}
        fit = sb.fit(model, rows, sb.Full(tol=1e-4, max_passes=2000), **options)
        assert fit.stop_reason is sb.StopReason.CONVERGED
        gain = fit.history[-1].objective - fit.history[-2].objective
        assert gain / (400 * weight) < 1e-4
        before = np.diff([record.objective for record in fit.history])[:-1] / (400 * weight)
        assert (before >= 1e-4).all()
        return len(fit.history)

    assert passes(1.0) > 3
    assert passes(1000.0) > 3
