"""Docword files: content is read exactly, and errors state the line."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import sparse

import stickbreak as sb

COUNTS = np.array([[4, 0, 1], [0, 0, 0], [0, 5, 0]])


def docword(counts: np.ndarray) -> str:
    rows, columns = np.nonzero(counts)
    lines = [f"{row + 1} {column + 1} {counts[row, column]}\n" for row, column in zip(rows, columns, strict=True)]
    return "".join([f"{counts.shape[0]}\n{counts.shape[1]}\n{len(lines)}\n", *lines])


def written(tmp_path: Path, content: str | bytes, name: str = "docword.txt") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@given(counts=arrays.arrays(np.int64, st.tuples(st.integers(0, 5), st.integers(0, 4)), elements=st.integers(0, 9)))
def test_counts_come_back(tmp_path_factory: pytest.TempPathFactory, counts: np.ndarray) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    plain = sb.read_docword(written(folder, docword(counts)))
    packed = sb.read_docword(str(written(folder, gzip.compress(docword(counts).encode()), "docword.txt.gz")))
    for found in (plain, packed):
        assert sparse.issparse(found)
        assert found.format == "csr"
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found.toarray(), counts)


def test_lines_may_be_blank_indented_and_in_any_order(tmp_path: Path) -> None:
    path = written(tmp_path, "3\r\n3 \n4\n3 2 4\n\n  1\t3 1\n1 1 4\n3 2 1\n\n")
    np.testing.assert_array_equal(sb.read_docword(path).toarray(), COUNTS)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "line 1: '' where the number of documents is expected"),
        ("3\n", "line 2: '' where the number of words is expected"),
        ("3\n3\nx\n", "line 3: 'x' where the number of lines that follow is expected"),
        ("-3\n3\n0\n", "line 1: '-3' where"),
        ("99999999999\n3\n0\n", "line 1: '99999999999' where"),
        ("3\n3\n2\n1 1 4\n", "line 3 gives the number of lines that follow as 2, but it is 1: is it cut off?"),
        ("3\n3\n0\n1 1 4\n", "line 3 gives the number of lines that follow as 0, but it is 1"),
        ("3\n3\n2\n1 1 4\n1 2\n", "line 5: '1 2' where document, word and count are expected"),
        ("3\n3\n2\n\n1 1 4\n1 2 x\n", "line 6: '1 2 x' where"),
        ("3\n3\n1\n1 1 0.5\n", "line 4: '1 1 0.5' where"),
        ("3\n3\n1\n1 1 4 7\n", "line 4: '1 1 4 7' where"),
        ("3\n3\n1\n1 1 99999999999999999999\n", "line 4: '1 1 99999999999999999999' where"),
        ("3\n3\n2\n1 1 4\n\n4 1 4\n", "line 6: document 4, which must be from 1 to 3"),
        ("3\n3\n1\n0 1 4\n", "line 4: document 0, which must be from 1 to 3"),
        ("3\n3\n1\n1 4 4\n", "line 4: word 4, which must be from 1 to 3"),
        ("3\n3\n1\n1 1 -4\n", "line 4: count -4, which must be from 1 to"),
        ("3\n3\n1\n1 1 0\n", "line 4: count 0, which must be from 1 to"),
        ("3\n3\n1\n1 1 4\n1 2 4\n", "line 3 gives the number of lines that follow as 1, but it is 2"),
        ("3\n3\n1\n1 1 \u0664\n", "line 4: '1 1 \u0664' where"),
        (b"\xff3\n", "line 1: not text where"),
        (b"3\n3\n2\n1 1 4\n1 \x80 4\n", "line 5: not text where"),
        (b"3\n\x00\x01\n", "line 2: not text where"),
        ("3\n3\n0\n".encode("utf-16"), "line 1: text in UTF-16"),
        (gzip.compress(b"3\n3\n0\n", mtime=0), "line 1: not text but gzip, whose name must end in .gz"),
        (f"3\n3\n2\n2 3 {2**53}\n2 3 {2**53}\n", f"the lines of document 2 and word 3 add up to {2**54}"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str | bytes, said: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(sb.SourceError) as caught:
        sb.read_docword(path)
    assert str(caught.value).startswith(f"{path}: {said}")


def test_the_mark_of_editors_at_the_beginning_is_left_out(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + docword(COUNTS).encode())
    np.testing.assert_array_equal(sb.read_docword(path).toarray(), COUNTS)


def test_only_a_short_file_is_said_to_be_cut_off(tmp_path: Path) -> None:
    with pytest.raises(sb.SourceError) as caught:
        sb.read_docword(written(tmp_path, "3\n3\n0\n1 1 4\n"))
    assert "cut off" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    whole = gzip.compress(docword(COUNTS).encode())
    for path in (
        tmp_path / "missing.txt",
        tmp_path,
        written(tmp_path, whole[:-6], "cut.gz"),
        written(tmp_path, b"3\n3\n0\n", "plain.gz"),
        written(tmp_path, whole[:20] + b"\x00\x01" + whole[22:], "damaged.gz"),
        "a\0b",
        "",
    ):
        with pytest.raises(sb.SourceError, match="cannot be read"):
            sb.read_docword(path)
    with pytest.raises(sb.InvalidType) as caught:
        sb.read_docword(3)  # type: ignore[arg-type]
    assert caught.value.argument == "path"
