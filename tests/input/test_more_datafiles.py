"""Common data files: missing values, compressed text, standard input, folders, ids, Parquet output."""

import datetime as dt
import gzip
import io
import json
import sys
import zipfile
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stickbreak as sb
from stickbreak.cli import main
from stickbreak.io import datafiles
from stickbreak.io.datafiles import arrow_text

ROWS = np.random.default_rng(0).normal(size=(40, 3)) + np.repeat([[0.0], [9.0]], 20, axis=0)
TABLE = pd.DataFrame(ROWS, columns=["x", "y", "z"])


def ran(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def fields() -> st.SearchStrategy[str]:
    numbers = st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.integers(-9, 9).map(str)
    odd = st.sampled_from(["", "NA", "nan", "null", "inf", "x", " 1", "1 ", '"2"', "+3", "1_0", "0x1", "1e999", "."])
    return numbers | numbers | numbers | odd


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.integers(1, 3).flatmap(lambda d: st.lists(st.lists(fields(), min_size=d, max_size=d), min_size=1)),
    blank=st.none() | st.integers(0, 5),
    may_miss=st.booleans(),
    header=st.booleans(),
)
def test_arrow_reads_what_the_plain_reader_reads(
    rows: list[list[str]],
    blank: int | None,
    may_miss: bool,
    header: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [",".join(row) for row in rows]
    if header:
        lines.insert(0, ",".join("abc"[: len(rows[0])]))
    if blank is not None:
        lines.insert(min(blank, len(lines)), "")
    path = tmp_path / "rows.csv"
    path.write_text("\n".join(lines) + "\n")
    outcomes: list[Any] = []
    for fast in (True, False):
        monkeypatch.setattr(arrow_text, "_is_large", lambda _, fast=fast: fast)
        try:
            found = datafiles.read(path, header=header, may_miss=may_miss)
            outcomes.append((found.names, found.rows.shape, found.rows.tobytes()))
        except sb.StickbreakError as error:
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("fast", [True, False])
def test_missing_values_of_text(fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_text, "_is_large", lambda _: fast)
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n1,\nNA,2\n3,NaN\nnull,4\n")
    expected = [[1, np.nan], [np.nan, 2], [3, np.nan], [np.nan, 4]]
    np.testing.assert_array_equal(datafiles.read(path, may_miss=True).rows, expected)
    with pytest.raises(sb.SourceError, match=r"line 2, column 2 \('b'\): an empty field is not a number"):
        datafiles.read(path)


def test_missing_values_of_parquet(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": [1.0, None, 3.0], "b": [1, 2, None], "c": [True, None, False]}), path)
    with pytest.warns(sb.ConversionWarning):
        found = datafiles.read(path, may_miss=True).rows
    np.testing.assert_array_equal(found, [[1, 1, 1], [np.nan, 2, np.nan], [3, np.nan, 0]])
    with pytest.raises(sb.SourceError, match="the value is missing"):
        datafiles.read(path)


def test_missing_values_from_fit_to_score(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    holes = TABLE.copy()
    holes.iloc[::7, 1] = np.nan
    paths = [tmp_path / "rows.csv", tmp_path / "rows.parquet"]
    holes.to_csv(paths[0], index=False)
    holes.to_parquet(paths[1])
    call = ["--likelihood", "diagonal-gaussian", "--n-components", 2, "--missing", "marginalize", "--quiet"]
    scores = []
    for path in paths:
        model = path.with_suffix(".safetensors")
        assert ran("fit", path, "--out", model, *call) == 0
        assert ran("score", model, path, "--json") == 0
        scores.append(json.loads(capsys.readouterr().out)["mean_log_predictive"])
        assert ran("predict", model, path) == 0
        capsys.readouterr()
    by_hand = sb.fit(
        sb.Mixture(likelihood=sb.DiagonalGaussian()), holes, n_components=2, missing="marginalize", progress=False
    )
    assert scores == [by_hand.log_predictive(holes).mean()] * 2
    with pytest.warns(sb.Advice):
        streamed = sb.fit(
            sb.Mixture(likelihood=sb.DiagonalGaussian()),
            paths[1],
            sb.Full(max_passes=3),
            n_components=2,
            missing="marginalize",
        )
    assert np.isfinite(streamed.elbo)


def test_compressed_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.gz"
    path.write_bytes(gzip.compress(TABLE.to_csv(index=False).encode()))
    data = datafiles.read(path)
    assert data.names == ("x", "y", "z")
    np.testing.assert_array_equal(data.rows, ROWS)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(sb.SourceError, match=r"rows\.csv\.gz"):
        datafiles.read(path)
    path.write_bytes(b"\x1f\x8b" + b"\x00" * 40)
    with pytest.raises(sb.SourceError, match=r"rows\.csv\.gz"):
        datafiles.read(path)


def give_stdin(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))


def test_standard_input_and_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = TABLE.to_csv(index=False).encode()
    give_stdin(text, monkeypatch)
    assert ran("fit", "-", "--out", "model.safetensors", "--n-components", 2, "--quiet") == 0
    give_stdin(text, monkeypatch)
    assert ran("predict", "model.safetensors", "-", "--out", "-") == 0
    labels = sb.load("model.safetensors").predict(ROWS)
    assert capsys.readouterr().out == "component\n" + "".join(f"{label}\n" for label in labels)
    assert not (tmp_path / "-").exists()
    give_stdin(b"", monkeypatch)
    assert ran("predict", "model.safetensors", "-") == 1
    assert "standard input: nothing came" in capsys.readouterr().err
    give_stdin(b"x,y,z\n1,2,three\n", monkeypatch)
    assert ran("predict", "model.safetensors", "-") == 1
    assert "standard input: line 2, column 3 ('z'): 'three' is not a number" in capsys.readouterr().err


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    for part in range(4):
        # The columns of all files are read in the order of the first.
        order = ["x", "y", "z"] if part % 2 == 0 else ["z", "x", "y"]
        TABLE[order][part * 10 : part * 10 + 10].to_parquet(folder / f"part-{part}.parquet")
    assert datafiles.read(folder, columns=["z", "x"], weight_column="y").names == ("z", "x")
    data = datafiles.read(folder)
    assert data.names == ("x", "y", "z")
    np.testing.assert_array_equal(data.rows, ROWS)
    model = sb.Mixture(likelihood=sb.Gaussian())
    algorithm = sb.Full(max_passes=3, tol=0)
    fit = sb.fit(model, folder, algorithm, n_components=2)
    assert fit.column_names == ("x", "y", "z")
    assert fit.elbo == sb.fit(model, lambda: iter([ROWS]), algorithm, n_components=2).elbo
    TABLE[["x", "z"]].to_parquet(folder / "part-9.parquet")
    with pytest.raises(sb.SourceError, match=r"part-9\.parquet: has the columns"):
        datafiles.read(folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(sb.InvalidArgument, match="a folder without Parquet files"):
        datafiles.read(empty)
    with pytest.raises(sb.SourceError, match="no Parquet file"):
        sb.fit(model, empty)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("out", [".csv", ".parquet", ".json"])
def test_ids_are_kept(suffix: str, out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    named = TABLE.assign(id=[f"no {row}, {row % 3}" for row in range(40)], group=range(40))
    data, model, result = tmp_path / f"rows{suffix}", tmp_path / "model.safetensors", tmp_path / f"out{out}"
    named.to_csv(data, index=False) if suffix == ".csv" else named.to_parquet(data)
    plain = tmp_path / "plain.csv"
    TABLE.to_csv(plain, index=False)
    assert ran("fit", plain, "--out", model, "--n-components", 2, "--quiet") == 0
    fit = sb.load(model)
    for command, name, expected in [
        (["predict", model, data, "--out", result], "component", fit.predict(ROWS)),
        (["score", model, data, "--rows", result], "log_predictive", fit.log_predictive(ROWS)),
    ]:
        # Repeated options are concatenated.
        kept = ["--keep", "id,group"] if suffix == ".csv" else ["--keep", "id", "--keep", "group"]
        assert ran(*command, *kept) == 0, capsys.readouterr().err
        if out == ".json":
            found = json.loads(result.read_text())
            assert found["id"] == named["id"].tolist()
            assert found["components" if name == "component" else name] == expected.tolist()
        else:
            table = pd.read_csv(result, dtype=str) if out == ".csv" else pd.read_parquet(result)
            assert table.columns.tolist() == ["id", "group", name]
            assert table["id"].tolist() == named["id"].tolist()
            assert list(map(int, table["group"])) == list(range(40))
            np.testing.assert_array_equal(table[name].astype(float), expected)


def test_kept_columns_of_other_types_are_text_in_json(tmp_path: Path) -> None:
    data, model, result = (tmp_path / name for name in ("data.parquet", "m.safetensors", "out.json"))
    kept = {
        "day": [dt.date(2020, 1, 1 + row % 28) for row in range(40)],
        "sum": [Decimal(row) / 4 for row in range(40)],
        "code": [bytes([row]) for row in range(40)],
        "at": pd.date_range("2020", periods=40),
    }
    TABLE.assign(**kept).to_parquet(data)
    columns = ",".join(TABLE.columns)
    assert ran("fit", data, "--out", model, "--n-components", 2, "--quiet", "--columns", columns) == 0
    options = ["--columns", columns, "--keep", ",".join(kept), "--out", result]
    assert ran("predict", model, data, *options) == 0
    found = json.loads(result.read_text())
    assert found["day"][1] == "2020-01-02"
    assert found["sum"][3] == "0.75"
    assert found["at"][1].startswith("2020-01-02")


def test_folders_that_are_read_get_no_more_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, model = tmp_path / "parts", tmp_path / "model.safetensors"
    folder.mkdir()
    TABLE.to_parquet(folder / "part.parquet")
    before = (folder / "part.parquet").read_bytes()
    assert ran("fit", folder, "--out", model, "--n-components", 2, "--quiet") == 0
    for name in ("part.parquet", "new.parquet"):
        for command in (["predict", model, folder, "--out"], ["score", model, folder, "--rows"]):
            assert ran(*command, folder / name) != 0
            assert "in a folder which is read" in capsys.readouterr().err
    assert [file.name for file in folder.iterdir()] == ["part.parquet"]
    assert (folder / "part.parquet").read_bytes() == before
    assert ran("predict", model, folder, "--out", folder / "labels.csv") == 0


def test_what_cannot_be_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "rows.csv", tmp_path / "model.safetensors"
    TABLE.to_csv(data, index=False)
    np.save(tmp_path / "rows.npy", ROWS)
    assert ran("fit", data, "--out", model, "--n-components", 2, "--quiet") == 0
    for arguments, message in [
        ((data, "--keep", "name"), "--keep must be a position from 1 to 3 or the name of a column"),
        ((data, "--keep", "1-3"), "--keep"),
        ((data, "--columns", "x,y,1"), "--columns must be each column once, but it is column 1 ('x') twice"),
        ((tmp_path / "rows.npy", "--keep", "1"), "--keep"),
        ((data, "--keep", "x", "--out", tmp_path / "labels.npy"), "--out"),
    ]:
        assert ran("predict", model, *arguments) != 0
        assert message in capsys.readouterr().err
    assert ran("score", model, data, "--keep", "x") == 2
    assert "--keep needs --rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("component", ["predict"]),
        ("components", ["predict", "--json"]),
        ("component_1", ["predict", "--proba"]),
        ("log_predictive", ["score", "--rows", "out.parquet"]),
    ],
)
def test_kept_columns_replace_no_result(
    name: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("rows.csv", index=False)
    TABLE.assign(**{name: range(40)}).to_csv("named.csv", index=False)
    assert ran("fit", "rows.csv", "--out", "m", "--n-components", 2, "--moves", "none", "--quiet") == 0
    kind, *options = command
    assert ran(kind, "m", "named.csv", "--keep", name, *options) == 2
    allowed = f"--keep must be columns with other names than those of the result, but it is {name!r}"
    assert allowed in capsys.readouterr().err
    assert not Path("out.parquet").exists()


def test_parquet_out(tmp_path: Path) -> None:
    data, model, out = tmp_path / "rows.csv", tmp_path / "model.safetensors", tmp_path / "out.parquet"
    TABLE.to_csv(data, index=False)
    assert ran("fit", data, "--out", model, "--n-components", 2, "--quiet") == 0
    fit = sb.load(model)
    assert ran("generate", model, "-n", 5, "--seed", 1, "--out", out) == 0
    assert pd.read_parquet(out).columns.tolist() == ["x", "y", "z"]
    np.testing.assert_array_equal(pd.read_parquet(out), fit.sample(5, seed=1))
    assert ran("predict", model, data, "--proba", "--out", out) == 0
    np.testing.assert_array_equal(pd.read_parquet(out), fit.predict_proba(ROWS))


@pytest.mark.parametrize("fast", [True, False])
def test_large_tables_come_back_to_the_bit(fast: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stickbreak.cli import output

    monkeypatch.setattr(output, "_LEAST_FOR_ARROW", 1 if fast else 1 << 40)
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(size=500), rng.normal(size=500) * 1e300, [0.0, -0.0, 5e-324, 1.0, 0.1]])
    table = np.column_stack([values, values[::-1]])
    ids = {"id": [f'"{number}", no' for number in range(len(values))]}
    output.write_table(str(tmp_path / "out.csv"), ["a", "b,c"], table, "key", ids)
    data = datafiles.read(tmp_path / "out.csv", keep=["id"])
    assert (data.names, data.kept) == (("a", "b,c"), ids)
    assert data.rows.tobytes() == table.tobytes()
    labels = rng.integers(5, size=1000)
    output.write_table(str(tmp_path / "labels.csv"), ["component"], labels, "key")
    assert (tmp_path / "labels.csv").read_text() == "component\n" + "".join(f"{label}\n" for label in labels)


LONG = "a" * 200_000


@pytest.mark.parametrize(
    ("text", "options", "said"),
    [
        (f"1,2\n3,{LONG}\n", {"may_miss": True}, "line 2: field larger than field limit"),
        (f"x,id\n1,a\n2,{LONG}\n", {"keep": ["id"]}, "line 3: field larger than field limit"),
        (f"{LONG[:100_000]},b\n1,2\nx,4\n", {}, r"line 3, column 1 \('aaaaaaaaaaaa\.\.\.aaaaaaaaaaaaa'\): 'x'"),
    ],
)
def test_long_fields_are_refused_in_a_short_line(text: str, options: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(sb.SourceError, match=said) as caught:
        datafiles.read(path, **options)
    assert len(str(caught.value)) < 1000


def test_what_a_damaged_archive_says_is_cut_off(tmp_path: Path) -> None:
    """The zip module quotes the name of a member, which may have 65,535 bytes."""
    from stickbreak.io import corpora

    path = tmp_path / "counts.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("data", "format", "shape"):
            archive.writestr(f"{name}.npy", b"x" * 70_000)
    # The member that is read first claims a longer name than it has.
    content = bytearray(path.read_bytes())
    length = content.find(b"format.npy") - 4
    content[length : length + 2] = b"\xff\xff"
    path.write_bytes(content)
    with pytest.raises(sb.SourceError, match="File name in directory") as caught:
        corpora.read_corpus(path)
    assert len(str(caught.value)) < 1000
