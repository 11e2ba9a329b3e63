//! Log weights that are a function of `|A (x - c)|^2` with a triangular `A`: the Gaussian family.

use std::sync::OnceLock;

use pulp::{Simd, WithSimd};

use crate::scoring::bounds::Reach;
use crate::scoring::kernel::{Factors, Wanted, gaussian};
use crate::scoring::quadratic_form::{Link, Quadratic, TailReach, student_t};
use crate::scoring::scorer::Scratch;
use crate::simd::{Instructions, Scalar, Vectors};

/// Packed components of the Gaussian family.
pub struct QuadraticScorer<F> {
    pub(super) factors: Factors<F>,
    pub(super) constants: Vec<F>,
    pub(super) links: Vec<Link>,
    /// Which squared lengths may reach a score, of Student t distributions.
    pub(super) tails: Option<TailReach<F>>,
    pub(super) reaches: Vec<Reach>,
    /// The components as passed in; their drift is measured in `f64`.
    pub(super) components: Vec<Quadratic>,
    /// `scale^2 A^T A` of every component, in the layout of packed squares: off-diagonal entries count twice. Only for
    /// nodes.
    precisions: OnceLock<Vec<f64>>,
    /// Subtracted from every log weight; depends on the row only.
    pub(super) row_term: Option<Box<QuadraticScorer<F>>>,
}

impl<F: Scalar> QuadraticScorer<F> {
    /// Packs components of `dimension` columns.
    pub fn new(dimension: usize, components: Vec<Quadratic>, row_term: Option<&Quadratic>) -> Self {
        Self::with_instructions(Instructions::widest(), dimension, components, row_term)
    }

    /// As [`QuadraticScorer::new`], for the kernel of an instruction set.
    pub fn with_instructions(
        instructions: Instructions,
        dimension: usize,
        components: Vec<Quadratic>,
        row_term: Option<&Quadratic>,
    ) -> Self {
        let mut factors = Factors::new(dimension, instructions);
        for component in &components {
            let value = |row: usize, column: usize| component.scale * component.factor[column * dimension + row];
            let offset = (0..dimension)
                .map(|row| -(0..=row).map(|column| value(row, column) * component.centre[column]).sum::<f64>());
            factors.push(value, offset);
        }
        let length = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
        let reach = |component: &Quadratic| {
            Reach::of::<F>(dimension, component.scale * length(&component.factor), length(&component.centre))
        };
        let term = |term: &Quadratic| Self::with_instructions(instructions, dimension, vec![term.clone()], None);
        Self {
            factors,
            constants: components.iter().map(|component| F::from_f64(component.constant)).collect(),
            links: components.iter().map(|component| component.link.clone()).collect(),
            tails: TailReach::of(&components),
            reaches: components.iter().map(reach).collect(),
            components,
            precisions: OnceLock::new(),
            row_term: row_term.map(|row_term| Box::new(term(row_term))),
        }
    }

    /// The log weights of one component for rows with these squared lengths.
    #[inline(always)]
    pub(super) fn log_weights<S: Simd>(&self, simd: S, component: usize, lengths: Vectors<S, F>) -> Vectors<S, F> {
        let (constant, mut values) = (self.constants[component], lengths);
        match &self.links[component] {
            Link::Gaussian => {
                let constant = F::splat(simd, constant);
                for value in &mut values {
                    *value = gaussian::<S, F>(simd, constant, *value);
                }
            }
            Link::StudentT { half } => {
                let constant = constant.to_f64();
                for value in bytemuck::cast_slice_mut::<_, F>(&mut values) {
                    *value = F::from_f64(student_t(constant, *half, value.to_f64()));
                }
            }
            Link::Mixed(scales) => {
                for value in bytemuck::cast_slice_mut::<_, F>(&mut values) {
                    *value = constant + F::from_f64(scales.log_sum(value.to_f64()));
                }
            }
        }
        values
    }

    /// The threshold that squared lengths are compared with, from that of scores.
    #[inline(always)]
    pub(super) fn threshold<S: Simd>(&self, mut least: Vectors<S, F>) -> Vectors<S, F> {
        if let Some(tails) = &self.tails {
            for value in bytemuck::cast_slice_mut::<_, F>(&mut least) {
                *value = F::from_f64(tails.reach(value.to_f64()));
            }
        }
        least
    }

