"""The command line as a process: exit codes, streams, signals, pipes. Nothing here measures time."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stickbreak as sb

HANG = 120
STICKBREAK = [sys.executable, "-m", "stickbreak"]
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes of POSIX")

# A fit that has no end, in a process that says when its first pass is over. What runs in the background may have come
# to ignore SIGINT, and what it starts inherits that.
ENDLESS = """
import signal
import sys
import stickbreak as sb
from stickbreak import cli

signal.signal(signal.SIGINT, signal.default_int_handler)
fit = sb.fit

def fit_and_tell(*arguments, **options):
    return fit(*arguments, **options, callbacks=[lambda record: print("pass", file=sys.stderr, flush=True)])

sb.fit = fit_and_tell
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = np.random.default_rng(0).standard_normal((20_000, 4))
    np.save(tmp_path / "rows.npy", rows)
    sb.fit(sb.Mixture(sb.Gaussian()), rows, sb.Full(max_passes=2), n_components=3).save(tmp_path / "m.safetensors")
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*STICKBREAK, *arguments], cwd=folder, capture_output=True, text=True, timeout=HANG)


def test_exit_codes_and_streams(folder: Path) -> None:
    scored = run(folder, "score", "m.safetensors", "rows.npy", "--json")
    assert (scored.returncode, scored.stderr) == (0, "")
    assert json.loads(scored.stdout)["n_rows"] == 20_000
    failed = run(folder, "score", "m.safetensors", "nothing.npy")
    assert (failed.returncode, failed.stdout) == (1, "")
    assert failed.stderr == "stickbreak: error: nothing.npy: there is no such file\n"
    wrong = run(folder, "fit", "rows.npy", "--out", "x", "--n-components", "0")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr == "stickbreak: error: --n-components must be an integer from 1 to 20000, but it is 0\n"


def test_console_script() -> None:
    """The program that an installation puts on the path is the same function."""
    from importlib.metadata import entry_points

    from stickbreak.cli import main

    scripts = [script for script in entry_points(group="console_scripts") if script.name == "stickbreak"]
    if not scripts:
        pytest.skip("the package is not installed, or its installation is older than its command line")
    assert all(script.load() is main for script in scripts)


def interrupted(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    arguments = ["fit", "rows.npy", "--n-components", "20", "--max-passes", "1000000000", "--tol", "0", *options]
    process = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *arguments, "--out", "new.safetensors"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stderr.readline() == "pass\n"
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=HANG)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail("the fit did not stop")
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


@posix
def test_interrupt_keeps_the_last_complete_state(folder: Path) -> None:
    result = interrupted(folder)
    assert result.returncode == 130
    fit = sb.load(folder / "new.safetensors")
    assert fit.stop_reason is sb.StopReason.INTERRUPTED
    assert len(fit.history) >= 1
    assert "(interrupted)" in result.stdout
    told = [line for line in result.stderr.splitlines() if line != "pass"]
    assert told == ["stickbreak: interrupted; the last complete state is in new.safetensors"]


@posix
def test_interrupt_is_told_to_programs(folder: Path) -> None:
    result = interrupted(folder, "--json")
    assert result.returncode == 130
    found = json.loads(result.stdout)
    assert found["stop_reason"] == "interrupted"
    assert found["elbo"] == sb.load(folder / "new.safetensors").elbo


@posix
@pytest.mark.parametrize("options", [[], ["--proba"]])
def test_closed_pipe_is_quiet(folder: Path, options: list[str]) -> None:
    with subprocess.Popen(
        [*STICKBREAK, "predict", "m.safetensors", "rows.npy", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("component")
        process.stdout.close()
        assert process.stderr.read() == ""
        # Labels may all have gone into the pipe before it was closed, responsibilities do not fit.
        assert process.wait(HANG) in ([141] if options else [0, 141])


@posix
def test_reader_that_is_gone_before(folder: Path) -> None:
    """Output that fits into the buffer is written only at the end."""
    read, write = os.pipe()
    os.close(read)
    result = subprocess.run(
        [*STICKBREAK, "info", "m.safetensors"], cwd=folder, stdout=write, stderr=subprocess.PIPE, timeout=HANG
    )
    os.close(write)
    assert (result.returncode, result.stderr) == (141, b"")


@posix
@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("info m.safetensors", 141),
        ("predict m.safetensors rows.npy", 141),
        ("predict m.safetensors rows.npy --out z.npy", 0),
        ("predict m.safetensors rows.npy --out z.npy --json", 141),
        ("fit rows.npy --out new.safetensors --n-components 3 --max-passes 1 --quiet", 0),
        ("fit rows.npy --out new.safetensors --n-components 3 --max-passes 1", 141),
        ("info nothing.safetensors --json", 141),
    ],
)
@pytest.mark.one_in(4)
def test_closed_stdout(folder: Path, command: str, code: int) -> None:
    """Without stdout, commands without output succeed, and the others end as with a closed pipe."""
    shell = ["sh", "-c", 'exec "$@" >&-', "sh", *STICKBREAK, *command.split()]
    result = subprocess.run(shell, cwd=folder, stderr=subprocess.PIPE, text=True, timeout=HANG)
    said = "stickbreak: error: nothing.safetensors: there is no such file\n" if "nothing" in command else ""
    assert (result.returncode, result.stderr) == (code, said)
    for name in ("z.npy", "new.safetensors"):
        assert (folder / name).exists() == (name in command)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["info m.safetensors --json", "info nothing.safetensors --json"])
def test_full_stdout(folder: Path, command: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*STICKBREAK, *command.split()], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr.startswith("stickbreak: error: ")
    assert done.stderr.count("\n") == 1


@posix
def test_closed_stderr(folder: Path) -> None:
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", *STICKBREAK]
    arguments = "fit rows.npy --out new.safetensors --n-components 3 --max-passes 1 --json".split()
    result = subprocess.run([*shell, *arguments], cwd=folder, stdout=subprocess.PIPE, text=True, timeout=HANG)
    assert result.returncode == 0
    assert json.loads(result.stdout)["out"] == "new.safetensors"


# Ctrl-C that an import loses while the data are read.
LOST = """
import os
import signal
import sys
from stickbreak import cli
from stickbreak.io import datafiles

signal.signal(signal.SIGINT, signal.default_int_handler)
read = datafiles.read

def read_while_pressed(*arguments, **options):
    try:
        os.kill(os.getpid(), signal.SIGINT)
        print("not lost")
    except KeyboardInterrupt:
        return read(*arguments, **options)

datafiles.read = read_while_pressed
sys.exit(cli.main(sys.argv[1:]))
"""


@posix
def test_an_interrupt_that_an_import_loses_ends_the_command(folder: Path) -> None:
    command = [sys.executable, "-c", LOST, "fit", "rows.npy", "--out", "new.safetensors"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=HANG)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stickbreak: error: interrupted\n")
    assert not (folder / "new.safetensors").exists()
