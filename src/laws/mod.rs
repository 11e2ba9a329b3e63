//! Distributions of a row with marginals and conditionals in closed form, and mixtures of them (mathematics 6.4).

mod column;
mod elliptical;
mod mixture;
mod scaled;

pub(crate) use column::count;
pub use column::{ColumnLaw, mixed_count};
pub use elliptical::Elliptical;
pub use mixture::MixtureLaw;
pub use scaled::ScaledLaw;

use crate::error::{Error, Result};
use crate::rng::Generator;

/// The distribution of a row of one component.
#[derive(Debug, Clone)]
pub enum Law {
    /// A joint normal or Student t distribution of all columns.
    Joint(Elliptical),
    /// The same with a scale that is not known.
    Scaled(ScaledLaw),
    /// Independent columns, (D,).
    Columns(Vec<ColumnLaw>),
    /// Independent blocks of columns, each with the positions of its columns. A block may be empty.
    Blocks(Vec<(Vec<usize>, Self)>),
}

impl Law {
    /// Number of columns, D.
    pub fn n_columns(&self) -> usize {
        match self {
            Self::Joint(joint) => joint.place().len(),
            Self::Scaled(scaled) => scaled.n_columns(),
            Self::Columns(columns) => columns.len(),
            Self::Blocks(blocks) => blocks.iter().map(|(columns, _)| columns.len()).sum(),
        }
    }

    /// ln p(x), nats; minus infinity outside the support. `space` is overwritten.
    pub fn log_density(&self, row: &[f64], space: &mut Vec<f64>) -> f64 {
        match self {
            Self::Joint(joint) => joint.log_density(row, space),
            Self::Scaled(scaled) => scaled.log_density(row, space),
            Self::Columns(columns) => columns.iter().zip(row).map(|(column, &x)| column.log_density(x)).sum(),
            Self::Blocks(blocks) => {
                let of = |(columns, law): &(Vec<usize>, Self)| {
                    let own: Vec<f64> = columns.iter().map(|&column| row[column]).collect();
                    law.log_density(&own, space)
                };
                blocks.iter().map(of).sum()
            }
        }
    }

    /// Returns the distribution of selected columns, in this order.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`] if their scale has no Cholesky factor.
    pub fn marginal(&self, columns: &[usize]) -> Result<Self> {
        Ok(match self {
            Self::Joint(joint) => Self::Joint(joint.marginal(columns)?),
            Self::Scaled(scaled) => Self::Scaled(scaled.marginal(columns)?),
            Self::Columns(all) => Self::Columns(columns.iter().map(|&j| all[j].clone()).collect()),
            Self::Blocks(blocks) => {
                let mut all = Vec::new();
                for (of_block, law) in blocks {
                    let (places, own) = chosen(of_block, columns);
                    if !own.is_empty() {
                        all.push((places, law.marginal(&own)?));
                    }
                }
                Self::Blocks(all)
            }
        })
    }

    /// Returns the log density of the given values, nats, and the distribution of the `others` given these values.
    pub fn conditional(&self, others: &[usize], given: &[usize], values: &[f64]) -> Result<(f64, Self)> {
        Ok(match self {
            Self::Joint(joint) => {
                let (log_density, rest) = joint.conditional(others, given, values)?;
                (log_density, Self::Joint(rest))
            }
            Self::Scaled(scaled) => {
                let (log_density, rest) = scaled.conditional(others, given, values)?;
                (log_density, Self::Scaled(rest))
            }
            Self::Columns(all) => {
                let log_density = given.iter().zip(values).map(|(&j, &x)| all[j].log_density(x)).sum();
                (log_density, self.marginal(others)?)
            }
            Self::Blocks(blocks) => {
                let (mut log_density, mut all) = (0.0, Vec::new());
                for (of_block, law) in blocks {
                    let ((places, own), (from, known)) = (chosen(of_block, others), chosen(of_block, given));
                    let values: Vec<f64> = from.iter().map(|&place| values[place]).collect();
                    if own.is_empty() && !known.is_empty() {
                        log_density += law.marginal(&known)?.log_density(&values, &mut Vec::new());
                    } else if known.is_empty() && !own.is_empty() {
                        all.push((places, law.marginal(&own)?));
                    } else if !own.is_empty() {
                        let (of_known, rest) = law.conditional(&own, &known, &values)?;
                        log_density += of_known;
                        all.push((places, rest));
                    }
                }
                (log_density, Self::Blocks(all))
            }
        })
    }

