"""Files that claim more than they hold, and damaged sparse arrays, are refused before memory is spent on them."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import stickbreak as sb
from stickbreak.cli import main
from stickbreak.io import corpora, datafiles


def npz(path: Path, **parts: Any) -> Path:
    np.savez(path, **parts)
    return path


DAMAGED: dict[str, dict[str, Any]] = {
    "csr column": {"format": "csr", "indptr": [0, 2, 2], "indices": [0, 5000], "data": [1.0, 1.0]},
    "csc row": {"format": "csc", "indptr": [0, 1, 2, 2], "indices": [0, 2**30], "data": [1.0, 1.0]},
    "csc falls": {"format": "csc", "indptr": [0, 900_000, 1, 2], "indices": [0, 1], "data": [1.0, 1.0]},
    "bsr column": {"format": "bsr", "indptr": [0, 1, 2], "indices": [0, 99], "data": [[[1.0]], [[1.0]]]},
    "bsr blocks": {"format": "bsr", "indptr": [0, 1], "indices": [-3], "data": [[[1.0, 0.0, 1.0]] * 2]},
    "csr strings": {"format": "csr", "indptr": [0, 1, 1], "indices": [0], "data": ["a"]},
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_sparse_files(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = npz(tmp_path / "bad.npz", shape=[2, 3], **DAMAGED[name])
    with pytest.raises(sb.StickbreakError, match=r"bad\.npz"):
        corpora.read_corpus(path)
    assert main(["topics", str(path), "--n-topics", "2"]) != 0
    assert "Traceback" not in capsys.readouterr().err
    good = tmp_path / "good.npz"
    sparse.save_npz(good, sparse.csr_array(np.eye(6)))
    assert main(["topics", str(good), "--n-topics", "2", "--test", str(path)]) != 0


def test_claimed_rows_of_a_sparse_file(tmp_path: Path) -> None:
    parts = {"format": "coo", "row": np.zeros(1, np.int64), "col": np.zeros(1, np.int64), "data": np.ones(1)}
    path = npz(tmp_path / "claims.npz", shape=[2**30, 4], **parts)
    with pytest.raises(sb.SourceError, match="claims 1073741824 rows"):
        corpora.read_corpus(path)


def test_claimed_documents_and_words(tmp_path: Path) -> None:
    path = tmp_path / "docword.txt"
    for head, what in (("400000000\n3", "400000000 rows"), ("2\n400000000", "400000000 columns")):
        path.write_text(f"{head}\n1\n1 1 2\n")
        with pytest.raises(sb.SourceError, match=f"claims {what}"):
            sb.read_docword(path)
    path.write_text("1000000\n1000000\n1\n1 1 2\n")
    assert sb.read_docword(path).shape == (1_000_000, 1_000_000)


def test_lines_without_an_end(tmp_path: Path) -> None:
    n = (1 << 26) + (1 << 20)
    for name in ("zeros.csv.gz", "docword.txt.gz", "words.txt.gz"):
        with gzip.open(tmp_path / name, "wb", compresslevel=1) as file:
            file.write(b"1,2\n3,4\n" if "csv" in name else b"5\n5\n5\n" if "doc" in name else b"one\ntwo\n")
            file.write(bytes(n))
    with pytest.raises(sb.SourceError, match="a line has more than 67108864 bytes"):
        datafiles.read(tmp_path / "zeros.csv.gz")
    with pytest.raises(sb.SourceError, match="a line has more than 65536 bytes"):
        sb.read_docword(tmp_path / "docword.txt.gz")
    with pytest.raises(sb.SourceError, match="a line has more than 65536 bytes"):
        corpora.read_vocabulary(tmp_path / "words.txt.gz")


def test_long_lines_of_wide_tables_are_read(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text(",".join(["1.25"] * 20_000) + "\n" + ",".join(["2.5"] * 20_000) + "\n")
    assert datafiles.read(path).rows.shape == (2, 20_000)


def test_a_line_of_very_many_fields_needs_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyArrow takes 10 kB a column, and ends the process where memory is short."""
    pyarrow_csv = pytest.importorskip("pyarrow.csv")
    monkeypatch.setattr(pyarrow_csv, "read_csv", lambda *_, **__: pytest.fail("read by PyArrow"))
    with gzip.open(tmp_path / "wide.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"1," * 600_000 + b"1\n")
    assert datafiles.read(tmp_path / "wide.csv.gz").rows.shape == (1, 600_001)
    with gzip.open(tmp_path / "wide.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"q" + b"1," * 600_000 + b"1\n")
    with pytest.raises(sb.SourceError, match="line 1, column 1: 'q1' is not a number"):
        datafiles.read(tmp_path / "wide.csv.gz", header=False)


def damaged(kind: str) -> Any:
    table: Any = sparse.eye_array(3, format=kind.split()[0]).astype(float)
    match kind:
        case "csr list":
            table.data = [1.0, 1.0, 1.0]
        case "dok negative":
            table._dict[(-2, 1)] = 1.0
        case "dok far":
            table._dict[(1, 70)] = 1.0
        case "dok word":
            table._dict["a"] = 1.0
        case "lil far":
            table.rows[1] = [70]
        case "lil word":
            table.rows[1] = ["a"]
        case "lil no list":
            table.rows[1] = None
        case "lil short":
            table.rows = table.rows[:2]
    return table


KINDS = ("csr list", "dok negative", "dok far", "dok word", "lil far", "lil word", "lil no list", "lil short")


@pytest.mark.parametrize("kind", KINDS)
def test_parts_of_sparse_arrays_in_memory(kind: str) -> None:
    with pytest.raises(sb.InvalidArgument, match="parts do not fit together") as caught:
        sb.fit(sb.Mixture(likelihood=sb.Poisson()), damaged(kind))
    assert caught.value.argument == "data"


def test_archive_members_of_unknown_versions(tmp_path: Path) -> None:
    path = npz(tmp_path / "rows.npz", rows=np.ones((4, 2)))
    content = bytearray(path.read_bytes())
    place = content.find(b"PK\x01\x02")
    content[place + 6] = 200  # the version needed to extract
    path.write_bytes(bytes(content))
    for read in (corpora.read_corpus, datafiles.read):
        with pytest.raises(sb.SourceError, match=r"rows\.npz"):
            read(path)
