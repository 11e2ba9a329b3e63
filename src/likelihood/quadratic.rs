//! Log weights that are a function of `|A (x - c)|^2` with a triangular `A`: the Gaussian family.

use pulp::{Simd, WithSimd};

use crate::likelihood::kernel::{Factors, Wanted, gaussian};
use crate::likelihood::scoring::{NO_LEAD, Scorer, Scratch, Tile};
use crate::responsibilities::TopL;
use crate::simd::{Instructions, Scalar};

/// How the squared length enters the log weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Link {
    /// `constant - q / 2`.
    Gaussian,
    /// `constant - half * ln(1 + q)`.
    StudentT {
        /// Half the exponent of the density.
        half: f64,
    },
}

/// One component: `q = scale^2 |factor (x - centre)|^2` and what to make of it.
#[derive(Debug, Clone)]
pub struct Quadratic {
    /// Lower-triangular, column-major, (D, D).
    pub factor: Vec<f64>,
    /// Multiplies the factor.
    pub scale: f64,
    /// (D,), relative to the origin of the rows.
    pub centre: Vec<f64>,
    /// Nats.
    pub constant: f64,
    /// From q to the log weight.
    pub link: Link,
}

/// Packed components of the Gaussian family.
pub struct QuadraticScorer<F> {
    factors: Factors<F>,
    constants: Vec<F>,
    links: Vec<Link>,
    /// Taken from every log weight; depends on the row only.
    row_term: Option<Box<QuadraticScorer<F>>>,
}

impl<F: Scalar> QuadraticScorer<F> {
    /// Packs components of `dimension` columns.
    pub fn new(dimension: usize, components: &[Quadratic], row_term: Option<&Quadratic>) -> Self {
        Self::with_instructions(Instructions::widest(), dimension, components, row_term)
    }

    /// As [`QuadraticScorer::new`], for the kernel of an instruction set.
    pub fn with_instructions(
        instructions: Instructions,
        dimension: usize,
        components: &[Quadratic],
        row_term: Option<&Quadratic>,
    ) -> Self {
        let mut factors = Factors::new(dimension, instructions);
        for component in components {
            let value = |row: usize, column: usize| component.scale * component.factor[column * dimension + row];
            let offset = (0..dimension)
                .map(|row| -(0..=row).map(|column| value(row, column) * component.centre[column]).sum::<f64>());
            factors.push(value, offset);
        }
        let term = |term| Box::new(Self::with_instructions(instructions, dimension, std::slice::from_ref(term), None));
        Self {
            factors,
            constants: components.iter().map(|component| F::from_f64(component.constant)).collect(),
            links: components.iter().map(|component| component.link).collect(),
            row_term: row_term.map(term),
        }
    }

    /// Log weights of one component for a group of rows; returns for how many of them. Where `least` is given, rows that
    /// cannot reach it may be abandoned, and then have the log weight minus infinity.
    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    fn score_group<S: Simd>(
        &self,
        simd: S,
        component: usize,
        columns: &[F],
        least: Option<&[F]>,
        out: &mut [F],
    ) -> usize {
        let constant = self.constants[component];
        let wanted = match (self.links[component], least) {
            (Link::Gaussian, Some(least)) => Some(Wanted { constant, least }),
            _ => None,
        };
        let n_computed = self.factors.squared_lengths(simd, component, columns, wanted, out);
        match self.links[component] {
            Link::Gaussian => {
                let constant = F::splat(simd, constant);
                let values: &mut [F::Vector<S>] = bytemuck::cast_slice_mut(out);
                for q in values {
                    *q = gaussian::<S, F>(simd, constant, *q);
                }
            }
            Link::StudentT { half } => {
                let half = F::from_f64(half);
                for q in out {
                    *q = constant - half * q.ln_1p();
                }
            }
        }
        n_computed
    }

    /// The same for one row, the plain way.
    fn score_row(&self, component: usize, tile: &Tile<F>, row: usize) -> F {
        let q = self.factors.squared_length(component, |column| tile.get(row, column));
        let constant = self.constants[component];
        match self.links[component] {
            Link::Gaussian => constant - F::from_f64(0.5) * q,
            Link::StudentT { half } => constant - F::from_f64(half) * q.ln_1p(),
        }
    }
}

/// [`Scorer::score_rows`], to be compiled for each instruction set.
struct ScoreRows<'a, F> {
    scorer: &'a QuadraticScorer<F>,
    tile: &'a Tile<F>,
    leads: &'a [u32],
    sink: &'a mut TopL<F>,
    scratch: &'a mut Scratch<F>,
}

