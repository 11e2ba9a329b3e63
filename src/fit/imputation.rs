//! Missing values of new rows, from the posterior predictive given what a row has (mathematics 6.2).

use crate::data::Rows;
use crate::error::Result;
use crate::fit::fitted::{Assigned, Fitted, Scored};
use crate::fit::packed::Prediction;
use crate::likelihood::Draw;
use crate::local_step::Keep;
use crate::model::Model;
use crate::parallel::{Cancel, try_map};
use crate::rng::{Choices, Purpose, stream};
use crate::simd::Scalar;
use crate::suffstats::Sufficient;

/// The most probable code, the first of equals, and the probability of the others.
fn most_probable(probabilities: impl Iterator<Item = f64>) -> (f64, f64) {
    let best = probabilities.enumerate().fold((0, 0.0), |best, own| if own.1 > best.1 { own } else { best });
    (best.0 as f64, 1.0 - best.1)
}

impl Fitted {
    /// Mean and variance of every missing value; of the others the values themselves, and 0. Both (n, D). Of codes the
    /// most probable one, and the probability of the others.
    ///
    /// # Errors
    /// [`crate::Error::NotSupported`] for a likelihood that allows no missing values; as [`Fitted::evaluate`].
    pub fn impute<F: Scalar>(&self, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<(Vec<f64>, Vec<f64>)> {
        let model = self.model::<F>()?;
        let nothing = vec![0.0; self.summary.n_statistics];
        let components = self.components_and_prior(&nothing);
        let moments = try_map(components.len(), |k| {
            let (mean, variance) = model.likelihood.predictive_moments(components[k])?;
            // Moments of levels are those of flags, more than one a column.
            let own = &self.coordinates;
            Ok(if own.is_identity() { (mean, variance) } else { (own.raise(&mean), own.raise_by(&variance, 2)) })
        })?;
        let codes = model.likelihood.imputation().and_then(|imputation| imputation.codes());
        let levels: Option<Vec<_>> = codes.map(|codes| codes.ranges().collect());
        let d = self.n_data_columns();
        // It checks the rows: sparse ones may be too many to be written out.
        let shares = self.predictive_shares(&model, rows, cancel)?;
        let (mut values, mut variances) = (in_double(rows), vec![0.0; rows.n_rows() * d]);
        for row in 0..rows.n_rows() {
            let own = row * shares.width..(row + 1) * shares.width;
            let (numbers, shares) = (&shares.components[own.clone()], &shares.values[own]);
            for column in (0..d).filter(|column| values[row * d + column].is_nan()).collect::<Vec<_>>() {
                let mixed = |at: usize| {
                    let (mut mean, mut square) = (0.0, 0.0);
                    for (&k, share) in numbers.iter().zip(shares).filter(|(_, share)| **share > 0.0) {
                        let (m, v) = (moments[k as usize].0[at], moments[k as usize].1[at]);
                        mean += share * m;
                        square += share * (v + m * m);
                    }
                    (mean, square - mean * mean)
                };
                (values[row * d + column], variances[row * d + column]) = match &levels {
                    Some(levels) => most_probable(levels[column].clone().map(|level| mixed(level).0)),
                    None => mixed(column),
                };
            }
        }
        Ok((values, variances))
    }

    /// The rows with every missing value drawn, (n, D).
    ///
    /// # Errors
    /// As [`Fitted::impute`].
    pub fn sample_missing<F: Scalar>(&self, rows: &dyn Rows<F>, seed: u64, cancel: &Cancel) -> Result<Vec<f64>> {
        let model = self.model::<F>()?;
        let nothing = vec![0.0; self.summary.n_statistics];
        let components = self.components_and_prior(&nothing);
        // Rows with missing values have no total.
        let from = Draw { estimate: None, all: components[components.len() - 1] };
        let d = self.n_data_columns();
        let shares = self.predictive_shares(&model, rows, cancel)?;
        let (mut values, mut drawn) = (in_double(rows), vec![0.0; self.origin.len()]);
        for (row, own) in values.chunks_exact_mut(d).enumerate() {
            if !own.iter().any(|value| value.is_nan()) {
                continue;
            }
            let mut generator = stream(seed, Purpose::Draws, row as u64);
            let slot = row * shares.width + generator.choose(&shares.values[row * shares.width..][..shares.width]);
            // Given the component its columns are independent, so what the row has says no more of them.
            let source = model.likelihood.row_source(components[shares.components[slot] as usize], from)?;
            source(&mut drawn, &mut generator);
            let drawn = self.coordinates.raise(&drawn);
            own.iter_mut().zip(drawn).filter(|(value, _)| value.is_nan()).for_each(|(value, x)| *value = x);
        }
        Ok(values)
    }

    /// All components, and last what has no rows: the prior.
    pub(super) fn components_and_prior<'a>(&'a self, nothing: &'a [f64]) -> Vec<Sufficient<'a>> {
        let mut components = self.summary.components();
        // Rounding of sums and differences may leave an emptied component below zero.
        for component in &mut components {
            component.count = component.count.max(0.0);
        }
        components.push(Sufficient { count: 0.0, statistics: nothing });
        components
    }

    /// The responsibilities of all components and, behind them, of the left-over weight, under the predictive.
    fn predictive_shares<F: Scalar>(&self, model: &Model<F>, rows: &dyn Rows<F>, cancel: &Cancel) -> Result<Assigned> {
        let scorer = self.scorer(Prediction::Predictive)?;
        let width = scorer.n_components();
        let scored = Scored { model, scorer, tail: None, width, margin: None, keep: Keep::Nothing };
        self.collect(rows, &scored, cancel)
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
