"""Checks the shape of the repository: floors, the "only one" rule, sizes, and who may name what.

`make lint` runs it. The tables at the top are the rules; the functions below only read the files.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from check_citations import check_citations
from rust_circles import circles

# Floors of src/, lowest first. A module may use lower floors and, on its own floor, only modules to its left.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("error", "hash", "payload", "real", "rng", "room", "simd", "parallel", "tree_sum"),
    ("special", "linalg", "laws", "partitions"),
    ("component", "data", "responsibilities", "suffstats", "memo"),
    ("objective", "registry", "parameters", "scoring", "likelihood", "process", "background", "model"),
    ("grounds", "elbo", "evidence", "local_step", "global_step", "init"),
    ("moves",),
    ("visits", "executor", "fitted", "events", "identity", "mcmc", "fit", "estimate"),
)


@dataclass(frozen=True)
class OnlyOne:
    """Something written once: its place carries the comment `// only-one: SUBJECT`, likely seconds are searched for."""

    subject: str
    home: str
    # Regular expressions that betray a second implementation; not searched for in `home` and below `also`.
    suspects: tuple[str, ...]
    also: tuple[str, ...] = ()


ONLY_ONE: tuple[OnlyOne, ...] = (
    OnlyOne(
        subject="top-L selection",
        home="src/responsibilities/insert.rs",
        suspects=(
            r"\bselect_nth_unstable",
            r"\bBinaryHeap\b",
            r"\bfn\s+\w*(top_l|top_k|largest|select_top)\w*",
            r"\.sort\w*_by\w*\([^;]*\b(scores?|log_weights|responsibilit\w+)\b",
        ),
        # Other entries to the selection; the rows with the smallest keys.
        also=("src/moves/collect.rs", "src/responsibilities/row.rs", "src/responsibilities/top_l.rs"),
    ),
    OnlyOne(
        subject="summary accumulation",
        home="src/local_step/accumulate.rs",
        suspects=(
            r"\.accumulate\(",
            r"\b(counts|statistics|entropies)\b(\[[^\]]*\])?\s*\+=",
        ),
        # Sums of summaries; what one row or unit contributes.
        also=(
            "src/suffstats.rs",
            "src/likelihood/",
            "src/scoring/",
            "src/background/scorer.rs",
            "src/local_step/units.rs",
            "src/local_step/nodes/",
            "src/mcmc/prior.rs",
        ),
    ),
    OnlyOne(
        subject="loop over passes",
        home="src/fit/engine.rs",
        suspects=(
            r"\bfor\s+\w*pass\w*\s+in\b",
            r"\bwhile\b[^{]*\bpass(es)?\b",
            r"\.\.=?\s*[\w.]*max_passes\b",
        ),
    ),
    OnlyOne(
        subject="loop over sweeps",
        home="src/mcmc/chain.rs",
        suspects=(
            r"\bfor\s+\w*sweep\w*\s+in\b",
            r"\bwhile\b[^{]*\bsweeps?\b",
        ),
    ),
)

# Crates that only some folders may name.
CRATE_HOMES: dict[str, tuple[str, ...]] = {
    "faer": ("src/linalg", "benches"),
    "pyo3": ("crates/python",),
    "numpy": ("crates/python",),
}

MAX_LINES = 500
MAX_COLUMNS = 120

# Python specifies, converts and stores; whatever computes belongs to the core.
NUMPY_ALLOWED = """
    abs all any arange array array_equal asarray ascontiguousarray bincount bool_ can_cast column_stack complexfloating
    concatenate count_nonzero dtype empty errstate finfo flatnonzero float16 float32 float64 floating frombuffer full
    generic iinfo inexact inf insert int32 int64 integer intp isfinite isinf isnan issubdtype lib load loadtxt ma memmap
    nan ndarray ndim number ones put_along_axis random.SeedSequence random.default_rng require result_type save savez
    shape signedinteger stack timedelta64 typing uint32 uint64 uint8 unique unsignedinteger where zeros
