//! Sparse statistics: only nonzero values are stored for each component, as batches of sparse rows produce them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Sparse statistics by component.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SparseStatistics {
    /// The nonzero statistics of each component, in the order of the summary.
    pub components: Vec<NonZeros>,
}

impl SparseStatistics {
    /// Zeros of `k` components.
    pub fn zeros(k: usize) -> Self {
        Self { components: vec![NonZeros::default(); k] }
    }

    /// Total number of stored values.
    pub fn len(&self) -> usize {
        self.components.iter().map(|component| component.columns.len()).sum()
    }

    /// Whether all are zero.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether they take less memory than `n` dense values.
    pub fn is_smaller_than(&self, n: usize) -> bool {
        self.len() * (size_of::<u32>() + size_of::<f64>()) < n * size_of::<f64>()
    }

    /// All statistics including zeros, `n_statistics` per component.
    pub fn to_dense(&self, n_statistics: usize) -> Vec<f64> {
        let mut dense = vec![0.0; self.components.len() * n_statistics];
        for (component, to) in self.components.iter().zip(dense.chunks_exact_mut(n_statistics)) {
            component.add_to(to, 1.0);
        }
        dense
    }

    /// Whether these can be finite statistics of `k` components, since files are not trusted.
    pub fn fits(&self, k: usize, n_statistics: usize) -> bool {
        self.components.len() == k && self.components.iter().all(|component| component.fits(n_statistics))
    }
}

/// The nonzero statistics of one component.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct NonZeros {
    /// Positions, ascending.
    columns: Box<[u32]>,
    values: Box<[f64]>,
}

impl NonZeros {
    /// The nonzero entries of dense statistics.
    pub fn of(dense: &[f64]) -> Self {
        (0..).zip(dense).filter(|(_, value)| **value != 0.0).map(|(column, value)| (column, *value)).collect()
    }

    /// Positions, ascending.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// Positions and values.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f64)> {
        self.columns.iter().copied().zip(self.values.iter().copied())
    }

    /// Adds these values, times `sign`, to the dense statistics of a component.
    pub fn add_to(&self, dense: &mut [f64], sign: f64) {
        self.iter().for_each(|(column, value)| dense[column as usize] += sign * value);
    }

    /// Subtracts `old` from the dense statistics of a component and adds `new`. Returns the changed positions,
    /// ascending.
    pub fn exchange(dense: &mut [f64], old: &Self, new: &Self) -> Vec<u32> {
        let mut changed = Vec::new();
        let (mut of_old, mut of_new) = (old.iter().peekable(), new.iter().peekable());
        loop {
            let column_of = |entry: Option<&(u32, f64)>| entry.map_or(u32::MAX, |(column, _)| *column);
            let column = column_of(of_old.peek()).min(column_of(of_new.peek()));
            let Some(value) = dense.get_mut(column as usize) else { return changed };
            let before = *value;
            if let Some((_, old)) = of_old.next_if(|entry| entry.0 == column) {
                *value -= old;
            }
            if let Some((_, new)) = of_new.next_if(|entry| entry.0 == column) {
                *value += new;
            }
            if value.to_bits() != before.to_bits() {
                changed.push(column);
            }
        }
    }

    /// Adds the values of another component, times `sign`. Each sum is rounded as it would be in dense statistics.
    pub fn add(&mut self, other: &Self, sign: f64) {
        if self.columns.is_empty() {
            *self = other.scaled(sign);
            return;
        }
        let room = self.columns.len() + other.columns.len();
        let (mut columns, mut values) = (Vec::with_capacity(room), Vec::with_capacity(room));
        let (mut mine, mut theirs) = (0, 0);
        while mine < self.columns.len() || theirs < other.columns.len() {
            let column_of = |columns: &[u32], place: usize| columns.get(place).copied().unwrap_or(u32::MAX);
            let (column, others) = (column_of(&self.columns, mine), column_of(&other.columns, theirs));
            let mut sum = 0.0;
            if column <= others {
                sum = self.values[mine];
                mine += 1;
            }
            if others <= column {
                sum += sign * other.values[theirs];
                theirs += 1;
            }
            columns.push(column.min(others));
            values.push(sum);
        }
        *self = Self { columns: columns.into(), values: values.into() };
    }

    /// All values times a factor.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { columns: self.columns.clone(), values: self.values.iter().map(|value| factor * value).collect() }
    }

    fn fits(&self, n_statistics: usize) -> bool {
        self.columns.len() == self.values.len()
            && self.columns.is_sorted_by(|a, b| a < b)
            && self.columns.last().is_none_or(|&last| (last as usize) < n_statistics)
            && self.values.iter().all(|value| value.is_finite())
    }
}

impl FromIterator<(u32, f64)> for NonZeros {
    /// From ascending positions and values.
    fn from_iter<I: IntoIterator<Item = (u32, f64)>>(entries: I) -> Self {
        let (columns, values): (Vec<u32>, Vec<f64>) = entries.into_iter().unzip();
        Self { columns: columns.into(), values: values.into() }
    }
}

/// Sums of the statistics of one component.
#[derive(Debug)]
pub enum Sums {
    /// All of them.
    All(Vec<f64>),
    /// The nonzero sums.
    NonZeros(NonZeros),
}

