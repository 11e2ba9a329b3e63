//! Heavy tails: each row has a scale `u ~ Gamma(f / 2, f / 2)` of its own that multiplies the precision of its
//! component, so that rows have Student t distributions with f degrees of freedom (mathematics 1k).

use std::any::Any;
use std::f64::consts::PI;
use std::sync::Arc;

use pulp::{Simd, WithSimd};
use rand_distr::{Distribution, Gamma};

use crate::error::{Error, Result};
use crate::laws::{Elliptical, Law, ScaledLaw};
use crate::likelihood::evidence::maximum_at;
use crate::likelihood::row_scale::{ExpectedScales, ScaleOfRow};
use crate::likelihood::wishart::holes::{Fill, N_FILLS, weights_of_others};
use crate::likelihood::wishart::normal_wishart::NormalWishart;
use crate::linalg::{add_moments, packed_len};
use crate::registry::Range;
use crate::responsibilities::TopL;
use crate::rng::{Purpose, stream};
use crate::scoring::{
    Block, Completing, Drift, Incomplete, Link, PairBounds, Quadratic, QuadraticScorer, Scales, Scorer, Scratch,
};
use crate::simd::{Instructions, Lines, Scalar};
use crate::special::{digamma, ln_1p_of_positive, ln_gamma, ln_gamma_difference};
use crate::suffstats::Sufficient;

/// Number of statistics besides the moments: `sum r E u`, `sum r E ln u`, and `sum r {H[q(u)] + (D/2 - 1) E ln u}`.
pub const N_SCALES: usize = 3;
/// The range of f. Beyond it a Student t distribution is hardly different from a normal one.
pub const TAILS: Range = Range::closed(1.0, 1000.0);
/// How much farther than the optimum of its sum an estimate goes: a factor of the change of ln f (mathematics 10.11).
const FARTHER: f64 = 1.9;
/// Scales of the predictive whose density is this many nats below the largest are left out.
const FAR: f64 = 40.0;

/// The tail of all components.
#[derive(Debug, Clone)]
pub struct HeavyTail {
    /// f.
    pub dof: f64,
    columns: usize,
}

/// The statistics of the scales of a component's rows.
#[derive(Debug, Clone, Copy)]
pub struct ScaleSums {
    /// sum r E u.
    pub mass: f64,
    log: f64,
    rest: f64,
}

impl ScaleSums {
    /// Those at the end of the statistics of a component.
    pub fn of(component: Sufficient<'_>) -> Self {
        let [mass, log, rest] = *component.statistics.last_chunk::<N_SCALES>().expect("statistics of scales");
        Self { mass, log, rest }
    }

    /// Refuses sums that no rows can have.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub fn check(component: Sufficient<'_>) -> Result<()> {
        let mass = Self::of(component).mass;
        // Rounding may leave the sums of a component without rows below zero.
        if mass >= -1e-6 * (1.0 + component.count.abs()) {
            return Ok(());
        }
        Err(Error::Format { message: format!("the scales of {} rows have the sum {mass}", component.count) })
    }
}

/// `f/2 ln(f/2) - ln Gamma(f/2)`, the log normaliser of the distribution of scales.
fn log_normaliser(f: f64) -> f64 {
    0.5 * f * (0.5 * f).ln() - ln_gamma(0.5 * f)
}

impl HeavyTail {
    /// Student t distributions of `columns` columns with `dof` degrees of freedom.
    pub fn new(dof: f64, columns: usize) -> Self {
        Self { dof, columns }
    }

    /// `(f + D) / 2`, the shape of q(u), and half the exponent of the density.
    fn shape(&self) -> f64 {
        0.5 * (self.dof + self.columns as f64)
    }