""".split()
MATH_ALLOWED = "ceil floor inf isfinite isinf isnan nan prod".split()
# Sparse tables.
SCIPY_ALLOWED = ["sparse"]
# Pictures of a result; descriptive statistics behind advice and joins; tests, which draw data and compare numbers.
NUMERICS_EXEMPT = (
    "python/stickbreak/demo/",
    "python/stickbreak/plot/",
    "python/stickbreak/result/agreement.py",
    "python/stickbreak/result/combining.py",
    "python/stickbreak/result/dip.py",
    "python/stickbreak/result/stopping.py",
    "python/stickbreak/result/shapes.py",
    "python/stickbreak/testing/",
    # What scikit-learn's mixtures have beside covariances.
    "python/stickbreak/sklearn/gaussians.py",
)

# What may stand below the head of CHANGELOG.md: releases, kinds of change, changes and their further lines, links.
CHANGELOG_LINE = re.compile(
    r"## \[Unreleased\]|## \[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d"
    r"|### (Added|Changed|Deprecated|Removed|Fixed|Security)|- \S.*|  +\S.*|\[[^\]]+\]: \S+|"
)

# Comments and literals, which are no code.
RUST_BLANKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|b?r(?P<hashes>\#*)".*?"(?P=hashes)|b?"(?:\\.|[^"\\])*\""""
    r"""|b?'(?:\\u\{[^}]*\}|\\x..|\\.|[^'\\\n])'""",
    re.DOTALL,
)
TEST_ATTRIBUTE = re.compile(r"#\[cfg\((?:test|all\(test\b[^\]]*\))\)\]\s*(?:#\[[^\]]*\]\s*)*")


def relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def blank_tests(code: str) -> tuple[str, list[str]]:
    """Blank the items under #[cfg(test)]; also the names of test modules that live in files of their own."""
    files = []
    while attribute := TEST_ATTRIBUTE.search(code):
        item = code[attribute.end() :]
        declared = re.match(r"(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;", item)
        if declared:
            files.append(declared.group(1))
        opening = None if item.startswith("use ") else re.match(r"(?:\[[^\]]*\]|[^;{\[])*\{", item)
        end = attribute.end() + (closing_brace(item, opening.end()) if opening else item.find(";") + 1)
        span = code[attribute.start() : end]
        code = code[: attribute.start()] + re.sub(r"[^\n]", " ", span) + code[end:]
    return code, files


def closing_brace(code: str, position: int) -> int:
    depth = 1
    for brace in re.finditer(r"[{}]", code[position:]):
        depth += 1 if brace.group() == "{" else -1
        if depth == 0:
            return position + brace.end()
    return len(code)


@dataclass(frozen=True)
class RustFile:
    """A source file with comments, strings and tests blanked out, its line numbers kept."""

    path: str
    text: str
    code: str
    n_lines: int

    def find(self, pattern: str | re.Pattern[str]) -> Iterator[int]:
        """Line numbers of the matches in the code."""
        for match in re.finditer(pattern, self.code):
            yield self.code.count("\n", 0, match.start()) + 1


def rust_files(root: Path, *folders: str) -> list[RustFile]:
    """The Rust files under the folders, without those that hold only tests."""
    files: list[RustFile] = []
    tests: list[str] = []
    for path in sorted(path for folder in folders for path in (root / folder).rglob("*.rs")):
        text = path.read_text(encoding="utf-8")
        if "#![cfg(test)]" in text:
            continue
        blanked = RUST_BLANKED.sub(blank, text)
        code, test_modules = blank_tests(blanked)
        parent = path.parent if path.stem in ("mod", "lib", "main") else path.with_suffix("")
        tests += [relative(parent / module, root) for module in test_modules]
        in_tests = sum(
            bool(before.strip()) and not after.strip()
            for before, after in zip(blanked.splitlines(), code.splitlines(), strict=True)
        )
        files.append(RustFile(relative(path, root), text, code, text.count("\n") - in_tests))
    return [file for file in files if not any(file.path.startswith((f"{test}.rs", f"{test}/")) for test in tests)]


