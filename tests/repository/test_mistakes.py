"""Mistakes of `scripts/injected_bugs.py` are where they say, so that a change of the code cannot lose them."""

from pathlib import Path

import injected_bugs


def test_the_text_of_every_mistake_stands_once() -> None:
    for one in injected_bugs.ALL:
        text = (injected_bugs.ROOT / one.file).read_text(encoding="utf-8")
        assert text.count(one.find) == 1, f"mistake {one.number} in {one.file}"


def test_numbers_are_unique_and_tests_are_there() -> None:
    numbers = [one.number for one in injected_bugs.ALL]
    assert len(set(numbers)) == len(numbers)
    for one in injected_bugs.ALL:
        if one.seen.endswith(".py"):
            assert Path(injected_bugs.ROOT / one.seen).is_file(), one.number
