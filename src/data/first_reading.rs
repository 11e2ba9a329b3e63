//! The first reading of rows: their sums, extremes, distinct values and fingerprints.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::histogram::Counters;
use crate::data::repeats::{Sketch, hash_of_entries, hash_of_row};
use crate::data::resolution::Distinct;
use crate::data::rows::BLOCK;
use crate::data::{Allowed, Csr, RowUnits, Sought};
use crate::error::Result;
use crate::hash::fingerprint;
use crate::parallel::{Cancel, blocks, try_map_with};
use crate::real::Real;

/// Number of blocks of the first wave, and how many times more blocks each further wave has. After each wave, fewer
/// columns are looked at for rounding, and fewer rows for copies.
const FIRST_BLOCKS: usize = 8;
const GROWTH: usize = 8;

/// Sums of the first reading, relative to a pivot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FirstSums {
    pub(super) n_rows: usize,
    /// The first row of all, in which missing values are zero; `None` before the first row, and for sparse rows.
    pub(super) pivot: Option<Vec<f64>>,
    pub(super) mass: f64,
    pub(super) sums: Vec<f64>,
    /// Mass of the missing values of each column.
    pub(super) absent: Vec<f64>,
    /// Only for codes.
    pub(super) largest: Vec<f64>,
    pub(super) extremes: Extremes,
    /// The rows of positive weight that repeat.
    pub(super) repeats: Sketch,
    pub(super) distinct: Distinct,
    /// Of no columns unless they are sought.
    pub(super) counters: Counters,
    /// Fingerprints of the shards; of rows that are read in one go, only one.
    pub(super) prints: Vec<u64>,
}

/// What the first reading sums up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct First {
    /// What is sought.
    pub sought: Sought,
    /// Number of distinct rows up to which they are counted exactly.
    pub n_distinct: usize,
    /// The values that rows may have.
    pub allowed: Allowed,
    /// Whether NaN stands for a missing value.
    pub missing: bool,
    /// As [`FirstSums::pivot`], if it is known.
    pub pivot: Option<Vec<f64>>,
}

impl First {
    /// The same about a row.
    #[must_use]
    pub fn about(self, pivot: Vec<f64>) -> Self {
        Self { pivot: Some(pivot), ..self }
    }
}

/// The smallest and the largest value of each column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Extremes {
    pub(super) least: Vec<f64>,
    pub(super) most: Vec<f64>,
}

impl Extremes {
    fn new(d: usize) -> Self {
        Self { least: vec![f64::INFINITY; d], most: vec![f64::NEG_INFINITY; d] }
    }

    fn add(&mut self, other: &Self) {
        self.least.iter_mut().zip(&other.least).for_each(|(extreme, value)| *extreme = extreme.min(*value));
        self.most.iter_mut().zip(&other.most).for_each(|(extreme, value)| *extreme = extreme.max(*value));
    }

    /// Missing values are ignored.
    fn add_row<F: Real>(&mut self, row: &[F]) {
        for ((least, most), value) in self.least.iter_mut().zip(&mut self.most).zip(row) {
            let value = value.to_f64();
            *least = least.min(value);
            *most = most.max(value);
        }
    }
}

impl FirstSums {
    /// Of no rows. `layout` differs between tables of other columns.
    pub(super) fn new(first: &First, d: usize, is_sparse: bool, layout: u64) -> Self {
        Self {
            n_rows: 0,
            pivot: first.pivot.clone(),
            mass: 0.0,
            sums: vec![0.0; d],
            absent: vec![0.0; d],
            largest: vec![0.0; if first.allowed.has_codes() { d } else { 0 }],
            extremes: Extremes::new(if is_sparse { 0 } else { d }),
            repeats: Sketch::new(d, first.n_distinct),
            distinct: Distinct::new(d, first.sought.resolution),
            counters: Counters::new(if first.sought.values { d } else { 0 }),
            prints: vec![layout],
        }
    }

    /// Adds the sums of other shards.
    pub(super) fn add(&mut self, other: Self) {
        self.prints.extend(other.prints.iter());
        let (n_before, n_rows) = (self.n_rows as u64, other.n_rows);
        self.add_part(other, n_before);
        self.n_rows += n_rows;
    }

    /// Adds the sums of a part of the rows that counts its rows from that after the first `n_before`.
    fn add_part(&mut self, part: Self, n_before: u64) {
        self.mass += part.mass;
        self.sums.iter_mut().zip(part.sums).for_each(|(total, sum)| *total += sum);
        self.absent.iter_mut().zip(part.absent).for_each(|(total, part)| *total += part);
        self.largest.iter_mut().zip(part.largest).for_each(|(total, part)| *total = part.max(*total));
        self.extremes.add(&part.extremes);
        self.distinct.add(part.distinct);
        self.counters.merge(&part.counters);
        self.repeats.add(part.repeats, n_before);
    }

    /// Adds rows that follow those so far.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for the first value that is not allowed; [`Error::Cancelled`].
    pub(super) fn read<F: Real>(&mut self, units: &RowUnits<'_, F>, first: &First, cancel: &Cancel) -> Result<()> {
        match units.csr() {
            Some(table) => self.read_sparse(units, table, first, cancel),
            None => self.read_dense(units, first, cancel),
        }
    }

