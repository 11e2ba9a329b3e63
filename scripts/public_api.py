"""The public API as text: every public name with its signature, read from the sources.

`make api` rewrites the snapshot tests/api/public_api.txt; a test compares it, so that each change of the surface
shows in a diff.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import griffe

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = ROOT / "tests" / "api" / "public_api.txt"
# Modules whose names users import; `stickbreak` itself re-exports the rest.
MODULES = ("stickbreak", "stickbreak.plot", "stickbreak.sklearn", "stickbreak.testing")


def exported(module: griffe.Module) -> Iterator[tuple[str, griffe.Object | griffe.Alias]]:
    """Yield the names in `__all__`, in alphabetical order."""
    for name in sorted(str(name) for name in module.exports or ()):
        yield name, final(module[name])


def final(member: griffe.Object | griffe.Alias) -> griffe.Object | griffe.Alias:
    return member.final_target if isinstance(member, griffe.Alias) else member


def constructor(cls: griffe.Class) -> str:
    """Return the signature of the constructor, possibly inherited; empty if there is none."""
    inherited = cls.all_members.get("__init__")
    target = final(inherited) if inherited else None
    if isinstance(target, griffe.Function):
        return str(target.signature(name=cls.name, return_type=False))
    return cls.signature()


def members(cls: griffe.Class) -> Iterator[str]:
    """Yield public attributes, properties and methods, including inherited ones."""
    # The constructor lists the fields of a dataclass.
    fields = {parameter.name for parameter in cls.parameters} if "dataclass" in cls.labels else set()
    for name, member in sorted(cls.all_members.items()):
        target = final(member)
        if name.startswith("_") or name in fields:
            continue
        if isinstance(target, griffe.Function):
            yield f"    def {target.signature()}"
        elif isinstance(target, griffe.Attribute):
            annotation = f": {target.annotation}" if target.annotation else ""
            value = f" = {target.value}" if target.value and "class-attribute" in target.labels else ""
            yield f"    {name}{annotation}{value}"


def lines(name: str, member: griffe.Object | griffe.Alias) -> Iterator[str]:
    """Yield the lines for one public name."""
    if isinstance(member, griffe.Class):
        bases = ", ".join(str(base) for base in member.bases)
        yield f"class {name}({bases})" if bases else f"class {name}"
        if signature := constructor(member):
            yield f"    {signature}"
        yield from members(member)
    elif isinstance(member, griffe.Function):
        yield f"def {member.signature()}"
    elif isinstance(member, griffe.Attribute):
        yield f"{name}: {member.annotation}" if member.annotation else name
    else:
        yield name


def snapshot(search_path: Path = ROOT / "python", modules: tuple[str, ...] = MODULES) -> str:
    """Return the whole API as text."""
    text = []
    for path in modules:
        module = griffe.load(path, search_paths=[search_path], allow_inspection=False)
        assert isinstance(module, griffe.Module)
        text += [f"# {path}", ""]
        for name, member in exported(module):
            text += [*lines(name, member), ""]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the snapshot")
    if parser.parse_args().write:
        SNAPSHOT.parent.mkdir(parents=True, exist_ok=True)
        SNAPSHOT.write_text(snapshot(), encoding="utf-8")
        print(f"wrote {SNAPSHOT.relative_to(ROOT)}")
    else:
        print(snapshot(), end="")


if __name__ == "__main__":
    main()
