//! Missing values of new rows, from the posterior predictive given the present values of a row (mathematics 6.2).

use crate::data::{RowUnits, Rows};
use crate::error::Result;
use crate::fitted::packs::Prediction;
use crate::fitted::predictions::Assigned;
use crate::fitted::result::{Fitted, Scored};
use crate::likelihood::{Draw, Imputation};
use crate::local_step::Keep;
use crate::model::Model;
use crate::parallel::{Cancel, try_map};
use crate::rng::{Choices, Purpose, stream};
use crate::simd::Scalar;
use crate::suffstats::Sufficient;

/// The most probable code (the first, if tied), and the total probability of the others.
fn most_probable(probabilities: impl Iterator<Item = f64>) -> (f64, f64) {
    let best = probabilities.enumerate().fold((0, 0.0), |best, other| if other.1 > best.1 { other } else { best });
    (best.0 as f64, 1.0 - best.1)
}

impl Fitted {
    /// Returns mean and variance of every missing value, both (n, D); NaN in a column without any value in the data of
    /// the fit. Present values are returned unchanged, with variance 0. For codes, returns the most probable one, and
    /// the probability of the others.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] for a likelihood that allows no missing values; as [`Fitted::evaluate`].
    pub fn impute<F: Scalar>(&self, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<(Vec<f64>, Vec<f64>)> {
        let model = self.model::<F>()?;
        let nothing = vec![0.0; self.summary.n_statistics];
        let components = self.components_and_prior(&nothing);
        let moments = try_map(components.len(), |k| {
            Ok(self.moments_of_data(model.likelihood.predictive_moments(components[k])?))
        })?;
        let d = self.n_data_columns();
        let mut levels = vec![None; d];
        for (column, range) in model.likelihood.imputation().map_or_else(Vec::new, Imputation::levels) {
            // Behind the columns that the model does not see.
            let moved = d - self.coordinates.rank();
            levels[self.coordinates.kept()[column]] = Some(range.start + moved..range.end + moved);
        }
        // This also checks the rows, before sparse rows are expanded and might not fit in memory.
        let shares = self.predictive_shares(&model, rows, cancel)?;
        let (mut values, mut variances) = (in_double(rows), vec![0.0; rows.n_rows() * d]);
        let mut given = GivenRows::new(self, &model, rows);
        for row in 0..rows.n_rows() {
            let range = row * shares.width..(row + 1) * shares.width;
            let (numbers, shares) = (&shares.components[range.clone()], &shares.values[range]);
            let has_missing = values[row * d..][..d].iter().any(|value| value.is_nan());
            let row_moments = if has_missing { given.moments(row, &components, numbers, shares)? } else { Vec::new() };
            for column in (0..d).filter(|column| values[row * d + column].is_nan()).collect::<Vec<_>>() {
                let mixed = |index: usize| {
                    let (mut mean, mut square) = (0.0, 0.0);
                    let all = numbers.iter().zip(shares).enumerate().filter(|(_, (_, share))| **share > 0.0);
                    for (slot, (&k, share)) in all {
                        let of = row_moments.get(slot).unwrap_or(&moments[k as usize]);
                        let (m, v) = (of.0[index], of.1[index]);
                        mean += share * m;
                        square += share * (v + m * m);
                    }
                    // Rounding may leave less than nothing.
                    (mean, (square - mean * mean).max(0.0))
                };
                (values[row * d + column], variances[row * d + column]) = match &levels[column] {
                    _ if self.coordinates.unseen().contains(&column) => (f64::NAN, f64::NAN),
                    Some(levels) => most_probable(levels.clone().map(|level| mixed(level).0)),
                    None => mixed(column),
                };
            }
        }
        Ok((values, variances))
    }

    /// Returns the rows with every missing value drawn at random, (n, D), except in columns as in [`Fitted::impute`].
    ///
    /// # Errors
    /// As [`Fitted::impute`].
    pub fn sample_missing<F: Scalar>(&self, rows: &dyn Rows<F>, seed: u64, cancel: &Cancel) -> Result<Vec<f64>> {
        let model = self.model::<F>()?;
        let nothing = vec![0.0; self.summary.n_statistics];
        let components = self.components_and_prior(&nothing);
        // Rows with missing values have no total count.
        let from = Draw { estimate: None, all: components[components.len() - 1] };
        let d = self.n_data_columns();
        let shares = self.predictive_shares(&model, rows, cancel)?;
        let (mut values, mut drawn) = (in_double(rows), vec![0.0; self.origin.len()]);
        let mut given = GivenRows::new(self, &model, rows);
        for (row, row_values) in values.chunks_exact_mut(d).enumerate() {
            if !row_values.iter().any(|value| value.is_nan()) {
                continue;
            }
            let mut generator = stream(seed, Purpose::Draws, row as u64);
            let slot = row * shares.width + generator.choose(&shares.values[row * shares.width..][..shares.width]);
            let component = components[shares.components[slot] as usize];
            let imputation = model.likelihood.imputation();
            let of_row =
                imputation.map(|imputation| imputation.source_given(component, given.read(row))).transpose()?.flatten();
            // If columns are independent given the component, the present values carry no further information.
            let source = of_row.map_or_else(|| model.likelihood.row_source(component, from), Ok)?;
            source(&mut drawn, &mut generator);
            let mut drawn = self.coordinates.raise(&drawn);
            for &column in self.coordinates.unseen() {
                drawn[column] = f64::NAN;
            }
            row_values.iter_mut().zip(drawn).filter(|(value, _)| value.is_nan()).for_each(|(value, x)| *value = x);
        }
        Ok(values)
    }

    /// Means and variances in the data's columns; those of the indicators of levels follow unchanged.
    fn moments_of_data(&self, (means, variances): (Vec<f64>, Vec<f64>)) -> (Vec<f64>, Vec<f64>) {
        let coordinates = &self.coordinates;
        if coordinates.is_identity() {
            return (means, variances);
        }
        let (own, of_levels) = means.split_at(coordinates.rank());
        let (own_variances, variances_of_levels) = variances.split_at(coordinates.rank());
        let raised = (coordinates.raise(own), coordinates.raise_by(own_variances, 2));
        ([&raised.0[..], of_levels].concat(), [&raised.1[..], variances_of_levels].concat())
    }

    /// All components, followed by the prior, which has no rows.
    pub(super) fn components_and_prior<'a>(&'a self, nothing: &'a [f64]) -> Vec<Sufficient<'a>> {
        let mut components = self.summary.components();
        // Rounding of sums and differences may leave an emptied component below zero.
        for component in &mut components {
            component.count = component.count.max(0.0);
        }
        components.push(Sufficient { count: 0.0, statistics: nothing });
        components
    }

    /// The responsibilities of all components, followed by that of the left-over weight, under the predictive. A row of
    /// the background is imputed like the others: its density has no mean.
    fn predictive_shares<F: Scalar>(&self, model: &Model<F>, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<Assigned> {
        let scorer = self.scorer(Prediction::PredictiveOfComponents)?;
        let width = scorer.n_components();
        let scored = Scored { model, scorer, has_tail: false, width, margin: None, keep: Keep::Nothing };
        self.collect(rows, &scored, cancel)
    }
}

/// Reads single rows in the form that the likelihood sees.
struct GivenRows<'a, F: Scalar> {
    fitted: &'a Fitted,
    model: &'a Model<F>,
    units: RowUnits<'a, F>,
    origin: Vec<F>,
    row: Vec<F>,
    wide: Vec<f64>,
}

impl<'a, F: Scalar> GivenRows<'a, F> {
    fn new(fitted: &'a Fitted, model: &'a Model<F>, rows: &'a dyn Rows<F>) -> Self {
        let origin: Vec<F> = fitted.origin.iter().map(|&value| F::from_f64(value)).collect();
        let units = RowUnits::all(rows, None).seen_through(&fitted.coordinates);
        Self { fitted, model, units, row: vec![F::ZERO; origin.len()], wide: Vec::new(), origin }
    }

