//! Properties of visits of documents: the bound never falls within a visit, and sums are sums over the words.

use proptest::prelude::*;

use super::*;
use crate::component::ComponentId;
use crate::data::{Csr, CsrRows, RowUnits};
use crate::local_step::{Keep, LocalStep};
use crate::model::{Model, Named, Specification};
use crate::objective::Objective;
use crate::parallel::{Cancel, with_threads};
use crate::parameters::{Parameters, Value, vector};
use crate::simd::{Instructions, Lines};
use crate::suffstats::{Sufficient, Summary};

/// Counts of words by document, and sums of words by topic.
#[derive(Debug, Clone)]
struct Problem {
    documents: Vec<Vec<(u32, f64)>>,
    sums: Vec<f64>,
    n_words: usize,
    concentration: f64,
    word_concentration: f64,
    objective: Objective,
}

impl Problem {
    fn k(&self) -> usize {
        self.sums.len() / self.n_words
    }

    fn model(&self) -> Model<f64> {
        let pseudo_counts = vector(vec![self.word_concentration; self.n_words]);
        let likelihood = Named {
            name: "Multinomial".into(),
            parameters: Parameters::from_pairs([("pseudo_counts", pseudo_counts), ("coefficient", Value::Number(0.0))]),
        };
        let process = Named {
            name: "LatentDirichlet".into(),
            parameters: Parameters::from_pairs([
                ("n_topics", Value::Number(self.k() as f64)),
                ("concentration", Value::Number(self.concentration)),
            ]),
        };
        let objective = self.objective;
        Specification {
            likelihood,
            process,
            objective,
            missing: false,
            estimated: None,
            learned: None,
            values: None,
            background: None,
        }
        .build(vec![0.0; self.n_words])
        .expect("a topic model")
    }

    /// The weights of words in topics.
    fn table(&self) -> TopicTable {
        let model = self.model();
        let counts: Vec<f64> =
            self.sums.chunks_exact(self.n_words).map(|sums_of_topic| sums_of_topic.iter().sum()).collect();
        let topics: Vec<Sufficient<'_>> = self
            .sums
            .chunks_exact(self.n_words)
            .zip(&counts)
            .map(|(statistics, &count)| Sufficient { count, statistics })
            .collect();
        let mut table = TopicTable::default();
        let emissions = model.likelihood.emissions().expect("words");
        table.fill(emissions, self.objective, &topics, 1.0, &vec![true; self.n_words]);
        table
    }

    /// E log phi_kv, or log phi_kv of a point estimate, (K, V), from its formula.
    fn log_weights(&self) -> Vec<f64> {
        let of = |x: f64| if self.objective == Objective::Variational { digamma(x) } else { x.ln() };
        let topics = self.sums.chunks_exact(self.n_words);
        let b = self.word_concentration;
        topics
            .flat_map(|sums_of_topic| {
                let total = of(sums_of_topic.iter().map(|s| s + b).sum());
                sums_of_topic.iter().map(move |s| of(s + b) - total).collect::<Vec<_>>()
            })
            .collect()
    }

    /// One visit of all documents, with the bound (mathematics 11.2), nats.
    fn visit(&self, width: usize, options: DocumentOptions) -> (Summary, DocumentTerms, f64) {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for document in &self.documents {
            columns.extend(document.iter().map(|word| word.0));
            values.extend(document.iter().map(|word| word.1));
            starts.push(columns.len() as u64);
        }
        let rows = CsrRows::new(Csr { starts: &starts, columns: &columns, values: &values }, self.n_words);
        let rows = rows.expect("whole rows");
        let words = DocumentWords::of(&RowUnits::all(&rows, None));
        let (model, table) = (self.model(), self.table());
        let prior = vec![self.concentration / self.k() as f64; self.k()];
        let ids: Vec<ComponentId> = (0..self.k() as u32).map(ComponentId).collect();
        let assign = ByDocument::new(&words, &table, &prior, width, options, None);
        let cancel = Cancel::default();
        let likelihood = model.likelihood.as_ref();
        let step = LocalStep { likelihood, ids: &ids, assign: &assign, keep: Keep::Summary, cancel: &cancel };
        let outcome = step.run(&words, None, &mut []).expect("finite weights");
        let found = assign.finish(&ids);
        let data: f64 = outcome.summary.statistics.iter().zip(self.log_weights()).map(|(s, log)| s * log).sum();
        let bound = data + outcome.summary.entropies.iter().sum::<f64>() + found.terms.bound(&prior);
        (outcome.summary, found.terms, bound)
    }
}

