"""Files that are truncated, flipped, spliced or rewritten files of fits, traces and hierarchies, or no such files:
loading gives what they hold or a `ModelFileError`.

Three levels, because a checksum of the whole file hides what lies below: bytes; the header of safetensors with its
shapes, types and offsets; and the parts of a model, mutated before the file is written.
"""

from __future__ import annotations

import copy
import io
import json
import os
import pickle
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

import stickbreak as sb
from fuzzing import Failure, generator, memory, mutations
from stickbreak.io import files

Generator = np.random.Generator
Parts = tuple[dict[str, Any], dict[str, Any]]

_KIND = 1
_ROWS = np.array([[0.5, -1.0, 2.0], [30.0, 0.0, 1e-3]])
# The peak memory of a case may exceed the memory before it by this constant, plus a multiple of the file's size. JSON
# text such as [[],[],[]] takes more than twenty times its length as Python objects.
MEMORY_CONSTANT = 16 * 1024 * 1024
MEMORY_FACTOR = 32


def run(seed: int, number: int) -> str:
    """Run one case; return how it ended."""
    rng = generator(seed, _KIND, number)
    path = _scratch()
    make = (_bytes, _bytes, _tensor_header, _parts, _parts)[rng.integers(5)]
    path.write_bytes(make(rng))
    allowed = MEMORY_CONSTANT + MEMORY_FACTOR * path.stat().st_size
    try:
        with memory.limited(allowed, f"a file of {path.stat().st_size} bytes"):
            fit = sb.load(path)
    except sb.ModelFileError:
        return "refused"
    _use(fit)
    return "loaded"


def _use(found: Any) -> None:
    """Use what was loaded, which must give results or typed errors."""
    repr(found)
    uses: dict[type, Any] = {sb.Fit: _use_fit, sb.TopicFit: _use_topics, sb.Trace: _use_trace, sb.Hierarchy: _use_tree}
    try:
        uses[type(found)](found)
    except (sb.NumericalError, sb.NotSupported):
        return
    except sb.ModelFileError:
        # What only the core can see is found on use.
        if isinstance(found, sb.Fit | sb.TopicFit):
            raise


def _use_fit(fit: sb.Fit) -> None:
    rows = _rows_for(fit.model, fit._state.dimension)
    values = [fit.weights, fit.counts, *fit.components.values(), np.array([fit.leftover_weight])]
    if not all(np.isfinite(value).all() for value in values):
        raise Failure(f"loaded, but not finite: {fit!r}")
    fit.history, fit.stop_reason, fit.error, fit.concentration, fit.support  # noqa: B018
    labels = fit.predict(rows, threads=1)
    results = [fit.predict_proba(rows, threads=1), fit.log_predictive(rows, threads=1), fit.sample(3, seed=1)]
    results.append(np.array(fit.evaluate(rows, threads=1)))
    if not all(np.isfinite(result).all() for result in results) or not (labels < fit.n_components).all():
        raise Failure(f"loaded, but its answers are not finite: {fit!r}")


def _use_topics(fit: sb.TopicFit) -> None:
    counts = np.ones((2, fit.topics.shape[1]))
    results = [fit.topics, fit.transform(counts, threads=1), fit.update(counts, threads=1).topics]
    if not all(np.isfinite(result).all() for result in results):
        raise Failure(f"loaded, but its answers are not finite: {fit!r}")


def _use_trace(trace: sb.Trace) -> None:
    trace.ess(), trace.rhat(), trace.acceptance, trace.similarity(threads=1), trace.raftery_lewis()
    trace.cluster_sizes(0, 0), trace.largest_cluster, trace.point_estimate(runs=1, threads=1)
    if trace._sampled is None or trace.kept_rows is not None:
        return
    rows = _ROWS[:, : trace._sampled[1].shape[1]]
    densities, labels = trace.log_predictive(rows, threads=1), trace.predict(rows, threads=1)
    if np.isnan(densities).any() or labels.min() < 0:
        raise Failure(f"loaded, but its answers are none: {trace!r}")


def _use_tree(tree: sb.Hierarchy) -> None:
    tree.linkage, tree.hyperparameters, tree.cut("map")
    more = tree.insert(_ROWS[:, : tree._rows.shape[1]], threads=1)
    if not np.isfinite([tree.elbo, more.elbo]).all():
        raise Failure(f"loaded, but its answers are not finite: {tree!r}")


def _rows_for(model: sb.Mixture, dimension: int) -> Any:
    rows = _ROWS[:, :dimension]
    return rows if "Gaussian" in type(model.likelihood).__name__ else (rows > 0).astype(float)


