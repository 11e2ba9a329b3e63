"""Mistakes about shards and workers, for `scripts/injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug

OF_SHARDS: tuple[Bug, ...] = (
    Bug(
        137,
        "shards are added up one after another, not in a tree",
        "src/tree_sum.rs",
        "pop_if(|(other, _)| *other == level)",
        f"pop_if(|(other, _)| {bug(137)} || *other == level)",
        "tree_sum remote",
    ),
    Bug(
        138,
        "keys of rows count twice if a visit is made again",
        "src/executor/worker.rs",
        "        self.visits.limit_keys(plan.version, limits.clone());\n",
        f"        if !{bug(138)} {{\n            self.visits.limit_keys(plan.version, limits.clone());\n        }}\n",
        "remote",
    ),
    Bug(
        139,
        "a bag is cut to half of its rows where sums are added up",
        "src/moves/bags.rs",
        "*self = self.smallest(max_rows).into_owned();",
        f"*self = self.smallest(if {bug(139)} {{ max_rows / 2 }} else {{ max_rows }}).into_owned();",
        "moves::found",
    ),
    Bug(
        140,
        "a log of edits travels without the first one that is needed",
        "src/component.rs",
        "edits: self.since(first).to_vec(), classes",
        f"edits: self.since(first + usize::from({bug(140)})).to_vec(), classes",
        "component",
    ),
    Bug(
        141,
        "a worker goes on with the plan of the last pass",
        "src/executor/worker.rs",
        "Some(latest) if latest.0 == came.key => latest,",
        f"Some(latest) if {bug(141)} || latest.0 == came.key => latest,",
        "remote",
    ),
    Bug(
        142,
        "a worker does not see that its rows have changed",
        "src/executor/worker.rs",
        "if print_of_rows(&units, &Cancel::default())? != print {",
        f"if !{bug(142)} && print_of_rows(&units, &Cancel::default())? != print {{",
        "remote",
    ),
)
