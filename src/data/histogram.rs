//! How often each column has each count: all that a base measure needs of the rows if a parameter changes it.

use std::collections::BTreeMap;

use crate::simd::Scalar;

/// Counts below this are kept as they are. Larger ones share a bin with those that have the same leading binary digits,
/// and a bin stands for the mean of its counts.
const EXACT: usize = 1 << DIGITS;
/// Number of leading binary digits that the counts of a bin share.
const DIGITS: u32 = 12;

/// The positive counts of every column, each with the mass of its rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Histogram {
    /// Mass of all rows, also of those with zeros or missing values.
    pub mass: f64,
    /// The pairs of column d are those from `starts[d]` to `starts[d + 1]`, (D + 1,).
    starts: Vec<usize>,
    /// Counts and masses, in the order of the counts.
    pairs: Vec<(f64, f64)>,
}

impl Histogram {
    /// A histogram of columns; those of a file are checked.
    ///
    /// # Errors
    /// What is wrong.
    pub fn new(mass: f64, columns: &[Vec<(f64, f64)>]) -> Result<Self, String> {
        let mut all = Self { mass, starts: vec![0], pairs: Vec::new() };
        let is_mass = |value: f64| value.is_finite() && value >= 0.0;
        for column in columns {
            let is_sound = column.iter().all(|(count, mass)| *count > 0.0 && count.is_finite() && is_mass(*mass));
            if !is_sound || !column.is_sorted_by(|a, b| a.0 < b.0) {
                return Err("a histogram has counts out of order, or numbers that are not positive".into());
            }
            all.pairs.extend(column);
            all.starts.push(all.pairs.len());
        }
        if is_mass(mass) { Ok(all) } else { Err(format!("the mass of a histogram is {mass}")) }
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The positive counts of a column and their masses.
    pub fn column(&self, column: usize) -> &[(f64, f64)] {
        &self.pairs[self.starts[column]..self.starts[column + 1]]
    }

    /// That of some columns, in this order.
    #[must_use]
    pub fn of_columns(&self, columns: &[usize]) -> Self {
        let mut found = Self { mass: self.mass, starts: vec![0], pairs: Vec::new() };
        for &column in columns {
            found.pairs.extend(self.column(column));
            found.starts.push(found.pairs.len());
        }
        found
    }

    /// That of the rows of both.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut counters = Counters::new(self.n_columns());
        for part in [self, other] {
            counters.mass += part.mass;
            for (column, counter) in counters.columns.iter_mut().enumerate() {
                part.column(column).iter().for_each(|&(count, mass)| counter.add(count, mass));
            }
        }
        counters.into()
    }
}

/// Collects the counts of rows.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Mass of the rows.
    pub mass: f64,
    /// The counts of every column.
    pub columns: Vec<Counter>,
}

/// Collects the counts of a column.
#[derive(Debug, Clone, Default)]
pub struct Counter {
    /// The mass of each small count.
    small: Vec<f64>,
    /// The mass of each bin of large counts, and that mass times the counts.
    large: BTreeMap<u64, (f64, f64)>,
}

impl Counters {
    /// Nothing yet, for this many columns.
    pub fn new(n_columns: usize) -> Self {
        Self { mass: 0.0, columns: vec![Counter::default(); n_columns] }
    }

    /// Adds a row; missing values, and columns that have no counts, add nothing.
    pub fn add_row<F: Scalar>(&mut self, row: &[F], weight: f64, has_counts: impl Fn(usize) -> bool) {
        self.mass += weight;
        for (column, (counter, value)) in self.columns.iter_mut().zip(row).enumerate() {
            if has_counts(column) {
                counter.add(value.to_f64(), weight);
            }
        }
    }

    /// Adds those of other rows.
    pub fn merge(&mut self, other: &Self) {
        self.mass += other.mass;
        for (to, from) in self.columns.iter_mut().zip(&other.columns) {
            for (count, &mass) in from.small.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
                to.add(count as f64, mass);
            }
            for (&bin, &(mass, sum)) in &from.large {
                let all = to.large.entry(bin).or_default();
                *all = (all.0 + mass, all.1 + sum);
            }
        }
    }
}

impl Counter {
    /// Adds a count. Zeros, missing values and masses of zero add nothing.
    pub fn add(&mut self, count: f64, mass: f64) {
        if mass <= 0.0 || count.is_nan() || count <= 0.0 {
            return;
        }
        if count >= EXACT as f64 {
            let all = self.large.entry(count.to_bits() >> (f64::MANTISSA_DIGITS - DIGITS)).or_default();
            *all = (all.0 + mass, all.1 + mass * count);
            return;
        }
        let place = count as usize;
        if place >= self.small.len() {
            self.small.resize(place + 1, 0.0);
        }
        self.small[place] += mass;
    }
}

impl From<Counters> for Histogram {
    fn from(counters: Counters) -> Self {
        let mut all = Self { mass: counters.mass, starts: vec![0], pairs: Vec::new() };
        for Counter { small, large } in counters.columns {
            let small = small.into_iter().enumerate().map(|(count, mass)| (count as f64, mass));
            all.pairs.extend(small.filter(|(_, mass)| *mass > 0.0));
            all.pairs.extend(large.into_values().map(|(mass, sum)| (sum / mass, mass)));
            all.starts.push(all.pairs.len());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[(f64, f64)]) -> Histogram {
        let mut counters = Counters::new(1);
        for &(count, mass) in counts {
            counters.mass += mass;
            counters.columns[0].add(count, mass);
        }
        counters.into()
    }

    #[test]
    fn small_counts_are_kept_and_large_ones_share_bins() {
        let all = of(&[(3.0, 1.0), (0.0, 5.0), (4095.0, 2.0), (3.0, 0.5), (9.0, 0.0), (8192.0, 1.0), (8193.0, 3.0)]);
        assert_eq!(all.column(0), [(3.0, 1.5), (4095.0, 2.0), (8192.75, 4.0)]);
        assert_eq!(all.mass, 12.5);
        // The counts of a bin differ by at most one part in 2048.
        let wide = of(&[(1e9, 1.0), (1e9 * (1.0 + 1.0 / 1500.0), 1.0)]);
        assert_eq!(wide.column(0).len(), 2);
    }

    #[test]
    fn parts_add_up_in_any_order() {
        let (a, b) = ([(1.0, 2.0), (70.0, 1.0), (1e6, 1.0)], [(70.0, 3.0), (1e6 + 1.0, 1.0), (5.0, 1.0)]);
        let both = of(&[a, b].concat());
        assert_eq!(of(&a).with(&of(&b)), both);
        assert_eq!(of(&b).with(&of(&a)), both);
        let mut counters = Counters::new(1);
        for part in [a, b] {
            let mut own = Counters::new(1);
            own.mass = part.iter().map(|(_, mass)| mass).sum();
            for (count, mass) in part {
                own.columns[0].add(count, mass);
            }
            counters.merge(&own);
        }
        assert_eq!(Histogram::from(counters), both);
    }

    #[test]
    fn damaged_histograms_are_refused() {
        let new = |mass, column: &[(f64, f64)]| Histogram::new(mass, &[column.to_vec()]);
        assert!(new(3.0, &[(1.0, 1.0), (2.0, 2.0)]).is_ok());
        for column in [[(2.0, 1.0), (1.0, 1.0)], [(0.0, 1.0), (1.0, 1.0)], [(1.0, -1.0), (2.0, 1.0)]] {
            assert!(new(3.0, &column).is_err());
        }
        assert!(new(f64::NAN, &[]).is_err());
    }
}
