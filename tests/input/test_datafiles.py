"""Data files: content is read exactly, and errors state the line and the column."""

import io
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from pyarrow import parquet
from scipy import sparse

import stickbreak as sb
from stickbreak.io import datafiles

ROWS = np.array([[1.5, -2.0, 1e-300], [0.1, 3.0, 4e17]])


def text(tmp_path: Path, content: str | bytes, name: str = "rows.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(path: Path, error: type[sb.StickbreakError] = sb.SourceError, **options: object) -> str:
    """Return the error message without the file's name, which it must contain."""
    with pytest.raises(error) as caught:
        datafiles.read(path, **options)
    message = str(caught.value)
    if error is sb.SourceError:
        assert message.startswith(f"{path}: ")
    return message.removeprefix(f"{path}: ")


# Content


def test_npy_is_a_memory_map(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    data = datafiles.read(tmp_path / "rows.npy")
    assert isinstance(data.rows, np.memmap)
    assert data.names is data.weights is None
    np.testing.assert_array_equal(data.rows, ROWS)


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<f2", "<i2", "u1", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_keeps_type_and_order(tmp_path: Path, dtype: str, order: str) -> None:
    rows = np.array([[0, 1], [1, 1], [0, 0]], dtype=dtype, order=order)
    np.save(tmp_path / "rows.NPY.npy", rows)
    found = datafiles.read(tmp_path / "rows.NPY.npy").rows
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, rows)


def test_one_axis_is_one_column(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.arange(3.0))
    assert datafiles.read(tmp_path / "rows.npy").rows.tolist() == [[0.0], [1.0], [2.0]]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Callable[..., None]) -> None:
    save(tmp_path / "one.npz", rows=ROWS)
    save(tmp_path / "two.npz", rows=ROWS, other=ROWS[:1])
    np.testing.assert_array_equal(datafiles.read(tmp_path / "one.npz").rows, ROWS)
    np.testing.assert_array_equal(datafiles.read(tmp_path / "two.npz", key="other").rows, ROWS[:1])


