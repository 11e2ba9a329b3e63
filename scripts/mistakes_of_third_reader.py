"""Mistakes that a third reader of the code chose without having seen the tests, for `injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug
from more_mistakes import python_bug

OF_THIRD_READER: tuple[Bug, ...] = (
    Bug(
        220,
        "the quantile of the length of a run is that of the first chain",
        "src/mcmc/run_length.rs",
        "let mut sorted = draws.to_vec();",
        f"let mut sorted = if {bug(220)} {{ draws[..length].to_vec() }} else {{ draws.to_vec() }};",
        "tests/sampling/test_diagnostics.py",
    ),
    Bug(
        221,
        "the second half of a chain of odd length lacks its last draw",
        "src/mcmc/diagnostics.rs",
        "chain[length - half..].to_vec()];",
        f"if {bug(221)} {{ chain[half..2 * half].to_vec() }} else {{ chain[length - half..].to_vec() }}];",
        "tests/sampling/test_diagnostics.py",
    ),
    Bug(
        222,
        "rows of the last of few components say nothing of a learned concentration",
        "src/mcmc/conditional/blocked.rs",
        "update_given_counts(occupied, of_last, &mut",
        f"update_given_counts(occupied, if {bug(222)} {{ 0.0 }} else {{ of_last }}, &mut",
        "tests/sampling/test_exact_posterior.py",
    ),
    Bug(
        223,
        "a new cluster has the shared base measure, not that of the draw",
        "src/mcmc/predictive.rs",
        "        let target = self.own.as_ref().unwrap_or(target);\n"
        "        let mut scores = vec![0.0; self.log_weights.len()];\n"
        "        let n_clusters = scores.len() - 1;\n"
        "        target.urn().log_predictives(&self.caches, row, &mut scores[..n_clusters])?;\n",
        "        let shared = target;\n"
        "        let target = self.own.as_ref().unwrap_or(target);\n"
        "        let mut scores = vec![0.0; self.log_weights.len()];\n"
        "        let n_clusters = scores.len() - 1;\n"
        "        target.urn().log_predictives(&self.caches, row, &mut scores[..n_clusters])?;\n"
        f"        let target = if {bug(223)} {{ shared }} else {{ target }};\n",
        "tests/sampling/test_learned_base.py",
    ),
    Bug(
        225,
        "tails about a given centre expect the rows beyond the centre of the data",
        "src/background.rs",
        'let is_own = !is_given("centre") && !is_given("reach");',
        f'let is_own = ({bug(225)} || !is_given("centre")) && !is_given("reach");',
        "tests/model/test_background.py",
    ),
    Bug(
        227,
        "slopes within a block are those of the first columns of the table",
        "src/laws/mod.rs",
        "let slopes: Vec<f64> = columns.iter().map(|&column| slopes[column]).collect();",
        f"let slopes: Vec<f64> = if {bug(227)} {{ slopes[..columns.len()].to_vec() }} else {{ "
        "columns.iter().map(|&column| slopes[column]).collect() };",
        "tests/model/test_near_dependent.py",
    ),
    Bug(
        228,
        "missing values are rounded, too",
        "src/likelihood/spherical_gaussian/missing.rs",
        "map(|(n, variance)| n.max(0.0) * variance).sum();",
        f"map(|(own, variance)| if {bug(228)} {{ n }} else {{ *own }}.max(0.0) * variance).sum();",
        "tests/run/test_missing_values.py",
    ),
    Bug(
        230,
        "after a merge, gains of the next ones are those of the components before it",
        "src/moves/weighing.rs",
        "        self.counts = self.joined(a, b);\n"
        "        self.formula = Formula::of(self.judge, &self.counts, self.tail);",
        "        self.counts = self.joined(a, b);\n"
        f"        if !{bug(230)} {{ self.formula = Formula::of(self.judge, &self.counts, self.tail); }}",
        "tests/moves/test_moves_within_classes.py",
    ),
    Bug(
        231,
        "rows picked from a stream have no weights",
        "src/data/stream.rs",
        "let weights = self.weights.map(|weights| rows",
        f"let weights = self.weights.filter(|_| !{bug(231)}).map(|weights| rows",
        "data::stream",
    ),
    Bug(
        232,
        "clusters are joined as if all rows had weight one",
        "python/stickbreak/result/combining.py",
        "masses = np.ones(len(values)) if weights is None else weights",
        f"masses = np.ones(len(values)) if weights is None or {python_bug(232)} else weights",
        "tests/result/test_combine.py",
    ),
)
