"""The mistakes that `injected_bugs.py` makes, each with tests that are known to detect it."""

from __future__ import annotations

from dataclasses import dataclass

# The environment variable with the number of the mistake that is switched on.
SWITCH = "STICKBREAK_INJECTED_BUG"


@dataclass(frozen=True)
class Bug:
    """A mistake: `replace` for `find`, which occurs once in `file`.

    `seen` names tests that are known to detect it: a file for pytest, or words in the names of tests of the core.
    """

    number: int
    what: str
    file: str
    find: str
    replace: str
    seen: str


def bug(number: int) -> str:
    return f"crate::injected::is({number})"


BUGS = (
    Bug(
        1,
        "sign of the term of the means in the divergence of a Normal-Wishart",
        "src/likelihood/wishart/normal_wishart.rs",
        "+ 0.5 * self.dof / prior.inverse_kappa * self",
        f"+ (if {bug(1)} {{ -0.5 }} else {{ 0.5 }}) * self.dof / prior.inverse_kappa * self",
        "processes::both_forms_of_the_bound_meet",
    ),
    Bug(
        2,
        "the first pair of every piece after the first is lost",
        "src/local_step/accumulate.rs",
        "    for range in blocks(piece.len(), GATHERED) {",
        f"    let piece = if {bug(2)} && piece.start > 0 {{ piece.start + 1..piece.end }} else {{ piece }};\n"
        "    for range in blocks(piece.len(), GATHERED) {",
        "laws::many_rows_equal_plain_loops",
    ),
    Bug(
        3,
        "the old summary of a batch is not subtracted",
        "src/memo.rs",
        "            (Some(old), _) => {\n                let changed",
        f"            (Some(_), _) if {bug(3)} => self.total.add(&summary)?,\n"
        "            (Some(old), _) => {\n                let changed",
        "memo::",
    ),
    Bug(
        4,
        "digamma of a slightly wrong argument for the weight of the tail",
        "src/process/tail.rs",
        "let first = digamma(a) - digamma(a + b);",
        f"let first = digamma(a) - digamma((if {bug(4)} {{ 0.001 }} else {{ 0.0 }}) + a + b);",
        "process::dirichlet_process",
    ),
    Bug(
        5,
        "the gap of a pair that is merged times 0.9",
        "src/moves/kinds/merge.rs",
        "terms[0] - terms[1] - terms[2] - gap",
        f"terms[0] - terms[1] - terms[2] - (if {bug(5)} {{ 0.9 }} else {{ 1.0 }}) * gap",
        "moves::gains_and_summaries",
    ),
    Bug(
        6,
        "gaps of pairs without the masses of rows",
        "src/moves/gaps.rs",
        "*sum += units.mass(unit) * pair_gap(p, q);",
        f"*sum += (if {bug(6)} {{ 1.0 }} else {{ units.mass(unit) }}) * pair_gap(p, q);",
        "moves::gains_and_summaries",
    ),
    Bug(
        7,
        "sizes of pieces depend on the number of threads",
        "src/local_step/accumulate.rs",
        "blocks(pairs.count(k), PIECE)",
        f"blocks(pairs.count(k), if {bug(7)} {{ PIECE / rayon::current_num_threads() }} else {{ PIECE }})",
        "laws::threads_change_no_bit",
    ),
    Bug(
        8,
        "drifts are 2 % too short",
        "src/scoring/drift.rs",
        "let displacement = later.scale *",
        f"let displacement = (if {bug(8)} {{ 0.98 }} else {{ 1.0 }}) * later.scale *",
        "scoring::drift",
    ),
    Bug(
        9,
        "missing values of new rows are read as 0",
        "src/fit/update.rs",
        "        self.updated(&TableRows { rows, weights }, None,",
        "        let filled = Filled(rows);\n"
        f"        let rows: &dyn Rows<F> = if {bug(9)} {{ &filled }} else {{ rows }};\n"
        "        self.updated(&TableRows { rows, weights }, None,",
        "tests/run/test_update.py",
    ),
    Bug(
        10,
        "a resumed run forgets which moves have failed",
        "src/fit/position.rs",
        "        position.seconds = seconds;\n",
        "        position.seconds = seconds;\n"
        f"        if {bug(10)} {{\n            position.moves.end_waits();\n        }}\n",
        "tests/moves/test_moves_determinism.py",
    ),
    Bug(
        11,
        "the step size is off by one visit",
        "src/fit/algorithm.rs",
        "(visit as f64 + 1.0 + delay)",
        f"(visit as f64 + (if {bug(11)} {{ 2.0 }} else {{ 1.0 }}) + delay)",
        "tests/run/test_stochastic.py",
    ),
    Bug(
        12,
        "components are deleted 0.5 nats too early",
        "src/moves/refit.rs",
        "    Ok(is_gain(gain, [before",
        f"    let gain = gain + if {bug(12)} {{ 0.5 }} else {{ 0.0 }};\n    Ok(is_gain(gain, [before",
        "moves::gains_and_summaries",
    ),
    Bug(
        13,
        "bounds of distances make no allowance for rounding",
        "src/scoring/bounds.rs",
        "        let share = (d + 4) as f64 * F::EPSILON.to_f64();\n",
        f"        if {bug(13)} {{\n            return Self {{ slope: 0.0, intercept: 0.0, share: 0.0 }};\n        }}\n"
        "        let share = (d + 4) as f64 * F::EPSILON.to_f64();\n",
        "scoring::quadratic",
    ),
    Bug(
        14,
        "drifts are forgotten where components have another order",
        "src/local_step/bounds.rs",
        "column.map_or(Drift::ANY, |column| chunk.drifts[column])",
        f"column.map_or(Drift::ANY, |column| if {bug(14)} {{ Drift::NONE }} else {{ chunk.drifts[column] }})",
        "bounds::",
    ),
    Bug(
        15,
        "k-means++ ignores the masses of rows",
        "src/init/seeder.rs",
        "(0..units.len()).map(|unit| units.mass(unit)).collect();",
        f"(0..units.len()).map(|unit| if {bug(15)} {{ 1.0 }} else {{ units.mass(unit) }}).collect();",
        "laws::seeding_can_be_enumerated",
    ),
    Bug(
        16,
        "the last batch is one row short",
        "src/data/batches.rs",
        "    start(b)..start(b + 1)\n",
        f"    let short = usize::from({bug(16)} && b + 1 == n_batches);\n    start(b)..start(b + 1) - short\n",
        "data::batches",
    ),
    Bug(
        17,
        "u is drawn without the Jacobian of its logarithm",
        "src/process/random_measure.rs",
        "|log_u: f64| units * log_u",
        f"|log_u: f64| (units - if {bug(17)} {{ 1.0 }} else {{ 0.0 }}) * log_u",
        "mcmc:: process::partitions",
    ),
    Bug(
        18,
        "the mass is drawn without the Jacobian of its logarithm",
        "src/process/generalized_gamma.rs",
        "draws.log_gamma(prior.shape + all.blocks as f64)",
        f"draws.log_gamma(prior.shape - if {bug(18)} {{ 1.0 }} else {{ 0.0 }} + all.blocks as f64)",
        "mcmc:: process::partitions",
    ),
    Bug(
        19,
        "the concentration is drawn without the Jacobian of its logarithm",
        "src/process/dirichlet_process.rs",
        "draws.log_gamma(prior.shape + all.blocks as f64)",
        f"draws.log_gamma(prior.shape - if {bug(19)} {{ 1.0 }} else {{ 0.0 }} + all.blocks as f64)",
        "mcmc:: process::partitions",
    ),
    Bug(
        20,
        "a cluster keeps its determinant where a row leaves it",
        "src/likelihood/wishart/urn.rs",
        "            return refresh(self, cache);\n        }\n        settle(self, cache);\n",
        "            return refresh(self, cache);\n        }\n"
        f"        if !{bug(20)} {{\n            settle(self, cache);\n        }}\n",
        "mcmc:: process::partitions",
    ),
    Bug(
        21,
        "a cluster is scored with a row that has left it",
        "src/mcmc/clusters.rs",
        "        clusters.update_lane(target, index, row);\n        Ok(())\n",
        f"        if !{bug(21)} {{\n            clusters.update_lane(target, index, row);\n        }}\n"
        "        Ok(())\n",
        "mcmc:: process::partitions",
    ),
    Bug(
        22,
        "weights of joining a cluster are those of an earlier discount",
        "src/mcmc/clusters.rs",
        "|| clusters.by_size.0 != self.process.discount {",
        f"|| (!{bug(22)} && clusters.by_size.0 != self.process.discount) {{",
        "mcmc:: process::partitions",
    ),
    Bug(
        23,
        "a new cluster weighs 3 % too much",
        "src/mcmc/clusters.rs",
        "(stays, opens) };",
        f"(stays, opens + if {bug(23)} {{ 0.03 }} else {{ 0.0 }}) }};",
        "mcmc:: process::partitions",
    ),
    Bug(
        24,
        "joining a row that is alone weighs 3 % too much",
        "src/mcmc/clusters.rs",
        "{ target.process.log_join(size, process) }",
        f"{{ target.process.log_join(size, process) + if {bug(24)} && size == 1 {{ 0.03 }} else {{ 0.0 }} }}",
        "mcmc:: process::partitions",
    ),
    Bug(
        25,
        "merges are judged without the probability of the split back",
        "src/mcmc/split_merge.rs",
        "log_prior_of_split(sizes, 0, state, turn) + log_proposal;",
        f"log_prior_of_split(sizes, 0, state, turn) + if {bug(25)} {{ 0.0 }} else {{ log_proposal }};",
        "mcmc:: process::partitions",
    ),
    Bug(
        26,
        "splits are judged as if they were between fewer clusters",
        "src/mcmc/split_merge.rs",
        "log_prior_of_split([pair.size(0), pair.size(1)], 1, state, turn)",
        f"log_prior_of_split([pair.size(0), pair.size(1)], usize::from(!{bug(26)}), state, turn)",
        "mcmc:: process::partitions",
    ),
    Bug(
        27,
        "the last row of a split counts for nothing in its probability",
        "src/mcmc/pair.rs",
        "            log_probability -=\n                if log_ratio > 0.0",
        f"            let last = {bug(27)} && index + 1 == self.rows.len();\n"
        "            log_probability -=\n                if last { 0.0 } else if log_ratio > 0.0",
        "mcmc:: process::partitions",
    ),
    Bug(
        28,
        "all chains have the same random numbers",
        "src/mcmc/chain.rs",
        "key(self.sampling.plan.seed, [self.chain as u64])",
        f"key(self.sampling.plan.seed, [if {bug(28)} {{ 0 }} else {{ self.chain as u64 }}])",
        "mcmc:: process::partitions",
    ),
    Bug(
        29,
        "a chain goes on from a checkpoint without u",
        "src/mcmc/collapsed.rs",
        "        state.refresh(own.as_ref().unwrap_or(&self.target));\n",
        f"        if {bug(29)} && let Some(auxiliary) = &mut state.process.auxiliary {{\n"
        "            auxiliary.log_u = 0.0;\n        }\n"
        "        state.refresh(own.as_ref().unwrap_or(&self.target));\n",
        "mcmc:: process::partitions",
    ),
    Bug(
        30,
        "a new cluster has the weight of one row fewer in predictive densities",
        "src/mcmc/predictive.rs",
        "rest(n + 1, k + 1));",
        f"rest(n + usize::from(!{bug(30)}), k + 1));",
        "mcmc:: process::partitions",
    ),
    Bug(
        31,
        "the active set of a document leaves out topics that have words",
        "src/local_step/documents/visit.rs",
        "let active = |&(_, &count): &(usize, &f32)| count > LEAST_COUNT;",
        f"let active = |&(_, &count): &(usize, &f32)| count > if {bug(31)} {{ 1.0 }} else {{ LEAST_COUNT }};",
        "tests/model/test_topic_schedules.py",
    ),
    Bug(
        32,
        "between selections a word loses one of its topics",
        "src/local_step/documents/visit.rs",
        "for &column in &kept[..self.lengths[word] as usize] {",
        f"let lost = usize::from({bug(32)} && self.lengths[word] > 1);\n"
        "            for &column in &kept[..self.lengths[word] as usize - lost] {",
        "tests/model/test_topic_schedules.py",
    ),
    Bug(
        33,
        "topics of a document are weighed without digamma",
        "src/local_step/documents/kernels.rs",
        "digamma_of_positive(f64::from(count) + a)",
        f"(if {bug(33)} {{ (f64::from(count) + a).ln() }} else {{ digamma_of_positive(f64::from(count) + a) }})",
        "tests/model/test_topic_schedules.py",
    ),
    Bug(
        34,
        "a document's turns ignore how often a word stands in it",
        "src/local_step/documents/visit.rs",
        "document.counts.iter().map(|&count| count as f32)",
        f"document.counts.iter().map(|&count| if {bug(34)} {{ 1.0 }} else {{ count as f32 }})",
        "tests/model/test_topic_schedules.py",
    ),
    Bug(
        35,
        "the prior of a document's topics is added twice",
        "src/local_step/documents/columns.rs",
        "        of(prior, &mut self.prior);\n",
        "        of(prior, &mut self.prior);\n"
        f"        if {bug(35)} {{\n            self.prior.iter_mut().for_each(|a| *a *= 2.0);\n        }}\n",
        "tests/model/test_topic_schedules.py",
    ),
    Bug(
        36,
        "the documents' part of an old summary is added, not subtracted",
        "src/suffstats/documents.rs",
        "        self.n_documents += sign * other.n_documents;\n",
        f"        let sign = if {bug(36)} {{ sign.abs() }} else {{ sign }};\n"
        "        self.n_documents += sign * other.n_documents;\n",
        "documents::",
    ),
    Bug(
        37,
        "restarts are accepted where they lower the bound",
        "src/local_step/documents/restarts.rs",
        "if proposed > value &&",
        f"if (proposed > value || {bug(37)}) &&",
        "documents::",
    ),
    Bug(
        38,
        "the scaled first pass is not scaled",
        "src/fit/engine.rs",
        "let growth = if scales {",
        f"let growth = if scales && !{bug(38)} {{",
        "tests/model/test_topic_schedules.py",
    ),
    Bug(
        39,
        "a document goes on from the counts of the next one",
        "src/local_step/documents/mod.rs",
        "starts.as_ref().map(|starts| (&starts[index].0[..], &starts[index].1[..]));",
        f"starts.as_ref().map(|starts| {{\n            let index = (index + usize::from({bug(39)})) % starts.len();\n"
        "            (&starts[index].0[..], &starts[index].1[..])\n        });",
        "tests/model/test_topic_schedules.py",
    ),
    Bug(
        40,
        "topics are normalised without the pseudo-counts of their words",
        "src/likelihood/multinomial.rs",
        "        let total = self.total + sum.max(0.0);\n        1.0 /",
        f"        let total = if {bug(40)} {{ 1e-9 }} else {{ self.total }} + sum.max(0.0);\n        1.0 /",
        "tests/model/test_topic_schedules.py",
    ),
    Bug(
        41,
        "the best topics of a word are looked for above a bound that is too high",
        "src/responsibilities/row.rs",
        "if rank == last { score }",
        f"if rank == last {{ score * F::from_f64(if {bug(41)} {{ 1.05 }} else {{ 1.0 }}) }}",
        "responsibilities::",
    ),
    Bug(
        42,
        "documents forget their topics where a fit goes on from a checkpoint",
        "src/visits/documents.rs",
        "        self.states[shard] = load_state(bytes)?;\n",
        "        self.states[shard] = load_state(bytes)?;\n"
        f"        self.states[shard].counts = self.states[shard].counts.take().filter(|_| !{bug(42)});\n",
        "tests/model/test_topics.py",
    ),
    Bug(
        43,
        "a child of a node of a tree is counted twice",
        "src/mcmc/trees/arena.rs",
        "            urn.merge(&mut cache, self.inner_cache(b))?;\n",
        "            urn.merge(&mut cache, self.inner_cache(b))?;\n"
        f"            if {bug(43)} {{\n                urn.merge(&mut cache, self.inner_cache(b))?;\n            }}\n",
        "mcmc::trees",
    ),
    Bug(
        44,
        "the potential of a node leaves out one child",
        "src/mcmc/trees/arena.rs",
        "with_potential(node, a.log_potential + b.log_potential)",
        f"with_potential(node, a.log_potential + if {bug(44)} {{ 0.0 }} else {{ b.log_potential }})",
        "mcmc::trees",
    ),
    Bug(
        45,
        "tree-launched merges take no account of which clusters could be joined after the split back",
        "src/mcmc/tree_guided/launched.rs",
        "splits + log_separating + log_scan",
        f"(if {bug(45)} {{ 0.0 }} else {{ splits }}) + log_separating + log_scan",
        "mcmc::tree_guided",
    ),
    Bug(
        46,
        "subtree splits are judged without the probability of the cut",
        "src/mcmc/tree_guided/subtree.rs",
        "back - picked.log_probability - log_cut.iter().sum::<f64>(),",
        f"back - picked.log_probability - if {bug(46)} {{ 0.0 }} else {{ log_cut.iter().sum::<f64>() }},",
        "mcmc::tree_guided",
    ),
    Bug(
        47,
        "an answer of one batch is added twice",
        "src/executor.rs",
        "        sum.add(executor.answer(shard, &asked)?.into_value()?);\n",
        "        sum.add(executor.answer(shard, &asked)?.into_value()?);\n"
        f"        if {bug(47)} && shard == 1 {{\n"
        "            sum.add(executor.answer(shard, &asked)?.into_value()?);\n        }\n",
        "toy_question::",
    ),
    Bug(
        48,
        "a merge accepted on its first judgement alone",
        "src/moves/kinds/merge.rs",
        "let gain = change + weighing.change(*counts);",
        f"let gain = if {bug(48)} {{ *first }} else {{ change + weighing.change(*counts) }};",
        "moves::merges",
    ),
)

FILLED = """
/// Rows with 0 for what is missing.
struct Filled<'a, F>(&'a dyn Rows<F>);

impl<F: Scalar> Rows<F> for Filled<'_, F> {
    fn n_rows(&self) -> usize {
        self.0.n_rows()
    }

    fn n_columns(&self) -> usize {
        self.0.n_columns()
    }

    fn read_row(&self, row: usize, out: &mut [F]) {
        self.0.read_row(row, out);
        out.iter_mut().filter(|value| value.is_nan()).for_each(|value| *value = F::ZERO);
    }
}
"""
