//! Compares the selection with sorting and with all supports, for every instruction set.

use proptest::prelude::*;

use pulp::{Simd, WithSimd};

use super::*;
use crate::simd::{Instructions, Lines, Scalar};

struct Offers<'a>(&'a mut TopL<f64>, &'a [Vec<f64>]);

impl WithSimd for Offers<'_> {
    type Output = ();

    fn with_simd<S: Simd>(self, simd: S) {
        for component in (0..self.1[0].len()).rev() {
            // Offered in reverse order; ties must still go to the lower component.
            let mut column: Vec<f64> = self.1.iter().map(|row| row[component]).collect();
            column.resize(self.1.len().next_multiple_of(f64::GROUP), 0.0);
            for (group, scores) in column.chunks_exact(f64::GROUP).enumerate() {
                self.0.offers(simd).offer_group(component, group, scores);
            }
        }
    }
}

fn try_select(
    set: Instructions,
    scores: &[Vec<f64>],
    width: usize,
    margin: Option<f64>,
    sorts: bool,
) -> std::result::Result<Responsibilities, usize> {
    let mut sink = TopL::default();
    sink.reset(scores.len(), width, scores[0].len(), margin, true, sorts);
    set.run(Offers(&mut sink, scores));
    let mut out = Responsibilities::zeros(scores.len(), width);
    sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers)?;
    Ok(out)
}

/// Runs the selection with every instruction set.
fn select(scores: &[Vec<f64>], width: usize, margin: Option<f64>, sorts: bool) -> Responsibilities {
    let found = try_select(Instructions::Portable, scores, width, margin, sorts).expect("finite");
    for set in Instructions::available() {
        assert_eq!(try_select(set, scores, width, margin, sorts).as_ref(), Ok(&found), "{set:?}");
    }
    found
}

/// Computes the same by sorting: the reference for the sink.
fn by_sorting(row: &[f64], width: usize, margin: Option<f64>) -> (Vec<(u32, f64)>, f64) {
    let mut order: Vec<usize> = (0..row.len()).collect();
    order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).expect("finite").then(a.cmp(&b)));
    order.truncate(width);
    let best = row[order[0]];
    order.retain(|&k| row[k] >= best - margin.unwrap_or(f64::INFINITY));
    let total: f64 = order.iter().map(|&k| (row[k] - row[order[0]]).exp()).sum();
    let mut pairs: Vec<_> = order.iter().map(|&k| (k as u32, (row[k] - row[order[0]]).exp() / total)).collect();
    pairs.sort_by_key(|pair| pair.0);
    (pairs, row[order[0]] + total.ln())
}

/// Checks that the selection keeps what sorting keeps, the best first and empty slots last if lists are compact.
fn check_kept(found: &Responsibilities, scores: &[Vec<f64>], width: usize, margin: Option<f64>) {
    for (unit, row) in scores.iter().enumerate() {
        let (mut pairs, log_normalizer) = by_sorting(row, width, margin);
        pairs.retain(|pair| pair.1 > 0.0);
        let slots = unit * width..(unit + 1) * width;
        let values = &found.values[slots.clone()];
        let mut ours: Vec<_> =
            slots.map(|slot| (found.components[slot], found.values[slot])).filter(|pair| pair.1 > 0.0).collect();
        let best = (0..row.len()).fold(0, |a, b| if row[b] > row[a] { b } else { a });
        assert_eq!(found.best(unit) as usize, best);
        if TopL::<f64>::is_compact(width, row.len(), margin) {
            assert_eq!(ours[0].0 as usize, best);
            assert!(values[ours.len()..].iter().all(|&value| value == 0.0));
        }
        ours.sort_by_key(|pair| pair.0);
        assert_eq!(ours.len(), pairs.len());
        for (mine, theirs) in ours.iter().zip(&pairs) {
            assert_eq!(mine.0, theirs.0);
            assert!((mine.1 - theirs.1).abs() < 1e-14);
        }
        assert!((found.log_normalizers[unit] - log_normalizer).abs() < 1e-13);
    }
}

struct OneRow<'a, F>(&'a [F], usize, &'a [u32], &'a mut RowBest<F>);

impl<F: Scalar> WithSimd for OneRow<'_, F> {
    type Output = ();

    fn with_simd<S: Simd>(self, simd: S) {
        self.3.list(simd, self.0, self.1, self.2);
    }
}

