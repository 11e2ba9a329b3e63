"""Text and Parquet files with columns of words: what is read as words, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stickbreak as sb
from stickbreak.io import datafiles
from stickbreak.io.cells import MixedRows
from stickbreak.io.datafiles import TextColumns

FINDS = TextColumns(others="most")


def read(text: str, tmp_path: Path, words: TextColumns | None = FINDS, **options: Any) -> datafiles.DataFile:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    return datafiles.read(path, words=words, **options)


def columns(data: datafiles.DataFile) -> list[list[Any]]:
    assert isinstance(data.rows, MixedRows)
    return [column.tolist() for column in data.rows.columns]


READ: dict[str, tuple[str, TextColumns, dict[str, Any], list[list[Any]]]] = {
    "words": ("a,b\n1,x\n2, y \n", FINDS, {}, [[1, 2], ["x", "y"]]),
    "quotes": ('a,b\n1,"x, y"\n2,"z ""q"""\n', FINDS, {}, [[1, 2], ["x, y", 'z "q"']]),
    "semicolons": ("a;b\n1;x\n2;y\n", FINDS, {}, [[1, 2], ["x", "y"]]),
    "no names": ("1,x\n2,y\n", FINDS, {"header": False}, [[1, 2], ["x", "y"]]),
    "missing": ("a,b\n1,\nNA,y\n", FINDS, {"may_miss": True}, [[1, None], [None, "y"]]),
    "all words": ("a,b\nx,u\ny,v\n", FINDS, {}, [["x", "y"], ["u", "v"]]),
    "flags": ("a,b\nTrue,x\nfalse,y\n", FINDS, {}, [[1, 0], ["x", "y"]]),
    "flags alone": ("a,b\ntrue,3\nFALSE,4\n", TextColumns(), {}, [[1, 0], [3, 4]]),
    "chosen": ("a,b,c\n1,x,u\n2,y,v\n", FINDS, {"columns": ["c", "a"]}, [["u", "v"], [1, 2]]),
    "known words": ("a,b\n1,3\n2,4\n", TextColumns(always=frozenset("a")), {}, [["1", "2"], [3, 4]]),
    "known flags": ("a,b\ntrue,3\nfalse,4\n", TextColumns(always=frozenset("a")), {}, [["true", "false"], [3, 4]]),
    "possible words": ("a,b\n1,3\n2+,4\n", TextColumns(never=frozenset("b"), others="some"), {}, [["1", "2+"], [3, 4]]),
    "unnamed words": ("1,3\n2,4\n", TextColumns(always=frozenset([1])), {"header": False}, [[1, 2], ["3", "4"]]),
}


@pytest.mark.parametrize(("text", "words", "options", "expected"), READ.values(), ids=READ)
def test_words(text: str, words: TextColumns, options: dict[str, Any], expected: list[Any], tmp_path: Path) -> None:
    found = columns(read(text, tmp_path, words, **options))
    assert [[None if value != value else value for value in column] for column in found] == expected


def test_numbers_alone_are_an_array(tmp_path: Path) -> None:
    for words in (FINDS, TextColumns(others="some"), None):
        np.testing.assert_array_equal(read("a,b\n1,3\n2,4\n", tmp_path, words).rows, [[1, 3], [2, 4]])


def test_weights_and_kept_columns_are_apart(tmp_path: Path) -> None:
    found = read("w,a,id\n3,x,7\n4,y,8\n", tmp_path, weight_column="w", keep=["id"])
    assert (columns(found), found.names, found.kept) == ([["x", "y"]], ("a",), {"id": ["7", "8"]})
    np.testing.assert_array_equal(found.weights, [3, 4])
    assert len(found) == 2


REFUSED: dict[str, tuple[str, TextColumns | None, dict[str, Any], str]] = {
    "without words": ("a,b\n1,x\n2,y\n", None, {}, "line 2, column 2 \\('b'\\): 'x' is not a number"),
    "some words": (
        "a,b\n1,x\n2,y\n3q,z\n",
        FINDS,
        {},
        "line 4, column 1 \\('a'\\): '3q' is not a number.*--columns-spec",
    ),
    "words elsewhere": (
        "a,b\nu,1\nv,2\n",
        TextColumns(never=frozenset("a"), others="some"),
        {},
        "line 2, column 1 .*'u' is not",
    ),
    "missing word": ("a,b\n1,x\n2,\n", FINDS, {}, "line 3, column 2 \\('b'\\): an empty field"),
    "missing number": ("a,b\n1,x\n,y\n", FINDS, {}, "line 3, column 1 \\('a'\\): an empty field"),
    "infinity": ("a,b\n1,x\ninf,y\n", FINDS, {}, "line 3, column 1 \\('a'\\): inf is not a finite number"),
    "weights": ("w,a\nq,x\n4,y\n", FINDS, {"weight_column": "w"}, "line 2, column 1 \\('w'\\): 'q' is not a number"),
    "fields": ("a,b\n1,x\n2,y,z\n", FINDS, {}, "line 3: 3 fields where the first line has 2"),
    "blank": ("a,b\n1,x\n\n2,y\n", FINDS, {}, "line 3: blank"),
    "quotes": ('a,b\n1,x\n2,"y\n', FINDS, {}, "line 3: "),
    "names": ("a,1\n1,x\n", FINDS, {}, "line 1, column 1: 'a' is not a number"),
}


@pytest.mark.parametrize(("text", "words", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(text: str, words: Any, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(sb.SourceError, match=message):
        read(text, tmp_path, words, **options)


def test_large_files_are_read_alike(tmp_path: Path) -> None:
    """PyArrow reads large files of numbers, and leaves those with words to the slower reader."""
    n = 60_000
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=n), "b": rng.choice(["x", "y"], size=n)})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    found = datafiles.read(tmp_path / "rows.csv", words=FINDS)
    assert isinstance(found.rows, MixedRows)
    np.testing.assert_array_equal(found.rows.columns[0], frame["a"])
    assert found.rows.columns[1].tolist() == frame["b"].tolist()


def test_parquet(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"a": [1, 2], "b": ["x", None], "c": pd.Categorical(["u", "v"]), "d": [True, False], "w": [1.0, 2.0]}
    )
    frame.to_parquet(tmp_path / "rows.parquet")
    found = datafiles.read(tmp_path / "rows.parquet", words=FINDS, may_miss=True, weight_column="w")
    assert columns(found) == [[1, 2], ["x", None], ["u", "v"], [1, 0]]
    np.testing.assert_array_equal(found.weights, [1, 2])
    with pytest.raises(sb.SourceError, match=r"row 1 .*column 2 \('b'\): the value is missing"):
        datafiles.read(tmp_path / "rows.parquet", words=FINDS)
    with pytest.raises(sb.SourceError, match=r"column 2 \('b'\) holds values of type"):
        datafiles.read(tmp_path / "rows.parquet", may_miss=True)
    frame.assign(e=pd.Timestamp(0)).to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(sb.SourceError, match=r"column 6 \('e'\) holds values of type timestamp"):
        datafiles.read(tmp_path / "rows.parquet", words=FINDS, may_miss=True)
