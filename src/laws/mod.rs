//! Distributions of a row with marginals and conditionals in closed form, and mixtures of them (mathematics 6.4).

mod column;
mod elliptical;
mod mixture;

pub use column::ColumnLaw;
pub(crate) use column::count;
pub use elliptical::Elliptical;
pub use mixture::MixtureLaw;

use crate::error::Result;
use crate::rng::Generator;

/// The distribution of a row of one component.
#[derive(Debug, Clone)]
pub enum Law {
    /// A normal or Student t distribution of all columns together.
    Joint(Elliptical),
    /// Independent columns, (D,).
    Columns(Vec<ColumnLaw>),
}

impl Law {
    /// D: number of columns.
    pub fn n_columns(&self) -> usize {
        match self {
            Self::Joint(joint) => joint.place().len(),
            Self::Columns(columns) => columns.len(),
        }
    }

    /// ln p(x), nats; minus infinity where no row can be. `space` is overwritten.
    pub fn log_density(&self, row: &[f64], space: &mut Vec<f64>) -> f64 {
        match self {
            Self::Joint(joint) => joint.log_density(row, space),
            Self::Columns(columns) => columns.iter().zip(row).map(|(column, &x)| column.log_density(x)).sum(),
        }
    }

    /// The distribution of some columns, in this order.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`] where their scale has no Cholesky factor.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        Ok(match self {
            Self::Joint(joint) => Self::Joint(joint.marginal(columns)?),
            Self::Columns(all) => Self::Columns(columns.iter().map(|&j| all[j].clone()).collect()),
        })
    }

    /// The distribution of the `others` given the values of some columns, and the log density of these values, nats.
    ///
    /// # Errors
    /// As [`Law::marginal`].
    pub fn conditional(&self, others: &[usize], given: &[usize], values: &[f64]) -> Result<(f64, Self)> {
        Ok(match self {
            Self::Joint(joint) => {
                let (log_density, rest) = joint.conditional(others, given, values)?;
                (log_density, Self::Joint(rest))
            }
            Self::Columns(all) => {
                let log_density = given.iter().zip(values).map(|(&j, &x)| all[j].log_density(x)).sum();
                (log_density, self.marginal(others)?)
            }
        })
    }

    /// The mean, (D,); of a Student t distribution of at most one degree of freedom, which has none, its location.
    pub fn mean(&self) -> Vec<f64> {
        match self {
            Self::Joint(joint) => joint.place().to_vec(),
            Self::Columns(columns) => columns.iter().map(ColumnLaw::mean).collect(),
        }
    }

    /// The covariance, (D, D); infinite variances, and NaN beside them, where there is none.
    pub fn covariance(&self) -> Vec<f64> {
        match self {
            Self::Joint(joint) => joint.covariance(),
            Self::Columns(columns) => {
                let d = columns.len();
                let mut full = vec![0.0; d * d];
                full.iter_mut().step_by(d + 1).zip(columns).for_each(|(to, column)| *to = column.variance());
                full
            }
        }
    }

    /// The distribution of rows whose columns are multiplied by these positive numbers. Counts, flags and codes have no
    /// units.
    #[must_use]
    pub fn in_units(self, units: &[f64]) -> Self {
        match self {
            Self::Joint(joint) => Self::Joint(joint.in_units(units)),
            Self::Columns(columns) => {
                Self::Columns(columns.into_iter().zip(units).map(|(column, &unit)| column.in_units(unit)).collect())
            }
        }
    }

    /// Draws a row.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`] for parameters from which no draw can be made.
    pub fn draw(&self, row: &mut [f64], generator: &mut Generator) -> Result<()> {
        match self {
            Self::Joint(joint) => joint.draw(row, generator),
            Self::Columns(columns) => {
                for (to, column) in row.iter_mut().zip(columns) {
                    *to = column.draw(generator)?;
                }
                Ok(())
            }
        }
    }
}
