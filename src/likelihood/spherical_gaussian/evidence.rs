//! The base measure estimated by evidence (mathematics 10.3).

use crate::error::Result;
use crate::likelihood::FromParameters;
use crate::likelihood::evidence::{Caution, Evidence, GUARD, Given, Loosening, maximum_at};
use crate::likelihood::gamma_evidence::{
    GammaMoments, dual_rate, expected_excess, gamma_divergence, least_rate, shape,
};
use crate::likelihood::mean_evidence::{MeanTerm, mean_divergence, mean_precision};
use crate::likelihood::spherical_gaussian::{Base, Centred, SphericalGaussian, SphericalPosterior};
use crate::parameters::{Parameters, Value};
use crate::registry::Range;
use crate::suffstats::Sufficient;

impl SphericalGaussian {
    /// Estimates the precision of the prior mean under the conjugate base measure.
    fn conjugate_precision(&self, occupied: &[Sufficient<'_>], start: &Self) -> f64 {
        if self.frame.missing {
            return self.precision_by_columns(occupied, start);
        }
        let term = |component: &Sufficient<'_>| {
            let (centred, posterior) = (self.centred(*component), self.posterior(*component));
            let away = |(s, m): (&f64, &f64)| (s / centred.n - m).powi(2);
            let distance: f64 = centred.sums.iter().zip(&self.prior.mean).map(away).sum();
            let curve = distance / (2.0 * self.prior.rate + centred.scatter);
            MeanTerm { n: centred.n, columns: self.d(), slope: 2.0 * posterior.shape * curve, curve }
        };
        let terms: Vec<MeanTerm> = occupied.iter().map(term).collect();
        mean_precision(self.prior.kappa, start.prior.kappa, self.d(), &terms)
    }

    /// The same if each column has its own count. Solves for the zero of the derivative of the log marginal
    /// likelihoods, in which the terms `t_d = kappa_0 N_d / (kappa_0 + N_d)` of all columns share one rate.
    fn precision_by_columns(&self, occupied: &[Sufficient<'_>], start: &Self) -> f64 {
        let (d, of_start) = (self.d(), start.prior.kappa);
        let centred: Vec<_> = occupied.iter().map(|component| self.centred(*component)).collect();
        let term = |component: &Centred<'_>, kappa: f64| {
            let (mut values, mut squares, mut pulled, mut gain) = (0.0, 0.0, 0.0, 0.0);
            for (n, away) in self.away(component) {
                let share = n / (kappa + n);
                values += n;
                squares += kappa * share * away * away;
                pulled += share * share * away * away;
                gain += share / kappa;
            }
            let (shape, rate) =
                (self.prior.shape + 0.5 * values, self.prior.rate + 0.5 * (component.scatter + squares));
            0.5 * (gain - shape / rate * pulled)
        };
        let most = (occupied.len() as f64 + GUARD) * of_start / GUARD;
        maximum_at(self.prior.kappa, Range::closed(1e-9, most), |kappa| {
            centred.iter().map(|component| term(component, kappa)).sum::<f64>()
                - 0.5 * GUARD * d * (of_start.recip() - kappa.recip())
        })
    }

    /// Updates the rate by the dual bound, which converges fast for few rows.
    fn dual_rate(&self, occupied: &[Sufficient<'_>], start: &Self) -> f64 {
        let rate = self.prior.rate;
        let sum =
            |posterior: SphericalPosterior| 2.0 * posterior.shape * rate * (posterior.rate - rate) / posterior.rate;
        let sums: f64 = occupied.iter().map(|component| sum(self.posterior(*component))).sum();
        let values = |component: &Sufficient<'_>| match self.centred(*component).counts {
            [] => component.count * self.d(),
            counts => counts.iter().sum(),
        };
        let n: f64 = occupied.iter().map(values).sum();
        let of_start = (start.prior.shape, start.prior.rate);
        dual_rate((self.prior.shape, rate), of_start, (n, occupied.len() as f64, sums))
    }

