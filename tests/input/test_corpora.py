"""Corpora in files of several kinds."""

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import stickbreak as sb
from stickbreak.io.corpora import read_corpus, read_vocabulary

COUNTS = np.array([[4, 0, 1], [0, 5, 0]])


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array, sparse.csr_matrix])
def test_sparse_arrays_of_scipy(tmp_path: Path, form: type) -> None:
    sparse.save_npz(tmp_path / "counts.npz", form(COUNTS))
    found = read_corpus(tmp_path / "counts.npz").rows
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), COUNTS)


def test_tables(tmp_path: Path) -> None:
    np.savez(tmp_path / "counts.npz", counts=COUNTS)
    (tmp_path / "counts.csv").write_text("tree,leaf,sea\n4,0,1\n0,5,0\n")
    for name, words in (("counts.npz", None), ("counts.csv", ("tree", "leaf", "sea"))):
        found = read_corpus(tmp_path / name)
        np.testing.assert_array_equal(found.rows, COUNTS)
        assert found.names == words


def test_an_archive_of_several_arrays_is_no_corpus(tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", one=COUNTS, other=COUNTS)
    with pytest.raises(sb.InvalidArgument, match="one array") as caught:
        read_corpus(tmp_path / "two.npz", "corpus")
    assert caught.value.argument == "corpus"


def test_damaged_sparse_arrays(tmp_path: Path) -> None:
    path = tmp_path / "counts.npz"
    sparse.save_npz(path, sparse.csr_array(COUNTS))
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["indptr.npy"] = parts["indptr.npy"][:-8]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(sb.SourceError, match="not a sparse array"):
        read_corpus(path)
    path.write_bytes(b"not an archive")
    with pytest.raises(sb.SourceError):
        read_corpus(path)


def test_other_names_are_refused() -> None:
    with pytest.raises(sb.InvalidArgument) as caught:
        read_corpus("words.docx")
    assert caught.value.argument == "path"


def test_vocabularies(tmp_path: Path) -> None:
    path = tmp_path / "vocab.txt"
    path.write_bytes("\ufeffZürich\r\nsea\n".encode())
    assert read_vocabulary(path) == ("Zürich", "sea")
    packed = tmp_path / "words.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_vocabulary(packed) == ("Zürich", "sea")
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(sb.SourceError, match="cannot be read"):
        read_vocabulary(packed)
    path.write_bytes(b"\xff\xfe")
    for wrong in (path, tmp_path / "missing.txt"):
        with pytest.raises(sb.SourceError, match="cannot be read"):
            read_vocabulary(wrong)
    for content, said in (("tree\n\nsea\n", "line 2 is blank"), ("tree\nsea\ntree", "line 3: 'tree' already")):
        path.write_text(content)
        with pytest.raises(sb.SourceError, match=said):
            read_vocabulary(path)
