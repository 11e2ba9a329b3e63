//! Rows that repeat as wholes, and whether chance explains it: values on a grid meet by chance, copies do not.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::resolution::{are_even, is_lattice};
use crate::data::telling::{orders, telling};
use crate::hash::{fingerprint, mixed};
use crate::real::Real;

/// Number of distinct rows in a sample that are counted with all their copies.
const MOST: usize = 1024;
/// Maximum number of values in the sample.
const MOST_VALUES: usize = 1 << 18;
/// Minimum number of distinct rows in a sample of very wide rows.
const LEAST: usize = 128;
/// Repetitions matter if a row has more than this many copies on average.
const MATTERS: f64 = 0.02;
/// Rows are copies if this many times more pairs of them are equal than chance explains, which is at least one pair.
const BEYOND_CHANCE: f64 = 5.0;
/// Two values of a column are neighbours if at most this many places apart in the order of its values.
const NEAR: u32 = 3;
/// Columns of codes have at most this many values. Where a few patterns of codes have most rows, these are common, not
/// copies: the effective number of patterns is below this share of all.
const VALUES_OF_CODES: u32 = 20;
const COMMON: f64 = 0.25;
/// One column has codes, not measurements, if it has at most this many values, each in this many rows on average.
const FEW: usize = 60;
const ROWS_OF_A_CODE: f64 = 5.0;
/// On a lattice, values up to this many steps apart tell how often values are equal by chance, and a value counts at
/// most as this many times as common as the middle one.
const STEPS: usize = 10;
const MOST_COMMON: f64 = 4.0;
/// Minimum number of distinct rows whose numbers of copies have no common divisor by chance.
const ROWS_OF_DIVISOR: usize = 20;
/// Whole weights of rows that repeat otherwise are numbers of rows only if they are not larger than this on average.
const MEAN_COUNT: f64 = 4.0;

/// Why rows repeat as wholes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repetition {
    /// Hardly any row repeats.
    #[default]
    Rare,
    /// As often as rows on a grid, codes or counts meet by chance.
    Chance,
    /// More often than chance explains: rows were copied.
    Copies,
}

/// What is known of repeated rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RepeatedRows {
    /// Number of rows of positive weight.
    pub n_rows: usize,
    /// Number of distinct ones; an estimate if there are more than a thousand.
    pub n_distinct: usize,
    /// Why rows repeat.
    pub rows: Repetition,
    /// If a whole table was repeated, how many times; otherwise at most one.
    pub times: usize,
    /// Whether some weights exceed one.
    pub has_large_weights: bool,
    /// Whether rows repeat because one column with few values tells them apart.
    pub are_codes: bool,
    /// Whether weights above one are the numbers of equal rows in a table without repetitions.
    pub weights_are_counts: bool,
}

impl RepeatedRows {
    /// Whether the structure is to be sought in other rows than all with their weights: in each row once, and with
    /// weights of at most one.
    pub fn hides_structure(&self) -> bool {
        self.rows == Repetition::Copies || (self.has_large_weights && !self.weights_are_counts)
    }

    /// The number of rows that tell something new about columns on a lattice, and about others, as fractions of the
    /// mass of all rows. Only distinct rows tell that values on no lattice repeat.
    pub(super) fn rows_of_mass(&self, mass: f64) -> [f64; 2] {
        let distinct = self.n_distinct as f64 / mass;
        let once = self.n_rows as f64 / (self.times.max(1) as f64 * mass);
        match self.rows {
            Repetition::Copies if self.times > 1 => [once, if self.are_codes { once } else { distinct }],
            _ if self.weights_are_counts || self.are_codes => [1.0_f64.max(self.n_rows as f64 / mass); 2],
            Repetition::Copies => [distinct; 2],
            Repetition::Rare | Repetition::Chance => [once, distinct],
        }
    }
}

/// A distinct row and its copies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Repeated {
    /// The number of the first of them.
    first: u64,
    n_rows: u64,
    /// Sum of their weights, of which each counts at least as one.
    mass: f64,
}

