"""Mistakes that a reader of the code chose without having seen the tests, for `injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug
from more_mistakes import python_bug

OF_READER: tuple[Bug, ...] = (
    Bug(
        165,
        "the tolerance of an update is per unit of the mass of all rows, not of the new ones, so visits end too early",
        "src/fit/engine.rs",
        "(tol * position.memo.mass_visited())",
        f"(tol * if {bug(165)} {{ position.memo.total().mass }} else {{ position.memo.mass_visited() }})",
        "tests/run/test_update.py",
    ),
    Bug(
        167,
        "a search row of several copies has the weight of the first copy, not the sum of all (at most one)",
        "src/fit/search_rows.rs",
        "let mass: f64 = copies.iter().map(|&(_, row)| weight(row)).sum();",
        f"let mass: f64 = if {bug(167)} {{ weight(copies[0].1) }} "
        "else { copies.iter().map(|&(_, row)| weight(row)).sum() };",
        "tests/model/test_repeated_rows.py",
    ),
    Bug(
        168,
        "outside the clusters of a draw the density is at the start of a learned base measure, not at the draw's value",
        "src/mcmc/components.rs",
        "let of_draw = if of_all.is_empty() { outside(likelihood.as_ref())? } else { Vec::new() };",
        "let of_draw = if of_all.is_empty() { "
        f"outside(if {bug(168)} {{ self.field.likelihood.as_ref() }} else {{ likelihood.as_ref() }})? "
        "} else { Vec::new() };",
        "tests/sampling/test_learned_base.py",
    ),
    Bug(
        169,
        "after an accepted restart of a document the next one is compared with the value before it",
        "src/local_step/documents/restarts.rs",
        "value = proposed;",
        f"value = if {bug(169)} {{ value }} else {{ proposed }};",
        "local_step::documents",
    ),
    Bug(
        170,
        "rows of a deleted component get L others although the tail, or the background, keeps one of their L slots",
        "src/moves/refit.rs",
        "let taken_by_tail = usize::from(total.tail.is_some() && shares.iter().any(|&share| share < 1.0 - ROUNDING));",
        f"let taken_by_tail = if {bug(170)} {{ 0 }} else {{ usize::from(total.tail.is_some() && "
        "shares.iter().any(|&share| share < 1.0 - ROUNDING)) };",
        "tests/moves/test_moves_degenerate.py",
    ),
    Bug(
        171,
        "a column that depends on one left out as rounded keeps its narrow tolerance, so rows count as off the support",
        "src/data/coordinates/rounded.rs",
        "spread = spread.max(slope.abs() * one.step / OFF_SUBSPACE);",
        f"spread = if {bug(171)} {{ spread }} else {{ spread.max(slope.abs() * one.step / OFF_SUBSPACE) }};",
        "tests/model/test_near_dependent.py",
    ),
    Bug(
        173,
        "a transfer measures the entropy gap of two responsibilities after they have been added up",
        "src/moves/transfer.rs",
        "given.entropies[place] -= units.mass(row) * pair_gap(*value, share);",
        "given.entropies[place] -= units.mass(row) * "
        f"pair_gap(if {bug(173)} {{ *value + share }} else {{ *value }}, share);",
        "tests/moves/test_moves_degenerate.py",
    ),
    Bug(
        174,
        "the weights of further documents are dropped by partial_fit of the TopicModel of scikit-learn",
        "python/stickbreak/sklearn/topics.py",
        "return self._keep(self.fit_.update(rows, sample_weight=sample_weight, threads=self.threads))",
        "return self._keep(self.fit_.update(rows, sample_weight="
        f"(None if {python_bug(174)} else sample_weight), "
        "threads=self.threads))",
        "tests/surface/test_sklearn_topics.py",
    ),
    Bug(
        175,
        "outlier scores of a collection of dask are drawn with seed 0, whatever seed was asked for",
        "python/stickbreak/result/tables.py",
        'options = {"n": n, "seed": seed, "threads": threads}',
        f'options = {{"n": n, "seed": (0 if {python_bug(175)} else seed), "threads": threads}}',
        "tests/shards/test_by_chunk.py",
    ),
    Bug(
        176,
        "columns_for asks for ten rows for each amount, also for those that a joint Gaussian does not have",
        "python/stickbreak/run/choosing.py",
        "n >= _ROWS_OF_COLUMN * n_joint",
        f"n >= _ROWS_OF_COLUMN * (len(amounts) if {python_bug(176)} else n_joint)",
        "tests/run/test_columns_for.py",
    ),
    Bug(
        177,
        "stickbreak score --rows may replace the file of --weights",
        "python/stickbreak/cli/score.py",
        'check_table_place("rows", rows, inputs=(model, data, weights), keeps=keep is not None)',
        'check_table_place("rows", rows, inputs=(model, data, '
        f"(None if {python_bug(177)} else weights)), "
        "keeps=keep is not None)",
        "tests/surface/test_cli_results.py",
    ),
)
