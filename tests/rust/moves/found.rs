//! Findings of visits add up to the same total in any order of the batches.

use proptest::prelude::*;
use stickbreak::component::{ComponentId, EditLog};
use stickbreak::data::{Csr, CsrRows, DenseRows, RowUnits, Rows, Sample};
use stickbreak::moves::Bag;
use stickbreak::rng::{Purpose, key, permutation, stream};
use stickbreak::suffstats::{PairGaps, Summary};

const D: usize = 3;

/// Row i is (i, 2 i, 3 i), of mass 1 + i / 10.
fn sample(rows: std::ops::Range<u32>) -> Sample {
    let values: Vec<f64> = (0..rows.end).flat_map(|row| (1..=3).map(move |j| f64::from(row * j))).collect();
    let masses: Vec<f64> = (0..rows.end).map(|row| 1.0 + f64::from(row) / 10.0).collect();
    let table = DenseRows::new(values, D);
    let mut sample = Sample::default();
    sample.extend(&RowUnits::all(&table, Some(&masses)), &rows.collect::<Vec<_>>());
    sample
}

/// The rows of a bag with their keys, in key order.
fn contents(bag: &Bag, most: usize) -> Vec<(u64, Vec<f64>, f64)> {
    let bag = bag.smallest(most);
    let units = bag.rows.units::<f64>(1.0);
    let mut rows: Vec<_> = (0..units.len())
        .map(|unit| {
            let mut row = vec![0.0; D];
            units.read([unit], &[0.0; D], &mut row);
            (bag.keys[unit], row, units.mass(unit))
        })
        .collect();
    rows.sort_by_key(|(key, _, _)| *key);
    rows
}

proptest! {
    /// A bag keeps the rows with the smallest keys, in any order of visits and for any number of sorts.
    #[test]
    fn a_bag_is_the_same_in_any_order(
        n_batches in 1_usize..9,
        size in 1_u32..20,
        most in 1_usize..40,
        seed in 0_u64..1000,
    ) {
        let bag = |batch: usize| {
            let first = batch as u32 * size;
            let keys = (first..first + size).map(|row| key(seed, [u64::from(row)])).collect();
            Bag { rows: sample(first..first + size), keys }
        };
        let take = |order: &[u32]| {
            let mut found = Bag::default();
            for &batch in order {
                found.merge(bag(batch as usize), most);
            }
            prop_assert!(found.keys.len() <= 2 * most + size as usize);
            Ok(contents(&found, most))
        };
        let in_order: Vec<u32> = (0..n_batches as u32).collect();
        let shuffled = permutation(n_batches as u32, &mut stream(seed, Purpose::Visits, 0));
        let found = take(&in_order)?;
        prop_assert_eq!(&found, &take(&shuffled)?);
        let mut keys: Vec<u64> = (0..n_batches as u32 * size).map(|row| key(seed, [u64::from(row)])).collect();
        keys.sort_unstable();
        keys.truncate(most);
        prop_assert_eq!(found.iter().map(|(key, _, _)| *key).collect::<Vec<_>>(), keys);
    }

    /// Appending and picking keep every row with its mass and its pairs, sparse or dense.
    #[test]
    fn rows_survive_appending_and_picking(cut in 0_u32..12, sparse in any::<bool>(), seed in 0_u64..100) {
        let is_zero = |index: usize| (index * 7 + seed as usize).is_multiple_of(3);
        let dense: Vec<f64> = (0..12 * 3).map(|index| if is_zero(index) { 0.0 } else { index as f64 }).collect();
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in dense.chunks_exact(D) {
            for (column, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
                columns.push(column);
                values.push(value);
            }
            starts.push(values.len() as u64);
        }
        let csr = Csr { starts: &starts, columns: &columns, values: &values };
        let table: Box<dyn Rows<f64> + '_> = if sparse {
            Box::new(CsrRows::new(csr, D).expect("parts that fit together"))
        } else {
            Box::new(DenseRows::new(&dense, D))
        };
        let units = RowUnits::all(table.as_ref(), None);
        let part = |range: std::ops::Range<u32>| {
            let mut part = Sample::default();
            part.extend(&units, &range.collect::<Vec<_>>());
            part
        };
        let mut all = part(0..cut);
        all.append(part(cut..12));
        let order = permutation(12, &mut stream(seed, Purpose::Visits, 1));
        let order: Vec<usize> = order.into_iter().map(|row| row as usize).collect();
        let picked = all.pick(&order);
        prop_assert_eq!(picked.len(), 12);
        let mut again = all.pick(&order[..cut as usize]);
        again.extend_from(&all, &order[cut as usize..]);
        prop_assert_eq!(&again, &picked);
        let read = picked.units::<f64>(2.0);
        for (position, &row) in order.iter().enumerate() {
            let mut found = [0.0; D];
            read.read([position], &[0.0; D], &mut found);
            prop_assert_eq!(&found[..], &dense[row * D..][..D]);
            prop_assert_eq!(read.mass(position), 2.0);
        }
    }
}

/// Gaps of listed pairs add up over batches. A pair that is not listed in every batch has an unknown gap. A merge or a
/// delete makes the gaps of its components unknown.
#[test]
fn listed_gaps() {
    let ids = EditLog::with_components(4).components().expect("one append");
    let summary = |pairs: &[(u32, u32, f64)]| {
        let listed = pairs.iter().map(|&(a, b, gap)| ((ComponentId(a), ComponentId(b)), gap)).collect();
        let mut summary = Summary::empty(ids.clone(), 1, false);
        summary.gaps = PairGaps::Listed(listed);
        summary
    };
    let get = |summary: &Summary, a: u32, b: u32| summary.gaps.get(ComponentId(a), ComponentId(b));
    // A sum starts with no units, for which every gap is known to be zero.
    let mut sum = Summary::empty(ids.clone(), 1, true);
    sum.add(&summary(&[(0, 1, 0.5), (1, 2, 0.25), (2, 3, 1.0)])).expect("the same components");
    sum.add(&summary(&[(0, 1, 1.0), (2, 3, 0.0)])).expect("the same components");
    assert_eq!((get(&sum, 0, 1), get(&sum, 1, 0), get(&sum, 2, 3)), (Some(1.5), Some(1.5), Some(1.0)));
    assert_eq!((get(&sum, 1, 2), get(&sum, 0, 2)), (None, None));
    sum.sub(&summary(&[(0, 1, 1.0), (2, 3, 0.0)])).expect("the same components");
    assert_eq!((get(&sum, 0, 1), get(&sum, 2, 3)), (Some(0.5), Some(1.0)));
    assert_eq!(get(&sum.scale(0.5), 0, 1), Some(0.25));

    let (keep, gone) = (ComponentId(0), ComponentId(1));
    sum.apply(&stickbreak::component::Edit::Merge { keep, gone }).expect("a known gap");
    assert_eq!((get(&sum, 0, 1), get(&sum, 0, 2), get(&sum, 2, 3)), (None, None, Some(1.0)));
    sum.apply(&stickbreak::component::Edit::Delete { id: ComponentId(3) }).expect("it was there");
    assert_eq!(get(&sum, 2, 3), None);
    let nothing = Summary::empty(sum.ids.clone(), 1, false);
    sum.add(&nothing).expect("the same components");
    assert_eq!(sum.gaps, PairGaps::Unknown);
}
