"""Mistakes that outside checks made and no test saw, for `injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug

OF_TRUST: tuple[Bug, ...] = (
    Bug(
        147,
        "jumps without rows follow the mass before the sweep",
        "src/mcmc/conditional/slice.rs",
        "        self.0.update(&state.sizes(), &mut state.process, draws);\n"
        "        let measure = self.0.measure(&state.process);\n",
        "        let before = self.0.measure(&state.process);\n"
        "        self.0.update(&state.sizes(), &mut state.process, draws);\n"
        f"        let measure = if {bug(147)} {{ before }} else {{ self.0.measure(&state.process) }};\n",
        "conditional::slice",
    ),
    Bug(
        148,
        "the variance of the second of two missing values is their covariance",
        "src/likelihood/imputation.rs",
        "covariance[index * (missing.len() + 1)]",
        f"covariance[index * (missing.len() + usize::from(!{bug(148)}))]",
        "tests/run/test_imputation.py",
    ),
    Bug(
        149,
        "levels are sought as if there were no constant columns",
        "src/fitted/imputation.rs",
        "let moved = d - self.coordinates.rank();",
        f"let moved = if {bug(149)} {{ 0 }} else {{ d - self.coordinates.rank() }};",
        "tests/run/test_imputation.py",
    ),
    Bug(
        150,
        "given values do not add to the degrees of freedom of a tail",
        "src/laws/scaled.rs",
        "dof: self.dof + given.len() as f64 }",
        f"dof: self.dof + if {bug(150)} {{ 0.0 }} else {{ given.len() as f64 }} }}",
        "laws::scaled",
    ),
    Bug(
        151,
        "the scales of rows with tails count the rounding of their missing values",
        "src/likelihood/wishart/tail.rs",
        "self.expected[n].at(least * (1.0 + square) - 0.5 * rounding)",
        f"self.expected[n].at(least * (1.0 + square) - if {bug(151)} {{ 0.0 }} else {{ 0.5 * rounding }})",
        "tests/model/test_tails_with_holes.py",
    ),
    Bug(
        152,
        "drawn scales lack the factor 1 / u of their density",
        "src/likelihood/wishart/tail.rs",
        "let half = 0.5 * self.tail.columns as f64 - 1.0;",
        f"let half = 0.5 * self.tail.columns as f64 - if {bug(152)} {{ 0.0 }} else {{ 1.0 }};",
        "student_t::",
    ),
    Bug(
        153,
        "the marginal of two clusters leaves out the last block",
        "src/likelihood/columns/urn.rs",
        "            urn.log_marginal_likelihood_of_both(&a[range.clone()], &b[range])\n",
        f"            if {bug(153)} && range.end == a.len() {{\n                return Ok(0.0);\n            }}\n"
        "            urn.log_marginal_likelihood_of_both(&a[range.clone()], &b[range])\n",
        "columns::urn",
    ),
    Bug(
        154,
        "seeds are judged by rows that cannot belong to them",
        "src/init/classes.rs",
        "let joins = self.classes[row]",
        f"let joins = {bug(154)} || self.classes[row]",
        "init::classes",
    ),
    Bug(
        155,
        "some of the draws of partitions count once each",
        "src/partitions/draws.rs",
        "let times = kept.iter().map(|&draw| self.times[draw]).collect();",
        f"let times = kept.iter().map(|&draw| if {bug(155)} {{ 1.0 }} else {{ self.times[draw] }}).collect();",
        "partitions::draws",
    ),
    Bug(
        156,
        "a search that was cut ends with a state that has not settled",
        "src/fit/search.rs",
        "as_deref().filter(|best| best.is_cut) else",
        f"as_deref().filter(|best| best.is_cut && !{bug(156)}) else",
        "fit::search",
    ),
    Bug(
        157,
        "a rearrangement divides the rows of one component of its pool",
        "src/fit/rearrange.rs",
        "pool.contains(&(*k as usize))",
        f"if {bug(157)} {{ pool[0] == *k as usize }} else {{ pool.contains(&(*k as usize)) }}",
        "fit::rearrange",
    ),
    Bug(
        158,
        "a start from some rows has their mass",
        "src/fit/tree_start.rs",
        "Ok(sums.scale(self.n_rows as f64 / units.len() as f64))",
        f"Ok(if {bug(158)} {{ sums }} else {{ sums.scale(self.n_rows as f64 / units.len() as f64) }})",
        "fit::tree_start",
    ),
    Bug(
        159,
        "a node of few rows takes one unit of a budget",
        "src/local_step/nodes/frontier.rs",
        "if n < self.least { n - 1 } else { 1 }",
        f"if n < self.least && !{bug(159)} {{ n - 1 }} else {{ 1 }}",
        "tests/run/test_kd_tree_budgets.py",
    ),
    Bug(
        160,
        "the scores of rows with tails count the rounding of their missing values",
        "src/likelihood/wishart/patterns.rs",
        "        let spread = all * inverse_kappa + dof * self.rounding(columns, variances);\n",
        "        let whole: Vec<usize> = (0..self.distribution.dimension()).collect();\n"
        f"        let counted = if {bug(160)} {{ &whole[..] }} else {{ columns }};\n"
        "        let spread = all * inverse_kappa + dof * self.rounding(counted, variances);\n",
        "tests/model/test_tails_with_holes.py",
    ),
    Bug(
        161,
        "drawn scales of independent columns lack the factor 1 / u of their density",
        "src/likelihood/row_scale.rs",
        "ScaleOfRow { value, log, rest: (self.half - 1.0) * log }",
        f"ScaleOfRow {{ value, log, rest: (self.half - if {bug(161)} {{ 0.0 }} else {{ 1.0 }}) * log }}",
        "student_t::",
    ),
    Bug(
        162,
        "the state of a stage that was cut counts as converged",
        "src/fit/search.rs",
        "                self.keep_best(position, is_cut)?;\n                self.start_again(position)?",
        f"                self.keep_best(position, is_cut && !{bug(162)})?;\n"
        "                self.start_again(position)?",
        "fit::search",
    ),
    Bug(
        163,
        "sticks of a sweep follow the concentration before it",
        "src/mcmc/conditional/slice.rs",
        "        process.update_given_counts(&state.counts, 0.0, &mut state.process, draws);\n"
        "        let mut sticks = draw_sticks(process, &state.counts, 0.0, &state.process, draws);\n",
        "        let before = state.process;\n"
        "        process.update_given_counts(&state.counts, 0.0, &mut state.process, draws);\n"
        f"        let law = if {bug(163)} {{ before }} else {{ state.process }};\n"
        "        let mut sticks = draw_sticks(process, &state.counts, 0.0, &law, draws);\n",
        "conditional::slice",
    ),
    Bug(
        164,
        "truncated sticks follow the concentration before the sweep",
        "src/mcmc/conditional/blocked.rs",
        "        process.update_given_counts(occupied, of_last, &mut state.process, draws);\n"
        "        let mut sticks = draw_sticks(process, &counts, of_last, &state.process, draws);\n",
        "        let before = state.process;\n"
        "        process.update_given_counts(occupied, of_last, &mut state.process, draws);\n"
        f"        let law = if {bug(164)} {{ before }} else {{ state.process }};\n"
        "        let mut sticks = draw_sticks(process, &counts, of_last, &law, draws);\n",
        "conditional::blocked",
    ),
)