@given(
    rows=arrays.arrays(
        np.float64,
        arrays.array_shapes(min_dims=2, max_dims=2, max_side=6),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    delimiter=st.sampled_from([",", ";", "\t", " ", "|"]),
    names=st.booleans(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    tail=st.sampled_from(["", "\n", "\n\n  \n"]),
    mark=st.sampled_from(["", "\ufeff"]),
    quote=st.sampled_from(["", '"']),
)
def test_text_holds_what_was_written(
    tmp_path_factory: pytest.TempPathFactory,
    rows: np.ndarray,
    delimiter: str,
    names: bool,
    end: str,
    tail: str,
    mark: str,
    quote: str,
) -> None:
    lines = [delimiter.join(f"{quote}{value!r}{quote}" for value in row) for row in rows.tolist()]
    titles = tuple(f"name,{column}" for column in range(rows.shape[1]))
    if names:
        lines.insert(0, delimiter.join(f'"{title}"' for title in titles))
    content = mark + end.join(lines) + tail.replace("\n", end)
    path = text(tmp_path_factory.mktemp("text"), content)
    # A single column has no delimiter to be found.
    data = datafiles.read(path, delimiter=None if delimiter in ",;\t" and rows.shape[1] > 1 else delimiter)
    assert data.rows.dtype == np.float64
    assert data.rows.tobytes() == rows.tobytes()
    assert data.names == (titles if names else None)


@pytest.mark.parametrize(
    ("content", "names", "rows"),
    [
        ("a\tb;c,d\n1\t2\n", ("a", "b;c,d"), [[1, 2]]),
        ('"a,b";c\n1;2\n', ("a,b", "c"), [[1, 2]]),
        ('"a;b",c\n1,2\n', ("a;b", "c"), [[1, 2]]),
        ('"two\nlines",c\n1,2\n', ("two\nlines", "c"), [[1, 2]]),
        ("\n\n1,2\n3,4", None, [[1, 2], [3, 4]]),
        ("5\n6\n", None, [[5], [6]]),
        (" 1 , +2e1\n", None, [[1, 20]]),
        (",x\n0,5\n", ("", "x"), [[0, 5]]),
        ("größe,höhe\n1,2\n", ("größe", "höhe"), [[1, 2]]),
    ],
)
def test_text_as_people_write_it(tmp_path: Path, content: str, names: tuple[str, ...] | None, rows: list) -> None:
    data = datafiles.read(text(tmp_path, content))
    assert data.names == names
    assert data.rows.tolist() == rows


def test_numbers_as_names(tmp_path: Path) -> None:
    path = text(tmp_path, "0,1\n5,6\n")
    assert datafiles.read(path).rows.tolist() == [[0, 1], [5, 6]]
    data = datafiles.read(path, header=True)
    assert (data.names, data.rows.tolist()) == (("0", "1"), [[5, 6]])


def test_tsv(tmp_path: Path) -> None:
    assert datafiles.read(text(tmp_path, "1\t2\n", "rows.tsv")).rows.tolist() == [[1, 2]]


def write_parquet(path: Path, **columns: object) -> Path:
    parquet.write_table(pyarrow.table(columns), path, row_group_size=3)
    return path


def test_parquet(tmp_path: Path) -> None:
    columns = {
        "whole": pyarrow.array([1, 2, 3, 4, 5], pyarrow.int8()),
        "single": pyarrow.array([0.1, 0.2, 0.3, 0.4, 0.5], pyarrow.float32()),
        "flag": pyarrow.array([True, False, True, False, True]),
        "money": pyarrow.array([1, 2, 3, 4, 5], pyarrow.int8()).cast(pyarrow.decimal128(20, 2)),
        "city": ["Rome", None, "Oslo", "Bern", "Wien"],
    }
    path = write_parquet(tmp_path / "rows.parquet", **columns)
    with pytest.warns(sb.ConversionWarning) as caught:
        data = datafiles.read(path, columns=["1-4"])
    said = [str(warning.message).split(" converted to ")[0] for warning in caught]
    assert said == ["integers are", "booleans are", "decimals are"]
    assert data.names == ("whole", "single", "flag", "money")
    expected = [[n, float(np.float32(n / 10)), n % 2, n] for n in range(1, 6)]
    np.testing.assert_array_equal(data.rows, expected)
    assert data.rows.dtype == np.float64
    assert datafiles.read(path, columns=["single"]).rows.dtype == np.float32
    # Weights become float64.
    weighted = datafiles.read(path, columns=["single"], weight_column="whole")
    assert weighted.weights is not None
    assert weighted.weights.tolist() == [1, 2, 3, 4, 5]


# Columns


@pytest.mark.parametrize(
    ("columns", "chosen"),
    [
        (["c", "a"], [2, 0]),
        (["2"], [1]),
        (["2-3"], [1, 2]),
        (["1-2", "c"], [0, 1, 2]),
        (("1", "3"), [0, 2]),
        ([" b "], [1]),
    ],
)
def test_columns(tmp_path: Path, columns: list[str], chosen: list[int]) -> None:
    rows = np.arange(12.0).reshape(4, 3)
    np.savetxt(tmp_path / "rows.csv", rows, delimiter=",", header="a,b,c", comments="")
    parquet.write_table(
        pyarrow.table({name: rows[:, place] for place, name in enumerate("abc")}), tmp_path / "rows.parquet"
    )
    for name in ("rows.csv", "rows.parquet"):
        data = datafiles.read(tmp_path / name, columns=columns)
        np.testing.assert_array_equal(data.rows, rows[:, chosen])
        assert data.names == tuple("abc"[column] for column in chosen)


def test_columns_side_by_side_stay_mapped(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    data = datafiles.read(tmp_path / "rows.npy", columns=["2-3"])
    assert isinstance(data.rows, np.memmap)
    assert data.rows.base is not None
    np.testing.assert_array_equal(data.rows, ROWS[:, 1:])
    np.testing.assert_array_equal(datafiles.read(tmp_path / "rows.npy", columns=["3", "1"]).rows, ROWS[:, [2, 0]])


def test_what_is_not_chosen_need_not_be_a_number(tmp_path: Path) -> None:
    path = text(tmp_path, "n,city,w\n1,Rome,2\n3,,4\n")
    assert datafiles.read(path, columns=["n", "w"]).rows.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("weights", ["w", "2"])
def test_weight_column(tmp_path: Path, weights: str) -> None:
    path = text(tmp_path, "a,w,b\n1,0.5,2\n3,2,4\n")
    data = datafiles.read(path, weight_column=weights)
    assert data.rows.tolist() == [[1, 2], [3, 4]]
    assert data.names == ("a", "b")
    assert data.weights is not None
    assert data.weights.tolist() == [0.5, 2]
    assert datafiles.read(path, columns=["b"], weight_column=weights).rows.tolist() == [[2], [4]]


@pytest.mark.parametrize(
    ("options", "argument", "words"),
    [
        ({"columns": ["widht"]}, "columns", "did you mean 'width'?"),
        ({"columns": ["0"]}, "columns", "a position from 1 to 2"),
        ({"columns": ["2-3"]}, "columns", "'2-3'"),
        ({"columns": ["2-1"]}, "columns", "'2-1'"),
        ({"columns": []}, "columns", "empty"),
        ({"columns": ["same"], "header": True}, "columns", "several"),
        ({"weight_column": "x"}, "weight_column", "'x'"),
        ({"weight_column": "1-2"}, "weight_column", "one column"),
        ({"delimiter": ", "}, "delimiter", "', '"),
        ({"delimiter": "1"}, "delimiter", "'1'"),
        ({"delimiter": "."}, "delimiter", "'.'"),
    ],
)
def test_bad_arguments(tmp_path: Path, options: dict[str, object], argument: str, words: str) -> None:
    names = "same,same" if options.get("columns") == ["same"] else "height,width"
    path = text(tmp_path, f"{names}\n1,2\n")
    with pytest.raises(sb.InvalidArgument) as caught:
        datafiles.read(path, **options)
    assert caught.value.argument == argument
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("options", "argument"),
    [({"columns": "a"}, "columns"), ({"columns": [1]}, "columns"), ({"delimiter": 1}, "delimiter")],
)
def test_bad_types(tmp_path: Path, options: dict[str, object], argument: str) -> None:
    with pytest.raises(sb.InvalidType) as caught:
        datafiles.read(text(tmp_path, "a,b\n1,2\n"), **options)
    assert caught.value.argument == argument


def test_only_column_cannot_be_the_weights(tmp_path: Path) -> None:
    assert "beside" in refused(text(tmp_path, "1\n2\n"), sb.InvalidArgument, weight_column="1")


def test_columns_without_names(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    assert "have no names" in refused(tmp_path / "rows.npy", sb.InvalidArgument, columns=["height"])


def test_key(tmp_path: Path) -> None:
    np.savez(tmp_path / "rows.npz", train=ROWS, test=ROWS)
    with pytest.raises(sb.InvalidArgument) as caught:
        datafiles.read(tmp_path / "rows.npz")
    assert caught.value.argument == "key"
    assert "train, test" in str(caught.value)
    assert "did you mean 'train'?" in refused(tmp_path / "rows.npz", sb.InvalidArgument, key="trian")


def test_a_sparse_array_says_where_it_can_go(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "rows.npz", sparse.csr_array(ROWS))
    assert "scipy.sparse.load_npz" in refused(tmp_path / "rows.npz")


# Errors in files


def test_an_empty_name_is_no_folder() -> None:
    with pytest.raises(sb.InvalidArgument, match=r"but it is ''$"):
        datafiles.read("")


@pytest.mark.parametrize("suffix", datafiles.SUFFIXES)
def test_no_file(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"rows{suffix}"
    assert refused(path) == "there is no such file"
    path.touch()
    assert refused(path) == "the file is empty"
    path.unlink()
    path.mkdir()
    assert refused(path) == "not a file"


@pytest.mark.parametrize("suffix", datafiles.SUFFIXES)
@pytest.mark.parametrize(
    "content", [b"\x00", b"PK\x03\x04", b"\x93NUMPY\x01\x00", b"PAR1PAR1", b"\xff\xfe1\x00", b"\x80" * 300]
)
def test_foreign_content(tmp_path: Path, suffix: str, content: bytes) -> None:
    refused(text(tmp_path, content, f"rows{suffix}"))


def test_truncated(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.ones((50, 3)))
    np.savez(tmp_path / "rows.npz", np.ones((50, 3)))
    write_parquet(tmp_path / "rows.parquet", x=np.ones(50))
    for path in list(tmp_path.iterdir()):
        whole = path.read_bytes()
        for length in range(1, len(whole), 13):
            path.write_bytes(whole[:length])
            refused(path)


@pytest.mark.filterwarnings("ignore::stickbreak.ConversionWarning")
@pytest.mark.parametrize("seed", range(3))
def test_flipped_bits(tmp_path: Path, seed: int) -> None:
    """A damaged file is refused, or read with its changed content."""
    np.save(tmp_path / "rows.npy", np.ones((5, 3)))
    np.savez(tmp_path / "rows.npz", np.ones((5, 3)))
    write_parquet(tmp_path / "rows.parquet", x=np.ones(50), y=np.arange(50))
    text(tmp_path, "a,b\n1,2\n3,4\n")
    rng = np.random.default_rng(seed)
    n_refused = 0
    for path in list(tmp_path.iterdir()):
        whole = path.read_bytes()
        for _ in range(60):
            damaged = bytearray(whole)
            damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
            path.write_bytes(damaged)
            try:
                assert datafiles.read(path).rows.ndim == 2
            except (sb.SourceError, MemoryError):
                n_refused += 1
    assert n_refused > 0


@pytest.mark.parametrize(
    "array",
    [
        np.array([1, "a", None], dtype=object),
        np.array([["a"]]),
        np.array([[1j]]),
        np.zeros(2, dtype="f8,f8"),
        np.array(["2020"], "M8"),
    ],
    ids=["objects", "words", "complex", "structure", "dates"],
)
def test_arrays_of_other_things(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "rows.npy", array)
    np.savez(tmp_path / "rows.npz", array)
    refused(tmp_path / "rows.npy")
    refused(tmp_path / "rows.npz")


@pytest.mark.parametrize("shape", [(), (0, 2), (2, 0), (2, 2, 2)])
def test_arrays_that_are_no_tables(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "rows.npy", np.zeros(shape))
    assert str(shape) in refused(tmp_path / "rows.npy")


@pytest.mark.filterwarnings("always")  # as an error it would be taken for damage
@pytest.mark.parametrize("rows", [2**50, 2**61, 2**62, 2**63])
def test_arrays_that_are_too_large(tmp_path: Path, rows: int, recwarn: pytest.WarningsRecorder) -> None:
    """A shape beyond memory or beyond any integer is an error about the file, without an earlier warning."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (rows, 8)})
    content = header.getvalue() + bytes(64)
    refused(text(tmp_path, content, "rows.npy"))
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        archive.writestr("a.npy", content)
    message = refused(tmp_path / "rows.npz")
    assert rows > 2**50 or message == "there is not enough memory for it"
    assert not recwarn.list


def test_no_code_is_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (tmp_path / "sprung").touch, ()

    np.save(tmp_path / "rows.npy", np.array([Trap()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "rows.npz", np.array([Trap()], dtype=object))
    refused(tmp_path / "rows.npy")
    refused(tmp_path / "rows.npz")
    assert not (tmp_path / "sprung").exists()


def test_empty_archive(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "rows.npz", "w"):
        pass
    assert refused(tmp_path / "rows.npz") == "there is no array in it"
    with zipfile.ZipFile(tmp_path / "rows.npz", "w") as archive:
        archive.writestr("rows.npy", "no array")
    refused(tmp_path / "rows.npz")


MISSING = "leave such rows out, or use --missing marginalize and a likelihood such as diagonal-gaussian"
LATIN = "; perhaps it is Latin-1: save it as UTF-8, or convert it by iconv -f LATIN1 -t UTF-8"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1,2\n3,x\n", "line 2, column 2: 'x' is not a number"),
        ("a,b\r\n1,2\r\n\r\n\r\n3,4", "line 3: blank, but more lines follow"),
        ("a,b\n1,2\n3\n", "line 3: 1 field where the first line has 2 (delimiter ',')"),
        ("1;2\n3;4;5\n", "line 2: 3 fields where the first line has 2 (delimiter ';')"),
        ('1,2\n"3,4"\n', "line 2: 1 field where the first line has 2 (delimiter ',')"),
        ("\ufeffa,b\n1,\n2,3\n", "line 2, column 2 ('b'): an empty field is not a number; " + MISSING),
        ("a,b\n2,3\n1,NA\n", "line 3, column 2 ('b'): 'NA' is not a number; " + MISSING),
        ("a,b\n1,2\nnan,3\n", "line 3, column 1 ('a'): nan is not a finite number"),
        ("\n\n1,2\n3,-inf\n", "line 4, column 2: -inf is not a finite number"),
        ("1,1e999\n", "line 1, column 2: inf is not a finite number"),
        ("1,2\n1_0,2\n", "line 2, column 1: '1_0' is not a number"),
        ("1,2\n0x1,2\n", "line 2, column 1: '0x1' is not a number"),
        ("1,2\n\u0663,2\n", "line 2, column 1: '\u0663' is not a number"),
        ("a;b\n1,5;2\n", "line 2, column 1 ('a'): '1,5' is not a number; decimals need a point"),
        ("1,2\n3,4\n" + "9" * 10 + "x" * 90 + ",1", f"line 3, column 1: '{'9' * 10 + 'x' * 30}...' is not a number"),
        ("a,b\n", "there are names in the first line, but no rows"),
        (" \n\n\r\n", "there are only blank lines in the file"),
        ('1,2\n"3,4\n', "line 2: unexpected end of data"),
        ('"a,b\n1,2\n', "line 2: unexpected end of data"),
        (b"a,b\n1,2\n3,\xe9\n", "line 3: not text in UTF-8" + LATIN),
        (b"1,2\n" * 5000 + b"\xff", "line 5001: not text in UTF-8" + LATIN),
        (b"1,2\n3,\x00\n", "line 2, column 2: '\\x00' is not a number"),
    ],
)
def test_malformed_text(tmp_path: Path, content: str | bytes, message: str) -> None:
    assert refused(text(tmp_path, content)) == message


@pytest.mark.parametrize("content", ["1 2 3\n4 5 6\n", "a b c\n1 2 3\n", "1|2\n3|4\n", "1 2 3\n"])
def test_other_delimiters_are_to_be_said(tmp_path: Path, content: str) -> None:
    assert refused(text(tmp_path, content)).endswith("separates the fields, say which (--delimiter)")


@pytest.mark.parametrize("content", ["1,a\n2,3\n", "id,2019,2020\n1,2,3\n", "1,,2\n3,4,5\n"])
def test_first_line_of_names_or_not(tmp_path: Path, content: str) -> None:
    message = refused(text(tmp_path, content))
    assert message.startswith("line 1, column ")
    assert "(header)" in message
    assert datafiles.read(text(tmp_path, content), header=True).names is not None
    assert "is not a number" in refused(text(tmp_path, content), header=False)


def test_column_is_named_by_its_place_in_the_file(tmp_path: Path) -> None:
    path = text(tmp_path, "n,city,w\n1,Rome,2\n3,Oslo,x\n5,Bern,inf\n")
    assert refused(path, columns=["w", "n"]) == "line 3, column 3 ('w'): 'x' is not a number"
    path = text(tmp_path, "n,city,w\n1,Rome,2\n5,Bern,inf\n")
    assert refused(path, columns=["w", "n"]) == "line 3, column 3 ('w'): inf is not a finite number"


def test_malformed_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_parquet(path, x=[1.0, 2.0, 3.0, 4.0, None], y=[1, 2, 3, 4, 5])
    assert refused(path) == "row 4 (counted from 0), column 1 ('x'): the value is missing"
    write_parquet(path, x=[1.0], city=["Rome"])
    assert refused(path).startswith("column 2 ('city') holds values of type string")
    write_parquet(path, x=pyarrow.array([], pyarrow.float64()))
    assert refused(path) == "has no rows"
    parquet.write_table(pyarrow.table([[1], [2]], names=["x", "x"]), path)
    assert refused(path) == "several columns have the same name"
    parquet.write_table(pyarrow.table({}), path)
    assert refused(path) == "has no columns"


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_parquet(tmp_path / "rows.parquet", x=[1.0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(sb.NotSupported, match=r'pip install "stickbreak\[parquet\]"'):
        datafiles.read(path)


@pytest.mark.parametrize("path", [None, 3, io.BytesIO()])
def test_no_path(path: object) -> None:
    with pytest.raises(sb.InvalidType) as caught:
        datafiles.read(path)
    assert caught.value.argument == "path"


@pytest.mark.parametrize("name", ["rows", "rows.xlsx", ".csv", "rows.csv.bz2"])
def test_unknown_format(tmp_path: Path, name: str) -> None:
    path = text(tmp_path, "1,2\n", name)
    with pytest.raises(sb.InvalidArgument) as caught:
        datafiles.read(path)
    assert caught.value.argument == "path"
    assert ".parquet" in str(caught.value)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
@pytest.mark.parametrize("suffix", datafiles.SUFFIXES)
def test_unreadable(tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that the system refuses to open, such as a link to itself, which even root cannot open."""
    path = tmp_path / f"rows{suffix}"
    path.symlink_to(path)
    refused(path)


@pytest.mark.parametrize("suffix", datafiles.SUFFIXES)
def test_locked(suffix: str, lock: Callable[[str], None]) -> None:
    path = Path(f"rows{suffix}")
    {".npy": np.save, ".npz": np.savez}.get(suffix, lambda *_: path.write_text("1,2"))(path, ROWS)
    lock(path.name)
    assert refused(path) == "cannot be read: Permission denied"