    /// Which squared lengths of a component are wanted, if that can be told from partial sums.
    #[inline(always)]
    pub(super) fn wanted<S: Simd>(
        &self,
        simd: S,
        component: usize,
        threshold: Option<Vectors<S, F>>,
    ) -> Option<Wanted<S, F>> {
        let (constant, mut least) = (self.constants[component], threshold?);
        if let Some(tails) = &self.tails {
            // 1 + q <= factor reach, as -q / 2 >= (1 - factor reach) / 2.
            let half = F::from_f64(0.5);
            let (half, factor) = (F::splat(simd, half), F::splat(simd, F::from_f64(-0.5) * tails.factor(component)));
            for value in &mut least {
                *value = F::mul_add(simd, factor, *value, half);
            }
            return Some(Wanted { constant: F::splat(simd, F::ZERO), least });
        }
        match self.links[component] {
            Link::Gaussian => Some(Wanted { constant: F::splat(simd, constant), least }),
            Link::StudentT { .. } | Link::Mixed(_) => None,
        }
    }

    /// Coefficients of the packed squares of a node in the squared length under a component, (D (D + 1) / 2,).
    pub(super) fn precision(&self, component: usize) -> &[f64] {
        let d = self.factors.dimension();
        let size = d * (d + 1) / 2;
        let all = self.precisions.get_or_init(|| {
            let mut all = Vec::with_capacity(size * self.components.len());
            for Quadratic { factor, scale, .. } in &self.components {
                for j in 0..d {
                    for i in j..d {
                        let column = |of: usize| &factor[of * d + i..(of + 1) * d];
                        let product: f64 = column(i).iter().zip(column(j)).map(|(x, y)| x * y).sum();
                        all.push(scale * scale * product * if i == j { 1.0 } else { 2.0 });
                    }
                }
            }
            all
        });
        &all[component * size..][..size]
    }

    /// The log weight of one row, computed by the plain loop.
    pub(super) fn score_row(&self, component: usize, row: &[F]) -> F {
        let q = self.factors.factor(component).squared_length(|column| row[column]);
        let constant = self.constants[component];
        match &self.links[component] {
            Link::Gaussian => constant - F::from_f64(0.5) * q,
            Link::StudentT { half } => F::from_f64(student_t(constant.to_f64(), *half, q.to_f64())),
            Link::Mixed(scales) => constant + F::from_f64(scales.log_sum(q.to_f64())),
        }
    }

    /// Writes the squared lengths of rows, (n, D), under a component to `scratch.scores`, (n,).
    pub fn squared_lengths(&self, component: usize, rows: &[F], scratch: &mut Scratch<F>) {
        self.factors.instructions().run(SquaredLengths { scorer: self, component, rows, scratch });
    }
}

/// [`QuadraticScorer::squared_lengths`], compiled for each instruction set.
struct SquaredLengths<'a, F> {
    scorer: &'a QuadraticScorer<F>,
    component: usize,
    rows: &'a [F],
    scratch: &'a mut Scratch<F>,
}

