//! Estimation of the base measures of overdispersed counts by evidence (mathematics 10.4).

use crate::data::Counted;
use crate::likelihood::Given;
use crate::likelihood::counts::Tallied;
use crate::likelihood::evidence::{GUARD, maximum_at};
use crate::likelihood::gamma_evidence::SHAPES;
use crate::likelihood::negative_binomial::Dispersed;
use crate::likelihood::negative_binomial::chance::Chance;
use crate::parallel::{blocks, map};
use crate::parameters::{Parameters, Value, vector};
use crate::registry::Range;
use crate::special::{digamma, digamma_difference, weighted_digamma_differences};

/// Number of columns whose parameters one task estimates.
const COLUMNS: usize = 64;
/// Range of estimated dispersions, for rows of exposure 1. Beyond it counts are Poisson counts, as far as a bound can
/// tell.
const DISPERSIONS: Range = Range::closed(1e-3, 1e6);

impl Dispersed {
    /// Estimates a shape for each column, their common rate, then a dispersion for each column (mathematics 10.4).
    pub(super) fn estimated(&self, components: &[Tallied<'_>], start: &Self, given: &Given<'_>) -> Parameters {
        let mut found = given.parameters.clone();
        let (mut columns, mut rate) = (self.columns.clone(), self.rate);
        let (d, usual) = (columns.len(), self.exposures.mean());
        if given.is_free("shape") {
            let shapes = by_column(d, |column| {
                if self.exposures.column() == Some(column) {
                    return 1.0;
                }
                let start = (start.columns[column].a, start.rate);
                Self::best_shape(columns[column], start, rate, &Self::cells(components, column))
            });
            columns.iter_mut().zip(&shapes).for_each(|(prior, &a)| prior.a = a);
            found = found.with([("shape", vector(shapes))]);
        }
        if given.is_free("shape") && given.is_free("rate") {
            let factor = self.best_factor(&columns, start, rate, components);
            for (column, prior) in columns.iter_mut().enumerate() {
                prior.a *= if self.exposures.column() == Some(column) { 1.0 } else { factor };
                prior.b *= factor;
            }
            rate *= factor;
            found = found.with([("shape", vector(columns.iter().map(|prior| prior.a).collect()))]);
        }
        if given.is_free("rate") {
            let guard: f64 = self.repeats.sum(start.columns.iter().map(|prior| prior.a / start.rate));
            let shapes: f64 = self.repeats.sum(columns.iter().map(|prior| prior.a));
            rate = maximum_at(rate, SHAPES.times(usual), |rate| {
                let of_column = |column: usize| {
                    let Chance { a, dispersion, .. } = columns[column];
                    let of_prior = digamma_difference(dispersion * rate, a);
                    let gain = |component: &Tallied<'_>| {
                        let (n, s) = component.column(column);
                        of_prior - digamma_difference(dispersion * (rate + n), a + s)
                    };
                    dispersion * components.iter().map(gain).sum::<f64>()
                };
                self.repeats.sum(by_column(d, of_column).into_iter()) + GUARD * (shapes / rate - guard)
            });
            for prior in &mut columns {
                prior.b = prior.dispersion * rate;
            }
            found = found.with([("rate", Value::Number(rate))]);
        }
        if let (true, Some(values)) = (given.is_free("dispersion"), &self.values) {
            let mass: f64 = components.iter().map(|component| component.n_rows()).sum();
            let times = if values.mass > 0.0 { mass / values.mass } else { 0.0 };
            let range = DISPERSIONS.times(usual.recip());
            let dispersions = by_column(d, |column| {
                if self.exposures.column() == Some(column) {
                    return columns[column].dispersion;
                }
                let cells = Self::cells(components, column);
                let (counts, from) = (values.column(column), columns[column]);
                Self::best_dispersion(from, range, rate, &cells, counts, times)
            });
            found = found.with([("dispersion", vector(dispersions))]);
        }
        found
    }

    /// The shape of a column that maximises the evidence.
    fn best_shape(prior: Chance, start: (f64, f64), rate: f64, cells: &[(f64, f64)]) -> f64 {
        let guard = digamma(start.0) - start.1.ln() + rate.ln();
        maximum_at(prior.a, SHAPES, |a| {
            // Without the shape, the totals of a component exceed those of the prior by its counts.
            let less = |(n, s): &(f64, f64)| digamma_difference(a + prior.b, s + prior.dispersion * n);
            let gain = |cell: &(f64, f64)| digamma_difference(a, cell.1) - less(cell);
            cells.iter().map(gain).sum::<f64>() + GUARD * (guard - digamma(a))
        })
    }

    /// The factor of all shapes and of the rate that maximises the evidence. Updates one by one approach it slowly,
    /// because it changes no prior mean.
    fn best_factor(&self, columns: &[Chance], start: &Self, rate: f64, components: &[Tallied<'_>]) -> f64 {
        let shapes = self.columns_of_counts().map(|(column, _)| columns[column].a);
        let shapes = shapes.chain([rate / self.exposures.mean()]);
        let (least, most) = shapes.fold((f64::MAX, 0.0_f64), |(least, most), a| (least.min(a), most.max(a)));
        let range = Range::closed((SHAPES.least / least).min(1.0), (SHAPES.greatest / most).max(1.0));
        maximum_at(1.0, range, |factor| {
            let of_column = |column: usize| {
                let Chance { a, b, dispersion } = columns[column];
                let (a, b, rate) = (factor * a, factor * b, factor * rate);
                let of_prior = digamma_difference(b, a);
                let gain = |component: &Tallied<'_>| {
                    let (n, s) = component.column(column);
                    let f = dispersion * n;
                    let of_shape = digamma_difference(a, s) - digamma_difference(a + b, s + f);
                    a * of_shape + b * (of_prior - digamma_difference(b + f, a + s))
                };
                let (first, first_rate) = (start.columns[column].a, start.rate);
                let of_shape = digamma(first) - first_rate.ln() + rate.ln() - digamma(a);
                let guard = a * of_shape + a - rate * first / first_rate;
                components.iter().map(gain).sum::<f64>() + GUARD * guard
            };
            self.repeats.sum(by_column(columns.len(), of_column).into_iter())
        })
    }

    /// The dispersion of a column that maximises the evidence, given its counts, which have the mass of the components
    /// `times` over.
    fn best_dispersion(
        prior: Chance,
        range: Range,
        rate: f64,
        cells: &[(f64, f64)],
        counts: &[Counted],
        times: f64,
    ) -> f64 {
        let weights: Vec<f64> = counts.iter().map(|entry| times * entry.mass * entry.exposure).collect();
        let counted: Vec<f64> = counts.iter().map(|entry| entry.count).collect();
        let mut shapes = vec![0.0; counts.len()];
        maximum_at(prior.dispersion.clamp(range.least, range.greatest), range, |dispersion| {
            let of_prior = rate * digamma_difference(dispersion * rate, prior.a);
            let gain = |(n, s): &(f64, f64)| {
                let rows = rate + n;
                of_prior - rows * digamma_difference(dispersion * rows, prior.a + s)
            };
            shapes.iter_mut().zip(counts).for_each(|(shape, entry)| *shape = dispersion * entry.exposure);
            cells.iter().map(gain).sum::<f64>() + weighted_digamma_differences(&shapes, &counted, &weights)
        })
    }
}

/// The values of a function of the column, (D,).
fn by_column(d: usize, of_column: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
    let blocks: Vec<_> = blocks(d, COLUMNS).collect();
    map(blocks.len(), |block| blocks[block].clone().map(&of_column).collect::<Vec<_>>()).concat()
}
