"""Workflows parse, run what is there, ask for no more than they need, and pin actions by commit."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(path.name for path in FOLDER.glob("*.yml"))
# A commit, and the release that it is in a comment.
PINNED = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")


def complaints(text: str) -> Iterator[str]:
    workflow: dict[str, Any] = yaml.safe_load(text)
    if workflow.get("permissions") != {"contents": "read"}:
        yield "permissions must be `contents: read`"
    if "concurrency" not in workflow:
        yield "no concurrency group"
    for name, job in workflow["jobs"].items():
        if not 0 < job.get("timeout-minutes", 0) <= 90:
            yield f"{name}: timeout-minutes must be at most 90"
        for step in job["steps"]:
            if "actions/checkout@" in step.get("uses", "") and step.get("with", {}).get("persist-credentials", True):
                yield f"{name}: the checkout must not keep credentials"
    for use in re.findall(r"\buses: *(.*)", text):
        if not PINNED.fullmatch(use):
            yield f"`{use}` is not pinned by a commit, with its version in a comment"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_workflow_is_sound(name: str) -> None:
    assert list(complaints((FOLDER / name).read_text(encoding="utf-8"))) == []


def test_every_push_and_pull_request_runs_the_script() -> None:
    text = (FOLDER / "ci.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    # YAML reads the key `on` as true.
    assert {"push", "pull_request"} <= workflow[True].keys()
    (job,) = workflow["jobs"].values()
    assert [step["run"] for step in job["steps"] if "run" in step][-1] == ".ci/run"
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111


def test_breaches_are_found() -> None:
    sound = (FOLDER / "ci.yml").read_text(encoding="utf-8")
    pin = re.search(r"actions/checkout@.*", sound)
    assert pin is not None
    changes = {
        pin.group(): "actions/checkout@v6",
        "contents: read": "contents: write",
        "persist-credentials: false": "persist-credentials: true",
        "timeout-minutes: 90": "timeout-minutes: 360",
        "concurrency:": "env:",
    }
    for before, after in changes.items():
        assert len(list(complaints(sound.replace(before, after)))) == 1, after
