"""Mistakes in rows of which a part is not seen, and in partial labels, for `injected_bugs.py`."""

from __future__ import annotations

from mistakes import Bug, bug

OF_UNSEEN = (
    Bug(
        114,
        "the bound leaves out the entropy of imputed values",
        "src/likelihood/wishart/holes.rs",
        "            fills[0] += weight * filling.statistic;\n",
        f"            fills[0] += if {bug(114)} {{ 0.0 }} else {{ weight * filling.statistic }};\n",
        "tests/model/test_holes.py",
    ),
    Bug(
        115,
        "imputed values have no covariance",
        "src/likelihood/wishart/holes.rs",
        "                packed[first + from] += weight * filling.covariance[j * n + i];\n",
        f"                let times = if {bug(115)} {{ 0.0 }} else {{ weight }};\n"
        "                packed[first + from] += times * filling.covariance[j * n + i];\n",
        "tests/model/test_holes.py",
    ),
    Bug(
        116,
        "rounding counts for missing values, too",
        "src/likelihood/wishart/holes.rs",
        "packed[first + to] -= mass * self.variances.get(to).unwrap_or(&0.0);",
        f"packed[first + to] -= if {bug(116)} {{ 0.0 }} else {{ mass * self.variances.get(to).unwrap_or(&0.0) }};",
        "tests/model/test_holes.py",
    ),
    Bug(
        117,
        "the scale of a row is used twice",
        "src/likelihood/wishart/tail.rs",
        "        self.tail.add(rows.dense(), &scaled, statistics, space);\n        // E ln u",
        f"        if {bug(117)} {{\n"
        "            scaled.iter_mut().zip(weights).for_each(|(u, w)| *u *= *u / w.max(1e-300));\n"
        "        }\n"
        "        self.tail.add(rows.dense(), &scaled, statistics, space);\n        // E ln u",
        "tests/model/test_student_t.py",
    ),
    Bug(
        118,
        "the mean of a component with tails becomes certain by rows, not by their scales",
        "src/likelihood/student_t.rs",
        "    ScaleSums::of(component).mass.max(0.0)\n}",
        f"    if {bug(118)} {{ component.count }} else {{ ScaleSums::of(component).mass.max(0.0) }}\n}}",
        "tests/model/test_student_t.py",
    ),
    Bug(
        119,
        "the degrees of freedom of a tail are estimated from scales in place of rows",
        "src/likelihood/wishart/tail.rs",
        "(n, excess) = (n + component.count, excess + log - mass);",
        f"(n, excess) = (n + if {bug(119)} {{ mass }} else {{ component.count }}, excess + log - mass);",
        "tests/model/test_student_t.py",
    ),
    Bug(
        120,
        "the threshold of a Student t excludes squared lengths that reach it",
        "src/scoring/quadratic_form.rs",
        "        reach * (1.0 + 8.0 * F::EPSILON",
        f"        (if {bug(120)} {{ 0.9 }} else {{ 1.0 }}) * reach * (1.0 + 8.0 * F::EPSILON",
        "scoring::",
    ),
    Bug(
        121,
        "a row that a delete gives to a component that it had keeps the entropy of two",
        "src/moves/transfer.rs",
        "                    given.entropies[place] -= units.mass(row) * pair_gap(*value, share);\n",
        f"                    if !{bug(121)} {{\n"
        "                        given.entropies[place] -= units.mass(row) * pair_gap(*value, share);\n"
        "                    }\n",
        "tests/model/test_student_t.py",
    ),
    Bug(
        122,
        "labels do not limit the components of rows",
        "src/local_step/assign.rs",
        "        if let Some(Mask { rows, components }) = self.mask {",
        f"        if let Some(Mask {{ rows, components }}) = self.mask.filter(|_| !{bug(122)}) {{",
        "tests/run/test_partial_labels.py",
    ),
    Bug(
        123,
        "the covariance of imputed values is scaled with their row",
        "src/likelihood/wishart/tail.rs",
        "fill.add_covariance(filling, weight, sum(&scaled), &mut moments[self.columns..]);",
        f"let of_v = if {bug(123)} {{ sum(&scaled) }} else {{ weight }};\n"
        "            fill.add_covariance(filling, of_v, sum(&scaled), &mut moments[self.columns..]);",
        "tests/model/test_tails_with_holes.py",
    ),
    Bug(
        124,
        "missing columns count for the scale of a row",
        "src/likelihood/diagonal_student_t/scales.rs",
        "let (expected, rate) = (self.expected[seen.n], ",
        f"let n = if {bug(124)} {{ self.expected.len() - 1 }} else {{ seen.n }};\n"
        "        let (expected, rate) = (self.expected[n], ",
        "tests/model/test_diagonal_student_t.py",
    ),
    Bug(
        125,
        "the precision of a column of rows with scales counts scales, not rows",
        "src/likelihood/diagonal_gaussian/normal_gamma.rs",
        "self.shape + 0.5 * rows };",
        f"self.shape + 0.5 * if {bug(125)} {{ n }} else {{ rows }} }};",
        "tests/model/test_diagonal_student_t.py",
    ),
    Bug(
        126,
        "the uncertainty of means does not lower the scale of a row",
        "src/likelihood/diagonal_student_t/scales.rs",
        "(column.slope * x + column.offset).powi(2) + spread;",
        f"(column.slope * x + column.offset).powi(2) + if {bug(126)} {{ 0.0 }} else {{ *spread }};",
        "tests/model/test_diagonal_student_t.py",
    ),
)
