"""Regressions from hostile use: each case is a typed error, or works."""

import os
import stat
import threading
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

import stickbreak as sb


@pytest.fixture(scope="module")
def fit() -> sb.Fit:
    X = np.random.default_rng(0).normal(size=(200, 2))
    return sb.fit(sb.Mixture(sb.Gaussian()), X, sb.Full(max_passes=5), n_components=3)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_saving_replaces_nothing_but_regular_files(fit: sb.Fit, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(sb.ModelFileError, match="regular file"):
        fit.save(pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_threads_may_save_to_one_path(fit: sb.Fit, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    failures: list[Exception] = []

    def work() -> None:
        try:
            for _ in range(25):
                fit.save(path)
                sb.load(path)
        except sb.StickbreakError as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("path", ["a\0b", "a" * 5000])
def test_impossible_paths_are_model_file_errors(fit: sb.Fit, path: str) -> None:
    with pytest.raises(sb.ModelFileError):
        fit.save(path)
    with pytest.raises(sb.ModelFileError):
        sb.load(path)


PROCESS = '"process_parameters": {"concentration": 1.0, "sticks": null, "truncation": "nested"}'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"n_rows": 200', '"n_rows": -1'),
        ('"sparsity": 3', '"sparsity": 18446744073709551616'),
        ('"mass": 200.0', '"mass": 7.0'),
        ('"mass": 200.0', '"mass": 1e400'),
        ('"elbo": -', '"elbo": -9'),
        ('"n_rows": 200', '"n_rows": 0'),
        ('"n_rows": 200', '"n_rows": true'),
        ('"n_rows": 200', '"n_rows": 9223372036854775808'),
        ('"n_rows": 200', '"n_rows": 200.0'),
        ('"n_rows": 200', '"rows": 200'),
        ('"sparsity": 3', '"sparsity": true'),
        ('"sparsity": 3', '"sparsity": 0'),
        ('"sparsity": 3', '"sparsity": 4'),
        ('"index": 0', '"index": false'),
        ('"index": 0', '"index": -1'),
        ('"concentration": 1.0', '"concentration": true'),
        ('"concentration": 1.0', '"concentration": null'),
        ('"concentration": 1.0, ', ""),
        ('"concentration": 1.0', '"concentration": 1.0, "extra": 2.0'),
        (PROCESS, '"process_parameters": {}'),
        (PROCESS, '"process_parameters": []'),
        ('"process": "DirichletProcess"', '"process": "DirichletProces"'),
        ('"likelihood": "Gaussian"', '"likelihood": "ZeroMeanGaussian"'),
        ('"mean_precision": 0.1', '"mean_precision": -0.1'),
        ('"stop_reason": "', '"stop_reason": "un'),
        ('"mass": 200.0', '"mass": {"$float": "nan"}'),
        ('"mass": 200.0', '"mass": {"$float": 1' + 400 * "0" + "}"),
    ],
)
def test_values_that_do_not_fit_together_do_not_load(fit: sb.Fit, tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(sb.ModelFileError):
        sb.load(rewritten(fit, tmp_path / "model.safetensors", old, new))


def test_fits_of_more_rows_than_32_bits_count_load(fit: sb.Fit, tmp_path: Path) -> None:
    loaded = sb.load(rewritten(fit, tmp_path / "model.safetensors", '"n_rows": 200', '"n_rows": 5000000000'))
    assert isinstance(loaded, sb.Fit)
    assert "5000000000 rows" in repr(loaded)
    assert "5000000010 rows" in repr(loaded.update(np.zeros((10, 2))))


def rewritten(fit: sb.Fit, path: Path, old: str, new: str) -> Path:
    """The file of a fit with another value in its header."""
    fit.save(path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert old in metadata["header"]
    metadata["header"] = metadata["header"].replace(old, new, 1)
    # With it any change would be found.
    del metadata["checksum"]
    save_file(arrays, path, metadata)
    return path


def test_what_does_not_fit_in_memory_is_an_error(fit: sb.Fit) -> None:
    with pytest.raises(sb.InvalidArgument) as caught:
        fit.sample(10**18)
    assert caught.value.argument == "n"


def test_numbers_beyond_what_the_core_counts_are_errors() -> None:
    X = np.zeros((10, 1))
    model = sb.Mixture(sb.Gaussian())
    for argument in ({"threads": 5000}, {"threads": 10**30}, {"n_init": 10**12}):
        with pytest.raises(sb.InvalidArgument) as caught:
            sb.fit(model, X, **argument)  # type: ignore[arg-type]
        assert caught.value.argument == next(iter(argument))
    with pytest.raises(sb.InvalidArgument):
        sb.Full(max_passes=10**30)
    for concentration in (10**400, 5e-324):
        with pytest.raises(sb.InvalidArgument):
            sb.DirichletProcess(concentration)


@pytest.mark.parametrize("n", [3, 33, 64])
def test_arrays_of_many_dimensions_are_errors(fit: sb.Fit, n: int) -> None:
    deep = np.zeros((1,) * n)
    X = np.random.default_rng(0).normal(size=(20, 2))
    calls = [
        lambda: sb.ZeroMeanGaussian(scale=deep),
        lambda: sb.Gaussian(deep),
        lambda: sb.Gaussian(scale=deep),
        lambda: sb.Gaussian(resolution=deep),
        lambda: sb.DiagonalGaussian(deep),
        lambda: sb.StudentT(scale=deep),
        lambda: sb.KnownCovarianceGaussian(deep),
        lambda: sb.Categorical(levels=deep),
        lambda: sb.Multinomial(deep),
        lambda: sb.Poisson(deep),
        lambda: sb.NegativeBinomial(shape=deep),
        lambda: sb.Background(centre=deep),
        lambda: sb.fit(sb.Mixture(sb.Gaussian()), deep, progress=False),
        lambda: sb.fit(sb.Mixture(sb.Gaussian()), X, sample_weight=deep, progress=False),
        lambda: sb.fit(sb.Mixture(sb.Gaussian()), X, init=deep, progress=False),
        lambda: fit.predict(deep),
        lambda: sb.partition_distance(deep, deep),
        lambda: sb.label_shares(deep, [0]),
    ]
    for call in calls:
        with pytest.raises(sb.StickbreakError):
            call()
