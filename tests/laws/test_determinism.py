"""The same seed gives the same bits, whatever the number of threads: mathematics 7, number 21."""

import numpy as np
import pytest

import stickbreak as sb
from cases import LIKELIHOODS, LikelihoodName, ProcessName, clustered_rows, make_process, visible_bits
from stickbreak.testing import check_determinism

N = 9000


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return clustered_rows(np.random.default_rng(11), N, 5, 7)


def model_of(likelihood: LikelihoodName, process: ProcessName) -> sb.Mixture:
    chosen = sb.Gaussian() if likelihood == "gaussian" else sb.ZeroMeanGaussian()
    return sb.Mixture(likelihood=chosen, process=make_process(process, 9, 1.0))


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize(
    ("process", "dtype"),
    [
        ("dirichlet_process", np.float32),
        ("finite_dirichlet", np.float64),
        pytest.param("dirichlet_process", np.float64, marks=pytest.mark.slow),
        pytest.param("finite_dirichlet", np.float32, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    "algorithm",
    [
        sb.Full(sparsity=None, max_passes=4, tol=0.0),
        sb.Full(sparsity=3, max_passes=4, tol=0.0),
        sb.Memoized(batches=3, sparsity=2, max_passes=4, tol=0.0),
        sb.Memoized(batches=7, shuffle=False, sparsity=1, max_passes=4, tol=0.0),
    ],
    ids=["full_dense", "full_3", "memoized_2", "memoized_hard"],
)
@pytest.mark.one_in(3)
def test_threads(
    rows: np.ndarray, likelihood: LikelihoodName, process: ProcessName, dtype: type, algorithm: sb.Full
) -> None:
    rows = rows.astype(dtype)
    model = model_of(likelihood, process)
    check_determinism(model, rows, algorithm, threads=(1, 2, 3), n_components=9, seed=3)


@pytest.mark.parametrize("init", ["kmeans++", "random"])
def test_threads_of_the_start(rows: np.ndarray, init: str) -> None:
    weights = np.random.default_rng(0).uniform(0.0, 2.0, N)
    model, start = model_of("gaussian", "dirichlet_process"), sb.Full(max_passes=0)
    options = {"n_components": 20, "init": init, "sample_weight": weights}
    check_determinism(model, rows, start, threads=(1, 2, 3, None), **options)


def test_threads_of_the_predictions(rows: np.ndarray) -> None:
    model = model_of("gaussian", "dirichlet_process")
    fit = sb.fit(model, rows, sb.Full(sparsity=3, max_passes=2), n_components=9, progress=False)

    def bits(threads: int) -> list[bytes]:
        return [
            np.asarray(fit.evaluate(rows, threads=threads)).tobytes(),
            fit.predict(rows, threads=threads).tobytes(),
            fit.predict_proba(rows, threads=threads).tobytes(),
            fit.predict_proba(rows, sparse=True, threads=threads).data.tobytes(),
            fit.log_predictive(rows, threads=threads).tobytes(),
        ]

    assert bits(1) == bits(2) == bits(3)


def test_same_seed_same_bits_and_other_seed_other_bits(rows: np.ndarray) -> None:
    def run(seed: int, **algorithm: object) -> dict[str, bytes]:
        settings = sb.Memoized(batches=4, max_passes=2, tol=0.0, **algorithm)
        model = model_of("gaussian", "dirichlet_process")
        return visible_bits(sb.fit(model, rows, settings, n_components=9, seed=seed, progress=False), rows[:100])

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_seed_decides_batches_too(rows: np.ndarray) -> None:
    """With labels as the start, only the batches are random."""
    labels = np.arange(N) % 5
    model = model_of("gaussian", "dirichlet_process")

    def bound(seed: int) -> float:
        algorithm = sb.Memoized(batches=4, max_passes=2, tol=0.0)
        return sb.fit(model, rows, algorithm, init=labels, seed=seed, progress=False).elbo

    assert bound(1) == bound(1)
    assert bound(1) != bound(2)


@pytest.mark.parametrize("n", [1, 4096, 4097, 20_000])
def test_threads_of_a_sample(rows: np.ndarray, n: int) -> None:
    """Samples of several blocks, including rows from the prior."""
    for likelihood in (sb.Gaussian(), sb.DiagonalGaussian(), sb.SphericalGaussian()):
        process = sb.DirichletProcess(concentration=500.0)
        model = sb.Mixture(likelihood=likelihood, process=process)
        fit = sb.fit(model, rows, sb.Full(max_passes=1), n_components=9, progress=False)
        drawn = [fit.sample(n, seed=4, threads=threads) for threads in (1, 2, 3, None)]
        assert drawn[0].shape == (n, 5)
        assert len(np.unique(drawn[0], axis=0)) == n
        assert all(other.tobytes() == drawn[0].tobytes() for other in drawn)


def test_sample_depends_on_its_seed_only(rows: np.ndarray) -> None:
    model = model_of("gaussian", "dirichlet_process")
    fit = sb.fit(model, rows, sb.Full(max_passes=1), n_components=9, progress=False)
    np.testing.assert_array_equal(fit.sample(1000, seed=4), fit.sample(1000, seed=4))
    assert (fit.sample(1000, seed=4) != fit.sample(1000, seed=5)).any()
