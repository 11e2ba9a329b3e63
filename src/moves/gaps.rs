//! Merge-entropy gaps of the pairs that a plan lists (mathematics 4.4).

use std::collections::BTreeMap;

use crate::local_step::pair_gap;
use crate::moves::Visited;
use crate::parallel::{blocks, map};
use crate::simd::Scalar;
use crate::suffstats::PairGaps;

/// Units whose pairs are looked at together.
const BLOCK: usize = 4096;

/// The gaps of the listed pairs in one visit.
pub(super) fn gaps<F: Scalar>(visited: &Visited<'_, F>) -> PairGaps {
    let (units, seen, plan) = (visited.look.units, visited.look.seen, visited.look.plan);
    let mut near: Vec<Vec<(u32, u32)>> = vec![Vec::new(); visited.look.ids.len() + 1];
    for (pair, (a, b)) in (0..).zip(&plan.pairs) {
        if let (Some(&a), Some(&b)) = (visited.places.get(a), visited.places.get(b)) {
            near[a as usize].push((b, pair));
            near[b as usize].push((a, pair));
        }
    }
    let ranges: Vec<_> = blocks(seen.units.len(), BLOCK).collect();
    let sums = map(ranges.len(), |block| {
        let mut gaps: BTreeMap<u32, f64> = BTreeMap::new();
        for at in ranges[block].clone() {
            let own = at * seen.width..(at + 1) * seen.width;
            for a in own.clone().filter(|&a| seen.values[a] > 0.0) {
                let near = &near[seen.components[a] as usize];
                for b in (a + 1..own.end).filter(|_| !near.is_empty()) {
                    if let Some((_, pair)) = near.iter().find(|(other, _)| *other == seen.components[b]) {
                        let mass = units.mass(seen.units[at] as usize);
                        *gaps.entry(*pair).or_insert(0.0) += mass * pair_gap(seen.values[a], seen.values[b]);
                    }
                }
            }
        }
        gaps
    });
    let mut gaps = vec![0.0; plan.pairs.len()];
    for (pair, gap) in sums.into_iter().flatten() {
        gaps[pair as usize] += gap;
    }
    PairGaps::Listed(plan.pairs.iter().copied().zip(gaps).collect())
}