/// The distinct rows with the smallest hashes. This is a uniform sample of the distinct rows, complete with their
/// copies, whatever the order of the rows (a bottom-k sketch).
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sketch {
    most: usize,
    rows: BTreeMap<u64, Repeated>,
    /// The largest hash that may be added.
    limit: u64,
    n_rows: u64,
    least_weight: f64,
    most_weight: f64,
    /// Whether all weights are whole numbers.
    are_whole: bool,
}

/// A hash of a row. Zeros of both signs, and missing values of all bits, are equal.
pub fn hash_of_row<F: Real>(row: &[F]) -> u64 {
    let bits = |value: &F| if value.is_nan() { u64::MAX } else { (value.to_f64() + 0.0).to_bits() };
    // Whole numbers differ in their leading bits only.
    mixed(fingerprint(0, row.iter().map(bits)))
}

/// A hash of the entries of a sparse row that are not zero, in the order of their columns.
pub(super) fn hash_of_entries(entries: impl Iterator<Item = (u64, f64)>) -> u64 {
    mixed(fingerprint(0, entries.flat_map(|(column, value)| [column, value.to_bits()])))
}

impl Sketch {
    /// Of no rows of `d` columns. `n_distinct`: the number up to which distinct rows are counted exactly.
    pub(super) fn new(d: usize, n_distinct: usize) -> Self {
        let most = MOST.min(MOST_VALUES / d.max(1)).max(LEAST).max(n_distinct);
        Self {
            most,
            rows: BTreeMap::new(),
            limit: u64::MAX,
            n_rows: 0,
            least_weight: f64::INFINITY,
            most_weight: 0.0,
            are_whole: true,
        }
    }

    /// The same without rows, for a part of the rows that follow.
    pub(super) fn begun(&self) -> Self {
        Self { most: self.most, limit: self.limit, ..Self::new(1, 0) }
    }

    /// Adds a row of positive weight.
    pub(super) fn add_row(&mut self, hash: u64, number: u64, weight: f64) {
        let mass = weight.max(1.0);
        self.n_rows += 1;
        self.least_weight = self.least_weight.min(weight);
        self.most_weight = self.most_weight.max(weight);
        self.are_whole &= weight % 1.0 == 0.0;
        if hash <= self.limit {
            self.insert(hash, Repeated { first: number, n_rows: 1, mass });
        }
    }

    fn insert(&mut self, hash: u64, row: Repeated) {
        let known = self.rows.entry(hash).or_insert(Repeated { first: row.first, n_rows: 0, mass: 0.0 });
        (known.n_rows, known.mass) = (known.n_rows + row.n_rows, known.mass + row.mass);
        if self.rows.len() > self.most {
            self.rows.pop_last();
        }
        if self.rows.len() == self.most
            && let Some((&last, _)) = self.rows.last_key_value()
        {
            self.limit = self.limit.min(last);
        }
    }

    /// Adds those of rows that follow `n_before` others.
    pub(super) fn add(&mut self, other: Self, n_before: u64) {
        self.n_rows += other.n_rows;
        self.least_weight = self.least_weight.min(other.least_weight);
        self.most_weight = self.most_weight.max(other.most_weight);
        self.are_whole &= other.are_whole;
        for (hash, row) in other.rows {
            if hash <= self.limit {
                self.insert(hash, Repeated { first: row.first + n_before, ..row });
            }
        }
    }

    /// Number of distinct rows, exact up to the size of the sample.
    pub(super) fn n_distinct(&self) -> usize {
        if self.rows.len() < self.most {
            return self.rows.len();
        }
        let seen = self.limit as f64 / u64::MAX as f64;
        (((self.most - 1) as f64 / seen) as usize).clamp(self.most, self.n_rows as usize)
    }

    /// The fraction of the distinct rows that is in the sample.
    fn rate(&self) -> f64 {
        self.rows.len() as f64 / self.n_distinct().max(1) as f64
    }

    /// The numbers of the first rows of the sample, ascending.
    pub(super) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.rows.values().map(|row| row.first).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Whether rows or weights may hide the structure, so that [`Sketch::judge`] is worth its cost.
    pub(super) fn may_hide(&self) -> bool {
        self.most_weight > 1.0 || matters(&self.multiplicities(|row| row.n_rows as f64))
    }

