"""A fit saved, loaded, pickled or copied is the same fit, bit for bit."""

import copy
import json
import os
import pickle
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from cases import LIKELIHOODS, PROCESSES, LikelihoodName, ProcessName, clustered_rows, make_process, visible_bits
from stickbreak.io import files

ALGORITHMS = [sb.Full(sparsity=None, max_passes=4, tol=0.0), sb.Memoized(batches=3, sparsity=2, max_passes=4, tol=0.0)]


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return clustered_rows(np.random.default_rng(0), 300, 3, 4)


def fitted(
    rows: np.ndarray,
    likelihood: LikelihoodName = "gaussian",
    process: ProcessName = "dirichlet_process",
    which: int = 1,
) -> sb.Fit:
    chosen = sb.Gaussian() if likelihood == "gaussian" else sb.ZeroMeanGaussian()
    model = sb.Mixture(likelihood=chosen, process=make_process(process, 4, 1.7))
    return sb.fit(model, rows, ALGORITHMS[which], n_components=4, progress=False)


def through_file(fit: sb.Fit, tmp_path: Path) -> sb.Fit:
    fit.save(tmp_path / "model.safetensors")
    return sb.load(tmp_path / "model.safetensors")


WAYS: dict[str, Callable[[sb.Fit, Path], sb.Fit]] = {
    "file": through_file,
    "pickle": lambda fit, _: pickle.loads(pickle.dumps(fit)),
    "oldest_pickle": lambda fit, _: pickle.loads(pickle.dumps(fit, protocol=2)),
    "deepcopy": lambda fit, _: copy.deepcopy(fit),
    "copy": lambda fit, _: copy.copy(fit),
    "twice": lambda fit, tmp_path: pickle.loads(pickle.dumps(through_file(fit, tmp_path))),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", PROCESSES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_round_trip(
    rows: np.ndarray,
    way: Callable[[sb.Fit, Path], sb.Fit],
    likelihood: LikelihoodName,
    process: ProcessName,
    dtype: type,
    tmp_path: Path,
) -> None:
    rows = rows.astype(dtype)
    for which in (0, 1):
        fit = fitted(rows, likelihood, process, which)
        again = way(fit, tmp_path)
        assert visible_bits(again, rows) == visible_bits(fit, rows)
        assert again.history == fit.history
        assert again.model == fit.model
        assert again.stop_reason is fit.stop_reason
        assert (again.bound, again.concentration, again.n_components) == (fit.bound, fit.concentration, 4)
        sparse, expected = again.predict_proba(rows, sparse=True), fit.predict_proba(rows, sparse=True)
        assert sparse.data.tobytes() == expected.data.tobytes()
        assert sparse.indices.tobytes() == expected.indices.tobytes()


def test_loaded_fit_goes_on_bit_for_bit(rows: np.ndarray, tmp_path: Path) -> None:
    fit = fitted(rows)
    again = through_file(fit, tmp_path)
    for algorithm in ALGORITHMS:
        one = sb.fit(fit.model, rows, algorithm, init=fit, progress=False)
        other = sb.fit(again.model, rows, algorithm, init=again, progress=False)
        assert visible_bits(one, rows) == visible_bits(other, rows)


def test_reports_of_moves_are_kept(tmp_path: Path) -> None:
    """Files without reports, such as those of earlier versions, give none."""
    rows = np.random.default_rng(0).normal(np.repeat([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]], 100, axis=0))
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, progress=False)
    assert fit.history[0].moves[0].accepted == 1
    assert any(report.refused for record in fit.history for report in record.moves)
    for way in WAYS.values():
        assert way(fit, tmp_path).history == fit.history
    header, arrays = fit._to_parts()
    for record in header["state"]["history"]:
        del record["moves"]
    files.write(tmp_path / "old.safetensors", header, arrays)
    old = sb.load(tmp_path / "old.safetensors")
    assert [record.moves for record in old.history] == [()] * len(fit.history)
    assert [record.proposed for record in old.history] == [record.proposed for record in fit.history]


def test_damaged_reports_of_moves_are_refused(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(np.repeat([[0.0, 0.0], [20.0, 0.0]], 100, axis=0))
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, progress=False)
    for change in ({"kind": "flip"}, {"proposed": -1}, {"gain": "much"}, {"refused": 3}):
        header, arrays = fit._to_parts()
        header["state"]["history"][0]["moves"][0] |= change
        files.write(tmp_path / "m.safetensors", header, arrays)
        with pytest.raises(sb.ModelFileError):
            sb.load(tmp_path / "m.safetensors")


