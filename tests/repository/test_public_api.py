"""The public API is the one in the snapshot; `make api` rewrites it, and the diff shows what changed."""

from pathlib import Path

import public_api
import stickbreak

SOURCES = {
    "__init__.py": "from small.core import Colour, Narrow, Point, shift\n\n"
    "__all__ = ['Colour', 'Narrow', 'Point', 'shift', 'LIMIT']\n"
    "LIMIT: int = 3\nhidden = 1\n",
    "core.py": '''
from dataclasses import dataclass
from enum import Enum

@dataclass(frozen=True, kw_only=True)
class Base:
    x: float = 0.0
    def norm(self, *, order: int = 2) -> float:
        """Length."""
    def _secret(self) -> None: ...

@dataclass(frozen=True, kw_only=True)
class Point(Base):
    y: float
    @property
    def size(self) -> int:
        """Size."""

class Colour(Enum):
    RED = "red"

class Wide:
    def __init__(self, message: str) -> None:
        self.found = message

class Narrow(Wide):
    """Inherits all it has."""

def shift(point: Point, /, by: float = 1.0) -> Point:
    """Moves."""
''',
}

EXPECTED = """# small

class Colour(Enum)
    RED = 'red'

LIMIT: int

class Narrow(Wide)
    Narrow(message: str)
    found

class Point(Base)
    Point(*, x: float = 0.0, y: float)
    def norm(*, order: int = 2) -> float
    size: int

def shift(point: Point, /, by: float = 1.0) -> Point
"""


def test_surface_is_the_snapshot() -> None:
    assert public_api.snapshot() == public_api.SNAPSHOT.read_text(encoding="utf-8")


def test_snapshot_names_everything_that_can_be_imported() -> None:
    text = public_api.SNAPSHOT.read_text(encoding="utf-8")
    for name in stickbreak.__all__:
        assert hasattr(stickbreak, name)
        assert f" {name}" in text or f"\n{name}" in text


def test_snapshot_of_a_small_package(tmp_path: Path) -> None:
    package = tmp_path / "small"
    package.mkdir()
    for name, source in SOURCES.items():
        (package / name).write_text(source, encoding="utf-8")
    assert public_api.snapshot(tmp_path, ("small",)) == EXPECTED