    /// By number of the first row, in the order of [`Sketch::numbers`].
    fn multiplicities(&self, of: impl Fn(&Repeated) -> f64) -> Vec<f64> {
        let mut rows: Vec<&Repeated> = self.rows.values().collect();
        rows.sort_unstable_by_key(|row| row.first);
        rows.into_iter().map(of).collect()
    }

    /// Judges why rows repeat, from the values of the rows [`Sketch::numbers`], (n, D). Without values, from the
    /// numbers of rows alone. `are_real`: whether all columns have real numbers, no counts, flags or codes.
    pub(super) fn judge<F: Real>(&self, values: &[F], d: usize, are_real: bool) -> RepeatedRows {
        let mut found = RepeatedRows {
            n_rows: self.n_rows as usize,
            n_distinct: self.n_distinct(),
            has_large_weights: self.most_weight > 1.0,
            ..RepeatedRows::default()
        };
        let n_rows = self.multiplicities(|row| row.n_rows as f64);
        let divisor = if self.least_weight == self.most_weight { divisor(&n_rows) } else { 1.0 };
        if values.is_empty() {
            (found.rows, found.times) =
                (if divisor > 1.0 { Repetition::Copies } else { Repetition::Rare }, divisor as usize);
            return found;
        }
        // Rows that lack values are equal more often, and would hide copies of the others.
        let is_complete = |row: &&[F]| !row.iter().any(|value| value.is_nan());
        let n_complete = values.chunks_exact(d).filter(is_complete).count();
        let counts = |row: &[F]| 2 * n_complete < values.len() / d || is_complete(&row);
        let counted: Vec<bool> = values.chunks_exact(d).map(counts).collect();
        let chosen: Vec<F> = values.chunks_exact(d).filter(|row| counts(row)).flatten().copied().collect();
        let of_chosen = |of: fn(&Repeated) -> f64| -> Vec<f64> {
            self.multiplicities(of).into_iter().zip(&counted).filter(|(_, counts)| **counts).map(|(m, _)| m).collect()
        };
        let n_rows: Vec<f64> = of_chosen(|row| row.n_rows as f64).iter().map(|m| m / divisor).collect();
        let sample = DistinctRows::of(&chosen, d, &n_rows);
        found.rows = sample.judge(&n_rows, self.rate());
        found.are_codes = found.rows == Repetition::Chance && sample.has_codes(&n_rows);
        let masses = of_chosen(|row| row.mass);
        let by_weight = || sample.judge(&masses, self.rate()) == Repetition::Chance;
        let can_count = match found.rows {
            // Equal rows were put together. Of one column, all numbers would not be equal.
            Repetition::Rare => (self.least_weight < self.most_weight || sample.columns.len() > 1) && by_weight(),
            // Counts, flags and codes have no finer values, so that a row of weight two is like two rows.
            Repetition::Chance => {
                let mean = masses.iter().sum::<f64>() / n_rows.iter().sum::<f64>();
                !are_real && self.least_weight < self.most_weight && mean <= MEAN_COUNT && by_weight()
            }
            Repetition::Copies => false,
        };
        if divisor > 1.0 && found.rows != Repetition::Copies {
            (found.rows, found.times) = (Repetition::Copies, divisor as usize);
        }
        found.weights_are_counts = found.has_large_weights && self.are_whole && can_count;
        found
    }
}

/// The largest number of which all numbers of copies are multiples; 1 if chance may explain it.
fn divisor(multiplicities: &[f64]) -> f64 {
    let common = |a: f64, b: f64| {
        let (mut a, mut b) = (a, b);
        while b > 0.0 {
            (a, b) = (b, a % b);
        }
        a
    };
    if multiplicities.len() < ROWS_OF_DIVISOR { 1.0 } else { multiplicities.iter().copied().fold(0.0, common) }
}

/// Whether rows have more than a few copies.
fn matters(multiplicities: &[f64]) -> bool {
    let pairs: f64 = multiplicities.iter().map(|m| m * (m - 1.0)).sum();
    pairs > MATTERS * multiplicities.iter().sum::<f64>()
}

/// The number of equally common rows that would be as often equal.
fn effective_number(multiplicities: &[f64]) -> f64 {
    multiplicities.iter().sum::<f64>().powi(2) / multiplicities.iter().map(|m| m * m).sum::<f64>()
}

