"""The licences of the crates that are linked into the core: one line for each crate, and the texts."""

import tomllib
from pathlib import Path

import licences


def test_every_crate_of_the_list_is_one_that_is_locked(checkout: Path) -> None:
    lock = tomllib.loads((checkout / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    locked = {f"{package['name']} {package['version']}" for package in lock}
    text = (checkout / "LICENSES-THIRD-PARTY.txt").read_text(encoding="utf-8")
    listed = [line.split(": ")[0] for line in text.split("\n\n")[1].splitlines()]
    assert len(listed) > 30
    assert set(listed) <= locked
    for needed in ("faer", "pyo3", "rayon", "numpy", "serde"):
        assert any(title.startswith(f"{needed} ") for title in listed)


def crate(folder: Path, name: str, **files: str) -> licences.Crate:
    place = folder / name
    place.mkdir()
    for file, text in files.items():
        (place / file.replace("_", "-")).write_text(text, encoding="utf-8")
    return licences.Crate(name, "1.0.0", "MIT", "https://example.org", "A. Nother", place)


def test_texts_stand_once_below_the_crates_that_have_them(tmp_path: Path) -> None:
    crates = [
        crate(tmp_path, "one", LICENSE_MIT="Do as\nyou like.  ", README="No licence."),
        crate(tmp_path, "other", COPYING="Do as you\r\nlike."),
        crate(tmp_path, "silent"),
    ]
    text = licences.written(crates)
    assert text.count("you like.") == 1
    assert "Of one 1.0.0, other 1.0.0:" in text
    assert "silent 1.0.0, copyright of A. Nother" in text
    assert "No licence" not in text
    assert "one 1.0.0: MIT, https://example.org" in text
