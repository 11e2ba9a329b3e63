"""Further mistakes for `injected_bugs.py`: those that its first list missed, found by outside checks."""

from __future__ import annotations

from mistakes import SWITCH, Bug, bug


def python_bug(number: int) -> str:
    """Return the switch of a mistake in the Python package."""
    return f'(__import__("os").environ.get("{SWITCH}") == "{number}")'


MORE = (
    Bug(
        49,
        "the guard of the estimated concentration of topics has the wrong sign",
        "src/process/latent_dirichlet.rs",
        "log_weights + GUARD * (of_prior + of_start)",
        f"log_weights + (if {bug(49)} {{ -GUARD }} else {{ GUARD }}) * (of_prior + of_start)",
        "process::latent_dirichlet",
    ),
    Bug(
        50,
        "a checkpoint of chains does not know the sweeps between its draws",
        "src/mcmc/checkpoint.rs",
        "plan.thin.to_string()),",
        f"if {bug(50)} {{ String::new() }} else {{ plan.thin.to_string() }}),",
        "tests/sampling/test_sampling.py",
    ),
    Bug(
        51,
        "restarts try the smallest topic of a document alone",
        "src/local_step/documents/restarts.rs",
        "for _ in 0..shared.options.restarts {",
        f"for _ in 0..shared.options.restarts.min(if {bug(51)} {{ 1 }} else {{ usize::MAX }}) {{",
        "tests/model/test_topics.py",
    ),
    Bug(
        52,
        "gains of opening nodes ignore the masses of rows",
        "src/local_step/nodes/gains.rs",
        "rows_of_node.iter().map(|&row| rows.mass(row as usize)).collect();",
        f"rows_of_node.iter().map(|&row| if {bug(52)} {{ 1.0 }} else {{ rows.mass(row as usize) }}).collect();",
        "tests/run/test_kd_tree.py",
    ),
    Bug(
        53,
        "a budget of nodes is spent on the largest gains a row, whatever the mass",
        "src/fit/opening.rs",
        "(y.value * y.mass).total_cmp(&(x.value * x.mass))",
        f"(if {bug(53)} {{ y.value.total_cmp(&x.value) }} "
        "else { (y.value * y.mass).total_cmp(&(x.value * x.mass)) })",
        "tests/run/test_kd_tree.py",
    ),
    Bug(
        54,
        "a node of many rows has the scatter of its blocks' means alone",
        "src/local_step/nodes/build.rs",
        "zip(&block.squares).for_each(|(sum, x)| *sum += x);",
        f"zip(&block.squares).for_each(|(sum, x)| *sum += if {bug(54)} && all.len() > 1 {{ 0.0 }} else {{ *x }});",
        "tests/run/test_kd_tree.py",
    ),
    Bug(
        55,
        "the guard of an estimated precision of means has one column",
        "src/likelihood/mean_evidence.rs",
        "- 0.5 * GUARD * columns * (",
        f"- 0.5 * GUARD * (if {bug(55)} {{ 1.0 }} else {{ columns }}) * (",
        "tests/model/test_evidence.py",
    ),
    Bug(
        56,
        "the guard of estimated pseudo-counts has one level",
        "src/likelihood/counts/evidence.rs",
        "GUARD * levels * guard",
        f"GUARD * (if {bug(56)} {{ 1.0 }} else {{ levels }}) * guard",
        "tests/model/test_evidence.py",
    ),
    Bug(
        57,
        "subtrees that an insertion takes off return the other way round",
        "src/mcmc/trees/incremental.rs",
        "        for piece in pieces {\n",
        f"        if {bug(57)} {{\n            pieces.reverse();\n        }}\n        for piece in pieces {{\n",
        "tests/result/test_hierarchy.py",
    ),
    Bug(
        58,
        "the command line writes the labels of the best draw of the first chain",
        "python/stickbreak/cli/mcmc.py",
        "[trace.log_joint.argmax()]",
        f"[(trace.log_joint[:1] if {python_bug(58)} else trace.log_joint).argmax()]",
        "tests/sampling/test_sampling.py",
    ),
    Bug(
        59,
        "rows are predicted with the hyperparameters of the first draw",
        "python/stickbreak/result/trace.py",
        "reshape(*self.log_joint.shape, -1)[chain, draw]",
        f"reshape(*self.log_joint.shape, -1)[(0, 0) if {python_bug(59)} else (chain, draw)]",
        "tests/sampling/test_sampling.py",
    ),
    Bug(
        60,
        "the loose base measure stays after its round",
        "src/fit/search.rs",
        "let usual = self.model.holding(false);",
        f"let usual = self.model.holding({bug(60)});",
        "tests/moves/test_search.py",
    ),
    Bug(
        61,
        "a search ends with its last state, not with the best one",
        "src/fit/engine.rs",
        "if let Some(best) = position.search.better_than(last).cloned() {",
        f"if let Some(best) = position.search.better_than(last).filter(|_| !{bug(61)}).cloned() {{",
        "tests/moves/test_search.py",
    ),
    Bug(
        62,
        "rearrangements go on with the responsibilities of before the last one",
        "src/fit/rearrange.rs",
        "                best = better;\n",
        f"                best = if {bug(62)} {{\n"
        "                    State { rows: best.rows, overlaps: best.overlaps, ..better }\n"
        "                } else {\n                    better\n                };\n",
        "fit::rearrange",
    ),
    Bug(
        63,
        "all columns without a value count as one",
        "src/likelihood/counts/repeats.rs",
        "{ self.of_last } else { 1.0 }",
        f"{{ if {bug(63)} {{ 1.0 }} else {{ self.of_last }} }} else {{ 1.0 }}",
        "tests/input/test_absent_columns.py",
    ),
    Bug(
        64,
        "buffers keep the width of the visit before",
        "src/local_step/mod.rs",
        "(responsibilities.width, scored.width) = (width, width);",
        f"(responsibilities.width, scored.width) = if {bug(64)} && responsibilities.width > 0 {{\n"
        "            (responsibilities.width, responsibilities.width)\n"
        "        } else {\n            (width, width)\n        };",
        "what_earlier_visits_left",
    ),
    Bug(
        65,
        "the pairs of a component begin one block too late",
        "src/local_step/pairs.rs",
        "            first += of_rows.len();\n",
        f"            if !({bug(65)} && first == 0) {{\n                first += of_rows.len();\n            }}\n",
        "local_step::pairs",
    ),
    Bug(
        66,
        "what was tried beside a deletion is not tried again after it",
        "src/moves/kinds/delete.rs",
        "                        break;\n",
        f"                        if {bug(66)} {{\n                            continue;\n                        }}\n"
        "                        break;\n",
        "tests/moves/test_moves_determinism.py",
    ),
    Bug(
        67,
        "units are sorted as if the second block began where the first one does",
        "src/local_step/order.rs",
        "                (start, left) = (start + sizes[lead], rest);\n",
        f"                let behind = if {bug(67)} && stretches.len() == 1 {{ 0 }} else {{ sizes[lead] }};\n"
        "                (start, left) = (start + behind, rest);\n",
        "local_step::order",
    ),
    Bug(
        68,
        "the estimate of a base measure ahead is given up after one update",
        "src/evidence.rs",
        "let is_hopeless = least > now - before + gain * left as f64;",
        f"let is_hopeless = least > now - before + gain * if {bug(68)} {{ 0.0 }} else {{ left as f64 }};",
        "evidence::tests",
    ),
    Bug(
        69,
        "the pieces of a row's scores are one cluster too long",
        "src/mcmc/clusters.rs",
        "out.chunks_mut(each)",
        f"out.chunks_mut(each + usize::from({bug(69)}))",
        "mcmc::tests::running",
    ),
    Bug(
        70,
        "of crowded rows with ties the neighbour is sorted",
        "src/responsibilities/near.rs",
        "                let row = group * lanes + lane;\n",
        f"                let row = group * lanes + if {bug(70)} {{ (lane + 1) % lanes }} else {{ lane }};\n",
        "responsibilities::tests",
    ),
    Bug(
        71,
        "a stick is drawn as if its own rows were behind it too",
        "src/process/drawn.rs",
        "        behind -= count;\n",
        f"        behind -= if {bug(71)} {{ 0.0 }} else {{ *count }};\n",
        "tests/sampling/test_exact_posterior.py",
    ),
    Bug(
        72,
        "labels are swapped whatever the ratio of their weights",
        "src/mcmc/conditional/labels.rs",
        "let log_ratio = (count(order[b])",
        f"let log_ratio = if {bug(72)} {{ 0.0 }} else {{ 1.0 }} * (count(order[b])",
        "tests/sampling/test_exact_posterior.py",
    ),
    Bug(
        73,
        "slices are not drawn anew",
        "src/local_step/draw.rs",
        "chance(self.key, row as u64).ln()",
        f"chance(if {bug(73)} {{ 0 }} else {{ self.key }}, row as u64).ln()",
        "tests/sampling/test_exact_posterior.py",
    ),
    Bug(
        74,
        "all rows of a block share a random number",
        "src/local_step/draw.rs",
        "numbers.clone().map(|row| chance(self.key, row as u64))",
        f"numbers.clone().map(|row| chance(self.key, row as u64 / if {bug(74)} {{ 240 }} else {{ 1 }}))",
        "tests/sampling/test_exact_posterior.py",
    ),
    Bug(
        75,
        "parameters are drawn with the same random numbers in every sweep",
        "src/mcmc/conditional/mod.rs",
        "drawn_scorer(&components, &log_weights, key_of_sweep)?",
        f"drawn_scorer(&components, &log_weights, if {bug(75)} {{ 1 }} else {{ key_of_sweep }})?",
        "tests/sampling/test_exact_posterior.py",
    ),
    Bug(
        76,
        "rows may belong to one component below their slice",
        "src/local_step/draw.rs",
        "above.max(self.places[label as usize] + 1)",
        f"(above + u32::from({bug(76)})).max(self.places[label as usize] + 1)",
        "tests/sampling/test_exact_posterior.py",
    ),
    Bug(
        77,
        "the search leaves an empty cluster's counts in the place of the last one",
        "src/partitions/table.rs",
        "row[cluster] = row[last];",
        f"row[cluster] = if {bug(77)} {{ 0 }} else {{ row[last] }};",
        "tests/sampling/test_partition_estimates.py",
    ),
)
