//! The seam of units: tree nodes of one level contribute like equal rows, and visits never split groups.

use proptest::prelude::*;
use stickbreak::Result;
use stickbreak::component::{ComponentId, EditLog};
use stickbreak::data::{DenseRows, RowBlock, RowUnits, Sample};
use stickbreak::likelihood::Likelihood;
use stickbreak::local_step::{
    ByScore, Chunk, FromPairs, Gather, Keep, LocalState, LocalStep, Outcome, Read, Statistics, Tap, Units,
};
use stickbreak::model::Model;
use stickbreak::parallel::Cancel;
use stickbreak::simd::Lines;

use crate::common::{clustered, distance, globals_of_rows, model};

const D: usize = 3;
const K: usize = 4;

/// One level of a tree. Each node is scored by its mean, and has a mass, mean statistics and a mean log base measure.
struct Nodes {
    means: Vec<f64>,
    masses: Vec<f64>,
    statistics: Vec<f64>,
    log_base_measures: Vec<f64>,
    /// Number of nodes per group.
    group: usize,
}

impl Nodes {
    /// Creates nodes that each hold `masses[i]` equal rows.
    fn of_equal_rows(model: &Model<f64>, rows: &[f64], masses: Vec<f64>) -> Self {
        let p = model.likelihood.n_statistics();
        let origin = model.likelihood.origin();
        let centred: Vec<f64> = rows.iter().enumerate().map(|(index, x)| x - origin[index % D]).collect();
        let mut statistics = vec![0.0; masses.len() * p];
        for (row, statistics) in centred.chunks_exact(D).zip(statistics.chunks_exact_mut(p)) {
            model.likelihood.accumulate(RowBlock::Dense(row), &[1.0], statistics, &mut Lines::default());
        }
        let mut log_base_measures = vec![0.0; masses.len()];
        model.likelihood.log_fixed_bases(RowBlock::Dense(&centred), &mut log_base_measures);
        Self { means: rows.to_vec(), masses, statistics, log_base_measures, group: 1 }
    }
}

impl Units<f64> for Nodes {
    fn len(&self) -> usize {
        self.masses.len()
    }

    fn dimension(&self) -> usize {
        D
    }

    fn row_number(&self, unit: usize) -> usize {
        unit
    }

    fn mass(&self, unit: usize) -> f64 {
        self.masses[unit]
    }

    fn chunk_end(&self, first: usize, size: usize) -> usize {
        self.len().min(first + (size / self.group).max(1) * self.group)
    }

    fn n_values(&self) -> usize {
        D
    }

    fn read(&self, list: &[u32], origin: &[f64], out: &mut [f64]) {
        for (&unit, out) in list.iter().zip(out.chunks_exact_mut(D)) {
            for (column, out) in out.iter_mut().enumerate() {
                *out = self.means[unit as usize * D + column] - origin[column];
            }
        }
    }

    fn rows<'a>(&'a self, _: &[u32], values: &'a [f64], _: &'a mut Vec<u32>) -> RowBlock<'a, f64> {
        RowBlock::Dense(values)
    }

    fn add_statistics(
        &self,
        _: Statistics<'_, f64>,
        read: Read<'_, f64>,
        weights: &[f64],
        statistics: &mut [f64],
        _: &mut Gather,
    ) {
        let p = statistics.len();
        for (&place, weight) in read.places.iter().zip(weights) {
            let mean_statistics = &self.statistics[read.units[place as usize] as usize * p..][..p];
            statistics.iter_mut().zip(mean_statistics).for_each(|(sum, value)| *sum += weight * value);
        }
    }

    fn log_fixed_bases(&self, _: &dyn Likelihood<f64>, read: Read<'_, f64>, out: &mut [f64]) {
        for (&unit, out) in read.units.iter().zip(out) {
            *out = self.log_base_measures[unit as usize];
        }
    }

    fn select(&self, list: &[u32]) -> Box<dyn Units<f64> + '_> {
        let p = self.statistics.len() / self.len();
        let pick = |values: &[f64], width: usize| -> Vec<f64> {
            list.iter().flat_map(|&unit| values[unit as usize * width..][..width].to_vec()).collect()
        };
        Box::new(Self {
            means: pick(&self.means, D),
            masses: pick(&self.masses, 1),
            statistics: pick(&self.statistics, p),
            log_base_measures: pick(&self.log_base_measures, 1),
            group: 1,
        })
    }

    fn copy_into(&self, list: &[u32], sample: &mut Sample) {
        let table = DenseRows::new(&self.means[..], D);
        sample.extend(&RowUnits::all(&table, Some(&self.masses)), list);
    }
}

