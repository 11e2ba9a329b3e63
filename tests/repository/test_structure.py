"""The structure check finds each kind of breach in a small invented tree, and nothing in a sound one."""

from pathlib import Path

import pytest

import check_structure

FLOORS = (("error", "real"), ("linalg",), ("data",), ("fit",))
ONLY_ONE = (check_structure.OnlyOne("pass loop", home="src/fit/mod.rs", suspects=(r"\bfor\s+\w*pass\w*\s+in\b",)),)

SOUND = {
    "Cargo.toml": """
[workspace.package]
version = "0.1.0"
[package]
name = "core"
version.workspace = true
[dependencies]
faer = "0.24"
""",
    "crates/python/Cargo.toml": '[package]\nname = "binding"\nversion.workspace = true\n',
    "crates/python/src/lib.rs": "use pyo3::prelude::*;\n",
    "pyproject.toml": '[project]\nname = "core"\ndynamic = ["version"]\n',
    "CITATION.cff": "cff-version: 1.2.0\n",
    "CHANGELOG.md": """# Changelog

Words about the form.

## [Unreleased]

### Added

- One thing,
  said in two lines.

## [0.1.0] - 2026-01-31

### Fixed

- Another.

[0.1.0]: https://example.org
""",
    "src/lib.rs": "//! The core.\npub mod data;\npub use error::{Error, Result};\n",
    "src/error.rs": "/// `println!` in a comment, and crate::fit, are no code.\npub struct Error;\n",
    "src/real.rs": 'use crate::error::Error;\npub const TEXT: &str = "crate::fit and println!(";\n',
    "src/linalg/mod.rs": "use faer::Mat;\nmod gemm;\n",
    "src/linalg/gemm.rs": "use super::super::error::Error;\nuse super::Mat;\nuse faer::linalg::matmul;\n",
    "src/data.rs": """use crate::{error::{Error, Result}, linalg};
pub fn lifetime<'a>(x: &'a str, y: &'a str) -> char { '"' }
mod inner { use super::Rows; }

#[cfg(test)]
mod tests {
    use crate::fit::run;
    fn braces() { println!("{}", '}'); }
}
pub fn after_tests() {}
""",
    "src/fit/mod.rs": """use crate::data::Rows;
#[cfg(test)]
mod tests;
// only-one: pass loop
pub fn run() { for pass_index in 0..3 {} }
""",
    "src/fit/tests.rs": "use faer::Mat;\nfn test() { for pass in 0..2 { println!(); } }\n",
    "python/stickbreak/__init__.py": """import math
import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from stickbreak._core import __version__
rows = np.asarray([math.nan], dtype=np.float64)
csr = scipy.sparse.csr_array
seeds = np.random.SeedSequence(0)
""",
    "python/stickbreak/demo/figure.py": "import numpy as np\nnp.linalg.eigh\n",
    "scripts/tool.py": "print('allowed')\n",
}

