"""Mistakes about the background, for `scripts/injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug

TESTS = "tests/model/test_background.py"

OF_BACKGROUND: tuple[Bug, ...] = (
    Bug(
        127,
        "the rows of the background count twice in its share",
        "src/background.rs",
        "(self.outliers + outside, self.inliers + inside)",
        f"(self.outliers + if {bug(127)} {{ 2.0 }} else {{ 1.0 }} * outside, self.inliers + inside)",
        TESTS,
    ),
    Bug(
        128,
        "the base measures of rows in the background stay in the bound",
        "src/background/scorer.rs",
        "self.density.log_density(row) - base)",
        f"self.density.log_density(row) - if {bug(128)} {{ 0.0 }} else {{ base }})",
        TESTS,
    ),
    Bug(
        129,
        "deletes are judged without what the background gains",
        "src/moves/judge.rs",
        "|background| background.bound(total))",
        f"|background| if {bug(129)} {{ 0.0 }} else {{ background.bound(total) }})",
        TESTS,
    ),
    Bug(
        130,
        "rows may enter the background before there are components for them",
        "src/fit/prepare.rs",
        "if self.model.background.is_some() && !settings.moves.grow() {",
        f"if self.model.background.is_some() && ({bug(130)} || !settings.moves.grow()) {{",
        TESTS,
    ),
    Bug(
        131,
        "missing columns count in the density of the background",
        "src/background/density.rs",
        "        self.value(n_columns, log_volume, square, farthest)",
        f"        self.value(if {bug(131)} {{ d }} else {{ n_columns }}, log_volume, square, farthest)",
        TESTS,
    ),
    Bug(
        132,
        "components share all of the weight, as without a background",
        "src/background.rs",
        "            *log_weight += log_inside;\n",
        f"            *log_weight += if {bug(132)} {{ 0.0 }} else {{ log_inside }};\n",
        TESTS,
    ),
    Bug(
        133,
        "a row that a delete gives to the background keeps the entropy of two",
        "src/moves/transfer.rs",
        "                    tail.entropy -= units.mass(row)",
        f"                    tail.entropy -= if {bug(133)} {{ 0.0 }} else {{ 1.0 }} * units.mass(row)",
        TESTS,
    ),
    Bug(
        134,
        "the uniform part of the background has no end",
        "src/background/density.rs",
        "if farthest > 1.0 { tails }",
        f"if farthest > 1.0 && !{bug(134)} {{ tails }}",
        TESTS,
    ),
    Bug(
        135,
        "the range of a column ends at the values that are far from all others",
        "src/data/typical.rs",
        "    if low == high || (least >= first && most <= last) {",
        f"    if low == high || {bug(135)} || (least >= first && most <= last) {{",
        TESTS,
    ),
    Bug(
        136,
        "the tails of the background do not see how many rows are beyond its reach",
        "src/background.rs",
        "(beyond + TAILS * expected)",
        f"(if {bug(136)} {{ 0.0 }} else {{ beyond }} + TAILS * expected)",
        TESTS,
    ),
)
