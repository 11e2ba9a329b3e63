"""`scripts/check_lengths.py` finds long functions and lines wherever they are, and counts what a person would."""

from pathlib import Path

import check_lengths


def complaints(root: Path, name: str, text: str) -> list[str]:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return list(check_lengths.check_lengths(root))


def test_lines_are_counted_in_columns(tmp_path: Path) -> None:
    assert complaints(tmp_path, "src/a.rs", "// " + "é" * 117 + "\n") == []
    assert complaints(tmp_path, "src/a.rs", "\n// " + "é" * 118 + "\n") == ["src/a.rs:2: 121 columns, more than 120"]


def test_results_and_builds_are_not_written_by_hand(tmp_path: Path) -> None:
    for name in ("benches/results/a.py", "docs/_build/a.py", "benches/wide.txt"):
        assert complaints(tmp_path, name, "#" * 200 + "\n") == []


def test_rust_functions_end_with_their_own_brace(tmp_path: Path) -> None:
    signature = (
        "fn f<const N: usize>(\n    x: [u8; 3],\n    g: impl Fn() -> [u8; 2],\n) -> [u8; 4]\nwhere\n    u8: Copy,\n{\n"
    )
    body = '    let text = "}"; // }\n    if x { y } else { z }\n'
    assert (
        complaints(tmp_path, "tests/a.rs", f"{signature}{body}{'    f();' + chr(10) * 1}" + "    f();\n" * 69 + "}\n")
        == []
    )
    found = complaints(
        tmp_path, "tests/a.rs", "trait T {\n    fn declared(x: [u8; 3]);\n}\n" + signature + body * 50 + "}\n"
    )
    assert found == ["tests/a.rs:4: `f` has 108 lines, more than 80"]


def test_docstrings_are_no_part_of_a_python_function(tmp_path: Path) -> None:
    words = '    """Words.\n' + "\n" * 100 + '    """\n'
    assert complaints(tmp_path, "python/a.py", f"def f():\n{words}    return 1\n") == []
    long = (
        "def f():\n" + "    x = 1\n" * 80 + "async def g():\n    def h():\n" + "        x = 1\n" * 79 + "    return h\n"
    )
    assert complaints(tmp_path, "python/a.py", long) == [
        "python/a.py:1: `f` has 81 lines, more than 80",
        "python/a.py:82: `g` has 82 lines, more than 80",
    ]
