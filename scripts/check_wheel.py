"""Checks an sdist and the wheels built from it: what is in them, what they say of themselves, what they link to.

    python scripts/check_wheel.py FOLDER

`make wheel` runs it. The folder holds one sdist and at least one wheel, of the version in Cargo.toml.
"""

from __future__ import annotations

import email.message
import email.parser
import importlib.util
import platform
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MEBIBYTE = 1024 * 1024
MAX_SIZE = 10 * MEBIBYTE
# The oldest Linux, macOS and Windows that a wheel must say it serves, and the one Python interface it uses.
TAGS = re.compile(r"cp311-abi3-(.*\.)?(manylinux_2_17_(x86_64|aarch64)|macosx_\d+_\d+_(x86_64|arm64)|win_amd64)$")
AUDITED = re.compile(r'consistent\s+with\s+the\s+following\s+platform\s+tag:\s+"manylinux_2_17_')
LINK = re.compile(r"\]\((?!https?://|#)([^)]*)\)")

# Names relative to the package in a wheel, and to the sdist's folder.
IN_WHEEL = ("py.typed", "_core.pyi", "__init__.py", "testing/__init__.py")
LICENCES = ("LICENSE", "LICENSES-THIRD-PARTY.txt")
IN_SDIST = (*LICENCES, "README.md", "Cargo.lock", "Cargo.toml", "pyproject.toml", "src/lib.rs", "tests/conftest.py")
NOT_IN_SDIST = re.compile(r"^(target|dist|demo|shared|\.venv|\.git|benches/results)/|\.(so|pyd|pyc)$")
EXTENSION = re.compile(r"_core\.(abi3\.so|pyd)")


def metadata(text: bytes) -> email.message.Message:
    return email.parser.BytesParser().parsebytes(text)


def sdist_files(path: Path) -> dict[str, bytes]:
    """Every file of an sdist, by its name below the one folder in it."""
    files = {}
    with tarfile.open(path) as archive:
        for member in archive:
            reader = archive.extractfile(member)
            if reader is not None:
                files["/".join(PurePosixPath(member.name).parts[1:])] = reader.read()
    return files


def check_metadata(name: str, found: email.message.Message, project: dict[str, Any], version: str) -> Iterator[str]:
    """The metadata are those of pyproject.toml, and the description stands on its own."""
    if found["Version"] != version:
        yield f"{name}: the version is {found['Version']}, but Cargo.toml says {version}"
    if found["Requires-Python"] != project["requires-python"]:
        yield f"{name}: Requires-Python is {found['Requires-Python']}"
    if found["License-Expression"] != project["license"]:
        yield f"{name}: License-Expression is {found['License-Expression']}"
    for field, expected in [
        ("Classifier", project["classifiers"]),
        ("Provides-Extra", list(project["optional-dependencies"])),
    ]:
        if sorted(found.get_all(field, [])) != sorted(expected):
            yield f"{name}: {field} is {found.get_all(field, [])}, but pyproject.toml says {expected}"
    if not (found["Description-Content-Type"] or "").startswith("text/markdown"):
        yield f"{name}: the description is not marked as Markdown"
    description = str(found.get_payload())
    if not description.lstrip().startswith(f"# {project['name']}"):
        yield f"{name}: the description is not README.md"
    for link in LINK.findall(description):
        yield f"{name}: the link `{link}` of README.md leads nowhere outside the repository"


def check_sdist(path: Path, files: dict[str, bytes]) -> Iterator[str]:
    """The sources are whole, and nothing that was made is among them."""
    for wanted in IN_SDIST:
        if wanted not in files:
            yield f"{path.name}: {wanted} is missing"
    for name in sorted(files):
        if NOT_IN_SDIST.search(name):
            yield f"{path.name}: {name} does not belong there"


def check_wheel(path: Path, sdist: dict[str, bytes], project: dict[str, Any], version: str) -> Iterator[str]:
    """The package of the sdist with its built core, and nothing else."""
    name = project["name"]
    if not TAGS.search(path.stem):
        yield f"{path.name}: the tag is not one of abi3 from Python 3.11 and manylinux_2_17, macOS or Windows"
    if path.stat().st_size > MAX_SIZE:
        yield f"{path.name}: larger than {MAX_SIZE // MEBIBYTE} MiB"
    with zipfile.ZipFile(path) as archive:
        files = {entry: archive.read(entry) for entry in archive.namelist() if not entry.endswith("/")}
    about = f"{name}-{version}.dist-info"
    package = {file.removeprefix(f"{name}/") for file in files if file.startswith(f"{name}/")}
    sources = {file.removeprefix(f"python/{name}/") for file in sdist if file.startswith(f"python/{name}/")}
    built = {file for file in package if EXTENSION.fullmatch(file)}
    if len(built) != 1:
        yield f"{path.name}: there should be one built core, but there are {len(built)}"
    for wanted in IN_WHEEL:
        if wanted not in package:
            yield f"{path.name}: {name}/{wanted} is missing"
    for file in sorted((package - built) ^ sources):
        yield f"{path.name}: {name}/{file} is in {'the wheel' if file in package else 'the sdist'} only"
    for file in sorted(files):
        if not file.startswith((f"{name}/", f"{about}/")):
            yield f"{path.name}: {file} does not belong there"
    for licence in LICENCES:
        if files.get(f"{about}/licenses/{licence}") != sdist.get(licence):
            yield f"{path.name}: the licence file {licence} is missing, or another one"
    if f"{about}/METADATA" not in files:
        yield f"{path.name}: no metadata for the version {version}"
        return
    yield from check_metadata(path.name, metadata(files[f"{about}/METADATA"]), project, version)


def check_links(path: Path) -> Iterator[str]:
    """A Linux wheel needs no library, and no version of one, that its tag does not promise.

    auditwheel looks at it, on a machine of its kind.
    """
    if not (sys.platform.startswith("linux") and path.stem.endswith(f"linux_2_17_{platform.machine()}")):
        return
    if importlib.util.find_spec("auditwheel") is None:
        yield "auditwheel is not installed: pip install --group wheel"
        return
    run = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(path)], capture_output=True, text=True)
    if run.returncode or not AUDITED.search(run.stdout):
        yield f"{path.name}: auditwheel does not grant the tag:\n{run.stdout}{run.stderr}"


def complaints(folder: Path, root: Path = ROOT) -> list[str]:
    """Everything that is wrong with the distributions in a folder, one line each."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["version"]
    sdists, wheels = sorted(folder.glob("*.tar.gz")), sorted(folder.glob("*.whl"))
    if len(sdists) != 1 or not wheels:
        return [f"{folder}: there should be one sdist and some wheels, but there are {len(sdists)} and {len(wheels)}"]
    sources = sdist_files(sdists[0])
    found = list(check_sdist(sdists[0], sources))
    if "PKG-INFO" in sources:
        found += check_metadata(sdists[0].name, metadata(sources["PKG-INFO"]), project, version)
    else:
        found.append(f"{sdists[0].name}: PKG-INFO is missing")
    for wheel in wheels:
        found += [*check_wheel(wheel, sources, project, version), *check_links(wheel)]
    return found


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    folder = Path(sys.argv[1])
    found = complaints(folder)
    for complaint in found:
        print(complaint)
    print(f"{folder}: {len(found)} complaint{'s' if len(found) != 1 else ''}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
