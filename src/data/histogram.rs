//! How often each column has each count: all that a base measure needs of the rows if a parameter changes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::{Allowed, Exposure};
use crate::real::Real;

/// Counts below this are kept as they are. Larger ones share a bin with those that have the same leading binary digits,
/// and a bin stands for the mean of its counts.
const EXACT: usize = 1 << DIGITS;
/// Number of leading binary digits that the counts of a bin share.
const DIGITS: u32 = 12;
/// The same for exposures.
const DIGITS_OF_EXPOSURES: u32 = 10;

/// The rows with a count in a column.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// The count, or the mean of a bin of counts.
    pub count: f64,
    /// Their exposure, or the mean of a bin of exposures; 1 if rows have none.
    pub exposure: f64,
    /// The mass of the rows.
    pub mass: f64,
}

/// The positive counts of every column, each with the mass of its rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// Mass of all rows, also of those with zeros or missing values.
    pub mass: f64,
    /// The entries of column d are those from `starts[d]` to `starts[d + 1]`, (D + 1,).
    starts: Vec<usize>,
    /// In the order of the counts.
    entries: Vec<Counted>,
}

impl Histogram {
    /// A histogram of columns; those of a file are checked.
    ///
    /// # Errors
    /// What is wrong.
    pub fn new(mass: f64, columns: &[Vec<Counted>]) -> Result<Self, String> {
        let mut all = Self { mass, starts: vec![0], entries: Vec::new() };
        let is_mass = |value: f64| value.is_finite() && value >= 0.0;
        let is_positive = |value: f64| value.is_finite() && value > 0.0;
        let is_sound = |one: &Counted| is_positive(one.count) && is_positive(one.exposure) && is_mass(one.mass);
        // The means of two bins of counts, for rows of different exposures, may be in any order.
        let ascend = |a: &Counted, b: &Counted| a.count < b.count || a.exposure != b.exposure;
        for column in columns {
            if !column.iter().all(is_sound) || !column.is_sorted_by(ascend) {
                return Err("a histogram has counts out of order, or numbers that are not positive".into());
            }
            all.entries.extend(column);
            all.starts.push(all.entries.len());
        }
        if is_mass(mass) { Ok(all) } else { Err(format!("the mass of a histogram is {mass}")) }
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The positive counts of a column.
    pub fn column(&self, column: usize) -> &[Counted] {
        &self.entries[self.starts[column]..self.starts[column + 1]]
    }

    /// Whether rows have exposures.
    pub fn is_exposed(&self) -> bool {
        self.entries.iter().any(|entry| entry.exposure != 1.0)
    }

    /// That of some columns, in this order.
    #[must_use]
    pub fn of_columns(&self, columns: &[usize]) -> Self {
        let mut found = Self { mass: self.mass, starts: vec![0], entries: Vec::new() };
        for &column in columns {
            found.entries.extend(self.column(column));
            found.starts.push(found.entries.len());
        }
        found
    }

    /// That of the rows of both.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        let mut counters = Counters::new(self.n_columns());
        let is_exposed = self.is_exposed() || other.is_exposed();
        for part in [self, other] {
            counters.mass += part.mass;
            for (column, counter) in counters.columns.iter_mut().enumerate() {
                for entry in part.column(column) {
                    if is_exposed {
                        counter.add_exposed(*entry);
                    } else {
                        counter.add(entry.count, entry.mass);
                    }
                }
            }
        }
        counters.into()
    }
}

/// Collects the counts of rows.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Mass of the rows.
    pub mass: f64,
    /// The counts of every column.
    pub columns: Vec<Counter>,
}

/// Collects the counts of a column.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Counter {
    /// The mass of each small count.
    small: Vec<f64>,
    /// The mass of each bin of large counts, and that mass times the counts.
    large: BTreeMap<u64, (f64, f64)>,
    /// The rows with exposures, by the bins of count and exposure: their mass, and that mass times each.
    exposed: BTreeMap<(u64, u64), [f64; 3]>,
}

