"""Data files of every format, good ones and bad ones: names that end as the format does, and bytes."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from scipy import sparse

from fuzzing import mutations

Generator = np.random.Generator
# Numbers that a header may claim.
_SIZES = [0, 1, 2, 5, 39, 40, 41, 1000, 2**20, 2**24, 2**28, 2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63, 2**64, -1]
_FIELDS = ["", " ", "NA", "N/A", "nan", "NaN", "NULL", "null", "inf", "-Infinity", "1e400", "-1e-400", "1_000", "0x1p3"]
_FIELDS += ["1,5", "1;5", "1.5.2", "+-1", "1e", "--", "١", "½", "x", "true", '"1"', '"1', '1"', '""', '"a\nb"', "'1'"]
_FIELDS += ["\0", "\ufeff1", "é", "1 ", "\t", "9" * 400, "0." + "1" * 2000, "a" * 70_000, "#1", "1e308", "5e-324", "-0"]
_NAMES = [
    "a",
    "b",
    "c",
    "a",
    "",
    "1",
    "2-3",
    "id",
    "weight",
    "count",
    "é",
    'q"uote',
    "co,mma",
    " space ",
    "nan",
    "x" * 300,
]


def table(rng: Generator, suffix: str) -> bytes:
    """Return the content of a file of this format, bad more often than good."""
    plain = suffix.removesuffix(".gz") if suffix != ".gz" else ".docword"
    made = _MAKERS[plain]
    content = made[rng.integers(len(made))](rng)
    if rng.random() < 0.25:
        content = mutations.mutated(rng, content, (*mutations.ALL, _spliced(made)))
    if suffix.endswith(".gz"):
        content = _compressed(rng, content)
    return content


def _spliced(made: list[Callable[[Generator], bytes]]) -> mutations.Mutation:
    return lambda rng, content: mutations.splice(rng, content, made[rng.integers(len(made))](rng) or b"\0")


def _compressed(rng: Generator, content: bytes) -> bytes:
    if rng.random() < 0.02:
        # Millions of one character in some kilobytes.
        content = content[: rng.integers(len(content) + 1)] + rng.choice([b"0", b"\0", b"1,", b" ", b"\n"]) * 1_000_000
    packed = gzip.compress(content, compresslevel=1)
    choice = rng.random()
    if choice < 0.6:
        return packed
    if choice < 0.7:
        return content
    if choice < 0.75:
        return zlib.compress(content)
    if choice < 0.85:
        return packed + gzip.compress(content)
    return mutations.mutated(rng, packed)


# --- text ---


def _rows(rng: Generator, *, whole: bool = False) -> np.ndarray[Any, Any]:
    n, d = int(rng.integers(1, 41)), int(rng.integers(1, 6))
    return rng.poisson(1.0, size=(n, d)).astype(float) if whole else rng.normal(size=(n, d))


def _text(rng: Generator, delimiter: str | None = None) -> bytes:
    rows = _rows(rng, whole=bool(rng.random() < 0.3))
    delimiter = delimiter or str(rng.choice([",", ",", ";", "\t", " ", "|"]))
    lines = [[f"{value:g}" for value in row] for row in rows]
    for _ in range(rng.choice([0, 0, 0, 1, 3])):
        line = lines[rng.integers(len(lines))]
        line[rng.integers(len(line))] = _FIELDS[rng.integers(len(_FIELDS))]
    if rng.random() < 0.1:
        line = lines[rng.integers(len(lines))]
        line.append("1") if rng.random() < 0.5 else line.pop()
    if rng.random() < 0.6:
        lines.insert(0, [_NAMES[place] for place in rng.integers(len(_NAMES), size=rows.shape[1])])
    if rng.random() < 0.05:
        lines.insert(int(rng.integers(len(lines) + 1)), [])
    end = str(rng.choice(["\n", "\n", "\n", "\r\n", "\r"]))
    text = end.join(delimiter.join(line) for line in lines) + str(rng.choice(["", end, end * 3, "\x1a"]))
    encodings = ["utf-8"] * 30 + ["utf-8-sig", "utf-16", "latin-1"]
    return text.encode(encodings[rng.integers(len(encodings))], errors="replace")


def _docword(rng: Generator) -> bytes:
    n, v = int(rng.integers(1, 30)), int(rng.integers(1, 20))
    size = int(rng.integers(0, 60))
    triples = np.column_stack([rng.integers(1, n + 1, size), rng.integers(1, v + 1, size), rng.integers(1, 9, size)])
    head = [n, v, size]
    if rng.random() < 0.15:
        head[rng.integers(3)] = _SIZES[rng.integers(len(_SIZES))]
    lines = [str(number) for number in head] + [" ".join(map(str, triple)) for triple in triples.tolist()]
    for _ in range(rng.choice([0, 0, 0, 1])):
        fields = [str(_SIZES[rng.integers(len(_SIZES))]) if rng.random() < 0.5 else _FIELDS[rng.integers(len(_FIELDS))]]
        place = int(rng.integers(len(lines)))
        lines[place] = " ".join([*lines[place].split()[:2], *fields])
    if rng.random() < 0.1:
        lines.insert(int(rng.integers(len(lines) + 1)), "")
    return ("\n".join(lines) + "\n").encode()


def words(rng: Generator) -> bytes:
    """Return a vocabulary, one word a line."""
    lines = [f"word{place}" for place in range(rng.integers(1, 20))]
    for _ in range(rng.choice([0, 1])):
        lines[rng.integers(len(lines))] = _FIELDS[rng.integers(len(_FIELDS))]
    return ("\n".join(lines) + "\n").encode(errors="replace")


# --- arrays ---


def _array(rng: Generator) -> np.ndarray[Any, Any]:
    rows = _rows(rng, whole=bool(rng.random() < 0.5))
    kinds = [
        "<f8",
        "<f4",
        ">f8",
        "<f2",
        "<i8",
        "<i4",
        "|i1",
        "|u1",
        "<u8",
        "|b1",
        "<c16",
        "<U3",
        "|S2",
        "<M8[s]",
        "|V8",
    ]
    if rng.random() < 0.4:
        rows = rows.astype(kinds[rng.integers(len(kinds))])
    shapes = [
        rows,
        rows,
        rows,
        rows,
        rows,
        rows,
        rows.T,
        rows[0],
        rows[:, :, None],
        rows[:0],
        rows[:, :0],
        np.asfortranarray(rows),
    ]
    shaped: np.ndarray[Any, Any] = shapes[rng.integers(len(shapes))]
    return shaped


def _saved(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _npy(rng: Generator) -> bytes:
    if rng.random() < 0.05:
        # Its content is a pickle, which must not be read.
        return _saved(np.array([[{}, []]], dtype=object))
    content = _saved(_array(rng))
    return _with_header(rng, content) if rng.random() < 0.25 else content


def _with_header(rng: Generator, content: bytes) -> bytes:
    """Return an array whose header has another shape, type or order, or is no such dictionary."""
    length = struct.unpack("<H", content[8:10])[0]
    sizes = [_SIZES[place] for place in rng.integers(len(_SIZES), size=rng.integers(0, 4))]
    kinds = ["'<f8'", "'|O'", "'<f16'", "'<f3'", "[('a', '<f8')]", "'V9999999999'", "None", "'<U1000000000'", "3"]
    kind = kinds[rng.integers(len(kinds))] if rng.random() < 0.5 else "'<f8'"
    texts = [f"{{'descr': {kind}, 'fortran_order': {bool(rng.integers(2))}, 'shape': {tuple(sizes)}, }}"] * 4
    texts += ["{}", "[" * 3000, "__import__('os')", "{'descr': '<f8'}", "\0", "{'shape': " + "(" * 200]
    text = texts[rng.integers(len(texts))].encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    version = int(rng.choice([1, 1, 1, 2, 3, 9]))
    size = struct.pack("<H" if version == 1 else "<I", len(text))
    return content[:6] + bytes([version, 0]) + size + text + content[10 + length :]


def _archive(rng: Generator, members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if rng.random() < 0.5 else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def _npz(rng: Generator) -> bytes:
    names = ["rows", "arr_0", "weights", "", "../x", "é", "data", "shape"]
    members = {f"{names[rng.integers(len(names))]}.npy": _npy(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))}
    if rng.random() < 0.1:
        members["readme.txt"] = b"words"
    return _archive(rng, members)


def _sparse(rng: Generator) -> bytes:
    """Return a sparse array whose parts may not fit each other."""
    counts = rng.poisson(0.4, size=(int(rng.integers(1, 13)), int(rng.integers(1, 9))))
    form = str(rng.choice(["csr", "csc", "coo", "bsr", "dia"]))
    if form == "bsr":
        counts = np.repeat(np.repeat(counts, 2, axis=0), 3, axis=1)
    rows = sparse.csr_array(counts)
    if rng.random() < 0.2:
        rows.resize((rows.shape[0], 3000))  # so wide that a fit leaves out columns without a value
    file = io.BytesIO()
    sparse.save_npz(file, rows.asformat(form), compressed=False)
    file.seek(0)
    with np.load(file) as archive:
        parts = {name: archive[name] for name in archive.files}
    for _ in range(rng.choice([0, 1, 1, 2])):
        name = sorted(parts)[rng.integers(len(parts))]
        spoiled = _spoiled(rng, parts[name])
        if spoiled is None:
            del parts[name]
        else:
            parts[name] = spoiled
    return _archive(rng, {f"{name}.npy": _saved(part) for name, part in parts.items()})


def _spoiled(rng: Generator, part: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    choice = rng.integers(9)
    if choice == 0:
        return None
    if choice == 1:
        return part.reshape(-1)[: rng.integers(part.size + 1)]
    if choice == 2:
        return np.array(rng.choice([b"csr", b"csc", b"bsr", b"dok", b"coo", b"xyz", b""]))
    if choice == 3:
        return np.array([[part]] * 2)
    numbers = part.dtype.kind in "iuf"
    if choice == 4 and numbers:
        kinds = ["<f4", "<f8", "<i8", "<i4", "|i1", "<u8", "|b1", "<c8", "<U2"]
        with np.errstate(all="ignore"):
            return part.astype(kinds[rng.integers(len(kinds))])
    if choice == 5 and numbers:
        return np.concatenate([part.reshape(-1), part.reshape(-1)[: rng.integers(1, 9)]])
    if part.size and numbers:
        changed = part.astype(np.float64 if rng.random() < 0.2 else np.int64)
        value = _SIZES[rng.integers(len(_SIZES))]
        values = [value if abs(value) < 2**63 else 2**62, -1, int(rng.integers(-50, 50))]
        changed.reshape(-1)[rng.integers(part.size)] = values[rng.integers(3)]
        return changed
    return part


# --- Parquet ---


def _parquet(rng: Generator) -> bytes:
    n = int(rng.choice([0, 1, 2, 40, 40, 40]))
    columns = [_column(rng, n) for _ in range(rng.choice([0, 1, 2, 2, 3, 3, 5]))]
    names = [f"c{place}" for place in range(len(columns))]
    if rng.random() < 0.15:
        names = [_NAMES[place] for place in rng.integers(len(_NAMES), size=len(columns))]
    file = io.BytesIO()
    compressions = ["snappy", "none", "gzip", "zstd"]
    pyarrow.parquet.write_table(
        pyarrow.Table.from_arrays(columns, names=names),
        file,
        row_group_size=max(1, int(rng.integers(1, 50))),
        compression=compressions[rng.integers(len(compressions))],
        use_dictionary=bool(rng.integers(2)),
        # Some types have no place in the older one.
        version="2.6",
    )
    content = file.getvalue()
    return _with_footer(rng, content) if rng.random() < 0.15 else content


def _column(rng: Generator, n: int) -> Any:
    if rng.random() < 0.75:
        return pyarrow.array(rng.normal(size=n) if rng.random() < 0.7 else rng.poisson(2.0, size=n))
    values: list[Any] = rng.integers(0, 100, size=n).tolist()
    if n and rng.random() < 0.4:
        values[rng.integers(n)] = None
    kinds = _kinds()
    kind = kinds[rng.integers(len(kinds))]
    try:
        return pyarrow.array(values, type=kind)
    except (pyarrow.ArrowException, TypeError, ValueError):
        return pyarrow.array([None if value is None else str(value) for value in values])


@cache
def _kinds() -> list[Any]:
    kinds = [pyarrow.float16(), pyarrow.float32(), pyarrow.int8(), pyarrow.uint64(), pyarrow.bool_(), pyarrow.string()]
    kinds += [pyarrow.timestamp("ns"), pyarrow.date32(), pyarrow.decimal128(38, 10), pyarrow.decimal256(60, 2)]
    kinds += [pyarrow.null(), pyarrow.binary(), pyarrow.duration("s"), pyarrow.time64("us")]
    kinds += [pyarrow.list_(pyarrow.int64()), pyarrow.struct([("a", pyarrow.int64())]), pyarrow.large_string()]
    return [*kinds, pyarrow.dictionary(pyarrow.int8(), pyarrow.string())]


def _with_footer(rng: Generator, content: bytes) -> bytes:
    """Return a file whose footer is changed: it holds names, numbers of rows and the places of columns."""
    length = int.from_bytes(content[-8:-4], "little")
    footer = mutations.flip(rng, content[-8 - length : -8] or b"\0")
    if rng.random() < 0.2:
        length = int(rng.choice([0, 1, length + 1, 2**31 - 1, 2**32 - 1]))
    return content[: -8 - len(footer)] + footer + length.to_bytes(4, "little") + content[-4:]


_MAKERS: dict[str, list[Callable[[Generator], bytes]]] = {
    ".csv": [_text],
    ".tsv": [lambda rng: _text(rng, "\t")],
    ".npy": [_npy],
    ".npz": [_npz, _sparse, _sparse],
    ".parquet": [_parquet],
    ".docword": [_docword],
    ".txt": [_docword, words],
    ".json": [lambda rng: json.dumps(_rows(rng).tolist()).encode()],
}
SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".npy", ".npz", ".npz", ".parquet", ".docword", ".txt", ".gz")
