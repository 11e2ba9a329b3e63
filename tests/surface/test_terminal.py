"""No word of a file or of a table steers a terminal: what it would obey is shown as an escape, in every output."""

import ast
import io
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import stickbreak as sb
from stickbreak import errors
from stickbreak.cli import program
from stickbreak.io import files
from stickbreak.run.progress import reading_bar
from stickbreak.terminal import plain

# Colours, a title of the window, the same in one byte, deleted letters, and text that runs backwards.
OBEYED = ["\x1b[31m", "\x1b]0;title\x07", "\x9b2J", "a\x08b", "\x7f", "\r", "\x00", "\u202e", "\u2066", "\u2028"]
OBEYED += ["\udc80"]
# Letters that join others, and a blank.
HARMLESS = ["Ulm", "Straße", "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647", "👩\u200d🔬", "10\xa0000", "a\\x1b"]
# As a name of a column, and as a word of one.
BAD = "\x1b[31m\x9bred\u202e"
SHOWN = r"\x1b[31m\x9bred\u202e"
N = 60


def is_clean(text: str) -> bool:
    """Return whether a text has no character that a terminal obeys, besides the ends of its lines."""
    return plain(text, breaks=True) == text


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    kind = np.arange(N) % 2
    return pd.DataFrame({BAD: rng.normal(9.0 * kind), "constant": np.ones(N), "word": np.array([BAD, "blue"])[kind]})


@pytest.fixture(scope="module")
def fit(table: pd.DataFrame) -> sb.Fit:
    columns = sb.Columns({(BAD, "constant"): sb.Gaussian(), "word": sb.Categorical()})
    with pytest.warns(sb.SupportWarning):
        return sb.fit(sb.Mixture(columns), table, sb.Full(max_passes=3, tol=0), n_components=2)


@pytest.mark.parametrize("text", OBEYED)
def test_what_a_terminal_obeys_is_escaped(text: str) -> None:
    found = plain(f"a {text} b")
    assert text not in found
    assert found.isascii()
    assert plain(found) == found


@pytest.mark.parametrize("text", HARMLESS)
def test_other_characters_stay(text: str) -> None:
    assert plain(text) == text


def test_breaks_stay_where_there_may_be_several_lines() -> None:
    assert plain("a\tb\nc") == r"a\tb\nc"
    assert plain("a\tb\nc\r", breaks=True) == "a\tb\nc\\r"


def kinds() -> list[type[BaseException]]:
    found = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, BaseException)]
    assert len(found) > 15
    return found


@pytest.mark.parametrize("kind", kinds())
def test_every_error_and_warning_is_clean(kind: type[BaseException]) -> None:
    error = kind(f"found {BAD}")
    assert str(error) == f"found {SHOWN}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_parts_of_errors_and_advice_are_clean() -> None:
    error = sb.InvalidArgument("no", argument="data", found=BAD, allowed=BAD)
    assert (error.found, error.allowed) == (SHOWN, SHOWN)
    advice = sb.Advice(BAD, kind=BAD, suggestions=(BAD,))
    assert (advice.text, advice.kind, advice.suggestions) == (SHOWN, SHOWN, (SHOWN,))
    assert str(advice) == f"{SHOWN}; try {SHOWN}"


def test_displays_are_clean(fit: sb.Fit, table: pd.DataFrame) -> None:
    assert fit.column_names == (BAD, "constant", "word")
    assert fit.levels == {"word": (BAD, "blue")}
    texts = [repr(fit), fit._repr_html_(), fit.summary().to_string(), repr(fit.model), repr(fit.advice())]
    texts += [repr(fit.levels), repr(fit.marginal([BAD]))]
    for text in texts:
        assert SHOWN in text or "red" not in text
        assert is_clean(text)
    # Data keep their words.
    assert set(fit.as_table(fit.sample(20, seed=0))["word"]) <= {BAD, "blue"}


