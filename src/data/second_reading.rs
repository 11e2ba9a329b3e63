//! The second reading of rows: squares about their means.

use serde::{Deserialize, Serialize};

use crate::data::RowUnits;
use crate::data::rows::BLOCK;
use crate::error::Result;
use crate::linalg::{add_moments, packed_len};
use crate::parallel::{Cancel, blocks, try_map_with};
use crate::real::Real;
use crate::simd::Lines;

/// Sums of squares about an origin, over the values that are not missing.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Squares {
    /// By column, (D,), or of all pairs of columns, packed.
    pub(super) sums: Vec<f64>,
    /// Whether any row of positive weight differs from the origin.
    pub(super) any_moved: bool,
}

/// What the second reading sums up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Second {
    /// The means, (D,); the origin is what they are in the type of the rows.
    pub means: Vec<f64>,
    /// Whether products of different columns are summed too.
    pub products: bool,
}

impl Squares {
    /// Of no rows.
    pub(super) fn new(second: &Second) -> Self {
        let d = second.means.len();
        Self { sums: vec![0.0; if second.products { packed_len(d) } else { d }], any_moved: false }
    }

    /// Adds the sums of other rows.
    pub(super) fn add(&mut self, other: &Self) {
        self.any_moved |= other.any_moved;
        self.sums.iter_mut().zip(&other.sums).for_each(|(sum, value)| *sum += value);
    }

    /// Adds rows.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub(super) fn read<F: Real>(&mut self, units: &RowUnits<'_, F>, second: &Second, cancel: &Cancel) -> Result<()> {
        let parts = if second.products { products(units, second, cancel)? } else { squares(units, second, cancel)? };
        for part in parts {
            self.add(&part);
        }
        Ok(())
    }
}

fn squares<F: Real>(units: &RowUnits<'_, F>, second: &Second, cancel: &Cancel) -> Result<Vec<Squares>> {
    let d = second.means.len();
    let origin: Vec<F> = second.means.iter().map(|&value| F::from_f64(value)).collect();
    units.map_blocks(&origin, cancel, |range, rows| {
        let mut part = Squares::new(second);
        for (unit, row) in range.zip(rows.chunks_exact(d)) {
            let weight = units.mass(unit);
            for (sum, value) in part.sums.iter_mut().zip(row).filter(|(_, value)| !value.is_nan()) {
                part.any_moved |= weight > 0.0 && *value != F::ZERO;
                *sum += weight * value.to_f64() * value.to_f64();
            }
        }
        Ok(part)
    })
}

fn products<F: Real>(units: &RowUnits<'_, F>, second: &Second, cancel: &Cancel) -> Result<Vec<Squares>> {
    let d = second.means.len();
    let origin: Vec<F> = second.means.iter().map(|&value| F::from_f64(value)).collect();
    let ranges: Vec<_> = blocks(units.len(), BLOCK).collect();
    let scratch = || (vec![F::ZERO; BLOCK * d], Vec::new(), Lines::default());
    try_map_with(ranges.len(), scratch, |(rows, wide, space), index| {
        cancel.check()?;
        let range = ranges[index].clone();
        let size = range.len() * d;
        units.read(range.clone(), &origin, &mut rows[..size]);
        wide.clear();
        // A missing value is at the mean.
        wide.extend(rows[..size].iter().map(|value| if value.is_nan() { 0.0 } else { value.to_f64() }));
        let weights: Vec<f64> = range.map(|unit| units.mass(unit)).collect();
        let nonzero = |row: &[f64]| row.iter().any(|&value| value != 0.0);
        let any_moved = wide.chunks_exact(d).zip(&weights).any(|(row, &weight)| weight > 0.0 && nonzero(row));
        let mut sums = vec![0.0; packed_len(d)];
        add_moments(wide, &weights, d, &mut [], &mut sums, space);
        Ok(Squares { sums, any_moved })
    })
}
