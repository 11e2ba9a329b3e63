"""Mistakes in tables as they come: rounding, copies, weights and near-dependent columns, for `injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug

OF_REPEATS: tuple[Bug, ...] = (
    Bug(
        143,
        "only distinct rows of all columns tell that a column is rounded",
        "src/data/repeats.rs",
        "Repetition::Rare | Repetition::Chance => [once, distinct],",
        f"Repetition::Rare | Repetition::Chance => [if {bug(143)} {{ distinct }} else {{ once }}, distinct],",
        "tests/model/test_repeated_rows.py",
    ),
    Bug(
        144,
        "weights above one lead the search",
        "src/fit/search_rows.rs",
        "all.into_iter().map(|(_, row)| (row, weight(row).min(1.0)))",
        f"all.into_iter().map(|(_, row)| (row, if {bug(144)} {{ weight(row) }} else {{ weight(row).min(1.0) }}))",
        "tests/model/test_repeated_rows.py",
    ),
    Bug(
        145,
        "the moments of residuals are computed from those of the columns",
        "src/grounds/near.rs",
        "    if coordinates.residuals().is_empty() {\n",
        f"    if {bug(145)} || coordinates.residuals().is_empty() {{\n",
        "tests/model/test_near_dependent.py",
    ),
    Bug(
        146,
        "the bound of all rows has the histogram of the search rows",
        "src/fit/all_rows.rs",
        "        let specification = Specification { values, ..found.specification.clone() };\n",
        f"        let values = if {bug(146)} {{ found.specification.values.clone() }} else {{ values }};\n"
        "        let specification = Specification { values, ..found.specification.clone() };\n",
        "tests/model/test_repeated_rows.py",
    ),
)
