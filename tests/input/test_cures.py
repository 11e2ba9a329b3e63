"""Text that is no table as it stands: the error names the cure, and the cure works."""

import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import stickbreak as sb
from stickbreak.cli import program
from stickbreak.io import numerals
from stickbreak.io.corpora import read_vocabulary
from stickbreak.io.datafiles import cures

N = 60
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=N).round(3), RNG.normal(9.0, size=N).round(3)
TOWN = np.array(["Ulm", "Bonn"])[np.arange(N) % 2]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def fit(*options: str) -> Result:
    command = ["fit", "rows.csv", "--out", "m.safetensors", "--threads", "1", "--quiet", *options]
    return CliRunner().invoke(program, command)


def write(head: str, row: str, encoding: str = "utf-8") -> None:
    lines = [head] * bool(head) + [row.format(a=a, b=b, town=town) for a, b, town in zip(A, B, TOWN, strict=True)]
    Path("rows.csv").write_bytes("\n".join([*lines, ""]).encode(encoding))


def refused(*options: str) -> str:
    result = fit(*options)
    assert result.exit_code == 1, result.output
    assert result.stderr.count("\n") == 1
    return result.stderr


# The first line, a row, the options that the error names, and the columns that they leave.
CURED: dict[str, tuple[str, str, str, int]] = {
    "trailing commas": ("height,width,", "{a},{b},", "--columns 1-2", 2),
    "trailing commas without names": ("", "{a},{b},", "--columns 1-2", 2),
    "trailing semicolons beside text": ("height;town;", "{a};{town};", "--columns 1-2", 2),
    "empty columns between others": ("a,b,c,d,e", "{a},,{b},,{a}1", "--columns 1,3,5", 3),
    "named missing values": ("a,b,c", "NA,{a},{b}", "--columns 2-3", 2),
    "bars": ("a|b", "{a}|{b}", "--delimiter '|'", 2),
    "bars beside text": ("a|b|town", "{a}|{b}|{town}", "--delimiter '|'", 3),
    "bars without names": ("", "{a}|{b}", "--delimiter '|'", 2),
    "blanks": ("a b", "{a} {b}", "--delimiter space", 2),
    "blanks beside text": ("a town b", "{a} {town} {b}", "--delimiter space", 3),
    "blanks without names": ("", "{a} {b}", "--delimiter space", 2),
}


@pytest.mark.parametrize(("head", "row", "cure", "n_columns"), CURED.values(), ids=CURED)
def test_the_error_names_options_that_cure(head: str, row: str, cure: str, n_columns: int) -> None:
    write(head, row)
    assert cure in refused()
    assert "leave such rows out" not in refused()
    result = fit(*shlex.split(cure))
    assert result.exit_code == 0, result.output
    found = sb.load("m.safetensors")
    assert found.model is not None
    assert found._state.dimension == n_columns


def test_a_likelihood_that_takes_no_text_has_the_same_cure() -> None:
    write("height,width,", "{a},{b},")
    assert "--columns 1-2" in refused("--likelihood", "gaussian")
    write("height,width,w,", "{a},{b},1,")
    assert "--columns 1-2" in refused("--likelihood", "gaussian", "--weight-column", "w")
    assert fit("--likelihood", "gaussian", "--weight-column", "w", "--columns", "1-2").exit_code == 0


def test_some_missing_values_are_no_empty_column() -> None:
    write("height,width", "{a},{b}")
    path = Path("rows.csv")
    path.write_text(path.read_text() + "1,\n")
    assert "leave such rows out" in refused()


def test_ends_of_some_lines() -> None:
    write("height,width", "{a},{b},")
    assert "it ends in a delimiter, and the first line does not" in refused()
    write("height,width,", "{a},{b}")
    assert "the first line ends in a delimiter, and this one does not" in refused()


def test_runs_of_blanks() -> None:
    write("  a    b", "{a:>8}   {b:>8} ")
    assert "replace each run of blanks by one comma" in refused()


@pytest.mark.parametrize("words", ["New York", "San Jose|x"])
def test_one_column_of_text_stays_one(words: str) -> None:
    lines = [words if i % 3 else f"{words} two" for i in range(N)]
    Path("rows.csv").write_text("\n".join(["name", *lines, ""]))
    assert fit().exit_code == 0
    assert sb.load("m.safetensors").column_names == ("name",)


def test_one_column_of_text_with_a_number_is_said_to_be_one() -> None:
    Path("rows.csv").write_text("\n".join(["the room", *(f"room {i % 3}" for i in range(N)), ""]))
    assert "if it is one column of text, write --delimiter comma" in refused()
    assert fit("--delimiter", "comma").exit_code == 0