    /// The mean, (D,), or the location of a Student t distribution with at most one degree of freedom, which has no
    /// mean.
    pub fn mean(&self) -> Vec<f64> {
        match self {
            Self::Joint(joint) => joint.place().to_vec(),
            Self::Scaled(scaled) => scaled.place(),
            Self::Columns(columns) => columns.iter().map(ColumnLaw::mean).collect(),
            Self::Blocks(blocks) => {
                let mut all = vec![0.0; self.n_columns()];
                for (columns, law) in blocks {
                    columns.iter().zip(law.mean()).for_each(|(&column, mean)| all[column] = mean);
                }
                all
            }
        }
    }

    /// The covariance, (D, D). If it does not exist, variances are infinite and covariances NaN.
    pub fn covariance(&self) -> Vec<f64> {
        match self {
            Self::Joint(joint) => joint.covariance(),
            Self::Scaled(scaled) => scaled.covariance(),
            Self::Columns(columns) => {
                let d = columns.len();
                let mut full = vec![0.0; d * d];
                full.iter_mut().step_by(d + 1).zip(columns).for_each(|(to, column)| *to = column.variance());
                full
            }
            Self::Blocks(blocks) => {
                let d = self.n_columns();
                let mut full = vec![0.0; d * d];
                for (columns, law) in blocks {
                    for (entry, value) in law.covariance().into_iter().enumerate() {
                        let (row, column) = (columns[entry / columns.len()], columns[entry % columns.len()]);
                        full[row * d + column] = value;
                    }
                }
                full
            }
        }
    }

    /// The distribution of rows whose columns are multiplied by these positive numbers. Counts, flags and codes are
    /// unchanged.
    #[must_use]
    pub fn in_units(self, units: &[f64]) -> Self {
        match self {
            Self::Joint(joint) => Self::Joint(joint.in_units(units)),
            Self::Scaled(scaled) => Self::Scaled(scaled.in_units(units)),
            Self::Columns(columns) => {
                Self::Columns(columns.into_iter().zip(units).map(|(column, &unit)| column.in_units(unit)).collect())
            }
            Self::Blocks(blocks) => {
                let of = |(columns, law): (Vec<usize>, Self)| {
                    let own: Vec<f64> = columns.iter().map(|&column| units[column]).collect();
                    (columns, law.in_units(&own))
                };
                Self::Blocks(blocks.into_iter().map(of).collect())
            }
        }
    }

    /// The distribution after `x_j += shift + sum slope_p x_p` for a column j, with slopes in other columns, (D,).
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] for independent columns, which the sum makes dependent;
    /// [`crate::Error::Numerical`].
    pub fn sheared(self, column: usize, shift: f64, slopes: &[f64]) -> Result<Self> {
        Ok(match self {
            Self::Joint(joint) => Self::Joint(joint.sheared(column, shift, slopes)?),
            Self::Scaled(scaled) => Self::Scaled(scaled.sheared(column, shift, slopes)?),
            Self::Columns(_) => {
                return Err(Error::not_supported(
                    "fit",
                    "a background beside columns that nearly follow from others",
                    "their density has no closed marginals",
                    "a fit without a background",
                ));
            }
            Self::Blocks(blocks) => {
                let of = |(columns, law): (Vec<usize>, Self)| {
                    let Some(own) = columns.iter().position(|&other| other == column) else {
                        return Ok((columns, law));
                    };
                    let slopes: Vec<f64> = columns.iter().map(|&column| slopes[column]).collect();
                    Ok((columns, law.sheared(own, shift, &slopes)?))
                };
                Self::Blocks(blocks.into_iter().map(of).collect::<Result<_>>()?)
            }
        })
    }

    /// Draws a row.
    ///
    /// # Errors
    /// [`crate::Error::Numerical`] for parameters that do not allow a draw.
    pub fn draw(&self, row: &mut [f64], generator: &mut Generator) -> Result<()> {
        match self {
            Self::Joint(joint) => joint.draw(row, generator),
            Self::Scaled(scaled) => scaled.draw(row, generator),
            Self::Columns(columns) => {
                for (to, column) in row.iter_mut().zip(columns) {
                    *to = column.draw(generator)?;
                }
                Ok(())
            }
            Self::Blocks(blocks) => {
                for (columns, law) in blocks {
                    let mut own = vec![0.0; columns.len()];
                    law.draw(&mut own, generator)?;
                    columns.iter().zip(own).for_each(|(&column, value)| row[column] = value);
                }
                Ok(())
            }
        }
    }
}

