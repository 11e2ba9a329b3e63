"""Changes of the bytes of a file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Generator = np.random.Generator
Mutation = Callable[[Generator, bytes], bytes]


def _span(rng: Generator, content: bytes, longest: int = 64) -> tuple[int, int]:
    first = int(rng.integers(0, max(1, len(content))))
    return first, min(len(content), first + int(rng.integers(1, longest)))


def cut(rng: Generator, content: bytes) -> bytes:
    return content[: rng.integers(0, len(content))]


def flip(rng: Generator, content: bytes) -> bytes:
    changed = bytearray(content)
    for index in rng.integers(0, len(content), size=rng.integers(1, 9)):
        changed[index] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def overwrite(rng: Generator, content: bytes) -> bytes:
    first, last = _span(rng, content)
    run = rng.choice([b"\0", b"\xff", b"9", b'"', b"[", b"{", rng.bytes(1)])
    return content[:first] + bytes(run) * (last - first) + content[last:]


def remove(rng: Generator, content: bytes) -> bytes:
    first, last = _span(rng, content)
    return content[:first] + content[last:]


def insert(rng: Generator, content: bytes) -> bytes:
    first, last = _span(rng, content)
    return content[:first] + rng.bytes(last - first) + content[first:]


def repeat(rng: Generator, content: bytes) -> bytes:
    first, last = _span(rng, content, 512)
    return content[:last] + content[first:last] * int(rng.integers(1, 50)) + content[last:]


def longer(rng: Generator, content: bytes) -> bytes:
    return content + rng.bytes(int(rng.integers(1, 100_000)))


def splice(rng: Generator, content: bytes, other: bytes) -> bytes:
    """Return the beginning of one content and the end of another."""
    return content[: rng.integers(0, len(content))] + other[rng.integers(0, len(other)) :]


# Flips are tried twice as often.
ALL: tuple[Mutation, ...] = (cut, flip, flip, overwrite, remove, insert, repeat, longer)


def mutated(rng: Generator, content: bytes, mutations: tuple[Mutation, ...] = ALL) -> bytes:
    """Return the content after one or two changes."""
    for _ in range(rng.integers(1, 3)):
        content = mutations[rng.integers(len(mutations))](rng, content or b"\0")
    return content
