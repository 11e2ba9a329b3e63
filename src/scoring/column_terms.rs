//! The terms of a log weight that is a sum over columns.

/// One column of a component.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Column {
    /// Factor of the value.
    pub slope: f64,
    /// Added to the product before it is squared.
    pub offset: f64,
    /// Constant, nats.
    pub constant: f64,
}

impl Column {
    /// `constant - precision (x - centre)^2 / 2`.
    pub fn square(precision: f64, centre: f64, constant: f64) -> Self {
        let slope = precision.sqrt();
        Self { slope, offset: -slope * centre, constant }
    }

    /// `constant + slope x`.
    pub fn line(slope: f64, constant: f64) -> Self {
        Self { slope, offset: 0.0, constant }
    }
}

/// One component.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnTerms {
    /// Constant outside the columns, nats.
    pub constant: f64,
    /// (D,).
    pub columns: Vec<Column>,
}
