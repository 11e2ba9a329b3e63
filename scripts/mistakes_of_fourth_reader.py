"""Mistakes that a fourth reader of the code chose without having seen the tests, for `injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug
from more_mistakes import python_bug

OF_FOURTH_READER: tuple[Bug, ...] = (
    Bug(
        240,
        "the steps of other columns are not in units of the step of the column that follows",
        "src/grounds/rounded.rs",
        "(1.0 + self.steps_of_others(&one) / one.step)",
        f"(1.0 + self.steps_of_others(&one) / if {bug(240)} {{ 1.0 }} else {{ one.step }})",
        "tests/model/test_near_dependent.py",
    ),
    Bug(
        241,
        "a repeated row counts once in one of two sums",
        "src/data/telling.rs",
        "*alone.entry(place).or_default() += m;",
        f"*alone.entry(place).or_default() += if {bug(241)} {{ 1.0 }} else {{ *m }};",
        "data::repeats",
    ),
    Bug(
        242,
        "the default truncation follows the first start",
        "src/mcmc/start.rs",
        "self.0.iter().map(|labels| n_distinct(labels)).max()",
        f"self.0.iter().take(if {bug(242)} {{ 1 }} else {{ usize::MAX }}).map(|labels| n_distinct(labels)).max()",
        "tests/sampling/test_starts_of_chains.py",
    ),
    Bug(
        243,
        "only the first learned parameter is asked whether draws are enough",
        "src/mcmc/chain.rs",
        ".skip(place).step_by(n_traced)",
        f".skip(if {bug(243)} {{ 0 }} else {{ place }}).step_by(n_traced)",
        "tests/sampling/test_longer_chains.py",
    ),
    Bug(
        244,
        "seeds of traces are compared with those of the first one",
        "python/stickbreak/result/joining.py",
        "set().union(*seeds[:place])",
        f"set().union(*seeds[: 1 if place and {python_bug(244)} else place])",
        "tests/sampling/test_longer_chains.py",
    ),
    Bug(
        245,
        "a longer trace forgets which sweeps reached the truncation before",
        "python/stickbreak/result/extending.py",
        "last_tenth=_sum(first.ran.last_tenth, second.ran.last_tenth),",
        f"last_tenth=second.ran.last_tenth if {python_bug(245)} else "
        "_sum(first.ran.last_tenth, second.ran.last_tenth),",
        "tests/sampling/test_longer_chains.py",
    ),
    Bug(
        246,
        "how many draws are missing is counted over all chains",
        "python/stickbreak/result/advising_chains.py",
        "draws = int(chains.log_joint.shape[1])\n    return",
        f"draws = int(chains.log_joint.size if {python_bug(246)} else chains.log_joint.shape[1])\n    return",
        "tests/sampling/test_starts_of_chains.py",
    ),
    Bug(
        247,
        "columns without ones are pooled whatever their counts",
        "src/likelihood/bernoulli.rs",
        "} else if without.times > 0.0 && without.f != n {",
        f"}} else if !{bug(247)} && without.times > 0.0 && without.f != n {{",
        "tests/run/test_missing_values.py",
    ),
    Bug(
        248,
        "beyond the first documents words have the weights of other documents",
        "src/local_step/words.rs",
        "*of_word * weights[first + place]",
        f"*of_word * weights[if {bug(248)} {{ place }} else {{ first + place }}]",
        "tests/model/test_topics.py",
    ),
    Bug(
        250,
        "rows of a node count alike, whatever their weights",
        "src/local_step/nodes/gains.rs",
        "of_rows += mass / total *",
        f"of_rows += (if {bug(250)} {{ (masses.len() as f64).recip() }} else {{ mass / total }}) *",
        "tests/run/test_kd_tree.py",
    ),
    Bug(
        251,
        "sparse responsibilities are counted without weights",
        "python/stickbreak/result/labelling.py",
        "matrix.data if weights is None else matrix.data * weights.repeat(n_kept)",
        f"matrix.data if weights is None or {python_bug(251)} else matrix.data * weights.repeat(n_kept)",
        "tests/result/test_label_shares.py",
    ),
    Bug(
        252,
        "the mean of sparse counts is that of the first column, even if it has the exposures",
        "src/likelihood/poisson.rs",
        "columns[usize::from(exposures.column() == Some(0))]",
        f"columns[usize::from(!{bug(252)} && exposures.column() == Some(0))]",
        "tests/model/test_exposure.py",
    ),
)
