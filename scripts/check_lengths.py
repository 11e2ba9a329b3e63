"""Checks lengths: no function over 80 lines, no line over 120 columns.

`check_structure.py` runs it, for tests and benches too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MAX_FUNCTION = 80
MAX_COLUMNS = 120
FOLDERS = (".ci", "benches", "crates", "docs", "python", "scripts", "src", "tests")
# Files that people write; tables in pages of text may be wider.
SUFFIXES = (".py", ".pyi", ".rs", ".sh", ".toml")
NAMES = ("Makefile", "Cargo.toml", "pyproject.toml", "conftest.py", ".ci/run")
MADE = ("_build", "results", "__pycache__", "target")

RUST_BLANKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*\""""
    r"""|b?'(?:\\u\{[^}]*\}|\\x..|\\.|[^'\\\n])'""",
    re.DOTALL,
)
RUST_FUNCTION = re.compile(r"\bfn\s+(\w+)")


def written_files(root: Path) -> list[Path]:
    """The files whose lines are checked."""
    named = [root / name for name in NAMES if (root / name).is_file()]
    below = [path for folder in FOLDERS for path in (root / folder).rglob("*") if path.suffix in SUFFIXES]
    return sorted({*named, *(path for path in below if not {*path.relative_to(root).parts} & {*MADE})})


def rust_functions(text: str) -> Iterator[tuple[int, str, int]]:
    """First line, name and number of lines of each function with a body."""
    code = RUST_BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for match in RUST_FUNCTION.finditer(code):
        end = _end_of_body(code, match.end())
        if end is not None:
            yield code.count("\n", 0, match.start()) + 1, match.group(1), code.count("\n", match.start(), end) + 1


def _end_of_body(code: str, position: int) -> int | None:
    """Where the body that follows ends; None for a declaration without one."""
    depth = 0
    for sign in re.finditer(r"[{}()\[\];]", code[position:]):
        if sign.group() == ";" and depth == 0:
            return None
        depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(sign.group(), 0)
        if sign.group() == "}" and depth == 0:
            return position + sign.end()
    return None


def python_functions(text: str) -> Iterator[tuple[int, str, int]]:
    """First line, name and number of lines of each function, without its docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            n_lines = (node.end_lineno or node.lineno) - node.lineno + 1
            first = node.body[0]
            if ast.get_docstring(node, clean=False) is not None and first.end_lineno is not None:
                n_lines -= first.end_lineno - first.lineno + 1
            yield node.lineno, node.name, n_lines


def check_lengths(root: Path) -> Iterator[str]:
    """Functions and lines are short enough to be read."""
    functions = {".rs": rust_functions, ".py": python_functions}
    for path in written_files(root):
        name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
        for number, line in enumerate(text.splitlines(), start=1):
            if len(line) > MAX_COLUMNS:
                yield f"{name}:{number}: {len(line)} columns, more than {MAX_COLUMNS}"
        for number, function, n_lines in functions.get(path.suffix, lambda _: iter(()))(text):
            if n_lines > MAX_FUNCTION:
                yield f"{name}:{number}: `{function}` has {n_lines} lines, more than {MAX_FUNCTION}"