/// The smallest distance of ascending values.
fn least_gap(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min)
}

/// How many times the smallest distance of ascending values is in their range.
fn n_steps(values: &[f64]) -> f64 {
    (values[values.len() - 1] - values[0]) / least_gap(values)
}

/// Distinct rows, as the places of their values among those of each column.
struct DistinctRows {
    n: usize,
    /// The columns that tell rows apart: without any of them, many rows would be equal. (n,) each.
    columns: Vec<Vec<u32>>,
    /// The values of the only column, or of one with the rows in the same order, if they are on a lattice.
    lattice: Option<Vec<f64>>,
    /// Whether columns each tell all rows apart, in different orders.
    is_told_twice: bool,
}

impl DistinctRows {
    fn of<F: Real>(values: &[F], d: usize, multiplicities: &[f64]) -> Self {
        let n = values.len() / d;
        let places = |column: usize| {
            let own: Vec<f64> = values.iter().skip(column).step_by(d).map(|value| value.to_f64() + 0.0).collect();
            let mut sorted = own.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            sorted.dedup_by(|a, b| a.total_cmp(b).is_eq());
            let place = |value: &f64| sorted.partition_point(|other| other.total_cmp(value).is_lt()) as u32;
            (own.iter().map(place).collect::<Vec<u32>>(), sorted)
        };
        let (columns, values): (Vec<Vec<u32>>, Vec<Vec<f64>>) = (0..d).map(places).unzip();
        let kept = telling(n, &columns, multiplicities);
        let orders = orders(n, &columns);
        let on_lattice = |column: usize| is_lattice(&values[column]) || are_even(&values[column]);
        let has_lattice = |order: &Vec<usize>| order.iter().any(|&column| on_lattice(column));
        // Columns of codes and names each tell all rows apart, too.
        let is_told_twice = orders.iter().filter(|order| n > FEW || !has_lattice(order)).count() > 1;
        let lattice = match kept[..] {
            [only] if !is_told_twice => {
                let order = orders.iter().find(|order| order.contains(&only)).cloned().unwrap_or_else(|| vec![only]);
                // Of whole numbers and their squares, the numbers tell what is near.
                let steps = |column: &usize| n_steps(&values[*column]);
                order.into_iter().filter(|&column| on_lattice(column)).min_by(|a, b| steps(a).total_cmp(&steps(b)))
            }
            _ => None,
        };
        let kept = lattice.map_or(kept, |column| vec![column]);
        // Even values count as one step apart each.
        let steps = |values: &Vec<f64>| (0..values.len()).map(|place| place as f64).collect();
        let lattice = lattice.map(|column| &values[column]);
        let lattice = lattice.map(|values| if is_lattice(values) { values.clone() } else { steps(values) });
        let mut columns = columns;
        let columns = kept.into_iter().map(|column| std::mem::take(&mut columns[column])).collect();
        Self { n, columns, lattice, is_told_twice }
    }

    /// Judges why the rows have these numbers of copies. `rate`: the fraction of distinct rows in the sample.
    fn judge(&self, multiplicities: &[f64], rate: f64) -> Repetition {
        if !matters(multiplicities) {
            return Repetition::Rare;
        }
        if self.columns.len() == 1 {
            let is_chance = self.has_codes(multiplicities) || self.meet_on_lattice(multiplicities, rate);
            return if is_chance { Repetition::Chance } else { Repetition::Copies };
        }
        if self.are_codes() && effective_number(multiplicities) < COMMON * self.n as f64 {
            return Repetition::Chance;
        }
        let pairs = multiplicities.iter().map(|m| 0.5 * m * (m - 1.0)).sum::<f64>() / rate;
        let explained = self.pairs_by_chance(multiplicities) / (rate * rate);
        if pairs > BEYOND_CHANCE * (explained + 1.0) { Repetition::Copies } else { Repetition::Chance }
    }