    /// Estimates the precision of the prior mean under the product base measure, by moment matching.
    fn product_precision(&self, occupied: &[Sufficient<'_>], start: &Self) -> f64 {
        let variance = |component: &Sufficient<'_>| {
            let posterior = self.posterior(*component);
            let distance: f64 = posterior.mean.iter().zip(&self.prior.mean).map(|(m, m_0)| (m - m_0).powi(2)).sum();
            self.d() / posterior.kappa + distance
        };
        let sum = occupied.iter().map(variance).sum::<f64>() + GUARD * self.d() / start.prior.kappa;
        (occupied.len() as f64 + GUARD) * self.d() / sum
    }
}

impl Evidence for SphericalGaussian {
    fn cautions(&self) -> Vec<(String, Caution)> {
        vec![("shape".to_owned(), Caution::Kept), ("mean_precision".to_owned(), Caution::Capped)]
    }

    fn divergence_of(&self, start: &Parameters) -> Result<f64> {
        let (start, now) = (Self::build(start, self.frame.clone())?.prior, &self.prior);
        let precision = if self.base == Base::Conjugate { start.shape / start.rate } else { 1.0 };
        let distance: f64 = start.mean.iter().zip(&now.mean).map(|(a, b)| (a - b).powi(2)).sum();
        Ok(gamma_divergence((start.shape, start.rate), (now.shape, now.rate))
            + mean_divergence(self.d(), start.kappa, now.kappa, precision * distance))
    }

    fn estimate(&self, given: &Given<'_>) -> Result<Parameters> {
        let (occupied, mut found) = (given.occupied(), given.parameters.clone());
        if occupied.is_empty() {
            return Ok(found);
        }
        let start = Self::build(given.start, self.frame.clone())?;
        let mut model = Self::build(&found, self.frame.clone())?;
        if given.is_free("mean_precision") {
            let precision = match self.base {
                Base::Conjugate => model.conjugate_precision(&occupied, &start),
                Base::Product => model.product_precision(&occupied, &start),
            };
            found = found.with([("mean_precision", Value::Number(precision))]);
            model = Self::build(&found, self.frame.clone())?;
        }
        if given.is_free("rate") && self.base == Base::Conjugate {
            let rate = model.dual_rate(&occupied, &start);
            found = found.with([("rate", Value::Number(rate))]);
            model = Self::build(&found, self.frame.clone())?;
        }
        let mut moments = GammaMoments::of_start(start.prior.shape, start.prior.rate);
        for posterior in occupied.iter().map(|component| model.posterior(*component)) {
            moments.add(posterior.shape, posterior.rate);
        }
        let (rate_is_free, rate) = (given.is_free("rate"), model.prior.rate);
        let mut a = model.prior.shape;
        if given.is_free("shape") {
            a = shape(a, &[moments], (!rate_is_free).then_some(&[rate][..]));
            found = found.with([("shape", Value::Number(a))]);
        }
        if rate_is_free {
            let rate = moments.rate(a).max(least_rate(a, start.prior.rate, given.floor()));
            found = found.with([("rate", Value::Number(rate))]);
        }
        Ok(found)
    }

    fn loose(&self, given: &Given<'_>, by: Loosening<'_>) -> Result<Option<Parameters>> {
        let (true, Some(divisor)) = (given.is_free("rate"), by.common_divisor()) else { return Ok(None) };
        let (start, prior) = (Self::build(given.start, self.frame.clone())?.prior, &self.prior);
        let shape = if given.is_free("shape") { by.certainty * start.shape } else { prior.shape };
        let rate = (expected_excess(shape) / expected_excess(prior.shape) / divisor * prior.rate).max(least_rate(
            shape,
            start.rate,
            given.floor(),
        ));
        let mut found = given.parameters.with([("shape", Value::Number(shape)), ("rate", Value::Number(rate))]);
        if self.base == Base::Conjugate {
            found = found.with([("mean_precision", Value::Number(given.loose_precision(prior.kappa, by)))]);
        }
        Ok(Some(found))
    }
}
