"""The check of circles follows re-exports to the file that defines a name, in small invented cores."""

import pytest

from rust_circles import circles, items_of

SOUND = {
    "src/lib.rs": "pub mod error;\npub mod moves;\npub mod fit;\npub use error::Error;\n",
    "src/error.rs": "pub struct Error;\n",
    # Declarations and re-exports are no uses.
    "src/moves/mod.rs": """
mod judge;
mod round;
pub mod kinds;
pub use judge::Judge;
pub use round::*;
use round::Turn;
""",
    "src/moves/judge.rs": "use crate::error::Error;\npub struct Judge(Error);\n",
    "src/moves/round.rs": "use crate::moves::Judge;\npub struct Round(Judge);\npub struct Turn;\n",
    # A head and the files below it are one subject.
    "src/moves/kinds/mod.rs": "mod merge;\npub use merge::Merge;\npub trait Kind {}\npub fn all() -> Merge { Merge }\n",
    "src/moves/kinds/merge.rs": """
use super::Kind;
use crate::moves::{Round, self};
pub struct Merge;
impl Kind for Merge {}
fn f(_: Round) {}
""",
    "src/fit.rs": """
use std::sync::Arc;
use crate::{moves::{self, Judge as Court}};
fn f(_: Arc<Court>) { moves::kinds::all(); }
""",
}

# What is added to a file, and the circle that it closes.
CIRCLES = {
    "directly": ("src/moves/judge.rs", "use crate::moves::round::Round;\nfn f(_: Round) {}\n", "judge round"),
    "through a re-export": ("src/moves/judge.rs", "use super::kinds::Merge;\nfn f(_: Merge) {}\n", "judge merge round"),
    "through a glob": ("src/moves/judge.rs", "use crate::moves::Round;\nfn f(_: Round) {}\n", "judge round"),
    "by a path": ("src/moves/judge.rs", "fn f(_: super::round::Round) {}\n", "judge round"),
    "by an imported module": ("src/moves/judge.rs", "use crate::moves;\nfn f() { moves::Round; }\n", "judge round"),
    "under another name": ("src/moves/judge.rs", "use super::Round as Pass;\nfn f(_: Pass) {}\n", "judge round"),
    "by a name of the head": ("src/moves/judge.rs", "fn f(_: super::Turn) {}\n", "judge round"),
    "across folders": ("src/error.rs", "use crate::fit::Fit;\nfn f(_: Fit) {}\n", "error fit judge"),
    "of the crate": ("src/error.rs", "fn f() { crate::moves::judge::Judge; }\n", "error judge"),
}


def found(files: dict[str, str]) -> list[set[str]]:
    return [{path.removesuffix("/mod.rs").removesuffix(".rs").split("/")[-1] for path in one} for one in circles(files)]


def test_a_sound_core_has_none() -> None:
    assert found(SOUND) == []


@pytest.mark.parametrize("name", CIRCLES)
def test_a_circle_is_found(name: str) -> None:
    path, text, expected = CIRCLES[name]
    assert found(SOUND | {path: SOUND[path] + text}) == [set(expected.split())]


def test_each_circle_is_found_once() -> None:
    more = {
        "src/error.rs": "use crate::fit::Fit;\npub struct Error(Fit);\n",
        "src/fit.rs": "use crate::Error;\npub struct Fit(Error);\n",
        "src/moves/judge.rs": "use super::Round;\npub struct Judge(Round);\n",
    }
    assert sorted(map(sorted, found(SOUND | more))) == [["error", "fit"], ["judge", "round"]]


def test_names_that_no_code_uses_are_no_use() -> None:
    path = "src/moves/judge.rs"
    assert found(SOUND | {path: SOUND[path] + "pub use super::round::Round;\n"}) == []


def test_a_use_tree_is_read_to_its_leaves() -> None:
    tree = "{a::{self, B, c::D as E}, f::*}"
    assert list(items_of(tree)) == [
        ("a", ("a",)),
        ("B", ("a", "B")),
        ("E", ("a", "c", "D")),
        ("*", ("f", "*")),
    ]
