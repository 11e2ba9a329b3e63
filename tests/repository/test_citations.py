"""The check of citations finds sections and items that do not exist, and other documents; it accepts what is sound."""

from pathlib import Path

import pytest

import check_citations

PAGE = """# Mathematics

1. No item of a section.

## 1. Models

### 1d'. One variance

### 1e, 1f. Counts

## 2. Priors

### 2a. Sticks

1. *Order.* Words.
2. *Nesting.* Words,
   and 3. is none of them.

#### 4.6.3 Adoption

## 7. Properties

| number | property |
|---|---|
| 11 | *Nesting.* |
| 12 | *Order.* |

## References
"""

SOUND = """//! Sticks (mathematics 2a, 1d' and 1f; Blei & Jordan 2006, section 2): mathematics alone is no citation.
/// Decreasing counts, mathematics 2a, items 1 and 2. Mathematics 7, numbers 11 and
/// 12; mathematics
/// 4.6.3: words of a specification, in section 3 of the paper.
fn f() {}
"""

# A comment and a part of the complaint.
BREACHES = {
    "no such section": ("// mathematics 2b", "has no section or item 2b"),
    "no such subsection": ("// mathematics 4.6.4.", "has no section or item 4.6.4"),
    "the second of two": ("// (mathematics 2a and 2c)", "has no section or item 2c"),
    "the end of a range": ("// mathematics 1e to 1h", "has no section or item 1h"),
    "on the next line": ("// by mathematics\n    /// 9.1", "has no section or item 9.1"),
    "no such item": ("// mathematics 2a.3", "has no section or item 2a.3"),
    "no such number": ("// mathematics 7, numbers 11 and 13", "has no section or item 7, number 13"),
    "an item outside a section": ("// mathematics 1.1", "has no section or item 1.1"),
    "a spec": ("/// Spec 2a: sticks", "instead of `Spec 2a"),
    "a section of a spec": ("// (spec section 7)", "instead of `spec section 7"),
    "sections of the specification": ("// sections 2b and 2c of the\n// specification", "as in `mathematics 4.5`"),
    "the specification of something": ("// spec of missing entries, 4", "instead of `spec of missing`"),
    "the spec": ("// (6) of the spec", "instead of `of the spec`"),
    "the recipe": ("// moves recipe, section 2", "instead of `moves recipe`"),
    "a file": ("// see mcmc.md", "instead of `mcmc.md`"),
}


def complaints(root: Path, sources: dict[str, str]) -> list[str]:
    for name, text in {"docs/mathematics.md": PAGE, **sources}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return list(check_citations.check_citations(root))


def test_sound_citations(tmp_path: Path) -> None:
    assert complaints(tmp_path, {"src/a.rs": SOUND, "tests/a.py": '"""Mathematics 2a.2."""\n'}) == []


@pytest.mark.parametrize("breach", BREACHES)
def test_breaches(breach: str, tmp_path: Path) -> None:
    comment, expected = BREACHES[breach]
    found = complaints(tmp_path, {"crates/python/src/a.rs": f"fn f() {{}}\n{comment}\n"})
    assert len(found) == 1
    assert found[0].startswith("crates/python/src/a.rs:2: ")
    assert expected in found[0]


def test_python_is_read_too(tmp_path: Path) -> None:
    found = complaints(tmp_path, {"python/stickbreak/a.py": 'x = 1\n"""Return (mathematics 3)."""\n'})
    assert found == ["python/stickbreak/a.py:2: docs/mathematics.md has no section or item 3"]


def test_items_of_the_page() -> None:
    labels = check_citations.labels_of_page(PAGE)
    assert labels == {"1", "1d'", "1e", "1f", "2", "2a", "2a#1", "2a#2", "4.6.3", "7", "7#11", "7#12"}