impl<F: Scalar> WithSimd for ScoreRows<'_, F> {
    type Output = ();

    #[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { scorer, tile, leads, sink, scratch } = self;
        let Scratch { scores, common, least } = scratch;
        scores.reset(F::GROUP, F::ZERO);
        least.reset(F::GROUP, F::ZERO);
        let n_groups = tile.n_padded() / F::GROUP;
        if let Some(term) = &scorer.row_term {
            common.reset(tile.n_padded(), F::ZERO);
            for (group, common) in common.chunks_exact_mut(F::GROUP).enumerate() {
                term.score_group(simd, 0, tile.group(group), None, common);
            }
        }
        let abandons = scorer.row_term.is_none() && scorer.factors.has_bands();
        let mut first = 0;
        while first < n_groups {
            // Groups that begin with the same lead take the components in the same order: it, and then all others.
            let lead = lead_of::<F>(leads, first);
            let mut end = first + 1;
            while end < n_groups && lead_of::<F>(leads, end) == lead {
                end += 1;
            }
            for place in 0..scorer.n_components() {
                let component = match lead {
                    Some(lead) if place == 0 => lead,
                    Some(lead) if place <= lead => place - 1,
                    _ => place,
                };
                for group in first..end {
                    let least = if abandons && sink.least(simd, group, least) { Some(&**least) } else { None };
                    let n_computed = scorer.score_group(simd, component, tile.group(group), least, scores);
                    if n_computed == 0 {
                        continue;
                    }
                    if scorer.row_term.is_some() {
                        for (score, &common) in scores.iter_mut().zip(&common[group * F::GROUP..]) {
                            *score -= common;
                        }
                    }
                    sink.offer(simd, component, group, scores);
                    sink.n_evaluated += n_computed.min(tile.n_rows() - group * F::GROUP);
                }
            }
            first = end;
        }
    }
}

/// The component that a group begins with.
#[allow(clippy::inline_always, reason = "compiled once for each instruction set")]
#[inline(always)]
fn lead_of<F: Scalar>(leads: &[u32], group: usize) -> Option<usize> {
    match leads.get(group * F::GROUP) {
        Some(&lead) if lead != NO_LEAD => Some(lead as usize),
        _ => None,
    }
}

impl<F: Scalar> Scorer<F> for QuadraticScorer<F> {
    fn n_components(&self) -> usize {
        self.constants.len()
    }

    fn score_rows(&self, tile: &Tile<F>, leads: &[u32], sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        self.factors.instructions().run(ScoreRows { scorer: self, tile, leads, sink, scratch });
    }

