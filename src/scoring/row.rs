//! A row in `f64`, and functions of one row.

use crate::data::RowBlock;
use crate::simd::Scalar;

/// One row.
#[derive(Debug, Clone, Copy)]
pub enum Row<'a> {
    /// All values, relative to the origin; NaN where missing.
    Dense(&'a [f64]),
    /// Columns of the nonzero values, and these values.
    Sparse(&'a [u32], &'a [f64]),
}

impl Row<'_> {
    /// `sum_j f(j, x_j)` over the present values; `at_zero` is the sum for a row of zeros.
    pub fn sum(&self, at_zero: f64, f: impl Fn(usize, f64) -> f64) -> f64 {
        match self {
            Self::Dense(values) => {
                values.iter().enumerate().filter(|(_, x)| !x.is_nan()).map(|(column, &x)| f(column, x)).sum()
            }
            Self::Sparse(columns, values) => {
                let change = |(&column, &x): (&u32, &f64)| f(column as usize, x) - f(column as usize, 0.0);
                at_zero + columns.iter().zip(*values).map(change).sum::<f64>()
            }
        }
    }

    /// The same if the sum for a row of zeros is not known.
    pub fn sum_of(&self, dimension: usize, f: impl Fn(usize, f64) -> f64) -> f64 {
        let at_zero = match self {
            Self::Dense(_) => 0.0,
            Self::Sparse(..) => (0..dimension).map(|column| f(column, 0.0)).sum(),
        };
        self.sum(at_zero, f)
    }

    /// Calls `take` with the column and the value of each value other than zero.
    pub fn each_nonzero(&self, mut take: impl FnMut(usize, f64)) {
        match self {
            Self::Dense(values) => {
                let seen = values.iter().enumerate().filter(|(_, x)| !x.is_nan() && **x != 0.0);
                seen.for_each(|(column, &x)| take(column, x));
            }
            Self::Sparse(columns, values) => {
                columns.iter().zip(*values).for_each(|(&column, &x)| take(column as usize, x));
            }
        }
    }

    /// The sum of its values.
    pub fn total(&self) -> f64 {
        self.sum(0.0, |_, x| x)
    }
}

/// Calls `take` with the index and the values of each row.
pub fn each_row<F: Scalar>(rows: RowBlock<'_, F>, dimension: usize, mut take: impl FnMut(usize, Row<'_>)) {
    let mut wide = Vec::new();
    match rows {
        RowBlock::Dense(rows) => {
            for (number, row) in rows.chunks_exact(dimension).enumerate() {
                wide.clear();
                wide.extend(row.iter().map(|value| value.to_f64()));
                take(number, Row::Dense(&wide));
            }
        }
        RowBlock::Sparse(rows) => {
            let mut columns = Vec::new();
            for (number, &row) in rows.numbers.iter().enumerate() {
                columns.clear();
                wide.clear();
                for (column, value) in rows.table.entries(row as usize, dimension) {
                    columns.push(column);
                    wide.push(value.to_f64());
                }
                take(number, Row::Sparse(&columns, &wide));
            }
        }
    }
}

/// A scalar function of a row.
pub struct RowFunction(Box<dyn Fn(Row<'_>) -> f64 + Send + Sync>);

impl RowFunction {
    /// Wraps a closure.
    pub fn new(f: impl Fn(Row<'_>) -> f64 + Send + Sync + 'static) -> Self {
        Self(Box::new(f))
    }

    /// Adds the value of each row to `out`.
    pub fn add<F: Scalar>(&self, rows: RowBlock<'_, F>, dimension: usize, out: &mut [f64]) {
        each_row(rows, dimension, |number, row| out[number] += (self.0)(row));
    }
}
