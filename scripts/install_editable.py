"""Installs the package into the environment of this interpreter so that its sources are used where they lie.

    python scripts/install_editable.py [PROGRAM]

The same as `maturin develop`, but without a build: `make` builds the core by cargo, together with what else is tested,
and lays it into the package. PROGRAM is maturin, found on the path by default; it knows the metadata of the package.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    maturin = sys.argv[1] if len(sys.argv) > 1 else "maturin"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [maturin, "pep517", "write-dist-info", "--metadata-directory", name, "--interpreter", sys.executable]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        (information,) = folder.glob("*.dist-info")
        wheel = folder / f"{information.name.removesuffix('.dist-info')}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            files = [path for path in information.rglob("*") if path.is_file()]
            members = {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in files}
            members["stickbreak.pth"] = f"{ROOT / 'python'}\n"
            # Only names: what lies in a folder of our own needs no hashes.
            record = f"{information.name}/RECORD"
            members[record] = "".join(f"{member},,\n" for member in {**members, record: ""})
            for member, text in members.items():
                archive.writestr(member, text)
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # The version is often the same as before, the metadata need not be.
        subprocess.run([*pip, f"{wheel}[demo]"], check=True)
        return subprocess.run([*pip, "--force-reinstall", "--no-deps", str(wheel)]).returncode


if __name__ == "__main__":
    sys.exit(main())
