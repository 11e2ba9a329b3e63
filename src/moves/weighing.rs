//! The weights' part of the bound, and its change as components are merged one after another (mathematics 4.5).

use crate::moves::Judge;
use crate::process::FreeSticks;
use crate::simd::Scalar;
use crate::suffstats::Summary;

/// The counts of all components, from which the weights' part of the bound follows.
pub(super) struct Weighing<'a, F: Scalar> {
    judge: &'a Judge<'a, F>,
    /// In decreasing order.
    counts: Vec<f64>,
    tail: f64,
    formula: Formula,
}

/// How changes are computed.
enum Formula {
    /// In closed form, from N_{>=k} for every k, including the tail.
    Closed(FreeSticks, Vec<f64>),
    /// As a difference from this bound.
    Difference(f64),
}

impl Formula {
    fn of<F: Scalar>(judge: &Judge<'_, F>, counts: &[f64], tail: f64) -> Self {
        let Some(sticks) = judge.free_sticks() else {
            return Self::Difference(judge.allocation(counts.to_vec(), tail));
        };
        let add = |sum: &mut f64, count: &f64| {
            *sum += count;
            Some(*sum)
        };
        let mut from: Vec<f64> = counts.iter().rev().scan(tail, add).collect();
        from.reverse();
        Self::Closed(sticks, from)
    }
}

impl<'a, F: Scalar> Weighing<'a, F> {
    /// Weighs the components of a summary.
    pub fn new(judge: &'a Judge<'a, F>, total: &Summary) -> Self {
        let mut counts: Vec<f64> = total.counts.iter().map(|count| count.max(0.0)).collect();
        counts.sort_unstable_by(|a, b| b.total_cmp(a));
        let tail = judge.count_beyond(total);
        let formula = Formula::of(judge, &counts, tail);
        Self { judge, counts, tail, formula }
    }

    /// The change if two components with these counts become one, nats.
    pub fn change(&self, counts: [f64; 2]) -> f64 {
        let [a, b] = self.places(counts);
        match &self.formula {
            Formula::Closed(sticks, from) => sticks.change_by_merge(&self.counts, from, a, b),
            Formula::Difference(before) => self.judge.allocation(self.joined(a, b), self.tail) - before,
        }
    }

    /// Makes one component of two with these counts.
    pub fn merge(&mut self, counts: [f64; 2]) {
        let [a, b] = self.places(counts);
        self.counts = self.joined(a, b);
        self.formula = Formula::of(self.judge, &self.counts, self.tail);
    }

    /// The positions of two counts in the sorted list, the larger count first.
    fn places(&self, [one, other]: [f64; 2]) -> [usize; 2] {
        let place = |count: f64| self.counts.partition_point(|&larger| larger > count);
        let a = place(one.max(other).max(0.0));
        [a, place(one.min(other).max(0.0)).max(a + 1)]
    }

    fn joined(&self, a: usize, b: usize) -> Vec<f64> {
        let both = self.counts[a] + self.counts[b];
        let mut joined = self.counts.clone();
        joined.remove(b);
        joined.remove(a);
        joined.insert(joined.partition_point(|&larger| larger >= both), both);
        joined
    }
}