impl<F: Scalar> WithSimd for SquaredLengths<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { scorer, component, rows, scratch: Scratch { tile, scores, .. } } = self;
        tile.fill(rows, scorer.factors.dimension());
        scores.resize(tile.n_padded());
        let (factor, out) = (scorer.factors.factor(component), bytemuck::cast_slice_mut::<_, Vectors<S, F>>(scores));
        for (part, out) in out.iter_mut().enumerate() {
            *out = factor.squared_lengths(simd, tile.part(part), None).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::sync::Arc;

    use super::*;
    use crate::data::RowBlock;
    use crate::responsibilities::{Responsibilities, TopL};
    use crate::scoring::Scales;
    use crate::scoring::{Block, Drift, NO_LEAD, PairBounds, Scorer, Scratch};

    /// The log weight, computed by the plain loops of the definition.
    fn plain(component: &Quadratic, x: &[f64]) -> f64 {
        let d = x.len();
        let mut q = 0.0;
        for i in 0..d {
            let y: f64 = (0..=i).map(|j| component.factor[j * d + i] * (x[j] - component.centre[j])).sum();
            q += (component.scale * y).powi(2);
        }
        match &component.link {
            Link::Gaussian => component.constant - 0.5 * q,
            Link::StudentT { half } => component.constant - half * (1.0 + q).ln(),
            Link::Mixed(scales) => {
                let sum = scales.terms.iter().map(|(c, g)| c.exp() * (1.0 + g * q).powf(-scales.half)).sum::<f64>();
                component.constant + sum.ln()
            }
        }
    }

    fn component(d: usize) -> impl Strategy<Value = Quadratic> {
        (
            prop::collection::vec(-1.0_f64..1.0, d * d),
            0.5_f64..2.0,
            prop::collection::vec(-2.0_f64..2.0, d),
            -5.0_f64..5.0,
            prop::option::of((0.5_f64..9.0, any::<bool>())),
        )
            .prop_map(move |(factor, scale, centre, constant, half)| Quadratic {
                factor,
                scale,
                centre,
                constant,
                link: half.map_or(Link::Gaussian, |(half, mixed)| {
                    let terms = vec![(-0.4, 0.3), (-1.5, 1.2), (-2.5, 7.0)];
                    if mixed { Link::Mixed(Arc::new(Scales { half, terms })) } else { Link::StudentT { half } }
                }),
            })
    }

    fn case() -> impl Strategy<Value = (usize, Vec<Quadratic>, Quadratic, Vec<f64>)> {
        // Covers every height of the last band, with bands before it; and rows that fill a group, less, or more.
        (1_usize..41, 1_usize..10, 1_usize..60).prop_flat_map(|(d, k, n)| {
            (Just(d), prop::collection::vec(component(d), k), component(d), prop::collection::vec(-3.0_f64..3.0, n * d))
        })
    }

    /// The kept components, and the number of scores computed.
    fn kept<F: Scalar>(
        scorer: &QuadraticScorer<F>,
        block: Block<'_, F>,
        width: usize,
        margin: Option<f64>,
    ) -> (Responsibilities, usize) {
        let n = block.rows.dense().len() / scorer.factors.dimension();
        let mut sink = TopL::default();
        sink.reset(n, width, scorer.n_components(), margin, true, true);
        scorer.score_rows(block, None, &mut sink, &mut Scratch::default());
        let mut out = Responsibilities::zeros(n, width);
        sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers).expect("finite");
        (out, sink.n_evaluated)
    }

    fn dense<F: Scalar>(scorer: &QuadraticScorer<F>, rows: &[F]) -> Responsibilities {
        kept(scorer, Block { rows: RowBlock::Dense(rows), leads: &[] }, scorer.n_components(), None).0
    }

    struct Bounded<'a> {
        d: usize,
        rows: &'a [f64],
        width: usize,
        margin: f64,
        link: Link,
    }

    impl Bounded<'_> {
        fn check<F: Scalar>(
            &self,
            set: Instructions,
            components: &[Quadratic],
            steps: &[(i32, Vec<f64>)],
        ) -> Result<(), TestCaseError> {
            let (d, k) = (self.d, components.len());
            let rows: Vec<F> = self.rows.iter().map(|&x| F::from_f64(x)).collect();
            let n = rows.len() / d;
            let mut components: Vec<Quadratic> =
                components.iter().map(|component| Quadratic { link: self.link.clone(), ..component.clone() }).collect();
            // The diagonal is kept away from zero, so that factors can be divided by each other.
            for component in &mut components {
                component.factor.iter_mut().step_by(d + 1).for_each(|x| *x = 0.2 + x.abs());
                (0..d * d).filter(|index| index % d < index / d).for_each(|index| component.factor[index] = 0.0);
            }
            let mut scorer = QuadraticScorer::<F>::with_instructions(set, d, components.clone(), None);
            let (mut values, mut drifts) = (vec![0_u16; n * k], vec![Drift::ANY; k]);
            let mut leads = vec![NO_LEAD; n];
            for (size, change) in steps {
                let block = Block { rows: RowBlock::Dense(&rows), leads: &leads };
                let (expected, _) = kept(&scorer, block, self.width, Some(self.margin));
                let mut sink = TopL::default();
                sink.reset(n, self.width, k, Some(self.margin), true, true);
                let bounds = PairBounds { values: &mut values, drifts: &drifts };
                scorer.score_rows(block, Some(bounds), &mut sink, &mut Scratch::default());
                let mut found = Responsibilities::zeros(n, self.width);
                sink.normalize(&mut found.components, &mut found.values, &mut found.log_normalizers).expect("finite");
                for (slot, value) in found.values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
                    prop_assert_eq!(found.components[slot], expected.components[slot]);
                    prop_assert_eq!(*value, expected.values[slot]);
                }
                prop_assert_eq!(&found.log_normalizers, &expected.log_normalizers);
                for (row, x) in rows.chunks_exact(d).enumerate() {
                    let x: Vec<f64> = x.iter().map(|x| x.to_f64()).collect();
                    leads[row] = found.best(row);
                    for (component, &value) in components.iter().zip(&values[row * k..][..k]) {
                        let fall = component.constant - plain(component, &x);
                        let square = match self.link {
                            Link::StudentT { half } => (fall / half).exp_m1(),
                            _ => 2.0 * fall,
                        };
                        let length = square.max(0.0).sqrt();
                        let bound = f64::from(value) / 128.0;
                        prop_assert!(bound <= length * (1.0 + 1e-9) + 1e-7, "{:?}: {} {}", set, bound, length);
                    }
                }
                let size = 10_f64.powi(*size);
                for (component, change) in components.iter_mut().zip(change.chunks(d * d + d).cycle()) {
                    let mut change = change.iter().chain(std::iter::repeat(&0.5)).map(|x| size * x);
                    component.centre.iter_mut().for_each(|x| *x += change.next().unwrap_or(0.0));
                    let factor = component.factor.iter_mut().enumerate();
                    factor.filter(|(index, _)| index % d >= index / d).for_each(|(index, x)| {
                        let change = change.next().unwrap_or(0.0);
                        *x = if index % (d + 1) == 0 { *x * change.exp() } else { *x + change };
                    });
                }
                let moved = QuadraticScorer::<F>::with_instructions(set, d, components.clone(), None);
                drifts = (0..k).map(|component| moved.drift_since(&scorer, component, component)).collect();
                scorer = moved;
            }
            Ok(())
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn packed_scores_equal_the_plain_loop((d, components, common, rows) in case(), with_term in any::<bool>()) {
            for set in Instructions::available() {
                let term = with_term.then_some(&common);
                let scorer = QuadraticScorer::with_instructions(set, d, components.clone(), term);
                let found = dense(&scorer, &rows);
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
                        scorer.score_component(k, x, &mut one);
                        prop_assert!((one[0] - expected).abs() < 1e-10 * (1.0 + expected.abs()), "{set:?}");
                    }
                }
            }
        }

        /// Only scores that are not kept are abandoned, so results depend neither on the order of the components nor on
        /// the bands.
        #[test]
        fn what_is_kept_is_chosen_from_all_scores(
            (d, components, _common, rows) in case(),
            leads in prop::collection::vec(prop::option::of(0_u32..10), 60),
            width in 1_usize..5,
            margin in prop::option::of(0.0_f64..30.0),
        ) {
            let k = components.len();
            // If all components are kept, they stay in order, and nothing is abandoned.
            let width = width.min(k.max(2) - 1);
            let n = rows.len() / d;
            let leads: Vec<u32> =
                leads[..n].iter().map(|lead| lead.filter(|&lead| (lead as usize) < k).unwrap_or(NO_LEAD)).collect();
            for set in Instructions::available() {
                let scorer = QuadraticScorer::<f64>::with_instructions(set, d, components.clone(), None);
                let mut all = TopL::default();
                all.reset(n, k, k, None, false, false);
                let block = Block { rows: RowBlock::Dense(&rows), leads: &[] };
                scorer.score_rows(block, None, &mut all, &mut Scratch::default());
                let block = Block { rows: RowBlock::Dense(&rows), leads: &leads };
                let (found, n_evaluated) = kept(&scorer, block, width, margin);
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

        /// For steps of any size, down to collapsing factors and up to huge jumps: bounds stay below the residuals, and
        /// the kept components are bitwise equal to those without bounds. Far from the origin the bounds must allow for
        /// rounding.
        #[test]
        fn bounds_hold_and_change_nothing(
            (d, components, _common, rows) in case(),
            steps in prop::collection::vec((-4_i32..2, prop::collection::vec(-1.0_f64..1.0, 41 * 41 + 41)), 1..5),
            width in 1_usize..5,
            margin in 0.0_f64..30.0,
            narrow in any::<bool>(),
            far in prop::sample::select(vec![0.0, 3e3]),
            tail in prop::option::of(0.5_f64..30.0),
        ) {
            let rows: Vec<f64> = rows.iter().map(|x| x + far).collect();
            let mut components = components;
            components.iter_mut().flat_map(|component| &mut component.centre).for_each(|x| *x += far);
            let link = tail.map_or(Link::Gaussian, |half| Link::StudentT { half });
            let case = Bounded { d, rows: &rows, width: width.min(components.len().max(2) - 1), margin, link };
            for set in Instructions::available() {
                if narrow {
                    case.check::<f32>(set, &components, &steps)?;
                } else {
                    case.check::<f64>(set, &components, &steps)?;
                }
            }
        }

        #[test]
        fn float32_is_near_float64((d, components, _common, rows) in case()) {
            let wide = QuadraticScorer::<f64>::new(d, components.clone(), None);
            let narrow_rows: Vec<f32> = rows.iter().map(|&x| x as f32).collect();
            let expected = dense(&wide, &rows).log_normalizers;
            for set in Instructions::available() {
                let narrow = QuadraticScorer::<f32>::with_instructions(set, d, components.clone(), None);
                for (x, y) in expected.iter().zip(&dense(&narrow, &narrow_rows).log_normalizers) {
                    // Sums of up to 41^2 products with a rounding error of 6e-8, relative to the squared length.
                    prop_assert!((x - y).abs() < 1e-4 * (1.0 + x.abs()), "{set:?}: {x} {y}");
                }
            }
        }
    }
}