fn problems() -> impl Strategy<Value = Problem> {
    (2_usize..12, 3_usize..20).prop_flat_map(|(k, v)| {
        let document = prop::collection::btree_map(0..v as u32, (1_u32..30).prop_map(f64::from), 0..v);
        (
            prop::collection::vec(document.prop_map(|words| words.into_iter().collect()), 1..6),
            prop::collection::vec(prop_oneof![Just(0.0), 0.0..40.0], k * v),
            prop_oneof![0.01..0.5, 0.5..20.0],
            0.01..2.0,
            prop_oneof![Just(Objective::Map), Just(Objective::Variational)],
        )
            .prop_map(move |(documents, sums, concentration, word_concentration, objective)| Problem {
                documents,
                sums,
                n_words: v,
                concentration,
                word_concentration,
                objective,
            })
    })
}

proptest! {
    /// Mathematics 11.3: no step lowers the documents' part of the bound, however many topics a word keeps.
    #[test]
    fn the_bound_never_falls_within_a_visit(problem in problems(), width in 1_usize..12) {
        let mut before = f64::NEG_INFINITY;
        for max_steps in 1..30 {
            let options = DocumentOptions { max_steps, tolerance: 0.0, warm: false, restarts: 0 };
            let (summary, _, bound) = problem.visit(width.min(problem.k()), options);
            // Weights are float32, which changes the bound only to second order.
            prop_assert!(bound >= before - 1e-7 * (1.0 + summary.mass), "{} {} {}", max_steps, before, bound);
            before = bound;
        }
    }

    /// The topics that documents share in their first step are those that each would select, bit by bit.
    #[test]
    fn the_first_step_is_a_step(problem in problems(), width in 1_usize..12) {
        let width = width.min(problem.k() - 1);
        let (table, first, options) = (&problem.table(), &FirstTopics::default(), DocumentOptions::USUAL);
        let prior = &vec![problem.concentration / problem.k() as f64; problem.k()];
        let log_factors = &table.factors().iter().map(|factor| factor.ln()).collect::<Vec<_>>();
        let shared = Visiting { table, prior, log_factors, width, options, first };
        for words in &problem.documents {
            let (words, counts): (Vec<u32>, Vec<f64>) = words.iter().copied().unzip();
            let document = Document { words: &words, counts: &counts, start: None };
            let found = |is_shared: bool| {
                let mut space = DocumentSpace::default();
                space.begin(shared, document);
                if is_shared { space.first_step(shared, document) } else { space.step(shared, document, true) }
                let kept = space.kept.chunks_exact(width).zip(&space.lengths);
                let kept: Vec<Vec<u32>> = kept.map(|(kept, &length)| kept[..length as usize].to_vec()).collect();
                let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                (bits(&space.source.counts), kept, bits(&space.sums))
            };
            prop_assert_eq!(found(true), found(false));
        }
    }

    /// Restarts are accepted only if they raise the bound.
    #[test]
    fn restarts_never_lower_the_bound(problem in problems(), width in 1_usize..12) {
        let options = DocumentOptions { max_steps: 200, tolerance: 1e-4, warm: false, restarts: 0 };
        let width = width.min(problem.k());
        let (summary, _, without) = problem.visit(width, options);
        let (_, _, with) = problem.visit(width, DocumentOptions { restarts: 5, ..options });
        prop_assert!(with >= without - 1e-5 * (1.0 + summary.mass), "{} {}", without, with);
    }

    /// Every word's responsibilities sum to one, however many topics it keeps; counts are sums of statistics.
    #[test]
    fn no_word_is_lost(problem in problems(), width in 1_usize..12, restarts in 0_usize..3) {
        let options = DocumentOptions { restarts, ..DocumentOptions::USUAL };
        let (summary, terms, _) = problem.visit(width.min(problem.k()), options);
        let n: f64 = problem.documents.iter().flatten().map(|word| word.1).sum();
        prop_assert!((summary.mass - n).abs() <= 1e-12 * n);
        prop_assert!((summary.counts.iter().sum::<f64>() - n).abs() <= 1e-9 * (1.0 + n));
        for (count, sums_of_topic) in summary.counts.iter().zip(summary.statistics.chunks_exact(problem.n_words)) {
            prop_assert!((count - sums_of_topic.iter().sum::<f64>()).abs() <= 1e-9 * (1.0 + n));
        }
        prop_assert_eq!(terms.n_documents, problem.documents.len() as f64);
    }

    /// Terms of documents are additive, and subtracting one of two visits leaves the other.
    #[test]
    fn terms_of_documents_add(problem in problems(), width in 1_usize..12) {
        let (summary, terms, _) = problem.visit(width.min(problem.k()), DocumentOptions::USUAL);
        let one = Summary { documents: Some(terms), ..summary };
        let mut sum = one.clone();
        sum.add(&one).expect("same components");
        prop_assert_eq!(sum.amount(), 2.0 * one.amount());
        sum.sub(&one).expect("same components");
        let (found, expected) = (sum.documents.expect("documents"), one.documents.expect("documents"));
        let numbers = |terms: &DocumentTerms| {
            let totals = [terms.n_documents, terms.log_gamma_of_totals];
            [&totals[..], &terms.log_gammas, &terms.log_weights, &terms.slacks].concat()
        };
        for (a, b) in numbers(&found).into_iter().zip(numbers(&expected)) {
            prop_assert!((a - b).abs() <= 1e-12 * (1.0 + b.abs()), "{} {}", a, b);
        }
    }

    /// With room for all topics, selection keeps all, and the counts equal those of dense responsibilities.
    #[test]
    fn enough_room_is_dense(
        (k, values) in (1_usize..40).prop_flat_map(|k| (Just(k), prop::collection::vec(0.001_f32..1.0, k..20 * k))),
        weights in prop::collection::vec(0.001_f32..1.0, 40),
        counts in prop::collection::vec((1_u32..9).prop_map(|count| count as f32), 20),
    ) {
        let n = values.len() / k;
        let width = k.next_multiple_of(table::LANES);
        let mut lines: [Lines<f32>; 5] = Default::default();
        let [rows, topic_weights, dense, sparse, products] = &mut lines;
        rows.reset(n * width, 0.0);
        rows.chunks_exact_mut(width).zip(values.chunks_exact(k)).for_each(|(to, from)| to[..k].copy_from_slice(from));
        for line in [&mut *topic_weights, &mut *dense, &mut *sparse, &mut *products] {
            line.reset(width, 0.0);
        }
        topic_weights[..k].copy_from_slice(&weights[..k]);
        let places: Vec<u32> = (0..n as u32).collect();
        let (mut kept, mut lengths, mut sums) = (vec![0; n * k], vec![0; n], vec![0.0; n]);
        let (counts, mut best) = (&counts[..n], crate::responsibilities::RowBest::default());
        let rows = kernels::WordRows { values: &*rows, width, places: &places };
        for set in Instructions::available() {
            set.run(kernels::Expect { rows, counts, weights: &*topic_weights, sums: &mut sums, out: &mut *dense });
            let of_dense = sums.clone();
            set.run(kernels::Select {
                rows, counts, weights: &*topic_weights, width: k, kept: &mut kept, lengths: &mut lengths,
                products: &mut *products, best: &mut best, sums: &mut sums, out: &mut *sparse,
            });
            prop_assert!(lengths.iter().all(|&length| length as usize == k));
            let pairs = of_dense.iter().zip(&sums).chain(dense.iter().zip(&**sparse));
            for (a, b) in pairs {
                prop_assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{} {}", a, b);
            }
        }
    }

    #[test]
    fn threads_change_no_bit(problem in problems(), width in 1_usize..12) {
        let width = width.min(problem.k());
        let visit = || problem.visit(width, DocumentOptions::USUAL);
        let run = |threads| with_threads(Some(threads), visit).expect("a pool");
        let (one, of_one, _) = run(1);
        let (three, of_three, _) = run(3);
        prop_assert_eq!(one, three);
        prop_assert_eq!(of_one, of_three);
    }

    /// The order of documents affects only the rounding of sums.
    #[test]
    fn the_order_of_documents_does_not_matter(problem in problems(), width in 1_usize..12) {
        let width = width.min(problem.k());
        let mut turned = problem.clone();
        turned.documents.reverse();
        let ((a, _, bound), (b, _, other)) =
            (problem.visit(width, DocumentOptions::USUAL), turned.visit(width, DocumentOptions::USUAL));
        for (a, b) in a.statistics.iter().zip(&b.statistics) {
            prop_assert!((a - b).abs() <= 1e-10 * (1.0 + a.abs()));
        }
        prop_assert!((bound - other).abs() <= 1e-9 * (1.0 + bound.abs()));
    }
}