def test_another_process_reads_the_same(rows: np.ndarray, tmp_path: Path) -> None:
    fit = fitted(rows)
    fit.save(tmp_path / "model.safetensors")
    script = (
        "import sys, stickbreak as sb; fit = sb.load(sys.argv[1]); print(fit.elbo.hex(), fit.weights.tobytes().hex())"
    )
    found = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model.safetensors")],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert found.stdout.split() == [fit.elbo.hex(), fit.weights.tobytes().hex()]


def test_states_without_passes_and_stopped_fits(rows: np.ndarray, tmp_path: Path) -> None:
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    start = sb.fit(model, rows, sb.Full(max_passes=0), n_components=3, progress=False)
    stopped = sb.fit(model, rows, sb.Full(), n_components=3, callbacks=[lambda _: True], progress=False)
    for fit in [start, stopped]:
        again = through_file(fit, tmp_path)
        assert visible_bits(again, rows) == visible_bits(fit, rows)
        assert again.stop_reason is fit.stop_reason


def test_paths(rows: np.ndarray, tmp_path: Path) -> None:
    fit = fitted(rows)
    for path in [str(tmp_path / "a"), tmp_path / "b.model", tmp_path / "with space and ünïcode"]:
        fit.save(path)
        assert sb.load(path).elbo == fit.elbo
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a", "b.model", "with space and ünïcode"]


