"""Circles of the core: files of `src/` that use each other, directly or through others.

A file uses another if it names an item that the other defines, in a `use` or in a path, however many re-exports lie
between. Re-exports and declarations of modules are no uses. The head of a folder (`mod.rs`, or `x.rs` beside `x/`) and
the files below it count as one subject, whose parts may use each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

# A module: the names below the crate root. A path: names with `crate`, `self` or `super` at its beginning.
Module = tuple[str, ...]
Names = tuple[str, ...]

USE = re.compile(r"\b(?P<public>pub(?:\([^)]*\))?\s+)?use\s+(?P<tree>[^;]+);")
PATH = re.compile(r"(?<![\w:])\w+(?:\s*::\s*\w+)+")
DEFINITION = r"\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\s+{}\b"


def module_of(path: str) -> Module:
    """`src/likelihood/gaussian.rs` -> ("likelihood", "gaussian"); the root and heads of folders by their folder."""
    names = tuple(path.removeprefix("src/").removesuffix(".rs").split("/"))
    return names[:-1] if names[-1] in ("mod", "lib") else names


def items_of(tree: str, before: Names = ()) -> Iterator[tuple[str, Names]]:
    """Name and path of each item of a use tree: `a::{B, c::D as E}` -> (B, a::B), (E, a::c::D)."""
    tree = tree.strip()
    if tree.startswith("{"):
        depth, item = 0, ""
        for sign in tree[1 : tree.rindex("}")] + ",":
            depth += {"{": 1, "}": -1}.get(sign, 0)
            if sign == "," and depth == 0:
                yield from items_of(item, before)
                item = ""
            else:
                item += sign
    elif match := re.match(r"(\w+)\s*::\s*(.*)", tree, re.DOTALL):
        yield from items_of(match[2], (*before, match[1]))
    elif match := re.fullmatch(r"(\w+|\*)(?:\s+as\s+(\w+))?", tree):
        path = before if match[1] == "self" else (*before, match[1])
        yield match[2] or path[-1], path


@dataclass
class Source:
    """A file: its code without `use` declarations, and the names that these bring in."""

    code: str
    names: dict[str, Names] = field(default_factory=dict)
    globs: list[Names] = field(default_factory=list)

    @classmethod
    def read(cls, text: str) -> Source:
        """Split the code of a file, without comments, strings and tests."""
        source = cls(USE.sub(" ", text))
        for declaration in USE.finditer(text):
            for name, path in items_of(declaration["tree"]):
                if name == "*":
                    source.globs.append(path[:-1])
                else:
                    source.names[name] = path
        return source


class Core:
    """All files by their modules; finds the file in which a path ends."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self.sources = {module_of(path): Source.read(code) for path, code in files.items()}
        self.paths = {module_of(path): path for path in files}

    def home(self, here: Module, path: Names, visited: frozenset[tuple[Module, Names]] = frozenset()) -> Module | None:
        """Return the module whose file defines what a path names in the module `here`; None outside the crate."""
        if (here, path) in visited:
            return None
        visited |= {(here, path)}
        head, rest = path[0], path[1:]
        if head == "crate":
            return self._below((), rest, visited)
        if head == "self":
            return self._below(here, rest, visited)
        if head == "super":
            n_up = next((at for at, name in enumerate(path) if name != "super"), len(path))
            return self._below(here[: len(here) - n_up], path[n_up:], visited)
        if (*here, head) in self.sources:
            return self._below((*here, head), rest, visited)
        return self.home(here, (*self.sources[here].names[head], *rest), visited) if self._has(here, head) else None

    def _has(self, module: Module, name: str) -> bool:
        return name in self.sources[module].names

    def _below(self, module: Module, path: Names, visited: frozenset[tuple[Module, Names]]) -> Module | None:
        """Follow a path from a module down, through what the module brings in."""
        if not path or module not in self.sources:
            return module if module in self.sources else None
        if (*module, path[0]) in self.sources:
            return self._below((*module, path[0]), path[1:], visited)
        if self._has(module, path[0]):
            return self.home(module, path, visited)
        for glob in self.sources[module].globs:
            found = self.home(module, (*glob, path[0]), visited)
            if found is not None and re.search(DEFINITION.format(path[0]), self.sources[found].code):
                return found
        return module

    def uses(self, here: Module) -> set[Module]:
        """Return the modules whose files a file uses."""
        source = self.sources[here]
        words = set(re.findall(r"\w+", source.code))
        paths = [path for name, path in source.names.items() if name in words]
        paths += [tuple(re.split(r"\s*::\s*", match.group())) for match in PATH.finditer(source.code)]
        homes = {self.home(here, path) for path in paths}
        return {home for home in homes if home is not None and not is_of_one_folder(here, home)}


def is_of_one_folder(one: Module, other: Module) -> bool:
    """Whether one of two modules is the other or contains it."""
    n_common = min(len(one), len(other))
    return one[:n_common] == other[:n_common]


def circles(files: Mapping[str, str]) -> Iterator[list[str]]:
    """Find circles among files, given by path with their code; each circle without those found before it."""
    core = Core(files)
    uses = {module: sorted(core.uses(module)) for module in sorted(core.sources)}
    while True:
        try:
            TopologicalSorter(uses).prepare()
        except CycleError as error:
            # In the order in which each uses the next.
            circle = error.args[1][::-1]
            yield [core.paths[module] for module in circle]
            for one, other in pairwise(circle):
                uses[one].remove(other)
        else:
            return