def python_files(root: Path, *folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (root / folder).rglob("*.py"))


# Floors


def module_path(path: str) -> list[str]:
    """`src/likelihood/gaussian.rs` -> ["likelihood", "gaussian"]."""
    parts = path.removeprefix("src/").removesuffix(".rs").split("/")
    return parts[:-1] if parts[-1] in ("mod", "lib") else parts


def use_heads(tree: str) -> list[str]:
    """First names of a use tree: `{data::{Rows, Units}, real::Real}` -> data, real."""
    tree = tree.strip()
    if not tree.startswith("{"):
        return re.findall(r"^\w+", tree)
    inner = tree[1 : closing_brace(tree, 1) - 1]
    while (flat := re.sub(r"\{[^{}]*\}", "", inner)) != inner:
        inner = flat
    return [head for item in inner.split(",") for head in re.findall(r"^\s*(\w+)", item)]


def used_modules(file: RustFile) -> Iterator[tuple[int, str]]:
    """Line and first name below the crate root of every `crate::` and `super::` path."""
    here = module_path(file.path)
    modules = {module for row in FLOORS for module in row}
    for match in re.finditer(r"\b(crate|(?:super::)*super)::(\{|\w+)", file.code):
        steps = match.group(1).count("super")
        if steps and len(here) > steps:
            continue  # stays inside its own top-level module
        if match.group(2) == "{":
            heads = use_heads(file.code[match.start(2) :])
        elif file.code.startswith("!", match.end()):
            continue  # a macro of the crate
        else:
            heads = [match.group(2)]
        line = file.code.count("\n", 0, match.start()) + 1
        # In a module written inside its file, `super` is that file: only names of modules count there.
        yield from ((line, head) for head in heads if not steps or head in modules)


def check_floors(root: Path) -> Iterator[str]:
    """Each module uses lower floors and, on its own, only modules to its left."""
    place = {module: (floor, column) for floor, row in enumerate(FLOORS) for column, module in enumerate(row)}
    found = set()
    for file in rust_files(root, "src"):
        here = module_path(file.path)
        if not here:
            continue
        module = here[0]
        found.add(module)
        if module not in place:
            yield f"{file.path}: module `{module}` is not in the table of floors"
            continue
        for line, used in used_modules(file):
            if used not in place:
                yield f"{file.path}:{line}: `{used}` is not a module in the table of floors; import by module path"
            elif used != module and place[used] > place[module]:
                yield (
                    f"{file.path}:{line}: `{module}` (floor {place[module][0]}) may not use `{used}` "
                    f"(floor {place[used][0]}); lower floors, or further left on the same one"
                )
    for module in sorted(place.keys() - found):
        yield f"scripts/check_structure.py: the table of floors names `{module}`, which is not in src/"


def check_circles(root: Path) -> Iterator[str]:
    """No files of the core use each other in a circle."""
    for circle in circles({file.path: file.code for file in rust_files(root, "src")}):
        yield f"src: files use each other in a circle: {' -> '.join(circle)}"


# Only one


def next_code_line(file: RustFile, line: int) -> str:
    """The first line of code after a line, attributes aside."""
    for text in file.code.splitlines()[line:]:
        if text.strip() and not text.strip().startswith("#["):
            return text.strip()
    return ""


