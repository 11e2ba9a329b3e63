"""`scripts/bits.py` finds differences between two builds, and refuses incomparable files."""

import json
from pathlib import Path

import numpy as np
import pytest

import bits


def write(path: Path, cases: dict[str, dict[str, str]], processor: str = "one") -> Path:
    path.write_text(json.dumps({"machine": {"processors": [processor]}, "cases": cases}))
    return path


def test_differences_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = write(tmp_path / "one.json", {"a": {"elbo": "1"}, "b": {"elbo": "1", "counts": "2"}, "gone": {}})
    other = write(tmp_path / "other.json", {"a": {"elbo": "1"}, "b": {"elbo": "3", "counts": "2"}, "new": {}})
    assert bits.compare(one, one) == 0
    assert bits.compare(one, other) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "0 of 3 cases differ"
    assert lines[1] == "b: elbo"
    assert [line.partition(":")[0] for line in lines[2:4]] == ["gone", "new"]
    assert lines[4] == "3 of 4 cases differ"


def test_two_machines_are_not_compared(tmp_path: Path) -> None:
    files = [write(tmp_path / f"{name}.json", {}, processor=name) for name in ("one", "other")]
    assert bits.compare(*files) == 2


def test_hashes_see_the_last_bit() -> None:
    values = np.array([0.0, 1.0])
    others = [np.array([-0.0, 1.0]), np.nextafter(values, 2.0), values.astype(np.float32), values[:, None]]
    hashes = {bits.digest(each) for each in [values, *others]}
    assert len(hashes) == 5
    assert bits.digest(values, values) != bits.digest(values)
    assert bits.digest(values[::2]) == bits.digest(values[:1])


@pytest.mark.slow
def test_cases_repeat_themselves_whatever_the_threads(tmp_path: Path) -> None:
    words = ["threads/moves", "threads/counts", "threads/starts"]
    for name in ("one", "other"):
        bits.write(tmp_path / f"{name}.json", words)
    assert bits.compare(tmp_path / "one.json", tmp_path / "other.json") == 0
    found = json.loads((tmp_path / "one.json").read_text())["cases"]
    assert len(found) == 9 * len(bits.machine()["instruction_sets"])
    assert all("refused" not in parts and len(parts) > 15 for parts in found.values())
    same = {name.replace("threads=2", "").replace("threads=3", "").replace("threads=1", "") for name in found}
    for stem in same:
        one, two, three = (found[f"{stem}threads={threads}"] for threads in (1, 2, 3))
        assert one == two == three


def test_names_are_unique(tmp_path: Path) -> None:
    names = [case.name for case in bits.all_cases(tmp_path)]
    assert len(names) == len(set(names)) > 400
    groups = {name.split("/")[0] for name in names}
    assert {"moves", "topics", "trees", "samplers", "hierarchies"} <= groups