ENCODINGS = {
    "utf-16": "UTF-16",
    "utf-16-le": "UTF-16LE",
    "utf-16-be": "UTF-16BE",
    "utf-32": "UTF-32",
    "latin-1": "LATIN1",
}


@pytest.mark.parametrize(("encoding", "name"), ENCODINGS.items())
@pytest.mark.parametrize("options", [(), ("--likelihood", "gaussian")])
def test_other_encodings(encoding: str, name: str, options: Any) -> None:
    write("größe,b", "{a},{b}", encoding)
    assert f"not text in UTF-8; {'perhaps ' if name == 'LATIN1' else ''}it is" in refused(*options)
    assert refused(*options).endswith(f"save it as UTF-8, or convert it by iconv -f {name} -t UTF-8\n")
    Path("rows.csv").write_bytes(Path("rows.csv").read_bytes().decode(name).encode())
    assert fit(*options).exit_code == 0


def test_latin_1_below_the_first_lines() -> None:
    write("a,town", "{a},K\xf6ln", "latin-1")
    assert "line 2: not text in UTF-8; perhaps it is Latin-1" in refused()


@pytest.mark.parametrize(("encoding", "name"), [("utf-16", "UTF-16"), ("latin-1", "LATIN1")])
def test_encodings_of_vocabularies(encoding: str, name: str) -> None:
    Path("words.txt").write_text("straße\nweg\n", encoding=encoding)
    with pytest.raises(sb.SourceError, match=f"iconv -f {name} -t UTF-8"):
        read_vocabulary("words.txt")


def test_specifications_may_be_in_utf_16() -> None:
    write("größe,b", "{a},{b}")
    for encoding in ("utf-8-sig", "utf-16"):
        Path("spec.json").write_text('{"größe, b": "gaussian"}', encoding=encoding)
        assert fit("--columns-spec", "spec.json").exit_code == 0
    Path("spec.json").write_text('{"größe, b": "gaussian"}', encoding="latin-1")
    assert "perhaps it is Latin-1" in fit("--columns-spec", "spec.json").stderr


def test_numbers_as_text_are_no_ids() -> None:
    write("price,rate,b", '"$1,{a}34","{a} %",{b}')
    Path("rows.csv").write_text("\n".join(["price,rate,b", *(f'"${i},234",{i}.3 %,{b}' for i, b in enumerate(B)), ""]))
    message = refused()
    assert "'price' (numbers as text, such as '$0,234': make numbers of them" in message
    assert "'rate' (numbers as text, such as '0.3 %'" in message
    assert "an id" not in message
    of_gaussian = refused("--likelihood", "gaussian")
    assert "numbers have no currency, no percent sign and no separators of thousands" in of_gaussian


@pytest.mark.parametrize(
    ("field", "cure"),
    [
        ("1,5", "decimals need a point"),
        ("1,234", "decimals need a point, and thousands no comma"),
        ("1,234,567.5", "decimals need a point, and thousands no comma"),
        ("1 234,5", "numbers have no currency, no percent sign and no separators of thousands"),
        ("€ 5", "numbers have no currency, no percent sign and no separators of thousands"),
        ("12.3 %", "numbers have no currency, no percent sign and no separators of thousands"),
        ("x", ""),
        ("", ""),
    ],
)
def test_single_numbers(field: str, cure: str) -> None:
    assert cures.of_number(field) == cure


NUMBERS = (
    "$1,234|12.3 %|12.3%|1 234,50 €|€ 5|-$5.00|$-5|(1,234.00)|1.234.567,8|1'234|<5|1,23,456|USD 12|12 EUR|1,234-|.5"
)
OTHERS = "P001|192.168.0.1|2020.01.05|12:30|1.2.3|abc||$|%|(5|5)|030 1234567|A4|1-2|12a3|1,2,3|12 12"


def test_what_is_a_number() -> None:
    assert numerals.among(NUMBERS.split("|")) == NUMBERS.split("|")
    assert numerals.among(OTHERS.split("|")) == []
    assert numerals.among(["5 kg", "6 kg"]) == ["5 kg", "6 kg"]
    for codes in (["12", "12a"], ["1a", "1b"], ["01067", "89073"]):
        assert numerals.among(codes) == []
    # Long text takes no time.
    assert numerals.among([" " * 10**6 + "x", "1" * 10**6]) == []


def test_ranges() -> None:
    assert cures.ranges([0, 1, 2, 4, 6, 7]) == "1-3,5,7-8"