    /// The values of a row minus the origin.
    fn read(&mut self, row: usize) -> &[f64] {
        self.units.read([row], &self.origin, &mut self.row);
        self.wide.clear();
        self.wide.extend(self.row.iter().map(|value| value.to_f64()));
        &self.wide
    }

    /// Mean and variance of every column given the row, for each component with a positive responsibility. Empty if the
    /// present values are independent of the missing ones.
    fn moments(
        &mut self,
        row: usize,
        components: &[Sufficient<'_>],
        numbers: &[i64],
        shares: &[f64],
    ) -> Result<Vec<(Vec<f64>, Vec<f64>)>> {
        let Some(imputation) = self.model.likelihood.imputation() else { return Ok(Vec::new()) };
        let fitted = self.fitted;
        let row = self.read(row);
        let mut all = Vec::new();
        for (&k, &share) in numbers.iter().zip(shares) {
            if share <= 0.0 {
                all.push((Vec::new(), Vec::new()));
                continue;
            }
            let Some(moments) = imputation.moments_given(components[k as usize], row)? else {
                return Ok(Vec::new());
            };
            all.push(fitted.moments_of_data(moments));
        }
        Ok(all)
    }
}

fn in_double<F: Scalar>(rows: &dyn Rows<F>) -> Vec<f64> {
    let mut row = vec![F::ZERO; rows.n_columns()];
    let mut values = Vec::with_capacity(rows.n_rows() * row.len());
    for number in 0..rows.n_rows() {
        rows.read_row(number, &mut row);
        values.extend(row.iter().map(|value| value.to_f64()));
    }
    values
}