def check_only_one(root: Path) -> Iterator[str]:
    """Top-L selection, accumulation and the pass loop are each written once, and marked."""
    files = rust_files(root, "src", "crates")
    known = {rule.subject for rule in ONLY_ONE}
    for file in files:
        for subject in re.findall(r"// only-one: (.*)", file.text):
            if subject.strip() not in known:
                yield f"{file.path}: `// only-one: {subject.strip()}` is not in the table of scripts/check_structure.py"
    for rule in ONLY_ONE:
        marks = [
            (file, number)
            for file in files
            for number, text in enumerate(file.text.splitlines(), start=1)
            if re.search(rf"// only-one: {re.escape(rule.subject)}\s*$", text)
        ]
        if len(marks) != 1 or marks[0][0].path != rule.home:
            places = ", ".join(f"{file.path}:{number}" for file, number in marks) or "nowhere"
            yield f"{rule.home}: `// only-one: {rule.subject}` must stand exactly once, and here; found: {places}"
        for file, number in marks:
            if not re.search(r"\bfn\b|\bfor\b|\bwhile\b|\bloop\b", next_code_line(file, number)):
                yield f"{file.path}:{number}: `// only-one` must stand directly above the function or loop it marks"
        for file in files:
            if not file.path.startswith((rule.home, *rule.also)):
                for line in sorted({line for suspect in rule.suspects for line in file.find(suspect)}):
                    yield f"{file.path}:{line}: looks like a second {rule.subject}; the one is in {rule.home}"


# Who may name what


def check_crates(root: Path) -> Iterator[str]:
    """Linear algebra is named in one module, Python in one package."""
    for file in rust_files(root, "src", "crates", "benches", "tests", "examples"):
        for crate, homes in CRATE_HOMES.items():
            if not file.path.startswith(homes):
                for line in file.find(rf"\b{crate}(?=::|\s*;|\s+as\b|!)"):
                    yield f"{file.path}:{line}: only {' and '.join(homes)} may name {crate}"
    manifest = tomllib.loads((root / "Cargo.toml").read_text(encoding="utf-8"))
    for table in ("dependencies", "dev-dependencies", "build-dependencies"):
        for crate in sorted({"pyo3", "numpy"} & manifest.get(table, {}).keys()):
            yield f"Cargo.toml: the core may not depend on {crate}"


def dotted(node: ast.expr) -> str:
    """`np.linalg.eigh` of an attribute chain, empty for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return ""


def numeric_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and full name of everything a file takes from numpy, scipy and math, and of matrix products."""
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for module in node.names:
                top = module.name.split(".")[0]
                aliases[module.asname or top] = module.name if module.asname else top
                if module.name != top:
                    yield node.lineno, module.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((node.lineno, f"{node.module}.{member.name}") for member in node.names)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and id(node) not in inner and (name := dotted(node)):
            head, rest = name.split(".", 1)
            if head in aliases:
                yield node.lineno, f"{aliases[head]}.{rest}"
        elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"


def computes(name: str) -> bool:
    """Whether a name is outside the allow-list of its package; what is below an allowed name is allowed."""
    package, _, rest = name.partition(".")
    allowed = {"numpy": NUMPY_ALLOWED, "math": MATH_ALLOWED, "scipy": SCIPY_ALLOWED}.get(package)
    if allowed is None:
        return name == "@"
    return not any(f"{rest}.".startswith(f"{start}.") for start in allowed)


def check_numerics(root: Path) -> Iterator[str]:
    """The Python package computes nothing."""
    for path in python_files(root, "python/stickbreak"):
        if relative(path, root).startswith(NUMERICS_EXEMPT):
            continue
        for line, name in sorted(set(numeric_names(ast.parse(path.read_text(encoding="utf-8"))))):
            if computes(name):
                yield (
                    f"{relative(path, root)}:{line}: `{name}` computes, which is the core's part; "
                    "input and output: add it to the allow-list of scripts/check_structure.py"
                )


# Sizes, version, changelog


def check_sizes(root: Path) -> Iterator[str]:
    """Files have one subject: at most 500 lines without their tests."""
    sizes = [(file.path, file.n_lines) for file in rust_files(root, "src", "crates")]
    sizes += [
        (relative(path, root), path.read_text(encoding="utf-8").count("\n"))
        for path in python_files(root, "python/stickbreak", "scripts")
    ]
    for path, n_lines in sizes:
        if n_lines > MAX_LINES:
            yield f"{path}: {n_lines} lines without tests, more than {MAX_LINES}"


