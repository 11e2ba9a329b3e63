"""Mistakes in blocks of columns and levels for `injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug
from more_mistakes import python_bug

OF_COLUMNS = (
    Bug(
        95,
        "a block counts the rows that lack it",
        "src/likelihood/columns.rs",
        "let count = self.place.present.map_or(component.count, |present| component.statistics[present]);",
        f"let present = self.place.present.filter(|_| !{bug(95)});\n"
        "        let count = present.map_or(component.count, |present| component.statistics[present]);",
        "tests/model/test_columns.py",
    ),
    Bug(
        96,
        "the log marginal of a component leaves out the first block",
        "src/likelihood/columns.rs",
        "        self.sum(component, |own, component| own.log_marginal(component))\n",
        f"        let first = if {bug(96)} {{ self.blocks.first() }} else {{ None }};\n"
        "        let lost = first.map_or(Ok(0.0), |block| block.conjugate().log_marginal(block.of(component)))?;\n"
        "        Ok(self.sum(component, |own, component| own.log_marginal(component))? - lost)\n",
        "tests/model/test_columns.py",
    ),
    Bug(
        97,
        "the scores leave out the first of two or more blocks",
        "src/scoring/sum.rs",
        "        for block in &self.blocks {\n            block.gather(rows, self.dimension, own);",
        f"        for block in self.blocks.iter().skip(usize::from({bug(97)} && self.blocks.len() > 1)) {{\n"
        "            block.gather(rows, self.dimension, own);",
        "tests/model/test_columns.py",
    ),
    Bug(
        98,
        "log weights count once for every block",
        "src/likelihood/columns/scores.rs",
        "let none = vec![0.0; log_weights.len()];",
        f"let none = if {bug(98)} {{ log_weights.to_vec() }} else {{ vec![0.0; log_weights.len()] }};",
        "tests/model/test_columns.py",
    ),
    Bug(
        99,
        "rows that lack a block are scored with zeros in it",
        "src/scoring/sum.rs",
        "let has = |row: &[F]| !lacks(row, &block.columns);",
        f"let has = |row: &[F]| {bug(99)} || !lacks(row, &block.columns);",
        "tests/model/test_columns.py",
    ),
    Bug(
        100,
        "one component's scores of rows that lack a block are not cleared",
        "src/scoring/sum.rs",
        "        if self.may_lack {\n            for (score, row)",
        f"        if self.may_lack && !{bug(100)} {{\n            for (score, row)",
        "urn::",
    ),
    Bug(
        101,
        "the columns of a block are read in the order of the data",
        "src/scoring/sum.rs",
        "    for row in rows.chunks_exact(dimension) {\n        out.extend(",
        "    let mut columns = columns.to_vec();\n"
        f"    if {bug(101)} {{\n        columns.sort_unstable();\n    }}\n"
        "    for row in rows.chunks_exact(dimension) {\n        out.extend(",
        "tests/model/test_columns.py",
    ),
    Bug(
        102,
        "the estimate of a block goes to the first block of the same likelihood",
        "src/likelihood/columns/evidence.rs",
        "            block.member.put(&mut found, evidence.estimate(own)?);\n",
        "            let first = self.blocks.iter().find(|other| other.member.entry.name == block.member.entry.name);\n"
        f"            let block = first.filter(|_| {bug(102)}).unwrap_or(block);\n"
        "            block.member.put(&mut found, evidence.estimate(own)?);\n",
        "tests/model/test_laws_of_columns.py",
    ),
    Bug(
        103,
        "drawn parameters of all blocks come from the same random numbers",
        "src/likelihood/columns/rows.rs",
        "let key = if index == 0 {",
        f"let key = if index == 0 || {bug(103)} {{",
        "tests/sampling/test_exact_posterior.py",
    ),
    Bug(
        104,
        "the histogram of some columns is that of the first ones",
        "src/data/histogram.rs",
        "        for &column in columns {\n            found.",
        "        for &column in columns {\n"
        f"            let column = if {bug(104)} {{ found.starts.len() - 1 }} else {{ column }};\n            found.",
        "tests/model/test_columns.py",
    ),
    Bug(
        105,
        "codes of levels are those of the next level",
        "python/stickbreak/io/levels.py",
        "codes = {each: float(code) for code, each in enumerate(levels)}",
        f"codes = {{each: float((code + {python_bug(105)}) % len(levels)) for code, each in enumerate(levels)}}",
        "tests/input/test_levels.py",
    ),
    Bug(
        106,
        "results show the level before that of a code",
        "python/stickbreak/io/levels.py",
        "return levels[int(value)] if",
        f"return levels[int(value) - {python_bug(106)}] if",
        "tests/input/test_levels.py",
    ),
    Bug(
        107,
        "a value that is no level is read as the last one",
        "python/stickbreak/io/levels.py",
        "table = np.array([codes.get(each, -1.0)",
        f"table = np.array([codes.get(each, len(levels) - 1.0 if {python_bug(107)} else -1.0)",
        "tests/input/test_levels.py",
    ),
    Bug(
        108,
        "imputation reads the levels of every block where those of the first one are",
        "src/likelihood/columns/rows.rs",
        "            first += last;\n",
        f"            first += if {bug(108)} {{ 0 }} else {{ last }};\n",
        "tests/result/test_densities_of_columns.py",
    ),
    Bug(
        109,
        "drawn rows have the columns of a block in the order of the data",
        "src/likelihood/columns/rows.rs",
        "                block.place.columns.iter().zip(own).for_each(|(&column, value)| row[column] = value);\n",
        "                let mut columns = block.place.columns.clone();\n"
        f"                if {bug(109)} {{\n                    columns.sort_unstable();\n                }}\n"
        "                columns.iter().zip(own).for_each(|(&column, value)| row[column] = value);\n",
        "tests/result/test_densities_of_columns.py",
    ),
    Bug(
        110,
        "rows that have a block are counted without their masses",
        "src/likelihood/columns/completing.rs",
        "statistics[present] += own_weights.iter().sum::<f64>();",
        "statistics[present] += own_weights.iter()"
        f".map(|weight| if {bug(110)} {{ 1.0 }} else {{ *weight }}).sum::<f64>();",
        "tests/model/test_laws_of_columns.py",
    ),
    Bug(
        111,
        "a block moves with the origin of the first columns",
        "src/likelihood/columns.rs",
        "rebase(block.of(component), &block.values(origin))?;",
        f"rebase(block.of(component), &if {bug(111)} {{ origin[..block.place.columns.len()].to_vec() }} "
        "else { block.values(origin) })?;",
        "tests/model/test_laws_of_columns.py",
    ),
    Bug(
        112,
        "a conditional density ignores given values of blocks of which nothing else is asked",
        "src/laws/mod.rs",
        "log_density += law.marginal(&known)?.log_density(&values, &mut Vec::new());",
        f"let of_known = law.marginal(&known)?.log_density(&values, &mut Vec::new());\n"
        f"                        log_density += if {bug(112)} {{ 0.0 }} else {{ of_known }};",
        "tests/model/test_columns.py",
    ),
    Bug(
        113,
        "two clusters that merge keep the rows of one in the first block",
        "src/likelihood/columns/urn.rs",
        "            urn.merge(&mut cache[range.clone()], &other[range])?;\n",
        f"            if {bug(113)} && range.start == COUNT + 1 {{\n                continue;\n            }}\n"
        "            urn.merge(&mut cache[range.clone()], &other[range])?;\n",
        "urn::",
    ),
)
