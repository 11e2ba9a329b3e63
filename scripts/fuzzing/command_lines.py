"""Command lines: every command with options of all kinds, on files of which some are damaged.

The command runs in this process. It must end with a code of its own, one line of error or none, JSON where JSON was
asked for, its inputs as they were and nothing half written beside them.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np

import stickbreak as sb
from fuzzing import Failure, generator, memory, mutations, tables
from stickbreak.cli.commands import program

Generator = np.random.Generator

_KIND = 5
_MEMORY = 512 * 1024 * 1024
_COMMANDS = ("fit", "fit", "fit", "mcmc", "topics", "predict", "score", "generate", "info")
# What a command needs, mostly good. Inputs are names of files of `_good`.
_TABLES = ["rows.csv", "rows.tsv.gz", "rows.npy", "rows.npz", "rows.parquet", "named.csv", "holes.csv"]
_COUNTS = ["docword.txt", "docword.txt.gz", "counts.npz", "counts.npy", "named.csv"]
_MODELS = ["m.safetensors", "m.safetensors", "topics.safetensors", "trace.safetensors", "tree.safetensors"]
_OUTPUTS = ["out.safetensors", "out.safetensors", "out.csv", "out.npy", "out.json", "out.parquet", "-", "rows.csv", "."]
_OUTPUTS += ["missing/out.csv", "", "out", "out.txt", "m.safetensors", "checkpoint"]
# Options that decide how much is done get small numbers and numbers that are refused.
_WORK: dict[str, float] = {
    "draws": 3,
    "warmup": 2,
    "chains": 2,
    "thin": 2,
    "n_init": 2,
    "n": 7,
    "max_passes": 2,
    "global_moves": 2,
}
_WORK |= {"max_seconds": 0.1, "threads": 1, "n_components": 3, "n_topics": 2, "scans": 1, "restarts": 2, "depth": 2}
_WORK |= {"max_steps": 5, "batches": 2, "batch_size": 10, "subset": 5, "levels": 3}
# Good values of options that are words, or names of columns.
_WORDS = {
    "base": ["conjugate", "product"],
    "columns": ["1", "1-2", "2,1", "a,b"],
    "exposure": ["total", "1", "a"],
    "delimiter": ["comma", ","],
    "keep": ["id", "1"],
    "key": ["rows"],
    "local": ["uniform", "guided"],
    "missing": ["error", "marginalize"],
    "moves": ["none", "birth", "merge,delete", "birth,merge,delete"],
    "objective": ["variational", "map", "ml"],
    "prior": ["rule"],
    "proposal": ["restricted", "sequential"],
    "tree": ["depth=2", "tolerance=0.1", "rule=responsibility", "refine=no"],
    "trees": ["guide", "fresh"],
    "truncation": ["nested", "tail", "stick"],
    "units": ["rows", "kd-tree", "auto"],
    "weight_column": ["weight", "2"],
}
_REFUSED = ["0", "-1", "x", "", "1.5", "nan", "inf", "1e9", "99999999999999999999", "٣", "½"]
_TEXTS = ["", " ", "1", "0", "-1", "0.5", "1,2", "1-2", "a", "b", "c", "id", "nested", "tail", "auto", "none", "dense"]
_TEXTS += [
    "map",
    "ml",
    "error",
    "marginalize",
    "kmeans++",
    "random",
    "sequential",
    "single",
    "singletons",
    "tab",
    ",",
    ";",
]
_TEXTS += [
    "birth",
    "merge,delete",
    "birth,",
    "kd-tree",
    "depth=3",
    "tolerance=x",
    "depth",
    "é",
    "x" * 3000,
    "\ud800",
    "a\0b",
]
_TEXTS += [
    "nan",
    "inf",
    "1e400",
    "--json",
    "-",
    "missing.csv",
    ".",
    "/",
    "labels.npy",
    "weights.csv",
    "product",
    "rule",
]


def run(seed: int, number: int) -> str:
    """Run one case; return how it ended."""
    rng = generator(seed, _KIND, number)
    with _folder_of_case(rng) as before:
        arguments = _arguments(rng)
        stdin = before.get("rows.csv", b"") if rng.random() < 0.9 else b""
        code, out, err = _called(arguments, stdin)
        problem = _problem(arguments, before, code, out, err)
    if problem:
        raise Failure(f"{problem}\n    stickbreak {arguments!r}\n    out: {out[-1000:]!r}\n    err: {err[-1000:]!r}")
    return f"exit {code}"


def _called(arguments: list[str], stdin: bytes) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    kept, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
    try:
        with redirect_stdout(out), redirect_stderr(err), memory.limited(_MEMORY, "a command line"):
            code = program.main(list(arguments), prog_name="stickbreak", standalone_mode=False)
    except Failure:
        raise
    except BaseException as error:
        raise Failure(f"{type(error).__name__}: {error}\n    stickbreak {arguments!r}") from error
    finally:
        sys.stdin = kept
    return int(code), out.getvalue(), err.getvalue()


def _problem(arguments: list[str], before: dict[str, bytes], code: int, out: str, err: str) -> str:
    """Return what is wrong with the end of a command; empty if nothing is."""
    lines = err.splitlines()
    errors = [line for line in lines if not line.startswith("stickbreak: warning: ")]
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if code == 0 and errors:
        return "a word on stderr of a command that did well"
    is_told = len(errors) == 1 and errors[0].startswith("stickbreak: error: ")
    if code and not is_told and not (code == 2 and err.startswith("Usage:")):
        return "not one line of error"
    if "Traceback" in err:
        return "a traceback"
    # Help is text, whatever else was asked for.
    if "--json" in arguments and not out.startswith("Usage:"):
        try:
            json.loads(out)
        except ValueError:
            return "no JSON object on stdout"
    after, outputs = _contents(), _outputs(arguments)
    for name, content in before.items():
        if name not in outputs and after.get(name) != content:
            return f"{name}, which was read or has nothing to do with the command, has changed"
    left = [name for name in after if name not in before and not _is_output(name)]
    return f"files left behind: {left}" if left else ""


def _outputs(arguments: list[str]) -> set[str]:
    """Return the names of files that a command may replace: those that it is to write, and does not read.

    The commands that write models refuse the names of data files.
    """
    makes_model = arguments[:1] in (["fit"], ["mcmc"], ["topics"])
    outputs: set[str] = set()
    others: set[str] = set()
    for title, text in zip(["", *arguments], arguments, strict=False):
        is_out = title in ("-o", "--out") and (not makes_model or text.endswith(".safetensors"))
        (outputs if is_out or title in ("--rows", "--labels", "--proportions") else others).add(text)
    return outputs - others


def _is_output(name: str) -> bool:
    return name in _OUTPUTS or name in _TEXTS or name.startswith("checkpoint")


# --- arguments ---


def _arguments(rng: Generator) -> list[str]:
    if rng.random() < 0.03:
        return [_TEXTS[place] for place in rng.integers(len(_TEXTS), size=rng.integers(0, 4))]
    name = _COMMANDS[rng.integers(len(_COMMANDS))]
    command = program.commands[name]
    found = [name]
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            found.append(_input(rng, parameter.name or ""))
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    # Options that are required, or that keep a command short, and some others.
    for option in options:
        usual = option.required or option.name in ("draws", "warmup", "chains", "max_passes", "threads")
        if rng.random() < (0.99 if usual else 1.5 / len(options)):
            found += _given(rng, option)
    return found


def _input(rng: Generator, name: str) -> str:
    known = {"model": _MODELS, "corpus": _COUNTS}.get(name, _TABLES)
    choice = rng.random()
    if choice < 0.85:
        return known[rng.integers(len(known))]
    if choice < 0.95:
        return sorted(path.name for path in Path().glob("damaged*"))[0]
    return str(rng.choice(["-", "folder", "missing.csv", "", ".", "rows.csv/x", *_TABLES, *_COUNTS, *_MODELS]))


def _given(rng: Generator, option: click.Option) -> list[str]:
    title = str(rng.choice([*option.opts, *option.secondary_opts]))
    if option.is_flag:
        return [title]
    return [title, _value(rng, option)]


def _value(rng: Generator, option: click.Option) -> str:
    name = option.name or ""
    if name in _WORK:
        return str(_WORK[name]) if rng.random() < 0.92 else _REFUSED[rng.integers(len(_REFUSED))]
    if name in ("out", "labels", "rows", "proportions", "checkpoint"):
        if rng.random() < 0.85:
            return {"checkpoint": "checkpoint"}.get(name, "out.safetensors" if option.required else "out.csv")
        return _OUTPUTS[rng.integers(len(_OUTPUTS))]
    if name in ("weights", "init", "test", "vocabulary") and rng.random() < 0.6:
        good = {"weights": ["weights.csv"], "init": ["labels.npy", "m.safetensors", "random"], "test": _COUNTS}
        words = good.get(name, ["words.txt"])
        return words[rng.integers(len(words))]
    choices = getattr(option.type, "classes", None) or getattr(option.type, "choices", None)
    if choices and rng.random() < 0.9:
        return str(list(choices)[rng.integers(len(choices))])
    if rng.random() < 0.7:
        known = _WORDS.get(name, ["1", "2", "0.5"] if option.type is not click.INT else ["1", "2", "3"])
        return known[rng.integers(len(known))]
    return _TEXTS[rng.integers(len(_TEXTS))]


# --- files ---


@contextmanager
def _folder_of_case(rng: Generator) -> Iterator[dict[str, bytes]]:
    """Enter a folder with good files and a damaged one, and give their contents; make it as it was at the end."""
    folder, good = _folder()
    kept = Path.cwd()
    os.chdir(folder)
    try:
        suffix = tables.SUFFIXES[rng.integers(len(tables.SUFFIXES))]
        name, content = f"damaged{suffix}", tables.table(rng, suffix)
        if rng.random() < 0.3:
            old = sorted(good)[rng.integers(len(good))]
            name, content = f"damaged-{Path(old).name}", mutations.mutated(rng, good[old])
        Path(name).write_bytes(content)
        yield _contents()
    finally:
        for path in sorted(Path().rglob("*"), reverse=True):
            relative = path.as_posix()
            if path.is_dir():
                if relative != "folder":
                    path.rmdir()
            elif relative not in good:
                path.unlink()
        for relative, content in good.items():
            if not Path(relative).is_file() or Path(relative).read_bytes() != content:
                Path(relative).write_bytes(content)
        os.chdir(kept)


def _contents() -> dict[str, bytes]:
    return {path.as_posix(): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@cache
def _folder() -> tuple[Path, dict[str, bytes]]:
    """Return a folder of good files, and their contents."""
    folder = Path(_temporary().name)
    kept = Path.cwd()
    os.chdir(folder)
    try:
        _write_good()
        return folder, _contents()
    finally:
        os.chdir(kept)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="stickbreak-fuzz-")


def _write_good() -> None:
    import pyarrow
    import pyarrow.parquet
    from scipy import sparse

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 2)) + 5.0 * rng.integers(2, size=(40, 1))
    np.savetxt("rows.csv", rows, delimiter=",")
    np.save("rows.npy", rows)
    np.savez("rows.npz", rows=rows)
    _zip("rows.tsv.gz", "\n".join(f"{a:.3f}\t{b:.3f}" for a, b in rows))
    table = pyarrow.table({"a": rows[:, 0], "b": rows[:, 1]})
    pyarrow.parquet.write_table(table, "rows.parquet")
    Path("folder").mkdir()
    for part in range(2):
        pyarrow.parquet.write_table(table.slice(20 * part, 20), f"folder/{part}.parquet")
    counts = rng.poisson(1.0, size=(40, 6))
    lines = ["id,a,b,weight", *(f"n{k},{a},{b},{1 + k % 3}" for k, (a, b, *_) in enumerate(counts.tolist()))]
    Path("named.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    Path("holes.csv").write_text("a,b\n1.5,2\n,3\nNA,4\n5,6\n7,8\n", encoding="utf-8")
    np.save("counts.npy", counts)
    sparse.save_npz("counts.npz", sparse.csr_array(counts))
    triples = [f"{n + 1} {v + 1} {counts[n, v]}" for n, v in zip(*counts.nonzero(), strict=True)]
    docword = "\n".join(["40", "6", str(len(triples)), *triples]) + "\n"
    Path("docword.txt").write_text(docword, encoding="utf-8")
    _zip("docword.txt.gz", docword)
    Path("words.txt").write_text("".join(f"word{v}\n" for v in range(6)), encoding="utf-8")
    np.savetxt("weights.csv", rng.uniform(0.5, 2.0, size=40))
    np.save("labels.npy", np.arange(40) % 2)
    model: Any = sb.Mixture(likelihood=sb.Gaussian())
    sb.fit(model, rows, sb.Full(max_passes=2), n_components=2, progress=False).save("m.safetensors")
    topics = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, sb.Full(max_passes=2), progress=False)
    topics.save("topics.safetensors")
    sb.sample(model, rows, draws=2, warmup=1, chains=1, progress=False).save("trace.safetensors")
    sb.hierarchy(model, rows).save("tree.safetensors")


def _zip(name: str, text: str) -> None:
    import gzip

    Path(name).write_bytes(gzip.compress(text.encode(), mtime=0))
