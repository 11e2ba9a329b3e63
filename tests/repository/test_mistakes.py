"""Mistakes of `scripts/injected_bugs.py` are where they say, so that a change of the code cannot lose them."""

from pathlib import Path

import injected_bugs


def test_the_text_of_every_mistake_stands_once() -> None:
    """Also beside the others: no two mistakes are in the same place."""
    texts = injected_bugs.with_mistakes(injected_bugs.ROOT)
    assert all(injected_bugs.SWITCH in text or "injected::is" in text for text in texts.values())


def test_numbers_are_unique_and_tests_are_there() -> None:
    numbers = [one.number for one in injected_bugs.ALL]
    assert len(set(numbers)) == len(numbers)
    for one in injected_bugs.ALL:
        if one.seen.endswith(".py"):
            assert Path(injected_bugs.ROOT / one.seen).is_file(), one.number