impl Sums {
    /// The nonzero sums.
    pub fn non_zeros(&self) -> Cow<'_, NonZeros> {
        match self {
            Self::All(sums) => Cow::Owned(NonZeros::of(sums)),
            Self::NonZeros(sums) => Cow::Borrowed(sums),
        }
    }

    /// Adds them to all sums.
    pub fn add_to(&self, all: &mut [f64]) {
        match self {
            Self::All(sums) => all.iter_mut().zip(sums).for_each(|(sum, value)| *sum += value),
            Self::NonZeros(sums) => sums.add_to(all, 1.0),
        }
    }
}

impl Default for Sums {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

/// Accumulates statistics: all of them, or a few marked ones among many.
#[derive(Debug, Default)]
pub struct SparseSum {
    /// All sums; unmarked ones are zero.
    sums: Vec<f64>,
    /// One bit per sum.
    marks: Vec<u64>,
}

impl SparseSum {
    /// Makes room for `n` sums, all of which are zero.
    pub fn reserve(&mut self, n: usize) {
        self.sums.resize(n, 0.0);
        self.marks.resize(n.div_ceil(64), 0);
    }

    /// All sums, for adding to them.
    pub fn all(&mut self) -> &mut [f64] {
        &mut self.sums
    }

    /// Marks columns to which something is added.
    pub fn mark(&mut self, columns: &[u32]) {
        for &column in columns {
            self.marks[column as usize / 64] |= 1 << (column % 64);
        }
    }

    /// Takes the sums out. With `marked`, only marked sums were changed, and the work is proportional to their number.
    pub fn take(&mut self, marked: bool) -> Sums {
        if marked { Sums::NonZeros(self.take_marked()) } else { Sums::All(std::mem::take(&mut self.sums)) }
    }

    /// Takes out the nonzero marked sums and resets all sums to zero.
    fn take_marked(&mut self) -> NonZeros {
        let Self { sums, marks } = self;
        let room = marks.iter().map(|marks| marks.count_ones() as usize).sum();
        let (mut columns, mut values) = (Vec::with_capacity(room), Vec::with_capacity(room));
        for (word, marks) in (0..).zip(marks) {
            while *marks != 0 {
                let column = 64 * word + marks.trailing_zeros();
                *marks &= *marks - 1;
                let value = std::mem::take(&mut sums[column as usize]);
                if value != 0.0 {
                    columns.push(column);
                    values.push(value);
                }
            }
        }
        NonZeros { columns: columns.into(), values: values.into() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn statistics() -> impl Strategy<Value = Vec<f64>> {
        prop::collection::vec(prop_oneof![2 => Just(0.0), 1 => -3.0_f64..3.0], 130)
    }

    proptest! {
        /// Sparse sums are bitwise equal to dense sums.
        #[test]
        fn sums_of_non_zeros_are_those_of_all(a in statistics(), b in statistics(), is_added in any::<bool>()) {
            let sign = if is_added { 1.0 } else { -1.0 };
            let expected: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + sign * b).collect();
            let (mut total, other) = (NonZeros::of(&a), NonZeros::of(&b));
            total.add(&other, sign);
            let mut dense = a.clone();
            other.add_to(&mut dense, sign);
            let kept = SparseStatistics { components: vec![total] };
            prop_assert_eq!(&kept.to_dense(130), &expected);
            prop_assert_eq!(dense, expected);
            prop_assert!(kept.fits(1, 130) && !kept.fits(2, 130));
        }

        /// An exchange is bitwise equal to a subtraction followed by an addition, and returns the changed positions.
        #[test]
        fn an_exchange_is_a_difference_and_a_sum(a in statistics(), b in statistics(), c in statistics()) {
            let (old, new) = (NonZeros::of(&b), NonZeros::of(&c));
            let (mut found, mut expected) = (a.clone(), a.clone());
            let changed = NonZeros::exchange(&mut found, &old, &new);
            old.add_to(&mut expected, -1.0);
            new.add_to(&mut expected, 1.0);
            prop_assert_eq!(&found, &expected);
            let differs = |column: &u32| a[*column as usize].to_bits() != expected[*column as usize].to_bits();
            prop_assert_eq!(changed, (0..130).filter(differs).collect::<Vec<u32>>());
        }

        #[test]
        fn what_is_taken_was_added(a in statistics(), b in statistics()) {
            let mut sum = SparseSum::default();
            sum.reserve(130);
            for dense in [&a, &b] {
                let non_zeros = NonZeros::of(dense);
                sum.mark(non_zeros.columns());
                non_zeros.add_to(sum.all(), 1.0);
            }
            let expected: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            prop_assert_eq!(sum.take_marked(), NonZeros::of(&expected));
            prop_assert_eq!(sum.take_marked(), NonZeros::default());
            prop_assert!(sum.sums.iter().all(|value| *value == 0.0));
        }
    }

    #[test]
    fn what_no_file_may_hold_does_not_fit() {
        let of = |columns: &[u32], values: &[f64]| SparseStatistics {
            components: vec![NonZeros { columns: columns.into(), values: values.into() }],
        };
        assert!(of(&[0, 2], &[1.0, 2.0]).fits(1, 3));
        let bad = [of(&[0, 3], &[1.0, 2.0]), of(&[2, 0], &[1.0, 2.0]), of(&[1, 1], &[1.0, 2.0]), of(&[1], &[])];
        assert!(bad.iter().all(|statistics| !statistics.fits(1, 3)));
        assert!(!of(&[1], &[f64::NAN]).fits(1, 3));
    }
}
