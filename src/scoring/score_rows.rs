//! Scores rows under all components: which pairs are computed, in what order, and how far.

use std::any::Any;

use pulp::{Simd, WithSimd};

use crate::responsibilities::TopL;
use crate::scoring::bounds::bounds_of;
use crate::scoring::kernel::Wanted;
use crate::scoring::quadratic::QuadraticScorer;
use crate::scoring::quadratic_form::{Link, TailReach};
use crate::scoring::scorer::{Block, NO_LEAD, Scorer, Scratch, Spreads, Tile};
use crate::scoring::{Drift, PairBounds};
use crate::simd::{Lines, Scalar, VECTORS, Vectors, parts_of_group, rows_of_part};

/// [`Scorer::score_rows`], compiled for each instruction set.
struct ScoreRows<'a, 'b, F> {
    scorer: &'a QuadraticScorer<F>,
    block: Block<'a, F>,
    bounds: Option<PairBounds<'b>>,
    /// Spreads of nodes, whose means are the rows.
    spreads: Option<Spreads<'a>>,
    sink: &'a mut TopL<F>,
    scratch: &'a mut Scratch<F>,
}

impl<F: Scalar> WithSimd for ScoreRows<'_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Self { scorer, block, mut bounds, spreads, sink, scratch } = self;
        if let Some(bounds) = &mut bounds {
            let n = block.rows.dense().len() / scorer.factors.dimension();
            scratch.lists.measure(block.rows.dense(), scorer.factors.dimension());
            scratch.scan.reset(
                bounds.drifts,
                &scorer.constants,
                &scorer.reaches,
                scorer.tails.as_ref().map(TailReach::half),
            );
            if block.leads.len() == n && !block.leads.contains(&NO_LEAD) && sink.drops() {
                if scorer.score_bounded(simd, block, bounds, sink, scratch) {
                    return;
                }
                sink.clear();
            } else {
                for values in bounds.values.chunks_exact_mut(bounds.drifts.len()) {
                    scratch.scan.row(values, 0.0, f32::INFINITY);
                }
            }
        }
        scorer.score_all(simd, block, bounds, spreads, sink, scratch);
    }
}

/// Minimum number of columns for which a bound costs less than the scores it avoids.
const COLUMNS_FOR_BOUNDS: usize = 40;

impl<F: Scalar> Scorer<F> for QuadraticScorer<F> {
    fn n_components(&self) -> usize {
        self.constants.len()
    }

    fn score_rows(
        &self,
        block: Block<'_, F>,
        bounds: Option<PairBounds<'_>>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
    ) {
        let spreads = None;
        self.factors.instructions().run(ScoreRows { scorer: self, block, bounds, spreads, sink, scratch });
    }

    fn score_nodes(&self, block: Block<'_, F>, spreads: Spreads<'_>, sink: &mut TopL<F>, scratch: &mut Scratch<F>) {
        let (bounds, spreads) = (None, Some(spreads));
        self.factors.instructions().run(ScoreRows { scorer: self, block, bounds, spreads, sink, scratch });
    }

    fn score_component(&self, component: usize, rows: &[F], out: &mut [F]) {
        for (value, row) in out.iter_mut().zip(rows.chunks_exact(self.factors.dimension())) {
            let common = self.row_term.as_ref().map_or(F::ZERO, |term| term.score_row(0, row));
            *value = self.score_row(component, row) - common;
        }
    }

    fn uses_bounds(&self) -> bool {
        self.row_term.is_none()
            && self.factors.dimension() >= COLUMNS_FOR_BOUNDS
            && self.links.iter().all(|link| *link == self.links[0] && !matches!(link, Link::Mixed(_)))
    }