    /// The log weight of rows with tails from that of normal rows. `spread`: the part of `E nu |x - mu|^2` that does
    /// not depend on the row, whose half was subtracted from the constant.
    pub fn of_normal(&self, normal: Quadratic, spread: f64) -> Quadratic {
        let (f, d, half) = (self.dof, self.columns as f64, self.shape());
        let of_normal = normal.constant + 0.5 * (spread + d * (2.0 * PI).ln());
        let of_tail = ln_gamma_difference(0.5 * f, 0.5 * d) - 0.5 * d * (PI * f).ln() - half * (spread / f).ln_1p();
        Quadratic {
            scale: normal.scale / (f + spread).sqrt(),
            constant: of_normal + of_tail,
            link: Link::StudentT { half },
            ..normal
        }
    }

    /// E log p(x) + `log_weight` of a posterior as the log weight of rows with tails, and the part of `E nu |x - mu|^2`
    /// that does not depend on the row.
    pub fn of_posterior(&self, posterior: &NormalWishart, rounding: &[f64], log_weight: f64) -> (Quadratic, f64) {
        let squares = posterior.cost_of_squares(rounding);
        let spread = posterior.dimension() as f64 * posterior.inverse_kappa + 2.0 * squares;
        (self.of_normal(posterior.expected(log_weight - squares), spread), spread)
    }

    /// Q(f): what the scales of a component's rows contribute to the bound, nats.
    pub fn contribution(&self, component: Sufficient<'_>) -> f64 {
        let ScaleSums { mass, log, rest } = ScaleSums::of(component);
        component.count * log_normaliser(self.dof) + 0.5 * self.dof * (log - mass) + rest
    }