impl Counters {
    /// Nothing yet, for this many columns.
    pub fn new(n_columns: usize) -> Self {
        Self { mass: 0.0, columns: vec![Counter::default(); n_columns] }
    }

    /// Adds a row; missing values, and columns that have no counts, add nothing.
    pub fn add_row<F: Real>(&mut self, row: &[F], mass: f64, allowed: &Allowed) {
        self.mass += mass;
        if self.columns.is_empty() {
            return;
        }
        let exposures: Vec<f64> = allowed.exposed().iter().map(|exposed| exposed.of_row(row)).collect();
        for (column, (counter, value)) in self.columns.iter_mut().zip(row).enumerate() {
            let mut known = allowed.exposed().iter().zip(&exposures);
            match known.find(|(exposed, _)| exposed.has(column)) {
                _ if !allowed.is_counts(column) => {}
                Some((_, &exposure)) => counter.add_exposed(Counted { count: value.to_f64(), exposure, mass }),
                None => counter.add(value.to_f64(), mass),
            }
        }
    }

    /// Adds a sparse row.
    pub fn add_entries<F: Real>(
        &mut self,
        entries: impl Iterator<Item = (u32, F)> + Clone,
        mass: f64,
        allowed: &Allowed,
    ) {
        self.mass += mass;
        // Blocks of columns are never sparse.
        let source = allowed.exposed().first().filter(|_| !self.columns.is_empty()).map(|exposed| exposed.source);
        let exposure = source.map(|source| source.of_entries(entries.clone()));
        let own = source.and_then(Exposure::column);
        for (column, value) in entries {
            let Some(counter) = self.columns.get_mut(column as usize).filter(|_| own != Some(column as usize)) else {
                continue;
            };
            match exposure {
                Some(exposure) => counter.add_exposed(Counted { count: value.to_f64(), exposure, mass }),
                None => counter.add(value.to_f64(), mass),
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
            for (&bin, sums) in &from.exposed {
                add_sums(to.exposed.entry(bin).or_default(), *sums);
            }
        }
    }
}

fn add_sums(all: &mut [f64; 3], sums: [f64; 3]) {
    all.iter_mut().zip(sums).for_each(|(all, sum)| *all += sum);
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

    /// Adds a count of rows with an exposure.
    pub fn add_exposed(&mut self, entry: Counted) {
        let Counted { count, exposure, mass } = entry;
        if mass <= 0.0 || count.is_nan() || count <= 0.0 {
            return;
        }
        let of_count = if count >= EXACT as f64 { bin(count, DIGITS) } else { count.to_bits() };
        let bin = (of_count, bin(exposure, DIGITS_OF_EXPOSURES));
        add_sums(self.exposed.entry(bin).or_default(), [mass, mass * count, mass * exposure]);
    }
}

/// The leading binary digits of a positive number, with its exponent and zeros for the other digits.
fn bin(value: f64, digits: u32) -> u64 {
    let others = f64::MANTISSA_DIGITS - digits;
    value.to_bits() >> others << others
}

impl From<Counters> for Histogram {
    fn from(counters: Counters) -> Self {
        let mut all = Self { mass: counters.mass, starts: vec![0], entries: Vec::new() };
        let plain = |count: f64, mass: f64| Counted { count, exposure: 1.0, mass };
        for Counter { small, large, exposed } in counters.columns {
            let small = small.into_iter().enumerate().filter(|(_, mass)| *mass > 0.0);
            all.entries.extend(small.map(|(count, mass)| plain(count as f64, mass)));
            all.entries.extend(large.into_values().map(|(mass, sum)| plain(sum / mass, mass)));
            let mean = |((count, _), [mass, counts, exposures]): ((u64, u64), [f64; 3])| {
                let count = f64::from_bits(count);
                let count = if count < EXACT as f64 { count } else { counts / mass };
                Counted { count, exposure: exposures / mass, mass }
            };
            all.entries.extend(exposed.into_iter().map(mean));
            all.starts.push(all.entries.len());
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts and masses of the only column.
    fn pairs(all: &Histogram) -> Vec<(f64, f64)> {
        all.column(0).iter().map(|entry| (entry.count, entry.mass)).collect()
    }

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
        assert_eq!(pairs(&all), [(3.0, 1.5), (4095.0, 2.0), (8192.75, 4.0)]);
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
        let new = |mass, column: &[(f64, f64)]| {
            let entry = |&(count, mass): &(f64, f64)| Counted { count, exposure: 1.0, mass };
            Histogram::new(mass, &[column.iter().map(entry).collect()])
        };
        assert!(new(3.0, &[(1.0, 1.0), (2.0, 2.0)]).is_ok());
        for column in [[(2.0, 1.0), (1.0, 1.0)], [(0.0, 1.0), (1.0, 1.0)], [(1.0, -1.0), (2.0, 1.0)]] {
            assert!(new(3.0, &column).is_err());
        }
        assert!(new(f64::NAN, &[]).is_err());
        let exposed = |exposure| Histogram::new(1.0, &[vec![Counted { count: 1.0, exposure, mass: 1.0 }]]);
        assert!(exposed(0.5).is_ok() && exposed(0.0).is_err() && exposed(f64::INFINITY).is_err());
    }

    #[test]
    fn counts_of_rows_with_exposures_are_kept_by_exposure() {
        let rows = [[3.0, 0.25], [0.0, 7.0], [3.0, 0.5], [3.0, 0.25], [2.0, 0.5]];
        let allowed = Allowed::counts(Some(Exposure::Column(1)));
        let (mut dense, mut sparse) = (Counters::new(2), Counters::new(2));
        for row in &rows {
            dense.add_row(row, 0.1, &allowed);
            sparse.add_entries((0..).zip(*row).filter(|(_, x)| *x != 0.0), 0.1, &allowed);
        }
        let (dense, sparse) = (Histogram::from(dense), Histogram::from(sparse));
        assert_eq!(dense, sparse);
        let found: Vec<_> = dense.column(0).iter().map(|entry| (entry.count, entry.exposure)).collect();
        assert_eq!(found, [(2.0, 0.5), (3.0, 0.25), (3.0, 0.5)]);
        assert_eq!((dense.column(0)[1].mass, dense.column(1).len(), dense.is_exposed()), (0.2, 0, true));
        let twice = dense.with(&sparse);
        assert_eq!((twice.mass, twice.column(0)[2].mass, twice.column(0).len()), (1.0, 0.2, 3));
    }

    /// Parts are those of all rows, also where only some of them have rows of other exposures than one.
    #[test]
    fn parts_with_and_without_other_exposures_add_up() {
        let allowed = Allowed::counts(Some(Exposure::Column(1)));
        let of = |parts: &[&[[f64; 2]]]| {
            let mut all = Counters::new(2);
            for part in parts {
                let mut own = Counters::new(2);
                part.iter().for_each(|row| own.add_row(row, 0.5, &allowed));
                all.merge(&own);
            }
            Histogram::from(all)
        };
        let plain = [[3.0, 1.0], [7.0, 1.0], [5000.0, 1.0]];
        let exposed = [[3.0, 0.25], [7.0, 1.0], [5001.0, 4.0]];
        let both = of(&[&plain, &exposed]);
        assert_eq!(of(&[&[plain, exposed].concat()]), both);
        assert_eq!(of(&[&plain]).with(&of(&[&exposed])), both);
        assert_eq!(of(&[&exposed]).with(&of(&[&plain])), both);
        let exposures: Vec<f64> = both.column(0).iter().map(|entry| entry.exposure).collect();
        assert_eq!(exposures, [0.25, 1.0, 1.0, 1.0, 4.0]);
    }

    #[test]
    fn exposures_of_a_bin_differ_by_one_part_in_512() {
        let mut counters = Counters::new(1);
        let counter = &mut counters.columns[0];
        for exposure in [1024.0, 1025.0, 1026.0] {
            counter.add_exposed(Counted { count: 5.0, exposure, mass: 1.0 });
        }
        let all = Histogram::from(counters);
        assert_eq!(all.column(0).iter().map(|entry| entry.exposure).collect::<Vec<_>>(), [1024.5, 1026.0]);
    }
}