    /// Whether chance explains how often values of the only column are equal. On a lattice, pairs of values some steps
    /// apart are about twice as many as equal ones. Copies add equal pairs only.
    fn meet_on_lattice(&self, multiplicities: &[f64], rate: f64) -> bool {
        let Some(values) = &self.lattice else { return false };
        let mut masses = vec![0.0; values.len()];
        self.columns[0].iter().zip(multiplicities).for_each(|(&place, m)| masses[place as usize] += m);
        let mut sorted = masses.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let most = MOST_COMMON * sorted[sorted.len() / 2];
        let masses: Vec<f64> = masses.into_iter().map(|mass| mass.min(most)).collect();
        let least = least_gap(values);
        let mut apart = [0.0; STEPS + 1];
        for (one, value) in values.iter().enumerate() {
            for (other, mass) in values.iter().zip(&masses).skip(one + 1) {
                let Some(pairs) = apart.get_mut(((other - value) / least).round() as usize) else { break };
                *pairs += mass * masses[one];
            }
        }
        let equal = masses.iter().map(|m| 0.5 * m * (m - 1.0)).sum::<f64>() / rate;
        let explained = 0.5 * apart.into_iter().fold(0.0, f64::max) / (rate * rate);
        equal <= BEYOND_CHANCE * (explained + 1.0)
    }

    /// Whether one column with few values tells all rows apart.
    fn has_codes(&self, multiplicities: &[f64]) -> bool {
        let mass: f64 = multiplicities.iter().sum();
        let is_few = self.n <= FEW && mass >= ROWS_OF_A_CODE * self.n as f64;
        self.columns.len() == 1 && !self.is_told_twice && is_few
    }

    /// Whether all columns have few values.
    fn are_codes(&self) -> bool {
        self.columns.iter().all(|places| places.iter().all(|&place| place < VALUES_OF_CODES))
    }

    /// Estimates the number of pairs of rows that are equal by chance from pairs that are not copies of each other
    /// because they differ. The larger of two estimates, each the largest over columns j: by agreement, and by
    /// distance.
    fn pairs_by_chance(&self, multiplicities: &[f64]) -> f64 {
        let mut counts: Vec<Differing> = vec![Differing::default(); self.columns.len()];
        for one in 0..self.n {
            for other in 0..one {
                let weight = multiplicities[one] * multiplicities[other];
                let distance = |column: usize| self.columns[column][one].abs_diff(self.columns[column][other]);
                let mut differing = (0..counts.len()).filter(|&column| distance(column) > 0);
                match [differing.next(), differing.next(), differing.next()] {
                    [Some(column), None, None] => counts[column].add_alone(distance(column), weight),
                    [Some(a), Some(b), None] => {
                        counts[a].beside_near += if distance(b) <= NEAR { weight } else { 0.0 };
                        counts[b].beside_near += if distance(a) <= NEAR { weight } else { 0.0 };
                    }
                    _ => {}
                }
            }
        }
        let near: f64 = counts.iter().map(|count| count.near).sum();
        let of = |count: &Differing| count.by_agreement(near).max(count.by_distance());
        counts.iter().map(of).fold(0.0, f64::max)
    }
}

/// Pairs of rows that differ in a column alone, or in this and another one.
#[derive(Debug, Clone, Copy, Default)]
struct Differing {
    /// Mass of the pairs that differ in this column alone, and of those of them that are neighbours in it.
    alone: f64,
    near: f64,
    /// Mass of the pairs that differ in this and another column, and are neighbours in the other one.
    beside_near: f64,
    /// Number of pairs that differ in this column alone, by one place and by two, and the mass of the former.
    steps: [f64; 2],
    by_one: f64,
}

impl Differing {
    fn add_alone(&mut self, distance: u32, weight: f64) {
        self.alone += weight;
        self.near += if distance <= NEAR { weight } else { 0.0 };
        self.by_one += if distance == 1 { weight } else { 0.0 };
        if let Some(count) = self.steps.get_mut(distance as usize - 1) {
            *count += 1.0;
        }
    }

    /// With a the probability that two rows that agree elsewhere agree in column j, too, pairs that differ in j alone
    /// are (1 - a) / a times as many as equal ones. a is that of pairs that differ in another column k alone, or in j
    /// and k, and are neighbours in k, so that they are of the same cluster. `near`: those of all columns.
    fn by_agreement(&self, near: f64) -> f64 {
        let found = self.alone * (near - self.near) / self.beside_near;
        // Without pairs that show it, there is no estimate.
        if found.is_nan() { 0.0 } else { found }
    }