    fn score_component(&self, component: usize, tile: &Tile<F>, rows: &[u32], out: &mut [F]) {
        for (value, &row) in out.iter_mut().zip(rows) {
            let common = self.row_term.as_ref().map_or(F::ZERO, |term| term.score_row(0, tile, row as usize));
            *value = self.score_row(component, tile, row as usize) - common;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::responsibilities::Responsibilities;

    /// The log weight by the plain loops of the definition.
    fn plain(component: &Quadratic, x: &[f64]) -> f64 {
        let d = x.len();
        let mut q = 0.0;
        for i in 0..d {
            let y: f64 = (0..=i).map(|j| component.factor[j * d + i] * (x[j] - component.centre[j])).sum();
            q += (component.scale * y).powi(2);
        }
        match component.link {
            Link::Gaussian => component.constant - 0.5 * q,
            Link::StudentT { half } => component.constant - half * (1.0 + q).ln(),
        }
    }

    fn component(d: usize) -> impl Strategy<Value = Quadratic> {
        (
            prop::collection::vec(-1.0_f64..1.0, d * d),
            0.5_f64..2.0,
            prop::collection::vec(-2.0_f64..2.0, d),
            -5.0_f64..5.0,
            prop::option::of(0.5_f64..9.0),
        )
            .prop_map(move |(factor, scale, centre, constant, half)| Quadratic {
                factor,
                scale,
                centre,
                constant,
                link: half.map_or(Link::Gaussian, |half| Link::StudentT { half }),
            })
    }

    fn case() -> impl Strategy<Value = (usize, Vec<Quadratic>, Quadratic, Vec<f64>)> {
        // Every height of the last band, with bands before it; rows that fill a group, or less, or more.
        (1_usize..41, 1_usize..10, 1_usize..60).prop_flat_map(|(d, k, n)| {
            (Just(d), prop::collection::vec(component(d), k), component(d), prop::collection::vec(-3.0_f64..3.0, n * d))
        })
    }

    /// What is kept, and how many scores were computed for that.
    fn kept<F: Scalar>(
        scorer: &QuadraticScorer<F>,
        tile: &Tile<F>,
        leads: &[u32],
        width: usize,
        margin: Option<f64>,
    ) -> (Responsibilities, usize) {
        let mut sink = TopL::default();
        sink.reset(tile.n_rows(), width, scorer.n_components(), margin, true);
        scorer.score_rows(tile, leads, &mut sink, &mut Scratch::default());
        let mut out = Responsibilities::zeros(tile.n_rows(), width);
        sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers).expect("finite");
        (out, sink.n_evaluated)
    }

    fn dense<F: Scalar>(scorer: &QuadraticScorer<F>, tile: &Tile<F>) -> Responsibilities {
        kept(scorer, tile, &[], scorer.n_components(), None).0
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn packed_scores_equal_the_plain_loop((d, components, common, rows) in case(), with_term in any::<bool>()) {
            let mut tile = Tile::default();
            tile.fill(&rows, d);
            for set in Instructions::available() {
                let scorer = QuadraticScorer::with_instructions(set, d, &components, with_term.then_some(&common));
                let found = dense(&scorer, &tile);
                for (row, x) in rows.chunks_exact(d).enumerate() {
                    let shift = if with_term { plain(&common, x) } else { 0.0 };
                    for (k, component) in components.iter().enumerate() {
                        let expected = plain(component, x) - shift;
                        let slot = row * components.len() + k;
                        let log_weight = found.values[slot].ln() + found.log_normalizers[row];
                        // A responsibility below 1e-290 has lost its digits.
                        if found.values[slot] > 1e-290 {
                            prop_assert!((log_weight - expected).abs() < 1e-10 * (1.0 + expected.abs()), "{set:?}");
                        }
                        let mut one = [0.0];
                        scorer.score_component(k, &tile, &[row as u32], &mut one);
                        prop_assert!((one[0] - expected).abs() < 1e-10 * (1.0 + expected.abs()), "{set:?}");
                    }
                }
            }
        }

        /// Abandoned scores are those that are not kept, so neither the order of the components nor the bands show.
        #[test]
        fn what_is_kept_is_chosen_from_all_scores(
            (d, components, _common, rows) in case(),
            leads in prop::collection::vec(prop::option::of(0_u32..10), 60),
            width in 1_usize..5,
            margin in prop::option::of(0.0_f64..30.0),
        ) {
            let k = components.len();
            // Where all are kept they stand in the order of the components, and nothing is abandoned.
            let width = width.min(k.max(2) - 1);
            let mut tile = Tile::default();
            tile.fill(&rows, d);
            let n = tile.n_rows();
            let leads: Vec<u32> =
                leads[..n].iter().map(|lead| lead.filter(|&lead| (lead as usize) < k).unwrap_or(NO_LEAD)).collect();
            for set in Instructions::available() {
                let scorer = QuadraticScorer::<f64>::with_instructions(set, d, &components, None);
                let mut all = TopL::default();
                all.reset(n, k, k, None, false);
                scorer.score_rows(&tile, &[], &mut all, &mut Scratch::default());
                let (found, n_evaluated) = kept(&scorer, &tile, &leads, width, margin);
                prop_assert!(n_evaluated <= n * k && n_evaluated >= n);
                for unit in 0..n {
                    let mut expected: Vec<(f64, u32)> = (0..k).map(|j| (all.score(unit, j), j as u32)).collect();
                    expected.sort_by(|a, b| b.0.partial_cmp(&a.0).expect("finite").then(a.1.cmp(&b.1)));
                    let best = expected[0].0;
                    for (slot, &(score, component)) in expected[..width].iter().enumerate() {
                        let value = found.values[unit * width + slot];
                        if margin.is_some_and(|margin| score < best - margin) {
                            prop_assert_eq!(value, 0.0);
                        } else {
                            prop_assert_eq!(found.components[unit * width + slot], component, "{:?}", set);
                            let expected = (score - best).exp() * found.values[unit * width];
                            prop_assert!((value - expected).abs() <= 1e-14 * expected + 1e-300);
                        }
                    }
                }
            }
        }

        #[test]
        fn float32_is_near_float64((d, components, _common, rows) in case()) {
            let wide = QuadraticScorer::<f64>::new(d, &components, None);
            let (mut wide_tile, mut narrow_tile) = (Tile::default(), Tile::default());
            wide_tile.fill(&rows, d);
            narrow_tile.fill(&rows.iter().map(|&x| x as f32).collect::<Vec<_>>(), d);
            let expected = dense(&wide, &wide_tile).log_normalizers;
            for set in Instructions::available() {
                let narrow = QuadraticScorer::<f32>::with_instructions(set, d, &components, None);
                for (x, y) in expected.iter().zip(&dense(&narrow, &narrow_tile).log_normalizers) {
                    // Sums of up to 41^2 products of rounding error 6e-8, relative to the squared length.
                    prop_assert!((x - y).abs() < 1e-4 * (1.0 + x.abs()), "{set:?}: {x} {y}");
                }
            }
        }
    }
}