@cache
def _models() -> list[tuple[bytes, Parts, files.Kind]]:
    """A few small results of every kind, as files and as parts."""
    rng = np.random.default_rng(0)
    found: list[Any] = []
    for dimension in (1, 2, 3):
        rows = rng.normal(size=(40, dimension)) + rng.choice([-9.0, 9.0], size=(40, 1))
        for likelihood in (sb.Gaussian(), sb.ZeroMeanGaussian()):
            for process in (sb.DirichletProcess(1.5), sb.FiniteDirichlet(n_components=dimension + 1)):
                found.append(_fitted(sb.Mixture(likelihood=likelihood, process=process), rows, dimension + 1))
    others: list[Any] = [
        sb.DiagonalGaussian(),
        sb.SphericalGaussian(base="product"),
        sb.KnownCovarianceGaussian(np.eye(3)),
    ]
    found += [_fitted(sb.Mixture(likelihood=other), rows, 2) for other in others]
    flags = (rows > 0).astype(float)
    discrete: list[Any] = [sb.Bernoulli(), sb.Poisson(), sb.Categorical(), sb.Multinomial()]
    found += [_fitted(sb.Mixture(likelihood=other), flags, 2) for other in discrete]
    tail = sb.DirichletProcess(1.5, truncation="tail")
    found.append(_fitted(sb.Mixture(likelihood=sb.Gaussian(), process=tail), rows, 2))
    found.append(_fitted(sb.TopicModel(sb.LatentDirichlet(2, None)), rng.poisson(1.0, size=(20, 5)), 2))
    learned = sb.PitmanYor(sb.Beta(1.0, 3.0), concentration=sb.Gamma(1.0, 1.0))
    for law in (sb.DirichletProcess(sb.Gamma(1.0, 1.0)), sb.NormalizedGeneralizedGamma(1.0, 0.3), learned):
        sampled = sb.Mixture(likelihood=sb.Gaussian(), process=law)
        found.append(sb.sample(sampled, rows[:15], draws=3, warmup=1, chains=2, threads=1, progress=False))
        found.append(sb.hierarchy(sampled, rows[:15], threads=1))
    return [_written(each) for each in found]


def _fitted(model: Any, rows: Any, n_components: int) -> Any:
    return sb.fit(model, rows, sb.Full(max_passes=2), n_components=n_components, threads=1, progress=False)


def _written(result: Any) -> tuple[bytes, Parts, files.Kind]:
    kind = {sb.Trace: files.TRACE, sb.Hierarchy: files.HIERARCHY}.get(type(result), files.MODEL)
    result.save(_scratch())
    return _scratch().read_bytes(), result._to_parts(), kind


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="stickbreak-fuzz-")


def _scratch() -> Path:
    return Path(_folder().name) / f"{os.getpid()}.safetensors"


# --- bytes ---


def _content(rng: Generator) -> bytes:
    models = _models()
    return models[rng.integers(len(models))][0]


def _splice(rng: Generator, content: bytes) -> bytes:
    return mutations.splice(rng, content, _content(rng))


def _length(rng: Generator, content: bytes) -> bytes:
    near = int.from_bytes(content[:8], "little") + int(rng.integers(-9, 10))
    lengths = [0, 1, 2**20, 2**27, 2**31, 2**32, 2**62, 2**63, 2**64 - 1, min(max(near, 0), 2**64 - 1)]
    length = lengths[rng.integers(len(lengths))]
    return length.to_bytes(8, "little") + content[8:]