def test_the_longest_names(rows: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / ("m" * 255)
    fit = fitted(rows)
    fit.save(path)
    assert sb.load(path).elbo == fit.elbo
    files.write(tmp_path / ("c" * 255), {}, {}, files.CHECKPOINT)
    assert [len(file.name) for file in tmp_path.iterdir()] == [255, 255]


def test_saving_replaces(rows: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "model"
    fitted(rows, "gaussian").save(path)
    other = fitted(rows, "zero_mean_gaussian")
    other.save(path)
    assert sb.load(path).elbo == other.elbo


def test_format_is_safetensors_with_a_json_header(rows: np.ndarray, tmp_path: Path) -> None:
    """Eight bytes of length, JSON, then plain arrays: read here without the package, nothing is ever executed."""
    path = tmp_path / "model"
    fitted(rows).save(path)
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    assert int(metadata["version"]) >= 1
    assert "stickbreak" in metadata["format"]
    assert isinstance(json.loads(metadata["header"]), dict)
    assert header
    assert all(entry["dtype"] == "F64" for entry in header.values())
    assert b"cpickle" not in content.lower()


def test_wrong_files(rows: np.ndarray, tmp_path: Path) -> None:
    good = tmp_path / "good"
    fitted(rows).save(good)
    content = good.read_bytes()
    length = int.from_bytes(content[:8], "little")
    wrong = {
        "missing": None,
        "empty": b"",
        "text": b"x, y\n1, 2\n",
        "pickle": pickle.dumps({"a": 1}),
        "cut": content[: len(content) // 2],
        "cut_by_one": content[:-1],
        "longer": content + b"\0" * 8,
        "header_only": content[: 8 + length],
        "huge_length": (2**62).to_bytes(8, "little") + content[8:],
        "newer": content.replace(b'"version":"2"', b'"version":"9"'),
    }
    for name, replaced in wrong.items():
        path = tmp_path / name
        if replaced is not None:
            assert replaced != content
            path.write_bytes(replaced)
        with pytest.raises(sb.ModelFileError) as caught:
            sb.load(path)
        assert name in str(caught.value)
    with pytest.raises(sb.ModelFileError):
        sb.load(tmp_path)


def test_locked(rows: np.ndarray, lock: Callable[[str], None]) -> None:
    fitted(rows).save("m.safetensors")
    lock("m.safetensors")
    with pytest.raises(sb.ModelFileError, match=r"^m\.safetensors: cannot be read: Permission denied$"):
        sb.load("m.safetensors")


def test_foreign_safetensors(tmp_path: Path) -> None:
    numpy_files = pytest.importorskip("safetensors.numpy")
    numpy_files.save_file({"weights": np.ones(3)}, tmp_path / "foreign")
    with pytest.raises(sb.ModelFileError):
        sb.load(tmp_path / "foreign")


def test_damaged_arrays(rows: np.ndarray, tmp_path: Path) -> None:
    """Arrays that do not belong together are refused, whichever of them is wrong."""
    numpy_files = pytest.importorskip("safetensors.numpy")
    safetensors = pytest.importorskip("safetensors")
    fitted(rows).save(tmp_path / "good")
    with safetensors.safe_open(tmp_path / "good", framework="numpy") as file:
        # Without the checksum, which would detect any change first.
        metadata = {name: value for name, value in file.metadata().items() if name != "checksum"}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    for name in arrays:
        without = {other: values for other, values in arrays.items() if other != name}
        flat = arrays | {name: np.zeros(7)}
        # It takes no space in the file, and would exceed the memory.
        wide = arrays | {name: np.zeros((0, 2**55))}
        for damaged in [without, flat, wide]:
            numpy_files.save_file(damaged, tmp_path / "damaged", metadata)
            with pytest.raises(sb.ModelFileError):
                sb.load(tmp_path / "damaged")


def impossible(arrays: dict[str, np.ndarray], index: tuple[int, int], value: float) -> dict[str, np.ndarray]:
    statistics = arrays["statistics"].copy()
    statistics[index] = value
    return {**arrays, "statistics": statistics}


@pytest.mark.parametrize(
    ("likelihood", "missing"),
    [
        (sb.Multinomial(), "error"),
        (sb.Poisson(), "error"),
        (sb.Poisson(), "marginalize"),
        (sb.Bernoulli(), "error"),
        (sb.Bernoulli(), "marginalize"),
        (sb.DiagonalGaussian(), "marginalize"),
    ],
)
def test_statistics_that_no_rows_have(likelihood: Any, missing: str, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).integers(2, size=(40, 3)).astype(float)
    fit = sb.fit(sb.Mixture(likelihood=likelihood), rows, n_components=2, missing=missing, progress=False)
    header, arrays = fit._to_parts()
    # Without a bound, with which the statistics would have to agree.
    header["state"] = {**header["state"], "elbo": float("nan"), "stop_reason": "interrupted"}
    path, count = tmp_path / "m.safetensors", float(arrays["counts"][0])
    files.write(path, header, arrays)
    sb.load(path)
    wrong = []
    if not isinstance(likelihood, sb.DiagonalGaussian):
        wrong += [impossible(arrays, (0, 1), -0.1), {**arrays, "origin": np.array([0.0, 1.0, 0.0])}]
    if isinstance(likelihood, sb.Bernoulli):
        wrong.append(impossible(arrays, (0, 1), count + 0.1))
    if missing == "marginalize":
        wrong += [impossible(arrays, (0, -1), count + 0.1), impossible(arrays, (0, -1), -0.1)]
    for damaged in wrong:
        files.write(path, header, damaged)
        with pytest.raises(sb.ModelFileError, match=r"statistics: |the origin is not zero"):
            sb.load(path)


def test_a_fit_that_ended_has_a_bound(rows: np.ndarray, tmp_path: Path) -> None:
    header, arrays = fitted(rows)._to_parts()
    for reason in ("converged", "max_passes"):
        state = {**header["state"], "elbo": float("nan"), "stop_reason": reason}
        files.write(tmp_path / "m", {**header, "state": state}, arrays)
        with pytest.raises(sb.ModelFileError, match=f"the bound is nan, but the fit ended by {reason}"):
            sb.load(tmp_path / "m")


def test_fields_of_another_kind_are_named(rows: np.ndarray, tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    header, arrays = fitted(rows)._to_parts()
    scale = arrays["likelihood.scale"].astype(np.float32)

    def told(header: files.Header, arrays: files.Arrays) -> str:
        files.write(path, header, arrays)
        with pytest.raises(sb.ModelFileError) as caught:
            sb.load(path)
        return str(caught.value).removeprefix(f"{path}: the model in the file is damaged: ")

    def changed(**state: object) -> files.Header:
        return {**header, "state": {**header["state"], **state}}

    found = f"an array of dtype float32 and shape {scale.shape}"
    assert told(header, {**arrays, "likelihood.scale": scale}) == (
        f"likelihood.scale must be an array of float64, but it is {found}"
    )
    message = "process_parameters.concentration must be a number or a word, but it is an object of type list"
    assert told(changed(process_parameters={"concentration": [1]}), arrays) == message
    assert told(changed(likelihood_parameters=3), arrays).startswith("likelihood_parameters must be an object, but it")
    assert told({**header, "state": None}, arrays) == "state must be an object, but it is None"
    assert told(header, {name: array for name, array in arrays.items() if name != "counts"}) == "counts is missing"


def test_flipped_bits_are_seen(rows: np.ndarray, tmp_path: Path) -> None:
    """The checksum covers every bit that is read: a file with a flipped bit is refused or gives the same fit."""
    fit, path = fitted(rows), tmp_path / "flipped"
    fit.save(path)
    content = path.read_bytes()
    n_refused = 0
    for bit in np.random.default_rng(4).integers(8 * len(content), size=500).tolist():
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        try:
            again = sb.load(path)
        except sb.ModelFileError:
            n_refused += 1
        else:
            assert visible_bits(again, rows) == visible_bits(fit, rows)
    assert n_refused > 450


def test_a_frozen_file_of_version_1_is_read() -> None:
    """Written by the first version of the format; it must stay readable by all later ones."""
    fit = sb.load(Path(__file__).parents[1] / "data" / "model_v1.safetensors")
    mean = [-0.8707938902203547, -0.6986798304597639]
    scale = [[15.655210936718836, 14.853579280471472], [14.853579280471472, 15.662724636711987]]
    likelihood = sb.Gaussian(mean=mean, mean_precision=0.5, dof=4, scale=scale)
    assert fit.model == sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(concentration=2.0))
    assert fit.elbo == -404.78811507427326
    np.testing.assert_allclose(fit.counts, [24.931534827439172, 39.999999745416574, 35.06846542714426], rtol=1e-15)
    expected = [-7.020192118984904, -3.0640647173344338]
    np.testing.assert_allclose(fit.log_predictive([[0.0, 0.0], [4.0, 4.0]]), expected, rtol=1e-12)
    assert [record.index for record in fit.history] == [0, 1, 2, 3, 4]


def test_what_a_newer_version_adds_is_left_alone(rows: np.ndarray, tmp_path: Path) -> None:
    numpy_files = pytest.importorskip("safetensors.numpy")
    fit = fitted(rows)
    header, arrays = fit._to_parts()
    header["state"]["later"] = {"more": [1, 2]}
    header["colour"] = "green"
    arrays["later.matrix"] = np.ones((3, 3), dtype=np.float16)
    text = json.dumps(header)
    metadata = {"format": "stickbreak-model", "version": "1", "header": text, "author": "somebody"}
    numpy_files.save_file(arrays, tmp_path / "newer", metadata)
    assert visible_bits(sb.load(tmp_path / "newer"), rows) == visible_bits(fit, rows)


def test_directory_that_does_not_exist(rows: np.ndarray, tmp_path: Path) -> None:
    with pytest.raises(sb.ModelFileError):
        fitted(rows).save(tmp_path / "no" / "model")
    assert list(tmp_path.iterdir()) == []


def test_models_survive_pickling() -> None:
    for model in [
        sb.Mixture(likelihood=sb.Gaussian(mean=[1.0, 2.0], scale=np.eye(2)), process=sb.DirichletProcess()),
        sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.FiniteDirichlet(n_components=3)),
    ]:
        assert pickle.loads(pickle.dumps(model)) == model
        assert copy.deepcopy(model) == model
    for algorithm in ALGORITHMS:
        assert pickle.loads(pickle.dumps(algorithm)) == algorithm


def test_a_damaged_file_is_refused_before_there_is_memory_for_it(tmp_path: Path) -> None:
    """The checksum is that of the file, read a piece at a time."""
    path, n_bytes = tmp_path / "m.safetensors", 32 << 20
    files.write(path, {"some": "header"}, {"statistics": np.zeros((4, n_bytes // 32)), "counts": np.ones(4)})
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    tracemalloc.start()
    try:
        with pytest.raises(sb.ModelFileError, match="damaged: its checksum does not fit its content"):
            sb.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < n_bytes / 8


def test_arrays_of_every_type_and_shape_come_back(tmp_path: Path) -> None:
    types = ["?", "i1", "u1", "i2", "u2", "f2", "i4", "u4", "f4", "i8", "u8", "f8"]
    arrays = {name: np.arange(6).reshape(2, 3).astype(name) for name in types}
    arrays |= {
        "scalar": np.float64(3.0).reshape(()),
        "none": np.zeros((0, 5)),
        "turned": np.arange(6.0).reshape(2, 3).T,
    }
    files.write(tmp_path / "m", {"a": 1}, arrays)
    header, found = files.read(tmp_path / "m")
    assert header == {"a": 1}
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)