    /// Under a normal density of column j among rows that agree elsewhere, the number of pairs falls with the square of
    /// their distance, so that the numbers at distances of one and two places tell that at zero.
    fn by_distance(&self) -> f64 {
        let [one, two] = self.steps;
        0.5 * self.by_one * ((one + 1.0) / (two + 1.0)).cbrt()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::RngExt;
    use rand_distr::StandardNormal;

    use super::*;
    use crate::rng::{Generator, Purpose, stream};

    fn sketch(rows: &[Vec<f64>], weights: &[f64]) -> Sketch {
        let mut all = Sketch::new(rows[0].len(), 0);
        for (number, (row, &weight)) in rows.iter().zip(weights).enumerate() {
            all.add_row(hash_of_row(row), number as u64, weight);
        }
        all
    }

    fn judged(rows: &[Vec<f64>], weights: &[f64]) -> RepeatedRows {
        let found = sketch(rows, weights);
        let values: Vec<f64> = found.numbers().iter().flat_map(|&row| rows[row as usize].clone()).collect();
        found.judge(&values, rows[0].len(), true)
    }

    fn why(rows: &[Vec<f64>]) -> Repetition {
        judged(rows, &vec![1.0; rows.len()]).rows
    }

    #[test]
    fn columns_in_one_order_are_one() {
        // Tenths of a degree Celsius are on no lattice of their smallest gap, but repeat as degrees Fahrenheit do.
        let of = |n: usize, to: fn(f64) -> f64| -> Vec<Vec<f64>> {
            (0..n).map(|row| (row % 97) as f64).map(|whole| vec![to(whole), whole, (whole + 9.0).sqrt()]).collect()
        };
        assert_eq!(why(&of(900, |whole| ((whole - 32.0) / 1.8 * 10.0).round() / 10.0)), Repetition::Chance);
        assert_eq!(why(&of(900, |whole| (whole * 17.0 % 97.0).sqrt())), Repetition::Copies);
    }

    fn generator() -> Generator {
        stream(7, Purpose::Start, 0)
    }

    /// Rows of four normal clusters whose values are multiples of a step, or not rounded.
    fn clusters(n: usize, d: usize, step: Option<f64>, generator: &mut Generator) -> Vec<Vec<f64>> {
        let mut normal = || generator.sample::<f64, _>(StandardNormal);
        let centres: Vec<f64> = (0..4 * d).map(|_| 6.0 * normal()).collect();
        let value = |x: f64| step.map_or(x, |step| (x / step).round() * step);
        (0..n).map(|row| (0..d).map(|j| value(centres[row % 4 * d + j] + normal())).collect()).collect()
    }

    fn bootstrap(rows: &[Vec<f64>], generator: &mut Generator) -> Vec<Vec<f64>> {
        (0..rows.len()).map(|_| rows[generator.random_range(0..rows.len())].clone()).collect()
    }

    proptest! {
        /// The sketch does not depend on the order of rows, nor on parts, and counts copies exactly.
        #[test]
        fn it_adds_up(values in prop::collection::vec((0_u32..40, 1_u32..5), 1..200), cut in 0_usize..200) {
            let rows: Vec<Vec<f64>> = values.iter().map(|&(value, _)| vec![f64::from(value)]).collect();
            let weights: Vec<f64> = values.iter().map(|&(_, weight)| f64::from(weight)).collect();
            let whole = sketch(&rows, &weights);
            let cut = cut.min(rows.len() - 1);
            let mut parts = sketch(&rows[..=cut], &weights);
            if cut + 1 < rows.len() {
                parts.add(sketch(&rows[cut + 1..], &weights[cut + 1..]), cut as u64 + 1);
            }
            prop_assert_eq!(&parts.rows, &whole.rows);
            let mut distinct: Vec<u32> = values.iter().map(|&(value, _)| value).collect();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(whole.n_distinct(), distinct.len());
            let mass: f64 = whole.rows.values().map(|row| row.mass).sum();
            prop_assert_eq!(mass, weights.iter().sum::<f64>());
        }
    }

    #[test]
    fn distinct_rows_beyond_the_sample_are_estimated() {
        let rows: Vec<Vec<f64>> = (0..50_000).map(|row| vec![f64::from(row % 20_000)]).collect();
        let found = sketch(&rows, &vec![1.0; rows.len()]);
        let n = found.n_distinct() as f64;
        assert!((n / 20_000.0 - 1.0).abs() < 0.15, "{n}");
        assert!(found.rows.values().all(|row| row.n_rows == 2 || row.n_rows == 3));
    }

    #[test]
    fn rounded_rows_meet_by_chance() {
        for (n, d, step) in [(300, 1, 0.1), (1000, 1, 0.01), (1000, 2, 0.1), (1000, 2, 1.0), (5000, 3, 0.3)] {
            let rows = clusters(n, d, Some(step), &mut generator());
            assert_ne!(why(&rows), Repetition::Copies, "{n} {d} {step}");
        }
        // Whole ages beside a flag, a constant, other units, and a category that follows from the age.
        let ages: Vec<f64> =
            clusters(1000, 1, Some(0.1), &mut generator()).into_iter().map(|row| row[0] * 10.0).collect();
        let mut other = stream(3, Purpose::Start, 0);
        let besides: [&mut dyn FnMut(f64) -> f64; 4] = [
            &mut |_| f64::from(u8::from(other.random_bool(0.5))),
            &mut |_| 1.0,
            &mut |age| 1.8 * age + 32.0,
            &mut |age| (age / 20.0).floor(),
        ];
        for (index, beside) in besides.into_iter().enumerate() {
            let rows: Vec<Vec<f64>> = ages.iter().map(|&age| vec![age, beside(age)]).collect();
            assert_eq!(why(&rows), Repetition::Chance, "{index}");
        }
        // Parts and their sum.
        let rows = clusters(2000, 2, Some(1.0), &mut generator());
        let rows: Vec<Vec<f64>> = rows.into_iter().map(|row| vec![row[0], row[1], row[0] + row[1]]).collect();
        assert_eq!(why(&rows), Repetition::Chance);
        // Strongly correlated columns on a coarse grid.
        let rows = clusters(2000, 2, None, &mut generator());
        let rows: Vec<Vec<f64>> =
            rows.into_iter().map(|row| vec![row[0].round(), (row[0] + 0.2 * row[1]).round()]).collect();
        assert_eq!(why(&rows), Repetition::Chance);
        // Thirty rare flags.
        let mut generator = generator();
        let rows: Vec<Vec<f64>> =
            (0..2000).map(|_| (0..30).map(|_| f64::from(u8::from(generator.random_bool(0.02)))).collect()).collect();
        assert_eq!(why(&rows), Repetition::Chance);
    }

    #[test]
    fn copies_are_told_from_chance() {
        for (n, d, step) in
            [(300, 1, None), (200, 2, None), (1000, 5, None), (1000, 2, Some(0.01)), (1000, 5, Some(0.1))]
        {
            let generator = &mut generator();
            let rows = clusters(n, d, step, generator);
            assert_ne!(why(&rows), Repetition::Copies, "{n} {d} {step:?}");
            assert_eq!(why(&bootstrap(&rows, generator)), Repetition::Copies, "{n} {d} {step:?}");
            assert_eq!(why(&[rows.clone(), rows.clone(), rows].concat()), Repetition::Copies, "{n} {d} {step:?}");
        }
    }

    #[test]
    fn weights_are_counts_where_equal_rows_were_put_together() {
        // Ages and the number of rows with each.
        let ages: Vec<Vec<f64>> = (0..60).map(|age| vec![f64::from(age)]).collect();
        let counts: Vec<f64> = (0..60).map(|age| f64::from(31 - (30_i32 - age).abs())).collect();
        assert!(judged(&ages, &counts).weights_are_counts);
        let weights = |rows: &[Vec<f64>], weight: f64| judged(rows, &vec![weight; rows.len()]);
        assert!(weights(&ages, 10.0).hides_structure());
        let rows = clusters(300, 2, None, &mut generator());
        assert!(weights(&rows, 10.0).hides_structure() && !weights(&rows, 1.0).hides_structure());
        assert!(!weights(&rows, 0.1).hides_structure());
    }
}