    /// The degrees of freedom that do not lower the sum of the contributions of components, from the optimum of this
    /// sum. Small steps towards light tails are made larger (mathematics 10.11).
    pub fn estimate(&self, components: &[Sufficient<'_>]) -> f64 {
        let (mut n, mut excess) = (0.0, 0.0);
        for &component in components {
            let ScaleSums { mass, log, .. } = ScaleSums::of(component);
            (n, excess) = (n + component.count, excess + log - mass);
        }
        if n <= 0.0 {
            return self.dof;
        }
        let half = Range::closed(0.5 * TAILS.least, 0.5 * TAILS.greatest);
        let best = 2.0 * maximum_at(0.5 * self.dof, half, |y| n * (y.ln() + 1.0 - digamma(y)) + excess);
        let far = (self.dof * (best / self.dof).powf(FARTHER)).clamp(TAILS.least, TAILS.greatest);
        let value = |f: f64| n * log_normaliser(f) + 0.5 * f * excess;
        if value(far) >= value(self.dof) { far } else { best }
    }

    /// Adds up statistics of rows without a component: their scales have the distribution that they have before any row
    /// is seen, which is a valid though loose choice. `fill` fills missing values.
    pub fn accumulate_alone(
        &self,
        fill: Option<&Fill>,
        rows: &[f64],
        weights: &[f64],
        statistics: &mut [f64],
        space: &mut Lines<f64>,
    ) {
        let half = 0.5 * self.dof;
        let scale = |n: usize| ExpectedScales::new(half, n).at(half);
        let Some(fill) = fill else {
            let mass: f64 = weights.iter().sum();
            let ScaleOfRow { value, log, rest } = scale(self.columns);
            self.add(rows, weights, statistics, space);
            let sums = statistics.last_chunk_mut::<N_SCALES>().expect("statistics of scales");
            [mass * value, mass * log, mass * rest].iter().zip(sums).for_each(|(term, sum)| *sum += term);
            return;
        };
        let by_number: Vec<ScaleOfRow> = (0..=self.columns).map(scale).collect();
        self.add_filled(fill, rows, weights, statistics, space, |_, seen| {
            seen.iter().map(|&(n, _)| by_number[n]).collect()
        });
    }

    /// Adds the weighted moments of complete rows.
    fn add(&self, rows: &[f64], weights: &[f64], statistics: &mut [f64], space: &mut Lines<f64>) {
        let d = self.columns;
        let (sums, packed) = statistics[..d + packed_len(d)].split_at_mut(d);
        add_moments(rows, weights, d, sums, packed, space);
    }

    /// Fills the missing values of rows and adds their weighted statistics (mathematics 1k). `scales` returns the
    /// scales of filled rows; it gets the number of columns of each row, and the expected square of the rounding of
    /// the others.
    fn add_filled(
        &self,
        fill: &Fill,
        rows: &[f64],
        weights: &[f64],
        statistics: &mut [f64],
        space: &mut Lines<f64>,
        scales: impl FnOnce(&[f64], &[(usize, f64)]) -> Vec<ScaleOfRow>,
    ) {
        let (filled, fillings, without_values) = fill.fill_all(rows);
        let weights = weights_of_others(weights, &without_values);
        let mut seen = vec![(self.columns, 0.0); weights.len()];
        for filling in &fillings {
            let of_rows = (self.columns - filling.n(), fill.rounding(filling));
            filling.list.iter().for_each(|&row| seen[row] = of_rows);
        }
        let scales = scales(&filled, &seen);
        let scaled: Vec<f64> = weights.iter().zip(&scales).map(|(weight, scale)| weight * scale.value).collect();
        self.add(&filled, &scaled, statistics, space);
        let (moments, rest) = statistics.split_at_mut(self.columns + packed_len(self.columns));
        for filling in &fillings {
            let sum = |of: &[f64]| filling.list.iter().map(|&row| of[row]).sum::<f64>();
            let weight = sum(&weights);
            fill.add_covariance(filling, weight, sum(&scaled), &mut moments[self.columns..]);
            rest[0] += weight * filling.statistic;
        }
        rest[1] += weights.iter().sum::<f64>();
        for ((scale, scaled), weight) in scales.iter().zip(&scaled).zip(&*weights) {
            let terms = [*scaled, weight * scale.log, weight * scale.rest];
            rest[N_FILLS..].iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }

    /// The nodes `u` of a quadrature over scales and their log weights, nats: the trapezoid rule in ln u. Densities far
    /// out come from small scales. Steps are a fraction of the width in ln u of what a row leaves possible.
    pub fn nodes(&self) -> Vec<(f64, f64)> {
        let half = 0.5 * self.dof;
        let step = 0.5_f64.min((2.0 * self.shape()).sqrt().recip());
        let log_weight = |t: f64| log_normaliser(self.dof) + half * (t - t.exp()) + step.ln();
        let side = |sign: f64, first: i32| {
            let nodes = (first..).map(move |index| sign * step * f64::from(index)).map(|t| (t.exp(), log_weight(t)));
            nodes.take_while(|(_, weight)| *weight > log_weight(0.0) - FAR)
        };
        side(-1.0, 1).chain(side(1.0, 0)).collect()
    }

    /// log p(x | lambda) + `log_weight`: the Student t of normal rows with `kappa / (kappa + 1)` replaced by `u kappa /
    /// (u + kappa)`, summed over scales u (mathematics 1k).
    pub fn predictive(&self, posterior: &NormalWishart, log_weight: f64) -> Quadratic {
        let d = posterior.dimension();
        let constant = NormalWishart::predictive_constant(d, posterior.dof, 0.0, posterior.log_determinant);
        let term = |(u, weight): (f64, f64)| {
            let factor = (u.recip() + posterior.inverse_kappa).recip();
            (weight + 0.5 * d as f64 * factor.ln(), factor)
        };
        let terms = self.nodes().into_iter().map(term).collect();
        Quadratic {
            factor: posterior.inverse_factor(),
            scale: 1.0,
            centre: posterior.mean.clone(),
            constant: constant + log_weight,
            link: Link::Mixed(Arc::new(Scales { half: 0.5 * (posterior.dof + 1.0), terms })),
        }
    }

    /// The predictive distribution as a mixture over scales.
    pub fn predictive_law(&self, posterior: &NormalWishart, origin: &[f64]) -> Law {
        let dof = posterior.dof - posterior.dimension() as f64 + 1.0;
        let place: Vec<f64> = posterior.mean.iter().zip(origin).map(|(m, o)| m + o).collect();
        let part = |(u, weight): (f64, f64)| {
            let scale = ((u.recip() + posterior.inverse_kappa) / dof).sqrt();
            let factor = posterior.factor.iter().map(|value| scale * value).collect();
            (weight.exp(), Law::Joint(Elliptical::from_factor(place.clone(), factor, dof)))
        };
        Law::Scaled(ScaledLaw::new(self.nodes().into_iter().map(part).collect(), self.dof))
    }
}

/// Scores rows with tails, and completes them with their scales.
pub struct TailScorer<F> {
    scores: QuadraticScorer<F>,
    scales: Box<dyn Completing>,
}

/// The distribution `q(u) = Gamma(a, b)` of the scales of rows under components (mathematics 1k).
pub struct RowScales {
    tail: HeavyTail,
    /// The components; `b = least (1 + q)` for the squared length q of a row.
    lengths: QuadraticScorer<f64>,
    least: Vec<f64>,
    /// What fills missing values, if there may be some.
    fills: Option<Vec<Fill>>,
    /// By number of columns that a row has, (D + 1,).
    expected: Vec<ExpectedScales>,
}

impl RowScales {
    /// That of components, each with the part of `E nu |x - mu|^2` that does not depend on the row.
    pub fn new(tail: HeavyTail, components: Vec<(Quadratic, f64)>, fills: Option<Vec<Fill>>) -> Self {
        let least = components.iter().map(|(_, spread)| 0.5 * (tail.dof + spread)).collect();
        let components = components.into_iter().map(|(component, _)| component).collect();
        let lengths = QuadraticScorer::new(tail.columns, components, None);
        let expected = (0..=tail.columns).map(|n| ExpectedScales::new(0.5 * (tail.dof + n as f64), n)).collect();
        Self { tail, lengths, least, fills, expected }
    }
}

impl<F: Scalar> TailScorer<F> {
    /// Packs components of rows with tails, each with the part of `E nu |x - mu|^2` that does not depend on the row.
    pub fn new(tail: HeavyTail, components: Vec<(Quadratic, f64)>) -> Self {
        let scores = components.iter().map(|(component, _)| component.clone()).collect();
        let scores = QuadraticScorer::new(tail.columns, scores, None);
        Self { scores, scales: Box::new(RowScales::new(tail, components, None)) }
    }
}

impl TailScorer<f64> {
    /// Packs components at drawn parameters; the scales of rows are drawn, too. `key`: what the draws follow from.
    pub fn of_draws(tail: HeavyTail, components: Vec<Quadratic>, key: u64) -> Self {
        let lengths = QuadraticScorer::new(tail.columns, components.clone(), None);
        let scores = QuadraticScorer::new(tail.columns, components, None);
        Self { scores, scales: Box::new(DrawnScales { tail, lengths, key }) }
    }
}

impl Completing for RowScales {
    fn accumulate(&self, component: usize, rows: Incomplete<'_>, statistics: &mut [f64], space: &mut Lines<f64>) {
        let Incomplete { values: rows, weights, .. } = rows;
        let (shape, least) = (self.tail.shape(), self.least[component]);
        let mut scratch = Scratch::default();
        if let Some(fills) = &self.fills {
            let scales = |filled: &[f64], seen: &[(usize, f64)]| {
                self.lengths.squared_lengths(component, filled, &mut scratch);
                // The squared length of a filled row is that of the columns that it has.
                let of = |(&square, &(n, rounding)): (&f64, &(usize, f64))| {
                    self.expected[n].at(least * (1.0 + square) - 0.5 * rounding)
                };
                scratch.scores.iter().zip(seen).map(of).collect()
            };
            return self.tail.add_filled(&fills[component], rows.dense(), weights, statistics, space, scales);
        }
        self.lengths.squared_lengths(component, rows.dense(), &mut scratch);
        let mut scaled = vec![0.0; weights.len()];
        let (squares, times) = (&scratch.scores[..weights.len()], shape / least);
        let logs = Instructions::widest().run(Scale { squares, weights, times, scaled: &mut scaled });
        self.tail.add(rows.dense(), &scaled, statistics, space);
        // E ln u = psi(a) - ln b, and H[q(u)] = a - ln b + ln Gamma(a) + (1 - a) psi(a).
        let count: f64 = weights.iter().sum();
        let log_rate = logs + count * least.ln();
        let (half, psi) = (0.5 * self.tail.columns as f64, digamma(shape));
        let sums = statistics.last_chunk_mut::<N_SCALES>().expect("statistics of scales");
        sums[0] += scaled.iter().sum::<f64>();
        sums[1] += count * psi - log_rate;
        sums[2] += count * (shape + ln_gamma(shape) + (half - shape) * psi) - half * log_rate;
    }
}

/// Scales of rows, drawn given the parameters of their components: `u ~ Gamma(a, b)` with `b = f / 2 (1 + q)`
/// (mathematics 8.11).
struct DrawnScales {
    tail: HeavyTail,
    lengths: QuadraticScorer<f64>,
    key: u64,
}

impl Completing for DrawnScales {
    fn accumulate(&self, component: usize, rows: Incomplete<'_>, statistics: &mut [f64], space: &mut Lines<f64>) {
        let Incomplete { values, weights, number } = rows;
        let mut scratch = Scratch::default();
        self.lengths.squared_lengths(component, values.dense(), &mut scratch);
        let half = 0.5 * self.tail.columns as f64 - 1.0;
        let of_one = Gamma::new(self.tail.shape(), 1.0).expect("a shape above zero");
        let mut scaled = vec![0.0; weights.len()];
        let (mut mass, mut log) = (0.0, 0.0);
        for (row, ((scaled, &square), weight)) in scaled.iter_mut().zip(&*scratch.scores).zip(weights).enumerate() {
            let drawn = of_one.sample(&mut stream(self.key, Purpose::Scales, number(row) as u64));
            let scale = (2.0 * drawn / (self.tail.dof * (1.0 + square))).max(f64::MIN_POSITIVE);
            *scaled = weight * scale;
            (mass, log) = (mass + *scaled, log + weight * scale.ln());
        }
        self.tail.add(values.dense(), &scaled, statistics, space);
        let sums = statistics.last_chunk_mut::<N_SCALES>().expect("statistics of scales");
        sums[0] += mass;
        sums[1] += log;
        // A drawn scale has no entropy.
        sums[2] += half * log;
    }
}

/// Writes weights times expected scales, `times / (1 + q)`, and returns the weighted sum of `ln(1 + q)`; compiled for
/// each instruction set.
struct Scale<'a> {
    squares: &'a [f64],
    weights: &'a [f64],
    times: f64,
    scaled: &'a mut [f64],
}

impl WithSimd for Scale<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let Self { squares, weights, times, scaled } = self;
        let mut logs = [0.0; 8];
        let groups = scaled.chunks_mut(8).zip(squares.chunks(8)).zip(weights.chunks(8));
        for ((scaled, squares), weights) in groups {
            for (((scaled, &square), &weight), log) in scaled.iter_mut().zip(squares).zip(weights).zip(&mut logs) {
                *scaled = weight * times / (1.0 + square);
                *log += weight * ln_1p_of_positive(square);
            }
        }
        logs.iter().sum()
    }
}

impl<F: Scalar> Scorer<F> for TailScorer<F> {
    fn n_components(&self) -> usize {
        self.scores.n_components()
    }

    fn score_rows(
        &self,
        block: Block<'_, F>,
        bounds: Option<PairBounds<'_>>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
    ) {
        self.scores.score_rows(block, bounds, sink, scratch);
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        self.scores.score_component(component, rows, out);
    }

    fn uses_bounds(&self) -> bool {
        self.scores.uses_bounds()
    }

    fn drift_since(&self, earlier: &dyn Scorer<F>, was: usize, component: usize) -> Drift {
        self.scores.drift_since(earlier, was, component)
    }

    fn completing(&self) -> Option<&dyn Completing> {
        Some(self.scales.as_ref())
    }

    /// Its scores, which earlier ones are compared with.
    fn as_any(&self) -> &dyn Any {
        &self.scores
    }
}
