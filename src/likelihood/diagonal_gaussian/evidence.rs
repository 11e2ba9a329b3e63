//! Estimation of the normal-gamma base measures of independent columns by evidence (mathematics 10.3).

use crate::error::Result;
use crate::likelihood::diagonal_gaussian::DiagonalGaussian;
use crate::likelihood::diagonal_gaussian::normal_gamma::{ColumnSums, NormalGamma};
use crate::likelihood::evidence::{Caution, Evidence, Given, Loosening};
use crate::likelihood::gamma_evidence::{
    GammaMoments, dual_rate, expected_excess, gamma_divergence, least_rate, shape,
};
use crate::likelihood::mean_evidence::{MeanTerm, mean_divergence, mean_precision};
use crate::parameters::{Parameters, Value, vector};
use crate::suffstats::Sufficient;

/// Columns of a component with at most this many rows are ignored.
const LEAST_COUNT: f64 = 1e-6;

/// Posteriors of the columns that have values, each with its column and its sums.
fn columns<'a>(
    model: &'a DiagonalGaussian,
    occupied: &'a [Sufficient<'a>],
) -> impl Iterator<Item = (usize, ColumnSums, NormalGamma)> + 'a {
    occupied.iter().flat_map(move |component| {
        let columns = model.sums(*component).zip(model.posterior(*component)).enumerate();
        columns.filter(|(_, (sums, _))| sums.rows > LEAST_COUNT).map(|(j, (sums, posterior))| (j, sums, posterior))
    })
}

impl Evidence for DiagonalGaussian {
    fn cautions(&self) -> Vec<(String, Caution)> {
        vec![("shape".to_owned(), Caution::Kept), ("mean_precision".to_owned(), Caution::Capped)]
    }

    fn divergence_of(&self, start: &Parameters) -> Result<f64> {
        let start = self.rebuilt(start)?;
        let columns = start.prior().iter().zip(self.prior());
        Ok(columns
            .map(|(start, now)| {
                let distance = start.shape / start.rate * (start.mean - now.mean).powi(2);
                gamma_divergence((start.shape, start.rate), (now.shape, now.rate))
                    + mean_divergence(1.0, start.kappa, now.kappa, distance)
            })
            .sum())
    }

    fn estimate(&self, given: &Given<'_>) -> Result<Parameters> {
        let (occupied, mut found) = (given.occupied(), given.parameters.clone());
        let start = self.rebuilt(given.start)?;
        let mut model = self.rebuilt(&found)?;
        let (Some(first), Some(now)) = (start.prior().first(), self.prior().first()) else { return Ok(found) };
        if occupied.is_empty() {
            return Ok(found);
        }
        if given.is_free("mean_precision") {
            let term = |(j, sums, posterior): (usize, ColumnSums, NormalGamma)| {
                let (n, prior) = (sums.mass, model.prior()[j]);
                let t = prior.kappa * n / (prior.kappa + n);
                let distance = (posterior.kappa / n * (posterior.mean - prior.mean)).powi(2);
                // The scatter alone: subtracts from the rate the contribution of the mean's distance.
                let curve = distance / (2.0 * posterior.rate - t * distance).max(f64::MIN_POSITIVE);
                MeanTerm { n, columns: 1.0, slope: 2.0 * posterior.shape * curve, curve }
            };
            let known = columns(&model, &occupied).filter(|(_, sums, _)| sums.mass > LEAST_COUNT);
            let terms: Vec<MeanTerm> = known.map(term).collect();
            let precision = mean_precision(now.kappa, first.kappa, start.prior().len() as f64, &terms);
            found = found.with([("mean_precision", Value::Number(precision))]);
            model = self.rebuilt(&found)?;
        }
        let (rate_is_free, shape_is_free) = (given.is_free("rate"), given.is_free("shape"));
        if !rate_is_free && !shape_is_free {
            return Ok(found);
        }
        if rate_is_free {
            found = found.with([("rate", vector(dual_rates(&model, &occupied, start.prior())))]);
            model = self.rebuilt(&found)?;
        }
        let mut moments: Vec<GammaMoments> =
            start.prior().iter().map(|prior| GammaMoments::of_start(prior.shape, prior.rate)).collect();
        columns(&model, &occupied).for_each(|(j, _, posterior)| moments[j].add(posterior.shape, posterior.rate));
        let rates: Vec<f64> = model.prior().iter().map(|prior| prior.rate).collect();
        let a =
            if shape_is_free { shape(now.shape, &moments, (!rate_is_free).then_some(&rates[..])) } else { now.shape };
        found = found.with([("shape", Value::Number(a))]);
        if rate_is_free {
            let floor = given.floor();
            let rate =
                |(column, start): (&GammaMoments, &NormalGamma)| column.rate(a).max(least_rate(a, start.rate, floor));
            found = found.with([("rate", vector(moments.iter().zip(start.prior()).map(rate).collect()))]);
        }
        Ok(found)
    }

    fn loose(&self, given: &Given<'_>, by: Loosening<'_>) -> Result<Option<Parameters>> {
        let start = self.rebuilt(given.start)?;
        let (Some(first), Some(now)) = (start.prior().first(), self.prior().first()) else { return Ok(None) };
        if !given.is_free("rate") {
            return Ok(None);
        }
        let shape = if given.is_free("shape") { by.certainty * first.shape } else { now.shape };
        let times = expected_excess(shape) / expected_excess(now.shape);
        let least = |start: &NormalGamma| least_rate(shape, start.rate, given.floor());
        let rates = self
            .prior()
            .iter()
            .zip(start.prior())
            .enumerate()
            .map(|(column, (prior, start))| (times / by.divisor(column) * prior.rate).max(least(start)))
            .collect();
        let precision = given.loose_precision(now.kappa, by);
        Ok(Some(given.parameters.with([
            ("shape", Value::Number(shape)),
            ("rate", vector(rates)),
            ("mean_precision", Value::Number(precision)),
        ])))
    }
}

/// Updates the rates by the dual bound in the columns where components have few rows relative to the shape; keeps the
/// others unchanged.
fn dual_rates(model: &DiagonalGaussian, occupied: &[Sufficient<'_>], start: &[NormalGamma]) -> Vec<f64> {
    let prior = model.prior();
    // By column: number of rows, number of components, and sum 2 a (b_0 - b_0^2 / b).
    let mut sums = vec![(0.0, 0.0, 0.0); prior.len()];
    for (j, of_column, posterior) in columns(model, occupied) {
        let rate = prior[j].rate;
        sums[j].0 += of_column.rows;
        sums[j].1 += 1.0;
        sums[j].2 += 2.0 * posterior.shape * rate * (posterior.rate - rate) / posterior.rate;
    }
    let rate = |((prior, start), sums): ((&NormalGamma, &NormalGamma), (f64, f64, f64))| {
        dual_rate((prior.shape, prior.rate), (start.shape, start.rate), sums)
    };
    prior.iter().zip(start).zip(sums).map(rate).collect()
}
