//! Enumerates every path of random choices of a step, with its probability.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::mcmc::{ChainState, Target, Turn};
use crate::parallel::Cancel;
use crate::rng::{Choices, Draws};

/// Replays the choices of one path, and then takes the first option at each further choice.
#[derive(Default)]
struct Path {
    /// The option taken at each choice, and the number of options.
    taken: Vec<(usize, usize)>,
    depth: usize,
    probability: f64,
}

impl Choices for Path {
    fn choose(&mut self, weights: &[f64]) -> usize {
        let total: f64 = weights.iter().sum();
        let options: Vec<usize> = (0..weights.len()).filter(|&option| weights[option] > 0.0).collect();
        if self.depth == self.taken.len() {
            self.taken.push((0, options.len()));
        }
        let option = options[self.taken[self.depth].0];
        self.depth += 1;
        self.probability *= weights[option] / total;
        option
    }
}

impl Draws for Path {
    fn uniform(&mut self) -> f64 {
        unreachable!("partitions change by discrete choices alone")
    }

    fn log_gamma(&mut self, _: f64) -> f64 {
        unreachable!("partitions change by discrete choices alone")
    }
}

/// Calls `step` once for each path, and returns probabilities and results.
pub fn paths<T>(mut step: impl FnMut(&mut dyn Draws) -> T) -> Vec<(f64, T)> {
    let mut found = Vec::new();
    let mut path = Path { probability: 1.0, ..Path::default() };
    loop {
        let outcome = step(&mut path);
        found.push((path.probability, outcome));
        while path.taken.last().is_some_and(|(option, n)| option + 1 == *n) {
            path.taken.pop();
        }
        let Some((option, _)) = path.taken.last_mut() else { return found };
        *option += 1;
        (path.depth, path.probability) = (0, 1.0);
    }
}

/// The labels of all partitions of `n` rows, numbered by first appearance.
pub fn partitions(n: usize) -> Vec<Vec<u32>> {
    let mut all = vec![Vec::new()];
    for _ in 0..n {
        let longer = |labels: &Vec<u32>| {
            let next = labels.iter().max().map_or(0, |most| most + 1);
            (0..=next).map(|label| [&labels[..], &[label]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// A step of a sampler.
pub type Step<'a> = dyn Fn(&mut ChainState, &mut Turn<'_>) -> Result<()> + 'a;

/// The transition matrix of a step over all partitions, row by row. Checks that each resulting state is sound.
pub fn transitions(target: &Target, states: &[ChainState], step: &Step<'_>) -> Vec<Vec<f64>> {
    let labels = |state: &ChainState| {
        let mut labels = vec![0; target.n_rows()];
        state.clusters.write_labels(&mut labels);
        labels
    };
    let numbers: BTreeMap<Vec<i32>, usize> =
        states.iter().enumerate().map(|(number, state)| (labels(state), number)).collect();
    let row = |start: &ChainState| {
        let mut row = vec![0.0; states.len()];
        let outcomes = paths(|draws| {
            let mut state = start.clone();
            step(&mut state, &mut Turn { target, draws, cancel: &Cancel::default() }).expect("definite");
            state
        });
        for (probability, state) in outcomes {
            assert!(state.clusters.fits(target));
            let column = numbers[&labels(&state)];
            let (found, expected) = (state.log_joint(target), states[column].log_joint(target));
            let (found, expected) = (found.expect("definite"), expected.expect("definite"));
            assert!((found - expected).abs() < 1e-9, "a stale cache: {found} {expected}");
            row[column] += probability;
        }
        row
    };
    states.iter().map(row).collect()
}