proptest! {
    /// The row-wise selection keeps what the sink keeps, including ties, best first, whichever components are named as
    /// likely.
    #[test]
    fn both_entries_keep_the_same(
        row in prop::collection::vec((0_u32..60).prop_map(|x| f64::from(x.saturating_sub(20)) * 0.5), 1..200),
        width in 1_usize..40,
        likely in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let mut likely: Vec<u32> = likely.iter().map(|index| index.index(row.len()) as u32).collect();
        likely.sort_unstable();
        likely.dedup();
        likely.truncate(width);
        let logs: Vec<f64> = row.iter().map(|x| x.ln()).collect();
        prop_assume!(row.iter().any(|x| *x > 0.0));
        let found = select(&[logs], width.min(row.len()), None, true);
        let kept = found.components.iter().zip(&found.values).filter(|(_, value)| **value > 0.0);
        let mut expected: Vec<u32> = kept.map(|(component, _)| *component).collect();
        let score = |component: u32| row[component as usize];
        expected.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
        let scores: Vec<f64> = expected.iter().map(|&component| score(component)).collect();
        let mut padded = (Lines::<f64>::default(), Lines::<f32>::default());
        padded.0.reset(row.len().next_multiple_of(f64::GROUP), 0.0);
        padded.0[..row.len()].copy_from_slice(&row);
        padded.1.reset(row.len().next_multiple_of(f32::GROUP), 0.0);
        padded.1.iter_mut().zip(&row).for_each(|(to, from)| *to = *from as f32);
        for set in Instructions::available() {
            let (mut double, mut single) = (RowBest::default(), RowBest::default());
            set.run(OneRow(&padded.0, width, &likely, &mut double));
            set.run(OneRow(&padded.1, width, &likely, &mut single));
            prop_assert_eq!(&double.components, &expected, "{:?}", set);
            prop_assert_eq!(&double.scores, &scores, "{:?}", set);
            prop_assert_eq!(&single.components, &expected, "{:?}", set);
        }
    }

    #[test]
    fn the_sink_keeps_what_sorting_keeps(
        scores in (1_usize..24).prop_flat_map(|k| prop::collection::vec(
            prop::collection::vec((-4_i32..4).prop_map(|x| f64::from(x) * 0.7), k), 1..30)),
        width in 1_usize..24,
        margin in prop_oneof![Just(None), Just(Some(600.0)), Just(Some(20.0)), Just(Some(2.0)), Just(Some(0.0))],
        sorts in any::<bool>(),
    ) {
        // Few distinct values, so that ties are common.
        let k = scores[0].len();
        let width = width.min(k);
        let found = select(&scores, width, margin, sorts);
        check_kept(&found, &scores, width, margin);
    }

    /// With many components near the best, so that most do not fit, and with scores that are equal, infinitely low or
    /// denormal.
    #[test]
    fn the_sink_keeps_what_sorting_keeps_of_many(
        scores in (1_usize..128).prop_flat_map(|k| prop::collection::vec(
            prop::collection::vec(
                prop_oneof![8 => -15.0..0.0, 2 => (-5_i32..0).prop_map(f64::from), 1 => Just(f64::NEG_INFINITY),
                    1 => Just(-5e-320)],
                k,
            ),
            1..40,
        )),
        width in any::<prop::sample::Index>(),
        margin in prop_oneof![Just(None), Just(Some(20.0)), Just(Some(3.0))],
    ) {
        let k = scores[0].len();
        let width = 1 + width.index(k);
        prop_assume!(scores.iter().all(|row| row.iter().any(|score: &f64| score.is_finite())));
        let found = select(&scores, width, margin, false);
        check_kept(&found, &scores, width, margin);
    }

    #[test]
    fn largest_is_what_sorting_keeps(
        scores in prop::collection::vec(
            prop_oneof![4 => -15.0..15.0, 4 => (-3_i32..3).prop_map(f64::from), 1 => Just(f64::NEG_INFINITY)], 1..100),
        width in 1_usize..110,
    ) {
        let mut pairs: Vec<(usize, f64)> = scores.iter().copied().enumerate().collect();
        pairs.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        pairs.truncate(width);
        prop_assert_eq!(largest(&scores, width).0, pairs);
    }

    /// Pairs of a row of a class and a component of another one are as if their log weight were minus infinity, whichever
    /// way scores arrive (mathematics 3.2).
    #[test]
    fn rows_keep_components_of_their_class_only(
        scores in (1_usize..20).prop_flat_map(|k| prop::collection::vec(
            prop::collection::vec((-9_i32..9).prop_map(|x| f64::from(x) * 0.7), k), 1..40)),
        of_rows in prop::collection::vec(prop::option::of(0_u32..3), 40),
        of_components in prop::collection::vec(prop::option::of(0_u32..3), 20),
        width in 1_usize..20,
        margin in prop_oneof![Just(None), Just(Some(600.0)), Just(Some(2.0))],
        (sorts, is_listed) in any::<(bool, bool)>(),
    ) {
        let k = scores[0].len();
        let width = width.min(k);
        let of_components = &of_components[..k];
        let allowed = |row: usize, k: usize| of_rows[row].is_none() || of_rows[row] == of_components[k];
        let masked: Vec<Vec<f64>> = scores.iter().enumerate().map(|(row, scores)| {
            let masked = |(k, &score): (usize, &f64)| if allowed(row, k) { score } else { f64::NEG_INFINITY };
            scores.iter().enumerate().map(masked).collect()
        }).collect();
        let none = masked.iter().position(|row| row.iter().all(|score| !score.is_finite()));
        for set in Instructions::available() {
            let mut sink = TopL::default();
            sink.reset(scores.len(), width, k, margin, true, sorts);
            sink.restrict(of_rows.iter().copied(), of_components);
            if is_listed {
                let list: Vec<u32> = (0..scores.len() as u32).collect();
                for component in 0..k {
                    let column: Vec<f64> = scores.iter().map(|row| row[component]).collect();
                    sink.offer_listed(component, &list, &column);
                }
            } else {
                set.run(Offers(&mut sink, &scores));
            }
            let mut out = Responsibilities::zeros(scores.len(), width);
            let outcome = sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers);
            prop_assert_eq!(outcome.err(), none);
            if none.is_none() {
                check_kept(&out, &masked, width, margin);
            }
            // The next block is not restricted.
            sink.reset(scores.len(), width, k, margin, true, sorts);
            set.run(Offers(&mut sink, &scores));
            let outcome = sink.normalize(&mut out.components, &mut out.values, &mut out.log_normalizers);
            prop_assert_eq!(outcome, Ok(()));
            check_kept(&out, &scores, width, margin);
        }
    }

    #[test]
    fn no_other_support_is_better(row in prop::collection::vec(-5.0_f64..5.0, 1..7), width in 1_usize..7) {
        // Mathematics 3.1: over all supports of at most L components, the maximum is the log-sum-exp of the top L.
        let k = row.len();
        let width = width.min(k);
        let value = |mask: u32| {
            let kept: Vec<f64> = (0..k).filter(|i| mask >> i & 1 == 1).map(|i| row[i]).collect();
            kept.iter().map(|w| w.exp()).sum::<f64>().ln()
        };
        let best = (1_u32..1 << k)
            .filter(|mask| mask.count_ones() as usize <= width)
            .map(value)
            .fold(f64::NEG_INFINITY, f64::max);
        let found = select(std::slice::from_ref(&row), width, None, false);
        prop_assert!((found.log_normalizers[0] - best).abs() < 1e-12);
    }
}

#[test]
fn a_row_without_a_finite_weight_is_reported() {
    for (width, margin) in [(1, None), (2, None), (2, Some(20.0))] {
        let scores = [vec![0.0, 0.0], vec![f64::NAN, f64::NEG_INFINITY], vec![1.0, 1.0]];
        assert_eq!(try_select(Instructions::widest(), &scores, width, margin, false), Err(1));
    }
}

#[test]
fn sparsity_is_between_one_and_the_number_of_components() {
    assert_eq!([5, 50].map(|k| Sparsity::Auto.clamp(k)), [5, 16]);
    assert_eq!([5, 50].map(|k| Sparsity::Dense.clamp(k)), [5, 50]);
    assert_eq!([3, 50].map(|k| Sparsity::Limited(4).clamp(k)), [3, 4]);
    assert_eq!(
        [0, 4, 50, 51].map(|width| Sparsity::Limited(width).check(50, "components").is_ok()),
        [false, true, true, false]
    );
    assert!(Sparsity::Auto.check(1, "components").is_ok() && Sparsity::Dense.check(1, "components").is_ok());
}