def test_the_table_of_choices_is_clean(table: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    sb.columns_for(table)
    out = capsys.readouterr().out
    assert is_clean(out)
    head, *lines = [line for line in out.splitlines() if line]
    assert lines[0].startswith(SHOWN)
    # Escapes are counted where columns are aligned.
    assert len({line.index("Gaussian") for line in lines[:2]} | {head.index("likelihood")}) == 1


def test_progress_bars_are_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    bar = reading_bar(True, f"{BAD}.csv")
    assert bar is not None
    bar.read(0.5)
    bar.close()
    assert SHOWN in stderr.getvalue()
    assert BAD not in stderr.getvalue()


def test_a_forged_model_file_is_shown_clean(fit: sb.Fit) -> None:
    fit.save("m.safetensors")
    header, arrays = files.read("m.safetensors")
    header["advice"] = [["support", BAD, [BAD]]]
    files.write("advice.safetensors", header, arrays)
    loaded = sb.load("advice.safetensors")
    assert SHOWN in repr(loaded)
    assert is_clean(repr(loaded))
    names = {**header, BAD: 1, "bound": BAD, "stop_reason": BAD}
    files.write("names.safetensors", names, arrays)
    for arguments in (["info", "advice.safetensors"], ["info", "names.safetensors"], ["info", f"{BAD}.safetensors"]):
        result = CliRunner().invoke(program, arguments)
        assert is_clean(result.output), arguments


def test_the_output_of_commands_is_clean(table: pd.DataFrame) -> None:
    table.drop(columns="constant").to_csv("mixed.csv", index=False)
    table.assign(word=np.arange(N), other=np.arange(N)).rename(columns={"word": f"{BAD} id"}).to_csv("ids.csv")
    np.savez("two.npz", **{f"{BAD}A": np.ones((3, 2)), "b": np.ones((3, 2))})
    np.save("counts.npy", np.random.default_rng(0).poisson(2, size=(30, 4)))
    Path("words.txt").write_text("".join(f"{BAD}w{i}\n" for i in range(4)))
    Path("spec.json").write_text(json.dumps({BAD: "gaussian", "word": "categorical", f"{BAD}2": "gaussian"}))
    commands = {
        "keys": ("fit", "two.npz", "--out", "q.safetensors"),
        "key": ("fit", "two.npz", "--key", BAD, "--out", "q.safetensors"),
        "names": ("fit", "mixed.csv", "--out", "q.safetensors", "--threads", "1"),
        "ids": ("fit", "ids.csv", "--likelihood", "auto", "--out", "i.safetensors"),
        "spec": ("fit", "mixed.csv", "--columns-spec", "spec.json", "--out", "s.safetensors"),
        "topics": ("topics", "counts.npy", "-k", "2", "--vocabulary", "words.txt", "--out", "t.safetensors"),
        "info": ("info", "t.safetensors"),
        "words": ("info", "q.safetensors"),
        "option": ("fit", f"--{BAD}", "mixed.csv"),
        "command": (BAD,),
        "value": ("fit", "mixed.csv", "--out", "q", "--likelihood", BAD),
        "file": ("fit", f"{BAD}.csv", "--out", "q.safetensors"),
        "json": ("info", "t.safetensors", "--json"),
    }
    for name, arguments in commands.items():
        result = CliRunner().invoke(program, arguments)
        assert is_clean(result.output), name
        assert "red" in result.output, (name, result.output)


@pytest.mark.slow
def test_tables_are_escaped_on_a_terminal_and_exact_elsewhere(fit: sb.Fit) -> None:
    pty = pytest.importorskip("pty")
    fit.save("m.safetensors")
    command = [sys.executable, "-m", "stickbreak", "generate", "m.safetensors", "-n", "20"]
    piped = subprocess.run(command, capture_output=True, check=True, text=True, encoding="utf-8").stdout
    assert piped.count(BAD) > 1
    ours, theirs = pty.openpty()
    # The words of 20 rows fit into the buffer of a terminal.
    subprocess.run(command, stdout=theirs, check=True)
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65536):
            shown += block
    except OSError:  # the end, on Linux
        pass
    os.close(ours)
    text = shown.decode().replace("\r\n", "\n")
    assert is_clean(text)
    assert text.count(SHOWN) == piped.count(BAD)


def test_one_place_prints_lines() -> None:
    """Commands print by `cli.output.say` alone, which escapes."""
    own = {"cli/output.py": {"echo"}, "run/choosing.py": {"write"}, "interrupts.py": {"print"}}
    root = Path(sb.__file__).parent
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root).as_posix()
        if place.startswith("demo/"):
            continue
        calls = [node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        printing = {ast.unparse(call) for call in calls} & {"click.echo", "click.secho", "print", "sys.stdout.write"}
        assert {name.rpartition(".")[2] for name in printing} <= own.get(place, set()), place
