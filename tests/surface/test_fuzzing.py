"""Seeded cases of every kind: damaged files, wild arguments and command lines; `scripts/fuzz.py` does more."""

from pathlib import Path

import pytest

import fuzz
from fuzzing import callables

SABOTEUR = """
import os, sys, time

def run(seed, number):
    if number == 3:
        os.abort()
    if number == 5:
        raise ValueError("not an error of stickbreak")
    if number == 7:
        time.sleep(1000)
    return "fine"
"""


# How cases of a kind end that get through, and the number of cases for the quick tests.
WELL = {
    "files": ("loaded", 200),
    "inputs": ("success", 200),
    "checkpoints": ("resumed", 200),
    "data": ("read", 50),
    "commands": ("exit 0", 25),
    "callables": ("success", 50),
    "children": ("success", 50),
    "interrupts": ("interrupted", 50),
}


@pytest.mark.parametrize("kind", fuzz.KINDS)
def test_seeded_cases(kind: str) -> None:
    check(kind, WELL[kind][1])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n"), [(kind, WELL[kind][1] * 10) for kind in fuzz.KINDS])
def test_more_seeded_cases(kind: str, n: int) -> None:
    check(kind, n)


def check(kind: str, n: int) -> None:
    report = fuzz.campaign(kind, seed=2024, numbers=range(n), seconds=60)
    assert report.failures == []
    assert report.outcomes.total() == n
    # Some cases must succeed, otherwise the campaign would test only refusals.
    assert 0.02 < report.outcomes[WELL[kind][0]] / n < 0.9


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_public_callable_has_good_values() -> None:
    """Cases of callables begin with good values of all parameters: a new one needs a line in the table."""
    subjects = callables.subjects()
    assert {"fit", "Gaussian", "Trace.predict", "plot.topic", "BayesianMixture.fit"} <= set(subjects)
    for name in subjects:
        for parameter in callables.parameters_of(name):
            callables.good(name, parameter)


def test_crashes_hangs_and_other_errors_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The campaign reports cases that end in every wrong way, and runs the others."""
    (tmp_path / "saboteur.py").write_text(SABOTEUR)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    report = fuzz.campaign("saboteur", seed=0, numbers=range(9), seconds=2)
    assert report.outcomes == {"fine": 6, "failure": 1}
    crash, error, hang = sorted(report.failures)
    assert crash.startswith("saboteur:3 ")
    assert "ended with -6" in crash
    assert error.startswith("saboteur:5 ")
    assert "ValueError" in error
    assert hang.startswith("saboteur:7 ")
    assert "no end after 2 seconds" in hang


def test_a_campaign_that_cannot_begin_fails() -> None:
    report = fuzz.campaign("no_such_module", seed=0, numbers=range(5), seconds=60)
    assert len(report.failures) == 1
    assert "none begun" in report.failures[0]


def test_words_on_stderr_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chatterbox.py").write_text("import sys\ndef run(seed, number): print(number, file=sys.stderr)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    report = fuzz.campaign("chatterbox", seed=0, numbers=range(3), seconds=60)
    assert len(report.failures) == 1
    assert "words on stderr" in report.failures[0]