/// Which of the `wanted` columns are in a block: their places among these, and in the block.
fn chosen(of_block: &[usize], wanted: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let of = |(place, column): (usize, &usize)| Some((place, of_block.iter().position(|own| own == column)?));
    wanted.iter().enumerate().filter_map(of).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::Cancel;

    /// A correlated scale matrix of three columns.
    const SCALE: [f64; 9] = [2.0, 0.6, -0.3, 0.6, 1.0, 0.2, -0.3, 0.2, 1.5];

    fn laws() -> Vec<Law> {
        let joint = |dof| Elliptical::new(vec![1.0, -2.0, 0.5], SCALE.to_vec(), dof).expect("definite");
        let columns = vec![
            ColumnLaw::Student { place: 1.0, scale: 2.0, dof: 3.0 },
            ColumnLaw::Table(vec![0.2, 0.3, 0.5]),
            ColumnLaw::NegativeBinomial { shape: 2.5, rate: 0.7 },
        ];
        let pair = Elliptical::new(vec![1.0, 0.5], vec![2.0, -0.3, -0.3, 1.5], 2.5).expect("definite");
        let blocks = vec![(vec![0, 2], Law::Joint(pair)), (vec![1], Law::Columns(columns[1..2].to_vec()))];
        let uniform = vec![ColumnLaw::Uniform { least: -1.0, most: 7.0 }; 3];
        let joints = [Law::Joint(joint(2.5)), Law::Joint(joint(f64::INFINITY))];
        joints.into_iter().chain([Law::Columns(columns), Law::Blocks(blocks), Law::Columns(uniform)]).collect()
    }

    #[test]
    fn a_density_is_that_of_some_columns_times_that_of_the_others_given_them() {
        let (row, mut space) = ([0.3, 2.0, 4.0], Vec::new());
        for law in laws() {
            let whole = law.log_density(&row, &mut space);
            for (given, others) in [(vec![0], vec![2, 1]), (vec![2, 0], vec![1]), (vec![1], vec![0, 2])] {
                let of = |columns: &[usize]| columns.iter().map(|&j| row[j]).collect::<Vec<f64>>();
                let (of_given, rest) = law.conditional(&others, &given, &of(&given)).expect("definite");
                let marginal = law.marginal(&given).expect("definite");
                assert!((of_given - marginal.log_density(&of(&given), &mut space)).abs() < 1e-12);
                assert!((of_given + rest.log_density(&of(&others), &mut space) - whole).abs() < 1e-12, "{given:?}");
            }
        }
    }

    #[test]
    fn units_change_a_density_by_their_product() {
        let (row, units, mut space) = ([0.3, 2.0, 4.0], [2.0, 0.5, 8.0], Vec::new());
        let scaled: Vec<f64> = row.iter().zip(&units).map(|(x, unit)| x * unit).collect();
        for law in [0, 1, 4].map(|index| laws().remove(index)) {
            let before = law.log_density(&row, &mut space);
            let after = law.in_units(&units).log_density(&scaled, &mut space);
            assert!((before - after - 8.0_f64.ln()).abs() < 1e-12);
        }
    }

    #[test]
    fn values_that_no_part_can_have_are_refused() {
        let mixture = MixtureLaw::new(&[1.0, 3.0], vec![laws().remove(2), laws().remove(2)]);
        assert!((mixture.weights()[1] - 0.75).abs() < 1e-15);
        assert!(mixture.conditional(&[0, 2], &[1], &[0.5]).is_err());
        assert!(mixture.conditional(&[0, 2], &[1], &[2.0]).is_ok());
        let never = mixture.log_densities(1, |_, row| row.copy_from_slice(&[0.0, 7.0, 1.0]), &Cancel::default());
        assert_eq!(never.expect("not cancelled"), [f64::NEG_INFINITY]);
    }
}