/// A document whose words may have all topics, in float64.
struct Plain {
    /// The words' counts, and their weights in the topics.
    words: Vec<(f64, Vec<f64>)>,
    /// Pseudo-counts and log factors of the topics.
    topics: Vec<(f64, f64)>,
}

impl Plain {
    /// The counts after one step from these, and the document's part of the bound with them (mathematics 11.3).
    fn step(&self, counts: &[f64]) -> (Vec<f64>, f64) {
        let logs: Vec<f64> = counts.iter().zip(&self.topics).map(|(n, (a, log))| digamma(n + a) + log).collect();
        let (mut next, mut bound) = (vec![0.0; logs.len()], 0.0);
        for (count, weights) in &self.words {
            let terms: Vec<f64> = weights.iter().zip(&logs).map(|(weight, log)| weight * log.exp()).collect();
            let sum: f64 = terms.iter().sum();
            bound += count * sum.ln();
            next.iter_mut().zip(terms).for_each(|(n, term)| *n += count * term / sum);
        }
        for ((n, log), (a, log_factor)) in next.iter().zip(&logs).zip(&self.topics).filter(|((n, _), _)| **n > 0.0) {
            bound += ln_gamma(a + n) - ln_gamma(*a) - n * (log - log_factor);
        }
        (next, bound)
    }

