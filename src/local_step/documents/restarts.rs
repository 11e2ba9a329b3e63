//! Restart proposals: a converged document tries to remove one of its smaller topics (mathematics 11.3; Hughes, Kim &
//! Sudderth 2015).

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::local_step::documents::visit::{Document, DocumentSpace, LEAST_COUNT, Visiting};
use crate::special::{ln_gamma_difference, ln_of_positive};

/// Topics with more expected words than this in the document are not tried.
const MOST_WORDS: f32 = 50.0;
/// Topics with fewer expected words are not tried either: they have what their prior weight alone gives them, and get
/// it back at once. With dense responsibilities most topics of a document are such.
const FEWEST_WORDS: f32 = 0.5;
/// Number of steps before a proposal is judged.
const STEPS: usize = 2;
/// A topic whose count returns to within this many words was not removed.
const CAME_BACK: f32 = 1e-5;

/// Number of restarts proposed and accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarts {
    /// Number proposed.
    pub proposed: usize,
    /// Number accepted because they raise the document's part of the bound.
    pub accepted: usize,
}

impl AddAssign for Restarts {
    fn add_assign(&mut self, other: Self) {
        self.proposed += other.proposed;
        self.accepted += other.accepted;
    }
}

impl DocumentSpace {
    /// Tries to remove small topics one by one, smallest first. Keeps each removal that raises the document's part of
    /// the bound.
    pub(super) fn restart(&mut self, shared: Visiting<'_>, document: Document<'_>) -> Restarts {
        let mut found = Restarts::default();
        let mut value = self.judge(shared, document, 1);
        let mut counts = self.source.counts.to_vec();
        let mut tried = FEWEST_WORDS;
        for _ in 0..shared.options.restarts {
            let active = |&(_, &count): &(usize, &f32)| count > LEAST_COUNT;
            let n_active = counts.iter().enumerate().filter(active).count();
            let left = counts.iter().enumerate().filter(|(_, count)| **count > tried);
            let smallest = left.min_by(|a, b| a.1.total_cmp(b.1)).map(|(column, &count)| (column, count));
            let Some((column, count)) = smallest.filter(|(_, count)| n_active > 1 && *count < MOST_WORDS) else {
                break;
            };
            self.source.counts.copy_from_slice(&counts);
            self.source.counts[column] = 0.0;
            let proposed = self.judge(shared, document, STEPS);
            found.proposed += 1;
            if proposed > value && (count - self.source.counts[column]).abs() >= CAME_BACK {
                found.accepted += 1;
                value = proposed;
                counts.copy_from_slice(&self.source.counts);
            }
            tried = count;
        }
        self.source.counts.copy_from_slice(&counts);
        self.judge(shared, document, 1);
        found
    }

    /// Runs steps with selection and returns the document's part of the bound at the last responsibilities, up to a
    /// constant that no step changes, nats.
    fn judge(&mut self, shared: Visiting<'_>, document: Document<'_>, steps: usize) -> f64 {
        for _ in 0..steps {
            self.source.weigh();
            self.step(shared, document, true);
        }
        let source = &self.source;
        let columns = source.prior.iter().zip(&source.log_factors).zip(source.weights.iter().zip(&*source.counts));
        let of_topics: f64 = columns
            .filter(|(_, (weight, count))| **weight > 0.0 && **count > 0.0)
            .map(|((a, log_factor), (weight, count))| {
                let n = f64::from(*count);
                ln_gamma_difference(*a, n) - n * (ln_of_positive(f64::from(*weight)) - log_factor)
            })
            .sum();
        let words = document.counts.iter().zip(&self.sums);
        of_topics + words.map(|(count, sum)| count * ln_of_positive(f64::from(*sum))).sum::<f64>()
    }
}
