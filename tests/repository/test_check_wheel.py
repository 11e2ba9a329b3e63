"""The check of distributions finds each kind of fault in a small invented one, and nothing in a sound one."""

import io
import platform
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import check_wheel

Files = dict[str, str]

PYPROJECT = """
[project]
name = "stickbreak"
requires-python = ">=3.11"
license = "BSD-3-Clause"
classifiers = ["Typing :: Typed"]
[project.optional-dependencies]
testing = ["hypothesis"]
"""
METADATA = """Metadata-Version: 2.4
Name: stickbreak
Version: 1.2.3
Classifier: Typing :: Typed
Provides-Extra: testing
License-Expression: BSD-3-Clause
Requires-Python: >=3.11
Description-Content-Type: text/markdown; charset=UTF-8

# stickbreak

[Here](https://example.org), [there](#there).
"""
PACKAGE = dict.fromkeys(("__init__.py", "_core.pyi", "py.typed", "testing/__init__.py"), "")
LICENCES = {"LICENSE": "Do as you like.", "LICENSES-THIRD-PARTY.txt": "So say others."}
WHEEL = "stickbreak-1.2.3-cp311-abi3-macosx_11_0_arm64.whl"


def sound_sdist() -> Files:
    files = dict.fromkeys(check_wheel.IN_SDIST, "") | {"PKG-INFO": METADATA, **LICENCES}
    return files | {f"python/stickbreak/{name}": text for name, text in PACKAGE.items()}


def sound_wheel() -> Files:
    about = "stickbreak-1.2.3.dist-info"
    files = {f"stickbreak/{name}": text for name, text in PACKAGE.items()} | {"stickbreak/_core.abi3.so": "\x7fELF"}
    return files | {
        f"{about}/METADATA": METADATA,
        **{f"{about}/licenses/{name}": text for name, text in LICENCES.items()},
    }


def complaints(folder: Path, sdist: Files, wheel: Files, name: str = WHEEL) -> list[str]:
    root, dist = folder / "root", folder / "dist"
    for place in (root, dist):
        place.mkdir()
    (root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    (root / "Cargo.toml").write_text('[workspace.package]\nversion = "1.2.3"\n', encoding="utf-8")
    with tarfile.open(dist / "stickbreak-1.2.3.tar.gz", "w:gz") as archive:
        for file, text in sdist.items():
            member = tarfile.TarInfo(f"stickbreak-1.2.3/{file}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    with zipfile.ZipFile(dist / name, "w") as archive:
        for file, text in wheel.items():
            archive.writestr(file, text)
    return check_wheel.complaints(dist, root)


def test_sound_distributions_pass(tmp_path: Path) -> None:
    assert complaints(tmp_path, sound_sdist(), sound_wheel()) == []


def changed(files: Files, name: str, old: str, new: str) -> None:
    assert old in files[name]
    files[name] = files[name].replace(old, new)


INFO = "stickbreak-1.2.3.dist-info"
SPOILT_WHEELS: dict[str, tuple[Callable[[Files], object], str]] = {
    "no marker of types": (lambda files: files.pop("stickbreak/py.typed"), "stickbreak/py.typed is missing"),
    "no stub": (lambda files: files.pop("stickbreak/_core.pyi"), "stickbreak/_core.pyi is missing"),
    "no core": (lambda files: files.pop("stickbreak/_core.abi3.so"), "one built core, but there are 0"),
    "a module too few": (lambda files: files.pop("stickbreak/__init__.py"), "__init__.py is in the sdist only"),
    "data": (lambda files: files.update({"stickbreak/rows.npy": ""}), "rows.npy is in the wheel only"),
    "tests": (lambda files: files.update({"tests/test_a.py": ""}), "tests/test_a.py does not belong there"),
    "no licence": (lambda files: files.pop(f"{INFO}/licenses/LICENSE"), "the licence file LICENSE is missing"),
    "no licences of crates": (
        lambda files: changed(files, f"{INFO}/licenses/LICENSES-THIRD-PARTY.txt", "others", "nobody"),
        "LICENSES-THIRD-PARTY.txt is missing, or another one",
    ),
    "no metadata": (lambda files: files.pop(f"{INFO}/METADATA"), "no metadata for the version 1.2.3"),
    "another version": (lambda files: changed(files, f"{INFO}/METADATA", "1.2.3", "1.2.4"), "the version is 1.2.4"),
    "no extra": (
        lambda files: changed(files, f"{INFO}/METADATA", "Extra: testing", "Extra: test"),
        "Provides-Extra is",
    ),
    "no classifier": (lambda files: changed(files, f"{INFO}/METADATA", "Typing :: Typed", "Typing"), "Classifier is"),
    "a link into the repository": (
        lambda files: changed(files, f"{INFO}/METADATA", "https://example.org", "docs/index.md"),
        "the link `docs/index.md` of README.md leads nowhere",
    ),
}


@pytest.mark.parametrize("name", SPOILT_WHEELS)
def test_faults_of_a_wheel(tmp_path: Path, name: str) -> None:
    spoil, expected = SPOILT_WHEELS[name]
    wheel = sound_wheel()
    spoil(wheel)
    found = complaints(tmp_path, sound_sdist(), wheel)
    assert any(expected in complaint for complaint in found), found


@pytest.mark.parametrize("tag", ["cp311-cp311-macosx_11_0_arm64", "cp311-abi3-linux_x86_64", "py3-none-any"])
def test_tags(tmp_path: Path, tag: str) -> None:
    found = complaints(tmp_path, sound_sdist(), sound_wheel(), f"stickbreak-1.2.3-{tag}.whl")
    assert any("the tag is not one of" in complaint for complaint in found), found


def test_faults_of_an_sdist(tmp_path: Path) -> None:
    sdist = sound_sdist() | {"benches/results/raw.txt": "", "python/stickbreak/_core.abi3.so": ""}
    del sdist["Cargo.lock"]
    found = complaints(tmp_path, sdist, sound_wheel())
    assert "stickbreak-1.2.3.tar.gz: Cargo.lock is missing" in found
    assert "stickbreak-1.2.3.tar.gz: benches/results/raw.txt does not belong there" in found
    assert "stickbreak-1.2.3.tar.gz: python/stickbreak/_core.abi3.so does not belong there" in found


def test_an_empty_folder_is_no_release(tmp_path: Path) -> None:
    assert "there should be one sdist and some wheels" in check_wheel.complaints(tmp_path)[0]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="auditwheel looks at Linux wheels on Linux")
def test_links_of_a_linux_wheel_are_audited(tmp_path: Path) -> None:
    """This one only says that it is a manylinux wheel."""
    name = f"stickbreak-1.2.3-cp311-abi3-manylinux_2_17_{platform.machine()}.whl"
    found = complaints(tmp_path, sound_sdist(), sound_wheel(), name)
    assert any("auditwheel" in complaint for complaint in found), found


def test_links_of_our_own_description_lead_outside() -> None:
    assert check_wheel.LINK.findall((Path(__file__).parents[2] / "README.md").read_text()) == []