/// Visits units twice, the second time in the order of their last best components.
fn visits(model: &Model<f64>, units: &dyn Units<f64>, rows: &[f64], width: usize) -> Outcome {
    let globals = globals_of_rows(model, rows, D, K);
    let scorer = globals.scorer(model).expect("definite");
    let step = LocalStep {
        likelihood: model.likelihood.as_ref(),
        ids: &globals.ids,
        assign: &ByScore {
            scorer: scorer.as_ref(),
            has_tail: false,
            width,
            margin: None,
            abandon: true,
            row_terms: false,
            mask: None,
        },
        keep: Keep::SummaryAndGaps,
        cancel: &Cancel::default(),
    };
    let mut state = LocalState::default();
    let first = step.run(units, Some(&mut state), &mut []).expect("finite");
    let second = step.run(units, Some(&mut state), &mut []).expect("finite");
    assert_eq!(first.summary, second.summary);
    second
}

fn rows_of(likelihood: &str, n: usize, seed: u64) -> Vec<f64> {
    let rows: Vec<f64> = clustered(n, D, K, seed);
    match likelihood {
        "Bernoulli" => rows.into_iter().map(|x| f64::from(u8::from(x > 0.0))).collect(),
        "Poisson" | "Multinomial" => rows.into_iter().map(|x| x.abs().round()).collect(),
        _ => rows,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A node of equal rows contributes what the rows contribute.
    #[test]
    fn nodes_of_equal_rows_equal_the_rows(
        name in prop::sample::select(vec![
            "Gaussian", "ZeroMeanGaussian", "DiagonalGaussian", "Poisson", "Multinomial", "Bernoulli",
        ]),
        copies in prop::collection::vec(1_usize..4, 8..300),
        width in 1_usize..=K,
        seed in 0_u64..100,
    ) {
        let distinct = rows_of(name, copies.len(), seed);
        let all: Vec<f64> =
            distinct.chunks_exact(D).zip(&copies).flat_map(|(row, &times)| row.repeat(times)).collect();
        let model = model::<f64>(name, "DirichletProcess", K, &all, D);
        let table = DenseRows::new(&all, D);
        let of_rows = visits(&model, &RowUnits::all(&table, None), &distinct, width);
        let nodes = Nodes::of_equal_rows(&model, &distinct, copies.iter().map(|&times| times as f64).collect());
        let of_nodes = visits(&model, &nodes, &distinct, width);
        let (a, b) = (of_rows.summary, of_nodes.summary);
        prop_assert!(distance(&a.counts, &b.counts) < 1e-12);
        prop_assert!(distance(&a.entropies, &b.entropies) < 1e-12);
        prop_assert!(distance(&a.statistics, &b.statistics) < 1e-11);
        prop_assert!(distance(&[a.mass, a.log_base_measure], &[b.mass, b.log_base_measure]) < 1e-12);
        prop_assert!(distance(&[of_rows.log_normalizer], &[of_nodes.log_normalizer]) < 1e-12);
        for pair in (0..K).flat_map(|i| (0..i).map(move |j| (i, j))) {
            let gap = |gaps: &stickbreak::suffstats::PairGaps| {
                gaps.get(ComponentId(pair.1 as u32), ComponentId(pair.0 as u32)).expect("all are known")
            };
            prop_assert!((gap(&a.gaps) - gap(&b.gaps)).abs() < 1e-10 * (1.0 + a.mass));
        }
    }
}

/// Records the ends of chunks.
#[derive(Default)]
struct Ends(Vec<u32>);

impl Tap for Ends {
    fn observe(&mut self, chunk: &Chunk<'_>) -> Result<()> {
        self.0.extend(chunk.units.last().map(|last| last + 1));
        Ok(())
    }
}

#[test]
fn chunks_hold_whole_groups() {
    let (n, group, width) = (1001, 7, 5000);
    let rows = clustered::<f64>(n, D, K, 1);
    let model = model::<f64>("Gaussian", "DirichletProcess", K, &rows, D);
    let nodes = Nodes { group, ..Nodes::of_equal_rows(&model, &rows, vec![1.0; n]) };
    // With so many pairs per unit, a chunk holds few units.
    let values: Vec<f64> = (0..n * width).map(|index| if index % width == 0 { 1.0 } else { 0.0 }).collect();
    let components = vec![0; n * width];
    let ids = EditLog::with_components(K).components().expect("one append");
    let step = LocalStep {
        likelihood: model.likelihood.as_ref(),
        ids: &ids,
        assign: &FromPairs { width, components: &components, values: &values },
        keep: Keep::Summary,
        cancel: &Cancel::default(),
    };
    let mut ends = Ends::default();
    let summary = step.run(&nodes, None, &mut [&mut ends]).expect("finite").summary;
    assert!(ends.0.len() > 2 && ends.0.iter().all(|end| (*end as usize).is_multiple_of(group)), "{:?}", ends.0);
    assert_eq!(summary.counts, [n as f64, 0.0, 0.0, 0.0]);
}