    fn read_dense<F: Real>(&mut self, units: &RowUnits<'_, F>, first: &First, cancel: &Cancel) -> Result<()> {
        let ranges: Vec<_> = blocks(units.len(), BLOCK).collect();
        let (mut left, mut size) = (&ranges[..], FIRST_BLOCKS);
        while !left.is_empty() {
            let (wave, others) = left.split_at(size.min(left.len()));
            self.read_blocks(units, wave, first, cancel)?;
            (left, size) = (others, size * GROWTH);
        }
        self.n_rows += units.len();
        Ok(())
    }

    fn read_blocks<F: Real>(
        &mut self,
        units: &RowUnits<'_, F>,
        ranges: &[Range<usize>],
        first: &First,
        cancel: &Cancel,
    ) -> Result<()> {
        let (d, First { allowed, missing, .. }) = (units.dimension(), first);
        let pivot: Vec<f64> = self.pivot.get_or_insert_with(|| first_row(units)).clone();
        let (distinct, repeats) = (&self.distinct, &self.repeats);
        let parts = try_map_with(
            ranges.len(),
            || vec![F::ZERO; BLOCK * d],
            |rows, index| {
                cancel.check()?;
                let range = ranges[index].clone();
                let rows = &mut rows[..range.len() * d];
                units.read(range.clone(), &vec![F::ZERO; d], rows);
                let distinct = distinct.of_block(rows, |row| units.mass(range.start + row));
                let mut part = Self { distinct, repeats: repeats.begun(), ..Self::new(first, d, false, 0) };
                let mut print = 0;
                for (unit, row) in range.zip(rows.chunks_exact(d)) {
                    let weight = units.mass(unit);
                    allowed.check_holes("data", row, units.row_number(unit), *missing)?;
                    part.mass += weight;
                    let hash = hash_of_row(row);
                    print = fingerprint(print, [hash, weight.to_bits()]);
                    for (column, ((sum, &value), &zero)) in part.sums.iter_mut().zip(row).zip(&pivot).enumerate() {
                        if *missing && value.is_nan() {
                            part.absent[column] += weight;
                            continue;
                        }
                        if !allowed.has(value.to_f64(), column) {
                            allowed.check("data", value, units.row_number(unit), column)?;
                        }
                        *sum += weight * (value.to_f64() - zero);
                    }
                    part.counters.add_row(row, weight, allowed);
                    for (largest, value) in part.largest.iter_mut().zip(row) {
                        *largest = value.to_f64().max(*largest);
                    }
                    if weight > 0.0 {
                        part.extremes.add_row(row);
                        part.repeats.add_row(hash, unit as u64, weight);
                    }
                }
                Ok((part, print))
            },
        )?;
        let n_before = self.n_rows as u64;
        for (part, print) in parts {
            self.continue_print(print);
            self.add_part(part, n_before);
        }
        Ok(())
    }

    /// Continues the last fingerprint.
    fn continue_print(&mut self, print: u64) {
        if let Some(last) = self.prints.last_mut() {
            *last = fingerprint(*last, [print]);
        }
    }

    /// Adds a sparse table, from the stored values; the pivot is zero.
    fn read_sparse<F: Real>(
        &mut self,
        units: &RowUnits<'_, F>,
        table: Csr<'_, F>,
        First { allowed, .. }: &First,
        cancel: &Cancel,
    ) -> Result<()> {
        for range in blocks(units.len(), BLOCK) {
            cancel.check()?;
            for unit in range {
                let (number, weight) = (units.row_number(unit), units.mass(unit));
                self.mass += weight;
                for (column, value) in table.entries(number, self.sums.len()) {
                    allowed.check("data", value, number, column as usize)?;
                    self.sums[column as usize] += weight * value.to_f64();
                }
                self.counters.add_entries(table.entries(number, self.sums.len()), weight, allowed);
                let (columns, values) = table.row(number);
                allowed.check_exposure("data", columns, number)?;
                if weight > 0.0 {
                    let entries = table.entries(number, self.sums.len()).filter(|(_, value)| value.to_f64() != 0.0);
                    let hash = hash_of_entries(entries.map(|(column, value)| (column.into(), value.to_f64())));
                    self.repeats.add_row(hash, (self.n_rows + unit) as u64, weight);
                }
                let bits = values.iter().map(|value| value.to_f64().to_bits());
                let columns = columns.iter().map(|&column| column.into());
                if let Some(last) = self.prints.last_mut() {
                    *last = fingerprint(*last, columns.chain(bits).chain([weight.to_bits()]));
                }
            }
        }
        self.n_rows += units.len();
        Ok(())
    }
}

/// The first row, in which missing values are zero.
fn first_row<F: Real>(units: &RowUnits<'_, F>) -> Vec<f64> {
    let d = units.dimension();
    let mut row = vec![F::ZERO; d];
    units.read(0..1, &vec![F::ZERO; d], &mut row);
    row.iter().map(|value| if value.is_nan() { 0.0 } else { value.to_f64() }).collect()
}

/// The fingerprint of dense rows, as the first reading finds it.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn print_of_rows<F: Real>(units: &RowUnits<'_, F>, cancel: &Cancel) -> Result<u64> {
    let d = units.dimension();
    let prints = units.map_blocks(&vec![F::ZERO; d], cancel, |range, rows| {
        let unit_rows = range.zip(rows.chunks_exact(d));
        Ok(unit_rows.fold(0, |print, (unit, row)| fingerprint(print, [hash_of_row(row), units.mass(unit).to_bits()])))
    })?;
    Ok(prints.into_iter().fold(d as u64, |print, block| fingerprint(print, [block])))
}