    /// The counts after so many restarts and a last step, how many were accepted, and the smallest difference that
    /// decided one, nats.
    fn restarted(&self, counts: &[f64], restarts: usize) -> (Vec<f64>, usize, f64) {
        let (mut kept, mut bound) = self.step(counts);
        let (mut tried, mut accepted, mut closest) = (0.5, 0, f64::INFINITY);
        for _ in 0..restarts {
            let left = kept.iter().copied().enumerate().filter(|(_, n)| *n > tried);
            let smallest = left.min_by(|a, b| a.1.total_cmp(&b.1));
            let Some((topic, n)) = smallest.filter(|(_, n)| *n < 50.0) else { break };
            if kept.iter().filter(|n| **n > 1e-9).count() < 2 {
                break;
            }
            let mut without = kept.clone();
            without[topic] = 0.0;
            let (after, proposed) = self.step(&self.step(&without).0);
            closest = closest.min((proposed - bound).abs());
            if proposed > bound {
                (kept, bound, accepted) = (after, proposed, accepted + 1);
            }
            tried = n;
        }
        (self.step(&kept).0, accepted, closest)
    }
}

/// Every restart is judged against the best state so far, not against that before all of them.
#[test]
fn restarts_are_those_of_the_formulas() {
    use rand::RngExt;
    let (k, n_words, restarts) = (7_usize, 12_usize, 6);
    let (mut several, mut checked) = (0, 0);
    for seed in 0..400 {
        let mut generator = crate::rng::stream(seed, crate::rng::Purpose::Draws, 0);
        let sums = (0..k * n_words).map(|_| (40.0 * generator.random::<f64>() - 15.0).max(0.0)).collect();
        let counts: Vec<f64> = (0..n_words).map(|_| f64::from(generator.random_range(1_u8..6))).collect();
        let (concentration, word_concentration) =
            (generator.random_range(0.05..2.0), generator.random_range(0.05..1.0));
        let objective = Objective::Variational;
        let problem = Problem { documents: Vec::new(), sums, n_words, concentration, word_concentration, objective };
        let (table, first) = (&problem.table(), &FirstTopics::default());
        let options = DocumentOptions { max_steps: 1 + seed as usize % 3, tolerance: 0.0, warm: false, restarts };
        let prior = &vec![concentration / k as f64; k];
        let log_factors = &table.factors().iter().map(|factor| factor.ln()).collect::<Vec<_>>();
        let shared = Visiting { table, prior, log_factors, width: k, options, first };
        let words: Vec<u32> = (0..n_words as u32).collect();
        let document = Document { words: &words, counts: &counts, start: None };
        let mut space = DocumentSpace::default();
        space.settle(shared, document);
        let row = |word: u32| table.rows()[word as usize * table.stride()..][..k].iter();
        let plain = Plain {
            words: words
                .iter()
                .zip(&counts)
                .map(|(&word, &n)| (n, row(word).map(|&x| f64::from(x)).collect()))
                .collect(),
            topics: prior.iter().copied().zip(log_factors.iter().copied()).collect(),
        };
        let of_topics = |space: &DocumentSpace| {
            let mut all = vec![0.0; k];
            let pairs = space.source.topics.iter().zip(&*space.source.counts);
            pairs.for_each(|(&topic, &count)| all[topic as usize] = f64::from(count));
            all
        };
        let (expected, accepted, closest) = plain.restarted(&of_topics(&space), restarts);
        let found = space.restart(shared, document);
        // In float32 a closer decision may fall otherwise.
        if closest > 0.01 {
            assert_eq!(found.accepted, accepted, "{seed}");
            for (a, b) in of_topics(&space).iter().zip(&expected) {
                assert!((a - b).abs() < 1e-3 * (1.0 + b), "{seed}: {a} {b}");
            }
            (several, checked) = (several + usize::from(accepted > 1), checked + 1);
        }
    }
    assert!(several > 20 && checked > 200, "{several} {checked}");
}