    fn drift_since(&self, earlier: &dyn Scorer<F>, was: usize, component: usize) -> Drift {
        match earlier.as_any().downcast_ref::<Self>() {
            Some(earlier) => Drift::between(&earlier.components[was], &self.components[component]),
            None => Drift::ANY,
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<F: Scalar> QuadraticScorer<F> {
    /// Scores every pair, abandoning those that cannot be kept.
    #[inline(always)]
    fn score_all<S: Simd>(
        &self,
        simd: S,
        block: Block<'_, F>,
        mut bounds: Option<PairBounds<'_>>,
        spreads: Option<Spreads<'_>>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
    ) {
        let Scratch { tile, common, lists, thresholds, .. } = scratch;
        tile.fill(block.rows.dense(), self.factors.dimension());
        let (n_groups, parts) = (tile.n_padded() / F::GROUP, parts_of_group::<S, F>());
        let mut common: Option<&mut [Vectors<S, F>]> = self.row_term.as_ref().map(|_| {
            common.resize(tile.n_padded());
            bytemuck::cast_slice_mut(common)
        });
        if let (Some(term), Some(common)) = (&self.row_term, &mut common) {
            term.score_alone(simd, tile, common);
        }
        let mut offers = sink.offers(simd);
        let mut steps = [0; MOST_ROWS];
        let abandons = common.is_none() && (self.factors.has_bands() || self.tails.is_some());
        let mut thresholds =
            self.tails.as_ref().filter(|_| abandons).map(|_| Thresholds::new(thresholds, tile.n_padded()));
        let mut first = 0;
        while first < n_groups {
            // Groups with the same lead process the components in the same order: the lead first, then all others.
            let lead = lead_of::<F>(block.leads, first);
            let mut end = first + 1;
            while end < n_groups && lead_of::<F>(block.leads, end) == lead {
                end += 1;
            }
            for place in 0..self.constants.len() {
                let component = match lead {
                    Some(lead) if place == 0 => lead,
                    Some(lead) if place <= lead => place - 1,
                    _ => place,
                };
                let factor = self.factors.factor(component);
                for part in first * parts..end * parts {
                    let rows = tile.rows_of_part::<S>(part);
                    let mut least = if abandons { offers.least(part) } else { None };
                    if let (Some(least), Some(thresholds)) = (&mut least, &mut thresholds) {
                        *least = thresholds.of(simd, part, *least, |least| self.threshold::<S>(least));
                    }
                    let wanted = self.wanted(simd, component, least);
                    let (lengths, is_complete) = factor.squared_lengths(simd, tile.part(part), wanted);
                    if let Some(bounds) = &mut bounds {
                        let (reach, lengths_of) = (self.reaches[component], &lists.lengths[rows.clone()]);
                        bounds_of::<F>(bytemuck::cast_slice(&lengths), reach, lengths_of, &mut steps);
                        for (row, &value) in rows.clone().zip(&steps) {
                            bounds.raise(row, component, value);
                        }
                    }
                    // The logarithms of tails cost more than the comparison.
                    let is_far = |wanted: Wanted<S, F>| self.tails.is_some() && !wanted.any(simd, lengths);
                    if !is_complete || wanted.is_some_and(is_far) {
                        continue;
                    }
                    let mut scores = self.log_weights(simd, component, lengths);
                    if let Some(common) = &common {
                        for (score, &common) in scores.iter_mut().zip(&common[part]) {
                            *score = F::minus(simd, *score, common);
                        }
                    }
                    // Squares about the mean only lower a score, so a pair abandoned by its mean alone would not be
                    // kept.
                    if let Some(spreads) = spreads {
                        let precision = self.precision(component);
                        let scores: &mut [F] = bytemuck::cast_slice_mut(&mut scores);
                        spreads.take(rows.clone(), scores, |spread| dot(precision, spread));
                    }
                    offers.offer(component, part, scores, rows.len());
                }
            }
            first = end;
        }
    }

    /// Writes the log weights of the first component.
    #[inline(always)]
    fn score_alone<S: Simd>(&self, simd: S, tile: &Tile<F>, out: &mut [Vectors<S, F>]) {
        let factor = self.factors.factor(0);
        for (part, out) in out.iter_mut().enumerate() {
            let (lengths, _) = factor.squared_lengths(simd, tile.part(part), None);
            *out = self.log_weights(simd, 0, lengths);
        }
    }

    /// Scores the leads, and then the pairs that their bounds do not exclude. If these are too many, returns `false`
    /// with the bounds up to date.
    #[inline(always)]
    fn score_bounded<S: Simd>(
        &self,
        simd: S,
        block: Block<'_, F>,
        bounds: &mut PairBounds<'_>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
    ) -> bool {
        let (d, k, n) = (self.factors.dimension(), self.constants.len(), block.leads.len());
        scratch.lists.pairs.clear();
        scratch.lists.pairs.extend(block.leads.iter().copied().zip(0..));
        self.score_lists(simd, block, bounds, sink, scratch, false);
        scratch.lists.pairs.clear();
        let most = n * k / MOST_LISTED;
        for (row, &lead) in block.leads.iter().enumerate() {
            let least = sink.least_of(row);
            let values = &mut bounds.values[row * k..][..k];
            let of_lead = values[lead as usize];
            let alive = scratch.scan.row(values, scratch.lists.lengths[row], least.to_f64() as f32);
            values[lead as usize] = of_lead;
            if cfg!(debug_assertions) {
                self.check_the_proof(alive, &block.rows.dense()[row * d..][..d], least);
            }
            if scratch.lists.pairs.len() <= most {
                push_alive(alive, lead, row as u32, &mut scratch.lists.pairs);
            }
        }
        let few = scratch.lists.pairs.len() <= most;
        if few {
            self.score_lists(simd, block, bounds, sink, scratch, true);
        }
        few
    }

    /// Checks the bounds by computing the log weights of the excluded pairs, in builds with debug assertions.
    ///
    /// # Panics
    /// If one of the log weights reaches `least`.
    fn check_the_proof(&self, alive: &[u8], row: &[F], least: F) {
        for (component, &alive) in alive.iter().enumerate().take(self.constants.len()) {
            let score = self.score_row(component, row);
            assert!(alive == 1 || score < least, "component {component}: {score} reaches {least}");
        }
    }

    /// Scores the listed pairs. With `again`, valid bounds exist for them already, and scores are computed only as far
    /// as needed.
    #[inline(always)]
    fn score_lists<S: Simd>(
        &self,
        simd: S,
        block: Block<'_, F>,
        bounds: &mut PairBounds<'_>,
        sink: &mut TopL<F>,
        scratch: &mut Scratch<F>,
        again: bool,
    ) {
        let Scratch { tile, least, lists, .. } = scratch;
        lists.sort(self.constants.len());
        least.resize(F::GROUP);
        let (mut rows_of, mut steps) = ([0.0; MOST_ROWS], [0; MOST_ROWS]);
        for component in 0..self.constants.len() {
            let (factor, reach) = (self.factors.factor(component), self.reaches[component]);
            for list in lists.rows[lists.starts[component]..lists.starts[component + 1]].chunks(F::GROUP) {
                tile.gather(block.rows.dense(), self.factors.dimension(), list);
                if again {
                    sink.least_listed(list, least);
                }
                for (part, list) in list.chunks(rows_of_part::<S, F>()).enumerate() {
                    let least: &[Vectors<S, F>] = bytemuck::cast_slice(least);
                    let least = again.then(|| self.threshold::<S>(least[part]));
                    let wanted = self.wanted(simd, component, least);
                    let (lengths, is_complete) = factor.squared_lengths(simd, tile.part(part), wanted);
                    for (length, &row) in rows_of.iter_mut().zip(list) {
                        *length = lists.lengths[row as usize];
                    }
                    bounds_of::<F>(bytemuck::cast_slice(&lengths), reach, &rows_of[..list.len()], &mut steps);
                    for (&row, &value) in list.iter().zip(&steps) {
                        if again {
                            bounds.raise(row as usize, component, value);
                        } else {
                            bounds.set(row as usize, component, value);
                        }
                    }
                    if is_complete {
                        let scores = self.log_weights(simd, component, lengths);
                        sink.offer_listed(component, list, bytemuck::cast_slice(&scores));
                        sink.n_evaluated += list.len();
                    }
                }
            }
        }
    }
}

/// Thresholds of the rows of a tile, part by part. They are computed anew only where scores have risen.
struct Thresholds<'a, S: Simd, F: Scalar> {
    scores: &'a mut [Vectors<S, F>],
    lengths: &'a mut [Vectors<S, F>],
}

impl<'a, S: Simd, F: Scalar> Thresholds<'a, S, F> {
    fn new([scores, lengths]: &'a mut [Lines<F>; 2], n: usize) -> Self {
        scores.reset(n, F::NEG_INFINITY);
        lengths.reset(n, F::INFINITY);
        Self { scores: bytemuck::cast_slice_mut(scores), lengths: bytemuck::cast_slice_mut(lengths) }
    }

    /// The thresholds of a part whose scores must reach `least`.
    #[inline(always)]
    fn of(
        &mut self,
        simd: S,
        part: usize,
        least: Vectors<S, F>,
        of: impl Fn(Vectors<S, F>) -> Vectors<S, F>,
    ) -> Vectors<S, F> {
        let known = self.scores[part];
        let mut risen = F::greater(simd, least[0], known[0]);
        for v in 1..VECTORS {
            risen = F::either(simd, risen, F::greater(simd, least[v], known[v]));
        }
        if F::any(simd, risen) {
            (self.scores[part], self.lengths[part]) = (least, of(least));
        }
        self.lengths[part]
    }
}

/// A dot product, eight terms at a time.
#[inline(always)]
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += a[lane] * b[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// At least [`Scalar::GROUP`] of either scalar type.
const MOST_ROWS: usize = 48;
/// Lists are used if the bounds leave at most one pair in this many.
const MOST_LISTED: usize = 4;

/// The component with which a group begins.
#[inline(always)]
fn lead_of<F: Scalar>(leads: &[u32], group: usize) -> Option<usize> {
    match leads.get(group * F::GROUP) {
        Some(&lead) if lead != NO_LEAD => Some(lead as usize),
        _ => None,
    }
}

/// Adds the components that are not excluded, except for the lead.
#[inline(always)]
fn push_alive(alive: &[u8], lead: u32, row: u32, pairs: &mut Vec<(u32, u32)>) {
    for (eight, alive) in (0..).zip(alive.as_chunks::<8>().0) {
        let mut alive = u64::from_le_bytes(*alive);
        while alive != 0 {
            let component = 8 * eight + alive.trailing_zeros() / 8;
            if component != lead {
                pairs.push((component, row));
            }
            alive &= alive - 1;
        }
    }
}