# What is changed in the sound tree: file, text to put in its place (None: appended), and a part of the complaint.
BREACHES = {
    "a higher floor": ("src/real.rs", "use crate::data::Rows;\n", "src/real.rs:3: `real` (floor 0) may not use `data`"),
    "right on its floor": ("src/error.rs", "use crate::real::Real;\n", "`error` (floor 0) may not use `real`"),
    "inside a use tree": ("src/real.rs", "use crate::{error::Error, fit::{run, stop}};\n", "may not use `fit`"),
    "a path in code": ("src/real.rs", "fn f() { crate::fit::run() }\n", "may not use `fit`"),
    "by super": ("src/linalg/gemm.rs", "use super::super::fit::run;\n", "src/linalg/gemm.rs:4: `linalg` (floor 1)"),
    "a re-export": ("src/data.rs", "use crate::Error;\n", "`Error` is not a module in the table of floors"),
    "unknown module": ("src/extra.rs", "pub fn extra() {}\n", "`extra` is not in the table of floors"),
    "mark twice": ("src/data.rs", "// only-one: pass loop\nfn run() {}\n", "must stand exactly once, and here"),
    "mark above no function": ("src/fit/mod.rs", "// only-one: pass loop\nconst N: usize = 1;\n", "directly above"),
    "unknown mark": (
        "src/data.rs",
        "// only-one: nothing\nfn run() {}\n",
        "`// only-one: nothing` is not in the table",
    ),
    "a second loop": ("src/data.rs", "fn f() { for pass in 0..3 {} }\n", "looks like a second pass loop"),
    "faer elsewhere": ("src/data.rs", "use faer::Mat;\n", "src/data.rs:11: only src/linalg and benches may name faer"),
    "pyo3 in the core": ("src/data.rs", "use pyo3::Python;\n", "only crates/python may name pyo3"),
    "core depends on pyo3": ("Cargo.toml", 'pyo3 = "0.30"\n', "the core may not depend on pyo3"),
    "numpy function": ("python/stickbreak/__init__.py", "np.exp(rows)\n", "__init__.py:9: `numpy.exp` computes"),
    "numpy random": ("python/stickbreak/__init__.py", "np.random.normal(0, 1)\n", "`numpy.random.normal` computes"),
    "numpy module": ("python/stickbreak/__init__.py", "import numpy.linalg\n", "`numpy.linalg` computes"),
    "from numpy": ("python/stickbreak/__init__.py", "from numpy import log\n", "`numpy.log` computes"),
    "scipy": ("python/stickbreak/__init__.py", "from scipy.special import psi\n", "`scipy.special.psi` computes"),
    "math": ("python/stickbreak/__init__.py", "math.lgamma(2.0)\n", "`math.lgamma` computes"),
    "matrix product": ("python/stickbreak/__init__.py", "rows @ rows\n", "`@` computes"),
    "a type of the same name": ("src/real.rs", "enum Error {}\n", "there is a type `Error` in src/error.rs already"),
    "long Rust file": ("src/data.rs", "// line\n" * 500, "more than 500"),
    "long Python file": ("scripts/tool.py", "# line\n" * 500, "scripts/tool.py: 501 lines"),
    "wide line of Rust": ("src/data.rs", "// " + "é" * 118 + "\n", "src/data.rs:11: 121 columns, more than 120"),
    "version in a crate": ("crates/python/Cargo.toml", '[package]\nversion = "1.0.0"\n', "version.workspace = true"),
    "version in pyproject": ("pyproject.toml", 'version = "1.0.0"\n', "the version must be dynamic"),
    "version in Python": ("python/stickbreak/__init__.py", '__version__ = "1"\n', "must come from the built core"),
    "version in the citation": ("CITATION.cff", "version: 1.0.0\n", "must not repeat the version"),
    "target-cpu": (".cargo/config.toml", 'rustflags = ["-Ctarget-cpu=native"]\n', "no target-cpu"),
    "citation": ("src/data.rs", "/// The optimum (mathematics 4.99).\n", "has no section or item 4.99"),
    "unknown kind of change": ("CHANGELOG.md", "### Improved\n\n- x\n", "CHANGELOG.md:19: not a release"),
    "release without a date": ("CHANGELOG.md", "## [0.0.1]\n", "not a release"),
    "change without a dash": ("CHANGELOG.md", "A change.\n", "not a release"),
    "empty kind": ("CHANGELOG.md", "### Fixed\n\n", "`### Fixed` is empty"),
}
REPLACED = {"version in a crate"}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(check_structure, "FLOORS", FLOORS)
    monkeypatch.setattr(check_structure, "ONLY_ONE", ONLY_ONE)
    for name, text in SOUND.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_sound_tree_passes(tree: Path) -> None:
    assert check_structure.complaints(tree) == []


@pytest.mark.parametrize("name", BREACHES)
def test_breach_is_found(tree: Path, name: str) -> None:
    file, text, expected = BREACHES[name]
    path = tree / file
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.read_text(encoding="utf-8") if path.exists() and name not in REPLACED else ""
    path.write_text(before + text, encoding="utf-8")
    found = check_structure.complaints(tree)
    assert any(expected in complaint for complaint in found), found


def test_missing_mark_and_stale_table(tree: Path) -> None:
    fit = tree / "src/fit/mod.rs"
    fit.write_text(fit.read_text(encoding="utf-8").replace("// only-one: pass loop\n", ""), encoding="utf-8")
    (tree / "src/real.rs").unlink()
    found = check_structure.complaints(tree)
    assert found == [
        "scripts/check_structure.py: the table of floors names `real`, which is not in src/",
        "src/fit/mod.rs: `// only-one: pass loop` must stand exactly once, and here; found: nowhere",
    ]


def test_lines_of_tests_do_not_count(tree: Path) -> None:
    long_test = "#[cfg(test)]\nmod tests {\n" + "    // line\n    fn f() {}\n" * 400 + "}\n"
    (tree / "src/real.rs").write_text("pub trait Real {}\n" + long_test, encoding="utf-8")
    assert check_structure.complaints(tree) == []