/// Stored counts follow the edits of the list of topics.
#[test]
fn counts_follow_edits() {
    let ids = [0, 1, 2].map(ComponentId);
    let documents: [(&[u32], &[f64]); 3] = [(&[0, 2], &[1.5, 2.0]), (&[], &[]), (&[1], &[4.0])];
    let mut counts = DocumentCounts::of(&ids, documents.into_iter());
    let counts_at = |counts: &DocumentCounts, ids: &[ComponentId]| counts.positions(ids, 3).expect("three documents");
    assert_eq!(counts_at(&counts, &ids)[0], (vec![0, 2], vec![1.5, 2.0]));
    assert_eq!(counts_at(&counts, &[ids[2], ids[1], ids[0]])[0], (vec![0, 2], vec![2.0, 1.5]));
    counts.replace(ids[2], Some(ids[0]));
    assert_eq!(counts_at(&counts, &ids[..2])[0], (vec![0], vec![3.5]));
    counts.replace(ids[1], None);
    assert_eq!(counts_at(&counts, &ids[..1]), [(vec![0], vec![3.5]), (vec![], vec![]), (vec![], vec![])]);
    assert!(counts.positions(&ids, 4).is_none());
}

/// Blocks and chunks of words hold whole documents; the first document may exceed the requested size.
#[test]
fn words_come_by_document() {
    use crate::local_step::Units;
    let (starts, columns) = ([0, 3, 3, 4, 9], [0, 1, 2, 0, 0, 1, 2, 3, 4]);
    let rows = CsrRows::new(Csr { starts: &starts, columns: &columns, values: &[1.0_f64; 9] }, 5).expect("whole rows");
    let words = DocumentWords::of(&RowUnits::all(&rows, None));
    assert_eq!((Units::<f64>::len(&words), words.n_documents()), (9, 4));
    let ends: Vec<usize> = [(0, 1), (0, 3), (0, 4), (3, 2), (4, 2), (4, 99)]
        .into_iter()
        .map(|(first, size)| Units::<f64>::chunk_end(&words, first, size))
        .collect();
    assert_eq!(ends, [3, 3, 4, 4, 9, 9]);
    assert_eq!([0, 2, 3, 4, 8].map(|word| words.document_of(word)), [0, 0, 2, 3, 3]);
}
