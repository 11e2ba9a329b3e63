"""Data files of every format, good and bad: reading gives rows that a fit takes or refuses, or an error with a reason.

Files go to the readers of tables, of corpora and of words, with columns and other choices of all kinds.
"""

from __future__ import annotations

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import stickbreak as sb
from fuzzing import Failure, generator, memory, tables
from stickbreak.io import corpora, datafiles
from stickbreak.io.names import Table

Generator = np.random.Generator

_KIND = 4
# The longest line of text that is read has 64 MB, and PyArrow reserves memory of its own.
_MEMORY = 256 * 1024 * 1024
_MEMORY_FACTOR = 64
# Errors of bad files, and of choices that a file does not have.
_ALLOWED = (sb.SourceError, sb.InvalidArgument, sb.InvalidType, sb.NotSupported)
_TEXTS = ["1", "2", "1-2", "2-1", "0", "-1", "99", "1-9999999999", "a", "c0", "id", "", "é", "1,2", "-", " ", "\0", "½"]


def run(seed: int, number: int) -> str:
    """Run one case; return how it ended."""
    rng = generator(seed, _KIND, number)
    suffix = tables.SUFFIXES[rng.integers(len(tables.SUFFIXES))]
    path = _place(rng, suffix)
    content = path.read_bytes() if path.is_file() else b""
    try:
        with memory.limited(_MEMORY + _MEMORY_FACTOR * len(content), f"a file of {len(content)} bytes"):
            table = _read(rng, path, suffix)
            _check(table)
    except _ALLOWED as error:
        _check_error(error)
        return "refused"
    if rng.random() < 0.5:
        return "read"
    return _fit(rng, table)


def _place(rng: Generator, suffix: str) -> Path:
    """Write a file, or a folder of Parquet files."""
    folder = Path(_folder().name)
    for old in folder.rglob("*.*"):
        old.unlink()
    if suffix == ".parquet" and rng.random() < 0.2:
        inner = folder / "folder"
        inner.mkdir(exist_ok=True)
        for name in range(int(rng.integers(1, 4))):
            (inner / f"{name}.parquet").write_bytes(tables.table(rng, suffix))
        return inner
    path = folder / f"{os.getpid()}{suffix}"
    path.write_bytes(tables.table(rng, suffix))
    return path


def _read(rng: Generator, path: Path, suffix: str) -> Any:
    choice = rng.random()
    columns = None if rng.random() < 0.9 else _texts(rng)
    if suffix in (".docword", ".txt", ".gz"):
        if suffix == ".txt" and choice < 0.3:
            return corpora.read_vocabulary(path)
        return sb.read_docword(path) if choice < 0.5 else corpora.read_corpus(path, columns=columns)
    if choice < (0.7 if suffix == ".npz" else 0.3):
        return corpora.read_corpus(path, columns=columns)
    options: dict[str, Any] = {"columns": columns, "may_miss": bool(rng.integers(2))}
    choices: dict[str, list[Any]] = {
        "weight_column": _TEXTS,
        "key": ["rows", "data", "", "é"],
        "delimiter": [",", ";", "\t", " ", "|", "", "ab", "\n", '"', "1", "é"],
        "header": [True, False],
        "keep": [_texts(rng)],
    }
    for name, values in choices.items():
        if rng.random() < 0.08:
            options[name] = values[rng.integers(len(values))]
    return datafiles.read(path, **options)


def _texts(rng: Generator) -> list[str]:
    return [_TEXTS[place] for place in rng.integers(len(_TEXTS), size=rng.integers(1, 4))]


def _check(table: Any) -> None:
    """Refuse a result that is not what a reader returns."""
    if isinstance(table, tuple):
        if not all(isinstance(word, str) and word.strip() for word in table) or len(set(table)) < len(table):
            raise Failure(f"words that are blank, or there twice: {table!r}")
        return
    rows = table.rows if isinstance(table, Table) else table
    if len(rows.shape) != 2 or rows.dtype.kind not in "biuf":
        raise Failure(f"rows of shape {rows.shape} and dtype {rows.dtype}")
    if not isinstance(rows, np.ndarray):
        if not rows.has_canonical_format or (
            rows.nnz and not 0 <= rows.indices.min() <= rows.indices.max() < rows.shape[1]
        ):
            raise Failure("a sparse array with columns that it does not have")
        return
    # Reads a memory map to its end.
    np.array(rows)
    if isinstance(table, datafiles.DataFile):
        if table.names is not None and len(table.names) != rows.shape[1]:
            raise Failure(f"{len(table.names)} names of {rows.shape[1]} columns")
        lengths = {len(values) for values in (table.weights, *table.kept.values()) if values is not None}
        if not lengths <= {len(rows)}:
            raise Failure(f"columns of {lengths} values beside {len(rows)} rows")


def _check_error(error: Exception) -> None:
    if not str(error) or len(str(error)) > 5000:
        raise Failure(f"an error without words, or with too many: {str(error)[:300]!r}")


def _fit(rng: Generator, table: Any) -> str:
    """Fit what was read: the core takes it, or refuses it for a reason."""
    if isinstance(table, tuple):
        return "read"
    rows = getattr(table, "rows", table)
    # A header may claim a million columns, which a fit takes, but not in a moment.
    if rows.shape[1] > 1 << 14:
        return "read"
    is_sparse = not isinstance(rows, np.ndarray)
    likelihoods = [sb.Poisson(), sb.Multinomial(), sb.Bernoulli()] if is_sparse else [sb.Gaussian(), sb.Poisson()]
    model: Any = sb.Mixture(likelihood=likelihoods[rng.integers(len(likelihoods))])
    if rng.random() < 0.3:
        model = sb.TopicModel(sb.LatentDirichlet(2))
    missing = "error" if rng.random() < 0.8 else "marginalize"
    weights = table.weights if isinstance(table, datafiles.DataFile) else None
    try:
        found = sb.fit(
            model, table, sb.Full(max_passes=1), threads=1, progress=False, missing=missing, sample_weight=weights
        )
    except (*_ALLOWED, sb.NumericalError) as error:
        _check_error(error)
        return "read and refused"
    if not np.isfinite(found.elbo):
        raise Failure(f"a fit that is not finite: {found!r}")
    return "fitted"


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="stickbreak-fuzz-")