def _foreign(rng: Generator, _: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("model.json", "{}")
    table = io.BytesIO()
    np.save(table, _ROWS)
    tensors = {"weights": np.ones((2, 3), np.float32)}
    choices = [
        b"",
        b"\x89PNG\r\n\x1a\n" + rng.bytes(200),
        archive.getvalue(),
        table.getvalue(),
        pickle.dumps({"model": _ROWS}),
        save(tensors),
        save(tensors, {"format": "stickbreak-model", "version": "1"}),
        save(tensors, {"format": "stickbreak-model", "version": "1", "header": "[" * int(rng.integers(1, 50_000))}),
        save({}, {"format": "pt"}),
        b"x,y\n1,2\n",
        rng.bytes(int(rng.integers(1, 2000))),
    ]
    return choices[rng.integers(len(choices))]


def _bytes(rng: Generator) -> bytes:
    return mutations.mutated(rng, _content(rng), (*mutations.ALL, _splice, _length, _foreign))


# --- the header of safetensors ---


def _tensor_header(rng: Generator) -> bytes:
    """Valid JSON of the right length, but shapes, types, offsets, names or metadata that are not."""
    content = _content(rng)
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    names = [name for name in header if name != "__metadata__"]
    name = names[rng.integers(len(names))]
    if rng.random() < 0.7:
        # The checksum is optional. With it, most of the changes below would be refused before parsing.
        header["__metadata__"].pop("checksum", None)
    choice = rng.integers(7)
    if choice == 0:
        types = ["F16", "BF16", "F32", "I64", "U8", "BOOL", "F8_E4M3", "F8_E5M2", "F4", "C64", "Q9"]
        header[name]["dtype"] = str(rng.choice(types))
    elif choice == 1:
        header[name]["shape"] = [int(size) for size in _sizes(rng)]
    elif choice == 2:
        header[name]["data_offsets"] = [int(size) for size in _sizes(rng)[:2]]
    elif choice == 3:
        header[name][str(rng.choice(["dtype", "shape", "data_offsets"]))] = wild_json(rng)
    elif choice == 4:
        header["__metadata__"][str(rng.choice(["format", "version", "header", "checksum"]))] = str(wild_json(rng))
    elif choice == 5:
        # The same bytes under another type and a shape that fits them.
        count = int(np.prod(header[name]["shape"]))
        header[name] |= {"dtype": str(rng.choice(["F32", "F16", "BF16", "U8"])), "shape": [1, count]}
        header[name]["shape"][1] *= {"F32": 2, "F16": 4, "BF16": 4, "U8": 8}[header[name]["dtype"]]
    else:
        header[name] = header.pop(names[rng.integers(len(names))])
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def _sizes(rng: Generator) -> list[int]:
    sizes = [0, 1, 2, 3, 5, 2**31, 2**32 + 1, 2**40, 2**62, 2**63, 2**64 - 1]
    return [sizes[i] for i in rng.integers(len(sizes), size=rng.integers(2, 5))]


# --- the parts of a model ---


def _parts(rng: Generator) -> bytes:
    """Return a valid file of an invalid model."""
    models = _models()
    _, parts, kind = models[rng.integers(len(models))]
    header, arrays = copy.deepcopy(parts)
    for _ in range(rng.integers(1, 3)):
        if rng.random() < 0.5:
            header = _changed_tree(rng, header)
        else:
            _change_arrays(rng, arrays)
    path = _scratch()
    files.write(path, header, arrays, kind)
    return path.read_bytes()


def _changed_tree(rng: Generator, header: dict[str, Any]) -> dict[str, Any]:
    """Replace, remove, add or exchange one node of a tree of JSON."""
    nodes: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            nodes.append((node, key))
            collect(node[key])

    collect(header)
    if not nodes:
        return header
    holder, key = nodes[rng.integers(len(nodes))]
    choice = rng.integers(6)
    if choice == 0:
        del holder[key]
    elif choice == 1 and isinstance(holder, dict):
        holder[str(rng.choice(["extra", "mean", "scale", "concentration", "kind"]))] = wild_json(rng)
    elif choice == 2:
        other, name = nodes[rng.integers(len(nodes))]
        holder[key] = copy.deepcopy(other[name])
    elif choice == 3 and isinstance(holder[key], float):
        holder[key] = holder[key] * float(rng.choice([-1.0, 0.0, 0.5, 1 + 1e-5, 2.0, 1e10, 1e300]))
    else:
        holder[key] = wild_json(rng)
    return header


def _change_arrays(rng: Generator, arrays: dict[str, Any]) -> None:
    """Change type, shape, length, name or values of one array."""
    if not arrays:
        return
    names = sorted(arrays)
    name = names[rng.integers(len(names))]
    array = np.array(arrays[name])
    choice = rng.integers(8)
    if choice == 0:
        types = [np.float32, np.float16, np.int64, np.uint8, np.bool_, np.complex64]
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(types[rng.integers(len(types))])
    elif choice == 1:
        arrays[name] = array.reshape([(-1,), (1, -1), (-1, 1), (1, 1, -1)][rng.integers(4)])
    elif choice == 2:
        arrays[name] = np.resize(array, rng.integers(0, 6, size=rng.integers(0, 4)))
    elif choice == 3:
        del arrays[name]
    elif choice == 4:
        arrays[str(rng.choice(["likelihood.extra", "process.concentration", "", "likelihood.", *names]))] = array
    elif choice == 5:
        with np.errstate(all="ignore"):
            arrays[name] = array.astype(np.float64) * rng.choice(
                [-1.0, 0.0, 1e-300, 1e-10, 1 + 1e-9, 1 + 1e-5, 1e10, 1e200]
            )
    elif choice == 6:
        arrays[name] = array[..., ::-1].copy() if array.ndim else array
    elif array.size:
        array = array.astype(np.float64)
        values = [np.nan, np.inf, -np.inf, 0.0, -1.0, 1e-320, 1e308, -1e308, 1e-8]
        array.flat[rng.integers(array.size)] = values[rng.integers(len(values))]
        arrays[name] = array


def wild_json(rng: Generator) -> Any:
    """Return any value that JSON can hold."""
    values: list[Any] = [None, True, False, 0, 1, -1, 2, 2**31, 2**32, 2**53 + 1, 2**63, 2**64, 10**30, 10**400]
    values += [0.0, -0.0, 0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"), "", "nested", "Gaussian", "x" * 5000]
    values += ["nan", "\0", "DirichletProcess", "converged", [], {}, [[]], [1, 2], {"a": 1}, {"$float": "nan"}]
    values += [{"$float": "1e400"}, {"$float": 3}, {"$float": 10**400}, {"$float": []}, {"$float": "x"}, [{}] * 3]
    return values[rng.integers(len(values))]