def check_columns(root: Path) -> Iterator[str]:
    """Lines of Rust are at most 120 columns wide: rustfmt keeps comments and literals as they are."""
    for file in rust_files(root, "src", "crates", "tests", "benches", "examples"):
        for line, text in enumerate(file.text.splitlines(), start=1):
            if len(text) > MAX_COLUMNS:
                yield f"{file.path}:{line}: {len(text)} columns, more than {MAX_COLUMNS}"


TYPE_DECLARATION = re.compile(r"^(?:pub(?:\([a-z]+\))? )?(?:struct|enum|trait|type) ([A-Z]\w+)", re.MULTILINE)


def check_type_names(root: Path) -> Iterator[str]:
    """Each type has a name of its own."""
    homes: dict[str, str] = {}
    for file in rust_files(root, "src", "crates"):
        for match in TYPE_DECLARATION.finditer(file.code):
            name, line = match.group(1), file.code.count("\n", 0, match.start()) + 1
            if home := homes.get(name):
                yield f"{file.path}:{line}: there is a type `{name}` in {home} already; one word has one meaning"
            homes.setdefault(name, file.path)


def check_version(root: Path) -> Iterator[str]:
    """The version stands in the workspace's Cargo.toml and nowhere else."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if "version" in project or "version" not in project.get("dynamic", ()):
        yield 'pyproject.toml: the version must be dynamic = ["version"]'
    for manifest in (root / "Cargo.toml", *sorted(root.glob("crates/*/Cargo.toml"))):
        package = tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]
        if package.get("version") != {"workspace": True}:
            yield f"{relative(manifest, root)}: [package] must say version.workspace = true"
    for path in python_files(root, "python/stickbreak"):
        if re.search(r"__version__\s*(:\s*\w+\s*)?=\s*[\"']", path.read_text(encoding="utf-8")):
            yield f"{relative(path, root)}: __version__ must come from the built core"
    if re.search(r"^version:", (root / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE):
        yield "CITATION.cff: must not repeat the version"


def check_target_cpu(root: Path) -> Iterator[str]:
    """Builds run on other machines: instruction sets are chosen at run time."""
    for name in ("Cargo.toml", "pyproject.toml", ".cargo/config.toml"):
        if (root / name).exists() and "target-cpu" in (root / name).read_text(encoding="utf-8"):
            yield f"{name}: no target-cpu; instruction sets are chosen at run time"


def check_changelog(root: Path) -> Iterator[str]:
    """CHANGELOG.md keeps the form of keepachangelog.com."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not text.startswith("# Changelog\n"):
        yield "CHANGELOG.md:1: must begin with `# Changelog`"
    if re.findall(r"^## .*", text, re.MULTILINE)[:1] != ["## [Unreleased]"]:
        yield "CHANGELOG.md: the first section must be `## [Unreleased]`"
    for empty in re.finditer(r"^### .*\n+(?=#|\Z)", text, re.MULTILINE):
        yield f"CHANGELOG.md: `{empty.group().strip()}` is empty"
    sections = text.find("\n## ") + 1
    for number, line in enumerate(text[sections:].splitlines(), start=text.count("\n", 0, sections) + 1):
        if not CHANGELOG_LINE.fullmatch(line):
            yield f"CHANGELOG.md:{number}: not a release, a kind of change or a change: {line}"


CHECKS = (
    check_floors,
    check_circles,
    check_only_one,
    check_crates,
    check_numerics,
    check_sizes,
    check_columns,
    check_type_names,
    check_version,
    check_target_cpu,
    check_changelog,
    check_citations,
)


def complaints(root: Path) -> list[str]:
    """Everything that breaks a rule, one line each."""
    return [complaint for check in CHECKS for complaint in check(root)]


def main() -> int:
    found = complaints(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve())
    for complaint in found:
        print(complaint)
    print(f"structure: {len(found)} complaint{'s' if len(found) != 1 else ''}, {len(CHECKS)} checks")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
