"""Floors of the Python package: what each folder may import, and that no files import each other in a circle.

An import counts wherever it stands: in a function, or under `TYPE_CHECKING`, it cannot hide from the rules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = "stickbreak"
# Floors of python/stickbreak, lowest first. A folder, or a file that is in none, may use lower floors and, on its own,
# only those to its left. The package's own namespace, which users import, stands by its name.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "checks"),
    ("io", "_core"),
    ("model",),
    ("result",),
    ("run",),
    ("plot",),
    (PACKAGE,),
    ("sklearn", "testing", "demo", "cli"),
    ("__main__",),
)


def python_modules(root: Path) -> dict[str, Path]:
    """Give the files of the package by the names of their modules; stubs stand for compiled modules."""
    folder = root / "python"
    paths = sorted(path for kind in ("*.py", "*.pyi") for path in (folder / PACKAGE).rglob(kind))
    return {".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imported(path: Path, modules: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """Line and name of every module of the package that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # What is imported from a folder is one of its files, or stands in its `__init__`.
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [member if member in modules else node.module for member in members]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name in modules)


def part_of(module: str) -> str:
    """Return the folder of a module, or its own name where it is in none; programs are a part of their own."""
    parts = module.split(".")
    return "__main__" if parts[-1] == "__main__" else parts[1] if len(parts) > 1 else PACKAGE


def check_python_floors(root: Path) -> Iterator[str]:
    """Each part of the Python package imports lower floors, or parts to its left, and there are no circles."""
    place = {part: (floor, column) for floor, row in enumerate(FLOORS) for column, part in enumerate(row)}
    modules = python_modules(root)
    uses: dict[str, set[str]] = {}
    for module, path in modules.items():
        here, file = part_of(module), path.relative_to(root).as_posix()
        if here not in place:
            yield f"{file}: `{here}` is not in the table of scripts/python_floors.py"
            continue
        for line, name in imported(path, modules):
            uses.setdefault(module, set()).add(name)
            used = part_of(name)
            if used != here and used in place and place[used] > place[here]:
                yield f"{file}:{line}: `{here}` (floor {place[here][0]}) may not use `{used}` (floor {place[used][0]})"
    for part in sorted(place.keys() - {part_of(module) for module in modules}):
        yield f"scripts/python_floors.py: the table names `{part}`, which is not in python/{PACKAGE}"
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as circle:
        yield f"python/{PACKAGE}: files import each other in a circle: {' <- '.join(circle.args[1])}"
